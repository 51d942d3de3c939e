"""The journal of a run in the making: one line a topic, appended as soon as it is answered.

A killed process loses nothing that was answered: `--resume` reads the lines, asks what is missing, and writes the run as
if nothing had happened. A last line that was cut short is cut off, and one that is damaged is passed over: its topic is
asked again. The first line says what was asked of what; a journal of another question, or of one that cannot be read, is
refused, as nobody knows what its answers answer.
"""

from __future__ import annotations

import json
import os
import threading
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError
from cranfield.formats.streams import reason

if TYPE_CHECKING:
    from cranfield.systems.system import Ranking


ENDING = ".journal"


class Journal:
    """Answers on disk, by topic; `answers` and `waits` are what an earlier process left."""

    def __init__(self, path: str, task: dict[str, Any], resume: bool) -> None:
        self.path = path
        self.answers: dict[str, Ranking] = {}
        self.waits: dict[str, float] = {}
        self.written = 0
        self.damaged = 0  # lines that an earlier process left and nobody can read
        self.lock = threading.Lock()
        exists = os.path.exists(path)
        if exists and not resume:
            raise DataError(
                f"{path}: the journal of a run that was cut short or lacks topics; --resume goes on from it, or delete it"
            )
        try:
            whole = self._read(task) if exists else 0
            self.file = open(path, "ab")  # noqa: SIM115  closed by keep or discard
            self.file.truncate(whole)
        except OSError as error:
            raise DataError(f"{path}: cannot be opened: {reason(error)}") from error
        if not whole:
            self._append(task)

    def _read(self, task: dict[str, Any]) -> int:
        """Take over what is there; the size of its whole lines."""
        with open(self.path, "rb") as file:
            content = file.read()
        whole = content.rfind(b"\n") + 1
        lines = content[:whole].splitlines()
        head = _parsed(lines[0]) if lines else task
        if not isinstance(head, dict) or "journal" not in head:
            raise DataError(
                f"{self.path}: no journal, or one whose first line is damaged (found {lines[0][:60]!r}), so that it is not "
                "known what it answers; delete it to start anew"
            )
        if head != task:
            other = next((key for key in task if head.get(key) != task[key]), "version")
            raise DataError(
                f"{self.path}: belongs to another run: its {other} is {head.get(other)!r}, not {task.get(other)!r}; "
                "delete it to start anew"
            )
        for line in lines[1:]:
            try:
                topic, hits, seconds = _answer(_parsed(line))
            except (ValueError, TypeError, KeyError):
                self.damaged += 1
                continue
            self.answers[topic] = hits
            if seconds is not None:
                self.waits[topic] = seconds
        return whole

    def _append(self, row: dict[str, Any]) -> None:
        try:
            with self.lock:
                self.file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
                self.file.flush()
        except OSError as error:
            told = f"{self.path}: cannot be written: {reason(error)}; --resume goes on from what it holds"
            raise DataError(told) from error

    def write(self, topic: str, hits: Ranking, seconds: float | None) -> None:
        """Keep an answer."""
        documents, scores = _packed(hits)
        self.written += 1
        self._append({"topic": topic, "seconds": seconds, "documents": documents, "scores": scores})

    def keep(self) -> None:
        """Close it; it stays for --resume, unless it holds no answer."""
        with suppress(OSError):  # what a full disk did not take
            self.file.close()
        if not self.written and not self.answers:
            os.unlink(self.path)

    def discard(self) -> None:
        """The run is written and whole: the journal has served."""
        self.file.close()
        os.unlink(self.path)


def _parsed(line: bytes) -> Any:
    """What a line says; None if it is damaged."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _answer(row: Any) -> tuple[str, Ranking, float | None]:
    """The topic, the hits and the wait that a line holds."""
    topic, documents, scores, seconds = row["topic"], row["documents"], row["scores"], row.get("seconds")
    ids = [documents] if isinstance(documents, str) else documents
    if not all(isinstance(text, str) for text in (topic, scores, *ids)):
        raise TypeError("expected texts")
    return topic, _unpacked(documents, scores), None if seconds is None else float(seconds)


def _packed(hits: Ranking) -> tuple[str | list[str], str]:
    """Ids in one text, scores as the bytes of doubles in hexadecimal: a fifth of the time that lists of numbers take."""
    ids, scores = zip(*hits, strict=True) if hits else ((), ())
    text = "\n".join(ids)
    plain = text.count("\n") == len(ids) - 1
    return text if plain else list(ids), array("d", scores).tobytes().hex()


def _unpacked(documents: str | list[str], scores: str) -> Ranking:
    ids = documents.split("\n") if isinstance(documents, str) else documents
    values = array("d", bytes.fromhex(scores))
    return list(zip(ids, values, strict=True))

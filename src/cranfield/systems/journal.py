"""The journal of a run in the making: one line a topic, appended as soon as it is answered.

A killed process loses nothing that was answered: `--resume` reads the lines, asks what is missing, and writes the run as
if nothing had happened. A last line that was cut short is passed over. The first line says what was asked of what; a
journal of another question is refused.
"""

from __future__ import annotations

import json
import os
import threading
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError

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
        self.lock = threading.Lock()
        exists = os.path.exists(path)
        if exists and not resume:
            raise DataError(
                f"{path}: the journal of a run that was cut short or lacks topics; --resume goes on from it, or delete it"
            )
        whole = self._read(task) if exists else 0
        self.file = open(path, "ab")  # noqa: SIM115  closed by keep or discard
        if exists:
            self.file.truncate(whole)
        else:
            self._append(task)

    def _read(self, task: dict[str, Any]) -> int:
        """Take over what is there; the size of its whole lines."""
        with open(self.path, "rb") as file:
            content = file.read()
        whole = content.rfind(b"\n") + 1
        lines = content[:whole].splitlines()
        head = self._parsed(lines[0], 1) if lines else task
        if head != task:
            other = next((key for key in task if head.get(key) != task[key]), "version")
            raise DataError(
                f"{self.path}: belongs to another run: its {other} is {head.get(other)!r}, not {task.get(other)!r}; "
                "delete it to start anew"
            )
        for number, line in enumerate(lines[1:], 2):
            row = self._parsed(line, number)
            self._take(row, number)
        return whole

    def _take(self, row: dict[str, Any], number: int) -> None:
        """Take over one answer."""
        try:
            self.answers[row["topic"]] = _unpacked(row["documents"], row["scores"])
            if row.get("seconds") is not None:
                self.waits[row["topic"]] = float(row["seconds"])
        except (ValueError, TypeError) as error:
            raise DataError(
                f"{self.path}:{number}: expected a topic's answer ({error}); delete the file to start anew"
            ) from error

    def _parsed(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            row: dict[str, Any] = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("no object")
            if number > 1 and not {"topic", "documents", "scores"} <= row.keys():
                raise ValueError("no topic, documents and scores")
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{self.path}:{number}: expected a line of a journal ({error}); delete it to start anew"
            ) from error
        return row

    def _append(self, row: dict[str, Any]) -> None:
        try:
            with self.lock:
                self.file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
                self.file.flush()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise DataError(f"{self.path}: cannot be written: {reason}; --resume goes on from what it holds") from error

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

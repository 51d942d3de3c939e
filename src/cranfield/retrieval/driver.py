"""Ask a system all topics with several clients, retries and time-outs, and record every answer in a journal.

`produce_run` defines what is measured. Warm-up queries come first and are timed apart. They use topics that are not
timed later if there are enough, because an engine that caches answers would look faster than it is. The first pass over
the topics makes the run; later passes only measure time. A topic that fails does not stop the others.

The journal has one line per topic, appended as soon as the topic is answered, so a killed process loses no answer.
`--resume` reads the journal and asks only the missing topics. An incomplete last line is cut off; a damaged line is
skipped and its topic asked again. The first line describes the question: a journal of another question is refused.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from array import array
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError, CranfieldError, DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.worker_threads import retry_pause, work_through
from cranfield.formats.streams import reason
from cranfield.retrieval.systems_under_test import Broken, Busy, Query, Ranking, Refused, System, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Progress = Callable[[int, int | None], None]


class Journal:
    """Answers on disk, by topic; `answers` and `waits` are those of an earlier process."""

    def __init__(self, path: str, task: dict[str, Any], resume: bool) -> None:
        self.path = path
        self.answers: dict[str, Ranking] = {}
        self.waits: dict[str, float] = {}
        self.appended = 0
        self.damaged = 0  # unreadable lines of an earlier process
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
        """Read the answers of an earlier process; returns the bytes of its complete lines."""
        with open(self.path, "rb") as file:
            content = file.read()
        whole = content.rfind(b"\n") + 1
        lines = content[:whole].splitlines()
        head = _parsed(lines[0]) if lines else task
        if not isinstance(head, dict) or "journal" not in head:
            raise DataError(
                f"{self.path}: not a journal, or its first line is damaged (found {lines[0][:60]!r}), so that nobody knows "
                "which run it belongs to; delete it to start anew"
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
            problem = f"{self.path}: cannot be written: {reason(error)}; --resume goes on from what it holds"
            raise DataError(problem) from error

    def write(self, topic: str, hits: Ranking, seconds: float | None) -> None:
        """Append an answer: ids as one text, scores as hexadecimal bytes of doubles, five times faster than lists."""
        ids, scores = zip(*hits, strict=True) if hits else ((), ())
        text = "\n".join(ids)
        documents = text if text.count("\n") == len(ids) - 1 else list(ids)
        self.appended += 1
        packed = array("d", scores).tobytes().hex()
        self._append({"topic": topic, "seconds": seconds, "documents": documents, "scores": packed})

    def keep(self) -> None:
        """Close the journal; it stays for --resume unless it has no answer."""
        with suppress(OSError):  # a full disk
            self.file.close()
        if not self.appended and not self.answers:
            os.unlink(self.path)

    def discard(self) -> None:
        """Delete the journal: the run is complete."""
        self.file.close()
        os.unlink(self.path)


def _parsed(line: bytes) -> Any:
    """The content of a line; None if it is damaged."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _answer(row: Any) -> tuple[str, Ranking, float | None]:
    """The topic, the hits and the waiting time in a line."""
    topic, documents, scores, seconds = row["topic"], row["documents"], row["scores"], row.get("seconds")
    ids = documents.split("\n") if isinstance(documents, str) else documents
    if not all(isinstance(text, str) for text in (topic, scores, *ids)):
        raise TypeError("expected texts")
    hits = list(zip(ids, array("d", bytes.fromhex(scores)), strict=True))
    return topic, hits, None if seconds is None else float(seconds)


DAY = 86_400  # seconds: the longest time-out
SPACE = re.compile(r"[ \t\n\v\f\r]")


@dataclass(frozen=True)
class Load:
    """The load on a system: clients, rate, passes, retries and limits."""

    clients: int = 1
    rate: float | None = None  # queries due per second, whether the system keeps up or not
    passes: int = 1
    warmup: int = 10
    retries: int = 3
    timeout: float = 30.0  # time-out in seconds
    max_answer: float = 32.0  # largest answer over HTTP in megabytes
    backoff: float = 0.2  # seconds before the first retry, doubled each time
    give_up: int = 10  # failures in a row after which the rest is not asked

    def __post_init__(self) -> None:
        refuse_below(1, clients=self.clients, passes=self.passes, give_up=self.give_up)
        refuse_below(0, warmup=self.warmup, retries=self.retries)
        limits = {
            "rate": (self.rate, 1e-4, 1e6),
            "timeout": (self.timeout, 0, DAY),
            "max_answer": (self.max_answer, 0, 1e6),
        }
        for name, (value, least, most) in limits.items():
            if value is not None and not value > 0:
                raise ConventionError(f"{name} must be above 0, got {value:g}")
            if value is not None and not least <= value <= most:
                raise ConventionError(f"{name} must be between {least:g} and {most:,.0f}, got {value:g}")


@dataclass
class Driven:
    """The answers by topic, the reasons of failures, and the waiting times in seconds."""

    answers: dict[str, Ranking] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    warm_apart: bool = True  # whether the warm-up topics differ from the timed ones
    in_one_go: int = 0  # the number of answers that came together
    elapsed: float = 0.0
    retries: int = 0
    late: int = 0  # open loop: queries sent late because all clients were busy
    gave_up: bool = False


def drive(
    system: System,
    queries: Sequence[Query],
    k: int,
    load: Load | None = None,
    journal: Journal | None = None,
    progress: Progress | None = None,
    others: Sequence[Query] = (),
) -> Driven:
    """Ask the queries that the journal lacks; `others` are topics that may be used to warm up."""
    driven = Driven(answers=dict(journal.answers if journal else {}))
    driver = _Driver(system, k, load or Load(), journal, progress, driven)
    system.timeout(driver.load.timeout)
    system.most_bytes(int(min(driver.load.max_answer * 1e6, 2**62)))
    left = [query for query in queries if query.id not in driven.answers]
    if system.batch:
        driver.in_one_go(left)
    else:
        driver.loop(driver.warm_up(left, others))
    return driven


@dataclass
class _Driver:
    """Clients that take the next query until none is left, and the results so far."""

    system: System
    k: int
    load: Load
    journal: Journal | None
    progress: Progress | None
    driven: Driven
    lock: threading.Lock = field(default_factory=threading.Lock)
    in_a_row: int = 0  # failures
    reached: bool = False  # whether the system has ever answered a connection

    def in_one_go(self, queries: Sequence[Query]) -> None:
        """Pass all queries at once; a failure counts for every query without an answer."""
        start = time.perf_counter()
        try:
            answers, why = (self.system.search_all(queries, self.k) if queries else {}), None
        except CranfieldError as error:
            answers, why = error.answers if isinstance(error, Broken) else {}, str(error)
        self.driven.elapsed = time.perf_counter() - start
        for query in queries:
            if query.id in answers or why is None:
                self.driven.in_one_go += 1
                self.driven.answers[query.id] = answers.get(query.id, [])
                self._write(query, None)
            else:
                self.driven.failed[query.id] = why

    def warm_up(self, queries: Sequence[Query], others: Sequence[Query]) -> Sequence[Query]:
        """Ask a few queries and return those that remain to be timed; errors show up when the query is timed.

        The queries are of other topics, or the first of the run: then their answers count but not their times, as long
        as more queries remain. If there are too few, the first ones are asked again.
        """
        count = self.load.warmup
        if len(others) >= count:
            self._warm(others[:count])
            return queries
        answers = self._warm(queries[:count])
        if len(queries) <= 2 * count:
            self.driven.warm_apart = False
            return queries
        for query, hits in answers:
            self.driven.answers[query.id] = hits
            self._write(query, None)
        return [query for query in queries if query.id not in self.driven.answers]

    def _warm(self, queries: Sequence[Query]) -> list[tuple[Query, Ranking]]:
        answers = []
        for query in queries:
            try:
                hits, wait = _timed(self._answer, query, time.perf_counter())
            except Unreachable:
                raise
            except Busy:  # do not wait ten times for an engine that is down
                break
            except Exception:
                continue
            self.driven.warm.append(wait)
            answers.append((query, hits))
        return answers

    def loop(self, queries: Sequence[Query]) -> None:
        """Ask the queries with several clients, and wait for the last answer."""
        waiting = deque(enumerate([*queries] * self.load.passes))
        total, start = len(waiting), time.perf_counter()

        def ask(item: tuple[int, Query]) -> None:
            number, query = item
            self._one(query, None if self.load.rate is None else start + number / self.load.rate)
            if self.progress is not None:
                self.progress(len(self.driven.waits), total)

        work_through(
            lambda: waiting.popleft() if waiting else None, ask, self.load.clients, stopped=lambda: self.driven.gave_up
        )
        self.driven.elapsed = time.perf_counter() - start
        for _, query in waiting:  # given up
            if query.id not in self.driven.answers:
                self.driven.failed.setdefault(query.id, f"not asked: {self.load.give_up} topics before it failed")

    def _one(self, query: Query, due: float | None) -> None:
        sent = time.perf_counter()
        if due is not None:
            if sent < due:
                time.sleep(due - sent)
            else:
                self.driven.late += sent - due > 0.001
            sent = due  # the wait counts from here, even if the query is sent later
        try:
            hits, wait = _timed(self._patient, query, sent)
        except Unreachable:
            raise
        except Exception as error:  # a failing topic does not stop the others
            with self.lock:
                if query.id not in self.driven.answers:
                    self.driven.failed.setdefault(query.id, str(error) or type(error).__name__)
                self.in_a_row += 1
                self.driven.gave_up |= self.in_a_row >= self.load.give_up
            return
        with self.lock:
            self.in_a_row = 0
            self.driven.waits.append(wait)
            new = query.id not in self.driven.answers
            if new:
                self.driven.answers[query.id] = hits
                self.driven.failed.pop(query.id, None)
        if new:
            self._write(query, wait)

    def _write(self, query: Query, wait: float | None) -> None:
        if self.journal is not None:
            self.journal.write(query.id, self.driven.answers[query.id], wait)

    def _answer(self, query: Query) -> Ranking:
        """The answer to a query; Unreachable if the very first connection is refused."""
        try:
            hits = self.system.search(query, self.k)
        except Refused as refused:
            if not self.reached:
                raise Unreachable(f"{refused} Nothing is written") from None
            raise
        except Exception:
            self.reached = True
            raise
        self.reached = True
        return hits

    def _patient(self, query: Query) -> Ranking:
        """The answer to a query, with retries while the system is busy."""
        failures = 0
        while True:
            try:
                return self._answer(query)
            except Busy as busy:
                if failures == self.load.retries:
                    tries = f" ({failures + 1} tries)" if failures else ""
                    raise ConnectionError(f"{busy}{tries}") from busy
                with self.lock:
                    self.driven.retries += 1
                time.sleep(retry_pause(failures, self.load.backoff, busy.after, self.load.timeout))
                failures += 1


def _timed(answer: Callable[[Query], Ranking], query: Query, since: float) -> tuple[Ranking, float]:
    """The answer to a query and its waiting time.

    Scores and ids that a run cannot hold are refused: here this costs one topic, at the end it would cost the run.
    """
    hits = answer(query)
    wait = time.perf_counter() - since
    total = sum(map(itemgetter(1), hits))
    if total != total and any(score != score for _, score in hits):
        document = next(document for document, score in hits if score != score)
        raise DataError(f"document {document!r}: expected a number as its score, found nan")
    if SPACE.search("".join(map(itemgetter(0), hits))) or not all(map(itemgetter(0), hits)):
        odd = next(document for document, _ in hits if not document or SPACE.search(document))
        raise DataError(f"document {odd!r}: expected an id without white space, as runs and judgments hold no other")
    return hits, wait

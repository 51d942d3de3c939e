"""Ask a system all topics: clients side by side, retries, time-outs, one failing topic no reason to stop.

What is measured is said in timing.py. Warm-up queries are asked first and kept apart. Every answer goes into the
journal the moment it is there; the first pass over the topics makes the run, later ones only time it.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from cranfield.errors import ConventionError, CranfieldError, DataError
from cranfield.systems.system import Broken, Busy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cranfield.systems.journal import Journal
    from cranfield.systems.system import Query, Ranking, System

    Progress = Callable[[int, int | None], None]


SPACE = re.compile(r"[ \t\n\v\f\r]")


@dataclass(frozen=True)
class Load:
    """How a system is asked."""

    clients: int = 1
    rate: float | None = None  # queries a second that are due, whether the system keeps up or not
    passes: int = 1
    warmup: int = 10
    retries: int = 3
    timeout: float = 30.0  # seconds an answer may take
    backoff: float = 0.2  # seconds before the first retry, doubled each time
    give_up: int = 10  # topics that fail one after the other before the rest is not asked

    def __post_init__(self) -> None:
        for name, low in (("clients", 1), ("passes", 1), ("warmup", 0), ("retries", 0), ("give_up", 1)):
            if getattr(self, name) < low:
                raise ConventionError(f"{name} must be {low} or more, got {getattr(self, name)}")
        for name in ("rate", "timeout"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise ConventionError(f"{name} must be above 0, got {getattr(self, name):g}")


@dataclass
class Driven:
    """What came of it: the answers by topic, why some have none, and how long each had to wait, in seconds."""

    answers: dict[str, Ranking] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    elapsed: float = 0.0
    retries: int = 0
    late: int = 0  # open loop: sent after they were due, as all clients were busy
    gave_up: bool = False


def drive(
    system: System,
    queries: Sequence[Query],
    k: int,
    load: Load | None = None,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> Driven:
    """Ask the queries that the journal does not hold yet."""
    how = load or Load()
    system.timeout(how.timeout)
    known = journal.answers if journal else {}
    left = [query for query in queries if query.id not in known]
    driven = Driven(answers=dict(known))
    if system.batch:
        _in_one_go(system, left, k, driven, journal)
        return driven
    for query in left[: how.warmup]:
        start = time.perf_counter()
        try:
            system.search(query, k)
        except Busy:  # what is wrong shows when it counts; an engine that is down is not waited for ten times
            break
        except Exception:
            continue
        driven.warm.append(time.perf_counter() - start)
    _Loop(system, left, k, how, driven, journal, progress).run()
    return driven


def _in_one_go(system: System, left: Sequence[Query], k: int, driven: Driven, journal: Journal | None) -> None:
    start = time.perf_counter()
    try:
        found, why = (system.search_all(left, k) if left else {}), None
    except Broken as error:
        found, why = error.answers, str(error)
    except CranfieldError as error:
        found, why = {}, str(error)
    driven.elapsed = time.perf_counter() - start
    for query in left:
        if query.id in found or why is None:
            driven.answers[query.id] = found.get(query.id, [])
            if journal is not None:
                journal.write(query.id, driven.answers[query.id], None)
        else:
            driven.failed[query.id] = why


class _Loop:
    """Clients that take the next query until none is left."""

    def __init__(
        self,
        system: System,
        queries: Sequence[Query],
        k: int,
        load: Load,
        driven: Driven,
        journal: Journal | None,
        progress: Progress | None,
    ) -> None:
        self.system, self.k, self.load, self.driven = system, k, load, driven
        self.journal, self.progress = journal, progress
        self.waiting = deque((number, query) for number, query in enumerate([*queries] * load.passes))
        self.total = len(queries) * load.passes
        self.lock = threading.Lock()
        self.in_a_row = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        """Start the clients and wait for the last."""
        self.start = time.perf_counter()
        if self.load.clients == 1:
            self._client()
        else:
            threads = [threading.Thread(target=self._client, daemon=True) for _ in range(self.load.clients)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.driven.elapsed = time.perf_counter() - self.start
        if self.error is not None:
            raise self.error
        for _, query in [one for one in self.waiting if one[1].id not in self.driven.answers]:  # given up
            self.driven.failed.setdefault(query.id, f"not asked: {self.load.give_up} topics before it failed")

    def _client(self) -> None:
        try:
            while self.error is None and not self.driven.gave_up:
                try:
                    number, query = self.waiting.popleft()
                except IndexError:
                    return
                self._one(number, query)
        except BaseException as error:  # an interruption, or a mistake of ours: handed to the caller
            self.error = error

    def _one(self, number: int, query: Query) -> None:
        sent = time.perf_counter()
        if self.load.rate is not None:
            due = self.start + number / self.load.rate
            if sent < due:
                time.sleep(due - sent)
            else:
                self.driven.late += sent - due > 0.001
            sent = due  # the wait counts from here, however late the query could be sent
        try:
            hits = self._asked(query)
            wait = time.perf_counter() - sent
            _refuse_odd(hits)
        except Exception as error:  # one failing topic is no reason to stop
            self._failed(query, str(error) or type(error).__name__)
            return
        with self.lock:
            self.in_a_row = 0
            self.driven.waits.append(wait)
            new = query.id not in self.driven.answers
            if new:
                self.driven.answers[query.id] = hits
                self.driven.failed.pop(query.id, None)
        if new and self.journal is not None:
            self.journal.write(query.id, hits, wait)
        if self.progress is not None:
            self.progress(len(self.driven.waits), self.total)

    def _asked(self, query: Query) -> Ranking:
        """The answer, tried again while the system is busy."""
        pause = self.load.backoff
        for attempt in range(self.load.retries + 1):
            try:
                return self.system.search(query, self.k)
            except Busy as busy:
                if attempt == self.load.retries:
                    tries = f" ({attempt + 1} tries)" if attempt else ""
                    raise ConnectionError(f"{busy}{tries}") from busy
                with self.lock:
                    self.driven.retries += 1
                time.sleep(min(pause if busy.after is None else busy.after, self.load.timeout))
                pause *= 2
        raise AssertionError("a loop over at least one attempt ends above")

    def _failed(self, query: Query, why: str) -> None:
        with self.lock:
            if query.id not in self.driven.answers:
                self.driven.failed.setdefault(query.id, why)
            self.in_a_row += 1
            if self.in_a_row >= self.load.give_up:
                self.driven.gave_up = True


def _refuse_odd(hits: Ranking) -> None:
    """A score that is no number, or an id that no run can hold, would spoil the run at its end; here it costs one topic."""
    total = sum(map(itemgetter(1), hits))
    if total != total and any(score != score for _, score in hits):
        document = next(document for document, score in hits if score != score)
        raise DataError(f"document {document!r}: expected a number as its score, found nan")
    if SPACE.search("".join(map(itemgetter(0), hits))) or not all(map(itemgetter(0), hits)):
        odd = next(document for document, _ in hits if not document or SPACE.search(document))
        raise DataError(f"document {odd!r}: expected an id without white space, as runs and judgments hold no other")

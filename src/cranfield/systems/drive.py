"""Ask a system all topics: clients side by side, retries, time-outs, one failing topic no reason to stop.

What is measured is said in cost.py. Warm-up queries are asked first and timed apart, of topics that are not timed later
where there are enough: an engine that remembers its answers would look faster than it is. Every answer goes into the
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
from cranfield.parameters import refuse_below
from cranfield.systems.system import Broken, Busy, Refused, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cranfield.systems.journal import Journal
    from cranfield.systems.system import Query, Ranking, System

    Progress = Callable[[int, int | None], None]


DAY = 86_400  # seconds: the longest that an answer is waited for
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
    max_answer: float = 32.0  # megabytes that an answer over HTTP may have
    backoff: float = 0.2  # seconds before the first retry, doubled each time
    give_up: int = 10  # topics that fail one after the other before the rest is not asked

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
    """What came of it: the answers by topic, why some have none, and how long each had to wait, in seconds."""

    answers: dict[str, Ranking] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    warm_apart: bool = True  # the topics of the warm-up are other than those timed
    in_one_go: int = 0  # answers that came all together
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
    others: Sequence[Query] = (),
) -> Driven:
    """Ask the queries that the journal does not hold yet; `others` are not asked for, and good to warm up with."""
    driver = _Driver(
        system, k, load or Load(), journal, progress, Driven(answers=dict(journal.answers if journal else {}))
    )
    system.timeout(driver.load.timeout)
    system.most_bytes(int(min(driver.load.max_answer * 1e6, 2**62)))
    left = [query for query in queries if query.id not in driver.driven.answers]
    if system.batch:
        driver.in_one_go(left)
    else:
        driver.loop(driver.warm_up(left, others))
    return driver.driven


@dataclass
class _Driver:
    """Clients that take the next query until none is left, and what came of it so far."""

    system: System
    k: int
    load: Load
    journal: Journal | None
    progress: Progress | None
    driven: Driven
    lock: threading.Lock = field(default_factory=threading.Lock)
    in_a_row: int = 0  # failures
    reached: bool = False  # whether the system has ever taken a query
    error: BaseException | None = None

    def in_one_go(self, queries: Sequence[Query]) -> None:
        """Hand over all queries at once; one failure is that of all that have no answer."""
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
        """Ask a few, and give those that are left to be timed; what is wrong with a query shows when it counts.

        They are topics that are not asked for, or the first of those that are: their answers go into the run and their
        times do not count, as long as more are left. Of fewer topics the first are asked once more.
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
            start = time.perf_counter()
            try:
                hits = self._answer(query)
                wait = time.perf_counter() - start
                _refuse_odd(hits)
            except Unreachable:
                raise
            except Busy:  # an engine that is down is not waited for ten times
                break
            except Exception:
                continue
            self.driven.warm.append(wait)
            answers.append((query, hits))
        return answers

    def loop(self, queries: Sequence[Query]) -> None:
        """Start the clients and wait for the last."""
        waiting = deque(enumerate([*queries] * self.load.passes))
        total, start = len(waiting), time.perf_counter()

        def client() -> None:
            try:
                while waiting and self.error is None and not self.driven.gave_up:
                    try:
                        number, query = waiting.popleft()
                    except IndexError:  # another client was faster
                        return
                    self._one(query, None if self.load.rate is None else start + number / self.load.rate)
                    if self.progress is not None:
                        self.progress(len(self.driven.waits), total)
            except BaseException as error:  # an interruption, or a mistake of ours: handed to the caller
                self.error = error

        threads = [threading.Thread(target=client, daemon=True) for _ in range(self.load.clients)]
        if len(threads) == 1:
            client()
        else:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.driven.elapsed = time.perf_counter() - start
        if self.error is not None:
            raise self.error
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
            sent = due  # the wait counts from here, however late the query could be sent
        try:
            hits = self._patient(query)
            wait = time.perf_counter() - sent
            _refuse_odd(hits)
        except Unreachable:
            raise
        except Exception as error:  # one failing topic is no reason to stop
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
        """The answer; who refuses the first connection of all is not waited for."""
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
        """The answer, tried again while the system is busy."""
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
                pause = self.load.backoff * 2**failures if busy.after is None else busy.after
                time.sleep(min(pause, self.load.timeout))
                failures += 1


def _refuse_odd(hits: Ranking) -> None:
    """A score that is no number, or an id that no run can hold, would spoil the run at its end; here it costs one topic."""
    total = sum(map(itemgetter(1), hits))
    if total != total and any(score != score for _, score in hits):
        document = next(document for document, score in hits if score != score)
        raise DataError(f"document {document!r}: expected a number as its score, found nan")
    if SPACE.search("".join(map(itemgetter(0), hits))) or not all(map(itemgetter(0), hits)):
        odd = next(document for document, _ in hits if not document or SPACE.search(document))
        raise DataError(f"document {odd!r}: expected an id without white space, as runs and judgments hold no other")

"""The way into a log for many at once: one thread writes, one sync serves all who wait, and nobody waits without end.

Whoever adds lines gets a future that is done when they are on disk. While a sync runs the next group gathers. Where too much
waits, or the oldest has waited too long, more is refused rather than queued.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cranfield.errors import UnavailableError
from cranfield.formats.streams import reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cranfield.online.log import Log

MOST_WAITING = 16_000_000  # bytes
LONGEST_WAIT = 2.0  # seconds that the oldest may have waited when another comes
REMEMBERED = 200_000  # events whose ids are known, the latest


class Told(NamedTuple):
    """How an intake is doing: what waits, when the last sync was (seconds since 1970), and what stands in the way."""

    waiting: int  # events
    waiting_bytes: int
    written: int  # events since it began
    last_sync: float | None
    problem: str | None


@dataclass(eq=False)
class _Entry:
    """Lines of one caller, or the wish that the segment end."""

    lines: Sequence[bytes]
    size: int
    since: float
    sealing: bool = False
    done: Future[None] = field(default_factory=Future)


class Intake:
    """Adds lines to a log from any thread."""

    def __init__(
        self,
        log: Log,
        *,
        most: int = MOST_WAITING,
        longest: float = LONGEST_WAIT,
        say: Callable[[str], object] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.log, self.most, self.longest = log, most, longest
        self.tell: Callable[[Callable[[], object]], object] = lambda telling: (
            telling()
        )  # in which thread futures are done
        self._say, self._clock, self._now = say, clock, now
        self._changed = threading.Condition()
        self._queue: list[_Entry] = []
        self._held: list[_Entry] = []  # being written
        self._events = self._bytes = 0  # of both
        self._closing = False
        self._written = 0
        self._last: float | None = None
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._run, name="intake", daemon=True)
        self._thread.start()

    def add(self, lines: Sequence[bytes]) -> Future[None]:
        """Lines, each with its end, that are on disk when the future is done; UnavailableError where too much waits already."""
        size = sum(map(len, lines))
        with self._changed:
            now = self._clock()
            if self._closing:
                raise UnavailableError("the service is stopping")
            oldest = next(iter(self._held or self._queue), None)
            if oldest is not None and (self._bytes + size > self.most or now - oldest.since > self.longest):
                raise UnavailableError(f"{self._events:,} events wait for the disk already; none of these is kept")
            entry = _Entry(lines, size, now)
            self._queue.append(entry)
            self._events, self._bytes = self._events + len(lines), self._bytes + size
            self._changed.notify()
        return entry.done

    def seal(self) -> Future[None]:
        """End the segment after what waits, so that it can be packed."""
        with self._changed:
            entry = _Entry((), 0, self._clock(), sealing=True)
            if self._closing:
                entry.done.set_result(None)  # it ends anyway
            else:
                self._queue.append(entry)
                self._changed.notify()
        return entry.done

    def told(self) -> Told:
        """How it is doing."""
        with self._changed:
            return Told(self._events, self._bytes, self._written, self._last, self._problem)

    def close(self) -> None:
        """Write what waits, end the segment, and take nothing more."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                taken, self._queue = self._queue, []
                self._held = [entry for entry in taken if entry.done.set_running_or_notify_cancel()]
                ending = self._closing and not taken
            if ending:
                self.log.close()
                return
            failure = self._write(self._held)
            with self._changed:
                written, self._held = self._held, []
                self._events -= sum(len(entry.lines) for entry in taken)
                self._bytes -= sum(entry.size for entry in taken)
                self._note(failure, sum(len(entry.lines) for entry in written))
            self.tell(partial(_settle, written, failure))

    def _write(self, group: list[_Entry]) -> Exception | None:
        """Write and sync a group; what goes wrong is for all of it to hear, and the thread goes on."""
        try:
            self.log.append_lines([line for entry in group for line in entry.lines])
            if any(entry.sealing for entry in group):
                self.log.seal()
        except Exception as error:
            return error
        return None

    def _note(self, failure: Exception | None, events: int) -> None:
        """Keep how it went; whoever runs the service hears when it begins to fail and when it works again."""
        if not events:
            return
        before = self._problem
        if failure is None:
            self._written, self._last, self._problem = self._written + events, self._now(), None
        else:
            cause = failure.__cause__
            self._problem = reason(cause) if isinstance(cause, OSError) else str(failure)
        if before is None and failure is not None:
            self._say(f"events cannot be written: {failure}")
        elif before is not None and failure is None:
            self._say("events are written again")


def _settle(group: Sequence[_Entry], failure: Exception | None) -> None:
    """Tell all of a group how it went."""
    for entry in group:
        if failure is None:
            entry.done.set_result(None)
        else:
            entry.done.set_exception(failure)


class Recent:
    """The ids of events that were kept lately, each with a mark of its content, to find an id that is used for two events."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._marks: OrderedDict[str, int] = OrderedDict()

    def differs(self, event_id: str, line: bytes) -> bool:
        """Whether an id was that of another event."""
        mark = self._marks.get(event_id)
        return mark is not None and mark != hash(line)

    def keep(self, event_id: str, line: bytes) -> None:
        """Remember an event; the oldest are forgotten."""
        self._marks[event_id] = hash(line)
        if len(self._marks) > self._most:
            self._marks.popitem(last=False)

"""How a service writes its event log: group commit of events, and compaction of segments into Parquet.

Group commit: one thread writes, and one sync serves all waiting requests. A caller gets a future that is done when its
lines are on disk; during a sync the next group gathers. If too many lines wait, or the oldest have waited too
long, new lines are refused.

Compaction runs in another process with low priority: `python -m cranfield.experiments.log_writer LOG` compacts once. It
finishes even if the service is killed; two such processes wait for each other.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cranfield.base.errors import CranfieldError, UnavailableError
from cranfield.experiments.log import EventLog
from cranfield.experiments.log_files import is_open_segment, segments_in
from cranfield.formats.streams import reason

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence


MOST_WAITING = 16_000_000  # bytes
LONGEST_WAIT = 2.0  # seconds that the oldest lines may have waited when more come
REMEMBERED = 200_000  # recent events whose ids are remembered


class IntakeStatus(NamedTuple):
    """The state of group commit: waiting events, the time of the last sync (seconds since 1970), and the current problem."""

    waiting: int  # events
    waiting_bytes: int
    events_written: int  # events since the start
    last_sync: float | None
    problem: str | None


@dataclass(eq=False)
class _PendingLines:
    """The lines of one caller, or the request to seal the segment."""

    lines: Sequence[bytes]
    size: int
    since: float
    sealing: bool = False
    done: Future[None] = field(default_factory=Future)


class GroupCommit:
    """Appends lines to an event log from any thread; one sync serves all waiting callers."""

    def __init__(
        self,
        log: EventLog,
        *,
        most: int = MOST_WAITING,
        longest: float = LONGEST_WAIT,
        say: Callable[[str], object] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.log, self.most, self.longest = log, most, longest
        # runs a call in the thread that shall finish the futures
        self.run_callbacks: Callable[[Callable[[], object]], object] = lambda call: call()
        self._say, self._clock = say, clock
        self._changed = threading.Condition()
        self._queue: list[_PendingLines] = []
        self._held: list[_PendingLines] = []  # being written
        self._events = self._bytes = 0  # of both
        self._closing = False
        self._events_written = 0
        self._last: float | None = None
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._run, name="intake", daemon=True)
        self._thread.start()

    def add(self, lines: Sequence[bytes]) -> Future[None]:
        """Append lines, each with its end; the future is done when they are on disk. UnavailableError if too much waits."""
        size = sum(map(len, lines))
        with self._changed:
            now = self._clock()
            if self._closing:
                raise UnavailableError("the service is stopping")
            oldest = next(iter(self._held or self._queue), None)
            if oldest is not None and (self._bytes + size > self.most or now - oldest.since > self.longest):
                raise UnavailableError(f"{self._events:,} events wait for the disk already; none of these is stored")
            entry = _PendingLines(lines, size, now)
            self._queue.append(entry)
            self._events, self._bytes = self._events + len(lines), self._bytes + size
            self._changed.notify()
        return entry.done

    def seal(self) -> Future[None]:
        """Seal the segment after the waiting lines, so that it can be compacted."""
        with self._changed:
            entry = _PendingLines((), 0, self._clock(), sealing=True)
            if self._closing:
                entry.done.set_result(None)  # it ends anyway
            else:
                self._queue.append(entry)
                self._changed.notify()
        return entry.done

    def status(self) -> IntakeStatus:
        """The current state."""
        with self._changed:
            return IntakeStatus(self._events, self._bytes, self._events_written, self._last, self._problem)

    def close(self) -> None:
        """Write the waiting lines, seal the segment, and accept no more."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                group, self._queue = self._queue, []
                self._held = [entry for entry in group if entry.done.set_running_or_notify_cancel()]
                ending = self._closing and not group
            if ending:
                self.log.close()
                return
            failure = self._write(self._held)
            with self._changed:
                finished, self._held = self._held, []
                self._events -= sum(len(entry.lines) for entry in group)
                self._bytes -= sum(entry.size for entry in group)
                self._note(failure, sum(len(entry.lines) for entry in finished))
            self.run_callbacks(partial(_settle, finished, failure))

    def _write(self, group: list[_PendingLines]) -> Exception | None:
        """Write and sync a group; an error is returned for all its callers, and the thread goes on."""
        try:
            self.log.append_lines([line for entry in group for line in entry.lines])
            if any(entry.sealing for entry in group):
                self.log.seal()
        except Exception as error:
            return error
        return None

    def _note(self, failure: Exception | None, events: int) -> None:
        """Record the result; the operator is told when writing begins to fail and when it works again."""
        if not events:
            return
        before = self._problem
        if failure is None:
            self._events_written, self._last, self._problem = self._events_written + events, time.time(), None
        else:
            cause = failure.__cause__
            self._problem = reason(cause) if isinstance(cause, OSError) else str(failure)
        if before is None and failure is not None:
            self._say(f"events cannot be written: {failure}")
        elif before is not None and failure is None:
            self._say("events are written again")


def _settle(group: Sequence[_PendingLines], failure: Exception | None) -> None:
    """Finish the futures of a group."""
    for entry in group:
        finish_future(entry.done, failure)


def finish_future(done: Future[None] | asyncio.Future[None], failure: BaseException | None) -> None:
    """Finish a future, with the error if there is one."""
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)


class RecentEventIds:
    """The ids of recent events with a hash of their content, to find an id that is used for two events."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._marks: OrderedDict[str, int] = OrderedDict()

    def differs(self, event_id: str, line: bytes) -> bool:
        """Whether the id belongs to another event."""
        mark = self._marks.get(event_id)
        return mark is not None and mark != hash(line)

    def keep(self, event_id: str, line: bytes) -> None:
        """Remember an event, and forget the oldest beyond the limit."""
        self._marks[event_id] = hash(line)
        if len(self._marks) > self._most:
            self._marks.popitem(last=False)


NICE = 10
LOOK = 5.0  # seconds between checks for full segments


class LastCompaction(NamedTuple):
    """The time of the last compaction (seconds since 1970), and its problem if it failed."""

    at: float
    problem: str | None


class Compactor:
    """Compacts a log at intervals; at once if segments are full, or if an earlier process left some."""

    def __init__(self, intake: GroupCommit, every: float, say: Callable[[str], object]) -> None:
        self.intake, self.every = intake, every
        self.last: LastCompaction | None = None
        self.restarts = 0  # after an error of this process, such as too many open files
        self._say = say
        self._stopping = threading.Event()
        self._child: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, name="packer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop compacting, and terminate a running compaction; the next one does the rest."""
        self._stopping.set()
        if self._child is not None:
            self._child.terminate()
        self._thread.join()

    def _run(self) -> None:
        """Compact until closed; after any error, report it and go on."""
        while not self._stopping.is_set():
            try:
                self._watch()
            except Exception as error:
                self.restarts += 1
                self._note(reason(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}")
                self._stopping.wait(min(self.every, LOOK))

    def _watch(self) -> None:
        self._pack()
        due = time.monotonic() + self.every
        while not self._stopping.wait(min(self.every, LOOK)):
            is_due = time.monotonic() >= due
            if is_due:
                due = time.monotonic() + self.every
                with suppress(Exception, CancelledError):  # callers that append events get this error
                    self.intake.seal().result()
            if is_due or self.last is None or self.last.problem is None:
                self._pack()

    def _pack(self) -> None:
        folder = self.intake.log.folder
        if self._stopping.is_set() or not sealed_segments(self.intake.log):
            return
        command = [sys.executable, "-P", "-m", "cranfield.experiments.log_writer", folder]
        self._child = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        _, output = self._child.communicate()
        if self._stopping.is_set():
            return
        errors = output.strip().splitlines()
        problem = (errors[-1] if errors else f"exit code {self._child.returncode}") if self._child.returncode else None
        self._note(problem)

    def _note(self, problem: str | None) -> None:
        """Record the result of a compaction, and report a new problem once."""
        if problem and (self.last is None or self.last.problem != problem):
            self._say(f"segments cannot be compacted, will try again: {problem}")
        self.last = LastCompaction(time.time(), problem)


def sealed_segments(log: EventLog) -> list[str]:
    """The segments that no process writes to."""
    paths = []
    for path in segments_in(log.segments):
        with suppress(FileNotFoundError):  # compacted meanwhile
            if not is_open_segment(path):
                paths.append(path)
    return paths


def main(folder: str) -> int:
    """Compact once; exit code 3 and a sentence if that fails."""
    os.nice(NICE)
    try:
        with EventLog(folder) as log:
            log.pack()
    except CranfieldError as error:
        print(error, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

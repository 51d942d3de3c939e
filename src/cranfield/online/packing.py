"""Segments into Parquet beside a service that goes on: in a process of its own, which yields to it.

`python -m cranfield.online.packing LOG` packs once. A service that is killed leaves it to finish; two wait for each other.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from cranfield.errors import CranfieldError
from cranfield.formats.streams import reason
from cranfield.online.log import Log
from cranfield.online.segments import is_written_to, segments_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.online.intake import Intake

NICE = 10
LOOK = 5.0  # seconds between looks for segments that are full


class LastPacking(NamedTuple):
    """When segments were last packed (seconds since 1970), and what went wrong, if anything."""

    at: float
    problem: str | None


class Packer:
    """Packs the segments of a log every so many seconds; at once those that are full, or that an earlier process has left."""

    def __init__(
        self,
        intake: Intake,
        every: float,
        say: Callable[[str], object] = lambda _: None,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.intake, self.every = intake, every
        self.last: LastPacking | None = None
        self.restarts = 0  # how often it began again after an error of this process, such as too many open files
        self._say, self._now, self._clock = say, now, clock
        self._stopping = threading.Event()
        self._child: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, name="packer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; a packing that runs is ended, and what it has not done is done the next time."""
        self._stopping.set()
        if self._child is not None:
            self._child.terminate()
        self._thread.join()

    def _run(self) -> None:
        """Pack until it is closed, and begin again after any error: nobody else would."""
        while not self._stopping.is_set():
            try:
                self._watch()
            except Exception as error:
                self.restarts += 1
                self._note(reason(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}")
                self._stopping.wait(min(self.every, LOOK))

    def _watch(self) -> None:
        self._pack()
        due = self._clock() + self.every
        while not self._stopping.wait(min(self.every, LOOK)):
            is_due = self._clock() >= due
            if is_due:
                due = self._clock() + self.every
                with suppress(Exception, CancelledError):  # whoever adds events hears why a segment cannot be ended
                    self.intake.seal().result()
            if is_due or self.last is None or self.last.problem is None:
                self._pack()

    def _pack(self) -> None:
        folder = self.intake.log.folder
        if self._stopping.is_set() or not left(self.intake.log):
            return
        command = [sys.executable, "-P", "-m", "cranfield.online.packing", folder]
        self._child = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        _, said = self._child.communicate()
        if self._stopping.is_set():
            return
        told = said.strip().splitlines()
        problem = (told[-1] if told else f"exit code {self._child.returncode}") if self._child.returncode else None
        self._note(problem)

    def _note(self, problem: str | None) -> None:
        """Keep how a packing went, and say a new problem once."""
        if problem and (self.last is None or self.last.problem != problem):
            self._say(f"segments cannot be packed, and are tried again: {problem}")
        self.last = LastPacking(self._now(), problem)


def left(log: Log) -> list[str]:
    """The segments that nobody writes to."""
    found = []
    for path in segments_in(log.segments):
        with suppress(FileNotFoundError):  # packed meanwhile
            if not is_written_to(path):
                found.append(path)
    return found


def main(folder: str) -> int:
    """Pack once; 3 and a sentence where that fails."""
    os.nice(NICE)
    try:
        with Log(folder) as log:
            log.pack()
    except CranfieldError as error:
        print(error, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

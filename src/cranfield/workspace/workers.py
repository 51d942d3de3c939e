"""Two processes that work questions out, started when there is something to do and ended when there is nothing.

They are kept between questions, as to start one takes longer than most questions do. A process that dies takes one
question with it; the next question gets a new one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from cranfield.errors import DataError
from cranfield.formats.streams import reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

AT_ONCE = 2
IDLE = 300.0  # seconds
QUIET = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Task(NamedTuple):
    """What a process is told, and who hears what it says: of progress, then once of the end."""

    words: dict[str, Any]
    tell: Callable[[dict[str, Any]], None]


class Workers:
    """At most two questions at a time; the others wait in order."""

    def __init__(self, at_once: int = AT_ONCE, idle: float = IDLE) -> None:
        self.at_once = at_once
        self.idle = idle
        self._tasks: deque[Task] = deque()
        self._turn = threading.Condition()
        self._threads: set[threading.Thread] = set()
        self._processes: set[subprocess.Popen[str]] = set()
        self._free = 0  # threads that wait for a task
        self._closed = False

    def put(self, task: Task) -> None:
        """Have a question worked out."""
        with self._turn:
            if self._closed:
                raise DataError("the workbench is being closed; ask again when it is back")
            self._tasks.append(task)
            if self._free < len(self._tasks) and len(self._threads) < self.at_once:
                thread = threading.Thread(target=self._loop, name="cranfield-worker", daemon=True)
                self._threads.add(thread)
                thread.start()
            self._turn.notify()

    def pids(self) -> list[int]:
        """The processes that are up."""
        with self._turn:
            return [process.pid for process in self._processes if process.poll() is None]

    def close(self) -> None:
        """End the processes, whatever they are at."""
        with self._turn:
            self._closed = True
            threads, processes = list(self._threads), list(self._processes)
            self._turn.notify_all()
        for process in processes:
            process.kill()
        for thread in threads:
            thread.join(10)

    def _loop(self) -> None:
        process: subprocess.Popen[str] | None = None
        try:
            while (task := self._next()) is not None:
                try:
                    if process is None or process.poll() is not None:
                        process = self._started(process)
                    end = _done(process, task)
                except OSError as error:  # whoever asked would wait for ever
                    end = {"failed": f"the work could not be started: {reason(error)}"}
                task.tell(end)
        finally:
            self._ended(process)

    def _next(self) -> Task | None:
        """The next task; None where there is none for long, and the thread is to end."""
        with self._turn:
            self._free += 1
            self._turn.wait_for(lambda: self._tasks or self._closed, self.idle)
            self._free -= 1
            if self._tasks and not self._closed:
                return self._tasks.popleft()
            self._threads.discard(threading.current_thread())
            return None

    def _started(self, before: subprocess.Popen[str] | None) -> subprocess.Popen[str]:
        self._ended(before)
        quiet = {name: os.environ.get(name, "1") for name in QUIET}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cranfield.workspace.working"],  # nothing is imported from where one stands
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, **quiet},
        )
        with self._turn:
            self._processes.add(process)
            if self._closed:
                process.kill()
        return process

    def _ended(self, process: subprocess.Popen[str] | None) -> None:
        if process is None:
            return
        with self._turn:
            self._processes.discard(process)
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # words that it never read
                    pass
        process.wait()


def _done(process: subprocess.Popen[str], task: Task) -> dict[str, Any]:
    """Hand a question over and pass on what is said, up to the end: an answer, or the death of the process."""
    tell_it, hear = process.stdin, process.stdout
    assert tell_it is not None
    assert hear is not None
    try:
        tell_it.write(json.dumps(task.words) + "\n")
        tell_it.flush()
    except OSError:
        return {"failed": _death(process)}
    for line in _lines(hear):
        words: dict[str, Any] = json.loads(line)
        if {"ready", "failed", "broken"} & words.keys():
            return words
        task.tell(words)
    return {"failed": _death(process)}


def _lines(hear: IO[str]) -> Iterator[str]:
    while (line := hear.readline()).endswith("\n"):  # half a line is what a killed process leaves
        yield line


def _death(process: subprocess.Popen[str]) -> str:
    code = process.wait()
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    why = "; there may be too little memory for it" if code == -signal.SIGKILL else ""
    return f"the process that worked it out {how}{why}; ask again to try again"

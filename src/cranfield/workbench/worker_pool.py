"""A pool of worker processes that answer questions and freeze large versions, and the program that each of them runs.

Processes start when there is a question and end after five idle minutes: starting one takes longer than most questions. A
process that dies fails one question; the next question gets a new process.

A worker reads one JSON line per question from its standard input. It replies with JSON lines: progress, and at the end that
the result is on disk, or why there is none. When its parent ends, the pipe closes and the worker ends as well. Whatever it
prints, and the trace of an error, goes to the standard error of its parent.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from contextlib import closing, suppress
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import CranfieldError, DataError, DataWarning
from cranfield.base.notifications import notes_to, progress_to
from cranfield.base.parameters import masked
from cranfield.formats.streams import reason
from cranfield.inputs.disk_caches import CachedResult, RenderedResult, ResultCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.judging.assignments import Version
    from cranfield.judging.policies import DecidedGrades


FREEZE = "freeze"  # the task that is no question
AT_ONCE = 2  # processes
IDLE = 300.0  # seconds before an idle process ends
QUIET = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerTask(NamedTuple):
    """A question for a worker; `tell` gets its messages: progress several times, then the end once."""

    message: dict[str, Any]
    tell: Callable[[dict[str, Any]], None]


class WorkerPool:
    """Answers a fixed number of questions at a time; the others wait in order."""

    def __init__(self, at_once: int = AT_ONCE, idle: float = IDLE) -> None:
        self.at_once = at_once
        self.idle = idle
        self._tasks: deque[WorkerTask] = deque()
        self._turn = threading.Condition()
        self._threads: set[threading.Thread] = set()
        self._processes: set[subprocess.Popen[str]] = set()
        self._free = 0  # threads that wait for a task
        self._busy: dict[str, subprocess.Popen[str]] = {}  # by the id of the task
        self._closed = False

    def put(self, task: WorkerTask) -> None:
        """Queue a question."""
        with self._turn:
            if self._closed:
                raise DataError("the workbench is stopping; try again when it runs again")
            self._tasks.append(task)
            if self._free < len(self._tasks) and len(self._threads) < self.at_once:
                thread = threading.Thread(target=self._loop, name="cranfield-worker", daemon=True)
                self._threads.add(thread)
                thread.start()
            self._turn.notify()

    def cancel(self, id: str) -> None:
        """End the work on a question: it leaves the queue, or its process is killed."""
        with self._turn:
            waiting = [task for task in self._tasks if task.message["id"] == id]
            self._tasks = deque(task for task in self._tasks if task.message["id"] != id)
            process = self._busy.get(id)
        for task in waiting:
            task.tell({"failed": "cancelled"})
        if process is not None:
            process.kill()

    def pids(self) -> list[int]:
        """The ids of the running processes."""
        with self._turn:
            return [process.pid for process in self._processes if process.poll() is None]

    def close(self) -> None:
        """End the processes, whatever they are doing."""
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
                        process = self._restart(process)
                    self._busy[str(task.message["id"])] = process
                    end = _run(process, task)
                except OSError as error:  # without an end, the caller would wait for ever
                    end = {"failed": f"the work could not be started: {reason(error)}"}
                self._busy.pop(str(task.message["id"]), None)
                task.tell(end)
        finally:
            self._end(process)

    def _next(self) -> WorkerTask | None:
        """The next task; None if none came for long: the thread ends."""
        with self._turn:
            self._free += 1
            self._turn.wait_for(lambda: self._tasks or self._closed, self.idle)
            self._free -= 1
            if self._tasks and not self._closed:
                return self._tasks.popleft()
            self._threads.discard(threading.current_thread())
            return None

    def _restart(self, before: subprocess.Popen[str] | None) -> subprocess.Popen[str]:
        self._end(before)
        quiet = {name: os.environ.get(name, "1") for name in QUIET}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __spec__.name],  # -P: nothing is imported from the current folder
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

    def _end(self, process: subprocess.Popen[str] | None) -> None:
        if process is None:
            return
        with self._turn:
            self._processes.discard(process)
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # a message that the process never read
                    pipe.close()
        process.wait()


def _run(process: subprocess.Popen[str], task: WorkerTask) -> dict[str, Any]:
    """Send a question to a process and pass its messages on; return its last message, or how the process ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(task.message) + "\n")
        process.stdin.flush()
    except OSError:
        return {"failed": _death(process)}
    while (line := process.stdout.readline()).endswith("\n"):  # a killed process leaves half a line
        message: dict[str, Any] = json.loads(line)
        if {"ready", "failed", "broken"} & message.keys():
            return message
        task.tell(message)
    return {"failed": _death(process)}


def _death(process: subprocess.Popen[str]) -> str:
    code = process.wait()
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    why = "; there may be too little memory for it" if code == -signal.SIGKILL else ""
    return f"the process that computed the answer {how}{why}; load the page again to try again"


# the program of a worker

OFTEN = 0.1  # seconds between two messages on progress
TRAINING = "train"  # the verb of a task that trains models; every other one asks a question
KINDNESS = 5  # niceness: requests of assessors come first


def compute(
    folder: str, db: str | None, verb: str, parameters: dict[str, Any], tell: Callable[..., None]
) -> CachedResult:
    """The answer to a question, with the notifications and warnings of the computation as notes."""
    from cranfield.inputs.workspace import open_bench
    from cranfield.workbench.question import QUESTIONS

    start = time.perf_counter()
    messages: list[str] = []
    bench = open_bench(folder, db)
    try:
        with warnings.catch_warnings(record=True) as warned, notes_to(messages.append), progress_to(tell):
            warnings.simplefilter("always")
            question = QUESTIONS[verb](**parameters)
            place = question.place(bench)
            answer = question.run(bench, tell)
            messages += [str(each.message) for each in warned if issubclass(each.category, DataWarning)]
            notes = [masked(note).replace(f"{bench.folder}/", "") for note in (*messages, *answer.notes())]
            result = RenderedResult(
                question.json(answer), question.to_csv(answer), question.html(bench, answer), list(dict.fromkeys(notes))
            )
        return CachedResult(verb, result, place, time.time(), time.perf_counter() - start)
    finally:
        bench.close()


def freeze_version(folder: str, db: str | None, parameters: dict[str, Any]) -> dict[str, Any]:
    """Freeze the current labels of a workspace."""
    from cranfield.inputs.workspace import open_bench
    from cranfield.judging.versions import freeze

    bench = open_bench(folder, db)
    try:
        return frozen_values(*freeze(bench.log, **parameters))
    finally:
        bench.close()


def frozen_values(version: Version, decided: DecidedGrades) -> dict[str, Any]:
    """A new version as plain values, with the notes on its grades."""
    values = {name: getattr(version, name) for name in ("name", "hash", "documents")}
    return {**values, "notes": decided.notes()}


def train(folder: str, db: str | None, name: str, topics: list[str] | None, tell: Callable[..., None]) -> None:
    """Train the models of a round's topics; documents are indexed first if that was not done."""
    from cranfield.inputs.workspace import open_bench
    from cranfield.judging.adaptive_choice import train_models

    with closing(open_bench(folder, db)) as bench:
        texts = bench.features(tell)
        if texts is None:
            raise DataError("there are no documents to learn from")
        train_models(bench.log, name, texts, topics, tell)


def work(task: dict[str, Any], reply: Callable[[dict[str, Any]], None]) -> None:
    """Do one task: reply that a result is stored, what was frozen, or why it failed."""
    last = 0.0

    def tell(done: int, total: int | None) -> None:
        nonlocal last
        if time.monotonic() - last >= OFTEN:
            last = time.monotonic()
            reply({"done": done, "total": total})

    values: dict[str, Any] = {}
    try:
        if task["verb"] == FREEZE:
            values = freeze_version(task["folder"], task["db"], task["parameters"])
        elif task["verb"] == TRAINING:
            train(task["folder"], task["db"], task["round"], task["topics"], tell)
        else:
            cached = compute(task["folder"], task["db"], task["verb"], task["parameters"], tell)
            ResultCache(task["results"], task["room"]).write(task["question"], cached)
    except CranfieldError as error:
        reply({"failed": masked(str(error)).replace(f"{task['folder']}/", "")})
    except MemoryError:
        reply({"failed": "there is not enough memory for this; ask for fewer runs"})
    except Exception:
        print(f"job {task['id']} ({task['verb']}): unexpected", file=sys.stderr)
        traceback.print_exc()
        sys.stderr.flush()
        reply({"broken": True})
    else:
        reply({"ready": True, "values": values})


def _listen(source: IO[str], tasks: SimpleQueue[dict[str, Any]]) -> None:
    """Queue the tasks from standard input; end the process when the input ends."""
    try:
        for line in source:
            tasks.put(json.loads(line))
    finally:
        os._exit(0)


def main() -> None:
    """Answer questions until standard input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # printed text goes to standard error; only replies go to the parent
    gc.set_threshold(100_000, 20, 20)  # as for commands: the objects of a question live until its end
    if hasattr(os, "nice"):
        os.nice(KINDNESS)
    tasks: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin, tasks), daemon=True).start()

    def reply(message: dict[str, Any]) -> None:
        try:
            out.write(json.dumps(message) + "\n")
            out.flush()
        except OSError:  # the parent has ended
            os._exit(0)

    while True:
        task = tasks.get()
        reply({"begun": task["id"]})
        work(task, reply)


if __name__ == "__main__":
    main()

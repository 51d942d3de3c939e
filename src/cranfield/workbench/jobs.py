"""Questions to a workspace: answered at once from the cache, or computed by a worker process while the page waits.

A question is a verb, its parameters, and the hashes of everything it depends on except new labels. Its result is cached under
the hash of the question (`workbench.disk_caches`) with the place of the log for which it was computed. Newer labels keep
nobody waiting: the page gets the old result and the number of newer labels. The result is computed again on request, or in
the background if it is older than ten minutes.

A question that takes longer than 300 ms is a job: a row in the table says which process works on it. The row of a process
that has ended does not count; the next request starts the question again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from cranfield.base.errors import CranfieldError, DataError
from cranfield.inputs.disk_caches import ROOM, CachedResult, RenderedResult, ResultCache
from cranfield.store.jobs import find_job, write_job
from cranfield.workbench.question import QUESTIONS, WorkbenchQuestion
from cranfield.workbench.worker_pool import AT_ONCE, FREEZE, WorkerPool, WorkerTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.inputs.workspace import Bench

SHAPE = 2  # version of the format of cached results
PATIENCE = 0.3  # seconds that a page waits before a question becomes a job
OLD = 600.0  # seconds after which a result without the newest labels is computed again in the background
RETRY_AFTER = 10.0  # seconds for which a failure is reported before the question is tried again
NOTE_EVERY = 2.0  # seconds between two updates of a job's row
ROWS_LAST = 7 * 86_400.0  # seconds
HEAVY = 64 << 20  # bytes of runs that are hashed in the background


@dataclass(frozen=True)
class Running:
    """A question that is being computed: progress (0 to 1, None if unknown), activity, and since when."""

    id: str
    progress: float | None
    activity: str
    since: str


@dataclass(frozen=True)
class Ready:
    """A result: the place of the log it was computed for, the number of newer labels, its cost and its time.

    `now` is the place of the newest event: `refresh=now` asks for a result that includes it. `again` is the job that
    computes the result again, if there is one.
    """

    answer: RenderedResult
    place: int
    newer: int
    seconds: float
    created: str
    now: int = 0
    again: Running | None = None


@dataclass(frozen=True)
class Failed:
    """A question that failed, and why; the next request tries again."""

    id: str
    why: str


State: TypeAlias = "Ready | Running | Failed"


@dataclass(eq=False)
class _Job:
    """A question that is queued or being computed."""

    id: str
    question: str  # its hash
    since: float
    asked: WorkbenchQuestion | None  # None: runs are hashed
    progress: float | None = None
    begun: bool = False  # a worker has started
    why: str | None = None
    cancelled: str = ""  # by whom
    noted: float = 0.0  # time of the last update of its row; 0: it has no row
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def activity(self) -> str:
        return "reading runs for the first time" if self.asked is None else self.asked.activity

    def running(self) -> Running:
        activity = self.activity if self.begun else "waiting for its turn"
        return Running(self.id, self.progress, activity, timestamp(self.since))


class Jobs:
    """Answers the questions that one server process asks about one workspace."""

    def __init__(
        self,
        bench: Bench,
        *,
        clock: Callable[[], float] = time.time,
        room: int = ROOM,
        at_once: int = AT_ONCE,
        patience: float = PATIENCE,
        workers: WorkerPool | None = None,
    ) -> None:
        self.bench = bench
        self.questions = QUESTIONS
        self.questions.load_installed()  # before threads need them
        self.clock = clock
        self.patience = patience
        self.workers = workers or WorkerPool(at_once)
        self.results = ResultCache(os.path.join(bench.state, "results"), room)
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._failed: dict[str, tuple[_Job, float]] = {}

    def close(self) -> None:
        """End the workers; unfinished questions start again with the next request."""
        self.workers.close()

    def ask(self, verb: str, /, *, refresh: bool | int = False, **parameters: Any) -> State:
        """The answer to a question, or its progress; CranfieldError if the parameters are wrong.

        Parameters are texts of a query, or lists of them. With `refresh=True` the answer includes all labels up to now;
        with a place of the log, at least those up to that place, so that a page can repeat the request until it is ready.
        """
        question = self.questions.look_up(verb)(**parameters)
        question.refuse(self.bench)
        if (hashing := self._hash_runs(question)) is not None:
            return hashing
        key = self._key(question)
        with self._lock:
            job = self._jobs.get(key)
        cached = self.results.read(key)
        if cached is not None:
            ready, too_old = self._ready(question, key, cached, job, refresh)
            if not too_old:
                return ready
        if job is None:
            if (state := self._state_elsewhere(key, refresh)) is not None:
                return state
            job = self._begin(question, key)
        return self._wait(job, question)

    def look(self, verb: str, /, **parameters: Any) -> Ready | None:
        """The cached answer, however old; None if there is none. Computes nothing."""
        question = self.questions.look_up(verb)(**parameters)
        if self.bench.hashes.unknown([run.path for run in question.files(self.bench)]) >= HEAVY:
            return None
        cached = self.results.read(self._key(question))
        return None if cached is None else self._as_ready(question, cached)

    def freeze(self, **parameters: str) -> dict[str, Any]:
        """Freeze a version in a worker process and wait for it; requests of assessors share no process with it."""
        id = f"{FREEZE} {parameters['name']}"
        task = {
            "id": id,
            "folder": self.bench.folder,
            "db": self.bench.location,
            "verb": FREEZE,
            "parameters": parameters,
        }
        ends: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.workers.put(WorkerTask(task, ends.put))
        while not {"ready", "failed", "broken"} & (message := ends.get()).keys():
            pass
        if "values" not in message:
            raise DataError(
                message.get("failed") or f"an unexpected error occurred; the server's log describes it under {id}"
            )
        values: dict[str, Any] = message["values"]
        return values

    def _key(self, question: WorkbenchQuestion) -> str:
        """The hash of a question: questions with the same hash have the same answer, except for new labels."""
        import cranfield

        facts = [SHAPE, cranfield.__version__, question.name, question.values, question.depends(self.bench)]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def _as_ready(self, question: WorkbenchQuestion, cached: CachedResult, again: Running | None = None) -> Ready:
        """A cached result with the number of labels that came since."""
        newer, now = self._since(question, cached)
        return Ready(cached.answer, cached.place, newer, cached.seconds, timestamp(cached.created), now, again)

    def _ready(
        self, question: WorkbenchQuestion, key: str, cached: CachedResult, job: _Job | None, refresh: bool | int
    ) -> tuple[Ready, bool]:
        """The cached answer, and whether it is too old for the request."""
        ready = self._as_ready(question, cached)
        too_old = ready.newer > 0 if isinstance(refresh, bool) else cached.place < min(refresh, ready.now)
        too_old = too_old and refresh is not False
        due = ready.newer and not too_old and job is None and self.clock() - cached.created > OLD
        if due and self._state_elsewhere(key, False) is None:
            job = self._begin(question, key)
        again = job.running() if ready.newer and job is not None and not job.over.is_set() else None
        return replace(ready, again=again), too_old

    # jobs under way

    def under_way(self) -> list[tuple[str, Running]]:
        """The questions that are queued or computed by this process, with their names, the oldest first."""
        with self._lock:
            jobs = sorted(self._jobs.values(), key=lambda job: job.since)
        return [("runs" if job.asked is None else job.asked.name, job.running()) for job in jobs]

    def cancel(self, id: str, by: str) -> bool:
        """Cancel a question that is queued or computed; False if no such question is under way, or it cannot be cancelled."""
        with self._lock:
            job = next((each for each in self._jobs.values() if each.id == id and each.asked is not None), None)
            if job is None:
                return False
            job.cancelled = by
        self.workers.cancel(id)
        return True

    def _state_elsewhere(self, question: str, refresh: bool | int) -> State | None:
        """The state of a question that failed a moment ago, or that another process computes."""
        with self._lock:
            job, when = self._failed.get(question, (None, 0.0))
            if job is not None and refresh is not True and self.clock() - when < RETRY_AFTER:
                return Failed(job.id, str(job.why))
            self._failed.pop(question, None)
        row = find_job(self.bench.database, self._id(question))
        if row is None or row.state != "running" or row.owner == owner() or not lives(row.owner):
            return None
        return Running(row.id, row.progress, row.told, row.started)

    def _id(self, question: str) -> str:
        home = f"{platform.node()} {self.bench.state} {question}"
        return hashlib.sha256(home.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def _begin(self, question: WorkbenchQuestion, key: str) -> _Job:
        """Give a question to the workers, unless another thread has done so."""
        with self._lock:
            if key in self._jobs:
                return self._jobs[key]
            job = self._jobs[key] = _Job(self._id(key), key, self.clock(), question)
        task = {
            "id": job.id,
            "question": key,
            "folder": self.bench.folder,
            "db": self.bench.location,
            "verb": question.name,
            "parameters": question.values,
            "results": self.results.folder,
            "room": self.results.room,
        }
        try:
            self.workers.put(WorkerTask(task, lambda message: self._receive(job, message)))
        except CranfieldError as error:
            self._receive(job, {"failed": str(error)})
        return job

    def _receive(self, job: _Job, message: dict[str, Any]) -> None:
        """Take in a message of a worker on a job."""
        if "begun" in message:
            job.begun = True
        elif "done" in message:
            total = message["total"]
            job.progress = min(1.0, max(0.0, message["done"] / total)) if total else None
        else:
            self._end(job, message)

    def _end(self, job: _Job, message: dict[str, Any]) -> None:
        if "failed" in message:
            job.why = str(message["failed"])
        elif "broken" in message:
            job.why = f"an unexpected error occurred; the server's log describes it under job {job.id}"
        if job.cancelled and job.why is not None:
            job.why = f"cancelled by {job.cancelled}; load the page again to compute it"
        with self._lock:
            self._jobs.pop(job.question, None)
            if job.why is not None:
                self._failed[job.question] = job, self.clock()
                while len(self._failed) > 100:
                    del self._failed[next(iter(self._failed))]
        if job.noted:
            with suppress(CranfieldError):
                self._note(job, "done" if job.why is None else "failed")
        job.over.set()

    def _wait(self, job: _Job, question: WorkbenchQuestion) -> State:
        """The state of a job after a short wait."""
        if not job.over.wait(self.patience):
            if self.clock() - job.noted > NOTE_EVERY:
                with suppress(CranfieldError):
                    self._note(job, "running")
            return job.running()
        if job.why is not None:
            return Failed(job.id, job.why)
        cached = self.results.read(job.question)
        if cached is None:
            return Failed(job.id, "the result was removed before it could be read; load the page again")
        return self._as_ready(question, cached)

    def _since(self, question: WorkbenchQuestion, cached: CachedResult) -> tuple[int, int]:
        """The number of labels newer than a result, and the place of the newest event; 0 if labels do not change it."""
        if not question.depends_on_labels(self.bench):
            return 0, cached.place
        return self.bench.newer(cached.place, question.of_models), self.bench.log.place()

    def _hash_runs(self, question: WorkbenchQuestion) -> Running | None:
        """Hash large runs in the background; None if all hashes are known, or small enough to compute at once."""
        paths = [run.path for run in question.files(self.bench)]
        total = self.bench.hashes.unknown(paths)
        if total < HEAVY:
            return None
        name = "hashes " + hashlib.sha256(repr(sorted(paths)).encode("utf-8", "surrogateescape")).hexdigest()
        with self._lock:
            new = name not in self._jobs
            job = self._jobs.setdefault(name, _Job(self._id(name), name, self.clock(), None, 0.0, True))
        if new:
            threading.Thread(target=self._hash, args=(job, paths, total), daemon=True).start()
        return None if job.over.wait(self.patience) else job.running()

    def _hash(self, job: _Job, paths: list[str], total: int) -> None:
        read = 0

        def progress(more: int) -> None:
            nonlocal read
            read += more
            job.progress = min(1.0, read / total)

        try:
            for path in paths:
                with suppress(CranfieldError):  # reported when the question is asked
                    self.bench.hashes.of(path, progress)
        finally:
            with self._lock:
                self._jobs.pop(job.question, None)
            job.over.set()

    # the table of jobs

    def _note(self, job: _Job, state: str) -> None:
        """Write the state of a job into the table; the first note also removes rows that are a week old."""
        assert job.asked is not None
        first, job.noted = not job.noted, self.clock()
        row = {
            "id": job.id,
            "verb": job.asked.name,
            "parameters": json.dumps(job.asked.values),
            "state": state,
            "told": job.activity if job.why is None else job.why,
            "progress": job.progress,
            "owner": owner(),
            "started": timestamp(job.since),
            "seconds": None if state == "running" else self.clock() - job.since,
        }
        write_job(self.bench.database, row, timestamp(self.clock() - ROWS_LAST) if first else None)


def timestamp(seconds: float) -> str:
    """A time in the format of events.

    >>> timestamp(0.5)
    '1970-01-01T00:00:00.500000Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def owner() -> str:
    """The name of this process: machine, boot, process id and start time. A later process has another name."""
    return f"{platform.node()} {_boot()} {os.getpid()} {_start(os.getpid())}"


def lives(name: str) -> bool:
    """Whether a process that `owner` named is still running."""
    node, boot, pid, start = ([*name.rsplit(" ", 3), "", "", "", ""])[:4]
    if (node, boot) != (platform.node(), _boot()) or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return start == _start(int(pid))


def _boot() -> str:
    """The id of this boot of the machine; `-` if the system does not tell."""
    return _proc("sys/kernel/random/boot_id").strip() or "-"


def _start(pid: int) -> str:
    """The start time of a process in clock ticks; `-` if the system does not tell."""
    return "".join(_proc(f"{pid}/stat").rpartition(")")[2].split()[19:20]) or "-"


def _proc(name: str) -> str:
    """A file of Linux's /proc; empty if there is none."""
    try:
        return Path("/proc", name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

"""Questions to a workspace: answered at once from what is kept, or worked out by another process while one waits.

A question is a verb, its parameters and the hashes of all it depends on, but for new labels. What is worked out is kept
on disk under the question's hash (`workspace.results`) with the place of the log that it is of. Labels that came since
do not hold anybody up: the old result is given with how many there are, and worked out again when somebody asks for it,
or beside if it is older than ten minutes.

What takes longer than 300 ms is a job: a row in the table says which process sees to it. A row of a process that is gone
counts for nothing, and the question is begun again when it is next asked.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from cranfield.errors import ConventionError, CranfieldError
from cranfield.workspace.results import ROOM, Kept, Result, Results
from cranfield.workspace.workers import AT_ONCE, Task, Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine import Connection

    from cranfield.workspace.bench import Bench
    from cranfield.workspace.verb import Verb

SHAPE = 1  # of what is kept: another one is another question
PATIENCE = 0.3  # seconds that a question may take without being a job
OLD = 600.0  # seconds after which a result that new labels wait for is worked out again unasked
HELD = 10.0  # seconds for which everybody who asks hears of a failure, before it is tried again
NOTED = 2.0  # seconds between two notes on a job's progress in the table
KEPT_ROWS = 7 * 86_400.0  # seconds
HEAVY = 64 << 20  # bytes to be hashed that nobody waits for


@dataclass(frozen=True)
class Running:
    """It is being worked out: how far that is (0 to 1, None where nobody knows), what is done, and since when."""

    id: str
    progress: float | None
    told: str
    since: str


@dataclass(frozen=True)
class Ready:
    """The answer, the place of the log it is of, how many newer labels wait, what it took, and when it was made.

    `now` is how far the log goes: `refresh=now` asks for a result that is not older. `again` is there while it is
    being worked out anew.
    """

    answer: Result
    place: int
    newer: int
    seconds: float
    made: str
    now: int = 0
    again: Running | None = None


@dataclass(frozen=True)
class Failed:
    """It could not be worked out, and why; asked again it is tried again."""

    id: str
    why: str


State: TypeAlias = "Ready | Running | Failed"


@dataclass(eq=False)
class _Job:
    """A question on its way."""

    id: str
    question: str
    verb: str
    parameters: str
    told: str
    since: float
    progress: float | None = None
    begun: bool = False
    why: str | None = None
    noted: float = 0.0  # when the table last heard of it; 0: never
    over: threading.Event = field(default_factory=threading.Event)

    def running(self) -> Running:
        told = self.told if self.begun else "waiting for its turn"
        return Running(self.id, self.progress, told, written(self.since))


class Jobs:
    """The questions of one process to one workspace."""

    def __init__(
        self,
        bench: Bench,
        *,
        clock: Callable[[], float] = time.time,
        room: int = ROOM,
        at_once: int = AT_ONCE,
        patience: float = PATIENCE,
    ) -> None:
        from cranfield.workspace.verb import VERBS

        self.bench = bench
        self.verbs = dict(VERBS)  # all loaded, before threads ask for them
        self.clock = clock
        self.patience = patience
        self.workers = Workers(at_once)
        self.results = Results(os.path.join(bench.state, "results"), room)
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._failed: dict[str, tuple[_Job, float]] = {}

    def close(self) -> None:
        """End what is being worked out; it is begun again when somebody asks."""
        self.workers.close()

    def ask(self, verb: str, /, *, refresh: bool | int = False, **parameters: Any) -> State:
        """The answer to a question, or how far it is; an error where the question makes no sense.

        Parameters are text as it comes from a query, or lists of it. With `refresh` the answer is of all labels up to
        now; with a place, of those up to there at the least, so that one can ask again until it is ready.
        """
        asked = self._asked(verb, parameters)
        asked.refuse(self.bench)
        waiting = self._hashed(asked)
        if waiting is not None:
            return waiting
        question = self._question(asked)
        with self._lock:
            job = self._jobs.get(question)
        kept = self.results.read(question)
        if kept is not None:
            ready, wanted = self._ready(asked, question, kept, job, refresh)
            if not wanted:
                return ready
        if job is None:
            known = self._known(question, refresh)
            if known is not None:
                return known
            job = self._begin(asked, question)
        return self._awaited(job, asked)

    def look(self, verb: str, /, **parameters: Any) -> Ready | None:
        """The answer that is there already, whatever has come since; nothing is worked out for it."""
        asked = self._asked(verb, parameters)
        if self.bench.hashes.unknown([run.path for run in asked.files(self.bench)]) >= HEAVY:
            return None
        kept = self.results.read(self._question(asked))
        if kept is None:
            return None
        newer, now = self._since(asked, kept)
        return Ready(kept.answer, kept.place, newer, kept.seconds, written(kept.made), now)

    def _asked(self, verb: str, parameters: dict[str, Any]) -> Verb:
        if verb not in self.verbs:
            raise ConventionError(f"no verb {verb!r:.60}; there are {', '.join(self.verbs)}")
        return self.verbs[verb](**parameters)

    def _question(self, asked: Verb) -> str:
        """The hash of a question: what is the same has the same answer, new labels apart."""
        import cranfield

        words = [SHAPE, cranfield.__version__, asked.name, asked.values, asked.depends(self.bench)]
        return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()

    def _ready(
        self, asked: Verb, question: str, kept: Kept, job: _Job | None, refresh: bool | int
    ) -> tuple[Ready, bool]:
        """What is kept as an answer, and whether it is too old for whoever asks."""
        newer, now = self._since(asked, kept)
        wanted = newer > 0 if isinstance(refresh, bool) else kept.place < min(refresh, now)
        wanted = wanted and refresh is not False
        due = newer and not wanted and job is None and self.clock() - kept.made > OLD
        if due and self._known(question, False) is None:
            job = self._begin(asked, question)
        again = None if job is None or job.over.is_set() else job.running()
        made = written(kept.made)
        return Ready(kept.answer, kept.place, newer, kept.seconds, made, now, again), wanted

    # on the way

    def _known(self, question: str, refresh: bool | int) -> State | None:
        """That it failed just now, or that another process is at it."""
        with self._lock:
            job, when = self._failed.get(question, (None, 0.0))
            if job is not None and refresh is not True and self.clock() - when < HELD:
                return Failed(job.id, str(job.why))
            self._failed.pop(question, None)
        row = self._row(self._id(question))
        if row is None or row.state != "running" or row.owner == owner() or not lives(row.owner):
            return None
        return Running(row.id, row.progress, row.told, row.started)

    def _id(self, question: str) -> str:
        home = f"{platform.node()} {self.bench.state} {question}"
        return hashlib.sha256(home.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def _begin(self, asked: Verb, question: str) -> _Job:
        """Have it worked out, unless somebody else was quicker to."""
        with self._lock:
            if question in self._jobs:
                return self._jobs[question]
            parameters = json.dumps(asked.values)
            job = _Job(self._id(question), question, asked.name, parameters, asked.told, self.clock())
            self._jobs[question] = job
        words = {
            "id": job.id,
            "question": question,
            "folder": self.bench.folder,
            "db": self.bench.location,
            "verb": asked.name,
            "parameters": asked.values,
            "results": self.results.folder,
            "room": self.results.room,
        }
        try:
            self.workers.put(Task(words, lambda heard: self._hear(job, heard)))
        except CranfieldError as error:
            self._hear(job, {"failed": str(error)})
        return job

    def _hear(self, job: _Job, words: dict[str, Any]) -> None:
        """What a worker says of a job."""
        if "begun" in words:
            job.begun = True
        elif "done" in words:
            total = words["total"]
            job.progress = min(1.0, max(0.0, words["done"] / total)) if total else None
        else:
            self._end(job, words)

    def _end(self, job: _Job, words: dict[str, Any]) -> None:
        if "failed" in words:
            job.why = str(words["failed"])
        elif "broken" in words:
            job.why = f"something went wrong that should not; the server's log says what under job {job.id}"
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

    def _awaited(self, job: _Job, asked: Verb) -> State:
        """What a job has come to after a moment."""
        if not job.over.wait(self.patience):
            if self.clock() - job.noted > NOTED:
                with suppress(CranfieldError):
                    self._note(job, "running")
            return job.running()
        if job.why is not None:
            return Failed(job.id, job.why)
        kept = self.results.read(job.question)
        if kept is None:
            return Failed(job.id, "the result was removed before it could be read; ask again")
        newer, now = self._since(asked, kept)
        return Ready(kept.answer, kept.place, newer, kept.seconds, written(kept.made), now)

    def _since(self, asked: Verb, kept: Kept) -> tuple[int, int]:
        """How many newer labels wait for a result, and how far the log goes; nothing where labels do not change it."""
        if not asked.moves(self.bench):
            return 0, kept.place
        return self.bench.newer(kept.place, asked.of_models), self.bench.log.place()

    def _hashed(self, asked: Verb) -> Running | None:
        """Have large files hashed that nobody hashed yet; None where all hashes are known or soon will be."""
        paths = [run.path for run in asked.files(self.bench)]
        total = self.bench.hashes.unknown(paths)
        if total < HEAVY:
            return None
        name = "hashes " + hashlib.sha256(repr(sorted(paths)).encode("utf-8", "surrogateescape")).hexdigest()
        with self._lock:
            job = self._jobs.get(name)
            new = job is None
            if job is None:
                job = _Job(self._id(name), name, "", "", "reading runs for the first time", self.clock(), 0.0, True)
                self._jobs[name] = job
        if new:
            threading.Thread(target=self._hash, args=(job, paths, total), daemon=True).start()
        return None if job.over.wait(self.patience) else job.running()

    def _hash(self, job: _Job, paths: list[str], total: int) -> None:
        read = 0

        def told(more: int) -> None:
            nonlocal read
            read += more
            job.progress = min(1.0, read / total)

        try:
            for path in paths:
                with suppress(CranfieldError):  # said when the question is made
                    self.bench.hashes.of(path, told)
        finally:
            with self._lock:
                self._jobs.pop(job.question, None)
            job.over.set()

    # the table

    def _row(self, name: str) -> Any:
        from sqlalchemy import select

        from cranfield.store.tables import jobs

        with self.bench.database.reading() as connection:
            return connection.execute(select(jobs).where(jobs.c.id == name)).first()

    def _note(self, job: _Job, state: str) -> None:
        """Write down how a job stands; rows of long ago are swept out with the first note."""
        from sqlalchemy import delete, insert

        from cranfield.store.tables import jobs

        first, job.noted = not job.noted, self.clock()
        row = {
            "id": job.id,
            "verb": job.verb,
            "parameters": job.parameters,
            "state": state,
            "told": job.told if job.why is None else job.why,
            "progress": job.progress,
            "owner": owner(),
            "started": written(job.since),
            "seconds": None if state == "running" else self.clock() - job.since,
        }
        past = written(self.clock() - KEPT_ROWS)

        def work(connection: Connection) -> None:
            connection.execute(delete(jobs).where(jobs.c.id == job.id))
            if first:
                connection.execute(delete(jobs).where(jobs.c.started < past))
            connection.execute(insert(jobs), row)

        self.bench.database.write(work)


def written(seconds: float) -> str:
    """A time as events write it.

    >>> written(0.5)
    '1970-01-01T00:00:00.500000Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def owner() -> str:
    """This process, and no other that may get its number later: machine, start of the machine, number, start."""
    return f"{platform.node()} {_boot()} {os.getpid()} {_start(os.getpid())}"


def lives(name: str) -> bool:
    """Whether the process of that name is still there."""
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
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "-"


def _start(pid: int) -> str:
    """When a process was started, as the system counts; `-` where it does not say."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "-"

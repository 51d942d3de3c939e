"""Long work that changes a workspace: imports, backups, restores. One thread per task, with its progress for a page.

Questions (`workbench.jobs`) only read, so worker processes answer them and their results are cached. A task changes
something, so it runs once, in the process of the server, and one at a time. Its outcome is shown until the next task of
the same kind begins, or until the server stops.
"""

from __future__ import annotations

import threading
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import CranfieldError
from cranfield.base.notifications import notes_to
from cranfield.http.refusal import DISK, Refusal
from cranfield.pooling.strategy import STRATEGIES
from cranfield.workbench.jobs import timestamp
from cranfield.workbench.worker_pool import TRAINING, WorkerTask

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from cranfield.judging.round_plan import Round
    from cranfield.workbench.jobs import Jobs

    Tell = Callable[[int, int | None], None]

RUNNING, DONE, FAILED = "running", "done", "failed"
LOOK_AGAIN = 30.0  # seconds after which the labels of all topics of a round are looked at
PATIENCE = 0.3  # seconds that a request waits: most tasks are done by then


@dataclass(frozen=True)
class TaskResult:
    """What a task did: one sentence, notes below it, and values for programs."""

    summary: str
    notes: Sequence[str] = ()
    values: dict[str, Any] = field(default_factory=dict)


class TaskError(CranfieldError):
    """A task that was refused, with every finding by line."""

    def __init__(self, problem: str, findings: Sequence[dict[str, Any]]) -> None:
        super().__init__(problem)
        self.findings = findings


@dataclass(eq=False)
class Task:
    """One task: what it does, how far it is, and how it ended."""

    kind: str
    activity: str
    started: str
    state: str = RUNNING
    progress: float | None = None
    result: TaskResult | None = None
    why: str = ""
    findings: Sequence[dict[str, Any]] = ()
    over: threading.Event = field(default_factory=threading.Event)

    def tell(self, done: int, total: int | None) -> None:
        """Store the progress; without a total, the share that is done is unknown."""
        self.progress = min(1.0, done / total) if total else None

    def values(self) -> dict[str, Any]:
        """The state as values of a JSON twin."""
        about = {"kind": self.kind, "state": self.state, "activity": self.activity, "since": self.started}
        if self.state == RUNNING:
            return {**about, "progress": self.progress}
        if self.result is None:
            return {**about, "error": self.why, "findings": list(self.findings)}
        return {**about, "summary": self.result.summary, "notes": list(self.result.notes), **self.result.values}


class Tasks:
    """The tasks of one server; `public` removes paths from their messages."""

    def __init__(self, public: Callable[[str], str], patience: float = PATIENCE) -> None:
        self.public = public
        self.patience = patience
        self._lock = threading.Lock()
        self._tasks: dict[str, Task] = {}

    def find(self, kind: str) -> Task | None:
        """The last task of a kind."""
        with self._lock:
            return self._tasks.get(kind)

    def under_way(self) -> list[Task]:
        """The tasks that are running."""
        with self._lock:
            return [task for task in self._tasks.values() if task.state == RUNNING]

    def begin(self, kind: str, activity: str, work: Callable[[Tell], TaskResult]) -> Task:
        """Begin a task, and wait a moment for its end; Refusal while another task runs."""
        with self._lock:
            running = next((each for each in self._tasks.values() if each.state == RUNNING), None)
            if running is not None:
                raise Refusal(f"something else is under way: {running.activity}", 409, advice="Wait until it is done.")
            task = self._tasks[kind] = Task(kind, activity, timestamp(time.time()))
        threading.Thread(target=self._run, args=(task, work), name=f"cranfield-{kind}", daemon=True).start()
        task.over.wait(self.patience)
        return task

    def forget(self, kind: str) -> None:
        """Remove the outcome of a task that has ended."""
        with self._lock:
            if kind in self._tasks and self._tasks[kind].state != RUNNING:
                del self._tasks[kind]

    def _run(self, task: Task, work: Callable[[Tell], TaskResult]) -> None:
        notes: list[str] = []
        thread = threading.get_ident()

        def note(text: str) -> None:  # requests in other threads say things as well
            if threading.get_ident() == thread:
                notes.append(text)

        try:
            with notes_to(note):
                result = work(task.tell)
            own = [*notes, *result.notes]
            task.result = TaskResult(self.public(result.summary), [self.public(each) for each in own], result.values)
            task.state = DONE
        except CranfieldError as error:
            self._fail(task, self.public(str(error)), getattr(error, "findings", ()))
        except OSError as error:
            traceback.print_exc()
            self._fail(task, DISK.get(error.errno or 0, "the server's system refused; its own output says why"))
        except MemoryError:
            self._fail(task, "there is not enough memory on the server for this")
        except BaseException:
            traceback.print_exc()
            self._fail(task, "an unexpected error occurred; the server's own output describes it")
        finally:
            task.over.set()

    def _fail(self, task: Task, why: str, findings: Sequence[dict[str, Any]] = ()) -> None:
        task.why, task.findings = why, findings
        task.state = FAILED


class ModelTrainer:
    """Trains the models of rounds in a worker process while judging goes on with the last ones.

    Topics that are wanted while a worker trains are trained together afterwards. A label that came from elsewhere, such
    as an adjudication, counts at the next look at all topics, which happens every half minute of judging.
    """

    def __init__(self, jobs: Jobs, clock: Callable[[], float] = time.monotonic) -> None:
        self.jobs = jobs
        self.clock = clock
        self.why: dict[str, str] = {}  # round → why its last training failed
        self.progress: float | None = None  # of the index of features, or of a round with many topics
        self._lock = threading.Lock()
        self._waiting: dict[str, set[str] | None] = {}  # round → topics; None: all
        self._last_looks: dict[str, float] = {}  # round → time of the last look at all its topics
        self._busy = False

    def want(self, plan: Round, topics: Collection[str] = ()) -> None:
        """Train topics of a round soon; rounds whose strategy reads no documents need no training."""
        if not plan.strategy or not STRATEGIES.named(plan.strategy).reads:
            return
        with self._lock:
            now = self.clock()
            whole = now - self._last_looks.get(plan.name, -LOOK_AGAIN) >= LOOK_AGAIN
            before = self._waiting.get(plan.name, set())
            if not whole and not topics:
                return
            self._waiting[plan.name] = None if whole or before is None else {*before, *topics}
            if whole:
                self._last_looks[plan.name] = now
        self._begin()

    @property
    def busy(self) -> bool:
        """Whether a worker trains, or is about to."""
        with self._lock:
            return self._busy

    def _begin(self) -> None:
        with self._lock:
            if self._busy or not self._waiting:
                return
            name = next(iter(self._waiting))
            topics = self._waiting.pop(name)
            self._busy = True
        bench = self.jobs.bench
        place = {"id": f"models of {name}", "folder": bench.folder, "db": bench.location}
        task = {**place, "verb": TRAINING, "round": name, "topics": None if topics is None else sorted(topics)}
        try:
            self.jobs.workers.put(WorkerTask(task, lambda message: self._receive(name, message)))
        except CranfieldError:  # the server is stopping
            with self._lock:
                self._busy = False

    def _receive(self, name: str, message: dict[str, Any]) -> None:
        if "begun" in message:
            return
        if "done" in message:
            self.progress = message["done"] / message["total"] if message["total"] else None
            return
        self.progress = None
        self.why.pop(name, None)
        if "failed" in message or "broken" in message:
            self.why[name] = str(message.get("failed", "an unexpected error occurred; the server's log describes it"))
        with self._lock:
            self._busy = False
        self._begin()

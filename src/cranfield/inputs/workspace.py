"""A workspace: a folder with a collection, its runs, one log, and a state folder for computed results.

    FOLDER/                collection.toml, documents.jsonl, topics.jsonl, qrels.txt, or these in FOLDER/collection
    FOLDER/runs/           one file per run
    FOLDER/work.db         the log, unless a database elsewhere is named
    FOLDER/images/         images of documents, optional (there or in the collection)
    FOLDER/events/         the event log of searches and clicks, optional, made by `cranfield online ingest`
    FOLDER/guidelines.md   guidelines for assessors, optional (.md or .txt, there or in the collection)
    FOLDER/.cranfield/     hashes, results, indexes: all of it can be computed again

Missing files are not an error. No name from outside becomes a path: a run is looked up among the listed files.

An uploaded run is written into the state folder under its own name (the ending tells formats apart), read by the strict
reader and checked. It is moved to the other runs only if all is well; a refused run leaves no file behind.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from cranfield.base.errors import CranfieldError, DataError, TooLargeError
from cranfield.base.findings import Finding
from cranfield.base.parameters import shortened
from cranfield.base.text_layout import legible
from cranfield.collections.check import Findings, check
from cranfield.formats import read_run, run_name
from cranfield.formats.collection_folder import (
    DOCUMENTS,
    INSIDE,
    META,
    QRELS,
    TOPICS,
    collection_home,
    file_in,
    read_collection,
)
from cranfield.formats.collection_folder import STATE as STATE
from cranfield.formats.document_index import Shelf, open_shelf
from cranfield.formats.images import ImageFile, read_image
from cranfield.formats.run_files import RUNS, RunFile, listed, run_named
from cranfield.formats.runs_and_qrels import as_qrels
from cranfield.formats.streams import reason, refuse_larger
from cranfield.formats.topic_tables import TopicTable, read_topic_table, topic_ids_in
from cranfield.inputs.disk_caches import FileHashes, Mark, mark_of
from cranfield.inputs.topics import topics_of_collection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cranfield.base.card import CardTemplate
    from cranfield.base.collection import Aspect, Collection, Grade
    from cranfield.base.qrels import Qrels
    from cranfield.judging.assignments import Version
    from cranfield.judging.database_log import DatabaseLog
    from cranfield.judging.guidelines import Guidelines
    from cranfield.judging.round_status import RoundStatus
    from cranfield.pooling.text_features import TextFeatures
    from cranfield.store import Database


LONGEST_NAME = 120  # bytes
PATTERNS = frozenset('/\\=*?[]<>:|"')  # of paths and patterns, here or on other systems


@dataclass(frozen=True)
class Upload:
    """The run that was added (None if it was refused), and the findings of its check."""

    run: RunFile | None
    findings: Findings


def refuse_file_name(name: str, what: str = "a run", example: str = "bm25.run") -> None:
    """Raise DataError for the name of an upload that is empty, hidden, too long or a pattern."""
    short = shortened(name)
    if not name or name.startswith((".", "-", " ")) or name.endswith((" ", ".")):
        raise DataError(f"{what}'s file name begins with a letter or a digit, as in {example}; found {short!r}")
    if set(name) & PATTERNS or not name.isprintable() or legible(name) != name:
        raise DataError(f"expected a file name of letters, digits, blanks and ._-+, found {short!r}")
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise DataError(f"expected a file name in Unicode, found {short!r}") from None
    if length > LONGEST_NAME:
        raise DataError(f"{what}'s file name has at most {LONGEST_NAME} bytes, found {length}")


def refuse_name(runs: str, name: str) -> None:
    """Raise DataError for a file name of a run that is empty, hidden, in use, or a pattern."""
    refuse_file_name(name)
    names = {run_name(run.path).casefold() for run in listed(runs)}
    if run_name(name).casefold() in names or os.path.lexists(os.path.join(runs, name)):
        raise DataError(f"there is a run {run_name(name)!r} already; give this one another name")


def receive(path: str, name: str, data: Iterable[bytes], limit: int) -> None:
    """Write an upload of at most `limit` bytes to a new file; `name` is what messages call it."""
    left = limit
    try:
        with open(path, "xb") as file:
            for piece in data:
                left -= len(piece)
                if left < 0:
                    raise TooLargeError(f"{name}: larger than {limit / 1e6:,.4g} MB, the most that is taken")
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise DataError(f"{name}: cannot be written: {reason(error)}") from None


def _check_file(path: str, name: str, qrels: str | None) -> Findings:
    """The findings of `check`, and an error of the strict reader that `check` does not report."""
    findings = check([path], qrels, "run")
    own = [replace(each, file=name) for each in findings if each.file == path]
    if not any(each.severity == "error" for each in own):
        try:
            _ = read_run(path).table
        except CranfieldError as error:
            message = str(error).replace(path, name).removeprefix(f"{name}: ")
            own.append(Finding.of("unreadable", name, message))
    return Findings(own)


def _move(path: str, runs: str, name: str) -> None:
    """Move the file to the other runs; never replace one."""
    target = os.path.join(runs, name)
    try:
        os.makedirs(runs, exist_ok=True)
        os.chmod(path, 0o644)
        os.link(path, target)
    except FileExistsError:
        raise DataError(f"there is a run {run_name(name)!r} already; give this one another name") from None
    except OSError as error:
        raise DataError(f"{name}: cannot be moved into runs/: {reason(error)}") from None


T = TypeVar("T")

SETTLED = 2_000_000_000  # nanoseconds after which a later change gives a folder another time
EVENTS = "events"  # the folder of the event log
GUIDELINES = ("guidelines.md", "guidelines.txt")
LONGEST_GUIDELINE = 1 << 20  # bytes
UPLOAD = 256 << 20  # bytes of a run that is added, packed and unpacked


def _changed(folder: str) -> int:
    """The time of the last change in a folder; 0 if there is no such folder."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def open_bench(folder: str | os.PathLike[str], db: str | None = None, clock: Callable[[], str] | None = None) -> Bench:
    """Open a workspace; `db` replaces its `work.db`, and `clock` replaces the clock of the database."""
    return Bench(os.fspath(folder), db, clock)


def is_workspace(folder: str) -> bool:
    """Whether a folder was opened as a workspace: it has a log or a state folder."""
    return any(os.path.lexists(os.path.join(folder, name)) for name in ("work.db", STATE))


def new_collection_folder(folder: str) -> str:
    """The folder for the collection of a workspace that has none; DataError if it has one."""
    target = os.path.join(folder, INSIDE)
    names = [os.path.join(where, name) for where in (folder, target) for name in (DOCUMENTS, TOPICS, QRELS, META)]
    there = next((path for path in (file_in(*os.path.split(name)) for name in names) if os.path.isfile(path)), None)
    if there is not None or os.path.lexists(target):
        what = os.path.relpath(there or target, folder)
        raise DataError(f"{folder}: the workspace has a collection already ({what}); nothing is overwritten")
    return target


def make_example(folder: str | os.PathLike[str]) -> None:
    """Fill a new folder with the bundled collection and its runs."""
    from cranfield.formats.collection_folder import bundled_names, folder_of

    target = os.fspath(folder)
    if os.path.exists(target) and os.listdir(target):
        raise DataError(f"{target}: there are files in it already; name a new folder, or leave --example out")
    shutil.copytree(folder_of(bundled_names()[0]), target, dirs_exist_ok=True, copy_function=shutil.copyfile)


class Bench:
    """A workspace. Opening it creates the log and the state folder if they are missing, and nothing else."""

    def __init__(self, folder: str, db: str | None = None, clock: Callable[[], str] | None = None) -> None:
        from cranfield.judging.database_log import DatabaseLog
        from cranfield.judging.log_location import is_database
        from cranfield.judging.version_cache import VersionCache

        self.folder = os.path.abspath(folder)
        if not os.path.isdir(self.folder):
            raise DataError(f"{folder}: expected a folder with a collection, runs/ and a log, found none")
        self.location = db or os.path.join(self.folder, "work.db")
        if not is_database(self.location):
            raise DataError(f"{db}: expected a database: postgresql://user@host/name, or a file ending in .db")
        self.state = own_folder(os.path.join(self.folder, STATE))
        self.log: DatabaseLog = DatabaseLog(self.location, clock)
        self.log.version_cache = VersionCache(os.path.join(self.state, "versions"))
        self.hashes = FileHashes(os.path.join(self.state, "hashes.json"))
        self._lock = threading.Lock()
        self._guidelines: Any = None
        self._importing = threading.Lock()
        self._imported: tuple[str | None, Mark | None] | None = None  # the file of judgments that the log holds
        self._read: dict[str, tuple[Mark, Any]] = {}
        self._layout_cache: tuple[list[int] | None, tuple[str | None, dict[str, str]]] = None, (None, {})

    @property
    def name(self) -> str:
        """The name of the workspace: that of its folder."""
        return os.path.basename(self.folder) or self.folder

    def close(self) -> None:
        """Close the log."""
        self.log.close()

    @property
    def database(self) -> Database:
        """The database of the log."""
        return self.log.database

    # the collection

    @property
    def home(self) -> str | None:
        """The folder that has any file of a collection; None if there is none yet."""
        return self._layout()[0]

    @property
    def collection(self) -> str | None:
        """The folder of the collection; None if it has no file of documents."""
        home, files = self._layout()
        return home if DOCUMENTS in files else None

    def _layout(self) -> tuple[str | None, dict[str, str]]:
        """The folder of the collection and its files; read again when either folder has changed."""
        folders = os.path.join(self.folder, INSIDE), self.folder
        marks = [_changed(folder) for folder in folders]
        marks_before, layout = self._layout_cache
        if marks_before == marks:
            return layout
        layout = collection_home(self.folder)
        settled = all(mark < time.time_ns() - SETTLED for mark in marks)
        # a change within one tick of the clock has the same time
        self._layout_cache = marks if settled else None, layout
        return layout

    def open_collection(self) -> Collection | None:
        """The collection; only collection.toml is read at once."""
        return None if self.collection is None else read_collection(self.collection)

    def topics(self) -> TopicTable | None:
        """The topics, read again when their file changes; None if the file is missing or empty."""
        path = self.file(TOPICS)
        return None if path is None else self._once("topics", path, self._topics)

    def topic_ids(self) -> frozenset[str] | None:
        """The ids of the topics; None if there is no file of topics."""
        path = self.file(TOPICS)
        return None if path is None else self._once("topic ids", path, self._topic_ids)

    def _topic_ids(self, path: str) -> frozenset[str]:
        collection = self.open_collection()
        if collection is not None:
            return frozenset(topic.id for topic in collection.topics)
        return topic_ids_in(path)

    def _topics(self, path: str) -> TopicTable:
        return read_topic_table(path) if self.collection is None else topics_of_collection(self.collection)

    def grades(self) -> dict[float, Grade]:
        """The grades with their meanings, the lowest first; empty if collection.toml names none."""
        collection = self._description()
        return {} if collection is None else collection.grades

    @property
    def relevant_from(self) -> float:
        """The lowest grade of a relevant document."""
        collection = self._description()
        return 1 if collection is None else collection.relevant_from

    def aspects(self) -> tuple[Aspect, ...]:
        """The aspects that assessors judge besides relevance."""
        collection = self._description()
        return () if collection is None else collection.aspects

    def card(self) -> CardTemplate | None:
        """The template of the judging card; None if documents are shown as title and text."""
        collection = self._description()
        return None if collection is None else collection.card

    def image(self, path: str) -> ImageFile:
        """An image in the folder `images` of the workspace or of the collection; DataError if it is refused."""
        return read_image([folder for folder in (self.folder, self.home) if folder is not None], path)

    def _description(self) -> Collection | None:
        """The collection as described by its collection.toml; None if there is no such file."""
        path = self.file(META)
        if path is None or self.collection is None:
            return None
        return self._once("description", path, lambda _: self.open_collection())

    @property
    def qrels(self) -> str | None:
        """The qrels file of the collection; None if there is none."""
        return self.file(QRELS)

    def file(self, name: str) -> str | None:
        """One of the collection's files, compressed or not; None if it is missing or empty."""
        path = self._layout()[1].get(name)
        try:
            return path if path is not None and os.path.getsize(path) else None
        except OSError:
            return None

    def guideline(self) -> str:
        """The guidelines for assessors; empty if there is no such file."""
        path = self.guideline_file()
        if path is None:
            return ""

        def read(path: str) -> str:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read(LONGEST_GUIDELINE)

        return self._once("guideline", path, read)

    def guidelines(self) -> Guidelines:
        """The current guidelines and meanings of the grades; labels record the hash of this version."""
        from cranfield.judging.guidelines import Guidelines

        now = Guidelines.of(self.guideline(), self.grades(), self.relevant_from)
        if self._guidelines != now:
            self._guidelines = now
        guidelines: Guidelines = self._guidelines
        return guidelines  # the same object as before, which knows its hash

    def guideline_file(self) -> str | None:
        """The file of the guidelines: in the workspace, or in the folder of the collection."""
        folders = dict.fromkeys(folder for folder in (self.folder, self.home) if folder is not None)
        paths = (os.path.join(folder, name) for folder in folders for name in GUIDELINES)
        return next(filter(os.path.isfile, paths), None)

    def shelf(self, progress: Callable[[int, int | None], None] | None = None) -> Shelf | None:
        """The documents by id, from an index in the state folder; None if there are no documents."""
        if self.collection is None:
            return None
        return open_shelf(self.collection, own_folder(os.path.join(self.state, "shelf")), progress)

    def features(self, progress: Callable[[int, int | None], None] | None = None) -> TextFeatures | None:
        """The texts as learning strategies read them, from an index in the state folder; None without documents."""
        from cranfield.pooling.text_features import open_features

        if self.collection is None:
            return None
        return open_features(self.collection, own_folder(os.path.join(self.state, "shelf")), progress)

    def _once(self, what: str, path: str, read: Callable[[str], T]) -> T:
        """The content of a file, read again when the file has changed."""
        mark = mark_of(path)
        with self._lock:
            cached = self._read.get(f"{what} {path}")
        if cached is not None and cached[0] == mark:
            value: T = cached[1]
            return value
        value = read(path)
        with self._lock:
            self._read[f"{what} {path}"] = mark, value
        return value

    # runs

    @property
    def runs_folder(self) -> str:
        """Where run files lie, whether or not there are any yet."""
        return os.path.join(self.folder, RUNS)

    def runs(self) -> list[RunFile]:
        """The runs by name."""
        return listed(self.runs_folder)

    def run(self, name: str) -> RunFile:
        """A run by its name or its file name; DataError if it is not among the listed files."""
        file = run_named(self.folder, name)
        if file is not None:
            return file
        files = self.runs()
        there = ", ".join(file.name for file in files[:10]) or "none"
        more = f" and {len(files) - 10} more" if len(files) > 10 else ""
        raise DataError(f"there is no run {shortened(name)!r}; there are: {there}{more}")

    def add_run(self, name: str, data: Iterable[bytes], limit: int = UPLOAD) -> Upload:
        """Add a run of at most `limit` bytes, compressed or not, under a file name; errors in its check refuse it."""
        refuse_name(self.runs_folder, name)
        try:
            folder = tempfile.mkdtemp(prefix="upload-", dir=self.state)
        except OSError as error:
            raise DataError(f"{name}: cannot be written: {reason(error)}") from None
        try:
            path = os.path.join(folder, name)
            receive(path, name, data, limit)
            refuse_larger(path, limit, name)
            findings = _check_file(path, name, self.qrels)
            if findings.counts["error"]:
                return Upload(None, findings)
            _move(path, self.runs_folder, name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return Upload(self.run(name), findings)

    # searches and clicks

    @property
    def has_events(self) -> bool:
        """Whether there is a folder for the event log."""
        return os.path.isdir(os.path.join(self.folder, EVENTS))

    def event_log(self) -> str:
        """The folder of the event log; DataError if there is none."""
        path = os.path.join(self.folder, EVENTS)
        if not self.has_events:
            raise DataError(f"there is no event log: cranfield online ingest {self.name}/{EVENTS} FILE makes one")
        return path

    def event_state(self) -> str:
        """A hash of the event log's state; see `EventLog.state`."""
        from cranfield.experiments.log import EventLog

        with EventLog(self.event_log()) as log:
            return log.state()

    # the log

    def import_judgments(self) -> None:
        """Bring the collection's judgments in the log up to date with their file, if it has changed."""
        from cranfield.judging.collection_judgments import JudgmentFile, import_judgments

        if self.home is None:  # a folder without a collection says nothing about a log that others share
            return
        path = self.qrels
        mark = None if path is None else mark_of(path)
        with self._importing:
            if self._imported == (path, mark):
                return
            digest = "" if path is None else self.hashes.of(path)
            import_judgments(self.log, JudgmentFile(os.path.basename(path or QRELS), digest, self.own_judgments))
            settled = mark is None or mark[1] < time.time_ns() - SETTLED
            self._imported = (path, mark) if settled else None

    def own_judgments(self) -> Qrels | None:
        """The judgments in the collection's own file; None if there is none."""
        path = self.qrels
        if path is None:
            return None
        collection = self.open_collection()
        return as_qrels(path) if collection is None else collection.qrels

    def versions(self) -> list[Version]:
        """The frozen qrels, the oldest first."""
        from cranfield.judging.versions import all_versions

        return all_versions(self.log)

    def rounds(self) -> list[RoundStatus]:
        """The status of every round, the oldest first."""
        from cranfield.judging.round_status import round_statuses

        return round_statuses(self.log)

    def newer(self, place: int, of_models: bool = False) -> int:
        """The number of events after a place of the log that can change a result; of people, or of all."""
        from cranfield.judging.log_queries import count_changes_since

        return count_changes_since(self.database, place, of_models)

    def settled(self) -> int:
        """The place of the log before which no transaction is still open."""
        if self.database.dialect != "postgresql":
            return self.log.place()

        def work(transaction: Any) -> int:
            transaction.alone()
            place: int = transaction.place()
            return place

        return self.log.write(work)


def own_folder(path: str) -> str:
    """A folder that only its owner may read, created if missing."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        if os.path.islink(path):
            raise DataError(f"{path}: expected a folder, found a link; remove it")
        if stat.S_IMODE(os.stat(path).st_mode) != 0o700:
            os.chmod(path, 0o700)
    except OSError as error:
        raise DataError(f"{path}: cannot be made: {reason(error)}") from None
    return path

"""A folder opened for work: a collection, its runs, one log, and a place for what is worked out from them.

    FOLDER/                collection.toml, documents.jsonl, topics.jsonl, qrels.txt, or these in FOLDER/collection
    FOLDER/runs/           a file a run
    FOLDER/work.db         the log, unless a database elsewhere is named
    FOLDER/guidelines.md   what assessors are told, if there is such a file (.md or .txt, there or in the collection)
    FOLDER/.cranfield/     hashes, results, indexes: all of it can be made again

Whatever is missing is absent and no error. No name from outside becomes a path: a run is found among those listed.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from cranfield.errors import DataError
from cranfield.formats.folder import DOCUMENTS, META, QRELS, TOPICS, file_in
from cranfield.formats.streams import reason
from cranfield.parameters import shortened
from cranfield.workspace.hashes import Hashes, mark_of
from cranfield.workspace.run_files import RunFile, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cranfield.collection import Aspect, Collection, Grade
    from cranfield.formats.shelf import Shelf
    from cranfield.formats.topics import TopicTable
    from cranfield.judge.database import DatabaseLog
    from cranfield.judge.places import Version
    from cranfield.judge.status import RoundStatus
    from cranfield.store import Database
    from cranfield.workspace.hashes import Mark
    from cranfield.workspace.uploads import Upload

T = TypeVar("T")

STATE = ".cranfield"
SETTLED = 2_000_000_000  # nanoseconds after which a folder's time of change is not that of another change too
GUIDELINES = ("guidelines.md", "guidelines.txt")
LONGEST_GUIDELINE = 1 << 20  # bytes
WEIGHTY = ("judgment", "preference", "adjudication", "withdrawal", "cannot-judge")  # events that can change a result
UPLOAD = 256 << 20  # bytes of a run that is added, packed and unpacked


def _changed(folder: str) -> int:
    """When something was put into a folder or taken out; 0 where there is none."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def open_bench(folder: str | os.PathLike[str], db: str | None = None, clock: Callable[[], str] | None = None) -> Bench:
    """Open a folder for work; `db` names a database in place of its `work.db`, and `clock` stands in for that one's."""
    return Bench(os.fspath(folder), db, clock)


def make_example(folder: str | os.PathLike[str]) -> None:
    """Fill a new folder with the bundled collection and its runs."""
    import shutil

    from cranfield.formats.folder import bundled_names, folder_of

    target = os.fspath(folder)
    if os.path.exists(target) and os.listdir(target):
        raise DataError(f"{target}: there are files in it already; name a new folder, or leave --example out")
    shutil.copytree(folder_of(bundled_names()[0]), target, dirs_exist_ok=True, copy_function=shutil.copyfile)


class Bench:
    """A workspace. Its log is made where there is none; nothing else is, but for the folder of its state."""

    def __init__(self, folder: str, db: str | None = None, clock: Callable[[], str] | None = None) -> None:
        from cranfield.judge.database import DatabaseLog
        from cranfield.judge.opening import is_database

        self.folder = os.path.abspath(folder)
        if not os.path.isdir(self.folder):
            raise DataError(f"{folder}: expected a folder with a collection, runs/ and a log, found none")
        self.location = db or os.path.join(self.folder, "work.db")
        if not is_database(self.location):
            raise DataError(f"{db}: expected a database: postgresql://user@host/name, or a file ending in .db")
        self.state = _own_folder(os.path.join(self.folder, STATE))
        self.log: DatabaseLog = DatabaseLog(self.location, clock)
        self.hashes = Hashes(os.path.join(self.state, "hashes.json"))
        self._lock = threading.Lock()
        self._read: dict[str, tuple[Mark, Any]] = {}
        self._seen: tuple[list[int] | None, tuple[str | None, dict[str, str]]] = None, (None, {})

    @property
    def name(self) -> str:
        """What the workspace is called: as its folder is."""
        return os.path.basename(self.folder) or self.folder

    def close(self) -> None:
        """Let go of the log."""
        self.log.close()

    @property
    def database(self) -> Database:
        """The tables that the log lies in."""
        return self.log.database

    # the collection

    @property
    def home(self) -> str | None:
        """The folder with any of a collection's files; None where there are none yet."""
        return self._layout()[0]

    @property
    def collection(self) -> str | None:
        """The collection's folder; None where there is no file of documents."""
        home, files = self._layout()
        return home if DOCUMENTS in files else None

    def _layout(self) -> tuple[str | None, dict[str, str]]:
        """The collection's folder and which files it has, looked at again when either folder has changed."""
        folders = os.path.join(self.folder, "collection"), self.folder
        marks = [_changed(folder) for folder in folders]
        known, layout = self._seen
        if known == marks:
            return layout
        found: tuple[str | None, dict[str, str]] = (None, {})
        for folder in folders:
            paths = {name: file_in(folder, name) for name in (DOCUMENTS, TOPICS, QRELS, META)}
            there = {name: path for name, path in paths.items() if os.path.isfile(path)}
            if there:
                found = folder, there
                break
        settled = all(mark < time.time_ns() - SETTLED for mark in marks)
        self._seen = (marks if settled else None), found  # a change within one tick of the clock would not be seen
        return found

    def opened(self) -> Collection | None:
        """The collection; nothing but collection.toml is read yet."""
        from cranfield.formats.folder import read_collection

        return None if self.collection is None else read_collection(self.collection)

    def topics(self) -> TopicTable | None:
        """The topics, read again when their file changes; None where there is no such file, or nothing in it."""
        path = self.file(TOPICS)
        return None if path is None else self._once("topics", path, self._topics)

    def _topics(self, path: str) -> TopicTable:
        from cranfield.formats.topics import read_topic_table
        from cranfield.workspace.topics import topics_of_collection

        return read_topic_table(path) if self.collection is None else topics_of_collection(self.collection)

    def grades(self) -> dict[float, Grade]:
        """What the grades mean, the lowest first; empty where the collection does not say."""
        described = self._described()
        return {} if described is None else described.grades

    @property
    def relevant_from(self) -> float:
        """The lowest grade of a relevant document."""
        described = self._described()
        return 1 if described is None else described.relevant_from

    def aspects(self) -> tuple[Aspect, ...]:
        """What assessors are asked beside the grade."""
        described = self._described()
        return () if described is None else described.aspects

    def _described(self) -> Collection | None:
        """The collection as its collection.toml describes it; None where there is none."""
        path = self.file(META)
        if path is None or self.collection is None:
            return None
        return self._once("described", path, lambda _: self.opened())

    @property
    def qrels(self) -> str | None:
        """The collection's own judgments; None where there are none."""
        return self.file(QRELS)

    def file(self, name: str) -> str | None:
        """One of the collection's files, packed or not, that holds anything."""
        path = self._layout()[1].get(name)
        try:
            return path if path is not None and os.path.getsize(path) else None
        except OSError:
            return None

    def guideline(self) -> str:
        """What assessors are told; empty where nobody wrote it down."""
        path = self.guideline_file()
        if path is None:
            return ""

        def read(path: str) -> str:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read(LONGEST_GUIDELINE)

        return self._once("guideline", path, read)

    def guideline_file(self) -> str | None:
        """The file that holds it: in the folder, or in the collection's."""
        folders = dict.fromkeys(folder for folder in (self.folder, self.home) if folder is not None)
        paths = (os.path.join(folder, name) for folder in folders for name in GUIDELINES)
        return next(filter(os.path.isfile, paths), None)

    def shelf(self, progress: Callable[[int, int | None], None] | None = None) -> Shelf | None:
        """The documents by id, from an index in the state folder; None where there are no documents."""
        from cranfield.formats.shelf import open_shelf

        if self.collection is None:
            return None
        return open_shelf(self.collection, _own_folder(os.path.join(self.state, "shelf")), progress)

    def _once(self, what: str, path: str, read: Callable[[str], T]) -> T:
        """What a file says, read again when the file has changed."""
        mark = mark_of(path)
        with self._lock:
            known = self._read.get(f"{what} {path}")
        if known is not None and known[0] == mark:
            value: T = known[1]
            return value
        value = read(path)
        with self._lock:
            self._read[f"{what} {path}"] = mark, value
        return value

    # runs

    @property
    def runs_folder(self) -> str:
        """Where the runs lie."""
        return os.path.join(self.folder, "runs")

    def runs(self) -> list[RunFile]:
        """The runs by name."""
        return listed(self.runs_folder)

    def run(self, name: str) -> RunFile:
        """A run by its name, or its file's; only those that are listed are found."""
        files = self.runs()
        for file in files:
            if name in (file.name, os.path.basename(file.path)):
                return file
        there = ", ".join(file.name for file in files[:10]) or "none"
        more = f" and {len(files) - 10} more" if len(files) > 10 else ""
        raise DataError(f"there is no run {shortened(name)!r}; there are: {there}{more}")

    def hash_of(self, run: RunFile) -> str:
        """The SHA-256 of a run's file."""
        return self.hashes.of(run.path)

    def add_run(self, name: str, data: Iterable[bytes], limit: int = UPLOAD) -> Upload:
        """Add a run under a file name, if it can be read and nothing in it is wrong: see `workspace.uploads`."""
        from cranfield.workspace.uploads import add_run

        return add_run(self.runs_folder, self.state, name, data, limit, self.qrels)

    # the log

    def versions(self) -> list[Version]:
        """The frozen qrels, the oldest first."""
        from cranfield.judge.versions import all_versions

        return all_versions(self.log)

    def rounds(self) -> list[RoundStatus]:
        """How far every round is, the oldest first."""
        from cranfield.judge.status import round_statuses

        return round_statuses(self.log)

    def newer(self, place: int, of_models: bool = False) -> int:
        """How many labels of people, or of all, and other events that can change a result came since a place of the log."""
        from sqlalchemy import func, select

        from cranfield.judge.policy import PEOPLE
        from cranfield.store.tables import events

        query = select(func.count()).where(events.c.seq > place, events.c.kind.in_(WEIGHTY))
        if not of_models:
            query = query.where(events.c.source.in_(PEOPLE))
        with self.database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def settled(self) -> int:
        """The place of the log before which nothing is still on its way."""
        if self.database.dialect != "postgresql":
            return self.log.place()

        def work(transaction: Any) -> int:
            transaction.alone()
            place: int = transaction.place()
            return place

        return self.log.write(work)


def _own_folder(path: str) -> str:
    """A folder for nobody else's eyes, made where it is not."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        if os.path.islink(path):
            raise DataError(f"{path}: expected a folder, found a link; remove it")
        if stat.S_IMODE(os.stat(path).st_mode) != 0o700:
            os.chmod(path, 0o700)
    except OSError as error:
        raise DataError(f"{path}: cannot be made: {reason(error)}") from None
    return path

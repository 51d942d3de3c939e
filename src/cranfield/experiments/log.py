"""An event log: a folder of Parquet files by day, and segments of events that are not yet compacted.

    LOG/day=2026-03-01/….parquet    compacted events by their own day; a late event adds a file to its day
    LOG/segments/….jsonl            events that are on disk and not yet compacted
    LOG/reused.jsonl                events left out because their id belonged to another event
    LOG/manifest.json               the files of each day with number of events and hash (`experiments.log_files`)
    LOG/units.json                  whether units are pseudonyms, and the fingerprint of their key (`experiments.privacy`)

Appending is idempotent: an event sent twice counts once. Compaction writes the files of each day under another name, moves
them into place and only then removes the segments. Duplicates are looked for within the day. A kill at any point leaves at worst
events in both places; every reader, and the next compaction, counts them once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from copy import copy
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cranfield.base.errors import BadLineError, DataError, UnavailableError
from cranfield.base.notifications import say
from cranfield.base.parameters import shortened
from cranfield.experiments.log_files import (
    DAY,
    FOLDER,
    FileContent,
    Manifest,
    ManifestChecker,
    SegmentWriter,
    exclusive_lock,
    is_open_segment,
    manifest_paths,
    read_manifest,
    replace_file,
    segments_in,
    start_of_segment,
    whole_lines,
    write_manifest,
)
from cranfield.formats.event_files.format import FIELDS, arrow_schema, imported
from cranfield.formats.frames import arrow_in_words
from cranfield.formats.streams import sweep, sync_folder, synced_file, unfinished, write_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from cranfield.experiments.event import UserEvent

PART = ".parquet"
REUSED = "reused.jsonl"
UNCHECKED = (
    "has no manifest, so missing or changed files would not be noticed; "
    "the next ingest, compaction or erasure writes one"
)
UNFINISHED = r"\..+\.(?:parquet|jsonl)\."  # the beginning of temporary files' names
BATCH = 10_000  # rows read at a time
AT_ONCE = 64_000_000  # bytes of segments compacted together
TOGETHER = timedelta(hours=1)  # at most between the first and the last of these segments
CONTENT = [name for name in FIELDS if name != "event_id"]
TRANSFORM = json.dumps(
    {
        name: ["VARCHAR"] if kind == "VARCHAR[]" else "VARCHAR" if name == "time" else kind
        for name, kind in FIELDS.items()
    }
)
LINES = f"""
    SELECT n, time::DATE AS day, * REPLACE (time::TIMESTAMP AS time)
    FROM (SELECT n, unnest(json_transform(line, '{TRANSFORM}')) FROM cranfield_lines)
"""
COLUMNS = ", ".join([*FIELDS, "day"])
PACKED = (
    f"SELECT {COLUMNS.replace('time', 'make_timestamp(epoch_us(time)) AS time')} "
    "FROM read_parquet({files}, hive_partitioning = true, hive_types = {{'day': DATE}})"
)
DIFFERS = " OR ".join(f"a.{name} IS DISTINCT FROM b.{name}" for name in CONTENT)


class ReusedId(NamedTuple):
    """An event that was left out because its id belongs to another event: its row, id and day."""

    row: int
    event_id: str
    day: str


class CompactionResult(NamedTuple):
    """What a compaction did: new events, duplicates, ids used for two events, files written, days."""

    new: int = 0
    repeats: int = 0
    reused: tuple[ReusedId, ...] = ()
    files: int = 0
    days: tuple[str, ...] = ()

    def and_(self, other: CompactionResult) -> CompactionResult:
        """The sum of two results."""
        new, repeats, reused = self.new + other.new, self.repeats + other.repeats, self.reused + other.reused
        days = tuple(sorted({*self.days, *other.days}))
        return CompactionResult(new, repeats, reused, self.files + other.files, days)


class EventSource(Protocol):
    """Anything that provides events as a DuckDB table."""

    def relation(self, connection: DuckDBPyConnection) -> DuckDBPyRelation:
        """All events, each once, as columns of the schema and `day`."""

    def files(self) -> list[str]:
        """The Parquet files that the events are read from."""


class EventLog(AbstractContextManager["EventLog"]):
    """A folder of events. Several processes may append and read; compactions wait for each other."""

    by: datetime | None = None  # if set, events in files begun later are not read

    def __init__(self, folder: str | os.PathLike[str], create: bool = False) -> None:
        self.folder = os.fspath(folder)
        if not self.folder:
            raise DataError("expected the folder of a log, found an empty name")
        self.segments = os.path.join(self.folder, FOLDER)
        if not os.path.isdir(self.segments):
            _refuse_other(self.folder, create)
        self._writer = SegmentWriter(self.segments)
        self._checker = ManifestChecker(self.folder)

    def __exit__(self, *_: object) -> None:
        self.close()

    # appending

    def append(self, events: Iterable[UserEvent]) -> None:
        """Append events; they are on disk when it returns. On UnavailableError none is stored."""
        self.append_lines([f"{event.line()}\n".encode() for event in events])

    def append_lines(self, lines: Sequence[bytes]) -> None:
        """Append events as JSON lines, each with its end, with one sync. Makes the folder if it is missing."""
        if lines:
            self.make()
        self._writer.append(lines)

    def make(self) -> None:
        """Make the folder if it is missing."""
        if os.path.isdir(self.segments):
            return
        with write_errors(self.folder, UnavailableError):
            os.makedirs(self.segments, exist_ok=True)
            sync_folder(self.folder)

    def seal(self) -> None:
        """Seal the current segment, so that it can be compacted."""
        self._writer.seal()

    def close(self) -> None:
        """Seal the current segment and release its lock."""
        self._writer.seal()

    # compaction

    def pack(self) -> CompactionResult:
        """Compact all sealed segments into Parquet."""
        packed = CompactionResult()
        if not os.path.isdir(self.segments):
            return packed
        with self.alone():
            ready = [path for path in segments_in(self.segments) if not is_open_segment(path)]
            for paths in _in_groups(ready):
                packed = packed.and_(self._pack(paths))
        return packed

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock for changing Parquet files, after removing the temporary files of killed processes.

        A log of an earlier version gets its manifest here.
        """
        with exclusive_lock(os.path.join(self.folder, ".lock")):
            days = [name for name in os.listdir(self.folder) if name.startswith(DAY)]
            for name in (FOLDER, "", *days):
                sweep(os.path.join(self.folder, name), UNFINISHED)
            self._settle()
            yield

    def _settle(self) -> None:
        """Write the manifest if there is none yet, or if a change was interrupted."""
        manifest = read_manifest(self.folder)
        if manifest is None:
            paths = manifest_paths(self.folder, self.files())
            write_manifest(self.folder, Manifest({path: self._checker.content(path) for path in paths}))
        elif manifest.changing:
            write_manifest(self.folder, self._checker.settled(manifest))

    def _pack(self, paths: Sequence[str]) -> CompactionResult:
        connection = connect()
        lines = [(path, line) for path in paths for line in whole_lines(path)]
        try:
            packed = find_new_events(connection, [line for _, line in lines], self.checked_parts(quick=True))
        except (ValueError, imported("duckdb").Error) as error:
            _refuse_torn(lines)
            with self.in_words():
                raise error from None
        name = f"{os.path.basename(paths[-1]).partition('.')[0]}{PART}"
        query = f"SELECT {', '.join(FIELDS)} FROM cranfield_new WHERE day = ? ORDER BY n"
        self.change_parts(
            (self._free_path(day, name), connection.sql(query, params=[day]).to_arrow_table().cast(arrow_schema()))
            for day in packed.days
        )
        self._note_reused(packed.reused)
        for path in paths:
            os.unlink(path)
        sync_folder(self.segments)
        return packed

    def _free_path(self, day: str, name: str) -> str:
        """An unused path for a new file of a day."""
        folder = os.path.join(self.folder, f"{DAY}{day}")
        base, number = name.removesuffix(PART), 0
        while os.path.exists(os.path.join(folder, name)):  # left by an interrupted compaction
            number += 1
            name = f"{base}-{number}{PART}"
        return os.path.join(folder, name)

    def change_parts(self, tables: Iterable[tuple[str, Any]]) -> None:
        """Write the Parquet files of days (or remove those whose table is None) and the manifest; only within `alone`.

        If the disk is full, all files stay as they were.
        """
        staged: dict[str, str] = {}  # the hidden path of each new file by its final path
        changes: dict[str, FileContent | None] = {}
        with write_errors(self.folder, UnavailableError), ExitStack() as files:
            for path, table in tables:
                [name] = manifest_paths(self.folder, [path])
                if table is not None:
                    staged[path] = files.enter_context(unfinished(path))
                changes[name] = None if table is None else self._stage(path, table, staged[path])
            if not changes:
                return
            manifest = read_manifest(self.folder) or Manifest()
            write_manifest(self.folder, Manifest(manifest.files, changes))
            for name in changes:
                path = os.path.join(self.folder, name)
                if path in staged:
                    os.replace(staged[path], path)
                else:
                    os.unlink(path)
            for folder in {os.path.dirname(os.path.join(self.folder, name)) for name in changes}:
                sync_folder(folder)
            write_manifest(self.folder, manifest.after(changes))

    def _stage(self, path: str, table: Any, hidden: str) -> FileContent:
        """Write a table as Parquet to a hidden path next to its final one; returns its counts and its hash."""
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            sync_folder(self.folder)
        sink = imported("pyarrow").BufferOutputStream()
        imported("pyarrow.parquet").write_table(table, sink, compression="zstd")
        data = sink.getvalue()
        with write_errors(path, UnavailableError), synced_file(hidden) as file:
            file.write(data)
        return FileContent(len(table), data.size, hashlib.sha256(data).hexdigest())

    def _note_reused(self, reused: Sequence[ReusedId]) -> None:
        if not reused:
            return
        path = os.path.join(self.folder, REUSED)
        entries = {(each["event_id"], each["day"]): None for each in self.reused()}
        entries |= {(each.event_id, each.day): None for each in reused}
        lines = [json.dumps({"event_id": event_id, "day": day}, ensure_ascii=False) + "\n" for event_id, day in entries]
        replace_file(path, "".join(lines).encode())

    # reading

    def parts(self) -> dict[str, list[str]]:
        """The Parquet files of each day."""
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        days = sorted(name.removeprefix(DAY) for name in names if name.startswith(DAY))
        parts = {day: _files_in(os.path.join(self.folder, f"{DAY}{day}")) for day in days}
        return {day: files for day, files in parts.items() if files}

    def checked_parts(self, quick: bool = False) -> dict[str, list[str]]:
        """The Parquet files of each day, checked against the manifest: DataError if one is missing, changed or foreign.

        `quick` compares sizes, not hashes. A note says so if the log has no manifest, as in earlier versions.
        """
        while True:
            manifest, parts = read_manifest(self.folder), self.parts()
            if manifest is None:
                if parts:
                    say([f"{self.folder}: {UNCHECKED}"])
                return parts
            try:
                paths = manifest_paths(self.folder, (file for files in parts.values() for file in files))
                there = {*self._checker.refuse_other(manifest, paths, quick)}
            except DataError:
                if read_manifest(self.folder) == manifest:
                    raise
                continue  # another process compacted or erased meanwhile
            return {
                day: [file for file in files if manifest_paths(self.folder, [file])[0] in there]
                for day, files in parts.items()
            }

    def days(self) -> list[str]:
        """The days that have compacted events."""
        return list(self.parts())

    def reused(self) -> list[dict[str, str]]:
        """The id and day of each event that was left out because its id belongs to another event."""
        path = os.path.join(self.folder, REUSED)
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def waiting(self) -> list[bytes]:
        """The lines of all segments, including open ones."""
        lines: list[bytes] = []
        for path in self._in_time(segments_in(self.segments)):
            with suppress(FileNotFoundError):  # compacted meanwhile: its events are in the days, which are read next
                lines += whole_lines(path)
        return lines

    def as_of(self, time: datetime) -> EventLog | None:
        """The log as it was at some time, without the files begun later; None if these are none of the files, or all.

        A segment begun before that time and sealed after it is included; a service seals one every few minutes.
        """
        earlier, files = copy(self), [*segments_in(self.segments), *self.files()]
        earlier.by = time
        return earlier if earlier._in_time(files) not in (files, []) else None

    def _in_time(self, files: Iterable[str]) -> list[str]:
        """The segments, or the Parquet files made from them, that were begun no later than `by`; their names hold the time."""
        return [file for file in files if self.by is None or (start_of_segment(file) or self.by) <= self.by]

    def state(self) -> str:
        """A hash that changes when events are compacted or erased, and when a segment begins or has doubled.

        With every event it would change too often: what is computed for a state while a service writes would never be used.
        """
        facts: list[str] = []
        with suppress(FileNotFoundError):  # compacted or erased meanwhile: the next hash differs
            facts += [f"{path} {os.path.getsize(path).bit_length()}" for path in segments_in(self.segments)]
            facts += [f"{path} {os.path.getmtime(path)} {os.path.getsize(path)}" for path in self.files()]
        return hashlib.sha256("\n".join(facts).encode("utf-8", "surrogateescape")).hexdigest()

    def relation(self, connection: DuckDBPyConnection) -> DuckDBPyRelation:
        """All events, each once, as columns of the schema and `day`; time is a TIMESTAMP in UTC.

        Events in segments are copied into a table of the connection; call it again to see later ones.
        """
        query = self.query(connection)
        with self.in_words():
            return connection.sql(query)

    def in_words(self) -> AbstractContextManager[None]:
        """Turn errors of DuckDB into a DataError that names the damaged file of the log."""
        return duckdb_in_words(self.folder, self.files())

    def files(self) -> list[str]:
        """The Parquet files of all days."""
        return [file for files in self.parts().values() for file in files]

    def query(self, connection: DuckDBPyConnection) -> str:
        """The SQL of `relation`."""
        waiting = self.waiting()  # before the days: events compacted meanwhile are then in both, and counted once
        parts = {day: self._in_time(files) for day, files in self.checked_parts().items()}
        with self.in_words():
            find_new_events(connection, waiting, parts)
        files = [file for day in parts.values() for file in day]
        packed = f"{_packed_events(files)} UNION ALL " if files else ""
        return f"{packed}SELECT {COLUMNS} FROM cranfield_new"

    def events(self) -> Iterator[dict[str, Any]]:
        """All events as rows, by time."""
        connection = connect()
        columns = ", ".join(FIELDS).replace("time", f"strftime(time, '{ISO}')")
        query = self.query(connection)
        with self.in_words():
            connection.execute(f"SELECT {columns} FROM ({query}) ORDER BY time, event_id")
        while True:
            with self.in_words():
                rows = connection.fetchmany(BATCH)
            if not rows:
                return
            for row in rows:
                yield {name: value for name, value in zip(FIELDS, row, strict=True) if value is not None}

    def counts(self) -> dict[str, int]:
        """The number of events of each kind."""
        relation = self.relation(connect())
        with self.in_words():
            return dict(relation.aggregate("kind, count(*) AS n", "kind").order("kind").fetchall())

    def __len__(self) -> int:
        return sum(self.counts().values())


def find_new_events(
    connection: DuckDBPyConnection, lines: Sequence[bytes], parts: Mapping[str, Sequence[str]]
) -> CompactionResult:
    """Put the lines that are missing from the files of their day into the table cranfield_new; count the others."""
    arrow = imported("pyarrow")
    numbers = arrow.array(range(len(lines)), arrow.int64())
    table = arrow.table({"n": numbers, "line": arrow.array([line.decode() for line in lines], arrow.string())})
    connection.register("cranfield_lines", table)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE cranfield_fresh AS {LINES}")
    connection.unregister("cranfield_lines")
    days = [str(day) for (day,) in connection.execute("SELECT DISTINCT day FROM cranfield_fresh").fetchall()]
    files = [file for day in days for file in parts.get(day, ())]
    before = _packed_events(files) if files else f"SELECT {COLUMNS} FROM cranfield_fresh WHERE false"
    first = "SELECT * FROM cranfield_fresh QUALIFY row_number() OVER (PARTITION BY day, event_id ORDER BY n) = 1"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE cranfield_first AS {first}")
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE cranfield_known AS "
        f"SELECT * FROM ({before}) SEMI JOIN cranfield_first USING (day, event_id)"
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE cranfield_new AS "
        "SELECT * FROM cranfield_first ANTI JOIN cranfield_known USING (day, event_id)"
    )
    current = "SELECT * FROM cranfield_known UNION ALL BY NAME SELECT * EXCLUDE n FROM cranfield_new"
    reused = connection.execute(
        f"SELECT a.n, a.event_id, a.day::VARCHAR FROM cranfield_fresh a JOIN ({current}) b USING (day, event_id) "
        f"WHERE {DIFFERS} ORDER BY a.n"
    ).fetchall()
    counts = connection.execute("SELECT day::VARCHAR, count(*) FROM cranfield_new GROUP BY day ORDER BY 1").fetchall()
    new, new_days = sum(count for _, count in counts), tuple(day for day, _ in counts)
    reused_ids = tuple(ReusedId(*each) for each in reused)
    return CompactionResult(new, len(lines) - new - len(reused), reused_ids, len(counts), new_days)


def _packed_events(files: Sequence[str]) -> str:
    """A query for the events of some Parquet files; special characters in their names are escaped."""
    names = (re.sub(r"([*?\[])", r"[\1]", file).replace("'", "''") for file in files)
    return PACKED.format(files="[" + ", ".join(f"'{name}'" for name in names) + "]")


def _refuse_torn(lines: Sequence[tuple[str, bytes]]) -> None:
    """Raise BadLineError for the first line of a segment that is not JSON."""
    for number, (path, line) in enumerate(lines, 1):
        try:
            json.loads(line)
        except ValueError as error:
            within = number - next(first for first, (other, _) in enumerate(lines) if other == path)
            raise BadLineError(path, within, f"expected an event, found {shortened(ascii(line))} ({error})") from None


ISO = "%Y-%m-%dT%H:%M:%S.%fZ"


def connect() -> DuckDBPyConnection:
    """An in-memory DuckDB connection that downloads no extensions."""
    connection: DuckDBPyConnection = imported("duckdb").connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    return connection


@contextmanager
def duckdb_in_words(where: str, files: Sequence[str] = ()) -> Iterator[None]:
    """Turn an error of DuckDB into a DataError that names a damaged Parquet file, if one of `files` is."""
    try:
        yield
    except imported("duckdb").Error as error:
        for file in files:
            refuse_damaged(file)
        raise DataError(f"{where}: DuckDB cannot compute this: {str(error).splitlines()[0]}") from error


def refuse_damaged(path: str) -> None:
    """Read a Parquet file to its end; DataError if it is damaged."""
    with arrow_in_words(path), imported("pyarrow.parquet").ParquetFile(path) as file:
        for _ in file.iter_batches():
            pass


def _refuse_other(folder: str, create: bool) -> None:
    """Raise DataError if a path is not an event log, or does not exist and shall not be created."""
    inside = os.listdir(folder) if os.path.isdir(folder) else []
    if FOLDER in inside:  # another process has just made it
        return
    if inside or os.path.isfile(folder):
        expected = f"expected a folder that contains {FOLDER}/{', or a new name' * create}"
        way = "" if inside or create else "; cranfield online ingest makes a log of a file with events"
        raise DataError(f"{folder}: not an event log; {expected}{way}")
    if not create:
        raise DataError(f"{folder}: no such log; cranfield online ingest makes one")


def _files_in(folder: str) -> list[str]:
    names = sorted(name for name in os.listdir(folder) if name.endswith(PART) and not name.startswith("."))
    return [os.path.join(folder, name) for name in names]


def _in_groups(paths: Sequence[str]) -> Iterator[list[str]]:
    """Groups of segments to compact together: of limited size, and begun within an hour, as a file name holds one time."""
    group: list[str] = []
    size = 0
    for path in paths:
        first, second = start_of_segment(group[0] if group else path), start_of_segment(path)
        apart = first is not None and second is not None and second - first > TOGETHER
        if apart or size > AT_ONCE:
            yield group
            group, size = [], 0
        group.append(path)
        size += os.path.getsize(path)
    if group:
        yield group

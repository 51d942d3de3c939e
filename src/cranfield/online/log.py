"""A log of events: a folder of Parquet by the event's own day, and segments that are yet to be packed.

    LOG/day=2026-03-01/….parquet    packed events; a late event adds a file to its old day
    LOG/segments/….jsonl            events that are on disk and not yet packed
    LOG/reused.jsonl                events left out, as their id stood for another one before
    LOG/manifest.json               the files of each day, how many events each has, and its hash (`online.manifest`)
    LOG/units.json                  whether units are pseudonyms, and the fingerprint of their key (`online.privacy`)

Packing writes the files of each day under another name, moves them into place and only then removes the segments.
Repeats are sought within the day, so that a kill anywhere leaves at worst events that are in both places, which the next
packing, and every reader meanwhile, counts once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from cranfield.errors import BadLineError, DataError, UnavailableError
from cranfield.formats.arrow import arrow_in_words
from cranfield.formats.events.format import FIELDS, arrow_schema, imported
from cranfield.formats.streams import name_beside, reason, sweep
from cranfield.hearing import say
from cranfield.online.manifest import DAY, Checker, Content, Manifest, listed, read_manifest, write_manifest
from cranfield.online.segments import (
    FOLDER,
    Writer,
    alone,
    begun_at,
    is_written_to,
    replace_file,
    segments_in,
    sync_folder,
    whole_lines,
)
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from cranfield.online.event import Event

PART = ".parquet"
REUSED = "reused.jsonl"
UNCHECKED = (
    "has no manifest, so that missing or changed files of its days would not be noticed; "
    "the next ingest, packing or erasure writes one"
)
UNFINISHED = r"\..+\.(?:parquet|jsonl)\."  # how the names of such files begin
BATCH = 10_000  # rows read at a time
AT_ONCE = 64_000_000  # bytes of segments packed together
TOGETHER = timedelta(hours=1)  # from the first to the last of these
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


class Reuse(NamedTuple):
    """An event that was left out, as its id was another event's before: the how-manieth of those looked at, its id and day."""

    row: int
    event_id: str
    day: str


class Packed(NamedTuple):
    """What packing did: events that are new, those that were there before, ids that stood for another event, files written."""

    new: int = 0
    repeats: int = 0
    reused: tuple[Reuse, ...] = ()
    files: int = 0
    days: tuple[str, ...] = ()

    def and_(self, other: Packed) -> Packed:
        """Both together."""
        days = tuple(sorted({*self.days, *other.days}))
        return Packed(
            self.new + other.new,
            self.repeats + other.repeats,
            self.reused + other.reused,
            self.files + other.files,
            days,
        )


class EventSource(Protocol):
    """Anything that has events as a table."""

    def relation(self, connection: DuckDBPyConnection) -> DuckDBPyRelation:
        """All events, each once, as columns of the schema and `day`."""

    def files(self) -> list[str]:
        """The Parquet files that the events are read from."""


class Log:
    """A folder of events. Several processes may append and read; packing waits for other packings."""

    def __init__(self, folder: str | os.PathLike[str], create: bool = False) -> None:
        self.folder = os.fspath(folder)
        if not self.folder:
            raise DataError("expected the folder of a log, found an empty name")
        self.segments = os.path.join(self.folder, FOLDER)
        if not os.path.isdir(self.segments):
            _refuse_other(self.folder, create)
        self._writer = Writer(self.segments)
        self._checker = Checker(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # adding

    def append(self, events: Iterable[Event]) -> int:
        """Add events; when it returns, they are on disk. UnavailableError where they cannot be, and none is kept."""
        lines = [f"{event.line()}\n".encode() for event in events]
        self.append_lines(lines)
        return len(lines)

    def append_lines(self, lines: Sequence[bytes]) -> None:
        """Add events that are lines already, each with its end; one sync for all. The first make the folder."""
        if lines:
            self.make()
        self._writer.append(lines)

    def make(self) -> None:
        """Make the folder where there is none."""
        if os.path.isdir(self.segments):
            return
        try:
            os.makedirs(self.segments, exist_ok=True)
            sync_folder(self.folder)
        except OSError as error:
            raise UnavailableError(f"{self.folder}: cannot be written: {reason(error)}") from error

    def seal(self) -> None:
        """End the segment that is written to, so that it can be packed."""
        self._writer.seal()

    def close(self) -> None:
        """Leave nothing locked; what was added stays."""
        self._writer.seal()

    # packing

    def pack(self) -> Packed:
        """Make Parquet of all segments that nobody writes to any more."""
        packed = Packed()
        if not os.path.isdir(self.segments):
            return packed
        with self.alone():
            ready = [path for path in segments_in(self.segments) if not is_written_to(path)]
            for paths in _in_groups(ready):
                packed = packed.and_(self._pack(paths))
        return packed

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock of whoever changes what is packed; what killed ones left unfinished is removed or settled first.

        A log of before gets its manifest here.
        """
        with alone(os.path.join(self.folder, ".lock")):
            days = [name for name in os.listdir(self.folder) if name.startswith(DAY)]
            for name in (FOLDER, "", *days):
                sweep(os.path.join(self.folder, name), UNFINISHED)
            self._settle()
            yield

    def _settle(self) -> None:
        """Let the manifest say what is there, where there is none yet or a change was interrupted."""
        manifest = read_manifest(self.folder)
        if manifest is None:
            paths = listed(self.folder, (file for files in self.parts().values() for file in files))
            write_manifest(self.folder, Manifest({path: self._checker.content(path) for path in paths}))
        elif manifest.changing:
            write_manifest(self.folder, self._checker.settled(manifest))

    def _pack(self, paths: Sequence[str]) -> Packed:
        connection = connect()
        lines = [(path, line) for path in paths for line in whole_lines(path)]
        try:
            packed = sort_out(connection, [line for _, line in lines], self.checked_parts(quick=True))
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
        """A path for a new file of a day."""
        folder = os.path.join(self.folder, f"{DAY}{day}")
        base, number = name.removesuffix(PART), 0
        while os.path.exists(os.path.join(folder, name)):  # an interrupted packing got so far
            number += 1
            name = f"{base}-{number}{PART}"
        return os.path.join(folder, name)

    def change_parts(self, tables: Iterable[tuple[str, Any]]) -> None:
        """Write files of days, or remove those whose table is None, and the manifest with them; within `alone`.

        Where something does not fit on the disk, the files are as they were.
        """
        staged: dict[str, str] = {}  # where the new files lie, by where they go
        changes: dict[str, Content | None] = {}
        try:
            for path, table in tables:
                [name] = listed(self.folder, [path])
                changes[name] = None if table is None else self._stage(path, table, staged)
            if not changes:
                return
            manifest = read_manifest(self.folder) or Manifest()
            write_manifest(self.folder, manifest.about_to(changes))
            for name in changes:
                path = os.path.join(self.folder, name)
                if path in staged:
                    os.replace(staged.pop(path), path)
                else:
                    os.unlink(path)
            for folder in {os.path.dirname(os.path.join(self.folder, name)) for name in changes}:
                sync_folder(folder)
            write_manifest(self.folder, manifest.after(changes))
        except OSError as error:
            raise UnavailableError(f"{self.folder}: cannot be written: {reason(error)}") from error
        finally:
            for beside in staged.values():
                with suppress(OSError):
                    os.unlink(beside)

    def _stage(self, path: str, table: Any, staged: dict[str, str]) -> Content:
        """Write a table as Parquet beside its place; what it holds."""
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            sync_folder(self.folder)
        sink = imported("pyarrow").BufferOutputStream()
        imported("pyarrow.parquet").write_table(table, sink, compression="zstd")
        data = sink.getvalue()
        beside = staged[path] = name_beside(path)
        try:
            with open(beside, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UnavailableError(f"{path}: cannot be written: {reason(error)}") from error
        return Content(len(table), data.size, hashlib.sha256(data).hexdigest())

    def _note_reused(self, reused: Sequence[Reuse]) -> None:
        if not reused:
            return
        path = os.path.join(self.folder, REUSED)
        told = {(each["event_id"], each["day"]): None for each in self.reused()}
        told |= {(each.event_id, each.day): None for each in reused}
        lines = [json.dumps({"event_id": event_id, "day": day}, ensure_ascii=False) + "\n" for event_id, day in told]
        replace_file(path, lambda file: file.write("".join(lines).encode()))

    # reading

    def parts(self) -> dict[str, list[str]]:
        """The Parquet files of each day."""
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        days = sorted(name.removeprefix(DAY) for name in names if name.startswith(DAY))
        parts = {day: _files_in(os.path.join(self.folder, f"{DAY}{day}")) for day in days}
        return {day: files for day, files in parts.items() if files}

    def checked_parts(self, quick: bool = False) -> dict[str, list[str]]:
        """The same, held against the manifest: DataError where a file is missing, cut, changed or not of this log.

        `quick` compares sizes and no hashes. A log of before has no manifest, and whoever listens hears so.
        """
        while True:
            manifest, parts = read_manifest(self.folder), self.parts()
            if manifest is None:
                if parts:
                    say([f"{self.folder}: {UNCHECKED}"])
                return parts
            try:
                paths = listed(self.folder, (file for files in parts.values() for file in files))
                there = {*self._checker.refuse_other(manifest, paths, quick)}
            except DataError:
                if read_manifest(self.folder) == manifest:
                    raise
                continue  # somebody packed or erased between two looks
            return {
                day: [file for file in files if listed(self.folder, [file])[0] in there] for day, files in parts.items()
            }

    def days(self) -> list[str]:
        """The days that have packed events."""
        return list(self.parts())

    def reused(self) -> list[dict[str, str]]:
        """The id and day of each event that was left out because its id stood for another one before."""
        path = os.path.join(self.folder, REUSED)
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def waiting(self, by: datetime | None = None) -> list[bytes]:
        """The lines of all segments, those that are written to as well; or of those that were begun by some time."""
        lines: list[bytes] = []
        for path in segments_in(self.segments):
            if by is not None and _begun_after(path, by):
                continue
            try:
                lines += whole_lines(path)
            except FileNotFoundError:  # packed meanwhile: its events are in the days, which are looked at next
                continue
        return lines

    def as_of(self, time: datetime) -> LogAsOf | None:
        """The log as it was at some time; None where nothing was added to it since."""
        files = [*segments_in(self.segments), *(file for day in self.parts().values() for file in day)]
        return LogAsOf(self, time) if any(_begun_after(file, time) for file in files) else None

    def relation(self, connection: DuckDBPyConnection) -> DuckDBPyRelation:
        """All events, each once, packed or not, as columns of the schema and `day`; time is a TIMESTAMP in UTC.

        Events not yet packed are copied into a table of the connection; ask again to see later ones.
        """
        query = self.query(connection)
        with self.in_words():
            return connection.sql(query)

    def in_words(self) -> AbstractContextManager[None]:
        """Say in a sentence what DuckDB stumbles over, and name the file of the log that is damaged."""
        return duckdb_in_words(self.folder, self.files())

    def files(self) -> list[str]:
        """The Parquet files of all days."""
        return [file for files in self.parts().values() for file in files]

    def query(self, connection: DuckDBPyConnection, by: datetime | None = None) -> str:
        """The SQL of `relation`; of the files that were begun by some time."""
        waiting = self.waiting(by)  # before the days: what is packed meanwhile is then in both, and counted once
        parts = self.checked_parts()
        if by is not None:
            parts = {day: [file for file in files if not _begun_after(file, by)] for day, files in parts.items()}
        with self.in_words():
            sort_out(connection, waiting, parts)
        files = [file for day in parts.values() for file in day]
        packed = f"{_packed(files)} UNION ALL " if files else ""
        return f"{packed}SELECT {COLUMNS} FROM cranfield_new"

    def events(self) -> Iterator[dict[str, Any]]:
        """All events as rows, by time."""
        connection = connect()
        told = ", ".join(FIELDS).replace("time", f"strftime(time, '{ISO}')")
        query = self.query(connection)
        with self.in_words():
            connection.execute(f"SELECT {told} FROM ({query}) ORDER BY time, event_id")
        while rows := self._some(connection):
            for row in rows:
                yield {name: value for name, value in zip(FIELDS, row, strict=True) if value is not None}

    def _some(self, connection: DuckDBPyConnection) -> list[tuple[Any, ...]]:
        with self.in_words():
            return connection.fetchmany(BATCH)

    def counts(self) -> dict[str, int]:
        """How many events there are of each kind."""
        relation = self.relation(connect())
        with self.in_words():
            return dict(relation.aggregate("kind, count(*) AS n", "kind").order("kind").fetchall())

    def __len__(self) -> int:
        return sum(self.counts().values())


@dataclass(frozen=True)
class LogAsOf:
    """A log as it was at some time: without the files that were begun later, and so without what arrived later.

    A segment that was begun before and ended after counts as begun: a service ends one every few minutes.
    """

    log: Log
    time: datetime

    def relation(self, connection: DuckDBPyConnection) -> DuckDBPyRelation:
        """The events that had arrived, as `Log.relation` has all of them."""
        query = self.log.query(connection, self.time)
        with self.log.in_words():
            return connection.sql(query)

    def files(self) -> list[str]:
        """The Parquet files of the log."""
        return self.log.files()


def _begun_after(path: str, time: datetime) -> bool:
    """Whether a segment, or the part that was packed from it, was begun after some time; its name says when."""
    begun = begun_at(path)
    return begun is not None and begun > time


def sort_out(connection: DuckDBPyConnection, lines: Sequence[bytes], parts: Mapping[str, Sequence[str]]) -> Packed:
    """Put those of some lines that the files of their day lack into the table cranfield_new; say what the others are."""
    arrow = imported("pyarrow")
    numbers = arrow.array(range(len(lines)), arrow.int64())
    given = arrow.table({"n": numbers, "line": arrow.array([line.decode() for line in lines], arrow.string())})
    connection.register("cranfield_lines", given)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE cranfield_fresh AS {LINES}")
    connection.unregister("cranfield_lines")
    days = [str(day) for (day,) in connection.execute("SELECT DISTINCT day FROM cranfield_fresh").fetchall()]
    files = [file for day in days for file in parts.get(day, ())]
    before = _packed(files) if files else f"SELECT {COLUMNS} FROM cranfield_fresh WHERE false"
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
    standing = "SELECT * FROM cranfield_known UNION ALL BY NAME SELECT * EXCLUDE n FROM cranfield_new"
    reused = connection.execute(
        f"SELECT a.n, a.event_id, a.day::VARCHAR FROM cranfield_fresh a JOIN ({standing}) b USING (day, event_id) "
        f"WHERE {DIFFERS} ORDER BY a.n"
    ).fetchall()
    counts = connection.execute("SELECT day::VARCHAR, count(*) FROM cranfield_new GROUP BY day ORDER BY 1").fetchall()
    new = sum(count for _, count in counts)
    return Packed(
        new,
        len(lines) - new - len(reused),
        tuple(Reuse(*each) for each in reused),
        len(counts),
        tuple(day for day, _ in counts),
    )


def _packed(files: Sequence[str]) -> str:
    """A query for the events of some Parquet files, whose names are no patterns and hold what they like."""
    names = (re.sub(r"([*?\[])", r"[\1]", file).replace("'", "''") for file in files)
    return PACKED.format(files="[" + ", ".join(f"'{name}'" for name in names) + "]")


def _refuse_torn(lines: Sequence[tuple[str, bytes]]) -> None:
    """Name the line of a segment that is no event: something else than a log has written there."""
    for number, (path, line) in enumerate(lines, 1):
        try:
            json.loads(line)
        except ValueError as error:
            within = number - next(first for first, (other, _) in enumerate(lines) if other == path)
            raise BadLineError(path, within, f"expected an event, found {shortened(ascii(line))} ({error})") from None


ISO = "%Y-%m-%dT%H:%M:%S.%fZ"


def connect() -> DuckDBPyConnection:
    """DuckDB in memory, which fetches nothing from anywhere."""
    connection: DuckDBPyConnection = imported("duckdb").connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    return connection


@contextmanager
def duckdb_in_words(where: str, files: Sequence[str] = ()) -> Iterator[None]:
    """Turn an error of DuckDB into a DataError; a damaged one among the Parquet files that it read is named."""
    try:
        yield
    except imported("duckdb").Error as error:
        for file in files:
            refuse_damaged(file)
        raise DataError(f"{where}: DuckDB cannot compute this: {str(error).splitlines()[0]}") from error


def refuse_damaged(path: str) -> None:
    """Read a Parquet file to its end; DataError if that cannot be done."""
    with arrow_in_words(path), imported("pyarrow.parquet").ParquetFile(path) as file:
        for _ in file.iter_batches():
            pass


def _refuse_other(folder: str, create: bool) -> None:
    """Stop where a folder holds something else, or there is none."""
    inside = os.listdir(folder) if os.path.isdir(folder) else []
    if FOLDER in inside:  # just made by another
        return
    if inside or os.path.isfile(folder):
        raise DataError(f"{folder}: no log of events; expected a folder with {FOLDER}/ in it, or none")
    if not create:
        raise DataError(f"{folder}: no such log; cranfield online ingest makes one")


def _files_in(folder: str) -> list[str]:
    names = sorted(name for name in os.listdir(folder) if name.endswith(PART) and not name.startswith("."))
    return [os.path.join(folder, name) for name in names]


def _in_groups(paths: Sequence[str]) -> Iterator[list[str]]:
    """Segments that are packed together: so many bytes, and begun at about the same time, which the part's name says."""
    group: list[str] = []
    size = 0
    for path in paths:
        if group and _apart(group[0], path):
            yield group
            group, size = [], 0
        group.append(path)
        size += os.path.getsize(path)
        if size > AT_ONCE:
            yield group
            group, size = [], 0
    if group:
        yield group


def _apart(one: str, other: str) -> bool:
    first, second = begun_at(one), begun_at(other)
    return first is not None and second is not None and second - first > TOGETHER

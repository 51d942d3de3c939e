"""A log of events: a folder of Parquet by the event's own day, and segments that are yet to be packed.

    LOG/day=2026-03-01/….parquet    packed events; a late event adds a file to its old day
    LOG/segments/….jsonl            events that are on disk and not yet packed
    LOG/reused.jsonl                events left out, as their id stood for another one before

Packing writes the files of each day under another name, moves them into place and only then removes the segments.
Repeats are sought within the day, so that a kill anywhere leaves at worst events that are in both places, which the next
packing, and every reader meanwhile, counts once.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from cranfield.errors import BadLineError, DataError, UnavailableError
from cranfield.formats.events.format import FIELDS, arrow_schema, imported
from cranfield.formats.streams import reason, sweep
from cranfield.online.segments import (
    FOLDER,
    Writer,
    alone,
    is_written_to,
    replace_file,
    segments_in,
    sync_folder,
    whole_lines,
)
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from cranfield.online.event import Event

DAY, PART = "day=", ".parquet"
REUSED = "reused.jsonl"
UNFINISHED = r"\..+\.(?:parquet|jsonl)\."  # how the names of such files begin
BATCH = 10_000  # rows read at a time
AT_ONCE = 64_000_000  # bytes of segments packed together
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


class Log:
    """A folder of events. Several processes may append and read; packing waits for other packings."""

    def __init__(self, folder: str | os.PathLike[str], create: bool = False) -> None:
        self.folder = os.fspath(folder)
        self.segments = os.path.join(self.folder, FOLDER)
        if not os.path.isdir(self.segments):
            _refuse_other(self.folder, create)
        self._writer = Writer(self.segments)

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
        if lines and not os.path.isdir(self.segments):
            try:
                os.makedirs(self.segments, exist_ok=True)
                sync_folder(self.folder)
            except OSError as error:
                raise UnavailableError(f"{self.folder}: cannot be written: {reason(error)}") from error
        self._writer.append(lines)

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
        """Hold the lock of whoever changes what is packed; what killed ones left unfinished is removed first."""
        with alone(os.path.join(self.folder, ".lock")):
            days = [name for name in os.listdir(self.folder) if name.startswith(DAY)]
            for name in (FOLDER, "", *days):
                sweep(os.path.join(self.folder, name), UNFINISHED)
            yield

    def _pack(self, paths: Sequence[str]) -> Packed:
        connection = connect()
        lines = [(path, line) for path in paths for line in whole_lines(path)]
        try:
            packed = sort_out(connection, [line for _, line in lines], self.parts())
        except (ValueError, imported("duckdb").Error):
            _refuse_torn(lines)
            raise
        name = f"{os.path.basename(paths[-1]).partition('.')[0]}{PART}"
        for day in packed.days:
            query = f"SELECT {', '.join(FIELDS)} FROM cranfield_new WHERE day = ? ORDER BY n"
            table = connection.sql(query, params=[day]).to_arrow_table().cast(arrow_schema())
            self._add_part(day, name, table)
        self._note_reused(packed.reused)
        for path in paths:
            os.unlink(path)
        sync_folder(self.segments)
        return packed

    def _add_part(self, day: str, name: str, table: Any) -> None:
        folder = os.path.join(self.folder, f"{DAY}{day}")
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            sync_folder(self.folder)
        base, number = name.removesuffix(PART), 0
        while os.path.exists(os.path.join(folder, name)):  # an interrupted packing got so far
            number += 1
            name = f"{base}-{number}{PART}"
        write_part(os.path.join(folder, name), table)

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

    def waiting(self) -> list[bytes]:
        """The lines of all segments, those that are written to as well."""
        lines: list[bytes] = []
        for path in segments_in(self.segments):
            try:
                lines += whole_lines(path)
            except FileNotFoundError:  # packed meanwhile: its events are in the days, which are looked at next
                continue
        return lines

    def relation(self, connection: DuckDBPyConnection) -> DuckDBPyRelation:
        """All events, each once, packed or not, as columns of the schema and `day`; time is a TIMESTAMP in UTC.

        Events not yet packed are copied into a table of the connection; ask again to see later ones.
        """
        return connection.sql(self._query(connection))

    def _query(self, connection: DuckDBPyConnection) -> str:
        waiting = self.waiting()  # before the days: what is packed meanwhile is then in both, and counted once
        parts = self.parts()
        sort_out(connection, waiting, parts)
        files = [file for day in parts.values() for file in day]
        packed = f"{_packed(files)} UNION ALL " if files else ""
        return f"{packed}SELECT {COLUMNS} FROM cranfield_new"

    def events(self) -> Iterator[dict[str, Any]]:
        """All events as rows, by time."""
        connection = connect()
        told = ", ".join(FIELDS).replace("time", f"strftime(time, '{ISO}')")
        connection.execute(f"SELECT {told} FROM ({self._query(connection)}) ORDER BY time, event_id")
        while rows := connection.fetchmany(BATCH):
            for row in rows:
                yield {name: value for name, value in zip(FIELDS, row, strict=True) if value is not None}

    def counts(self) -> dict[str, int]:
        """How many events there are of each kind."""
        rows = self.relation(connect()).aggregate("kind, count(*) AS n", "kind").order("kind").fetchall()
        return dict(rows)

    def __len__(self) -> int:
        return sum(self.counts().values())


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


def write_part(path: str, table: Any) -> None:
    """Write a table as a Parquet file, whole or not at all."""

    def write(file: BinaryIO) -> None:
        imported("pyarrow.parquet").write_table(table, file, compression="zstd")

    replace_file(path, write)


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
    """Segments that are packed together."""
    group: list[str] = []
    size = 0
    for path in paths:
        group.append(path)
        size += os.path.getsize(path)
        if size > AT_ONCE:
            yield group
            group, size = [], 0
    if group:
        yield group

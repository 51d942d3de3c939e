"""Events under the field names of our own schema: as JSON lines (one event per line) or as Parquet (one column per field)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import FormatError
from cranfield.formats.event_files.format import FIELDS, EventFormat, EventReading, arrow_schema, imported
from cranfield.formats.frames import arrow_in_words
from cranfield.formats.streams import json_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class JsonLinesEvents(EventFormat):
    """JSON lines, one event per line: `{"event_id": …, "time": …, "kind": "click", "unit": …, "search": …}`."""

    name = "jsonl"
    endings = (".jsonl", ".ndjson", ".json")

    def begins(self, head: str) -> bool:
        return head.startswith("{")

    def rows(self, reading: EventReading) -> Iterator[tuple[int, dict[str, Any]]]:
        return json_rows(reading.path, "an event as a JSON object")

    def write(self, rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
        for row in rows:
            yield json.dumps(row, ensure_ascii=False).encode() + b"\n"


DAY = "day"  # the column by which a log is split into folders
BATCH = 10_000  # rows


class ParquetEvents(EventFormat):
    """Parquet, one column per field; time as a timestamp in UTC, shown as a list, attributes as a map of texts."""

    name = "parquet"
    endings = (".parquet",)
    place = 1

    def begins(self, head: str) -> bool:
        return head.startswith("PAR1")

    def rows(self, reading: EventReading) -> Iterator[tuple[int, dict[str, Any]]]:
        with arrow_in_words(reading.path), imported("pyarrow.parquet").ParquetFile(reading.path) as file:
            unknown = [name for name in file.schema_arrow.names if name not in (*FIELDS, DAY)]
            if unknown:
                raise FormatError(f"{reading.path}: expected columns of {', '.join(FIELDS)}, found {unknown[0]!r}")
            columns = [name for name in file.schema_arrow.names if name in FIELDS]
            number = 0
            for batch in file.iter_batches(BATCH, columns=columns):
                for row in batch.to_pylist(maps_as_pydicts="strict"):
                    number += 1
                    yield number, {name: _plain(value) for name, value in row.items() if value is not None}

    def write(self, rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
        yield parquet_bytes(table_of(rows))


def table_of(rows: Iterable[dict[str, Any]]) -> Any:
    """Rows as an Arrow table of the schema."""
    arrow = imported("pyarrow")
    columns: dict[str, list[Any]] = {name: [] for name in FIELDS}
    for row in rows:
        for name, values in columns.items():
            values.append(row.get(name))
    columns["attributes"] = [None if each is None else list(each.items()) for each in columns["attributes"]]
    schema = arrow_schema()
    arrays = [
        arrow.array(values, arrow.string()).cast(schema.field(name).type)
        if name == "time"
        else arrow.array(values, schema.field(name).type)
        for name, values in columns.items()
    ]
    return arrow.Table.from_arrays(arrays, schema=schema)


def parquet_bytes(table: Any) -> bytes:
    """A table as the content of a Parquet file."""
    sink = imported("pyarrow").BufferOutputStream()
    imported("pyarrow.parquet").write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def _plain(value: Any) -> Any:
    """A time as text; any other value unchanged."""
    return value.isoformat() if hasattr(value, "isoformat") else value

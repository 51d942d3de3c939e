"""Parquet, through pyarrow (the extra `parquet`): columns found by their names, as in a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError, FormatError, MissingExtraError
from cranfield.formats.format import BOTH, NEITHER, Format, Kind, Kinds, ranked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.kernels import Strings, Table
    from cranfield.kernels.table import Buffer


class Parquet(Format):
    """The columnar files of data frames."""

    name = "parquet"
    about = "Parquet with columns named as in csv; needs pip install 'cranfield[parquet]'"
    kinds = ("run", "qrels")
    endings = (".parquet", ".pq")
    examples = {}  # no text to show

    def sniff(self, head: bytes) -> Kinds:
        """Its four first bytes; what it holds stands at the end."""
        return BOTH if head.startswith(b"PAR1") else NEITHER

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Table:
        """The columns that are needed, and no others."""
        from cranfield.formats.columns import find
        from cranfield.formats.frames import table_of_frame

        arrow, parquet = _pyarrow()
        try:
            file = parquet.ParquetFile(arrow.BufferReader(arrow.py_buffer(buffer)))
            names = find(file.schema_arrow.names, kind, where)
            frame = file.read(names.used)
        except FormatError:
            raise
        except (arrow.ArrowException, OSError) as error:
            raise DataError(f"{where}: corrupt Parquet file ({error})") from error
        return table_of_frame(frame, kind, where)

    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        """One row group after the other, ids as text where they are UTF-8 and as bytes where not."""
        arrow, parquet = _pyarrow()
        columns = _run(arrow, table, tag) if kind == "run" else _qrels(arrow, table)
        sink = arrow.BufferOutputStream()
        parquet.write_table(arrow.table(columns), sink)
        yield sink.getvalue().to_pybytes()


PARQUET = Parquet()


def _pyarrow() -> tuple[Any, Any]:
    from importlib import import_module

    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError("Parquet needs pyarrow: pip install 'cranfield[parquet]'") from error


def _run(arrow: Any, table: Table, tag: str) -> dict[str, Any]:
    order, rank = ranked(table)
    rows = arrow.array(order)
    label = arrow.array(table.label[order]) if len(table.labels) else arrow.array([0] * len(order), arrow.int32())
    tags = _ids(arrow, table.labels) if len(table.labels) else arrow.array([tag.encode("utf-8", "surrogateescape")])
    return {
        "query_id": _ids(arrow, table.topics).take(arrow.array(table.topic[order])),
        "doc_id": _ids(arrow, table.documents).take(rows),
        "rank": arrow.array(rank),
        "score": arrow.array(table.value[order]),
        "tag": tags.take(label),
    }


def _qrels(arrow: Any, table: Table) -> dict[str, Any]:
    label = arrow.array(table.label) if len(table.labels) else arrow.array([0] * len(table.topic), arrow.int32())
    labels = _ids(arrow, table.labels) if len(table.labels) else arrow.array(["0"])
    whole = bool((table.value == table.value.astype("int32")).all())
    return {
        "query_id": _ids(arrow, table.topics).take(arrow.array(table.topic)),
        "iteration": labels.take(label),
        "doc_id": _ids(arrow, table.documents),
        "relevance": arrow.array(table.value.astype("int32") if whole else table.value),
    }


def _ids(arrow: Any, ids: Strings) -> Any:
    """A column of text, or of bytes where they are no UTF-8."""
    block = bytes(ids.block[ids.offsets[0] : ids.offsets[-1]])
    kind = arrow.large_string()
    try:
        block.decode("utf-8")
        _ = [item.decode("utf-8") for item in ids] if not block.isascii() else None  # no id may be cut inside a letter
    except UnicodeDecodeError:
        kind = arrow.large_binary()
    offsets = (ids.offsets - ids.offsets[0]).astype("int64")
    return arrow.Array.from_buffers(kind, len(ids), [None, arrow.py_buffer(offsets), arrow.py_buffer(block)])

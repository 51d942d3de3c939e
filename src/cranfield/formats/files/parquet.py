"""Parquet, through pyarrow (the extra `parquet`): columns are recognised by their names, as in a frame."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.kernels import Strings, encode
from cranfield.base.optional_packages import needed
from cranfield.formats.format import Format, FormatEvidence, Head, Kind, Strength
from cranfield.formats.frames import arrow_in_words
from cranfield.formats.named_columns import find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.base.kernels import RowTable
    from cranfield.base.kernels.table import Buffer


MAGIC = re.compile(rb"PAR1(?![\t-\r -~])")  # no text follows


class ParquetFormat(Format):
    """The columnar files of data frames, read and written by pyarrow: `pip install 'cranfield[parquet]'`."""

    name = "parquet"
    about = "Parquet with columns named as in csv; needs pip install 'cranfield[parquet]'"
    place = 1
    endings = (".parquet", ".pq")
    is_text = False

    def sniff(self, head: Head) -> FormatEvidence | None:
        """The first four bytes; the columns are listed at the end of the file."""
        return Strength.SIGNATURE.of("run", "qrels") if MAGIC.match(head.raw) else None

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> RowTable:
        """Only the columns that are needed."""
        from cranfield.formats.frames import table_of_frame

        arrow, parquet = _pyarrow()
        with arrow_in_words(where):
            file = parquet.ParquetFile(arrow.BufferReader(arrow.py_buffer(buffer)))
            names = find(file.schema_arrow.names, kind, where, self.fields)
            frame = file.read(names.used)
        return table_of_frame(frame, kind, where, self.fields)

    def write(self, table: RowTable, kind: Kind, tag: str) -> Iterator[bytes]:
        """Row group by row group; ids are text if they are UTF-8, else bytes."""
        from cranfield.base.top_k import ranked

        arrow, parquet = _pyarrow()
        order, rank = ranked(table) if kind == "run" else (np.arange(len(table.value)), None)
        label = table.label[order] if len(table.labels) else np.zeros(len(order), np.int32)
        otherwise = encode(tag) if kind == "run" else b"0"
        labels = _ids(arrow, table.labels if len(table.labels) else Strings.of([otherwise]))
        topics = _ids(arrow, table.topics).take(arrow.array(table.topic[order]))
        documents = _ids(arrow, table.documents).take(arrow.array(order))
        named = labels.take(arrow.array(label))
        value = table.value[order]
        if kind == "run":
            columns = {"query_id": topics, "doc_id": documents, "rank": rank, "score": value, "tag": named}
        else:
            small = value.astype(np.int32)
            grade = small if (value == small).all() else value
            columns = {"query_id": topics, "iteration": named, "doc_id": documents, "relevance": grade}
        sink = arrow.BufferOutputStream()
        parquet.write_table(arrow.table(columns), sink)
        yield sink.getvalue().to_pybytes()


def _pyarrow() -> tuple[Any, Any]:
    return needed("pyarrow", "Parquet needs"), needed("pyarrow.parquet", "Parquet needs")


def _ids(arrow: Any, ids: Strings) -> Any:
    """A column of text, or of bytes if an id is not UTF-8."""
    block = bytes(ids.block[ids.offsets[0] : ids.offsets[-1]])
    kind = arrow.large_string()
    try:
        _ = block.isascii() or [item.decode("utf-8") for item in ids]  # each id: none may be cut inside a character
    except UnicodeDecodeError:
        kind = arrow.large_binary()
    offsets = (ids.offsets - ids.offsets[0]).astype("int64")
    return arrow.Array.from_buffers(kind, len(ids), [None, arrow.py_buffer(offsets), arrow.py_buffer(block)])

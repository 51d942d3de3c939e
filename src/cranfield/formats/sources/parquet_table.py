"""Documents and topics as Parquet tables, read batch by batch (needs the extra `parquet`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError, MissingExtraError
from cranfield.formats.sources.rows import RowSource

if TYPE_CHECKING:
    from collections.abc import Iterator


BATCH = 4096  # rows in memory at a time


class Parquet(RowSource):
    """documents.parquet, topics.parquet, and qrels in any format."""

    name = "parquet"
    about = "Parquet: documents.parquet and topics.parquet, qrels in any format"
    family = "parquet"
    endings = r"\.(?:parquet|pq)"

    def rows(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows, numbered from 1."""
        try:
            import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]
            from pyarrow import parquet  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError:
            raise MissingExtraError("Parquet is read by pyarrow (pip install 'cranfield[parquet]')") from None
        number = 0
        try:
            with parquet.ParquetFile(path) as table:
                for batch in table.iter_batches(BATCH):
                    for row in batch.to_pylist():
                        number += 1
                        yield number, row
        except (pyarrow.ArrowException, OSError) as error:
            raise DataError(f"{path}: no Parquet file, or a damaged one ({' '.join(str(error).split())})") from error

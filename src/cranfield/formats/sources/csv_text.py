"""Documents and topics as CSV or TSV with a header line."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

from cranfield.errors import BadLineError
from cranfield.formats.sources.rows import RowSource
from cranfield.formats.sources.source import text_lines

if TYPE_CHECKING:
    from collections.abc import Iterator


LONGEST = 1 << 27  # bytes in one field


class Csv(RowSource):
    """documents.csv, topics.csv, and qrels in any format; commas, tabs or semicolons, as the header has them."""

    name = "csv"
    about = "CSV or TSV with a header: documents.csv and topics.csv, qrels in any format"
    family = "csv"
    endings = r"\.(?:csv|tsv)"

    def rows(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows below the header; the number is that of the row's last line."""
        before = csv.field_size_limit(LONGEST)
        try:
            yield from self._rows(path)
        except csv.Error as error:
            raise BadLineError(path, self._line, f"no CSV: {error}") from None
        finally:
            csv.field_size_limit(before)

    def _rows(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        self._line = 1
        header, mark = None, ","
        texts = self._lines(path)
        first = next(texts, "")
        mark = max(",\t;|", key=first.count)
        for cells in csv.reader(_chain(first, texts), delimiter=mark, strict=True):
            if header is None:
                header = [cell.strip() for cell in cells]
            elif cells:
                if len(cells) != len(header):
                    expected = f"expected {len(header)} columns ({', '.join(header)})"
                    raise BadLineError(path, self._line, f"{expected}, found {len(cells)}")
                yield self._line, dict(zip(header, cells, strict=True))

    def _lines(self, path: str) -> Iterator[str]:
        for number, line in text_lines(path, self.options.encoding):
            self._line = number
            yield line + "\n"


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from rest

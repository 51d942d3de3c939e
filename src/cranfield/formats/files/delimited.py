"""CSV and TSV with a header line, BEIR's qrels, and sheets that assessors filled in.

Columns are recognised by their names, in any order; quotes are as in RFC 4180.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from cranfield.base.errors import DataError, FormatError
from cranfield.base.kernels import RowTable, decode, encode
from cranfield.base.qrels import Duplicates, FileRow, Qrels
from cranfield.formats.csv_tables import SeparatedValues, header_text, split_header
from cranfield.formats.format import BATCH, BOTH, Format, FormatEvidence, Head, Kind, Strength, in_batches, rows_of
from cranfield.formats.named_columns import CHUNK, HEADERS, RowCollector, find, is_header, kinds_of, quick_table
from cranfield.formats.pool_files import begins_sheet, graded, judged_lines, read_sheet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cranfield.base.kernels.table import Buffer, RowTable
    from cranfield.formats.csv_tables import TableRow
    from cranfield.formats.format import Source
    from cranfield.formats.streams import Opened


PLAIN = re.compile(r"[0-9+.eE-]*")  # float() and the kernels read these characters as the same numbers
INFINITE = {float("inf"), float("-inf")}


class Delimited(Format):
    """Delimited values with a header."""

    gaps: ClassVar[tuple[str, ...]]  # the possible delimiters; the first one is written
    any_bytes = False  # bytes that are not UTF-8 would be read as another encoding
    quotes = True

    def sniff(self, head: Head) -> FormatEvidence | None:
        """Evidence from the names in the first line."""
        line = header_text(head.raw, self.dialect.encoding)
        delimiter = self.dialect.delimiter
        headers = [names for gap in self.gaps if delimiter in (None, gap) and (names := split_header(line, gap))]
        kinds = {kind for names in headers for kind in kinds_of(names, self.fields)}
        if kinds:
            return Strength.NAMES.of(*kinds)
        possible = any(self._is_possible(names) for names in headers)
        return Strength.POSSIBLE.of(*BOTH) if possible or (headers and delimiter) else None

    def _is_possible(self, names: list[str]) -> bool:
        words = self.gaps != ("\t",) and len(names) > 2 and all(name.replace(" ", "_").isidentifier() for name in names)
        return words or is_header(names, self.fields)

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> RowTable:
        """The rows, by the names in the header."""
        table = self._open(buffer, where)
        quick = self._quick(table, kind)
        read = self._careful(table, kind, lenient) if quick is None else quick
        table.report()
        return read

    def _is_header(self, names: list[str]) -> bool:
        return bool(kinds_of(names, self.fields))

    def _open(self, buffer: Buffer, where: str) -> SeparatedValues:
        return SeparatedValues(bytes(buffer), where, self._is_header, self.dialect, self.gaps)

    def _quick(self, table: SeparatedValues, kind: Kind) -> RowTable | None:
        """The rows, if nothing is quoted and no row is unusual; else None."""
        end = table.raw.find(b"\n")
        header = table.raw[:end].removesuffix(b"\r")
        if end < 0 or not header or b'"' in header or b"\r" in header or b"\0" in header or table.numbers.sign == ",":
            return None
        names = decode(header).split(table.delimiter)
        return quick_table(table.raw, end + 1, table.delimiter, names, kind, table.where, self.fields)

    def _careful(self, table: SeparatedValues, kind: Kind, lenient: bool) -> RowTable:
        rows = RowCollector(kind, table.where, lenient, find(table.names, kind, table.where, self.fields))
        below = iter(table)
        while chunk := list(islice(below, CHUNK)):
            if not _added_at_once(rows, table, chunk):
                _add_one_by_one(rows, table, chunk)
        return rows.table()

    def file_rows(self, buffer: Buffer, kind: Kind, where: str) -> Iterator[FileRow]:
        """The rows with their lines; unreadable rows are skipped."""
        table = self._open(buffer, where)
        t, d, v, *_ = [table.names.index(name) for name in find(table.names, kind, where, self.fields).used]
        for row in table:
            if len(row.cells) == len(table.names):
                with suppress(ValueError):
                    yield FileRow(row.line, row.cells[t], row.cells[d], table.numbers.read(row.cells[v], row.line))

    def refuse(self, table: RowTable, kind: Kind, where: str) -> None:
        """Refuse ids that are not UTF-8: they would be read back in another encoding."""
        for ids in (table.topics, table.documents, table.labels):
            try:
                bytes(ids.block).decode()
            except UnicodeDecodeError:
                odd = next(decode(each) for each in ids if decode(each).encode(errors="replace") != each)
                problem = f"the id {odd!r} is no UTF-8, which {self.name} cannot hold"
                raise FormatError(f"{where}: {problem}; use trec or jsonl") from None

    def write(self, table: RowTable, kind: Kind, tag: str) -> Iterator[bytes]:
        """A header, and one line per row."""
        return self.lines(HEADERS[kind], rows_of(table, kind, tag, text=True), table)

    def lines(self, header: tuple[str, ...], rows: Iterable[tuple[Any, ...]], table: RowTable) -> Iterator[bytes]:
        """The lines of a file."""
        import csv
        import io

        text = io.StringIO()
        # before Python 3.13 the writer does not quote a lone carriage return
        returns = any(b"\r" in bytes(ids.block) for ids in (table.topics, table.documents, table.labels))
        writer = csv.writer(
            text, delimiter=self.gaps[0], lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
        )
        writer.writerow(header)
        rest = iter(rows)
        while True:
            writer.writerows(islice(rest, BATCH))
            if not text.tell():
                return
            yield encode(text.getvalue())
            text.seek(0)
            text.truncate()


class CsvFormat(Delimited):
    """Comma separated values. The column names are listed below; quotes are as in RFC 4180."""

    name = "csv"
    about = "comma separated values with a header line that names the columns"
    place = 5
    endings = (".csv",)
    examples = {
        "run": b"query_id,doc_id,rank,score,tag\nq1,d1,1,9.5,bm25\nq1,d7,2,7.25,bm25\nq2,d3,1,4.0,bm25\n",
        "qrels": b"query_id,iteration,doc_id,relevance\nq1,0,d1,1\nq1,0,d3,0\nq2,0,d3,2\n",
    }
    gaps = (",", ";", "|")


class TsvFormat(Delimited):
    """Tab separated values, read and written like `csv`."""

    name = "tsv"
    about = "tab separated values with a header line that names the columns"
    place = 6
    endings = (".tsv",)
    examples = {kind: text.replace(b",", b"\t") for kind, text in CsvFormat.examples.items()}
    gaps = ("\t",)


class BeirFormat(Delimited):
    """The qrels files of the BEIR benchmark: tab separated values whose `score` is a grade."""

    name = "beir"
    about = "BEIR qrels: tab separated with the header query-id corpus-id score"
    kinds = ("qrels",)
    place = 4
    examples = {"qrels": b"query-id\tcorpus-id\tscore\nPLAIN-2\tMED-2427\t2\nPLAIN-2\tMED-10\t1\nPLAIN-3\tMED-10\t0\n"}
    labels = ()
    twice = False
    gaps = ("\t",)
    header = ("query-id", "corpus-id", "score")

    def sniff(self, head: Head) -> FormatEvidence | None:
        """An exact match of BEIR's header."""
        return Strength.SIGNATURE.of("qrels") if split_header(header_text(head.raw), "\t") == [*self.header] else None

    def write(self, table: RowTable, kind: Kind, tag: str) -> Iterator[bytes]:
        """The header, and one line per judgment."""
        rows = ((topic, document, grade) for topic, _, document, grade in rows_of(table, kind, tag, text=True))
        return self.lines(self.header, rows, table)


def _added_at_once(rows: RowCollector, table: SeparatedValues, chunk: list[TableRow]) -> bool:
    """Append regular rows column by column; if any row is unusual, append nothing and return False."""
    if {len(row.cells) for row in chunk} != {len(table.names)}:
        return False
    columns = list(zip(*(row.cells for row in chunk), strict=True))
    topics, documents, numbers, *labels = [columns[table.names.index(name)] for name in rows.columns.used]
    digits = "".join(numbers)
    if not PLAIN.fullmatch(digits) or ("." in digits and table.numbers.sign == ","):
        return False
    try:
        values = [float(text) for text in numbers]
    except ValueError:
        return False
    if INFINITE & {*values}:
        return False
    if "." in digits:
        first = next(i for i, text in enumerate(numbers) if "." in text)
        table.numbers.read(numbers[first], chunk[first].line)  # decides that decimal points separate
    rows.add_columns(topics, documents, values, labels[0] if labels else ())
    return True


def _add_one_by_one(rows: RowCollector, table: SeparatedValues, chunk: list[TableRow]) -> None:
    """Append rows, or report what is wrong with one."""
    names = table.names
    t, d, v, *b = [names.index(name) for name in rows.columns.used]
    for line, _, cells in chunk:
        if len(cells) != len(names):
            rows.bad(line, f"expected {len(names)} columns ({', '.join(names)}), found {len(cells)}")
            continue
        try:
            value = table.numbers.read(cells[v], line, rows.kind == "qrels")
        except ValueError as error:
            rows.bad(line, f"expected a number in column {v + 1} ({names[v]}), {error}")
            continue
        rows.add(encode(cells[t]), encode(cells[d]), value, encode(cells[b[0]]) if b else None)


class Sheet(Format):
    """A sheet for assessors as written by `cranfield pool --format csv`.

    It is CSV with the columns `topic`, `document`, `grade` and `note`, and more for people. Rows without a grade are
    left out. An apostrophe before an id keeps a spreadsheet from changing the id; it is removed on reading.
    """

    name = "sheet"
    about = "a pool as CSV that assessors filled in"
    kinds = ("qrels",)
    place = 45
    labels = ()
    any_bytes = False
    quotes = True
    twice = False
    examples = {
        "qrels": b"topic,query,document,title,grade,note\n"
        b"q1,when to sow,'007,Sowing,2,\nq1,when to sow,d2,Rain,,not sure\nq2,slugs,d2,Rain,0,\n"
    }

    def sniff(self, head: Head) -> FormatEvidence | None:
        first = head.lines[0] if head.lines else b""
        return None if self.fields or not begins_sheet(first, self.dialect) else Strength.SIGNATURE.of("qrels")

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Source:
        """The grades; an empty sheet is refused."""
        grades: dict[str, dict[str, float]] = {}
        for mark in graded(bytes(buffer), where, self.dialect):
            grades.setdefault(mark.topic, {})[mark.document] = float(mark.grade or 0)
        if not grades:
            raise DataError(f"{where}: no row has a grade yet")
        return grades

    def read_qrels(self, file: Opened, name: str, lenient: bool = False, duplicates: Duplicates = "error") -> Qrels:
        """The grades; if a document has two different ones, `duplicates` decides which counts."""
        if duplicates == "error":
            return super().read_qrels(file, name, lenient)
        rows = RowCollector("qrels", file.where)
        for mark in read_sheet(bytes(file.buffer), file.where, self.dialect):
            if mark.grade is not None:
                rows.add(encode(mark.topic), encode(mark.document), mark.grade, None)
        return Qrels(rows.table(), name, duplicates)

    def file_rows(self, buffer: Buffer, kind: Kind, where: str) -> Iterator[FileRow]:
        for mark in read_sheet(bytes(buffer), where, self.dialect):
            if mark.grade is not None:
                yield FileRow(mark.line, mark.topic, mark.document, mark.grade)

    def write(self, table: RowTable, kind: Kind, tag: str) -> Iterator[bytes]:
        rows = ((topic, document, grade) for topic, _, document, grade in rows_of(table, kind, text=True))
        return in_batches(judged_lines(rows))

    def refuse(self, table: RowTable, kind: Kind, where: str) -> None:
        for ids in (table.topics, table.documents):
            for each in ids:
                if not each or decode(each).encode(errors="replace") != each:
                    problem = f"{decode(each)!r} is empty or no UTF-8, which a sheet cannot hold"
                    raise FormatError(f"{where}: {problem}; use jsonl")

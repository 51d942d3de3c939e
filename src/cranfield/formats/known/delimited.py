"""CSV and TSV with a header line: columns are found by their names, in any order; quotes as in RFC 4180. BEIR's qrels."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from cranfield.errors import BadLineError
from cranfield.formats.format import BOTH, Evidence, Format, Head, Kind, Strength, rows_of
from cranfield.formats.named import CHUNK, HEADERS, Gathered, find, is_header, kinds_of, quick_table
from cranfield.kernels import Table, decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cranfield.kernels.table import Buffer


BATCH = 10_000  # rows written at a time
PLAIN = re.compile(r"[0-9+.eE-]*")  # of these signs float() and the kernels make the same numbers
INFINITE = {float("inf"), float("-inf")}
LINE_END = re.compile(r"\r\n|\r|\n")


class Delimited(Format):
    """Values with a character between them."""

    gap: ClassVar[str]

    def sniff(self, head: Head) -> Evidence | None:
        """What the names in the first line say."""
        names = self.header_of(head)
        kinds = kinds_of(names, self.fields)
        if kinds:
            return Strength.NAMES.of(*kinds)
        words = (
            not self.gap.isspace() and len(names) > 2 and all(name.replace(" ", "_").isidentifier() for name in names)
        )
        return Strength.POSSIBLE.of(*BOTH) if words or is_header(names, self.fields) else None

    def header_of(self, head: Head) -> list[str]:
        """The names in the first line; none where the separator does not occur in it."""
        line = decode(head.raw.split(b"\n", 1)[0]).rstrip("\r")
        return [name.strip().strip('"') for name in line.split(self.gap)] if self.gap in line else []

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Table:
        """The rows, found by the names in the header."""
        quick = self._quick(bytes(buffer), kind, where)
        return self._careful(buffer, kind, where, lenient) if quick is None else quick

    def _quick(self, raw: bytes, kind: Kind, where: str) -> Table | None:
        """The rows where nothing is quoted and none is odd, else None."""
        end = raw.find(b"\n")
        header = raw[:end].removesuffix(b"\r")
        if end < 0 or b'"' in header or b"\r" in header or b"\0" in header:
            return None
        return quick_table(raw, end + 1, self.gap, decode(header).split(self.gap), kind, where, self.fields)

    def _careful(self, buffer: Buffer, kind: Kind, where: str, lenient: bool) -> Table:
        import csv
        import io

        text = io.TextIOWrapper(io.BytesIO(buffer), "utf-8", "surrogateescape", newline="")
        reader = csv.reader(text, delimiter=self.gap, strict=True)
        try:
            names = next(reader, [])
            rows = Gathered(kind, where, lenient, find(names, kind, where, self.fields))
            before = reader.line_num
            while chunk := list(islice(reader, CHUNK)):
                if not _added_at_once(rows, names, chunk):
                    _add_one_by_one(rows, names, chunk, before)
                before = reader.line_num
        except csv.Error as error:
            raise BadLineError(where, reader.line_num, f"expected {self.name} ({error})") from error
        return rows.table()

    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        """A header, and one line a row."""
        return self.lines(HEADERS[kind], rows_of(table, kind, tag, text=True), table)

    def lines(self, header: tuple[str, ...], rows: Iterable[tuple[Any, ...]], table: Table) -> Iterator[bytes]:
        """The lines of a file."""
        import csv
        import io

        text = io.StringIO()
        # before Python 3.13 a lone carriage return does not make the writer quote
        returns = any(b"\r" in bytes(ids.block) for ids in (table.topics, table.documents, table.labels))
        writer = csv.writer(
            text, delimiter=self.gap, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
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


class Csv(Delimited):
    """Comma separated values. The names of the columns are listed below; quotes are as in RFC 4180."""

    name = "csv"
    about = "comma separated values with a header line that names the columns"
    place = 5
    endings = (".csv",)
    examples = {
        "run": b"query_id,doc_id,rank,score,tag\nq1,d1,1,9.5,bm25\nq1,d7,2,7.25,bm25\nq2,d3,1,4.0,bm25\n",
        "qrels": b"query_id,iteration,doc_id,relevance\nq1,0,d1,1\nq1,0,d3,0\nq2,0,d3,2\n",
    }
    gap = ","


class Tsv(Delimited):
    """Tab separated values, otherwise as `csv`."""

    name = "tsv"
    about = "tab separated values with a header line that names the columns"
    place = 6
    endings = (".tsv",)
    examples = {kind: text.replace(b",", b"\t") for kind, text in Csv.examples.items()}
    gap = "\t"


class Beir(Delimited):
    """The qrels files of the BEIR benchmark: tab separated values whose `score` is a grade."""

    name = "beir"
    about = "BEIR qrels: tab separated with the header query-id corpus-id score"
    kinds = ("qrels",)
    place = 4
    examples = {"qrels": b"query-id\tcorpus-id\tscore\nPLAIN-2\tMED-2427\t2\nPLAIN-2\tMED-10\t1\nPLAIN-3\tMED-10\t0\n"}
    labels = ()
    twice = False
    gap = "\t"
    header = ("query-id", "corpus-id", "score")

    def sniff(self, head: Head) -> Evidence | None:
        """Its header, to the letter."""
        return Strength.SIGNATURE.of("qrels") if self.header_of(head) == [*self.header] else None

    def write(self, table: Table, kind: Kind, tag: str) -> Iterator[bytes]:
        """The header, and one line a judgment."""
        rows = ((topic, document, grade) for topic, _, document, grade in rows_of(table, kind, tag, text=True))
        return self.lines(self.header, rows, table)


def _added_at_once(rows: Gathered, names: list[str], chunk: list[list[str]]) -> bool:
    """Append rows in which nothing is odd, column by column; False if anything is, and nothing is appended."""
    if {*map(len, chunk)} != {len(names)}:
        return False
    columns = list(zip(*chunk, strict=True))
    topics, documents, numbers, *labels = [columns[names.index(name)] for name in rows.columns.used]
    if not PLAIN.fullmatch("".join(numbers)):
        return False
    try:
        values = [float(text) for text in numbers]
    except ValueError:
        return False
    if INFINITE & {*values}:
        return False
    rows.add_columns(topics, documents, values, labels[0] if labels else ())
    return True


def _add_one_by_one(rows: Gathered, names: list[str], chunk: list[list[str]], line: int) -> None:
    """Append rows, or say what is wrong with one; `line` is the number of the line before them."""
    from cranfield.kernels.twin import number

    t, d, v, *b = [names.index(name) for name in rows.columns.used]
    for row in chunk:
        line += 1 + sum(len(LINE_END.findall(field)) for field in row)
        if not row:  # a blank line
            continue
        if len(row) != len(names):
            rows.bad(line, f"expected {len(names)} columns ({', '.join(names)}), found {len(row)}")
            continue
        value = number(encode(row[v]).strip(), rows.kind == "qrels")
        if value is None:
            rows.bad(line, f"expected a number in column {v + 1} ({names[v]}), found {row[v][:60]!r}")
            continue
        rows.add(encode(row[t]), encode(row[d]), value, encode(row[b[0]]) if b else None)

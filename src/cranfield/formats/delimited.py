"""CSV and TSV with a header line: columns are found by their names, in any order; quotes as in RFC 4180."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from cranfield.errors import BadLineError
from cranfield.formats.columns import HEADERS, find, kinds_of
from cranfield.formats.format import NEITHER, Format, Kind, Kinds, ranked
from cranfield.formats.rows import Gathered, texts
from cranfield.formats.trec import whole
from cranfield.kernels import Table, decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cranfield.kernels.table import Buffer


BATCH = 10_000  # rows written at a time
CHUNK = 4096  # rows read at a time
PLAIN = re.compile(r"[0-9+.eE-]*")  # of these signs float() and the kernels make the same numbers
INFINITE = {float("inf"), float("-inf")}
LINE_END = re.compile(r"\r\n|\r|\n")


class Delimited(Format):
    """Values with a character between them."""

    gap: ClassVar[str]

    def sniff(self, head: bytes) -> Kinds:
        """What the names in the first line say."""
        names = header_of(head, self.gap)
        return NEITHER if names == ["query-id", "corpus-id", "score"] else kinds_of(names)

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Table:
        """The rows, found by the names in the header."""
        import csv
        import io

        text = io.TextIOWrapper(io.BytesIO(buffer), "utf-8", "surrogateescape", newline="")
        reader = csv.reader(text, delimiter=self.gap, strict=True)
        try:
            names = next(reader, [])
            rows = Gathered(find(names, kind, where), kind, where, lenient)
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
        return self.lines(HEADERS[kind], rows_of(table, kind, tag), holds_returns(table))

    def lines(self, header: tuple[str, ...], rows: Iterable[tuple[Any, ...]], quoted: bool) -> Iterator[bytes]:
        """The lines of a file."""
        import csv
        import io

        text = io.StringIO()
        # before Python 3.13 a lone carriage return does not make the writer quote
        writer = csv.writer(
            text, delimiter=self.gap, lineterminator="\n", quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
        )
        writer.writerow(header)
        for number, row in enumerate(rows):
            writer.writerow(row)
            if number % BATCH == 0:
                yield text.getvalue().encode("utf-8", "surrogateescape")
                text.seek(0)
                text.truncate()
        yield text.getvalue().encode("utf-8", "surrogateescape")


class Csv(Delimited):
    """Comma separated values."""

    name = "csv"
    about = "comma separated values with a header line that names the columns"
    kinds = ("run", "qrels")
    endings = (".csv",)
    examples = {
        "run": b"query_id,doc_id,rank,score,tag\nq1,d1,1,9.5,bm25\nq1,d7,2,7.25,bm25\nq2,d3,1,4.0,bm25\n",
        "qrels": b"query_id,iteration,doc_id,relevance\nq1,0,d1,1\nq1,0,d3,0\nq2,0,d3,2\n",
    }
    gap = ","


class Tsv(Delimited):
    """Tab separated values."""

    name = "tsv"
    about = "tab separated values with a header line that names the columns"
    kinds = ("run", "qrels")
    endings = (".tsv",)
    examples = {kind: text.replace(b",", b"\t") for kind, text in Csv.examples.items()}
    gap = "\t"


CSV = Csv()
TSV = Tsv()


def header_of(head: bytes, gap: str) -> list[str]:
    """The names in the first line; none where the separator does not occur in it."""
    line = decode(head.split(b"\n", 1)[0]).rstrip("\r")
    return [name.strip().strip('"') for name in line.split(gap)] if gap in line else []


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


def holds_returns(table: Table) -> bool:
    """Whether an id holds a carriage return."""
    return any(b"\r" in bytes(ids.block) for ids in (table.topics, table.documents, table.labels))


def rows_of(table: Table, kind: Kind, tag: str) -> Iterator[tuple[Any, ...]]:
    """The rows in the order of `HEADERS`; a run's by rank."""
    topics, documents = texts(table.topics), texts(table.documents)
    labels = texts(table.labels)
    if kind == "run":
        order, rank = ranked(table)
        label = table.label[order].tolist() if labels else [0] * len(order)
        labels = labels or [tag]
        values = (table.topic[order].tolist(), order.tolist(), rank.tolist(), table.value[order].tolist(), label)
        for t, i, r, v, b in zip(*values, strict=True):
            yield topics[t], documents[i], r, v, labels[b]
        return
    label = table.label.tolist() if labels else [0] * len(documents)
    labels = labels or ["0"]
    for t, b, document, v in zip(table.topic.tolist(), label, documents, table.value.tolist(), strict=True):
        yield topics[t], labels[b], document, whole(v)

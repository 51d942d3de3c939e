"""JSON: one object `{topic: {document: value}}`, or rows with named fields, as a list or one per line (JSONL).

An object of objects may be a run or qrels; its content does not say which. A key that an object has twice is
kept twice, so that a repeated document is reported and not overwritten.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import BadLineError, DataError, DuplicateError, FormatError
from cranfield.base.kernels import RowTable, decode
from cranfield.formats.format import BOTH, Format, FormatEvidence, Head, Kind, Strength, in_batches, rows_of
from cranfield.formats.named_columns import (
    CHUNK,
    HEADERS,
    RowCollector,
    id_of,
    kinds_of,
    number_of,
    quick_table,
    table_of_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cranfield.base.kernels.table import Buffer
    from cranfield.formats.format import Source


OBJECT = re.compile(rb"\s*\{\s*(?:\}|$|\"(?:[^\"\\]|\\.)*\"\s*:\s*\{)")  # nothing yet, or an object as the first value
LIST = re.compile(rb"\s*\[\s*(?:[\[{\]]|$)")  # of rows, or nothing yet
FIELD = re.compile(rb"\s*\{\s*\"")


class JsonFormat(Format):
    """One object of objects, `{topic: {document: score or grade}}`, or a list of rows with named fields.

    An object may be a run or qrels, and its content does not say which: the command decides. A repeated document is an
    error.
    """

    name = "json"
    about = "one object {topic: {document: score or grade}}; a list of rows with named fields is read as well"
    place = 2
    endings = (".json",)
    examples = {
        "run": b'{"q1": {"d1": 9.5, "d7": 7.25}, "q2": {"d3": 4.0}}\n',
        "qrels": b'{"q1": {"d1": 1, "d3": 0}, "q2": {"d3": 2}}\n',
    }
    labels = ()
    twice = False

    def sniff(self, head: Head) -> FormatEvidence | None:
        """A list of rows, or an object whose first value is an object."""
        if OBJECT.match(head.raw) or LIST.match(head.raw):
            return Strength.SIGNATURE.of("run", "qrels")
        return Strength.POSSIBLE.of("run", "qrels") if head.raw.lstrip()[:1] == b"[" else None

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> Source:
        """The mapping itself, or columns if the file is a list of rows or repeats a document."""
        content = _parsed(bytes(buffer), where)
        if isinstance(content, list):
            for number, row in enumerate(content, 1):
                if isinstance(row, _Twice):
                    raise DuplicateError(where, number, f"field {row.twice!r} occurs twice")
            return table_of_rows(enumerate(content, 1), kind, where, lenient, self.fields)
        if isinstance(content, _Twice):
            raise FormatError(f"{where}: topic {content.twice!r} occurs twice")
        if not isinstance(content, dict):
            expected = "{topic: {document: number}} or a list of rows"
            raise FormatError(f"{where}: expected {expected}, found {content!r:.60}")
        _check_numbers(content, kind, where)
        if any(isinstance(documents, _Twice) for documents in content.values()):
            return _table_with_duplicates(content, kind, where)
        return content

    def write(self, table: RowTable, kind: Kind, tag: str) -> Iterator[bytes]:
        """One line per topic, so that files can be compared by eye and by diff."""
        import json

        topics: dict[str, dict[str, float]] = {topic: {} for topic in table.topics.text()}
        for row in rows_of(table, kind, tag, text=True):
            topics[row[0]][row[1 if kind == "run" else 2]] = row[3]
        lines = (f"{json.dumps(topic)}: {json.dumps(documents)}" for topic, documents in topics.items())
        yield ("{" + ",\n ".join(lines) + "}\n").encode()


class JsonLinesFormat(Format):
    """One row per line: an object whose fields have the names of columns (see below).

    A run may also have one topic per line with a list of `results`, as in the predictions of sentence-transformers.
    """

    name = "jsonl"
    about = "one JSON object a line, its fields named as columns are"
    place = 3
    endings = (".jsonl", ".ndjson")
    examples = {
        "run": b'{"query_id": "q1", "doc_id": "d1", "rank": 1, "score": 9.5, "tag": "bm25"}\n'
        b'{"query_id": "q1", "doc_id": "d7", "rank": 2, "score": 7.25, "tag": "bm25"}\n',
        "qrels": b'{"query_id": "q1", "iteration": "0", "doc_id": "d1", "relevance": 1}\n'
        b'{"query_id": "q2", "iteration": "0", "doc_id": "d3", "relevance": 2}\n',
    }

    def sniff(self, head: Head) -> FormatEvidence | None:
        """An object; the fields of the first line decide what the file holds."""
        if head.raw.lstrip()[:1] != b"{":
            return None
        kinds = kinds_of(_first_row(head.raw) or (), self.fields) or BOTH  # the reader reports a broken first line
        return (Strength.NAMES if FIELD.match(head.raw) else Strength.POSSIBLE).of(*kinds)

    def read(self, buffer: Buffer, kind: Kind, where: str, lenient: bool = False) -> RowTable:
        """The rows without blank lines."""
        raw = bytes(buffer)
        if kind == "run" and _holds_results(raw):
            return table_of_rows(_results(_lines(raw, where)), kind, where, lenient, self.fields)
        quick = self._quick(raw, kind, where)
        return table_of_rows(_lines(raw, where), kind, where, lenient, self.fields) if quick is None else quick

    def _quick(self, raw: bytes, kind: Kind, where: str) -> RowTable | None:
        """The rows, if all lines have the fields of the first line in its order and none is unusual; else None."""
        start = len(raw) - len(raw.lstrip())
        first = _first_row(raw)
        if type(first) is not dict or not first:
            return None
        at = f"{where}:{raw[:start].count(NEWLINE) + 1}"
        return quick_table(raw, start, "", list(first), kind, at, self.fields)

    def write(self, table: RowTable, kind: Kind, tag: str) -> Iterator[bytes]:
        """One object per line; bytes that are not UTF-8 become escaped surrogates and read back the same."""
        import json

        rows = (dict(zip(HEADERS[kind], row, strict=True)) for row in rows_of(table, kind, tag, text=True))
        return in_batches(json.dumps(row).encode() + b"\n" for row in rows)


class _Twice(dict[str, Any]):
    """An object with a repeated key: the pairs in file order."""

    def __init__(self, pairs: list[tuple[str, Any]], twice: str) -> None:
        super().__init__(pairs)
        self.pairs = pairs
        self.twice = twice


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    answer = dict(pairs)
    if len(answer) == len(pairs):
        return answer
    return _Twice(pairs, next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1))


def _parsed(content: bytes, where: str) -> Any:
    import json

    try:
        return json.loads(decode(content), object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        problem = f"expected JSON, found a mistake at column {error.colno} ({error.msg})"
        raise BadLineError(where, error.lineno, problem) from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: no JSON that can be read ({error})") from error


def _check_numbers(content: Mapping[str, Any], kind: Kind, where: str) -> None:
    for topic, documents in content.items():
        if not isinstance(documents, dict):
            raise FormatError(f"{where}: expected {{document: number}} for topic {topic!r}, found {documents!r:.60}")
        for document, value in documents.items():
            if type(value) is float and value - value == 0:
                continue
            try:
                number_of(value, kind)
            except DataError as error:
                raise DataError(f"{where}: topic {topic!r}, document {document!r}: {error}") from None


def _table_with_duplicates(content: Mapping[str, Any], kind: Kind, where: str) -> RowTable:
    rows = RowCollector(kind, where)
    for topic, documents in content.items():
        if kind == "qrels" and isinstance(documents, _Twice):
            raise FormatError(f"{where}: document {documents.twice!r} is judged twice for topic {topic!r}")
        for document, value in documents.pairs if isinstance(documents, _Twice) else documents.items():
            rows.add(id_of(topic), id_of(document), number_of(value, kind), None)
    return rows.table()


NEWLINE = b"\n"
RESULTS = "results"  # the names of a topic's list of results in sentence-transformers


def _holds_results(raw: bytes) -> bool:
    """Whether the first line is a topic with a list of results."""
    row = _first_row(raw) if RESULTS.encode() in raw.lstrip().partition(NEWLINE)[0] else None
    return isinstance(row, dict) and isinstance(row.get(RESULTS), list)


def _first_row(raw: bytes) -> Any:
    """The value of the first line; None if it is not JSON."""
    import json

    try:
        return json.loads(decode(raw.lstrip().partition(NEWLINE)[0]), object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None


def _results(topics: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """A row for each result: the fields of its topic and its own fields."""
    for number, topic in topics:
        results = topic.get(RESULTS)
        if not isinstance(results, list):
            yield number, topic
            continue
        shared = {name: value for name, value in topic.items() if name not in (RESULTS, "query")}
        yield from ((number, {**shared, **result} if isinstance(result, dict) else result) for result in results)


def _lines(buffer: Buffer, where: str) -> Iterator[tuple[int, Any]]:
    import json

    decoder = json.JSONDecoder(object_pairs_hook=_object)
    numbered = ((number, line) for number, line in enumerate(bytes(buffer).split(b"\n"), 1) if line.strip())
    while chunk := list(islice(numbered, CHUNK)):
        yield from _at_once(chunk, decoder) or _one_by_one(chunk, decoder, where)


def _at_once(chunk: list[tuple[int, bytes]], decoder: Any) -> list[tuple[int, Any]]:
    """The rows of lines with one object each; none if any line is unusual."""
    if not all(line[:1] == b"{" and line.rstrip()[-1:] == b"}" for _, line in chunk):
        return []
    try:
        rows = decoder.decode(decode(b"[" + b",".join(line for _, line in chunk) + b"]"))
    except (ValueError, RecursionError):
        return []
    if {*map(type, rows)} != {dict} or len(rows) != len(chunk):
        return []
    return [(number, row) for (number, _), row in zip(chunk, rows, strict=True)]


def _one_by_one(chunk: list[tuple[int, bytes]], decoder: Any, where: str) -> Iterator[tuple[int, Any]]:
    for number, line in chunk:
        try:
            row = decoder.decode(decode(line))
        except (ValueError, RecursionError) as error:
            raise BadLineError(where, number, f"expected a JSON object, found {decode(line)[:60]!r}") from error
        if isinstance(row, _Twice):
            raise DuplicateError(where, number, f"field {row.twice!r} occurs twice")
        if not isinstance(row, dict):
            raise BadLineError(where, number, f"expected a JSON object, found {decode(line)[:60]!r}")
        yield number, row

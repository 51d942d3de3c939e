"""Tables with named columns (JSON lines, BEIR's data sets, CSV, Parquet), and MS MARCO's, which have no header.

Columns are recognised by their usual names, or by `--field title=headline`; all other columns become the
fields of the document or topic.

MS MARCO's tables are collection.tsv (id, passage) or msmarco-docs.tsv (id, url, title, body), queries.*.tsv and qrels.*.tsv,
with tabs. `--split dev.small` takes queries.dev.small.tsv and qrels.dev.small.tsv.
"""

from __future__ import annotations

import io
import os
import re
from abc import abstractmethod
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from cranfield.base.collection import Document, Topic
from cranfield.base.errors import BadLineError
from cranfield.base.notifications import say, tell_used
from cranfield.base.optional_packages import needed
from cranfield.base.text_layout import counted
from cranfield.formats.csv_tables import (
    DELIMITERS,
    HEAD,
    as_utf8,
    choose_delimiter,
    dialect_in_words,
    is_wide,
    open_table,
    rows_of,
)
from cranfield.formats.frames import arrow_in_words
from cranfield.formats.importers.source import CollectionSource, Files, ImportOptions, named_like, one_split, text_lines
from cranfield.formats.named_columns import DOCUMENT
from cranfield.formats.streams import decoded, json_rows, lines, run_name, wide_encoding
from cranfield.formats.topic_tables import IDS as TOPIC_IDS
from cranfield.formats.topic_tables import TEXTS as TOPIC_TITLES
from cranfield.formats.topic_tables import column_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


IDS = ("id", "_id", *(name for name in DOCUMENT if name not in ("product", "item")))
TITLES = ("title", "headline", "name", "product_title", "product_name")
TEXTS = ("text", "body", "contents", "content", "abstract", "passage", "description", "product_description")
DESCRIPTIONS = ("description", "desc")
NARRATIVES = ("narrative", "narr")

DOCUMENT_NAMES = ("documents?", "docs?", "corpus", "collection")
TOPIC_NAMES = ("topics?", "quer(?:y|ies)")
SPLIT = re.compile(
    r"(?:msmarco-(?:docs|doc|passage)?\w*-?)?(?:queries|qrels)?[.-]?(.*?)(?:-(?:queries|qrels))?\.tsv", re.IGNORECASE
)
BATCH = 4096  # rows of Parquet per batch


class TableSource(CollectionSource):
    """A layout whose files are rows with named columns."""

    @classmethod
    def find(cls, path: str, options: ImportOptions) -> Files | None:
        """Files named documents, topics and qrels (or docs, corpus, queries) with this ending, or one such file."""
        if not os.path.isdir(path):
            return Files([path]) if cls.asks(path) else None
        documents = named_like(path, *(f"(?:{name}){cls.endings}" for name in DOCUMENT_NAMES))
        return replace(cls.rest(path, options), documents=documents) if documents else None

    @classmethod
    def rest(cls, folder: str, options: ImportOptions) -> Files:
        topics = named_like(folder, *(f"(?:{name}){cls.endings}" for name in TOPIC_NAMES))
        return Files((), topics, named_like(folder, rf"qrels?{cls.endings}", r"qrels?(?:\.\w+)?", r".*\.qrels?"))

    @classmethod
    def asks(cls, path: str) -> bool:
        pattern = rf".*{cls.endings}(?:\.\w+)?"
        return bool(cls.endings) and re.fullmatch(pattern, os.path.basename(path), re.IGNORECASE) is not None

    @abstractmethod
    def rows(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows of a file with their line numbers."""

    def documents_in(self, path: str) -> Iterator[Document]:
        """One document per row."""
        columns: dict[tuple[str, ...], tuple[str, str, str]] = {}
        for number, row in self.rows(path):
            shape = tuple(row)
            if shape not in columns:
                columns[shape] = self._document_columns(row, path, number)
            identifier, title, text = columns[shape]
            cell = row.pop(identifier)
            name = str(cell) if type(cell) is int else cell
            if not isinstance(name, str) or not name or name.isspace():
                raise BadLineError(path, number, f"expected a document's id in {identifier!r}, found {cell!r:.60}")
            self.at = (path, number)
            yield Document(name, _text(row, title, path, number), _text(row, text, path, number), row)

    def _document_columns(self, row: dict[str, Any], path: str, number: int) -> tuple[str, str, str]:
        roles = ("id", IDS), ("title", TITLES), ("text", TEXTS)
        identifier, title, text = (self._column(row, *role) for role in roles)
        if not identifier or not (text or title):
            content = "an id" if not identifier else "a text or a title"
            raise _no_column(row, content, "--field id=COLUMN --field text=COLUMN", path, number)
        return identifier, title, text

    def topics_in(self, path: str) -> Iterator[Topic]:
        """One topic per row; without a title the description is the query, as in TREC's topics.

        If no column has ids, topics are numbered by position.
        """
        numbered = False
        for place, (number, row) in enumerate(self.rows(path), 1):
            identifier, title = self._topic_columns(row)
            if place == 1 and not identifier and title and ("topic" not in self.options.fields or self.files.qrels):
                numbered = True
                note = "no column has the topics' ids; they are numbered 1, 2, 3 …"
                self.notes.append(f"{os.path.basename(path)}: {note}")
            if bool(identifier) == numbered or not (title or self._column(row, "description", DESCRIPTIONS)):
                content = "what it asks" if identifier else "a topic's id"
                raise _no_column(row, content, "--field topic=COLUMN --field query=COLUMN", path, number)
            name, question = str(row.pop(identifier, place)), _text(row, title, path, number)
            description = _text(row, self._column(row, "description", DESCRIPTIONS), path, number)
            narrative = _text(row, self._column(row, "narrative", NARRATIVES), path, number)
            yield Topic(name, question or description, description, narrative, row)

    def _topic_columns(self, row: Iterable[str]) -> tuple[str, str]:
        """The columns of a topic's id and query; a name given for the topic may refer to judgments by query text."""
        identifier = column_named(list(row), "topic", TOPIC_IDS, self.options.fields)
        title = self._column([name for name in row if name != identifier], "query", TOPIC_TITLES)
        return ("", identifier) if identifier in TOPIC_TITLES and not title else (identifier, title)

    def _column(self, row: Iterable[str], ours: str, usual: tuple[str, ...]) -> str:
        theirs = self.options.fields.get(ours)
        if theirs is not None:
            return theirs if theirs in row else ""
        return next((name for name in usual if name in row), "")


def _names_columns(names: list[str]) -> bool:
    return any(name in (*IDS, *TITLES, *TEXTS, *TOPIC_IDS, *TOPIC_TITLES) for name in names)


def _no_column(row: Iterable[str], content: str, advice: str, path: str, number: int) -> BadLineError:
    names = ", ".join(row) or "none"
    return BadLineError(path, number, f"expected columns with {content}, found {names}; {advice} names others")


def _text(row: dict[str, Any], column: str, path: str, number: int) -> str:
    """Remove a column from the row and return its value; "" if there is no such column."""
    value = row.pop(column, None) if column else None
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    if isinstance(value, (int, float)):
        return str(value)
    raise BadLineError(path, number, f"expected text in {column!r}, found {value!r:.60}")


class JsonLinesLayout(TableSource):
    """documents.jsonl, topics.jsonl, and qrels in any format."""

    name = "jsonl"
    about = "JSON lines: documents.jsonl and topics.jsonl with id, title and text (or their usual names), qrels in any format"
    place = 7
    endings = r"\.(?:jsonl|ndjson)"

    def rows(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The objects of a file."""
        tell_used("encoding")
        return json_rows(path, encoding=self.options.encoding or "utf-8", advice="--encoding latin-1?")


class BeirLayout(JsonLinesLayout):
    """One split of a BEIR data set: all documents, the judgments of the split, and their topics."""

    name = "beir"
    about = "BEIR: corpus.jsonl, queries.jsonl and qrels/*.tsv, of which --split takes one (test, if there is one)"
    place = 5
    endings = ""
    own_tables = True
    judged_only = True

    @classmethod
    def find(cls, path: str, options: ImportOptions) -> Files | None:
        """A folder with these file names."""
        corpus, queries = named_like(path, r"corpus\.jsonl"), named_like(path, r"queries\.jsonl")
        if not corpus or not queries or not (_splits(path) or options.split is not None):
            return None
        return replace(cls.rest(path, options), documents=corpus)

    @classmethod
    def rest(cls, folder: str, options: ImportOptions) -> Files:
        splits = _splits(folder)
        qrels = [splits[one_split(splits, options.split, folder, "test")]] if splits or options.split else []
        return Files((), named_like(folder, r"queries\.jsonl"), qrels)

    def rows(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The objects of a file; the fields of `metadata` move to the top level."""
        for number, row in super().rows(path):
            extra = row.pop("metadata", None)
            if isinstance(extra, dict):
                row.update({key: value for key, value in extra.items() if key not in row})
            yield number, row


def _splits(folder: str) -> dict[str, str]:
    """The file of judgments of each split."""
    tables = named_like(os.path.join(folder, "qrels"), r".*\.tsv")
    return {run_name(name).removesuffix(".tsv"): name for name in tables}


class CsvLayout(TableSource):
    """documents.csv, topics.csv, and qrels in any format; separated by commas, tabs or semicolons."""

    name = "csv"
    about = "CSV or TSV with a header: documents.csv and topics.csv, qrels in any format"
    place = 8
    endings = r"\.(?:csv|tsv)"

    def rows(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows below the header of a file of any size, each with its first line number."""
        head, encoding, texts = self._opened(path)
        dialect = self.options.dialect
        dialect.tell_used()
        delimiter = choose_delimiter(head, path, _names_columns, replace(dialect, encoding=None), DELIMITERS)
        broken, skipped, header = False, 0, None
        for line, last, cells in rows_of(texts, path, delimiter):
            broken |= last > line
            if header is None:
                header = [cell.strip() for cell in cells]
            elif len(cells) == len(header):
                yield line, dict(zip(header, cells, strict=True))
            elif self.options.lenient:
                skipped += 1
            else:
                expected = f"expected {len(header)} columns ({', '.join(header)})"
                raise BadLineError(path, line, f"{expected}, found {len(cells)}")
        detected = encoding if self.options.encoding is None else "utf-8"
        delimiter_to_report = delimiter if dialect.delimiter is None else ","
        say(dialect_in_words(os.path.basename(path), delimiter_to_report, detected, line_breaks=broken))
        say([f"{os.path.basename(path)}: {counted(skipped, 'malformed row')} skipped"] if skipped else [])

    def encoding_of(self, path: str) -> str:
        # a pipe can be read only once
        return self._opened(path)[1] if os.path.isfile(path) else super().encoding_of(path)

    def _opened(self, path: str) -> tuple[bytes, str, Iterator[str]]:
        """The first lines as UTF-8, their encoding, and all lines as text."""
        encoding_option = self.options.encoding
        if os.path.isfile(path) and _is_wide(path, encoding_option):
            file = open_table(path, encoding_option)
            text = io.StringIO(bytes(file.buffer).decode(), newline=None)
            return bytes(file.buffer[:HEAD]), file.encoding, iter(text)
        rest, first, size = lines(path), [], 0
        for line in rest:
            first.append(line)
            size += len(line)
            if size >= HEAD:
                break
        head, encoding = as_utf8(b"".join(first), path, encoding_option)
        texts = (
            decoded(line, encoding, path, number, "encoding=… names another").rstrip("\r\n") + "\n"
            for number, line in enumerate(chain(first, rest), 1)
        )
        return head[:HEAD], encoding, texts


def _is_wide(path: str, encoding: str | None) -> bool:
    """Whether a file is UTF-16 or UTF-32, by its first bytes or by the option."""
    if encoding is not None:
        return is_wide(encoding)
    with open(path, "rb") as file:
        return wide_encoding(file.read(64)) is not None


class ParquetLayout(TableSource):
    """documents.parquet, topics.parquet, and qrels in any format, read in batches (needs the extra `parquet`)."""

    name = "parquet"
    about = "Parquet: documents.parquet and topics.parquet, qrels in any format"
    place = 9
    endings = r"\.(?:parquet|pq)"

    def rows(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows, numbered from 1."""
        parquet = needed("pyarrow.parquet", "Parquet needs")
        with arrow_in_words(path), parquet.ParquetFile(path) as table:
            batches = (batch.to_pylist() for batch in table.iter_batches(BATCH))
            yield from enumerate(chain.from_iterable(batches), 1)


class MsMarcoLayout(CollectionSource):
    """The passages or documents of MS MARCO, with the topics and judgments of one split."""

    name = "msmarco"
    about = "MS MARCO: collection.tsv or msmarco-docs.tsv, queries.SPLIT.tsv and qrels.SPLIT.tsv, without headers"
    place = 6
    own_tables = True
    judged_only = True

    @classmethod
    def find(cls, path: str, options: ImportOptions) -> Files | None:
        """A folder with these file names."""
        documents = named_like(path, r"collection\.tsv", r"msmarco-docs\.tsv", r"fulldocs.*\.tsv")
        if not documents or _has_header(documents[0], options.encoding or "utf-8"):
            return None
        return replace(cls.rest(path, options), documents=documents)

    @classmethod
    def rest(cls, folder: str, options: ImportOptions) -> Files:
        topics = _by_split(named_like(folder, r".*queries.*\.tsv"))
        qrels = _by_split(named_like(folder, r".*qrels.*\.tsv"))
        if options.split is None and len(topics) <= 1 and len(qrels) <= 1:
            return Files((), list(topics.values()), list(qrels.values()))
        both = [name for name in topics if name in qrels]
        split = one_split(both, options.split, folder, lacking=" with queries and qrels")
        return Files((), [topics[split]], [qrels[split]])

    def documents_in(self, path: str) -> Iterator[Document]:
        """Two columns are a passage; four are a document with url and title."""
        for number, line in self.lines(path):
            cells, self.at = line.split("\t"), (path, number)
            if len(cells) == 2 and cells[0]:
                yield Document(cells[0], "", cells[1])
            elif len(cells) == 4 and cells[0]:
                yield Document(cells[0], cells[2], cells[3], {"url": cells[1]})
            elif line:
                expected = "id and passage, or id, url, title and body, with tabs between"
                raise BadLineError(path, number, f"expected {expected}, found {len(cells)} columns: {line[:40]!r}")

    def topics_in(self, path: str) -> Iterator[Topic]:
        """An id, a tab and a question."""
        for number, line in self.lines(path):
            cells = line.split("\t")
            if len(cells) != 2 and line:
                raise BadLineError(path, number, f"expected id and question with a tab between, found {line[:60]!r}")
            if line:
                yield Topic(cells[0], cells[1].strip())


def _has_header(path: str, encoding: str) -> bool:
    first = next((line for _, line in text_lines(path, encoding)), "")
    return first.split("\t")[0].casefold() in ("id", "_id", "doc_id", "docid", "pid", "docno", "document")


def _by_split(paths: list[str]) -> dict[str, str]:
    splits = {}
    for path in paths:
        match = SPLIT.match(os.path.basename(path))
        splits[match[1] if match else os.path.basename(path)] = path
    return splits

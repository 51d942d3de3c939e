"""Rows with named columns → documents and topics: what JSON lines, CSV, Parquet and BEIR have in common.

Columns go by their usual names, or by those that `--field title=headline` gives; what is left over becomes the
fields of the document or topic.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, ClassVar

from cranfield.collection import Document, Topic
from cranfield.errors import BadLineError, FormatError
from cranfield.formats.sources.source import Files, Options, Source, named_like

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


IDS = ("id", "_id", "doc_id", "docid", "docno", "document", "document_id", "corpus_id", "pid", "passage_id")
TOPIC_IDS = ("id", "_id", "query_id", "qid", "topic_id", "topic", "number", "num")
TITLES = ("title", "headline", "name")
TEXTS = ("text", "body", "contents", "content", "abstract", "passage")
TOPIC_TITLES = ("title", "query", "text", "question")
DESCRIPTIONS = ("description", "desc")
NARRATIVES = ("narrative", "narr")

DOCUMENT_NAMES = r"documents?|docs?|corpus|collection"
TOPIC_NAMES = r"topics?|quer(?:y|ies)"


class RowSource(Source):
    """A layout whose files are rows with named columns."""

    endings: ClassVar[str]  # as a pattern

    @classmethod
    def find(cls, path: str, options: Options) -> Files | None:
        """documents, topics and qrels with this layout's ending (docs, corpus, queries will do), or one such file."""
        if not os.path.isdir(path):
            fits = re.fullmatch(rf".*{cls.endings}(?:\.\w+)?", os.path.basename(path), re.IGNORECASE)
            return Files([path]) if fits else None
        documents = named_like(path, *(rf"(?:{name}){cls.endings}" for name in DOCUMENT_NAMES.split("|")))
        if not documents:
            return None
        topics = named_like(path, *(rf"(?:{name}){cls.endings}" for name in ("topics?", "quer(?:y|ies)")))
        return Files(documents, topics, named_like(path, rf"qrels?{cls.endings}", r"qrels?(?:\.\w+)?", r".*\.qrels?"))

    def rows(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows of a file with the numbers of their lines."""
        raise FormatError(f"{self.name} has no rows")

    def documents(self) -> Iterator[Document]:
        """One for each row."""
        columns: dict[tuple[str, ...], tuple[str, str, str]] = {}
        for path in self.files.documents:
            for number, row in self.rows(path):
                shape = tuple(row)
                if shape not in columns:
                    columns[shape] = self._document_columns(row, path, number)
                identifier, title, text = columns[shape]
                known = row.pop(identifier)
                given = str(known) if type(known) is int else known
                if not isinstance(given, str) or not given or given.isspace():
                    raise BadLineError(path, number, f"expected a document's id in {identifier!r}, found {known!r:.60}")
                self.at = (path, number)
                yield Document(
                    given,
                    _text(row.pop(title, ""), title, path, number) if title else "",
                    _text(row.pop(text, ""), text, path, number) if text else "",
                    row,
                )

    def _document_columns(self, row: dict[str, Any], path: str, number: int) -> tuple[str, str, str]:
        identifier = self._column(row, "id", IDS)
        text = self._column(row, "text", TEXTS)
        title = self._column(row, "title", TITLES)
        if not identifier or not (text or title):
            wanted = "an id" if not identifier else "a text or a title"
            advice = "--field id=COLUMN --field text=COLUMN names others"
            raise BadLineError(
                path, number, f"expected columns with {wanted}, found {', '.join(row) or 'none'}; {advice}"
            )
        return identifier, title, text

    def topics(self) -> Iterator[Topic]:
        """One for each row."""
        for path in self.files.topics:
            for number, row in self.rows(path):
                yield self._topic(row, path, number)

    def _topic(self, row: dict[str, Any], path: str, number: int) -> Topic:
        identifier = self._column(row, "topic", TOPIC_IDS)
        title = self._column(row, "query", TOPIC_TITLES)
        if not identifier or not (title or self._column(row, "description", DESCRIPTIONS)):
            wanted = "a topic's id" if not identifier else "what it asks"
            advice = "--field topic=COLUMN --field query=COLUMN names others"
            raise BadLineError(
                path, number, f"expected columns with {wanted}, found {', '.join(row) or 'none'}; {advice}"
            )
        given = str(row.pop(identifier))
        texts = {"title": _text(row.pop(title), title, path, number) if title else ""}
        for name, usual in (("description", DESCRIPTIONS), ("narrative", NARRATIVES)):
            column = self._column(row, name, usual)
            texts[name] = _text(row.pop(column), column, path, number) if column else ""
        texts["title"] = texts["title"] or texts["description"]  # as with TREC's topics that have no title
        return Topic(given, **texts, fields=row)

    def _column(self, row: Iterable[str], ours: str, usual: tuple[str, ...]) -> str:
        theirs = self.options.fields.get(ours)
        if theirs is not None:
            return theirs if theirs in row else ""
        return next((name for name in usual if name in row), "")


def _text(value: Any, column: str, path: str, number: int) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    if isinstance(value, (int, float)):
        return str(value)
    raise BadLineError(path, number, f"expected text in {column!r}, found {value!r:.60}")

"""TREC's documents and topics: `<DOC>` with `<DOCNO>`, `<top>` with num, title, desc and narr, and the newer `<topic number=…>`.

It is SGML that no parser accepts: tags are not closed (`<num> Number: 301`), fields start with their name, several
documents follow each other without a root. So records are split by their outer tags, line by line, and fields
within a record end where the next one starts.
"""

from __future__ import annotations

import html
import os
import re
from typing import TYPE_CHECKING, Any

from cranfield.base.collection import Document, Topic
from cranfield.base.errors import BadLineError
from cranfield.formats.importers.source import CollectionSource, Files, ImportOptions, head_of, named_like, squeezed

if TYPE_CHECKING:
    from collections.abc import Iterator


DOC_START = re.compile(r"<doc\b[^>]*>", re.IGNORECASE)
OPENED = re.compile(r"<([a-z]\w*)\b[^>]*>", re.IGNORECASE)
TAG = re.compile(r"</?[a-z][^<>]*>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
TITLES = ("title", "headline", "head", "hl", "ttl", "ti", "hdr")
TEXTS = ("text", "body", "abstract", "leadpara", "graphic", "correction")
TOP = re.compile(r"<(top|topic)\b([^>]*)>(.*?)</\1\s*>", re.IGNORECASE | re.DOTALL)
TOP_FIELD = re.compile(r"<([a-z]\w*)\b([^>]*)>(.*?)(?=<[a-z]|\Z)", re.IGNORECASE | re.DOTALL)
NUMBER = re.compile(r"""\b(?:number|id|num|qid)\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)
KIND = re.compile(r"""\btype\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)
ALIASES = {
    "query": "title",
    "desc": "description",
    "question": "description",
    "narr": "narrative",
    "dom": "domain",
    "con": "concepts",
    "fac": "factors",
    "def": "definitions",
    "smry": "summary",
}
SAID = re.compile(
    r"\s*(?:number|topic|description|narrative|domain|concept\(s\)|summary|factor\(s\)|definition\(s\))\s*:",
    re.IGNORECASE,
)


class TrecLayout(CollectionSource):
    """Documents and topics as distributed by the tracks of TREC."""

    name = "trec"
    about = "TREC: documents in <DOC> with <DOCNO>, topics in <top> (num, title, desc, narr) or <topic number=…>"
    place = 10

    @classmethod
    def find(cls, path: str, options: ImportOptions) -> Files | None:
        """Files with `<DOC>` and `<top>` anywhere below a folder, and qrels by their name."""
        if not os.path.isdir(path):
            return Files([path]) if _looks(path, b"<doc>", b"<doc ") else None
        documents = [name for _, texts in _folders(path) for name in texts if _looks(name, b"<doc>", b"<doc ")]
        if not documents:
            return None
        rest = cls.rest(path, options)
        return Files(documents, rest.topics, [name for name in rest.qrels if name not in documents])

    @classmethod
    def rest(cls, folder: str, options: ImportOptions) -> Files:
        topics, qrels = [], []
        for inner, texts in _folders(folder):
            topics += [name for name in texts if cls.asks(name)]
            qrels += named_like(inner, r".*qrels?\..*|.*qrels?|qrels?.*")
        return Files((), topics, [name for name in qrels if name not in topics])

    @classmethod
    def asks(cls, path: str) -> bool:
        return _looks(path, b"<top>", b"<topic ", b"<top ")

    def documents_in(self, path: str) -> Iterator[Document]:
        """One document for each `<DOC>`; other elements than title and text become fields."""
        for line, record in self._records(path):
            self.at = (path, line)
            yield _document(record, path, line)

    def _records(self, path: str) -> Iterator[tuple[int, str]]:
        """The content of each document and the line it starts on; documents and lines may overlap in any way."""
        parts: list[str] = []
        start = 0
        for number, line in self.lines(path):
            while True:
                if not start:
                    opened = DOC_START.search(line)
                    if not opened:
                        break
                    start, line = number, line[opened.end() :]
                closed = re.search(r"</doc\s*>", line, re.IGNORECASE)
                if not closed:
                    if number != start and DOC_START.match(line.lstrip()):
                        problem = f"<DOC> is not closed before the next one starts in line {number}"
                        raise BadLineError(path, start, problem)
                    parts.append(line)
                    break
                yield start, "\n".join([*parts, line[: closed.start()]])
                parts, start, line = [], 0, line[closed.end() :]
        if start:
            raise BadLineError(path, start, "<DOC> is not closed; is the file cut off?")

    def topics_in(self, path: str) -> Iterator[Topic]:
        """One for each `<top>` or `<topic>`."""
        text = "\n".join(line for _, line in self.lines(path))
        text = re.sub(r"<!DOCTYPE.*?\]\s*>|<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
        matches = list(TOP.finditer(text))
        if not matches:
            raise BadLineError(path, 1, "expected topics in <top> … </top>, found none")
        for match in matches:
            yield _topic(match, path, text.count("\n", 0, match.start()) + 1)


def _folders(path: str) -> Iterator[tuple[str, list[str]]]:
    """Each folder below a path, with its files."""
    for folder, inner, names in os.walk(path):
        inner.sort()
        yield folder, [os.path.join(folder, name) for name in sorted(names) if not name.startswith(".")]


def _looks(path: str, *starts: bytes) -> bool:
    head = head_of(path).lower()
    return any(start in head for start in starts)


def _document(record: str, path: str, line: int) -> Document:
    identifier, title = "", ""
    texts: list[str] = []
    fields: dict[str, Any] = {}
    for name, raw in _elements(record):
        inside = _plain(raw)
        if name == "docno":
            identifier = inside.strip()
        elif name in TITLES and not title:
            title = squeezed(inside)
        elif name in TEXTS:
            texts.append(inside.strip("\n"))
        elif inside.strip():
            fields[name] = squeezed(inside)
    if not identifier:
        raise BadLineError(path, line, "expected <DOCNO> in <DOC>, found none")
    if not texts:  # the text outside of known elements
        rest = re.sub(r"<(docno|docid|dochdr|url)\b[^>]*>.*?</\1\s*>", "", record, flags=re.IGNORECASE | re.DOTALL)
        texts = [_plain(rest).strip()]
        fields = {key: value for key, value in fields.items() if key in ("docid", "dochdr", "url", "date")}
    return Document(identifier, title, "\n".join(text for text in texts if text), fields)


def _elements(record: str) -> Iterator[tuple[str, str]]:
    """The outermost elements with their content. An unclosed tag is searched for only once, as records can be long."""
    position, open_for_good = 0, set()
    while opened := OPENED.search(record, position):
        name, position = opened[1].lower(), opened.end()
        closed = None
        if name not in open_for_good:
            closed = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(record, position)
        if closed is None:
            open_for_good.add(name)
            continue
        yield name, record[position : closed.start()]
        position = closed.end()


def _plain(text: str) -> str:
    return html.unescape(TAG.sub(" ", text)) if "<" in text or "&" in text else text


def _topic(match: re.Match[str], path: str, line: int) -> Topic:
    number = NUMBER.search(match[2])
    fields: dict[str, Any] = {"id": number[1]} if number else {}
    kind = KIND.search(match[2])
    if kind:
        fields["type"] = kind[1]
    subtopics: list[dict[str, str]] = []
    for part in TOP_FIELD.finditer(match[3]):
        name = ALIASES.get(part[1].lower(), part[1].lower())
        inside = squeezed(SAID.sub("", html.unescape(TAG.sub(" ", part[3])), count=1))
        if name == "subtopic":
            number_match, sort = NUMBER.search(part[2]), KIND.search(part[2])
            subtopics.append({"number": number_match[1] if number_match else str(len(subtopics) + 1), "text": inside})
            if sort:
                subtopics[-1]["type"] = sort[1]
        elif name == "num":
            fields["id"] = inside
        elif inside:
            fields[name] = inside
    identifier = str(fields.pop("id", ""))
    if not identifier:
        raise BadLineError(path, line, "expected a number in <num> or number=…, found none")
    if subtopics:
        fields["subtopics"] = subtopics
    description = fields.pop("description", "")
    title = fields.pop("title", "") or description
    return Topic(identifier, title, description, fields.pop("narrative", ""), fields)

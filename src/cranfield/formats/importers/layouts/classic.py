"""The collections of SMART's time: SMART's own files (Cranfield, CACM, CISI, MED, ADI, OHSUMED), NPL, TIME and LISA.

SMART: `.I 1` starts a document or topic, `.T .A .B .W` its fields. Real files deviate from that. A field may come twice
(a second `.W` in Cranfield's 576, an `.A` for each author in CISI) and is then joined; `.W` may be missing (CACM); a
marker may have trailing blanks; a last `.I` may lack its number. Judgments are columns whose third is a code
(Cranfield) or meaningless (the `.REL` of CISI and ADI: `topic document 0 0.000000`). Topics may be numbered by position.

NPL: a number alone on a line, the text, and a line with a single slash; judgments in the same way.

TIME: `*TEXT 017 01/04/63 PAGE 020` starts a document, `*FIND 1` a topic; judgments are lines of numbers. They number
documents by position, 1 to 423, and not by the TEXT numbers, which have gaps: here the position is the id and the TEXT
number a field. Most copies have a second file, TIME.REL.ALL, with more judgments.

LISA: `Document 1`, a title, an empty line, a text and a line of stars; over several files. A topic is a number and a
text that ends in `#`. Judgments are blocks `Query 1`, `2 Relevant Refs:` and numbers up to -1. Some copies have
`LISARJ.NUM` instead: a stream of numbers in columns of twelve (topic, count and documents).
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from cranfield.base.collection import Document, Topic
from cranfield.base.errors import BadLineError
from cranfield.formats.importers.source import (
    ClassicSource,
    Files,
    ImportedJudgment,
    ImportOptions,
    head_of,
    named_like,
    squeezed,
    without_zeros,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.base.qrels import Qrels


MARKER = re.compile(r"\.([A-Z])\s*\Z")
START = re.compile(r"\.I(?:\s+(\S+))?\s*\Z")
FIELDS = {
    "A": "author",
    "B": "bibliography",
    "C": "categories",
    "K": "keywords",
    "M": "subjects",
    "N": "entry",
    "P": "type",
    "S": "source",
    "X": "references",
}
LISTS = {"A", "X"}  # fields with one item per line


class Smart(ClassicSource):
    """Documents, topics and judgments in the files of the SMART system."""

    name = "smart"
    about = "SMART: .I starts a document or topic, .T .A .B .W its fields (Cranfield, CACM, CISI, MED, ADI, OHSUMED)"
    place = 1
    grades = "auto"
    topic_ids = "auto"
    document_names = (r".*\.all(\.\d+)?", r"ohsumed\.\d+")
    topic_names = (r".*\.(qry|que)", r"quer(y|ies)\.te?xt")
    qrels_names = (r"cranqrel", r"qrels\.te?xt", r".*\.rel", r".*qrels?(\.txt)?")
    begins = re.compile(rb"(?:\s*[\r\n])?\.I(?:[^\S\r\n]+\S+)?[^\S\r\n]*(?:[\r\n]|\Z)")

    @classmethod
    def rest(cls, folder: str, options: ImportOptions) -> Files:
        """Topics start with `.I`, as documents do."""
        files = super().rest(folder, options)
        return replace(files, topics=[name for name in files.topics if cls.begins.match(head_of(name))])

    def documents_in(self, path: str) -> Iterator[Document]:
        """One document for each `.I`; OHSUMED's `.U` is the id if there is one."""
        for identifier, line, fields in self._records(path):
            self.at = (path, line)
            text = "\n".join(fields.get("W", [])).strip("\n")
            title = _text(fields, "U") or identifier
            yield Document(title, _text(fields, "T"), text, _others(fields, "TWU"))

    def topics_in(self, path: str) -> Iterator[Topic]:
        """The question in `.W`; if there is a title as well (CISI's later ones), `.W` is the description."""
        for identifier, _, fields in self._records(path):
            title, text = _text(fields, "T"), _text(fields, "W")
            yield Topic(identifier, title or text, text if title else "", fields=_others(fields, "TW"))

    def judgments_in(self, path: str) -> Iterator[ImportedJudgment]:
        """Two to four columns: topic, document, and a code or zeros; a file with TREC's columns is read as such."""
        rows = [(number, line.split()) for number, line in self.lines(path) if line.strip()]
        in_trec = bool(rows) and all(len(row) == 4 and _is_trec(row) for _, row in rows[:50])
        for number, row in rows:
            if not 2 <= len(row) <= 5:
                problem = f"expected topic, document and perhaps a code, found {' '.join(row)!r:.60}"
                raise BadLineError(path, number, problem)
            document, grade = (row[2], row[3]) if in_trec else (row[1], row[2] if len(row) == 3 else "1")
            try:
                value = float(grade)
            except ValueError:
                raise BadLineError(path, number, f"expected a code, found {grade!r:.60}") from None
            yield ImportedJudgment(without_zeros(row[0]), without_zeros(document), value, path, number)

    def _records(self, path: str) -> Iterator[tuple[str, int, dict[str, list[str]]]]:
        """The id, the line and the fields of each record; a field is a list of lines."""
        identifier, begun, current = "", 0, None
        fields: dict[str, list[str]] = {}
        for number, line in self.lines(path):
            if start := START.match(line):
                if identifier:
                    yield identifier, begun, fields
                identifier, begun, fields, current = without_zeros(start[1] or ""), number, {}, None
            elif not identifier:
                if line.strip():
                    line_start = ".I" if begun else line
                    raise BadLineError(path, begun or number, f"expected .I and a number, found {line_start!r:.60}")
            elif marker := MARKER.match(line):
                current = marker[1]
                if current in fields and current == "W":
                    place = f"{os.path.basename(path)}:{number}"
                    self.notes.append(f"{place}: {identifier} has a second .W; the two are joined")
                fields.setdefault(current, [])
            elif current is not None:
                fields[current].append(line)
            elif line.strip():
                problem = f"expected a field (.T, .A, .B, .W …) after .I {identifier}, found {line!r:.60}"
                raise BadLineError(path, number, problem)
        if identifier:
            yield identifier, begun, fields


def _text(fields: dict[str, list[str]], key: str) -> str:
    return squeezed(" ".join(fields.get(key, [])))


def _others(fields: dict[str, list[str]], keys: str) -> dict[str, str | list[str]]:
    """The other fields by their names; fields with one item per line as lists."""
    others: dict[str, str | list[str]] = {}
    for key, lines in fields.items():
        value = [squeezed(line) for line in lines if line.strip()] if key in LISTS else squeezed(" ".join(lines))
        if value and key not in keys:
            others[FIELDS.get(key, key.lower())] = value
    return others


def _is_trec(row: list[str]) -> bool:
    """Whether four columns are `topic 0 document grade` (MED) and not SMART's `topic document 0 0.000000`."""
    return row[1] == "0" and "." not in row[3]


class Npl(ClassicSource):
    """Titles and abstracts from electronics, with expert questions."""

    name = "npl"
    about = "NPL: doc-text, query-text and rlv-ass, each a number, lines and a slash"
    place = 3
    document_names = (r"doc-text(\.txt)?",)
    topic_names = (r"query-text(\.txt)?",)
    qrels_names = (r"rlv-ass(\.txt)?",)
    begins = re.compile(rb"\s*\d+\s*\n(?:[^/\n]*\n)+\s*/\s*\n")

    def documents_in(self, path: str) -> Iterator[Document]:
        """Texts without titles."""
        for identifier, body, _ in self._records(path):
            yield Document(identifier, "", "\n".join(body))

    def topics_in(self, path: str) -> Iterator[Topic]:
        """One question per record."""
        for identifier, body, _ in self._records(path):
            yield Topic(identifier, squeezed(" ".join(body)))

    def judgments_in(self, path: str) -> Iterator[ImportedJudgment]:
        """The relevant documents of a topic, over several lines."""
        for topic, body, start in self._records(path, may_end_open=True):
            for number, line in enumerate(body, start + 1):
                for word in line.split():
                    if not word.isdigit():
                        raise BadLineError(path, number, f"expected documents' numbers, found {word!r:.60}")
                    yield ImportedJudgment(topic, without_zeros(word), 1, path, number)

    def _records(self, path: str, may_end_open: bool = False) -> Iterator[tuple[str, list[str], int]]:
        """The number, the lines and the line number of each record."""
        identifier, start = "", 0
        body: list[str] = []
        for number, line in self.lines(path):
            words = line.split()
            if words == ["/"]:
                if identifier:
                    yield identifier, body, start
                identifier, body = "", []
            elif identifier:
                body.append(line)
            elif words:
                if len(words) != 1 or not words[0].isdigit():
                    raise BadLineError(path, number, f"expected a number alone on its line, found {line!r:.60}")
                identifier, start = without_zeros(words[0]), number
        if identifier:
            problem = f"record {identifier} has no closing line with a slash; is the file cut off?"
            if not may_end_open:
                raise BadLineError(path, start, problem)
            self.odd(path, start, problem, "it is read to the end of the file, as some copies end so")
            yield identifier, body, start


TEXT = re.compile(r"\*TEXT\s+(\S+)\s*(.*?)(?:\s*PAGE\s+(\S+))?\s*\Z")
FIND = re.compile(r"\*FIND\s+(\d+)\s*\Z")


class Time(ClassicSource):
    """Articles of TIME magazine from 1963."""

    name = "time"
    about = "TIME: *TEXT starts a document, *FIND a topic, judgments are a topic and its documents by position"
    place = 2
    document_names = (r".*\.all",)
    topic_names = (r".*\.que", r".*\.qry")
    qrels_names = (r".*\.rel", r".*\.rel\.all")
    begins = re.compile(rb"\s*\*TEXT")

    @classmethod
    def rest(cls, folder: str, options: ImportOptions) -> Files:
        """TIME.REL.ALL is listed but not read."""
        files = super().rest(folder, options)
        return replace(files, unread=[name for name in named_like(folder, r".*\.rel\.all") if name not in files.qrels])

    def judgments(self) -> Qrels | None:
        for path in self.files.unread:
            names = ", ".join(map(os.path.basename, self.files.qrels))
            problem = f"these are other judgments than those in {names}; --qrels FILE says which are meant"
            self.odd(path, 1, problem, f"{names} is read")
        return super().judgments()

    def documents(self) -> Iterator[Document]:
        """One for each `*TEXT`, numbered by position over all files."""
        records = chain.from_iterable(self._records(path, TEXT, "*TEXT") for path in self.files.documents)
        for position, (head, body) in enumerate(records, 1):
            head_fields = {"text_number": head[1], "date": head[2], "page": head[3]}
            fields = {key: value for key, value in head_fields.items() if value}
            yield Document(str(position), "", "\n".join(line for line in body if line.strip()), fields)

    def topics_in(self, path: str) -> Iterator[Topic]:
        """One for each `*FIND`."""
        for head, body in self._records(path, FIND, "*FIND"):
            yield Topic(without_zeros(head[1]), squeezed(" ".join(body)))

    def judgments_in(self, path: str) -> Iterator[ImportedJudgment]:
        """A topic and its relevant documents on each line."""
        for number, line in self.lines(path):
            words = line.split()
            if not all(word.isdigit() for word in words):
                raise BadLineError(path, number, f"expected a topic and its documents, all numbers, found {line!r:.60}")
            for word in words[1:]:
                yield ImportedJudgment(without_zeros(words[0]), without_zeros(word), 1, path, number)

    def _records(self, path: str, start: re.Pattern[str], word: str) -> Iterator[tuple[re.Match[str], list[str]]]:
        head: re.Match[str] | None = None
        body: list[str] = []
        stopped = False
        for number, line in self.lines(path):
            stopped = stopped or line.startswith("*STOP")
            if stopped:  # read on nevertheless, to detect a truncated file
                continue
            if match := start.match(line):
                if head is not None:
                    yield head, body
                head, body = match, []
            elif line.startswith(word) or (head is None and line.strip()):
                raise BadLineError(path, number, f"expected {word} and a number, found {line!r:.60}")
            else:
                body.append(line)
        if head is not None:
            yield head, body


LISA_START = re.compile(r"Document\s+(\d+)\s*\Z")
STARS = re.compile(r"\*{10,}\s*\Z")
QUERY = re.compile(r"Query\s+(\d+)\s*\Z")
COLUMNS = re.compile(r"(?:[ \d]{11}\d)+\s*\Z")
COUNT = re.compile(r"(\d+)\s+Relevant Refs:?\s*\Z", re.IGNORECASE)


class Lisa(ClassicSource):
    """Library and Information Science Abstracts."""

    name = "lisa"
    about = "LISA: Document N, title, text and a line of stars; topics end in #"
    place = 4
    document_names = (r"lisa\d*\.\d+", r".*\.all")
    topic_names = (r".*\.que", r".*\.qry")
    qrels_names = (r"lisa\.rel", r".*\.rel", r"lisarj\.num")
    begins = re.compile(rb"(?:\s*[\r\n])?Document[^\S\r\n]+\d+[^\S\r\n]*(?:[\r\n]|\Z)")

    def lines(self, path: str) -> Iterator[tuple[int, str]]:
        """The lines without DOS's mark for the end of a file."""
        return ((number, line) for number, line in super().lines(path) if line.strip() != "\x1a")

    def documents_in(self, path: str) -> Iterator[Document]:
        """The lines up to the first empty one are the title."""
        for identifier, body in self._records(path):
            gap = next((i for i, line in enumerate(body) if not line.strip()), len(body))
            text = "\n".join(line.strip() for line in body[gap:]).strip("\n")
            yield Document(identifier, squeezed(" ".join(body[:gap])), text)

    def _records(self, path: str) -> Iterator[tuple[str, list[str]]]:
        identifier = ""
        body: list[str] = []
        for number, line in self.lines(path):
            start = LISA_START.match(line)
            if start and not identifier:
                identifier, body = without_zeros(start[1]), []
            elif STARS.match(line):
                if identifier:
                    yield identifier, body
                identifier = ""
            elif identifier:
                body.append(line)
            elif line.strip():
                raise BadLineError(path, number, f"expected Document and a number, found {line!r:.60}")
        if identifier:
            yield identifier, body

    def topics_in(self, path: str) -> Iterator[Topic]:
        """A number, and a text that ends in #."""
        identifier, body, number = "", [], 0
        for number, line in self.lines(path):
            if not identifier:
                if line.strip() and not line.strip().isdigit():
                    raise BadLineError(path, number, f"expected a topic's number, found {line!r:.60}")
                identifier = without_zeros(line.strip()) if line.strip() else ""
                continue
            body.append(line)
            if line.rstrip().endswith("#"):
                yield Topic(identifier, squeezed(" ".join(body)).rstrip("# "))
                identifier, body = "", []
        if identifier:
            raise BadLineError(path, number, f"topic {identifier} does not end in #; is the file cut off?")

    def judgments_in(self, path: str) -> Iterator[ImportedJudgment]:
        """Blocks of a query and its documents, or the same as a stream of numbers."""
        first = next((line for _, line in self.lines(path) if line.strip()), "")
        return self._stream(path) if COLUMNS.match(first) else self._blocks(path)

    def _stream(self, path: str) -> Iterator[ImportedJudgment]:
        """Topic, count and as many documents, repeated; line ends have no meaning."""
        self.odd(
            path,
            1,
            "expected Query and its documents' numbers, found numbers alone",
            "they are topic, count, documents",
        )
        topic, left, number = "", -1, 1
        for number, line in self.lines(path):
            for word in line.split():
                if not word.isdigit():
                    raise BadLineError(path, number, f"expected numbers in columns of 12, found {word!r:.60}")
                if left > 0:
                    yield ImportedJudgment(topic, without_zeros(word), 1, path, number)
                    left -= 1
                elif left == 0 or not topic:
                    topic, left = without_zeros(word), -1
                else:
                    left = int(word)
        if left:
            lacking = "none, nor their count" if left < 0 else f"{left} too few"
            problem = f"topic {topic}: expected documents, found {lacking}; is the file cut off?"
            raise BadLineError(path, number, problem)

    def _blocks(self, path: str) -> Iterator[ImportedJudgment]:
        """The documents of each query up to -1, checked against their count."""
        topic, promised, listed = "", -1, 0
        for number, line in self.lines(path):
            query, count = QUERY.match(line.strip()), COUNT.match(line.strip())
            if query:
                topic, promised, listed = without_zeros(query[1]), -1, 0
                continue
            if count:
                promised = int(count[1])
                continue
            words = line.split()
            if words and not (topic and all(word.isdigit() or word == "-1" for word in words)):
                raise BadLineError(path, number, f"expected Query and its documents' numbers, found {line!r:.60}")
            documents = words[: words.index("-1")] if "-1" in words else words
            listed += len(documents)
            if "-1" in words and promised not in (-1, listed):
                problem = f"topic {topic}: expected {promised} documents, found {listed}"
                self.odd(path, number, problem, "those that are listed count")
            for word in documents:
                yield ImportedJudgment(topic, without_zeros(word), 1, path, number)

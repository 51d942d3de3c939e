"""The LISA collection: `Document 1`, a title, an empty line, a text and a line of stars; over several files.

A topic is a number and a text that ends in `#`; judgments are blocks `Query 1`, `2 Relevant Refs:` and numbers up to -1. Some
copies have `LISARJ.NUM` in place of these blocks: a stream of numbers in columns of twelve, topic, count and documents.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cranfield.collection import Document, Topic
from cranfield.errors import BadLineError
from cranfield.importers.source import ClassicSource, Judgment, squeezed, without_zeros

if TYPE_CHECKING:
    from collections.abc import Iterator


START = re.compile(r"Document\s+(\d+)\s*\Z")
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
        """Without the mark at the end of a file, for DOS."""
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
            start = START.match(line)
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

    def judgments_in(self, path: str) -> Iterator[Judgment]:
        """Blocks of a query and its documents, or the same as a stream of numbers."""
        first = next((line for _, line in self.lines(path) if line.strip()), "")
        return self._stream(path) if COLUMNS.match(first) else self._blocks(path)

    def _stream(self, path: str) -> Iterator[Judgment]:
        """Topic, count and so many documents, over and over, wherever lines end."""
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
                    yield Judgment(topic, without_zeros(word), 1, path, number)
                    left -= 1
                elif left == 0 or not topic:
                    topic, left = without_zeros(word), -1
                else:
                    left = int(word)
        if left:
            found = "none, nor their count" if left < 0 else f"{left} too few"
            raise BadLineError(path, number, f"topic {topic}: expected documents, found {found}; is the file cut off?")

    def _blocks(self, path: str) -> Iterator[Judgment]:
        """Numbers up to -1 for each query, with their count above them."""
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
                yield Judgment(topic, without_zeros(word), 1, path, number)

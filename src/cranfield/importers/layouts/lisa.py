"""The LISA collection: `Document 1`, a title, an empty line, a text and a line of stars; over several files.

A topic is a number and a text that ends in `#`; judgments are blocks `Query 1`, `2 Relevant Refs:` and numbers up to -1.
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
COUNT = re.compile(r"(\d+)\s+Relevant Refs:?\s*\Z", re.IGNORECASE)


class Lisa(ClassicSource):
    """Library and Information Science Abstracts."""

    name = "lisa"
    about = "LISA: Document N, title, text and a line of stars; topics end in #"
    place = 4
    document_names = (r"lisa\d*\.\d+", r".*\.all")
    topic_names = (r".*\.que", r".*\.qry")
    qrels_names = (r"lisa\.rel", r".*\.rel")
    begins = re.compile(rb"(?:\s*[\r\n])?Document[^\S\r\n]+\d+[^\S\r\n]*(?:[\r\n]|\Z)")

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
            elif line.strip() and line.strip() != "\x1a":  # the end of a file, for DOS
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
        """Numbers up to -1 for each query; the count above them must be theirs."""
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
                raise BadLineError(path, number, f"topic {topic}: expected {promised} documents, found {listed}")
            for word in documents:
                yield Judgment(topic, without_zeros(word), 1, path, number)

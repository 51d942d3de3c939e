"""The LISA collection: `Document 1`, a title, an empty line, a text and a line of stars; over several files.

A topic is a number and a text that ends in `#`; judgments are blocks `Query 1`, `2 Relevant Refs:` and numbers up to -1.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from cranfield.collection import Document, Topic
from cranfield.errors import BadLineError
from cranfield.formats.sources.source import (
    Files,
    Judgment,
    Options,
    Source,
    gathered,
    head_of,
    named_like,
    squeezed,
    text_lines,
    without_zeros,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.collection import Qrels


START = re.compile(r"Document\s+(\d+)\s*\Z")
STARS = re.compile(r"\*{10,}\s*\Z")
QUERY = re.compile(r"Query\s+(\d+)\s*\Z")
COUNT = re.compile(r"(\d+)\s+Relevant Refs:?\s*\Z", re.IGNORECASE)


class Lisa(Source):
    """Library and Information Science Abstracts."""

    name = "lisa"
    about = "LISA: Document N, title, text and a line of stars; topics end in #"
    family = "smart"
    grades = "auto"

    @classmethod
    def find(cls, path: str, options: Options) -> Files | None:
        """LISA0.001 and its fellows, LISA.QUE and LISA.REL, or a file of that look."""
        if not os.path.isdir(path):
            return Files([path]) if _looks(path) else None
        documents = [name for name in named_like(path, r"lisa\d*\.\d+", r".*\.all") if _looks(name)]
        if not documents:
            return None
        return Files(documents, named_like(path, r".*\.que", r".*\.qry"), named_like(path, r"lisa\.rel", r".*\.rel"))

    def documents(self) -> Iterator[Document]:
        """The lines up to the first empty one are the title."""
        for path in self.files.documents:
            for identifier, body in _starred(path, self.options.encoding):
                gap = next((i for i, line in enumerate(body) if not line.strip()), len(body))
                text = "\n".join(line.strip() for line in body[gap:]).strip("\n")
                yield Document(identifier, squeezed(" ".join(body[:gap])), text)

    def topics(self) -> Iterator[Topic]:
        """A number, and a text that ends in #."""
        for path in self.files.topics:
            identifier, body = "", []
            for number, line in text_lines(path, self.options.encoding):
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

    def judgments(self) -> Qrels | None:
        """Numbers up to -1 for each query; the count above them must be theirs."""
        if not self.files.qrels:
            return None
        return gathered(
            (one for path in self.files.qrels for one in _judgments(path, self.options.encoding)), self.notes
        )


def _looks(path: str) -> bool:
    first = next((line for line in head_of(path).splitlines() if line.strip()), b"")
    return START.match(first.decode("latin-1")) is not None


def _starred(path: str, encoding: str) -> Iterator[tuple[str, list[str]]]:
    identifier, body = "", []  # type: ignore[var-annotated]
    for number, line in text_lines(path, encoding):
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


def _judgments(path: str, encoding: str) -> Iterator[Judgment]:
    topic, promised, found = "", -1, 0
    for number, line in text_lines(path, encoding):
        query, count = QUERY.match(line.strip()), COUNT.match(line.strip())
        if query:
            topic, promised, found = without_zeros(query[1]), -1, 0
            continue
        if count:
            promised = int(count[1])
            continue
        words = line.split()
        if words and not (topic and all(word.isdigit() or word == "-1" for word in words)):
            raise BadLineError(path, number, f"expected Query and its documents' numbers, found {line!r:.60}")
        listed = words[: words.index("-1")] if "-1" in words else words
        found += len(listed)
        if "-1" in words and promised not in (-1, found):
            raise BadLineError(path, number, f"topic {topic}: expected {promised} documents, found {found}")
        for word in listed:
            yield Judgment(topic, without_zeros(word), 1, path, number)

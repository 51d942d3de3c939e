"""The NPL collection: a number alone on a line, the text, and a line with a single slash; judgments in the same way."""

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


LIKE = re.compile(rb"\s*\d+\s*\n(?:[^/\n]*\n)+\s*/\s*\n")


class Npl(Source):
    """Titles and abstracts from electronics, with expert questions."""

    name = "npl"
    about = "NPL: doc-text, query-text and rlv-ass, each a number, lines and a slash"
    family = "smart"
    grades = "auto"

    @classmethod
    def find(cls, path: str, options: Options) -> Files | None:
        """doc-text, query-text and rlv-ass, or a file of that look."""
        if not os.path.isdir(path):
            return Files([path]) if LIKE.match(head_of(path)) else None
        documents = [name for name in named_like(path, r"doc-text(\.txt)?") if LIKE.match(head_of(name))]
        if not documents:
            return None
        return Files(documents, named_like(path, r"query-text(\.txt)?"), named_like(path, r"rlv-ass(\.txt)?"))

    def documents(self) -> Iterator[Document]:
        """A text without a title each."""
        for path in self.files.documents:
            for identifier, body, _ in _slashed(path, self.options.encoding):
                yield Document(identifier, "", "\n".join(body))

    def topics(self) -> Iterator[Topic]:
        """A question each."""
        for path in self.files.topics:
            for identifier, body, _ in _slashed(path, self.options.encoding):
                yield Topic(identifier, squeezed(" ".join(body)))

    def judgments(self) -> Qrels | None:
        """A topic's relevant documents, over as many lines as it takes."""
        if not self.files.qrels:
            return None
        return gathered(
            (one for path in self.files.qrels for one in _judgments(path, self.options.encoding)), self.notes
        )


def _slashed(path: str, encoding: str) -> Iterator[tuple[str, list[str], int]]:
    """The number, the lines and the line number of each record."""
    identifier, body, start = "", [], 0  # type: ignore[var-annotated]
    for number, line in text_lines(path, encoding):
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
        raise BadLineError(path, start, f"record {identifier} has no closing line with a slash; is the file cut off?")


def _judgments(path: str, encoding: str) -> Iterator[Judgment]:
    for topic, body, start in _slashed(path, encoding):
        for number, line in enumerate(body, start + 1):
            for word in line.split():
                if not word.isdigit():
                    raise BadLineError(path, number, f"expected documents' numbers, found {word!r:.60}")
                yield Judgment(topic, without_zeros(word), 1, path, number)

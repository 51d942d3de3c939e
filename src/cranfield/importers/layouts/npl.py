"""The NPL collection: a number alone on a line, the text, and a line with a single slash; judgments in the same way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cranfield.collection import Document, Topic
from cranfield.errors import BadLineError
from cranfield.importers.source import ClassicSource, Judgment, squeezed, without_zeros

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        """A text without a title each."""
        for identifier, body, _ in self._records(path):
            yield Document(identifier, "", "\n".join(body))

    def topics_in(self, path: str) -> Iterator[Topic]:
        """A question each."""
        for identifier, body, _ in self._records(path):
            yield Topic(identifier, squeezed(" ".join(body)))

    def judgments_in(self, path: str) -> Iterator[Judgment]:
        """A topic's relevant documents, over as many lines as it takes."""
        for topic, body, start in self._records(path, may_end_open=True):
            for number, line in enumerate(body, start + 1):
                for word in line.split():
                    if not word.isdigit():
                        raise BadLineError(path, number, f"expected documents' numbers, found {word!r:.60}")
                    yield Judgment(topic, without_zeros(word), 1, path, number)

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

"""The TIME collection: `*TEXT 017 01/04/63 PAGE 020` starts a document, `*FIND 1` a topic; judgments are lines of numbers.

The judgments count documents by position, 1 to 423, and not by the TEXT numbers, which have gaps: the position
is the id here, the TEXT number a field.
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


TEXT = re.compile(r"\*TEXT\s+(\S+)\s*(.*?)(?:\s*PAGE\s+(\S+))?\s*\Z")
FIND = re.compile(r"\*FIND\s+(\d+)\s*\Z")


class Time(Source):
    """Articles of TIME magazine from 1963."""

    name = "time"
    about = "TIME: *TEXT starts a document, *FIND a topic, judgments are a topic and its documents by position"
    family = "smart"
    grades = "auto"

    @classmethod
    def find(cls, path: str, options: Options) -> Files | None:
        """TIME.ALL, TIME.QUE and TIME.REL, or a file that starts with `*TEXT`."""
        if not os.path.isdir(path):
            return Files([path]) if head_of(path).lstrip().startswith(b"*TEXT") else None
        documents = [name for name in named_like(path, r".*\.all") if head_of(name).lstrip().startswith(b"*TEXT")]
        if not documents:
            return None
        return Files(documents, named_like(path, r".*\.que", r".*\.qry"), named_like(path, r".*\.rel"))

    def documents(self) -> Iterator[Document]:
        """One for each `*TEXT`, numbered by position."""
        position = 0
        for path in self.files.documents:
            for head, body in _starred(path, self.options.encoding, TEXT, "*TEXT"):
                position += 1
                known = {"text_number": head[1], "date": head[2], "page": head[3]}
                fields = {key: value for key, value in known.items() if value}
                yield Document(str(position), "", "\n".join(line for line in body if line.strip()), fields)

    def topics(self) -> Iterator[Topic]:
        """One for each `*FIND`."""
        for path in self.files.topics:
            for head, body in _starred(path, self.options.encoding, FIND, "*FIND"):
                yield Topic(without_zeros(head[1]), squeezed(" ".join(body)))

    def judgments(self) -> Qrels | None:
        """A topic and its relevant documents on each line."""
        if not self.files.qrels:
            return None
        return gathered(
            (one for path in self.files.qrels for one in _judgments(path, self.options.encoding)), self.notes
        )


def _starred(path: str, encoding: str, start: re.Pattern[str], word: str) -> Iterator[tuple[re.Match[str], list[str]]]:
    head: re.Match[str] | None = None
    body: list[str] = []
    stopped = False
    for number, line in text_lines(path, encoding):
        stopped = stopped or line.startswith("*STOP")
        if stopped:  # read on all the same: a file that is cut off is to be noticed
            continue
        found = start.match(line)
        if found:
            if head is not None:
                yield head, body
            head, body = found, []
        elif line.startswith(word) or (head is None and line.strip()):
            raise BadLineError(path, number, f"expected {word} and a number, found {line!r:.60}")
        else:
            body.append(line)
    if head is not None:
        yield head, body


def _judgments(path: str, encoding: str) -> Iterator[Judgment]:
    for number, line in text_lines(path, encoding):
        words = line.split()
        if not all(word.isdigit() for word in words):
            raise BadLineError(path, number, f"expected a topic and its documents, all numbers, found {line!r:.60}")
        for word in words[1:]:
            yield Judgment(without_zeros(words[0]), without_zeros(word), 1, path, number)

"""The TIME collection: `*TEXT 017 01/04/63 PAGE 020` starts a document, `*FIND 1` a topic; judgments are lines of numbers.

The judgments count documents by position, 1 to 423, and not by the TEXT numbers, which have gaps: the position
is the id here, the TEXT number a field. Most copies have a second file, TIME.REL.ALL, with more judgments.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from cranfield.collection import Document, Topic
from cranfield.errors import BadLineError
from cranfield.importers.source import ClassicSource, Files, Judgment, Options, named_like, squeezed, without_zeros

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.collection import Qrels


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
    def rest(cls, folder: str, options: Options) -> Files:
        """TIME.REL.ALL is named beside TIME.REL, and not read."""
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
            known = {"text_number": head[1], "date": head[2], "page": head[3]}
            fields = {key: value for key, value in known.items() if value}
            yield Document(str(position), "", "\n".join(line for line in body if line.strip()), fields)

    def topics_in(self, path: str) -> Iterator[Topic]:
        """One for each `*FIND`."""
        for head, body in self._records(path, FIND, "*FIND"):
            yield Topic(without_zeros(head[1]), squeezed(" ".join(body)))

    def judgments_in(self, path: str) -> Iterator[Judgment]:
        """A topic and its relevant documents on each line."""
        for number, line in self.lines(path):
            words = line.split()
            if not all(word.isdigit() for word in words):
                raise BadLineError(path, number, f"expected a topic and its documents, all numbers, found {line!r:.60}")
            for word in words[1:]:
                yield Judgment(without_zeros(words[0]), without_zeros(word), 1, path, number)

    def _records(self, path: str, start: re.Pattern[str], word: str) -> Iterator[tuple[re.Match[str], list[str]]]:
        head: re.Match[str] | None = None
        body: list[str] = []
        stopped = False
        for number, line in self.lines(path):
            stopped = stopped or line.startswith("*STOP")
            if stopped:  # read on all the same: a file that is cut off is to be noticed
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

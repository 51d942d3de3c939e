"""MS MARCO's tables: collection.tsv (id, passage) or msmarco-docs.tsv (id, url, title, body), queries.*.tsv, qrels.*.tsv.

They have tabs and no header. `--split dev.small` takes queries.dev.small.tsv and qrels.dev.small.tsv.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.base.collection import Document, Topic
from cranfield.base.errors import BadLineError
from cranfield.formats.importers.source import CollectionSource, Files, ImportOptions, named_like, one_split, text_lines

if TYPE_CHECKING:
    from collections.abc import Iterator


SPLIT = re.compile(
    r"(?:msmarco-(?:docs|doc|passage)?\w*-?)?(?:queries|qrels)?[.-]?(.*?)(?:-(?:queries|qrels))?\.tsv", re.IGNORECASE
)


class MsMarcoLayout(CollectionSource):
    """The passages or documents of MS MARCO, with the topics and judgments of one split."""

    name = "msmarco"
    about = "MS MARCO: collection.tsv or msmarco-docs.tsv, queries.SPLIT.tsv and qrels.SPLIT.tsv, without headers"
    place = 6
    own_tables = True
    judged_only = True

    @classmethod
    def find(cls, path: str, options: ImportOptions) -> Files | None:
        """A folder with these file names."""
        documents = named_like(path, r"collection\.tsv", r"msmarco-docs\.tsv", r"fulldocs.*\.tsv")
        if not documents or _has_header(documents[0], options.encoding or "utf-8"):
            return None
        return replace(cls.rest(path, options), documents=documents)

    @classmethod
    def rest(cls, folder: str, options: ImportOptions) -> Files:
        topics = _by_split(named_like(folder, r".*queries.*\.tsv"))
        qrels = _by_split(named_like(folder, r".*qrels.*\.tsv"))
        if options.split is None and len(topics) <= 1 and len(qrels) <= 1:
            return Files((), list(topics.values()), list(qrels.values()))
        both = [name for name in topics if name in qrels]
        split = one_split(both, options.split, folder, lacking=" with queries and qrels")
        return Files((), [topics[split]], [qrels[split]])

    def documents_in(self, path: str) -> Iterator[Document]:
        """Two columns are a passage; four are a document with url and title."""
        for number, line in self.lines(path):
            cells, self.at = line.split("\t"), (path, number)
            if len(cells) == 2 and cells[0]:
                yield Document(cells[0], "", cells[1])
            elif len(cells) == 4 and cells[0]:
                yield Document(cells[0], cells[2], cells[3], {"url": cells[1]})
            elif line:
                expected = "id and passage, or id, url, title and body, with tabs between"
                raise BadLineError(path, number, f"expected {expected}, found {len(cells)} columns: {line[:40]!r}")

    def topics_in(self, path: str) -> Iterator[Topic]:
        """An id, a tab and a question."""
        for number, line in self.lines(path):
            cells = line.split("\t")
            if len(cells) != 2 and line:
                raise BadLineError(path, number, f"expected id and question with a tab between, found {line[:60]!r}")
            if line:
                yield Topic(cells[0], cells[1].strip())


def _has_header(path: str, encoding: str) -> bool:
    first = next((line for _, line in text_lines(path, encoding)), "")
    return first.split("\t")[0].casefold() in ("id", "_id", "doc_id", "docid", "pid", "docno", "document")


def _by_split(paths: list[str]) -> dict[str, str]:
    splits = {}
    for path in paths:
        match = SPLIT.match(os.path.basename(path))
        splits[match[1] if match else os.path.basename(path)] = path
    return splits

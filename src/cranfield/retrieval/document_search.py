"""Search over the documents of a collection, for people who look for documents to judge: BM25 by SQLite's FTS5.

The index is a folder `documents-STATE`, where STATE is a hash of the size, time and inode of the file of documents: an
index of other documents has another name, is never used, and is removed once the new one exists. The ranking depends on the
query and the documents alone. Every character of a query is text; there is no query syntax.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.base.collection import Topic
from cranfield.formats.collection_folder import DOCUMENTS, file_in, read_collection
from cranfield.formats.document_index import State
from cranfield.formats.streams import read_errors, unfinished, write_errors
from cranfield.retrieval.engines import words
from cranfield.retrieval.engines.sqlite import Sqlite
from cranfield.retrieval.systems_under_test import Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cranfield.base.collection import Document

LAYOUT = 1  # version of the index; part of STATE
MOST_WORDS = 64  # of a query, in their order; a longer query would take seconds
LONGEST_QUERY = 300  # characters that an event records
TELL_EVERY = 500  # documents


def index_folder(collection: str, where: str) -> str:
    """The folder of the index of a collection's documents as they are now; it may not exist yet."""
    path = file_in(collection, DOCUMENTS)
    with read_errors(path):
        state = repr((LAYOUT, *State.of(os.stat(path)))).encode()
    return os.path.join(where, f"documents-{hashlib.sha256(state).hexdigest()[:16]}")


def build_index(collection: str, where: str, tell: Callable[[int, int | None], None] | None = None) -> str:
    """Build the index of a collection below a folder, unless it exists; return its folder. Older indexes are removed."""
    target = index_folder(collection, where)
    if os.path.isdir(target):
        return target
    opened = read_collection(collection)
    total = opened.meta.get("counts", {}).get("documents")
    new = os.path.join(os.path.dirname(where), os.path.basename(target))  # `where` itself changes at the end only
    with write_errors(target), unfinished(new) as beside, closing(Sqlite()) as engine:
        os.mkdir(beside)
        engine.index(_with_progress(map(_storable, opened.documents()), total, tell), beside)
        if not os.path.isdir(target):  # another process may have been faster
            os.rename(beside, target)
    for name in os.listdir(where):
        if name.startswith("documents-") and name != os.path.basename(target):
            shutil.rmtree(os.path.join(where, name), ignore_errors=True)
    return target


def _with_progress(
    documents: Iterator[Document], total: int | None, tell: Callable[[int, int | None], None] | None
) -> Iterator[Document]:
    for number, document in enumerate(documents):
        if tell is not None and number % TELL_EVERY == 0:
            tell(number, total)
        yield document


def _storable(document: Document) -> Document:
    """A document without what SQLite refuses: its id is written as JSON, other lone surrogates are replaced."""
    title, text = (each.encode("utf-8", "replace").decode() for each in (document.title, document.text))
    return replace(document, id=json.dumps(document.id), title=title, text=text)


def search_documents(folder: str, query: str, n: int) -> list[str]:
    """The ids of the n best documents for a query, best first; empty if the query has no words."""
    text = " ".join(list(dict.fromkeys(words(query)))[:MOST_WORDS])
    with closing(Sqlite()) as engine:
        engine.open(folder)
        rows = engine.search(Query("", text, Topic("", text)), n)
    return list(dict.fromkeys(json.loads(document) for document, _ in rows))


def search_list(query: str) -> str:
    """The name of a list of search results, as events record it.

    >>> search_list("wing  flutter")
    'search: wing flutter'
    """
    return f"search: {' '.join(query.split())[:LONGEST_QUERY]}"

"""BM25 and phrase search by SQLite's FTS5, which comes with Python: a baseline with nothing to install."""

from __future__ import annotations

import os
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import DataError, MissingExtraError
from cranfield.base.parameters import Choice, Flag, Real
from cranfield.retrieval.engines import STOP, words
from cranfield.retrieval.systems_under_test import Query, Ranking, System
from cranfield.store.database import in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cranfield.base.collection import Document


class Sqlite(System):
    """SQLite's FTS5, in this process, with nothing to install."""

    name = "sqlite"
    place = 3
    mode = Choice("any", "any: any word; all: all words; phrase: neighbours in their order", "all", "phrase")
    stem = Flag("whether words are stemmed (English, Porter)", True)
    stop = Flag("whether the commonest English words are passed over, except in phrases", True)
    title = Real(1.0, "how much more a word counts in the title than in the text")

    def __init__(self, rest: str = "") -> None:
        super().__init__(rest)
        self.local = threading.local()
        self.opened: list[Any] = []
        self.lock = threading.Lock()
        self.path = ""

    def index(self, documents: Iterable[Document], folder: str) -> None:
        import sqlite3

        self.open(folder)
        tokenize = "porter unicode61" if self.stem else "unicode61"
        with _in_words(self.path), closing(sqlite3.connect(self.path)) as database, database:
            database.execute(
                f"CREATE VIRTUAL TABLE documents USING fts5(id UNINDEXED, title, body, tokenize='{tokenize}')"
            )
            rows = ((document.id, document.title, document.text) for document in documents)
            database.executemany("INSERT INTO documents VALUES (?, ?, ?)", rows)
            database.execute("INSERT INTO documents(documents) VALUES ('optimize')")

    def open(self, folder: str) -> None:
        """Use the index in a folder."""
        self.path = os.path.join(folder, "fts5.db")

    def _database(self) -> Any:
        """This thread's connection, as SQLite's connections are not shared."""
        import sqlite3

        if not hasattr(self.local, "database"):
            self.local.database = sqlite3.connect(self.path, check_same_thread=False)
            with self.lock:
                self.opened.append(self.local.database)
        return self.local.database

    def _match(self, text: str) -> str:
        """The query in FTS5's language; each word is quoted, so that no word is syntax."""
        if self.mode == "phrase":
            return _phrases(words(text))
        every = words(text)
        terms = [word for word in every if word not in STOP] if self.stop else every
        return (" OR " if self.mode == "any" else " ").join(f'"{word}"' for word in terms or every)

    def search(self, query: Query, k: int) -> Ranking:
        """The best documents; FTS5's ranks are lower for better documents, so the sign is changed."""
        match = self._match(query.text)
        if not match:
            return []
        statement = (
            "SELECT id, bm25(documents, 0, ?, 1) AS rank FROM documents WHERE documents MATCH ? ORDER BY rank LIMIT ?"
        )
        with _in_words(self.path):
            rows = self._database().execute(statement, (self.title, match, k)).fetchall()
        return [(str(document), -float(rank)) for document, rank in rows]

    def close(self) -> None:
        for database in self.opened:
            database.close()
        self.opened.clear()

    def versions(self) -> dict[str, str]:
        import sqlite3

        return {"sqlite": sqlite3.sqlite_version}


@contextmanager
def _in_words(path: str) -> Iterator[None]:
    """Turn errors of SQLite into sentences: a full disk, no FTS5."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        if "no such module" in str(error):
            raise MissingExtraError(f"system sqlite needs FTS5, which this Python's SQLite lacks ({error})") from error
        raise DataError(f"{path}: {in_words(str(error))}") from error


def _phrases(query: list[str]) -> str:
    """Two neighbouring words of the query must be neighbours in the document, unless one of them is too common.

    A single word is a phrase of one word. Whole queries are too long to match; pairs are what a searcher would put in
    quotation marks.
    """
    pairs = [pair for pair in zip(query, query[1:], strict=False) if not STOP.issuperset(pair)]
    pairs = [pair for pair in pairs if not STOP.intersection(pair)] or pairs
    if not pairs:
        return " OR ".join(f'"{word}"' for word in query)
    return " OR ".join(f'"{first} {second}"' for first, second in dict.fromkeys(pairs))

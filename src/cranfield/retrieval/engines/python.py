"""Any Python callable as a system: `module:function` is called with a query's text and k.

A class is instantiated; its `index(documents)` is called if it has one, then its `search(text, k)` for each query. An
answer is a list of (document, score) or of documents, best first, or a mapping of documents to scores. A list keeps
its order and is cut at k; a mapping is ordered by score, ties by id as in every run.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.kernels import encode
from cranfield.retrieval.systems_under_test import Query, Ranking, System, id_text

if TYPE_CHECKING:
    from cranfield.base.collection import Document


class Function(System):
    """a Python function or class of yours: module:function, called with text and k."""

    name = "python"
    usage = "module:function"
    place = 5
    keeps_order = True

    def __init__(self, rest: str = "") -> None:
        super().__init__()
        self.spec = rest
        self.engine = _imported(rest)
        if isinstance(self.engine, type):
            self.engine = self.engine()
        self.ask: Any = getattr(self.engine, "search", self.engine)
        if not callable(self.ask):
            raise ConventionError(
                f"{rest}: expected a function, or a class with a method search, found {self.engine!r:.60}"
            )

    @property
    def indexes(self) -> bool:
        return callable(getattr(self.engine, "index", None))

    def index(self, documents: Iterable[Document], folder: str) -> None:
        if self.indexes:
            self.engine.index(documents)

    def search(self, query: Query, k: int) -> Ranking:
        answer = self.ask(query.text, k)
        self.keeps_order = not isinstance(answer, Mapping)
        return _ranking(answer, self.spec)[:k]

    def close(self) -> None:
        end = getattr(self.engine, "close", None)
        if callable(end):
            end()


def _imported(spec: str) -> Any:
    module, _, name = spec.partition(":")
    if not module or not name:
        raise ConventionError(f"expected module:function, got {spec!r}")
    if os.getcwd() not in sys.path:  # a module in the current folder, as with python -m
        sys.path.insert(0, os.getcwd())
    try:
        engine: Any = importlib.import_module(module)
        for part in name.split("."):
            engine = getattr(engine, part)
    except (ImportError, AttributeError, SyntaxError) as error:
        raise ConventionError(f"{spec}: {error}") from error
    return engine


def _ranking(answer: Any, where: str) -> Ranking:
    """Any answer as documents and scores."""
    if isinstance(answer, str) or not isinstance(answer, Iterable):
        raise DataError(f"{where}: expected (document, score) pairs or documents, found {answer!r:.60}")
    rows: list[Any] = list(answer.items()) if isinstance(answer, Mapping) else list(answer)
    if rows and isinstance(rows[0], str):
        return [(id_text(document, where), 1.0 / rank) for rank, document in enumerate(rows, 1)]
    try:
        pairs = [(id_text(document, where), float(score)) for document, score in rows]
    except DataError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{where}: expected (document, score) pairs or documents, found {rows[0]!r:.60}") from None
    if isinstance(answer, Mapping):
        pairs.sort(key=lambda pair: (pair[1], encode(pair[0])), reverse=True)
    return pairs

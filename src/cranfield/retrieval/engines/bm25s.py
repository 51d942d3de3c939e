"""BM25 in this process, by the package bm25s. Scores are computed when indexing, so a query is a sum of sparse columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.optional_packages import needed
from cranfield.base.parameters import Choice, Flag, Real
from cranfield.retrieval.engines import STOP, text_of, words
from cranfield.retrieval.systems_under_test import Query, Ranking, System

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.base.collection import Document


class Bm25s(System):
    """BM25 over title and text, in this process (extra: engines)."""

    name = "bm25s"
    place = 1
    k1 = Real(1.2, "how fast repeated words stop counting")
    b = Real(0.75, "how much long documents are held back")
    stem = Flag("whether words are stemmed (English, Porter 2)", True)
    stop = Flag("whether the commonest English words are passed over", True)
    method = Choice("lucene", "the variant of BM25", "robertson", "atire", "bm25+", "bm25l")
    packages = ("bm25s", "PyStemmer", "numpy")

    def __init__(self, rest: str = "") -> None:
        super().__init__(rest)
        self.package = needed("bm25s", f"system {self.name} needs")
        self.stemmer: Any = needed("Stemmer", f"system {self.name} needs").Stemmer("english") if self.stem else None
        self.ids: list[str] = []
        self.model: Any = None

    def terms(self, text: str) -> list[str]:
        """The terms of a text."""
        terms = [word for word in words(text) if not (self.stop and word in STOP)]
        stemmed: list[str] = self.stemmer.stemWords(terms) if self.stemmer is not None else terms
        return stemmed

    def index(self, documents: Iterable[Document], folder: str) -> None:
        """Build the index and save it, so that its size can be measured."""
        import os

        terms = []
        for document in documents:
            self.ids.append(document.id)
            terms.append(self.terms(text_of(document)))
        self.model = self.package.BM25(k1=self.k1, b=self.b, method=self.method)
        if terms:
            self.model.index(terms, show_progress=False)
            self.model.save(os.path.join(folder, "bm25s"))
        self.vocabulary = set(self.model.vocab_dict) if terms else set()

    def search(self, query: Query, k: int) -> Ranking:
        terms = [term for term in self.terms(query.text) if term in self.vocabulary]
        if not terms:
            return []
        scores = self.model.get_scores(terms)
        hits = np.flatnonzero(scores > 0)
        if len(hits) > k:
            hits = hits[np.argpartition(scores[hits], len(hits) - k)[len(hits) - k :]]
        best = hits[np.argsort(-scores[hits], kind="stable")]
        return [(self.ids[i], score) for i, score in zip(best.tolist(), scores[best].tolist(), strict=True)]

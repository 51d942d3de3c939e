"""What documents and topics say, for strategies that read and for assessors who do."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.collection import Collection


class Texts:
    """The texts of a collection, held in memory by id."""

    def __init__(self, documents: dict[str, str], topics: dict[str, str]) -> None:
        self.documents = documents
        self.topics = topics

    @classmethod
    def of(cls, collection: Collection) -> Texts:
        """Titles and texts of all documents; titles, descriptions and narratives of all topics."""
        documents = {each.id: "\n".join(filter(None, (each.title, each.text))) for each in collection.documents()}
        topics = {
            each.id: "\n".join(filter(None, (each.title, each.description, each.narrative)))
            for each in collection.topics
        }
        return cls(documents, topics)

    def document(self, name: str) -> str:
        """What a document says."""
        if name not in self.documents:
            raise DataError(f"document {name!r} is not among the {len(self.documents)} of the collection")
        return self.documents[name]

    @cached_property
    def row(self) -> dict[str, int]:
        """Each document's row in `vectors`."""
        return {name: i for i, name in enumerate(self.documents)}

    @cached_property
    def vectors(self) -> Any:
        """Documents × terms: (1 + log tf) · log(N / df), rows of length 1; a SciPy sparse matrix."""
        counts = [_counted(text) for text in self.documents.values()]
        names: dict[str, int] = {}
        for terms in counts:
            for term in terms:
                names.setdefault(term, len(names))
        self._terms = names
        found = np.zeros(len(names))
        for terms in counts:
            found[[names[term] for term in terms]] += 1
        self._rarity = np.log(max(1, len(counts)) / np.maximum(found, 1)) + 1e-9
        return self._rows(counts)

    def vector(self, text: str) -> Any:
        """A text as one row of the same terms; words that no document has are passed over."""
        _ = self.vectors
        known = {term: n for term, n in _counted(text).items() if term in self._terms}
        return self._rows([known])

    def _rows(self, counts: Iterable[dict[str, int]]) -> Any:
        from scipy.sparse import csr_matrix  # type: ignore[import-untyped, unused-ignore]

        values: list[float] = []
        columns: list[int] = []
        ends = [0]
        for terms in counts:
            here = [self._terms[term] for term in terms]
            weight = (1 + np.log(np.array(list(terms.values()), np.float64))) * self._rarity[here]
            size = np.sqrt((weight**2).sum())
            values += (weight / size if size else weight).tolist()
            columns += here
            ends.append(len(columns))
        return csr_matrix((values, columns, ends), shape=(len(ends) - 1, len(self._terms)))

    def topic(self, name: str) -> str:
        """What a topic asks for."""
        if name not in self.topics:
            raise DataError(f"topic {name!r} is not among the {len(self.topics)} of the collection")
        return self.topics[name]


WORD = re.compile(r"\w+")


ENDINGS = ("ing", "ies", "ed", "es", "s", "ly")


def _counted(text: str) -> dict[str, int]:
    """How often each word stands in a text, in small letters and without its ending."""
    counts: dict[str, int] = {}
    for word in WORD.findall(text.casefold()):
        stem = _stem(word)
        counts[stem] = counts.get(stem, 0) + 1
    return counts


def _stem(word: str) -> str:
    """A word without a common English ending, three letters or more left: `plants`, `planted`, `planting` are one.

    >>> [_stem(word) for word in ("plants", "planting", "berries", "hose", "is")]
    ['plant', 'plant', 'berr', 'hos', 'is']
    """
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] in "ey" else word

"""Continuous active learning: a model of relevance, trained on the labels so far, chooses what to judge next.

This is the baseline implementation of Cormack & Grossman. The topic's text is the first relevant document, and a
hundred documents temporarily count as not relevant. Batches grow by a tenth, so that the model of a topic is trained
about forty times, not once per label. One thing differs: the hundred are sampled from documents that no run returned.
Candidates would teach the model to avoid relevant documents, because many of them are relevant.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import Real, Whole
from cranfield.pooling.strategy import Picker, Strategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from cranfield.base.collection import Collection
    from cranfield.base.kernels.table import Floats
    from cranfield.pooling.strategy import Candidates


class Learn(Strategy):
    """Continuous active learning (CAL): judge what a logistic regression on the words of labelled documents rates highest.

    It finds nearly all relevant documents with few judgments, whether the runs ranked them high or not. It needs the
    texts of the documents. It finds documents similar to earlier ones, so it may miss one aspect of a topic with two.
    """

    name = "cal"
    reference = "Cormack & Grossman (2015), Autonomy and reliability of continuous active learning"
    adaptive = True
    reads = True
    presume = Whole(100, "how many documents that no run returned count as not relevant", high=1_000_000)
    strength = Real(
        0.1, "how closely the model follows the labels: the inverse of the penalty on its weights", low=1e-6, high=1e6
    )

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        return _Learner(candidates, rng, texts, self)


class _Learner(Picker):
    def __init__(self, candidates: Candidates, rng: np.random.Generator, texts: DocumentTexts, strategy: Learn) -> None:
        super().__init__(candidates)
        self.strength = strategy.strength
        for document in candidates.documents:
            _text_of("document", document, texts.documents)  # raises an error that names the missing one
        mine = np.array([texts.row[document] for document in candidates.documents])
        others = np.setdiff1d(np.arange(len(texts.documents)), mine)
        supposed = rng.choice(others, min(strategy.presume, len(others)), replace=False)
        query = texts.vector(_text_of("topic", candidates.topic, texts.topics))
        self.vectors = _turned(texts.vectors[mine], query, texts.vectors[supposed])
        self.labels: dict[int, bool] = {}
        self.batch = 1
        self.queue: list[int] = []
        self.weights: Floats | None = None

    def choose(self) -> int:
        """The next document of the batch, or of a new batch."""
        while self.queue:
            document = self.queue.pop(0)
            if not self.picked[document]:
                return document
        self._train()
        return self.queue.pop(0)

    def tell(self, document: int, relevant: bool) -> None:
        self.labels[document] = relevant

    def _train(self) -> None:
        labelled = np.array(sorted(self.labels), np.int64)
        rest = np.flatnonzero(~self.picked)
        seed = len(self.candidates)  # the topic's row; the rows after it count as not relevant
        rows = np.r_[labelled, seed : len(self.vectors)]
        answers = np.zeros(len(rows))
        answers[: len(labelled)] = [self.labels[int(i)] for i in labelled]
        answers[len(labelled)] = 1.0
        self.weights = regression(self.vectors[rows], answers, self.strength, self.weights)
        rated = self.vectors[rest] @ self.weights
        order = rest[np.argsort(-rated, kind="stable")]
        self.queue = order[: self.batch].tolist()
        self.batch += -(-self.batch // 10)


def _turned(*parts: Any) -> Floats:
    """Sparse rows, rotated into as few columns as there are rows; lengths and angles stay.

    A penalised regression depends only on lengths and angles, so the result is the same, but many times faster.
    """
    from scipy.sparse import vstack  # type: ignore[import-untyped, unused-ignore]

    rows = vstack(parts).tocsr()
    values, columns = np.linalg.eigh((rows @ rows.T).toarray())
    positive = values > 1e-9
    return np.asarray(columns[:, positive] * np.sqrt(values[positive]), np.float64)


def regression(
    rows: Any, answers: npt.NDArray[np.float64], strength: float = 1.0, start: Floats | None = None
) -> Floats:
    """The weights of a logistic regression without intercept and with balanced classes; `rows` may be sparse.

    >>> from scipy.sparse import csr_matrix
    >>> regression(csr_matrix([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 0.0])).round(2)
    array([ 0.4, -0.4])
    """
    from scipy.optimize import minimize  # type: ignore[import-untyped, unused-ignore]

    sign = 2 * answers - 1
    ones = int((answers > 0).sum())
    zeros = len(answers) - ones
    share = np.where(answers > 0, 0.5 / max(1, ones), 0.5 / max(1, zeros))
    weight = share * len(answers)

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = sign * (rows @ weights)
        each = np.logaddexp(0, -margin)
        slope = -sign * weight * np.exp(-np.logaddexp(0, margin))
        value = strength * float(weight @ each) + 0.5 * float(weights @ weights)
        return value, strength * (rows.T @ slope) + weights

    first = np.zeros(rows.shape[1]) if start is None else start
    weights: Floats = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 100}).x
    return weights


# texts


@dataclass(eq=False, repr=False)
class DocumentTexts:
    """The texts of the documents and topics of a collection, in memory, by id."""

    documents: dict[str, str]
    topics: dict[str, str]

    @classmethod
    def of(cls, collection: Collection) -> DocumentTexts:
        """Titles and texts of all documents; titles, descriptions and narratives of all topics."""
        documents = {each.id: "\n".join(filter(None, (each.title, each.text))) for each in collection.documents()}
        topics = {
            each.id: "\n".join(filter(None, (each.title, each.description, each.narrative)))
            for each in collection.topics
        }
        return cls(documents, topics)

    @cached_property
    def row(self) -> dict[str, int]:
        """The row of each document in `vectors`."""
        return {name: i for i, name in enumerate(self.documents)}

    @property
    def vectors(self) -> Any:
        """Documents × terms: (1 + log tf) · log(N / df), rows of length 1; a SciPy sparse matrix."""
        return self._space[2]

    def vector(self, text: str) -> Any:
        """A text as a row like those of `vectors`; words that no document contains are ignored."""
        column, rarity, _ = self._space
        return _rows([{term: n for term, n in _term_counts(text).items() if term in column}], column, rarity)

    @cached_property
    def _space(self) -> tuple[dict[str, int], Floats, Any]:
        """The column of each term, its rarity, and the documents' rows."""
        counts = [_term_counts(text) for text in self.documents.values()]
        column = {term: i for i, term in enumerate(dict.fromkeys(chain.from_iterable(counts)))}
        holders = np.bincount([column[term] for terms in counts for term in terms], minlength=len(column))
        rarity = np.log(max(1, len(counts)) / np.maximum(holders, 1)) + 1e-9
        return column, rarity, _rows(counts, column, rarity)


def _text_of(kind: str, name: str, texts: Mapping[str, str]) -> str:
    """The text of a document or topic; DataError if the collection lacks it."""
    if name not in texts:
        raise DataError(f"{kind} {name!r} is not among the {len(texts)} of the collection")
    return texts[name]


def _rows(counts: Iterable[Mapping[str, int]], column: Mapping[str, int], rarity: Floats) -> Any:
    from scipy.sparse import csr_matrix

    values: list[float] = []
    columns: list[int] = []
    ends = [0]
    for terms in counts:
        here = [column[term] for term in terms]
        weight = (1 + np.log(np.array(list(terms.values()), np.float64))) * rarity[here]
        size = np.sqrt((weight**2).sum())
        values += (weight / size if size else weight).tolist()
        columns += here
        ends.append(len(columns))
    return csr_matrix((values, columns, ends), shape=(len(ends) - 1, len(column)))


WORD = re.compile(r"\w+")
ENDINGS = ("ing", "ies", "ed", "es", "s", "ly")


def _term_counts(text: str) -> Counter[str]:
    """The counts of the words of a text, in lower case and stemmed."""
    return Counter(map(_stem, WORD.findall(text.casefold())))


def _stem(word: str) -> str:
    """A word without a common English ending, at least three letters long: `plants`, `planted`, `planting` are one.

    >>> [_stem(word) for word in ("plants", "planting", "berries", "hose", "is")]
    ['plant', 'plant', 'berr', 'hos', 'is']
    """
    fitting = (ending for ending in ENDINGS if word.endswith(ending) and len(word) - len(ending) >= 3)
    word = word.removesuffix(next(fitting, ""))
    return word[:-1] if len(word) > 3 and word[-1] in "ey" else word

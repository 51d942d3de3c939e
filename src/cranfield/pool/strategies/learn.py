"""Continuous active learning: a model of what is relevant, trained on the labels so far, says what to judge next.

The baseline implementation of Cormack & Grossman, with one change: the topic's own text stands in as a first relevant
document, a hundred documents count as not relevant for the time being, and batches grow by a tenth, so that a topic is
trained some forty times, not once for each label. The hundred are drawn from the documents that no run returned, not from
the candidates: a pool is so rich in relevant documents that its own would teach the model to avoid them.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import DataError
from cranfield.parameters import Real, Whole
from cranfield.pool.strategy import Picker, Strategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from cranfield.collection import Collection
    from cranfield.kernels.table import Floats
    from cranfield.pool.rankings import Candidates


class Learn(Strategy):
    """Continuous active learning (CAL): judge what a logistic regression on the words of the labelled documents rates highest.

    Finds nearly all relevant documents with few judgments, whether the runs ranked them high or not. Needs the texts
    of the documents. What it brings up resembles what was found before: a topic with two unlike sides may lose one.
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
    def __init__(self, candidates: Candidates, rng: np.random.Generator, texts: Texts, strategy: Learn) -> None:
        super().__init__(candidates)
        self.strength = strategy.strength
        for document in candidates.documents:
            texts.document(document)  # says which one is missing
        mine = np.array([texts.row[document] for document in candidates.documents])
        others = np.setdiff1d(np.arange(len(texts.documents)), mine)
        supposed = rng.choice(others, min(strategy.presume, len(others)), replace=False)
        self.vectors = _turned(
            texts.vectors[mine], texts.vector(texts.topic(candidates.topic)), texts.vectors[supposed]
        )
        self.labels: dict[int, bool] = {}
        self.batch = 1
        self.queue: list[int] = []
        self.weights: Floats | None = None

    def choose(self) -> int:
        """The next of the batch; a new batch when that is used up."""
        while self.queue:
            document = self.queue.pop(0)
            if not self.picked[document]:
                return document
        self._train()
        return self.queue.pop(0)

    def tell(self, document: int, relevant: bool) -> None:
        self.labels[document] = relevant

    def _train(self) -> None:
        known = np.array(sorted(self.labels), np.int64)
        rest = np.flatnonzero(~self.picked)
        seed = len(self.candidates)  # the topic's own row; below it stand those that count as not relevant
        rows = np.r_[known, seed : len(self.vectors)]
        answers = np.zeros(len(rows))
        answers[: len(known)] = [self.labels[int(i)] for i in known]
        answers[len(known)] = 1.0
        self.weights = regression(self.vectors[rows], answers, self.strength, self.weights)
        rated = self.vectors[rest] @ self.weights
        order = rest[np.argsort(-rated, kind="stable")]
        self.queue = order[: self.batch].tolist()
        self.batch += -(-self.batch // 10)


def _turned(*parts: Any) -> Floats:
    """Sparse rows one below the other, turned into as few columns as there are rows; lengths and angles stay.

    A penalised regression depends on lengths and angles alone, so it finds the same, many times faster.
    """
    from scipy.sparse import vstack  # type: ignore[import-untyped, unused-ignore]

    rows = vstack(parts).tocsr()
    values, columns = np.linalg.eigh((rows @ rows.T).toarray())
    kept = values > 1e-9
    turned: Floats = columns[:, kept] * np.sqrt(values[kept])
    return turned


def regression(
    rows: Any, answers: npt.NDArray[np.float64], strength: float = 1.0, start: Floats | None = None
) -> Floats:
    """The weights of a logistic regression without intercept, both answers weighing alike; `rows` may be sparse.

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
class Texts:
    """What the documents and topics of a collection say, held in memory by id."""

    documents: dict[str, str]
    topics: dict[str, str]

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
        return _known("document", name, self.documents)

    def topic(self, name: str) -> str:
        """What a topic asks for."""
        return _known("topic", name, self.topics)

    @cached_property
    def row(self) -> dict[str, int]:
        """Each document's row in `vectors`."""
        return {name: i for i, name in enumerate(self.documents)}

    @property
    def vectors(self) -> Any:
        """Documents × terms: (1 + log tf) · log(N / df), rows of length 1; a SciPy sparse matrix."""
        return self._space[2]

    def vector(self, text: str) -> Any:
        """A text as one row of the same terms; words that no document has are passed over."""
        column, rarity, _ = self._space
        return _rows([{term: n for term, n in _counted(text).items() if term in column}], column, rarity)

    @cached_property
    def _space(self) -> tuple[dict[str, int], Floats, Any]:
        """Each term's column, how rare it is, and the documents' rows."""
        counts = [_counted(text) for text in self.documents.values()]
        column = {term: i for i, term in enumerate(dict.fromkeys(chain.from_iterable(counts)))}
        holders = np.bincount([column[term] for terms in counts for term in terms], minlength=len(column))
        rarity = np.log(max(1, len(counts)) / np.maximum(holders, 1)) + 1e-9
        return column, rarity, _rows(counts, column, rarity)


def _known(kind: str, name: str, texts: Mapping[str, str]) -> str:
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


def _counted(text: str) -> Counter[str]:
    """How often each word stands in a text, in small letters and without its ending."""
    return Counter(map(_stem, WORD.findall(text.casefold())))


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

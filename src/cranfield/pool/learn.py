"""Continuous active learning: a model of what is relevant, trained on the labels so far, says what to judge next.

The baseline implementation of Cormack & Grossman, with one change: the topic's own text stands in as a first relevant
document, a hundred documents count as not relevant for the time being, and batches grow by a tenth, so that a topic is
trained some forty times, not once for each label. The hundred are drawn from the documents that no run returned, not from
the candidates: a pool is so rich in relevant documents that its own would teach the model to avoid them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.pool.strategy import Picker, Strategy

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.kernels.table import Floats
    from cranfield.pool.rankings import Candidates
    from cranfield.pool.texts import Texts


class Learn(Strategy):
    """Continuous active learning (CAL): judge what a logistic regression on the words of the labelled documents rates highest.

    Finds nearly all relevant documents with few judgments, whether the runs ranked them high or not. Needs the texts
    of the documents. What it brings up resembles what was found before: a topic with two unlike sides may lose one.
    """

    name = "cal"
    reference = "Cormack & Grossman (2015), Autonomy and reliability of continuous active learning"
    adaptive = True
    reads = True
    options = {
        "presume": (int, 100, "how many documents that no run returned count as not relevant"),
        "strength": (
            float,
            0.1,
            "how closely the model follows the labels: the inverse of the penalty on its weights",
        ),
    }

    presume: int
    strength: float

    def check(self) -> None:
        """Something must be learned."""
        self.within("presume", 1, 1e6)
        self.within("strength", 1e-6, 1e6)

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        """Begins with the topic's own words."""
        return _Learner(candidates, rng, texts, self)


class _Learner(Picker):
    def __init__(self, candidates: Candidates, rng: np.random.Generator, texts: Texts, options: Learn) -> None:
        super().__init__(candidates)
        self.strength = options.strength
        for document in candidates.documents:
            texts.document(document)  # says which one is missing
        mine = np.array([texts.row[document] for document in candidates.documents])
        others = np.setdiff1d(np.arange(len(texts.documents)), mine)
        supposed = rng.choice(others, min(options.presume, len(others)), replace=False)
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
        """Remember the label for the next training."""
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
    found: Floats = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 100}).x
    return found

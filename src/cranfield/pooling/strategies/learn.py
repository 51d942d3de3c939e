"""Continuous active learning: a model of relevance, trained on the labels so far, chooses what to judge next.

This follows AutoTAR of Cormack & Grossman: the topic's text is the first relevant document, and some documents
temporarily count as not relevant. Three things differ. Those documents are sampled from the ones that no run returned:
candidates would teach the model to avoid relevant documents, because many of them are relevant. The model is trained
after every label instead of after batches. And besides the words it knows how high the runs ranked a document, so it
begins with what they agree on.

The model depends on the labels alone, not on the order in which they came: the same labels give the same next document.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.parameters import Real, Whole
from cranfield.pooling.strategy import LearnedState, Picker, Strategy

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats
    from cranfield.pooling.strategy import Candidates
    from cranfield.pooling.text_features import TextFeatures

DIGITS = 7  # of a score: smaller differences are those of rounding, and the earlier document comes first
MOST_STEPS, PRECISION = 20_000, 1e-9  # of the regression
NAMED = 200  # labelled documents in which the words of columns are looked up
EARLY = 10  # the minimum number of labels for an estimate of what is left


class Learn(Strategy):
    """Continuous active learning (CAL): judge what a logistic regression on the words of labelled documents rates highest.

    It finds nearly all relevant documents with few judgments, whether the runs ranked them high or not. It needs the
    texts of the documents. It finds documents similar to earlier ones, so it may miss one aspect of a topic with two.
    """

    name = "cal"
    reference = "Cormack & Grossman (2015), Autonomy and reliability of continuous active learning"
    adaptive = True
    reads = True
    presume = Whole(50, "how many documents that no run returned count as not relevant", high=1_000_000)
    strength = Real(
        0.03, "how closely the model follows the labels: the inverse of the penalty on its weights", low=1e-6, high=1e6
    )
    ranks = Real(0.2, "how much the fused rank of a document counts beside its words; 0: not at all", low=0, high=100)

    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        return _Learner(RelevanceModel(candidates, rng, texts, self))


class _Learner(Picker):
    """Picks what the model rates highest, and trains it again when there are new labels."""

    replays = False

    def __init__(self, model: RelevanceModel) -> None:
        super().__init__(model.candidates)
        self.model = model
        self.labels: dict[int, bool] = {}
        self._weights: Floats | None = None
        self._order: list[int] = []
        self._trained = False

    def _train(self) -> Floats:
        """The weights by all labels so far."""
        if self._weights is None or not self._trained:
            self._weights = self.model.trained(self.labels, self._weights)
            self._order = ranked(self.model.scores(self._weights))
            self._trained = True
        return self._weights

    def choose(self) -> int:
        self._train()
        return next(document for document in self._order if not self.picked[document])

    def tell(self, document: int, relevant: bool) -> None:
        self.labels[document] = relevant
        self._trained = False

    def state(self) -> LearnedState:
        weights = self._train()
        expected = expected_left(self.model.scores(weights), self.labels)
        return LearnedState(expected, self.model.words(weights, self.labels))


def ranked(scores: Floats) -> list[int]:
    """The documents by score, the highest first; among equals in the order of the candidates."""
    order: list[int] = np.argsort(-scores.round(DIGITS), kind="stable").tolist()
    return order


class RelevanceModel:
    """A logistic regression on one topic's documents: the rows of its candidates, of the topic, of presumed documents."""

    def __init__(self, candidates: Candidates, rng: np.random.Generator, texts: TextFeatures, strategy: Learn) -> None:
        self.candidates = candidates
        self.texts = texts
        self.strategy = strategy
        rows = texts.rows(candidates.documents)
        others = np.setdiff1d(np.arange(len(texts.terms)), rows)
        presumed = rng.choice(others, min(strategy.presume, len(others)), replace=False).tolist()
        self._features = texts.terms.rows([*rows, *presumed], [texts.topic(candidates.topic)])
        self._last = [*range(len(rows)), len(rows) + len(presumed), *range(len(rows), len(rows) + len(presumed))]

    @cached_property
    def rows(self) -> Any:
        """Candidates, then the topic, then presumed documents; the last column is the fused rank."""
        from scipy.sparse import csr_matrix, hstack  # type: ignore[import-untyped, unused-ignore]

        n = len(self.candidates)
        fused = self.candidates.weighted(1 / (60 + self.candidates.rank))
        rank = np.zeros((len(self._last), 1))
        rank[:n, 0] = fused / fused.max(initial=1e-9) * self.strategy.ranks
        rank[n, 0] = self.strategy.ranks  # the topic counts as a document at the top of every run
        return hstack([self._features.matrix[self._last], csr_matrix(rank)]).tocsr()

    def trained(self, labels: Mapping[int, bool], start: Floats | None = None) -> Floats:
        """The weights of the columns of `rows`, from labels by candidate; `start` saves time."""
        topic = len(self.candidates)
        labelled = np.array(sorted(labels), np.int64)
        answers = np.zeros(len(labelled) + self.rows.shape[0] - topic)
        answers[: len(labelled)] = [labels[int(i)] for i in labelled]
        answers[len(labelled)] = 1.0
        return regression(
            self.rows[np.r_[labelled, topic : self.rows.shape[0]]], answers, self.strategy.strength, start
        )

    def scores(self, weights: Floats) -> Floats:
        """The score of each candidate."""
        return np.asarray(self.rows[: len(self.candidates)] @ weights)

    def words(self, weights: Floats, labels: Mapping[int, bool], n: int = 10) -> list[tuple[str, float]]:
        """The words with the largest weights, for and against relevance; `weights` are of `self.rows`."""
        order = np.argsort(-np.abs(weights[:-1]), kind="stable")[:n]
        columns = self._features.columns[order].tolist()
        documents = [self.candidates.documents[i] for i in sorted(labels)][:NAMED]
        names = self.texts.names(columns, [self.texts.topic(self.candidates.topic), *map(self.texts.text, documents)])
        pairs = zip(columns, weights[:-1][order].tolist(), strict=True)
        return [(names[column], weight) for column, weight in pairs if column in names]


def expected_left(scores: Floats, labels: Mapping[int, bool]) -> float | None:
    """The expected number of relevant documents among the unlabelled; None with fewer than ten labels.

    Platt's calibration of the scores: a logistic curve through the labels, whose targets are pulled to the middle.
    """
    from scipy.optimize import minimize  # type: ignore[import-untyped, unused-ignore]

    if len(labels) < EARLY:
        return None
    labelled = np.array(sorted(labels), np.int64)
    answers = np.array([labels[int(i)] for i in labelled], float)
    ones, zeros = answers.sum(), len(answers) - answers.sum()
    target = np.where(answers > 0, (ones + 1) / (ones + 2), 1 / (zeros + 2))
    middle, width = scores.mean(), scores.std() or 1.0
    x = (scores - middle) / width

    def loss(curve: Floats) -> float:
        margin = curve[0] * x[labelled] + curve[1]
        return float((np.logaddexp(0, margin) - target * margin).sum())

    slope, shift = minimize(loss, [1.0, np.log((ones + 1) / (zeros + 1))], method="BFGS").x
    rest = np.ones(len(scores), bool)
    rest[labelled] = False
    return float((1 / (1 + np.exp(-np.clip(max(slope, 0.0) * x[rest] + shift, -500, 500)))).sum())


def regression(
    rows: Any, answers: npt.NDArray[np.float64], strength: float = 1.0, start: Floats | None = None
) -> Floats:
    """The weights of a logistic regression without intercept and with balanced classes; `rows` may be sparse.

    >>> from scipy.sparse import csr_matrix
    >>> regression(csr_matrix([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 0.0])).round(2)
    array([ 0.4, -0.4])
    """
    from scipy.sparse import csr_matrix
    from scipy.special import expit  # type: ignore[import-untyped, unused-ignore]

    rows = csr_matrix(rows)
    columns = rows.T.tocsr()
    sign = 2 * answers - 1
    ones = int((answers > 0).sum())
    zeros = len(answers) - ones
    weight = strength * len(answers) * np.where(answers > 0, 0.5 / max(1, ones), 0.5 / max(1, zeros))
    # an upper bound of the curvature, whose lower bound is 1; the steps are Nesterov's for a strongly convex loss
    curvature = 1 + 0.25 * float((abs(rows) @ (abs(columns) @ weight)).max(initial=0))
    momentum = (curvature**0.5 - 1) / (curvature**0.5 + 1)
    before = point = np.zeros(rows.shape[1]) if start is None else start
    for _ in range(MOST_STEPS):
        slope = point - columns @ (sign * weight * expit(-sign * (rows @ point)))
        if np.abs(slope).max(initial=0) < PRECISION:
            break
        weights = point - slope / curvature
        before, point = weights, weights + momentum * (weights - before)
    return np.asarray(point)

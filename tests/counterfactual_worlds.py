"""Simulated logs whose truth is known: items drawn by a policy, shuffled pages, A/B lists, one list per query.

Every world has the clicks per page that the new ranker really gets, so tests can count how often intervals cover it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.experiments.clicks.position_bias import position_bias
from cranfield.experiments.clicks.ranked_pages import RankedPages
from cranfield.experiments.clicks.result_pages import QueryDocuments, ResultPages
from cranfield.experiments.counterfactual.estimate import counterfactual
from cranfield.experiments.counterfactual.estimator import ESTIMATORS, Question
from cranfield.experiments.counterfactual.examination import Examination, read_examination
from cranfield.experiments.counterfactual.logged_pages import LoggedPages
from cranfield.experiments.counterfactual.new_ranker import NewRanker, PolicyTable, RankedLists
from cranfield.formats.uncertain_qrels import as_table
from cranfield.stats.importance_weights import clustered_interval, weight_support

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Coverage:
    """How often intervals of one estimator covered the truth, and what they rested on."""

    covered: float
    bias: float  # of the mean estimate, in standard errors of one log
    effective_size: float  # the smallest
    effective_clicks: float  # the smallest


def log_of(
    query: Any, lists: Any, clicked: Any, unit: Any = None, propensity: Any = None, documents: int = 0
) -> LoggedPages:
    """A log from the query of each page and its documents by number: pages × ranks."""
    pages, length = lists.shape
    queries, documents = int(query.max()) + 1, documents or int(lists.max()) + 1
    both = np.arange(queries * documents)
    names = tuple(f"q{number}" for number in range(queries)), tuple(f"d{number}" for number in range(documents))
    pairs = QueryDocuments(*names, both // documents, both % documents)
    rows = (query[:, None] * documents + lists).ravel().astype(np.int32)
    units = np.arange(pages, dtype=np.int32) if unit is None else unit.astype(np.int32)
    start = np.arange(pages + 1) * length
    result = ResultPages(pairs, start, rows, clicked.ravel(), unit=units)
    stated = None if propensity is None else tuple((float(each),) for each in propensity)
    return LoggedPages("simulated", result, np.ones(pages, np.int64), stated, result.lengths)


class ItemWorld:
    """Single items: each draws a click with a probability of its own; two softmax policies choose it."""

    def __init__(
        self, items: int = 20, queries: int = 5, spread: float = 0.7, seed: int = 0, rate: float = 0.25
    ) -> None:
        rng = np.random.default_rng(seed)
        self.rates = rng.uniform(0.02, rate, (queries, items))
        self.old, self.new = (self._softmax(rng.normal(0, spread, (queries, items))) for _ in range(2))
        self.truth = float((self.new * self.rates).sum(axis=1).mean())
        table = {f"q{q}": {(f"d{d}", 1): float(p) for d, p in enumerate(own)} for q, own in enumerate(self.new)}
        self.ranker: NewRanker = PolicyTable("new", table, False)

    @staticmethod
    def _softmax(scores: Any) -> Any:
        weights = np.exp(scores)
        return weights / weights.sum(axis=1, keepdims=True)

    def log(self, rng: np.random.Generator, pages: int, per_unit: int = 1, unit_effect: float = 0.0) -> LoggedPages:
        """A log of so many pages; the clicks of one unit depend on each other if there is an effect."""
        units = np.arange(pages) // per_unit
        query = rng.integers(len(self.old), size=pages)
        item = (rng.random(pages)[:, None] > self.old.cumsum(axis=1)[query]).sum(axis=1)
        likes = rng.uniform(1 - unit_effect, 1 + unit_effect, units[-1] + 1)[units]
        clicked = rng.random(pages) < self.rates[query, item] * likes
        return log_of(query, item[:, None], clicked[:, None], units, self.old[query, item], self.old.shape[1])


class ListWorld:
    """Lists of a few documents. Users examine by position and click by attraction; `cascade` users stop after a click."""

    def __init__(self, queries: int = 10, length: int = 4, seed: int = 0, cascade: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.examination = 1.0 / np.arange(1, length + 1) ** 0.7
        self.attraction = rng.uniform(0.1, 0.6, (queries, length))
        self.cascade = cascade
        self.lists = np.array([rng.permutation(length) for _ in range(queries)])
        names = {f"q{q}": [f"d{d}" for d in own] for q, own in enumerate(self.lists)}
        self.ranker: NewRanker = RankedLists("new", names)
        self.truth = float(np.mean([self._clicks(q, own).sum() for q, own in enumerate(self.lists)]))
        self.curve = {rank: Examination(float(one)) for rank, one in enumerate(self.examination, 1)}

    def _clicks(self, query: int, documents: Any) -> Any:
        """The probability of a click at each rank."""
        attraction = self.attraction[query, documents]
        if not self.cascade:
            return attraction * self.examination
        return attraction * np.concatenate(([1.0], np.cumprod(1 - attraction)[:-1]))

    def shown(self, rng: np.random.Generator, query: Any, lists: Any, unit: Any = None) -> LoggedPages:
        """The log of these lists, with clicks; some units like everything more than others."""
        likes = 1.0 if unit is None else rng.uniform(0.5, 1.5, int(unit[-1]) + 1)[unit][:, None]
        attracted = rng.random(lists.shape) < self.attraction[query[:, None], lists] * likes
        if self.cascade:
            clicked = attracted & (np.cumsum(attracted, axis=1) == 1)
        else:
            clicked = attracted & (rng.random(lists.shape) < self.examination)
        return log_of(query, lists, clicked, unit, documents=lists.shape[1])

    def shuffled(self, rng: np.random.Generator, pages: int) -> LoggedPages:
        """Pages in random order."""
        query = rng.integers(len(self.lists), size=pages)
        return self.shown(rng, query, np.argsort(rng.random((pages, self.lists.shape[1])), axis=1))

    def variants(self, rng: np.random.Generator, pages: int, arms: int = 3, per_unit: int = 1) -> LoggedPages:
        """An A/B test of fixed lists, one of which is the new one; units draw their list once for all their pages."""
        others = list(permutations(range(self.lists.shape[1])))[1 : arms * 5 : 5][: arms - 1]
        query = rng.integers(len(self.lists), size=pages)
        unit = np.arange(pages) // per_unit
        arm = rng.integers(arms, size=pages)[unit]
        fixed = [np.tile(own, (len(self.lists), 1)) for own in others]
        return self.shown(rng, query, np.stack([self.lists, *fixed])[arm, query], unit)

    def noisy_curve(self, error: float) -> Callable[[int], dict[int, Examination]]:
        """The examination of each log, estimated with a relative error at every position but the first."""

        def of_log(number: int) -> dict[int, Examination]:
            noise = 1 + error * np.random.default_rng([9, number]).normal(size=len(self.examination))
            values = np.where(np.arange(len(noise)) > 0, self.examination * noise, 1.0)
            errors = np.where(np.arange(len(noise)) > 0, values * error, 0.0)
            return {
                rank: Examination(float(v), float(e)) for rank, (v, e) in enumerate(zip(values, errors, strict=True), 1)
            }

        return of_log

    def fixed(self, rng: np.random.Generator, pages: int) -> LoggedPages:
        """One list per query: the documents in the order of their numbers."""
        query = rng.integers(len(self.lists), size=pages)
        return self.shown(rng, query, np.tile(np.arange(self.lists.shape[1]), (pages, 1)))


@dataclass(frozen=True)
class ChainWorld:
    """An A/B test of two similar rankers, which gives the examination of ranks, and a third ranker to estimate from it.

    Similar rankers move documents by few ranks. So the errors of lower ranks add up, and neighbours share most of theirs.
    """

    queries: int = 40
    ranks: int = 10
    units: int = 1_000  # with five searches each

    @property
    def examination(self) -> Any:
        return np.arange(1, self.ranks + 1) ** -0.8

    def draw(self, number: int) -> tuple[RankedPages, LoggedPages, LoggedPages, NewRanker, float]:
        """The A/B test, as both commands see it, a later log of one ranker, the third ranker and its true clicks per page."""
        rng = np.random.default_rng([23, number])
        shape = (self.queries, self.ranks)
        attraction, usual = rng.uniform(0.05, 0.6, shape), np.tile(np.arange(self.ranks), (self.queries, 1))
        rankings = np.stack([np.argsort(usual + rng.normal(0, each, shape), axis=1) for each in (0.8, 0.8, 5.0)])
        unit, arm = np.repeat(np.arange(self.units), 5), rng.integers(2, size=self.units)

        def log(ranker: Any) -> LoggedPages:
            query = rng.integers(self.queries, size=len(unit))
            shown = rankings[ranker, query]
            factor = rng.uniform(0.5, 1.5, self.units)[unit][:, None]
            clicked = rng.random(shown.shape) < self.examination * attraction[query[:, None], shown] * factor
            return log_of(query, shown, clicked, unit, documents=self.ranks)

        test, later = log(arm[unit]), log(0)
        pages = replace(test.pages, variant=arm[unit].astype(np.int32), variants=("a", "b"))
        ranker = RankedLists("new", {f"q{q}": [f"d{d}" for d in own] for q, own in enumerate(rankings[2])})
        truth = (np.take_along_axis(attraction, rankings[2], 1) * self.examination).sum(axis=1).mean()
        return RankedPages(pages), test, later, ranker, float(truth)

    def coverage(self, number: int, path: Path, covariances: bool = True) -> dict[str, float]:
        """How often position-based intervals with the file of position bias cover the truth: on the same log, on a later one."""
        inside: dict[str, list[bool]] = {"the same log": [], "a later log": []}
        for each in range(number):
            ranked, test, later, ranker, truth = self.draw(each)
            bias = position_bias(ranked, ["harvested"])
            if len(bias.curve) < self.ranks:
                continue
            head, *rows = bias.file_rows()
            path.write_bytes(b"".join(as_table(str(path), head, rows)))
            curve = read_examination(str(path))
            if not covariances:
                curve = {rank: one._replace(covariances=()) for rank, one in curve.items()}
            for name, log in zip(inside, (test, later), strict=True):
                [answer] = counterfactual(log, [ranker], ["position-based"], examination=curve).estimates
                inside[name].append(answer.low <= truth <= answer.high)
        return {name: float(np.mean(each)) for name, each in inside.items()}


def coverage(
    logs: Iterator[LoggedPages],
    ranker: NewRanker,
    truth: float,
    estimators: Sequence[str],
    randomised: str | None = None,
    examination: Callable[[int], dict[int, Examination]] | None = None,
    minus_log: Callable[[LoggedPages], float] | None = None,
) -> dict[str, Coverage]:
    """How often the 95 % intervals of each estimator cover the truth.

    With `minus_log`, the difference from the log is estimated; the function gives the log's true rate.
    """
    rows: dict[str, list[tuple[float, ...]]] = {each: [] for each in estimators}
    for number, log in enumerate(logs):
        known = None if examination is not None else log.probabilities(randomised)
        question = Question(log, ranker, known, examination(number) if examination is not None else {})
        for each in estimators:
            pages = ESTIMATORS.named(each).estimate(question)
            values = pages.values - log.clicks if minus_log else pages.values
            target = truth - minus_log(log) if minus_log else truth
            one = clustered_interval(values, log.unit, variance=float(np.square(pages.shifts).sum()))
            support = weight_support(pages.weights, pages.rewards, log.unit, pages.single)
            inside = one.low <= target <= one.high
            rows[each].append(
                (inside, one.value - target, one.error, support.effective_size, support.effective_rewards)
            )
    answer = {}
    for each, own in rows.items():
        table = np.array(own, np.float64)
        bias = float(table[:, 1].mean() / table[:, 2].mean())
        answer[each] = Coverage(float(table[:, 0].mean()), bias, float(table[:, 3].min()), float(table[:, 4].min()))
    return answer

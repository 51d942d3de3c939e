"""Counterfactual estimates of one or more rankers, with their support, and their differences.

An estimate without support looks like any other number. So each has its effective size, its effective clicks, its
weights and the share of the new lists that was never shown, and a sentence says which of them is too little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Answer, Cell, Layout, Lines, Part, Table, plain
from cranfield.base.text_layout import counted, name_list
from cranfield.experiments.counterfactual.estimator import ESTIMATORS, Question
from cranfield.stats.importance_weights import MeanInterval, clustered_interval, weight_support

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.experiments.counterfactual.estimator import Estimator, PageValues
    from cranfield.experiments.counterfactual.examination import Examination
    from cranfield.experiments.counterfactual.logged_pages import LoggedPages, Probabilities
    from cranfield.experiments.counterfactual.new_ranker import NewRanker
    from cranfield.stats.importance_weights import WeightSupport

LEAST_SIZE = 1_000  # with less, intervals of skewed weights cover too rarely
LEAST_CLICKS = 100  # with 12 effective clicks, 89 % of the 95 % intervals covered the truth
MOST_OF_WEIGHT = 0.05
MOST_ERRORS = 2.0  # of the mean weight from 1
MOST_NEVER_SHOWN = 0.05
THE_LOG = "the log"
ROUNDING = 1e-9  # a smaller share of a rate is an error of rounding
HUGE = 1e9  # larger rates are written with an exponent


class Estimate(NamedTuple):
    """The clicks per page that a ranker would get, by one estimator, with the support of the estimate."""

    run: str
    estimator: str
    value: float
    error: float
    low: float
    high: float
    effective_size: float
    effective_clicks: float
    largest_weight: float
    largest_share: float  # of the sum of weights
    mean_weight: float
    mean_weight_error: float
    never_shown: float  # share of the new lists
    bias_bound: float  # NaN if the estimator has none
    thin: tuple[str, ...]  # the conditions of support that fail, in words


class Difference(NamedTuple):
    """A difference of clicks per page, paired by page."""

    run: str
    against: str
    estimator: str
    value: float
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Counterfactual(Answer):
    """The clicks per page that new rankers would get, estimated from the log of others."""

    log: str
    pages: int
    units: int
    clicks: int
    clicks_per_page: float
    level: float
    propensities: str  # where they come from
    examination_has_errors: bool  # and so adds to the intervals
    estimates: tuple[Estimate, ...]
    differences: tuple[Difference, ...]
    obstacles: tuple[str, ...]  # why estimators were not used
    remarks: tuple[str, ...]

    def content(self, how: Layout) -> Iterable[Part]:
        rate = self._number(how, self.clicks_per_page)
        own = f"The log itself got {rate} ({self.clicks:,} clicks on {counted(self.pages, 'page')})."
        yield Lines([*(self._verdict(how, each) for each in self._preferred()), own])
        yield from self._thin_words()
        yield self._estimate_table(how)
        yield self._difference_table(how)

    def _preferred(self) -> list[Estimate]:
        """The estimate of each run that the first sentence gives."""
        return [
            min(own, key=lambda each: _preference(each.estimator))
            for _, own in groupby(self.estimates, key=lambda each: each.run)
        ]

    def _verdict(self, how: Layout, each: Estimate) -> str:
        interval = f"[{self._number(how, each.low)}, {self._number(how, each.high)}]"
        return f"{each.run} would get {self._number(how, each.value)} clicks per page {interval} ({each.estimator})."

    def _thin_words(self) -> Iterable[str]:
        """For each run whose support is thin: what is too little for the first sentence, and which others are thin too."""
        several = len(self._preferred()) > 1
        for first in self._preferred():
            others = [
                each.estimator for each in self.estimates if each.run == first.run and each.thin and each != first
            ]
            of = f" of {first.run}" if several else ""
            if first.thin:
                more = f" So it is for {name_list(others)}." if others else ""
                yield f"Support{of} is thin: {'; '.join(first.thin)}.{more}"
            elif others:
                yield f"Support{of} is thin for {name_list(others)}; --verbose says why."

    def _estimate_table(self, how: Layout) -> Table:
        head = ["run", "estimator", "clicks/page", "low", "high", "eff. size", "eff. clicks"]
        head += ["largest weight", "mean weight", "never shown", "support"]
        rows: list[list[Cell | str]] = []
        for each in self.estimates:
            rate = [Cell(self._number(how, x), x) for x in (each.value, each.low, each.high)]
            sizes = [Cell(f"{x:,.1f}" if x < 1000 else f"{x:,.0f}", x) for x in each[6:8]]
            weights = [
                Cell(f"{each.largest_weight:.2f}", each.largest_weight),
                Cell(_two(each.mean_weight), each.mean_weight),
            ]
            rows.append(
                [each.run, each.estimator, *rate, *sizes, *weights, Cell(_percent(each.never_shown), each.never_shown)]
            )
            rows[-1].append("thin" if each.thin else "ok")
        return Table(head, rows, names=2, left=2, title="clicks per page", spare=(7, 9))

    def _difference_table(self, how: Layout) -> Table:
        head = ["run", "against", "estimator", "difference", "low", "high"]
        rows: list[list[Cell | str]] = []
        first = {(each.run, each.estimator) for each in self._preferred()}
        for each in self.differences:
            if not how.states_defaults and (each.run, each.estimator) not in first:
                continue  # one screen: --verbose shows those of the other estimators
            numbers = (each.value, each.low, each.high)
            rows.append([*each[:3], *(Cell(self._number(how, x, signed=True), x) for x in numbers)])
        return Table(head, rows, names=3, left=3, title="differences, paired by page")

    def _number(self, how: Layout, value: float, signed: bool = False) -> str:
        """A rate with enough decimals for two digits of the smallest error."""
        if how.digits is None or value != value:
            return how.number(value)
        if abs(value) >= HUGE:
            return f"{value:.4g}"
        errors = [each.error for each in self.estimates] + [each.error for each in self.differences]
        rates = [abs(each.value) for each in self.estimates if each.value == each.value]
        errors = [error for error in errors if error > ROUNDING * max(rates, default=0.0)]
        needed = 1 - math.floor(math.log10(min(errors))) if errors else 0
        return how._replace(digits=min(max(how.digits, needed), 12)).number(value, signed)

    def records(self, how: Layout) -> Iterable[Sequence[Any]]:
        yield [*Estimate._fields[:-1], "thin"]
        for each in self.estimates:
            yield [*(plain(x, how.digits) for x in each[:-1]), "; ".join(each.thin)]

    def plain(self, how: Layout) -> Any:
        estimates = [each._asdict() for each in self.estimates]
        differences = [each._asdict() for each in self.differences]
        facts = {
            name: getattr(self, name)
            for name in ("log", "pages", "units", "clicks", "clicks_per_page", "level", "propensities")
        }
        notes = {"not_used": self.obstacles, "notes": self.remarks}
        return plain({**facts, "estimates": estimates, "differences": differences, **notes}, how.digits)

    def notes(self, shell: bool = False) -> list[str]:
        notes = list(self.remarks)
        biased = [each for each in self.estimates if each.bias_bound == each.bias_bound]
        notes += [
            f"{each.run}, {each.estimator}: the interval is of the clipped mean, which may be {each.bias_bound:.4g} too low"
            for each in biased
        ]
        modelled = [each for each in self.estimates if not _unbiased(each.estimator) and each not in biased]
        if modelled:
            names = name_list([*dict.fromkeys(each.estimator for each in modelled)])
            notes.append(f"{names}: the interval holds the noise of the click rates, not the error of their model")
        if any(_reads_examination(each.estimator) for each in self.estimates):
            known = "" if self.examination_has_errors else "takes the examination as known, and "
            notes.append(f"position-based: the estimate {known}counts documents that were never shown as unclicked")
        return notes

    def limits(self, shell: bool = False, verbose: bool = False) -> list[str]:
        limits = [f"note: {each}" for each in self.notes(shell)]
        if not verbose:
            return limits
        thin = [f"thin: {each.run}, {each.estimator}: {'; '.join(each.thin)}" for each in self.estimates if each.thin]
        return [*limits, *thin, *(f"not used: {each}" for each in self.obstacles)]


def _preference(estimator: str) -> tuple[bool, int]:
    """Which estimator the first sentence gives: those whose interval claims to cover the truth come first."""
    member = ESTIMATORS.named(estimator)
    return not member.unbiased, member.verdict_place


def _unbiased(estimator: str) -> bool:
    return ESTIMATORS.named(estimator).unbiased


def _reads_examination(estimator: str) -> bool:
    return ESTIMATORS.named(estimator).needs_examination


def _two(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"


def _percent(share: float) -> str:
    return "-" if share != share else f"{share:.1%}".replace("%", " %")


# estimating


def counterfactual(
    log: LoggedPages,
    rankers: Sequence[NewRanker],
    estimators: Sequence[str] = (),
    *,
    randomised: str | None = None,
    examination: Mapping[int, Examination] | None = None,
    depth: int | None = None,
    level: float = 0.95,
) -> Counterfactual:
    """The clicks per page that rankers would get, from the pages of a log that they did not make.

    By default every estimator is used that the log allows and that claims to cover the truth. `randomised` declares how the
    log was randomised if its pages do not state their propensities; `examination` (of positions) is for the position-based
    estimator.
    """
    if not rankers:
        raise ConventionError("expected a ranker to estimate, found none")
    if not 0 < level < 1:
        raise ConventionError(f"level must be between 0 and 1, got {level:g}")
    names = [each.name for each in rankers]
    if len(set(names)) < len(names):
        raise ConventionError(f"expected a name of its own for each ranker, found {', '.join(names)}")
    if depth is not None:
        refuse_below(1, depth=depth)
    answered, remarks = _answered(log, rankers)
    cut = answered if depth is None else answered.cut(depth)
    probabilities = None if _only_examined(estimators) else cut.probabilities(randomised)
    usable, obstacles = _usable(estimators, cut, probabilities, examination)
    estimates: list[Estimate] = []
    values: dict[tuple[str, str], PageValues] = {}
    for ranker in rankers:
        question = Question(cut, ranker, probabilities, examination or {})
        _refuse_unknown(question)
        for each in usable:
            of_pages = each.estimate(question)
            estimates.append(_estimate(question, each, of_pages, level))
            values[str(each), ranker.name] = of_pages
    facts = (log.name, len(cut.pages), len(np.unique(cut.unit)), int(cut.clicks.sum()), float(cut.clicks.mean()), level)
    words = probabilities.words if probabilities is not None else "examination of positions"
    noisy = any(each.error or any(each.covariances) for each in (examination or {}).values())
    differences = tuple(_differences(cut, values, names, level))
    return Counterfactual(*facts, words, noisy, tuple(estimates), differences, tuple(obstacles), (*log.notes, *remarks))


def _only_examined(estimators: Sequence[str]) -> bool:
    """Whether all estimators that were named read the examination alone, so that randomisation does not matter."""
    return bool(estimators) and all(ESTIMATORS.named(each).needs_examination for each in estimators)


def _answered(log: LoggedPages, rankers: Sequence[NewRanker]) -> tuple[LoggedPages, list[str]]:
    """The pages whose queries every ranker answers, and a note on those left out."""
    answered = np.ones(len(log.queries), np.bool_)
    for ranker in rankers:
        own = np.array(ranker.answers(log.queries), np.bool_)
        if not own.any():
            raise DataError(
                f"{ranker.name}: no query of {log.name} is answered ({_few(log.queries)}); queries join by text or id, "
                "and --topics-file FILE gives the texts of a run's topics"
            )
        answered &= own
    if not answered.any():
        raise DataError(f"no query of {log.name} is answered by all of {name_list([each.name for each in rankers])}")
    pages = answered[log.query]
    if pages.all():
        return log, []
    queries = int((~answered).sum())
    noun = "query" if queries == 1 else "queries"
    words = f"{counted(int((~pages).sum()), 'page')} of {queries:,} {noun} left out, which not every ranker answers"
    return log.some(pages), [words]


def _few(names: Sequence[str]) -> str:
    texts = ", ".join(repr(each[:40]) for each in names[:3])
    return texts + (" …" if len(names) > 3 else "")


def _usable(
    named: Sequence[str],
    log: LoggedPages,
    probabilities: Probabilities | None,
    examination: Mapping[int, Examination] | None,
) -> tuple[list[Estimator], list[str]]:
    """The estimators to use, and why others are not used; DataError if a named one, or every one, cannot be used."""
    members = [ESTIMATORS.named(each) for each in named] or [cls() for cls in ESTIMATORS.values()]
    usable, obstacles = [], []
    for each in members:
        obstacle = each.obstacle(log, probabilities, examination)
        if obstacle and named:
            raise DataError(f"{log.name}: {each} cannot be used: {obstacle}")
        if obstacle:
            obstacles.append(f"{each}: {obstacle}")
        elif named or (each.unbiased and not (log.single and each.for_lists)):
            usable.append(each)
    if not usable:
        raise DataError(
            f"{log.name}: its pages have no propensities, which every estimator but position-based needs; name "
            "their attribute with --propensity, declare a randomised log with --randomised, or give the examination of each "
            "rank with --position-bias for the position-based estimator"
        )
    return usable, obstacles


def _refuse_unknown(question: Question) -> None:
    """Raise DataError if the log shows none of the new ranker's documents."""
    if not question.never_shown < 1:
        example = next(iter(question.log.pages.pairs.documents), "")
        raise DataError(
            f"{question.ranker.name}: {question.log.name} never shows any of its documents for the same query; "
            f"do both use the same ids? The log shows {example!r:.60}, for example"
        )


def _estimate(question: Question, estimator: Estimator, values: PageValues, level: float) -> Estimate:
    log, never_shown = question.log, question.never_shown
    support = weight_support(values.weights, values.rewards, log.unit, values.single)
    interval = _interval(question.log, values, level)
    low = interval.low if interval.low != interval.low else min(max(0.0, interval.low), interval.value)
    limits = (low, interval.high)  # clicks are not below 0
    thin = tuple(_thin(estimator, support, never_shown))
    return Estimate(
        question.ranker.name,
        str(estimator),
        interval.value,
        interval.error,
        *limits,
        *support,
        never_shown=never_shown,
        bias_bound=values.bias,
        thin=thin,
    )


def _interval(log: LoggedPages, values: PageValues, level: float) -> MeanInterval:
    """The estimate with its interval; NaN as far as the pages do not tell."""
    unknown = math.nan
    if not values.weights.any():  # no page speaks of this ranker
        return MeanInterval(unknown, unknown, unknown, unknown)
    interval = clustered_interval(values.values, log.unit, level, float(np.square(values.shifts).sum()))
    if not values.rewards.any():  # without a click the spread is unknown, not 0
        return MeanInterval(interval.value, unknown, unknown, unknown)
    return interval


def _thin(estimator: Estimator, support: WeightSupport, never_shown: float) -> Iterable[str]:
    """The conditions of support that fail."""
    if support.effective_size < LEAST_SIZE:
        yield f"an effective size of {support.effective_size:,.1f} pages (below {LEAST_SIZE:,})"
    if support.effective_rewards < LEAST_CLICKS:
        yield f"{support.effective_rewards:,.1f} effective clicks (below {LEAST_CLICKS})"
    if support.largest_share > MOST_OF_WEIGHT:
        yield f"one weight is {_percent(support.largest_share)} of their sum (above {_percent(MOST_OF_WEIGHT)})"
    off = abs(support.mean - 1)
    if estimator.weights_tell and off > max(MOST_ERRORS * support.mean_error, 1e-9):
        error = "" if support.mean_error != support.mean_error else f" ± {support.mean_error:.2g}"
        yield f"a mean weight of {support.mean:.3g}{error}, which is 1 with true propensities and full support"
    if never_shown > MOST_NEVER_SHOWN:
        yield f"{_percent(never_shown)} of the new lists never shown (above {_percent(MOST_NEVER_SHOWN)})"


def _differences(
    log: LoggedPages, values: Mapping[tuple[str, str], PageValues], names: Sequence[str], level: float
) -> Iterable[Difference]:
    """Each run against the log, and against the first run."""
    for (estimator, run), own in values.items():
        itself = own._replace(values=log.clicks, shifts=np.zeros(len(own.shifts)))
        against = {THE_LOG: itself} | ({} if run == names[0] else {names[0]: values[estimator, names[0]]})
        for other, theirs in against.items():
            both = own._replace(values=own.values - theirs.values, shifts=own.shifts - theirs.shifts)
            interval = _interval(log, both, level)
            if other != THE_LOG and math.isnan(_interval(log, theirs, level).error):
                interval = MeanInterval(interval.value, *[math.nan] * 3)
            yield Difference(run, other, estimator, *interval)

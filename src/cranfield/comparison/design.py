"""Power analysis: how many topics are needed, and which differences the present topics can detect.

The variance comes from the differences of two runs (zeros included) or from the residual variance of a two-way ANOVA of
more runs, doubled. The difference to detect should be the one that matters to you. Without one the observed difference
is used, and the plan says so, because the power at an observed difference only repeats its p-value. Tests are planned at
the level that the correction of `compare` leaves to each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Answer, Layout, Lines, Part, Table, plain
from cranfield.comparison.score_tables import Progress, comparable, complete, upward_table
from cranfield.comparison.settings import (
    DESIGN_TEST,
    known_names,
    named_correction,
    refuse_extremes,
    refuse_shares,
    refuse_unweighable,
    round_up,
)
from cranfield.evaluation.evaluate import Evaluator
from cranfield.evaluation.scores import Scores
from cranfield.stats import power as planning
from cranfield.stats.correction import correction
from cranfield.stats.many_groups import two_way_anova
from cranfield.stats.power import Design, anova_power, power_tests, sample_size
from cranfield.stats.sampled_means import sampled_mean
from cranfield.stats.tests_by_name import TESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Unpack

    from cranfield.evaluation.measures import Measure
    from cranfield.evaluation.options import EvaluatorOptions


DEFAULT_TESTS = ("t", "sign", "randomisation")
BAR_WIDTH = 20
FEW_TOPICS = 20  # with fewer, a plan is rough
SIMULATED_MOST = 2_000  # beyond so many topics a simulation would take minutes, and t says the same


@dataclass(frozen=True)
class ByTest:
    """The sample size and power of one test; NaN, or None for topics, with a `reason`."""

    test: str
    centre: str  # the parameter that it tests: mean, median or pseudomedian of the differences
    needed: int | None  # topics to detect the difference with the target power
    power: float  # with the present number of topics
    detectable: float  # the smallest difference that the present number detects with the target power
    curve: tuple[float, ...]  # the power at each of the plan's sizes; NaN if not simulated
    simulated: bool = False
    reason: str = ""


@dataclass(frozen=True)
class PowerPlan:
    """The power plan for one measure."""

    measure: str
    about: str  # where the variance comes from
    n: int | None  # the present number of topics
    sd: float  # of the difference of two systems
    difference: float
    observed: bool  # the difference is the observed one
    power: float  # the target
    alpha: float
    level: float  # of one test, after correction
    correction: str
    family: int  # p-values that it covers
    alternative: str
    sizes: tuple[int, ...]
    tests: tuple[ByTest, ...]
    systems: int = 2

    def sentence(self) -> str:
        """The plan in one line, by its first test."""
        first = self.tests[0]
        what = f"a difference of {self.difference:.4g}{' (the observed one)' if self.observed else ''}"
        text = f"{first.test}: to find {what} with power {self.power:g}{self._corrected()} takes "
        text += f"{first.needed} topics" if first.needed is not None else f"no number of topics ({first.reason})"
        if self.n is not None and not math.isnan(first.power):
            text += f"; the {self.n} at hand find it with power {first.power:.2f}"
            if not math.isnan(first.detectable):
                text += f", and {first.detectable:.4g} or more with {self.power:g}"
        return text

    def _corrected(self) -> str:
        """The level of one test, if it is not alpha, in words."""
        name = correction(self.correction).short
        return "" if self.level == self.alpha else f" at level {self.level:.3g} ({name} over {self.family:,} p-values)"

    def content(self, how: Layout) -> Iterator[Part]:
        """The sentence, the table of sample sizes, and the power curve."""
        about = f"{self.measure}: {self.about}" if self.measure else self.about
        observed = ", observed" if self.observed else ""
        sided = "" if self.alternative == "two-sided" else ", one-sided"
        facts = f"difference {self.difference:.4g}{observed}, power {self.power:g}, alpha {self.alpha:g}{sided}"
        if self.level != self.alpha:
            facts += f"; each test{self._corrected()}"
        usual = (self.alpha, self.level, self.alternative) == (0.05, 0.05, "two-sided")
        yield Lines([self.sentence(), about, *([facts] if how.states_defaults or not usual else [])])
        coarse = how._replace(digits=3)
        head = ["test", "of the", "topics needed"]
        rows = [[each.test, each.centre, str(each.needed or "-")] for each in self.tests]
        if self.n is not None:
            head += [f"power with {self.n}", f"smallest difference with {self.n}"]
            for row, each in zip(rows, self.tests, strict=True):
                row += [coarse.number(each.power), how.number(each.detectable)]
        yield Table(head, rows)
        curve = []
        for i, size in enumerate(self.sizes):
            powers = [each.curve[i] for each in self.tests]
            bar = "" if math.isnan(powers[0]) else "█" * round(BAR_WIDTH * powers[0])
            curve.append([str(size), *map(coarse.number, powers), bar])
        head = ["topics", *(each.test for each in self.tests), ""]
        yield Table(head, curve, caption="power by number of topics", tail=True)


@dataclass(frozen=True)
class PowerPlans(Answer):
    """The result of `design`: one plan per measure.

    >>> [plan] = design(sd=0.2, difference=0.05, tests="t").plans
    >>> plan.tests[0].needed
    128
    """

    ascii_json: ClassVar[bool] = True

    plans: list[PowerPlan]
    trials: int
    resamples: int
    seed: int
    remarks: list[str] = field(default_factory=list)

    def notes(self, shell: bool = False) -> list[str]:
        notes = list(self.remarks)
        observed = [plan.measure or "the difference" for plan in self.plans if plan.observed]
        if observed:
            notes.append(
                f"{', '.join(observed)}: the plan uses the observed difference, whose power only repeats the p-value; give "
                "the difference that matters to you"
            )
        for plan in self.plans:
            reasons = [(each.test, each.reason) for each in plan.tests if each.reason]
            notes += [why if why.startswith(f"{test} ") else f"{test}: {why}" for test, why in reasons]
        return list(dict.fromkeys(notes))

    def content(self, how: Layout) -> Iterator[Part]:
        for plan in self.plans:
            yield from plan.content(how)

    def plain(self, how: Layout) -> dict[str, Any]:
        plans = []
        for plan in self.plans:
            row = {key: value for key, value in vars(plan).items() if key not in ("tests", "sizes")}
            tests = [{key: value for key, value in vars(each).items() if key != "curve"} for each in plan.tests]
            curve = [
                {"topics": size, **{each.test: each.curve[i] for each in plan.tests}}
                for i, size in enumerate(plan.sizes)
            ]
            plans.append(plain({**row, "tests": tests, "curve": curve}, how.digits))
        settings = {"trials": self.trials, "resamples": self.resamples, "seed": self.seed}
        return {"plans": plans, **settings, "notes": self.notes()}

    def records(self, how: Layout) -> Iterator[list[Any]]:
        """The power curves: one row per measure, test and number of topics."""
        yield ["measure", "test", "difference", "topics", "power"]
        for plan in self.plans:
            for each in plan.tests:
                for size, power in zip(plan.sizes, each.curve, strict=True):
                    yield [plan.measure, each.test, plan.difference, size, power]


def _refuse_words(alternative: str, sd: float | None, scores: Any) -> None:
    """Raise ConventionError for an unknown alternative, or unless exactly one of `sd` and `scores` is given."""
    if alternative not in ("two-sided", "greater"):
        raise ConventionError(f"alternative must be two-sided or greater, got {alternative!r}")
    if (sd is None) == (scores is None):
        raise ConventionError("expected either scores to take the variance from, or sd; found both or none of them")


def design(
    scores: Any = None,
    /,
    runs: Any = None,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    sd: float | None = None,
    difference: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    n: int | None = None,
    systems: int | None = None,
    correction: str = "holm",
    family: int | None = None,
    tests: str | Iterable[str] | None = None,
    alternative: str = "two-sided",
    sizes: Iterable[int] | None = None,
    trials: int = 2_000,
    resamples: int = 1_000,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Unpack[EvaluatorOptions],
) -> PowerPlans:
    """How many topics are needed to detect a difference, and which difference the present topics detect.

    Give `Scores` (or judgments, runs and measures as to `evaluate`), or `sd`, the standard deviation of the difference
    of two systems from topic to topic. `difference` is the difference to detect, `n` the present number of topics.
    `systems` adds an ANOVA of so many systems, the best and worst of which are `difference` apart. `tests` are t, sign,
    randomisation and wilcoxon; the last two are simulated with `trials` experiments each. Tests are planned at the
    level that `correction` leaves to one of `family` p-values (default: all pairs of systems by all measures).

    With `DesignWeights` (of `Scores`, or as `weights`), the plan is for samples of n topics from the same query log by
    the same design, and for the t-test by its variance.

    >>> design(sd=0.2, difference=0.05, tests="t").plans[0].sentence()
    't: to find a difference of 0.05 with power 0.8 takes 128 topics'
    """
    known = [name for some in power_tests() for name in some]
    names = [*DEFAULT_TESTS] if tests is None else known_names("tests", tests, known)
    refuse_shares(power=power, alpha=alpha)
    refuse_below(2, **{"the number of topics": n, "systems": systems})
    refuse_below(1, family=family, trials=trials, resamples=resamples, **{"trials times resamples": trials * resamples})
    refuse_below(0, seed=seed)
    corrected_by = named_correction(correction)
    refuse_extremes(difference=difference, sd=sd)
    _refuse_words(alternative, sd, scores)
    remarks: list[str] = []
    if sd is not None:
        variances = [_variance_from_sd(sd, difference, n, systems)]
        family = family or math.comb(systems or 2, 2)
    else:
        if not isinstance(scores, Scores):
            scores = Evaluator(scores, measures or "nDCG@10", **options).evaluate(runs)
        if scores.weights is not None and scores.weights.designed:
            names = [DESIGN_TEST] if tests is None else names
            refuse_unweighable([TESTS[name] for name in names], scores.weights.by, designed=True)
            if systems is not None:
                raise ConventionError("systems: an ANOVA does not support design weights; leave systems out")
            family = family or math.comb(len(scores.runs), 2) * len(scores.measures)
            question = SampledQuestion(difference, power, alpha, corrected_by.name, family, alternative, n)
            grid = None if sizes is None else tuple(sizes)
            sampled = [_sampled_plan(scores, name, question, grid, remarks) for name in scores.measures]
            return PowerPlans(sampled, trials, resamples, seed, remarks)
        variances = [_variance_from_scores(scores, name, difference, n, systems, remarks) for name in scores.measures]
        family = family or math.comb(systems or len(scores.runs), 2) * len(variances)
    chance: dict[str, Any] = {"alpha": corrected_by.level_of_one(alpha, family), "trials": trials}
    chance |= {"resamples": resamples, "seed": seed}
    corrected = {"alpha": alpha, "correction": corrected_by.name, "family": family}
    plans, steps = [], len(variances) * len(names)
    for i, variance in enumerate(variances):
        tell = None if progress is None else lambda j, i=i: progress(i * len(names) + j, steps)
        by_t = Design("t", **variance.spread, alternative=alternative, **chance)  # type: ignore[arg-type]
        plans.append(_plan(variance, by_t, names, power, corrected, sizes, tell))
    return PowerPlans(plans, trials, resamples, seed, remarks)


@dataclass(frozen=True)
class _Variance:
    measure: str
    about: str
    spread: dict[str, Any]  # sd, or sample
    n: int | None
    difference: float
    observed: bool
    systems: int = 0  # of the ANOVA; 0 for none


def _variance_from_sd(sd: float, difference: float | None, n: int | None, systems: int | None) -> _Variance:
    if difference is None:
        raise ConventionError("with sd alone, say which difference should be found")
    return _Variance("", f"sd of the differences {sd:.4g}, given", {"sd": sd}, n, difference, False, systems or 0)


def _variance_from_scores(
    scores: Scores, name: str, difference: float | None, n: int | None, systems: int | None, remarks: list[str]
) -> _Variance:
    """The variance of differences from topic to topic, from the scores."""
    if not comparable(scores.measures[name]):
        raise ConventionError(f"{name} is not a mean over topics; take another measure")
    if len(scores.runs) < 2:
        raise DataError(f"expected two runs or more, to see how their differences vary; found {len(scores.runs)}")
    table = upward_table(scores, name, remarks)
    if len(table) < 2:
        raise DataError(f"{name}: expected two topics or more with a value in every run, found {len(table)}")
    if len(table) < FEW_TOPICS:
        remarks.append(
            f"{name}: the variance comes from {len(table)} topics and is itself uncertain; take the plan as rough"
        )
    topics = len(table) if n is None else n
    means = table.mean(axis=0)
    far = float(means.max() - means.min())
    rounding = 1e-12 * float(np.abs(table).max())
    if difference is None and far <= rounding:
        raise DataError(f"{name}: the runs do not differ at all; say which difference should be found")
    target = far if difference is None else difference
    if len(scores.runs) == 2:
        sample = (table[:, 1] - table[:, 0]) * (1.0 if means[1] >= means[0] else -1.0)
        one, other = scores.runs
        if np.ptp(sample) <= rounding:
            raise DataError(
                f"{name}: {one} and {other} differ by {sample[0]:g} on every topic, which tells no variance"
            )
        about = f"{other} against {one} on {len(table)} topics, sd of the differences {sample.std(ddof=1):.4g}"
        return _Variance(name, about, {"sample": sample}, topics, target, difference is None, systems or 0)
    anova = two_way_anova(table)
    if anova.reason:
        raise DataError(f"{name}: {anova.reason}")
    sd = math.sqrt(2 * anova.mse)
    about = f"{len(scores.runs)} runs on {len(table)} topics, sd of the difference of two {sd:.4g} (residual {anova.mse:.4g})"
    return _Variance(name, about, {"sd": sd}, topics, target, difference is None, systems or len(scores.runs))


def _plan(
    variance: _Variance,
    by_t: Design,
    names: list[str],
    power: float,
    corrected: dict[str, Any],
    sizes: Iterable[int] | None,
    tell: Callable[[int], None] | None,
) -> PowerPlan:
    """The plan for one measure, with one row per test; `by_t` is the design of the t-test, which the others copy."""
    try:
        guess = sample_size(by_t, variance.difference, power)
    except DataError:
        guess = 10 * SIMULATED_MOST
    for size in sizes or ():
        refuse_below(2, **{"the number of topics": size})
    grid = tuple(sorted({int(size) for size in sizes})) if sizes is not None else round_sizes(guess, variance.n)
    rows = []
    for j, name in enumerate(names):
        rows.append(_by_test(replace(by_t, test=name), variance, power, grid, guess))
        if tell is not None:
            tell(j + 1)
    if variance.systems:
        rows.append(_by_anova(variance, by_t.spread / math.sqrt(2), power, corrected["alpha"], grid))
    facts = {**vars(variance), **corrected, "level": by_t.alpha, "sd": by_t.spread, "systems": variance.systems or 2}
    del facts["spread"]
    return PowerPlan(**facts, power=power, alternative=by_t.alternative, sizes=grid, tests=tuple(rows))


class SampledQuestion(NamedTuple):
    """What a sample of topics is planned for; `n` is the number of topics at hand if it is not that of the scores."""

    difference: float | None
    power: float
    alpha: float
    correction: str
    family: int
    alternative: str
    n: int | None


def _sampled_plan(
    scores: Scores, name: str, question: SampledQuestion, sizes: tuple[int, ...] | None, remarks: list[str]
) -> PowerPlan:
    """The plan for one measure, for samples of topics from the same log by the same design."""
    from cranfield.stats.sampled_power import SampledDifferences

    weights, runs = scores.weights, scores.runs
    assert weights is not None
    if not comparable(scores.measures[name]):
        raise ConventionError(f"{name} is not a mean over topics; take another measure")
    if len(runs) < 2:
        raise DataError(f"expected two runs or more, to see how their differences vary; found {len(runs)}")
    table, there = upward_table(scores, name, remarks), np.flatnonzero(complete(scores, name)).tolist()
    topics = [scores.topics[t] for t in there]
    sample = weights.sample(topics)
    assert sample is not None
    if sample.no_interval:
        raise DataError(f"{name}: no plan by design weights: {sample.no_interval.replace('pair', 'topic')}")
    means = sampled_mean(table.T, sample)
    target = float(means.max() - means.min()) if question.difference is None else question.difference
    one, other = np.triu_indices(len(runs), 1)
    level = named_correction(question.correction).level_of_one(question.alpha, question.family)
    plan = SampledDifferences((table[:, other] - table[:, one]).T, sample, level, question.alternative)  # type: ignore[arg-type]
    if not plan.error(len(topics)) or not target > 0:
        raise DataError(
            f"{name}: the runs do not differ on the topics that were drawn by chance, which tells no variance"
        )
    drawn = int(sample.drawn.sum())
    if drawn < FEW_TOPICS:
        few = f"the variance comes from {drawn} topics that were drawn by chance and is itself uncertain"
        remarks.append(f"{name}: {few}; take the plan as rough")
    n = len(topics) if question.n is None else question.n
    needed, reason, error = None, "", plan.error(len(topics))
    try:
        needed = plan.sample_size(target, question.power)
    except DataError as problem:
        reason = str(problem)
    for size in sizes or ():
        refuse_below(2, **{"the number of topics": size})
    grid = round_sizes(needed or plan.largest, n) if sizes is None else tuple(sorted({int(size) for size in sizes}))
    curve = tuple(plan.power(size, target) for size in grid)
    numbers = needed, plan.power(n, target), plan.detectable(n, question.power)
    by_test = ByTest(DESIGN_TEST, "mean", *numbers, curve, reason=reason)
    pairs = f"{runs[1]} against {runs[0]}" if len(runs) == 2 else f"{len(runs)} runs"
    sampled = f"{len(topics)} sampled topics, {len(topics) - drawn} of them certain"
    about = f"{pairs} on {sampled}, standard error of the difference {error:.4g}; topics are sampled anew by the same design"
    return PowerPlan(
        name,
        about,
        n,
        error * math.sqrt(sample.effective_size),
        target,
        question.difference is None,
        question.power,
        question.alpha,
        level,
        question.correction,
        question.family,
        question.alternative,
        grid,
        (by_test,),
    )


def round_sizes(needed: int, n: int | None) -> tuple[int, ...]:
    """Round numbers of topics from few to well above the needed number, including the present number."""
    most = max(1.6 * needed, n or 0, 20)
    step = 10 ** math.floor(math.log10(most / 12))
    step = next(step * factor for factor in (1, 2, 5, 10) if step * factor * 12 >= most)
    step = max(step, 1)
    rounds = {round(step * i) for i in range(1, math.ceil(most / step) + 1)}
    return tuple(sorted(size for size in rounds | ({n} if n else set()) if size >= 2))


def _by_test(design: Design, variance: _Variance, power: float, grid: tuple[int, ...], guess: int) -> ByTest:
    def simulable(size: int | None) -> bool:
        return size is not None and not (design.simulated and size > SIMULATED_MOST)

    n, difference = variance.n, variance.difference
    centre = TESTS[design.test].centre
    reason, needed, least = _too_few_draws(design), None, math.nan
    if reason:
        return ByTest(design.test, centre, None, least, least, (math.nan,) * len(grid), design.simulated, reason)
    if not simulable(guess):
        reason = f"not simulated beyond {SIMULATED_MOST:,} topics; t needs {guess:,}"
    else:
        try:
            needed = sample_size(design, difference, power)
        except DataError as error:
            reason = _reason_in_topics(error)
    if n is not None and simulable(n):
        try:
            least = planning.detectable_difference(design, n, power)
        except DataError as error:
            reason = reason or _reason_in_topics(error)
    now, *curve = (
        planning.power(design, size, difference) if size is not None and simulable(size) else math.nan
        for size in (n, *grid)
    )
    return ByTest(design.test, centre, needed, now, least, tuple(curve), design.simulated, reason)


def _too_few_draws(design: Design) -> str:
    """Why the test cannot be simulated: too few resamples for so small a p-value; empty if it can."""
    if not (design.simulated and TESTS[design.test].sampled) or (design.resamples + 1) * design.alpha >= 1:
        return ""
    enough = round_up(20 / design.alpha)
    return f"{design.resamples:,} resamples give no p of {design.alpha:.2g} or less; {enough:,} do, or take t"


def _by_anova(variance: _Variance, sd: float, power: float, alpha: float, grid: tuple[int, ...]) -> ByTest:
    """The ANOVA of many systems, the best and worst of which are the difference apart."""
    k, difference = variance.systems, variance.difference
    needed = planning.anova_sample_size(k, difference, sd, power, alpha)
    curve = tuple(anova_power(size, k, difference, sd, alpha) for size in grid)
    now = math.nan if variance.n is None else anova_power(variance.n, k, difference, sd, alpha)
    least = math.nan if variance.n is None else planning.anova_detectable(variance.n, k, sd, power, alpha)
    return ByTest(f"ANOVA of {k}", "means", needed, now, least, curve)


def _reason_in_topics(error: DataError) -> str:
    """An error message of `stats` about blocks, reworded for topics."""
    return str(error).removeprefix("sample size: ").replace("blocks", "topics")

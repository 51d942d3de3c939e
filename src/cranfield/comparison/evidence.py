"""The evidence of a comparison: systems, settings, and the test of every pair on the topics where both have a value.

A pair's p-value depends only on its own differences, the test and the seed, not on the number of other pairs. Pairs
over the same topics are computed together, because the sign-flip test of many pairs is one matrix product.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cranfield.base.errors import DataError
from cranfield.comparison.pair import Margins, RunPair, Side, Unweighted
from cranfield.comparison.score_tables import SEEDS, Shares, Systems, no_mean
from cranfield.comparison.settings import ComparisonSettings
from cranfield.stats.correction import CORRECTIONS, correct
from cranfield.stats.effect_size import d_z_intervals, d_z_of_rows
from cranfield.stats.equivalence import non_inferiority, tost
from cranfield.stats.replicates import crossed_difference, crossed_equivalence
from cranfield.stats.tests_by_name import TESTS_OF_MANY, any_test, intervals
from cranfield.stats.ties import differences
from cranfield.stats.two_sample_test import SignificanceResult, SignificanceSettings
from cranfield.stats.weighted_means import weighted_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.base.kernels.table import Floats
    from cranfield.stats.sampled_means import ProbabilitySample


Names: TypeAlias = "list[tuple[str, str]]"
NAN = float("nan")
QUESTIONS = {"better": "better", "worse": "worse", "greater": "higher", "less": "lower"}
ONE_TOPIC, NO_TOPIC = "one topic only; a test needs two or more", "no topic has a value for both"


@dataclass(frozen=True, kw_only=True)
class ComparisonEvidence(Systems, ComparisonSettings):
    """The systems and settings of a comparison, with every tested pair."""

    pairs: list[RunPair]
    family: int  # the number of p-values that the correction covers
    many: dict[str, dict[str, Any]]  # measure → test of all systems at once → its result
    baselines: list[str]
    judged: Shares  # Judged@k → run → share of judged documents
    remarks: list[str]  # notes about what was left out

    def pair(self, one: str, other: str, measure: str | None = None) -> RunPair:
        """The pair of two runs, in this order, by a measure."""
        fitting = [p for p in self.pairs if (p.one, p.other) == (one, other) and measure in (None, p.measure)]
        if len(fitting) != 1:
            names = "; ".join(f"{p.one}, {p.other}, {p.measure}" for p in self.pairs[:6])
            raise DataError(f"no single pair {one}, {other}, {measure}; there are {names}")
        return fitting[0]

    def significant(self, pair: RunPair) -> bool:
        """Whether the difference is significant at the level of the comparison."""
        return pair.settled(self.alpha)

    def best_first(self) -> list[RunPair]:
        """The pairs measure by measure, those of the best systems first; against baselines, the best runs first."""

        def place(pair: RunPair) -> tuple[float, ...]:
            turn = 1.0 if self.lower_is_better(pair.measure) else -1.0
            means = [turn * mean if mean == mean else np.inf for mean in (pair.mean_one, pair.mean_other)]
            rank = (means[1],) if self.baselines else (min(means), max(means))
            return (order[pair.measure], *rank)

        order = {measure: m for m, measure in enumerate(self.scores.measures)}
        return sorted(self.pairs, key=place)

    def differences(self, pair: RunPair) -> tuple[list[str], Floats]:
        """The topics of a pair and the difference on each, in the order of the scores."""
        difference = self.values(pair.other, pair.measure) - self.values(pair.one, pair.measure)
        topics = np.flatnonzero(~np.isnan(difference))
        return [self.scores.topics[t] for t in topics.tolist()], difference[topics]

    @property
    def named_correction(self) -> str:
        """The name of the correction for a sentence; empty if nothing was corrected."""
        return CORRECTIONS[self.correction].short if self.family > 1 and not self.decided_at_once else ""

    def contradictory(self, pair: RunPair) -> bool:
        """Whether the test is significant but does not favour the run with the better mean."""
        opposite = pair.opposite is not None and pair.opposite <= self.alpha
        return pair.contradictory and (self.significant(pair) or opposite)

    def answer(self, pair: RunPair) -> str:
        """The answer to a one-sided question: yes, no (the opposite test rejects) or not shown; empty if there is none."""
        if pair.opposite is None or pair.corrected != pair.corrected or self.contradictory(pair):
            return ""
        return "yes" if self.significant(pair) else "no" if pair.opposite <= self.alpha else "not shown"

    def interval_conflict(self, pair: RunPair) -> str:
        """Why interval and corrected test disagree: `correction`, `interval`, `held` (the interval contains 0), or ""."""
        if pair.low != pair.low or pair.corrected != pair.corrected or pair.contradictory:
            return ""
        outside = not pair.holds_zero
        if outside == (pair.corrected <= self.alpha) or self.answer(pair) == "no":
            return ""
        if not outside:
            return "held"
        covers = self.decided_at_once or pair.p <= self.alpha
        return "correction" if covers and not self.simultaneous else "interval"

    def conflict_in_words(self, pair: RunPair) -> str:
        """The disagreement as the end of a sentence; empty if interval and test agree."""
        kind = self.interval_conflict(pair)
        if kind == "held" and self.weighed_by:
            return f": the test rejects, but the interval of the mean by {self.weighed_by} contains 0"
        if kind == "held":
            return ", although the interval of the mean contains 0"
        if kind == "correction":
            over = "all pairs" if self.decided_at_once else f"{self.family:,} p-values"
            name = self.named_correction or any_test(pair.test).short
            return f" (the interval is for one pair, {name} covers {over})"
        if kind == "interval":
            how = "" if pair.test == SEEDS else f" ({self.interval})"
            return f" (the {100 * self.level:g}% interval{how} excludes 0, but the test is not significant)"
        return ""

    def sentence(self, pair: RunPair) -> str:
        """The sentence about a pair."""
        answer, lower = self.answer(pair), self.lower_is_better(pair.measure)
        question = f"is {pair.other} {QUESTIONS[self.alternative]}" if answer else ""
        remarks = {"doubt": self.conflict_in_words(pair), "question": question, "answer": answer}
        return pair.sentence(self.named_correction, self.alpha, lower, **remarks)

    def sentences(self) -> list[str]:
        """The sentences about all pairs."""
        return [self.sentence(pair) for pair in self.pairs]


def compare_systems(
    systems: Systems, settings: ComparisonSettings, names: Names, baselines: list[str], judged: Shares
) -> ComparisonEvidence:
    """Compare the named pairs by each measure; the correction covers all of them."""
    pairs: list[RunPair] = []
    many: dict[str, dict[str, Any]] = {}
    remarks: list[str] = []
    for measure in systems.scores.measures:
        why = no_mean(systems.scores, measure)
        tested = _by_measure(systems, settings, measure, names, test=not why)
        if why:
            pairs += [_without_mean(systems, pair, why) for pair in tested]
            continue
        if settings.at_once:
            tested, results, remark = _with_many(systems, settings, measure, tested)
            many |= {measure: results} if results else {}
            remarks += [remark] if remark else []
        if settings.margin is not None:
            tested = [replace(pair, equivalence=_margins(systems, settings, pair)) for pair in tested]
        pairs += tested
    p = np.array([pair.p for pair in pairs])
    corrected = p if settings.decided_at_once else correct(p, settings.correction)
    pairs = [replace(pair, corrected=value) for pair, value in zip(pairs, corrected.tolist(), strict=True)]
    if settings.one_sided:
        opposite = correct([NAN if pair.opposite is None else pair.opposite for pair in pairs], settings.correction)
        pairs = [replace(pair, opposite=value) for pair, value in zip(pairs, opposite.tolist(), strict=True)]
    family = int((p == p).sum())
    if settings.simultaneous:
        pairs = _with_simultaneous_intervals(systems, settings, pairs, family)
    facts: dict[str, Any] = {"family": family, "many": many, "baselines": baselines, "judged": judged}
    return ComparisonEvidence(**vars(systems), **vars(settings), pairs=pairs, remarks=remarks, **facts)


def _by_measure(
    systems: Systems, settings: ComparisonSettings, measure: str, pairs_of_names: Names, test: bool
) -> list[RunPair]:
    """The pairs by one measure, tested where possible."""
    names = systems.system_names()
    values = np.stack([systems.values(name, measure) for name in names])
    place = {name: k for k, name in enumerate(names)}
    lower, weights = systems.lower_is_better(measure), systems.topic_weights
    pairs: dict[tuple[str, str], RunPair] = {}
    for there, block in _pairs_by_topics(values, place, pairs_of_names).items():
        topics = np.frombuffer(there, np.bool_)
        a, b = (values[[place[pair[side]] for pair in block]][:, topics] for side in (0, 1))
        w = None if weights is None else weights[topics]
        sample = systems.sample_of([systems.scores.topics[t] for t in np.flatnonzero(topics).tolist()])
        described = _describe_pairs(measure, block, a, b, settings, lower, w, sample)
        if w is not None:
            described = _with_unweighted(described, a, b, settings, lower, systems.weighed_by, test)
        if not topics.all():
            described = [replace(pair, left_out=len(topics) - pair.n) for pair in described]
        pairs |= zip(block, described, strict=True)
        if not test:
            continue
        alone = [k for k, pair in enumerate(block) if not systems.has_seeds(*pair)] if topics.any() else []
        for k, outcomes in zip(alone, _outcomes(a[alone], b[alone], settings, lower, w, sample), strict=True):
            pairs[block[k]] = _with_tests(pairs[block[k]], outcomes, settings.test, lower)
        if settings.one_sided:
            opposite = settings.question(lower, opposite=True, weights=w, sample=sample)
            opposites = _deciding_p(a[alone], b[alone], settings, opposite)
            pairs |= {block[k]: replace(pairs[block[k]], opposite=p) for k, p in zip(alone, opposites, strict=True)}
    return [
        _over_seeds(systems, settings, pairs[two]) if test and systems.has_seeds(*two) else pairs[two]
        for two in pairs_of_names
    ]


def _pairs_by_topics(values: Floats, place: Mapping[str, int], names: Names) -> dict[bytes, Names]:
    """The pairs grouped by the topics where both have a value."""
    there = ~np.isnan(values)
    blocks: dict[bytes, Names] = defaultdict(list)
    for one, other in names:
        blocks[(there[place[one]] & there[place[other]]).tobytes()].append((one, other))
    return blocks


# descriptive numbers


def _describe_pairs(
    measure: str,
    block: Names,
    a: Floats,
    b: Floats,
    settings: ComparisonSettings,
    lower_is_better: bool,
    weights: Floats | None = None,
    sample: ProbabilitySample | None = None,
) -> list[RunPair]:
    """Means, differences, intervals, effects and wins of pairs over the same topics; with weights there is no d_z."""
    n = a.shape[1]
    if not n:
        undefined = NAN, NAN, NAN, NAN, NAN, NAN
        return [RunPair(measure, one, other, 0, *undefined, 0, 0, 0, reason=NO_TOPIC) for one, other in block]
    d = differences(a, b)
    means = [each.mean(axis=1) if weights is None else weighted_mean(each, weights) for each in (a, b, d)]
    question = settings.question(lower_is_better, weights=weights, sample=sample)
    interval = intervals()[settings.interval].outcomes(a, b, question)
    effect = d_z_of_rows(a, b) if weights is None else np.full(len(a), NAN)
    around = d_z_intervals(effect, n, question.tails) if n > 1 and weights is None else (effect, effect)
    upwards = -d if lower_is_better else d
    columns = dict(zip(("mean_one", "mean_other", "difference"), means, strict=True))
    columns |= {"effect": effect, "effect_low": around[0], "effect_high": around[1]}
    columns |= {"wins": (upwards > 0).sum(axis=1), "losses": (upwards < 0).sum(axis=1)}
    columns["ties"] = n - columns["wins"] - columns["losses"]
    pairs = []
    for k, (one, other) in enumerate(block):
        numbers: dict[str, Any] = {name: column[k].item() for name, column in columns.items()}
        ahead = _ahead(numbers["difference"], d[k], lower_is_better)
        low, high = interval[k].low, interval[k].high
        pairs.append(RunPair(measure, one, other, n, low=low, high=high, ahead=ahead, **numbers))
    return pairs


def _with_unweighted(
    pairs: list[RunPair], a: Floats, b: Floats, settings: ComparisonSettings, lower_is_better: bool, by: str, test: bool
) -> list[RunPair]:
    """Weighted pairs, with their unweighted numbers added."""
    if not a.shape[1]:
        return [replace(pair, weighed_by=by) for pair in pairs]
    names = [(pair.one, pair.other) for pair in pairs]
    alike = _describe_pairs(pairs[0].measure, names, a, b, settings, lower_is_better)
    p = _deciding_p(a, b, settings, settings.question(lower_is_better)) if test else [NAN] * len(pairs)
    numbers = [(one.mean_one, one.mean_other, one.difference, one.low, one.high) for one in alike]
    return [
        replace(pair, weighed_by=by, unweighted=Unweighted(*five, p=chance))
        for pair, five, chance in zip(pairs, numbers, p, strict=True)
    ]


def _ahead(difference: float, d: Floats, lower_is_better: bool) -> Side:
    return _side(difference if abs(difference) > 1e-12 * float(np.abs(d).max()) else 0.0, lower_is_better)


def _side(direction: float, lower_is_better: bool) -> Side:
    """The better side, from the sign of the difference (second minus first)."""
    if not direction:
        return "neither"
    return "other" if (direction > 0) != lower_is_better else "one"


def _without_mean(systems: Systems, pair: RunPair, why: str) -> RunPair:
    """A pair by a measure that is not a mean over topics: two numbers without a test."""
    one, other = (systems.mean(name, pair.measure) for name in (pair.one, pair.other))
    difference = other - one
    ahead = _ahead(difference, np.array([difference]), systems.lower_is_better(pair.measure))
    pair = replace(pair, mean_one=one, mean_other=other, difference=difference, ahead=ahead, reason=why)
    return replace(_without_interval(pair), effect=NAN, weighed_by=None, unweighted=None)


# tests


def _outcomes(
    a: Floats,
    b: Floats,
    settings: ComparisonSettings,
    lower_is_better: bool,
    weights: Floats | None,
    sample: ProbabilitySample | None,
) -> list[dict[str, SignificanceResult]]:
    """The result of each test for each row of `a` (the baseline) and `b`.

    A single test is run without its interval, which may cost far more than the p-value and is not shown.
    """
    if not len(a):
        return []
    tests = settings.paired_tests(binary=bool(np.isin(a, (0.0, 1.0)).all() and np.isin(b, (0.0, 1.0)).all()))
    question, columns = settings.question(lower_is_better, weights=weights, sample=sample), {}
    for name, one in tests.items():
        test = one.without_interval if len(tests) == 1 else one.outcomes
        columns[name] = test(a, b, question.asked_again())
    return [{name: column[row] for name, column in columns.items()} for row in range(len(a))]


def _deciding_p(a: Floats, b: Floats, settings: ComparisonSettings, question: SignificanceSettings) -> list[float]:
    """For each row, the deciding test's p-value for a question; NaN if it is not a test of two systems."""
    decides = settings.paired_tests(binary=True).get(settings.test)
    if decides is None or not len(a):
        return [NAN] * len(a)
    return [one.p for one in decides.without_interval(a, b, question)]


def _with_tests(pair: RunPair, outcomes: Mapping[str, SignificanceResult], test: str, lower_is_better: bool) -> RunPair:
    """The pair with its tests, and the p-value of the deciding test or the reason why there is none."""
    if pair.n == 1:
        return replace(pair, outcomes=outcomes, test=test, reason=ONE_TOPIC)
    if pair.ties == pair.n:
        return replace(pair, outcomes=outcomes, test=test, reason="all differences are 0")
    if test not in outcomes:
        return replace(pair, outcomes=outcomes, test=test)
    outcome = outcomes[test]
    reason = outcome.reason.replace("pair", "topic") if outcome.p != outcome.p else ""
    favoured = "neither" if outcome.p != outcome.p else _side(outcome.direction, lower_is_better)
    return replace(pair, outcomes=outcomes, test=test, p=outcome.p, favoured=favoured, reason=reason)


def _over_seeds(systems: Systems, settings: ComparisonSettings, pair: RunPair) -> RunPair:
    """A pair that includes a group of runs, with the test over topics and seeds.

    Its interval replaces the one over topics. A topic that one of the runs lacks is left out.
    """
    pair = replace(_without_interval(pair), test=SEEDS)
    if pair.n < 2:
        return replace(pair, reason=ONE_TOPIC if pair.n else NO_TOPIC)
    a, b = systems.common_tables(pair.one, pair.other, pair.measure)
    lower = systems.lower_is_better(pair.measure)
    tested = crossed_difference(a, b, settings.level, settings.direction(lower))
    reason = tested.reason if tested.p != tested.p else ""
    extra = {"df": tested.df, "p over topics only": tested.p_blocks}
    direction = int(np.sign(tested.difference))
    numbers = tested.p, tested.statistic, tested.low, tested.high
    outcome = SignificanceResult(SEEDS, *numbers, reason=tested.reason, extra=extra, direction=direction)
    favoured = _side(direction, lower) if tested.p == tested.p else "neither"
    pair = replace(pair, p=tested.p, low=tested.low, high=tested.high, reason=reason, outcomes={SEEDS: outcome})
    if settings.one_sided:
        other = crossed_difference(a, b, settings.level, settings.question(lower, opposite=True).alternative)
        pair = replace(pair, opposite=other.p)
    return replace(pair, favoured=favoured)


def _with_many(
    systems: Systems, settings: ComparisonSettings, measure: str, pairs: list[RunPair]
) -> tuple[list[RunPair], dict[str, Any], str]:
    """Add the tests of all systems at once: the pairs, the results of these tests, and a remark on topics left out.

    These tests need a value of every system for every topic; a topic that one system lacks is left out for all.
    """
    names = systems.system_names()
    values = np.stack([systems.values(name, measure) for name in names], axis=1)
    table = values[~np.isnan(values).any(axis=1)]
    if len(table) < 2:
        reason = "fewer than two topics have a value for every system"
        tested = [replace(pair, reason=pair.reason or reason) for pair in pairs] if settings.decided_at_once else pairs
        return tested, {}, f"{measure}: {len(table)} topics have a value for every system; tests of all need two"
    left = len(values) - len(table)
    remark = f"{measure}: tests of all systems leave out {left} topics that one of them lacks" if left else ""
    results = {
        name: TESTS_OF_MANY[name](
            table, level=settings.level, resamples=settings.resamples, rng=np.random.default_rng(settings.seed)
        )
        for name in settings.at_once
    }
    tested = []
    for pair in pairs:
        outcomes = dict(pair.outcomes)
        at = names.index(pair.one), names.index(pair.other)
        for name, one in results.items():
            if TESTS_OF_MANY[name].pairs:
                ends = (NAN, NAN) if TESTS_OF_MANY[name].by_order else (float(one.low[at]), float(one.high[at]))
                facts = float(one.p[at]), float(one.statistic[at]), *ends, one.exact, one.resamples, one.reason
                direction = 0 if one.reason else one.direction(*at)
                outcomes[name] = SignificanceResult(name, *facts, direction=direction)
        lower = systems.lower_is_better(measure)
        decided = _with_tests(pair, outcomes, settings.test, lower) if settings.decided_at_once else pair
        tested.append(replace(decided, outcomes=outcomes))
    return tested, results, remark


# simultaneous intervals


def _with_simultaneous_intervals(
    systems: Systems, settings: ComparisonSettings, pairs: list[RunPair], family: int
) -> list[RunPair]:
    """The pairs with intervals at the level that the correction gives each; Tukey's tests have their own intervals.

    With a false coverage rate only significant pairs have intervals.
    """
    if settings.decided_at_once:
        ends = [(one.low, one.high) if (one := pair.outcomes.get(settings.test)) else (NAN, NAN) for pair in pairs]
        return [replace(pair, low=low, high=high) for pair, (low, high) in zip(pairs, ends, strict=True)]
    correction = CORRECTIONS[settings.correction]
    selected = [pair.corrected <= settings.alpha for pair in pairs]
    level = correction.interval_level(settings.level, max(family, 1), sum(selected))
    if level >= 1:  # no pair is significant, so none gets an interval
        return [_without_interval(pair) for pair in pairs]
    stricter, again = replace(settings, level=level), []
    for measure in systems.scores.measures:
        names = [(pair.one, pair.other) for pair in pairs if pair.measure == measure]
        again += _by_measure(systems, stricter, measure, names, test=False)
    answer = []
    for pair, wider, is_selected in zip(pairs, again, selected, strict=True):
        if pair.test == SEEDS:
            wider = _over_seeds(systems, stricter, pair)
        new: dict[str, Any] = {name: getattr(wider, name) for name in ("low", "high", "effect_low", "effect_high")}
        widened = replace(pair, **new) if pair.low == pair.low else pair
        has_interval = is_selected or correction.controls != "false discovery rate"
        answer.append(widened if has_interval else _without_interval(pair))
    return answer


def _without_interval(pair: RunPair) -> RunPair:
    return replace(pair, low=NAN, high=NAN, effect_low=NAN, effect_high=NAN)


# equivalence and non-inferiority


def _margins(systems: Systems, settings: ComparisonSettings, pair: RunPair) -> Margins | None:
    """Test a pair for equivalence and non-inferiority; None without a margin or without differences to test."""
    margin, alpha = settings.margin, settings.alpha
    if margin is None or pair.n < 1 or (pair.reason and pair.low != pair.low):
        return None
    a, b = systems.common_tables(pair.one, pair.other, pair.measure)
    turn = -1.0 if systems.lower_is_better(pair.measure) else 1.0
    if pair.test == SEEDS:
        worse = crossed_equivalence("non-inferiority", turn * a, turn * b, margin, alpha)
        return Margins(crossed_equivalence("equivalence", a, b, margin, alpha), worse)
    one, other = a.mean(axis=1), b.mean(axis=1)
    worse = non_inferiority(turn * one, turn * other, margin, alpha=alpha)
    return Margins(tost(one, other, margin, alpha=alpha), worse)

"""Cautions: what a statistician would warn of. Each rule is a function that examines the evidence and yields warnings.

A function becomes a rule by `@rule`; warnings appear in the order of this file. Rules never change a number. If many
pairs share a warning, the first few are named and the rest are counted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.text_layout import bare_p, p_value
from cranfield.comparison.pair import RunPair, amount
from cranfield.comparison.score_tables import SEEDS, lists_nonrelevant
from cranfield.comparison.settings import round_up
from cranfield.stats.correction import CORRECTIONS
from cranfield.stats.paired import p_of_t, t_without_each
from cranfield.stats.power import Design, detectable_difference
from cranfield.stats.replicates import crossed_difference
from cranfield.stats.sampled_means import sampled_t_without_each
from cranfield.stats.tests_by_name import Test, TestOfMany, any_test
from cranfield.stats.weighted_means import weighted_t_without_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cranfield.base.kernels.table import Floats
    from cranfield.comparison.evidence import ComparisonEvidence
    from cranfield.evaluation.scores import Scores
    from cranfield.stats.sampled_means import ProbabilitySample
    from cranfield.stats.two_sample_test import Alternative

    Rule = Callable[[ComparisonEvidence], Iterator["Caution"]]


ENOUGH_TOPICS, BETTER_TOPICS = 50, 200  # minimum for a comparison, and a better number
HEAVY_TIES = 0.5  # share of equal topics from which ties are called heavy
JUDGED_GAP, LEAST_JUDGED = 0.1, 0.6  # judged@k is low if so far below the best run, or below this value
WANTED_POWER = 0.8
WEIGHTY = 0.8  # share of effective topics below which weights leave few topics
ENOUGH_SEEDS = 5  # minimum number of runs of a group
NAMED_PAIRS = 3  # if more pairs have the same warning, the others are counted
PAIRS_TRIED = 20  # pairs for which the deciding test is repeated without one topic; for others the t-test is used
AT_ONCE = 1024  # pairs per block
ROUNDING = 1e-9  # relative rounding error of a p-value
NAMED_RUNS = 5


@dataclass(frozen=True)
class Caution:
    """A warning: a code for programs, a sentence for people, and the measure and runs concerned."""

    code: str
    text: str
    measure: str | None = None
    runs: tuple[str, ...] = ()


RULES: list[Rule] = []
"""All rules, in the order of their warnings."""


def rule(function: Rule) -> Rule:
    """Register a function as a rule."""
    RULES.append(function)
    return function


def all_cautions(evidence: ComparisonEvidence) -> list[Caution]:
    """The warnings of all rules."""
    return [caution for rule in RULES for caution in rule(evidence)]


def _for_pairs(code: str, warnings: list[tuple[RunPair, str]], what: str) -> Iterator[Caution]:
    """A caution for each pair; if there are many, for the first few pairs and one for the rest."""
    for pair, text in warnings[:NAMED_PAIRS]:
        yield Caution(code, text, pair.measure, (pair.one, pair.other))
    rest = len(warnings) - NAMED_PAIRS
    if rest > 0:
        yield Caution(code, f"{rest:,} more {'pair is' if rest == 1 else 'pairs are'} {what}")


def grouped_texts(cautions: list[Caution], verbose: bool = False) -> list[str]:
    """The texts of the cautions; without `verbose`, only the first of each kind with the number of others."""
    if verbose:
        return [caution.text for caution in cautions]
    kinds: dict[str, list[str]] = defaultdict(list)
    for caution in cautions:
        kinds[caution.code].append(caution.text)
    return [text if not alike else f"{text} ({len(alike)} more of this kind)" for text, *alike in kinds.values()]


# judgments


@rule
def low_judged(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn if much less of a run's top ranks is judged than of the others', or little at all."""
    old = {run for name in evidence.baselines for run in evidence.runs_of(name)}
    for name, by_run in evidence.judged.items() if lists_nonrelevant(evidence.scores) else ():
        shares = {run: share for run, share in by_run.items() if share == share}
        if not shares:
            continue
        rivals = {run: share for run, share in shares.items() if run in old} or shares
        best = max(rivals, key=lambda run: rivals[run])
        new = {run: share for run, share in shares.items() if run not in old} or shares
        low = {run: share for run, share in new.items() if share < LEAST_JUDGED or share <= rivals[best] - JUDGED_GAP}
        if low:
            named = ", ".join(f"{run} {share:.0%}" for run, share in list(low.items())[:NAMED_RUNS])
            named += f" and {len(low) - NAMED_RUNS} more" if len(low) > NAMED_RUNS else ""
            against = f" ({best}: {rivals[best]:.0%})" if best not in low else ""
            text = (
                f"{name} is low for {named}{against}: unjudged documents count as not relevant, so "
                f"{'it' if len(low) == 1 else 'they'} may be better than the scores say"
            )
            yield Caution("low-judged", text, runs=tuple(low))


# how many topics


def _fewest(evidence: ComparisonEvidence) -> int | None:
    """The number of topics of the smallest pair if that is too few, else None."""
    n = min((pair.n for pair in evidence.pairs if pair.n), default=ENOUGH_TOPICS)
    return n if n < ENOUGH_TOPICS else None


def _effective(evidence: ComparisonEvidence, n: int) -> float:
    """The effective number of n topics if there are weights; for a sample, one more than its degrees of freedom; else n."""
    weights = evidence.scores.weights
    sample = evidence.sample_of(evidence.scores.topics)
    if sample is not None:
        return min(n, sample.freedom + 1)
    return n if weights is None else min(n, weights.effective(evidence.scores.topics))


def _without_each(d: Floats, weights: Floats | None, sample: ProbabilitySample | None) -> tuple[Floats, Floats]:
    """The mean without each topic in turn, and its t statistic."""
    if sample is not None:
        return sampled_t_without_each(d, sample)
    return t_without_each(d) if weights is None else weighted_t_without_each(d, weights)


@rule
def few_topics(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn of fewer than fifty topics."""
    n = _fewest(evidence)
    if n is not None:
        text = (
            f"{'1 topic is' if n == 1 else f'{n} topics are'} few: fewer than {ENOUGH_TOPICS} seldom settle a comparison, "
            f"and other topics may reverse it ({BETTER_TOPICS} or more are better)"
        )
        yield Caution("few-topics", text)


@rule
def few_effective_topics(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn of weights under which few topics decide."""
    weights, topics = evidence.scores.weights, evidence.scores.topics
    if weights is None or weights.designed:
        return
    effective = weights.effective(topics)
    if effective < min(ENOUGH_TOPICS, WEIGHTY * len(topics)):
        values = weights.of(topics)
        heaviest, share = topics[int(np.argmax(values))], float(values.max() / values.sum())
        text = (
            f"the weights leave {effective:.1f} effective topics of {len(topics)} (topic {heaviest!r} alone has {share:.0%}): "
            "intervals are about as wide as with so few topics"
        )
        yield Caution("effective-topics", text)


@rule
def few_drawn_topics(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn of a sample in which few topics were drawn by chance, because intervals rest on these."""
    sample = evidence.sample_of(evidence.scores.topics)
    if sample is None or sample.no_interval:
        return
    drawn, topics = int(sample.drawn.sum()), len(evidence.scores.topics)
    if drawn < ENOUGH_TOPICS <= topics:
        text = (
            f"only {drawn} of {topics} topics were drawn by chance, and intervals rest on these: where four of five values "
            "are 0, 95% intervals held in 90 of 100 simulated samples with 36 drawn topics, and in 76 with 15"
        )
        yield Caution("few-drawn-topics", text)


@rule
def too_sure(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn of tests that have too many false alarms on few topics, or if few topics differ."""
    differing = min((pair.n - pair.ties for pair in evidence.pairs if pair.n), default=ENOUGH_TOPICS)
    effective = _effective(evidence, len(evidence.scores.topics))
    if _fewest(evidence) is None and min(differing, effective) >= ENOUGH_TOPICS:
        return
    rates = {name: rate for name in evidence.tests if (rate := getattr(any_test(name), "false_alarms", ""))}
    if rates:
        measured = "; ".join(f"{name} {rate.replace('pairs', 'topics')}" for name, rate in rates.items())
        more = "more false alarms than alpha on so few topics that differ"
        weighed = "; even more under heavy weights" if evidence.weighed_by else ""
        yield Caution("too-sure", f"{', '.join(rates)}: {more} (at 5 %: {measured}{weighed})")


# p-values


@rule
def uncorrected(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn of several p-values without a correction that covers them all."""
    family, measures, alpha = evidence.family, len(evidence.scores.measures), evidence.alpha
    if family < 2:
        return
    if evidence.decided_at_once and measures > 1:
        text = (
            f"the p-values are corrected for the pairs of each measure, but not for {measures} measures: "
            f"divide alpha by {measures}, or choose one measure beforehand"
        )
        yield Caution("uncorrected", text)
    elif not evidence.decided_at_once and not CORRECTIONS[evidence.correction].corrects:
        text = (
            f"{family} p-values and no correction: if all systems were equal, at least one would be {alpha:g} or less with "
            f"probability up to {1 - (1 - alpha) ** family:.0%} (correction holm keeps that at {alpha:.0%})"
        )
        yield Caution("uncorrected", text)


@rule
def coarse(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn of p-values that cannot become small enough: too few resamples for so many pairs, or too few topics."""
    alpha = evidence.alpha
    discovery = not evidence.decided_at_once and CORRECTIONS[evidence.correction].controls == "false discovery rate"
    level = alpha if discovery else _deciding_level(evidence)
    tested = [pair for pair in evidence.pairs if pair.p == pair.p]
    coarse = [pair for pair in tested if not evidence.significant(pair) and _smallest_p(evidence, pair) > level]
    for pair in coarse:
        outcome, least, differing = pair.outcomes[pair.test], _smallest_p(evidence, pair), pair.n - pair.ties
        if outcome.exact or pair.p <= 2 * least:
            topics = "1 topic that differs gives" if differing == 1 else f"{differing} topics that differ give"
            why = topics if outcome.exact else f"{outcome.resamples:,} resamples give"
            more = "" if outcome.exact else f"; ask for {round_up(2 / level):,} resamples"
            after = f", which is {bare_p(min(1.0, least * alpha / level))} after correction" if level < alpha else ""
            rest = f" and {len(coarse) - 1:,} more" if len(coarse) > 1 else ""
            these = f"{pair.other} and {pair.one} by {pair.measure}{rest} cannot"
            what = "nothing can" if len(coarse) == len(tested) else these
            text = f"{why} no p-value below {least:.2g}{after}: {what} be significant at {alpha:g}{more}"
            yield Caution("coarse", text, pair.measure, (pair.one, pair.other))
            return


def _deciding_level(evidence: ComparisonEvidence) -> float:
    """The uncorrected p-value that a pair would need to become significant, given the other pairs."""
    if evidence.decided_at_once:
        return evidence.alpha
    rejected = sum(map(evidence.significant, evidence.pairs))
    return CORRECTIONS[evidence.correction].next_level(evidence.alpha, max(evidence.family, 1), rejected)


def _smallest_p(evidence: ComparisonEvidence, pair: RunPair) -> float:
    """The smallest p-value that the test can give for so many topics that differ."""
    test = any_test(pair.test)
    if not isinstance(test, Test):
        return 0.0
    return test.smallest_p(pair.outcomes[pair.test], pair.n - pair.ties, sides=1 if evidence.one_sided else 2)


# missing values


@rule
def missing_topics(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn of topics that a run does not answer and that score 0."""
    scores = evidence.scores
    lack = _scored_zero(scores) if scores.conventions.missing == "zero" else {}
    if lack:
        most = max(lack, key=lambda run: lack[run])
        others = f" ({len(lack)} runs lack topics)" if len(lack) > 1 else ""
        text = (
            f"{most} does not answer {lack[most]} of the {len(scores.topics)} topics{others}; missing topics score 0, "
            "which is part of the difference (--missing skip compares on the topics that both answer)"
        )
        yield Caution("missing-topics", text, runs=tuple(lack))


def _scored_zero(scores: Scores) -> dict[str, int]:
    """For each run, the number of missing topics that still have a value; some measures have none for them."""
    place = {topic: t for t, topic in enumerate(scores.topics)}
    lack = {}
    for run, topics in scores.absent.missing.items():
        values = scores.values[scores.runs.index(run)][:, [place[topic] for topic in topics if topic in place]]
        lack[run] = int((~np.isnan(values)).any(axis=0).sum())
    return {run: number for run, number in lack.items() if number}


@rule
def left_out(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn of topics that are left out because one of the two runs has no value."""
    warnings = []
    for pair in evidence.pairs:
        if pair.left_out and pair.n:
            these = "1 topic has" if pair.left_out == 1 else f"{pair.left_out} topics have"
            cut = f"{pair.other} and {pair.one} are compared on {pair.n} of {pair.n + pair.left_out} topics"
            warnings.append((pair, f"{cut}: {these} no {pair.measure} for one of the runs"))
    yield from _for_pairs("left-out", warnings, "compared on some of the topics")


# one topic


@rule
def one_topic_decides(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn of a topic without which the difference changes its sign or its significance."""
    doubts: list[tuple[RunPair, str, str]] = []
    tests: list[tuple[RunPair, int, float]] = []
    for pair in _fragile_pairs(evidence):
        topics, d = evidence.differences(pair)
        mean, size = _without_each(d, evidence.weights_of(topics), evidence.sample_of(topics))
        turned = np.flatnonzero(np.sign(mean) * np.sign(pair.difference) < 0)
        if len(turned):
            t = int(turned[np.argmax(np.abs(mean[turned]))])
            then = f"would change its sign ({amount(pair.difference)} with it, {amount(float(mean[t]))} without)"
            doubts.append((pair, topics[t], then))
            continue
        settled, t_p = evidence.significant(pair), p_of_t(size, _effective(evidence, len(d)) - 1)
        t = int(np.argmax(t_p) if settled else np.argmin(t_p))
        few = len(tests) < PAIRS_TRIED and not _at_the_floor(pair)
        if evidence.decided_at_once and pair.test != SEEDS:  # testing this pair alone would not be the same test
            continue
        if _near_alpha(evidence, pair, float(t_p[t])) and (settled or few):
            doubts.append((pair, topics[t], ""))
            tests.append((pair, t, float(t_p[t])))
    tested = iter([*_p_without_topic(evidence, tests[:PAIRS_TRIED]), *(t_p for _, _, t_p in tests[PAIRS_TRIED:])])
    outcomes = [(pair, topic, then or _changed_verdict(evidence, pair, next(tested))) for pair, topic, then in doubts]
    named = evidence.scores.topic_in_words
    warnings = [(pair, _without(pair, named(topic), then)) for pair, topic, then in outcomes if then]
    yield from _for_pairs("one-topic", warnings, "decided by one topic")


def _changed_verdict(evidence: ComparisonEvidence, pair: RunPair, p: float) -> str:
    """How another p-value would change the verdict on a pair; empty if it would not."""
    corrected, settled = _corrected(evidence, pair, p), evidence.significant(pair)
    if (corrected <= evidence.alpha) == settled:
        return ""
    verdict = "would not be significant" if settled else "would be significant"
    return f"{verdict} (p {p_value(pair.corrected)} with it, {bare_p(corrected)} without, corrected)"


def _fragile_pairs(evidence: ComparisonEvidence) -> Iterator[RunPair]:
    """The pairs that a single topic may decide, best first; a quick check rules out most pairs.

    Only the largest or the smallest t becomes a p-value; pairs with missing topics are always yielded.
    """
    pairs = [pair for pair in evidence.best_first() if pair.n > 2 and pair.p == pair.p and pair.ahead != "neither"]
    sample = evidence.sample_of(evidence.scores.topics)
    for measure, of_measure in groupby(pairs, key=lambda pair: pair.measure):
        values = {name: evidence.values(name, measure) for name in evidence.system_names()}
        several = list(of_measure)
        for start in range(0, len(several), AT_ONCE):
            some = several[start : start + AT_ONCE]
            d = np.stack([values[pair.other] - values[pair.one] for pair in some])
            mean, size = _without_each(d, evidence.topic_weights, sample)
            turns = np.any(np.sign(mean) * np.sign([[pair.difference] for pair in some]) < 0, axis=1)
            settled = np.array([evidence.significant(pair) for pair in some])
            p = p_of_t(np.where(settled, size.min(axis=1), size.max(axis=1)), _effective(evidence, d.shape[1]) - 1)
            p *= np.where(settled, 1 + ROUNDING, 1 - ROUNDING)
            for pair, turn, extreme in zip(some, turns.tolist(), p.tolist(), strict=True):
                if pair.left_out or turn or _near_alpha(evidence, pair, extreme):
                    yield pair


def _without(pair: RunPair, topic: str, then: str) -> str:
    return f"without topic {topic} the difference of {pair.other} and {pair.one} by {pair.measure} {then}"


def _at_the_floor(pair: RunPair) -> bool:
    """Whether the p-value is the smallest that so many resamples can give; then there are too few resamples."""
    outcome = pair.outcomes.get(pair.test)
    return outcome is not None and not outcome.exact and pair.p * (outcome.resamples + 1) < 2


def _near_alpha(evidence: ComparisonEvidence, pair: RunPair, p: float) -> bool:
    """Whether the p-value without a topic lies near or beyond alpha, so that the topic may decide."""
    corrected = _corrected(evidence, pair, p)
    near = corrected > evidence.alpha / 2 if evidence.significant(pair) else corrected < evidence.alpha * 2
    return near or pair.test == SEEDS


def _corrected(evidence: ComparisonEvidence, pair: RunPair, p: float) -> float:
    """An estimate of another p-value after correction, using the factor of the pair's own correction.

    A smaller p-value than the pair's own is multiplied by the size of the family, since it would be ranked earlier.
    """
    if evidence.decided_at_once or not CORRECTIONS[evidence.correction].corrects:
        return p
    return min(1.0, p * (evidence.family if p < pair.p else pair.corrected / pair.p))


def _p_without_topic(evidence: ComparisonEvidence, tests: list[tuple[RunPair, int, float]]) -> list[float]:
    """For each pair, the p-value of the deciding test without one topic; tests of equal size are run together."""
    answer = [1.0] * len(tests)
    together: dict[tuple[str, bool, int, bytes, bytes], list[tuple[int, Floats, Floats]]] = defaultdict(list)
    samples: dict[bytes, ProbabilitySample | None] = {}
    for place, (pair, without, _) in enumerate(tests):
        tables = evidence.common_tables(pair.one, pair.other, pair.measure)
        a, b = (np.delete(table, without, axis=0) for table in tables)
        lower = evidence.lower_is_better(pair.measure)
        if pair.test == SEEDS:
            answer[place] = crossed_difference(a, b, evidence.level, evidence.direction(lower)).p
        else:
            topics = evidence.differences(pair)[0]
            rest = topics[:without] + topics[without + 1 :]
            weights, sample = evidence.weights_of(rest), evidence.sample_of(rest)
            weighed = b"" if weights is None else weights.tobytes()
            drawn = b"" if sample is None else sample.inclusion.tobytes() + sample.strata.tobytes()
            samples[drawn] = sample
            together[pair.test, lower, len(a), weighed, drawn].append((place, a.mean(axis=1), b.mean(axis=1)))
    for (name, lower, _, weighed, drawn), rows in together.items():
        test = any_test(name)
        assert isinstance(test, Test)
        one, other = (np.stack([row[side] for row in rows]) for side in (1, 2))
        weights = np.frombuffer(weighed) if weighed else None
        question = evidence.question(lower, weights=weights, sample=samples[drawn])
        for (place, *_), outcome in zip(rows, test.without_interval(one, other, question), strict=True):
            answer[place] = outcome.p
    return [p if p == p else 1.0 for p in answer]


# groups of runs


@rule
def few_seeds(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn of groups with too few runs to estimate their spread."""
    small = [group for group in evidence.groups if 1 < len(group.runs) < ENOUGH_SEEDS]
    if small:
        named = ", ".join(f"{group.name} ({len(group.runs)})" for group in small[:NAMED_RUNS])
        text = f"few runs say little about the spread over seeds, which makes the interval wide: {named}"
        yield Caution("few-seeds", text, runs=tuple(run for group in small for run in group.runs))


@rule
def one_seed(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn of single runs that are compared with a group."""
    sides = [name for pair in evidence.pairs if pair.test == SEEDS for name in (pair.one, pair.other)]
    alone = [name for name in dict.fromkeys(sides) if not evidence.has_seeds(name)]
    if alone:
        named = ", ".join(alone[:NAMED_RUNS])
        text = f"{named} ran once and is taken to be deterministic; if it is not, run it again"
        yield Caution("one-seed", text, runs=tuple(alone))


# ties, power


@rule
def heavy_ties(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn if half of the topics or more score the same for both runs."""
    warnings = []
    for pair in evidence.best_first():
        if pair.n > 1 and HEAVY_TIES * pair.n <= pair.ties < pair.n:
            rest = pair.n - pair.ties
            only = "1 topic decides" if rest == 1 else f"{rest} topics decide"
            same = f"{pair.other} and {pair.one} score the same {pair.measure} on {pair.ties} of {pair.n} topics"
            warnings.append((pair, f"{same}: {only}"))
    yield from _for_pairs("heavy-ties", warnings, "equal on at least half of the topics")


@rule
def undetectable(evidence: ComparisonEvidence) -> Iterator[Caution]:
    """Warn of a difference that is not significant and that so few topics could hardly detect."""
    warnings = []
    level = _deciding_level(evidence)
    at = f" at {level:.2g}, the corrected level" if level < evidence.alpha else ""
    for pair in evidence.best_first():
        tested = pair.p == pair.p and pair.n > 2 and abs(pair.effect) > 0 and not pair.contradictory
        open_ = tested and not evidence.significant(pair) and evidence.answer(pair) != "no"
        if not open_ or _asks_other_direction(evidence, pair):
            continue
        least = _detectable_difference(evidence, pair, level)
        if abs(pair.difference) < least:
            text = (
                f"the difference of {pair.other} and {pair.one}, {amount(abs(pair.difference))} {pair.measure}, is smaller "
                f"than {amount(least)}, the smallest that {pair.n} topics of this spread detect with {WANTED_POWER:.0%} power{at}"
            )
            warnings.append((pair, text))
    yield from _for_pairs("undetectable", warnings, "smaller than what so many topics can detect with 80% power")


def _asks_other_direction(evidence: ComparisonEvidence, pair: RunPair) -> bool:
    """Whether the one-sided question is about the direction opposite to the difference."""
    direction = evidence.direction(evidence.lower_is_better(pair.measure))
    return (direction == "greater" and pair.difference < 0) or (direction == "less" and pair.difference > 0)


def _detectable_difference(evidence: ComparisonEvidence, pair: RunPair, level: float) -> float:
    """The smallest difference that the deciding test detects with the target power at its level.

    NaN if it cannot be computed: unpaired tests have another spread, groups of runs another error, and Nemenyi's test
    compares ranks. If no p-value can be small enough, `coarse` warns instead.
    """
    test, spread = any_test(pair.test), abs(pair.difference / pair.effect)
    if isinstance(test, TestOfMany) and not test.by_order:
        same = abs(1 - evidence.level - evidence.alpha) < ROUNDING  # its interval is of the level asked for
        outcome = pair.outcomes[test.name]
        critical = (outcome.high - outcome.low) / 2 if same else float("nan")
        return float(critical + spread * _QUANTILE_OF_POWER / pair.n**0.5)
    if not isinstance(test, Test) or not test.paired or _smallest_p(evidence, pair) > level:
        return float("nan")
    return spread * _detectable_effect(test.name, pair.n, pair.ties, level, not evidence.one_sided)


_QUANTILE_OF_POWER = 0.8416212335729143  # so many standard errors beyond the critical difference give 80 % power
WILCOXON_EFFICIENCY = 3 / np.pi  # of Wilcoxon's test against t, where differences are normal: Pitman (1949)


@cache
def _detectable_effect(test: str, n: int, ties: int, alpha: float, two_sided: bool = True) -> float:
    """The detectable effect in standard deviations. Tests of means share the power of the t-test; signs have their own.

    This assumes normal differences, and 0 for topics that tie.
    """
    alternative: Alternative = "two-sided" if two_sided else "greater"
    compares = any_test(test).compares
    design = Design("sign" if compares == "wins" else "t", sd=1.0, alpha=alpha, alternative=alternative)
    sizes = {"wins": n - ties, "ranks": max(2, round(WILCOXON_EFFICIENCY * n))}
    try:
        return detectable_difference(design, sizes.get(compares, n), WANTED_POWER)
    except DataError:  # no difference is large enough
        return float("inf")

"""What a statistician would warn of, one rule a function: each looks at the evidence and says nothing, or what is wrong.

A function becomes a rule by `@rule`, and rules speak in the order of this file. They never change a number. Where many
pairs share a warning the first few are named and the rest are counted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from cranfield.columns import bare_p, p_value
from cranfield.compare.pair import Pair, amount
from cranfield.compare.scored import lists_nonrelevant
from cranfield.compare.settings import round_up
from cranfield.compare.systems import SEEDS
from cranfield.errors import DataError
from cranfield.stats.correction import CORRECTIONS
from cranfield.stats.paired import p_of_t, t_without_each
from cranfield.stats.power import Design, detectable_difference
from cranfield.stats.replicates import crossed_difference
from cranfield.stats.testing import Test, TestOfMany, any_test
from cranfield.stats.weighing import weighted_t_without_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cranfield.compare.evidence import Evidence
    from cranfield.kernels.table import Floats
    from cranfield.scores import Scores
    from cranfield.stats.test import Alternative

    Rule = Callable[[Evidence], Iterator["Caution"]]


ENOUGH_TOPICS, BETTER_TOPICS = 50, 200  # the least that a comparison should have, and what is better
HEAVY_TIES = 0.5  # the share of equal topics from which on ties are said to be heavy
JUDGED_GAP, LEAST_JUDGED = 0.1, 0.6  # judged@k: this much below the best judged run, or below this
WANTED_POWER = 0.8
WEIGHTY = 0.8  # the share of effective topics below which weights are said to leave few
ENOUGH_SEEDS = 5  # runs of a group
NAMED_PAIRS = 3  # where more have the same warning, the others are counted
PAIRS_TRIED = 20  # pairs for which the deciding test is made again without one topic; beyond, the t-test stands in
AT_ONCE = 1024  # pairs looked at together
ROUNDING = 1e-9  # of a p-value, to either side
NAMED_RUNS = 5


@dataclass(frozen=True)
class Caution:
    """What a statistician would warn of: a code for programs, a sentence for people, and what it is about."""

    code: str
    text: str
    measure: str | None = None
    runs: tuple[str, ...] = ()


RULES: list[Rule] = []
"""In the order in which they are said."""


def rule(function: Rule) -> Rule:
    """Make a function one of the rules."""
    RULES.append(function)
    return function


def all_cautions(evidence: Evidence) -> list[Caution]:
    """Everything that the rules have to say."""
    return [caution for rule in RULES for caution in rule(evidence)]


def _some(code: str, warnings: list[tuple[Pair, str]], what: str) -> Iterator[Caution]:
    """A caution for each pair, or for the first few and one for the rest."""
    for pair, text in warnings[:NAMED_PAIRS]:
        yield Caution(code, text, pair.measure, (pair.one, pair.other))
    rest = len(warnings) - NAMED_PAIRS
    if rest > 0:
        yield Caution(code, f"{rest:,} more {'pair is' if rest == 1 else 'pairs are'} {what}")


def grouped_texts(cautions: list[Caution], verbose: bool = False) -> list[str]:
    """What they say; of several of a kind the first unless `verbose`, with their number."""
    if verbose:
        return [caution.text for caution in cautions]
    kinds: dict[str, list[str]] = defaultdict(list)
    for caution in cautions:
        kinds[caution.code].append(caution.text)
    return [text if not alike else f"{text} ({len(alike)} more alike)" for text, *alike in kinds.values()]


# judgments


@rule
def low_judged(evidence: Evidence) -> Iterator[Caution]:
    """A run of whose top ranks much less was judged than of the others', or little at all."""
    old = {run for name in evidence.baselines for run in evidence.runs_of(name)}
    for name, known in evidence.judged.items() if lists_nonrelevant(evidence.scores) else ():
        shares = {run: share for run, share in known.items() if share == share}
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
                f"{name} is low for {named}{against}: documents that nobody judged count as irrelevant, so "
                f"{'it' if len(low) == 1 else 'they'} may be better than the scores say"
            )
            yield Caution("low-judged", text, runs=tuple(low))


# how many topics


def _fewest(evidence: Evidence) -> int | None:
    """The number of topics of the smallest pair, if it is too small."""
    n = min((pair.n for pair in evidence.pairs if pair.n), default=ENOUGH_TOPICS)
    return n if n < ENOUGH_TOPICS else None


def _effective(evidence: Evidence, n: int) -> float:
    """How many of n topics count, where they are weighed; else all of them."""
    weights = evidence.scores.weights
    return n if weights is None else min(n, weights.effective(evidence.scores.topics))


def _without_each(d: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """The mean without each topic in turn and its t."""
    return t_without_each(d) if weights is None else weighted_t_without_each(d, weights)


@rule
def few_topics(evidence: Evidence) -> Iterator[Caution]:
    """Fewer than fifty topics."""
    n = _fewest(evidence)
    if n is not None:
        text = (
            f"{'1 topic is' if n == 1 else f'{n} topics are'} few: fewer than {ENOUGH_TOPICS} seldom settle a comparison, "
            f"and other topics may turn it round ({BETTER_TOPICS} or more are better)"
        )
        yield Caution("few-topics", text)


@rule
def few_effective_topics(evidence: Evidence) -> Iterator[Caution]:
    """Weights under which few topics decide."""
    weights, topics = evidence.scores.weights, evidence.scores.topics
    if weights is None:
        return
    effective = weights.effective(topics)
    if effective < min(ENOUGH_TOPICS, WEIGHTY * len(topics)):
        values = weights.of(topics)
        heaviest, share = topics[int(np.argmax(values))], float(values.max() / values.sum())
        text = (
            f"the weights leave {effective:.1f} effective topics of {len(topics)} (topic {heaviest!r} alone has {share:.0%}): "
            "intervals are about as wide as those of so few"
        )
        yield Caution("effective-topics", text)


@rule
def too_sure(evidence: Evidence) -> Iterator[Caution]:
    """Tests that raise too many false alarms on so few topics, or on so few that differ."""
    differing = min((pair.n - pair.ties for pair in evidence.pairs if pair.n), default=ENOUGH_TOPICS)
    effective = _effective(evidence, len(evidence.scores.topics))
    if _fewest(evidence) is None and min(differing, effective) >= ENOUGH_TOPICS:
        return
    rates = {name: rate for name in evidence.tests if (rate := getattr(any_test(name), "false_alarms", ""))}
    if rates:
        measured = "; ".join(f"{name} {rate.replace('pairs', 'topics')}" for name, rate in rates.items())
        more = "more false alarms than alpha says on so few topics that differ"
        weighed = "; under heavy weights more" if evidence.weighed_by else ""
        yield Caution("too-sure", f"{', '.join(rates)}: {more} (at 5 %: {measured}{weighed})")


# p-values


@rule
def uncorrected(evidence: Evidence) -> Iterator[Caution]:
    """Several p-values, and no correction that covers them all."""
    family, measures, alpha = evidence.family, len(evidence.scores.measures), evidence.alpha
    if family < 2:
        return
    if evidence.decided_at_once and measures > 1:
        text = (
            f"the p-values allow for the pairs of each measure, but not for {measures} measures: "
            f"divide alpha by {measures}, or choose one measure beforehand"
        )
        yield Caution("uncorrected", text)
    elif not evidence.decided_at_once and not CORRECTIONS[evidence.correction].corrects:
        text = (
            f"{family} p-values and no correction: were all systems equal, at least one would be {alpha:g} or less with a "
            f"chance of up to {1 - (1 - alpha) ** family:.0%} (correction holm keeps that at {alpha:.0%})"
        )
        yield Caution("uncorrected", text)


@rule
def coarse(evidence: Evidence) -> Iterator[Caution]:
    """p-values that cannot become small enough: too few resamples for so many pairs, or too few topics."""
    alpha = evidence.alpha
    level = alpha if _by_discovery(evidence) else _deciding_level(evidence)
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


def _by_discovery(evidence: Evidence) -> bool:
    return not evidence.decided_at_once and CORRECTIONS[evidence.correction].controls == "false discovery rate"


def _deciding_level(evidence: Evidence) -> float:
    """The p-value that a pair which is not significant would need before correction, the others being what they are."""
    if evidence.decided_at_once:
        return evidence.alpha
    rejected = sum(map(evidence.significant, evidence.pairs))
    return CORRECTIONS[evidence.correction].next_level(evidence.alpha, max(evidence.family, 1), rejected)


def _smallest_p(evidence: Evidence, pair: Pair) -> float:
    """The smallest p-value that the test could have given of so many topics that differ."""
    test = any_test(pair.test)
    if not isinstance(test, Test):
        return 0.0
    return test.smallest_p(pair.outcomes[pair.test], pair.n - pair.ties, sides=1 if evidence.one_sided else 2)


# missing values


@rule
def missing_topics(evidence: Evidence) -> Iterator[Caution]:
    """Topics that a run does not answer and that score 0."""
    scores = evidence.scores
    lack = _scored_zero(scores) if scores.conventions.missing == "zero" else {}
    if lack:
        most = max(lack, key=lambda run: lack[run])
        others = f" ({len(lack)} runs lack topics)" if len(lack) > 1 else ""
        text = (
            f"{most} does not answer {lack[most]} of the {len(scores.topics)} topics{others}; what is not answered scores 0, "
            "which is part of the difference (--missing skip compares on the topics that both answer)"
        )
        yield Caution("missing-topics", text, runs=tuple(lack))


def _scored_zero(scores: Scores) -> dict[str, int]:
    """Of each run, how many topics it lacks that have a value all the same; some measures have none for them."""
    place = {topic: t for t, topic in enumerate(scores.topics)}
    lack = {}
    for run, topics in scores.absent.missing.items():
        values = scores.values[scores.runs.index(run)][:, [place[topic] for topic in topics if topic in place]]
        lack[run] = int((~np.isnan(values)).any(axis=0).sum())
    return {run: number for run, number in lack.items() if number}


@rule
def left_out(evidence: Evidence) -> Iterator[Caution]:
    """Topics that are left out because one of the two has no value."""
    warnings = []
    for pair in evidence.pairs:
        if pair.left_out and pair.n:
            these = "1 topic has" if pair.left_out == 1 else f"{pair.left_out} topics have"
            cut = f"{pair.other} and {pair.one} are compared on {pair.n} of {pair.n + pair.left_out} topics"
            warnings.append((pair, f"{cut}: {these} no {pair.measure} for one of the two"))
    yield from _some("left-out", warnings, "compared on some of the topics")


# one topic


@rule
def one_topic_decides(evidence: Evidence) -> Iterator[Caution]:
    """A topic without which the difference changes its sign, or what the test says of it."""
    doubts: list[tuple[Pair, str, str]] = []
    tests: list[tuple[Pair, int, float]] = []
    for pair in _doubtful(evidence):
        topics, d = evidence.differences(pair)
        mean, size = _without_each(d, evidence.weights_of(topics))
        turned = np.flatnonzero(np.sign(mean) * np.sign(pair.difference) < 0)
        if len(turned):
            t = int(turned[np.argmax(np.abs(mean[turned]))])
            then = f"would have the other sign ({amount(pair.difference)} with it, {amount(float(mean[t]))} without)"
            doubts.append((pair, topics[t], then))
            continue
        settled, t_p = evidence.significant(pair), p_of_t(size, _effective(evidence, len(d)) - 1)
        t = int(np.argmax(t_p) if settled else np.argmin(t_p))
        few = len(tests) < PAIRS_TRIED and not _at_the_floor(pair)
        if evidence.decided_at_once and pair.test != SEEDS:  # a pair by itself would say nothing of its test
            continue
        if _close(evidence, pair, float(t_p[t])) and (settled or few):
            doubts.append((pair, topics[t], ""))
            tests.append((pair, t, float(t_p[t])))
    tested = iter([*_again(evidence, tests[:PAIRS_TRIED]), *(t_p for _, _, t_p in tests[PAIRS_TRIED:])])
    said = [(pair, topic, then or _turned(evidence, pair, next(tested))) for pair, topic, then in doubts]
    named = evidence.scores.topic_in_words
    warnings = [(pair, _without(pair, named(topic), then)) for pair, topic, then in said if then]
    yield from _some("one-topic", warnings, "decided by one topic")


def _turned(evidence: Evidence, pair: Pair, p: float) -> str:
    """What another p-value would make of a pair; empty where it says the same."""
    corrected, settled = _corrected(evidence, pair, p), evidence.significant(pair)
    if (corrected <= evidence.alpha) == settled:
        return ""
    verdict = "would not be significant" if settled else "would be significant"
    return f"{verdict} (p {p_value(pair.corrected)} with it, {bare_p(corrected)} without, corrected)"


def _doubtful(evidence: Evidence) -> Iterator[Pair]:
    """The pairs that one topic may decide, best first: of many pairs most are seen at a glance not to be among them.

    Only the largest t or the smallest becomes a p-value; pairs that lack topics are not looked at here.
    """
    pairs = [pair for pair in evidence.best_first() if pair.n > 2 and pair.p == pair.p and pair.ahead != "neither"]
    for measure, of_measure in groupby(pairs, key=lambda pair: pair.measure):
        values = {name: evidence.values(name, measure) for name in evidence.contenders()}
        several = list(of_measure)
        for start in range(0, len(several), AT_ONCE):
            some = several[start : start + AT_ONCE]
            d = np.stack([values[pair.other] - values[pair.one] for pair in some])
            mean, size = _without_each(d, evidence.topic_weights)
            turns = np.any(np.sign(mean) * np.sign([[pair.difference] for pair in some]) < 0, axis=1)
            settled = np.array([evidence.significant(pair) for pair in some])
            p = p_of_t(np.where(settled, size.min(axis=1), size.max(axis=1)), _effective(evidence, d.shape[1]) - 1)
            p *= np.where(settled, 1 + ROUNDING, 1 - ROUNDING)
            for pair, turn, extreme in zip(some, turns.tolist(), p.tolist(), strict=True):
                if pair.left_out or turn or _close(evidence, pair, extreme):
                    yield pair


def _without(pair: Pair, topic: str, then: str) -> str:
    return f"without topic {topic} the difference of {pair.other} and {pair.one} by {pair.measure} {then}"


def _at_the_floor(pair: Pair) -> bool:
    """Whether the p-value is the smallest that so many resamples give: then it is the resamples that are few."""
    outcome = pair.outcomes.get(pair.test)
    return outcome is not None and not outcome.exact and pair.p * (outcome.resamples + 1) < 2


def _close(evidence: Evidence, pair: Pair, p: float) -> bool:
    """Whether the t-test finds it possible that a topic makes the difference."""
    corrected = _corrected(evidence, pair, p)
    near = corrected > evidence.alpha / 2 if evidence.significant(pair) else corrected < evidence.alpha * 2
    return near or pair.test == SEEDS


def _corrected(evidence: Evidence, pair: Pair, p: float) -> float:
    """What another p-value would be after correction: as many times larger as the pair's own, at most all of them.

    A smaller p-value than the pair's own is taken times the size of the family, since it would come earlier in order.
    """
    if evidence.decided_at_once or not CORRECTIONS[evidence.correction].corrects:
        return p
    return min(1.0, p * (evidence.family if p < pair.p else pair.corrected / pair.p))


def _again(evidence: Evidence, tests: list[tuple[Pair, int, float]]) -> list[float]:
    """Of each pair the p-value of the deciding test without one topic, tests over as many topics being made together."""
    answer = [1.0] * len(tests)
    together: dict[tuple[str, bool, int, bytes], list[tuple[int, Floats, Floats]]] = defaultdict(list)
    for place, (pair, without, _) in enumerate(tests):
        tables = evidence.common_tables(pair.one, pair.other, pair.measure)
        a, b = (np.delete(table, without, axis=0) for table in tables)
        lower = evidence.lower_is_better(pair.measure)
        if pair.test == SEEDS:
            answer[place] = crossed_difference(a, b, evidence.level, evidence.direction(lower)).p
        else:
            topics = evidence.differences(pair)[0]
            weights = evidence.weights_of(topics[:without] + topics[without + 1 :])
            weighed = b"" if weights is None else weights.tobytes()
            together[pair.test, lower, len(a), weighed].append((place, a.mean(axis=1), b.mean(axis=1)))
    for (name, lower, _, weighed), rows in together.items():
        test = any_test(name)
        assert isinstance(test, Test)
        one, other = (np.stack([row[side] for row in rows]) for side in (1, 2))
        question = evidence.question(lower, weights=np.frombuffer(weighed) if weighed else None)
        outcomes = test.without_interval(one, other, question)
        for (place, *_), outcome in zip(rows, outcomes, strict=True):
            answer[place] = outcome.p
    return [p if p == p else 1.0 for p in answer]


# groups of runs


@rule
def few_seeds(evidence: Evidence) -> Iterator[Caution]:
    """Groups whose few runs say little about their spread."""
    small = [group for group in evidence.groups if 1 < len(group.runs) < ENOUGH_SEEDS]
    if small:
        named = ", ".join(f"{group.name} ({len(group.runs)})" for group in small[:NAMED_RUNS])
        text = f"few runs say little about the spread over seeds, and the interval is wide for it: {named}"
        yield Caution("few-seeds", text, runs=tuple(run for group in small for run in group.runs))


@rule
def one_seed(evidence: Evidence) -> Iterator[Caution]:
    """Single runs that stand against a group."""
    sides = [name for pair in evidence.pairs if pair.test == SEEDS for name in (pair.one, pair.other)]
    alone = [name for name in dict.fromkeys(sides) if not evidence.seeded(name)]
    if alone:
        named = ", ".join(alone[:NAMED_RUNS])
        text = f"{named} ran once and is taken to be deterministic; if it is not, run it again"
        yield Caution("one-seed", text, runs=tuple(alone))


# ties, power


@rule
def heavy_ties(evidence: Evidence) -> Iterator[Caution]:
    """Half of the topics or more score the same for both."""
    warnings = []
    for pair in evidence.best_first():
        if pair.n > 1 and HEAVY_TIES * pair.n <= pair.ties < pair.n:
            rest = pair.n - pair.ties
            only = "1 topic decides" if rest == 1 else f"{rest} topics decide"
            same = f"{pair.other} and {pair.one} score the same {pair.measure} on {pair.ties} of {pair.n} topics"
            warnings.append((pair, f"{same}: {only}"))
    yield from _some("heavy-ties", warnings, "equal on at least half of the topics")


@rule
def undetectable(evidence: Evidence) -> Iterator[Caution]:
    """A difference that the test does not settle and that so many topics could hardly have shown."""
    warnings = []
    level = _deciding_level(evidence)
    at = f" at {level:.2g}, the corrected level" if level < evidence.alpha else ""
    for pair in evidence.best_first():
        open_ = pair.p == pair.p and not evidence.significant(pair) and evidence.answer(pair) != "no"
        if not open_ or pair.torn or pair.n < 3 or not abs(pair.effect) > 0 or _asked_away(evidence, pair):
            continue
        least = _least_shown(evidence, pair, level)
        if abs(pair.difference) < least:
            text = (
                f"the difference of {pair.other} and {pair.one}, {amount(abs(pair.difference))} {pair.measure}, is smaller "
                f"than {amount(least)}, the least that {pair.n} topics of this spread show with {WANTED_POWER:.0%} power{at}"
            )
            warnings.append((pair, text))
    yield from _some("undetectable", warnings, "smaller than what so many topics can show with 80% power")


def _asked_away(evidence: Evidence, pair: Pair) -> bool:
    """Whether a one-sided question asks for the direction in which the difference does not lie."""
    direction = evidence.direction(evidence.lower_is_better(pair.measure))
    return (direction == "greater" and pair.difference < 0) or (direction == "less" and pair.difference > 0)


def _least_shown(evidence: Evidence, pair: Pair, level: float) -> float:
    """The smallest difference that the test which decides shows with the wanted power, at the level that decides.

    NaN where there is none to tell: tests of unpaired samples see another spread, those of groups of runs another
    error, Nemenyi's ranks no size; and where no p-value could be small enough, `coarse` says so.
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
    """In standard deviations. Tests of means are taken for the t-test, whose power they share; signs have their own.

    Where differences are normal and the topics that tie are 0.
    """
    alternative: Alternative = "two-sided" if two_sided else "greater"
    compares = any_test(test).compares
    if compares == "wins":
        design, n = Design("sign", sd=1.0, alpha=alpha, alternative=alternative), n - ties
    else:
        design = Design("t", sd=1.0, alpha=alpha, alternative=alternative)
        n = max(2, round(WILCOXON_EFFICIENCY * n)) if compares == "ranks" else n
    try:
        return detectable_difference(design, n, WANTED_POWER)
    except DataError:  # no difference is large enough
        return float("inf")

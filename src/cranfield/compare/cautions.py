"""What a statistician would warn of, one rule a function: each reads a comparison and says nothing, or what is wrong.

Rules never change a number. Where many pairs share a warning the first few are named and the rest are counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.compare.comparison import Caution
from cranfield.compare.groups import SEEDS
from cranfield.compare.outcomes import direction, round_up
from cranfield.compare.sentences import amount, p_value
from cranfield.stats.correction import CORRECTIONS
from cranfield.stats.test import Question
from cranfield.stats.testing import TESTS, TESTS_OF_MANY, Test, any_test

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cranfield.compare.comparison import Comparison, Pair
    from cranfield.kernels.table import Floats
    from cranfield.measures import Measure
    from cranfield.scores import Scores

    Rule = Callable[[Comparison], list[Caution]]


ENOUGH, BETTER = 50, 200  # topics: the least that a comparison should have, and what is better
HEAVY = 0.5  # the share of equal topics from which on ties are said to be heavy
GAP, LEAST = 0.1, 0.6  # judged@k: this much below the best judged run, or below this
POWER = 0.8
SEEDS_ENOUGH = 5  # runs of a group
NAMED = 3  # pairs that are named where more have the same warning
TRIED = 20  # pairs for which the deciding test is made again without one topic; beyond, the t-test stands in


def all_of(found: Comparison) -> list[Caution]:
    """Everything that the rules have to say."""
    return [caution for rule in RULES for caution in rule(found)]


def few_topics(found: Comparison) -> list[Caution]:
    """Fewer than fifty topics, and tests that need more of them than others."""
    sizes = [pair.n for pair in found.pairs if pair.n]
    if not sizes or min(sizes) >= ENOUGH:
        return []
    n = min(sizes)
    what = "1 topic is" if n == 1 else f"{n} topics are"
    text = (
        f"{what} few: fewer than {ENOUGH} seldom settle a comparison, and other topics may turn it round "
        f"({BETTER} or more are better)"
    )
    answer = [Caution("few-topics", text)]
    liberal = [name for name in found.tests if getattr(any_test(name), "too_sure", "") == "few pairs"]
    if liberal:
        alarms = "false alarms than alpha says on so few topics (6 to 13 % with 25 topics at 5 %)"
        answer.append(Caution("too-sure", f"{', '.join(liberal)}: more {alarms}"))
    return answer


def uncorrected(found: Comparison) -> list[Caution]:
    """Several p-values, and no correction that covers them all."""
    if found.family < 2:
        return []
    if found.test in TESTS_OF_MANY:
        if len(found.scores.measures) < 2:
            return []
        text = (
            f"the p-values allow for the pairs of each measure, but not for {len(found.scores.measures)} measures: "
            f"divide alpha by {len(found.scores.measures)}, or choose one measure beforehand"
        )
        return [Caution("uncorrected", text)]
    if CORRECTIONS[found.correction].corrects:
        return []
    chance = 1 - (1 - found.alpha) ** found.family
    text = (
        f"{found.family} p-values and no correction: were all systems equal, at least one would be {found.alpha:g} or "
        f"less with a chance of up to {chance:.0%} (correction holm keeps that at {found.alpha:.0%})"
    )
    return [Caution("uncorrected", text)]


def coarse(found: Comparison) -> list[Caution]:
    """p-values that cannot become small enough: too few resamples for so many pairs, or too few topics."""
    correction = CORRECTIONS[found.correction]
    if found.test in TESTS_OF_MANY or correction.controls == "false discovery rate":
        return []
    times = found.family if correction.corrects else 1
    for pair in found.pairs:
        outcome = pair.outcomes.get(pair.test)
        if outcome is None or pair.p != pair.p or found.significant(pair):
            continue
        test = any_test(pair.test)
        if not isinstance(test, Test):
            continue
        differing = pair.n - pair.ties
        least = test.smallest_p(outcome, differing, sides=2 if found.alternative == "two-sided" else 1)
        why = f"{differing} topics that differ" if outcome.exact else f"{outcome.resamples:,} resamples"
        if least * times > found.alpha and pair.p <= 2 * least:
            more = f"; ask for {round_up(2 * times / found.alpha):,} resamples" if not outcome.exact else ""
            after = f", which is {p_value(min(1.0, least * times)).removeprefix('= ')} after correction" * (times > 1)
            text = (
                f"{why} give no p-value below {least:.2g}{after}: nothing can be significant at {found.alpha:g}{more}"
            )
            return [Caution("coarse", text, pair.measure, (pair.one, pair.other))]
    return []


def missing_topics(found: Comparison) -> list[Caution]:
    """Topics that a run does not answer and that score 0, or that are left out."""
    answer = []
    scores = found.scores
    lack = _scored_zero(scores) if scores.conventions.missing == "zero" else {}
    if lack:
        most = max(lack, key=lambda run: lack[run])
        others = f" ({len(lack)} runs lack topics)" if len(lack) > 1 else ""
        text = (
            f"{most} does not answer {lack[most]} of the {len(scores.topics)} topics{others}; what is not answered scores 0, "
            "which is part of the difference (missing=skip compares on the topics that both answer)"
        )
        answer.append(Caution("missing-topics", text, runs=tuple(lack)))
    cut = [pair for pair in found.pairs if pair.left_out and pair.n]
    return answer + _some("left-out", cut, _left_out, "compared on some of the topics")


def _scored_zero(scores: Scores) -> dict[str, int]:
    """Of each run, how many topics it lacks that have a value all the same; some measures have none for them."""
    place = {topic: t for t, topic in enumerate(scores.topics)}
    lack = {}
    for run, topics in scores.absent.missing.items():
        values = scores.values[scores.runs.index(run)][:, [place[topic] for topic in topics if topic in place]]
        lack[run] = int((~np.isnan(values)).any(axis=0).sum())
    return {run: number for run, number in lack.items() if number}


def _left_out(pair: Pair) -> str:
    these = "1 topic has" if pair.left_out == 1 else f"{pair.left_out} topics have"
    total = pair.n + pair.left_out
    cut = f"{pair.other} and {pair.one} are compared on {pair.n} of {total} topics"
    return f"{cut}: {these} no {pair.measure} for one of the two"


def one_topic_decides(found: Comparison) -> list[Caution]:
    """A topic without which the difference changes its sign, or what the test says of it."""
    said: list[tuple[Pair, str]] = []
    tried = 0
    for pair in found.best_first():
        if pair.n < 3 or pair.p != pair.p or pair.better == "neither":
            continue
        topics, d = found.differences(pair)
        mean, t_p = _without_each(d)
        turned = np.flatnonzero(np.sign(mean) * np.sign(pair.difference) < 0)
        if len(turned):
            t = int(turned[np.argmax(np.abs(mean[turned]))])
            then = f"would have the other sign ({amount(pair.difference)} with it, {amount(float(mean[t]))} without)"
            said.append((pair, _without(pair, topics[t], then)))
            continue
        settled = found.significant(pair)
        t = int(np.argmax(t_p) if settled else np.argmin(t_p))
        if not _close(found, pair, float(t_p[t])) or (not settled and (tried >= TRIED or _at_the_floor(pair))):
            continue
        tried += 1
        p = _corrected(found, pair, _again(found, pair, t) if tried <= TRIED else float(t_p[t]))
        if (p <= found.alpha) != settled:
            verdict = "would not be significant" if settled else "would be significant"
            numbers = f"p {p_value(pair.corrected)} with it, {p_value(p).removeprefix('= ')} without, corrected"
            said.append((pair, _without(pair, topics[t], f"{verdict} ({numbers})")))
    texts = {id(pair): text for pair, text in said}
    return _some("one-topic", [pair for pair, _ in said], lambda pair: texts[id(pair)], "decided by one topic")


def _at_the_floor(pair: Pair) -> bool:
    """Whether the p-value is the smallest that so many resamples give: then it is the resamples that are few."""
    outcome = pair.outcomes.get(pair.test)
    return outcome is not None and not outcome.exact and pair.p * (outcome.resamples + 1) < 2


def _without(pair: Pair, topic: str, then: str) -> str:
    return f"without topic {topic!r} the difference of {pair.other} and {pair.one} by {pair.measure} {then}"


def _without_each(d: Floats) -> tuple[Floats, Floats]:
    """The mean of the others and the p-value of their t-test, without each value in turn."""
    from scipy.special import stdtr  # type: ignore[import-untyped, unused-ignore]

    n = len(d)
    mean = (d.sum() - d) / (n - 1)
    square = np.maximum((np.square(d).sum() - np.square(d)) - (n - 1) * np.square(mean), 0.0) / (n - 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = mean / np.sqrt(square / (n - 1))
    p: Floats = np.where(np.isnan(t), 1.0, 2 * stdtr(n - 2, -np.abs(t)))
    return mean, p


def _corrected(found: Comparison, pair: Pair, p: float) -> float:
    """What another p-value would be after correction: as many times larger as the pair's own, at most all of them.

    A smaller p-value than the pair's own is taken times the size of the family, since it would come earlier in order.
    """
    if found.test in TESTS_OF_MANY or not CORRECTIONS[found.correction].corrects:
        return p
    return min(1.0, p * (found.family if p < pair.p else pair.corrected / pair.p))


def _close(found: Comparison, pair: Pair, p: float) -> bool:
    """Whether the t-test finds it possible that a topic makes the difference."""
    corrected = _corrected(found, pair, p)
    near = corrected > found.alpha / 2 if found.significant(pair) else corrected < found.alpha * 2
    return near or pair.test == SEEDS


def _again(found: Comparison, pair: Pair, without: int) -> float:
    """The p-value of the deciding test without one topic; that of the t-test where the test needs more than two runs."""
    turn = direction(found.alternative, found.lower_is_better(pair.measure))
    if pair.test == SEEDS:
        return _again_over_seeds(found, pair, without, turn)
    a, b = found.values(pair.one, pair.measure), found.values(pair.other, pair.measure)
    there = ~(np.isnan(a) | np.isnan(b))
    a, b = np.delete(a[there], without), np.delete(b[there], without)
    test = any_test(pair.test)
    test = test if isinstance(test, Test) and test.paired else TESTS["t"]
    question = Question(turn, found.level, found.resamples, np.random.default_rng(found.seed))
    p = test.without_interval(a[None], b[None], question)[0].p
    return p if p == p else 1.0


def _again_over_seeds(found: Comparison, pair: Pair, without: int, turn: Any) -> float:
    from cranfield.stats.replicates import crossed_difference

    a, b = (found.table(name, pair.measure) for name in (pair.one, pair.other))
    there = ~(np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1))
    a, b = (np.delete(table[there], without, axis=0) for table in (a, b))
    p = crossed_difference(a, b, found.level, turn).p
    return p if p == p else 1.0


def few_seeds(found: Comparison) -> list[Caution]:
    """Groups whose few runs say little about their spread, and single runs that stand against a group."""
    answer = []
    small = [group for group in found.groups if 1 < len(group.runs) < SEEDS_ENOUGH]
    if small:
        said = ", ".join(f"{group.name} ({len(group.runs)})" for group in small[:5])
        text = f"few runs say little about the spread over seeds, and the interval is wide for it: {said}"
        answer.append(Caution("few-seeds", text, runs=tuple(run for group in small for run in group.runs)))
    alone = {
        name: None
        for pair in found.pairs
        if pair.test == SEEDS
        for name in (pair.one, pair.other)
        if len(found.runs_of(name)) == 1
    }
    if alone:
        text = f"{', '.join(list(alone)[:5])} ran once and is taken to be deterministic; if it is not, run it again"
        answer.append(Caution("one-seed", text, runs=tuple(alone)))
    return answer


def heavy_ties(found: Comparison) -> list[Caution]:
    """Half of the topics or more score the same for both."""
    tied = [pair for pair in found.best_first() if pair.n > 1 and HEAVY * pair.n <= pair.ties < pair.n]
    return _some("heavy-ties", tied, _tied, "equal on at least half of the topics")


def _tied(pair: Pair) -> str:
    rest = pair.n - pair.ties
    only = "1 topic decides" if rest == 1 else f"{rest} topics decide"
    return f"{pair.other} and {pair.one} score the same {pair.measure} on {pair.ties} of {pair.n} topics: {only}"


def low_judged(found: Comparison) -> list[Caution]:
    """A run of whose top ranks much less was judged than of the others', or little at all."""
    answer = []
    old = {run for name in found.baselines for run in found.runs_of(name)}
    for name, shares in found.judged.items():
        rivals = {run: share for run, share in shares.items() if run in old} or shares
        best = max(rivals, key=lambda run: rivals[run])
        new = {run: share for run, share in shares.items() if run not in old} or shares
        low = {run: share for run, share in new.items() if share < LEAST or share <= rivals[best] - GAP}
        if low:
            said = ", ".join(f"{run} {share:.0%}" for run, share in list(low.items())[:5])
            said += f" and {len(low) - 5} more" if len(low) > 5 else ""
            against = f" ({best}: {rivals[best]:.0%})" if best not in low else ""
            text = (
                f"{name} is low for {said}{against}: documents that nobody judged count as irrelevant, so "
                f"{'it' if len(low) == 1 else 'they'} may be better than the scores say"
            )
            answer.append(Caution("low-judged", text, runs=tuple(low)))
    return answer


def undetectable(found: Comparison) -> list[Caution]:
    """A difference that the test does not settle and that so many topics could hardly have shown."""
    small: list[Pair] = []
    least: dict[int, float] = {}
    for pair in found.best_first():
        if pair.p != pair.p or found.significant(pair) or pair.n < 3 or pair.test == SEEDS or not abs(pair.effect) > 0:
            continue
        spread = abs(pair.difference / pair.effect)
        detectable = spread * _detectable_effect(pair.n, found.alpha, found.alternative == "two-sided")
        if abs(pair.difference) < detectable:
            small.append(pair)
            least[id(pair)] = detectable

    def said(pair: Pair) -> str:
        return (
            f"the difference of {pair.other} and {pair.one}, {amount(abs(pair.difference))} {pair.measure}, is smaller "
            f"than {amount(least[id(pair)])}, the least that {pair.n} topics of this spread show with {POWER:.0%} power"
        )

    return _some("undetectable", small, said, "smaller than what so many topics can show with 80% power")


_effects: dict[tuple[int, float, bool], float] = {}


def _detectable_effect(n: int, alpha: float, two_sided: bool = True) -> float:
    """In standard deviations; it depends on the number of topics and on how many sides are tested."""
    from cranfield.stats.power import Design, detectable_difference

    asked = n, alpha, two_sided
    if asked not in _effects:
        design = Design("t", sd=1.0, alpha=alpha, alternative="two-sided" if two_sided else "greater")
        _effects[asked] = detectable_difference(design, n, POWER)
    return _effects[asked]


def _some(code: str, pairs: list[Pair], said: Callable[[Pair], str], what: str) -> list[Caution]:
    """A caution for each pair, or for the first few and one for the rest."""
    answer = [Caution(code, said(pair), pair.measure, (pair.one, pair.other)) for pair in pairs[:NAMED]]
    rest = len(pairs) - NAMED
    if rest > 0:
        answer.append(Caution(code, f"{rest:,} more {'pair is' if rest == 1 else 'pairs are'} {what}"))
    return answer


RULES: list[Rule] = [
    few_topics,
    uncorrected,
    coarse,
    missing_topics,
    one_topic_decides,
    few_seeds,
    heavy_ties,
    low_judged,
    undetectable,
]
"""In the order in which they are said."""


# judged@k


def depths(measures: Mapping[str, Measure]) -> list[int]:
    """The depths to look at for judgments: the measures' own, or 10."""
    return sorted({_depth(measure) for measure in measures.values()})


def _depth(measure: Measure) -> int:
    k: Any = measure.values.get("k") if measure.at == "k" else None
    return int(k) if k else 10


def judged_shares(scores: Scores) -> dict[str, dict[str, float]]:
    """Of each run, the mean share of its first k ranks that was judged, for each depth; empty where nobody knows.

    Taken from the scores where they hold it; else the runs are looked at again, if they can be.
    """
    from cranfield.measures import measure

    shares: dict[str, dict[str, float]] = {}
    wanted = {f"Judged@{k}": measure(f"Judged@{k}") for k in depths(scores.measures)}
    for name in [each for each in wanted if each in scores.measures]:
        column = scores.values[:, list(scores.measures).index(name)]
        shares[name] = {run: _mean(column[r][scores.retrieved[r] > 0]) for r, run in enumerate(scores.runs)}
    lacking = {name: known for name, known in wanted.items() if name not in shares}
    if not lacking or scores._origin is None:
        return shares
    evaluator, sources = scores._origin
    for run, (source, place) in sources.items():
        hits = evaluator.hits(evaluator.open(source)[place])
        there = evaluator.wanted & (hits.retrieved > 0)
        for name, known in lacking.items():
            shares.setdefault(name, {})[run] = _mean(known(hits)[there])
    return shares


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0

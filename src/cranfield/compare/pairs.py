"""`compare`: every pair of systems by every measure, on the topics for which both have a value.

A pair's p-value depends on its own differences, the test and the seed, and on nothing else: it is the same alone and
among six thousand. Pairs over the same topics are computed together, because the sign-flip test of many pairs is one
product of matrices.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cranfield.columns import listed
from cranfield.compare import cautions
from cranfield.compare.comparison import Comparison, Pair
from cranfield.compare.groups import Group, contenders, grouped, over_seeds
from cranfield.compare.margins import equivalence
from cranfield.compare.outcomes import DRAWN, Asked, asked, enough_resamples, intervals, outcomes
from cranfield.errors import ConventionError, DataError
from cranfield.evaluate import Evaluator
from cranfield.formats.streams import run_name
from cranfield.measures.measure import measure, micro_average, takes_topics_alone
from cranfield.scores import Scores
from cranfield.stats.testing import TESTS, TESTS_OF_MANY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cranfield.kernels.table import Floats
    from cranfield.measures import Measure

    Names = list[tuple[str, str]]


NAN = float("nan")
USUAL = "nDCG@10 AP RR@10"


def compare(
    scores: Any,
    runs: Any = None,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    baselines: str | Iterable[str] | None = None,
    tests: str | Iterable[str] = ("randomisation",),
    correction: str = "holm",
    alpha: float = 0.05,
    level: float = 0.95,
    interval: str = "t",
    resamples: int | None = None,
    seed: int = 0,
    alternative: str = "two-sided",
    rope: float | None = None,
    margin: float | None = None,
    groups: Any = None,
    **conventions: Any,
) -> Comparison:
    """Compare systems: differences with intervals and effect sizes, p-values and their correction, and what to beware of.

    `scores` are Scores, or judgments with which `runs` are scored first by `measures` (then `conventions` and all that
    `Evaluator` takes may follow). Without `baselines` every pair is compared, else each other run with each baseline.
    The first of `tests` decides; `all` makes every test there is. `correction` covers all pairs and measures.
    `resamples` are 100,000, or as many as a p-value needs to be significant after correction.
    `alternative` is two-sided, greater, less, better or worse, of the other run against the baseline. `rope` is the
    largest difference that does not matter, for the Bayesian test; `margin` the same for equivalence and
    non-inferiority. `groups` are patterns (`"dense.seed*"`, `"dense=dense.seed*"`) or a mapping of names to patterns
    or runs: several runs of one system, compared over topics and seeds.

    >>> scores = Scores.from_table([[0.1, 0.3], [0.2, 0.5], [0.4, 0.5], [0.3, 0.4]], ["bm25", "dense"], measure="AP")
    >>> found = compare(scores)
    >>> found.pairs[0].p  # 2 of the 16 ways to choose signs
    0.125
    >>> print(found.sentences()[0])
    dense is ahead of bm25 by 0.175 AP [0.023, 0.327] on 4 topics, 4 up, 0 equal, 0 down, but the data do not settle it; \
randomisation p = 0.12
    """
    known, judged, micro = _scored(scores, runs, measures, conventions)
    _refuse_infinite(known)
    members = grouped(known.runs, groups)
    names = contenders(known.runs, members)
    if len(names) < 2:
        raise DataError(f"expected two systems or more to compare, found {len(names)}: {listed(names)}")
    chosen = _baselines(baselines, names, members)
    wanted = _wanted(names, chosen)
    given = asked(
        tests,
        correction,
        len(names),
        alpha=alpha,
        level=level,
        interval=interval,
        resamples=DRAWN if resamples is None else resamples,
        seed=seed,
        alternative=alternative,
        rope=rope,
        margin=margin,
    )
    alone = given.tests[0] if len(given.tests) == 1 else ""  # with other tests beside it that would take too long
    if resamples is None and alone in TESTS and TESTS[alone].shares_draws:
        given = replace(given, resamples=enough_resamples(len(wanted) * len(known.measures), alpha, given.correction))
    _refuse_strangers(known, members, wanted)
    found = Comparison(
        scores=known,
        pairs=[],
        tests=given.shown,
        correction=given.correction,
        alpha=alpha,
        level=level,
        interval=interval,
        resamples=given.resamples,
        seed=seed,
        alternative=alternative,
        baselines=chosen,
        groups=members,
        rope=rope,
        margin=margin,
    )
    pairs: list[Pair] = []
    for name in known.measures:
        pairs += _by_measure(found, name, names, wanted, given)
    found.pairs, found.family = _corrected(pairs, given)
    found.judged, found.micro = judged, micro
    found.cautions = cautions.all_of(found)
    return found


def _scored(
    scores: Any, runs: Any, measures: Any, conventions: Mapping[str, Any]
) -> tuple[Scores, dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """The scores, or the runs scored now; how much of the runs was judged; and the micro averages of ratios."""
    if isinstance(scores, Scores):
        if runs is not None or conventions:
            raise ConventionError("these are scores already: runs and conventions were chosen when they were computed")
        known = scores if measures is None else scores.select(measures=_list(measures))
        return known, cautions.judged_shares(known), {}
    if runs is None:
        raise DataError("expected Scores, or judgments and runs; found no runs")
    options = {name: value for name, value in conventions.items() if name not in ("progress", "aggregate")}
    evaluator = Evaluator(scores, measures or USUAL, aggregate=conventions.get("aggregate"), **options)
    own = list(evaluator.measures)
    for k in cautions.depths(evaluator.measures):
        if f"Judged@{k}" not in own:
            evaluator.measures[f"Judged@{k}"] = judged = measure(f"Judged@{k}")
            evaluator.never_averaged |= {judged}  # the same whatever becomes of ties, but for those that k divides
    ratios = {name: micro for name in own if (micro := micro_average(evaluator.measures[name])) is not None}
    evaluator.measures |= {f"micro {name}": micro for name, micro in ratios.items()}
    everything = evaluator.evaluate(runs, conventions.get("progress"))
    sums = {name: {run: everything.mean(f"micro {name}", run) for run in everything.runs} for name in ratios}
    return everything.select(measures=own), cautions.judged_shares(everything), sums


def _list(measures: Any) -> list[Any]:
    from cranfield.measures import Measure
    from cranfield.measures.measure import split

    items = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    return [part for item in items for part in (split(item) if isinstance(item, str) else [item])]


def _baselines(given: str | Iterable[str] | None, names: list[str], groups: list[Group]) -> list[str]:
    """The baselines by their names; a file's name, or a run of a group, is understood."""
    if given is None:
        return []
    owner = {run: group.name for group in groups for run in group.runs}
    answer = []
    for name in [given] if isinstance(given, str) else given:
        found = next((each for each in (name, run_name(name)) if each in names or each in owner), None)
        if found is None:
            raise DataError(f"no run {name!r} to be the baseline; there are {listed(names, most=10)}")
        answer.append(owner.get(found, found))
    return list(dict.fromkeys(answer))


def _wanted(names: list[str], baselines: list[str]) -> Names:
    """Which two to compare, the baseline first."""
    others = [name for name in names if name not in baselines]
    if not baselines or not others:
        return list(combinations(names, 2))
    return [(one, other) for one in baselines for other in others]


def _refuse_infinite(scores: Scores) -> None:
    """Stop at a score without end: it has no mean, and two of them no difference."""
    found = np.argwhere(np.isinf(scores.values))
    if len(found):
        r, m, t = found[0].tolist()
        what = f"{list(scores.measures)[m]} of {scores.runs[r]} on topic {scores.topics[t]!r}"
        raise DataError(
            f"{what}: expected a finite number, found {scores.values[r, m, t]:g}; leave the topic or the run out"
        )


def _refuse_strangers(scores: Scores, groups: list[Group], wanted: Names) -> None:
    """Stop where a run answers no topic at all, or two runs none in common: they are runs for different topics."""
    members = {group.name: group.runs for group in groups}
    place = {run: r for r, run in enumerate(scores.runs)}
    answered = scores.retrieved > 0
    silent = [run for run in scores.runs if not answered[place[run]].any()]
    if silent and not scores.elsewhere:
        which = f"answers none of the {len(scores.topics)} topics ({listed(scores.topics, most=3)})"
        raise DataError(
            f"{silent[0]} {which}; leave it out, or give the run for these topics (are they numbered alike?)"
        )
    there = {
        name: np.logical_or.reduce(answered[[place[run] for run in members.get(name, (name,))]])
        for pair in wanted
        for name in pair
    }
    for one, other in wanted:
        if there[one].any() and there[other].any() and not (there[one] & there[other]).any():
            raise DataError(
                f"{one} and {other} answer no topic in common ({there[one].sum()} and {there[other].sum()} topics); "
                "are they runs for the same topics?"
            )


# one measure


def _by_measure(found: Comparison, measure: str, names: list[str], wanted: Names, given: Asked) -> list[Pair]:
    values = np.stack([found.values(name, measure) for name in names])
    place = {name: k for k, name in enumerate(names)}
    why = _no_mean(found.scores, measure)
    lower = found.scores.measures[measure].lower_is_better
    sizes = {group.name: len(group.runs) for group in found.groups}
    answer: dict[tuple[str, str], Pair] = {}
    for there, block in _alike(values, place, wanted).items():
        kept = np.frombuffer(there, np.bool_)
        a, b = (values[[place[pair[side]] for pair in block]][:, kept] for side in (0, 1))
        plain = [] if why or not kept.any() else [k for k, pair in enumerate(block) if not _seeded(pair, sizes)]
        tested: dict[int, Any] = dict(zip(plain, outcomes(a[plain], b[plain], given, lower), strict=True))
        described = _described(measure, block, a, b, given, lower, values.shape[1])
        for k, pair in enumerate(described):
            answer[block[k]] = _decided(pair, tested.get(k, {}), given) if k in tested else pair
    pairs = [answer[pair] for pair in wanted]
    if why:
        return [_without_mean(found, pair, why) for pair in pairs]
    pairs = [over_seeds(found, pair, given) if _seeded((pair.one, pair.other), sizes) else pair for pair in pairs]
    if given.many:
        pairs = _with_many(found, measure, values, names, pairs, given)
    return [replace(pair, equivalence=equivalence(found, pair, given)) for pair in pairs] if given.margin else pairs


def _seeded(pair: tuple[str, str], sizes: Mapping[str, int]) -> bool:
    return any(sizes.get(name, 1) > 1 for name in pair)


def _no_mean(scores: Scores, measure: str) -> str:
    """Why a measure's number is no mean over topics, if it is not."""
    known = scores.measures[measure]
    if measure in scores.pooled and known.aggregate == "mean":
        return (
            f"{measure} adds up all topics before it divides (a micro average), so no topic has a difference of its own"
        )
    if not takes_topics_alone(known):
        return f"{measure} makes one number of all topics in its own way, so no topic has a difference of its own"
    if known.aggregate not in ("mean", "sum"):
        return f"{measure} is no mean over topics; compare the measure inside for a test of its mean"
    return ""


def _alike(values: Floats, place: Mapping[str, int], wanted: Names) -> dict[bytes, Names]:
    """The pairs by the topics that both have."""
    there = ~np.isnan(values)
    if there.all():
        return {there[0].tobytes(): wanted}
    blocks: dict[bytes, Names] = defaultdict(list)
    for one, other in wanted:
        blocks[(there[place[one]] & there[place[other]]).tobytes()].append((one, other))
    return dict(blocks)


def _described(
    measure: str, block: Names, a: Floats, b: Floats, given: Asked, lower_is_better: bool, topics: int
) -> list[Pair]:
    """What can be said of pairs without a test: means, differences, intervals, effects, wins."""
    from cranfield.stats.effect import d_z_of_rows
    from cranfield.stats.ties import differences

    n = a.shape[1]
    if not n:
        return [_empty(measure, one, other, topics) for one, other in block]
    d = differences(a, b)
    means = a.mean(axis=1), b.mean(axis=1), d.mean(axis=1)
    low, high = intervals(a, b, given)
    upwards = -d if lower_is_better else d
    wins, losses = (upwards > 0).sum(axis=1), (upwards < 0).sum(axis=1)
    effect = d_z_of_rows(a, b)
    return [
        Pair(
            measure=measure,
            one=one,
            other=other,
            n=n,
            mean_one=float(means[0][k]),
            mean_other=float(means[1][k]),
            difference=float(means[2][k]),
            low=float(low[k]),
            high=float(high[k]),
            effect=float(effect[k]),
            wins=int(wins[k]),
            ties=n - int(wins[k]) - int(losses[k]),
            losses=int(losses[k]),
            p=NAN,
            corrected=NAN,
            better=_better(float(means[2][k]), d[k], lower_is_better),
            left_out=topics - n,
        )
        for k, (one, other) in enumerate(block)
    ]


def _better(difference: float, d: Floats, lower_is_better: bool) -> Literal["one", "other", "neither"]:
    if abs(difference) <= 1e-12 * float(np.abs(d).max()):
        return "neither"
    return "other" if (difference > 0) != lower_is_better else "one"


def _empty(measure: str, one: str, other: str, topics: int) -> Pair:
    reason = "no topic has a value for both"
    return Pair(measure, one, other, 0, NAN, NAN, NAN, NAN, NAN, NAN, 0, 0, 0, NAN, NAN, {}, reason, left_out=topics)


def _decided(pair: Pair, tested: Mapping[str, Any], given: Asked) -> Pair:
    """The pair with its tests; the p-value of the one that decides, or the reason why there is none."""
    pair = replace(pair, outcomes=tested, test=given.deciding)
    if pair.n == 1:
        return replace(pair, reason="one topic only; a test needs two or more")
    if pair.ties == pair.n:
        return replace(pair, reason="all differences are 0")
    if given.deciding not in tested:
        return pair
    outcome = tested[given.deciding]
    reason = outcome.reason if outcome.p != outcome.p else ""
    return replace(pair, p=outcome.p, reason=reason.replace("pair", "topic"))


def _without_mean(found: Comparison, pair: Pair, why: str) -> Pair:
    """A pair by a measure that is no mean: its two numbers, and nothing that a test would need."""
    means = [
        float(np.mean([found.scores.mean(pair.measure, run) for run in found.runs_of(name)]))
        for name in (pair.one, pair.other)
    ]
    difference = means[1] - means[0]
    lower = found.scores.measures[pair.measure].lower_is_better
    better = _better(difference, np.array([difference]), lower) if difference == difference else "neither"
    pair = replace(pair, mean_one=means[0], mean_other=means[1], difference=difference, better=better, reason=why)
    return replace(pair, low=NAN, high=NAN, effect=NAN, p=NAN, corrected=NAN)


# seeds, many systems, equivalence, correction


def _with_many(
    found: Comparison, measure: str, values: Floats, names: list[str], pairs: list[Pair], given: Asked
) -> list[Pair]:
    """The pairs with the tests of all systems at once, made on the topics that every system has."""
    from cranfield.stats.test import Outcome

    table = values[:, ~np.isnan(values).any(axis=0)].T
    if len(table) < 2:
        found.remarks.append(f"{measure}: {len(table)} topics have a value for every system; tests of all need two")
        reason = "fewer than two topics have a value for every system"
        return [
            replace(pair, reason=pair.reason or reason) if given.deciding in TESTS_OF_MANY else pair for pair in pairs
        ]
    if len(table) < values.shape[1]:
        left = values.shape[1] - len(table)
        found.remarks.append(f"{measure}: tests of all systems leave out {left} topics that one of them lacks")
    place = {name: k for k, name in enumerate(names)}
    results = {
        name: TESTS_OF_MANY[name](
            table, level=given.level, resamples=given.resamples, rng=np.random.default_rng(given.seed)
        )
        for name in given.many
    }
    found.many[measure] = results
    answer = []
    for pair in pairs:
        at = place[pair.one], place[pair.other]
        tested = dict(pair.outcomes)
        for name, one in results.items():
            if TESTS_OF_MANY[name].pairs:
                p = float(one.p[at])
                interval = (NAN, NAN) if TESTS_OF_MANY[name].by_order else (float(one.low[at]), float(one.high[at]))
                tested[name] = Outcome(
                    name, p, float(one.statistic[at]), *interval, one.exact, one.resamples, one.reason
                )
        decided = given.deciding in TESTS_OF_MANY
        answer.append(_decided(pair, tested, given) if decided else replace(pair, outcomes=tested))
    return answer


def _corrected(pairs: list[Pair], given: Asked) -> tuple[list[Pair], int]:
    """The pairs with corrected p-values, and how many p-values the correction covers."""
    from cranfield.stats.correction import correct

    if given.deciding in TESTS_OF_MANY:
        return [replace(pair, corrected=pair.p) for pair in pairs], sum(pair.p == pair.p for pair in pairs)
    p = np.array([pair.p for pair in pairs])
    corrected = correct(p, given.correction)
    return [replace(pair, corrected=float(c)) for pair, c in zip(pairs, corrected, strict=True)], int((p == p).sum())

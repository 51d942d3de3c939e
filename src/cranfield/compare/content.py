"""A comparison for people. On a screen: the verdict, its table, what each test says, bars, and how it was made if that is
not as usual. On a page: table and sentences first.

What is significant is marked with a sign and not by colour alone; on a page it is said in words, for those who hear it.
Many pairs are cut to the most interesting ones, best systems first, and the text says how many there are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cranfield.answer import Cell, Layout, Lines, Part, Table
from cranfield.columns import cut, in_line, p_value
from cranfield.compare.bars import drawn
from cranfield.compare.evidence import QUESTIONS
from cranfield.compare.pair import Pair, disagreement
from cranfield.compare.systems import SEEDS
from cranfield.compare.verdict import verdict
from cranfield.scores import conventions_in_words
from cranfield.stats.correction import CORRECTIONS
from cranfield.stats.testing import TESTS_OF_MANY, any_test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.compare.efficiency import Efficiency
    from cranfield.compare.evidence import Evidence
    from cranfield.compare.label_noise import LabelNoise


MOST_ROWS, MOST_SENTENCES = 40, 12  # unless all are asked for
ON_A_SCREEN = 18  # rows
SHORT_HEAD = 12  # cells of a run's name above its means
DETAILED = 3  # pairs for which every test has a line of its own
DRAWN_ON_A_PAGE = 2  # pairs
ALOUD = {"+": "better", "-": "worse", "?": "no p-value", "": "not settled", "~": "mean and test point apart"}
ALOUD |= {"c": "not settled after correction", "i": "not settled, interval and test differ"}
ALOUD["h"] = ALOUD["i"]
WHERE_THERE = {  # what else a mark may mean
    "~": "the mean and the test point apart",
    "c": "not settled after correction (the interval is that of one pair)",
    "i": "not settled: the interval leaves out 0, the test does not",
    "h": "not settled: the test rejects, the interval holds 0",
    "?": "no p-value",
}


def content(
    evidence: Evidence, efficiency: Efficiency | None, how: Layout, label_noise: LabelNoise | None = None
) -> Iterator[Part]:
    """All of it; a page and a wiki get less beside the table and the sentences."""
    write = _screen if how.medium == "text" else _page
    return write(evidence, efficiency, how, label_noise)


def _page(
    evidence: Evidence, efficiency: Efficiency | None, how: Layout, label_noise: LabelNoise | None
) -> Iterator[Part]:
    pairs = shown_pairs(evidence, how.every)
    spoken = pairs if how.every else pairs[:MOST_SENTENCES]
    yield pair_table(evidence, pairs, how)
    if how.medium != "html":
        yield Lines(_legend(evidence, pairs))
    sentences = [evidence.sentence(pair) for pair in spoken]
    yield Lines([*sentences, *_margins(spoken)])
    if label_noise is not None:
        yield from label_noise.content(how)
    yield from _drawings(evidence, pairs, how)
    if efficiency is not None and how.medium != "html":
        yield efficiency.table(how)
        yield Lines(efficiency.notes())
    yield Lines(made_by(evidence), dim=True)


def _screen(
    evidence: Evidence, efficiency: Efficiency | None, how: Layout, label_noise: LabelNoise | None
) -> Iterator[Part]:
    """The verdict, and what supports it; what limits it is said behind."""
    pairs = shown_pairs(evidence, how.every, ON_A_SCREEN)
    spoken = pairs if how.every else pairs[:MOST_SENTENCES]
    yield Lines(verdict(evidence))
    if _single(evidence):
        yield table_of_two(evidence, how)
    else:
        yield pair_table(evidence, pairs, how)
        yield Lines(_legend(evidence, pairs))
    yield from _seeds(evidence, how)
    yield Lines(_all_systems(evidence))
    yield Lines(_margins(spoken))
    if len(evidence.tests) > 1:
        yield from _tests(evidence, spoken, how)
    if label_noise is not None:
        yield from label_noise.content(how)
    yield from _drawings(evidence, pairs, how)
    if efficiency is not None:
        yield efficiency.table(how)
    usual = evidence.usual and not evidence.groups, evidence.scores.usual
    told = [line for line, as_usual in zip(made_by(evidence), usual, strict=True) if how.told or not as_usual]
    yield Lines(told, dim=True)


def _single(evidence: Evidence) -> bool:
    """Whether there are just two systems, and one row a measure."""
    return len({(pair.one, pair.other) for pair in evidence.pairs}) == 1


def _margins(pairs: list[Pair]) -> list[str]:
    return [text for pair in pairs if (text := pair.margin_sentence())]


# the pairs


def shown_pairs(evidence: Evidence, every: bool, most: int = MOST_ROWS) -> list[Pair]:
    """All pairs, or where they are too many the first of each measure when the best systems come first."""
    if every or len(evidence.pairs) <= most:
        return evidence.pairs
    measures, ordered = evidence.scores.measures, evidence.best_first()
    share = max(1, most // len(measures))
    return [pair for measure in measures for pair in [each for each in ordered if each.measure == measure][:share]]


def one_way(evidence: Evidence, pairs: list[Pair]) -> list[Pair]:
    """The pairs, turned so that `other` is always the one with the better mean by the first measure.

    Against a baseline, and where one side was asked for, they stay as they are.
    """
    first = next(iter(evidence.scores.measures))
    if evidence.baselines or evidence.one_sided or _single(evidence):
        return pairs
    turn = -1.0 if evidence.lower_is_better(first) else 1.0
    mean = {name: turn * evidence.mean(name, first) for name in evidence.contenders()}
    return [pair.turned() if mean[pair.one] > mean[pair.other] else pair for pair in pairs]


def table_of_two(evidence: Evidence, how: Layout) -> Table:
    """A row a measure: the means of both systems, and their difference."""
    pairs, percent, corrected = evidence.pairs, f"{evidence.level * 100:g}%", evidence.named_correction
    heads = [pairs[0].one, pairs[0].other]
    if how.limit is not None:
        heads = [cut(in_line(name), SHORT_HEAD) for name in heads]
    head = ["measure", *heads, "diff", f"{percent} low", f"{percent} high", "d_z", "W/T/L", "p"]
    rows = []
    for pair in pairs:
        cells = [how.cell(pair.mean_one), how.cell(pair.mean_other)]
        cells += [how.cell(end, signed=True) for end in (pair.difference, *_bounds(pair))]
        cells.append(_effect(pair, how._replace(digits=2)) if how.verbose else _bare_effect(pair, how))
        cells.append(Cell(f"{pair.wins}/{pair.ties}/{pair.losses}", float(pair.wins)))
        cells += [Cell(how.p_value(p), p) for p in ([pair.p, pair.corrected] if corrected else [pair.p])]
        rows.append([Cell(pair.measure), *cells])
    head += [corrected] if corrected else []
    title = f"Differences, {pairs[0].other} less {pairs[0].one}"
    return Table(head, rows, title=title, spare=() if how.verbose else (head.index("d_z"),))


def _bounds(found: Any) -> list[float]:
    """The ends of the interval of a pair or of a test's outcome; of one side, or with few topics, an end may have no bound."""
    return [math.nan if abs(end) == math.inf else end for end in (found.low, found.high)]


def _bare_effect(pair: Pair, how: Layout) -> Cell:
    return how._replace(digits=2).cell(pair.effect, signed=True)


def pair_table(evidence: Evidence, pairs: list[Pair], how: Layout) -> Table:
    """A row a pair."""
    percent = f"{evidence.level * 100:g}%"
    corrected, aloud = evidence.named_correction, how.medium == "html"
    difference = "difference" if how.told else "diff"
    head = ["measure", "one", "other", "mean one", "mean other", difference, f"{percent} low", f"{percent} high"]
    asked = f"{evidence.alternative}?" if evidence.one_sided else ""
    weighed = bool(evidence.weighed_by)  # then there is no d_z
    head += [
        "unweighted" if weighed else "d_z",
        "W/T/L",
        "p",
        *([corrected] if corrected else []),
        f"other is {asked}".strip() if aloud else asked,
    ]
    rows = []
    for pair in one_way(evidence, pairs):
        cells = [Cell(pair.measure), Cell(pair.one), Cell(pair.other)]
        cells += [how.cell(pair.mean_one), how.cell(pair.mean_other)]
        cells += [how.cell(each, signed=True) for each in (pair.difference, *_bounds(pair))]
        if weighed:
            alike = math.nan if pair.unweighted is None else pair.unweighted.difference
            cells.append(how.cell(alike, signed=True))
        else:
            cells.append(_effect(pair, how._replace(digits=2)) if how.told else _bare_effect(pair, how))
        cells.append(Cell(f"{pair.wins}/{pair.ties}/{pair.losses}", float(pair.wins)))
        cells += [Cell(how.p_value(p), p) for p in ([pair.p, pair.corrected] if corrected else [pair.p])]
        sign = mark(evidence, pair)
        rows.append([*cells, Cell(ALOUD.get(sign, sign) if aloud else sign, best=sign == "+")])
    shown = f" {len(pairs)} of {len(evidence.pairs):,} pairs are shown." if len(pairs) < len(evidence.pairs) else ""
    by = f", by {evidence.weighed_by}" if weighed else ""
    title = f"Differences, other less one{by}.{shown}"
    return Table(head, rows, names=3, title=title, spare=() if how.told else _spare(head, bool(corrected)))


def _spare(head: list[str], corrected: bool) -> tuple[int, ...]:
    """The columns that a narrow screen does without, the first to go first."""
    names = ("d_z", "mean one", "mean other", "W/T/L", *["p"] * corrected)
    return tuple(head.index(name) for name in names if name in head)


def _effect(pair: Pair, how: Layout) -> Cell:
    """d_z with its interval; an end without bound is a dash."""
    ends = ["" if abs(end) == math.inf else how.number(end, signed=True) for end in (pair.effect_low, pair.effect_high)]
    around = "" if pair.effect_low != pair.effect_low else f" [{', '.join(end or how.undefined for end in ends)}]"
    return Cell(f"{how.number(pair.effect, signed=True)}{around}", pair.effect)


def mark(evidence: Evidence, pair: Pair) -> str:
    """+ where other is significantly better, - where it is worse, ? where no test could be made, else why not, or nothing.

    A one-sided question is answered in its place.
    """
    if pair.corrected != pair.corrected:
        return "?"
    if evidence.torn(pair):
        return "~"
    if evidence.one_sided:
        return evidence.answer(pair)
    if not evidence.significant(pair):
        return {"correction": "c", "interval": "i", "held": "h"}.get(evidence.doubt(pair), "")
    return {"other": "+", "one": "-", "neither": ""}[pair.better]


def _legend(evidence: Evidence, pairs: list[Pair]) -> list[str]:
    """What the marks mean, and how many of many pairs there are."""
    legend = f"+ other is significantly better, - significantly worse, at alpha {evidence.alpha:g}"
    if evidence.one_sided:
        question = f"is other {QUESTIONS[evidence.alternative]}?"
        legend = f"{question} yes: p <= {evidence.alpha:g}; no: that of the opposite question is; else not shown"
    used = {mark(evidence, pair) for pair in pairs}
    legend += "".join(f"; {sign} {meaning}" for sign, meaning in WHERE_THERE.items() if sign in used)
    if len(pairs) == len(evidence.pairs):
        return [legend]
    settled = sum(evidence.significant(pair) for pair in evidence.pairs)
    first = "other runs with the highest means" if evidence.baselines else "systems with the highest means"
    cut = (
        f"{len(pairs)} of {len(evidence.pairs):,} pairs are shown, the {first} first; "
        f"{settled:,} of all differ significantly (--all-pairs shows all, and so do json, csv and tsv)"
    )
    return [legend, cut]


def _drawings(evidence: Evidence, pairs: list[Pair], how: Layout) -> Iterator[Part]:
    """Of a single pair, or of those that were asked for; a page has the first few."""
    if how.medium == "html":
        pairs = pairs[:DRAWN_ON_A_PAGE]
    elif not (how.bars or (how.bars is None and _single(evidence))):
        return
    elif not how.told:
        first = next(iter(evidence.scores.measures))
        pairs = [pair for pair in pairs if pair.measure == first]
    yield from filter(None, (drawn(evidence, pair, how) for pair in pairs))


# groups, and all systems at once


def _seeds(evidence: Evidence, how: Layout) -> Iterator[Part]:
    """A row a group and measure: how its runs spread."""
    rows = []
    for group, measure, means, mean, deviation in evidence.spreads():
        numbers = map(how.number, (mean, deviation, float(means.min()), float(means.max())))
        rows.append([group.name, measure, str(len(group.runs)), *numbers])
    if rows:
        yield Table(["group", "measure", "runs", "mean", "sd over runs", "lowest", "highest"], rows, names=2)


def _all_systems(evidence: Evidence) -> list[str]:
    """What tests of all systems at once say of them together."""
    lines = []
    for measure, results in evidence.many.items():
        for name, result in results.items():
            test, (statistic, p) = TESTS_OF_MANY[name], result.overall
            if result.reason:
                what = f"no p-value: {in_search_words(result.reason)}"
            elif test.pairs:
                what = f"{statistic}, smallest p of a pair {p_value(p)}"
            else:
                what = f"{statistic}, p {p_value(p)} (are all systems equal?)"
            lines.append(f"{test.short}, {measure}: {what}")
    return lines


def in_search_words(reason: str) -> str:
    """A reason that speaks of blocks and groups, in the words of this room."""
    return reason.replace("block", "topic").replace("group", "system")


# what every test says


def _tests(evidence: Evidence, pairs: list[Pair], how: Layout) -> Iterator[Part]:
    """What every test says of a few pairs, or just the p-values of many; and where they disagree."""
    tested = [pair for pair in pairs if pair.outcomes]
    if len(tested) <= DETAILED:
        yield from (_test_table(evidence, pair, how) for pair in tested)
    else:
        names = list(dict.fromkeys(name for pair in tested for name in pair.outcomes))
        rows = []
        for pair in tested:
            lower, outcomes = evidence.lower_is_better(pair.measure), [pair.outcomes.get(name) for name in names]
            chances = ["" if one is None else _chance(one, lower, how) for one in outcomes]
            rows.append([pair.measure, pair.one, pair.other, *chances])
        yield Table(["p-values", "", "", *(any_test(name).short for name in names)], rows, names=3)
    yield Lines([text for pair in tested if (text := disagreement(pair, evidence.alpha))])


def _test_table(evidence: Evidence, pair: Pair, how: Layout) -> Table:
    percent = f"{evidence.level * 100:g}%"
    rows = []
    for name, outcome in pair.outcomes.items():
        interval = [how.number(end, signed=True) for end in _bounds(outcome)]
        beside = _beside(outcome, evidence.lower_is_better(pair.measure))
        rows.append([any_test(name).short, how.p_value(outcome.p), _p_from(outcome, how), *interval, beside])
    caption = f"{pair.other} against {pair.one} by {pair.measure}, before any correction:"
    head = ["test", "p", "how", f"{percent} low", f"{percent} high", ""]
    return Table(head, rows, caption=caption, tail=True)


def _p_from(outcome: Any, how: Layout) -> str:
    """Where a p-value comes from: all cases counted, some drawn, or a distribution that is assumed."""
    if outcome.p != outcome.p:
        return how.undefined
    if any_test(outcome.test).p_from == "formula":
        return "formula"
    return "exact" if outcome.exact else f"{outcome.resamples:,} drawn" if outcome.resamples else "approximate"


def _better_and_worse(outcome: Any, lower_is_better: bool) -> tuple[float, float] | None:
    """The probabilities of a Bayesian test that the other run is better, and worse."""
    if "P(better)" not in outcome.extra:
        return None
    higher, lower = outcome.extra["P(better)"], outcome.extra["P(worse)"]
    return (lower, higher) if lower_is_better else (higher, lower)


def _chance(outcome: Any, lower_is_better: bool, how: Layout) -> str:
    """A p-value, or the probability of being better where there is none."""
    chances = _better_and_worse(outcome, lower_is_better)
    return how.p_value(outcome.p) if chances is None else f"P(better) {chances[0]:.3f}"


def _beside(outcome: Any, lower_is_better: bool) -> str:
    chances = _better_and_worse(outcome, lower_is_better)
    if chances is not None:
        better, worse = chances
        return f"P(better) {better:.3f}, P(within rope) {outcome.extra['P(rope)']:.3f}, P(worse) {worse:.3f}"
    if "p over topics only" in outcome.extra:
        return f"over topics only, as if the seeds were fixed: p {p_value(outcome.extra['p over topics only'])}"
    return in_search_words(outcome.reason) if outcome.p != outcome.p else ""


# how it was made


def made_by(evidence: Evidence) -> list[str]:
    """How the numbers were made: test, correction, interval, seed; and under which conventions."""
    over_seeds = [pair.test == SEEDS for pair in evidence.pairs]
    facts = [] if all(over_seeds) else [f"test: {_deciding_test(evidence)}"]
    if any(over_seeds):
        facts.append(
            "groups of runs: crossed t over topics and seeds (variance of both, Satterthwaite's degrees of freedom), "
            "whatever test was asked for"
        )
    if evidence.decided_at_once:
        facts.append("correction: none beside the test's own, which covers all pairs of a measure")
    elif evidence.family < 2:
        facts.append(f"correction: none, there is {'one p-value' if evidence.family else 'no p-value'}")
    else:
        facts.append(f"correction: {evidence.named_correction or 'none'} over {evidence.family:,} p-values")
    facts.append(f"interval: {_intervals(evidence)}")
    if evidence.scores.weights is not None:
        facts.append(f"{evidence.scores.weights.in_words(evidence.scores.topics)}; d_z is left out")
    if evidence.margin is not None:
        within = f"t-tests within {evidence.margin:g}, each by itself, not corrected"
        facts.append(f"equivalence and non-inferiority: {within}")
    facts.append(f"alpha {evidence.alpha:g}, seed {evidence.seed}")
    scores = evidence.scores
    unknown = "unknown, the scores were computed elsewhere"
    conventions = unknown if scores.elsewhere else conventions_in_words(scores.conventions)
    return ["; ".join(facts), f"conventions: {conventions}"]


def _intervals(evidence: Evidence) -> str:
    """What the intervals hold, and which of them at once."""
    percent = f"{evidence.level * 100:g}%"
    if not evidence.simultaneous:
        alone = ", of each pair by itself" if evidence.family > 1 else ""
        return f"{percent} of the mean difference ({evidence.interval}){alone}"
    if evidence.decided_at_once:
        return f"{percent} of all mean differences by a measure at once ({any_test(evidence.test).short})"
    correction, selected = CORRECTIONS[evidence.correction], sum(map(evidence.significant, evidence.pairs))
    each = f"{evidence.interval}, {100 * correction.interval_level(evidence.level, max(evidence.family, 1), selected):.4g}% each"
    if correction.controls == "false discovery rate":
        of = f"the {selected:,} significant of {evidence.family:,} mean differences"
        rest = "; the others have none" if selected < evidence.family else ""
        return f"{percent} of {of}, false coverage rate ({each}){rest}"
    return f"{percent} of all {evidence.family:,} mean differences at once ({correction.intervals}, {each})"


def _deciding_test(evidence: Evidence) -> str:
    test = any_test(evidence.test)
    text = test.short
    outcomes = [pair.outcomes[evidence.test] for pair in evidence.pairs if evidence.test in pair.outcomes]
    draws = [outcome.resamples for outcome in outcomes if not outcome.exact and outcome.resamples]
    if draws:
        text += f" ({max(draws):,} drawn)"
    elif outcomes and test.p_from == "exact or drawn":
        text += " (exact)"
    return text if evidence.alternative == "two-sided" else f"{text}, one-sided ({evidence.alternative})"

"""The text of a comparison: verdict, tables, tests and bars on a screen; table and sentences first on a page.

A screen states the method only if it is not the default.

A verdict claims what the sentence of a pair claims and no more: "beats" only if the corrected p-value is significant and
the test favours the run with the better mean. Significance is marked with a sign, not by colour alone; a page says it in
words for screen readers. Many pairs are cut to those of the best systems, and the text says how many there are.

Bars show differences topic by topic: to the right where the second run scores higher, to the left where it scores
lower. Without block characters the bars use # and -. Many topics are cut to the largest gains and losses.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from cranfield.base.results import Cell, Drawing, Layout, Lines, Part, Table, html_text
from cranfield.base.text_layout import counted, cut, cut_end, in_line, name_list, p_value, width
from cranfield.comparison.evidence import QUESTIONS
from cranfield.comparison.pair import better_and_worse, disagreement, run_on_side
from cranfield.comparison.score_tables import SEEDS, lists_nonrelevant, too_few_topics
from cranfield.evaluation.sanity_checks import LITTLE_JUDGED
from cranfield.evaluation.scores import conventions_in_words
from cranfield.stats.correction import CORRECTIONS
from cranfield.stats.tests_by_name import TESTS_OF_MANY, any_test

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cranfield.comparison.efficiency import Efficiency
    from cranfield.comparison.evidence import ComparisonEvidence
    from cranfield.comparison.label_noise import LabelNoise
    from cranfield.comparison.pair import RunPair
    from cranfield.evaluation.scores import Scores


NAMED_RUNS = 3  # if more runs beat a baseline, the others are counted


def verdict(evidence: ComparisonEvidence) -> list[str]:
    """The verdict in one or a few lines, and on how much it is based.

    A warning comes first if little of a run is judged, or if there are too few topics; then no run is said to lead.
    """
    few = _few(evidence)
    *others, last = _claims(evidence)
    basis = _basis_of_two(evidence.scores) if _single(evidence) else evidence.scores.judgments_in_words()
    caution = [f"{few}; on these topics:"] if few else []
    return [*_little_judged(evidence), *caution, *others, f"{last} ({basis})" if basis else last]


def _few(evidence: ComparisonEvidence) -> str:
    """Why no run may be said to lead; empty if there are enough topics."""
    return too_few_topics(evidence.scores, len(evidence.system_names()), evidence.alpha)


def _basis_of_two(scores: Scores) -> str:
    """The number of judgments behind a verdict that states the number of topics; empty for a table of scores."""
    if scores.judged is None:
        return ""
    barren = len(scores.topics) - scores.informative_topics
    without = f"; {counted(barren, 'topic')} without a relevant document" if barren else ""
    return f"{counted(int(scores.judged.sum()), 'judgment')}{without}"


def _little_judged(evidence: ComparisonEvidence) -> list[str]:
    """A line about runs of which too little is judged for a verdict."""
    for name, shares in evidence.judged.items() if lists_nonrelevant(evidence.scores) else ():
        little = [f"{run} {share:.0%}" for run, share in shares.items() if share < LITTLE_JUDGED]
        if little:
            return [f"too little is judged for a verdict: {name} is {_some(little)}; by the judged documents alone:"]
    return []


def _claims(evidence: ComparisonEvidence) -> list[str]:
    if _single(evidence):
        return _verdict_of_two(evidence)
    if evidence.one_sided:
        return [_answers_in_words(evidence)]
    return _against_baselines(evidence) if evidence.baselines else [_verdict_of_all(evidence)]


# two systems


def _verdict_of_two(evidence: ComparisonEvidence) -> list[str]:
    lines: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pair in evidence.pairs:
        answer, lower = evidence.answer(pair), evidence.lower_is_better(pair.measure)
        asked = f"; is {pair.other} {QUESTIONS[evidence.alternative]}? {answer}" if answer else ""
        doubt, topics = evidence.conflict_in_words(pair), counted(pair.n, "topic")
        start, what, end = pair.claim(evidence.alpha, lower, topics, doubt=doubt, answer=answer, conclusion=asked)
        lines[start, end].append(what)
    return [f"{start} {name_list(what)}{end}" for (start, end), what in lines.items()]


# more than two


def _verdict_of_all(evidence: ComparisonEvidence) -> str:
    """Who leads by which measure, and how many of the other systems it beats."""
    led: dict[str, list[str]] = defaultdict(list)
    for measure in evidence.scores.measures:
        pairs = [pair for pair in evidence.pairs if pair.measure == measure]
        leader = _leader(evidence, measure, pairs)
        beaten = sum(_beats(evidence, pair) == leader for pair in pairs)
        others = len(evidence.system_names()) - 1
        first = not any(led.values())
        number = f"{beaten or 'none'} of {others}"
        by = pairs[0].mean_of if pairs else measure
        led[leader].append(f"{by} ({f'beats {number} others' if first else number})")
    settled = sum(evidence.significant(pair) for pair in evidence.pairs)
    share = f"{settled:,} of {counted(len(evidence.pairs), 'difference')} {'is' if settled == 1 else 'are'} significant"
    first_by = "has the best mean of" if _few(evidence) else "leads by"
    leads = "; ".join(f"{leader} {first_by} {name_list(measures)}" for leader, measures in led.items())
    return f"{leads}; {share}"


def _leader(evidence: ComparisonEvidence, measure: str, pairs: list[RunPair]) -> str:
    means = {name: mean for pair in pairs for name, mean in ((pair.one, pair.mean_one), (pair.other, pair.mean_other))}
    defined = {name: mean for name, mean in means.items() if mean == mean} or means
    best = min if evidence.lower_is_better(measure) else max
    return best(defined, key=lambda name: defined[name])


def _beats(evidence: ComparisonEvidence, pair: RunPair) -> str:
    """The run that beats the other; empty if neither does."""
    if not evidence.significant(pair) or pair.better == "neither":
        return ""
    return run_on_side(pair, pair.better)


def _against_baselines(evidence: ComparisonEvidence) -> list[str]:
    """For each baseline and measure, which runs beat it and which runs it beats."""
    lines = []
    for baseline in evidence.baselines:
        for measure in evidence.scores.measures:
            pairs = [pair for pair in evidence.pairs if (pair.one, pair.measure) == (baseline, measure)]
            winners = [_beats(evidence, pair) for pair in pairs]
            above = [winner for winner in winners if winner not in ("", baseline)]
            below = [pair.other for pair, winner in zip(pairs, winners, strict=True) if winner == baseline]
            open_ = winners.count("")
            clauses = [f"{_some(above)} beat{'s' if len(above) == 1 else ''} {baseline}"] if above else []
            clauses += [f"{baseline} beats {_some(below)}"] if below else []
            clauses += [f"{open_ if clauses else f'{open_} of {len(pairs)}'} not settled"] if open_ else []
            lines += [f"{pairs[0].mean_of}: {'; '.join(clauses)}"] if clauses else []
    return lines


def _some(names: list[str]) -> str:
    rest = len(names) - NAMED_RUNS
    return name_list(names) if rest < 1 else f"{', '.join(names[:NAMED_RUNS])} and {rest} more"


def _answers_in_words(evidence: ComparisonEvidence) -> str:
    answers = [evidence.answer(pair) or "no answer" for pair in evidence.pairs]
    counts = {word: answers.count(word) for word in ("yes", "no", "not shown", "no answer") if word in answers}
    text = ", ".join(f"{word} for {number:,}" for word, number in counts.items())
    pairs = counted(len(answers), "pair")
    return f"is the second run {QUESTIONS[evidence.alternative]} than the first? {text} of {pairs}"


MOST_ROWS, MOST_SENTENCES = 40, 12  # unless all are asked for
ON_A_SCREEN = 18  # rows
SHORT_HEAD = 12  # cells of a run's name above its means
DETAILED = 3  # pairs for which every test has a line of its own
DRAWN_ON_A_PAGE = 2  # pairs
SPOKEN_MARKS = {"+": "better", "-": "worse", "?": "no p-value", "": "not settled", "~": "mean and test point apart"}
SPOKEN_MARKS |= {"c": "not settled after correction", "i": "not settled, interval and test differ"}
SPOKEN_MARKS["h"] = SPOKEN_MARKS["i"]
MARKS = {  # what else a mark may mean
    "~": "the mean and the test disagree about the direction",
    "c": "not settled after correction (the interval is for one pair)",
    "i": "not settled: the interval excludes 0, but the test is not significant",
    "h": "not settled: the test rejects, but the interval contains 0",
    "?": "no p-value",
}


def page(
    evidence: ComparisonEvidence, efficiency: Efficiency | None, how: Layout, label_noise: LabelNoise | None
) -> Iterator[Part]:
    """The text of a comparison for a page (HTML, Markdown)."""
    pairs = visible_pairs(evidence, how.every)
    spoken = pairs if how.every else pairs[:MOST_SENTENCES]
    yield pair_table(evidence, pairs, how)
    if how.medium != "html":
        yield Lines(_legend(evidence, pairs))
    yield Lines([*map(evidence.sentence, spoken), *_margins(spoken)])
    if label_noise is not None:
        yield from label_noise.content(how)
    yield from _drawings(evidence, pairs, how)
    if efficiency is not None and how.medium != "html":
        yield efficiency.table(how)
        yield Lines(efficiency.notes())
    yield Lines(made_by(evidence), dim=True)


def screen(
    evidence: ComparisonEvidence, efficiency: Efficiency | None, how: Layout, label_noise: LabelNoise | None
) -> Iterator[Part]:
    """The text for a screen: the verdict first, then the tables, tests and bars behind it, without the cautions."""
    pairs = visible_pairs(evidence, how.every, ON_A_SCREEN)
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
    method = zip(made_by(evidence), usual, strict=True)
    yield Lines([line for line, as_usual in method if how.states_defaults or not as_usual], dim=True)


def _single(evidence: ComparisonEvidence) -> bool:
    """Whether there are only two systems."""
    return len({(pair.one, pair.other) for pair in evidence.pairs}) == 1


def _margins(pairs: list[RunPair]) -> list[str]:
    return [text for pair in pairs if (text := pair.margin_sentence())]


# the pairs


def visible_pairs(evidence: ComparisonEvidence, every: bool, most: int = MOST_ROWS) -> list[RunPair]:
    """All pairs, or if they are too many, the first of each measure with the best systems first."""
    if every or len(evidence.pairs) <= most:
        return evidence.pairs
    measures, ordered = evidence.scores.measures, evidence.best_first()
    share = max(1, most // len(measures))
    return [pair for measure in measures for pair in [each for each in ordered if each.measure == measure][:share]]


def better_as_other(evidence: ComparisonEvidence, pairs: list[RunPair]) -> list[RunPair]:
    """The pairs, swapped so that `other` always has the better mean by the first measure.

    Comparisons with a baseline and one-sided comparisons do not change.
    """
    first = next(iter(evidence.scores.measures))
    if evidence.baselines or evidence.one_sided or _single(evidence):
        return pairs
    turn = -1.0 if evidence.lower_is_better(first) else 1.0
    mean = {name: turn * evidence.mean(name, first) for name in evidence.system_names()}
    return [pair.turned() if mean[pair.one] > mean[pair.other] else pair for pair in pairs]


def table_of_two(evidence: ComparisonEvidence, how: Layout) -> Table:
    """One row per measure: the means of both systems and their difference."""
    pairs, percent, corrected = evidence.pairs, f"{evidence.level * 100:g}%", evidence.named_correction
    heads = [pairs[0].one, pairs[0].other]
    if how.limit is not None:
        heads = [cut(in_line(name), SHORT_HEAD) for name in heads]
    head = ["measure", *heads, "diff", f"{percent} low", f"{percent} high", "d_z", "W/T/L", "p"]
    rows = []
    for pair in pairs:
        effect = _effect(pair, how, with_interval=how.verbose)
        rows.append([Cell(pair.measure), *_numbers(pair, how, effect, bool(corrected))])
    head += [corrected] if corrected else []
    title = f"Differences, {pairs[0].other} minus {pairs[0].one}"
    return Table(head, rows, title=title, spare=() if how.verbose else (head.index("d_z"),))


def _bounds(low: float, high: float) -> list[float]:
    """The ends of an interval; NaN for an unbounded end."""
    return [math.nan if abs(end) == math.inf else end for end in (low, high)]


def _numbers(pair: RunPair, how: Layout, effect: Cell, corrected: bool) -> list[Cell]:
    """The cells of a pair: means, difference with its interval, effect, wins, and one or two p-values."""
    means = [how.cell(mean) for mean in (pair.mean_one, pair.mean_other)]
    difference = [how.cell(number, signed=True) for number in (pair.difference, *_bounds(pair.low, pair.high))]
    wins = Cell(f"{pair.wins}/{pair.ties}/{pair.losses}", float(pair.wins))
    p_values = [pair.p, pair.corrected] if corrected else [pair.p]
    return [*means, *difference, effect, wins, *(Cell(how.p_value(p), p) for p in p_values)]


def pair_table(evidence: ComparisonEvidence, pairs: list[RunPair], how: Layout) -> Table:
    """One row per pair."""
    percent = f"{evidence.level * 100:g}%"
    corrected, aloud = evidence.named_correction, how.medium == "html"
    difference = "difference" if how.states_defaults else "diff"
    head = ["measure", "run A", "run B", "mean A", "mean B", difference, f"{percent} low", f"{percent} high"]
    question = f"{evidence.alternative}?" if evidence.one_sided else ""
    weighed = bool(evidence.weighed_by)  # then there is no d_z
    head += ["unweighted" if weighed else "d_z", "W/T/L", "p", *([corrected] if corrected else [])]
    head.append(f"run B is {question}".strip() if aloud else question)
    rows = []
    for pair in better_as_other(evidence, pairs):
        effect = _effect(pair, how, with_interval=how.states_defaults)
        if weighed:
            effect = how.cell(getattr(pair.unweighted, "difference", math.nan), signed=True)
        sign = mark(evidence, pair)
        last = Cell(SPOKEN_MARKS.get(sign, sign) if aloud else sign, best=sign == "+")
        names = [Cell(pair.measure), Cell(pair.one), Cell(pair.other)]
        rows.append([*names, *_numbers(pair, how, effect, bool(corrected)), last])
    number = f" {len(pairs)} of {len(evidence.pairs):,} pairs are shown." if len(pairs) < len(evidence.pairs) else ""
    by = f", by {evidence.weighed_by}" if weighed else ""
    title = f"Differences, run B minus run A{by}.{number}"
    spare = ["d_z", "mean A", "mean B", "W/T/L", *(["p"] if corrected else [])]  # the first to go first
    dropped = [] if how.states_defaults else [head.index(name) for name in spare if name in head]
    return Table(head, rows, names=3, title=title, spare=dropped)


def _effect(pair: RunPair, how: Layout, with_interval: bool) -> Cell:
    """d_z, with its interval if requested; an unbounded end is a dash."""
    how = how._replace(digits=2)
    around = ""
    if with_interval and pair.effect_low == pair.effect_low:
        ends = _bounds(pair.effect_low, pair.effect_high)
        around = f" [{', '.join(how.number(end, signed=True) for end in ends)}]"
    return Cell(f"{how.number(pair.effect, signed=True)}{around}", pair.effect)


def mark(evidence: ComparisonEvidence, pair: RunPair) -> str:
    """+ if run B is significantly better, - if it is worse, ? without a test; else a mark for the reason, or nothing.

    For a one-sided question the mark is its answer.
    """
    if pair.corrected != pair.corrected:
        return "?"
    if evidence.contradictory(pair):
        return "~"
    if evidence.one_sided:
        return evidence.answer(pair)
    if not evidence.significant(pair):
        return {"correction": "c", "interval": "i", "held": "h"}.get(evidence.interval_conflict(pair), "")
    return {"other": "+", "one": "-", "neither": ""}[pair.better]


def _legend(evidence: ComparisonEvidence, pairs: list[RunPair]) -> list[str]:
    """The meaning of the marks, and how many of the pairs are shown."""
    legend = f"+ run B is significantly better than run A, - significantly worse, at alpha {evidence.alpha:g}"
    if evidence.one_sided:
        question = f"is run B {QUESTIONS[evidence.alternative]} than run A?"
        legend = f"{question} yes: p <= {evidence.alpha:g}; no: p of the opposite question <= {evidence.alpha:g}; else not shown"
    used = {mark(evidence, pair) for pair in pairs}
    legend += "".join(f"; {sign} {meaning}" for sign, meaning in MARKS.items() if sign in used)
    if len(pairs) == len(evidence.pairs):
        return [legend]
    settled = sum(evidence.significant(pair) for pair in evidence.pairs)
    first = "other runs with the highest means" if evidence.baselines else "systems with the highest means"
    cut = (
        f"{len(pairs)} of {len(evidence.pairs):,} pairs are shown, the {first} first; "
        f"{settled:,} of all differ significantly (--all-pairs, json, csv and tsv show all)"
    )
    return [legend, cut]


def _drawings(evidence: ComparisonEvidence, pairs: list[RunPair], how: Layout) -> Iterator[Part]:
    """The bars of a single pair, or of all pairs on request; a page shows the first few."""
    if how.medium == "html":
        pairs = pairs[:DRAWN_ON_A_PAGE]
    elif not (how.bars or (how.bars is None and _single(evidence))):
        return
    elif not how.states_defaults:
        first = next(iter(evidence.scores.measures))
        pairs = [pair for pair in pairs if pair.measure == first]
    yield from filter(None, (difference_drawing(evidence, pair, how) for pair in pairs))


# groups, and all systems at once


def _seeds(evidence: ComparisonEvidence, how: Layout) -> Iterator[Part]:
    """One row per group and measure: the spread of its runs."""
    rows = []
    for group, measure, means, mean, deviation in evidence.spreads():
        numbers = map(how.number, (mean, deviation, float(means.min()), float(means.max())))
        rows.append([group.name, measure, str(len(group.runs)), *numbers])
    if rows:
        yield Table(["group", "measure", "runs", "mean", "sd over runs", "lowest", "highest"], rows, names=2)


def _all_systems(evidence: ComparisonEvidence) -> list[str]:
    """The overall results of tests of all systems at once."""
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
    """A reason from `stats` about blocks and groups, reworded for topics and systems."""
    return reason.replace("block", "topic").replace("group", "system")


# what every test says


def _tests(evidence: ComparisonEvidence, pairs: list[RunPair], how: Layout) -> Iterator[Part]:
    """The results of every test for a few pairs, or only the p-values for many; and where tests disagree."""
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


def _test_table(evidence: ComparisonEvidence, pair: RunPair, how: Layout) -> Table:
    percent = f"{evidence.level * 100:g}%"
    rows = []
    for name, outcome in pair.outcomes.items():
        interval = [how.number(end, signed=True) for end in _bounds(outcome.low, outcome.high)]
        beside = _beside(outcome, evidence.lower_is_better(pair.measure))
        rows.append([any_test(name).short, how.p_value(outcome.p), _p_from(outcome, how), *interval, beside])
    caption = f"{pair.other} against {pair.one} by {pair.measure}, before any correction:"
    head = ["test", "p", "how", f"{percent} low", f"{percent} high", ""]
    return Table(head, rows, caption=caption, tail=True)


def _p_from(outcome: Any, how: Layout) -> str:
    """The source of a p-value: exact enumeration, random resampling, or a formula."""
    if outcome.p != outcome.p:
        return how.undefined
    if any_test(outcome.test).p_from == "formula":
        return "formula"
    return "exact" if outcome.exact else f"{outcome.resamples:,} drawn" if outcome.resamples else "approximate"


def _chance(outcome: Any, lower_is_better: bool, how: Layout) -> str:
    """The p-value; for a Bayesian test the probability of being better."""
    chances = better_and_worse(outcome, not lower_is_better)
    return how.p_value(outcome.p) if chances is None else f"P(better) {chances[0]:.3f}"


def _beside(outcome: Any, lower_is_better: bool) -> str:
    chances = better_and_worse(outcome, not lower_is_better)
    if chances is not None:
        better, worse = chances
        return f"P(better) {better:.3f}, P(within rope) {outcome.extra['P(rope)']:.3f}, P(worse) {worse:.3f}"
    if "p over topics only" in outcome.extra:
        return f"over topics only, with fixed seeds: p {p_value(outcome.extra['p over topics only'])}"
    return in_search_words(outcome.reason) if outcome.p != outcome.p else ""


# how it was made


def made_by(evidence: ComparisonEvidence) -> list[str]:
    """The method in two lines: test, correction, interval and seed; and the conventions."""
    over_seeds = [pair.test == SEEDS for pair in evidence.pairs]
    facts = [] if all(over_seeds) else [f"test: {_deciding_test(evidence)}"]
    if any(over_seeds):
        facts.append(
            "groups of runs: crossed t over topics and seeds (variance of both, Satterthwaite's degrees of freedom), "
            "whatever test was requested"
        )
    if evidence.decided_at_once:
        facts.append("correction: the test's own, which covers all pairs of a measure")
    elif evidence.family < 2:
        facts.append(f"correction: none, there is {'one p-value' if evidence.family else 'no p-value'}")
    else:
        facts.append(f"correction: {evidence.named_correction or 'none'} over {evidence.family:,} p-values")
    facts.append(f"interval: {_intervals(evidence)}")
    if evidence.scores.weights is not None:
        facts.append(f"{evidence.scores.weights.in_words(evidence.scores.topics)}; d_z is left out")
    if evidence.margin is not None:
        facts.append(f"equivalence and non-inferiority: t-tests within {evidence.margin:g}, each alone, not corrected")
    facts.append(f"alpha {evidence.alpha:g}, seed {evidence.seed}")
    scores = evidence.scores
    unknown = "unknown, the scores were computed elsewhere"
    conventions = unknown if scores.external else conventions_in_words(scores.conventions)
    return ["; ".join(facts), f"conventions: {conventions}"]


def _intervals(evidence: ComparisonEvidence) -> str:
    """What the intervals cover, and whether they hold jointly."""
    percent = f"{evidence.level * 100:g}%"
    if not evidence.simultaneous:
        alone = ", for each pair alone" if evidence.family > 1 else ""
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


def _deciding_test(evidence: ComparisonEvidence) -> str:
    test = any_test(evidence.test)
    text = test.short
    outcomes = [pair.outcomes[evidence.test] for pair in evidence.pairs if evidence.test in pair.outcomes]
    draws = [outcome.resamples for outcome in outcomes if not outcome.exact and outcome.resamples]
    if draws:
        text += f" ({max(draws):,} drawn)"
    elif outcomes and test.p_from == "exact or drawn":
        text += " (exact)"
    return text if evidence.alternative == "two-sided" else f"{text}, one-sided ({evidence.alternative})"


EIGHTHS = " ▏▎▍▌▋▊▉█"
MOST_BARS = 24  # shown where there are more topics than that: half winners, half losers
BARS_ON_A_SCREEN = 7  # the same beside a verdict and a table
LONGEST_LABEL = 24  # cells of a topic on a screen
NARROWEST, WIDEST = 48, 100  # lines
SVG_WIDTH, SVG_HEIGHT = 700, 160


def difference_drawing(evidence: ComparisonEvidence, pair: RunPair, how: Layout) -> Drawing | None:
    """A drawing of the differences of a pair, largest gain first; None if there are no differences."""
    names, differences = evidence.differences(pair)
    if not names:
        return None
    topics = labels(names, evidence.scores.queries, None if how.medium == "html" else how.limit or WIDEST)
    lead = f"{pair.measure} of {pair.other} minus that of {pair.one}, topic by topic"
    if how.medium == "html":
        record = f"{pair.wins} won, {pair.ties} tied, {pair.losses} lost"
        return Drawing(lead, [], difference_svg(topics, differences.tolist(), lead, f"{lead}: {record}"))
    lower = "; lower is better" if evidence.lower_is_better(pair.measure) else ""
    most = MOST_BARS if how.states_defaults else BARS_ON_A_SCREEN
    lines = difference_bars(topics, differences.tolist(), limit=how.limit, most=most, ascii_only=how.ascii_only)
    return Drawing(f"{lead}{lower}:", lines)


def labels(topics: Sequence[str], queries: Mapping[str, str], limit: int | None = None) -> list[str]:
    """The labels of the bars: topic ids, and queries if known, in less than half of the line.

    >>> labels(["101", "7"], {"101": "blossom end rot"}, 40)
    ['101  blossom end…', '7']
    """
    names = [in_line(topic) if limit is None else cut(in_line(topic), LONGEST_LABEL) for topic in topics]
    longest = max(map(width, names), default=0)
    room = None if limit is None else max(limit * 2 // 5, 12) - min(longest, 20)
    texts_of_queries = [in_line(queries.get(topic, "")) for topic in topics] if queries else [""] * len(names)
    texts = texts_of_queries if room is None else [cut_end(query, room) for query in texts_of_queries]
    return [
        f"{name}{' ' * (longest - width(name))}  {text}" if text else name
        for name, text in zip(names, texts, strict=True)
    ]


def difference_bars(
    topics: Sequence[str],
    differences: Sequence[float],
    *,
    limit: int | None = None,
    most: int | None = MOST_BARS,
    ascii_only: bool = False,
) -> list[str]:
    """One line per topic, the largest gain first: topic, difference, bar.

    >>> for line in difference_bars(["q1", "q2"], [-0.25, 0.5], limit=30, ascii_only=True):
    ...     print(line)
    q2  +0.500          |########
    q1  -0.250      ----|
    """
    order = sorted(range(len(topics)), key=lambda t: -differences[t])
    visible, hidden = _cut(order, most)
    name_width = max((width(topics[t]) for t in visible), default=0)
    numbers = {t: f"{differences[t]:+.3f}" for t in order}
    number_width = max((len(text) for text in numbers.values()), default=0)
    room = max(NARROWEST if limit is None else 0, min(limit or WIDEST, WIDEST)) - name_width - number_width - 5
    half = max(room // 2, 4)
    largest = max((abs(differences[t]) for t in order), default=0.0) or 1.0
    lines = []
    for place, t in enumerate(visible):
        if hidden and place == len(visible) - len(visible) // 2:
            lines.append(_between(hidden, differences))
        space = " " * (name_width - width(topics[t]))
        bar = _bar(differences[t] / largest, half, ascii_only)
        lines.append(f"{topics[t]}{space}  {numbers[t]:>{number_width}}  {bar}".rstrip())
    return lines


def _cut(order: list[int], most: int | None) -> tuple[list[int], list[int]]:
    """The topics to draw, and the middle ones to skip."""
    if most is None or len(order) <= most:
        return order, []
    head, tail = most - most // 2, len(order) - most // 2
    return [*order[:head], *order[tail:]], order[head:tail]


def _between(hidden: list[int], differences: Sequence[float]) -> str:
    up = sum(differences[t] > 0 for t in hidden)
    down = sum(differences[t] < 0 for t in hidden)
    counts = {"up": up, "equal": len(hidden) - up - down, "down": down}
    parts = [f"{number} {name}" for name, number in counts.items() if number]
    return f"... {len(hidden)} more topics between: {', '.join(parts)}"


def _bar(share: float, half: int, ascii_only: bool) -> str:
    """A bar of at most `half` cells on each side of the middle line."""
    if ascii_only:
        cells = round(abs(share) * half)
        return f"{' ' * half}|{'#' * cells}" if share >= 0 else f"{'-' * cells:>{half}}|"
    eighths = round(abs(share) * half * 8)
    if share >= 0:
        return f"{' ' * half}│{'█' * (eighths // 8)}{EIGHTHS[eighths % 8].strip()}"
    whole = -(-eighths // 8)  # few fonts have blocks that start at the right edge: use whole cells
    return f"{'░' * whole:>{half}}│"


def difference_svg(topics: Sequence[str], differences: Sequence[float], caption: str, label: str) -> str:
    """Each topic's difference as a bar in the colour of the text, the largest gain first."""
    order = sorted(range(len(topics)), key=lambda t: -differences[t])
    largest = max(map(abs, differences)) or 1.0
    step = max(1.0, min(14.0, SVG_WIDTH / len(topics)))
    middle, across = SVG_HEIGHT / 2, f"{step * len(topics):.0f}"
    bars = []
    for place, t in enumerate(order):
        size = abs(differences[t]) / largest * (middle - 2)
        up = differences[t] > 0
        bars.append(
            f'<rect x="{place * step:.1f}" y="{middle - size if up else middle:.1f}" width="{step * 0.85:.1f}" '
            f'height="{size:.1f}" fill="currentColor" fill-opacity="{0.8 if up else 0.4}">'
            f"<title>{html_text(topics[t])}: {differences[t]:+.4f}</title></rect>"
        )
    return (
        f'<figure><svg role="img" aria-label="{html_text(label)}" width="{across}" height="{SVG_HEIGHT}" '
        f'viewBox="0 0 {across} {SVG_HEIGHT}"><line x1="0" x2="{across}" y1="{middle}" y2="{middle}" '
        f'stroke="currentColor"/>{"".join(bars)}</svg><figcaption>{html_text(caption)}</figcaption></figure>'
    )

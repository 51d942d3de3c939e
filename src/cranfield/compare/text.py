"""A comparison for people who read a terminal: table, sentences, bars, cautions, and how it was made.

What is significant is marked with a sign and not by colour alone. Many pairs are cut to the most interesting ones, best
systems first, and the text says how many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.columns import aligned
from cranfield.compare import margins
from cranfield.compare.bars import difference_bars
from cranfield.compare.groups import SEEDS, spread
from cranfield.compare.sentences import disagreement, p_value
from cranfield.stats.testing import TESTS_OF_MANY, any_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cranfield.answer import Style
    from cranfield.compare.comparison import Comparison, Pair


ROWS, SENTENCES = 40, 12  # most of them, unless all are asked for
DETAILED = 3  # pairs for which every test has a line of its own


def mark(found: Comparison, pair: Pair) -> str:
    """+ where other is significantly better, - where it is worse, ? where no test could be made, else nothing."""
    if pair.corrected != pair.corrected:
        return "?"
    if not found.significant(pair) or pair.better == "neither":
        return ""
    return "+" if pair.better == "other" else "-"


def shown_pairs(found: Comparison, most: int | None = ROWS) -> list[Pair]:
    """All pairs, or where they are too many the first of each measure when the best systems come first."""
    if most is None or len(found.pairs) <= most:
        return found.pairs
    share = max(1, most // len(found.scores.measures))
    ordered = found.best_first()
    return [
        pair
        for measure in found.scores.measures
        for pair in [each for each in ordered if each.measure == measure][:share]
    ]


def table(found: Comparison, pairs: Iterable[Pair], digits: int = 4) -> list[list[str]]:
    """A header and a row a pair."""
    percent = f"{found.level * 100:g}%"
    corrected = found.named_correction
    head = ["measure", "one", "other", "mean one", "mean other", "difference", f"{percent} low", f"{percent} high"]
    head += ["d_z", "W/T/L", "p", *([corrected] if corrected else []), ""]
    rows = [head]
    for pair in pairs:
        numbers = (pair.mean_one, pair.mean_other, pair.difference, pair.low, pair.high)
        cells = [_number(value, digits, signed=i >= 2) for i, value in enumerate(numbers)]
        p = [_p(pair.p), *([_p(pair.corrected)] if corrected else [])]
        record = f"{pair.wins}/{pair.ties}/{pair.losses}"
        rows.append(
            [pair.measure, pair.one, pair.other, *cells, _number(pair.effect, 2, True), record, *p, mark(found, pair)]
        )
    return rows


def _number(value: float, digits: int, signed: bool = False) -> str:
    if value != value:
        return "-"
    return f"{value:{'+' if signed else ''}.{digits}f}"


def _p(value: float) -> str:
    return "-" if value != value else p_value(value).removeprefix("= ").replace("< ", "<")


def to_text(
    found: Comparison,
    *,
    bars: bool | None = None,
    digits: int = 4,
    limit: int | None = None,
    every: bool = False,
    ascii_only: bool = False,
    style: Style | None = None,
) -> str:
    """All of it. `bars` are drawn for a single pair unless asked for or not; `every` pair is shown, however many."""
    pairs = shown_pairs(found, None if every else ROWS)
    fold = _folder(limit)
    parts = ["\n".join(_painted(table(found, pairs, digits), limit, style)), *_counted(found, pairs, fold)]
    if found.groups:
        parts.append("\n".join(aligned(_seeds(found, digits), 2, limit=limit)))
    parts += ["\n".join(fold(line) for line in block) for block in _systems(found) if block]
    parts += _sentences(found, pairs, every, fold)
    if len(found.tests) > 1:
        parts += _tests(found, pairs if every else pairs[:SENTENCES], digits, limit, fold)
    single = len({(pair.one, pair.other) for pair in found.pairs}) == 1
    if bars or (bars is None and single):
        parts += _bars(found, pairs, limit, ascii_only, fold)
    if found.efficiency is not None:
        parts.append("\n".join(aligned(found.efficiency.table(digits), limit=limit)))
        parts += [fold(f"caution: {sentence}") for sentence in found.efficiency.notes()]
    warned = [fold(f"caution: {caution.text}") for caution in found.cautions]
    if warned:
        parts.append("\n".join(warned))
    said = "\n".join(fold(line) for line in [*found.remarks, *made_by(found)])
    return "\n\n".join([*parts, style("dim", said) if style else said])


def _folder(limit: int | None) -> Callable[[str], str]:
    import textwrap

    def fold(text: str) -> str:
        if limit is None or len(text) <= limit:
            return text
        return "\n".join(textwrap.wrap(text, max(limit, 40), subsequent_indent="  ", break_long_words=False))

    return fold


def _painted(rows: list[list[str]], limit: int | None, style: Style | None) -> list[str]:
    last = len(rows[0]) - 1

    def paint(row: int, column: int, cell: str) -> str:
        if style is None or not cell.strip():
            return cell
        if row == 0:
            return style("head", cell)
        return style("best", cell) if column == last and cell.strip() == "+" else cell

    return [line.rstrip() for line in aligned(rows, 3, limit=limit, style=paint if style else None)]


def _counted(found: Comparison, pairs: list[Pair], fold: Callable[[str], str]) -> list[str]:
    """The legend of the marks, and how many of many there are."""
    legend = f"marks: + other is significantly better, - significantly worse, at alpha {found.alpha:g}"
    if any(pair.corrected != pair.corrected for pair in pairs):
        legend += "; ? no p-value"
    if len(pairs) == len(found.pairs):
        return [fold(legend)]
    settled = sum(found.significant(pair) for pair in found.pairs)
    first = "other runs with the highest means" if found.baselines else "systems with the highest means"
    cut = (
        f"{len(pairs)} of {len(found.pairs):,} pairs are shown, the {first} first; "
        f"{settled:,} of all differ significantly (--all-pairs shows all, and so do json, csv and tsv)"
    )
    return [f"{fold(legend)}\n{fold(cut)}"]


def _seeds(found: Comparison, digits: int) -> list[list[str]]:
    """A row a group and measure: how its runs spread."""
    rows = [["group", "measure", "runs", "mean", "sd over runs", "lowest", "highest"]]
    for group in found.groups:
        for measure in found.scores.measures:
            means, mean, deviation = spread(found.scores, group, measure)
            numbers = [_number(value, digits) for value in (mean, deviation, float(means.min()), float(means.max()))]
            rows.append([group.name, measure, str(len(group.runs)), *numbers])
    return rows


def _systems(found: Comparison) -> list[list[str]]:
    """What tests of all systems at once say of them together."""
    lines = []
    for measure, results in found.many.items():
        for name, result in results.items():
            test, (said, p) = TESTS_OF_MANY[name], result.overall
            if result.reason:
                lines.append(f"{test.short}, {measure}: no p-value: {in_search_words(result.reason)}")
            elif test.pairs:
                lines.append(f"{test.short}, {measure}: {said}, smallest p of a pair {p_value(p)}")
            else:
                lines.append(f"{test.short}, {measure}: {said}, p {p_value(p)} (are all systems equal?)")
    return [lines]


def in_search_words(reason: str) -> str:
    """A reason that speaks of blocks and groups, in the words of this room."""
    return reason.replace("block", "topic").replace("group", "system")


def _sentences(found: Comparison, pairs: list[Pair], every: bool, fold: Callable[[str], str]) -> list[str]:
    kept = pairs if every else pairs[:SENTENCES]
    lines = [fold(found.sentence(pair)) for pair in kept]
    lines += [fold(text) for pair in kept if (text := margins.in_words(pair))]
    if len(kept) < len(pairs):
        lines.append(f"... and {len(pairs) - len(kept)} more sentences (--all-pairs)")
    return ["\n".join(lines)]


def _tests(
    found: Comparison, pairs: list[Pair], digits: int, limit: int | None, fold: Callable[[str], str]
) -> list[str]:
    """What every test says of a few pairs, or just the p-values of many; and where they disagree."""
    tested = [pair for pair in pairs if pair.outcomes]
    parts = [_all_tests(found, pair, digits, limit) for pair in tested if len(tested) <= DETAILED]
    if len(tested) > DETAILED:
        names = list(dict.fromkeys(name for pair in tested for name in pair.outcomes))
        rows = [["p-values", "", "", *(any_test(name).short for name in names)]]
        for pair in tested:
            outcomes = [pair.outcomes.get(name) for name in names]
            shown = ["" if one is None else _chance(one, found.lower_is_better(pair.measure)) for one in outcomes]
            rows.append([pair.measure, pair.one, pair.other, *shown])
        parts.append("\n".join(line.rstrip() for line in aligned(rows, 3, limit=limit)))
    apart = [fold(text) for pair in tested if (text := disagreement(pair, found.alpha))]
    return [*parts, "\n".join(apart)] if apart else parts


def _all_tests(found: Comparison, pair: Pair, digits: int, limit: int | None) -> str:
    percent = f"{found.level * 100:g}%"
    rows = [["test", "p", "how", f"{percent} low", f"{percent} high", ""]]
    for name, outcome in pair.outcomes.items():
        interval = [_number(end, digits, True) for end in (outcome.low, outcome.high)]
        beside = _beside(outcome, found.lower_is_better(pair.measure))
        rows.append([any_test(name).short, _p(outcome.p), how(outcome), *interval, beside])
    lines = [line.rstrip() for line in aligned(rows, 1, limit=limit)]
    return "\n".join([f"{pair.other} against {pair.one} by {pair.measure}, before any correction:", *lines])


def _chance(outcome: Any, lower_is_better: bool) -> str:
    """A p-value, or the probability of being better where there is none."""
    if "P(better)" not in outcome.extra:
        return _p(outcome.p)
    return f"P(better) {outcome.extra['P(worse)' if lower_is_better else 'P(better)']:.3f}"


def how(outcome: Any) -> str:
    """Where a p-value comes from: all cases counted, some drawn, or a distribution that is assumed."""
    if outcome.p != outcome.p:
        return "-"
    if any_test(outcome.test).p_from == "formula":
        return "formula"
    return "exact" if outcome.exact else f"{outcome.resamples:,} drawn" if outcome.resamples else "approximate"


def _beside(outcome: Any, lower_is_better: bool) -> str:
    if "P(better)" in outcome.extra:
        better, worse = outcome.extra["P(better)"], outcome.extra["P(worse)"]
        better, worse = (worse, better) if lower_is_better else (better, worse)
        return f"P(better) {better:.3f}, P(within rope) {outcome.extra['P(rope)']:.3f}, P(worse) {worse:.3f}"
    if "p over topics only" in outcome.extra:
        return f"over topics only, as if the seeds were fixed: p {p_value(outcome.extra['p over topics only'])}"
    return in_search_words(outcome.reason) if outcome.p != outcome.p else ""


def _bars(
    found: Comparison, pairs: list[Pair], limit: int | None, ascii_only: bool, fold: Callable[[str], str]
) -> list[str]:
    parts = []
    for pair in pairs:
        topics, differences = found.differences(pair)
        if not len(topics):
            continue
        lower = "; lower is better" if found.lower_is_better(pair.measure) else ""
        lines = [fold(f"{pair.measure} of {pair.other} less that of {pair.one}, topic by topic{lower}:")]
        parts.append(
            "\n".join([*lines, *difference_bars(topics, differences.tolist(), limit=limit, ascii_only=ascii_only)])
        )
    return parts


def made_by(found: Comparison) -> list[str]:
    """How the numbers were made: test, correction, interval, seed; and under which conventions."""
    from cranfield.scores import conventions_in_words

    said = [] if all(pair.test == SEEDS for pair in found.pairs) else [f"test: {_test_in_words(found)}"]
    if any(pair.test == SEEDS for pair in found.pairs):
        said.append(
            "groups of runs: crossed t over topics and seeds (variance of both, Satterthwaite's degrees of freedom), "
            "whatever test was asked for"
        )
    if found.test in TESTS_OF_MANY:
        said.append("correction: none beside the test's own, which covers all pairs of a measure")
    elif found.family < 2:
        said.append(f"correction: none, there is {'one p-value' if found.family else 'no p-value'}")
    else:
        said.append(f"correction: {found.named_correction or 'none'} over {found.family:,} p-values")
    alone = ", of each pair by itself" if found.family > 1 else ""
    said.append(f"interval: {found.level * 100:g}% of the mean difference ({found.interval}){alone}")
    if found.margin is not None:
        said.append(f"equivalence and non-inferiority: t-tests within {found.margin:g}, each by itself, not corrected")
    said.append(f"alpha {found.alpha:g}, seed {found.seed}")
    known = "unknown, the scores were computed elsewhere"
    conventions = known if found.scores.elsewhere else conventions_in_words(found.scores.conventions)
    return ["; ".join(said), f"conventions: {conventions}"]


def _test_in_words(found: Comparison) -> str:
    test = any_test(found.test)
    text = test.short
    outcomes = [pair.outcomes[found.test] for pair in found.pairs if found.test in pair.outcomes]
    drawn = [outcome.resamples for outcome in outcomes if not outcome.exact and outcome.resamples]
    if drawn:
        text += f" ({max(drawn):,} drawn)"
    elif outcomes and test.p_from == "exact or drawn":
        text += " (exact)"
    return text if found.alternative == "two-sided" else f"{text}, one-sided ({found.alternative})"


def to_markdown(found: Comparison, digits: int = 4, every: bool = False) -> str:
    """A table, sentences and cautions in Markdown."""
    pairs = shown_pairs(found, None if every else ROWS)
    head, *rows = table(found, pairs, digits)
    cells = [[cell.replace("|", "\\|") or " " for cell in row] for row in (head, *rows)]
    lines = [f"| {' | '.join(cells[0])} |", f"|{'---|' * 3}{'---:|' * (len(head) - 3)}"]
    lines += [f"| {' | '.join(row)} |" for row in cells[1:]]
    lines += ["", *_counted(found, pairs, _folder(None)), ""]
    lines += [f"- {found.sentence(pair)}" for pair in (pairs if every else pairs[:SENTENCES])]
    lines += [f"- {text}" for pair in pairs if (text := margins.in_words(pair))]
    if found.efficiency is not None:
        costs = [[cell.replace("|", "\\|") or " " for cell in row] for row in found.efficiency.table(digits)]
        lines += ["", f"| {' | '.join(costs[0])} |", f"|---|{'---:|' * (len(costs[0]) - 1)}"]
        lines += [*(f"| {' | '.join(row)} |" for row in costs[1:]), "", *found.efficiency.notes()]
    if found.cautions:
        lines += ["", *(f"- **caution:** {caution.text}" for caution in found.cautions)]
    return "\n".join([*lines, "", *(f"{line}  " for line in [*found.remarks, *made_by(found)])]) + "\n"

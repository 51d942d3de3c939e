"""The tables and sentences of a report as plain values; the writers decide how they look.

Systems have letters (a, b, c …). As in papers, a raised letter marks a system that this one beats significantly.
The summary never calls the highest mean "best" without saying how many of the others it beats significantly.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from cranfield.base.results import Cell, Layout, Table
from cranfield.base.text_layout import name_list, p_value
from cranfield.comparison.comparison_text import mark
from cranfield.comparison.score_tables import too_few_topics
from cranfield.reports.texts import first_words
from cranfield.stats.correction import CORRECTIONS
from cranfield.stats.tests_by_name import TESTS_OF_MANY

if TYPE_CHECKING:
    from cranfield.comparison.efficiency import Efficiency
    from cranfield.comparison.pair import RunPair
    from cranfield.reports.report_content import Report


ABC = "abcdefghijklmnopqrstuvwxyz"


def number(value: float, digits: int, signed: bool = False) -> str:
    """A number as text, with a true minus sign; a dash if there is none.

    >>> number(0.12345, 3), number(-0.1, 2, signed=True), number(float("nan"), 2)
    ('0.123', '−0.10', '–')
    """
    if value != value:
        return "–"
    return f"{value:{'+' if signed else ''}.{digits}f}".replace("-", "−")


def letter(i: int) -> str:
    """The i-th letter: a … z, then aa, ab …

    >>> letter(0), letter(25), letter(26)
    ('a', 'z', 'aa')
    """
    return ABC[i] if i < len(ABC) else letter(i // len(ABC) - 1) + ABC[i % len(ABC)]


def leaderboard_table(report: Report) -> Table:
    """One row per system: letter, name, and each measure's mean with the letters of the systems it beats."""
    systems, scores, weighed = report.systems, report.comparison.scores, bool(report.comparison.weighed_by)
    letters = {name: letter(i) for i, name in enumerate(systems)}
    gap = " " if any(len(each) > 1 for each in letters.values()) else ""
    columns = [[report.mean(name, measure) for name in systems] for measure in report.measures]
    best = [_best(report, measure, column) for measure, column in zip(report.measures, columns, strict=True)]
    rows = []
    for s, name in enumerate(systems):
        cells = [Cell(letters[name], float(s)), Cell(name)]
        for m, measure in enumerate(report.measures):
            value = columns[m][s]
            beaten = [letters[o] for o in systems if o != name and report.better(measure, o, name) > 0]
            top = len(systems) > 1 and value == best[m]
            cells.append(Cell(number(value, report.digits), value, top, gap.join(beaten)))
        alike = [report.comparison.mean(name, measure) for measure in report.measures] if weighed else []
        rows.append([*cells, *(Cell(number(mean, report.digits), mean) for mean in alike)])
    raised = f"significantly better than the system of that letter ({decided(report)})"
    notes = [f"Raised letters: {raised}.", "Bold: the best mean."]
    unweighted = map(scores.unweighted_name, report.measures) if weighed else ()
    head = ["", "run", *map(scores.weighted_name, report.measures), *unweighted]
    return Table(head, rows, names=2, caption="Mean over topics", notes=notes)


def decided(report: Report) -> str:
    """The test, the correction and the level of the decisions."""
    comparison = report.comparison
    correction = CORRECTIONS[comparison.correction].short
    corrected = f"{correction} over {comparison.family}" if correction else "uncorrected"
    if comparison.test in TESTS_OF_MANY:
        corrected = "all systems at once"
    return f"{comparison.test} test, {corrected}, α = {comparison.alpha:g}"


def board_table(report: Report, measure: str) -> Table:
    """One row per run, ranked by a measure: its mean, the interval of its rank, the other means, the judged share."""
    board = report.leaderboards[measure]
    geometric = [name for name in board.rows[0].gmean if board.scores.measures[name].name == "AP"]
    judged, micro = report.comparison.judged, report.comparison.micro
    others = [name for name in board.measures if name != measure]
    first, *further = map(board.scores.unweighted_name, [measure, *others])
    head = ["run", first, "rank", "ranks", "first in redraws", "tier", *further]
    head += [*map(board.scores.weighted_name, board.rows[0].weighted), *(f"micro({name})" for name in micro)]
    head += [*(f"gmean({name})" for name in geometric), *judged, "topics"]
    best = {name: _best(report, name, [row.means[name] for row in board.rows]) for name in board.measures}
    rows = []
    for row in board.rows:
        span = "–" if row.low is None else f"{row.low}–{row.high}" if row.low != row.high else str(row.low)
        means = {
            name: Cell(number(mean, report.digits), mean, len(board.rows) > 1 and mean == best[name])
            for name, mean in row.means.items()
        }
        cells = [
            Cell(row.run),
            means[measure],
            Cell(f"{row.rank}{'=' if row.shared else ''}", float(row.rank)),
            Cell(span, row.low),
            Cell(number(row.first_in_redraws, 2), row.first_in_redraws),
            Cell(row.tier or "–"),
            *(means[name] for name in others),
        ]
        beside = [*row.weighted.values(), *(by_run.get(row.run, float("nan")) for by_run in micro.values())]
        beside += [row.gmean[name] for name in geometric]
        cells += [Cell(number(value, report.digits), value) for value in beside]
        shares = [by_run.get(row.run, float("nan")) for by_run in judged.values()]
        cells += [Cell(number(share, 2), share) for share in shares]
        rows.append([*cells, Cell(str(row.topics), float(row.topics))])
    caption = f"Runs by {measure}"
    how = board.how()
    notes = [f"{how[0].upper()}{how[1:]}.", "Bold: the best mean."]
    own = [remark for remark in board.remarks if remark not in report.comparison.remarks]
    notes += [f"{remark[0].upper()}{remark[1:]}." for remark in own]
    if report.comparison.groups:
        notes.append("The runs of a group are listed one by one; the comparison treats each group as one system.")
    return Table(head, rows, names=1, caption=caption, notes=notes)


def _best(report: Report, measure: str, column: list[float]) -> float:
    defined = [value for value in column if value == value]
    return (min if report.lower_is_better(measure) else max)(defined, default=float("nan"))


def comparison_table(report: Report) -> Table:
    """One row per pair and measure."""
    extra = [name for name in report.comparison.tests if name != report.comparison.test]
    percent = f"{100 * report.comparison.level:g} %"
    by = report.comparison.weighed_by
    size = "unweighted" if by else "d_z"
    head = ["measure", "one", "other", "mean of one", "mean of other", "difference", f"{percent} interval"]
    head += [size, f"{size} interval", "up / equal / down", "p", "corrected p", "verdict"]
    head += [f"p, {name}" for name in extra]
    rows = [_pair_row(report, pair, extra) for pair in report.listed]
    keys = [{"measure": pair.measure, "one": pair.one, "other": pair.other} for pair in report.listed]
    beside = f"Everything is weighted by {by}, except the unweighted difference" if by else ""
    beside = beside or "d_z: the mean difference in standard deviations"
    notes = [
        "Difference: other − one. Up, equal, down: the topics on which other is better, equal, worse. "
        f"{beside}. Verdict, and a star at the difference: by {decided(report)}."
    ]
    if any(map(report.comparison.contradictory, report.listed)):
        notes.append("†: the mean and the test point apart.")
    if len(rows) < len(report.pairs):
        few = f"Only the {len(rows):,} pairs with {report.reference} are listed"
        notes.append(f"{few}; the reports with the endings .csv and .json have all {len(report.pairs):,}.")
    return Table(head, rows, names=3, caption="Each pair of systems", notes=notes, keys=keys)


def _pair_row(report: Report, pair: RunPair, extra: list[str]) -> list[Cell]:
    digits = report.digits
    cells = [Cell(pair.measure), Cell(pair.one), Cell(pair.other)]
    cells += [Cell(number(mean, digits), mean) for mean in (pair.mean_one, pair.mean_other)]
    star = "*" if report.better(pair.measure, pair.one, pair.other) else ""
    star = "†" if report.comparison.contradictory(pair) else star
    cells.append(Cell(number(pair.difference, digits, True), pair.difference, marks=star))
    cells += [Cell(_span(pair.low, pair.high, digits), pair.low), *_beside(report, pair)]
    cells += [Cell(f"{pair.wins} / {pair.ties} / {pair.losses}", float(pair.wins))]
    cells += [p_cell(pair.p), p_cell(pair.corrected), Cell(verdict(report, pair))]
    others = [pair.outcomes[name].p if name in pair.outcomes else float("nan") for name in extra]
    return [*cells, *map(p_cell, others)]


def _beside(report: Report, pair: RunPair) -> list[Cell]:
    """d_z with its interval, or the unweighted difference if topics are weighted."""
    alike, digits = pair.unweighted, report.digits
    if not report.comparison.weighed_by:
        span = Cell(_span(pair.effect_low, pair.effect_high, 2), pair.effect_low)
        return [Cell(number(pair.effect, 2, True), pair.effect), span]
    if alike is None:
        return [Cell("–"), Cell("–")]
    span = Cell(_span(alike.low, alike.high, digits), alike.low)
    return [Cell(number(alike.difference, digits, True), alike.difference), span]


def _span(low: float, high: float, digits: int) -> str:
    """An interval; an infinite end is shown as open."""
    if low != low:
        return "–"
    start = "(−∞" if low == -math.inf else f"[{number(low, digits, True)}"
    return f"{start}, {'∞)' if high == math.inf else f'{number(high, digits, True)}]'}"


def p_cell(p: float) -> Cell:
    """A p-value as a cell."""
    return Cell("–" if p != p else p_value(p).removeprefix("= "), p)


VERDICTS = {
    "~": "mean and test point apart",
    "c": "not settled (correction)",
    "i": "not settled (test and interval differ)",
    "h": "not settled (test and interval differ)",
    "": "not settled",
    "+": "▲ other better",
    "-": "▼ one better",
}
"""What a mark of the table of pairs means."""


def verdict(report: Report, pair: RunPair) -> str:
    """Which system is better, or that it is undecided; never that two are equal."""
    sign = mark(report.comparison, pair)
    if sign == "?":
        return pair.reason or "no p-value"
    return VERDICTS.get(sign, sign)  # the mark of a one-sided question is its answer


def cost_table(efficiency: Efficiency, digits: int = 4) -> Table:
    """One row per run: its score, its costs, and whether it is on the Pareto front."""
    table = efficiency.table(Layout(digits=digits, undefined="–", medium="html"))
    return table._replace(caption=f"{efficiency.measure} and what the runs cost")


def inputs_table(report: Report) -> Table:
    """One row per input file, with its hash."""
    rows = [
        [Cell(file.role), Cell(file.path), Cell(f"{file.size:,}", file.size), Cell(file.sha256)]
        for file in report.inputs
    ]
    return Table(["what", "file", "bytes", "SHA-256"], rows, names=2, caption="Files, as they were given")


QUERY = 60  # letters of a query within a sentence
NAMED = re.compile(r"'([^']+)'(?! \()")  # a quoted topic id without its query


def summary(report: Report) -> list[str]:
    """A sentence on what was compared, then one or two per measure."""
    comparison = report.comparison
    basis = comparison.scores.judgments_in_words()
    what = f"{_count(len(report.systems), 'system')} on {basis} by {name_list(report.measures)}"
    against = f", against {name_list(comparison.baselines)}" if comparison.baselines else ""
    few = too_few_topics(comparison.scores, len(report.systems), comparison.alpha)
    doubt = [f"There are {few}."] if few else []
    leaders = (_leader(report, measure) for measure in report.measures)
    return [f"This report compares {what}{against}.", *doubt, *leaders]


def limits(report: Report) -> list[list[str]]:
    """The cautions by kind, each once; topics with their queries."""
    kinds: dict[str, dict[str, None]] = {}
    for caution in report.comparison.cautions:
        kinds.setdefault(caution.code, {})[with_query(report, caution.text)] = None
    return list(map(list, kinds.values()))


def with_query(report: Report, text: str) -> str:
    """A sentence whose topic ids are followed by their queries, if known."""

    def followed(name: re.Match[str]) -> str:
        query = first_words(report.queries.get(name[1], ""), QUERY)
        return f"{name[0]} ({query})" if query else name[0]

    return NAMED.sub(followed, text) if report.queries else text


def _leader(report: Report, measure: str) -> str:
    turn = 1 if report.lower_is_better(measure) else -1
    scored = [name for name in report.systems if report.mean(name, measure) == report.mean(name, measure)]
    if not scored:
        return f"By {measure} no system has a value."
    order = sorted(scored, key=lambda name: turn * report.mean(name, measure))
    leader = order[0]
    if len(order) > 1 and report.mean(leader, measure) == report.mean(order[-1], measure):
        return f"By {measure}, all systems have the same mean, {number(report.mean(leader, measure), report.digits)}."
    by = f" by {report.comparison.weighed_by}" if report.comparison.weighed_by else ""
    lead = "lowest (lower is better)" if report.lower_is_better(measure) else "highest"
    start = f"By {measure}, {leader} has the {lead} mean{by}, {number(report.mean(leader, measure), report.digits)}"
    rivals = {name: pair for name in order[1:] if (pair := report.pair(measure, name, leader)) is not None}
    beaten = [name for name in rivals if report.better(measure, name, leader) > 0]
    contradictory = [name for name, pair in rivals.items() if report.comparison.contradictory(pair)]
    open_ = [name for name in rivals if name not in beaten]
    if len(rivals) == 1:
        [pair] = rivals.values()
        return f"{start}: {report.sentence(pair)}."
    if not rivals:
        return f"{start}."
    if not open_:
        return f"{start}; it is significantly better than each of the {_count(len(rivals), 'system')} compared with it."
    if not beaten:
        return f"{start}, but it is significantly better than none of the {_count(len(rivals), 'system')} compared with it."
    open_ = [name for name in open_ if name not in contradictory]
    few = f" ({name_list(open_)})" if len(open_) <= 4 else ""
    rest = [f"against {len(open_)}{few} the data do not settle it"] if open_ else []
    rest += [f"against {len(contradictory)} the mean and the test point apart"] if contradictory else []
    return (
        f"{start}; it is significantly better than {len(beaten)} of the {len(rivals)} systems compared with it, "
        f"and {' and '.join(rest)}."
    )


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"

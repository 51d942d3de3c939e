"""The tables of a report as cells, once for HTML, Markdown, LaTeX and CSV; how they look is the writers' affair.

Systems carry letters (a, b, c …), and a raised letter says "significantly better than that one", as papers do.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cranfield.answer import Cell, Layout, Table
from cranfield.columns import p_value
from cranfield.stats.correction import CORRECTIONS
from cranfield.stats.testing import TESTS_OF_MANY

if TYPE_CHECKING:
    from cranfield.compare.efficiency import Efficiency
    from cranfield.compare.pair import Pair
    from cranfield.report.reporting import Report


ABC = "abcdefghijklmnopqrstuvwxyz"


def number(value: float, digits: int, signed: bool = False) -> str:
    """A number as text, with a true minus sign; a dash where there is none.

    >>> number(0.12345, 3), number(-0.1, 2, signed=True), number(float("nan"), 2)
    ('0.123', '−0.10', '–')
    """
    if value != value:
        return "–"
    return f"{value:{'+' if signed else ''}.{digits}f}".replace("-", "−")


def letter(i: int) -> str:
    """The letter of the i-th system: a … z, then aa, ab …"""
    return ABC[i] if i < len(ABC) else letter(i // len(ABC) - 1) + ABC[i % len(ABC)]


def leaderboard_table(report: Report) -> Table:
    """A row a system: letter, name, and each measure's mean with what it is significantly better than."""
    systems = report.systems
    letters = {name: letter(i) for i, name in enumerate(systems)}
    columns = [[report.mean(name, measure) for name in systems] for measure in report.measures]
    best = [_best(report, measure, column) for measure, column in zip(report.measures, columns, strict=True)]
    rows = []
    for s, name in enumerate(systems):
        cells = [Cell(letters[name], float(s)), Cell(name)]
        for m, measure in enumerate(report.measures):
            value = columns[m][s]
            beaten = [letters[o] for o in systems if o != name and report.better(measure, o, name) > 0]
            top = len(systems) > 1 and value == best[m]
            cells.append(
                Cell(number(value, report.digits), value, top, " ".join(beaten) if _long(letters) else "".join(beaten))
            )
        rows.append([*cells, *(Cell(number(mean, report.digits), mean) for mean in _unweighted(report, name))])
    raised = f"significantly better than the system of that letter ({decided(report)})"
    notes = [f"Raised letters: {raised}.", "Bold: the best mean."]
    scores, weighed = report.comparison.scores, bool(report.comparison.weighed_by)
    alike = map(scores.measures_alike, report.measures) if weighed else ()
    head = ["", "run", *map(scores.measures_by, report.measures), *alike]
    return Table(head, rows, names=2, caption="Mean over topics", notes=notes)


def _unweighted(report: Report, system: str) -> list[float]:
    """Where topics are weighed, a system's means as if they were not."""
    if not report.comparison.weighed_by:
        return []
    return [report.comparison.mean(system, measure) for measure in report.measures]


def _long(letters: dict[str, str]) -> bool:
    return any(len(each) > 1 for each in letters.values())


def decided(report: Report) -> str:
    """By which test, after which correction, at which level."""
    comparison = report.comparison
    correction = CORRECTIONS[comparison.correction].short
    corrected = f"{correction} over {comparison.family}" if correction else "uncorrected"
    if comparison.test in TESTS_OF_MANY:
        corrected = "all systems at once"
    return f"{comparison.test} test, {corrected}, α = {comparison.alpha:g}"


def board_table(report: Report, measure: str) -> Table:
    """A row a run, ranked by a measure: its mean, how sure the rank is, the means of the others, how much is judged."""
    board = report.leaderboards[measure]
    geometric = [name for name in board.rows[0].gmean if board.scores.measures[name].name == "AP"]
    judged, micro = report.comparison.judged, report.comparison.micro
    others = [name for name in board.measures if name != measure]
    first, *further = map(board.scores.measures_alike, [measure, *others])
    head = ["run", first, "rank", "ranks", "first in redraws", "tier", *further]
    head += [*map(board.scores.measures_by, board.rows[0].weighted), *(f"micro({name})" for name in micro)]
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
        beside = [*row.weighted.values(), *(known.get(row.run, float("nan")) for known in micro.values())]
        beside += [row.gmean[name] for name in geometric]
        cells += [Cell(number(value, report.digits), value) for value in beside]
        shares = [known.get(row.run, float("nan")) for known in judged.values()]
        cells += [Cell(number(share, 2), share) for share in shares]
        rows.append([*cells, Cell(str(row.topics), float(row.topics))])
    caption = f"Runs by {measure}"
    how = board.how()
    notes = [f"{how[0].upper()}{how[1:]}.", "Bold: the best mean."]
    own = [remark for remark in board.remarks if remark not in report.comparison.remarks]
    notes += [f"{remark[0].upper()}{remark[1:]}." for remark in own]
    if report.comparison.groups:
        notes.append("Runs of a group stand here one by one; the comparison takes each group as one system.")
    return Table(head, rows, names=1, caption=caption, notes=notes)


def _best(report: Report, measure: str, column: list[float]) -> float:
    known = [value for value in column if value == value]
    return (min if report.lower_is_better(measure) else max)(known, default=float("nan"))


def comparison_table(report: Report) -> Table:
    """A row a pair and measure."""
    extra = [name for name in report.comparison.tests if name != report.comparison.test]
    percent = f"{100 * report.comparison.level:g} %"
    head = [
        "measure",
        "one",
        "other",
        "mean of one",
        "mean of other",
        "difference",
        f"{percent} interval",
        *(("unweighted", "unweighted interval") if report.comparison.weighed_by else ("d_z", "d_z interval")),
    ]
    head += ["up / equal / down", "p", "corrected p", "verdict", *(f"p, {name}" for name in extra)]
    rows = [_pair_row(report, pair, extra) for pair in report.listed]
    keys = [{"measure": pair.measure, "one": pair.one, "other": pair.other} for pair in report.listed]
    by = report.comparison.weighed_by
    beside = (
        f"All is by {by}, but for the difference unweighted"
        if by
        else "d_z: the mean difference in standard deviations"
    )
    notes = [
        "Difference: other − one. Up, equal, down: the topics on which other is better, equal, worse. "
        f"{beside}. Verdict, and a star at the difference: by {decided(report)}."
    ]
    if any(map(report.comparison.torn, report.listed)):
        notes.append("†: the mean and the test point apart.")
    if len(rows) < len(report.pairs):
        few = f"Of {len(report.pairs):,} pairs, the {len(rows):,} with {report.reference}"
        notes.append(f"{few}; the reports with the endings .csv and .json hold all.")
    return Table(head, rows, names=3, caption="Each pair of systems", notes=notes, keys=keys)


def _pair_row(report: Report, pair: Pair, extra: list[str]) -> list[Cell]:
    digits = report.digits
    cells = [Cell(pair.measure), Cell(pair.one), Cell(pair.other)]
    cells += [Cell(number(mean, digits), mean) for mean in (pair.mean_one, pair.mean_other)]
    star = "*" if report.better(pair.measure, pair.one, pair.other) else ""
    star = "†" if report.comparison.torn(pair) else star
    cells += [
        Cell(number(pair.difference, digits, True), pair.difference, marks=star),
        Cell(_span(pair.low, pair.high, digits), pair.low),
    ]
    cells += _beside(report, pair)
    cells += [Cell(f"{pair.wins} / {pair.ties} / {pair.losses}", float(pair.wins))]
    cells += [p_cell(pair.p), p_cell(pair.corrected), Cell(verdict(report, pair))]
    others = [pair.outcomes[name].p if name in pair.outcomes else float("nan") for name in extra]
    return [*cells, *map(p_cell, others)]


def _beside(report: Report, pair: Pair) -> list[Cell]:
    """d_z with its interval, or of weighed topics the difference as if they were not."""
    alike, digits = pair.unweighted, report.digits
    if not report.comparison.weighed_by:
        span = Cell(_span(pair.effect_low, pair.effect_high, 2), pair.effect_low)
        return [Cell(number(pair.effect, 2, True), pair.effect), span]
    if alike is None:
        return [Cell("–"), Cell("–")]
    span = Cell(_span(alike.low, alike.high, digits), alike.low)
    return [Cell(number(alike.difference, digits, True), alike.difference), span]


def _span(low: float, high: float, digits: int) -> str:
    """An interval; open where an end has no bound."""
    if low != low:
        return "–"
    start = "(−∞" if low == -math.inf else f"[{number(low, digits, True)}"
    return f"{start}, {'∞)' if high == math.inf else f'{number(high, digits, True)}]'}"


def p_cell(p: float) -> Cell:
    """A p-value as a cell."""
    return Cell("–" if p != p else p_value(p).removeprefix("= "), p)


def verdict(report: Report, pair: Pair) -> str:
    """Who is better, or that it is open; never that two are equal."""
    if pair.corrected != pair.corrected:
        return pair.reason or "no p-value"
    if report.comparison.torn(pair):
        return "mean and test point apart"
    if report.comparison.one_sided:
        return report.comparison.answer(pair)
    ahead = report.better(pair.measure, pair.one, pair.other)
    apart = "not settled (test and interval differ)"
    why = {"correction": "not settled (correction)", "interval": apart, "held": apart}
    if not ahead:
        return why.get(report.comparison.doubt(pair), "not settled")
    return ("", "▲ other better", "▼ one better")[ahead]


def cost_table(efficiency: Efficiency, digits: int = 4) -> Table:
    """A row a run: its score, what was measured, and whether it is on the front."""
    table = efficiency.table(Layout(digits=digits, undefined="–", medium="html"))
    return table._replace(caption=f"{efficiency.measure} and what the runs cost")


def inputs_table(report: Report) -> Table:
    """A row a file that was read, with its hash."""
    rows = [
        [Cell(file.role), Cell(file.path), Cell(f"{file.size:,}", file.size), Cell(file.sha256)]
        for file in report.inputs
    ]
    return Table(["what", "file", "bytes", "SHA-256"], rows, names=2, caption="Files, as they were given")

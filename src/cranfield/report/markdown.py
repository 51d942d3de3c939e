"""The report in Markdown, for a wiki, an issue or a pull request: summary, leaderboards, pairs, and how it was made."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cranfield.report.efficiency_chart import cost_table
from cranfield.report.tables import Table, board_table, comparison_table
from cranfield.report.words import summary
from cranfield.scores import conventions_in_words

if TYPE_CHECKING:
    from cranfield.compare.pair import Pair
    from cranfield.report.report import Report


def markdown(report: Report) -> str:
    """The whole text."""
    parts = [f"# {_text(report.title)}", *(_text(said) for said in summary(report))]
    cautions = list(dict.fromkeys(caution.text for caution in report.comparison.cautions))
    if cautions:
        parts += ["## Before you rely on this", _list(cautions)]
    notes = [*report.comparison.remarks, *report.comparison.scores.notes()]
    if notes:
        parts.append(_list(notes))
    if report.leaderboards:
        parts.append("## Leaderboard")
    for measure in report.leaderboards:
        parts += [f"### By {_text(measure)}", *_table(board_table(report, measure))]
    parts += ["## Comparison", *_table(comparison_table(report))]
    parts += [_list([f"{report.sentence(pair)}." for pair in _spoken(report)])]
    costs = report.comparison.efficiency
    if costs is not None:
        parts += ["## Effectiveness and cost", *_table(cost_table(costs, report.digits))]
        parts += [_list(costs.notes())] if costs.notes() else []
    return "\n\n".join([*parts, *_made(report)]) + "\n"


def _spoken(report: Report) -> list[Pair]:
    """The pairs that get a sentence: those with the reference."""
    return [pair for pair in report.listed if report.reference in (pair.one, pair.other)]


def _made(report: Report) -> list[str]:
    comparison = report.comparison
    settings = (
        f"{', '.join(comparison.tests)}; {comparison.correction} over {comparison.family}; α = {comparison.alpha:g}; "
        f"{100 * comparison.level:g} % intervals ({comparison.interval}); {comparison.resamples:,} resamples; "
        f"seed {comparison.seed}"
    )
    facts = [f"Statistics: {settings}.", f"Conventions: {conventions_in_words(comparison.scores.conventions)}."]
    if report.versions:
        facts.append(f"Versions: {', '.join(f'{name} {version}' for name, version in report.versions.items())}.")
    parts = ["## How this was made", _list(facts)]
    if report.command:
        parts.append(f"This command makes this file again:\n\n```\n{_legible(report.command)}\n```")
    if report.inputs:
        head = "| what | file | bytes | SHA-256 |\n|---|---|---:|---|\n"
        rows = [f"| {f.role} | {_text(f.path)} | {f.size:,} | `{f.sha256}` |" for f in report.inputs]
        parts.append(head + "\n".join(rows))
    return parts


def _table(table: Table) -> list[str]:
    aligned = ["---" if all(row[i].value is None for row in table.rows) else "---:" for i in range(len(table.head))]
    lines = [[_text(name) or " " for name in table.head], aligned]
    for row in table.rows:
        shown = [f"**{_text(cell.text)}**" if cell.best else _text(cell.text) for cell in row]
        lines.append(
            [f"{text} <sup>{cell.marks}</sup>" if cell.marks else text for text, cell in zip(shown, row, strict=True)]
        )
    return ["\n".join(f"| {' | '.join(line)} |" for line in lines), *(_text(note) for note in table.notes)]


def _list(lines: list[str]) -> str:
    return "\n".join(f"- {_text(line)}" for line in lines)


def _text(text: str) -> str:
    """Text that Markdown leaves as it is.

    >>> _text("a_b|c <d>")
    'a\\\\_b\\\\|c \\\\<d\\\\>'
    """
    return re.sub(r"([\\\\`*_{}\[\]<>|#~])", r"\\\1", _legible(text))


def _legible(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()

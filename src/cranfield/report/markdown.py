"""The report in Markdown, for a wiki, an issue or a pull request: summary, leaderboards, pairs, and how it was made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.answer import Lines, markdown, markdown_table, markdown_text
from cranfield.columns import legible
from cranfield.report.tables import board_table, comparison_table, cost_table, inputs_table
from cranfield.report.words import summary
from cranfield.scores import conventions_in_words

if TYPE_CHECKING:
    from cranfield.answer import Table
    from cranfield.compare.pair import Pair
    from cranfield.report.reporting import Report


def to_markdown(report: Report) -> str:
    """The whole text."""
    parts = [f"# {markdown_text(report.title)}", markdown(summary(report))]
    cautions = list(dict.fromkeys(caution.text for caution in report.comparison.cautions))
    if cautions:
        parts += ["## Before you rely on this", markdown([Lines(cautions)])]
    parts.append(markdown([Lines([*report.comparison.remarks, *report.comparison.scores.notes()])]))
    if report.leaderboards:
        parts.append("## Leaderboard")
    for measure in report.leaderboards:
        parts += [f"### By {markdown_text(measure)}", *_table(board_table(report, measure))]
    parts += ["## Comparison", *_table(comparison_table(report))]
    parts.append(markdown([Lines([f"{report.sentence(pair)}." for pair in _spoken(report)])]))
    costs = report.comparison.efficiency
    if costs is not None:
        parts += [
            "## Effectiveness and cost",
            *_table(cost_table(costs, report.digits)),
            markdown([Lines(costs.notes())]),
        ]
    return "\n\n".join(filter(None, [*parts, *_made(report)])) + "\n"


def _table(table: Table) -> list[str]:
    return [markdown_table(table), *map(markdown_text, table.notes)]


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
    parts = ["## How this was made", markdown([Lines(facts)])]
    if report.command:
        parts.append(f"This command makes this file again:\n\n```\n{legible(report.command)}\n```")
    if report.inputs:
        parts.append(markdown_table(inputs_table(report)))
    return parts

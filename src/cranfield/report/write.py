"""A report as the bytes of a file, by the file's ending."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.answer import as_json, plain
from cranfield.errors import ConventionError

if TYPE_CHECKING:
    from cranfield.report.report import Report


TEXT_ENDINGS = ("html", "md", "tex", "json", "csv")
CHART_ENDINGS = ("svg", "png", "pdf", "vl.json")


def written(
    report: Report,
    ending: str,
    chart: str | None = None,
    pair: tuple[str, str] | None = None,
    *,
    spreadsheet: bool = False,
    latex: str = "both",
) -> bytes:
    """The report as html, md, tex, json or csv; or one `chart` of it as svg, png, pdf or vl.json.

    `latex` says what of it a tex file holds: means, pairs or both.
    """
    if ending not in (*TEXT_ENDINGS, *CHART_ENDINGS):
        known = ", ".join(f".{each}" for each in (*TEXT_ENDINGS, *CHART_ENDINGS))
        raise ConventionError(f"a report is written as {known}, found .{ending}")
    if (chart is not None) != (ending in CHART_ENDINGS):
        endings = ", ".join(f".{each}" for each in CHART_ENDINGS)
        raise ConventionError(f"a chart (--chart NAME) and the endings {endings} go together, found .{ending}")
    if chart is not None:
        from cranfield.report.charts import rendered
        from cranfield.report.figures import figure

        spec = figure(report, chart, None, *(pair or (None, None)))
        return rendered(spec, "json" if ending == "vl.json" else ending)
    if ending == "csv":
        return report.comparison.to_csv(spreadsheet=spreadsheet).encode("utf-8", "surrogateescape")
    return _text(report, ending, latex).encode("utf-8", "backslashreplace")


def _text(report: Report, ending: str, part: str) -> str:
    if ending == "html":
        from cranfield.report.html import page

        return page(report)
    if ending == "md":
        from cranfield.report.markdown import to_markdown

        return to_markdown(report)
    if ending == "tex":
        from cranfield.report.latex import latex

        return latex(report, part)
    return as_json(plain(to_dict(report)), ascii_only=True) + "\n"


def to_dict(report: Report) -> dict[str, Any]:
    """All of it as plain values; what does not exist is None."""
    from cranfield.report.words import summary

    return {
        "title": report.title,
        "command": report.command,
        "versions": dict(report.versions),
        "inputs": [vars(file) for file in report.inputs],
        "summary": summary(report),
        "comparison": report.comparison.to_dict(per_topic=True),
        "leaderboards": {measure: board.to_dict() for measure, board in report.leaderboards.items()},
        "curves": None if report.curves is None else report.curves.to_dict(),
    }

r"""The bytes of a report in each file format: Markdown, LaTeX, JSON, CSV, charts; the file's ending decides.

Markdown is for a wiki, an issue or a pull request. LaTeX is a fragment for `\input` with booktabs tables: the means, the
pairs, or both, and the costs of the runs if they are known. A comment on top says which packages it needs. It compiles
with every LaTeX engine: letters without a LaTeX command appear as they are in Unicode engines and as numbers in pdfTeX.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError
from cranfield.base.results import Cell, Layout, Lines, Table, as_json, markdown, markdown_table, markdown_text, plain
from cranfield.base.text_layout import in_line, legible
from cranfield.evaluation.scores import conventions_in_words
from cranfield.reports.tables import (
    board_table,
    comparison_table,
    cost_table,
    decided,
    inputs_table,
    leaderboard_table,
    letter,
    summary,
)

if TYPE_CHECKING:
    from cranfield.reports.report_content import Report


NAMES = "backslash asciicircum asciitilde less greater bar"
LETTERS = "char34 dots ss ae AE o O oe OE l L i S"
SYMBOLS = "times pm cdot leq geq to uparrow downarrow infty dagger"
SPECIAL = {
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
    **{sign: rf"\text{name}{{}}" for sign, name in zip("\\^~<>|", NAMES.split(), strict=True)},
    **{sign: rf"\{name}{{}}" for sign, name in zip('"…ßæÆøØœŒłŁı§', LETTERS.split(), strict=True)},
    **{sign: rf"$\{name}$" for sign, name in zip("×±·≤≥→▲▼∞†", SYMBOLS.split(), strict=True)},
    **dict(zip("−–—°‘’“”", ("$-$", "--", "---", r"$^\circ$", "`", "'", "``", "''"), strict=True)),
}
COMBINING = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
ACCENTS = dict(zip(COMBINING, "`'^~=u.\"rHvc", strict=True))  # those with a LaTeX command in every font
GREEK = (  # Greek letters with a command; the other capitals look like Latin ones
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi omega "
    "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
).split()
PARTS = ("means", "pairs", "both")


def latex(report: Report, part: str = "both") -> str:
    """The whole file, or only the means or the pairs."""
    if part not in PARTS:
        raise ConventionError(f"latex must be one of {', '.join(PARTS)}, got {part!r}")
    tables = []
    if part != "pairs":
        tables.append(_floating(means_table(report), "tab:runs"))
    pairs = _narrow(report, comparison_table(report))
    if part != "means":
        tables.append(_pairs(pairs))
    costs = report.comparison.efficiency
    if costs is not None and part == "both":
        tables.append(_floating(cost_table(costs, report.digits), "tab:costs"))
    return "\n\n".join(["\n".join(_top(report, part != "means" and len(pairs.rows) > LONG)), *tables]) + "\n"


def _top(report: Report, long: bool) -> list[str]:
    """Comments that say what the file needs and how it was made."""
    needs = "needs \\usepackage{booktabs}" + (" and \\usepackage{longtable}" if long else "")
    lines = [f"% {_comment(report.title)}; {needs}"]
    if report.command:
        lines.append(f"% {_comment(report.command)}")
    return [*lines, *(f"% {file.sha256}  {_comment(file.path)}" for file in report.inputs)]


def means_table(report: Report) -> Table:
    """One row per system. Raised letters mark the systems that it beats; with baselines, only baselines."""
    table = leaderboard_table(report)
    baselines = {name: letter(i) for i, name in enumerate(report.comparison.baselines)}
    if not baselines:
        return table
    rows = []
    for name, (_, label, *cells) in zip(report.systems, table.cells(), strict=True):
        marked = [
            cell._replace(marks=_against(report, measure, name, baselines))
            for cell, measure in zip(cells, report.measures, strict=False)
        ]
        rows.append([Cell(baselines.get(name, "")), label, *marked, *cells[len(marked) :]])  # unweighted means last
    sense = "baselines that the run beats significantly; after ▼, baselines that beat it"
    notes = [f"Raised letters: {sense} ({decided(report)}).", *table.notes[1:]]
    return table._replace(rows=rows, notes=notes)


def _against(report: Report, measure: str, name: str, baselines: dict[str, str]) -> str:
    """The letters of the baselines that a system beats, then of those that beat it."""
    results = {sign: report.better(measure, each, name) for each, sign in baselines.items() if each != name}
    worse = "".join(sign for sign, result in results.items() if result < 0)
    return "".join(sign for sign, result in results.items() if result > 0) + (f"▼{worse}" if worse else "")


LONG = 40  # rows per page
DROPPED = ("verdict", "d_z interval", "unweighted interval")


def _floating(table: Table, label: str) -> str:
    caption = " ".join([f"{escaped(table.caption)}.", *map(escaped, table.notes)])
    lines = [r"\begin{table}", r"\centering", r"\small", rf"\caption{{{caption}}}", rf"\label{{{label}}}"]
    lines += [rf"\begin{{tabular}}{{{_columns(table)}}}", *_head(table), *map(_line, table.cells())]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _pairs(table: Table) -> str:
    """The pairs as a floating table, or as a longtable if there are many."""
    if len(table.rows) <= LONG:
        return _floating(table, "tab:pairs")
    caption = f"{escaped(table.caption)}. {' '.join(escaped(note) for note in table.notes)}"
    lines = [rf"\begin{{longtable}}{{{_columns(table)}}}", rf"\caption{{{caption}}}", r"\label{tab:pairs} \\"]
    lines += [*_head(table), r"\endfirsthead", *_head(table), r"\endhead", r"\bottomrule", r"\endfoot"]
    return "\n".join([*lines, *map(_line, table.cells()), r"\end{longtable}"])


def _head(table: Table) -> list[str]:
    return [r"\toprule", _line([Cell(name) for name in table.head]), r"\midrule"]


def _narrow(report: Report, table: Table) -> Table:
    """The pairs without columns of the table of means and without the verdict, which a star shows.

    If there are too many for a page, only the pairs with the reference.
    """
    columns = [i for i, name in enumerate(table.head) if not name.startswith("mean of") and name not in DROPPED]
    notes = [
        table.notes[0].replace("Verdict, and a star at the difference: by", "A star: the two differ by"),
        *(note for note in table.notes if note.startswith("†")),
    ]
    rows = table.rows
    if len(rows) > LONG:
        pairs = zip(rows, table.keys, strict=True)
        rows = [row for row, key in pairs if report.reference in (key["one"], key["other"])]
        notes.append(f"Only the {len(rows)} pairs with {report.reference} are listed, out of {len(table.rows)}.")
    ones = {key["one"] for key in table.keys if len(table.rows) <= LONG}
    if len(ones) == 1:  # as with one baseline
        columns.remove(list(table.head).index("one"))
        notes.append(f"One is {ones.pop()} throughout.")
    head, rows = [table.head[i] for i in columns], [[row[i] for i in columns] for row in rows]
    return table._replace(head=head, rows=rows, notes=notes)


def _columns(table: Table) -> str:
    """Numbers are right-aligned; left-aligned if some have marks and all have the same length, so that digits line up."""
    columns = []
    for numeric, cells in zip(table.numeric(), zip(*table.cells(), strict=True), strict=True):
        even = any(cell.marks for cell in cells) and len({len(cell.text) for cell in cells}) == 1
        columns.append("r" if numeric and not even else "l")
    return "".join(columns)


def _line(cells: list[Cell]) -> str:
    texts = []
    for cell in cells:
        text = escaped(cell.text)
        text = rf"\textbf{{{text}}}" if cell.best else text
        texts.append(rf"{text}$^{{\mathrm{{{_raised(cell.marks)}}}}}$" if cell.marks else text)
    if texts[0].startswith(("[", "*")):  # after \\ both would start an argument
        texts[0] = "{}" + texts[0]
    return f"{' & '.join(texts)} \\\\"


def _raised(marks: str) -> str:
    return marks.replace(" ", ",").replace("†", "\\dagger").replace("▼", "\\downarrow ")


def escaped(text: str) -> str:
    r"""Text that LaTeX prints literally.

    >>> print(escaped("dense_v2 & 95 %"), escaped("Zoë--β"))
    dense\_v2 \& 95 \% Zo\"{e}-{}-$\beta$
    """
    whole = unicodedata.normalize("NFC", in_line(text))
    apart = re.sub(r"([-`',?!])(?=[-`',])", "\\1\0", whole)  # LaTeX would turn these into a dash or a quotation mark
    return "".join("{}" if each == "\0" else _command(each) for each in re.findall(r"[\0-\x7f]|[^\0-\x7f]", apart))


def _command(char: str) -> str:
    """The LaTeX for a character."""
    if char in SPECIAL or char.isascii():
        return SPECIAL.get(char, char)
    base, accent = (*unicodedata.normalize("NFD", char), "", "")[:2]
    if base.isascii() and accent in ACCENTS and unicodedata.normalize("NFC", base + accent) == char:
        return rf"\{ACCENTS[accent]}{{{base}}}"
    case, _, name = unicodedata.name(char, "").removeprefix("GREEK ").replace("LAMDA", "LAMBDA").partition(" LETTER ")
    greek = {"SMALL": name.lower(), "CAPITAL": name.title()}.get(case, "")
    if greek in GREEK:
        return rf"$\{greek}$"
    return rf"\ifdefined\Umathchar {char}\else[U+{ord(char):04X}]\fi{{}}"  # pdfTeX lacks this letter


def _comment(text: str) -> str:
    return " ".join(legible(text).split())


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
    with_reference = [pair for pair in report.listed if report.reference in (pair.one, pair.other)]
    parts.append(markdown([Lines([f"{report.sentence(pair)}." for pair in with_reference])]))
    costs = report.comparison.efficiency
    if costs is not None:
        parts += ["## Effectiveness and cost", *_table(cost_table(costs, report.digits))]
        parts.append(markdown([Lines(costs.notes())]))
    if report.clicks is not None:
        how = Layout(digits=report.digits, undefined="–", medium="markdown")
        parts += ["## Clicks", markdown([*report.clicks.content(how), Lines(report.clicks.notes())])]
    return "\n\n".join(filter(None, [*parts, *_provenance(report)])) + "\n"


def _table(table: Table) -> list[str]:
    return [markdown_table(table), *map(markdown_text, table.notes)]


def _provenance(report: Report) -> list[str]:
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


TEXT_ENDINGS = ("html", "md", "tex", "json", "csv")
WITH_CLICKS = ("html", "md", "json")  # those that show clicks
CHART_ENDINGS = ("svg", "png", "pdf", "vl.json")


def ending_of(path: str) -> str:
    """The format that a file's ending stands for."""
    ending = "vl.json" if path.endswith(".vl.json") else path.rpartition(".")[2].lower()
    return {"htm": "html", "markdown": "md", "latex": "tex"}.get(ending, ending)


def render(
    report: Report,
    ending: str,
    chart: str | None = None,
    pair: tuple[str, str] | None = None,
    *,
    spreadsheet: bool = False,
    latex: str = "both",
) -> bytes:
    """The report as html, md, tex, json or csv; or one `chart` of it as svg, png, pdf or vl.json.

    `latex` selects the tables of a tex file: means, pairs or both.
    """
    if ending not in (*TEXT_ENDINGS, *CHART_ENDINGS):
        listed = ", ".join(f".{each}" for each in (*TEXT_ENDINGS, *CHART_ENDINGS))
        raise ConventionError(f"a report is written as {listed}, found .{ending}")
    if (chart is not None) != (ending in CHART_ENDINGS):
        endings = ", ".join(f".{each}" for each in CHART_ENDINGS)
        raise ConventionError(f"a chart (--chart NAME) and the endings {endings} go together, found .{ending}")
    if chart is not None:
        from cranfield.reports.charts import rendered
        from cranfield.reports.result_charts import figure

        drawing = figure(report, chart, None, *(pair or (None, None)))
        return rendered(drawing, "json" if ending == "vl.json" else ending)
    if ending == "csv":
        return report.comparison.to_csv(spreadsheet=spreadsheet).encode("utf-8", "surrogateescape")
    return _text(report, ending, latex).encode("utf-8", "backslashreplace")


def _text(report: Report, ending: str, part: str) -> str:
    if ending == "html":
        from cranfield.reports.html import page

        return page(report)
    if ending == "tex":
        return latex(report, part)
    return to_markdown(report) if ending == "md" else as_json(plain(to_dict(report)), ascii_only=True) + "\n"


def to_dict(report: Report) -> dict[str, Any]:
    """The report as plain values; missing values are None."""
    return {
        "title": report.title,
        "command": report.command,
        "versions": dict(report.versions),
        "inputs": [vars(file) for file in report.inputs],
        "summary": summary(report),
        "comparison": report.comparison.to_dict(per_topic=True),
        "leaderboards": {measure: board.to_dict() for measure, board in report.leaderboards.items()},
        "curves": None if report.curves is None else report.curves.to_dict(),
        **({} if report.clicks is None else {"clicks": report.clicks.to_dict()}),
    }

"""The report as LaTeX tables for a paper: booktabs, the best in bold, raised letters for significance.

The file is a fragment for `\\input`: two tables, or three where it is known what the runs cost, with a comment on top
that says what it needs and how it was made. It compiles with any LaTeX engine; letters
outside ASCII other than the few written as commands need a Unicode-aware one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.answer import Cell, Table
from cranfield.columns import in_line, legible
from cranfield.report.tables import comparison_table, cost_table, leaderboard_table

if TYPE_CHECKING:
    from cranfield.report.report import Report


SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "−": "$-$",
    "–": "--",
    "α": r"$\alpha$",
    "×": r"$\times$",
    "▲": r"$\uparrow$",
    "▼": r"$\downarrow$",
    "’": "'",
    "…": r"\dots{}",
    "∞": r"$\infty$",
    "†": r"$\dagger$",
}


def latex(report: Report) -> str:
    """The whole file."""
    board, pairs = leaderboard_table(report), _narrow(report, comparison_table(report))
    needs = "needs \\usepackage{booktabs}" + (" and \\usepackage{longtable}" if len(pairs.rows) > LONG else "")
    lines = [f"% {_comment(report.title)}; {needs}"]
    if report.command:
        lines.append(f"% {_comment(report.command)}")
    lines += [f"% {file.sha256}  {_comment(file.path)}" for file in report.inputs]
    tables = [_floating(board, "tab:runs"), _pairs(pairs)]
    costs = report.comparison.efficiency
    if costs is not None:
        tables.append(_floating(cost_table(costs, report.digits), "tab:costs"))
    return "\n\n".join(["\n".join(lines), *tables]) + "\n"


LONG = 40  # rows that fit on a page
DROPPED = ("verdict", "d_z interval", "unweighted interval")


def _floating(table: Table, label: str) -> str:
    caption = " ".join([f"{escaped(table.caption)}.", *map(escaped, table.notes)])
    lines = [r"\begin{table}", r"\centering", r"\small", rf"\caption{{{caption}}}", rf"\label{{{label}}}"]
    lines += [rf"\begin{{tabular}}{{{_columns(table)}}}", *_head(table), *map(_line, table.cells())]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _pairs(table: Table) -> str:
    """The pairs: a table that floats, or one that runs over pages where they are many."""
    if len(table.rows) <= LONG:
        return _floating(table, "tab:pairs")
    caption = f"{escaped(table.caption)}. {' '.join(escaped(note) for note in table.notes)}"
    lines = [rf"\begin{{longtable}}{{{_columns(table)}}}", rf"\caption{{{caption}}}", r"\label{tab:pairs} \\"]
    lines += [*_head(table), r"\endfirsthead", *_head(table), r"\endhead", r"\bottomrule", r"\endfoot"]
    return "\n".join([*lines, *map(_line, table.cells()), r"\end{longtable}"])


def _head(table: Table) -> list[str]:
    return [r"\toprule", _line([Cell(name) for name in table.head]), r"\midrule"]


def _narrow(report: Report, table: Table) -> Table:
    """The pairs without what the table of means has already, and without the verdict: a star says it.

    Where they are too many for a page, those with the reference stay.
    """
    kept = [i for i, name in enumerate(table.head) if not name.startswith("mean of") and name not in DROPPED]
    notes = [
        table.notes[0].replace("Verdict, and a star at the difference: by", "A star: the two differ by"),
        *(note for note in table.notes if note.startswith("†")),
    ]
    rows = table.rows
    if len(rows) > LONG:
        pairs = zip(rows, table.keys, strict=True)
        rows = [row for row, key in pairs if report.reference in (key["one"], key["other"])]
        notes.append(f"Of {len(table.rows)} pairs, the {len(rows)} with {report.reference}.")
    head, rows = [table.head[i] for i in kept], [[row[i] for i in kept] for row in rows]
    return table._replace(head=head, rows=rows, notes=notes)


def _columns(table: Table) -> str:
    return "".join("r" if numeric else "l" for numeric in table.numeric())


def _line(cells: list[Cell]) -> str:
    shown = []
    for cell in cells:
        text = escaped(cell.text)
        text = rf"\textbf{{{text}}}" if cell.best else text
        shown.append(rf"{text}$^{{\mathrm{{{_raised(cell.marks)}}}}}$" if cell.marks else text)
    if shown[0].startswith("["):  # after \\ a bracket would be an argument
        shown[0] = "{}" + shown[0]
    return f"{' & '.join(shown)} \\\\"


def _raised(marks: str) -> str:
    return marks.replace(" ", ",").replace("†", "\\dagger")


def escaped(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> print(escaped("dense_v2 & 95 %"))
    dense\_v2 \& 95 \%
    """
    return "".join(SPECIAL.get(letter, letter) for letter in in_line(text))


def _comment(text: str) -> str:
    return " ".join(legible(text).split())

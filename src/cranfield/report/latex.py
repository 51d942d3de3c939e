"""The report as LaTeX tables for a paper: booktabs, the best in bold, raised letters for significance.

The file is a fragment for `\\input`: the means, the pairs, or both, and then what the runs cost where that is known, with a
comment on top that says what it needs and how it was made. It compiles with any LaTeX engine and is ASCII as far as
LaTeX has a command for a letter; what it has none for is shown by engines that know Unicode, and by its number in pdfTeX.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from cranfield.answer import Cell, Table
from cranfield.columns import in_line, legible
from cranfield.errors import ConventionError
from cranfield.report.tables import comparison_table, cost_table, decided, leaderboard_table, letter

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
    '"': r"\char34{}",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "×": r"$\times$",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "°": r"$^\circ$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "→": r"$\to$",
    "▲": r"$\uparrow$",
    "▼": r"$\downarrow$",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "…": r"\dots{}",
    "∞": r"$\infty$",
    "†": r"$\dagger$",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
    "§": r"\S{}",
}
ACCENTS = {  # combining characters that every font of LaTeX has a command for
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0327": "c",
}
GREEK = (  # letters that mathematics has a command for; other capitals look as Latin ones do
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi omega "
    "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
).split()
PARTS = ("means", "pairs", "both")


def latex(report: Report, part: str = "both") -> str:
    """The whole file, or the means or the pairs alone."""
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
    """Comments that say what the file needs, and how it was made of what."""
    needs = "needs \\usepackage{booktabs}" + (" and \\usepackage{longtable}" if long else "")
    lines = [f"% {_comment(report.title)}; {needs}"]
    if report.command:
        lines.append(f"% {_comment(report.command)}")
    return [*lines, *(f"% {file.sha256}  {_comment(file.path)}" for file in report.inputs)]


def means_table(report: Report) -> Table:
    """A row a system. Without baselines, a raised letter is a system that is beaten; with them, one of the baselines."""
    table = leaderboard_table(report)
    baselines = {name: letter(i) for i, name in enumerate(report.comparison.baselines)}
    if not baselines:
        return table
    rows = []
    for name, (_, shown, *cells) in zip(report.systems, table.cells(), strict=True):
        marked = [
            cell._replace(marks=_against(report, measure, name, baselines))
            for cell, measure in zip(cells, report.measures, strict=True)
        ]
        rows.append([Cell(baselines.get(name, "")), shown, *marked])
    sense = "significantly better than the baseline of that letter, behind an arrow worse"
    notes = [f"Raised letters: {sense} ({decided(report)}).", *table.notes[1:]]
    return table._replace(rows=rows, notes=notes)


def _against(report: Report, measure: str, name: str, baselines: dict[str, str]) -> str:
    """The letters of the baselines that a system beats, then those that beat it."""
    results = {sign: report.better(measure, each, name) for each, sign in baselines.items() if each != name}
    worse = "".join(sign for sign, result in results.items() if result < 0)
    return "".join(sign for sign, result in results.items() if result > 0) + (f"▼{worse}" if worse else "")


LONG = 40  # rows that fit on a page
DROPPED = ("verdict", "d_z interval")


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
    ones = {key["one"] for key in table.keys if len(table.rows) <= LONG}
    if len(ones) == 1:  # as with one baseline
        kept.remove(list(table.head).index("one"))
        notes.append(f"One is {ones.pop()} throughout.")
    head, rows = [table.head[i] for i in kept], [[row[i] for i in kept] for row in rows]
    return table._replace(head=head, rows=rows, notes=notes)


def _columns(table: Table) -> str:
    """Numbers to the right; but where some carry marks and all are as long, to the left, so that digits stand below digits."""
    columns = []
    for numeric, cells in zip(table.numeric(), zip(*table.cells(), strict=True), strict=True):
        even = any(cell.marks for cell in cells) and len({len(cell.text) for cell in cells}) == 1
        columns.append("r" if numeric and not even else "l")
    return "".join(columns)


def _line(cells: list[Cell]) -> str:
    shown = []
    for cell in cells:
        text = escaped(cell.text)
        text = rf"\textbf{{{text}}}" if cell.best else text
        shown.append(rf"{text}$^{{\mathrm{{{_raised(cell.marks)}}}}}$" if cell.marks else text)
    if shown[0].startswith(("[", "*")):  # after \\ either would be an argument
        shown[0] = "{}" + shown[0]
    return f"{' & '.join(shown)} \\\\"


def _raised(marks: str) -> str:
    return marks.replace(" ", ",").replace("†", "\\dagger").replace("▼", "\\downarrow ")


def escaped(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> print(escaped("dense_v2 & 95 %"), escaped("Zoë--β"))
    dense\_v2 \& 95 \% Zo\"{e}-{}-$\beta$
    """
    whole = unicodedata.normalize("NFC", in_line(text))
    apart = re.sub(r"([-`',?!])(?=[-`',])", "\\1\0", whole)  # which would become a dash or a quotation mark
    return "".join("{}" if each == "\0" else _command(each) for each in re.findall(r"[\0-\x7f]|[^\0-\x7f]", apart))


def _command(char: str) -> str:
    """What LaTeX prints as this character."""
    if char in SPECIAL or char.isascii():
        return SPECIAL.get(char, char)
    base, accent = (*unicodedata.normalize("NFD", char), "", "")[:2]
    if base.isascii() and accent in ACCENTS and unicodedata.normalize("NFC", base + accent) == char:
        return rf"\{ACCENTS[accent]}{{{base}}}"
    case, _, name = unicodedata.name(char, "").removeprefix("GREEK ").replace("LAMDA", "LAMBDA").partition(" LETTER ")
    greek = {"SMALL": name.lower(), "CAPITAL": name.title()}.get(case, "")
    if greek in GREEK:
        return rf"$\{greek}$"
    return rf"\ifdefined\Umathchar {char}\else[U+{ord(char):04X}]\fi{{}}"  # the one engine has no such letter


def _comment(text: str) -> str:
    return " ".join(legible(text).split())

"""Results and their writers. Every function of the library returns a result with tables, sentences and plain values.

A result class defines its content once: `content` for people, `records` for spreadsheets, `plain` for programs. Text,
Markdown, HTML, JSON, CSV and TSV are written here and nowhere else, so a new result has them all, and a new way to write
serves every result.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from cranfield.base.errors import ConventionError
from cranfield.base.parameters import refuse_below
from cranfield.base.text_layout import (
    GAP,
    HIDDEN,
    LEAST_TAIL,
    aligned,
    bare_p,
    cut,
    cut_end,
    folded,
    in_line,
    legible,
    width,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    Style = Callable[[str, str], str]  # (role: "head", "best" or "dim"; text) → text

Row = TypeVar("Row")
WIDEST = 100  # the width of long texts if no line width is set
BEGINS_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
MOST_ROWS, FIRST_ROWS = 60, 20  # a notebook shows tables up to the first number whole, of longer ones the first rows
A_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?|[+-]?(inf|nan)"


class Cell(NamedTuple):
    """A cell of a table: its text, the number to sort by, whether it is the best of its column, and superscript marks.

    `to` is the address of the link on a page.
    """

    text: str
    value: float | None = None
    best: bool = False
    marks: str = ""
    to: str = ""


class Table(NamedTuple):
    """Rows below a head. The first `names` columns hold names; a table that is folded repeats them."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    names: int = 1
    left: int | None = None  # number of left-aligned columns; by default the columns of names
    caption: str = ""
    title: str = ""  # the caption in HTML; in text another sentence introduces the table
    notes: Sequence[str] = ()
    keys: Sequence[Mapping[str, str]] = ()  # data attributes of each row, for the page's script
    tail: bool = False  # in text, the last column is left-aligned: it holds sentences or bars
    rest: str = ""  # in text, the line below the rows: how many more there are
    spare: Sequence[int] = ()  # columns to leave out on a narrow screen, in this order
    spans: Mapping[int, str] = MappingProxyType({})  # in text, lines across all columns, by the row that follows

    def texts(self) -> list[list[str]]:
        """Head and rows as plain text."""
        rows = ([cell if isinstance(cell, str) else cell.text for cell in row] for row in self.rows)
        return [list(self.head), *rows]

    def cells(self) -> list[list[Cell]]:
        """The rows with every cell as a `Cell`."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]

    def numeric(self) -> list[bool]:
        """Whether each column holds numbers."""
        rows = self.cells()
        return [any(row[i].value is not None for row in rows) for i in range(len(self.head))]


def fitted(table: Table, column: int, limit: int | None, least: int = 12) -> Table:
    """The table with the texts of one column cut so that the table fits the width; at least `least` cells remain.

    >>> [row[1] for row in fitted(Table(["topic", "query"], [["101", "blossom end rot"]]), 1, 20).rows]
    ['blossom end…']
    """
    before = _widths(table)[column]
    room = max((limit or WIDEST) - _across(table) + before, least)
    if before <= room:
        return table
    texts = [cut_end(in_line(row[column]), room) for row in table.texts()[1:]]
    rows = [[*row[:column], text, *row[column + 1 :]] for row, text in zip(table.rows, texts, strict=True)]
    return table._replace(rows=rows)


class Lines(NamedTuple):
    """Sentences, one per line; a list in Markdown and HTML. `dim` lines are less important."""

    lines: Sequence[str]
    dim: bool = False


class Drawing(NamedTuple):
    """A drawing of characters below a heading line, with an HTML version if there is one."""

    lead: str
    lines: Sequence[str]
    html: str = ""


class Entries(NamedTuple):
    """Terms and their meanings, below a heading; long meanings are wrapped."""

    entries: Sequence[tuple[str, str]]
    lead: str = ""
    margin: int = 0  # the column where meanings start; 0: after the longest term
    indent: int = 2

    def lines(self, limit: int | None = None) -> list[str]:
        """The lines of all entries; long entries take several lines."""
        entries = [(in_line(word), legible(meaning)) for word, meaning in self.entries]
        margin = self.margin or self.indent + 2 + max((len(word) for word, _ in entries), default=0)
        start = " " * self.indent
        lines = [(f"{start}{word}".ljust(margin) + meaning).rstrip() for word, meaning in entries]
        return [folded(line, limit, margin) for line in lines]


Part: TypeAlias = "Table | Lines | Drawing | Entries | str"  # a str is a paragraph


class Layout(NamedTuple):
    """How to lay out a result: how much of it, how many digits, how wide, for which medium."""

    per_topic: bool = False
    digits: int | None = None  # decimals; None: all
    undefined: str = "-"  # the text for a missing number
    limit: int | None = None  # the maximum width of a line
    every: bool = False  # whether to show all rows
    bars: bool | None = None  # True: draw bars, False: do not, None: where they help
    ascii_only: bool = False
    style: Style | None = None
    medium: str = "text"  # or "markdown", "html"; pages may be read aloud by a screen reader, and show fewer asides
    verbose: bool = False  # whether to state defaults and all limitations too

    @property
    def states_defaults(self) -> bool:
        """Whether to state the method even if it is the default: with `verbose`, and on every page."""
        return self.verbose or self.medium != "text"

    def number(self, value: float | None, signed: bool = False) -> str:
        """A number as text, with all decimals or with `digits` of them.

        >>> Layout(digits=2).number(0.5), Layout().number(0.5), Layout(digits=1).number(float("nan"))
        ('0.50', '0.5', '-')
        """
        if value is None or value != value:
            return self.undefined
        return repr(value) if self.digits is None else f"{value:{'+' if signed else ''}.{self.digits}f}"

    def interval(self, low: float, high: float, signed: bool = False) -> str:
        """An interval in brackets, or the text for a missing number."""
        return self.undefined if low != low else f"[{self.number(low, signed)}, {self.number(high, signed)}]"

    def p_value(self, p: float) -> str:
        """A p-value in a table.

        >>> Layout().p_value(1e-9), Layout().p_value(0.0123), Layout().p_value(float("nan"))
        ('<0.0001', '0.012', '-')
        """
        return self.undefined if p != p else bare_p(p).replace("< ", "<")

    def cell(self, value: float | None, signed: bool = False) -> Cell:
        """A number as a cell."""
        return Cell(self.number(value, signed), value)


class Answer(ABC):
    """The base class of all results. A subclass defines `content`, `plain` and, unless its first table will do, `records`."""

    has_topics: ClassVar[bool] = False  # whether the result holds values per topic
    ascii_json: ClassVar[bool] = False  # whether JSON escapes letters beyond ASCII
    ends_with_notes: ClassVar[bool] = False  # whether the text ends with the notes instead of the limitations
    page_has_charts: ClassVar[bool] = False  # whether an HTML page shows the charts below the tables
    ends_with_limits: ClassVar[bool] = False  # whether the text ends with the limitations by default

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # a dataclass would write one of its own

    @abstractmethod
    def content(self, how: Layout) -> Iterable[Part]:
        """The parts for people, in order: tables, sentences, drawings."""

    @abstractmethod
    def plain(self, how: Layout) -> Any:
        """The whole result as JSON values; missing numbers are None."""

    def records(self, how: Layout) -> Iterable[Sequence[Any]]:
        """A head, then rows, for spreadsheets; by default the first table."""
        return next(part for part in self.content(how) if isinstance(part, Table)).texts()

    def notes(self, shell: bool = False) -> list[str]:
        """Notes on the result, one sentence each; with `shell`, hints name options of the command line."""
        return []

    def limits(self, shell: bool = False, verbose: bool = False) -> list[str]:
        """The limitations of the result, the most serious first. Similar sentences are grouped unless `verbose`."""
        return [f"note: {note}" for note in self.notes(shell)]

    def basis(self) -> list[str]:
        """The basis of the result, such as its conventions, one line each, for formats without room for it, such as CSV."""
        return []

    # for people

    def to_text(
        self,
        per_topic: bool = False,
        digits: int = 4,
        limit: int | None = None,
        style: Style | None = None,
        *,
        every: bool = False,
        bars: bool | None = None,
        ascii_only: bool = False,
        verbose: bool = False,
        limits: bool | None = None,
    ) -> str:
        """Text for a terminal: the verdict, the tables that support it, and the limitations if `limits`.

        Lines are no wider than `limit` if possible; `style` may colour what matters; `verbose` leaves nothing out.
        """
        how = Layout(per_topic, digits, "-", limit, every, bars, ascii_only, style, verbose=verbose)
        parts = [*self._checked_content(how)]
        if self.ends_with_notes:
            parts.append(Lines(self.notes()))
        elif self.ends_with_limits if limits is None else limits:
            parts.append(Lines(limited(self.limits(verbose=verbose), limit, verbose, "verbose=True")))
        return text(parts, limit, style)

    def to_markdown(self, per_topic: bool = False, digits: int = 4, *, every: bool = False) -> str:
        """Markdown for a wiki, an issue or a pull request; the notes come last."""
        how = Layout(per_topic, digits, "–", every=every, bars=False, medium="markdown")
        return markdown([*self._checked_content(how), Lines(self.notes())]) + "\n"

    def to_html(self, per_topic: bool = False, digits: int = 4, *, every: bool = False, page: bool = False) -> str:
        """HTML without style sheet and script: tables, lists and paragraphs; with `page`, a complete page."""
        how = Layout(per_topic, digits, "–", every=every, medium="html")
        parts = [*self._checked_content(how), Lines(self.notes())]
        if not page:
            return html(parts)
        chart = self._chart() if self.page_has_charts else ""
        heading = f"<h1>{html_text(self.page_title())}</h1>" if self.page_title() else ""
        return html_page(self.page_title() or _title(parts) or type(self).__name__, heading + html(parts) + chart)

    def page_title(self) -> str:
        """The title of an HTML page; if empty, the page takes the title of the first table."""
        return ""

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        """The view of a notebook: the chart, then the parts of `to_html`, with long tables cut."""
        parts = [*self._checked_content(Layout(digits=4, undefined="–", medium="html")), Lines(self.notes())]
        return self._chart() + html(map(_cut, parts))

    def _chart(self) -> str:
        """The chart as HTML, drawn by the function that `cranfield.__init__` registers."""
        from cranfield import _draw_chart

        return _draw_chart(self)

    # for programs

    def to_dict(self, per_topic: bool = False, digits: int | None = None) -> Any:
        """Plain values, with all decimals or `digits` of them; missing numbers are None."""
        how = Layout(per_topic, digits)
        self._refuse(how)
        return self.plain(how)

    def to_json(self, per_topic: bool = False, digits: int | None = None) -> str:
        """`to_dict` as JSON; bytes of an id that are not UTF-8 become `\\udcXX`."""
        return as_json(self.to_dict(per_topic, digits), self.ascii_json)

    def to_csv(
        self, per_topic: bool = False, digits: int | None = None, delimiter: str = ",", *, spreadsheet: bool = False
    ) -> str:
        """A header and rows; numbers have all decimals unless `digits` is set, missing numbers are empty.

        Text is unchanged; for a `spreadsheet`, text that looks like a formula gets an apostrophe in front.
        """
        import csv
        import io

        how = Layout(per_topic, digits, "")
        self._refuse(how)
        file = io.StringIO()
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        rows = ([_field(value, how) for value in row] for row in self.records(how))
        writer.writerows([defused(cell) for cell in row] for row in rows) if spreadsheet else writer.writerows(rows)
        return file.getvalue()

    def to_tsv(self, per_topic: bool = False, digits: int | None = None, *, spreadsheet: bool = False) -> str:
        """`to_csv` with tabs."""
        return self.to_csv(per_topic, digits, delimiter="\t", spreadsheet=spreadsheet)

    def _checked_content(self, how: Layout) -> Iterable[Part]:
        self._refuse(how)
        return self.content(how)

    def _refuse(self, how: Layout) -> None:
        refuse_below(0, digits=how.digits)
        if how.per_topic and not self.has_topics:
            raise ConventionError(f"{type(self).__name__} holds no values of single topics")


def _cut(part: Part) -> Part:
    """The part with a long table cut for a notebook."""
    if not isinstance(part, Table) or len(part.rows) <= MOST_ROWS:
        return part
    more = f"… {len(part.rows) - FIRST_ROWS:,} more rows: to_html() and to_csv() have all"
    return part._replace(rows=part.rows[:FIRST_ROWS], keys=part.keys[:FIRST_ROWS], notes=[more, *part.notes])


class Rows(Answer, Generic[Row]):
    """A result that consists of rows and can be iterated like a list."""

    rows: Sequence[Row]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False, repr=False)
class Both(Answer):
    """Two results in one: the second has its own key in JSON and its own caption; the first may be None."""

    first: Answer | None
    second: Answer
    key: str
    caption: str = ""

    def content(self, how: Layout) -> Iterable[Part]:
        if self.first is not None:
            yield from self.first.content(how)
        for part in self.second.content(how):
            yield part._replace(caption=self.caption) if self.caption and isinstance(part, Table) else part

    def plain(self, how: Layout) -> dict[str, Any]:
        first = {} if self.first is None else self.first.plain(how)
        return {**first, self.key: self.second.plain(how)}

    def records(self, how: Layout) -> Iterable[Sequence[Any]]:
        return (self.second if self.first is None else self.first).records(how)

    def notes(self, shell: bool = False) -> list[str]:
        return [*([] if self.first is None else self.first.notes(shell)), *self.second.notes(shell)]


# text

MOST_LIMITS = 5  # lines


def limited(
    sentences: Iterable[str],
    limit: int | None = None,
    verbose: bool = False,
    hint: str = "--verbose",
    most: int = MOST_LIMITS,
) -> list[str]:
    """Sentences in lines of limited width: at most five lines, the last of which counts the rest.

    >>> limited([f"note: {n}" for n in "abcdefg"])
    ['note: a', 'note: b', 'note: c', 'note: d', '3 more: --verbose']
    """
    blocks = [folded(legible(sentence), limit, 2).splitlines() for sentence in sentences]
    if verbose or sum(map(len, blocks)) <= most:
        return [line for block in blocks for line in block]
    room = most - 1
    fitting = next(n for n in range(len(blocks)) if sum(map(len, blocks[: n + 1])) > room)
    if not fitting:  # the first sentence alone is too long
        more = f", and {len(blocks) - 1} more" if blocks[1:] else ""
        lines = blocks[0] if limit is None else folded(" ".join(map(str.strip, blocks[0])), limit - 2, 2).splitlines()
        return [*lines[: room - 1], f"{lines[room - 1]} …", f"the whole of it{more}: {hint}"]
    return [*(line for block in blocks[:fitting] for line in block), f"{len(blocks) - fitting} more: {hint}"]


def text(parts: Iterable[Part], limit: int | None = None, style: Style | None = None) -> str:
    """The parts as text, with a blank line between them."""
    return "\n\n".join(filter(None, (_as_text(part, limit, style) for part in parts)))


def _as_text(part: Part, limit: int | None, style: Style | None) -> str:
    if isinstance(part, Table):
        caption = [folded(legible(part.caption), limit)] if part.caption else []
        rest = [folded(legible(part.rest), limit)] if part.rest else []
        return "\n".join([*caption, *table_lines(part, limit, style), *rest])
    if isinstance(part, Drawing):
        return "\n".join([folded(legible(part.lead), limit), *(_hanging(line, limit) for line in part.lines)])
    if isinstance(part, Entries):
        lead = [style("head", part.lead) if style else part.lead] if part.lead else []
        return "\n".join([*lead, *part.lines(limit)])
    if isinstance(part, str):
        return folded(legible(part), limit)
    lines = "\n".join(_hanging(line, limit) for line in part.lines)
    return style("dim", lines) if style and part.dim and lines else lines


def _hanging(line: str, limit: int | None) -> str:
    """A line, wrapped with a hanging indent of two cells."""
    return folded(legible(line), limit, len(line) - len(line.lstrip()) + 2)


def table_lines(table: Table, limit: int | None = None, style: Style | None = None) -> list[str]:
    """A table as aligned lines."""
    if limit is not None:
        table = narrowed(table, limit)

    def paint(row: int, column: int, cell: str) -> str:
        if style is None or not cell.strip():
            return cell
        if row == 0:
            return style("head", cell)
        of = table.rows[row - 1][column]
        return style("best", cell) if isinstance(of, Cell) and of.best else cell

    texts = [[in_line(cell) for cell in row] for row in table.texts()]
    lines = aligned(texts, table.names, table.left, limit, paint if style else None, table.tail)
    return _with_spans([line.rstrip() for line in lines], table, limit) if table.spans else [*map(str.rstrip, lines)]


def _with_spans(lines: list[str], table: Table, limit: int | None) -> list[str]:
    """The lines of a table with the `spans` inserted."""
    spans = {row: folded(in_line(text), limit, 2) for row, text in table.spans.items()}
    answer = []
    for place, line in enumerate([*lines, ""]):
        row = place % (len(table.rows) + 2) - 1  # a block is the head, the rows, and an empty line
        answer += [spans[row], line] if row in spans else [line]
    return answer[:-1]


SHORT_NAME, SHORTEST_NAME = 20, 12  # the width of names in a table that is too wide


def narrowed(table: Table, limit: int) -> Table:
    """The table fitted to the width if possible: long names are cut, then spare columns removed, then names cut again."""
    table = _cut_names(table, limit, SHORT_NAME)
    left_out: set[int] = set()
    for column in table.spare:
        if _across(table, left_out) > limit:
            left_out.add(column)
    columns = [i for i in range(len(table.head)) if i not in left_out]
    head, rows = [table.head[i] for i in columns], [[row[i] for i in columns] for row in table.rows]
    left = None if table.left is None else sum(i < table.left for i in columns)
    table = table._replace(head=head, rows=rows, left=left, spare=())
    shorter = _cut_names(table, limit, SHORTEST_NAME)
    return shorter if _across(shorter) <= limit else table


def _widths(table: Table) -> list[int]:
    widths = [max(width(in_line(cell)) for cell in column) for column in zip(*table.texts(), strict=True)]
    return [*widths[:-1], min(widths[-1], LEAST_TAIL)] if table.tail else widths


def _across(table: Table, left_out: Collection[int] = ()) -> int:
    """The width of the table's lines without some columns."""
    return sum(cells + len(GAP) for i, cells in enumerate(_widths(table)) if i not in left_out) - len(GAP)


def _cut_names(table: Table, limit: int, least: int) -> Table:
    """The table with long names cut in the middle until it fits; names keep `least` cells and stay distinct."""
    for column in sorted(range(table.names), key=lambda i: -_widths(table)[i]):
        room = max(least, _widths(table)[column] - (_across(table) - limit))
        rows = table.cells()
        names = [in_line(row[column].text) for row in rows]
        while len({cut(name, room) for name in names}) < len(set(names)):
            room += 1
        if any(width(name) > room for name in names):
            for row, name in zip(rows, names, strict=True):
                row[column] = row[column]._replace(text=cut(name, room))
            table = table._replace(rows=rows)
    return table


# Markdown


def markdown(parts: Iterable[Part]) -> str:
    """The parts in Markdown, with a blank line between them; drawings are code blocks."""
    return "\n\n".join(filter(None, map(_as_markdown, parts)))


def _as_markdown(part: Part) -> str:
    if isinstance(part, Table):
        pieces = [markdown_text(part.caption), markdown_table(part), *map(markdown_text, part.notes)]
        return "\n\n".join(filter(None, pieces))
    if isinstance(part, Drawing):
        return f"{markdown_text(part.lead)}\n\n" + "\n".join(f"    {in_line(line)}" for line in part.lines)
    if isinstance(part, Entries):
        entries = (f"- {markdown_text(word)}: {markdown_text(meaning)}" for word, meaning in part.entries)
        return "\n\n".join(filter(None, [markdown_text(part.lead), "\n".join(entries)]))
    if isinstance(part, str):
        return markdown_text(part)
    return "\n".join(f"- {markdown_text(line)}" for line in part.lines)


def markdown_table(table: Table) -> str:
    """A table of pipes; numbers to the right, the best ones bold, marks raised."""
    left = table.names if table.left is None else table.left
    numeric = table.numeric()
    right = numeric if any(numeric) else [i >= left for i in range(len(table.head))]
    heads = [markdown_text(in_line(name)) or " " for name in table.head]
    lines = [heads, ["---:" if each else "---" for each in right]]
    for row in table.cells():
        texts = [markdown_text(in_line(cell.text)) for cell in row]
        bold = [f"**{text}**" if cell.best else text for text, cell in zip(texts, row, strict=True)]
        raised = [f" <sup>{cell.marks}</sup>" if cell.marks else "" for cell in row]
        lines.append([f"{text}{mark}" or " " for text, mark in zip(bold, raised, strict=True)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_text(text: str) -> str:
    """The text, escaped for Markdown.

    >>> markdown_text("a_b|c <d>")
    'a\\\\_b\\\\|c \\\\<d\\\\>'
    """
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", legible(text))


# HTML


def html(parts: Iterable[Part]) -> str:
    """The parts as a piece of HTML, without style and script."""
    return "".join(map(_as_html, parts))


FIRST_TOPICS = 5  # the number of topics in the notebook view of a run or of judgments


def preview(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> str:
    """The notebook view of data: a table of the first rows, and the number of further rows."""
    more = [f"… {total - len(rows):,} more"] if total > len(rows) else []
    return html([Table(head, rows, caption=caption, notes=more)])


def _as_html(part: Part) -> str:
    if isinstance(part, Table):
        return html_table(part) + "".join(f"<p>{html_text(note)}</p>" for note in part.notes)
    if isinstance(part, Drawing):
        return part.html or f"<p>{html_text(part.lead)}</p><pre>{html_text(chr(10).join(part.lines))}</pre>"
    if isinstance(part, Entries):
        lead = f"<p>{html_text(part.lead)}</p>" if part.lead else ""
        entries = (f"<dt>{html_text(word)}</dt><dd>{html_text(meaning)}</dd>" for word, meaning in part.entries)
        return f"{lead}<dl>{''.join(entries)}</dl>"
    if isinstance(part, str):
        return f"<p>{html_text(part)}</p>"
    return html_list(part.lines)


def html_table(table: Table, identity: str = "", sortable: bool = False) -> str:
    """An HTML table. The last column of names is the row's header; class `n` marks columns of words, `best` best values."""
    rows = table.cells()
    words = [not numeric and _holds_words(rows, i) for i, numeric in enumerate(table.numeric())]
    heads = "".join(_html_cell(Cell(name), words[i], "col") for i, name in enumerate(table.head))
    body = []
    for r, row in enumerate(rows):
        keys = table.keys[r] if table.keys else {}
        about = "".join(f' data-{key}="{html_text(value)}"' for key, value in keys.items())
        cells = (_html_cell(cell, words[i], "row" if i == table.names - 1 else "") for i, cell in enumerate(row))
        body.append(f"<tr{about}>{''.join(cells)}</tr>")
    look = (f' id="{identity}"' if identity else "") + (' class="sortable"' if sortable else "")
    title = table.title or table.caption
    caption = f"<caption>{html_text(title)}</caption>" if title else ""
    return f"<table{look}>{caption}<thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _holds_words(rows: list[list[Cell]], column: int) -> bool:
    return any(any(letter.isalpha() for letter in row[column].text) for row in rows)


def _html_cell(cell: Cell, words: bool, scope: str) -> str:
    """A cell, or a header cell if it has a scope."""
    tag = "th" if scope else "td"
    classes = " ".join(name for name, applies in (("n", words), ("best", cell.best and not scope)) if applies)
    look = (f' scope="{scope}"' if scope else "") + (f' class="{classes}"' if classes else "")
    raised = f"<sup>{html_text(cell.marks)}</sup>" if cell.marks else ""
    content = html_text(cell.text)
    content = f'<a href="{html_text(cell.to)}">{content}</a>' if cell.to else content
    return f"<{tag}{look}>{content}{raised}</{tag}>"


def html_list(lines: Sequence[str], look: str = "") -> str:
    """A list of sentences with the class `look`; empty without sentences."""
    start = f'<ul class="{look}">' if look else "<ul>"
    return f"{start}{''.join(f'<li>{html_text(line)}</li>' for line in lines)}</ul>" if lines else ""


PAGE_STYLE = (
    "table{border-collapse:collapse;margin:1.5em 0}th,td{padding:.25em .6em;text-align:right;border-bottom:1px solid #ddd}"
    ".n{text-align:left}caption{text-align:left;font-weight:bold;padding:.3em .6em}tbody th{font-weight:normal}"
    "body{font-family:sans-serif;line-height:1.45;max-width:72em;margin:2em auto;padding:0 1em;color:#222}"
    "h1{font-size:1.5em;margin:0 0 .5em}ul{padding-left:.6em;list-style:none}figure{margin:1.5em 0}"
)


def _title(parts: Iterable[Part]) -> str:
    """The title of the first table or drawing."""
    names = (
        part.lead if isinstance(part, Drawing) else part.title or part.caption
        for part in parts
        if isinstance(part, (Drawing, Table))
    )
    return next(names, "")


def html_page(title: str, piece: str) -> str:
    """A complete HTML page around a piece of HTML."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html_text(title)}</title>'
        f"<style>{PAGE_STYLE}</style></head><body>{piece}</body></html>"
    )


def html_text(text: str) -> str:
    """The text escaped for HTML; invisible characters are spelt out."""
    from html import escape

    return escape(legible(text))


# plain values


def as_json(value: object, ascii_only: bool = False, indent: int | None = 2) -> str:
    """JSON with readable letters instead of escapes; without `indent` on one line, which is faster."""
    import json

    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    return re.sub(HIDDEN, lambda match: f"\\u{ord(match[0]):04x}", text)


def plain(value: Any, digits: int | None = None) -> Any:
    """Plain values of anything that a result holds: arrays become lists, NaN and infinity None.

    >>> plain({"p": float("nan"), "n": (1, 0.123)}, digits=1)
    {'p': None, 'n': [1, 0.1]}
    """
    if value is None or type(value) in (str, int, bool):
        return value
    import numpy as np

    if isinstance(value, (float, np.floating)):
        number = float(value)
        return None if not math.isfinite(number) else number if digits is None else round(number, digits)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), digits)
    if isinstance(value, Mapping):
        return {str(key): plain(one, digits) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one, digits) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name), digits) for each in fields(value)}
    return value


def as_dicts(value: Any) -> Any:
    """The value with each named tuple or dataclass, also in a list, as a dict of its fields; `plain` makes lists of tuples.

    >>> as_dicts([Cell("0.50", 0.5)])
    [{'text': '0.50', 'value': 0.5, 'best': False, 'marks': '', 'to': ''}]
    """
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: as_dicts(part) for name, part in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [as_dicts(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: as_dicts(getattr(value, each.name)) for each in fields(value)}
    return value


def _field(value: Any, how: Layout) -> str:
    if isinstance(value, Cell):
        return value.text
    return how.number(value) if value is None or isinstance(value, float) else str(value)


def defused(cell: str) -> str:
    """The cell, safe for spreadsheets: text that begins like a formula gets an apostrophe in front.

    >>> defused("=1+1"), defused("-0.5"), defused("-bm25")
    ("'=1+1", '-0.5', "'-bm25")
    """
    return f"'{cell}" if cell.startswith(BEGINS_FORMULA) and not re.fullmatch(A_NUMBER, cell) else cell

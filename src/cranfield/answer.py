"""What every verb answers with: a value that states its tables, its sentences and its plain values.

A result class says what there is to say, once: `content` for people, `records` for spreadsheets, `plain` for programs. Text,
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

from cranfield.columns import GAP, HIDDEN, LEAST_TAIL, aligned, bare_p, cut, cut_end, folded, in_line, legible, width
from cranfield.errors import ConventionError
from cranfield.parameters import refuse_below

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    Style = Callable[[str, str], str]  # (what it is: "head", "best" or "dim"; text) → text

Row = TypeVar("Row")
WIDEST = 100  # the width that long texts are cut to where nobody says how wide a line may be
BEGINS_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
MOST_ROWS, FIRST_ROWS = 60, 20  # of a table in a notebook: so many at the most, or these of a longer one
A_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?|[+-]?(inf|nan)")


class Cell(NamedTuple):
    """A text; the number behind it, to sort by; whether it is the best of its column; what is raised beside it.

    `to` is where a page leads from it.
    """

    text: str
    value: float | None = None
    best: bool = False
    marks: str = ""
    to: str = ""


class Table(NamedTuple):
    """Rows below a head; the first `names` columns are names and repeated where a table is folded."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    names: int = 1
    left: int | None = None  # how many columns are set to the left; the names unless told otherwise
    caption: str = ""
    title: str = ""  # the caption on a page of HTML, where a text says elsewhere what the table is
    notes: Sequence[str] = ()
    keys: Sequence[Mapping[str, str]] = ()  # what each row is about, for a page's script
    tail: bool = False  # in a text the last column is set to the left as well: it holds sentences or bars
    rest: str = ""  # in a text, what stands below the rows: how many more there are
    spare: Sequence[int] = ()  # columns that a screen too narrow for all may do without, the first of these first
    spans: Mapping[int, str] = MappingProxyType({})  # in a text: lines across all columns, each before a row

    def texts(self) -> list[list[str]]:
        """Head and rows as plain text."""
        rows = ([cell if isinstance(cell, str) else cell.text for cell in row] for row in self.rows)
        return [list(self.head), *rows]

    def cells(self) -> list[list[Cell]]:
        """The rows, every cell a `Cell`."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]

    def numeric(self) -> list[bool]:
        """Of each column, whether numbers stand behind its cells."""
        rows = self.cells()
        return [any(row[i].value is not None for row in rows) for i in range(len(self.head))]


def fitted(table: Table, column: int, limit: int | None, least: int = 12) -> Table:
    """The table with one column's texts cut to what the width leaves beside the others, though not below `least` cells.

    >>> [row[1] for row in fitted(Table(["topic", "query"], [["101", "blossom end rot"]]), 1, 20).rows]
    ['blossom end…']
    """
    texts = [[in_line(cell) for cell in row] for row in table.texts()]
    widths = [max(map(width, cells)) for cells in zip(*texts, strict=True)]
    widths[-1] = min(widths[-1], LEAST_TAIL) if table.tail else widths[-1]
    room = max((limit or WIDEST) - sum(widths) + widths[column] - len(GAP) * (len(widths) - 1), least)
    if widths[column] <= room:
        return table
    rows = [
        [*row[:column], cut_end(text[column], room), *row[column + 1 :]]
        for row, text in zip(table.rows, texts[1:], strict=True)
    ]
    return table._replace(rows=rows)


class Lines(NamedTuple):
    """Sentences, each on a line of its own; a list in Markdown and HTML. `dim` ones matter least."""

    lines: Sequence[str]
    dim: bool = False


class Drawing(NamedTuple):
    """What is drawn with characters below a line that says what it is, and the same as HTML where there is such a thing."""

    lead: str
    lines: Sequence[str]
    html: str = ""


class Entries(NamedTuple):
    """Words and what each means, below a lead; a meaning that is too long goes on below its beginning."""

    entries: Sequence[tuple[str, str]]
    lead: str = ""
    margin: int = 0  # where meanings begin; behind the longest word unless told otherwise
    indent: int = 2

    def lines(self, limit: int | None = None) -> list[str]:
        """A line an entry, or several where it does not fit."""
        entries = [(in_line(word), legible(meaning)) for word, meaning in self.entries]
        margin = self.margin or self.indent + 2 + max((len(word) for word, _ in entries), default=0)
        start = " " * self.indent
        return [folded(f"{start}{word}".ljust(margin) + meaning, limit, margin) for word, meaning in entries]


Part: TypeAlias = "Table | Lines | Drawing | Entries | str"  # a str is a paragraph


class Layout(NamedTuple):
    """How an answer is to be laid out: how much of it, with which digits, how wide, for what kind of screen."""

    per_topic: bool = False
    digits: int | None = None  # decimals; None: all that there are
    undefined: str = "-"  # what stands for a number that does not exist
    limit: int | None = None  # the widest line wanted
    every: bool = False  # everything, however much there is
    bars: bool | None = None  # draw them, do not, or where they help
    ascii_only: bool = False
    style: Style | None = None
    medium: str = "text"  # or "markdown", "html": a page is also read aloud, and shows less beside the answer itself
    verbose: bool = False  # also what is as one expects, and all that limits the answer

    @property
    def told(self) -> bool:
        """Whether to say how it was made even where that is the default: where asked for, and on every page."""
        return self.verbose or self.medium != "text"

    def number(self, value: float | None, signed: bool = False) -> str:
        """A number as text, in full or with as many decimals as are wanted.

        >>> Layout(digits=2).number(0.5), Layout().number(0.5), Layout(digits=1).number(float("nan"))
        ('0.50', '0.5', '-')
        """
        if value is None or value != value:
            return self.undefined
        return repr(value) if self.digits is None else f"{value:{'+' if signed else ''}.{self.digits}f}"

    def interval(self, low: float, high: float, signed: bool = False) -> str:
        """Both ends in brackets, or the sign for a missing number if there is no interval."""
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
    """The base of all results. Say what there is in `content`, `plain` and, where a table is not it, `records`."""

    has_topics: ClassVar[bool] = False  # whether there are values of single topics to tell
    ascii_json: ClassVar[bool] = False  # whether JSON spells out letters beyond ASCII
    ends_with_notes: ClassVar[bool] = False  # whether the notes are the end of its text, rather than what limits it
    page_has_charts: ClassVar[bool] = False  # whether a page of its own shows its charts below the tables
    ends_with_limits: ClassVar[bool] = False  # whether its text ends with what limits it, unless that is said apart

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # a dataclass would write one of its own

    @abstractmethod
    def content(self, how: Layout) -> Iterable[Part]:
        """What it says to people, in order."""

    @abstractmethod
    def plain(self, how: Layout) -> Any:
        """All of it as values that JSON knows; what does not exist is None."""

    def records(self, how: Layout) -> Iterable[Sequence[Any]]:
        """A head, then rows, for spreadsheets: the first table, unless told otherwise."""
        return next(part for part in self.content(how) if isinstance(part, Table)).texts()

    def notes(self, shell: bool = False) -> list[str]:
        """What to know beside it, a sentence each; with `shell`, hints name options of the command line."""
        return []

    def limits(self, shell: bool = False, verbose: bool = False) -> list[str]:
        """What limits it as a screen says it, the most serious first; sentences alike are grouped unless `verbose`."""
        return [f"note: {note}" for note in self.notes(shell)]

    def basis(self) -> list[str]:
        """What it rests on, such as conventions, a line each: said beside data that have no room for it, as CSV has not."""
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
        """For a terminal: the verdict, what supports it, and where wanted its `limits`.

        Lines are no wider than `limit` if possible; `style` may colour what matters; `verbose` leaves nothing out.
        """
        how = Layout(per_topic, digits, "-", limit, every, bars, ascii_only, style, verbose=verbose)
        parts = [*self._said(how)]
        if self.ends_with_notes:
            parts.append(Lines(self.notes()))
        elif self.ends_with_limits if limits is None else limits:
            parts.append(Lines(limited(self.limits(verbose=verbose), limit, verbose, "verbose=True")))
        return text(parts, limit, style)

    def to_markdown(self, per_topic: bool = False, digits: int = 4, *, every: bool = False) -> str:
        """For a wiki, an issue or a pull request; the notes stand below."""
        how = Layout(per_topic, digits, "–", every=every, bars=False, medium="markdown")
        return markdown([*self._said(how), Lines(self.notes())]) + "\n"

    def to_html(self, per_topic: bool = False, digits: int = 4, *, every: bool = False, page: bool = False) -> str:
        """A piece of a page: tables, lists and paragraphs, without style sheet and script; or a whole `page`."""
        how = Layout(per_topic, digits, "–", every=every, medium="html")
        parts = [*self._said(how), Lines(self.notes())]
        if not page:
            return html(parts)
        drawn = picture(self) if self.page_has_charts else ""
        heading = f"<h1>{html_text(self.page_title())}</h1>" if self.page_title() else ""
        return html_page(self.page_title() or _title(parts) or type(self).__name__, heading + html(parts) + drawn)

    def page_title(self) -> str:
        """What a page of its own is called; what its first table is, where this is empty."""
        return ""

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        """What a notebook shows: its chart, then what `to_html` gives, long tables cut."""
        parts = [*self._said(Layout(digits=4, undefined="–", medium="html")), Lines(self.notes())]
        return picture(self) + html(map(_cut, parts))

    # for programs

    def to_dict(self, per_topic: bool = False, digits: int | None = None) -> Any:
        """Plain values, with all decimals or so many; what does not exist is None."""
        how = Layout(per_topic, digits)
        self._refuse(how)
        return self.plain(how)

    def to_json(self, per_topic: bool = False, digits: int | None = None) -> str:
        """`to_dict` as JSON; bytes of an id that are no text come out as `\\udcXX`."""
        return as_json(self.to_dict(per_topic, digits), self.ascii_json)

    def to_csv(
        self,
        per_topic: bool = False,
        digits: int | None = None,
        delimiter: str = ",",
        *,
        spreadsheet: bool = False,
    ) -> str:
        """A header and rows; numbers in full unless `digits` are given, and nothing where there is none.

        Text stands as it is; for a `spreadsheet`, text that would be taken for a formula gets an apostrophe in front.
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

    def _said(self, how: Layout) -> Iterable[Part]:
        self._refuse(how)
        return self.content(how)

    def _refuse(self, how: Layout) -> None:
        refuse_below(0, digits=how.digits)
        if how.per_topic and not self.has_topics:
            raise ConventionError(f"{type(self).__name__} holds no values of single topics")


def picture(answer: Answer) -> str:
    """A chart for notebooks. There is none down here: the package puts what draws them in this place (see `cranfield`)."""
    return ""


def _cut(part: Part) -> Part:
    """A table that a notebook can show; any other part as it is."""
    if not isinstance(part, Table) or len(part.rows) <= MOST_ROWS:
        return part
    more = f"… {len(part.rows) - FIRST_ROWS:,} more rows: to_html() and to_csv() have all"
    return part._replace(rows=part.rows[:FIRST_ROWS], keys=part.keys[:FIRST_ROWS], notes=[more, *part.notes])


class Rows(Answer, Generic[Row]):
    """An answer that holds a row for each of several things, and can be gone through like a list of them."""

    rows: Sequence[Row]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Both(Answer):
    """An answer and another that belongs to it, under a key of its own, its table below a caption; or that one alone."""

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
    """What limits an answer in lines no wider than the limit: five at the most, the last of which counts the rest.

    >>> limited([f"note: {n}" for n in "abcdefg"])
    ['note: a', 'note: b', 'note: c', 'note: d', '3 more: --verbose']
    """
    blocks = [folded(legible(sentence), limit, 2).splitlines() for sentence in sentences]
    if verbose or sum(map(len, blocks)) <= most:
        return [line for block in blocks for line in block]
    room = most - 1
    said = next(n for n in range(len(blocks)) if sum(map(len, blocks[: n + 1])) > room)
    if not said:  # the first sentence alone is too long
        more = f", and {len(blocks) - 1} more" if blocks[1:] else ""
        lines = blocks[0] if limit is None else folded(" ".join(map(str.strip, blocks[0])), limit - 2, 2).splitlines()
        return [*lines[: room - 1], f"{lines[room - 1]} …", f"the whole of it{more}: {hint}"]
    return [*(line for block in blocks[:said] for line in block), f"{len(blocks) - said} more: {hint}"]


def text(parts: Iterable[Part], limit: int | None = None, style: Style | None = None) -> str:
    """The parts one below the other, a blank line between."""
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
    """A line that goes on, where it is too wide, two cells to the right of where it begins."""
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
    """The lines of a table with those that go across all columns in their places."""
    spans = {row: folded(in_line(said), limit, 2) for row, said in table.spans.items()}
    answer = []
    for place, line in enumerate([*lines, ""]):
        row = place % (len(table.rows) + 2) - 1  # a block is the head, the rows, and an empty line
        answer += [spans[row], line] if row in spans else [line]
    return answer[:-1]


SHORT_NAME, SHORTEST_NAME = 20, 12  # cells that names keep where a table is too wide


def narrowed(table: Table, limit: int) -> Table:
    """The table in so many cells, if it can be had: long names are cut, then spare columns left out, then names cut again."""
    table = _cut_names(table, limit, SHORT_NAME)
    left_out: set[int] = set()
    for column in table.spare:
        if _across(table, left_out) > limit:
            left_out.add(column)
    kept = [i for i in range(len(table.head)) if i not in left_out]
    head, rows = [table.head[i] for i in kept], [[row[i] for i in kept] for row in table.rows]
    left = None if table.left is None else sum(i < table.left for i in kept)
    table = table._replace(head=head, rows=rows, left=left, spare=())
    shorter = _cut_names(table, limit, SHORTEST_NAME)
    return shorter if _across(shorter) <= limit else table


def _widths(table: Table) -> list[int]:
    widths = [max(width(in_line(cell)) for cell in column) for column in zip(*table.texts(), strict=True)]
    return [*widths[:-1], min(widths[-1], LEAST_TAIL)] if table.tail else widths


def _across(table: Table, left_out: Collection[int] = ()) -> int:
    """How wide its lines are without some columns."""
    return sum(cells + len(GAP) for i, cells in enumerate(_widths(table)) if i not in left_out) - len(GAP)


def _cut_names(table: Table, limit: int, least: int) -> Table:
    """The table with long names cut in the middle, down to so many cells, as far as it takes and as they stay apart."""
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
    """The parts in Markdown, a blank line between; what is drawn with characters stands as code."""
    return "\n\n".join(filter(None, map(_as_markdown, parts)))


def _as_markdown(part: Part) -> str:
    if isinstance(part, Table):
        return "\n\n".join(
            filter(None, [markdown_text(part.caption), markdown_table(part), *map(markdown_text, part.notes)])
        )
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
        shown = [f"**{text}**" if cell.best else text for text, cell in zip(texts, row, strict=True)]
        raised = [f" <sup>{cell.marks}</sup>" if cell.marks else "" for cell in row]
        lines.append([f"{text}{mark}" or " " for text, mark in zip(shown, raised, strict=True)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_text(text: str) -> str:
    """Text that Markdown leaves as it is.

    >>> markdown_text("a_b|c <d>")
    'a\\\\_b\\\\|c \\\\<d\\\\>'
    """
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", legible(text))


# HTML


def html(parts: Iterable[Part]) -> str:
    """The parts as a piece of HTML, without style and script."""
    return "".join(map(_as_html, parts))


FIRST_TOPICS = 5  # of a run or of judgments, in a notebook


def amount(number: int, noun: str) -> str:
    """How many there are.

    >>> amount(1, "topic"), amount(2000, "topic")
    ('1 topic', '2,000 topics')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def preview(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> str:
    """What a notebook shows of data: a table of the first rows, and how many more there are."""
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
    """A table with a caption; the last column of names heads its row, `n` marks columns of words, `best` the best."""
    rows = table.cells()
    words = [not numeric and _holds_words(rows, i) for i, numeric in enumerate(table.numeric())]
    heads = "".join(_html_cell("th", "col", Cell(name), words[i]) for i, name in enumerate(table.head))
    body = []
    for r, row in enumerate(rows):
        about = "".join(
            f' data-{key}="{html_text(value)}"' for key, value in (table.keys[r] if table.keys else {}).items()
        )
        cells = [
            _html_cell("th", "row", cell, words[i]) if i == table.names - 1 else _html_cell("td", "", cell, words[i])
            for i, cell in enumerate(row)
        ]
        body.append(f"<tr{about}>{''.join(cells)}</tr>")
    look = (f' id="{identity}"' if identity else "") + (' class="sortable"' if sortable else "")
    title = table.title or table.caption
    caption = f"<caption>{html_text(title)}</caption>" if title else ""
    return f"<table{look}>{caption}<thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _holds_words(rows: list[list[Cell]], column: int) -> bool:
    return any(any(letter.isalpha() for letter in row[column].text) for row in rows)


def _html_cell(tag: str, scope: str, cell: Cell, words: bool) -> str:
    classes = " ".join(name for name, wanted in (("n", words), ("best", cell.best and tag == "td")) if wanted)
    look = (f' scope="{scope}"' if scope else "") + (f' class="{classes}"' if classes else "")
    raised = f"<sup>{html_text(cell.marks)}</sup>" if cell.marks else ""
    said = html_text(cell.text)
    said = f'<a href="{html_text(cell.to)}">{said}</a>' if cell.to else said
    return f"<{tag}{look}>{said}{raised}</{tag}>"


def html_list(lines: Sequence[str], look: str = "") -> str:
    """A list of sentences, or nothing where there are none; `look` is its class."""
    start = f'<ul class="{look}">' if look else "<ul>"
    return f"{start}{''.join(f'<li>{html_text(line)}</li>' for line in lines)}</ul>" if lines else ""


PAGE_STYLE = (
    "table{border-collapse:collapse;margin:1.5em 0}th,td{padding:.25em .6em;text-align:right;border-bottom:1px solid #ddd}"
    ".n{text-align:left}caption{text-align:left;font-weight:bold;padding:.3em .6em}tbody th{font-weight:normal}"
    "body{font-family:sans-serif;line-height:1.45;max-width:72em;margin:2em auto;padding:0 1em;color:#222}"
    "h1{font-size:1.5em;margin:0 0 .5em}ul{padding-left:.6em;list-style:none}figure{margin:1.5em 0}"
)


def _title(parts: Iterable[Part]) -> str:
    """What the first table or drawing is called."""
    names = (
        part.lead if isinstance(part, Drawing) else part.title or part.caption
        for part in parts
        if isinstance(part, (Drawing, Table))
    )
    return next(names, "")


def html_page(title: str, piece: str) -> str:
    """A piece of HTML as a page of its own."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html_text(title)}</title>'
        f"<style>{PAGE_STYLE}</style></head><body>{piece}</body></html>"
    )


def html_text(text: str) -> str:
    """Escaped, with what cannot be seen spelt out."""
    from html import escape

    return escape(legible(text))


# plain values


def as_json(value: object, ascii_only: bool = False, indent: int | None = 2) -> str:
    """Indented JSON, in plain letters where the text allows it; without an indent it is one line, and made faster."""
    import json

    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def plain(value: Any, digits: int | None = None) -> Any:
    """Plain values of anything that an answer holds: arrays are lists, NaN and infinity None.

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


def _field(value: Any, how: Layout) -> str:
    if isinstance(value, Cell):
        return value.text
    return how.number(value) if value is None or isinstance(value, float) else str(value)


def defused(cell: str) -> str:
    """A cell that no spreadsheet computes: text that begins as a formula does gets an apostrophe in front.

    >>> defused("=1+1"), defused("-0.5"), defused("-bm25")
    ("'=1+1", '-0.5', "'-bm25")
    """
    return f"'{cell}" if cell.startswith(BEGINS_FORMULA) and not A_NUMBER.fullmatch(cell) else cell

"""Plain text in aligned columns, the same on a terminal and in a pipe.

Nothing here knows what the cells mean. Invisible characters are spelt out, so that a table stays aligned and data cannot
send escape sequences to a terminal. A table that is wider than the limit is cut into blocks of
columns, one below the other, and the first columns (the names) are repeated in each; a last column of sentences is
wrapped between words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

GAP = "  "
LEAST_TAIL = 24  # minimum width of a wrapped last column
HIDDEN = (  # characters that are spelt out on pages, charts and screens; line ends and tabs stay; compiled if there are any
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters, including the escape of terminals
    "\u2028\u2029\u202a-\u202e\u2066-\u2069"  # line separators and marks that change the direction of text
    "\ud800-\udfff\ufffe\uffff]"  # bytes that are not UTF-8, and characters that XML excludes
    "|\r(?!\n)"
)


def width(text: str) -> int:
    """The number of terminal cells of a text: two for wide characters, none for combining ones.

    >>> width("nDCG@10"), width("検索")
    (7, 4)
    """
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(char: str) -> int:
    from unicodedata import category, east_asian_width

    if category(char) in ("Mn", "Me", "Cf") and char != "\xad":  # a soft hyphen is shown
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def cut(text: str, cells: int) -> str:
    """A name cut to a width, with … in the middle, since names differ at their beginning or end.

    >>> cut("cs.uni.bm25-large.seed17", 15), cut("bm25", 15)
    ('cs.uni.….seed17', 'bm25')
    """
    if width(text) <= cells:
        return text
    room = max(cells - 1, 2)
    head = _beginning(text, room // 2)
    tail = _beginning(text[::-1], room - width(head))[::-1]
    return f"{head}…{tail}"


def cut_end(text: str, cells: int) -> str:
    """A text cut to a width, with … at the end.

    >>> cut_end("blossom end rot", 10), cut_end("mulch", 10), cut_end("検索エンジン", 6)
    ('blossom e…', 'mulch', '検索…')
    """
    return text if width(text) <= cells else f"{_beginning(text, cells - 1).rstrip()}…"


def _beginning(text: str, cells: int) -> str:
    end = 0
    while end < len(text) and width(text[: end + 1]) <= cells:
        end += 1
    return text[:end]


def aligned(
    rows: Sequence[Sequence[str]],
    names: int = 1,
    left: int | None = None,
    limit: int | None = None,
    style: Callable[[int, int, str], str] | None = None,
    tail: bool = False,
) -> list[str]:
    """The rows as lines; the first `left` columns (by default the `names`) are left-aligned, the others right-aligned.

    `limit` is the maximum width of a line, `style(row, column, padded cell)` may wrap a cell in colours; with `tail` the last
    column is left-aligned too.

    >>> aligned([["run", "AP"], ["bm25", "0.5000"]])
    ['run       AP', 'bm25  0.5000']
    """
    if not rows:
        return []
    left = names if left is None else left
    widths = [max(width(row[i]) for row in rows) for i in range(len(rows[0]))]
    blocks = _blocks([*widths[:-1], min(widths[-1], LEAST_TAIL)] if tail else widths, names, limit)
    if tail and limit is not None:
        before = sum(widths[i] + len(GAP) for i in blocks[-1][:-1])
        widths[-1] = min(widths[-1], max(limit - before, LEAST_TAIL))
    lines: list[str] = []
    for block in blocks:
        if lines:
            lines.append("")
        for r, row in enumerate(rows):
            cells = []
            below: list[str] = []
            for i in block:
                last = tail and i == len(row) - 1
                line, *below = _wrapped(row[i], widths[i]) if last else [row[i]]
                space = " " * (widths[i] - width(line))
                cell = line + space if i < left or last else space + line
                if i == block[-1]:
                    cell = cell.rstrip()
                cells.append(style(r, i, cell) if style else cell)
            lines.append(GAP.join(cells))
            margin = " " * sum(widths[i] + len(GAP) for i in block[:-1])
            lines += [f"{margin}{line}" for line in below]
    return lines


def _wrapped(text: str, cells: int) -> list[str]:
    """The text in lines of limited width."""
    if width(text) <= cells:
        return [text]
    import textwrap

    return textwrap.wrap(text, cells, break_on_hyphens=False)


def _blocks(widths: list[int], names: int, limit: int | None) -> list[list[int]]:
    fixed = list(range(min(names, len(widths))))
    start = sum(widths[i] + len(GAP) for i in fixed) - len(GAP)
    blocks, block, used = [], list(fixed), start
    for i in range(len(fixed), len(widths)):
        if limit is not None and len(block) > len(fixed) and used + len(GAP) + widths[i] > limit:
            blocks.append(block)
            block, used = list(fixed), start
        block.append(i)
        used += len(GAP) + widths[i]
    return [*blocks, block]


def listed(items: Sequence[str], most: int = 5) -> str:
    """The first few items in quotes, and how many more there are.

    >>> listed(["301", "302", "303"], most=2)
    "'301', '302' and 1 more"
    """
    first = ", ".join(repr(item) for item in items[:most])
    return first if len(items) <= most else f"{first} and {len(items) - most} more"


def name_list(names: Sequence[str]) -> str:
    """Names joined as in a sentence.

    >>> name_list(["AP"]), name_list(["AP", "RR"]), name_list(["a", "b", "c"])
    ('AP', 'AP and RR', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))


def counted(count: int, word: str) -> str:
    """A count with its noun in the singular or plural.

    >>> counted(1, "line"), counted(1200, "line")
    ('1 line', '1,200 lines')
    """
    return f"{count:,} {word if count == 1 else word + 's'}"


def p_value(p: float) -> str:
    """A p-value for a sentence: "= 0.0002", "= 0.57", "< 0.0001", never 0.

    >>> p_value(0.00021), p_value(0.572), p_value(1e-5), p_value(1)
    ('= 0.0002', '= 0.57', '< 0.0001', '= 1')
    """
    if p != p:
        return "undefined"
    if p < 0.0001:
        return "< 0.0001"
    text = f"{p:.4f}" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
    return f"= {text.rstrip('0').rstrip('.')}"


def bare_p(p: float) -> str:
    """A p-value without the equals sign."""
    return p_value(p).removeprefix("= ")


def in_bytes(size: int) -> str:
    """A file size in kB or MB.

    >>> in_bytes(80), in_bytes(312_400), in_bytes(2_340_000)
    ('1 kB', '312 kB', '2.3 MB')
    """
    return f"{max(size, 501) / 1e3:.0f} kB" if size < 999_500 else f"{size / 1e6:,.1f} MB"


def folded(text: str, limit: int | None, margin: int = 0) -> str:
    """A paragraph wrapped to the width; lines after the first are indented by a margin."""
    if limit is None or width(text) <= limit:
        return text
    import textwrap

    indent = text[: len(text) - len(text.lstrip())]
    across = max(limit, margin + 20)
    return "\n".join(
        textwrap.wrap(
            text.strip(), across, initial_indent=indent, subsequent_indent=" " * margin, break_on_hyphens=False
        )
    )


def legible(text: str) -> str:
    r"""The text with invisible characters spelt out: control characters, direction marks, bytes that are not UTF-8.

    >>> legible("bm25\x1b[2J"), legible("two\nlines")
    ('bm25\\x1b[2J', 'two\nlines')
    """
    return text if text.isprintable() else re.sub(HIDDEN, _spelt, text)


def in_line(text: str) -> str:
    r"""The text for a cell: line ends and tabs are spelt out too.

    >>> in_line("two\nlines")
    'two\\nlines'
    """
    return text if text.isprintable() else re.sub(r"[\t\r\n]", _spelt, legible(text))


def _spelt(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def for_screen(text: str, stream: Any) -> str:
    """The text unchanged, or with escape sequences spelt out if the stream is a terminal, which would obey them."""
    return legible(text) if getattr(stream, "isatty", bool)() else text

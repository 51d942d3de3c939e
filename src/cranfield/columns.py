"""Plain text in aligned columns, the same on a terminal and in a pipe.

Nothing here knows what the cells mean. What cannot be seen in a name is spelt out, so that a table stays aligned and a
terminal takes no orders from data. A table that is wider than the limit is cut into blocks of
columns, one below the other, and the first columns (the names) are repeated in each; a last column of sentences is
wrapped between words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

GAP = "  "
LEAST_TAIL = 24  # cells of a last column that is wrapped
HIDDEN = re.compile(  # what no page, picture or screen should be handed raw; a line's end and a tab are let through
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters, those that begin a terminal's escapes among them
    "\u2028\u2029\u202a-\u202e\u2066-\u2069"  # separators of lines, and what turns the direction of the text around
    "\ud800-\udfff\ufffe\uffff]"  # bytes that are no UTF-8, and what XML has no room for
    "|\r(?!\n)"
)


def width(text: str) -> int:
    """How many cells of a terminal a text covers: wide characters two, combining ones none.

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
    """A name in so many cells, with … for the middle that is left out: names differ at their beginning or their end.

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
    """As much of a text as fits, with … at its end where something is left out.

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
    """Lay rows out as lines: the first `left` columns (by default the `names`) to the left, the others to the right.

    `limit` is the widest line wanted, `style(row, column, padded cell)` may wrap a cell in colours; with `tail` the last
    column is set to the left as well.

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
                shown, *below = _wrapped(row[i], widths[i]) if last else [row[i]]
                space = " " * (widths[i] - width(shown))
                cell = shown + space if i < left or last else space + shown
                if i == block[-1]:
                    cell = cell.rstrip()
                cells.append(style(r, i, cell) if style else cell)
            lines.append(GAP.join(cells))
            margin = " " * sum(widths[i] + len(GAP) for i in block[:-1])
            lines += [f"{margin}{line}" for line in below]
    return lines


def _wrapped(text: str, cells: int) -> list[str]:
    """A text in lines of so many cells at the most."""
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
    shown = ", ".join(repr(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"


def joined(names: Sequence[str]) -> str:
    """Names as in a sentence.

    >>> joined(["AP"]), joined(["AP", "RR"]), joined(["a", "b", "c"])
    ('AP', 'AP and RR', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))


def counted(count: int, word: str) -> str:
    """A count and its noun.

    >>> counted(1, "line"), counted(1200, "line")
    ('1 line', '1,200 lines')
    """
    return f"{count:,} {word if count == 1 else word + 's'}"


def p_value(p: float) -> str:
    """A p-value as people read it: "= 0.0002", "= 0.57", "< 0.0001"; it is never 0.

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
    """The same without the equals sign, where the text has one or needs none."""
    return p_value(p).removeprefix("= ")


def in_bytes(size: int) -> str:
    """How large a file is, in kB or MB.

    >>> in_bytes(80), in_bytes(312_400), in_bytes(2_340_000)
    ('1 kB', '312 kB', '2.3 MB')
    """
    return f"{max(size, 501) / 1e3:.0f} kB" if size < 999_500 else f"{size / 1e6:,.1f} MB"


def folded(text: str, limit: int | None, margin: int = 0) -> str:
    """A paragraph in lines no wider than the screen, the later ones set in by a margin."""
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
    r"""The text with what cannot be seen spelt out: control characters, turns of direction, bytes that are no text.

    >>> legible("bm25\x1b[2J"), legible("two\nlines")
    ('bm25\\x1b[2J', 'two\nlines')
    """
    return text if text.isprintable() else HIDDEN.sub(_spelt, text)


def in_line(text: str) -> str:
    r"""The text with ends of lines and tabs spelt out as well: it stands in a cell.

    >>> in_line("two\nlines")
    'two\\nlines'
    """
    return text if text.isprintable() else re.sub(r"[\t\r\n]", _spelt, legible(text))


def _spelt(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def for_screen(text: str, stream: Any) -> str:
    """Data as they are, unless somebody looks at them: a terminal would take an escape in an id for an order."""
    return legible(text) if getattr(stream, "isatty", bool)() else text

"""Plain text in aligned columns, the same on a terminal and in a pipe.

Nothing here knows what the cells mean. A table that is wider than the limit is cut into blocks of
columns, one below the other, and the first columns (the names) are repeated in each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

GAP = "  "


def width(text: str) -> int:
    """How many cells of a terminal a text covers: wide characters two, combining ones none.

    >>> width("nDCG@10"), width("検索")
    (7, 4)
    """
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


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
    lines: list[str] = []
    for block in _blocks(widths, names, limit):
        if lines:
            lines.append("")
        for r, row in enumerate(rows):
            cells = []
            for i in block:
                space = " " * (widths[i] - width(row[i]))
                to_the_left = i < left or (tail and i == len(row) - 1)
                cell = row[i] + space if to_the_left else space + row[i]
                if i == block[-1]:
                    cell = cell.rstrip()
                cells.append(style(r, i, cell) if style else cell)
            lines.append(GAP.join(cells))
    return lines


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


def folded(text: str, limit: int | None, margin: int = 0) -> str:
    """A paragraph in lines no wider than the screen, the later ones set in by a margin."""
    if limit is None or len(text) <= limit:
        return text
    import textwrap

    indent = text[: len(text) - len(text.lstrip())]
    body = textwrap.wrap(text.strip(), max(limit, margin + 20), initial_indent=indent, subsequent_indent=" " * margin)
    return "\n".join(body)

"""Bars of text: one a topic, to the right where the other run scores higher and to the left where it scores lower.

Where the output cannot show blocks the same bars are drawn with # and -, so the sign shows without colour or font. Many
topics are cut to the biggest winners and losers, and the line between says how many are not shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.columns import width

if TYPE_CHECKING:
    from collections.abc import Sequence


EIGHTHS = " ▏▎▍▌▋▊▉█"
MOST = 24  # bars shown where there are more topics than that: half winners, half losers
NARROWEST, USUAL = 48, 100


def difference_bars(
    topics: Sequence[str],
    differences: Sequence[float],
    *,
    limit: int | None = None,
    most: int | None = MOST,
    ascii_only: bool = False,
    digits: int = 3,
) -> list[str]:
    """A line a topic, the biggest gain first: topic, difference, bar.

    >>> for line in difference_bars(["q1", "q2"], [-0.25, 0.5], limit=30, ascii_only=True):
    ...     print(line)
    q2  +0.500          |########
    q1  -0.250      ----|
    """
    order = sorted(range(len(topics)), key=lambda t: -differences[t])
    shown, hidden = _cut(order, most)
    name_width = max((width(topics[t]) for t in order), default=0)
    numbers = {t: f"{differences[t]:+.{digits}f}" for t in order}
    number_width = max((len(text) for text in numbers.values()), default=0)
    room = max(NARROWEST if limit is None else 0, min(limit or USUAL, USUAL)) - name_width - number_width - 5
    half = max(room // 2, 4)
    largest = max((abs(differences[t]) for t in order), default=0.0) or 1.0
    lines = []
    for place, t in enumerate(shown):
        if hidden and place == len(shown) - len(shown) // 2:
            lines.append(_between(hidden, differences))
        space = " " * (name_width - width(topics[t]))
        bar = _bar(differences[t] / largest, half, ascii_only)
        lines.append(f"{topics[t]}{space}  {numbers[t]:>{number_width}}  {bar}".rstrip())
    return lines


def _cut(order: list[int], most: int | None) -> tuple[list[int], list[int]]:
    """The topics to draw and those to pass over: the middle ones."""
    if most is None or len(order) <= most:
        return order, []
    head = most - most // 2
    return [*order[:head], *order[len(order) - most // 2 :]], order[head : len(order) - most // 2]


def _between(hidden: list[int], differences: Sequence[float]) -> str:
    up = sum(differences[t] > 0 for t in hidden)
    down = sum(differences[t] < 0 for t in hidden)
    parts = [
        f"{up} up" * (up > 0),
        f"{len(hidden) - up - down} equal" * (len(hidden) > up + down),
        f"{down} down" * (down > 0),
    ]
    return f"... {len(hidden)} more topics between: {', '.join(part for part in parts if part)}"


def _bar(share: float, half: int, ascii_only: bool) -> str:
    """A bar of `half` cells at most on each side of the middle line."""
    if ascii_only:
        cells = round(abs(share) * half)
        return f"{' ' * half}|{'#' * cells}" if share >= 0 else f"{'-' * cells:>{half}}|"
    eighths = round(abs(share) * half * 8)
    if share >= 0:
        return f"{' ' * half}│{'█' * (eighths // 8)}{EIGHTHS[eighths % 8].strip()}"
    whole = -(-eighths // 8)  # blocks that start at the right edge of a cell are rare in fonts: whole cells
    return f"{'░' * whole:>{half}}│"

"""Differences topic by topic, drawn: with characters for a screen, as SVG for a page.

A bar goes to the right where the other run scores higher and to the left where it scores lower. Where the output cannot
show blocks the same bars are drawn with # and -, so the sign shows without colour or font. Many topics are cut to the
biggest winners and losers, and the line between says how many are not shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.answer import Drawing, Layout, html_text
from cranfield.columns import cut_end, in_line, width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.compare.evidence import Evidence
    from cranfield.compare.pair import Pair


EIGHTHS = " ▏▎▍▌▋▊▉█"
MOST_BARS = 24  # shown where there are more topics than that: half winners, half losers
NARROWEST, WIDEST = 48, 100  # lines
SVG_WIDTH, SVG_HEIGHT = 700, 160


def drawn(evidence: Evidence, pair: Pair, how: Layout) -> Drawing | None:
    """The differences of a pair, biggest gain first; None where there are none."""
    names, differences = evidence.differences(pair)
    if not names:
        return None
    topics = labels(names, evidence.scores.queries, None if how.medium == "html" else how.limit or WIDEST)
    lead = f"{pair.measure} of {pair.other} less that of {pair.one}, topic by topic"
    if how.medium == "html":
        record = f"{pair.wins} won, {pair.ties} tied, {pair.losses} lost"
        return Drawing(lead, [], difference_svg(topics, differences.tolist(), lead, f"{lead}: {record}"))
    lower = "; lower is better" if evidence.lower_is_better(pair.measure) else ""
    lines = difference_bars(topics, differences.tolist(), limit=how.limit, ascii_only=how.ascii_only)
    return Drawing(f"{lead}{lower}:", lines)


def labels(topics: Sequence[str], queries: Mapping[str, str], limit: int | None = None) -> list[str]:
    """What stands before the bars: the topics' ids, and what they ask where that is known, in less than half of the line.

    >>> labels(["101", "7"], {"101": "blossom end rot"}, 40)
    ['101  blossom end r…', '7']
    """
    names = [in_line(topic) for topic in topics]
    longest = max(map(width, names), default=0)
    room = None if limit is None else max(limit * 2 // 5, 12) - min(longest, 20)
    asked = [in_line(queries.get(topic, "")) for topic in topics] if queries else [""] * len(names)
    texts = asked if room is None else [cut_end(query, room) for query in asked]
    return [
        f"{name}{' ' * (longest - width(name))}  {text}" if text else name
        for name, text in zip(names, texts, strict=True)
    ]


def difference_bars(
    topics: Sequence[str],
    differences: Sequence[float],
    *,
    limit: int | None = None,
    most: int | None = MOST_BARS,
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
    room = max(NARROWEST if limit is None else 0, min(limit or WIDEST, WIDEST)) - name_width - number_width - 5
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
    head, tail = most - most // 2, len(order) - most // 2
    return [*order[:head], *order[tail:]], order[head:tail]


def _between(hidden: list[int], differences: Sequence[float]) -> str:
    up = sum(differences[t] > 0 for t in hidden)
    down = sum(differences[t] < 0 for t in hidden)
    counts = {"up": up, "equal": len(hidden) - up - down, "down": down}
    parts = [f"{number} {name}" for name, number in counts.items() if number]
    return f"... {len(hidden)} more topics between: {', '.join(parts)}"


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


def difference_svg(topics: Sequence[str], differences: Sequence[float], caption: str, label: str) -> str:
    """Each topic's difference as a bar, the biggest gain first, in the colour of the text around it."""
    order = sorted(range(len(topics)), key=lambda t: -differences[t])
    largest = max(map(abs, differences)) or 1.0
    step = max(1.0, min(14.0, SVG_WIDTH / len(topics)))
    middle, across = SVG_HEIGHT / 2, f"{step * len(topics):.0f}"
    bars = []
    for place, t in enumerate(order):
        size = abs(differences[t]) / largest * (middle - 2)
        up = differences[t] > 0
        bars.append(
            f'<rect x="{place * step:.1f}" y="{middle - size if up else middle:.1f}" width="{step * 0.85:.1f}" '
            f'height="{size:.1f}" fill="currentColor" fill-opacity="{0.8 if up else 0.4}">'
            f"<title>{html_text(topics[t])}: {differences[t]:+.4f}</title></rect>"
        )
    return (
        f'<figure><svg role="img" aria-label="{html_text(label)}" width="{across}" height="{SVG_HEIGHT}" '
        f'viewBox="0 0 {across} {SVG_HEIGHT}"><line x1="0" x2="{across}" y1="{middle}" y2="{middle}" '
        f'stroke="currentColor"/>{"".join(bars)}</svg><figcaption>{html_text(caption)}</figcaption></figure>'
    )

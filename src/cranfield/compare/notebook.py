"""A comparison, a leaderboard or a gate in a notebook: tables, sentences, bars, cautions. No scripts, no style sheet.

Significance is said in words inside the cell, so that a screen reader and a black-and-white print have it too.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from cranfield.compare import margins
from cranfield.compare.text import SENTENCES, made_by, mark, shown_pairs, table

if TYPE_CHECKING:
    from cranfield.compare.comparison import Comparison, Pair
    from cranfield.compare.leaderboard import Leaderboard


DRAWN = 2  # pairs whose topics are drawn
WIDTH, HEIGHT = 700, 160
WORDS = {"+": "better", "-": "worse", "?": "no p-value", "": "not settled"}


def to_html(found: Comparison) -> str:
    """The comparison as a piece of HTML."""
    pairs = shown_pairs(found)
    head, *rows = table(found, pairs)
    head[-1] = "other is"
    names = "".join(f'<th scope="col">{_text(name)}</th>' for name in head)
    body = "".join(
        f'<tr><td>{_text(row[0])}</td><td>{_text(row[1])}</td><th scope="row">{_text(row[2])}</th>'
        + "".join(f"<td>{_text(cell)}</td>" for cell in row[3:-1])
        + f"<td>{WORDS[mark(found, pair)]}</td></tr>"
        for pair, row in zip(pairs, rows, strict=True)
    )
    hidden = len(found.pairs) - len(pairs)
    more = f" {len(pairs)} of {len(found.pairs):,} pairs are shown." if hidden else ""
    said = [found.sentence(pair) for pair in pairs[:SENTENCES]]
    said += [text for pair in pairs[:SENTENCES] if (text := margins.in_words(pair))]
    return (
        f"<table><caption>Differences, other less one.{more}</caption><thead><tr>{names}</tr></thead>"
        f"<tbody>{body}</tbody></table>{_list(said)}{''.join(_bars(found, pair) for pair in pairs[:DRAWN])}"
        f"{_list(found.notes())}<p>{_text('. '.join(made_by(found)))}</p>"
    )


def board_to_html(board: Leaderboard) -> str:
    """A leaderboard as a piece of HTML."""
    caption = f"Runs {board.how()}"
    return f"{_table(board.cells(), caption)}{_list(board.notes())}"


def _table(rows: list[list[str]], caption: str) -> str:
    head, *body = rows
    names = "".join(f'<th scope="col">{_text(name)}</th>' for name in head)
    lines = "".join(
        f'<tr><th scope="row">{_text(row[0])}</th>' + "".join(f"<td>{_text(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in body
    )
    return f"<table><caption>{_text(caption)}</caption><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


def _bars(found: Comparison, pair: Pair) -> str:
    """Each topic's difference as a bar, the biggest gain first, in the colour of the text around it."""
    topics, differences = found.differences(pair)
    order = sorted(range(len(topics)), key=lambda t: -differences[t])
    largest = float(max(abs(differences), default=0.0)) or 1.0
    step = max(1.0, min(14.0, WIDTH / max(len(topics), 1)))
    middle = HEIGHT / 2
    drawn = []
    for place, t in enumerate(order):
        size = abs(float(differences[t])) / largest * (middle - 2)
        top = middle - size if differences[t] > 0 else middle
        drawn.append(
            f'<rect x="{place * step:.1f}" y="{top:.1f}" width="{step * 0.85:.1f}" height="{size:.1f}" '
            f'fill="currentColor" fill-opacity="{0.8 if differences[t] > 0 else 0.4}">'
            f"<title>{_text(topics[t])}: {differences[t]:+.4f}</title></rect>"
        )
    width = step * max(len(topics), 1)
    what = f"{pair.measure} of {pair.other} less that of {pair.one}, topic by topic"
    told = f"{what}: {pair.wins} won, {pair.ties} tied, {pair.losses} lost"
    return (
        f'<figure><svg role="img" aria-label="{_text(told)}" width="{width:.0f}" height="{HEIGHT}" '
        f'viewBox="0 0 {width:.0f} {HEIGHT}"><line x1="0" x2="{width:.0f}" y1="{middle}" y2="{middle}" '
        f'stroke="currentColor"/>{"".join(drawn)}</svg><figcaption>{_text(what)}</figcaption></figure>'
    )


def _list(lines: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in lines)}</ul>" if lines else ""


def _text(text: str) -> str:
    """Escaped, with bytes that are no text spelt out."""
    return escape(text.encode("utf-8", "backslashreplace").decode())

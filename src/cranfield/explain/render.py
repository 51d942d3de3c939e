"""Explanations as text, Markdown and HTML. Nothing is computed here."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Protocol

from cranfield.columns import aligned

if TYPE_CHECKING:
    from collections.abc import Sequence


STYLE = (
    "table{border-collapse:collapse}th,td{padding:.2em .6em;text-align:right;border-bottom:1px solid #ccc}"
    "td:nth-child(2),th:nth-child(2){text-align:left}caption{text-align:left;font-weight:bold}"
    "body{font-family:sans-serif}"
)


class Told(Protocol):
    """What is rendered: a title, what stands above and below a table, and the table."""

    def title(self) -> str:
        """One line: what this is, and the value."""

    def above(self) -> list[str]:
        """Lines above the table."""

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """The table: its head, and its rows as text."""

    def notes(self) -> list[str]:
        """Sentences below the table."""

    @property
    def left(self) -> int:
        """How many columns are set to the left."""


def text_of(given: Told, limit: int | None = None) -> str:
    """For a terminal."""
    head, rows = given.cells()
    lines = [given.title(), *(f"  {line}" for line in given.above())]
    if rows:
        lines += ["", *aligned([head, *rows], names=2, left=given.left, limit=limit)]
    notes = given.notes()
    return "\n".join([*lines, *([""] if notes else []), *notes])


def markdown_of(given: Told) -> str:
    """For a page or a report."""
    head, rows = given.cells()
    lines = [f"**{_plain(given.title())}**", ""]
    for line in given.above():
        lines += [f"    {line}"]
    if rows:
        marks = [":--" if i < given.left and i != 0 else "--:" for i in range(len(head))]
        lines += ["", _row(head), _row(marks), *map(_row, rows)]
    notes = given.notes()
    return "\n".join([*lines, *([""] if notes else []), *(f"- {_plain(note)}" for note in notes)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(cell) for cell in cells)} |"


def _plain(text: str) -> str:
    for mark in "\\|*_`<":
        text = text.replace(mark, f"\\{mark}")
    return text


def html_of(given: Told, page: bool = False) -> str:
    """A table with a caption and notes; a whole page if asked for."""
    head, rows = given.cells()
    columns = "".join(f'<th scope="col">{_text(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{_text(row[0])}</th>{"".join(f"<td>{_text(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    above = "".join(f"<p><code>{_text(line)}</code></p>" for line in given.above())
    notes = "".join(f"<li>{_text(note)}</li>" for note in given.notes())
    table = f"<table><caption>{_text(given.title())}</caption><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>"
    fragment = above + table + (f"<ul>{notes}</ul>" if notes else "")
    if not page:
        return fragment
    title = _text(given.title())
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style></head><body>{fragment}</body></html>"
    )


def _text(text: str) -> str:
    return escape(text.encode("utf-8", "backslashreplace").decode())

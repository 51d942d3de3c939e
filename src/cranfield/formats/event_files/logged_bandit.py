"""Logged bandit data as CSV, such as the Open Bandit Dataset: one shown item per row, with its propensity and the click.

A row becomes a search with one document. Its propensity is an attribute of the impression, so that
`cranfield online counterfactual` finds it. Users are not named, so each row is a unit of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.parameters import real, shortened, whole
from cranfield.formats.csv_tables import rows_of
from cranfield.formats.event_files.format import EventFormat, EventReading, line_id
from cranfield.formats.streams import decoded, lines

if TYPE_CHECKING:
    from collections.abc import Iterator

NEEDED = ("timestamp", "item_id", "position", "click", "propensity_score")
PROPENSITY = "propensity"  # the attribute of an impression
FEATURES = "user_feature"  # columns whose names begin like this become attributes


class LoggedBandit(EventFormat):
    """CSV of single items with propensities: `timestamp,item_id,position,click,propensity_score`.

    Each row is an impression of one document, with the click if there was one. The propensity and the user's features
    become attributes; affinities of users and items are left out. Positions may start with 0 or 1.
    """

    name = "open-bandit"
    place = 40

    def begins(self, head: str) -> bool:
        return set(NEEDED) <= {name.strip().strip('"') for name in head.split(",")}

    def rows(self, reading: EventReading) -> Iterator[tuple[int, dict[str, Any]]]:
        table = list(_table(reading.path))
        base = min((_position(reading.path, number, row) for number, row in table), default=1)
        if base == 0:
            reading.notes.append("positions are counted from 0")
        for number, row in table:
            yield from _events(reading, number, row, min(base, 1))


def _table(path: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The columns that matter of each row below the header, with its line number."""
    texts = (decoded(line, "utf-8", path, number) for number, line in enumerate(lines(path), 1))
    rows = rows_of(texts, path, ",")
    head = [name.strip() for name in next((row.cells for row in rows), [])]
    lacking = [name for name in NEEDED if name not in head]
    if lacking:
        raise DataError(f"{path}:1: expected a column {lacking[0]}, found {shortened(', '.join(head))}")
    places = {name: place for place, name in enumerate(head) if name in NEEDED or name.startswith(FEATURES)}
    for _, line, cells in rows:
        if len(cells) != len(head):
            raise BadLineError(path, line, f"expected {len(head)} columns, found {len(cells)}")
        yield line, {name: cells[place] for name, place in places.items()}


def _position(path: str, line: int, row: dict[str, str]) -> int:
    try:
        position = whole(float(row["position"]))
    except (ValueError, OverflowError):
        position = -1
    if position < 0:
        raise BadLineError(path, line, f"expected a whole number as position, found {shortened(row['position'])!r}")
    return position


def _events(reading: EventReading, line: int, row: dict[str, str], base: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The impression of a row, and its click."""
    try:
        propensity = real(row["propensity_score"])
    except ValueError:
        propensity = 0.0
    if not 0 < propensity <= 1:
        expected = "expected a propensity_score above 0, up to 1"
        problem = f"{expected}, found {shortened(row['propensity_score'])!r}; correct the row or take it out"
        raise BadLineError(reading.path, line, problem)
    if row["click"].strip() not in ("0", "1"):
        raise BadLineError(reading.path, line, f"expected 0 or 1 as click, found {shortened(row['click'])!r}")
    identity = line_id(reading.name, line)
    same = {"time": row["timestamp"], "unit": identity, "search": identity}
    features = {name: text for name, text in row.items() if name.startswith(FEATURES) and text}
    yield (
        line,
        {
            "event_id": identity,
            "kind": "impression",
            **same,
            "shown": [row["item_id"]],
            "position": _position(reading.path, line, row) - base + 1,
            "attributes": {PROPENSITY: row["propensity_score"].strip(), **features},
        },
    )
    if row["click"].strip() == "1":
        yield (
            line,
            {"event_id": line_id(reading.name, line, "click"), "kind": "click", **same, "document": row["item_id"]},
        )

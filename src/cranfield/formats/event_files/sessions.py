"""Sessions as CSV: one row for each document that a user saw, and whether it was clicked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.parameters import shortened, whole
from cranfield.formats.csv_tables import rows_of
from cranfield.formats.event_files.format import EventFormat, EventReading, line_id
from cranfield.formats.streams import decoded, lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAMES: dict[str, tuple[str, ...]] = {  # our name of a column, and its names in files
    "session": ("session", "session_id", "sess_id", "sessionid"),
    "search": ("search", "search_id", "query_id", "serp_id"),
    "query": ("query", "user_query", "query_text", "keywords"),
    "position": ("position", "rank"),
    "document": ("document", "doc_id", "docid", "document_id", "clicked_doc_id", "product_id", "item_id"),
    "clicked": ("clicked", "click", "is_clicked"),
    "unit": ("unit", "user", "user_id", "client_id"),
    "time": ("time", "timestamp"),
}
NEEDED = ("session", "position", "document", "clicked")
CLICKED = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}


class SessionEvents(EventFormat):
    """CSV of sessions with a row for each document shown: `sess_id,query,rank,clicked_doc_id,clicked`.

    Consecutive rows of one session and query are one search: an impression with the documents in order, and the clicks.
    Ranks start with 0 or 1 and have no holes, because what was shown above a document explains its clicks. Without a
    column of times, all events get the time that the user gives.
    """

    name = "sessions"
    place = 50

    def begins(self, head: str) -> bool:
        return set(NEEDED) <= _columns(head.split(",")).keys()

    def rows(self, reading: EventReading) -> Iterator[tuple[int, dict[str, Any]]]:
        table = _table(reading.path)
        page: list[tuple[int, dict[str, str]]] = []
        base: int | None = None
        for number, row in table:
            if reading.time is None and not row.get("time"):
                problem = "expected a column of times, found none; --time says when it was"
                raise BadLineError(reading.path, number, problem)
            if page and _search(row) != _search(page[0][1]):
                base = _base(reading, page, base)
                yield from _events(reading, page, base)
                page = []
            page.append((number, row))
        if page:
            yield from _events(reading, page, _base(reading, page, base))


def _columns(head: Sequence[str]) -> dict[str, int]:
    """The position of each column, by our name for it."""
    there = [name.strip().strip('"').lower() for name in head]
    return {
        ours: next(there.index(name) for name in theirs if name in there)
        for ours, theirs in NAMES.items()
        if set(theirs) & set(there)
    }


def _table(path: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows below the header with our column names, each with its line number."""
    texts = (decoded(line, "utf-8", path, number) for number, line in enumerate(lines(path), 1))
    rows = rows_of(texts, path, ",")
    head = next((row.cells for row in rows), [])
    columns = _columns(head)
    lacking = [name for name in NEEDED if name not in columns]
    if lacking:
        raise DataError(f"{path}:1: expected a column {' or '.join(NAMES[lacking[0]])}, found {', '.join(head)}")
    for _, line, cells in rows:
        if len(cells) != len(head):
            raise BadLineError(path, line, f"expected {len(head)} columns, found {len(cells)}")
        yield line, {name: cells[place] for name, place in columns.items()}


def _search(row: dict[str, str]) -> tuple[str, str, str]:
    return row["session"], row.get("search", ""), row.get("query", "")


def _base(reading: EventReading, page: list[tuple[int, dict[str, str]]], base: int | None) -> int:
    """The first rank, 0 or 1: the first page that shows it decides."""
    first = min(_position(reading.path, number, row) for number, row in page)
    if base is None or first < base:
        if base is not None or first > 1 or first < 0:
            number = page[0][0]
            raise BadLineError(reading.path, number, f"expected ranks from {base or '0 or 1'} on, found {first}")
        reading.notes.append(f"ranks are counted from {first}")
        return first
    return base


def _position(path: str, number: int, row: dict[str, str]) -> int:
    try:
        return whole(float(row["position"]))
    except (ValueError, OverflowError):
        problem = f"expected a whole number as rank, found {shortened(row['position'])!r}"
        raise BadLineError(path, number, problem) from None


def _events(
    reading: EventReading, page: list[tuple[int, dict[str, str]]], base: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The impression of a page, and a click for each clicked document."""
    number, first = page[0]
    session, search, query = _search(first)
    same = {
        "unit": first.get("unit") or session,
        "session": session,
        "search": search or line_id(reading.name, number, session, query),
        "query": query or None,
    }
    ordered = sorted(page, key=lambda one: _position(reading.path, *one))
    for rank, (line, row) in enumerate(ordered, base):
        if _position(reading.path, line, row) != rank:
            expected = f"expected a document at rank {rank} of this search"
            raise BadLineError(reading.path, line, f"{expected}, found rank {_position(reading.path, line, row)}")
    documents = [row["document"] for _, row in ordered]
    time = first.get("time") or reading.time
    yield (
        number,
        {"event_id": line_id(reading.name, number), "time": time, "kind": "impression", **same, "shown": documents},
    )
    for line, row in page:
        clicked = CLICKED.get(row["clicked"].strip().lower())
        if clicked is None:
            problem = f"expected true or false as clicked, found {shortened(row['clicked'])!r}"
            raise BadLineError(reading.path, line, problem)
        if clicked:
            yield (
                line,
                {
                    "event_id": line_id(reading.name, line, "click"),
                    "time": row.get("time") or reading.time,
                    "kind": "click",
                    **same,
                    "document": row["document"],
                    "position": _position(reading.path, line, row) - base + 1,
                },
            )

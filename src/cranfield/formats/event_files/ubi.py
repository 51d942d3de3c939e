"""OpenSearch's User Behavior Insights: rows of ubi_queries and ubi_events, as bulk files or bare lines.

The plugin writes several rows for one search (each shard request, a count, the page itself), and clients differ in how
they write times and whether positions start with 0 or 1. So a file is read whole before its first event is returned.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import BadLineError
from cranfield.base.text_layout import counted
from cranfield.formats.event_files.format import EventFormat, EventReading, line_id
from cranfield.formats.streams import json_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

QUERIES, EVENTS = "ubi_queries", "ubi_events"
ACTIONS = ("index", "create")
OURS = ("value", "experiment", "variant", "credit", "session")  # fields that UBI lacks: kept as attributes
KINDS = {
    "item_click": "click",
    "click_through": "click",
    "purchase": "conversion",
}  # UBI's word for an action, and ours
MOST_NAMED = 20  # ids that are named in notes
TAKEN = (
    ("object", "object_id"),
    ("position", "ordinal"),
    ("session_id",),
)  # paths in event_attributes that become fields of their own


class Line(NamedTuple):
    """A row of a file: its line number, its id, and its content."""

    number: int
    id: str
    row: dict[str, Any]


class UBI(EventFormat):
    """OpenSearch UBI: rows of `ubi_queries` and `ubi_events`, with bulk actions between them or without.

    A search becomes an impression: its earliest row with hits counts. Positions of an application that uses 0 anywhere
    start with 0. The unit is `client_id`; an event's id is the bulk `_id`, else a hash of file and line.
    """

    name = "ubi"
    place = 20

    def begins(self, head: str) -> bool:
        if not head.startswith("{"):
            return False
        bulk = any(f'"{action}"' in head for action in ACTIONS) and '"_index"' in head
        return bulk or '"action_name"' in head or ('"query_id"' in head and '"user_query"' in head)

    def rows(self, reading: EventReading) -> Iterator[tuple[int, dict[str, Any]]]:
        queries, events = _lines(reading)
        first_note = len(reading.notes)
        searches = _searches(queries, reading)
        bases = _bases(events, reading)
        for line in searches.values():
            yield line.number, _impression(line, reading.path)
        for line in events:
            yield line.number, _event(line, bases, reading.path)
        without = sum(line.row.get("query_id") not in searches for line in events)
        reading.notes[first_note:first_note] = [
            f"{counted(len(queries), 'query row')} are {len(searches):,} searches",
            f"{counted(len(events), 'event')}, {without:,} of them without a query row",
        ]

    def write(self, rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
        for row in rows:
            is_query = row["kind"] == "impression" and "document" not in row
            action = {"index": {"_index": QUERIES if is_query else EVENTS, "_id": row["event_id"]}}
            fields = _query_row(row) if is_query else _event_row(row)
            yield "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in (action, fields)).encode()


# reading


def _lines(reading: EventReading) -> tuple[list[Line], list[Line]]:
    """The rows of queries and of events."""
    queries: list[Line] = []
    events: list[Line] = []
    action: dict[str, Any] | None = None
    number = 0
    for number, row in json_rows(reading.path, "a row of UBI as a JSON object"):
        meant = next((row[name] for name in ACTIONS if isinstance(row.get(name), dict) and len(row) == 1), None)
        if meant is not None:
            if action is not None:
                problem = "expected the row of the bulk action above, found another action"
                raise BadLineError(reading.path, number, problem)
            action = meant
            continue
        for name in ("event_attributes", "query_attributes"):
            if not isinstance(row.get(name) or {}, dict):
                raise BadLineError(reading.path, number, f"expected a JSON object as {name}, found {row[name]!r:.60}")
        index, identity = (action or {}).get("_index", ""), (action or {}).get("_id")
        action = None
        is_query = QUERIES in index if index else "action_name" not in row
        unknown = line_id(reading.name, number, json.dumps(row, sort_keys=True))
        (queries if is_query else events).append(Line(number, unknown if identity is None else str(identity), row))
    if action is not None:
        raise BadLineError(reading.path, number, "expected a row below the bulk action, found the end of the file")
    return queries, events


def _searches(queries: list[Line], reading: EventReading) -> dict[str, Line]:
    """The row that counts for each search: the earliest with hits, else the earliest."""
    rows: dict[str, list[Line]] = {}
    for line in queries:
        search = line.row.get("query_id")
        if not isinstance(search, str) or not search:
            raise BadLineError(reading.path, line.number, f"expected a query_id as text, found {search!r:.60}")
        rows.setdefault(search, []).append(line)
    doubtful = [(search, lines) for search, lines in rows.items() if len({_query(line) for line in lines}) > 1]
    for search, lines in doubtful[:MOST_NAMED]:
        other = next(line for line in lines if _query(line) != _query(lines[0]))
        problem = f"query_id {search!r} has another query text in line {other.number}"
        reading.notes.append(f"{reading.path}:{lines[0].number}: {problem}; the earliest row with hits counts")
    if len(doubtful) > MOST_NAMED:
        reading.notes.append(f"{len(doubtful) - MOST_NAMED:,} more query ids have several query texts")
    return {
        search: min(lines, key=lambda line: (not line.row.get("query_response_hit_ids"), _time(line, reading.path)))
        for search, lines in rows.items()
    }


def _query(line: Line) -> str:
    return str(line.row.get("user_query") or "")


def _bases(events: list[Line], reading: EventReading) -> dict[str, int]:
    """The first position in each application: 0 or 1."""
    least: dict[str, int] = {}
    for line in events:
        ordinal = _within(line.row, "position", "ordinal")
        if isinstance(ordinal, int) and not isinstance(ordinal, bool):
            application = str(line.row.get("application") or "")
            least[application] = min(least.get(application, ordinal), ordinal)
    from_0 = [name for name, first in least.items() if first == 0]
    if from_0:
        reading.notes.append(f"positions of {', '.join(map(repr, from_0))} are counted from 0")
    return {name: min(first, 1) for name, first in least.items()}


def _impression(line: Line, path: str) -> dict[str, Any]:
    row = line.row
    ours, attributes = _ours(row.get("query_attributes") or {})
    return {
        "event_id": line.id,
        "time": _time(line, path),
        "kind": "impression",
        "unit": row.get("client_id"),
        "search": row["query_id"],
        "query": row.get("user_query"),
        "shown": row.get("query_response_hit_ids") or None,
        "application": row.get("application"),
        "attributes": _flat({"query_response_id": row.get("query_response_id"), **attributes}),
        **ours,
    }


def _event(line: Line, bases: dict[str, int], path: str) -> dict[str, Any]:
    row = line.row
    action = row.get("action_name")
    kind = KINDS.get(action) if isinstance(action, str) else None
    ordinal = _within(row, "position", "ordinal")
    base = bases.get(str(row.get("application") or ""), 1)
    ours, attributes = _ours(_without(row.get("event_attributes") or {}, TAKEN))
    texts = {name: row.get(name) for name in ("message", "message_type", "user_id") if row.get(name)}
    document = _within(row, "object", "object_id")
    return {
        "event_id": line.id,
        "time": _time(line, path),
        "kind": kind or action,
        "unit": row.get("client_id"),
        "session": row.get("session_id") or _within(row, "session_id"),
        "search": row.get("query_id"),
        "query": row.get("user_query"),
        "document": document if document is None else str(document),
        "position": ordinal - base + 1 if isinstance(ordinal, int) else ordinal,
        "application": row.get("application"),
        "attributes": _flat(texts) | ({"action_name": action} if kind else {}) | _flat(attributes),
        **ours,
    }


def _ours(attributes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes that are fields of our schema, and the other attributes."""
    ours = {
        name: attributes[name]
        for name in OURS
        if isinstance(attributes.get(name), (int, float) if name == "value" else str)
    }
    return ours, {name: value for name, value in attributes.items() if name not in ours}


def _within(row: dict[str, Any], *keys: str) -> Any:
    """The value in event_attributes below these keys; None if one of them is missing."""
    value: Any = row.get("event_attributes")
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _without(tree: dict[str, Any], paths: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """A tree without the values at some paths."""
    heads = {path[0]: [other[1:] for other in paths if other[0] == path[0] and other[1:]] for path in paths}
    rest = {}
    for name, value in tree.items():
        if name not in heads:
            rest[name] = value
        elif heads[name] and isinstance(value, dict):
            rest[name] = _without(value, heads[name])
    return rest


def _flat(tree: dict[str, Any], before: str = "") -> dict[str, str]:
    """A tree as texts by dotted names; lists as JSON; empty values are left out."""
    flat: dict[str, str] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{name}.")
        elif value is not None and value != "":
            flat[f"{before}{name}"] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return flat


def _time(line: Line, path: str) -> str:
    """A time in the form of the schema, from text with any offset or from milliseconds since 1970."""
    timestamp = line.row.get("timestamp")
    try:
        if isinstance(timestamp, str) and not timestamp.isdigit():
            time = datetime.fromisoformat(timestamp)
        elif isinstance(timestamp, (int, str)) and not isinstance(timestamp, bool):
            time = datetime.fromtimestamp(int(timestamp) // 1000, UTC).replace(microsecond=int(timestamp) % 1000 * 1000)
        else:
            raise ValueError
        time = time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        expected = "expected a timestamp such as 2026-03-01T10:00:00Z or milliseconds since 1970"
        raise BadLineError(path, line.number, f"{expected}, found {timestamp!r:.60}") from None
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


# writing


def _query_row(row: dict[str, Any]) -> dict[str, Any]:
    attributes = dict(row.get("attributes", {}))
    fields = {
        "application": row.get("application"),
        "query_id": row.get("search"),
        "client_id": row["unit"],
        "user_query": row.get("query"),
        "query_response_id": attributes.pop("query_response_id", None),
        "query_response_hit_ids": row.get("shown"),
        "timestamp": row["time"],
    }
    return {**_without_none(fields), "query_attributes": _tree(attributes) | _fields_of(row, OURS)}


def _event_row(row: dict[str, Any]) -> dict[str, Any]:
    attributes = dict(row.get("attributes", {}))
    fields = {
        "application": row.get("application"),
        "action_name": attributes.pop("action_name", row["kind"]),
        "query_id": row.get("search"),
        "session_id": row.get("session"),
        "client_id": row["unit"],
        "user_id": attributes.pop("user_id", None),
        "user_query": row.get("query"),
        "timestamp": row["time"],
        "message_type": attributes.pop("message_type", None),
        "message": attributes.pop("message", None),
    }
    tree = _tree(attributes) | _fields_of(row, OURS[:-1])
    for field, (name, key) in (("document", TAKEN[0]), ("position", TAKEN[1])):
        if row.get(field) is not None:
            held = tree.get(name)
            tree[name] = {key: row[field], **(held if isinstance(held, dict) else {})}
    return {**_without_none(fields), "event_attributes": tree}


def _fields_of(row: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return _without_none({name: row.get(name) for name in names})


def _without_none(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _tree(flat: dict[str, Any]) -> dict[str, Any]:
    """Dotted names as a tree; a name whose path leads through a text stays dotted."""
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        *way, last = name.split(".")
        at: Any = tree
        for step in way:
            at = at.setdefault(step, {}) if isinstance(at, dict) else None
        if isinstance(at, dict) and last not in at:
            at[last] = value
        else:
            tree[name] = value
    return tree

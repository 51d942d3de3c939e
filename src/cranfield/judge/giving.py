"""A log as files that others read: JSON lines and CSV of events, trec_eval's `prefs`; qrels come by a policy.

Lines and CSV say whose each event is; `prefs` cannot, and hold people's unless told.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from cranfield.errors import FormatError
from cranfield.judge.event import DEFAULTS, of_lists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cranfield.judge.event import Event


PREFS = "prefs"


def as_lines(events: Iterable[Event]) -> bytes:
    """JSON lines, which `judge add` reads back as they are."""
    return "".join(event.line() + "\n" for event in events).encode("utf-8", "surrogateescape")


def as_csv(events: Sequence[Event]) -> bytes:
    """A row an event and a column for each field that any of them fills, which `judge add` reads back as they are."""
    rows = [event.row() for event in events]
    names = [name for name in DEFAULTS if name in ("topic", "document", "grade") or any(name in row for row in rows)]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for event, row in zip(events, rows, strict=True):
        writer.writerow(["" if (value := row.get(name, getattr(event, name))) is None else value for name in names])
    return text.getvalue().encode("utf-8", "surrogateescape")


def as_preferences(events: Iterable[Event]) -> bytes:
    """trec_eval's `prefs`: topic, group, subgroup, document, level. Each preference is a subgroup, each person a group.

    Preferences between result lists are left out: they name runs.
    """
    lines = []
    pairs: dict[tuple[str, str], int] = {}
    for event in events:
        if event.kind != "preference" or event.grade is None or of_lists(event.aspect):
            continue
        who = event.assessor or "-"
        pair = pairs[event.topic, who] = pairs.get((event.topic, who), 0) + 1
        for document, level in ((event.document, max(event.grade, 0)), (event.other, max(-event.grade, 0))):
            ids = event.topic, who, document
            spaced = next((each for each in ids if not each or each != "".join(each.split())), None)
            if spaced is not None:
                raise FormatError(f"prefs cannot hold {spaced!r}, which has white space; export jsonl or csv instead")
            lines.append(f"{event.topic} {who} {pair} {document} {level + 1:g}\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


WRITERS: dict[str, Callable[[Sequence[Event]], bytes]] = {
    "jsonl": as_lines,
    "csv": as_csv,
    PREFS: as_preferences,
}
"""What events are written as, by name; qrels, which are no events, come by a policy."""

"""An event: one thing that a unit was shown or did. An event log holds nothing else.

This module validates events, from files and over HTTP alike. Events are only appended. The client makes their ids, so
sending is idempotent: the same id is the same event, however often it is sent.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.formats.event_files.format import FIELDS

KINDS: dict[str, tuple[str, ...]] = {  # each with its required fields; other kinds are stored unchanged
    "exposure": ("experiment", "variant"),
    "impression": ("search",),
    "click": ("search", "document"),
    "dwell": ("search", "document", "value"),
    "conversion": (),
}
ALWAYS = ("event_id", "time", "kind", "unit")
TEXTS = tuple(name for name, kind in FIELDS.items() if kind == "VARCHAR")
MOST_BYTES = 64_000  # of an event as JSON
LONGEST_ID = 500  # characters
IDS = ("event_id", "kind", "unit", "session", "search", "document", "experiment", "variant", "application")
LAST_POSITION = 2**31 - 1
AHEAD = timedelta(hours=1)  # how far a client's clock may be ahead of ours
UNFIT = re.compile("[\ud800-\udfff\0]")  # DuckDB and Arrow reject these


def instant(when: str | datetime) -> str:
    """A time as events store it: UTC, to the microsecond; the order of these texts is the order in time.

    >>> instant("2026-03-01T10:00:00+02:00")
    '2026-03-01T08:00:00.000000Z'
    """
    try:
        time = datetime.fromisoformat(when) if isinstance(when, str) else when
        time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise DataError(f"expected a time such as 2026-03-01T10:00:00Z, found {shortened(when)!r}") from None
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEvent:
    """What a unit was shown or did, with time and result page; `time` is UTC, `position` counts from 1.

    >>> UserEvent(event_id="e1", time="2026-03-01", kind="conversion", unit="u1", value=9.5).line()
    '{"event_id": "e1", "time": "2026-03-01T00:00:00.000000Z", "kind": "conversion", "unit": "u1", "value": 9.5}'
    """

    event_id: str
    time: str
    kind: str
    unit: str  # the randomisation unit: user, session
    session: str | None = None
    search: str | None = None  # one result page
    query: str | None = None
    shown: tuple[str, ...] | None = None  # documents in order
    credit: str | None = None  # the token of an interleaved list
    document: str | None = None
    position: int | None = None
    value: float | None = None  # seconds, money
    experiment: str | None = None
    variant: str | None = None
    application: str | None = None
    attributes: dict[str, str] | None = None

    def __post_init__(self) -> None:
        problem = _bad_text(self) or _missing_field(self) or _bad_number(self)
        if problem:
            raise DataError(problem)
        setting = object.__setattr__
        setting(self, "time", instant(self.time))
        setting(self, "shown", _shown_documents(self.shown))
        setting(self, "attributes", _attributes(self.attributes))
        setting(self, "value", None if self.value is None else float(self.value) + 0.0)  # no negative zero

    @property
    def day(self) -> str:
        """The day of the event in UTC."""
        return self.time[:10]

    def row(self) -> dict[str, Any]:
        """The fields that are set."""
        return {name: value for name in FIELDS if (value := getattr(self, name)) is not None}

    def line(self) -> str:
        """The event as one line of JSON; DataError if it is too long."""
        text = json.dumps(self.row(), ensure_ascii=False)
        if len(text) > MOST_BYTES // 4 and (size := len(text.encode())) > MOST_BYTES:
            expected = f"expected an event of {MOST_BYTES:,} bytes at the most"
            raise DataError(f"{expected}, found {size:,} ({self.event_id!r})")
        return text

    @classmethod
    def of(cls, row: Any) -> UserEvent:
        """The event in a JSON object; unknown fields are an error, as they would be lost."""
        if not isinstance(row, dict):
            raise DataError(f"expected an event as a JSON object, found {type(row).__name__}")
        unknown = [name for name in row if name not in FIELDS]
        if unknown:
            raise DataError(f"expected fields of {', '.join(FIELDS)}, found {shortened(unknown[0])!r}")
        lacking = [name for name in ALWAYS if row.get(name) in (None, "")]
        if lacking:
            raise DataError(f"an event needs {', '.join(ALWAYS)}; there is no {lacking[0]}")
        return cls(**{name: _text(name, value) for name, value in row.items()})


def refuse_ahead(event: UserEvent, now: datetime) -> None:
    """Raise DataError if an event is too far in the future: the client's clock is wrong."""
    latest = instant(now + AHEAD)
    if event.time > latest:
        ahead = datetime.fromisoformat(event.time) - now
        raise DataError(
            f"event {event.event_id!r} is {ahead} ahead of this machine's clock ({event.time}, now {instant(now)}); "
            f"at most {AHEAD} is accepted"
        )


def _text(name: str, value: Any) -> Any:
    """A text field: whole numbers become text, an empty text becomes None."""
    if name in TEXTS:
        return str(value) if type(value) is int else None if value == "" else value
    return value


def _bad_text(event: UserEvent) -> str | None:
    for name in TEXTS:
        value = getattr(event, name)
        if value is None:
            continue
        if not isinstance(value, str):
            return f"expected text as {name}, found {value!r:.60}"
        if UNFIT.search(value):
            return f"expected Unicode text without NUL as {name}, found {shortened(ascii(value))}"
        if len(value) > LONGEST_ID and name in IDS:
            return f"expected {LONGEST_ID} characters at the most as {name}, found {len(value):,}"
    return None


def _missing_field(event: UserEvent) -> str | None:
    needed = (*ALWAYS, *KINDS.get(event.kind, ()))
    lacking = next((name for name in needed if getattr(event, name) in (None, "")), None)
    return lacking and f"{_a(event.kind)} needs {', '.join(needed)}; there is no {lacking}"


def _a(kind: str) -> str:
    return f"{'an' if kind[:1] in 'aeiou' else 'a'} {shortened(kind)}" if kind else "an event"


def _bad_number(event: UserEvent) -> str | None:
    value, position = event.value, event.position
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not _finite(value)):
        return f"expected a finite number as value, found {shortened(value)}"
    if event.kind == "dwell" and value is not None and value < 0:
        return f"expected seconds of 0 or more as value, found {value!r}"
    if position is not None and (type(position) is not int or not 1 <= position <= LAST_POSITION):
        return f"expected a position of 1 or more, found {shortened(position)}"
    return None


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _shown_documents(shown: Any) -> tuple[str, ...] | None:
    if shown is None:
        return None
    if not isinstance(shown, (list, tuple)):
        raise DataError(f"expected a list of documents as shown, found {shown!r:.60}")
    documents = tuple(str(each) if type(each) is int else each for each in shown)
    for each in documents:
        if not isinstance(each, str) or not each or UNFIT.search(each) or len(each) > LONGEST_ID:
            raise DataError(f"expected ids of documents as shown, found {shortened(ascii(each))}")
    return documents


def _attributes(attributes: Any) -> dict[str, str] | None:
    """Attributes as texts by name, sorted; other values are written as JSON."""
    if not attributes and (attributes is None or isinstance(attributes, dict)):
        return None
    if not isinstance(attributes, dict):
        raise DataError(f"expected a JSON object as attributes, found {attributes!r:.60}")
    texts = {}
    for name, value in sorted(attributes.items()):
        try:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (ValueError, TypeError, RecursionError) as error:
            deep = isinstance(error, RecursionError)
            problem = f"one nested too deeply as {shortened(name)}" if deep else f"{shortened(value)} as {name}"
            raise DataError(f"expected text, numbers or lists as attributes, found {problem}") from None
        if UNFIT.search(name) or UNFIT.search(text):
            raise DataError(f"expected Unicode text without NUL as attributes, found {shortened(ascii(text))}")
        texts[name] = text
    return texts or None

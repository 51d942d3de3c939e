"""A log as JSON lines, for one machine: whoever adds holds the file's lock from the look at its end to the sync.

Lines of only topic, document, grade, assessor and time, as `pool judge` once wrote them, are judgments; their ids are
made of the line. Rounds and versions are lines too; what follows from them is worked out in a SQLite database in memory,
by the code that serves the other logs, brought up to date under the lock.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from cranfield.errors import BadLineError, DataError
from cranfield.formats.judgments import adding
from cranfield.formats.streams import reason
from cranfield.judge.adding import Added, refuse_unknown_withdrawals, sorted_out
from cranfield.judge.event import DEFAULTS, KINDS, Event
from cranfield.judge.log import Log
from cranfield.judge.standing import standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cranfield.formats.judgments import Adding
    from cranfield.judge.records import Transaction
    from cranfield.judge.standing import Key
    from cranfield.store import Database

T = TypeVar("T")

LONG_AGO = "0001-01-01T00:00:00.000000Z"  # of lines that name no time: they come before all that do


class LinesLog(Log):
    """Events in a file of JSON lines."""

    def __init__(self, path: str) -> None:
        self.name = self.path = path
        self._read = 0  # bytes
        self._lines = 0
        self._events: list[Event] = []
        self._known: dict[str, Event] = {}
        self._records: list[dict[str, Any]] = []  # rounds, leases and versions, with the events between them
        self._mirror: Database | None = None
        self._mirrored = 0

    def _take(self, data: bytes) -> None:
        """Whole lines that others, or this, have added."""
        parts = data.split(b"\n")
        for line in parts[:-1] + [parts[-1]] * bool(parts[-1].strip()):
            self._lines += 1
            if line.strip():
                self._take_line(line)
        self._read += len(data)

    def _take_line(self, line: bytes) -> None:
        record = _record(line.removeprefix(b"\xef\xbb\xbf"), self.path, self._lines)
        self._records.append(record)
        if "event" in record:
            event = record["event"]
            if event.id not in self._known:
                self._known[event.id] = event
                self._events.append(event)

    def _refresh(self) -> None:
        try:
            with open(self.path, "rb") as file:
                file.seek(self._read)
                data = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {reason(error)}") from error
        whole = data.rfind(b"\n") + 1
        last = data[whole:]
        if last.strip() and parsed(last) is not None:  # whole, though its newline is missing
            whole = len(data)
        self._take(data[:whole])

    def _catch_up(self, file: Adding) -> None:
        if file.size < self._read:
            raise DataError(f"{self.path}: has become shorter while it was open; open it again")
        self._take(file.since(self._read))

    def add(self, events: Sequence[Event]) -> Added:
        if any(event.round for event in events):  # there must be such a round, and the document in it
            return self.write(lambda transaction: transaction.add(events, self.name))
        with adding(self.path) as file:
            self._catch_up(file)
            new, known = sorted_out(events, self._known, self.name)
            fresh = {event.id: event.kind for event in new}
            kinds = {event.id: event.kind for event in self._known.values()} if _withdraws(new) else {}
            refuse_unknown_withdrawals(new, lambda each: fresh.get(each) or kinds.get(each), self.name)
            self._append(file, [event.line() for event in new])
        return Added(len(new), known)

    def add_if(self, event: Event, fits: Callable[[list[Event]], bool]) -> bool:
        with adding(self.path) as file:
            self._catch_up(file)
            about = [each for each in self._events if each.kind == "withdrawal" or each.subject == event.subject]
            if not fits(list(standing(about).values())):
                return False
            new, _ = sorted_out([event], self._known, self.name)
            self._append(file, [each.line() for each in new])
            return True

    def _append(self, file: Adding, lines: list[str]) -> None:
        if lines:
            before = file.size
            file.add(lines)
            self._take(file.since(before).removeprefix(b"\n"))
            self._read = file.size

    def events(self, after: int = 0) -> list[Event]:
        self._refresh()
        return self._events[after:]

    def place(self) -> int:
        self._refresh()
        return len(self._events)

    def standing(self) -> dict[Key, Event]:
        return standing(self.events())

    def write(self, work: Callable[[Transaction], T]) -> T:
        with adding(self.path) as file:
            self._catch_up(file)
            with self._mirrored_up_to_date() as transaction:
                answer = work(transaction)
                self._append(file, [record_line(record) for record in transaction.done])
                self._mirrored = len(self._records)
        return answer

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        self._refresh()
        with self._mirrored_up_to_date() as transaction:
            yield transaction

    @contextmanager
    def _mirrored_up_to_date(self) -> Iterator[Transaction]:
        """A transaction on the database in memory, which knows every line; undone where an error comes."""
        from cranfield.judge.records import Transaction
        from cranfield.store import open_database

        if self._mirror is None:
            self._mirror = open_database(":memory:")
        known = self._mirrored
        try:
            with self._mirror.engine.begin() as connection:
                transaction = Transaction(connection, self._mirror)
                for record in self._records[known:]:
                    transaction.apply(record)
                self._mirrored = len(self._records)
                transaction.done.clear()
                yield transaction
        except BaseException:
            self._mirrored = known
            raise

    def has_records(self) -> bool:
        """Whether there is anything but events: a round, a version."""
        self._refresh()
        return any("event" not in record for record in self._records)

    def close(self) -> None:
        if self._mirror is not None:
            self._mirror.close()


def record_line(record: dict[str, Any]) -> str:
    """A record as a line of the file."""
    return record["event"].line() if "event" in record else json.dumps(record)


def _withdraws(events: Sequence[Event]) -> bool:
    return any(event.kind == "withdrawal" for event in events)


def parsed(line: bytes) -> Any:
    """What a line of JSON holds; None if it is none."""
    try:
        return json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None


def _record(line: bytes, where: str, number: int) -> dict[str, Any]:
    """What a line of a log says: an event under `event`, or a record as it is."""
    row = parsed(line)
    if not isinstance(row, dict):
        raise BadLineError(where, number, f"expected a JSON object with topic, document and grade, found {line[:60]!r}")
    if row.get("kind", "judgment") not in KINDS and "record" in row:
        return row
    if "id" not in row:
        row = {name: value for name, value in row.items() if name in DEFAULTS}  # today's and yesterday's extra fields
        digest = hashlib.sha256(line).hexdigest()[:16]
        row |= {"id": f"line-{number:09d}-{digest}", "time": row.get("time") or LONG_AGO}
    try:
        return {"event": Event.of(row)}
    except (DataError, TypeError) as error:
        raise BadLineError(where, number, str(error)) from None

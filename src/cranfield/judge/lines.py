"""A log as JSON lines, for one machine: whoever adds holds the file's lock from the look at its end to the sync.

Lines of only topic, document, grade, assessor and time, as `pool judge` once wrote them, are judgments; their ids are
made of the line. Rounds and versions are lines too; what follows from them is worked out in a SQLite database in memory,
by the code that serves the other logs, brought up to date under the lock.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from cranfield.errors import BadLineError, DataError
from cranfield.formats.judgments import adding, torn_alone
from cranfield.formats.streams import BOM, read_stream, reason
from cranfield.hearing import say
from cranfield.judge.adding import Added, refuse_unknown_withdrawals, sorted_out
from cranfield.judge.event import DEFAULTS, KINDS, Event, instant
from cranfield.judge.log import Log
from cranfield.judge.standing import standing
from cranfield.shapes import check_line, parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cranfield.formats.judgments import Adding
    from cranfield.judge.records import Transaction
    from cranfield.judge.standing import Key
    from cranfield.store import Database

T = TypeVar("T")

RECEIVED = "received"
HASH = "sha256"
SEAL = f', "{HASH}": "'  # before the hash, at the end of a line
SEALED = ("round", "items", "version", "series")  # records that decide numbers; leases and questions come and go
LONG_AGO = "0001-01-01T00:00:00.000000Z"  # of lines that name no time: they come before all that do


class LinesLog(Log):
    """Events in a file of JSON lines."""

    def __init__(self, path: str, clock: Callable[[], str] | None = None) -> None:
        self.name = self.path = path
        self._clock = clock
        self._turn = threading.RLock()  # threads of this process; other processes wait for the file's lock
        self._read = 0  # bytes
        self._lines = 0
        self._unended = False  # the last line that was read lacks its newline
        self._events: list[Event] = []
        self._known: dict[str, Event] = {}
        self._records: list[tuple[int, dict[str, Any]]] = []  # what each line says, events and others, by its number
        self._mirror: Database | None = None
        self._mirrored = 0

    def _take(self, data: bytes) -> None:
        """Whole lines that others, or this, have added."""
        self._read += len(data)
        if self._unended and data:
            data = data.removeprefix(b"\n")
        *lines, last = data.split(b"\n")
        for line in [*lines, last] if last.strip() else lines:
            self._lines += 1
            if line.strip():
                self._take_line(line)
        self._unended = bool(last.strip()) or (self._unended and not data)

    def _take_line(self, line: bytes) -> None:
        record = _record(line.removeprefix(BOM), self.path, self._lines)
        event = record.get("event")
        if event is not None:
            try:
                if not sorted_out([event], self._known, self.path)[0]:
                    return  # the same line again
            except DataError as error:
                raise BadLineError(self.path, self._lines, str(error).removeprefix(f"{self.path}: ")) from None
            self._known[event.id] = event
            self._events.append(event)
        self._records.append((self._lines, record))

    def _refresh(self) -> None:
        try:
            with open(self.path, "rb") as file:
                self._refuse_shorter(os.fstat(file.fileno()).st_size)
                file.seek(self._read)
                data = read_stream(file, self.path, self._lines + 1)
        except FileNotFoundError:
            self._refuse_shorter(0)
            return
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {reason(error)}") from error
        whole = data.rfind(b"\n") + 1
        last = data[whole:]
        alone = not self._read and not whole  # nothing before it says that this is a log
        if last.strip() and (parsed(last) is not None or (alone and not torn_alone(last.removeprefix(BOM)))):
            whole = len(data)  # though its newline is missing; what is no line of a log is refused as one
        self._take(data[:whole])

    def _refuse_shorter(self, size: int) -> None:
        if size < self._read:
            raise DataError(f"{self.path}: has become shorter while it was open; open it again")

    def _catch_up(self, file: Adding) -> None:
        self._refuse_shorter(file.size)
        self._take(file.since(self._read))

    def add(self, events: Sequence[Event]) -> Added:
        if any(event.round for event in events):  # there must be such a round, and the document in it
            return self.write(lambda transaction: transaction.add(events, self.name))
        with self._turn, adding(self.path) as file:
            self._catch_up(file)
            new, known = sorted_out(events, self._known, self.name)
            kinds = {event.id: event.kind for event in (*self._known.values(), *new)} if _withdraws(new) else {}
            refuse_unknown_withdrawals(new, kinds.get, self.name)
            self._append(file, [{"event": event, "at": self._now()} for event in new])
        return Added(len(new), known)

    def add_if(self, event: Event, fits: Callable[[list[Event]], bool]) -> bool:
        with self._turn, adding(self.path) as file:
            self._catch_up(file)
            about = [each for each in self._events if each.kind == "withdrawal" or each.subject == event.subject]
            if not fits(list(standing(about).values())):
                return False
            new, _ = sorted_out([event], self._known, self.name)
            self._append(file, [{"event": each, "at": self._now()} for each in new])
            return True

    def _now(self) -> str:
        return instant() if self._clock is None else self._clock()

    def _append(self, file: Adding, records: list[dict[str, Any]]) -> None:
        if records:
            file.add(map(record_line, records))
            self._take(file.since(self._read))

    def events(self, after: int = 0, up_to: int | None = None) -> list[Event]:
        with self._turn:
            self._refresh()
            return self._events[after:up_to]

    def place(self) -> int:
        with self._turn:
            self._refresh()
            return len(self._events)

    def standing(self) -> dict[Key, Event]:
        return standing(self.events())

    def write(self, work: Callable[[Transaction], T]) -> T:
        with self._turn, adding(self.path) as file:
            self._catch_up(file)
            with self._mirrored_up_to_date() as transaction:
                answer = work(transaction)
                self._append(file, transaction.done)
                self._mirrored = len(self._records)
        return answer

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._turn:
            self._refresh()
            with self._mirrored_up_to_date() as transaction:
                yield transaction

    @contextmanager
    def _mirrored_up_to_date(self) -> Iterator[Transaction]:
        """A transaction on the database in memory, which knows every line; undone where an error comes."""
        from cranfield.judge.records import Transaction
        from cranfield.store import open_database

        if self._mirror is None:
            self._mirror = open_database(":memory:", self._clock)
        known = self._mirrored
        try:
            with self._mirror.in_words(), self._mirror.engine.begin() as connection:
                before = Transaction(connection, self._mirror, replaying=True)
                for number, record in self._records[known:]:
                    self._replay(before, number, record)
                self._mirrored = len(self._records)
                yield Transaction(connection, self._mirror)
        except BaseException:
            self._mirrored = known
            raise

    def _replay(self, transaction: Transaction, number: int, record: dict[str, Any]) -> None:
        """Let the database in memory know what a line says."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            if "event" not in record:
                self._refuse_record(number, record)
            transaction.apply(record)
        except BadLineError:
            raise
        except (DataError, KeyError, TypeError, ValueError, SQLAlchemyError) as error:
            told = str(error) if isinstance(error, DataError) else "was not written by this cranfield; upgrade it"
            raise BadLineError(self.path, number, told) from None

    def _refuse_record(self, number: int, record: dict[str, Any]) -> None:
        """Stop at a record of a known kind that does not have its shape."""
        from cranfield.judge.records import CHANGES

        change = CHANGES.get(record["record"]) if isinstance(record["record"], str) else None
        if change is not None:
            check_line(record, change.shape, self.path, number, ("record", "kind"))

    def has_records(self) -> bool:
        """Whether there is anything but events: a round, a version."""
        with self._turn:
            self._refresh()
            return any("event" not in record for _, record in self._records)

    def verify(self) -> None:
        with self.reading():  # whatever was changed stops at its line
            pass

    def close(self) -> None:
        with self._turn:
            if self._mirror is not None:
                self._mirror.close()
            self._mirror, self._mirrored = None, 0


def record_line(record: dict[str, Any]) -> str:
    """A record as a line of the file; what changes the places of a round says when it came, by the clock of the log."""
    if "event" not in record:
        return _sealed(json.dumps(record)) if record["record"] in SEALED else json.dumps(record)
    event: Event = record["event"]
    line = event.line()
    return f'{line[:-1]}, "{RECEIVED}": "{record["at"]}"}}' if event.round or event.kind == "withdrawal" else line


def _sealed(line: str) -> str:
    """A line of JSON with its own hash at the end."""
    return f'{line[:-1]}{SEAL}{hashlib.sha256(line.encode()).hexdigest()}"}}'


def _refuse_changed(row: dict[str, Any], line: bytes, where: str, number: int) -> None:
    """Take the hash out of a record, and stop where it is another's; one of an earlier cranfield has none, and that is said."""
    if row.get("record") not in SEALED:
        return
    seal = row.pop(HASH, None)
    if seal is None:
        say([f"{where}: an earlier cranfield wrote rounds or versions without hashes; changes to them are not noticed"])
        return
    as_written = line.rstrip().rpartition(SEAL.encode())[0] + b"}"
    if seal not in (hashlib.sha256(each).hexdigest() for each in (as_written, json.dumps(row).encode())):
        told = f"this {row['record']} was changed after it was written: its hash is another"
        raise BadLineError(where, number, f"{told}; restore the line from a copy")


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
    try:
        row = parse_json(line)
    except ValueError as error:
        why = f" ({error})" if parsed(line) is not None else ""
        told = f"expected a JSON object with topic, document and grade{why}, found {line[:60]!r}"
        raise BadLineError(where, number, told) from None
    if not isinstance(row, dict):
        raise BadLineError(where, number, f"expected a JSON object with topic, document and grade, found {line[:60]!r}")
    kind = row.get("kind", "judgment")
    if "record" in row and not (isinstance(kind, str) and kind in KINDS):
        _refuse_changed(row, line, where, number)
        return row
    at = row.pop(RECEIVED, None)
    if "id" not in row:
        row = {name: value for name, value in row.items() if name in DEFAULTS}  # today's and yesterday's extra fields
        digest = hashlib.sha256(line).hexdigest()[:16]
        row |= {"id": f"line-{number:09d}-{digest}", "time": row.get("time") or LONG_AGO}
    try:
        event = Event.of_before(row)
        return {"event": event, "at": event.time if at is None else instant(at)}
    except (DataError, TypeError) as error:
        raise BadLineError(where, number, str(error)) from None

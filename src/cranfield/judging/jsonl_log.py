"""A log as JSON lines, for one machine: a writer holds the file's lock from reading its end until the sync.

Lines with only topic, document, grade, assessor and time, as `pool judge` once wrote them, are judgments; their ids come from
the line. Rounds and versions are lines too. Their tables are computed in memory from the lines, by the same code as for
databases (`judging.table_changes.RecordTables`).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.notifications import say
from cranfield.base.schemas import check_line, parse_json
from cranfield.formats.label_files import LockedLog, locked_log, torn_alone
from cranfield.formats.streams import BOM, read_stream, reason, replacement, synced_file
from cranfield.judging.current_labels import LabelKey, current_events
from cranfield.judging.event import DEFAULTS, KINDS, AddedEvents, Event, instant, new_events, refuse_unknown_withdrawals
from cranfield.judging.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cranfield.judging.table_changes import RecordTables, Transaction

T = TypeVar("T")

RECEIVED = "received"
HASH = "sha256"
SEAL = f', "{HASH}": "'  # before the hash, at the end of a line
SEALED = (
    "round",
    "items",
    "change",
    "version",
    "series",
    "pseudonym",
)  # records that decide numbers; leases and questions come and go
LONG_AGO = "0001-01-01T00:00:00.000000Z"  # of lines that name no time: they come before all that do


class LinesLog(Log):
    """Events in a file of JSON lines."""

    def __init__(self, path: str, clock: Callable[[], str] | None = None) -> None:
        self.name = self.path = path
        self._clock = clock
        self._turn = threading.RLock()  # threads of this process; other processes wait for the file's lock
        self._file = (0, 0)  # device and number of the file
        self._begin()

    def _begin(self) -> None:
        """Forget all lines that were read."""
        self._read = 0  # bytes
        self._lines = 0
        self._unended = False  # the last line that was read lacks its newline
        self._events: list[Event] = []
        self._by_id: dict[str, Event] = {}
        self._records: list[tuple[int, dict[str, Any]]] = []  # what each line says, events and others, by its number
        self._tables: RecordTables | None = None

    def _take(self, data: bytes) -> None:
        """Read whole lines that this process or others have added."""
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
                if not new_events([event], self._by_id, self.path)[0]:
                    return  # the same line again
            except DataError as error:
                raise BadLineError(self.path, self._lines, str(error).removeprefix(f"{self.path}: ")) from None
            self._by_id[event.id] = event
            self._events.append(event)
        self._records.append((self._lines, record))

    def _refresh(self) -> None:
        try:
            with open(self.path, "rb") as file:
                status = os.fstat(file.fileno())
                self._refuse_replaced(status)
                self._refuse_shorter(status.st_size)
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

    def _refuse_replaced(self, status: os.stat_result) -> None:
        """Raise DataError if another file has taken the place of the one whose lines were read (`rewrite`)."""
        number = status.st_dev, status.st_ino
        if self._read and self._file != number:
            raise DataError(f"{self.path}: was rewritten while it was open; open it again")
        self._file = number

    def _refuse_shorter(self, size: int) -> None:
        if size < self._read:
            raise DataError(f"{self.path}: has become shorter while it was open; open it again")

    def _catch_up(self, file: LockedLog) -> None:
        self._refuse_replaced(file.status)
        self._refuse_shorter(file.size)
        self._take(file.since(self._read))

    def add(self, events: Sequence[Event]) -> AddedEvents:
        if any(event.round for event in events):  # there must be such a round, and the document in it
            return super().add(events)
        with self._turn, locked_log(self.path) as file:
            self._catch_up(file)
            new, repeated = new_events(events, self._by_id, self.name)
            refuse_unknown_withdrawals(new, self._by_id, self.name)
            self._append(file, [{"event": event, "at": self._now()} for event in new])
        return AddedEvents(len(new), repeated)

    def add_if(self, event: Event, fits: Callable[[list[Event]], bool]) -> bool:
        with self._turn, locked_log(self.path) as file:
            self._catch_up(file)
            about = [each for each in self._events if each.kind == "withdrawal" or each.subject == event.subject]
            if not fits(list(current_events(about).values())):
                return False
            new, _ = new_events([event], self._by_id, self.name)
            self._append(file, [{"event": each, "at": self._now()} for each in new])
            return True

    def _now(self) -> str:
        return instant() if self._clock is None else self._clock()

    def _append(self, file: LockedLog, records: list[dict[str, Any]]) -> None:
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

    def current_events(self) -> dict[LabelKey, Event]:
        return current_events(self.events())

    def write(self, work: Callable[[Transaction], T]) -> T:
        with self._turn, locked_log(self.path) as file:
            self._catch_up(file)
            with self._transaction() as transaction:
                answer = work(transaction)
                self._append(file, transaction.done)
        return answer

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._turn:
            self._refresh()
            with self._transaction() as transaction:
                yield transaction

    def _transaction(self) -> AbstractContextManager[Transaction]:
        """A transaction on the tables that follow from the lines."""
        from cranfield.judging.table_changes import RecordTables

        if self._tables is None:
            self._tables = RecordTables(self._clock)
        return self._tables.transaction(self._records, self._replay)

    def _replay(self, transaction: Transaction, line: tuple[int, dict[str, Any]]) -> None:
        """Apply the record of a line to the tables; a record other than an event must have the shape of its kind."""
        from cranfield.judging.table_changes import CHANGES

        number, record = line
        try:
            kind = record.get("record")
            if isinstance(kind, str) and kind in CHANGES:
                check_line(record, CHANGES[kind].shape, self.path, number, ("record", "kind"))
            transaction.apply(record)
        except BadLineError:
            raise
        except (DataError, KeyError, TypeError, ValueError, SQLAlchemyError) as error:
            problem = str(error) if isinstance(error, DataError) else "was not written by this cranfield; upgrade it"
            raise BadLineError(self.path, number, problem) from None

    def rewrite(
        self,
        change: Callable[[dict[str, Any]], dict[str, Any] | None],
        last: Callable[[str], dict[str, Any]],
    ) -> None:
        """Write the file again with the records that `change` replaces, and with the record of `last` at the end.

        Other lines stay as they are, byte by byte. `last` gets the time. An error leaves the file as it was.
        """
        with self._turn, locked_log(self.path) as file:
            lines = file.since(0).split(b"\n")
            for number, line in enumerate(lines):
                if line.strip():
                    new = change(_record(line.removeprefix(BOM), self.path, number + 1))
                    lines[number] = line if new is None else _encoded(new)
            if not lines[-1].strip():
                lines.pop()
            lines.append(_encoded(last(self._now())))
            with replacement(os.path.realpath(self.path), self.path) as path:
                with synced_file(path) as rewritten:
                    rewritten.write(b"\n".join([*lines, b""]))
                os.chmod(path, stat.S_IMODE(file.status.st_mode))
            if self._tables is not None:
                self._tables.close()
            self._begin()

    def has_records(self) -> bool:
        """Whether the file holds anything but events, such as a round or a version."""
        with self._turn:
            self._refresh()
            return any("event" not in record for _, record in self._records)

    def verify(self) -> None:
        with self.reading():  # whatever was changed stops at its line
            pass

    def close(self) -> None:
        with self._turn:
            if self._tables is not None:
                self._tables.close()


def _encoded(record: dict[str, Any]) -> bytes:
    return record_line(record).encode("utf-8", "surrogateescape")


def record_line(record: dict[str, Any]) -> str:
    """A record as a line of the file; events that change assignments include the time by the log's clock."""
    if "event" not in record:
        line = json.dumps(record)
        if record["record"] not in SEALED:
            return line
        return f'{line[:-1]}{SEAL}{hashlib.sha256(line.encode()).hexdigest()}"}}'
    event: Event = record["event"]
    line = event.line()
    return f'{line[:-1]}, "{RECEIVED}": "{record["at"]}"}}' if event.round or event.kind == "withdrawal" else line


def _refuse_changed(row: dict[str, Any], line: bytes, where: str, number: int) -> None:
    """Remove the hash from a record; raise BadLineError if it does not match, note it if there is no hash (earlier versions)."""
    if row.get("record") not in SEALED:
        return
    seal = row.pop(HASH, None)
    if seal is None:
        say([f"{where}: an earlier cranfield wrote rounds or versions without hashes; changes to them are not noticed"])
        return
    as_written = line.rstrip().rpartition(SEAL.encode())[0] + b"}"
    if seal not in (hashlib.sha256(each).hexdigest() for each in (as_written, json.dumps(row).encode())):
        problem = f"this {row['record']} was changed after it was written: its hash is another"
        raise BadLineError(where, number, f"{problem}; restore the line from a copy")


def parsed(line: bytes) -> Any:
    """The JSON value of a line; None if it is not JSON."""
    try:
        return json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None


def _record(line: bytes, where: str, number: int) -> dict[str, Any]:
    """The record of a line: an event under `event`, or another record as it is."""
    try:
        row, why = parse_json(line), ""
    except ValueError as error:
        row, why = None, f" ({error})" if parsed(line) is not None else ""
    if not isinstance(row, dict):
        problem = f"expected a JSON object with topic, document and grade{why}, found {line[:60]!r}"
        raise BadLineError(where, number, problem)
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

"""The collection's own judgments as events of a log: imported once, and changed when their file changes.

Only the difference to the file is written: judgments that are gone or have another grade are withdrawn, and new ones are
added. Ids come from the hash of the file and the line, so that two logs which imported the same file can be merged. A
file that returns to an earlier state gets ids of a new generation, because a withdrawn event stays withdrawn.

A file may hold a million judgments. A database therefore gets them in a few statements, without an object for each.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Text, select, type_coerce

from cranfield.base.kernels import decode
from cranfield.judging.current_labels import GradedLabel, LabelKey, key_of
from cranfield.judging.database_log import DatabaseLog
from cranfield.judging.event import COLLECTION, DEFAULTS, RELEVANCE, Event, new_id
from cranfield.judging.jsonl_log import LONG_AGO
from cranfield.store.hashes import imported_file, keep_imported_file
from cranfield.store.tables import escaped, events, withdrawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy.engine import Connection

    from cranfield.base.qrels import Qrels
    from cranfield.judging.log import Log
    from cranfield.judging.policies import Subject
    from cranfield.judging.table_changes import Transaction

AT_ONCE = 50_000  # events in one statement


class JudgmentFile(NamedTuple):
    """A collection's file of judgments: its name, the hash of its bytes (empty if there is no file), and its reader."""

    name: str
    digest: str
    read: Callable[[], Qrels | None]


class ImportedJudgments(NamedTuple):
    """How many judgments of a collection were added to a log, and how many were withdrawn."""

    added: int
    withdrawn: int


class EventRow(NamedTuple):
    """The fields that differ between the events of a collection."""

    id: str
    kind: str
    topic: str
    document: str
    grade: float | None
    time: str
    note: str
    refers: str
    origin: str


class LogJudgment(NamedTuple):
    """A judgment of the collection that a log holds and that was not withdrawn."""

    id: str
    topic: str
    document: str
    grade: float


def import_judgments(log: Log, file: JudgmentFile) -> ImportedJudgments:
    """Bring the collection's judgments in a log up to date with their file; write nothing if nothing changed."""
    if isinstance(log, DatabaseLog):
        return _import_into_database(log, file)
    changes = _changes(_in_events(log.events()), file, lambda prefix: _has_id(log, prefix), "")
    new = [Event(**row._asdict(), source=COLLECTION) for row in changes]
    log.add(new)
    gone = sum(event.kind == "withdrawal" for event in new)
    return ImportedJudgments(len(new) - gone, gone)


def with_judgments(labels: Iterable[GradedLabel], judgments: Qrels) -> list[GradedLabel]:
    """The current labels of a log with these judgments of the collection in place of those in the log."""
    rows = _judgments(judgments)
    own = (GradedLabel(*each, "", LONG_AGO, "", COLLECTION, COLLECTION) for each in rows)
    return [*(each for each in labels if each.side != COLLECTION), *own]


def with_own_events(current: Mapping[LabelKey, Event], judgments: Qrels) -> dict[LabelKey, Event]:
    """The current events of a log with these judgments of the collection in place of those in the log."""
    answer = {key: event for key, event in current.items() if key.side != COLLECTION}
    for topic, document, grade in _judgments(judgments):
        event = Event(topic=topic, document=document, grade=grade, source=COLLECTION, time=LONG_AGO)
        answer[LabelKey(COLLECTION, *event.subject, "", False)] = event
    return answer


def _judgments(qrels: Qrels) -> Iterator[tuple[str, str, float]]:
    """Topic, document and grade of each judgment; one judged under several labels has its highest grade."""
    best: dict[Subject, float] = {}
    for topic, document, grade in zip(qrels.topic.tolist(), qrels.documents, qrels.grade.tolist(), strict=True):
        subject = qrels.topics[topic], decode(document)
        best[subject] = max(grade, best.get(subject, grade))
    yield from ((*subject, grade) for subject, grade in best.items())


def _changes(
    before: Iterable[LogJudgment], file: JudgmentFile, has_id: Callable[[str], bool], now: str
) -> Iterator[EventRow]:
    """The withdrawals and judgments that make a log hold the judgments of the file, withdrawals first."""
    qrels = file.read()
    grades = {} if qrels is None else {(topic, document): grade for topic, document, grade in _judgments(qrels)}
    unchanged: set[Subject] = set()
    note = f"{file.name} has changed" if file.digest else f"{file.name} is gone"
    for each in before:
        subject = each.topic, each.document
        if grades.get(subject) == each.grade and subject not in unchanged:
            unchanged.add(subject)
        else:
            yield EventRow(new_id(), "withdrawal", "", "", None, now, note, each.id, "")
    if len(unchanged) == len(grades) or qrels is None:
        return
    prefix = _new_prefix(file.digest, has_id)
    origin = f"{file.name} sha256:{file.digest} line "
    for line, (subject, grade) in zip(_lines(qrels, grades), grades.items(), strict=True):
        if subject not in unchanged:
            name = f"{prefix}{line:09d}"
            yield EventRow(name, "judgment", *subject, grade + 0.0, LONG_AGO, "", "", f"{origin}{line}")


def _lines(qrels: Qrels, grades: dict[Subject, float]) -> Sequence[int]:
    """The line of each judgment in its file; a running number if there is no file, or a document has several labels."""
    lines = qrels.lines()
    return lines if lines is not None and len(lines) == len(grades) else range(1, len(grades) + 1)


def _new_prefix(digest: str, has_id: Callable[[str], bool]) -> str:
    """The beginning of the ids of a file's judgments; a generation is added if they were withdrawn before."""
    generation, prefix = 0, f"{COLLECTION}-{digest[:24]}-"
    while has_id(prefix):
        generation += 1
        prefix = f"{COLLECTION}-{digest[:24]}.{generation}-"
    return prefix


# JSON lines


def _in_events(log_events: Sequence[Event]) -> Iterator[LogJudgment]:
    gone = {event.refers for event in log_events if event.kind == "withdrawal"}
    for event in log_events:
        key = key_of(event)
        if key is not None and key.side == COLLECTION and key.aspect == RELEVANCE and event.id not in gone:
            yield LogJudgment(event.id, event.topic, event.document, event.grade or 0.0)


def _has_id(log: Log, prefix: str) -> bool:
    return any(event.id.startswith(prefix) for event in log.events())


# databases


def _import_into_database(log: DatabaseLog, file: JudgmentFile) -> ImportedJudgments:
    with log.database.reading() as connection:
        if imported_file(connection) == file.digest:
            return ImportedJudgments(0, 0)

    def work(transaction: Transaction) -> ImportedJudgments:
        transaction.alone()
        connection = transaction.connection
        if imported_file(connection) == file.digest:  # another process was faster
            return ImportedJudgments(0, 0)
        before = list(_in_database(connection))
        changes = _changes(before, file, lambda prefix: _in_ids(connection, prefix), transaction.now)
        new, gone = 0, 0
        while rows := list(islice(changes, AT_ONCE)):
            _insert_events(connection, rows, transaction.now)
            new, gone = new + len(rows), gone + sum(row.kind == "withdrawal" for row in rows)
        for statement in MAKE_CURRENT if new else ():
            connection.exec_driver_sql(statement)
        keep_imported_file(connection, file.digest)
        return ImportedJudgments(new - gone, gone)

    return log.write(work)


def _in_database(connection: Connection) -> Iterator[LogJudgment]:
    c = events.c
    query = select(c.id, c.topic, c.document, c.grade).where(
        c.source == COLLECTION, c.kind == "judgment", c.aspect == RELEVANCE, c.id.not_in(select(withdrawn.c.id))
    )
    return (LogJudgment(*row) for row in connection.execute(query))


def _in_ids(connection: Connection, prefix: str) -> bool:
    name = type_coerce(events.c.id, Text)
    query = select(name).where(events.c.id >= prefix, events.c.id < f"{prefix}~").limit(1)
    return connection.execute(query).first() is not None


def _insert_events(connection: Connection, rows: Sequence[EventRow], now: str) -> None:
    """Add events in one statement."""
    values = [
        (*row._replace(topic=escaped(row.topic), document=escaped(row.document), origin=escaped(row.origin)), now)
        for row in rows
    ]
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(INSERT_ARRAYS, tuple(map(list, zip(*values, strict=True))))
    else:
        connection.exec_driver_sql(INSERT_ROW, values)


def _constants() -> dict[str, str]:
    """The columns that are the same for all events of the collection, as SQL."""
    same = {name: value for name, value in DEFAULTS.items() if name not in EventRow._fields}
    same["source"] = COLLECTION
    literals = {None: "NULL", True: "TRUE", False: "FALSE", (): "''"}
    return {name: f"'{value}'" if isinstance(value, str) else literals[value] for name, value in same.items()}


VARIED = (*EventRow._fields, "received")
COLUMNS = ", ".join(chain(VARIED, _constants()))
CONSTANTS = ", ".join(_constants().values())
ARRAYS = ", ".join(f"%s::{'double precision' if name == 'grade' else 'text'}[]" for name in VARIED)
INSERT_ROW = f"INSERT INTO events ({COLUMNS}) VALUES ({', '.join('?' * len(VARIED))}, {CONSTANTS})"
INSERT_ARRAYS = f"INSERT INTO events ({COLUMNS}) SELECT r.*, {CONSTANTS} FROM unnest({ARRAYS}) AS r"
OF_COLLECTION = f"source = '{COLLECTION}' AND aspect = '{RELEVANCE}'"
MAKE_CURRENT = (
    f"""INSERT INTO withdrawn SELECT refers FROM events WHERE source = '{COLLECTION}' AND kind = 'withdrawal'
        ON CONFLICT DO NOTHING""",
    f"DELETE FROM standing WHERE side = '{COLLECTION}' AND event IN (SELECT id FROM withdrawn)",
    f"""INSERT INTO standing (side, topic, document, other, aspect, assessor, repeat, event, time, grade, source)
        SELECT '{COLLECTION}', topic, document, '', aspect, '', repeat, id, time, grade, source FROM events
        WHERE {OF_COLLECTION} AND kind = 'judgment' AND id NOT IN (SELECT id FROM withdrawn)
        ORDER BY topic, document ON CONFLICT DO NOTHING""",
)

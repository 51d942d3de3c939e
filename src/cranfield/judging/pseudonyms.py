"""Pseudonymising an assessor on request: a pseudonym takes the place of their name everywhere in a log.

The log is otherwise only added to. Here names are replaced in place, because a person may ask for it: in events, current
labels, assignments, rounds with their changes, comparisons and guidelines. Records that are sealed by a hash are sealed
again. A record of the act names the pseudonym, who did it and when, but not the person. Grades, times and ids stay, so
agreement, qrels and the hashes of versions stay as they were. Texts that people wrote may name the person: notes are listed,
for somebody to read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import delete, select, update

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.base.results import Answer, Layout, Part, Table, plain
from cranfield.base.text_layout import counted
from cranfield.judging.assignments import record
from cranfield.judging.database_log import DatabaseLog
from cranfield.judging.event import MODEL
from cranfield.judging.jsonl_log import LinesLog
from cranfield.store import tables
from cranfield.store.accounts import is_name, rename_account
from cranfield.store.hashes import COMPARISON, DEFINED, keep_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.engine import Connection

    from cranfield.judging.log import Log
    from cranfield.judging.table_changes import Transaction

PEOPLE = ("assessor", "assessors", "topic_people", "by", "author")  # keys of records whose values are names of people
BACKUPS = "Backups and exports from before still hold the name: delete or replace them."


class WrittenNote(NamedTuple):
    """A note in the log that may name the person."""

    topic: str
    document: str
    note: str


@dataclass(frozen=True)
class Pseudonymisation(Answer):
    """What was renamed, and the notes to read."""

    log: str
    pseudonym: str
    events: int
    noted: list[WrittenNote]

    def content(self, how: Layout) -> Iterator[Part]:
        yield f"{self.log}: {counted(self.events, 'event')} now {'names' if self.events == 1 else 'name'} {self.pseudonym}."
        yield BACKUPS
        if self.noted:
            yield "These notes are not changed. Check whether they name the person:"
            yield Table(["topic", "document", "note"], [[*each] for each in self.noted], names=3)

    def plain(self, how: Layout) -> dict[str, Any]:
        notes = [each._asdict() for each in self.noted]
        return {"log": self.log, **plain({"pseudonym": self.pseudonym, "events": self.events, "notes": notes})}


def pseudonymise(log: Log, name: str, pseudonym: str = "", by: str = "") -> Pseudonymisation:
    """Replace the name of an assessor by a pseudonym; DataError if nobody has the name, or somebody has the pseudonym."""
    events = log.events()
    own = [event for event in events if event.assessor == name]
    if any(event.source == MODEL for event in own):
        raise DataError(f"{shortened(name)!r} is an LLM judge, not a person")
    with log.reading() as transaction:  # also pseudonyms that were replaced since
        earlier = set(transaction.connection.execute(select(tables.pseudonyms.c.name)).scalars())
    names = {event.assessor for event in events} | earlier
    new_name = pseudonym or next(each for each in map("person-{}".format, count(1)) if each not in names)
    if not is_name(new_name):
        raise DataError(f"expected a pseudonym of letters and digits, found {shortened(new_name)!r}")
    if new_name in names:
        conflict = f"had the pseudonym {new_name!r}" if new_name in earlier else f"has labels of {new_name!r}"
        raise DataError(f"{log.name} {conflict} already; choose another pseudonym")
    if isinstance(log, DatabaseLog):
        log.write(lambda transaction: _in_tables(transaction, name, new_name, by, len(own)))
    elif isinstance(log, LinesLog):
        _in_lines(log, name, new_name, by, len(own))
    else:
        raise DataError(f"{log.name}: names in this kind of log cannot be replaced")
    noted = [
        each for each in events if each.note and (each.assessor == name or name.casefold() in each.note.casefold())
    ]
    notes = [WrittenNote(each.topic, each.document, each.note) for each in noted]
    return Pseudonymisation(log.name, new_name, len(own), notes)


def _act(pseudonym: str, by: str, at: str, events: int) -> dict[str, Any]:
    return record("pseudonym", name=pseudonym, by=by, at=at, events=events)


def _refuse_unknown(log: str, name: str, changed: int) -> None:
    if not changed:
        raise DataError(f"{log}: nothing names {shortened(name)!r}")


def _in_tables(transaction: Transaction, name: str, pseudonym: str, by: str, events: int) -> None:
    """Replace the name in the tables of a database."""
    transaction.alone()
    connection = transaction.connection
    changed = rename_account(connection, name, pseudonym)
    for column in (
        tables.events.c.assessor,
        tables.standing.c.assessor,
        tables.places.c.assessor,
        tables.guidelines.c.author,
        tables.invitations.c.inviter,
        tables.invitations.c.name,
    ):
        renamed = update(column.table).where(column == name).values({column.name: pseudonym})
        changed += connection.execute(renamed).rowcount
    for kind in DEFINED:
        changed += _in_definitions(connection, kind, name, pseudonym)
    _refuse_unknown(transaction.database.name, name, changed)
    transaction.apply(_act(pseudonym, "" if by == name else by, transaction.now, events))


def _in_definitions(connection: Connection, kind: str, name: str, pseudonym: str) -> int:
    """Replace the name in the definitions of a kind of record, and seal them again; return how many there were."""
    key, definition = DEFINED[kind]
    changed = 0
    for row in connection.execute(select(key, definition)).all():
        old = json.loads(row[1])
        new = renamed(old, name, pseudonym)
        if new == old:
            continue
        changed += 1
        text = json.dumps(new)
        connection.execute(update(definition.table).where(key == row[0]).values({definition.name: text}))
        seal = tables.hashes.c
        connection.execute(delete(tables.hashes).where(seal.kind == kind, seal.name == row[0]))
        keep_hash(connection, kind, row[0], text)
        if kind != COMPARISON:
            _mark_changed(connection, new.get("round") or row[0], text)
    return changed


def _mark_changed(connection: Connection, name: str, text: str) -> None:
    """Let those who have read a round before read it again."""
    column = tables.rounds.c.changed
    number = (connection.execute(select(column).where(tables.rounds.c.name == name)).scalar() or "0").split()[0]
    mark = f"{number} {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    connection.execute(update(tables.rounds).where(tables.rounds.c.name == name).values(changed=mark))


def _in_lines(log: LinesLog, name: str, pseudonym: str, by: str, events: int) -> None:
    """Replace the name in the lines of a file."""
    changed = 0

    def line(row: dict[str, Any]) -> dict[str, Any] | None:
        nonlocal changed
        if "event" in row:
            event = row["event"]
            new = {**row, "event": replace(event, assessor=pseudonym)} if event.assessor == name else row
        else:
            new = renamed(row, name, pseudonym)
        changed += new != row
        return None if new == row else new

    def last(at: str) -> dict[str, Any]:
        _refuse_unknown(log.name, name, changed)
        return _act(pseudonym, "" if by == name else by, at, events)

    log.rewrite(line, last)


def renamed(value: Any, name: str, pseudonym: str, people: bool = False) -> Any:
    """A record with the pseudonym in place of a name; only values under the keys `PEOPLE` are names of people.

    >>> renamed({"topics": ["ann"], "assessors": ["ann", "bob"], "topic_people": {"ann": ["ann"]}}, "ann", "p1")
    {'topics': ['ann'], 'assessors': ['p1', 'bob'], 'topic_people': {'ann': ['p1']}}
    """
    if isinstance(value, dict):
        return {key: renamed(each, name, pseudonym, people or key in PEOPLE) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([renamed(each, name, pseudonym, people) for each in value])
    return pseudonym if people and value == name else value

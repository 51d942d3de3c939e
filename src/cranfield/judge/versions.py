"""Frozen qrels: a policy and a place in the log under a name, and the hash of what came out.

Nothing is copied. The qrels are worked out again from the events up to that place whenever they are asked for, and held
against the hash, so that a log that was changed by hand, or a policy that gives something else today, is noticed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from cranfield.answer import Answer, Table
from cranfield.errors import DataError
from cranfield.judge.places import Version
from cranfield.judge.policy import Decided, Settings, decide, meanings
from cranfield.judge.standing import standing
from cranfield.parameters import shortened
from cranfield.shapes import check, read_json
from cranfield.store.hashes import VERSION, refuse_changed, refuse_changed_documents
from cranfield.store.tables import items, versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cranfield.answer import Layout, Part
    from cranfield.judge.event import Event
    from cranfield.judge.log import Log
    from cranfield.judge.policy import Grades, Subject
    from cranfield.judge.records import Transaction
    from cranfield.judge.standing import Key


@dataclass(frozen=True, repr=False)
class Versions(Answer):
    """The frozen versions of a log."""

    log: str
    rows: list[Version]
    wrong: dict[str, str] | None = None  # by name: why a version does not come out; None: not looked at

    def content(self, how: Layout) -> Iterator[Part]:
        if not self.rows:
            yield f"{self.log}: nothing is frozen (cranfield judge freeze does)"
            return
        if self.wrong is not None:
            broken = len(self.wrong)
            yield f"{self.log}: {len(self.rows) - broken} of {len(self.rows)} versions come out as they were frozen"
        rows = [
            [
                each.name,
                each.created[:16].replace("T", " "),
                each.policy,
                f"{each.documents:,}",
                each.hash[7:19],
                each.note,
            ]
            for each in self.rows
        ]
        yield Table(["version", "frozen", "by", "documents", "hash", "note"], rows)

    def plain(self, how: Layout) -> Any:
        wrong = self.wrong or {}
        return [
            {**vars(each), **({} if self.wrong is None else {"verified": each.name not in wrong})} for each in self.rows
        ]

    def notes(self, shell: bool = False) -> list[str]:
        return list((self.wrong or {}).values())


def hash_of(grades: Grades) -> str:
    """The hash of qrels: of their lines in order of topic and document."""
    lines = (
        json.dumps([topic, document, grade])
        for topic, documents in sorted(grades.items())
        for document, grade in sorted(documents.items())
    )
    return "sha256:" + hashlib.sha256("\n".join(lines).encode()).hexdigest()


def gold_of(transaction: Transaction, rounds: Sequence[str] | None = None) -> dict[Subject, float]:
    """The grades that are known to be right: those of gold in some rounds, or in any."""
    query = select(items.c.topic, items.c.document, items.c.grade).where(items.c.role == "gold")
    if rounds is not None:
        query = query.where(items.c.round.in_(rounds))
    rows = transaction.connection.execute(query.order_by(items.c.round, items.c.item))
    return {(row.topic, row.document): row.grade for row in rows}


def freeze(
    log: Log, name: str, policy: str, settings: Settings | None = None, note: str = ""
) -> tuple[Version, Decided]:
    """Freeze the qrels of the moment under a name."""
    how = settings or Settings()
    if not name or name != name.strip() or "@" in name or "/" in name:
        raise DataError(f"a version's name has no @, no / and no blanks around it, found {name!r}")

    def work(transaction: Transaction) -> tuple[Version, Decided]:
        transaction.alone()
        place = transaction.place()
        decided = decide(standing(transaction.events(place)), policy, how, gold_of(transaction))
        if not len(decided):
            raise DataError(f"{log.name}: there is nothing to freeze, no label stands")
        query = select(items.c.round).where(items.c.role == "gold").distinct()
        rounds = sorted(transaction.connection.execute(query).scalars())
        for each in rounds:
            refuse_changed_documents(transaction.connection, each)
        version = Version(
            name=name,
            policy=policy,
            settings=asdict(how),
            place=place,
            hash=hash_of(decided.grades),
            documents=len(decided),
            created=transaction.now,
            note=note,
            gold=rounds,
        )
        transaction.apply({"record": "version", "kind": "version", **asdict(version)})
        return version, decided

    return log.write(work)


def all_versions(log: Log) -> list[Version]:
    """Every version of a log, the oldest first."""
    with log.reading() as transaction:
        rows = transaction.connection.execute(select(versions).order_by(versions.c.created, versions.c.name)).all()
        for row in rows:
            refuse_changed(transaction.connection, VERSION, row.name, row.definition)
    return [read_json(row.definition, Version, f"version {shortened(row.name)!r}") for row in rows]


def find_version(log: Log, name: str) -> Version:
    """A version by its name."""
    known = {version.name: version for version in all_versions(log)}
    if name not in known:
        there = ", ".join(map(repr, known)) or "none"
        raise DataError(f"{log.name}: there is no version {name!r}; there are: {there}")
    return known[name]


def stood_at(log: Log, name: str) -> dict[Key, Event]:
    """What stood when a version was frozen."""
    version = find_version(log, name)
    with log.reading() as transaction:
        return standing(transaction.events(version.place))


def thaw(log: Log, name: str) -> Decided:
    """The qrels of a version, worked out again and held against their hash."""
    version = find_version(log, name)
    with log.reading() as transaction:
        up_to = transaction.events(version.place)
        gold = gold_of(transaction, version.gold)
    how = check(version.settings, Settings, f"{log.name}: settings of version {name!r}")
    stand = standing(up_to)
    for policy in meanings(version.policy):
        decided = decide(stand, policy, how, gold)
        if hash_of(decided.grades) == version.hash:
            return decided
    told = (
        f"{log.name}: version {name!r} no longer comes out as it was frozen ({version.policy}, {version.created[:10]})"
    )
    raise DataError(f"{told}: events before it were changed, or {version.policy} now gives something else")

"""Changes of a round while it is open: people, labels per document, topics, order, depth, single documents.

A change is one record of the log (`RoundChange`) with who made it and when. Labels stay as they are; what happens to
assignments and leases is in `judging.assignments`. Everything is checked as if the round were planned anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import select

from cranfield.base.errors import DataError
from cranfield.base.parameters import refuse_below, shortened
from cranfield.base.text_layout import counted
from cranfield.judging.assignments import record
from cranfield.judging.round_plan import (
    CLOSED,
    Lists,
    Round,
    RoundChange,
    RoundItem,
    changes_of,
    find_round,
    opened_round,
)
from cranfield.judging.rounds import refuse_plan, refuse_strangers, topic_sizes
from cranfield.store.tables import items, places

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.engine import Connection, Row

    from cranfield.judging.log import Log
    from cranfield.judging.policies import Subject
    from cranfield.judging.table_changes import Transaction

SHOWN = 5  # names that a sentence lists


def assign_topics(
    sizes: Mapping[str, int], people: Sequence[str], each: int, kept: Mapping[str, Sequence[str]] | None = None
) -> dict[str, tuple[str, ...]]:
    """People for each topic, so that all have about the same number of documents; `kept` are assignments that stay.

    >>> assign_topics({"q1": 5, "q2": 3, "q3": 2}, ["ann", "bob"], 1)
    {'q1': ('ann',), 'q2': ('bob',), 'q3': ('bob',)}
    """
    if each > len(people):
        raise DataError(f"each topic needs {each} people, and {len(people)} are named: name more people")
    chosen = {topic: [name for name in (kept or {}).get(topic, ()) if name in people][:each] for topic in sizes}
    loads = Counter(dict.fromkeys(people, 0))
    for topic, names in chosen.items():
        loads.update(dict.fromkeys(names, sizes[topic]))
    for topic in sorted(sizes, key=lambda name: -sizes[name]):
        while len(chosen[topic]) < each:
            free = [name for name in people if name not in chosen[topic]]
            person = min(free, key=lambda name: loads[name])
            chosen[topic].append(person)
            loads[person] += sizes[topic]
    return {topic: tuple(names) for topic, names in chosen.items()}


@dataclass(frozen=True, kw_only=True)
class ChangeRequest:
    """The new settings that a lead requests; None leaves a setting unchanged."""

    assessors: tuple[str, ...] | None = None
    overlap: int | None = None
    topics: tuple[str, ...] | None = None  # empty: all
    order: str | None = None
    topic_people: Mapping[str, Sequence[str]] | None = None  # empty: topics are not assigned
    assign_topics: bool = False  # whether to assign all topics anew, evenly
    choose_topics: bool | None = None  # True: people choose; False: they get any topic
    pool: Sequence[Subject] | None = None  # the documents that the round asks about from now on
    lists: Lists | None = None  # those of an adaptive round
    depth: int | None = None  # of that pool or those lists
    runs: tuple[str, ...] | None = None
    pooling: str | None = None
    drop: Sequence[Subject] = ()
    offer: Sequence[Subject] = ()  # skipped documents that everybody may get again


def change_round(log: Log, name: str, request: ChangeRequest, by: str = "") -> Round:
    """Change an open or paused round, and return its plan; DataError if the result could not be planned."""

    def work(transaction: Transaction) -> Round:
        transaction.alone()
        plan, state = find_round(transaction.connection, name)
        refuse_below(1, overlap=plan.overlap if request.overlap is None else request.overlap)
        if state == CLOSED:
            raise DataError(f"round {plan.name!r} is closed; reopen it to change it")
        documents = _documents(transaction.connection, plan.name)
        number = len(changes_of(transaction.connection, plan.name)) + 1
        change = _change(transaction.connection, plan, documents, request, number, transaction.now, by)
        after = change.of(plan)
        if after == plan and not change.items and not change.offered:
            raise DataError(f"round {plan.name!r} is like that already: nothing changes")
        _refuse_change(transaction, plan, after, change, documents)
        transaction.apply(record("change", **_values(change)))
        return after

    return log.write(work)


def round_documents(log: Log, name: str) -> list[Subject]:
    """The documents of a round that are not gold, also those that were dropped."""
    with log.reading() as transaction:
        return list(_documents(transaction.connection, name))


def _documents(connection: Connection, name: str) -> dict[Subject, Row[Any]]:
    """The documents of a round that are not gold, by topic and document."""
    query = select(items).where(items.c.round == name, items.c.role == "pool").order_by(items.c.item)
    return {(row.topic, row.document): row for row in connection.execute(query)}


def _values(change: RoundChange) -> dict[str, object]:
    """A change as the plain values of its record."""
    values = asdict(change) | {"items": [tuple(each) for each in change.items]}
    return {key: value for key, value in values.items() if value is not None}


def _change(
    connection: Connection,
    plan: Round,
    documents: Mapping[Subject, Row[Any]],
    request: ChangeRequest,
    number: int,
    now: str,
    by: str,
) -> RoundChange:
    """The record of a requested change, with all its consequences."""
    dropped, new = _dropped(plan, documents, request), _new_items(connection, plan, documents, request)
    same = {"assessors", "overlap", "topics", "order", "choose_topics", "depth", "runs", "pooling", "lists"}
    wishes = {key: getattr(request, key) for key in same}
    if request.choose_topics is None and (request.assign_topics or request.topic_people):
        wishes["choose_topics"] = False
    values = {key: value for key, value in wishes.items() if value is not None and value != getattr(plan, key)}
    change = RoundChange(
        round=plan.name,
        number=number,
        at=now,
        by=by,
        **values,
        dropped=None if dropped == plan.dropped else dropped,
        items=tuple(new),
        offered=_offered(connection, plan, documents, request.offer),
    )
    subjects = [*documents, *((each.topic, each.document) for each in new)]
    people = _topic_people(connection, plan, change.of(plan), subjects, request)
    return change if people is None or people == plan.topic_people else replace(change, topic_people=people)


def _numbers(plan: Round, documents: Mapping[Subject, Row[Any]], subjects: Sequence[Subject]) -> set[int]:
    """The numbers of documents in a round; DataError for a document that the round does not have."""
    for topic, document in subjects:
        if (topic, document) not in documents:
            subject = f"topic {shortened(topic)!r}, document {shortened(document)!r}"
            raise DataError(f"{subject} is not among the documents of round {plan.name!r}")
    return {documents[subject].item for subject in subjects}


def _dropped(plan: Round, documents: Mapping[Subject, Row[Any]], request: ChangeRequest) -> tuple[int, ...]:
    """The numbers of the documents to leave out from now on."""
    dropped = set(plan.dropped)
    if request.pool is not None:
        pool = set(request.pool)
        dropped |= {row.item for subject, row in documents.items() if subject not in pool}
        dropped -= {documents[subject].item for subject in pool if subject in documents}
    dropped -= _numbers(plan, documents, request.offer)
    return tuple(sorted(dropped | _numbers(plan, documents, request.drop)))


def _offered(
    connection: Connection, plan: Round, documents: Mapping[Subject, Row[Any]], offer: Sequence[Subject]
) -> tuple[int, ...]:
    """The numbers of the documents to hand out again; DataError for a document that was neither skipped nor dropped."""
    numbers = _numbers(plan, documents, offer)
    query = select(places.c.item).where(places.c.round == plan.name, places.c.state == "skipped")
    skipped = {row.item for row in connection.execute(query)}
    for topic, document in offer:
        if documents[topic, document].item not in skipped.union(plan.dropped):
            subject = f"topic {shortened(topic)!r}, document {shortened(document)!r}"
            raise DataError(f"{subject} was not skipped and not dropped: it is handed out anyway")
    return tuple(sorted(numbers & skipped))


def _new_items(
    connection: Connection, plan: Round, documents: Mapping[Subject, Row[Any]], request: ChangeRequest
) -> list[RoundItem]:
    """The documents of a new pool that the round does not have; gold stays gold."""
    if request.pool is None:
        return []
    query = select(items.c.topic, items.c.document).where(items.c.round == plan.name, items.c.role == "gold")
    gold = {(row.topic, row.document) for row in connection.execute(query)}
    planned = opened_round(connection, plan.name).overlap
    new = [each for each in dict.fromkeys(request.pool) if each not in documents and each not in gold]
    return [RoundItem(topic, document, planned) for topic, document in new]


def _topic_people(
    connection: Connection, before: Round, plan: Round, subjects: Sequence[Subject], request: ChangeRequest
) -> dict[str, tuple[str, ...]] | None:
    """Who judges which topic after a change; None if it does not change.

    If topics are assigned and the people, the topics or the overlap change, only topics that somebody has begun stay theirs.
    """
    if request.choose_topics is not None and not request.assign_topics and not request.topic_people:
        return {}
    if request.topic_people is not None:
        return {topic: tuple(people) for topic, people in request.topic_people.items()}
    if not (request.assign_topics or plan.topic_people):
        return None
    sizes = topic_sizes(plan, subjects)
    same = (before.assessors, before.overlap) == (
        plan.assessors,
        plan.overlap,
    ) and plan.topic_people.keys() == sizes.keys()
    if same and not request.assign_topics:
        return None
    query = select(places.c.topic, places.c.assessor).where(places.c.round == plan.name, places.c.state == "done")
    begun: dict[str, list[str]] = defaultdict(list)
    for row in connection.execute(query.distinct().order_by(places.c.topic, places.c.assessor)):
        begun[row.topic].append(row.assessor)
    return assign_topics(sizes, plan.assessors, plan.overlap, begun)


def _refuse_change(
    transaction: Transaction, plan: Round, after: Round, change: RoundChange, documents: Mapping[Subject, Row[Any]]
) -> None:
    """Raise DataError if the changed round could not have been planned like this."""
    sampled = change.topics is not None or change.items or change.depth is not None
    if plan.sample and sampled:
        raise DataError(f"round {plan.name!r} is a random sample: its topics and its depth stay as they were drawn")
    if plan.strategy and change.order is not None:
        raise DataError(f"round {plan.name!r}: {plan.strategy} chooses the order of the documents")
    topics = {topic for topic, _ in documents} | {each.topic for each in change.items} | after.lists.keys()
    missing = [topic for topic in after.topics if topic not in topics]
    if missing:
        raise DataError(
            f"round {plan.name!r} has no topic {shortened(missing[0])!r}; add its documents by a pool or by runs"
        )
    opened, key = opened_round(transaction.connection, plan.name), itemgetter("item", "topic", "overlap")
    labels = [after.labels_wanted(opened, *key(row._mapping)) for row in documents.values()]
    subjects = [*documents, *((each.topic, each.document) for each in change.items)]
    most = max([after.overlap, *labels])
    refuse_strangers(transaction, after, most if after.overlap > plan.overlap else 0)
    refuse_plan(after, most, topic_sizes(after, subjects))


# history


class PlannedChange(NamedTuple):
    """A change with the plan before and after it."""

    change: RoundChange
    before: Round
    after: Round

    def words(self) -> dict[str, str]:
        """When and by whom the round was changed, and what changed."""
        return {"at": self.change.at, "by": self.change.by, "what": "; ".join(self._parts())}

    def _parts(self) -> list[str]:
        """What changed, one part for each setting."""
        before, after, change = self.before, self.after, self.change
        names = {"assessors": "people", "overlap": "labels per document", "topics": "topics", "depth": "depth"}
        names |= {"order": "order", "runs": "runs"}
        empty = {"assessors": "everybody", "topics": "all", "depth": "unknown", "runs": "unknown"}
        parts = [
            f"{name}: {_listed(getattr(before, key), empty.get(key, ''))} → {_listed(getattr(after, key), empty.get(key, ''))}"
            for key, name in names.items()
            if getattr(before, key) != getattr(after, key)
        ]
        if before.topic_people != after.topic_people:
            parts.append("topics are assigned anew" if after.topic_people else "topics are not assigned any more")
        if before.choose_topics != after.choose_topics:
            parts.append(
                "people choose their topics" if after.choose_topics else "people do not choose their topics any more"
            )
        if change.lists is not None:
            parts.append("the lists to choose from changed")
        gone, back = {*after.dropped} - {*before.dropped}, {*before.dropped} - {*after.dropped}
        numbers = {
            "added": len(change.items),
            "dropped": len(gone),
            "taken back": len(back),
            "offered again": len(change.offered),
        }
        return parts + [f"{counted(number, 'document')} {verb}" for verb, number in numbers.items() if number]


def _listed(value: object, empty: str) -> str:
    """A setting as text; long lists are cut."""
    if isinstance(value, tuple):
        more = f" and {len(value) - SHOWN} more" if len(value) > SHOWN else ""
        return ", ".join(map(str, value[:SHOWN])) + more if value else empty
    return str(value) if value or not empty else empty


def history(connection: Connection, name: str) -> list[PlannedChange]:
    """The changes of a round, the oldest first."""
    plan, rows = opened_round(connection, name), []
    for change in changes_of(connection, name):
        after = change.of(plan)
        rows.append(PlannedChange(change, plan, after))
        plan = after
    return rows


# documents that nobody can get


class SkippedDocument(NamedTuple):
    """A document that everybody has skipped, so that nobody gets it any more."""

    topic: str
    document: str
    people: int  # who skipped it


def skipped_by_all(connection: Connection, plan: Round) -> list[SkippedDocument]:
    """The documents that everybody who could get them has skipped or judged, and that still lack a label."""
    here = places.c.round == plan.name
    skipped = select(places.c.item).where(here, places.c.state == "skipped")
    query = (
        select(places.c.item, places.c.assessor, places.c.state, items.c.topic, items.c.document)
        .join(items, (items.c.round == places.c.round) & (items.c.item == places.c.item))
        .where(here, ~places.c.repeat, items.c.role == "pool", items.c.wanted > 0, places.c.item.in_(skipped))
        .order_by(items.c.item)
    )
    rows: dict[Subject, list[Any]] = defaultdict(list)
    for row in connection.execute(query):
        rows[row.topic, row.document].append(row)
    if not rows:
        return []
    everybody = set(plan.assessors) or set(
        connection.execute(select(places.c.assessor).where(here, places.c.assessor.is_not(None)).distinct()).scalars()
    )
    return [
        SkippedDocument(topic, document, sum(row.state == "skipped" for row in assigned))
        for (topic, document), assigned in rows.items()
        if any(row.state == "free" for row in assigned)
        and set(plan.topic_people.get(topic, everybody)) <= {row.assessor for row in assigned}
    ]

"""The next document of an adaptive round: a strategy's choice by the current labels, or by the last trained model.

A strategy that follows runs is quick: its session of one topic is replayed within the transaction of the lease. One that
reads documents is trained outside (`train_models`), and the order in which it would judge the documents is stored with
the round. Whoever leases takes the first document of that order that nobody was assigned, so a lease waits for no
training, needs no texts, and works on every server of a database. Until a topic has a model, documents come by fused rank.

Models are no part of the log: they are computed from its labels, and backups leave them out.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sqlalchemy import Text, select, type_coerce
from sqlalchemy.dialects import postgresql, sqlite

from cranfield.base.kernels import encode
from cranfield.base.results import Answer, Table
from cranfield.judging.current_labels import GradedLabel
from cranfield.judging.event import RELEVANCE
from cranfield.judging.policies import judgments_of
from cranfield.judging.round_plan import RoundItem
from cranfield.pooling.pool import Session
from cranfield.pooling.strategy import STRATEGIES, Rankings
from cranfield.store import tables
from cranfield.store.tables import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cranfield.base.results import Layout, Part
    from cranfield.formats.label_files import Judgment
    from cranfield.judging.log import Log
    from cranfield.judging.round_plan import Round, RoundPlan
    from cranfield.judging.table_changes import Transaction
    from cranfield.pooling.strategy import Candidates
    from cranfield.pooling.text_features import TextFeatures

AHEAD = 500  # documents of a topic that a model orders: it is trained again long before they are judged
TOGETHER = 20  # models that are stored in one transaction


# planning


class StartDocument(NamedTuple):
    """The document with which a strategy begins a topic."""

    topic: str
    document: str


def starts_of(items: Iterable[RoundItem]) -> list[StartDocument]:
    """The first document of each topic.

    >>> starts_of([RoundItem("1", "a"), RoundItem("1", "b"), RoundItem("2", "a")])
    [StartDocument(topic='1', document='a'), StartDocument(topic='2', document='a')]
    """
    first: dict[str, StartDocument] = {}
    for each in items:
        first.setdefault(each.topic, StartDocument(each.topic, each.document))
    return list(first.values())


@dataclass(frozen=True, repr=False)
class AdaptivePlan(Answer):
    """The cost of an adaptive round: at most the cost of all documents. Only the first document of each topic is certain."""

    most: RoundPlan
    starts: list[StartDocument]

    def content(self, how: Layout) -> Iterator[Part]:
        yield (
            f"{self.most.strategy} chooses each document by the labels so far: the round takes at most what this table says, and "
            "less if it is closed when little is left to find."
        )
        yield from self.most.content(how)
        yield Table(["topic", "document"], [list(each) for each in self.starts], 2, title="First documents")

    def plain(self, how: Layout) -> Any:
        return {**self.most.plain(how), "at_most": True, "starts": [each._asdict() for each in self.starts]}

    def records(self, how: Layout) -> Iterable[Sequence[Any]]:
        return self.most.records(how)


# choosing


def next_document(
    transaction: Transaction, plan: Round, topic: str, scope: Sequence[str] | None = None
) -> RoundItem | None:
    """The strategy's next document: of this topic if one is left, else of the topic with the fewest documents so far.

    `scope` limits the topics.
    """
    query = select(tables.items.c.topic, tables.items.c.document).where(tables.items.c.round == plan.name)
    assigned: dict[str, set[str]] = {}
    for row in transaction.connection.execute(query):
        assigned.setdefault(row.topic, set()).add(row.document)
    topics = [each for each in plan.rankings.candidates if scope is None or each in scope]
    for each in sorted(topics, key=lambda name: (name != topic, len(assigned.get(name, ())))):
        beside = assigned.get(each, set())
        if plan.cap and len(beside) >= plan.cap:
            continue
        for document in _choices(transaction, plan, each):
            if document not in beside:
                return RoundItem(each, document, plan.overlap)
    return None


def held_at_once(plan: Round) -> int:
    """How many documents an assessor may hold: two if models choose, so that nobody waits for the next one.

    A model is trained after the label, so it is one label behind anyway.
    """
    return 2 if STRATEGIES.named(plan.strategy).reads else 1


def _choices(transaction: Transaction, plan: Round, topic: str) -> Iterator[str]:
    """The documents of a topic without a current label, in the order in which the strategy would ask for them."""
    strategy = STRATEGIES.named(plan.strategy)
    candidates = plan.rankings[topic]
    labels = labels_of_topic(transaction, plan, topic)
    if not strategy.reads:
        one = Rankings(plan.rankings.runs, plan.rankings.depths, {topic: candidates})
        session = Session(one, strategy, seed=plan.seed, rel=plan.rel, labels=labels)
        while (item := session.next(topic)) is not None:
            yield item.document
        return
    labelled = {label.document for label in labels}
    model = find_models(transaction, plan.name, [topic])
    for document in dict.fromkeys([*(model[0].order if model else ()), *by_fused_rank(candidates)]):
        if document not in labelled and document in candidates.number:  # the round may have changed since
            yield document


def by_fused_rank(candidates: Candidates) -> list[str]:
    """The candidates by reciprocal rank fusion."""
    order = np.argsort(-candidates.weighted(1 / (60 + candidates.rank)), kind="stable")
    return [candidates.documents[i] for i in order.tolist()]


def labels_of_topic(transaction: Transaction, plan: Round, topic: str) -> list[Judgment]:
    """The current judgments of the candidates of a topic, in the order of their times."""
    e, s = tables.events.c, tables.standing.c
    columns = e.topic, e.document, e.assessor, e.time, e.id, e.source, s.side
    texts = [type_coerce(column, Text) for column in columns]
    query = (
        select(*texts[:2], e.grade, *texts[2:])
        .join(tables.events, e.id == s.event)
        .where(s.side.in_(["adjudication", "label"]), s.topic == topic, s.aspect == RELEVANCE, e.grade.is_not(None))
        .where((s.side == "adjudication") | ~s.repeat)
    )
    rows = transaction.connection.execute(query)
    labels = [GradedLabel._make(plain(each) if isinstance(each, str) else each for each in row) for row in rows]
    inside = plan.rankings[topic].number
    return judgments_of(label for label in labels if label.document in inside)


# models


class RelevantWord(NamedTuple):
    """A word of a model with its weight: above 0 if it speaks for relevance."""

    word: str
    weight: float


@dataclass(frozen=True)
class TopicModel:
    """The model of one topic: how many labels trained it, when, and the documents that it would ask for next."""

    topic: str
    labels: int
    relevant: int
    trained: str  # a time
    expected: float | None  # relevant documents among those without a label; None if there are too few labels to say
    words: tuple[RelevantWord, ...]
    order: tuple[str, ...]  # documents without a label, the next one first
    digest: str  # of what the model depends on

    @property
    def left(self) -> float | None:
        """The expected share of the relevant documents that nobody has found yet."""
        if self.expected is None:
            return None
        return self.expected / (self.relevant + self.expected) if self.relevant + self.expected else 0.0


def find_models(transaction: Transaction, name: str, topics: Iterable[str] | None = None) -> list[TopicModel]:
    """The models of a round, by topic."""
    table = tables.topic_models
    query = select(table).where(table.c.round == name).order_by(table.c.topic)
    if topics is not None:
        query = query.where(table.c.topic.in_(list(topics)))
    return [_model_of(row) for row in transaction.connection.execute(query)]


def _model_of(row: Any) -> TopicModel:
    words = tuple(RelevantWord(*pair) for pair in json.loads(row.words))
    facts = row.topic, row.labels, row.relevant, row.trained, row.expected
    return TopicModel(*facts, words, tuple(json.loads(row.documents)), row.digest)


def train_models(
    log: Log,
    name: str,
    texts: TextFeatures,
    topics: Iterable[str] | None = None,
    tell: Callable[[int, int | None], None] | None = None,
) -> int:
    """Train the models of a round's topics whose labels have changed; return how many were trained.

    Rounds whose strategy reads no documents have none. Judging goes on meanwhile.
    """
    with log.reading() as transaction:
        plan, _ = transaction.find_round(name)
    if not plan.strategy or not STRATEGIES.named(plan.strategy).reads:
        return 0
    candidates = plan.rankings.candidates
    wished = [topic for topic in (candidates if topics is None else topics) if topic in candidates]
    count, fresh = 0, []
    for number, topic in enumerate(wished, 1):
        with log.reading() as transaction:
            labels = {label.document: label.grade >= plan.rel for label in labels_of_topic(transaction, plan, topic)}
            before = find_models(transaction, name, [topic])
            now = transaction.now
        if not before or before[0].digest != _digest(plan, topic, labels):
            fresh.append(_trained(plan, topic, labels, texts, now))
            count += 1
        if len(fresh) == TOGETHER or (fresh and number == len(wished)):
            _store(log, name, fresh)
            fresh = []
        if tell is not None:
            tell(number, len(wished))
    if fresh:
        _store(log, name, fresh)
    return count


def _digest(plan: Round, topic: str, labels: Mapping[str, bool]) -> str:
    """The hash of what a model depends on: the labels, the candidates, and the strategy with its seed."""
    facts = sorted(labels.items()), plan.lists[topic], plan.strategy, plan.seed
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _trained(plan: Round, topic: str, labels: Mapping[str, bool], texts: TextFeatures, now: str) -> TopicModel:
    """The model of a topic; documents that the collection does not have come last."""
    whole = plan.rankings[topic]
    candidates = whole.keep(np.array([texts.row(document) is not None for document in whole.documents], bool))
    rng = np.random.default_rng([plan.seed, zlib.crc32(encode(topic))])
    picker = STRATEGIES.named(plan.strategy).start(candidates, rng, texts)
    for document, relevant in labels.items():
        if document in candidates.number:
            picker.know(candidates.number[document], relevant)
    order = tuple(candidates.documents[number] for number in picker.pick_many(AHEAD))
    state = picker.state()
    words = tuple(RelevantWord(*each) for each in (state.words if state else ()))
    counts = len(labels), sum(labels.values())
    return TopicModel(
        topic, *counts, now, state.expected if state else None, words, order, _digest(plan, topic, labels)
    )


UPSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def _store(log: Log, name: str, models: Sequence[TopicModel]) -> None:
    def work(transaction: Transaction) -> None:
        for each in models:
            values = {"round": name, "topic": each.topic, "labels": each.labels, "relevant": each.relevant}
            values |= {"trained": each.trained, "expected": each.expected, "digest": each.digest}
            values |= {"words": json.dumps(each.words), "documents": json.dumps(each.order)}
            insert = UPSERTS[transaction.database.dialect](tables.topic_models).values(values)
            statement = insert.on_conflict_do_update(index_elements=["round", "topic"], set_=values)
            transaction.connection.execute(statement)

    log.write(work)

"""Recall of a round: relevant documents found by label, how many are left at most, and the models of the strategy.

The bound is that of `pool stop`; the estimate of a model, if the strategy has one, stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.base.results import Answer, Lines, Table, plain
from cranfield.base.text_layout import counted
from cranfield.formats.label_files import latest
from cranfield.formats.pool_files import PoolItem
from cranfield.judging.adaptive_choice import TopicModel, find_models
from cranfield.judging.policies import judgments_of
from cranfield.pooling.stopping import EARLY, stopping
from cranfield.store import tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cranfield.base.results import Layout, Part
    from cranfield.formats.label_files import Judgment
    from cranfield.judging.log import Log
    from cranfield.judging.round_plan import Round
    from cranfield.judging.table_changes import Transaction
    from cranfield.pooling.stopping import Stopping, Stoppings

POINTS = 200  # of the curve
SHOWN = 5  # words of a model in a table


@dataclass(frozen=True, repr=False)
class RoundRecall(Answer):
    """The relevant documents that a round found by label, `pool stop`'s bound by topic, and the models of its topics."""

    round: str
    strategy: str
    topic: str  # empty: all topics
    stoppings: Stoppings
    models: list[TopicModel]
    curve: list[tuple[int, int]]  # labelled documents, relevant ones among them

    @property
    def bounded(self) -> list[Stopping]:
        """The topics with enough labels for a bound; only they enter the totals."""
        return [each for each in self.stoppings.rows if each.judged >= min(EARLY, each.size)]

    @property
    def judged(self) -> int:
        """The number of labelled documents in these topics."""
        return sum(each.judged for each in self.bounded)

    @property
    def relevant(self) -> int:
        """The number of relevant documents found in these topics."""
        return sum(each.relevant for each in self.bounded)

    @property
    def most_left(self) -> float:
        """The upper bound of the relevant documents that are left: the sum of the topics' bounds."""
        return sum(each.high for each in self.bounded)

    @property
    def expected_left(self) -> float:
        """The expected number of relevant documents that are left: by a topic's model, else by its curve of finds."""
        expected = {each.topic: each.expected for each in self.models if each.expected is not None}
        return sum(min(expected.get(each.topic, each.unfound), each.high) for each in self.bounded)

    def recall(self, left: float) -> float | None:
        """The share of the relevant documents that was found, if `left` are still missing; None without relevant documents."""
        return self.relevant / (self.relevant + left) if self.relevant + left else None

    def verdict(self) -> list[str]:
        """Sentences on the relevant documents found, those that may be left, and the topics with too few labels to say."""
        early = len(self.stoppings.rows) - len(self.bounded)
        few = f"{early} of {len(self.stoppings.rows)} topics have fewer than {EARLY} labels, which say nothing yet"
        sentences = []
        if self.bounded:
            least = self.recall(self.most_left)
            bound = "" if least is None else f" (a recall of {least:.0%} or more)"
            basis = f"{counted(self.judged, 'label')} in {counted(len(self.bounded), 'topic')}"
            found = f"{basis} found {self.relevant:,} relevant documents"
            sentences.append(f"{found}; about {self.expected_left:,.1f} are left, at most {self.most_left:,.0f}{bound}")
        return [*sentences, *([few] if early else [])]

    def content(self, how: Layout) -> Iterator[Part]:
        yield Lines([f"round {self.round}{f', topic {self.topic}' if self.topic else ''}", *self.verdict()])
        models = {each.topic: each for each in self.models}
        head = ["topic", "pool", "judged", "relevant", "expected left", "at most", "recall at least", "stop", "why"]
        yield Table(head, [self._row(each, models.get(each.topic)) for each in self.stoppings.rows], title="Topics")
        learned = [each for each in self.models if each.labels]
        if learned:
            yield Table(
                ["topic", "labels used", "relevant", "expected share left", "trained", "words with their weights"],
                [_model_row(each) for each in learned],
                tail=True,
                title="Models",
            )

    @staticmethod
    def _row(each: Stopping, model: TopicModel | None) -> list[str]:
        expected = model.expected if model is not None and model.expected is not None else each.unfound
        counts = [str(each.size), str(each.judged), str(each.relevant)]
        if each.judged < min(EARLY, each.size):
            return [each.topic, *counts, "-", "-", "-", "no", each.reason]
        estimates = [f"{expected:.1f}", f"{each.high:.0f}", f"{each.recall_low:.3f}"]
        return [each.topic, *counts, *estimates, "yes" if each.stop else "no", each.reason]

    def plain(self, how: Layout) -> Any:
        totals: dict[str, Any] = {
            "topics_bounded": len(self.bounded),
            "judged": self.judged,
            "relevant": self.relevant,
            "most_left": self.most_left,
        }
        totals["recall_at_least"] = self.recall(self.most_left)
        about = {"round": self.round, "strategy": self.strategy, "topic": self.topic, **totals, "curve": self.curve}
        models = [model_values(each) for each in self.models]
        return {**plain(about, how.digits), "topics": self.stoppings.plain(how), "models": plain(models, how.digits)}


def _model_row(each: TopicModel) -> list[str]:
    left = "-" if each.left is None else f"{each.left:.0%}"
    words = ", ".join(f"{word} {weight:+.2f}" for word, weight in each.words[:SHOWN])
    return [each.topic, str(each.labels), str(each.relevant), left, each.trained[:19].replace("T", " "), words]


def model_values(each: TopicModel) -> dict[str, Any]:
    """A model as plain values, without the order of documents."""
    names = ("topic", "labels", "relevant", "trained", "expected", "left")
    return {**{name: getattr(each, name) for name in names}, "words": [word._asdict() for word in each.words]}


def round_recall(
    log: Log,
    name: str,
    *,
    topic: str = "",
    target: float = 0.95,
    rel: float | None = None,
    level: float = 0.95,
    seconds: float | None = None,
    price: float | None = None,
) -> RoundRecall:
    """The recall of a round, in all topics or in one; `rel` replaces the round's lowest relevant grade."""
    with log.reading() as transaction:
        plan, _ = transaction.find_round(name)
        pool = _pool_of(transaction, plan)
        models = find_models(transaction, plan.name)
        labels = judgments_of(transaction.current_grades())
    if topic:
        pool = [each for each in pool if each.topic == topic]
        models = [each for each in models if each.topic == topic]
        if not pool:
            raise DataError(f"round {plan.name!r} has no topic {shortened(topic)!r}")
    inside = {(each.topic, each.document) for each in pool}
    labels = [each for each in labels if (each.topic, each.document) in inside]
    lowest = plan.rel if rel is None else rel
    how = {"target": target, "rel": lowest, "level": level, "seconds": seconds, "price": price}
    stops = stopping(labels, pool, **how)  # type: ignore[arg-type]
    counted = {each.topic for each in RoundRecall(plan.name, "", "", stops, [], []).bounded}
    curve = _curve([each for each in labels if each.topic in counted], lowest)
    return RoundRecall(plan.name, plan.strategy, topic, stops, models, curve)


def _pool_of(transaction: Transaction, plan: Round) -> list[PoolItem]:
    """The pool of a round: what a strategy chooses from, or its documents with the frame that they were drawn from."""
    if plan.strategy:
        return [
            PoolItem(topic, document, rank, priority=1)
            for topic, each in plan.rankings.candidates.items()
            for document, rank in zip(each.documents, each.best_rank.tolist(), strict=True)
        ]
    c = tables.items.c
    rows = transaction.connection.execute(
        select(c.topic, c.document, c.probability).where(c.round == plan.name, c.role == "pool").order_by(c.item)
    ).all()
    drawn = {(row.topic, row.document) for row in rows}
    chance = min((row.probability for row in rows), default=1.0)
    rest = [
        PoolItem(topic, document, 1, priority=0, probability=chance)
        for topic, documents in plan.frame.items()
        for document in documents
        if (topic, document) not in drawn
    ]
    return [*(PoolItem(row.topic, row.document, 1, priority=1, probability=row.probability) for row in rows), *rest]


def _curve(labels: Sequence[Judgment], rel: float) -> list[tuple[int, int]]:
    """Labelled documents and relevant ones among them, at about two hundred points; the latest grade of each counts."""
    grades = latest(labels)
    documents = list(dict.fromkeys((each.topic, each.document) for each in labels))
    found, points = 0, [(0, 0)]
    step = max(1, len(documents) // POINTS)
    for number, (topic, document) in enumerate(documents, 1):
        found += grades[topic][document] >= rel
        if number % step == 0 or number == len(documents):
            points.append((number, found))
    return points

"""A round from a pool: what is drawn, how often each document is asked, how much gold comes along, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.answer import Answer, Table, plain
from cranfield.errors import DataError
from cranfield.judge.plan import Asked
from cranfield.parameters import refuse_below

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cranfield.answer import Layout, Part
    from cranfield.formats.pools import Item
    from cranfield.judge.log import Log

RECENT = 10_000  # labels that say how quick people are


def planned(
    items: Sequence[Item],
    *,
    overlap: int = 1,
    double: float = 0.0,
    sample: int | None = None,
    sample_topics: int | None = None,
    gold: Mapping[str, Mapping[str, float]] | None = None,
    seed: int = 0,
) -> list[Asked]:
    """The documents of a round in the order of judging; `double` is the share that gets one label more than the others.

    A sample is drawn with equal chances from all items, or from all topics with their items; the chance is kept with each.

    >>> from cranfield.formats.pools import Item
    >>> [asked.probability for asked in planned([Item("q", "a", 1), Item("q", "b", 2)], sample=1)]
    [0.5]
    """
    refuse_below(1, overlap=overlap)
    if not 0 <= double <= 1:
        raise DataError(f"--double: expected a share of 0 to 100%, found {double:.0%}")
    rng = np.random.default_rng(seed)
    unique = list({(item.topic, item.document): item for item in items}.values())
    drawn = [item for item in unique if item.priority or not any(each.priority for each in unique)]
    chance = 1.0
    if sample is not None and sample_topics is not None:
        raise DataError("--sample draws documents, --sample-topics topics: give one of them")
    if sample is not None:
        chosen, chance = _lot(len(drawn), sample, "--sample", "documents", rng)
        drawn = [drawn[i] for i in chosen]
    elif sample_topics is not None:
        drawn, chance = _of_topics(drawn, sample_topics, rng)
    drawn.sort(key=lambda item: item.priority)
    twice = set(rng.permutation(len(drawn))[: round(double * len(drawn))].tolist())
    asked = [
        Asked(item.topic, item.document, overlap + (number in twice), item.probability * chance)
        for number, item in enumerate(drawn)
    ]
    return asked + _gold(gold or {}, {(each.topic, each.document) for each in asked})


def frame_of(items: Sequence[Item]) -> dict[str, list[str]]:
    """What a round's documents are drawn from: every document of the pool, those that it did not draw itself as well.

    >>> from cranfield.formats.pools import Item
    >>> frame_of([Item("q", "a", 1), Item("q", "b", 2, priority=0)])
    {'q': ['a', 'b']}
    """
    frame: dict[str, dict[str, None]] = {}
    for item in items:
        frame.setdefault(item.topic, {})[item.document] = None
    return {topic: list(documents) for topic, documents in frame.items()}


def _lot(all_of_them: int, wanted: int, option: str, what: str, rng: np.random.Generator) -> tuple[list[int], float]:
    """Some numbers drawn with equal chances, in order, and the chance."""
    if not 1 <= wanted <= all_of_them:
        raise DataError(f"{option}: expected 1 to {all_of_them}, the {what} of the pool, found {wanted}")
    return np.sort(rng.choice(all_of_them, wanted, replace=False)).tolist(), wanted / all_of_them


def _of_topics(items: list[Item], wanted: int, rng: np.random.Generator) -> tuple[list[Item], float]:
    """The items of topics that are drawn; of a topic all count, so that a pool that is itself a sample is refused."""
    part = next((item for item in items if item.probability < 1), None)
    if part is not None:
        told = f"topic {part.topic!r}, document {part.document!r} is in the pool with a chance of {part.probability:g}"
        raise DataError(f"--sample-topics: {told}; draw topics from a pool that is whole")
    topics = list(dict.fromkeys(item.topic for item in items))
    numbers, chance = _lot(len(topics), wanted, "--sample-topics", "topics", rng)
    chosen = {topics[i] for i in numbers}
    return [item for item in items if item.topic in chosen], chance


def _gold(gold: Mapping[str, Mapping[str, float]], asked: set[tuple[str, str]]) -> list[Asked]:
    """Questions whose answer is known; one that is in the pool as well would be asked twice."""
    answer = []
    for topic, grades in gold.items():
        for document, grade in grades.items():
            if (topic, document) in asked:
                told = f"topic {topic!r}, document {document!r}"
                raise DataError(f"{told} is gold and in the pool; take it out of one of them")
            answer.append(Asked(topic, document, 0, 1.0, "gold", grade))
    return answer


@dataclass(frozen=True, repr=False)
class RoundPlan(Answer):
    """What a round will cost: documents, labels, hours."""

    strategy: str
    topics: dict[str, int]  # topic → documents
    labels: int
    twice: int  # documents that more than one person labels
    seconds: float  # a label
    source: str  # where the seconds come from
    judged: int  # documents that are left out because they have a label

    @classmethod
    def of(cls, asked: Sequence[Asked], strategy: str, seconds: float, source: str, judged: int = 0) -> RoundPlan:
        """The plan of a round's documents.

        >>> plan = RoundPlan.of([Asked("q", "a", 2), Asked("q", "b")], "depth", 60, "a guess")
        >>> plan.documents, plan.labels, plan.hours
        (2, 3, 0.05)
        """
        topics: dict[str, int] = {}
        for each in asked:
            topics[each.topic] = topics.get(each.topic, 0) + 1
        labels = sum(each.overlap for each in asked)
        return cls(strategy, topics, labels, sum(each.overlap > 1 for each in asked), seconds, source, judged)

    @property
    def documents(self) -> int:
        """All topics together."""
        return sum(self.topics.values())

    @property
    def hours(self) -> float:
        """Of one person."""
        return self.labels * self.seconds / 3600

    def content(self, how: Layout) -> Iterator[Part]:
        counts = list(self.topics.values()) or [0]
        rows = [
            ["documents", f"{self.documents:,}"],
            ["topics", f"{len(self.topics):,}"],
            ["documents a topic", f"{min(counts):,} to {max(counts):,}"],
            ["labels", f"{self.labels:,}"],
            ["labelled by several people", f"{self.twice:,}"],
            ["left out, labelled already", f"{self.judged:,}"],
            ["hours of one person", f"{self.hours:,.1f}"],
            ["seconds a label", f"{self.seconds:g} ({self.source})"],
        ]
        yield Table(["the round", self.strategy], rows, left=1, title="What the round takes")

    def plain(self, how: Layout) -> Any:
        return plain({**vars(self), "documents": self.documents, "hours": self.hours}, how.digits)


def pace(log: Log) -> float | None:
    """The median seconds that people took for a label; None where nobody measured it."""
    from sqlalchemy import select

    from cranfield.store.tables import events

    taken = select(events.c.seconds).where(
        events.c.kind == "judgment", events.c.source == "human", events.c.seconds.is_not(None)
    )
    with log.reading() as transaction:
        seconds = transaction.connection.execute(taken.order_by(events.c.seq.desc()).limit(RECENT)).scalars().all()
    return float(np.median(seconds)) if seconds else None

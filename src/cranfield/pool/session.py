"""A judging session: what to judge next, given the labels so far.

The state is the labels. A session that is resumed asks its pickers again and answers them from the labels it finds, so
that it goes on where it stopped, with nothing kept beside the file of labels and the seed.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import DataError
from cranfield.formats.judgments import Judgment, latest
from cranfield.kernels import encode
from cranfield.parameters import refuse_below
from cranfield.pool.strategy import STRATEGIES, Picker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.formats.pools import Item
    from cranfield.pool.rankings import Candidates, Rankings
    from cranfield.pool.strategy import Strategy


Labels = dict[str, dict[str, float]]


@dataclass
class _Desk:
    """What stands of one topic: its picker, how many documents were handed out, and those in between."""

    picker: Picker
    handed: int = 0
    waiting: list[int] = field(default_factory=list)  # picked, to be handed out next
    out: set[int] = field(default_factory=set)  # with an assessor, no label yet
    turn: dict[int, int] = field(default_factory=dict)  # when each was first handed out


class Session:
    """Hands out documents to judge, one strategy over all topics.

    >>> from cranfield import Run
    >>> from cranfield.pool.rankings import rankings
    >>> session = Session(rankings([Run({"q": {"a": 3, "b": 2}}, "one"), Run({"q": {"c": 9}}, "two")]), "depth")
    >>> [item.document for item in session.take(2)]
    ['a', 'c']
    >>> session.judge("q", "a", 1)
    >>> session.judged, session.relevant, session.left
    (1, 1, 1)
    """

    def __init__(
        self,
        rankings: Rankings,
        strategy: str | Strategy = "move-to-front",
        *,
        seed: int = 0,
        rel: float = 1,
        judged: Mapping[str, Mapping[str, float]] | None = None,
        labels: Iterable[Judgment] = (),
        budget: int | None = None,
        tiers: Sequence[int] | None = None,
        texts: Any = None,
    ) -> None:
        refuse_below(0, seed=seed)
        self.rankings = rankings
        self.strategy = STRATEGIES.named(strategy)
        self.seed = seed
        self.rel = rel
        self.labels: Labels = latest(labels)
        self.budget = budget
        self._desks: dict[str, _Desk] = {}
        for topic, candidates in rankings.candidates.items():
            rng = np.random.default_rng([seed, zlib.crc32(encode(topic))])
            desk = _Desk(start(self.strategy, candidates, rng, tiers, texts))
            self._desks[topic] = desk
            self._prepare(desk, (judged or {}).get(topic, {}), self.labels.get(topic, {}))

    def _prepare(self, desk: _Desk, before: Mapping[str, float], labels: Mapping[str, float]) -> None:
        """Tell a picker what is known: labels from before at once, the session's own as it asks for them."""
        picker, candidates = desk.picker, desk.picker.candidates
        for document, grade in before.items():
            if grade >= 0 and document in candidates.number and document not in labels:
                picker.know(candidates.number[document], grade >= self.rel)
        replayed: set[int] = set()
        while len(replayed) < len(labels) and (number := picker.pick()) is not None:
            known = labels.get(candidates.documents[number])
            if known is None:
                desk.waiting.append(number)
                break
            picker.tell(number, known >= self.rel)
            replayed.add(number)
        for document, grade in labels.items():  # what came in another order, or from elsewhere
            number = candidates.number.get(document)
            if number is not None and number not in replayed:
                picker.know(number, grade >= self.rel)
                if number in desk.waiting:
                    desk.waiting.remove(number)

    @property
    def judged(self) -> int:
        """How many labels the session has."""
        return sum(map(len, self.labels.values()))

    @property
    def relevant(self) -> int:
        """How many of them say relevant."""
        return sum(grade >= self.rel for grades in self.labels.values() for grade in grades.values())

    @property
    def left(self) -> int:
        """How many documents can still be handed out; those handed out and not yet judged do not count."""
        return self._allowed(sum(desk.picker.rest + len(desk.waiting) for desk in self._desks.values()))

    def _allowed(self, n: int) -> int:
        """So many, or what the budget still allows."""
        return n if self.budget is None else min(n, max(0, self.budget - self.judged - self.outstanding))

    @property
    def outstanding(self) -> int:
        """How many documents have been handed out and wait for their label."""
        return sum(len(desk.out) for desk in self._desks.values())

    def next(self, topic: str | None = None) -> Item | None:
        """The next document to judge, of one topic or of the topic that has had the fewest; None when done."""
        topics = [topic] if topic is not None else sorted(self._desks, key=lambda name: self._desks[name].handed)
        return next((item for name in topics for item in self.take(1, name)), None)

    def take(self, n: int, topic: str | None = None) -> list[Item]:
        """Up to n documents at once, without waiting for labels in between."""
        if topic is None:
            items: list[Item] = []
            while len(items) < n and (item := self.next()) is not None:
                items.append(item)
            return items
        candidates, desk, n = self.rankings[topic], self._desks[topic], self._allowed(n)
        numbers, desk.waiting = desk.waiting[:n], desk.waiting[n:]
        numbers += desk.picker.pick_many(n - len(numbers))
        items = candidates.items(numbers, count(desk.handed + 1))
        desk.handed += len(numbers)
        desk.out.update(numbers)
        for number in numbers:
            desk.turn.setdefault(number, len(desk.turn))
        return items

    def give_back(self, topic: str, document: str) -> None:
        """Take back a document that was handed out and not judged: it is next again, before what was not handed out yet.

        The strategy never hears of it: it goes on as if the document had not been handed out.
        """
        desk, number = self._desks.get(topic), self.rankings[topic].number.get(document)
        if desk is None or number not in desk.out:
            raise DataError(f"topic {topic!r}: {document!r} is not with an assessor, so it cannot be given back")
        desk.out.remove(number)
        desk.handed -= 1
        desk.waiting.append(number)
        desk.waiting.sort(key=lambda each: desk.turn.get(each, len(desk.turn)))

    def judge(self, topic: str, document: str, grade: float) -> None:
        """Bring back a label. It need not be of a document that was handed out, but of a candidate."""
        number = self.rankings[topic].number.get(document)
        if number is None:
            raise DataError(f"topic {topic!r}: no run returned {document!r} within its depth")
        desk = self._desks[topic]
        desk.out.discard(number)
        again = document in self.labels.get(topic, {})
        self.labels.setdefault(topic, {})[document] = grade
        if number in desk.waiting:
            desk.waiting.remove(number)
        if not again:  # a label that changes does not unsay the first
            desk.picker.know(number, grade >= self.rel)


def start(
    chosen: Strategy, candidates: Candidates, rng: np.random.Generator, tiers: Sequence[int] | None, texts: Any
) -> Picker:
    """A picker for a topic; with tiers (one a run, 1 first) what a lower tier returned comes before all else."""
    if tiers is None or len(set(tiers)) < 2:
        return chosen.start(candidates, rng, texts)
    return Tiered(chosen, candidates, rng, tiers, texts)


class Tiered(Picker):
    """One picker for each tier of runs, the next when the one before has named all its documents."""

    def __init__(
        self, chosen: Strategy, candidates: Candidates, rng: np.random.Generator, tiers: Sequence[int], texts: Any
    ) -> None:
        super().__init__(candidates)
        best = np.full(len(candidates), np.iinfo(np.int64).max)
        np.minimum.at(best, candidates.document, np.asarray(tiers, np.int64)[candidates.run])
        self.parts: list[tuple[np.ndarray[Any, Any], Picker]] = []
        for tier in np.unique(best).tolist():
            mask = best == tier
            self.parts.append((np.flatnonzero(mask), chosen.start(candidates.keep(mask), rng, texts)))
        self.part_of = np.searchsorted(np.unique(best), best)
        self.place = np.zeros(len(candidates), np.int64)
        for numbers, _ in self.parts:
            self.place[numbers] = np.arange(len(numbers))

    def choose(self) -> int:
        for numbers, picker in self.parts:
            for number in np.flatnonzero(self.picked[numbers] & ~picker.picked).tolist():
                picker.mark(number)
            document = picker.pick()
            if document is not None:
                return int(numbers[document])
        raise AssertionError("a document is left")

    def tell(self, document: int, relevant: bool) -> None:
        self.parts[int(self.part_of[document])][1].tell(int(self.place[document]), relevant)

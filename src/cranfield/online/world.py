"""What simulated users search: the tops that systems have for each topic, and how good each document is.

A document is as good as its grade over the highest grade of all judgments; unjudged ones and those of grades below 0 are
worth nothing. Only topics that are judged and that every system answers are asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import ConventionError, DataError
from cranfield.formats.reading import as_qrels, as_runs
from cranfield.online.interleave import METHODS, Method
from cranfield.online.users import USERS, User
from cranfield.parameters import refuse_below, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from cranfield.kernels.table import Floats

    Places = npt.NDArray[np.int64]

MOST_SHOWN = 1_000  # documents of a page


@dataclass(frozen=True)
class World:
    """Systems, topics, and of each system and topic the first k documents."""

    systems: tuple[str, ...]
    topics: tuple[str, ...]
    rankings: tuple[tuple[tuple[str, ...], ...], ...]  # by system, by topic
    worth: Mapping[str, Mapping[str, float]]  # by topic and document, above 0 up to 1
    k: int
    passed_over: tuple[str, ...] = ()  # judged topics that a system lacks
    queries: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, qrels: Any, runs: Any, k: int = 10, queries: Mapping[str, str] | None = None) -> World:
        """From judgments and runs in any form that `evaluate` takes."""
        refuse_below(1, k=k)
        if k > MOST_SHOWN:
            raise ConventionError(f"k must be {MOST_SHOWN:,} at the most, got {shortened(k)}")
        opened = as_runs(runs)
        judged = as_qrels(qrels).to_dict()
        names = [run.name for run in opened]
        if len(set(names)) < len(names):
            raise DataError(f"expected a name of its own for each system, found {', '.join(names)}")
        highest = max((grade for grades in judged.values() for grade in grades.values()), default=0.0)
        if highest <= 0:
            raise DataError("no document is relevant by these judgments, so that users have nothing to click on")
        topics = [topic for topic in judged if all(topic in run for run in opened)]
        if not topics:
            raise DataError(f"no judged topic is answered by {' and '.join(names)}")
        worth = {
            topic: {document: grade / highest for document, grade in judged[topic].items() if grade > 0}
            for topic in topics
        }
        rankings = tuple(tuple(tuple(d for d, _ in run[topic][:k]) for topic in topics) for run in opened)
        passed_over = tuple(topic for topic in judged if topic not in worth)
        return cls(tuple(names), tuple(topics), rankings, worth, k, passed_over, queries or {})

    def gains_of(self, topic: int, documents: Sequence[str]) -> list[float]:
        """How good documents are for a topic; NaN behind the last up to k."""
        worth = self.worth[self.topics[topic]].get
        return [*(worth(document, 0.0) for document in documents), *[np.nan] * (self.k - len(documents))]

    @cached_property
    def gains(self) -> Floats:
        """How good what each system shows is: systems × topics × ranks."""
        return np.array(
            [[self.gains_of(t, documents) for t, documents in enumerate(lists)] for lists in self.rankings], np.float64
        )

    def clicks(self, users: User, system: int, topics: Places, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        """Clicks on a system's own lists, a row for each search."""
        return users.clicks(self.gains[system][topics], rng)

    def preferences(
        self, users: User, pair: tuple[int, int], topics: Places, rng: np.random.Generator, method: Method
    ) -> Floats:
        """Of each search on a list that is interleaved for it: 1 where clicks prefer the first of two systems, -1, or 0."""
        coin = Random(int(rng.integers(2**63)))
        lists = [[self.rankings[system][topic] for system in pair] for topic in range(len(self.topics))]
        drawn = [method.draw(lists[topic], self.k, coin) for topic in topics.tolist()]
        gains = [self.gains_of(topic, one.documents) for topic, one in zip(topics.tolist(), drawn, strict=True)]
        clicks = users.clicks(np.array(gains, np.float64).reshape(-1, self.k), rng)
        answer = np.zeros(len(topics))
        for i in np.flatnonzero(clicks.any(axis=1)).tolist():
            one, other = method.credit(drawn[i].evidence, 2, dict.fromkeys(np.flatnonzero(clicks[i]).tolist(), 1.0))
            answer[i] = 0.0 if abs(one - other) < 1e-9 else np.sign(one - other)
        return answer

    def pair(self, one: str, other: str) -> tuple[int, int]:
        """The numbers of two systems by name."""
        for name in (one, other):
            if name not in self.systems:
                raise ConventionError(f"no system {name!r}; there are {', '.join(self.systems)}")
        return self.systems.index(one), self.systems.index(other)


def users_named(typed: str | User) -> User:
    """A model of users, by what one types."""
    return USERS.named(typed) if isinstance(typed, str) else typed


def method_named(typed: str | Method) -> Method:
    """A method of interleaving, by what one types."""
    return METHODS.named(typed) if isinstance(typed, str) else typed


def first_click(clicks: npt.NDArray[np.bool_]) -> Floats:
    """Of each search the reciprocal rank of its first click; 0 without one."""
    return np.where(clicks.any(axis=1), 1.0 / (1 + clicks.argmax(axis=1)), 0.0)


SIGNALS = {
    "click-through": lambda clicks: clicks.any(axis=1).astype(np.float64),
    "clicks": lambda clicks: clicks.sum(axis=1).astype(np.float64),
    "reciprocal-rank": first_click,
}
"""What is measured of a search by its clicks, where traffic is split."""

"""Simulated users and their world: their clicks (`User`), who searches when (`Audience`), what systems show (`World`).

A model of users is one class: from the gains of a list's documents to clicks. A user sees only the gain of each document,
from 0 (irrelevant) to 1 (the highest grade). Lists are rows of one length; shorter lists are padded with NaN. The models
here are cascade models: users read from the top, click with a probability by grade, and may stop after each click.

Units differ in how often they come, and each searches the same few topics repeatedly. Searches of one unit are therefore
alike, as in real logs, and a test that treats searches as units is overconfident.

The gain of a document is its grade over the highest grade of all judgments; unjudged documents and negative grades have
gain 0. Users search only judged topics that every system has results for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import Real, refuse_below, shortened
from cranfield.base.registry import Registered, Registry
from cranfield.experiments.interleaving import METHODS, InterleavingMethod
from cranfield.formats.runs_and_qrels import as_qrels, as_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats

    Places = npt.NDArray[np.int64]


USERS: Registry[type[User]] = Registry("model of users", "user_models", "cranfield.experiments.simulated_world")


class User(Registered, ABC):
    """A model of how a user reads a list and clicks.

    >>> str(USERS.named("Navigational(stop_relevant=1)"))
    'navigational(stop_relevant=1)'
    """

    registry = USERS
    formula: ClassVar[str]
    reference: ClassVar[str]

    @abstractmethod
    def clicks(self, gains: Floats, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        """The clicks: searches × ranks, in the shape of the gains."""


MEANINGS = (
    "how likely a click on an irrelevant document is",
    "how likely a click on a document of the highest grade is",
    "how likely a click on an irrelevant document is the last",
    "how likely a click on a document of the highest grade is the last",
)


def probabilities(*defaults: float) -> tuple[Real, ...]:
    """The parameters of a cascade model: click on an irrelevant or relevant document, stop after such a click."""
    return tuple(Real(default, meaning, low=0, high=1) for default, meaning in zip(defaults, MEANINGS, strict=True))


class Perfect(User):
    """Clicks on every relevant document and on nothing else, to the end of the list."""

    name = "perfect"
    formula = (
        "at each rank until stopped: P(click) = c₀ + g (c₁ - c₀); after a click: P(stop) = s₀ + g (s₁ - s₀); "
        "g = grade / highest grade"
    )
    reference = (
        "Guo, Liu and Wang, Efficient Multiple-Click Models in Web Search, WSDM 2009; values: Hofmann, Whiteson and "
        "de Rijke, A Probabilistic Method for Inferring Preferences from Clicks, CIKM 2011"
    )
    click_irrelevant, click_relevant, stop_irrelevant, stop_relevant = probabilities(0.0, 1.0, 0.0, 0.0)

    def clicks(self, gains: Floats, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        present = ~np.isnan(gains)
        gain = np.where(present, gains, 0.0)
        click = self.click_irrelevant + gain * (self.click_relevant - self.click_irrelevant)
        stop = self.stop_irrelevant + gain * (self.stop_relevant - self.stop_irrelevant)
        clicked = present & (rng.random(gains.shape) < click)
        last = clicked & (rng.random(gains.shape) < stop)
        stopped_before: npt.NDArray[np.int64] = np.cumsum(last, axis=-1) - last
        return np.asarray(clicked & (stopped_before == 0), np.bool_)


class Navigational(Perfect):
    """Looks for one document: clicks on little else, and stops after it."""

    name = "navigational"
    click_irrelevant, click_relevant, stop_irrelevant, stop_relevant = probabilities(0.05, 0.95, 0.2, 0.9)


class Informational(Perfect):
    """Wants to learn about a subject: clicks often, and often goes on."""

    name = "informational"
    click_irrelevant, click_relevant, stop_irrelevant, stop_relevant = probabilities(0.4, 0.9, 0.1, 0.5)


class Blind(Perfect):
    """Clicks at random, on every second document: a test that detects a difference with such users is wrong."""

    name = "random"
    aliases = ("blind",)
    click_irrelevant, click_relevant, stop_irrelevant, stop_relevant = probabilities(0.5, 0.5, 0.0, 0.0)


DAY = 86_400.0
BETWEEN = 300.0  # seconds between the searches of a session
MOST = 20_000_000  # searches, and interests of all units


class Visits(NamedTuple):
    """All searches: unit, number of the session, time (seconds from the start) and topic of each."""

    unit: Places
    session: Places
    time: Floats
    topic: Places


@dataclass(frozen=True)
class Audience:
    """The number of units and days, how often units come, and how many topics each searches."""

    units: int = 1_000
    days: int = 14
    sessions: float = 3.0  # per unit, on average; at least 1
    searches: float = 2.0  # per session, on average; at least 1
    interests: int = 3

    def __post_init__(self) -> None:
        refuse_below(1, units=self.units, days=self.days, interests=self.interests)
        for name, mean in (("sessions", self.sessions), ("searches", self.searches)):
            if not 1 <= mean <= 1_000:
                raise ConventionError(f"{name} must be between 1 and 1000 on average, got {mean:g}")
        for name, count in (("interests", self.interests), ("sessions times searches", self.sessions * self.searches)):
            if self.units * count > MOST:
                units = shortened(self.units)
                raise ConventionError(f"units times {name} must be {MOST:,} at the most, got {units} times {count:g}")

    def visits(self, topics: int, rng: np.random.Generator) -> Visits:
        """All searches, by unit and time.

        >>> visits = Audience(units=2).visits(5, np.random.default_rng(1))
        >>> sorted(set(visits.unit.tolist())), bool((visits.time < 14 * DAY).all())
        ([0, 1], True)
        """
        of_unit = 1 + rng.poisson(rng.exponential(self.sessions - 1, self.units))
        unit = np.repeat(np.arange(self.units), of_unit)
        of_session = rng.geometric(1 / self.searches, len(unit))
        longest = BETWEEN * of_session  # a session must end within the days
        start = rng.random(len(unit)) * np.maximum(self.days * DAY - longest, 1.0)
        order = np.lexsort((start, unit))
        unit, start, of_session = unit[order], start[order], of_session[order]
        session = np.repeat(np.arange(len(unit)), of_session)
        within = np.arange(len(session)) - np.repeat(np.cumsum(of_session) - of_session, of_session)
        whose = unit[session]
        own = rng.integers(topics, size=(self.units, self.interests))
        topic = own[whose, rng.integers(self.interests, size=len(whose))]
        return Visits(whose, session, start[session] + BETWEEN * within, topic)


MOST_SHOWN = 1_000  # documents per page


@dataclass(frozen=True)
class World:
    """Systems, topics, and the first k documents of each system for each topic."""

    systems: tuple[str, ...]
    topics: tuple[str, ...]
    rankings: tuple[tuple[tuple[str, ...], ...], ...]  # by system, by topic
    worth: Mapping[str, Mapping[str, float]]  # by topic and document, above 0 up to 1
    k: int
    passed_over: tuple[str, ...] = ()  # judged topics that a system lacks
    queries: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, qrels: Any, runs: Any, k: int = 10, queries: Mapping[str, str] | None = None) -> World:
        """The world of judgments and runs, in any form that `evaluate` accepts."""
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
            raise DataError("these judgments contain no relevant document, so users have nothing to click on")
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
        """The gains of documents for a topic, padded with NaN up to k."""
        worth = self.worth[self.topics[topic]].get
        return [*(worth(document, 0.0) for document in documents), *[np.nan] * (self.k - len(documents))]

    @cached_property
    def gains(self) -> Floats:
        """The gains of the systems' lists: systems × topics × ranks."""
        return np.array(
            [[self.gains_of(t, documents) for t, documents in enumerate(lists)] for lists in self.rankings], np.float64
        )

    def clicks(self, users: User, system: int, topics: Places, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        """Clicks on a system's own lists, one row per search."""
        return users.clicks(self.gains[system][topics], rng)

    def preferences(
        self, users: User, pair: tuple[int, int], topics: Places, rng: np.random.Generator, method: InterleavingMethod
    ) -> Floats:
        """The preference of each search on its own interleaved list: 1 for the first system, -1 for the second, 0 for neither."""
        coin = Random(int(rng.integers(2**63)))
        lists = [[self.rankings[system][topic] for system in pair] for topic in range(len(self.topics))]
        mixed = [method.draw(lists[topic], self.k, coin) for topic in topics.tolist()]
        gains = [self.gains_of(topic, one.documents) for topic, one in zip(topics.tolist(), mixed, strict=True)]
        clicks = users.clicks(np.array(gains, np.float64).reshape(-1, self.k), rng)
        answer = np.zeros(len(topics))
        for i in np.flatnonzero(clicks.any(axis=1)).tolist():
            one, other = method.credit(mixed[i].evidence, 2, dict.fromkeys(np.flatnonzero(clicks[i]).tolist(), 1.0))
            answer[i] = 0.0 if abs(one - other) < 1e-9 else np.sign(one - other)
        return answer


users_named = USERS.named
method_named = METHODS.named


def first_click(clicks: npt.NDArray[np.bool_]) -> Floats:
    """The reciprocal rank of each search's first click; 0 without a click."""
    return np.where(clicks.any(axis=1), 1.0 / (1 + clicks.argmax(axis=1)), 0.0)


SIGNALS = {
    "click-through": lambda clicks: clicks.any(axis=1).astype(np.float64),
    "clicks": lambda clicks: clicks.sum(axis=1).astype(np.float64),
    "reciprocal-rank": first_click,
}
"""The metrics of an A/B test: functions from the clicks of searches to one number per search."""

"""Who searches when, about what: units that return over days, in sessions of several searches, with topics of their own.

Units differ in how often they come, and each asks about a few topics again and again: searches of one unit are alike, as
they are in real logs, so that whoever takes a search for a unit is too sure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.errors import ConventionError
from cranfield.parameters import refuse_below, shortened

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.kernels.table import Floats

    Places = npt.NDArray[np.int64]

DAY = 86_400.0
BETWEEN = 300.0  # seconds from one search of a session to the next
MOST = 20_000_000  # searches, and interests of all units


class Visits(NamedTuple):
    """Searches by unit and time: whose, in which session of all, when (seconds from the start), about which topic."""

    unit: Places
    session: Places
    time: Floats
    topic: Places


@dataclass(frozen=True)
class Audience:
    """How many units, over how many days, how often they come, and how many topics each cares about."""

    units: int = 1_000
    days: int = 14
    sessions: float = 3.0  # of a unit, on average; every unit has one
    searches: float = 2.0  # of a session, on average; every session has one
    interests: int = 3

    def __post_init__(self) -> None:
        refuse_below(1, units=self.units, days=self.days, interests=self.interests)
        for name, mean in (("sessions", self.sessions), ("searches", self.searches)):
            if not 1 <= mean <= 1_000:
                raise ConventionError(f"{name} must be between 1 and 1000 on average, got {mean:g}")
        for name, count in (("interests", self.interests), ("sessions times searches", self.sessions * self.searches)):
            if self.units * count > MOST:
                given = shortened(self.units)
                raise ConventionError(f"units times {name} must be {MOST:,} at the most, got {given} times {count:g}")

    def visits(self, topics: int, rng: np.random.Generator) -> Visits:
        """All searches, in the order of units and time.

        >>> visits = Audience(units=2).visits(5, np.random.default_rng(1))
        >>> sorted(set(visits.unit.tolist())), bool((visits.time < 14 * DAY).all())
        ([0, 1], True)
        """
        of_unit = 1 + rng.poisson(rng.exponential(self.sessions - 1, self.units))
        unit = np.repeat(np.arange(self.units), of_unit)
        of_session = rng.geometric(1 / self.searches, len(unit))
        longest = BETWEEN * of_session  # so that a session ends within the days
        start = rng.random(len(unit)) * np.maximum(self.days * DAY - longest, 1.0)
        order = np.lexsort((start, unit))
        unit, start, of_session = unit[order], start[order], of_session[order]
        session = np.repeat(np.arange(len(unit)), of_session)
        within = np.arange(len(session)) - np.repeat(np.cumsum(of_session) - of_session, of_session)
        whose = unit[session]
        own = rng.integers(topics, size=(self.units, self.interests))
        topic = own[whose, rng.integers(self.interests, size=len(whose))]
        return Visits(whose, session, start[session] + BETWEEN * within, topic)

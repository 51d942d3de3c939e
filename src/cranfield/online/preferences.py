"""What interleaved lists say over many searches: which system units prefer, by their clicks.

A search prefers the system with more credit. A unit prefers the one that more of its searches do; wins, ties and losses are
of units, as these were drawn. Δ_AB is the share of wins, ties by half, less one half (Chapelle, Joachims, Radlinski and Yue,
2012): 0 where neither is preferred.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.answer import Cell, Layout, Table
from cranfield.errors import DataError, TokenError
from cranfield.online.credit import credit
from cranfield.online.decide import Limits, round_up
from cranfield.online.token import Keys
from cranfield.stats.arms import against_0, level
from cranfield.stats.counted import Counted, bootstrap
from cranfield.stats.moments import Moments
from cranfield.stats.sequential import FIXED
from cranfield.stats.shares import SIGN_CONCENTRATION, anytime_p, anytime_share, sign_p

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.online.gather import Gathering
    from cranfield.stats.sequential import Rule

BY = ("clicks", "dwell", "conversion", "weights")


class Pair(NamedTuple):
    """A system against the control: units that prefer it, that do not, and neither."""

    system: str
    control: str
    wins: int
    losses: int
    ties: int
    searches: int
    delta: Limits  # by unit, under the plan's method; this decides
    by_search: Limits  # over searches, by the bootstrap of units
    p: float  # of delta
    sign: float  # the sign test of units, which is the binomial one
    sequential: tuple[float, float]  # the share of wins among wins and losses, at any time
    anytime: float  # p-value at any time
    margin: float | None
    inner: tuple[float, float]  # the 1 − 2α interval of delta
    detectable: float

    @property
    def same(self) -> bool:
        """Whether the preference is shown to be within the margin."""
        return self.margin is not None and -self.margin < self.inner[0] and self.inner[1] < self.margin

    def verdict(self, ended: bool) -> str:
        """What it says by itself."""
        if self.delta.low > 0:
            return "ship"
        if self.delta.high < 0:
            return "stop"
        return "same" if self.same else "not shown" if ended else "continue"


@dataclass(frozen=True)
class Preferences:
    """What units prefer, of each system against the first."""

    pairs: tuple[Pair, ...]
    unread: int = 0  # impressions whose token could not be opened
    broken: str = ""

    def reason(self, verdict: str, ended: bool) -> str:
        """Why a verdict is what it is."""
        chosen = next((each for each in self.pairs if each.verdict(ended) == verdict), self.pairs[0])
        value, low, high = chosen.delta
        told = (
            f"{chosen.system} against {chosen.control}: Δ {value:+.4f} [{low:+.4f}, {high:+.4f}], "
            f"{chosen.wins:,} units prefer it, {chosen.losses:,} the other, {chosen.ties:,} neither"
        )
        if verdict != "not shown":
            return told
        n = chosen.wins + chosen.losses + chosen.ties
        target = chosen.margin or chosen.detectable / 2
        units = round_up(n * (chosen.detectable / target) ** 2)
        what = f"its margin of {target:.4g}" if chosen.margin else "half of that"
        could = f"it could have shown {chosen.detectable:.4g} (power 0.8)"
        return f"{told}; {could}; a new plan of about {units:,} units would show {what}"

    def parts(self, how: Layout) -> Iterator[Table]:
        """A row a system."""
        head = [
            "system",
            "wins",
            "losses",
            "ties",
            "Δ by unit",
            "interval",
            "p",
            "sign test",
            "Δ by search",
            "interval",
        ]
        rows: list[list[Cell | str]] = [
            [
                f"{each.system} against {each.control}",
                *(f"{n:,}" for n in (each.wins, each.losses, each.ties)),
                how.cell(each.delta.value, signed=True),
                f"[{how.number(each.delta.low, True)}, {how.number(each.delta.high, True)}]",
                Cell(f"{each.p:.2g}", each.p),
                Cell(f"{each.sign:.2g}", each.sign),
                how.cell(each.by_search.value, signed=True),
                f"[{how.number(each.by_search.low, True)}, {how.number(each.by_search.high, True)}]",
            ]
            for each in self.pairs
        ]
        yield Table(head, rows, title="which system units prefer", spare=(8, 9, 7))


def preferences(gathering: Gathering, rule: Rule, keys: Keys | None, rng: np.random.Generator) -> Preferences:
    """What the units that are in prefer, by the credit of every search that has a token."""
    how = gathering.plan.interleave or {}
    by, margin = how.get("credit", "clicks"), how.get("margin")
    if by not in BY:
        raise DataError(f"[interleave]: expected credit of {', '.join(BY)}, found {by!r}")
    outcomes, systems, unread, tried = _outcomes(gathering, by, keys or Keys.usual())
    if not tried:
        return Preferences((), broken="no impression of these units carries the token of an interleaved list")
    if unread == tried:
        return Preferences((), unread, f"none of {tried:,} tokens can be opened: are these the keys that sealed them?")
    alpha = gathering.plan.alpha / (len(systems) - 1)
    pairs = []
    for system in systems[1:]:
        own = [values[system] for values in outcomes.values() if system in values]
        pair = _pair(system, systems[0], own, rule, alpha, margin, rng)
        if isinstance(pair, str):
            return Preferences((), unread, pair)
        pairs.append(pair)
    return Preferences(tuple(pairs), unread)


def _outcomes(
    gathering: Gathering, by: str, keys: Keys
) -> tuple[dict[str, dict[str, list[float]]], list[str], int, int]:
    """By unit and system, the sign of each search's preference over the control; searches without a click tie."""
    clicks = _clicks(gathering, by)
    outcomes: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    systems: list[str] = []
    unread = tried = 0
    rows = gathering.rows(
        "SELECT n.unit, search, arg_min(credit, time), arg_min(shown, time) FROM cranfield_seen "
        "JOIN cranfield_entered n USING (number) WHERE kind = 'impression' AND credit IS NOT NULL AND since >= 0 "
        "GROUP BY n.unit, search ORDER BY n.unit, search"
    )
    for unit, search, token, shown in rows:
        tried += 1
        ranks = _ranks(clicks.get((unit, search), ()), shown)
        try:
            found = _opened(token, ranks, by, keys, search)
        except TokenError:
            unread += 1
            continue
        systems = systems or list(found.credits)
        for other in systems[1:]:
            if other in found.credits and systems[0] in found.credits:
                outcomes[unit][other].append(float(np.sign(found.difference(other, systems[0]))))
    return outcomes, systems, unread, tried


def _opened(token: str, ranks: Any, by: str, keys: Keys, search: str) -> Any:
    """The credit of a search, whether its token was sealed for it or for any."""
    try:
        return credit(token, ranks, by, keys=keys, search=search, at=0.0)
    except TokenError:
        return credit(token, ranks, by, keys=keys, at=0.0)


def _clicks(gathering: Gathering, by: str) -> dict[tuple[str, str], list[tuple[str, int | None, float | None]]]:
    kind = {"dwell": "dwell", "conversion": "conversion"}.get(by, "click")
    found: dict[tuple[str, str], list[tuple[str, int | None, float | None]]] = defaultdict(list)
    for unit, search, *rest in gathering.rows(
        "SELECT n.unit, search, document, position, value FROM cranfield_seen JOIN cranfield_entered n USING (number) "
        "WHERE kind = ? AND search IS NOT NULL AND since >= 0 ORDER BY time",
        kind,
    ):
        found[unit, search].append(tuple(rest))
    return found


def _ranks(clicks: Any, shown: list[str] | None) -> dict[int, float | None]:
    """Clicked ranks and what each is worth, by the list that was shown, or else by position; others are passed over."""
    ranks: dict[int, float | None] = {}
    for document, position, value in clicks:
        place = shown.index(document) + 1 if shown and document in shown else position
        if place is not None and (shown is None or place <= len(shown)):
            ranks[place] = value if ranks.get(place) is None or value is None else max(ranks[place] or 0.0, value)
    return ranks


def _pair(
    system: str,
    control: str,
    units: list[list[float]],
    rule: Rule,
    alpha: float,
    margin: float | None,
    rng: np.random.Generator,
) -> Pair | str:
    signs = np.sign([sum(each) for each in units])
    wins, losses = int((signs > 0).sum()), int((signs < 0).sum())
    if len(signs) < 2 or not wins + losses or np.ptp(signs) == 0:
        return f"{system} against {control}: {len(signs):,} units all say the same, so there is no spread to measure against"
    effect = against_0(level(Moments.of(half=signs / 2), "half"))
    low, high = (float(end) for end in effect.limits((alpha / 2, alpha / 2), rule))
    inner = tuple(float(end) for end in effect.limits((alpha, alpha), rule))
    sums = np.array([[sum(each) / 2, len(each)] for each in units])
    zero = Counted.of(np.array([[0.0, 1.0], [0.0, 1.0]]))
    drawn = bootstrap(zero, Counted.of(sums), lambda mean: mean[:, 0] / mean[:, 1], rng)
    by_search = Limits(float(drawn.value), *(float(end) for end in drawn.limits((alpha / 2, alpha / 2), FIXED)))
    even = anytime_share(wins, losses, 1 - alpha)
    power = FIXED.critical(0.2)
    return Pair(
        system,
        control,
        wins,
        losses,
        len(signs) - wins - losses,
        int(sums[:, 1].sum()),
        Limits(float(effect.value), low, high),
        by_search,
        float(effect.p(rule)),
        sign_p(wins, losses),
        even,
        anytime_p([wins, losses], [0.5, 0.5], SIGN_CONCENTRATION),
        margin,
        (inner[0], inner[1]),
        float(effect.error) * (rule.critical(alpha / 2) + power) if math.isfinite(float(effect.error)) else math.nan,
    )

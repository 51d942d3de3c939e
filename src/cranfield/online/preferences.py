"""What interleaved lists say over many searches: which system units prefer, by their clicks.

A search prefers the system with more credit. A unit prefers the one that more of its searches do; wins, ties and losses are
of units, as these were drawn. Δ_AB is the share of wins, ties by half, less one half (Chapelle, Joachims, Radlinski and Yue,
2012): 0 where neither is preferred.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.answer import Cell, Layout, Table
from cranfield.online.decide import round_up
from cranfield.online.lists import MOST_RUN_OUT, ClickCounts, ListReading, TokenCounts
from cranfield.stats.arms import against_0, level
from cranfield.stats.counted import Counted, bootstrap
from cranfield.stats.limits import Limits
from cranfield.stats.moments import Moments
from cranfield.stats.sequential import FIXED
from cranfield.stats.shares import SIGN_CONCENTRATION, anytime_p, anytime_share, sign_p

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.online.plan import Plan
    from cranfield.stats.sequential import Rule


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
        return self.delta.exists and Limits(self.delta.value, *self.inner).inside(self.margin)

    def verdict(self, ended: bool) -> str:
        """What it says by itself."""
        if self.delta.above():
            return "ship"
        if self.delta.below():
            return "stop"
        return "same" if self.same else "not shown" if ended else "continue"

    def told(self, verdict: str = "") -> str:
        """The preference in words; with the verdict on this system, where that on all is another."""
        value, low, high = self.delta
        interval = f"[{low:+.4f}, {high:+.4f}]" if self.delta.exists else "without an interval"
        return (
            f"{self.system} against {self.control}{f' ({verdict})' if verdict else ''}: Δ {value:+.4f} {interval}, "
            f"{self.wins:,} units prefer it, {self.losses:,} the other, {self.ties:,} neither"
        )

    def could(self) -> str:
        """What could have been shown where nothing is, and how many units a new plan takes."""
        target = self.margin or self.detectable / 2
        units = round_up((self.wins + self.losses + self.ties) * (self.detectable / target) ** 2)
        what = f"its margin of {target:.4g}" if self.margin else "half of that"
        return f"it could have shown {self.detectable:.4g} (power 0.8); a new plan of about {units:,} units would show {what}"


@dataclass(frozen=True)
class Preferences:
    """What units prefer, of each system against the control, and what lists and clicks that is made of."""

    pairs: tuple[Pair, ...]
    tokens: TokenCounts
    clicks: ClickCounts
    broken: str = ""

    def blind(self) -> str:
        """What interleaving cannot see here, where that is much."""
        share = self.clicks.run_out_share
        if share <= MOST_RUN_OUT:
            return ""
        said = f"{100 * share:.0f} % of clicks earn no credit because a ranking had run out"
        return f"{said}: an A/B test can see what interleaving cannot"

    def reason(self, verdict: str, ended: bool) -> str:
        """What is shown of each system, those first that have the verdict of the whole; while it goes on, what is settled."""
        verdicts = {each.system: each.verdict(ended) for each in self.pairs}
        settled = [each for each in self.pairs if verdicts[each.system] != "continue"]
        said = []
        for each in sorted(settled, key=lambda each: verdicts[each.system] != verdict):
            own = verdicts[each.system]
            said.append(each.told("" if own == verdict else own))
            said += [each.could()] if own == verdict == "not shown" else []
        open_yet = [name for name, own in verdicts.items() if own == "continue"]
        if open_yet and len(self.pairs) > 1:
            said.append(f"{' and '.join(open_yet)}: no preference is shown so far")
        return "; ".join(said)

    def undecided(self) -> str:
        """That some systems have no interval, in words; nothing where all have one."""
        lacking = [each.system for each in self.pairs if not each.delta.exists]
        return f"{', '.join(lacking)}: too few units for an interval with finite ends" if lacking else ""

    def parts(self, how: Layout) -> Iterator[Table]:
        """A row a system; nothing where there is none yet."""
        if not self.pairs:
            return
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
                how.interval(each.delta.low, each.delta.high, signed=True),
                Cell(f"{each.p:.2g}", each.p),
                Cell(f"{each.sign:.2g}", each.sign),
                how.cell(each.by_search.value, signed=True),
                how.interval(each.by_search.low, each.by_search.high, signed=True),
            ]
            for each in self.pairs
        ]
        yield Table(head, rows, title="which system units prefer", spare=(8, 9, 7))


def preferences(reading: ListReading, plan: Plan, rule: Rule, rng: np.random.Generator) -> Preferences:
    """What units prefer, by the credit of every search whose list could be used."""
    tokens, clicks = reading.tokens, reading.clicks
    if not tokens.lists:
        words = "no impression of these units carries the token of an interleaved list"
        return Preferences((), tokens, clicks, words)
    control, *others = reading.systems
    outcomes = _outcomes(reading)
    alpha, margin = plan.alpha / len(others), (plan.interleave or {}).get("margin")
    pairs = []
    for system in others:
        own = [values[system] for values in outcomes.values() if system in values]
        pair = _pair(system, control, own, rule, alpha, margin, rng)
        if isinstance(pair, str):
            return Preferences((), tokens, clicks, pair)
        pairs.append(pair)
    return Preferences(tuple(pairs), tokens, clicks)


def _outcomes(reading: ListReading) -> dict[str, dict[str, list[float]]]:
    """By unit and system, the sign of each search's preference over the control; searches without a click tie."""
    outcomes: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    control, *others = reading.systems
    for unit, preference in reading.searches:
        for other in others:
            if other in preference.credits and control in preference.credits:
                outcomes[unit][other].append(float(np.sign(preference.difference(other, control))))
    return outcomes


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
    if len(signs) < 2 or np.ptp(signs) == 0:
        said = f"{system} against {control}, {len(signs):,} {'unit' if len(signs) == 1 else 'units'}"
        if not wins + losses:
            return f"{said}: none prefers either"
        return f"{said}: all prefer the same, so there is no spread to measure against"
    effect = against_0(level(Moments.of(half=signs / 2), "half"))
    low, high = (float(end) for end in effect.limits((alpha / 2, alpha / 2), rule))
    inner = Limits(float(effect.value), *(float(end) for end in effect.limits((alpha, alpha), rule)))
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
        (inner.low, inner.high),
        float(effect.error) * (rule.critical(alpha / 2) + power) if math.isfinite(float(effect.error)) else math.nan,
    )

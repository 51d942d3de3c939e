"""One difference, in numbers and in plain words.

A pair holds the difference of `other` and `one` (the baseline) over the topics for which both have a value. `better`
already knows whether lower is better; the difference and its interval do not, they are plain numbers. "beats" is said only
where the corrected p-value says so. Where it does not, the sentence never says that two systems are equal: the data
may just be too few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from cranfield.compare.systems import SEEDS
from cranfield.stats.test import Test
from cranfield.stats.testing import TestOfMany, any_test

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.stats.equivalence import Equivalence
    from cranfield.stats.method import SignificanceTest


# numbers


def p_value(p: float) -> str:
    """A p-value as people read it: "= 0.0002", "= 0.57", "< 0.0001".

    >>> p_value(0.00021), p_value(0.572), p_value(1e-5), p_value(1)
    ('= 0.0002', '= 0.57', '< 0.0001', '= 1')
    """
    if p != p:
        return "undefined"
    if p < 0.0001:
        return "< 0.0001"
    text = f"{p:.4f}" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
    return f"= {text.rstrip('0').rstrip('.')}"


def bare_p(p: float) -> str:
    """The same without the equals sign, where the text has one or needs none."""
    return p_value(p).removeprefix("= ")


def amount(value: float, like: float | None = None, digits: int = 3) -> str:
    """A number with so many decimals, or with as many as a small one (or `like`) needs to show two figures.

    >>> amount(0.0417), amount(0.000417), amount(-0.01, like=0.0004)
    ('0.042', '0.00042', '-0.01000')
    """
    size = abs(value if like is None else like)
    needed = 1 - math.floor(math.log10(size)) if 0 < size < 1 else 0
    text = f"{value:.{max(digits, min(needed, 8))}f}"
    return text.removeprefix("-") if float(text) == 0 else text


# the pair


@dataclass(frozen=True)
class Margins:
    """Is a difference too small to matter? Non-inferiority is that of `other`, whichever direction is better.

    The margin is chosen before looking. Both are one-sided t-tests against it (for groups of runs, of topics and seeds at
    once). They answer another question than the p-value of a pair, and are not corrected with it.
    """

    equivalence: Equivalence
    non_inferiority: Equivalence


@dataclass(frozen=True)
class Pair:
    """One difference: `other` against `one` (the baseline) by a measure."""

    measure: str
    one: str
    other: str
    n: int  # topics for which both have a value
    mean_one: float
    mean_other: float
    difference: float  # other − one
    low: float  # the interval of the mean difference
    high: float
    effect: float  # d_z, the mean difference in standard deviations; NaN where there is no spread
    wins: int  # topics on which other is better; where lower is better a lower value wins
    ties: int
    losses: int
    p: float = math.nan  # of the test that decides; NaN with a `reason`
    corrected: float = math.nan
    outcomes: Mapping[str, Any] = field(default_factory=dict)  # all tests that were made, by name
    reason: str = ""
    better: Literal["one", "other", "neither"] = "neither"  # by the mean, whatever the p-value
    test: str = ""  # the test that decides for this pair: groups of runs have their own
    left_out: int = 0  # topics for which one of the two has no value
    equivalence: Any = None  # what TOST and the test of non-inferiority say (Margins), where a margin was given

    def sentence(self, correction: str = "", alpha: float = 0.05, lower_is_better: bool = False) -> str:
        """The pair in plain words, from the side of the run that is ahead; `Comparison.sentence` knows what to fill in."""
        both = f"{self.other} and {self.one}"
        if self.n == 0:
            return f"{both} have no topic in common with a value of {self.measure}: nothing to compare"
        topics = f"{self.n} topic{'' if self.n == 1 else 's'}"
        if self.ties == self.n and self.n > 1:
            return f"{both} score the same {self.measure} on each of {topics}: nothing to test"
        if self.better == "neither":
            start = f"{both} have the same mean {self.measure} on {topics}, {_counts(self)}"
        else:
            start = _ahead(self, f"on {topics}, {_counts(self)}", alpha, lower_is_better)
        chances = _chances(self, lower_is_better)
        if chances:
            return f"{start}; {chances}"
        if self.corrected != self.corrected:
            return f"{start}; no p-value: {self.reason}"
        tested = f"{any_test(self.test).short} p {p_value(self.p)}"
        return f"{start}; {tested}, {correction} {bare_p(self.corrected)}" if correction else f"{start}; {tested}"

    def margin_sentence(self) -> str:
        """Whether the difference matters, in words; empty where no margin was given. A test that fails claims nothing."""
        if not isinstance(self.equivalence, Margins):
            return ""
        return _within_margin(self, self.equivalence.equivalence, self.equivalence.non_inferiority)


def _counts(pair: Pair) -> str:
    """Topics won, equal and lost by the run that is ahead."""
    up, down = _record(pair)
    return f"{up} up, {pair.ties} equal, {down} down"


def _record(pair: Pair) -> tuple[int, int]:
    return (pair.losses, pair.wins) if pair.better == "one" else (pair.wins, pair.losses)


def _ahead(pair: Pair, where: str, alpha: float, lower_is_better: bool) -> str:
    winner, loser = (pair.one, pair.other) if pair.better == "one" else (pair.other, pair.one)
    size = amount(abs(pair.difference))
    what = f"{size} {pair.measure}{' (lower is better)' if lower_is_better else ''}{_interval(pair)}"
    if not pair.corrected <= alpha:
        open_ = ", but the data do not settle it" if pair.corrected == pair.corrected else ""
        return f"{winner} is ahead of {loser} by {what} {where}{open_}"
    won, lost = _record(pair)
    if any_test(pair.test).by_order and won < lost:  # who wins was decided by the run that the mean puts behind
        return f"{winner} is ahead of {loser} by {what} in the mean {where}, but wins fewer topics than it loses"
    return f"{winner} beats {loser} by {what} {where}"


def _interval(pair: Pair) -> str:
    """The interval of a difference that is written without its sign."""
    if pair.low != pair.low:
        return ""
    low, high = (pair.low, pair.high) if pair.difference >= 0 else (-pair.high, -pair.low)
    return f" [{amount(low, pair.difference)}, {amount(high, pair.difference)}]"


def _chances(pair: Pair, lower_is_better: bool) -> str:
    """What a Bayesian test says of the run that is ahead."""
    outcome = pair.outcomes.get(pair.test)
    if outcome is None or "P(better)" not in outcome.extra:
        return ""
    higher_wins = (pair.better == "other") != lower_is_better  # P(better) is that of a higher value of other
    better, worse = outcome.extra["P(better)"], outcome.extra["P(worse)"]
    better, worse = (better, worse) if higher_wins else (worse, better)
    rope = outcome.extra["P(rope)"]
    within = f", {rope:.3f} that the difference does not matter" if rope else ""
    return (
        f"{any_test(pair.test).short}: probability {better:.3f} that it is better{within}, {worse:.3f} that it is worse"
    )


def _within_margin(pair: Pair, same: Equivalence, worse: Equivalence) -> str:
    size = f"{same.margin:g} {pair.measure}"
    both = f"{pair.other} and {pair.one}"
    if same.reason:
        return f"equivalence of {both} within {size} cannot be tested: {same.reason}"
    ends = ", ".join(amount(end, same.difference) for end in (same.low, same.high))
    where = f"{1 - 2 * same.alpha:.0%} interval [{ends}], TOST p {p_value(same.p)}"
    first = {
        "equivalent": f"{both} are equivalent within {size} ({where})",
        "different": f"{both} differ by more than {size} ({where})",
        "undecided": f"the data do not show that {both} are equivalent within {size} ({where})",
    }[same.decision]
    p = f"one-sided p {p_value(worse.p)}"
    second = {
        "superior": f"{pair.other} is not worse than {pair.one} by {size} or more ({p}); it is better",
        "not inferior": f"{pair.other} is not worse than {pair.one} by {size} or more ({p})",
        "inferior": f"{pair.other} is worse than {pair.one} by more than {size}",
        "undecided": f"the data do not rule out that {pair.other} is worse than {pair.one} by {size} or more ({p})",
    }[worse.decision]
    return f"{first}; {second}"


# where tests disagree


def disagreement(pair: Pair, alpha: float) -> str:
    """Which tests call the difference significant and which do not, and why that may be; empty where they agree."""
    tested = {name: outcome.p for name, outcome in pair.outcomes.items() if outcome.p == outcome.p}
    yes = [name for name, p in tested.items() if p <= alpha]
    no = [name for name in tested if name not in yes]
    if not yes or not no:
        return ""
    named = [", ".join(f"{any_test(name).short} {bare_p(tested[name])}" for name in names) for names in (yes, no)]
    start = f"{pair.other} and {pair.one} by {pair.measure}: the tests disagree at {alpha:g}."
    whys = _whys(pair, [*map(any_test, yes)], [*map(any_test, no)])
    return f"{start} Significant: {named[0]}; not: {named[1]}" + (f" ({'; '.join(whys)})" if whys else "")


def _whys(pair: Pair, yes: list[SignificanceTest], no: list[SignificanceTest]) -> list[str]:
    means_yes, means_no = (any(_of_pairs(one, "means") for one in side) for side in (yes, no))
    orders_yes, orders_no = (any(_of_pairs(one, "ranks", "wins") for one in side) for side in (yes, no))
    wins_no = [one for one in no if _of_pairs(one, "wins")]
    many_yes, many_no = (any(isinstance(one, TestOfMany) for one in side) for side in (yes, no))
    unpaired_no = any(isinstance(one, Test) and not one.paired for one in no)
    known_pairs_yes = any(one.paired if isinstance(one, Test) else one.name == SEEDS for one in yes)
    answer = []
    if pair.ties and wins_no and means_yes:
        answer.append(f"the {wins_no[0].short} counts wins only, and {pair.ties} equal topics say nothing to it")
    elif means_yes and orders_no:
        answer.append("a few large differences move the mean more than the ranks")
    if orders_yes and means_no:
        answer.append("many small differences go one way, and large ones the other way widen the spread of the mean")
    if unpaired_no and known_pairs_yes:
        answer.append(
            "unpaired tests do not know that both answered the same topics, which differ more than the systems"
        )
    if many_no and means_yes:
        answer.append("tests of all systems allow for the number of pairs")
    if many_yes and any(one.name == SEEDS for one in no):
        answer.append("tests of all systems know only the mean over the runs of a group, not their spread")
    if means_yes and means_no and not answer:
        answer.append("the difference lies at the edge of what these topics can show")
    return answer


def _of_pairs(one: SignificanceTest, *compared: str) -> bool:
    """Whether it tests pairs of any numbers by what is named."""
    return isinstance(one, Test) and one.paired and not one.binary and one.compares in compared

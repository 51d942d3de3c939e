"""One difference, in numbers and in plain words.

A pair holds the difference of `other` and `one` (the baseline) over the topics for which both have a value. `ahead`,
`favoured` and `better` already know whether lower is better; the difference and its interval do not, they are plain
numbers. "beats" is said only where the corrected p-value says so and the test points where the mean does. Where it does
not, the sentence never says that two systems are equal: the data may just be too few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from cranfield.columns import bare_p, p_value
from cranfield.compare.systems import SEEDS
from cranfield.stats.limits import above, below
from cranfield.stats.test import Test
from cranfield.stats.testing import TestOfMany, any_test

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.stats.equivalence import Equivalence
    from cranfield.stats.method import SignificanceTest


Side: TypeAlias = Literal["one", "other", "neither"]

# numbers


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
class Unweighted:
    """What a pair would be if all its topics counted alike; p is that of the test that decides, not corrected."""

    mean_one: float
    mean_other: float
    difference: float
    low: float
    high: float
    p: float = math.nan

    def turned(self) -> Unweighted:
        """The same seen from the other side."""
        return Unweighted(self.mean_other, self.mean_one, -self.difference, -self.high, -self.low, self.p)


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
    ahead: Side = "neither"  # by the mean, whatever the p-value
    favoured: Side = "neither"  # by what the test that decides compares: means, ranks or wins
    test: str = ""  # the test that decides for this pair: groups of runs have their own
    left_out: int = 0  # topics for which one of the two has no value
    equivalence: Any = None  # what TOST and the test of non-inferiority say (Margins), where a margin was given
    effect_low: float = math.nan  # the interval of d_z
    effect_high: float = math.nan
    weighed_by: str | None = None  # what the topics were weighed by; then all numbers but the counts are by weights
    unweighted: Unweighted | None = None
    opposite: float | None = None  # the corrected p-value of the opposite question, where the question is one-sided

    @property
    def mean_of(self) -> str:
        """What the means are of: a measure, and what it is weighed by."""
        return f"{self.measure} by {self.weighed_by}" if self.weighed_by else self.measure

    @property
    def better(self) -> Side:
        """Who is ahead by the mean; neither where the test that decides points the other way."""
        return "neither" if self.torn else self.ahead

    @property
    def torn(self) -> bool:
        """Whether the test that decides favours a run that the mean does not put ahead."""
        return self.favoured not in ("neither", self.ahead)

    @property
    def holds_zero(self) -> bool:
        """Whether the interval does not lie on one side of 0."""
        return not (above(self.low, self.high) or below(self.low, self.high))

    def settled(self, alpha: float) -> bool:
        """Whether the corrected p-value is at most alpha; where topics are weighed, the interval must leave out 0, too.

        The test permutes all topics, the interval counts effective ones: under heavy weights they can differ.
        """
        return self.corrected <= alpha and not (self.weighed_by and self.holds_zero)

    def sentence(
        self,
        correction: str = "",
        alpha: float = 0.05,
        lower_is_better: bool = False,
        *,
        doubt: str = "",
        question: str = "",
        answer: str = "",
    ) -> str:
        """The pair in plain words, from the side of the run that is ahead; `Comparison.sentence` knows what to fill in.

        `doubt` is what must be said where interval and test differ; `question` and `answer` are those of one side.
        """
        both = f"{self.other} and {self.one}"
        if self.n == 0:
            return f"{both} have no topic in common with a value of {self.measure}: nothing to compare"
        topics = f"{self.n} topic{'' if self.n == 1 else 's'}"
        if self.ties == self.n and self.n > 1:
            return f"{both} score the same {self.measure} on each of {topics}: nothing to test"
        where = f"on {topics}, {_counts(self)}"
        settled = self.settled(alpha)
        if self.ahead == "neither":
            start = f"{both} have the same mean {self.mean_of} {where}"
        else:
            start = _ahead(self, where, settled, lower_is_better)
        if settled and self.torn:
            start += (
                f", but the {any_test(self.test).short} favours {named(self, self.favoured)}: neither beats the other"
            )
        elif not settled and self.corrected == self.corrected and self.ahead != "neither" and not question:
            start += ", but the data do not settle it"
        start += doubt
        probable = chances(self, lower_is_better)
        if probable:
            return f"{start}; {probable}"
        if self.corrected != self.corrected:
            return f"{start}; no p-value: {self.reason}"
        test, p, corrected = any_test(self.test).short, self.p, self.corrected
        if question:
            test = f"{question}? {answer}: {test} one-sided"
        if answer == "no" and self.opposite is not None:
            by = f" ({correction})" if correction else ""
            return f"{start}; {test} p {p_value(p)}, of the opposite {bare_p(self.opposite)}{by}"
        tested = f"{test} p {p_value(p)}"
        return f"{start}; {tested}, {correction} {bare_p(corrected)}" if correction else f"{start}; {tested}"

    def turned(self) -> Pair:
        """The same seen from the other side; what each test said stays as it was."""
        sides: dict[Side, Side] = {"one": "other", "other": "one", "neither": "neither"}
        return replace(
            self,
            one=self.other,
            other=self.one,
            mean_one=self.mean_other,
            mean_other=self.mean_one,
            difference=0.0 - self.difference,
            low=0.0 - self.high,
            high=0.0 - self.low,
            effect=0.0 - self.effect,
            effect_low=0.0 - self.effect_high,
            effect_high=0.0 - self.effect_low,
            wins=self.losses,
            losses=self.wins,
            ahead=sides[self.ahead],
            favoured=sides[self.favoured],
            unweighted=None if self.unweighted is None else self.unweighted.turned(),
        )

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
    return (pair.losses, pair.wins) if pair.ahead == "one" else (pair.wins, pair.losses)


def named(pair: Pair, side: Side) -> str:
    """The run on a side."""
    return pair.one if side == "one" else pair.other


def _ahead(pair: Pair, where: str, settled: bool, lower_is_better: bool) -> str:
    winner, loser = (pair.one, pair.other) if pair.ahead == "one" else (pair.other, pair.one)
    size = amount(abs(pair.difference))
    what = f"{size} {pair.mean_of}{' (lower is better)' if lower_is_better else ''}{_interval(pair)}"
    if settled and not pair.torn:
        return f"{winner} beats {loser} by {what} {where}"
    return f"{winner} is ahead of {loser} by {what}{' in the mean' if settled else ''} {where}"


def _interval(pair: Pair) -> str:
    """The interval of a difference that is written without its sign."""
    if pair.low != pair.low:
        return ""
    low, high = (pair.low, pair.high) if pair.difference >= 0 else (-pair.high, -pair.low)
    if math.isinf(low) and math.isinf(high):
        return " [no bound]"
    if math.isinf(high):
        return f" [{amount(low, pair.difference)} or more]"
    if math.isinf(low):
        return f" [{amount(high, pair.difference)} or less]"
    return f" [{amount(low, pair.difference)}, {amount(high, pair.difference)}]"


def chances(pair: Pair, lower_is_better: bool) -> str:
    """What a Bayesian test says of the run that is ahead; empty where another test decides."""
    outcome = pair.outcomes.get(pair.test)
    if outcome is None or "P(better)" not in outcome.extra:
        return ""
    higher_wins = (pair.ahead == "other") != lower_is_better  # P(better) is that of a higher value of other
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
        return _opposed(pair, yes, alpha)
    named = [", ".join(f"{any_test(name).short} {bare_p(tested[name])}" for name in names) for names in (yes, no)]
    start = f"{pair.other} and {pair.one} by {pair.measure}: the tests disagree at {alpha:g}."
    whys = _whys(pair, [*map(any_test, yes)], [*map(any_test, no)])
    return f"{start} Significant: {named[0]}; not: {named[1]}" + (f" ({'; '.join(whys)})" if whys else "")


def _opposed(pair: Pair, yes: list[str], alpha: float) -> str:
    """Which of the tests that all call it significant point up, and which down; empty where they point one way."""
    up, down = ([any_test(name).short for name in yes if pair.outcomes[name].direction == way] for way in (1, -1))
    if not up or not down:
        return ""
    start = f"{pair.other} and {pair.one} by {pair.measure}: the tests point apart at {alpha:g}."
    return f"{start} {pair.other} scores higher: {', '.join(up)}; lower: {', '.join(down)}"


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

"""One difference between two systems, in numbers and as a sentence.

A pair holds the difference `other` − `one` (the baseline) over the topics for which both have a value. `ahead`,
`favoured` and `better` take into account whether lower is better; the difference and its interval are plain numbers.
A sentence says "beats" only if the corrected p-value is significant and the test favours the run with the better mean.
Otherwise it never says that two systems are equal: there may be too little data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from cranfield.base.text_layout import bare_p, p_value
from cranfield.comparison.score_tables import SEEDS
from cranfield.stats.interval_limits import above, below
from cranfield.stats.tests_by_name import TestOfMany, any_test
from cranfield.stats.two_sample_test import Test

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.stats.equivalence import Equivalence
    from cranfield.stats.method import SignificanceTest


Side: TypeAlias = Literal["one", "other", "neither"]

# numbers


def amount(value: float, like: float | None = None) -> str:
    """A number with three decimals, or with as many as a small number (or `like`) needs for two significant digits.

    >>> amount(0.0417), amount(0.000417), amount(-0.01, like=0.0004)
    ('0.042', '0.00042', '-0.01000')
    """
    size = abs(value if like is None else like)
    needed = 1 - math.floor(math.log10(size)) if 0 < size < 1 else 0
    text = f"{value:.{max(3, min(needed, 8))}f}"
    return text.removeprefix("-") if float(text) == 0 else text


# the pair


@dataclass(frozen=True)
class Margins:
    """Equivalence and non-inferiority: is a difference too small to matter? Non-inferiority concerns `other`.

    The margin must be chosen in advance. Both are one-sided t-tests against the margin (for groups of runs, over topics
    and seeds). They answer another question than the pair's p-value, so they are not part of its correction.
    """

    equivalence: Equivalence
    non_inferiority: Equivalence


@dataclass(frozen=True)
class Unweighted:
    """The numbers of a pair without weights; p belongs to the deciding test and is not corrected."""

    mean_one: float
    mean_other: float
    difference: float
    low: float
    high: float
    p: float = math.nan

    def turned(self) -> Unweighted:
        """The same with both runs exchanged."""
        return Unweighted(self.mean_other, self.mean_one, -self.difference, -self.high, -self.low, self.p)


class Claim(NamedTuple):
    """The claim about a pair in three parts; claims with the same start and end can share a line."""

    start: str
    what: str
    end: str


@dataclass(frozen=True)
class RunPair:
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
    p: float = math.nan  # of the deciding test; NaN with a `reason`
    corrected: float = math.nan
    outcomes: Mapping[str, Any] = field(default_factory=dict)  # the results of all tests, by name
    reason: str = ""
    ahead: Side = "neither"  # by the mean, regardless of the p-value
    favoured: Side = "neither"  # by the statistic of the deciding test: means, ranks or wins
    test: str = ""  # the deciding test of this pair; groups of runs have their own
    left_out: int = 0  # topics for which one of the runs has no value
    equivalence: Any = None  # results of TOST and the non-inferiority test (Margins), if there is a margin
    effect_low: float = math.nan  # the interval of d_z
    effect_high: float = math.nan
    weighed_by: str | None = None  # name of the topic weights; then all numbers except counts are weighted
    unweighted: Unweighted | None = None
    opposite: float | None = None  # the corrected p-value of the opposite one-sided question

    @property
    def mean_of(self) -> str:
        """The measure, and the name of the weights if there are any."""
        return f"{self.measure} by {self.weighed_by}" if self.weighed_by else self.measure

    @property
    def better(self) -> Side:
        """The side with the better mean; neither if the deciding test favours the other side."""
        return "neither" if self.contradictory else self.ahead

    @property
    def contradictory(self) -> bool:
        """Whether the deciding test favours a run that does not have the better mean."""
        return self.favoured not in ("neither", self.ahead)

    @property
    def holds_zero(self) -> bool:
        """Whether the interval contains 0."""
        return not (above(self.low, self.high) or below(self.low, self.high))

    def settled(self, alpha: float) -> bool:
        """Whether the corrected p-value is at most alpha; with weights, the interval must exclude 0 as well.

        The test permutes all topics; the interval is based on the effective number. Heavy weights can make them differ.
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
        """The sentence about the pair, with the run that is ahead as its subject; see `Comparison.sentence`.

        `doubt` explains a disagreement of interval and test; `question` and `answer` belong to a one-sided test.
        """
        p = "" if self.corrected != self.corrected else self._p_in_words(correction, question, answer)
        topics = f"{self.n} topic{'' if self.n == 1 else 's'}"
        start, what, end = self.claim(
            alpha, lower_is_better, topics, doubt=doubt, answer=answer, conclusion=p, detailed=True
        )
        return f"{start} {what}{end}"

    def _p_in_words(self, correction: str, question: str, answer: str) -> str:
        """The end of the sentence: the test, its p-value and the corrected one."""
        test, by = any_test(self.test).short, f" ({correction})" if correction else ""
        if question:
            test = f"{question}? {answer}: {test} one-sided"
        tested = f"; {test} p {p_value(self.p)}"
        if answer == "no" and self.opposite is not None:
            return f"{tested}, of the opposite {bare_p(self.opposite)}{by}"
        return f"{tested}, {correction} {bare_p(self.corrected)}" if correction else tested

    def claim(
        self,
        alpha: float,
        lower_is_better: bool,
        topics: str,
        *,
        doubt: str = "",
        answer: str = "",
        conclusion: str = "",
        detailed: bool = False,
    ) -> Claim:
        """The claim about the pair. `topics` is their number in words, `conclusion` the end if there is a p-value.

        With `detailed`, the claim states the interval and how many topics each run won.
        """
        both, settled = f"{self.other} and {self.one}", self.settled(alpha)
        if self.n == 0:
            return Claim(f"{both} have no topic in common with a value of", self.measure, ": nothing to compare")
        if self.ties == self.n and self.n > 1:
            return Claim(f"{both} score the same", self.measure, f" on each of {topics}: nothing to test")
        up, down = (self.losses, self.wins) if self.ahead == "one" else (self.wins, self.losses)
        end = f" on {topics}" + (f", {up} up, {self.ties} equal, {down} down" if detailed else "")
        if settled and self.contradictory:
            end += f", but the {any_test(self.test).short} favours {run_on_side(self, self.favoured)}: neither beats the other"
        elif not settled and self.corrected == self.corrected and self.ahead != "neither" and not answer:
            end += ", but the data do not settle it"
        undefined = f"; no p-value: {self.reason}" if self.corrected != self.corrected else ""
        probable = probabilities(self, lower_is_better)
        end += doubt + (f"; {probable}" if probable else undefined or conclusion)
        if self.ahead == "neither":
            return Claim(f"{both} have the same mean", self.mean_of, end)
        winner, loser = (self.one, self.other) if self.ahead == "one" else (self.other, self.one)
        what = f"{amount(abs(self.difference))} {self.mean_of}{' (lower is better)' if lower_is_better else ''}"
        what += _interval(self) if detailed else ""
        if settled and not self.contradictory:
            return Claim(f"{winner} beats {loser} by", what, end)
        return Claim(f"{winner} is ahead of {loser} by", what, f"{' in the mean' if settled else ''}{end}")

    def turned(self) -> RunPair:
        """The same pair with both runs exchanged; the outcomes of the tests do not change."""
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
        """The sentence about equivalence and non-inferiority; empty if there is no margin."""
        if not isinstance(self.equivalence, Margins):
            return ""
        return _within_margin(self, self.equivalence.equivalence, self.equivalence.non_inferiority)


def run_on_side(pair: RunPair, side: Side) -> str:
    """The name of the run on a side."""
    return pair.one if side == "one" else pair.other


def _interval(pair: RunPair) -> str:
    """The interval of a difference that is printed without its sign."""
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


def better_and_worse(outcome: Any, higher_wins: bool) -> tuple[float, float] | None:
    """The probabilities of a Bayesian test, which are those of higher and lower values, as better and worse; else None."""
    if "P(better)" not in outcome.extra:
        return None
    higher, lower = outcome.extra["P(better)"], outcome.extra["P(worse)"]
    return (higher, lower) if higher_wins else (lower, higher)


def probabilities(pair: RunPair, lower_is_better: bool) -> str:
    """The probabilities of a Bayesian test for the run that is ahead; empty if another test decides."""
    outcome = pair.outcomes.get(pair.test)
    chances = None if outcome is None else better_and_worse(outcome, (pair.ahead == "other") != lower_is_better)
    if outcome is None or chances is None:
        return ""
    (better, worse), rope = chances, outcome.extra["P(rope)"]
    within = f", {rope:.3f} that the difference does not matter" if rope else ""
    name = any_test(pair.test).short
    return f"{name}: probability {better:.3f} that it is better{within}, {worse:.3f} that it is worse"


def _within_margin(pair: RunPair, same: Equivalence, worse: Equivalence) -> str:
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


def disagreement(pair: RunPair, alpha: float) -> str:
    """Which tests find the difference significant, which do not, and a likely reason; empty if all agree."""
    tested = {name: outcome.p for name, outcome in pair.outcomes.items() if outcome.p == outcome.p}
    yes = [name for name, p in tested.items() if p <= alpha]
    no = [name for name in tested if name not in yes]
    if not yes or not no:
        return _opposed(pair, yes, alpha)
    groups = [", ".join(f"{any_test(name).short} {bare_p(tested[name])}" for name in names) for names in (yes, no)]
    start = f"{pair.other} and {pair.one} by {pair.measure}: the tests disagree at {alpha:g}."
    whys = _whys(pair, [*map(any_test, yes)], [*map(any_test, no)])
    return f"{start} Significant: {groups[0]}; not: {groups[1]}" + (f" ({'; '.join(whys)})" if whys else "")


def _opposed(pair: RunPair, yes: list[str], alpha: float) -> str:
    """Which of the significant tests favour which direction; empty if they agree."""
    up, down = ([any_test(name).short for name in yes if pair.outcomes[name].direction == way] for way in (1, -1))
    if not up or not down:
        return ""
    start = f"{pair.other} and {pair.one} by {pair.measure}: the tests disagree about the direction at {alpha:g}."
    return f"{start} {pair.other} scores higher: {', '.join(up)}; lower: {', '.join(down)}"


def _whys(pair: RunPair, yes: list[SignificanceTest], no: list[SignificanceTest]) -> list[str]:
    means_yes, means_no = (any(_of_pairs(one, "means") for one in side) for side in (yes, no))
    orders_yes, orders_no = (any(_of_pairs(one, "ranks", "wins") for one in side) for side in (yes, no))
    wins_no = [one for one in no if _of_pairs(one, "wins")]
    many_yes, many_no = (any(isinstance(one, TestOfMany) for one in side) for side in (yes, no))
    unpaired_no = any(isinstance(one, Test) and not one.paired for one in no)
    known_pairs_yes = any(one.paired if isinstance(one, Test) else one.name == SEEDS for one in yes)
    answer = []
    if pair.ties and wins_no and means_yes:
        answer.append(f"the {wins_no[0].short} counts wins only and ignores {pair.ties} equal topics")
    elif means_yes and orders_no:
        answer.append("a few large differences move the mean more than the ranks")
    if orders_yes and means_no:
        answer.append("many small differences go one way, and large ones the other way widen the spread of the mean")
    if unpaired_no and known_pairs_yes:
        answer.append(
            "unpaired tests ignore that both systems answered the same topics, which differ more than the systems"
        )
    if many_no and means_yes:
        answer.append("tests of all systems allow for the number of pairs")
    if many_yes and any(one.name == SEEDS for one in no):
        answer.append("tests of all systems know only the mean over the runs of a group, not their spread")
    if means_yes and means_no and not answer:
        answer.append("the p-values lie close to the significance level")
    return answer


def _of_pairs(one: SignificanceTest, *compared: str) -> bool:
    """Whether this is a paired test for numbers that compares the named statistics."""
    return isinstance(one, Test) and one.paired and not one.binary and one.compares in compared

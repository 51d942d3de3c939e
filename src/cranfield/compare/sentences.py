"""A difference in one plain sentence.

"beats" is said only where the corrected p-value says so. Where it does not, the sentence never says that two systems are
equal: the data may just be too few.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cranfield.compare.groups import SEEDS
from cranfield.stats.test import Test
from cranfield.stats.testing import TestOfMany, any_test

if TYPE_CHECKING:
    from cranfield.compare.comparison import Pair
    from cranfield.stats.method import SignificanceTest


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


def amount(value: float, like: float | None = None, digits: int = 3) -> str:
    """A number with so many decimals, or with as many as a small one (or `like`) needs to show two figures.

    >>> amount(0.0417), amount(0.000417), amount(-0.01, like=0.0004)
    ('0.042', '0.00042', '-0.01000')
    """
    size = abs(value if like is None else like)
    needed = 1 - math.floor(math.log10(size)) if 0 < size < 1 else 0
    text = f"{value:.{max(digits, min(needed, 8))}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def in_words(pair: Pair, correction: str, alpha: float, *, lower_is_better: bool = False) -> str:
    """The pair as a sentence, from the side of the run that is ahead. No correction is named where it is empty."""
    if pair.n == 0:
        return f"{pair.other} and {pair.one} have no topic in common with a value of {pair.measure}: nothing to compare"
    if pair.ties == pair.n and pair.n > 1:
        return (
            f"{pair.other} and {pair.one} score the same {pair.measure} on each of {_topics(pair.n)}: nothing to test"
        )
    if pair.better == "neither":
        start = f"{pair.other} and {pair.one} have the same mean {pair.measure} on {_topics(pair.n)}, {_counts(pair, False)}"
    else:
        start = _ahead(pair, alpha, lower_is_better)
    chances = _chances(pair, lower_is_better)
    if chances:
        return f"{start}; {chances}"
    if pair.corrected != pair.corrected:
        return f"{start}; no p-value: {pair.reason}"
    return f"{start}; {_tested(pair, correction)}"


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


def _ahead(pair: Pair, alpha: float, lower_is_better: bool) -> str:
    turned = pair.better == "one"
    winner, loser = (pair.one, pair.other) if turned else (pair.other, pair.one)
    size = amount(abs(pair.difference))
    what = f"{size} {pair.measure}{' (lower is better)' if lower_is_better else ''}{_interval(pair)}"
    where = f"on {_topics(pair.n)}, {_counts(pair, turned)}"
    if pair.corrected <= alpha and _against(pair, turned):
        return f"{winner} is ahead of {loser} by {what} in the mean {where}, but wins fewer topics than it loses"
    if pair.corrected <= alpha:
        return f"{winner} beats {loser} by {what} {where}"
    if pair.corrected != pair.corrected:
        return f"{winner} is ahead of {loser} by {what} {where}"
    return f"{winner} is ahead of {loser} by {what} {where}, but the data do not settle it"


def _against(pair: Pair, turned: bool) -> bool:
    """Whether a test of who wins was decided by the run that the mean puts behind."""
    won, lost = (pair.losses, pair.wins) if turned else (pair.wins, pair.losses)
    return any_test(pair.test).by_order and won < lost


def _interval(pair: Pair) -> str:
    """The interval of a difference that is written without its sign."""
    if pair.low != pair.low:
        return ""
    low, high = (pair.low, pair.high) if pair.difference >= 0 else (-pair.high, -pair.low)
    return f" [{amount(low, pair.difference)}, {amount(high, pair.difference)}]"


def _counts(pair: Pair, turned: bool) -> str:
    up, down = (pair.losses, pair.wins) if turned else (pair.wins, pair.losses)
    return f"{up} up, {pair.ties} equal, {down} down"


def _topics(n: int) -> str:
    return f"{n} topic{'' if n == 1 else 's'}"


def _tested(pair: Pair, correction: str) -> str:
    text = f"{any_test(pair.test).short} p {p_value(pair.p)}"
    if not correction:
        return text
    return f"{text}, {correction} {p_value(pair.corrected).removeprefix('= ')}"


# where tests disagree


def disagreement(pair: Pair, alpha: float) -> str:
    """Which tests call the difference significant and which do not, and why that may be; empty where they agree."""
    tested = {name: outcome.p for name, outcome in pair.outcomes.items() if outcome.p == outcome.p}
    yes = [name for name, p in tested.items() if p <= alpha]
    no = [name for name in tested if name not in yes]
    if not yes or not no:
        return ""
    said = f"{pair.other} and {pair.one} by {pair.measure}: the tests disagree at {alpha:g}. Significant: {_named(yes, tested)}"
    whys = _whys(pair, [*map(any_test, yes)], [*map(any_test, no)])
    return f"{said}; not: {_named(no, tested)}" + (f" ({'; '.join(whys)})" if whys else "")


def _named(names: list[str], p: dict[str, float]) -> str:
    return ", ".join(f"{any_test(name).short} {p_value(p[name]).removeprefix('= ')}" for name in names)


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

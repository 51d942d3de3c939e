"""Equivalence and non-inferiority: is a difference too small to matter?

The margin is chosen before looking. Both tests are one-sided t-tests against it; for groups of runs they are the tests
of topics and seeds at once. They answer another question than the p-value of a pair, and are not corrected with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cranfield.compare.groups import SEEDS
from cranfield.compare.sentences import amount, p_value

if TYPE_CHECKING:
    from cranfield.compare.comparison import Comparison, Pair
    from cranfield.compare.outcomes import Asked
    from cranfield.kernels.table import Floats
    from cranfield.stats.equivalence import Equivalence


@dataclass(frozen=True)
class Margins:
    """What both tests say; non-inferiority is that of `other`, whichever direction is better."""

    equivalence: Equivalence
    non_inferiority: Equivalence


def equivalence(found: Comparison, pair: Pair, given: Asked) -> Margins | None:
    """Test a pair against the margin; None where it has no differences to test."""
    if not given.margin or pair.n < 1 or (pair.reason and pair.low != pair.low):
        return None
    a, b = (found.table(name, pair.measure) for name in (pair.one, pair.other))
    there = ~(np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1))
    a, b = a[there], b[there]
    turn = -1.0 if found.lower_is_better(pair.measure) else 1.0
    if pair.test == SEEDS:
        return Margins(
            _over_seeds("equivalence", a, b, given), _over_seeds("non-inferiority", turn * a, turn * b, given)
        )
    from cranfield.stats.equivalence import non_inferiority, tost

    one, other = a.mean(axis=1), b.mean(axis=1)
    margin, alpha = given.margin, given.alpha
    return Margins(
        tost(one, other, margin, alpha=alpha), non_inferiority(turn * one, turn * other, margin, alpha=alpha)
    )


def _over_seeds(kind: str, a: Floats, b: Floats, given: Asked) -> Equivalence:
    """The same with topic and seed variance: the difference moved by the margin, tested to one side."""
    from cranfield.stats.equivalence import Equivalence
    from cranfield.stats.replicates import crossed_difference

    margin, alpha = given.margin or 0.0, given.alpha
    within = crossed_difference(a, b, 1 - 2 * alpha)
    p_above = crossed_difference(a, b + margin, alternative="greater").p
    p_below = crossed_difference(a, b - margin, alternative="less").p
    p = max(p_above, p_below) if kind == "equivalence" else p_above
    shown = p <= alpha
    if kind == "equivalence":
        decision = (
            "equivalent" if shown else "different" if within.low > margin or within.high < -margin else "undecided"
        )
    elif shown:
        decision = "superior" if within.low > 0 else "not inferior"
    else:
        decision = "inferior" if within.high < -margin else "undecided"
    numbers = (margin, alpha, len(a), within.difference, within.low, within.high, p_above, p_below, p)
    return Equivalence(kind, *numbers, shown, decision, within.reason if p != p else "")


def in_words(pair: Pair) -> str:
    """What both tests say, in two sentences; where a test fails it claims nothing."""
    if not isinstance(pair.equivalence, Margins):
        return ""
    same, worse = pair.equivalence.equivalence, pair.equivalence.non_inferiority
    size = f"{same.margin:g} {pair.measure}"
    if same.reason:
        return f"equivalence of {pair.other} and {pair.one} within {size} cannot be tested: {same.reason}"
    ends = ", ".join(amount(end, same.difference) for end in (same.low, same.high))
    where = f"{1 - 2 * same.alpha:.0%} interval [{ends}], TOST p {p_value(same.p)}"
    first = {
        "equivalent": f"{pair.other} and {pair.one} are equivalent within {size} ({where})",
        "different": f"{pair.other} and {pair.one} differ by more than {size} ({where})",
        "undecided": f"the data do not show that {pair.other} and {pair.one} are equivalent within {size} ({where})",
    }[same.decision]
    p = f"one-sided p {p_value(worse.p)}"
    second = {
        "superior": f"{pair.other} is not worse than {pair.one} by {size} or more ({p}); it is better",
        "not inferior": f"{pair.other} is not worse than {pair.one} by {size} or more ({p})",
        "inferior": f"{pair.other} is worse than {pair.one} by more than {size}",
        "undecided": f"the data do not rule out that {pair.other} is worse than {pair.one} by {size} or more ({p})",
    }[worse.decision]
    return f"{first}; {second}"

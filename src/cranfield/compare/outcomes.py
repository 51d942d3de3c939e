"""Every test that was asked for, on many pairs at once.

The random signs and resamples come from the seed alone, so a pair has the same p-value alone and among thousands. The
randomisation test's own interval costs far more than its p-value; it is left out where nobody would see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cranfield.errors import ConventionError, DataError
from cranfield.stats.correction import CORRECTIONS, correction
from cranfield.stats.test import Question
from cranfield.stats.testing import TESTS, TESTS_OF_MANY, TestOfMany, find_test, test
from cranfield.stats.testing import intervals as interval_tests

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.kernels.table import Floats
    from cranfield.stats.test import Alternative, Outcome, Test


ALTERNATIVES = ("two-sided", "greater", "less", "better", "worse")
USUAL = "randomisation"
DRAWN, MOST_DRAWN = 100_000, 1_000_000


def enough_resamples(pairs: int, alpha: float, correction: str) -> int:
    """As many as usual, or so many that a p-value can still be significant after it was corrected.

    >>> enough_resamples(3, 0.05, "holm"), enough_resamples(5995, 0.05, "holm"), enough_resamples(5995, 0.05, "none")
    (100000, 300000, 100000)
    """
    if not CORRECTIONS[correction].corrects or not 0 < alpha < 1:
        return DRAWN
    return min(max(DRAWN, round_up(2 * pairs / alpha)), MOST_DRAWN)


def round_up(number: float) -> int:
    """To one figure: 239,800 becomes 300,000."""
    size = 10 ** max(0, len(str(int(number))) - 1)
    return int(-(-number // size) * size)


@dataclass(frozen=True)
class Asked:
    """What was asked for, checked."""

    tests: tuple[str, ...]  # of two samples
    many: tuple[str, ...]  # of all systems at once
    deciding: str
    everything: bool  # --test all: tests that do not fit the data are passed over
    correction: str
    alpha: float
    level: float
    interval: str
    resamples: int
    seed: int
    alternative: str
    rope: float | None
    margin: float | None

    @property
    def shown(self) -> list[str]:
        """All tests, the one that decides first."""
        return list(dict.fromkeys([self.deciding, *self.tests, *self.many]))


def asked(tests: str | Iterable[str], corrected_by: str, systems: int, **numbers: Any) -> Asked:
    """Check what was asked for; names may be aliases, `all` means every test."""
    names = tests.replace(",", " ").split() if isinstance(tests, str) else [*tests]
    if not names:
        raise ConventionError("no test given; try randomisation, or all")
    everything = "all" in names
    pairwise: list[str] = []
    many: list[str] = []
    order: list[str] = []
    for name in names:
        if name == "all":
            pairwise += TESTS
            many += [each for each in TESTS_OF_MANY if systems > 2]
            continue
        chosen = _test(name)
        if isinstance(chosen, TestOfMany):
            many += chosen.with_it
            order.append(chosen.of_pairs.name)
        else:
            pairwise.append(str(chosen))
            order.append(str(chosen))
    given = Asked(
        tests=tuple(dict.fromkeys(pairwise)),
        many=tuple(dict.fromkeys(many)),
        deciding=order[0] if order else USUAL,
        everything=everything,
        correction=_correction(corrected_by),
        **numbers,
    )
    _refuse(given)
    return given


def _test(name: str) -> Test | TestOfMany:
    try:
        return find_test(name)
    except DataError as error:
        raise ConventionError(str(error).replace("there are ", "there are all, ")) from None


def _correction(name: str) -> str:
    try:
        return correction(name).name
    except DataError as error:
        raise ConventionError(str(error)) from None


def _refuse(given: Asked) -> None:
    for name, value in (("alpha", given.alpha), ("level", given.level)):
        if not 0 < value < 1:
            raise ConventionError(f"{name} must be between 0 and 1, ends excluded, got {value}")
    if given.interval not in interval_tests():
        raise ConventionError(f"interval must be one of {', '.join(interval_tests())}, got {given.interval!r}")
    if given.alternative not in ALTERNATIVES:
        raise ConventionError(f"alternative must be one of {', '.join(ALTERNATIVES)}, got {given.alternative!r}")
    if given.resamples < 1:
        raise ConventionError(f"resamples must be 1 or more, got {given.resamples}")
    if given.seed < 0:
        raise ConventionError(f"seed must be 0 or more, got {given.seed}")
    for name, size in (("rope", given.rope), ("margin", given.margin)):
        if size is not None and not 0 < size < np.inf:
            raise ConventionError(f"{name} must be above 0, got {size}")
    if given.deciding in TESTS_OF_MANY and given.alternative != "two-sided":
        raise ConventionError(
            f"{given.deciding} looks at all systems at once and is two-sided; got {given.alternative}"
        )


def direction(alternative: str, lower_is_better: bool) -> Alternative:
    """`better` and `worse` in the words of a test: greater, or less where lower is better."""
    if alternative in ("better", "worse"):
        return "greater" if (alternative == "better") != lower_is_better else "less"
    return cast("Alternative", alternative)


def outcomes(a: Floats, b: Floats, given: Asked, lower_is_better: bool) -> list[dict[str, Outcome]]:
    """For each row of `a` (baseline) and `b`, what each test says."""
    if not len(a):
        return []
    binary = bool(np.isin(a, (0.0, 1.0)).all() and np.isin(b, (0.0, 1.0)).all())
    tests = {name: with_rope(test(name), given.rope) for name in given.tests}
    if given.everything and not binary:
        tests = {name: one for name, one in tests.items() if not one.binary}
    turn = direction(given.alternative, lower_is_better)
    columns = {}
    for name, one in tests.items():
        question = Question(turn, given.level, given.resamples, np.random.default_rng(given.seed))
        columns[name] = (one.without_interval if len(tests) == 1 else one.outcomes)(a, b, question)
    return [{name: column[row] for name, column in columns.items()} for row in range(len(a))]


def with_rope(one: Test, rope: float | None) -> Test:
    """A test with the region that does not matter, if it knows one and was given no parameters of its own."""
    return one.given(rope=rope) if rope is not None and "rope" in one.parameters and not one.changed() else one


def intervals(a: Floats, b: Floats, given: Asked) -> tuple[Floats, Floats]:
    """The two-sided interval of each row's mean difference, by the method asked for; NaN where there is none."""
    found = interval_tests()[given.interval].many(
        a, b, level=given.level, resamples=given.resamples, rng=np.random.default_rng(given.seed)
    )
    return np.array([each.low for each in found]), np.array([each.high for each in found])

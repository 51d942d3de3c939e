"""How a comparison is made: which tests, which correction, which levels, and where chance starts; checked when read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from cranfield.errors import ConventionError, DataError
from cranfield.parameters import LARGEST_SCORE, refuse_below
from cranfield.stats.correction import CORRECTIONS, Correction, correction
from cranfield.stats.test import Alternative, Question
from cranfield.stats.testing import TESTS, TESTS_OF_MANY, Test, TestOfMany, find_test, intervals, test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from cranfield.stats.method import SignificanceTest


T = TypeVar("T")
ALTERNATIVES = ("two-sided", "greater", "less", "better", "worse")
OPPOSITES: dict[str, Alternative] = {"greater": "less", "less": "greater"}
DEFAULT_TEST = "randomisation"
DEFAULT_RESAMPLES, MOST_RESAMPLES = 100_000, 1_000_000


def words(typed: str | Iterable[str]) -> list[str]:
    """Names one by one, or in one text with blanks or commas between.

    >>> words("t, sign"), words(["t"])
    (['t', 'sign'], ['t'])
    """
    return typed.replace(",", " ").split() if isinstance(typed, str) else list(typed)


def refuse_shares(**shares: float) -> None:
    """Stop at a number that does not lie between 0 and 1."""
    for name, share in shares.items():
        if not 0 < share < 1:
            raise ConventionError(f"{name} must lie between 0 and 1, got {share:g}")


def refuse_nothing(**sizes: float | None) -> None:
    """Stop at a size that is given and not above 0, or without end."""
    for name, size in sizes.items():
        if size is not None and not 0 < size < np.inf:
            raise ConventionError(f"{name} must be above 0, got {size:g}")


def refuse_extremes(**sizes: float | None) -> None:
    """Stop at a size that is given and not above 0, or whose square is 0 or without end."""
    refuse_nothing(**sizes)
    for name, size in sizes.items():
        if size is not None and not 1 / LARGEST_SCORE <= size <= LARGEST_SCORE:
            raise ConventionError(f"{name} must be between {1 / LARGEST_SCORE:g} and {LARGEST_SCORE:g}, got {size:g}")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What was asked for, checked."""

    pairwise: tuple[str, ...]  # tests of two systems, as they were asked for
    at_once: tuple[str, ...]  # tests of all systems at once
    test: str  # the one that decides
    everything: bool  # all tests were asked for: those that do not fit the data are passed over
    correction: str
    alpha: float
    level: float = 0.95
    interval: str = "t"
    resamples: int
    seed: int
    alternative: str = "two-sided"
    rope: float | None = None
    margin: float | None = None
    simultaneous: bool = False  # whether the intervals hold together, as the correction does

    @property
    def one_sided(self) -> bool:
        """Whether one side is asked for."""
        return self.alternative != "two-sided"

    @property
    def usual(self) -> bool:
        """Whether nothing was asked for but what is asked if nothing is said; more resamples for more pairs are usual."""
        numbers = self.alpha, self.level, self.interval, self.seed, self.rope, self.margin
        asked = self.tests, self.correction, self.alternative, self.simultaneous
        return (
            numbers == (0.05, 0.95, "t", 0, None, None)
            and asked == ([DEFAULT_TEST], "holm", "two-sided", False)
            and self.resamples >= DEFAULT_RESAMPLES
        )

    @property
    def tests(self) -> list[str]:
        """All tests, the one that decides first."""
        return list(dict.fromkeys([self.test, *self.pairwise, *self.at_once]))

    @property
    def decided_at_once(self) -> bool:
        """Whether the test that decides looks at all systems, so that its p-values allow for their number."""
        return self.test in TESTS_OF_MANY

    def paired_tests(self, binary: bool) -> dict[str, Test]:
        """The tests of two systems; of those that only fit successes and failures, the ones that were asked for."""
        chosen = {name: _with_rope(test(name), self.rope) for name in self.pairwise}
        return {name: one for name, one in chosen.items() if binary or not (self.everything and one.binary)}

    def direction(self, lower_is_better: bool) -> Alternative:
        """`better` and `worse` in the words of a test: greater, or less where lower is better."""
        if self.alternative in ("better", "worse"):
            return "greater" if (self.alternative == "better") != lower_is_better else "less"
        return cast("Alternative", self.alternative)

    def question(
        self, lower_is_better: bool, opposite: bool = False, weights: npt.NDArray[np.float64] | None = None
    ) -> Question:
        """What a test is asked, or the opposite of a one-sided question, with its chance as it starts for every pair."""
        direction = self.direction(lower_is_better)
        direction = OPPOSITES.get(direction, direction) if opposite else direction
        return Question(direction, self.level, self.resamples, np.random.default_rng(self.seed), weights)


def _with_rope(one: Test, rope: float | None) -> Test:
    """A test with the region that does not matter, if it knows one and was given no parameters of its own."""
    return one.given(rope=rope) if rope is not None and "rope" in one.parameters and not one.changed() else one


def read_settings(
    tests: str | Iterable[str],
    corrected_by: str,
    resamples: int | None,
    *,
    systems: int,
    p_values: int,
    weighed_by: str = "",
    **numbers: Any,
) -> Settings:
    """Check what was asked for; names may be aliases, `all` means every test, or of weighed topics every one that knows weights.

    Where no number of resamples is given, there are as many as so many p-values need to be significant after correction.
    """
    names = words(tests)
    if not names:
        raise ConventionError("no test given; try randomisation, or all")
    every = [*TESTS.values(), *(TESTS_OF_MANY.values() if systems > 2 else ())]
    every = [one for one in every if one.weighable or not weighed_by]
    chosen = [one for name in names for one in (every if name == "all" else [_named(find_test, name, "all, ")])]
    if weighed_by:
        refuse_unweighable(chosen, weighed_by)
    pairwise = list(dict.fromkeys(str(one) for one in chosen if isinstance(one, Test)))
    at_once = dict.fromkeys(name for one in chosen if isinstance(one, TestOfMany) for name in one.with_it)
    deciding = find_test(next((name for name in names if name != "all"), DEFAULT_TEST))
    corrected_by = named_correction(corrected_by).name
    if resamples is None:
        alone = pairwise[0] if len(pairwise) == 1 else ""  # with other tests beside it that would take too long
        shared = alone in TESTS and TESTS[alone].shares_draws
        resamples = enough_resamples(p_values, numbers["alpha"], corrected_by) if shared else DEFAULT_RESAMPLES
    settings = Settings(
        pairwise=tuple(pairwise),
        at_once=tuple(at_once),
        test=deciding.of_pairs.name if isinstance(deciding, TestOfMany) else str(deciding),
        everything="all" in names,
        correction=corrected_by,
        resamples=resamples,
        **numbers,
    )
    _refuse(settings)
    if weighed_by and settings.margin is not None:
        raise ConventionError(
            f"margin: equivalence and non-inferiority are not tested of topics weighed by {weighed_by}; leave one of the two out"
        )
    return settings


def refuse_unweighable(tests: Iterable[SignificanceTest], weighed_by: str) -> None:
    """Stop at a test that knows no weights."""
    for one in tests:
        if not one.weighable:
            able = ", ".join(name for name, known in TESTS.items() if known.weighable)
            raise ConventionError(
                f"{one.name} knows no weights, and topics are weighed by {weighed_by}; tests that know them are {able}"
            )


def enough_resamples(p_values: int, alpha: float, corrected_by: str) -> int:
    """As many as usual, or so many that a p-value can still be significant after it was corrected.

    >>> enough_resamples(3, 0.05, "holm"), enough_resamples(5995, 0.05, "holm"), enough_resamples(5995, 0.05, "none")
    (100000, 300000, 100000)
    """
    if not CORRECTIONS[corrected_by].corrects or not 0 < alpha < 1:
        return DEFAULT_RESAMPLES
    return min(max(DEFAULT_RESAMPLES, round_up(2 * p_values / alpha)), MOST_RESAMPLES)


def round_up(number: float) -> int:
    """To one figure: 239,800 becomes 300,000."""
    size = 10 ** max(0, len(str(int(number))) - 1)
    return int(-(-number // size) * size)


def named_correction(name: str) -> Correction:
    """A correction by its name or an alias; one that is typed wrong is wrong usage."""
    return _named(correction, name)


def _named(find: Callable[[str], T], name: str, besides: str = "") -> T:
    """A test or a correction by its name; `besides` is what else may be typed in its place."""
    try:
        return find(name)
    except DataError as error:
        raise ConventionError(str(error).replace("there are ", f"there are {besides}")) from None


def _refuse(settings: Settings) -> None:
    for name, share in (("alpha", settings.alpha), ("level", settings.level)):
        if not 0 < share < 1:
            raise ConventionError(f"{name} must be between 0 and 1, ends excluded, got {share}")
    for name, value, known in (
        ("interval", settings.interval, tuple(intervals())),
        ("alternative", settings.alternative, ALTERNATIVES),
    ):
        if value not in known:
            raise ConventionError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    refuse_below(1, resamples=settings.resamples)
    refuse_below(0, seed=settings.seed)
    refuse_nothing(rope=settings.rope, margin=settings.margin)
    if settings.simultaneous and settings.decided_at_once and find_test(settings.test).by_order:
        raise ConventionError(
            f"simultaneous: {settings.test} compares ranks and has no interval of the mean difference"
        )
    if settings.simultaneous and not settings.decided_at_once and not CORRECTIONS[settings.correction].corrects:
        raise ConventionError(
            f"simultaneous intervals keep the level of a correction; got correction {settings.correction}"
        )
    if settings.decided_at_once and settings.one_sided:
        raise ConventionError(
            f"{settings.test} looks at all systems at once and is two-sided; got {settings.alternative}"
        )

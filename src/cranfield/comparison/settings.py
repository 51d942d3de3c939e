"""The settings of a comparison: tests, correction, levels and seed, checked when they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import LARGEST_SCORE, refuse_below
from cranfield.stats.correction import CORRECTIONS, Correction, correction
from cranfield.stats.tests_by_name import TESTS, TESTS_OF_MANY, Test, TestOfMany, find_test, intervals, test
from cranfield.stats.two_sample_test import Alternative, SignificanceSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from cranfield.stats.method import SignificanceTest
    from cranfield.stats.sampled_means import ProbabilitySample


T = TypeVar("T")
ALTERNATIVES = ("two-sided", "greater", "less", "better", "worse")
OPPOSITES: dict[str, Alternative] = {"greater": "less", "less": "greater"}
DEFAULT_TEST = "randomisation"
DESIGN_TEST = "t"  # the default for topics with design weights
DEFAULT_RESAMPLES, MOST_RESAMPLES = 100_000, 1_000_000


def split_names(typed: str | Iterable[str]) -> list[str]:
    """Split names: a list, or one text with blanks or commas between the names.

    >>> split_names("t, sign"), split_names(["t"])
    (['t', 'sign'], ['t'])
    """
    return typed.replace(",", " ").split() if isinstance(typed, str) else list(typed)


def known_names(what: str, typed: str | Iterable[str], available: Sequence[str]) -> list[str]:
    """The names, split; ConventionError if there are none or one of them is unknown."""
    names = split_names(typed)
    if not names or any(name not in available for name in names):
        raise ConventionError(f"{what}: expected some of {', '.join(available)}, found {' '.join(names)!r}")
    return names


def refuse_shares(**shares: float) -> None:
    """Raise ConventionError for a number that is not between 0 and 1."""
    for name, share in shares.items():
        if not 0 < share < 1:
            raise ConventionError(f"{name} must lie between 0 and 1, got {share:g}")


def refuse_nonpositive(**sizes: float | None) -> None:
    """Raise ConventionError for a size that is not above 0 or is infinite."""
    for name, size in sizes.items():
        if size is not None and not 0 < size < np.inf:
            raise ConventionError(f"{name} must be above 0, got {size:g}")


def refuse_extremes(**sizes: float | None) -> None:
    """Raise ConventionError for a size that is not above 0, or whose square underflows or overflows."""
    refuse_nonpositive(**sizes)
    for name, size in sizes.items():
        if size is not None and not 1 / LARGEST_SCORE <= size <= LARGEST_SCORE:
            raise ConventionError(f"{name} must be between {1 / LARGEST_SCORE:g} and {LARGEST_SCORE:g}, got {size:g}")


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """The validated settings."""

    pairwise: tuple[str, ...]  # tests of two systems, in the requested order
    at_once: tuple[str, ...]  # tests of all systems at once
    test: str  # the deciding test
    everything: bool  # all tests were requested: those that do not fit the data are skipped
    correction: str
    alpha: float
    level: float = 0.95
    interval: str = "t"
    resamples: int
    seed: int
    alternative: str = "two-sided"
    rope: float | None = None
    margin: float | None = None
    simultaneous: bool = False  # whether the intervals hold jointly

    @property
    def one_sided(self) -> bool:
        """Whether the test is one-sided."""
        return self.alternative != "two-sided"

    @property
    def usual(self) -> bool:
        """Whether all settings are defaults; more resamples for more pairs count as default."""
        numbers = self.alpha, self.level, self.interval, self.seed, self.rope, self.margin
        choices = self.tests, self.correction, self.alternative, self.simultaneous
        return (
            numbers == (0.05, 0.95, "t", 0, None, None)
            and choices == ([DEFAULT_TEST], "holm", "two-sided", False)
            and self.resamples >= DEFAULT_RESAMPLES
        )

    @property
    def tests(self) -> list[str]:
        """All tests, the deciding one first."""
        return list(dict.fromkeys([self.test, *self.pairwise, *self.at_once]))

    @property
    def decided_at_once(self) -> bool:
        """Whether the deciding test covers all systems at once, so that its p-values need no correction."""
        return self.test in TESTS_OF_MANY

    def paired_tests(self, binary: bool) -> dict[str, Test]:
        """The tests of two systems; tests for binary values are skipped for other values if all tests were requested."""
        tests = {name: _with_rope(test(name), self.rope) for name in self.pairwise}
        return {name: one for name, one in tests.items() if binary or not (self.everything and one.binary)}

    def direction(self, lower_is_better: bool) -> Alternative:
        """The direction for a test: `better` is greater, or less if lower is better; `worse` is the opposite."""
        if self.alternative in ("better", "worse"):
            return "greater" if (self.alternative == "better") != lower_is_better else "less"
        return cast("Alternative", self.alternative)

    def question(
        self,
        lower_is_better: bool,
        opposite: bool = False,
        weights: npt.NDArray[np.float64] | None = None,
        sample: ProbabilitySample | None = None,
    ) -> SignificanceSettings:
        """The settings of a test (or of its one-sided opposite), with random numbers that start anew for every pair."""
        direction = self.direction(lower_is_better)
        direction = OPPOSITES.get(direction, direction) if opposite else direction
        rng = np.random.default_rng(self.seed)
        return SignificanceSettings(direction, self.level, self.resamples, rng, weights, sample)


def _with_rope(one: Test, rope: float | None) -> Test:
    """The test with this region of practical equivalence, if it has one and no parameters were typed."""
    fits = rope is not None and "rope" in one.parameters and not one.changed()
    return one.with_parameters(rope=rope) if fits else one


def read_settings(
    tests: str | Iterable[str] | None,
    corrected_by: str,
    resamples: int | None,
    *,
    systems: int,
    p_values: int,
    weighed_by: str = "",
    designed: bool = False,
    **numbers: Any,
) -> ComparisonSettings:
    """Read and check the settings; names may be aliases. `all` means every test, with weights every test that supports them.

    `designed` says that the weights come from the design of a sample; the default test is then another.

    The default number of resamples is large enough for so many p-values to become significant after correction.
    """
    default = default_test(designed)
    names = [default] if tests is None else split_names(tests)
    if not names:
        raise ConventionError("no test given; try randomisation, or all")
    every = [*TESTS.values(), *(TESTS_OF_MANY.values() if systems > 2 else ())]
    every = [one for one in every if not weighed_by or can_weigh(one, designed)]
    methods = [one for name in names for one in (every if name == "all" else [find_named(find_test, name, "all, ")])]
    if weighed_by:
        refuse_unweighable(methods, weighed_by, designed)
        interval = numbers.get("interval", "t")
        if designed and interval in intervals() and not intervals()[interval].design_based:
            raise ConventionError(f"interval: {interval} cannot use the design of the sample; t can")
    pairwise = list(dict.fromkeys(str(one) for one in methods if isinstance(one, Test)))
    at_once = dict.fromkeys(name for one in methods if isinstance(one, TestOfMany) for name in one.with_it)
    deciding = find_test(next((name for name in names if name != "all"), default))
    corrected_by = named_correction(corrected_by).name
    if resamples is None:
        alone = pairwise[0] if len(pairwise) == 1 else ""  # with other tests beside it that would take too long
        shared = alone in TESTS and TESTS[alone].shares_draws
        resamples = enough_resamples(p_values, numbers["alpha"], corrected_by) if shared else DEFAULT_RESAMPLES
    settings = ComparisonSettings(
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
            f"margin: equivalence and non-inferiority cannot be weighted (by {weighed_by}); leave out margin or weights"
        )
    return settings


def default_test(designed: bool) -> str:
    """The name of the test that decides if none was requested."""
    return DESIGN_TEST if designed else DEFAULT_TEST


def can_weigh(test: SignificanceTest, designed: bool) -> bool:
    """Whether a test supports weights; those of a sample if `designed`."""
    return test.design_based if designed else test.weighable


def refuse_unweighable(tests: Iterable[SignificanceTest], weighed_by: str, designed: bool = False) -> None:
    """Raise ConventionError for a test that does not support weights (design weights of a sample if `designed`)."""
    what = "design weights" if designed else "weights"
    for one in tests:
        if not can_weigh(one, designed):
            able = ", ".join(name for name, each in TESTS.items() if can_weigh(each, designed))
            raise ConventionError(
                f"{one.name} does not support {what} (topics are weighted by {weighed_by}); tests that do: {able}"
            )


def enough_resamples(p_values: int, alpha: float, corrected_by: str) -> int:
    """The default number of resamples, or more if a corrected p-value could not be significant otherwise.

    >>> enough_resamples(3, 0.05, "holm"), enough_resamples(5995, 0.05, "holm"), enough_resamples(5995, 0.05, "none")
    (100000, 300000, 100000)
    """
    if not CORRECTIONS[corrected_by].corrects or not 0 < alpha < 1:
        return DEFAULT_RESAMPLES
    return min(max(DEFAULT_RESAMPLES, round_up(2 * p_values / alpha)), MOST_RESAMPLES)


def round_up(number: float) -> int:
    """Round up to one significant digit: 239,800 becomes 300,000."""
    size = 10 ** max(0, len(str(int(number))) - 1)
    return int(-(-number // size) * size)


def named_correction(name: str) -> Correction:
    """Find a correction by name or alias; an unknown name is a usage error."""
    return find_named(correction, name)


def find_named(find: Callable[[str], T], name: str, besides: str = "") -> T:
    """Call `find` with a name; an unknown name becomes a ConventionError, which also lists the names in `besides`."""
    try:
        return find(name)
    except DataError as error:
        raise ConventionError(str(error).replace("there are ", f"there are {besides}")) from None


def _refuse(settings: ComparisonSettings) -> None:
    for name, share in (("alpha", settings.alpha), ("level", settings.level)):
        if not 0 < share < 1:
            raise ConventionError(f"{name} must be between 0 and 1, ends excluded, got {share}")
    for name, value, choices in (
        ("interval", settings.interval, tuple(intervals())),
        ("alternative", settings.alternative, ALTERNATIVES),
    ):
        if value not in choices:
            raise ConventionError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    refuse_below(1, resamples=settings.resamples)
    refuse_below(0, seed=settings.seed)
    refuse_nonpositive(rope=settings.rope, margin=settings.margin)
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

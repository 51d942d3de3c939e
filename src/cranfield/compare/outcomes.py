"""Every test that was asked for, on many pairs at once.

The random signs and resamples come from the seed alone, so a pair has the same p-value alone and among thousands. The
randomisation test's own interval costs far more than its p-value; it is left out where nobody would see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cranfield.compare.many import MANY
from cranfield.errors import ConventionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.kernels.table import Floats
    from cranfield.stats.outcome import Alternative, Outcome


ALTERNATIVES = ("two-sided", "greater", "less", "better", "worse")
INTERVALS = {
    "t": "t",
    "percentile": "bootstrap",
    "bca": "bootstrap-bca",
    "studentised": "bootstrap-t",
    "randomisation": "randomisation",
}
"""The intervals of the mean difference, and the tests whose they are."""
USUAL = "randomisation"
DRAWN, MOST_DRAWN = 100_000, 1_000_000


def enough_resamples(pairs: int, alpha: float, correction: str) -> int:
    """As many as usual, or so many that a p-value can still be significant after it was corrected.

    >>> enough_resamples(3, 0.05, "holm"), enough_resamples(5995, 0.05, "holm"), enough_resamples(5995, 0.05, "none")
    (100000, 300000, 100000)
    """
    if correction == "none" or not 0 < alpha < 1:
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


def asked(tests: str | Iterable[str], correction: str, systems: int, **numbers: Any) -> Asked:
    """Check what was asked for; names may be aliases, `all` means every test."""
    from cranfield.stats.testing import TESTS, test

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
            many += [each for each in MANY if systems > 2]
        elif name.casefold() in MANY:
            many += MANY[name.casefold()].with_it
            order.append(next(each for each in MANY[name.casefold()].with_it if MANY[each].pairs))
        else:
            try:
                pairwise.append(test(name).name)
            except ValueError:
                raise ConventionError(f"no test {name!r}; there are all, {', '.join([*TESTS, *MANY])}") from None
            order.append(pairwise[-1])
    given = Asked(
        tests=tuple(dict.fromkeys(pairwise)),
        many=tuple(dict.fromkeys(many)),
        deciding=order[0] if order else USUAL,
        everything=everything,
        correction=_correction(correction),
        **numbers,
    )
    _refuse(given)
    return given


def _correction(name: str) -> str:
    from cranfield.stats.correction import CORRECTIONS, correction

    try:
        return correction(name).name
    except ValueError:
        raise ConventionError(f"no correction {name!r}; there are {', '.join(CORRECTIONS)}") from None


def _refuse(given: Asked) -> None:
    for name, value in (("alpha", given.alpha), ("level", given.level)):
        if not 0 < value < 1:
            raise ConventionError(f"{name} must be between 0 and 1, ends excluded, got {value}")
    if given.interval not in INTERVALS:
        raise ConventionError(f"interval must be one of {', '.join(INTERVALS)}, got {given.interval!r}")
    if given.alternative not in ALTERNATIVES:
        raise ConventionError(f"alternative must be one of {', '.join(ALTERNATIVES)}, got {given.alternative!r}")
    if given.resamples < 1:
        raise ConventionError(f"resamples must be 1 or more, got {given.resamples}")
    if given.seed < 0:
        raise ConventionError(f"seed must be 0 or more, got {given.seed}")
    for name, size in (("rope", given.rope), ("margin", given.margin)):
        if size is not None and not 0 < size < np.inf:
            raise ConventionError(f"{name} must be above 0, got {size}")
    if given.deciding in MANY and given.alternative != "two-sided":
        raise ConventionError(
            f"{given.deciding} looks at all systems at once and is two-sided; got {given.alternative}"
        )


def direction(alternative: str, lower_is_better: bool) -> Alternative:
    """`better` and `worse` in the words of a test: greater, or less where lower is better."""
    if alternative in ("better", "worse"):
        return "greater" if (alternative == "better") != lower_is_better else "less"
    return cast("Alternative", alternative)


def title(name: str) -> str:
    """A test as it is called in a sentence."""
    return MANY[name].title if name in MANY else TITLES.get(name, name)


TITLES = {
    "t": "paired t",
    "wilcoxon": "Wilcoxon",
    "sign": "sign test",
    "bootstrap": "bootstrap (percentile)",
    "bootstrap-bca": "bootstrap (BCa)",
    "bootstrap-t": "bootstrap (studentised)",
    "bayes": "Bayesian bootstrap",
    "bayes-t": "Bayesian t",
    "mcnemar": "McNemar",
    "welch": "Welch (unpaired)",
    "mann-whitney": "Mann-Whitney (unpaired)",
    "permutation": "permutation (unpaired)",
    "seeds": "crossed t over topics and seeds",
}


def outcomes(a: Floats, b: Floats, given: Asked, lower_is_better: bool) -> list[dict[str, Outcome]]:
    """For each row of `a` (baseline) and `b`, what each test says."""
    from cranfield.stats.testing import TESTS

    if not len(a):
        return []
    binary = bool(np.isin(a, (0.0, 1.0)).all() and np.isin(b, (0.0, 1.0)).all())
    names = [name for name in given.tests if not (given.everything and TESTS[name].binary and not binary)]
    rows: list[dict[str, Outcome]] = [{} for _ in range(len(a))]
    for name in names:
        if name == "randomisation" and len(names) == 1:
            found = _signs_only(a, b, given, lower_is_better)
        else:
            found = TESTS[name].many(
                a,
                b,
                alternative=direction(given.alternative, lower_is_better),
                level=given.level,
                resamples=given.resamples,
                rng=np.random.default_rng(given.seed),
                rope=given.rope or 0.0,
            )
        for row, outcome in zip(rows, found, strict=True):
            row[name] = outcome
    return rows


def signs_p(a: Floats, b: Floats, seed: int, resamples: int, alternative: Alternative) -> Floats:
    """The p-values of the randomisation test without its interval: the same signs, so the same numbers.

    Where most of the pairs of few systems are asked for, all are computed at once, which costs a fraction.
    """
    from cranfield.stats.randomisation import sign_flip_p, sign_flip_p_all
    from cranfield.stats.ties import differences

    rng = np.random.default_rng(int(np.random.default_rng(seed).integers(2**63)))
    rows: dict[bytes, int] = {}
    place = np.array([[rows.setdefault(row.tobytes(), len(rows)) for row in side] for side in (a, b)])
    if len(a) < 2 * len(rows):
        return sign_flip_p(differences(a, b), resamples, rng, alternative)
    table = np.array([np.frombuffer(row, a.dtype) for row in rows])
    found = sign_flip_p_all(table.T, resamples, rng, alternative)[place[0], place[1]]
    return np.where(place[0] == place[1], 1.0, found)


def _signs_only(a: Floats, b: Floats, given: Asked, lower_is_better: bool) -> list[Outcome]:
    from cranfield.stats.outcome import Outcome
    from cranfield.stats.randomisation import enumerable
    from cranfield.stats.ties import differences

    d = differences(a, b)
    n = d.shape[1]
    p = signs_p(a, b, given.seed, given.resamples, direction(given.alternative, lower_is_better))
    exact = enumerable(n, given.resamples)
    drawn = 2**n if exact else given.resamples
    return [
        Outcome("randomisation", float(each), float(mean), exact=exact, resamples=drawn)
        for each, mean in zip(p, d.mean(axis=1), strict=True)
    ]


def intervals(a: Floats, b: Floats, given: Asked) -> tuple[Floats, Floats]:
    """The two-sided interval of each row's mean difference, by the method asked for; NaN where there is none."""
    from cranfield.stats.testing import TESTS

    found = TESTS[INTERVALS[given.interval]].many(
        a, b, level=given.level, resamples=given.resamples, rng=np.random.default_rng(given.seed)
    )
    return np.array([each.low for each in found]), np.array([each.high for each in found])

"""The tests of two samples, by name.

`TESTS` is what the command line, the documentation and the promise tests know; a test that joins it gets all three.
"""

from __future__ import annotations

from cranfield.errors import DataError
from cranfield.stats.bayes import BAYES, BAYES_T
from cranfield.stats.bootstrap import BCA, PERCENTILE, STUDENTISED
from cranfield.stats.outcome import ALTERNATIVES, Alternative, Outcome, Test
from cranfield.stats.paired import MCNEMAR, SIGN, WILCOXON, T
from cranfield.stats.randomisation import RANDOMISATION
from cranfield.stats.unpaired import MANN_WHITNEY, PERMUTATION, WELCH

__all__ = ["ALTERNATIVES", "TESTS", "Alternative", "Outcome", "Test", "test"]

TESTS: dict[str, Test] = {
    one.name: one
    for one in (
        RANDOMISATION,
        T,
        WILCOXON,
        SIGN,
        PERCENTILE,
        BCA,
        STUDENTISED,
        BAYES,
        BAYES_T,
        MCNEMAR,
        WELCH,
        MANN_WHITNEY,
        PERMUTATION,
    )
}


def test(name: str) -> Test:
    """A test by its name or an alias.

    >>> test("signed-rank").name
    'wilcoxon'
    """
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    for one in TESTS.values():
        if wanted == one.name or wanted in one.aliases:
            return one
    raise DataError(f"no test {name!r}; there are {', '.join(TESTS)}")


test.__test__ = False  # type: ignore[attr-defined]  # pytest: this is not one of yours

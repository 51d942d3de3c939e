"""The tests by name: `TESTS` of two samples, `TESTS_OF_MANY` of many groups at once.

They are what the command line, the documentation and the promise tests know; a test is a member by being defined.
"""

from __future__ import annotations

from cranfield.errors import DataError
from cranfield.parameters import read_call
from cranfield.stats import bayes, bootstrap, many, paired, randomisation, unpaired
from cranfield.stats.many import TestOfMany
from cranfield.stats.method import SignificanceTest
from cranfield.stats.test import ALTERNATIVES, Alternative, Outcome, Test

__all__ = [
    "ALTERNATIVES",
    "TESTS",
    "TESTS_OF_MANY",
    "Alternative",
    "Outcome",
    "Test",
    "TestOfMany",
    "any_test",
    "find_test",
    "intervals",
    "test",
]

TESTS = Test.registry
TESTS_OF_MANY = TestOfMany.registry
MODULES = (randomisation, paired, bootstrap, bayes, unpaired, many)  # lists follow them, whichever was loaded first
Test.arrange([module.__name__ for module in MODULES])


def test(name: str) -> Test:
    """A test of two samples by its name or an alias.

    >>> test("signed-rank").name
    'wilcoxon'
    """
    return Test.named(name)


test.__test__ = False  # type: ignore[attr-defined]  # pytest: this is not one of yours


def find_test(name: str) -> Test | TestOfMany:
    """A test of two samples or of many groups, by its name or an alias.

    >>> find_test("tukey").title
    'Tukey HSD'
    """
    chosen = Test.find(name) or TestOfMany.find(name)
    if chosen is not None:
        return chosen
    raise DataError(f"no test {name!r}; there are {', '.join([*TESTS, *TESTS_OF_MANY])}")


def any_test(name: str) -> SignificanceTest:
    """A test of any kind, by its name as it stands in an answer.

    >>> any_test("tukey").title
    'Tukey HSD'
    """
    plain, given = read_call(name)
    return SignificanceTest.everywhere[plain].given(**given)


def intervals() -> dict[str, Test]:
    """The intervals of a mean difference and the tests they come with; the costliest, where all cases are tried, last.

    >>> list(intervals())
    ['t', 'percentile', 'bca', 'studentised', 'randomisation']
    """
    kinds = [one for one in TESTS.values() if one.interval]
    return {one.interval: one for one in sorted(kinds, key=lambda one: one.p_from == "exact or drawn")}

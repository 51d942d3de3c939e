"""The tests by name: `TESTS` of two samples, `TESTS_OF_MANY` of many groups at once.

The command line, the documentation and the promise tests use these registries; defining a test registers it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.base.errors import DataError
from cranfield.base.parameters import read_call
from cranfield.base.registry import Registry, unknown
from cranfield.stats.many_groups import TestOfMany as TestOfMany  # also to be imported from here, as is `Test`
from cranfield.stats.two_sample_test import Test as Test

if TYPE_CHECKING:
    from cranfield.stats.method import SignificanceTest

TESTS = Test.registry
TESTS_OF_MANY = TestOfMany.registry


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
    test = Test.find(name) or TestOfMany.find(name)
    if test is not None:
        return test
    raise unknown("test", name, [*TESTS, *TESTS_OF_MANY], refusal=DataError)


def any_test(name: str) -> SignificanceTest:
    """A test of any kind, by the name that results show.

    >>> any_test("tukey").title
    'Tukey HSD'
    """
    plain, parameters = read_call(name)
    for registry in Registry.kinds:
        if registry.group == TESTS.group and plain in registry:
            test: SignificanceTest = registry[plain]
            return test.with_parameters(**parameters)
    raise KeyError(plain)


def intervals() -> dict[str, Test]:
    """The intervals of a mean difference and their tests; the costliest, which try all cases, come last.

    >>> list(intervals())
    ['t', 'percentile', 'bca', 'studentised', 'randomisation']
    """
    kinds = [one for one in TESTS.values() if one.interval]
    return {one.interval: one for one in sorted(kinds, key=lambda one: one.p_from == "exact or drawn")}

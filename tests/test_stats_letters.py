"""Compact letter display: what its letters promise for every pattern of differences."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import DataError
from cranfield.stats.many_groups import letters

LETTER = re.compile(r"[a-zA-Z]\d*")


def sets_of(found):
    """The groups that carry each letter."""
    carried = [LETTER.findall(one) for one in found]
    assert ["".join(one) for one in carried] == list(found)
    return {letter: {i for i, one in enumerate(carried) if letter in one} for one in carried for letter in one}


@st.composite
def patterns(draw, most=9):
    n = draw(st.integers(1, most))
    bits = draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n))
    above = np.triu(np.array(bits, bool).reshape(n, n), 1)
    means = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    return means, above | above.T


@given(patterns())
def test_two_groups_share_a_letter_exactly_when_they_do_not_differ(pattern):
    means, differ = pattern
    sets = sets_of(letters(means, differ)).values()
    n = len(means)
    for i in range(n):
        for j in range(i):
            assert any({i, j} <= members for members in sets) != differ[i, j]


@given(patterns())
def test_every_group_has_a_letter_and_no_letter_is_within_another(pattern):
    found = letters(*pattern)
    assert all(found)
    sets = list(sets_of(found).values())
    assert not [1 for i, one in enumerate(sets) for j, other in enumerate(sets) if i != j and one <= other]


@given(patterns())
def test_no_letter_can_be_left_out(pattern):
    sets = list(sets_of(letters(*pattern)).values())
    for left_out in range(len(sets)):
        others = sets[:left_out] + sets[left_out + 1 :]
        pairs = [{i, j} for i in sets[left_out] for j in sets[left_out]]
        assert any(not any(pair <= other for other in others) for pair in pairs)


@given(patterns())
def test_the_best_group_carries_the_first_letter(pattern):
    means, differ = pattern
    assert letters(means, differ)[int(np.argmax(means))].startswith("a")


@given(patterns(6))
def test_letters_do_not_depend_on_the_order_of_the_groups(pattern):
    means, differ = pattern
    means = np.arange(len(means)) + np.array(means) * 100.0  # no ties
    turned = slice(None, None, -1)
    assert letters(means, differ)[turned] == letters(means[turned], differ[turned, turned])


def test_letters_against_piepho_s_reading_of_a_chain():
    """Neighbours do not differ, all others do: each pair of neighbours shares its own letter."""
    far = np.abs(np.subtract.outer(range(4), range(4))) > 1
    assert letters([4, 3, 2, 1], far) == ["a", "ab", "bc", "c"]


def test_no_difference_is_one_letter_and_all_different_are_as_many_as_groups():
    assert letters([1, 2, 3], np.zeros((3, 3), bool)) == ["a", "a", "a"]
    assert letters([1, 3, 2], ~np.eye(3, dtype=bool)) == ["c", "a", "b"]


def test_beyond_z_come_capitals_and_then_numbered_letters():
    found = letters(-np.arange(110), ~np.eye(110, dtype=bool))
    assert [found[i] for i in (0, 25, 26, 51, 52, 103, 104, 109)] == ["a", "z", "A", "Z", "a1", "Z1", "a2", "f2"]
    assert len(set(found)) == 110


def test_no_groups_have_no_letters():
    assert letters([], np.zeros((0, 0), bool)) == []


@pytest.mark.parametrize(
    ("means", "differ", "problem"),
    [
        ([1, 2], [[False, True]], "groups × groups"),
        ([1, 2], [[False, True], [False, False]], "symmetric"),
        ([1, 2], [[True, False], [False, False]], "differs from itself"),
        ([1, np.nan], np.zeros((2, 2)), "found NaN"),
    ],
)
def test_what_is_no_matrix_of_differences_is_refused(means, differ, problem):
    with pytest.raises(DataError, match=problem):
        letters(means, differ)


def test_a_pattern_that_would_need_thousands_of_letters_is_refused():
    differ = np.kron(np.eye(16, dtype=bool), ~np.eye(2, dtype=bool))  # 2^16 ways to take one of each couple
    with pytest.raises(DataError, match="more than 2000 letters"):
        letters(range(32), differ)

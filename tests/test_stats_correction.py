"""Corrections for many tests, against statsmodels, SciPy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import DataError
from cranfield.stats.correction import CORRECTIONS, correct, correction

families = st.lists(st.floats(0, 1), min_size=1, max_size=20)
STATSMODELS = {
    "bonferroni": "bonferroni",
    "sidak": "sidak",
    "holm": "holm",
    "hochberg": "simes-hochberg",
    "benjamini-hochberg": "fdr_bh",
    "benjamini-yekutieli": "fdr_by",
}


def test_holm_by_hand():
    """Four p-values: the smallest times 4, the next times 3, and none below the one before."""
    assert correct([0.04, 0.01, 0.03, 0.005], "holm") == pytest.approx([0.06, 0.03, 0.06, 0.02])


@pytest.mark.parametrize("name", STATSMODELS)
def test_a_correction_against_statsmodels(name):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 7, 20):
        p = np.round(rng.random(size) ** 3, 2)  # hundredths, so that some are equal
        wanted = multitest.multipletests(p, method=STATSMODELS[name])[1]
        assert correct(p, name) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(("name", "method"), [("benjamini-hochberg", "bh"), ("benjamini-yekutieli", "by")])
@given(p=families)
def test_a_correction_against_scipy(name, method, p):
    assert correct(p, name) == pytest.approx(scipy.stats.false_discovery_control(p, method=method))


def test_every_correction_but_none_is_held_against_statsmodels():
    assert set(STATSMODELS) == set(CORRECTIONS) - {"none"}


@pytest.mark.parametrize("name", CORRECTIONS)
@given(p=families)
def test_a_corrected_p_is_a_probability_no_smaller_and_in_the_same_order(name, p):
    p = np.array(p)
    corrected = correct(p, name)
    assert ((corrected >= p - 1e-12) & (corrected <= 1)).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(corrected[order]) >= -1e-12).all()


@pytest.mark.parametrize("name", CORRECTIONS)
def test_a_single_p_stays_as_it_is(name):
    assert correct([0.03], name) == pytest.approx([0.03])


@pytest.mark.parametrize("name", CORRECTIONS)
def test_a_missing_p_is_no_member_of_the_family(name):
    corrected = correct([0.01, math.nan, 0.03], name)
    assert math.isnan(corrected[1])
    assert corrected[[0, 2]] == pytest.approx(correct([0.01, 0.03], name))
    assert correct([], name).tolist() == []
    assert np.isnan(correct([math.nan], name)).all()


def test_a_table_of_p_is_one_family_and_keeps_its_shape():
    p = np.array([[0.01, 0.02], [0.03, 0.04]])
    assert correct(p, "bonferroni").tolist() == pytest.approx(4 * p)


def test_a_tiny_p_keeps_its_digits_under_sidak():
    assert correct([1e-18, 0.5], "sidak")[0] == pytest.approx(2e-18)
    assert correct([1.0, 0.5], "sidak")[0] == 1.0


def test_names_aliases_and_unknown_ones():
    assert correction("BH") is CORRECTIONS["benjamini-hochberg"]
    assert correction("by") is CORRECTIONS["benjamini-yekutieli"]
    assert correction("Šidák") is CORRECTIONS["sidak"]
    assert correction("benjamini_hochberg").name == "benjamini-hochberg"
    with pytest.raises(DataError, match="no correction 'tukey'; there are none, bonferroni, holm"):
        correct([0.1], "tukey")
    for one in CORRECTIONS.values():
        assert one.about.endswith(".")


def test_what_is_no_p_is_refused():
    with pytest.raises(DataError, match=r"between 0 and 1, found 1\.5"):
        correct([0.1, 1.5])


@pytest.mark.parametrize("name", CORRECTIONS)
def test_the_next_level_is_what_one_more_p_value_needs(name):
    """One of the p-values that are not rejected is moved to the level, and just beyond it."""
    p = np.array([1e-6, 1e-5, 1e-4, 0.2, 0.4, 0.5, 0.6, 0.9])
    rejected = int((correct(p, name) <= 0.05).sum())
    level = CORRECTIONS[name].next_level(0.05, len(p), rejected)
    for move, more in ((1 - 1e-9, 1), (1 + 1e-6, 0)):
        moved = p.copy()
        moved[-1] = level * move
        assert (correct(moved, name) <= 0.05).sum() == rejected + more


def test_the_level_of_simultaneous_intervals_by_hand():
    assert CORRECTIONS["bonferroni"].interval_level(0.95, 5, 2) == pytest.approx(0.99)
    assert CORRECTIONS["holm"].interval_level(0.95, 5, 2) == pytest.approx(0.99)
    assert CORRECTIONS["sidak"].interval_level(0.95, 2, 0) == pytest.approx(0.95**0.5)
    assert CORRECTIONS["benjamini-hochberg"].interval_level(0.95, 10, 4) == pytest.approx(0.98)
    assert CORRECTIONS["benjamini-yekutieli"].interval_level(0.95, 2, 2) == pytest.approx(1 - 0.05 / 1.5)
    assert all(one.interval_level(0.95, 1, 1) == pytest.approx(0.95) for one in CORRECTIONS.values())


@pytest.mark.parametrize("name", CORRECTIONS)
@pytest.mark.parametrize("tests", [1, 2, 9])
def test_the_level_of_one_is_the_largest_p_that_stays_significant_among_others_that_are_not(name, tests):
    level = correction(name).level_of_one(0.05, tests)
    for factor, significant in ((1 - 1e-9, True), (1 + 1e-6, False)):
        assert (correct([level * factor] + [1.0] * (tests - 1), name)[0] <= 0.05) == significant

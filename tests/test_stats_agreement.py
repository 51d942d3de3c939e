"""Coefficients of agreement: promises over all of them, published examples, other programs, intervals."""

from __future__ import annotations

import json
import math
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import ConventionError, DataError
from cranfield.collections import bundled
from cranfield.formats import read_qrels
from cranfield.stats.agreement import (
    AC2,
    COEFFICIENTS,
    Agreement,
    Labels,
    Patterns,
    against_the_rest,
    agreement,
    agreement_in_words,
    alike,
    all_forms,
    by_group,
    by_label,
    by_pair,
    coefficient,
    interval_of,
    with_oneself,
    without_each,
)
from cranfield.stats.jackknife import jackknife
from cranfield.stats.ratings import Scale, base_rates, confusion
from hypotheses import examples

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the benchmarks are not installed with the package

from benchmarks import agreement_coverage as simulated

METRICS = [f"krippendorff(metric={metric})" for metric in ("ordinal", "interval", "ratio")]
WEIGHTED = [f"{name}(weights={kind})" for name in ("cohen", "ac2") for kind in ("linear", "quadratic", "ordinal")]
EVERY = [*COEFFICIENTS, *METRICS, *WEIGHTED]
TWO = Labels.of_confusion([[20, 5, 1], [4, 15, 3], [0, 2, 10]])


def value(labels: Labels, name: str) -> float:
    return agreement(labels, name, resamples=0).value


def table_of(raters: int, items: int = 60, seed: int = 0, missing: float = 0.0) -> list[list[int | None]]:
    """Raters who are right in seven cases of ten, on a scale of 0 to 3."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, items, p=[0.5, 0.2, 0.2, 0.1])
    said = np.where(rng.random((raters, items)) < 0.7, truth, rng.integers(0, 4, (raters, items)))
    gone = rng.random((raters, items)) < missing
    return [
        [None if no else int(one) for one, no in zip(row, nos, strict=True)]
        for row, nos in zip(said, gone, strict=True)
    ]


def raters_of(name: str) -> int:
    return 2 if coefficient(name).two_raters else 4


# promises


@pytest.mark.parametrize("name", EVERY)
def test_full_agreement_is_1(name):
    row = [0, 1, 2, 3, 1, 0, None]
    assert value(Labels.of_table([row] * raters_of(name)), name) == pytest.approx(1)


@pytest.mark.parametrize("name", EVERY)
def test_names_and_the_order_of_lines_do_not_matter(name):
    rng = np.random.default_rng(1)
    labels = Labels.of_table(table_of(raters_of(name), missing=0.2))
    order = rng.permutation(len(labels))
    raters, items = rng.permutation(len(labels.raters)) + 10, rng.permutation(len(labels.items)) + 10
    again = Labels.of(raters[labels.rater[order]], items[labels.item[order]], labels.label[order])
    assert value(again, name) == pytest.approx(value(labels, name), abs=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_raters_who_know_nothing_of_each_other_agree_as_chance_would(name):
    rng = np.random.default_rng(2)
    rates = [0.25] * 4 if name.startswith("ac") else [0.6, 0.2, 0.1, 0.1]  # AC takes chance for even
    labels = Labels.of_table(rng.choice(4, (raters_of(name), 20_000), p=rates).tolist(), range(4))
    if coefficient(name).corrected:
        assert value(labels, name) == pytest.approx(0, abs=0.025)
    else:
        assert value(labels, name) == pytest.approx(sum(p * p for p in rates), abs=0.02)


@pytest.mark.parametrize("name", EVERY)
def test_labels_that_nobody_gave_change_nothing_unless_the_scale_counts(name):
    table = table_of(raters_of(name), missing=0.1)
    seen, wider = value(Labels.of_table(table), name), value(Labels.of_table(table, [0, 1, 2, 3, 9]), name)
    assert (seen == pytest.approx(wider, abs=1e-12)) is not coefficient(name).counts_scale


@pytest.mark.parametrize("name", EVERY)
def test_a_resample_is_what_its_items_give(name):
    labels = Labels.of_table(table_of(raters_of(name), 12, missing=0.1))
    one = coefficient(name)
    patterns = one.patterns(labels)
    draws = np.stack([patterns.times, 3 * patterns.times])
    tripled = Labels.of(
        np.tile(labels.rater, 3), np.concatenate([labels.item + 100 * n for n in range(3)]), np.tile(labels.label, 3)
    )
    expected = [value(labels, name), value(tripled, name)]
    assert one.figures(patterns, draws, labels.scale).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_what_cannot_be_had_says_why(name):
    never = [
        (Labels.of([], [], []), "no labels"),
        (Labels.of(["ann"] * 3, [1, 2, 3], [0, 1, 0]), "one rater only, ann"),
        (Labels.of(["ann", "bob"], [1, 2], [0, 1]), "no item has labels of two raters"),
        (Labels.of_table([[1, 1], [1, 1]]), "one label only, 1"),
    ]
    for labels, why in never:
        found = agreement(labels, name)
        if why.startswith("one label") and name == "raw":
            assert found.value == 1
            continue
        assert math.isnan(found.value)
        assert not found.defined
        assert why in found.reason


@pytest.mark.parametrize("name", [name for name, one in COEFFICIENTS.items() if one.two_raters])
def test_a_coefficient_of_two_raters_says_so_of_three(name):
    found = agreement(Labels.of_table(table_of(3)), name)
    assert found.reason == "it compares two raters, and there are 3: take pairs, or fleiss or krippendorff"


rows = st.lists(st.lists(st.none() | st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=4)


@examples(60)
@given(rows, st.sampled_from(EVERY))
def test_there_is_a_number_no_larger_than_1_or_a_reason(table, name):
    found = agreement(Labels.of_table(table), name, resamples=20)
    assert math.isnan(found.value) is bool(found.reason)
    assert not found.value > 1 + 1e-9
    assert math.isnan(found.low) is math.isnan(found.high)
    assert not found.low > found.high
    assert found.reason or found.doubts  # five items are few


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_a_coefficient_says_what_it_is(name):
    page = coefficient(name).page()
    assert len(page["about"].split()) > 8
    assert page["title"]
    assert page["reference"] or name == "raw"
    for alias in page["aliases"]:
        assert coefficient(alias).name == name


# published examples


@pytest.fixture(scope="module")
def published(shared):
    return json.loads((shared / "peer-cases" / "agreement.json").read_text(encoding="utf-8"))


def test_alpha_against_krippendorff_2011(published):
    one = published["krippendorff-2011-C"]
    labels = Labels.of_table(one["raters x units"])
    for metric, expected in one["alpha"].items():
        assert round(value(labels, f"alpha(metric={metric})"), 3) == expected
    for case in "AB":
        two = published[f"krippendorff-2011-{case}"]
        assert round(value(Labels.of_table(two["raters x units"]), "alpha"), 3) == two["alpha"]["nominal"]


def test_ac1_and_ac2_against_gwet(published):
    one = published["krippendorff-2011-C"]
    labels = Labels.of_table(one["raters x units"])
    assert round(value(labels, "ac1"), 3) == one["ac1"]
    assert round(value(labels, "ac2(weights=quadratic)"), 3) == one["ac2 quadratic"]
    assert round(value(labels, "ac2(weights=nominal)"), 3) == one["ac1"]


def test_a_prevailing_label_against_gwet_2008(published):
    one = published["gwet-paradox"]
    labels = Labels.of_confusion(one["table"])
    found = {name: round(value(labels, name), 3) for name in ("kappa", "pi", "ac1")}
    assert found == {name: one[name] for name in found}


def test_fleiss_against_fleiss_1971(published):
    for name, counts in (("fleiss-1971", "6"), ("fleiss-10x14", "14")):
        table = published[name][f"units x categories, counts of {counts} raters"]
        assert round(value(Labels.of_counts(table), "fleiss"), 3) == published[name]["fleiss"]


def test_kappa_against_cohen_1968(published):
    one = published["cohen-3x3"]
    labels = Labels.of_confusion(one["table"])
    assert round(value(labels, "kappa"), 3) == 0.492 == one["kappa"]
    assert round(value(labels, "kappa(weights=linear)"), 3) == one["linear"]
    assert round(value(labels, "kappa(weights=quadratic)"), 3) == 0.455
    assert round(value(labels, "kappa(weights=0 1 3/1 0 6/3 6 0)"), 3) == 0.348
    assert value(Labels.of_confusion(published["cohen-2x2"]["table"]), "kappa") == pytest.approx(0.4)


def test_kappa_of_the_second_pass_of_the_bundled_collection():
    folder = next(iter(bundled.__path__)) + "/allotment/"
    first, second = (read_qrels(folder + name) for name in ("qrels.txt", "second-pass.txt"))
    lines = [
        (who, (topic, document), grade)
        for who, qrels in enumerate((first, second))
        for topic in second
        for document, grade in qrels[topic].items()
    ]
    labels = Labels.of(*zip(*lines, strict=True))
    found = [round(value(labels, name), 3) for name in ("kappa", "kappa(weights=linear)", "kappa(weights=quadratic)")]
    assert found == [0.964, 0.982, 0.992]


# other programs and plain definitions


@pytest.mark.parametrize("weights", ["nominal", "linear", "quadratic"])
def test_kappa_against_scikit_learn(weights):
    from sklearn.metrics import cohen_kappa_score

    for seed in range(5):
        one, other = np.array(table_of(2, 40, seed), int)
        expected = cohen_kappa_score(one, other, weights=None if weights == "nominal" else weights)
        assert value(Labels.of_table([one, other]), f"kappa(weights={weights})") == pytest.approx(expected)


def test_fleiss_against_statsmodels():
    from statsmodels.stats.inter_rater import fleiss_kappa

    labels = Labels.of_table(table_of(5))
    assert value(labels, "fleiss") == pytest.approx(fleiss_kappa(labels.counts()))


def test_scott_s_pi_is_fleiss_kappa_of_two():
    assert value(TWO, "scott") == pytest.approx(value(TWO, "fleiss"))


@examples(30)
@given(rows, st.sampled_from(["nominal", "ordinal", "interval", "ratio"]))
def test_alpha_against_its_definition_pair_by_pair(table, metric):
    items = [[label for label in column if label is not None] for column in zip(*table, strict=True)]
    items = [labels for labels in items if len(labels) > 1]
    every = [label for labels in items for label in labels]
    if len(set(every)) < 2:
        return

    def apart(one: int, other: int) -> float:
        if one == other:
            return 0.0
        if metric == "ordinal":
            low, high = sorted((one, other))
            between = sum(low <= label <= high for label in every) - (every.count(low) + every.count(high)) / 2
            return between**2
        gap = {"nominal": 1, "interval": one - other, "ratio": (one - other) / (one + other)}[metric]
        return gap**2

    observed = sum(2 * apart(*pair) / (len(labels) - 1) for labels in items for pair in combinations(labels, 2)) / len(
        every
    )
    expected = sum(2 * apart(*pair) for pair in combinations(every, 2)) / (len(every) * (len(every) - 1))
    found = value(Labels.of_table(table, range(4)), f"alpha(metric={metric})")
    assert found == pytest.approx(1 - observed / expected, abs=1e-9)


def test_weights_by_hand():
    assert alike("ordinal", Scale((0, 1, 2)))[0].tolist() == [1, 1 - 1 / 3, 0]  # 0, 1 and 3 pairs of labels apart
    assert alike("quadratic", Scale((0, 1, 3)))[0] == pytest.approx([1, 8 / 9, 0])
    assert alike("linear", Scale(("no", "some", "yes")))[0].tolist() == [1, 0.5, 0]
    assert alike("nominal", Scale((5,))).tolist() == [[1]]


def test_weights_that_make_no_sense_are_refused():
    for table in ("1 0/0 1", "0 1/1", "0 -1/1 0", "0 0/0 0", "0 nan/1 0", "words"):
        with pytest.raises(DataError, match="weights must be nominal"):
            coefficient(f"kappa(weights={table})")
    with pytest.raises(ConventionError, match="expected 3 rows, one a label of the scale, found 2"):
        agreement(TWO, "kappa(weights=0 1/1 0)")
    with pytest.raises(ConventionError, match="symmetric"):
        agreement(TWO, AC2(weights=[[0, 1, 2], [2, 0, 1], [1, 1, 0]]))
    assert str(coefficient("kappa(weights=0 1/2 0)")) == "cohen(weights=0 1/2 0)"
    assert agreement(Labels.of_confusion([[0, 3], [4, 0]], "ab"), "kappa(weights=0 1/1 0)").value < 0
    indifferent = agreement(Labels.of_confusion([[3, 2, 0], [1, 3, 0], [0, 0, 0]]), "kappa(weights=0 0 1/0 0 1/1 1 0)")
    assert indifferent.reason == "the weights tell no two of the labels given apart: chance would agree as well"


@pytest.mark.parametrize("metric", ["ordinal", "interval", "ratio"])
def test_labels_may_be_tiny_or_huge_numbers(metric):
    table = np.array(table_of(3), float)
    sizes = [value(Labels.of_table((table * size).tolist()), f"alpha(metric={metric})") for size in (1, 1e-9, 1e9)]
    assert sizes == pytest.approx([sizes[0]] * 3)


def test_metrics_that_need_numbers_say_so():
    words = Labels.of_table([["no", "yes"], ["yes", "yes"]])
    assert agreement(words, "alpha(metric=interval)").reason == "the metric interval needs numbers for labels"
    assert agreement(Labels.of_table([[-1, 1], [1, 1]]), "alpha(metric=ratio)").reason == (
        "the metric ratio needs labels of 0 or more"
    )
    assert agreement(words, "alpha(metric=ordinal)").defined


# by pair, by group, by label, with oneself


def test_pairs_have_the_kappa_of_their_two_raters():
    labels = Labels.of_table(table_of(3, missing=0.2))
    found = by_pair(labels, "cohen", resamples=0)
    assert list(found) == [(0, 1), (0, 2), (1, 2)]
    assert found[0, 2].value == value(labels.of_raters(0, 2), "cohen")
    apart = Labels.of(["ann", "bob", "cy", "ann"], [1, 1, 2, 2], [0, 0, 1, 1])
    assert list(by_pair(apart, "raw", resamples=0)) == [("ann", "bob"), ("ann", "cy")]


def test_groups_keep_the_scale_of_all():
    labels = Labels.of_table([[0, 1, 2, 2], [0, 1, 2, 1]])
    found = by_group(labels, {0: "a", 1: "a", 2: "b"}, "ac1", resamples=0)
    assert {name: one.items for name, one in found.items()} == {"a": 2, "b": 1}
    assert {len(one.rates[0]) for one in found.values()} == {3}


def test_a_rater_against_the_rest_by_hand():
    labels = Labels.of_table([[0, 1, 1, 0], [0, 1, 0, None], [1, 1, None, None]])
    found = against_the_rest(labels, "scott", resamples=0)
    assert found[0].observed == pytest.approx((0.5 + 1 + 0) / 3)
    assert found[0].items == 3
    assert found[0].rates == ((1 / 3, 2 / 3), (0.5, 0.5))
    two = Labels.of_table(table_of(2))
    assert against_the_rest(two)[0].value == pytest.approx(value(two, "cohen"))
    alone = against_the_rest(Labels.of(["ann", "bob"], [1, 2], [0, 1]))
    assert alone["ann"].reason == "nobody else labelled its items"
    assert against_the_rest(Labels.of(["ann"], [1], [0]))["ann"].reason == "there is no other rater"
    with pytest.raises(ConventionError, match="krippendorff does not tell two sides apart: take cohen, scott"):
        against_the_rest(labels, "alpha")


def test_agreement_rises_without_the_rater_who_guesses():
    table = [*table_of(3), np.random.default_rng(9).integers(0, 4, 60).tolist()]
    labels = Labels.of_table(table)
    found = without_each(labels, "alpha", resamples=0)
    assert max(found, key=lambda rater: found[rater].value) == 3
    assert found[3].value > value(labels, "alpha") > found[0].value


def test_repeats_are_for_agreement_with_oneself_and_first_labels_for_the_rest():
    lines = [
        ("ann", "x", 0),
        ("ann", "x", 1),
        ("ann", "y", 1),
        ("ann", "y", 1),
        ("bob", "x", 0),
        ("bob", "y", 0),
        ("bob", "z", 1),
    ]
    labels = Labels.of(*zip(*lines, strict=True))
    assert labels.repeated == 2
    assert labels.missing == 1
    own = with_oneself(labels, "raw", resamples=0)
    assert {name: one.value for name, one in own.items()} == {"ann": 0.5}
    others = agreement(labels, "raw", resamples=0)
    assert (others.value, others.items, others.repeated) == (0.5, 2, 2)
    assert confusion(labels).tolist() == [[1, 0], [1, 0]]
    assert base_rates(labels).tolist() == [[1, 3], [2, 1]]


def test_agreement_on_each_label_by_hand():
    found = by_label(Labels.of_counts([[2, 1, 0], [3, 0, 0], [0, 1, 0]], "abc"), resamples=0)
    assert found["a"].value == pytest.approx((2 + 6) / (2 * 2 + 3 * 2))
    assert found["b"].value == 0
    assert found["c"].reason == "nobody gave the label c to an item with two labels"
    assert str(found["a"].coefficient) == "specific agreement"


# labels


def test_labels_that_cannot_be_read_are_refused():
    with pytest.raises(DataError, match="label 7 is not on the scale 0, 1"):
        Labels.of([1], [1], [7], [0, 1])
    with pytest.raises(DataError, match="names a label twice"):
        Labels.of([1], [1], [0], [0, 0])
    with pytest.raises(DataError, match="three columns of one length, found 1, 2, 1"):
        Labels.of([1], [1, 2], [0])
    with pytest.raises(DataError, match="rows of one length"):
        Labels.of_table([[1], [1, 2]])
    with pytest.raises(DataError, match="square table of counts, found 1 × 2"):
        Labels.of_confusion([[1, 2]])
    with pytest.raises(DataError, match="expected two raters, found 3"):
        confusion(Labels.of_table([[0], [0], [1]]))
    with pytest.raises(DataError, match="no rater 'cy'; there are ann, bob"):
        Labels.of(["ann", "bob"], [1, 1], [0, 0]).of_raters("ann", "cy")
    with pytest.raises(DataError, match="level must be between 0 and 1"):
        agreement(TWO, level=95)
    with pytest.raises(DataError, match="no coefficient 'gamma'; there are raw, cohen"):
        agreement(TWO, "gamma")


def test_a_label_that_is_none_or_nan_was_not_given():
    rows = [[0, None, 1], [0.0, 1.0, math.nan]]
    assert len(Labels.of_table(rows)) == 4
    columns = [np.array([0, 0, 1]), np.array([5, 6, 5]), np.array([1.0, math.nan, 2.0])]
    assert Labels.of(*columns).items == (5,)
    assert Labels.of(np.array(["a", "b"]), [1, 1], np.array([1, 2])).raters == ("a", "b")
    assert Labels.of([1, "a"], [1, 1], [0, 1]).raters == (1, "a")


# intervals


def test_an_interval_repeats_and_narrows_with_more_items():
    few, many = (agreement(Labels.of_confusion(np.array([[20, 5], [10, 15]]) * times), "cohen") for times in (1, 20))
    assert few == agreement(Labels.of_confusion([[20, 5], [10, 15]]), "cohen")
    assert few.low < many.low < many.value < many.high < few.high
    other = agreement(Labels.of_confusion([[20, 5], [10, 15]]), "cohen", rng=np.random.default_rng(5))
    assert other.low == pytest.approx(few.low, abs=0.05)
    assert other.low != few.low


def test_an_interval_says_what_limits_it():
    perfect = agreement(Labels.of_confusion([[20, 0], [0, 20]]), "cohen")
    assert (perfect.value, perfect.doubts) == (1, ("no disagreement was seen: no interval",))
    alike_all = agreement(Labels.of_confusion([[0, 20], [0, 0]]), "raw")
    assert alike_all.doubts == ("all items were labelled in the same way: no interval",)
    few = agreement(Labels.of_confusion([[9, 1], [1, 1]]), "cohen")
    assert (
        few.doubts[0]
        == "12 items: with fewer than 50, an interval contains the true value less often than its level says"
    )
    assert "of 1,000 resamples have no value" in few.doubts[1]
    assert agreement(TWO, "cohen").doubts == ()


def test_resamples_by_items_and_by_patterns_are_of_one_kind():
    many = Patterns(np.array([900.0, 100.0]), np.eye(2) * 2)
    few = Patterns(np.array([9.0, 1.0]), np.eye(2) * 2)
    for patterns in (many, few):
        rng = np.random.default_rng(0)
        draws = np.concatenate(list(patterns.resamples(4000, rng)))
        items = patterns.times.sum()
        assert (draws.sum(axis=1) == items).all()
        assert draws[:, 1].mean() == pytest.approx(0.1 * items, rel=0.05)
        assert draws[:, 1].var() == pytest.approx(0.09 * items, rel=0.1)


def test_many_patterns_do_without_acceleration(monkeypatch):
    from cranfield.stats import agreement as module

    labels = Labels.of_table(table_of(6))
    one = coefficient("alpha")
    patterns = one.patterns(labels)
    with_it = interval_of(one, patterns, labels.scale, 500, 0.95, np.random.default_rng(0))
    monkeypatch.setattr(module, "MANY_PATTERNS", 2)
    without = interval_of(one, patterns, labels.scale, 500, 0.95, np.random.default_rng(0))
    assert without != with_it
    assert without.low == pytest.approx(with_it.low, abs=0.03)


def test_patterns_of_many_labels_are_told_apart_row_by_row():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (50, 80))
    patterns = Patterns.of(np.ones(100, bool), np.vstack([rows, rows]))
    assert len(patterns.times) == 50
    assert set(patterns.times) == {2}


def held(name: str, items: int, trials: int, resamples: int) -> float:
    """How often the interval of two raters on a scale of four, where one label prevails, holds the true value."""
    right = 0.15 / 3 + 0.8 * np.eye(4)
    rates = np.array([0.8, 0.12, 0.05, 0.03])
    chances = np.einsum("t,ta,tb->ab", rates, right, right)
    one = coefficient(name)
    truth = value(Labels.of_confusion(np.rint(chances * 2e4).astype(int)), name)
    rng = np.random.default_rng(4)
    found = []
    for _ in range(trials):
        labels = Labels.of_confusion(rng.multinomial(items, chances.ravel()).reshape(4, 4))
        found.append(interval_of(one, one.patterns(labels), labels.scale, resamples, 0.95, rng))
    return float(np.mean([each.low <= truth <= each.high for each in found]))


def test_an_interval_over_topics_against_labels_without_each_topic():
    labels = Labels.of_table(table_of(3))
    cluster_of = {item: item % 7 for item in labels.items}
    found = agreement(labels, "ac1", cluster_of=cluster_of)
    rest = [
        agreement(labels.only(labels.item % 7 != topic), "ac1", resamples=0).value for topic in range(7)
    ]  # items are 0, 1, 2 …
    estimate = jackknife(np.log1p(-found.value), np.log1p(-np.array(rest)), log=True)
    assert found.clusters == 7
    assert found.high - found.low == pytest.approx(float(np.diff(estimate.interval(0.95))[0]), rel=0.2)
    assert found.low < -float(estimate.interval(0.95)[1]) + 1e-9  # fewer degrees of freedom, as sizes differ
    assert agreement(labels, "ac1", cluster_of=cluster_of, level=0.5).low > found.low
    assert agreement(labels, "ac1", cluster_of=dict.fromkeys(labels.items, 1)) == agreement(labels, "ac1")


def test_topics_with_one_label_a_document_count_for_nothing_but_rates():
    lines = [(who, (t, d), (d + t * (who == "b")) % 2) for t in range(4) for d in range(5) for who in "ab"]
    more = [*lines, *(("a", (t, 0), 1) for t in range(10, 60))]
    for name in ("raw", "cohen", "ac1", "krippendorff"):
        few, many = (
            agreement(labels := Labels.of(*zip(*each, strict=True)), name, cluster_of={i: i[0] for i in labels.items})
            for each in (lines, more)
        )
        assert few.clusters == many.clusters == 4
        if name != "ac1":
            assert (few.low, few.high) == (many.low, many.high)


def test_an_interval_over_topics_says_why_there_is_none():
    def found(*topics: list[tuple[int, int]], name: str = "cohen") -> Any:
        lines = [
            (who, (t, d), label)
            for t, pairs in enumerate(topics)
            for d, pair in enumerate(pairs)
            for who, label in enumerate(pair)
        ]
        labels = Labels.of(*zip(*lines, strict=True))
        return agreement(labels, name, cluster_of={item: item[0] for item in labels.items})

    agreed, apart = [(0, 0), (1, 1)], [(0, 1), (1, 1), (0, 0)]
    assert found(agreed, agreed).doubts == ("no disagreement was seen: no interval",)
    assert found(agreed, apart).doubts == ("one cluster alone has all disagreement: no interval",)
    assert found(apart, apart, apart).doubts == ("all clusters agree alike: no interval",)
    assert found([(0, 0), (0, 0)], apart).doubts == ("without one of the clusters there is no value: no interval",)


def test_raters_one_by_one_have_intervals_over_topics():
    two = Labels.of_table(table_of(2))
    cluster_of = {item: item % 5 for item in two.items}
    alone = agreement(two, "cohen", cluster_of=cluster_of)
    for found in (against_the_rest(two, cluster_of=cluster_of)[0], by_pair(two, cluster_of=cluster_of)[0, 1]):
        assert (found.clusters, found.low, found.high) == pytest.approx((5, alone.low, alone.high))
    one, again = table_of(2)
    items = [*range(60)] * 2
    repeated = Labels.of(["ann"] * 120, items, [*one, *again])
    own = with_oneself(repeated, "fleiss", cluster_of=cluster_of)["ann"]
    other = agreement(two, "fleiss", cluster_of=cluster_of)
    assert (own.clusters, own.low, own.high) == pytest.approx((5, other.low, other.high))


def test_blocks_of_topics_give_the_same_interval(monkeypatch):
    from cranfield.stats import agreement as module

    labels = Labels.of_table(table_of(3))
    cluster_of = {item: item % 7 for item in labels.items}
    whole = agreement(labels, "alpha", cluster_of=cluster_of)
    monkeypatch.setattr(module, "BLOCK", 1)
    assert agreement(labels, "alpha", cluster_of=cluster_of) == whole


@pytest.mark.parametrize("world", ["all effects", "very unequal topics"])
def test_intervals_over_topics_hold_in_a_simulation(world, monkeypatch):
    monkeypatch.setattr(simulated, "POPULATION", 6_000)
    names = ["raw", "cohen(weights=quadratic)", "ac2", "krippendorff(metric=ordinal)"]
    for name, one in simulated.coverage(simulated.WORLDS[world], 25, 200, names).items():
        assert one.held >= 0.9, name
        assert one.without == 0


@pytest.mark.slow
@pytest.mark.parametrize("world", simulated.WORLDS)
def test_intervals_over_topics_hold_for_every_coefficient_and_kind_of_topic_in_many_trials(world):
    for topics in (25, 50):
        for name, one in simulated.coverage(simulated.WORLDS[world], topics, 2000, all_forms()).items():
            assert one.held >= 0.93, (topics, name)
            assert one.without == 0


@pytest.mark.parametrize("name", ["cohen", "krippendorff(metric=ordinal)"])
def test_intervals_hold_as_often_as_they_say(name):
    assert 0.9 <= held(name, 100, 200, 300) <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_intervals_hold_as_often_as_they_say_in_many_trials(name):
    assert 0.92 <= held(name, 100, 1000, 1000) <= 0.98


NAN = float("nan")


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (-0.3, -0.5, -0.1, "worse than chance"),
        (-0.3, -0.5, 0.0, "no better than chance"),
        (-0.3, NAN, NAN, "no better than chance"),
        (0.0, -0.2, 0.2, "no better than chance"),
        (0.01, -0.2, 0.2, "not shown to be better than chance"),
        (0.9, 0.0, 1.0, "not shown to be better than chance"),
        (0.9, 1e-9, 1.0, "high, perhaps only low"),
        (0.01, 1e-9, 0.2, "low, but better than chance"),
        (0.6669, 0.5, 0.7, "low, but better than chance"),
        (0.5, NAN, NAN, "low"),
        (0.667, 0.667, 0.8, "moderate"),
        (0.667, 0.6669, 0.8, "moderate, perhaps only low"),
        (0.7999, 0.7, 0.9, "moderate"),
        (0.8, 0.8, 0.9, "high"),
        (0.8, 0.7999, 0.9, "high, perhaps only moderate"),
        (1.0, NAN, NAN, "high"),
    ],
)
def test_words_follow_the_limits_of_krippendorff_and_the_interval(value, low, high, words):
    assert agreement_in_words(Agreement("krippendorff(metric=ordinal)", value, low, high)) == words


@pytest.mark.parametrize("form", all_forms())
def test_only_a_coefficient_that_is_corrected_for_chance_and_has_a_value_has_words(form):
    assert bool(agreement_in_words(Agreement(form, 0.9, 0.85, 0.95))) == coefficient(form).corrected
    assert agreement_in_words(Agreement(form, NAN, reason="one rater only")) == ""

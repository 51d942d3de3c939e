"""Consensus of raters: promises over all methods, examples by hand, crowd labels with known truth."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import ConventionError, DataError
from cranfield.stats.consensus.method import METHODS, OPEN, TIES, ConsensusLabels
from cranfield.stats.consensus.preference import METHODS_OF_PREFERENCES, PairwisePreferences
from cranfield.stats.ratings import Labels
from hypotheses import examples

if TYPE_CHECKING:
    from pathlib import Path

EVERY = list(METHODS)


def decided(name: str, labels: Labels, **how: Any) -> ConsensusLabels:
    """A method's verdict; what needs gold knows the first item's label."""
    method = METHODS.named(name)
    gold = {labels.items[0]: labels.scale.names[int(labels.label[0])]} if method.needs_gold else None
    return method.decide(labels, **{"gold": gold, **how})


def accuracy(verdict, truth) -> float:
    """The share of right labels among items with a known truth; a tie counts with its expected accuracy."""
    place = {name: code for code, name in enumerate(verdict.scale.names)}
    rows = [(verdict.best[row], place.get(truth[item])) for row, item in enumerate(verdict.items) if item in truth]
    return math.fsum(best[code] / best.sum() for best, code in rows if code is not None) / len(rows)


def raters_of(skills: list[float], items: int = 200, seed: int = 0) -> tuple[Labels, dict[int, int]]:
    """Raters who are right so often, else anything of three labels; and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, items, p=[0.6, 0.3, 0.1])
    guesses = rng.integers(0, 3, (len(skills), items))
    said = np.where(rng.random(guesses.shape) < np.array(skills)[:, None], truth, guesses)
    return Labels.of_table(said.tolist(), range(3)), dict(enumerate(truth.tolist()))


# promises


@pytest.mark.parametrize("name", EVERY)
def test_what_all_agree_on_stands(name):
    row = [0, 2, 1, 2, 2, 0, 3, 0, 0, 0, 0, 0]
    labels = Labels.of_table([row, [*row[:6], *[None] * 6], [None] * 6 + row[6:]])
    for ties in TIES:
        assert list(decided(name, labels, ties=ties).labels.values()) == row


@examples(30)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sets(st.integers(0, 4), min_size=1)), min_size=1),
    st.sampled_from([*EVERY, "mace(rates=even)"]),
)
def test_what_all_agree_on_stands_whoever_labelled_it(items, name):
    lines = [(rater, item, label) for item, (label, raters) in enumerate(items) for rater in raters]
    verdict = decided(name, Labels.of(*zip(*lines, strict=True)), ties="open")
    assert list(verdict.labels.values()) == [label for label, _ in items]


tables = st.lists(st.lists(st.none() | st.integers(0, 2), min_size=6, max_size=6), min_size=1, max_size=5).filter(
    lambda table: any(label is not None for row in table for label in row)
)


@examples(40)
@given(tables, st.sampled_from([*EVERY, "mace(rates=even)"]))
def test_an_item_s_unanimous_label_stands_where_that_is_promised(table, name):
    labels = Labels.of_table(table)
    verdict = decided(name, labels)
    if METHODS.named(name).keeps_unanimity != "of an item" and name != "mace(rates=even)":
        return
    for item, label in verdict.labels.items():
        given_labels = {row[item] for row in table} - {None}
        assert len(given_labels) > 1 or label in given_labels


@examples(40)
@given(tables, st.sampled_from(EVERY), st.sampled_from(TIES))
def test_a_verdict_is_whole(table, name, ties):
    labels = Labels.of_table(table)
    verdict = decided(name, labels, ties=ties)
    assert verdict.posterior.sum(axis=1) == pytest.approx(np.ones(len(labels.items)))
    assert (verdict.posterior >= 0).all()
    assert verdict.best.any(axis=1).all()
    # a few labels that decide little leave a flat likelihood, on which EM goes on to its last pass and says so
    assert verdict.converged or (name == "dawid-skene" and verdict.iterations == METHODS.named(name).passes)
    per_rater = np.bincount(labels.rater, minlength=len(labels.raters))
    assert verdict.confusion.sum(axis=(1, 2)) == pytest.approx(per_rater)
    assert (verdict.code == OPEN).sum() == (verdict.tied if ties == "open" else 0)
    if verdict.reliability is not None:
        assert ((verdict.reliability > 0) & (verdict.reliability < 1)).all()


@pytest.mark.parametrize("name", EVERY)
def test_names_and_the_order_of_lines_do_not_matter(name):
    labels, _ = raters_of([0.9, 0.7, 0.5, 0.2])
    rng = np.random.default_rng(3)
    order, raters, items = (rng.permutation(n) for n in (len(labels), len(labels.raters), len(labels.items)))
    gold = {0: 1, 1: 0, 2: 2}
    renamed = Labels.of(raters[labels.rater[order]], items[labels.item[order]], labels.label[order])
    verdict = METHODS.named(name).decide(labels, gold=gold)
    again = METHODS.named(name).decide(renamed, gold={int(items[item]): label for item, label in gold.items()})
    assert again.labels == {int(items[item]): label for item, label in verdict.labels.items()}
    assert again.posterior[items] == pytest.approx(verdict.posterior, abs=1e-6)
    assert again.confusion[raters] == pytest.approx(verdict.confusion, abs=1e-4)


@pytest.mark.parametrize("name", EVERY)
def test_lines_in_another_order_give_the_same_to_the_bit(name):
    labels, _ = raters_of([0.9, 0.7, 0.5])
    order = np.random.default_rng(3).permutation(len(labels))
    again = Labels.of(labels.rater[order], labels.item[order], labels.label[order])
    assert np.array_equal(decided(name, labels).posterior, decided(name, again).posterior)


@pytest.mark.parametrize("name", EVERY)
def test_gold_stands_whatever_raters_say(name):
    labels = Labels.of_table([[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 1, 0]], [0, 1, 2])
    verdict = METHODS.named(name).decide(labels, gold={0: 2})
    assert verdict.labels[0] == 2
    assert verdict.posterior[0].tolist() == [0, 0, 1]
    assert verdict.value[0] == 2


@pytest.mark.parametrize("name", EVERY)
def test_labels_may_be_words_unless_numbers_are_needed(name):
    labels = Labels.of_table([["no", "yes", "no"], ["no", "yes", "yes"], ["no", "yes", "no"]], ["no", "maybe", "yes"])
    if METHODS[name].needs_numbers:
        with pytest.raises(DataError, match="mean needs numbers for labels, found no"):
            decided(name, labels)
        return
    verdict = decided(name, labels)
    assert [verdict.labels[item] for item in (0, 1)] == ["no", "yes"]
    assert np.isnan(verdict.value).all()


@pytest.mark.parametrize("name", EVERY)
def test_one_item_of_one_rater_and_none_at_all(name):
    one = Labels.of(["ann"], ["x"], [1], [0, 1])
    assert METHODS.named(name).decide(one, gold={"y": 0}).labels == {"x": 1}
    none = Labels.of([], [], [], [0, 1])
    assert METHODS.named(name).decide(none, gold={"y": 0}).labels == {}


@pytest.mark.parametrize("name", [name for name in EVERY if METHODS[name].models_raters])
def test_a_model_of_raters_does_no_worse_than_the_vote_where_raters_differ(name):
    labels, truth = raters_of([0.95, 0.9, 0.1, 0.1, 0.1], 400)
    gold = {item: truth[item] for item in range(40)}
    rest = {item: label for item, label in truth.items() if item not in gold}
    vote = accuracy(METHODS.named("majority").decide(labels), rest)
    assert accuracy(METHODS.named(name).decide(labels, gold=gold), rest) > vote


@pytest.mark.parametrize("name", EVERY)
def test_a_method_says_what_it_is(name):
    method = METHODS[name]
    assert len(method.about().split()) > 5
    assert method.title
    for alias in method.aliases:
        assert METHODS.named(alias).name == name


# by hand


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("majority", [0, 0, 2], {"lower": 0, "higher": 0, "open": 0}),
        ("majority", [0, 0, 2, 2], {"lower": 0, "higher": 2, "open": None}),
        ("median", [0, 1, 2], {"lower": 1, "higher": 1, "open": 1}),
        ("median", [0, 0, 2, 2], {"lower": 0, "higher": 2, "open": None}),
        ("median", [0, 0, 0, 2], {"lower": 0, "higher": 0, "open": 0}),
        ("mean", [0, 1, 1, 0], {"lower": 0, "higher": 1, "open": None}),
        ("mean", [0, 2, 2], {"lower": 1, "higher": 1, "open": 1}),
        ("max", [0, 1, 1], {"lower": 1, "higher": 1, "open": 1}),
        ("min", [0, 1, 1], {"lower": 0, "higher": 0, "open": 0}),
    ],
)
def test_small_votes_by_hand(name, given, expected):
    labels = Labels.of_table([[label] for label in given], [0, 1, 2])
    found = {ties: decided(name, labels, ties=ties).labels[0] for ties in TIES}
    assert found == expected
    value = decided(name, labels).value[0]
    assert value == expected["lower"]
    if name == "mean":
        assert decided("mean(round=no)", labels).value[0] == pytest.approx(sum(given) / len(given))


def test_a_tie_left_open_has_no_value():
    labels = Labels.of_table([[0], [1]])
    assert math.isnan(decided("majority", labels, ties="open").value[0])
    with pytest.raises(ConventionError, match=r"ties must be lower \| higher \| open, got random"):
        decided("majority", labels, ties="random")


def test_gold_weights_by_hand():
    """Ann is right of gold, bob and cy are wrong: she outvotes both."""
    labels = Labels.of_table([[1, 1, 0, 1], [0, 0, 1, 0], [0, 0, 1, 0]], [0, 1])
    verdict = METHODS.named("gold-weighted(smoothing=0)").decide(labels, gold={0: 1, 1: 1, 2: 0})
    assert verdict.labels[3] == 1
    assert verdict.reliability == pytest.approx([1, 0, 0], abs=1e-5)
    smooth = METHODS.named("gold").decide(labels, gold={0: 1, 1: 1, 2: 0})
    assert smooth.reliability == pytest.approx([(3 + 2 / 3) / 5, (2 / 3) / 5, (2 / 3) / 5])
    alone = METHODS.named("gold").decide(Labels.of_table([[1, 0], [0, 0]]), gold={0: 1})
    assert alone.labels[1] == 0
    with pytest.raises(ConventionError, match="gold-weighted needs gold: true labels of some items"):
        METHODS.named("gold").decide(labels)
    with pytest.raises(DataError, match="gold of item 0: label 7 is not on the scale"):
        METHODS.named("gold").decide(labels, gold={0: 7})


def test_dawid_and_skene_turn_round_who_errs_in_a_steady_way():
    labels, truth = raters_of([0.9, 0.9, 0.9, 1.0], 300)
    turned = np.where(labels.rater == 3, 2 - labels.label, labels.label)
    verdict = METHODS.named("dawid-skene").decide(Labels.of(labels.rater, labels.item, turned))
    assert accuracy(verdict, truth) > 0.97
    assert verdict.confusion[3].argmax(axis=1).tolist() == [2, 1, 0]


def test_who_does_not_converge_says_so():
    labels, _ = raters_of([0.9, 0.6, 0.5])
    for name in ("dawid-skene(passes=1)", "mace(passes=1)"):
        verdict = METHODS.named(name).decide(labels)
        assert (verdict.iterations, verdict.converged) == (1, False)


def test_repeats_count_once():
    labels = Labels.of(["ann", "ann", "bob", "cy"], ["x"] * 4, [1, 1, 0, 0])
    verdict = METHODS.named("majority").decide(labels)
    assert (verdict.labels, verdict.repeated) == ({"x": 0}, 1)


# crowd labels with known truth


def crowd(folder: Path) -> tuple[Labels, dict[str, int]]:
    with (folder / "answer.csv").open(encoding="utf-8") as file:
        lines = [(line["worker"], line["question"], int(line["answer"])) for line in csv.DictReader(file)]
    with (folder / "truth.csv").open(encoding="utf-8") as file:
        truth = {line["question"]: int(line["truth"]) for line in csv.DictReader(file)}
    return Labels.of(*zip(*lines, strict=True)), truth


@pytest.mark.parametrize(
    ("folder", "name", "least", "most"),
    [
        ("d_jn-product", "majority", 0.8966, 0.8966),
        ("d_jn-product", "dawid-skene", 0.939, 1),
        ("d_jn-product", "mace", 0.935, 1),
        ("s4_Dog data", "majority", 0.8222, 0.8222),
        ("s4_Dog data", "dawid-skene", 0.842, 1),
        ("s4_Dog data", "mace", 0.83, 1),
        ("s4_Dog data", "mace(rates=even)", 0.83, 1),
        ("d_Duck Identification", "dawid-skene", 0.898, 1),
        ("s4_Face Sentiment Identification", "mace(rates=even)", 0.66, 1),
    ],
)
def test_accuracy_on_crowd_labels_against_the_truth(shared, folder, name, least, most):
    labels, truth = crowd(shared / "crowd-truth-infer" / folder)
    verdict = METHODS.named(name).decide(labels)
    assert least <= round(accuracy(verdict, truth), 4) <= most
    assert verdict.converged


# preferences

WINS = [("a", "b")] * 3 + [("b", "a")] + [("b", "c")] * 2 + [("c", "b")]


@pytest.mark.parametrize("name", METHODS_OF_PREFERENCES)
def test_names_and_order_of_preferences_do_not_matter(name):
    method = METHODS_OF_PREFERENCES.named(name)
    one = method.strengths(PairwisePreferences.of(WINS, [("a", "c")]))
    new = {"a": "z", "b": "x", "c": "y"}
    other = method.strengths(PairwisePreferences.of([(new[w], new[v]) for w, v in reversed(WINS)], [("y", "z")]))
    strength = dict(zip(other.items, other.strength, strict=True))
    assert [strength[new[item]] for item in one.items] == pytest.approx(one.strength, abs=1e-7)


@pytest.mark.parametrize("name", [*METHODS_OF_PREFERENCES, "bradley-terry(prior=0)"])
def test_who_wins_more_of_the_same_comparisons_is_stronger(name):
    found = METHODS_OF_PREFERENCES.named(name).strengths(PairwisePreferences.of(WINS, [("a", "c")]))
    assert list(np.argsort(-found.strength)) == [0, 1, 2]
    assert found.converged
    assert found.components == [("a", "b", "c")]
    assert np.isfinite(found.strength).all()


def test_bradley_and_terry_against_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    true = rng.normal(0, 1, 8)
    pairs = [tuple(rng.choice(8, 2, replace=False).tolist()) for _ in range(400)]
    wins = [(i, j) if rng.random() < 1 / (1 + math.exp(true[j] - true[i])) else (j, i) for i, j in pairs]
    found = METHODS_OF_PREFERENCES.named("bt(prior=0)").strengths(PairwisePreferences.of(wins))
    rows = np.zeros((400, 8))
    for row, (winner, loser) in zip(rows, wins, strict=True):
        row[winner], row[loser] = 1, -1
    model = LogisticRegression(C=1e9, fit_intercept=False, tol=1e-10, max_iter=10_000)
    model.fit(np.vstack([rows, -rows]), [1] * 400 + [0] * 400)
    assert found.strength == pytest.approx(model.coef_[0] - model.coef_[0].mean(), abs=1e-4)


def test_the_undefeated_has_no_strength_without_a_prior():
    wins = [("top", "a"), ("top", "b"), ("a", "b"), ("b", "a"), ("a", "low")]
    likeliest = METHODS_OF_PREFERENCES.named("bt(prior=0)").strengths(PairwisePreferences.of(wins))
    assert likeliest.components[0] == ("a", "b")
    assert sorted(likeliest.components[1:]) == [("low",), ("top",)]
    assert not likeliest.comparable
    assert likeliest.strength == pytest.approx([0, 0, 0, 0], abs=1e-7)
    found = METHODS_OF_PREFERENCES.named("bt").strengths(PairwisePreferences.of(wins))
    assert found.comparable
    strength = dict(zip(found.items, found.strength, strict=True))
    assert strength["top"] > strength["a"] > strength["b"] > strength["low"]
    assert found.components == likeliest.components


def test_a_prior_by_hand():
    """One win and a comparison with an item of strength 0 for each: 1½ − s(2x) − s(x) = 0 at x."""
    found = METHODS_OF_PREFERENCES.named("bradley-terry").strengths(PairwisePreferences.of([("a", "b")]))
    x = found.strength[0]
    assert found.strength[1] == pytest.approx(-x)
    assert pytest.approx(1 / (1 + math.exp(-2 * x)) + 1 / (1 + math.exp(-x))) == 1.5


@pytest.mark.parametrize("name", [*METHODS_OF_PREFERENCES, "bradley-terry(prior=0)"])
def test_ties_alone_leave_all_alike_and_no_preference_gives_nothing(name):
    method = METHODS_OF_PREFERENCES.named(name)
    tied = method.strengths(PairwisePreferences.of([], [("a", "b"), ("b", "c")])).strength
    assert np.ptp(tied) == pytest.approx(0)
    empty = method.strengths(PairwisePreferences.of([]))
    assert (len(empty.strength), empty.components) == (0, [])


pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] != pair[1]), max_size=25)


@examples(40)
@given(pairs, pairs, st.sampled_from([0, 0.1, 1]))
def test_strengths_are_finite_and_converge(wins, ties, prior):
    preferences = PairwisePreferences.of(wins, ties)
    found = METHODS_OF_PREFERENCES.named(f"bt(prior={prior})").strengths(preferences)
    assert found.converged
    assert np.isfinite(found.strength).all()
    assert len(preferences) == len(wins) + len(ties)


def test_steps_that_run_out_are_said():
    found = METHODS_OF_PREFERENCES.named("bt(passes=1)").strengths(PairwisePreferences.of(WINS))
    assert (found.iterations, found.converged) == (1, False)


def test_an_item_is_not_compared_with_itself():
    with pytest.raises(DataError, match="item 'a' is compared with itself"):
        PairwisePreferences.of([("a", "a")])

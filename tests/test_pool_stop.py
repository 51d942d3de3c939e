"""When to stop: what is still unfound, and the measures of effort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.errors import ConventionError
from cranfield.formats.judgments import Judgment
from cranfield.formats.pools import Item
from cranfield.pool.make import pool
from cranfield.pool.stop import effort_for, from_curve, from_sample, knee, ncg, stopping, wss

ORDERS = st.lists(st.booleans(), min_size=1, max_size=40).map(lambda flags: np.array(flags, bool))


def items(n: int) -> list[Item]:
    return [Item("q", f"d{i}", i + 1, ("r",), i + 1) for i in range(n)]


def labels(flags: list[bool]) -> list[Judgment]:
    return [Judgment("q", f"d{i}", float(flag)) for i, flag in enumerate(flags)]


def test_a_pool_that_is_judged_stops() -> None:
    [found] = stopping(labels([True, False, False]), items(3))
    assert (found.stop, found.method, found.unfound, found.recall) == (True, "complete", 0.0, 1.0)


def test_a_few_labels_say_nothing() -> None:
    [found] = stopping(labels([True] * 3), items(50))
    assert (found.stop, found.high) == (False, 47.0)
    assert found.recall_low == 3 / 50
    assert "fewer than 10 labels" in found.reason


def test_a_curve_that_has_flattened_stops_and_one_that_climbs_does_not() -> None:
    [flat] = stopping(labels([True] * 30 + [False] * 270), items(350))
    [steep] = stopping(labels([True, False] * 50), items(350))
    assert flat.stop
    assert flat.recall > 0.9 > flat.recall_low
    assert not steep.stop
    assert steep.unfound > 50


@pytest.mark.parametrize("strategy", ["sample(rate=0.2)", "stratified(strata=20:1/200:0.2)", "weighted(rate=0.2)"])
def test_the_interval_of_a_sample_covers_the_truth_in_simulation(strategy: str) -> None:
    """200 documents, more relevant ones at the top; the interval is to hold the number unfound 95 times in 100."""
    rng = np.random.default_rng(0)
    runs = {"r": {"q": {f"d{i:03}": 200.0 - i for i in range(200)}}}
    inside, estimates, truths = [], [], []
    for seed in range(150):
        relevant = rng.random(200) < np.linspace(0.5, 0.02, 200)
        made = pool(runs, strategy=strategy, depth=200, seed=seed)
        drawn = {item.document: float(relevant[int(item.document[1:])]) for item in made if item.priority}
        truth = relevant.sum() - sum(drawn.values())
        unfound, low, high = from_sample(made.items, drawn)
        inside.append(low <= truth <= high)
        estimates.append(unfound)
        truths.append(truth)
    assert np.mean(inside) >= 0.9
    assert np.mean(estimates) == pytest.approx(np.mean(truths), rel=0.08)


def test_the_interval_of_a_curve_covers_what_a_power_law_brings_in_simulation() -> None:
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(200):
        rate = np.minimum(1, 12 * 0.5 * np.arange(1, 401) ** -0.5 / 2)  # the rate falls as the root of the effort
        flags = rng.random(400) < rate
        _, low, high = from_curve(flags[:120], 400)
        inside.append(low <= flags[120:].sum() <= high)
    assert np.mean(inside) >= 0.9


def test_no_find_so_far_leaves_what_the_rule_of_three_leaves() -> None:
    unfound, low, high = from_curve(np.zeros(100, bool), 200)
    assert (unfound, low) == (0.0, 0.0)
    assert high == pytest.approx(-np.log(0.025))


def test_a_curve_at_random_is_continued_at_its_rate() -> None:
    unfound, low, high = from_curve(np.tile([True, False, False, False], 50), 400)
    assert unfound == pytest.approx(50, rel=0.1)
    assert low < 50 < high


def test_the_knee_of_cormack_and_grossman_by_hand() -> None:
    """Fifty finds, then nothing: the slope must fall by 156 - 50 = 106 times: 1 over 1 / 106 after 106 idle documents."""
    assert not knee(np.array([True] * 50 + [False] * 105))
    assert knee(np.array([True] * 50 + [False] * 106))
    assert not knee(np.array([False] * 20))
    assert not knee(np.array([True]))


# effort


@given(flags=ORDERS, recall=st.floats(0.05, 1))
def test_the_effort_for_a_recall_against_counting(flags: np.ndarray, recall: float) -> None:
    total = flags.sum()
    wanted = [n for n in range(len(flags) + 1) if flags[:n].sum() >= recall * total - 1e-9]
    assert effort_for(flags, recall) == (wanted[0] if total else 0)


@given(flags=ORDERS, recall=st.floats(0.05, 1))
def test_work_saved_over_sampling_against_the_formula_of_cohen(flags: np.ndarray, recall: float) -> None:
    """(TN + FN) / N - (1 - recall), with the true and false negatives below the cut."""
    cut = effort_for(flags, recall)
    negatives = len(flags) - cut
    assert wss(flags, recall) == pytest.approx(negatives / len(flags) - (1 - recall))


@given(flags=ORDERS, effort=st.integers(1, 40))
def test_normalised_cumulative_gain_against_its_ratio(flags: np.ndarray, effort: int) -> None:
    best = np.sort(flags)[::-1]
    if flags.any():
        assert ncg(flags, effort) == flags[:effort].sum() / best[:effort].sum()
    else:
        assert ncg(flags, effort) == 0


def test_the_table_counts_hours_and_costs() -> None:
    text = stopping(labels([True, False] * 10), items(30), seconds=360, price=0.5).to_text()
    assert "0 of 1 topics can stop; 20 judged, up to 10 to go" in text
    assert "2.0 hours spent, up to 1.0 to come; 10.00 spent, up to 5.00 to come" in text


def test_targets_out_of_range_are_refused() -> None:
    with pytest.raises(ConventionError, match="target and level"):
        stopping([], items(1), target=0)
    with pytest.raises(ConventionError, match="target and level"):
        stopping([], items(1), level=1)

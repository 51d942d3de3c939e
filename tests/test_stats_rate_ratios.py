"""Ratios of rates within strata, against hand counts, the full Poisson model and simulations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from cranfield.stats.rate_ratios import StratifiedCounts, connected_levels, rate_ratios


def rows(*columns) -> StratifiedCounts:
    """Rows of (stratum, level, exposure, count, cluster)."""
    stratum, level, exposure, counts, cluster = zip(*columns, strict=True)
    numbers = (np.array(each, np.int64) for each in (stratum, level, cluster))
    s, k, c = numbers
    return StratifiedCounts(s, k, np.array(exposure, float), np.array(counts, float), c)


def drawn(rng: np.random.Generator, strata: int, levels: int, number: int) -> StratifiedCounts:
    """Rows of one view each, with rates 1 / (level + 1) times a rate of the stratum below .7."""
    rate, stratum = rng.uniform(0.05, 0.7, strata), rng.integers(strata, size=number)
    level = (stratum + rng.integers(2, size=number)) % levels  # a stratum has two neighbouring levels
    counts = rng.random(number) < rate[stratum] / (level + 1)
    return StratifiedCounts(stratum, level, np.ones(number), counts.astype(float), np.arange(number) // 3)


def test_one_stratum_against_the_ratio_of_two_rates():
    ratios = rate_ratios(rows((0, 0, 100, 40, 0), (0, 1, 200, 20, 1)), 2, 2)
    assert np.exp(ratios.log) == pytest.approx([1.0, 0.25])
    assert ratios.reference.tolist() == [0, 0]


def test_ratios_within_strata_against_the_poisson_model_with_a_rate_for_each_stratum():
    data = drawn(np.random.default_rng(1), 12, 4, 3_000)

    def loss(parameters: np.ndarray) -> float:
        log = np.concatenate(([0.0], parameters[:3]))[data.level] + parameters[3:][data.stratum]
        return float((data.exposure * np.exp(log) - data.counts * log).sum())

    best = minimize(loss, np.zeros(15), tol=1e-12)
    assert rate_ratios(data, 4, 1_000).log[1:] == pytest.approx(best.x[:3], abs=1e-4)


def test_the_error_of_one_stratum_against_the_delta_method_for_two_proportions():
    counts = [1.0] * 40 + [0.0] * 60 + [1.0] * 15 + [0.0] * 85
    data = rows(*((0, number // 100, 1, count, number) for number, count in enumerate(counts)))
    assert rate_ratios(data, 2, 200).error[1] == pytest.approx(np.sqrt(0.6 / 40 + 0.85 / 15), rel=0.01)


def test_ratios_ignore_the_unit_of_exposure_the_rates_of_strata_and_the_order_of_rows():
    rng = np.random.default_rng(2)
    data = drawn(rng, 30, 5, 4_000)
    whole = rate_ratios(data, 5, 1_400)
    order = rng.permutation(len(data.level))
    shuffled = StratifiedCounts(*(column[order] for column in data))
    for other in (data._replace(exposure=data.exposure * 7), data._replace(stratum=99 - data.stratum), shuffled):
        again = rate_ratios(other, 5, 1_400)
        assert again.log == pytest.approx(whole.log, abs=1e-8)
        assert again.error == pytest.approx(whole.error, abs=1e-8)


def test_levels_without_a_shared_stratum_are_not_compared():
    first = ((0, 0, 9, 3, 0), (0, 1, 9, 2, 1))
    data = rows(*first, *((s + 1, k + 2, *rest) for s, k, *rest in first))
    ratios = rate_ratios(data, 5, 2)
    assert ratios.reference.tolist() == [0, 0, 2, 2, -1]
    assert np.exp(ratios.log)[:4] == pytest.approx([1, 2 / 3, 1, 2 / 3])
    assert np.isnan(ratios.log[4])


def test_counts_at_one_of_two_levels_only_connect_nothing():
    data = rows((0, 0, 9, 3, 0), (0, 1, 9, 0, 1), (1, 1, 9, 2, 0))
    seen, groups = connected_levels(data, 2)
    assert seen.tolist() == [0, 0]
    assert groups.tolist() == [0, 1]


def coverage(runs: int, strata: int, number: int) -> float:
    """The share of 95 % intervals that hold the true ratio."""
    held = []
    for seed in range(runs):
        ratios = rate_ratios(drawn(np.random.default_rng(seed), strata, 4, number), 4, number // 3 + 1)
        if (ratios.reference == 0).all():
            held.append(np.abs(ratios.log + np.log(np.arange(1, 5)))[1:] <= 1.959964 * ratios.error[1:])
    assert len(held) > 0.95 * runs
    return float(np.mean(held))


@pytest.mark.parametrize(("strata", "number"), [(8, 1_500), (1_000, 2_000)])
def test_intervals_cover_the_true_ratios_in_a_simulation(strata, number):
    assert 0.92 <= coverage(200, strata, number) <= 0.98  # ± 2.6 standard errors around the bar


@pytest.mark.slow
@pytest.mark.parametrize(("strata", "number"), [(8, 1_500), (1_000, 2_000), (4_000, 5_000)])
def test_intervals_cover_the_true_ratios_in_the_whole_simulation(strata, number):
    assert 0.93 <= coverage(2_000, strata, number) <= 0.97

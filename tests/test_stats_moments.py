"""Sufficient statistics, against NumPy on the rows themselves."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.base.errors import DataError
from cranfield.stats.moments import Moments


def rows(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(5, 2, n)
    return {"x": x, "y": 3 * x + rng.normal(0, 1, n), "z": rng.poisson(2, n).astype(float)}


def same(one: Moments, other: Moments) -> None:
    assert one.names == other.names
    for a, b in ((one.n, other.n), (one.mean, other.mean), (one.products, other.products)):
        assert a == pytest.approx(b, rel=1e-9, abs=1e-9)


def raw_sums(columns: dict[str, np.ndarray], shift: float = 0.0):
    moved = {name: values - shift for name, values in columns.items()}
    sums = {name: values.sum() for name, values in moved.items()}
    products = {(a, b): moved[a] @ moved[b] for a in moved for b in moved if a <= b}
    return len(next(iter(columns.values()))), sums, products


def test_means_and_covariances_against_numpy():
    columns = rows(50)
    found = Moments.of(**columns)
    assert found.mean == pytest.approx([values.mean() for values in columns.values()])
    assert found.covariance == pytest.approx(np.cov(np.stack(list(columns.values()))))


def test_raw_sums_and_covariances_give_what_the_rows_give():
    columns = rows(50)
    wanted = Moments.of(**columns)
    same(Moments.from_sums(*raw_sums(columns)), wanted)
    names = list(columns)
    covariances = {(a, b): wanted.covariance[i, j] for i, a in enumerate(names) for j, b in enumerate(names)}
    same(Moments.from_covariances(50, dict(zip(names, wanted.mean, strict=True)), covariances), wanted)


@pytest.mark.parametrize("split", [0, 1, 20, 50])
def test_moments_of_parts_add_up_to_those_of_the_whole(split):
    columns = rows(50)
    parts = ({name: values[:split] for name, values in columns.items()}, {n: v[split:] for n, v in columns.items()})
    same(Moments.of(**parts[0]) + Moments.of(**parts[1]), Moments.of(**columns))


def test_parts_far_from_0_keep_their_digits():
    """A billion and a little: raw sums of squares lose all of the variance, centred and shifted ones none."""
    rng = np.random.default_rng(1)
    x = 1e9 + rng.normal(0, 1, 1000)
    wanted = x.var(ddof=1)
    both = Moments.of(x=x[:300]) + Moments.of(x=x[300:])
    assert both.covariance[0, 0] == pytest.approx(wanted, rel=1e-6)
    n, sums, products = raw_sums({"x": x}, shift=1e9)
    shifted = Moments.from_sums(n, sums, products, shift={"x": 1e9})
    assert shifted.covariance[0, 0] == pytest.approx(wanted, rel=1e-9)
    assert shifted.mean[0] == pytest.approx(x.mean(), rel=1e-15)


def test_many_tables_at_once_are_as_one_by_one():
    rng = np.random.default_rng(3)
    x, y = rng.normal(0, 1, (4, 25)), rng.normal(0, 1, (4, 25))
    all_at_once = Moments.of(x=x, y=y) + Moments.of(x=y, y=x)
    for i in range(4):
        one = Moments.of(x=x[i], y=y[i]) + Moments.of(x=y[i], y=x[i])
        assert all_at_once.products[i] == pytest.approx(one.products)
        assert all_at_once.mean[i] == pytest.approx(one.mean)


def test_no_rows_and_one_row_have_no_variance():
    assert np.isnan(Moments.of(x=[]).covariance).all()
    assert np.isnan(Moments.of(x=[4.0]).covariance).all()
    assert Moments.from_sums(0, {"x": 0.0}, {("x", "x"): 0.0}).mean == 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Moments.of(x=[1.0, float("nan")]), "found NaN or infinity in row 2"),
        (lambda: Moments.from_sums(2, {"x": 1.0}, {}), "expected the product of 'x' and 'x'"),
        (lambda: Moments.from_sums(2, {"x": 10.0}, {("x", "x"): 1.0}), "squares of 'x' are smaller"),
        (lambda: Moments.from_sums(2, {"x": float("inf")}, {("x", "x"): 1.0}), "finite sums"),
        (lambda: Moments.from_sums(-1, {"x": 1.0}, {("x", "x"): 1.0}), "a number of rows, found -1"),
        (lambda: Moments.from_sums(1.5, {"x": 1.0}, {("x", "x"): 1.0}), "a number of rows"),
        (lambda: Moments.of(x=[1.0]) + Moments.of(y=[1.0]), "the same columns"),
        (lambda: Moments.of(x=[1.0]).place("y"), "a column of x, found 'y'"),
    ],
)
def test_what_makes_no_sense_is_refused(make, said):
    with pytest.raises(DataError, match=said):
        make()

"""Do two scorings put the same items into the same order? Rank correlations, and Pearson's.

Each takes two sequences of scores of the same items, higher being better. A coefficient that does not exist for its
data (everything tied, a single item) is NaN here, and `undefined` says why in words, so that nobody mistakes a
convention for a result. With ties, the `-a` variants give the expectation over the orders of tied items; the `-b`
variants leave tied pairs out and rescale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from cranfield.stats.ties import Floats


def tau_a(x: Any, y: Any) -> float:
    """Kendall's tau-a: concordant minus discordant pairs, over all pairs; a tied pair is neither.

    >>> round(tau_a([4, 3, 2, 1], [2, 1, 4, 3]), 4)  # A B C D against C D A B: four inversions of six pairs
    -0.3333
    """
    x, y = _two(x, y)
    if len(x) < 2:
        return np.nan
    pairs = len(x) * (len(x) - 1) // 2
    untied = float((pairs - _tied_pairs(x)) * (pairs - _tied_pairs(y)))
    if not untied:
        return 0.0
    return float(np.rint(_kendall(x, y) * untied**0.5) / pairs)


def tau_b(x: Any, y: Any) -> float:
    """Kendall's tau-b: concordant minus discordant pairs, scaled by the pairs that are not tied in either.

    >>> round(tau_b([3, 2, 1], [3, 1, 1]), 4)  # two concordant pairs, one tied in y: 2 / sqrt(3 × 2)
    0.8165
    """
    x, y = _two(x, y)
    return np.nan if _constant(x) or _constant(y) else _kendall(x, y)


def tau_ap(x: Any, y: Any) -> float:
    """AP correlation (Yilmaz, Aslam and Robertson, 2008): x is the truth, y the estimate whose top counts most.

    It is the probability that a random item of y (except the first) and a random item above it are in the right order,
    rescaled to -1 … 1. Neither x nor y may contain ties.

    >>> tau_ap([3, 2, 1], [3, 1, 2])  # the second is right about the first, the third about one of two
    0.5
    """
    x, y = _two(x, y)
    return np.nan if len(x) < 2 or _tied_pairs(x) or _tied_pairs(y) else _tau_ap_a(x, y)


def tau_ap_a(x: Any, y: Any) -> float:
    """AP correlation with ties in the estimate: its expectation over their orders (Urbano and Marrero, 2017).

    >>> tau_ap_a([2, 1], [1, 1])  # either order is as likely: (1 + -1) / 2
    0.0
    """
    x, y = _two(x, y)
    return np.nan if len(x) < 2 or _tied_pairs(x) else _tau_ap_a(x, y)


def tau_ap_b(x: Any, y: Any) -> float:
    """AP correlation with ties in both: the mean of the two directions (Urbano and Marrero, 2017).

    A symmetric coefficient: even without ties it is the mean of `tau_ap(x, y)` and `tau_ap(y, x)`.

    >>> tau_ap_b([3, 2, 2], [3, 2, 2])
    1.0
    """
    x, y = _two(x, y)
    return np.nan if _constant(x) or _constant(y) else (_tau_ap_b(x, y) + _tau_ap_b(y, x)) / 2


def spearman(x: Any, y: Any) -> float:
    """Spearman's rho: Pearson's correlation of the ranks; tied items share the mean of their ranks.

    >>> spearman([4, 3, 2, 1], [2, 1, 4, 3])
    -0.6
    """
    x, y = _two(x, y)
    from scipy.stats import rankdata  # type: ignore[import-untyped, unused-ignore]

    return np.nan if _constant(x) or _constant(y) else pearson(rankdata(x), rankdata(y))


def weighted_tau(x: Any, y: Any) -> float:
    """Weighted tau (Vigna, 2015): a swap of the items at ranks r and s weighs 1/r + 1/s, ranks by x and by y averaged.

    >>> weighted_tau([1, 2, 3], [1, 2, 3])
    1.0
    """
    x, y = _two(x, y)
    if _constant(x) or _constant(y):
        return np.nan
    from scipy.stats import weightedtau  # type: ignore[import-untyped, unused-ignore]

    return float(weightedtau(x, y).statistic)


def pearson(x: Any, y: Any) -> float:
    """Pearson's r: how well a straight line describes y by x.

    >>> pearson([1, 2, 3], [10, 20, 30])
    1.0
    """
    x, y = _two(x, y)
    if _constant(x) or _constant(y) or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return np.nan
    x, y = x - x.mean(), y - y.mean()
    x, y = x / np.abs(x).max(), y / np.abs(y).max()  # tiny and huge scores keep their digits
    r = float((x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()))
    return min(1.0, max(-1.0, r))


def tau_union(first: Sequence[Hashable], second: Sequence[Hashable], names: Sequence[Hashable] | None = None) -> float:
    """Kendall's tau union (Breuer et al., 2020): two lists as positions in their union, correlated place by place.

    The union lists the first list's items in order, then the items that only the second has, so the names of items do
    not matter; `names` is another numbering. Lists of different lengths give NaN. Caution: new items count as being in
    order, so even two lists without a common item have a correlation of 1.

    >>> tau_union(["a", "b", "c"], ["d", "e", "f"]), tau_union(["a", "b", "c"], ["b", "a", "d"])
    (1.0, 0.33333333333333337)
    """
    if len(first) != len(second):
        return np.nan
    union = {item: i for i, item in enumerate(dict.fromkeys([*first, *second]) if names is None else names)}
    return tau_b([union[item] for item in first], [union[item] for item in second])


@dataclass(frozen=True)
class CorrelationCoefficient:
    """A correlation coefficient: its function, its description, and the requirements on its data."""

    compute: Callable[[Any, Any], float]
    about: str
    varied: bool = True  # both sides need at least two different scores
    untied: str = ""  # "both" or "first": sides that must not contain ties
    instead: str = ""  # the coefficient to use with ties
    finite: bool = False  # the scores themselves count, not only their order


COEFFICIENTS: dict[str, CorrelationCoefficient] = {
    "tau": CorrelationCoefficient(tau_b, "Kendall's tau, the variant b: pairs tied in either are left out"),
    "tau-a": CorrelationCoefficient(tau_a, "Kendall's tau over all pairs, tied ones counting as neither", varied=False),
    "tau-b": CorrelationCoefficient(tau_b, "Kendall's tau over the pairs that are not tied"),
    "tau-ap": CorrelationCoefficient(
        tau_ap, "AP correlation: the top counts most", False, "both", "tau-ap-a or tau-ap-b"
    ),
    "tau-ap-a": CorrelationCoefficient(
        tau_ap_a, "AP correlation, expected over the second's ties", False, "first", "tau-ap-b"
    ),
    "tau-ap-b": CorrelationCoefficient(tau_ap_b, "AP correlation both ways round, with ties in either"),
    "spearman": CorrelationCoefficient(spearman, "Spearman's rho: Pearson's r of the ranks"),
    "weighted-tau": CorrelationCoefficient(weighted_tau, "Kendall's tau with weights 1/r + 1/s"),
    "pearson": CorrelationCoefficient(pearson, "Pearson's r of the scores themselves", finite=True),
}


def correlation(kind: str, x: Any, y: Any) -> float:
    """A correlation by its name; NaN if it is undefined.

    >>> correlation("tau-a", [1, 2, 3], [1, 3, 2])
    0.3333333333333333
    """
    return named_coefficient(kind).compute(x, y)


def undefined(kind: str, x: Any, y: Any) -> str:
    """Why a correlation is undefined for these data; empty if it is defined.

    >>> undefined("tau-b", [1, 2, 3], [5, 5, 5])
    'all 3 scores of the second are the same'
    """
    coefficient = named_coefficient(kind)
    x, y = _two(x, y)
    if len(x) < 2:
        return f"there is nothing to order: expected two items or more, found {len(x)}"
    for side, scores in (("first", x), ("second", y)):
        if coefficient.varied and _constant(scores):
            return f"all {len(scores)} scores of the {side} are the same"
        if coefficient.finite and not np.isfinite(scores).all():
            return f"some scores of the {side} are infinite"
        if coefficient.untied in ("both", side) and _tied_pairs(scores):
            return f"{kind} allows no ties in the {side}; use {coefficient.instead}"
    return ""


def named_coefficient(kind: str) -> CorrelationCoefficient:
    """A coefficient by its name; DataError for another name."""
    if kind not in COEFFICIENTS:
        raise DataError(f"no correlation {kind!r}; there are {', '.join(COEFFICIENTS)}")
    return COEFFICIENTS[kind]


def _two(x: Any, y: Any) -> tuple[Floats, Floats]:
    one, other = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if one.shape != other.shape or one.ndim != 1:
        raise DataError(f"expected two sequences of the same length, found {one.shape} and {other.shape}")
    if np.isnan(one).any() or np.isnan(other).any():
        raise DataError("expected numbers to correlate, found NaN; leave those items out")
    return one, other


def _constant(x: Floats) -> bool:
    return len(x) < 2 or bool((x == x[0]).all())


def _tied_pairs(x: Floats) -> int:
    _, size = np.unique(x, return_counts=True)
    return int((size * (size - 1) // 2).sum())


def _kendall(x: Floats, y: Floats) -> float:
    if len(x) <= 128:  # a matrix of all pairs is far quicker than SciPy, which computes a p-value too
        above, over = x[:, None] > x, y[:, None] > y
        agreeing, opposed = np.count_nonzero(above & over), np.count_nonzero(above & over.T)
        return float(np.clip((agreeing - opposed) / above.sum() ** 0.5 / over.sum() ** 0.5, -1, 1))
    from scipy.stats import kendalltau  # type: ignore[import-untyped, unused-ignore]

    return float(kendalltau(x, y).statistic)


def _right_above(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """For each item: its first rank in y, the size of its tie, and how many items are above it in both y and x."""
    _, group, size = np.unique(-y, return_inverse=True, return_counts=True)
    first = np.cumsum(size) - size + 1
    right = np.empty(len(x))
    for start in range(0, len(x), 512):  # blocks keep the matrix of pairs small
        rows = slice(start, start + 512)
        right[rows] = ((y > y[rows, None]) & (x > x[rows, None])).sum(axis=1)
    return first[group].astype(np.float64), size[group].astype(np.float64), right


def _tau_ap_a(x: Floats, y: Floats) -> float:
    """Urbano and Marrero's closed form: items above a tied group are right or wrong, those within by half."""
    first, size, right = _right_above(x, y)
    inverse = np.r_[0.0, 0.0, np.cumsum(1 / np.arange(1, len(x)))]  # inverse[r] = 1/1 + … + 1/(r - 1), for rank r
    last = (first + size - 1).astype(np.int64)
    top = np.maximum(first.astype(np.int64), 2)  # the very first rank has nothing above it
    share = (inverse[last] - inverse[top - 1]) / size  # the mean of 1/(rank - 1) over the group's ranks
    share[last < 2] = 0.0
    # At the k-th rank of a group k - 1 of its members stand above, half of them rightly, out of rank - 1 items.
    within = (size - 1 - (first - 1) * (inverse[last] - inverse[first.astype(np.int64)])) / 2 / size
    return float(2 / (len(x) - 1) * (right * share + within).sum() - 1)


def _tau_ap_b(x: Floats, y: Floats) -> float:
    first, _, right = _right_above(x, y)
    below = first > 1
    return float(2 * (right[below] / (first[below] - 1)).mean() - 1)

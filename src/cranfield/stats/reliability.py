"""How reliable is a ranking of groups? Split-half reliability, discriminative power, swap rates, generalisability theory.

Split-half: blocks are split at random, many times, and the groups' means on the two halves are correlated. Spearman and
Brown's formula converts Pearson's r from half of the blocks to all of them; rank correlations are not converted.

Discriminative power reads the p-values of all pairs from any test. The swap method (Voorhees and Buckley, 2002) needs
none: it asks how often two separate sets of blocks disagree on which of two groups is better, by the size of the
difference in the first set. Neither shows that the measure is worth having.

Generalisability theory: how much of the variance is due to the groups, and how many blocks make the groups' means
reliable.

A G-study splits the variance of a table, blocks × groups, all crossed; or of blocks × groups × replicates, each group
having replicates of its own. A D-study asks what the coefficients would be with other numbers of blocks and replicates:

    Eρ² = σ²(groups) / (σ²(groups) + relative error)     do differences between groups generalise?
    Φ   = σ²(groups) / (σ²(groups) + absolute error)     do the values themselves?

With one value per cell the interaction of groups and blocks cannot be separated from error; both are the residual.
Estimates below 0 are set to 0, and `negative` names them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, nan
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cranfield.base.errors import DataError
from cranfield.stats.block_tables import block_table, even, no_error, probability, refuse_no_resamples
from cranfield.stats.correlation import correlation, named_coefficient
from cranfield.stats.many_groups import two_way_anova

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.random import Generator

    from cranfield.stats.ties import Floats, Ints


MOST_BINS = 1_000_000
ROUNDING = 1e-12  # means closer than this, relative to the largest value, are equal


@dataclass(frozen=True)
class Discrimination:
    """The pairs of groups that a test tells apart."""

    levels: Floats  # p-values of all pairs, largest first: the achieved significance level curve
    alpha: float
    significant: int
    pairs: int
    without: int = 0  # pairs without a p-value; they count as not told apart
    needed: float = nan  # every pair further apart than this was significant; NaN without differences

    @property
    def power(self) -> float:
        """The share of pairs with p below alpha."""
        return self.significant / self.pairs


@dataclass(frozen=True)
class SwapRates:
    """How often two sets of blocks disagree about a pair, by the difference in the first set: one entry per bin."""

    edges: Floats  # lower ends of the bins; the last is open
    compared: Ints
    swapped: Ints
    size: int  # blocks in each set
    trials: int

    @property
    def rates(self) -> Floats:
        """The share that swapped; NaN in empty bins."""
        out = np.full(len(self.compared), nan)
        np.divide(self.swapped, self.compared, out=out, where=self.compared > 0)
        return out

    @property
    def overall(self) -> float:
        """The share of all comparisons that swapped."""
        return float(self.swapped.sum() / self.compared.sum())

    def needed(self, rate: float = 0.05) -> float:
        """The smallest difference from which every bin swaps at most this often; NaN if the last bin does not."""
        above = np.flatnonzero(np.nan_to_num(self.rates, nan=0.0) > rate)
        first = int(above[-1]) + 1 if len(above) else 0
        last = int(np.flatnonzero(self.compared)[-1])
        return float(self.edges[first]) if first <= last else nan

    def sensitivity(self, rate: float = 0.05) -> float:
        """The share of comparisons with at least the needed difference."""
        needed = self.needed(rate)
        return float(self.compared[self.edges >= needed].sum() / self.compared.sum()) if needed == needed else 0.0


def achieved_levels(p: Any) -> Floats:
    """The p-values of all pairs, largest first, from a groups × groups matrix or a list of pairs; NaN are left out.

    >>> achieved_levels([[1, 0.02, 0.5], [0.02, 1, 0.3], [0.5, 0.3, 1]]).tolist()
    [0.5, 0.3, 0.02]
    """
    values = _of_pairs(p, "p-values")
    if ((values < 0) | (values > 1)).any():
        raise DataError("expected p-values between 0 and 1")
    return np.asarray(np.sort(values[~np.isnan(values)])[::-1], np.float64)


def discrimination(p: Any, differences: Any = None, alpha: float = 0.05) -> Discrimination:
    """Discriminative power (Sakai, 2006): the share of pairs that a test separates, and the difference needed for that.

    >>> found = discrimination([0.5, 0.3, 0.02, 0.001], [0.01, 0.02, 0.05, -0.08])
    >>> found.power, found.needed
    (0.5, 0.02)
    """
    probability("alpha", alpha)
    values, levels = _of_pairs(p, "p-values"), achieved_levels(p)
    if not len(values):
        raise DataError("expected the p-value of one pair or more, found none")
    apart = np.nan_to_num(values, nan=1.0) < alpha
    needed = nan
    if differences is not None:
        sizes = np.abs(_of_pairs(differences, "differences"))
        if sizes.shape != values.shape:
            raise DataError(f"expected a difference for each p-value, found {len(sizes)} for {len(values)}")
        needed = float(sizes[~apart].max(initial=0.0))
    return Discrimination(levels, alpha, int(apart.sum()), len(values), int(np.isnan(values).sum()), needed)


def bootstrap_difference_needed(
    table: Any, alpha: float = 0.05, resamples: int = 1_000, rng: Generator | None = None
) -> float:
    """Sakai's estimate of the needed difference in means: the largest over pairs of the difference that chance reaches.

    For each pair the blocks are drawn again from differences moved to a mean of 0; the pair's estimate is the value
    that a share `alpha` of the absolute means reaches.

    >>> table = np.random.default_rng(1).normal(0, [0.1, 0.1, 0.2], (50, 3))
    >>> round(bootstrap_difference_needed(table, rng=np.random.default_rng(0)), 3)
    0.053
    """
    probability("alpha", alpha)
    values = block_table(table)
    refuse_no_resamples(resamples)
    rng = np.random.default_rng(0) if rng is None else rng
    blocks = len(values)
    counts = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=resamples)
    chance = counts @ (values - values.mean(axis=0)) / blocks  # resamples × groups
    place = resamples - max(1, int(alpha * resamples))
    most = 0.0
    for i in range(values.shape[1] - 1):
        apart = np.abs(chance[:, i + 1 :] - chance[:, i, None])
        most = max(most, float(np.partition(apart, place, axis=0)[place].max()))
    return most


def swap_rates(
    table: Any, size: int | None = None, width: float | None = None, trials: int = 1_000, rng: Generator | None = None
) -> SwapRates:
    """Draw two separate sets of blocks, compare every pair of groups on each, and count where the order swaps.

    `size` is the number of blocks in a set (default: half of all). Bins are `width` wide; the default is 0.01 if values
    span at most 1, else a hundredth of their span. A pair that is tied in either set does not swap.

    >>> found = swap_rates([[1, 2], [1, 2], [1, 3], [2, 4]], width=1.0, rng=np.random.default_rng(0))
    >>> found.overall, found.compared.tolist()
    (0.0, [0, 857, 143])
    """
    values = block_table(table)
    size = _set_size("swap rates", size, len(values))
    span = float(np.ptp(values))
    width = max(0.01, span / 100 * (span > 1)) if width is None else width
    if not width > span / MOST_BINS or trials < 1:
        least = f"above {span / MOST_BINS:.3g}"
        raise DataError(f"swap rates: expected a width {least} and one trial or more, got {width} and {trials}")
    rng = np.random.default_rng(0) if rng is None else rng
    one, other = np.triu_indices(values.shape[1], 1)
    compared, swapped = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for _ in range(trials):
        order = rng.permutation(len(values))
        means = (values[part].mean(axis=0) for part in (order[:size], order[size : 2 * size]))
        first, second = (_settled(mean[one] - mean[other], values) for mean in means)
        place = np.floor(np.abs(first) / width + 1e-9).astype(np.int64)
        compared = _added(compared, np.bincount(place))
        swapped = _added(swapped, np.bincount(place[first * second < 0]))
    swapped = _added(swapped, np.zeros(len(compared), np.int64))
    return SwapRates(np.arange(len(compared), dtype=np.float64) * width, compared, swapped, size, trials)


def _set_size(method: str, size: int | None, blocks: int) -> int:
    """The number of blocks in each of two separate sets: half of all blocks by default, and at most that."""
    half = blocks // 2
    if size is not None and not 1 <= size <= half:
        raise DataError(f"{method}: a set must hold 1 to {half} of {blocks} blocks, got {size}")
    return half if size is None else size


def _of_pairs(pairs: Any, what: str) -> Floats:
    values = np.asarray(pairs, np.float64)
    if values.ndim == 2 and values.shape[0] == values.shape[1]:
        return np.asarray(values[np.triu_indices(len(values), 1)], np.float64)
    if values.ndim != 1:
        raise DataError(f"expected the {what} of all pairs as a square matrix or a list, found {values.shape}")
    return values


def _settled(differences: Floats, values: Floats) -> Floats:
    """Differences of means; pure rounding errors become 0."""
    return np.where(np.abs(differences) <= ROUNDING * np.abs(values).max(), 0.0, differences)


def _added(total: Ints, some: Ints) -> Ints:
    if len(some) > len(total):
        total = np.pad(total, (0, len(some) - len(total)))
    total[: len(some)] += some
    return total


@dataclass(frozen=True)
class SplitHalf:
    """The correlation between two separate sets of blocks, over many splits."""

    kind: str
    size: int  # blocks in each set
    trials: int
    mean: float  # NaN where it cannot be had; then `reason` says why
    low: float  # the interval that holds `level` of the splits
    high: float
    stepped_up: float  # Spearman–Brown: of two such sets together; NaN for rank correlations
    level: float
    values: Floats  # of the single splits
    undefined: int = 0  # splits without a value
    reason: str = ""


def spearman_brown(r: float, factor: float = 2.0) -> float:
    """The reliability of a measurement `factor` times as long.

    >>> spearman_brown(0.6)
    0.7499999999999999
    """
    return factor * r / (1 + (factor - 1) * r) if 1 + (factor - 1) * r > 0 else nan


def split_half(
    table: Any,
    kind: str = "pearson",
    trials: int = 1_000,
    rng: Generator | None = None,
    level: float = 0.95,
    size: int | None = None,
) -> SplitHalf:
    """Correlate the groups' means on random halves of the blocks; with an odd number, one block is left out each time.

    `kind` is any correlation by name; `size` sets a smaller size than half.

    >>> found = split_half([[1, 2, 3], [2, 3, 4], [0, 1, 2], [4, 5, 6]], rng=np.random.default_rng(0))
    >>> round(found.mean, 6), round(found.stepped_up, 6)
    (1.0, 1.0)
    """
    probability("level", level)
    values = block_table(table)
    named_coefficient(kind)  # an unknown name is refused before the work begins
    size = _set_size("split-half", size, len(values))
    if trials < 1:
        raise DataError(f"split-half: expected one trial or more, got {trials}")
    rng = np.random.default_rng(0) if rng is None else rng
    correlations = np.array([correlation(kind, *_two_means(values, size, rng)) for _ in range(trials)])
    defined = correlations[~np.isnan(correlations)]
    if not len(defined):
        reason = "the groups have equal means in one half of every split"
        return SplitHalf(kind, size, trials, nan, nan, nan, nan, level, correlations, trials, reason)
    tail = (1 - level) / 2
    low, high = np.quantile(defined, [tail, 1 - tail]).tolist()
    stepped_up = spearman_brown(float(defined.mean())) if kind == "pearson" else nan
    undefined = trials - len(defined)
    return SplitHalf(kind, size, trials, float(defined.mean()), low, high, stepped_up, level, correlations, undefined)


def split_sizes(
    table: Any,
    sizes: Iterable[int],
    kind: str = "tau",
    trials: int = 200,
    rng: Generator | None = None,
    level: float = 0.95,
    progress: Callable[[int, int | None], None] | None = None,
) -> list[SplitHalf]:
    """The same for several sizes of the two sets: how agreement grows with the number of blocks."""
    rng = np.random.default_rng(0) if rng is None else rng
    every_size = list(sizes)
    splits = []
    for done, size in enumerate(every_size, 1):
        splits.append(split_half(table, kind, trials, rng, level, size))
        if progress:
            progress(done, len(every_size))
    return splits


def _two_means(values: Floats, size: int, rng: Generator) -> tuple[Floats, Floats]:
    order = rng.permutation(len(values))
    first, second = values[order[:size]], values[order[size : 2 * size]]
    return even(first.mean(axis=0), values), even(second.mean(axis=0), values)


@dataclass(frozen=True)
class GStudy:
    """Components of variance, each for a single value, and the mean squares."""

    n_blocks: int
    n_groups: int
    n_replicates: int
    groups: float
    blocks: float
    residual: float
    interaction: float = 0.0  # of groups and blocks; part of the residual where there is one value a cell
    replicates: float = 0.0  # within a group
    ms_groups: float = nan
    ms_blocks: float = nan
    ms_residual: float = nan
    negative: tuple[str, ...] = ()  # components that were estimated below 0 and set to 0

    @property
    def total(self) -> float:
        """The variance of a single value."""
        return self.groups + self.blocks + self.interaction + self.replicates + self.residual

    @property
    def shares(self) -> dict[str, float]:
        """Each component's share of the total."""
        parts = {"groups": self.groups, "blocks": self.blocks}
        if self.n_replicates > 1:
            parts |= {"interaction": self.interaction, "replicates": self.replicates}
        parts["residual"] = self.residual
        return {name: part / self.total if self.total else nan for name, part in parts.items()}

    def relative_error(self, blocks: float, replicates: float = 1) -> float:
        """The error variance of a group's deviation from the mean of all groups, with so many blocks and replicates."""
        return self.interaction / blocks + self.replicates / replicates + self.residual / (blocks * replicates)

    def absolute_error(self, blocks: float, replicates: float = 1) -> float:
        """The error variance of a group's own mean."""
        return self.relative_error(blocks, replicates) + self.blocks / blocks


@dataclass(frozen=True)
class DStudy:
    """The expectation for a number of blocks: both coefficients, and their intervals if they can be computed."""

    blocks: int
    replicates: int
    e_rho2: float  # NaN where nothing varies
    phi: float
    e_rho2_low: float = nan
    e_rho2_high: float = nan
    phi_low: float = nan
    phi_high: float = nan
    level: float = 0.95


def g_study(table: Any) -> GStudy:
    """The components of variance of blocks × groups, or of blocks × groups × replicates (nested in groups).

    >>> found = g_study([[1, 2, 3], [2, 4, 3], [1, 3, 5]])
    >>> round(found.groups, 4), round(found.blocks, 4), round(found.residual, 4)
    (1.1667, 0.0556, 0.8333)
    """
    values = np.asarray(table, np.float64)
    if values.ndim == 3 and values.shape[2] > 1:
        return _nested(values)
    values = block_table(values[:, :, 0] if values.ndim == 3 and values.shape[2] else values)
    anova = two_way_anova(values)
    return g_study_from_mean_squares(
        _mean_square(values, anova.ss_groups, anova.df_groups),
        _mean_square(values, anova.ss_blocks, anova.df_blocks),
        _mean_square(values, anova.ss_error, anova.df_error),
        *values.shape,
    )


def g_study_from_mean_squares(
    ms_groups: float, ms_blocks: float, ms_residual: float, blocks: int, groups: int
) -> GStudy:
    """The components of variance from a published analysis of variance with one value per cell.

    >>> found = g_study_from_mean_squares(10.2963, 11.6273, 2.7872, 12, 10)  # Brennan (2001), table 6.2
    >>> round(found.groups, 4), round(found.blocks, 4), round(found.residual, 4)
    (0.6258, 0.884, 2.7872)
    """
    if blocks < 2 or groups < 2:
        raise DataError(f"G-study: expected two blocks and two groups or more, found {blocks} and {groups}")
    if min(ms_groups, ms_blocks, ms_residual) < 0:
        raise DataError("G-study: expected mean squares of 0 or more")
    raw = {
        "groups": (ms_groups - ms_residual) / blocks,
        "blocks": (ms_blocks - ms_residual) / groups,
        "residual": ms_residual,
    }
    return _study(blocks, groups, 1, raw, ms_groups, ms_blocks, ms_residual)


def d_study(study: GStudy, blocks: int | None = None, replicates: int | None = None, level: float = 0.95) -> DStudy:
    """Both coefficients for a number of blocks (default: that of the G-study), with Feldt's and Arteaga's intervals.

    >>> brennan = g_study_from_mean_squares(10.2963, 11.6273, 2.7872, 12, 10)
    >>> answer = d_study(brennan, level=0.8)
    >>> [round(x, 3) for x in (answer.e_rho2, answer.e_rho2_low, answer.e_rho2_high)]  # as in table 6.5
    [0.729, 0.541, 0.876]
    """
    probability("level", level)
    n = study.n_blocks if blocks is None else blocks
    r = study.n_replicates if replicates is None else replicates
    if n < 1 or r < 1:
        raise DataError(f"D-study: expected one block and one replicate or more, got {n} and {r}")
    e_rho2 = _ratio(study.groups, study.relative_error(n, r))
    phi = _ratio(study.groups, study.absolute_error(n, r))
    if study.n_replicates > 1 or not study.ms_residual > 0:
        return DStudy(n, r, e_rho2, phi, level=level)
    tail = (1 - level) / 2
    bounds = [_feldt(study, 1 - tail), _feldt(study, tail), _arteaga(study, 1 - tail), _arteaga(study, tail)]
    low, high, phi_low, phi_high = (n * bound / (1 + n * bound) for bound in bounds)
    return DStudy(n, r, e_rho2, phi, low, high, phi_low, phi_high, level)


def blocks_needed(
    study: GStudy, target: float = 0.95, coefficient: Literal["e_rho2", "phi"] = "e_rho2", replicates: int = 1
) -> float:
    """The smallest number of blocks whose coefficient reaches the target; infinite if no number does.

    >>> brennan = g_study_from_mean_squares(10.2963, 11.6273, 2.7872, 12, 10)
    >>> blocks_needed(brennan, 0.9), blocks_needed(brennan, 0.9, "phi")
    (41, 53)
    """
    probability("target", target)
    if coefficient not in ("e_rho2", "phi"):
        raise DataError(f"D-study: expected the coefficient e_rho2 or phi, found {coefficient!r}")
    per_block = study.interaction + study.residual / replicates + (study.blocks if coefficient == "phi" else 0.0)
    room = study.groups * (1 - target) / target - study.replicates / replicates  # error variance that is allowed
    return max(1, ceil(per_block / room * (1 - 1e-12))) if room > 0 else inf


def _nested(values: Floats) -> GStudy:
    blocks, groups, replicates = values.shape
    block_table(values.reshape(blocks, -1))
    if groups < 2:
        raise DataError(f"G-study: expected two groups or more, found {groups}")
    grand, by_group, by_block = values.mean(), values.mean(axis=(0, 2)), values.mean(axis=(1, 2))
    cells, runs = values.mean(axis=2), values.mean(axis=0)
    crossed = cells - by_group - by_block[:, None] + grand
    error = values - cells[:, :, None] - runs + by_group[:, None]
    squares = [
        (blocks * replicates * np.square(by_group - grand).sum(), groups - 1),
        (groups * replicates * np.square(by_block - grand).sum(), blocks - 1),
        (replicates * np.square(crossed).sum(), (groups - 1) * (blocks - 1)),
        (blocks * np.square(runs - by_group[:, None]).sum(), groups * (replicates - 1)),
        (np.square(error).sum(), groups * (replicates - 1) * (blocks - 1)),
    ]
    ms_groups, ms_blocks, ms_crossed, ms_runs, ms_error = (_mean_square(values, *one) for one in squares)
    raw = {
        "groups": (ms_groups - ms_crossed - ms_runs + ms_error) / (blocks * replicates),
        "blocks": (ms_blocks - ms_crossed) / (groups * replicates),
        "interaction": (ms_crossed - ms_error) / replicates,
        "replicates": (ms_runs - ms_error) / blocks,
        "residual": ms_error,
    }
    return _study(blocks, groups, replicates, raw, ms_groups, ms_blocks, ms_error)


def _mean_square(values: Floats, squares: float, df: int) -> float:
    return 0.0 if no_error(values, squares) else float(squares) / df


def _study(blocks: int, groups: int, replicates: int, raw: dict[str, float], *mean_squares: float) -> GStudy:
    """The study with components below 0 set to 0; the mean squares are those of groups, blocks and residuals."""
    components = {name: max(0.0, one) for name, one in raw.items()}
    means = dict(zip(("ms_groups", "ms_blocks", "ms_residual"), mean_squares, strict=True))
    negative = tuple(name for name, one in raw.items() if one < 0)
    return GStudy(blocks, groups, replicates, **components, **means, negative=negative)


def _ratio(signal: float, error: float) -> float:
    return signal / (signal + error) if signal + error > 0 else nan


def _feldt(study: GStudy, tail: float) -> float:
    """A bound of σ²(groups) / σ²(residual): by the F distribution of their mean squares (Feldt, 1965)."""
    from scipy.special import fdtri  # type: ignore[import-untyped, unused-ignore]

    df = study.n_groups - 1
    f = study.ms_groups / study.ms_residual / fdtri(df, df * (study.n_blocks - 1), tail)
    return max(0.0, (float(f) - 1) / study.n_blocks)


def _arteaga(study: GStudy, tail: float) -> float:
    """A bound of σ²(groups) / (σ²(blocks) + σ²(residual)), after Arteaga, Jeyaratnam and Graybill (1982)."""
    from scipy.special import chdtri, fdtri

    if study.ms_groups == 0:
        return 0.0
    groups, blocks = study.n_groups, study.n_blocks
    df = groups - 1
    f_known = chdtri(df, 1 - tail) / df  # F with an infinite denominator
    f_error, f_blocks = fdtri(df, df * (blocks - 1), tail), fdtri(df, blocks - 1, tail)
    s, b, e = study.ms_groups, study.ms_blocks, study.ms_residual
    above = s * s - f_known * s * e + (f_known - f_error) * f_error * e * e
    below = df * f_known * s * e + f_blocks * s * b
    return max(0.0, float(groups * above / below) / blocks)

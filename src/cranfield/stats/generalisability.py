"""Generalisability theory: how much of the spread of values is the groups', and how many blocks make that reliable.

A G-study splits the variance of a table, blocks × groups, all crossed; or of blocks × groups × replicates, each group
having replicates of its own. A D-study asks what the coefficients would be with other numbers of blocks and replicates:

    Eρ² = σ²(groups) / (σ²(groups) + relative error)     do differences between groups generalise?
    Φ   = σ²(groups) / (σ²(groups) + absolute error)     do the values themselves?

With one value a cell the interaction of groups and blocks cannot be told from error; both are the residual. Estimates
below 0 are set to 0, and `negative` names them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, nan
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cranfield.errors import DataError
from cranfield.stats.many import two_way_anova
from cranfield.stats.tables import block_table, no_error, probability

if TYPE_CHECKING:
    from cranfield.stats.ties import Floats

__all__ = ["DStudy", "GStudy", "blocks_needed", "d_study", "g_study", "g_study_from_mean_squares"]


@dataclass(frozen=True)
class GStudy:
    """Components of variance, each of a single value; mean squares beside them."""

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
        """Each component's part of the total."""
        parts = {"groups": self.groups, "blocks": self.blocks}
        if self.n_replicates > 1:
            parts |= {"interaction": self.interaction, "replicates": self.replicates}
        parts["residual"] = self.residual
        return {name: part / self.total if self.total else nan for name, part in parts.items()}

    def relative_error(self, blocks: float, replicates: float = 1) -> float:
        """The error variance of a difference of a group from the mean of all, with so many blocks and replicates."""
        return self.interaction / blocks + self.replicates / replicates + self.residual / (blocks * replicates)

    def absolute_error(self, blocks: float, replicates: float = 1) -> float:
        """The error variance of a group's own mean."""
        return self.relative_error(blocks, replicates) + self.blocks / blocks


@dataclass(frozen=True)
class DStudy:
    """What to expect of so many blocks: both coefficients, and their intervals where they can be had."""

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
    """The components of variance from a published analysis of variance, one value a cell.

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
    kept, negative = _clamped(raw)
    return GStudy(
        blocks,
        groups,
        1,
        **kept,
        ms_groups=ms_groups,
        ms_blocks=ms_blocks,
        ms_residual=ms_residual,
        negative=negative,
    )


def d_study(study: GStudy, blocks: int | None = None, replicates: int | None = None, level: float = 0.95) -> DStudy:
    """Both coefficients with so many blocks (those of the G-study, unless told), Feldt's and Arteaga's intervals.

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
    """The smallest number of blocks whose coefficient is at least the target; infinite where none reaches it.

    >>> brennan = g_study_from_mean_squares(10.2963, 11.6273, 2.7872, 12, 10)
    >>> blocks_needed(brennan, 0.9), blocks_needed(brennan, 0.9, "phi")
    (41, 53)
    """
    probability("target", target)
    if coefficient not in ("e_rho2", "phi"):
        raise DataError(f"D-study: expected the coefficient e_rho2 or phi, found {coefficient!r}")
    per_block = study.interaction + study.residual / replicates + (study.blocks if coefficient == "phi" else 0.0)
    room = study.groups * (1 - target) / target - study.replicates / replicates  # error variance that is allowed
    if room <= 0:
        return inf
    return max(1, ceil(per_block / room * (1 - 1e-12)))


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
    kept, negative = _clamped(raw)
    means = {"ms_groups": ms_groups, "ms_blocks": ms_blocks, "ms_residual": ms_error}
    return GStudy(blocks, groups, replicates, **kept, **means, negative=negative)


def _mean_square(values: Floats, squares: float, df: int) -> float:
    return 0.0 if no_error(values, squares) else float(squares) / df


def _clamped(raw: dict[str, float]) -> tuple[dict[str, float], tuple[str, ...]]:
    return {name: max(0.0, one) for name, one in raw.items()}, tuple(name for name, one in raw.items() if one < 0)


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

"""Tests of all systems at once: their p-values already allow for there being many pairs, and are not corrected again.

They need a value of every system for every topic; a topic that one of them lacks is left out for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cranfield.kernels.table import Floats


@dataclass(frozen=True)
class Many:
    """A test of many systems: how it is called, whether it tests pairs, and which tests belong together."""

    title: str
    pairs: bool
    with_it: tuple[str, ...]
    about: str


MANY: dict[str, Many] = {
    "tukey": Many("Tukey HSD", True, ("tukey",), "every pair, after a two-way analysis of variance"),
    "randomised-tukey": Many("randomised Tukey HSD", True, ("randomised-tukey",), "every pair, by permutation"),
    "anova": Many("two-way ANOVA", False, ("anova", "tukey"), "whether any system differs; pairs by Tukey HSD"),
    "friedman": Many("Friedman", False, ("friedman", "nemenyi"), "whether any differs, by ranks; pairs by Nemenyi"),
    "nemenyi": Many("Nemenyi", True, ("friedman", "nemenyi"), "every pair, by mean ranks"),
}
"""By name; a test without pairs brings one that has them."""


def made(name: str, table: Floats, *, level: float, resamples: int, seed: int) -> Any:
    """Make one of the tests on topics × systems."""
    from cranfield.stats import many

    if name == "tukey":
        return many.tukey_hsd(table, level)
    if name == "randomised-tukey":
        return many.randomised_tukey_hsd(table, resamples, np.random.default_rng(seed), level)
    if name == "anova":
        return many.two_way_anova(table)
    return many.friedman(table) if name == "friedman" else many.nemenyi(table, level)


def overall(name: str, found: Any) -> tuple[str, float]:
    """The statistic in words and the p-value of "all systems are equal"; NaN where there is none."""
    if name == "anova":
        return f"F({found.df_groups}, {found.df_error}) = {found.f_groups:.4g}", float(found.p_groups)
    if name == "friedman":
        return f"chi2({found.groups - 1}) = {found.chi2:.4g}, W = {found.w:.3g}", float(found.p)
    return f"critical difference {found.critical:.4g}", float(found.smallest_p)

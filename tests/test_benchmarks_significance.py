"""The benchmark of significance tests: both sides test the same pairs, and p-values that differ make it void."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the benchmarks are not installed with the package

from benchmarks import agreement, significance, timing
from benchmarks.suite import SCRIPTS


def test_both_sides_find_the_same_p_against_scipy():
    script = str(SCRIPTS / "significance.py")
    ours, theirs = (
        json.loads(timing.run((sys.executable, script, who, "-", "2000", "4")).output) for who in ("cranfield", "scipy")
    )
    assert (ours["pairs"], theirs["pairs"]) == (5995, 4)
    assert ours["shape"] == [249, 110]
    assert len(set(ours["p"])) > 1
    significance.agree(ours["p"], [theirs["p"]], 2000)


def test_a_comparison_of_different_p_is_void():
    significance.agree([0.05], [[0.051]], 100_000)
    with pytest.raises(agreement.VoidError, match=r"cranfield says p = 0\.05, SciPy 0\.08"):
        significance.agree([0.05], [[0.08]], 100_000)

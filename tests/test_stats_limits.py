"""Intervals whose ends are not finite, or in the wrong order, show nothing, whoever asks."""

from __future__ import annotations

import ast
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import cranfield
from cranfield.experiments.list_preferences import SystemPreference
from cranfield.stats.arms import EffectEstimate
from cranfield.stats.equivalence import decision
from cranfield.stats.interval_limits import EffectInterval, above, below, sound
from cranfield.stats.proportions import ProportionDifference
from cranfield.stats.sequential import GroupSequentialRule

ENDS = (-math.inf, -1.0, 0.5, 2.0, math.inf, math.nan)
CANNOT = GroupSequentialRule((1.0,), spend_at=(1 / 14,))  # a look that may spend next to nothing


@pytest.mark.parametrize(("low", "high"), list(product(ENDS, ENDS)))
def test_limits_keep_their_ends_only_where_both_are_finite_and_in_order(low, high):
    limits = EffectInterval(0.7, low, high)
    whole = math.isfinite(low) and math.isfinite(high) and low <= high
    assert sound(low, high) == limits.exists == whole
    assert (limits.low, limits.high) == (low, high) if whole else math.isnan(limits.low) and math.isnan(limits.high)
    assert not (limits.above(-5) or limits.below(5) or limits.inside(9)) or whole
    assert not limits.inside(None)


@pytest.mark.parametrize(("low", "high"), list(product(ENDS, ENDS)))
def test_an_interval_lies_on_a_side_only_by_a_finite_end_that_is_in_order(low, high):
    assert above(low, high, 0.25) == (math.isfinite(low) and low > 0.25 and high >= low)
    assert below(low, high, 0.25) == (math.isfinite(high) and high < 0.25 and low <= high)
    assert not (above(low, high) and below(low, high))


@pytest.mark.parametrize(("low", "high"), [(math.inf, -math.inf), (math.nan, math.nan), (3.0, -3.0)])
def test_no_verdict_comes_from_unsound_ends(low, high):
    assert decision("equivalence", False, low, high, 0.1) == "undecided"
    assert decision("non-inferiority", False, low, high, 0.1) == "undecided"
    numbers = {"wins": 9, "losses": 1, "ties": 0, "searches": 10, "by_search": EffectInterval(0.4, 0.3, 0.5), "p": 0.01}
    rest = {"sign": 0.02, "sequential": (0.5, 1.0), "anytime": 0.1, "margin": 0.9, "detectable": 0.1}
    pair = SystemPreference("new", "old", delta=EffectInterval(0.4, low, high), inner=(-0.1, 0.1), **numbers, **rest)
    assert pair.verdict(ended=False) == "continue"
    assert pair.verdict(ended=True) == "not shown"


EFFECTS = {
    "a difference": EffectEstimate(np.array(-0.11), np.array(0.02), np.array(57.0)),
    "a difference of two units": EffectEstimate(np.array(-0.11), np.array(0.02), np.array(1.0)),
    "a normal one": EffectEstimate(np.array(-0.11), np.array(0.02), np.array(np.inf)),
    "a log ratio": EffectEstimate(np.array(0.3), np.array(0.02), np.array(20.0), log=True),
    "a proportion": ProportionDifference(30, 100, 10, 100),
}


@pytest.mark.parametrize("effect", EFFECTS.values(), ids=EFFECTS)
def test_an_infinite_bound_leaves_both_ends_open_and_never_turns_them_round(effect):
    """SciPy's t quantile at 0 is +inf, or NaN in older versions, where −inf is meant."""
    low, high = (float(end) for end in effect.limits((0.025, 0.025), CANNOT))
    assert low < float(effect.value) < high
    assert not sound(low, high)
    assert float(effect.p(CANNOT)) > 0.05


def test_only_limits_compares_ends_of_intervals_with_numbers():
    """Comparisons of `.low` and `.high` elsewhere are of scales, of measures and of parameters, not of intervals."""
    root = Path(cranfield.__file__).parent
    allowed = {"base/parameters.py", "base/schemas.py", "evaluation/measure_promises.py", "stats/interval_limits.py"}
    allowed |= {"studies/plan.py", "studies/forms.py", "comparison/leaderboard.py", "comparison/reproduce.py"}
    files = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")}
    assert allowed <= set(files)
    texts = {path: path.read_text(encoding="utf-8") for name, path in files.items() if name not in allowed}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)) if ".low" in text or ".high" in text else ():
            if isinstance(node, ast.Compare):
                ordered = any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops)
                ends = [side for side in (node.left, *node.comparators) if isinstance(side, ast.Attribute)]
                assert not ordered or not [end for end in ends if end.attr in ("low", "high")], (path, node.lineno)

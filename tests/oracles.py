"""What the oracle tests share: which measures a test proves, and files read the way their authors read them.

`@proves("AP", "P")` on a test says which measures its oracle covers; docs/generate.py lists them on each measure's page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cranfield import Run
from cranfield.base.run import TextSource
from cranfield.formats.files.trec import RUN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cranfield import Scores

T = TypeVar("T")


def proves(*measures: str) -> Callable[[T], T]:
    """Mark a test as an oracle for these measures."""

    def mark(test: T) -> T:
        vars(test)["proves"] = measures
        return test

    return mark


def wide_run(path: Path) -> Run:
    """A run read as trec_eval reads it: columns after the sixth are ignored, whatever went wrong before them."""
    return Run(TextSource(path.read_bytes(), RUN._replace(most=None), str(path)), path.name)


def per_topic(scores: Scores) -> dict[str, dict[str, Any]]:
    """The values of the topics that count, by topic and measure."""
    [run] = scores.to_dict(per_topic=True)["runs"]
    topics: dict[str, dict[str, Any]] = run["topics"]
    return topics


def geometric_mean(values: Any) -> float:
    """As trec_eval takes it: nothing counts as less than 0.00001."""
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-5)))))


def printed(value: float, like: str) -> str:
    """A number with as many decimals as the oracle printed."""
    decimals = len(like.partition(".")[2])
    return f"{value:.{decimals}f}"

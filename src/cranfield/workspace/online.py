"""Verbs of online evaluation."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from cranfield.errors import TopicError

if TYPE_CHECKING:
    from cranfield.online.interleave import Interleaved
    from cranfield.workspace.inputs import Inputs

__all__ = ["interleave"]


def interleave(inputs: Inputs, topic: str, k: int, method: str, seed: int) -> Interleaved:
    """The lists that runs have for one topic, mixed."""
    from cranfield.online.interleave import interleave

    runs = inputs.open_runs()
    lacking = [run.name for run in runs if topic not in run]
    if lacking:
        raise TopicError(f"topic {topic!r} is missing from {', '.join(lacking)}; an empty list cannot be compared")
    rankings = {run.name: [document for document, _ in run[topic]] for run in runs}
    return interleave(rankings, k, random.Random(seed), method)

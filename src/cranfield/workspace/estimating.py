"""The verb behind `judge estimate`: scores of runs from few labels of people and many of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.judge.event import RELEVANCE
from cranfield.judge.opening import open_log
from cranfield.workspace.inputs import DEFAULT_MEASURES, Inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.judge.models.estimating import PredictedScores

OF_DOCUMENTS = ("P@10", "DCG@10")  # where documents were drawn: sums over them


def estimate(
    location: str,
    runs: Sequence[str],
    measures: Sequence[str] = (),
    *,
    round: str = "",
    model: str = "",
    policy: str = "latest",
    aspect: str = RELEVANCE,
    level: float = 0.95,
) -> PredictedScores:
    """What runs score and by how much they differ, from the sample of a round and the labels of a model."""
    from cranfield.judge.models.drawn import sampled
    from cranfield.judge.models.estimating import estimates

    log = open_log(location, new=False)
    try:
        sample = sampled(log, round, model, policy, aspect)
    finally:
        log.close()
    chosen = list(measures) or list(DEFAULT_MEASURES if sample.by_topics else OF_DOCUMENTS)
    return estimates(sample, Inputs(runs=runs).open_runs(), chosen, level)

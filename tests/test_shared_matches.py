"""Runs scored by parts of one set of judgments, against scoring each part by itself."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from cranfield import evaluate
from cranfield.base.run import Run
from cranfield.evaluation.partial_judgments import JudgmentPart, MatchedRun

MEASURES = ["nDCG@10", "AP", "RR", "ERR@20", "P@5", "Recall@10", "Bpref", "infAP", "Judged@10", "RBP"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", [{}, {"scores": "single", "unjudged": "drop"}, {"ties": "averaged"}])
def test_a_part_of_the_judgments_scores_runs_as_it_does_alone(seed, how):
    """Topics and documents of a part come in another order than in the whole; scores are tied, and some topics missing."""
    draw = np.random.default_rng(seed)
    names = [f"d{number}" for number in range(40)]

    def runs() -> list[Run]:
        own = np.random.default_rng(seed + 100)
        return [
            Run(
                {
                    f"q{t}": dict(zip(names, own.integers(0, 9, 40).tolist(), strict=True))
                    for t in range(9)
                    if own.random() < 0.8
                },
                name,
            )
            for name in "ab"
        ]

    whole = {
        f"q{t}": {name: float(draw.integers(0, 3)) for name in draw.permutation(names)[:25].tolist()}
        for t in draw.permutation(8).tolist()
    }
    part = {
        topic: {name: 2.0 - whole[topic][name] for name in draw.permutation(list(whole[topic]))[:12].tolist()}
        for topic in draw.permutation(list(whole))[:5].tolist()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matched = [MatchedRun(run) for run in runs()]
        evaluate(whole, matched, MEASURES, **how)
        [own] = JudgmentPart.each_of([part], whole)
        together = evaluate(part, [run.within(own) for run in matched], MEASURES, **how)
        alone = evaluate(part, runs(), MEASURES, **how)
    assert together == alone
    assert [sorted(note) for note in together.notes()] == [
        sorted(note) for note in alone.notes()
    ]  # topics in any order

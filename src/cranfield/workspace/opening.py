"""A round of a workspace, opened as it was planned: the tops of runs, who judges, how often, what gold comes along."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError
from cranfield.judge.plan import Round
from cranfield.judge.planning import planned
from cranfield.judge.rounds import open_round
from cranfield.pool.strategy import STRATEGIES
from cranfield.workspace.chosen import judged, qrels_of
from cranfield.workspace.judging import hash_of_file, lists_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.judge.plan import Asked
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.verbs.pool_plan import PoolPlan


@dataclass(frozen=True)
class Manning:
    """Who judges in a round and how: what a pool does not say."""

    name: str
    assessors: Sequence[str] = ()
    lease: float = 1800.0
    gold: str = ""  # which judgments are known to be right: collection, log@NAME, or none
    gold_count: int = 20
    gold_share: float = 0.0
    repeat_share: float = 0.0
    passing: float | None = None
    after: str = ""


def begin(bench: Bench, pool: PoolPlan, manning: Manning) -> Round:
    """Open a round; a strategy that learns chooses as labels come, any other has its documents now."""
    pool.refuse(bench)
    name = manning.name.strip()
    if not name:
        raise DataError("a round needs a name")
    learns = STRATEGIES.named(pool.strategy).adaptive
    asked, _, frame = ([], 0, {}) if learns else pool.asked(bench)
    if not asked and not learns:
        raise DataError("there is nothing to judge: every document of this pool has a label; pool deeper")
    lists = lists_of([file.path for file in pool.files(bench)], pool.depth, None) if learns else {}
    guideline = bench.guideline_file()
    plan = Round(
        name=name,
        assessors=tuple(dict.fromkeys(manning.assessors)),
        lease=manning.lease,
        overlap=pool.overlap,
        gold_share=manning.gold_share,
        repeat_share=manning.repeat_share,
        seed=pool.seed,
        strategy=pool.strategy if learns else "",
        rel=bench.relevant_from,
        lists=lists,
        sample=f"{pool.sample} documents at random, seed {pool.seed}" if pool.sample else "",
        frame=frame,
        passing=manning.passing,
        after=manning.after,
        guideline="" if guideline is None else hash_of_file(guideline),
        scale=tuple(bench.grades()),
    )
    open_round(bench.log, plan, [*asked, *_gold(bench, manning, asked, pool.seed)])
    return plan


def _gold(bench: Bench, manning: Manning, asked: Sequence[Asked], seed: int) -> list[Asked]:
    """Documents with a known grade that the pool does not hold, drawn by lot."""
    if not manning.gold:
        return []
    inside = {(each.topic, each.document) for each in asked}
    known: dict[str, Any] = qrels_of(bench, judged(bench, manning.gold)).to_dict()
    free = [
        (topic, document, grade)
        for topic, grades in known.items()
        for document, grade in grades.items()
        if (topic, document) not in inside
    ]
    if not free:
        raise DataError(f"gold: every judgment of {manning.gold} is in the pool; take another source, or no gold")
    drawn = random.Random(seed).sample(free, min(manning.gold_count, len(free)))
    gold: dict[str, dict[str, float]] = {}
    for topic, document, grade in drawn:
        gold.setdefault(topic, {})[document] = grade
    return planned([], gold=gold)

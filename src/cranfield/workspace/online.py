"""Verbs of online evaluation."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from cranfield.errors import TopicError

if TYPE_CHECKING:
    from cranfield.online.interleave import Interleaved
    from cranfield.online.simulate import Simulated
    from cranfield.workspace.inputs import Inputs

__all__ = ["interleave", "simulate"]


def interleave(inputs: Inputs, topic: str, k: int, method: str, seed: int) -> Interleaved:
    """The lists that runs have for one topic, mixed."""
    from cranfield.online.interleave import interleave

    runs = inputs.open_runs()
    lacking = [run.name for run in runs if topic not in run]
    if lacking:
        raise TopicError(f"topic {topic!r} is missing from {', '.join(lacking)}; an empty list cannot be compared")
    rankings = {run.name: [document for document, _ in run[topic]] for run in runs}
    return interleave(rankings, k, random.Random(seed), method)


def simulate(
    inputs: Inputs,
    log: str,
    *,
    plan: str | None = None,
    method: str | None = None,
    users: str = "navigational",
    k: int = 10,
    seed: int = 0,
    before: int = 0,
    **audience: Any,
) -> Simulated:
    """Let simulated users search run files, into a log that is made where there is none.

    `plan` is a file, which is written where there is none; `method` interleaves where the plan does not say.
    """
    from cranfield.online.log import Log
    from cranfield.online.simulate import planned, simulate
    from cranfield.online.visits import Audience
    from cranfield.online.world import World, users_named

    chosen, people = users_named(users), Audience(**audience)
    world = World.of(inputs.open_qrels(), inputs.open_runs(), k, inputs.queries())
    experiment = planned(plan, world, people, method)
    with Log(log, create=True) as opened:
        return simulate(world, opened, experiment, chosen, people, seed=seed, before=before)

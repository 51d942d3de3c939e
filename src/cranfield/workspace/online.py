"""Verbs of online evaluation."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError, TopicError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.online.bridge import Bridge
    from cranfield.online.interleave import Interleaved
    from cranfield.online.simulate import Simulated
    from cranfield.workspace.inputs import Inputs

__all__ = ["bridge", "interleave", "simulate"]


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
    from cranfield.formats.streams import write_bytes
    from cranfield.online.log import Log
    from cranfield.online.simulate import plan_text, planned, refuse_beyond, simulate
    from cranfield.online.visits import Audience
    from cranfield.online.world import World, users_named

    chosen, people = users_named(users), Audience(**audience)
    refuse_beyond(people, before, seed)
    world = World.of(inputs.open_qrels(), inputs.open_runs(), k, inputs.queries())
    with Log(log, create=True) as opened:  # which refuses other folders, and makes its own with the first events
        is_new = plan is not None and not os.path.exists(plan)
        experiment = planned(plan, world, people, method)
        done = simulate(world, opened, experiment, chosen, people, seed=seed, before=before)
    if plan is not None and is_new:  # a simulation that fails leaves no plan behind
        write_bytes(plan, [plan_text(world.systems, people, method).encode()])
    return done


def bridge(
    inputs: Inputs,
    *,
    preferences: str | None = None,
    users: str = "navigational",
    methods: Sequence[str] = (),
    k: int = 10,
    searches: int = 100,
    by: str | None = None,
    least: float = 0.0,
    seed: int = 0,
) -> Bridge:
    """Which measure agrees with what users prefer, simulated or in a file of `preferences`."""
    from cranfield.online.bridge import bridge, read_preferences, simulated
    from cranfield.online.world import World, users_named
    from cranfield.slices import categories
    from cranfield.workspace.scoring import scored

    chosen = users_named(users)
    classes = None if by is None else categories(inputs.topic_table(f"--by {by}"), by)
    runs = inputs.open_runs(preferences)
    if len(runs) < 2:
        raise DataError(f"expected two runs or more, which make pairs, found {len(runs)}")
    scores = scored(inputs)
    if preferences is not None:
        signals = read_preferences(preferences)
    else:
        world = World.of(inputs.open_qrels(), {run.name: run for run in runs}, k)
        signals = simulated(world, chosen, methods or ("team-draft",), searches=searches, seed=seed)
    return bridge(scores, signals, classes=classes, column=by, least=least, seed=seed)

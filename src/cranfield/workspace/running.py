"""Verbs that make runs: from systems under test, and by fusing others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cranfield
from cranfield.workspace.inputs import Inputs, read_topics
from cranfield.workspace.logs import judgments_of

if TYPE_CHECKING:
    from cranfield.evaluate import Progress
    from cranfield.systems.produce import Produced
    from cranfield.tune import Fused

__all__ = ["fuse", "run"]


def fuse(
    inputs: Inputs, method: str, output: str, *, train_qrels: str | None, train_topics: str | None, **options: Any
) -> Fused:
    """Fuse run files into one and write it; see `cranfield.tune.fuse_files` for how training is chosen."""
    from cranfield.formats import write_run
    from cranfield.tune import fuse_files

    runs = inputs.open_runs(train_qrels, train_topics)
    topics = None if train_topics is None else read_topics(train_topics)
    qrels = None if train_qrels is None else judgments_of(train_qrels)
    fused = fuse_files(runs, method, qrels=qrels, topics=topics, rel=inputs.rel, **options)
    write_run(fused.run, output)
    return fused


def run(
    collection: str,
    system: str,
    output: str,
    *,
    topics: str | None = None,
    passes: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Produced:
    """Produce a run from a system under test and write it, with what it cost beside it."""
    from datetime import UTC, datetime

    from cranfield.doubts import strangers, warn
    from cranfield.systems import system as system_named
    from cranfield.systems.drive import Load
    from cranfield.systems.produce import produce

    load = Load(passes=passes, **{name: options.pop(name) for name in Load.__dataclass_fields__ if name in options})
    chosen = None if topics is None else read_topics(topics)
    engine = system_named(system)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        opened = cranfield.read_collection(collection)
        produced = produce(
            opened, engine, system, output, topics=chosen, load=load, made_at=now, progress=progress, **options
        )
        warn(strangers(produced.run, opened.qrels))
        return produced
    finally:
        engine.close()

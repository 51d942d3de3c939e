"""Verbs that make runs: from systems under test, and by fusing others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.workspace.files import once, read_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cranfield.systems.produce import Produced
    from cranfield.tune import Fused


def fuse_(
    runs: Sequence[str],
    method: str = "RRF",
    *,
    norm: str | None = None,
    weights: Sequence[float] | None = None,
    depth: int | None = None,
    train_qrels: str | None = None,
    train_topics: str | None = None,
    run_format: str | None = None,
    output: str | None = None,
    name: str | None = None,
    **training: Any,
) -> Fused:
    """Fuse run files into one and write it; see `cranfield.tune.fuse_files` for how training is chosen."""
    from cranfield.formats import as_runs, expand, write_run
    from cranfield.tune import fuse_files

    once(*runs, train_qrels, train_topics)
    topics = None if train_topics is None else read_topics(train_topics)
    opened = as_runs(expand(runs), run_format)
    done = fuse_files(opened, method, norm, weights, depth, train_qrels, topics, name, **training)
    if output is not None:
        write_run(done.run, output)
    return done


def run_(
    collection: str,
    system: str,
    output: str,
    *,
    topics: str | None = None,
    passes: int = 1,
    progress: Callable[[int, int | None], None] | None = None,
    **given: Any,
) -> Produced:
    """Produce a run from a system under test and write it, with what it cost beside it."""
    from datetime import UTC, datetime

    from cranfield.formats.folder import read_collection
    from cranfield.systems import system as made
    from cranfield.systems.drive import Load
    from cranfield.systems.produce import produce

    known = {name: given.pop(name) for name in Load.__dataclass_fields__ if name in given}
    asked = None if topics is None else read_topics(topics)
    engine, load = made(system), Load(passes=passes, **known)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        opened = read_collection(collection)
        return produce(opened, engine, system, output, topics=asked, load=load, made_at=now, progress=progress, **given)
    finally:
        engine.close()

"""Commands that produce runs: from systems under test, and by fusion."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import cranfield
from cranfield.formats import write_run
from cranfield.inputs.inputs import Inputs, read_topics
from cranfield.inputs.logs import judgments_of

if TYPE_CHECKING:
    from cranfield.retrieval.produce_run import Produced
    from cranfield.retrieval.tune import Fused


def fuse(
    inputs: Inputs, method: str, output: str, *, train_qrels: str | None, train_topics: str | None, **options: Any
) -> Fused:
    """Fuse run files and write the result; `cranfield.retrieval.tune.fuse_files` explains training."""
    from cranfield.retrieval.tune import fuse_files

    runs = inputs.open_runs(train_qrels, train_topics)
    topics = None if train_topics is None else read_topics(train_topics)
    qrels = None if train_qrels is None else judgments_of(train_qrels)
    fused = fuse_files(runs, method, qrels=qrels, topics=topics, rel=inputs.rel, **options)
    write_run(fused.run, output)
    return fused


def run(collection: str, system: str, output: str, *, topics: str | None = None, **options: Any) -> Produced:
    """Produce a run from a system under test and write it, with a file of its costs next to it."""
    from cranfield.evaluation.sanity_checks import foreign_documents, warn
    from cranfield.retrieval import system as system_named
    from cranfield.retrieval.driver import Load
    from cranfield.retrieval.produce_run import produce

    load = Load(**{name: options.pop(name) for name in Load.__dataclass_fields__ if name in options})
    topic_ids = None if topics is None else read_topics(topics)
    with closing(system_named(system)) as engine:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        opened = cranfield.read_collection(collection)
        produced = produce(opened, engine, system, output, topics=topic_ids, load=load, made_at=now, **options)
        warn(foreign_documents(produced.run, opened.qrels))
        return produced

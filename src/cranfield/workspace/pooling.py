"""Verbs on pools: what to judge next, what strategies would have found, whether judgments can be used again."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import cranfield
from cranfield.answer import Both
from cranfield.workspace.inputs import Inputs, once
from cranfield.workspace.logs import exists, labels_in
from cranfield.workspace.topics import queries_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cranfield.answer import Answer
    from cranfield.collection import Qrels
    from cranfield.evaluate import Progress
    from cranfield.pool.make import Collected, Pool
    from cranfield.pool.rankings import Rankings
    from cranfield.pool.simulate import Estimates, Simulation
    from cranfield.pool.statistics import PoolStatistics
    from cranfield.pool.stop import Stoppings
    from cranfield.pool.strategies.learn import Texts
    from cranfield.pool.thin import Readings


@dataclass(frozen=True)
class Depths:
    """How many documents of each run are pooled: of all, and of some by the run's name or its file's."""

    all: int = 100
    some: Mapping[str, int] | None = None

    def of(self, inputs: Inputs) -> dict[str, Any]:
        """The depth of all and those of some, by the names of the runs."""
        names: dict[str, str] = {}
        for name, file in _named(inputs).items():
            names |= {file: name, os.path.basename(file): name}
        return {"depth": self.all, "depths": {names.get(run, run): depth for run, depth in (self.some or {}).items()}}


def _named(inputs: Inputs) -> dict[str, str]:
    """The run files by the names of their runs."""
    from cranfield.formats import run_name

    files = inputs.files()
    return files if isinstance(files, dict) else {run_name(file): file for file in files}


def _tops(inputs: Inputs, depths: Depths, progress: Progress | None = None) -> Rankings:
    """The tops of run files, read one after the other."""
    from cranfield.formats import as_runs
    from cranfield.pool.rankings import rankings

    rules = inputs.conventions()
    one_by_one = (
        rules.ordered(inputs.with_ids(run))
        for name, file in _named(inputs).items()
        for run in as_runs({name: file}, inputs.run_format, inputs.lenient, inputs.fields)
    )
    return rankings(one_by_one, **depths.of(inputs), order=rules.order, progress=progress)


def pool(inputs: Inputs, depths: Depths, **options: Any) -> Pool:
    """What to judge from the tops of run files: options of `session_options` and of `cranfield.pool`."""
    return cranfield.pool(**session_options(inputs, depths, **options))


def sheet(made: Pool, collection: str | None) -> Iterator[bytes]:
    """A pool as CSV for assessors, with the texts of a collection."""
    return made.sheet(None if collection is None else cranfield.read_collection(collection))


def session_options(
    inputs: Inputs,
    depths: Depths,
    *,
    judgments: str | None = None,
    collection: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """What `cranfield.session` takes, with files opened; `judgments` are the labels so far, qrels were there before."""
    begun = judgments is not None and (judgments == "-" or exists(judgments))
    return {
        "runs": _tops(inputs, depths, progress),
        "qrels": None if inputs.qrels is None else inputs.open_qrels().to_dict(),
        "labels": labels_in(judgments) if judgments is not None and begun else [],
        "topics": inputs.chosen_topics(),
        "texts": _texts(collection),
        "rel": inputs.rel,
        **options,
    }


def _texts(collection: str | None) -> Texts | None:
    if collection is None:
        return None
    from cranfield.pool.strategies.learn import Texts

    return Texts.of(cranfield.read_collection(collection))


def statistics(
    inputs: Inputs, depths: Depths, seconds: float = 60.0, progress: Progress | None = None
) -> PoolStatistics:
    """What a pool of run files will cost, and how much its contributors differ."""
    from cranfield.pool.statistics import statistics

    return statistics(_tops(inputs, depths, progress), seconds)


def simulate(
    inputs: Inputs, depths: Depths, strategies: Sequence[str] = (), *, collection: str | None = None, **options: Any
) -> Simulation:
    """Replay pooling strategies on run files against judgments."""
    return cranfield.simulate(
        inputs.judgments,
        inputs.open_runs(),
        list(strategies) or None,
        list(inputs.measures),
        texts=_texts(collection),
        **depths.of(inputs),
        **inputs.options(),
        **options,
    )


def estimates(inputs: Inputs, depths: Depths, rates: Sequence[float], **options: Any) -> Estimates:
    """How well infAP, xinfAP and statAP estimate AP from samples of the judged pool."""
    from cranfield.pool.rankings import rankings
    from cranfield.pool.simulate import estimates

    runs = inputs.open_runs()
    tops = rankings(runs, **depths.of(inputs), order=inputs.conventions().order)
    return estimates(inputs.judgments, runs, tops, rates, **inputs.options(), **options)


def reuse(
    inputs: Inputs,
    depths: Depths,
    *,
    teams: Mapping[str, str] | None = None,
    new: Sequence[str] = (),
    holes: str | None = None,
    holes_depth: int = 10,
) -> tuple[Answer, int]:
    """Leave each run, or each team, out of the judgments that it contributed to.

    With it come readings of `new` runs, which did not contribute, by the bias that leaving out the others showed; see
    `thin` for their `holes`.
    """
    from cranfield.pool.reuse import Strangers

    qrels, runs = inputs.open_qrels(), inputs.open_runs(*new)
    reused = cranfield.reuse(qrels, runs, list(inputs.measures), teams=teams, **depths.of(inputs), **inputs.options())
    if not new:
        return reused, 0
    readings, written = _thin(
        replace(inputs, runs=new, rel=None if inputs.rel == 1 else inputs.rel), qrels, holes, holes_depth
    )
    return Both(reused, Strangers(readings, reused, written), "new"), written


def thin(inputs: Inputs, holes: str | None = None, holes_depth: int = 10) -> tuple[Readings, int]:
    """Read runs in every way that makes something of unjudged documents.

    Writes a pool of their `holes`, if it is to be written, and counts them.
    """
    return _thin(inputs, inputs.open_qrels(), holes, holes_depth)


def _thin(inputs: Inputs, qrels: Qrels, path: str | None, depth: int) -> tuple[Readings, int]:
    from cranfield.formats.pools import pool_lines
    from cranfield.formats.streams import write_bytes
    from cranfield.pool.thin import holes, thin

    runs = inputs.open_runs()
    readings = thin(qrels, runs, list(inputs.measures), **inputs.options())
    if path is None:
        return readings, 0
    items = holes(qrels, runs, depth, inputs.conventions().order)
    write_bytes(path, pool_lines(items))
    return readings, len(items)


def stopping(judgments: str, pool: str, **options: Any) -> Stoppings:
    """For each topic of a pool file, how many relevant documents are still unfound, and whether to stop."""
    from cranfield.formats.pools import read_pool
    from cranfield.pool.stop import stopping

    once(judgments, pool)
    return stopping(labels_in(judgments), read_pool(pool), **options)


def collect(pool: str, judgments: str, target: str, format: str | None = None) -> Collected:
    """Write labels as qrels, with what the pool file knows of the sampling."""
    from cranfield.formats.pools import read_pool
    from cranfield.pool.make import collect, write_collected

    once(judgments, pool)
    collected = collect(read_pool(pool), labels_in(judgments))
    write_collected(collected, target, format)
    return collected


def queries_in(inputs: Inputs, collection: str | None = None) -> Mapping[str, str]:
    """What the topics of a pool ask: by the topics file, the collection of the texts, or that of judgments from before."""
    return queries_of(inputs.topics_file, collection or inputs.collection, inputs.fields) or {}

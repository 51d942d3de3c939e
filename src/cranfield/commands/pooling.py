"""Commands on pools: what to judge next, simulation of strategies, reusability of judgments, stopping."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import cranfield
from cranfield.base.errors import ConventionError
from cranfield.base.results import Answer, Both
from cranfield.formats import as_runs, run_name
from cranfield.formats.pool_files import pool_lines, read_pool
from cranfield.formats.streams import write_bytes
from cranfield.inputs.inputs import Inputs, refuse_second_stdin
from cranfield.inputs.logs import exists, labels_in, named
from cranfield.inputs.topics import queries_of
from cranfield.pooling.strategy import PoolStatistics, Rankings, rankings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cranfield.base.qrels import Qrels
    from cranfield.evaluation.evaluate import Progress
    from cranfield.judging.round_recall import RoundRecall
    from cranfield.pooling.pool import Collected, Pool
    from cranfield.pooling.reuse import Readings
    from cranfield.pooling.simulation import EstimatorErrors, Simulation
    from cranfield.pooling.text_features import DocumentTexts


@dataclass(frozen=True)
class Depths:
    """The pool depth: of all runs, and of single runs by the name of the run or its file."""

    all: int = 100
    some: Mapping[str, int] | None = None

    def of(self, inputs: Inputs) -> dict[str, Any]:
        """The depth of all runs and those of single runs, by the names of the runs."""
        names: dict[str, str] = {}
        for name, file in _named(inputs).items():
            names |= {file: name, os.path.basename(file): name}
        return {"depth": self.all, "depths": {names.get(run, run): depth for run, depth in (self.some or {}).items()}}


def _named(inputs: Inputs) -> dict[str, str]:
    """The run files by the names of their runs."""
    files = inputs.files()
    return files if isinstance(files, dict) else {run_name(file): file for file in files}


def _tops(inputs: Inputs, depths: Depths, progress: Progress | None = None) -> Rankings:
    """The top-k rankings of run files, read one by one."""
    rules = inputs.conventions()
    one_by_one = (
        rules.ordered(inputs.with_ids(run))
        for name, file in _named(inputs).items()
        for run in as_runs({name: file}, inputs.run_format, inputs.lenient, inputs.fields)
    )
    return rankings(one_by_one, **depths.of(inputs), order=rules.order, progress=progress)


def pool(inputs: Inputs, depths: Depths, **options: Any) -> Pool:
    """The documents to judge, from the top ranks of run files; `options` go to `session_options` and `cranfield.pool`."""
    return cranfield.pool(**session_options(inputs, depths, **options))


def sheet(candidates: Pool, collection: str | None) -> Iterator[bytes]:
    """A pool as CSV for assessors, with the texts of a collection."""
    return candidates.sheet(None if collection is None else cranfield.read_collection(collection))


def session_options(
    inputs: Inputs,
    depths: Depths,
    *,
    judgments: str | None = None,
    collection: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The arguments of `cranfield.session`, with files opened; `judgments` are this session's labels, qrels earlier ones."""
    begun = judgments is not None and (judgments == "-" or named(judgments) is not None or exists(judgments))
    return {
        "runs": _tops(inputs, depths, progress),
        "qrels": None if inputs.qrels is None else inputs.open_qrels().to_dict(),
        "labels": labels_in(judgments) if judgments is not None and begun else [],
        "topics": inputs.chosen_topics(),
        "texts": _texts(collection),
        "rel": inputs.rel,
        **options,
    }


def _texts(collection: str | None) -> DocumentTexts | None:
    if collection is None:
        return None
    from cranfield.pooling.text_features import DocumentTexts

    return DocumentTexts.of(cranfield.read_collection(collection))


def statistics(
    inputs: Inputs, depths: Depths, seconds: float = 60.0, progress: Progress | None = None
) -> PoolStatistics:
    """The judging cost of a pool of run files, and how much the runs differ."""
    from cranfield.pooling.strategy import statistics

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


def estimates(inputs: Inputs, depths: Depths, rates: Sequence[float], **options: Any) -> EstimatorErrors:
    """How well infAP, xinfAP and statAP estimate AP from samples of the judged pool."""
    from cranfield.pooling.simulation import estimates

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
    """Test the judgments by leaving out each run, or each team, that contributed to them; also return the number of holes.

    `new` runs, which did not contribute, are scored as well, corrected by the bias that leaving out runs showed. See `thin`
    for their `holes`.
    """
    from cranfield.pooling.reuse import OutsideRuns

    qrels, runs = inputs.open_qrels(), inputs.open_runs(*new)
    reused = cranfield.reuse(qrels, runs, list(inputs.measures), teams=teams, **depths.of(inputs), **inputs.options())
    if not new:
        return reused, 0
    outside = replace(inputs, runs=new, rel=None if inputs.rel == 1 else inputs.rel)
    readings, hole_count = _thin(outside, qrels, holes, holes_depth)
    return Both(reused, OutsideRuns(readings, reused, hole_count), "new"), hole_count


def thin(inputs: Inputs, holes: str | None = None, holes_depth: int = 10) -> tuple[Readings, int]:
    """Score runs by each way of handling unjudged documents; also return the number of holes.

    Holes are the unjudged documents at the top of the runs. They are written as a pool to the file `holes`, if it is set.
    """
    return _thin(inputs, inputs.open_qrels(), holes, holes_depth)


def _thin(inputs: Inputs, qrels: Qrels, path: str | None, depth: int) -> tuple[Readings, int]:
    from cranfield.pooling.reuse import holes, thin

    runs = inputs.open_runs()
    readings = thin(qrels, runs, list(inputs.measures), **inputs.options())
    if path is None:
        return readings, 0
    items = holes(qrels, runs, depth, inputs.conventions().order)
    write_bytes(path, pool_lines(items))
    return readings, len(items)


def stopping(
    judgments: str, pool: str | None = None, round: str | None = None, rel: float | None = None, **options: Any
) -> Answer:
    """For each topic of a pool file or of a round, the relevant documents that may be missing, and whether to stop."""
    from cranfield.pooling.stopping import stopping

    if (pool is None) == (round is None):
        raise ConventionError("documents are those of --pool FILE or of --round NAME: give one of them")
    if pool is None:
        return _recall(judgments, round or "", rel=rel, **options)
    refuse_second_stdin(judgments, pool)
    return stopping(labels_in(judgments), read_pool(pool), rel=1 if rel is None else rel, **options)


def _recall(location: str, round: str, **options: Any) -> RoundRecall:
    from cranfield.judging.log_location import open_log
    from cranfield.judging.round_recall import round_recall

    with closing(open_log(location, new=False)) as log:
        return round_recall(log, round, **options)


def collect(pool: str, judgments: str, target: str, format: str | None = None) -> Collected:
    """Write labels as qrels, with the sampling information of the pool file."""
    from cranfield.pooling.pool import collect, write_collected

    refuse_second_stdin(judgments, pool)
    collected = collect(read_pool(pool), labels_in(judgments))
    write_collected(collected, target, format)
    return collected


def queries_in(inputs: Inputs, collection: str | None = None) -> Mapping[str, str]:
    """The queries of a pool's topics: from the topics file, the collection of the texts, or that of earlier judgments."""
    return queries_of(inputs.topics_file, collection or inputs.collection, inputs.fields) or {}

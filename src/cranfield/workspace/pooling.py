"""Verbs on pools: what to judge next, what strategies would have found, whether judgments can be used again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cranfield.workspace.files import draw_chart, once, opened_once, read_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cranfield.formats.judgments import Judgment
    from cranfield.pool.estimate import Estimates
    from cranfield.pool.make import Pool
    from cranfield.pool.rankings import Rankings
    from cranfield.pool.reuse import Reuse, Strangers
    from cranfield.pool.session import Session
    from cranfield.pool.simulate import Simulation
    from cranfield.pool.statistics import PoolStatistics
    from cranfield.pool.stop import Stoppings
    from cranfield.pool.strategies.learn import Texts
    from cranfield.pool.thin import Readings


def pool_(runs: Sequence[str], **given: Any) -> Pool:
    """What to judge from the tops of run files: options of `_session_options` and of `cranfield.pool`."""
    from cranfield.pool.make import pool

    return pool(**_session_options(runs, **given))


def _session_options(
    runs: Sequence[str],
    *,
    depth: int = 100,
    depths: Mapping[str, int] | None = None,
    qrels: str | None = None,
    judgments: str | None = None,
    topics: str | None = None,
    collection: str | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    lenient: bool = False,
    run_format: str | None = None,
    progress: Callable[[int, int | None], None] | None = None,
    **given: Any,
) -> dict[str, Any]:
    """Files opened; `judgments` are the labels so far, `qrels` were there before, `topics` a file of ids."""
    from cranfield.formats import read_qrels

    return {
        "runs": _tops(runs, depth, depths, preset, changes, lenient, run_format, progress),
        "qrels": None if qrels is None else read_qrels(qrels).to_dict(),
        "labels": _labels(judgments),
        "topics": None if topics is None else read_topics(topics),
        "texts": _texts(collection),
        **given,
    }


def _texts(collection: str | None) -> Texts | None:
    if collection is None:
        return None
    from cranfield.formats.folder import read_collection
    from cranfield.pool.strategies.learn import Texts

    return Texts.of(read_collection(collection))


def pool_statistics(
    runs: Sequence[str],
    depth: int = 100,
    depths: Mapping[str, int] | None = None,
    seconds: float = 60.0,
    progress: Callable[[int, int | None], None] | None = None,
    **reading: Any,
) -> PoolStatistics:
    """What a pool of run files will cost, and how much its contributors differ."""
    from cranfield.pool.statistics import statistics

    return statistics(_tops(runs, depth, depths, progress=progress, **reading), seconds)


def _tops(
    runs: Sequence[str],
    depth: int,
    depths: Mapping[str, int] | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    lenient: bool = False,
    run_format: str | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Rankings:
    """The tops of run files, read one after the other; a depth of its own by the run's name or its file's."""
    from cranfield.conventions import conventions
    from cranfield.formats import as_runs, run_name
    from cranfield.pool.rankings import rankings

    labelled = opened_once(runs)
    named = labelled if isinstance(labelled, dict) else {run_name(file): file for file in labelled}
    known = {file: name for name, file in named.items()} | {
        os.path.basename(file): name for name, file in named.items()
    }
    opened = (run for name, file in named.items() for run in as_runs({name: file}, run_format, lenient))
    order = conventions(preset, **(changes or {})).order
    own = {known.get(name, name): wanted for name, wanted in (depths or {}).items()}
    return rankings(opened, depth, own, order, progress)


def simulate_(
    qrels: str,
    runs: Sequence[str],
    measures: Iterable[str],
    strategies: Sequence[str] = (),
    *,
    depth: int = 100,
    depths: Mapping[str, int] | None = None,
    collection: str | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    lenient: bool = False,
    run_format: str | None = None,
    **given: Any,
) -> Simulation:
    """Replay pooling strategies on run files against judgments."""
    from cranfield.formats import as_runs
    from cranfield.pool.simulate import simulate

    tops = _tops(runs, depth, depths, preset, changes, lenient, run_format)
    return simulate(
        qrels,
        as_runs(opened_once(runs), run_format, lenient),
        list(strategies) or None,
        list(measures),
        tops=tops,
        texts=_texts(collection),
        conventions=preset,
        lenient=lenient,
        **given,
        **(changes or {}),
    )


def draw_simulation(found: Simulation, path: str) -> bool:
    """Write a chart of what strategies find if the file's ending is that of one, and say whether it was."""
    from cranfield.report.figures import chart

    return draw_chart(lambda: chart(found), path)


def estimates_(
    qrels: str,
    runs: Sequence[str],
    rates: Sequence[float],
    *,
    depth: int = 100,
    depths: Mapping[str, int] | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    lenient: bool = False,
    run_format: str | None = None,
    **given: Any,
) -> Estimates:
    """How well infAP, xinfAP and statAP estimate AP from samples of the judged pool."""
    from cranfield.formats import as_runs
    from cranfield.pool.estimate import estimates

    tops = _tops(runs, depth, depths, preset, changes, lenient, run_format)
    opened = as_runs(opened_once(runs), run_format, lenient)
    return estimates(qrels, opened, tops, rates, conventions=preset, lenient=lenient, **given, **(changes or {}))


def reuse_(
    qrels: str,
    runs: Sequence[str],
    measures: Iterable[str],
    *,
    depth: int = 100,
    depths: Mapping[str, int] | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    lenient: bool = False,
    run_format: str | None = None,
    **given: Any,
) -> Reuse:
    """Leave each run, or each team, out of the judgments that it contributed to."""
    from cranfield.formats import as_runs
    from cranfield.pool.reuse import reuse

    tops = _tops(runs, depth, depths, preset, changes, lenient, run_format)
    opened = as_runs(opened_once(runs), run_format, lenient)
    options: dict[str, Any] = {"conventions": preset, "lenient": lenient, **given, **(changes or {})}
    return reuse(qrels, opened, list(measures), tops=tops, **options)


def thin_(
    qrels: str,
    runs: Sequence[str],
    measures: Iterable[str],
    *,
    holes: str | None = None,
    holes_depth: int = 10,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    lenient: bool = False,
    run_format: str | None = None,
    **given: Any,
) -> tuple[Readings, int]:
    """Read runs in every way that makes something of unjudged documents; write a pool of their holes, and count them."""
    from cranfield.conventions import conventions
    from cranfield.formats import as_runs, read_qrels
    from cranfield.formats.pools import pool_lines
    from cranfield.formats.streams import write_bytes
    from cranfield.pool import thin as thin_pool

    judged = read_qrels(qrels, None, lenient)
    opened = as_runs(opened_once(runs, qrels), run_format, lenient)
    found = thin_pool.thin(
        judged, opened, list(measures), conventions=preset, lenient=lenient, **given, **(changes or {})
    )
    order = conventions(preset, **(changes or {})).order
    items = [] if holes is None else thin_pool.holes(judged, opened, holes_depth, order)
    if holes is not None:
        write_bytes(holes, pool_lines(items))
    return found, len(items)


def strangers(
    qrels: str,
    runs: Sequence[str],
    found: Reuse,
    *,
    measures: Iterable[str],
    holes: str | None = None,
    holes_depth: int = 10,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    lenient: bool = False,
    run_format: str | None = None,
    **_: Any,
) -> Strangers:
    """Read runs that did not contribute to judgments, with the bias that leaving out the others showed."""
    from cranfield.pool.reuse import Strangers

    options: dict[str, Any] = {"preset": preset, "changes": changes, "lenient": lenient, "run_format": run_format}
    read, n = thin_(qrels, runs, measures, holes=holes, holes_depth=holes_depth, **options)
    return Strangers(read, found, n)


def stopping_(judgments: str, pool: str, **given: Any) -> Stoppings:
    """For each topic of a pool file, how many relevant documents are still unfound, and whether to stop."""
    from cranfield.formats.judgments import read_judgments
    from cranfield.formats.pools import read_pool
    from cranfield.pool.stop import stopping

    once(judgments, pool)
    return stopping(read_judgments(judgments), read_pool(pool), **given)


def pool_qrels(pool: str, judgments: str, target: str, format: str | None = None) -> tuple[int, int]:
    """Write labels as qrels, with what the pool file knows of the sampling; says how many, and how many are missing."""
    from cranfield.formats.judgments import read_judgments
    from cranfield.formats.pools import read_pool
    from cranfield.pool.make import collect, write_collected

    found = collect(read_pool(pool), read_judgments(judgments))
    write_collected(found, target, format)
    return found.labels, found.missing


def _labels(path: str | None) -> list[Judgment]:
    """The labels in a file; none where there is no file yet."""
    from cranfield.formats.judgments import read_judgments

    return read_judgments(path) if path is not None and (path == "-" or os.path.exists(path)) else []


def judging(
    runs: Sequence[str], *, judgments: str, assessor: str = "", **given: Any
) -> tuple[Session, Callable[[str, str, float], None], Callable[[str, str], str]]:
    """A session over run files whose labels are kept in a file: the session, what keeps a label, what shows a document."""
    from datetime import UTC, datetime

    from cranfield.formats.judgments import Judgment, append_judgments
    from cranfield.pool.make import session

    options = _session_options(runs, judgments=judgments, **given)
    going, texts = session(**options), options["texts"]

    def keep(topic: str, document: str, grade: float) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        append_judgments(judgments, [Judgment(topic, document, grade, assessor, now)])
        going.judge(topic, document, grade)

    def show(topic: str, document: str) -> str:
        if texts is None:
            return f"topic {topic}\ndocument {document}"
        return f"topic {topic}\n{texts.topic(topic)}\n\ndocument {document}\n{texts.document(document)}"

    return going, keep, show

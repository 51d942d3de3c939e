"""Verbs that score and explain: eval, curve, explain, correlate, reproduce."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.errors import ConventionError, DataError
from cranfield.workspace.files import draw_chart, labelled, once, opened_once, read_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cranfield.correlate import Correlations
    from cranfield.curves import Curves
    from cranfield.explain import Views
    from cranfield.explanation import Explanation
    from cranfield.reproduce import Reproduction
    from cranfield.scores import Scores
    from cranfield.slices import Slices


def eval_(
    qrels: str,
    runs: Sequence[str],
    measures: Iterable[str],
    *,
    rel: float | None = None,
    topics: str | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    lenient: bool = False,
    qrels_format: str | None = None,
    run_format: str | None = None,
    threads: int | None = None,
    collection_size: int | None = None,
    aggregate: str | None = None,
    bounds: str | None = None,
    seed: int = 0,
    baseline: str | None = None,
    preferences: str | None = None,
    groups: str | None = None,
    aspect: str | None = None,
    costs: str | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Scores:
    """Score run files (or patterns of them, or `-`) against a qrels file. `topics` is a file of topic ids.

    With `bounds` (ties or unjudged) the scores carry theirs: `scores.bounds`.
    """
    from cranfield.collection import Extras
    from cranfield.evaluate import Evaluator
    from cranfield.formats import expand

    files = expand(runs)
    if [qrels, *files, baseline, preferences, groups, aspect, costs].count("-") > 1:
        raise DataError("standard input can be read once only, found - twice")
    evaluator = Evaluator(
        qrels,
        measures,
        rel=rel,
        topics=None if topics is None else read_topics(topics),
        conventions=preset,
        threads=threads,
        lenient=lenient,
        qrels_format=qrels_format,
        run_format=run_format,
        extras=Extras(
            size=collection_size,
            preferences=_preferences(preferences),
            groups=_groups(groups),
            aspect=_aspect(aspect),
            costs=_costs(costs),
        ),
        baseline=baseline,
        aggregate=aggregate,
        **(changes or {}),
    )
    if bounds is None:
        return evaluator.evaluate(labelled(files), progress)
    from cranfield.bounds import bounds_of

    found = bounds_of(evaluator, labelled(files), bounds, seed=seed)
    found.scores.bounds = found
    return found.scores


def curve_(
    qrels: str,
    runs: Sequence[str],
    kind: str = "pr",
    *,
    rel: float = 1,
    depth: int = 1000,
    level: str = "exact",
    topic: str | None = None,
    collection_size: int | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    **options: Any,
) -> Curves:
    """The curves of run files against a qrels file, of one topic or the mean over all."""
    from cranfield.collection import Extras
    from cranfield.curves import curves
    from cranfield.formats import expand

    files = expand(runs)
    if [qrels, *files].count("-") > 1:
        raise DataError("standard input can be read once only, found - twice")
    return curves(
        qrels,
        labelled(files),
        kind,
        rel=rel,
        depth=depth,
        level=level,
        topics=None if topic is None else [topic],
        extras=Extras(size=collection_size),
        conventions=preset,
        **options,
        **(changes or {}),
    )


def draw(curves: Curves, path: str) -> bool:
    """Write a chart if the file's ending is that of one, and say whether it was."""
    from cranfield.report.figures import chart

    return draw_chart(lambda: chart(curves), path)


def slice_(scores: Scores, topics_file: str, column: str) -> Slices:
    """Scores split by a column of a topics file."""
    from cranfield.slices import categories, slices

    return slices(scores, categories(topics_file, column), column)


def explain_(
    measure: str,
    qrels: str,
    run: str,
    topic: str | None = None,
    *,
    rel: float | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    full: bool = False,
    **options: Any,
) -> Explanation:
    """How a run file came by its score on one topic. `options` are those of `Evaluator` that say how files are read."""
    from cranfield.explain import explain

    once(qrels, run, options.get("baseline"))
    return explain(
        qrels, run, measure, topic, rel=rel, conventions=preset, full=full, **_known(options), **(changes or {})
    )


def explain_as_(
    measure: str, qrels: str, run: str, topic: str | None = None, preset: str = "all", **options: Any
) -> Views:
    """A run file's score under each program's conventions, or under one's."""
    from cranfield.explain import explain_as

    once(qrels, run, options.get("baseline"))
    return explain_as(qrels, run, measure, topic, preset, **_known(options))


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """The options, with what is known of the collection put together."""
    from cranfield.collection import Extras

    extras = Extras(
        size=options.pop("collection_size", None),
        preferences=_preferences(options.pop("preferences", None)),
        groups=_groups(options.pop("groups", None)),
        aspect=_aspect(options.pop("aspect", None)),
        costs=_costs(options.pop("costs", None)),
    )
    return {**options, "extras": extras}


def _preferences(path: str | None) -> Any:
    if path is None:
        return None
    from cranfield.formats.preferences import as_preferences

    return as_preferences(path)


def _groups(path: str | None) -> Any:
    if path is None:
        return None
    from cranfield.formats.groups import read_groups

    return read_groups(path)


def _costs(path: str | None) -> Any:
    if path is None:
        return None
    from cranfield.formats.costs import read_costs

    return read_costs(path)


def _aspect(path: str | None) -> Any:
    if path is None:
        return None
    from cranfield.formats import read_qrels

    return read_qrels(path).to_dict()


def correlate_(
    runs: Sequence[str],
    kinds: Iterable[str] = (),
    *,
    p: float = 0.9,
    depth: int | None = None,
    tied: Any = "a",
    documents: Any = "union",
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    lenient: bool = False,
    run_format: str | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Correlations:
    """Compare the result lists of run files (or patterns of them), each with each."""
    from cranfield.conventions import conventions
    from cranfield.correlate import correlate
    from cranfield.formats import as_runs

    return correlate(
        as_runs(opened_once(runs), run_format, lenient),
        kinds=list(kinds) or None,
        p=p,
        depth=depth,
        tied=tied,
        documents=documents,
        conventions=conventions(preset, **(changes or {})),
        progress=progress,
    )


def correlate_systems(
    qrels: str,
    runs: Sequence[str],
    measures: Iterable[str],
    kinds: Iterable[str] = (),
    other_qrels: str | None = None,
    **given: Any,
) -> Correlations:
    """Compare the rankings of run files by each two measures, or by the same measure under two qrels files."""
    from cranfield.correlate import correlate
    from cranfield.formats import run_name

    measures = list(measures)
    if other_qrels is not None and "-" in (qrels, other_qrels, *runs):
        raise DataError("standard input can be read once only, and two sets of judgments need the runs twice")
    scores = eval_(qrels, runs, measures, **given)
    others, names = None, ("", "")
    if other_qrels is not None:
        others = eval_(other_qrels, runs, measures, **given)
        names = (run_name(qrels), run_name(other_qrels))
        names = names if names[0] != names[1] else (qrels, other_qrels)
    found = correlate(scores, others, list(kinds) or None, names=names)
    said = [note for each in (scores, others) if each is not None for note in each.notes(shell=True)]
    found.remarks[:0] = list(dict.fromkeys(said))
    return found


def reproduce_(
    qrels: str,
    runs: Sequence[str],
    measures: Iterable[str],
    *,
    other_qrels: str | None = None,
    p: float = 0.9,
    depth: int | None = None,
    rel: float | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    lenient: bool = False,
    qrels_format: str | None = None,
    run_format: str | None = None,
) -> Reproduction:
    """Compare original with reproduced run files: one of each, or baseline and advanced run of each."""
    from cranfield.formats import as_runs, read_qrels
    from cranfield.reproduce import reproduce

    if len(runs) not in (2, 4):
        raise ConventionError(
            "expected ORIGINAL REPRODUCED, or ORIGINAL_BASE ORIGINAL_ADVANCED REPRODUCED_BASE REPRODUCED_ADVANCED; "
            f"found {len(runs)} runs"
        )
    opened = as_runs(opened_once(runs, qrels, other_qrels), run_format, lenient)
    half = len(opened) // 2
    return reproduce(
        read_qrels(qrels, qrels_format, lenient),
        opened[:half],
        opened[half:],
        list(measures),
        other_qrels=None if other_qrels is None else read_qrels(other_qrels, qrels_format, lenient),
        p=p,
        depth=depth,
        rel=rel,
        conventions=preset,
        **(changes or {}),
    )

"""Verbs that score and explain: evaluate, curve, explain, correlate, reproduce."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import cranfield
from cranfield.errors import ConventionError, DataError
from cranfield.parameters import masked
from cranfield.workspace.inputs import DEFAULT_MEASURES, Inputs
from cranfield.workspace.logs import judgments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cranfield.answer import Answer
    from cranfield.correlate import Correlations
    from cranfield.curves import Curves
    from cranfield.evaluate import Progress
    from cranfield.explain import Views
    from cranfield.explanation import Explanation
    from cranfield.reproduce import Reproduction
    from cranfield.scores import Scores
    from cranfield.sides import Sides


def evaluate(
    inputs: Inputs,
    *,
    aggregate: str | None = None,
    bounds: str | None = None,
    seed: int = 0,
    sort: str | None = None,
    by: str | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Score run files against a qrels file.

    With `bounds` (ties or unjudged) the answer is how low and high the scores could be; with `by`, a column of
    the topics file or of the collection's topics, the scores split by it.
    """
    files = inputs.files()
    topics = None if by is None else inputs.topic_table(f"--by {by}")
    measures = inputs.measures or DEFAULT_MEASURES
    evaluator = cranfield.Evaluator(inputs.judgments, measures, aggregate=aggregate, **inputs.options())
    if bounds is not None:
        from cranfield.bounds import bounds_of

        limits = bounds_of(evaluator, files, bounds, seed=seed)
        return limits if sort is None else limits.sort(sort)
    scores = evaluator.evaluate(files, progress)
    if sort is not None:
        scores = scores.sort(sort)
    if by is None or topics is None:
        return scores
    from cranfield.slices import categories

    return cranfield.slices(scores, categories(topics, by), by)


def scored(inputs: Inputs) -> Scores:
    """The scores of run files, or those in a file of scores: a row a topic, a column a run."""
    if inputs.table is None:
        files, measures = inputs.files(), inputs.measures or DEFAULT_MEASURES
        return cranfield.Evaluator(inputs.judgments, measures, **inputs.options()).evaluate(files)
    from cranfield.formats.score_table import read_score_table

    read = read_score_table(inputs.table, inputs.dialect)
    names = [name for text in inputs.measures for name in text.split()]
    tables, wanted = read.tables, names or None
    if "" in tables:  # the file does not say what it holds
        if len(names) > 1:
            raise ConventionError(
                f"{inputs.table} holds one measure, found {len(names)} names for it: {' '.join(names)}"
            )
        tables, wanted = {names[0] if names else table_name(inputs.table): tables[""]}, None
    scores = cranfield.Scores.from_table(tables, read.runs, read.topics)
    scores = replace(scores, queries=inputs.queries() or read.queries)
    scores = scores.select(measures=wanted, topics=inputs.chosen_topics())
    weights = inputs.weights()
    return scores if weights is None else scores.weighed(weights)


def scored_twice(inputs: Inputs, other: Inputs) -> tuple[Scores, Scores]:
    """The scores of the same runs under two sets of judgments, or in two tables."""
    if inputs.streams or "-" in (other.qrels, other.table):
        raise DataError("standard input can be read once only, and two sets of judgments need the runs twice")
    return scored(inputs), scored(other)


def apart(paths: tuple[str | None, str | None], name: Callable[[str], str]) -> tuple[str, str]:
    """What to call two files: by their names, or where these are the same by their paths."""
    one, other = (masked(str(path)) for path in paths)
    return (name(one), name(other)) if name(one) != name(other) else (one, other)


def table_name(path: str) -> str:
    """What a file's name says about the scores in it: robust2004_ap.csv.gz is robust2004_ap."""
    from cranfield.formats import run_name

    return run_name(path).removesuffix(".csv").removesuffix(".tsv")


def curve(inputs: Inputs, kind: str = "pr", *, topic: str | None = None, **options: Any) -> Curves:
    """The curves of run files against a qrels file, of one topic or the mean over all."""
    files = inputs.files()
    options |= inputs.options() | ({} if topic is None else {"topics": [topic]})
    return cranfield.curves(inputs.judgments, files, kind, **options)


def explain(inputs: Inputs, topic: str | None = None, *, full: bool = False) -> Explanation | Views | Sides:
    """How a run file came by its score on one topic; or its score as another program has it, or all of them (`all`).

    A preset without a topic is the latter. Two run files are laid side by side.
    """
    [measure] = inputs.measures
    if len(inputs.runs) == 2:
        return _side_by_side(inputs, measure, topic, full)
    [run] = inputs.just(1)
    preset = inputs.preset
    if preset == "all" or (preset is not None and topic is None and preset != "cranfield"):
        if inputs.changes:
            changed = next(iter(inputs.changes)).replace("_", "-")
            raise ConventionError(f"--as {preset} settles the conventions; leave out --{changed}")
        options = replace(inputs, preset=None).options()
        return cranfield.explain_as(inputs.judgments, run, measure, topic, preset, **options)
    return cranfield.explain(inputs.judgments, run, measure, topic, full=full, **inputs.options())


def _side_by_side(inputs: Inputs, measure: str, topic: str | None, full: bool) -> Sides:
    """Two run files on one topic, with the documents' titles where the collection is known."""
    from cranfield.workspace.texts import titles

    if inputs.preset == "all":
        raise ConventionError("--as all is for one run; leave out the other, or choose one preset")
    collection = inputs.collection
    texts = None if collection is None else partial(titles, collection)
    one, other = inputs.just(2)
    options = inputs.options()
    return cranfield.side_by_side(inputs.judgments, one, other, measure, topic, full=full, texts=texts, **options)


def correlate(
    inputs: Inputs,
    kinds: Sequence[str] = (),
    *,
    other_qrels: str | None = None,
    progress: Progress | None = None,
    **lists: Any,
) -> Correlations:
    """Compare the result lists of run files, each with each.

    With judgments it compares their rankings instead: by each two measures, or by the same under other judgments.
    `lists` says how lists are compared.
    """
    if inputs.qrels is None:
        runs, rules = inputs.open_runs(), inputs.conventions()
        return cranfield.correlate(runs, kinds=list(kinds) or None, conventions=rules, progress=progress, **lists)
    from cranfield.formats import run_name

    others, names = None, ("", "")
    if other_qrels is None:
        scores = scored(inputs)
    else:
        scores, others = scored_twice(inputs, replace(inputs, qrels=other_qrels))
        names = apart((inputs.qrels, other_qrels), run_name)
    correlations = cranfield.correlate(scores, others, list(kinds) or None, names=names)
    remarks = [note for each in (scores, others) if each is not None for note in each.notes(shell=True)]
    return replace(correlations, remarks=[*dict.fromkeys(remarks), *correlations.remarks])


def reproduce(inputs: Inputs, *, other_qrels: str | None = None, **options: Any) -> Reproduction:
    """Compare original with reproduced run files: one of each, or baseline and advanced run of each."""
    if len(inputs.runs) not in (2, 4):
        raise ConventionError(
            "expected ORIGINAL REPRODUCED, or ORIGINAL_BASE ORIGINAL_ADVANCED REPRODUCED_BASE REPRODUCED_ADVANCED; "
            f"found {len(inputs.runs)} runs"
        )
    runs = inputs.open_runs(other_qrels)
    half = len(runs) // 2
    return cranfield.reproduce(
        inputs.judgments,
        runs[:half],
        runs[half:],
        list(inputs.measures),
        other_qrels=None if other_qrels is None else judgments_of(other_qrels),
        **inputs.options(),
        **options,
    )

"""Commands that score and explain runs: evaluate, curve, explain, correlate, reproduce."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import cranfield
from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import masked
from cranfield.formats import run_name
from cranfield.inputs.inputs import DEFAULT_MEASURES, Inputs
from cranfield.inputs.logs import judgments_of
from cranfield.inputs.topics import titles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cranfield.base.results import Answer
    from cranfield.comparison.correlate import Correlations
    from cranfield.comparison.reproduce import Reproduction
    from cranfield.evaluation.curves import Curves
    from cranfield.evaluation.evaluate import Progress
    from cranfield.evaluation.explain import PeerScores
    from cranfield.evaluation.explanation import Explanation
    from cranfield.evaluation.scores import Scores
    from cranfield.evaluation.side_by_side import TopicComparison


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

    With `bounds` (ties or unjudged) the result has the lowest and highest possible scores. With `by`, a column of the
    topics file or of the collection's topics, there is one score per value of that column.
    """
    files = inputs.files()
    topics = None if by is None else inputs.topic_table(f"--by {by}")
    measures = inputs.measures or DEFAULT_MEASURES
    evaluator = cranfield.Evaluator(inputs.judgments, measures, aggregate=aggregate, **inputs.options())
    if bounds is not None:
        from cranfield.evaluation.bounds import bounds_of

        limits = bounds_of(evaluator, files, bounds, seed=seed)
        return limits if sort is None else limits.sort(sort)
    scores = evaluator.evaluate(files, progress)
    if sort is not None:
        scores = scores.sort(sort)
    if by is None or topics is None:
        return scores
    from cranfield.evaluation.slices import categories

    return cranfield.slices(scores, categories(topics, by), by)


def scored(inputs: Inputs) -> Scores:
    """The scores of run files, or of a table of scores with one row per topic and one column per run."""
    if inputs.table is None:
        files, measures = inputs.files(), inputs.measures or DEFAULT_MEASURES
        return cranfield.Evaluator(inputs.judgments, measures, **inputs.options()).evaluate(files)
    from cranfield.formats.score_table import read_score_table

    read = read_score_table(inputs.table, inputs.dialect)
    names = [name for text in inputs.measures for name in text.split()]
    tables, selection = read.tables, names or None
    if "" in tables:  # the file does not name its measure
        if len(names) > 1:
            problem = f"found {len(names)} names for it: {' '.join(names)}"
            raise ConventionError(f"{inputs.table} holds one measure, {problem}")
        tables, selection = {names[0] if names else table_name(inputs.table): tables[""]}, None
    scores = cranfield.Scores.from_table(tables, read.runs, read.topics)
    scores = replace(scores, queries=inputs.queries or read.queries)
    scores = scores.select(measures=selection, topics=inputs.chosen_topics())
    weights = inputs.weights()
    return scores if weights is None else scores.weighed(weights)


def scored_twice(inputs: Inputs, other: Inputs) -> tuple[Scores, Scores]:
    """The scores of the same runs under two sets of judgments, or in two tables."""
    if inputs.streams or "-" in (other.qrels, other.table):
        raise DataError("standard input can be read once only, and two sets of judgments need the runs twice")
    return scored(inputs), scored(other)


def apart(paths: tuple[str | None, str | None], name: Callable[[str], str]) -> tuple[str, str]:
    """Names for two files: their names, or their paths if the names are the same."""
    one, other = (masked(str(path)) for path in paths)
    return (name(one), name(other)) if name(one) != name(other) else (one, other)


def table_name(path: str) -> str:
    """The name of the scores in a file, from the file's name: robust2004_ap for robust2004_ap.csv.gz."""
    return run_name(path).removesuffix(".csv").removesuffix(".tsv")


def curve(inputs: Inputs, kind: str = "pr", *, topic: str | None = None, **options: Any) -> Curves:
    """The curves of run files against a qrels file, for one topic or averaged over all."""
    files = inputs.files()
    options |= inputs.options() | ({} if topic is None else {"topics": [topic]})
    return cranfield.curves(inputs.judgments, files, kind, **options)


def explain(
    inputs: Inputs, topic: str | None = None, *, full: bool = False
) -> Explanation | PeerScores | TopicComparison:
    """How a run file's score on a topic is computed; two run files are shown side by side.

    With a preset and no topic, the result is the score that another program computes; the preset `all` means every program.
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


def _side_by_side(inputs: Inputs, measure: str, topic: str | None, full: bool) -> TopicComparison:
    """Two run files on one topic, with the documents' titles if the collection is known."""
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
    """Correlate the result lists of run files, pair by pair.

    With judgments, correlate rankings of the runs instead: by every two measures, or by one measure under two sets of
    judgments. `lists` has the options for comparing lists.
    """
    if inputs.qrels is None:
        runs, rules = inputs.open_runs(), inputs.conventions()
        return cranfield.correlate(runs, kinds=list(kinds) or None, conventions=rules, progress=progress, **lists)

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
    """Compare original and reproduced run files: one each, or a baseline and an advanced run each."""
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

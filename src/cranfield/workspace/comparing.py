"""Verbs from scores to a decision: compare, leaderboard, stability, design, gate, report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import cranfield
from cranfield.answer import Both
from cranfield.errors import ConventionError, DataError
from cranfield.parameters import whole
from cranfield.workspace.inputs import DEFAULT_MEASURES, Inputs, given_runs, once, path_of, read_topics
from cranfield.workspace.scoring import apart, correlate, scored, scored_twice, table_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.answer import Answer
    from cranfield.compare import Comparison
    from cranfield.compare.leaderboard import Leaderboard
    from cranfield.design import Plans
    from cranfield.evaluate import Progress
    from cranfield.gate import Gate
    from cranfield.report.reporting import Report
    from cranfield.stability import Stability


def compare(
    inputs: Inputs,
    *,
    run_groups: Sequence[str] = (),
    progress: Progress | None = None,
    label_noise: bool = False,
    policy: str | None = None,
    **question: Any,
) -> Comparison:
    """Compare run files, or the runs of a table of scores. `question` is what `cranfield.compare` takes beside them.

    `run_groups` are patterns of runs, or of files that are not among the runs, which belong to one system. With
    `label_noise` the judgments are a log, whose grades stand by a policy and are redrawn.
    """
    question["groups"] = run_groups or None
    if inputs.table is not None:
        if label_noise:
            raise ConventionError("label noise: a table of scores holds no labels; give a log and the runs")
        return replace(cranfield.compare(scored(inputs), **question), inputs={"table": inputs.table})
    from cranfield.compare.efficiency import beside

    inputs = replace(inputs, runs=_with_groups(inputs.runs, run_groups))
    files = inputs.files()
    baseline = _baseline_file(files, question.get("baselines"), inputs.measures)
    options = replace(inputs, baseline=baseline).options()
    measures = inputs.measures or DEFAULT_MEASURES
    judgments: Any = None if label_noise else inputs.judgments
    named = judgments
    if label_noise:
        from cranfield.workspace.judging import graded

        judgments, question["label_noise"] = graded(str(inputs.qrels), policy)
        named = judgments.name  # without a password
    comparison = cranfield.compare(judgments, files, measures, progress=progress, **options, **question)
    runs = files if isinstance(files, dict) else dict(zip(comparison.scores.runs, files, strict=False))
    read = {"qrels": getattr(named, "name", named), "runs": runs}
    return replace(comparison, inputs=read, efficiency=beside(comparison.scores, runs))


def _with_groups(runs: Sequence[str], groups: Sequence[str]) -> list[str]:
    """The run files, and those of a group's pattern that are not among them: the pattern then is one of files."""
    from fnmatch import fnmatchcase

    from cranfield.compare.systems import parsed
    from cranfield.formats import expand, run_name

    typed, names = list(runs), [one.label or run_name(one.file) for one in given_runs(runs)]
    for text in groups:
        pattern = text.partition("=")[2] or text
        [wanted] = parsed([text]).values()
        if not any(fnmatchcase(name, str(wanted)) for name in names):
            typed += expand([pattern])
            names += map(run_name, expand([pattern]))
    return typed


def _baseline_file(
    files: list[str] | dict[str, str], baselines: Sequence[str] | None, measures: Sequence[str]
) -> str | None:
    """The file of the first baseline, where a measure of risk wants to know it."""
    from cranfield.formats import run_name

    if not baselines or not measures:
        return None
    if not any("baseline" in measure.needs for measure in cranfield.measures(list(measures)).values()):
        return None
    named = files if isinstance(files, dict) else {run_name(file): file for file in files}
    return named.get(baselines[0], named.get(run_name(baselines[0]), baselines[0]))


def leaderboard(inputs: Inputs, **question: Any) -> Leaderboard:
    """Run files (or the runs of a table of scores), best first, with how sure their ranks are."""
    if inputs.table is not None:
        return cranfield.leaderboard(scored(inputs), **question)
    measures = inputs.measures or DEFAULT_MEASURES
    return cranfield.leaderboard(inputs.judgments, inputs.files(), measures, **inputs.options(), **question)


def stability(
    inputs: Inputs,
    *,
    parts: Sequence[str] = (),
    kinds: Sequence[str] = (),
    other_qrels: str | None = None,
    other_table: str | None = None,
    **question: Any,
) -> Answer:
    """How stable the ranking of run files (or of the runs of a table) is; and how alike their lists are, if asked."""
    other = None
    if inputs.table is None and other_qrels is not None:
        other = replace(inputs, qrels=other_qrels)
    elif inputs.table is not None and other_table is not None:
        other = replace(inputs, table=other_table)
    if "lists" not in parts:
        return _stability(inputs, other, parts, kinds, question)
    if inputs.table is not None:
        raise ConventionError("lists: a table of scores holds no documents; give the runs themselves")
    rest = [part for part in parts if part != "lists"]
    lists = correlate(replace(inputs, qrels=None), () if rest else kinds, p=question.get("p", 0.9))
    first = _stability(inputs, other, rest, kinds, question) if rest else None
    return Both(first, lists, "lists", "lists: do the runs return the same documents?")


def _stability(
    inputs: Inputs, other: Inputs | None, parts: Sequence[str], kinds: Sequence[str], question: dict[str, Any]
) -> Stability:
    """The parts but for lists; under other judgments, or in another table, where there are such."""
    question = {**question, "parts": parts or None, **({"kinds": kinds} if kinds else {})}
    if other is None:
        return cranfield.stability(scored(inputs), **question)
    paths = (inputs.qrels, other.qrels) if inputs.table is None else (inputs.table, other.table)
    if inputs.table is not None and not inputs.measures:  # two files of one measure, whatever they are called
        inputs, other = replace(inputs, measures=["score"]), replace(other, measures=["score"])
    names = apart(paths, table_name)
    return cranfield.stability(*scored_twice(inputs, other), names=names, **question)


def design(inputs: Inputs, *, sd: float | None = None, sizes: str | None = None, **question: Any) -> Plans:
    """How many topics it takes, by the variance between run files (or the runs of a table), or by a given one."""
    try:
        numbers = None if sizes is None else [whole(size) for size in sizes.replace(",", " ").split()]
    except ValueError:
        raise ConventionError(f"sizes: expected numbers of topics, as in 25,50,100, found {sizes!r}") from None
    if sd is not None:
        return cranfield.design(sd=sd, sizes=numbers, **question)
    if inputs.table is None:
        inputs = replace(inputs, measures=inputs.measures or ["nDCG@10"])
    return cranfield.design(scored(inputs), sizes=numbers, **question)


def report(
    inputs: Inputs,
    *,
    title: str | None = None,
    command: str = "",
    digits: int = 4,
    documents: str | None = None,
    texts: bool = True,
    **question: Any,
) -> Report:
    """Compare run files and put beside it what a report shows; `question` is that of `compare`.

    What was asked and what documents say come from the collection that stands for the judgments, or from files.
    """
    from cranfield.report.reporting import report_of
    from cranfield.report.texts import documents_of
    from cranfield.workspace.topics import topic_table

    if inputs.streams or documents == "-":
        raise DataError("a report reads its files more than once and names them; give files, found - (standard input)")
    comparison = compare(inputs, **question)
    judged = None if inputs.table is not None or isinstance(inputs.judgments, str) else inputs.judgments
    return report_of(
        comparison,
        inputs.options(),
        inputs.others,
        title=title,
        command=command,
        digits=digits,
        topics=topic_table(inputs.topics_file, inputs.collection, inputs.fields),
        documents=documents_of(inputs.qrels, documents) if texts else None,
        judged=judged,
    )


def gate(inputs: Inputs, *, documents: str | None = None, **question: Any) -> Gate:
    """Whether the second run file may replace the first. `documents` is a file of the corpus's ids."""
    once(*map(path_of, inputs.runs), inputs.qrels, inputs.topics, inputs.topics_file, documents)
    baseline, candidate = inputs.just(2)
    corpus = None if documents is None else read_topics(documents)
    measures = list(inputs.measures)
    options = {**inputs.options(), **question, "documents": corpus}
    return cranfield.gate(inputs.judgments, baseline, candidate, measures, **options)

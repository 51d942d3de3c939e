"""Commands that compare runs: compare, leaderboard, stability, design, gate, report."""

from __future__ import annotations

import os
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import cranfield
from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import whole
from cranfield.base.results import Answer, Both
from cranfield.commands.evaluation import apart, correlate, scored, scored_twice, table_name
from cranfield.formats import expand, run_name
from cranfield.inputs.inputs import DEFAULT_MEASURES, Inputs, path_of, read_topics, refuse_second_stdin, run_arguments
from cranfield.inputs.topics import topic_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.comparison.compare import Comparison
    from cranfield.comparison.design import PowerPlans
    from cranfield.comparison.gate.gate import Gate
    from cranfield.comparison.leaderboard import Leaderboard
    from cranfield.comparison.stability import Stability
    from cranfield.evaluation.evaluate import Progress
    from cranfield.reports.report_content import Report


def compare(
    inputs: Inputs,
    *,
    run_groups: Sequence[str] = (),
    progress: Progress | None = None,
    label_noise: bool = False,
    policy: str | None = None,
    **question: Any,
) -> Comparison:
    """Compare run files, or the runs of a table of scores; `question` has the other arguments of `cranfield.compare`.

    `run_groups` are patterns of the runs (or of more files) that belong to one system. With `label_noise` the judgments are
    a log, and a policy decides their grades, which are resampled; or a file of judgments from clicks, whose values are.
    """
    question |= {"groups": run_groups or None, "tests": question.get("tests") or None}
    if inputs.table is not None:
        if label_noise:
            raise ConventionError("label noise: a table of scores holds no labels; give a log and the runs")
        return replace(cranfield.compare(scored(inputs), **question), inputs={"table": inputs.table})
    from cranfield.comparison.efficiency import efficiency_of_files

    inputs = replace(inputs, runs=_with_groups(inputs.runs, run_groups))
    files = inputs.files()
    baseline = _baseline_file(files, question.get("baselines"), inputs.measures)
    options = replace(inputs, baseline=baseline).options()
    measures = inputs.measures or DEFAULT_MEASURES
    judgments: Any = None if label_noise else inputs.judgments
    if label_noise:
        judgments, question["label_noise"] = _noisy(inputs, policy)
    comparison = cranfield.compare(judgments, files, measures, progress=progress, **options, **question)
    runs = files if isinstance(files, dict) else dict(zip(comparison.scores.runs, files, strict=False))
    read = {"qrels": getattr(judgments, "name", judgments), "runs": runs}  # a log is named without its password
    return replace(comparison, inputs=read, efficiency=efficiency_of_files(comparison.scores, runs))


def _noisy(inputs: Inputs, policy: str | None) -> tuple[Any, Any]:
    """The judgments and their uncertainty: of a log by a policy, or of a file of judgments from clicks."""
    from cranfield.comparison.label_noise import ValueUncertainty
    from cranfield.formats.uncertain_qrels import has_posteriors
    from cranfield.inputs.logs import named

    qrels = str(inputs.qrels)
    of_clicks = named(qrels) is None and os.path.isfile(qrels) and has_posteriors(qrels)
    if not of_clicks and not _holds_labels(qrels):
        raise DataError(
            f"{qrels}: expected a log of judgments, or a file of judgments from clicks with the columns alpha, beta and "
            "posterior (cranfield online qrels LOG -o clicks.csv), found neither; other qrels do not say how sure they are"
        )
    if not of_clicks:
        from cranfield.commands.judging import graded

        return graded(qrels, policy)
    if policy is not None:
        raise ConventionError(f"{qrels} holds judgments from clicks, which need no policy; leave --policy out")
    if inputs.grades is not None:
        raise ConventionError("label noise redraws the values of judgments from clicks; leave --grades out")
    return inputs.judgments, ValueUncertainty.of_file(qrels)


def _holds_labels(qrels: str) -> bool:
    """Whether a location may hold labels of people: a log, or JSON lines; a missing file is left to the reader of logs."""
    from cranfield.inputs.logs import named

    if qrels == "-" or named(qrels) is not None or not os.path.isfile(qrels):
        return qrels != "-"
    with open(qrels, "rb") as file:
        return file.read(1) in (b"{", b"")


def _with_groups(runs: Sequence[str], groups: Sequence[str]) -> list[str]:
    """The run files, plus the files that match a group's pattern if no run does."""
    from cranfield.comparison.score_tables import parse_groups

    typed, names = list(runs), [one.label or run_name(one.file) for one in run_arguments(runs)]
    for text in groups:
        pattern = text.partition("=")[2] or text
        [member_pattern] = parse_groups([text]).values()
        if not any(fnmatchcase(name, str(member_pattern)) for name in names):
            typed += expand([pattern])
            names += map(run_name, expand([pattern]))
    return typed


def _baseline_file(
    files: list[str] | dict[str, str], baselines: Sequence[str] | None, measures: Sequence[str]
) -> str | None:
    """The file of the first baseline, if a measure of risk needs it."""
    if not baselines or not measures:
        return None
    if not any("baseline" in measure.needs for measure in cranfield.measures(list(measures)).values()):
        return None
    named = files if isinstance(files, dict) else {run_name(file): file for file in files}
    return named.get(baselines[0], named.get(run_name(baselines[0]), baselines[0]))


def leaderboard(inputs: Inputs, **question: Any) -> Leaderboard:
    """Run files (or the runs of a table of scores), best first, with the uncertainty of their ranks."""
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
    """The stability of the ranking of run files (or of a table's runs); with the part `lists`, also of their lists."""
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
    """All parts of stability except lists; against other judgments or another table if there are any."""
    question = {**question, "parts": parts or None, **({"kinds": kinds} if kinds else {})}
    if other is None:
        return cranfield.stability(scored(inputs), **question)
    paths = (inputs.qrels, other.qrels) if inputs.table is None else (inputs.table, other.table)
    if inputs.table is not None and not inputs.measures:  # two files of one measure, whatever they are called
        inputs, other = replace(inputs, measures=["score"]), replace(other, measures=["score"])
    names = apart(paths, table_name)
    return cranfield.stability(*scored_twice(inputs, other), names=names, **question)


def design(inputs: Inputs, *, sd: float | None = None, sizes: str | None = None, **question: Any) -> PowerPlans:
    """The number of topics needed, from the variance between run files (or a table's runs), or from `sd`."""
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
    clicks: str | None = None,
    click_model: str | None = None,
    **question: Any,
) -> Report:
    """Compare run files and add the other contents of a report; `question` has the arguments of `compare`.

    `clicks` is an event log, and `click_model` the model that says how far its users look. The texts of topics and
    documents come from the collection of the judgments, or from files.
    """
    from cranfield.reports.report_content import clicks_of, report_of
    from cranfield.reports.texts import documents_of

    if inputs.streams or documents == "-":
        raise DataError("a report reads its files more than once and names them; give files, found - (standard input)")
    comparison = compare(inputs, **question)
    judged = None if inputs.table is not None or isinstance(inputs.judgments, str) else inputs.judgments
    topics = topic_table(inputs.topics_file, inputs.collection, inputs.fields)
    return report_of(
        comparison,
        inputs.options(),
        inputs.others,
        title=title,
        command=command,
        digits=digits,
        topics=topics,
        documents=documents_of(inputs.qrels, documents) if texts else None,
        judged=judged,
        clicks=None if clicks is None else clicks_of(clicks, comparison, topics, click_model),
        event_log=clicks,
    )


def gate(inputs: Inputs, *, documents: str | None = None, **question: Any) -> Gate:
    """Whether the second run file may replace the first; `documents` is a file with the ids of the corpus."""
    refuse_second_stdin(*map(path_of, inputs.runs), inputs.qrels, inputs.topics, inputs.topics_file, documents)
    baseline, candidate = inputs.just(2)
    corpus = None if documents is None else read_topics(documents)
    measures = list(inputs.measures)
    options = {**inputs.options(), **question, "documents": corpus}
    return cranfield.gate(inputs.judgments, baseline, candidate, measures, **options)

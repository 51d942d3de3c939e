"""The commands that read clicks: click models, judgments and preferences from clicks, and their agreement with people's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Both
from cranfield.base.text_layout import name_list
from cranfield.experiments.clicks.judgments import ClickJudgments, judge_by_clicks
from cranfield.experiments.clicks.preferences import (
    MIN_VOTES,
    PREFERENCE_RULES,
    ClickPreferences,
    prefer_by_clicks,
)
from cranfield.experiments.clicks.values import CLICK_VALUES
from cranfield.experiments.log import EventLog
from cranfield.formats.streams import write_bytes
from cranfield.formats.uncertain_qrels import as_table, holds_columns
from cranfield.inputs.topics import queries_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.experiments.clicks.click_log import CountedClicks
    from cranfield.experiments.clicks.click_summary import ClickSummary
    from cranfield.experiments.clicks.fits import ClickModelComparison, ClickModelFit, HeldOut
    from cranfield.experiments.clicks.model import ClickModel, FittedClickModel
    from cranfield.experiments.clicks.people_agreement import ClickAgreement
    from cranfield.experiments.clicks.position_bias import PositionBias
    from cranfield.experiments.clicks.result_pages import ResultPages
    from cranfield.inputs.inputs import Inputs

MODEL = "SDBN(exact=yes)"  # the published counts of SDBN are too high
MEASURES = ("nDCG@10",)
ALL = "all"
HOLDOUT = 0.25  # the share of units that quality is measured on


def click_models(
    log: str,
    *,
    model: str = "PBM",
    exact: bool = False,
    holdout: float | None = None,
    min_sessions: int | None = None,
    lenient: bool = False,
    memory: str | None = None,
    seed: int = 0,
) -> ClickModelFit | ClickModelComparison:
    """A click model fitted to an event log or to a table of counts; with the model `all`, the comparison of all models.

    Queries with one session are refused unless `min_sessions` says how many a query needs. Fewer are left out.
    """
    from cranfield.experiments.clicks.click_log import count_clicks, read_counts, read_pages
    from cranfield.experiments.clicks.fits import compare_models, hold_out, pages_of_queries

    refuse_below(1, min_sessions=min_sessions)
    chosen, every = _models(model, exact), model.casefold() == ALL
    if is_table_of_counts(log):
        if holdout or every:
            raise ConventionError(f"{log}: a table of counts has no searches to hold out; --holdout and all need a log")
        return _fit_to_counts(chosen[0], read_counts(log), min_sessions)
    share = HOLDOUT if holdout is None else holdout
    if every and not share:
        raise ConventionError("models are compared on held-out searches; --holdout must be above 0 for --model all")
    reading: dict[str, Any] = {"lenient": lenient, "memory": memory}
    with EventLog(log) as opened:
        if not (share or chosen[0].needs_pages):  # memory for pairs will do
            counted = count_clicks(opened, other_clicks=chosen[0].reads_other_clicks, **reading)
            return _fit_to_counts(chosen[0], counted, min_sessions)
        read = read_pages(opened, **reading)
    pages, notes = pages_of_queries(read, min_sessions)
    split = hold_out(read._replace(pages=pages), share, seed) if share else None
    if every and split is not None:
        return compare_models(chosen, split, notes)
    return _fit_to_pages(chosen[0], pages, split, notes)


def is_table_of_counts(path: str) -> bool:
    """Whether a path is a file or standard input; a log is a folder."""
    return path == "-" or os.path.isfile(path)


def _fit_to_counts(model: ClickModel, counted: CountedClicks, least: int | None) -> ClickModelFit:
    from cranfield.experiments.clicks.fits import ClickModelFit, counts_of_queries, fit_model

    counts, notes = counts_of_queries(counted, least)
    views, clicks = counts.by(counts.pair, len(counts.pairs))
    return ClickModelFit(fit_model(model, counts), counts.pages, views, clicks, remarks=tuple(notes))


def _fit_to_pages(model: ClickModel, pages: ResultPages, split: HeldOut | None, notes: Sequence[str]) -> ClickModelFit:
    """A model with the parameters of all pages, and the quality of a fit to those that are not held out."""
    from cranfield.experiments.clicks.fits import ClickModelFit, SplitText, fit_model, quality
    from cranfield.experiments.clicks.result_pages import ClickCounts

    fitted = fit_model(model, pages)
    counts = ClickCounts.of(pages, other_clicks=False)
    views, clicks = counts.by(counts.pair, len(counts.pairs))
    if split is None:
        return ClickModelFit(fitted, len(pages), views, clicks, remarks=tuple(notes))
    own, _ = quality(fit_model(model, split.fitted), split.tested)
    return ClickModelFit(fitted, len(pages), views, clicks, own, SplitText.of(split), tuple(notes))


def _models(typed: str, exact: bool) -> list[ClickModel]:
    """The click models that a user names, with exact fits where there are any and they are asked for."""
    from cranfield.experiments.clicks.model import CLICK_MODELS

    every = typed.casefold() == ALL
    models = [cls() for cls in CLICK_MODELS.values()] if every else [CLICK_MODELS.named(typed)]
    if not exact:
        return models
    if not any("exact" in each.parameters for each in models):
        names = name_list([name for name, cls in CLICK_MODELS.items() if "exact" in cls.parameters])
        raise ConventionError(
            f"{models[0].name} has no published counts that differ from its exact fit; exact is for {names}"
        )
    return [_exact(each) if "exact" in each.parameters else each for each in models]


def _exact(model: ClickModel) -> ClickModel:
    return type(model)(**{**{name: model.values[name] for name in model.typed}, "exact": True})


def click_qrels(
    log: str,
    *,
    model: str | None = None,
    value: str = "attractiveness",
    path: str | None = None,
    topics_file: str | None = None,
    lenient: bool = False,
    memory: str | None = None,
    against: Inputs | None = None,
    seed: int = 0,
    **grading: Any,
) -> ClickJudgments | Both:
    """Judgments from the clicks of an event log, written to a file if `path` names one.

    `grading` are min_views, thresholds and quantiles. `against` are people's judgments, with runs and measures: the answer
    then begins with how well both agree.
    """
    from cranfield.experiments.clicks.click_log import read_pages

    asked = CLICK_VALUES.named(value)
    if model is not None and not asked.of_model:
        raise ConventionError(f"{asked.name} needs no click model; leave the model out")
    queries: Mapping[str, str] | None = queries_of(topics_file, None if against is None else against.collection)
    with EventLog(log) as opened:
        read = read_pages(opened, lenient=lenient, memory=memory)
    fitted = fit(model or MODEL, read.pages) if asked.of_model else None
    judgments = judge_by_clicks(
        read.pages, asked, fitted, queries=queries, where=topics_file or "the collection", **grading
    )
    judgments.remarks.extend([*read.notes, *(fitted.check() if fitted else [])])
    if path is not None:
        write_click_qrels(judgments, path)
        if not holds_columns(path):
            name = os.path.basename(path)
            judgments.remarks.append(
                f"{name} does not say that its grades are from clicks: judge add needs --source clicks"
            )
    return judgments if against is None else Both(_agreement(judgments, against, seed), judgments, "clicks")


def click_preferences(
    log: str,
    *,
    rule: str = "skip-above",
    path: str | None = None,
    topics_file: str | None = None,
    lenient: bool = False,
    memory: str | None = None,
    min_votes: int = MIN_VOTES,
) -> ClickPreferences:
    """Preferences between documents from the clicks of an event log, written to a file if `path` names one."""
    from cranfield.experiments.clicks.click_log import read_pages

    PREFERENCE_RULES.named(rule)
    queries: Mapping[str, str] | None = queries_of(topics_file, None)
    with EventLog(log) as opened:
        read = read_pages(opened, lenient=lenient, memory=memory)
    preferences = prefer_by_clicks(
        read.pages, rule, min_votes=min_votes, queries=queries, where=topics_file or "the topics"
    )
    preferences.remarks.extend(read.notes)
    if path is not None:
        write_bytes(path, preferences.as_prefs())
    return preferences


def _agreement(judgments: ClickJudgments, against: Inputs, seed: int) -> ClickAgreement:
    from cranfield.experiments.clicks.people_agreement import agreement_with_people

    people, runs = against.open_qrels(), against.open_runs() if against.runs else []
    measures = against.measures or MEASURES
    return agreement_with_people(judgments, people, runs, measures, rel=against.rel, seed=seed)


def estimate_position_bias(
    log: str,
    *,
    methods: Sequence[str] = (),
    alpha: float = 0.05,
    depth: int | None = None,
    path: str | None = None,
    **reading: Any,
) -> PositionBias:
    """How often each rank of an event log is examined; the curve is written to a file if `path` names one.

    `reading` are lenient, memory and experiment.
    """
    from cranfield.experiments.clicks.position_bias import position_bias, refuse_alpha
    from cranfield.experiments.clicks.position_bias_methods import POSITION_BIAS_METHODS
    from cranfield.experiments.clicks.ranked_pages import read_ranked_pages

    if path is not None and not holds_columns(path):
        raise ConventionError(f"{path}: expected a file that ends in csv, tsv or jsonl")
    refuse_alpha(alpha)
    chosen = [POSITION_BIAS_METHODS.named(method) for method in methods]
    with EventLog(log) as opened:
        read = read_ranked_pages(opened, **reading)
    answer = position_bias(read.pages, chosen, alpha=alpha, depth=depth, remarks=read.notes)
    if path is not None:
        head, *rows = answer.file_rows()
        write_bytes(path, as_table(path, head, rows))
    return answer


def click_summary(
    log: str,
    inputs: Inputs,
    *,
    model: str | None = None,
    memory: str | None = None,
    **how: Any,
) -> ClickSummary:
    """Clicks and examination by rank in an event log, and click-through by the grades of the judgments, if any.

    A model that is named must fit; the default one may be missing. `how` are ranks, min_sessions and min_views.
    """
    from cranfield.experiments.clicks.click_summary import MODEL, click_summary
    from cranfield.formats.runs_and_qrels import as_qrels
    from cranfield.inputs.topics import topic_table

    judgments = None if inputs.qrels is None else as_qrels(inputs.judgments, lenient=inputs.lenient).to_dict()
    table = topic_table(inputs.topics_file, inputs.collection, inputs.fields)
    queries = None if table is None else table.queries
    how |= {"needs_model": model is not None, "model": model or MODEL, "lenient": inputs.lenient, "memory": memory}
    return click_summary(log, judgments, queries, **how)


def fit(model: str, pages: ResultPages) -> FittedClickModel:
    """A click model by its name, fitted to pages; DataError if they do not determine its parameters."""
    from cranfield.experiments.clicks.fits import fit_model
    from cranfield.experiments.clicks.model import CLICK_MODELS

    return fit_model(CLICK_MODELS.named(model), pages)


def write_click_qrels(judgments: ClickJudgments, path: str) -> None:
    """Write judgments: with their intervals as CSV, TSV or JSON lines, or as plain qrels in the format of the ending."""
    from cranfield.formats.runs_and_qrels import write_qrels
    from cranfield.formats.uncertain_qrels import as_table, holds_columns

    if holds_columns(path):
        head, *rows = judgments.rows()
        write_bytes(path, as_table(path, head, rows))
        return
    if not judgments.queries and (blank := _with_blank(judgments.topics)) is not None and _separates_by_blanks(path):
        raise ConventionError(
            f"{path}: TREC qrels have ids without blanks, found the query {blank!r:.80}; "
            "name the topics with --topics-file, or write CSV (-o clicks.csv)"
        )
    write_qrels(judgments.qrels(), path)


def _with_blank(topics: Sequence[str]) -> str | None:
    return next((topic for topic in topics if not topic or topic != "".join(topic.split())), None)


def _separates_by_blanks(path: str) -> bool:
    from cranfield.formats.format_registry import format_for

    return bool(format_for(path, "qrels").layouts)

"""The commands that read clicks: judgments and preferences from clicks, and their agreement with people's judgments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError
from cranfield.experiments.clicks.judgments import ClickJudgments, judge_by_clicks
from cranfield.experiments.clicks.values import CLICK_VALUES
from cranfield.experiments.log import EventLog
from cranfield.formats.streams import write_bytes
from cranfield.formats.uncertain_qrels import as_table, holds_columns
from cranfield.inputs.topics import queries_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.experiments.clicks.model import FittedClickModel
    from cranfield.experiments.clicks.position_bias import PositionBias
    from cranfield.experiments.clicks.result_pages import ResultPages

MODEL = "SDBN"


def click_qrels(
    log: str,
    *,
    model: str | None = None,
    value: str = "attractiveness",
    path: str | None = None,
    topics_file: str | None = None,
    lenient: bool = False,
    memory: str | None = None,
    **grading: Any,
) -> ClickJudgments:
    """Judgments from the clicks of an event log, written to a file if `path` names one.

    `grading` are least_views, thresholds and quantiles.
    """
    from cranfield.experiments.clicks.click_log import read_pages

    asked = CLICK_VALUES.named(value)
    if model is not None and not asked.of_model:
        raise ConventionError(f"{asked.name} needs no click model; leave the model out")
    queries: Mapping[str, str] | None = queries_of(topics_file, None)
    with EventLog(log) as opened:
        read = read_pages(opened, lenient=lenient, memory=memory)
    fitted = fit(model or MODEL, read.pages) if asked.of_model else None
    judgments = judge_by_clicks(read.pages, asked, fitted, queries=queries, where=topics_file or "", **grading)
    judgments.remarks.extend(read.notes)
    if path is not None:
        write_click_qrels(judgments, path)
    return judgments


def estimate_position_bias(
    log: str, *, methods: Sequence[str] = (), alpha: float = 0.05, path: str | None = None, **reading: Any
) -> PositionBias:
    """How often each rank of an event log is examined; the curve is written to a file if `path` names one.

    `reading` are lenient, memory and experiment.
    """
    from cranfield.experiments.clicks.position_bias import position_bias
    from cranfield.experiments.clicks.ranked_pages import read_ranked_pages

    if path is not None and not holds_columns(path):
        raise ConventionError(f"{path}: expected a file that ends in csv, tsv or jsonl")
    with EventLog(log) as opened:
        read = read_ranked_pages(opened, **reading)
    answer = position_bias(read.pages, methods, alpha=alpha, remarks=read.notes)
    if path is not None:
        head, *rows = answer.file_rows()
        write_bytes(path, as_table(path, head, rows))
    return answer


def fit(model: str, pages: ResultPages) -> FittedClickModel:
    """A click model by its name, fitted to pages."""
    from cranfield.experiments.clicks.model import CLICK_MODELS
    from cranfield.experiments.clicks.result_pages import ClickCounts

    chosen = CLICK_MODELS.named(model)
    return chosen.fit(pages if chosen.reads_pages else ClickCounts.of(pages))


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

"""The content of a report: a comparison, the leaderboards, the curves, the input files and the command.

Nothing is computed again. The systems are those of the comparison: a group of runs counts as one system. The same
report always gives the same bytes, so it has no date; the hashes of its inputs and the command identify it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import CranfieldError, DataError
from cranfield.base.qrels import Qrels
from cranfield.base.text_layout import listed, name_list
from cranfield.comparison.compare import versions
from cranfield.comparison.leaderboard import leaderboard
from cranfield.evaluation.curves import curves
from cranfield.evaluation.topic_view import topic_views
from cranfield.experiments.log import EventLog
from cranfield.experiments.log_files import segments_in
from cranfield.formats import qrels_in, run_name
from cranfield.formats.collection_folder import document_rows
from cranfield.formats.files.trec import TREC
from cranfield.reports.texts import documents_file, words_of_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cranfield.base.kernels.table import Floats
    from cranfield.comparison.compare import Comparison
    from cranfield.comparison.leaderboard import Leaderboard
    from cranfield.comparison.pair import RunPair
    from cranfield.evaluation.curves import Curves
    from cranfield.evaluation.topic_view import RunTopics
    from cranfield.experiments.clicks.click_summary import ClickSummary
    from cranfield.formats.topic_tables import TopicTable


MOST = 1000  # the maximum number of pairs on a page
SHALLOW, DEEP = 10, 20  # ranks per topic on a page: the deepest cut-off of a measure, within these limits
PLACES = 30_000  # the maximum number of ranks on a page; beyond it, only the shallow lists
TOO_MANY = 100_000  # beyond this number of ranks, no lists


@dataclass(frozen=True)
class Input:
    """An input file as it was given (compressed, if it is), and its SHA-256."""

    role: str
    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Report:
    """The content of a page, a Markdown file or a LaTeX table."""

    comparison: Comparison
    title: str = "Comparison of runs"
    leaderboards: Mapping[str, Leaderboard] = field(default_factory=dict)  # one per measure, ranked by it
    curves: Curves | None = None
    inputs: tuple[Input, ...] = ()
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    digits: int = 4
    topics: TopicTable | None = None  # the queries
    documents: str | None = None  # the source of the documents' texts
    clicks: ClickSummary | None = None

    def within(self, folder: str) -> Report:
        """The same report with file names relative to a folder: it does not say where the folder is."""
        start = os.path.join(folder, "")
        files, runs = self.comparison.inputs, self.comparison.inputs.get("runs", {})
        names = {role: path.removeprefix(start) for role, path in files.items() if isinstance(path, str)}
        named_runs = {"runs": {name: path.removeprefix(start) for name, path in runs.items()}} if runs else {}
        remarks = [text.replace(start, "") for text in self.comparison.remarks]
        comparison = replace(self.comparison, inputs={**files, **names, **named_runs}, remarks=remarks)
        inputs = tuple(replace(file, path=file.path.removeprefix(start)) for file in self.inputs)
        return replace(self, comparison=comparison, inputs=inputs)

    @property
    def measures(self) -> list[str]:
        """The names of the compared measures, in the order of the scores."""
        compared = {pair.measure for pair in self.comparison.pairs}
        return [name for name in self.comparison.scores.measures if name in compared]

    @cached_property
    def systems(self) -> list[str]:
        """Groups and single runs, best first by the first measure."""
        names = self.comparison.system_names()
        if not self.measures:
            return names
        first = self.measures[0]
        turn = 1 if self.lower_is_better(first) else -1
        order = np.argsort(
            [turn * self.mean(name, first) for name in names], kind="stable"
        )  # undefined means come last
        return [names[i] for i in order]

    @property
    def reference(self) -> str:
        """The system that the others are compared with: the first baseline, the first of two, or the best of many."""
        if self.comparison.baselines:
            return self.comparison.baselines[0]
        return self.comparison.pairs[0].one if len(self.systems) == 2 else self.systems[0]

    def mean(self, system: str, measure: str) -> float:
        """A system's mean over its topics, weighted if topics have weights; for a group, the mean over its runs."""
        scores = self.comparison.scores
        means = scores.ranking(list(scores.measures).index(measure))
        return float(np.mean([means[scores.runs.index(run)] for run in self.comparison.runs_of(system)]))

    def values(self, system: str, measure: str) -> Floats:
        """A system's value for each topic, to six decimals; NaN if there is none."""
        return np.round(self.comparison.values(system, measure), 6) + 0.0

    def lower_is_better(self, measure: str) -> bool:
        """Whether a low value is a good one."""
        return self.comparison.lower_is_better(measure)

    def domain(self, measure: str) -> tuple[float, float] | None:
        """The lowest and the highest possible value of a measure, if both exist and fit on a chart."""
        own = self.comparison.scores.measures[measure]
        return (0.0, 1.0) if (own.low, own.high) == (0.0, 1.0) else None

    def pair(self, measure: str, one: str, other: str) -> RunPair | None:
        """The comparison of two systems in either order; None if they were not compared."""
        return self._pairs.get((measure, one, other)) or self._pairs.get((measure, other, one))

    @cached_property
    def _pairs(self) -> dict[tuple[str, str, str], RunPair]:
        return {(pair.measure, pair.one, pair.other): pair for pair in self.pairs}

    @property
    def _best_first(self) -> bool:
        """Whether the better system is the `one` of each pair; in the pair that is shown first it is the `other`."""
        sided = self.comparison.alternative != "two-sided"
        return len(self.systems) > 2 and not self.comparison.baselines and not sided

    @cached_property
    def pairs(self) -> list[RunPair]:
        """All pairs by measure, in a fixed order if the two sides are interchangeable.

        `one` is the reference if it takes part, else the system with the higher rank.
        """
        if self.comparison.alternative != "two-sided":
            return list(self.comparison.pairs)
        place = {name: i for i, name in enumerate(self.systems)}

        def against(pair: RunPair) -> bool:
            return place[pair.one] > place[pair.other] if self._best_first else pair.other == self.reference

        return [pair.turned() if against(pair) else pair for pair in self.comparison.pairs]

    @cached_property
    def listed(self) -> list[RunPair]:
        """The pairs that a page or a text lists: all, or those with the reference if there are thousands."""
        if len(self.pairs) <= MOST:
            return self.pairs
        return [pair for pair in self.pairs if self.reference in (pair.one, pair.other)]

    def shown_pair(self, one: str | None = None, other: str | None = None) -> tuple[str, str]:
        """The two systems to show first: those given, or those that differ most by the first measure."""
        for name in (one, other):
            if name is not None and name not in self.systems:
                raise DataError(f"no system {name!r}; there are {listed(self.systems, most=20)}")
        if one is None and other is None:
            first = [pair for pair in self.pairs if pair.measure == self.measures[0]]
            defined = [pair for pair in first if pair.difference == pair.difference]
            widest = max(defined or first, key=lambda pair: abs(pair.difference))
            return (widest.other, widest.one) if self._best_first else (widest.one, widest.other)
        start = one if one is not None else self.reference if self.reference != other else None
        rest = [name for name in self.systems if name not in (start, other)]
        start = start if start is not None else rest[0]
        return start, other if other is not None else rest[0]

    @property
    def queries(self) -> Mapping[str, str]:
        """The query of each topic, if known."""
        return self.comparison.scores.queries if self.topics is None else self.topics.queries

    @property
    def depth(self) -> int:
        """The number of ranks per topic on a page."""
        scores = self.comparison.scores
        cuts = [k for name in self.measures if isinstance(k := scores.measures[name].values.get("k"), int)]
        depth = min(max([SHALLOW, *cuts]), DEEP)
        return depth if depth * len(self.systems) * len(scores.topics) <= PLACES else SHALLOW

    @cached_property
    def closeups(self) -> list[RunTopics]:
        """The top-k of each system by topic; of a group, its first run's. Empty if there are no runs or too many."""
        if self.depth * len(self.systems) * len(self.comparison.scores.topics) > TOO_MANY:
            return []
        runs = [self.comparison.runs_of(system)[0] for system in self.systems]
        return topic_views(self.comparison.scores, runs, self.depth)

    @cached_property
    def shown_documents(self) -> dict[str, tuple[str, str]]:
        """Title and first words of each document on the page, if texts are known."""
        if self.documents is None:
            return {}
        ids = {document for view in self.closeups for listed in view.documents for document in listed}
        return words_of_documents(document_rows(documents_file(self.documents)), ids)

    @property
    def size_of_texts(self) -> int:
        """The bytes of document texts on a page."""
        return sum(len("".join(parts).encode("utf-8", "replace")) for parts in self.shown_documents.values())

    def better(self, measure: str, one: str, other: str) -> int:
        """1 if `other` is significantly better than `one`, -1 if it is worse, else 0."""
        pair = self.pair(measure, one, other)
        if pair is None or not self.comparison.significant(pair):
            return 0
        ahead = {"one": pair.one, "other": pair.other}.get(pair.better)
        return 0 if ahead is None else 1 if ahead == other else -1

    def sentence(self, pair: RunPair) -> str:
        """A pair in words, with the result for the margin if there is one."""
        sides = {pair.one, pair.other}
        original = next(p for p in self.comparison.pairs if p.measure == pair.measure and {p.one, p.other} == sides)
        return ". ".join(text for text in (self.comparison.sentence(original), original.margin_sentence()) if text)


# from a comparison


def report_of(
    comparison: Comparison,
    options: Mapping[str, Any] | None = None,
    others: Iterable[str | None] = (),
    *,
    title: str | None = None,
    command: str = "",
    digits: int = 4,
    topics: TopicTable | None = None,
    documents: str | None = None,
    judged: Qrels | None = None,
    clicks: ClickSummary | None = None,
    event_log: str | None = None,
) -> Report:
    """A report of a comparison. `options` are those of `evaluate`; `others` are further input files.

    `topics` and `documents` (a collection, or a file like its documents.jsonl) add texts to ids. `judged` are the qrels
    if they come from a log. `clicks` are the summary of the log of clicks at `event_log`.
    """
    settings: dict[str, Any] = {"alpha": comparison.alpha, "level": comparison.level, "seed": comparison.seed}
    measures = Report(comparison).measures
    scores, pr_curves = comparison.scores, None
    if options is not None and all(map(scores.can_reopen, scores.runs)):
        opened = [scores.reopen(run) for run in scores.runs]
        try:
            pr_curves = curves(opened[0][0].qrels, [run for _, run in opened], "pr11", **{**options, "warn": False})
        except CranfieldError as error:
            comparison = replace(comparison, remarks=[*comparison.remarks, f"no precision-recall curves: {error}"])
    return Report(
        comparison,
        title=title or _title(comparison),
        leaderboards={name: leaderboard(comparison.scores, sort=name, **settings) for name in measures},
        curves=pr_curves,
        inputs=_hashes(comparison, others, documents, judged, event_log),
        command=command,
        versions=versions(),
        digits=digits,
        topics=topics,
        documents=documents,
        clicks=clicks,
    )


def clicks_of(log: str, comparison: Comparison, topics: TopicTable | None, model: str | None = None) -> ClickSummary:
    """The summary of a log of clicks, with the judgments of a comparison if it was made from runs."""
    from cranfield.experiments.clicks.click_summary import MODEL, click_summary

    scores, judgments = comparison.scores, None
    if scores.can_reopen(scores.runs[0]):
        judgments = scores.reopen(scores.runs[0])[0].qrels.to_dict()
    return click_summary(log, judgments, None if topics is None else topics.queries, model=model or MODEL)


def _hashes(
    comparison: Comparison,
    others: Iterable[str | None],
    documents: str | None,
    judged: Qrels | None,
    event_log: str | None,
) -> tuple[Input, ...]:
    """The input files as they are on disk, with their SHA-256."""
    files = [("table", comparison.inputs.get("table")), ("qrels", judged or comparison.inputs.get("qrels"))]
    files += [(f"run {name}", path) for name, path in comparison.inputs.get("runs", {}).items()]
    files += [*(("option", path) for path in others), ("documents", documents)]
    log = [] if event_log is None else [_hashed_log(event_log)]
    return tuple([_hashed(role, path) for role, path in files if path is not None] + log)


def _hashed_log(path: str) -> Input:
    """An event log: the bytes of its files, and the hash of their hashes in the order of their names."""
    with EventLog(path) as log:
        files = [*log.files(), *segments_in(log.segments)]
    hashes = sorted((os.path.relpath(file, path), _hashed("clicks", file)) for file in files)
    together = "".join(f"{file.sha256}  {name}\n" for name, file in hashes).encode("utf-8", "surrogateescape")
    return Input("clicks", path, sum(file.size for _, file in hashes), hashlib.sha256(together).hexdigest())


def _hashed(role: str, path: str | Qrels) -> Input:
    if isinstance(path, Qrels):  # qrels from a log are hashed as they would be written
        lines = b"".join(TREC.write(path.table, "qrels", ""))
        return Input(role, path.name, len(lines), hashlib.sha256(lines).hexdigest())
    real = documents_file(path) if role == "documents" else qrels_in(path)  # a collection has the name of its folder
    try:
        with open(real, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Input(role, path, os.path.getsize(real), digest)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _title(comparison: Comparison) -> str:
    """A title with the names of the runs, if they are few, and of the collection."""
    what = comparison.inputs.get("qrels") or comparison.inputs.get("table")
    runs = comparison.scores.runs
    start = name_list(runs) if len(runs) <= 3 else f"{len(runs)} runs"
    return f"{start} on {run_name(what)}" if what else start

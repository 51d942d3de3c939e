"""Causes of a drop: mismatched ids, documents that left the corpus, unjudged documents, missing topics, or the ranking.

The comparison is repeated without each possible cause; the remaining drop shows how much the cause explains. Quality is
the cause if nothing else explains the drop. A list of the corpus's ids settles whether documents are gone. Without one
it is only a suspicion: a judged document that the old run had among its first k, and that the new run returns for no
topic, may be gone or may be ranked below the end of the list. It is called gone only if lists are deep, and never with
certainty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.kernels import RowTable, decode, encode
from cranfield.base.qrels import Qrels
from cranfield.base.results import plain
from cranfield.base.run import Run
from cranfield.base.text_layout import listed
from cranfield.comparison.gate.questions import GateSettings, MeasureDecision, decide
from cranfield.evaluation.evaluate import Evaluator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from cranfield.base.findings import Finding
    from cranfield.evaluation.hits import Hits
    from cranfield.evaluation.scores import Scores


DEEP_ENOUGH = 5  # lists must be this many times as long as k to suspect that missing documents are gone
MOST_GONE = 0.5  # if a larger share vanished, the ranking itself may be broken
DOUBTED = "unless those documents are gone, the candidate ranks relevant ones too low to be returned"
RANKED_LOWER = "the same documents are there and judged, and the candidate ranks the relevant ones lower"
UNEXPLAINED = "what is said above does not explain the drop: the candidate ranks relevant documents lower"
NOTABLE = 0.05  # a fall of judged@k that may explain a drop


# documents that came and went


@dataclass(frozen=True)
class Turnover:
    """The fate of the judged documents: how many there are, which are gone, and judged@k of both runs."""

    k: int
    judged_before: float  # judged@k, the mean over topics; NaN where judgments name relevant documents only
    judged_after: float
    documents: int  # judged documents examined: all of them with a list of the corpus, else the old run's first k
    gone: tuple[str, ...]
    relevant: int  # how many of the gone documents are relevant to a topic
    certain: bool  # whether a list of the corpus confirms it
    shallow: bool = False  # whether the new lists are too short to tell
    foreign: int = 0  # documents of the new run that are not in the list of the corpus

    @property
    def suspected(self) -> bool:
        """Whether gone documents can explain a drop: there are some, and not so many that the ranking may be broken."""
        return bool(self.gone) and (self.certain or len(self.gone) <= MOST_GONE * self.documents)

    @property
    def judged_fell(self) -> float:
        """By how much judged@k fell."""
        return self.judged_before - self.judged_after

    def sentences(self) -> list[str]:
        """Sentences about what happened to the documents."""
        sentences = []
        some = listed(self.gone, most=3)
        if self.certain:
            of = f"{len(self.gone)} of {self.documents} judged documents ({self.relevant} of them relevant)"
            sentences.append(f"{of} are no longer in the corpus{f': {some}' if self.gone else ''}")
        elif self.shallow:
            sentences.append(
                f"whether judged documents left the corpus cannot be told: the candidate's lists are shorter than "
                f"{DEEP_ENOUGH} × {self.k} (give the corpus's ids with documents)"
            )
        elif self.gone:
            broken = "" if self.suspected else "; so many that the ranking itself may be broken"
            are, they = ("is", "it") if len(self.gone) == 1 else ("are", "they")
            sentences.append(
                f"{len(self.gone)} of the {self.documents} judged documents that the baseline had in its first {self.k} "
                f"({self.relevant} relevant) {are} returned for no topic at any rank: {some}{broken}; {they} may have left "
                "the corpus (give its ids with documents to know)"
            )
        if self.foreign:
            sentences.append(
                f"the candidate returns {self.foreign} documents that the list of the corpus does not hold"
            )
        if abs(self.judged_fell) >= 0.00005:
            word = "fell" if self.judged_fell > 0 else "rose"
            sentences.append(f"judged@{self.k} {word} from {self.judged_before:.4f} to {self.judged_after:.4f}")
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """Plain values; at most a hundred ids are listed."""
        return {
            "k": self.k,
            "judged_before": plain(self.judged_before),
            "judged_after": plain(self.judged_after),
            "documents_looked_for": self.documents,
            "gone": len(self.gone),
            "gone_relevant": self.relevant,
            "gone_ids": list(self.gone[:100]),
            "certain": self.certain,
            "lists_too_short_to_tell": self.shallow,
            "not_in_the_list": self.foreign,
        }


def turnover(
    before: Hits,
    after: Hits,
    candidate: Run,
    judged: tuple[float, float],
    k: int,
    corpus: Iterable[str] | None = None,
    collapse: bytes = b"",
) -> Turnover:
    """Which judged documents are gone; `judged` is judged@k of both runs, `corpus` the present ids.

    If passages are scored as their document, `collapse` is the separator at which their ids are cut.
    """
    names = before.judgments.qrels.documents
    if before.judgments.only_relevant():  # nobody knows what else was judged
        judged = math.nan, math.nan
    relevant = {names[row] for row in before.judgments.row[before.judgments.grade >= 1].tolist()}
    if corpus is not None:
        there = {_cut(encode(document), collapse) for document in corpus}
        if not there:
            raise DataError("the list of the corpus's documents is empty")
        judged_ids = {names[row] for row in before.judgments.row.tolist()}
        strange = _returned(candidate, collapse, lambda document: document not in there)
        if len(candidate) and not _returned(candidate, collapse, there.__contains__):
            raise DataError(
                f"{candidate.name} returns no document of the list of the corpus; is it a list of the same collection?"
            )
        gone = sorted(judged_ids - there)
        lost = len(relevant.intersection(gone))
        return Turnover(k, *judged, len(judged_ids), tuple(map(decode, gone)), lost, True, False, len(strange))
    first = before.judged().top(k)
    judged_ids = {names[row] for row in first.row.tolist()}
    answered = after.retrieved[after.retrieved > 0]
    if not len(answered) or float(np.median(answered)) < DEEP_ENOUGH * k:
        return Turnover(k, *judged, len(judged_ids), (), 0, False, shallow=True)
    absent = judged_ids - {names[row] for row in after.row.tolist()}  # for their own topics; look through the others'
    gone = sorted(absent - _returned(candidate, collapse, absent.__contains__)) if absent else []
    return Turnover(k, *judged, len(judged_ids), tuple(map(decode, gone)), len(relevant.intersection(gone)), False)


def remove_documents(qrels: Qrels, run: Run, gone: Iterable[str], collapse: bytes = b"") -> tuple[Qrels, Run]:
    """Judgments and a run without these documents."""
    out = {encode(document) for document in gone}
    remaining = Qrels(_without(qrels.table, out), qrels.name)
    remaining.extras = qrels.extras
    return remaining, Run(_without(run.table, out, collapse), run.name, run.tag)


def _without(table: RowTable, out: set[bytes], collapse: bytes = b"") -> RowTable:
    rows: npt.NDArray[Any] = np.flatnonzero([_cut(document, collapse) not in out for document in table.documents])
    label = table.label[rows] if len(table.label) else table.label
    part = replace(table, topic=table.topic[rows], documents=table.documents.take(rows), value=table.value[rows])
    return replace(part, label=label, start=np.zeros(0, np.int64))


def _returned(run: Run, collapse: bytes, condition: Callable[[bytes], bool]) -> set[bytes]:
    """The returned documents that satisfy the condition; others are not kept, because a run may name millions."""
    return {document for one in run.table.documents if condition(document := _cut(one, collapse))}


def _cut(document: bytes, collapse: bytes) -> bytes:
    return document.split(collapse, 1)[0] if collapse else document


# causes


@dataclass(frozen=True)
class Cause:
    """A possible cause of a drop: the difference without it, and whether the gate would then pass."""

    code: Literal["ids", "turnover", "unjudged", "missing", "quality"]
    text: str
    difference: float = math.nan
    passes: bool = False
    certain: bool = True

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; an undefined one is None."""
        left = {"difference_left": plain(self.difference), "passes_without": self.passes, "certain": self.certain}
        return {"cause": self.code, "text": self.text, **left}


def without_gone(evaluator: Evaluator, one: Run, moved: Turnover, options: Mapping[str, Any]) -> tuple[Evaluator, Run]:
    """The evaluation without the gone documents."""
    qrels, one = remove_documents(evaluator.qrels, one, moved.gone, evaluator.conventions.order.collapse)
    return _like(evaluator, qrels, options), one


def _like(evaluator: Evaluator, qrels: Qrels, options: Mapping[str, Any], **changes: Any) -> Evaluator:
    """An evaluator with the same measures and conventions, but other judgments and some changed conventions."""
    keys = ("topics", "threads", "lenient", "run_format", "fields", "extras", "baseline", "queries")
    reading: dict[str, Any] = {key: options[key] for key in keys if key in options}
    conventions = replace(evaluator.conventions, **changes)
    alike = Evaluator(qrels, list(evaluator.measures.values()), conventions=conventions, warn=False, **reading)
    alike.measures, alike.exceptions = evaluator.measures, evaluator.exceptions
    return alike


@dataclass(frozen=True)
class _WithoutSuspect:
    """The scores without one possible cause, and the start of a sentence about the remaining difference."""

    code: Literal["turnover", "unjudged", "missing"]
    lead: str
    scores: Scores
    certain: bool = True


@dataclass(frozen=True)
class Suspects:
    """The baseline, the candidate, and what may explain a drop between them."""

    evaluator: Evaluator
    one: Run
    other: Run
    moved: Turnover
    options: Mapping[str, Any]  # of the evaluator
    scores: Scores
    settings: GateSettings
    max_drops: tuple[float, ...]  # of the measures

    @cached_property
    def gone(self) -> set[str]:
        """The documents that are known to have left the corpus."""
        return set(self.moved.gone) if self.moved.certain else set()

    def causes(self, m: int) -> tuple[Cause, ...]:
        """The causes of a drop by the measure, the surest first; quality if nothing else explains it."""
        causes = [Cause("ids", finding.message, certain=finding.severity == "error") for finding in self._id_mismatches]
        if any(cause.certain for cause in causes):
            return tuple(causes)
        for view in self._views:
            decision = decide_by(view.scores, self.max_drops, self.settings)[m]
            left, passes = _mean_difference(view.scores, m), decision.state == "passed"
            text = f"{view.lead} {_left_in_words(left, passes, self.max_drops[m])}"
            causes.append(Cause(view.code, text, left, passes, view.certain))
        explained = [cause for cause in causes if cause.passes]
        if not explained:
            causes.append(Cause("quality", UNEXPLAINED if causes else RANKED_LOWER))
        elif not any(cause.certain or cause.code == "unjudged" for cause in explained):
            causes.append(Cause("quality", DOUBTED, certain=False))
        return tuple(causes)

    @cached_property
    def _id_mismatches(self) -> list[Finding]:
        """Ids and topics of the candidate that do not match the judgments."""
        return self.evaluator.id_mismatches(self.other)

    @cached_property
    def _views(self) -> list[_WithoutSuspect]:
        """The comparison without each possible cause; computed only after a drop, once for all measures."""
        views = []
        missing = self.scores.absent.missing.get(self.other.name, [])
        if missing:
            views.append(self._without_missing(list(missing)))
        if self.moved.suspected and (not self.moved.certain or self._returned()):
            views.append(self._without_gone())
        if self.moved.judged_fell >= NOTABLE and self.evaluator.conventions.unjudged != "drop":
            views.append(self._without_unjudged())
        return views

    def _returned(self) -> bool:
        """Whether the baseline returned any of the gone documents."""
        return not self.gone.isdisjoint(decode(document) for document in self.one.table.documents)

    def _without_missing(self, missing: list[str]) -> _WithoutSuspect:
        lacking = set(missing)
        scores = self.scores.select(topics=[topic for topic in self.scores.topics if topic not in lacking])
        number = f"{len(lacking)} judged topic{'s' if len(lacking) > 1 else ''}"
        lead = f"the candidate does not answer {number} ({self._some(missing)}); on the others"
        return _WithoutSuspect("missing", lead, scores)

    def _some(self, topics: list[str], most: int = 3) -> str:
        """The first few topics, with their queries if known."""
        if not self.scores.queries:
            return listed(topics, most)
        names = ", ".join(map(self.scores.topic_in_words, topics[:most]))
        return names if len(topics) <= most else f"{names} and {len(topics) - most} more"

    def _without_gone(self) -> _WithoutSuspect:
        evaluator, one = without_gone(self.evaluator, self.one, self.moved, self.options)
        number = len(self.moved.gone)
        documents, are = ("judged document", "is") if number == 1 else (f"{number} judged documents", "are")
        perhaps = f"that {are} returned nowhere any more (perhaps gone, perhaps ranked below the end)"
        which = "that left the corpus" if self.moved.certain else perhaps
        scores = evaluator.evaluate([one, self.other])
        return _WithoutSuspect("turnover", f"without the {documents} {which}", scores, self.moved.certain)

    def _without_unjudged(self) -> _WithoutSuspect:
        condensed = _like(self.evaluator, self.evaluator.qrels, self.options, unjudged="drop")
        fell = f"judged@{self.moved.k} fell by {self.moved.judged_fell:.4f}"
        lead = (
            f"{fell}: the candidate returns documents that nobody judged; with the unjudged ones taken out of both runs"
        )
        return _WithoutSuspect("unjudged", lead, condensed.evaluate([self.one, self.other]), certain=False)


def decide_by(scores: Scores, max_drops: Sequence[float], settings: GateSettings) -> list[MeasureDecision]:
    """Decide whether the second run passes by each measure, on the topics where both runs have a value."""
    changes = scores.values[1] - scores.values[0]
    there = ~np.isnan(changes)
    up = [-1.0 if measure.lower_is_better else 1.0 for measure in scores.measures.values()]
    gains = [up[m] * changes[m, topics] for m, topics in enumerate(there)]
    by = scores.weights
    weights = None if by is None else by.of(scores.topics)
    sample = None if by is None else by.sample(scores.topics)
    weighed = None if weights is None else [weights[topics] for topics in there]
    drawn = None if sample is None else [sample.part(topics) for topics in there]
    return decide(gains, max_drops, settings, weighed, drawn)


def _mean_difference(scores: Scores, m: int) -> float:
    change = scores.values[1, m] - scores.values[0, m]
    there = ~np.isnan(change)
    weights = None if scores.weights is None else scores.weights.of(scores.topics)[there]
    return float(np.average(change[there], weights=weights)) if there.any() else math.nan


def _left_in_words(left: float, passes: bool, max_drop: float) -> str:
    if math.isnan(left):
        return "nothing is left to compare"
    verdict = "which still fails" if not passes else "which passes" if abs(left) <= max_drop else "which may be chance"
    return f"the difference is {left:+.4f}, {verdict}"

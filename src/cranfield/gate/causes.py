"""Why a mean fell: the same comparison without one suspect, be it documents that are gone, unjudged ones or missing topics.

What is left of the drop without it tells how much it explains. Quality is what remains when nothing else does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cranfield.columns import listed
from cranfield.evaluate import Evaluator
from cranfield.gate.decision import Settings, decided
from cranfield.gate.turnover import Turnover, left_in
from cranfield.gate.verdict import Cause
from cranfield.kernels import decode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.collection import Qrels
    from cranfield.run import Run
    from cranfield.scores import Scores


DOUBTED = "unless those documents are gone, the candidate ranks relevant ones too low to be returned"
RANKED_LOWER = "the same documents are there and judged, and the candidate ranks the relevant ones lower"
UNEXPLAINED = "what is said above does not explain the drop: the candidate ranks relevant documents lower"
NOTABLE = 0.05  # judged@k that falls by this much is worth a second look


def forgiven(evaluator: Evaluator, one: Run, moved: Turnover, options: Mapping[str, Any]) -> tuple[Evaluator, Run]:
    """The evaluation as if the gone documents had never been there."""
    qrels, one = left_in(evaluator.qrels, one, moved.gone, evaluator.conventions.order.collapse)
    return _like(evaluator, qrels, options), one


def _like(evaluator: Evaluator, qrels: Qrels, options: Mapping[str, Any], **changes: Any) -> Evaluator:
    """The same measures under the same conventions, some of them changed, and by other judgments."""
    kept = ("topics", "threads", "lenient", "run_format", "extras", "baseline")
    reading: dict[str, Any] = {key: options[key] for key in kept if key in options}
    conventions = replace(evaluator.conventions, **changes)
    alike = Evaluator(qrels, list(evaluator.measures.values()), conventions=conventions, **reading)
    alike.measures, alike.never_averaged = evaluator.measures, evaluator.never_averaged
    return alike


@dataclass(frozen=True)
class _View:
    """The scores without a suspect, and how a sentence about what is left begins."""

    code: Literal["turnover", "unjudged", "missing"]
    lead: str
    scores: Scores
    certain: bool = True


@dataclass(frozen=True)
class Suspects:
    """Two runs and what may explain a drop from one to the other."""

    evaluator: Evaluator
    one: Run
    other: Run
    moved: Turnover
    options: Mapping[str, Any]  # of the evaluator
    scores: Scores
    settings: Settings

    @cached_property
    def gone(self) -> set[str]:
        """The documents that are known to have left the corpus."""
        return set(self.moved.gone) if self.moved.certain else set()

    def causes(self, m: int, max_drop: float) -> tuple[Cause, ...]:
        """What explains a drop by the measure, the surest first; quality where nothing else does."""
        causes = []
        for view in self._views:
            left, passes = self._left(view.scores, m, max_drop)
            text = f"{view.lead} {_left_in_words(left, passes, max_drop)}"
            causes.append(Cause(view.code, text, left, passes, view.certain))
        explained = [cause for cause in causes if cause.passes]
        if not explained:
            causes.append(Cause("quality", UNEXPLAINED if causes else RANKED_LOWER))
        elif not any(cause.certain or cause.code == "unjudged" for cause in explained):
            causes.append(Cause("quality", DOUBTED, certain=False))
        return tuple(causes)

    @cached_property
    def _views(self) -> list[_View]:
        """The same comparison without each suspect; made when something fell, and once for all measures."""
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

    def _without_missing(self, missing: list[str]) -> _View:
        lacking = set(missing)
        kept = self.scores.select(topics=[topic for topic in self.scores.topics if topic not in lacking])
        number = f"{len(lacking)} judged topic{'s' if len(lacking) > 1 else ''}"
        lead = f"the candidate does not answer {number} ({listed(missing, most=3)}); on the others"
        return _View("missing", lead, kept)

    def _without_gone(self) -> _View:
        evaluator, one = forgiven(self.evaluator, self.one, self.moved, self.options)
        number = len(self.moved.gone)
        documents, are = ("judged document", "is") if number == 1 else (f"{number} judged documents", "are")
        perhaps = f"that {are} returned nowhere any more (perhaps gone, perhaps ranked below the end)"
        which = "that left the corpus" if self.moved.certain else perhaps
        scores = evaluator.evaluate([one, self.other])
        return _View("turnover", f"without the {documents} {which}", scores, self.moved.certain)

    def _without_unjudged(self) -> _View:
        condensed = _like(self.evaluator, self.evaluator.qrels, self.options, unjudged="drop")
        fell = f"judged@{self.moved.k} fell by {self.moved.judged_fell:.4f}"
        lead = (
            f"{fell}: the candidate returns documents that nobody judged; with the unjudged ones taken out of both runs"
        )
        return _View("unjudged", lead, condensed.evaluate([self.one, self.other]), certain=False)

    def _left(self, scores: Scores, m: int, max_drop: float) -> tuple[float, bool]:
        """The difference that is left, and whether the gate would pass."""
        up = -1.0 if list(scores.measures.values())[m].lower_is_better else 1.0
        change = scores.values[1, m] - scores.values[0, m]
        change = change[~np.isnan(change)]
        if not len(change):
            return math.nan, False
        return float(change.mean()), decided(up * change, max_drop, self.settings).state == "passed"


def _left_in_words(left: float, passes: bool, max_drop: float) -> str:
    if math.isnan(left):
        return "nothing is left to compare"
    verdict = "which still fails" if not passes else "which passes" if abs(left) <= max_drop else "which may be chance"
    return f"the difference is {left:+.4f}, {verdict}"

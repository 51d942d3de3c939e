"""Why a mean fell: the same comparison without one suspect, be it documents that are gone, unjudged ones or missing topics.

What is left of the drop without it tells how much it explains. Quality is what remains when nothing else does.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.columns import listed
from cranfield.compare.one_sided import Settings, decided
from cranfield.compare.turnover import Turnover, left_in
from cranfield.compare.verdict import Cause
from cranfield.evaluate import Evaluator
from cranfield.kernels import decode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.collection import Qrels
    from cranfield.run import Run
    from cranfield.scores import Scores


DOUBTED = "unless those documents are gone, the candidate ranks relevant ones too low to be returned"
NOTABLE = 0.05  # judged@k that falls by this much is worth a second look


def forgiven(evaluator: Evaluator, one: Run, moved: Turnover, options: Mapping[str, Any]) -> tuple[Evaluator, Run]:
    """The evaluation as if the gone documents had never been there."""
    qrels, one = left_in(evaluator.qrels, one, moved.gone, evaluator.conventions.order.collapse)
    return _like(evaluator, qrels, options), one


def _like(evaluator: Evaluator, qrels: Qrels, options: Mapping[str, Any], **changes: Any) -> Evaluator:
    """The same measures under the same conventions, some of them changed, and by other judgments."""
    kept = ("topics", "threads", "lenient", "run_format", "extras", "baseline")
    how: dict[str, Any] = {key: options[key] for key in kept if key in options}
    alike = Evaluator(
        qrels, list(evaluator.measures.values()), conventions=replace(evaluator.conventions, **changes), **how
    )
    alike.measures, alike.never_averaged = evaluator.measures, evaluator.never_averaged
    return alike


class Suspects:
    """The same comparison without one suspect: gone documents, unjudged documents, missing topics. Each is made once."""

    def __init__(
        self, evaluator: Evaluator, one: Run, other: Run, moved: Turnover, options: Mapping[str, Any], scores: Scores
    ) -> None:
        self.evaluator, self.one, self.other, self.moved, self.options = evaluator, one, other, moved, options
        self.gone = set(moved.gone) if moved.certain else set()
        self.missing = list(scores.absent.missing.get(other.name, []))
        self.scores = scores
        self._made: dict[str, Scores] = {}

    def causes(self, m: int, max_drop: float, settings: Settings) -> tuple[Cause, ...]:
        """What explains a drop by the measure, the surest first; quality where nothing else does."""
        found = []
        if self.missing:
            found.append(self._missing(m, max_drop, settings))
        if self.moved.suspected and (not self.moved.certain or self._returned()):
            found.append(self._turnover(m, max_drop, settings))
        if self.moved.judged_fell >= NOTABLE and self.evaluator.conventions.unjudged != "drop":
            found.append(self._unjudged(m, max_drop, settings))
        explained = [cause for cause in found if cause.passes]
        if not explained:
            found.append(Cause("quality", _quality(found)))
        elif not any(cause.certain or cause.code == "unjudged" for cause in explained):
            found.append(Cause("quality", DOUBTED, certain=False))
        return tuple(found)

    def _returned(self) -> bool:
        return not self.gone.isdisjoint(decode(document) for document in self.one.table.documents)

    def _missing(self, m: int, max_drop: float, settings: Settings) -> Cause:
        lacking = set(self.missing)
        kept = self.scores.select(topics=[topic for topic in self.scores.topics if topic not in lacking])
        left, passes = _left(kept, m, max_drop, settings)
        number = f"{len(lacking)} judged topic{'s' if len(lacking) > 1 else ''}"
        what = f"the candidate does not answer {number} ({listed(self.missing, most=3)})"
        text = f"{what}; on the others {_words(left, passes, max_drop)}"
        return Cause("missing", text, left, passes)

    def _turnover(self, m: int, max_drop: float, settings: Settings) -> Cause:
        if "turnover" not in self._made:
            evaluator, one = forgiven(self.evaluator, self.one, self.moved, self.options)
            self._made["turnover"] = evaluator.evaluate([one, self.other])
        left, passes = _left(self._made["turnover"], m, max_drop, settings)
        verb = "is" if len(self.moved.gone) == 1 else "are"
        what = (
            "that left the corpus"
            if self.moved.certain
            else f"that {verb} returned nowhere any more (perhaps gone, perhaps ranked below the end)"
        )
        text = f"without the {_documents(len(self.moved.gone))} {what} {_words(left, passes, max_drop)}"
        return Cause("turnover", text, left, passes, self.moved.certain)

    def _unjudged(self, m: int, max_drop: float, settings: Settings) -> Cause:
        if "unjudged" not in self._made:
            condensed = _like(self.evaluator, self.evaluator.qrels, self.options, unjudged="drop")
            self._made["unjudged"] = condensed.evaluate([self.one, self.other])
        left, passes = _left(self._made["unjudged"], m, max_drop, settings)
        k = self.moved.k
        text = (
            f"judged@{k} fell by {self.moved.judged_fell:.4f}: the candidate returns documents that nobody judged; with the "
            f"unjudged ones taken out of both runs {_words(left, passes, max_drop)}"
        )
        return Cause("unjudged", text, left, passes, certain=False)


def _left(scores: Scores, m: int, max_drop: float, settings: Settings) -> tuple[float, bool]:
    """The difference that is left, and whether the gate would pass."""
    up = -1.0 if list(scores.measures.values())[m].lower_is_better else 1.0
    change = scores.values[1, m] - scores.values[0, m]
    change = change[~np.isnan(change)]
    if not len(change):
        return math.nan, False
    return float(change.mean()), decided(up * change, max_drop, settings)[0] == "passed"


def _documents(number: int) -> str:
    return "judged document" if number == 1 else f"{number} judged documents"


def _words(left: float, passes: bool, max_drop: float) -> str:
    if math.isnan(left):
        return "nothing is left to compare"
    verdict = "which still fails" if not passes else "which passes" if abs(left) <= max_drop else "which may be chance"
    return f"the difference is {left:+.4f}, {verdict}"


def _quality(found: list[Cause]) -> str:
    if not found:
        return "the same documents are there and judged, and the candidate ranks the relevant ones lower"
    return "what is said above does not explain the drop: the candidate ranks relevant documents lower"

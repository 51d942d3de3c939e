"""Documents that came and went between two runs: how much of a drop is the corpus, not the ranking.

A list of the corpus's ids settles it. Without one there is only a suspicion: a judged document that the old run had
among its first k, and that the new one returns for no topic at any rank, may be gone or may be ranked below the end of
the list. It is called gone only where lists are deep, and never with certainty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.answer import plain
from cranfield.collection import Qrels
from cranfield.columns import listed
from cranfield.errors import DataError
from cranfield.kernels import Table, decode, encode
from cranfield.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from cranfield.hits import Hits


DEEP_ENOUGH = 5  # lists this many times as long as k say something about what they do not hold
MOST_GONE = 0.5  # more than this share vanished without a list: the ranking may as well be broken


@dataclass(frozen=True)
class Turnover:
    """What became of the judged documents: how many there are, which are gone, and how much is judged at k."""

    k: int
    judged_before: float  # judged@k, the mean over topics
    judged_after: float
    documents: int  # judged documents looked for: all of them with a list of the corpus, else the old run's first k
    gone: tuple[str, ...]
    relevant: int  # how many of the gone are relevant to a topic
    certain: bool  # a list of the corpus says so
    shallow: bool = False  # the new lists are too short to tell
    foreign: int = 0  # documents of the new run that the list of the corpus does not hold

    @property
    def suspected(self) -> bool:
        """Whether gone documents can explain a drop: there are some, and not so many that the ranking may be broken."""
        return bool(self.gone) and (self.certain or len(self.gone) <= MOST_GONE * self.documents)

    @property
    def judged_fell(self) -> float:
        """By how much judged@k fell."""
        return self.judged_before - self.judged_after

    def sentences(self) -> list[str]:
        """What happened to the documents, in words."""
        said = []
        some = listed(self.gone, most=3)
        if self.certain:
            of = f"{len(self.gone)} of {self.documents} judged documents ({self.relevant} of them relevant)"
            said.append(f"{of} are no longer in the corpus{f': {some}' if self.gone else ''}")
        elif self.shallow:
            said.append(
                f"whether judged documents left the corpus cannot be told: the candidate's lists are shorter than "
                f"{DEEP_ENOUGH} × {self.k} (give the corpus's ids with documents)"
            )
        elif self.gone:
            broken = "" if self.suspected else "; so many that the ranking itself may be broken"
            are, they = ("is", "it") if len(self.gone) == 1 else ("are", "they")
            said.append(
                f"{len(self.gone)} of the {self.documents} judged documents that the baseline had in its first {self.k} "
                f"({self.relevant} relevant) {are} returned for no topic at any rank: {some}{broken}; {they} may have left "
                "the corpus (give its ids with documents to know)"
            )
        if self.foreign:
            said.append(f"the candidate returns {self.foreign} documents that the list of the corpus does not hold")
        if round(self.judged_fell, 4) != 0:
            word = "fell" if self.judged_fell > 0 else "rose"
            said.append(f"judged@{self.k} {word} from {self.judged_before:.4f} to {self.judged_after:.4f}")
        return said

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
    """Which judged documents are gone; `judged` is judged@k of both runs, `corpus` the ids that are there now.

    Where passages are scored as their document, `collapse` is where their ids are cut.
    """
    names = before.judgments.qrels.documents
    relevant = {names[row] for row in before.judgments.row[before.judgments.grade >= 1].tolist()}
    if corpus is not None:
        there = {_cut(encode(document), collapse) for document in corpus}
        if not there:
            raise DataError("the list of the corpus's documents is empty")
        known = {names[row] for row in before.judgments.row.tolist()}
        strange = _returned(candidate, collapse, lambda document: document not in there)
        if len(candidate) and not _returned(candidate, collapse, there.__contains__):
            raise DataError(
                f"{candidate.name} returns no document of the list of the corpus; is it a list of the same collection?"
            )
        gone = sorted(known - there)
        lost = len(relevant.intersection(gone))
        return Turnover(k, *judged, len(known), _decoded(gone), lost, True, False, len(strange))
    first = before.judged().top(k)
    known = {names[row] for row in first.row.tolist()}
    answered = after.retrieved[after.retrieved > 0]
    if not len(answered) or float(np.median(answered)) < DEEP_ENOUGH * k:
        return Turnover(k, *judged, len(known), (), 0, False, shallow=True)
    absent = known - {names[row] for row in after.row.tolist()}  # for their own topics; look through the others'
    gone = sorted(absent - _returned(candidate, collapse, absent.__contains__)) if absent else []
    return Turnover(k, *judged, len(known), _decoded(gone), len(relevant.intersection(gone)), False)


def left_in(qrels: Qrels, run: Run, gone: Iterable[str], collapse: bytes = b"") -> tuple[Qrels, Run]:
    """Judgments and a run as if these documents had never been there."""
    out = {encode(document) for document in gone}
    kept = Qrels(_without(qrels.table, out), qrels.name)
    kept.extras = qrels.extras
    return kept, Run(_without(run.table, out, collapse), run.name, run.tag)


def _without(table: Table, out: set[bytes], collapse: bytes = b"") -> Table:
    rows: npt.NDArray[Any] = np.flatnonzero([_cut(document, collapse) not in out for document in table.documents])
    return Table(
        table.topics,
        table.topic[rows],
        table.documents.take(rows),
        table.value[rows],
        table.labels,
        table.label[rows] if len(table.label) else table.label,
        np.zeros(0, np.int64),
        table.skipped,
    )


def _returned(run: Run, collapse: bytes, wanted: Callable[[bytes], bool]) -> set[bytes]:
    """The wanted documents among those returned; the others are never held, a run may name millions."""
    return {document for one in run.table.documents if wanted(document := _cut(one, collapse))}


def _cut(document: bytes, collapse: bytes) -> bytes:
    return document.split(collapse, 1)[0] if collapse else document


def _decoded(ids: list[bytes]) -> tuple[str, ...]:
    return tuple(decode(each) for each in ids)

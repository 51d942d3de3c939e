"""A run on a thin pool, read in several ways side by side, with advice which to trust.

Unjudged documents are counted as not relevant by most measures, taken out of the list by condensed ones, passed over
by bpref, estimated by infAP where the pool was sampled, and left open by bounds. Where these agree it does not matter;
where they differ the judgments are too few to say.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.answer import Lines, Rows, Table, plain
from cranfield.bounds import bounds_of
from cranfield.evaluate import Evaluator
from cranfield.formats import as_qrels, as_runs
from cranfield.kernels import Order
from cranfield.pool.rankings import rankings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cranfield.answer import Layout, Part
    from cranfield.collection import Qrels
    from cranfield.formats.pools import Item
    from cranfield.run import Run


JUDGED, SPARSE = 0.95, 0.5  # shares of judged documents in the top: enough, and too few for anything
UNDRAWN = 0.1  # the least share of -1 in the qrels of a sampled pool
READINGS = "Bpref infAP RBP(p=0.8) RBP(p=0.8,residual=True)"
SHARES = "Judged@10 Judged@100"


@dataclass(frozen=True)
class Reading:
    """One measure of one run: as it is, over judged documents alone, and how low and high it could be."""

    score: float
    condensed: float
    low: float
    high: float


@dataclass(frozen=True)
class Thin:
    """One run, read in every way."""

    run: str
    measures: dict[str, Reading]
    bpref: float
    inferred: float  # infAP; only where the pool was sampled does it differ from AP for a reason
    judged: float  # share of the top 10
    judged_deep: float  # share of the top 100
    rbp: float
    residual: float
    sampled: bool  # whether the qrels say what was pooled and not judged

    @property
    def readable(self) -> str:
        """Whether its scores say how good it is: yes, with care, or not yet."""
        return "yes" if self.sampled or self.judged >= JUDGED else "with care" if self.judged >= SPARSE else "not yet"

    def advice(self, shell: bool = True) -> str:
        """Which number to read; with `shell`, hints name options of the command line."""
        first, reading = next(iter(self.measures.items()))
        open_ = f"its unjudged documents leave {first} open from {reading.low:.4f} to {reading.high:.4f}"
        if self.sampled:
            return f"{self.run}: the pool was sampled (grades of -1): read infAP {self.inferred:.4f}; {open_}."
        if self.judged >= JUDGED and self.judged_deep >= JUDGED:
            shares = f"{self.judged:.0%} of the top 10 and {self.judged_deep:.0%} of the top 100 are judged"
            return f"{self.run}: {shares}: read {first} as it is."
        if self.judged >= JUDGED:
            return (
                f"{self.run}: the top 10 is judged ({self.judged:.0%}), the top 100 is not ({self.judged_deep:.0%}): read "
                f"measures cut at 10; for {first} read the condensed value and bpref beside it."
            )
        if self.judged >= SPARSE:
            return (
                f"{self.run}: {1 - self.judged:.0%} of the top 10 is unjudged: {first} is too low. Compare condensed values and "
                f"bpref, which favour no contributor as much, and have the holes judged; {open_}."
            )
        return (
            f"{self.run}: only {self.judged:.0%} of the top 10 is judged: no number says how good it is; {open_}. "
            f"Have its top judged first{' (--holes writes a pool)' if shell else ''}."
        )


@dataclass(frozen=True, repr=False)
class Readings(Rows[Thin]):
    """Several runs, each read in every way, with advice on each."""

    rows: list[Thin]

    def content(self, how: Layout) -> Iterator[Part]:
        head = ["run"]
        for name in self.rows[0].measures:
            head += [name, f"{name} condensed", f"{name} low", f"{name} high"]
        head += ["bpref", "infAP", "judged@10", "judged@100", "RBP(p=0.8)", "residual"]
        rows = []
        for each in self.rows:
            values = [value for reading in each.measures.values() for value in astuple(reading)]
            values += [each.bpref, each.inferred, each.judged, each.judged_deep, each.rbp, each.residual]
            rows.append([each.run, *map(how.number, values)])
        yield Lines([each.advice() for each in self.rows])
        yield Table(head, rows)

    def plain(self, how: Layout) -> Any:
        return plain([{**vars(each), "advice": each.advice()} for each in self.rows], how.digits)


def thin(qrels: Any, runs: Any, measures: Any = "AP nDCG@10", *, seed: int = 0, **options: Any) -> Readings:
    """Read each run in every way that makes something of unjudged documents. `options` are those of `evaluate`.

    >>> [read] = thin({"q": {"a": 1, "b": 0}}, {"q": {"x": 3, "a": 2, "b": 1}}, "AP")
    >>> read.measures["AP"].score, read.measures["AP"].condensed, read.judged
    (0.5, 1.0, 0.6666666666666666)
    """
    judgments, opened = as_qrels(qrels), as_runs(runs)
    whole = Evaluator(judgments, measures, **options)
    bounds = bounds_of(whole, opened, "unjudged", seed=seed)
    options["warn"] = False  # it was said
    condensed = Evaluator(judgments, measures, **{**options, "unjudged": "drop"}).evaluate(opened)
    others = Evaluator(judgments, READINGS, **options).evaluate(opened)
    shares = Evaluator(judgments, SHARES, **{**options, "missing": "skip"}).evaluate(opened)  # of what was returned
    sampled = was_sampled(judgments)
    answer = []
    for r, run in enumerate(others.runs):
        readings = {
            name: Reading(
                float(bounds.scores.summary[r, m]),
                float(condensed.summary[r, m]),
                float(np.nanmean(bounds.low[r, m])),
                float(np.nanmean(bounds.high[r, m])),
            )
            for m, name in enumerate(bounds.scores.measures)
        }
        bpref, inferred, rbp, residual = others.summary[r].tolist()
        judged, deep = shares.summary[r].tolist()
        answer.append(Thin(run, readings, bpref, inferred, judged, deep, rbp, residual, sampled))
    return Readings(answer)


def was_sampled(qrels: Qrels) -> bool:
    """Whether qrels say what was pooled and not drawn: a tenth or more of -1, and no other negative grade.

    A few of -1, or any of -2, are some collections' way to mark junk.
    """
    if qrels.extras.probabilities:
        return True
    undrawn = float((qrels.grade == -1).mean()) if len(qrels) else 0.0
    return undrawn >= UNDRAWN and not bool((qrels.grade < -1).any())


def holes(
    qrels: Qrels,
    runs: Iterable[Run],
    depth: int = 10,
    order: Order = Order(),  # noqa: B008
) -> list[Item]:
    """What to judge to settle how good runs are: the unjudged documents of their tops, by the weight RBP gives them."""
    tops = rankings(runs, depth, order=order)
    items: list[Item] = []
    for topic, judged in qrels.to_dict().items():
        if topic in tops.candidates:
            candidates = tops[topic]
            weight = candidates.weighted(0.2 * 0.8 ** (candidates.rank - 1.0))
            weightiest = np.argsort(-weight, kind="stable").tolist()
            unjudged = [i for i in weightiest if judged.get(candidates.documents[i], -1.0) < 0]
            items += candidates.items(unjudged, count(1))
    return items

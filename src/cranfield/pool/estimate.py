"""How well a sample of the pool estimates average precision: infAP, xinfAP and statAP against AP with everything judged.

The collection's own judgments are the pool, and the truth. Samples are drawn from
them again and again; topics in which no relevant document was drawn have no estimate, and are left out of both means.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.answer import Rows, Table, plain
from cranfield.errors import ConventionError
from cranfield.hits import join
from cranfield.measures import measure
from cranfield.pool.partial import Partial
from cranfield.pool.simulate import judged_topics
from cranfield.pool.strategies.sample import Stratified, Uniform, Weighted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from cranfield.answer import Layout
    from cranfield.kernels.table import Floats
    from cranfield.measures import Measure
    from cranfield.pool.rankings import Rankings
    from cranfield.pool.simulate import JudgedTopic
    from cranfield.pool.strategies.sample import Sample
    from cranfield.run import Run

    Known = dict[tuple[str, str], tuple[float, str]]


@dataclass(frozen=True)
class Estimate:
    """One estimator at one rate: errors of the mean over topics, over all runs and draws."""

    measure: str
    sample: str  # how it was drawn
    rate: float  # the share of the pool that was judged, as it came out
    error: float  # the mean error: bias
    rmse: float  # of the mean over topics
    rmse_topic: float  # of single topics
    lost: float  # the share of topics in which no relevant document was drawn
    draws: int


@dataclass(frozen=True, repr=False)
class Estimates(Rows[Estimate]):
    """Estimators at several rates, a row each."""

    rows: list[Estimate]

    def content(self, how: Layout) -> Iterator[Table]:
        head = ["measure", "sample", "judged", "mean error", "RMSE", "RMSE of a topic", "topics lost"]
        rows = []
        for each in self.rows:
            errors = how.number(each.error, signed=True), how.number(each.rmse), how.number(each.rmse_topic)
            rows.append([each.measure, each.sample, f"{each.rate:.1%}", *errors, f"{each.lost:.1%}"])
        yield Table(head, rows, names=2)

    def records(self, how: Layout) -> Iterator[list[Any]]:
        yield [field.name for field in fields(Estimate)]
        for each in self.rows:
            yield list(vars(each).values())

    def plain(self, how: Layout) -> Any:
        return plain(self.rows, how.digits)


def estimates(
    qrels: Any,
    runs: Iterable[Run],
    rankings: Rankings,
    rates: Sequence[float] = (0.05, 0.1, 0.2),
    *,
    draws: int = 20,
    rel: float = 1,
    seed: int = 0,
    progress: Callable[[int, int | None], None] | None = None,
    **options: Any,
) -> Estimates:
    """Draw samples of the judged pool and compare what is estimated from them with what is true."""
    if not rates or not all(0 < rate <= 1 for rate in rates):
        raise ConventionError(f"rates must lie above 0 and at most at 1, got {list(rates)}")
    if draws < 1:
        raise ConventionError(f"draws must be 1 or more, got {draws}")
    partial = Partial(qrels, runs, f"AP(rel={rel:g})", **options)
    topics = [topic.judged(partial.qrels, rel) for topic in judged_topics(partial.qrels, rankings, rel)]
    inside = np.zeros(len(partial.qrels), bool)
    for topic in topics:
        inside[topic.row] = True
    judged = _Judged(partial, topics, inside, partial.values(inside)[:, 0], rel)
    rows = []
    for rate in rates:
        for name, sample in _samples(rate):
            rows.append(_estimate(name, sample, judged, draws, seed))
            if progress is not None:
                progress(len(rows), 3 * len(rates))
    return Estimates(rows)


def _samples(rate: float) -> list[tuple[str, Sample]]:
    """Each estimator with the sample that it is made for; the strata of xinfAP are the top ten, twice as dense, and the rest."""
    return [
        ("infAP", Uniform(rate=rate)),
        ("xinfAP", Stratified(strata=f"10:{min(1.0, 2 * rate)}/1000000:{rate}")),
        ("statAP", Weighted(rate=rate)),
    ]


@dataclass(frozen=True)
class _Judged:
    """The pool that samples are drawn from: its topics, which rows of the judgments it holds, and the true AP."""

    partial: Partial
    topics: list[JudgedTopic]
    inside: npt.NDArray[np.bool_]
    truth: Floats  # runs × topics
    rel: float


def _estimate(name: str, sample: Sample, judged: _Judged, draws: int, seed: int) -> Estimate:
    estimator = measure(name, judged.rel)
    errors, squares, by_topic, drawn_in_all, lost = [], [], [], 0, 0
    for draw in range(draws):
        drawn, known = _draw(sample, judged, np.random.default_rng([seed, draw]))
        values, counted = _values(judged, estimator, drawn, known, drawn if name == "statAP" else judged.inside)
        lost += sum(not counted[judged.partial.qrels.topic[topic.row[0]]] for topic in judged.topics)
        drawn_in_all += int(drawn.sum())
        difference = values[:, counted] - judged.truth[:, counted]
        errors.append(difference.mean())
        squares.append((difference.mean(axis=1) ** 2).mean())
        by_topic.append((difference**2).mean())
    return Estimate(
        name,
        str(sample),
        drawn_in_all / draws / sum(len(topic.row) for topic in judged.topics),
        float(np.mean(errors)),
        float(np.sqrt(np.mean(squares))),
        float(np.sqrt(np.mean(by_topic))),
        lost / draws / len(judged.topics),
        draws,
    )


def _draw(sample: Sample, judged: _Judged, rng: np.random.Generator) -> tuple[npt.NDArray[np.bool_], Known]:
    """Which rows of the judgments are drawn, and how likely each document was to be, from which stratum."""
    drawn = np.zeros(len(judged.inside), bool)
    known: Known = {}
    for topic in judged.topics:
        candidates = topic.candidates
        drawn[topic.row[sample.drawn(candidates, rng)]] = True
        chances, strata = sample.chances(candidates, 0).tolist(), sample.strata_of(candidates) or repeat("")
        for document, chance, stratum in zip(candidates.documents, chances, strata, strict=False):
            known[candidates.topic, document] = chance, stratum
    return drawn, known


def _values(
    judged: _Judged, estimator: Measure, drawn: npt.NDArray[np.bool_], known: Known, told: npt.NDArray[np.bool_]
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Runs × topics, and which topics have an estimate: those in which a relevant document was drawn.

    The estimator is told of these rows; those that were not drawn have a grade of -1.
    """
    evaluator = judged.partial.evaluator
    whole, grade = evaluator.judgments, np.where(drawn, evaluator.judgments.of_row, -1.0)
    rows = whole.row[told[whole.row]]
    part = whole.only(rows, whole.topic[told[whole.row]], grade[rows])
    part.of_row = np.where(told, grade, np.nan)
    part.extras = replace(whole.extras, probabilities=known)
    values = []
    for found in judged.partial.found:
        hits = join(found, part, evaluator.conventions)
        values.append(estimator(hits.where(~np.isnan(hits.grade))))
    return np.stack(values), part.relevant(judged.rel) > 0

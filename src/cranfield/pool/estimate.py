"""How well a sample of the pool estimates average precision: infAP, xinfAP and statAP against AP with everything judged.

The collection's own judgments are the pool, and the truth. Samples are drawn from
them again and again; topics in which no relevant document was drawn have no estimate, and are left out of both means.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import ConventionError
from cranfield.hits import join
from cranfield.measures import measure
from cranfield.pool.partial import Partial
from cranfield.pool.simulate import judged_topics
from cranfield.pool.strategies.sample import Stratified, Uniform, Weighted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cranfield.kernels.table import Floats
    from cranfield.pool.rankings import Rankings
    from cranfield.pool.simulate import JudgedTopic
    from cranfield.pool.strategy import Strategy
    from cranfield.run import Run


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
) -> list[Estimate]:
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
    truth = partial.values(inside)[:, 0]
    answer = []
    done = 0
    for rate in rates:
        for name, sample in _samples(rate):
            answer.append(_estimate(name, sample, partial, topics, truth, inside, draws, rel, seed))
            done += 1
            if progress is not None:
                progress(done, 3 * len(rates))
    return answer


def _samples(rate: float) -> list[tuple[str, Strategy]]:
    """Each estimator with the sample that it is made for; the strata of xinfAP are the top ten, twice as dense, and the rest."""
    return [
        ("infAP", Uniform(rate=rate)),
        ("xinfAP", Stratified(strata=f"10:{min(1.0, 2 * rate)}/1000000:{rate}")),
        ("statAP", Weighted(rate=rate)),
    ]


def _estimate(
    name: str,
    sample: Any,
    partial: Partial,
    topics: list[JudgedTopic],
    truth: Floats,
    inside: Any,
    draws: int,
    rel: float,
    seed: int,
) -> Estimate:
    chosen = measure(name, rel)
    errors, squares, by_topic, drawn_in_all, lost = [], [], [], 0, 0
    pooled = sum(len(topic.row) for topic in topics)
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        drawn = np.zeros(len(partial.qrels), bool)
        known: dict[tuple[str, str], tuple[float, str]] = {}
        for topic in topics:
            candidates = topic.candidates
            drawn[topic.row[sample.drawn(candidates, rng)]] = True
            chances, strata = sample.chances(candidates, 0), sample.strata_of(candidates)
            for i, document in enumerate(candidates.documents):
                known[candidates.topic, document] = float(chances[i]), strata[i] if strata else ""
        values, counted = _values(partial, chosen, drawn, inside, known, keep_undrawn=name != "statAP", rel=rel)
        lost += sum(not counted[i] for i in (partial.qrels.topic[topic.row[0]] for topic in topics))
        drawn_in_all += int(drawn.sum())
        difference = values[:, counted] - truth[:, counted]
        errors.append(difference.mean())
        squares.append((difference.mean(axis=1) ** 2).mean())
        by_topic.append((difference**2).mean())
    return Estimate(
        name,
        repr(sample),
        drawn_in_all / draws / pooled,
        float(np.mean(errors)),
        float(np.sqrt(np.mean(squares))),
        float(np.sqrt(np.mean(by_topic))),
        lost / draws / len(topics),
        draws,
    )


def _values(
    partial: Partial, chosen: Any, drawn: Any, inside: Any, known: Any, keep_undrawn: bool, rel: float
) -> tuple[Floats, Any]:
    """Runs × topics, and which topics have an estimate: those in which a relevant document was drawn."""
    whole = partial.evaluator.judgments
    kept = (inside if keep_undrawn else drawn)[whole.row]
    grade = np.where(drawn, whole.of_row, -1.0)
    part = whole.only(whole.row[kept], whole.topic[kept], grade[whole.row[kept]])
    part.of_row = np.where(inside if keep_undrawn else drawn, grade, np.nan)
    part.extras = replace(whole.extras, probabilities=known)
    values = []
    for found in partial.found:
        hits = join(found, part, partial.evaluator.conventions)
        pooled = hits.where(~np.isnan(hits.grade))
        values.append(chosen(pooled))
    return np.stack(values), part.relevant(rel) > 0


def table(found: Sequence[Estimate]) -> str:
    """A row for each estimator and rate."""
    from cranfield.columns import aligned

    rows = [["measure", "sample", "judged", "mean error", "RMSE", "RMSE of a topic", "topics lost"]]
    for each in found:
        numbers = f"{each.error:+.4f}", f"{each.rmse:.4f}", f"{each.rmse_topic:.4f}", f"{each.lost:.1%}"
        rows.append([each.measure, each.sample, f"{each.rate:.1%}", *numbers])
    return "\n".join(aligned(rows, 2))


def to_dict(found: Sequence[Estimate]) -> list[dict[str, Any]]:
    """Plain values."""
    return [asdict(each) for each in found]

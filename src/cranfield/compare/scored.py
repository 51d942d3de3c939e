"""Scores as a comparison takes them: with judged@k and micro averages beside them, and as tables of topics.

What is beside the scores is computed in the same pass over the runs. A table of topics × runs is what statistics want;
a measure whose number is no mean over topics has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cranfield.columns import listed
from cranfield.measures import Measure, measure
from cranfield.measures.measure import micro_average, takes_topics_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy.typing as npt

    from cranfield.evaluate import Evaluator
    from cranfield.kernels.table import Floats
    from cranfield.scores import Scores


Progress: TypeAlias = "Callable[[int, int | None], None]"
Shares: TypeAlias = "dict[str, dict[str, float]]"  # a measure → run → a number


@dataclass(frozen=True)
class Scored:
    """Scores, and what stands beside them."""

    scores: Scores
    judged: Shares  # Judged@k → run → the share of its first k ranks that was judged
    micro: Shares  # a ratio → run → the ratio of the topics' sums


def evaluated(evaluator: Evaluator, runs: Any, depths: Iterable[int], progress: Progress | None = None) -> Scored:
    """Score runs, and beside their measures how much was judged at these depths, and the micro averages of ratios."""
    own = evaluator.measures
    micros = {name: micro_average(each) for name, each in own.items()}
    ratios = {name: micro for name, micro in micros.items() if micro is not None and micro not in own.values()}
    judged = {f"Judged@{k}": measure(f"Judged@{k}") for k in depths}
    added = {name: each for name, each in judged.items() if name not in own}
    evaluator.in_order_given(added.values())  # the same whatever becomes of ties, but for those that k divides
    evaluator.measures = {**own, **added, **{f"micro {name}": each for name, each in ratios.items()}}
    everything = evaluator.evaluate(runs, progress)
    evaluator.measures = own
    sums = {name: {run: everything.mean(f"micro {name}", run) for run in everything.runs} for name in ratios}
    return Scored(everything.select(measures=list(own)), _shares(everything, judged), sums)


def depths(measures: Mapping[str, Measure]) -> list[int]:
    """The depths to look at for judgments: the measures' own, or 10."""
    return sorted({int(each.values.get("k") or 10) if each.at == "k" else 10 for each in measures.values()})


def judged_shares(scores: Scores) -> Shares:
    """Judged@k of runs that were scored before, at the depths of the measures; empty where nobody knows.

    Taken from the scores where they hold it; else the runs are looked at again, if they can be.
    """
    wanted = {f"Judged@{k}": measure(f"Judged@{k}") for k in depths(scores.measures)}
    shares = _shares(scores, [name for name in wanted if name in scores.measures])
    lacking = {name: known for name, known in wanted.items() if name not in shares}
    if not lacking or scores._origin is None:
        return shares
    evaluator, sources = scores._origin
    for run, (source, place) in sources.items():
        hits = evaluator.hits(evaluator.open(source)[place])
        there = evaluator.wanted & (hits.retrieved > 0)
        for name, known in lacking.items():
            shares.setdefault(name, {})[run] = _mean(known(hits)[there])
    return shares


def lists_nonrelevant(scores: Scores) -> bool:
    """Whether documents were judged not to be relevant, as far as is known; else nobody knows what else was judged."""
    return scores._origin is None or scores._origin[0].lists_nonrelevant


def _shares(scores: Scores, names: Iterable[str]) -> Shares:
    """Of each run, the mean over the topics that it answers: what it does not return is not unjudged."""
    shares: Shares = {}
    for name in names:
        column = scores.values[:, list(scores.measures).index(name)]
        shares[name] = {run: _mean(column[r][scores.retrieved[r] > 0]) for r, run in enumerate(scores.runs)}
    return shares


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


# topic by topic


def no_mean(scores: Scores, name: str) -> str:
    """Why a measure's number is no mean over topics, if it is not."""
    known = scores.measures[name]
    if name in scores.pooled and known.aggregate == "mean":
        return f"{name} adds up all topics before it divides (a micro average), so no topic has a difference of its own"
    if not takes_topics_alone(known):
        return f"{name} makes one number of all topics in its own way, so no topic has a difference of its own"
    if known.aggregate not in ("mean", "sum"):
        return f"{name} is no mean over topics; compare the measure inside for a test of its mean"
    return ""


def comparable(measure: Measure) -> bool:
    """Whether the measure's number for a run is a mean (or sum) over topics, so that topics can be drawn and tested."""
    usual = measure.aggregate in ("mean", "sum") and takes_topics_alone(measure)
    return usual and measure.values.get("average") != "micro"


def complete(scores: Scores, name: str) -> npt.NDArray[np.bool_]:
    """Which topics have a value in every run."""
    there: npt.NDArray[np.bool_] = np.all(~np.isnan(scores.values[:, scores._measure(name)]), axis=0)
    return there


def upward_table(scores: Scores, name: str, remarks: list[str]) -> Floats:
    """Topics × runs, higher always being better; topics without a value in some run are left out, and said to be."""
    m = scores._measure(name)
    table = scores.values[:, m].T * (-1.0 if list(scores.measures.values())[m].lower_is_better else 1.0)
    there = complete(scores, name)
    if not there.all():
        lacking = [topic for topic, kept in zip(scores.topics, there, strict=True) if not kept]
        what = f"{len(lacking)} of {len(there)} topics have no {name} in some run"
        remark = f"{what} ({listed(lacking, most=3)}); ranks and tests leave them out"
        remarks.extend([remark] if remark not in remarks else [])
    answer: Floats = table[there]
    return answer

"""Did a reproduction succeed? It is compared by the order of documents, by the scores, and by the claimed effect.

Breuer et al., "How to Measure the Reproducibility of System-oriented IR Experiments" (SIGIR 2020), go from strict to
lenient: same documents in the same order (Kendall's tau union, RBO), same scores topic by topic (RMSE), same improvement
over a baseline (effect ratio, delta relative improvement), no significant difference. On another collection (a
replication) only the last two apply. An undefined figure is NaN, and its row gives the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.results import Answer, Layout, Table, plain
from cranfield.comparison.correlate import correlate
from cranfield.evaluation.evaluate import Evaluator, distinct
from cranfield.formats import as_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cranfield.base.conventions import ConventionChanges, Conventions
    from cranfield.base.kernels.table import Floats
    from cranfield.base.results import Part
    from cranfield.base.run import Run
    from cranfield.comparison.correlate import CorrelatedPair
    from cranfield.evaluation.measures import Measure
    from cranfield.evaluation.scores import Scores


@dataclass(frozen=True)
class ReproductionFigure:
    """One figure: for which run (baseline, advanced, run, or effect for both), by which measure, and its value."""

    of: str
    measure: str | None  # None where the order of documents is compared
    figure: str
    value: float
    why: str = ""  # why it is undefined


@dataclass
class Reproduction(Answer):
    """The result of `reproduce`: the figures and remarks.

    >>> qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> original = {"q1": {"a": 2, "b": 1}, "q2": {"b": 2, "a": 1}}
    >>> again = {"q1": {"a": 2, "b": 1}, "q2": {"b": 1, "a": 2}}
    >>> found = reproduce(qrels, original, again, "RR")
    >>> found.value("RMSE"), found.value("KTU")  # sqrt((0 + 0.5²) / 2); (1 + -1) / 2
    (0.3535533905932738, 0.0)
    """

    runs: dict[str, tuple[str, str]]  # baseline, advanced or run → the original's name and the reproduction's
    measures: list[str]
    rows: list[ReproductionFigure]
    parameters: dict[str, Any]
    scores: tuple[Scores, Scores]  # the original's and the reproduction's
    order: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)  # run → topic → KTU and RBO
    remarks: list[str] = field(default_factory=list)

    has_topics = True
    ascii_json = True

    def value(self, figure: str, measure: str | None = None, of: str | None = None) -> float:
        """One figure; the measure and the run may be left out if there is only one. NaN if undefined."""
        rows = self._rows(figure, measure, of)
        if len(rows) != 1:
            names = "; ".join(" of ".join(filter(None, (row.figure, row.measure, row.of))) for row in self.rows)
            raise DataError(f"no single figure {figure!r}; there are {names}")
        return rows[0].value

    def why(self, figure: str, measure: str | None = None, of: str | None = None) -> str:
        """Why a figure is undefined; empty if it is defined."""
        rows = self._rows(figure, measure, of)
        return rows[0].why if rows else ""

    def _rows(self, figure: str, measure: str | None, of: str | None) -> list[ReproductionFigure]:
        return [
            row for row in self.rows if row.figure == figure and measure in (None, row.measure) and of in (None, row.of)
        ]

    def notes(self, shell: bool = False) -> list[str]:
        """Sentences about what was left out or is undefined; `shell` hints name options."""
        undefined = [
            f"{row.figure} of {f'{row.measure} ({row.of})' if row.measure else row.of} is undefined: {row.why}"
            for row in self.rows
            if row.why
        ]
        return self._gaps(shell) + undefined

    def _gaps(self, shell: bool = False) -> list[str]:
        notes = [note for scores in self.scores for note in scores.notes(shell)]
        return list(dict.fromkeys([*notes, *self.remarks]))

    def plain(self, how: Layout) -> dict[str, Any]:
        """An undefined value is None and `undefined` says why."""

        def figures(of: str, measure: str | None) -> dict[str, float | None]:
            rows = (row for row in self.rows if row.of == of and row.measure == measure)
            return {row.figure: plain(row.value, how.digits) for row in rows}

        runs = []
        for of, (original, reproduced) in self.runs.items():
            run: dict[str, Any] = {"of": of, "original": original, "reproduced": reproduced, **figures(of, None)}
            run["measures"] = {measure: figures(of, measure) for measure in self.measures}
            if how.per_topic and of in self.order:
                run["topics"] = plain(self.order[of], how.digits)
            runs.append(run)
        topics = [len(scores.topics) for scores in self.scores]
        answer: dict[str, Any] = {"parameters": self.parameters, "topics": topics, "runs": runs}
        if any(row.of == "effect" for row in self.rows):
            answer["effect"] = {measure: figures("effect", measure) for measure in self.measures}
        answer["undefined"] = [
            {"of": row.of, "measure": row.measure, "figure": row.figure, "why": row.why} for row in self.rows if row.why
        ]
        answer["conventions"] = self.scores[0].conventions.to_dict()
        return {**answer, "notes": self._gaps()} if self._gaps() else answer

    def records(self, how: Layout) -> Iterator[list[Any]]:
        """A header and one row per figure: run, measure, topic (if any), figure, value."""
        yield ["of", "measure", *(["topic"] if how.per_topic else []), "figure", "value"]
        for row in self.rows:
            yield [row.of, row.measure, *([""] if how.per_topic else []), row.figure, row.value]
        for of, topics in self.order.items() if how.per_topic else ():
            for topic, values in topics.items():
                yield from ([of, "", topic, figure, value] for figure, value in values.items())

    def content(self, how: Layout) -> Iterator[Part]:
        """Tables: the order of documents, the scores, the effect."""
        if self.order:
            names = {of: [of, *pair] for of, pair in self.runs.items()}
            yield self._table(["run", "original", "reproduced"], how, {(of, None): names[of] for of in self.order})
        if how.per_topic and self.order:
            topics = [(of, topic, values) for of, each in self.order.items() for topic, values in each.items()]
            rows = [[of, topic, how.number(values["KTU"]), how.number(values["RBO"])] for of, topic, values in topics]
            yield Table(["run", "topic", "KTU", "RBO"], rows, names=2)
        scored: dict[tuple[str, str | None], list[str]]
        scored = {(of, measure): [of, measure] for of in self.runs for measure in self.measures}
        yield self._table(["run", "measure"], how, scored)
        if len(self.runs) == 2:
            yield self._table(["measure"], how, {("effect", measure): [measure] for measure in self.measures})

    def _table(self, lead: list[str], how: Layout, names: Mapping[tuple[str, str | None], list[str]]) -> Table:
        """The figures of some runs and measures, one row each."""
        rows_of_table = [row for row in self.rows if (row.of, row.measure) in names]
        figures = list(dict.fromkeys(row.figure for row in rows_of_table))
        values = {(row.of, row.measure, row.figure): row.value for row in rows_of_table}
        text = {"p": how.p_value}
        rows = [
            [*name, *(text.get(figure, how.number)(values[*of, figure]) for figure in figures)]
            for of, name in names.items()
        ]
        return Table([*lead, *figures], rows, len(lead))


def reproduce(
    qrels: Any,
    original: Any,
    reproduced: Any,
    measures: str | Measure | Iterable[str | Measure] = "nDCG@10 AP",
    *,
    other_qrels: Any = None,
    p: float = 0.9,
    depth: int | None = None,
    rel: float | None = None,
    conventions: Conventions | str | Mapping[str, Any] | None = None,
    **changes: Unpack[ConventionChanges],
) -> Reproduction:
    """Compare a reproduction with the original experiment (Breuer et al., 2020).

    `original` and `reproduced` are a run each, or a pair of them: the baseline and the advanced run whose improvement
    was claimed. With `other_qrels` the reproduction is scored on another collection: a replication, where only the
    improvements and an unpaired t-test can be compared. `p` and `depth` are those of the result lists' RBO and tau.

    >>> qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> base, better = {"q1": {"a": 1, "b": 2}, "q2": {"b": 1, "a": 2}}, {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> half = {"q1": {"a": 1}, "q2": {"b": 1, "a": 2}}
    >>> reproduce(qrels, (base, better), (base, half), "RR").value("ER")  # 0.25 gained where 0.5 was claimed
    0.5
    """
    originals, reproductions = as_runs(original), as_runs(reproduced)
    if len(originals) != len(reproductions) or len(originals) not in (1, 2):
        raise DataError(
            "expected one run each, or baseline and advanced run each, of the original and of the reproduction; "
            f"found {len(originals)} and {len(reproductions)}"
        )
    labels = distinct([run.name for run in [*originals, *reproductions]])
    originals, reproductions = _relabelled(originals, labels), _relabelled(reproductions, labels[len(originals) :])
    roles = ["run"] if len(originals) == 1 else ["baseline", "advanced"]
    runs = {role: (a, b) for role, a, b in zip(roles, originals, reproductions, strict=True)}
    evaluator = other = Evaluator(qrels, measures, rel=rel, conventions=conventions, **changes)
    if other_qrels is not None:
        other = Evaluator(other_qrels, measures, rel=rel, conventions=conventions, **changes)
    before, after = _scored(evaluator, originals), _scored(other, reproductions)
    lists = {}
    if other_qrels is None:  # ties broken by the conventions, as in repro_eval: the same list must come out as 1
        options: dict[str, Any] = {"p": p, "depth": depth, "conventions": evaluator.conventions}
        lists = {role: correlate(a, b, "ktu rbo", tied="order", **options) for role, (a, b) in runs.items()}
    pairs = {role: correlations.pairs[0] for role, correlations in lists.items()}
    rows = [row for role, pair in pairs.items() for row in _compare_order(role, pair)]
    for r, role in enumerate(runs):
        for m, (name, measure) in enumerate(before.measures.items()):
            x, y = before.values[r, m], after.values[r, m]
            rows += _compare_scores(role, name, measure, x, y, other_qrels is None)
    if len(runs) == 2:
        for m, name in enumerate(before.measures):
            rows += _compare_effects(name, before.values[:, m], after.values[:, m])
    return Reproduction(
        runs={role: (a.name, b.name) for role, (a, b) in runs.items()},
        measures=list(before.measures),
        rows=rows,
        parameters={"p": p, "depth": depth, "replication": other_qrels is not None},
        scores=(before, after),
        order={role: _by_topic(pair) for role, pair in pairs.items()},
        remarks=[remark for correlations in lists.values() for remark in correlations.left_out()],
    )


def _relabelled(runs: list[Run], labels: list[str]) -> list[Run]:
    return [run.renamed(label) for run, label in zip(runs, labels, strict=False)]


def _scored(evaluator: Evaluator, runs: list[Run]) -> Scores:
    scores = evaluator.evaluate(runs)
    for name, retrieved in zip(scores.runs, scores.retrieved, strict=True):
        if not retrieved.any():
            judge = evaluator.qrels.name
            raise DataError(f"{name} answers no topic that {judge} judges; are the topics numbered alike?")
    return scores


LISTS = {"KTU": "ktu", "RBO": "rbo"}  # figure → what `correlate` calls it


def _rows(of: str, measure: str | None, figures: Mapping[str, tuple[float, str]]) -> list[ReproductionFigure]:
    return [ReproductionFigure(of, measure, figure, value, why) for figure, (value, why) in figures.items()]


def _compare_order(role: str, pair: CorrelatedPair) -> list[ReproductionFigure]:
    return _rows(role, None, {figure: (pair.values[kind], pair.why.get(kind, "")) for figure, kind in LISTS.items()})


def _by_topic(pair: CorrelatedPair) -> dict[str, dict[str, float]]:
    return {topic: {figure: values[kind] for figure, kind in LISTS.items()} for topic, values in pair.topics.items()}


def _compare_scores(
    role: str, name: str, measure: Measure, x: Floats, y: Floats, same: bool
) -> list[ReproductionFigure]:
    """The mean scores and their differences; topic by topic if the topics are the same."""
    if not same:
        x, y = x[~np.isnan(x)], y[~np.isnan(y)]
        return _rows(role, name, {"original": _mean(x), "reproduced": _mean(y), "p": _unpaired(x, y)})
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    figures = {"original": _mean(x), "reproduced": _mean(y), "RMSE": _rmse(x, y), "nRMSE": _nrmse(x, y, measure)}
    return _rows(role, name, {**figures, "p": _paired(x, y)})


def _compare_effects(name: str, before: Floats, after: Floats) -> list[ReproductionFigure]:
    """The claimed and the reproduced improvement over the baseline. Both arrays hold baseline and advanced run."""
    (base, better), (base_again, better_again) = (_both(values) for values in (before, after))
    claimed, again = better - base, better_again - base_again
    figures = {
        "improvement": (claimed, _NO_TOPIC if claimed != claimed else ""),
        "reproduced improvement": (again, _NO_TOPIC if again != again else ""),
        "ER": _ratio(again, claimed, "the original improvement is 0, so nothing can be its share"),
        "DeltaRI": _delta_ri(base, claimed, base_again, again),
    }
    return _rows("effect", name, figures)


_NO_TOPIC = "no topic has a score in both"


def _both(values: Floats) -> tuple[float, float]:
    """The means of two rows over the topics that count for both."""
    complete = values[:, ~np.isnan(values).any(axis=0)]
    return (float(complete[0].mean()), float(complete[1].mean())) if complete.shape[1] else (np.nan, np.nan)


def _mean(x: Floats) -> tuple[float, str]:
    return (float(x.mean()), "") if len(x) else (np.nan, _NO_TOPIC)


def _rmse(x: Floats, y: Floats) -> tuple[float, str]:
    return (float(np.sqrt(np.mean((x - y) ** 2))), "") if len(x) else (np.nan, _NO_TOPIC)


def _nrmse(x: Floats, y: Floats, measure: Measure) -> tuple[float, str]:
    rmse, why = _rmse(x, y)
    if why:
        return rmse, why
    if measure.low < 0 or measure.high > 1:
        return np.nan, f"{measure} is not bounded by 0 and 1, so the largest difference is not known"
    most = np.maximum(x, 1 - x)  # how far each topic's score could be off
    return float(rmse / np.sqrt(np.mean(most**2))), ""


def _ratio(above: float, below: float, zero: str) -> tuple[float, str]:
    if above != above or below != below:
        return np.nan, _NO_TOPIC
    return (np.nan, zero) if below == 0 else (above / below, "")


def _delta_ri(base: float, claimed: float, base_again: float, improved: float) -> tuple[float, str]:
    zero = "{} baseline's mean is 0, so no improvement is relative to it"
    relative, why = _ratio(claimed, base, zero.format("the original"))
    again, other = _ratio(improved, base_again, zero.format("the reproduced"))
    return (np.nan, why or other) if why or other else (relative - again, "")


def _paired(x: Floats, y: Floats) -> tuple[float, str]:
    if len(x) < 2:
        return np.nan, f"a t-test needs two topics or more, found {len(x)}"
    difference = x - y
    if not difference.any():
        return np.nan, f"all {len(x)} topics have the same score in both, so there is no difference to test"
    if _spread(difference) == 0:
        return np.nan, f"all {len(x)} topics differ by the same amount, so a t-test has no variance to go by"
    error = difference.std(ddof=1) / np.sqrt(len(x))
    return _two_sided(difference.mean() / error, len(x) - 1), ""


def _unpaired(x: Floats, y: Floats) -> tuple[float, str]:
    if min(len(x), len(y)) < 2:
        return np.nan, f"a t-test needs two topics or more on each side, found {len(x)} and {len(y)}"
    if _spread(x) == 0 and _spread(y) == 0:
        return np.nan, "every topic has the same score within each collection, so a t-test has no variance to go by"
    free = len(x) + len(y) - 2
    variance = (((x - x.mean()) ** 2).sum() + ((y - y.mean()) ** 2).sum()) / free  # Student's: one for both
    error = np.sqrt(variance * (1 / len(x) + 1 / len(y)))
    return _two_sided((x.mean() - y.mean()) / error, free), ""


def _two_sided(t: float, free: int) -> float:
    """The p-value of a t statistic. SciPy's tests would warn about constant values, which are fine here."""
    from scipy.special import stdtr  # type: ignore[import-untyped, unused-ignore]

    return float(2 * stdtr(free, -abs(t)))


def _spread(x: Floats) -> float:
    """The range of the values; 0 if it is only rounding."""
    spread = float(x.max() - x.min())
    return 0.0 if spread <= 1e-12 * float(np.abs(x).max()) else spread

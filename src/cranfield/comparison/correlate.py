"""Correlations: how similar are two runs, or two rankings of systems?

Both questions share the arithmetic. For two runs: do they return the same documents in the same order, topic by topic?
For two measures (or two sets of judgments): do they rank the systems in the same order? A coefficient that is undefined
for a topic is left out of the mean and reported; it is never replaced by a number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cranfield.base.conventions import conventions as _conventions
from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import refuse_below, whole
from cranfield.base.results import Answer, Layout, Table, plain
from cranfield.base.text_layout import listed
from cranfield.base.top_k import compared, top
from cranfield.evaluation.evaluate import distinct
from cranfield.evaluation.scores import Scores
from cranfield.formats import as_runs
from cranfield.stats import correlation as coefficients
from cranfield.stats import overlap as overlaps
from cranfield.stats.overlap import TiedRanking, rbo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cranfield.base.conventions import Conventions
    from cranfield.base.kernels import Order
    from cranfield.base.kernels.table import Floats
    from cranfield.base.results import Part
    from cranfield.base.run import Run
    from cranfield.comparison.score_tables import Progress


UNIONS = ("union", "both")
UNION_TAUS = ("ktu", "ktu-by-name")
TIED = ("a", "b", "w", "order")

KINDS: dict[str, str] = {
    "rbo": "Rank-biased overlap, extrapolated beyond what is seen",
    "rbo-min": "Its lowest value, whatever lies beyond",
    "rbo-max": "Its highest value",
    "rbo-res": "The gap between the two",
    "rbo-cut": "Rank-biased overlap down to the depth only, as in Compatibility and repro_eval",
    "overlap": "The share of the top k that is in both",
    "average-overlap": "The mean of the overlaps at depths 1 to k",
    "jaccard": "Documents in both top k over documents in either",
    "ktu": "Kendall's tau union: positions in the union of both lists, correlated place by place",
    "ktu-by-name": "The same with the union numbered by document id, as in repro_eval",
    **{name: one.about for name, one in coefficients.COEFFICIENTS.items()},
}
"""The kinds of similarity of two result lists, by name; for two rankings of systems, only the correlations."""


@dataclass
class CorrelatedPair:
    """Two runs (or two rankings of systems) and their similarity: one value per kind, and the values of topics."""

    first: str
    second: str
    over: int  # the number of topics, or systems, behind the values
    values: dict[str, float]
    why: dict[str, str] = field(default_factory=dict)  # kind → why it is undefined
    topics: dict[str, dict[str, float]] = field(default_factory=dict)
    reasons: dict[str, dict[str, str]] = field(default_factory=dict)  # topic → kind → why it is undefined there


@dataclass
class Correlations(Answer):
    """The result of `correlate`: pairs with their values, the parameters, and remarks.

    >>> found = correlate({"q": {"a": 2, "b": 1}}, {"q": {"a": 1, "b": 2}}, "tau overlap@1")
    >>> found.value("tau"), found.value("overlap@1")
    (-1.0, 0.0)
    """

    of: Literal["lists", "systems"]
    kinds: list[str]
    pairs: list[CorrelatedPair]
    parameters: dict[str, Any]
    remarks: list[str] = field(default_factory=list)

    has_topics = True
    ascii_json = True

    def value(self, kind: str | None = None, first: str | None = None, second: str | None = None) -> float:
        """The value of one kind for one pair; arguments may be left out if there is only one. NaN if undefined."""
        if kind is None and len(self.kinds) > 1:
            raise DataError(f"which kind? there are {', '.join(self.kinds)}")
        pairs = [pair for pair in self.pairs if first in (None, pair.first) and second in (None, pair.second)]
        if len(pairs) != 1 or (kind is not None and kind not in self.kinds):
            names = "; ".join(f"{pair.first}, {pair.second}" for pair in self.pairs[:10])
            raise DataError(f"no single value: kinds are {', '.join(self.kinds)}; pairs are {names}")
        return pairs[0].values[self.kinds[0] if kind is None else kind]

    def __float__(self) -> float:
        return self.value()

    def notes(self, shell: bool = False) -> list[str]:
        """Sentences about what was left out or is undefined."""
        missing = [
            f"{kind} of {pair.first} and {pair.second} is undefined: {why}"
            for pair in self.pairs
            for kind, why in pair.why.items()
        ]
        return self.left_out() + missing

    def left_out(self) -> list[str]:
        """Sentences about topics or systems that a value leaves out, and why."""
        answer = list(self.remarks)
        for pair in self.pairs:
            for kind in (kind for kind in self.kinds if kind not in pair.why):
                topics = {topic: why[kind] for topic, why in pair.reasons.items() if kind in why}
                if topics:
                    topic, why = next(iter(topics.items()))
                    answer.append(
                        f"{kind} of {pair.first} and {pair.second} is undefined for {len(topics)} of {pair.over} topics, "
                        f"which the mean leaves out (topic {topic!r}: {why})"
                    )
        return answer

    def plain(self, how: Layout) -> dict[str, Any]:
        """An undefined value is None and `undefined` says why."""
        pairs = []
        for pair in self.pairs:
            row: dict[str, Any] = {"first": pair.first, "second": pair.second, self._unit: pair.over}
            row["values"] = plain(pair.values, how.digits)
            if pair.why:
                row["undefined"] = pair.why
            if how.per_topic and self.of == "lists":
                row["per_topic"] = plain(pair.topics, how.digits)
                row["undefined_topics"] = pair.reasons
            pairs.append(row)
        answer = {"of": self.of, "kinds": self.kinds, "parameters": self.parameters, "pairs": pairs}
        return {**answer, "notes": self.notes()} if self.notes() else answer

    def content(self, how: Layout) -> list[Part]:
        return [self._table(how, total=True)]

    def records(self, how: Layout) -> list[list[str]]:
        """A header and one row per pair, or per pair and topic."""
        return self._table(how, total=False).texts()

    @property
    def _unit(self) -> str:
        return "topics" if self.of == "lists" else "systems"

    def _table(self, how: Layout, total: bool) -> Table:
        """One row per pair; or one row per pair and topic, and with `total` one for all topics."""

        def texts(values: Mapping[str, float]) -> list[str]:
            return [how.number(values[kind]) for kind in self.kinds]

        if not how.per_topic or self.of == "systems":
            rows = [[pair.first, pair.second, *texts(pair.values), str(pair.over)] for pair in self.pairs]
            return Table(["first", "second", *self.kinds, self._unit], rows, names=2)
        rows = []
        for pair in self.pairs:
            values = [*pair.topics.items(), *([("all", pair.values)] if total else [])]
            rows += [[pair.first, pair.second, topic, *texts(each)] for topic, each in values]
        return Table(["first", "second", "topic", *self.kinds], rows, names=3)


def correlate(
    first: Any,
    second: Any = None,
    kinds: str | Iterable[str] | None = None,
    *,
    p: float = 0.9,
    depth: int | None = None,
    tied: Literal["a", "b", "w", "order"] = "a",
    documents: Literal["union", "both"] = "union",
    conventions: Conventions | str | Mapping[str, Any] | None = None,
    names: tuple[str, str] = ("first", "second"),
    progress: Progress | None = None,
) -> Correlations:
    """The similarity of two runs, topic by topic, or of two rankings of systems.

    Runs: two, or several in a list or a mapping (then every pair). `kinds` are names of `KINDS`, optionally with their
    own depth (`overlap@10`); `depth` cuts all lists. `tied` defines how documents of equal score are treated (see
    `rbo`); `order` breaks ties by the conventions. Correlations need the same documents in both lists: `union` appends
    missing documents, tied, at the end of a list; `both` leaves them out.

    Scores: `correlate(scores)` compares the rankings of systems by each two measures; `correlate(scores, others)`
    compares the rankings by the same measure in both. `names` are the labels of the two.

    >>> run, other = {"q": {"a": 3, "b": 2, "c": 1}}, {"q": {"a": 3, "c": 2, "b": 1}}
    >>> correlate(run, other, "tau", tied="order").value()
    0.33333333333333337
    """
    if isinstance(first, Scores) or isinstance(second, Scores):
        return _systems(first, second, _parsed(kinds, "tau tau-ap"), names)
    parsed_kinds = _parsed(kinds, "rbo")
    _refuse_options(p, depth, tied, documents)
    runs = as_runs(first) if second is None else [*as_runs(first), *as_runs(second)]
    if len(runs) < 2:
        raise DataError(f"expected two runs or more to compare, found {len(runs)}")
    likenesses = {
        text: partial(_likeness, kind, p=p, k=k or depth, tied=tied, documents=documents)
        for text, (kind, k) in parsed_kinds.items()
    }
    rules = _conventions(conventions)
    ordered = (ranked(rules.ordered(run), rules.order) for run in runs)
    lists = dict(zip(distinct([run.name for run in runs]), ordered, strict=True))
    pairs: list[CorrelatedPair] = []
    remarks: list[str] = []
    both = list(combinations(lists, 2))
    for one, other in both:
        pairs.append(_pair(one, other, lists[one], lists[other], likenesses))
        remarks += _lacking(one, other, lists) + _little_shared(one, other, lists, likenesses)
        if progress is not None:
            progress(len(pairs), len(both))
    parameters = {"p": p, "depth": depth, "tied": tied, "documents": documents}
    return Correlations("lists", list(parsed_kinds), pairs, parameters, remarks)


def _parsed(typed: str | Iterable[str] | None, default: str) -> dict[str, tuple[str, int | None]]:
    """Parse kinds such as `overlap@10`: for each text the kind, and its depth if it names one."""
    kinds: dict[str, tuple[str, int | None]] = {}
    texts = [default] if typed is None else [typed] if isinstance(typed, str) else typed
    for text in (part for each in texts for part in each.replace(",", " ").split()):
        kind, at, k = text.partition("@")
        if kind not in KINDS:
            raise ConventionError(f"no kind of similarity {kind!r}; there are {', '.join(KINDS)}")
        try:
            depth = whole(k) if at else None
            refuse_below(1, depth=depth)
        except ValueError:  # ConventionError is one
            raise ConventionError(f"{text}: the depth behind @ must be a whole number of 1 or more") from None
        kinds[text] = (kind, depth)
    if not kinds:
        raise ConventionError(f"no kind of similarity given; there are {', '.join(KINDS)}")
    return kinds


def _refuse_options(p: float, depth: int | None, tied: str, documents: str) -> None:
    if not 0 < p < 1:
        raise ConventionError(f"p must be between 0 and 1, ends excluded, got {p}")
    refuse_below(1, **{"the depth": depth})
    if tied not in TIED:
        raise ConventionError(f"tied must be one of {', '.join(TIED)}, got {tied!r}")
    if documents not in UNIONS:
        raise ConventionError(f"documents must be one of {', '.join(UNIONS)}, got {documents!r}")


# result lists


@dataclass(frozen=True)
class Ranked:
    """One topic's documents, best first, and the scores by which they are ordered."""

    documents: list[bytes]
    scores: Floats

    def head(self, k: int | None) -> Ranked:
        """The first k documents; all of them if k is None."""
        return self if k is None or k >= len(self.documents) else Ranked(self.documents[:k], self.scores[:k])

    def ranking(self, tied: str) -> TiedRanking:
        """The ranking; tied documents form groups unless `tied` is "order"."""
        keys = np.arange(len(self.documents)) if tied == "order" else self.scores
        return TiedRanking.of_sorted(self.documents, keys)


def ranked(run: Run, order: Order) -> dict[str, Ranked]:
    """Each topic's result list; topics without documents are left out."""
    best = top(run, order=order)
    documents, scores = list(best.documents), compared(best.score, order)
    ends = np.searchsorted(best.topic, np.arange(len(best.topics) + 1)).tolist()
    lists = zip(best.topics.text(), ends, ends[1:], strict=False)
    return {topic: Ranked(documents[start:end], scores[start:end]) for topic, start, end in lists if end > start}


def _pair(
    first: str,
    second: str,
    one: dict[str, Ranked],
    other: dict[str, Ranked],
    likenesses: Mapping[str, Callable[[Ranked, Ranked], tuple[float, str]]],
) -> CorrelatedPair:
    common = [topic for topic in one if topic in other]
    if not common:
        raise DataError(f"{first} and {second} share no topic; are the topics numbered alike?")
    likeness = {t: {kind: alike(one[t], other[t]) for kind, alike in likenesses.items()} for t in common}
    topics = {t: {kind: value for kind, (value, _) in each.items()} for t, each in likeness.items()}
    reasons = {t: {kind: why for kind, (_, why) in each.items() if why} for t, each in likeness.items()}
    reasons = {t: why for t, why in reasons.items() if why}
    values, undefined = {}, {}
    for kind in likenesses:
        defined = [each[kind] for each in topics.values() if each[kind] == each[kind]]
        values[kind] = float(np.mean(defined)) if defined else np.nan
        if not defined:
            undefined[kind] = f"it is for every topic (topic {common[0]!r}: {reasons[common[0]][kind]})"
    return CorrelatedPair(first, second, len(common), values, undefined, topics, reasons)


def _lacking(one: str, other: str, lists: Mapping[str, dict[str, Ranked]]) -> list[str]:
    """Remarks about topics that only one of the two runs has."""
    remarks = []
    for name, elsewhere in ((one, other), (other, one)):
        alone = [topic for topic in lists[name] if topic not in lists[elsewhere]]
        if alone:
            subject = f"topic {alone[0]!r} of {name} is" if len(alone) == 1 else f"topics {listed(alone)} of {name} are"
            remarks.append(f"{subject} missing from {elsewhere} and left out")
    return remarks


def _little_shared(one: str, other: str, lists: Mapping[str, dict[str, Ranked]], kinds: Iterable[str]) -> list[str]:
    """A remark if tau union is requested and the lists share few documents."""
    if not any(kind.partition("@")[0] in UNION_TAUS for kind in kinds):
        return []
    both = [
        (set(each.documents), set(lists[other][t].documents)) for t, each in lists[one].items() if t in lists[other]
    ]
    share = float(np.mean([len(a & b) / max(len(a), len(b)) for a, b in both]))  # of the longer list
    if share >= 0.9:
        return []
    return [f"{one} and {other} share {share:.0%} of their documents, which tau union ignores; read rbo as well"]


def _likeness(
    kind: str, one: Ranked, other: Ranked, *, p: float, k: int | None, tied: str, documents: str
) -> tuple[float, str]:
    """The value of one kind for one topic, and the reason if it is undefined."""
    ties: Any = "a" if tied == "order" else tied
    if kind in _TO_DEPTH:
        return _TO_DEPTH[kind](one.ranking(tied), other.ranking(tied), p, k, ties), ""
    one, other = one.head(k), other.head(k)
    if kind in UNION_TAUS:
        return _union_tau(one, other, by_name=kind == "ktu-by-name")
    if kind in coefficients.COEFFICIENTS:
        documents, tied = ("both", "a") if kind == "pearson" else (documents, tied)
        return coefficient(kind, *_side_by_side(one, other, documents, tied))
    first, second = one.ranking(tied), other.ranking(tied)
    if kind == "jaccard":
        return overlaps.jaccard(first, second), ""
    bound = "ext" if kind == "rbo" else kind.removeprefix("rbo-")
    return float(getattr(rbo(first, second, p, ties), bound)), ""


_TO_DEPTH: dict[str, Callable[[TiedRanking, TiedRanking, float, int | None, Any], float]] = {
    "overlap": lambda one, other, p, k, ties: overlaps.overlap(one, other, k, ties),
    "average-overlap": lambda one, other, p, k, ties: overlaps.average_overlap(one, other, k, ties),
    "rbo-cut": overlaps.rbo_cut,
}  # these handle tied groups that k divides, so their lists are not cut before


def coefficient(kind: str, x: Floats, y: Floats) -> tuple[float, str]:
    """A correlation of two series, and the reason if it is undefined."""
    why = coefficients.undefined(kind, x, y)
    return (np.nan, why) if why else (coefficients.correlation(kind, x, y), "")


def _union_tau(one: Ranked, other: Ranked, by_name: bool) -> tuple[float, str]:
    sizes = len(one.documents), len(other.documents)
    if sizes[0] != sizes[1]:
        return np.nan, f"the lists hold {sizes[0]} and {sizes[1]} documents, expected as many; cut them with a depth"
    if sizes[0] < 2:
        return np.nan, f"there is nothing to order: expected two documents or more, found {sizes[0]}"
    names = sorted({*one.documents, *other.documents}) if by_name else None
    return coefficients.tau_union(one.documents, other.documents, names), ""


def _side_by_side(one: Ranked, other: Ranked, documents: str, tied: str) -> tuple[Floats, Floats]:
    """The scores of the same documents in both lists; missing documents come last."""
    tables = []
    for each in (one, other):
        values = -np.arange(len(each.documents), dtype=np.float64) if tied == "order" else each.scores
        tables.append(dict(zip(each.documents, values.tolist(), strict=True)))
    mine, theirs = tables
    names = [d for d in mine if d in theirs] if documents == "both" else list(dict.fromkeys([*mine, *theirs]))
    x, y = (np.array([table.get(d, -np.inf) for d in names]) for table in tables)
    return x, y


# rankings of systems


def _systems(first: Any, second: Any, kinds: dict[str, tuple[str, int | None]], names: tuple[str, str]) -> Correlations:
    if not isinstance(first, Scores) or not isinstance(second, (Scores, type(None))):
        raise DataError("expected Scores on both sides, found a run on one; evaluate it first")
    wrong = [text for text, (kind, k) in kinds.items() if kind not in coefficients.COEFFICIENTS or k]
    if wrong:
        coefficient_names = ", ".join(coefficients.COEFFICIENTS)
        raise ConventionError(
            f"{wrong[0]} compares result lists, not rankings of systems; for these there are {coefficient_names}"
        )
    if second is None:
        if len(first.measures) < 2:
            raise DataError(
                "expected two measures or more to compare, or scores under other judgments; found one measure"
            )
        rankings = list(combinations(((name, first, name) for name in first.measures), 2))
    else:
        shared = [name for name in first.measures if name in second.measures]
        if not shared:
            raise DataError("the two have no measure in common")
        here, there = names
        rankings = [((f"{name} ({here})", first, name), (f"{name} ({there})", second, name)) for name in shared]
    both = [run for run in first.runs if second is None or run in second.runs]
    alone = [run for run in [*first.runs, *(second.runs if second is not None else [])] if run not in both]
    remarks = [f"systems {listed(alone)} are scored on one side only and left out"] if alone else []
    pairs = []
    for (one, scores, measure), (other, others, same) in rankings:
        means = {run: (scores.mean(measure, run), others.mean(same, run)) for run in both}
        absent = [run for run, (x, y) in means.items() if x != x or y != y]
        if absent:
            remarks.append(f"systems {listed(absent)} have no {one} or no {other} and are left out")
        pairs.append(_ranking_pair(one, other, [each for run, each in means.items() if run not in absent], kinds))
    return Correlations("systems", list(kinds), pairs, {}, remarks)


def _ranking_pair(first: str, second: str, means: list[tuple[float, float]], kinds: Iterable[str]) -> CorrelatedPair:
    x, y = np.array(means).reshape(-1, 2).T.copy()
    results = {kind: coefficient(kind, x, y) for kind in kinds}
    why = {kind: reason for kind, (_, reason) in results.items() if reason}
    return CorrelatedPair(first, second, len(x), {kind: value for kind, (value, _) in results.items()}, why)

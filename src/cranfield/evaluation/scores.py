"""Scores: one number per run × measure × topic, with the facts needed to trust it.

The numbers are one array. A value that does not exist is NaN there, and null or no row at all in output: the measure
is undefined, or the conventions leave the topic out of the run's mean. Means add up topics in the byte order of their
ids, as trec_eval does: the mean of short decimals often ends in a 5, and then the order of adding decides the printed
digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from cranfield.base.conventions import PRESETS, Conventions
from cranfield.base.errors import ConventionError, CranfieldError, DataError, MissingExtraError
from cranfield.base.parameters import LARGEST_SCORE
from cranfield.base.results import Answer, Cell, Layout, Lines, Table, fitted, plain, text
from cranfield.base.text_layout import counted, cut_end, in_line, legible, listed
from cranfield.evaluation.measures.definition import AGGREGATES, is_mean, measure_or_label
from cranfield.evaluation.measures.definition import measure as measure_named
from cranfield.evaluation.tie_orders import DRAWN, SEED
from cranfield.evaluation.topics import Absent, as_weights

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats
    from cranfield.base.results import Part
    from cranfield.base.run import Run
    from cranfield.evaluation.explanation import Explanation
    from cranfield.evaluation.measures import Measure
    from cranfield.evaluation.topics import TopicWeights


T = TypeVar("T")
COUNTS = ("judged", "retrieved", "missing")
SPARE = ("judged", "retrieved")  # columns that a narrow screen drops


class Score(NamedTuple):
    """The value of one run on one topic by one measure; NaN if it is undefined."""

    run: str
    topic: str
    measure: str
    value: float


@dataclass(eq=False, repr=False)
class Scores(Answer):
    """The result of `evaluate`: runs × measures × topics.

    Index it by measure, by run, by topic or by several of them. Names are looked up among measures first, then among
    runs, then among topics, each at most once; `at` names the axis explicitly. An axis with a single run or a single
    measure is dropped. Any name of a measure works: `scores["map"]` is `scores["AP"]`.

    >>> from cranfield import evaluate
    >>> scores = evaluate({"q1": {"d1": 1}, "q2": {"d2": 1}}, {"q1": {"d1": 1}, "q2": {"d1": 2, "d2": 1}}, "RR P@1")
    >>> scores["RR"]
    array([1. , 0.5])
    >>> scores["RR", "q2"], scores.mean("P@1"), scores.means()
    (0.5, 0.5, {'RR': 0.75, 'P@1': 0.5})
    >>> scores
    run      RR     P@1  judged  retrieved  missing
    run  0.7500  0.5000       2          2        0
    conventions: cranfield
    """

    runs: list[str]
    tags: list[str | None]
    measures: dict[str, Measure]
    topics: list[str]
    values: Floats  # runs × measures × topics
    counted: npt.NDArray[np.bool_]  # runs × topics: whether the topic enters the run's mean
    retrieved: npt.NDArray[np.int32]  # runs × topics: documents returned
    absent: Absent
    conventions: Conventions
    pooled: dict[str, Floats] = field(default_factory=dict)  # measure → runs × 2 × topics: fraction of a micro average
    exceptions: dict[str, dict[str, Any]] = field(default_factory=dict)  # measure → its own conventions
    assumed: dict[str, str] = field(default_factory=dict)  # measure → its assumption about the data, in words
    differences: dict[str, list[str]] = field(default_factory=dict)  # measure → why its preset's program differs
    # measure → runs × topics: standard errors of means over sampled orders
    sampled: dict[str, Floats] = field(default_factory=dict)
    queries: Mapping[str, str] = field(default_factory=dict)  # topic → query, where known
    weights: TopicWeights | None = None  # the weights of topics, if any
    external: bool = False  # whether the values come from a table, so the conventions are unknown
    judged: npt.NDArray[np.int32] | None = None  # topics: judged documents; None if the values come from a table
    relevant: npt.NDArray[np.int32] | None = None  # topics: relevant documents among them
    _origin: tuple[Any, dict[str, tuple[Any, int]]] | None = None  # the evaluator; run → source to open, number in it

    has_topics = True

    @classmethod
    def from_table(
        cls,
        values: Any,
        runs: Sequence[str] | None = None,
        topics: Sequence[str] | None = None,
        measure: str = "score",
        *,
        lower_is_better: bool | None = None,
    ) -> Scores:
        """Scores that were computed elsewhere: topics × runs, or a mapping of measures to such tables.

        The name of a measure means that measure. Any other name is only a label; higher is better there unless
        `lower_is_better` is set. NaN marks a value that does not exist. Runs and topics without names are numbered.

        >>> scores = Scores.from_table([[0.5, 0.25], [1.0, 0.75]], ["bm25", "dense"], ["301", "302"], "AP")
        >>> scores.mean("AP", "bm25"), scores.at(run="dense")
        (0.75, array([0.25, 0.75]))
        """
        tables = values if hasattr(values, "keys") else {measure: values}
        arrays = {name: np.asarray(tables[name], np.float64) for name in tables}
        _refuse_table(arrays, runs, topics)
        shape = next(iter(arrays.values())).shape
        stacked = np.stack([array.T for array in arrays.values()], axis=1)
        there: npt.NDArray[np.bool_] = np.any(~np.isnan(stacked), axis=1)
        return cls(
            runs=[f"run{r + 1}" for r in range(shape[1])] if runs is None else [str(run) for run in runs],
            tags=[None] * shape[1],
            measures={name: measure_or_label(name, lower_is_better) for name in arrays},
            topics=[str(t + 1) for t in range(shape[0])] if topics is None else [str(topic) for topic in topics],
            values=stacked,
            counted=there,
            retrieved=there.astype(np.int32),
            absent=Absent(),
            conventions=Conventions(),
            external=True,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_origin": None}  # files and judgments are not pickled

    def remember(self, evaluator: Any, sources: Sequence[tuple[Any, int]]) -> None:
        """Note the source of each run and its number there, so that a score can be explained later."""
        pairs = zip(self.runs, sources, strict=True)
        self._origin = evaluator, {run: source for run, source in pairs if source[0] not in (None, "-")}

    def explain(
        self, topic: str, measure: str | Measure | None = None, run: str | None = None, *, full: bool = False
    ) -> Explanation:
        """Explain a run's score on one topic rank by rank: see `cranfield.explain`. Files are read again.

        >>> from cranfield import evaluate
        >>> scores = evaluate({"q": {"a": 1}}, {"q": {"b": 2, "a": 1}}, "RR P@1")
        >>> scores.explain("q", "RR").value
        0.5
        """
        from cranfield.evaluation.explanation import explain_topic

        name = self.runs[self._run(run)]
        spelt = list(self.measures)[self._measure(measure)]
        _position("topic", topic, self.topics)
        if not self.can_reopen(name):
            hint = "use explain(qrels, run, measure, topic)"
            raise DataError(f"these scores do not hold the run {name!r} itself; {hint}")
        return explain_topic(*self.reopen(name), spelt, topic, full)

    def can_reopen(self, run: str) -> bool:
        """Whether a run can be opened again."""
        return self._origin is not None and run in self._origin[1]

    def reopen(self, run: str) -> tuple[Any, Run]:
        """The evaluator that scored a run, and the run opened again; only if `can_reopen`."""
        assert self._origin is not None
        evaluator, sources = self._origin
        source, place = sources[run]
        return evaluator, evaluator.open(source)[place].renamed(run)

    # as arrays

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Runs × measures × topics."""
        return self.values.shape

    def __getitem__(self, key: int | str | Measure | tuple[str | Measure, ...]) -> Any:
        if isinstance(key, (int, np.integer)):
            return self._row(int(key))
        axes: dict[str, str | Measure] = {}
        for part in key if isinstance(key, tuple) else (key,):
            axes[self._axis_of(part, axes)] = part
        return self.at(**axes)  # type: ignore[arg-type]

    def at(self, run: str | None = None, measure: str | Measure | None = None, topic: str | None = None) -> Any:
        """The values at a run, a measure and a topic. Axes that are left out stay: the result is an array or a number.

        >>> from cranfield import evaluate
        >>> scores = evaluate({"AP": {"d1": 1}}, {"AP": {"d1": 1}}, "RR AP")  # a topic called AP
        >>> scores["AP"], scores.at(topic="AP")
        (array([1.]), array([1., 1.]))
        """
        index: list[Any] = [slice(None)] * 3
        if run is not None or len(self.runs) == 1:
            index[0] = self._run(run)
        if measure is not None or len(self.measures) == 1:
            index[1] = self._measure(measure)
        if topic is not None:
            index[2] = _position("topic", topic, self.topics)
        answer = self.values[tuple(index)]
        return float(answer) if answer.ndim == 0 else answer

    def _axis_of(self, part: str | Measure, axes_so_far: Mapping[str, Any]) -> str:
        axes: dict[str, Container[Any]] = {"measure": self.measures, "run": self.runs, "topic": self.topics}
        for axis, names in axes.items():
            if axis not in axes_so_far and part in names:
                return axis
        if "measure" not in axes_so_far and self._position_of_spelling(part) is not None:
            return "measure"
        runs = listed(self.runs, most=10)
        raise DataError(f"no run, measure or topic {part!s}; measures are {', '.join(self.measures)}; runs are {runs}")

    def _run(self, name: str | None) -> int:
        return _position("run", name, self.runs)

    def _measure(self, name: str | Measure | None) -> int:
        if name is None or (isinstance(name, str) and name in self.measures):
            return _position("measure", name, list(self.measures))
        position = self._position_of_spelling(name)
        return position if position is not None else _position("measure", str(name), list(self.measures))

    def _position_of_spelling(self, name: str | Measure) -> int | None:
        """The position of the measure that has this other name."""
        try:
            meant = measure_named(name) if isinstance(name, str) else name
        except CranfieldError:
            return None
        measures = list(self.measures.values())
        if meant in measures:
            return measures.index(meant)
        alike = [(type(each), each.values) for each in measures]  # AP's topics are those of gmean(AP)
        like = type(meant), meant.values
        return alike.index(like) if like in alike and meant.aggregate == type(meant).aggregate else None

    def select(
        self,
        runs: Iterable[str] | None = None,
        measures: Iterable[str | Measure] | None = None,
        topics: Iterable[str] | None = None,
    ) -> Scores:
        """The scores of some runs, measures and topics, in the order of the arguments."""
        r = list(range(len(self.runs))) if runs is None else [self._run(run) for run in runs]
        m = list(range(len(self.measures))) if measures is None else [self._measure(measure) for measure in measures]
        t = list(range(len(self.topics))) if topics is None else [_position("topic", x, self.topics) for x in topics]
        chosen_runs, chosen_topics = [self.runs[i] for i in r], [self.topics[i] for i in t]
        chosen_measures = dict(list(self.measures.items())[i] for i in m)
        origin = self._origin
        return replace(
            self,
            runs=chosen_runs,
            tags=[self.tags[i] for i in r],
            measures=chosen_measures,
            topics=chosen_topics,
            values=self.values[np.ix_(r, m, t)],
            counted=self.counted[np.ix_(r, t)],
            retrieved=self.retrieved[np.ix_(r, t)],
            absent=self.absent.select(chosen_runs, chosen_topics),
            judged=None if self.judged is None else self.judged[t],
            relevant=None if self.relevant is None else self.relevant[t],
            pooled={name: self.pooled[name][np.ix_(r, [0, 1], t)] for name in chosen_measures if name in self.pooled},
            exceptions={name: self.exceptions[name] for name in chosen_measures if name in self.exceptions},
            assumed={name: self.assumed[name] for name in chosen_measures if name in self.assumed},
            differences={name: self.differences[name] for name in chosen_measures if name in self.differences},
            sampled={name: self.sampled[name][np.ix_(r, t)] for name in chosen_measures if name in self.sampled},
            _origin=origin and (origin[0], {run: origin[1][run] for run in chosen_runs if run in origin[1]}),
        )

    def sort(self, by: str | Measure = "name") -> Scores:
        """Sort the runs by a measure's mean (best first, undefined last), or by name."""
        if by == "name" and by not in self.measures:
            return self.select(runs=sorted(self.runs))
        measure = self.sort_column(by)
        column = self.ranking(measure) * self._upwards[measure]
        order = sorted(range(len(self.runs)), key=lambda r: (bool(np.isnan(column[r])), -column[r]))
        return self.select(runs=[self.runs[r] for r in order])

    def sort_column(self, by: str | Measure) -> int:
        """The position of the measure to sort by."""
        try:
            return self._measure(by)
        except DataError:
            raise ConventionError(f"sort must be one of {', '.join(self.measures)}, got {str(by)!r}") from None

    # summaries

    def weighed(self, weights: Any) -> Scores:
        """The same scores with a weight for each topic (a mapping); topics of weight 0 are left out.

        >>> scores = Scores.from_table([[0.5], [1.0]], ["bm25"], ["301", "302"], "AP").weighed({"301": 3, "302": 1})
        >>> scores.mean("AP"), scores.weighted_mean("AP")
        (0.75, 0.625)
        """
        fitted = as_weights(weights).fitted(self.topics)
        scores = self if len(fitted.values) == len(self.topics) else self.select(topics=fitted.values)
        return replace(scores, weights=fitted)

    def weighted_mean(self, measure: str | Measure | None = None, run: str | None = None) -> float:
        """The weighted mean over topics of one measure and one run."""
        if self.weights is None:
            raise DataError("these scores have no weights; see Scores.weighed")
        return float(self.weighted[self._run(run), self._measure(measure)])

    @cached_property
    def weighted(self) -> Floats:
        """Runs × measures: the weighted mean over the topics that count; NaN for measures that are not means."""
        answer = np.full(self.values.shape[:2], np.nan)
        weights = np.ones(len(self.topics)) if self.weights is None else self.weights.of(self.topics)
        for m, measure in enumerate(self.measures.values()):
            if self._is_mean(measure):
                for r, row in enumerate(self.values[:, m]):
                    mask = self.counted[r] & ~np.isnan(row)
                    if mask.any():
                        answer[r, m] = np.average(row[mask], weights=weights[mask])
        return answer

    def _is_mean(self, measure: Measure) -> bool:
        return is_mean(measure) and measure.values.get("average") != "micro"

    def ranking(self, m: int) -> Floats:
        """One number per run to rank by: a measure's mean, weighted if there are weights."""
        by_weights = self.weights is not None and self._is_mean(list(self.measures.values())[m])
        return (self.weighted if by_weights else self.summary)[:, m]

    def mean(self, measure: str | Measure | None = None, run: str | None = None) -> float:
        """The mean over topics (the sum, for counts) of one measure and one run."""
        m = self._measure(measure)
        return float(self.summary[self._run(run), m])

    def means(self, run: str | None = None) -> dict[str, float]:
        """The means of all measures for one run."""
        return dict(zip(self.measures, self.summary[self._run(run)].tolist(), strict=True))

    def __float__(self) -> float:
        return self.mean()

    @cached_property
    def summary(self) -> Floats:
        """Runs × measures: the mean over the topics that count (the sum for counts); NaN if there is no topic."""
        return self.summarise_values(self.values)

    def summarise_values(self, values: Floats) -> Floats:
        """The summary statistic of each run and measure for these values; micro averages do not depend on them."""
        order = np.array(sorted(range(len(self.topics)), key=self.topics.__getitem__), np.intp)
        answer = np.full(values.shape[:2], np.nan)
        for r in range(len(self.runs)):
            topics = order[self.counted[r, order]]
            for m, (name, measure) in enumerate(self.measures.items()):
                if name in self.pooled and len(topics) and measure.aggregate == "mean":
                    above, below = self.pooled[name][r][:, topics].sum(axis=1)
                    answer[r, m] = above / below if below else 0.0
                    continue
                row = values[r, m, topics]
                row = row[~np.isnan(row)]
                if len(row):
                    answer[r, m] = measure.summarise(row)
        for m, measure in enumerate(self.measures.values()):
            together = measure.summarise_runs(values[:, m, order])
            if together is not None:
                answer[:, m] = together
        return answer

    def counts(self) -> npt.NDArray[np.int64]:
        """Runs × 3: the number of judged topics, of those that the run answers, and of those that it lacks."""
        answered = (self.retrieved > 0).sum(axis=1) + [len(self.absent.empty.get(run, [])) for run in self.runs]
        judged = np.full(len(self.runs), len(self.topics))
        return np.stack([judged, answered, judged - answered], axis=1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scores):
            return NotImplemented
        return (
            self.runs == other.runs
            and self.topics == other.topics
            and list(self.measures.items()) == list(other.measures.items())
            and self.conventions == other.conventions
            and np.array_equal(self.values, other.values, equal_nan=True)
            and np.array_equal(self.counted, other.counted)
        )

    __hash__ = None  # type: ignore[assignment]

    # in words

    def topic_in_words(self, topic: str, room: int = 40) -> str:
        """A topic for a sentence: its id, and its query if known."""
        return topic_in_words(topic, self.queries, room)

    def notes(self, shell: bool = False, missing: bool = True) -> list[str]:
        """What a reader should know about the data, one sentence each; `shell` hints name options.

        Without `missing`, the notes leave out topics that a run lacks, because the caller reports those.
        """
        absent = self.absent if missing else replace(self.absent, missing={})
        notes = absent.in_words(self.conventions, len(self.topics), shell)
        notes += [] if self.weights is None else self.weights.notes()
        least = getattr(self._origin[0], "relevant_from", None) if self._origin is not None else None
        if least is not None:
            notes.append(
                f"the collection defines grades of {least:g} or more as relevant; measures without rel use that "
                f"(change it with {'--rel 1' if shell else 'rel=1'})"
            )
        notes += [f"{names}: {words}" for words, names in _grouped(self.assumed.items()).items()]
        differences = ((name, words) for name, texts in self.differences.items() for words in texts)
        notes += [f"{names}: {words}" for words, names in _grouped(differences).items()]
        notes += self._on_sampled()
        alike = "" if self.weights is None else "unweighted "
        for (one, other), names in _grouped(self.reversals().items()).items():
            behind = f"{one} is ahead of {other} by the {alike}mean, behind by the {alike}geometric mean"
            notes.append(f"{names}: {behind}, which gives hard topics more weight")
        return notes

    def _on_sampled(self) -> list[str]:
        """Report the values that are means over a sample of the orders of ties; `sampled` holds their standard errors."""
        errors = {name: error for name, error in self.sampled.items() if error.any()}
        if not errors:
            return []
        values = sum(int(np.count_nonzero(error)) for error in errors.values())
        worst = max(float(error.max()) for error in errors.values())
        how = f"{DRAWN} drawn with seed {SEED} where there are too many to try (standard error of a topic up to {worst:.4f})"
        some = "1 value" if values == 1 else f"{values} values"
        return [f"{', '.join(errors)}: means over the orders of ties; in {some} over {how}, otherwise over all orders"]

    def reversals(self) -> dict[str, tuple[str, str]]:
        """The variants of AP whose mean and geometric mean rank two runs differently, and the first two such runs.

        Only for AP is the geometric mean in use (GMAP); for RR or P@k it mostly counts zeros.
        """
        answer: dict[str, tuple[str, str]] = {}
        for m, (name, measure) in enumerate(self.measures.items()):
            if len(self.runs) > 1 and measure.name == "AP" and measure.aggregate == "mean" and name not in self.pooled:
                pair = _reversed_pair(self._aggregate(m, "mean"), self._aggregate(m, "gmean"))
                if pair is not None:
                    answer[name] = self.runs[pair[0]], self.runs[pair[1]]
        return answer

    def _aggregate(self, m: int, how: str) -> Floats:
        """One number per run by this aggregate, whatever the measure's own aggregate is; NaN if there is no topic."""
        rows = [row[mask & ~np.isnan(row)] for row, mask in zip(self.values[:, m], self.counted, strict=True)]
        return np.array([AGGREGATES[how](row) if len(row) else np.nan for row in rows])

    # output

    def rows(self) -> Iterator[Score]:
        """Rows of run, topic, measure and value; topics that do not count for a run are left out."""
        for r, run in enumerate(self.runs):
            for t, topic in enumerate(self.topics):
                if self.counted[r, t]:
                    for m, measure in enumerate(self.measures):
                        yield Score(run, topic, measure, float(self.values[r, m, t]))

    __iter__ = rows

    def __len__(self) -> int:
        return int(np.count_nonzero(self.counted)) * len(self.measures)

    def _row(self, i: int) -> Score:
        """The i-th of `rows`; frame libraries access rows by number."""
        if not -len(self) <= i < len(self):
            raise IndexError(f"no row {i}; there are {len(self)}")
        nth, m = divmod(i % len(self), len(self.measures))
        r, t = self._rows_in_mean[nth].tolist()
        return Score(self.runs[r], self.topics[t], list(self.measures)[m], float(self.values[r, m, t]))

    @cached_property
    def _rows_in_mean(self) -> npt.NDArray[np.intp]:
        return np.argwhere(self.counted)

    def to_columns(self) -> dict[str, list[Any]]:
        """The rows as columns run, topic, measure and value, for any frame library."""
        columns: list[list[Any]] = [list(column) for column in zip(*self.rows(), strict=True)] or [[], [], [], []]
        return dict(zip(("run", "topic", "measure", "value"), columns, strict=True))

    def to_pandas(self) -> Any:
        """The rows as a pandas frame: run, topic, measure, value."""
        return _library("pandas").DataFrame(self.to_columns())

    def to_polars(self) -> Any:
        """The rows as a Polars frame."""
        return _library("polars").DataFrame(self.to_columns(), schema_overrides={"value": _library("polars").Float64})

    def to_arrow(self) -> Any:
        """The rows as an Arrow table; an undefined value is null."""
        return _library("pyarrow").table(self)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        from cranfield.base.optional_packages import needed

        pa = needed("pyarrow", "scores.to_columns() works without Arrow; Arrow needs")
        columns = self.to_columns()
        value = np.array(columns.pop("value"), np.float64)
        arrays = [pa.array([legible(word) for word in column], pa.string()) for column in columns.values()]
        table = pa.table([*arrays, pa.array(value, pa.float64(), mask=np.isnan(value))], [*columns, "value"])
        return table.__arrow_c_stream__(requested_schema)

    def plain(self, how: Layout) -> dict[str, Any]:
        """The scores for JSON: measures, runs with their means (and topics), conventions. Undefined values are None.

        `exceptions` holds the conventions of single measures, if a preset makes any. `absent` is added if not empty.
        `mean_and_gmean_differ` names measures whose mean and geometric mean rank two runs differently, with the run
        that is ahead by the mean and the run that is ahead by the geometric mean.
        """
        runs = []
        for r, run in enumerate(self.runs):
            row: dict[str, Any] = {"run": run, "mean": self._named(self.summary[r], how)}
            if self.weights is not None:
                row["weighted_mean"] = self._named(self.weighted[r], how)
            if how.per_topic:
                topics = np.flatnonzero(self.counted[r]).tolist()
                row["topics"] = {self.topics[t]: self._named(self.values[r, :, t], how) for t in topics}
            runs.append(row)
        answer = {"measures": list(self.measures), "runs": runs, "conventions": self.conventions.to_dict()}
        if self.weights is not None:
            answer["weights"] = self.weights.plain(self.topics)
        if how.per_topic and self.queries:
            answer["queries"] = self.queries_of(self.topics)
        if self.exceptions:
            answer["exceptions"] = self.exceptions
        reversals = {name: list(pair) for name, pair in self.reversals().items()}
        if reversals:
            answer["mean_and_gmean_differ"] = reversals
        absent = self.absent.to_dict()
        return {**answer, "absent": absent} if absent else answer

    def queries_of(self, topics: Iterable[str]) -> dict[str, str]:
        """The queries of these topics, as far as they are known."""
        return {topic: self.queries[topic] for topic in topics if topic in self.queries}

    def _named(self, values: Floats, how: Layout) -> dict[str, float | None]:
        return dict(zip(self.measures, plain(values, how.digits), strict=True))

    def records(self, how: Layout) -> list[list[Cell | str]]:
        return [[*self._head(how)], *self._rows(how, total=False)]

    def to_trec(self, per_topic: bool = False, digits: int = 4) -> str:
        """The output format of trec_eval: one line per measure, topics in byte order, then `all`; `runid` is the name."""
        lines = []
        how = Layout(digits=digits, undefined="nan")
        order = sorted(range(len(self.topics)), key=self.topics.__getitem__) if per_topic else []
        for r, run in enumerate(self.runs):
            for t in order:
                if self.counted[r, t]:
                    lines += self._trec_lines(self.topics[t], self.values[r, :, t], how)
            lines.append(f"{'runid':<22}\tall\t{run}\n")
            lines += self._trec_lines("all", self.summary[r], how)
        return "".join(lines)

    def _trec_lines(self, topic: str, values: Floats, how: Layout) -> list[str]:
        pairs = zip(self.measures, self._texts(values, how), strict=True)
        return [f"{name:<22}\t{topic}\t{value}\n" for name, value in pairs]

    def content(self, how: Layout) -> list[Part]:
        return [self._table(how), Lines([] if self.usual and not how.states_defaults else self.basis(), dim=True)]

    @property
    def usual(self) -> bool:
        """Whether the default conventions hold for every measure."""
        return self.conventions == Conventions() and not self.exceptions and not self.external and self.weights is None

    @property
    def informative_topics(self) -> int:
        """The number of topics with a relevant document: on the others, every run scores the same."""
        return len(self.topics) if self.relevant is None else int((self.relevant > 0).sum())

    def judgments_in_words(self) -> str:
        """The number of topics and judgments behind the scores.

        >>> from cranfield import evaluate
        >>> evaluate({"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 0}}, {"q1": {"d1": 1}}, "RR").judgments_in_words()
        '2 topics, 1 without a relevant document, and 3 judgments'
        """
        topics = counted(len(self.topics), "topic")
        if self.judged is None:
            return topics
        barren = len(self.topics) - self.informative_topics
        without = f", {barren:,} without a relevant document," if barren else ""
        return f"{topics}{without} and {counted(int(self.judged.sum()), 'judgment')}"

    def basis(self) -> list[str]:
        exceptions = _grouped((name, answers_in_words(changes)) for name, changes in self.exceptions.items())
        own = [f"{names}: {answers}" for answers, names in exceptions.items()]
        weighed = [] if self.weights is None else [self.weights.in_words(self.topics)]
        judged = [] if self.judged is None else [f"scored on {self.judgments_in_words()}"]
        return [*weighed, *judged, "; ".join([f"conventions: {conventions_in_words(self.conventions)}", *own])]

    def _table(self, how: Layout) -> Table:
        title = "Values of topics, and of all together" if how.per_topic else "Means over topics"
        head = self._head(how)
        spare = [] if how.per_topic or how.verbose else [head.index(name) for name in SPARE]
        with_queries = bool(how.per_topic and self.queries)
        table = Table(head, list(self._rows(how)), 1 + how.per_topic + with_queries, title=title, spare=spare)
        return fitted(table, 2, how.limit) if with_queries and how.medium == "text" else table

    def _head(self, how: Layout) -> list[str]:
        if how.per_topic:
            return ["run", "topic", *(["query"] if self.queries else []), *self.measures]
        by = [] if self.weights is None else [self.weighted_name(name) for name in self.measures]
        return ["run", *map(self.unweighted_name, self.measures), *by, *COUNTS]

    def weighted_name(self, name: str) -> str:
        """The heading of a measure's weighted mean: nDCG@10 by traffic."""
        return name if self.weights is None else f"{name} by {self.weights.by}"

    def unweighted_name(self, name: str) -> str:
        """The heading of a measure's plain mean; it says "unweighted" if there are weights."""
        return name if self.weights is None else f"{name} unweighted"

    def _rows(self, how: Layout, total: bool = True) -> Iterator[list[Cell | str]]:
        """One row per run; or one row per run and topic, and with `total` a row for all topics."""
        if not how.per_topic:
            for run, means, best, counts in zip(self.runs, self.summary, self._best(), self.counts(), strict=True):
                texts = self._texts(means, how)
                cells = [Cell(*cell) for cell in zip(texts, means.tolist(), best.tolist(), strict=True)]
                if self.weights is not None:
                    cells += [how.cell(mean) for mean in self.weighted[self._run(run)].tolist()]
                yield [run, *cells, *(Cell(str(count), count) for count in counts.tolist())]
            return
        for r, run in enumerate(self.runs):
            for t in np.flatnonzero(self.counted[r]).tolist():
                query = [self.queries.get(self.topics[t], "")] if self.queries else []
                yield [run, self.topics[t], *query, *self._texts(self.values[r, :, t], how)]
            if total:
                query = [""] if self.queries else []
                alike = "all" if self.weights is None else "all unweighted"
                yield [run, alike, *query, *self._texts(self.summary[r], how)]
                if self.weights is not None:
                    numbers = map(how.number, self.weighted[r].tolist())
                    yield [run, f"all by {self.weights.by}", *query, *numbers]

    def _texts(self, values: Floats, how: Layout) -> list[str]:
        """One text per measure; counts are whole numbers."""
        pairs = zip(values.tolist(), self.measures.values(), strict=True)
        return [
            str(int(value)) if measure.aggregate == "sum" and value.is_integer() else how.number(value)
            for value, measure in pairs
        ]

    def _best(self) -> npt.NDArray[np.bool_]:
        """Runs × measures: whether a mean is the best of several runs."""
        upwards = self.summary * self._upwards
        means = [measure.aggregate != "sum" and len(self.runs) > 1 for measure in self.measures.values()]
        best: npt.NDArray[np.bool_] = (upwards == np.fmax.reduce(upwards, axis=0)) & (upwards != 0) & means
        return best

    @property
    def _upwards(self) -> Floats:
        """One number per measure: 1 if higher is better, -1 if lower is better."""
        return np.array([-1.0 if measure.lower_is_better else 1.0 for measure in self.measures.values()])

    def __repr__(self) -> str:
        return f"{text([self._table(Layout(digits=4))])}\nconventions: {nearest_preset(self.conventions)}"


def topic_in_words(topic: str, queries: Mapping[str, str], room: int = 40) -> str:
    """A topic for a sentence: its id, and its query if known.

    >>> topic_in_words("101", {"101": "blossom end rot"}), topic_in_words("102", {})
    ("'101' (blossom end rot)", "'102'")
    """
    query = in_line(queries.get(topic, ""))
    return f"{topic!r} ({cut_end(query, room)})" if query else repr(topic)


Sequence.register(Scores)  # a sequence of rows; pandas would read any other object with __array__ as a table of numbers


def conventions_in_words(conventions: Conventions) -> str:
    """All conventions in one line, with the name of the preset if they are one.

    >>> from cranfield import Conventions
    >>> conventions_in_words(Conventions(missing="skip")).split(",")[2]
    ' missing=skip'
    """
    words = answers_in_words(conventions.to_dict())
    preset = next((name for name, preset in PRESETS.items() if preset == conventions), None)
    return f"{preset} ({words})" if preset else words


def answers_in_words(answers: Mapping[str, Any]) -> str:
    """Conventions as name=value, without those that are off."""
    return ", ".join(name if value is True else f"{name}={value}" for name, value in answers.items() if value)


def nearest_preset(conventions: Conventions) -> str:
    """The preset that is equal or closest to these conventions, and the differences.

    >>> from cranfield import Conventions
    >>> nearest_preset(Conventions(scores="single", missing="skip", unjudged="drop"))
    'trec_eval-9 with unjudged=drop'
    """
    answers = conventions.to_dict().items()
    changes = {
        name: [f"{key}={value}" for key, value in answers if getattr(preset, key) != value]
        for name, preset in PRESETS.items()
    }
    name = min(changes, key=lambda name: len(changes[name]))
    return f"{name} with {', '.join(changes[name])}" if changes[name] else name


def _grouped(pairs: Iterable[tuple[str, T]]) -> dict[T, str]:
    """The names that belong to each value, joined by commas."""
    groups: dict[T, list[str]] = {}
    for name, value in pairs:
        groups.setdefault(value, []).append(name)
    return {value: ", ".join(names) for value, names in groups.items()}


def _reversed_pair(one: Floats, other: Floats) -> tuple[int, int] | None:
    """The first two positions that `one` and `other` order differently, the higher by `one` first; ties do not count."""
    order = np.argsort(-one, kind="stable")
    # ignore rounding errors
    apart = 1e-12 * max(np.nanmax(np.abs(one), initial=0), np.nanmax(np.abs(other), initial=0))
    ahead = one[order, None] - one[None, order] > apart
    pairs = np.argwhere(ahead & (other[None, order] - other[order, None] > apart))
    return (int(order[pairs[0][0]]), int(order[pairs[0][1]])) if len(pairs) else None


def _refuse_table(tables: Mapping[str, Floats], runs: Sequence[str] | None, topics: Sequence[str] | None) -> None:
    """Raise DataError for a table that is not topics × runs or does not fit the names."""
    if not tables:
        raise DataError("no measure in the table of scores")
    shapes = {array.shape for array in tables.values()}
    shape = next(iter(shapes))
    if len(shapes) > 1 or len(shape) != 2 or 0 in shape:
        sizes = ", ".join(" × ".join(map(str, each)) for each in sorted(shapes))
        expected = "expected a table of topics × runs for each measure, all of one size"
        raise DataError(f"{expected}, found {sizes or 'one number'}")
    if any(np.isinf(array).any() for array in tables.values()):
        raise DataError("expected numbers, or NaN for a value that does not exist, found an infinite one")
    if any(np.nanmax(np.abs(array), initial=0) > LARGEST_SCORE for array in tables.values()):
        reason = "so that squares can be added up"
        raise DataError(f"expected scores of at most {LARGEST_SCORE:g}, {reason}; found a larger one")
    for what, names, size in (("run", runs, shape[1]), ("topic", topics, shape[0])):
        if names is not None and len(names) != size:
            raise DataError(f"expected a name for each of {size} {what}s, found {len(names)}")
        if names is not None and len(set(names)) != size:
            twice = next(name for name in names if list(names).count(name) > 1)
            raise DataError(f"expected each {what} once in the table of scores, found {twice!r} twice")


def _position(what: str, name: Any, names: list[str]) -> int:
    if name is None and len(names) == 1:
        return 0
    if name not in names:
        problem = f"no {what} {name!r}" if name is not None else f"which {what}?"
        raise DataError(f"{problem}; there are {listed(names, most=20)}")
    return names.index(name)


def _library(name: str) -> Any:
    """Import a frame library, which is not a dependency of cranfield."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(f"{name} is not installed: pip install {name}, or use scores.to_columns()") from None

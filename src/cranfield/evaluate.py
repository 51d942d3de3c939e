"""Runs × qrels × measures → Scores.

Judgments are indexed once; each run is then one pass over its bytes. `Evaluator` keeps the index for
many runs (a training loop, a leaderboard), `evaluate` is the one call for everything else. A run is
opened by the thread that scores it and let go afterwards, so a hundred large files cost no more
memory than the few in work.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Unpack

import numpy as np

from cranfield.absent import Absent
from cranfield.conventions import Changes
from cranfield.conventions import conventions as conventions_of
from cranfield.doubts import (
    Meeting,
    beyond_scale,
    digits_that_decide,
    in_single,
    little_judged,
    looks_like_grades,
    looks_like_scores,
    misfits,
    moved_by_single,
    swapped,
    swing,
    ties_that_decide,
    upside_down,
    warn,
    without_zero,
)
from cranfield.errors import ConventionError, DataError, TopicError
from cranfield.formats import as_qrels, as_runs
from cranfield.formats.by_text import qrels_by_id, run_by_id
from cranfield.formats.streams import is_source
from cranfield.hearing import tell_used
from cranfield.hits import Judgments, join
from cranfield.kernels import processors
from cranfield.measures import Measure
from cranfield.measures import measures as measures_of
from cranfield.measures.measure import AGGREGATES, aggregated, needs_of, takes_topics_alone
from cranfield.orders import Mean, mean_over_orders
from cranfield.parameters import refuse_below
from cranfield.run import Run
from cranfield.scores import Scores
from cranfield.weights import as_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from cranfield.collection import Extras, Qrels
    from cranfield.conventions import Conventions
    from cranfield.findings import Finding
    from cranfield.formats.format import Fields
    from cranfield.hits import Hits
    from cranfield.kernels import Found
    from cranfield.kernels.table import Floats, Ints

    Progress = Callable[[int, int | None], None]  # (runs done, runs in all if known)

Named = TypeVar("Named", "Qrels", Run)
NO_QUERIES: Mapping[str, str] = {}


# for type checkers: what functions that score first pass on to Evaluator, less what they take themselves


class BasicOptions(Changes, total=False):
    """Options of `Evaluator` and single conventions, all but `rel`, `conventions`, `extras`, `baseline` and `weights`."""

    topics: Iterable[str] | None
    threads: int | None
    lenient: bool
    qrels_format: str | None
    run_format: str | None
    fields: Fields | None
    delimiter: str | None
    encoding: str | None
    decimal: str | None
    grades: Mapping[float, float] | str | None
    ignore_case: bool
    aggregate: str | None
    warn: bool
    queries: Mapping[str, str] | None


class OptionsWithoutRel(BasicOptions, total=False):
    """All options of `Evaluator` but `rel`."""

    conventions: Conventions | str | Mapping[str, Any] | None
    extras: Extras | None
    baseline: Any
    weights: Mapping[str, float] | str | None


class OptionsWithoutBaseline(BasicOptions, total=False):
    """All options of `Evaluator` but `baseline`."""

    rel: float | None
    conventions: Conventions | str | Mapping[str, Any] | None
    extras: Extras | None
    weights: Mapping[str, float] | str | None


class OptionsWithoutWeights(BasicOptions, total=False):
    """All options of `Evaluator` but `weights`."""

    rel: float | None
    conventions: Conventions | str | Mapping[str, Any] | None
    extras: Extras | None
    baseline: Any


class EvaluatorOptions(OptionsWithoutWeights, total=False):
    """What `Evaluator` takes by name, single conventions among it."""

    weights: Mapping[str, float] | str | None


def evaluate(
    qrels: Any,
    runs: Any,
    measures: str | Measure | Iterable[str | Measure],
    *,
    rel: float | None = None,
    topics: Iterable[str] | None = None,
    conventions: Conventions | str | Mapping[str, Any] | None = None,
    threads: int | None = None,
    lenient: bool = False,
    fields: Fields | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    grades: Mapping[float, float] | str | None = None,
    ignore_case: bool = False,
    extras: Extras | None = None,
    aggregate: str | None = None,
    baseline: Any = None,
    warn: bool = True,
    queries: Mapping[str, str] | None = None,
    weights: Mapping[str, float] | str | None = None,
    **changes: Unpack[Changes],
) -> Scores:
    """Score one run or several against judgments.

    `qrels` and each run may be a path, a mapping `{topic: {document: value}}`, a frame (pandas, Polars, pyarrow,
    DuckDB) or a `Qrels` / `Run`, also ranx's; a run may be ranked lists `{topic: [document, …]}`, qrels may be sets of
    relevant documents `{topic: {document, …}}`. Several runs are a list, a generator, or a mapping of names to any of
    these. `rel` is the lowest relevant grade of measures that do not say so themselves, `topics` a subset to evaluate.
    Single conventions can be given by name:
    `evaluate(qrels, run, "AP", missing="skip")`. `lenient` skips and counts malformed lines. `fields`
    says what columns are called: {"topic": "search", "document": "sku"}. `delimiter`, `encoding` and `decimal` say how
    tables are written where detection refuses to guess. `grades` says what each grade counts as: {1: 0, 2: 0, 3: 1}.
    `duplicates="last"` (first, best) says which line counts, of judgments too. `baseline` is the run that measures of
    risk compare with.
    `aggregate` (mean, gmean, median, min, max, hmean) makes one number of all topics where a measure would take their
    mean; `gmean(AP)` as a measure does it for one. `queries` is what each topic asks, shown beside its id; judgments and
    runs that name topics by that text are joined, whatever its case if `ignore_case`.
    A `DataWarning` says what could make the scores meaningless: swapped arguments, upside-down scores, ids or topics that
    do not match, few judged documents, odd grades, ties or digits that decide (docs/check.md). `warn=False` does not look.
    `weights` say how much each topic counts, a mapping, or a column's name where `qrels` name a collection: means by
    weights then stand beside the others (`scores.weighted_mean("AP")`); a weight of 0 leaves the topic out.

    >>> scores = evaluate({"q1": {"d1": 1}}, {"q1": {"d1": 0.5, "d2": 0.9}}, "RR nDCG@10")
    >>> scores.mean("RR")
    0.5
    """
    evaluator = Evaluator(
        qrels,
        measures,
        rel=rel,
        topics=topics,
        conventions=conventions,
        threads=threads,
        lenient=lenient,
        fields=fields,
        delimiter=delimiter,
        encoding=encoding,
        decimal=decimal,
        grades=grades,
        ignore_case=ignore_case,
        extras=extras,
        aggregate=aggregate,
        baseline=baseline,
        warn=warn,
        queries=queries,
        weights=weights,
        **changes,
    )
    return evaluator.evaluate(runs)


class Evaluator:
    """Judgments indexed once, ready to score any number of runs. Takes what `evaluate` takes, less the runs.

    >>> evaluator = Evaluator({"q1": {"d1": 1}}, "RR")
    >>> [float(evaluator.evaluate(run)) for run in ({"q1": {"d1": 1}}, {"q1": {"d1": 1, "d2": 2}})]
    [1.0, 0.5]
    """

    def __init__(
        self,
        qrels: Any,
        measures: str | Measure | Iterable[str | Measure],
        *,
        rel: float | None = None,
        topics: Iterable[str] | None = None,
        conventions: Conventions | str | Mapping[str, Any] | None = None,
        threads: int | None = None,
        lenient: bool = False,
        qrels_format: str | None = None,
        run_format: str | None = None,
        fields: Fields | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        grades: Mapping[float, float] | str | None = None,
        ignore_case: bool = False,
        extras: Extras | None = None,
        aggregate: str | None = None,
        baseline: Any = None,
        warn: bool = True,
        queries: Mapping[str, str] | None = None,
        weights: Mapping[str, float] | str | None = None,
        **changes: Unpack[Changes],
    ) -> None:
        self.conventions = conventions_of(conventions, **changes)
        self.exceptions: dict[Measure, dict[str, Any]] = {}  # conventions of single measures
        self.threads = _threads(threads)
        self.lenient, self.run_format, self.fields = lenient, run_format, fields
        self.queries: Mapping[str, str] = NO_QUERIES if queries is None else queries
        self.by_text: dict[str, int] = {}  # judgments and runs that name topics by what they ask, and how many
        self.dialect = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
        duplicates = changes.get("duplicates", "error")  # a preset's rule is one of runs
        said = {**self.dialect, "duplicates": duplicates, "grades": grades}
        self.ignore_case = ignore_case
        self.qrels: Qrels = self._by_id(
            as_qrels(qrels, qrels_format, lenient, fields, **said),
            lambda judged, asked: qrels_by_id(judged, asked, ignore_case, duplicates),
        )
        if not len(self.qrels):
            raise DataError(f"{self.qrels.name}: no judgments")
        self.relevant_from = None if rel is not None else self.qrels.relevant_from  # as the collection says
        preset = conventions if isinstance(conventions, str) else ""
        named = measures_of(measures, self.relevant_from if rel is None else rel, preset)
        self.measures = _aggregated(named, aggregate)
        self.judgments = Judgments.of(self.qrels, self.conventions.negative, extras)
        highest = float(self.judgments.grade.max(initial=0))
        self.preset = preset
        if preset:
            from cranfield.peers import as_peer, exceptions

            self.measures = as_peer(preset, self.measures, highest)
            self.exceptions = exceptions(preset, self.measures, changes)
        assumed = {name: measure.assumed(highest) for name, measure in self.measures.items()}
        self.assumed = {name: words for name, words in assumed.items() if words}
        if baseline is not None:
            self.judgments.extras = replace(self.judgments.extras, baseline=self._baseline(baseline))
        for name, measure in self.measures.items():
            _refuse_unprovided(name, measure, self.judgments)
        self.wanted, self.not_judged = _subset(self.qrels, topics, lenient)
        self.warns, self.warns_of_ties = warn, warn and self.conventions.ties != "averaged"
        self.takes_every_grade = rel is None and any(m.values.get("rel", 1) <= 1 for m in self.measures.values())
        self.may_be_swapped = warn and looks_like_scores(self.qrels, qrels)
        self.asked = list(self.measures)  # what is put beside these later on is not warned of
        self.weights = None if weights is None else as_weights(weights, qrels).fitted(self._named(self.wanted))
        self._leave_out()

    def _leave_out(self) -> None:
        """Topics of weight 0 do not count."""
        if self.weights is not None and self.weights.left_out:
            kept = self.weights.values
            self.wanted = self.wanted & np.array([topic in kept for topic in self.qrels.topics], np.bool_)

    def _baseline(self, run: Any) -> Hits:
        """The run to compare with, seen through the judgments under the same conventions as the others."""
        runs = self.open(run)
        if len(runs) != 1:
            raise DataError(f"expected one run as the baseline, found {len(runs)}")
        return self.hits(runs[0])

    def hits(self, run: Any, measure: Measure | None = None) -> Hits:
        """One run seen through the judgments; as this measure sees it, where a preset makes exceptions."""
        [only] = [run] if isinstance(run, Run) else self.open(run)
        return self._joined(only, self.threads, self.conventions_for(measure))[1]

    def conventions_for(self, measure: Measure | None) -> Conventions:
        """The conventions under which a measure is computed: those of all, but for a preset's exceptions."""
        changes = None if measure is None or not self.exceptions else self.exceptions.get(measure)
        return replace(self.conventions, **changes) if changes else self.conventions

    def in_order_given(self, measures: Iterable[Measure]) -> None:
        """Leave some measures out of what is averaged over the orders of ties."""
        if self.conventions.ties == "averaged":
            self.exceptions = {**self.exceptions, **{measure: {"ties": "input-order"} for measure in measures}}

    def _joined(self, run: Run, threads: int, conventions: Conventions) -> tuple[Found, Hits]:
        found = run.hits(self.qrels.index, conventions.order, threads)
        return found, join(found, self.judgments.under(conventions.negative), conventions, run)

    def evaluate(self, runs: Any, progress: Progress | None = None) -> Scores:
        """Score one run or several; `progress` is told after each how many are done, of how many if that is known."""
        scored: dict[int, list[tuple[_Row, Any, int]]] = {}  # and what to open again for an explanation
        passing = isinstance(runs, Iterator) or hasattr(runs, "read")  # runs that come in a stream are let go

        def work(i: int, item: Any, threads: int) -> None:
            named = item.values() if isinstance(item, Mapping) else []
            named_once = any(isinstance(value, str) and value == "-" for value in named)  # standard input
            once = named_once or (passing and not isinstance(item, (str, os.PathLike)))
            runs = enumerate(self.open(item))
            scored[i] = [(self._row(run, threads, number), None if once else item, place) for place, run in runs]

        items = self._items(runs)
        number = len(items) if isinstance(items, list) else 1
        _spread(work, items, self.threads, progress)
        every = [each for i in sorted(scored) for each in scored[i]]
        rows = [row for row, _, _ in every]
        scores = self._scores(rows)
        if self.warns:
            self._warn(scores, rows)
        named = isinstance(runs, (str, os.PathLike))  # a file, or a pattern of files, is not kept open
        scores.remember(self, [(runs, n) if named else (item, place) for n, (_, item, place) in enumerate(every)])
        return scores

    def _warn(self, scores: Scores, rows: list[_Row]) -> None:
        """Say what could make the scores meaningless."""
        findings = [finding for row in rows for finding in row.doubts]
        if self.may_be_swapped and any(finding.code == "swapped-arguments" for finding in findings):
            warn(findings)
            return  # nothing else can be said
        findings += self._odd_grades
        asked = {name: self.measures[name] for name in self.asked}
        findings += beyond_scale(asked, float(self.judgments.grade.max(initial=0)), self.qrels.name)
        kept: Any = slice(None) if self.wanted.all() else self.wanted
        swings = [None if row.swing is None else row.swing[:, :, kept] for row in rows]
        findings += ties_that_decide(scores, swings, self.asked)
        moves = [None if row.single is None else row.single[:, kept] for row in rows]
        warn([*findings, *digits_that_decide(scores, moves, self.asked)])

    def warn_of(self, *runs: Run) -> None:
        """Say what is odd about runs and judgments, for an operation that does not score them by `evaluate`."""
        if self.warns:
            findings = [self._doubts(run, *self._joined(run, self.threads, self.conventions)) for run in runs]
            warn([*chain.from_iterable(findings), *self._odd_grades])

    @cached_property
    def _odd_grades(self) -> list[Finding]:
        """Judgments by which every document is relevant, where nobody said from which grade on."""
        said = self.qrels.explained or self.relevant_from is not None
        unsaid = self.takes_every_grade and not said and not self.may_be_swapped
        return list(without_zero(self.qrels.grade, self.qrels.name)) if unsaid else []

    def _doubts(self, run: Run, found: Found, hits: Hits) -> list[Finding]:
        """What could make the scores of one run meaningless."""
        if self.may_be_swapped and looks_like_grades(run):
            return [swapped(run, self.qrels)]
        met = Meeting.of(found, self.judgments)
        findings = [*misfits(run, self.qrels, met), *upside_down(run, hits)]
        if not findings:  # which would explain it
            findings += little_judged(run, hits, self.wanted, self._lowest_rel)
        return findings

    def misfits(self, run: Run) -> list[Finding]:
        """Ids and topics of a run that do not match the judgments."""
        found = run.hits(self.qrels.index, self.conventions.order, self.threads)
        return list(misfits(run, self.qrels, Meeting.of(found, self.judgments)))

    def _items(self, runs: Any) -> list[Any] | Iterator[Any]:
        """The runs one by one, files among them still closed."""
        if isinstance(runs, (list, tuple)) and all(isinstance(run, (str, os.PathLike, Run)) for run in runs):
            return list(runs)
        if isinstance(runs, Mapping) and all(isinstance(run, (str, os.PathLike)) for run in runs.values()):
            return [{name: run} for name, run in runs.items()]
        if isinstance(runs, Iterator) and not is_source(runs) and not hasattr(runs, "__arrow_c_stream__"):
            from cranfield.formats.named import is_row

            first = list(islice(runs, 1))
            rest = chain(first, runs)
            return rest if not (first and is_row(first[0])) else self.open(rest)
        return self.open(runs)

    def open(self, runs: Any) -> list[Run]:
        """The runs that were given, files among them opened, ordered by their rank column where conventions say so."""
        opened = as_runs(runs, self.run_format, self.lenient, self.fields, **self.dialect)
        return [self.conventions.ordered(self.with_ids(run)) for run in opened]

    def with_ids(self, run: Run) -> Run:
        """A run by the ids of its topics, where it goes by what they ask and that is known."""
        return self._by_id(run, lambda one, asked: run_by_id(one, asked, self.ignore_case))

    def _by_id(self, given: Named, join: Callable[[Named, Mapping[str, str]], Named | None]) -> Named:
        """Judgments or a run by the ids of their topics, where they go by what is asked."""
        joined = None if self.queries is NO_QUERIES else join(given, self.queries)
        if joined is None:
            return given
        self.by_text[given.name] = len(given.topics)
        return joined

    def _row(self, run: Run, threads: int, runs: int) -> _Row:
        found, hits = self._joined(run, threads, self.conventions)
        empty = run.empty_answers(self.qrels.topics, found.retrieved, self.conventions.order)
        lacking = (found.retrieved == 0) & ~empty & self.wanted
        if self.conventions.missing == "error" and lacking.any():
            topic = self.qrels.topics[int(np.argmax(lacking))]
            hint = 'use missing="zero" to score it 0 or missing="skip" to leave it out'
            raise TopicError(f"topic {topic!r} is judged but missing from {run.name} ({hint})")
        views: dict[Conventions, Hits] = {}  # of measures under conventions of their own
        values = np.empty((len(self.measures), hits.size))
        pooled, errors = {}, {}
        for i, (name, measure) in enumerate(self.measures.items()):
            own = self.conventions_for(measure)
            seen = hits if own is self.conventions else views.get(own)
            if seen is None:
                seen = views[own] = self._joined(run, threads, own)[1]
            if own.ties == "averaged":
                values[i], errors[name] = self.mean_of(measure, seen)
            else:
                values[i] = measure(seen)
            parts = measure.pooled(seen)
            if parts is not None:
                above, below = parts
                if own.ties == "averaged":  # what stands below the line is the same in every order
                    above = np.where(below > 0, values[i] * below, above)
                pooled[name] = np.stack([above, below])
        tag = None if hasattr(run.source, "keys") else run.tag
        skipped = found.skipped or getattr(run.source, "skipped", [])  # read by the kernel now, or by a format before
        sampled = {name: error for name, error in errors.items() if error.any()}
        doubts = self._doubts(run, found, hits) if self.warns else []
        swung = self._swing(hits, values, runs) if self.warns_of_ties else None
        single = self._single(found, run, values) if self.warns_of_ties else None
        tied = bool((found.first < found.last).any())
        counts = found.retrieved, empty, tied, found.others, len(skipped)
        return _Row(run.name, tag, values, *counts, pooled, sampled, doubts, swung, single)

    def _swing(self, hits: Hits, values: Floats, runs: int = 1) -> Floats | None:
        """How far ties can move each value; those of measures that see what is not moved, or in their own way, stay."""
        return swing(self._free(), hits, values, runs)

    def _single(self, found: Found, run: Run, values: Floats) -> Floats | None:
        """By how much each value would move if scores were compared in single precision; None where none would."""
        other = in_single(found)
        if other is None:
            return None
        hits = join(other, self.judgments.under(self.conventions.negative), self.conventions, run)
        return moved_by_single(self._free(), hits, values)

    def _free(self) -> list[Measure | None]:
        """The measures that were asked for and see nothing but ranks and grades of judged documents; None for the others."""
        every = self.measures.items()
        return [
            m if name in self.asked and m not in self.exceptions and not self.sees(m) - MOVED else None
            for name, m in every
        ]

    def values_of(self, measure: Measure, hits: Hits) -> Floats:
        """A measure's value for each topic; the mean over the orders of ties where the conventions ask for that."""
        return self.mean_of(measure, hits).value

    def mean_of(self, measure: Measure, hits: Hits) -> Mean:
        """The same with standard errors, above 0 where orders of ties were drawn because there are too many."""
        exact = np.zeros(hits.size)
        if self.conventions_for(measure).ties != "averaged":
            return Mean(measure(hits), exact)
        condensed = hits.condensed() if measure.judged_only else hits
        with measure.within_doubles(hits.judgments):
            expected = measure.expected(condensed)
            if expected is not None:
                return Mean(expected, exact)
            if (condensed.tied_to == condensed.tied_from).all():
                return Mean(measure(hits), exact)
            self._refuse_unmoved(measure)
            return mean_over_orders(measure.score, condensed, bool(self.sees(measure) - PLAIN))

    def sees(self, measure: Measure) -> set[str]:
        """What a measure must know of a document beyond its rank and grade: names of `NEEDS`."""
        costs = {"costs"} if self.judgments.extras.costs is not None and "cost" in measure.parameters else set()
        return needs_of(measure) | costs

    def _refuse_unmoved(self, measure: Measure) -> None:
        """Stop where a measure sees documents that are not moved when ties are put in another order."""
        unmoved = self.sees(measure) - MOVED
        if unmoved:
            seen = f"it sees the {', '.join(sorted(unmoved))} of unjudged documents too, and only judged ones are moved"
            raise ConventionError(f"ties=averaged: {measure}: {seen}; choose another rule, such as ties=input-order")

    def _scores(self, rows: list[_Row]) -> Scores:
        if not rows:
            raise DataError("no run given")
        names = distinct([row.name for row in rows])
        retrieved = np.stack([row.retrieved for row in rows])
        barren = self._barren()
        values = np.stack([row.values for row in rows])
        counted = self._leave_uncounted(values, (retrieved > 0) | np.stack([row.empty for row in rows]), barren)
        kept: Any = slice(None) if self.wanted.all() else self.wanted
        return Scores(
            runs=names,
            tags=[row.tag for row in rows],
            measures=self.measures,
            topics=self._named(self.wanted),
            values=values[:, :, kept],
            counted=counted[:, kept],
            retrieved=retrieved[:, kept],
            absent=self._absent(names, rows, barren),
            conventions=self.conventions,
            exceptions={name: self.exceptions[m] for name, m in self.measures.items() if m in self.exceptions},
            assumed=self.assumed,
            differences=self._differences(rows, barren),
            sampled=_stacked(rows, kept),
            pooled={name: np.stack([row.pooled[name] for row in rows])[:, :, kept] for name in rows[0].pooled},
            queries=self.queries,
            weights=self.weights,
        )

    def _differences(self, rows: list[_Row], barren: npt.NDArray[np.bool_]) -> dict[str, list[str]]:
        """Measures whose number is not, or need not be, that of the preset's program, and why."""
        if not self.preset:
            return {}
        from cranfield.peers import EMPTY, NEGATIVE, NO_RELEVANT, STRANGE_TOPICS, TIES, differences

        facts = {
            TIES: any(row.tied for row in rows),
            STRANGE_TOPICS: any(row.others for row in rows),
            NO_RELEVANT: bool((barren & self.wanted).any()),
            EMPTY: any(row.empty.any() for row in rows),
            NEGATIVE: bool((self.qrels.grade < 0).any()),
        }
        return differences(self.preset, self.measures, {fact for fact, holds in facts.items() if holds})

    def _leave_uncounted(
        self, values: Floats, answered: npt.NDArray[np.bool_], barren: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Make NaN of what each measure's conventions leave out; runs × topics: whether any measure counts the topic."""
        counted = np.zeros(answered.shape, np.bool_)
        for m, measure in enumerate(self.measures.values()):
            own = self.conventions_for(measure)
            here = np.broadcast_to(self.wanted, answered.shape)
            here = here & answered if own.missing == "skip" else here
            here = here & ~barren if own.no_relevant == "skip" else here
            if not here.all():
                values[:, m][~here] = np.nan
            counted |= here
        return counted

    def _barren(self) -> npt.NDArray[np.bool_]:
        """The topics without a relevant document, at the lowest grade that any of the measures calls relevant."""
        barren: npt.NDArray[np.bool_] = self.judgments.relevant(self._lowest_rel) == 0
        return barren

    @property
    def _lowest_rel(self) -> float:
        """The lowest grade that any of the measures calls relevant."""
        return min((float(m.values["rel"]) for m in self.measures.values() if "rel" in m.values), default=1.0)

    @property
    def lists_nonrelevant(self) -> bool:
        """Whether documents were judged not to be relevant; else a document without a judgment says nothing."""
        return not self.judgments.only_relevant(self._lowest_rel)

    def _absent(self, names: list[str], rows: list[_Row], barren: npt.NDArray[np.bool_]) -> Absent:
        lacking = [self._named((row.retrieved == 0) & ~row.empty & self.wanted) for row in rows]
        empty = [self._named(row.empty & self.wanted) for row in rows]
        return Absent(
            missing={name: topics for name, topics in zip(names, lacking, strict=True) if topics},
            empty={name: topics for name, topics in zip(names, empty, strict=True) if topics},
            unjudged={name: row.others for name, row in zip(names, rows, strict=True) if row.others},
            no_relevant=self._named(barren & self.wanted),
            skipped={name: row.skipped for name, row in zip(names, rows, strict=True) if row.skipped},
            skipped_qrels=len(self.qrels.skipped),
            not_judged=self.not_judged,
            by_text={name: self.by_text[name] for name in [self.qrels.name, *names] if name in self.by_text},
        )

    def _named(self, mask: npt.NDArray[np.bool_]) -> list[str]:
        return [self.qrels.topics[i] for i in np.flatnonzero(mask).tolist()]


def _aggregated(measures: dict[str, Measure], aggregate: str | None) -> dict[str, Measure]:
    """The measures that take a mean with another aggregate, named for it; the others as they are."""
    if aggregate is None or aggregate == "mean":
        return measures
    if aggregate not in AGGREGATES:
        choices = ", ".join(name for name in AGGREGATES if name != "sum")
        raise ConventionError(f"aggregate must be one of {choices}, got {aggregate!r}")
    answer: dict[str, Measure] = {}
    for name, measure in measures.items():
        if measure.aggregate == "mean" and takes_topics_alone(measure):
            answer[f"{aggregate}({name})"] = aggregated(measure, aggregate)
        else:
            answer[name] = measure
    return answer


PLAIN = {"size"}  # what a measure may need and still see nothing of a document but its rank and grade
MOVED = PLAIN | {"labels", "probabilities", "baseline"}  # and still see judged documents only
NEEDS = {
    "labels": "judgments with subtopics in their second column",
    "size": "the number of documents in the collection (Extras(size=N))",
    "groups": "the groups that documents belong to (Extras(groups=…))",
    "aspect": "judgments of a second aspect (Extras(aspect=…))",
    "costs": "what each document costs to read (Extras(costs=…))",
    "probabilities": "the probabilities with which documents were sampled (qrels as prels or strata: cranfield formats)",
    "preferences": "preference judgments (Extras(preferences=…))",
    "baseline": "a run to compare with (baseline=…)",
}


def _refuse_unprovided(name: str, measure: Measure, judgments: Judgments) -> None:
    """Stop if a measure needs to know more than is known."""
    for need in measure.needs:
        known = len(judgments.qrels.labels) or None if need == "labels" else getattr(judgments.extras, need)
        if known is None:
            raise DataError(f"{name} needs {NEEDS[need]}")
    for extra in (*measure.needs, *measure.may_use):
        tell_used("collection_size" if extra == "size" else extra)
    for inner in measure.values.values():  # URisk(of=alpha_nDCG@10) needs what alpha_nDCG@10 does
        if isinstance(inner, Measure):
            _refuse_unprovided(name, inner, judgments)


class _Row(NamedTuple):
    """What remains of a run once it is scored."""

    name: str
    tag: str | None
    values: Floats
    retrieved: Ints
    empty: npt.NDArray[np.bool_]  # topics answered with an empty list
    tied: bool  # whether a judged document is tied with another one
    others: list[str]
    skipped: int
    pooled: dict[str, Floats]  # measure → 2 × topics: above and below the line of a micro average
    sampled: dict[str, Floats]  # measure → topics: standard errors of means over drawn orders of ties
    doubts: list[Finding]  # what could make its scores meaningless
    swing: Floats | None  # 2 × measures × topics: how far ties can lower and raise values
    single: Floats | None  # measures × topics: by how much single precision would move values


def _stacked(rows: list[_Row], kept: Any) -> dict[str, Floats]:
    """Measure → runs × topics: the standard errors of means over drawn orders, 0 where a mean is exact."""
    names = dict.fromkeys(name for row in rows for name in row.sampled)
    nothing = np.zeros(len(rows[0].retrieved))
    return {name: np.stack([row.sampled.get(name, nothing) for row in rows])[:, kept] for name in names}


def _subset(qrels: Qrels, topics: Iterable[str] | None, lenient: bool) -> tuple[npt.NDArray[np.bool_], list[str]]:
    """Which judged topics are wanted, and which wanted ones are not judged (an error unless lenient)."""
    if topics is None:
        return np.ones(len(qrels.topics), bool), []
    wanted = dict.fromkeys([topics] if isinstance(topics, str) else topics)
    judged = set(qrels.topics)
    unknown = [topic for topic in wanted if topic not in judged]
    if not wanted:
        raise TopicError("no topic to evaluate: the list of topics is empty")
    if unknown and (not lenient or len(unknown) == len(wanted)):
        several = f"{len(unknown)} of the {len(wanted)} topics asked for are not"
        share = several if len(wanted) > 1 else "nothing to score"
        raise TopicError(f"topic {unknown[0]!r} is not judged in {qrels.name} ({share})")
    return np.array([topic in wanted for topic in qrels.topics]), unknown


def distinct(names: list[str]) -> list[str]:
    """The names with #2, #3 … behind those that were there before."""
    taken, answer = set(names), []
    seen: set[str] = set()
    for name in names:
        unique, n = name, 2
        while unique in seen or (unique != name and unique in taken):
            unique, n = f"{name}#{n}", n + 1
        seen.add(unique)
        answer.append(unique)
    return answer


def _threads(wanted: int | None) -> int:
    refuse_below(1, threads=wanted)
    return processors() if wanted is None else wanted


def _spread(
    work: Callable[[int, Any, int], None],
    items: list[Any] | Iterator[Any],
    threads: int,
    progress: Progress | None,
) -> None:
    """Do the work on each item: one by one with all threads where they are few, else several at a time with one each."""
    total = len(items) if isinstance(items, list) else None
    tell = progress or (lambda done, total: None)
    if threads == 1 or (total is not None and total < 2 * threads):
        for i, item in enumerate(items):
            work(i, item, threads)
            tell(i + 1, total)
        return
    import threading

    todo = enumerate(items)
    lock = threading.Lock()
    done = 0
    failed: dict[int, BaseException] = {}
    stop = False

    def worker() -> None:
        nonlocal done
        i = -1
        while not failed and not stop:
            try:
                with lock:  # a generator cannot be asked by two threads at once
                    i, item = next(todo, (-1, None))
                if i < 0:
                    return
                work(i, item, 1)
                with lock:
                    done += 1
                    tell(done, total)
            except BaseException as error:  # handed to the caller below
                failed[i] = error

    pool = [threading.Thread(target=worker, daemon=True) for _ in range(threads)]
    for thread in pool:
        thread.start()
    try:
        for thread in pool:
            thread.join()
    finally:
        stop = True  # Ctrl-C ends up here: the threads finish the run in hand and no other
    if failed:
        raise failed[min(failed)]  # the first in the order given, whichever thread was faster

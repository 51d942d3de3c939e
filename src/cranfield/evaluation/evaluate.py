"""Runs × qrels × measures → Scores.

Judgments are indexed once; each run is then one pass over its bytes. `Evaluator` keeps the index for many runs (a
training loop, a leaderboard); `evaluate` is the one call for everything else. The thread that scores a run opens and
closes it, so a hundred large files need no more memory than the few that are being scored.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Unpack

import numpy as np

from cranfield.base.conventions import conventions as conventions_of
from cranfield.base.errors import ConventionError, DataError, TopicError
from cranfield.base.kernels import processors
from cranfield.base.notifications import tell_progress, tell_used
from cranfield.base.parameters import refuse_below
from cranfield.base.run import Run
from cranfield.evaluation import sanity_checks
from cranfield.evaluation.hits import Judgments, join
from cranfield.evaluation.measures import Measure
from cranfield.evaluation.measures import measures as measures_of
from cranfield.evaluation.measures.definition import AGGREGATES, aggregated, is_mean, needs_of
from cranfield.evaluation.scores import Scores
from cranfield.evaluation.tie_orders import MeanOverOrders, mean_over_orders
from cranfield.evaluation.topics import Absent, as_weights, queries_in
from cranfield.formats import as_qrels, as_runs
from cranfield.formats.streams import is_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from cranfield.base.conventions import ConventionChanges, Conventions
    from cranfield.base.findings import Finding
    from cranfield.base.kernels import HitRows
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.base.qrels import Duplicates, Extras, Qrels
    from cranfield.evaluation.hits import Hits
    from cranfield.evaluation.options import EvaluatorOptions
    from cranfield.evaluation.topics import TopicWeights
    from cranfield.formats.format import Fields

    Progress = Callable[[int, int | None], None]  # (runs done, runs in all if known)

Named = TypeVar("Named", "Qrels", Run)
T = TypeVar("T")
NO_QUERIES: Mapping[str, str] = {}


def evaluate(
    qrels: Any, runs: Any, measures: str | Measure | Iterable[str | Measure], **options: Unpack[EvaluatorOptions]
) -> Scores:
    """Score one run or several against judgments.

    `qrels` and each run may be a path, a mapping `{topic: {document: value}}`, a frame (pandas, Polars, pyarrow,
    DuckDB) or a `Qrels` / `Run`, also ranx's; a run may be ranked lists `{topic: [document, …]}`, qrels may be sets of
    relevant documents `{topic: {document, …}}`. Pass several runs as a list, a generator, or a mapping of names to any
    of these.

    `rel` is the lowest relevant grade for measures that do not name one; `topics` is a subset to evaluate. Pass single
    conventions by name: `evaluate(qrels, run, "AP", missing="skip")`. `lenient` skips and counts malformed lines.
    `fields` gives the names of columns: {"topic": "search", "document": "sku"}. `delimiter`, `encoding` and `decimal`
    describe tables that detection cannot guess. `grades` maps grades to others: {1: 0, 2: 0, 3: 1}.
    `duplicates="last"` (first, best) decides which of several lines counts, in judgments too. `baseline` is the run
    that measures of risk compare with. `aggregate` (mean, gmean, median, min, max, hmean) replaces the mean over
    topics; the measure `gmean(AP)` does so for one measure.

    `queries` maps topics to their queries, which are shown next to the ids. Judgments and runs that name topics by
    their queries are joined with the ids; `ignore_case` ignores case there. `weights` give the weight of each topic: a
    mapping, or the name of a column where `qrels` is a collection. Weighted means are then added to the others
    (`scores.weighted_mean("AP")`); a weight of 0 leaves the topic out. `DesignWeights` of topics that were sampled from
    a query log make these means describe the traffic of all queries that could be drawn.

    A `DataWarning` reports what could make the scores meaningless: swapped arguments, upside-down scores, ids or topics
    that do not match, few judged documents, odd grades, ties or digits that decide (docs/check.md). `warn=False`
    switches these checks off.

    >>> scores = evaluate({"q1": {"d1": 1}}, {"q1": {"d1": 0.5, "d2": 0.9}}, "RR nDCG@10")
    >>> scores.mean("RR")
    0.5
    """
    return Evaluator(qrels, measures, **options).evaluate(runs)


class Evaluator:
    """Judgments indexed once, ready to score any number of runs. Takes the arguments of `evaluate` except the runs.

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
        weights: Mapping[str, float] | TopicWeights | str | None = None,
        **changes: Unpack[ConventionChanges],
    ) -> None:
        self.conventions = conventions_of(conventions, **changes)
        self.exceptions: dict[Measure, dict[str, Any]] = {}  # conventions of single measures
        refuse_below(1, threads=threads)
        self.threads = processors() if threads is None else threads
        self.lenient, self.run_format, self.fields = lenient, run_format, fields
        self.by_text: dict[str, int] = {}  # judgments and runs that name topics by their queries → number of topics
        self.dialect = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
        duplicates = changes.get("duplicates", "error")  # a preset's rule holds for runs only
        reading = {**self.dialect, "duplicates": duplicates, "grades": grades}
        self.ignore_case = ignore_case
        judged_by = as_qrels(qrels, qrels_format, lenient, fields, **reading)
        known = queries_in(judged_by.workspace) if queries is None else queries
        self.queries: Mapping[str, str] = NO_QUERIES if known is None else known
        self.qrels: Qrels = self._qrels_by_id(judged_by, duplicates)
        if not len(self.qrels):
            raise DataError(f"{self.qrels.name}: no judgments")
        self.relevant_from = None if rel is not None else self.qrels.relevant_from  # from the collection's description
        preset = conventions if isinstance(conventions, str) else ""
        named = measures_of(measures, self.relevant_from if rel is None else rel, preset)
        self.measures = _aggregated(named, aggregate)
        self.judgments = Judgments.of(self.qrels, self.conventions.negative, extras)
        highest = float(self.judgments.grade.max(initial=0))
        self.preset = preset
        if preset:
            from cranfield.evaluation.presets import as_peer, exceptions

            self.measures = as_peer(preset, self.measures, highest)
            self.exceptions = exceptions(preset, self.measures, changes)
        assumed = {name: measure.assumed(highest) for name, measure in self.measures.items()}
        self.assumed = {name: words for name, words in assumed.items() if words}
        if baseline is not None:
            self.judgments.extras = replace(self.judgments.extras, baseline=self._baseline(baseline))
        for name, measure in self.measures.items():
            _refuse_unprovided(name, measure, self.judgments)
        self.topic_mask, self.not_judged = _subset(self.qrels, topics, lenient)
        self.warns, self.warns_of_ties = warn, warn and self.conventions.ties != "averaged"
        self.takes_every_grade = rel is None and any(m.values.get("rel", 1) <= 1 for m in self.measures.values())
        self.may_be_swapped = warn and sanity_checks.looks_like_scores(self.qrels, qrels)
        self.requested = list(self.measures)  # measures that are added later cause no warnings
        topic_names = self._topic_names(self.topic_mask)
        self.weights = (
            None if weights is None else as_weights(weights, self.qrels.workspace or qrels).fitted(topic_names)
        )
        if self.weights is not None and self.weights.left_out:  # topics of weight 0
            weighted = self.weights.values
            self.topic_mask = self.topic_mask & np.array([topic in weighted for topic in self.qrels.topics], np.bool_)

    def _baseline(self, run: Any) -> Hits:
        """The hits of the run to compare with, under the same conventions as the other runs."""
        runs = self.open(run)
        if len(runs) != 1:
            raise DataError(f"expected one run as the baseline, found {len(runs)}")
        return self.hits(runs[0])

    def hits(self, run: Any, measure: Measure | None = None) -> Hits:
        """The hits of one run, under the conventions of this measure where a preset makes exceptions."""
        [only] = [run] if isinstance(run, Run) else self.open(run)
        return self._match(only, self.threads, self.conventions_for(measure))[1]

    def conventions_for(self, measure: Measure | None) -> Conventions:
        """The conventions under which a measure is computed: the common ones with a preset's exceptions."""
        changes = None if measure is None or not self.exceptions else self.exceptions.get(measure)
        return replace(self.conventions, **changes) if changes else self.conventions

    def in_order_given(self, measures: Iterable[Measure]) -> None:
        """Compute some measures in the order given, even where the conventions average over the orders of ties."""
        if self.conventions.ties == "averaged":
            self.exceptions = {**self.exceptions, **{measure: {"ties": "input-order"} for measure in measures}}

    def _match(self, run: Run, threads: int, conventions: Conventions) -> tuple[HitRows, Hits]:
        match = run.hits(self.qrels.index, conventions.order, threads)
        return match, join(match, self.judgments.under(conventions.negative), conventions, run)

    def evaluate(self, runs: Any, progress: Progress | None = None) -> Scores:
        """Score one run or several; `progress` is called after each run with the number done and the total, if known."""
        scored: dict[int, list[tuple[_Row, Any, int]]] = {}  # with the source to open again for an explanation
        passing = isinstance(runs, Iterator) or hasattr(runs, "read")  # runs from a stream cannot be read again

        def work(i: int, item: Any, threads: int) -> None:
            named = item.values() if isinstance(item, Mapping) else []
            named_once = any(isinstance(value, str) and value == "-" for value in named)  # standard input
            once = named_once or (passing and not isinstance(item, (str, os.PathLike)))
            runs = enumerate(self.open(item))
            scored[i] = [(self._row(run, threads, number), None if once else item, place) for place, run in runs]

        items = self._items(runs)
        number = len(items) if isinstance(items, list) else 1
        _run_threads(work, items, self.threads, progress)
        every = [each for i in sorted(scored) for each in scored[i]]
        rows = [row for row, _, _ in every]
        scores = self._scores(rows)
        if self.warns:
            self._warn(scores, rows)
        named = isinstance(runs, (str, os.PathLike))  # files are not kept open
        scores.remember(self, [(runs, n) if named else (item, place) for n, (_, item, place) in enumerate(every)])
        return scores

    def _warn(self, scores: Scores, rows: list[_Row]) -> None:
        """Warn of everything that could make the scores meaningless."""
        findings = [finding for row in rows for finding in row.findings]
        if self.may_be_swapped and any(finding.code == "swapped-arguments" for finding in findings):
            sanity_checks.warn(findings)
            return  # no other check means anything then
        findings += self._odd_grades
        measures = {name: self.measures[name] for name in self.requested}
        highest = float(self.judgments.grade.max(initial=0))
        findings += sanity_checks.beyond_scale(measures, highest, self.qrels.name)
        topics: Any = slice(None) if self.topic_mask.all() else self.topic_mask
        swings = [None if row.tie_range is None else row.tie_range[:, :, topics] for row in rows]
        findings += sanity_checks.ties_that_decide(scores, swings, self.requested)
        moves = [None if row.single is None else row.single[:, topics] for row in rows]
        findings += sanity_checks.digits_that_decide(scores, moves, self.requested)
        sanity_checks.warn(findings)

    def warn_of(self, *runs: Run) -> None:
        """Run the sanity checks for an operation that does not call `evaluate`."""
        if self.warns:
            findings = [self._run_findings(run, *self._match(run, self.threads, self.conventions)) for run in runs]
            sanity_checks.warn([*chain.from_iterable(findings), *self._odd_grades])

    @cached_property
    def _odd_grades(self) -> list[Finding]:
        """A finding if all judged documents would be relevant and nobody named the lowest relevant grade."""
        has_threshold = self.qrels.explained or self.relevant_from is not None
        unsaid = self.takes_every_grade and not has_threshold and not self.may_be_swapped
        return list(sanity_checks.without_zero(self.qrels.grade, self.qrels.name)) if unsaid else []

    def _run_findings(self, run: Run, match: HitRows, hits: Hits) -> list[Finding]:
        """The findings of the sanity checks for one run."""
        if self.may_be_swapped and sanity_checks.looks_like_grades(run):
            return [sanity_checks.swapped(run, self.qrels)]
        overlap = sanity_checks.IdOverlap.of(match, self.judgments)
        mismatches = sanity_checks.id_mismatches(run, self.qrels, overlap)
        findings = [*mismatches, *sanity_checks.upside_down(run, hits)]
        if not findings:  # these would explain why little is judged
            findings += sanity_checks.little_judged(run, hits, self.topic_mask, self._lowest_rel)
        return findings

    def id_mismatches(self, run: Run) -> list[Finding]:
        """Ids and topics of a run that do not match the judgments."""
        match = run.hits(self.qrels.index, self.conventions.order, self.threads)
        overlap = sanity_checks.IdOverlap.of(match, self.judgments)
        return list(sanity_checks.id_mismatches(run, self.qrels, overlap))

    def _items(self, runs: Any) -> list[Any] | Iterator[Any]:
        """The runs one by one; files are not opened yet."""
        if isinstance(runs, (list, tuple)) and all(isinstance(run, (str, os.PathLike, Run)) for run in runs):
            return list(runs)
        if isinstance(runs, Mapping) and all(isinstance(run, (str, os.PathLike)) for run in runs.values()):
            return [{name: run} for name, run in runs.items()]
        if isinstance(runs, Iterator) and not is_source(runs) and not hasattr(runs, "__arrow_c_stream__"):
            from cranfield.formats.named_columns import is_row

            first = list(islice(runs, 1))
            rest = chain(first, runs)
            return rest if not (first and is_row(first[0])) else self.open(rest)
        return self.open(runs)

    def open(self, runs: Any) -> list[Run]:
        """Open the runs; order them by their rank column if the conventions ask for it.

        If the judgments come from a workspace, its runs may be given by name.
        """
        if self.qrels.workspace is not None:
            from cranfield.formats.run_files import located

            runs = located(runs, self.qrels.workspace)
        opened = as_runs(runs, self.run_format, self.lenient, self.fields, **self.dialect)
        return [self.conventions.ordered(self.with_ids(run)) for run in opened]

    def with_ids(self, run: Run) -> Run:
        """The run with topic ids in place of queries, if it names its topics by known queries."""
        if self.queries is NO_QUERIES:
            return run
        from cranfield.formats.topic_tables import run_by_id

        return self._joined(run, run_by_id(run, self.queries, self.ignore_case))

    def _qrels_by_id(self, qrels: Qrels, duplicates: Duplicates) -> Qrels:
        """The judgments with topic ids in place of queries, if they name their topics by known queries."""
        if self.queries is NO_QUERIES:
            return qrels
        from cranfield.formats.topic_tables import qrels_by_id

        return self._joined(qrels, qrels_by_id(qrels, self.queries, self.ignore_case, duplicates))

    def _joined(self, data: Named, by_id: Named | None) -> Named:
        """The data by topic ids, and a note that they were joined; the data as they are if there are none by ids."""
        if by_id is None:
            return data
        self.by_text[data.name] = len(data.topics)
        return by_id

    def _row(self, run: Run, threads: int, runs: int) -> _Row:
        match, hits = self._match(run, threads, self.conventions)
        empty = run.empty_answers(self.qrels.topics, match.retrieved, self.conventions.order)
        lacking = (match.retrieved == 0) & ~empty & self.topic_mask
        if self.conventions.missing == "error" and lacking.any():
            topic = self.qrels.topics[int(np.argmax(lacking))]
            hint = 'use missing="zero" to score it 0 or missing="skip" to leave it out'
            raise TopicError(f"topic {topic!r} is judged but missing from {run.name} ({hint})")
        views: dict[Conventions, Hits] = {}  # of measures under conventions of their own
        values = np.empty((len(self.measures), hits.size))
        pooled, errors = {}, {}
        for i, (name, measure) in enumerate(self.measures.items()):
            own = self.conventions_for(measure)
            view = hits if own is self.conventions else views.get(own)
            if view is None:
                view = views[own] = self._match(run, threads, own)[1]
            if own.ties == "averaged":
                values[i], errors[name] = self.mean_of(measure, view)
            else:
                values[i] = measure(view)
            parts = measure.pooled(view)
            if parts is not None:
                above, below = parts
                if own.ties == "averaged":  # the denominator is the same in every order
                    above = np.where(below > 0, values[i] * below, above)
                pooled[name] = np.stack([above, below])
        tag = None if hasattr(run.source, "keys") else run.tag
        skipped = match.skipped or getattr(run.source, "skipped", [])  # read by the kernel now, or by a format before
        sampled = {name: error for name, error in errors.items() if error.any()}
        findings = self._run_findings(run, match, hits) if self.warns else []
        swung = self._tie_range(hits, values, runs) if self.warns_of_ties else None
        single = self._single(match, run, values) if self.warns_of_ties else None
        tied = bool((match.first < match.last).any())
        counts = match.retrieved, empty, tied, match.others, len(skipped)
        return _Row(run.name, tag, values, *counts, pooled, sampled, findings, swung, single)

    def _tie_range(self, hits: Hits, values: Floats, runs: int = 1) -> Floats | None:
        """How far the order of ties can move each value; 0 for measures that `_free` leaves out."""
        return sanity_checks.tie_ranges(self._free(), hits, values, runs)

    def _single(self, match: HitRows, run: Run, values: Floats) -> Floats | None:
        """How much each value would change if scores were compared in single precision; None if none would change."""
        other = sanity_checks.in_single(match)
        if other is None:
            return None
        hits = join(other, self.judgments.under(self.conventions.negative), self.conventions, run)
        return sanity_checks.moved_by_single(self._free(), hits, values)

    def _free(self) -> list[Measure | None]:
        """The requested measures that use only ranks and grades of judged documents; None in place of all others."""
        return [
            m if name in self.requested and m not in self.exceptions and not self.sees(m) - MOVED else None
            for name, m in self.measures.items()
        ]

    def values_of(self, measure: Measure, hits: Hits) -> Floats:
        """A measure's value for each topic; the mean over the orders of ties if the conventions ask for it."""
        return self.mean_of(measure, hits).value

    def mean_of(self, measure: Measure, hits: Hits) -> MeanOverOrders:
        """A measure's value for each topic and its standard error, which is above 0 only where orders of ties were sampled."""
        exact = np.zeros(hits.size)
        if self.conventions_for(measure).ties != "averaged":
            return MeanOverOrders(measure(hits), exact)
        condensed = hits.condensed() if measure.judged_only else hits
        with measure.within_doubles(hits.judgments):
            expected = measure.expected(condensed)
            if expected is not None:
                return MeanOverOrders(expected, exact)
            if (condensed.tied_to == condensed.tied_from).all():
                return MeanOverOrders(measure(hits), exact)
            unmoved = self.sees(measure) - MOVED
            if unmoved:  # unjudged documents stay in place when ties are reordered
                reason = f"it uses the {', '.join(sorted(unmoved))} of unjudged documents too, and only judged ones are reordered"
                hint = "choose another rule, such as ties=input-order"
                raise ConventionError(f"ties=averaged: {measure}: {reason}; {hint}")
            return mean_over_orders(measure.score, condensed, bool(self.sees(measure) - PLAIN))

    def sees(self, measure: Measure) -> set[str]:
        """The data that a measure uses beyond the rank and grade of a document: names of `NEEDS`."""
        costs = {"costs"} if self.judgments.extras.costs is not None and "cost" in measure.parameters else set()
        return needs_of(measure) | costs

    def _scores(self, rows: list[_Row]) -> Scores:
        if not rows:
            raise DataError("no run given")
        names = distinct([row.name for row in rows])
        retrieved = np.stack([row.retrieved for row in rows])
        barren: npt.NDArray[np.bool_] = self.judgments.relevant(self._lowest_rel) == 0
        values = np.stack([row.values for row in rows])
        in_mean = self._mask_excluded(values, (retrieved > 0) | np.stack([row.empty for row in rows]), barren)
        topics: Any = slice(None) if self.topic_mask.all() else self.topic_mask
        return Scores(
            runs=names,
            tags=[row.tag for row in rows],
            measures=self.measures,
            topics=self._topic_names(self.topic_mask),
            values=values[:, :, topics],
            counted=in_mean[:, topics],
            retrieved=retrieved[:, topics],
            absent=self._absent(names, rows, barren),
            conventions=self.conventions,
            exceptions={name: self.exceptions[m] for name, m in self.measures.items() if m in self.exceptions},
            assumed=self.assumed,
            differences=self._differences(rows, barren),
            sampled=_standard_errors(rows, topics),
            pooled={name: np.stack([row.pooled[name] for row in rows])[:, :, topics] for name in rows[0].pooled},
            queries=self.queries,
            weights=self.weights,
            judged=np.bincount(self.judgments.topic, minlength=len(barren)).astype(np.int32)[topics],
            relevant=self.judgments.relevant(self._lowest_rel)[topics],
        )

    def _differences(self, rows: list[_Row], barren: npt.NDArray[np.bool_]) -> dict[str, list[str]]:
        """Measures whose number may differ from that of the preset's program, with the reasons."""
        if not self.preset:
            return {}
        from cranfield.evaluation.presets import EMPTY, NEGATIVE, NO_RELEVANT, STRANGE_TOPICS, TIES, differences

        facts = {
            TIES: any(row.tied for row in rows),
            STRANGE_TOPICS: any(row.others for row in rows),
            NO_RELEVANT: bool((barren & self.topic_mask).any()),
            EMPTY: any(row.empty.any() for row in rows),
            NEGATIVE: bool((self.qrels.grade < 0).any()),
        }
        return differences(self.preset, self.measures, {fact for fact, holds in facts.items() if holds})

    def _mask_excluded(
        self, values: Floats, answered: npt.NDArray[np.bool_], barren: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Set values to NaN that a measure's conventions leave out; return runs × topics: whether any measure counts it."""
        in_mean = np.zeros(answered.shape, np.bool_)
        for m, measure in enumerate(self.measures.values()):
            own = self.conventions_for(measure)
            here = np.broadcast_to(self.topic_mask, answered.shape)
            here = here & answered if own.missing == "skip" else here
            here = here & ~barren if own.no_relevant == "skip" else here
            if not here.all():
                values[:, m][~here] = np.nan
            in_mean |= here
        return in_mean

    @property
    def _lowest_rel(self) -> float:
        """The lowest grade that any of the measures calls relevant; without one, 1, or the lowest gain if that is less."""
        lowest = [float(m.values["rel"]) for m in self.measures.values() if "rel" in m.values]
        if lowest:
            return min(lowest)
        gains = self.qrels.grade[self.qrels.grade > 0]
        return min(1.0, float(gains.min(initial=1.0)))  # values between 0 and 1, as from clicks, are gains too

    @property
    def lists_nonrelevant(self) -> bool:
        """Whether some documents were judged not relevant; if not, a missing judgment carries no information."""
        return not self.judgments.only_relevant(self._lowest_rel)

    def _absent(self, names: list[str], rows: list[_Row], barren: npt.NDArray[np.bool_]) -> Absent:
        def by_run(values: Iterable[T]) -> dict[str, T]:
            return {name: value for name, value in zip(names, values, strict=True) if value}

        lacking = ((row.retrieved == 0) & ~row.empty for row in rows)
        return Absent(
            missing=by_run(self._topic_names(mask & self.topic_mask) for mask in lacking),
            empty=by_run(self._topic_names(row.empty & self.topic_mask) for row in rows),
            unjudged=by_run(row.others for row in rows),
            no_relevant=self._topic_names(barren & self.topic_mask),
            highest_grade=self._highest_below_relevant() if barren.all() else None,
            skipped=by_run(row.skipped for row in rows),
            skipped_qrels=len(self.qrels.skipped),
            not_judged=self.not_judged,
            by_text={name: self.by_text[name] for name in [self.qrels.name, *names] if name in self.by_text},
        )

    def _highest_below_relevant(self) -> float | None:
        """The highest grade, if there are gains and none of them makes a document relevant: the scale needs another `rel`."""
        highest = float(self.qrels.grade.max(initial=0.0))
        return highest if 0 < highest < self._lowest_rel else None

    def _topic_names(self, mask: npt.NDArray[np.bool_]) -> list[str]:
        return [self.qrels.topics[i] for i in np.flatnonzero(mask).tolist()]


def _aggregated(measures: dict[str, Measure], aggregate: str | None) -> dict[str, Measure]:
    """The measures with another aggregate in place of the mean, in value and name; other measures do not change."""
    if aggregate is None or aggregate == "mean":
        return measures
    if aggregate not in AGGREGATES:
        choices = ", ".join(name for name in AGGREGATES if name != "sum")
        raise ConventionError(f"aggregate must be one of {choices}, got {aggregate!r}")
    answer: dict[str, Measure] = {}
    for name, measure in measures.items():
        if is_mean(measure):
            answer[f"{aggregate}({name})"] = aggregated(measure, aggregate)
        else:
            answer[name] = measure
    return answer


PLAIN = {"size"}  # needs of measures that use only the rank and grade of a document
MOVED = PLAIN | {"labels", "probabilities", "baseline"}  # needs of measures that use judged documents only
NEEDS = {
    "labels": "judgments with subtopics in their second column",
    "size": "the number of documents in the collection (Extras(size=N))",
    "groups": "the groups that documents belong to (Extras(groups=…))",
    "aspect": "judgments of a second aspect (Extras(aspect=…))",
    "costs": "the cost of reading each document (Extras(costs=…))",
    "probabilities": "the probabilities with which documents were sampled (qrels as prels or strata: cranfield formats)",
    "preferences": "preference judgments (Extras(preferences=…))",
    "baseline": "a run to compare with (baseline=…)",
}


def _refuse_unprovided(name: str, measure: Measure, judgments: Judgments) -> None:
    """Raise DataError if a measure needs data (costs, groups …) that was not given."""
    for need in measure.needs:
        value = len(judgments.qrels.labels) or None if need == "labels" else getattr(judgments.extras, need)
        if value is None:
            raise DataError(f"{name} needs {NEEDS[need]}")
    for extra in (*measure.needs, *measure.may_use):
        tell_used("collection_size" if extra == "size" else extra)
    for inner in measure.values.values():  # URisk(of=alpha_nDCG@10) needs what alpha_nDCG@10 does
        if isinstance(inner, Measure):
            _refuse_unprovided(name, inner, judgments)


class _Row(NamedTuple):
    """The results of one run: its values, and the facts that notes and warnings are made from."""

    name: str
    tag: str | None
    values: Floats
    retrieved: Ints
    empty: npt.NDArray[np.bool_]  # topics answered with an empty list
    tied: bool  # whether a judged document is tied with another one
    others: list[str]  # topics that are not judged
    skipped: int  # malformed lines
    pooled: dict[str, Floats]  # measure → 2 × topics: numerator and denominator of a micro average
    sampled: dict[str, Floats]  # measure → topics: standard errors of means over sampled orders of ties
    findings: list[Finding]  # what could make its scores meaningless
    tie_range: Floats | None  # 2 × measures × topics: how far ties can lower and raise values
    single: Floats | None  # measures × topics: how much single precision would change values


def _standard_errors(rows: list[_Row], topics: Any) -> dict[str, Floats]:
    """Measure → runs × topics: the standard errors of means over sampled orders; 0 where a mean is exact."""
    names = dict.fromkeys(name for row in rows for name in row.sampled)
    nothing = np.zeros(len(rows[0].retrieved))
    return {name: np.stack([row.sampled.get(name, nothing) for row in rows])[:, topics] for name in names}


def _subset(qrels: Qrels, topics: Iterable[str] | None, lenient: bool) -> tuple[npt.NDArray[np.bool_], list[str]]:
    """A mask of the judged topics to evaluate, and the requested topics that are not judged (an error unless lenient)."""
    if topics is None:
        return np.ones(len(qrels.topics), bool), []
    subset = dict.fromkeys([topics] if isinstance(topics, str) else topics)
    judged = set(qrels.topics)
    unknown = [topic for topic in subset if topic not in judged]
    if not subset:
        raise TopicError("no topic to evaluate: the list of topics is empty")
    if unknown and (not lenient or len(unknown) == len(subset)):
        several = f"{len(unknown)} of the {len(subset)} requested topics are not"
        share = several if len(subset) > 1 else "nothing to score"
        raise TopicError(f"topic {unknown[0]!r} is not judged in {qrels.name} ({share})")
    return np.array([topic in subset for topic in qrels.topics]), unknown


def distinct(names: list[str]) -> list[str]:
    """Make names unique: #2, #3 … follow a name that occurred before."""
    reserved, answer = set(names), []
    earlier: set[str] = set()
    for name in names:
        unique, n = name, 2
        while unique in earlier or (unique != name and unique in reserved):
            unique, n = f"{name}#{n}", n + 1
        earlier.add(unique)
        answer.append(unique)
    return answer


def _run_threads(
    work: Callable[[int, Any, int], None], items: list[Any] | Iterator[Any], threads: int, progress: Progress | None
) -> None:
    """Do the work on each item: few items one by one with all threads, many items in parallel with one thread each."""
    total = len(items) if isinstance(items, list) else None
    tell = progress or tell_progress
    if threads == 1 or (total is not None and total < 2 * threads):
        for i, item in enumerate(items):
            work(i, item, threads)
            tell(i + 1, total)
        return
    import threading

    from cranfield.base.worker_threads import work_through

    todo, lock, done = enumerate(items), threading.Lock(), 0

    def one(task: tuple[int, Any]) -> None:
        nonlocal done
        work(*task, 1)
        with lock:
            done += 1
            tell(done, total)

    work_through(lambda: next(todo, None), one, threads)

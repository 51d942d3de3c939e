"""Replays pooling strategies on a judged collection: what each would have found, and when the ranking settles.

The judgments of the collection are the labels; an unjudged document of the pool counts as not
relevant. Effort is the judged share of each topic's pool, so that topics count equally. For sampling strategies the
judged documents are the pool and the truth: samples are drawn from them repeatedly. Topics without a relevant
document in the sample have no estimate and are left out of both means.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.kernels import decode, encode
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Answer, Layout, Lines, Rows, Table, plain
from cranfield.evaluation.hits import join
from cranfield.evaluation.measures import measure
from cranfield.evaluation.partial_judgments import Partial, rows_of
from cranfield.formats import as_runs
from cranfield.pooling.stopping import effort_for, ncg, wss
from cranfield.pooling.strategies.fixed import Stratified, Uniform, Weighted
from cranfield.pooling.strategy import STRATEGIES
from cranfield.pooling.strategy import rankings as leading_of
from cranfield.stats.correlation import tau_ap_a, tau_b

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Unpack

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats
    from cranfield.base.qrels import Qrels
    from cranfield.base.results import Part
    from cranfield.base.run import Run
    from cranfield.evaluation.measures import Measure
    from cranfield.evaluation.options import OptionsWithoutRel
    from cranfield.pooling.strategies.fixed import SamplingStrategy
    from cranfield.pooling.strategy import Candidates, Rankings, Strategy

    Known = dict[tuple[str, str], tuple[float, str]]


EFFORTS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)
GRID = 101  # points of the curve of relevant documents found


@dataclass(frozen=True)
class Replay:
    """The result of one strategy: relevant documents found by effort, and the ranking of the runs by effort."""

    strategy: str
    area: float  # area under the curve of relevant documents by effort, mean over topics
    curve: list[float]  # recall at 0, 1, 2 … 100 % of the effort, mean over topics
    found: list[float]  # recall at the efforts
    tau: dict[str, list[float]]  # measure → Kendall's tau with the full judgments at each effort
    tau_ap: dict[str, list[float]]
    error: dict[str, list[float]]  # measure → root mean square error of the runs' scores
    ncg: list[float]  # normalised cumulative gain at the efforts, mean over topics
    wss: float  # work saved over sampling at the target recall, mean over topics
    judgments: float  # to reach the target recall, median over topics
    share: float  # the same as a share of the topic's pool
    by_topic: dict[str, int]  # the same by topic

    @property
    def total(self) -> int:
        """The judgments to reach the target recall in every topic."""
        return sum(self.by_topic.values())

    def slower(self, other: Replay) -> float:
        """The share of topics that need more judgments than with another strategy."""
        return float(np.mean([self.by_topic[topic] > most for topic, most in other.by_topic.items()]))


@dataclass(frozen=True, repr=False)
class Simulation(Answer):
    """Several strategies compared."""

    replays: list[Replay]
    efforts: list[float]
    measures: list[str]
    runs: list[str]
    topics: int  # topics with a relevant document in their pool
    documents: int  # documents in the pools of those topics
    unjudged: int  # documents of the pools that the collection did not judge
    relevant: int
    depth: int
    recall: float  # the target recall
    seed: int

    def __getitem__(self, name: str) -> Replay:
        for replay in self.replays:
            if replay.strategy == name:
                return replay
        raise DataError(f"{name!r} was not simulated; there are {', '.join(each.strategy for each in self.replays)}")

    def content(self, how: Layout) -> Iterator[Part]:
        """One row per strategy, the largest area first."""
        efforts = [effort for effort in (0.1, 0.2, 0.5) if effort in self.efforts]
        places, aim = [self.efforts.index(effort) for effort in efforts], f"{self.recall:.0%}"
        head = ["strategy", "area", *(f"found {effort:.0%}" for effort in efforts), f"to {aim}", "total", f"WSS@{aim}"]
        head += [
            f"{kind} {name} {effort:.0%}"
            for kind in ("tau", "tau_AP")
            for name in self.measures
            for effort in efforts[:2]
        ]
        three = Layout(digits=3)
        rows = []
        for each in sorted(self.replays, key=lambda each: -each.area):
            row = [each.strategy, *map(three.number, (each.area, *(each.found[i] for i in places)))]
            row += [f"{each.judgments:g}", f"{each.total}", three.number(each.wss)]
            for values in (each.tau, each.tau_ap):
                row += [three.number(values[name][i]) for name in self.measures for i in places[:2]]
            rows.append(row)
        pooled = (
            f"{len(self.runs)} runs to depth {self.depth}: {self.documents:,} documents for {self.topics} topics, "
            f"{self.relevant:,} of them relevant"
        )
        if self.unjudged:
            pooled += f"; {self.unjudged:,} are not judged by the collection and count as not relevant"
        yield Lines([pooled, *([f"seed {self.seed}"] if how.states_defaults or self.seed else []), *self._ahead()])
        spare = [i for i, name in enumerate(head) if name == "total" or name.startswith("tau_AP")]
        spare = [] if how.states_defaults else spare
        yield Table(head, rows, spare=spare)

    def _ahead(self) -> Iterator[str]:
        """A sentence on the strategy with the fewest judgments, compared with depth order."""
        best = min(self.replays, key=lambda each: each.total)
        depth = next((each for each in self.replays if each.strategy == "depth"), best)
        if best is not depth:
            yield (
                f"{best.strategy} finds {self.recall:.0%} of the relevant documents with {best.total / depth.total:.0%} of the "
                f"judgments of depth order over all topics, and needs more in {best.slower(depth):.0%} of the topics"
            )

    def records(self, how: Layout) -> Iterator[list[Any]]:
        """One row per strategy and effort."""
        columns = [f"{what} {name}" for name in self.measures for what in ("tau", "tau_AP", "error")]
        yield ["strategy", "area", "wss", "judgments", "effort", "found", "ncg", *columns]
        for each in self.replays:
            for i, effort in enumerate(self.efforts):
                columns_of = each.tau, each.tau_ap, each.error
                values = [by_measure[name][i] for name in self.measures for by_measure in columns_of]
                facts = [each.strategy, each.area, each.wss, each.judgments, effort, each.found[i], each.ncg[i]]
                yield [*facts, *values]

    def plain(self, how: Layout) -> Any:
        return plain(vars(self), how.digits)


def _refuse_unfit(strategies: Sequence[Strategy], texts: Any) -> None:
    """Raise ConventionError for a strategy that draws a sample, or that needs texts if there are none."""
    for each in strategies:
        if each.samples:
            raise ConventionError(f"{each.name} draws a sample; pool simulate --sampling shows how well it estimates")
        if each.reads and texts is None:
            raise ConventionError(f"{each.name} reads documents: say where they are (--collection FOLDER)")


def simulate(
    qrels: Any,
    runs: Any,
    strategies: Sequence[str | Strategy] | None = None,
    measures: Any = "AP",
    *,
    depth: int = 100,
    depths: Mapping[str, int] | None = None,
    tops: Rankings | None = None,
    efforts: Sequence[float] = EFFORTS,
    recall: float = 0.95,
    rel: float = 1,
    seed: int = 0,
    texts: Any = None,
    progress: Callable[[int, int | None], None] | None = None,
    **options: Unpack[OptionsWithoutRel],
) -> Simulation:
    """Replay pooling strategies on a judged collection; by default all strategies that do not sample.

    `depth`, or `depths` by run name, is how deep runs are pooled. `efforts` are the shares of a topic's pool at which
    the ranking of the runs is compared with that under all judgments; `recall` is the target recall. `texts` are for
    strategies that read documents; `tops` are the top-k of the same runs, if already read. `options` are those of
    `evaluate`.

    >>> runs = {"one": {"q": {"a": 3, "b": 2}}, "two": {"q": {"c": 2, "a": 1}}}
    >>> round(simulate({"q": {"c": 1}}, runs, ["depth"])["depth"].area, 3)  # found second of three
    0.667
    """
    if not 0 < recall <= 1:
        raise ConventionError(f"recall must lie above 0 and at most at 1, got {recall}")
    refuse_below(0, seed=seed)
    if not efforts or not all(0 < effort <= 1 for effort in efforts):
        raise ConventionError(f"efforts must lie above 0 and at most at 1, got {list(efforts)}")
    methods = [STRATEGIES.named(each) for each in strategies or STRATEGIES]
    if strategies:
        _refuse_unfit(methods, texts)
    else:
        methods = [each for each in methods if not each.samples and (texts is not None or not each.reads)]
    opened = as_runs(runs)
    partial = Partial(qrels, opened, measures, rel=None if rel == 1 else rel, **options)
    rankings = tops or leading_of(partial.opened, depth, depths, partial.evaluator.conventions.order)
    topics = judged_topics(partial.qrels, rankings, rel)
    stage = _Stage(topics, partial, partial.means(), list(efforts), recall, seed, texts)
    replays = []
    for each in methods:
        replays.append(stage.replay(each))
        if progress is not None:
            progress(len(replays), len(methods))
    return Simulation(
        replays,
        stage.efforts,
        list(partial.measures),
        partial.runs,
        topics=len(topics),
        documents=sum(len(topic.candidates) for topic in topics),
        unjudged=sum(int((topic.row < 0).sum()) for topic in topics),
        relevant=sum(int(topic.relevant.sum()) for topic in topics),
        depth=max(rankings.depths),
        recall=recall,
        seed=seed,
    )


@dataclass(frozen=True)
class JudgedTopic:
    """A topic's candidates with their judgments: the row in the qrels (-1 for none) and whether relevant."""

    candidates: Candidates
    row: Any
    relevant: Any

    def judged(self, qrels: Qrels, rel: float) -> JudgedTopic:
        """This topic with exactly its judged documents as candidates, including those that no run returned."""
        with_row = self.row >= 0
        part = self.candidates.keep(with_row)
        number = qrels.topics.index(part.topic)
        first = qrels.index.first == np.arange(len(qrels))
        rows = np.flatnonzero(first & (qrels.topic == number) & (qrels.grade >= 0))
        others = np.setdiff1d(rows, self.row[with_row])
        names = qrels.documents
        wider = part.with_others([decode(names[int(row)]) for row in others])
        row = np.r_[self.row[with_row], others]
        return JudgedTopic(wider, row, qrels.grade[row] >= rel)


def judged_topics(qrels: Qrels, rankings: Rankings, rel: float) -> list[JudgedTopic]:
    """The topics with a relevant document among their candidates."""
    answer = []
    for topic, rows in rows_of(qrels).items():
        if topic not in rankings.candidates:
            continue
        candidates = rankings[topic]
        row = np.array([rows.get(document, -1) for document in candidates.documents])
        relevant = (row >= 0) & (qrels.grade[row] >= rel)
        if relevant.any():
            answer.append(JudgedTopic(candidates, row, relevant))
    if not answer:
        raise DataError("no judged topic has a relevant document within the depth of any run")
    return answer


@dataclass(frozen=True)
class _Stage:
    """The input of replays: judged topics, and runs with their scores under all judgments."""

    topics: list[JudgedTopic]
    partial: Partial
    full: Floats  # runs × measures
    efforts: list[float]
    recall: float
    seed: int
    texts: Any

    def replay(self, strategy: Strategy) -> Replay:
        """Replay one strategy: what it finds, and when the ranking of the runs settles."""
        areas, curves, gains, saved, needed = [], [], [], [], []
        by_topic: dict[str, int] = {}
        judged = np.zeros((len(self.efforts), len(self.partial.qrels)), bool)
        for topic in self.topics:
            order = self._order(strategy, topic)
            relevant = topic.relevant[order]
            recall = np.cumsum(relevant) / relevant.sum()
            areas.append(recall.mean())
            curves.append(np.interp(np.linspace(0, len(order), GRID), np.arange(len(order) + 1), np.r_[0.0, recall]))
            steps = [int(np.ceil(effort * len(order))) for effort in self.efforts]
            gains.append([ncg(relevant, step) for step in steps])
            saved.append(wss(relevant, self.recall))
            effort = effort_for(relevant, self.recall)
            needed.append((effort, effort / len(order)))
            by_topic[topic.candidates.topic] = effort
            for i, step in enumerate(steps):
                rows = topic.row[order[:step]]
                judged[i, rows[rows >= 0]] = True
        curve = np.mean(curves, axis=0)
        judgments, share = np.median(needed, axis=0).tolist()
        tau, tau_ap, error = self._settled(judged)
        return Replay(
            str(strategy),
            float(np.mean(areas)),
            curve.tolist(),
            np.interp(self.efforts, np.linspace(0, 1, GRID), curve).tolist(),
            tau,
            tau_ap,
            error,
            np.mean(gains, axis=0).tolist(),
            float(np.mean(saved)),
            judgments,
            share,
            by_topic,
        )

    def _order(self, strategy: Strategy, topic: JudgedTopic) -> npt.NDArray[np.int64]:
        """The documents in the order of the strategy."""
        candidates = topic.candidates
        rng = np.random.default_rng([self.seed, zlib.crc32(encode(candidates.topic))])
        picker = strategy.start(candidates, rng, self.texts)
        if not strategy.adaptive:
            return np.array(picker.pick_many(len(candidates)))
        relevant, order = topic.relevant.tolist(), []
        while (document := picker.pick()) is not None:
            picker.tell(document, relevant[document])
            order.append(document)
        return np.array(order)

    def _settled(self, judged: npt.NDArray[np.bool_]) -> Iterator[dict[str, list[float]]]:
        """By measure and effort: tau and tau_AP with the ranking under all judgments, and the error of the scores."""
        first = self.partial.qrels.index.first  # a document judged under several labels has several rows
        scores = [self.partial.means(mask[first]) for mask in judged]
        columns = list(zip(self.partial.measures, self.full.T, self.partial.upwards, strict=True))
        for tau in (tau_b, tau_ap_a):
            yield {
                name: [tau(up * full, up * part[:, m]) for part in scores] for m, (name, full, up) in enumerate(columns)
            }
        yield {
            name: [float(np.sqrt(np.mean((part[:, m] - full) ** 2))) for part in scores]
            for m, (name, full, _) in enumerate(columns)
        }


# how well a sample estimates AP: infAP, xinfAP and statAP against AP under all judgments


@dataclass(frozen=True)
class EstimatorError:
    """The errors of one estimator at one sampling rate, over all runs and samples, with standard errors."""

    measure: str
    sample: str  # the sampling strategy
    rate: float  # the share of the pool that was sampled
    error: float  # the mean error: bias
    error_se: float | None  # standard error of the bias over samples; None for a single one
    rmse: float  # of the mean over topics
    rmse_se: float | None
    rmse_topic: float  # of single topics
    lost: float  # the share of topics without a relevant document in the sample
    draws: int


@dataclass(frozen=True, repr=False)
class EstimatorErrors(Rows[EstimatorError]):
    """Estimators at several rates, one row each."""

    rows: list[EstimatorError]

    def content(self, how: Layout) -> Iterator[Table]:
        head = ["measure", "sample", "judged", "mean error", "SE", "RMSE", "SE", "RMSE of a topic", "topics lost"]
        rows = []
        for each in self.rows:
            mean = how.number(each.error, signed=True), how.number(each.error_se)
            square = how.number(each.rmse), how.number(each.rmse_se), how.number(each.rmse_topic)
            rows.append([each.measure, each.sample, f"{each.rate:.1%}", *mean, *square, f"{each.lost:.1%}"])
        yield Table(head, rows, names=2)

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
    **options: Unpack[OptionsWithoutRel],
) -> EstimatorErrors:
    """Sample the judged pool and compare the estimates with the true values."""
    if not rates or not all(0 < rate <= 1 for rate in rates):
        raise ConventionError(f"rates must lie above 0 and at most at 1, got {list(rates)}")
    refuse_below(1, draws=draws)
    refuse_below(0, seed=seed)
    partial = Partial(qrels, runs, f"AP(rel={rel:g})", **options)
    topics = [topic.judged(partial.qrels, rel) for topic in judged_topics(partial.qrels, rankings, rel)]
    inside = np.zeros(len(partial.qrels), bool)
    inside[np.concatenate([topic.row for topic in topics])] = True
    judged = _Judged(partial, topics, inside, partial.values(inside)[:, 0], rel)
    rows = []
    for rate in rates:
        samples: dict[str, SamplingStrategy] = {
            "infAP": Uniform(rate=rate),
            "xinfAP": Stratified(strata=f"10:{min(1.0, 2 * rate)}/1000000:{rate}"),  # the top ten twice as densely
            "statAP": Weighted(rate=rate),
        }
        for name, sample in samples.items():
            rows.append(_estimate(name, sample, judged, draws, seed))
            if progress is not None:
                progress(len(rows), len(samples) * len(rates))
    return EstimatorErrors(rows)


@dataclass(frozen=True)
class _Judged:
    """The pool to sample from: its topics, which rows of the judgments it contains, and the true AP."""

    partial: Partial
    topics: list[JudgedTopic]
    inside: npt.NDArray[np.bool_]
    truth: Floats  # runs × topics
    rel: float


def _estimate(name: str, sample: SamplingStrategy, judged: _Judged, draws: int, seed: int) -> EstimatorError:
    estimator = measure(name, judged.rel)
    errors, squares, by_topic, drawn_in_all, lost = [], [], [], 0, 0
    for draw in range(draws):
        in_sample, chances_of = _draw(sample, judged, np.random.default_rng([seed, draw]))
        listed = in_sample if name == "statAP" else judged.inside
        values, has_estimate = _values(judged, estimator, in_sample, chances_of, listed)
        lost += sum(not has_estimate[judged.partial.qrels.topic[topic.row[0]]] for topic in judged.topics)
        drawn_in_all += int(in_sample.sum())
        difference = values[:, has_estimate] - judged.truth[:, has_estimate]
        errors.append(difference.mean())
        squares.append((difference.mean(axis=1) ** 2).mean())
        by_topic.append((difference**2).mean())
    rmse, spread = float(np.sqrt(np.mean(squares))), _standard_error(squares)
    return EstimatorError(
        name,
        str(sample),
        drawn_in_all / draws / sum(len(topic.row) for topic in judged.topics),
        float(np.mean(errors)),
        _standard_error(errors),
        rmse,
        spread / (2 * rmse) if spread is not None and rmse else spread,  # standard error of a root, by the delta method
        float(np.sqrt(np.mean(by_topic))),
        lost / draws / len(judged.topics),
        draws,
    )


def _standard_error(values: Sequence[float]) -> float | None:
    """The standard error of a mean over samples; None for a single sample."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def _draw(sample: SamplingStrategy, judged: _Judged, rng: np.random.Generator) -> tuple[npt.NDArray[np.bool_], Known]:
    """Which rows of the judgments are sampled, and the probability and stratum of each document."""
    in_sample = np.zeros(len(judged.inside), bool)
    chances_of: Known = {}
    for topic in judged.topics:
        candidates = topic.candidates
        in_sample[topic.row[sample.draw(candidates, rng)]] = True
        chances, strata = sample.chances(candidates, 0).tolist(), sample.strata_of(candidates) or repeat("")
        for document, chance, stratum in zip(candidates.documents, chances, strata, strict=False):
            chances_of[candidates.topic, document] = chance, stratum
    return in_sample, chances_of


def _values(
    judged: _Judged,
    estimator: Measure,
    in_sample: npt.NDArray[np.bool_],
    chances_of: Known,
    listed: npt.NDArray[np.bool_],
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The estimates (runs × topics), and which topics have one: those with a relevant document in the sample.

    The estimator sees the rows that are `listed`; those outside the sample have a grade of -1.
    """
    evaluator = judged.partial.evaluator
    whole, grade = evaluator.judgments, np.where(in_sample, evaluator.judgments.of_row, -1.0)
    rows = whole.row[listed[whole.row]]
    part = whole.only(rows, whole.topic[listed[whole.row]], grade[rows])
    part.of_row = np.where(listed, grade, np.nan)
    part.extras = replace(whole.extras, probabilities=chances_of)
    values = []
    for by_rule in judged.partial.hits:
        hits = join(by_rule[evaluator.conventions], part, evaluator.conventions)
        values.append(estimator(hits.where(~np.isnan(hits.grade))))
    return np.stack(values), part.relevant(judged.rel) > 0

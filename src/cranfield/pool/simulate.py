"""Strategies replayed on a collection that is judged already: what each would have found, and when the ranking settles.

The judgments of the collection answer every question; a pooled document that they do not know counts as not
relevant. Effort is the share of each topic's pool that has been judged, so that topics weigh alike.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import ConventionError, DataError
from cranfield.formats import as_runs
from cranfield.kernels import decode, encode
from cranfield.pool.partial import Partial
from cranfield.pool.rankings import rankings as leading_of
from cranfield.pool.stop import effort_for, ncg, wss
from cranfield.pool.strategy import STRATEGIES
from cranfield.stats.correlation import tau_ap_a, tau_b

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cranfield.collection import Qrels
    from cranfield.kernels.table import Floats
    from cranfield.pool.rankings import Candidates, Rankings
    from cranfield.pool.strategy import Strategy


EFFORTS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)
GRID = 101  # points of the curve of relevant documents found


@dataclass(frozen=True)
class Replay:
    """What one strategy did: relevant documents found by effort, and the ranking of the runs by effort."""

    strategy: str
    area: float  # under the curve of relevant documents found by effort, mean over topics
    curve: list[float]  # the share found at 0, 1, 2 … 100 % of the effort, mean over topics
    found: list[float]  # the same at the efforts
    tau: dict[str, list[float]]  # measure → Kendall's tau with the full judgments at each effort
    tau_ap: dict[str, list[float]]
    error: dict[str, list[float]]  # measure → root mean square error of the runs' scores
    ncg: list[float]  # relevant documents found over the most that could have been, at the efforts, mean over topics
    wss: float  # work saved over sampling at the recall aimed for, mean over topics
    judgments: float  # to reach that recall, median over topics
    share: float  # the same as a share of the topic's pool


@dataclass(frozen=True)
class Simulation:
    """Strategies side by side."""

    replays: list[Replay]
    efforts: list[float]
    measures: list[str]
    runs: list[str]
    topics: int  # with a relevant document in their pool
    documents: int  # in the pools of those topics
    unjudged: int  # of them not judged by the collection
    relevant: int
    depth: int
    recall: float  # aimed for
    seed: int

    def __getitem__(self, name: str) -> Replay:
        for replay in self.replays:
            if replay.strategy == name:
                return replay
        raise DataError(f"{name!r} was not simulated; there are {', '.join(each.strategy for each in self.replays)}")

    def rows(self) -> list[list[str]]:
        """A header and a row a strategy, the largest area first."""
        shown = [effort for effort in (0.1, 0.2, 0.5) if effort in self.efforts]
        aim = f"{self.recall:.0%}"
        head = ["strategy", "area", *(f"found {effort:.0%}" for effort in shown), f"to {aim}", f"WSS@{aim}"]
        early = shown[:2]
        head += [
            f"{kind} {name} {effort:.0%}" for kind in ("tau", "tau_AP") for name in self.measures for effort in early
        ]
        places = [self.efforts.index(effort) for effort in shown]
        rows = [head]
        for each in sorted(self.replays, key=lambda each: -each.area):
            row = [each.strategy, f"{each.area:.3f}", *(f"{each.found[i]:.3f}" for i in places)]
            row += [f"{each.judgments:g}", f"{each.wss:.3f}"]
            for values in (each.tau, each.tau_ap):
                row += [_shown(values[name][i]) for name in self.measures for i in places[:2]]
            rows.append(row)
        return rows

    def to_text(self, limit: int | None = None) -> str:
        """A table and what it is about."""
        from cranfield.columns import aligned

        said = (
            f"{len(self.runs)} runs to depth {self.depth}: {self.documents:,} documents for {self.topics} topics, "
            f"{self.relevant:,} of them relevant"
        )
        if self.unjudged:
            said += f"; {self.unjudged:,} are not judged by the collection and count as not relevant"
        return "\n".join([*aligned(self.rows(), 1, limit=limit), "", said, f"seed {self.seed}"])

    def to_csv(self, delimiter: str = ",") -> str:
        """A row for each strategy and effort."""
        import csv
        import io

        file = io.StringIO()
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        columns = [f"{what} {name}" for name in self.measures for what in ("tau", "tau_AP", "error")]
        writer.writerow(["strategy", "area", "wss", "judgments", "effort", "found", "ncg", *columns])
        for each in self.replays:
            for i, effort in enumerate(self.efforts):
                values = [kept[name][i] for name in self.measures for kept in (each.tau, each.tau_ap, each.error)]
                facts = [each.strategy, each.area, each.wss, each.judgments, effort, each.found[i], each.ncg[i]]
                writer.writerow([*facts, *("" if v != v else v for v in values)])
        return file.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what is undefined is None."""
        from dataclasses import asdict

        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def series(self) -> dict[str, list[tuple[float, float]]]:
        """The curves as points, for a chart: strategy → (effort, share of relevant documents found)."""
        step = 1 / (GRID - 1)
        return {each.strategy: [(i * step, share) for i, share in enumerate(each.curve)] for each in self.replays}


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
    **options: Any,
) -> Simulation:
    """Replay pooling strategies on a collection that is judged already; without `strategies` all that need no sample.

    `depth`, or `depths` by the run's name, is how deep runs are pooled, `efforts` the shares of a topic's pool at which
    the ranking of the runs is compared with that of the full judgments, `recall` what "to 95%" aims at. `texts` are for
    strategies that read; `tops` are the tops of the same runs, where they are at hand. `options` are those of `evaluate`.

    >>> runs = {"one": {"q": {"a": 3, "b": 2}}, "two": {"q": {"c": 2, "a": 1}}}
    >>> round(simulate({"q": {"c": 1}}, runs, ["depth"])["depth"].area, 3)  # found second of three
    0.667
    """
    if not 0 < recall <= 1:
        raise ConventionError(f"recall must lie above 0 and at most at 1, got {recall}")
    if not efforts or not all(0 < effort <= 1 for effort in efforts):
        raise ConventionError(f"efforts must lie above 0 and at most at 1, got {list(efforts)}")
    chosen = [STRATEGIES.named(each) for each in strategies] if strategies else _usual(texts)
    for each in chosen:
        if each.samples:
            raise ConventionError(f"{each.name} draws a sample; pool simulate --sampling shows how well it estimates")
        if each.reads and texts is None:
            raise ConventionError(f"{each.name} reads documents: say where they are (--collection FOLDER)")
    opened = as_runs(runs)
    partial = Partial(qrels, opened, measures, **options)
    rankings = tops or leading_of(opened, depth, depths, partial.evaluator.conventions.order)
    topics = judged_topics(partial.qrels, rankings, rel)
    full = partial.means()
    replays = []
    for n, each in enumerate(chosen):
        replays.append(_replay(each, topics, partial, full, list(efforts), recall, seed, texts))
        if progress is not None:
            progress(n + 1, len(chosen))
    return Simulation(
        replays,
        list(efforts),
        list(partial.measures),
        partial.runs,
        len(topics),
        sum(len(topic.candidates) for topic in topics),
        sum(int((topic.row < 0).sum()) for topic in topics),
        sum(int(topic.relevant.sum()) for topic in topics),
        max(rankings.depths),
        recall,
        seed,
    )


def _usual(texts: Any) -> list[Strategy]:
    kinds = [each for each in STRATEGIES.values() if not each.samples and (texts is not None or not each.reads)]
    return [each() for each in kinds]


@dataclass(frozen=True)
class JudgedTopic:
    """A topic's candidates with the collection's answers: the row of the qrels (-1: none) and whether relevant."""

    candidates: Candidates
    row: Any
    relevant: Any

    def judged(self, qrels: Qrels, rel: float) -> JudgedTopic:
        """The same with every judged document and no other, returned by a run or not."""
        kept = self.row >= 0
        part = self.candidates.keep(kept)
        number = qrels.topics.index(part.topic)
        rows = np.flatnonzero(
            (qrels.topic == number) & (qrels.grade >= 0) & (qrels.index.first == np.arange(len(qrels)))
        )
        others = np.setdiff1d(rows, self.row[kept])
        names = qrels.documents
        wider = part.with_others([decode(names[int(row)]) for row in others])
        row = np.r_[self.row[kept], others]
        return JudgedTopic(wider, row, qrels.grade[row] >= rel)


def judged_topics(qrels: Qrels, rankings: Rankings, rel: float) -> list[JudgedTopic]:
    """The topics that have a relevant document among their candidates."""
    names = qrels.topics
    rows: dict[str, dict[str, int]] = {name: {} for name in names}
    for number, (topic, document) in enumerate(zip(qrels.topic.tolist(), qrels.documents.text(), strict=True)):
        rows[names[topic]].setdefault(document, number)
    answer = []
    for name in names:
        if name not in rankings.candidates:
            continue
        candidates = rankings[name]
        row = np.array([rows[name].get(document, -1) for document in candidates.documents])
        relevant = (row >= 0) & (qrels.grade[row] >= rel)
        if relevant.any():
            answer.append(JudgedTopic(candidates, row, relevant))
    if not answer:
        raise DataError("no judged topic has a relevant document within the depth of any run")
    return answer


def _replay(
    chosen: Strategy,
    topics: list[JudgedTopic],
    partial: Partial,
    full: Floats,
    efforts: list[float],
    recall: float,
    seed: int,
    texts: Any,
) -> Replay:
    areas, curves, gains, saved, needed = [], [], [], [], []
    kept = np.zeros((len(efforts), len(partial.qrels)), bool)
    for topic in topics:
        rng = np.random.default_rng([seed, zlib.crc32(encode(topic.candidates.topic))])
        order = np.array(_order(chosen, topic, rng, texts))
        flags = topic.relevant[order]
        found = np.cumsum(flags) / flags.sum()
        gains.append([ncg(flags, int(np.ceil(effort * len(order)))) for effort in efforts])
        saved.append(wss(flags, recall))
        needed.append((effort_for(flags, recall), effort_for(flags, recall) / len(flags)))
        areas.append(found.mean())
        steps = np.r_[0.0, found]
        curves.append(np.interp(np.linspace(0, len(order), GRID), np.arange(len(order) + 1), steps))
        for i, effort in enumerate(efforts):
            judged = topic.row[order[: int(np.ceil(effort * len(order)))]]
            kept[i, judged[judged >= 0]] = True
    curve = np.mean(curves, axis=0)
    at = np.interp(efforts, np.linspace(0, 1, GRID), curve)
    scores = [partial.means(_every_row(partial.qrels, mask)) for mask in kept]
    names = list(partial.measures)
    columns = range(len(names))
    upwards = partial.upwards
    return Replay(
        str(chosen),
        float(np.mean(areas)),
        curve.tolist(),
        at.tolist(),
        {names[m]: [tau_b(upwards[m] * full[:, m], upwards[m] * part[:, m]) for part in scores] for m in columns},
        {names[m]: [tau_ap_a(upwards[m] * full[:, m], upwards[m] * part[:, m]) for part in scores] for m in columns},
        {names[m]: [float(np.sqrt(np.mean((part[:, m] - full[:, m]) ** 2))) for part in scores] for m in columns},
        np.mean(gains, axis=0).tolist(),
        float(np.mean(saved)),
        *np.median(needed, axis=0).tolist(),
    )


def _order(chosen: Strategy, topic: JudgedTopic, rng: np.random.Generator, texts: Any) -> list[int]:
    """The documents in the order in which the strategy asks for them."""
    picker = chosen.start(topic.candidates, rng, texts)
    if not chosen.adaptive:
        return picker.pick_many(len(topic.candidates))
    relevant = topic.relevant.tolist()
    order = []
    while (document := picker.pick()) is not None:
        picker.tell(document, relevant[document])
        order.append(document)
    return order


def _every_row(qrels: Qrels, kept: Any) -> Any:
    """Rows of documents judged under several labels are kept together."""
    return kept[qrels.index.first]


def _shown(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and value != value else value

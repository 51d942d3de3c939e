"""Pooling strategies, and the candidates they choose from: what the runs returned, at which rank, within their depths.

Documents are numbered within their topic; a contribution is a triple of run, document and rank.

A strategy makes one `Picker` per topic. `pick` names the next document, `tell` passes its label back; strategies that
do not adapt ignore labels. A picker never names a document twice and names every candidate in the end (a sample: every
sampled one). With the same seed and labels the order is the same, which makes a judging session resumable.

`PoolStatistics` says what a pool will cost and how much its contributors differ, before anyone judges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.kernels import Order
from cranfield.base.parameters import refuse_below
from cranfield.base.registry import Registered, Registry, about
from cranfield.base.results import Answer, Lines, Table, plain
from cranfield.base.top_k import tops
from cranfield.formats.pool_files import PoolItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.base.results import Layout, Part
    from cranfield.base.run import Run


@dataclass(frozen=True, eq=False)
class Candidates:
    """What the runs returned for one topic within their depths.

    `run`, `document`, `rank` and `score` have one entry for each document of each run; `documents` are the ids.
    """

    topic: str
    runs: list[str]
    documents: list[str]
    run: Ints
    document: Ints
    rank: Ints
    score: Floats

    def __len__(self) -> int:
        return len(self.documents)

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each document by its id."""
        return {document: i for i, document in enumerate(self.documents)}

    @cached_property
    def ranks(self) -> Ints:
        """Runs × documents: the rank, or 0 if the run did not return the document within its depth."""
        answer = np.zeros((len(self.runs), len(self.documents)), np.int32)
        answer[self.run, self.document] = self.rank
        return answer

    @cached_property
    def lists(self) -> list[list[int]]:
        """Each run's documents, best first."""
        order = np.lexsort((self.rank, self.run))
        ends = np.searchsorted(self.run[order], np.arange(len(self.runs) + 1))
        ranked = self.document[order].tolist()
        return [ranked[start:end] for start, end in zip(ends, ends[1:], strict=False)]

    @cached_property
    def best_rank(self) -> Ints:
        """Each document's best rank in any run."""
        best = np.full(len(self.documents), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(best, self.document, self.rank)
        return best

    @cached_property
    def votes(self) -> Ints:
        """The number of runs that returned each document."""
        return np.bincount(self.document, minlength=len(self.documents)).astype(np.int32)

    def weighted(self, weight: npt.ArrayLike) -> Floats:
        """For each document, the sum of the weights of its contributions; `weight` has one value per contribution."""
        return np.asarray(np.bincount(self.document, weight, len(self.documents)), np.float64)

    @cached_property
    def contributors(self) -> list[tuple[str, ...]]:
        """The names of the runs that returned each document, in the order of the runs."""
        # a counting sort
        document = self.document.astype(np.uint16) if len(self.documents) < 1 << 16 else self.document
        in_turn = bool((np.diff(self.run) >= 0).all())
        order = np.argsort(document, kind="stable") if in_turn else np.lexsort((self.run, self.document))
        names = list(map(self.runs.__getitem__, self.run[order].tolist()))
        ends = np.cumsum(self.votes).tolist()
        return [tuple(names[start:end]) for start, end in zip([0, *ends], ends, strict=False)]

    @cached_property
    def _facts(self) -> tuple[list[str], list[int], list[tuple[str, ...]]]:
        return self.documents, self.best_rank.tolist(), self.contributors

    def items(self, numbers: Iterable[int], places: Iterable[int]) -> list[PoolItem]:
        """Documents as items of a pool, each with its place in the order of judging."""
        documents, ranks, runs = self._facts
        return [
            PoolItem(self.topic, documents[i], ranks[i], runs[i], place)
            for i, place in zip(numbers, places, strict=False)
        ]

    def keep(self, mask: npt.NDArray[np.bool_]) -> Candidates:
        """Only the documents that `mask` marks; ranks stay."""
        number, rows = np.cumsum(mask, dtype=np.int32) - 1, mask[self.document]
        columns = self.run[rows], number[self.document[rows]], self.rank[rows], self.score[rows]
        return Candidates(self.topic, self.runs, list(compress(self.documents, mask)), *columns)

    def with_others(self, documents: list[str]) -> Candidates:
        """These candidates and documents that no run returned."""
        return replace(self, documents=[*self.documents, *documents])


@dataclass(frozen=True, eq=False)
class Rankings:
    """The candidates of every topic, in the order in which topics first appear in the runs."""

    runs: list[str]
    depths: list[int]
    candidates: dict[str, Candidates]

    @property
    def topics(self) -> list[str]:
        """The topics that any run answers."""
        return list(self.candidates)

    def __len__(self) -> int:
        return sum(map(len, self.candidates.values()))

    def __getitem__(self, topic: str) -> Candidates:
        if topic not in self.candidates:
            raise DataError(f"no run answers topic {topic!r}; there are {len(self.candidates)} others")
        return self.candidates[topic]


def rankings(
    runs: Iterable[Run],
    depth: int = 100,
    depths: Mapping[str, int] | None = None,
    order: Order = Order(),  # noqa: B008
    progress: Callable[[int, int | None], None] | None = None,
) -> Rankings:
    """Read runs one by one, down to `depth` or to the run's depth in `depths`.

    >>> from cranfield import Run
    >>> found = rankings([Run({"q": {"a": 2, "b": 1}}, "one"), Run({"q": {"b": 5, "c": 4}}, "two")], depth=1)
    >>> found["q"].documents, found["q"].contributors
    (['a', 'b'], [('one',), ('two',)])
    """
    own = dict(depths or {})
    for name, setting in {"depth": depth, **own}.items():
        if setting < 1:
            raise DataError(f"{name}: a depth must be 1 or more, got {setting}")
        refuse_below(1, **{name: setting})
    lists = tops(runs, depth, own, order, progress)
    names = list(lists.names)
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two runs are called {name!r}; give each a name of its own")
    for name in own:
        if name not in names:
            raise DataError(f"a depth is given for {name!r}, but no run is called that; runs are {', '.join(names)}")
    texts, topics = lists.documents.text(), np.arange(len(lists.topics) + 1)
    rows, entries = np.searchsorted(lists.topic, topics).tolist(), np.searchsorted(lists.home, topics).tolist()
    candidates = {}
    for t, topic in enumerate(lists.topics.text()):
        part, first = slice(rows[t], rows[t + 1]), entries[t]
        columns = lists.run[part], lists.entry[part] - first, lists.rank[part], lists.score[part]
        candidates[topic] = Candidates(topic, names, texts[first : entries[t + 1]], *columns)
    return Rankings(names, [own.get(name, depth) for name in names], candidates)


JUDGMENT_SECONDS = 60.0  # a guess, to be replaced by the assessors' own pace


@dataclass(frozen=True, repr=False)
class PoolStatistics(Answer):
    """Sizes, overlap and effort of a depth pool.

    A topic's pool lies between the depth of the deepest run (all runs agree) and the sum of depths (none agree), unless
    runs return less; `fewest` and `most` are these bounds for what the runs really returned.
    """

    runs: list[str]
    depths: list[int]
    sizes: dict[str, int]  # topic → documents
    fewest: dict[str, int]
    most: dict[str, int]
    overlap: list[list[float]]  # runs × runs: the share of the union that both returned, mean over topics
    unique: dict[str, int]  # run → documents that no other run returned
    contributed: dict[str, int]  # run → documents returned within its depth
    seconds: float | None  # per judgment; None: the plan of a round says how long its labels take

    @property
    def documents(self) -> int:
        """The number of documents to judge over all topics."""
        return sum(self.sizes.values())

    @property
    def hours(self) -> float | None:
        """The time to judge all documents."""
        return None if self.seconds is None else self.documents * self.seconds / 3600

    @property
    def mean_overlap(self) -> float:
        """The mean over pairs of different runs; 1 for a single run."""
        table = np.array(self.overlap)
        n = len(table)
        return float((table.sum() - np.trace(table)) / (n * (n - 1))) if n > 1 else 1.0

    @property
    def diversity(self) -> float:
        """The number of disjoint runs that would return as many documents: from 1 to the number of runs."""
        returned = sum(self.contributed.values())
        deepest = max(self.contributed.values(), default=0)
        return self.documents / deepest if returned and deepest else 0.0

    def plain(self, how: Layout) -> Any:
        derived = ("documents", "hours", "mean_overlap", "diversity")
        return plain({**vars(self), **{name: getattr(self, name) for name in derived}}, how.digits)

    def content(self, how: Layout) -> Iterator[Part]:
        sizes = np.array(list(self.sizes.values()))
        low, high = sum(self.fewest.values()), sum(self.most.values())
        if not len(sizes):
            yield "0 documents: no run returns any"
            return
        effort = (
            [] if self.hours is None else [f"about {self.hours:,.1f} hours at {self.seconds:g} seconds per judgment"]
        )
        yield Lines(
            [
                f"{self.documents:,} documents for {len(sizes)} topics: {sizes.min()} to {sizes.max()} per topic, median "
                f"{np.median(sizes):g}; if all runs agreed {low:,}, if none did {high:,}",
                *effort,
                f"two runs overlap by {self.mean_overlap:.0%} on average; the {len(self.runs)} runs are as diverse as "
                f"{self.diversity:.1f} runs without overlap",
            ]
        )
        overlap = np.array(self.overlap)
        np.fill_diagonal(overlap, -1)
        rows = []
        for i, run in enumerate(self.runs):
            returned, alone = self.contributed[run], self.unique[run]
            near = int(overlap[i].argmax())
            closest = [self.runs[near], f"{overlap[i, near]:.2f}"] if len(self.runs) > 1 else ["-", "-"]
            share = f"{alone / returned:.1%}" if returned else "-"
            rows.append([run, str(self.depths[i]), str(returned), str(alone), share, *closest])
        yield Table(["run", "depth", "returned", "unique", "unique %", "nearest run", "overlap"], rows)


def statistics(rankings: Rankings, seconds: float = JUDGMENT_SECONDS) -> PoolStatistics:
    """Count the documents that runs return within their depths.

    >>> from cranfield import Run
    >>> from cranfield.pooling.strategy import rankings
    >>> found = statistics(rankings([Run({"q": {"a": 2, "b": 1}}, "one"), Run({"q": {"b": 2, "c": 1}}, "two")], 2))
    >>> found.documents, found.fewest["q"], found.most["q"], found.unique, round(found.mean_overlap, 3)
    (3, 2, 4, {'one': 1, 'two': 1}, 0.333)
    """
    runs = rankings.runs
    overlaps: list[Floats] = []
    unique = np.zeros(len(runs), np.int64)
    returned = np.zeros(len(runs), np.int64)
    fewest: dict[str, int] = {}
    most: dict[str, int] = {}
    for topic, candidates in rankings.candidates.items():
        has = (candidates.ranks > 0).astype(np.float64)
        both = has @ has.T
        size = np.diag(both)
        either = size[:, None] + size[None, :] - both
        overlaps.append(np.divide(both, either, out=np.zeros_like(both), where=either > 0))
        alone = candidates.votes[candidates.document] == 1
        unique += np.bincount(candidates.run[alone], minlength=len(runs))
        returned += size.astype(np.int64)
        fewest[topic], most[topic] = int(size.max()), int(size.sum())
    overlap = np.mean(overlaps, axis=0) if overlaps else np.eye(len(runs))
    return PoolStatistics(
        runs,
        rankings.depths,
        {topic: len(candidates) for topic, candidates in rankings.candidates.items()},
        fewest,
        most,
        overlap.tolist(),
        dict(zip(runs, unique.tolist(), strict=True)),
        dict(zip(runs, returned.tolist(), strict=True)),
        seconds,
    )


STRATEGIES: Registry[type[Strategy]] = Registry(
    "pooling strategy", "pooling_strategies", "cranfield.pooling.strategies"
)


class LearnedState(NamedTuple):
    """The model of a topic in terms that people understand: relevant documents left, words with their weights."""

    expected: float | None
    words: Sequence[tuple[str, float]]


class Picker(ABC):
    """Picks the documents of one topic in the order of judging."""

    replays: ClassVar[bool] = True  # whether the order of earlier labels counts, so that they must be replayed

    def __init__(self, candidates: Candidates) -> None:
        self.candidates = candidates
        self.picked = np.zeros(len(candidates), bool)
        self.rest = len(candidates)  # documents not picked yet

    def pick(self) -> int | None:
        """The number of the next document; None when all were picked. Labels may still be outstanding."""
        if not self.rest:
            return None
        document = self.choose()
        self.mark(document)
        return document

    def pick_many(self, n: int) -> list[int]:
        """The next n documents, or all that are left, without labels in between."""
        return list(islice(iter(self.pick, None), max(n, 0)))

    def mark(self, document: int) -> None:
        """Mark a document as picked."""
        if not self.picked[document]:
            self.picked[document] = True
            self.rest -= 1

    @abstractmethod
    def choose(self) -> int:
        """The number of a document that was not picked yet; there is at least one."""

    def tell(self, document: int, relevant: bool) -> None:  # noqa: B027
        """Learn a label; strategies that do not adapt ignore it."""

    def state(self) -> LearnedState | None:
        """What the strategy has learned; None if it has no model of words."""
        return None

    def know(self, document: int, relevant: bool) -> None:
        """Learn an earlier label: the document need not be judged again."""
        self.mark(document)
        self.tell(document, relevant)


class InOrder(Picker):
    """Picks documents in a fixed order."""

    def __init__(self, candidates: Candidates, order: npt.NDArray[Any]) -> None:
        super().__init__(candidates)
        self._order: list[int] = order.tolist()
        self._place = 0

    def choose(self) -> int:
        while self.picked[self._order[self._place]]:
            self._place += 1
        return self._order[self._place]

    def pick_many(self, n: int) -> list[int]:
        rest = np.array(self._order[self._place :], np.int64)
        first = rest[~self.picked[rest]][:n]
        self.picked[first] = True
        self.rest -= len(first)
        answer: list[int] = first.tolist()
        return answer


class Strategy(Registered, ABC):
    """A way to choose what to judge next. Its docstring says what it does and when to use it.

    >>> STRATEGIES.named("rbp(p=0.9)"), STRATEGIES.named("rrf:k=10")
    (rbp(p=0.9), rrf(k=10.0))
    """

    registry = STRATEGIES
    reference: ClassVar[str] = ""
    adaptive: ClassVar[bool] = False  # whether labels change what comes next
    reads: ClassVar[bool] = False  # whether it needs the documents' texts
    samples: ClassVar[bool] = False  # whether it draws a sample and leaves the rest out

    @abstractmethod
    def start(self, candidates: Candidates, rng: np.random.Generator, texts: Any = None) -> Picker:
        """A picker for one topic. `texts` are for strategies that read documents."""

    def chances(self, candidates: Candidates, n: int) -> Floats:
        """The probability of each document to be among the first n: 1 unless the strategy samples."""
        return np.ones(len(candidates))

    def strata_of(self, candidates: Candidates) -> list[str] | None:
        """The stratum of each document, if there are strata."""
        return None

    def __repr__(self) -> str:
        pairs = [f"{key}={self.values[key]}" for key in self.changed()]
        return f"{self.name}({','.join(pairs)})" if pairs else self.name

    __str__ = __repr__


def catalogue() -> list[dict[str, Any]]:
    """One row per strategy: what it does, whether it adapts to labels or reads texts, and its options."""
    return [
        {
            "name": name,
            "about": about(cls),
            "adaptive": cls.adaptive,
            "reads": cls.reads,
            "reference": cls.reference,
            "options": {key: (parameter.default, parameter.meaning) for key, parameter in cls.parameters.items()},
        }
        for name, cls in STRATEGIES.items()
    ]

"""The tops of many runs, side by side: which documents stand for judging, who returned them, and at which rank.

A run is read, cut at its depth and let go, so a hundred runs of a quarter of a million lines never stand in memory
together. Documents are numbered within their topic; a contribution is a triple of run, document and rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from cranfield.errors import DataError
from cranfield.kernels import Order, Strings, decode
from cranfield.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from concurrent.futures import Future

    from cranfield.kernels.table import Floats, Ints, Table

Read = TypeVar("Read")
READERS = 2  # runs read at the same time; more only wait for the interpreter's lock


class Candidates:
    """What the runs returned for one topic, down to their depths.

    `run`, `document`, `rank` and `score` have one entry for each document of each run; `documents` are the ids.
    """

    def __init__(self, topic: str, runs: list[str], documents: list[str], columns: Mapping[str, Any]) -> None:
        self.topic = topic
        self.runs = runs
        self.documents = documents
        self.run: Ints = np.asarray(columns["run"], np.int32)
        self.document: Ints = np.asarray(columns["document"], np.int32)
        self.rank: Ints = np.asarray(columns["rank"], np.int32)
        self.score: Floats = np.asarray(columns["score"], np.float64)

    def __len__(self) -> int:
        return len(self.documents)

    @cached_property
    def number(self) -> dict[str, int]:
        """Each document's number."""
        return {document: i for i, document in enumerate(self.documents)}

    @cached_property
    def ranks(self) -> Ints:
        """Runs × documents: the rank, 0 where the run has the document not, or too deep."""
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
    def best_ranks(self) -> list[int]:
        """The same as plain numbers."""
        ranks: list[int] = self.best_rank.tolist()
        return ranks

    @cached_property
    def votes(self) -> Ints:
        """How many runs returned each document."""
        return np.bincount(self.document, minlength=len(self.documents)).astype(np.int32)

    def weighted(self, weight: npt.ArrayLike) -> Floats:
        """Add up one value a contribution for each document."""
        weights = np.broadcast_to(np.asarray(weight, np.float64), self.document.shape)
        return np.asarray(np.bincount(self.document, weights, len(self.documents)), np.float64)

    @cached_property
    def contributors(self) -> list[tuple[str, ...]]:
        """The names of the runs that returned each document, in the order of the runs."""
        order = np.argsort(self.document.astype(np.int64) * len(self.runs) + self.run)
        names = list(map(self.runs.__getitem__, self.run[order].tolist()))
        ends = np.cumsum(self.votes).tolist()
        return [tuple(names[start:end]) for start, end in zip([0, *ends], ends, strict=False)]

    def keep(self, mask: npt.NDArray[np.bool_]) -> Candidates:
        """The documents that `mask` marks, alone; ranks stay."""
        kept = np.flatnonzero(mask)
        renumbered = np.full(len(mask), -1, np.int32)
        renumbered[kept] = np.arange(len(kept))
        rows = mask[self.document]
        columns = {
            "run": self.run[rows],
            "document": renumbered[self.document[rows]],
            "rank": self.rank[rows],
            "score": self.score[rows],
        }
        return Candidates(self.topic, self.runs, [self.documents[i] for i in kept.tolist()], columns)

    def with_others(self, documents: list[str]) -> Candidates:
        """These and documents that no run returned."""
        columns = {"run": self.run, "document": self.document, "rank": self.rank, "score": self.score}
        return Candidates(self.topic, self.runs, [*self.documents, *documents], columns)


class Rankings:
    """The candidates of every topic, in the order in which topics first turn up in the runs."""

    def __init__(self, runs: list[str], depths: list[int], candidates: dict[str, Candidates]) -> None:
        self.runs = runs
        self.depths = depths
        self.candidates = candidates

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

    def of(self, runs: Iterable[str]) -> Rankings:
        """The same with these runs alone; documents that only the others returned are gone."""
        wanted = set(runs)
        numbers = [i for i, name in enumerate(self.runs) if name in wanted]
        names = [self.runs[i] for i in numbers]
        renumbered = np.full(len(self.runs), -1, np.int32)
        renumbered[numbers] = np.arange(len(numbers))
        kept: dict[str, Candidates] = {}
        for topic, given in self.candidates.items():
            rows = renumbered[given.run] >= 0
            columns = {
                "run": renumbered[given.run[rows]],
                "document": given.document[rows],
                "rank": given.rank[rows],
                "score": given.score[rows],
            }
            part = Candidates(topic, names, given.documents, columns)
            part = part.keep(part.votes > 0)
            if len(part):
                kept[topic] = part
        return Rankings(names, [self.depths[i] for i in numbers], kept)


def rankings(
    runs: Iterable[Run],
    depth: int = 100,
    depths: Mapping[str, int] | None = None,
    order: Order = Order(),  # noqa: B008
    progress: Callable[[int, int | None], None] | None = None,
) -> Rankings:
    """Read runs, one after the other, down to `depth` or to the depth that `depths` gives for the run's name.

    >>> found = rankings([Run({"q": {"a": 2, "b": 1}}, "one"), Run({"q": {"b": 5, "c": 4}}, "two")], depth=1)
    >>> found["q"].documents, found["q"].contributors
    (['a', 'b'], [('one',), ('two',)])
    """
    given = dict(depths or {})
    for name, wanted in {"depth": depth, **given}.items():
        if wanted < 1:
            raise DataError(f"{name}: a depth must be 1 or more, got {wanted}")
    names: list[str] = []
    reached: list[int] = []
    gathered = _Gathered()

    def read(run: Run) -> tuple[Run, int, Top]:
        wanted = given.get(run.name, depth)
        return run, wanted, leading(run, wanted, order)

    for n, (run, wanted, top) in enumerate(_ahead(read, runs)):
        if run.name in names:
            raise DataError(f"two runs are called {run.name!r}; give each a name of its own")
        names.append(run.name)
        reached.append(wanted)
        gathered.add(n, top)
        if progress is not None:
            progress(n + 1, None)
    idle = [name for name in given if name not in names]
    if not names:
        raise DataError("no run given")
    if idle:
        raise DataError(f"a depth is given for {idle[0]!r}, but no run is called that; runs are {', '.join(names)}")
    return Rankings(names, reached, {part.topic: part for part in gathered.candidates(names)})


@dataclass
class Top:
    """The best documents of every topic of one run: topics, and a row for each document."""

    topics: list[bytes]
    topic: Ints
    rank: Ints
    score: Floats
    length: Ints  # of the document's id
    words: npt.NDArray[np.uint64]  # rows × words: the id's bytes, filled up with zeros


class _Gathered:
    """The tops of runs as they come in, and the candidates made of them.

    Ids are compared as numbers, a hash of their words, because millions of them are looked up; that two ids never share
    a number is checked, not hoped.
    """

    def __init__(self) -> None:
        self.number: dict[bytes, int] = {}
        self.tops: list[Top] = []
        self.run: list[Ints] = []
        self.topic: list[Ints] = []

    def add(self, n: int, top: Top) -> None:
        numbers = [self.number.setdefault(topic, len(self.number)) for topic in top.topics]
        self.topic.append(np.array(numbers, np.int32)[top.topic] if numbers else top.topic)
        self.run.append(np.full(len(top.topic), n, np.int32))
        self.tops.append(top)

    def candidates(self, runs: list[str]) -> Iterator[Candidates]:
        width = max(top.words.shape[1] for top in self.tops)
        words = np.concatenate([np.pad(top.words, ((0, 0), (0, width - top.words.shape[1]))) for top in self.tops])
        length = np.concatenate([top.length for top in self.tops])
        topic, run = np.concatenate(self.topic), np.concatenate(self.run)
        rank = np.concatenate([top.rank for top in self.tops])
        score = np.concatenate([top.score for top in self.tops])
        keys = _hashed(words, length)
        rows = np.argsort(topic, kind="stable")
        ends = np.cumsum(np.bincount(topic, minlength=len(self.number))).tolist()
        for name, start, end in zip(self.number, [0, *ends], ends, strict=False):
            part = rows[start:end]
            first, document = _distinct(keys[part], words[part], length[part])
            columns = {"run": run[part], "document": document, "rank": rank[part], "score": score[part]}
            self._refuse_twice(runs, name, columns, words[part], length[part])
            yield Candidates(decode(name), runs, _texts(words[part[first]], length[part[first]]), columns)

    @staticmethod
    def _refuse_twice(runs: list[str], topic: bytes, columns: Mapping[str, Any], words: Any, length: Any) -> None:
        many = int(columns["document"].max(initial=0)) + 1
        both = columns["run"].astype(np.int64) * many + columns["document"]
        if np.bincount(both).max(initial=0) < 2:
            return
        order = np.argsort(both, kind="stable")
        twice = np.flatnonzero(both[order][1:] == both[order][:-1])
        if len(twice):
            row = int(order[twice[0] + 1])
            [document] = _texts(words[row : row + 1], length[row : row + 1])
            where = runs[int(columns["run"][row])]
            problem = f"document {document!r} stands twice for topic {decode(topic)!r} (duplicates says which counts)"
            raise DataError(f"{where}: {problem}")


def _hashed(words: npt.NDArray[np.uint64], length: Ints) -> npt.NDArray[np.uint64]:
    key = length.astype(np.uint64)
    for column in words.T:
        key = (key ^ column) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key


def _distinct(keys: npt.NDArray[np.uint64], words: npt.NDArray[np.uint64], length: Ints) -> tuple[Any, Ints]:
    """The rows where a document first stands, and each row's document, numbered in that order."""
    _, first, document = np.unique(keys, return_index=True, return_inverse=True)
    same = (words == words[first][document]).all(axis=1) & (length == length[first][document])
    if not same.all():  # two ids with one hash
        rows = np.column_stack([words, length.astype(np.uint64)])
        _, first, document = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int32)
    order = np.argsort(first)
    number[order] = np.arange(len(first))
    return first[order], number[document.ravel()]


def _texts(words: npt.NDArray[np.uint64], length: Ints) -> list[str]:
    raw, width = words.tobytes(), words.shape[1] * 8
    if raw.isascii():  # decoded once, and cut
        text = raw.decode("ascii")
        return [text[start : start + n] for start, n in zip(range(0, len(text), width), length.tolist(), strict=True)]
    return [decode(raw[i * width : i * width + n]) for i, n in enumerate(length.tolist())]


def _ahead(read: Callable[[Run], Read], runs: Iterable[Run]) -> Iterator[Read]:
    """Read a few runs at a time, in order: the kernel reads without the interpreter's lock."""
    from collections import deque
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(READERS) as readers:
        coming: deque[Future[Read]] = deque()
        for run in runs:
            coming.append(readers.submit(read, run))
            if len(coming) > READERS:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()


def leading(run: Run, depth: int, order: Order) -> Top:
    """The best documents of every topic of a run, in order."""
    table = Run(run.source, run.name).table  # not kept with the run
    if order.collapse or order.drop_self or order.duplicates != "error":
        return _leading_one_by_one(run, table, depth, order)
    with np.errstate(over="ignore"):
        key = table.value.astype(np.float32).astype(np.float64) if order.single else table.value
    topic, rows = table.topic, None
    same = topic[1:] == topic[:-1]
    if (topic[1:] < topic[:-1]).any() or (same & (key[1:] > key[:-1])).any():
        rows = np.lexsort((-key, topic))
        topic, key = topic[rows], key[rows]
        same = topic[1:] == topic[:-1]
    starts = np.r_[0, np.flatnonzero(~same) + 1, len(topic)] if len(topic) else np.zeros(1, np.int64)
    taken = np.minimum(np.diff(starts), depth)
    rank = np.arange(int(taken.sum())) - np.repeat(np.cumsum(taken) - taken, taken)
    if order.ties != "input":
        rows = _ties_sorted(table, rows, same & (key[1:] == key[:-1]), starts, depth, order.ties == "descending")
    places = np.repeat(starts[:-1], taken) + rank
    chosen = places if rows is None else rows[places]
    words, length = _words(table.documents, chosen)
    ranks = (rank + 1).astype(np.int32)
    return Top(list(table.topics), table.topic[chosen], ranks, table.value[chosen], length, words)


def _words(documents: Strings, rows: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint64], Ints]:
    """The ids at `rows`, their bytes packed into whole numbers, and their lengths."""
    block = np.frombuffer(documents.block, np.uint8)
    start = documents.offsets[rows]
    length = (documents.offsets[rows + 1] - start).astype(np.int32)
    width = 8 * max(1, -(-int(length.max(initial=1)) // 8))
    wider = np.concatenate([block, np.zeros(width, np.uint8)])  # so that every id has room for the widest
    packed = np.lib.stride_tricks.sliding_window_view(wider, width)[start]
    packed *= np.arange(width) < length[:, None]
    return packed.view(np.uint64), length


def _ties_sorted(
    table: Table,
    rows: npt.NDArray[Any] | None,
    tied: npt.NDArray[np.bool_],
    starts: npt.NDArray[Any],
    depth: int,
    descending: bool,
) -> npt.NDArray[Any] | None:
    """The rows with the documents of equal scores in the order of their ids, wherever that reaches the top."""
    if not tied.any():
        return rows
    rows = np.arange(len(table.topic)) if rows is None else rows.copy()
    edges = np.flatnonzero(np.diff(np.r_[False, tied, False].astype(np.int8))).reshape(-1, 2)
    above = edges[:, 0] - starts[np.searchsorted(starts, edges[:, 0], side="right") - 1]
    for first, last in edges[above < depth].tolist():
        group = rows[first : last + 1].tolist()
        group.sort(key=table.documents.__getitem__, reverse=descending)
        rows[first : last + 1] = group
    return rows


def _leading_one_by_one(run: Run, table: Table, depth: int, order: Order) -> Top:
    from cranfield.kernels import encode

    topics = list(table.topics)
    topic: list[int] = []
    rank: list[int] = []
    documents: list[bytes] = []
    scores: list[float] = []
    for i, name in enumerate(topics):
        ranked = run.ranking(decode(name), order)[:depth]
        topic += [i] * len(ranked)
        rank += range(1, len(ranked) + 1)
        documents += [encode(document) for document, _ in ranked]
        scores += [score for _, score in ranked]
    words, length = _words(Strings.of(documents), np.arange(len(documents)))
    numbers = np.array(topic, np.int32), np.array(rank, np.int32)
    return Top(topics, *numbers, np.array(scores, np.float64), length, words)

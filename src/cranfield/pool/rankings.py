"""What stands for judging: which documents the runs returned within their depths, who returned them, and at which rank.

Documents are numbered within their topic; a contribution is a triple of run, document and rank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from cranfield.errors import DataError
from cranfield.formats.pools import Item
from cranfield.kernels import Order
from cranfield.parameters import refuse_below
from cranfield.tops import tops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy.typing as npt

    from cranfield.kernels.table import Floats, Ints
    from cranfield.run import Run


@dataclass(frozen=True, eq=False)
class Candidates:
    """What the runs returned for one topic, down to their depths.

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
        document = self.document.astype(np.uint16) if len(self.documents) < 1 << 16 else self.document  # by counting
        in_turn = bool((np.diff(self.run) >= 0).all())
        order = np.argsort(document, kind="stable") if in_turn else np.lexsort((self.run, self.document))
        names = list(map(self.runs.__getitem__, self.run[order].tolist()))
        ends = np.cumsum(self.votes).tolist()
        return [tuple(names[start:end]) for start, end in zip([0, *ends], ends, strict=False)]

    @cached_property
    def _facts(self) -> tuple[list[str], list[int], list[tuple[str, ...]]]:
        return self.documents, self.best_rank.tolist(), self.contributors

    def items(self, numbers: Iterable[int], places: Iterable[int]) -> list[Item]:
        """Documents as items of a pool, each with its place in the order of judging."""
        documents, ranks, runs = self._facts
        return [
            Item(self.topic, documents[i], ranks[i], runs[i], place) for i, place in zip(numbers, places, strict=False)
        ]

    def keep(self, mask: npt.NDArray[np.bool_]) -> Candidates:
        """The documents that `mask` marks, alone; ranks stay."""
        number, rows = np.cumsum(mask, dtype=np.int32) - 1, mask[self.document]
        columns = self.run[rows], number[self.document[rows]], self.rank[rows], self.score[rows]
        return Candidates(self.topic, self.runs, list(compress(self.documents, mask)), *columns)

    def with_others(self, documents: list[str]) -> Candidates:
        """These and documents that no run returned."""
        return replace(self, documents=[*self.documents, *documents])


@dataclass(frozen=True, eq=False)
class Rankings:
    """The candidates of every topic, in the order in which topics first turn up in the runs."""

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
    """Read runs, one after the other, down to `depth` or to the depth that `depths` gives for the run's name.

    >>> from cranfield import Run
    >>> found = rankings([Run({"q": {"a": 2, "b": 1}}, "one"), Run({"q": {"b": 5, "c": 4}}, "two")], depth=1)
    >>> found["q"].documents, found["q"].contributors
    (['a', 'b'], [('one',), ('two',)])
    """
    own = dict(depths or {})
    for name, wanted in {"depth": depth, **own}.items():
        if wanted < 1:
            raise DataError(f"{name}: a depth must be 1 or more, got {wanted}")
        refuse_below(1, **{name: wanted})
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

"""What a pool will cost and how much its contributors differ, before anyone judges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.answer import Answer, Lines, Table, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.answer import Layout, Part
    from cranfield.kernels.table import Floats
    from cranfield.pool.rankings import Rankings


JUDGMENT_SECONDS = 60.0  # a guess to be replaced by the assessors' own pace


@dataclass(frozen=True, repr=False)
class PoolStatistics(Answer):
    """Sizes, overlap and effort of a depth pool.

    A topic's pool lies between the deepest run's depth (all runs agree) and the sum of depths (none does), unless runs
    return less; `fewest` and `most` are those bounds with what the runs really returned.
    """

    runs: list[str]
    depths: list[int]
    sizes: dict[str, int]  # topic → documents
    fewest: dict[str, int]
    most: dict[str, int]
    overlap: list[list[float]]  # runs × runs: the share of the united documents that both returned, mean over topics
    unique: dict[str, int]  # run → documents that no other run returned
    contributed: dict[str, int]  # run → documents returned within its depth
    seconds: float  # a judgment

    @property
    def documents(self) -> int:
        """Documents to judge, all topics together."""
        return sum(self.sizes.values())

    @property
    def hours(self) -> float:
        """What judging them all takes."""
        return self.documents * self.seconds / 3600

    @property
    def mean_overlap(self) -> float:
        """The mean over pairs of different runs; 1 where there is one run."""
        table = np.array(self.overlap)
        n = len(table)
        return float((table.sum() - np.trace(table)) / (n * (n - 1))) if n > 1 else 1.0

    @property
    def diversity(self) -> float:
        """How many runs that share nothing would return as many documents: between 1 and the number of runs."""
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
        yield Lines(
            [
                f"{self.documents:,} documents for {len(sizes)} topics: {sizes.min()} to {sizes.max()} a topic, median "
                f"{np.median(sizes):g}; if all runs agreed {low:,}, if none did {high:,}",
                f"about {self.hours:,.1f} hours at {self.seconds:g} seconds a judgment",
                f"two runs share {self.mean_overlap:.0%} of what they return together; the {len(self.runs)} runs are as "
                f"diverse as {self.diversity:.1f} that share nothing",
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
    """Count what runs return within their depths.

    >>> from cranfield import Run
    >>> from cranfield.pool.rankings import rankings
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

"""What a pool will cost and how much its contributors differ, before anyone judges."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cranfield.kernels.table import Floats
    from cranfield.pool.rankings import Rankings


SECONDS = 60.0  # a judgment; a guess to be replaced by the assessors' own pace


@dataclass(frozen=True)
class PoolStatistics:
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **asdict(self),
            "documents": self.documents,
            "hours": self.hours,
            "mean_overlap": self.mean_overlap,
            "diversity": self.diversity,
        }

    def to_text(self) -> str:
        """Three sentences and a row a run."""
        from cranfield.columns import aligned

        sizes = np.array(list(self.sizes.values()))
        low, high = sum(self.fewest.values()), sum(self.most.values())
        lines = [
            f"{self.documents:,} documents for {len(sizes)} topics: {sizes.min()} to {sizes.max()} a topic, median "
            f"{np.median(sizes):g}; if all runs agreed {low:,}, if none did {high:,}",
            f"about {self.hours:,.1f} hours at {self.seconds:g} seconds a judgment",
            f"two runs share {self.mean_overlap:.0%} of what they return together; the {len(self.runs)} runs are as "
            f"diverse as {self.diversity:.1f} that share nothing",
        ]
        rows = [["run", "depth", "returned", "unique", "unique %", "nearest run", "overlap"]]
        table = np.array(self.overlap)
        np.fill_diagonal(table, -1)
        for i, run in enumerate(self.runs):
            returned, alone = self.contributed[run], self.unique[run]
            near = int(table[i].argmax())
            closest = [self.runs[near], f"{table[i, near]:.2f}"] if len(self.runs) > 1 else ["-", "-"]
            share = f"{alone / returned:.1%}" if returned else "-"
            rows.append([run, str(self.depths[i]), str(returned), str(alone), share, *closest])
        return "\n".join([*lines, "", *aligned(rows, 1)])


def statistics(rankings: Rankings, seconds: float = SECONDS) -> PoolStatistics:
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

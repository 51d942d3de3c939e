"""The figures that lectures tabulate of a collection, with their distributions.

A term is a run of letters and digits, in lower case; nothing is stemmed and no stop word is left out, so that the figures
depend on no list. Published means are often of distinct stems without stop words, and lower.
"""

from __future__ import annotations

import os
import re
from array import array
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cranfield.answer import Answer, Drawing, Layout
from cranfield.formats.folder import DOCUMENTS, file_in, read_collection, read_documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.collection import Collection
    from cranfield.formats.folder import Progress


WORD = re.compile(r"[^\W_]+")
BINS = 12
BAR_WIDTH = 40  # characters of the longest bar


@dataclass(frozen=True)
class Distribution:
    """How a count is spread: its mean and quantiles, and how many lie in each bin."""

    name: str
    unit: str
    values: npt.NDArray[np.int64]

    @property
    def mean(self) -> float:
        """The mean, 0 of nothing."""
        return float(self.values.mean()) if len(self.values) else 0.0

    def quantiles(self) -> dict[str, float]:
        """Minimum, quartiles and maximum."""
        names = ("minimum", "lower quartile", "median", "upper quartile", "maximum")
        if not len(self.values):
            return dict.fromkeys(names, 0.0)
        return dict(zip(names, np.quantile(self.values, (0, 0.25, 0.5, 0.75, 1)).tolist(), strict=True))

    def bins(self) -> list[tuple[int, int, int]]:
        """First value, last value and how many, for bins of equal and round width; the last takes all that is beyond.

        >>> Distribution("relevant", "topics", np.array([1, 1, 2, 5])).bins()
        [(1, 1, 2), (2, 2, 1), (3, 3, 0), (4, 4, 0), (5, 5, 1)]
        """
        if not len(self.values):
            return []
        low, high = int(self.values.min()), int(self.values.max())
        if high - low > BINS:  # a few far out would leave the others in one bin
            high = int(np.quantile(self.values, 0.99))
        width = _round(max((max(high, low) - low) // BINS + 1, 1))
        start = low if width == 1 else low // width * width
        edges = list(range(start, max(high, low) + 1, width))
        place = np.minimum((self.values - start) // width, len(edges) - 1)
        counts = np.bincount(place, minlength=len(edges)).tolist()
        ends = [*(edge + width - 1 for edge in edges[:-1]), max(int(self.values.max()), edges[-1])]
        return list(zip(edges, ends, counts, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        bins = [{"from": first, "to": last, "count": count} for first, last, count in self.bins()]
        return {"mean": self.mean, **self.quantiles(), "bins": bins}

    def drawing(self) -> Drawing:
        """A histogram in characters."""
        bins = self.bins()
        most = max((count for _, _, count in bins), default=0) or 1
        labels = [f"{first:,}" if first == last else f"{first:,}–{last:,}" for first, last, _ in bins]
        wide = max(map(len, labels), default=0)
        lines = []
        for label, (_, _, count) in zip(labels, bins, strict=True):
            bar = "█" * round(BAR_WIDTH * count / most) or ("▏" if count else "")
            lines.append(f"  {label:>{wide}}  {bar:<{BAR_WIDTH}} {count:,}".rstrip())
        return Drawing(f"{self.name} ({self.unit})", lines)


@dataclass(frozen=True, repr=False)
class CollectionStats(Answer):
    """What a collection holds, in figures."""

    name: str
    documents: int
    topics: int
    megabytes: float
    terms: int
    distinct: float  # different terms of a document, on average
    judgments: int
    judged_topics: int
    relevant: int
    grades: dict[float, int]
    labels: dict[float, str]
    distributions: dict[str, Distribution]

    def figures(self) -> dict[str, Any]:
        """One name and value a line: what a row of the table of collections holds."""
        judged = max(self.judged_topics, 1)
        return {
            "documents": self.documents,
            "topics": self.topics,
            "judged topics": self.judged_topics,
            "size in MB": round(self.megabytes, 2),
            "terms per document": round(self.terms / max(self.documents, 1), 1),
            "distinct terms per document": round(self.distinct, 1),
            "terms per topic": round(self.distributions["topic lengths"].mean, 1),
            "judgments": self.judgments,
            "judgments per topic": round(self.judgments / judged, 1),
            "relevant": self.relevant,
            "relevant per topic": round(self.relevant / judged, 1),
        }

    def content(self, how: Layout) -> Iterator[Drawing]:
        """The figures, the grades and a histogram of each distribution."""
        figures = {name: f"{value:,}" for name, value in self.figures().items()}
        wide = max(map(len, figures))
        yield Drawing(self.name, [f"  {name:<{wide}}  {value:>12}" for name, value in figures.items()])
        if self.grades:
            named = [(f"{grade:g} {self.labels.get(grade, '')}".rstrip(), n) for grade, n in self.grades.items()]
            yield Drawing("judgments by grade", [f"  {name:<{wide}}  {n:>12,}" for name, n in reversed(named)])
        yield from (one.drawing() for one in self.distributions.values() if len(one.values))

    def plain(self, how: Layout) -> dict[str, Any]:
        grades = [
            {"grade": grade, "label": self.labels.get(grade, ""), "judgments": n} for grade, n in self.grades.items()
        ]
        return {
            "name": self.name,
            **{name.replace(" ", "_"): value for name, value in self.figures().items()},
            "grades": grades,
            "distributions": {name.replace(" ", "_"): one.to_dict() for name, one in self.distributions.items()},
        }

    def records(self, how: Layout) -> Iterator[tuple[str, Any]]:
        """Name and value of each figure, the grades included."""
        yield "figure", "value"
        yield from self.figures().items()
        yield from ((f"judgments of grade {grade:g}", n) for grade, n in self.grades.items())


def stats(collection: Collection | str, progress: Progress = None) -> CollectionStats:
    """Count what is in a collection; its documents are read once."""
    opened = read_collection(collection) if isinstance(collection, str) else collection
    lengths, distinct = _lengths(opened, progress)
    qrels = opened.qrels
    relevant = qrels.grade >= opened.relevant_from
    judged = np.bincount(qrels.topic, minlength=len(qrels.topics))
    per_topic = np.bincount(qrels.topic[relevant], minlength=len(qrels.topics))
    topics = [len(WORD.findall(topic.title)) for topic in opened.topics]
    return CollectionStats(
        opened.name,
        len(lengths),
        len(opened.topics),
        _size(opened) / 1e6,
        int(lengths.sum()),
        distinct,
        len(qrels),
        len(qrels.topics),
        int(relevant.sum()),
        dict(sorted(Counter(qrels.grade.tolist()).items())),
        {grade: each.label for grade, each in opened.grades.items() if each.label},
        {
            "document lengths": Distribution("terms per document", "documents", lengths),
            "topic lengths": Distribution("terms per topic", "topics", np.array(topics, np.int64)),
            "judged": Distribution("judgments per topic", "topics", judged),
            "relevant": Distribution("relevant documents per topic", "topics", per_topic),
        },
    )


def _lengths(collection: Collection, progress: Progress) -> tuple[Any, float]:
    lengths = array("q")
    different = 0
    for document in read_documents(collection, progress):
        words = WORD.findall(f"{document.title} {document.text}".lower())
        lengths.append(len(words))
        different += len(set(words))
    return np.array(lengths, np.int64), different / max(len(lengths), 1)


def _size(collection: Collection) -> float:
    path = None if collection.path is None else file_in(collection.path, DOCUMENTS)
    return os.path.getsize(path) if path is not None and os.path.exists(path) else 0.0


def _round(width: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50 …"""
    steps = (step * 10**power for power in range(12) for step in (1, 2, 5))
    return next((step for step in steps if step >= width), width)

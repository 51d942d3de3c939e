"""Describe a collection: its summary and single topics or documents, its statistics, and the difference of two collections.

A term is a run of letters and digits, in lower case; nothing is stemmed and no stop word is left out, so that the figures
depend on no list. Published means are often of distinct stems without stop words, and lower.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from array import array
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cranfield.base.errors import DataError, TopicError
from cranfield.base.results import Answer, Drawing, Layout, Lines, Part
from cranfield.formats.collection_folder import DOCUMENTS, file_in, read_collection, read_documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cranfield.base.collection import Collection
    from cranfield.formats.collection_folder import Progress


SHOWN = 5
UNJUDGED = "not judged"


@dataclass(frozen=True)
class CollectionChanges:
    """The documents, topics or judgments that were added, removed or changed."""

    what: str
    added: list[str]
    removed: list[str]
    changed: list[str]
    same: int

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**self.ids(), "same": self.same}

    def ids(self) -> dict[str, list[str]]:
        """The ids that were added, removed and changed."""
        return {"added": self.added, "removed": self.removed, "changed": self.changed}

    def __bool__(self) -> bool:
        return any(self.ids().values())


@dataclass(frozen=True, repr=False)
class CollectionDiff(Answer):
    """The difference between two collections, seen from the first."""

    a: str
    b: str
    documents: CollectionChanges
    topics: CollectionChanges
    judgments: CollectionChanges
    grades: dict[tuple[str, str], int] = field(default_factory=dict)  # (grade in a, grade in b) → judgments
    settings: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any((*self.parts, self.settings))

    @property
    def parts(self) -> tuple[CollectionChanges, CollectionChanges, CollectionChanges]:
        """The changes of documents, topics and judgments."""
        return self.documents, self.topics, self.judgments

    def content(self, how: Layout) -> Iterator[Drawing]:
        """One line per kind with the first ids, and a table of old grades against new ones."""
        lines = [f"{'':<10}  {'added':>9}  {'removed':>9}  {'changed':>9}  {'same':>9}"]
        for each in self.parts:
            counts = (len(each.added), len(each.removed), len(each.changed), each.same)
            lines.append(f"{each.what + 's':<10}" + "".join(f"  {n:>9,}" for n in counts))
        for each in self.parts:
            for change, ids in each.ids().items():
                if ids:
                    lines.append(f"{each.what}s {change}: {', '.join(ids[:SHOWN])}{' …' if len(ids) > SHOWN else ''}")
        lines += [f"{key}: {a!r} → {b!r}" for key, (a, b) in self.settings.items()]
        yield Drawing(f"{self.a} → {self.b}", lines)
        if any(a != b for a, b in self.grades):
            before, after = (sorted({pair[i] for pair in self.grades}, key=_by_number) for i in (0, 1))
            wide = max(9, *map(len, (*before, *after)))
            rows = [[a, *(f"{self.grades.get((a, b), 0):,}" for b in after)] for a in before]
            matrix = ["  ".join(f"{cell:>{wide}}" for cell in row) for row in (["", *after], *rows)]
            yield Drawing("judgments by grade: rows before, columns after", matrix)

    def plain(self, how: Layout) -> dict[str, Any]:
        return {
            "a": self.a,
            "b": self.b,
            **{f"{each.what}s": each.to_dict() for each in self.parts},
            "grades": [{"a": a, "b": b, "judgments": n} for (a, b), n in self.grades.items()],
            "settings": {key: {"a": a, "b": b} for key, (a, b) in self.settings.items()},
        }

    def records(self, how: Layout) -> Iterator[tuple[str, str, str]]:
        """One row per difference: what changed, how, and its id."""
        yield "what", "change", "id"
        for each in self.parts:
            yield from ((each.what, change, name) for change, ids in each.ids().items() for name in ids)


def _by_number(grade: str) -> tuple[bool, float]:
    return (False, 0.0) if grade == UNJUDGED else (True, float(grade))


def diff(a: Collection | str, b: Collection | str, progress: Progress = None) -> CollectionDiff:
    """Compare two collections by the ids of their documents, topics and judgments."""
    both = [read_collection(one) if isinstance(one, str) else one for one in (a, b)]
    first, second = both
    documents = _compared("document", *(_documents(one, progress) for one in both))
    judged = [_judgments(one) for one in both]
    names = (first.name, second.name) if first.name != second.name else (first.path or "a", second.path or "b")
    before, after = map(_settings, both)
    settings = {key: (value, after[key]) for key, value in before.items() if value != after[key]}
    topics, judgments = _compared("topic", *map(_topics, both)), _compared("judgment", *judged)
    return CollectionDiff(*names, documents, topics, judgments, _matrix(*judged), settings)


def _compared(what: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> CollectionChanges:
    return CollectionChanges(
        what,
        [name for name in b if name not in a],
        [name for name in a if name not in b],
        [name for name in a if name in b and a[name] != b[name]],
        sum(name in b and a[name] == b[name] for name in a),
    )


def _documents(collection: Collection, progress: Progress) -> dict[str, bytes]:
    """A short digest of each document: two collections of a million fit into memory."""
    return {each.id: _key(each.title, each.text, each.fields) for each in read_documents(collection, progress)}


def _topics(collection: Collection) -> dict[str, bytes]:
    return {each.id: _key(each.title, each.description, each.narrative, each.fields) for each in collection.topics}


def _key(*parts: Any) -> bytes:
    text = json.dumps(parts, sort_keys=True, default=dict)
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def _judgments(collection: Collection) -> dict[str, float]:
    return {
        f"{topic} {document}": grade
        for topic, documents in collection.qrels.to_dict().items()
        for document, grade in documents.items()
    }


def _matrix(a: Mapping[str, float], b: Mapping[str, float]) -> dict[tuple[str, str], int]:
    def shown(judged: Mapping[str, float], name: str) -> str:
        return f"{judged[name]:g}" if name in judged else UNJUDGED

    counts = Counter((shown(a, name), shown(b, name)) for name in {**a, **b})
    return dict(sorted(counts.items(), key=lambda item: tuple(map(_by_number, item[0]))))


def _settings(collection: Collection) -> dict[str, Any]:
    labels = {f"{grade:g}": each.label for grade, each in collection.grades.items()}
    conventions = collection.meta.get("conventions", {})
    return {"relevant_from": collection.relevant_from, "grades": labels, "conventions": conventions}


FIRST = ("title", "description", "licence", "provenance", "catalogue")


class CollectionSummary(Answer, dict[str, Any]):
    """Names and values of a summary; a value that is a mapping is a section."""

    def content(self, how: Layout) -> Iterator[Part]:
        """One line per value, one block per section; empty values are left out."""
        blocks: list[tuple[str, list[str]]] = [("", [])]
        for key, value in self.items():
            if isinstance(value, dict) and value:
                blocks.append((key, [f"  {name}: {_line(each)}" for name, each in value.items()]))
            elif value not in (None, "", [], {}):
                blocks[-1][1].append(f"{key}: {_line(value)}")
        return (Drawing(lead, lines) if lead else Lines(lines) for lead, lines in blocks)

    def plain(self, how: Layout) -> dict[str, Any]:
        return dict(self)

    def records(self, how: Layout) -> Iterator[tuple[str, str]]:
        """One row per value."""
        yield "name", "value"
        yield from ((key, _line(value)) for key, value in self.items())


def _line(value: Any) -> str:
    if isinstance(value, dict):
        parts = {key: _line(each) for key, each in value.items() if each}
        return "; ".join(text if key == "label" else f"{key}: {text}" for key, text in parts.items())
    if isinstance(value, list):
        return ", ".join(map(_line, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def show(collection: Collection) -> CollectionSummary:
    """Name, origin, conventions, counts, and the grades with their meanings."""
    meta = collection.meta
    counts = {"documents": collection.n_documents, "topics": len(collection.topics), "judgments": len(collection.qrels)}
    if collection.subtopics is not None:
        counts["judgments by subtopic"] = len(collection.subtopics)
    grades = {f"{grade:g}": asdict(each) for grade, each in sorted(collection.grades.items(), reverse=True)}
    others = {key: value for key, value in meta.items() if key not in (*FIRST, "name", "grades", "counts", "hashes")}
    head = {"name": collection.name, **{key: meta[key] for key in FIRST if key in meta}}
    judged = {"relevant from": collection.relevant_from, "counts": counts, "grades": grades}
    return CollectionSummary({**head, **judged, **others})


def show_topic(collection: Collection, identifier: str) -> CollectionSummary:
    """One topic in full, and how its documents were judged."""
    topic = next((one for one in collection.topics if one.id == identifier), None)
    if topic is None:
        raise TopicError(f"{collection.name}: no topic {identifier!r}; it has {len(collection.topics):,} others")
    judged = collection.qrels[identifier] if identifier in collection.qrels.topics else {}
    by_grade: dict[str, list[str]] = {}
    for document, grade in sorted(judged.items(), key=lambda item: -item[1]):
        by_grade.setdefault(f"{grade:g}", []).append(document)
    texts = {"description": topic.description, "narrative": topic.narrative}
    return CollectionSummary({"id": topic.id, "title": topic.title, **texts, **topic.fields, "judgments": by_grade})


def show_document(collection: Collection, identifier: str) -> CollectionSummary:
    """One document in full; the documents before it are read too."""
    for document in collection.documents():
        if document.id == identifier:
            head = {"id": document.id, "title": document.title, "text": document.text}
            return CollectionSummary({**head, **document.fields})
    raise DataError(f"{collection.name}: no document {identifier!r} among {collection.n_documents:,}")


WORD = re.compile(r"[^\W_]+")
BINS = 12
BAR_WIDTH = 40  # characters of the longest bar


@dataclass(frozen=True)
class Distribution:
    """The distribution of a count: mean, quantiles and histogram."""

    name: str
    unit: str
    values: npt.NDArray[np.int64]

    @property
    def mean(self) -> float:
        """The mean; 0 without values."""
        return float(self.values.mean()) if len(self.values) else 0.0

    def quantiles(self) -> dict[str, float]:
        """Minimum, quartiles and maximum."""
        names = ("minimum", "lower quartile", "median", "upper quartile", "maximum")
        if not len(self.values):
            return dict.fromkeys(names, 0.0)
        return dict(zip(names, np.quantile(self.values, (0, 0.25, 0.5, 0.75, 1)).tolist(), strict=True))

    def bins(self) -> list[tuple[int, int, int]]:
        """First value, last value and count of each bin; bins have equal, round widths; the last has all larger values.

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
    """The statistics of a collection."""

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
        """Names and values: a row in a table of collections."""
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
    """Compute the statistics of a collection; its documents are read once."""
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

"""How two collections differ: what was added, removed or changed, and which grades became which."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Drawing, Layout
from cranfield.formats.folder import read_collection, read_documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cranfield.collection import Collection
    from cranfield.formats.folder import Progress


SHOWN = 5
UNJUDGED = "not judged"


@dataclass(frozen=True)
class Changes:
    """What became of one kind of thing."""

    what: str
    added: list[str]
    removed: list[str]
    changed: list[str]
    same: int

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**self.ids(), "same": self.same}

    def ids(self) -> dict[str, list[str]]:
        """Which were added, removed and changed."""
        return {"added": self.added, "removed": self.removed, "changed": self.changed}

    def __bool__(self) -> bool:
        return any(self.ids().values())


@dataclass(frozen=True, repr=False)
class CollectionDiff(Answer):
    """The difference between two collections, seen from the first."""

    a: str
    b: str
    documents: Changes
    topics: Changes
    judgments: Changes
    grades: dict[tuple[str, str], int] = field(default_factory=dict)  # (grade in a, grade in b) → judgments
    settings: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any((*self.parts, self.settings))

    @property
    def parts(self) -> tuple[Changes, Changes, Changes]:
        """Of documents, topics and judgments."""
        return self.documents, self.topics, self.judgments

    def content(self, how: Layout) -> Iterator[Drawing]:
        """A line a kind, the first few of each, and the grades of the one against the other's."""
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
        """What, how and which, for every single difference."""
        yield "what", "change", "id"
        for each in self.parts:
            yield from ((each.what, change, name) for change, ids in each.ids().items() for name in ids)


def _by_number(grade: str) -> tuple[bool, float]:
    return (False, 0.0) if grade == UNJUDGED else (True, float(grade))


def diff(a: Collection | str, b: Collection | str, progress: Progress = None) -> CollectionDiff:
    """Compare two collections by the ids of their documents, topics and judgments."""
    first, second = (read_collection(one) if isinstance(one, str) else one for one in (a, b))
    documents = [_documents(one, progress) for one in (first, second)]
    topics = [
        {topic.id: _key(topic.title, topic.description, topic.narrative, topic.fields) for topic in one.topics}
        for one in (first, second)
    ]
    judged = [_judgments(one) for one in (first, second)]
    names = (first.name, second.name) if first.name != second.name else (first.path or "a", second.path or "b")
    settings = {
        key: (value, other)
        for key, value, other in (
            ("relevant_from", first.relevant_from, second.relevant_from),
            ("grades", _labels(first), _labels(second)),
            ("conventions", first.meta.get("conventions", {}), second.meta.get("conventions", {})),
        )
        if value != other
    }
    return CollectionDiff(
        *names,
        _compared("document", *documents),
        _compared("topic", *topics),
        _compared("judgment", *judged),
        _matrix(*judged),
        settings,
    )


def _compared(what: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Changes:
    return Changes(
        what,
        [name for name in b if name not in a],
        [name for name in a if name not in b],
        [name for name in a if name in b and a[name] != b[name]],
        sum(name in b and a[name] == b[name] for name in a),
    )


def _documents(collection: Collection, progress: Progress) -> dict[str, bytes]:
    """A short digest of each document: two collections of a million fit into memory."""
    documents = read_documents(collection, progress)
    return {each.id: _key(each.title, each.text, each.fields) for each in documents}


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
    counts: dict[tuple[str, str], int] = {}
    for name in dict.fromkeys([*a, *b]):
        pair = (f"{a[name]:g}" if name in a else UNJUDGED, f"{b[name]:g}" if name in b else UNJUDGED)
        counts[pair] = counts.get(pair, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: tuple(map(_by_number, item[0]))))


def _labels(collection: Collection) -> dict[str, str]:
    return {f"{grade:g}": each.label for grade, each in collection.grades.items()}

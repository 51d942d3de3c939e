"""A collection in its own words: what collection.toml says, with counts; one topic with its judgments; one document."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Drawing, Layout, Lines, Part
from cranfield.errors import DataError, TopicError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.collection import Collection


FIRST = ("title", "description", "licence", "provenance", "catalogue")


class Shown(Answer, dict[str, Any]):
    """Names and values; a mapping among them is a section."""

    def content(self, how: Layout) -> Iterator[Part]:
        """A line a value, a block a section; what is empty is left out."""
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
        """One row a value."""
        yield "name", "value"
        yield from ((key, _line(value)) for key, value in self.items())


def _line(value: Any) -> str:
    if isinstance(value, dict):
        shown = {key: _line(each) for key, each in value.items() if each}
        return "; ".join(text if key == "label" else f"{key}: {text}" for key, text in shown.items())
    if isinstance(value, list):
        return ", ".join(map(_line, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def show(collection: Collection) -> Shown:
    """Name, origin, conventions, counts, and the grades with their meanings."""
    meta = collection.meta
    counts = {"documents": collection.n_documents, "topics": len(collection.topics), "judgments": len(collection.qrels)}
    if collection.subtopics is not None:
        counts["judgments by subtopic"] = len(collection.subtopics)
    grades = {f"{grade:g}": asdict(each) for grade, each in sorted(collection.grades.items(), reverse=True)}
    others = {key: value for key, value in meta.items() if key not in (*FIRST, "name", "grades", "counts", "hashes")}
    known = {"name": collection.name, **{key: meta[key] for key in FIRST if key in meta}}
    return Shown({**known, "relevant from": collection.relevant_from, "counts": counts, "grades": grades, **others})


def show_topic(collection: Collection, identifier: str) -> Shown:
    """One topic in full, and how its documents were judged."""
    topic = next((one for one in collection.topics if one.id == identifier), None)
    if topic is None:
        raise TopicError(f"{collection.name}: no topic {identifier!r}; it has {len(collection.topics):,} others")
    judged = collection.qrels[identifier] if identifier in collection.qrels.topics else {}
    by_grade: dict[str, list[str]] = {}
    for document, grade in sorted(judged.items(), key=lambda item: -item[1]):
        by_grade.setdefault(f"{grade:g}", []).append(document)
    texts = {"description": topic.description, "narrative": topic.narrative}
    return Shown({"id": topic.id, "title": topic.title, **texts, **topic.fields, "judgments": by_grade})


def show_document(collection: Collection, identifier: str) -> Shown:
    """One document in full; they are read up to it."""
    for document in collection.documents():
        if document.id == identifier:
            return Shown({"id": document.id, "title": document.title, "text": document.text, **document.fields})
    raise DataError(f"{collection.name}: no document {identifier!r} among {collection.n_documents:,}")

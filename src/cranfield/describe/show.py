"""A collection in its own words: what collection.toml says, with counts; one topic with its judgments; one document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError, TopicError

if TYPE_CHECKING:
    from cranfield.collection import Collection


FIRST = ("title", "description", "licence", "provenance", "catalogue")


def show(collection: Collection) -> dict[str, Any]:
    """Name, origin, conventions, counts, and the grades with their meanings."""
    meta = collection.meta
    counts = {"documents": collection.n_documents, "topics": len(collection.topics), "judgments": len(collection.qrels)}
    if collection.subtopics is not None:
        counts["judgments by subtopic"] = len(collection.subtopics)
    grades = {
        f"{grade:g}": {"label": said.label, "meaning": said.meaning}
        for grade, said in sorted(collection.grades.items(), reverse=True)
    }
    others = {key: value for key, value in meta.items() if key not in (*FIRST, "name", "grades", "counts", "hashes")}
    return {
        "name": collection.name,
        **{key: meta[key] for key in FIRST if key in meta},
        "relevant from": collection.relevant_from,
        "counts": counts,
        "grades": grades,
        **others,
    }


def show_topic(collection: Collection, identifier: str) -> dict[str, Any]:
    """One topic in full, and how its documents were judged."""
    topic = next((one for one in collection.topics if one.id == identifier), None)
    if topic is None:
        raise TopicError(f"{collection.name}: no topic {identifier!r}; it has {len(collection.topics):,} others")
    judged = collection.qrels[identifier] if identifier in collection.qrels.topics else {}
    by_grade: dict[str, list[str]] = {}
    for document, grade in sorted(judged.items(), key=lambda item: -item[1]):
        by_grade.setdefault(f"{grade:g}", []).append(document)
    texts = {"description": topic.description, "narrative": topic.narrative}
    return {"id": topic.id, "title": topic.title, **texts, **topic.fields, "judgments": by_grade}


def show_document(collection: Collection, identifier: str) -> dict[str, Any]:
    """One document in full; they are read up to it."""
    for document in collection.documents():
        if document.id == identifier:
            return {"id": document.id, "title": document.title, "text": document.text, **document.fields}
    raise DataError(f"{collection.name}: no document {identifier!r} among {collection.n_documents:,}")

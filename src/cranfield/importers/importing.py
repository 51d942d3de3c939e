"""A collection from somebody's layout into a folder of ours, with every decision on the way written down.

What a source leaves open is settled here, and recorded in collection.toml under [conventions]: how topics are
numbered, what a grade is worth. Documents are never held: they run from the source through a check for
repeated ids into the folder. Eight bytes a document are kept for that check.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.catalogue import CATALOGUE, recognised
from cranfield.collection import Grade, Qrels, Topic
from cranfield.columns import counted
from cranfield.errors import BadLineError, ConventionError, DataError
from cranfield.formats.by_text import joined_in_words, qrels_by_id
from cranfield.formats.folder import hash_of, write_collection
from cranfield.formats.grades import grade_map
from cranfield.formats.named import OF_TOPICS
from cranfield.formats.reading import read_qrels
from cranfield.formats.tables import Dialect
from cranfield.importers.registry import open_source, open_topics
from cranfield.importers.source import Files, Options, without_zeros
from cranfield.kernels import decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.collection import Collection, Document, Duplicates
    from cranfield.formats.folder import Progress
    from cranfield.importers.source import Source

GRADES = {
    "cranfield-corrected": "5 - code, and 5 for the source paper (-1): 1 best … 4 becomes 4 best … 1",
    "binary": "1 for every code above 0, 0 for the others (-1 too)",
    "raw": "as they stand in the files",
}
TOPIC_IDS = {
    "given": "the ids in the topics' file",
    "ordinal": "1, 2, 3 … by position in the topics' file",
}
FIELDS = dict.fromkeys(("id", "title", "text", "topic", *OF_TOPICS, "document", "grade", "iteration"), "")
CODES = frozenset((-1.0, 1.0, 2.0, 3.0, 4.0, 5.0))  # what the judgments of Cranfield may hold
CRANFIELD_GRADES: dict[float, Grade] = {
    5: Grade(
        "source paper", "The paper that the question came from; marked -1 in the original, without a word about it."
    ),
    4: Grade("complete answer", "References which are a complete answer to the question."),
    3: Grade(
        "highly relevant",
        "References of a high degree of relevance, the lack of which either would have made the research impracticable "
        "or would have resulted in a considerable amount of extra work.",
    ),
    2: Grade(
        "useful",
        "References which were useful, as general background or as suggesting methods of tackling certain aspects.",
    ),
    1: Grade(
        "minimum interest", "References of minimum interest, for example those included from an historical viewpoint."
    ),
    0: Grade("of no interest", "References of no interest; none is in the judgments."),
}
TWO: dict[float, Grade] = {1: Grade("relevant", ""), 0: Grade("not relevant", "")}
MANY = 20  # source files that are listed by name


@dataclass(frozen=True)
class Imported:
    """The new collection, the layout it was in, and what was noticed on the way."""

    collection: Collection
    layout: str
    notes: list[str] = field(default_factory=list)


def import_collection(
    source: str | os.PathLike[str],
    dest: str | os.PathLike[str],
    *,
    layout: str | None = None,
    grades: str | Mapping[float, float] | None = None,
    topic_ids: str | None = None,
    relevant_from: float = 1,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    lenient: bool = False,
    duplicates: Duplicates = "error",
    ignore_case: bool = False,
    split: str | None = None,
    fields: Mapping[str, str] | None = None,
    files: Files | None = None,
    subtopics: str | None = None,
    strict: bool = False,
    meta: Mapping[str, Any] | None = None,
    progress: Progress = None,
) -> Imported:
    """Read a collection in any known layout and write it as a folder, which must not exist yet.

    `layout`, `grades` and `topic_ids` default to what the files look like. `files` overrules which files are read,
    `meta` says what is known besides: name, title, licence, provenance. `strict` refuses what circulates otherwise than its
    layout has it and would be read with a note. `grades` may also say what each grade counts as: {1: 0, 2: 0, 3: 1}, or
    "1=0,2=0,3=1". `delimiter`, `encoding`, `decimal`, `lenient` and `duplicates` are those of `read_qrels`; `ignore_case`
    joins judgments by the text of a query in upper or lower case.
    """
    by_grade = grade_map(grades) if isinstance(grades, Mapping) or (grades and "=" in grades) else None
    scale_name = None if by_grade is not None else grades
    _valid(scale_name, GRADES, "grades")  # type: ignore[arg-type]
    _valid(topic_ids, TOPIC_IDS, "topic ids")
    for ours in fields or {}:
        _valid(ours, FIELDS, "field")
    if os.path.lexists(dest):
        raise DataError(f"{os.fspath(dest)}: exists already; nothing is overwritten, remove it or choose another name")
    dialect = Dialect(delimiter, encoding, decimal)
    options = Options(encoding, split, fields or {}, strict, dialect, lenient, duplicates, by_grade)
    read = open_source(os.fspath(source), layout, options, files)
    judged, by_subtopic = _divided(read.judgments(), subtopics)
    source_of_topics = open_topics(read, files)
    asked = _distinct(source_of_topics, read)
    judged, by_subtopic = (_by_id(qrels, asked, read.notes, ignore_case, duplicates) for qrels in (judged, by_subtopic))
    topics, numbering = _numbered(asked, judged, topic_ids or read.topic_ids, read.notes)
    judged, scale, labels = _graded(judged, "raw" if by_grade else str(scale_name or read.grades), read)
    if by_grade:
        scale = ", ".join(f"{theirs:g}={ours:g}" for theirs, ours in by_grade.items())
    if read.judged_only and judged is not None:
        topics = _judged_only(topics, judged, read.notes)
    watched = _Watched(read, set() if judged is None else set(judged.documents))
    conventions = {
        "grades": scale,
        "topic_ids": numbering,
        "encoding": _encodings(read, source_of_topics),
        "split": split,
    }
    collection = write_collection(
        dest,
        watched,
        topics,
        judged,
        subtopics=by_subtopic,
        grades=labels,
        relevant_from=relevant_from,
        meta={**_known(read, os.fspath(dest)), **(meta or {}), **_source(read), "conventions": conventions},
        progress=progress,
    )
    return Imported(collection, read.name, [*read.notes, *watched.remarks()])


def _valid(given: str | None, known: Mapping[str, str], what: str) -> None:
    if given is not None and given not in known:
        raise ConventionError(f"{what} must be {', '.join(known)}, got {given!r}")


# topics


def _distinct(topics: Source, read: Source) -> list[Topic]:
    seen: dict[str, Topic] = {}
    if topics is not read:
        read.notes.append(f"the documents are {read.name} files, the topics {topics.name} files")
    for topic in topics.topics():
        if "\0" in topic.id:
            raise DataError(f"{', '.join(read.files.topics)}: expected ids without NUL, found topic {topic.id!r:.60}")
        if topic.id in seen:
            raise DataError(f"{', '.join(read.files.topics)}: topic {topic.id!r} occurs twice")
        seen[topic.id] = topic
    return list(seen.values())


def _numbered(topics: list[Topic], qrels: Qrels | None, wanted: str, notes: list[str]) -> tuple[list[Topic], str]:
    """The topics under the numbers that the judgments use, as far as that can be told, and which numbers these are."""
    judged = set() if qrels is None else set(qrels.topics)
    ids = {topic.id for topic in topics}
    if judged and not judged & ids and judged <= {without_zeros(each) for each in ids}:
        topics = [replace(topic, id=without_zeros(topic.id)) for topic in topics]
        ids = {topic.id for topic in topics}
        notes.append("the judgments number the topics without leading zeros; so do the topics now")
    by_position = {str(i) for i in range(1, len(topics) + 1)}
    if wanted == "auto":
        wanted = "ordinal" if judged and not judged <= ids and judged <= by_position else "given"
        if wanted == "ordinal":
            first = ", ".join(topic.id for topic in topics[:3])
            own = f"{first} … {topics[-1].id}" if len(topics) > 3 else "otherwise"
            notes.append(
                f"the judgments count the topics by position (1 … {len(topics)}), the topics' own ids run {own}: "
                "topics are numbered by position here, their own ids are kept as given_id (--topic-ids given joins by those)"
            )
    if wanted == "ordinal":
        return [_renumbered(topic, i) for i, topic in enumerate(topics, 1)], wanted
    stray = judged - ids
    if topics and stray:
        hint = "; all would fit by position: --topic-ids ordinal" if judged <= by_position else ""
        notes.append(f"{counted(len(stray), 'judged topic')} of {len(judged)} are not among the topics{hint}")
    return topics, wanted


def _renumbered(topic: Topic, position: int) -> Topic:
    if topic.id == str(position):
        return topic
    return replace(topic, id=str(position), fields={**topic.fields, "given_id": topic.id})


def _by_id(
    qrels: Qrels | None, topics: list[Topic], notes: list[str], ignore_case: bool, duplicates: Duplicates
) -> Qrels | None:
    """Judgments by the ids of their topics, where they go by what is asked."""
    queries = {topic.id: topic.title for topic in topics}
    joined = None if qrels is None else qrels_by_id(qrels, queries, ignore_case, duplicates)
    if qrels is None or joined is None:
        return qrels
    notes.append(joined_in_words(qrels.name, len(qrels.topics)))
    return joined


def _judged_only(topics: list[Topic], judged: Qrels, notes: list[str]) -> list[Topic]:
    wanted = set(judged.topics)
    kept = [topic for topic in topics if topic.id in wanted]
    if len(kept) < len(topics):
        notes.append(f"of {len(topics):,} topics {len(kept):,} are judged in this split; the others are left out")
    return kept


# judgments


def _divided(qrels: Qrels | None, path: str | None) -> tuple[Qrels | None, Qrels | None]:
    """Plain judgments, and those by subtopic if there are any: a document is as relevant as to its best subtopic."""
    by_subtopic = None if path is None else read_qrels(path)
    if qrels is not None and len(np.unique(qrels.index.first)) < len(qrels):
        if by_subtopic is not None:
            raise DataError(f"{path}: judgments by subtopic were found already, in the judgments")
        by_subtopic, qrels = qrels, None
    if qrels is None and by_subtopic is not None:
        best: dict[str, dict[str, float]] = {}
        rows = zip(by_subtopic.topic.tolist(), by_subtopic.documents, by_subtopic.grade.tolist(), strict=True)
        for t, document, grade in rows:
            known = best.setdefault(by_subtopic.topics[t], {})
            known[decode(document)] = max(grade, known.get(decode(document), grade))
        qrels = Qrels(best)
    return qrels, by_subtopic


def _graded(qrels: Qrels | None, wanted: str, read: Source) -> tuple[Qrels | None, str, dict[float, Grade]]:
    """The judgments on the scale that is wanted, its name, and what its grades mean."""
    if qrels is None:
        return None, "raw" if wanted == "auto" else wanted, {}
    values = set(qrels.grade.tolist())
    if wanted == "auto":
        reversed_ = -1.0 in values and len(values) > 2 and values <= CODES
        wanted = "cranfield-corrected" if reversed_ else "raw"
        if reversed_:
            read.notes.append(
                "the codes are Cranfield's, 1 for the best: they are turned round, 5 - code, and the source papers (-1) "
                "get 5 (--grades raw|binary does otherwise)"
            )
    if wanted == "raw":
        usual = {grade: each for grade, each in TWO.items() if grade in values or grade == 0}
        return qrels, wanted, read.labels() or (usual if values <= {0.0, 1.0} else {})
    if wanted == "binary":
        return _with_grades(qrels, (qrels.grade > 0).astype(float)), wanted, dict(TWO)
    if not values <= CODES:
        odd = ", ".join(f"{value:g}" for value in sorted(values - CODES)[:5])
        raise DataError(f"--grades cranfield-corrected: expected codes of -1 and 1 to 5, found {odd}")
    return _with_grades(qrels, np.where(qrels.grade < 0, 5, 5 - qrels.grade)), wanted, dict(CRANFIELD_GRADES)


def _with_grades(qrels: Qrels, grade: Any) -> Qrels:
    return Qrels(replace(qrels.table, value=grade))


# documents


class _Watched:
    """Documents on their way: the ids must be distinct, and what else is odd is counted."""

    def __init__(self, read: Source, judged: set[bytes]) -> None:
        self.read = read
        self.judged = judged
        self.empty: list[str] = []
        self.missing: set[str] = set()

    def __iter__(self) -> Iterator[Document]:
        keys = array("q")
        add, missing = keys.append, {decode(each) for each in self.judged}
        for document in self.read.documents():
            add(hash(document.id))
            if "\0" in document.id:
                files = ", ".join(self.read.files.documents)
                raise DataError(f"{files}: expected ids without NUL, found document {document.id!r:.60}")
            if document.id in missing:
                missing.discard(document.id)
            if not document.text and not document.title:
                self.empty.append(document.id)
            yield document
        self.missing = missing
        if not keys:
            raise DataError(f"{', '.join(self.read.files.documents)}: no documents")
        ordered = np.sort(np.frombuffer(keys, np.int64))
        again = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(again):
            self._refuse(set(again.tolist()))

    def _refuse(self, suspects: set[int]) -> None:
        """Read once more, for equal hashes are not yet equal ids."""
        files = ", ".join(self.read.files.documents)
        if not self.read.prefix and not all(map(os.path.isfile, self.read.files.documents)):
            raise DataError(f"{files}: a document's id occurs twice; a pipe is read once, so which is not known")
        seen: dict[str, int] = {}
        for number, document in enumerate(self.read.documents(), 1):
            if hash(document.id) in suspects:
                if document.id in seen:
                    again = f"document {document.id!r} occurs twice; it was document {seen[document.id]:,} already"
                    raise BadLineError(*(self.read.at or (files, number)), again)
                seen[document.id] = number

    def remarks(self) -> list[str]:
        """What was odd, in words."""
        odd = (
            (self.empty, "document", "without a word"),
            (sorted(self.missing), "judged document", "not among the documents"),
        )
        return [
            f"{counted(len(names), what)} {how}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}"
            for names, what, how in odd
            if names
        ]


# what is written down


def _known(read: Source, dest: str) -> dict[str, Any]:
    names = [*read.files] if read.prefix else [os.path.basename(path) for path in read.files]
    entry = CATALOGUE.get(recognised(read.name, names))
    known = {"name": os.path.basename(os.path.abspath(dest))}
    if entry is not None:
        known |= {"title": entry.title, "description": entry.about, "catalogue": entry.name}
    return {**known, "provenance": f"imported from {read.name} files", **read.told()}


def _encodings(read: Source, topics: Source) -> str:
    """The encodings that documents and topics are read in."""
    named = [read.encoding_of(path) for path in read.files.documents]
    named += [topics.encoding_of(path) for path in topics.files.topics]
    return ", ".join(dict.fromkeys(named)) or read.options.encoding or "utf-8"


def _source(read: Source) -> dict[str, Any]:
    paths = [path for path in dict.fromkeys(read.files) if os.path.isfile(path)]
    source: dict[str, Any] = {"layout": read.name}
    if len(paths) > MANY:
        source["n_files"] = len(paths)
    elif paths:
        source["files"] = {os.path.basename(path): hash_of(path) for path in paths}
    return {"source": source}

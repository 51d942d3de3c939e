"""Import a collection: read any known layout, write a folder, and record every decision.

Each decision that the source leaves open is recorded in collection.toml under [conventions]: how topics are numbered,
what a grade is worth. Documents stream from the source into the folder and are never all in memory; the check for
repeated ids keeps eight bytes per document.

Layouts are tried in order, and the first that recognises its files wins: specific layouts come first.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.collection import Grade, Topic
from cranfield.base.errors import BadLineError, ConventionError, DataError, FormatError
from cranfield.base.kernels import RowTable, decode
from cranfield.base.qrels import Qrels
from cranfield.base.registry import folded
from cranfield.base.text_layout import counted
from cranfield.formats.catalogue import CATALOGUE, recognised
from cranfield.formats.collection_folder import hash_of, write_collection
from cranfield.formats.csv_tables import Dialect
from cranfield.formats.grade_scales import grade_map
from cranfield.formats.importers.source import SOURCES, CollectionSource, Files, ImportOptions, without_zeros
from cranfield.formats.named_columns import OF_TOPICS
from cranfield.formats.runs_and_qrels import read_qrels
from cranfield.formats.topic_tables import joined_in_words, qrels_by_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cranfield.base.collection import Collection, Document
    from cranfield.base.qrels import Duplicates
    from cranfield.formats.collection_folder import Progress


def open_source(path: str, layout: str | None, options: ImportOptions, files: Files | None = None) -> CollectionSource:
    """The source at a path. `files` overrides which files are read, part by part."""
    candidates = _candidates(path, layout)
    identified = all(cls.prefix for cls in candidates)  # named by an identifier instead of a path
    if not identified:
        _refuse_path(path, layout)
    named = files if files is not None and files.documents else None
    for cls in candidates:
        own_files = Files([path]) if identified else cls.find(path, options)
        if own_files is not None:
            return cls(_overruled(own_files, files), options)
        if named is not None and cls.find(named.documents[0], options) is not None:
            return _beside(cls, path, named, options)
    exact = SOURCES.find(layout) if layout else None
    if exact is not None and named is not None:  # the user named the layout
        return _beside(exact, path, named, options)
    if exact is not None and not os.path.isdir(path):
        return exact(_overruled(Files([path]), files), options)
    layouts_tried = " or ".join(cls.name for cls in candidates) if layout else "any known layout"
    advice = "--from LAYOUT --documents-file FILE names the layout and the files"
    raise FormatError(f"{path}: not recognised as {layouts_tried} ({', '.join(SOURCES)}); {advice}")


def _beside(cls: type[CollectionSource], path: str, named: Files, options: ImportOptions) -> CollectionSource:
    """A source with the documents that the user named; topics and judgments come from the folder unless named too."""
    read = cls(_overruled(cls.rest(path, options) if os.path.isdir(path) else Files(), named), options)
    for what, option, own, paths in (
        ("topics", "--topics-file", named.topics, read.files.topics),
        ("judgments", "--qrels", named.qrels, read.files.qrels),
    ):
        if paths and not own:
            read.notes.append(f"{what} are taken from {', '.join(map(os.path.basename, paths))}, which lies in {path}")
        if not paths:
            read.notes.append(f"no {what} of {cls.name} files in {path}: {option} FILE names them")
    return read


def open_topics(read: CollectionSource, files: Files | None) -> CollectionSource:
    """The source of the topics: the same as of the documents, unless the user named a topics file of another layout.

    Some tracks distribute documents in CSV and topics in TREC's XML.
    """
    if files is None or not files.topics:
        return read
    for cls in reversed(list(SOURCES.values())):  # layouts recognised by content before those recognised by endings
        if all(map(cls.asks, files.topics)) and not (cls.endings and read.own_tables):
            return read if isinstance(read, cls) else cls(Files(topics=files.topics), read.options)
    return read


def _candidates(path: str, layout: str | None) -> Sequence[type[CollectionSource]]:
    marked = [cls for cls in SOURCES.values() if cls.prefix and path.startswith(cls.prefix)]
    if marked or layout is None:
        return marked or list(SOURCES.values())
    named = [cls for cls in SOURCES.values() if folded(layout) in (folded(cls.name), folded(cls.family))]
    return named or [SOURCES.look_up(layout)]


def _refuse_path(path: str, layout: str | None) -> None:
    if not os.path.exists(path):
        raise DataError(f"{path}: no such file or folder; a data set of ir_datasets is written ir_datasets:{path}")
    if layout is None and not (os.path.isfile(path) or os.path.isdir(path)):
        raise FormatError(f"{path}: a pipe can be read once only, so its layout is not detected; say it with --from")


def _overruled(detected: Files, named: Files | None) -> Files:
    if named is None:
        return detected
    unread = () if named.qrels else detected.unread
    return Files(
        named.documents or detected.documents, named.topics or detected.topics, named.qrels or detected.qrels, unread
    )


GRADES = {
    "cranfield-corrected": "5 - code, and 5 for the source paper (-1): 1 best … 4 becomes 4 best … 1",
    "binary": "1 for every code above 0, 0 for the others (-1 too)",
    "raw": "as they stand in the files",
}
TOPIC_IDS = {"given": "the ids in the topics' file", "ordinal": "1, 2, 3 … by position in the topics' file"}
FIELDS = dict.fromkeys(("id", "title", "text", "topic", *OF_TOPICS, "document", "grade", "iteration"), "")
CODES = frozenset((-1.0, 1.0, 2.0, 3.0, 4.0, 5.0))  # the codes of Cranfield's judgments
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
MANY = 20  # maximum number of source files that are listed by name


@dataclass(frozen=True)
class Imported:
    """The new collection, the layout of its source, and notes."""

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
    """Read a collection in any known layout and write it to a new folder.

    `layout`, `grades` and `topic_ids` are detected by default. `files` overrides which files are read, `meta` adds
    facts: name, title, licence, provenance. `strict` refuses deviations from the layout that are otherwise read with a
    note. `grades` may also map each grade: {1: 0, 2: 0, 3: 1}, or "1=0,2=0,3=1". `delimiter`, `encoding`, `decimal`,
    `lenient` and `duplicates` are those of `read_qrels`; `ignore_case` joins judgments by query text in any case.
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
    options = ImportOptions(encoding, split, fields or {}, strict, dialect, lenient, duplicates, by_grade)
    read = open_source(os.fspath(source), layout, options, files)
    judged, by_subtopic = _divided(read.judgments(), subtopics)
    source_of_topics = open_topics(read, files)
    distinct_topics = _distinct(source_of_topics, read)
    judged, by_subtopic = (
        _by_id(qrels, distinct_topics, read.notes, ignore_case, duplicates) for qrels in (judged, by_subtopic)
    )
    topics, numbering = _numbered(distinct_topics, judged, topic_ids or read.topic_ids, read.notes)
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
        meta={**_catalogue_facts(read, os.fspath(dest)), **(meta or {}), **_source(read), "conventions": conventions},
        progress=progress,
    )
    return Imported(collection, read.name, [*read.notes, *watched.remarks()])


def _valid(value: str | None, allowed: Mapping[str, str], what: str) -> None:
    if value is not None and value not in allowed:
        raise ConventionError(f"{what} must be {', '.join(allowed)}, got {value!r}")


# topics


def _distinct(topics: CollectionSource, read: CollectionSource) -> list[Topic]:
    by_id: dict[str, Topic] = {}
    if topics is not read:
        read.notes.append(f"the documents are {read.name} files, the topics {topics.name} files")
    for topic in topics.topics():
        if "\0" in topic.id:
            raise DataError(f"{', '.join(read.files.topics)}: expected ids without NUL, found topic {topic.id!r:.60}")
        if topic.id in by_id:
            raise DataError(f"{', '.join(read.files.topics)}: topic {topic.id!r} occurs twice")
        by_id[topic.id] = topic
    return list(by_id.values())


def _numbered(topics: list[Topic], qrels: Qrels | None, numbering: str, notes: list[str]) -> tuple[list[Topic], str]:
    """The topics with the numbering that the judgments use, if that can be detected, and the name of the numbering."""
    judged = set() if qrels is None else set(qrels.topics)
    ids = {topic.id for topic in topics}
    if judged and not judged & ids and judged <= {without_zeros(each) for each in ids}:
        topics = [replace(topic, id=without_zeros(topic.id)) for topic in topics]
        ids = {topic.id for topic in topics}
        notes.append("the judgments number the topics without leading zeros; so do the topics now")
    by_position = {str(i) for i in range(1, len(topics) + 1)}
    if numbering == "auto":
        numbering = "ordinal" if judged and not judged <= ids and judged <= by_position else "given"
        if numbering == "ordinal":
            first = ", ".join(topic.id for topic in topics[:3])
            own = f"{first} … {topics[-1].id}" if len(topics) > 3 else "otherwise"
            notes.append(
                f"the judgments count the topics by position (1 … {len(topics)}), the topics' own ids run {own}: "
                "topics are numbered by position here, their own ids are kept as given_id (--topic-ids given joins by those)"
            )
    if numbering == "ordinal":
        return [_renumbered(topic, i) for i, topic in enumerate(topics, 1)], numbering
    stray = judged - ids
    if topics and stray:
        hint = "; all would fit by position: --topic-ids ordinal" if judged <= by_position else ""
        notes.append(f"{counted(len(stray), 'judged topic')} of {len(judged)} are not among the topics{hint}")
    return topics, numbering


def _renumbered(topic: Topic, position: int) -> Topic:
    if topic.id == str(position):
        return topic
    return replace(topic, id=str(position), fields={**topic.fields, "given_id": topic.id})


def _by_id(
    qrels: Qrels | None, topics: list[Topic], notes: list[str], ignore_case: bool, duplicates: Duplicates
) -> Qrels | None:
    """Judgments with topic ids, if they name topics by query."""
    queries = {topic.id: topic.title for topic in topics}
    qrels_with_ids = None if qrels is None else qrels_by_id(qrels, queries, ignore_case, duplicates)
    if qrels is None or qrels_with_ids is None:
        return qrels
    notes.append(joined_in_words(qrels.name, len(qrels.topics)))
    return qrels_with_ids


def _judged_only(topics: list[Topic], judged: Qrels, notes: list[str]) -> list[Topic]:
    judged_ids = set(judged.topics)
    judged_topics = [topic for topic in topics if topic.id in judged_ids]
    if len(judged_topics) < len(topics):
        count = f"of {len(topics):,} topics {len(judged_topics):,} are judged in this split"
        notes.append(f"{count}; the others are left out")
    return judged_topics


# judgments


def _divided(qrels: Qrels | None, path: str | None) -> tuple[Qrels | None, Qrels | None]:
    """Plain judgments, and judgments by subtopic if there are any; the best subtopic decides a document's plain grade."""
    by_subtopic = None if path is None else read_qrels(path)
    if qrels is not None and len(np.unique(qrels.index.first)) < len(qrels):
        if by_subtopic is not None:
            raise DataError(f"{path}: judgments by subtopic were found already, in the judgments")
        by_subtopic, qrels = qrels, None
    if qrels is None and by_subtopic is not None:
        rows = by_subtopic.table
        qrels = Qrels(RowTable(rows.topics, rows.topic, rows.documents, rows.value), duplicates="best")
    return qrels, by_subtopic


def _graded(qrels: Qrels | None, scale: str, read: CollectionSource) -> tuple[Qrels | None, str, dict[float, Grade]]:
    """The judgments on the requested scale, the name of the scale, and the meanings of its grades."""
    if qrels is None:
        return None, "raw" if scale == "auto" else scale, {}
    values = set(qrels.grade.tolist())
    if scale == "auto":
        reversed_ = -1.0 in values and len(values) > 2 and values <= CODES
        scale = "cranfield-corrected" if reversed_ else "raw"
        if reversed_:
            read.notes.append(
                "the codes are Cranfield's, 1 for the best: they are turned round, 5 - code, and the source papers (-1) "
                "get 5 (--grades raw|binary does otherwise)"
            )
    if scale == "raw":
        usual = {grade: each for grade, each in TWO.items() if grade in values or grade == 0}
        return qrels, scale, read.labels() or (usual if values <= {0.0, 1.0} else {})
    if scale == "binary":
        return _with_grades(qrels, (qrels.grade > 0).astype(float)), scale, dict(TWO)
    if not values <= CODES:
        odd = ", ".join(f"{value:g}" for value in sorted(values - CODES)[:5])
        raise DataError(f"--grades cranfield-corrected: expected codes of -1 and 1 to 5, found {odd}")
    return _with_grades(qrels, np.where(qrels.grade < 0, 5, 5 - qrels.grade)), scale, dict(CRANFIELD_GRADES)


def _with_grades(qrels: Qrels, grade: Any) -> Qrels:
    return Qrels(replace(qrels.table, value=grade))


# documents


class _Watched:
    """Checks documents on their way into the folder: ids must be distinct; other oddities are counted."""

    def __init__(self, read: CollectionSource, judged: set[bytes]) -> None:
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
        """Read the documents again, because equal hashes do not prove equal ids."""
        files = ", ".join(self.read.files.documents)
        if not self.read.prefix and not all(map(os.path.isfile, self.read.files.documents)):
            raise DataError(f"{files}: a document's id occurs twice; a pipe is read once, so which is not known")
        first_rows: dict[str, int] = {}
        for number, document in enumerate(self.read.documents(), 1):
            if hash(document.id) in suspects:
                if document.id in first_rows:
                    first = f"it was document {first_rows[document.id]:,} already"
                    problem = f"document {document.id!r} occurs twice; {first}"
                    raise BadLineError(*(self.read.at or (files, number)), problem)
                first_rows[document.id] = number

    def remarks(self) -> list[str]:
        """The oddities in words."""
        odd = (
            (self.empty, "document", "without a word"),
            (sorted(self.missing), "judged document", "not among the documents"),
        )
        return [
            f"{counted(len(names), what)} {how}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}"
            for names, what, how in odd
            if names
        ]


# records for collection.toml


def _catalogue_facts(read: CollectionSource, dest: str) -> dict[str, Any]:
    names = [*read.files] if read.prefix else [os.path.basename(path) for path in read.files]
    entry = CATALOGUE.get(recognised(read.name, names))
    facts = {"name": os.path.basename(os.path.abspath(dest))}
    if entry is not None:
        facts |= {"title": entry.title, "description": entry.about, "catalogue": entry.name}
    return {**facts, "provenance": f"imported from {read.name} files", **read.metadata()}


def _encodings(read: CollectionSource, topics: CollectionSource) -> str:
    """The encodings that documents and topics are read in."""
    named = [read.encoding_of(path) for path in read.files.documents]
    named += [topics.encoding_of(path) for path in topics.files.topics]
    return ", ".join(dict.fromkeys(named)) or read.options.encoding or "utf-8"


def _source(read: CollectionSource) -> dict[str, Any]:
    paths = [path for path in dict.fromkeys(read.files) if os.path.isfile(path)]
    source: dict[str, Any] = {"layout": read.name}
    if len(paths) > MANY:
        source["n_files"] = len(paths)
    elif paths:
        source["files"] = {os.path.basename(path): hash_of(path) for path in paths}
    return {"source": source}

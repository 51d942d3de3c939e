"""A collection as a folder of plain files that people can read and keep under version control.

    documents.jsonl   {"id", "title", "text", …}, one document per line
    topics.jsonl      {"id", "title", "description", "narrative", …}
    qrels.txt         TREC's four columns: topic iteration document grade
    subtopics.txt     TREC's diversity qrels, if there are any: topic subtopic document grade
    collection.toml   name, title, licence, provenance, conventions, grades, aspects, card, counts and hashes

Documents are streamed in and out; the .jsonl and .txt files may be compressed (.gz, .zst, .xz, .bz2). A folder
is written under a temporary name and renamed when it is complete, so that a full disk or a killed
process leaves no incomplete collection.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

from cranfield.base import package_files
from cranfield.base.collection import Aspect, Collection, Document, Grade, Topic
from cranfield.base.errors import BadLineError, DataError
from cranfield.base.notifications import tell_writing, tell_written
from cranfield.base.parameters import real
from cranfield.base.qrels import Qrels
from cranfield.formats.files.trec import TREC
from cranfield.formats.format import whole
from cranfield.formats.streams import (
    COMPRESSED,
    json_rows,
    opened,
    plain_ending,
    read_errors,
    read_small,
    replacement,
    synced_file,
    write_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cranfield.base.card import CardTemplate

# called with the number of documents done and the total
Progress: TypeAlias = "Callable[[int, int | None], None] | None"

DOCUMENTS, TOPICS, QRELS = "documents.jsonl", "topics.jsonl", "qrels.txt"
SUBTOPICS, META = "subtopics.txt", "collection.toml"
STATE = ".cranfield"  # the folder of a workspace with what can be computed again
INSIDE = "collection"  # the folder of a workspace that may hold its collection
BUNDLED = package_files.folder("collections/bundled")
BARE = re.compile(r"[A-Za-z0-9_-]+\Z")  # a key that needs no quotes in TOML
ENCODE = json.JSONEncoder(ensure_ascii=False).encode
QUOTED = json.encoder.encode_basestring


# reading


def read_collection(path: str | os.PathLike[str]) -> Collection:
    """Open the collection in a folder, or the bundled collection of that name. Only collection.toml is read at once.

    >>> import tempfile
    >>> folder = os.path.join(tempfile.mkdtemp(), "toy")
    >>> _ = write_collection(folder, [Document("d1", text="wing flutter")], [Topic("q1", "flutter")], Qrels({}))
    >>> read_collection(folder)
    <Collection toy: 1 document, 1 topic, 0 judgments>
    """
    folder = folder_of(os.fspath(path))
    meta = _meta(os.path.join(folder, META))
    name = str(meta.get("name") or os.path.basename(os.path.abspath(folder)))
    grades, relevant_from = _grades(meta, os.path.join(folder, META))
    n_documents = meta.get("counts", {}).get("documents")
    return Collection(
        name,
        documents=lambda: document_rows(file_in(folder, DOCUMENTS)),
        topics=lambda: _topics(file_in(folder, TOPICS)),
        qrels=lambda: _graded_from(relevant_from, _judgments(folder, QRELS)),
        subtopics=lambda: _judgments(folder, SUBTOPICS),
        grades=grades,
        relevant_from=relevant_from,
        aspects=_aspects(meta, os.path.join(folder, META)),
        card=_card(meta, os.path.join(folder, META)),
        n_documents=n_documents if isinstance(n_documents, int) else None,
        meta=meta,
        path=folder,
    )


def read_documents(collection: Collection, progress: Progress) -> Iterator[Document]:
    """The documents of a collection, one by one; `progress` is called after every thousandth."""
    total = collection.meta.get("counts", {}).get("documents")
    for number, document in enumerate(collection.documents(), 1):
        yield document
        if progress is not None and not number & 0x3FF:
            progress(number, total)


def bundled_names() -> list[str]:
    """The collections that come with the package."""
    if not os.path.isdir(BUNDLED):
        return []
    return sorted(name for name in os.listdir(BUNDLED) if os.path.exists(os.path.join(BUNDLED, name, DOCUMENTS)))


def file_in(folder: str, name: str) -> str:
    """The path of one of a collection's files, compressed or not; the plain name if neither exists."""
    plain = os.path.join(folder, name)
    if os.path.exists(plain):
        return plain
    return next((plain + ending for ending in COMPRESSED if os.path.exists(plain + ending)), plain)


def collection_home(folder: str) -> tuple[str | None, dict[str, str]]:
    """The folder that has the files of a workspace's collection (FOLDER/collection or FOLDER), and these files by name."""
    for home in (os.path.join(folder, INSIDE), folder):
        paths = {name: file_in(home, name) for name in (DOCUMENTS, TOPICS, QRELS, META)}
        there = {name: path for name, path in paths.items() if os.path.isfile(path)}
        if there:
            return home, there
    return None, {}


def may_hold_log(folder: str) -> bool:
    """Whether a folder is a place for the log of a workspace: it has documents, or was served."""
    return DOCUMENTS in collection_home(folder)[1] or os.path.isdir(os.path.join(folder, STATE))


def folder_of(path: str) -> str:
    """The folder of a collection, given by its path, by its workspace, or by the name of a bundled collection."""
    if os.path.isdir(path):
        home = next((each for each in (path, os.path.join(path, INSIDE)) if _has_documents(each)), None)
        if home is None:
            raise DataError(
                f"{path}: expected a collection ({DOCUMENTS}, {TOPICS}, {QRELS}, {META}), found no {DOCUMENTS}; "
                "cranfield import makes one from other layouts"
            )
        return home
    if os.path.exists(path):
        raise DataError(f"{path}: expected a collection's folder, found a file; cranfield import makes one from it")
    inside = os.path.join(BUNDLED, path)
    if os.path.basename(path) == path and os.path.isdir(inside) and path not in (".", ".."):
        return inside
    bundled = f"; bundled: {', '.join(bundled_names())}" if bundled_names() else ""
    raise DataError(f"{path}: no such folder, and no bundled collection of that name{bundled}")


def _has_documents(folder: str) -> bool:
    return os.path.exists(file_in(folder, DOCUMENTS))


def _meta(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    with read_errors(path), open(path, "rb") as file:
        content = read_small(file, path)
    try:
        meta = tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected UTF-8, found {error.object[error.start : error.start + 1]!r}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: no TOML: {error}") from error
    for key in ("counts", "hashes", "conventions"):
        if not isinstance(meta.get(key, {}), Mapping):
            raise DataError(f"{path}: {key}: expected a table, found {meta[key]!r:.60}")
    for what, count in meta.get("counts", {}).items():
        if type(count) is not int:
            raise DataError(f"{path}: counts.{what}: expected a whole number, found {count!r:.60}")
    return meta


def _grades(meta: Mapping[str, Any], where: str) -> tuple[dict[float, Grade], float]:
    """The names of the grades, and the lowest grade that counts as relevant."""
    table = meta.get("grades", {})
    if not isinstance(table, Mapping):
        raise DataError(f"{where}: grades: expected a table, found {table!r:.60}")
    relevant_from = table.get("relevant_from", 1)
    if not _is_number(relevant_from):
        raise DataError(f"{where}: grades.relevant_from: expected a number, found {relevant_from!r:.60}")
    entries = {key: entry for key, entry in table.items() if key != "relevant_from"}
    return _meanings(entries, f"{where}: grades: expected a number or relevant_from"), relevant_from


def _meanings(table: Mapping[str, Any], expected: str) -> dict[float, Grade]:
    """The label and the meaning of each grade; the entry may be the label alone."""
    grades = {}
    for key, entry in table.items():
        try:
            number = whole(real(key))
        except ValueError:
            raise DataError(f"{expected}, found {key!r}") from None
        fields = entry if isinstance(entry, Mapping) else {"label": entry}
        grades[number] = Grade(str(fields.get("label", "")), str(fields.get("meaning", "")))
    return grades


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _aspects(meta: Mapping[str, Any], where: str) -> list[Aspect]:
    """The questions besides the grade: `[[aspects]]` with name, question, grades, and an optional from_grade."""
    entries = meta.get("aspects", [])
    if not isinstance(entries, list):
        raise DataError(f"{where}: aspects: expected [[aspects]] with name, question and grades, found {entries!r:.60}")
    aspects: dict[str, Aspect] = {}
    for number, entry in enumerate(entries, 1):
        at = f"{where}: aspects, number {number}"
        fields = entry if isinstance(entry, Mapping) else {}
        name, question, grades = fields.get("name"), fields.get("question"), fields.get("grades")
        if not (isinstance(name, str) and name and isinstance(question, str) and question):
            raise DataError(f"{at}: expected a name and a question, found {entry!r:.60}")
        if name == "relevance" or name in aspects:
            raise DataError(f"{at}: the name {name!r} is taken; choose another")
        if not isinstance(grades, Mapping) or len(grades) < 2:
            raise DataError(f"{at}: expected a table of two grades or more, found {grades!r:.60}")
        lowest = fields.get("from_grade")
        if lowest is not None and not _is_number(lowest):
            raise DataError(f"{at}: from_grade: expected a number, found {lowest!r:.60}")
        meanings = _meanings(grades, f"{at}: grades: expected a number")
        aspects[name] = Aspect(name, question, dict(sorted(meanings.items())), lowest)
    return list(aspects.values())


def _card(meta: Mapping[str, Any], path: str) -> CardTemplate | None:
    """The template of the judging card: `[card]` with a kind or fields."""
    if "card" not in meta:
        return None
    from cranfield.base.card import read_template  # most collections have none

    return read_template(path, meta)


def document_rows(path: str, source: Iterable[bytes] | None = None) -> Iterator[Document]:
    """The documents of a documents.jsonl: one JSON object per line with id, title and text.

    `source` has the lines if another function reads the file.
    """
    for number, row in json_rows(path, "a document as a JSON object", source=source):
        identifier = _id(row, path, number)
        title, text = row.pop("title", ""), row.pop("text", "")
        if not isinstance(title, str) or not isinstance(text, str):
            raise BadLineError(path, number, f"title and text must be text, found {title!r:.30} and {text!r:.30}")
        yield Document(identifier, title, text, row)


def _topics(path: str) -> Iterator[Topic]:
    if not os.path.exists(path):
        return
    first_lines: dict[str, int] = {}
    for number, row in json_rows(path, "a topic as a JSON object"):
        identifier = _id(row, path, number)
        if identifier in first_lines:
            problem = f"topic {identifier!r} occurs twice, first in line {first_lines[identifier]}"
            raise BadLineError(path, number, problem)
        first_lines[identifier] = number
        texts = [row.pop(name, "") for name in ("title", "description", "narrative")]
        if not all(isinstance(text, str) for text in texts):
            raise BadLineError(path, number, f"title, description and narrative must be text, found {texts!r:.60}")
        title, description, narrative = texts
        yield Topic(identifier, title, description, narrative, row)


def _id(row: dict[str, Any], path: str, number: int) -> str:
    value = row.pop("id", None)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise BadLineError(path, number, f"expected an id, found {value!r:.60}")
    if "\0" in value:
        raise BadLineError(path, number, f"expected an id without NUL, found {value!r:.60}")
    return value


def _judgments(folder: str, name: str) -> Qrels | None:
    path = file_in(folder, name)
    if not os.path.exists(path) or not os.path.getsize(path):
        return None
    return TREC.read_qrels(opened(path), name.rpartition(".")[0])


def _graded_from(relevant_from: float, qrels: Qrels | None) -> Qrels:
    judged = Qrels({}) if qrels is None else qrels
    judged.relevant_from = None if relevant_from == 1 else relevant_from
    return judged


# writing


def write_collection(
    path: str | os.PathLike[str],
    documents: Iterable[Document],
    topics: Iterable[Topic] = (),
    qrels: Qrels | None = None,
    *,
    subtopics: Qrels | None = None,
    grades: Mapping[float, Grade] | None = None,
    relevant_from: float = 1,
    meta: Mapping[str, Any] | None = None,
    progress: Progress = None,
) -> Collection:
    """Write a collection to a new folder and return it. Counts and hashes are added."""
    target = os.path.abspath(os.fspath(path))
    with _new_folder(target, os.fspath(path)) as folder:
        n_documents = _write(os.path.join(folder, DOCUMENTS), map(_document_line, documents), progress)
        n_topics = _write(os.path.join(folder, TOPICS), map(_topic_line, topics))
        _write(os.path.join(folder, QRELS), _qrels_lines(qrels))
        if subtopics is not None:
            _write(os.path.join(folder, SUBTOPICS), _qrels_lines(subtopics))
        named = {f"{grade:g}": asdict(each) for grade, each in sorted((grades or {}).items(), reverse=True)}
        facts = {
            "name": os.path.basename(target),
            **(meta or {}),
            "grades": {"relevant_from": whole(float(relevant_from)), **named},
            "counts": _counts(n_documents, n_topics, qrels, relevant_from),
            "hashes": _hashes(folder),
        }
        _write(os.path.join(folder, META), [toml_text(facts).encode()])
        tell_writing()  # documents are read while they are written; the folder does not have its name yet
    return read_collection(path)


def stamp(collection: Collection) -> None:
    """Update the counts and hashes in a folder's collection.toml; everything else in it stays."""
    folder = collection.path
    if folder is None:
        raise DataError(f"{collection.name}: this collection lies in no folder")
    n_documents = sum(1 for _ in collection.documents())
    counts = _counts(n_documents, len(collection.topics), collection.qrels, collection.relevant_from)
    counts = {**collection.meta.get("counts", {}), **counts}
    facts = {**collection.meta, "counts": counts, "hashes": _hashes(folder)}
    write_bytes(os.path.join(folder, META), [toml_text(facts).encode()])


def hash_of(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file's bytes, as written in collection.toml."""
    with read_errors(os.fspath(path)), open(path, "rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _counts(documents: int, topics: int, qrels: Qrels | None, relevant_from: float) -> dict[str, int]:
    judgments, relevant = (0, 0) if qrels is None else (len(qrels), int((qrels.grade >= relevant_from).sum()))
    return {"documents": documents, "topics": topics, "judgments": judgments, "relevant": relevant}


def _hashes(folder: str) -> dict[str, str]:
    """The hashes of all files with rows, ours first: further files of judgments are part of a collection too."""
    ours = [os.path.basename(file_in(folder, name)) for name in (DOCUMENTS, TOPICS, QRELS, SUBTOPICS)]
    others = sorted(name for name in os.listdir(folder) if plain_ending(name) in (".jsonl", ".txt"))
    paths = {name: os.path.join(folder, name) for name in (*ours, *others)}
    return {name: hash_of(path) for name, path in paths.items() if os.path.isfile(path)}


@contextmanager
def _new_folder(target: str, label: str) -> Iterator[str]:
    if os.path.lexists(target):
        raise DataError(f"{label}: exists already; nothing is overwritten, remove it or choose another name")
    with replacement(target, label) as beside:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.mkdir(beside)
        yield beside
    tell_written(label)


def _write(path: str, chunks: Iterable[bytes], progress: Progress = None) -> int:
    """Write a file, sync it to disk, and return the number of pieces."""
    count = 0
    with synced_file(path) as file:
        for count, chunk in enumerate(chunks, 1):
            file.write(chunk)
            if progress is not None and not count & 0xFFF:
                progress(count, None)
    if progress is not None:
        progress(count, count)
    return count


def _document_line(document: Document) -> bytes:
    """A document as JSON. Assembled by hand for speed: there may be millions."""
    fields = f", {ENCODE(dict(document.fields))[1:-1]}" if document.fields else ""
    identifier, title, text = QUOTED(document.id), QUOTED(document.title), QUOTED(document.text)
    return _line(f'{{"id": {identifier}, "title": {title}, "text": {text}{fields}}}')


def _topic_line(topic: Topic) -> bytes:
    row = {"id": topic.id, "title": topic.title, "description": topic.description, "narrative": topic.narrative}
    filled = {key: value for key, value in row.items() if value or key in ("id", "title")}
    return _line(ENCODE({**filled, **topic.fields}))


def topic_lines(topics: Iterable[Topic]) -> list[bytes]:
    """Topics as the lines of topics.jsonl."""
    return [_topic_line(topic) for topic in topics]


def _line(text: str) -> bytes:
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate has no bytes in UTF-8, so it is escaped
        return json.dumps(json.loads(text)).encode() + b"\n"


def _qrels_lines(qrels: Qrels | None) -> Iterable[bytes]:
    if qrels is None or not len(qrels):
        return ()
    TREC.refuse(qrels.table, "qrels", qrels.name)
    return TREC.write(qrels.table, "qrels", "")


# collection.toml: Python reads TOML but does not write it


def toml_text(values: Mapping[str, Any]) -> str:
    """A mapping as TOML: plain values first, then a table for each mapping; None values are left out.

    >>> print(toml_text({"name": "toy", "counts": {"documents": 3}, "hashes": {"qrels.txt": "sha256:…"}}), end="")
    name = "toy"
    <BLANKLINE>
    [counts]
    documents = 3
    <BLANKLINE>
    [hashes]
    "qrels.txt" = "sha256:…"
    """
    return "\n".join(_toml_lines(values, ())).lstrip("\n") + "\n"


HEADER = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?")


def toml_with_grades(source: str, grades: Mapping[float, Grade], relevant_from: float, where: str) -> str:
    """The text of a collection.toml with other grades; the rest of it stays as it is, with its comments."""
    named = {f"{grade:g}": asdict(each) for grade, each in sorted(grades.items(), reverse=True)}
    return toml_with_table(source, "grades", {"relevant_from": whole(float(relevant_from)), **named}, where)


def toml_with_table(source: str, name: str, table: Mapping[str, Any], where: str) -> str:
    """The text of a collection.toml with another table, or without it if the table is empty; the rest stays as it is."""
    section = {name: table} if table else {}
    try:
        expected = {**{key: value for key, value in tomllib.loads(source).items() if key != name}, **section}
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: no TOML: {error}") from error
    for text in (_with_section(source, name, toml_text(section) if section else ""), toml_text(expected)):
        try:
            if tomllib.loads(text) == expected:
                return text
        except ValueError:
            continue
    raise DataError(f"{where}: its {name} cannot be changed here; edit the file")


def _with_section(source: str, name: str, section: str) -> str:
    """A TOML text in which a table and its subtables are replaced; a new table comes last."""
    kept: list[str] = []
    place, inside = None, False
    for line in source.splitlines():
        if (header := HEADER.fullmatch(line)) is not None:
            inside = header[1].partition(".")[0].strip() == name
            place = len(kept) if inside and place is None else place
        if not inside:
            kept.append(line)
    place = len(kept) if place is None else place
    lines = [*kept[:place], *([""] if place == len(kept) else []), *section.splitlines(), "", *kept[place:]]
    return "\n".join(lines).strip("\n") + "\n"


def _toml_lines(values: Mapping[str, Any], path: tuple[str, ...], one_of: bool = False) -> list[str]:
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping) or _is_tables(value)}
    plain = {key: value for key, value in values.items() if value is not None and key not in tables}
    name = ".".join(map(_toml_key, path))
    lines = ["", f"[[{name}]]" if one_of else f"[{name}]"] if path and (one_of or plain or not values) else []
    lines += [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in plain.items()]
    for key, value in tables.items():
        several = [value] if isinstance(value, Mapping) else value
        for table in several:
            lines += _toml_lines(table, (*path, key), one_of=several is value)
    return lines


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _toml_key(key: str) -> str:
    return key if BARE.match(key) else _toml_string(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, str):
        return _toml_string(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _toml_string(text: str) -> str:
    """A basic string: JSON's escapes are TOML's, but TOML also escapes the delete character."""
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")

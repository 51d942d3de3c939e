"""A collection as a folder of plain files that people can read and keep under version control.

    documents.jsonl   {"id", "title", "text", …}, one document a line
    topics.jsonl      {"id", "title", "description", "narrative", …}
    qrels.txt         TREC's four columns: topic iteration document grade
    subtopics.txt     TREC's diversity qrels, if there are any: topic subtopic document grade
    collection.toml   name, title, licence, provenance, conventions, grades, counts and hashes

Documents are streamed in and out; any of the .jsonl and .txt files may be packed (.gz, .zst, .xz, .bz2). A folder
is written under another name beside its place and moved there when it is whole, so that a full disk or a killed
process leaves no half of a collection.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tomllib
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cranfield.collection import Collection, Document, Grade, Qrels, Topic
from cranfield.errors import BadLineError, DataError
from cranfield.formats.known.trec import TREC
from cranfield.formats.streams import COMPRESSED, lines, opened, plain_ending, reason, write_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


DOCUMENTS, TOPICS, QRELS, SUBTOPICS, META = (
    "documents.jsonl",
    "topics.jsonl",
    "qrels.txt",
    "subtopics.txt",
    "collection.toml",
)
BUNDLED = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bundled")
BLOCK = 1 << 20  # bytes read at a time for a hash
BARE = re.compile(r"[A-Za-z0-9_-]+\Z")  # a key that TOML takes without quotes
ENCODE = json.JSONEncoder(ensure_ascii=False).encode
QUOTED = json.encoder.encode_basestring


# reading


def read_collection(path: str | os.PathLike[str]) -> Collection:
    """Open the collection in a folder, or the bundled one of that name. Nothing but collection.toml is read yet.

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
    counted = meta.get("counts", {}).get("documents")
    return Collection(
        name,
        documents=lambda: _documents(file_in(folder, DOCUMENTS)),
        topics=lambda: _topics(file_in(folder, TOPICS)),
        qrels=lambda: _graded_from(relevant_from, _judgments(folder, QRELS)),
        subtopics=lambda: _judgments(folder, SUBTOPICS),
        grades=grades,
        relevant_from=relevant_from,
        n_documents=counted if isinstance(counted, int) else None,
        meta=meta,
        path=folder,
    )


def bundled_names() -> list[str]:
    """The collections that come with the package."""
    if not os.path.isdir(BUNDLED):
        return []
    return sorted(name for name in os.listdir(BUNDLED) if os.path.exists(os.path.join(BUNDLED, name, DOCUMENTS)))


def file_in(folder: str, name: str) -> str:
    """The path of one of a collection's files, packed or not; the plain name where there is neither."""
    plain = os.path.join(folder, name)
    if os.path.exists(plain):
        return plain
    return next((plain + ending for ending in COMPRESSED if os.path.exists(plain + ending)), plain)


def folder_of(path: str) -> str:
    """The folder of a collection that is named by it, or by a bundled collection's name."""
    if os.path.isdir(path):
        if not os.path.exists(file_in(path, DOCUMENTS)):
            raise DataError(
                f"{path}: expected a collection ({DOCUMENTS}, {TOPICS}, {QRELS}, {META}), found no {DOCUMENTS}; "
                "cranfield import makes one from other layouts"
            )
        return path
    if os.path.exists(path):
        raise DataError(f"{path}: expected a collection's folder, found a file; cranfield import makes one from it")
    inside = os.path.join(BUNDLED, path)
    if os.path.basename(path) == path and os.path.isdir(inside) and path not in (".", ".."):
        return inside
    known = f"; bundled: {', '.join(bundled_names())}" if bundled_names() else ""
    raise DataError(f"{path}: no such folder, and no bundled collection of that name{known}")


def _meta(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: no TOML: {error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected UTF-8, found {error.object[error.start : error.start + 1]!r}") from error
    except OSError as error:
        raise DataError(f"{path}: {reason(error)}") from error


def _grades(meta: Mapping[str, Any], where: str) -> tuple[dict[float, Grade], float]:
    """What the grades are called, and from which on a document is relevant."""
    table = meta.get("grades", {})
    if not isinstance(table, Mapping):
        raise DataError(f"{where}: grades: expected a table, found {table!r:.60}")
    relevant_from = table.get("relevant_from", 1)
    if isinstance(relevant_from, bool) or not isinstance(relevant_from, (int, float)):
        raise DataError(f"{where}: grades.relevant_from: expected a number, found {relevant_from!r:.60}")
    grades = {}
    for key, said in table.items():
        if key == "relevant_from":
            continue
        try:
            number = float(key)
        except ValueError:
            raise DataError(f"{where}: grades: expected a number or relevant_from, found {key!r}") from None
        if not isinstance(said, Mapping):
            said = {"label": said}
        grades[int(number) if number.is_integer() else number] = Grade(
            str(said.get("label", "")), str(said.get("meaning", ""))
        )
    return grades, relevant_from


def _rows(path: str, what: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file, each with the number of its line; empty lines are passed over."""
    for number, line in enumerate(lines(path), 1):
        try:
            row = json.loads(line.decode())
        except ValueError as error:
            if not line.strip():
                continue
            raise BadLineError(path, number, _complaint(line, error, what)) from None
        if not isinstance(row, dict):
            raise BadLineError(path, number, f"expected {what} as a JSON object, found {type(row).__name__}")
        yield number, row


def _complaint(line: bytes, error: ValueError, what: str) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"expected UTF-8, found byte {line[error.start]:#04x} at column {error.start + 1}"
    return f"expected {what} as a JSON object, found {line.strip()[:60].decode(errors='replace')!r} ({error})"


def _documents(path: str) -> Iterator[Document]:
    for number, row in _rows(path, "a document"):
        identifier = _id(row, path, number)
        title, text = row.pop("title", ""), row.pop("text", "")
        if not isinstance(title, str) or not isinstance(text, str):
            raise BadLineError(path, number, f"title and text must be text, found {title!r:.30} and {text!r:.30}")
        yield Document(identifier, title, text, row)


def _topics(path: str) -> Iterator[Topic]:
    if not os.path.exists(path):
        return
    seen: dict[str, int] = {}
    for number, row in _rows(path, "a topic"):
        identifier = _id(row, path, number)
        if identifier in seen:
            raise BadLineError(path, number, f"topic {identifier!r} occurs twice, first in line {seen[identifier]}")
        seen[identifier] = number
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
    return value


def _judgments(folder: str, name: str) -> Qrels | None:
    path = file_in(folder, name)
    if not os.path.exists(path) or not os.path.getsize(path):
        return None
    return TREC.read_qrels(opened(path), name.rpartition(".")[0])


def _graded_from(relevant_from: float, qrels: Qrels | None) -> Qrels:
    found = Qrels({}) if qrels is None else qrels
    found.relevant_from = None if relevant_from == 1 else relevant_from
    return found


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
    progress: Callable[[int, int | None], None] | None = None,
) -> Collection:
    """Write a folder that must not exist yet, and give the collection in it. Counts and hashes are filled in."""
    target = os.path.abspath(os.fspath(path))
    with _new_folder(target, os.fspath(path)) as folder:
        n_documents = _write_lines(os.path.join(folder, DOCUMENTS), map(_document_line, documents), progress)
        n_topics = _write_lines(os.path.join(folder, TOPICS), map(_topic_line, topics))
        _write_qrels(os.path.join(folder, QRELS), qrels)
        if subtopics is not None:
            _write_qrels(os.path.join(folder, SUBTOPICS), subtopics)
        said = {"name": os.path.basename(target), **(meta or {})}
        said["grades"] = {
            "relevant_from": int(relevant_from) if float(relevant_from).is_integer() else relevant_from,
            **{f"{grade:g}": _said(each) for grade, each in sorted((grades or {}).items(), reverse=True)},
        }
        said["counts"] = _counts(n_documents, n_topics, qrels, relevant_from)
        said["hashes"] = _hashes(folder)
        _write_text(os.path.join(folder, META), toml_text(said))
    return read_collection(path)


def stamp(collection: Collection) -> None:
    """Write the counts and hashes of a folder's files into its collection.toml, which is otherwise kept."""
    folder = collection.path
    if folder is None:
        raise DataError(f"{collection.name}: this collection lies in no folder")
    n_documents = sum(1 for _ in collection.documents())
    said = dict(collection.meta)
    said["counts"] = {
        **said.get("counts", {}),
        **_counts(n_documents, len(collection.topics), collection.qrels, collection.relevant_from),
    }
    said["hashes"] = _hashes(folder)
    write_bytes(os.path.join(folder, META), [toml_text(said).encode()])


def hash_of(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file's bytes, as collection.toml holds it."""
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(BLOCK):
                found.update(block)
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: {reason(error)}") from error
    return f"sha256:{found.hexdigest()}"


def _counts(documents: int, topics: int, qrels: Qrels | None, relevant_from: float) -> dict[str, int]:
    relevant = 0 if qrels is None else int((qrels.grade >= relevant_from).sum())
    return {
        "documents": documents,
        "topics": topics,
        "judgments": 0 if qrels is None else len(qrels),
        "relevant": relevant,
    }


def _hashes(folder: str) -> dict[str, str]:
    """Of all files with rows, ours first: a second pass of judgments is part of a collection too."""
    ours = [os.path.basename(file_in(folder, name)) for name in (DOCUMENTS, TOPICS, QRELS, SUBTOPICS)]
    others = sorted(name for name in os.listdir(folder) if plain_ending(name) in (".jsonl", ".txt"))
    paths = {name: os.path.join(folder, name) for name in (*ours, *others)}
    return {name: hash_of(path) for name, path in paths.items() if os.path.isfile(path)}


def _said(grade: Grade) -> dict[str, str]:
    return {"label": grade.label, "meaning": grade.meaning}


@contextmanager
def _new_folder(target: str, shown: str) -> Iterator[str]:
    if os.path.lexists(target):
        raise DataError(f"{shown}: exists already; nothing is overwritten, remove it or choose another name")
    above, base = os.path.split(target)
    beside = os.path.join(above, f".{base}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        os.makedirs(above, exist_ok=True)
        _sweep(above, base)
        os.mkdir(beside)
        yield beside
        os.rename(beside, target)
    except BaseException as error:
        shutil.rmtree(beside, ignore_errors=True)
        if isinstance(error, OSError):
            raise DataError(f"{shown}: cannot be written: {reason(error)}") from error
        raise


def _sweep(above: str, base: str) -> None:
    """Remove what killed processes left of this folder: `.NAME.PID.xxxxxxxx` whose process is gone."""
    left = re.compile(rf"\.{re.escape(base)}\.(\d+)\.[0-9a-f]{{8}}")
    for name in os.listdir(above):
        found = left.fullmatch(name)
        if found and not _alive(int(found[1])):
            shutil.rmtree(os.path.join(above, name), ignore_errors=True)


def _alive(pid: int) -> bool:
    """Whether a process may still be there; where that cannot be told without touching it, it is taken to be."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return True


def _write_lines(path: str, rows: Iterable[str], progress: Callable[[int, int | None], None] | None = None) -> int:
    count = 0
    with open(path, "xb", buffering=BLOCK) as file:
        for row in rows:
            try:
                file.write(row.encode())
            except UnicodeEncodeError:  # a lone surrogate, which UTF-8 has no bytes for: it is escaped
                file.write(json.dumps(json.loads(row)).encode() + b"\n")
            count += 1
            if progress is not None and not count & 0xFFF:
                progress(count, None)
        _settle(file)
    if progress is not None:
        progress(count, count)
    return count


def _settle(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _document_line(document: Document) -> str:
    """A document as JSON. Put together by hand, since there may be millions of them."""
    fields = f", {ENCODE(dict(document.fields))[1:-1]}" if document.fields else ""
    identifier, title, text = QUOTED(document.id), QUOTED(document.title), QUOTED(document.text)
    return f'{{"id": {identifier}, "title": {title}, "text": {text}{fields}}}\n'


def _topic_line(topic: Topic) -> str:
    row = {"id": topic.id, "title": topic.title, "description": topic.description, "narrative": topic.narrative}
    said = {key: value for key, value in row.items() if value or key in ("id", "title")}
    return f"{ENCODE({**said, **topic.fields})}\n"


def _write_qrels(path: str, qrels: Qrels | None) -> None:
    with open(path, "xb", buffering=BLOCK) as file:
        if qrels is not None and len(qrels):
            TREC.refuse(qrels.table, "qrels", qrels.name)
            for chunk in TREC.write(qrels.table, "qrels", ""):
                file.write(chunk)
        _settle(file)


def _write_text(path: str, text: str) -> None:
    with open(path, "xb") as file:
        file.write(text.encode())
        _settle(file)


# collection.toml: Python reads TOML but does not write it


def toml_text(values: Mapping[str, Any]) -> str:
    """A mapping as TOML: plain values first, then a table for each mapping; None is left out.

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


def _toml_lines(values: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {key: value for key, value in values.items() if value is not None and not isinstance(value, Mapping)}
    lines = ["", f"[{'.'.join(map(_toml_key, path))}]"] if path and (plain or not values) else []
    lines += [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in plain.items()]
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += _toml_lines(value, (*path, key))
    return lines


def _toml_key(key: str) -> str:
    return key if BARE.match(key) else _toml_string(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, str):
        return _toml_string(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _toml_string(text: str) -> str:
    """A basic string: JSON's escapes are TOML's, save that TOML wants the delete character escaped too."""
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")

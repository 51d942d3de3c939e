"""Labels from files: qrels, JSON lines, and tables of who answered what, each with where it stood.

The id of an event is made of the file's content and the line, so that the same file added twice is added once. A label
that names no time gets one before all others, in the order of the lines. A CSV as `judge export` writes it holds events, and
every column is read; in any other table a column that says whose a label is, or that it is none, is read too.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.columns import counted
from cranfield.errors import BadLineError, DataError, DuplicateError, FormatError
from cranfield.formats.by_text import ids_of_texts, joined_in_words
from cranfield.formats.named import DOCUMENT, EVENTS, GRADE, TOPIC
from cranfield.formats.reading import read_qrels
from cranfield.formats.streams import data_lines, open_buffer, plain_ending, run_name, wide_encoding
from cranfield.formats.tables import DETECTED, Dialect, Numbers, SeparatedValues
from cranfield.hearing import say
from cranfield.judge.adding import same_bytes
from cranfield.judge.event import DEFAULTS, KINDS, SOURCES, Event, instant
from cranfield.judge.lines import parsed
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cranfield.collection import Duplicates

COLUMNS: dict[str, tuple[str, ...]] = {
    "topic": TOPIC,
    "document": (*DOCUMENT, "question", "task"),
    "grade": (*GRADE, "answer", "response"),
    "assessor": ("assessor", "worker", "worker_id", "workerid", "annotator", "annotator_id", "rater", "judge", "user"),
    "time": ("time", "timestamp", "created", "created_at", "submitted_at", "date"),
    "seconds": ("seconds", "duration", "work_time"),
    "note": ("note", "comment", "remark"),
    "aspect": ("aspect",),
    "source": ("source",),
    "kind": ("kind",),
    "repeat": ("repeat",),
}
OF_KINDS = ("other", "refers")  # columns that belong to some kinds, and mean nothing where none is named
NO_TOPIC = "-"
LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
TRUE = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class File(NamedTuple):
    """A file that labels are taken from, and what is said of them beside it."""

    path: str
    digest: str
    more: Mapping[str, Any]  # fields of every event

    def event(self, line: int, row: Mapping[str, Any]) -> Event:
        """The event of a row, with its id, its time if it has none, and where it came from."""
        made = {
            "id": f"{self.digest[:24]}-{line:09d}",
            "time": instant(LONG_AGO + timedelta(microseconds=line)),
            "origin": f"{os.path.basename(self.path)} sha256:{self.digest} line {line}",
        }
        filled = {name: value for name, value in row.items() if value not in ("", None)}
        try:
            return Event.of({**made, **self.more, **filled})
        except (DataError, TypeError) as error:
            raise BadLineError(self.path, line, str(error)) from None


class Reading(NamedTuple):
    """How files of labels are read, as far as somebody said so."""

    fields: Mapping[str, Sequence[str]] | None = None  # what columns are called
    format: str | None = None  # of qrels
    dialect: Dialect = DETECTED
    lenient: bool = False  # malformed rows are left out
    duplicates: Duplicates | None = (
        None  # which label counts where a person labels a document twice; None: all are kept
    )
    grades: Mapping[float, float] | None = None  # what the grades of the file count as
    queries: Mapping[str, str] | None = None  # what topics ask, to join labels by
    ignore_case: bool = False


def read_events(path: str, reading: Reading = Reading(), **more: Any) -> list[Event]:  # noqa: B008
    """Every label in a file as an event. `more` holds for every event that does not say so itself."""
    return _read(path, _content(path), reading, more)


def read_files(paths: Sequence[str], reading: Reading = Reading(), **more: Any) -> dict[str, list[Event]]:  # noqa: B008
    """The labels of several files, each read once, as by `read_events`. Two files of equal bytes are refused."""
    contents = {path: _content(path) for path in paths}
    for place, (path, raw) in enumerate(contents.items()):
        for other, before in list(contents.items())[:place]:
            if raw == before and os.path.realpath(path) != os.path.realpath(other):
                raise DataError(f"{path}: {same_bytes(other)}")
    return {path: _read(path, raw, reading, more) for path, raw in contents.items()}


def _content(path: str) -> bytes:
    return bytes(open_buffer(path)).removeprefix(b"\xef\xbb\xbf")


def _read(path: str, raw: bytes, reading: Reading, more: Mapping[str, Any]) -> list[Event]:
    """The labels of a file on the scale, under the topics and without the duplicates that the reading names."""
    events = _events(path, raw, reading, more)
    if reading.grades is not None:
        events = [_regraded(event, reading.grades, path) for event in events]
    if reading.queries is not None:
        ids = ids_of_texts({event.topic: None for event in events}, reading.queries, path, reading.ignore_case)
        if ids is not None:
            say([joined_in_words(os.path.basename(path), len(ids))])
            events = [replace(event, topic=ids[event.topic]) for event in events]
    return events if reading.duplicates is None else _settled(events, reading.duplicates, path)


def _line(event: Event) -> int:
    """The line that an event stood on, as its origin has it."""
    return int(event.origin.rpartition(" ")[2])


def _regraded(event: Event, grades: Mapping[float, float], path: str) -> Event:
    if event.grade is None or event.kind != "judgment":
        return event
    if event.grade not in grades:
        listed = ", ".join(f"{grade:g}" for grade in sorted(grades))
        problem = f"grade {event.grade:g} is not among those that grades names ({listed})"
        raise BadLineError(path, _line(event), problem)
    return replace(event, grade=grades[event.grade])


def _settled(events: list[Event], which: Duplicates, path: str) -> list[Event]:
    """One label of each person, topic, document and aspect."""
    labels: dict[tuple[str, ...], Event] = {}
    for event in events:
        labelled = event.kind == "judgment"
        key = (event.assessor, event.topic, event.document, event.aspect) if labelled else (event.id,)
        before = labels.get(key)
        if before is not None and which == "error":
            problem = (
                f"document {event.document!r} is judged twice for topic {event.topic!r}, first on line {_line(before)}"
            )
            raise DuplicateError(path, _line(event), problem)
        if before is None or which == "last" or (which == "best" and (event.grade or 0) > (before.grade or 0)):
            labels[key] = event
    return list(labels.values())


def _events(path: str, raw: bytes, reading: Reading, more: Mapping[str, Any]) -> list[Event]:
    digest = hashlib.sha256(raw).hexdigest()
    if _is_lines(raw):
        file = File(path, digest, {"source": "import", **more})
        return _without_faults((_of_line(file, number, line) for number, line in data_lines(raw)), reading, path)
    ending = plain_ending(path).rpartition(".")[2]
    wide = wide_encoding(raw[:64]) is not None
    is_table = ending in ("csv", "tsv") or wide or reading.fields or reading.dialect.delimiter
    if reading.format is None and is_table and ending not in ("parquet", "jsonl", "json"):
        file = File(path, digest, {"source": "import", **more})
        rows = _table(raw, reading, path, more.get("topic", NO_TOPIC))
        return _without_faults((_of_row(file, *row) for row in rows), reading, path)
    stem = run_name(path)
    file = File(path, digest, {"source": "import", "assessor": stem, **more})
    return list(_of_qrels(file, raw, reading))


def _of_row(file: File, line: int, last: int, cells: dict[str, Any] | BadLineError) -> Event | BadLineError:
    """The event of a row, or its fault; its id is made of the row's last line, its fault names the first."""
    try:
        return cells if isinstance(cells, BadLineError) else file.event(last, cells)
    except BadLineError as error:
        return BadLineError(file.path, line, error.problem)


def _without_faults(rows: Iterable[Event | BadLineError], reading: Reading, path: str) -> list[Event]:
    """The events; a fault is raised, or counted and passed over where the reading is lenient."""
    events, skipped = [], 0
    for row in rows:
        if isinstance(row, Event):
            events.append(row)
        elif reading.lenient:
            skipped += 1
        else:
            raise row
    say([f"{path}: {counted(skipped, 'malformed line')} skipped"] if skipped else [])
    return events


def _is_lines(raw: bytes) -> bool:
    """Whether a file is a log: objects with a document and a grade, or with a kind."""
    head = parsed(raw.lstrip().split(b"\n", 1)[0])
    return isinstance(head, dict) and ("kind" in head or {"topic", "document", "grade"} <= head.keys())


def _of_line(file: File, number: int, line: bytes) -> Event | BadLineError:
    row = parsed(line)
    if not isinstance(row, dict):
        return BadLineError(file.path, number, f"expected a JSON object, found {line[:60]!r}")
    try:
        return file.event(number, {name: value for name, value in row.items() if name in DEFAULTS})
    except BadLineError as error:
        return error


def _of_qrels(file: File, raw: bytes, reading: Reading) -> Iterator[Event]:
    dialect = {name: getattr(reading.dialect, name) for name in ("delimiter", "encoding", "decimal")}
    duplicates = reading.duplicates or "error"
    qrels = read_qrels(
        file.path, reading.format, reading.lenient, fields=reading.fields, duplicates=duplicates, **dialect
    )
    skipped = len(qrels.skipped)
    say([f"{file.path}: {counted(skipped, 'malformed line')} skipped"] if skipped else [])
    rows = [(topic, document, grade) for topic, grades in qrels.to_dict().items() for document, grade in grades.items()]
    where = _lines_of(raw, rows)
    for number, (topic, document, grade) in enumerate(rows, 1):
        line = where.get((topic, document), number)
        yield file.event(line, {"topic": topic, "document": document, "grade": grade})


def _lines_of(raw: bytes, rows: list[tuple[str, str, float]]) -> dict[tuple[str, str], int]:
    """On which line of a plain qrels file each judgment stands; empty for other formats, whose rows are counted."""
    answer: dict[tuple[str, str], int] = {}
    for number, line in data_lines(raw):
        words = line.decode("utf-8", "surrogateescape").split()
        if len(words) == 4:
            answer[words[0], words[2]] = number
    return answer if len(answer) == len(rows) else {}


def _table(
    raw: bytes, reading: Reading, path: str, topic: str
) -> Iterator[tuple[int, int, dict[str, Any] | BadLineError]]:
    """The first and last line of each row of separated values, and its cells by the fields of an event, or its fault.

    `question,worker,answer` and other usual names are known. A row of an export is an event as it is; another that names no
    topic has the one given.
    """
    fields = reading.fields or {}
    table = SeparatedValues(raw, path, lambda names: _names_labels(names, fields), reading.dialect)
    names = table.names
    exported = not fields and _is_export(names)
    columns = {name: place for place, name in enumerate(names)} if exported else _columns(names, path, fields)
    for line, last, row in table:
        if not any(row):
            continue
        try:
            if len(row) < len(names):
                raise BadLineError(path, line, f"expected {len(names)} columns, found {len(row)}")
            cells = _cells(row, columns, path, line, table.numbers)
        except BadLineError as error:
            yield line, last, error
            continue
        yield line, last, cells if exported or cells.get("topic") else {**cells, "topic": topic}
    table.report()


def _names_labels(names: list[str], fields: Mapping[str, Sequence[str]]) -> bool:
    """Whether a header names the document and the grade of labels."""
    plain = {name.lower().replace(" ", "_").replace("-", "_") for name in names}
    wanted = ({each.lower() for each in fields.get(role, COLUMNS[role])} for role in ("document", "grade"))
    return all(plain & each for each in wanted)


def _is_export(names: list[str]) -> bool:
    """Whether columns are those that `judge export --to csv` writes: fields of events by their names, in their order."""
    return set(names) >= EVENTS and names == [name for name in DEFAULTS if name in names]


def _columns(names: list[str], path: str, fields: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Which column holds which field of an event."""
    unknown = fields.keys() - (DEFAULTS.keys() - {"id", "origin"})
    if unknown:
        raise FormatError(f"--field: a label has no {min(unknown)!r}; it has {', '.join(COLUMNS)}")
    plain = [name.lower().replace(" ", "_").replace("-", "_") for name in names]
    answer: dict[str, int] = {}
    usual = COLUMNS | {name: (name,) for name in OF_KINDS if "kind" in plain}
    for role in {**usual, **fields}:
        known = fields.get(role)
        wanted = [name.lower().replace(" ", "_").replace("-", "_") for name in known] if known else usual[role]
        place = next((plain.index(name) for name in wanted if name in plain), None)
        if place is not None and place not in answer.values():
            answer[role] = place
    lacking = [role for role in ("document", "grade") if role not in answer]
    if lacking:
        advice = " ".join(f"--field {role}=COLUMN" for role in lacking)
        raise FormatError(
            f"{path}: no column for the {', the '.join(lacking)}; found {', '.join(names)}; name it by {advice}"
        )
    return answer


def _cells(row: list[str], columns: dict[str, int], path: str, line: int, numbers: Numbers) -> dict[str, Any]:
    cells: dict[str, Any] = {role: row[place] for role, place in columns.items()}
    for role in ("grade", "seconds", "rank"):
        if cells.get(role, "") != "":
            try:
                cells[role] = numbers.read(cells[role], line)
            except ValueError as error:
                raise BadLineError(path, line, f"expected a number as {role}, {error}") from None
    for role in ("sure", "repeat"):
        if cells.get(role, "") != "":
            cells[role] = TRUE.get(cells[role].strip().lower(), cells[role])
    for role, known in (("source", SOURCES), ("kind", KINDS)):
        if cells.get(role, "") not in ("", *known):
            found = f"expected a {role} of {', '.join(known)}, found {shortened(cells[role])!r}"
            raise BadLineError(path, line, f"{found}; rename the column if it says something else")
    if "rank" in cells and cells["rank"] != "":
        cells["rank"] = int(cells["rank"])
    return cells


def refuse_off(events: Sequence[Event], files: Mapping[str, str], **known: Any) -> None:
    """Refuse labels off the scale, or of topics and documents that are not known; `files` says where each came from.

    `known` may hold `scale` (grades), `topics` and `documents` (ids).
    """
    scale, topics, documents = (known.get(name) for name in ("scale", "topics", "documents"))
    for event in events:
        problem = None
        if scale and event.grade is not None and event.kind != "preference" and event.grade not in scale:
            shown = ", ".join(f"{grade:g}" for grade in sorted(scale))
            problem = f"expected a grade of {shown}, found {event.grade:g}"
        elif topics is not None and event.topic and event.topic not in topics:
            problem = f"topic {shortened(event.topic)!r} is not in the collection"
        elif documents is not None and event.document and event.document not in documents:
            problem = f"document {shortened(event.document)!r} is not in the collection"
        if problem:
            raise DataError(f"{files.get(event.id, '')}{problem}; nothing was added")

"""Labels from files: qrels, JSON lines, and tables of who answered what, each with where it stood.

The id of an event is made of the file's content and the line, so that the same file added twice is added once. A label
that names no time gets one before all others, in the order of the lines. A CSV as `judge export` writes it holds events, and
every column is read; in any other table a column that says whose a label is, or that it is none, is read too.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.errors import BadLineError, DataError, FormatError
from cranfield.formats.named import DOCUMENT, EVENTS, GRADE, TOPIC
from cranfield.formats.reading import read_qrels
from cranfield.formats.streams import data_lines, open_buffer, plain_ending, run_name
from cranfield.judge.event import DEFAULTS, KINDS, SOURCES, Event, instant
from cranfield.judge.lines import parsed
from cranfield.parameters import real, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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


def read_events(
    path: str, *, fields: Mapping[str, Sequence[str]] | None = None, format: str | None = None, **more: Any
) -> list[Event]:
    """Every label in a file as an event. `fields` names columns, `more` holds for every event that does not say so itself."""
    raw = bytes(open_buffer(path)).removeprefix(b"\xef\xbb\xbf")
    digest = hashlib.sha256(raw).hexdigest()
    if _is_lines(raw):
        file = File(path, digest, {"source": "import", **more})
        return [_of_line(file, number, line) for number, line in data_lines(raw)]
    ending = plain_ending(path).rpartition(".")[2]
    if format is None and (ending in ("csv", "tsv") or fields) and ending not in ("parquet", "jsonl", "json"):
        file = File(path, digest, {"source": "import", **more})
        return [file.event(number, row) for number, row in _table(raw, path, fields or {}, more.get("topic", NO_TOPIC))]
    stem = run_name(path)
    file = File(path, digest, {"source": "import", "assessor": stem, **more})
    return list(_of_qrels(file, raw, format, fields))


def _is_lines(raw: bytes) -> bool:
    """Whether a file is a log: objects with a document and a grade, or with a kind."""
    head = parsed(raw.lstrip().split(b"\n", 1)[0])
    return isinstance(head, dict) and ("kind" in head or {"topic", "document", "grade"} <= head.keys())


def _of_line(file: File, number: int, line: bytes) -> Event:
    row = parsed(line)
    if not isinstance(row, dict):
        raise BadLineError(file.path, number, f"expected a JSON object, found {line[:60]!r}")
    return file.event(number, {name: value for name, value in row.items() if name in DEFAULTS})


def _of_qrels(
    file: File, raw: bytes, format: str | None, fields: Mapping[str, Sequence[str]] | None
) -> Iterator[Event]:
    qrels = read_qrels(file.path, format, fields=fields)
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
    raw: bytes, path: str, fields: Mapping[str, Sequence[str]], topic: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of separated values, by the fields of an event; `question,worker,answer` and other usual names are known.

    A row of an export is an event as it is; another that names no topic has the one given.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadLineError(
            path, line, f"expected UTF-8, found byte {raw[error.start]:#04x}; save it as UTF-8"
        ) from None
    head = text.split("\n", 1)[0]
    separator = max("\t;,", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        exported = not fields and _is_export(names)
        columns = {name: place for place, name in enumerate(names)} if exported else _columns(names, path, fields)
        for row in reader:
            if any(row):
                if len(row) < len(names):
                    raise BadLineError(path, reader.line_num, f"expected {len(names)} columns, found {len(row)}")
                cells = _cells(row, columns, path, reader.line_num)
                yield reader.line_num, cells if exported or cells.get("topic") else {**cells, "topic": topic}
    except csv.Error as error:
        raise BadLineError(path, reader.line_num, f"is no separated text: {error}") from None


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


def _cells(row: list[str], columns: dict[str, int], path: str, line: int) -> dict[str, Any]:
    cells: dict[str, Any] = {role: row[place] for role, place in columns.items()}
    for role in ("grade", "seconds", "rank"):
        if cells.get(role, "") != "":
            try:
                cells[role] = real(cells[role].strip())
            except ValueError:
                raise BadLineError(
                    path, line, f"expected a number as {role}, found {shortened(cells[role])!r}"
                ) from None
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

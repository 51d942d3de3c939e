"""Labels from files (qrels, JSON lines, tables with the assessor of each label), and a log as such files.

Exported JSON lines and CSV name the assessor of each event. `prefs` files cannot mark models, so by default they hold only
people's labels.

Exports of annotation tools are read too (`formats.annotation_exports`); a label may be the name of a grade.

The id of an event comes from the file's hash and the line, so that adding the same file twice adds nothing. Labels
without a time come before all others, in the order of the lines. In a CSV of `judge export`, every column is a field of
an event. In any other table, columns that name the assessor of a label, or mark a row as something else than a label,
are read too.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import BadLineError, DataError, DuplicateError, FormatError
from cranfield.base.notifications import say
from cranfield.base.parameters import real, shortened
from cranfield.base.text_layout import counted
from cranfield.formats.annotation_exports import AnnotationExport, ExportRow, annotation_export
from cranfield.formats.csv_tables import DETECTED, Dialect, NumberReader, SeparatedValues
from cranfield.formats.named_columns import DOCUMENT, EVENTS, GRADE, TOPIC
from cranfield.formats.runs_and_qrels import read_qrels
from cranfield.formats.streams import data_lines, open_buffer, plain_ending, run_name, wide_encoding
from cranfield.formats.topic_tables import ids_of_texts, joined_in_words
from cranfield.formats.uncertain_qrels import names_posteriors
from cranfield.judging.event import CLICKS, DEFAULTS, KINDS, SOURCES, Event, instant, of_lists, same_bytes, spans_text
from cranfield.judging.event_intake import KnownIds, refuse_unknown_ids
from cranfield.judging.guidelines import VERSION, Guidelines, version_of
from cranfield.judging.jsonl_log import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from cranfield.base.collection import Grade
    from cranfield.base.qrels import Duplicates

    # first and last line, and the cells or what is wrong with them
    Row = tuple[int, int, dict[str, Any] | BadLineError]


PREFS = "prefs"


def as_lines(events: Iterable[Event]) -> bytes:
    """JSON lines, which `judge add` reads back unchanged."""
    return "".join(event.line() + "\n" for event in events).encode("utf-8", "surrogateescape")


def as_csv(events: Sequence[Event]) -> bytes:
    """One row per event, one column per field in use; `judge add` reads it back unchanged."""
    rows = [event.row() for event in events]
    names = [name for name in DEFAULTS if name in ("topic", "document", "grade") or any(name in row for row in rows)]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for event, row in zip(events, rows, strict=True):
        cells = {**row, "passages": spans_text(event.passages)}
        writer.writerow(["" if (value := cells.get(name, getattr(event, name))) is None else value for name in names])
    return text.getvalue().encode("utf-8", "surrogateescape")


def as_preferences(events: Iterable[Event]) -> bytes:
    """trec_eval's `prefs`: topic, group, subgroup, document, level. Each preference is a subgroup, each person a group.

    Preferences between result lists are left out: they name runs.
    """
    lines = []
    pairs: dict[tuple[str, str], int] = {}
    for event in events:
        if event.kind != "preference" or event.grade is None or of_lists(event.aspect):
            continue
        who = event.assessor or "-"
        pair = pairs[event.topic, who] = pairs.get((event.topic, who), 0) + 1
        for document, level in ((event.document, max(event.grade, 0)), (event.other, max(-event.grade, 0))):
            ids = event.topic, who, document
            spaced = next((each for each in ids if not each or each != "".join(each.split())), None)
            if spaced is not None:
                raise FormatError(f"prefs cannot hold {spaced!r}, which has white space; export jsonl or csv instead")
            lines.append(f"{event.topic} {who} {pair} {document} {level + 1:g}\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


WRITERS: dict[str, Callable[[Sequence[Event]], bytes]] = {"jsonl": as_lines, "csv": as_csv, PREFS: as_preferences}
"""What events are written as, by name; qrels, which are no events, come by a policy."""


COLUMNS: dict[str, tuple[str, ...]] = {
    "topic": TOPIC,
    "document": (*DOCUMENT, "question", "task"),
    "grade": (*GRADE, "answer", "response"),
    "assessor": (
        "assessor",
        "worker",
        "worker_id",
        "workerid",
        "annotator",
        "annotator_id",
        "rater",
        "judge",
        "user",
        "completed_by",
        "user_email",
        "username",
    ),
    "time": ("time", "timestamp", "created", "created_at", "submitted_at", "date"),
    "seconds": ("seconds", "duration", "work_time", "lead_time"),
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


class LabelFile(NamedTuple):
    """A file of labels, and the fields that hold for all its labels."""

    path: str
    digest: str
    more: Mapping[str, Any]  # fields of every event

    def event(self, line: int, row: Mapping[str, Any]) -> Event:
        """The event of a row, with an id, a time and its origin."""
        events = {
            "id": f"{self.digest[:24]}-{line:09d}",
            "time": instant(LONG_AGO + timedelta(microseconds=line)),
            "origin": f"{os.path.basename(self.path)} sha256:{self.digest} line {line}",
        }
        filled = {name: value for name, value in row.items() if value not in ("", None)}
        try:
            return Event.of({**events, **self.more, **filled})
        except (DataError, TypeError) as error:
            raise BadLineError(self.path, line, str(error)) from None


class LabelReading(NamedTuple):
    """Options for reading files of labels."""

    fields: Mapping[str, Sequence[str]] | None = None  # what columns are called
    format: str | None = None  # of qrels
    dialect: Dialect = DETECTED
    lenient: bool = False  # malformed rows are left out
    duplicates: Duplicates | None = None  # which label counts if a person labels a document twice; None: all are kept
    grades: Mapping[float, float] | None = None  # what the grades of the file count as
    queries: Mapping[str, str] | None = None  # what topics ask, to join labels by
    ignore_case: bool = False
    grade_names: Mapping[str, float] | None = None  # the grades by their labels, folded


def read_events(path: str, reading: LabelReading = LabelReading(), **more: Any) -> list[Event]:  # noqa: B008
    """Every label in a file as an event; `more` are defaults for fields that a label lacks."""
    return _read(path, _content(path), reading, more)


def read_files(paths: Sequence[str], reading: LabelReading = LabelReading(), **more: Any) -> dict[str, list[Event]]:  # noqa: B008
    """The labels of several files, each read once, as by `read_events`. Two files of equal bytes are refused."""
    contents = {path: _content(path) for path in paths}
    for place, (path, raw) in enumerate(contents.items()):
        for other, before in list(contents.items())[:place]:
            if raw == before and os.path.realpath(path) != os.path.realpath(other) and not _is_by_person(raw, path):
                raise DataError(f"{path}: {same_bytes(other)}")
    return {path: _read(path, raw, reading, more) for path, raw in contents.items()}


def _content(path: str) -> bytes:
    return bytes(open_buffer(path)).removeprefix(b"\xef\xbb\xbf")


def _read(path: str, raw: bytes, reading: LabelReading, more: Mapping[str, Any]) -> list[Event]:
    """The labels of a file, with the scale, topics and duplicates of the options applied."""
    events = _events(path, raw, reading, more)
    if reading.grades is not None:
        events = [_regraded(event, reading.grades, path) for event in events]
    if reading.queries is not None:
        ids = ids_of_texts({event.topic: None for event in events}, reading.queries, path, reading.ignore_case)
        if ids is not None:
            say([joined_in_words(os.path.basename(path), len(ids))])
            events = [replace(event, topic=ids[event.topic]) for event in events]
    return events if reading.duplicates is None else _settled(events, reading.duplicates, path)


def _is_by_person(raw: bytes, path: str) -> bool:
    """Whether a file has the labels of the person whose name it has: two people may say the same."""
    export = annotation_export(raw, path, {})
    return export is not None and export[0].people_by_file


def _line(event: Event) -> int:
    """The line of an event in its file, from its origin."""
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
    """One label per assessor, topic, document and aspect; `which` says which duplicate counts, or that it is an error."""
    labels: dict[tuple[str, ...], Event] = {}
    for event in events:
        labelled = event.kind == "judgment"
        key = (event.assessor, event.topic, event.document, event.aspect) if labelled else (event.id,)
        before = labels.get(key)
        if before is not None and which == "error":
            twice = f"document {event.document!r} is judged twice for topic {event.topic!r}"
            raise DuplicateError(path, _line(event), f"{twice}, first on line {_line(before)}")
        if before is None or which == "last" or (which == "best" and (event.grade or 0) > (before.grade or 0)):
            labels[key] = event
    return list(labels.values())


def _events(path: str, raw: bytes, reading: LabelReading, more: Mapping[str, Any]) -> list[Event]:
    source = CLICKS if names_posteriors(raw[:4096]) else "import"
    if source == CLICKS:
        other = more.get("source", CLICKS)
        use = (
            "count only if --sources names clicks" if other == CLICKS else f"now count as labels of the source {other}"
        )
        say([f"{os.path.basename(path)}: judgments from clicks, which {use}"])
    file = LabelFile(path, hashlib.sha256(raw).hexdigest(), {"source": source, **more})
    if _is_lines(raw):
        return _without_faults(file, _json_rows(raw, path), reading)
    export = annotation_export(raw, path, reading.fields or {}) if reading.format is None else None
    if export is not None:
        return _without_faults(file, _export_rows(file, *export, reading), reading)
    ending = plain_ending(path).rpartition(".")[2]
    wide = wide_encoding(raw[:64]) is not None
    is_table = ending in ("csv", "tsv") or wide or reading.fields or reading.dialect.delimiter
    if reading.format is None and is_table and ending not in ("parquet", "jsonl", "json"):
        return _without_faults(file, _table(raw, reading, path, more.get("topic", NO_TOPIC)), reading)
    file = file._replace(more={"assessor": run_name(path), **file.more})
    return list(_of_qrels(file, raw, reading))


def _without_faults(file: LabelFile, rows: Iterable[Row], reading: LabelReading) -> list[Event]:
    """The events of rows; an error is raised, or counted and skipped if reading is lenient.

    The id of an event comes from the row's last line, an error names the first.
    """
    events, skipped = [], 0
    for line, last, cells in rows:
        try:
            if isinstance(cells, BadLineError):
                raise cells
            events.append(file.event(last, cells))
        except BadLineError as error:
            if not reading.lenient:
                raise BadLineError(file.path, line, error.problem) from None
            skipped += 1
    _report(file, skipped)
    return events


def _report(file: LabelFile, skipped: int) -> None:
    say([f"{file.path}: {counted(skipped, 'malformed line')} skipped"] if skipped else [])


def _is_lines(raw: bytes) -> bool:
    """Whether a file is JSON lines of labels or events."""
    head = parsed(raw.lstrip().split(b"\n", 1)[0])
    return isinstance(head, dict) and ("kind" in head or {"topic", "document", "grade"} <= head.keys())


def _json_rows(raw: bytes, path: str) -> Iterator[Row]:
    for number, line in data_lines(raw):
        row = parsed(line)
        if isinstance(row, dict) and row.get("record") == VERSION:
            continue
        if isinstance(row, dict):
            yield number, number, {name: value for name, value in row.items() if name in DEFAULTS}
        else:
            yield number, number, BadLineError(path, number, f"expected a JSON object, found {line[:60]!r}")


def _export_rows(
    file: LabelFile, export: AnnotationExport, rows: Iterable[ExportRow], reading: LabelReading
) -> Iterator[Row]:
    """The labels of an export. A line may hold several, so each has its number in its id."""
    named = os.path.splitext(os.path.basename(file.path))[0]
    own = named if export.people_by_file else ""  # two people may say the same
    digest = hashlib.sha256(f"{own} {file.digest}".encode("utf-8", "surrogateescape")).hexdigest()
    number = 0
    for number, (line, cells) in enumerate(rows, 1):
        if isinstance(cells, BadLineError):
            yield line, line, cells
            continue
        person = cells.get("assessor") or file.more.get("assessor") or named
        label = {**cells, "assessor": person, "id": f"{digest[:24]}-{number:09d}"}
        try:
            if "grade" in label:
                label["grade"] = _grade_of(label["grade"], reading, file.path, line)
            yield line, line, label
        except BadLineError as error:
            yield line, line, error
    say([f"{os.path.basename(file.path)}: read as an export of {export.tool} with {counted(number, 'label')}"])


def _grade_of(value: Any, reading: LabelReading, path: str, line: int) -> float:
    """A grade from a number, the label of a grade, or a number with its label."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    text = " ".join(str(value).split())
    names = reading.grade_names or {}
    if _folded(text) in names:
        return names[_folded(text)]
    number, _, rest = text.partition(" ")
    for part in (text, number.rstrip(":.-") if rest else text):
        with suppress(ValueError):
            return real(part)
    known = f", or a label of the collection's grades ({', '.join(names)})" if names else ""
    raise BadLineError(path, line, f"expected a number as grade{known}; found {shortened(text)!r}")


def _folded(label: str) -> str:
    return " ".join(label.split()).casefold()


def grades_by_label(grades: Mapping[float, Grade]) -> dict[str, float]:
    """The grades of a collection by their labels, for `LabelReading`; without labels that two grades share."""
    labels = [_folded(each.label) for each in grades.values()]
    return {_folded(each.label): grade for grade, each in grades.items() if labels.count(_folded(each.label)) == 1}


def guidelines_in(path: str) -> list[Guidelines]:
    """The versions of guidelines in a file of JSON lines, to which its labels refer; empty for any other file."""
    raw = _content(path)
    if VERSION.encode() not in raw or not _is_lines(raw):
        return []
    rows = [
        row for _, line in data_lines(raw) if isinstance(row := parsed(line), dict) and row.get("record") == VERSION
    ]
    return [version_of(row) for row in rows]


def _of_qrels(file: LabelFile, raw: bytes, reading: LabelReading) -> Iterator[Event]:
    options = {name: getattr(reading.dialect, name) for name in ("delimiter", "encoding", "decimal")}
    options |= {"fields": reading.fields, "duplicates": reading.duplicates or "error"}
    qrels = read_qrels(file.path, reading.format, reading.lenient, **options)
    _report(file, len(qrels.skipped))
    rows = [(topic, document, grade) for topic, grades in qrels.to_dict().items() for document, grade in grades.items()]
    where = _lines_of(raw, rows)
    for number, (topic, document, grade) in enumerate(rows, 1):
        line = where.get((topic, document), number)
        yield file.event(line, {"topic": topic, "document": document, "grade": grade})


def _lines_of(raw: bytes, rows: list[tuple[str, str, float]]) -> dict[tuple[str, str], int]:
    """The line of each judgment in a plain qrels file; empty for other formats, which count rows."""
    answer: dict[tuple[str, str], int] = {}
    for number, line in data_lines(raw):
        words = line.decode("utf-8", "surrogateescape").split()
        if len(words) == 4:
            answer[words[0], words[2]] = number
    return answer if len(answer) == len(rows) else {}


def _table(raw: bytes, reading: LabelReading, path: str, topic: str) -> Iterator[Row]:
    """For each row of separated values: its first and last line, and its cells by the fields of an event, or its error.

    `question,worker,answer` and other usual names are known. A row of an export is already an event; any other row
    without a topic gets the topic that the user gave.
    """
    fields = reading.fields or {}
    table = SeparatedValues(raw, path, lambda names: _names_labels(names, fields), reading.dialect)
    names = table.names
    exported = not fields and set(names) >= EVENTS and names == [name for name in DEFAULTS if name in names]
    columns = {name: place for place, name in enumerate(names)} if exported else _columns(names, path, fields)
    for line, last, row in table:
        if not any(row):
            continue
        try:
            if len(row) < len(names):
                raise BadLineError(path, line, f"expected {len(names)} columns, found {len(row)}")
            cells = _cells(row, columns, path, line, table.numbers, reading)
        except BadLineError as error:
            yield line, last, error
            continue
        yield line, last, cells if exported or cells.get("topic") else {**cells, "topic": topic}
    table.report()


def _names_labels(names: list[str], fields: Mapping[str, Sequence[str]]) -> bool:
    """Whether a header names the document and the grade of labels."""
    plain = set(_plain_names(names))
    columns = ({each.lower() for each in fields.get(role, COLUMNS[role])} for role in ("document", "grade"))
    return all(plain & each for each in columns)


def _plain_names(names: Sequence[str]) -> list[str]:
    return [name.lower().replace(" ", "_").replace("-", "_") for name in names]


def _columns(names: list[str], path: str, fields: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The column of each field of an event."""
    unknown = fields.keys() - (DEFAULTS.keys() - {"id", "origin"})
    if unknown:
        raise FormatError(f"--field: a label has no {min(unknown)!r}; it has {', '.join(COLUMNS)}")
    plain = _plain_names(names)
    answer: dict[str, int] = {}
    usual = COLUMNS | {name: (name,) for name in OF_KINDS if "kind" in plain}
    for role in {**usual, **fields}:
        columns = _plain_names(fields.get(role) or usual[role])
        place = next((plain.index(name) for name in columns if name in plain), None)
        if place is not None and place not in answer.values():
            answer[role] = place
    lacking = [role for role in ("document", "grade") if role not in answer]
    if lacking:
        advice = " ".join(f"--field {role}=COLUMN" for role in lacking)
        problem = f"no column for the {', the '.join(lacking)}; found {', '.join(names)}"
        raise FormatError(f"{path}: {problem}; name it by {advice}")
    return answer


def _cells(
    row: list[str], columns: dict[str, int], path: str, line: int, numbers: NumberReader, reading: LabelReading
) -> dict[str, Any]:
    cells: dict[str, Any] = {role: row[place] for role, place in columns.items()}
    for role in ("grade", "seconds", "rank"):
        if cells.get(role, "") != "":
            named = (reading.grade_names or {}).get(_folded(cells[role])) if role == "grade" else None
            try:
                cells[role] = named if named is not None else numbers.read(cells[role], line)
            except ValueError as error:
                raise BadLineError(path, line, f"expected a number as {role}, {error}") from None
    for role in ("sure", "repeat"):
        if cells.get(role, "") != "":
            cells[role] = TRUE.get(cells[role].strip().lower(), cells[role])
    for role, choices in (("source", SOURCES), ("kind", KINDS)):
        if cells.get(role, "") not in ("", *choices):
            problem = f"expected a {role} of {', '.join(choices)}, found {shortened(cells[role])!r}"
            raise BadLineError(path, line, f"{problem}; rename the column if it says something else")
    if "rank" in cells and cells["rank"] != "":
        cells["rank"] = int(cells["rank"])
    return cells


def refuse_off(
    events: Sequence[Event],
    files: Mapping[str, str],
    scale: Collection[float],
    known: KnownIds,
) -> None:
    """Raise DataError for a label off the scale, or of a topic or document that does not exist.

    `files` holds the origin of each label, for the message.
    """
    for event in events:
        problem = None
        if scale and event.grade is not None and event.kind != "preference" and event.grade not in scale:
            grades = ", ".join(f"{grade:g}" for grade in sorted(scale))
            problem = f"expected a grade of {grades}, found {event.grade:g}"
        elif refusal := refuse_unknown_ids(event, known):
            problem = f"{refusal[1]} in the collection"
        if problem:
            raise DataError(f"{files.get(event.id, '')}{problem}; nothing was added")

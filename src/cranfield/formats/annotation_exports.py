"""Exports of annotation tools as rows of labels: Quepid, Label Studio, doccano. Each tool is one class, which knows its files.

A row names the person who gave the label, as the export does. Tables whose columns are those of any table of labels
(Label Studio's and doccano's CSV) are not read here. Topic and document of a task are found in its data by the usual
names of columns, or by those that the user gives; a Label Studio or doccano project must have brought them along.
"""

from __future__ import annotations

import csv
import io
import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cranfield.base.errors import BadLineError
from cranfield.base.parameters import shortened
from cranfield.formats.named_columns import DOCUMENT, GRADE, TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FORMULA = ("-", "=", "+", "@")  # Quepid writes a blank before a text that begins so
MARKERS = {"annotation_id", "annotator"}  # in every task of Label Studio's JSON-MIN
VALUES = ("choices", "rating", "number", "text", "taxonomy")  # where Label Studio puts an answer


class ExportRow(NamedTuple):
    """One label of an export: its line, and its cells by the fields of an event, or what is wrong with it.

    An assessor that is missing or empty is not named in the file.
    """

    line: int
    cells: dict[str, Any] | BadLineError


class AnnotationExport(ABC):
    """The export of a tool: whether a file is one, and its labels. `names` are the user's names of columns by role."""

    tool: ClassVar[str]
    people_by_file: ClassVar[bool] = False  # whether the name of the file is the person

    def __init__(self, path: str, names: Mapping[str, Sequence[str]]) -> None:
        self.path, self.names = path, names

    @classmethod
    @abstractmethod
    def fits(cls, head: str, content: Any) -> bool:
        """Whether this is an export of the tool: by its first line, or by its JSON (the first row of JSON lines)."""

    @abstractmethod
    def rows(self, text: str, content: Any) -> Iterator[ExportRow]:
        """The labels in the file."""

    def wrong(self, line: int, problem: str) -> ExportRow:
        """A row that is no label, with its problem."""
        return ExportRow(line, BadLineError(self.path, line, f"{self.tool}: {problem}"))

    def subject(self, data: Mapping[str, Any]) -> dict[str, str] | str:
        """Topic and document of a task, or what its data lack."""
        found: dict[str, str] = {}
        plain = {name.lower().replace(" ", "_").replace("-", "_"): value for name, value in data.items()}
        for role, usual in (("topic", TOPIC), ("document", DOCUMENT)):
            names = [name.lower() for name in self.names.get(role, usual)]
            values = (plain.get(name) for name in names)
            value = next((each for each in values if isinstance(each, (str, int)) and each != ""), None)
            if value is None or isinstance(value, bool):
                return f"no {role} in the data of the task; found {shortened(', '.join(data))}"
            found[role] = str(value)
        return found


class QuepidTable(AnnotationExport):
    """Quepid's CSV: one rating per query and document (of a case), or a column for each rater (of a book)."""

    tool = "Quepid"

    @classmethod
    def fits(cls, head: str, content: Any) -> bool:
        names = next(csv.reader([head]), [])
        raters = [name.strip().lower() for name in names[2:]]
        other = any(name in GRADE and name != "rating" for name in raters)
        return names[:2] == ["query", "docid"] and bool(raters) and not other

    def rows(self, text: str, content: Any) -> Iterator[ExportRow]:
        reader = csv.reader(io.StringIO(text, newline=""))
        names = next(reader)
        ratings = names[2:] == ["rating"]
        raters = [""] if ratings else [_unescaped(name) for name in names[2:]]
        for cells in reader:
            line = reader.line_num
            query, document, *grades = [*cells, "", ""]
            for rater, grade in zip(raters, grades, strict=False):
                if document and grade:  # a query without ratings has a row of its own
                    label = {"topic": _unescaped(query), "document": document, "grade": grade, "assessor": rater}
                    yield ExportRow(line, label)


class QuepidBook(AnnotationExport):
    """Quepid's JSON of a book: pairs of query and document, each with the judgments of people and their explanations."""

    tool = "Quepid"

    @classmethod
    def fits(cls, head: str, content: Any) -> bool:
        return isinstance(content, dict) and isinstance(content.get("query_doc_pairs"), list)

    def rows(self, text: str, content: Any) -> Iterator[ExportRow]:
        for number, pair in enumerate(content["query_doc_pairs"], 1):
            judgements = pair.get("judgements") if isinstance(pair, dict) else None
            if not isinstance(judgements, list) or not all(isinstance(each, dict) for each in judgements):
                yield self.wrong(1, f"expected a pair with judgements, found pair {number}: {shortened(str(pair))}")
                continue
            for each in judgements:
                about = {"topic": pair.get("query_text"), "document": pair.get("doc_id")}
                about |= {"assessor": each.get("user_email") or "", "note": each.get("explanation") or ""}
                if each.get("unrateable"):
                    yield ExportRow(1, {**about, "kind": "cannot-judge"})
                elif each.get("rating") is not None:  # a document for later has none yet
                    yield ExportRow(1, {**about, "grade": each["rating"]})


class QuepidCase(AnnotationExport):
    """Quepid's JSON of a case: queries, each with one rating per document; the people are not named."""

    tool = "Quepid"

    @classmethod
    def fits(cls, head: str, content: Any) -> bool:
        queries = content.get("queries") if isinstance(content, dict) else None
        return isinstance(queries, list) and all(isinstance(each, dict) and "query_text" in each for each in queries)

    def rows(self, text: str, content: Any) -> Iterator[ExportRow]:
        for query in content["queries"]:
            ratings = query.get("ratings") or {}
            listed = ratings.items() if isinstance(ratings, dict) else ((_rated(each), each) for each in ratings)
            for document, rating in listed:
                grade, who = (
                    (rating, "") if not isinstance(rating, dict) else (rating.get("rating"), rating.get("user_email"))
                )
                if grade is not None:
                    about = {"topic": query["query_text"], "document": document, "grade": grade}
                    yield ExportRow(1, {**about, "assessor": who or ""})


class LabelStudio(AnnotationExport):
    """Label Studio's JSON: tasks with the annotations of people; and JSON-MIN, one annotation per task."""

    tool = "Label Studio"

    @classmethod
    def fits(cls, head: str, content: Any) -> bool:
        first = content[0] if isinstance(content, list) and content else None
        if not isinstance(first, dict):
            return False
        return first.keys() >= MARKERS or (
            isinstance(first.get("annotations"), list) and isinstance(first.get("data"), dict)
        )

    def rows(self, text: str, content: Any) -> Iterator[ExportRow]:
        for line, task in _elements(text, content):
            if not isinstance(task, dict):
                yield self.wrong(line, f"expected a task, found {shortened(str(task))}")
            elif task.keys() >= MARKERS:
                yield self._small(line, task)
            else:
                yield from self._task(line, task)

    def _small(self, line: int, task: dict[str, Any]) -> ExportRow:
        subject = self.subject(task)
        if isinstance(subject, str):
            return self.wrong(line, subject)
        names = [name for name in self.names.get("grade", GRADE) if name in task]
        if not names:
            return self.wrong(line, f"no answer among {shortened(', '.join(task))}; name its column as the grade")
        about = {"grade": _answer(task[names[0]]), "assessor": _person(task["annotator"])}
        about |= {"time": task.get("created_at") or "", "seconds": task.get("lead_time")}
        return ExportRow(line, {**subject, **about})

    def _task(self, line: int, task: dict[str, Any]) -> Iterator[ExportRow]:
        subject = self.subject(task["data"] if isinstance(task.get("data"), dict) else {})
        annotations = task.get("annotations")
        for each in annotations if isinstance(annotations, list) else ():
            if not isinstance(each, dict) or each.get("was_cancelled"):  # skipped by its annotator
                continue
            if isinstance(subject, str):
                yield self.wrong(line, subject)
                continue
            about = {"assessor": _person(each.get("completed_by")), "time": each.get("created_at") or ""}
            about |= {"seconds": each.get("lead_time")}
            answers = self._answers(each.get("result"))
            if len(answers) > 1:
                names = ", ".join(dict.fromkeys(answers))
                yield self.wrong(line, f"several answers ({shortened(names)}); name that of the grade as its column")
            elif answers:
                yield ExportRow(line, {**subject, **about, "grade": next(iter(answers.values()))})

    def _answers(self, result: Any) -> dict[str, Any]:
        """The answers of an annotation that may be grades, by the name of their question."""
        parts = [each for each in result if isinstance(each, dict)] if isinstance(result, list) else []
        given = {str(each.get("from_name", "")): _answer(each.get("value")) for each in parts}
        if "grade" in self.names:
            return {name: answer for name, answer in given.items() if name in self.names["grade"]}
        named = {name: answer for name, answer in given.items() if name.lower() in GRADE}
        return named if len(named) == 1 else {name: answer for name, answer in given.items() if answer != ""}


class Doccano(AnnotationExport):
    """doccano's JSON and JSON lines: an example with its labels and its metadata; a file per person, named like them."""

    tool = "doccano"
    people_by_file = True

    @classmethod
    def fits(cls, head: str, content: Any) -> bool:
        first = content[0] if isinstance(content, list) and content else content
        return (
            isinstance(first, dict)
            and "id" in first
            and bool(_labels_in(first))
            and bool({"text", "data"} & first.keys())
        )

    def rows(self, text: str, content: Any) -> Iterator[ExportRow]:
        elements = _elements(text, content) if isinstance(content, list) else _lines(text)
        for line, example in elements:
            name = _labels_in(example) if isinstance(example, dict) else ""
            if not name:
                yield self.wrong(line, f"expected an example with its labels, found {shortened(str(example))}")
                continue
            labels = example[name] if isinstance(example[name], list) else [example[name]]
            if not labels:  # not annotated yet
                continue
            meta = example.get("meta") or example.get("metadata")
            rest = {key: value for key, value in example.items() if key not in (name, "id", "text", "data")}
            subject = self.subject({**rest, **(meta if isinstance(meta, dict) else {})})
            if isinstance(subject, str):
                yield self.wrong(line, subject)
            elif len(labels) > 1:
                yield self.wrong(line, f"expected one label, found {shortened(str(labels))}")
            else:
                yield ExportRow(line, {**subject, "grade": labels[0]})


class DoccanoTable(AnnotationExport):
    """doccano's CSV: a row per example with its labels and its metadata; a file per person, named like them."""

    tool = "doccano"
    people_by_file = True

    @classmethod
    def fits(cls, head: str, content: Any) -> bool:
        names = set(next(csv.reader([head]), []))
        return {"id", "label"} <= names and bool({"text", "data"} & names) and not MARKERS & names

    def rows(self, text: str, content: Any) -> Iterator[ExportRow]:
        reader = csv.DictReader(io.StringIO(text, newline=""))
        for row in reader:
            if not row.get("label"):  # not annotated yet
                continue
            data = {name: value for name, value in row.items() if name not in (None, "id", "text", "data", "label")}
            subject = self.subject(data)
            if isinstance(subject, str):
                yield self.wrong(reader.line_num, subject)
            else:
                yield ExportRow(reader.line_num, {**subject, "grade": row["label"]})


EXPORTS: tuple[type[AnnotationExport], ...] = (QuepidTable, DoccanoTable, QuepidBook, QuepidCase, LabelStudio, Doccano)


def annotation_export(
    raw: bytes, path: str, names: Mapping[str, Sequence[str]]
) -> tuple[AnnotationExport, Iterator[ExportRow]] | None:
    """The export that a file is, with its labels; None if it is of no tool that is known here."""
    start = raw.lstrip()[:1]
    head = raw[:4096].split(b"\n", 1)[0].decode("utf-8", "replace").strip()
    is_json = start in (b"[", b"{")
    if not is_json and not any(each.fits(head, None) for each in EXPORTS):
        return None
    text = raw.decode("utf-8", "surrogateescape")
    content = _content(text) if is_json else None
    cls = next((each for each in EXPORTS if each.fits(head if not is_json else "", content)), None)
    if cls is None:
        return None
    export = cls(path, names)
    return export, export.rows(text, content)


def _content(text: str) -> Any:
    """The JSON of a file; of JSON lines, the first one; None if it is neither."""
    for part in (text, text.lstrip().split("\n", 1)[0]):
        try:
            return json.loads(part)
        except (ValueError, RecursionError):
            continue
    return None


def _elements(text: str, content: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """The elements of a JSON array, each with the line where it begins."""
    decoder, place, line, seen = json.JSONDecoder(), text.index("[") + 1, 1, 0
    for element in content:
        while text[place] in " \t\r\n,":
            place += 1
        line += text.count("\n", seen, place)
        seen = place
        yield line, element
        place = decoder.raw_decode(text, place)[1]


def _lines(text: str) -> Iterator[tuple[int, Any]]:
    """The values of JSON lines; a line that is no JSON comes as its text."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError):
                yield number, line


def _unescaped(text: str) -> str:
    return text[1:] if text[:1] == " " and text[1:2] in FORMULA else text


def _rated(rating: Any) -> Any:
    return rating.get("doc_id") if isinstance(rating, dict) else rating


def _person(person: Any) -> str:
    """The name of an annotator: the address if the export has one, or the number of the account."""
    if isinstance(person, dict):
        person = person.get("email") or person.get("username") or person.get("id")
    return "" if person is None else str(person)


def _answer(value: Any) -> Any:
    """What was answered, out of the lists and objects around it; empty if it is nothing that can be a grade."""
    while isinstance(value, (dict, list)):
        if isinstance(value, dict):
            value = next((value[name] for name in VALUES if name in value), "")
        else:
            value = value[0] if len(value) == 1 else ""
    return "" if value is None or isinstance(value, bool) else value


def _labels_in(example: Mapping[str, Any]) -> str:
    """The name under which an example has its labels; empty if it has none of doccano's."""
    return next((name for name in ("label", "labels", "cats") if isinstance(example.get(name), (list, str))), "")

"""Answers of participants: CSV, a row a question, as a form saves it or as somebody fills in the template by hand.

    participant,task,system,question,value

A question is `success` (yes or no) or `seconds` of a task, or an item of a questionnaire about a system (`sus1`), whose task
is empty. A system goes by its name or by its letter. A value that is empty was not answered.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cranfield.errors import BadLineError, DataError
from cranfield.formats.streams import files_in, opened
from cranfield.formats.tables import rows_by_name
from cranfield.online.study.plan import TASK_QUESTIONS
from cranfield.parameters import real, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cranfield.online.study.plan import Schedule, Turn

HEAD = ("participant", "task", "system", "question", "value")
YES, NO = ("yes", "1", "true"), ("no", "0", "false")


class Question(NamedTuple):
    """One question to one participant: of a task, or where that is empty of a system."""

    participant: str
    task: str
    system: str
    name: str


@dataclass(frozen=True)
class Answers:
    """What participants answered, and to what they did not."""

    schedule: Schedule
    values: Mapping[Question, float]
    missing: int

    def of(self, turn: Turn, name: str) -> float | None:
        """The answer about a task."""
        return self.values.get(Question(turn.participant, turn.task, turn.system, name))


def questions(schedule: Schedule) -> Iterator[Question]:
    """All that is asked, in its order."""
    study = schedule.study
    for person in study.people:
        turns = schedule.of(person)
        for turn in turns:
            yield from (Question(person, turn.task, turn.system, name) for name in TASK_QUESTIONS)
        for system in dict.fromkeys(turn.system for turn in turns):
            for each in study.questionnaires:
                yield from (Question(person, "", system, name) for name in each.questions)


def template(schedule: Schedule) -> str:
    """A CSV file with a row for every question, to be filled in."""
    import io

    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows([*question, ""] for question in questions(schedule))
    return file.getvalue()


def read_answers(schedule: Schedule, paths: Sequence[str]) -> Answers:
    """The answers in files and in folders of CSV files; DataError with file and line at what fits no question."""
    asked = dict.fromkeys(questions(schedule))
    names = {letter: system for system, letter in schedule.study.letters.items()}
    values: dict[Question, float] = {}
    for path in files_in(paths, ".csv", "answers"):
        for line, row in _rows(path):
            system = row["system"].strip()
            question = Question(
                row["participant"].strip(), row["task"].strip(), names.get(system, system), row["question"].strip()
            )
            if question not in asked:
                raise BadLineError(path, line, _misfit(schedule, question))
            if not row["value"].strip():
                continue
            value = _value(schedule, question, row["value"].strip(), path, line)
            if values.setdefault(question, value) != value:
                said = f"{question.participant} answered {question.name} before, as {values[question]:g}"
                raise BadLineError(path, line, f"{said}; found {value:g}")
    if not values:
        raise DataError(f"{', '.join(paths)}: no answer is filled in")
    return Answers(schedule, values, len(asked) - len(values))


def _rows(path: str) -> Iterable[tuple[int, dict[str, str]]]:
    try:
        text = bytes(opened(path).buffer).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected utf-8, found byte {error.object[error.start]:#04x}") from None
    for line, row in rows_by_name(text.splitlines(), path, ",", HEAD):
        cells = {name: cell for name in HEAD if (cell := row[name]) is not None}
        if len(cells) < len(HEAD):
            raise BadLineError(path, line, f"expected {len(HEAD)} columns ({', '.join(HEAD)}), found fewer")
        yield line, cells


def _misfit(schedule: Schedule, question: Question) -> str:
    """Why nobody asked a question, in words."""
    study = schedule.study
    person, task, system, name = question
    known = {"participant": (person, study.people), "system": (system, study.systems)}
    for what, (found, names) in known.items():
        if found not in names:
            return f"no {what} {shortened(found)!r}; there are {', '.join([*names][:10])}"
    if not task:
        every = [each for one in study.questionnaires for each in one.questions]
        said = f"there are {', '.join(every)}" if every else "the study has no questionnaire"
        return f"no question {shortened(name)!r} about a system; {said}"
    if name not in TASK_QUESTIONS:
        return f"no question {shortened(name)!r} about a task; there are {', '.join(TASK_QUESTIONS)}"
    planned = {turn.task: turn.system for turn in schedule.of(person)}
    if task not in planned:
        return f"no task {shortened(task)!r}; there are {', '.join(planned)}"
    return f"{person} was to do {task} with {planned[task]}, found {system}"


def _value(schedule: Schedule, question: Question, text: str, path: str, line: int) -> float:
    if question.name == "success":
        if text.lower() not in YES + NO:
            raise BadLineError(path, line, f"expected yes or no as success, found {shortened(text)!r}")
        return float(text.lower() in YES)
    try:
        number = real(text)
    except ValueError:
        raise BadLineError(path, line, f"expected a number as {question.name}, found {shortened(text)!r}") from None
    if question.name == "seconds":
        if number <= 0:
            raise BadLineError(path, line, f"expected seconds above 0, found {shortened(text)}")
        return number
    [scale] = [each for each in schedule.study.questionnaires if question.name in each.questions]
    if not scale.low <= number <= scale.high or number != int(number):
        wanted = f"a whole number from {scale.low} to {scale.high}"
        raise BadLineError(path, line, f"expected {wanted} as {question.name}, found {shortened(text)}")
    return number

"""Answers of participants: CSV with one row per question, saved by a form or filled into the template by hand.

    participant,task,system,question,value

A question is `success` (yes or no) or `seconds` of a task, or an item of a questionnaire about a system (`sus1`), whose
task is empty. A system is named by its name or its letter. An empty value means no answer.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.parameters import real, shortened
from cranfield.experiments.offline_agreement import utf8_lines
from cranfield.formats.csv_tables import rows_by_name
from cranfield.formats.streams import files_in
from cranfield.studies.plan import TASK_QUESTIONS, StudySchedule, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


HEAD = ("participant", "task", "system", "question", "value")
YES, NO = ("yes", "1", "true"), ("no", "0", "false")


class StudyQuestion(NamedTuple):
    """One question to one participant about a task, or about a system if `task` is empty."""

    participant: str
    task: str
    system: str
    name: str


@dataclass(frozen=True)
class StudyAnswers:
    """The answers of participants, and the number of missing ones."""

    schedule: StudySchedule
    values: Mapping[StudyQuestion, float]
    missing: int

    def of(self, turn: Turn, name: str) -> float | None:
        """The answer to a question about the task of a turn; None if it is missing."""
        return self.values.get(StudyQuestion(turn.participant, turn.task, turn.system, name))


def questions(schedule: StudySchedule) -> Iterator[StudyQuestion]:
    """All questions of a study, in order."""
    study = schedule.study
    for person in study.people:
        turns = schedule.of(person)
        for turn in turns:
            yield from (StudyQuestion(person, turn.task, turn.system, name) for name in TASK_QUESTIONS)
        for system in dict.fromkeys(turn.system for turn in turns):
            for each in study.questionnaires:
                yield from (StudyQuestion(person, "", system, name) for name in each.questions)


def template(schedule: StudySchedule) -> str:
    """A CSV file with an empty row for each question."""
    import io

    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows([*question, ""] for question in questions(schedule))
    return file.getvalue()


def read_answers(schedule: StudySchedule, paths: Sequence[str]) -> StudyAnswers:
    """The answers in CSV files and folders of them; DataError with file and line for a row that fits no question."""
    every_question = dict.fromkeys(questions(schedule))
    names = {letter: system for system, letter in schedule.study.letters.items()}
    values: dict[StudyQuestion, float] = {}
    for path in files_in(paths, ".csv", "answers"):
        for line, (participant, task, system, name, text) in _rows(path):
            question = StudyQuestion(participant, task, names.get(system, system), name)
            if question not in every_question:
                raise BadLineError(path, line, _misfit(schedule, question))
            if not text:
                continue
            value = _value(schedule, question, text, path, line)
            if values.setdefault(question, value) != value:
                earlier = f"{question.participant} answered {question.name} before, as {values[question]:g}"
                raise BadLineError(path, line, f"{earlier}; found {value:g}")
    if not values:
        raise DataError(f"{', '.join(paths)}: no answer is filled in")
    return StudyAnswers(schedule, values, len(every_question) - len(values))


def _rows(path: str) -> Iterable[tuple[int, list[str]]]:
    """The cells of `HEAD` in each line of a file, without white space around them."""
    for line, row in rows_by_name(utf8_lines(path), path, ",", HEAD):
        cells = [cell.strip() for name in HEAD if (cell := row[name]) is not None]
        if len(cells) < len(HEAD):
            raise BadLineError(path, line, f"expected {len(HEAD)} columns ({', '.join(HEAD)}), found fewer")
        yield line, cells


def _misfit(schedule: StudySchedule, question: StudyQuestion) -> str:
    """Why a row fits no question of the study."""
    study = schedule.study
    person, task, system, name = question
    options = {"participant": (person, study.people), "system": (system, study.systems)}
    for what, (name_of, names) in options.items():
        if name_of not in names:
            return f"no {what} {shortened(name_of)!r}; there are {', '.join([*names][:10])}"
    if not task:
        every = [each for one in study.questionnaires for each in one.questions]
        hint = f"there are {', '.join(every)}" if every else "the study has no questionnaire"
        return f"no question {shortened(name)!r} about a system; {hint}"
    if name not in TASK_QUESTIONS:
        return f"no question {shortened(name)!r} about a task; there are {', '.join(TASK_QUESTIONS)}"
    planned = {turn.task: turn.system for turn in schedule.of(person)}
    if task not in planned:
        return f"no task {shortened(task)!r}; there are {', '.join(planned)}"
    return f"{person} was to do {task} with {planned[task]}, found {system}"


def _value(schedule: StudySchedule, question: StudyQuestion, text: str, path: str, line: int) -> float:
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
        range_text = f"a whole number from {scale.low} to {scale.high}"
        raise BadLineError(path, line, f"expected {range_text} as {question.name}, found {shortened(text)}")
    return number

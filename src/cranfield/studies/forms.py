"""Forms of a study, and the answers of its participants.

A form is a plain page for one participant: it opens offline and asks all questions in the participant's order. Its answers
are CSV with one row per question, saved by the form or filled into the template by hand:

    participant,task,system,question,value

A question is `success` (yes or no) or `seconds` of a task, or an item of a questionnaire about a system (`sus1`), whose
task is empty. A system is named by its name or its letter. An empty value means no answer.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.parameters import real, shortened
from cranfield.base.results import html_text
from cranfield.experiments.offline_agreement import utf8_lines
from cranfield.formats.csv_tables import rows_by_name
from cranfield.formats.streams import files_in, write_bytes
from cranfield.studies.plan import TASK_QUESTIONS, StudySchedule, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cranfield.studies.plan import Questionnaire, StudySchedule, Turn


TEMPLATE = "answers.csv"
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


SECONDS = '<input type="number" min="0" step="any" inputmode="decimal" aria-label="Seconds of task {}">'
STYLE = """
fieldset { border: 1px solid var(--rule); border-radius: 6px; margin: 0 0 .8rem; padding: .5rem .9rem; max-width: 48rem; }
fieldset label { margin-right: 1.1rem; white-space: nowrap; }
.task { font-size: 1.1rem; max-width: 48rem; border-left: 4px solid var(--accent); padding-left: .9rem; }
input[type="number"] { width: 7rem; font: inherit; }
@media print { button { display: none; } fieldset { break-inside: avoid; } }
"""
SCRIPT = """
const button = document.querySelector("#save"), said = document.querySelector("#said");
button.hidden = false;
button.addEventListener("click", () => {
  const cell = (text) => '"' + text.replaceAll('"', '""') + '"';
  const lines = ["%HEAD%"];
  let open = 0;
  for (const set of document.querySelectorAll("fieldset")) {
    const field = set.querySelector("input:checked, input[type=number]");
    const value = field ? field.value.trim() : "";
    if (value === "") open += 1;
    const { participant, task, system, question } = set.dataset;
    lines.push([participant, task, system, question, value].map(cell).join(","));
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines.join("\\n") + "\\n"], { type: "text/csv" }));
  link.download = document.body.dataset.name + ".csv";
  link.click();
  said.textContent = "Saved as " + link.download + (open ? "; questions without an answer: " + open : "");
});
""".replace("%HEAD%", ",".join(HEAD))


def write_forms(schedule: StudySchedule, folder: str) -> list[str]:
    """Write a page per participant and the template into a new or empty folder; return their names."""
    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise DataError(f"{folder}: expected a folder that is empty or not there, found something in it")
    os.makedirs(folder, exist_ok=True)
    pages = {f"{person}.html": form(schedule, person) for person in schedule.study.people}
    pages[TEMPLATE] = template(schedule)
    for name, text in pages.items():
        write_bytes(os.path.join(folder, name), [text.encode()])
    return list(pages)


def form(schedule: StudySchedule, participant: str) -> str:
    """The page of a participant."""
    study, turns = schedule.study, schedule.of(participant)
    style = files("cranfield.reports").joinpath("page.css").read_text(encoding="utf-8") + STYLE
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(SCRIPT)}'; base-uri 'none'; form-action 'none'"
    systems = dict.fromkeys(turn.system for turn in turns)
    parts = [_part(schedule, participant, [turn for turn in turns if turn.system == each]) for each in systems]
    title = html_text(f"{study.name}, {participant}")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f'<style>{style}</style>\n</head>\n<body data-name="{html_text(participant)}">\n'
        f'<header><h1>{title}</h1><p class="lead">Do the tasks in this order, each with the system named above it.</p></header>\n'
        f"<main>\n{''.join(parts)}"
        f'<p><button type="button" id="save" hidden>Save my answers</button> <span id="said" role="status"></span></p>\n'
        f"<noscript><p>Print this page, or tell your answers to the person who leads the study.</p></noscript>\n"
        f"</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _part(schedule: StudySchedule, participant: str, turns: list[Turn]) -> str:
    """The section of one system: its tasks, then the questions about it."""
    study = schedule.study
    letter, texts = study.letters[turns[0].system], {task.id: task.text for task in study.tasks}
    lines = [f"<section><h2>Part {turns[0].part}: system {letter}</h2>"]
    for turn in turns:
        of_task = (participant, turn.task, letter)
        lines += [
            f'<h3>Task {turn.position}</h3><p class="task">{html_text(texts[turn.task])}</p>',
            _fieldset(of_task, "success", "Did you find what was asked?", _radios(of_task, "success", ["yes", "no"])),
            _fieldset(of_task, "seconds", "Seconds that it took", SECONDS.format(turn.position)),
        ]
    lines += [_questions((participant, "", letter), each) for each in study.questionnaires]
    return "\n".join(lines) + "</section>\n"


def _questions(where: tuple[str, str, str], questionnaire: Questionnaire) -> str:
    low, high = questionnaire.ends
    steps = [str(step) for step in range(questionnaire.low, questionnaire.high + 1)]
    letter = where[2]
    head = f"<h3>About system {letter}</h3><p>{steps[0]}: {html_text(low)}; {steps[-1]}: {html_text(high)}.</p>"
    fields = (
        _fieldset(where, name, text, _radios(where, name, steps))
        for name, text in zip(questionnaire.questions, questionnaire.items, strict=True)
    )
    return "\n".join([head, *fields])


def _fieldset(where: tuple[str, str, str], question: str, text: str, inputs: str) -> str:
    participant, task, letter = map(html_text, where)
    data = f'data-participant="{participant}" data-task="{task}" data-system="{letter}" data-question="{question}"'
    return f"<fieldset {data}><legend>{html_text(text)}</legend>{inputs}</fieldset>"


def _radios(where: tuple[str, str, str], question: str, values: Iterable[str]) -> str:
    name = html_text("/".join([*where[1:], question]))
    return "".join(f'<label><input type="radio" name="{name}" value="{each}"> {each}</label>' for each in values)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"

"""Forms as plain pages: one for each participant, which opens offline and asks all questions in the participant's order.

The page is complete without its script, to be printed or read out; the script adds one button, which saves the answers
as a CSV file on the participant's own machine. Nothing is sent anywhere; a Content-Security-Policy enforces that.
Systems are shown as letters.
"""

from __future__ import annotations

import base64
import hashlib
import os
from importlib.resources import files
from typing import TYPE_CHECKING

from cranfield.base.errors import DataError
from cranfield.base.results import html_text
from cranfield.formats.streams import write_bytes
from cranfield.studies.answers import HEAD, template

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.studies.plan import Questionnaire, StudySchedule, Turn

TEMPLATE = "answers.csv"
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

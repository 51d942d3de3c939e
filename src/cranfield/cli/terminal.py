"""A person at a terminal: shows one document after the other and takes down what is said of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from cranfield.cli.output import note
from cranfield.parameters import real, shortened
from cranfield.workspace.desk import Task

if TYPE_CHECKING:
    from cranfield.workspace.desk import Desk

HELP = """a number is the grade, a ? behind it says that you are not sure (2?)
x    cannot judge it (x WHY says why)
s    skip it; it comes again next time
n    note something about it (n TEXT), and go on with it
u    undo: take back the last thing you said, and show its document again (z does the same)
t    show the topic in full
q    stop; call again to go on"""
WORDS = {"quit": "q", "skip": "s", "undo": "u", "z": "u", "help": "?", "note": "n", "topic": "t"}


def sit(desk: Desk) -> None:
    """Ask until everything is judged or the person stops."""
    note(f"{desk.told()}. ? helps, q stops.")
    for line in desk.need.meanings():
        note(line)
    topic, task = None, desk.next()
    while True:
        if isinstance(task, Task):
            note(f"\n{desk.need.topic(task.topic, task.topic != topic)}\n{desk.need.document(task.document)}")
            topic = task.topic
            if opinions := desk.opinions(task):
                note(opinions)
            after = _judged(desk, task)
        else:
            note(f"\n{task}")
            after = _ended(desk)
        if after == "q":
            break
        task = after if isinstance(after, Task) else desk.next()
    note(f"{desk.kept} {'label' if desk.kept == 1 else 'labels'} kept in {desk.log.name}")


def _judged(desk: Desk, task: Task) -> Task | str:
    """Take down what is said of a document: `q` to stop, the document to show again, or nothing for the next."""
    began = time.monotonic()
    scale = desk.need.range()
    while True:
        word, text = _word(f"grade {scale}".rstrip())
        seconds = time.monotonic() - began
        if word == "q":
            return "q"
        if word == "u":
            again = _undone(desk)
            if again is not None:
                return again
        elif word == "?":
            note("\n".join([*desk.need.meanings(), HELP]))
        elif word == "t":
            note(desk.need.topic(task.topic, True))
        elif word == "n" and text:
            desk.answer(task, "note", seconds, note=text)
        elif word in ("s", "x"):
            note_of = {"note": text} if text else {}
            return _told(desk.answer(task, "skip" if word == "s" else "cannot-judge", seconds, **note_of))
        elif (grade := _grade(desk, word)) is not None:
            said = {"grade": grade, "sure": not word.endswith("?"), **({"note": text} if text else {})}
            return _told(desk.answer(task, "judgment", seconds, **said))


def _word(prompt: str) -> tuple[str, str]:
    """The first word of what is typed, and the rest; `q` where nothing more comes."""
    try:
        typed = click.prompt(prompt, prompt_suffix=" > ", err=True).strip()
    except (click.Abort, EOFError, OSError):  # or there is no standard input
        return "q", ""
    word, _, text = typed.partition(" ")
    return WORDS.get(word.lower(), word), text.strip()


def _grade(desk: Desk, word: str) -> float | None:
    """The grade that was typed; None, with a word on what is expected, if it is none."""
    try:
        grade = real(word.removesuffix("?"))
    except ValueError:
        note(f"expected a number, s to skip, q to stop or ? for help, found {shortened(word)!r}")
        return None
    problem = desk.refuse(grade)
    if problem:
        note(problem)
    return None if problem else grade


def _told(problem: str) -> str:
    if problem:
        note(problem)
    return ""


def _ended(desk: Desk) -> Task | str:
    """Nothing is left: the last label can still be taken back."""
    if not desk.kept:
        return "q"
    while True:
        word, _ = _word("u takes the last one back, q stops")
        if word == "q":
            return "q"
        if word == "u" and (again := _undone(desk)) is not None:
            return again


def _undone(desk: Desk) -> Task | None:
    """The document of what was taken back, if there was anything."""
    undone = desk.undo()
    task, words = (None, "you have said nothing that could be taken back") if undone is None else undone
    note(words)
    return task

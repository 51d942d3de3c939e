"""Verbs of user studies: plan, forms, analyze."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.online.study.plan import Schedule
    from cranfield.online.study.results import StudyResults


def plan(study: str, participants: int | None = None) -> Schedule:
    """Who does which task with which system, in which order, by a study's file."""
    from cranfield.online.study import read_study, schedule

    return schedule(read_study(study, participants))


def forms(study: str, folder: str, participants: int | None = None) -> list[str]:
    """Write a page for each participant and a template for answers into a folder; their names."""
    from cranfield.online.study.forms import write_forms

    return write_forms(plan(study, participants), folder)


def analyze(
    study: str,
    answers: Sequence[str],
    *,
    participants: int | None = None,
    test: str = "t",
    level: float = 0.95,
    every_time: bool = False,
) -> StudyResults:
    """What the answers of participants say, in files or folders of them."""
    from cranfield.online.study import analyze, read_answers

    return analyze(read_answers(plan(study, participants), answers), test=test, level=level, every_time=every_time)

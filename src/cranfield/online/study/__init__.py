"""User studies: who does which task with which system in which order, forms to fill in, and what the answers say."""

from __future__ import annotations

from cranfield.online.study.answers import read_answers
from cranfield.online.study.plan import Study, read_study, schedule
from cranfield.online.study.questionnaire import SUS, Questionnaire
from cranfield.online.study.results import analyze

__all__ = ["SUS", "Questionnaire", "Study", "analyze", "read_answers", "read_study", "schedule"]

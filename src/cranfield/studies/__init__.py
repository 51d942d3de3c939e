"""User studies: who does which task with which system in which order, forms to fill in, and what the answers say."""

from __future__ import annotations

from cranfield.studies.forms import read_answers
from cranfield.studies.plan import SUS, Questionnaire, Study, read_study, schedule
from cranfield.studies.results import analyze

__all__ = ["SUS", "Questionnaire", "Study", "analyze", "read_answers", "read_study", "schedule"]

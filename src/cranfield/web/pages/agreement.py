"""How far people agree: for the lead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.judge.agreeing import VIEWS
from cranfield.judge.status import status
from cranfield.web.asking import ask
from cranfield.web.entry import Page, page
from cranfield.web.roles import LEAD

if TYPE_CHECKING:
    from cranfield.web.visit import Visit

MEASURE = "nDCG@10"


@page("/agreement", LEAD, "workspace.agree", table=True, menu=(40, "Agreement"))
def agreement(visit: Visit) -> Page:
    """Coefficients of agreement with intervals, who confuses what, drift over time, and how each person's labels rank runs."""
    round, by, measure = visit.text("round"), visit.text("by"), visit.text("measure", MEASURE)
    asked = ask(visit, "agree", round=round, by=by, measures=measure)
    found = asked.answer
    values = {"round": round, "by": by, "measure": measure, **asked.values()}
    shown = {
        "asked": asked,
        "rounds": [each.name for each in status(visit.site.bench.log).rows],
        "views": VIEWS,
        "apart": found["contradictions"] if found else 0,
    }
    return Page("Agreement", "agreement.html", values, shown, asked.table, ("live.js",), asked.told(visit))

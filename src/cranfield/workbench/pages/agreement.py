"""Inter-annotator agreement, for the lead."""

from __future__ import annotations

from cranfield.judging.agreement import VIEWS
from cranfield.workbench.access_control import LEAD
from cranfield.workbench.job_answers import answer_page, ask
from cranfield.workbench.routes import Page, PageRequest, page

MEASURE = "nDCG@10"


@page("/agreement", LEAD, "jobs.ask agree", table=True, menu=("decide", 10, "Agreement"))
def agreement(request: PageRequest) -> Page:
    """Inter-annotator agreement with intervals, confusions, drift over time, and how each person's labels rank runs."""
    round, by, measure = request.text("round"), request.text("by"), request.text("measure", MEASURE)
    job = ask(request, "agree", round=round, by=by, measures=measure)
    values = {"round": round, "by": by, "measure": measure}
    with request.site.bench.log.reading() as transaction:
        rounds = [plan.name for plan, _ in transaction.all_rounds()]
    context = {"rounds": rounds, "views": VIEWS, "apart": job.answer["contradictions"] if job.answer else 0}
    return answer_page(request, "Agreement", "agreement.html", values, context, job, ("live.js",))

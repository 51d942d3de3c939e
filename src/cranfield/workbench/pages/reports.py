"""Reports to download: the page of `cranfield report`, paper tables, and data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cranfield.http.refusal import Refusal
from cranfield.reports.writers import TEXT_ENDINGS
from cranfield.workbench.access_control import VIEWER
from cranfield.workbench.job_answers import answer_page, ask_scores, judgment_options
from cranfield.workbench.jobs import Ready
from cranfield.workbench.links import link
from cranfield.workbench.routes import Download, Page, PageRequest, page

if TYPE_CHECKING:
    from cranfield.workbench.job_answers import JobAnswer

KINDS = {
    "html": "text/html",
    "md": "text/markdown",
    "tex": "application/x-tex",
    "json": "application/json",
    "csv": "text/csv",
}
ABOUT = {"html": "a page", "md": "Markdown", "tex": "LaTeX tables", "json": "JSON", "csv": "CSV"}


@page("/report", VIEWER, "jobs.ask report", menu=("look", 25, "Report"))
def report(request: PageRequest) -> Page:
    """A report of chosen runs, to download as a page, Markdown, LaTeX tables, JSON or CSV."""
    names = [run.name for run in request.site.bench.runs()]
    job = _report(request) if request.text("ending") else None
    values = {"runs": request.texts("runs") or names, "ending": request.text("ending") or "html"}
    query = {name: texts for name, texts in request.query.items() if name != "of"}
    context = {
        "names": names,
        "endings": {each: ABOUT[each] for each in TEXT_ENDINGS},
        "title_given": request.text("title"),
    }
    context |= {"file": link("/report/file", **query), **judgment_options(request)}
    return answer_page(request, "Report", "report.html", values, context, job, ("live.js",))


@page("/report/file", VIEWER, "jobs.ask report", menu=("look", 25, ""))
def report_file(request: PageRequest) -> Download:
    """Download a report that is ready."""
    request.required("ending")
    job = _report(request)
    if not isinstance(job.state, Ready):
        problem = job.why or "the report is being written"
        raise Refusal(problem, 422 if job.why else 409, safe="", wait=0 if job.why else 2, reload=not job.why)
    answer = json.loads(job.state.answer.json)
    ending = answer["ending"]
    name = f"{request.site.bench.name}-report.{ending}"
    return Download("", name, KINDS[ending], answer["text"].encode("utf-8", "surrogatepass"))


def _report(request: PageRequest) -> JobAnswer:
    more = {"runs": request.texts("runs")} if request.texts("runs") else {}
    return ask_scores(request, "report", ending=request.text("ending"), title=request.text("title"), **more)

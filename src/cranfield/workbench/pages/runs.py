"""Runs: the leaderboard, whether a new run can be scored, uploads, the comparison of two runs, and reports to download."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cranfield.experiments.clicks.model import CLICK_MODELS
from cranfield.http.refusal import Refusal
from cranfield.inputs.selection import nothing_judged
from cranfield.reports.writers import TEXT_ENDINGS
from cranfield.workbench.access_control import LEAD, VIEWER
from cranfield.workbench.job_answers import answer_page, ask, ask_scores, judgment_options
from cranfield.workbench.jobs import Ready
from cranfield.workbench.links import link
from cranfield.workbench.routes import ActionResult, Download, Page, PageRequest, action, page

if TYPE_CHECKING:
    from cranfield.inputs.workspace import Bench
    from cranfield.workbench.job_answers import JobAnswer


PIECE = 1 << 20  # bytes


@page("/runs", VIEWER, "jobs.ask leaderboard", table=True, menu=("look", 10, "Runs"))
def runs(request: PageRequest) -> Page:
    """The leaderboard with rank intervals, tiers and judged@k; with new=RUN, whether that run can be scored."""
    bench = request.site.bench
    rows = [{"name": run.name, "bytes": run.size} for run in bench.runs()]
    new = bench.run(request.text("new")).name if request.text("new") else ""
    unjudged = nothing_judged(bench) if rows and not request.text("judgments") else ""
    board = ask_scores(request, "leaderboard") if rows and not unjudged else None
    reuse = ask_scores(request, "reuse", new=[new]) if new and len(rows) > 1 and not unjudged else None
    check = ask(request, "check", runs=[new], collection=False) if new else None
    values = {"runs": rows, "new": new, **(board.values() if board else {})}
    values |= {"unjudged": unjudged} if unjudged else {}
    values |= {"reuse": reuse.values()} if reuse else {}
    values |= {"check": check.values()} if check else {}
    context = {
        "board": board,
        "unjudged": unjudged,
        "reuse": reuse,
        "check": check,
        "names": [run["name"] for run in rows],
        **judgment_options(request),
    }
    table, status = (board.table, board.page_status(request)) if board else (None, 200)
    return Page("Runs", "runs.html", values, context, table, ("live.js", "sort.js", "runs.js"), status)


@action("/runs", LEAD, "workspace.add_run", body="file")
def add_run(request: PageRequest) -> ActionResult:
    """Add a run: the body is the file, the parameter name its name; errors in its check refuse it, line by line."""
    name = request.required("name")
    added = request.site.bench.add_run(name, iter(lambda: request.file.read(PIECE), b""))
    findings = added.findings.to_dict()
    if added.run is None:
        raise Refusal(f"{name} was not added", 422, advice="Correct the file and add it again.", more=findings)
    return ActionResult(link("/runs", new=added.run.name), {"name": added.run.name, **findings})


@page("/compare", VIEWER, "jobs.ask compare", table=True, menu=("look", 20, "Compare"))
def compare(request: PageRequest) -> Page:
    """The comparison of two runs: verdict, differences by topic, scatter plot, curves, costs; optionally for a category."""
    bench = request.site.bench
    names = [run.name for run in bench.runs()]
    one, other = request.text("one") or "".join(names[:1]), request.text("other") or "".join(names[1:2])
    column, _, value = request.text("category").partition("=")
    job = None
    if one and other and one != other:
        job = ask_scores(request, "compare", one=one, other=other, column=column, value=value)
    values = {"one": one, "other": other, "category": request.text("category")}
    context = {"names": names, "columns": categories_of(bench), **judgment_options(request)}
    return answer_page(request, "Compare", "compare.html", values, context, job)


def categories_of(bench: Bench) -> dict[str, list[str]]:
    """The columns of the topics that have few values, each with its values."""
    from cranfield.reports.texts import categories

    table = bench.topics()
    if table is None:
        return {}
    topics = list(dict.fromkeys([*table.queries, *(topic for column in table.columns.values() for topic in column)]))
    return {name: sorted(set(column.values()) - {""}) for name, column in categories(table, topics).items()}


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
        "clicks": request.text("clicks"),
        "models": list(dict.fromkeys([*CLICK_MODELS, *request.texts("clicks")]))
        if request.site.bench.has_events
        else [],
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
    more: dict[str, Any] = {"runs": request.texts("runs")} if request.texts("runs") else {}
    more |= {"clicks": request.text("clicks")} if request.text("clicks") else {}
    return ask_scores(request, "report", ending=request.text("ending"), title=request.text("title"), **more)

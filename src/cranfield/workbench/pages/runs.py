"""Runs: the leaderboard, whether a new run can be scored, uploads, and the comparison of two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.http.refusal import Refusal
from cranfield.inputs.selection import nothing_judged
from cranfield.workbench.access_control import LEAD, VIEWER
from cranfield.workbench.job_answers import answer_page, ask, ask_scores, judgment_options
from cranfield.workbench.links import link
from cranfield.workbench.routes import ActionResult, Page, PageRequest, action, page

if TYPE_CHECKING:
    from cranfield.inputs.workspace import Bench


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

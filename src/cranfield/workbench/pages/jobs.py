"""What the server is working on: questions with their progress, which a lead can cancel, and tasks."""

from __future__ import annotations

from typing import Any

from cranfield.http.refusal import NotFound
from cranfield.workbench.access_control import LEAD
from cranfield.workbench.routes import ActionResult, Page, PageRequest, action, page


@page("/jobs", LEAD, "jobs.under_way", menu=("manage", 95, "Running jobs"))
def running_jobs(request: PageRequest) -> Page:
    """The questions and tasks that are under way, with their progress."""
    site = request.site
    rows: list[dict[str, Any]] = [
        {"id": job.id, "kind": name, "activity": job.activity, "progress": job.progress, "since": job.since}
        for name, job in site.jobs.under_way()
    ]
    rows += [
        {"id": "", "kind": task.kind, "activity": task.activity, "progress": task.progress, "since": task.started}
        for task in site.tasks.under_way()
    ]
    return Page("Running jobs", "jobs.html", {"jobs": rows}, scripts=("live.js",))


@action("/jobs", LEAD, "jobs.cancel")
def cancel_job(request: PageRequest) -> ActionResult:
    """Cancel a question; the pages that wait for it say so."""
    id = request.form_field("id")
    if not request.site.jobs.cancel(id, request.name):
        raise NotFound(f"there is no running job {id[:20]!r}", "It may be done already.")
    return ActionResult("/jobs", {"id": id})

"""Frozen qrels, and what changed from one version to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.judging.policies import PolicySettings, policies
from cranfield.judging.version_cache import summary_of
from cranfield.judging.versions import Versions, all_versions, cached_summary, find_version, freeze, thaw
from cranfield.workbench.access_control import LEAD, VIEWER
from cranfield.workbench.job_answers import answer_page, ask
from cranfield.workbench.rendering import csv_of
from cranfield.workbench.routes import ActionResult, Page, PageRequest, action, page

if TYPE_CHECKING:
    from cranfield.judging.log import Log


@page("/versions", VIEWER, "judging.all_versions", table=True, menu=("look", 40, "Versions"))
def versions(request: PageRequest) -> Page:
    """Frozen versions of the qrels: name, policy, number of judgments, hash."""
    log = request.site.bench.log
    frozen = Versions(log.name, all_versions(log))
    context = {"frozen": frozen, "policies": policies(), "names": [each.name for each in frozen.rows]}
    table = frozen.to_csv(spreadsheet=True) if frozen.rows else "name\n"
    return Page("Versions", "versions.html", {"versions": frozen.to_dict()}, context, table)


@action("/versions", LEAD, "judging.freeze")
def freeze_now(request: PageRequest) -> ActionResult:
    """Freeze the current labels under a name."""
    name, policy = request.form_field("name").strip(), request.form_field("policy", "latest")
    version, decided = freeze(request.site.bench.log, name, policy, PolicySettings(), request.form_field("note"))
    values = {"name": version.name, "hash": version.hash, "documents": version.documents, "notes": decided.notes()}
    return ActionResult("/versions", values)


SMALL = 20_000  # judgments of a version that is computed while the page waits


@page("/version", VIEWER, "jobs.ask version", table=True, menu=("look", 40, ""))
def version(request: PageRequest) -> Page:
    """The qrels of a version, checked against their hash; the table has every judgment."""
    log = request.site.bench.log
    details = find_version(log, request.required("name"))
    names = ("name", "policy", "hash", "created", "note", "documents")
    values = {name: getattr(details, name) for name in names}
    summary = cached_summary(log, details)
    if summary is None and details.documents <= SMALL:
        summary = summary_of(thaw(log, details.name))
    if summary is None:
        job = ask(request, "version", version=details.name)
        return answer_page(request, details.name, "version.html", values, {}, job, ("live.js",))
    table = _judgments(log, details.name) if request.twin == "csv" else ""
    return Page(details.name, "version.html", values | vars(summary), {"job": None}, table=table)


def _judgments(log: Log, name: str) -> str:
    """Every judgment of a version as CSV."""
    grades = thaw(log, name).grades
    rows = [(topic, document, f"{grade:g}") for topic, own in grades.items() for document, grade in own.items()]
    return csv_of(["topic", "document", "grade"], rows)


@page("/diff", VIEWER, "jobs.ask diff", table=True, menu=("look", 40, ""))
def diff(request: PageRequest) -> Page:
    """The labels that changed from one version to another or to now, and the verdicts that changed."""
    names = [each.name for each in all_versions(request.site.bench.log)]
    a, b = request.text("a", names[-1] if names else ""), request.text("b")
    job = ask(request, "diff", a=a, b=b) if a else None
    values = {"versions": names, **({"a": a, "b": b} if job else {})}
    return answer_page(request, "Changes", "diff.html", values, {"names": names, "a": a, "b": b}, job, ("live.js",))

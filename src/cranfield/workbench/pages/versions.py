"""The current judgments, frozen versions of them, and what changed from one version to another.

Judgments are downloaded in TREC's format, byte for byte. The CSV is for spreadsheets: it escapes ids that a spreadsheet would
take for formulas, so a program must not read it.
"""

from __future__ import annotations

from typing import Any

from cranfield.base.errors import DataError
from cranfield.base.qrels import Qrels
from cranfield.formats.files.trec import TREC
from cranfield.judging.log_queries import count_current, decide_log
from cranfield.judging.policies import Grades, Latest, goes_by_labels, policies
from cranfield.judging.version_cache import summary_of
from cranfield.judging.versions import (
    Versions,
    all_versions,
    cached_summary,
    find_version,
    freeze,
    gold_grades,
    thaw,
)
from cranfield.workbench.access_control import LEAD, VIEWER
from cranfield.workbench.job_answers import answer_page, ask
from cranfield.workbench.rendering import csv_of
from cranfield.workbench.routes import ActionResult, Page, PageRequest, action, page
from cranfield.workbench.worker_pool import frozen_values


@page("/judgments", VIEWER, "log_queries.decide_log", table=True, menu=("look", 40, ""), qrels=True)
def judgments(request: PageRequest) -> Page:
    """The current judgments by source: adjudications, people's labels, and the collection's own judgments."""
    bench, policy = request.site.bench, request.text("policy", Latest.name)
    goes_by_labels(policy)
    bench.import_judgments()
    counts = count_current(bench.database)

    def decided() -> Grades:
        return decide_log(bench.log, policy, gold=gold_grades(bench.log)).grades

    values = {"policy": policy, "counts": counts._asdict(), "said": counts.in_words()}
    table = csv_of(HEAD, rows_of(decided())) if request.twin == "csv" else None
    return Page(
        "Judgments", "judgments.html", values, {"policies": policies()}, table, qrels=lambda: qrels_bytes(decided())
    )


SMALL = 20_000  # events or judgments: a version of no more is computed by the server's own process


@page("/versions", VIEWER, "judging.all_versions", table=True, menu=("look", 40, "Versions"))
def versions(request: PageRequest) -> Page:
    """Frozen versions of the qrels: name, policy, number of judgments, hash."""
    bench, log = request.site.bench, request.site.bench.log
    bench.import_judgments()
    frozen = Versions(log.name, all_versions(log))
    context = {
        "current": count_current(bench.database).in_words(),
        "frozen": frozen,
        "policies": policies(),
        "names": [each.name for each in frozen.rows],
    }
    table = frozen.to_csv(spreadsheet=True) if frozen.rows else "name\n"
    return Page("Versions", "versions.html", {"versions": frozen.to_dict()}, context, table)


@action("/versions", LEAD, "judging.freeze")
def freeze_now(request: PageRequest) -> ActionResult:
    """Freeze the current labels under a name."""
    how: dict[str, Any] = {"name": request.form_field("name").strip(), "policy": request.form_field("policy", "latest")}
    how["note"] = request.form_field("note")
    request.site.bench.import_judgments()
    log = request.site.bench.log
    values = request.site.jobs.freeze(**how) if log.place() > SMALL else frozen_values(*freeze(log, **how))
    return ActionResult("/versions", values)


@page("/version", VIEWER, "jobs.ask version", table=True, menu=("look", 40, ""), qrels=True)
def version(request: PageRequest) -> Page:
    """The qrels of a version, checked against their hash; the table has every judgment."""
    log = request.site.bench.log
    details = find_version(log, request.required("name"))
    if request.twin == "qrels":
        return Page(details.name, "version.html", qrels=lambda: qrels_bytes(thaw(log, details.name).grades))
    names = ("name", "policy", "hash", "created", "note", "documents")
    values = {name: getattr(details, name) for name in names}
    summary = cached_summary(log, details)
    if summary is None and details.documents <= SMALL:
        summary = summary_of(thaw(log, details.name))
    if summary is None:
        job = ask(request, "version", version=details.name)
        return answer_page(request, details.name, "version.html", values, {}, job, ("live.js",))
    table = csv_of(HEAD, rows_of(thaw(log, details.name).grades)) if request.twin == "csv" else ""
    return Page(details.name, "version.html", values | vars(summary), {"job": None}, table=table)


HEAD = ("topic", "document", "grade")


def rows_of(grades: Grades) -> list[tuple[str, str, str]]:
    """Topic, document and grade of each judgment."""
    return [(t, d, f"{grade:g}") for t, documents in grades.items() for d, grade in documents.items()]


def qrels_bytes(grades: Grades) -> bytes:
    """Judgments in TREC's format; DataError if there are none, or an id has white space."""
    if not grades:
        raise DataError("nothing is judged yet")
    table = Qrels(grades).table
    TREC.refuse(table, "qrels", "the judgments")
    return b"".join(TREC.write(table, "qrels", ""))


@page("/diff", VIEWER, "jobs.ask diff", table=True, menu=("look", 40, ""))
def diff(request: PageRequest) -> Page:
    """The labels that changed from one version to another or to now, and the verdicts that changed."""
    names = [each.name for each in all_versions(request.site.bench.log)]
    a, b = request.text("a", names[-1] if names else ""), request.text("b")
    job = ask(request, "diff", a=a, b=b) if a else None
    values = {"versions": names, **({"a": a, "b": b} if job else {})}
    return answer_page(request, "Changes", "diff.html", values, {"names": names, "a": a, "b": b}, job, ("live.js",))

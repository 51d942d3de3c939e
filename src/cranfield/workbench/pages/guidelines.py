"""Guidelines and grades: what is in force, its history, and the page on which leads edit both with a preview.

Each label records the hash of the version that its assessor saw. When a lead edits while somebody judges, the pages of
judging say so, with what changed, until that person has read it or has judged under the new version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from cranfield.base.collection import Grade
from cranfield.base.errors import DataError
from cranfield.commands.guidelines import (
    MOST_GRADES,
    EditConflictError,
    edit_guidelines,
    refuse_guidelines,
    version_named,
    version_values,
)
from cranfield.http.refusal import NotFound, Refusal
from cranfield.judging.guidelines import GradeMeaning, Guidelines, changed_lines
from cranfield.judging.guidelines_history import (
    guidelines_history,
    keep_guidelines,
    last_guidelines_of,
    versions_by_hash,
)
from cranfield.workbench.access_control import ASSESSOR, LEAD, VIEWER
from cranfield.workbench.assessment import grade_options
from cranfield.workbench.markdown import markdown
from cranfield.workbench.routes import NOTHING, ActionResult, Page, PageRequest, action, page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.inputs.workspace import Bench

READ = "guidelines"  # the setting of an account: the hash of the version it has read
NEW_ROWS = 2  # for further grades in the form
STORED: WeakKeyDictionary[Bench, set[str]] = WeakKeyDictionary()  # hashes of versions that the log surely has


def current_hash(bench: Bench) -> str:
    """The hash of the guidelines and grades in force, which the log then has; empty if there are none."""
    stored, version = STORED.setdefault(bench, set()), bench.guidelines()
    if version.hash and version.hash not in stored:
        stored.add(keep_guidelines(bench.log, version))
    return version.hash


def with_guidelines(bench: Bench, rows: Sequence[Any]) -> list[Any]:
    """The rows that a browser sends, each with the version that its assessor saw: as sent if the log has it, else the latest.

    A browser that was offline sends labels late, and a page that was open during an edit still showed the version before.
    """
    current, stored = current_hash(bench), STORED[bench]
    labels = [isinstance(row, Mapping) and row.get("kind") != "withdrawal" for row in rows]
    sent = [str(row.get("guideline", "")) if label else "" for row, label in zip(rows, labels, strict=True)]
    if unknown := {*sent} - stored - {""}:
        with bench.log.reading() as transaction:
            stored |= versions_by_hash(transaction, unknown).keys()
    return [
        {**row, "guideline": version if version in stored else current} if label else row
        for row, version, label in zip(rows, sent, labels, strict=True)
    ]


def guidelines_shown(request: PageRequest) -> dict[str, Any]:
    """The template values of a page of judging: the guidelines as HTML, their version, and what changed since the last one."""
    bench = request.site.bench
    version, current = bench.guidelines(), current_hash(bench)
    read = request.site.accounts.settings(request.name).get(READ, "")
    with bench.log.reading() as transaction:
        last = last_guidelines_of(transaction, request.name)
        before = versions_by_hash(transaction, [last]).get(last) if last and current not in (last, read) else None
    news = None if before is None else {"since": last, "changes": changed_lines(before, version)}
    html = markdown(version.text, 3) if version.text.strip() else ""
    return {"guidelines_html": html, "guideline_hash": current, "guidelines_news": news}


@page("/guidelines", VIEWER, "bench.guidelines", menu=("look", 35, "Guidelines"), reveals=NOTHING)
def guidelines(request: PageRequest) -> Page:
    """The guidelines and the meanings of grades: those in force or an earlier version, the history, and what changed."""
    bench = request.site.bench
    if request.text("now") and request.twin == "json":  # a page of judging asks whether it is out of date
        return Page("Guidelines", "guidelines.html", {"hash": bench.guidelines().hash})
    with bench.log.reading() as transaction:
        history = guidelines_history(transaction)
    version = bench.guidelines()
    named, since = request.text("version"), request.text("since")
    try:
        page_version = version_named(history, named) if named else version
        changes = changed_lines(version_named(history, since), page_version) if since else None
    except DataError:
        raise NotFound("there is no such version of the guidelines", "The list of versions: /guidelines") from None
    rows = [{name: getattr(each, name) for name in ("number", "hash", "author", "created")} for each in history]
    values = {**version_values(page_version), "in_force": page_version.hash == version.hash, "history": rows}
    values |= {} if changes is None else {"changes": [each._asdict() for each in changes]}
    context = {
        "html": markdown(page_version.text, 2) if page_version.text.strip() else "",
        "shown": page_version,
        "previous": {each.number: _previous(history, each.number) for each in history},
        "since": since,
    }
    return Page("Guidelines", "guidelines.html", values, context)


def _previous(history: Sequence[Any], number: int) -> str:
    """The hash of the version before an entry of the history; empty for the first."""
    return next((each.hash for each in history if each.number < number), "")


@action("/guidelines/read", ASSESSOR, "accounts.set_settings", reveals=NOTHING)
def read(request: PageRequest) -> ActionResult:
    """Record that the person has read the guidelines in force, so that pages of judging no longer show what changed."""
    accounts, current = request.site.accounts, current_hash(request.site.bench)
    accounts.set_settings(request.name, {**accounts.settings(request.name), READ: current})
    to = "/search" if request.form_field("from") == "search" else "/judge"
    return ActionResult(to, {"read": current})


@page("/guidelines/edit", LEAD, "commands.guidelines.edit_guidelines", menu=("manage", 45, "Guidelines and grades"))
def edit(request: PageRequest) -> Page:
    """Edit the guidelines and the meanings of grades; a preview shows both as assessors will see them."""
    version = request.site.bench.guidelines()
    return _form(request, version, version.hash)


def _form(
    request: PageRequest,
    version: Guidelines,
    before: str,
    *,
    preview: bool = False,
    problem: str = "",
    conflict: Guidelines | None = None,
) -> Page:
    """The form with a version in it; `before` is the hash of the version that an edit would replace."""
    bench = request.site.bench
    current = bench.guidelines()
    rows = [[f"{each.grade:g}", each.label, each.meaning] for each in version.grades]
    rows += [["", "", ""]] * max(0, min(NEW_ROWS, MOST_GRADES - len(rows)))
    meanings = {each.grade: Grade(each.label, each.meaning) for each in version.grades}
    base = None
    if conflict is not None:
        with bench.log.reading() as transaction:
            base = versions_by_hash(transaction, [before]).get(before)
        before = conflict.hash
    values = {**version_values(version), "before": before, "problem": problem, "preview": preview}
    context = {
        "version": version,
        "rows": rows if bench.collection is not None else [],
        "html": markdown(version.text, 3) if version.text.strip() else "",
        "options": grade_options([each.grade for each in version.grades], meanings),
        "changes": changed_lines(current, version) if preview else [],
        "theirs": changed_lines(base or Guidelines(), conflict) if conflict is not None else [],
        "conflict": conflict is not None,
    }
    status = 409 if conflict is not None else 400 if problem else 200
    return Page("Guidelines and grades", "guidelines_edit.html", values, context, status=status)


@action("/guidelines/edit", LEAD, "commands.guidelines.edit_guidelines")
def save(request: PageRequest) -> Page | ActionResult:
    """Save the guidelines and grades (do=save), or show them as assessors will see them (do=preview)."""
    bench, what = request.site.bench, request.form_field("do") or "save"
    if what not in ("save", "preview"):
        raise Refusal(f"expected do=save or do=preview, found {what[:20]!r}")
    version, before = _version(request), request.form_field("before")
    try:
        refuse_guidelines(version)
        if what == "preview":
            return _form(request, version, before, preview=True)
        saved = edit_guidelines(bench, version, before, request.name)
    except EditConflictError as error:
        if request.twin == "json":
            more = {"current": version_values(error.current)}
            raise Refusal(str(error), 409, advice="Take over what changed, and send it again.", more=more) from None
        return _form(request, version, before, conflict=error.current)
    except DataError as error:
        if request.twin == "json":
            raise
        return _form(request, version, before, problem=request.site.public_text(str(error)))
    return ActionResult("/guidelines", version_values(saved))


def _version(request: PageRequest) -> Guidelines:
    """The version that a form describes; rows without a grade are left out."""
    text = request.form_field("text").replace("\r\n", "\n")
    grades = []
    for row in range(MOST_GRADES + NEW_ROWS):
        grade = request.number(f"grade-{row}")
        if grade is not None:
            label, meaning = (request.form_field(f"{name}-{row}").strip() for name in ("label", "meaning"))
            grades.append(GradeMeaning(grade + 0.0, label, meaning.replace("\r\n", "\n")))
    lowest = request.number("relevant_from", 1.0) or 0.0
    return Guidelines(text, tuple(sorted(grades)), float(lowest) if grades else 1.0)

"""Imports by upload: the collection, new topics or judgments, and labels; the checks are those of the commands.

Each file is the body of one request and waits in the state folder (`commands.workspaces`). A second request imports what
was uploaded, as a task with progress.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.base.errors import CranfieldError, DataError
from cranfield.base.text_layout import counted
from cranfield.commands.workspaces import UPLOAD
from cranfield.formats.importers.source import SOURCES
from cranfield.http.refusal import Refusal
from cranfield.workbench.access_control import LEAD
from cranfield.workbench.routes import ActionResult, Page, PageRequest, action, page
from cranfield.workbench.tasks import FAILED, TaskError, TaskResult

if TYPE_CHECKING:
    from cranfield.workbench.site import Site
    from cranfield.workbench.tasks import Tell

KIND = "import"
PIECE = 1 << 20  # bytes
GRADES = ("", "raw", "binary", "cranfield-corrected")
TOPIC_IDS = ("", "given", "ordinal")
COLUMNS = {
    "topic_column": "topic",
    "document_column": "document",
    "grade_column": "grade",
}  # of labels, with their roles
SHOWN = 50  # findings on the page


@page("/import", LEAD, "commands.workspaces.import_uploads", menu=("manage", 50, "Import"))
def imports(request: PageRequest) -> Page:
    """What the collection lacks, the uploads that wait, and the state of the import."""
    site, bench = request.site, request.site.bench
    task = site.tasks.find(KIND)
    staged = [each for part, each in site.uploads.files().items() if part != "backup"]
    uploads = [{"part": each.part, "name": each.name, "bytes": each.size} for each in staged]
    topics = bench.topics()
    values = {
        "has_documents": bench.collection is not None,
        "topics": 0 if topics is None else len(topics.queries),
        "has_qrels": bench.qrels is not None,
        "uploads": uploads,
        "import": None if task is None else task.values(),
    }
    layouts = [(name, cls.about) for name, cls in SOURCES.items() if not cls.prefix]
    context = {"task": task, "layouts": layouts, "grades": GRADES, "topic_ids": TOPIC_IDS, "shown": SHOWN}
    return Page("Import", "import.html", values, context, scripts=("live.js", "import.js"))


@action("/import/file", LEAD, "staging.add", body="file", largest=UPLOAD)
def add_file(request: PageRequest) -> ActionResult:
    """Upload a file or archive: the body is the file, the parameter part its role, name its name."""
    part, name = request.required("part"), request.required("name")
    staged = request.site.uploads.add(part, name, iter(lambda: request.file.read(PIECE), b""))
    return ActionResult("/import", {"part": staged.part, "name": staged.name, "bytes": staged.size})


@action("/import", LEAD, "commands.workspaces.import_uploads")
def begin_import(request: PageRequest) -> ActionResult:
    """Import what was uploaded: do=collection, topics, qrels or labels; do=discard removes the uploads."""
    site, what = request.site, request.form_field("do")
    if what == "discard":
        site.uploads.remove()
        site.tasks.forget(KIND)
        return ActionResult("/import", {"uploads": []})
    imports = {"collection": _collection, "topics": _topics, "qrels": _qrels, "labels": _labels}
    if what not in imports:
        raise Refusal(f"expected do={', '.join([*imports, 'discard'])}, found {what[:60]!r}")
    part = "documents" if what == "collection" else what
    site.uploads.file(part)  # refused before anything begins
    work, options = imports[what], _options(request)

    def run(tell: Tell) -> TaskResult:
        result = work(site, options, tell)
        site.uploads.remove()
        return result

    task = site.tasks.begin(KIND, f"importing {what}", run)
    if task.state == FAILED and request.twin == "json":
        advice = "Correct the file and upload it again."
        raise Refusal(task.why, 422, advice=advice, more={"findings": list(task.findings)})
    return ActionResult("/import", task.values())


def _options(request: PageRequest) -> dict[str, Any]:
    """The options of the form, checked against what the command allows."""
    layout, grades, topic_ids = (request.form_field(name) for name in ("layout", "grades", "topic_ids"))
    for name, value, allowed in (
        ("layout", layout, ("", *SOURCES)),
        ("grades", grades, GRADES),
        ("topic_ids", topic_ids, TOPIC_IDS),
    ):
        if value not in allowed:
            raise Refusal(f"expected {name} of {', '.join(filter(None, allowed))}, found {value[:60]!r}")
    texts = {name: request.form_field(name).strip() or None for name in ("encoding", "split", "assessor", *COLUMNS)}
    return {"layout": layout or None, "grades": grades or None, "topic_ids": topic_ids or None, **texts}


def _collection(site: Site, options: dict[str, Any], tell: Tell) -> TaskResult:
    from cranfield.commands.workspaces import import_uploads

    chosen = {name: value for name, value in options.items() if name not in ("assessor", *COLUMNS)}
    try:
        imported = import_uploads(site.bench, site.uploads, tell, **chosen)
    except CranfieldError as error:
        raise _with_findings(site, error) from None
    counts = imported.collection.meta["counts"]
    parts = ", ".join(counted(number, name.removesuffix("s")) for name, number in counts.items() if name != "relevant")
    return TaskResult(f"Imported {parts} from {imported.layout} files.", imported.notes, {"counts": counts})


def _with_findings(site: Site, error: CranfieldError) -> CranfieldError:
    """The error of an import, with every finding in the uploaded judgments."""
    from cranfield.commands.workspaces import findings_in_qrels

    try:
        paths = site.uploads.paths("qrels")
        findings = findings_in_qrels(paths) if paths else []
    except CranfieldError:
        return error
    errors = [each.to_dict() for each in findings if each.severity == "error"]
    for each in errors:
        each["file"], each["message"] = (site.uploads.plain_text(each[name]) for name in ("file", "message"))
    return TaskError(str(error), errors) if errors else error


def _topics(site: Site, options: dict[str, Any], tell: Tell) -> TaskResult:
    from cranfield.commands.workspaces import replace_topics

    number = replace_topics(site.bench, site.uploads.paths("topics", progress=tell), options["layout"])
    return TaskResult(f"The collection has {counted(number, 'topic')} now.", (), {"topics": number})


def _qrels(site: Site, options: dict[str, Any], tell: Tell) -> TaskResult:
    from cranfield.commands.workspaces import replace_judgments

    try:
        number, notes = replace_judgments(site.bench, site.uploads.paths("qrels", progress=tell))
    except CranfieldError as error:
        raise _with_findings(site, error) from None
    return TaskResult(f"The collection has {counted(number, 'judgment')} now.", notes, {"judgments": number})


def _labels(site: Site, options: dict[str, Any], tell: Tell) -> TaskResult:
    from cranfield.commands.judging import add

    bench = site.bench
    paths = site.uploads.paths("labels", progress=tell)
    more: dict[str, Any] = {"assessor": options["assessor"]} if options["assessor"] else {}
    if bench.collection is None and bench.topics() is None:
        raise DataError("there is no collection yet; import it first, so that labels can be checked against it")
    more |= {"fields": {role: [name] for column, role in COLUMNS.items() if (name := options[column])} or None}
    added = add(bench.location, paths, collection=bench.collection, scale=list(bench.grades()), **more)
    repeated = f", {counted(added.repeated, 'label')} were there already" if added.repeated else ""
    return TaskResult(
        f"Added {counted(added.new, 'label')}{repeated}.", (), {"new": added.new, "there": added.repeated}
    )

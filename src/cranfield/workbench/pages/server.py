"""The work of the server, for leads: jobs under way, backup and restore.

A backup is written into the state folder by a task and then streamed; only the last one is there. An upload waits with
those of an import (`commands.workspaces`).
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from cranfield.base.text_layout import counted
from cranfield.http.refusal import NotFound, Refusal
from cranfield.inputs.workspace import own_folder
from cranfield.workbench.access_control import LEAD
from cranfield.workbench.backup import backup, restore_into
from cranfield.workbench.routes import ActionResult, Download, Page, PageRequest, action, page
from cranfield.workbench.tasks import FAILED, TaskResult

if TYPE_CHECKING:
    from cranfield.workbench.site import Site
    from cranfield.workbench.tasks import Tell


BACKUP, RESTORE = "backup", "restore"


@page("/backup", LEAD, "backup.backup", menu=("manage", 80, "Backup"))
def backups(request: PageRequest) -> Page:
    """The last backup to download, and the restore of an uploaded one."""
    site = request.site
    made, restored = site.tasks.find(BACKUP), site.tasks.find(RESTORE)
    archive = last_backup(site)
    about = None if archive is None else {"name": os.path.basename(archive), "bytes": os.path.getsize(archive)}
    values = {
        "archive": about,
        "backup": None if made is None else made.values(),
        "restore": None if restored is None else restored.values(),
    }
    return Page("Backup", "backup.html", values, {"made": made, "restored": restored}, scripts=("live.js", "import.js"))


@page("/backup/file", LEAD, "backup.backup", menu=("manage", 80, ""))
def backup_file(request: PageRequest) -> Download:
    """Download the last backup."""
    archive = last_backup(request.site)
    if archive is None:
        raise NotFound("there is no backup to download", "Make one on the page /backup.")
    return Download(archive, os.path.basename(archive), "application/gzip")


@action("/backup", LEAD, "backup.backup")
def change_backup(request: PageRequest) -> ActionResult:
    """Make a backup (do=backup), remove it (do=remove), or restore the one that was uploaded (do=restore)."""
    site, what = request.site, request.form_field("do")
    if what == "remove":
        _remove_backups(site)
        site.tasks.forget(BACKUP)
        return ActionResult("/backup", {"archive": None})
    if what == BACKUP:
        task = site.tasks.begin(BACKUP, "making a backup", lambda tell: _back_up(site, tell))
    elif what == RESTORE:
        site.uploads.file(BACKUP)  # refused before anything begins
        task = site.tasks.begin(RESTORE, "restoring a backup", lambda tell: _restore(site, tell))
    else:
        raise Refusal(f"expected do=backup, remove or restore, found {what[:60]!r}")
    if task.state == FAILED and request.twin == "json":
        raise Refusal(task.why, 422)
    return ActionResult("/backup", task.values())


def last_backup(site: Site) -> str | None:
    """The path of the last backup that was made here; None if there is none."""
    folder = _folder(site)
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    return os.path.join(folder, names[-1]) if names else None


def _folder(site: Site) -> str:
    return own_folder(os.path.join(site.bench.state, "backups"))


def _remove_backups(site: Site) -> None:
    folder = _folder(site)
    for name in os.listdir(folder):
        if not name.startswith("."):
            os.unlink(os.path.join(folder, name))


def _back_up(site: Site, tell: Tell) -> TaskResult:
    bench = site.bench
    _remove_backups(site)
    name = f"{bench.name}-{time.strftime('%Y-%m-%d-%H%M', time.gmtime())}.tar.gz"
    copy = backup(bench.folder, os.path.join(_folder(site), name), bench.location, tell)
    values = {"events": copy.events, "files": copy.files}
    return TaskResult(
        f"The backup holds {counted(copy.events, 'event')} and {counted(copy.files, 'file')}.", (), values
    )


def _restore(site: Site, tell: Tell) -> TaskResult:
    staged = site.uploads.file(BACKUP)
    try:
        restored = restore_into(site.bench, staged.path, staged.name, tell)
    finally:
        site.uploads.remove(BACKUP)
    summary = f"Restored {counted(restored.events, 'event')} and {counted(restored.files, 'file')} of {staged.name}."
    return TaskResult(summary, (), {"events": restored.events, "files": restored.files})


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

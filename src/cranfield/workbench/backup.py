"""A backup of a workspace as one archive, written while people judge, and its restore.

The log is copied first, in one consistent state (`store.database_copy`), then the files: every file that the log names is in
the archive. The archive is written next to its target and moved there when it is complete. Only its owner may read it: it
holds hashes of passwords.

A backup is restored into a new folder, or into a workspace whose log has nothing that the backup lacks. A backup comes from
outside. It is unpacked within limits (`formats.archives`) next to its target, its log is verified, and only rows of known
tables are taken from it, into tables of our own making. A new folder appears as a whole.

A workspace that exists may be served meanwhile. Its log is loaded in one transaction; then the files of the backup take the
place of its collection, runs and other files, which are kept in the state folder (REPLACED). Before the first step a journal
says what is to be done. After a kill the next `cranfield serve` or `cranfield restore` finishes what the journal says.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import zipfile
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import ConventionError, CranfieldError, DataError, FormatError
from cranfield.base.notifications import tell_written
from cranfield.base.parameters import masked, shortened
from cranfield.commands.judging import verify
from cranfield.formats.archives import LIMITS, ArchiveLimits, unpack
from cranfield.formats.streams import name_beside, reason, replacement, sync_folder, unfinished
from cranfield.inputs.logs import exists
from cranfield.inputs.workspace import Bench, open_bench
from cranfield.judging.database_log import DatabaseLog
from cranfield.store import open_database
from cranfield.store.database_copy import OlderCopyError, copy_into, load_from, refuse_older, refuse_other_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Progress = Callable[[int, int | None], None]


ENDINGS = (".tar.gz", ".tgz", ".zip")
LOG = "work.db"
FOLDERS = ("collection", "runs")  # with all subfolders; of the workspace itself only its files
RESTORE = "restore"  # in the state folder: a restore that was decided, with its journal
REPLACED = "replaced"  # in the state folder: the files from before the last restore
JOURNAL = "journal.json"
FILES, BEFORE = "files", "before"  # in the folder of a restore: files to move in, files that were moved out
SIDE_FILES = tuple(f"{LOG}{tail}" for tail in ("-wal", "-shm", "-journal"))


class Backup(NamedTuple):
    """The archive and the number of its events and files."""

    path: str
    events: int
    files: int  # without the log


def backup(folder: str, output: str, db: str | None = None, progress: Any = None) -> Backup:
    """Write a workspace into an archive: its log as work.db, its collection and its runs."""
    ending = next((each for each in ENDINGS if output.lower().endswith(each)), None)
    if ending is None:
        raise ConventionError(f"-o: expected a file ending in {', '.join(ENDINGS)}, found {output!r}")
    if not os.path.isdir(folder):
        raise DataError(f"{folder}: expected the folder of a workspace, found none")
    location = db or os.path.join(folder, LOG)
    if not exists(location):
        advice = f"cranfield serve {folder} makes one, --db names one elsewhere"
        raise DataError(f"{masked(location)}: there is no such log; {advice}")
    top = os.path.basename(output)[: -len(ending)] or "workspace"
    with _replacing(output) as beside:
        copy = os.path.join(beside, LOG)
        events = _copy_log(location, copy)
        files = workspace_files(folder, os.path.realpath(location))
        added = 0
        with _archive(os.path.join(beside, "archive"), ending) as add:
            add(copy, f"{top}/{LOG}")
            for number, name in enumerate(files, 1):
                added += add(os.path.join(folder, name), f"{top}/{name.replace(os.sep, '/')}")
                if progress is not None:
                    progress(number, len(files))
    return Backup(output, events, added)


def _copy_log(location: str, copy: str) -> int:
    """Copy a log; return the number of its events."""
    from cranfield.judging.log_location import is_database
    from cranfield.store import open_database
    from cranfield.store.database_copy import copy_into

    if not is_database(location):
        expected = "expected a database: postgresql://user@host/name, or a file ending in .db"
        raise DataError(f"{masked(location)}: {expected}")
    with closing(open_database(location)) as database:
        return copy_into(database, copy)


def workspace_files(folder: str, log: str) -> list[str]:
    """The files of a workspace by relative path, without hidden files, the log with its side files, and earlier archives."""
    logs = {os.path.join(os.path.realpath(folder), LOG), log}
    beside = {f"{path}{tail}" for path in logs for tail in ("", "-wal", "-shm", "-journal")}
    relative = []
    for name in _listed(folder):
        path = os.path.realpath(os.path.join(folder, name))
        if os.path.isfile(path) and path not in beside and not name.lower().endswith(ENDINGS):
            relative.append(name)
    for inside in FOLDERS:
        for where, folders, names in os.walk(os.path.join(folder, inside)):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            paths = [os.path.join(where, name) for name in sorted(names) if not name.startswith(".")]
            relative += [os.path.relpath(path, folder) for path in paths if os.path.isfile(path)]
    return relative


def _listed(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError as error:
        raise DataError(f"{folder}: {reason(error)}") from None


@contextmanager
def _replacing(output: str) -> Iterator[str]:
    """A temporary folder for the archive, next to its target; at the end the archive is moved there."""
    target = os.path.realpath(output)
    with replacement(target, output) as archive, unfinished(target) as folder:
        os.mkdir(folder, 0o700)
        yield folder
        os.rename(os.path.join(folder, "archive"), archive)
        with open(archive, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(archive, 0o600)
    tell_written(output)


@contextmanager
def _archive(path: str, ending: str) -> Iterator[Callable[[str, str], bool]]:
    """A function that adds a file to a new archive under a name, and returns whether the file still existed."""
    with zipfile.ZipFile(path, "w") if ending == ".zip" else tarfile.open(path, "w:gz", compresslevel=6) as packed:

        def add(source: str, name: str) -> bool:
            try:
                file = open(source, "rb")  # noqa: SIM115
            except FileNotFoundError:  # removed meanwhile
                return False
            except OSError as error:
                raise DataError(f"{source}: {reason(error)}") from error
            with file:
                (_add_to_zip if ending == ".zip" else _add_to_tar)(packed, file, name)
            return True

        yield add


def _add_to_tar(packed: Any, file: Any, name: str) -> None:
    about = packed.gettarinfo(arcname=name, fileobj=file)
    about.type, about.linkname = tarfile.REGTYPE, ""  # a hard link is stored as a file of its own
    about.uid = about.gid = 0
    about.uname = about.gname = ""
    about.mode = 0o600
    packed.addfile(about, file)


def _add_to_zip(packed: Any, file: Any, name: str) -> None:
    about = zipfile.ZipInfo.from_file(file.name, name, strict_timestamps=False)
    about.compress_type = zipfile.ZIP_DEFLATED
    about.external_attr = 0o600 << 16
    try:
        with packed.open(about, "w", force_zip64=True) as target:
            shutil.copyfileobj(file, target, 1 << 20)
    except UnicodeEncodeError:
        raise DataError(f"{file.name!r}: a zip archive cannot hold this name; write a .tar.gz") from None


class Restored(NamedTuple):
    """The folder, and what was restored into it."""

    folder: str
    events: int
    files: int  # without the log


def restore(
    archive: str,
    folder: str,
    db: str | None = None,
    progress: Progress | None = None,
    limits: ArchiveLimits = LIMITS,
) -> Restored:
    """Restore a backup into a new folder, or into a workspace without newer labels; `db` gets the log."""
    target = os.path.realpath(folder)
    if os.path.isdir(target) and os.listdir(target):
        with unfinished(os.path.join(target, f".{RESTORE}")) as staged:
            content = unpacked_backup(archive, staged, progress, limits)
            with closing(open_bench(folder, db)) as bench:  # not before: it would make a log
                events = _replace_by(bench, content, staged, progress)
        tell_written(folder)
        return Restored(folder, events, len(content.files))
    with unfinished(target) as beside:
        content = unpacked_backup(archive, beside, progress, limits)
        events = _new_log(content, db, progress)
        if os.path.isdir(target):
            os.rmdir(target)
        os.rename(content.folder, target)
        sync_folder(os.path.dirname(target))
    tell_written(folder)
    return Restored(folder, events, len(content.files))


def restore_into(
    bench: Bench,
    archive: str,
    name: str = "",
    progress: Progress | None = None,
    limits: ArchiveLimits = LIMITS,
) -> Restored:
    """Restore a backup into a workspace that is open; OlderCopyError if its log has something that the backup lacks."""
    with unfinished(os.path.join(bench.state, RESTORE)) as staged:
        content = unpacked_backup(archive, staged, progress, limits, name)
        events = _replace_by(bench, content, staged, progress)
    return Restored(bench.folder, events, len(content.files))


def _replace_by(bench: Bench, content: BackupContent, staged: str, progress: Progress | None) -> int:
    """Replace the log and the files of a workspace by a backup, unpacked below `staged`; return the number of events."""
    finish_restore(bench)
    log, files = os.path.join(staged, LOG), os.path.join(staged, FILES)
    os.rename(content.folder, files)
    os.rename(os.path.join(files, LOG), log)
    refuse_older(bench.database, log)
    events, last = _extent(log)
    _write_journal(
        staged, {"events": events, "last": last, "new": sorted(os.listdir(files)), "before": _entries(bench)}
    )
    os.rename(staged, os.path.join(bench.state, RESTORE))
    sync_folder(bench.state)
    finish_restore(bench, progress)
    return events


def finish_restore(bench: Bench, progress: Progress | None = None) -> None:
    """Finish the restore that a journal describes, if there is one; it may have been interrupted at any point."""
    staged = os.path.join(bench.state, RESTORE)
    try:
        journal = json.loads(Path(staged, JOURNAL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        shutil.rmtree(staged, ignore_errors=True)
        return
    except (OSError, ValueError) as error:
        raise DataError(f"{staged}: the journal of a restore cannot be read: {error}; remove that folder") from None
    if not os.path.exists(os.path.join(staged, "loaded")):
        try:
            load_from(bench.database, os.path.join(staged, LOG), progress)
        except OlderCopyError:
            if not _is_loaded(bench, journal):
                shutil.rmtree(staged, ignore_errors=True)
                raise
        Path(staged, "loaded").touch()
    try:
        _move_files(bench.folder, staged, journal)
        replaced = os.path.join(bench.state, REPLACED)
        shutil.rmtree(replaced, ignore_errors=True)
        os.rename(staged, replaced)  # the last step: with the journal
    except OSError as error:
        problem = f"the files cannot be moved: {reason(error)}"
        raise DataError(f"{bench.folder}: {problem}; correct this, and start cranfield serve again") from None
    with suppress(OSError):
        os.unlink(os.path.join(replaced, LOG))


def _is_loaded(bench: Bench, journal: dict[str, Any]) -> bool:
    """Whether the log of a restore was loaded before the kill; labels may have been added since."""
    with bench.log.reading() as transaction:
        return bool(journal["last"] and transaction.events_by_id([journal["last"]]))


def _move_files(folder: str, staged: str, journal: dict[str, Any]) -> None:
    """Move the old files out and those of the backup in; steps that are done already are left out."""
    before, new = os.path.join(staged, BEFORE), os.path.join(staged, FILES)
    os.makedirs(before, exist_ok=True)
    for name in journal["before"]:
        moved = os.path.lexists(os.path.join(before, name))
        if not moved and os.path.lexists(os.path.join(folder, name)):
            os.rename(os.path.join(folder, name), os.path.join(before, name))
    for name in journal["new"]:
        if os.path.lexists(os.path.join(new, name)):
            os.rename(os.path.join(new, name), os.path.join(folder, name))
    sync_folder(folder)


class BackupContent(NamedTuple):
    """An unpacked backup: its folder, which holds the log, and its files without the log."""

    folder: str
    files: Sequence[str]


def unpacked_backup(
    archive: str, folder: str, progress: Progress | None = None, limits: ArchiveLimits = LIMITS, name: str = ""
) -> BackupContent:
    """Unpack a backup below a new folder and verify its log; DataError if it is not what `cranfield backup` writes."""
    label = name or archive
    os.mkdir(folder, 0o700)
    paths = unpack(archive, os.path.join(folder, "unpacked"), limits, progress, label)
    tops = {path.split(os.sep)[0] for path in paths}
    top = next(iter(tops)) if len(tops) == 1 and LOG not in tops else ""
    inside = [os.path.relpath(path, top) if top else path for path in paths]
    if LOG not in inside:
        raise FormatError(f"{label}: expected a backup, which holds {LOG}; found none in it")
    files = [path for path in inside if path != LOG]
    for path in files:
        first, *rest = path.split(os.sep)
        hidden = any(part.startswith(".") for part in (first, *rest))
        if hidden or path in SIDE_FILES or (rest and first not in FOLDERS):
            raise DataError(f"{label}: holds {shortened(path)!r}, which no backup holds; nothing was restored")
    content = BackupContent(os.path.join(folder, "unpacked", top) if top else os.path.join(folder, "unpacked"), files)
    _clean_log(os.path.join(content.folder, LOG), label)
    return content


def _clean_log(path: str, label: str) -> None:
    """Verify the log of a backup and write it again, with nothing in it but the rows of known tables."""
    try:
        refuse_other_objects(path)
        versions = verify(path)
        if versions.wrong:
            raise DataError(next(iter(versions.wrong.values())))
        fresh = name_beside(path)
        with closing(open_database(path)) as database:
            copy_into(database, fresh)
    except CranfieldError as error:
        raise DataError(f"{label}: {str(error).replace(path, LOG)}; nothing was restored") from None
    for tail in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{tail}")
    os.rename(fresh, path)


def _new_log(content: BackupContent, db: str | None, progress: Progress | None) -> int:
    """Put the log of a backup where the new workspace has it: into `db`, or it stays next to the files."""
    path = os.path.join(content.folder, LOG)
    if db is None:
        return _extent(path)[0]
    with closing(open_database(db)) as database:
        events = load_from(database, path, progress)
    os.unlink(path)
    return events


def _extent(path: str) -> tuple[int, str]:
    """The number of events in a log, and the id of the last one."""
    with closing(DatabaseLog(path)) as log:
        last = log.find(n=1)
        return log.count(), last[0].event.id if last else ""


def _entries(bench: Bench) -> list[str]:
    """The files and folders that a restore replaces in a workspace: those that a backup would hold."""
    names = {path.split(os.sep)[0] for path in workspace_files(bench.folder, os.path.realpath(bench.location))}
    return sorted(names | {name for name in FOLDERS if os.path.isdir(os.path.join(bench.folder, name))})


def _write_journal(staged: str, journal: dict[str, Any]) -> None:
    with open(os.path.join(staged, JOURNAL), "x", encoding="utf-8") as file:
        json.dump(journal, file)
        file.flush()
        os.fsync(file.fileno())

"""A backup of a workspace as one archive, written while people judge.

The log is copied first, in one consistent state (`store.database_copy`), then the files: every file that the log names is in
the archive. The archive is written next to its target and moved there when it is complete. Only its owner may read it: it
holds hashes of passwords.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.notifications import tell_written
from cranfield.base.parameters import masked
from cranfield.formats.streams import reason, replacement, unfinished
from cranfield.inputs.logs import exists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDINGS = (".tar.gz", ".tgz", ".zip")
LOG = "work.db"
FOLDERS = ("collection", "runs")  # with all subfolders; of the workspace itself only its files


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

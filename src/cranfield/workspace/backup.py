"""A workspace as one archive, made while people judge.

The log is copied first, in one state of it (`store.copying`), then the files: whatever the log names is there. The archive
is written beside its place and moved there when it is whole. Only its owner may read it: it holds hashes of passwords.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.errors import ConventionError, DataError
from cranfield.formats.streams import name_beside, reason
from cranfield.hearing import tell_written
from cranfield.parameters import masked
from cranfield.workspace.logs import exists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDINGS = (".tar.gz", ".tgz", ".zip")
LOG = "work.db"
FOLDERS = ("collection", "runs")  # taken whole; of the workspace itself its files


class Backup(NamedTuple):
    """What an archive holds."""

    path: str
    events: int
    files: int  # beside the log


def backup(folder: str, output: str, db: str | None = None, progress: Any = None) -> Backup:
    """Write a workspace into an archive: its log as work.db, its collection and its runs."""
    ending = next((each for each in ENDINGS if output.lower().endswith(each)), None)
    if ending is None:
        raise ConventionError(f"-o: expected a file ending in {', '.join(ENDINGS)}, found {output!r}")
    if not os.path.isdir(folder):
        raise DataError(f"{folder}: expected the folder of a workspace, found none")
    location = db or os.path.join(folder, LOG)
    if not exists(location):
        told = f"there is no such log; cranfield serve {folder} makes one, --db names one elsewhere"
        raise DataError(f"{masked(location)}: {told}")
    top = os.path.basename(output)[: -len(ending)] or "workspace"
    with _whole(output) as beside:
        copy = os.path.join(beside, LOG)
        events = _copied(location, copy)
        files = _files(folder, os.path.realpath(location))
        added = 0
        with _archive(os.path.join(beside, "archive"), ending) as add:
            add(copy, f"{top}/{LOG}")
            for number, name in enumerate(files, 1):
                added += add(os.path.join(folder, name), f"{top}/{name.replace(os.sep, '/')}")
                if progress is not None:
                    progress(number, len(files))
    return Backup(output, events, added)


def _copied(location: str, copy: str) -> int:
    """Copy a log; how many events that are."""
    from cranfield.judge.opening import is_database
    from cranfield.store import open_database
    from cranfield.store.copying import copy_into

    if not is_database(location):
        told = "expected a database: postgresql://user@host/name, or a file ending in .db"
        raise DataError(f"{masked(location)}: {told}")
    database = open_database(location)
    try:
        return copy_into(database, copy)
    finally:
        database.close()


def _files(folder: str, log: str) -> list[str]:
    """The files of a workspace by their names in it: no hidden ones, no log and what lies beside it, no archive of before."""
    logs = {os.path.join(os.path.realpath(folder), LOG), log}
    beside = {f"{path}{tail}" for path in logs for tail in ("", "-wal", "-shm", "-journal")}
    kept = []
    for name in _listed(folder):
        path = os.path.realpath(os.path.join(folder, name))
        if os.path.isfile(path) and path not in beside and not name.lower().endswith(ENDINGS):
            kept.append(name)
    for inside in FOLDERS:
        for where, folders, names in os.walk(os.path.join(folder, inside)):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            paths = [os.path.join(where, name) for name in sorted(names) if not name.startswith(".")]
            kept += [os.path.relpath(path, folder) for path in paths if os.path.isfile(path)]
    return kept


def _listed(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError as error:
        raise DataError(f"{folder}: {reason(error)}") from None


@contextmanager
def _whole(output: str) -> Iterator[str]:
    """A folder to make an archive in, beside where it goes; it goes there when all of it is on disk."""
    target = os.path.realpath(output)
    beside = name_beside(target)
    try:
        os.mkdir(beside, 0o700)
        yield beside
        made = os.path.join(beside, "archive")
        with open(made, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(made, 0o600)
        os.replace(made, target)
        tell_written(output)
    except OSError as error:
        raise DataError(f"{output}: cannot be written: {reason(error)}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _archive(path: str, ending: str) -> Iterator[Callable[[str, str], bool]]:
    """A function that adds a file to a new archive under a name; whether it was still there."""
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
    about.type, about.linkname = tarfile.REGTYPE, ""  # of two names of one file both hold it
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

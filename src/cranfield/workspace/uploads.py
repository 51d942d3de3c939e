"""A run that somebody uploads: bounded, read by the strict reader, checked, and only then among the others.

It is written into the state folder under its own name (an ending tells formats apart), and moved when all is well;
whatever is refused leaves nothing behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cranfield.check.findings import Findings
from cranfield.columns import legible
from cranfield.errors import CranfieldError, DataError, TooLargeError
from cranfield.formats import run_name
from cranfield.formats.streams import reason, refuse_larger
from cranfield.parameters import shortened
from cranfield.workspace.run_files import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.workspace.run_files import RunFile

LONGEST_NAME = 120  # bytes
PATTERNS = frozenset('/\\=*?[]<>:|"')  # of paths and patterns, here or on other systems


@dataclass(frozen=True)
class Upload:
    """The run that was added, None where it was refused; and what was found in it, by line."""

    run: RunFile | None
    findings: Findings


def refuse_name(runs: str, name: str) -> None:
    """Stop at a file name that is none, hides, is taken, or would mean something elsewhere."""
    shown = shortened(name)
    if not name or name.startswith((".", "-", " ")) or name.endswith((" ", ".")):
        raise DataError(f"a run's file name begins with a letter or a digit, as in bm25.run; found {shown!r}")
    if set(name) & PATTERNS or not name.isprintable() or legible(name) != name:
        raise DataError(f"a run's file name has letters, digits, blanks and ._-+ in it, found {shown!r}")
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise DataError(f"a run's file name is text, found {shown!r}") from None
    if length > LONGEST_NAME:
        raise DataError(f"a run's file name has {LONGEST_NAME} bytes at the most, found {length}")
    taken = {run_name(run.path).casefold() for run in listed(runs)}
    if run_name(name).casefold() in taken or os.path.lexists(os.path.join(runs, name)):
        raise DataError(f"there is a run {run_name(name)!r} already; give this one another name")


def add_run(runs: str, state: str, name: str, data: Iterable[bytes], limit: int, qrels: str | None = None) -> Upload:
    """Add a run of no more than so many bytes, packed or unpacked; findings that are errors refuse it.

    `runs` is the folder that it goes to, `state` where it is looked at before, and `qrels` what it is held against.
    """
    refuse_name(runs, name)
    try:
        folder = tempfile.mkdtemp(prefix="upload-", dir=state)
    except OSError as error:
        raise DataError(f"{name}: cannot be written: {reason(error)}") from None
    try:
        path = os.path.join(folder, name)
        _receive(path, name, data, limit)
        refuse_larger(path, limit, name)
        findings = _looked_at(path, name, qrels)
        if findings.counts["error"]:
            return Upload(None, findings)
        _move(path, runs, name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    added = [run for run in listed(runs) if os.path.basename(run.path) == name]
    return Upload(added[0] if added else None, findings)


def _receive(path: str, name: str, data: Iterable[bytes], limit: int) -> None:
    left = limit
    try:
        with open(path, "xb") as file:
            for piece in data:
                left -= len(piece)
                if left < 0:
                    raise TooLargeError(f"{name}: larger than {limit / 1e6:,.4g} MB, the most that is taken")
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise DataError(f"{name}: cannot be written: {reason(error)}") from None


def _looked_at(path: str, name: str, qrels: str | None) -> Findings:
    """What `check` finds, and what the strict reader stops at if that is anything else, under the name it was given."""
    from cranfield.check import check
    from cranfield.findings import Finding
    from cranfield.formats import read_run

    found = check([path], qrels, "run")
    own = [replace(each, file=name) for each in found if each.file == path]
    if not any(each.severity == "error" for each in own):
        try:
            _ = read_run(path).table
        except CranfieldError as error:
            told = str(error).replace(path, name).removeprefix(f"{name}: ")
            own.append(Finding.of("unreadable", name, told))
    return Findings(own)


def _move(path: str, runs: str, name: str) -> None:
    """Put it among the runs, never over another."""
    target = os.path.join(runs, name)
    try:
        os.makedirs(runs, exist_ok=True)
        os.chmod(path, 0o644)
        os.link(path, target)
    except FileExistsError:
        raise DataError(f"there is a run {run_name(name)!r} already; give this one another name") from None
    except OSError as error:
        raise DataError(f"{name}: cannot be put among the runs: {reason(error)}") from None

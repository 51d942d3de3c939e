"""What is wrong or suspicious in run and qrels files: every problem found, none of them fatal to the search.

A finding is one kind of problem in one file, with how often it occurs and the first few lines; findings.py lists the
kinds. Nothing here changes a file, and no bad line hides the next one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cranfield.check.file import File, Kind, n_of, unpack
from cranfield.check.findings import CODES, SEVERITIES, Code, Finding, render, to_dict
from cranfield.check.ids import look_at_ids, look_for_scattered
from cranfield.check.judged import judgments, look_through
from cranfield.check.qrels import look_at_qrels
from cranfield.check.runs import compare_depths, look_at_run
from cranfield.check.text import look_at_bytes, look_at_lines, recognise
from cranfield.errors import CranfieldError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CODES", "Code", "Finding", "check", "render", "to_dict"]


def check(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], qrels: Any = None, kind: Kind | None = None
) -> list[Finding]:
    """Look for anything wrong or suspicious in run and qrels files.

    A file is taken for a run or for qrels by its columns unless `kind` says which. With `qrels` (a path or anything else
    that holds judgments; or one file among `paths` that is plainly qrels) runs are also checked against the judgments.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "bm25.run")
    ...     with open(path, "w") as file:
    ...         _ = file.write("1 Q0 d1 1 9.5 bm25\\n1 Q0 d1 2 8.5 bm25\\n")
    ...     [(f.code, f.line) for f in check(path) if f.severity == "error"]
    [('duplicate-documents', 2)]
    """
    if kind not in (None, "run", "qrels"):
        raise DataError(f"kind must be run or qrels, got {kind!r}")
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = [read(path, kind) for path in given]
    if isinstance(qrels, (str, os.PathLike)) and os.fspath(qrels) not in [file.where for file in files]:
        files.append(read(qrels, "qrels"))
    judged = judgments(qrels, files)
    runs = [file for file in files if file.kind == "run" and len(file.rows.topic)]
    compare_depths(runs)
    if judged is not None:
        for file in runs:
            look_through(file, judged)
    return [found for file in files for found in sorted(file.findings, key=lambda f: SEVERITIES.index(f.severity))]


def read(path: str | os.PathLike[str], kind: Kind | None) -> File:
    """Open a file, tell what it is, and report all that can be said of it alone."""
    where = "<stdin>" if path == "-" else os.fspath(path)
    try:
        buffer, problem = unpack(path, where)
    except CranfieldError as error:
        file = File(where)
        file.add("unreadable", f"{str(error).removeprefix(f'{where}: ')}")
        return file
    marked = bytes(buffer[:3]) == b"\xef\xbb\xbf"
    file = File(where, memoryview(buffer)[3:] if marked else buffer)
    if problem:
        file.add("truncated", f"{problem}; {n_of(len(buffer), 'byte')} of text could be unpacked")
    if marked:
        file.add("byte-order-mark", "", at=[(0, "")])
    look_at_bytes(file)
    if not file.found("empty", "utf-16"):
        recognise(file, kind)
    if file.kind is not None:
        _look_at_rows(file)
    return file


def _look_at_rows(file: File) -> None:
    look_at_lines(file)
    if not len(file.rows.topic):
        if not file.rows.skipped:
            file.add("empty", "only comments")
        return
    look_at_ids(file)
    look_for_scattered(file)
    if file.kind == "run":
        look_at_run(file)
    else:
        look_at_qrels(file)

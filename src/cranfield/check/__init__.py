"""What is wrong or suspicious in run and qrels files: every problem found, none of them fatal to the search.

A finding is one kind of problem in one file, with how often it occurs and the first few lines; findings.toml lists the
kinds. Nothing here changes a file, and no bad line hides the next one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cranfield.check.file import File, Kind, unpacked
from cranfield.check.findings import Findings, by_severity, render, to_dict
from cranfield.check.judged import judgments, look_through
from cranfield.check.rows import look_at_depth, look_at_ids, look_at_qrels, look_at_run, look_for_scattered
from cranfield.check.text import look_at_bytes, look_at_lines, recognise
from cranfield.collection import Qrels
from cranfield.columns import counted
from cranfield.errors import ConventionError, CranfieldError
from cranfield.findings import CODES, Code, Finding
from cranfield.formats.format import USUAL, Head
from cranfield.formats.known.trec import TREC
from cranfield.formats.registry import strongest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cranfield.formats.format import Fields

__all__ = ["CODES", "Code", "Finding", "Findings", "check", "render", "to_dict"]


def check(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str] | Qrels],
    qrels: Any = None,
    kind: Kind | None = None,
    fields: Fields | None = None,
) -> Findings:
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
        raise ConventionError(f"kind must be run or qrels, got {kind!r}")
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    examined = [examine(path, kind, fields) for path in listed]
    if isinstance(qrels, (str, os.PathLike)) and os.fspath(qrels) not in [file.where for file, _ in examined]:
        examined.append(examine(qrels, "qrels", fields))
    judged = judgments(qrels, [file for file, _ in examined])
    runs = [(file, findings) for file, findings in examined if file.kind == "run" and len(file.rows.topic)]
    deepest = max((int(file.depth.max()) for file, _ in runs), default=0)
    for file, findings in runs:
        findings += look_at_depth(file, deepest)
        findings += look_through(file, judged) if judged is not None else ()
    return Findings(found for _, findings in examined for found in by_severity(findings))


def examine(
    path: str | os.PathLike[str] | Qrels, kind: Kind | None, fields: Fields | None = None
) -> tuple[File, list[Finding]]:
    """Open a file, tell what it is, and find all that can be said of it alone; qrels are looked at as TREC's lines."""
    if isinstance(path, Qrels):
        file = File(path.name, b"".join(TREC.write(path.table, "qrels", "")))
        return file, list(_look_at(file, "qrels", USUAL))
    where = "<stdin>" if path == "-" else os.fspath(path)
    try:
        buffer, problem = unpacked(path, where)
    except CranfieldError as error:
        file = File(where)
        return file, [file.finding("unreadable", str(error).removeprefix(f"{where}: "))]
    marked = bytes(buffer[:3]) == b"\xef\xbb\xbf"
    file = File(where, memoryview(buffer)[3:] if marked else buffer)
    findings: list[Finding] = []
    if problem:
        findings.append(
            file.finding("truncated", f"{problem}; {counted(len(buffer), 'byte')} of text could be unpacked")
        )
    if marked:
        findings.append(file.finding("byte-order-mark", "", at=[(0, "")]))
    findings += _look_at(file, kind, fields or USUAL)
    return file, findings


def _look_at(file: File, kind: Kind | None, fields: Fields) -> Iterator[Finding]:
    match, unclear = None, ""
    try:
        match = strongest(Head(file.buffer), file.where, fields=fields)
    except CranfieldError as error:  # two formats that nothing tells apart
        unclear = str(error).removeprefix(f"{file.where}: ")
    if match is None or match[0].is_text:
        about_bytes = list(look_at_bytes(file))
        yield from about_bytes
        if {"empty", "utf-16"} & {finding.code for finding in about_bytes}:
            return
    if unclear:
        yield file.finding("unknown-kind", unclear)
        return
    yield from recognise(file, kind, match)
    if file.kind is None:
        return
    yield from look_at_lines(file)
    if len(file.rows.topic):
        yield from look_at_ids(file)
        yield from look_for_scattered(file)
        yield from look_at_run(file) if file.kind == "run" else look_at_qrels(file)
    elif not file.rows.skipped:
        yield file.finding("empty", "only comments")

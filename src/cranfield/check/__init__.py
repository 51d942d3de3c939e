"""What is wrong or suspicious in run and qrels files: every problem found, none of them fatal to the search.

A finding is one kind of problem in one file, with how often it occurs and the first few lines; findings.toml lists the
kinds. Nothing here changes a file, and no bad line hides the next one.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cranfield.check.adapted import CheckedAs
from cranfield.check.file import File, Kind, unpacked
from cranfield.check.findings import Findings, by_severity, render, to_dict
from cranfield.check.judged import judgments, look_through
from cranfield.check.rows import look_at_depth, look_at_ids, look_at_qrels, look_at_run, look_for_scattered
from cranfield.check.text import look_at_bytes, look_at_lines, recognise
from cranfield.collection import Qrels
from cranfield.columns import counted
from cranfield.conventions import conventions
from cranfield.errors import ConventionError, CranfieldError
from cranfield.findings import CODES, Code, Finding
from cranfield.formats.format import USUAL, Head
from cranfield.formats.grades import grade_map
from cranfield.formats.known.trec import TREC
from cranfield.formats.registry import strongest
from cranfield.formats.tables import Dialect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cranfield.collection import Duplicates
    from cranfield.formats.format import Fields

MALFORMED = {"bad-rows", "columns", "score-not-a-number", "grade-not-a-number"}

__all__ = ["CODES", "Code", "Finding", "Findings", "check", "render", "to_dict"]


def check(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str] | Qrels],
    qrels: Any = None,
    kind: Kind | None = None,
    fields: Fields | None = None,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    grades: Mapping[float, float] | str | None = None,
    duplicates: Duplicates | None = None,
    queries: Mapping[str, str] | None = None,
    ignore_case: bool = False,
    lenient: bool = False,
) -> Findings:
    """Look for anything wrong or suspicious in run and qrels files.

    A file is taken for a run or for qrels by its columns unless `kind` says which. With `qrels` (a path or anything else
    that holds judgments; or one file among `paths` that is plainly qrels) runs are also checked against the judgments.
    The other keywords are those of `evaluate`; `lenient` makes warnings of malformed lines.

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
    if duplicates is not None:
        conventions(duplicates=duplicates)  # which refuses a word that it does not know
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    dialect = Dialect(delimiter, encoding, decimal)
    reading = CheckedAs(fields or USUAL, dialect, grade_map(grades), duplicates, queries, ignore_case)
    examined = [examine(path, kind, reading) for path in listed]
    if isinstance(qrels, (str, os.PathLike)) and os.fspath(qrels) not in [file.where for file, _ in examined]:
        examined.append(examine(qrels, "qrels", reading))
    scorable = [(file, findings) for file, findings in examined if not any(each.code == "nul" for each in findings)]
    judged = judgments(qrels, [file for file, _ in scorable])
    runs = [(file, findings) for file, findings in scorable if file.kind == "run" and len(file.rows.topic)]
    deepest = max((int(file.depth.max()) for file, _ in runs), default=0)
    for file, findings in runs:
        findings += look_at_depth(file, deepest)
        findings += look_through(file, judged) if judged is not None else ()
    everything = [(file, [_milder(each) for each in findings] if lenient else findings) for file, findings in examined]
    return Findings(found for _, findings in everything for found in by_severity(findings))


def _milder(finding: Finding) -> Finding:
    """A finding on malformed lines as a warning, for whoever passes over them."""
    return replace(finding, severity="warning") if finding.code in MALFORMED else finding


def examine(
    path: str | os.PathLike[str] | Qrels,
    kind: Kind | None,
    reading: CheckedAs = CheckedAs(),  # noqa: B008
) -> tuple[File, list[Finding]]:
    """Open a file, tell what it is, and find all that can be said of it alone; qrels are looked at as TREC's lines."""
    if isinstance(path, Qrels):
        file = File(path.name, b"".join(TREC.write(path.table, "qrels", "")))
        return file, list(_look_at(file, "qrels", CheckedAs()))
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
    findings += _look_at(file, kind, reading)
    return file, findings


def _look_at(file: File, kind: Kind | None, reading: CheckedAs) -> Iterator[Finding]:
    match, unclear = None, ""
    dialect = reading.dialect.of(file.recode(reading.dialect))
    try:
        match = strongest(Head(file.buffer), file.where, fields=reading.fields, dialect=dialect)
    except CranfieldError as error:  # two formats that nothing tells apart
        unclear = str(error).removeprefix(f"{file.where}: ")
    if match is None or match[0].is_text:
        about_bytes = list(look_at_bytes(file, quoted=match is not None and match[0].quotes))
        yield from about_bytes
        if {"empty", "utf-16"} & {finding.code for finding in about_bytes}:
            return
    if unclear:
        yield file.finding("unknown-kind", unclear)
        return
    yield from recognise(file, kind, match)
    yield from reading.adapt(file)
    if file.kind is None:
        return
    yield from look_at_lines(file)
    if len(file.rows.topic):
        yield from look_at_ids(file)
        yield from look_for_scattered(file)
        yield from look_at_run(file) if file.kind == "run" else look_at_qrels(file)
    elif not file.rows.skipped:
        yield file.finding("empty", "only comments")

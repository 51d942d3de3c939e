"""What is wrong or suspicious in run and qrels files: every problem found, none of them fatal to the search.

A finding is one kind of problem in one file, with how often it occurs and the first few lines; findings.toml lists the
kinds. Nothing here changes a file, and no bad line hides the next one.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from cranfield.base.conventions import Conventions, conventions
from cranfield.base.errors import ConventionError, CranfieldError
from cranfield.base.findings import CODES, SEVERITIES, SHOWN, Code, Finding, Severity
from cranfield.base.kernels import encode
from cranfield.base.notifications import say, tell_used
from cranfield.base.qrels import Qrels, without_duplicates
from cranfield.base.results import Answer, Layout, Lines
from cranfield.base.run import Run
from cranfield.base.text_layout import counted
from cranfield.collections.check.file import CheckedFile, Kind, keys, spread, unpacked
from cranfield.collections.check.file_checks import DEEP, look_at_bytes, look_at_depth, look_at_rows, recognise
from cranfield.evaluation import sanity_checks
from cranfield.evaluation.evaluate import Evaluator
from cranfield.evaluation.measures import measure
from cranfield.evaluation.tie_orders import extreme_order
from cranfield.formats import as_qrels
from cranfield.formats.csv_tables import DETECTED, Dialect, DialectOptions
from cranfield.formats.files.trec import TREC
from cranfield.formats.format import USUAL, Head
from cranfield.formats.format_registry import strongest
from cranfield.formats.grade_scales import grade_map, mapped_grades
from cranfield.formats.topic_tables import ids_of_texts, joined_in_words, renamed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cranfield.base.qrels import Duplicates
    from cranfield.collections.check.file import Array
    from cranfield.evaluation.hits import Hits
    from cranfield.formats.format import Fields


class Findings(Answer, list[Finding]):
    """The findings of all files, the most severe first in each file."""

    @property
    def counts(self) -> dict[Severity, int]:
        """The number of findings per severity."""
        return {word: sum(finding.severity == word for finding in self) for word in SEVERITIES}

    def content(self, how: Layout) -> Iterator[Lines]:
        """Counts, then the findings by file with their first lines."""
        summary = ", ".join(counted(n, word) for word, n in self.counts.items() if n)
        yield Lines([summary or "nothing to report", *(line for finding in self for line in finding.lines())])

    def plain(self, how: Layout) -> dict[str, Any]:
        counts = {f"{word}s": n for word, n in self.counts.items()}
        return {"findings": [finding.to_dict() for finding in self], **counts}

    def records(self, how: Layout) -> Iterator[Sequence[Any]]:
        """One row per finding."""
        yield "file", "line", "severity", "code", "message", "count"
        for finding in self:
            yield finding.file, finding.line, finding.severity, finding.code, finding.message, finding.count


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity; equal ones keep their order."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def render(findings: Iterable[Finding]) -> str:
    """Findings as text for people."""
    return Findings(findings).to_text()


def to_dict(findings: Iterable[Finding]) -> dict[str, Any]:
    """Findings as plain values for JSON, with counts per severity."""
    values: dict[str, Any] = Findings(findings).to_dict()
    return values


def judgments(qrels: Any, files: list[CheckedFile]) -> Qrels | None:
    """The judgments to check runs against: the given ones, or the only qrels file among the files."""
    if qrels is not None and not isinstance(qrels, (str, os.PathLike)):
        return as_qrels(qrels)
    judged = [file for file in files if file.kind == "qrels" and len(file.rows.topic)]
    if qrels is not None:
        judged = [file for file in judged if file.where == os.fspath(qrels)][-1:]
    if len(judged) != 1:
        return None
    rows, (again, _) = judged[0].rows, judged[0].repeats()
    first = np.setdiff1d(np.arange(len(rows.topic)), again)
    return Qrels(rows.take(first) if len(again) else rows, judged[0].where)


def look_through(file: CheckedFile, qrels: Qrels) -> Iterator[Finding]:
    """Findings about a run together with judgments."""
    evaluator, run = Evaluator(qrels, "nDCG@10", duplicates="first", warn=False), Run(file.rows, file.where)
    if sanity_checks.looks_like_scores(qrels) and sanity_checks.looks_like_grades(run):
        yield sanity_checks.swapped(run, qrels)
    hit_rows = run.hits(qrels.index, evaluator.conventions.order)
    met = sanity_checks.IdOverlap.of(hit_rows, evaluator.judgments)
    yield from sanity_checks.id_mismatches(run, qrels, met)
    if not met.answered:
        return
    answered = file.rows.topics.text()
    common = set(answered) & set(qrels.topics)
    missing = [topic for topic in qrels.topics if topic not in common]
    others = [topic for topic in answered if topic not in common]
    hint = sanity_checks.would_match(others, missing)
    for code, names, every in (("topics-missing", missing, qrels.topics), ("topics-not-judged", others, answered)):
        if names:
            what = f"{counted(len(names), 'topic')} of {len(every):,}{hint}"
            yield Finding.of(code, file.where, what, names=names)
    hits = evaluator.hits(run)
    yield from _look_for_unjudged(file, qrels, hits)
    yield from () if met.ids_apart else sanity_checks.little_judged(run, hits, evaluator.topic_mask)
    yield from _look_at_tie_order(file, hits)


def _look_for_unjudged(file: CheckedFile, qrels: Qrels, hits: Hits) -> Iterator[Finding]:
    returned = int(hits.retrieved.sum())
    judged = hits.judged()
    if 0 < len(judged) < returned:
        shares = []
        for k in (10, DEEP):
            top = judged.top(k)
            shares.append(f"{len(top) / max(int(top.retrieved.sum()), 1):.1%} of the top {k:,}")
        unjudged = f"{returned - len(judged):,} of {counted(returned, 'document')}"
        code, what = "documents-not-judged", f"judged are {' and '.join(shares)}; {unjudged} are not"
        if hits.judgments.only_relevant():  # a document may be judged under an id that is not listed
            code, what = "documents-not-named", unjudged
        start = file.rows.start
        rows = _unjudged_rows(file, qrels)[:SHOWN]
        at = [(int(start[row]), file.pair(int(row))) for row in rows] if len(start) else []
        yield file.finding(code, what, returned - len(judged), at)


def _unjudged_rows(file: CheckedFile, qrels: Qrels) -> Array:
    """The rows of judged topics whose documents are unjudged."""
    number = {encode(topic): i for i, topic in enumerate(qrels.topics)}
    of_topic = np.array([number.get(topic, -1) for topic in file.rows.topics], np.int64)
    topic = of_topic[file.rows.topic]
    good = qrels.grade >= 0
    judged = spread(keys(qrels.documents), qrels.topic.astype(np.uint64))[good]
    here = spread(file.keys, np.maximum(topic, 0).astype(np.uint64))
    return np.flatnonzero((topic >= 0) & ~np.isin(here, judged))


def _look_at_tie_order(file: CheckedFile, hits: Hits) -> Iterator[Finding]:
    ndcg = measure("nDCG@10")
    orders = extreme_order(hits, best=False), hits, extreme_order(hits, best=True)
    low, now, high = map(ndcg.score, orders)
    moved = int((high - low > 1e-12).sum())
    if moved:
        means = float(low.mean()), float(now.mean()), float(high.mean())
        rule = sanity_checks.RULES[Conventions().ties]
        what = sanity_checks.mean_range_in_words("nDCG@10", *means, rule, high - low)
        yield file.finding("tie-order", what, moved)


class CheckedAs(NamedTuple):
    """Options for reading files in a check."""

    fields: Fields = USUAL
    dialect: Dialect = DETECTED
    grades: Mapping[float, float] | None = None
    duplicates: Duplicates | None = None
    queries: Mapping[str, str] | None = None
    ignore_case: bool = False

    def adapt(self, file: CheckedFile) -> Iterator[Finding]:
        """Apply the options to the rows of a file; a problem becomes a finding, and the file is not checked further."""
        if file.kind is None or not len(file.rows.topic):
            return
        if self.grades is not None and file.kind == "qrels":
            tell_used("grades")
            values, other = mapped_grades(file.rows.value, self.grades)
            if other.any():
                odd = ", ".join(f"{grade:g}" for grade in sorted({*file.rows.value[other].tolist()})[:5])
                named = ", ".join(f"{grade:g}" for grade in sorted(self.grades))
                what = f"{counted(int(other.sum()), 'grade')} that --grades does not name: {odd}; it names {named}"
                yield file.of_row("unreadable", what, int(other.sum()), int(other.argmax()))
                file.kind = None
                return
            file.rows = replace(file.rows, value=values)
        if self.queries is not None:
            try:
                ids = ids_of_texts(file.rows.topics.text(), self.queries, file.where, self.ignore_case)
            except CranfieldError as error:
                yield file.finding("unreadable", str(error).removeprefix(f"{file.where}: "))
                file.kind = None
                return
            if ids is not None:
                say([joined_in_words(file.where, len(ids))])
                file.rows = renamed(file.rows, ids)
        if self.duplicates not in (None, "error"):
            file.rows = without_duplicates(file.rows, self.duplicates)


MALFORMED = {"bad-rows", "columns", "score-not-a-number", "grade-not-a-number"}

__all__ = ["CODES", "Code", "Finding", "Findings", "check", "render", "to_dict"]


def check(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str] | Qrels],
    qrels: Any = None,
    kind: Kind | None = None,
    fields: Fields | None = None,
    *,
    grades: Mapping[float, float] | str | None = None,
    duplicates: Duplicates | None = None,
    queries: Mapping[str, str] | None = None,
    ignore_case: bool = False,
    lenient: bool = False,
    **options: Unpack[DialectOptions],
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
        conventions(duplicates=duplicates)  # refuses unknown keywords
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    reading = CheckedAs(fields or USUAL, Dialect(**options), grade_map(grades), duplicates, queries, ignore_case)
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
    milder = MALFORMED if lenient else ()
    answer = Findings()
    for _, findings in examined:
        answer += by_severity(replace(each, severity="warning") if each.code in milder else each for each in findings)
    return answer


def examine(
    path: str | os.PathLike[str] | Qrels,
    kind: Kind | None,
    reading: CheckedAs = CheckedAs(),  # noqa: B008
) -> tuple[CheckedFile, list[Finding]]:
    """Open a file, recognise its kind, and check it by itself; qrels in memory are checked as TREC lines."""
    if isinstance(path, Qrels):
        file = CheckedFile(path.name, b"".join(TREC.write(path.table, "qrels", "")))
        return file, list(_look_at(file, "qrels", CheckedAs()))
    where = "<stdin>" if path == "-" else os.fspath(path)
    try:
        buffer, problem = unpacked(path, where)
    except CranfieldError as error:
        file = CheckedFile(where)
        return file, [file.finding("unreadable", str(error).removeprefix(f"{where}: "))]
    marked = bytes(buffer[:3]) == b"\xef\xbb\xbf"
    file = CheckedFile(where, memoryview(buffer)[3:] if marked else buffer)
    findings: list[Finding] = []
    if problem:
        size = counted(len(buffer), "byte")
        findings.append(file.finding("truncated", f"{problem}; {size} of text could be unpacked"))
    if marked:
        findings.append(file.finding("byte-order-mark", "", at=[(0, "")]))
    findings += _look_at(file, kind, reading)
    return file, findings


def _look_at(file: CheckedFile, kind: Kind | None, reading: CheckedAs) -> Iterator[Finding]:
    match, unclear = None, ""
    dialect = reading.dialect.of(file.recode(reading.dialect))
    try:
        match = strongest(Head(file.buffer), file.where, fields=reading.fields, dialect=dialect)
    except CranfieldError as error:  # two formats fit equally well
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
    if file.kind is not None:
        yield from look_at_rows(file)

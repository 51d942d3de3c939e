"""Reports in Python: compare runs, write the report, show it in a notebook."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from cranfield.base.collection import Collection
from cranfield.comparison.compare import compare
from cranfield.comparison.efficiency import efficiency_of_files
from cranfield.formats import expand
from cranfield.formats.csv_tables import Dialect
from cranfield.inputs.inputs import DEFAULT_MEASURES
from cranfield.reports.report_content import clicks_of, report_of
from cranfield.reports.texts import collection_of, documents_of, topics_of

if TYPE_CHECKING:
    from typing import Unpack

    from cranfield.comparison.compare import Comparison, ComparisonOptions
    from cranfield.reports.report_content import Report


@dataclass(frozen=True)
class Reported:
    """A report and its path. A notebook shows its page."""

    report: Report
    path: str | None = None

    @property
    def comparison(self) -> Comparison:
        """The result of `cranfield.compare` that the report describes."""
        return self.report.comparison

    def write(self, path: str | os.PathLike[str], format: str | None = None, *, chart: str | None = None) -> Reported:
        """Write the report to a file; the file's ending or `format` decides how. Returns the report with its path."""
        from cranfield.formats.streams import write_bytes
        from cranfield.reports.writers import ending_of, render

        where = os.fspath(path)
        write_bytes(where, [render(self.report, format or ending_of(where), chart)])
        return replace(self, path=where)

    def to_html(self) -> str:
        """The page."""
        from cranfield.reports.html import page

        return page(self.report)

    def __repr__(self) -> str:
        where = "not written yet: use write(path)" if self.path is None else f"written to {self.path}"
        return f"<Reported {self.report.title}: {where}>"

    def _repr_html_(self) -> str:
        """The page in a frame for a notebook."""
        from html import escape

        look = 'sandbox="allow-scripts" style="width:100%;height:44rem;border:1px solid #ccc"'
        return f'<iframe title="{escape(self.report.title)}" {look} srcdoc="{escape(self.to_html())}"></iframe>'


def report(
    qrels: Any,
    runs: Any = None,
    measures: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    format: str | None = None,
    chart: str | None = None,
    title: str | None = None,
    digits: int = 4,
    topics_file: str | None = None,
    documents: str | None = None,
    texts: bool = True,
    clicks: str | os.PathLike[str] | None = None,
    click_model: str | None = None,
    **question: Unpack[ComparisonOptions],
) -> Reported:
    """Compare runs and write one file: a page, tables for a paper, data, or a chart.

    `question` has the options of `cranfield.compare`; `qrels` may be scores, or a collection, whose queries and
    documents the page then shows. `topics_file` and `documents` (a collection, or a file like its documents.jsonl)
    replace them, and `texts=False` leaves out the texts of documents. `clicks` is an event
    log whose clicks the report shows, with the examination of ranks by `click_model`. The ending of `path` decides the
    format (html, md, tex, json, csv, or with `chart` svg, png, pdf) unless `format` does; without a path, call `write`
    later.

    >>> report("allotment", {"one": {"101": ["d299"]}, "two": {"101": ["d1"]}}, "RR@10", tests="t")
    <Reported one and two on allotment: not written yet: use write(path)>
    """
    if isinstance(qrels, Collection):
        judged, named = qrels.qrels, qrels.path
    else:
        judged, named = qrels, os.fspath(qrels) if isinstance(qrels, (str, os.PathLike)) else None
    usual = DEFAULT_MEASURES if measures is None and runs is not None else measures
    dialect = Dialect(question.get("delimiter"), question.get("encoding"), question.get("decimal"))
    lenient = bool(question.get("lenient"))
    topics = topics_of(collection_of(qrels), topics_file, question.get("fields"), dialect, lenient)
    if runs is not None and topics is not None:
        question.setdefault("queries", topics.queries)
    comparison = compare(judged, runs, usual, **question)
    files = _files(runs, comparison)
    inputs = {name: value for name, value in (("qrels", named), ("runs", files)) if value}
    options = {name: value for name, value in question.items() if name not in signature(compare).parameters}
    log = None if clicks is None else os.fspath(clicks)
    content = report_of(
        replace(comparison, inputs=inputs, efficiency=efficiency_of_files(comparison.scores, files)),
        None if runs is None else options,
        [topics_file],
        title=title,
        digits=digits,
        topics=topics,
        documents=documents_of(qrels, documents) if texts else None,
        clicks=None if log is None else clicks_of(log, comparison, topics, click_model),
        event_log=log,
    )
    return Reported(content) if path is None else Reported(content).write(path, format, chart=chart)


def _files(runs: Any, comparison: Comparison) -> dict[str, str]:
    """The runs' files, if all runs are files."""
    sources = list(runs.values()) if isinstance(runs, Mapping) else runs if isinstance(runs, (list, tuple)) else [runs]
    if not all(isinstance(each, (str, os.PathLike)) for each in sources):
        return {}
    files = expand([os.fspath(each) for each in sources])
    return dict(zip(comparison.scores.runs, files, strict=True)) if len(files) == len(comparison.scores.runs) else {}

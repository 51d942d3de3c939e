"""Questions about the collection: problems in its files and in runs, and the index behind /search."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import DataError
from cranfield.base.findings import SEVERITIES, Finding
from cranfield.base.parameters import Flag
from cranfield.base.results import Answer, Cell, Layout, Part, Table
from cranfield.base.text_layout import counted
from cranfield.collections.check import Findings, check
from cranfield.collections.check.collection_checks import check_collection
from cranfield.inputs.selection import of_runs
from cranfield.inputs.workspace import own_folder
from cranfield.retrieval.document_search import build_index, index_folder
from cranfield.workbench.question import Names, Tell, WorkbenchQuestion, details_html, scrolling_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.formats.run_files import RunFile
    from cranfield.inputs.workspace import Bench


class CheckQuestion(WorkbenchQuestion):
    """Findings in the collection and in runs, by line, errors first."""

    name = "check"
    activity = "checking files"
    runs = Names("the runs; default: all")
    collection = Flag("whether to check the collection as well", default=True)

    def files(self, bench: Bench) -> list[RunFile]:
        return [bench.run(name) for name in self.runs] if self.runs else bench.runs()

    def depends(self, bench: Bench) -> dict[str, str]:
        from cranfield.formats.collection_folder import DOCUMENTS, META, QRELS, SUBTOPICS
        from cranfield.inputs.disk_caches import mark_of

        hashes = of_runs(bench, self.files(bench))
        for name in (QRELS, SUBTOPICS, META):
            if (path := bench.file(name)) is not None:
                hashes[name] = bench.hashes.of(path)
        if self.collection and (path := bench.file(DOCUMENTS)) is not None:
            hashes[DOCUMENTS] = repr(mark_of(path))  # the file may have gigabytes: it is not hashed
        return hashes

    def run(self, bench: Bench, tell: Tell) -> Answer:
        findings = list(check_collection(bench.collection, tell)) if self.collection and bench.collection else []
        files = self.files(bench)
        if files:
            in_runs = check([run.path for run in files], bench.qrels, "run")
            findings += [each for each in in_runs if each.file != bench.qrels]
        start = f"{bench.folder}/"
        return Findings(replace(each, file=each.file.removeprefix(start)) for each in findings)

    def html(self, bench: Bench, answer: Answer) -> str:
        assert isinstance(answer, Findings)
        if not answer:
            return "<p>Nothing found.</p>"
        parts = []
        for severity in SEVERITIES:
            findings = [each for each in answer if each.severity == severity]
            if findings:
                table, name = _table(findings), counted(len(findings), severity)
                parts.append(details_html(name, table) if severity == "note" else f"<h3>{name}</h3>{table}")
        return f'<div class="findings">{"".join(parts)}</div>'


def _table(findings: list[Finding]) -> str:
    """One row per finding, with examples of its lines."""
    rows: list[list[Cell | str]] = [
        [
            each.file,
            Cell("" if each.line is None else str(each.line), each.line),
            " ".join([each.message, *(f"[{example}]" for example in each.examples)]),
        ]
        for each in findings
    ]
    return scrolling_table(Table(["file", "line", "finding"], rows, 1, 3))


def search_folder(bench: Bench) -> str:
    """The folder of the search indexes of a workspace."""
    return own_folder(os.path.join(bench.state, "search"))


def ready_index(bench: Bench) -> str | None:
    """The folder of the index of the documents as they are now; None if it is not built yet, or there are no documents."""
    folder = None if bench.collection is None else index_folder(bench.collection, search_folder(bench))
    return folder if folder is not None and os.path.isdir(folder) else None


@dataclass(frozen=True, repr=False)
class SearchIndex(Answer):
    """The name of the index that was built."""

    name: str

    def content(self, how: Layout) -> Iterator[Part]:
        yield f"the documents can be searched ({self.name})"

    def plain(self, how: Layout) -> Any:
        return {"index": self.name}


class SearchIndexQuestion(WorkbenchQuestion):
    """The search index of the documents, built once and again when they change."""

    name = "search-index"
    activity = "indexing the documents for search"
    csv = False

    def refuse(self, bench: Bench) -> None:
        if bench.collection is None:
            raise DataError("there are no documents to search; import a collection first")

    def depends(self, bench: Bench) -> dict[str, str]:
        assert bench.collection is not None
        where = search_folder(bench)  # its time changes when somebody removes an index, so that it is built again
        index = os.path.basename(index_folder(bench.collection, where))
        return {"index": index, "folder": f"{os.stat(where).st_mtime_ns}"}

    def run(self, bench: Bench, tell: Tell) -> Answer:
        assert bench.collection is not None
        return SearchIndex(os.path.basename(build_index(bench.collection, search_folder(bench), tell)))

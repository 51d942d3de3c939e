"""What is wrong or suspicious in the collection and the runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.answer import Cell, Table
from cranfield.columns import counted
from cranfield.findings import SEVERITIES
from cranfield.parameters import Flag
from cranfield.workspace.chosen import of_runs
from cranfield.workspace.verb import Names, Verb, folded, shown_table

if TYPE_CHECKING:
    from cranfield.answer import Answer
    from cranfield.findings import Finding
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.run_files import RunFile
    from cranfield.workspace.verb import Tell


class Check(Verb):
    """Findings of the collection and of runs, by line, the gravest first."""

    name = "check"
    told = "looking through files"
    runs = Names("the runs; all unless some are named")
    collection = Flag("whether the collection is looked at as well", default=True)

    def files(self, bench: Bench) -> list[RunFile]:
        return [bench.run(name) for name in self.runs] if self.runs else bench.runs()

    def depends(self, bench: Bench) -> dict[str, str]:
        from cranfield.formats.folder import DOCUMENTS, META, QRELS, SUBTOPICS
        from cranfield.workspace.hashes import mark_of

        known = of_runs(bench, self.files(bench))
        for name in (QRELS, SUBTOPICS, META):
            if (path := bench.file(name)) is not None:
                known[name] = bench.hashes.of(path)
        if self.collection and (path := bench.file(DOCUMENTS)) is not None:
            known[DOCUMENTS] = repr(mark_of(path))  # gigabytes are not read for a hash
        return known

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.check import Findings, check
        from cranfield.check.collection import check_collection

        found = list(check_collection(bench.collection, tell)) if self.collection and bench.collection else []
        files = self.files(bench)
        if files:
            found += [
                each for each in check([run.path for run in files], bench.qrels, "run") if each.file != bench.qrels
            ]
        start = f"{bench.folder}/"
        return Findings(replace(each, file=each.file.removeprefix(start)) for each in found)

    def html(self, bench: Bench, answer: Answer) -> str:
        from cranfield.check import Findings

        assert isinstance(answer, Findings)
        if not answer:
            return "<p>Nothing found.</p>"
        parts = []
        for severity in SEVERITIES:
            found = [each for each in answer if each.severity == severity]
            if found:
                table, name = _table(found), counted(len(found), severity)
                parts.append(folded(name, table) if severity == "note" else f"<h3>{name}</h3>{table}")
        return f'<div class="findings">{"".join(parts)}</div>'


def _table(found: list[Finding]) -> str:
    """A row a finding, with the first lines that it was found in."""
    rows: list[list[Cell | str]] = [
        [
            each.file,
            Cell("" if each.line is None else str(each.line), each.line),
            " ".join([each.message, *(f"[{example}]" for example in each.examples)]),
        ]
        for each in found
    ]
    return shown_table(Table(["file", "line", "finding"], rows, 1, 3))

"""What is wrong or suspicious in the collection and the runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.answer import Cell, Table
from cranfield.parameters import Flag
from cranfield.workspace.chosen import of_runs
from cranfield.workspace.verb import Names, Verb, shown_table

if TYPE_CHECKING:
    from cranfield.answer import Answer
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
            found += [each for each in check([run.path for run in files], bench.qrels) if each.file != bench.qrels]
        start = f"{bench.folder}/"
        return Findings(replace(each, file=each.file.removeprefix(start)) for each in found)

    def html(self, bench: Bench, answer: Answer) -> str:
        from cranfield.check import Findings

        assert isinstance(answer, Findings)
        if not answer:
            return "<p>nothing to report</p>"
        rows: list[list[Cell | str]] = [
            [each.severity, each.file, Cell("" if each.line is None else str(each.line), each.line), each.message]
            for each in answer
        ]
        caption = ", ".join(f"{n} {word}{'s' * (n != 1)}" for word, n in answer.counts.items() if n)
        return shown_table(Table(["severity", "file", "line", "finding"], rows, 2, 4, caption=caption))

"""A report of chosen runs, as `cranfield report` writes it, to download."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError
from cranfield.base.parameters import Text
from cranfield.base.results import Answer, Layout, Part, plain
from cranfield.base.text_layout import in_bytes
from cranfield.workbench.question import ScoringQuestion, Tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.inputs.workspace import Bench


class RenderedReport(Answer):
    """A report in one of its formats."""

    def __init__(self, ending: str, text: str) -> None:
        self.ending, self.text = ending, text

    def content(self, how: Layout) -> Iterator[Part]:
        yield f"The report is ready: {in_bytes(len(self.text.encode('utf-8', 'surrogatepass')))}."

    def plain(self, how: Layout) -> Any:
        return plain({"ending": self.ending, "text": self.text})


class ReportDownload(ScoringQuestion):
    """The report of some runs; texts of documents are left out."""

    name = "report"
    activity = "writing the report"
    csv = False
    least = 2
    ending = Text("html", "html, md, tex, json or csv")
    title = Text("", "the title; default: the names of the runs and the judgments")

    def refuse(self, bench: Bench) -> None:
        from cranfield.reports.writers import TEXT_ENDINGS

        super().refuse(bench)
        if self.ending not in TEXT_ENDINGS:
            raise ConventionError(f"expected a format of {', '.join(TEXT_ENDINGS)}, found {self.ending[:20]!r}")

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.commands.comparison import report
        from cranfield.reports.writers import render

        content = report(self.inputs(bench), title=self.title or None, texts=False, progress=tell).within(bench.folder)
        return RenderedReport(self.ending, render(content, self.ending).decode("utf-8", "surrogatepass"))

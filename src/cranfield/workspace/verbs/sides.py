"""Two runs on one topic, rank by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.errors import ConventionError, DataError
from cranfield.parameters import Text
from cranfield.workspace.verb import Scoring, shown

if TYPE_CHECKING:
    from cranfield.answer import Answer
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.run_files import RunFile
    from cranfield.workspace.verb import Tell


class SideBySide(Scoring):
    """The lists of two runs on one topic next to each other, and how each score came about, step by step."""

    name = "sides"
    told = "laying two lists side by side"
    csv = True
    one = Text(..., "the run on the left")  # type: ignore[arg-type]
    other = Text(..., "the run on the right")  # type: ignore[arg-type]
    topic = Text("", "the topic; the one on which they differ most unless it is named")

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        if len(self.measures) != 1:
            raise ConventionError(f"expected one measure, found {len(self.measures)}: {' '.join(self.measures)}")

    def files(self, bench: Bench) -> list[RunFile]:
        return [bench.run(self.one), bench.run(self.other)]

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.sides import side_by_side

        inputs = self.inputs(bench)
        known = inputs.judgments
        if self.topic and not isinstance(known, str) and self.topic not in known.topics:
            raise DataError(f"topic {self.topic!r:.60}: nothing of it is judged yet, so there is no score to explain")
        paths = [inputs.listed[run.name] for run in self.files(bench)]
        return side_by_side(known, paths[0], paths[1], self.measures[0], self.topic or None, **inputs.options())

    def html(self, bench: Bench, answer: Answer) -> str:
        from cranfield.sides import Sides

        assert isinstance(answer, Sides)
        return shown(answer.one) + shown(answer.other)

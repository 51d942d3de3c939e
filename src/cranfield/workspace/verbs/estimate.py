"""Scores from few labels of people and many of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.judge.models.drawn import rounds_that_drew
from cranfield.judge.models.estimating import PredictedScores
from cranfield.parameters import Text
from cranfield.report.charts import interval_chart
from cranfield.workspace.chosen import of_runs
from cranfield.workspace.verb import OfModel, figures, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.answer import Answer
    from cranfield.report.charts import Spec
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.verb import Tell


class Estimate(OfModel):
    """Scores and differences of runs with intervals, from the sample of a round and the labels of a model."""

    name = "estimate"
    told = "estimating scores from labels of people and a model"
    round = Text("", "the round that drew; the only one unless told")

    def depends(self, bench: Bench) -> dict[str, str]:
        drew = {f"round {each.name}": each.sample for each in rounds_that_drew(bench.log)}
        return of_runs(bench, self.files(bench)) | drew

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.workspace.estimating import estimate

        paths = [run.path for run in self.files(bench)]
        return estimate(bench.location, paths, self.measures, round=self.round, model=self.model, policy=self.policy)

    def html(self, bench: Bench, answer: Answer) -> str:
        assert isinstance(answer, PredictedScores)
        return shown(answer) + figures(list(_charts(answer)))


def _charts(answer: PredictedScores) -> Iterator[tuple[Spec, str]]:
    """The scores by each measure with their intervals."""
    for measure in dict.fromkeys(row.measure for row in answer.rows):
        rows = [(row.run, *row.both) for row in answer.rows if row.measure == measure and not row.other]
        known = [row for row in rows if row[2] == row[2]]
        if known:
            title = f"{measure}, estimated, with {answer.level:.0%} intervals"
            yield interval_chart(known, measure, title), "The table of runs holds the numbers."

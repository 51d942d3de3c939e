"""Questions about LLM judges: calibration against people, and prediction-powered estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.base.parameters import Text
from cranfield.base.results import Answer, Table, html
from cranfield.judging.llm.estimate import PredictedScores
from cranfield.judging.llm.label_sample import rounds_that_drew
from cranfield.judging.llm.usage import beside_labels
from cranfield.reports.charts import Chart, interval_chart
from cranfield.workbench.question import (
    PAGE,
    ModelQuestion,
    Tell,
    answer_html,
    details_html,
    figures_html,
    scrolling_table,
    verdict_html,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.inputs.workspace import Bench


class CalibrationQuestion(ModelQuestion):
    """How well the labels of an LLM judge agree with people's, their biases, and their effect on the order of runs."""

    name = "calibrate"
    activity = "comparing the labels of an LLM judge with people's"
    least = 0

    def depends(self, bench: Bench) -> dict[str, str]:
        more = {"relevant from": f"{bench.relevant_from:g}", "probes": str(beside_labels(bench.log))}
        return super().depends(bench) | more

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.commands.llm_calibration import calibrate

        paths = [run.path for run in self.files(bench)]
        rel = bench.relevant_from
        return calibrate(bench.location, paths, self.measures, model=self.model, policy=self.policy, rel=rel)

    def html(self, bench: Bench, answer: Answer) -> str:
        from cranfield.judging.llm.calibration import Calibration

        assert isinstance(answer, Calibration)
        every = details_html("All figures", _tables(answer, True))
        return verdict_html(*answer.findings()) + _tables(answer, False) + every


def _tables(answer: Answer, every: bool) -> str:
    _, *rest = answer.content(PAGE._replace(every=every))  # the first part is the verdict
    return "".join(scrolling_table(part) if isinstance(part, Table) else html([part]) for part in rest)


class EstimateQuestion(ModelQuestion):
    """Prediction-powered scores and differences of runs, from the random sample of a round and the labels of an LLM judge."""

    name = "estimate"
    activity = "estimating scores from labels of people and a model"
    round = Text("", "the round that drew a random sample; default: the only one")

    def depends(self, bench: Bench) -> dict[str, str]:
        drew = {f"round {each.name}": each.sample for each in rounds_that_drew(bench.log)}
        return super().depends(bench) | drew

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.commands.llm_calibration import estimate

        paths = [run.path for run in self.files(bench)]
        return estimate(bench.location, paths, self.measures, round=self.round, model=self.model, policy=self.policy)

    def html(self, bench: Bench, answer: Answer) -> str:
        assert isinstance(answer, PredictedScores)
        return answer_html(answer) + figures_html(list(_estimate_charts(answer)))


def _estimate_charts(answer: PredictedScores) -> Iterator[tuple[Chart, str]]:
    """One chart per measure: the scores with their intervals."""
    for measure in dict.fromkeys(row.measure for row in answer.rows):
        rows = [(row.run, *row.both) for row in answer.rows if row.measure == measure and not row.other]
        with_interval = [row for row in rows if row[2] == row[2]]
        if with_interval:
            title = f"{measure}, estimated, with {answer.level:.0%} intervals"
            yield interval_chart(with_interval, measure, title), "The table of runs holds the numbers."

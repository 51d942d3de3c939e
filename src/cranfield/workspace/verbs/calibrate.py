"""A model's labels held against people's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.answer import Table, html
from cranfield.judge.models.told import beside_labels
from cranfield.workspace.chosen import of_runs
from cranfield.workspace.verb import PAGE, OfModel, folded, shown_table, verdict_html

if TYPE_CHECKING:
    from cranfield.answer import Answer
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.verb import Tell


class Calibrate(OfModel):
    """How far a model's labels are people's, what biases them, and what they do to the order of runs."""

    name = "calibrate"
    told = "holding a model's labels against people's"
    least = 0

    def depends(self, bench: Bench) -> dict[str, str]:
        known = of_runs(bench, self.files(bench)) | {"relevant from": f"{bench.relevant_from:g}"}
        return known | {"probes": str(beside_labels(bench.log))}

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.workspace.calibrating import calibrate

        paths = [run.path for run in self.files(bench)]
        rel = bench.relevant_from
        return calibrate(bench.location, paths, self.measures, model=self.model, policy=self.policy, rel=rel)

    def html(self, bench: Bench, answer: Answer) -> str:
        from cranfield.judge.models.calibrating import Calibration

        assert isinstance(answer, Calibration)
        return verdict_html(*answer.findings()) + _tables(answer, False) + folded("All figures", _tables(answer, True))


def _tables(answer: Answer, every: bool) -> str:
    _, *rest = answer.content(PAGE._replace(every=every))  # what it begins with is the verdict
    return "".join(shown_table(part) if isinstance(part, Table) else html([part]) for part in rest)

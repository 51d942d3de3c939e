"""How far the assessors agree."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.errors import DataError
from cranfield.judge.agreeing import VIEWS, Agreements
from cranfield.judge.event import RELEVANCE
from cranfield.parameters import Choice, Text, shortened
from cranfield.report.charts import interval_chart, line_chart
from cranfield.workspace.chosen import of_runs
from cranfield.workspace.verb import OfRuns, Words, figures, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.answer import Answer
    from cranfield.report.charts import Spec
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.verb import Tell

RANKABLE = 3  # runs that have an order to speak of


class Agree(OfRuns):
    """Coefficients of agreement with intervals, by person and by grade; with runs, how each person's labels rank them."""

    name = "agree"
    told = "comparing the labels of people"
    least = 0
    measures = Words(("nDCG@10",), "the measures that rank runs by each person's labels")
    aspect = Text(RELEVANCE, "the aspect that was judged")
    round = Text("", "the round whose labels count; all unless one is named")
    by = Choice("", "what is looked at one by one", *VIEWS)

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        if self.round and self.round not in _rounds(bench):
            raise DataError(f"there is no round {shortened(self.round)!r}")

    def moves(self, bench: Bench) -> bool:
        return True

    def depends(self, bench: Bench) -> dict[str, str]:
        return of_runs(bench, self.files(bench)) | {"rounds": ",".join(_rounds(bench))}

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.workspace.judging import agree

        paths = [run.path for run in self.files(bench)]
        found = agree(
            [bench.location],
            runs=paths if len(paths) >= RANKABLE else [],
            measures=self.measures,
            aspect=self.aspect,
            round=self.round,
            view=self.by,
        )
        return replace(found, name=f"{bench.name}, round {self.round}" if self.round else bench.name)

    def html(self, bench: Bench, answer: Answer) -> str:
        assert isinstance(answer, Agreements)
        return shown(answer, every=True) + figures(list(_charts(answer)))


def _charts(answer: Agreements) -> Iterator[tuple[Spec, str]]:
    """The coefficients with their intervals, and each person's agreement with the others over time."""
    rows = [(one.coefficient, one.value, one.low, one.high) for one in answer.found if one.defined]
    if rows:
        title = f"Agreement, with {answer.found[0].level:.0%} intervals"
        yield interval_chart(rows, "coefficient", title, rule=0), "The table of coefficients holds the numbers."
    if answer.drift:
        series = {
            name: ([float(span.until) for span in spans], [span.agree for span in spans])
            for name, spans in answer.drift.items()
        }
        title = "Drift: each person's labels that are the same as another's, over time"
        chart = line_chart(series, "shared labels so far", "share the same", title, y_domain=(0, 1))
        yield chart, "The columns first half and second of the table of people hold the same, more coarsely."


def _rounds(bench: Bench) -> list[str]:
    from sqlalchemy import select

    from cranfield.store.tables import rounds

    with bench.database.reading() as connection:
        return list(connection.execute(select(rounds.c.name).order_by(rounds.c.name)).scalars())

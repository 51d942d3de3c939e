"""How far the assessors agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.judge.event import RELEVANCE
from cranfield.parameters import Text
from cranfield.workspace.chosen import of_runs
from cranfield.workspace.verb import OfRuns, Words

if TYPE_CHECKING:
    from cranfield.answer import Answer
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.verb import Tell


class Agree(OfRuns):
    """Coefficients of agreement with intervals, by person and by grade; with runs, how each person's labels rank them."""

    name = "agree"
    told = "comparing the labels of people"
    least = 0
    measures = Words(("nDCG@10",), "the measures that rank runs by each person's labels")
    aspect = Text(RELEVANCE, "the aspect that was judged")

    def moves(self, bench: Bench) -> bool:
        return True

    def depends(self, bench: Bench) -> dict[str, str]:
        return of_runs(bench, self.files(bench)) | {"rounds": ",".join(_rounds(bench))}

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.workspace.judging import agree

        paths = [run.path for run in self.files(bench)]
        return agree([bench.location], runs=paths, measures=self.measures, aspect=self.aspect)


def _rounds(bench: Bench) -> list[str]:
    from sqlalchemy import select

    from cranfield.store.tables import rounds

    with bench.database.reading() as connection:
        return list(connection.execute(select(rounds.c.name).order_by(rounds.c.name)).scalars())

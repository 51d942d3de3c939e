"""Whether the judgments can score a newcomer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.answer import Both, Table
from cranfield.errors import ConventionError
from cranfield.parameters import Whole
from cranfield.workspace.verb import PAGE, Names, Scoring, folded, shown, shown_table, verdict_html

if TYPE_CHECKING:
    from cranfield.answer import Answer
    from cranfield.pool.thin import Thin
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.run_files import RunFile
    from cranfield.workspace.verb import Tell


class Reuse(Scoring):
    """What runs lose when they are left out of the judgments, and how to read new runs that did not contribute."""

    name = "reuse"
    told = "leaving runs out in turn"
    new = Names("the newcomers, which did not contribute to the judgments")
    depth = Whole(100, "how deep the pool was", high=100_000)

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        if not self._contributing(bench):
            raise ConventionError("reuse needs a run that contributed to the judgments, beside the newcomers")

    def _contributing(self, bench: Bench) -> list[RunFile]:
        return [run for run in super().files(bench) if run.name not in self._new(bench)]

    def _new(self, bench: Bench) -> list[str]:
        return [bench.run(name).name for name in self.new]

    def files(self, bench: Bench) -> list[RunFile]:
        return [*self._contributing(bench), *(bench.run(name) for name in self.new)]

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from dataclasses import replace

        from cranfield.workspace.pooling import Depths, reuse

        inputs = replace(self.inputs(bench), runs=[run.name for run in self._contributing(bench)])
        answer, _ = reuse(inputs, Depths(self.depth), new=self._new(bench))
        return answer

    def html(self, bench: Bench, answer: Answer) -> str:
        from cranfield.pool.reuse import Reuse as Left
        from cranfield.pool.reuse import Strangers

        new, left = (answer.second, answer.first) if isinstance(answer, Both) else (None, answer)
        assert isinstance(left, Left)
        said = [left.verdict(left.measures[0])]
        if isinstance(new, Strangers):
            said = [*map(_answered, new.read), *said]
        tables = [] if new is None else [part for part in new.content(PAGE) if isinstance(part, Table)]
        return verdict_html(*said) + folded(
            "The numbers, in every reading", "".join(map(shown_table, tables)) + shown(left)
        )


def _answered(read: Thin) -> str:
    """Whether a run can be scored, and which number to read."""
    return f"{read.run}, {read.readable}: {read.advice(shell=False).removeprefix(f'{read.run}: ')}"

"""What changed from one version of the judgments to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.parameters import Flag, Text
from cranfield.workspace.chosen import Judged, basis, of_runs
from cranfield.workspace.verb import OfRuns, refuse_policy

if TYPE_CHECKING:
    from cranfield.answer import Answer
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.run_files import RunFile
    from cranfield.workspace.verb import Tell


class Diff(OfRuns):
    """The labels that changed from one frozen version to another, or to what stands now, and which verdicts with them."""

    name = "diff"
    told = "comparing judgments"
    least = 0
    a = Text(..., "the version before")  # type: ignore[arg-type]
    b = Text("", "the version after; what stands now unless told")
    policy = Text("", "which label stands now where people differ; by the policy of the version before unless told")
    scored = Flag("whether runs are scored by both", default=True)

    def refuse(self, bench: Bench) -> None:
        from cranfield.judge.versions import find_version

        super().refuse(bench)
        if self.policy:
            refuse_policy(self.policy)
        for name in filter(None, (self.a, self.b)):
            find_version(bench.log, name)

    def files(self, bench: Bench) -> list[RunFile]:
        return super().files(bench) if self.scored else []

    def moves(self, bench: Bench) -> bool:
        return not self.b

    def depends(self, bench: Bench) -> dict[str, str]:
        known = of_runs(bench, self.files(bench))
        for side, name in (("a", self.a), ("b", self.b)):
            found = basis(bench, Judged("log", name), self.policy)
            known |= {f"{side} {key}": value for key, value in found.items()}
        return known

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.judge.versions import find_version
        from cranfield.workspace.judging import diff

        paths = [run.path for run in self.files(bench)]
        policy = self.policy or find_version(bench.log, self.a).policy
        return diff(bench.location, self.a, self.b or None, runs=paths, measures=self.measures, policy=policy)

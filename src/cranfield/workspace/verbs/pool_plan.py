"""What a round will cost before it is begun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.errors import ConventionError
from cranfield.parameters import Real, Text, Whole
from cranfield.workspace.chosen import chosen, has_labels
from cranfield.workspace.verb import OfRuns

if TYPE_CHECKING:
    from cranfield.answer import Answer
    from cranfield.judge.plan import Asked
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.verb import Tell


class PoolPlan(OfRuns):
    """The size, the overlap and the hours of a round on the tops of runs; what is labelled already is left out."""

    name = "pool-plan"
    told = "pooling the tops of runs"
    strategy = Text("depth", "the order of judging; see cranfield pool --list")
    depth = Whole(100, "how many documents of each run are pooled", high=100_000)
    cap = Whole(0, "how many documents of each topic at the most; 0 for all", low=0)
    overlap = Whole(1, "how many people label each document", high=100)
    double = Real(0.0, "the share of documents that one more person labels", 0, 1)
    sample = Whole(0, "how many documents are drawn at random; 0 for all", low=0)
    seconds = Real(0.0, "a label takes; by the pace so far, or 60 where nobody has labelled, unless told", 0, 86_400)
    seed = Whole(0, "of the draws", low=0)

    def refuse(self, bench: Bench) -> None:
        from cranfield.pool.strategy import STRATEGIES

        super().refuse(bench)
        chosen = STRATEGIES.named(self.strategy)
        if chosen.reads and bench.collection is None:
            raise ConventionError(f"strategy {self.strategy} reads documents, and there is no collection yet")

    def moves(self, bench: Bench) -> bool:
        return True

    def depends(self, bench: Bench) -> dict[str, str]:
        from cranfield.workspace.hashes import mark_of

        qrels = bench.qrels
        return super().depends(bench) | ({} if qrels is None else {"qrels": repr(mark_of(qrels))})

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.answer import Both
        from cranfield.judge.planning import RoundPlan, pace
        from cranfield.workspace.pooling import Depths, statistics

        asked, judged, _ = self.asked(bench, tell)
        before = pace(bench.log)
        seconds = self.seconds or before or 60.0
        source = "as told" if self.seconds else "the median so far" if before else "a guess: nobody has labelled yet"
        plan = RoundPlan.of(asked, self.strategy, seconds, source, judged)
        return Both(plan, statistics(chosen(bench, self.files(bench)), Depths(self.depth), seconds), "pool")

    def asked(self, bench: Bench, tell: Tell | None = None) -> tuple[list[Asked], int, dict[str, list[str]]]:
        """The documents of the round, how many are left out because they have a label, and what a sample is drawn from."""
        from cranfield.judge.planning import frame_of, planned
        from cranfield.workspace.pooling import Depths, pool

        made = pool(
            chosen(bench, self.files(bench), rel=bench.relevant_from),
            Depths(self.depth),
            judgments=bench.location if has_labels(bench) else None,
            collection=bench.collection if self._reads() else None,
            strategy=self.strategy,
            seed=self.seed,
            progress=tell,
            cap=self.cap or None,
        )
        asked = planned(
            made.items, overlap=self.overlap, double=self.double, sample=self.sample or None, seed=self.seed
        )
        return asked, made.session.judged, frame_of(made.items) if self.sample else {}

    def _reads(self) -> bool:
        from cranfield.pool.strategy import STRATEGIES

        return STRATEGIES.named(self.strategy).reads

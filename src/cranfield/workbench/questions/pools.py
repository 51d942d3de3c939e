"""Questions about pools: the cost of a round, and whether the judgments can score a new run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.base.errors import ConventionError
from cranfield.base.parameters import Flag, Real, Text, Whole
from cranfield.base.results import Answer, Both, Table
from cranfield.base.text_layout import counted
from cranfield.commands.pooling import Depths, pool, reuse, statistics
from cranfield.inputs.disk_caches import mark_of
from cranfield.inputs.selection import has_labels, inputs_of, judgment_source, qrels_of
from cranfield.judging.adaptive_choice import AdaptivePlan, starts_of
from cranfield.judging.round_plan import RoundItem, RoundPlan, count_judged, frame_of, plan_items
from cranfield.judging.round_recall import RoundRecall, round_recall
from cranfield.judging.round_status import label_pace
from cranfield.pooling.reuse import OutsideRuns, PoolReuse, Thin
from cranfield.pooling.strategy import STRATEGIES
from cranfield.reports.charts import Chart, line_chart
from cranfield.workbench.question import (
    PAGE,
    Names,
    RunsQuestion,
    ScoringQuestion,
    Tell,
    WorkbenchQuestion,
    answer_html,
    details_html,
    figures_html,
    scrolling_table,
    verdict_html,
)

if TYPE_CHECKING:
    from cranfield.base.qrels import Qrels
    from cranfield.formats.run_files import RunFile
    from cranfield.inputs.workspace import Bench


ALL = 10**9  # documents of a topic, if there is no maximum


class PoolPlanQuestion(RunsQuestion):
    """The size, the overlap and the hours of a round on the top documents of runs, without judged documents."""

    name = "pool-plan"
    activity = "pooling the top documents of runs"
    strategy = Text("depth", "the pooling strategy; see cranfield pool --list")
    depth = Whole(100, "the depth of the pool: documents per run and topic", high=100_000)
    cap = Whole(0, "the maximum number of documents per topic; 0: all", low=0)
    overlap = Whole(1, "the number of people who label each document", high=100)
    double = Real(0.0, "the share of documents that one more person labels", 0, 1)
    sample = Whole(0, "the size of a random sample; 0: all documents", low=0)
    seconds = Real(0.0, "seconds per label; default: the pace so far, or 60 if nobody has labelled", 0, 86_400)
    seed = Whole(0, "the seed of the random numbers", low=0)
    again = Flag("whether to ask again for documents that are judged, by people or by the collection")

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        strategy = STRATEGIES.named(self.strategy)
        if strategy.reads and bench.collection is None:
            raise ConventionError(f"strategy {self.strategy} reads documents, and there is no collection yet")
        if strategy.adaptive and (self.sample or self.double):
            raise ConventionError(
                f"strategy {self.strategy} chooses documents by the labels so far: leave out the random sample and the share "
                "with one more label"
            )

    def depends_on_labels(self, bench: Bench) -> bool:
        return True

    def depends(self, bench: Bench) -> dict[str, str]:
        qrels = bench.qrels
        return super().depends(bench) | ({} if qrels is None else {"qrels": repr(mark_of(qrels))})

    def run(self, bench: Bench, tell: Tell) -> Answer:
        documents, judged, _ = self.documents(bench, tell)
        seconds, source = (self.seconds, "as given") if self.seconds else label_pace(bench.log)
        plan = RoundPlan.of(documents, self.strategy, seconds, source, judged)
        adaptive = STRATEGIES.named(self.strategy).adaptive
        shown = AdaptivePlan(plan, starts_of(documents)) if adaptive else plan
        about = statistics(inputs_of(bench, self.files(bench)), Depths(self.depth))
        return Both(shown, replace(about, seconds=None), "pool")  # the hours are those of the plan

    def subjects(self, bench: Bench) -> list[tuple[str, str]]:
        """Topic and document of everything in the pool, with or without a label."""
        files = inputs_of(bench, self.files(bench), rel=bench.relevant_from)
        how = {"strategy": self.strategy, "seed": self.seed, "cap": self.cap or None}
        return [(each.topic, each.document) for each in pool(files, Depths(self.depth), **how).items]

    def documents(self, bench: Bench, tell: Tell | None = None) -> tuple[list[RoundItem], int, dict[str, list[str]]]:
        """The documents of the round, the number left out because they are judged, and the frame of the sample.

        For a strategy that adapts to labels these are the documents that it may ask for, in its order without labels.
        """
        strategy = STRATEGIES.named(self.strategy)
        size = {"next" if strategy.adaptive else "cap": self.cap or (ALL if strategy.adaptive else None)}
        judged = self.judged(bench)
        result = pool(
            inputs_of(bench, self.files(bench), judged, rel=bench.relevant_from),
            Depths(self.depth),
            texts=bench.features(tell) if strategy.reads else None,
            strategy=self.strategy,
            seed=self.seed,
            progress=tell,
            **size,
        )
        documents = plan_items(
            result.items, overlap=self.overlap, double=self.double, sample=self.sample or None, seed=self.seed
        )
        left_out = 0 if judged is None else count_judged(result.rankings.candidates, judged.to_dict())
        return documents, left_out, frame_of(result.items) if self.sample else {}

    def judged(self, bench: Bench) -> Qrels | None:
        """The judgments of documents that are left out: the current ones; None if they are asked again, or there are none.

        A strategy that samples draws from the whole pool: otherwise its sample would be biased.
        """
        nothing = bench.qrels is None and not has_labels(bench)
        if self.again or nothing or STRATEGIES.named(self.strategy).samples:
            return None
        return qrels_of(bench, judgment_source(bench))


class RoundRecallQuestion(WorkbenchQuestion):
    """The relevant documents that a round has found, and how many may be left, by topic."""

    name = "recall"
    activity = "estimating what is left to find"
    round = Text(..., "the round")  # type: ignore[arg-type]
    topic = Text("", "the topic; default: all")
    target = Real(0.95, "the recall to reach", 0, 1)

    def refuse(self, bench: Bench) -> None:
        with bench.log.reading() as transaction:
            transaction.find_round(self.round)

    def depends_on_labels(self, bench: Bench) -> bool:
        return True

    def depends(self, bench: Bench) -> dict[str, str]:
        return {}

    def run(self, bench: Bench, tell: Tell) -> Answer:
        return round_recall(bench.log, self.round, topic=self.topic, target=self.target)

    def html(self, bench: Bench, answer: Answer) -> str:
        assert isinstance(answer, RoundRecall)
        figures = [(recall_chart(answer), "The table holds the numbers.")] if answer.judged else []
        first, *others = answer.verdict()
        table = next(
            each for each in answer.content(PAGE) if isinstance(each, Table)
        )  # the page itself shows the models
        return verdict_html(first, *others) + figures_html(figures) + scrolling_table(table)


def recall_chart(recall: RoundRecall) -> Chart:
    """Recall by labelled document: expected, and its lower bound, where most is left."""
    lefts = {"expected recall": recall.expected_left, "lower bound (pool stop)": recall.most_left}
    series = {
        name: zip(*((n, found / max(1.0, recall.relevant + left)) for n, found in recall.curve), strict=True)
        for name, left in lefts.items()
    }
    where = f"topic {recall.topic}" if recall.topic else counted(len(recall.bounded), "topic")
    return line_chart(
        {name: (next(lines), next(lines)) for name, lines in series.items()},
        "labelled documents",
        "recall",
        "Recall by label",
        subtitle=[f"round {recall.round}, {where}: {recall.judged:,} labels, {recall.relevant:,} relevant"],
        y_domain=(0, 1),
        points=False,
    )


class ReuseQuestion(ScoringQuestion):
    """What runs lose when they are left out of the pool, and how to read new runs that did not contribute."""

    name = "reuse"
    activity = "leaving runs out in turn"
    new = Names("the new runs, which did not contribute to the judgments")
    depth = Whole(100, "the depth of the pool", high=100_000)

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        if not self._contributing(bench):
            raise ConventionError("reuse needs a run that contributed to the judgments, besides the new runs")

    def _contributing(self, bench: Bench) -> list[RunFile]:
        return [run for run in super().files(bench) if run.name not in self._new(bench)]

    def _new(self, bench: Bench) -> list[str]:
        return [bench.run(name).name for name in self.new]

    def files(self, bench: Bench) -> list[RunFile]:
        return [*self._contributing(bench), *(bench.run(name) for name in self.new)]

    def run(self, bench: Bench, tell: Tell) -> Answer:
        inputs = replace(self.inputs(bench), runs=[run.name for run in self._contributing(bench)])
        answer, _ = reuse(inputs, Depths(self.depth), new=self._new(bench))
        return answer

    def html(self, bench: Bench, answer: Answer) -> str:
        new, left = (answer.second, answer.first) if isinstance(answer, Both) else (None, answer)
        assert isinstance(left, PoolReuse)
        sentences = [left.verdict(left.measures[0])]
        if isinstance(new, OutsideRuns):
            sentences = [*map(_readability, new.read), *sentences]
        tables = [] if new is None else [part for part in new.content(PAGE) if isinstance(part, Table)]
        return verdict_html(*sentences) + details_html(
            "The numbers, in every reading", "".join(map(scrolling_table, tables)) + answer_html(left)
        )


def _readability(read: Thin) -> str:
    """A sentence on whether a run can be scored, and which number to read."""
    return f"{read.run}, {read.readable}: {read.advice(shell=False).removeprefix(f'{read.run}: ')}"

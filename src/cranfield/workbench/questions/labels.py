"""Questions about labels: inter-annotator agreement, changes between versions, LLM judges, and estimates with their labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import DataError
from cranfield.base.parameters import Choice, Flag, Text, shortened
from cranfield.base.results import Answer, Table, html
from cranfield.inputs.selection import JudgmentSource, basis
from cranfield.judging.agreement import VIEWS, Agreements
from cranfield.judging.event import RELEVANCE
from cranfield.judging.llm.estimate import PredictedScores
from cranfield.judging.llm.label_sample import rounds_that_drew
from cranfield.judging.llm.usage import beside_labels
from cranfield.judging.version_cache import summary_of
from cranfield.judging.versions import thaw
from cranfield.reports.charts import Chart, interval_chart, line_chart
from cranfield.workbench.question import (
    PAGE,
    ModelQuestion,
    RunsQuestion,
    Tell,
    Words,
    WorkbenchQuestion,
    answer_html,
    details_html,
    figures_html,
    refuse_policy,
    scrolling_table,
    verdict_html,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.base.results import Layout, Part
    from cranfield.formats.run_files import RunFile
    from cranfield.inputs.workspace import Bench
    from cranfield.judging.version_cache import VersionSummary


RANKABLE = 3  # runs needed for a rank correlation


class AgreementQuestion(RunsQuestion):
    """Inter-annotator agreement with intervals, by person and by grade; with runs, how each person's labels rank them."""

    name = "agree"
    activity = "comparing the labels of people"
    least = 0
    measures = Words("the measures that rank runs by the labels of each person", ["nDCG@10"])
    aspect = Text(RELEVANCE, "the aspect that was judged")
    round = Text("", "the round whose labels count; default: all")
    by = Choice("", "what to show one by one", *VIEWS)

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        if self.round and self.round not in _rounds(bench):
            raise DataError(f"there is no round {shortened(self.round)!r}")

    def depends_on_labels(self, bench: Bench) -> bool:
        return True

    def depends(self, bench: Bench) -> dict[str, str]:
        return super().depends(bench) | {"rounds": ",".join(_rounds(bench))}

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.commands.judging import agree

        paths = [run.path for run in self.files(bench)]
        agreements = agree(
            [bench.location],
            runs=paths if len(paths) >= RANKABLE else [],
            measures=self.measures,
            aspect=self.aspect,
            round=self.round,
            view=self.by,
        )
        return replace(agreements, name=f"{bench.name}, round {self.round}" if self.round else bench.name)

    def html(self, bench: Bench, answer: Answer) -> str:
        assert isinstance(answer, Agreements)
        return answer_html(answer, every=True) + figures_html(list(_charts(answer)))


def _charts(answer: Agreements) -> Iterator[tuple[Chart, str]]:
    """A chart of the coefficients with intervals, and one of each person's agreement with others over time."""
    rows = [(one.coefficient, one.value, one.low, one.high) for one in answer.coefficients if one.defined]
    if rows:
        title = f"Agreement, with {answer.coefficients[0].level:.0%} intervals"
        yield interval_chart(rows, "coefficient", title, rule=0), "The table of coefficients holds the numbers."
    if answer.drift:
        series = {
            name: ([float(span.until) for span in spans], [span.agree for span in spans])
            for name, spans in answer.drift.items()
        }
        title = "Drift: share of each person's labels that equal another person's, over time"
        chart = line_chart(series, "shared labels so far", "share of equal labels", title, y_domain=(0, 1))
        yield chart, "The table of people has the same for two halves, in the columns first half and second half."


def _rounds(bench: Bench) -> list[str]:
    with bench.log.reading() as transaction:
        return sorted(plan.name for plan, _ in transaction.all_rounds())


@dataclass(frozen=True, repr=False)
class CheckedVersion(Answer):
    """A version whose qrels fit their hash."""

    name: str
    summary: VersionSummary

    def content(self, how: Layout) -> Iterator[Part]:
        yield f"{self.name}: {sum(self.summary.grades.values()):,} judgments fit the hash"
        yield Table(["grade", "documents"], [[grade, f"{count:,}"] for grade, count in self.summary.grades.items()])

    def plain(self, how: Layout) -> dict[str, Any]:
        return {"name": self.name, "topics": self.summary.topics, "grades": self.summary.grades}


class VersionQuestion(WorkbenchQuestion):
    """Whether the qrels of a version fit their hash: they are computed from the log, and cached."""

    name = "version"
    activity = "computing the judgments again"
    version = Text(..., "the version")  # type: ignore[arg-type]

    def depends(self, bench: Bench) -> dict[str, str]:
        return basis(bench, JudgmentSource("log", self.version), "")

    def run(self, bench: Bench, tell: Tell) -> Answer:
        return CheckedVersion(self.version, summary_of(thaw(bench.log, self.version)))


class VersionDiffQuestion(RunsQuestion):
    """The labels that changed from one frozen version to another, or to the current labels, and the verdicts that changed."""

    name = "diff"
    activity = "comparing judgments"
    least = 0
    a = Text(..., "the version before")  # type: ignore[arg-type]
    b = Text("", "the version after; default: the current labels")
    policy = Text("", "the current label that counts where people differ; default: the policy of the version before")
    scored = Flag("whether to score runs by both versions", default=True)

    def refuse(self, bench: Bench) -> None:
        from cranfield.judging.versions import find_version

        super().refuse(bench)
        if self.policy:
            refuse_policy(self.policy)
        for name in filter(None, (self.a, self.b)):
            find_version(bench.log, name)

    def files(self, bench: Bench) -> list[RunFile]:
        return super().files(bench) if self.scored else []

    def depends_on_labels(self, bench: Bench) -> bool:
        return not self.b

    def depends(self, bench: Bench) -> dict[str, str]:
        hashes = super().depends(bench)
        for side, name in (("a", self.a), ("b", self.b)):
            sources = basis(bench, JudgmentSource("log", name), self.policy)
            hashes |= {f"{side} {key}": value for key, value in sources.items()}
        return hashes

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.commands.judging import diff
        from cranfield.judging.versions import find_version

        paths = [run.path for run in self.files(bench)]
        policy = self.policy or find_version(bench.log, self.a).policy
        return diff(bench.location, self.a, self.b or None, runs=paths, measures=self.measures, policy=policy)


class CalibrationQuestion(ModelQuestion):
    """How well the labels of an LLM judge agree with people's, their biases, and their effect on the order of runs."""

    name = "calibrate"
    activity = "comparing the labels of an LLM judge with people's"
    least = 0

    def depends(self, bench: Bench) -> dict[str, str]:
        more = {"relevant from": f"{bench.relevant_from:g}", "probes": str(beside_labels(bench.log))}
        return super().depends(bench) | more

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.commands.llm_judges import calibrate

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
        from cranfield.commands.llm_judges import estimate

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

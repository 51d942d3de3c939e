"""Two runs side by side."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import Text, Whole
from cranfield.base.results import Answer, Both, Cell, Layout, Part, Table, html_list, html_text, plain
from cranfield.base.text_layout import counted
from cranfield.workbench.question import (
    DIGITS,
    PAGE,
    PairQuestion,
    ScoringQuestion,
    Tell,
    answer_html,
    details_html,
    figures_html,
    scrolling_table,
    section_html,
    verdict_html,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cranfield.inputs.selection import WorkspaceInputs
    from cranfield.inputs.workspace import Bench
    from cranfield.reports.report_content import Report


class TopicScores(Answer):
    """The scores of two runs by topic, the largest gain first; `to` gives the page of a topic."""

    def __init__(self, report: Report, to: Callable[[str], str]) -> None:
        self.report = report
        self.to = to

    def rows(self) -> list[tuple[str, str, float, float, float]]:
        """Topic, query, the scores of both runs, and their difference."""
        report, measure = self.report, self.report.measures[0]
        one, other = report.shown_pair()
        topics = report.comparison.scores.topics
        columns = (report.comparison.values(run, measure).tolist() for run in (one, other))
        rows = [(t, report.queries.get(t, ""), a, b, b - a) for t, a, b in zip(topics, *columns, strict=True)]
        return sorted(rows, key=lambda row: -row[4] if row[4] == row[4] else float("inf"))

    def content(self, how: Layout) -> Iterator[Part]:
        one, other = self.report.shown_pair()
        rows = [
            [Cell(topic, to=self.to(topic)), Cell(query), how.cell(a), how.cell(b), how.cell(gain, signed=True)]
            for topic, query, a, b, gain in self.rows()
        ]
        caption = f"{self.report.measures[0]} by topic"
        keys = [{"topic": topic} for topic, *_ in self.rows()]
        yield Table(["topic", "query", one, other, "difference"], rows, 1, 2, caption=caption, keys=keys)

    def plain(self, how: Layout) -> Any:
        names = "topic", "query", "one", "other", "difference"
        return plain([dict(zip(names, row, strict=True)) for row in self.rows()], how.digits)


class CompareQuestion(PairQuestion, ScoringQuestion):
    """Whether one run is better than another: verdict, differences by topic, scatter plot, curves and costs."""

    name = "compare"
    activity = "comparing runs"
    least = 2
    column = Text("", "a column of the topics, to compare on some topics only")
    value = Text("", "the value in that column")
    seed = Whole(0, "the seed of the random numbers", low=0)

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        if self.one == self.other:
            raise ConventionError("compare needs two different runs")
        if self.runs:
            raise ConventionError("compare takes one and other, not runs")
        self.topics(bench)

    def depends(self, bench: Bench) -> dict[str, str]:
        from cranfield.formats.run_stats import stats_path

        costs = [stats_path(run.path) for run in self.files(bench)]
        return super().depends(bench) | {
            f"cost {n}": bench.hashes.of(path) for n, path in enumerate(costs) if os.path.isfile(path)
        }

    def topics(self, bench: Bench) -> list[str] | None:
        """The topics of the category; None: all topics."""
        if not self.column:
            return None
        table = bench.topics()
        if table is None:
            raise DataError(f"column {self.column!r}: the topics have no columns besides their ids")
        topics = [topic for topic, value in table.column(self.column).items() if value == self.value]
        if not topics:
            raise DataError(f"no topic has {self.value!r:.60} in column {self.column!r:.60}")
        return topics

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.commands.comparison import report

        inputs: WorkspaceInputs = self.inputs(bench, only=self.topics(bench))
        content = report(inputs, texts=False, digits=DIGITS, progress=tell, seed=self.seed)
        return Both(content.comparison, TopicScores(content, self._topic), "topics")

    def _topic(self, topic: str) -> str:
        return self.link("/topic", topic=topic, one=self.one, other=self.other, order="difference")

    def html(self, bench: Bench, answer: Answer) -> str:
        from cranfield.comparison.comparison_text import made_by, table_of_two, verdict
        from cranfield.reports import result_charts as charts
        from cranfield.reports.html import curves_html, efficiency_html, limits_html

        assert isinstance(answer, Both)
        assert isinstance(answer.second, TopicScores)
        report = answer.second.report
        text = "The table of topics holds the numbers."
        plots = [(charts.figure(report, name), text) for name in ("differences", "scatter")]
        method = details_html("How this was made", html_list(made_by(report.comparison)))
        parts = [
            verdict_html(*verdict(report.comparison)),
            f'<p class="lead">{html_text(self._scope(bench, report))}</p>',
            f'<div class="pair">{figures_html(plots)}</div>',
            section_html("By each measure", scrolling_table(table_of_two(report.comparison, PAGE))),
            section_html("Precision and recall", curves_html(report)),
            section_html("Cost", efficiency_html(report)),
            section_html("Topic by topic", answer_html(answer.second), "topics"),
            section_html("What limits this", limits_html(report) + method, "limits"),
        ]
        return "".join(parts)

    def _scope(self, bench: Bench, report: Report) -> str:
        """The topics and judgments of the comparison, as a sentence."""
        scores = report.comparison.scores
        topics, basis = counted(len(scores.topics), "topic"), scores.judgments_in_words()
        some = f" with {self.value!r} as {self.column}" if self.column else ""
        return f"{topics}{some}{basis.removeprefix(topics)}, {self.which(bench).in_words}"

    def to_csv(self, answer: Answer) -> str | None:
        assert isinstance(answer, Both)
        return answer.second.to_csv(spreadsheet=True)

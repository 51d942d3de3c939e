"""Two runs side by side."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Both, Cell, Layout, Table, html_list, html_text, plain
from cranfield.columns import counted
from cranfield.errors import ConventionError, DataError
from cranfield.parameters import Text, Whole
from cranfield.workspace.verb import (
    DIGITS,
    PAGE,
    Scoring,
    figures,
    folded,
    section,
    shown,
    shown_table,
    verdict_html,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cranfield.answer import Part
    from cranfield.report.reporting import Report
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.chosen import Chosen
    from cranfield.workspace.run_files import RunFile
    from cranfield.workspace.verb import Tell


class TopicScores(Answer):
    """The scores of two runs topic by topic, the largest gain first; `to` is the page of a topic."""

    def __init__(self, report: Report, to: Callable[[str], str]) -> None:
        self.report = report
        self.to = to

    def rows(self) -> list[tuple[str, str, float, float, float]]:
        """Topic, query, the score of the one and of the other, and the difference."""
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


class Compare(Scoring):
    """Whether one run is better than another: a sentence, the differences by topic, scatter, curves, and what each costs."""

    name = "compare"
    told = "comparing runs"
    least = 2
    one = Text(..., "the run that is there")  # type: ignore[arg-type]
    other = Text(..., "the run that it is held against")  # type: ignore[arg-type]
    column = Text("", "a column of the topics, to look at some of them only")
    value = Text("", "what must stand in that column")
    seed = Whole(0, "of the draws", low=0)

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        if self.one == self.other:
            raise ConventionError("compare needs two different runs")
        if self.runs:
            raise ConventionError("compare takes one and other, not runs")
        self.topics(bench)

    def files(self, bench: Bench) -> list[RunFile]:
        return [bench.run(self.one), bench.run(self.other)]

    def depends(self, bench: Bench) -> dict[str, str]:
        from cranfield.formats.run_stats import stats_path

        costs = [stats_path(run.path) for run in self.files(bench)]
        return super().depends(bench) | {
            f"cost {n}": bench.hashes.of(path) for n, path in enumerate(costs) if os.path.isfile(path)
        }

    def topics(self, bench: Bench) -> list[str] | None:
        """The topics of the category; None for all."""
        if not self.column:
            return None
        table = bench.topics()
        if table is None:
            raise DataError(f"column {self.column!r}: nothing is known of the topics but their ids")
        found = [topic for topic, value in table.column(self.column).items() if value == self.value]
        if not found:
            raise DataError(f"no topic has {self.value!r:.60} in column {self.column!r:.60}")
        return found

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.workspace.comparing import report

        inputs: Chosen = self.inputs(bench, only=self.topics(bench))
        made = report(inputs, texts=False, digits=DIGITS, progress=tell, seed=self.seed)
        return Both(made.comparison, TopicScores(made, self._topic), "topics")

    def _topic(self, topic: str) -> str:
        return self.link("/topic", topic=topic, one=self.one, other=self.other, order="difference")

    def html(self, bench: Bench, answer: Answer) -> str:
        from cranfield.compare.content import made_by, table_of_two
        from cranfield.compare.verdict import verdict
        from cranfield.report import figures as charts
        from cranfield.report.html import curves_html, efficiency_html, limits_html

        assert isinstance(answer, Both)
        assert isinstance(answer.second, TopicScores)
        report = answer.second.report
        said = "The table of topics holds the numbers."
        drawn = [(charts.figure(report, name), said) for name in ("differences", "scatter")]
        made = folded("How this was made", html_list(made_by(report.comparison)))
        parts = [
            verdict_html(*verdict(report.comparison)),
            f'<p class="lead">{html_text(self._looked_at(bench, report))}</p>',
            f'<div class="pair">{figures(drawn)}</div>',
            section("By each measure", shown_table(table_of_two(report.comparison, PAGE))),
            section("Precision and recall", curves_html(report)),
            section("Cost", efficiency_html(report)),
            section("Topic by topic", shown(answer.second), "topics"),
            section("What limits this", limits_html(report) + made, "limits"),
        ]
        return "".join(parts)

    def _looked_at(self, bench: Bench, report: Report) -> str:
        """Which topics and judgments it is of."""
        topics = counted(len(report.comparison.scores.topics), "topic")
        some = f" with {self.value!r} as {self.column}" if self.column else ""
        return f"{topics}{some}, {self.which(bench).in_words}"

    def to_csv(self, answer: Answer) -> str | None:
        assert isinstance(answer, Both)
        return answer.second.to_csv(spreadsheet=True)

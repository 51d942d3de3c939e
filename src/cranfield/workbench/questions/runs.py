"""Questions about runs: comparison of two, their lists for one topic, the leaderboard, curves, and reports to download."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import Choice, Real, Text, Whole
from cranfield.base.results import Answer, Both, Cell, Layout, Part, Table, html_list, html_text, plain
from cranfield.base.text_layout import counted, in_bytes
from cranfield.comparison.leaderboard import Leaderboard
from cranfield.evaluation.curves import KINDS
from cranfield.evaluation.side_by_side import RankedEntry, TopicComparison, side_by_side
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

    from cranfield.base.run import Run
    from cranfield.inputs.selection import WorkspaceInputs
    from cranfield.inputs.workspace import Bench
    from cranfield.reports.report_content import Report


MOST = 7  # runs that have a colour of their own


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
        from cranfield.formats.run_files import stats_path

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


class SideBySideQuestion(PairQuestion, ScoringQuestion):
    """The lists of two runs on one topic side by side, with the explanation of each score."""

    name = "sides"
    activity = "comparing two lists"
    topic = Text("", "the topic; default: the one on which the runs differ most")

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        if len(self.measures) != 1:
            raise ConventionError(f"expected one measure, found {len(self.measures)}: {' '.join(self.measures)}")

    def run(self, bench: Bench, tell: Tell) -> Answer:
        inputs = self.inputs(bench)
        qrels = inputs.judgments
        if self.topic and not isinstance(qrels, str) and self.topic not in qrels.topics:
            raise DataError(f"topic {self.topic!r:.60}: nothing of it is judged yet, so there is no score to explain")
        paths = [inputs.paths[run.name] for run in self.files(bench)]
        return side_by_side(qrels, paths[0], paths[1], self.measures[0], self.topic or None, **inputs.options())

    def html(self, bench: Bench, answer: Answer) -> str:
        assert isinstance(answer, TopicComparison)
        return answer_html(answer.one) + answer_html(answer.other)


@dataclass(frozen=True)
class UnjudgedLists(Answer):
    """The top documents of two runs for a topic without judgments: lists as in `side_by_side`, without scores."""

    topic: str
    runs: tuple[str, str]
    lists: tuple[list[RankedEntry], list[RankedEntry]]

    def content(self, how: Layout) -> Iterator[Part]:
        rows = [
            [str(place + 1), *(entries[place].document if place < len(entries) else "" for entries in self.lists)]
            for place in range(max(map(len, self.lists)))
        ]
        yield Table(["rank", *self.runs], rows, 1, 3, caption=f"topic {self.topic}, not judged yet")

    def plain(self, how: Layout) -> Any:
        lists = [
            {"run": run, "value": None, "documents": [entry.to_dict() for entry in entries]}
            for run, entries in zip(self.runs, self.lists, strict=True)
        ]
        return plain({"topic": self.topic, "difference": None, "lists": lists, "explanations": []})


class ListsQuestion(PairQuestion):
    """The top documents of two runs for one topic, judged or not."""

    name = "lists"
    activity = "reading two lists"
    topic = Text(..., "the topic")  # type: ignore[arg-type]
    depth = Whole(10, "the number of ranks to show", high=1000)

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.formats import read_run

        names = [run.name for run in self.files(bench)]
        rankings = [self._ranking(read_run(run.path)) for run in self.files(bench)]
        if not any(rankings):
            raise DataError(f"topic {self.topic!r:.60}: neither run returns anything, and nothing of it is judged")
        one, other = ({document: place for place, document in enumerate(each, 1)} for each in rankings)
        lists = self._entries(rankings[0], other), self._entries(rankings[1], one)
        return UnjudgedLists(self.topic, (names[0], names[1]), lists)

    def _ranking(self, run: Run) -> list[str]:
        return [document for document, _ in run.ranking(self.topic)] if self.topic in run else []

    def _entries(self, ranking: list[str], elsewhere: dict[str, int]) -> list[RankedEntry]:
        top = enumerate(ranking[: self.depth], 1)
        return [RankedEntry(rank, document, "", None, None, elsewhere.get(document)) for rank, document in top]


class LeaderboardQuestion(ScoringQuestion):
    """Runs ranked by a measure, with rank intervals, tiers, and the share of judged documents in the top k."""

    name = "leaderboard"
    activity = "scoring and ranking runs"
    sort = Text("", "the measure that ranks; default: the first")
    k = Whole(10, "the cut-off k of judged@k", high=10_000)
    rank_intervals = Choice("simultaneous", "the kind of rank intervals", "marginal", "bootstrap")
    alpha = Real(0.05, "the significance level of the tiers", 0, 1, open=True)
    level = Real(0.95, "the confidence level of the rank intervals", 0, 1, open=True)
    seed = Whole(0, "the seed of the random numbers", low=0)

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.commands.comparison import leaderboard

        how = {name: getattr(self, name) for name in ("k", "rank_intervals", "alpha", "level", "seed")}
        return leaderboard(self.inputs(bench), sort=self.sort or None, progress=tell, **how)

    def html(self, bench: Bench, answer: Answer) -> str:
        from cranfield.reports.result_charts import charts_of

        assert isinstance(answer, Leaderboard)
        tiers = answer.tiers_in_words()
        charts = [(chart, "The table holds the numbers.") for chart in charts_of(answer)]
        verdict = verdict_html(answer.verdict(), *[tiers] * bool(tiers))
        return verdict + scrolling_table(self._table(answer)) + figures_html(charts)

    def _table(self, board: Leaderboard) -> Table:
        """The table of runs, with links to the comparison with the leader and to the topics."""
        table = board.table(PAGE)
        leader, *others = [row.run for row in board.rows]
        rows = []
        for row, cells in zip(board.rows, table.cells(), strict=True):
            first = leader if row.run != leader else "".join(others[:1])
            pair = {"one": first, "other": row.run}
            if others:
                cells[0] = cells[0]._replace(to=self.link("/compare", **pair))
                cells.append(Cell("by topic", to=self.link("/topic", **pair, order="difference")))
            rows.append(cells)
        title = f"Runs by {board.scores.weighted_name(board.sort)}"
        head = [*table.head, *["look"] * bool(others)]
        return table._replace(head=head, rows=rows, title=title, notes=[f"Ranked {board.how()}."])


class CurvesQuestion(ScoringQuestion):
    """Precision, recall or gain by rank, for one topic or as the mean over all topics."""

    name = "curves"
    activity = "computing curves"
    kind = Choice("pr11", "the kind of curve", *(kind for kind in KINDS if kind != "pr11"))
    topic = Text("", "one topic; default: the mean over all")

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        if len(self.runs) > MOST:
            raise ConventionError(f"curves: name at most {MOST} runs, found {len(self.runs)}")

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from dataclasses import replace

        from cranfield.commands.evaluation import curve

        inputs = self.inputs(bench)
        named = replace(inputs, runs=inputs.runs[:MOST], measures=())
        return curve(named, self.kind, topic=self.topic or None)


class RenderedReport(Answer):
    """A report in one of its formats."""

    def __init__(self, ending: str, text: str) -> None:
        self.ending, self.text = ending, text

    def content(self, how: Layout) -> Iterator[Part]:
        yield f"The report is ready: {in_bytes(len(self.text.encode('utf-8', 'surrogatepass')))}."

    def plain(self, how: Layout) -> Any:
        return plain({"ending": self.ending, "text": self.text})


class ReportDownload(ScoringQuestion):
    """The report of some runs; texts of documents are left out."""

    name = "report"
    activity = "writing the report"
    csv = False
    least = 2
    ending = Text("html", "html, md, tex, json or csv")
    title = Text("", "the title; default: the names of the runs and the judgments")
    clicks = Text("", "the click model for a section on the workspace's clicks; default: no such section")

    def refuse(self, bench: Bench) -> None:
        from cranfield.experiments.clicks.model import CLICK_MODELS
        from cranfield.reports.writers import TEXT_ENDINGS, WITH_CLICKS

        super().refuse(bench)
        if self.ending not in TEXT_ENDINGS:
            raise ConventionError(f"expected a format of {', '.join(TEXT_ENDINGS)}, found {self.ending[:20]!r}")
        if self.clicks:
            CLICK_MODELS.named(self.clicks)
            bench.event_log()
            if self.ending not in WITH_CLICKS:
                raise ConventionError(f"a report as {', '.join(WITH_CLICKS)} shows clicks, not one as {self.ending}")

    def depends(self, bench: Bench) -> dict[str, str]:
        return super().depends(bench) | ({"events": bench.event_state()} if self.clicks else {})

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.commands.comparison import report
        from cranfield.reports.writers import render

        clicks: dict[str, Any] = {"clicks": bench.event_log(), "click_model": self.clicks} if self.clicks else {}
        content = report(self.inputs(bench), title=self.title or None, texts=False, progress=tell, **clicks)
        content = content.within(bench.folder)
        return RenderedReport(self.ending, render(content, self.ending).decode("utf-8", "surrogatepass"))

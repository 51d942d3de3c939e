"""Questions about all runs: the leaderboard, and curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.base.errors import ConventionError
from cranfield.base.parameters import Choice, Real, Text, Whole
from cranfield.base.results import Answer, Cell, Table
from cranfield.comparison.leaderboard import Leaderboard
from cranfield.evaluation.curves import KINDS
from cranfield.workbench.question import PAGE, ScoringQuestion, Tell, figures_html, scrolling_table, verdict_html

if TYPE_CHECKING:
    from cranfield.inputs.workspace import Bench


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
        from cranfield.reports.notebook import charts_of

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


MOST = 7  # runs that have a colour of their own


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

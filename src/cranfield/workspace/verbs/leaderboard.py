"""The runs, best first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.answer import Cell
from cranfield.parameters import Choice, Real, Text, Whole
from cranfield.workspace.verb import PAGE, Scoring, figures, shown_table, verdict_html

if TYPE_CHECKING:
    from cranfield.answer import Answer, Table
    from cranfield.compare.leaderboard import Leaderboard as Board
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.verb import Tell


class Leaderboard(Scoring):
    """Runs ranked by a measure, with rank intervals, tiers and how much of the first k is judged."""

    name = "leaderboard"
    told = "scoring and ranking runs"
    sort = Text("", "the measure that ranks; the first unless told")
    k = Whole(10, "how many ranks judged@k looks at", high=10_000)
    rank_intervals = Choice("simultaneous", "what they hold for", "marginal", "bootstrap")
    alpha = Real(0.05, "the level of the tiers", 0, 1, open=True)
    level = Real(0.95, "that of the rank intervals", 0, 1, open=True)
    seed = Whole(0, "of the draws", low=0)

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.workspace.comparing import leaderboard

        how = {name: getattr(self, name) for name in ("k", "rank_intervals", "alpha", "level", "seed")}
        return leaderboard(self.inputs(bench), sort=self.sort or None, progress=tell, **how)

    def html(self, bench: Bench, answer: Answer) -> str:
        from cranfield.compare.leaderboard import Leaderboard as Board
        from cranfield.report.notebook import specifications

        assert isinstance(answer, Board)
        tiers = answer.tiers_in_words()
        drawn = [(spec, "The table holds the numbers.") for spec in specifications(answer)]
        said = verdict_html(answer.verdict(), *[tiers] * bool(tiers))
        return said + shown_table(self._table(answer)) + figures(drawn)

    def _table(self, board: Board) -> Table:
        """The board, from each run a way to the comparison with the leader and to its topics."""
        table = board.table(PAGE)
        leader, *others = [row.run for row in board.rows]
        rows = []
        for row, cells in zip(board.rows, table.cells(), strict=True):
            pair = (
                {"one": leader, "other": row.run}
                if row.run != leader
                else {"one": "".join(others[:1]), "other": leader}
            )
            if others:
                cells[0] = cells[0]._replace(to=self.link("/compare", **pair))
                cells.append(Cell("by topic", to=self.link("/topic", **pair, order="difference")))
            rows.append(cells)
        title = f"Runs by {board.scores.measures_by(board.sort)}"
        head = [*table.head, *["look"] * bool(others)]
        return table._replace(head=head, rows=rows, title=title, notes=[f"Ranked {board.how()}."])

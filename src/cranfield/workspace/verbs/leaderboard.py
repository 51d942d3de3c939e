"""The runs, best first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.parameters import Choice, Real, Text, Whole
from cranfield.workspace.verb import Scoring

if TYPE_CHECKING:
    from cranfield.answer import Answer
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

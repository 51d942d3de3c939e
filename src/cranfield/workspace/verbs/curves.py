"""Curves down the ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.curves import KINDS
from cranfield.errors import ConventionError
from cranfield.parameters import Choice, Text
from cranfield.workspace.verb import Scoring

if TYPE_CHECKING:
    from cranfield.answer import Answer
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.verb import Tell

MOST = 7  # runs that colours tell apart


class Curves(Scoring):
    """Precision, recall or gain down the ranking, of one topic or as the mean over all."""

    name = "curves"
    told = "following runs down their rankings"
    kind = Choice("pr11", "which curve", *(kind for kind in KINDS if kind != "pr11"))
    topic = Text("", "one topic; the mean over all unless told")

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        if len(self.runs) > MOST:
            raise ConventionError(f"curves: name {MOST} runs at the most, found {len(self.runs)}")

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from dataclasses import replace

        from cranfield.workspace.scoring import curve

        inputs = self.inputs(bench)
        named = replace(inputs, runs=inputs.runs[:MOST], measures=())
        return curve(named, self.kind, topic=self.topic or None)

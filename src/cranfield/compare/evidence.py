"""What was asked of which systems, and what the differences say: all that cautions and words are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.compare.settings import Settings
from cranfield.compare.systems import Systems
from cranfield.errors import DataError
from cranfield.stats.correction import CORRECTIONS

if TYPE_CHECKING:
    from cranfield.compare.pair import Pair
    from cranfield.kernels.table import Floats


@dataclass(frozen=True, kw_only=True)
class Evidence(Systems, Settings):
    """The systems and the settings of a comparison with every pair that was tested."""

    pairs: list[Pair]
    family: int  # how many p-values the correction covers
    many: dict[str, dict[str, Any]]  # measure → test → what it says of all systems at once
    baselines: list[str]
    judged: dict[str, dict[str, float]]  # Judged@k → run → the share that was judged

    def pair(self, one: str, other: str, measure: str | None = None) -> Pair:
        """The pair of two runs, as `one` and `other`, by a measure."""
        fitting = [p for p in self.pairs if (p.one, p.other) == (one, other) and measure in (None, p.measure)]
        if len(fitting) != 1:
            known = "; ".join(f"{p.one}, {p.other}, {p.measure}" for p in self.pairs[:6])
            raise DataError(f"no single pair {one}, {other}, {measure}; there are {known}")
        return fitting[0]

    def significant(self, pair: Pair) -> bool:
        """Whether the corrected p-value is at most alpha."""
        return pair.corrected <= self.alpha

    def best_first(self) -> list[Pair]:
        """The pairs of the best systems first, measure by measure; against baselines, the best of the others first."""

        def place(pair: Pair) -> tuple[float, ...]:
            turn = 1.0 if self.lower_is_better(pair.measure) else -1.0
            means = [turn * mean if mean == mean else np.inf for mean in (pair.mean_one, pair.mean_other)]
            rank = (means[1],) if self.baselines else (min(means), max(means))
            return (order[pair.measure], *rank)

        order = {measure: m for m, measure in enumerate(self.scores.measures)}
        return sorted(self.pairs, key=place)

    def differences(self, pair: Pair) -> tuple[list[str], Floats]:
        """The topics of a pair and other − one for each, in the order of the scores."""
        difference = self.values(pair.other, pair.measure) - self.values(pair.one, pair.measure)
        kept = np.flatnonzero(~np.isnan(difference))
        return [self.scores.topics[t] for t in kept.tolist()], difference[kept]

    @property
    def named_correction(self) -> str:
        """The correction as a sentence names it; empty where nothing was corrected."""
        return CORRECTIONS[self.correction].short if self.family > 1 and not self.decided_at_once else ""

    def sentence(self, pair: Pair) -> str:
        """A pair in plain words."""
        return pair.sentence(self.named_correction, self.alpha, self.lower_is_better(pair.measure))

    def sentences(self) -> list[str]:
        """Every pair in plain words."""
        return [self.sentence(pair) for pair in self.pairs]

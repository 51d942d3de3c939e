"""Simulated result pages whose examination is known: in A/B tests, in random order, with swaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cranfield.experiments.clicks.ranked_pages import RankedPages
from cranfield.experiments.clicks.result_pages import QueryDocuments, ResultPages


@dataclass(frozen=True)
class RankedWorld:
    """Queries with documents, as many as ranks; units who search; and how chance decides ranks.

    Users click an examined document with a probability between .05 and .8 that depends on query and document, times a
    factor of the unit, so that the clicks of a unit depend on each other. With `alpha` and `beta`, that is an affine model.
    """

    randomised: str  # "variants", "order" or "swaps"
    queries: int = 40
    ranks: int = 10
    units: int = 1_000
    searches: int = 5  # of each unit
    beta: tuple[float, ...] = ()  # of each rank; none without trust bias

    @property
    def examination(self) -> np.ndarray:
        return np.arange(1, self.ranks + 1) ** -0.8

    def draw(self, seed: int) -> RankedPages:
        rng = np.random.default_rng(seed)
        shape = (self.queries, self.ranks)
        attraction = rng.uniform(0.05, 0.8, shape)
        rankings = np.argsort(rng.random((2, *shape)), axis=2)
        arm = rng.integers(2, size=self.units)
        factor = np.exp(rng.normal(0, 0.3, self.units))
        unit = np.repeat(np.arange(self.units), self.searches)
        query = rng.integers(self.queries, size=len(unit))
        pages, swap, swapped = len(unit), None, None
        shown = rankings[arm[unit] if self.randomised == "variants" else 0, query]
        if self.randomised == "order":
            shown = np.argsort(rng.random((pages, self.ranks)), axis=1)
        elif self.randomised == "swaps":
            swap = np.column_stack([np.ones(pages, int), rng.integers(2, self.ranks + 1, pages)])
            swapped = rng.random(pages) < 0.3
            some, here, there = np.flatnonzero(swapped), *(swap[swapped] - 1).T
            shown[some, here], shown[some, there] = shown[some, there], shown[some, here]
        chance = self.examination * attraction[query[:, None], shown] * (factor / factor.max())[unit][:, None]
        clicked = rng.random(chance.shape) < chance + (np.array(self.beta) if self.beta else 0)
        pair = query[:, None] * self.ranks + shown
        names = QueryDocuments(
            tuple(f"q{n}" for n in range(self.queries)),
            tuple(f"d{n}" for n in range(self.ranks)),
            *(each.ravel() for each in np.indices(shape)),
        )
        by_variant = self.randomised == "variants"
        result = ResultPages(
            names,
            np.arange(pages + 1) * self.ranks,
            pair.ravel().astype(np.int32),
            clicked.ravel(),
            unit.astype(np.int32),
            arm[unit].astype(np.int32) if by_variant else None,
            ("a", "b") if by_variant else (),
        )
        return RankedPages(result, np.full(pages, self.randomised == "order"), swap, swapped)

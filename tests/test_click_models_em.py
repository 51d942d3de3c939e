"""Click models fitted by expectation and maximisation: PBM, UBM, CCM, DBN.

The oracles are every hidden state of short lists one by one, PyClick's parameters, and simulated users whose parameters are
known.
"""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from click_enumeration import World, chain_worlds, click_chances, expected, position_worlds, total, with_clicks
from cranfield.base.errors import ConventionError, DataError
from cranfield.experiments.clicks.click_chain import CCM, ClickChainExpectation, FittedCCM
from cranfield.experiments.clicks.dynamic_bayesian import DBN, DynamicBayesianExpectation, FittedDBN
from cranfield.experiments.clicks.em import FittedScan
from cranfield.experiments.clicks.position_based import PBM, UBM, ExaminationCells, FittedPBM, FittedUBM
from cranfield.experiments.clicks.result_pages import ClickCounts, ResultPages
from cranfield.experiments.clicks.tails import Heads, Tails
from hypotheses import examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODELS = [PBM, UBM, CCM, DBN]
LISTS_OF_4 = list(product((0, 1), repeat=4))
NONE = np.zeros(0)


def one_page(clicks: tuple[int, ...], documents: str = "abcd") -> ResultPages:
    """A page with these clicks; the pairs have the numbers of the ranks, from 0."""
    return ResultPages.of([("q", list(documents[: len(clicks)]), clicks)])


def true_model(model: Any, pages: ResultPages, seed: int, low: float = 0.05, high: float = 0.95) -> FittedScan:
    """A model with random parameters: attractiveness between `low` and `high`, the others natural."""
    rng = np.random.default_rng(seed)
    attractiveness, satisfaction = rng.uniform(low, high, len(pages.pairs)), rng.uniform(0.2, 0.8, len(pages.pairs))
    ranks = int(pages.lengths.max())
    known = model, pages.pairs, attractiveness, NONE, 0.0
    if isinstance(model, PBM):
        return FittedPBM(*known, np.sort(rng.uniform(0.1, 1, ranks))[::-1])
    if isinstance(model, UBM):
        return FittedUBM(*known, rng.uniform(0.1, 0.9, (ranks, ranks)))
    if isinstance(model, CCM):
        return FittedCCM(*known, rng.uniform(0.3, 0.9, 3))
    return FittedDBN(*known, satisfaction, rng.uniform(0.3, 0.9, 1))


def worlds_of(fitted: Any, size: int) -> list[World]:
    """All hidden states of a user of this model on a page of the first pairs."""
    attractiveness = fitted.attractiveness[:size].tolist()
    if isinstance(fitted, FittedPBM):
        return position_worlds(attractiveness, lambda rank, _: fitted.examination[rank - 1])
    if isinstance(fitted, FittedUBM):
        return position_worlds(attractiveness, lambda rank, previous: fitted.examination[rank - 1, previous])
    if isinstance(fitted, FittedCCM):
        skip, poor, good = fitted.continuation.tolist()
        return chain_worlds(
            attractiveness,
            attractiveness,
            lambda _, clicked, satisfied: (good if satisfied else poor) if clicked else skip,
        )
    continuation = float(fitted.continuation[0])
    return chain_worlds(
        attractiveness, fitted.satisfied[:size].tolist(), lambda _, clicked, satisfied: 0 if satisfied else continuation
    )


# the hidden states, one by one


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_click_probabilities_against_every_hidden_state(model, size):
    page = one_page((0,) * size)
    fitted = true_model(model(), page, seed=size)
    worlds = worlds_of(fitted, size)
    assert total(worlds) == pytest.approx(1)
    np.testing.assert_allclose(fitted.marginal(page), click_chances(worlds), rtol=1e-12)
    for clicks in product((0, 1), repeat=size):
        conditional = fitted.conditional(page.with_clicks(np.array(clicks, bool)))
        np.testing.assert_allclose(conditional, click_chances(worlds, clicks), rtol=1e-12)


@pytest.mark.parametrize("clicks", LISTS_OF_4)
def test_the_posteriors_of_pbm_against_every_hidden_state(clicks):
    page = one_page(clicks)
    fitted = true_model(PBM(), page, seed=3)
    counts = ClickCounts.of(page)
    state = ExaminationCells.of(counts, counts.rank - 1, 4).expect(fitted.attractiveness, fitted.examination)
    worlds = with_clicks(worlds_of(fitted, 4), clicks)
    assert state.log_likelihood == pytest.approx(np.log(total(worlds)), rel=1e-12)
    for rank in range(4):
        assert state.successes[0][rank] == pytest.approx(expected(worlds, lambda w: w.attracted[rank]), rel=1e-12)
        assert state.successes[1][rank] == pytest.approx(expected(worlds, lambda w: w.examined[rank]), rel=1e-12)
        assert state.examined[rank] == state.successes[1][rank]
        assert state.trials[0][rank] == state.trials[1][rank] == 1


@pytest.mark.parametrize("clicks", LISTS_OF_4)
def test_the_posteriors_of_ubm_against_every_hidden_state(clicks):
    page = one_page(clicks)
    fitted = true_model(UBM(), page, seed=4)
    counts = ClickCounts.of(page)
    cells = ExaminationCells.of(counts, (counts.rank - 1) * 4 + counts.previous, 16)
    state = cells.expect(fitted.attractiveness, fitted.examination.ravel())
    worlds = with_clicks(worlds_of(fitted, 4), clicks)
    assert state.log_likelihood == pytest.approx(np.log(total(worlds)), rel=1e-12)
    examination, trials = state.successes[1].reshape(4, 4), state.trials[1].reshape(4, 4)
    for rank, previous in enumerate(page.previous.tolist()):
        assert state.successes[0][rank] == pytest.approx(expected(worlds, lambda w: w.attracted[rank]), rel=1e-12)
        assert examination[rank, previous] == pytest.approx(expected(worlds, lambda w: w.examined[rank]), rel=1e-12)
        assert trials[rank].sum() == trials[rank, previous] == 1


@pytest.mark.parametrize("clicks", LISTS_OF_4)
def test_the_posteriors_of_dbn_against_every_hidden_state(clicks):
    page = one_page(clicks)
    fitted = true_model(DBN(), page, seed=5)
    expectation = DynamicBayesianExpectation(Heads.of(page), Tails.of(page))
    state = expectation.expect(fitted.attractiveness, fitted.satisfied, fitted.continuation)
    worlds = with_clicks(worlds_of(fitted, 4), clicks)
    assert state.log_likelihood == pytest.approx(np.log(total(worlds)), rel=1e-12)
    for rank in range(4):
        assert state.trials[0][rank] == pytest.approx(expected(worlds, lambda w: w.examined[rank]), rel=1e-12)
        satisfied = expected(worlds, lambda w: w.satisfied[rank]) if clicks[rank] and rank < 3 else 0
        assert state.successes[1][rank] == pytest.approx(satisfied, rel=1e-12)
        assert state.trials[1][rank] == (clicks[rank] and rank < 3)
    free = [expected(worlds, lambda w: w.examined[r] and not (w.clicks[r] and w.satisfied[r])) for r in range(3)]
    went_on = [expected(worlds, lambda w: w.examined[r + 1]) for r in range(3)]
    assert state.trials[2][0] == pytest.approx(sum(free), rel=1e-12)
    assert state.successes[2][0] == pytest.approx(sum(went_on), rel=1e-12)


@pytest.mark.parametrize("clicks", LISTS_OF_4)
def test_the_posteriors_of_ccm_against_every_hidden_state(clicks):
    page = one_page(clicks)
    fitted = true_model(CCM(), page, seed=6)
    state = ClickChainExpectation(Heads.of(page), Tails.of(page)).expect(fitted.attractiveness, fitted.continuation)
    worlds = with_clicks(worlds_of(fitted, 4), clicks)
    assert state.log_likelihood == pytest.approx(np.log(total(worlds)), rel=1e-12)
    for rank in range(4):
        assert state.examined[rank] == pytest.approx(expected(worlds, lambda w: w.examined[rank]), rel=1e-12)
        good = expected(worlds, lambda w: w.satisfied[rank]) if clicks[rank] and rank < 3 else 0
        assert state.successes[0][rank] == pytest.approx(clicks[rank] + good, rel=1e-12)
        assert state.trials[0][rank] == pytest.approx(
            state.examined[rank] + (clicks[rank] if rank < 3 else 0), rel=1e-12
        )
    kinds: list[Callable[[World, int], bool]] = [
        lambda w, r: not w.clicks[r],
        lambda w, r: w.clicks[r] and not w.satisfied[r],
        lambda w, r: w.clicks[r] and w.satisfied[r],
    ]
    for place, kind in enumerate(kinds):
        chances = sum(expected(worlds, lambda w: w.examined[r] and kind(w, r)) for r in range(3))
        went_on = sum(expected(worlds, lambda w: w.examined[r + 1] and kind(w, r)) for r in range(3))
        assert state.trials[1][place] == pytest.approx(chances, rel=1e-12)
        assert state.successes[1][place] == pytest.approx(went_on, rel=1e-12)

"""DBN: a user walks down the page until a click satisfies or patience ends.

Expectation is exact: what is hidden lies in the tail of a page (`chains`), except for the satisfaction of the last click. The
last click of a page that has no row below says nothing about satisfaction, and is not counted as a trial of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cranfield.experiments.clicks.chains import FittedChain, Heads, Tails
from cranfield.experiments.clicks.em import Expectations, log_sum, maximise, ratio, sums
from cranfield.experiments.clicks.model import FittedByEM, refuse_single_clicks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.result_pages import ResultPages


class DBN(FittedByEM):
    """Dynamic Bayesian network: users walk down until a click satisfies them or they give up."""

    name = "DBN"
    aliases = ("dynamic-bayesian",)
    formula = (
        "P(click | examined) = attractiveness(query, document);"
        " P(next examined | examined) = continuation, times 1 − satisfaction(query, document) after a click"
    )
    reference = "Chapelle & Zhang (2009)"
    reads_pages = True
    from_the_top = True

    def fit(self, data: ResultPages) -> FittedDBN:
        expectation = DynamicBayesianExpectation(Heads.of(data), Tails.of(data))
        refuse_single_clicks(expectation.heads.passed_clicks)
        start = np.full(len(data.pairs), self.start)
        parameters, objective, change, examined = maximise(
            self, (start, start, np.full(1, self.start)), expectation.expect
        )
        attractiveness, satisfaction, continuation = parameters
        return FittedDBN(
            self, data.pairs, attractiveness, objective, change, satisfaction, continuation, examined=examined
        )


@dataclass(frozen=True, eq=False)
class DynamicBayesianExpectation:
    """Computes what DBN's hidden states are expected to be."""

    heads: Heads
    tails: Tails

    def expect(self, attractiveness: Floats, satisfaction: Floats, continuation: Floats) -> Expectations:
        """Attraction of examined rows, satisfaction of clicks, and continuation of users who are not satisfied."""
        heads, tails, goes_on = self.heads, self.tails, float(continuation[0])
        silence = tails.silence(attractiveness, goes_on)
        head, clicked = tails.head[tails.clicked], tails.clicked
        satisfied, unsatisfied = satisfaction[head], 1 - satisfaction[head]
        silent = silence[tails.first]  # a page without clicks begins with its first row examined
        enters = unsatisfied * goes_on * silent[clicked]
        tail_chance = silent.copy()
        tail_chance[clicked] = satisfied + unsatisfied * (1 - goes_on) + enters
        first = np.ones(len(silent))
        first[clicked] = ratio(enters, tail_chance[clicked])
        was_satisfied = ratio(satisfied, tail_chance[clicked])

        examined = tails.examined(silence, goes_on, first)
        went_on, could_go_on = tails.steps(examined)
        passed = heads.passed_skips + heads.passed_clicks.sum()
        views = heads.views + tails.by_pair(examined)
        skips = heads.views - heads.clicks
        return Expectations(
            log_sum(heads.clicks, attractiveness)
            + log_sum(skips, 1 - attractiveness)
            + log_sum(heads.passed_clicks, 1 - satisfaction)
            + log_sum(passed, continuation)
            + log_sum(1.0, tail_chance),
            (
                heads.clicks,
                sums(head, was_satisfied, tails.pairs),
                np.array([passed + first[clicked].sum() + went_on]),
            ),
            (
                views,
                heads.passed_clicks + sums(head, np.ones(len(head)), tails.pairs),
                np.array([passed + (1 - was_satisfied).sum() + could_go_on]),
            ),
            views,
        )


@dataclass(frozen=True, eq=False)
class FittedDBN(FittedChain):
    """DBN with its parameters."""

    satisfied: Floats  # the satisfaction of each pair
    continuation: Floats

    @property
    def satisfaction(self) -> Floats:
        return self.satisfied

    def parameters(self) -> Mapping[str, Floats]:
        return {"continuation": self.continuation}

    @property
    def after_skip(self) -> float:
        return float(self.continuation[0])

    @property
    def after_click(self) -> Floats:
        return self.continuation * (1 - self.satisfied)

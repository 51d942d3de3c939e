"""CCM: a user walks down the page and goes on with a probability that depends on the relevance of what was clicked.

Guo et al. (2009) give each document a posterior of its relevance, integrate over it, and set the continuation by hand from
counts. Here relevance is one number per pair, as in the survey of Chuklin, Markov & de Rijke (2015): it is the probability
of a click, and again the probability that the click satisfies. All parameters are estimated together by EM.
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


class CCM(FittedByEM):
    """Click chain model: users walk down and go on less or more often after a relevant click."""

    name = "CCM"
    aliases = ("click-chain",)
    formula = (
        "P(click | examined) = a, the attractiveness of (query, document); P(next examined | examined) ="
        " continuation after a skip, or (1 − a) · continuation after a poor click + a · continuation after a good click"
    )
    reference = "Guo, Liu, Kannan, Minka, Taylor, Wang & Faloutsos (2009); Chuklin, Markov & de Rijke (2015)"
    reads_pages = True
    from_the_top = True

    def fit(self, data: ResultPages) -> FittedCCM:
        expectation = ClickChainExpectation(Heads.of(data), Tails.of(data))
        refuse_single_clicks(expectation.heads.passed_clicks)
        start = np.full(len(data.pairs), self.start), np.full(3, self.start)
        (attractiveness, continuation), objective, change, examined = maximise(self, start, expectation.expect)
        return FittedCCM(self, data.pairs, attractiveness, objective, change, continuation, examined=examined)


def after_clicks(attractiveness: Floats, continuation: Floats) -> tuple[Floats, Floats]:
    """The probabilities that a click was poor and the user went on, and that it was good and the user went on."""
    return (1 - attractiveness) * continuation[1], attractiveness * continuation[2]


@dataclass(frozen=True, eq=False)
class ClickChainExpectation:
    """Computes what CCM's hidden states are expected to be."""

    heads: Heads
    tails: Tails

    def expect(self, attractiveness: Floats, continuation: Floats) -> Expectations:
        """Attraction of examined rows and relevance of clicks together; continuation after skips, poor and good clicks."""
        heads, tails, goes_on = self.heads, self.tails, float(continuation[0])
        silence = tails.silence(attractiveness, goes_on)
        head, clicked = tails.head[tails.clicked], tails.clicked
        silent = silence[tails.first]

        # the last click: poor or good, and whether the user went on
        poor_on, good_on = (each * silent[clicked] for each in after_clicks(attractiveness[head], continuation))
        poor = (1 - attractiveness[head]) * (1 - continuation[1]) + poor_on
        good = attractiveness[head] * (1 - continuation[2]) + good_on
        tail_chance = silent.copy()
        tail_chance[clicked] = poor + good
        first = np.ones(len(silent))
        poor_on, good_on, good = (ratio(each, poor + good) for each in (poor_on, good_on, good))
        first[clicked] = poor_on + good_on

        # clicks above the last one: the user went on
        passed_poor, passed_good = after_clicks(attractiveness, continuation)
        passed = passed_poor + passed_good
        were_good = heads.passed_clicks * ratio(passed_good, passed)
        were_poor = heads.passed_clicks - were_good

        examined = tails.examined(silence, goes_on, first)
        went_on, could_go_on = tails.steps(examined)
        views = heads.views + tails.by_pair(examined)
        skips = heads.views - heads.clicks
        return Expectations(
            log_sum(heads.clicks, attractiveness)
            + log_sum(skips, 1 - attractiveness)
            + log_sum(heads.passed_clicks, passed)
            + log_sum(heads.passed_skips, continuation[:1])
            + log_sum(1.0, tail_chance),
            (
                heads.clicks + were_good + sums(head, good, tails.pairs),
                np.array(
                    [heads.passed_skips + went_on, were_poor.sum() + poor_on.sum(), were_good.sum() + good_on.sum()]
                ),
            ),
            (
                views + heads.passed_clicks + sums(head, np.ones(len(head)), tails.pairs),
                np.array(
                    [heads.passed_skips + could_go_on, were_poor.sum() + (1 - good).sum(), were_good.sum() + good.sum()]
                ),
            ),
            views,
        )


@dataclass(frozen=True, eq=False)
class FittedCCM(FittedChain):
    """CCM with its parameters: the continuation after a skip, a poor click and a good click."""

    continuation: Floats

    def parameters(self) -> Mapping[str, Floats]:
        after = ("a skip", "a poor click", "a good click")
        return {f"continuation after {each}": self.continuation[place : place + 1] for place, each in enumerate(after)}

    @property
    def after_skip(self) -> float:
        return float(self.continuation[0])

    @property
    def after_click(self) -> Floats:
        poor, good = after_clicks(self.attractiveness, self.continuation)
        return poor + good

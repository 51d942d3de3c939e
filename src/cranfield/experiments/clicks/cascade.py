"""Cascade models: users read from the top, click what attracts them, and after a click stop or read on.

CM stops after the first click, DCM reads on with the probability of the rank, SDBN unless the document satisfied. All are
fitted by their published counts, in which a user stopped at the last click. For DCM and SDBN these counts are not the maximum
of the likelihood: users who read on without another click count as stopped, so attractiveness and satisfaction come out too
high. `exact` fits both by EM, which weighs the documents below the last click by the probability that users read on.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import ConventionError
from cranfield.base.parameters import Choice, Flag
from cranfield.experiments.clicks.click_through import NOTHING
from cranfield.experiments.clicks.em import (
    Expectations,
    FittedScan,
    Maximum,
    PseudoCounts,
    by_rank,
    log_sum,
    maximise,
    ratio,
)
from cranfield.experiments.clicks.model import ClickModel, FittedByEM, refuse_single_clicks
from cranfield.experiments.clicks.result_pages import AFTER, BEFORE, NO_CLICK, ClickCounts, ResultPages, as_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.result_pages import Flags, Numbers

EXAMINED, UNEXAMINED = "examined", "unexamined"


def no_click_parameter() -> Choice:
    """The parameter that says how a page without a click counts."""
    return Choice(EXAMINED, "whether a page without a click was examined, all of it or nothing", UNEXAMINED)


class CM(ClickModel):
    """Cascade model: users read down to the first document that attracts them, click on it and stop.

    It gives a second click on a page no probability, so its log-likelihood is -inf on logs that have any.

    >>> fitted = CM().fit(ResultPages.of([("q", ["a", "b"], [1, 0]), ("q", ["a", "b"], [0, 1])]))
    >>> fitted.attractiveness.round(4).tolist()
    [0.5, 0.6667]
    """

    name = "CM"
    aliases = ("cascade",)
    from_the_top = True
    formula = "attractiveness = first clicks / views at or above the first click"
    reference = (
        "Craswell, Zoeter, Taylor and Ramsey, An Experimental Comparison of Click Position-Bias Models, WSDM 2008"
    )
    no_click = no_click_parameter()

    def fit(self, data: ClickCounts | ResultPages) -> FittedCM:
        counts = as_counts(data)
        examined = counts.previous == 0
        if self.no_click == UNEXAMINED:
            examined &= counts.place != NO_CLICK
        views, clicks = counts.by(counts.pair, len(counts.pairs), examined)
        attractiveness = PseudoCounts.of(self).mode(clicks, views, np.full(len(views), 0.5))
        return FittedCM(self, counts.pairs, attractiveness, NOTHING, 0.0, examined=views)


class _ReadingOn(FittedByEM):
    """The common part of DCM and SDBN: after a click, users read on or stop, by a key of the click."""

    from_the_top = True
    no_click = no_click_parameter()
    exact = Flag("fit by EM, to the maximum of the likelihood, instead of by the published counts")

    @property
    def needs_pages(self) -> bool:
        return self.exact

    def fit(self, data: ClickCounts | ResultPages) -> FittedCascade:
        counts = as_counts(data)
        refuse_single_clicks(counts.clicks[counts.place == BEFORE])
        if not self.exact:
            return self._fit_counts(counts)
        if not isinstance(data, ResultPages):
            raise ConventionError(f"{self}: exact needs the pages, as what was shown below the last click matters")
        start = np.full(len(counts.pairs), self.start), np.full(self._size(counts), self.start)
        return self._fitted(counts, maximise(self, start, self.tails(data).expect))

    def tails(self, pages: ResultPages) -> ClickTails:
        """The certain counts of the pages, and the documents below each last click, for EM."""
        counts = ClickCounts.of(pages)
        skip_unclicked = self.no_click == UNEXAMINED
        return ClickTails.of(pages, counts, self._keys(pages), self._size(counts), skip_unclicked, self._stops())

    def _fit_counts(self, counts: ClickCounts) -> FittedCascade:
        prior, size = PseudoCounts.of(self), self._size(counts)
        examined = counts.place != AFTER
        if self.no_click == UNEXAMINED:
            examined &= counts.place != NO_CLICK
        views, clicks = counts.by(counts.pair, len(counts.pairs), examined)
        attractiveness = prior.mode(clicks, views, np.full(len(views), 0.5))
        key = self._key_of_counts(counts)
        every, not_last = counts.by(key, size)[1], counts.by(key, size, counts.place == BEFORE)[1]
        after_click = prior.mode(every - not_last if self._stops() else not_last, every, np.full(size, 0.5))
        return self._fitted(counts, Maximum((attractiveness, after_click), NOTHING, 0.0, views))

    @abstractmethod
    def _stops(self) -> bool:
        """Whether the parameter after a click is the probability to stop; if not, to read on."""

    @abstractmethod
    def _keys(self, pages: ResultPages) -> Numbers:
        """The key of each row: where its parameter after a click is."""

    @abstractmethod
    def _key_of_counts(self, counts: ClickCounts) -> Numbers:
        """The same for counts."""

    @abstractmethod
    def _size(self, counts: ClickCounts) -> int:
        """The number of keys."""

    @abstractmethod
    def _fitted(self, counts: ClickCounts, maximum: Maximum) -> FittedCascade:
        """The fitted model."""


class DCM(_ReadingOn):
    """Dependent click model: users read from the top, and after a click read on with a probability of its rank.

    >>> fitted = DCM().fit(ResultPages.of([("q", ["a", "b"], [1, 0]), ("q", ["a", "b"], [1, 1])]))
    >>> fitted.attractiveness.round(4).tolist(), fitted.continuation.round(4).tolist()
    ([0.75, 0.6667], [0.5, 0.3333])
    """

    name = "DCM"
    aliases = ("dependent-click",)
    formula = (
        "attractiveness = clicks / views at or above the last click; "
        "continuation = clicks at the rank that are not the last / clicks at the rank"
    )
    reference = "Guo, Liu and Wang, Efficient Multiple-Click Models in Web Search, WSDM 2009"

    def _stops(self) -> bool:
        return False

    def _keys(self, pages: ResultPages) -> Numbers:
        return pages.rank - 1

    def _key_of_counts(self, counts: ClickCounts) -> Numbers:
        return counts.rank - 1

    def _size(self, counts: ClickCounts) -> int:
        return int(counts.rank.max(initial=1))

    def _fitted(self, counts: ClickCounts, maximum: Maximum) -> FittedDCM:
        attractiveness, continuation = maximum.parameters
        what = (attractiveness, maximum.objective, maximum.change, continuation)
        return FittedDCM(self, counts.pairs, *what, examined=maximum.examined)


class SDBN(_ReadingOn):
    """Simplified dynamic Bayesian network: users read from the top until a document that they clicked satisfies them.

    >>> fitted = SDBN().fit(ResultPages.of([("q", ["a", "b"], [1, 0]), ("q", ["a", "b"], [1, 1])]))
    >>> fitted.attractiveness.round(4).tolist(), fitted.satisfaction.round(4).tolist()
    ([0.75, 0.6667], [0.5, 0.6667])
    """

    name = "SDBN"
    aliases = ("simplified DBN",)
    formula = (
        "attractiveness = clicks / views at or above the last click; "
        "satisfaction = clicks that are the last / clicks, both of the document"
    )
    reference = "Chapelle and Zhang, A Dynamic Bayesian Network Click Model for Web Search Ranking, WWW 2009"

    def _stops(self) -> bool:
        return True

    def _keys(self, pages: ResultPages) -> Numbers:
        return pages.pair.astype(np.int64)

    def _key_of_counts(self, counts: ClickCounts) -> Numbers:
        return counts.pair

    def _size(self, counts: ClickCounts) -> int:
        return len(counts.pairs)

    def _fitted(self, counts: ClickCounts, maximum: Maximum) -> FittedSDBN:
        attractiveness, satisfied = maximum.parameters
        what = (attractiveness, maximum.objective, maximum.change, satisfied)
        return FittedSDBN(self, counts.pairs, *what, examined=maximum.examined)


@dataclass(frozen=True, eq=False)
class ClickTails:
    """The documents below the last click of each page that has one, and the counts of everything that is certain."""

    row: Numbers  # the tail that each row below a last click belongs to
    pair: Numbers  # of each of these rows
    key: Numbers  # of the last click above each tail
    clicks: Floats  # of each pair
    views: Floats  # of each pair, certainly examined
    not_last: Floats  # clicks of each key after which users certainly read on
    stops: bool  # whether the parameter after a click is the probability to stop

    @classmethod
    def of(
        cls, pages: ResultPages, counts: ClickCounts, keys: Numbers, size: int, skip_unclicked: bool, stops: bool
    ) -> ClickTails:
        """The tails of pages; `keys` is the key of each row. Pages without a click may count as not examined at all."""
        last, place = pages.last_click, pages.place
        clicked = np.flatnonzero(last)
        number = np.zeros(len(pages), np.int64)
        number[clicked] = np.arange(len(clicked))
        below = place == AFTER
        certain = counts.place != AFTER
        if skip_unclicked:
            certain &= counts.place != NO_CLICK
        views, clicks = counts.by(counts.pair, len(counts.pairs), certain)
        not_last = np.bincount(keys[pages.clicked & (place == BEFORE)], minlength=size).astype(np.float64)
        key = keys[pages.start[clicked] + last[clicked] - 1]
        return cls(number[pages.page[below]], pages.pair[below].astype(np.int64), key, clicks, views, not_last, stops)

    def read_on(self, attractiveness: Floats, onward: Floats) -> tuple[Floats, Floats]:
        """The probability that users read on after the last click of each page, and the probability of the tail."""
        with np.errstate(divide="ignore"):
            none = np.exp(np.bincount(self.row, np.log1p(-attractiveness[self.pair]), len(self.key)))
        chance = onward[self.key]
        both = 1 - chance + chance * none
        return ratio(chance * none, both), both

    def expect(self, attractiveness: Floats, after_click: Floats) -> Expectations:
        """How many views were examined, and after how many clicks users stopped (or read on)."""
        onward = 1 - after_click if self.stops else after_click
        share, tail = self.read_on(attractiveness, onward)
        pairs, keys = len(attractiveness), len(after_click)
        examined = self.views + np.bincount(self.pair, share[self.row], pairs)
        last = np.bincount(self.key, minlength=keys)
        went_on = self.not_last + np.bincount(self.key, share, keys)
        every = self.not_last + last
        known = log_sum(self.clicks, attractiveness) + log_sum(self.views - self.clicks, 1 - attractiveness)
        log_likelihood = known + log_sum(self.not_last, onward) + log_sum(1.0, tail)
        after = every - went_on if self.stops else went_on
        return Expectations(log_likelihood, (self.clicks, after), (examined, every), examined)


@dataclass(frozen=True, eq=False)
class FittedCascade(FittedScan):
    """A fitted cascade model: users examine the next document after a skip, and after a click with some probability."""

    @abstractmethod
    def onward(self, pages: ResultPages, rank: int, rows: Numbers) -> Floats | float:
        """The probability to read on after a click on each of these rows of one rank."""

    def walk(self, pages: ResultPages, look: Callable[[Numbers, Floats], Flags]) -> Floats:
        chances, examines = np.zeros(len(pages.pair)), np.ones(len(pages))
        for rank, (which, rows) in enumerate(by_rank(pages), 1):
            attracts, before = self.attractiveness[pages.pair[rows]], examines[which]
            chances[rows] = chance = before * attracts
            skipped = ratio(before - chance, 1 - chance)
            examines[which] = np.where(look(rows, chance), self.onward(pages, rank, rows), skipped)
        return chances

    def marginal(self, pages: ResultPages) -> Floats:
        chances, examines = np.zeros(len(pages.pair)), np.ones(len(pages))
        for rank, (which, rows) in enumerate(by_rank(pages), 1):
            chances[rows] = chance = examines[which] * self.attractiveness[pages.pair[rows]]
            examines[which] += chance * (self.onward(pages, rank, rows) - 1)
        return chances

    def parameters(self) -> Mapping[str, Floats]:
        return {}


@dataclass(frozen=True, eq=False)
class FittedCM(FittedCascade):
    """CM with its attractiveness."""

    def onward(self, pages: ResultPages, rank: int, rows: Numbers) -> float:
        return 0.0


@dataclass(frozen=True, eq=False)
class FittedDCM(FittedCascade):
    """DCM with the probability to read on after a click at each rank."""

    continuation: Floats = field(default_factory=lambda: NOTHING)

    rank_parameters = ("continuation",)

    def parameters(self) -> Mapping[str, Floats]:
        return {"continuation": self.continuation}

    def onward(self, pages: ResultPages, rank: int, rows: Numbers) -> float:
        return float(self.continuation[rank - 1]) if rank <= len(self.continuation) else self.unseen


@dataclass(frozen=True, eq=False)
class FittedSDBN(FittedCascade):
    """SDBN with the probability that a click on each pair satisfies."""

    satisfied: Floats = field(default_factory=lambda: NOTHING)

    @property
    def satisfaction(self) -> Floats:
        return self.satisfied

    def onward(self, pages: ResultPages, rank: int, rows: Numbers) -> Floats:
        return 1 - self.satisfied[pages.pair[rows]]

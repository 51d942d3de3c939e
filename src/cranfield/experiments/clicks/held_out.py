"""How well click models explain searches that they were not fitted to: log-likelihood and perplexity, and which is best.

Units are held out, not searches: searches of one unit are alike, so a model could learn a unit and recognise it. A hash of
the unit's id decides, so a unit stays on its side when the log grows.

The best model is chosen from the same searches that its lead is measured on. So the intervals of leads are simultaneous for
all pairs of models (Bonferroni), whichever is chosen, and by Student's t over units (the delta method for a mean over pages).
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.stats.arms import MetricColumn, against_0, level
from cranfield.stats.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.click_log import ClickLog
    from cranfield.experiments.clicks.model import FittedClickModel
    from cranfield.experiments.clicks.result_pages import Flags, Numbers, ResultPages

LEVEL = 0.95
FEWEST = 2  # units on each side
PER_PAGE = MetricColumn("sum", "pages")


class HeldOut(NamedTuple):
    """The pages that models are fitted to, and those that they must explain."""

    fitted: ResultPages
    tested: ResultPages
    share: float
    seed: int

    @property
    def units(self) -> int:
        """The number of units on the tested side; pages, if units are unknown."""
        return len(np.unique(clusters(self.tested)))


def hold_out(log: ClickLog, share: float, seed: int = 0) -> HeldOut:
    """A log with the pages of a share of its units held out."""
    if not 0 < share < 1:
        raise ConventionError(f"holdout must be between 0 and 1, got {share:g}")
    cluster = clusters(log.pages)
    names = [str(name) for name in range(len(log.pages))] if log.units is None else log.units.to_pylist()
    which = np.array([_fraction(name, seed) < share for name in names], np.bool_)[cluster]
    answer = HeldOut(log.pages.some(~which), log.pages.some(which), share, seed)
    sides = [len(np.unique(clusters(side))) for side in answer[:2]]
    if min(sides) < FEWEST:
        raise DataError(
            f"expected {FEWEST} units to fit and {FEWEST} to hold out, found {sides[0]} and {sides[1]}; "
            "another --holdout or --seed may do, and --holdout 0 holds none out"
        )
    return answer


def clusters(pages: ResultPages) -> Numbers:
    """The unit of each page; the page itself if units are unknown."""
    return np.arange(len(pages)) if pages.unit is None else pages.unit.astype(np.int64)


def _fraction(unit: str, seed: int) -> float:
    """A number from 0 to 1 that a unit always has."""
    digest = hashlib.blake2b(f"{seed}:{unit}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(digest, "big") / 2**64)


class Quality(NamedTuple):
    """How well a model explains held-out pages."""

    log_likelihood: float  # mean over pages of the mean over their documents
    perplexity: float  # mean over ranks
    perplexity_at_rank: tuple[float, ...]
    impossible: int  # pages with a click that the model holds to be impossible, or a certain one that is missing


def quality(fitted: FittedClickModel, pages: ResultPages) -> tuple[Quality, Floats]:
    """The quality of a fitted model on pages, and the log-likelihood of each page."""
    logs = fitted.page_log_likelihoods(pages)
    perplexity = fitted.perplexity(pages)
    impossible = int(np.isinf(logs).sum())
    return Quality(float(np.mean(logs)), float(np.mean(perplexity)), tuple(perplexity.tolist()), impossible), logs


class Lead(NamedTuple):
    """By how much the best model's log-likelihood is higher than another's, with a simultaneous interval."""

    value: float
    low: float
    high: float


def leads(logs: Sequence[Floats], best: int, pages: ResultPages, confidence: float = LEVEL) -> list[Lead]:
    """The lead of the best model over each model; NaN limits if a model holds a page to be impossible."""
    finite = sum(bool(np.isfinite(each).all()) for each in logs)
    tail = (1 - confidence) / 2 / max(math.comb(finite, 2), 1)
    return [_lead(logs[best] - each if np.isfinite(each).all() else None, pages, tail) for each in logs]


def _lead(difference: Floats | None, pages: ResultPages, tail: float) -> Lead:
    if difference is None:
        return Lead(math.inf, math.nan, math.nan)
    if not difference.any():
        return Lead(0.0, 0.0, 0.0)
    units, cluster = np.unique(clusters(pages), return_inverse=True)
    sums = np.bincount(cluster, difference, len(units))
    by_unit = Moments.of(sum=sums, pages=np.bincount(cluster, minlength=len(units)))
    effect = against_0(level(by_unit, PER_PAGE))
    low, high = effect.limits((tail, tail))
    return Lead(float(effect.value), float(low), float(high))


def unseen_rows(pages: ResultPages, views: Floats) -> Flags:
    """The rows whose pair the model was never fitted to."""
    return np.asarray(views[pages.pair] == 0, np.bool_)

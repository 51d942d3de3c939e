"""A click model fitted to a log, and the comparison of all models: the answers of `online clicks`.

Held out are units, not searches: the searches of one unit are alike, so a model could learn a unit and recognise it. A hash
of the unit's id decides, so a unit stays on its side when the log grows. The best model is chosen from the same searches
that measure its lead. So the intervals of leads hold for all pairs of models at once (Bonferroni), whichever model is
chosen. They are Student's over units (the delta method for a mean over pages).

A query with one session is refused by default. Its documents would get values that hardly differ from the start values, next
to values from thousands of sessions, and nobody would see the difference.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError, CranfieldError, DataError
from cranfield.base.parameters import shortened
from cranfield.base.results import Answer, Cell, Table, plain
from cranfield.base.text_layout import counted, name_list
from cranfield.experiments.clicks.result_pages import ClickCounts, ResultPages
from cranfield.stats.arms import MetricColumn, against_0, level
from cranfield.stats.interval_limits import above, sound
from cranfield.stats.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.base.results import Layout, Part
    from cranfield.experiments.clicks.click_log import ClickLog, CountedClicks
    from cranfield.experiments.clicks.model import ClickModel, FittedClickModel
    from cranfield.experiments.clicks.result_pages import Flags, Numbers, QueryDocuments, ResultPages

RANKS = 10  # ranks in the table
EXTREMES = 3  # pairs with the most and the least attractiveness
LEVEL = 0.95
FEWEST = 2  # units on each side of a split
PER_PAGE = MetricColumn("sum", "pages")
SEEN = 10  # views of a pair in the table of extremes


def fit_model(model: ClickModel, data: ClickCounts | ResultPages) -> FittedClickModel:
    """A model fitted to pages or counts; DataError if they do not determine it, or it needs more than counts."""
    if isinstance(data, ClickCounts):
        if model.needs_pages or (model.reads_other_clicks and not data.knows_other_clicks):
            raise DataError(
                f"{model.name} needs to know which clicks belong to one search, and these counts do not say it; fit it to a log"
            )
        refuse_no_clicks(data.clicks)
        fitted = model.fit(data)
    else:
        refuse_no_clicks(data.clicked)
        fitted = model.fit(data if model.needs_pages else ClickCounts.of(data, model.reads_other_clicks))
    fitted.check()
    return fitted


def refuse_no_clicks(clicks: Numbers | Flags) -> None:
    """Raise DataError if nothing was clicked: the parameters would be those of the prior."""
    if not clicks.any():
        raise DataError("expected clicks, found none: no document of these searches was clicked")


@dataclass(frozen=True)
class SplitText:
    """What was held out, in numbers."""

    pages: int
    units: int
    share: float
    seed: int
    unseen: float  # the share of held-out documents that were never shown for their query on the other side

    @classmethod
    def of(cls, split: HeldOut) -> SplitText:
        """The numbers of a split."""
        views = np.bincount(split.fitted.pair, minlength=len(split.fitted.pairs)).astype(np.float64)
        unseen = float(np.mean(unseen_rows(split.tested, views)))
        return cls(len(split.tested), split.units, split.share, split.seed, unseen)

    def sentence(self) -> str:
        """The split in words."""
        units = f"{counted(self.units, 'unit')} held out by a hash of the unit (share {self.share:g}, seed {self.seed})"
        return f"{_searches(self.pages)} of {units}"

    def notes(self) -> list[str]:
        """What the split lacks."""
        if not self.unseen:
            return []
        share = f"{100 * self.unseen:.2g} %"
        return [f"{share} of the held-out documents were never shown for their query in the other searches"]


@dataclass(frozen=True, eq=False, repr=False)
class ClickModelFit(Answer):
    """A click model fitted to a log: its quality on held-out searches, its parameters, and the value of each pair."""

    fitted: FittedClickModel
    pages: int
    views: Floats  # of each pair
    clicks: Floats
    quality: Quality | None = None  # of a fit to the searches that are not held out
    split: SplitText | None = None
    remarks: tuple[str, ...] = field(default=())

    ends_with_limits = True

    @property
    def seen(self) -> Any:
        """The numbers of the pairs that were shown."""
        return np.flatnonzero(self.views > 0)

    def content(self, how: Layout) -> Iterator[Part]:
        queries = len(np.unique(self.fitted.pairs.query[self.seen]))
        what = f"{_searches(self.pages)} of {'1 query' if queries == 1 else f'{queries:,} queries'}"
        yield f"{self.fitted.model} fitted to {what}, {counted(len(self.seen), 'pair')} of a query and a document."
        if self.quality is not None:
            yield self._quality_sentence(how)
        for name, values in self._of_the_log().items():
            yield f"{name}: {', '.join(how.number(float(each)) for each in values)}"
        table = self._rank_table(how)
        if table is not None:
            yield table
        if self.fitted.model.values_documents:
            yield self._pair_table(how)

    def page_title(self) -> str:
        return f"{self.fitted.model.name}, a click model"

    def _quality_sentence(self, how: Layout) -> str:
        assert self.quality is not None
        assert self.split is not None
        if self.quality.impossible:
            which = f"{self.quality.impossible:,} of {_searches(self.split.pages)}"
            likelihood = f"log-likelihood -inf ({which} have clicks that are impossible under the model)"
        else:
            likelihood = f"log-likelihood {how.number(self.quality.log_likelihood)}"
        perplexity = how.number(self.quality.perplexity)
        return f"On held-out searches: {likelihood}, perplexity {perplexity} (1 is perfect, 2 a coin)."

    def _of_ranks(self) -> dict[str, Floats]:
        """The parameters that have a value for each rank; of a table by rank and previous click, those without a click."""
        answer = {}
        for name, values in self.fitted.parameters().items():
            if name in self.fitted.rank_parameters:
                answer[name if values.ndim == 1 else f"{name} (no click above)"] = (
                    values if values.ndim == 1 else values[:, 0]
                )
        return answer

    def _of_the_log(self) -> dict[str, Floats]:
        parameters = self.fitted.parameters()
        return {name: values for name, values in parameters.items() if name not in self.fitted.rank_parameters}

    def _rank_table(self, how: Layout) -> Table | None:
        columns: dict[str, Sequence[float]] = {name: values.tolist() for name, values in self._of_ranks().items()}
        if self.quality is not None:
            columns["perplexity"] = self.quality.perplexity_at_rank
        deepest = max(map(len, columns.values()), default=0)
        if not deepest:
            return None
        rows: list[list[Cell | str]] = []
        for place in range(deepest if how.every else min(deepest, RANKS)):
            cells = [how.cell(each[place]) if place < len(each) else Cell(how.undefined) for each in columns.values()]
            rows.append([Cell(str(place + 1), place + 1), *cells])
        rest = "" if len(rows) == deepest else f"… {deepest - len(rows):,} more ranks"
        return Table(["rank", *columns], rows, rest=rest, title=f"{self.fitted.model.name} by rank")

    def _pair_table(self, how: Layout) -> Table:
        often = self.seen[self.views[self.seen] >= SEEN]
        candidates = often if len(often) else self.seen
        order = candidates[np.argsort(-self.fitted.attractiveness[candidates], kind="stable")]
        some = (
            order if how.every or len(order) <= 2 * EXTREMES else np.concatenate((order[:EXTREMES], order[-EXTREMES:]))
        )
        names = self.fitted.pairs.names()
        satisfied = self.fitted.satisfaction
        rows: list[list[Cell | str]] = []
        for place in some.tolist():
            cells = [how.cell(float(self.fitted.attractiveness[place]))]
            cells += [] if satisfied is None else [how.cell(float(satisfied[place]))]
            cells += [Cell(f"{each[place]:,.0f}", float(each[place])) for each in (self.views, self.clicks)]
            rows.append([*names[place], *cells])
        head = ["query", "document", "attractiveness", *["satisfaction"] * (satisfied is not None), "views", "clicks"]
        seen = f" among those shown {SEEN} times or more" if len(often) and len(often) < len(self.seen) else ""
        caption = "" if len(some) == len(self.seen) else f"the {EXTREMES} most and least attractive documents{seen}"
        return Table(head, rows, names=2, caption=caption, title="documents by attractiveness")

    def records(self, how: Layout) -> Iterator[list[Any]]:
        satisfied = self.fitted.satisfaction
        more = ["satisfaction"] * (satisfied is not None)
        yield ["query", "document", "attractiveness", *more, "views", "clicks"]
        names = self.fitted.pairs.names()
        for place in self.seen.tolist():
            values = [self.fitted.attractiveness] if satisfied is None else [self.fitted.attractiveness, satisfied]
            counts = [int(each[place]) for each in (self.views, self.clicks)]
            yield [*names[place], *(float(each[place]) for each in values), *counts]

    def plain(self, how: Layout) -> dict[str, Any]:
        head, *rows = self.records(how)
        of_em = {"iterations": len(self.fitted.objective), "last_change": self.fitted.change}
        held_out = None
        if self.quality is not None and self.split is not None:
            held_out = {**vars(self.split), **self.quality._asdict()}
            held_out["log_likelihood"] = finite(self.quality.log_likelihood)
        values = {
            "model": str(self.fitted.model),
            "pages": self.pages,
            "held_out": held_out,
            "parameters": {name: each.tolist() for name, each in self.fitted.parameters().items()},
            **(of_em if len(self.fitted.objective) else {}),
            "pairs": [dict(zip(head, row, strict=True)) for row in rows],
            "notes": self.notes(),
        }
        return dict(plain(values, how.digits))

    def notes(self, shell: bool = False) -> list[str]:
        notes = [*self.remarks, *self.fitted.check()]
        if self.split is not None:
            both = "the quality is of a fit to the other searches, the parameters of a fit to all searches"
            notes += [f"{self.split.sentence()}: {both}", *self.split.notes()]
        if not self.fitted.model.values_documents:
            notes.append(f"{self.fitted.model.name} says nothing about single documents")
        return notes


class ModelScore(NamedTuple):
    """A model in a comparison: its quality and the best model's lead over it, or why it could not be fitted."""

    model: str
    quality: Quality | None
    lead: Lead | None
    problem: str = ""


@dataclass(frozen=True, repr=False)
class ClickModelComparison(Answer):
    """Which click model explains the held-out searches of a log best."""

    pages: int
    split: SplitText
    scores: tuple[ModelScore, ...]  # the best first; those that could not be fitted last
    remarks: tuple[str, ...] = ()

    ends_with_limits = True

    @property
    def rivals(self) -> list[str]:
        """The models that the held-out searches do not tell apart from the best one."""
        return [each.model for each in self.scores[1:] if each.lead is not None and each.lead.includes_0]

    def page_title(self) -> str:
        return "Click models"

    def verdict(self) -> str:
        """Which model explains the log best, as far as the held-out searches tell."""
        best = self.scores[0].model
        if not self.rivals:
            return f"{best} explains the held-out searches best."
        return (
            f"{best} explains the held-out searches best, but not significantly better than {name_list(self.rivals)}."
        )

    def content(self, how: Layout) -> Iterator[Part]:
        yield self.verdict()
        rows: list[list[Cell | str]] = []
        for each in self.scores:
            if each.quality is None or each.lead is None:
                rows.append([each.model, *[how.undefined] * 4])
                continue
            likelihood = each.quality.log_likelihood
            leading = not rows
            value = Cell("-inf") if math.isinf(likelihood) else how.cell(likelihood)
            lead = "" if leading else "inf" if math.isinf(each.lead.value) else how.number(each.lead.value)
            interval = "" if leading else how.interval(each.lead.low, each.lead.high)
            rows.append([each.model, value._replace(best=leading), lead, interval, how.cell(each.quality.perplexity)])
        head = ["model", "log-likelihood", "behind", f"{100 * LEVEL:g}%", "perplexity"]
        yield Table(head, rows, title="click models on held-out searches")

    def records(self, how: Layout) -> Iterator[list[Any]]:
        yield ["model", "log_likelihood", "behind", "low", "high", "perplexity", "impossible", "problem"]
        for each in self.scores:
            if each.quality is None or each.lead is None:
                yield [each.model, *[None] * 6, each.problem]
                continue
            numbers = [finite(number) for number in (each.quality.log_likelihood, *each.lead)]
            yield [each.model, *numbers, each.quality.perplexity, each.quality.impossible, ""]

    def plain(self, how: Layout) -> dict[str, Any]:
        head, *rows = self.records(how)
        models = [dict(zip(head, row, strict=True)) for row in rows]
        for model, score in zip(models, self.scores, strict=True):
            model["perplexity_at_rank"] = None if score.quality is None else list(score.quality.perplexity_at_rank)
        values = {
            "best": self.scores[0].model,
            "not_told_apart": self.rivals,
            "pages": self.pages,
            "held_out": vars(self.split),
            "models": models,
            "notes": self.notes(),
        }
        return dict(plain(values, how.digits))

    def notes(self, shell: bool = False) -> list[str]:
        notes = list(self.remarks)
        missing: dict[str, list[str]] = {}
        for each in self.scores:
            if each.problem:
                missing.setdefault(each.problem, []).append(each.model)
            elif each.quality is not None and each.quality.impossible:
                number = f"{each.quality.impossible:,} of {_searches(self.split.pages)}"
                notes.append(f"{each.model}: {number} have clicks that are impossible under the model")
        for problem, models in missing.items():
            notes.append(f"{name_list(models)} {'was' if len(models) == 1 else 'were'} not fitted: {problem}")
        intervals = "intervals are over units, and hold for all pairs of models at once (Bonferroni)"
        return [*notes, f"{self.split.sentence()}; {intervals}", *self.split.notes()]


def finite(number: float) -> float | None:
    """A number for JSON; None if it is infinite or missing."""
    return number if math.isfinite(number) else None


def _searches(number: int) -> str:
    return "1 search" if number == 1 else f"{number:,} searches"


def compare_models(models: Sequence[ClickModel], split: HeldOut, remarks: Sequence[str] = ()) -> ClickModelComparison:
    """Models fitted to one side of a log and compared on the other. A model that the log does not determine comes last."""
    scores: list[tuple[ClickModel, Quality, Floats]] = []
    cautions: list[str] = []
    problems: list[tuple[ClickModel, CranfieldError]] = []
    for model in models:
        try:
            fitted = fit_model(model, split.fitted)
            scores.append((model, *quality(fitted, split.tested)))
            cautions += fitted.check()
        except DataError as error:
            problems.append((model, error))
    if not scores:
        raise problems[0][1]
    scores.sort(key=lambda score: -score[1].log_likelihood)
    ahead = leads([logs for _, _, logs in scores], 0, split.tested)
    rows = [ModelScore(str(model), own, lead) for (model, own, _), lead in zip(scores, ahead, strict=True)]
    rows += [
        ModelScore(str(model), None, None, str(error).removeprefix(f"{model.name}: ")) for model, error in problems
    ]
    pages = len(split.fitted) + len(split.tested)
    return ClickModelComparison(pages, SplitText.of(split), tuple(rows), (*remarks, *cautions))


# held-out units


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
            "try another --holdout or --seed; --holdout 0 skips the test"
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
    impossible: int  # pages with a click that is impossible under the model, or without one that is certain


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

    @property
    def includes_0(self) -> bool:
        """Whether there is an interval, and it does not lie above 0."""
        return sound(self.low, self.high) and not above(self.low, self.high)


def leads(logs: Sequence[Floats], best: int, pages: ResultPages, confidence: float = LEVEL) -> list[Lead]:
    """The lead of the best model over each model; NaN limits if a page is impossible under a model."""
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


# queries with enough sessions


def pages_of_queries(log: ClickLog, least: int | None) -> tuple[ResultPages, list[str]]:
    """The pages of queries with enough sessions, and the notes of the log; with no minimum, one session is an error."""
    pages = log.pages
    first = pages.start[:-1]
    query = pages.pairs.query[pages.pair[first]]
    enough, notes = _enough(pages.pairs, np.bincount(query, minlength=len(pages.pairs.queries)), least)
    return (pages if enough.all() else pages.some(enough[query])), [*log.notes, *notes]


def counts_of_queries(counted: CountedClicks, least: int | None) -> tuple[ClickCounts, list[str]]:
    """The same for counts; the sessions of a query are its views at the rank that has the most."""
    counts = counted.counts
    query = counts.pairs.query[counts.pair]
    ranks, rank = np.unique(counts.rank, return_inverse=True)
    size = len(counts.pairs.queries)
    views = np.bincount(query * len(ranks) + rank, counts.views, size * len(ranks)).reshape(size, -1)
    enough, notes = _enough(counts.pairs, views.max(axis=1).astype(np.int64), least)
    which = enough[query]
    names = ("pair", "rank", "previous", "place", "views", "clicks")
    some = {name: getattr(counts, name)[which] for name in names}
    pages = int(some["views"][some["rank"] == 1].sum())
    return replace(counts, pages=pages, **some), [*counted.notes, *notes]


def _enough(pairs: QueryDocuments, sessions: Numbers, least: int | None) -> tuple[Flags, list[str]]:
    """Whether each query has enough sessions, and a note about those that have not."""
    needed = 2 if least is None else least
    few = np.flatnonzero((sessions > 0) & (sessions < needed))
    if not len(few):
        return np.ones(len(sessions), np.bool_), []
    if least is None:
        more = f", and so have {len(few) - 1:,} more queries" if len(few) > 1 else ""
        raise DataError(
            f"query {shortened(pairs.queries[few[0]])!r} has one session{more}; --min-sessions 2 leaves such queries out, "
            "--min-sessions 1 accepts them"
        )
    if len(few) == (sessions > 0).sum():
        raise DataError(f"no query has {needed:,} sessions; the most are {sessions.max():,} (--min-sessions)")
    queries = "1 query" if len(few) == 1 else f"{len(few):,} queries"
    enough = np.ones(len(sessions), np.bool_)
    enough[few] = False
    return enough, [f"left out: {queries} with fewer than {needed:,} sessions ({sessions[few].sum():,} in all)"]

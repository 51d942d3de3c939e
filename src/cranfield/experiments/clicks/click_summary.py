"""A summary of a log of clicks: clicks and examination by rank, and click-through by judged grade.

Examination by rank is what a click model says: the clicks that it expects at a rank, over those it would expect there if
users examined every document, relative to rank 1. That definition needs no parameter of a family, so it serves every model.

Corrected for position, click-through is clicks per examined view: a view at a rank counts as much as that rank is examined.
The attractiveness of the model would not do: pairs that users rarely examined keep its start value, and low grades with it.

A click-through by grade is a mean over queries, so that the busiest queries do not decide. Intervals by rank are over units
(over pages if units are unknown), intervals by grade over queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Answer, Cell, Layout, Part, Table, plain
from cranfield.base.text_layout import counted
from cranfield.experiments.clicks.click_log import read_pages
from cranfield.experiments.clicks.fits import fit_model, pages_of_queries
from cranfield.experiments.clicks.model import CLICK_MODELS
from cranfield.experiments.clicks.position_based import FittedPositionBased
from cranfield.experiments.log import EventLog
from cranfield.formats.query_text import normalised
from cranfield.stats.proportions import mean_share, wilson_over_clusters

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.model import FittedClickModel
    from cranfield.experiments.clicks.result_pages import Numbers, QueryDocuments, ResultPages

MODEL = "PBM"
RANKS = 10  # ranks of the table
FEWEST_SESSIONS = 2  # of a query that the click model is fitted to
MIN_VIEWS = 10  # pairs seen less often are left out of the table of grades
FEW_CLICKS = 200  # with fewer, examination of rank 2 by PBM was off by more than 0.1 (RMS of simulated logs)
MOST_GRADES = 20  # values of grades, as rows of the table
LEVEL = 0.95
CORRECTED = ("corrected", "corrected_low", "corrected_high")  # columns of a grade


class RankClicks(NamedTuple):
    """A rank: pages with a document there, clicks on it, their share with an interval, and examination relative to rank 1."""

    rank: int
    pages: int
    clicks: int
    share: float
    low: float
    high: float
    examination: float


class GradeClicks(NamedTuple):
    """A judged grade: its queries, pairs, views and clicks; click-through as it is, and corrected for position."""

    grade: float
    queries: int
    pairs: int
    views: int
    clicks: int
    share: float
    low: float
    high: float
    corrected: float
    corrected_low: float
    corrected_high: float


@dataclass(frozen=True, repr=False)
class ClickSummary(Answer):
    """Clicks and examination by rank, and click-through by judged grade."""

    pages: int
    units: int  # 0 if they are unknown
    model: str  # the click model; empty without one
    level: float
    ranks: tuple[RankClicks, ...]
    grades: tuple[GradeClicks, ...]
    judged: int | None = None  # pairs with a grade and enough views; None without judgments
    rare: int = 0  # judged pairs with too few views
    unjudged: int = 0  # pairs without a grade
    min_views: int = MIN_VIEWS
    deeper: int = 0  # ranks below the table
    remarks: tuple[str, ...] = ()

    page_has_charts = True

    @property
    def clicks(self) -> int:
        """The number of clicks at the ranks of the table."""
        return sum(row.clicks for row in self.ranks)

    def verdict(self) -> list[str]:
        """What the tables say, in sentences."""
        first, last = self.ranks[0], self.ranks[-1]
        sentences = [f"Rank 1 is clicked on {_percent(first.share)} of {counted(self.pages, 'page')}"]
        if last is not first:
            sentences[0] += f", rank {last.rank} on {_percent(last.share)}"
            if self.clicks >= FEW_CLICKS and last.examination == last.examination:
                often = _percent(last.examination)
                sentences.append(f"By {self.model}, rank {last.rank} is examined {often} as often as rank 1")
        if len(self.grades) > 1:
            low, high = self.grades[0], self.grades[-1]
            text = f"Documents of grade {high.grade:g} are clicked on {_percent(high.share)} of their views"
            text += f", those of grade {low.grade:g} on {_percent(low.share)}"
            if self.clicks >= FEW_CLICKS and high.corrected == high.corrected:
                both = f"{_percent(high.corrected)} and {_percent(low.corrected)}"
                text += f"; corrected for position {both}"
            sentences.append(text)
        return sentences

    def rank_table(self, how: Layout) -> Table:
        """Pages, clicks, click-through with its interval and examination, one row per rank."""
        modelled = any(row.examination == row.examination for row in self.ranks)
        head = ["rank", "pages", "clicks", "click-through", self._interval(), *["examination"] * modelled]
        rows = [
            [
                Cell(f"{row.rank}", row.rank),
                Cell(f"{row.pages:,}", row.pages),
                Cell(f"{row.clicks:,}", row.clicks),
                how.cell(row.share),
                Cell(how.interval(row.low, row.high)),
                *[how.cell(row.examination)] * modelled,
            ]
            for row in self.ranks
        ]
        title = f"Clicks{' and examination' * modelled} by rank"
        rest = f"{counted(self.deeper, 'rank')} below" if self.deeper else ""
        caption = f"by rank{f', examination by {self.model} relative to rank 1' * modelled}"
        return Table(head, rows, caption=caption, title=title, rest=rest, spare=(2,))

    def grade_table(self, how: Layout) -> Table:
        """The table of judged grades."""
        modelled = any(row.corrected == row.corrected for row in self.grades)
        interval = self._interval()
        head = ["grade", "queries", "pairs", "views", "click-through", interval]
        head += ["corrected", interval] if modelled else []
        rows = []
        for row in self.grades:
            cells = [Cell(f"{row.grade:g}", row.grade)]
            cells += [Cell(f"{number:,}", number) for number in (row.queries, row.pairs, row.views)]
            cells += [how.cell(row.share), Cell(how.interval(row.low, row.high))]
            if modelled:
                cells += [how.cell(row.corrected), Cell(how.interval(row.corrected_low, row.corrected_high))]
            rows.append(cells)
        corrected = f"; corrected: per examined view, by {self.model}" if modelled else ""
        caption = f"by judged grade, means over queries{corrected}"
        return Table(head, rows, caption=caption, title="Click-through by judged grade", spare=(3, 2))

    def _interval(self) -> str:
        return f"{100 * self.level:g} %"

    def content(self, how: Layout) -> Iterator[Part]:
        yield ". ".join(self.verdict()) + "."
        yield self.rank_table(how)
        if self.grades:
            yield self.grade_table(how)

    def plain(self, how: Layout) -> dict[str, Any]:
        values = {
            "pages": self.pages,
            "units": self.units or None,
            "model": self.model or None,
            "level": self.level,
            "ranks": [row._asdict() for row in self.ranks],
            "grades": None if self.judged is None else [row._asdict() for row in self.grades],
            "judged_pairs": self.judged,
            "rare_pairs": self.rare,
            "unjudged_pairs": self.unjudged,
            "notes": list(self.remarks),
        }
        return dict(plain(values, how.digits))

    def records(self, how: Layout) -> Iterator[Sequence[Any]]:
        yield "by", "value", "queries", "pairs", "views", "clicks", "share", "low", "high", "examination", *CORRECTED
        for row in self.ranks:
            counts = row.pages, row.clicks, row.share, row.low, row.high
            yield "rank", row.rank, None, None, *counts, row.examination, None, None, None
        for each in self.grades:
            yield "grade", *each[:8], None, *each[8:]

    def notes(self, shell: bool = False) -> list[str]:
        notes = list(self.remarks)
        if self.clicks < FEW_CLICKS and any(row.examination == row.examination for row in self.ranks):
            notes.append(f"{counted(self.clicks, 'click')}: below {FEW_CLICKS}, examination by rank is rough")
        if self.judged == self.rare == 0:
            notes.append(
                "no document of the log is judged: judgments join the log by the text of the query; "
                f"{'--topics-file names' if shell else 'a topics file names'} the query of each topic"
            )
        elif self.judged is not None and self.unjudged:
            pairs = self.judged + self.rare + self.unjudged
            notes.append(f"{self.unjudged:,} of {pairs:,} pairs of a query and a document are not judged")
        if self.rare:
            notes.append(f"{counted(self.rare, 'judged pair')} seen fewer than {self.min_views} times left out")
        if any(row.corrected_low == row.corrected_low for row in self.grades):
            notes.append(f"intervals of corrected click-through take the examination by {self.model} as known")
        if self.units == 0:
            notes.append("the log names no units: intervals by rank treat pages as independent")
        return notes

    def page_title(self) -> str:
        return "Clicks"


def summarise_clicks(
    pages: ResultPages,
    fitted: FittedClickModel | None = None,
    grades: Floats | None = None,
    *,
    model: str = "",
    fitted_pages: ResultPages | None = None,
    ranks: int = RANKS,
    min_views: int = MIN_VIEWS,
    level: float = LEVEL,
    remarks: Sequence[str] = (),
) -> ClickSummary:
    """Clicks by rank, examination by a fitted model, and click-through by the grades of the pairs (NaN: not judged).

    `fitted_pages` are the pages that the model was fitted to, if not all.

    >>> from cranfield.experiments.clicks.result_pages import ResultPages
    >>> pages = ResultPages.of([("mug", ["a", "b"], [1, 0]), ("mug", ["a", "b"], [0, 1]), ("mug", ["b"], [1])])
    >>> print(summarise_clicks(pages).verdict()[0])
    Rank 1 is clicked on 66.7 % of 3 pages, rank 2 on 50.0 %
    """
    refuse_below(1, ranks=ranks, min_views=min_views)
    if not 0 < level < 1:
        raise ConventionError(f"level must be between 0 and 1, got {level}")
    if not len(pages) or not len(pages.pair):
        raise DataError(
            "there is no result page with a document: clicks by rank need impressions that list what was shown"
        )
    rank = pages.rank
    deepest = int(rank.max())
    examined = np.full(deepest, np.nan)
    if fitted is not None:
        own = examination_by_rank(fitted, pages if fitted_pages is None else fitted_pages)
        examined[: len(own)] = own
    by_rank = _by_rank(pages, rank, min(ranks, deepest), examined / examined[0], level)
    judged, rare, unjudged = None, 0, 0
    by_grade: tuple[GradeClicks, ...] = ()
    if grades is not None:
        weights = (examined / examined[0])[rank - 1]
        by_grade, judged, rare, unjudged = _by_grade(pages, grades, weights, min_views, level)
    return ClickSummary(
        len(pages),
        0 if pages.unit is None else len(np.unique(pages.unit)),
        model,
        level,
        by_rank,
        by_grade,
        judged,
        rare,
        unjudged,
        min_views,
        deepest - len(by_rank),
        tuple(remarks),
    )


def click_summary(
    log: str | os.PathLike[str],
    judgments: Mapping[str, Mapping[str, float]] | None = None,
    queries: Mapping[str, str] | None = None,
    *,
    model: str = MODEL,
    lenient: bool = False,
    memory: str | None = None,
    min_sessions: int = FEWEST_SESSIONS,
    ranks: int = RANKS,
    min_views: int = MIN_VIEWS,
    level: float = LEVEL,
    needs_model: bool = False,
) -> ClickSummary:
    """The summary of an event log, with a click model fitted to it; `judgments` are grades by topic and document.

    `queries` are the texts of the topics that the judgments belong to; see `grades_of_pairs`. The model is fitted to
    queries with `min_sessions`; the counts are of all queries. If the model cannot be fitted, a note says why, or with
    `needs_model` a DataError.
    """
    refuse_below(1, min_sessions=min_sessions)
    chosen = CLICK_MODELS.named(model)
    with EventLog(log) as opened:
        read = read_pages(opened, lenient=lenient, memory=memory)
    remarks, fitted, pages = list(read.notes), None, read.pages
    try:
        pages, notes = pages_of_queries(read, min_sessions)
        fitted = fit_model(chosen, pages)
        left_out = notes[len(read.notes) :]
        remarks += [*(f"the fit of {model} {note.replace(':', '', 1)}" for note in left_out), *fitted.check()]
    except DataError as error:
        if needs_model:
            raise
        remarks.append(f"no examination: {error}")
    return summarise_clicks(
        read.pages,
        fitted,
        None if judgments is None else grades_of_pairs(read.pages.pairs, judgments, queries),
        model=model,
        fitted_pages=pages,
        ranks=ranks,
        min_views=min_views,
        level=level,
        remarks=remarks,
    )


def examination_by_rank(fitted: FittedClickModel, pages: ResultPages) -> Floats:
    """The probability that users examine each rank: the expected clicks there over the attractiveness of its documents.

    For PBM these are its parameters. For models whose users stop after clicks, it depends on the documents above. NaN for
    ranks that no documents connect with rank 1, if the model needs them.
    """
    places = pages.rank - 1
    clicks = np.bincount(places, weights=fitted.marginal(pages))
    attractive = np.bincount(places, weights=fitted.attractiveness[pages.pair])
    with np.errstate(divide="ignore", invalid="ignore"):
        examined = np.where(attractive > 0, clicks / attractive, np.nan)
    if isinstance(fitted, FittedPositionBased):
        apart = np.isnan(fitted.relative())[: len(examined)]
        examined[: len(apart)][apart] = np.nan
    return examined


def _by_rank(pages: ResultPages, rank: Numbers, ranks: int, examined: Floats, level: float) -> tuple[RankClicks, ...]:
    """The rows of the table of ranks; a unit is a cluster, or else a page."""
    cluster = pages.page if pages.unit is None else np.unique(pages.unit, return_inverse=True)[1][pages.page]
    clusters = int(cluster.max()) + 1
    rows = []
    for place in range(1, ranks + 1):
        here = rank == place
        shown = np.bincount(cluster[here], minlength=clusters).astype(np.float64)
        clicked = np.bincount(cluster[here], weights=pages.clicked[here], minlength=clusters)
        columns = np.asarray(clicked, np.float64)[:, None], shown[:, None]
        share, low, high = (float(each[0]) for each in wilson_over_clusters(*columns, level))
        examination = float(examined[place - 1])
        rows.append(RankClicks(place, int(shown.sum()), int(clicked.sum()), share, low, high, examination))
    return tuple(rows)


def _by_grade(
    pages: ResultPages,
    grades: Floats,
    examined: Floats,
    min_views: int,
    level: float,
) -> tuple[tuple[GradeClicks, ...], int, int, int]:
    """The rows of the table of grades; the numbers of pairs with a grade, with too few views, and without a grade.

    `examined` says how much each row of the pages counts as a view, relative to rank 1; NaN where that is unknown.
    """
    pairs = len(pages.pairs)
    views = np.bincount(pages.pair, minlength=pairs).astype(np.float64)
    clicks = np.bincount(pages.pair, weights=pages.clicked, minlength=pairs)
    seen, judged = views > 0, ~np.isnan(grades)
    enough = seen & judged & (views >= min_views)
    numbers = int(enough.sum()), int((seen & judged & ~enough).sum()), int((seen & ~judged).sum())
    values = np.unique(grades[enough])
    if len(values) > MOST_GRADES:
        raise DataError(f"expected at most {MOST_GRADES} grades, found {len(values)} values; use judgments with grades")
    has_examination = ~np.isnan(examined)
    examined_views = np.bincount(pages.pair[has_examination], weights=examined[has_examination], minlength=pairs)
    examined_clicks = np.bincount(pages.pair[has_examination], weights=pages.clicked[has_examination], minlength=pairs)
    rows = []
    for grade in values:
        own = enough & (grades == grade)
        query = np.unique(pages.pairs.query[own], return_inverse=True)[1]
        share = np.bincount(query, weights=clicks[own]) / np.bincount(query, weights=views[own])
        with np.errstate(invalid="ignore"):
            corrected = np.bincount(query, weights=examined_clicks[own]) / np.bincount(
                query, weights=examined_views[own]
            )
        sums = len(share), int(own.sum()), int(views[own].sum()), int(clicks[own].sum())
        rows.append(
            GradeClicks(
                float(grade),
                *sums,
                *mean_share(share, level),
                *mean_share(corrected[~np.isnan(corrected)], level, np.inf),
            )
        )
    return tuple(rows), *numbers


def grades_of_pairs(
    pairs: QueryDocuments, judgments: Mapping[str, Mapping[str, float]], queries: Mapping[str, str] | None = None
) -> Floats:
    """The judged grade of each pair, NaN if there is none.

    Judgments belong to a topic: to the query that `queries` names for it, and to the query that is its id.

    >>> from cranfield.experiments.clicks.result_pages import ResultPages
    >>> pages = ResultPages.of([("Red  mug", ["a", "b"], [1, 0])])
    >>> grades_of_pairs(pages.pairs, {"101": {"a": 2}}, {"101": "red mug"}).tolist()
    [2.0, nan]
    """
    topics = {normalised(topic): topic for topic in judgments}
    topics |= {normalised(query): topic for topic, query in (queries or {}).items() if topic in judgments}
    grades = np.full(len(pairs), np.nan)
    own = [judgments.get(topics.get(normalised(query), ""), {}) for query in pairs.queries]
    for number, (query, document) in enumerate(zip(pairs.query.tolist(), pairs.document.tolist(), strict=True)):
        grade = own[query].get(pairs.documents[document])
        if grade is not None:
            grades[number] = grade
    return grades


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"

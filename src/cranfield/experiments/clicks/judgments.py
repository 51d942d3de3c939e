"""Judgments from clicks: a value with an interval for each query and document, as qrels.

A value is a real number, and so is a grade: measures of graded relevance take it as it is. Thresholds or quantiles turn values
into grades. Documents that were shown too rarely are left out: their value is hardly more than the prior.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.qrels import Qrels
from cranfield.base.results import Answer, Cell, Table, plain
from cranfield.base.results import fitted as fitted_table
from cranfield.base.text_layout import counted
from cranfield.experiments.clicks.values import CLICK_VALUES
from cranfield.formats.query_text import normalised
from cranfield.formats.uncertain_qrels import grades_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.base.results import Layout, Part
    from cranfield.experiments.clicks.model import ClickModel, FittedClickModel
    from cranfield.experiments.clicks.result_pages import Numbers, ResultPages
    from cranfield.experiments.clicks.values import ClickValue
    from cranfield.stats.posteriors import Posteriors

LEVEL = 0.95
MIN_VIEWS = 10
SHOWN = 10  # rows of the table on a screen
COLUMNS = ("topic", "document", "grade", "value", "low", "high", "views", "clicks")
OF_POSTERIOR = ("posterior", "alpha", "beta", "prior_alpha", "prior_beta", "thresholds")


@dataclass(frozen=True, eq=False, repr=False)
class ClickJudgments(Answer):
    """The judgments that clicks give: for each query and document a value, its interval, and the grade."""

    value: str
    model: str  # empty if the value needs none
    topics: list[str]
    queries: list[str]  # empty if topics are named by their queries
    documents: list[str]
    posteriors: Posteriors
    views: Numbers
    clicks: Numbers
    thresholds: tuple[float, ...]
    pages: int
    min_views: int
    rare: int  # pairs that were shown too rarely
    unknown: int  # queries that no topic asks
    remarks: list[str] = field(default_factory=list)

    ends_with_limits = True

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def values(self) -> Floats:
        """The mean of each posterior."""
        return self.posteriors.mean

    @property
    def grades(self) -> Floats:
        """The grade of each judgment: its value, or what the thresholds make of it."""
        return grades_of(self.values, self.thresholds)

    def qrels(self, name: str = "clicks") -> Qrels:
        """Qrels with the grade of each judgment."""
        return Qrels(self.to_mapping(), name)

    def to_mapping(self) -> dict[str, dict[str, float]]:
        """The judgments as `{topic: {document: grade}}`."""
        answer: dict[str, dict[str, float]] = {}
        for topic, document, grade in zip(self.topics, self.documents, self.grades.tolist(), strict=True):
            answer.setdefault(topic, {})[document] = grade
        return answer

    def rows(self) -> Iterator[list[Any]]:
        """A head, then a row for each judgment, with the columns of its posterior."""
        queries = ["query"] * bool(self.queries)
        yield [COLUMNS[0], *queries, *COLUMNS[1:], *OF_POSTERIOR]
        low, high = self.posteriors.interval(LEVEL)
        family, thresholds = self.posteriors.family, " ".join(f"{each:.12g}" for each in self.thresholds)
        columns = (self.grades, self.values, low, high, self.views, self.clicks)
        own = self.posteriors
        of_posterior = zip(
            *(each.tolist() for each in (own.alpha, own.beta, own.prior_alpha, own.prior_beta)), strict=True
        )
        numbers = zip(*(column.tolist() for column in columns), strict=True)
        names = zip(self.topics, *[self.queries] * bool(self.queries), self.documents, strict=True)
        for ids, row, parameters in zip(names, numbers, of_posterior, strict=True):
            yield [*ids, *row, family, *parameters, thresholds]

    def content(self, how: Layout) -> Iterator[Part]:
        by = f"{self.value} by {self.model}" if self.model else self.value
        yield f"{counted(len(self), 'judgment')} of {_queries(len(set(self.topics)))} from {self.pages:,} searches: {by}"
        low, high = self.posteriors.interval(LEVEL)
        order = np.lexsort((np.arange(len(self)), -self.values))
        rows: list[list[Cell | str]] = []
        for place in order if how.every else order[:SHOWN]:
            numbers = [how.cell(float(each[place])) for each in (self.values, low, high)]
            grade = [Cell(f"{self.grades[place]:g}", float(self.grades[place]))] if self.thresholds else []
            counts = [Cell(f"{each[place]:,}", float(each[place])) for each in (self.views, self.clicks)]
            rows.append([self._asked(int(place)), self.documents[place], *grade, *numbers, *counts])
        grade_head = ["grade"] if self.thresholds else []
        head = ["query", "document", *grade_head, self.value, "95% low", "95% high", "views", "clicks"]
        rest = "" if len(rows) == len(self) else f"… {len(self) - len(rows):,} more: -o FILE has all"
        yield fitted_table(Table(head, rows, names=2, rest=rest, title="judgments from clicks"), 0, how.limit)

    def _asked(self, place: int) -> str:
        return (self.queries or self.topics)[place]

    def records(self, how: Layout) -> Iterator[list[Any]]:
        return self.rows()

    def plain(self, how: Layout) -> dict[str, Any]:
        head, *rows = self.rows()
        facts = ("value", "model", "pages", "min_views", "rare", "unknown")
        answer = {name: getattr(self, name) for name in facts}
        judgments = [dict(zip(head, row, strict=True)) for row in rows]
        for row in judgments:
            del row["thresholds"]
        return {
            **answer,
            "level": LEVEL,
            "thresholds": list(self.thresholds),
            "judgments": plain(judgments, how.digits),
            "notes": self.notes(),
        }

    def notes(self, shell: bool = False) -> list[str]:
        """What is left out, and how to use the values."""
        notes = []
        if self.rare:
            views = "once" if self.min_views == 2 else f"fewer than {self.min_views} times"
            advice = "; --min-views changes this" if shell else ""
            documents = "1 document was" if self.rare == 1 else f"{self.rare:,} documents were"
            notes.append(f"{documents} shown {views} for a query and left out{advice}")
        if self.unknown:
            verb = "is" if self.unknown == 1 else "are"
            notes.append(f"{_queries(self.unknown)} {verb} not the query of a topic and left out")
        if not self.thresholds and (self.values < 1).any():
            way = "--rel with eval, or --thresholds here" if shell else "rel=, or thresholds"
            notes.append(f"values below 1 are not relevant to AP, P@k and RR by default: set {way}")
        return [*notes, *self.remarks]


def _counted_too_high(model: ClickModel) -> list[str]:
    """A remark if a model is fitted by counts that are not the maximum of the likelihood."""
    if "exact" not in model.parameters or model.values["exact"]:
        return []
    exact = f"{model.name}(exact=yes)"
    return [
        f"{model.name}'s published counts are too high, and their intervals do not cover the truth; {exact} corrects both"
    ]


def judge_by_clicks(
    pages: ResultPages,
    value: ClickValue | str = "attractiveness",
    fitted: FittedClickModel | None = None,
    *,
    min_views: int = MIN_VIEWS,
    thresholds: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    queries: Mapping[str, str] | None = None,
    where: str = "the topics",
) -> ClickJudgments:
    """The judgments that the clicks of result pages give; `fitted` is a click model that was fitted to them.

    `quantiles` are shares of the judgments: the values at them become the thresholds. `queries` are the queries of topics by
    id; judgments are then named by topic, and queries of no topic are left out. A query in `queries` may also be an id.
    """
    refuse_below(1, min_views=min_views)
    asked = CLICK_VALUES.named(value)
    if thresholds and len(quantiles):
        raise ConventionError("thresholds and quantiles both make grades; give one of them")
    posteriors = asked.posteriors(pages, fitted)
    pairs = pages.pairs
    views = np.bincount(pages.pair, minlength=len(pairs))
    clicks = np.bincount(pages.pair, weights=pages.clicked, minlength=len(pairs)).astype(np.int64)
    topic_of = topics_of_queries(pairs.queries, queries, where)
    named = np.array([topic is not None for topic in topic_of], np.bool_)[pairs.query]
    seen = views > 0
    enough = views >= min_views
    chosen = np.flatnonzero(named & enough)
    chosen = chosen[np.argsort(pairs.query[chosen], kind="stable")]
    if not len(chosen):
        raise DataError(
            _nothing(int((named & seen).sum()), int(seen.sum()), int(views.max(initial=0)), min_views, where)
        )
    own = posteriors.some(chosen)
    query_of = [pairs.queries[q] for q in pairs.query[chosen].tolist()]
    return ClickJudgments(
        value=str(asked),
        model="" if fitted is None or not asked.of_model else str(fitted.model),
        topics=[topic_of[q] or "" for q in pairs.query[chosen].tolist()],
        queries=[] if queries is None else query_of,
        documents=[pairs.documents[d] for d in pairs.document[chosen].tolist()],
        posteriors=own,
        views=views[chosen],
        clicks=clicks[chosen],
        thresholds=_thresholds(thresholds, quantiles, own.mean),
        pages=len(pages),
        min_views=min_views,
        rare=int((named & seen & ~enough).sum()),
        unknown=len(set(pairs.query[seen & ~named].tolist())),
        remarks=[] if fitted is None or not asked.of_model else _counted_too_high(fitted.model),
    )


def _queries(number: int) -> str:
    return "1 query" if number == 1 else f"{number:,} queries"


def topics_of_queries(names: Sequence[str], queries: Mapping[str, str] | None, where: str) -> list[str | None]:
    """The topic of each query: the query itself if no topics are known, None if no topic asks it.

    A query may also be the id of a topic. Queries are compared in their normal form.
    """
    if queries is None:
        return list(names)
    ids = {normalised(topic): topic for topic in queries}
    by_text: dict[str, str] = {}
    for topic, text in queries.items():
        other = by_text.setdefault(normalised(text), topic)
        if other != topic:
            raise DataError(f"{where}: topics {other!r} and {topic!r} both ask {text!r:.80}; keep one of them")
    forms = map(normalised, names)
    return [by_text.get(form, ids.get(form)) for form in forms]


def _nothing(named: int, seen: int, most: int, least: int, where: str) -> str:
    if not seen:
        return "no document was shown: there is nothing to judge"
    if not named:
        return f"no query of the log is the query of a topic in {where}; are both spelt alike?"
    return f"no document was shown {least} times or more for a query (at most {most}); choose a lower --min-views"


def _thresholds(thresholds: Sequence[float], quantiles: Sequence[float], values: Floats) -> tuple[float, ...]:
    wrong = next((each for each in quantiles if not 0 < each < 1), None)
    if wrong is not None:
        raise ConventionError(f"quantiles must be between 0 and 1, ends excluded, got {wrong:g}")
    chosen = [float(np.quantile(values, each)) for each in quantiles] if len(quantiles) else [*map(float, thresholds)]
    if not np.isfinite(chosen).all() or chosen != sorted(set(chosen)):
        if len(quantiles):
            raise DataError("two quantiles have the same value: the judgments tie there; give fewer quantiles")
        raise ConventionError(f"thresholds must be rising numbers, got {', '.join(f'{each:g}' for each in chosen)}")
    return tuple(chosen)

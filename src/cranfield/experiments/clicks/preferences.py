"""Preferences between documents from clicks: a click on one document and none on another that the user saw.

A rule says which pairs of a page are preferences. Each page gives one vote per pair; the majority of votes decides, and pairs
with few or tied votes are left out. All rules of this kind see only some directions: skip-above can prefer only the lower of
two documents. So an order that never changes yields no preference for its own top.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cranfield.base.errors import DataError, FormatError
from cranfield.base.parameters import refuse_below
from cranfield.base.registry import Registered, Registry
from cranfield.base.results import Answer, Cell, Table, plain
from cranfield.base.results import fitted as fitted_table
from cranfield.base.text_layout import counted
from cranfield.experiments.clicks.judgments import topics_of_queries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cranfield.base.results import Layout, Part
    from cranfield.experiments.clicks.result_pages import Flags, Numbers, ResultPages

PREFERENCE_RULES: Registry[type[PreferenceRule]] = Registry(
    "rule of click preferences", "click_preference_rules", "cranfield.experiments.clicks.preferences"
)
MIN_VOTES = 3
SHOWN = 10  # rows of the table on a screen
GROUP = "clicks"  # begins the name of each judgment group in files of preferences


class PreferenceRule(Registered, ABC):
    """Which pairs of a page are preferences."""

    registry = PREFERENCE_RULES
    formula: ClassVar[str]
    reference: ClassVar[str] = "Joachims, Granka, Pan, Hembrooke and Gay (2005)"

    @abstractmethod
    def losers(self, clicked: Flags, rank: int) -> Flags:
        """For pages of one length that have a click at a rank (from 0): which ranks lose to it."""


class SkipAbove(PreferenceRule):
    """A clicked document is preferred to each unclicked one above it, which the user passed over."""

    name = "skip-above"
    formula = "click > no click above"
    aliases = ("click-skip-above",)

    def losers(self, clicked: Flags, rank: int) -> Flags:
        return np.asarray(~clicked & (np.arange(clicked.shape[1]) < rank), np.bool_)


class LastClickSkipAbove(PreferenceRule):
    """The document clicked last on the page is preferred to each unclicked one above it."""

    name = "last-click-skip-above"
    formula = "lowest click > no click above"

    def losers(self, clicked: Flags, rank: int) -> Flags:
        last = ~clicked[:, rank + 1 :].any(axis=1, keepdims=True)
        return np.asarray(~clicked & (np.arange(clicked.shape[1]) < rank) & last, np.bool_)


class SkipNext(PreferenceRule):
    """A clicked document is preferred to the unclicked one right below it, which users mostly see."""

    name = "skip-next"
    formula = "click > no click at the next rank"
    aliases = ("no-click-next",)

    def losers(self, clicked: Flags, rank: int) -> Flags:
        return np.asarray(~clicked & (np.arange(clicked.shape[1]) == rank + 1), np.bool_)


@dataclass(frozen=True, eq=False, repr=False)
class ClickPreferences(Answer):
    """Pairs of documents of which one is preferred, with the votes for and against it."""

    rule: str
    topics: list[str]
    preferred: list[str]
    other: list[str]
    votes: Numbers  # for the preferred document
    against: Numbers
    pages: int
    min_votes: int
    rare: int  # pairs with too few votes
    tied: int
    unknown: int  # queries that no topic asks
    remarks: list[str] = field(default_factory=list)

    ends_with_limits = True

    def __len__(self) -> int:
        return len(self.topics)

    def rows(self) -> Iterator[list[Any]]:
        """A head, then a row for each preference."""
        yield ["topic", "preferred", "other", "votes", "against"]
        columns = self.topics, self.preferred, self.other, self.votes.tolist(), self.against.tolist()
        yield from (list(row) for row in zip(*columns, strict=True))

    def as_prefs(self) -> Iterator[bytes]:
        """The lines of a file for --preferences: topic, group, subgroup, document, level.

        Each preference is a group of its own: users may prefer a to b, b to c, and c to a.
        """
        pair: dict[str, int] = {}
        for topic, preferred, other in zip(self.topics, self.preferred, self.other, strict=True):
            spaced = next(
                (each for each in (topic, preferred, other) if not each or each != "".join(each.split())), None
            )
            if spaced is not None:
                raise FormatError(
                    f"prefs cannot hold {spaced!r:.80}, which has white space; name the topics by ids (--topics-file)"
                )
            pair[topic] = number = pair.get(topic, 0) + 1
            lines = (f"{topic} {GROUP}-{number} 1 {each} {level}\n" for each, level in ((preferred, 2), (other, 1)))
            yield "".join(lines).encode("utf-8", "surrogateescape")

    def content(self, how: Layout) -> Iterator[Part]:
        queries = len(set(self.topics))
        of = "1 query" if queries == 1 else f"{queries:,} queries"
        yield f"{counted(len(self), 'preference')} between documents of {of} from {self.pages:,} searches, by {self.rule}"
        order = np.lexsort((np.arange(len(self)), -(self.votes - self.against)))
        rows: list[list[Cell | str]] = []
        for place in order if how.every else order[:SHOWN]:
            counts = [Cell(f"{each[place]:,}", float(each[place])) for each in (self.votes, self.against)]
            rows.append([self.topics[place], self.preferred[place], self.other[place], *counts])
        rest = "" if len(rows) == len(self) else f"… {len(self) - len(rows):,} more: -o FILE has all"
        table = Table(["query", "preferred", "to", "votes", "against"], rows, names=3, rest=rest, title="preferences")
        yield fitted_table(table, 0, how.limit)

    def records(self, how: Layout) -> Iterator[list[Any]]:
        return self.rows()

    def plain(self, how: Layout) -> dict[str, Any]:
        head, *rows = self.rows()
        facts = ("rule", "pages", "min_votes", "rare", "tied", "unknown")
        values = [dict(zip(head, row, strict=True)) for row in rows]
        return {**{name: getattr(self, name) for name in facts}, "preferences": plain(values), "notes": self.notes()}

    def notes(self, shell: bool = False) -> list[str]:
        notes = []
        if self.rare:
            advice = "; --min-votes changes this" if shell else ""
            pairs = "1 pair has" if self.rare == 1 else f"{self.rare:,} pairs have"
            notes.append(
                f"{pairs} fewer than {self.min_votes} votes and {'is' if self.rare == 1 else 'are'} left out{advice}"
            )
        if self.tied:
            pairs = "1 pair has" if self.tied == 1 else f"{self.tied:,} pairs have"
            notes.append(f"{pairs} as many votes for either document, so no preference")
        one_way = int((self.against == 0).sum())
        if one_way:
            verb = "1 preference has" if one_way == 1 else f"{one_way:,} preferences have"
            notes.append(
                f"{verb} votes in one direction only: {self.rule} sees no other if the documents always came in one order"
            )
        if self.unknown:
            queries = "1 query is" if self.unknown == 1 else f"{self.unknown:,} queries are"
            notes.append(f"{queries} not the query of a topic and left out")
        return [*notes, *self.remarks]


def prefer_by_clicks(
    pages: ResultPages,
    rule: PreferenceRule | str = "skip-above",
    *,
    min_votes: int = MIN_VOTES,
    queries: Mapping[str, str] | None = None,
    where: str = "the topics",
) -> ClickPreferences:
    """The preferences that the clicks of result pages give; `queries` are the queries of topics by id.

    >>> from cranfield.experiments.clicks.result_pages import ResultPages
    >>> pages = ResultPages.of([("q", ["a", "b", "c"], [0, 1, 0])] * 3)
    >>> found = prefer_by_clicks(pages)
    >>> found.preferred, found.other, found.votes.tolist()
    (['b'], ['a'], [3])
    """
    refuse_below(1, min_votes=min_votes)
    chosen = PREFERENCE_RULES.named(rule)
    votes = _votes(pages, chosen)
    pairs = pages.pairs
    code, count = np.unique(votes, return_counts=True)
    winner, loser = np.divmod(code, max(len(pairs), 1))
    reverse = loser * len(pairs) + winner
    place = np.minimum(np.searchsorted(code, reverse), max(len(code) - 1, 0))
    against = np.where(code[place] == reverse, count[place], 0) if len(code) else count
    topic_of = topics_of_queries(pairs.queries, queries, where)
    named = np.array([topic is not None for topic in topic_of], np.bool_)
    known = named[pairs.query[winner]]
    leads = (count > against) & known
    enough = count + against >= min_votes
    kept = np.flatnonzero(leads & enough)
    if not len(kept):
        problem = (
            "no click beats a document that was passed over" if not len(code) else f"no pair has {min_votes} votes"
        )
        raise DataError(
            f"{problem}; {chosen.name} needs pages with clicks and skips"
            + "; choose a lower --min-votes" * bool(len(code))
        )
    kept = kept[np.lexsort((loser[kept], winner[kept], pairs.query[winner[kept]]))]
    documents = [[pairs.documents[d] for d in pairs.document[side[kept]].tolist()] for side in (winner, loser)]
    once = known & (winner < loser) | known & (against == 0)  # each unordered pair once
    return ClickPreferences(
        rule=str(chosen),
        topics=[topic_of[q] or "" for q in pairs.query[winner[kept]].tolist()],
        preferred=documents[0],
        other=documents[1],
        votes=count[kept],
        against=against[kept],
        pages=len(pages),
        min_votes=min_votes,
        rare=int((once & ~enough).sum()),
        tied=int((once & enough & (count == against)).sum()),
        unknown=len(set(pairs.query[winner[~known]].tolist())),
    )


def _votes(pages: ResultPages, rule: PreferenceRule) -> Numbers:
    """One code for each vote: the number of the winning pair times the number of pairs, plus that of the losing one."""
    number = len(pages.pairs)
    parts: list[Numbers] = [np.zeros(0, np.int64)]
    for length in np.unique(pages.lengths).tolist():
        rows = pages.start[:-1][pages.lengths == length][:, None] + np.arange(length)
        pair, clicked = pages.pair[rows].astype(np.int64), pages.clicked[rows]
        for rank in range(length):
            here = clicked[:, rank]
            page, other = np.nonzero(rule.losers(clicked[here], rank))
            winners = pair[here][:, rank]
            parts.append(winners[page] * number + pair[here][page, other])
    return np.concatenate(parts)

"""How much of today's traffic sampled topics cover, and where traffic has moved since they were drawn.

The sample alone answers: each topic stands for 1 / π queries, so the searches of today for the topics estimate those for all
queries that could have been drawn. What is missing from the traffic of today are queries that could not be drawn then.
Intervals and the tests of drift need topics that were drawn in proportion to traffic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import refuse_below, shortened
from cranfield.base.results import Answer, Cell, Layout, Table, fitted
from cranfield.base.results import plain as plain_values
from cranfield.base.text_layout import counted, p_value
from cranfield.evaluation.topics import DESIGN, FREQUENCY, PROBABILITY, STRATUM
from cranfield.formats.query_text import normalised
from cranfield.pooling.topic_sampling import TOPIC_DESIGNS, QueryTraffic, share_text
from cranfield.stats.correction import correct
from cranfield.stats.count_drift import (
    CountsOfTwoPeriods,
    DriftDistance,
    EstimatedTotal,
    drift_distance,
    later_total,
    shifted_shares,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.base.results import Part
    from cranfield.formats.topic_tables import TopicTable

ALPHA = 0.05  # of the tests of drift
LEVEL = 0.95
# Searches for the same query by one unit, up to which the tests of drift held in simulations: with queries of 3 units or
# more, and with rarer ones.
MOST_REPEATS, RARE_REPEATS, RARE = 1.5, 1.1, 3
SHOWN = 10  # changed topics in a text


class CoveredTopic(NamedTuple):
    """A topic's searches when it was drawn and today, and the change of its share against the other topics."""

    topic: str
    query: str
    then: float  # NaN if the file does not say
    now: int
    ratio: float  # NaN without a test
    p: float  # Holm's
    stratum: str = ""


class EstimatedShare(NamedTuple):
    """A share with its 95 % interval; NaN limits if there is none."""

    share: float
    low: float
    high: float

    def text(self) -> str:
        """The share, with its interval if there is one."""
        ends = "" if math.isnan(self.low) else f" [{share_text(self.low)}, {share_text(self.high)}]"
        return share_text(self.share) + ends


class StratumShare(NamedTuple):
    """A stratum's share of the searches for queries that could be drawn: then, and today."""

    name: str
    topics: int
    then: float
    now: EstimatedShare


@dataclass(frozen=True, repr=False, eq=False)
class TopicCoverage(Answer):
    """The share of traffic of the topics' own queries, and the share that the topics represent as a sample."""

    where: str
    traffic: QueryTraffic
    topics: tuple[CoveredTopic, ...]
    own: float  # the share of all searches that are for the topics' own queries
    own_in_frame: float  # the same, among the queries that could be drawn today
    represented: EstimatedShare | None  # the share of all searches that are for queries that could be drawn
    distance: DriftDistance | None
    strata: tuple[StratumShare, ...]
    caution: str  # why there is no estimate or no test; empty if there are all

    @property
    def changed(self) -> list[CoveredTopic]:
        """The topics whose share has changed significantly, by Holm's correction; the clearest change first."""
        return sorted((each for each in self.topics if each.p < ALPHA), key=lambda each: (each.p, each.topic))

    def verdict(self) -> str:
        """The share that the topics represent, and their own."""
        topics, own, where = counted(len(self.topics), "topic"), share_text(self.own), self.traffic.where
        if self.represented is None:
            return f"The queries of {topics} make up {own} of the searches in {where}."
        rest = 1 - self.represented.share
        others = f" The other {share_text(rest)} are for queries that could not be drawn." if rest > 1e-9 else ""
        one = len(self.topics) == 1
        verb, whose = ("represents", "its own query makes") if one else ("represent", "their own queries make")
        represented = f"{topics} {verb} {self.represented.text()} of the searches in {where}"
        return f"{represented}; {whose} up {own}.{others}"

    def drift(self) -> str:
        """Whether the shares of queries have moved; empty without a test."""
        if self.distance is None:
            return ""
        distance, noise, p = self.distance
        verdict = "Traffic has drifted" if p < ALPHA else "No drift shows"
        figures = f"{share_text(distance)} of searches moved to other queries; chance alone moves {share_text(noise)}"
        return f"{verdict}: {figures} (total variation distance, p {p_value(p)})."

    def content(self, how: Layout) -> Iterable[Part]:
        yield self.verdict()
        if self.distance is not None:
            yield self.drift()
        if self.strata:
            yield self._strata_table()
        changed = self.changed
        if changed:
            yield fitted(self._changed_table(changed, how), 1, how.limit)
        elif not self.strata:
            yield self._shares_table()

    def _shares_table(self) -> Table:
        rows: list[list[Cell | str]] = [
            [
                "topics themselves",
                Cell(share_text(self.own), self.own),
                Cell(share_text(self.own_in_frame), self.own_in_frame),
            ]
        ]
        return Table(["share of searches", "of all", "of queries that could be drawn today"], rows, title="Coverage")

    def _strata_table(self) -> Table:
        rows: list[list[Cell | str]] = [
            [
                each.name,
                Cell(str(each.topics), each.topics),
                Cell(share_text(each.then), each.then),
                Cell(each.now.text(), each.now.share),
            ]
            for each in self.strata
        ]
        return Table(
            ["stratum", "topics", "then", "today"], rows, title="Strata: shares of the searches that topics represent"
        )

    def _changed_table(self, changed: Sequence[CoveredTopic], how: Layout) -> Table:
        some = changed if how.every or how.medium != "text" else changed[:SHOWN]
        rows: list[list[Cell | str]] = [
            [
                each.topic,
                each.query,
                Cell(f"{each.then:,.0f}", each.then),
                Cell(f"{each.now:,}", each.now),
                Cell(f"× {each.ratio:.2f}", each.ratio),
                Cell(how.p_value(each.p), each.p),
            ]
            for each in some
        ]
        rest = f"… {len(changed) - len(some):,} more" if len(some) < len(changed) else ""
        head = ["topic", "query", "then", "today", "share", "p (Holm)"]
        return Table(head, rows, 2, rest=rest, title="Topics whose share of searches has changed")

    def notes(self, shell: bool = False) -> list[str]:
        gone = sum(each.now == 0 for each in self.topics)
        notes = [self.caution] if self.caution else []
        notes += [f"{counted(gone, 'topic')} had no searches in {self.traffic.where}"] if gone else []
        if self.distance is not None and self.traffic.min_units is None:
            notes.append("the tests take searches for independent, as the log does not say who searched")
        return notes + [each for each in self.traffic.notes() if "spellings" not in each]

    def records(self, how: Layout) -> list[list[Any]]:
        """A row for each topic."""
        rows = ([*each[:3], each.now, *each[4:]] for each in self.topics)
        return [["topic", "query", "then", "now", "ratio", "p", "stratum"], *rows]

    def plain(self, how: Layout) -> dict[str, Any]:
        represented, distance = self.represented, self.distance
        values = {
            "own": self.own,
            "own_in_frame": self.own_in_frame,
            "represented": None if represented is None else represented._asdict(),
            "drift": None if distance is None else {**distance._asdict(), "excess": distance.excess},
            "strata": [{**each._asdict(), "now": each.now._asdict()} for each in self.strata],
            "topics": [each._asdict() for each in self.topics],
        }
        searches = {"all": self.traffic.everything, "frame": self.traffic.total}
        return {"searches": searches, **plain_values(values, how.digits), "caution": self.caution}


def topic_coverage(table: TopicTable, traffic: QueryTraffic, *, seed: int = 0) -> TopicCoverage:
    """The share of the searches in a log that topics cover; `table` is what `topics sample` wrote, or any topics."""
    refuse_below(0, seed=seed)
    forms = _forms(table)
    now = {topic: traffic.of(form) for topic, form in forms.items()}
    own = sum(now.values()) / traffic.everything
    framed = dict(zip(traffic.forms, traffic.searches.tolist(), strict=True))
    own_in_frame = sum(framed.get(form, 0) for form in forms.values()) / traffic.total
    columns, caution = _design_columns(table, list(forms))
    strata = {topic: table.columns.get(STRATUM, {}).get(topic, "") for topic in forms}
    if columns is None:
        topics = tuple(
            CoveredTopic(topic, table.queries[topic], math.nan, now[topic], math.nan, math.nan, strata[topic])
            for topic in forms
        )
        return TopicCoverage(table.where, traffic, topics, own, own_in_frame, None, None, (), caution)
    then, probability = columns
    counts = CountsOfTwoPeriods(
        then,
        np.array(list(now.values()), np.float64),
        probability,
        probability < 1,
        traffic.min_units or 1,
        traffic.repeats,
    )
    names = list(strata.values())
    represented = _share_of(later_total(counts, names), traffic.everything, own)
    caution = _no_test(traffic, counts)
    if caution:
        distance, ratio, p = None, *(np.full(len(forms), math.nan),) * 2
    else:
        distance = drift_distance(counts, np.random.default_rng(seed))
        ratio, p = shifted_shares(counts)
        p = correct(p, "holm")
    topics = tuple(
        CoveredTopic(topic, table.queries[topic], each_then, now[topic], each_ratio, each_p, strata[topic])
        for topic, each_then, each_ratio, each_p in zip(forms, then.tolist(), ratio.tolist(), p.tolist(), strict=True)
    )
    shares = _strata_shares(counts, names) if len(set(names)) > 1 and counts.now.any() else ()
    return TopicCoverage(table.where, traffic, topics, own, own_in_frame, represented, distance, shares, caution)


def _no_test(traffic: QueryTraffic, counts: CountsOfTwoPeriods) -> str:
    """Why drift is not tested; empty if it is."""
    most = MOST_REPEATS if (traffic.min_units or 1) >= RARE else RARE_REPEATS
    if traffic.repeats > most:
        times = f"a unit makes the same search {traffic.repeats:.2f} times on average, so searches are not independent"
        return f"{times}; drift is tested up to {most:g} times"
    if len(counts.then) < 2 or not counts.now.any():
        return "drift is tested for two topics or more, of which one is still searched for"
    return ""


def _forms(table: TopicTable) -> dict[str, str]:
    """The normal form of each topic's query."""
    forms = {topic: normalised(query) for topic, query in table.queries.items()}
    if not forms:
        raise DataError(f"{table.where}: expected a column query with the queries of the topics; it has {table.names}")
    first: dict[str, str] = {}
    for topic, form in forms.items():
        if form in first:
            problem = f"topics {first[form]!r} and {topic!r} both ask {shortened(table.queries[topic])!r}"
            raise DataError(f"{table.where}: {problem}; leave one of them out")
        first[form] = topic
    return forms


def _design_columns(table: TopicTable, topics: list[str]) -> tuple[tuple[Floats, Floats] | None, str]:
    """The frequencies and inclusion probabilities, or why they give no estimate."""
    lacking = [name for name in (FREQUENCY, PROBABILITY, DESIGN) if name not in table.columns]
    if lacking:
        return None, f"{table.where} has no column {lacking[0]}, so the topics are no sample of the other queries"
    designs = {table.columns[DESIGN].get(topic, "") for topic in topics}
    if len(designs) > 1:
        raise DataError(f"{table.where}: expected one design, found {', '.join(map(repr, sorted(designs)))}")
    [name] = designs
    design = TOPIC_DESIGNS.look_up(name)
    numbers = []
    for column, most in ((FREQUENCY, math.inf), (PROBABILITY, 1.0)):
        values = table.numbers(column, "read the sample from")
        for topic in topics:
            if not 0 < values.get(topic, 0) <= most:
                expected = f"expected a number above 0{' and at most 1' if most == 1 else ''}"
                found = f"found {table.columns[column].get(topic, '')!r} for topic {topic!r}"
                raise DataError(f"{table.where}: column {column}: {expected}, {found}")
        numbers.append(np.array([values[topic] for topic in topics]))
    if not design.proportional:
        return (
            None,
            f"the design is {name}: topics that were not drawn in proportion to traffic do not estimate its drift",
        )
    return (numbers[0], numbers[1]), ""


def _share_of(total: EstimatedTotal, everything: int, least: float) -> EstimatedShare:
    """An estimated total as a share of all searches; not below the topics' own share, and not above 1."""
    low, high = (total.total + sign * _half_width(total) for sign in (-1, 1))
    ends = (float(np.clip(each / everything, least, 1.0)) for each in (low, high))
    return EstimatedShare(min(total.total / everything, 1.0), *ends)


def _half_width(total: EstimatedTotal) -> float:
    """Half the width of the 95 % interval; NaN without one, 0 if every topic was certain."""
    if not total.error > 0:
        return total.error
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

    return float(stdtrit(total.freedom, (1 + LEVEL) / 2)) * total.error


def _strata_shares(counts: CountsOfTwoPeriods, names: Sequence[str]) -> tuple[StratumShare, ...]:
    """The share of each stratum then and today, among the searches for queries that could be drawn."""
    whole = later_total(counts).total
    shares = []
    for name in dict.fromkeys(names):
        inside = np.array([each == name for each in names])
        now = later_total(replace(counts, now=counts.now * inside)).total / whole
        # The share is a ratio of two estimates; its error is that of the sum of what each topic adds to it.
        error = later_total(replace(counts, now=counts.now * (inside - now)), names)
        half = _half_width(error) / whole
        ends = (float(np.clip(now + sign * half, 0, 1)) for sign in (-1, 1))
        then = float(counts.represented[inside].sum())
        shares.append(StratumShare(name, int(inside.sum()), then, EstimatedShare(now, *ends)))
    return tuple(shares)

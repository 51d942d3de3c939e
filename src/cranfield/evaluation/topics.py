"""Which topics count, and how much: topics that are missing or unjudged, and weights of topics.

Nothing vanishes silently: `Absent` holds the topics that the conventions score 0 or leave out, and reports them. A
single topic is named; of several topics the first are named and all are counted; many runs share a sentence.

A weight (traffic, importance) is known before anything is scored. Every topic that is scored needs one; a weight of 0
leaves the topic out. Only the ratios between weights matter.

Topics that were sampled from a query log have design weights: frequency / inclusion probability. Their mean describes
all searches of the log, and its error comes from the design of the sample.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import LARGEST_SCORE
from cranfield.base.qrels import Queries
from cranfield.base.text_layout import counted, listed, name_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.base.conventions import Conventions
    from cranfield.base.kernels.table import Floats
    from cranfield.formats.topic_tables import TopicTable
    from cranfield.stats.sampled_means import ProbabilitySample


MANY = 5  # more runs than this share one sentence
ZERO = "scores 0", "score 0"
SKIP = "is left out", "are left out"


@dataclass(repr=False)
class Absent:
    """Topics and lines that are missing or were skipped, by reason."""

    missing: dict[str, list[str]] = field(default_factory=dict)  # run → topics judged but not answered
    empty: dict[str, list[str]] = field(default_factory=dict)  # run → judged topics answered with an empty list
    unjudged: dict[str, list[str]] = field(default_factory=dict)  # run → topics answered but not judged
    no_relevant: list[str] = field(default_factory=list)  # topics without a relevant document
    highest_grade: float | None = None  # if it is above 0, but too low for any document to be relevant
    skipped: dict[str, int] = field(default_factory=dict)  # run → malformed lines passed over (lenient reading)
    skipped_qrels: int = 0  # the same for the judgments
    not_judged: list[str] = field(default_factory=list)  # requested topics that are not judged (lenient reading)
    by_text: dict[str, int] = field(default_factory=dict)  # file → number of topics that it names by their queries

    def to_dict(self) -> dict[str, Any]:
        """The reasons that apply, for JSON."""
        return {reason: what for reason, what in vars(self).items() if what}

    def select(self, runs: list[str], topics: list[str]) -> Absent:
        """The part that concerns some runs and topics."""
        subset = set(topics)
        missing, empty = (
            {run: [topic for topic in of.get(run, []) if topic in subset] for run in runs}
            for of in (self.missing, self.empty)
        )
        return replace(
            self,
            missing={run: topics for run, topics in missing.items() if topics},
            empty={run: topics for run, topics in empty.items() if topics},
            unjudged={run: self.unjudged[run] for run in runs if run in self.unjudged},
            no_relevant=[topic for topic in self.no_relevant if topic in subset],
            skipped={run: self.skipped[run] for run in runs if run in self.skipped},
        )

    def _joined_by_query(self) -> list[str]:
        if not self.by_text:
            return []
        from cranfield.formats.topic_tables import joined_in_words

        return [joined_in_words(name, number) for name, number in self.by_text.items()]

    def in_words(self, conventions: Conventions, judged: int, shell: bool = False) -> list[str]:
        """A sentence for each reason. Hints name Python arguments, or command-line options if `shell` is set."""
        then, hint = _treatment("missing", conventions.missing, shell)
        notes = self._joined_by_query()
        notes += _missing(self.missing, judged, then, hint)
        notes += _empty(self.empty)
        if self.no_relevant:
            then, hint = _treatment("no_relevant", conventions.no_relevant, shell)
            notes.append(_topics(self.no_relevant, "has no relevant document", "have no relevant document", then, hint))
        if self.highest_grade is not None:
            use = "--rel" if shell else "rel="
            notes.append(
                f"no grade reaches the lowest relevant one; the highest is {self.highest_grade:.4g} ({use} sets it)"
            )
        notes += _unjudged(self.unjudged)
        for name, number in {"the judgments": self.skipped_qrels, **self.skipped}.items():
            if number:
                notes.append(f"{number} malformed line{'s' if number > 1 else ''} of {name} skipped")
        if self.not_judged:
            clauses = "was requested but is not judged", "were requested but are not judged"
            notes.append(_topics(self.not_judged, *clauses, SKIP))
        return notes


def _treatment(name: str, value: str, shell: bool) -> tuple[tuple[str, str], str]:
    """What happens to such topics, and a hint how to change it."""
    other, to = ("zero", "to score {} 0") if value == "skip" else ("skip", "to leave {} out")
    use = f"use --{name.replace('_', '-')} {other}" if shell else f'use {name}="{other}"'
    return (SKIP if value == "skip" else ZERO), f"{use} {to}"


def _topics(topics: list[str], one: str, many: str, then: tuple[str, str], hint: str = "", whose: str = "") -> str:
    alone = len(topics) == 1
    what = f"topic {topics[0]!r}{whose} {one}; it {then[0]}"
    if not alone:
        what = f"{len(topics)} topics{whose} {many} ({listed(topics)}); they {then[1]}"
    return f"{what} ({hint.format('it' if alone else 'them')})" if hint else what


def _missing(missing: dict[str, list[str]], judged: int, then: tuple[str, str], hint: str) -> list[str]:
    if len(missing) > MANY:
        sizes = sorted(map(len, missing.values()))
        span = f"{sizes[0]} to {sizes[-1]} each" if sizes[0] != sizes[-1] else f"{sizes[0]} each"
        name, topics = next(iter(missing.items()))
        first = f"{name} lacks {listed(topics, most=3)}"
        return [f"{len(missing)} runs lack judged topics ({span}; {first}); they {then[1]} ({hint.format('them')})"]
    notes = []
    for run, topics in missing.items():
        if len(topics) == judged:
            notes.append(f"{run} answers none of the {judged} judged topics; is it a run for these judgments?")
        else:
            lack = f"is judged but missing from {run}", f"are judged but missing from {run}"
            notes.append(_topics(topics, *lack, then, hint))
    return notes


def _empty(empty: dict[str, list[str]]) -> list[str]:
    if len(empty) > MANY:
        name, topics = next(iter(empty.items()))
        first = f"{name} for {listed(topics, most=3)}"
        return [f"{len(empty)} runs answer judged topics with an empty list ({first}); they score 0"]
    return [
        _topics(topics, f"is answered by {run} with an empty list", f"are answered by {run} with empty lists", ZERO)
        for run, topics in empty.items()
    ]


def _unjudged(unjudged: dict[str, list[str]]) -> list[str]:
    if len(unjudged) > MANY:
        name, topics = next(iter(unjudged.items()))
        every = len({topic for each in unjudged.values() for topic in each})
        first = f"{name} has {listed(topics, most=3)}"
        return [f"{len(unjudged)} runs answer topics that are not judged ({every} in all; {first}); they are left out"]
    one, many = "is not judged", "are not judged"
    return [_topics(topics, one, many, SKIP, whose=f" of {run}") for run, topics in unjudged.items()]


UNNAMED = "weight"


@dataclass(frozen=True, eq=False, repr=False)
class TopicWeights:
    """The weight of each topic, and the name of these weights."""

    by: str
    values: Mapping[str, float]
    where: str = ""  # the file or collection that they come from
    left_out: tuple[str, ...] = ()  # topics of weight 0
    designed: ClassVar[bool] = False  # whether the weights come from the design of a sample

    def __repr__(self) -> str:
        """The name of the weights and the number of topics.

        >>> TopicWeights("value", {"q1": 3, "q2": 1})
        <TopicWeights by value, 2 topics>
        """
        return f"<{type(self).__name__} by {self.by}, {counted(len(self.values), 'topic')}>"

    def fitted(self, topics: Sequence[str]) -> TopicWeights:
        """The weights of some topics, which all need one; topics of weight 0 are left out."""
        start = f"{self.where}: {self.by}" if self.where else self.by
        lacking = [topic for topic in topics if topic not in self.values]
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            raise DataError(f"{start}: no weight for topic {lacking[0]!r}{more}; give each topic one (0 leaves it out)")
        for topic in topics:
            if not 0 <= self.values[topic] < math.inf:
                problem = f"expected a weight of 0 or more for topic {topic!r}, found {self.values[topic]:g}"
                raise DataError(f"{start}: {problem}")
        positive = {topic: self.values[topic] for topic in topics if self.values[topic] > 0}
        if topics and not positive:
            raise DataError(f"{start}: the weight of every topic is 0")
        return replace(self, values=positive, left_out=tuple(topic for topic in topics if topic not in positive))

    def of(self, topics: Sequence[str]) -> Floats:
        """The weights of topics in their order."""
        return np.array([self.values[topic] for topic in topics], np.float64)

    def sample(self, topics: Sequence[str]) -> ProbabilitySample | None:
        """How topics were drawn from a larger population; None if the weights are no design weights."""
        return None

    def effective(self, topics: Sequence[str]) -> float:
        """The effective number of topics: so many topics of equal weight carry as much information (Kish, 1965)."""
        from cranfield.stats.weighted_means import effective_size

        return effective_size(self.of(topics))

    def in_words(self, topics: Sequence[str]) -> str:
        """What the weights are, and the effective number of topics."""
        number = f"{len(topics)} topic{'' if len(topics) == 1 else 's'}"
        effective = f"{self.effective(topics):.3g} of equal weight (effective topics)"
        return f"weighted by {self.by}: {number} count as {effective}"

    def notes(self) -> list[str]:
        """A sentence about the topics of weight 0, if there are any."""
        if not self.left_out:
            return []
        named = f"{listed(list(self.left_out), most=3)}: {self.by} 0"
        if len(self.left_out) == 1:
            return [f"1 topic has no weight and is left out ({named})"]
        return [f"{len(self.left_out)} topics have no weight and are left out ({named})"]

    def plain(self, topics: Sequence[str]) -> dict[str, Any]:
        """The weights' name and effect, for JSON."""
        return {
            "by": self.by,
            "topics": len(topics),
            "effective_topics": self.effective(topics),
            "left_out": list(self.left_out),
        }


FREQUENCY, PROBABILITY, DESIGN, STRATUM = "frequency", "inclusion_probability", "design", "stratum"
FRAME_SHARE = "frame_share"  # the share of all searches of the log that are for queries that could be drawn
NEARLY_ALL = 0.99  # share of searches from which on the frame counts as all traffic
TOP = "top"  # the design that takes the most frequent queries
CERTAIN = 1 - 1e-9  # probabilities from here on are 1, but for rounding
NEARLY = 0.01  # relative difference up to which ratios count as equal; probabilities in files are rounded


class SampledTopic(NamedTuple):
    """One topic of a sample from a query log: its searches, the probability that it was drawn, and its stratum."""

    frequency: float
    probability: float
    stratum: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class DesignWeights(TopicWeights):
    """Weights that make the mean of sampled topics describe the traffic of the queries that could be drawn.

    A weight is frequency / inclusion probability.

    >>> weights = DesignWeights.from_columns({"q1": 60, "q2": 10, "q3": 10}, {"q1": 1, "q2": 0.5, "q3": 0.5}, "systematic")
    >>> weights.fitted(["q1", "q2", "q3"]).in_words(["q1", "q2", "q3"])
    'weighted by traffic: 3 sampled topics (systematic, 1 certain) count as 25 of equal weight (effective topics)'
    """

    designed: ClassVar[bool] = True

    design: str = ""  # the name of the sampling design; may be unknown
    sampled: Mapping[str, SampledTopic] = field(default_factory=dict)  # every topic of the sample
    not_scored: tuple[str, ...] = ()  # sampled topics that are not judged or not selected
    frame_share: float | None = None  # the share of all searches that the mean describes; None if unknown

    @classmethod
    def from_columns(
        cls,
        frequency: Mapping[str, Any],
        probability: Mapping[str, Any],
        design: str = "",
        stratum: Mapping[str, str] | None = None,
        *,
        where: str = "",
        frame_share: float | None = None,
    ) -> DesignWeights:
        """The weights of a sample: searches and inclusion probability of each topic, the design, and strata if any.

        `frame_share` is the share of the log's searches that are for queries that could be drawn.
        """
        start = f"{where}: " if where else ""
        if frame_share is not None and not 0 < frame_share <= 1:
            raise DataError(f"{start}{FRAME_SHARE}: expected a number above 0 and at most 1, found {frame_share:g}")
        if design == TOP:
            raise DataError(
                f"{start}the topics are the most frequent queries (design {TOP}), and the others could not be drawn; no mean "
                f"of them describes all traffic: leave design weights out, or sample topics by traffic"
            )
        strata, sampled = stratum or {}, {}
        for topic, searches in frequency.items():
            if topic not in probability:
                raise DataError(f"{start}{PROBABILITY}: no value for topic {topic!r}; each sampled topic needs one")
            chance = _number(f"{start}{PROBABILITY}", topic, probability[topic])
            count = _number(f"{start}{FREQUENCY}", topic, searches)
            if not 0 <= count <= LARGEST_SCORE:
                raise DataError(
                    f"{start}{FREQUENCY}: expected a number from 0 to {LARGEST_SCORE:g} for topic {topic!r}, found {count:g}"
                )
            if not 1 / LARGEST_SCORE <= chance <= 1:
                expected = "expected a number above 0 and at most 1"
                raise DataError(f"{start}{PROBABILITY}: {expected} for topic {topic!r}, found {chance:g}")
            sampled[str(topic)] = SampledTopic(count, 1.0 if chance >= CERTAIN else chance, strata.get(topic, ""))
        if not sampled:
            raise DataError(f"{start}no topic has a {FREQUENCY}; cranfield topics sample writes it")
        values = {topic: each.frequency / each.probability for topic, each in sampled.items()}
        return cls("traffic", values, where, design=design, sampled=sampled, frame_share=frame_share)

    @classmethod
    def read(cls, topics: Any) -> DesignWeights:
        """The weights from a topics file or collection, with the columns that `cranfield topics sample` writes."""
        from cranfield.formats.collection_folder import read_collection
        from cranfield.formats.runs_and_qrels import qrels_in
        from cranfield.formats.topic_tables import read_topic_table, table_of_topics

        path = os.fspath(topics)
        if qrels_in(path) != path:
            return cls.of_table(table_of_topics(read_collection(path).topics, path))
        return cls.of_table(read_topic_table(path))

    @classmethod
    def of_table(cls, table: TopicTable) -> DesignWeights:
        """The weights from the columns of topics."""
        for name in (FREQUENCY, PROBABILITY):
            if name not in table.columns:
                raise DataError(
                    f"{table.where}: no column {name!r} for design weights; it has {table.names} (cranfield topics sample "
                    f"writes {FREQUENCY} and {PROBABILITY})"
                )
        frequency, probability = (table.numbers(name) for name in (FREQUENCY, PROBABILITY))
        frequency = {topic: searches for topic, searches in frequency.items() if topic in probability}
        designs = sorted({text for text in table.columns.get(DESIGN, {}).values() if text})
        if len(designs) > 1:
            raise DataError(
                f"{table.where}: expected one design of the sample, found {name_list(designs)}; probabilities of two "
                "samples do not go together, so evaluate each sample alone"
            )
        share = min(table.numbers(FRAME_SHARE).values(), default=None) if FRAME_SHARE in table.columns else None
        columns = frequency, probability, "".join(designs), table.columns.get(STRATUM)
        return cls.from_columns(*columns, where=table.where, frame_share=share)

    def fitted(self, topics: Sequence[str]) -> DesignWeights:
        """The weights of some topics; topics that are not in the sample are left out."""
        values = {
            topic: each.frequency / each.probability
            for topic in topics
            if (each := self.sampled.get(topic)) is not None and each.frequency > 0
        }
        if topics and not values:
            start = f"{self.where}: " if self.where else ""
            several = f"none of the {counted(len(topics), 'topic')} to score ({listed(list(topics), most=3)})"
            sample = f"the sample of {counted(len(self.sampled), 'topic')} ({listed(list(self.sampled), most=3)})"
            raise DataError(f"{start}{several} has searches in {sample}; are the topics numbered alike?")
        scored = set(topics)
        return replace(
            self,
            values=values,
            left_out=tuple(topic for topic in topics if topic not in values),
            not_scored=tuple(topic for topic in self.sampled if topic not in scored),
        )

    def sample(self, topics: Sequence[str]) -> ProbabilitySample:
        """How these topics were drawn."""
        from cranfield.stats.sampled_means import ProbabilitySample

        chosen = [self.sampled[topic] for topic in topics]
        return ProbabilitySample.of(
            [each.frequency for each in chosen],
            [each.probability for each in chosen],
            [each.stratum for each in chosen],
        )

    def effective(self, topics: Sequence[str]) -> float:
        """The effective number of topics: so many, drawn one by one by traffic, give as precise a mean.

        It is infinite if every topic was certain to be drawn.
        """
        return self.sample(topics).effective_size

    def in_words(self, topics: Sequence[str]) -> str:
        """What the weights are, how the topics were drawn, and the effective number of topics."""
        certain, effective = self._certain(topics), self.effective(topics)
        how = ", ".join([*([self.design] if self.design else []), f"{certain or 'none'} certain"])
        start = f"weighted by {self.by}: {counted(len(topics), 'sampled topic')} ({how})"
        if math.isinf(effective):
            return f"{start} are all that were searched for, so the mean has no sampling error"
        return f"{start} {'counts' if len(topics) == 1 else 'count'} as {effective:,.3g} of equal weight (effective topics)"

    def notes(self) -> list[str]:
        """Sentences about topics that are left out or missing, and about a design that gives no interval."""
        notes = []
        strangers = [topic for topic in self.left_out if topic not in self.sampled]
        if strangers:
            what = (
                "1 topic is not in the sample and is"
                if len(strangers) == 1
                else f"{len(strangers)} topics are not in the sample and are"
            )
            notes.append(f"{what} left out ({listed(strangers, most=3)})")
        unsearched = [topic for topic in self.left_out if topic in self.sampled]
        if unsearched:
            what = "1 topic has" if len(unsearched) == 1 else f"{len(unsearched)} topics have"
            notes.append(
                f"{what} the {FREQUENCY} 0 and {'is' if len(unsearched) == 1 else 'are'} left out ({listed(unsearched, most=3)})"
            )
        if self.not_scored:
            notes.append(self._not_scored_in_words())
        if self.frame_share is not None and self.frame_share < NEARLY_ALL:
            share = f"{self.frame_share:.{0 if self.frame_share >= 0.1 else 2}%}"
            notes.append(
                f"means describe {share} of the searches in the log; the queries of the others, such as rare ones, were left "
                "out before topics were drawn"
            )
        notes += self._doubts()
        return notes

    def _not_scored_in_words(self) -> str:
        """The sampled topics that have no scores, and what follows for the mean."""
        certain = self._certain(self.not_scored)
        are = "is" if len(self.not_scored) == 1 else "are"
        what = (
            f"{len(self.not_scored)} of {counted(len(self.sampled), 'sampled topic')} {are} not judged or not selected"
        )
        named = listed(list(self.not_scored), most=3)
        if certain:
            lost = f"{certain} of them certain" if len(self.not_scored) > 1 else "certain to be drawn"
            return f"{what} ({named}), {lost}: the mean does not describe the traffic of {'these' if certain > 1 else 'that one'}"
        return f"{what} ({named}); the others stand for their traffic too"

    def _doubts(self) -> list[str]:
        """Why the mean has no interval, if that is due to the design of the sample."""
        from cranfield.stats.sampled_means import UNEVEN

        topics = list(self.values)
        if not topics or self.sample(topics).no_interval != UNEVEN:
            return []
        design = f" ({self.design})" if self.design else ""
        stratified = len({self.sampled[topic].stratum for topic in topics}) > 1
        held = "63 to 93 of 100 uniform samples of strata" if stratified else "15 to 85 of 100 uniform samples"
        return [
            f"the topics were not drawn by traffic{design}, so the most frequent ones decide the mean by traffic; it has no "
            f"interval and no test, because 95% intervals held in only {held} that were simulated"
        ]

    def _certain(self, topics: Sequence[str]) -> int:
        return sum(self.sampled[topic].probability == 1 for topic in topics)

    def plain(self, topics: Sequence[str]) -> dict[str, Any]:
        """The design and its effect, for JSON; the effective number is None if all topics were certain."""
        sample, effective = self.sample(topics), self.effective(topics)
        return {
            "by": self.by,
            "design": self.design or None,
            "topics": len(topics),
            "certain": self._certain(topics),
            "strata": len({self.sampled[topic].stratum for topic in topics}),
            "frame_share": self.frame_share,
            "effective_topics": None if math.isinf(effective) else effective,
            "degrees_of_freedom": sample.freedom,
            "no_interval": sample.no_interval or None,
            "left_out": list(self.left_out),
            "not_scored": list(self.not_scored),
        }


def _number(where: str, topic: Any, value: Any) -> float:
    """A number of a topic; DataError for anything else."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(f"{where}: expected a number for topic {str(topic)!r}, found {value!r:.40}") from None


def refuse_weighing_twice(table: TopicTable, name: str, weights: Mapping[str, float]) -> None:
    """Raise DataError for weights by traffic if the topics were drawn by traffic: the mean would count it twice.

    That is so if the column is the frequency, or in proportion to the inclusion probabilities within each stratum.
    """
    if PROBABILITY not in table.columns:
        return
    numbers, strata = table.numbers(PROBABILITY, "weigh by"), table.columns.get(STRATUM, {})
    drawn = [topic for topic, chance in numbers.items() if 0 < chance < CERTAIN and weights.get(topic, 0) > 0]
    chances: dict[str, list[float]] = {}
    ratios: dict[str, list[float]] = {}
    for topic in drawn:
        stratum = strata.get(topic, "")
        chances.setdefault(stratum, []).append(numbers[topic])
        ratios.setdefault(stratum, []).append(weights[topic] / numbers[topic])
    if drawn and name == FREQUENCY:  # next to certain topics, drawn ones of the same frequency had the same chance
        for topic, chance in numbers.items():
            if chance >= CERTAIN and (stratum := strata.get(topic, "")) in chances:
                chances[stratum].append(chance)
    if not any(map(_varies, chances.values())):  # within a stratum all had the same chance
        return
    if name == FREQUENCY or not any(map(_varies, ratios.values())):
        raise DataError(
            f"{table.where}: {name}: the topics were drawn in proportion to it ({PROBABILITY}), so weights would count it "
            "twice; use --design-weights (weights=DesignWeights in Python), or no weights"
        )


def unweighted_sample_in_words(table: TopicTable) -> str:
    """What the plain mean of sampled topics leaves out; empty if it describes all traffic, or nobody could expect it to."""
    needed = (FREQUENCY, PROBABILITY)
    if not all(name in table.columns for name in needed) or TOP in table.columns.get(DESIGN, {}).values():
        return ""
    frequency, probability = (table.numbers(name) for name in needed)
    searches = {topic: count for topic, count in frequency.items() if 0 < probability.get(topic, 0) <= 1}
    total = sum(searches[topic] / probability[topic] for topic in searches)
    certain = [topic for topic in searches if probability[topic] >= CERTAIN]
    if not 0 < len(certain) < len(searches):
        return ""
    share, plain = sum(searches[topic] for topic in certain) / total, len(certain) / len(searches)
    if share <= plain * (1 + NEARLY):
        return ""
    some = f"{len(certain)} of {counted(len(searches), 'sampled topic')} {'have' if len(certain) > 1 else 'has'}"
    what = f"{some} {share:.0%} of the traffic and {plain:.0%} of the plain mean"
    return f"{table.where}: {what}; --design-weights describes all queries that could be drawn"


def _varies(values: list[float]) -> bool:
    return max(values) > min(values) * (1 + NEARLY)


def as_weights(weights: Any, judgments: Any = None) -> TopicWeights:
    """Read weights: a mapping of topics, or the name of a column if `judgments` is the path of a collection.

    `DesignWeights` are returned as they are.

    >>> as_weights({"q1": 3, "q2": 1}).fitted(["q1", "q2"]).in_words(["q1", "q2"])
    'weighted by weight: 2 topics count as 1.6 of equal weight (effective topics)'
    """
    if isinstance(weights, TopicWeights):
        return weights
    if isinstance(weights, str):
        return _column(weights, judgments)
    if not isinstance(weights, Mapping):
        expected = "expected a mapping of topics to numbers, or a column's name"
        raise ConventionError(f"weights: {expected}, found {weights!r:.60}")
    values = {}
    for topic, weight in weights.items():
        try:
            values[str(topic)] = float(weight)
        except (TypeError, ValueError):
            raise DataError(f"weights: expected a number for topic {str(topic)!r}, found {weight!r:.40}") from None
    return TopicWeights(UNNAMED, values)


def _column(name: str, judgments: Any) -> TopicWeights:
    """Read weights from a column of the collection's topics."""
    from cranfield.formats.collection_folder import read_collection
    from cranfield.formats.runs_and_qrels import qrels_in
    from cranfield.formats.topic_tables import table_of_topics

    path = os.fspath(judgments) if isinstance(judgments, (str, os.PathLike)) else ""
    if not path or qrels_in(path) == path:
        hint = "give a mapping of topics to weights, or a collection in place of the judgments"
        raise ConventionError(f"weights: only the ids of the topics are known, so there is no column {name!r}; {hint}")
    table = table_of_topics(read_collection(path).topics, path)
    return weights_of_column(table, name)


def weights_of_column(table: TopicTable, name: str) -> TopicWeights:
    """The weights in a column of topics; refused if the topics were sampled in proportion to it."""
    numbers = table.numbers(name)
    refuse_weighing_twice(table, name, numbers)
    return TopicWeights(name, numbers, table.where)


def queries_in(workspace: str | None) -> Queries | None:
    """The queries of a workspace's topics, read when first needed; None without a workspace or a collection."""
    if workspace is None:
        return None
    from cranfield.formats.collection_folder import DOCUMENTS, collection_home, read_collection
    from cranfield.formats.topic_tables import table_of_topics

    if DOCUMENTS not in collection_home(workspace)[1]:
        return None
    return Queries(lambda: table_of_topics(read_collection(workspace).topics, workspace).queries)

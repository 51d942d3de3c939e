"""Which topics count, and how much: topics that are missing or unjudged, and weights of topics.

Nothing vanishes silently: `Absent` holds the topics that the conventions score 0 or leave out, and reports them. A
single topic is named; of several topics the first are named and all are counted; many runs share a sentence.

A weight (traffic, importance) is known before anything is scored. Every topic that is scored needs one; a weight of 0
leaves the topic out. Only the ratios between weights matter.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.qrels import Queries
from cranfield.base.text_layout import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.base.conventions import Conventions
    from cranfield.base.kernels.table import Floats


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


def as_weights(weights: Any, judgments: Any = None) -> TopicWeights:
    """Read weights: a mapping of topics, or the name of a column if `judgments` is the path of a collection.

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
    return TopicWeights(name, table.numbers(name), path)


def queries_in(workspace: str | None) -> Queries | None:
    """The queries of a workspace's topics, read when first needed; None without a workspace or a collection."""
    if workspace is None:
        return None
    from cranfield.formats.collection_folder import DOCUMENTS, collection_home, read_collection
    from cranfield.formats.topic_tables import table_of_topics

    if DOCUMENTS not in collection_home(workspace)[1]:
        return None
    return Queries(lambda: table_of_topics(read_collection(workspace).topics, workspace).queries)

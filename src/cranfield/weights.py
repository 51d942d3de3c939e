"""How much each topic counts: by its traffic, or by its importance.

A weight belongs to a topic and is known before anything is scored. Every topic that is scored needs one; a weight of 0
leaves the topic out. Only what weights are to one another matters.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.columns import listed
from cranfield.errors import ConventionError, DataError
from cranfield.stats.weighing import effective_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.kernels.table import Floats

UNNAMED = "weight"


@dataclass(frozen=True)
class Weights:
    """The weight of each topic, and what they are called."""

    by: str
    values: Mapping[str, float]
    where: str = ""  # the file or collection that they come from
    left_out: tuple[str, ...] = ()  # topics of weight 0

    def fitted(self, topics: Sequence[str]) -> Weights:
        """Those of some topics, which all need one; topics of weight 0 are left out."""
        start = f"{self.where}: {self.by}" if self.where else self.by
        lacking = [topic for topic in topics if topic not in self.values]
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            raise DataError(f"{start}: no weight for topic {lacking[0]!r}{more}; give each topic one (0 leaves it out)")
        for topic in topics:
            if not 0 <= self.values[topic] < math.inf:
                found = f"expected a weight of 0 or more for topic {topic!r}, found {self.values[topic]:g}"
                raise DataError(f"{start}: {found}")
        kept = {topic: self.values[topic] for topic in topics if self.values[topic] > 0}
        if topics and not kept:
            raise DataError(f"{start}: the weight of every topic is 0")
        return replace(self, values=kept, left_out=tuple(topic for topic in topics if topic not in kept))

    def of(self, topics: Sequence[str]) -> Floats:
        """The weights of topics in their order."""
        return np.array([self.values[topic] for topic in topics], np.float64)

    def effective(self, topics: Sequence[str]) -> float:
        """How many topics of equal weight would say as much (Kish, 1965)."""
        return effective_size(self.of(topics))

    def in_words(self, topics: Sequence[str]) -> str:
        """What was weighed by, and what that leaves."""
        number = f"{len(topics)} topic{'' if len(topics) == 1 else 's'}"
        return (
            f"weighed by {self.by}: {number} count as {self.effective(topics):.3g} of equal weight (effective topics)"
        )

    def notes(self) -> list[str]:
        """Which topics were left out."""
        if not self.left_out:
            return []
        named = f"{listed(list(self.left_out), most=3)}: {self.by} 0"
        if len(self.left_out) == 1:
            return [f"1 topic has no weight and is left out ({named})"]
        return [f"{len(self.left_out)} topics have no weight and are left out ({named})"]

    def plain(self, topics: Sequence[str]) -> dict[str, Any]:
        """What was weighed by, for programs."""
        return {
            "by": self.by,
            "topics": len(topics),
            "effective_topics": self.effective(topics),
            "left_out": list(self.left_out),
        }


def as_weights(given: Any, judgments: Any = None) -> Weights:
    """Weights as one gives them: a mapping of topics, or the name of a column where `judgments` name a collection.

    >>> as_weights({"q1": 3, "q2": 1}).fitted(["q1", "q2"]).in_words(["q1", "q2"])
    'weighed by weight: 2 topics count as 1.6 of equal weight (effective topics)'
    """
    if isinstance(given, Weights):
        return given
    if isinstance(given, str):
        return _column(given, judgments)
    if not isinstance(given, Mapping):
        raise ConventionError(
            f"weights: expected a mapping of topics to numbers, or a column's name, found {given!r:.60}"
        )
    values = {}
    for topic, weight in given.items():
        try:
            values[str(topic)] = float(weight)
        except (TypeError, ValueError):
            raise DataError(f"weights: expected a number for topic {str(topic)!r}, found {weight!r:.40}") from None
    return Weights(UNNAMED, values)


def _column(name: str, judgments: Any) -> Weights:
    """A column of a collection's topics."""
    from cranfield.formats.folder import read_collection
    from cranfield.formats.reading import qrels_in
    from cranfield.formats.topics import table_of_topics

    path = os.fspath(judgments) if isinstance(judgments, (str, os.PathLike)) else ""
    if not path or qrels_in(path) == path:
        hint = "give a mapping of topics to weights, or a collection in place of the judgments"
        raise ConventionError(f"weights: nothing is known of the topics but their ids, so no column {name!r}; {hint}")
    table = table_of_topics(read_collection(path).topics, path)
    return Weights(name, table.numbers(name), path)

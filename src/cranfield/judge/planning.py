"""A round from a pool: what is drawn, how often each document is asked, and how much gold comes along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.errors import DataError
from cranfield.judge.plan import Asked
from cranfield.parameters import refuse_below

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.formats.pools import Item


def planned(
    items: Sequence[Item],
    *,
    overlap: int = 1,
    double: float = 0.0,
    sample: int | None = None,
    gold: Mapping[str, Mapping[str, float]] | None = None,
    seed: int = 0,
) -> list[Asked]:
    """The documents of a round in the order of judging; `double` is the share that gets one label more than the others.

    A sample is drawn from all items with equal chances, and the chance is kept with each.

    >>> from cranfield.formats.pools import Item
    >>> [asked.probability for asked in planned([Item("q", "a", 1), Item("q", "b", 2)], sample=1)]
    [0.5]
    """
    refuse_below(1, overlap=overlap)
    if not 0 <= double <= 1:
        raise DataError(f"--double: expected a share of 0 to 100%, found {double:.0%}")
    rng = np.random.default_rng(seed)
    unique = list({(item.topic, item.document): item for item in items}.values())
    drawn = [item for item in unique if item.priority or not any(each.priority for each in unique)]
    chance = 1.0
    if sample is not None:
        if not 1 <= sample <= len(drawn):
            raise DataError(f"--sample: expected 1 to {len(drawn)}, the documents of the pool, found {sample}")
        chosen = rng.choice(len(drawn), sample, replace=False)
        chance = sample / len(drawn)
        drawn = [drawn[i] for i in np.sort(chosen).tolist()]
    drawn.sort(key=lambda item: item.priority)
    twice = set(rng.permutation(len(drawn))[: round(double * len(drawn))].tolist())
    asked = [
        Asked(item.topic, item.document, overlap + (number in twice), item.probability * chance)
        for number, item in enumerate(drawn)
    ]
    return asked + _gold(gold or {}, {(each.topic, each.document) for each in asked})


def _gold(gold: Mapping[str, Mapping[str, float]], asked: set[tuple[str, str]]) -> list[Asked]:
    """Questions whose answer is known; one that is in the pool as well would be asked twice."""
    answer = []
    for topic, grades in gold.items():
        for document, grade in grades.items():
            if (topic, document) in asked:
                told = f"topic {topic!r}, document {document!r}"
                raise DataError(f"{told} is gold and in the pool; take it out of one of them")
            answer.append(Asked(topic, document, 0, 1.0, "gold", grade))
    return answer

"""Gains given on the command line, and the ideal ranking that trec_eval makes of them.

It sorts gains with a comparison that returns their difference as a whole number, so gains less than 1
apart count as equal and the ideal ranking may not be ideal. Printed output cannot match without
repeating that: this is glibc's merge sort with that comparison. Our own measures sort properly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.hits import Hits

if TYPE_CHECKING:
    from cranfield.hits import Judgments
    from cranfield.kernels.table import Floats


Pairs = tuple[tuple[str, float], ...]
MOST_LEVELS = 10_000  # beyond, grades that no document has are left out of the sort


def sorted_gains(gains: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """(grade, gain) by gain as trec_eval sorts them: ascending, and as they came where the difference is below 1.

    >>> sorted_gains([(1, 0.5), (2, 1.5), (0, 0.0)])
    [(1, 0.5), (0, 0.0), (2, 1.5)]
    """
    if len(gains) < 2:
        return gains
    half = len(gains) // 2
    left, right = sorted_gains(gains[:half]), sorted_gains(gains[half:])
    merged = []
    while left and right:
        first = left if int(left[0][1] - right[0][1]) <= 0 else right
        merged.append(first.pop(0))
    return merged + left + right


def levels_of(pairs: Pairs, grades: Floats) -> list[tuple[int, float]]:
    """The grades of a topic and their gains, sorted as trec_eval sorts them: those given first, then the others."""
    given = [(int(key), gain) for key, gain in pairs if key != "p"]
    named = {grade for grade, _ in given}
    highest = int(grades.max(initial=-1))
    others = range(highest + 1) if highest < MOST_LEVELS else sorted({int(g) for g in grades if g >= 0})
    return sorted_gains([*given, *((grade, float(grade)) for grade in others if grade not in named)])


def gains_of(pairs: Pairs, grade: Floats) -> Floats:
    """What each grade is worth; the first of two gains for the same grade counts."""
    gain = np.maximum(grade, 0.0)
    for key, worth in reversed(pairs):
        if key != "p":
            gain[grade == int(key)] = worth
    return gain


def ideal_of(pairs: Pairs, judgments: Judgments) -> tuple[Hits, Floats]:
    """The ideal ranking and the gain at each of its ranks: from the last of the sorted levels to the first of gain 0."""
    sizes = np.zeros(judgments.size, np.int32)
    gains: list[float] = []
    order = np.argsort(judgments.topic, kind="stable")
    bounds = np.searchsorted(judgments.topic[order], np.arange(judgments.size + 1))
    for topic, (start, end) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
        grades = judgments.grade[order[start:end]]
        ideal = _ideal_gains(levels_of(pairs, grades), grades)
        sizes[topic] = len(ideal)
        gains += ideal
    worth = np.array(gains, np.float64)
    topics = np.repeat(np.arange(judgments.size, dtype=np.int32), sizes)
    rank = (np.arange(len(worth)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1).astype(np.int32)
    return Hits(judgments, topics, rank, worth, rank, rank, sizes), worth


def _ideal_gains(levels: list[tuple[int, float]], grades: Floats) -> list[float]:
    if not levels or levels[-1][1] <= 0:
        return []
    ideal: list[float] = []
    counted: set[int] = set()
    for grade, gain in reversed(levels):
        size = int((grades == grade).sum()) if grade not in counted else 0
        counted.add(grade)
        if size and gain <= 0:
            break
        ideal += [gain] * size
    return ideal

"""Grades on another scale: each grade of a file, such as 1 to 5 stars, and the grade that it counts as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cranfield.collection import Qrels
from cranfield.errors import BadLineError, ConventionError, DataError
from cranfield.parameters import real

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from cranfield.kernels.table import Floats


def grade_map(said: Mapping[float, float] | str | None) -> dict[float, float] | None:
    """The grades of a file and what they count as; None where nothing is said.

    >>> grade_map("1=0,2=0,3=1")
    {1.0: 0.0, 2.0: 0.0, 3.0: 1.0}
    """
    if said is None:
        return None
    pairs: Iterable[tuple[object, object]] = said.items() if isinstance(said, Mapping) else _pairs(str(said))
    grades: dict[float, float] = {}
    for theirs, ours in pairs:
        try:
            before, after = real(str(theirs)), real(str(ours))
        except ValueError:
            raise _bad(f"{theirs}={ours}") from None
        if grades.setdefault(before, after) != after:
            raise ConventionError(f"grades: {theirs} counts as {grades[before]:g} and as {after:g}; name it once")
    if not grades:
        raise _bad("")
    return grades


def _pairs(said: str) -> list[tuple[str, str]]:
    parts = [part.partition("=") for part in said.split(",")]
    if not all(sign for _, sign, _ in parts):
        raise _bad(said)
    return [(theirs.strip(), ours.strip()) for theirs, _, ours in parts]


def _bad(found: str) -> ConventionError:
    return ConventionError(f"grades: expected theirs=ours such as 1=0,2=0,3=1, found {found[:60]!r}")


def counted_as(values: Floats, grades: Mapping[float, float]) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """What grades count as, and which of them the mapping does not name."""
    known = np.array(sorted(grades))
    counts = np.array([grades[each] for each in sorted(grades)], np.float64)
    place = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return counts[place], known[place] != values


def regraded(qrels: Qrels, said: Mapping[float, float] | str | None) -> Qrels:
    """The same judgments with other grades; a grade that is not named is refused, with its line.

    >>> regraded(Qrels({"q": {"d": 5, "e": 1}}), {1: 0, 5: 3})["q"]
    {'d': 3.0, 'e': 0.0}
    """
    grades = grade_map(said)
    if grades is None:
        return qrels
    values = qrels.grade
    counts, other = counted_as(values, grades)
    if other.any():
        row = int(np.argmax(other))
        listed = ", ".join(f"{grade:g}" for grade in sorted(grades))
        problem = f"grade {values[row]:g} is not among those that grades names ({listed})"
        line = qrels.line_of_grade(float(values[row]))
        raise DataError(f"{qrels.name}: {problem}") if line is None else BadLineError(qrels.where, line, problem)
    answer = Qrels(replace(qrels.table, value=counts), qrels.name, "error", qrels.file_rows, qrels.where)
    answer.extras, answer.relevant_from, answer.corpus = qrels.extras, qrels.relevant_from, qrels.corpus
    answer.remarks = qrels.remarks
    return answer

"""Maps the grades of a file to another scale, such as 1 to 5 stars to 0 to 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import BadLineError, ConventionError, DataError
from cranfield.base.parameters import real
from cranfield.base.qrels import Qrels

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats


def grade_map(mapping: Mapping[float, float] | str | None) -> dict[float, float] | None:
    """The mapping from a file's grades to the grades they count as; None if there is none.

    >>> grade_map("1=0,2=0,3=1")
    {1.0: 0.0, 2.0: 0.0, 3.0: 1.0}
    """
    if mapping is None:
        return None
    pairs: Iterable[tuple[object, object]] = mapping.items() if isinstance(mapping, Mapping) else _pairs(str(mapping))
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


def _pairs(text: str) -> list[tuple[str, str]]:
    parts = [part.partition("=") for part in text.split(",")]
    if not all(sign for _, sign, _ in parts):
        raise _bad(text)
    return [(theirs.strip(), ours.strip()) for theirs, _, ours in parts]


def _bad(text: str) -> ConventionError:
    return ConventionError(f"grades: expected theirs=ours such as 1=0,2=0,3=1, found {text[:60]!r}")


def mapped_grades(values: Floats, grades: Mapping[float, float]) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The mapped grades, and which grades the mapping lacks."""
    sources = np.array(sorted(grades))
    counts = np.array([grades[each] for each in sorted(grades)], np.float64)
    place = np.minimum(np.searchsorted(sources, values), len(sources) - 1)
    return counts[place], sources[place] != values


def regraded(qrels: Qrels, mapping: Mapping[float, float] | str | None) -> Qrels:
    """The same judgments with mapped grades; a grade without a mapping is refused, with its line.

    >>> regraded(Qrels({"q": {"d": 5, "e": 1}}), {1: 0, 5: 3})["q"]
    {'d': 3.0, 'e': 0.0}
    """
    grades = grade_map(mapping)
    if grades is None:
        return qrels
    values = qrels.grade
    counts, other = mapped_grades(values, grades)
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

"""Qrels: documents judged twice, the scale of the grades, topics that cannot tell runs apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.check.file import n_of
from cranfield.check.ids import look_at_second
from cranfield.kernels import decode

if TYPE_CHECKING:
    from cranfield.check.file import Array, File


MANY = 100  # judgments from which on a grade that occurs once is odd
LARGE = 20  # a grade above this is hardly a grade: 2^20 is a million


def look_at_qrels(file: File) -> None:
    """Report what is wrong with judgments by themselves."""
    rows = file.rows
    again, first = file.repeats(rows.label) if len(rows.labels) else file.repeats()
    line = dict(zip(again.tolist(), first.tolist(), strict=True))
    equal = rows.value[again] == rows.value[first]
    for code, which in (("judged-twice", again[equal]), ("judged-in-conflict", again[~equal])):
        if len(which):
            what = f"{n_of(len(which), 'line')} that judge a document of their topic again"
            text = lambda r: (  # noqa: E731
                f"{file.pair(r)}: {rows.value[r]:g}, and {rows.value[line[r]]:g} on line {file.line_of_row(line[r]):,}"
            )
            file.add_rows(code, what, which, text)
    if len(rows.labels):
        _, at, counts = np.unique(rows.label, return_index=True, return_counts=True)
        second = {rows.labels[i]: (int(n), int(r)) for i, (n, r) in enumerate(zip(counts, at, strict=True))}
        look_at_second(file, second, "iteration-column", (b"0", b"Q0"))
    _look_at_grades(file)
    _look_for_barren(file)


def _look_at_grades(file: File) -> None:
    grade = file.rows.value
    levels, counts = np.unique(grade, return_counts=True)
    text = lambda row: f"{file.pair(row)}: {grade[row]:g}"  # noqa: E731

    def some(code: str, wrong: Array, what: str) -> None:
        if wrong.any():
            file.add_rows(code, f"{n_of(int(wrong.sum()), 'judgment')} {what}", np.flatnonzero(wrong), text)

    some("grades-negative", grade < 0, f"below 0 (lowest: {levels[0]:g})")
    some("grades-fractional", grade != np.floor(grade), "with a fraction")
    some("grades-large", grade > LARGE, f"above {LARGE} (highest: {levels[-1]:g})")
    if levels[0] >= 0 and levels[-1] <= 1 and ((levels > 0) & (levels < 1)).any():
        file.add("grades-below-one", f"all grades lie between {levels[0]:g} and {levels[-1]:g}", len(grade))
    if len(levels) == 1:
        file.add("grades-constant", f"all {n_of(len(grade), 'judgment')} say {levels[0]:g}", len(grade))
    if len(grade) >= MANY:
        some("grades-lone", np.isin(grade, levels[counts == 1]), f"of a grade that no other of {len(grade):,} has")
    positive = levels > 0
    if positive.sum() >= 3 and not (levels == 0).any() and counts[positive][0] == counts[positive].min():
        shown = ", ".join(f"{n_of(int(n), 'judgment')} of {level:g}" for level, n in zip(levels, counts, strict=True))
        file.add("grades-reversed", f"{shown}", len(grade))


def _look_for_barren(file: File) -> None:
    relevant = np.bincount(file.rows.topic[file.rows.value >= 1], minlength=len(file.rows.topics))
    for code, number in (("topics-without-relevant", 0), ("topics-with-one-relevant", 1)):
        where = np.flatnonzero(relevant == number)
        if len(where):
            names = [decode(file.rows.topics[int(t)]) for t in where]
            file.add_names(code, f"{n_of(len(where), 'topic')} of {len(relevant):,}", names)

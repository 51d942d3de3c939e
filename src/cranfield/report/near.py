"""The ranked lists of a page, small: each document is named once, and a step that many share is written once.

Lists are numbers with blanks between them, which the script takes apart when a topic is opened. What an explanation
shows is text made here, so that the script computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.columns import legible
from cranfield.report.tables import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.closeup import Closeup, Step
    from cranfield.report.reporting import Report


NONE = "-"  # an unjudged document, or one that plays no part


def lists(report: Report) -> dict[str, Any] | None:
    """The tops of all systems: ids, words, lists and grades, and how each measure came by its scores."""
    seen = report.closeups
    if not seen:
        return None
    place: dict[str, int] = {}
    listed = [
        [
            " ".join(str(place.setdefault(document, len(place))) for document in documents)
            for documents in each.documents
        ]
        for each in seen
    ]
    words = texts(report)
    return {
        "depth": report.depth,
        "runs": [legible(each.run) for each in seen],
        "ids": [legible(document) for document in place],
        "texts": [words.get(document, 0) for document in place] if words else None,
        "lists": listed,
        "grades": [[" ".join(map(_grade, grades)) for grades in each.grades] for each in seen],
        "below": [each.below for each in seen],
        "missed": [each.missed for each in seen],
        "deeper": [[_places(ranks, place) for ranks in each.deeper] for each in seen],
        "arithmetic": [_arithmetic(report, seen, measure) for measure in report.measures],
    }


def texts(report: Report) -> dict[str, list[str]]:
    """Title and first words of the documents that are shown, as they go into the page."""
    return {document: [legible(part) for part in parts if part] for document, parts in report.shown_documents.items()}


def _places(ranks: Mapping[str, int], place: Mapping[str, int]) -> str:
    """The ranks of documents below the top, each behind the number of its document."""
    return " ".join(f"{place[document]}:{rank}" for document, rank in ranks.items())


def _grade(grade: float | None) -> str:
    return NONE if grade is None else f"{grade:g}".replace("-", "−")


def _arithmetic(report: Report, seen: Sequence[Closeup], measure: str) -> dict[str, Any] | None:
    """The columns of an explanation, its different rows, and which row stands where."""
    if not all(measure in each.arithmetic for each in seen):
        return None
    known = [each.arithmetic[measure] for each in seen]
    place: dict[Step, int] = {}
    steps = [
        [
            " ".join(NONE if step is None else str(place.setdefault(_rounded(step), len(place))) for step in of_topic)
            for of_topic in each.steps
        ]
        for each in known
    ]
    whole = [all(value != value or value == int(value) for value in column) for column in zip(*place, strict=True)]
    rows = [
        ["" if value != value else number(value, 0 if whole[i] else 4) for i, value in enumerate(step)]
        for step in place
    ]
    return {
        "formula": report.comparison.scores.measures[measure].formula_with_values(),
        "words": known[0].words,
        "columns": known[0].columns,
        "rows": rows,
        "steps": steps if place else None,
        "lines": [each.lines for each in known],
    }


def _rounded(step: Step) -> Step:
    """What looks alike is alike: NaN becomes one and the same object, which a dict then finds."""
    return tuple(round(value, 4) if value == value else _NAN for value in step)


_NAN = float("nan")

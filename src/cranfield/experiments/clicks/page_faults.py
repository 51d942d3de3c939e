"""The faults that events of result pages have, in words: the readers of pages for click models and for estimates share them.

Each fault would bias a model or an estimate. It is an error that names the search, or is left out and counted if reading is
lenient.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence


class PageFault(NamedTuple):
    """A kind of fault, as words for one and for several."""

    one: str
    several: str


ORPHAN = PageFault("click without an impression", "clicks without an impression")
NO_QUERY = PageFault("impression without a query", "impressions without a query")
TWICE = PageFault("page that shows a document twice", "pages that show a document twice")
NOT_SHOWN = PageFault(
    "click on a document that its page did not show", "clicks on documents that their page did not show"
)
MISPLACED = PageFault(
    "click at a position where its page shows another document",
    "clicks at positions where their page shows another document",
)
HOLES = PageFault("search whose positions have holes", "searches whose positions have holes")


@dataclass
class FaultCounter:
    """The faults of a log that were left out, by kind; the first is an error if reading is not lenient."""

    lenient: bool
    faults: Counter[PageFault] = field(default_factory=Counter)

    def refuse(self, number: int, fault: PageFault, problem: str) -> None:
        """Count faults of one kind; DataError about the first if the reading is not lenient."""
        if not self.lenient:
            more = f" ({number - 1:,} more in the same part of the log)" if number > 1 else ""
            raise DataError(f"{problem}{more}; --lenient leaves out {fault.several}")
        self.faults[fault] += number

    def left_out(self) -> list[str]:
        """The number of faults of each kind."""
        return [f"1 {fault.one}" if n == 1 else f"{n:,} {fault.several}" for fault, n in self.faults.items()]


def orphan_problem(search: str, document: str) -> str:
    """A click whose search has no impression."""
    return (
        f"search {shortened(search)!r} has a click on {shortened(document)!r}, but no impression that says which documents "
        "it showed; log an impression with `shown` for each search"
    )


def no_query_problem(search: str) -> str:
    """An impression without a query."""
    return f"the impression of search {shortened(search)!r} has no query"


def twice_problem(search: str, shown: Sequence[str]) -> str:
    """A page that shows a document twice."""
    twice = next(each for each in shown if shown.count(each) > 1)
    return f"the impression of search {shortened(search)!r} shows document {shortened(twice)!r} twice"


def not_shown_problem(search: str, document: str) -> str:
    """A click on a document that its page did not show."""
    return f"search {shortened(search)!r} has a click on {shortened(document)!r}, which its page did not show"


def misplaced_problem(search: str, document: str, position: int, actual: int) -> str:
    """A click at a position where its page shows another document."""
    where = f"at position {position}, but the page shows it at {actual}"
    return f"search {shortened(search)!r} has a click on {shortened(document)!r} {where}"


def holes_problem(search: str, positions: Sequence[int]) -> str:
    """A search whose documents are not at the positions 1, 2, … with one document each."""
    there = sorted(positions)
    several = [rank for rank in there if there.count(rank) > 1]
    if several:
        problem = f"{there.count(several[0])} documents at position {several[0]}"
    else:
        problem = f"no document at position {next(rank for rank in range(1, max(there) + 1) if rank not in there)}"
    return f"search {shortened(search)!r} shows {problem}; expected one at each position from 1 on"

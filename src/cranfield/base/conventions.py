"""The choices that change published numbers, as one value that travels with every score.

Peers answer the same questions differently and seldom say so: which of two tied documents comes
first, what a judged topic that the run lacks is worth, whether a grade of -2 is a judgment. A preset
is a peer's set of answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack, get_args

from cranfield.base.errors import ConventionError
from cranfield.base.kernels import Order

if TYPE_CHECKING:
    from cranfield.base.run import Run


Ties: TypeAlias = Literal["document-descending", "document-ascending", "input-order", "averaged"]
Compared: TypeAlias = Literal["double", "single", "rank"]
Missing: TypeAlias = Literal["zero", "skip", "error"]
NoRelevant: TypeAlias = Literal["zero", "skip"]
Unjudged: TypeAlias = Literal["irrelevant", "drop"]
Negative: TypeAlias = Literal["unjudged", "irrelevant"]
Duplicates: TypeAlias = Literal["error", "first", "last", "best"]


@dataclass(frozen=True)
class Conventions:
    """How ties, gaps and odd grades are treated. The defaults are those of trec_eval 10 with `-c`.

    - `ties`: which of two documents with equal scores comes first; `averaged` takes the mean over all orders of tied documents
    - `scores`: compared as doubles, or rounded to 32 bits before; `rank` goes by the rank column of a TREC file instead
    - `missing`: a judged topic that the run lacks scores 0, is left out of the mean, or stops the evaluation
    - `no_relevant`: a topic without relevant documents scores 0, or is left out
    - `unjudged`: documents without a judgment count as irrelevant, or are dropped before ranks are counted
    - `negative`: a grade below 0 does not count as a judgment, or counts as 0
    - `duplicates`: a document that occurs twice in a topic is an error, or one of the two counts
    - `collapse`: cut document ids at this text (passages `doc#3` count as their document, the best one decides)
    - `drop_self`: leave out a document whose id is the topic's

    >>> Conventions(missing="skip").missing
    'skip'
    """

    ties: Ties = "document-descending"
    scores: Compared = "double"
    missing: Missing = "zero"
    no_relevant: NoRelevant = "zero"
    unjudged: Unjudged = "irrelevant"
    negative: Negative = "unjudged"
    duplicates: Duplicates = "error"
    collapse: str = ""
    drop_self: bool = False

    def __post_init__(self) -> None:
        for name, choices in _choices().items():
            value = getattr(self, name)
            if value not in choices:
                raise ConventionError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
        if not isinstance(self.collapse, str):
            expected = "the text to cut document ids at, such as '#'"
            raise ConventionError(f"collapse must be {expected}, got {self.collapse!r}")
        if any("\ud800" <= letter < "\udc80" for letter in self.collapse):  # others are bytes of ids that are not UTF-8
            raise ConventionError(f"collapse must be text that can be written, got {self.collapse!r}")
        if not isinstance(self.drop_self, bool):
            raise ConventionError(f"drop_self must be True or False, got {self.drop_self!r}")

    @property
    def order(self) -> Order:
        """The part of the conventions that the kernels need."""
        ties: Any = {"document-descending": "descending", "document-ascending": "ascending"}.get(self.ties, "input")
        return Order(
            ties=ties,
            single=self.scores == "single",
            duplicates=self.duplicates,
            collapse=self.collapse.encode("utf-8", "surrogateescape"),
            drop_self=self.drop_self,
        )

    def ordered(self, run: Run) -> Run:
        """The run, ordered by its scores or by its rank column as the conventions say."""
        return run.by_rank() if self.scores == "rank" else run

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON and reports."""
        return asdict(self)


class ConventionChanges(TypedDict, total=False):
    """The conventions as keyword arguments, for type checkers: `evaluate(…, missing="skip")`."""

    ties: Ties
    scores: Compared
    missing: Missing
    no_relevant: NoRelevant
    unjudged: Unjudged
    negative: Negative
    duplicates: Duplicates
    collapse: str
    drop_self: bool


@cache
def _choices() -> dict[str, tuple[str, ...]]:
    """The allowed values of each convention: those of the alias above that its annotation names."""
    kinds = {each.name: globals().get(str(each.type)) for each in fields(Conventions)}
    return {name: get_args(kind) for name, kind in kinds.items() if kind is not None}


# Each preset is the default behaviour of another tool; docs/conventions.md says how it was determined. How a tool
# computes single measures (gains, ideals, denominators) is in peers.py. If two presets are equal, the first name is shown.
PRESETS: dict[str, Conventions] = {
    "cranfield": Conventions(),
    "trec_eval-10": Conventions(missing="error"),
    "trec_eval-9": Conventions(scores="single", missing="skip"),
    "ir_measures": Conventions(scores="single", duplicates="last"),
    "ranx": Conventions(ties="input-order", missing="error", negative="irrelevant", duplicates="last"),
    "beir": Conventions(scores="single", missing="skip", duplicates="last", drop_self=True),
    "trec_eval-ndcg": Conventions(missing="error"),
    "gdeval": Conventions(missing="skip", no_relevant="skip"),
    "scikit-learn": Conventions(ties="averaged", negative="irrelevant"),
    "torchmetrics": Conventions(ties="averaged", scores="single", negative="irrelevant"),
    "insertion-order": Conventions(ties="input-order"),
    "elasticsearch": Conventions(ties="input-order"),
    "opensearch": Conventions(ties="input-order"),
    "quepid": Conventions(ties="input-order"),
    "quepid-cut": Conventions(ties="input-order"),
    "ntcireval": Conventions(),
    "ndeval": Conventions(ties="input-order", scores="rank", missing="skip", negative="irrelevant"),
    "ndeval-traditional": Conventions(missing="skip", negative="irrelevant"),
    "pyndeval": Conventions(ties="document-ascending", missing="skip", negative="irrelevant"),
}


def conventions(
    start: Conventions | str | Mapping[str, Any] | None = None, **changes: Unpack[ConventionChanges]
) -> Conventions:
    """Conventions from a value, a preset's name or a mapping, with some of them changed.

    >>> conventions("trec_eval-9", missing="zero").scores
    'single'
    """
    if isinstance(start, str):
        if start not in PRESETS:
            raise ConventionError(f"no preset {start!r}; there are {', '.join(PRESETS)}")
        start = PRESETS[start]
    base = start if isinstance(start, Conventions) else Conventions()
    answers: dict[str, Any] = {**(start if isinstance(start, Mapping) else {}), **changes}
    try:
        return replace(base, **answers)
    except TypeError as error:
        names = ", ".join(field.name for field in fields(Conventions))
        raise ConventionError(f"no such convention in {', '.join(answers)}; there are {names}") from error

"""What a fusion method is: a class with a formula, parameters with ranges, and the promises it keeps.

A method makes one number for each entry, a document of a topic that some run returned. Methods of scores read what a
normalisation makes of them, methods of ranks the places alone. `RRF(k=10)` is how one is typed, in any case of letters.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from cranfield.errors import ConventionError
from cranfield.fuse.lists import Votes

if TYPE_CHECKING:
    from cranfield.collection import Qrels
    from cranfield.fuse.lists import Lists
    from cranfield.fuse.norms import Norm
    from cranfield.kernels.table import Floats


METHODS: dict[str, type[Method]] = {}
CALL = re.compile(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*")


@dataclass(frozen=True)
class Number:
    """A parameter of a method: its default, its range, its meaning."""

    default: float
    low: float
    high: float
    meaning: str
    whole: bool = False
    open: bool = False  # whether the ends are left out

    def read(self, given: Any, where: str) -> float:
        """Turn what was typed into a number within the range."""
        try:
            value = float(given)
        except (TypeError, ValueError):
            raise ConventionError(f"{where} must be a number {self.range}, got {given!r}") from None
        inside = self.low < value < self.high if self.open else self.low <= value <= self.high
        if not inside or (self.whole and value != int(value)):
            raise ConventionError(f"{where} must be {'a whole number ' if self.whole else ''}{self.range}, got {given}")
        return value

    @property
    def range(self) -> str:
        """Its allowed values, in words."""
        if self.high == np.inf:
            return f"above {self.low:g}" if self.open else f"of {self.low:g} or more"
        return f"between {self.low:g} and {self.high:g}"


class Method(ABC):
    """A way to make one ranking of several."""

    name: ClassVar[str]
    formula: ClassVar[str]
    reference: ClassVar[str]
    peers: ClassVar[dict[str, str]] = {}
    parameters: ClassVar[dict[str, Number]] = {}
    reads: ClassVar[Literal["scores", "ranks"]] = "ranks"
    takes_weights: ClassVar[bool] = False
    trained: ClassVar[bool] = False  # whether it learns from judgments
    keeps_order: ClassVar[bool] = True  # promises that a run fused with itself keeps its order
    abstract: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        cls.abstract = "name" not in vars(cls)
        if not cls.abstract:
            METHODS[_folded(cls.name)] = cls

    def __init__(self, **given: Any) -> None:
        for key in given:
            if key not in self.parameters:
                known = f"it has {', '.join(self.parameters)}" if self.parameters else "it has none"
                raise ConventionError(f"{self.name}: no parameter {key!r}; {known}")
        self.values = {
            key: number.read(given.get(key, number.default), f"{self.name}: {key}")
            for key, number in self.parameters.items()
        }

    def __str__(self) -> str:
        shown = [f"{key}={value:g}" for key, value in self.values.items()]
        return f"{self.name}({', '.join(shown)})" if shown else self.name

    @classmethod
    def about(cls) -> str:
        """Its first sentence."""
        return " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split())

    @abstractmethod
    def votes(self, lists: Lists, norm: Norm) -> Votes:
        """What each run says of each entry."""

    def combine(self, votes: Votes) -> Floats:
        """One number for each entry: the sum, unless told otherwise."""
        return votes.total()

    def fuse(self, lists: Lists, norm: Norm, weights: Floats | None = None) -> Floats:
        """One number for each entry; `weights` are the runs'."""
        if not len(lists.home):
            return np.zeros(0)
        votes = self.votes(lists, norm)
        if weights is not None:
            votes = Votes(votes.run, votes.entry, votes.value * weights[votes.run], votes.count)
        return self.combine(votes)

    def train(self, lists: Lists, qrels: Qrels, rel: float) -> None:
        """Learn from judged topics; a method that is not `trained` is never asked to."""
        raise ConventionError(f"{self.name} has nothing to learn from judgments")


class OfScores(Method):
    """A method that reads normalised scores."""

    reads = "scores"

    def votes(self, lists: Lists, norm: Norm) -> Votes:
        """Normalised scores."""
        return norm.votes(lists)


def _folded(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


ALIASES = {"bordafuse": "borda", "condorcetfuse": "condorcet", "mnz": "combmnz", "sum": "combsum", "logn_isr": "logisr"}


def load_all() -> dict[str, type[Method]]:
    """Every method, by its name in small letters without hyphens."""
    from cranfield.fuse import comb, ranks, trained  # noqa: F401  they enter themselves

    return METHODS


def catalogue() -> dict[str, list[dict[str, str]]]:
    """Methods and normalisations: how each is typed, what it does, its formula, its reference, the peers' names."""
    from cranfield.fuse.norms import NORMS

    methods = [
        {
            "usage": str(cls()),
            "about": cls.about(),
            "formula": cls.formula,
            "reference": cls.reference,
            **{f"in {peer}": name for peer, name in cls.peers.items()},
        }
        for cls in load_all().values()
    ]
    norms = [
        {"usage": one.name, "about": one.about, "formula": one.formula, **{f"in {p}": n for p, n in one.peers.items()}}
        for one in NORMS.values()
    ]
    return {"methods": methods, "normalisations": norms}


def method_named(name: str) -> Method:
    """A method by what one types: `rrf`, `RRF(k=10)`, `CombMNZ`.

    >>> str(method_named("rrf(k=10)"))
    'RRF(k=10)'
    """
    load_all()
    match = CALL.fullmatch(name)
    cls = METHODS.get(ALIASES.get(name.lower(), _folded(match[1]))) if match else None
    if cls is None or match is None:
        raise ConventionError(f"no fusion method {name!r}; there are {', '.join(m.name for m in METHODS.values())}")
    given = {}
    for part in filter(None, map(str.strip, (match[2] or "").split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise ConventionError(f"{cls.name}: expected name=value, got {part!r}")
        given[key.strip()] = value.strip()
    return cls(**given)

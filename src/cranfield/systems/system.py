"""What a system under test is, and how a SPEC such as `bm25s:k1=0.9,stem=no` names one.

A system indexes documents (if it needs any) and answers one query at a time. It says what went wrong by raising: `Busy`
for what may be over in a moment (the driver tries again), anything else for what will not. Time, memory, retries and the
run's file are the driver's affair, so an engine's module holds nothing but the engine.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cranfield.errors import ConventionError, DataError
from cranfield.formats.streams import asked_by, is_url
from cranfield.parameters import Choice, read_pairs
from cranfield.registry import Registered, Registry, about
from cranfield.systems.http.template import templates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cranfield.collection import Document, Topic


Ranking = list[tuple[str, float]]  # documents and scores, best first

SYSTEMS: Registry[System] = Registry("system", "cranfield.systems.engines")


class Busy(Exception):
    """A failure that may be over in a moment; `after` is how many seconds the engine asks to wait, `kind` what failed.

    A status, `silence`, `dropped` or `not JSON`.
    """

    def __init__(self, why: str, after: float | None = None, kind: str = "") -> None:
        super().__init__(why)
        self.after = after
        self.kind = kind


class Refused(Busy):
    """A connection that nobody takes; over in a moment where an engine restarts, and not where there is none."""


class Rejected(DataError):
    """An answer whose status says that asking again is of no use; `said` is the beginning of what came with it."""

    def __init__(self, why: str, status: int, said: str) -> None:
        super().__init__(why)
        self.status = status
        self.said = said


class Unreachable(DataError):
    """An engine that refused the very first connection; the other queries are not asked."""


class Broken(DataError):
    """A failure half-way through all queries; what was answered by then is kept."""

    def __init__(self, problem: str, answers: dict[str, Ranking]) -> None:
        super().__init__(problem)
        self.answers = answers


@dataclass(frozen=True, slots=True)
class Query:
    """A topic and the words of it that are searched for."""

    id: str
    text: str
    topic: Topic


class System(Registered, ABC):
    """A system under test. Make one with `system("bm25s")`; `close` it when done. Its docstring is its line in listings."""

    registry = SYSTEMS
    place: ClassVar[int] = 100  # in listings
    usage: ClassVar[str]  # how it is typed; its name, unless told otherwise
    needs_documents: ClassVar[bool] = True
    in_process: ClassVar[bool] = True  # whether this process's memory is the system's
    batch: ClassVar[bool] = False  # whether it answers all queries in one go
    keeps_order: bool = False  # whether the order of its list counts where its scores do not fall
    packages: ClassVar[tuple[str, ...]] = ()  # whose versions are worth keeping

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls) and "usage" not in vars(cls):
            cls.usage = cls.name

    def __init__(self, rest: str = "") -> None:
        super().__init__(**read_pairs(rest, self.name))

    @property
    def indexes(self) -> bool:
        """Whether it takes in the documents before it is asked."""
        return self.needs_documents

    def index(self, documents: Iterable[Document], folder: str) -> None:
        """Take in the documents; what the index needs on disk goes into the folder."""

    @abstractmethod
    def search(self, query: Query, k: int) -> Ranking:
        """The best k documents with their scores. Several threads may ask at once."""

    def search_all(self, queries: Sequence[Query], k: int) -> dict[str, Ranking]:
        """The answers to all queries, by their ids, where a system answers them in one go."""
        return {query.id: self.search(query, k) for query in queries}

    def timeout(self, seconds: float) -> None:
        """Be told how long one answer may take; an engine in this process cannot be stopped."""

    def most_bytes(self, count: int) -> None:
        """Be told how large one answer may be; what an engine in this process returns is there already."""

    def described(self, spec: str) -> str:
        """The SPEC as it may be written down: without what is secret."""
        return spec

    def close(self) -> None:
        """Let go of what was opened."""

    def versions(self) -> dict[str, str]:
        """The versions that an answer may depend on."""
        from importlib.metadata import PackageNotFoundError, version

        known = {}
        for package in self.packages:
            try:
                known[package] = version(package)
            except PackageNotFoundError:
                continue
        return known


def system(spec: str) -> System:
    """The system that a SPEC names.

    >>> system("sqlite:mode=phrase").mode
    'phrase'
    """
    kind, _, rest = spec.strip().partition(":")
    if is_url(spec.strip()):
        raise ConventionError(f"{spec.strip()}: {asked_by(spec.strip())}")
    if kind in templates():
        kind, rest = "http", spec.strip()
    elif kind not in SYSTEMS and rest and kind.replace(".", "").replace("_", "").isalnum():
        kind, rest = "python", spec.strip()  # module:function
    if kind not in SYSTEMS:
        known = ", ".join([*(cls.name for cls in listed()), *templates()])
        raise ConventionError(f"no system {spec!r}; expected one of {known}, or module:function")
    return SYSTEMS[kind](rest)


def id_text(given: Any, where: str) -> str:
    """A document's id as a run holds it: a text, or a whole number's digits; anything else is refused.

    >>> id_text("d1", "engine"), id_text(7, "engine")
    ('d1', '7')
    """
    if isinstance(given, str):
        return given
    try:
        if not isinstance(given, bool):
            return str(operator.index(given))
    except TypeError:
        pass
    raise DataError(f"{where}: expected a document's id as text or a whole number, found {given!r:.60}")


def listed() -> list[type[System]]:
    """The kinds of systems, the usual ones first."""
    return sorted(SYSTEMS.values(), key=lambda cls: cls.place)


def specs() -> list[str]:
    """How each system is typed."""
    return [cls.usage for cls in listed()] + [f"{name}:URL" for name in templates()]


def catalogue() -> list[dict[str, Any]]:
    """A row for each system: how it is typed, what it is, its options with their defaults and meanings."""
    rows = []
    for cls in listed():
        options = {
            key: _option(one.default, one.meaning, one.choices if isinstance(one, Choice) else ())
            for key, one in cls.parameters.items()
        }
        rows.append({"system": cls.name, "about": about(cls).removesuffix("."), "options": options})
    for name, template in templates().items():
        options = {key: _option(value, template.meanings.get(key, "")) for key, value in template.options.items()}
        rows.append({"system": f"{name}:URL", "about": template.about, "options": options})
    return rows


def _option(default: Any, meaning: str, words: Sequence[str] = ()) -> dict[str, Any]:
    return {"default": default, "meaning": meaning, "words": list(words)}

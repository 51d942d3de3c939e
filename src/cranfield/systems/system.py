"""What a system under test is, and how a SPEC such as `bm25s:k1=0.9,stem=no` names one.

A system indexes documents (if it needs any) and answers one query at a time. It says what went wrong by raising: `Busy`
for what may be over in a moment (the driver tries again), anything else for what will not. Time, memory, retries and the
run's file are the driver's affair, so an engine's module holds nothing but the engine.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cranfield.errors import ConventionError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cranfield.collection import Document, Topic


Ranking = list[tuple[str, float]]  # documents and scores, best first

SYSTEMS = {
    "bm25s": "cranfield.systems.bm25:Bm25s",
    "tantivy": "cranfield.systems.lucene_like:Tantivy",
    "sqlite": "cranfield.systems.fts5:Sqlite",
    "dense": "cranfield.systems.dense:Dense",
    "python": "cranfield.systems.function:Function",
    "command": "cranfield.systems.command:Command",
    "command-each": "cranfield.systems.command:CommandEach",
    "http": "cranfield.systems.http.engine:HttpEngine",
}
"""Kinds of systems, each loaded when it is asked for."""

HTTP_ENGINES = ("elasticsearch", "opensearch", "solr", "vespa", "typesense", "meilisearch")
"""Engines whose templates come with the package: `elasticsearch:http://host:9200/index`."""


class Busy(Exception):
    """A failure that may be over in a moment; `after` is how many seconds the engine asks to wait."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


@dataclass(frozen=True, slots=True)
class Query:
    """A topic and the words of it that are searched for."""

    id: str
    text: str
    topic: Topic


@dataclass(frozen=True)
class Option:
    """An option of a system: its default, what it means, and the type or the words it takes."""

    default: Any
    meaning: str
    words: tuple[str, ...] = ()

    def read(self, given: str, where: str) -> Any:
        """Turn what was typed into the default's type."""
        if self.words:
            if given not in self.words:
                raise ConventionError(f"{where} must be {' or '.join(self.words)}, got {given!r}")
            return given
        if isinstance(self.default, bool):
            if given.lower() not in ("yes", "no", "true", "false", "1", "0"):
                raise ConventionError(f"{where} must be yes or no, got {given!r}")
            return given.lower() in ("yes", "true", "1")
        try:
            return type(self.default)(given)
        except ValueError:
            raise ConventionError(f"{where} must be a number, got {given!r}") from None


class System(ABC):
    """A system under test. Make one with `system("bm25s")`; `close` it when done."""

    name: ClassVar[str]
    about: ClassVar[str]
    options: ClassVar[dict[str, Option]] = {}
    needs_documents: ClassVar[bool] = True
    in_process: ClassVar[bool] = True  # whether this process's memory is the system's
    batch: ClassVar[bool] = False  # whether it answers all queries in one go
    packages: ClassVar[tuple[str, ...]] = ()  # whose versions are worth keeping

    def __init__(self, rest: str = "") -> None:
        self.set = read_options(self.name, self.options, rest)

    def index(self, documents: Iterable[Document], folder: str) -> None:  # noqa: B027  most need nothing here
        """Take in the documents; what the index needs on disk goes into the folder."""

    @abstractmethod
    def search(self, query: Query, k: int) -> Ranking:
        """The best k documents with their scores. Several threads may ask at once."""

    def search_all(self, queries: Sequence[Query], k: int) -> dict[str, Ranking]:
        """The answers to all queries, by their ids, where a system answers them in one go."""
        return {query.id: self.search(query, k) for query in queries}

    def timeout(self, seconds: float) -> None:  # noqa: B027  most need nothing here
        """Be told how long one answer may take; an engine in this process cannot be stopped."""

    def described(self, spec: str) -> str:
        """The SPEC as it may be written down: without what is secret."""
        return spec

    def close(self) -> None:  # noqa: B027  most need nothing here
        """Let go of what was opened."""

    def versions(self) -> dict[str, str]:
        """The versions that an answer may depend on."""
        from importlib.metadata import PackageNotFoundError, version

        found = {}
        for package in self.packages:
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                continue
        return found


def read_options(name: str, known: dict[str, Option], rest: str) -> dict[str, Any]:
    """`k1=0.9,b=0.4` as values, with defaults for what is left out."""
    found = {key: option.default for key, option in known.items()}
    for part in filter(None, map(str.strip, rest.split(","))):
        key, equals, value = part.partition("=")
        if not equals or key not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise ConventionError(f"system {name}: no option {part!r}; {has}")
        found[key] = known[key].read(value, f"system {name}: {key}")
    return found


def system(spec: str) -> System:
    """The system that a SPEC names.

    >>> system("sqlite:mode=phrase").set["mode"]
    'phrase'
    """
    kind, _, rest = spec.strip().partition(":")
    if kind in HTTP_ENGINES:
        kind, rest = "http", spec.strip()
    elif kind not in SYSTEMS and rest and kind.replace(".", "").replace("_", "").isalnum():
        kind, rest = "python", spec.strip()  # module:function
    if kind not in SYSTEMS:
        known = ", ".join([*SYSTEMS, *HTTP_ENGINES])
        raise ConventionError(f"no system {spec!r}; expected one of {known}, or module:function")
    module, _, name = SYSTEMS[kind].partition(":")
    made: System = getattr(importlib.import_module(module), name)(rest)
    return made


def needed(package: str, install: str, what: str) -> Any:
    """Import an optional package, or say how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(f"system {what} needs {package}, which is not installed: {install}") from error

"""The base class of systems under test, and SPECs such as `bm25s:k1=0.9,stem=no` that name one.

A system indexes documents (if it needs any) and answers one query at a time. It raises `Busy` for a temporary failure
(the driver tries again) and any other error for a permanent one. The driver takes care of time, memory, retries and
the run file, so a module of an engine contains nothing but the engine.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import Choice, read_pairs
from cranfield.base.registry import Registered, Registry, about, unknown
from cranfield.formats.streams import endpoint_advice, is_url
from cranfield.retrieval.http_template import templates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cranfield.base.collection import Document, Topic


Ranking = list[tuple[str, float]]  # documents and scores, best first

SYSTEMS: Registry[type[System]] = Registry("system", "systems", "cranfield.retrieval.engines")


class Busy(Exception):
    """A temporary failure. `after` is how many seconds the engine asks to wait.

    `kind` names the failure: a status, `silence`, `dropped` or `not JSON`.
    """

    def __init__(self, why: str, after: float | None = None, kind: str = "") -> None:
        super().__init__(why)
        self.after = after
        self.kind = kind


class Refused(Busy):
    """A refused connection; temporary if the engine restarts, permanent if there is none."""


class Rejected(DataError):
    """An answer whose status says that a retry is useless; `excerpt` is the beginning of its body."""

    def __init__(self, why: str, status: int, excerpt: str) -> None:
        super().__init__(why)
        self.status = status
        self.excerpt = excerpt


class Unreachable(DataError):
    """An engine that refused the very first connection; no further queries are asked."""


class Broken(DataError):
    """A failure of a system that answers all queries at once; `answers` are those before the failure."""

    def __init__(self, problem: str, answers: dict[str, Ranking]) -> None:
        super().__init__(problem)
        self.answers = answers


@dataclass(frozen=True, slots=True)
class Query:
    """A topic and its text to search for."""

    id: str
    text: str
    topic: Topic


class System(Registered, ABC):
    """A system under test. Make one with `system("bm25s")`, `close` it when done. Listings show its docstring."""

    registry = SYSTEMS
    place: ClassVar[int] = 100  # its place in listings
    usage: ClassVar[str]  # how to type it; by default its name
    needs_documents: ClassVar[bool] = True
    in_process: ClassVar[bool] = True  # whether the system runs in this process
    batch: ClassVar[bool] = False  # whether it answers all queries at once
    keeps_order: bool = False  # whether the order of the list counts if the scores do not fall
    packages: ClassVar[tuple[str, ...]] = ()  # packages whose versions are recorded

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls) and "usage" not in vars(cls):
            cls.usage = cls.name

    def __init__(self, rest: str = "") -> None:
        super().__init__(**read_pairs(rest, self.name))

    @property
    def indexes(self) -> bool:
        """Whether it indexes documents before it is queried."""
        return self.needs_documents

    def index(self, documents: Iterable[Document], folder: str) -> None:
        """Index the documents; files of the index go into the folder."""

    @abstractmethod
    def search(self, query: Query, k: int) -> Ranking:
        """The best k documents with their scores. Several threads may call it at once."""

    def search_all(self, queries: Sequence[Query], k: int) -> dict[str, Ranking]:
        """The answers to all queries by their ids, for a system that answers them at once."""
        return {query.id: self.search(query, k) for query in queries}

    def timeout(self, seconds: float) -> None:
        """Set the time-out of an answer; an engine in this process cannot be stopped."""

    def most_bytes(self, count: int) -> None:
        """Set the largest size of an answer; it does not apply to an engine in this process."""

    def described(self, spec: str) -> str:
        """The SPEC without secrets, as it may be recorded."""
        return spec

    def close(self) -> None:
        """Release resources."""

    def versions(self) -> dict[str, str]:
        """The versions of packages that answers may depend on."""
        from importlib.metadata import PackageNotFoundError, version

        versions = {}
        for package in self.packages:
            with suppress(PackageNotFoundError):
                versions[package] = version(package)
        return versions


def system(spec: str) -> System:
    """The system that a SPEC names.

    >>> system("sqlite:mode=phrase").mode
    'phrase'
    """
    kind, _, rest = spec.strip().partition(":")
    if is_url(spec.strip()):
        raise ConventionError(f"{spec.strip()}: {endpoint_advice(spec.strip())}")
    if kind in templates():
        kind, rest = "http", spec.strip()
    elif SYSTEMS.find(kind) is None and rest and kind.replace(".", "").replace("_", "").isalnum():
        kind, rest = "python", spec.strip()  # module:function
    cls = SYSTEMS.find(kind)
    if cls is None:
        raise unknown("system", spec, [*(each.name for each in listed()), *templates(), "module:function"])
    return cls(rest)


def id_text(value: Any, where: str) -> str:
    """A document's id as text: a text, or the digits of an integer; anything else is refused.

    >>> id_text("d1", "engine"), id_text(7, "engine")
    ('d1', '7')
    """
    if isinstance(value, str):
        return value
    with suppress(TypeError):
        if not isinstance(value, bool):
            return str(operator.index(value))
    raise DataError(f"{where}: expected a document's id as text or a whole number, found {value!r:.60}")


def listed() -> list[type[System]]:
    """The systems, the most usual first."""
    return sorted(SYSTEMS.values(), key=lambda cls: cls.place)


def specs() -> list[str]:
    """The SPEC of each system, as users type it."""
    return [cls.usage for cls in listed()] + [f"{name}:URL" for name in templates()]


def catalogue() -> list[dict[str, Any]]:
    """A row for each system: how to type it, what it is, its options with defaults and meanings."""
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

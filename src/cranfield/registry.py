"""Rooms whose members are found by name: a strategy, a fusion method, a system under test is one class in one file.

A class enters itself when its file is imported, and the files of a room's folder are imported when somebody asks for the
first of them. There is no other list: help, docs, listings, messages and tests read the registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from cranfield.errors import ConventionError
from cranfield.parameters import Parametrised, described, read_call

if TYPE_CHECKING:
    from collections.abc import Iterator

Member = TypeVar("Member", bound="Registered")


class Registry(Mapping[str, "type[Member]"]):
    """The members of a room by name, in the order of its files."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind  # for messages: "fusion method"
        self.package = package
        self._members: dict[str, type[Member]] = {}
        self._loaded = False

    def add(self, member: type[Member]) -> None:
        """Enter a class under its name."""
        self._members[member.name] = member

    def _all(self) -> dict[str, type[Member]]:
        if not self._loaded:
            import importlib
            import pkgutil

            self._loaded = True
            for module in pkgutil.iter_modules(importlib.import_module(self.package).__path__):
                importlib.import_module(f"{self.package}.{module.name}")
            by_file = sorted(self._members.items(), key=lambda item: item[1].__module__)  # whoever was imported first
            self._members = dict(by_file)
        return self._members

    def __getitem__(self, name: str) -> type[Member]:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def knows(self, typed: str) -> bool:
        """Whether what one types is a member's name or a peer's, whatever stands in its brackets."""
        return self._called(read_call(typed)[0]) is not None

    def _called(self, name: str) -> type[Member] | None:
        return next((each for each in self.values() if folded(name) in map(folded, (each.name, *each.aliases))), None)

    def named(self, typed: str | Member) -> Member:
        """A member by what one types: its name or a peer's in any case of letters, parameters in brackets."""
        if not isinstance(typed, str):
            return typed
        name, parameters = read_call(typed)
        member = self._called(name)
        if member is not None:
            own = {folded(alias): values for alias, values in member.of_alias.items()}
            return member(**{**own.get(folded(name), {}), **parameters})
        raise ConventionError(f"no {self.kind} {typed!r}; there are {', '.join(self)}")


class Registered(Parametrised):
    """What is found in the registry of its room; a class without a name of its own is only a base."""

    registry: ClassVar[Registry[Any]]
    aliases: ClassVar[tuple[str, ...]] = ()
    of_alias: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # parameters that go with an alias

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            cls.registry.add(cls)


def folded(name: str) -> str:
    """A name without what people type in different ways.

    >>> folded("Min-Max") == folded("min_max")
    True
    """
    return name.lower().replace("-", "").replace("_", "")


def about(member: type) -> str:
    """The first paragraph of a class's docstring, on one line."""
    return " ".join((member.__doc__ or "").split("\n\n")[0].split())


def page(member: type[Registered], **facts: Any) -> dict[str, Any]:
    """All that is said about a member that has a formula and a reference, with facts of its kind."""
    return {
        "name": member.name,
        "about": about(member),
        **facts,
        **{name: getattr(member, name) for name in ("formula", "reference")},
        "aliases": list(member.aliases),
        "parameters": described(member),
    }

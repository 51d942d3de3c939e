"""A statistical method by name: one class says everything that is said about it.

A class that has a name is a member of its kind's registry by being defined. Tables, sentences, help and documentation read
from there what they say of it, so that no list of names stands anywhere else.
"""

from __future__ import annotations

import inspect
import unicodedata
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

from cranfield.errors import CranfieldError, DataError
from cranfield.parameters import Parametrised, described, read_call

if TYPE_CHECKING:
    from collections.abc import Sequence

Source: TypeAlias = Literal["formula", "exact", "exact or approximate", "exact or drawn", "drawn", "none"]


class Method(Parametrised):
    """A method: its docstring is what it is about."""

    kind: ClassVar[str]
    registry: ClassVar[dict[str, Any]]  # the members of its kind, each as it is without parameters
    refusal: ClassVar[type[CranfieldError]] = DataError

    title: ClassVar[str]
    short: ClassVar[str]  # in a sentence: the title, unless told otherwise
    reference: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    facts: ClassVar[tuple[str, ...]] = ()  # what else its kind says of itself, as attributes

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            cls.short = vars(cls).get("short", cls.title)
            cls.registry[cls.name] = cls()
            cls.arrange()

    @classmethod
    def arrange(cls, modules: Sequence[str] = ()) -> None:
        """Put the registry in order: by place, and within a place by these modules, or as it was."""
        place = {name: number for number, name in enumerate(modules)}
        members = sorted(
            cls.registry.values(), key=lambda one: (one.order, place.get(type(one).__module__, len(place)))
        )
        cls.registry.clear()
        cls.registry.update({one.name: one for one in members})

    @property
    def about(self) -> str:
        """What it asks or does, and what it assumes."""
        return " ".join(inspect.cleandoc(self.__doc__ or "").split())

    @property
    def order(self) -> tuple[bool, ...]:
        """Where it stands among its kind; members of one place stand as they were defined."""
        return ()

    @classmethod
    def find(cls, typed: str) -> Self | None:
        """A member by its name or an alias, with the parameters that were typed: `bayes(rope=0.01)`; None if there is none."""
        name, given = read_call(typed)
        wanted = _plain(name)
        members = (one.given(**given) for one in cls.registry.values() if wanted in (one.name, *one.aliases))
        return next(members, None)

    @classmethod
    def named(cls, typed: str) -> Self:
        """The same where there must be one."""
        member = cls.find(typed)
        if member is None:
            raise cls.refusal(f"no {cls.kind} {typed!r}; there are {', '.join(cls.registry)}")
        return member

    def given(self, **parameters: Any) -> Self:
        """The same with other parameters."""
        return type(self)(**{**self.values, **parameters}) if parameters else self

    def page(self) -> dict[str, Any]:
        """All that is said of it, as plain values."""
        said = ("name", "title", "short", "about", *self.facts, "aliases", "reference")
        values = {name: getattr(self, name) for name in said}
        return {
            **{name: list(value) if isinstance(value, tuple) else value for name, value in values.items()},
            "parameters": described(self),
        }


class SignificanceTest(Method):
    """A test of any kind: what it compares, and where its p-value comes from."""

    everywhere: ClassVar[dict[str, SignificanceTest]] = {}  # whatever the kind

    compares: ClassVar[Literal["means", "ranks", "wins"]] = "means"  # "means": by how much; else only who is ahead
    p_from: ClassVar[Source] = "exact"
    weighable: ClassVar[bool] = False  # its pairs may count for more than others
    facts: ClassVar[tuple[str, ...]] = ("samples", "compares", "p_from", "weighable")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            cls.everywhere[cls.name] = cls.registry[cls.name]

    @property
    def by_order(self) -> bool:
        """Whether it looks at who is ahead, not at by how much."""
        return self.compares != "means"


def _plain(name: str) -> str:
    """A name as the registries write it: small letters without accents, hyphens between."""
    letters = unicodedata.normalize("NFKD", name.strip().lower())
    return "".join(each for each in letters if not unicodedata.combining(each)).replace("_", "-").replace(" ", "-")

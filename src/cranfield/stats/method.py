"""Statistical methods by name: one class holds everything about a method.

Defining a class with a name registers it. The registry holds one object for each class, without parameters. Tables,
sentences, help and documentation are written from it.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Literal, Self, TypeAlias

from cranfield.base.errors import CranfieldError, DataError
from cranfield.base.parameters import described, read_call
from cranfield.base.registry import Registered

Source: TypeAlias = Literal["formula", "exact", "exact or approximate", "exact or drawn", "drawn", "none"]


class StatisticalMethod(Registered):
    """A statistical method; its docstring describes it."""

    refusal: ClassVar[type[CranfieldError]] = DataError

    title: ClassVar[str]
    short: ClassVar[str]  # in a sentence: the title, unless the class states another text
    reference: ClassVar[str] = ""
    facts: ClassVar[tuple[str, ...]] = ()  # further attributes of its kind for listings

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            cls.short = vars(cls).get("short", cls.title)

    @classmethod
    def entry(cls) -> Self:
        """The method without parameters."""
        return cls()

    @property
    def about(self) -> str:
        """The description: what the method does, and its assumptions."""
        return " ".join(inspect.cleandoc(self.__doc__ or "").split())

    @classmethod
    def find(cls, typed: str) -> Self | None:
        """The member of a name or alias, with the parameters that were typed: `bayes(rope=0.01)`; None if there is none."""
        name, parameters = read_call(typed)
        member = cls.registry.find(name)
        return None if member is None else member.with_parameters(**parameters)

    @classmethod
    def named(cls, typed: str) -> Self:
        """The member of a name or alias; an error that lists the names if there is none."""
        member = cls.find(typed)
        if member is None:
            raise cls.registry.unknown(typed)
        return member

    def with_parameters(self, **parameters: Any) -> Self:
        """The method with some parameters changed."""
        return type(self)(**{**self.values, **parameters}) if parameters else self

    def page(self) -> dict[str, Any]:
        """The description of the method as plain values."""
        facts = ("name", "title", "short", "about", *self.facts, "aliases", "reference")
        values = ((name, getattr(self, name)) for name in facts)
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values}
        return {**plain, "parameters": described(self)}


class SignificanceTest(StatisticalMethod):
    """A test of any kind: what it compares, and where its p-value comes from."""

    # "means": differences count; otherwise only their order
    compares: ClassVar[Literal["means", "ranks", "wins"]] = "means"
    p_from: ClassVar[Source] = "exact"
    weighable: ClassVar[bool] = False  # whether pairs can have weights
    design_based: ClassVar[bool] = False  # whether pairs can be a sample with unequal inclusion probabilities
    facts: ClassVar[tuple[str, ...]] = ("samples", "compares", "p_from", "weighable", "design_based")

    @property
    def by_order(self) -> bool:
        """Whether only the order counts, not the size of differences."""
        return self.compares != "means"

"""What is public says what it is, and says more than its name does.

ruff asks every public module, class and function for a docstring (D1) but cannot tell an override from a method of its
own, so D102 is off: an override that does what its base says needs none, and every other public method is looked at here.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import cranfield

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(cranfield.__file__).parent
FILLERS = set(
    "a an the of this that it its for to in as by is are all each every one return returns get gets give gives".split()
)


class Thing(NamedTuple):
    name: str  # with its class where it is a method
    docstring: str | None
    module: str = ""
    bases: tuple[str | None, ...] = ()  # the docstrings of what it overrides
    overrides: bool = False

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


def modules() -> Iterator[Any]:
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        if path.stem == "__main__":
            continue  # it runs when it is imported
        name = ".".join(parts[:-1] if path.stem == "__init__" else parts)
        if name == "cranfield.base.kernels.native" and not importlib.util.find_spec("cranfield.base.kernels._core"):
            continue  # there is no compiler here
        yield importlib.import_module(name)


def public_things(module: Any) -> Iterator[Thing]:
    """The public functions, classes and methods that a module itself defines."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value) and "<locals>" not in value.__qualname__:  # not made by another function
            yield Thing(name, value.__doc__, module.__name__)
        elif inspect.isclass(value):
            yield Thing(name, vars(value).get("__doc__"), module.__name__)
            yield from methods(value)


def methods(owner: type) -> Iterator[Thing]:
    """The public methods and properties that a class itself defines."""
    for name, value in vars(owner).items():
        function = function_of(value)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        if SOURCE not in Path(function.__code__.co_filename).parents or function.__name__ == "<lambda>":
            continue  # made by a decorator, or has no place for a docstring
        bases = [vars(base)[name] for base in owner.__mro__[1:] if name in vars(base)]
        said = tuple(function_of(base).__doc__ for base in bases)
        yield Thing(f"{owner.__name__}.{name}", function.__doc__, owner.__module__, said, bool(bases))


def function_of(value: Any) -> Any:
    inside = {property: "fget", cached_property: "func", staticmethod: "__func__", classmethod: "__func__"}
    return getattr(value, inside[type(value)]) if type(value) in inside else value


def stems(text: str) -> set[str]:
    """The words of a text or of a name, without endings and without what holds sentences together."""
    words = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)} - FILLERS
    return {re.sub(r"(?<=\w\w)(ies|es|s|ed|ing|e|y)$", "", word) for word in words}


def repeats(thing: Thing) -> bool:
    """Whether the docstring says nothing but the name, that of its class included."""
    return thing.docstring is not None and stems(thing.docstring) <= stems(thing.name)


@pytest.fixture(scope="module")
def things() -> list[Thing]:
    return [thing for module in modules() for thing in public_things(module)]


def test_every_public_function_class_and_method_says_what_it_is(things):
    assert len(things) > 1000
    assert [thing.path for thing in things if not thing.docstring and not thing.overrides] == []


def test_no_docstring_only_repeats_its_name(things):
    assert [f"{thing.path}: {thing.docstring}" for thing in things if repeats(thing)] == []


def test_no_override_only_repeats_what_its_base_says(things):
    said_twice = [thing for thing in things if thing.docstring and thing.docstring in thing.bases]
    assert [f"{thing.path}: {thing.docstring}" for thing in said_twice] == []


@pytest.mark.parametrize(
    ("name", "docstring"),
    [("Run.topics", "The topics."), ("scores.mean", "Return the mean of all scores."), ("Reader", "A reader.")],
)
def test_a_docstring_that_repeats_its_name_is_noticed(name, docstring):
    assert repeats(Thing(name, docstring))
    assert not repeats(Thing(name, docstring + " Unjudged ones are left out."))

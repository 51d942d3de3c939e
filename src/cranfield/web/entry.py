"""The one registry of routes: a page or an action is one function, and its decorator says who may call it.

`page` answers GET, `action` POST. Each has a `.json` twin, a page with a table a `.csv` one. Tests walk `entries()`: every
route with every role and origin; `/api` lists it.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cranfield.web.visit import Visit


@dataclass(frozen=True)
class Page:
    """What a page says: `values` are its JSON twin, `shown` what only the template sees, `table` its CSV."""

    title: str
    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)
    table: str | None = None
    scripts: Sequence[str] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cookie: str | None = None  # a session that begins, or an empty text for one that ends


@dataclass(frozen=True)
class Done:
    """What an action did: where a browser goes on, and what a program is told."""

    to: str
    values: Mapping[str, Any] = field(default_factory=dict)
    cookie: str | None = None  # a session that begins, or an empty text for one that ends
    status: int = 200  # of the JSON twin


Answered = Page | Done


class Entry(NamedTuple):
    """A route: what it is called, who may, what it calls."""

    path: str
    method: str
    role: str
    verb: str  # of the workspace or the room below, for people who read the list
    table: bool
    body: str  # "form", or "file" for one that takes a file as its body
    work: Callable[[Visit], Any]
    menu: tuple[int, str] | None = None  # where it stands in the menu, and its name there

    @property
    def said(self) -> str:
        """What it does, in a sentence."""
        return (self.work.__doc__ or "").strip().split("\n")[0]

    @property
    def name(self) -> str:
        """The path that twins are named by: the first page is called index."""
        return "/index" if self.path == "/" else self.path

    def paths(self) -> list[str]:
        """The path and those of its twins."""
        return [self.path, f"{self.name}.json", *([f"{self.name}.csv"] if self.table else [])]


_ENTRIES: dict[tuple[str, str], Entry] = {}


def page(
    path: str, role: str, verb: str = "", table: bool = False, menu: tuple[int, str] | None = None
) -> Callable[[Any], Any]:
    """Enter a function that shows something and changes nothing; `menu` is its place and its name in the menu."""
    return _entering(Entry(path, "GET", role, verb, table, "", _nothing, menu))


def action(path: str, role: str, verb: str = "", body: str = "form") -> Callable[[Any], Any]:
    """Enter a function that changes something."""
    return _entering(Entry(path, "POST", role, verb, False, body, _nothing))


def _nothing(visit: Visit) -> None:
    raise AssertionError("replaced when a function is entered")


def _entering(entry: Entry) -> Callable[[Any], Any]:
    def enter(work: Any) -> Any:
        _ENTRIES[entry.path, entry.method] = entry._replace(work=work)
        return work

    return enter


def entries() -> list[Entry]:
    """Every route, by path."""
    from cranfield.web import pages

    for module in pkgutil.iter_modules(pages.__path__):
        importlib.import_module(f"{pages.__name__}.{module.name}")
    return [entry for _, entry in sorted(_ENTRIES.items())]

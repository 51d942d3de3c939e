"""The registry of routes, and the request that each route gets.

A page or an action is one function; its decorator says who may call it. `page` answers GET, `action` answers POST. Each
has a twin that ends in `.json`; a page with a table also has one that ends in `.csv`, for spreadsheets, and a page of
judgments one that ends in `.qrels`: TREC's format, byte for byte. Tests call every entry of `entries()` with every role and
origin; `/api` lists them.

Blind judging is one rule, checked before the function runs and for every twin. A route says in `reveals` what its replies
depend on. RESULTS, the default: others' grades, gold, or the runs; assessors who judge blind are refused. PARTS: the
function asks `request.blind` and leaves those parts out. NOTHING: none of them. `tests/test_web_blind.py` compares every
byte that such an assessor gets from the routes that are not RESULTS.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.registry import Registry
from cranfield.http.refusal import Refusal
from cranfield.workbench.access_control import ASSESSOR, NOBODY, blind_work, may, refuse_blind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cranfield.store.accounts import Account
    from cranfield.workbench.site import Site


RESULTS, PARTS, NOTHING = "results", "parts", "nothing"  # what a route reveals, see above
GROUPS = ("judge", "look", "decide", "manage")  # of the menu


@dataclass(frozen=True)
class PageRequest:
    """One request as a page sees it: account, query and form. Ids come from the query or the form, never from the path."""

    site: Site
    path: str
    account: Account | None
    query: Mapping[str, Sequence[str]]
    form: Mapping[str, Any] = field(default_factory=dict)
    file: Any = None  # an upload, where the route takes one
    secret: str = ""  # of the session, if there is one
    address: str = ""
    forwarded: str = ""  # the name of the person, as the proxy says it
    twin: str = "html"

    @property
    def name(self) -> str:
        """The name of the account; empty if nobody is signed in."""
        return "" if self.account is None else self.account.name

    @property
    def role(self) -> str:
        """The role of the account."""
        return NOBODY if self.account is None else self.account.role

    def may(self, role: str) -> bool:
        """Whether the account may do what a role may do."""
        return may(self.role, role)

    def assessors(self) -> list[str]:
        """The names of the active accounts of this workspace that may judge."""
        return [each.name for each in self.site.accounts.all() if may(each.role, ASSESSOR) and each.active]

    @cached_property
    def blind(self) -> bool:
        """Whether the account judges blind: hide others' labels, gold and runs."""
        return bool(blind_work(self.account, self.site))

    def refuse_blind(self) -> None:
        """Raise Refusal if the account judges blind."""
        refuse_blind(self.path, self.account, self.site)

    def text(self, name: str, usual: str = "") -> str:
        """A parameter of the query."""
        return (self.query.get(name) or [usual])[-1]

    def texts(self, name: str) -> list[str]:
        """A parameter of the query that may occur several times."""
        return [each for each in self.query.get(name, []) if each]

    def required(self, name: str) -> str:
        """A parameter of the query that the page needs; Refusal if it is missing."""
        value = self.text(name)
        if not value:
            raise Refusal(f"{self.path} needs the parameter {name}: {self.path}?{name}=…", 400, safe="")
        return value

    def whole(self, name: str, usual: int, least: int = 0, most: int = 10**6) -> int:
        """A parameter of the query that is a whole number."""
        return _whole(self.text(name), name, usual, least, most)

    def whole_form_field(self, name: str, usual: int, least: int = 0, most: int = 10**6) -> int:
        """A field of the form that is a whole number."""
        return _whole(self.form_field(name).strip(), name, usual, least, most)

    def form_field(self, name: str, usual: str = "") -> str:
        """The text that the browser sent under a name, or a default."""
        value = self.form.get(name, usual)
        if isinstance(value, list):
            value = value[-1] if value else usual
        return value if isinstance(value, str) else usual if value is None else str(value)

    def form_fields(self, name: str) -> list[str]:
        """A field of the form that may occur several times."""
        value = self.form.get(name, [])
        return [str(each) for each in value] if isinstance(value, list) else [str(value)]

    def number(self, name: str, usual: float | None = None) -> float | None:
        """A field of the form that is a finite number; `usual` if the field is empty."""
        text = self.form_field(name).strip()
        if not text:
            return usual
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise Refusal(f"expected a number as {name}, found {text[:60]!r}")
        return value


def _whole(text: str, name: str, usual: int, least: int, most: int) -> int:
    try:
        value = int(text) if text else usual
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise Refusal(f"expected a whole number of {least} to {most:,} as {name}, found {text[:60]!r}")
    return value


class RawBody(NamedTuple):
    """The bytes of a file that is served instead of a page: its media type and its policy."""

    content: bytes
    kind: str
    policy: str


@dataclass(frozen=True)
class Page:
    """The content of a page: `values` for the JSON twin and the template, `context` for the template only, `table` as CSV.

    `image_hosts` are the hosts whose images the page may load. A route that serves a file has `raw` and no template.
    """

    title: str
    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    table: str | None = None
    scripts: Sequence[str] = ()
    status: int = 200
    image_hosts: Sequence[str] = ()
    raw: RawBody | None = None
    qrels: Callable[[], bytes] | None = None  # called for the twin that delivers them


@dataclass(frozen=True)
class ActionResult:
    """The result of an action: `to` is where the browser goes next, `values` is the reply to programs."""

    to: str
    values: Mapping[str, Any] = field(default_factory=dict)
    cookie: str | None = None  # the secret of a new session; empty: the session ends


class Download(NamedTuple):
    """A file as the answer of a page: the name under which a browser stores it, its media type, and its path or bytes."""

    path: str  # of a large file, which is streamed; empty if there are bytes
    name: str
    kind: str
    content: bytes = b""

    @property
    def size(self) -> int:
        """The number of bytes."""
        return os.path.getsize(self.path) if self.path else len(self.content)


class RouteEntry(NamedTuple):
    """One route: the function that answers, its path and method, and the least role that may call it."""

    work: Callable[[PageRequest], Any]
    path: str
    method: str
    role: str
    verb: str  # the function behind the page, for readers of /api
    table: bool
    body: str  # "form", or "file" for one that takes a file as its body
    reveals: str = RESULTS  # or PARTS, NOTHING
    menu: tuple[str, int, str] | None = None  # see `page`
    largest: int = 0  # bytes of the file that it takes; 0: those of a run
    qrels: bool = False  # whether it has judgments to download

    @property
    def summary(self) -> str:
        """What the route does, in one sentence."""
        return (self.work.__doc__ or "").strip().split("\n")[0]

    @property
    def name(self) -> str:
        """The path without ending from which the paths of the twins are made: the first page is /index."""
        return "/index" if self.path == "/" else self.path

    def paths(self) -> list[str]:
        """The path of the page and the paths of its twins."""
        twins = {"json": True, "csv": self.table, "qrels": self.qrels}
        return [self.path, *(f"{self.name}.{ending}" for ending, exists in twins.items() if exists)]


PAGES: Registry[RouteEntry] = Registry(
    "workbench page", "workbench_pages", "cranfield.workbench.pages", order=lambda entry: (entry.path, entry.method)
)


def page(
    path: str,
    role: str,
    verb: str = "",
    table: bool = False,
    menu: tuple[str, int, str] | None = None,
    reveals: str = RESULTS,
    qrels: bool = False,
) -> Callable[[Any], Any]:
    """Register a function that answers GET and changes nothing.

    `menu` is the group of the page (one of GROUPS), its position and its name there; without a name it is not listed.
    """
    return _register(path, "GET", role, verb, table, "", reveals, menu, 0, qrels)


def action(
    path: str, role: str, verb: str = "", body: str = "form", reveals: str = RESULTS, largest: int = 0
) -> Callable[[Any], Any]:
    """Register a function that answers POST and changes something; `largest` limits the bytes of an upload."""
    return _register(path, "POST", role, verb, False, body, reveals, None, largest)


def _register(path: str, method: str, *fields: Any) -> Callable[[Any], Any]:
    def enter(work: Any) -> Any:
        PAGES.add(RouteEntry(work, path, method, *fields), f"{method} {path}", work.__module__)
        return work

    return enter


def entries() -> list[RouteEntry]:
    """Every route, by path."""
    return list(PAGES.values())

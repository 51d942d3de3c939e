"""Templates and static files: Jinja2 with everything escaped, and a fixed set of files known by their hashes."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cranfield.columns import legible
from cranfield.web.entry import entries
from cranfield.web.roles import NOBODY, may
from cranfield.workspace.links import link as link  # templates and pages find it here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.answer import Answer
    from cranfield.http.refusal import Refusal
    from cranfield.store.accounts import Account
    from cranfield.web.entry import Page
    from cranfield.web.site import Site
    from cranfield.web.visit import Visit

KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
SHELVES = (("cranfield.web", "static"), ("cranfield.report", ""))  # page.css is the report's


class Static(NamedTuple):
    """A file as it is sent."""

    body: bytes
    kind: str
    hash: str


@cache
def statics() -> dict[str, Static]:
    """Every file that may be sent, by name."""
    answer = {}
    for package, folder in SHELVES:
        for file in (files(package) / folder if folder else files(package)).iterdir():
            ending = file.name.rpartition(".")[2]
            if ending in KINDS and file.is_file():
                body = file.read_bytes()
                answer[file.name] = Static(body, KINDS[ending], hashlib.sha256(body).hexdigest()[:16])
    return answer


def static_file(name: str) -> Static | None:
    """A file by its name."""
    return statics().get(name)


def static_url(name: str) -> str:
    """Where a file is found; another content has another address."""
    return f"/static/{name}?v={statics()[name].hash}"


def shown(answer: Answer) -> Markup:
    """A result as a piece of HTML, by the one renderer."""
    from cranfield.workspace.verb import shown as piece

    return Markup(piece(answer))


def marked(text: str, spans: Sequence[tuple[int, int]]) -> Markup:
    """Text with some of its words marked."""
    parts, end = [], 0
    for start, stop in spans:
        parts += [escape(text[end:start]), Markup("<mark>"), escape(text[start:stop]), Markup("</mark>")]
        end = stop
    return Markup("").join([*parts, escape(text[end:])])


def capfirst(text: str) -> str:
    """A sentence begins with a capital, unless it begins with a name."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


@cache
def environment() -> Environment:
    """The templates, everything escaped."""
    made = Environment(
        loader=PackageLoader("cranfield.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"static": static_url, "link": link}
    made.filters |= {"capfirst": capfirst, "legible": legible, "shown": shown, "trusted": Markup}
    return made


def render(site: Site, visit: Visit, page: Page) -> str:
    """A page as HTML."""
    around = {**_frame(site, visit.account, visit.path), "visit": visit, "scripts": page.scripts, "title": page.title}
    return environment().get_template(page.template).render({**page.values, **page.shown, **around})


@cache
def menu_of_all() -> list[tuple[str, str, str]]:
    """The pages that the menu names: path, name and least role, in their order."""
    listed = [(entry.menu, entry) for entry in entries() if entry.menu is not None]
    ordered = sorted(listed, key=lambda each: each[0])
    return [(entry.path, name, entry.role) for (_, name), entry in ordered]


def _frame(site: Site, account: Account | None, path: str) -> dict[str, Any]:
    """What surrounds every page."""
    role = NOBODY if account is None else account.role
    menu = [(path, name) for path, name, least in menu_of_all() if may(role, least)]
    theme = "" if account is None else str(account.settings.get("theme", ""))
    return {"workspace": site.bench.name, "account": account, "menu": menu, "here": path, "theme": theme}


def error_page(site: Site, account: Account | None, refusal: Refusal) -> str:
    """What happened, what is safe, what to do."""
    return (
        environment()
        .get_template("error.html")
        .render(title=refusal.said, refusal=refusal, scripts=(), **_frame(site, account, ""))
    )

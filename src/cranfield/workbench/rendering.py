"""How pages are written: Jinja2 templates with everything escaped, static files with their hashes, and CSV tables."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import ChoiceLoader, Environment, FunctionLoader, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from cranfield.base.errors import CranfieldError
from cranfield.base.results import Answer, defused
from cranfield.base.text_layout import legible
from cranfield.workbench.access_control import NOBODY, account_mark, blind_work, may
from cranfield.workbench.command_lines import command_of
from cranfield.workbench.links import link
from cranfield.workbench.routes import GROUPS, RESULTS, Page, PageRequest, RouteEntry, entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cranfield.http.refusal import Refusal
    from cranfield.store.accounts import Account
    from cranfield.workbench.site import Site


KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
FOLDERS = (("cranfield.workbench", "static"), ("cranfield.reports", ""))  # page.css is the report's
ADDRESS = re.compile(r"""( (?:href|src|action|formaction|content|data-follow)="/)(?!/)""")  # in HTML: of this workspace
SCRIPT_ADDRESS = re.compile(r"""(["'`]/)(?=[a-z])""")  # in our scripts


class StaticFile(NamedTuple):
    """A static file, its media type and its hash."""

    body: bytes
    kind: str
    hash: str

    @property
    def compressed(self) -> bytes:
        """The content as gzip. Only static files are compressed: the size of a compressed page could betray a secret in it."""
        return _gzip(self.body)


@cache
def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


def under(prefix: str, html: str) -> str:
    """A page with the prefix of its workspace added to all addresses; templates name addresses without it.

    >>> under("/garden", '<a href="/runs">')
    '<a href="/garden/runs">'
    """
    return ADDRESS.sub(lambda match: f"{match[1]}{prefix[1:]}/", html) if prefix else html


@cache
def statics(prefix: str = "") -> dict[str, StaticFile]:
    """Every static file, by name; scripts name the addresses under a prefix."""
    if prefix:
        return {name: file._replace(body=_script_under(prefix, name, file)) for name, file in statics().items()}
    answer = {}
    for package, folder in FOLDERS:
        for file in (files(package) / folder if folder else files(package)).iterdir():
            ending = file.name.rpartition(".")[2]
            if ending in KINDS and file.is_file():
                body = file.read_bytes()
                answer[file.name] = StaticFile(body, KINDS[ending], hashlib.sha256(body).hexdigest()[:16])
    return answer


def _script_under(prefix: str, name: str, file: StaticFile) -> bytes:
    if not name.endswith(".js"):
        return file.body
    return SCRIPT_ADDRESS.sub(lambda match: f"{match[1]}{prefix[1:]}/", file.body.decode()).encode()


def static_url(name: str) -> str:
    """The address of a static file; it changes with the content, so that browsers may cache it for ever."""
    return f"/static/{name}?v={statics()[name].hash}"


def safe_html(answer: Answer) -> Markup:
    """A result as HTML that templates need not escape."""
    from cranfield.workbench.question import answer_html

    return Markup(answer_html(answer))


def marked(text: str, spans: Sequence[tuple[int, int]]) -> Markup:
    """Text with the spans marked."""
    parts, end = [], 0
    for start, stop in spans:
        parts += [escape(text[end:start]), Markup("<mark>"), escape(text[start:stop]), Markup("</mark>")]
        end = stop
    return Markup("").join([*parts, escape(text[end:])])


def marked_around(text: str, spans: Sequence[tuple[int, int]], cut: int) -> tuple[Markup, Markup]:
    """The text before and after a place, each with its spans marked."""
    after = [(start - cut, stop - cut) for start, stop in spans if start >= cut]
    return marked(text[:cut], [span for span in spans if span[1] <= cut]), marked(text[cut:], after)


def capfirst(text: str) -> str:
    """A sentence with a capital at its start, unless its first word looks like a name."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def _template_of_package(name: str) -> str | None:
    """A template of another package, `package:file.html`, from the package's folder `templates`; None if there is none."""
    package, _, file = name.partition(":")
    path = files(package) / "templates" / file if file else None
    return path.read_text(encoding="utf-8") if path is not None and path.is_file() else None


@cache
def environment() -> Environment:
    """The Jinja2 environment; it escapes everything."""
    templates = Environment(
        loader=ChoiceLoader([PackageLoader("cranfield.workbench"), FunctionLoader(_template_of_package)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {"static": static_url, "link": link}
    templates.filters |= {"capfirst": capfirst, "legible": legible, "answer_html": safe_html, "trusted": Markup}
    return templates


def render(site: Site, request: PageRequest, page: Page) -> str:
    """A page as HTML."""
    around = {**_frame(site, request.account, request.path, request.blind), "request": request}
    around |= {"scripts": page.scripts, "title": page.title, "command": command_of(request)}
    html = environment().get_template(page.template).render({**page.values, **page.context, **around})
    return under(site.manner.path, html)


class MenuGroup(NamedTuple):
    """A group of the menu: its name, the paths and names of its pages, and whether the page that is shown belongs to it."""

    name: str
    pages: Sequence[tuple[str, str]]
    current: bool


@cache
def menu_of_all() -> list[tuple[str, RouteEntry]]:
    """The pages of the menu and their groups, in order; a page without a name only belongs to its group."""
    listed = [(entry.menu, entry) for entry in entries() if entry.menu is not None]
    listed.sort(key=lambda each: (GROUPS.index(each[0][0]), each[0][1], each[1].path))
    return [(menu[0], entry) for menu, entry in listed]


def menu_for(role: str, blind: bool, here: str) -> list[MenuGroup]:
    """The menu of a role on a page: groups with the pages that it may open; groups without any are left out."""
    groups = []
    for name in GROUPS:
        entries_in = [entry for group, entry in menu_of_all() if group == name]
        open_to = [each for each in entries_in if may(role, each.role) and not (blind and each.reveals == RESULTS)]
        pages = [(each.path, each.menu[2]) for each in open_to if each.menu is not None and each.menu[2]]
        if pages:
            groups.append(MenuGroup(name, pages, here in [each.path for each in entries_in]))
    return groups


def _frame(site: Site, account: Account | None, path: str, blind: bool) -> dict[str, Any]:
    """The template values that every page needs: menu, account, theme."""
    menu = menu_for(NOBODY if account is None else account.role, blind, path)
    theme = "" if account is None else str(account.settings.get("theme", ""))
    mark = "" if account is None else account_mark(site.bench.name, account)
    about = {"workspace": site.bench.name, "prefix": site.manner.path, "account": account, "mark": mark}
    return {**about, "menu": menu, "here": path, "theme": theme}


def error_page(site: Site, account: Account | None, refusal: Refusal) -> str:
    """The page of a refusal: what happened, what is safe, what to do."""
    try:
        blind = bool(blind_work(account, site))
    except CranfieldError:  # the database does not answer, which may be the reason of the refusal
        blind = True
    frame = _frame(site, account, "", blind)
    html = environment().get_template("error.html").render(title=refusal.problem, refusal=refusal, scripts=(), **frame)
    return under(site.manner.path, html)


def csv_of(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A header and rows as CSV; no cell starts a formula in a spreadsheet.

    >>> csv_of(["id", "n"], [("=1+1", 2), ("a,b", 3)])
    'id,n\\n\\'=1+1,2\\n"a,b",3\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([defused(str(cell)) for cell in row] for row in rows)
    return text.getvalue()

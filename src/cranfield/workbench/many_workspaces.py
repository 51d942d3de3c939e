"""Several workspaces on one server: each under its own prefix, and a first page that lists them.

Each workspace has its own log, accounts, cookie, caches and storage in the browser. Accounts are not shared, because
somebody may be a lead in one workspace and an assessor in the next; but signing in on the first page signs in to every
workspace where this name has this password. A workspace that cannot be opened is listed with the reason, and the others
are served. The first page lists only workspaces that the visitor may open.

The application of a workspace does not know its prefix: it sees paths without it. Addresses in pages and scripts get the
prefix when they are sent (`rendering.under`).
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from cranfield.base.errors import CranfieldError, DataError
from cranfield.base.results import as_json
from cranfield.formats.streams import reason
from cranfield.http.body import STRANGER_BYTES, STRANGER_SECONDS, read_body
from cranfield.http.refusal import HEADERS, NotFound, Refusal, refusal_of, refuse_host, refuse_origin
from cranfield.inputs.workspace import refuse_file_name
from cranfield.workbench import access_control
from cranfield.workbench.app import HTML, JSON, StaticFiles, application, lifespan, read_fields
from cranfield.workbench.pages.people import sign_in
from cranfield.workbench.rendering import environment
from cranfield.workbench.routes import ActionResult, PageRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from cranfield.http.serving import ServerSettings
    from cranfield.store.accounts import Account
    from cranfield.workbench.site import Site

RESERVED = ("static", "enter", "login", "new", "index.json")  # addresses of the first page


class BrokenWorkspace(NamedTuple):
    """A workspace that could not be opened, and why."""

    name: str
    problem: str


def prefix_of(folder: str) -> str:
    """The prefix of a workspace: the name of its folder.

    >>> prefix_of("/data/my garden")
    '/my%20garden'
    """
    return "/" + quote(os.fsencode(os.path.basename(os.path.abspath(folder))), safe="")


def refuse_same_names(folders: Sequence[str]) -> None:
    """Raise DataError for folders whose prefixes would be the same, or those of the first page."""
    names: dict[str, str] = {}
    for folder in folders:
        name = os.path.basename(os.path.abspath(folder))
        if name in RESERVED:
            raise DataError(f"{folder}: a workspace of several cannot be called {name}; rename the folder")
        other = names.setdefault(name.casefold(), folder)
        if other != folder:
            raise DataError(f"{other} and {folder} have the same name; rename one of the folders")


def workspaces_in(parent: str) -> list[str]:
    """The folders in a folder of workspaces."""
    try:
        names = sorted(name for name in os.listdir(parent) if not name.startswith("."))
    except OSError as error:
        raise DataError(f"{parent}: {reason(error)}") from None
    folders = [path for path in (os.path.join(parent, name) for name in names) if os.path.isdir(path)]
    if not folders:
        raise DataError(f"{parent}: expected folders, each a workspace, found none; make one: mkdir {parent}/NAME")
    return folders


class WorkspaceServer:
    """Serves several workspaces as one ASGI application.

    `parent` is the folder in which leads may create workspaces; `open_site` opens a folder as a site.
    """

    def __init__(
        self,
        manner: ServerSettings,
        sites: Sequence[Site],
        broken: Sequence[BrokenWorkspace] = (),
        parent: str | None = None,
        open_site: Callable[[str], Site] | None = None,
    ) -> None:
        self.manner = manner
        self.broken = list(broken)
        self.parent = parent
        self.open_site = open_site
        self.sites: dict[str, Site] = {}
        self._applications: dict[str, ASGIApp] = {}
        for site in sites:
            self.add(site)
        pages = [("/", "GET", _overview), ("/index.json", "GET", _overview), ("/enter", "GET", _enter)]
        pages += [("/login", "POST", _sign_in), ("/new", "POST", _create)]
        routes = [Route(path, _Endpoint(self, method, work)) for path, method, work in pages]
        routes.append(Route("/static/{name}", StaticFiles(manner)))
        self._first_page = Starlette(
            routes=[*routes, Route("/{rest:path}", _Endpoint(self, "GET", _missing))], lifespan=lifespan
        )

    def add(self, site: Site) -> None:
        """Serve one more workspace."""
        self.sites[site.bench.name] = site
        self._applications[site.bench.name] = application(site)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._first_page(scope, receive, send)
            return
        first, slash, rest = scope["raw_path"].partition(b"?")[0].removeprefix(b"/").partition(b"/")
        inner = self._applications.get(os.fsdecode(unquote_to_bytes(first)))
        if inner is None:
            await self._first_page(scope, receive, send)
        elif not slash:
            await RedirectResponse(f"/{first.decode('ascii')}/", 308, HEADERS)(scope, receive, send)
        else:
            path = scope["path"].removeprefix("/").partition("/")[2]
            await inner({**scope, "path": f"/{path}", "raw_path": b"/" + rest}, receive, send)

    def names(self) -> set[str]:
        """The names of all workspaces, as they are compared."""
        return {name.casefold() for name in (*self.sites, *(each.name for each in self.broken), *RESERVED)}


class _Visit(NamedTuple):
    """A request to the first page, with the account that it has in each workspace."""

    server: WorkspaceServer
    request: Request
    accounts: dict[str, Account]
    form: dict[str, Any]

    @property
    def leads(self) -> bool:
        """Whether somebody is a lead in any workspace, and may see broken ones and create new ones."""
        return any(account.role == access_control.LEAD for account in self.accounts.values())

    @property
    def address(self) -> str:
        return self.request.client.host if self.request.client else ""

    def field(self, name: str) -> str:
        values = self.form.get(name, "")
        return str((values or [""])[-1] if isinstance(values, list) else values)

    def to_site(self, site: Site) -> PageRequest:
        """The same request to a workspace."""
        return PageRequest(site, "/login", None, {}, self.form, address=self.address, twin="html")


class _Endpoint:
    """One address of the first page: hosts and origins are checked as for every page, errors become pages."""

    def __init__(self, server: WorkspaceServer, method: str, work: Callable[[_Visit], Awaitable[Response]]) -> None:
        self.server, self.method, self.work = server, method, work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except CranfieldError as error:
            refusal = refusal_of(error)
            html = _page("error.html", refusal.problem, refusal=refusal)
            headers = {"Retry-After": f"{max(1, round(refusal.wait))}"} if refusal.wait else {}
            response = Response(html, refusal.status, headers, HTML)
        except ClientDisconnect:
            return
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        refuse_host(request, self.server.manner)
        method = "GET" if request.method == "HEAD" else request.method
        if method != self.method:
            raise Refusal(f"this address takes {self.method}, not {request.method[:20]}", 405)
        form: dict[str, Any] = {}
        if method == "POST":
            refuse_origin(request, self.server.manner)
            form = read_fields(request, await read_body(request, STRANGER_BYTES, STRANGER_SECONDS))
        accounts = await run_sync(_accounts, self.server, request)
        return await self.work(_Visit(self.server, request, accounts, form))


def _accounts(server: WorkspaceServer, request: Request) -> dict[str, Account]:
    """The account of a visitor in each workspace; a workspace whose database does not answer is left out."""
    accounts = {}
    for name, site in server.sites.items():
        with suppress(CranfieldError):
            account, _, _ = access_control.identify(request, site, enrol=False)
            if account is not None:
                accounts[name] = account
    return accounts


def _page(template: str, title: str, **values: Any) -> bytes:
    frame: dict[str, Any] = {"workspace": "Workspaces", "prefix": "", "account": None, "mark": "", "menu": []}
    frame |= {"here": "", "theme": "", "scripts": (), "title": title}
    html = environment().get_template(template).render(**frame, **values)
    return html.encode("utf-8", "backslashreplace")


async def _missing(visit: _Visit) -> Response:
    """The reply to an address that belongs to no workspace: strangers do not learn which workspaces exist."""
    raise NotFound("there is no such page", "The workspaces: /")


async def _overview(visit: _Visit) -> Response:
    """The workspaces that the visitor may open; a stranger is asked for name and password."""
    return _first_page(visit)


def _first_page(visit: _Visit, problem: str = "", name: str = "", status: int = 200) -> Response:
    server = visit.server
    rows = [
        {"name": each, "to": f"{server.sites[each].manner.path}/", "account": account.name, "role": account.role}
        for each, account in sorted(visit.accounts.items())
    ]
    broken = [each._asdict() for each in server.broken] if visit.leads else []
    values = {"workspaces": rows, "broken": broken, "problem": problem}
    if visit.request.scope["path"].endswith(".json"):
        return Response(as_json(values), status, media_type=JSON)
    more = {"creates": bool(server.parent) and visit.leads, "name": name}
    more |= {"accounts": server.manner.accounts and not server.manner.auth_header}
    more |= {"request_proxy": bool(server.manner.auth_header)}
    more |= {"all": len(rows) == len(server.sites)}
    return Response(_page("workspaces.html", "Workspaces", **values, **more), status, media_type=HTML)


async def _enter(visit: _Visit) -> Response:
    """Sign the person who started the server in to every workspace, with the key of the printed link."""
    key = visit.request.query_params.get("key", "")
    cookies = [] if visit.server.manner.accounts else await run_sync(_sessions_by_key, visit.server, key)
    if not cookies:
        advice = "cranfield serve FOLDER … --link prints a new one."
        raise Refusal("this link was used, or is older than ten minutes", 403, safe="", advice=advice)
    return _with_cookies(cookies, "/")


def _sessions_by_key(server: WorkspaceServer, key: str) -> list[str]:
    sites = list(server.sites.values())
    if not any(_accepts(site, key) for site in sites):
        return []
    return [access_control.cookie(site.manner, site.begin_local_session()) for site in sites]


def _accepts(site: Site, key: str) -> bool:
    try:
        return site.accounts.use_key(key)
    except CranfieldError:
        return False


async def _sign_in(visit: _Visit) -> Response:
    """Sign in to every workspace where the name has this password. Each counts failed attempts by itself."""
    server, name = visit.server, visit.field("name").strip()
    if not server.manner.accounts or server.manner.auth_header:
        raise Refusal("nobody signs in with a password here", 403, safe="")
    holders = await run_sync(lambda: [site for site in server.sites.values() if site.accounts.find(name)])
    cookies, refusal = [], None
    for site in holders or list(server.sites.values())[:1]:  # an unknown name takes as long as a known one
        try:
            outcome = await sign_in(visit.to_site(site))
        except Refusal as error:
            refusal = error
            continue
        if isinstance(outcome, ActionResult) and outcome.cookie:
            cookies.append(access_control.cookie(site.manner, outcome.cookie))
    if cookies:
        return _with_cookies(cookies, "/")
    if refusal is not None:
        raise refusal
    return _first_page(visit, "Name and password do not match.", name, 401)


async def _create(visit: _Visit) -> Response:
    """Create an empty workspace, with the visitor as its lead."""
    name = visit.field("workspace").strip()
    if not (visit.server.parent and visit.leads):
        raise Refusal("only leads may create workspaces, on a server of --workspaces FOLDER", 403)
    cookie = await run_sync(_created, visit, name)
    return _with_cookies([cookie], f"{prefix_of(name)}/")


def _created(visit: _Visit, name: str) -> str:
    """Create the folder, its log and its first lead, or nothing; return the cookie of a session."""
    server = visit.server
    assert server.parent is not None
    assert server.open_site is not None
    refuse_file_name(name, "a workspace", "garden")
    if name.casefold() in server.names():
        raise Refusal(f"there is a workspace {name!r} already, or the name is reserved; choose another", 409)
    model = next(each for each, account in visit.accounts.items() if account.role == access_control.LEAD)
    lead = visit.accounts[model].name
    folder = os.path.join(server.parent, name)
    try:
        os.mkdir(folder)
    except OSError as error:
        raise DataError(f"{name}: cannot be created: {reason(error)}") from None
    try:
        site = server.open_site(folder)
        password = server.sites[model].accounts.password_hash(lead)
        site.accounts.create(lead, access_control.LEAD, password)
        secret = site.accounts.begin(lead, local=not server.manner.accounts)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    server.add(site)
    return access_control.cookie(site.manner, secret)


def _with_cookies(cookies: Sequence[str], to: str) -> Response:
    response = RedirectResponse(to, 303)
    for cookie in cookies:
        response.headers.append("Set-Cookie", cookie)
    return response

"""The application: every entry of the registry as a route, behind the door, its answer written as page, JSON or CSV."""

from __future__ import annotations

import hashlib
import inspect
import json
import secrets
import sys
import tempfile
import traceback
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from cranfield.answer import as_json, plain
from cranfield.errors import CranfieldError
from cranfield.http.body import DEEP, STRANGER_BYTES, STRANGER_SECONDS, announced, is_deep, patience, read_body
from cranfield.http.refusal import DISK, NotFound, Refusal, refusal_of
from cranfield.web import door
from cranfield.web.entry import Done, Entry, Page, entries
from cranfield.web.render import error_page, render, static_file
from cranfield.web.visit import Visit
from cranfield.workspace.bench import UPLOAD

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from cranfield.store.accounts import Account
    from cranfield.web.site import Site

LARGEST_FORM = 2 << 20  # bytes
IN_MEMORY = 1 << 20
MOST_FIELDS = 2000  # of a query or a form
SLOWEST_FILE = 900.0  # seconds for a whole file; each piece of it has the time of a body
THREADS = 12  # more of them wait for Python's one lock
JSON, CSV, HTML = "application/json; charset=utf-8", "text/csv; charset=utf-8", "text/html; charset=utf-8"


def application(site: Site) -> Starlette:
    """The workbench as an ASGI application."""
    routes: list[Route] = [Route("/static/{name}", _Static(site))]
    by_path: dict[str, dict[str, Entry]] = {}
    for entry in entries():
        for path in entry.paths():
            by_path.setdefault(path, {})[entry.method] = entry
    routes += [Route(path, _Endpoint(site, path, found)) for path, found in by_path.items()]
    routes.append(Route("/{rest:path}", _Endpoint(site, "", {})))

    @asynccontextmanager
    async def living(app: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        yield

    return Starlette(routes=routes, lifespan=living)


class _Endpoint:
    """What stands behind a path: an entry for each method."""

    def __init__(self, site: Site, path: str, found: dict[str, Entry]) -> None:
        self.site = site
        self.path = path
        self.found = found
        ending = path.rpartition(".")[2]
        self.twin = ending if ending in ("json", "csv") else "html"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.requests import Request

        request = Request(scope, receive)
        self = self if self.path else _Endpoint(self.site, scope["path"], {})  # of a path that is none: its twin
        account: Account | None = None
        try:
            door.refuse_host(request, self.site.manner)
            account, secret, by_token = await anyio.to_thread.run_sync(door.who, request, self.site)
            response = await self._answer(request, account, secret, by_token)
        except (CranfieldError, UnicodeEncodeError) as error:
            response = self._refused(request, account, self._told(error))
        except ClientDisconnect:
            return
        except Exception as error:
            known = isinstance(error, OSError) and error.errno in DISK
            response = self._refused(request, account, self._told(error)) if known else self._failed(request, account)
        for name, value in door.HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    async def _answer(self, request: Request, account: Account | None, secret: str, by_token: bool) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        if not self.found:
            raise NotFound("there is no such page", "The list of pages: /api")
        entry = self.found.get(method)
        if entry is None:
            raise Refusal(f"{self.path} takes {self._allowed()}, not {request.method[:20]}", 405)
        if method != "GET" and not by_token:
            door.refuse_origin(request, self.site.manner)
        door.refuse_role(entry, account, self.site.manner)
        text = request.scope["query_string"].decode("utf-8", "surrogateescape")
        query = _fields(text, "surrogateescape")
        about: dict[str, Any] = {
            "account": account,
            "secret": secret,
            "twin": self.twin,
            "path": entry.path,
            "query": query,
        }
        about["address"] = request.client.host if request.client else ""
        if entry.body == "file":
            with tempfile.SpooledTemporaryFile(IN_MEMORY, dir=self.site.bench.state) as file:
                await _spool(request, file, self.site.limits.body_seconds)
                return await self._run(request, entry, Visit(self.site, file=file, **about))
        form = await self._form(request, known=account is not None) if method == "POST" else {}
        return await self._run(request, entry, Visit(self.site, form=form, **about))

    async def _form(self, request: Request, known: bool) -> dict[str, Any]:
        """The fields that were sent; whoever is not signed in may send little, and has little time."""
        seconds = self.site.limits.body_seconds
        if known:
            return _fields_of(request, await read_body(request, LARGEST_FORM, seconds))
        return _fields_of(request, await read_body(request, STRANGER_BYTES, min(seconds, STRANGER_SECONDS)))

    async def _run(self, request: Request, entry: Entry, visit: Visit) -> Response:
        work: Callable[[Visit], Any] = entry.work
        answer = await work(visit) if inspect.iscoroutinefunction(work) else await anyio.to_thread.run_sync(work, visit)
        response = self._done(answer) if isinstance(answer, Done) else await self._page(request, visit, answer)
        if answer.cookie is not None:
            response.headers["Set-Cookie"] = door.cookie(self.site.manner, answer.cookie)
        return response

    def _done(self, done: Done) -> Response:
        if self.twin == "json":
            return Response(as_json(plain(done.values), indent=None), done.status, media_type=JSON)
        return RedirectResponse(done.to, 303)

    async def _page(self, request: Request, visit: Visit, page: Page) -> Response:
        if self.twin == "csv":
            if page.table is None:
                raise Refusal("there is nothing to put into a table yet", 409, safe="")
            name = f"{visit.path.strip('/').replace('/', '-') or 'index'}.csv"
            headers = {"Content-Disposition": f'attachment; filename="{name}"'}
            return Response(page.table.encode("utf-8", "backslashreplace"), page.status, headers, CSV)
        if self.twin == "json":
            return _tagged(request, as_json(plain(page.values)), page)
        html = await anyio.to_thread.run_sync(render, self.site, visit, page)
        return Response(html.encode("utf-8", "backslashreplace"), page.status, dict(page.headers), HTML)

    def _refused(self, request: Request, account: Account | None, refusal: Refusal) -> Response:
        headers = {"Retry-After": f"{max(1, round(refusal.wait))}"} if refusal.wait else {}
        headers |= {"Allow": self._allowed()} if refusal.status == 405 else {}
        wants_json = self.twin == "json" or "json" in request.headers.get("content-type", "")
        if wants_json:
            return Response(as_json(refusal.values()), refusal.status, headers, JSON)
        if refusal.status == 401 and request.method == "GET":
            path, query = quote(request.scope["path"]), request.scope["query_string"].decode("latin-1")
            back = quote(path + (f"?{query}" if query else ""), safe="", encoding="latin-1")
            return RedirectResponse(f"/login?next={back}", 303)
        headers |= {"Refresh": headers["Retry-After"]} if refusal.reload and request.method == "GET" else {}
        html = error_page(self.site, account, refusal)
        return Response(html.encode("utf-8", "backslashreplace"), refusal.status, headers, HTML)

    def _allowed(self) -> str:
        return ", ".join([*sorted(self.found), *(["HEAD"] if "GET" in self.found else [])])

    def _told(self, error: Any) -> Refusal:
        """What a browser is told of an error; where the workspace and its database lie is told to the server's own output."""
        refusal = refusal_of(error)
        if refusal is not error:
            if refusal.status == 503:
                self.site.note(str(error))
            refusal.said = self.site.told(refusal.said)
        return refusal

    def _failed(self, request: Request, account: Account | None) -> Response:
        """A mistake of ours: its trace goes to the server's own output, and only its number to the browser."""
        number = secrets.token_hex(4)
        print(f"cranfield serve: error {number} at {request.scope['path']!r:.200}", file=sys.stderr)
        traceback.print_exc()
        said = f"something went wrong on the server (error {number})"
        advice = "Judgments that were confirmed are stored. Try again; if it stays, tell whoever runs the server this number."
        return self._refused(request, account, Refusal(said, 500, safe="", advice=advice))


def _tagged(request: Request, text: str, page: Page) -> Response:
    """JSON with an ETag: whoever has it already is told so in a few bytes."""
    body = text.encode("utf-8", "backslashreplace")
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {**page.headers, "ETag": tag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == tag and page.status == 200:
        return Response(status_code=304, headers=headers)
    return Response(body, page.status, headers, JSON)


async def _spool(request: Request, file: Any, seconds: float) -> None:
    """The body into a file, up to the largest that is taken; `seconds` are for each piece."""
    size = 0
    pieces = request.stream()
    until = anyio.current_time() + SLOWEST_FILE
    while True:
        left = min(seconds, until - anyio.current_time())
        with patience(left, f"nothing more came for {seconds:g} seconds, or the file took too long"):
            piece = await anext(pieces, None)
        if piece is None:
            break
        size += len(piece)
        if max(size, announced(request) or 0) > UPLOAD:
            raise Refusal(f"the file is larger than {UPLOAD >> 20} MB", 413, advice="Put it into runs/ by hand.")
        await anyio.to_thread.run_sync(file.write, piece)
    file.seek(0)


def _fields_of(request: Request, body: bytes) -> dict[str, Any]:
    """The fields that were sent: a form's, or a JSON object's."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        try:
            values = json.loads(body.decode("utf-8"), parse_constant=_no_number)
        except (ValueError, RecursionError):
            raise Refusal("expected JSON") from None
        if is_deep(values):
            raise Refusal(f"expected JSON, found {DEEP}")
        if not isinstance(values, dict):
            raise Refusal("expected a JSON object")
        return values
    if kind == "application/x-www-form-urlencoded" or not body:
        try:
            text = body.decode("utf-8")
        except ValueError:
            raise Refusal("expected a form in UTF-8") from None
        return dict(_fields(text, "strict"))
    raise Refusal("expected a form or a JSON object", 415)


def _fields(text: str, errors: str) -> dict[str, list[str]]:
    """The fields of a query or a form."""
    if text.count("&") >= MOST_FIELDS:
        raise Refusal(f"expected {MOST_FIELDS:,} parameters at the most, found {text.count('&') + 1:,}")
    try:
        return parse_qs(text, keep_blank_values=True, errors=errors)
    except ValueError:
        raise Refusal("expected a form in UTF-8") from None


def _no_number(text: str) -> float:
    raise ValueError(text)


class _Static:
    """Style sheets and scripts: a fixed set of files, read once."""

    def __init__(self, site: Site) -> None:
        self.site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.requests import Request

        request = Request(scope, receive)
        found = static_file(request.path_params["name"])
        try:
            door.refuse_host(request, self.site.manner)
        except Refusal:
            found = None
        if found is None:
            response = Response("there is no such file", 404, door.HEADERS, "text/plain")
        elif request.method not in ("GET", "HEAD"):
            response = Response("files are only read", 405, {**door.HEADERS, "Allow": "GET, HEAD"}, "text/plain")
        else:
            kept = {
                "Cache-Control": "public, max-age=31536000, immutable" if "v" in request.query_params else "no-cache"
            }
            headers = {**door.HEADERS, **kept, "ETag": f'"{found.hash}"'}
            known = request.headers.get("if-none-match") == headers["ETag"]
            response = Response(b"" if known else found.body, 304 if known else 200, headers, found.kind)
        await response(scope, receive, send)

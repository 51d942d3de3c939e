"""The ASGI application: one endpoint per path, access control, and replies as page, JSON or CSV."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import secrets
import sys
import tempfile
import traceback
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from cranfield.base.errors import CranfieldError
from cranfield.base.results import as_json, plain
from cranfield.http.body import DEEP, STRANGER_BYTES, STRANGER_SECONDS, announced, is_deep, patience, read_body
from cranfield.http.refusal import (
    DISK,
    HEADERS,
    SAFE,
    NotFound,
    Refusal,
    page_policy,
    refusal_of,
    refuse_host,
    refuse_origin,
)
from cranfield.inputs.workspace import UPLOAD
from cranfield.workbench import access_control
from cranfield.workbench.rendering import error_page, render, statics
from cranfield.workbench.routes import RESULTS, ActionResult, Download, Page, PageRequest, RouteEntry, entries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.types import Receive, Scope, Send

    from cranfield.http.serving import ServerSettings
    from cranfield.store.accounts import Account
    from cranfield.workbench.site import Site

LARGEST_FORM = 2 << 20  # bytes
IN_MEMORY = 1 << 20  # bytes of an upload; larger ones go to a temporary file
MOST_FIELDS = 2000  # of a query or a form
UNSAFE = re.compile(r"[^A-Za-z0-9._-]")  # in the name of a file that is downloaded
SLOWEST_FILE = 900.0  # seconds for a whole file; each piece of it has the time limit of a body
WORKER = "worker.js"
THREADS = 12  # more threads would only wait for Python's global lock
TWINS = ("json", "csv", "qrels")
QRELS = "text/plain; charset=utf-8"
JSON, CSV, HTML = "application/json; charset=utf-8", "text/csv; charset=utf-8", "text/html; charset=utf-8"


def application(site: Site) -> Starlette:
    """The workbench as an ASGI application."""
    routes: list[Route] = [Route("/static/{name}", StaticFiles(site.manner))]
    by_path: dict[str, dict[str, RouteEntry]] = {}
    for entry in entries():
        for path in entry.paths():
            by_path.setdefault(path, {})[entry.method] = entry
    routes += [Route(path, _PageEndpoint(site, path, methods)) for path, methods in by_path.items()]
    routes.append(Route("/{rest:path}", _PageEndpoint(site, "", {})))
    return Starlette(routes=routes, lifespan=lifespan)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Set the number of threads while the server runs."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    yield


class _PageEndpoint:
    """The endpoint of one path, with one route entry per HTTP method."""

    def __init__(self, site: Site, path: str, methods: dict[str, RouteEntry]) -> None:
        self.site = site
        self.path = path
        self.methods = methods
        ending = path.rpartition(".")[2]
        self.twin = ending if ending in TWINS else "html"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if not self.path:  # an unknown path: its ending decides the format of the refusal
            self = _PageEndpoint(self.site, scope["path"], {})
        account: Account | None = None
        try:
            refuse_host(request, self.site.manner)
            account, secret, by_token = await anyio.to_thread.run_sync(access_control.identify, request, self.site)
            response = await self._answer(request, account, secret, by_token)
        except (CranfieldError, UnicodeEncodeError) as error:
            response = await anyio.to_thread.run_sync(self._refused, request, account, self._refusal_for(error))
        except ClientDisconnect:
            return
        except Exception as error:
            disk_full = isinstance(error, OSError) and error.errno in DISK
            refusal = self._refusal_for(error) if disk_full else self._failure(request)
            response = await anyio.to_thread.run_sync(self._refused, request, account, refusal)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if account is not None:
            response.headers["Cranfield-Account"] = access_control.account_mark(self.site.bench.name, account)
        await response(scope, receive, send)

    async def _answer(self, request: Request, account: Account | None, secret: str, by_token: bool) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        if not self.methods:
            raise NotFound("there is no such page", "The list of pages: /api")
        entry = self.methods.get(method)
        if entry is None:
            raise Refusal(f"{self.path} takes {self._allowed()}, not {request.method[:20]}", 405)
        if method != "GET" and not by_token:
            refuse_origin(request, self.site.manner)
        access_control.refuse_role(entry.path, entry.role, account, self.site.manner)
        if entry.reveals == RESULTS:
            safe = "" if method == "GET" else SAFE
            await anyio.to_thread.run_sync(access_control.refuse_blind, entry.path, account, self.site, safe)
        text = request.scope["query_string"].decode("utf-8", "surrogateescape")
        query = _fields(text, "surrogateescape")
        about: dict[str, Any] = {"account": account, "secret": secret, "twin": self.twin, "path": entry.path}
        about |= {"query": query, "address": request.client.host if request.client else ""}
        about |= {
            "forwarded": access_control.forwarded_name(request, self.site) if self.site.manner.auth_header else ""
        }
        if entry.body == "file":
            with tempfile.SpooledTemporaryFile(IN_MEMORY, dir=self.site.bench.state) as file:
                await _spool(request, file, self.site.limits.body_seconds, entry.largest or UPLOAD)
                return await self._run(request, entry, PageRequest(self.site, file=file, **about))
        form = await self._form(request, signed_in=account is not None) if method == "POST" else {}
        return await self._run(request, entry, PageRequest(self.site, form=form, **about))

    async def _form(self, request: Request, signed_in: bool) -> dict[str, Any]:
        """The fields of the form; a client that is not signed in may send few bytes in a short time."""
        seconds = self.site.limits.body_seconds
        limits = (LARGEST_FORM, seconds) if signed_in else (STRANGER_BYTES, min(seconds, STRANGER_SECONDS))
        return read_fields(request, await read_body(request, *limits))

    async def _run(self, request: Request, entry: RouteEntry, page_request: PageRequest) -> Response:
        work: Callable[[PageRequest], Any] = entry.work
        is_async = inspect.iscoroutinefunction(work)
        answer = await (work(page_request) if is_async else anyio.to_thread.run_sync(work, page_request))
        if isinstance(answer, Download):
            if self.twin == "json":
                return Response(as_json({"name": answer.name, "bytes": answer.size}), 200, None, JSON)
            if answer.path:
                return FileResponse(answer.path, media_type=answer.kind, filename=answer.name)
            attached = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(answer.name, safe='')}"}
            return Response(answer.content, 200, attached, answer.kind)
        if not isinstance(answer, ActionResult):
            return await self._page(request, page_request, answer)
        headers = {}
        if answer.cookie is not None:
            headers["Set-Cookie"] = access_control.cookie(self.site.manner, answer.cookie)
        if self.twin == "json":
            return Response(as_json(plain(answer.values), indent=None), 200, headers, JSON)
        return RedirectResponse(self.site.manner.path + answer.to, 303, headers)

    async def _page(self, request: Request, page_request: PageRequest, page: Page) -> Response:
        if self.twin == "csv":
            if page.table is None:
                raise Refusal("there is nothing to put into a table yet", 409, safe="")
            name = f"{page_request.path.strip('/').replace('/', '-') or 'index'}.csv"
            headers = {"Content-Disposition": f'attachment; filename="{name}"'}
            return Response(page.table.encode("utf-8", "backslashreplace"), page.status, headers, CSV)
        if self.twin == "qrels" and page.qrels is not None:
            content = await anyio.to_thread.run_sync(page.qrels)
            return Response(content, page.status, {"Content-Disposition": attachment(f"{page.title}.qrels")}, QRELS)
        if self.twin == "json":
            return _tagged(request, as_json(plain(page.values)).encode("utf-8", "backslashreplace"), page, JSON)
        if page.raw is not None:
            raw = _tagged(request, page.raw.content, page, page.raw.kind)
            raw.headers["Content-Security-Policy"] = page.raw.policy
            return raw
        headers = {"Content-Security-Policy": page_policy(page.image_hosts)} if page.image_hosts else {}
        html = await anyio.to_thread.run_sync(render, self.site, page_request, page)
        return Response(html.encode("utf-8", "backslashreplace"), page.status, headers, HTML)

    def _refused(self, request: Request, account: Account | None, refusal: Refusal) -> Response:
        headers = {"Retry-After": f"{max(1, round(refusal.wait))}"} if refusal.wait else {}
        headers |= {"Allow": self._allowed()} if refusal.status == 405 else {}
        wants_json = self.twin == "json" or "json" in request.headers.get("content-type", "")
        prefix = self.site.manner.path
        if wants_json:
            values = refusal.values()
            values |= {"sign_in": prefix + values["sign_in"]} if values.get("sign_in") else {}
            return Response(as_json(values), refusal.status, headers, JSON)
        if refusal.status == 401 and request.method == "GET":
            path, query = prefix + quote(request.scope["path"]), request.scope["query_string"].decode("latin-1")
            back = quote(path + (f"?{query}" if query else ""), safe="", encoding="latin-1")
            return RedirectResponse(f"{prefix}/login?next={back}", 303)
        headers |= {"Refresh": headers["Retry-After"]} if refusal.reload and request.method == "GET" else {}
        html = error_page(self.site, account, refusal)
        return Response(html.encode("utf-8", "backslashreplace"), refusal.status, headers, HTML)

    def _allowed(self) -> str:
        return ", ".join([*sorted(self.methods), *(["HEAD"] if "GET" in self.methods else [])])

    def _refusal_for(self, error: Any) -> Refusal:
        """The refusal that the browser sees; paths and database names are printed on the server's own output only."""
        refusal = refusal_of(error)
        if refusal is not error:
            if refusal.status == 503:
                self.site.log_once(str(error))
            refusal.problem = self.site.public_text(refusal.problem)
        return refusal

    def _failure(self, request: Request) -> Refusal:
        """The reply to an error of ours: the trace goes to the server's own output, the browser gets only a number."""
        number = secrets.token_hex(4)
        print(f"cranfield serve: error {number} at {request.scope['path']!r:.200}", file=sys.stderr)
        traceback.print_exc()
        message = f"something went wrong on the server (error {number})"
        advice = "Judgments that were confirmed are stored. If trying again does not help, tell the administrator this number."
        return Refusal(message, 500, safe="", advice=advice)


def attachment(name: str) -> str:
    r"""The header that makes a browser save a reply under a name; a name that is not plain is sent in both spellings.

    >>> attachment('v "1".qrels')
    'attachment; filename="v__1_.qrels"; filename*=UTF-8\'\'v%20%221%22.qrels'
    """
    ascii_name = UNSAFE.sub("_", name)
    exact = "" if ascii_name == name else f"; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
    return f'attachment; filename="{ascii_name}"{exact}'


def _tagged(request: Request, body: bytes, page: Page, kind: str) -> Response:
    """A body with an ETag; a client that has the same already gets an empty 304."""
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == tag and page.status == 200:
        return Response(status_code=304, headers=headers)
    return Response(body, page.status, headers, kind)


async def _spool(request: Request, file: Any, seconds: float, largest: int) -> None:
    """Write the body into a file of at most `largest` bytes; each piece may take `seconds`."""
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
        if max(size, announced(request) or 0) > largest:
            advice = "The command line has no such limit: it reads files on the server's own disk."
            raise Refusal(f"the file is larger than {largest >> 20} MB", 413, advice=advice)
        await anyio.to_thread.run_sync(file.write, piece)
    file.seek(0)


def read_fields(request: Request, body: bytes) -> dict[str, Any]:
    """The fields of a form or of a JSON object."""
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
        raise Refusal(f"expected at most {MOST_FIELDS:,} parameters, found {text.count('&') + 1:,}")
    try:
        return parse_qs(text, keep_blank_values=True, errors=errors)
    except ValueError:
        raise Refusal("expected a form in UTF-8") from None


def _no_number(text: str) -> float:
    raise ValueError(text)


def _accepts_gzip(request: Request) -> bool:
    """Whether a client names gzip among the encodings that it accepts; with parameters (gzip;q=0) it gets plain bytes."""
    return "gzip" in [each.strip().lower() for each in request.headers.get("accept-encoding", "").split(",")]


class StaticFiles:
    """Style sheets and scripts: a fixed set of files, read once."""

    def __init__(self, manner: ServerSettings) -> None:
        self.manner = manner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        file = statics(self.manner.path).get(request.path_params["name"])
        try:
            refuse_host(request, self.manner)
        except Refusal:
            file = None
        if file is None:
            response = Response("there is no such file", 404, HEADERS, "text/plain")
        elif request.method not in ("GET", "HEAD"):
            response = Response("files are only read", 405, {**HEADERS, "Allow": "GET, HEAD"}, "text/plain")
        else:
            caching = "public, max-age=31536000, immutable" if "v" in request.query_params else "no-cache"
            headers = {**HEADERS, "Cache-Control": caching, "ETag": f'"{file.hash}"', "Vary": "Accept-Encoding"}
            if request.path_params["name"] == WORKER:
                headers["Service-Worker-Allowed"] = f"{self.manner.path}/"  # for all pages, not only below /static/
            unchanged = request.headers.get("if-none-match") == headers["ETag"]
            body = b"" if unchanged else file.body
            if body and _accepts_gzip(request):
                body, headers["Content-Encoding"] = file.compressed, "gzip"
            response = Response(body, 304 if unchanged else 200, headers, file.kind)
        await response(scope, receive, send)

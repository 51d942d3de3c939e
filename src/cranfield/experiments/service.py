"""The HTTP service for online evaluation: assign units, interleave lists, accept events, report its health.

A request is checked for its host, then its origin, then, if tokens are required, its application. A batch of events is
answered when it is on disk. It is stored as a whole or not at all, and the answer names the rows that are wrong.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import shutil
import sys
import traceback
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from cranfield.base.errors import CranfieldError, DataError, TopicError, UnavailableError
from cranfield.base.parameters import shortened
from cranfield.base.results import as_json
from cranfield.experiments.assignment import assign, refuse_contradiction
from cranfield.experiments.event import AHEAD, UNFIT, UserEvent, instant, refuse_ahead
from cranfield.experiments.interleaving import interleave
from cranfield.experiments.log_files import segments_in
from cranfield.experiments.log_writer import Compactor, GroupCommit, RecentEventIds, finish_future
from cranfield.experiments.plan import Plan, interleaving_method
from cranfield.formats.streams import reason
from cranfield.http.body import STRANGER_BYTES, STRANGER_SECONDS, kind_of, parsed, read_body
from cranfield.http.connections import EXHAUSTED, BodyMemory, Connections, Reserved
from cranfield.http.refusal import HEADERS, NotFound, Refusal, bearer, elsewhere, refusal_of, refuse_host

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from concurrent.futures import Future

    from starlette.types import Receive, Scope, Send

    from cranfield.base.run import Run
    from cranfield.experiments.interleaving.token import Keys
    from cranfield.experiments.log import EventLog
    from cranfield.experiments.privacy import Pseudonyms
    from cranfield.experiments.service_tokens import ApplicationTokens
    from cranfield.http.serving import ServerSettings

    Work = Callable[["ServiceRequest"], Awaitable[dict[str, Any]]]

LARGEST = 2_000_000  # bytes of a body
MOST_EVENTS = 5_000  # of a batch
ON_THE_LOOP = 50_000  # bytes that are parsed on the event loop; larger bodies in a thread
MOST_AT_ONCE = 1_000  # requests
MOST_DOCUMENTS = 100  # of an interleaved list
MOST_NAMED = 20  # rows of a batch that an answer names
AGAIN = 1  # seconds, in Retry-After
KIND = "application/json; charset=utf-8"
METHODS = "GET, POST, OPTIONS"


class BadRows(Refusal):
    """A refused batch of events, with the rows that are wrong."""

    def __init__(self, rows: Sequence[tuple[int, str]], of: int, status: int = 400) -> None:
        row, problem = rows[0]
        more = f" (so are {len(rows) - 1:,} more of {of:,})" if rows[1:] else ""
        super().__init__(f"row {row}: {problem}{more}", status, safe="No event of the batch was kept.")
        self.rows = rows

    def values(self) -> dict[str, Any]:
        """The refusal as JSON values, with the wrong rows."""
        named = [{"row": row, "error": problem} for row, problem in self.rows[:MOST_NAMED]]
        return {**super().values(), "rows": named}


@dataclass
class Service:
    """The state that all routes share."""

    plans: Sequence[Plan]
    intake: GroupCommit
    manner: ServerSettings
    connections: Connections
    keys: Callable[[], Keys]  # they seal the tokens of interleaved lists
    applications: ApplicationTokens
    origins: frozenset[str] = frozenset()  # of pages on other sites
    runs: Mapping[str, Run] = field(default_factory=dict)
    pseudonyms: Pseudonyms | None = None
    packer: Compactor | None = None
    coin: random.Random = field(default_factory=random.SystemRandom)
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    recent: RecentEventIds = field(default_factory=RecentEventIds)
    at_once: int = 0  # requests
    memory: BodyMemory = field(default_factory=BodyMemory)
    refused_ahead: int = 0

    async def store(self, events: Sequence[tuple[UserEvent, bytes]]) -> None:
        """Store events, and wait until they are on disk."""
        done = asyncio.get_running_loop().create_future()
        self.intake.add([line for _, line in events]).add_done_callback(partial(_pass_on, done))
        await done
        for event, line in events:
            self.recent.keep(event.event_id, line)


def _pass_on(done: asyncio.Future[None], source: Future[None]) -> None:
    """Pass the result of a write on to the waiting request, in the thread of the event loop."""
    if not done.done():  # the request was not cancelled
        finish_future(done, source.exception())


@dataclass(frozen=True)
class ServiceRequest:
    """A parsed request: its fields, its events, and the application that sent it."""

    service: Service
    values: dict[str, Any]
    rows: Sequence[tuple[int, Any]]  # events with their row numbers
    application: str | None

    def text(self, name: str, otherwise: str = "") -> str:
        """The text of a field."""
        value = self.values.get(name, otherwise)
        if not isinstance(value, str):
            raise Refusal(f"expected text as {name}, found {value!r:.60}")
        _refuse_unfit(name, value)
        return value

    def needed(self, name: str) -> str:
        """The text of a field that must not be empty."""
        value = self.text(name)
        if not value:
            raise Refusal(f"expected text as {name}, found none")
        return value

    def refuse_other_fields(self, *names: str) -> None:
        """Refuse fields of other names."""
        other = [name for name in self.values if name not in (*names, "token")]
        if other:
            raise Refusal(f"expected fields of {', '.join(names)}, found {other[0]!r:.60}")


def _refuse_unfit(name: str, *values: str) -> None:
    """Refuse text that an event cannot hold: NUL, or half of a surrogate pair."""
    wrong = next((value for value in values if UNFIT.search(value)), None)
    if wrong is not None:
        raise Refusal(f"expected Unicode text without NUL as {name}, found {shortened(ascii(wrong))}")


def application(service: Service) -> Starlette:
    """The service as an ASGI application."""
    routes = [
        Route("/assign", _Endpoint(service, "/assign", "POST", _assign)),
        Route("/interleave", _Endpoint(service, "/interleave", "POST", _interleave)),
        Route("/events", _Endpoint(service, "/events", "POST", _events, status=202)),
        Route("/health", _Endpoint(service, "/health", "GET", _health)),
        Route("/{rest:path}", _Endpoint(service)),
    ]

    @asynccontextmanager
    async def living(app: Starlette) -> AsyncIterator[None]:
        # one call wakes all requests that share a sync; one call per request would contend for the interpreter's lock
        service.intake.run_callbacks = asyncio.get_running_loop().call_soon_threadsafe
        yield
        await anyio.to_thread.run_sync(service.intake.close)

    return Starlette(routes=routes, lifespan=living)


@dataclass(frozen=True)
class _Endpoint:
    """The ASGI endpoint of a path: checks and parses a request, calls its handler, and answers with `status`."""

    service: Service
    path: str = ""
    method: str = ""
    work: Work | None = None  # None: there is no such page
    status: int = 200

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, origin = Request(scope, receive), ""
        self.service.at_once += 1
        try:
            refuse_host(request, self.service.manner)
            origin = elsewhere(request, self.service.manner, self.service.origins)
            response = await self._answer(request)
        except ClientDisconnect:
            return
        except CranfieldError as error:
            response = _refused(error)
        except Exception:
            response = _failed(scope["path"])
        finally:
            self.service.at_once -= 1
        response.raw_headers += _for(origin)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if self.work is None:
            raise NotFound("there is no such page", "There are POST /assign, /interleave, /events and GET /health.")
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": METHODS})
        method = "GET" if request.method == "HEAD" else request.method
        if method != self.method:
            raise Refusal(f"{self.path} takes {self.method}, not {request.method[:20]}", 405)
        if self.service.at_once > MOST_AT_ONCE:
            raise UnavailableError(f"{MOST_AT_ONCE:,} requests are being answered already")
        bare = method == "GET"
        call = ServiceRequest(self.service, {}, (), self._who(bearer(request))) if bare else await self._parse(request)
        return Response(as_json(await self.work(call)), self.status, media_type=KIND)

    async def _parse(self, request: Request) -> ServiceRequest:
        """Parse the body of a request. The body may hold the token, as a page that closes cannot send headers."""
        token = bearer(request)
        if token is not None:
            self._who(token)
        kind = kind_of(request)
        with self.service.memory.reading(request.client.host if request.client else "") as reserved:
            body = await self._body(request, reserved, has_token=token is not None or not self.service.manner.accounts)
            large = len(body) > ON_THE_LOOP
            value = await anyio.to_thread.run_sync(parsed, body, kind) if large else parsed(body, kind)
            values, rows = _fields_and_events(value, kind, self.path == "/events")
            sender = self._who(values.get("token") if token is None else token)
            return ServiceRequest(self.service, values, rows, sender)

    async def _body(self, request: Request, reserved: Reserved, has_token: bool) -> bytes:
        """The body; without a token in the header, size and time are limited further."""
        seconds = self.service.connections.limits.body_seconds
        if has_token:
            return await read_body(request, LARGEST, seconds, reserved, "Send the events in smaller batches.")
        advice = "Send the token in Authorization: Bearer …, or smaller batches."
        return await read_body(request, STRANGER_BYTES, min(seconds, STRANGER_SECONDS), reserved, advice)

    def _who(self, token: Any) -> str | None:
        """The application that a token belongs to; None if no token is sent and none is required."""
        if token is None and not self.service.manner.accounts:
            return None
        name = self.service.applications.of(token) if isinstance(token, str) else None
        if name is None:
            raise Refusal(
                "expected the token of an application" if token is None else "this token is unknown or was withdrawn",
                401,
                safe="",
                advice="Send it in Authorization: Bearer …; cranfield online serve PLANS LOG --new-token NAME makes one.",
            )
        return name


def _fields_and_events(value: Any, kind: str, events: bool) -> tuple[dict[str, Any], Sequence[tuple[int, Any]]]:
    """The fields of a request and its events: a single event, a list, or a list in `events`."""
    if not events:
        if kind == "json" and isinstance(value, dict):
            return value, ()
        raise Refusal("expected a JSON object")
    if kind == "lines":
        return {}, value
    if isinstance(value, dict) and "events" in value:
        other = [name for name in value if name not in ("events", "token")]
        if other:
            raise Refusal(f"expected events and token, found {other[0]!r:.60}")
        if not isinstance(value["events"], list):
            raise Refusal(f"expected a list of events, found {value['events']!r:.60}")
        return value, [*enumerate(value["events"], 1)]
    return {}, [*enumerate(value, 1)] if isinstance(value, list) else [(1, value)]


@lru_cache(maxsize=64)
def _for(origin: str) -> list[tuple[bytes, bytes]]:
    """The headers of every answer: those of the workbench, and CORS headers for an allowed origin."""
    allowed = {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": "authorization, content-type",
        "Access-Control-Expose-Headers": "retry-after",
        "Access-Control-Max-Age": "600",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    named = {**HEADERS, "Vary": "Origin", **(allowed if origin else {})}
    return [(name.lower().encode(), value.encode()) for name, value in named.items()]


def _refused(error: CranfieldError) -> Response:
    """The answer to a refused request; it names no paths of files, which only the operator may know."""
    refusal = refusal_of(error)
    if isinstance(error, UnavailableError):
        cause = error.__cause__
        problem = f"events cannot be written now: {reason(cause)}" if isinstance(cause, OSError) else str(error)
        advice = "Send the same again after the seconds in Retry-After; confirmed events are stored."
        refusal = Refusal(problem, 503, safe="Nothing of this request was stored.", advice=advice, wait=AGAIN)
    headers = {"Retry-After": f"{max(1, round(refusal.wait))}"} if refusal.wait else {}
    headers |= {"Allow": METHODS} if refusal.status == 405 else {}
    headers |= {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
    return Response(as_json(refusal.values()), refusal.status, headers, KIND)


def _failed(path: str) -> Response:
    """The answer to an internal error: the traceback goes to standard error, the caller gets its number only."""
    number = secrets.token_hex(4)
    print(f"cranfield online serve: error {number} at {path!r:.200}", file=sys.stderr)
    traceback.print_exc()
    return Response(as_json({"error": f"something went wrong in the service (error {number})"}), 500, {}, KIND)


# events


async def _events(request: ServiceRequest) -> dict[str, Any]:
    """Store events, all or none."""
    if len(request.rows) > MOST_EVENTS:
        raise Refusal(f"expected {MOST_EVENTS:,} events at the most, found {len(request.rows):,}", 413)
    many = len(request.rows) > 200
    events = await anyio.to_thread.run_sync(_valid_events, request) if many else _valid_events(request)
    _refuse_reused(request, events)
    await request.service.store(events)
    return {"kept": len(events)}


def _valid_events(request: ServiceRequest) -> list[tuple[UserEvent, bytes]]:
    """The events of a batch with their JSON lines; raises BadRows if some are wrong."""
    events, wrong = [], []
    now = request.service.now()
    latest = instant(now + AHEAD)
    for row, value in request.rows:
        try:
            event = _event(request, value)
            if event.time > latest:
                request.service.refused_ahead += 1
                refuse_ahead(event, now)
            events.append((event, f"{event.line()}\n".encode()))
        except DataError as error:
            wrong.append((row, str(error)))
    if wrong:
        raise BadRows(wrong, len(request.rows))
    return events


def _event(request: ServiceRequest, value: Any) -> UserEvent:
    """The event in a JSON object, with the application of the token and, if configured, a pseudonym for the unit.

    An event whose variant is not the assigned one is refused. This check uses the unit itself, not its pseudonym.
    """
    name = request.application
    if name is not None and isinstance(value, dict):
        claimed = value.get("application")
        if claimed not in (None, "", name):
            raise DataError(f"the token is that of application {name!r}, the event says {claimed!r:.60}")
        value = {**value, "application": name}
    event = UserEvent.of(value)
    refuse_contradiction(request.service.plans, event)
    return event if request.service.pseudonyms is None else request.service.pseudonyms.event(event)


def _refuse_reused(request: ServiceRequest, events: Sequence[tuple[UserEvent, bytes]]) -> None:
    """Refuse an id of another event in the batch or among recent events. Compaction finds older ones."""
    recent, batch, wrong = request.service.recent, dict[str, bytes](), []
    for (row, _), (event, line) in zip(request.rows, events, strict=True):
        if batch.setdefault(event.event_id, line) != line or recent.differs(event.event_id, line):
            wrong.append((row, f"event_id {event.event_id!r} belongs to another event already; an id is for one event"))
    if wrong:
        raise BadRows(wrong, len(events), 409)


# assignments


async def _assign(request: ServiceRequest) -> dict[str, Any]:
    """The experiments and variants of a unit; stores exposures if requested."""
    request.refuse_other_fields("unit", "expose", "session", "search")
    service, unit = request.service, request.needed("unit")
    session, search = request.text("session"), request.text("search")
    assignments = assign(service.plans, unit)
    exposed = _exposed(request, [one.experiment for one in assignments])
    hashes = {plan.name: plan.hash for plan in service.plans}
    events = []
    for one in assignments:
        if one.experiment in exposed:
            happening = {"event_id": secrets.token_hex(16), "time": instant(service.now()), "kind": "exposure"}
            whose = {"unit": unit, "session": session, "search": search}
            events.append(_event(request, {**happening, **whose, **one.exposure(hashes[one.experiment])}))
    if events:
        await service.store([(event, f"{event.line()}\n".encode()) for event in events])
    experiments = [event.experiment for event in events]
    return {"unit": unit, "assignments": [one._asdict() for one in assignments], "exposed": experiments}


def _exposed(request: ServiceRequest, experiments: Sequence[str]) -> Sequence[str]:
    """The experiments whose exposure is stored: all of the unit, or those that the request names."""
    value = request.values.get("expose", False)
    if isinstance(value, bool):
        return experiments if value else ()
    if not isinstance(value, list):
        raise Refusal(f"expected true, false or a list of experiments as expose, found {value!r:.60}")
    served = [plan.name for plan in request.service.plans]
    unknown = [name for name in value if name not in served]
    if unknown:
        raise Refusal(f"expected experiments of {', '.join(served)}, found {unknown[0]!r:.60}")
    return value


# lists


async def _interleave(request: ServiceRequest) -> dict[str, Any]:
    """One list mixed from several rankings, and its token for the log."""
    request.refuse_other_fields("rankings", "query", "runs", "k", "method", "experiment", "search", "expires")
    return await anyio.to_thread.run_sync(_mixed_list, request)


def _mixed_list(request: ServiceRequest) -> dict[str, Any]:
    plan, k = _experiment(request), request.values.get("k", 10)
    rankings = _rankings(request)
    if plan is not None:
        _refuse_other_systems(plan, rankings)
    if type(k) is not int or not 1 <= k <= MOST_DOCUMENTS:
        raise Refusal(f"expected a number of documents from 1 to {MOST_DOCUMENTS:,} as k, found {k!r:.60}")
    expires = request.values.get("expires")
    if expires is not None and type(expires) not in (int, float):
        raise Refusal(f"expected seconds since 1970 as expires, found {expires!r:.60}")
    method = request.text("method", "team-draft") if plan is None else interleaving_method(plan.interleave or {})
    mixed = interleave(rankings, k, request.service.coin, method)
    token = mixed.seal(request.service.keys(), request.text("search"), expires, plan.name if plan else "")
    return {"documents": list(mixed.documents), "token": token, "method": str(mixed.method)}


def _rankings(request: ServiceRequest) -> Any:
    """The rankings in the request, or those of loaded runs for a query."""
    values, runs = request.values, request.service.runs
    if ("rankings" in values) == ("query" in values):
        raise Refusal("expected rankings, or a query and the names of runs")
    if "rankings" in values:
        rankings = values["rankings"]
        if not isinstance(rankings, (dict, list)):
            raise Refusal(f"expected lists of documents as rankings, found {rankings!r:.60}")
        lists = rankings.values() if isinstance(rankings, dict) else rankings
        if not all(isinstance(each, list) and all(isinstance(one, str) for one in each) for each in lists):
            raise Refusal("expected rankings as lists of documents' ids, each a text")
        _refuse_unfit("rankings", *(rankings if isinstance(rankings, dict) else ()), *chain.from_iterable(lists))
        return rankings
    names = values.get("runs", list(runs))
    if not isinstance(names, list) or any(not isinstance(name, str) or name not in runs for name in names):
        raise Refusal(f"expected runs of {', '.join(runs) or 'none (start with --run FILE)'}, found {names!r:.60}")
    query = request.needed("query")
    lacking = [name for name in names if query not in runs[name]]
    if lacking:
        raise TopicError(f"query {query!r:.60} is missing from {', '.join(lacking)}")
    return {name: [document for document, _ in runs[name][query]] for name in names}


def _experiment(request: ServiceRequest) -> Plan | None:
    """The plan of the experiment that the request names; None if it names none."""
    name = request.text("experiment")
    if not name:
        return None
    plan = next((plan for plan in request.service.plans if plan.name == name), None)
    if plan is None or plan.interleave is None:
        raise Refusal(f"expected an experiment whose plan has [interleave], found {name!r:.60}")
    return plan


def _refuse_other_systems(plan: Plan, rankings: Any) -> None:
    """Refuse rankings of systems that the plan does not name: `analyze` could not use their tokens."""
    named = list(rankings) if isinstance(rankings, dict) else []
    if plan.systems and (not named or any(name not in plan.systems for name in named)):
        names = f"those of {', '.join(named)}" if named else "rankings without names"
        raise Refusal(
            f"expected rankings by the systems of {plan.name!r}: {', '.join(plan.systems)}; found {names:.200}"
        )


# health


async def _health(request: ServiceRequest) -> dict[str, Any]:
    """The health of the service."""
    return await anyio.to_thread.run_sync(_state, request.service)


def _state(service: Service) -> dict[str, Any]:
    status, log, connections = service.intake.status(), service.intake.log, service.connections
    packer = service.packer
    last = packer.last if packer else None
    there = log.folder if os.path.isdir(log.folder) else os.path.dirname(os.path.abspath(log.folder))
    shortage, files = connections.shortage(), _files(log)
    packing_problem = last.problem if last else None
    return {
        "ok": not (status.problem or packing_problem or shortage),
        "problem": status.problem,
        "last_sync": _moment(status.last_sync),
        "waiting": status.waiting,
        "waiting_bytes": status.waiting_bytes,
        "written": status.events_written,
        "refused_ahead": service.refused_ahead,
        **files,
        "last_packing": _moment(last.at if last else None),
        "packing_problem": packing_problem,
        "packing_restarts": packer.restarts if packer else 0,
        "connections": len(connections),
        "refused_connections": connections.refused,
        "descriptor_problem": shortage,
        "free_bytes": shutil.disk_usage(there).free,
        "plans": {plan.name: plan.hash for plan in service.plans},
    }


def _files(log: EventLog) -> dict[str, int | None]:
    """Counts of the log's files; None if no file descriptor is left to read them."""
    size = 0
    try:
        segments = segments_in(log.segments)
        for path in segments:
            with suppress(FileNotFoundError):  # compacted meanwhile
                size += os.path.getsize(path)
        return {"segments": len(segments), "segment_bytes": size, "reused_ids": len(log.reused())}
    except OSError as error:
        if error.errno not in EXHAUSTED:
            raise
        return {"segments": None, "segment_bytes": None, "reused_ids": None}


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else instant(datetime.fromtimestamp(seconds, UTC))

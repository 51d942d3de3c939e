"""The service of online evaluation over HTTP: assign, interleave, take events, say how it is doing.

A request passes the host, then the origin, then, where tokens are demanded, the application. Events are answered when they
are on disk, a batch as a whole: all of it is kept, or nothing is, and the answer names the rows that are wrong.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import shutil
import sys
import traceback
from contextlib import asynccontextmanager
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

from cranfield.answer import as_json
from cranfield.errors import CranfieldError, DataError, TopicError, UnavailableError
from cranfield.formats.streams import reason
from cranfield.http.body import STRANGER_BYTES, STRANGER_SECONDS, kind_of, parsed, read_body
from cranfield.http.connections import EXHAUSTED
from cranfield.http.limits import BodyMemory
from cranfield.http.refusal import NotFound, Refusal, refusal_of
from cranfield.online.assign import assign, refuse_contradiction
from cranfield.online.event import UNFIT, Event, instant, refuse_ahead
from cranfield.online.intake import Recent
from cranfield.online.interleave import interleave
from cranfield.online.plan import interleaving_method
from cranfield.online.segments import segments_in
from cranfield.parameters import shortened
from cranfield.web import door

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from concurrent.futures import Future

    from starlette.types import Receive, Scope, Send

    from cranfield.http.connections import Connections
    from cranfield.http.limits import Reserved
    from cranfield.http.serving import Manner
    from cranfield.online.intake import Intake
    from cranfield.online.log import Log
    from cranfield.online.packing import Packer
    from cranfield.online.plan import Plan
    from cranfield.online.privacy import Pseudonyms
    from cranfield.online.token import Keys
    from cranfield.run import Run
    from cranfield.web.applications import Applications

    Work = Callable[["Asked"], Awaitable["Said"]]

LARGEST = 2_000_000  # bytes of a body
MOST_EVENTS = 5_000  # of a batch
ON_THE_LOOP = 50_000  # bytes that are parsed where they arrive; more go into a thread
MOST_AT_ONCE = 1_000  # requests
MOST_DOCUMENTS = 100  # of an interleaved list
MOST_NAMED = 20  # rows of a batch that an answer names
AGAIN = 1  # seconds, in Retry-After
KIND = "application/json; charset=utf-8"
METHODS = "GET, POST, OPTIONS"


class BadRows(Refusal):
    """Events of a batch that are not taken, by their rows."""

    def __init__(self, rows: Sequence[tuple[int, str]], of: int, status: int = 400) -> None:
        row, problem = rows[0]
        more = f" (so are {len(rows) - 1:,} more of {of:,})" if rows[1:] else ""
        super().__init__(f"row {row}: {problem}{more}", status, safe="No event of the batch was kept.")
        self.rows = rows

    def values(self) -> dict[str, Any]:
        """As JSON, with the rows."""
        named = [{"row": row, "error": problem} for row, problem in self.rows[:MOST_NAMED]]
        return {**super().values(), "rows": named}


@dataclass
class Service:
    """What the routes share."""

    plans: Sequence[Plan]
    intake: Intake
    manner: Manner
    connections: Connections
    keys: Callable[[], Keys]  # that seal tokens of lists
    applications: Applications
    origins: frozenset[str] = frozenset()  # of pages elsewhere
    runs: Mapping[str, Run] = field(default_factory=dict)
    pseudonyms: Pseudonyms | None = None
    packer: Packer | None = None
    coin: random.Random = field(default_factory=random.SystemRandom)
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    recent: Recent = field(default_factory=Recent)
    at_once: int = 0  # requests
    memory: BodyMemory = field(default_factory=BodyMemory)
    refused_ahead: int = 0

    async def kept(self, events: Sequence[tuple[Event, bytes]]) -> None:
        """Wait until events are on disk."""
        done = asyncio.get_running_loop().create_future()
        self.intake.add([line for _, line in events]).add_done_callback(partial(_pass_on, done))
        await done
        for event, line in events:
            self.recent.keep(event.event_id, line)


def _pass_on(done: asyncio.Future[None], source: Future[None]) -> None:
    """Wake a request, in the thread of the loop."""
    if done.done():  # it was given up
        return
    failure = source.exception()
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)


@dataclass(frozen=True)
class Asked:
    """A request that has come in: what it holds, and from which application."""

    service: Service
    values: dict[str, Any]
    rows: Sequence[tuple[int, Any]]  # of events
    application: str | None

    def text(self, name: str, otherwise: str = "") -> str:
        """A field that is text."""
        value = self.values.get(name, otherwise)
        if not isinstance(value, str):
            raise Refusal(f"expected text as {name}, found {value!r:.60}")
        _refuse_unfit(name, value)
        return value

    def needed(self, name: str) -> str:
        """A field that is text and not empty."""
        value = self.text(name)
        if not value:
            raise Refusal(f"expected text as {name}, found none")
        return value

    def known(self, *names: str) -> None:
        """Refuse fields of other names."""
        other = [name for name in self.values if name not in (*names, "token")]
        if other:
            raise Refusal(f"expected fields of {', '.join(names)}, found {other[0]!r:.60}")


def _refuse_unfit(name: str, *values: str) -> None:
    """Refuse text that no event could hold: NUL, and half of a surrogate pair."""
    wrong = next((value for value in values if UNFIT.search(value)), None)
    if wrong is not None:
        raise Refusal(f"expected Unicode text without NUL as {name}, found {shortened(ascii(wrong))}")


@dataclass(frozen=True)
class Said:
    """An answer."""

    values: Any
    status: int = 200


def application(service: Service) -> Starlette:
    """The service as an ASGI application."""
    found: dict[str, dict[str, Work]] = {
        "/assign": {"POST": _assign},
        "/interleave": {"POST": _interleave},
        "/events": {"POST": _events},
        "/health": {"GET": _health},
    }
    routes = [Route(path, _Endpoint(service, path, works)) for path, works in found.items()]
    routes.append(Route("/{rest:path}", _Endpoint(service, "", {})))

    @asynccontextmanager
    async def living(app: Starlette) -> AsyncIterator[None]:
        # one call wakes all who share a sync: a call for each would wait for the interpreter's lock as often
        service.intake.tell = asyncio.get_running_loop().call_soon_threadsafe
        yield
        await anyio.to_thread.run_sync(service.intake.close)

    return Starlette(routes=routes, lifespan=living)


class _Endpoint:
    """What stands behind a path."""

    def __init__(self, service: Service, path: str, works: dict[str, Work]) -> None:
        self.service, self.path, self.works = service, path, works

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, origin = Request(scope, receive), ""
        self.service.at_once += 1
        try:
            door.refuse_host(request, self.service.manner)
            origin = door.elsewhere(request, self.service.manner, self.service.origins)
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
        if not self.works:
            raise NotFound("there is no such page", "There are POST /assign, /interleave, /events and GET /health.")
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": METHODS})
        method = "GET" if request.method == "HEAD" else request.method
        if method not in self.works:
            raise Refusal(f"{self.path} takes {', '.join(self.works)}, not {request.method[:20]}", 405)
        if self.service.at_once > MOST_AT_ONCE:
            raise UnavailableError(f"{MOST_AT_ONCE:,} requests are being answered already")
        asked = await self._asked(request) if method == "POST" else self._bare(request)
        said = await self.works[method](asked)
        return Response(as_json(said.values), said.status, media_type=KIND)

    def _bare(self, request: Request) -> Asked:
        return Asked(self.service, {}, (), self._who(door.bearer(request)))

    async def _asked(self, request: Request) -> Asked:
        """What a body holds. Who sends it may be said within it, as a page that is being left can send no header."""
        token = door.bearer(request)
        if token is not None:
            self._who(token)
        kind = kind_of(request)
        with self.service.memory.reading(request.client.host if request.client else "") as reserved:
            body = await self._body(request, reserved, known=token is not None or not self.service.manner.accounts)
            return await self._read(body, kind, token)

    async def _read(self, body: bytes, kind: str, token: str | None) -> Asked:
        if len(body) > ON_THE_LOOP:
            value = await anyio.to_thread.run_sync(parsed, body, kind)
        else:
            value = parsed(body, kind)
        values, rows = _sorted_out(value, kind, self.path == "/events")
        within = values.get("token")
        return Asked(self.service, values, rows, self._who(token if token is not None else within))

    async def _body(self, request: Request, reserved: Reserved, known: bool) -> bytes:
        """The body; whoever has not sent a token in the header may send little, and has little time."""
        seconds = self.service.connections.limits.body_seconds
        if known:
            return await read_body(request, LARGEST, seconds, reserved, "Send the events in smaller batches.")
        advice = "Send the token in Authorization: Bearer …, or smaller batches."
        return await read_body(request, STRANGER_BYTES, min(seconds, STRANGER_SECONDS), reserved, advice)

    def _who(self, token: Any) -> str | None:
        """The application that a token names; None where none is demanded."""
        if token is None and not self.service.manner.accounts:
            return None
        name = self.service.applications.of(token) if isinstance(token, str) else None
        if name is None:
            raise Refusal(
                "expected the token of an application" if token is None else "this token is not known, or no longer",
                401,
                safe="",
                advice="Send it in Authorization: Bearer …; cranfield online serve PLANS LOG --new-token NAME makes one.",
            )
        return name


def _sorted_out(value: Any, kind: str, events: bool) -> tuple[dict[str, Any], Sequence[tuple[int, Any]]]:
    """The fields of a request, and its events: one alone, a list of them, or a list in `events`."""
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
    """The headers of every answer: of the workbench, and what lets a page of a named origin send and read."""
    named = {**door.HEADERS, "Vary": "Origin", **(_allowed(origin) if origin else {})}
    return [(name.lower().encode(), value.encode()) for name, value in named.items()]


def _allowed(origin: str) -> dict[str, str]:
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": "authorization, content-type",
        "Access-Control-Expose-Headers": "retry-after",
        "Access-Control-Max-Age": "600",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }


def _refused(error: CranfieldError) -> Response:
    """The sentence for an error; where files lie is for whoever runs the service."""
    refusal = refusal_of(error)
    if isinstance(error, UnavailableError):
        cause = error.__cause__
        said = f"events cannot be written now: {reason(cause)}" if isinstance(cause, OSError) else str(error)
        advice = "Send the same again after the seconds in Retry-After; what was confirmed is kept."
        refusal = Refusal(said, 503, safe="Nothing of this was kept.", advice=advice, wait=AGAIN)
    headers = {"Retry-After": f"{max(1, round(refusal.wait))}"} if refusal.wait else {}
    headers |= {"Allow": METHODS} if refusal.status == 405 else {}
    headers |= {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
    return Response(as_json(refusal.values()), refusal.status, headers, KIND)


def _failed(path: str) -> Response:
    """A mistake of ours: its trace goes to the service's own output, and only its number to the caller."""
    number = secrets.token_hex(4)
    print(f"cranfield online serve: error {number} at {path!r:.200}", file=sys.stderr)
    traceback.print_exc()
    return Response(as_json({"error": f"something went wrong in the service (error {number})"}), 500, {}, KIND)


# events


async def _events(asked: Asked) -> Said:
    """Keep events, all or none."""
    if len(asked.rows) > MOST_EVENTS:
        raise Refusal(f"expected {MOST_EVENTS:,} events at the most, found {len(asked.rows):,}", 413)
    many = len(asked.rows) > 200
    events = await anyio.to_thread.run_sync(_sound, asked) if many else _sound(asked)
    _refuse_reused(asked, events)
    await asked.service.kept(events)
    return Said({"kept": len(events)}, 202)


def _sound(asked: Asked) -> list[tuple[Event, bytes]]:
    """The events of a batch and their lines; those that are wrong are named by row."""
    events, wrong = [], []
    now = asked.service.now()
    here = instant(now)
    for row, value in asked.rows:
        try:
            event = _event(asked, value)
            if event.time > here:
                _refuse_ahead(asked.service, event, now)
            events.append((event, f"{event.line()}\n".encode()))
        except DataError as error:
            wrong.append((row, str(error)))
    if wrong:
        raise BadRows(wrong, len(asked.rows))
    return events


def _refuse_ahead(service: Service, event: Event, now: datetime) -> None:
    try:
        refuse_ahead(event, now)
    except DataError:
        service.refused_ahead += 1
        raise


def _event(asked: Asked, value: Any) -> Event:
    """The event in a JSON object, from the application whose token came with it, its unit under a pseudonym if there are any.

    An event that names another variant than the one assigned here is refused, by the unit's own name: a pseudonym has another.
    """
    name = asked.application
    if name is not None and isinstance(value, dict):
        said = value.get("application")
        if said not in (None, "", name):
            raise DataError(f"the token is that of application {name!r}, the event says {said!r:.60}")
        value = {**value, "application": name}
    event = Event.of(value)
    refuse_contradiction(asked.service.plans, event)
    return event if asked.service.pseudonyms is None else asked.service.pseudonyms.event(event)


def _refuse_reused(asked: Asked, events: Sequence[tuple[Event, bytes]]) -> None:
    """Refuse an id that stands for another event: in the batch, or among those kept lately. Packing finds the others."""
    recent, batch, wrong = asked.service.recent, dict[str, bytes](), []
    for (row, _), (event, line) in zip(asked.rows, events, strict=True):
        if batch.setdefault(event.event_id, line) != line or recent.differs(event.event_id, line):
            wrong.append((row, f"event_id {event.event_id!r} stands for another event already; an id is for one event"))
    if wrong:
        raise BadRows(wrong, len(events), 409)


# assignments


async def _assign(asked: Asked) -> Said:
    """The experiments that a unit is in; exposures are kept where they are asked for."""
    asked.known("unit", "expose", "session", "search")
    service, unit = asked.service, asked.needed("unit")
    session, search = asked.text("session"), asked.text("search")
    found = assign(service.plans, unit)
    exposed = _exposed(asked, [one.experiment for one in found])
    values = {"unit": unit, "assignments": [one._asdict() for one in found]}
    hashes = {plan.name: plan.hash for plan in service.plans}
    rows = [
        {
            "event_id": secrets.token_hex(16),
            "time": instant(service.now()),
            "kind": "exposure",
            "unit": unit,
            "session": session or None,
            "search": search or None,
            **one.exposure(hashes[one.experiment]),
        }
        for one in found
        if one.experiment in exposed
    ]
    if rows:
        events = [_event(asked, {name: value for name, value in row.items() if value is not None}) for row in rows]
        await service.kept([(event, f"{event.line()}\n".encode()) for event in events])
    return Said({**values, "exposed": [row["experiment"] for row in rows]})


def _exposed(asked: Asked, found: Sequence[str]) -> Sequence[str]:
    """The experiments whose exposure is to be kept: all that the unit is in, or those named."""
    value = asked.values.get("expose", False)
    if isinstance(value, bool):
        return found if value else ()
    if not isinstance(value, list):
        raise Refusal(f"expected true, false or a list of experiments as expose, found {value!r:.60}")
    known = [plan.name for plan in asked.service.plans]
    unknown = [name for name in value if name not in known]
    if unknown:
        raise Refusal(f"expected experiments of {', '.join(known)}, found {unknown[0]!r:.60}")
    return value


# lists


async def _interleave(asked: Asked) -> Said:
    """One list of several, and the token to log with it."""
    asked.known("rankings", "query", "runs", "k", "method", "experiment", "search", "expires")
    return Said(await anyio.to_thread.run_sync(_mixed, asked))


def _mixed(asked: Asked) -> dict[str, Any]:
    plan, k = _experiment(asked), asked.values.get("k", 10)
    rankings = _rankings(asked)
    if plan is not None:
        _refuse_other_systems(plan, rankings)
    if type(k) is not int or not 1 <= k <= MOST_DOCUMENTS:
        raise Refusal(f"expected a number of documents from 1 to {MOST_DOCUMENTS:,} as k, found {k!r:.60}")
    expires = asked.values.get("expires")
    if expires is not None and type(expires) not in (int, float):
        raise Refusal(f"expected seconds since 1970 as expires, found {expires!r:.60}")
    method = asked.text("method", "team-draft") if plan is None else interleaving_method(plan.interleave or {})
    shown = interleave(rankings, k, asked.service.coin, method)
    token = shown.seal(asked.service.keys(), asked.text("search"), expires, plan.name if plan else "")
    return {"documents": list(shown.documents), "token": token, "method": str(shown.method)}


def _rankings(asked: Asked) -> Any:
    """The lists that came along, or those of runs for a query."""
    values, runs = asked.values, asked.service.runs
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
    query = asked.needed("query")
    lacking = [name for name in names if query not in runs[name]]
    if lacking:
        raise TopicError(f"query {query!r:.60} is missing from {', '.join(lacking)}")
    return {name: [document for document, _ in runs[name][query]] for name in names}


def _experiment(asked: Asked) -> Plan | None:
    """The plan of the experiment that is named, by which lists are mixed and which tokens name; None where none is."""
    name = asked.text("experiment")
    if not name:
        return None
    plan = next((plan for plan in asked.service.plans if plan.name == name), None)
    if plan is None or plan.interleave is None:
        raise Refusal(f"expected an experiment whose plan has [interleave], found {name!r:.60}")
    return plan


def _refuse_other_systems(plan: Plan, rankings: Any) -> None:
    """Stop at rankings of systems that the plan does not name: `analyze` could not use their tokens."""
    named = list(rankings) if isinstance(rankings, dict) else []
    if plan.systems and (not named or any(name not in plan.systems for name in named)):
        names = f"those of {', '.join(named)}" if named else "rankings without names"
        raise Refusal(
            f"expected rankings by the systems of {plan.name!r}: {', '.join(plan.systems)}; found {names:.200}"
        )


# health


async def _health(asked: Asked) -> Said:
    """How the service is doing."""
    return Said(await anyio.to_thread.run_sync(_state, asked.service))


def _state(service: Service) -> dict[str, Any]:
    told, log, connections = service.intake.told(), service.intake.log, service.connections
    packer = service.packer
    last = packer.last if packer else None
    there = log.folder if os.path.isdir(log.folder) else os.path.dirname(os.path.abspath(log.folder))
    shortage, files = connections.shortage(), _files(log)
    problems = (told.problem, last.problem if last else None, shortage)
    return {
        "ok": not any(problems),
        "problem": told.problem,
        "last_sync": _moment(told.last_sync),
        "waiting": told.waiting,
        "waiting_bytes": told.waiting_bytes,
        "written": told.written,
        "refused_ahead": service.refused_ahead,
        **files,
        "last_packing": _moment(last.at if last else None),
        "packing_problem": last.problem if last else None,
        "packing_restarts": packer.restarts if packer else 0,
        "connections": len(connections),
        "refused_connections": connections.refused,
        "descriptor_problem": shortage,
        "free_bytes": shutil.disk_usage(there).free,
        "plans": {plan.name: plan.hash for plan in service.plans},
    }


def _files(log: Log) -> dict[str, int | None]:
    """What lies in the log; unknown where no file descriptor is left to look."""
    try:
        segments = segments_in(log.segments)
        sizes, reused = sum(map(_size, segments)), len(log.reused())
    except OSError as error:
        if error.errno not in EXHAUSTED:
            raise
        return {"segments": None, "segment_bytes": None, "reused_ids": None}
    return {"segments": len(segments), "segment_bytes": sizes, "reused_ids": reused}


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:  # packed meanwhile
        return 0


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else instant(datetime.fromtimestamp(seconds, UTC))

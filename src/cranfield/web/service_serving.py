"""`cranfield online serve`: one process that assigns, interleaves and takes events."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cranfield.errors import ConventionError
from cranfield.extras import needed
from cranfield.formats.events.format import imported
from cranfield.http.serving import bound, checked, server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cranfield.http.connections import Connections
    from cranfield.http.limits import Limits
    from cranfield.http.serving import Manner
    from cranfield.online.token import Keys
    from cranfield.run import Run
    from cranfield.web.service import Service

PACK = 300.0  # seconds
SWITCH = 0.0005  # seconds after which a thread that computes lets another have the interpreter: the one that syncs
ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d+)?|https?://\[[0-9a-f:.]+\](:\d+)?")


@dataclass(frozen=True)
class Setting:
    """What a service works with: plans and runs as files, a log, origins of pages, the key of pseudonyms."""

    plans: Sequence[str]
    log: str
    runs: Sequence[str] = ()
    origins: Sequence[str] = ()
    pseudonymise: str | None = None
    pack: float = PACK  # seconds from one packing to the next


def serve(
    setting: Setting,
    manner: Manner,
    say: Callable[[str], None],
    *,
    certificate: str | None = None,
    key: str | None = None,
    insecure: bool = False,
    limits: Limits | None = None,
) -> None:
    """Serve until it is stopped."""
    _refuse_missing()
    from cranfield.web.service import application

    manner = checked(manner, certificate, key, insecure, "tokens and events")
    opened, manner = bound(manner, limits)
    with opened:
        service = prepared(setting, manner, say, opened.connections)
        running = server(application(service), manner, opened, certificate, key)
        try:
            opened.listen()
            sys.setswitchinterval(SWITCH)
            say(f"{setting.log}: {manner.url}/")
            with suppress(KeyboardInterrupt):  # uvicorn has stopped in order, and says again what stopped it
                running.run(sockets=[opened])
        finally:
            finish(service)


def prepared(setting: Setting, manner: Manner, say: Callable[[str], object], connections: Connections) -> Service:
    """The service, its threads running; an error before anything is begun where something is wrong."""
    from cranfield.online.intake import Intake
    from cranfield.online.log import Log
    from cranfield.online.packing import Packer
    from cranfield.online.plan import read_plans
    from cranfield.online.privacy import Pseudonyms, agree_on_units, refuse_other_key
    from cranfield.web.applications import Applications
    from cranfield.web.service import Service

    for module in ("duckdb", "pyarrow"):  # which the process that packs imports
        if find_spec(module) is None:
            imported(module)
    plans, origins = read_plans(setting.plans), named(setting.origins)
    pseudonyms = None if setting.pseudonymise is None else Pseudonyms.from_file(setting.pseudonymise)
    runs = _runs(setting.runs)
    log = Log(setting.log, create=True)
    refuse_other_key(log, pseudonyms)
    applications = Applications(setting.log)
    if manner.accounts and not applications.names():
        raise ConventionError(
            f"{manner.host} can be reached from other machines, so that applications need tokens, and there is none: "
            f"make one with --new-token NAME"
        )
    agree_on_units(log, pseudonyms)
    intake = Intake(log, say=say)
    packer = Packer(intake, setting.pack, say)
    return Service(
        plans,
        intake,
        manner,
        connections,
        keys=_keys(),
        applications=applications,
        origins=origins,
        runs=runs,
        pseudonyms=pseudonyms,
        packer=packer,
    )


def finish(service: Service) -> None:
    """Write what waits, and stop packing."""
    if service.packer is not None:
        service.packer.close()
    service.intake.close()


def named(origins: Iterable[str]) -> frozenset[str]:
    """Origins of pages that may call it; what is none is refused, and with it every pattern."""
    for origin in origins:
        if not ORIGIN.fullmatch(origin.lower()):
            raise ConventionError(
                f"--allow-origin: expected an origin such as https://shop.example, found {origin!r:.60}"
            )
    return frozenset(origin.lower() for origin in origins)


def _runs(paths: Sequence[str]) -> dict[str, Run]:
    from cranfield.formats.reading import read_run

    runs = [read_run(path) for path in paths]
    names = [run.name for run in runs]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ConventionError(f"--run: two runs are called {twice[0]!r}")
    return dict(zip(names, runs, strict=True))


def _keys() -> Callable[[], Keys]:
    """The usual keys, read when the first list is sealed."""
    from functools import lru_cache

    from cranfield.online.token import Keys

    return lru_cache(maxsize=1)(Keys.usual)


def _refuse_missing() -> None:
    for module in ("starlette", "anyio", "uvicorn"):
        needed(module, "the service needs", "web,online")

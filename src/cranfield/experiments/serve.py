"""`cranfield online serve`: start and stop the service, which assigns units, interleaves lists and accepts events."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cranfield.base.errors import ConventionError
from cranfield.base.optional_packages import needed
from cranfield.formats.event_files.format import imported
from cranfield.http.serving import ServerSettings, bound, checked, server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cranfield.base.run import Run
    from cranfield.experiments.service import Service
    from cranfield.http.connections import ClientLimits, Connections

PACK = 300.0  # seconds
SWITCH = 0.0005  # seconds after which a computing thread yields the interpreter to the one that syncs
ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d+)?|https?://\[[0-9a-f:.]+\](:\d+)?")


@dataclass(frozen=True)
class ServiceSettings:
    """The settings of a service: files of plans and runs, the log, origins of pages, the key of pseudonyms."""

    plans: Sequence[str]
    log: str
    runs: Sequence[str] = ()
    origins: Sequence[str] = ()
    pseudonymise: str | None = None
    pack: float = PACK  # seconds between compactions


def serve(
    setting: ServiceSettings,
    manner: ServerSettings,
    say: Callable[[str], None],
    *,
    certificate: str | None = None,
    key: str | None = None,
    insecure: bool = False,
    limits: ClientLimits | None = None,
) -> None:
    """Run the service until it is stopped."""
    for module in ("starlette", "anyio", "uvicorn"):
        needed(module, "the service needs", "web,online")
    from cranfield.experiments.service import application

    manner = checked(manner, certificate, key, insecure, "tokens and events")
    opened, manner = bound(manner, limits)
    with opened:
        service = prepare_service(setting, manner, say, opened.connections)
        running = server(application(service), manner, opened, certificate, key)
        try:
            opened.listen()
            sys.setswitchinterval(SWITCH)
            say(f"{setting.log}: {manner.url}/")
            with suppress(KeyboardInterrupt):  # uvicorn has stopped in order, and raises again what stopped it
                running.run(sockets=[opened])
        finally:
            finish(service)


def prepare_service(
    setting: ServiceSettings, manner: ServerSettings, say: Callable[[str], object], connections: Connections
) -> Service:
    """The service with its threads running; all settings are checked before anything is started."""
    from cranfield.experiments.interleaving.token import Keys
    from cranfield.experiments.log import EventLog
    from cranfield.experiments.log_writer import Compactor, GroupCommit
    from cranfield.experiments.plan import read_plans
    from cranfield.experiments.privacy import Pseudonyms, agree_on_units, refuse_other_key
    from cranfield.experiments.service import Service
    from cranfield.experiments.service_tokens import ApplicationTokens

    for module in ("duckdb", "pyarrow"):  # the compaction process imports them
        if find_spec(module) is None:
            imported(module)
    plans, origins = read_plans(setting.plans), allowed_origins(setting.origins)
    pseudonyms = None if setting.pseudonymise is None else Pseudonyms.from_file(setting.pseudonymise)
    runs = _runs(setting.runs)
    log = EventLog(setting.log, create=True)
    refuse_other_key(log, pseudonyms)
    applications = ApplicationTokens(setting.log)
    if manner.accounts and not applications.names():
        raise ConventionError(
            f"{manner.host} can be reached from other machines, so applications need tokens, and there are none: "
            f"make one with --new-token NAME"
        )
    agree_on_units(log, pseudonyms)
    intake = GroupCommit(log, say=say)
    packer = Compactor(intake, setting.pack, say)
    keys = lru_cache(maxsize=1)(Keys.usual)  # read when the first list is sealed
    return Service(plans, intake, manner, connections, keys, applications, origins, runs, pseudonyms, packer)


def finish(service: Service) -> None:
    """Stop compaction, and write the waiting events."""
    if service.packer is not None:
        service.packer.close()
    service.intake.close()


def allowed_origins(origins: Iterable[str]) -> frozenset[str]:
    """The origins of pages that may call the service; patterns and other texts are refused."""
    for origin in origins:
        if not ORIGIN.fullmatch(origin.lower()):
            raise ConventionError(
                f"--allow-origin: expected an origin such as https://shop.example, found {origin!r:.60}"
            )
    return frozenset(origin.lower() for origin in origins)


def _runs(paths: Sequence[str]) -> dict[str, Run]:
    from cranfield.formats.runs_and_qrels import read_run

    runs: dict[str, Run] = {}
    for run in map(read_run, paths):
        if runs.setdefault(run.name, run) is not run:
            raise ConventionError(f"--run: two runs are called {run.name!r}")
    return runs

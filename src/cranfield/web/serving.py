"""`cranfield serve`: one process that serves a workspace, and the links that let people in."""

from __future__ import annotations

import getpass
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError
from cranfield.http.serving import Manner, bound, server
from cranfield.store.accounts import is_name
from cranfield.web.site import Site
from cranfield.workspace.bench import STATE

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.http.limits import Limits
    from cranfield.workspace.bench import Bench

SERVING = "serving.json"


def serve(
    bench: Bench,
    manner: Manner,
    say: Callable[[str], None],
    certificate: str | None = None,
    key: str | None = None,
    limits: Limits | None = None,
) -> None:
    """Serve a workspace until it is stopped, in a manner that was `checked`."""
    from cranfield.web.app import application
    from cranfield.workspace.jobs import Jobs

    opened, manner = bound(manner, limits)
    jobs = Jobs(bench)
    site = Site(bench, jobs, manner, opened.connections.limits)
    running = server(application(site), manner, opened, certificate, key)
    try:
        with suppress(KeyboardInterrupt):  # Ctrl-C is how it ends, before uvicorn listens for it as well
            site.shelving.begin()
            opened.listen()
            _note(bench, manner)
            welcome(site, say)
            running.run(sockets=[opened])
    finally:
        jobs.close()
        _forget(bench)


def welcome(site: Site, say: Callable[[str], None]) -> None:
    """Say where the workspace is found, and how the first person gets in."""
    manner = site.manner
    if not manner.accounts:
        say(f"{site.bench.name}: {entrance(site)}")
        say("The link works once, within ten minutes. Stop with Ctrl-C; cranfield serve FOLDER --link prints another.")
    elif not any(account.role == "lead" and account.active for account in site.accounts.all()):
        secret = site.accounts.invite("lead", by="")
        say(f"{site.bench.name}: the first lead makes an account at {manner.url}/join?invitation={secret}")
    else:
        say(f"{site.bench.name}: {manner.url}/")


def entrance(site: Site) -> str:
    """A link that lets whoever opens it first in as the person who started the server."""
    name = local_name()
    if site.accounts.find(name) is None:
        site.accounts.create(name, "lead", None)
    return f"{site.manner.url}/enter?key={site.accounts.new_key()}"


def local_name() -> str:
    """Who works at this machine, as an account may be called."""
    try:
        name = getpass.getuser()
        return name if is_name(name) else "me"
    except (KeyError, OSError):
        return "me"


def server_of(folder: str) -> dict[str, Any]:
    """What the server of a workspace that is running noted of itself; DataError where none runs. Writes nothing."""
    place = os.path.abspath(folder)
    try:
        running: dict[str, Any] = json.loads((Path(place) / STATE / SERVING).read_text())
        os.kill(running["pid"], 0)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        raise DataError(f"{place} is not being served; start it: cranfield serve {place}") from None
    return running


def new_link(bench: Bench, role: str | None = None) -> str:
    """A link to the server of this workspace that is running: for oneself, or an invitation for somebody of a role."""
    from cranfield.store.accounts import Accounts

    running = server_of(bench.folder)
    accounts = Accounts(bench.database)
    if role is not None and not running["accounts"]:
        raise DataError(f"{bench.folder} is served without accounts; start it with --accounts to invite somebody")
    if role is not None:
        return f"{running['url']}/join?invitation={accounts.invite(role, by='')}"
    if running["accounts"]:
        return f"{running['url']}/"
    return f"{running['url']}/enter?key={accounts.new_key()}"


def _note(bench: Bench, manner: Manner) -> None:
    path = Path(bench.state) / SERVING
    path.write_text(json.dumps({"url": manner.url, "pid": os.getpid(), "accounts": manner.accounts}))
    path.chmod(0o600)


def _forget(bench: Bench) -> None:
    (Path(bench.state) / SERVING).unlink(missing_ok=True)

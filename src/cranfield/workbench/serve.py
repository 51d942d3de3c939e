"""`cranfield serve`: one process that serves a workspace, and the links with which people sign in."""

from __future__ import annotations

import getpass
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import CranfieldError, DataError
from cranfield.http.serving import ServerSettings, bound, server
from cranfield.inputs.workspace import STATE, Bench
from cranfield.store.accounts import Accounts, is_name
from cranfield.workbench.site import Site

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.http.connections import ClientLimits

SERVING = "serving.json"


def serve(
    bench: Bench,
    manner: ServerSettings,
    say: Callable[[str], None],
    certificate: str | None = None,
    key: str | None = None,
    limits: ClientLimits | None = None,
) -> None:
    """Serve a workspace until the process is stopped; `manner` was checked before."""
    from cranfield.workbench.app import application
    from cranfield.workbench.jobs import Jobs

    socket, manner = bound(manner, limits)
    jobs = Jobs(bench)
    site = Site(bench, jobs, manner, socket.connections.limits)
    running = server(application(site), manner, socket, certificate, key)
    state = Path(bench.state) / SERVING
    try:
        with suppress(KeyboardInterrupt):  # Ctrl-C may come before uvicorn handles it
            site.index_loader.start()
            _import_judgments(bench, say)
            socket.listen()
            state.write_text(json.dumps({"url": manner.url, "pid": os.getpid(), "accounts": manner.accounts}))
            state.chmod(0o600)
            welcome(site, say)
            running.run(sockets=[socket])
    finally:
        jobs.close()
        state.unlink(missing_ok=True)


def _import_judgments(bench: Bench, say: Callable[[str], None]) -> None:
    """Import the collection's judgments; a file that cannot be read is reported, and again by each page that needs it."""
    try:
        bench.import_judgments()
    except CranfieldError as error:
        say(str(error))


def welcome(site: Site, say: Callable[[str], None]) -> None:
    """Print the address of the workspace, and how the first person signs in."""
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
    """A link that signs in its first visitor as the person who started the server."""
    name = local_name()
    if site.accounts.find(name) is None:
        site.accounts.create(name, "lead", None)
    return f"{site.manner.url}/enter?key={site.accounts.new_key()}"


def local_name() -> str:
    """The name of the user of this machine, if an account may have it; else "me"."""
    try:
        name = getpass.getuser()
        return name if is_name(name) else "me"
    except (KeyError, OSError):
        return "me"


def server_of(folder: str) -> dict[str, Any]:
    """Address and process of the server that serves a folder; DataError if none runs. Writes nothing."""
    place = os.path.abspath(folder)
    try:
        running: dict[str, Any] = json.loads((Path(place) / STATE / SERVING).read_text())
        os.kill(running["pid"], 0)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        raise DataError(f"{place} is not being served; start it: cranfield serve {place}") from None
    return running


def new_link(bench: Bench, role: str | None = None) -> str:
    """A link to the running server of a workspace: to sign in oneself, or an invitation with a role."""
    running = server_of(bench.folder)
    accounts = Accounts(bench.database)
    if role is not None and not running["accounts"]:
        raise DataError(f"{bench.folder} is served without accounts; start it with --accounts to invite somebody")
    if role is not None:
        return f"{running['url']}/join?invitation={accounts.invite(role, by='')}"
    if running["accounts"]:
        return f"{running['url']}/"
    return f"{running['url']}/enter?key={accounts.new_key()}"

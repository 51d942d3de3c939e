"""`cranfield serve`: one process that serves one or several workspaces, and the links with which people sign in."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import ConventionError, CranfieldError, DataError
from cranfield.http.serving import ServerSettings, bound, server
from cranfield.inputs.workspace import STATE, Bench, open_bench
from cranfield.store.accounts import Accounts
from cranfield.store.database_copy import OlderCopyError
from cranfield.workbench.site import Site

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cranfield.http.connections import ClientLimits, Listener
    from cranfield.workbench.sign_in import Passwords

SERVING = "serving.json"


class ServedFolders(NamedTuple):
    """The workspaces to serve: one folder at the root, or several under prefixes; `databases` replace their work.db."""

    folders: Sequence[str]
    databases: Sequence[str] = ()
    parent: str | None = None  # where leads may create workspaces

    @property
    def several(self) -> bool:
        """Whether each workspace has a prefix."""
        return len(self.folders) > 1 or self.parent is not None

    def database(self, folder: str) -> str | None:
        """The database of a folder, if it was named."""
        return dict(zip(self.folders, self.databases, strict=False)).get(folder)


def folders_to_serve(folders: Sequence[str], databases: Sequence[str], parent: str | None) -> ServedFolders:
    """The workspaces to serve, checked."""
    from cranfield.workbench.many_workspaces import refuse_same_names, workspaces_in

    if not folders and parent is None:
        raise ConventionError("name the FOLDER of a workspace, several, or --workspaces FOLDER")
    if databases and (len(databases) != len(folders) or parent is not None):
        raise ConventionError("--db: expected one database per FOLDER, in their order, or none")
    served = ServedFolders([*folders, *(workspaces_in(parent) if parent is not None else ())], databases, parent)
    if served.several:
        refuse_same_names(served.folders)
    return served


def serve(
    served: ServedFolders,
    manner: ServerSettings,
    say: Callable[[str], None],
    certificate: str | None = None,
    key: str | None = None,
    limits: ClientLimits | None = None,
) -> None:
    """Serve workspaces until the process is stopped; `manner` was checked before."""
    from cranfield.workbench.app import application

    with ExitStack() as stack:
        if not served.several:  # before a port is taken
            bench = stack.enter_context(closing(open_bench(served.folders[0], served.database(served.folders[0]))))
        socket, manner = bound(manner, limits)
        opener = _SiteOpener(served, manner, socket, stack, say)
        if served.several:
            sites, app = opener.open_all()
        else:
            site = opener.site_of(bench, manner)
            sites, app = [site], application(site)
        running = server(app, manner, socket, certificate, key)
        try:
            with suppress(KeyboardInterrupt):  # Ctrl-C may come before uvicorn handles it
                for site in sites:
                    site.index_loader.start()
                    _import_judgments(site.bench, say)
                socket.listen()
                opener.announce_all(sites)
                if served.several:
                    welcome_to_all(sites, manner, say)
                else:
                    welcome(sites[0], say)
                running.run(sockets=[socket])
        finally:
            opener.workers.close()


class _SiteOpener:
    """Opens workspaces for one server; they share its worker processes and its hasher of passwords."""

    def __init__(
        self,
        served: ServedFolders,
        manner: ServerSettings,
        socket: Listener,
        stack: ExitStack,
        say: Callable[[str], None],
    ) -> None:
        from cranfield.workbench.worker_pool import WorkerPool

        self.served, self.manner, self.socket, self.stack, self.say = served, manner, socket, stack, say
        self.workers = WorkerPool()
        self.passwords: Passwords | None = None
        self._listens = False

    def open_all(self) -> tuple[list[Site], Any]:
        """The sites of several workspaces and their application; workspaces that cannot be opened are listed in it."""
        from cranfield.workbench.many_workspaces import BrokenWorkspace, WorkspaceServer

        sites: list[Site] = []
        broken: list[BrokenWorkspace] = []
        for folder in self.served.folders:
            try:
                sites.append(self.open_site(folder))
            except CranfieldError as error:
                if len(self.served.folders) == len(broken) + 1:
                    raise
                name = os.path.basename(os.path.abspath(folder))
                broken.append(BrokenWorkspace(name, str(error).replace(f"{os.path.abspath(folder)}{os.sep}", "")))
                self.say(f"{name} is not served: {error}")
        return sites, WorkspaceServer(self.manner, sites, broken, self.served.parent, self.open_site)

    def open_site(self, folder: str) -> Site:
        """One of several workspaces, under its prefix."""
        from cranfield.workbench.many_workspaces import prefix_of

        bench = self.stack.enter_context(closing(open_bench(folder, self.served.database(folder))))
        site = self.site_of(bench, replace(self.manner, path=prefix_of(bench.folder)))
        self.passwords = site.passwords = self.passwords or site.passwords
        if self._listens:
            self._announce(site)
            site.index_loader.start()
            _import_judgments(site.bench, self.say)
        return site

    def site_of(self, bench: Bench, manner: ServerSettings) -> Site:
        """A workspace as a site."""
        from cranfield.workbench.backup import finish_restore
        from cranfield.workbench.jobs import Jobs

        try:
            finish_restore(bench)
        except OlderCopyError as error:
            self.say(f"{bench.name}: {error}")
        return Site(bench, Jobs(bench, workers=self.workers), manner, self.socket.connections.limits)

    def announce_all(self, sites: Sequence[Site]) -> None:
        """Write the address of each workspace into its state folder, for `serve --link`."""
        self._listens = True
        for site in sites:
            self._announce(site)

    def _announce(self, site: Site) -> None:
        state = Path(site.bench.state) / SERVING
        root = site.manner.url.removesuffix(site.manner.path)
        about = {"url": site.manner.url, "root": root, "pid": os.getpid(), "accounts": site.manner.accounts}
        self.stack.callback(state.unlink, missing_ok=True)
        state.write_text(json.dumps(about))
        state.chmod(0o600)


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
    elif not has_lead(site):
        secret = site.accounts.invite("lead", by="")
        say(f"{site.bench.name}: the first lead makes an account at {manner.url}/join?invitation={secret}")
    else:
        say(f"{site.bench.name}: {manner.url}/")


def welcome_to_all(sites: Sequence[Site], manner: ServerSettings, say: Callable[[str], None]) -> None:
    """Print the address of the first page, and how the first person signs in to each workspace."""
    if not manner.accounts:
        say(f"{len(sites)} workspaces: {manner.url}/enter?key={sites[0].accounts.new_key()}")
        say("The link works once, within ten minutes. Stop with Ctrl-C; the same command with --link prints another.")
        return
    say(f"{len(sites)} workspaces: {manner.url}/")
    for site in sites:
        if not has_lead(site):
            welcome(site, say)


def has_lead(site: Site) -> bool:
    """Whether a workspace has a lead who can sign in."""
    return any(account.role == "lead" and account.active for account in site.accounts.all())


def entrance(site: Site) -> str:
    """A link that signs in its first visitor as the person who started the server."""
    return f"{site.manner.url}/enter?key={site.accounts.new_key()}"


def server_of(folder: str) -> dict[str, Any]:
    """Address and process of the server that serves a folder; DataError if none runs. Writes nothing."""
    place = os.path.abspath(folder)
    try:
        running: dict[str, Any] = json.loads((Path(place) / STATE / SERVING).read_text())
        os.kill(running["pid"], 0)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        raise DataError(f"{place} is not being served; start it: cranfield serve {place}") from None
    return running


def new_link(bench: Bench, role: str | None = None, all: bool = False) -> str:
    """A link to the running server of a workspace: to sign in oneself, or an invitation with a role.

    With `all` the link signs in to all workspaces of the server.
    """
    running = server_of(bench.folder)
    accounts = Accounts(bench.database)
    if role is not None and not running["accounts"]:
        raise DataError(f"{bench.folder} is served without accounts; start it with --accounts to invite somebody")
    if role is not None:
        return f"{running['url']}/join?invitation={accounts.invite(role, by='')}"
    address = running["root"] if all else running["url"]
    return f"{address}/" if running["accounts"] else f"{address}/enter?key={accounts.new_key()}"

"""`cranfield serve`: one process that serves a workspace, and the links that let people in."""

from __future__ import annotations

import getpass
import ipaddress
import json
import os
import socket
import ssl
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.errors import ConventionError, DataError
from cranfield.store.accounts import is_name
from cranfield.web.site import Manner, Site

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.workspace.bench import Bench

SERVING = "serving.json"
KEEP_ALIVE = 75  # seconds; browsers of assessors who read for a while keep their connection


def checked(
    manner: Manner, certificate: str | None, key: str | None, insecure: bool, sent: str = "passwords and labels"
) -> Manner:
    """How to serve, or a refusal of what would not be safe; `sent` is what others could read."""
    if (certificate is None) != (key is None):
        raise ConventionError("--tls-cert and --tls-key belong together")
    for path in filter(None, (certificate, key)):
        if not os.path.isfile(path):
            raise ConventionError(f"{path}: there is no such file")
    if certificate is not None:
        _refuse_certificate(certificate, key)
    if manner.proxy:
        return _behind(manner)
    if manner.local:
        return replace(manner, tls=bool(certificate))
    if not (certificate or insecure):
        raise ConventionError(
            f"{manner.host} can be reached from other machines: give --tls-cert and --tls-key, or --behind-proxy "
            f"ADDRESS of a proxy that speaks TLS; --insecure sends {sent} unencrypted"
        )
    named = manner.names or ((socket.gethostname().lower(),) if manner.everywhere else ())
    return replace(manner, accounts=True, tls=bool(certificate), names=named)


def _refuse_certificate(certificate: str, key: str | None) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError):  # a wrong password for a key with one too
        wanted = "expected a certificate in PEM and its key, which has no password"
        raise ConventionError(f"{certificate}, {key}: {wanted}") from None


def _behind(manner: Manner) -> Manner:
    """How to serve through a proxy, which other machines reach wherever this listens."""
    for address in manner.proxy.split(","):
        try:
            ipaddress.ip_network(address.strip())
        except ValueError:
            raise ConventionError(f"--behind-proxy: expected the proxy's IP address, found {address!r:.60}") from None
    if not manner.names:
        raise ConventionError("--behind-proxy: say by which name browsers call it: --allow-host NAME")
    return replace(manner, accounts=True, tls=True)


def bound(manner: Manner) -> tuple[socket.socket, Manner]:
    """A socket at the address, and the port it has."""
    family = socket.AF_INET6 if ":" in manner.host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # by which asyncio knows to send at once
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((manner.host, manner.port))
    except OSError as error:
        opened.close()
        told = (error.strerror or str(error)).lower()
        raise DataError(
            f"cannot listen at {manner.host} port {manner.port}: {told}; choose another --port, 0 takes a free one"
        ) from None
    return opened, replace(manner, port=opened.getsockname()[1])


def serve(
    bench: Bench,
    manner: Manner,
    say: Callable[[str], None],
    certificate: str | None = None,
    key: str | None = None,
) -> None:
    """Serve a workspace until it is stopped, in a manner that was `checked`."""
    import uvicorn

    from cranfield.workspace.jobs import Jobs

    opened, manner = bound(manner)
    jobs = Jobs(bench)
    site = Site(bench, jobs, manner)
    config = configured(site, certificate, key)
    try:
        with suppress(KeyboardInterrupt):  # Ctrl-C is how it ends, before uvicorn listens for it as well
            site.shelving.begin()
            opened.listen(512)
            _note(bench, manner)
            welcome(site, say)
            uvicorn.Server(config).run(sockets=[opened])
    finally:
        jobs.close()
        _forget(bench)


def configured(site: Site, certificate: str | None = None, key: str | None = None) -> Any:
    """What uvicorn is told of the workbench."""
    from cranfield.web.app import application

    return configuration(application(site), site.manner, certificate, key)


def configuration(application: Any, manner: Manner, certificate: str | None = None, key: str | None = None) -> Any:
    """What uvicorn is told. Its parser h11 takes 64 KB of headers; of other parsers it has no such promise."""
    import uvicorn

    return uvicorn.Config(
        application,
        http="h11",
        ws="none",
        log_level="warning",
        access_log=False,  # addresses of links hold keys
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=5,
        proxy_headers=bool(manner.proxy),
        forwarded_allow_ips=manner.proxy or None,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


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


def new_link(bench: Bench, role: str | None = None) -> str:
    """A link to the server of this workspace that is running: for oneself, or an invitation for somebody of a role."""
    from cranfield.store.accounts import Accounts

    path = Path(bench.state) / SERVING
    try:
        running = json.loads(path.read_text())
        os.kill(running["pid"], 0)
    except (OSError, ValueError, KeyError):
        raise DataError(f"{bench.folder} is not being served; start it: cranfield serve {bench.folder}") from None
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

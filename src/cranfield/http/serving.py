"""Where a server listens, and for whom: addresses, TLS, a proxy, limits. The workbench and the service both start here."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import socket
import ssl
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError, DataError
from cranfield.formats.streams import refuse_readable
from cranfield.http.connections import AT_ONCE, ClientLimits, Connections, Listener, network_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

EVERYWHERE = {"0.0.0.0", "::"}
PEER = "cranfield.peer"  # in the scope of a request: the address of the other end of the connection
TOKEN = re.compile(r"[A-Za-z0-9-]{1,100}")
KEEP_ALIVE = 75  # seconds; the browser of an assessor who reads a document keeps its connection


@dataclass(frozen=True)
class ServerSettings:
    """The settings of a server: address, port, accounts, TLS, proxy, host names."""

    host: str = "127.0.0.1"
    port: int = 8765
    accounts: bool = False  # whether accounts are required; without them the key in the printed link is enough
    tls: bool = False  # whether the browser sees https
    proxy: str = ""  # the proxy whose forwarded client addresses are trusted
    names: tuple[str, ...] = ()  # further host names of the server
    path: str = ""  # the prefix of one of several workspaces, such as /garden
    auth_header: str = ""  # in which the proxy names the person who is signed in
    auth_role: str = ""  # of accounts that are made for new names in that header; empty: accounts must exist

    @property
    def scheme(self) -> str:
        """http or https, as the browser sees it."""
        return "https" if self.tls else "http"

    def from_proxy(self, peer: str) -> bool:
        """Whether an address is that of the proxy."""
        return peer in _Addresses(self.proxy)

    @cached_property
    def hosts(self) -> frozenset[str]:
        """The allowed values of the Host header, with and without the port."""
        own = {self.host, *self.names, *(("127.0.0.1", "localhost") if self.local else ())} - EVERYWHERE
        bracketed = {f"[{name}]" if ":" in name and not name.startswith("[") else name for name in own}
        with_port = {f"{name}:{self.port}" for name in bracketed}
        bare = bracketed if self.proxy or self.port == (443 if self.tls else 80) else frozenset[str]()
        return frozenset(name.lower() for name in {*with_port, *bare, *(name for name in self.names if ":" in name)})

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in ("127.0.0.1", "localhost", "::1")

    @property
    def everywhere(self) -> bool:
        """Whether it listens at every address of the machine."""
        return self.host in EVERYWHERE

    @property
    def url(self) -> str:
        """The address for people."""
        name = self.names[0] if self.names else self.host
        name = f"[{name}]" if ":" in name and not name.startswith("[") and name.count(":") > 1 else name
        bare = self.proxy or ":" in name.rpartition("]")[2] or self.port == (443 if self.tls else 80)
        return f"{self.scheme}://{name}{'' if bare else f':{self.port}'}{self.path}"

    @property
    def cookie(self) -> str:
        """The name of the session cookie. It contains the port, because cookies ignore ports, and the workspace."""
        return f"{'__Host-' if self.tls else ''}cranfield-{self.port}{self.path.replace('/', '-')}"


def checked(
    manner: ServerSettings, certificate: str | None, key: str | None, insecure: bool, sent: str = "passwords and labels"
) -> ServerSettings:
    """The settings, completed; ConventionError if they are unsafe. `sent` names the data that others could read."""
    if (certificate is None) != (key is None):
        raise ConventionError("--tls-cert and --tls-key belong together")
    for path in filter(None, (certificate, key)):
        if not os.path.isfile(path):
            raise ConventionError(f"{path}: there is no such file")
    if certificate is not None:
        _refuse_certificate(certificate, key)
        refuse_readable(key or certificate)
    if manner.auth_header and not manner.proxy:
        problem = "--auth-header is trusted from a proxy alone: give its address, --behind-proxy ADDRESS"
        raise ConventionError(f"{problem}; anybody else could send the header")
    if manner.auth_header and not TOKEN.fullmatch(manner.auth_header):
        raise ConventionError(f"--auth-header: expected the name of a header, found {manner.auth_header!r:.60}")
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
    except (OSError, ValueError):  # also a missing password of the key
        problem = "expected a certificate in PEM and its key, which has no password"
        raise ConventionError(f"{certificate}, {key}: {problem}") from None


def _behind(manner: ServerSettings) -> ServerSettings:
    """The settings behind a proxy, which makes the server reachable from other machines."""
    for address in manner.proxy.split(","):
        try:
            ipaddress.ip_network(address.strip())
        except ValueError:
            raise ConventionError(f"--behind-proxy: expected the proxy's IP address, found {address!r:.60}") from None
    if not manner.names:
        raise ConventionError("--behind-proxy: say by which name browsers call it: --allow-host NAME")
    return replace(manner, accounts=True, tls=True)


def bound(manner: ServerSettings, limits: ClientLimits | None = None) -> tuple[Listener, ServerSettings]:
    """A listening socket with limits, and the settings with its actual port."""
    family = socket.AF_INET6 if ":" in manner.host else socket.AF_INET
    opened = Listener(family, Connections(limits or ClientLimits(), _Addresses(manner.proxy)))
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((manner.host, manner.port))
    except OSError as error:
        opened.close()
        problem = f"cannot listen at {manner.host} port {manner.port}: {(error.strerror or str(error)).lower()}"
        raise DataError(f"{problem}; choose another --port, 0 takes a free one") from None
    return opened, replace(manner, port=opened.getsockname()[1])


def server(
    application: Any, manner: ServerSettings, listener: Listener, certificate: str | None = None, key: str | None = None
) -> Any:
    """A uvicorn server with the limits of its listener; run it with `sockets=[listener]`.

    Its parser h11 takes 64 KB of headers; other parsers promise no such limit.
    """
    import uvicorn
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    from cranfield.http.protocol import LimitedProtocol

    connections = listener.connections
    listener.encrypted = certificate is not None
    if manner.proxy:
        limited = PerAddress(application, connections.limits.per_address or 1)
        application = PeerRecorder(ProxyHeadersMiddleware(limited, trusted_hosts=manner.proxy))
    return uvicorn.Server(
        uvicorn.Config(
            application,
            loop="asyncio",  # other loops accept connections without the listener
            http=partial(LimitedProtocol, connections=connections),  # type: ignore[arg-type]
            ws="none",
            backlog=AT_ONCE,
            log_level="error",  # one line per malformed request would let strangers fill the disk
            access_log=False,  # URLs of links contain keys
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=5,
            proxy_headers=False,  # see PeerRecorder
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
    )


class _Addresses:
    """Addresses and networks, separated by commas."""

    def __init__(self, text: str) -> None:
        self._networks = [ipaddress.ip_network(each.strip()) for each in text.split(",") if each.strip()]

    def __contains__(self, address: object) -> bool:
        try:
            parsed = ipaddress.ip_address(str(address))
        except ValueError:
            return False
        return any(parsed in network for network in self._networks)


class PeerRecorder:
    """Records the address of the peer of a connection, before X-Forwarded-For replaces it by the client of a proxy."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[..., Any]) -> None:
        """Handle one request."""
        await self._application({**scope, PEER: (scope.get("client") or ("",))[0]}, receive, send)


class PerAddress:
    """Refuses a client behind a proxy that has too many requests under way, since all connections are the proxy's."""

    def __init__(self, application: Any, most: int) -> None:
        self._application, self._most = application, most
        self._under_way: Counter[str] = Counter()

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[..., Any]) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        address = network_of((scope.get("client") or ("",))[0])
        if self._under_way[address] >= self._most:
            await _refuse(send, f"{self._most:,} requests from this address are under way already")
            return
        self._under_way[address] += 1
        try:
            await self._application(scope, receive, send)
        finally:
            self._under_way[address] -= 1
            if not self._under_way[address]:
                del self._under_way[address]


async def _refuse(send: Callable[..., Any], problem: str) -> None:
    """Send a 503 response without calling the application."""
    body = json.dumps({"error": problem, "advice": "Send the same again after the seconds in Retry-After."}).encode()
    headers = {
        b"content-type": b"application/json; charset=utf-8",
        b"content-length": str(len(body)).encode(),
        b"retry-after": b"1",
    }
    await send({"type": "http.response.start", "status": 503, "headers": [*headers.items()]})
    await send({"type": "http.response.body", "body": body})

"""The connections of a server from accept to close, and how much of it one client may use, counted by address.

A network of IPv6 counts as one address, since its owner has 2⁶⁴ of them.

A connection counts from the moment it is accepted, before any TLS handshake, until its file descriptor is free. At the
limit of an address, its oldest idle connection is closed for the new one. Idle means kept alive, or without complete
headers. People share an address behind a router, and one of them could otherwise hold all of its connections. Where
none is idle, the new one is refused, which costs next to nothing. At the limit of the server, the address with the most
connections loses the one on which the server has waited longest. A connection that is being answered is never closed.
When the process has no file descriptor left, one that is held in reserve accepts the connection and closes it, since
`asyncio` would otherwise log a traceback for each; from then on fewer connections are allowed.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator


MOST_CONNECTIONS = 4096
MOST_PER_ADDRESS = 256
RESERVE = 64  # file descriptors kept for other purposes than connections
UNLIMITED = 1 << 20  # file descriptors, if the system has no limit
MOST_HELD = 64_000_000  # bytes of bodies that are being read
SHARE = 4  # one address may hold a quarter


@dataclass(frozen=True)
class ClientLimits:
    """The limits of one server; None is computed from the limit of file descriptors."""

    connections: int | None = None
    per_address: int | None = None
    header_seconds: float = 10.0  # from the connection, or a request's first byte, to the end of its headers
    body_seconds: float = 30.0  # for a whole body

    def fitted(self, descriptors: int) -> ClientLimits:
        """The limits with every None computed.

        >>> ClientLimits().fitted(256)
        ClientLimits(connections=192, per_address=96, header_seconds=10.0, body_seconds=30.0)
        """
        room = max(8, descriptors - max(RESERVE, descriptors // 4))
        most = min(MOST_CONNECTIONS, room) if self.connections is None else self.connections
        each = min(MOST_PER_ADDRESS, max(1, most // 2)) if self.per_address is None else self.per_address
        return replace(self, connections=most, per_address=min(each, most))


def descriptor_limit() -> int:
    """The number of files and connections that this process may open."""
    try:
        import resource
    except ImportError:  # Windows
        return UNLIMITED
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else min(soft, UNLIMITED)


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """The address or network by which limits count.

    >>> network_of("::ffff:10.0.0.1"), network_of("2001:db8::1")
    ('10.0.0.1', '2001:db8::/64')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        mapped = parsed.ipv4_mapped
        return str(mapped or ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


class BodyMemory:
    """The memory of bodies that are being read, limited in total and per address."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self.most = most
        self.held = 0
        self._by_address: Counter[str] = Counter()

    @contextmanager
    def reading(self, address: str) -> Iterator[Reserved]:
        """Account for one body until the block ends."""
        reserved = Reserved(self, network_of(address))
        try:
            yield reserved
        finally:
            self.held -= reserved.size
            self._by_address[reserved.address] -= reserved.size
            if self._by_address[reserved.address] <= 0:
                del self._by_address[reserved.address]

    def take(self, address: str, size: int) -> None:
        """Count more bytes; UnavailableError if the address or all addresses together exceed the limit."""
        if self.held + size > self.most or self._by_address[address] + size > self.most // SHARE:
            raise UnavailableError(f"{self.held:,} bytes of other requests are being read already")
        self.held += size
        self._by_address[address] += size


@dataclass
class Reserved:
    """The memory of one body: the bytes that were read so far."""

    memory: BodyMemory
    address: str
    size: int = 0

    def take(self, size: int) -> None:
        """Reserve more bytes."""
        self.memory.take(self.address, size)
        self.size += size


QUEUE = 1024  # connections that the system holds until they are accepted
AT_ONCE = 16  # connections accepted before other work continues
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
PAUSE = 0.005  # seconds to sleep if not even the reserve is left: the socket stays readable, so accept is called again
GRACE = 0.2  # seconds in which a new connection may send its headers before it counts as idle
RECENT = 60.0  # seconds for which a past shortage is reported
RESERVE_LEFT = 0.02  # part of the file descriptors below which a shortage is reported


def plain_answer(status: str, text: str) -> bytes:
    """A complete HTTP response that ends the connection, for requests that reach no application."""
    head = "Connection: close\r\nRetry-After: 1\r\nContent-Type: text/plain; charset=utf-8"
    return f"HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


BUSY = plain_answer("503 Service Unavailable", "too many connections at once")


class Connection:
    """One open connection: its address, and whether the server waits for the client."""

    def __init__(self, accepted: socket.socket, address: str, since: float) -> None:
        self.socket, self.address = accepted, address
        self.since = since  # the time at which the server began to wait
        self.waits = True
        self.reads_body = False
        self.served = False  # whether a request was answered
        self.end: Callable[[], None] = self._shut_down  # until a protocol replaces it
        self._timer: asyncio.TimerHandle | None = None

    def wait(self, *, for_body: bool = False) -> None:
        """The server waits for the client from now on; a running timer stops."""
        self.go_on()
        self.waits, self.reads_body, self.since = True, for_body, time.monotonic()

    def answer(self) -> None:
        """The client waits for the server; a running timer stops."""
        self.go_on()
        self.waits = self.reads_body = False

    def end_after(self, seconds: float) -> None:
        """Close the connection after some seconds unless `go_on` is called; a running timer stays."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, lambda: self.end())

    def go_on(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _shut_down(self) -> None:
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class Connections:
    """All open connections, and the number of refused ones."""

    def __init__(self, limits: ClientLimits, unlimited: Container[str] = ()) -> None:
        self.limits = limits.fitted(descriptor_limit())
        self.unlimited = unlimited  # addresses of proxies, behind which there are many clients
        self.refused = 0
        self._exhausted_at: float | None = None
        self._open: dict[int, Connection] = {}
        self._by_address: dict[str, dict[Connection, None]] = {}
        self._open_count = 0  # without those that are being closed

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, accepted: socket.socket, address: str) -> bool:
        """Count a new connection, which may close an idle one; False if there is no room."""
        where = network_of(address)
        if not self._room(where, address in self.unlimited):
            self.refused += 1
            return False
        connection = Connection(accepted, where, time.monotonic())
        self._open[accepted.fileno()] = connection
        self._by_address.setdefault(where, {})[connection] = None
        self._open_count += 1
        connection.end_after(self.limits.header_seconds)
        return True

    def of(self, descriptor: int) -> Connection | None:
        """The connection with this file descriptor."""
        return self._open.get(descriptor)

    def release(self, descriptor: int) -> None:
        """Stop counting a connection."""
        connection = self._open.pop(descriptor, None)
        if connection is not None:
            connection.go_on()
            self._forget(connection)

    def note_exhausted(self) -> None:
        """Lower the limits after the process ran out of file descriptors."""
        self._exhausted_at = time.monotonic()
        fewer = min(self.limits.connections or 1, max(1, self._open_count * 3 // 4))
        each = min(self.limits.per_address or 1, max(1, fewer // 2))
        self.limits = replace(self.limits, connections=fewer, per_address=each)
        for _ in range(AT_ONCE):
            heaviest = max(self._by_address.values(), key=len, default={})
            if self._open_count < fewer or not self._replace(heaviest):
                break

    def shortage(self) -> str | None:
        """A sentence if file descriptors ran out lately or are nearly used up, else None."""
        most = descriptor_limit()
        if self._exhausted_at is not None and time.monotonic() - self._exhausted_at < RECENT:
            return f"file descriptors ran out within the last minute; the limit is {most:,} (ulimit -n)"
        used = open_descriptors()
        if used is None or used < most - max(4, RESERVE_LEFT * most):
            return None
        return f"{used:,} of {most:,} file descriptors are open (ulimit -n)"

    def _room(self, where: str, unlimited: bool) -> bool:
        """Whether an address may have one more connection; closes an idle connection if necessary."""
        own = self._by_address.get(where, {})
        if not unlimited and len(own) >= (self.limits.per_address or 0):
            before = time.monotonic() - GRACE
            return self._replace([each for each in own if not each.reads_body and (each.served or each.since < before)])
        if self._open_count < (self.limits.connections or 0):
            return True
        heaviest = max(self._by_address.values(), key=len)
        return len(heaviest) > len(own) and self._replace(heaviest)

    def _replace(self, some: Iterable[Connection]) -> bool:
        """Close the connection on which the server has waited longest; False if the server is answering all of them."""
        waiting = [each for each in some if each.waits]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda each: (each.reads_body, each.since))
        self._forget(oldest)
        self.refused += 1
        oldest.end()
        return True

    def _forget(self, connection: Connection) -> None:
        own = self._by_address.get(connection.address, {})
        if connection in own:
            del own[connection]
            self._open_count -= 1
        if not own:
            self._by_address.pop(connection.address, None)


def open_descriptors() -> int | None:
    """The number of open file descriptors of this process; None if the system does not tell."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError as error:
        return descriptor_limit() if error.errno in EXHAUSTED else None


class _Accepted(socket.socket):
    """A socket that reports when its file descriptor is free."""

    connections: Connections

    def close(self) -> None:
        self.connections.release(self.fileno())
        super().close()


class Listener(socket.socket):
    """A listening socket that enforces the limits of connections."""

    def __init__(self, family: int, connections: Connections) -> None:
        # asyncio disables Nagle's algorithm for this protocol number
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self.connections = connections
        self.encrypted = False
        self._reserve: int | None = None
        self._refill()

    def listen(self, backlog: int = QUEUE, /) -> None:
        """Listen with a queue of at least `QUEUE` connections."""
        super().listen(max(QUEUE, backlog))

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection within the limits; BlockingIOError if there is none."""
        for _ in range(AT_ONCE):
            try:
                plain, address = super().accept()
            except OSError as error:
                if error.errno not in EXHAUSTED:
                    raise
                if not self._dropped_one():
                    raise BlockingIOError from None
                self.connections.note_exhausted()
                continue
            accepted = _Accepted(plain.family, plain.type, plain.proto, fileno=plain.detach())
            accepted.connections = self.connections
            if self.connections.admit(accepted, address[0]):
                return accepted, address
            with suppress(OSError):
                accepted.setblocking(False)
                if not self.encrypted:
                    accepted.send(BUSY)
            accepted.close()
        raise BlockingIOError

    def close(self) -> None:
        """Close the socket and the reserved descriptor."""
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None
        super().close()

    def _dropped_one(self) -> bool:
        """Accept a connection with the reserved descriptor and close it; False if none is waiting."""
        if self._reserve is None:
            time.sleep(PAUSE)
            self._refill()
            return False
        os.close(self._reserve)
        self._reserve = None
        try:
            super().accept()[0].close()
        except OSError:
            return False
        finally:
            self._refill()
        self.connections.refused += 1
        return True

    def _refill(self) -> None:
        with suppress(OSError):
            self._reserve = os.open(os.devnull, os.O_RDONLY)

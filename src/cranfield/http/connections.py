"""The connections of a server from accept to close, counted by address.

A connection counts from the moment it is accepted, before any TLS handshake, until its file descriptor is free. At the limit
of an address, its oldest connection that is idle makes room for the new one: a kept one, or one that has not sent its headers.
People share an address behind a router, and one of them could otherwise hold all of its connections. Where none is idle, the new
one is refused, which costs next to nothing. At the limit of the server, the address that has most loses the connection that has
waited longest for its client. What is being answered is never closed. When the process has no file descriptor left, one that is
held in reserve accepts the connection and closes it, since `asyncio` would otherwise log a traceback for each; from then on fewer
connections are allowed.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cranfield.http.limits import Limits, descriptor_limit, network_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

QUEUE = 1024  # connections that the system holds until they are accepted
AT_ONCE = 16  # connections accepted before other work has its turn
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
PAUSE = 0.005  # seconds, where not even the reserve is left: the socket stays readable and would be asked without end
GRACE = 0.2  # seconds in which a new connection may send its headers before it counts as idle
RECENT = 60.0  # seconds for which a shortage is reported
RESERVE_LEFT = 0.02  # part of the file descriptors below which a shortage is reported


def plain_answer(status: str, text: str) -> bytes:
    """A whole answer that ends the connection, for what no application sees."""
    head = "Connection: close\r\nRetry-After: 1\r\nContent-Type: text/plain; charset=utf-8"
    return f"HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


BUSY = plain_answer("503 Service Unavailable", "too many connections at once")


class Connection:
    """One open connection: whose it is, and whether the server waits for its client."""

    def __init__(self, accepted: socket.socket, address: str, since: float) -> None:
        self.socket, self.address = accepted, address
        self.since = since  # when the server began to wait
        self.waits = True
        self.reads_body = False
        self.served = False  # whether it has had an answer
        self.end: Callable[[], None] = self._shut_down  # until there is a protocol to do it
        self._timer: asyncio.TimerHandle | None = None

    def wait(self, *, for_body: bool = False) -> None:
        """The server waits for the client from now on."""
        self.waits, self.reads_body, self.since = True, for_body, time.monotonic()

    def answer(self) -> None:
        """The client waits for the server."""
        self.waits = self.reads_body = False

    def end_after(self, seconds: float) -> None:
        """End it when the time is over, unless `go_on` is called before; a time that runs already stays."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, lambda: self.end())

    def go_on(self) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _shut_down(self) -> None:
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class Connections:
    """All open connections, and how many were refused."""

    def __init__(self, limits: Limits, unlimited: Container[str] = ()) -> None:
        self.limits = limits.fitted(descriptor_limit())
        self.unlimited = unlimited  # addresses of proxies, behind which there are many clients
        self.refused = 0
        self._exhausted_at: float | None = None
        self._open: dict[int, Connection] = {}
        self._by_address: dict[str, dict[Connection, None]] = {}
        self._counted = 0  # those that are not being closed

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, accepted: socket.socket, address: str) -> bool:
        """Count a new connection, if need be in the place of another; False where there is no room."""
        where = network_of(address)
        if not self._room(where, address in self.unlimited):
            self.refused += 1
            return False
        connection = Connection(accepted, where, time.monotonic())
        self._open[accepted.fileno()] = connection
        self._by_address.setdefault(where, {})[connection] = None
        self._counted += 1
        connection.end_after(self.limits.header_seconds)
        return True

    def of(self, descriptor: int) -> Connection | None:
        """The connection with this file descriptor."""
        return self._open.get(descriptor)

    def release(self, descriptor: int) -> None:
        """Count a connection no longer."""
        connection = self._open.pop(descriptor, None)
        if connection is not None:
            connection.go_on()
            self._forget(connection)

    def note_exhausted(self) -> None:
        """A connection came when the process had no file descriptor left: allow fewer from now on."""
        self._exhausted_at = time.monotonic()
        fewer = min(self.limits.connections or 1, max(1, self._counted * 3 // 4))
        each = min(self.limits.per_address or 1, max(1, fewer // 2))
        self.limits = replace(self.limits, connections=fewer, per_address=each)
        for _ in range(AT_ONCE):
            heaviest = max(self._by_address.values(), key=len, default={})
            if self._counted < fewer or not self._replace(heaviest):
                break

    def shortage(self) -> str | None:
        """What to report if file descriptors ran out lately, or nearly have."""
        most = descriptor_limit()
        if self._exhausted_at is not None and time.monotonic() - self._exhausted_at < RECENT:
            return f"file descriptors ran out within the last minute; the limit is {most:,} (ulimit -n)"
        used = open_descriptors()
        if used is None or used < most - max(4, RESERVE_LEFT * most):
            return None
        return f"{used:,} of {most:,} file descriptors are open (ulimit -n)"

    def _room(self, where: str, unlimited: bool) -> bool:
        """Whether there is room for one more of an address, after closing another connection if need be."""
        own = self._by_address.get(where, {})
        if not unlimited and len(own) >= (self.limits.per_address or 0):
            before = time.monotonic() - GRACE
            return self._replace([each for each in own if not each.reads_body and (each.served or each.since < before)])
        if self._counted < (self.limits.connections or 0):
            return True
        heaviest = max(self._by_address.values(), key=len)
        return len(heaviest) > len(own) and self._replace(heaviest)

    def _replace(self, some: Iterable[Connection]) -> bool:
        """Close the one of these connections that has waited longest for its client; False where all are answered."""
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
            self._counted -= 1
        if not own:
            self._by_address.pop(connection.address, None)


def open_descriptors() -> int | None:
    """How many file descriptors this process has open; None where the system does not say."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError as error:
        return descriptor_limit() if error.errno in EXHAUSTED else None


class _Accepted(socket.socket):
    """A connection that says when its file descriptor is free."""

    connections: Connections

    def close(self) -> None:
        self.connections.release(self.fileno())
        super().close()


class Listener(socket.socket):
    """A socket that accepts within limits."""

    def __init__(self, family: int, connections: Connections) -> None:
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # by which asyncio knows to send at once
        self.connections = connections
        self.encrypted = False
        self._reserve: int | None = None
        self._refill()

    def listen(self, backlog: int = QUEUE, /) -> None:
        """Listen with the longest queue, whatever a server thinks."""
        super().listen(max(QUEUE, backlog))

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection within the limits; BlockingIOError where there is none."""
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
        """Close it and its reserve."""
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None
        super().close()

    def _dropped_one(self) -> bool:
        """Accept a connection with the descriptor in reserve, and close it; False where none waits."""
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

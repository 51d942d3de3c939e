"""How much of a server one client may take up: connections, time, and memory for bodies, by address.

Limits are counted by network address. A network of IPv6 counts as one address, since its owner has 2⁶⁴ of them.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from cranfield.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_CONNECTIONS = 4096
MOST_PER_ADDRESS = 256
RESERVE = 64  # file descriptors for everything but connections
UNLIMITED = 1 << 20  # file descriptors, where the system names no limit
MOST_HELD = 64_000_000  # bytes of bodies that are being read
SHARE = 4  # one address may hold this part of them


@dataclass(frozen=True)
class Limits:
    """What one server allows; None is worked out from the number of file descriptors that the process may open."""

    connections: int | None = None
    per_address: int | None = None
    header_seconds: float = 10.0  # from the connection, or a request's first byte, to the end of its headers
    body_seconds: float = 30.0  # for a whole body

    def fitted(self, descriptors: int) -> Limits:
        """The same limits with every number filled in.

        >>> Limits().fitted(256)
        Limits(connections=192, per_address=96, header_seconds=10.0, body_seconds=30.0)
        """
        room = max(8, descriptors - max(RESERVE, descriptors // 4))
        most = min(MOST_CONNECTIONS, room) if self.connections is None else self.connections
        each = min(MOST_PER_ADDRESS, max(1, most // 2)) if self.per_address is None else self.per_address
        return replace(self, connections=most, per_address=min(each, most))


def descriptor_limit() -> int:
    """How many files and connections this process may have open."""
    try:
        import resource
    except ImportError:  # Windows
        return UNLIMITED
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else min(soft, UNLIMITED)


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """An address as limits count it.

    >>> network_of("::ffff:10.0.0.1"), network_of("2001:db8::1")
    ('10.0.0.1', '2001:db8::/64')
    """
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(known, ipaddress.IPv6Address):
        mapped = known.ipv4_mapped
        return str(mapped or ipaddress.ip_network((known, 64), strict=False))
    return str(known)


class BodyMemory:
    """The bytes of bodies that are being read, by address: together, and for each a part, so that one cannot take it all."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self.most = most
        self.held = 0
        self._by_address: Counter[str] = Counter()

    @contextmanager
    def reading(self, address: str) -> Iterator[Reserved]:
        """Account for one body until it is dealt with."""
        reserved = Reserved(self, network_of(address))
        try:
            yield reserved
        finally:
            reserved.release()

    def take(self, address: str, size: int) -> None:
        """Count more bytes; UnavailableError where the address or all of them hold too much."""
        if self.held + size > self.most or self._by_address[address] + size > self.most // SHARE:
            raise UnavailableError(f"{self.held:,} bytes of other requests are being read already")
        self.held += size
        self._by_address[address] += size

    def give_back(self, address: str, size: int) -> None:
        """Count fewer bytes."""
        self.held -= size
        self._by_address[address] -= size
        if self._by_address[address] <= 0:
            del self._by_address[address]


class Reserved:
    """What one body holds of the memory."""

    def __init__(self, memory: BodyMemory, address: str) -> None:
        self._memory, self._address, self._size = memory, address, 0

    def take(self, size: int) -> None:
        """Hold more bytes."""
        self._memory.take(self._address, size)
        self._size += size

    def release(self) -> None:
        """Hold none."""
        self._memory.give_back(self._address, self._size)
        self._size = 0

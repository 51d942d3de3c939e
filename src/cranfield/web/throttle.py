"""How long somebody must wait before the next attempt to sign in: by account and by address.

A try counts as failed from the moment it may be made until it succeeds, so that a hundred at once are no way around. A
pair of account and address that has succeeded before is counted by itself: strangers who guess elsewhere, or a
neighbour behind the same address, keep nobody out who is known there. Refused tries count nothing and waits stay short:
nobody is locked out. Memory is bounded; when it is full, those with the fewest failures are forgotten, so that invented
names drive out each other and not the account under attack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cranfield.http.limits import network_of
from cranfield.store.accounts import LONGEST, key_of

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 10_000  # keys that are remembered of each kind


@dataclass
class Tries:
    """What is known of one key."""

    failed: int  # those under way included
    under_way: int
    last: float


class Counter:
    """Failures by key: `free` of them cost nothing, then waits double from a second up to the longest."""

    def __init__(self, free: int, longest: float, forget: float, most: int = MOST) -> None:
        self.free, self.longest, self.forget, self.most = free, longest, forget, most
        self.tries: dict[str, Tries] = {}

    def wait(self, key: str, now: float) -> float:
        """Seconds until the next try."""
        found = self._found(key, now)
        if found is None or found.failed < self.free:
            return 0.0
        delay = min(self.longest, 2.0 ** min(found.failed - self.free, 30))
        return max(0.0, found.last + delay - now)

    def begin(self, key: str, now: float) -> None:
        """A try is made."""
        found = self._found(key, now) or self._new(key, now)
        found.failed += 1
        found.under_way += 1
        found.last = now

    def fail(self, key: str, now: float) -> None:
        """A try has failed; one that was not begun is counted now."""
        found = self._found(key, now) or self._new(key, now)
        found.failed += not found.under_way
        found.under_way = max(0, found.under_way - 1)
        found.last = now

    def take_back(self, key: str) -> None:
        """A try has succeeded."""
        found = self.tries.get(key)
        if found is not None and found.under_way:
            found.failed -= 1
            found.under_way -= 1

    def clear(self, key: str) -> None:
        """Forget what failed."""
        self.tries.pop(key, None)

    def _found(self, key: str, now: float) -> Tries | None:
        found = self.tries.get(key)
        if found is not None and now - found.last > self.forget:
            del self.tries[key]
            return None
        return found

    def _new(self, key: str, now: float) -> Tries:
        if len(self.tries) >= self.most:
            kept = [(key, tries) for key, tries in self.tries.items() if now - tries.last <= self.forget]
            kept.sort(key=lambda each: (each[1].failed, each[1].last), reverse=True)
            self.tries = dict(kept[: self.most * 9 // 10])
        return self.tries.setdefault(key, Tries(0, 0, now))


class Throttle:
    """Waits by account and by address; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float], most: int = MOST) -> None:
        self.clock = clock
        self.most = most
        self.accounts = Counter(free=5, longest=60, forget=3600, most=most)
        self.addresses = Counter(free=50, longest=10, forget=900, most=most)
        self.known: dict[tuple[str, str], None] = {}  # pairs that have succeeded, the latest last

    def wait(self, account: str, address: str) -> float:
        """Seconds until a try; 0: it may be made now, and counts as failed until it succeeds."""
        (who, where), now = self._keys(account, address), self.clock()
        wait = self.accounts.wait(who, now)
        if (_account(account), where) not in self.known:
            wait = max(wait, self.addresses.wait(where, now))
        if wait <= 0:
            self.accounts.begin(who, now)
            self.addresses.begin(where, now)
        return wait

    def failed(self, account: str, address: str) -> None:
        """The try has failed; the wait runs from now."""
        who, where = self._keys(account, address)
        self.accounts.fail(who, self.clock())
        self.addresses.fail(where, self.clock())

    def succeeded(self, account: str, address: str) -> None:
        """The try has succeeded: nothing counts against the account any more, and the pair is known."""
        who, where = self._keys(account, address)
        self.accounts.clear(who)
        self.addresses.take_back(where)
        pair = _account(account), where
        self.known.pop(pair, None)
        self.known[pair] = None
        if len(self.known) > self.most:
            del self.known[next(iter(self.known))]

    def _keys(self, account: str, address: str) -> tuple[str, str]:
        """What an account's failures are counted under (the pair where it is known), and an address's."""
        who, where = _account(account), network_of(address)
        return f"{who} {where}" if (who, where) in self.known else who, where


def _account(name: str) -> str:
    """An account as it is counted; a name with a space is nobody's, and must not look like a pair."""
    return key_of(name.strip()[: LONGEST + 1]).replace(" ", "_")

"""Signing in: passwords hashed by argon2id, and the wait before the next attempt.

A hash takes 64 MiB and a fifth of a second of one core. Two are computed at a time, off the event loop; more than WAITING
requests are refused, so that a flood of attempts cannot stop the server. An unknown name takes as long as a known one.

The throttle counts failures by account and by address. An attempt counts as failed from its start until it succeeds, so
that many attempts at the same time do not evade the limit. A pair of account and address that has succeeded before is
counted separately: failures of strangers, from other addresses or behind the same one, do not delay people who have
signed in there. Refused attempts do not count and waits stay short: nobody is locked out. Memory is bounded. When it is
full, the keys with the fewest failures are dropped, so that invented names displace each other and not the account
under attack.
"""

from __future__ import annotations

import asyncio
import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from cranfield.base.errors import DataError
from cranfield.base.optional_packages import missing
from cranfield.http.connections import network_of
from cranfield.http.refusal import Refusal
from cranfield.store.accounts import LONGEST, key_of

if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")

SHORTEST = 8  # characters
LONGEST_PASSWORD = 1000  # bytes
TOGETHER = 2  # hashes computed at a time
WAITING = 64  # requests, those being computed included: a class that signs in at once
MEMORY = 64 * 1024  # KiB, RFC 9106's second choice, in one thread
ROUNDS = 3


class Passwords:
    """Hashes and checks passwords for a server."""

    def __init__(self, memory: int = MEMORY, rounds: int = ROUNDS, waiting: int = WAITING) -> None:
        try:
            from argon2 import PasswordHasher
        except ImportError as error:
            raise missing("argon2", "accounts need", error) from None
        self.hasher = PasswordHasher(time_cost=rounds, memory_cost=memory, parallelism=1)
        self.nobody = f"$argon2id$v=19$m={memory},t={rounds},p=1${'A' * 22}${'A' * 43}"  # the hash of no known password
        self.waiting = waiting
        self.pending = 0
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(TOGETHER, "cranfield-password")

    async def hash(self, password: str) -> str:
        """The hash of a new password; DataError if the password is too short or too long."""
        refuse(password)
        return await self._in_thread(lambda: self._hash(password))

    def _hash(self, password: str) -> str:
        from argon2.exceptions import HashingError

        try:
            return self.hasher.hash(_bytes(password))
        except HashingError:
            raise _short_of_memory() from None

    async def check(self, hash: str | None, password: str) -> bool:
        """Whether a password matches a hash; for a missing hash it takes as long, and the answer is no."""
        checkable = hash is not None and len(_bytes(password)) <= LONGEST_PASSWORD
        return await self._in_thread(
            lambda: self._check(hash or "", password) if checkable else self._check(self.nobody, "")
        )

    def _check(self, hash: str, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError

        try:
            return self.hasher.verify(hash, _bytes(password)) and hash != self.nobody
        except (VerifyMismatchError, InvalidHashError):
            return False
        except VerificationError:
            raise _short_of_memory() from None

    def outdated(self, hash: str) -> bool:
        """Whether a hash was made with older settings: hash the password again at the next sign-in."""
        return self.hasher.check_needs_rehash(hash)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Do some work in a thread; Refusal if too many requests wait already."""
        with self._lock:
            if self.pending >= self.waiting:
                message = "too many people sign in at the same time"
                raise Refusal(message, 503, advice="Try again in a few seconds.", wait=self.waiting * 0.2 / TOGETHER)
            self.pending += 1
        future = self._threads.submit(work)
        future.add_done_callback(self._done)  # also if the browser has gone
        return await asyncio.wrap_future(future)

    def _done(self, _: object) -> None:
        with self._lock:
            self.pending -= 1

    def close(self) -> None:
        """End the threads; waiting requests are dropped."""
        self._threads.shutdown(cancel_futures=True)


def refuse(password: str) -> None:
    """Raise DataError if a new password is too short or too long; everything else is allowed."""
    length, size = len(_normal(password)), len(_bytes(password))
    if length < SHORTEST:
        raise DataError(f"expected a password of at least {SHORTEST} characters, found {length}")
    if size > LONGEST_PASSWORD:
        raise DataError(f"expected a password of at most {LONGEST_PASSWORD} bytes, found {size}")


def _normal(password: str) -> str:
    """The password in one Unicode form, however the keyboard composes its letters."""
    return unicodedata.normalize("NFC", password)


def _bytes(password: str) -> bytes:
    return _normal(password).encode("utf-8", "surrogatepass")


def _short_of_memory() -> Refusal:
    return Refusal("there is not enough memory to check a password", 503, advice="Try again in a few seconds.", wait=5)


MOST = 10_000  # keys in memory, per kind


@dataclass
class Attempts:
    """The attempts counted under one key."""

    failed: int  # including those under way
    under_way: int
    last: float


class FailureCounter:
    """Failures by key: the first `free` ones cost nothing, then waits double from one second up to the longest."""

    def __init__(self, free: int, longest: float, forget: float, most: int = MOST) -> None:
        self.free, self.longest, self.forget, self.most = free, longest, forget, most
        self.attempts: dict[str, Attempts] = {}

    def wait(self, key: str, now: float) -> float:
        """Seconds until the next attempt."""
        attempts = self._current(key, now)
        if attempts is None or attempts.failed < self.free:
            return 0.0
        delay = min(self.longest, 2.0 ** min(attempts.failed - self.free, 30))
        return max(0.0, attempts.last + delay - now)

    def begin(self, key: str, now: float) -> None:
        """Count an attempt that starts now."""
        attempts = self._current(key, now) or self._new(key, now)
        attempts.failed += 1
        attempts.under_way += 1
        attempts.last = now

    def fail(self, key: str, now: float) -> None:
        """Record that an attempt failed; count it, unless `begin` has counted it already."""
        attempts = self._current(key, now) or self._new(key, now)
        attempts.failed += not attempts.under_way
        attempts.under_way = max(0, attempts.under_way - 1)
        attempts.last = now

    def take_back(self, key: str) -> None:
        """Remove a successful attempt from the count."""
        attempts = self.attempts.get(key)
        if attempts is not None and attempts.under_way:
            attempts.failed -= 1
            attempts.under_way -= 1

    def clear(self, key: str) -> None:
        """Drop all failures of a key."""
        self.attempts.pop(key, None)

    def _current(self, key: str, now: float) -> Attempts | None:
        attempts = self.attempts.get(key)
        if attempts is not None and now - attempts.last > self.forget:
            del self.attempts[key]
            return None
        return attempts

    def _new(self, key: str, now: float) -> Attempts:
        if len(self.attempts) >= self.most:
            recent = [(key, each) for key, each in self.attempts.items() if now - each.last <= self.forget]
            recent.sort(key=lambda each: (each[1].failed, each[1].last), reverse=True)
            self.attempts = dict(recent[: self.most * 9 // 10])
        return self.attempts.setdefault(key, Attempts(0, 0, now))


class SignInThrottle:
    """The waits before attempts to sign in, by account and by address; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float], most: int = MOST) -> None:
        self.clock = clock
        self.most = most
        self.accounts = FailureCounter(free=5, longest=60, forget=3600, most=most)
        self.addresses = FailureCounter(free=50, longest=10, forget=900, most=most)
        self.trusted: dict[tuple[str, str], None] = {}  # pairs that have succeeded, the latest last

    def wait(self, account: str, address: str) -> float:
        """Seconds until an attempt is allowed; 0: it is allowed now, and counts as failed until it succeeds."""
        (who, where), now = self._keys(account, address), self.clock()
        wait = self.accounts.wait(who, now)
        if (_account(account), where) not in self.trusted:
            wait = max(wait, self.addresses.wait(where, now))
        if wait <= 0:
            self.accounts.begin(who, now)
            self.addresses.begin(where, now)
        return wait

    def failed(self, account: str, address: str) -> None:
        """Note that the attempt has failed; the wait runs from now."""
        who, where = self._keys(account, address)
        self.accounts.fail(who, self.clock())
        self.addresses.fail(where, self.clock())

    def succeeded(self, account: str, address: str) -> None:
        """Note that the attempt has succeeded: drop the failures of the account, and trust the pair."""
        who, where = self._keys(account, address)
        self.accounts.clear(who)
        self.addresses.take_back(where)
        pair = _account(account), where
        self.trusted.pop(pair, None)
        self.trusted[pair] = None
        if len(self.trusted) > self.most:
            del self.trusted[next(iter(self.trusted))]

    def _keys(self, account: str, address: str) -> tuple[str, str]:
        """The keys under which failures are counted: the account (or the pair if it is trusted) and the address."""
        who, where = _account(account), network_of(address)
        return f"{who} {where}" if (who, where) in self.trusted else who, where


def _account(name: str) -> str:
    """The key of an account; spaces are replaced, so that no name equals the key of a pair."""
    return key_of(name.strip()[: LONGEST + 1]).replace(" ", "_")

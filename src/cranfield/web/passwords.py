"""Passwords, hashed by argon2id off the event loop, two at a time.

Each takes 64 MiB and a fifth of a second of one core: what makes guessing dear would make a server stop if anybody could
ask for a hundred at once. More than WAITING are therefore refused. A name that does not exist takes as long as one that does.
"""

from __future__ import annotations

import asyncio
import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from cranfield.errors import DataError
from cranfield.extras import missing
from cranfield.http.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

SHORTEST = 8  # characters
LONGEST = 1000  # bytes
TOGETHER = 2
WAITING = 64  # those at work included: a class that signs in at once
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
        self.nobody = f"$argon2id$v=19$m={memory},t={rounds},p=1${'A' * 22}${'A' * 43}"  # of no password that is known
        self.waiting = waiting
        self.asked = 0
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(TOGETHER, "cranfield-password")

    async def hash(self, password: str) -> str:
        """A hash to keep; a password that is too short or too long is refused."""
        refuse(password)
        return await self._apart(lambda: self._hash(password))

    def _hash(self, password: str) -> str:
        from argon2.exceptions import HashingError

        try:
            return self.hasher.hash(_bytes(password))
        except HashingError:
            raise _short_of_memory() from None

    async def check(self, hash: str | None, password: str) -> bool:
        """Whether a password is the one of a hash; no hash takes as long, and is nobody's."""
        known = hash is not None and len(_bytes(password)) <= LONGEST
        return await self._apart(lambda: self._check(hash or "", password) if known else self._check(self.nobody, ""))

    def _check(self, hash: str, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError

        try:
            return self.hasher.verify(hash, _bytes(password)) and hash != self.nobody
        except (VerifyMismatchError, InvalidHashError):
            return False
        except VerificationError:
            raise _short_of_memory() from None

    def outdated(self, hash: str) -> bool:
        """Whether a hash was made by other settings than are used now: hash the password anew when it is at hand."""
        return self.hasher.check_needs_rehash(hash)

    async def _apart(self, work: Callable[[], T]) -> T:
        """Do some work in a thread, unless too much waits already."""
        with self._lock:
            if self.asked >= self.waiting:
                told = "too many people sign in at the same time"
                raise Refusal(told, 503, advice="Try again in a few seconds.", wait=self.waiting * 0.2 / TOGETHER)
            self.asked += 1
        future = self._threads.submit(work)
        future.add_done_callback(self._done)  # also of one whose browser has gone
        return await asyncio.wrap_future(future)

    def _done(self, _: object) -> None:
        with self._lock:
            self.asked -= 1

    def close(self) -> None:
        """End the threads; what waits is given up."""
        self._threads.shutdown(cancel_futures=True)


def refuse(password: str) -> None:
    """Refuse a new password that is too short to be one or too long to be typed; everything else is allowed."""
    length, size = len(_normal(password)), len(_bytes(password))
    if length < SHORTEST:
        raise DataError(f"expected a password of at least {SHORTEST} characters, found {length}")
    if size > LONGEST:
        raise DataError(f"expected a password of at most {LONGEST} bytes, found {size}")


def _normal(password: str) -> str:
    """The same password, however a keyboard composes its letters."""
    return unicodedata.normalize("NFC", password)


def _bytes(password: str) -> bytes:
    return _normal(password).encode("utf-8", "surrogatepass")


def _short_of_memory() -> Refusal:
    return Refusal("there is not enough memory to check a password", 503, advice="Try again in a few seconds.", wait=5)

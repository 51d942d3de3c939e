"""Tokens of the applications that may call a service, one each; the file holds only their hashes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from typing import TYPE_CHECKING

from cranfield.base.errors import ConventionError, DataError
from cranfield.experiments.log_files import FOLDER, replace_file
from cranfield.formats.streams import PRIVATE, read_secret

if TYPE_CHECKING:
    from collections.abc import Callable

FILE = "applications.json"
NAME = re.compile(r"[\w.-]{1,100}")
CHECK_INTERVAL = 1.0  # seconds between checks of the file


class ApplicationTokens:
    """The applications' names and token hashes, in a file of the log that only its owner can read."""

    def __init__(self, log: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.log = log
        self.path = os.path.join(log, FILE)
        self._clock = clock
        self._checked_at = -CHECK_INTERVAL
        self._changed: tuple[int, int] | None = None
        self._hashes: dict[str, str] = {}  # names by hash

    def new(self, name: str) -> str:
        """Make a token for an application; its earlier token becomes void."""
        if not NAME.fullmatch(name):
            raise ConventionError(
                f"expected a name of letters, digits, dots and hyphens for an application, found {name!r:.60}"
            )
        token = secrets.token_urlsafe(32)
        self._write({**self._names(), name: _hash(token)})
        return token

    def drop(self, name: str) -> None:
        """Void the token of an application."""
        names = self._names()
        if name not in names:
            raise DataError(f"{self.path}: no application {name!r:.60}; there is {', '.join(names) or 'none'}")
        del names[name]
        self._write(names)

    def names(self) -> list[str]:
        """Every application that has a token, in the order of the file."""
        return list(self._names())

    def of(self, token: str) -> str | None:
        """The application that a token belongs to; None if unknown. A changed file is read again."""
        if self._clock() - self._checked_at >= CHECK_INTERVAL:
            self._look()
            self._checked_at = self._clock()
        return self._hashes.get(_hash(token))

    def _look(self) -> None:
        try:
            status = os.stat(self.path)
        except OSError:
            self._changed, self._hashes = None, {}
            return
        changed = (status.st_mtime_ns, status.st_ino)
        if changed != self._changed:
            self._hashes = {token_hash: name for name, token_hash in self._names().items()}
            self._changed = changed

    def _names(self) -> dict[str, str]:
        if not os.path.exists(self.path):
            return {}
        text = read_secret(self.path)
        try:
            names = json.loads(text)
        except (ValueError, RecursionError):
            names = None
        if not isinstance(names, dict) or not all(isinstance(each, str) for each in names.values()):
            raise DataError(
                f"{self.path}: expected hashes of tokens by application; make new ones with --new-token NAME"
            )
        return names

    def _write(self, names: dict[str, str]) -> None:
        os.makedirs(os.path.join(self.log, FOLDER), exist_ok=True)  # this folder marks an event log
        replace_file(self.path, json.dumps(names, indent=1).encode() + b"\n", PRIVATE)


def _hash(token: str) -> str:
    """The hash of a token. It has 256 random bits, which nobody can guess, so a plain hash suffices."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()

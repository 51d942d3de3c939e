"""The applications that may call a service, each with a token of its own, of which only a hash is kept."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from typing import TYPE_CHECKING

from cranfield.errors import ConventionError, DataError
from cranfield.formats.secrets import PRIVATE, read_secret
from cranfield.online.segments import FOLDER, replace_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

FILE = "applications.json"
NAME = re.compile(r"[\w.-]{1,100}")
LOOKED = 1.0  # seconds between looks at the file


class Applications:
    """Names and hashes of tokens in a file of the log that only its owner can read."""

    def __init__(self, log: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.log = log
        self.path = os.path.join(log, FILE)
        self._clock = clock
        self._looked = -LOOKED
        self._changed: tuple[int, int] | None = None
        self._hashes: dict[str, str] = {}  # names by hash

    def new(self, name: str) -> str:
        """A token for an application; one that it had before is known no longer."""
        if not NAME.fullmatch(name):
            raise ConventionError(
                f"expected a name of letters, digits, dots and hyphens for an application, found {name!r:.60}"
            )
        token = secrets.token_urlsafe(32)
        self._write({**self._names(), name: _hash(token)})
        return token

    def drop(self, name: str) -> None:
        """Know the token of an application no longer."""
        names = self._names()
        if name not in names:
            raise DataError(f"{self.path}: no application {name!r:.60}; there is {', '.join(names) or 'none'}")
        del names[name]
        self._write(names)

    def names(self) -> list[str]:
        """The applications there are."""
        return list(self._names())

    def of(self, token: str) -> str | None:
        """The application whose token this is. The file is read again when it has changed."""
        if self._clock() - self._looked >= LOOKED:
            self._look()
            self._looked = self._clock()
        return self._hashes.get(_hash(token))

    def _look(self) -> None:
        try:
            found = os.stat(self.path)
        except OSError:
            self._changed, self._hashes = None, {}
            return
        changed = (found.st_mtime_ns, found.st_ino)
        if changed != self._changed:
            self._hashes = {kept: name for name, kept in self._names().items()}
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
        os.makedirs(os.path.join(self.log, FOLDER), exist_ok=True)  # which makes it a log

        def write(file: BinaryIO) -> None:
            os.fchmod(file.fileno(), PRIVATE)
            file.write(json.dumps(names, indent=1).encode() + b"\n")

        replace_file(self.path, write)


def _hash(token: str) -> str:
    """Of 256 random bits: there is nothing to guess, so that a plain hash does."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()

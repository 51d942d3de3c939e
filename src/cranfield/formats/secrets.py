"""Files that hold a key: read only where nobody but their owner can read them, and made so."""

from __future__ import annotations

import os
import shlex
import stat

from cranfield.errors import DataError
from cranfield.formats.streams import read_small, reason

PRIVATE = 0o600


def read_secret(path: str | os.PathLike[str]) -> bytes:
    """What a file holds that only its owner may read; refused where others can."""
    where = os.fspath(path)
    try:
        with open(where, "rb") as file:
            refuse_readable(where, os.fstat(file.fileno()))
            return read_small(file, where)
    except OSError as error:
        raise DataError(f"{where}: {reason(error)}") from error


def refuse_readable(path: str | os.PathLike[str], about: os.stat_result | None = None) -> None:
    """Stop where others than the owner can read or change a file that holds a key.

    One that belongs to root, and not to who reads it, may be read by its group: so do systems hand keys to services.
    """
    if os.name != "posix":
        return
    where = os.fspath(path)
    try:
        about = about or os.stat(where)
    except OSError as error:
        raise DataError(f"{where}: {reason(error)}") from error
    handed = about.st_uid == 0 and os.geteuid() != 0
    if stat.S_IMODE(about.st_mode) & (0o037 if handed else 0o077):
        raise DataError(f"{where}: others can read it; chmod 600 {shlex.quote(where)}")

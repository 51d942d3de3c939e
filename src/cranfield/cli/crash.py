"""A crash: an exception that nobody foresaw becomes one sentence, a file with the details, and an exit code of its own.

A crash is a mistake of cranfield, never a verdict: a gate that crashed must not look like a gate that failed.
"""

from __future__ import annotations

import os
import sys

from cranfield import __version__
from cranfield.base.parameters import masked, shortened

EXIT_CODE = 70  # EX_SOFTWARE of sysexits.h
SETTING = "CRANFIELD_TRACEBACK"  # set to 1, it prints the traceback as well


def sentence(error: BaseException) -> str:
    """Write the details of a crash to a file, and say in one sentence what happened and where they are."""
    text = details(error)
    if os.environ.get(SETTING, "") not in ("", "0"):
        print(text, file=sys.stderr)
    message = " ".join(shortened(error).split())
    kind = f"{type(error).__name__}: {message}" if message else type(error).__name__
    path = _write(text)
    where = f"details are in {path}" if path else f"{SETTING}=1 prints the details"
    return f"a mistake in cranfield, not a verdict ({kind}); {where}"


def details(error: BaseException) -> str:
    """What a bug report needs: version, command line and traceback, without passwords."""
    import platform
    import shlex
    import traceback

    facts = {
        "cranfield": __version__,
        "Python": sys.version.split(maxsplit=1)[0],
        "platform": platform.platform(),
        "command": shlex.join(sys.argv),
    }
    lines = [*(f"{name}: {value}" for name, value in facts.items()), "", *traceback.format_exception(error)]
    return masked("\n".join(line.rstrip("\n") for line in lines)) + "\n"


def _write(text: str) -> str | None:
    """Write a text to a new temporary file that only its owner can read; None if it cannot be written."""
    import tempfile

    try:
        number, path = tempfile.mkstemp(prefix="cranfield-crash-", suffix=".txt")  # mode 0600
        with open(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return None
    return path

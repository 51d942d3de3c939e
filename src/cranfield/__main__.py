"""`python -m cranfield` and the script `cranfield` are the command line.

Ctrl-C ends the process at once while the command line is still being loaded: nothing has been done that could be lost.
"""

from __future__ import annotations

import os
import signal
from typing import NoReturn

INTERRUPTED = 130


def program() -> NoReturn:
    """Load the command line, and run it."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else somebody wants it ignored
    if usual:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from cranfield import cli

    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.program()


if __name__ == "__main__":
    program()

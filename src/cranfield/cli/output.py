"""Where output goes: data to standard output or a file, everything else to standard error.

Text is written as UTF-8 whatever the locale, and bytes of ids that are no UTF-8 go out as they came in.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

COLOURS = {"head": {"bold": True}, "best": {"fg": "green", "bold": True}, "dim": {"dim": True}}


def put(text: str, path: str | None = None) -> None:
    """Write the command's data, ended by a newline."""
    raw = (text if text.endswith("\n") else text + "\n").encode("utf-8", "surrogateescape")
    if path is not None and path != "-":
        from cranfield.formats.streams import write_bytes

        write_bytes(path, [raw])
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()


def note(text: str) -> None:
    """Tell the user something that is not data."""
    click.echo(text, err=True)


def style(path: str | None = None) -> Callable[[str, str], str] | None:
    """How to colour what goes to standard output: only on a terminal, and not where NO_COLOR is set."""
    plain = path is not None or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    if plain or not sys.stdout.isatty():
        return None
    return lambda kind, text: click.style(text, **COLOURS[kind])  # type: ignore[arg-type]


def screen_width(path: str | None = None) -> int | None:
    """How wide a line may be: a terminal has an edge, a file or a pipe has none."""
    if path is not None or not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns

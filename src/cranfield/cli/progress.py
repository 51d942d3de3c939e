"""A progress bar for anything that takes more than a second, on a terminal only.

The bar is one line of standard error, and it is gone when the command prints its answer. A timer draws it first, so
that a command which ends within a second draws nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE = 1.0  # seconds before the bar is drawn
PAUSE = 0.1  # seconds from one drawing to the next
CELLS = 40  # width of the bar itself
ERASE_LINE = "\r\x1b[K"


@contextmanager
def progress(
    what: str, timer: Callable[[float, Callable[[], None]], threading.Timer] = threading.Timer
) -> Iterator[Callable[[int, int | None], None] | None]:
    """Yield a function that takes the steps done and the steps in all; None where no bar can be drawn."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    bar = _Bar(what)
    waiting = timer(PATIENCE, bar.start)
    waiting.daemon = True
    waiting.start()
    try:
        yield bar.update
    finally:
        waiting.cancel()
        waiting.join()
        bar.stop()


class _Bar:
    """One line: what is counted, a bar if the total is known, the count, and the time so far."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.done = 0
        self.total: int | None = None
        self.began = time.monotonic()
        self.last_drawing: float | None = None  # None until the bar is visible
        self.lock = threading.Lock()  # the timer and several workers may draw at once

    def start(self) -> None:
        """Make the bar visible."""
        with self.lock:
            self._draw()

    def update(self, done: int, total: int | None) -> None:
        """Count; draw again if the bar is visible and was not drawn just now."""
        with self.lock:
            self.done, self.total = done, total
            if self.last_drawing is not None and (time.monotonic() - self.last_drawing >= PAUSE or done == total):
                self._draw()

    def stop(self) -> None:
        """Show the last count, and take the bar away."""
        with self.lock:
            if self.last_drawing is not None:
                self._draw()
                sys.stderr.write(ERASE_LINE)
                sys.stderr.flush()

    def _draw(self) -> None:
        self.last_drawing = time.monotonic()
        minutes, seconds = divmod(int(self.last_drawing - self.began), 60)
        count = f"{self.done}/{self.total}" if self.total else str(self.done)
        line = " ".join(filter(None, (self.what, self._cells(), count, f"{minutes}:{seconds:02}")))
        from shutil import get_terminal_size  # it imports what a small command does without

        sys.stderr.write(ERASE_LINE + line[: get_terminal_size().columns - 1])
        sys.stderr.flush()

    def _cells(self) -> str:
        """The bar: full cells for steps that are done; nothing where the total is unknown."""
        if not self.total:
            return ""
        full = round(CELLS * min(self.done / self.total, 1))
        try:
            "━".encode(sys.stderr.encoding or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return f"[{'#' * full}{' ' * (CELLS - full)}]"
        return "━" * full + "─" * (CELLS - full)

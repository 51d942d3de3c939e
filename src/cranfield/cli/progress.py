"""A progress bar on anything that takes more than a second, on a terminal only.

The bar is drawn by rich, which costs more to import than a small evaluation takes: a timer loads it
when the second is over, and most commands never get there.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


PATIENCE = 1.0  # seconds


@contextmanager
def progress(
    what: str, timer: Callable[[float, Callable[[], None]], threading.Timer] = threading.Timer
) -> Iterator[Callable[[int, int | None], None] | None]:
    """A function to tell how many are done of how many; None where nobody is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(what)
    waiting = timer(PATIENCE, bar.start)
    waiting.daemon = True
    waiting.start()
    try:
        yield bar.tell
    finally:
        waiting.cancel()
        waiting.join()
        bar.stop()


class _Bar:
    def __init__(self, what: str) -> None:
        self.what = what
        self.done = 0
        self.total: int | None = None
        self.drawn: Any = None
        self.task: Any = None

    def start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        drawn = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = drawn.add_task(self.what, total=self.total, completed=self.done)
        drawn.start()
        self.drawn = drawn

    def tell(self, done: int, total: int | None) -> None:
        self.done, self.total = done, total
        if self.drawn is not None:
            self.drawn.update(self.task, completed=done, total=total)

    def stop(self) -> None:
        if self.drawn is not None:
            self.drawn.update(self.task, completed=self.done, total=self.total)  # told while the bar was being drawn
            self.drawn.stop()

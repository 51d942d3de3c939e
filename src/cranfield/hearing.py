"""What happens on the way, told to whoever listens: files that are written, and what there is to know of what is read.

It imports nothing, so that a command can listen before it loads anything.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_written: list[dict[str, None]] = []
_listeners: list[Callable[[str], None]] = []


@contextmanager
def written_files() -> Iterator[dict[str, None]]:
    """The files and folders that are written meanwhile, by the names they were given, in order."""
    _written.append({})
    try:
        yield _written[-1]
    finally:
        _written.pop()


def tell_written(path: str) -> None:
    """Let whoever listens know that a file is there, whole."""
    for files in _written:
        files[path] = None


@contextmanager
def heard(tell: Callable[[str], None]) -> Iterator[None]:
    """Tell what there is to know of what is read meanwhile, each sentence once."""
    told: set[str] = set()

    def once(sentence: str) -> None:
        if sentence not in told:
            told.add(sentence)
            tell(sentence)

    _listeners.append(once)
    try:
        yield
    finally:
        _listeners.remove(once)


def say(sentences: Iterable[str]) -> None:
    """Let whoever listens know."""
    for sentence in sentences:
        for tell in _listeners:
            tell(sentence)

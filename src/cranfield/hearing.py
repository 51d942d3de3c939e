"""What happens on the way, told to whoever listens: files that are written, options that are used, notes on what is read.

It imports nothing, so that a command can listen before it loads anything.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_written: list[dict[str, None]] = []
_listeners: list[Callable[[str], None]] = []
_used: list[set[str]] = []
_checks: list[Callable[[], None]] = []


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
def used_options() -> Iterator[set[str]]:
    """The names of the options that change how something is read meanwhile, as far as only reading can tell."""
    names: set[str] = set()
    _used.append(names)
    try:
        yield names
    finally:
        _used[:] = [each for each in _used if each is not names]


def tell_used(*names: str) -> None:
    """Let whoever listens know that these options were used."""
    for known in _used:
        known.update(names)


@contextmanager
def checked_before_writing(check: Callable[[], None]) -> Iterator[None]:
    """Call `check` before any answer is written meanwhile; it may raise, and nothing is written then."""
    _checks.append(check)
    try:
        yield
    finally:
        _checks.remove(check)


def tell_writing() -> None:
    """Let whoever listens know that all is read, and that an answer is about to be written."""
    for check in _checks:
        check()


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

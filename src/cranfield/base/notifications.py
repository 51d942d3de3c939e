"""Notifications while a command runs: files written, options used, notes on the input.

This module imports nothing, so that a command can subscribe before it loads anything.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

Subscriber = TypeVar("Subscriber")
Item = TypeVar("Item")
_file_lists: list[dict[str, None]] = []
_listeners: list[Callable[[str], None]] = []
_used: list[set[str]] = []
_progress: list[Callable[[int, int | None], None]] = []
_checks: list[Callable[[], None]] = []


@contextmanager
def _subscribed(subscribers: list[Subscriber], one: Subscriber) -> Iterator[Subscriber]:
    """Add a subscriber to a list for the duration of the block."""
    subscribers.append(one)
    try:
        yield one
    finally:
        subscribers[:] = [each for each in subscribers if each is not one]


def written_files() -> AbstractContextManager[dict[str, None]]:
    """Collect the files and folders that are written in the block, in order, by the names that callers gave them."""
    return _subscribed(_file_lists, {})


def tell_written(path: str) -> None:
    """Report that a file was written completely."""
    for files in _file_lists:
        files[path] = None


def used_options() -> AbstractContextManager[set[str]]:
    """Collect the names of the options that took effect while input was read in the block."""
    return _subscribed(_used, set())


def tell_used(*names: str) -> None:
    """Report that these options took effect."""
    for names_used in _used:
        names_used.update(names)


def checked_before_writing(check: Callable[[], None]) -> AbstractContextManager[object]:
    """Call `check` before any output of the block is written; an error in it prevents the writing."""
    return _subscribed(_checks, check)


def tell_writing() -> None:
    """Report that all input was read and that output is about to be written."""
    for check in _checks:
        check()


def notes_to(tell: Callable[[str], None]) -> AbstractContextManager[object]:
    """Pass the notes on input that is read in the block to a function, each sentence once."""
    sentences: set[str] = set()

    def once(sentence: str) -> None:
        if sentence not in sentences:
            sentences.add(sentence)
            tell(sentence)

    return _subscribed(_listeners, once)


def progress_to(tell: Callable[[int, int | None], None]) -> AbstractContextManager[object]:
    """Pass the progress of computations in the block to a function, as steps done and steps in all."""
    return _subscribed(_progress, tell)


def tell_progress(done: int, total: int | None) -> None:
    """Report how many steps of a computation are done."""
    for tell in _progress:
        tell(done, total)


def stepwise(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items of a computation, and report the progress after each."""
    for done, item in enumerate(items):
        tell_progress(done, len(items))
        yield item
    tell_progress(len(items), len(items))


def say(sentences: Iterable[str]) -> None:
    """Send notes to the subscribed functions."""
    for sentence in sentences:
        for tell in _listeners:
            tell(sentence)

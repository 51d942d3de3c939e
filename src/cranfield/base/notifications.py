"""Notifications while a command runs: files written, options used, notes on the input.

This module imports nothing, so that a command can subscribe before it loads anything.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_file_lists: list[dict[str, None]] = []
_listeners: list[Callable[[str], None]] = []
_used: list[set[str]] = []
_checks: list[Callable[[], None]] = []


@contextmanager
def written_files() -> Iterator[dict[str, None]]:
    """Collect the files and folders that are written in the block, in order, by the names that callers gave them."""
    _file_lists.append({})
    try:
        yield _file_lists[-1]
    finally:
        _file_lists.pop()


def tell_written(path: str) -> None:
    """Report that a file was written completely."""
    for files in _file_lists:
        files[path] = None


@contextmanager
def used_options() -> Iterator[set[str]]:
    """Collect the names of the options that took effect while input was read in the block."""
    names: set[str] = set()
    _used.append(names)
    try:
        yield names
    finally:
        _used[:] = [each for each in _used if each is not names]


def tell_used(*names: str) -> None:
    """Report that these options took effect."""
    for names_used in _used:
        names_used.update(names)


@contextmanager
def checked_before_writing(check: Callable[[], None]) -> Iterator[None]:
    """Call `check` before any output of the block is written; an error in it prevents the writing."""
    _checks.append(check)
    try:
        yield
    finally:
        _checks.remove(check)


def tell_writing() -> None:
    """Report that all input was read and that output is about to be written."""
    for check in _checks:
        check()


@contextmanager
def notes_to(tell: Callable[[str], None]) -> Iterator[None]:
    """Pass the notes on input that is read in the block to a function, each sentence once."""
    sentences: set[str] = set()

    def once(sentence: str) -> None:
        if sentence not in sentences:
            sentences.add(sentence)
            tell(sentence)

    _listeners.append(once)
    try:
        yield
    finally:
        _listeners.remove(once)


def say(sentences: Iterable[str]) -> None:
    """Send notes to the subscribed functions."""
    for sentence in sentences:
        for tell in _listeners:
            tell(sentence)

"""Threads that work through a queue: errors, stops and Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

import pytest

from cranfield.base.worker_threads import work_through

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, as in a program that nobody runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_every_item_is_worked_on_once(threads):
    todo, seen = iter(range(1, 100)), []
    work_through(lambda: next(todo, None), seen.append, threads)
    assert sorted(seen) == list(range(1, 100))


def test_the_error_of_the_earliest_item_is_raised_and_no_other_item_is_taken():
    todo, failed = iter(range(1, 1000)), threading.Event()

    def work(item: int) -> None:
        if item == 2:
            failed.set()
        if item == 1:
            assert failed.wait(10)
            time.sleep(0.01)
        raise ValueError(item)

    with pytest.raises(ValueError, match="^1$"):
        work_through(lambda: next(todo, None), work, 2)
    assert next(todo) < 1000


def test_a_stop_leaves_the_rest_and_an_item_may_come_back():
    waiting, seen = deque([1, 2, 3]), []

    def work(item: int) -> None:
        seen.append(item)
        if len(seen) < 5:
            waiting.append(item)

    work_through(lambda: waiting.popleft() if waiting else None, work, 1, stopped=lambda: len(seen) == 6)
    assert seen == [1, 2, 3, 1, 2, 3]
    assert list(waiting) == [1]


def test_an_interrupt_stops_the_other_threads(ctrl_c):
    todo, started = iter(range(1, 1001)), []

    def work(item: int) -> None:
        started.append(item)
        if item == 3:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        work_through(lambda: next(todo, None), work, 2)
    time.sleep(0.05)
    seen = len(started)
    time.sleep(0.05)
    assert len(started) == seen < 1000


def test_the_first_interrupt_can_be_handled_and_items_in_hand_end(ctrl_c):
    todo, ended, stops = iter(range(1, 1001)), [], []

    def work(item: int) -> None:
        if item == 3:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.001)
        ended.append(item)

    work_through(
        lambda: next(todo, None),
        work,
        2,
        stopped=lambda: bool(stops),
        on_interrupt=lambda: stops.append("asked to stop"),
    )
    assert stops == ["asked to stop"]
    assert sorted(ended) == list(range(1, len(ended) + 1))
    assert len(ended) < 1000

"""Threads that work through a queue, and the pause before a retry.

Evaluating runs, querying a system under test and asking LLM judges share this pool. The workbench computes in processes
instead (`workbench.worker_pool`): they outlive one queue, and one that dies fails only its own question.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def work_through(
    take: Callable[[], T | None],
    work: Callable[[T], object],
    threads: int,
    *,
    stopped: Callable[[], bool] = lambda: False,
    on_error: Callable[[BaseException], None] | None = None,
    on_interrupt: Callable[[], None] | None = None,
) -> None:
    """Process items in several threads, until `take` returns None or `stopped` is true.

    `take` is called by one thread at a time. After an error it is not called again; when all threads have ended, the error
    of the earliest item is raised. Ctrl-C raises at once, and the threads only finish the items in hand. With
    `on_interrupt`, the first Ctrl-C calls it and waits for the threads.

    >>> letters, seen = iter("ab"), []
    >>> work_through(lambda: next(letters, None), seen.append, threads=2)
    >>> sorted(seen)
    ['a', 'b']
    """
    taking, changed, numbers = threading.Lock(), threading.Condition(), itertools.count()
    errors: dict[int, BaseException] = {}
    ended, left = 0, False

    def worker() -> None:
        nonlocal ended
        number = 0
        try:
            while not (errors or left or stopped()):
                with taking:  # two threads cannot advance a generator at once
                    number = next(numbers)
                    item = take()
                if item is None:
                    return
                work(item)
        except BaseException as error:  # raised in the calling thread below
            errors[number] = error
            if on_error is not None:
                on_error(error)
        finally:
            with changed:
                ended += 1
                changed.notify_all()

    pool = [threading.Thread(target=worker, daemon=True) for _ in range(threads)]

    def wait() -> None:
        with changed:  # not by join: a join that is interrupted takes its thread for ended (CPython 3.11)
            while ended < sum(thread.ident is not None for thread in pool):  # those that have started
                changed.wait()

    if threads == 1 and on_interrupt is None:
        worker()
    else:
        try:
            for thread in pool:
                thread.start()
            wait()
        except KeyboardInterrupt:
            if on_interrupt is None:
                raise
            on_interrupt()
            wait()
        finally:
            left = True
    if errors:
        raise errors[min(errors)]


def retry_pause(failures: int, backoff: float, after: float | None, longest: float) -> float:
    """Seconds to wait before a retry: `after` if the server names it, else `backoff`, doubled with each failure.

    >>> [retry_pause(failures, 0.2, None, 1.0) for failures in range(4)], retry_pause(0, 0.2, 30.0, 10.0)
    ([0.2, 0.4, 0.8, 1.0], 10.0)
    """
    return min(backoff * 2**failures if after is None else after, longest)

"""One thread that writes for all: what waits is committed together, and everybody is told when it is on disk.

A commit costs a sync of the disk, however much it holds; ten labels in one commit cost what one does. Work that fails
is undone alone (a savepoint); the others of its batch stay.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine import Connection, Engine

    Task = tuple[Callable[[Connection], Any], Future[Any]]

T = TypeVar("T")

TOGETHER = 256


class Writer:
    """A queue of work and the thread that does it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.queue: SimpleQueue[Task | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._loop, name="cranfield-writer", daemon=True)
        self.thread.start()

    def put(self, work: Callable[[Connection], T]) -> Future[T]:
        """Have some work done in a transaction; what it returns is there when that is committed. Not after `close`."""
        future: Future[T] = Future()
        self.queue.put((work, future))
        return future

    def close(self) -> None:
        """Finish what waits, and end the thread."""
        self.queue.put(None)
        self.thread.join()

    def _loop(self) -> None:
        while (first := self.queue.get()) is not None:
            batch, ending = [first], False
            while len(batch) < TOGETHER and not self.queue.empty():
                task = self.queue.get()
                if task is None:
                    ending = True
                    break
                batch.append(task)
            self._commit(batch)
            if ending:
                return

    def _commit(self, batch: list[Task]) -> None:
        """Do a batch in one transaction; where the database stops at one of them, each in its own."""
        from sqlalchemy.exc import DBAPIError, OperationalError

        answers: list[tuple[Future[Any], Any, BaseException | None]] = []
        begun = False
        try:
            with self.engine.begin() as connection:
                begun = True
                for work, future in batch:
                    connection.exec_driver_sql("SAVEPOINT own")
                    try:
                        answers.append((future, work(connection), None))
                    except DBAPIError:  # SQLite may have undone the whole transaction: nobody's work stands
                        raise
                    except Exception as error:
                        connection.exec_driver_sql("ROLLBACK TO own")
                        answers.append((future, None, error))
                    connection.exec_driver_sql("RELEASE own")
        except BaseException as failure:  # nothing of the batch is there
            if (
                len(batch) > 1
                and begun
                and isinstance(failure, DBAPIError)
                and not isinstance(failure, OperationalError)
            ):
                for task in batch:
                    self._commit([task])
                return
            answers = [(future, None, failure) for _, future in batch]
        for future, answer, problem in answers:
            if problem is None:
                future.set_result(answer)
            else:
                future.set_exception(problem)

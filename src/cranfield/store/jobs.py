"""The table of jobs: which process works on which question of a workspace, and its progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select

from cranfield.store.tables import jobs

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from cranfield.store.database import Database


def find_job(database: Database, id: str) -> Any:
    """The row of a job; None if it does not exist."""
    with database.reading() as connection:
        return connection.execute(select(jobs).where(jobs.c.id == id)).first()


def write_job(database: Database, row: dict[str, Any], remove_before: str | None = None) -> None:
    """Write the row of a job in place of the row with the same id; remove jobs that started before a time."""

    def work(connection: Connection) -> None:
        connection.execute(delete(jobs).where(jobs.c.id == row["id"]))
        if remove_before is not None:
            connection.execute(delete(jobs).where(jobs.c.started < remove_before))
        connection.execute(insert(jobs), row)

    database.write(work)

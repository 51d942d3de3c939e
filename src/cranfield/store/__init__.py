"""Tables that outlive a process: SQLite in one file, or PostgreSQL for a team."""

from cranfield.base.parameters import masked
from cranfield.store.database import Database, open_database

__all__ = ["Database", "masked", "open_database"]

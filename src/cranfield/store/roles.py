"""The roles of accounts: a module of its own, because the help of commands lists them without SQLAlchemy."""

ROLES = ("viewer", "assessor", "lead")  # each may do what those before it may

"""The roles of accounts."""

ROLES = ("viewer", "assessor", "lead")  # each may do what those before it may

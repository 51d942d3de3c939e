"""What somebody may be."""

ROLES = ("viewer", "assessor", "lead")  # each may do what those before it may

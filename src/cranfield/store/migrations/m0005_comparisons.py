"""What people are asked to compare, and an index on what somebody prefers."""

STATEMENTS = (
    """CREATE TABLE comparisons (
        name {text} PRIMARY KEY, definition {text} NOT NULL, state {text} NOT NULL, created {text} NOT NULL)""",
    "CREATE INDEX standing_preferences ON standing (aspect, assessor) WHERE side = 'preference'",
)

"""What is being worked out for the workbench, and by which process."""

STATEMENTS = (
    """CREATE TABLE jobs (
        id {text} PRIMARY KEY, verb {text} NOT NULL, parameters {text} NOT NULL, state {text} NOT NULL,
        told {text} NOT NULL, progress {double}, owner {text} NOT NULL, started {text} NOT NULL,
        seconds {double})""",
)

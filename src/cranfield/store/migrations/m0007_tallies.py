"""What came of the questions of each series, counted as they are asked; indexes on what is no label, and on models' labels."""

STATEMENTS = (
    """CREATE TABLE tallies (
        series {text} NOT NULL, purpose {text} NOT NULL, state {text} NOT NULL, problem {text} NOT NULL,
        returned {text} NOT NULL, fingerprint {text} NOT NULL, questions {int} NOT NULL, tokens_in {double} NOT NULL,
        tokens_out {double} NOT NULL, cost {double} NOT NULL, seconds {double} NOT NULL, last {text} NOT NULL,
        PRIMARY KEY (series, purpose, state, problem, returned, fingerprint))""",
    """INSERT INTO tallies SELECT series, purpose, 'sent', '', '', '', count(*), 0, 0, 0, 0, max(asked)
        FROM questions GROUP BY series, purpose""",
    """INSERT INTO tallies SELECT series, purpose, state, problem, substr(returned, 1, 120), substr(fingerprint, 1, 120),
        count(*), coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0), coalesce(sum(cost), 0),
        coalesce(sum(seconds), 0), max(answered)
        FROM questions WHERE state <> 'sent' GROUP BY 1, 2, 3, 4, 5, 6""",
    "CREATE INDEX questions_failures ON questions (series, problem, id) WHERE problem <> ''",
    "DROP INDEX questions_series",
    "CREATE INDEX questions_series ON questions (series, state, purpose)",
    "CREATE INDEX events_models ON events (assessor) WHERE source = 'model'",
)

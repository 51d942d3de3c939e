"""What models were asked: each series of questions, each question before it is sent, and what it may have cost."""

STATEMENTS = (
    "CREATE TABLE series (id {text} PRIMARY KEY, model {text} NOT NULL, definition {text} NOT NULL, created {text} NOT NULL)",
    """CREATE TABLE questions (
        id {text} PRIMARY KEY, series {text} NOT NULL, purpose {text} NOT NULL, question {text} NOT NULL,
        topic {text} NOT NULL, document {text} NOT NULL, other {text} NOT NULL, asked {text} NOT NULL,
        tokens_most {double} NOT NULL, cost_most {double} NOT NULL, length {int} NOT NULL, shown {int} NOT NULL,
        manner {text} NOT NULL,
        state {text} NOT NULL, problem {text} NOT NULL, raw {text} NOT NULL, returned {text} NOT NULL,
        fingerprint {text} NOT NULL, tokens_in {double}, tokens_out {double}, tokens {double}, cost {double},
        seconds {double}, grade {double}, label {text} NOT NULL, answered {text} NOT NULL)""",
    "CREATE INDEX questions_same ON questions (question)",
    "CREATE INDEX questions_series ON questions (series, state)",
    "CREATE INDEX questions_subject ON questions (topic, document)",
    "CREATE TABLE spending (model {text} PRIMARY KEY, tokens {double} NOT NULL, cost {double} NOT NULL)",
)

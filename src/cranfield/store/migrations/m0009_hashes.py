"""A hash of each round, its documents, each version, comparison and series of questions, to notice that one was changed."""

STATEMENTS = (
    "CREATE TABLE hashes (kind {text} NOT NULL, name {text} NOT NULL, hash {text} NOT NULL, PRIMARY KEY (kind, name))",
)

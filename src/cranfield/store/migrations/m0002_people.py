"""Accounts, and what lets somebody in: sessions, invitations, one-time keys and tokens, each as its hash alone."""

STATEMENTS = (
    """CREATE TABLE accounts (
        key {text} PRIMARY KEY, name {text} NOT NULL, role {text} NOT NULL, active {bool} NOT NULL, password {text},
        settings {text} NOT NULL, created {text} NOT NULL)""",
    """CREATE TABLE sessions (
        hash {text} PRIMARY KEY, account {text} NOT NULL REFERENCES accounts (key), local {bool} NOT NULL,
        created {text} NOT NULL, seen {text} NOT NULL, until {text} NOT NULL)""",
    "CREATE INDEX sessions_account ON sessions (account)",
    """CREATE TABLE invitations (
        id {serial}, hash {text} NOT NULL UNIQUE, role {text} NOT NULL, name {text} NOT NULL, inviter {text} NOT NULL,
        created {text} NOT NULL, until {text} NOT NULL, reset {bool} NOT NULL)""",
    "CREATE TABLE link_keys (hash {text} PRIMARY KEY, until {text} NOT NULL)",
    """CREATE TABLE tokens (
        id {serial}, hash {text} NOT NULL UNIQUE, account {text} NOT NULL REFERENCES accounts (key), label {text} NOT NULL,
        created {text} NOT NULL, seen {text}, until {text})""",
    "CREATE INDEX tokens_account ON tokens (account)",
)

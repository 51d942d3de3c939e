"""Events, what stands, rounds with their items and places, and frozen versions."""

STATEMENTS = (
    """CREATE TABLE events (
        seq {serial}, id {text} NOT NULL UNIQUE, kind {text} NOT NULL, topic {text} NOT NULL, document {text} NOT NULL,
        other {text} NOT NULL, grade {double}, assessor {text} NOT NULL, time {text} NOT NULL, aspect {text} NOT NULL,
        sure {bool} NOT NULL, note {text} NOT NULL, passage {text} NOT NULL, source {text} NOT NULL, seconds {double},
        list {text} NOT NULL, rank {int}, round {text} NOT NULL, guideline {text} NOT NULL, refers {text} NOT NULL,
        repeat {bool} NOT NULL, origin {text} NOT NULL, received {text} NOT NULL)""",
    "CREATE INDEX events_subject ON events (topic, document)",
    "CREATE INDEX events_assessor ON events (assessor, time)",
    "CREATE TABLE withdrawn (id {text} PRIMARY KEY)",
    """CREATE TABLE standing (
        side {text} NOT NULL, topic {text} NOT NULL, document {text} NOT NULL, other {text} NOT NULL,
        aspect {text} NOT NULL, assessor {text} NOT NULL, repeat {bool} NOT NULL, event {text} NOT NULL,
        time {text} NOT NULL, PRIMARY KEY (side, topic, document, other, aspect, assessor, repeat))""",
    """CREATE TABLE rounds (
        name {text} PRIMARY KEY, definition {text} NOT NULL, state {text} NOT NULL, created {text} NOT NULL)""",
    """CREATE TABLE items (
        round {text} NOT NULL REFERENCES rounds (name), item {int} NOT NULL, topic {text} NOT NULL,
        document {text} NOT NULL, role {text} NOT NULL, grade {double}, overlap {int} NOT NULL,
        probability {double} NOT NULL, PRIMARY KEY (round, item), UNIQUE (round, topic, document))""",
    """CREATE TABLE places (
        round {text} NOT NULL, item {int} NOT NULL, slot {int} NOT NULL, assessor {text}, repeat {bool} NOT NULL,
        state {text} NOT NULL, until {text}, event {text}, PRIMARY KEY (round, item, slot),
        UNIQUE (round, item, assessor, repeat), FOREIGN KEY (round, item) REFERENCES items (round, item))""",
    "CREATE INDEX places_open ON places (round, state, item)",
    "CREATE INDEX places_assessor ON places (round, assessor)",
    "CREATE TABLE versions (name {text} PRIMARY KEY, definition {text} NOT NULL, created {text} NOT NULL)",
)

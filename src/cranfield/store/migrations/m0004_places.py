"""Places know their topic and whether they count, and an index answers each question that a lease or a page asks."""

STATEMENTS = (
    "ALTER TABLE places ADD COLUMN topic {text} NOT NULL DEFAULT ''",
    "ALTER TABLE places ADD COLUMN counted {bool} NOT NULL DEFAULT TRUE",
    """UPDATE places SET topic = items.topic, counted = places.slot < items.overlap
        FROM items WHERE items.round = places.round AND items.item = places.item""",
    "DROP INDEX places_open",
    "DROP INDEX places_assessor",
    "DROP INDEX events_assessor",
    "CREATE INDEX places_free ON places (round, item, slot) WHERE state = 'free'",
    "CREATE INDEX places_free_of_topic ON places (round, topic, item, slot) WHERE state = 'free'",
    "CREATE INDEX places_leased ON places (round, counted, until) WHERE state = 'leased'",
    "CREATE INDEX places_held ON places (round, assessor, item, slot) WHERE state = 'leased'",
    "CREATE INDEX places_assessor ON places (round, assessor, until, item, slot)",
    "CREATE INDEX events_assessor ON events (assessor, seq)",
    "CREATE INDEX events_other ON events (topic, other) WHERE other <> ''",
)

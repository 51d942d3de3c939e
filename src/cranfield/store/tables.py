"""The tables as they are now; `store.migrations` says how a database gets there, and a test holds the two equal."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Double, Integer, MetaData, Table

from cranfield.store.exact import Exact

metadata = MetaData()
PASSING = {"passing": True}  # a table of the moment, or of what lets somebody in: no copy holds its rows


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Exact, nullable=False) for name in names]


events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True),
    *_texts("id", "kind", "topic", "document", "other"),
    Column("grade", Double),
    *_texts("assessor", "time", "aspect"),
    Column("sure", Boolean, nullable=False),
    *_texts("note", "passage", "source"),
    Column("seconds", Double),
    *_texts("list"),
    Column("rank", Integer),
    *_texts("round", "guideline", "refers"),
    Column("repeat", Boolean, nullable=False),
    *_texts("origin", "received"),
)

withdrawn = Table("withdrawn", metadata, Column("id", Exact, primary_key=True))

standing = Table(
    "standing",
    metadata,
    *_texts("side", "topic", "document", "other", "aspect", "assessor"),
    Column("repeat", Boolean, nullable=False),
    *_texts("event", "time"),
)

rounds = Table(
    "rounds",
    metadata,
    Column("name", Exact, primary_key=True),
    *_texts("definition", "state", "created"),
)

items = Table(
    "items",
    metadata,
    Column("round", Exact, primary_key=True),
    Column("item", Integer, primary_key=True),  # in the order in which they are handed out
    *_texts("topic", "document", "role"),  # role: pool or gold
    Column("grade", Double),  # of gold
    Column("overlap", Integer, nullable=False),
    Column("probability", Double, nullable=False),
)

places = Table(
    "places",
    metadata,
    Column("round", Exact, primary_key=True),
    Column("item", Integer, primary_key=True),
    Column("slot", Integer, primary_key=True),  # from 0; those from the item's overlap on are beside the count
    Column("assessor", Exact),
    Column("repeat", Boolean, nullable=False),
    *_texts("state"),  # free, leased, done, extra or skipped
    Column("until", Exact),
    Column("event", Exact),
    *_texts("topic"),  # the item's
    Column("counted", Boolean, nullable=False),  # whether the slot is below the item's overlap
)

versions = Table(
    "versions",
    metadata,
    Column("name", Exact, primary_key=True),
    *_texts("definition", "created"),
)

comparisons = Table(
    "comparisons",
    metadata,
    Column("name", Exact, primary_key=True),
    *_texts("definition", "state", "created"),
)

series = Table(
    "series",
    metadata,
    Column("id", Exact, primary_key=True),
    *_texts("model", "definition", "created"),
)

questions = Table(
    "questions",
    metadata,
    Column("id", Exact, primary_key=True),
    *_texts("series", "purpose", "question"),  # purpose: label, or what a probe is for; question: its hash
    *_texts("topic", "document", "other", "asked"),
    Column("tokens_most", Double, nullable=False),  # that it may take
    Column("cost_most", Double, nullable=False),
    Column("length", Integer, nullable=False),  # of the texts, in characters
    Column("shown", Integer, nullable=False),  # of them, to the model
    *_texts("manner"),  # the options that were sent along
    *_texts("state", "problem", "raw", "returned", "fingerprint"),  # state: sent, answered or failed
    Column("tokens_in", Double),
    Column("tokens_out", Double),
    Column("tokens", Double),  # that it counts as, and the cost: the most where the server does not say
    Column("cost", Double),
    Column("seconds", Double),
    Column("grade", Double),
    *_texts("label", "answered"),  # label: the id of its event
)

tallies = Table(
    "tallies",
    metadata,
    *(
        Column(name, Exact, primary_key=True)
        for name in ("series", "purpose", "state", "problem", "returned", "fingerprint")
    ),  # the questions that came to the same; state sent: all that were sent, whatever came of them
    Column("questions", Integer, nullable=False),
    *(Column(name, Double, nullable=False) for name in ("tokens_in", "tokens_out", "cost", "seconds")),
    *_texts("last"),  # when the last of them was answered, or sent
)

spending = Table(
    "spending",
    metadata,
    Column("model", Exact, primary_key=True),
    Column("tokens", Double, nullable=False),  # of what was answered, and the most of what was sent
    Column("cost", Double, nullable=False),
)

hashes = Table(
    "hashes",
    metadata,
    Column("kind", Exact, primary_key=True),  # of the record
    Column("name", Exact, primary_key=True),
    *_texts("hash"),
)

accounts = Table(
    "accounts",
    metadata,
    Column("key", Exact, primary_key=True),  # the name as it is compared
    *_texts("name", "role"),
    Column("active", Boolean, nullable=False),
    Column("password", Exact),  # its hash
    *_texts("settings", "created"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("hash", Exact, primary_key=True),
    *_texts("account"),
    Column("local", Boolean, nullable=False),
    *_texts("created", "seen", "until"),
    info=PASSING,
)

invitations = Table(
    "invitations",
    metadata,
    Column("id", Integer, primary_key=True),
    *_texts("hash", "role", "name", "inviter", "created", "until"),
    Column("reset", Boolean, nullable=False),  # another password for an account that is there
    info=PASSING,
)

link_keys = Table("link_keys", metadata, Column("hash", Exact, primary_key=True), *_texts("until"), info=PASSING)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Integer, primary_key=True),
    *_texts("hash", "account", "label", "created"),
    Column("seen", Exact),
    Column("until", Exact),
    info=PASSING,
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", Exact, primary_key=True),  # of the question, and of the folder that its result goes to
    *_texts("verb", "parameters", "state", "told"),  # state: running, done or failed
    Column("progress", Double),  # 0 to 1
    *_texts("owner", "started"),  # the process that sees to it; the time by its clock
    Column("seconds", Double),
    info=PASSING,
)

"""The tables as they are now; `store.migrations` creates them step by step, and a test compares both.

`Exact` stores arbitrary text. Document ids are bytes that were decoded: they may hold lone surrogates, which no driver
sends, and NUL, which PostgreSQL does not store. Both are written as escapes behind a backslash, and a backslash is doubled;
all other text stays readable in the table. PostgreSQL compares it byte by byte (collation C).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sqlalchemy import Boolean, Column, ColumnElement, Double, Integer, MetaData, Table, Text, func, type_coerce
from sqlalchemy.types import TypeDecorator, TypeEngine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Select
    from sqlalchemy.engine import Connection, Dialect, Row


MANY = 500  # values in one statement
ODD = re.compile("[\\\\\x00\ud800-\udfff]")
ESCAPED = re.compile(r"\\(\\|u[0-9a-f]{4})")
WHOLE = re.compile(r"(?:[^\\]|\\\\|\\u[0-9a-f]{4})*")


def escaped(text: str) -> str:
    r"""The text with escapes for characters that a database refuses.

    >>> escaped("a\\b\0")
    'a\\\\b\\u0000'
    """
    return ODD.sub(lambda odd: "\\\\" if odd[0] == "\\" else f"\\u{ord(odd[0]):04x}", text)


def plain(text: str) -> str:
    """The text before escaping."""
    return ESCAPED.sub(lambda match: "\\" if match[1] == "\\" else chr(int(match[1][1:], 16)), text)


def plain_start(text: str) -> str:
    r"""The text of an escaped form that was cut off, without a divided escape at its end.

    >>> plain_start("a\\\\b\\u00")
    'a\\b'
    """
    return plain(WHOLE.match(text)[0])  # type: ignore[index]


def length_of(column: Any) -> Any:
    """The length of a column's texts in SQL, although the database stores their escaped form."""
    pairs = func.replace(type_coerce(column, Text), "\\\\", "/")
    return func.length(pairs) - 5 * (func.length(pairs) - func.length(func.replace(pairs, "\\", "")))


def one_of(column: Column[Any], values: Iterable[Any]) -> Iterator[ColumnElement[bool]]:
    """Conditions for a column to hold one of these values: one of them must be true, each names at most `MANY` values."""
    every = list(values)
    for start in range(0, len(every), MANY):
        yield column.in_(every[start : start + MANY])


def rows_with(
    connection: Connection, query: Select[Any], column: Column[Any], values: Iterable[Any]
) -> Iterator[Row[Any]]:
    """The rows of a query in which a column holds one of these values."""
    for here in one_of(column, values):
        yield from connection.execute(query.where(here))


class Exact(TypeDecorator[str]):
    """The column type of arbitrary text, which is stored with escapes."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Text(collation="C") if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else escaped(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else plain(value)


class Spans(TypeDecorator[tuple[tuple[int, int], ...]]):
    """The column type of passages: pairs of start and end, stored as text such as `3-9 40-52`."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Text(collation="C") if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Iterable[tuple[int, int]] | None, dialect: Dialect) -> str | None:
        return None if value is None else " ".join(f"{start}-{end}" for start, end in value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[tuple[int, int], ...] | None:
        if not value:
            return None if value is None else ()
        pairs = (part.partition("-") for part in value.split())
        return tuple((int(start), int(end)) for start, _, end in pairs)


metadata = MetaData()
PASSING = {"passing": True}  # temporary or secret rows, which copies leave out


def _table(name: str, *columns: Column[Any], **options: Any) -> Table:
    return Table(name, metadata, *columns, **options)


def _columns(kind: Any, *names: str, **options: Any) -> list[Column[Any]]:
    return [Column(name, kind, **options) for name in names]


def _texts(*names: str) -> list[Column[str]]:
    return _columns(Exact, *names, nullable=False)


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False)


def _keys(*names: str) -> list[Column[str]]:
    return _columns(Exact, *names, primary_key=True)


events = _table(
    "events",
    Column("seq", Integer, primary_key=True),
    *_texts("id", "kind", "topic", "document", "other"),
    Column("grade", Double),
    *_texts("assessor", "time", "aspect"),
    _flag("sure"),
    *_texts("note", "passage", "source"),
    Column("seconds", Double),
    *_texts("list"),
    Column("rank", Integer),
    *_texts("round", "guideline", "refers"),
    _flag("repeat"),
    *_texts("origin", "received"),
    Column("passages", Spans, nullable=False, server_default=""),
)

withdrawn = _table("withdrawn", *_keys("id"))

standing = _table(
    "standing",
    *_texts("side", "topic", "document", "other", "aspect", "assessor"),
    _flag("repeat"),
    *_texts("event", "time"),
    Column("grade", Double),  # of the event, as its source: policies read no other table
    *_texts("source"),
)

rounds = _table(
    "rounds",
    *_keys("name"),
    *_texts("definition", "state", "created"),
    Column("changed", Exact, nullable=False, server_default=""),  # number and hash of the last change; empty: none
)

round_changes = _table(
    "round_changes",
    *_keys("id"),  # the number of the change and the name of the round
    *_texts("round"),
    Column("number", Integer, nullable=False),
    *_texts("definition"),
)

items = _table(
    "items",
    *_keys("round"),
    Column("item", Integer, primary_key=True),  # in the order of the pool
    *_texts("topic", "document", "role"),  # role: pool or gold
    Column("grade", Double),  # of gold
    Column("overlap", Integer, nullable=False),  # as planned
    Column("probability", Double, nullable=False),
    Column("position", Integer, nullable=False, server_default="0"),  # in the order of assignment
    Column("wanted", Integer, nullable=False, server_default="0"),  # labels, by the round as it is now
)

places = _table(
    "places",
    *_keys("round"),
    *_columns(Integer, "item", "slot", primary_key=True),  # slot: from 0
    Column("assessor", Exact),
    _flag("repeat"),
    *_texts("state"),  # free, leased, done, extra or skipped
    *_columns(Exact, "until", "event"),
    *_texts("topic"),  # the item's
    _flag("counted"),  # whether it is one of the labels that the item is wanted for
    Column("position", Integer, nullable=False, server_default="0"),  # the item's; of gold and repeats: when they came
)

versions = _table("versions", *_keys("name"), *_texts("definition", "created"))

guidelines = _table(
    "guidelines",
    Column("number", Integer, primary_key=True),  # in the history
    *_texts("hash", "definition", "author", "created"),
)

pseudonyms = _table(
    "pseudonyms",  # that took the place of names
    *_keys("name"),
    *_texts("author", "created"),
    Column("events", Integer, nullable=False),
)

comparisons = _table("comparisons", *_keys("name"), *_texts("definition", "state", "created"))

series = _table("series", *_keys("id"), *_texts("model", "definition", "created"))

questions = _table(
    "questions",
    *_keys("id"),
    *_texts("series", "purpose", "question"),  # purpose: label, or what a probe is for; question: its hash
    *_texts("topic", "document", "other", "asked"),
    *_columns(Double, "tokens_most", "cost_most", nullable=False),  # that it may take
    *_columns(Integer, "length", "shown", nullable=False),  # of the texts, in characters; of them, to the model
    *_texts("manner"),  # the options that were sent along
    *_texts("state", "problem", "raw", "returned", "fingerprint"),  # state: sent, answered or failed
    *_columns(Double, "tokens_in", "tokens_out"),
    *_columns(Double, "tokens", "cost"),  # that it counts as: the most where the server does not say
    *_columns(Double, "seconds", "grade"),
    *_texts("label", "answered"),  # label: the id of its event
)

tallies = _table(
    "tallies",
    *_keys("series", "purpose", "state", "problem", "returned", "fingerprint"),  # the questions that came to the same
    Column("questions", Integer, nullable=False),  # of the state sent: all that were sent, whatever came of them
    *_columns(Double, "tokens_in", "tokens_out", "cost", "seconds", nullable=False),
    *_texts("last"),  # when the last of them was answered, or sent
)

# per model: the usage of answered questions, and the possible maximum of those that were only sent
spending = _table("spending", *_keys("model"), *_columns(Double, "tokens", "cost", nullable=False))

hashes = _table("hashes", *_keys("kind", "name"), *_texts("hash"))  # kind: of the record

accounts = _table(
    "accounts",
    *_keys("key"),  # the name as it is compared
    *_texts("name", "role"),
    _flag("active"),
    Column("password", Exact),  # its hash
    *_texts("settings", "created"),
)

sessions = _table(
    "sessions", *_keys("hash"), *_texts("account"), _flag("local"), *_texts("created", "seen", "until"), info=PASSING
)

invitations = _table(
    "invitations",
    Column("id", Integer, primary_key=True),
    *_texts("hash", "role", "name", "inviter", "created", "until"),
    _flag("reset"),  # whether it sets a new password of an existing account
    info=PASSING,
)

link_keys = _table("link_keys", *_keys("hash"), *_texts("until"), info=PASSING)

tokens = _table(
    "tokens",
    Column("id", Integer, primary_key=True),
    *_texts("hash", "account", "label", "created"),
    *_columns(Exact, "seen", "until"),
    info=PASSING,
)

jobs = _table(
    "jobs",
    *_keys("id"),  # of the question, and of the folder that its result goes to
    *_texts("verb", "parameters", "state", "told"),  # state: running, done or failed
    Column("progress", Double),  # 0 to 1
    *_texts("owner", "started"),  # the process that sees to it; the time by its clock
    Column("seconds", Double),
    info=PASSING,
)

topic_models = _table(
    "topic_models",  # of rounds whose strategy reads documents: computed from the labels
    *_keys("round", "topic"),
    *_columns(Integer, "labels", "relevant", nullable=False),
    Column("expected", Double),  # relevant documents that are left
    *_texts("trained", "digest", "words", "documents"),  # digest: of what a model depends on; documents: the next ones
    info=PASSING,
)

"""Text that comes back as it went in, whatever it holds.

Document ids are bytes that somebody read as text: they may hold lone surrogates, which no driver sends, and NUL, which
PostgreSQL does not store. Both are written as escapes behind a backslash, and a backslash twice; all other text stays
readable in the table. PostgreSQL compares it byte by byte (collation C).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, func, type_coerce
from sqlalchemy.types import TypeDecorator

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect
    from sqlalchemy.types import TypeEngine

ODD = re.compile("[\\\\\x00\ud800-\udfff]")
ESCAPED = re.compile(r"\\(\\|u[0-9a-f]{4})")
WHOLE = re.compile(r"(?:[^\\]|\\\\|\\u[0-9a-f]{4})*")


def escaped(text: str) -> str:
    r"""Text that every database takes.

    >>> escaped("a\\b\0")
    'a\\\\b\\u0000'
    """
    return ODD.sub(lambda odd: "\\\\" if odd[0] == "\\" else f"\\u{ord(odd[0]):04x}", text)


def plain(text: str) -> str:
    """The text that was escaped."""
    return ESCAPED.sub(lambda found: "\\" if found[1] == "\\" else chr(int(found[1][1:], 16)), text)


def plain_start(text: str) -> str:
    r"""The text whose escaped form was cut, without the escape that the cut went through.

    >>> plain_start("a\\\\b\\u00")
    'a\\b'
    """
    return plain(WHOLE.match(text)[0])  # type: ignore[index]


def length_of(column: Any) -> Any:
    """How long the texts of a column are, where the database measures their escaped form."""
    pairs = func.replace(type_coerce(column, Text), "\\\\", "/")
    return func.length(pairs) - 5 * (func.length(pairs) - func.length(func.replace(pairs, "\\", "")))


class Exact(TypeDecorator[str]):
    """A column of text that may hold anything."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Text(collation="C") if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else escaped(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else plain(value)

"""Topics as a table: of each topic the query's text, and the columns to split, weigh or filter by.

A topics file is a table with a header (TSV, CSV or JSON lines): the first column (or `topic`, `topic_id`, `qid`, `query_id`,
`_id`, `id`) is the topic's id, `query`, `text` or `title` what was asked, and any other column a category or a number.
The topics of a collection are the same: title, description, narrative and further fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.columns import counted
from cranfield.errors import BadLineError, DataError
from cranfield.formats.tables import DETECTED, HEAD, Dialect, Numbers, SeparatedValues, open_table
from cranfield.hearing import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cranfield.collection import Topic
    from cranfield.formats.format import Fields
    from cranfield.formats.streams import Opened


IDS = ("topic_id", "query_id", "qid", "q_id", "queryid", "topicid", "_id", "id", "topic", "number", "num")
TEXTS = ("title", "query", "query_text", "text", "question", "search_term", "search_query", "keyword", "keywords")
LENGTH = "length"  # of the query in words, where no column is called so


@dataclass(frozen=True)
class TopicTable:
    """What is known of the topics, and where from."""

    where: str
    queries: Mapping[str, str]  # topic → what was asked; topics without a text are left out
    columns: Mapping[str, Mapping[str, str]]  # column → topic → value
    decimal: str | None = None  # the decimal sign, where somebody said which

    @property
    def names(self) -> str:
        """The columns there are, in words."""
        names = [*self.columns, *([LENGTH] if self.queries and LENGTH not in self.columns else [])]
        return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "no other column"

    def column(self, name: str, use: str = "split by") -> dict[str, str]:
        """A column's value of each topic; `length` is the number of words of the query.

        >>> TopicTable("t", {"q1": "wing flutter"}, {"kind": {"q1": "short"}}).column("length")
        {'q1': '2 words'}
        """
        if name in self.columns:
            return dict(self.columns[name])
        if name != LENGTH or not self.queries:
            raise DataError(f"{self.where}: no column {name!r} to {use}; it has {self.names}")
        return {topic: _words(text) for topic, text in self.queries.items()}

    def numbers(self, name: str, use: str = "weigh by") -> dict[str, float]:
        """A column of numbers; topics without a value are left out.

        >>> TopicTable("t", {}, {"traffic": {"q1": "120", "q2": ""}}).numbers("traffic")
        {'q1': 120.0}
        """
        if name not in self.columns:
            raise DataError(f"{self.where}: no column {name!r} to {use}; it has {self.names}")
        numbers: dict[str, float] = {}
        reader = Numbers(self.decimal)
        for topic, value in self.columns[name].items():
            try:
                numbers |= {topic: reader.read(value, 0)} if value else {}
            except ValueError as error:
                problem = f"expected a number for topic {topic!r}, {error}"
                raise DataError(f"{self.where}: column {name!r}: {problem}") from None
        return numbers


def _words(text: str) -> str:
    number = len(text.split())
    return f"{number} word{'' if number == 1 else 's'}" if number else ""


def table_of_topics(topics: Iterable[Topic], where: str) -> TopicTable:
    """The topics of a collection as a table.

    >>> from cranfield.collection import Topic
    >>> table_of_topics([Topic("q1", "wing flutter", fields={"traffic": 12})], "toy").columns
    {'title': {'q1': 'wing flutter'}, 'traffic': {'q1': '12'}}
    """
    queries: dict[str, str] = {}
    columns: dict[str, dict[str, str]] = {}
    for topic in topics:
        if text := topic.title or topic.description:
            queries[topic.id] = text
        texts = {"title": topic.title, "description": topic.description, "narrative": topic.narrative}
        for name, value in {**{name: text for name, text in texts.items() if text}, **topic.fields}.items():
            columns.setdefault(name, {})[topic.id] = _text(value)
    return TopicTable(where, queries, columns)


def read_topic_table(
    path: str, fields: Fields | None = None, dialect: Dialect = DETECTED, lenient: bool = False
) -> TopicTable:
    """Read a topics file: TSV, CSV or JSON lines. `fields` says what the columns of id and text are called."""
    file = open_table(path, dialect.encoding)
    if bytes(file.buffer[:HEAD]).lstrip().startswith(b"{"):
        rows = _json_rows(path, bytes(file.buffer).decode("utf-8", "surrogateescape"))
    else:
        rows = _delimited_rows(file, dialect, lenient)
    if not rows:
        raise DataError(f"{path}: expected a row for each topic, found none")
    names = list(dict.fromkeys(name for row in rows for name in row))
    key = column_named(names, "topic", IDS, fields) or names[0]
    text = column_named([name for name in names if name != key], "query", TEXTS, fields)
    known = [row for row in rows if key in row]
    odd = next((row[key] for row in known if "\0" in row[key]), None)
    if odd is not None:
        raise DataError(f"{path}: expected ids without NUL, found topic {odd!r:.60}")
    queries = {row[key]: row[text] for row in known if row.get(text)} if text else {}
    columns = {name: {row[key]: row.get(name, "") for row in known} for name in names if name != key}
    return TopicTable(path, queries, columns, dialect.decimal)


def column_named(names: list[str], ours: str, usual: tuple[str, ...], fields: Fields | None) -> str:
    """The column of an id or a text: as it was said, if the file has it, or by one of its usual names.

    What is said of the topic may be said of judgments that go by text: where it is a text's usual name, an id comes first.
    """
    theirs: Any = (fields or {}).get(ours, ())
    said = (theirs,) if isinstance(theirs, str) else tuple(theirs)
    if ours == "topic" and set(said) <= set(TEXTS):
        said, usual = (), (*usual, *said)
    return next((name for name in (*said, *usual) if name in names), "")


def _text(value: Any) -> str:
    import json

    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _json_rows(path: str, content: str) -> list[dict[str, str]]:
    import json

    rows = []
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                raise BadLineError(path, number, "expected a JSON object a line (topic and its columns)")
            rows.append({str(key): _text(value) for key, value in row.items()})
    return rows


def _names_topics(names: list[str]) -> bool:
    return any(name.lower() in (*IDS, *TEXTS) for name in names)


def _delimited_rows(file: Opened, dialect: Dialect, lenient: bool) -> list[dict[str, str]]:
    table = SeparatedValues(bytes(file.buffer), file.where, _names_topics, dialect.of(file))
    names = table.names
    if len(names) < 2:
        found = f"{table.delimiter.join(names)[:60]!r}"
        raise BadLineError(
            file.where, 1, f"expected a header with the topic and at least one more column, found {found}"
        )
    rows, skipped = [], 0
    for row in table:
        if len(row.cells) == len(names):
            rows.append(dict(zip(names, row.cells, strict=True)))
        elif lenient:
            skipped += 1
        else:
            raise BadLineError(file.where, row.line, f"expected {len(names)} columns, found {len(row.cells)}")
    table.report()
    say([f"{file.where}: {counted(skipped, 'malformed row')} skipped"] if skipped else [])
    return rows

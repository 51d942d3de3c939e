"""Topics as a table: the query text of each topic, and the columns to split, weight or filter by.

A topics file is a table with a header (TSV, CSV or JSON lines). The first column (or `topic`, `topic_id`, `qid`,
`query_id`, `_id`, `id`) is the topic's id; `query`, `text` or `title` is its query; any other column is a category or a
number. The topics of a collection are read the same way: title, description, narrative and further fields.

Shops label by query text instead of ids. Such judgments and runs are joined with the topics by the exact text, or else
by the text with white space squeezed. Case is ignored only on request, as upper and lower case may be two queries.
A file counts as labelled by text only if more of its names are texts than ids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.kernels import Strings
from cranfield.base.notifications import say, tell_used
from cranfield.base.qrels import Duplicates, FileRow, Qrels
from cranfield.base.run import Run, TextSource
from cranfield.base.text_layout import counted, name_list
from cranfield.formats.csv_tables import DETECTED, HEAD, Dialect, NumberReader, SeparatedValues, open_table
from cranfield.formats.query_text import normalised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cranfield.base.collection import Topic
    from cranfield.base.kernels import RowTable
    from cranfield.formats.format import Fields
    from cranfield.formats.streams import Opened


IDS = ("topic_id", "query_id", "qid", "q_id", "queryid", "topicid", "_id", "id", "topic", "number", "num")
TEXTS = ("title", "query", "query_text", "text", "question", "search_term", "search_query", "keyword", "keywords")
LENGTH = "length"  # of the query in words, if no column has this name


@dataclass(frozen=True)
class TopicTable:
    """The queries and columns of the topics, and the file they come from."""

    where: str
    queries: Mapping[str, str]  # topic → query; topics without a query are left out
    columns: Mapping[str, Mapping[str, str]]  # column → topic → value
    decimal: str | None = None  # the decimal sign, if the user gave it

    @property
    def names(self) -> str:
        """The names of the columns, as a list in words."""
        names = [*self.columns, *([LENGTH] if self.queries and LENGTH not in self.columns else [])]
        return name_list(names) or "no other column"

    def column(self, name: str, use: str = "split by") -> dict[str, str]:
        """The value of a column for each topic; `length` is the number of words of the query.

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
        reader = NumberReader(self.decimal)
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

    >>> from cranfield.base.collection import Topic
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


def topic_ids_in(path: str) -> frozenset[str]:
    """The ids of the topics in a table, and of those that only other columns name."""
    table = read_topic_table(path)
    return frozenset(table.queries).union(*table.columns.values())


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
    with_id = [row for row in rows if key in row]
    odd = next((row[key] for row in with_id if "\0" in row[key]), None)
    if odd is not None:
        raise DataError(f"{path}: expected ids without NUL, found topic {odd!r:.60}")
    queries = {row[key]: row[text] for row in with_id if row.get(text)} if text else {}
    columns = {name: {row[key]: row.get(name, "") for row in with_id} for name in names if name != key}
    return TopicTable(path, queries, columns, dialect.decimal)


def column_named(names: list[str], ours: str, usual: tuple[str, ...], fields: Fields | None) -> str:
    """The column of an id or a text: the name that the user gave, if the file has it, or a usual name.

    A name given for the topic may refer to judgments by text: if it is a usual name of texts, columns of ids come
    first.
    """
    theirs: Any = (fields or {}).get(ours, ())
    names_of_user = (theirs,) if isinstance(theirs, str) else tuple(theirs)
    if ours == "topic" and set(names_of_user) <= set(TEXTS):
        names_of_user, usual = (), (*usual, *names_of_user)
    return next((name for name in (*names_of_user, *usual) if name in names), "")


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
        expected = "expected a header with the topic and at least one more column"
        raise BadLineError(file.where, 1, f"{expected}, found {table.delimiter.join(names)[:60]!r}")
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


def ids_of_texts(
    names: Iterable[str], queries: Mapping[str, str], where: str, ignore_case: bool = False
) -> dict[str, str] | None:
    """The topic that each query text belongs to; None if the names are not queries. `queries` is id → text.

    With `ignore_case`, a name that matches no query exactly may differ in case.

    >>> ids_of_texts(["usb  cable"], {"q1": "usb cable", "q2": "red shoes"}, "labels.csv")
    {'usb  cable': 'q1'}
    """
    all_names = list(names)
    ids, same, squeezed = 0, _by(queries, str), _by(queries, _squeezed)
    folded = _by(queries, _folded) if ignore_case else {}
    topics_of: dict[str, list[str]] = {}
    for name in all_names:
        ids += name in queries
        if topics := same.get(name) or squeezed.get(_squeezed(name)) or folded.get(_folded(name)):
            topics_of[name] = topics
    if topics_of:
        tell_used("ignore_case", "topics_file")
    if len(topics_of) <= ids:
        return None
    for name in all_names:
        if name not in topics_of:
            lost = f"{len(all_names) - len(topics_of)} of the {len(all_names)} queries"
            alike = _folded(name) in {_folded(text) for text in queries.values()}
            advice = "ignore_case=True joins it" if alike else "are both spelt alike?"
            raise DataError(f"{where}: no topic asks {name!r:.80} ({lost} join none); {advice}")
        if len(topics_of[name]) > 1:
            one, other = topics_of[name][:2]
            raise DataError(f"{where}: topics {one!r} and {other!r} both ask {name!r:.80}; name them by their ids")
    return {name: topics[0] for name, topics in topics_of.items()}


def topics_of_normal_texts(
    texts: Iterable[str], topics: Iterable[str], queries: Mapping[str, str], where: str
) -> dict[str, str]:
    """The topic that answers each query text, by its id or its text in normal form; texts without one are left out.

    `texts` are in normal form (`query_text.normalised`), `queries` is id → text. DataError if two topics share a text.

    >>> topics_of_normal_texts(["usb cable", "q2", "hats"], ["q1", "Q2"], {"q1": "USB  cable"}, "a.run")
    {'usb cable': 'q1', 'q2': 'Q2'}
    """
    wanted = set(texts)
    answer: dict[str, str] = {}
    for topic in topics:
        for spelling in dict.fromkeys((topic, queries.get(topic, topic))):
            text = normalised(spelling)
            if text not in wanted:
                continue
            other = answer.setdefault(text, topic)
            if other != topic:
                raise DataError(
                    f"{where}: topics {other!r:.60} and {topic!r:.60} are the same query {text!r:.60}; keep one"
                )
            if spelling != topic:
                tell_used("topics_file")
    return answer


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _folded(text: str) -> str:
    return _squeezed(text).casefold()


def _by(queries: Mapping[str, str], key: Callable[[str], str]) -> dict[str, list[str]]:
    topics: dict[str, list[str]] = {}
    for topic, text in queries.items():
        topics.setdefault(key(text), []).append(topic)
    return topics


def qrels_by_id(
    qrels: Qrels, queries: Mapping[str, str], ignore_case: bool = False, duplicates: Duplicates = "error"
) -> Qrels | None:
    """Judgments with topic ids if they name topics by query; None if they do not.

    Two spellings may be the same topic: `duplicates` decides which grade counts if both judge a document.
    """
    ids = None if qrels.from_text else ids_of_texts(qrels.topics, queries, qrels.name, ignore_case)
    if ids is None:
        return None

    def file_rows() -> list[FileRow] | None:
        rows = qrels.file_rows()
        return None if rows is None else [row._replace(topic=ids.get(row.topic, row.topic)) for row in rows]

    with_ids = Qrels(renamed(qrels.table, ids), qrels.name, duplicates, file_rows, qrels.where)
    with_ids.extras, with_ids.relevant_from = qrels.extras, qrels.relevant_from
    return with_ids


def run_by_id(run: Run, queries: Mapping[str, str], ignore_case: bool = False) -> Run | None:
    """A run with topic ids if it names topics by query; None if it does not."""
    if isinstance(run.source, TextSource):  # a topic in a TREC file contains no white space, so it is never a query
        return None
    ids = ids_of_texts(run.topics, queries, run.name, ignore_case)
    return None if ids is None else Run(renamed(run.table, ids), run.name, run.tag)


def renamed(table: RowTable, ids: Mapping[str, str]) -> RowTable:
    """A table with other topic names; two names may become the same topic."""
    places: dict[str, int] = {}
    moved = [places.setdefault(ids[name], len(places)) for name in table.topics.text()]
    return replace(table, topics=Strings.of_text(list(places)), topic=np.array(moved, np.int32)[table.topic])


def joined_in_words(name: str, number: int) -> str:
    """A note that topics were joined by their queries."""
    return f"{name} names its {counted(number, 'topic')} by what they ask; they are joined with the topics by that text"

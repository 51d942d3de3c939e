"""Tables with named columns (CSV, JSON, Parquet, frames, named tuples): which column has which role, and rows → columns.

If two columns fit a role, the column of ids wins over the one that may contain text: PyTerrier's frames have
`qid` and `query`, `docno` and `docid`. Rows as Python objects are slow compared to kernels and frames, but the only
way for text that has to be unquoted first.
"""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import BadLineError, DataError, FormatError
from cranfield.base.kernels import FieldNumbers, LineFault, RowTable, Strings, encode, named
from cranfield.formats.format import BOTH, NOUNS, USUAL, Fields, Kind, Kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cranfield.base.kernels.table import Buffer


ROLES: dict[str, tuple[str, ...]] = {  # the usual names of each column
    role: tuple(names.split())
    for role, names in {
        "topic": "query_id qid q_id queryid topic_id topicid topic query query_text search_term keyword",
        "document": "docno doc_id docid document_id corpus_id passage_id pid doc document sku product_id productid asin "
        "item_id itemid article_id page_id product item url",
        "grade": "relevance grade label rel gain judgment judgement relevance_grade relevance_label score "
        "rating stars clicks",  # those after score count as grades only if no other column does
        "score": "score sim similarity _score retrieval_score similarity_score",
        "rank": "rank position",
        "tag": "tag run_tag runtag run_id runid",
        "iteration": "iteration iter subtopic subtopic_id intent group",
    }.items()
}
TOPIC, DOCUMENT, GRADE, SCORE, RANK, TAG, ITERATION = ROLES.values()
EVENTS = {"topic", "document", "grade", "time", "id"}  # the columns that every CSV of `judge export` has
EVENTS_MIXED = {"kind", "source"}  # the columns that it has if its rows differ in kind
OF_TOPICS = ("query", "description", "narrative")  # further columns of a table of topics
PLAINLY_GRADES, PERHAPS_GRADES = GRADE[: GRADE.index("score")], GRADE[GRADE.index("score") + 1 :]

HEADERS: dict[Kind, tuple[str, ...]] = {
    "run": ("query_id", "doc_id", "rank", "score", "tag"),
    "qrels": ("query_id", "iteration", "doc_id", "relevance"),
}
CHUNK = 4096  # rows handled at a time
HUGE = 1e300


# which column is which


class NamedColumns(NamedTuple):
    """The names of the columns that an evaluation needs."""

    topic: str
    document: str
    value: str
    label: str | None
    descending: bool  # False if the value is a rank

    @property
    def used(self) -> list[str]:
        """The names of topic, document, value and, if there is one, label."""
        return [name for name in self[:4] if name is not None]


NAMELESS = NamedColumns("", "", "", None, True)


def _plain(name: object) -> str:
    return str(name).strip().lower().replace("-", "_").replace(" ", "_")


def _pick(names: Sequence[str], plain: dict[str, str]) -> str | None:
    return next((plain[name] for name in names if name in plain), None)


def _names(role: str, fields: Fields) -> Sequence[str]:
    """The possible names of a column: those in `fields`, or else its usual names; no rank if a score is named."""
    own = fields.get(role)
    if own is None:
        return () if {"score": "rank", "rank": "score"}.get(role) in fields else ROLES[role]
    return [_plain(name) for name in ([own] if isinstance(own, str) else own)]


def refuse_unknown(fields: Fields) -> None:
    """Raise FormatError for a role that does not exist."""
    for role in fields:
        if role not in ROLES and role not in OF_TOPICS:
            raise FormatError(f"no column is the {role!r}; fields name {', '.join([*ROLES, *OF_TOPICS])}")


def kinds_of(names: Iterable[object], fields: Fields = USUAL) -> Kinds:
    """What a table with these columns may hold.

    >>> sorted(kinds_of(["qid", "docno", "label"]))
    ['qrels']
    """
    plain = {_plain(name): str(name) for name in names}
    if _pick(_names("topic", fields), plain) is None or _pick(_names("document", fields), plain) is None:
        return frozenset()
    graded = _pick(_names("grade", fields) if "grade" in fields else PLAINLY_GRADES, plain) is not None
    ranks = [name for name in _names("rank", fields) if "rank" in fields or name == "rank"]
    scored = _pick((*_names("score", fields), *ranks), plain) is not None
    if graded:
        return BOTH if scored else frozenset({"qrels"})
    if scored:
        return BOTH if "score" in plain and not {*ranks, *TAG} & plain.keys() else frozenset({"run"})
    perhaps: dict[Kind, Sequence[str]] = {
        "qrels": () if "grade" in fields else PERHAPS_GRADES,
        "run": _names("rank", fields),
    }
    return frozenset(kind for kind, candidates in perhaps.items() if _pick(candidates, plain) is not None)


def names_columns(names: Iterable[object], ids_only: bool, fields: Fields = USUAL) -> bool:
    """Whether these are names of columns rather than of topics; if all values are ids, a document column is needed too."""
    plain = {_plain(name): str(name) for name in names}
    if ids_only:
        return all(_pick(_names(role, fields), plain) is not None for role in ("topic", "document"))
    return any(_pick(_names(role, fields), plain) for role in ("topic", "document", "score", "rank", "grade"))


def is_header(names: Sequence[str], fields: Fields = USUAL) -> bool:
    """Whether a line contains usual column names, or names in `fields`."""
    usual = {name for role in ROLES for name in _names(role, fields)}
    return len(names) > 2 and any(_plain(name) in usual for name in names)


def refuse_events(names: Iterable[str], where: str) -> None:
    """Refuse CSV of a log that contains more than labels of people."""
    mixed = EVENTS_MIXED & set(names)
    if mixed and set(names) >= EVENTS:
        problem = f"holds events of a log, whose column {max(mixed)} says which are labels of people"
        raise FormatError(f"{where}: {problem}; make qrels of the log: cranfield judge export LOG --to qrels")


def find(names: Iterable[object], kind: Kind, where: str, fields: Fields = USUAL) -> NamedColumns:
    """The columns of a run or of qrels; FormatError lists missing and present columns.

    >>> find(["qid", "query", "docid", "docno", "rank", "score"], "run", "frame")[:3]
    ('qid', 'docno', 'score')
    >>> find(["search", "sku", "stars"], "qrels", "frame", {"topic": "search"})[:3]
    ('search', 'sku', 'stars')
    """
    refuse_unknown(fields)
    listed = [str(name) for name in names]
    plain: dict[str, str] = {}
    for name in listed:
        if _plain(name) in plain:
            raise FormatError(f"{where}: two columns are called {_plain(name)!r}; keep one of them")
        plain[_plain(name)] = name
    if kind == "qrels" and not fields:
        refuse_events(plain, where)
    kinds = kinds_of(listed, fields)
    if kinds and kind not in kinds:
        expected, role = ("'relevance'", "grade") if kind == "qrels" else ("'score' or 'rank'", "score")
        raise FormatError(
            f"{where}: looks like {NOUNS[min(kinds)]} ({', '.join(listed)}), expected {NOUNS[kind]} with a column {expected}; "
            f"--field {role}=COLUMN names another"
        )
    topic, document, grade, score, rank, tag, iteration = (_pick(_names(role, fields), plain) for role in ROLES)
    value = grade if kind == "qrels" else score or rank
    if topic is None or document is None or value is None:
        what = "grade" if kind == "qrels" else "rank" if "rank" in fields and "score" not in fields else "score"
        by_role = {"topic": topic, "document": document, what: value}
        raise _missing([role for role, name in by_role.items() if name is None], listed, where, fields)
    if kind == "qrels":
        return NamedColumns(topic, document, value, iteration, True)
    return NamedColumns(topic, document, value, tag, score is not None)


def _missing(roles: list[str], listed: list[str], where: str, fields: Fields) -> FormatError:
    """The error that lists missing and present columns, and how to name them."""
    usual = {**ROLES, "score": (*SCORE[:3], *RANK)}
    missing = []
    for role in roles:
        own = fields.get(role)
        names = usual[role][:4] if own is None else [own] if isinstance(own, str) else own
        missing.append(f"the {role} ({'such as ' if own is None else ''}{', '.join(names)})")
    advice = f"name {'it' if len(roles) == 1 else 'them'} by {' '.join(f'--field {role}=COLUMN' for role in roles)}"
    present = ", ".join(listed) or "none"
    return FormatError(f"{where}: no column for {', '.join(missing)}; found {present:.200}; {advice}")


# rows


def quick_table(
    buffer: Buffer, start: int, separator: str, names: Sequence[str], kind: Kind, where: str, fields: Fields = USUAL
) -> RowTable | None:
    """Read delimited rows or (without separator) JSON objects with a kernel; None if any row is unusual.

    After None the caller reads the rows again in Python, which reports what is wrong.
    """
    columns = find(names, kind, where, fields)
    topic, document, value, label = (-1 if name is None else names.index(name) for name in columns[:4])
    numbers = FieldNumbers(topic, document, value, label, columns.descending)
    return named(buffer, start, separator.encode(), [encode(name) for name in names], numbers)


class RowCollector:
    """Collects rows one by one; topics and labels are numbered in order of appearance."""

    def __init__(self, kind: Kind, where: str, lenient: bool = False, columns: NamedColumns = NAMELESS) -> None:
        self.columns = columns
        self.kind = kind
        self.where = where
        self.lenient = lenient
        self._numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})  # numbers of the topics and labels
        self._topics: dict[bytes, int] = {}
        self._labels: dict[bytes, int] = {}
        self._topic, self._label, self._value = array("i"), array("i"), array("d")
        self._documents: list[bytes] = []
        self._skipped: list[LineFault] = []

    def add(self, topic: bytes, document: bytes, value: float, label: bytes | None) -> None:
        """Append one row."""
        self._topic.append(self._topics.setdefault(topic, len(self._topics)))
        self._documents.append(document)
        self._value.append(value if self.columns.descending else -value)
        if label is not None:
            self._label.append(self._labels.setdefault(label, len(self._labels)))

    def add_columns(
        self, topics: Sequence[str], documents: Sequence[str], values: Sequence[float], labels: Sequence[str]
    ) -> None:
        """Append many rows whose values were checked; `labels` may be empty."""
        self._topic.extend(_numbered(topics, self._numbers[0], self._topics))
        self._label.extend(_numbered(labels, self._numbers[1], self._labels))
        try:
            self._documents.extend(map(str.encode, documents))
        except UnicodeEncodeError:
            del self._documents[len(self._value) :]
            self._documents.extend(map(encode, documents))
        self._value.extend(values if self.columns.descending else [-value for value in values])

    def bad(self, line: int, problem: str) -> None:
        """Raise BadLineError for a bad row, or count it if lenient."""
        if not self.lenient:
            raise BadLineError(self.where, line, problem)
        self._skipped.append(LineFault(line, "value"))

    def table(self) -> RowTable:
        """The columns."""
        return RowTable(
            Strings.of(self._topics),
            np.array(self._topic, np.int32),
            Strings.of(self._documents),
            np.array(self._value, np.float64),
            Strings.of(self._labels),
            np.array(self._label, np.int32),
            np.zeros(0, np.int64),
            self._skipped,
        )


def _numbered(names: Sequence[str], by_name: dict[str, int], numbers: dict[bytes, int]) -> Iterator[int]:
    for name in dict.fromkeys(names):
        if name not in by_name:
            by_name[name] = numbers.setdefault(encode(name), len(numbers))
    return map(by_name.__getitem__, names)


def id_of(value: Any) -> bytes:
    """An id as bytes: text as it is, an integer as its digits; DataError for anything else."""
    if isinstance(value, str):
        return encode(value)
    if isinstance(value, bytes):
        return value
    try:
        if not isinstance(value, bool) and type(value).__name__ != "bool_":
            return b"%d" % operator.index(value)
    except TypeError:
        pass
    raise DataError(f"expected an id (text or a whole number), found {value!r:.60}")


def number_of(value: Any, kind: Kind) -> float:
    """A score or a grade: not NaN, and finite in qrels; DataError for anything else."""
    refused = (str, bytes, bool) if kind == "run" else (str, bytes)
    try:
        number = math.nan if isinstance(value, refused) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if number != number or (kind == "qrels" and math.isinf(number)):
        raise DataError(f"expected a number as its {'score' if kind == 'run' else 'grade'}, found {value!r:.60}")
    return number


def is_row(value: Any) -> bool:
    """Whether a value is one row: a mapping of names to plain values, or a named tuple."""
    if isinstance(value, tuple):
        return hasattr(value, "_fields")
    return (
        isinstance(value, Mapping)
        and bool(value)
        and not any(isinstance(each, (Mapping, list, tuple, np.ndarray)) for each in value.values())
    )


def table_of_rows(
    rows: Iterable[tuple[int, Any]], kind: Kind, where: str, lenient: bool = False, fields: Fields = USUAL
) -> RowTable:
    """Columns from numbered rows, each a mapping or a named tuple; the first row decides the column names."""
    gathered: RowCollector | None = None
    numbered = _as_mappings(rows, where)
    while chunk := list(islice(numbered, CHUNK)):
        if gathered is None:
            line, row = chunk[0]
            gathered = RowCollector(kind, where, lenient, find(row, kind, f"{where}:{line}", fields))
        if not _added_at_once(gathered, chunk):
            for line, row in chunk:
                _add(gathered, line, row)
    return (gathered or RowCollector(kind, where)).table()


def _added_at_once(gathered: RowCollector, chunk: list[tuple[int, Mapping[str, Any]]]) -> bool:
    """Append rows of the usual types column by column; if any row is unusual, append nothing and return False."""
    try:
        topics, documents, values, *labels = [[row[name] for _, row in chunk] for name in gathered.columns.used]
    except KeyError:
        return False
    ids = {*map(type, topics), *map(type, documents), *(type(label) for column in labels for label in column)}
    if ids != {str} or not {*map(type, values)} <= {float, int}:
        return False
    if not all(-HUGE < value < HUGE for value in values):  # NaN, infinite, or a whole number beyond any double
        return False
    gathered.add_columns(topics, documents, values, labels[0] if labels else ())
    return True


def _add(gathered: RowCollector, line: int, row: Mapping[str, Any]) -> None:
    names, kind = gathered.columns, gathered.kind
    try:
        label = None if names.label is None else id_of(row[names.label])
        gathered.add(id_of(row[names.topic]), id_of(row[names.document]), number_of(row[names.value], kind), label)
    except KeyError as error:
        gathered.bad(line, f"expected a field {error.args[0]!r} as in the first row, found {', '.join(row)}")
    except DataError as error:
        gathered.bad(line, str(error))


def _as_mappings(rows: Iterable[tuple[int, Any]], where: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for line, row in rows:
        if isinstance(row, Mapping):
            yield line, row
        elif hasattr(row, "_fields"):
            yield line, dict(zip(row._fields, row, strict=True))
        else:
            raise FormatError(f"{where}:{line}: expected a row with named fields, found {row!r:.60}")

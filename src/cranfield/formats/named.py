"""Columns with names, for CSV, JSON rows, Parquet, frames and lists of named tuples: which is which, and rows → columns.

Where there are two candidates the one that holds an id wins over the one that may hold text: PyTerrier's frames have
`qid` and `query`, `docno` and `docid`. Rows that are one Python object each are slow beside the kernels and the frames,
and the only way for text that has to be unquoted first.
"""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.errors import BadLineError, DataError, FormatError
from cranfield.formats.format import BOTH, NOUNS, USUAL, Fields, Kind, Kinds
from cranfield.kernels import Fault, Strings, Table, Wanted, encode, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cranfield.kernels.table import Buffer


TOPIC = (
    "query_id",
    "qid",
    "q_id",
    "queryid",
    "topic_id",
    "topicid",
    "topic",
    "query",
    "query_text",
    "search_term",
    "keyword",
)
DOCUMENT = (
    *("docno", "doc_id", "docid", "document_id", "corpus_id", "passage_id", "pid", "doc", "document"),
    *("sku", "product_id", "productid", "asin", "item_id", "itemid", "article_id", "page_id", "product", "item", "url"),
)
SCORE = ("score", "sim", "similarity", "_score", "retrieval_score", "similarity_score")
RANK = ("rank", "position")
GRADE = (
    *(
        "relevance",
        "grade",
        "label",
        "rel",
        "gain",
        "judgment",
        "judgement",
        "relevance_grade",
        "relevance_label",
        "score",
    ),
    *("rating", "stars", "clicks"),  # the grade only where nothing else is
)
EVENTS = {"topic", "document", "grade", "time", "id"}  # columns that no CSV of `judge export` lacks
EVENTS_MIXED = {"kind", "source"}  # and those that it has where not all rows are alike
TAG = ("tag", "run_tag", "runtag", "run_id", "runid")
ITERATION = ("iteration", "iter", "subtopic", "subtopic_id", "intent", "group")
ROLES = {
    "topic": TOPIC,
    "document": DOCUMENT,
    "grade": GRADE,
    "score": SCORE,
    "rank": RANK,
    "tag": TAG,
    "iteration": ITERATION,
}
OF_TOPICS = ("query", "description", "narrative")  # what a table of topics has besides
PLAINLY_GRADES, PERHAPS_GRADES = GRADE[: GRADE.index("score")], GRADE[GRADE.index("score") + 1 :]

HEADERS: dict[Kind, tuple[str, ...]] = {
    "run": ("query_id", "doc_id", "rank", "score", "tag"),
    "qrels": ("query_id", "iteration", "doc_id", "relevance"),
}
CHUNK = 4096  # rows handled at a time
HUGE = 1e300


# which column is which


class Columns(NamedTuple):
    """The columns of a table that hold what an evaluation needs, by their own names."""

    topic: str
    document: str
    value: str
    label: str | None
    descending: bool  # False where the value is a rank

    @property
    def used(self) -> list[str]:
        """The names: topic, document, value and, where there is one, label."""
        return [name for name in self[:4] if name is not None]


NAMELESS = Columns("", "", "", None, True)


def _plain(name: object) -> str:
    return str(name).strip().lower().replace("-", "_").replace(" ", "_")


def _pick(wanted: Sequence[str], plain: dict[str, str]) -> str | None:
    return next((plain[name] for name in wanted if name in plain), None)


def _names(role: str, fields: Fields) -> Sequence[str]:
    """What a column may be called: as `fields` say, or else by its usual names; none for the rank of a named score."""
    given = fields.get(role)
    if given is None:
        return () if {"score": "rank", "rank": "score"}.get(role) in fields else ROLES[role]
    return [_plain(name) for name in ([given] if isinstance(given, str) else given)]


def refuse_unknown(fields: Fields) -> None:
    """Stop at a role that no column has."""
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
    return frozenset(kind for kind, wanted in perhaps.items() if _pick(wanted, plain) is not None)


def names_columns(names: Iterable[object], ids_only: bool, fields: Fields = USUAL) -> bool:
    """Whether these are names of columns and not of topics; columns that all hold ids need one for the document too."""
    plain = {_plain(name): str(name) for name in names}
    if ids_only:
        return all(_pick(_names(role, fields), plain) is not None for role in ("topic", "document"))
    return any(_pick(_names(role, fields), plain) for role in ("topic", "document", "score", "rank", "grade"))


def is_header(names: Sequence[str], fields: Fields = USUAL) -> bool:
    """Whether a line names columns, some of them as usual or as `fields` say, if not all that are needed."""
    known = {name for role in ROLES for name in _names(role, fields)}
    return len(names) > 2 and any(_plain(name) in known for name in names)


def refuse_events(names: Iterable[str], where: str) -> None:
    """Stop at CSV of a log whose columns say that not every row is a label of a person."""
    mixed = EVENTS_MIXED & set(names)
    if mixed and set(names) >= EVENTS:
        told = f"holds events of a log, whose column {max(mixed)} says which are labels of people"
        raise FormatError(f"{where}: {told}; make qrels of the log: cranfield judge export LOG --to qrels")


def find(names: Iterable[object], kind: Kind, where: str, fields: Fields = USUAL) -> Columns:
    """The columns that hold a run or qrels; FormatError says which are missing and what was found.

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
        wanted, role = ("'relevance'", "grade") if kind == "qrels" else ("'score' or 'rank'", "score")
        raise FormatError(
            f"{where}: looks like {NOUNS[min(kinds)]} ({', '.join(listed)}), expected {NOUNS[kind]} with a column {wanted}; "
            f"--field {role}=COLUMN names another"
        )
    topic, document, grade, score, rank, tag, iteration = (_pick(_names(role, fields), plain) for role in ROLES)
    value = grade if kind == "qrels" else score or rank
    if topic is None or document is None or value is None:
        what = "grade" if kind == "qrels" else "rank" if "rank" in fields and "score" not in fields else "score"
        found = {"topic": topic, "document": document, what: value}
        raise _missing([role for role, name in found.items() if name is None], listed, where, fields)
    if kind == "qrels":
        return Columns(topic, document, value, iteration, True)
    return Columns(topic, document, value, tag, score is not None)


def _missing(roles: list[str], listed: list[str], where: str, fields: Fields) -> FormatError:
    """The columns that are missing, those found, and how to say which is which."""
    usual = {**ROLES, "score": (*SCORE[:3], *RANK)}
    shown = []
    for role in roles:
        given = fields.get(role)
        names = usual[role][:4] if given is None else [given] if isinstance(given, str) else given
        shown.append(f"the {role} ({'such as ' if given is None else ''}{', '.join(names)})")
    advice = f"name {'it' if len(roles) == 1 else 'them'} by {' '.join(f'--field {role}=COLUMN' for role in roles)}"
    found = ", ".join(listed) or "none"
    return FormatError(f"{where}: no column for {', '.join(shown)}; found {found:.200}; {advice}")


# rows


def quick_table(
    buffer: Buffer, start: int, separator: str, names: Sequence[str], kind: Kind, where: str, fields: Fields = USUAL
) -> Table | None:
    """The rows from `start` on, separated values or (no separator) objects with fields of these names; None if any is odd.

    A kernel reads what is usual; whoever is told None reads it again with care, and says what is wrong.
    """
    columns = find(names, kind, where, fields)
    topic, document, value, label = (-1 if name is None else names.index(name) for name in columns[:4])
    wanted = Wanted(topic, document, value, label, columns.descending)
    return named(buffer, start, separator.encode(), [encode(name) for name in names], wanted)


class Gathered:
    """Rows gathered one by one; topics and labels are numbered as they first appear."""

    def __init__(self, kind: Kind, where: str, lenient: bool = False, columns: Columns = NAMELESS) -> None:
        self.columns = columns
        self.kind = kind
        self.where = where
        self.lenient = lenient
        self._known: tuple[dict[str, int], dict[str, int]] = ({}, {})  # topics and labels met in columns
        self._topics: dict[bytes, int] = {}
        self._labels: dict[bytes, int] = {}
        self._topic, self._label, self._value = array("i"), array("i"), array("d")
        self._documents: list[bytes] = []
        self._skipped: list[Fault] = []

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
        """Append many rows whose values are known to be good; no labels where there are none."""
        self._topic.extend(_numbered(topics, self._known[0], self._topics))
        self._label.extend(_numbered(labels, self._known[1], self._labels))
        try:
            self._documents.extend(map(str.encode, documents))
        except UnicodeEncodeError:
            del self._documents[len(self._value) :]
            self._documents.extend(map(encode, documents))
        self._value.extend(values if self.columns.descending else [-value for value in values])

    def bad(self, line: int, problem: str) -> None:
        """Stop at a bad row, or note it and go on if lenient."""
        if not self.lenient:
            raise BadLineError(self.where, line, problem)
        self._skipped.append(Fault(line, "value"))

    def table(self) -> Table:
        """The columns."""
        return Table(
            Strings.of(self._topics),
            np.array(self._topic, np.int32),
            Strings.of(self._documents),
            np.array(self._value, np.float64),
            Strings.of(self._labels),
            np.array(self._label, np.int32),
            np.zeros(0, np.int64),
            self._skipped,
        )


def _numbered(names: Sequence[str], known: dict[str, int], numbers: dict[bytes, int]) -> Iterator[int]:
    for name in dict.fromkeys(names):
        if name not in known:
            known[name] = numbers.setdefault(encode(name), len(numbers))
    return map(known.__getitem__, names)


def id_of(value: Any) -> bytes:
    """An id's bytes: text as it is, a whole number as its digits; anything else is a DataError."""
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
    """A score or a grade: a number that is not NaN, and finite in qrels; anything else is a DataError."""
    refused = (str, bytes, bool) if kind == "run" else (str, bytes)
    try:
        number = math.nan if isinstance(value, refused) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if number != number or (kind == "qrels" and math.isinf(number)):
        raise DataError(f"expected a number as its {'score' if kind == 'run' else 'grade'}, found {value!r:.60}")
    return number


def is_row(value: Any) -> bool:
    """Whether it is one row: a mapping of names to plain values, or a named tuple."""
    if isinstance(value, tuple):
        return hasattr(value, "_fields")
    return (
        isinstance(value, Mapping)
        and bool(value)
        and not any(isinstance(each, (Mapping, list, tuple, np.ndarray)) for each in value.values())
    )


def table_of_rows(
    rows: Iterable[tuple[int, Any]], kind: Kind, where: str, lenient: bool = False, fields: Fields = USUAL
) -> Table:
    """Columns from numbered rows, each a mapping or a named tuple; the first row's names count for all."""
    gathered: Gathered | None = None
    numbered = _as_mappings(rows, where)
    while chunk := list(islice(numbered, CHUNK)):
        if gathered is None:
            line, row = chunk[0]
            gathered = Gathered(kind, where, lenient, find(row, kind, f"{where}:{line}", fields))
        if not _added_at_once(gathered, chunk):
            for line, row in chunk:
                _add(gathered, line, row)
    return (gathered or Gathered(kind, where)).table()


def _added_at_once(gathered: Gathered, chunk: list[tuple[int, Mapping[str, Any]]]) -> bool:
    """Append rows of the usual types, column by column; False if any is unusual, and nothing is appended."""
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


def _add(gathered: Gathered, line: int, row: Mapping[str, Any]) -> None:
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

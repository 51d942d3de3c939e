"""Judgments: which documents are relevant to which topic, and how much.

Judgments are kept grouped by topic, topics in the order of their first judgment. A document may be
judged several times for a topic only under different labels (column 2: a subtopic, or a judgment
group); plain qrels that name a document twice are refused, because one of the two must be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from cranfield.base.errors import ConventionError, DataError, DuplicateError
from cranfield.base.kernels import Index, RowTable, Strings, decode
from cranfield.base.results import FIRST_TOPICS, preview
from cranfield.base.run import TextSource, refuse_null, table_of
from cranfield.base.text_layout import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from cranfield.base.kernels.table import Floats, Ints


Duplicates: TypeAlias = Literal["error", "first", "last", "best"]
DUPLICATES = ("error", "first", "last", "best")


class FileRow(NamedTuple):
    """A judgment in a file and the number of its line."""

    line: int
    topic: str
    document: str
    value: float


class Queries(Mapping[str, str]):
    """The query text of each topic, read at the first access. Topics without a query are left out.

    >>> Queries(lambda: {"301": "organized crime"}).get("302", "")
    ''
    """

    def __init__(self, read: Callable[[], Mapping[str, str]]) -> None:
        self._read = read

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return self._read()

    def __getitem__(self, topic: str) -> str:
        return self._texts[topic]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self._texts),)  # the function that reads them cannot be pickled


@dataclass(frozen=True)
class Extras:
    """Further data about a collection. A measure declares what it needs; an error names what is missing."""

    size: int | None = None  # documents in the whole collection
    groups: Mapping[str, Mapping[str, float]] | None = None  # document → {group: share}
    aspect: Mapping[str, Mapping[str, float]] | None = None  # topic → {document: grade of a second aspect}
    costs: Mapping[str, float] | None = None  # document → cost of reading it: seconds, or a length
    # (topic, document) → inclusion probability, stratum
    probabilities: Mapping[tuple[str, str], tuple[float, str]] | None = None
    preferences: Any = None  # formats.preferences.Preferences
    baseline: Any = None  # the Hits of the baseline of risk measures

    def over(self, other: Extras) -> Extras:
        """These values; where one is missing, the value of `other`.

        >>> Extras(size=9).over(Extras(size=5, costs={"d1": 2.5})).costs
        {'d1': 2.5}
        """
        return replace(other, **{name: value for name, value in vars(self).items() if value is not None})


class Qrels:
    """Judgments: which document is how relevant to which topic. Grades are real numbers.

    >>> qrels = Qrels({"q1": {"d1": 1, "d2": 0}, "q2": {"d7": 3}})
    >>> len(qrels), qrels.topics, qrels["q1"]
    (3, ['q1', 'q2'], {'d1': 1.0, 'd2': 0.0})

    A set holds relevant documents: grade 1 each.

    >>> Qrels({"q1": {"d1"}})["q1"]
    {'d1': 1.0}
    """

    def __init__(
        self,
        source: Mapping[str, Mapping[str, float] | AbstractSet[str]] | TextSource | RowTable,
        name: str = "qrels",
        duplicates: Duplicates = "error",
        file_rows: Callable[[], Iterable[FileRow] | None] = lambda: None,
        where: str = "",
    ) -> None:
        if duplicates not in DUPLICATES:
            raise ConventionError(f"duplicates must be one of {', '.join(DUPLICATES)}, got {duplicates!r}")
        self.name = name
        self.where = where or name  # the file of the judgments
        self.file_rows = file_rows  # reads the file again to find the line of an error
        self.extras = Extras()
        self.relevant_from: float | None = None  # the lowest relevant grade of the collection, if it is not 1
        self.corpus: Callable[[], Iterator[str]] | None = None  # the ids of the collection's documents, if there is one
        self.explained = False  # whether the collection explains its grades, and so which of them are relevant
        self.workspace: str | None = None  # the folder that the judgments belong to, with its topics and runs
        self.remarks: list[str] = []  # how several labels were aggregated into the grades
        self._text = source if isinstance(source, TextSource) else None
        if not isinstance(source, (Mapping, TextSource, RowTable)):
            raise DataError(f"qrels are made from {{topic: {{document: grade}}}}, found {type(source).__name__}")
        graded = _graded(source) if isinstance(source, Mapping) else source
        refuse_null(graded, name)
        table = table_of(graded, "qrels", "grade")
        if (np.diff(table.topic) < 0).any():
            table = table.take(np.argsort(table.topic, kind="stable"))
        if duplicates != "error":
            table = without_duplicates(table, duplicates)
        self._names = table.topics
        self.topic: Ints = table.topic
        self.documents: Strings = table.documents
        self.grade: Floats = table.value
        self.labels = table.labels
        self.label: Ints = table.label
        self._start = table.start
        self.skipped = table.skipped
        self.index = Index(self._names, self.topic, self.documents)
        self._refuse_duplicates()

    def _refuse_duplicates(self) -> None:
        again = np.flatnonzero(self.index.first != np.arange(len(self.topic)))
        if not len(again):
            return
        labelled = len(self.label) > 0
        keys = set()
        rows = np.union1d(again, self.index.first[again])
        for row in rows.tolist():
            key = (int(self.index.first[row]), int(self.label[row]) if labelled else 0)
            if key in keys:
                self._stop_at(row)
            keys.add(key)

    def _stop_at(self, row: int) -> None:
        topic, document = decode(self._names[int(self.topic[row])]), decode(self.documents[row])
        where, line = self.name, row + 1
        problem = f"document {document!r} is judged twice for topic {topic!r}"
        if self._text is not None:
            where, line = self._text.where, self._text.line(int(self._start[row]))
        elif (rows := self.file_rows()) is not None:
            lines = [each.line for each in rows if (each.topic, each.document) == (topic, document)]
            if len(lines) > 1:
                where, line, problem = self.where, lines[1], f"{problem}, first on line {lines[0]}"
        raise DuplicateError(where, line, problem)

    def line_of_grade(self, grade: float) -> int | None:
        """The first line of the file with this grade; None if the judgments come from no file."""
        if self._text is not None:
            rows = np.flatnonzero(self.grade == grade)
            return self._text.line(int(self._start[rows].min())) if len(rows) else None
        return next((row.line for row in self.file_rows() or () if row.value == grade), None)

    def lines(self) -> list[int] | None:
        """The line of each judgment in its file; None if the judgments come from no file of lines."""
        if self._text is None:
            return None
        ends = np.flatnonzero(np.frombuffer(self._text.buffer, np.uint8) == ord("\n"))
        return [int(place) + 1 for place in np.searchsorted(ends, self._start)]

    @property
    def from_text(self) -> bool:
        """Whether the judgments come from a file of white-space separated lines."""
        return self._text is not None

    @property
    def table(self) -> RowTable:
        """The judgments as columns, grouped by topic."""
        columns = (self._names, self.topic, self.documents, self.grade, self.labels, self.label)
        return RowTable(*columns, skipped=self.skipped)

    @cached_property
    def topics(self) -> list[str]:
        """The judged topics, in the order of their first judgment."""
        return self._names.text()

    def __len__(self) -> int:
        return len(self.topic)

    def __iter__(self) -> Iterator[str]:
        return iter(self.topics)

    def __contains__(self, topic: object) -> bool:
        return topic in self.topics

    def __getitem__(self, topic: str) -> dict[str, float]:
        if topic not in self.topics:
            raise DataError(f"{self.name}: no topic {topic!r}; it has {len(self.topics)} others")
        rows = np.flatnonzero(self.topic == self.topics.index(topic))
        return {decode(self.documents[int(i)]): float(self.grade[i]) for i in rows}

    def to_dict(self) -> dict[str, dict[str, float]]:
        """The judgments as `{topic: {document: grade}}`."""
        answer: dict[str, dict[str, float]] = {topic: {} for topic in self.topics}
        for t, document, grade in zip(self.topic.tolist(), self.documents, self.grade.tolist(), strict=True):
            answer[self.topics[t]][decode(document)] = grade
        return answer

    def _repr_html_(self) -> str:
        """The view of a notebook: counts, and the number of documents of each grade for the first topics."""
        caption = f"Qrels {self.name}: {counted(len(self.topics), 'topic')}, {counted(len(self), 'judgment')}"
        rows = []
        for number, topic in enumerate(self.topics[:FIRST_TOPICS]):
            grades = self.grade[self.topic == number]
            each = (f"{grade:g}: {(grades == grade).sum():,}" for grade in np.unique(grades)[::-1].tolist())
            rows.append([topic, f"{len(grades):,}", ", ".join(each)])
        return preview(caption, ["topic", "judgments", "of each grade"], rows, len(self.topics))

    def __repr__(self) -> str:
        return f"<Qrels {self.name}: {len(self.topics)} topics, {len(self)} judgments>"


def _graded(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """The mapping with each set of relevant documents as `{document: 1}`."""
    if not any(isinstance(documents, (set, frozenset)) for documents in source.values()):
        return source
    return {
        topic: dict.fromkeys(sorted(documents, key=str), 1) if isinstance(documents, (set, frozenset)) else documents
        for topic, documents in source.items()
    }


def without_duplicates(table: RowTable, which: Duplicates) -> RowTable:
    """The rows with one per topic, document and label: the first, the last or the one with the best grade."""
    if (np.diff(table.topic) < 0).any():
        table = table.take(np.argsort(table.topic, kind="stable"))
    index = Index(table.topics, table.topic, table.documents)
    if (index.first == np.arange(len(table.topic))).all():
        return table
    labels = table.label.tolist() if len(table.label) else [0] * len(table.topic)
    counts: dict[tuple[int, int], int] = {}
    for row, key in enumerate(zip(index.first.tolist(), labels, strict=True)):
        other = counts.get(key)
        if other is None or which == "last" or (which == "best" and table.value[row] > table.value[other]):
            counts[key] = row
    return table.take(np.array(list(counts.values()), np.int64))

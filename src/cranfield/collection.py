"""A test collection: documents, topics (what was asked) and judgments (what is right).

Judgments are kept grouped by topic, topics in the order of their first judgment. A document may be
judged several times for a topic only under different labels (column 2: a subtopic, or a judgment
group); plain qrels that name a document twice are refused, because one of the two must be wrong.
A `Collection` holds no document: it reads them again, one by one, each time it is asked for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import DataError, DuplicateError
from cranfield.kernels import Index, Strings, Table, decode
from cranfield.run import Text, table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cranfield.kernels.table import Floats, Ints


@dataclass(frozen=True, slots=True)
class Document:
    """What a system searches: an id, a title, a text, and whatever else is known of it (author, url, date …).

    >>> Document("471", title="wing flutter").text
    ''
    """

    id: str
    title: str = ""
    text: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Topic:
    """What was asked: the title is what one types, description and narrative are what an assessor judges by.

    >>> Topic("301", "organized crime", description="Identify organisations that …").title
    'organized crime'
    """

    id: str
    title: str
    description: str = ""
    narrative: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


class Queries(Mapping[str, str]):
    """The text of each topic's query, read when it is first asked for; topics without one are not in it.

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
        return dict, (dict(self._texts),)  # what reads them does not travel


@dataclass(frozen=True, slots=True)
class Grade:
    """What a grade is called, and when an assessor gives it."""

    label: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Aspect:
    """What an assessor is asked beside the grade: by whom to be trusted, how easy to read; a label of its own.

    >>> [Aspect("trust", "Can it be trusted?", {0: Grade("no")}, from_grade=1).asked_at(grade) for grade in (0, 1)]
    [False, True]
    """

    name: str
    question: str
    grades: Mapping[float, Grade]
    from_grade: float | None = None  # the lowest grade at which it is asked; None: at each

    def asked_at(self, grade: float) -> bool:
        """Whether a grade calls for it."""
        return self.from_grade is None or grade >= self.from_grade


@dataclass(frozen=True)
class Extras:
    """What else is known of a collection. A measure names what it needs, and stops with a clear error without it."""

    size: int | None = None  # documents in the whole collection
    groups: Mapping[str, Mapping[str, float]] | None = None  # document → {group: share}
    aspect: Mapping[str, Mapping[str, float]] | None = None  # topic → {document: grade of a second aspect}
    costs: Mapping[str, float] | None = None  # document → cost of reading it: seconds, or a length
    probabilities: Mapping[tuple[str, str], tuple[float, str]] | None = (
        None  # (topic, document) → sampled with, stratum
    )
    preferences: Any = None  # formats.preferences.Preferences
    baseline: Any = None  # the Hits of the run that a risk is measured against

    def over(self, other: Extras) -> Extras:
        """These, and what the other knows where these say nothing.

        >>> Extras(size=9).over(Extras(size=5, costs={"d1": 2.5})).costs
        {'d1': 2.5}
        """
        return replace(other, **{name: value for name, value in vars(self).items() if value is not None})


class Qrels:
    """Judgments: which document is how relevant to which topic. Grades are real numbers.

    >>> qrels = Qrels({"q1": {"d1": 1, "d2": 0}, "q2": {"d7": 3}})
    >>> len(qrels), qrels.topics, qrels["q1"]
    (3, ['q1', 'q2'], {'d1': 1.0, 'd2': 0.0})
    """

    def __init__(self, source: Mapping[str, Mapping[str, float]] | Text | Table, name: str = "qrels") -> None:
        self.name = name
        self.extras = Extras()
        self.relevant_from: float | None = None  # what its collection says, if it says anything but 1
        self.corpus: Callable[[], Iterator[Document]] | None = None  # the documents of its collection, if it has one
        self.remarks: list[str] = []  # how the grades came about, where they were made of several labels
        self._text = source if isinstance(source, Text) else None
        if not isinstance(source, (Mapping, Text, Table)):
            raise DataError(f"qrels are made from {{topic: {{document: grade}}}}, found {type(source).__name__}")
        table = table_of(source, "qrels", "grade")
        if (np.diff(table.topic) < 0).any():
            table = table.take(np.argsort(table.topic, kind="stable"))
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
        seen = np.union1d(again, self.index.first[again])
        for row in seen.tolist():
            key = (int(self.index.first[row]), int(self.label[row]) if labelled else 0)
            if key in keys:
                self._stop_at(row)
            keys.add(key)

    def _stop_at(self, row: int) -> None:
        topic, document = decode(self._names[int(self.topic[row])]), decode(self.documents[row])
        where, line = self.name, row + 1
        if self._text is not None:
            where, line = self._text.where, self._text.line(int(self._start[row]))
        raise DuplicateError(where, line, f"document {document!r} is judged twice for topic {topic!r}")

    @property
    def from_text(self) -> bool:
        """Whether they were read from lines with white space between their columns."""
        return self._text is not None

    @property
    def table(self) -> Table:
        """The judgments as columns, grouped by topic."""
        columns = (self._names, self.topic, self.documents, self.grade, self.labels, self.label)
        return Table(*columns, skipped=self.skipped)

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

    def __repr__(self) -> str:
        return f"<Qrels {self.name}: {len(self.topics)} topics, {len(self)} judgments>"


class Collection:
    """Documents, topics and judgments, with what their grades mean and how they came about.

    Topics and judgments are read when they are first asked for, documents anew with each call of `documents()`.

    >>> collection = Collection(
    ...     "toy",
    ...     documents=lambda: iter([Document("d1", text="wing flutter")]),
    ...     topics=lambda: [Topic("q1", "flutter")],
    ...     qrels=lambda: Qrels({"q1": {"d1": 1}}),
    ... )
    >>> collection, [document.id for document in collection.documents()], collection.qrels["q1"]
    (<Collection toy: 1 document, 1 topic, 1 judgment>, ['d1'], {'d1': 1.0})
    """

    def __init__(
        self,
        name: str,
        *,
        documents: Callable[[], Iterator[Document]],
        topics: Callable[[], Iterable[Topic]],
        qrels: Callable[[], Qrels],
        subtopics: Callable[[], Qrels | None] = lambda: None,
        grades: Mapping[float, Grade] | None = None,
        relevant_from: float = 1,
        aspects: Sequence[Aspect] = (),
        n_documents: int | None = None,
        meta: Mapping[str, Any] | None = None,
        path: str | None = None,
    ) -> None:
        self.name = name
        self.path = path  # the folder it lies in, if it lies in one
        self.grades: dict[float, Grade] = dict(sorted((grades or {}).items()))
        self.relevant_from = relevant_from
        self.aspects = tuple(aspects)  # what assessors are asked beside the grade
        self.meta: dict[str, Any] = dict(meta or {})  # all that collection.toml says
        self._documents, self._topics, self._qrels, self._subtopics = documents, topics, qrels, subtopics
        self._n_documents = n_documents

    def documents(self) -> Iterator[Document]:
        """The documents, one by one, in the collection's order."""
        return self._documents()

    @cached_property
    def topics(self) -> list[Topic]:
        """The topics, in the collection's order; some may be unjudged."""
        return list(self._topics())

    @cached_property
    def qrels(self) -> Qrels:
        """The judgments; empty where nothing is judged yet."""
        qrels = self._qrels()
        qrels.corpus = self.documents
        return qrels

    @cached_property
    def subtopics(self) -> Qrels | None:
        """The judgments by subtopic, for measures of diversity, if the collection has any."""
        return self._subtopics()

    @cached_property
    def n_documents(self) -> int:
        """How many documents there are; counted once if collection.toml does not say."""
        if self._n_documents is not None:
            return self._n_documents
        return sum(1 for _ in self.documents())

    @property
    def title(self) -> str:
        """What people call it."""
        return str(self.meta.get("title") or self.name)

    def __repr__(self) -> str:
        counts = ((self.n_documents, "document"), (len(self.topics), "topic"), (len(self.qrels), "judgment"))
        return f"<Collection {self.name}: {', '.join(f'{n:,} {word}{_s(n)}' for n, word in counts)}>"


def _s(count: int) -> str:
    return "" if count == 1 else "s"

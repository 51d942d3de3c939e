"""A test collection: documents, topics (information needs) and judgments (which documents are relevant).

A `Collection` holds no documents in memory: each call of `documents()` reads them again, one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cranfield.base.text_layout import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cranfield.base.card import CardTemplate
    from cranfield.base.qrels import Qrels


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a collection: an id, a title, a text and other fields (author, url, date …).

    >>> Document("471", title="wing flutter").text
    ''
    """

    id: str
    title: str = ""
    text: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Topic:
    """An information need: the title is the query; assessors judge by description and narrative.

    >>> Topic("301", "organized crime", description="Identify organisations that …").title
    'organized crime'
    """

    id: str
    title: str
    description: str = ""
    narrative: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Grade:
    """The label of a grade, and its meaning for assessors."""

    label: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Aspect:
    """A further question to assessors, such as how trustworthy or readable a document is; its answer is a label of its own.

    >>> [Aspect("trust", "Can it be trusted?", {0: Grade("no")}, from_grade=1).asked_at(grade) for grade in (0, 1)]
    [False, True]
    """

    name: str
    question: str
    grades: Mapping[float, Grade]
    from_grade: float | None = None  # the lowest grade at which the question is asked; None: always

    def asked_at(self, grade: float) -> bool:
        """Whether the question is asked for documents of this grade."""
        return self.from_grade is None or grade >= self.from_grade


class Collection:
    """Documents, topics and judgments, with the meanings of grades and the origin of the collection.

    Topics and judgments are read at the first access, documents again with each call of `documents()`.

    >>> from cranfield import Qrels
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
        card: CardTemplate | None = None,
        n_documents: int | None = None,
        meta: Mapping[str, Any] | None = None,
        path: str | None = None,
    ) -> None:
        self.name = name
        self.path = path  # the folder of the collection, if it has one
        self.grades: dict[float, Grade] = dict(sorted((grades or {}).items()))
        self.relevant_from = relevant_from
        self.aspects = tuple(aspects)  # further questions to assessors
        self.card = card  # how a document is shown to assessors; None: title and text
        self.meta: dict[str, Any] = dict(meta or {})  # the content of collection.toml
        self._documents, self._topics, self._qrels, self._subtopics = documents, topics, qrels, subtopics
        self._n_documents = n_documents

    @property
    def explains_grades(self) -> bool:
        """Whether at least one grade has a label or a meaning."""
        return any(grade.label or grade.meaning for grade in self.grades.values())

    def documents(self) -> Iterator[Document]:
        """The documents, one by one, in the collection's order."""
        return self._documents()

    def document_ids(self) -> Iterator[str]:
        """The ids of the documents, one by one, in the collection's order."""
        return (document.id for document in self.documents())

    @cached_property
    def topics(self) -> list[Topic]:
        """The topics, in the collection's order; some may be unjudged."""
        return list(self._topics())

    @cached_property
    def qrels(self) -> Qrels:
        """The judgments; empty where nothing is judged yet."""
        qrels = self._qrels()
        qrels.corpus, qrels.explained = self.document_ids, self.explains_grades
        return qrels

    @cached_property
    def subtopics(self) -> Qrels | None:
        """The judgments by subtopic, for measures of diversity, if the collection has any."""
        return self._subtopics()

    @cached_property
    def n_documents(self) -> int:
        """The number of documents; counted once if collection.toml does not state it."""
        if self._n_documents is not None:
            return self._n_documents
        return sum(1 for _ in self.documents())

    @property
    def title(self) -> str:
        """The title in collection.toml, or else the name."""
        return str(self.meta.get("title") or self.name)

    def __repr__(self) -> str:
        counts = ((self.n_documents, "document"), (len(self.topics), "topic"), (len(self.qrels), "judgment"))
        return f"<Collection {self.name}: {', '.join(counted(n, word) for n, word in counts)}>"

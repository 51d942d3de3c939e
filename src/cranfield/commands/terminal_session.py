"""Judging at a terminal: one person, one log, document after document.

Documents come from the top of runs by a strategy, from a pool file, from a round of the log, or from a search. Before
each document the new events of the log are read. A label is added only if nobody else has labelled the document meanwhile,
unless several people are to judge each. The log holds all state, so a session continues where it stopped.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import cranfield
from cranfield.base.card import card_text, document_card
from cranfield.base.errors import ConventionError, DataError
from cranfield.base.notifications import say
from cranfield.base.parameters import shortened
from cranfield.base.text_layout import counted
from cranfield.commands.judging import read_guidelines
from cranfield.commands.pooling import Depths, session_options
from cranfield.formats.collection_folder import folder_of
from cranfield.formats.pool_files import PoolItem, read_pool
from cranfield.inputs.inputs import Inputs, refuse_second_stdin
from cranfield.inputs.logs import named
from cranfield.inputs.topics import topic_table
from cranfield.judging.current_labels import current_events
from cranfield.judging.event import RELEVANCE, Event, instant
from cranfield.judging.guidelines import Guidelines
from cranfield.judging.guidelines_history import keep_guidelines
from cranfield.judging.log_location import open_log
from cranfield.judging.policies import PEOPLE, decide
from cranfield.judging.round_plan import NoLease
from cranfield.judging.round_status import round_statuses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cranfield.base.collection import Collection, Grade
    from cranfield.formats.label_files import Judgment
    from cranfield.formats.topic_tables import TopicTable
    from cranfield.judging.log import Log
    from cranfield.judging.rounds import TopicChoice
    from cranfield.pooling.pool import Session
    from cranfield.pooling.text_features import TextFeatures


ANSWERS = ("judgment", "adjudication", "cannot-judge", "skip")


class Follower:
    """The events of a log, and those about each document; `refresh` reads new ones."""

    def __init__(self, log: Log, assessor: str) -> None:
        self.log = log
        self.assessor = assessor
        self.withdrawn: set[str] = set()
        self._events: dict[str, Event] = {}
        self._about: dict[tuple[str, str], list[Event]] = {}
        self._place = 0
        self.refresh()

    def refresh(self) -> list[Event]:
        """Read and return the new events; events that are read a second time are skipped."""
        place = self.log.place()
        fresh = [event for event in self.log.events(self._place) if event.id not in self._events]
        self._place = place
        for event in fresh:
            self._events[event.id] = event
            if event.kind == "withdrawal":
                self.withdrawn.add(event.refers)
            else:
                self._about.setdefault((event.topic, event.document), []).append(event)
        return fresh

    def labels(self, topic: str, document: str) -> list[Event]:
        """People's current labels of a document, including an adjudication."""
        events = [event for event in self._about.get((topic, document), ()) if event.id not in self.withdrawn]
        return people_labels(list(current_events(events).values()))

    def grade(self, topic: str, document: str) -> float | None:
        """The current grade: of an adjudication, else the latest."""
        labels = [label for label in self.labels(topic, document) if label.grade is not None]
        last = max(labels, key=lambda label: (label.kind == "adjudication", label.time, label.id), default=None)
        return None if last is None else last.grade

    def people(self, topic: str, document: str) -> set[str]:
        """The other people who have judged a document."""
        return others(self.labels(topic, document), self.assessor)

    def last(self, round: str) -> Event | None:
        """This person's last event that was not withdrawn, in this round, or outside of rounds if the name is empty."""
        own = [
            event
            for event in self._mine((*ANSWERS, "note"))
            if event.round == round and event.source == "human" and event.document
        ]
        return max(own, key=lambda event: (event.time, event.id), default=None)

    def answered_count(self, topic: str) -> int:
        """The number of documents of a topic that this person has answered or skipped."""
        return len({event.document for event in self._mine(ANSWERS) if event.topic == topic})

    def _mine(self, kinds: Sequence[str]) -> list[Event]:
        """This person's events of some kinds that were not withdrawn."""
        own = [event for event in self._events.values() if event.assessor == self.assessor and event.kind in kinds]
        return [event for event in own if event.id not in self.withdrawn]

    def elsewhere(self, since: str) -> set[str]:
        """The topics of other people's events since a time."""
        return {
            event.topic
            for event in self._events.values()
            if event.time >= since and event.assessor != self.assessor and event.source == "human"
        }


def people_labels(events: list[Event]) -> list[Event]:
    """People's labels of relevance, without repeats."""
    sides = ("judgment", "cannot-judge", "adjudication")
    labels = [event for event in events if event.kind in sides and event.aspect == RELEVANCE]
    return [event for event in labels if event.source in PEOPLE and not event.repeat]


def others(labels: list[Event], assessor: str) -> set[str]:
    """The other assessors who gave a grade."""
    return {label.assessor for label in labels if label.grade is not None and label.assessor != assessor}


LABELS = ("judgment", "cannot-judge")
SEARCH_RESULTS = 200  # of a query
AWAY = timedelta(minutes=30)  # time without an event after which a person counts as having left a topic


@dataclass(frozen=True)
class JudgingTask:
    """A document to judge, and where it was shown."""

    topic: str
    document: str
    list: str = ""
    rank: int | None = None
    round: str = ""
    repeat: bool = False


@dataclass
class JudgingProgress:
    """One person's progress: the events so far, the number of labels per document, their topic, and skipped documents."""

    follower: Follower
    overlap: int = 1
    deciding: bool = False  # whether the person adjudicates, so that their label is final
    topic: str | None = None
    skipped: set[tuple[str, str]] = field(default_factory=set)

    def settled(self, topic: str, document: str) -> bool:
        """Whether this person need not judge a document: they have, it is adjudicated, or enough others have."""
        labels = self.follower.labels(topic, document)
        if self.deciding:
            return any(label.kind == "adjudication" for label in labels)
        mine = any(label.assessor == self.follower.assessor or label.kind == "adjudication" for label in labels)
        return mine or len(others(labels, self.follower.assessor)) >= self.overlap

    def is_open(self, topic: str, document: str) -> bool:
        """Whether to show a document."""
        return (topic, document) not in self.skipped and not self.settled(topic, document)

    def in_turn(self, topics: Iterable[str], full: Callable[[str], bool] = lambda topic: False) -> list[str]:
        """The topics in the order to look for work: the current one, those without other people, the others."""
        busy = self.follower.elsewhere(instant(datetime.now(UTC) - AWAY))
        return sorted(topics, key=lambda topic: (full(topic), topic != self.topic, topic in busy))


class DocumentSource(ABC):
    """A source of documents to judge."""

    round = ""
    searches = False  # whether another query brings other documents
    guideline = ""
    scale: tuple[float, ...] = ()

    @abstractmethod
    def next(self, progress: JudgingProgress) -> JudgingTask | str:
        """The next document, or why there is none."""

    def start(self, progress: JudgingProgress) -> None:  # noqa: B027
        """Start from the labels in the log."""

    def learn(self, progress: JudgingProgress, fresh: list[Event]) -> None:  # noqa: B027
        """Take new events of the log into account."""

    def choices(self) -> list[TopicChoice]:
        """The topics that the person may choose; empty if people do not choose."""
        return []

    def choose(self, topic: str) -> None:  # noqa: B027
        """Go to a topic that the person chose."""

    @abstractmethod
    def status(self, progress: JudgingProgress) -> str:
        """The progress as text."""

    def close(self) -> None:  # noqa: B027
        """Release resources."""


class FromRuns(DocumentSource):
    """Documents that a strategy chooses from runs. After a withdrawal, the strategy starts again from the current labels."""

    def __init__(self, begin: Callable[[list[Judgment]], Session], labels: Callable[[], list[Judgment]]) -> None:
        self.begin = begin
        self.labels = labels
        self.session = begin([])

    def start(self, progress: JudgingProgress) -> None:
        self.session = self.begin([label for label in self.labels() if progress.settled(label.topic, label.document)])

    def learn(self, progress: JudgingProgress, fresh: list[Event]) -> None:
        if any(event.kind == "withdrawal" for event in fresh):
            self.start(progress)
            return
        candidates = self.session.rankings.candidates
        for event in fresh:
            inside = event.topic in candidates and event.document in candidates[event.topic].number
            if inside and progress.settled(event.topic, event.document):
                grade = progress.follower.grade(event.topic, event.document)
                if grade is not None:
                    self.session.judge(event.topic, event.document, grade)

    def next(self, progress: JudgingProgress) -> JudgingTask | str:
        topics, budget = self.session.rankings.topics, self.session.budget
        share = math.inf if budget is None else math.ceil(budget / max(1, len(topics)))

        def full(topic: str) -> bool:
            return len(self.session.labels.get(topic, {})) >= share

        for topic in progress.in_turn(topics, full):
            while (item := self.session.next(topic)) is not None:
                if progress.is_open(topic, item.document):
                    rank = progress.follower.answered_count(topic) + 1
                    return JudgingTask(topic, item.document, str(self.session.strategy), rank)
        return f"nothing is left to judge; {self.status(progress)}"

    def status(self, progress: JudgingProgress) -> str:
        session = self.session
        return f"{session.judged} labels so far, {session.relevant} relevant; {session.left} documents left"


class FromPool(DocumentSource):
    """The items of a pool file: the person's own if they are assigned, else all."""

    def __init__(self, items: list[PoolItem], name: str) -> None:
        pool = [item for item in items if item.priority] or items
        self.items: dict[str, list[PoolItem]] = {}
        for item in pool:
            self.items.setdefault(item.topic, []).append(item)
        self.name = name

    def next(self, progress: JudgingProgress) -> JudgingTask | str:
        for topic in progress.in_turn(self.items):
            for place, item in enumerate(self.items[topic], 1):
                if progress.is_open(topic, item.document):
                    return JudgingTask(topic, item.document, self.name, place)
        return f"nothing is left to judge; {self.status(progress)}"

    def status(self, progress: JudgingProgress) -> str:
        count = sum(map(len, self.items.values()))
        done = sum(progress.settled(item.topic, item.document) for items in self.items.values() for item in items)
        skipped = f", {len(progress.skipped)} skipped" if progress.skipped else ""
        return f"{done} of {count} documents of {self.name} are judged{skipped}"


class FromRound(DocumentSource):
    """Documents that a round of the log leases to a person."""

    def __init__(self, log: Log, name: str, assessor: str, texts: TextFeatures | None = None) -> None:
        self.log, self.assessor, self.texts = log, assessor, texts
        with log.reading() as transaction:
            plan, _ = transaction.find_round(name)
        self.round, self.guideline, self.scale = plan.name, plan.guideline, plan.scale

    def choices(self) -> list[TopicChoice]:
        from cranfield.judging.rounds import topic_choices

        choices = topic_choices(self.log, self.assessor, self.round)
        return [each for each in choices if each.left and not each.taken]

    def choose(self, topic: str) -> None:
        from cranfield.judging.rounds import lease

        lease(self.log, self.assessor, self.round, topic=topic)

    def next(self, progress: JudgingProgress) -> JudgingTask | str:
        from cranfield.judging.adaptive_choice import train_models
        from cranfield.judging.rounds import lease

        if self.texts is not None:  # else the last model decides, which a server may train
            train_models(self.log, self.round, self.texts, None if progress.topic is None else [progress.topic])
        answer = lease(self.log, self.assessor, self.round)
        if isinstance(answer, NoLease):
            free = f"; something may come free at {answer.free_at[:19].replace('T', ' ')} UTC" if answer.free_at else ""
            return f"{answer.why}{free}"
        one = answer[0]
        return JudgingTask(one.topic, one.document, f"round {self.round}", one.item + 1, self.round, one.repeat)

    def status(self, progress: JudgingProgress) -> str:
        [row] = round_statuses(self.log, self.round)
        mine = next((person.done for person in row.people if person.assessor == self.assessor), 0)
        return f"round {self.round}: {row.done} of {row.places} labels, {mine} of them yours"


class FromSearch(DocumentSource):
    """The results of a person's own queries for one topic, without the documents that this person has judged."""

    searches = True

    def __init__(self, log: Log, collection: str, topic: str, query: str, assessor: str) -> None:
        from cranfield.retrieval.document_search import build_index

        self.log, self.topic, self.assessor = log, topic, assessor
        self._folder = tempfile.TemporaryDirectory(prefix="cranfield-")
        try:
            where = os.path.join(self._folder.name, "search")
            os.mkdir(where)
            self._index = build_index(collection, where)
            self.search(query)
        except BaseException:
            self.close()
            raise

    def search(self, query: str) -> None:
        """Search with another query; its results come next."""
        from cranfield.retrieval.document_search import search_documents, search_list

        self.list, self.results = search_list(query), search_documents(self._index, query, SEARCH_RESULTS)

    def next(self, progress: JudgingProgress) -> JudgingTask | str:
        for rank, document in enumerate(self.results, 1):
            if progress.is_open(self.topic, document):
                return JudgingTask(self.topic, document, self.list, rank, self._round(document))
        return f"nothing is left to judge; {self.status(progress)}. / WORDS searches again"

    def _round(self, document: str) -> str:
        """The open round in which the document is assigned to the person."""
        from cranfield.judging.assessor_view import own_open_round

        if not self.log.has_records():
            return ""
        with self.log.reading() as transaction:
            return own_open_round(transaction, self.assessor, (self.topic, document))

    def status(self, progress: JudgingProgress) -> str:
        done = sum(progress.settled(self.topic, document) for document in self.results)
        return f"{self.list}: {done} of {counted(len(self.results), 'result')} judged"

    def close(self) -> None:
        self._folder.cleanup()


@dataclass(frozen=True)
class AssessorNeed:
    """What an assessor sees: topics, document texts, and the meaning of grades."""

    topics: TopicTable | None
    documents: Mapping[str, str] | None
    grades: Mapping[float, Grade]
    scale: tuple[float, ...]

    def topic(self, topic: str, whole: bool) -> str:
        """A topic's title; with `whole` also its description and narrative."""
        columns = {} if self.topics is None else self.topics.columns
        query = "" if self.topics is None else self.topics.queries.get(topic, "")
        more = [columns.get(name, {}).get(topic, "") for name in ("description", "narrative")]
        lines = [f"topic {topic}: {query}" if query else f"topic {topic}", *(more if whole else [])]
        return "\n".join(dict.fromkeys(line for line in lines if line and line != query))

    def document(self, document: str) -> str:
        """A document's text, if there is a collection."""
        if self.documents is None:
            return f"document {document}"
        return f"document {document}\n{self.documents.get(document, '(the collection does not have it)')}"

    def meanings(self) -> list[str]:
        """The meaning of each grade, one line each; only the grades if no meanings are known."""
        meanings = {grade: self.grades.get(grade) for grade in self.scale}
        if not any(meanings.values()):
            return [f"grades: {self.range()}"] if self.scale else []
        texts = []
        for grade, meant in sorted(meanings.items()):
            text = ": ".join(filter(None, (meant.label, meant.meaning))) if meant else ""
            texts.append(f"{grade:g}  {text}".rstrip())
        return texts

    def range(self) -> str:
        """The grades of the scale."""
        return " ".join(f"{grade:g}" for grade in self.scale)


class TerminalSession:
    """One person judging at a terminal."""

    def __init__(
        self, log: Log, source: DocumentSource, need: AssessorNeed, guideline: str, progress: JudgingProgress
    ) -> None:
        self.log, self.source, self.need = log, source, need
        self.guideline = guideline or source.guideline
        self.progress = progress
        self.assessor = progress.follower.assessor
        last = self.progress.follower.last(source.round)
        self.progress.topic = None if last is None else last.topic
        self.source.start(self.progress)
        self.label_count = 0

    def status(self) -> str:
        """The progress as text."""
        return self.source.status(self.progress)

    def next(self) -> JudgingTask | str:
        """The next document by all events so far, or why there is none."""
        self._refresh()
        task = self.source.next(self.progress)
        if isinstance(task, JudgingTask):
            self.progress.topic = task.topic
        return task

    def _refresh(self) -> None:
        fresh = self.progress.follower.refresh()
        if fresh:
            self.source.learn(self.progress, fresh)

    def answer(self, task: JudgingTask, kind: str, seconds: float, **fields: Any) -> str:
        """Add an answer to the log; return why it was not kept, or nothing."""
        event = Event(
            kind="adjudication" if kind == "judgment" and self.progress.deciding else kind,
            topic=task.topic,
            document=task.document,
            assessor=self.assessor,
            seconds=round(seconds, 1),
            list=task.list,
            rank=task.rank,
            round=task.round,
            repeat=task.repeat,
            guideline=self.guideline,
            **fields,
        )
        if kind == "skip":
            self.progress.skipped.add((task.topic, task.document))
        if task.round or kind in ("skip", "note"):
            self.log.add([event])
        elif not self.log.add_if(event, self._is_free):
            self._refresh()
            self.progress.topic = None  # the other person is working there
            who = ", ".join(sorted(self.progress.follower.people(task.topic, task.document))) or "somebody else"
            return f"{who} has judged it meanwhile; yours is not kept (--overlap 2 asks for a second label)"
        self.label_count += kind in LABELS
        return ""

    def _is_free(self, labels: list[Event]) -> bool:
        """Whether a document can take one more label."""
        if self.progress.deciding:
            return not any(event.kind == "adjudication" for event in labels)
        return len(others(people_labels(labels), self.assessor)) < self.progress.overlap

    def opinions(self, task: JudgingTask) -> str:
        """Who gave which label, for an adjudicator; empty for everybody else."""
        if not self.progress.deciding:
            return ""
        labels = sorted(self.progress.follower.labels(task.topic, task.document), key=lambda label: label.assessor)
        labels_in_words = [
            f"{label.assessor or 'somebody'} {label.grade:g}{'' if label.sure else '?'}"
            + (f" ({label.note})" if label.note else "")
            for label in labels
            if label.grade is not None
        ]
        return f"said: {', '.join(labels_in_words)}" if labels_in_words else ""

    def refuse(self, grade: float) -> str:
        """Why a grade cannot be given; empty if it can."""
        if not self.need.scale or grade in self.need.scale:
            return ""
        return f"expected a grade of {self.need.range()}, found {grade:g}"

    def undo(self) -> tuple[JudgingTask, str] | None:
        """Withdraw this person's last event; return its document and its label, or None."""
        self._refresh()
        last = self.progress.follower.last(self.source.round)
        if last is None:
            return None
        task = JudgingTask(last.topic, last.document, last.list, last.rank, last.round, last.repeat)
        self.log.add([Event(kind="withdrawal", refers=last.id, assessor=self.assessor)])
        self.progress.skipped.discard((task.topic, task.document))
        self.label_count -= last.kind in (*LABELS, "adjudication") and self.label_count > 0
        self.progress.topic = task.topic
        label = last.kind if last.grade is None else f"{last.grade:g}{'' if last.sure else '?'}"
        return task, f"taken back: {label} for {task.document} of topic {task.topic}"

    def search(self, query: str) -> str:
        """Search with another query; return why that is not possible, or nothing."""
        if not isinstance(self.source, FromSearch):
            return "/ is for documents of --search"
        self.source.search(query)
        return ""

    def close(self) -> None:
        """Close the log and the source of the documents."""
        self.source.close()
        self.log.close()


def _cards(collection: Collection, texts: Mapping[str, str]) -> Mapping[str, str]:
    """The documents as their cards show them; their titles and texts if the collection has no template."""
    template = collection.card
    if template is None:
        return texts
    return {each.id: card_text(document_card(template, each), each.text) for each in collection.documents()}


def open_session(
    inputs: Inputs,
    depths: Depths,
    *,
    judgments: str,
    assessor: str = "",
    pool: str | None = None,
    round: str | None = None,
    search: str | None = None,
    query: str | None = None,
    collection: str | None = None,
    scale: tuple[float, ...] = (),
    guideline: str | None = None,
    overlap: int = 1,
    adjudicate: bool = False,
    **options: Any,
) -> TerminalSession:
    """Open a session: documents from runs by a strategy, from a pool file, from a round of the log, or from a search."""
    from cranfield.pooling.text_features import DocumentTexts

    refuse_second_stdin(pool, collection, guideline, *inputs.runs)
    word = named(judgments)
    if word is not None and word.version is not None:
        raise ConventionError(f"--judgments: version {word.version!r} is frozen; name the log itself")
    if sum((bool(inputs.runs), pool is not None, round is not None, search is not None)) != 1:
        sources = "RUN…, from --pool FILE, from --round NAME or from --search TOPIC"
        raise ConventionError(f"documents come from {sources}: give one of them")
    if search is not None and collection is None:
        raise ConventionError("--search needs the documents to search: name them with --collection")
    if adjudicate and round is not None:
        raise ConventionError("--adjudicate decides about documents of --pool FILE or RUN…; a round asks for labels")
    log = open_log(judgments)
    try:
        opened = None if collection is None else cranfield.read_collection(collection)
        texts = None if opened is None else DocumentTexts.of(opened)
        topics = topic_table(inputs.topics_file, collection, inputs.fields)
        if search is not None and collection is not None:
            source: DocumentSource = _search_source(log, collection, topics, search, query, assessor)
            overlap = sys.maxsize  # a document that others have judged is shown, too
        else:
            source = _source(log, inputs, depths, assessor, pool, round, texts=texts, **options)
        grades = {} if opened is None else opened.grades
        documents = None if texts is None else texts.documents if opened is None else _cards(opened, texts.documents)
        need = AssessorNeed(topics, documents, grades, scale or source.scale or tuple(grades))
        shown = {} if opened is None or source.guideline else opened.grades  # a round has its own version
        text = "" if guideline is None else read_guidelines(guideline)
        version = Guidelines.of(text, shown, 1 if opened is None else opened.relevant_from)
        guideline_hash = keep_guidelines(log, version)
        progress = JudgingProgress(Follower(log, assessor), overlap, adjudicate)
        at_work = TerminalSession(log, source, need, guideline_hash, progress)
        say(decide(log.current_events()).notes())
    except BaseException:
        log.close()
        raise
    return at_work


def _search_source(
    log: Log, collection: str, topics: TopicTable | None, topic: str, query: str | None, assessor: str
) -> FromSearch:
    queries = {} if topics is None else topics.queries
    if topic not in queries:
        raise DataError(f"--search: the collection has no topic {shortened(topic)!r}")
    folder = folder_of(collection)
    return FromSearch(log, folder, topic, queries[topic] if query is None else query, assessor)


def _source(
    log: Log, inputs: Inputs, depths: Depths, assessor: str, pool: str | None, round: str | None, **options: Any
) -> DocumentSource:
    if round is not None:
        return FromRound(log, round, assessor, options.get("texts"))
    if pool is not None:
        return FromPool(_items_of(pool, assessor), pool)
    opened = session_options(inputs, depths, **options)
    return FromRuns(lambda labels: cranfield.session(**{**opened, "labels": labels}), log.labels)


def _items_of(pool: str, assessor: str) -> list[PoolItem]:
    """The items that are assigned to an assessor in a pool file; all if none are assigned."""
    items = read_pool(pool)
    names = sorted({item.assessor for item in items if item.assessor})
    if not names:
        return items
    if assessor not in names:
        who = f"nothing is for {assessor!r}" if assessor else "say who judges with --assessor"
        raise DataError(f"{pool}: {who}; its documents are assigned to {', '.join(names)}")
    return [item for item in items if item.assessor == assessor]

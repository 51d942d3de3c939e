"""Judging at a terminal: one person, one log, document after document.

Documents come from the tops of runs by a strategy, from a pool file, or from a round of the log. Before each of them
the log is read again; a label is added only if nobody else has labelled the document meanwhile, unless several people
are to judge each. All that is kept is in the log: whoever comes back goes on where they stopped.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import cranfield
from cranfield.errors import ConventionError, DataError
from cranfield.hearing import say
from cranfield.judge.event import Event, instant
from cranfield.judge.following import Follower, counted, others
from cranfield.judge.opening import open_log
from cranfield.workspace.inputs import once
from cranfield.workspace.logs import named
from cranfield.workspace.pooling import session_options
from cranfield.workspace.topics import topic_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cranfield.collection import Grade
    from cranfield.formats.judgments import Judgment
    from cranfield.formats.pools import Item
    from cranfield.formats.topics import TopicTable
    from cranfield.judge.log import Log
    from cranfield.judge.plan import Lease
    from cranfield.pool.session import Session
    from cranfield.workspace.inputs import Inputs
    from cranfield.workspace.pooling import Depths

KEPT = ("judgment", "cannot-judge")
AWAY = timedelta(minutes=30)  # after which nobody is taken to be at a topic any more


@dataclass(frozen=True)
class Task:
    """A document to judge, and where it was shown."""

    topic: str
    document: str
    list: str = ""
    rank: int | None = None
    round: str = ""
    repeat: bool = False


@dataclass
class Progress:
    """What one person sees of the work: what was said, what they skipped, at which topic they are, how many labels it takes."""

    said: Follower
    overlap: int = 1
    deciding: bool = False  # as the third person, whose word binds
    topic: str | None = None
    skipped: set[tuple[str, str]] = field(default_factory=set)

    def settled(self, topic: str, document: str) -> bool:
        """Whether this person need not judge a document: they have, a third person has decided, or enough others have."""
        labels = self.said.labels(topic, document)
        if self.deciding:
            return any(label.kind == "adjudication" for label in labels)
        mine = any(label.assessor == self.said.assessor or label.kind == "adjudication" for label in labels)
        return mine or len(others(labels, self.said.assessor)) >= self.overlap

    def wanted(self, topic: str, document: str) -> bool:
        """Whether a document is to be shown."""
        return (topic, document) not in self.skipped and not self.settled(topic, document)

    def in_turn(self, topics: Iterable[str], full: Callable[[str], bool] = lambda topic: False) -> list[str]:
        """The topics in the order in which to look for work: the one this person is at, those with nobody else, the others."""
        busy = self.said.elsewhere(instant(datetime.now(UTC) - AWAY))
        return sorted(topics, key=lambda topic: (full(topic), topic != self.topic, topic in busy))


class Source(ABC):
    """Where documents come from."""

    round = ""
    guideline = ""
    scale: tuple[float, ...] = ()

    @abstractmethod
    def next(self, progress: Progress) -> Task | str:
        """The next document, or why there is none."""

    def start(self, progress: Progress) -> None:  # noqa: B027
        """Begin where the log ends."""

    def learn(self, progress: Progress, fresh: list[Event]) -> None:  # noqa: B027
        """Hear what was added to the log."""

    @abstractmethod
    def told(self, progress: Progress) -> str:
        """How far the work is."""


class FromRuns(Source):
    """A strategy over the tops of runs; rebuilt from the labels where one was taken back."""

    def __init__(self, begin: Callable[[list[Judgment]], Session], labels: Callable[[], list[Judgment]]) -> None:
        self.begin = begin
        self.labels = labels
        self.session = begin([])

    def start(self, progress: Progress) -> None:
        self.session = self.begin([label for label in self.labels() if progress.settled(label.topic, label.document)])

    def learn(self, progress: Progress, fresh: list[Event]) -> None:
        if any(event.kind == "withdrawal" for event in fresh):
            self.start(progress)
            return
        known = self.session.rankings.candidates
        for event in fresh:
            inside = event.topic in known and event.document in known[event.topic].number
            if inside and progress.settled(event.topic, event.document):
                grade = progress.said.grade(event.topic, event.document)
                if grade is not None:
                    self.session.judge(event.topic, event.document, grade)

    def next(self, progress: Progress) -> Task | str:
        topics, budget = self.session.rankings.topics, self.session.budget
        share = math.inf if budget is None else math.ceil(budget / max(1, len(topics)))

        def full(topic: str) -> bool:
            return len(self.session.labels.get(topic, {})) >= share

        for topic in progress.in_turn(topics, full):
            while (item := self.session.next(topic)) is not None:
                if progress.wanted(topic, item.document):
                    return Task(topic, item.document, str(self.session.strategy), progress.said.seen(topic) + 1)
        return f"nothing is left to judge; {self.told(progress)}"

    def told(self, progress: Progress) -> str:
        session = self.session
        return f"{session.judged} labels so far, {session.relevant} relevant; {session.left} documents left"


class FromPool(Source):
    """The items of a pool file: those of one person where they are assigned, else all."""

    def __init__(self, items: list[Item], name: str) -> None:
        drawn = [item for item in items if item.priority] or items
        self.items: dict[str, list[Item]] = {}
        for item in drawn:
            self.items.setdefault(item.topic, []).append(item)
        self.name = name

    def next(self, progress: Progress) -> Task | str:
        for topic in progress.in_turn(self.items):
            for place, item in enumerate(self.items[topic], 1):
                if progress.wanted(topic, item.document):
                    return Task(topic, item.document, self.name, place)
        return f"nothing is left to judge; {self.told(progress)}"

    def told(self, progress: Progress) -> str:
        count = sum(map(len, self.items.values()))
        done = sum(progress.settled(item.topic, item.document) for items in self.items.values() for item in items)
        skipped = f", {len(progress.skipped)} skipped" if progress.skipped else ""
        return f"{done} of {count} documents of {self.name} are judged{skipped}"


class FromRound(Source):
    """What a round of the log leases to a person."""

    def __init__(self, log: Log, name: str, assessor: str) -> None:
        from cranfield.judge.plan import find_round

        self.log, self.assessor = log, assessor
        with log.reading() as transaction:
            plan, _ = find_round(transaction.connection, name)
        self.round, self.guideline, self.scale = plan.name, plan.guideline, plan.scale
        self.done = 0

    def next(self, progress: Progress) -> Task | str:
        from cranfield.judge.plan import Nothing
        from cranfield.judge.rounds import lease

        answer = lease(self.log, self.assessor, self.round)
        if isinstance(answer, Nothing):
            return (
                f"{answer.why}; something may come free at {_clock(answer.free_at)}" if answer.free_at else answer.why
            )
        return self._task(answer[0])

    def _task(self, lease: Lease) -> Task:
        return Task(lease.topic, lease.document, f"round {self.round}", lease.item + 1, self.round, lease.repeat)

    def told(self, progress: Progress) -> str:
        from cranfield.judge.status import round_statuses

        [row] = round_statuses(self.log, self.round)
        mine = next((person.done for person in row.people if person.assessor == self.assessor), 0)
        return f"round {self.round}: {row.done} of {row.places} labels, {mine} of them yours"


def _clock(time: str) -> str:
    return f"{time[:19].replace('T', ' ')} UTC"


@dataclass(frozen=True)
class Need:
    """What an assessor goes by: what topics ask for, what documents say, what grades mean."""

    topics: TopicTable | None
    documents: Mapping[str, str] | None
    grades: Mapping[float, Grade]
    scale: tuple[float, ...]

    def topic(self, topic: str, whole: bool) -> str:
        """A topic's title, and as a whole its description and narrative."""
        columns = {} if self.topics is None else self.topics.columns
        query = "" if self.topics is None else self.topics.queries.get(topic, "")
        more = [columns.get(name, {}).get(topic, "") for name in ("description", "narrative")]
        lines = [f"topic {topic}: {query}" if query else f"topic {topic}", *(more if whole else [])]
        return "\n".join(dict.fromkeys(line for line in lines if line and line != query))

    def document(self, document: str) -> str:
        """A document's text, where there is a collection."""
        if self.documents is None:
            return f"document {document}"
        return f"document {document}\n{self.documents.get(document, '(the collection does not have it)')}"

    def meanings(self) -> list[str]:
        """What each grade means, a line each; only the grades where nobody says."""
        known = {grade: self.grades.get(grade) for grade in self.scale}
        if not any(known.values()):
            return [f"grades: {self.range()}"] if self.scale else []
        texts = {
            grade: ": ".join(filter(None, (meant.label, meant.meaning))) if meant else ""
            for grade, meant in sorted(known.items())
        }
        return [f"{grade:g}  {text}".rstrip() for grade, text in texts.items()]

    def range(self) -> str:
        """The grades of the scale."""
        return " ".join(f"{grade:g}" for grade in self.scale)


class Desk:
    """One person at one log."""

    def __init__(self, log: Log, source: Source, need: Need, guideline: str, progress: Progress) -> None:
        self.log = log
        self.source = source
        self.need = need
        self.guideline = guideline or source.guideline
        self.progress = progress
        self.assessor = progress.said.assessor
        last = self.progress.said.last(source.round)
        self.progress.topic = None if last is None else last.topic
        self.source.start(self.progress)
        self.kept = 0

    def told(self) -> str:
        """How far the work is."""
        return self.source.told(self.progress)

    def next(self) -> Task | str:
        """The next document by all that has been said up to now, or why there is none."""
        self._refresh()
        task = self.source.next(self.progress)
        if isinstance(task, Task):
            self.progress.topic = task.topic
        return task

    def _refresh(self) -> None:
        fresh = self.progress.said.refresh()
        if fresh:
            self.source.learn(self.progress, fresh)

    def answer(self, task: Task, kind: str, seconds: float, **said: Any) -> str:
        """Keep what somebody says of a document; empty, or why it is not kept."""
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
            **said,
        )
        if kind == "skip":
            self.progress.skipped.add((task.topic, task.document))
        if task.round or kind in ("skip", "note"):
            self.log.add([event])
        elif not self.log.add_if(event, self._is_free):
            self._refresh()
            self.progress.topic = None  # they are at work there
            who = ", ".join(sorted(self.progress.said.people(task.topic, task.document))) or "somebody else"
            return f"{who} has judged it meanwhile; yours is not kept (--overlap 2 asks for a second label)"
        self.kept += kind in KEPT
        return ""

    def _is_free(self, standing: list[Event]) -> bool:
        """Whether a document can take one more label."""
        if self.progress.deciding:
            return not any(event.kind == "adjudication" for event in standing)
        return len(others(counted(standing), self.assessor)) < self.progress.overlap

    def opinions(self, task: Task) -> str:
        """Who said what of a document, for the one who decides; empty for everybody else."""
        if not self.progress.deciding:
            return ""
        labels = sorted(self.progress.said.labels(task.topic, task.document), key=lambda label: label.assessor)
        told = [
            f"{label.assessor or 'somebody'} {label.grade:g}{'' if label.sure else '?'}"
            + (f" ({label.note})" if label.note else "")
            for label in labels
            if label.grade is not None
        ]
        return f"said: {', '.join(told)}" if told else ""

    def refuse(self, grade: float) -> str:
        """Why a grade cannot be given; empty if it can."""
        if not self.need.scale or grade in self.need.scale:
            return ""
        return f"expected a grade of {self.need.range()}, found {grade:g}"

    def undo(self) -> tuple[Task, str] | None:
        """Take back the last thing this person said: its document, and what it was; None if there is nothing."""
        self._refresh()
        last = self.progress.said.last(self.source.round)
        if last is None:
            return None
        task = Task(last.topic, last.document, last.list, last.rank, last.round, last.repeat)
        self.log.add([Event(kind="withdrawal", refers=last.id, assessor=self.assessor)])
        self.progress.skipped.discard((task.topic, task.document))
        self.kept -= last.kind in (*KEPT, "adjudication") and self.kept > 0
        self.progress.topic = task.topic
        said = last.kind if last.grade is None else f"{last.grade:g}{'' if last.sure else '?'}"
        return task, f"taken back: {said} for {task.document} of topic {task.topic}"

    def close(self) -> None:
        """Let go of the log."""
        self.log.close()


def desk(
    inputs: Inputs,
    depths: Depths,
    *,
    judgments: str,
    assessor: str = "",
    pool: str | None = None,
    round: str | None = None,
    collection: str | None = None,
    scale: tuple[float, ...] = (),
    guideline: str | None = None,
    overlap: int = 1,
    adjudicate: bool = False,
    **options: Any,
) -> Desk:
    """Sit down to judge: documents of runs by a strategy, of a pool file, or of a round of the log."""
    from cranfield.judge.policy import decide
    from cranfield.pool.strategies.learn import Texts
    from cranfield.workspace.judging import hash_of_file

    once(pool, collection, guideline, *inputs.runs)
    word = named(judgments)
    if word is not None and word.version is not None:
        raise ConventionError(f"--judgments: version {word.version!r} is frozen; name the log itself")
    if sum((bool(inputs.runs), pool is not None, round is not None)) != 1:
        raise ConventionError("documents come from RUN…, from --pool FILE or from --round NAME: give one of them")
    if adjudicate and round is not None:
        raise ConventionError("--adjudicate decides about documents of --pool FILE or RUN…; a round asks for labels")
    log = open_log(judgments)
    try:
        known = None if collection is None else cranfield.read_collection(collection)
        texts = None if known is None else Texts.of(known)
        source = _source(log, inputs, depths, assessor, pool, round, texts=texts, **options)
        topics = topic_table(inputs.topics_file, collection, inputs.fields)
        grades = {} if known is None else known.grades
        need = Need(topics, None if texts is None else texts.documents, grades, scale or source.scale or tuple(grades))
        told = "" if guideline is None else hash_of_file(guideline)
        at_work = Desk(log, source, need, told, Progress(Follower(log, assessor), overlap, adjudicate))
        say(decide(log.standing()).notes())
    except BaseException:
        log.close()
        raise
    return at_work


def _source(
    log: Log,
    inputs: Inputs,
    depths: Depths,
    assessor: str,
    pool: str | None,
    round: str | None,
    **options: Any,
) -> Source:
    if round is not None:
        return FromRound(log, round, assessor)
    if pool is not None:
        return FromPool(_items_of(pool, assessor), pool)
    opened = session_options(inputs, depths, **options)
    return FromRuns(lambda labels: cranfield.session(**{**opened, "labels": labels}), log.labels)


def _items_of(pool: str, assessor: str) -> list[Item]:
    """What is somebody's in a pool file; everything where nothing is assigned."""
    from cranfield.formats.pools import read_pool

    items = read_pool(pool)
    names = sorted({item.assessor for item in items if item.assessor})
    if not names:
        return items
    if assessor not in names:
        who = f"nothing is for {assessor!r}" if assessor else "say who judges with --assessor"
        raise DataError(f"{pool}: {who}; its documents are assigned to {', '.join(names)}")
    return [item for item in items if item.assessor == assessor]

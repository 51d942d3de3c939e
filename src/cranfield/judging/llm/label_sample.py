"""The labels that people and a model have in common: for calibration, and as a random sample for estimates.

Documents that are in the prompt, or that its author looked at while choosing it, are left out, because the prompt was
fitted to them.

An estimate holds only for a random sample whose probabilities were recorded when the round was opened. Documents that a
strategy or a person picked are those where labels matter most, and there models err.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sqlalchemy import select

from cranfield.base.errors import DataError
from cranfield.base.kernels import decode
from cranfield.base.parameters import shortened
from cranfield.formats.streams import opened
from cranfield.judging.event import RELEVANCE
from cranfield.judging.llm.question_store import LABEL, rows_of, series_of
from cranfield.judging.policies import PEOPLE, Latest, PolicySettings, decide_labels, flat, goes_by_labels, nested
from cranfield.judging.round_plan import TOPICS, Round, all_rounds, find_round
from cranfield.stats.ratings import Scale
from cranfield.store.hashes import refuse_changed_documents
from cranfield.store.tables import items, questions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from sqlalchemy.engine import Connection

    from cranfield.judging.current_labels import GradedLabel
    from cranfield.judging.log import Log
    from cranfield.judging.policies import DecidedGrades, Grades, Subject
    from cranfield.stats.ties import Bools, Floats, Ints


LEAST_TOPICS = 2
USED, INSPECTED, FIRST_HALF = "used in the prompt", "looked at when choosing", "of the topics that chose the prompt"


@dataclass(frozen=True, eq=False)
class CommonLabels:
    """The documents that both people and a model labelled, one entry each, ordered by topic."""

    log: str
    model: str
    names: list[str]  # the topics'
    topic: Ints  # of each document
    documents: list[str]
    people: Floats  # the current grade
    predicted: Floats  # the model's
    counts: Floats  # documents × grades of the scale: how many people gave each
    scale: Scale

    @classmethod
    def of(
        cls,
        log: str,
        model: str,
        people: Mapping[Subject, float],
        predicted: Mapping[Subject, float],
        people_grades: Mapping[Subject, Sequence[float]],
    ) -> CommonLabels:
        """The common labels from people's grades, the model's grades, and each person's label."""
        both = sorted(people.keys() & predicted.keys())
        each = [list(people_grades.get(subject, ())) or [people[subject]] for subject in both]
        theirs, its = (np.array([grades[subject] for subject in both], np.float64) for grades in (people, predicted))
        grades = sorted({*theirs.tolist(), *its.tolist(), *(grade for labels in each for grade in labels)})
        counts = np.array([[labels.count(grade) for grade in grades] for labels in each], np.float64)
        counts = counts.reshape(len(both), len(grades))  # also where they have none in common
        names = list(dict.fromkeys(topic for topic, _ in both))
        number = {topic: code for code, topic in enumerate(names)}
        topic = np.array([number[topic] for topic, _ in both], np.int64)
        documents = [document for _, document in both]
        return cls(log, model, names, topic, documents, theirs, its, counts, Scale(tuple(grades)))

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def subjects(self) -> list[Subject]:
        """Topic and document of each entry."""
        return [(self.names[topic], name) for topic, name in zip(self.topic.tolist(), self.documents, strict=True)]

    @property
    def error(self) -> Floats:
        """The model's grade minus people's."""
        return self.predicted - self.people

    @property
    def twice(self) -> Bools:
        """Which documents two people or more labelled."""
        return np.asarray(self.counts.sum(axis=1) >= 2, np.bool_)

    @cached_property
    def own_counts(self) -> Floats:
        """The model's grade as counts: documents × grades."""
        return np.eye(len(self.scale))[np.searchsorted(np.array(self.scale.names), self.predicted)]

    def only(self, mask: Bools) -> CommonLabels:
        """The entries of a mask, with their topics; the scale stays."""
        present, topic = np.unique(self.topic[mask], return_inverse=True)
        return replace(
            self,
            names=[self.names[code] for code in present],
            topic=topic.astype(np.int64),
            documents=[document for document, keep in zip(self.documents, mask.tolist(), strict=True) if keep],
            **{name: getattr(self, name)[mask] for name in ("people", "predicted", "counts")},
        )

    def without(self, left_out: AbstractSet[Subject]) -> CommonLabels:
        """The entries that are not among these documents."""
        return self.only(np.array([subject not in left_out for subject in self.subjects], np.bool_))

    def grades(self, values: Floats) -> Grades:
        """One number per entry as grades by topic and document."""
        return nested(zip(self.subjects, values.tolist(), strict=True))


@dataclass(frozen=True)
class LogLabels:
    """All labels of an aspect in a log, and people's grades by a policy."""

    log: str
    labels: list[GradedLabel]
    decided: DecidedGrades  # by people's labels
    people: dict[Subject, float]  # the same grades by topic and document
    policy: str
    notes: list[str]

    @classmethod
    def of(cls, log: Log, policy: str, aspect: str, use: str = "a calibration") -> LogLabels:
        """Read the labels of one aspect and decide people's grades by a policy; `use` is the purpose that messages name."""
        if not goes_by_labels(policy):
            raise DataError(f"{use} goes by labels, and {policy} by preferences; take another --policy")
        labels = log.current_grades(aspect)
        ours = [each for each in labels if each.source in PEOPLE]
        decided = decide_labels(ours, policy, PolicySettings(aspect=aspect))
        if not len(decided):
            raise DataError(f"{log.name}: no current label of a person; add some, or have a round judged")
        return cls(log.name, labels, decided, flat(decided.grades), decided.policy, decided.notes())

    @property
    def _counts(self) -> Counter[str]:
        """The number of labels of each model."""
        return Counter(each.assessor for each in self.labels if each.source == "model")

    def models(self, name: str) -> list[str]:
        """The models that match a name: one with its prompt (MODEL/PROMPT-VERSION), one with all its prompts, or all."""
        counts = self._counts
        if not counts:
            advice = "ask one, or add its labels with judge add --source model"
            raise DataError(f"{self.log}: no current label of a model; {advice}")
        fitting = [each for each in counts if not name or each.startswith(f"{name}/")]
        fitting = [name] if name in counts else fitting
        if not fitting:
            problem = f"no label of the model {shortened(name)!r}; there are those of {_counted_models(counts)}"
            raise DataError(f"{self.log}: {problem}")
        return sorted(fitting)

    def model(self, name: str) -> str:
        """The model of this name, with or without its prompt, or the only one."""
        fitting = self.models(name)
        if len(fitting) > 1:
            problem = f"labels of {len(fitting)} models; name one with --model: {_counted_models(self._counts)}"
            raise DataError(f"{self.log}: {problem}")
        return fitting[0]

    def of_model(self, name: str) -> dict[Subject, float]:
        """A model's last label of each document."""
        mine = [each for each in self.labels if each.source == "model" and each.assessor == name]
        mine.sort(key=lambda each: (each.time, each.id))
        return {(each.topic, each.document): each.grade for each in mine}

    @cached_property
    def _of_people(self) -> dict[Subject, list[float]]:
        answer: dict[Subject, list[float]] = {}
        for each in self.labels:
            if each.side == "label" and each.source in PEOPLE:
                answer.setdefault((each.topic, each.document), []).append(each.grade)
        return answer

    def shared(self, model: str) -> CommonLabels:
        """The labels that people and a model have in common."""
        predicted = self.of_model(model)
        common = CommonLabels.of(self.log, model, self.people, predicted, self._of_people)
        if not len(common):
            sides = f"people labelled {len(self.people):,} documents, {shortened(model)!r} {len(predicted):,} others"
            problem = f"no overlap: {sides}; ask it about documents that people labelled"
            raise DataError(f"{self.log}: {problem}")
        return common


def refuse_little(common: CommonLabels) -> None:
    """Raise DataError if too few topics, or only one of people's grades, are left to calibrate on."""
    if len(common.names) < LEAST_TOPICS:
        shared = f"{len(common):,} documents of {len(common.names)} topics"
        problem = f"people and {shortened(common.model)!r} share {shared}, expected {LEAST_TOPICS} topics or more"
        raise DataError(f"{common.log}: {problem}; label documents of other topics")
    grades = np.unique(common.people)
    if len(grades) == 1:
        problem = f"one grade only: people gave all {len(common):,} documents that both labelled {grades[0]:g}"
        raise DataError(f"{common.log}: {problem}; have both relevant and irrelevant documents labelled")


class SeriesUse(NamedTuple):
    """The models, texts and documents that the series of a judge used."""

    used: set[Subject]  # documents in the prompt, or seen by its author
    returned: list[str]  # what the server calls the model
    lengths: dict[str, int]  # of the documents' texts, in characters


def series_use(log: Log, assessor: str) -> SeriesUse:
    """What the series of a model with its prompt used; empty if its labels were added from a file."""
    if not log.has_records():
        return SeriesUse(set(), [], {})

    with log.reading() as transaction:
        series = {each.id: each.definition for each in series_of(transaction.connection, assessor)}
        rows = rows_of(transaction.connection, "series", series, questions.c.purpose == LABEL, questions.c.other == "")
    prompts = [definition.get("prompt", {}) for definition in series.values()]
    used = {(topic, document) for prompt in prompts for topic, document in prompt.get("used", ())}
    return SeriesUse(used, sorted({row.returned for row in rows} - {""}), {row.document: row.length for row in rows})


def inspected_documents(path: str, subjects: Sequence[Subject]) -> set[Subject]:
    """The documents that a file names: a topic per line for all its documents, or a topic and a document."""
    of_topic: dict[str, list[Subject]] = {}
    for subject in subjects:
        of_topic.setdefault(subject[0], []).append(subject)
    pairs = {f"{topic}{between}{document}": (topic, document) for topic, document in subjects for between in " /"}
    named: set[str] = set()
    answer: set[Subject] = set()
    for line in bytes(opened(path).buffer).splitlines():
        words = decode(b" ".join(line.split()))
        if not words or words.startswith("#"):
            continue
        named.add(words)
        answer.update(of_topic.get(words, [pairs[words]] if words in pairs else []))
    if not answer:
        such = f", such as {shortened(min(named))!r}" if named else ""
        problem = f"names nothing that people and the model both labelled ({len(named):,} lines{such})"
        raise DataError(f"{path}: {problem}; expected a topic, or a topic and a document, on each line")
    return answer


def halves(topics: Sequence[str], seed: int) -> tuple[set[str], set[str]]:
    """The topics in two random halves: one to choose a prompt, one to calibrate."""
    order = np.random.default_rng(seed).permutation(len(topics)).tolist()
    half = len(topics) // 2
    return {topics[i] for i in order[:half]}, {topics[i] for i in order[half:]}


DRAW = "open a round that draws: cranfield judge round LOG --pool FILE --sample N (or --sample-topics N)"


class Chances(NamedTuple):
    """A round with a random sample, and the probability of each of its documents."""

    round: Round
    of: dict[Subject, float]


@dataclass(frozen=True)
class LabelSample:
    """A random sample that people labelled, and a model's labels of the whole sampling frame."""

    log: str
    chances: Chances
    people: DecidedGrades
    model: str
    predicted: Grades  # the model's, on what the sample was drawn from

    @property
    def frame(self) -> Mapping[str, Sequence[str]]:
        """The sampling frame: topic → documents."""
        return self.chances.round.frame

    @property
    def by_topics(self) -> bool:
        """Whether the sample consists of topics, not of single documents."""
        return self.chances.round.unit == TOPICS

    @property
    def topics(self) -> list[str]:
        """Each topic with a sampled document, once, in the order of the sample."""
        return list(dict.fromkeys(topic for topic, _ in self.chances.of))

    @property
    def unlabelled(self) -> tuple[int, int]:
        """The number of documents without a label of the model: in the sample, and outside."""
        lacking = {
            (topic, document)
            for topic, documents in self.frame.items()
            for document in documents
            if document not in self.predicted.get(topic, {})
        }
        in_sample = len(lacking & self.chances.of.keys())
        return in_sample, len(lacking) - in_sample


def label_sample(
    log: Log, round: str = "", model: str = "", policy: str = Latest.name, aspect: str = RELEVANCE
) -> LabelSample:
    """The random sample of a round (of the only one, unless named) with the labels of people and of a model."""
    labels = LogLabels.of(log, policy, aspect, "an estimate")
    people, chances = labels.decided, _chances(log, round)
    name = labels.model(model)
    predicted = labels.of_model(name)
    _refuse_unfinished(chances, people, log.name)
    frame = chances.round.frame
    inside = {
        topic: {document: predicted[topic, document] for document in documents if (topic, document) in predicted}
        for topic, documents in frame.items()
    }
    sample = LabelSample(log.name, chances, people, name, {topic: grades for topic, grades in inside.items() if grades})
    _refuse_apart(sample)
    return sample


def rounds_that_drew(log: Log) -> list[Round]:
    """The rounds with a random sample, which an estimate can use once people have labelled it."""
    if not log.has_records():
        return []
    with log.reading() as transaction:
        return [plan for plan, _ in all_rounds(transaction.connection) if not _not_drawn(plan)]


def _chances(log: Log, name: str) -> Chances:
    if not log.has_records():
        raise DataError(f"{log.name}: no round, so it is unknown how the labelled documents were chosen; {DRAW}")
    with log.reading() as transaction:
        connection = transaction.connection
        plan = find_round(connection, name)[0] if name else _only(connection, log.name)
        reason = _not_drawn(plan)
        if reason:
            raise DataError(f"{log.name}: no estimate from round {plan.name!r}: {reason}; {DRAW}")
        refuse_changed_documents(connection, plan.name)
        columns = select(items.c.topic, items.c.document, items.c.probability)
        rows = connection.execute(columns.where(items.c.round == plan.name, items.c.role == "pool").order_by("item"))
        return Chances(plan, {(row.topic, row.document): row.probability for row in rows})


def _only(connection: Connection, log: str) -> Round:
    """The only round with a random sample; the last round if none has one; DataError if several have one."""
    every = [plan for plan, _ in all_rounds(connection)]
    drew = [plan for plan in every if not _not_drawn(plan)]
    if len(drew) > 1:
        names = ", ".join(repr(plan.name) for plan in drew)
        raise DataError(f"{log}: {len(drew)} rounds drew at random; name one with --round: {names}")
    if not every:
        raise DataError(f"{log}: no round, so it is unknown how the labelled documents were chosen; {DRAW}")
    return drew[0] if drew else every[-1]


def _not_drawn(plan: Round) -> str:
    """Why a round is not a random sample; empty if it is one."""
    if plan.strategy:
        return f"it is adaptive ({plan.strategy}): what was labelled depends on earlier labels, not on chance alone"
    if plan.frame:
        return ""
    if plan.sample:
        return "it did not record what its sample was drawn from, as an older version opened it"
    return "its documents were picked, not drawn at random with recorded chances"


def _counted_models(counts: Counter[str]) -> str:
    return ", ".join(f"{shortened(name)!r} ({count:,})" for name, count in counts.most_common(10))


def _refuse_unfinished(chances: Chances, people: DecidedGrades, log: str) -> None:
    """Raise DataError if a document of the sample lacks a grade: it would be left out by choice, not by chance."""
    where = f"{log}, round {chances.round.name!r}"
    lacking = [each for each in chances.of if each[1] not in people.grades.get(each[0], {})]
    if len(lacking) == len(chances.of):
        raise DataError(f"{where}: no label of a person on any of the {len(lacking):,} documents that were drawn")
    if lacking:
        topic, document = lacking[0]
        first = f"the first is topic {shortened(topic)!r}, document {shortened(document)!r}"
        problem = f"{len(lacking):,} of {len(chances.of):,} documents that were drawn have no grade of a person"
        advice = "have them judged or adjudicated, as what is left out is not random"
        raise DataError(f"{where}: {problem}; {first}: {advice}")


def _refuse_apart(sample: LabelSample) -> None:
    """Raise DataError unless people and the model share documents, each with more than one grade."""
    where = f"{sample.log}, round {sample.chances.round.name!r}"
    both = [each for each in sample.chances.of if each[1] in sample.predicted.get(each[0], {})]
    if not both:
        problem = f"the model {sample.model!r} has labelled none of the {len(sample.chances.of):,} documents"
        raise DataError(f"{where}: no overlap: {problem} that people labelled; ask it about the whole pool")
    grades = {sample.people.grades[topic][document] for topic, document in sample.chances.of}
    if len(grades) == 1:
        raise DataError(f"{where}: one grade only: people gave every document {grades.pop():g}; draw more documents")
    grades = {grade for documents in sample.predicted.values() for grade in documents.values()}
    if len(grades) == 1:
        problem = f"the model {sample.model!r} gave every document {grades.pop():g} and predicts nothing"
        advice = "ask with another prompt, or go by the labels of people alone"
        raise DataError(f"{where}: one grade only: {problem}; {advice}")

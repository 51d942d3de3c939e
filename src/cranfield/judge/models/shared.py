"""What people and a model have both labelled: the documents that a model is calibrated on.

Documents that stand in the prompt, or that somebody looked at when choosing it, are left out: on these a model agrees with
people because it was made to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.errors import DataError
from cranfield.judge.models.drawn import decided_by_people, labels_of_model, models_named, only_model
from cranfield.judge.policy import PEOPLE, goes_by_labels
from cranfield.parameters import shortened
from cranfield.stats.labels import Scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from cranfield.judge.log import Log
    from cranfield.judge.policy import Grades, Subject
    from cranfield.judge.standing import Said
    from cranfield.stats.ties import Bools, Floats, Ints

LEAST_TOPICS = 2
USED, LOOKED_AT, FIRST_HALF = "used in the prompt", "looked at when choosing", "of the topics that chose the prompt"


@dataclass(frozen=True, eq=False)
class Shared:
    """Documents that people and a model labelled, one entry each, topic by topic."""

    log: str
    model: str
    names: list[str]  # the topics'
    topic: Ints  # of each document
    documents: list[str]
    people: Floats  # the grade that stands
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
        said: Mapping[Subject, Sequence[float]],
    ) -> Shared:
        """From what stands of people's labels, what the model says, and each person's label."""
        both = sorted(people.keys() & predicted.keys())
        each = [list(said.get(subject, ())) or [people[subject]] for subject in both]
        theirs, its = (np.array([grades[subject] for subject in both], np.float64) for grades in (people, predicted))
        grades = sorted({*theirs.tolist(), *its.tolist(), *(grade for labels in each for grade in labels)})
        place = {grade: code for code, grade in enumerate(grades)}
        counts = np.zeros((len(both), len(grades)))
        rows = np.repeat(np.arange(len(both)), [len(labels) for labels in each])
        codes = np.array([place[grade] for labels in each for grade in labels], np.int64)
        np.add.at(counts, (rows, codes), 1.0)
        names = list(dict.fromkeys(topic for topic, _ in both))
        number = {topic: code for code, topic in enumerate(names)}
        topic = np.array([number[topic] for topic, _ in both], np.int64)
        return cls(
            log, model, names, topic, [document for _, document in both], theirs, its, counts, Scale(tuple(grades))
        )

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def subjects(self) -> list[Subject]:
        """Topic and document of each."""
        return [
            (self.names[topic], document) for topic, document in zip(self.topic.tolist(), self.documents, strict=True)
        ]

    @property
    def error(self) -> Floats:
        """By how much the model's grade is above people's."""
        return self.predicted - self.people

    @property
    def twice(self) -> Bools:
        """Which documents two people labelled, or more."""
        return np.asarray(self.counts.sum(axis=1) >= 2, np.bool_)

    @cached_property
    def own_counts(self) -> Floats:
        """The model's grade as counts: documents × grades."""
        return np.eye(len(self.scale))[np.searchsorted(np.array(self.scale.names), self.predicted)]

    def only(self, kept: Bools) -> Shared:
        """Some of the documents, with their topics; the scale stays."""
        present, topic = np.unique(self.topic[kept], return_inverse=True)
        return replace(
            self,
            names=[self.names[code] for code in present],
            topic=topic.astype(np.int64),
            documents=[document for document, keep in zip(self.documents, kept.tolist(), strict=True) if keep],
            **{name: getattr(self, name)[kept] for name in ("people", "predicted", "counts")},
        )

    def without(self, left_out: AbstractSet[Subject]) -> Shared:
        """The documents that are not among these."""
        return self.only(np.array([subject not in left_out for subject in self.subjects], np.bool_))

    def grades(self, values: Floats) -> Grades:
        """Numbers of the documents as grades by topic."""
        answer: Grades = {name: {} for name in self.names}
        for (topic, document), value in zip(self.subjects, values.tolist(), strict=True):
            answer[topic][document] = value
        return answer


@dataclass(frozen=True)
class Labelled:
    """All labels of a log that a calibration looks at."""

    log: str
    said: list[Said]
    people: dict[Subject, float]  # what stands
    policy: str
    notes: list[str]

    @classmethod
    def of(cls, log: Log, policy: str, aspect: str) -> Labelled:
        """Those of one aspect, people's by a policy."""
        if not goes_by_labels(policy):
            raise DataError(f"a calibration goes by labels, and {policy} by preferences; take another --by")
        said = log.said(aspect)
        decided = decided_by_people(log, said, policy, aspect)
        grades = {(topic, document): grade for topic, own in decided.grades.items() for document, grade in own.items()}
        return cls(log.name, said, grades, decided.policy, decided.notes())

    def model(self, wanted: str) -> str:
        """The model that is named, or the only one."""
        return only_model(self.log, self.said, wanted)

    def models(self, wanted: str) -> list[str]:
        """All models that fit a name."""
        return models_named(self.log, self.said, wanted)

    @cached_property
    def _of_people(self) -> dict[Subject, list[float]]:
        answer: dict[Subject, list[float]] = {}
        for each in self.said:
            if each.side == "label" and each.source in PEOPLE:
                answer.setdefault((each.topic, each.document), []).append(each.grade)
        return answer

    def shared(self, model: str) -> Shared:
        """What people and a model have both labelled."""
        predicted = labels_of_model(self.said, model)
        found = Shared.of(self.log, model, self.people, predicted, self._of_people)
        if not len(found):
            told = (
                f"no overlap: people labelled {len(self.people):,} documents, {shortened(model)!r} {len(predicted):,}"
            )
            raise DataError(f"{self.log}: {told} others; ask it about documents that people labelled")
        return found


def refuse_little(found: Shared) -> None:
    """Stop where nothing can be calibrated on what is left: too few topics, or one grade of people's."""
    if len(found.names) < LEAST_TOPICS:
        told = f"people and {shortened(found.model)!r} share {len(found):,} documents of {len(found.names)} topics"
        raise DataError(f"{found.log}: {told}, expected {LEAST_TOPICS} topics or more; label documents of other topics")
    grades = np.unique(found.people)
    if len(grades) == 1:
        told = f"one grade only: people gave all {len(found):,} documents that both labelled {grades[0]:g}"
        raise DataError(f"{found.log}: {told}; have documents labelled of which some are relevant and some are not")


class Asked(NamedTuple):
    """What a log knows of how a model was asked."""

    used: set[Subject]  # documents that stand in the prompt, or were shown to whoever wrote it
    returned: list[str]  # what the server calls the model
    lengths: dict[str, int]  # of the documents' texts, in characters


def asked_of(log: Log, assessor: str) -> Asked:
    """The series of a model with its prompt; nothing where its labels were added from a file."""
    if not log.has_records():
        return Asked(set(), [], {})
    from cranfield.judge.models.kept import LABEL, rows_of, series_of
    from cranfield.store.tables import questions

    with log.reading() as transaction:
        series = {each.id: each.definition for each in series_of(transaction.connection, assessor)}
        rows = rows_of(transaction.connection, "series", series, questions.c.purpose == LABEL, questions.c.other == "")
    prompts = [definition.get("prompt", {}) for definition in series.values()]
    used = {(topic, document) for prompt in prompts for topic, document in prompt.get("used", ())}
    return Asked(used, sorted({row.returned for row in rows} - {""}), {row.document: row.length for row in rows})


def looked_at(path: str, found: Sequence[Subject]) -> set[Subject]:
    """The documents that a file names: a topic on a line, for all of its documents, or a topic and a document."""
    from cranfield.formats.streams import opened
    from cranfield.kernels import decode

    of_topic: dict[str, list[Subject]] = {}
    for subject in found:
        of_topic.setdefault(subject[0], []).append(subject)
    pairs = {f"{topic}{between}{document}": (topic, document) for topic, document in found for between in " /"}
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
        told = f"names nothing that people and the model both labelled ({len(named):,} lines{such})"
        raise DataError(f"{path}: {told}; expected a topic, or a topic and a document, on each line")
    return answer


def halves(topics: Sequence[str], seed: int) -> tuple[set[str], set[str]]:
    """The topics in two, by lot: those that choose, and the rest."""
    order = np.random.default_rng(seed).permutation(len(topics)).tolist()
    half = len(topics) // 2
    return {topics[i] for i in order[:half]}, {topics[i] for i in order[half:]}

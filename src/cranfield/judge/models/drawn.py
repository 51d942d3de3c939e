"""What chance chose for people to label, and what a model says of all that chance could have chosen.

An estimate from both holds for a random sample whose chances were recorded when a round was opened, and for nothing else:
documents that a strategy went on to, or that somebody picked, are those where labels matter most, and models err there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cranfield.errors import DataError
from cranfield.judge.event import RELEVANCE
from cranfield.judge.plan import TOPICS, find_round, plans
from cranfield.judge.policy import PEOPLE, Latest, Settings, decide_labels, goes_by_labels
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.judge.log import Log
    from cranfield.judge.plan import Round
    from cranfield.judge.policy import Decided, Grades, Subject
    from cranfield.judge.standing import Said

DRAW = "open a round that draws: cranfield judge round LOG --pool FILE --sample N (or --sample-topics N)"


class Chances(NamedTuple):
    """A round that drew at random, and the chance with which each of its documents was drawn."""

    round: Round
    of: dict[Subject, float]


@dataclass(frozen=True)
class Sampled:
    """A sample that people labelled, and the labels of a model on what it was drawn from."""

    log: str
    chances: Chances
    people: Decided
    model: str
    predicted: Grades  # the model's, on what the sample was drawn from

    @property
    def frame(self) -> Mapping[str, Sequence[str]]:
        """What was drawn from: topic → documents."""
        return self.chances.round.frame

    @property
    def by_topics(self) -> bool:
        """Whether topics were drawn, and not single documents."""
        return self.chances.round.unit == TOPICS

    @property
    def topics(self) -> list[str]:
        """The topics that a document was drawn of."""
        return list(dict.fromkeys(topic for topic, _ in self.chances.of))

    @property
    def unlabelled(self) -> tuple[int, int]:
        """How many documents the model has no label for: of those drawn, and of the others."""
        lacking = {
            (topic, document)
            for topic, documents in self.frame.items()
            for document in documents
            if document not in self.predicted.get(topic, {})
        }
        drawn = len(lacking & self.chances.of.keys())
        return drawn, len(lacking) - drawn


def sampled(log: Log, round: str = "", model: str = "", policy: str = Latest.name, aspect: str = RELEVANCE) -> Sampled:
    """The sample of a round (the only one that drew, unless named) with the labels of people and of a model."""
    if not goes_by_labels(policy):
        raise DataError(f"an estimate goes by labels, and {policy} by preferences; take another --by")
    said = log.said(aspect)
    people = decided_by_people(log, said, policy, aspect)
    chances = _chances(log, round)
    name = only_model(log.name, said, model)
    predicted = labels_of_model(said, name)
    _refuse_unfinished(chances, people, log.name)
    frame = chances.round.frame
    inside = {
        topic: {document: predicted[topic, document] for document in documents if (topic, document) in predicted}
        for topic, documents in frame.items()
    }
    found = Sampled(log.name, chances, people, name, {topic: grades for topic, grades in inside.items() if grades})
    _refuse_apart(found)
    return found


def rounds_that_drew(log: Log) -> list[Round]:
    """The rounds from which an estimate can be made, once people have labelled what was drawn."""
    if not log.has_records():
        return []
    with log.reading() as transaction:
        return [plan for plan, _ in plans(transaction.connection) if not _not_drawn(plan)]


def _chances(log: Log, name: str) -> Chances:
    if not log.has_records():
        raise DataError(f"{log.name}: no round, so nobody knows how what people labelled was chosen; {DRAW}")
    from sqlalchemy import select

    from cranfield.store.hashes import refuse_changed_documents
    from cranfield.store.tables import items

    with log.reading() as transaction:
        connection = transaction.connection
        plan = find_round(connection, name)[0] if name else _only([each for each, _ in plans(connection)], log.name)
        reason = _not_drawn(plan)
        if reason:
            raise DataError(f"{log.name}: no estimate from round {plan.name!r}: {reason}; {DRAW}")
        refuse_changed_documents(connection, plan.name)
        columns = select(items.c.topic, items.c.document, items.c.probability)
        rows = connection.execute(columns.where(items.c.round == plan.name, items.c.role == "pool").order_by("item"))
        return Chances(plan, {(row.topic, row.document): row.probability for row in rows})


def _only(every: Sequence[Round], log: str) -> Round:
    """The only round that drew at random; where none did the last, which says why."""
    drew = [plan for plan in every if not _not_drawn(plan)]
    if len(drew) > 1:
        names = ", ".join(repr(plan.name) for plan in drew)
        raise DataError(f"{log}: {len(drew)} rounds drew at random; name one with --round: {names}")
    if not every:
        raise DataError(f"{log}: no round, so nobody knows how what people labelled was chosen; {DRAW}")
    return drew[0] if drew else every[-1]


def _not_drawn(plan: Round) -> str:
    """Why a round is no random sample; empty if it is one."""
    if plan.strategy:
        return f"it is adaptive ({plan.strategy}): what was labelled depends on earlier labels, not on chance alone"
    if plan.frame:
        return ""
    if plan.sample:
        return "it did not record what its sample was drawn from, as an older version opened it"
    return "its documents were picked, not drawn at random with recorded chances"


def models_named(log: str, said: Iterable[Said], wanted: str) -> list[str]:
    """The models that have labels: the one that is named, with its prompt (MODEL/PROMPT-VERSION), all prompts of it, or all."""
    counts = Counter(each.assessor for each in said if each.source == "model" and each.side == "label")
    if not counts:
        raise DataError(f"{log}: no label of a model stands; ask one, or add its labels with judge add --source model")
    fitting = [name for name in counts if not wanted or name.startswith(f"{wanted}/")]
    fitting = [wanted] if wanted in counts else fitting
    if not fitting:
        told = _counted_models(counts)
        raise DataError(f"{log}: no label of the model {shortened(wanted)!r}; there are those of {told}")
    return sorted(fitting)


def only_model(log: str, said: Iterable[Said], wanted: str) -> str:
    """The model that is named, with its prompt or without, or the only one."""
    said = list(said)
    fitting = models_named(log, said, wanted)
    if len(fitting) > 1:
        counts = Counter(each.assessor for each in said if each.source == "model" and each.side == "label")
        told = f"labels of {len(fitting)} models; name one with --model: {_counted_models(counts)}"
        raise DataError(f"{log}: {told}")
    return fitting[0]


def _counted_models(counts: Counter[str]) -> str:
    return ", ".join(f"{shortened(name)!r} ({count:,})" for name, count in counts.most_common(10))


def labels_of_model(said: Iterable[Said], name: str) -> dict[Subject, float]:
    """The last word of a model on each document."""
    labels = (each for each in said if each.source == "model" and each.side == "label" and each.assessor == name)
    mine = sorted(labels, key=lambda each: (each.time, each.id))
    return {(each.topic, each.document): each.grade for each in mine}


def decided_by_people(log: Log, said: Iterable[Said], policy: str, aspect: str) -> Decided:
    """What stands of people's labels by a policy that goes by labels."""
    ours = [each for each in said if each.side == "adjudication" or each.source in PEOPLE]
    people = decide_labels(ours, policy, Settings(aspect=aspect))
    if not len(people):
        raise DataError(f"{log.name}: no label of a person stands; add some, or have a round judged")
    return people


def _refuse_unfinished(chances: Chances, people: Decided, log: str) -> None:
    """What was drawn and has no grade would be left out by somebody's choice, not by chance."""
    where = f"{log}, round {chances.round.name!r}"
    lacking = [each for each in chances.of if each[1] not in people.grades.get(each[0], {})]
    if len(lacking) == len(chances.of):
        raise DataError(f"{where}: no label of a person on any of the {len(lacking):,} documents that were drawn")
    if lacking:
        topic, document = lacking[0]
        first = f"the first is topic {shortened(topic)!r}, document {shortened(document)!r}"
        told = f"{len(lacking):,} of {len(chances.of):,} documents that were drawn have no grade of a person"
        raise DataError(f"{where}: {told}; {first}: have them judged or adjudicated, as what is left out is not random")


def _refuse_apart(found: Sampled) -> None:
    """People and the model must have labelled some of the same documents, each with more than one grade."""
    where = f"{found.log}, round {found.chances.round.name!r}"
    both = [each for each in found.chances.of if each[1] in found.predicted.get(each[0], {})]
    if not both:
        told = f"no overlap: the model {found.model!r} has labelled none of the {len(found.chances.of):,} documents"
        raise DataError(f"{where}: {told} that people labelled; ask it about the whole pool")
    grades = {found.people.grades[topic][document] for topic, document in found.chances.of}
    if len(grades) == 1:
        raise DataError(f"{where}: one grade only: people gave every document {grades.pop():g}; draw more documents")
    grades = {grade for documents in found.predicted.values() for grade in documents.values()}
    if len(grades) == 1:
        told = f"one grade only: the model {found.model!r} gave every document {grades.pop():g} and predicts nothing"
        raise DataError(f"{where}: {told}; ask with another prompt, or go by the labels of people alone")

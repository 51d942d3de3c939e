"""How sure the grades of a log are: for each document that several people labelled, how likely each grade is.

The chances are those of the policy's model, or the shares of votes where a policy has none. An adjudication is sure.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, cast

from cranfield.compare.label_noise import OF_VOTES, Doubt
from cranfield.errors import ConventionError, DataError
from cranfield.judge.policy import as_labels, labels_of
from cranfield.judge.standing import standing as standing_of
from cranfield.stats.consensus.method import METHODS, shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.judge.event import Event
    from cranfield.judge.log import Log
    from cranfield.judge.policy import Decided, Subject
    from cranfield.judge.standing import Key

ROUGH = (
    "shares of votes are rough chances of grades: --by dawid-skene learns them, from three labels a document or more"
)


def doubt_of_version(log: Log, name: str) -> tuple[Decided, Doubt]:
    """What was frozen under a name, and the doubt that its policy left."""
    from cranfield.judge.versions import find_version, thaw

    decided = thaw(log, name)
    with log.reading() as transaction:
        events = transaction.events(find_version(log, name).place)
    return decided, doubt_of(standing_of(events), decided)


def doubt_of(standing: Mapping[Key, Event], decided: Decided) -> Doubt:
    """The doubt that a decision leaves.

    >>> from cranfield.judge import Event, standing
    >>> from cranfield.judge.policy import decide
    >>> said = standing([Event(topic="q", document="d", grade=g, assessor=who) for who, g in zip("abc", [0, 2, 2])])
    >>> doubt = doubt_of(said, decide(said, "majority"))
    >>> doubt.subjects, doubt.chance.round(2).tolist()
    ([('q', 'd')], [[0.33, 0.67]])
    """
    if decided.strengths:
        raise ConventionError(
            f"label noise: {decided.policy} makes strengths of preferences, which have no other grades"
        )
    how = decided.settings
    events = labels_of(standing, how.aspect, how.sources)
    raters: dict[Subject, set[str]] = defaultdict(set)
    for event in events:
        raters[event.topic, event.document].add(event.assessor)
    sure = {
        (event.topic, event.document)
        for key, event in standing.items()
        if key.side == "adjudication" and key.aspect == how.aspect and event.grade is not None
    }
    labels = as_labels(events)
    verdict = decided.verdict
    items, chance = (labels.items, shares(labels.once())) if verdict is None else (verdict.items, verdict.posterior)
    subjects = cast("Sequence[Subject]", items)
    several = [
        (row, subject)
        for row, subject in enumerate(subjects)
        if len(raters[subject]) > 1 and subject not in sure and subject[1] in decided.grades.get(subject[0], {})
    ]
    if not several:
        raise DataError("label noise: no document has labels of several people: there is nothing to redraw")
    modelled = verdict is not None and METHODS.named(verdict.method).models_raters
    scale = labels.scale.values
    assert scale is not None  # grades are numbers
    return Doubt(
        subjects=[subject for _, subject in several],
        grades=scale,
        chance=chance[[row for row, _ in several]],
        documents=len(decided),
        chances=f"the posterior of {decided.policy}"
        if modelled
        else f"{OF_VOTES} ({decided.policy} has no model of errors)",
        policy=decided.policy,
        notes=[*decided.notes(), *([] if modelled else [ROUGH])],
    )

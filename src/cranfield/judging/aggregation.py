"""The result of label aggregation: one grade per document, the labels behind it, and how certain it is.

For a document that several people labelled, the probability of each grade comes from the policy's model, or from the shares of
votes if the policy has no model. An adjudicated grade is certain.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.results import Answer, Layout, Part, Table
from cranfield.comparison.label_noise import OF_VOTES, LabelUncertainty
from cranfield.judging.current_labels import LabelKey, graded_labels
from cranfield.judging.event import CLICKS
from cranfield.judging.policies import DecidedGrades, Subject, as_labels, labels_of
from cranfield.stats.consensus.method import METHODS, shares

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cranfield.judging.event import Event
    from cranfield.judging.log import Log


ROUGH = "shares of votes are rough chances of grades: --policy dawid-skene learns them, from three labels per document or more"


def uncertainty_of_version(log: Log, name: str) -> tuple[DecidedGrades, LabelUncertainty]:
    """The grades of a frozen version, and how uncertain they are."""
    from cranfield.judging.versions import labels_at_version, thaw

    decided = thaw(log, name, whole=True)
    return decided, uncertainty_of(labels_at_version(log, name), decided)


def uncertainty_of(current: Mapping[LabelKey, Event], decided: DecidedGrades) -> LabelUncertainty:
    """How uncertain the grades of an aggregation are.

    >>> from cranfield.judging import Event, current_events
    >>> from cranfield.judging.policies import decide
    >>> said = current_events([Event(topic="q", document="d", grade=g, assessor=who) for who, g in zip("abc", [0, 2, 2])])
    >>> uncertainty = uncertainty_of(said, decide(said, "majority"))
    >>> uncertainty.subjects, uncertainty.chance.round(2).tolist()
    ([('q', 'd')], [[0.33, 0.67]])
    """
    if decided.strengths:
        raise ConventionError(f"label noise: {decided.policy} gives strengths, not grades that could be redrawn")
    how = decided.settings
    events = labels_of(current, how.aspect, how.sources)
    raters: dict[Subject, set[str]] = defaultdict(set)
    for event in events:
        raters[event.topic, event.document].add(event.assessor)
    graded = graded_labels(current, how.aspect)
    sure = {(each.topic, each.document) for each in graded if each.side == "adjudication"}
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
    votes, posterior = f"{OF_VOTES} ({decided.policy} has no model of errors)", f"the posterior of {decided.policy}"
    return LabelUncertainty(
        subjects=[subject for _, subject in several],
        grades=scale,
        chance=chance[[row for row, _ in several]],
        documents=len(decided),
        chances=posterior if modelled else votes,
        policy=decided.policy,
        notes=[*decided.notes(), *([] if modelled else [ROUGH])],
    )


@dataclass(frozen=True, repr=False)
class AggregationResult(Answer):
    """The result of `judge aggregate`: the grades by a policy, and the labels behind them."""

    log: str
    decided: DecidedGrades
    labels: list[Event]

    @property
    def people(self) -> list[str]:
        """The assessors whose labels count."""
        return sorted({event.assessor for event in self.labels})

    def content(self, how: Layout) -> Iterator[Part]:
        decided = self.decided
        by = f"{len(self.people):,} {'person' if len(self.people) == 1 else 'people'}"
        what = "preferences" if decided.strengths else "labels"
        documents = f"{len(decided):,} documents of {len(decided.grades):,} topics"
        own = decided.of_collection
        more = f", and {own:,} of them by the collection's own judgments" if own else ""
        clicks = f", and {decided.of_clicks:,} by clicks" if decided.of_clicks else ""
        yield f"{documents} graded by {decided.policy} from {decided.labels:,} {what} of {by}{more}{clicks}"
        rows = [self._person(name, how) for name in self.people]
        reliable = decided.verdict is not None and decided.verdict.reliability is not None
        if rows and not decided.strengths:
            yield Table(["assessor", "labels", "as decided", *["reliability"] * reliable], rows)

    def _person(self, name: str, how: Layout) -> list[str]:
        mine = [event for event in self.labels if event.assessor == name]
        grades = self.decided.grades
        decided = [event for event in mine if event.document in grades.get(event.topic, {})]
        same = sum(event.grade == grades[event.topic][event.document] for event in decided)
        share = how.number(same / len(decided)) if decided else how.undefined
        verdict, row = self.decided.verdict, [name or how.undefined, f"{len(mine):,}", share]
        if verdict is None or verdict.reliability is None:
            return row
        return [*row, how.number(float(verdict.reliability[verdict.raters.index(name)]))]

    def plain(self, how: Layout) -> dict[str, Any]:
        decided, verdict = self.decided, self.decided.verdict
        answer: dict[str, Any] = {
            "log": self.log,
            "policy": decided.policy,
            "settings": {**vars(decided.settings), "sources": list(decided.settings.sources)},
            "labels": decided.labels,
            "contradictions": decided.contradictions,
            "adjudicated": decided.adjudicated,
            "of_collection": decided.of_collection,
            **({"of_clicks": decided.of_clicks} if CLICKS in decided.settings.sources else {}),
            "undecided": [list(subject) for subject in decided.undecided],
            "left_out": decided.left_out,
            "grades": decided.grades,
        }
        if verdict is not None:
            scale = list(verdict.scale.names)
            answer |= {
                "scale": scale,
                "posteriors": [
                    {"topic": item[0], "document": item[1], "posterior": row}  # type: ignore[index]
                    for item, row in zip(verdict.items, verdict.posterior.tolist(), strict=True)
                ],
                "confusion": dict(zip(map(str, verdict.raters), verdict.confusion.tolist(), strict=True)),
                "converged": verdict.converged,
                "tied": verdict.tied,
            }
            if verdict.reliability is not None:
                answer["reliability"] = dict(zip(map(str, verdict.raters), verdict.reliability.tolist(), strict=True))
        if decided.strengths:
            groups = {topic: list(map(list, each.components)) for topic, each in decided.strengths.items()}
            answer["components"] = groups
        return answer

    def records(self, how: Layout) -> Iterator[tuple[Any, ...]]:
        yield "topic", "document", "grade"
        for topic, documents in self.decided.grades.items():
            yield from ((topic, document, grade) for document, grade in documents.items())

    def notes(self, shell: bool = False) -> list[str]:
        return self.decided.notes()

"""Policies: which grade stands where several people labelled a document.

`latest` and `adjudicated` go by who spoke last and by who decided; every other policy is a consensus of the raters
(`stats.consensus`) and is found by its name there. Whatever the policy, an adjudication decides its document, and labels
of models count only where they are asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from cranfield.errors import ConventionError, DataError
from cranfield.judge.event import RELEVANCE, of_lists
from cranfield.judge.standing import said_of
from cranfield.stats.consensus.method import METHODS, Ties
from cranfield.stats.consensus.preference import METHODS_OF_PREFERENCES, Preferences
from cranfield.stats.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.judge.event import Event
    from cranfield.judge.standing import Key, Said
    from cranfield.stats.consensus.method import Verdict
    from cranfield.stats.consensus.preference import Strengths

    Label = Event | Said

Subject = tuple[str, str]  # topic and document
Grades = dict[str, dict[str, float]]

PEOPLE = ("human", "import")


class OfLog(ABC):
    """A policy that goes by who spoke and when, and not by how good raters are: one class each."""

    name: ClassVar[str]

    @staticmethod
    @abstractmethod
    def grades(labels: Sequence[Label]) -> dict[Subject, float]:
        """What stands of labels in the order of their times; a document that it leaves open is not in it."""


class Latest(OfLog):
    """The last label of whomever stands."""

    name = "latest"

    @staticmethod
    def grades(labels: Sequence[Label]) -> dict[Subject, float]:
        return {(event.topic, event.document): event.grade or 0.0 for event in labels}


class Adjudicated(OfLog):
    """What all agree on stands; where they do not, only what somebody has decided."""

    name = "adjudicated"

    @staticmethod
    def grades(labels: Sequence[Label]) -> dict[Subject, float]:
        return {subject: next(iter(grades)) for subject, grades in grades_of(labels).items() if len(grades) == 1}


OWN: dict[str, type[OfLog]] = {each.name: each for each in OfLog.__subclasses__()}


def grades_of(labels: Iterable[Label]) -> dict[Subject, set[float]]:
    """The grades that each document was given."""
    said: dict[Subject, set[float]] = {}
    for event in labels:
        said.setdefault((event.topic, event.document), set()).add(event.grade or 0.0)
    return said


def policies() -> list[str]:
    """Every policy by name."""
    return [*OWN, *METHODS, *METHODS_OF_PREFERENCES]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What decides beside the policy's name."""

    aspect: str = RELEVANCE
    sources: tuple[str, ...] = PEOPLE
    ties: Ties = "lower"


@dataclass(frozen=True, eq=False)
class Decided:
    """The grades that stand by a policy, and how they came about."""

    policy: str
    settings: Settings
    grades: Grades
    labels: int  # that were looked at
    contradictions: int  # documents that people grade differently
    adjudicated: int  # of them all, decided by a third person
    undecided: list[Subject]  # left out
    left_out: dict[str, int] = field(default_factory=dict)  # labels, by why
    verdict: Verdict | None = None
    strengths: dict[str, Strengths] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.grades.values()))

    def notes(self) -> list[str]:
        """What nobody may be left in the dark about."""
        said = []
        if self.contradictions:
            said.append(contradicting(self.contradictions, self.policy, self.adjudicated))
        if self.undecided:
            said.append(f"{len(self.undecided):,} documents are left out: people disagree and nobody has decided")
        apart = sum(len(each.components) > 1 for each in self.strengths.values())
        if apart:
            told = "documents are not all linked by wins both ways, and how far groups are apart rests on the prior"
            said.append(f"{apart:,} of {len(self.strengths):,} topics: {told}")
        said += [f"{count:,} labels are left out: {why}" for why, count in self.left_out.items()]
        return said


def contradicting(documents: int, policy: str, adjudicated: int = 0) -> str:
    """The sentence on labels of people who disagree, which every verb that reads them says."""
    some = "1 document has" if documents == 1 else f"{documents:,} documents have"
    third = f", {adjudicated:,} of all by adjudication" if adjudicated else ""
    return f"{some} labels that contradict each other; resolved by {policy}{third}"


def labels_of(
    standing: Mapping[Key, Event], aspect: str = RELEVANCE, sources: Sequence[str] = PEOPLE, repeats: bool = False
) -> list[Event]:
    """The labels that stand for an aspect, without repeats unless asked, in the order of their times."""
    found = [
        event
        for key, event in standing.items()
        if key.side == "label"
        and key.aspect == aspect
        and (repeats or not key.repeat)
        and event.grade is not None
        and event.source in sources
    ]
    return sorted(found, key=lambda event: (event.time, event.id))


def preferences_of(standing: Mapping[Key, Event], aspect: str, sources: Sequence[str]) -> list[Event]:
    """The preferences that stand for an aspect, without repeats."""
    return [
        event
        for key, event in standing.items()
        if key.side == "preference" and key.aspect == aspect and not key.repeat and event.source in sources
    ]


def as_labels(events: Iterable[Label]) -> Labels:
    """Events as statistics read them: people are raters, documents of a topic are items."""
    events = list(events)
    return Labels.of(
        [event.assessor for event in events],
        [(event.topic, event.document) for event in events],
        [event.grade for event in events],
    )


def decide(
    standing: Mapping[Key, Event],
    policy: str = Latest.name,
    settings: Settings | None = None,
    gold: Mapping[Subject, float] | None = None,
) -> Decided:
    """The grades that stand by a policy.

    >>> from cranfield.judge import Event, standing
    >>> said = [Event(topic="q", document="d", grade=g, assessor=who) for who, g in zip("abc", [0, 2, 2])]
    >>> decide(standing(said), "majority").grades
    {'q': {'d': 2.0}}
    """
    how = settings or Settings()
    if not goes_by_labels(policy):
        return _by_preferences(standing, policy, how)
    return decide_labels(said_of(standing, how.aspect), policy, how, gold)


def goes_by_labels(policy: str) -> bool:
    """Whether a policy goes by labels, and not by preferences; a name that is nobody's is refused."""
    return policy in OWN or not _is_of_preferences(policy)


def weighs_labels(policy: str) -> bool:
    """Whether a policy makes one grade of the labels of several people, where gold and the rule for ties count."""
    return policy not in OWN and goes_by_labels(policy)


def meanings(policy: str) -> list[str]:
    """A policy, and what the same name meant for versions that were frozen earlier.

    >>> meanings("majority"), meanings("mean")
    (['majority'], ['mean', 'mean(round=no)'])
    """
    if policy in OWN or not METHODS.knows(policy):
        return [policy]
    method = METHODS.named(policy)
    bare = str(method) == method.name  # no parameter was typed
    return [policy, *[method.once_meant] * bool(method.once_meant and bare)]


def decide_labels(
    stand: Iterable[Said], policy: str, how: Settings, gold: Mapping[Subject, float] | None = None
) -> Decided:
    """The grades that stand by a policy that goes by labels, given those of one aspect."""
    stand = list(stand)
    known = {(each.topic, each.document): each.grade for each in stand if each.side == "adjudication"}
    everybody = [each for each in stand if each.side == "label"]
    labels = [each for each in everybody if each.source in how.sources]
    labels.sort(key=lambda each: (each.time, each.id))
    said, verdict = grades_of(labels), None
    if policy in OWN:
        answer = OWN[policy].grades(labels)
    else:
        verdict = _verdict(labels, policy, how, gold)
        values = zip(verdict.items, verdict.value.tolist(), strict=True)
        answer = {subject: value for subject, value in values if value == value}  # type: ignore[misc]
    undecided = sorted(said.keys() - answer.keys() - known.keys())
    answer |= known
    return Decided(
        policy=str(policy) if verdict is None else verdict.method,
        settings=how,
        grades=_nested(answer),
        labels=len(labels),
        contradictions=sum(len(grades) > 1 for grades in said.values()),
        adjudicated=len(known),
        undecided=undecided,
        left_out=_left_out(everybody, how),
        verdict=verdict,
    )


def _is_of_preferences(policy: str) -> bool:
    """Whether a policy makes strengths of preferences; a name that is nobody's is refused with all that there are."""
    for registry, of_preferences in ((METHODS, False), (METHODS_OF_PREFERENCES, True)):
        if registry.knows(policy):
            registry.named(policy)  # its parameters too
            return of_preferences
    raise ConventionError(f"no policy {policy!r}; there are {', '.join(policies())}")


def _verdict(labels: list[Said], policy: str, how: Settings, gold: Mapping[Subject, float] | None) -> Verdict:
    method = METHODS.named(policy)
    as_read = as_labels(labels)
    truth = {item: grade for item, grade in (gold or {}).items() if item in set(as_read.items)}
    on_scale = {item: grade for item, grade in truth.items() if grade in as_read.scale.names}
    return method.decide(as_read, ties=how.ties, gold=on_scale or None)


def _by_preferences(standing: Mapping[Key, Event], policy: str, how: Settings) -> Decided:
    """Strengths as grades, topic by topic: the weakest has 0."""
    method = METHODS_OF_PREFERENCES.named(policy)
    if of_lists(how.aspect):
        raise DataError(f"{how.aspect!r} is about the lists of runs: preferences between them make no qrels")
    pairs: dict[str, list[Event]] = {}
    for event in preferences_of(standing, how.aspect, how.sources):
        pairs.setdefault(event.topic, []).append(event)
    if not pairs:
        raise DataError(f"{policy} goes by preferences, and there are none")
    grades: Grades = {}
    strengths = {}
    for topic, events in sorted(pairs.items()):
        wins = [
            (event.document, event.other) if event.grade == 1 else (event.other, event.document)
            for event in events
            if event.grade
        ]
        found = method.strengths(Preferences.of(wins, [(e.document, e.other) for e in events if not e.grade]))
        groups = found.components
        if not found.comparable and len(groups) > 1:
            told = f"topic {topic!r}: {len(groups)} groups of documents are not linked by wins both ways"
            raise DataError(f"{told} (the largest has {len(groups[0])}); give a prior, as in {policy}(prior=1)")
        lowest = float(found.strength.min())
        grades[topic] = {
            str(item): value - lowest for item, value in zip(found.items, found.strength.tolist(), strict=True)
        }
        strengths[topic] = found
    count = sum(map(len, pairs.values()))
    return Decided(str(method), how, grades, count, _both_ways(pairs), 0, [], {}, None, strengths)


def _both_ways(pairs: Mapping[str, list[Event]]) -> int:
    """How many pairs of documents people order differently."""
    said: dict[tuple[str, str, str], set[float]] = {}
    for topic, events in pairs.items():
        for event in events:
            one, other = sorted((event.document, event.other))
            sign = 1.0 if event.document == one else -1.0
            said.setdefault((topic, one, other), set()).add(sign * (event.grade or 0.0))
    return sum(len(each) > 1 for each in said.values())


def _left_out(labels: Iterable[Said], how: Settings) -> dict[str, int]:
    sources = Counter(each.source for each in labels if each.source not in how.sources)
    return {f"they are a {source}'s (--sources names who counts)": count for source, count in sources.items()}


def _nested(grades: Mapping[Subject, Any]) -> Grades:
    answer: Grades = {}
    for topic, document in sorted(grades):
        answer.setdefault(topic, {})[document] = float(grades[topic, document])
    return answer

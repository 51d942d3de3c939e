"""Policies of label aggregation: which grade a document gets if several people labelled it.

`latest` takes the last label, `adjudicated` the grade that all agree on. Every other policy is a consensus method of
`stats.consensus`, found by its name.

Precedence is the same under every policy, and `decide_labels` alone applies it: an adjudication, then people's labels by
the policy, then the collection's own judgment, then clicks. Labels of models and judgments from clicks count only on
request.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from cranfield.base.errors import DataError
from cranfield.base.registry import Member, Registry, unknown
from cranfield.formats.label_files import Judgment
from cranfield.judging.current_labels import SOURCE_SIDES, GradedLabel, LabelKey, graded_labels
from cranfield.judging.event import CLICKS, COLLECTION, RELEVANCE, Event, of_lists
from cranfield.stats.consensus.method import METHODS, ConsensusLabels, Ties
from cranfield.stats.consensus.preference import METHODS_OF_PREFERENCES, PairwisePreferences, Strengths
from cranfield.stats.ratings import Labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.judging.current_labels import RatedLabel

    Label = Event | GradedLabel | RatedLabel

Subject = tuple[str, str]  # topic and document
Grades = dict[str, dict[str, float]]

PEOPLE = ("human", "import")
ONE_SET = (*PEOPLE, COLLECTION)  # the sources that count unless others are requested


class LogPolicy(Member, ABC):
    """A policy that goes by time and adjudication, not by the quality of the raters."""

    registry: ClassVar[Registry[type[LogPolicy]]] = Registry("policy", "policies")

    @staticmethod
    @abstractmethod
    def grades(labels: Sequence[Label]) -> dict[Subject, float]:
        """The grades from labels ordered by time; undecided documents are missing."""


class Latest(LogPolicy):
    """The last label of each document."""

    name = "latest"

    @staticmethod
    def grades(labels: Sequence[Label]) -> dict[Subject, float]:
        return {(event.topic, event.document): event.grade or 0.0 for event in labels}


class Adjudicated(LogPolicy):
    """The grade that all agree on; if they disagree, only an adjudication counts."""

    name = "adjudicated"

    @staticmethod
    def grades(labels: Sequence[Label]) -> dict[Subject, float]:
        return {subject: next(iter(grades)) for subject, grades in grades_of(labels).items() if len(grades) == 1}


LOG_POLICIES = LogPolicy.registry


def grades_of(labels: Iterable[Label]) -> dict[Subject, set[float]]:
    """The different grades of each document."""
    grades: dict[Subject, set[float]] = {}
    for event in labels:
        grades.setdefault((event.topic, event.document), set()).add(event.grade or 0.0)
    return grades


def policies() -> list[str]:
    """Every policy by name."""
    return [*LOG_POLICIES, *METHODS, *METHODS_OF_PREFERENCES]


@dataclass(frozen=True, kw_only=True)
class PolicySettings:
    """What a policy counts: the aspect, the sources, and the rule for ties."""

    aspect: str = RELEVANCE
    sources: tuple[str, ...] = ONE_SET
    ties: Ties = "lower"


@dataclass(frozen=True, eq=False)
class DecidedGrades:
    """The grades by a policy, and how they came about."""

    policy: str
    settings: PolicySettings
    grades: Grades
    labels: int  # that were looked at
    contradictions: int  # documents that people grade differently
    adjudicated: int  # of them all, decided by a third person
    undecided: list[Subject]  # left out
    left_out: dict[str, int] = field(default_factory=dict)  # labels, by why
    verdict: ConsensusLabels | None = None
    strengths: dict[str, Strengths] = field(default_factory=dict)
    of_collection: int = 0  # documents that have the collection's own grade
    of_clicks: int = 0  # documents that have a grade from clicks alone

    def __len__(self) -> int:
        return sum(map(len, self.grades.values()))

    def notes(self) -> list[str]:
        """Notes that every user of the grades should see."""
        notes = []
        if self.contradictions:
            notes.append(contradicting(self.contradictions, self.policy, self.adjudicated))
        if self.undecided:
            notes.append(f"{len(self.undecided):,} documents are left out: people disagree and nobody has decided")
        apart = sum(len(each.components) > 1 for each in self.strengths.values())
        if apart:
            note = "documents are not all linked by wins both ways, and how far groups are apart rests on the prior"
            notes.append(f"{apart:,} of {len(self.strengths):,} topics: {note}")
        if self.of_clicks:
            documents = (
                "1 document has its grade" if self.of_clicks == 1 else f"{self.of_clicks:,} documents have their grades"
            )
            notes.append(f"{documents} from clicks: nobody judged {'it' if self.of_clicks == 1 else 'them'}")
        notes += [f"{count:,} labels are left out: {why}" for why, count in self.left_out.items()]
        return notes


def contradicting(documents: int, policy: str, adjudicated: int = 0) -> str:
    """The note about labels of people who disagree."""
    some = "1 document has" if documents == 1 else f"{documents:,} documents have"
    third = f", {adjudicated:,} of all by adjudication" if adjudicated else ""
    return f"{some} labels that contradict each other; resolved by {policy}{third}"


def judgments_of(labels: Iterable[GradedLabel], sources: Sequence[str] = PEOPLE) -> list[Judgment]:
    """People's labels as judgments in the order of their times, adjudications last.

    Judgments from clicks and the collection's own, if they are among the sources, come first, and only of documents that the
    stronger sources do not judge.
    """
    ours = [each for each in labels if each.source in sources]
    ours.sort(key=lambda each: (each.side == "adjudication", each.time, each.id))
    answer = [
        Judgment(each.topic, each.document, each.grade, each.assessor, each.time)
        for each in ours
        if each.side not in SOURCE_SIDES
    ]
    for side in SOURCE_SIDES:
        judged = {(each.topic, each.document) for each in answer}
        own = [each for each in ours if each.side == side and (each.topic, each.document) not in judged]
        answer = [*(Judgment(each.topic, each.document, each.grade) for each in own), *answer]
    return answer


def labels_of(
    current: Mapping[LabelKey, Event], aspect: str = RELEVANCE, sources: Sequence[str] = PEOPLE, repeats: bool = False
) -> list[Event]:
    """The current labels of an aspect by time, without repeats unless requested."""
    labels = [
        event
        for key, event in current.items()
        if key.side == "label"
        and key.aspect == aspect
        and (repeats or not key.repeat)
        and event.grade is not None
        and event.source in sources
    ]
    return sorted(labels, key=lambda event: (event.time, event.id))


def preferences_of(current: Mapping[LabelKey, Event], aspect: str, sources: Sequence[str]) -> list[Event]:
    """The current preferences of an aspect, without repeats."""
    return [
        event
        for key, event in current.items()
        if key.side == "preference" and key.aspect == aspect and not key.repeat and event.source in sources
    ]


def as_labels(events: Sequence[Label]) -> Labels:
    """Events as input for statistics: people are raters, documents of a topic are items."""
    return Labels.of(
        [event.assessor for event in events],
        [(event.topic, event.document) for event in events],
        [event.grade for event in events],
    )


def decide(
    current: Mapping[LabelKey, Event],
    policy: str = Latest.name,
    settings: PolicySettings | None = None,
    gold: Mapping[Subject, float] | None = None,
) -> DecidedGrades:
    """The grades of the current events by a policy.

    >>> from cranfield.judging import Event, current_events
    >>> said = [Event(topic="q", document="d", grade=g, assessor=who) for who, g in zip("abc", [0, 2, 2])]
    >>> decide(current_events(said), "majority").grades
    {'q': {'d': 2.0}}
    """
    how = settings or PolicySettings()
    if not goes_by_labels(policy):
        return _by_preferences(current, policy, how)
    return decide_labels(graded_labels(current, how.aspect), policy, how, gold)


def goes_by_labels(policy: str) -> bool:
    """Whether a policy uses labels rather than preferences; an unknown name raises an error that lists all policies."""
    if LOG_POLICIES.find(policy) is not None:
        return True
    for registry, by_labels in ((METHODS, True), (METHODS_OF_PREFERENCES, False)):
        if registry.knows(policy):
            registry.named(policy)  # its parameters too
            return by_labels
    raise unknown("policy", policy, policies())


def weighs_labels(policy: str) -> bool:
    """Whether a policy aggregates several people's labels, so that gold and the rule for ties count."""
    return LOG_POLICIES.find(policy) is None and goes_by_labels(policy)


def meanings(policy: str) -> list[str]:
    """The policies that a name may stand for: the present one, and the one that it named in earlier releases.

    >>> meanings("majority"), meanings("mean")
    (['majority'], ['mean', 'mean(round=no)'])
    """
    if LOG_POLICIES.find(policy) is not None or not METHODS.knows(policy):
        return [policy]
    method = METHODS.named(policy)
    bare = str(method) == method.name  # no parameter was typed
    return [policy, *[method.once_meant] * bool(method.once_meant and bare)]


def decide_labels(
    current: Sequence[GradedLabel], policy: str, how: PolicySettings, gold: Mapping[Subject, float] | None = None
) -> DecidedGrades:
    """The grades by a policy that uses labels, given the labels of one aspect."""
    adjudications = {(each.topic, each.document): each.grade for each in current if each.side == "adjudication"}
    everybody = [each for each in current if each.side == "label"]
    labels = [each for each in everybody if each.source in how.sources]
    labels.sort(key=lambda each: (each.time, each.id))
    grades, verdict = grades_of(labels), None
    log_policy = LOG_POLICIES.find(policy)
    if log_policy is not None:
        name, answer = log_policy.name, log_policy.grades(labels)
    else:
        verdict = _verdict(labels, policy, how, gold)
        name = verdict.method
        values = zip(verdict.items, verdict.value.tolist(), strict=True)
        answer = {subject: value for subject, value in values if value == value}  # type: ignore[misc]
    sources = Counter(each.source for each in everybody if each.source not in how.sources)
    undecided = sorted(grades.keys() - answer.keys() - adjudications.keys())
    answer |= adjudications
    collection_grades = _judgments_of_source(COLLECTION, current, how, {*grades, *adjudications})
    answer |= collection_grades
    click_grades = _judgments_of_source(CLICKS, current, how, {*grades, *answer})
    answer |= click_grades
    return DecidedGrades(
        policy=name,
        settings=how,
        grades=nested(sorted(answer.items())),
        labels=len(labels),
        contradictions=sum(len(grades) > 1 for grades in grades.values()),
        adjudicated=len(adjudications),
        undecided=undecided,
        left_out={f"they are a {source}'s (--sources names who counts)": n for source, n in sources.items()},
        of_collection=len(collection_grades),
        of_clicks=len(click_grades),
        verdict=verdict,
    )


def _judgments_of_source(
    source: str, current: Sequence[GradedLabel], how: PolicySettings, judged: set[Subject]
) -> dict[Subject, float]:
    """The judgments of a source with a side of its own, for documents that nobody judged, if the source counts."""
    if source not in how.sources:
        return {}
    judgments = (((each.topic, each.document), each.grade) for each in current if each.side == source)
    return {subject: grade for subject, grade in judgments if subject not in judged}


def decide_by_topic(
    topics: Iterable[Sequence[GradedLabel]],
    policy: str,
    how: PolicySettings,
    gold: Mapping[Subject, float] | None = None,
) -> DecidedGrades:
    """The grades that `decide_labels` gives to the labels of all topics, which come topic by topic.

    A log policy looks at one document at a time, so it never sees more than one topic; a consensus method sees all labels.
    """
    if LOG_POLICIES.find(policy) is None:
        return decide_labels(list(chain.from_iterable(topics)), policy, how, gold)
    parts = [decide_labels(labels, policy, how) for labels in topics]
    if not parts:
        return decide_labels([], policy, how)
    left_out: Counter[str] = Counter()
    for part in parts:
        left_out.update(part.left_out)
    grades = {topic: grades for part in parts for topic, grades in part.grades.items()}
    counts = {
        each.name: sum(getattr(part, each.name) for part in parts)
        for each in fields(DecidedGrades)
        if isinstance(getattr(parts[0], each.name), int)
    }
    undecided = sorted(chain.from_iterable(part.undecided for part in parts))
    in_order = dict(sorted(grades.items()))
    return replace(parts[0], grades=in_order, undecided=undecided, left_out=dict(left_out), **counts)


def _verdict(
    labels: list[GradedLabel], policy: str, how: PolicySettings, gold: Mapping[Subject, float] | None
) -> ConsensusLabels:
    method = METHODS.named(policy)
    as_read = as_labels(labels)
    truth = {item: grade for item, grade in (gold or {}).items() if item in set(as_read.items)}
    on_scale = {item: grade for item, grade in truth.items() if grade in as_read.scale.names}
    return method.decide(as_read, ties=how.ties, gold=on_scale or None)


def _by_preferences(current: Mapping[LabelKey, Event], policy: str, how: PolicySettings) -> DecidedGrades:
    """The grades from preferences: each document's strength, counted from the weakest document of its topic."""
    method = METHODS_OF_PREFERENCES.named(policy)
    if of_lists(how.aspect):
        raise DataError(f"{how.aspect!r} is about the lists of runs: preferences between them make no qrels")
    pairs: dict[str, list[Event]] = {}
    for event in preferences_of(current, how.aspect, how.sources):
        pairs.setdefault(event.topic, []).append(event)
    if not pairs:
        raise DataError(f"{policy} uses preferences, and the log has none")
    grades: Grades = {}
    strengths = {}
    for topic, events in sorted(pairs.items()):
        wins = [(e.document, e.other) if e.grade == 1 else (e.other, e.document) for e in events if e.grade]
        ties = [(e.document, e.other) for e in events if not e.grade]
        of_topic = method.strengths(PairwisePreferences.of(wins, ties))
        groups = of_topic.components
        if not of_topic.comparable and len(groups) > 1:
            problem = f"topic {topic!r}: {len(groups)} groups of documents are not linked by wins both ways"
            raise DataError(f"{problem} (the largest has {len(groups[0])}); give a prior, as in {policy}(prior=1)")
        lowest, values = float(of_topic.strength.min()), of_topic.strength.tolist()
        grades[topic] = {str(item): value - lowest for item, value in zip(of_topic.items, values, strict=True)}
        strengths[topic] = of_topic
    count = sum(map(len, pairs.values()))
    return DecidedGrades(str(method), how, grades, count, _both_ways(pairs), 0, [], {}, None, strengths)


def _both_ways(pairs: Mapping[str, list[Event]]) -> int:
    """The number of pairs that people order differently."""
    orders = {
        (event.subject, (event.grade or 0.0) * (1 if event.document < event.other else -1))
        for event in chain.from_iterable(pairs.values())
    }
    return sum(n > 1 for n in Counter(subject for subject, _ in orders).values())


def flat(grades: Mapping[str, Mapping[str, float]]) -> dict[Subject, float]:
    """Grades by topic and document as one table."""
    return {(topic, document): grade for topic, documents in grades.items() for document, grade in documents.items()}


def nested(grades: Iterable[tuple[Subject, float]]) -> Grades:
    """Grades by topic and document, in their order."""
    answer: Grades = {}
    for (topic, document), grade in grades:
        answer.setdefault(topic, {})[document] = float(grade)
    return answer

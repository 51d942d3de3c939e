"""Inter-annotator agreement about documents: the coefficients of `stats.agreement` on a log or on several qrels.

Every coefficient comes with its base rates: if two people call nearly everything irrelevant, kappa is low however often
they agree. Intervals are over topics, as documents of a topic are not independent; they are over documents only if
there is a single topic.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from operator import attrgetter, itemgetter, le, ne
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.notifications import stepwise
from cranfield.base.results import Answer, Layout, Part, Table, plain
from cranfield.evaluation.evaluate import evaluate
from cranfield.evaluation.partial_judgments import JudgmentPart, MatchedRun
from cranfield.formats.pool_files import PoolItem
from cranfield.judging.event import CLICKS
from cranfield.judging.policies import as_labels, contradicting, grades_of
from cranfield.stats import agreement as stats
from cranfield.stats.agreement import Agreement, coefficient, distinct_rows
from cranfield.stats.correlation import correlation
from cranfield.stats.ratings import Labels, Scale, base_rates, coincidences, confusion, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cranfield.base.run import Run
    from cranfield.evaluation.scores import Scores
    from cranfield.judging.assignments import GoldAnswer
    from cranfield.judging.current_labels import RatedLabel
    from cranfield.judging.event import Event
    from cranfield.judging.policies import Grades, Subject
    from cranfield.stats.ties import Floats, Ints

    Opinion: TypeAlias = Event | RatedLabel

MAIN = "krippendorff(metric=ordinal)"
NEAR = 1e-9
TOPICS, DOCUMENTS = "topics", "documents"  # what intervals may be over
VIEWS = ("topic", "pair", "assessor", "self")
SPANS = 10  # at most, of one person's labels
MOST_GRADES = 12  # in tables by grade
LEAST_IN_SPAN = 10  # labels of documents that someone else labelled too


@dataclass(frozen=True)
class AssessorAgreement:
    """How well one assessor agrees with the others, and whether that changed over time."""

    assessor: str
    labels: int
    shared: int  # documents that somebody else labelled too
    agree: float  # the share of the others' labels of them that are the same
    first: float  # the same for the first half of their labels, by time
    second: float
    mean: float  # grade
    others: float  # the others' mean grade of the same documents
    seconds: float | None
    seconds_first: float | None
    seconds_second: float | None
    gold: int = 0
    gold_right: int = 0


@dataclass(frozen=True)
class Span:
    """Successive labels of one assessor, and their agreement with the others."""

    until: int  # how many of their shared labels that is, from the first
    agree: float
    pairs: int  # of one label of theirs and one of somebody else
    time: str  # of the last label


@dataclass(frozen=True)
class AssessorRanking:
    """The correlation of the runs' order by one person's labels with the order by all current labels."""

    assessor: str
    measure: str
    tau: float
    documents: int


@dataclass(frozen=True, repr=False)
class Agreements(Answer):
    """The result of `judge agree`: inter-annotator agreement."""

    name: str
    labels: Labels
    coefficients: list[Agreement]
    by_grade: Mapping[Any, Agreement]
    people: list[AssessorAgreement]
    view: str = ""
    parts: Mapping[Any, Agreement] = field(default_factory=dict)
    rankings: list[AssessorRanking] = field(default_factory=list)
    contradictions: int = 0
    cannot: int = 0  # documents that somebody could not judge
    unsure: int = 0
    drift: Mapping[str, list[Span]] = field(default_factory=dict)

    @property
    def items(self) -> int:
        """The number of documents with two labels or more."""
        return int((np.bincount(self.labels.item, minlength=len(self.labels.items)) > 1).sum())

    @property
    def unit(self) -> str:
        """The unit of the intervals, topics or documents; empty without intervals."""
        units = [TOPICS if one.clusters else DOCUMENTS for one in self.coefficients if not math.isnan(one.low)]
        return units[0] if units else ""

    def content(self, how: Layout) -> Iterator[Part]:
        if words := stats.agreement_in_words(self._main):
            yield f"{self.name}: agreement is {words}"
        yield self._verdict()
        rows = []
        for rater, counts in zip(self.labels.raters, base_rates(self.labels), strict=True):
            shares = () if self._many_grades else (f"{count / max(counts.sum(), 1):.0%}" for count in counts)
            rows.append([str(rater) or how.undefined, f"{counts.sum():,}", *shares])
        grades = [] if self._many_grades else [f"grade {_short(grade)}" for grade in self.labels.scale.names]
        yield Table(["assessor", "labels", *grades], rows[: None if how.every else 12])
        defined = [one for one in self.coefficients if one.defined]
        if defined:
            yield Table(
                ["coefficient", "value", f"{defined[0].level:.0%} low", "high", "observed", "by chance"],
                [[one.coefficient, *map(how.number, (one.value, one.low, one.high, *_shares(one)))] for one in defined],
            )
        if not self._many_grades:
            yield from self._matrix(how)
        yield from self._views(how)

    @property
    def _many_grades(self) -> bool:
        """Whether tables by grade would not fit on a screen, as with values from clicks."""
        return len(self.labels.scale.names) > MOST_GRADES

    @property
    def _main(self) -> Agreement:
        """The coefficient that the verdict uses: ordinal alpha, else the first requested one."""
        return next(
            (one for one in self.coefficients if one.coefficient == str(coefficient(MAIN))), self.coefficients[0]
        )

    def _verdict(self) -> str:
        clicks, items, main = CLICKS in self.labels.raters, self.items, self._main
        people = len(self.labels.raters) - clicks
        by_name = {one.coefficient: one for one in self.coefficients}
        who = f"{people} {'person' if people == 1 else 'people'}{' and clicks' * clicks}"
        if not main.defined:
            reason = f"no {main.coefficient}: {main.reason}"
            return f"{self.name}: {who}, {items:,} documents with two labels or more; {reason}"
        raw = by_name.get("raw")
        same = "" if raw is None or not raw.defined else f"; {raw.value:.1%} of pairs of labels are the same"
        interval = "" if math.isnan(main.low) else f" [{main.low:.3f}, {main.high:.3f}]"
        of_topics = f" of {main.clusters:,} topics" if main.clusters else ""
        about = f"{who} on {items:,} documents{of_topics} with two labels or more"
        return f"{self.name}: {about}: {stats.title_of(main.coefficient)} {main.value:.3f}{interval}{same}"

    def _matrix(self, how: Layout) -> Iterator[Part]:
        names = [_short(grade) for grade in self.labels.scale.names]
        if self.by_grade and any(one.defined for one in self.by_grade.values()):
            cells = [how.number(one.value) if one.defined else how.undefined for one in self.by_grade.values()]
            yield Table(["grade", *names], [["agreement", *cells]])
        if len(self.labels.raters) == 2 and self.items:
            one, other = self.labels.raters
            rows = [
                [f"{one} {name}", *(f"{count:,}" for count in row)]
                for name, row in zip(names, confusion(self.labels).tolist(), strict=True)
            ]
            yield Table(["", *(f"{other} {name}" for name in names)], rows)
        elif self.items:
            rows = [
                [f"and {name}", *("" if j < i else f"{count:,}" for j, count in enumerate(row))]
                for i, (name, row) in enumerate(zip(names, coincidences(self.labels).tolist(), strict=True))
            ]
            yield Table(["pairs of labels", *names], rows)

    def _views(self, how: Layout) -> Iterator[Part]:
        if self.parts:
            rows = [
                [_named(name), *map(how.number, (one.value, one.low, one.high)), f"{one.items:,}", one.reason]
                for name, one in self.parts.items()
            ]
            used = next(iter(self.parts.values())).coefficient
            yield Table([self.view, used, "low", "high", "documents", "why"], rows)
        if self.rankings:
            rows = [[one.assessor, one.measure, how.number(one.tau), f"{one.documents:,}"] for one in self.rankings]
            yield Table(["labels of", "measure", "tau with current labels", "documents"], rows)
        several = [each for each in self.people if each.shared]
        if several and (how.every or self.view == "assessor"):
            head = [
                "assessor",
                "shared",
                "same as others",
                "first half",
                "second half",
                "mean",
                "others' mean",
                "seconds",
            ]
            head.append("gold right")
            yield Table(head, [_row(each, how) for each in several])

    def plain(self, how: Layout) -> dict[str, Any]:
        names = [str(rater) for rater in self.labels.raters]
        return {
            "name": self.name,
            "documents": len(self.labels.items),
            "documents_with_two_labels": self.items,
            "labels": len(self.labels),
            "missing": self.labels.missing,
            "intervals_over": self.unit,
            "contradictions": self.contradictions,
            "cannot_judge": self.cannot,
            "unsure": self.unsure,
            "scale": list(self.labels.scale.names),
            "base_rates": dict(zip(names, base_rates(self.labels).tolist(), strict=True)),
            "coefficients": [_plain(one) for one in self.coefficients],
            "by_grade": {_short(grade): _plain(one) for grade, one in self.by_grade.items()},
            "confusion": confusion(self.labels).tolist() if len(names) == 2 else None,
            "coincidences": coincidences(self.labels).tolist(),
            "by": {self.view: {_named(name): _plain(one) for name, one in self.parts.items()}} if self.view else {},
            "people": [vars(each) for each in self.people],
            "drift": {name: [vars(span) for span in spans] for name, spans in self.drift.items()},
            "rankings": [vars(each) for each in self.rankings],
        }

    def records(self, how: Layout) -> Iterator[tuple[Any, ...]]:
        yield "coefficient", "value", "low", "high", "observed", "expected", "items", "reason"
        for one in self.coefficients:
            yield one.coefficient, one.value, one.low, one.high, one.observed, one.expected, one.items, one.reason

    def notes(self, shell: bool = False) -> list[str]:
        notes = []
        if self.labels.missing:
            cells = len(self.labels.raters) * len(self.labels.items)
            missing = f"{self.labels.missing:,} of {cells:,} labels are missing"
            notes.append(f"{missing}: not everybody labelled every document")
        if self._many_grades:
            note = f"{len(self.labels.scale.names):,} different grades: no tables by grade"
            notes.append(f"{note}; values from clicks become grades by thresholds (online qrels --thresholds)")
        if self.contradictions:
            note = contradicting(self.contradictions, "latest")
            notes.append(note if self.rankings else note.partition(";")[0])
        if self.cannot:
            notes.append(f"{self.cannot:,} times an assessor could not judge a document; this is not a label")
        absent = {one.reason: one.coefficient for one in self.coefficients if not one.defined}
        notes += [f"no {name}: {why}" for why, name in absent.items()]
        doubts = {_of_topics(doubt) for one in self.coefficients if one.defined for doubt in one.doubts}
        return [*notes, *self._documents_alone(), *sorted(doubts)]

    def _documents_alone(self) -> list[str]:
        """A note on intervals that treat documents as independent."""
        if self.unit == DOCUMENTS:
            return ["one topic only: intervals are over its documents, as if these were independent"]
        inside = sum(not one.clusters and not math.isnan(one.low) for one in self.parts.values())
        if not inside:
            return []
        some = "1 interval is" if inside == 1 else f"{inside:,} intervals are"
        return [f"by {self.view}, {some} of one topic only: over its documents, as if these were independent"]


def _shares(one: Agreement) -> tuple[float, float]:
    """Observed agreement and agreement by chance; NaN for a coefficient that is computed from disagreement."""
    corrected = (one.observed - one.expected) / (1 - one.expected) if one.expected < 1 else math.nan
    same = math.isnan(one.expected) or abs(corrected - one.value) < NEAR
    return (one.observed, one.expected) if same else (math.nan, math.nan)


def _short(grade: Any) -> str:
    return f"{grade:g}" if isinstance(grade, (int, float)) else str(grade)


def _named(name: Any) -> str:
    return " and ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _row(each: AssessorAgreement, how: Layout) -> list[str]:
    shares = map(how.number, (each.agree, each.first, each.second, each.mean, each.others))
    seconds = how.undefined if each.seconds is None else f"{each.seconds:.1f}"
    gold = f"{each.gold_right} of {each.gold}" if each.gold else how.undefined
    return [each.assessor, f"{each.shared:,}", *shares, seconds, gold]


def _plain(one: Agreement) -> dict[str, Any]:
    values = {_of_topics(name): value for name, value in plain(vars(one)).items()}
    return {**values, "doubts": list(map(_of_topics, one.doubts))}


def _of_topics(text: str) -> str:
    """Replace the word cluster, which statistics uses, by topic."""
    return text.replace("cluster", "topic")


@dataclass(frozen=True, eq=False)
class OpinionTable:
    """Labels by document, in the order of topics and documents; those of one document in the order given.

    Every column has an entry per label, in this order, so that a million labels are counted without a loop over them.
    """

    opinions: Sequence[Opinion]
    subjects: list[Subject]  # of each document
    item: Ints  # the number of each label's document
    grade: Floats
    raters: tuple[str, ...]
    rater: Ints  # the number of each label's assessor

    @classmethod
    def of(cls, opinions: Sequence[Opinion] | OpinionTable) -> OpinionTable:
        """The table of these labels; a table is returned as it is."""
        if isinstance(opinions, OpinionTable):
            return opinions
        keys = list(map(attrgetter("topic", "document"), opinions))
        if not all(map(le, keys, islice(keys, 1, None))):
            order = sorted(range(len(keys)), key=keys.__getitem__)
            opinions, keys = [opinions[i] for i in order], [keys[i] for i in order]
        new = np.fromiter(chain([True] * bool(keys), map(ne, islice(keys, 1, None), keys)), np.bool_, len(keys))
        grade = np.fromiter(map(attrgetter("grade"), opinions), np.float64, len(keys)) + 0.0  # no grade is -0
        raters, rater = encode(list(map(attrgetter("assessor"), opinions)))
        subjects = [keys[i] for i in np.flatnonzero(new).tolist()]
        return cls(opinions, subjects, np.cumsum(new) - 1, grade, tuple(map(str, raters)), rater)

    def labels(self) -> Labels:
        """The labels as statistics read them; no document is looked up by its name."""
        grades, grade = encode(self.grade)
        return Labels.sorted(self.rater, self.item, grade, (self.raters, tuple(self.subjects)), Scale(grades))

    def by_rater(self) -> list[Ints]:
        """The positions of each assessor's labels."""
        ends = np.cumsum(np.bincount(self.rater, minlength=len(self.raters)))
        return np.split(np.argsort(self.rater, kind="stable"), ends[:-1])

    def latest(self) -> Ints:
        """The position of the last label of each document."""
        return np.append(np.flatnonzero(np.diff(self.item)), [len(self.item) - 1] * bool(len(self.item)))

    def grades(self, positions: Ints) -> Grades:
        """The grades of the labels at ascending positions; of several labels of a document, the last."""
        subjects = [self.subjects[item] for item in self.item[positions].tolist()]
        pairs = zip(subjects, self.grade[positions].tolist(), strict=True)
        return {
            topic: {document: grade for (_, document), grade in group}
            for topic, group in groupby(pairs, lambda pair: pair[0][0])
        }


class PersonOpinions(NamedTuple):
    """One person's labels in the order of their times, and what others said about each of these documents."""

    name: str
    opinions: list[Opinion]
    grades: Floats
    others: Ints  # how many labels others gave
    same: Ints  # how many of those are the same grade
    means: Floats  # the mean of those; NaN if there are none


def agreements(
    name: str,
    events: Sequence[Opinion] | OpinionTable,
    *,
    coefficients: Sequence[str] = (),
    view: str = "",
    repeats: Sequence[Opinion] = (),
    gold: Sequence[GoldAnswer] = (),
    cannot: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Agreements:
    """Inter-annotator agreement; `view` also gives it by topic, by pair of people, by assessor, or with oneself.

    Intervals come from leaving out each topic in turn; with a single topic, from `resamples` of its documents.
    """
    table = OpinionTable.of(events)
    labels = table.labels()
    if not len(labels):
        raise DataError(f"{name}: there are no labels")
    people = _by_person(table, labels)
    how: dict[str, Any] = {"cluster_of": _topics_of(labels), "resamples": resamples, "level": level}
    clusters = encode(list(how["cluster_of"].values()))[1]
    many = [
        stats.agreement(labels, one, rng=np.random.default_rng(seed), **how | {"cluster_of": clusters})
        for one in stepwise(coefficients or stats.all_forms())
    ]
    return Agreements(
        name,
        labels,
        many,
        stats.by_label(labels, resamples=0),
        _people(people, gold),
        view,
        _parts(
            labels,
            table.opinions,
            repeats,
            view,
            next(iter(coefficients), ""),
            how | {"rng": np.random.default_rng(seed)},
        ),
        contradictions=int(((labels.counts() > 0).sum(axis=1) > 1).sum()),
        cannot=cannot,
        unsure=sum(not each.sure for each in table.opinions),
        drift=_drift(people),
    )


def _parts(
    labels: Labels, events: Sequence[Opinion], repeats: Sequence[Opinion], view: str, name: str, how: dict[str, Any]
) -> Mapping[Any, Agreement]:
    """The agreement within each part of a view; each part uses its own coefficient unless one was given."""
    if not view:
        return {}
    if view == "topic":
        return stats.by_group(labels, how["cluster_of"], name or MAIN, **how)
    if view == "pair":
        return stats.by_pair(labels, name or "cohen", **how)
    if view == "assessor":
        return stats.against_the_rest(labels, name or "cohen", **how)
    if view == "self":
        again = {(event.assessor, event.topic, event.document) for event in repeats}
        firsts = [event for event in events if (event.assessor, event.topic, event.document) in again]
        twice = as_labels([*firsts, *repeats])
        return stats.with_oneself(twice, name or MAIN, **how | {"cluster_of": _topics_of(twice)}) if firsts else {}
    raise ConventionError(f"--view: expected {', '.join(VIEWS)}, found {view!r}")


def _topics_of(labels: Labels) -> dict[Any, str]:
    """The topic of each document."""
    return {item: item[0] for item in labels.items}  # type: ignore[index]


def people_of(events: Sequence[Opinion], gold: Sequence[GoldAnswer] = ()) -> list[AssessorAgreement]:
    """Each assessor compared with the others: agreement, drift over time, speed, answers to gold."""
    table = OpinionTable.of(events)
    return _people(_by_person(table, table.labels()), gold)


def _people(by_person: Iterable[PersonOpinions], gold: Sequence[GoldAnswer]) -> list[AssessorAgreement]:
    questions, right = Counter(each.assessor for each in gold), Counter(e.assessor for e in gold if e.grade == e.right)
    people = []
    for each in by_person:
        count, shared = len(each.opinions), each.others > 0
        parts = slice(None), slice(count // 2), slice(count // 2, None)
        same, same_first, same_second = (_share(each.same[part], each.others[part]) for part in parts)
        seconds, seconds_first, seconds_second = (_median(each.opinions[part]) for part in parts)
        means = _mean(each.grades[shared].tolist()), _mean(each.means[shared].tolist())
        labels = each.name, count, int(shared.sum()), same, same_first, same_second
        times = seconds, seconds_first, seconds_second
        people.append(AssessorAgreement(*labels, *means, *times, questions[each.name], right[each.name]))
    return people


def drift_of(events: Sequence[Opinion]) -> dict[str, list[Span]]:
    """Each person's agreement with the others over time, in two to ten spans of equal size.

    People with too few labels for two spans are left out.
    """
    table = OpinionTable.of(events)
    return _drift(_by_person(table, table.labels()))


def _drift(by_person: Iterable[PersonOpinions]) -> dict[str, list[Span]]:
    answer: dict[str, list[Span]] = {}
    for each in by_person:
        shared = np.flatnonzero(each.others)
        count = min(SPANS, len(shared) // LEAST_IN_SPAN)
        if count < 2:
            continue
        ends = [round(len(shared) * (i + 1) / count) for i in range(count)]
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            span = shared[start:end]
            share, pairs = _share(each.same[span], each.others[span]), int(each.others[span].sum())
            answer.setdefault(each.name, []).append(Span(end, share, pairs, each.opinions[span[-1]].time))
    return answer


def _by_person(table: OpinionTable, labels: Labels) -> list[PersonOpinions]:
    """What each person said, and what others said about the same documents."""
    counts, names = labels.counts(), np.array(labels.scale.names)
    answer = []
    for name, positions in zip(table.raters, table.by_rater(), strict=True):
        times = [(table.opinions[i].time, table.opinions[i].id) for i in positions.tolist()]
        order = positions[sorted(range(len(times)), key=times.__getitem__)]
        item, grades = table.item[order], table.grade[order]
        grade = np.searchsorted(names, grades)
        others = counts[item] - _own_counts(item, grade, len(names))
        first, _, row = distinct_rows(others)
        means = np.array([_mean(np.repeat(names, each).tolist()) for each in others[first]])
        same = others[np.arange(len(order)), grade]
        opinions = [table.opinions[i] for i in order.tolist()]
        answer.append(PersonOpinions(name, opinions, grades, others.sum(axis=1), same, means[row]))
    return answer


def _own_counts(item: Ints, grade: Ints, grades: int) -> Ints:
    """How often one person gave each grade to the document of each of their labels."""
    documents, row = np.unique(item, return_inverse=True)
    size = len(documents) * grades
    return np.bincount(row * grades + grade, minlength=size).reshape(len(documents), grades)[row]


def _share(same: Ints, others: Ints) -> float:
    """The share of the others' labels that are the same."""
    return int(same.sum()) / count if (count := int(others.sum())) else math.nan


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else math.nan


def _median(events: Sequence[Opinion]) -> float | None:
    seconds = [event.seconds for event in events if event.seconds is not None]
    return statistics.median(seconds) if seconds else None


def disagreements(events: Sequence[Opinion]) -> list[PoolItem]:
    """A pool for adjudication: documents with contradicting labels, the largest difference first.

    The pool holds neither the names of the assessors nor their grades.
    """
    apart = [(max(grades) - min(grades), subject) for subject, grades in grades_of(events).items() if len(grades) > 1]
    apart.sort(key=lambda each: (-each[0], each[1]))
    return [PoolItem(topic, document, 1, (), place) for place, (_, (topic, document)) in enumerate(apart, 1)]


def rankings(events: Sequence[Opinion] | OpinionTable, runs: list[Run], measures: list[str]) -> list[AssessorRanking]:
    """Kendall's tau between two rankings of the runs: by one person's labels, and by everybody's latest labels.

    Of the labels of a document, the latest comes last.
    """
    if len(runs) < 3:
        raise DataError(f"tau of a ranking needs three runs or more, found {len(runs)}")
    table = OpinionTable.of(events)
    everybody = table.grades(table.latest())
    own = {rater: table.grades(lines) for rater, lines in zip(table.raters, table.by_rater(), strict=True)}
    matched = [MatchedRun(run) for run in runs]
    reference = evaluate(everybody, matched, measures)
    answer = []
    for assessor, scores in sorted(_scores_by_person(own, everybody, matched, measures), key=itemgetter(0)):
        for measure in reference.measures:
            pair = [[each.mean(measure, run) for run in reference.runs] for each in (reference, scores)]
            count = sum(map(len, own[assessor].values()))
            answer.append(AssessorRanking(assessor, measure, float(correlation("tau", *pair)), count))
    return answer


def _scores_by_person(
    own: Mapping[str, Grades], everybody: Grades, runs: list[MatchedRun], measures: list[str]
) -> Iterator[tuple[str, Scores]]:
    """The scores of runs by each person's labels; people without a common topic are scored at once.

    They must use the same grades, because a measure may look at the highest of all judgments.
    """
    groups: list[tuple[set[float], Grades, list[str]]] = []
    for assessor, grades in sorted(own.items()):
        used = set(chain.from_iterable(of_topic.values() for of_topic in grades.values()))
        fitting = (each for each in groups if each[0] == used and not each[1].keys() & grades.keys())
        group = next(fitting, None)
        if group is None:
            group = used, {}, []
            groups.append(group)
        group[1].update(grades)
        group[2].append(assessor)
    parts = JudgmentPart.each_of([together for _, together, _ in groups], everybody)
    for (_, together, assessors), part in zip(groups, parts, strict=True):
        scores = evaluate(together, [run.within(part) for run in runs], measures)
        for assessor in assessors:
            yield assessor, scores.select(topics=list(own[assessor]))

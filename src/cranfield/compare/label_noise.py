"""What labels that may be wrong do to a difference: the documents that several people labelled are graded anew, many times.

A run is read once and joined with the judgments once for each redraw, by row numbers; all pairs and measures see the same
redraws. Documents with one label keep it, for nobody knows how wrong it may be; topics that count, count in each redraw.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.answer import Lines, Table, plain
from cranfield.compare.scored import no_mean
from cranfield.errors import ConventionError, DataError
from cranfield.hits import join
from cranfield.measures.measure import needs_of
from cranfield.parameters import refuse_below
from cranfield.stats.redrawn import Redrawn, redrawn_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cranfield.answer import Layout, Part
    from cranfield.compare.evidence import Evidence
    from cranfield.conventions import Conventions
    from cranfield.evaluate import Evaluator
    from cranfield.hits import Judgments
    from cranfield.kernels import Found
    from cranfield.kernels.table import Floats, Ints
    from cranfield.measures import Measure
    from cranfield.run import Run
    from cranfield.scores import Scores

    Progress = Callable[[int, int | None], None]

DRAWS = 200
NEAR = 1e-9  # chances no further apart are alike
OF_VOTES = "the shares of votes"
SHARED_ERRORS = (
    "errors that people share are not allowed for: where documents are hard for everybody, this interval is too sure"
)
BEYOND_GRADES = ("labels", "preferences", "probabilities", "baseline")  # what a measure may need that is not redrawn


@dataclass(frozen=True, eq=False)
class Doubt:
    """How likely each grade is, for the documents that several people labelled."""

    subjects: list[tuple[str, str]]  # topic and document
    grades: Floats
    chance: Floats  # subjects × grades, rows adding up to 1
    documents: int  # that have a grade at all
    chances: str = "the chances given"  # where they come from
    policy: str = ""  # by which the grades stand
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, chances: Doubt | Mapping[str, Mapping[str, Mapping[float, float]]], documents: int) -> Doubt:
        """From `{topic: {document: {grade: chance}}}`; chances of a document add up to 1."""
        if isinstance(chances, Doubt):
            return chances
        subjects = [(topic, document) for topic, inner in chances.items() for document in inner]
        grades = sorted({float(grade) for topic, document in subjects for grade in chances[topic][document]})
        rows = np.array([[chances[t][d].get(grade, 0.0) for grade in grades] for t, d in subjects], np.float64)
        rows = rows.reshape(len(subjects), len(grades))
        wrong = np.flatnonzero((rows < 0).any(axis=1) | ~(np.abs(rows.sum(axis=1) - 1) < 1e-6))
        if len(wrong):
            topic, document = subjects[int(wrong[0])]
            found = dict(chances[topic][document])
            raise DataError(
                f"label noise: expected chances that add up to 1, found {found} for {document!r} of {topic!r}"
            )
        return cls(subjects, np.array(grades), rows, documents)

    def likeliest(self, standing: Floats) -> Floats:
        """The likeliest grade of each subject: the one that stands where it is among them, else the lowest."""
        best = self.chance >= self.chance.max(axis=1, keepdims=True) - NEAR
        lowest = self.grades[best.argmax(axis=1)]
        stands = (best & (self.grades == standing[:, None])).any(axis=1)
        return np.asarray(np.where(stands, standing, lowest), np.float64)

    @cached_property
    def _bounds(self) -> Floats:
        return np.asarray(np.cumsum(self.chance, axis=1)[:, :-1], np.float64)

    def draw(self, rng: np.random.Generator) -> Floats:
        """A grade for each subject."""
        place = (rng.random((len(self.subjects), 1)) >= self._bounds).sum(axis=1)
        return np.asarray(self.grades[place], np.float64)


class NoisyPair(NamedTuple):
    """A pair of the comparison, and what becomes of its difference."""

    measure: str
    one: str
    other: str
    found: Redrawn


@dataclass(frozen=True)
class LabelNoise:
    """What redrawn labels make of every difference."""

    pairs: list[NoisyPair]
    policy: str
    chances: str
    redrawn: int  # documents with several labels
    unsure: int  # those of them that may have another grade
    documents: int
    draws: int
    seed: int
    level: float
    remarks: list[str]

    def sentences(self) -> list[str]:
        """What was redrawn, and what the table says."""
        several = "document has" if self.redrawn == 1 else "documents have"
        what = f"{self.redrawn:,} of {self.documents:,} {several} several labels: only these are redrawn"
        agreed = "" if self.unsure else "; nobody contradicts anybody, so that nothing moves"
        return [
            f"{what}, {self.draws} times, by {self.chances}{agreed}",
            "allowed for: wrong labels pull differences towards 0, so it is moved back by the step from the likeliest "
            "labels to redrawn ones; "
            "topics, assessors: their parts of the variance",
            *self.left_out(),
        ]

    def left_out(self) -> list[str]:
        """The errors of labels that the interval does not allow for."""
        single = self.documents - self.redrawn
        alone = f"{single:,} documents have one label or a decision: errors in these are not allowed for"
        return [SHARED_ERRORS, *[alone] * bool(single)]

    def content(self, how: Layout) -> Iterator[Part]:
        """A row a pair."""
        percent = f"{self.level * 100:g}%"
        head = [
            "labels",
            "one",
            "other",
            "as they stand",
            "redrawn",
            "allowed for",
            f"{percent} low",
            f"{percent} high",
        ]
        rows = []
        for measure, one, other, found in self.pairs:
            values = (found.difference, found.redrawn, found.corrected, found.low, found.high)
            numbers = [how.number(value, signed=True) for value in values]
            share = found.share_of_labels
            parts = [how.undefined if share != share else f"{part:.0%}" for part in (1 - share, share)]
            rows.append([measure, one, other, *numbers, *parts])
        yield Table([*head, "topics", "assessors"], rows, names=3)
        yield Lines(self.sentences())

    def plain(self, how: Layout) -> dict[str, Any]:
        """All of it, for programs."""
        facts = ("policy", "chances", "redrawn", "unsure", "documents", "draws", "seed", "level")
        pairs = []
        for measure, one, other, found in self.pairs:
            share = found.share_of_labels
            shares = {"share_of_topics": 1 - share, "share_of_assessors": share}
            row = {"measure": measure, "one": one, "other": other, **vars(found), **shares}
            row["from_topics"], row["topics"] = row.pop("from_units"), row.pop("units")
            pairs.append({name: plain(value, how.digits) for name, value in row.items()})
        return {**{name: getattr(self, name) for name in facts}, "left_out": self.left_out(), "pairs": pairs}


def label_noise(evidence: Evidence, chances: Any, draws: int = DRAWS, progress: Progress | None = None) -> LabelNoise:
    """Redraw the labels and score the runs of a comparison again by each redraw."""
    refuse_below(2, label_draws=draws)
    scores = evidence.scores
    if evidence.groups:
        raise ConventionError("label noise: groups of runs differ by seeds as well; compare single runs")
    if scores._origin is None:
        raise ConventionError("label noise: scores of a table have no labels; give the judgments and the runs")
    evaluator, sources = scores._origin
    for name, measure in scores.measures.items():
        beyond = needs_of(measure) & set(BEYOND_GRADES)
        if beyond:
            raise ConventionError(
                f"label noise: {name} goes by {', '.join(sorted(beyond))}, and only grades are redrawn"
            )
    lacking = next((run for run in scores.runs if run not in sources), None)
    if lacking is not None:
        raise ConventionError(
            f"label noise: runs are read again, and {lacking} cannot be; give a file in place of a stream"
        )
    doubt = Doubt.of(chances, len(evaluator.qrels))
    likeliest, redrawn = _scored_again(scores, Relabelling(evaluator, doubt), draws, evidence.seed, progress)
    return LabelNoise(
        pairs=_pairs(evidence, likeliest, redrawn),
        policy=doubt.policy,
        chances=doubt.chances,
        redrawn=len(doubt.subjects),
        unsure=int((doubt.chance.max(axis=1, initial=0.0) < 1 - NEAR).sum()),
        documents=doubt.documents,
        draws=draws,
        seed=evidence.seed,
        level=evidence.level,
        remarks=list(doubt.notes),
    )


def _scored_again(
    scores: Scores, labels: Relabelling, draws: int, seed: int, progress: Progress | None
) -> tuple[Floats, Floats]:
    """Runs × measures × topics by the likeliest labels, and the same of each redraw."""
    evaluator, sources = scores._origin or (None, {})
    assert evaluator is not None
    runs = [evaluator.open(source)[place] for source, place in map(sources.__getitem__, scores.runs)]
    seen = [_Seen(evaluator, run, list(scores.measures.values())) for run in runs]
    place = {topic: t for t, topic in enumerate(evaluator.qrels.topics)}
    topics = [place[topic] for topic in scores.topics]
    rng = np.random.default_rng(seed)
    redrawn = np.empty((draws, *scores.values.shape))
    for b in range(draws):
        judgments = labels.drawn(rng)
        redrawn[b] = [run.values(judgments)[:, topics] for run in seen]
        if progress is not None:
            progress(b + 1, draws)
    likeliest = labels.likeliest()
    return np.stack([run.values(likeliest)[:, topics] for run in seen]), redrawn


def _pairs(evidence: Evidence, likeliest: Floats, redrawn: Floats) -> list[NoisyPair]:
    """Each pair that has a mean over topics; a topic without a value as labels stand has none here."""
    scores = evidence.scores
    runs, measures = list(scores.runs), list(scores.measures)
    answer = []
    for pair in evidence.pairs:
        one, other, m = runs.index(pair.one), runs.index(pair.other), measures.index(pair.measure)
        difference = scores.values[other, m] - scores.values[one, m]
        kept = ~np.isnan(difference)
        if no_mean(scores, pair.measure) or not kept.any():
            continue
        standing = difference[kept]
        about, drawn = ((each[..., other, m, :] - each[..., one, m, :])[..., kept] for each in (likeliest, redrawn))
        about, drawn = (np.where(np.isnan(each), standing, each) for each in (about, drawn))
        found = redrawn_mean(standing, drawn, evidence.level, about)
        answer.append(NoisyPair(pair.measure, pair.one, pair.other, found))
    return answer


class Relabelling:
    """The judgments of an evaluator with other grades for the documents in doubt."""

    def __init__(self, evaluator: Evaluator, doubt: Doubt) -> None:
        self.doubt, self.judgments = doubt, evaluator.judgments
        self.rows = _rows(evaluator, doubt)

    def likeliest(self) -> Judgments:
        """By the likeliest grades."""
        return self.graded(self.doubt.likeliest(self.judgments.of_row[self.rows]))

    def drawn(self, rng: np.random.Generator) -> Judgments:
        """By grades drawn anew."""
        return self.graded(self.doubt.draw(rng))

    def graded(self, grades: Floats) -> Judgments:
        """By these grades of the documents in doubt."""
        of_row = self.judgments.of_row.copy()
        of_row[self.rows] = grades
        return replace(self.judgments, of_row=of_row, grade=of_row[self.judgments.row])


def _rows(evaluator: Evaluator, doubt: Doubt) -> Ints:
    """The row of the qrels of each subject."""
    qrels = evaluator.qrels
    names, documents = qrels.topics, qrels.documents.text()
    place = {
        (names[topic], document): row
        for row, (topic, document) in enumerate(zip(qrels.topic.tolist(), documents, strict=True))
    }
    unknown = next((subject for subject in doubt.subjects if subject not in place), None)
    if unknown is not None:
        raise DataError(f"label noise: document {unknown[1]!r} of topic {unknown[0]!r} is not judged in {qrels.name}")
    return np.array([place[subject] for subject in doubt.subjects], np.int32)


class _Seen:
    """A run whose judged documents are found once, whatever their grades."""

    def __init__(self, evaluator: Evaluator, run: Run, measures: list[Measure]) -> None:
        self.evaluator, self.run, self.measures = evaluator, run, measures
        self.found: dict[Conventions, Found] = {}
        for measure in measures:
            own = evaluator.conventions_for(measure)
            if own not in self.found:
                self.found[own] = run.hits(evaluator.qrels.index, own.order, evaluator.threads)

    def values(self, judgments: Judgments) -> Floats:
        """Measures × topics by these grades."""
        hits = {own: join(found, judgments.under(own.negative), own, self.run) for own, found in self.found.items()}
        seen = [hits[self.evaluator.conventions_for(each)] for each in self.measures]
        return np.stack([self.evaluator.values_of(*each) for each in zip(self.measures, seen, strict=True)])

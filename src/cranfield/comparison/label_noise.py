"""Label noise: the effect of wrong labels on a difference. Documents with uncertain labels get random grades, many times.

Labels of several people give the probability of each grade (`LabelUncertainty`), judgments from clicks the posterior of a
value (`ValueUncertainty`). A run is read once and joined with the judgments for each redraw, by row numbers; all pairs and
measures share the same redraws. Documents with one label keep it, because its error is unknown. The same topics count in
every redraw.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import refuse_below
from cranfield.base.results import Lines, Table, plain
from cranfield.comparison.score_tables import Progress, no_mean
from cranfield.evaluation.hits import join
from cranfield.evaluation.measures.definition import needs_of
from cranfield.formats.uncertain_qrels import read_uncertain
from cranfield.stats.bootstrap import RedrawnMean, redrawn_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.base.results import Layout, Part
    from cranfield.base.run import Run
    from cranfield.comparison.evidence import ComparisonEvidence
    from cranfield.evaluation.evaluate import Evaluator
    from cranfield.evaluation.hits import Judgments
    from cranfield.evaluation.measures import Measure
    from cranfield.evaluation.scores import Scores
    from cranfield.formats.uncertain_qrels import UncertainGrades

DRAWS = 200
NEAR = 1e-9  # probabilities this close count as equal
OF_VOTES = "the shares of votes"
OF_CLICKS = "their posteriors"
SHARED_CLICKS = "errors of the click model are not covered: if users click on famous names, these look relevant"
SHARED_ERRORS = (
    "errors that assessors share are not covered: if documents are hard for everybody, this interval is too narrow"
)
BEYOND_GRADES = ("labels", "preferences", "probabilities", "baseline")  # data that are not redrawn


@dataclass(frozen=True, eq=False)
class LabelUncertainty:
    """The probability of each grade, for the documents that several people labelled."""

    subjects: list[tuple[str, str]]  # topic and document
    grades: Floats
    chance: Floats  # subjects × grades, rows adding up to 1
    documents: int  # number of documents with a grade
    chances: str = "the chances given"  # the source of the probabilities
    policy: str = ""  # the policy that decided the grades
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, chances: Mapping[str, Mapping[str, Mapping[float, float]]], documents: int) -> LabelUncertainty:
        """From `{topic: {document: {grade: probability}}}`; the probabilities of a document add up to 1."""
        subjects = [(topic, document) for topic, inner in chances.items() for document in inner]
        grades = sorted({float(grade) for topic, document in subjects for grade in chances[topic][document]})
        rows = np.array([[chances[t][d].get(grade, 0.0) for grade in grades] for t, d in subjects], np.float64)
        rows = rows.reshape(len(subjects), len(grades))
        wrong = np.flatnonzero((rows < 0).any(axis=1) | ~(np.abs(rows.sum(axis=1) - 1) < 1e-6))
        if len(wrong):
            topic, document = subjects[int(wrong[0])]
            by_grade = dict(chances[topic][document])
            raise DataError(
                f"label noise: expected chances that add up to 1, found {by_grade} for {document!r} of {topic!r}"
            )
        return cls(subjects, np.array(grades), rows, documents)

    def likeliest(self, current: Floats) -> Floats:
        """The most likely grade of each document; of several, the current grade if it is one of them, else the lowest."""
        best = self.chance >= self.chance.max(axis=1, keepdims=True) - NEAR
        lowest = self.grades[best.argmax(axis=1)]
        is_best = (best & (self.grades == current[:, None])).any(axis=1)
        return np.asarray(np.where(is_best, current, lowest), np.float64)

    @property
    def unsure(self) -> int:
        """The number of documents that may have another grade."""
        return int((self.chance.max(axis=1, initial=0.0) < 1 - NEAR).sum())

    def sentences(self, draws: int) -> list[str]:
        """What is redrawn, and how to read the table."""
        redrawn = len(self.subjects)
        several = "document has" if redrawn == 1 else "documents have"
        what = f"{redrawn:,} of {self.documents:,} {several} several labels: only these are redrawn"
        agreed = "" if self.unsure else "; all labels agree, so nothing changes"
        return [
            f"{what}, {draws} times, by {self.chances}{agreed}",
            "corrected: wrong labels pull differences towards 0; this column undoes that by the step from the most "
            "likely labels to redrawn ones; topics, assessors: their shares of the variance",
            *self.left_out(),
        ]

    def left_out(self) -> list[str]:
        """The label errors that the interval does not cover."""
        single = self.documents - len(self.subjects)
        alone = f"{single:,} documents have one label or a decision: errors in these are not covered"
        return [SHARED_ERRORS, *[alone] * bool(single)]

    @cached_property
    def _bounds(self) -> Floats:
        return np.asarray(np.cumsum(self.chance, axis=1)[:, :-1], np.float64)

    def draw(self, rng: np.random.Generator) -> Floats:
        """A random grade for each document."""
        place = (rng.random((len(self.subjects), 1)) >= self._bounds).sum(axis=1)
        return np.asarray(self.grades[place], np.float64)


@dataclass(frozen=True, eq=False)
class ValueUncertainty:
    """The posterior of each document's value, as a file of judgments from clicks holds it, and how values become grades."""

    judgments: UncertainGrades
    notes: list[str] = field(default_factory=list)
    chances: str = OF_CLICKS
    policy: str = ""

    @classmethod
    def of_file(cls, path: str) -> ValueUncertainty:
        """The uncertainty in a file of qrels with posteriors."""
        return cls(read_uncertain(path))

    @property
    def subjects(self) -> list[tuple[str, str]]:
        """Topic and document of each judgment."""
        return self.judgments.subjects

    @property
    def documents(self) -> int:
        """The number of judgments."""
        return len(self.subjects)

    @property
    def unsure(self) -> int:
        """The number of documents that may have another grade: all of them."""
        return len(self.subjects)

    def likeliest(self, current: Floats) -> Floats:
        """The grade of each document by the mean of its posterior."""
        return self.judgments.grades(self.judgments.posteriors.mean)

    def draw(self, rng: np.random.Generator) -> Floats:
        """A random grade for each document, drawn towards the prior and cut by the thresholds as the judgment itself was."""
        return self.judgments.grades(self.judgments.posteriors.redraw(rng))

    def sentences(self, draws: int) -> list[str]:
        """What is redrawn, and how to read the table."""
        return [
            f"all {self.documents:,} judgments are redrawn {draws} times, each from the posterior of its value",
            "corrected: noise in the values pulls differences towards 0; this column undoes that by the step from the "
            "values to redrawn ones; topics, clicks: their shares of the variance",
            *self.left_out(),
        ]

    def left_out(self) -> list[str]:
        """The errors that the interval does not cover."""
        return [SHARED_CLICKS]


Uncertainty: TypeAlias = LabelUncertainty | ValueUncertainty


class NoisyPair(NamedTuple):
    """A pair of the comparison, and its difference under redrawn labels."""

    measure: str
    one: str
    other: str
    result: RedrawnMean


@dataclass(frozen=True)
class LabelNoise:
    """The effect of redrawn labels on every difference."""

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
    sentences: list[str]  # about what was redrawn, and how to read the table
    left_out: list[str]  # the errors of labels that the interval does not cover
    noise: str = "assessors"  # where the errors come from, as the head of a column

    def content(self, how: Layout) -> Iterator[Part]:
        """The table with one row per pair, and the sentences."""
        percent = f"{self.level * 100:g}%"
        head = ["labels", "run A", "run B", "present labels", "redrawn", "corrected"]
        head += [f"{percent} low", f"{percent} high", "topics", self.noise]
        rows = []
        for measure, one, other, result in self.pairs:
            values = (result.difference, result.redrawn, result.corrected, result.low, result.high)
            numbers = [how.number(value, signed=True) for value in values]
            share = result.share_of_labels
            parts = [how.undefined if share != share else f"{part:.0%}" for part in (1 - share, share)]
            rows.append([measure, one, other, *numbers, *parts])
        yield Table(head, rows, names=3)
        yield Lines(self.sentences)

    def plain(self, how: Layout) -> dict[str, Any]:
        """The result for JSON."""
        facts = ("policy", "chances", "redrawn", "unsure", "documents", "draws", "seed", "level")
        pairs = []
        for measure, one, other, result in self.pairs:
            share = result.share_of_labels
            shares = {"share_of_topics": 1 - share, f"share_of_{self.noise}": share}
            row = {"measure": measure, "one": one, "other": other, **vars(result), **shares}
            row["from_topics"], row["topics"] = row.pop("from_units"), row.pop("units")
            pairs.append({name: plain(value, how.digits) for name, value in row.items()})
        return {**{name: getattr(self, name) for name in facts}, "left_out": self.left_out, "pairs": pairs}


def label_noise(
    evidence: ComparisonEvidence, chances: Any, draws: int = DRAWS, progress: Progress | None = None
) -> LabelNoise:
    """Redraw the labels and score the runs of a comparison under each redraw."""
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
            data = ", ".join(sorted(beyond))
            raise ConventionError(f"label noise: {name} goes by {data}, and only grades are redrawn")
    lacking = next((run for run in scores.runs if run not in sources), None)
    if lacking is not None:
        raise ConventionError(
            f"label noise: runs are read again, but {lacking} cannot be; give a file instead of a stream"
        )
    uncertainty: Uncertainty = chances
    if not isinstance(chances, (LabelUncertainty, ValueUncertainty)):
        uncertainty = LabelUncertainty.of(chances, len(evaluator.qrels))
    likeliest, redrawn = _scored_again(scores, uncertainty, draws, evidence.seed, progress)
    return LabelNoise(
        pairs=_pairs(evidence, likeliest, redrawn),
        policy=uncertainty.policy,
        chances=uncertainty.chances,
        redrawn=len(uncertainty.subjects),
        unsure=uncertainty.unsure,
        documents=uncertainty.documents,
        draws=draws,
        seed=evidence.seed,
        level=evidence.level,
        remarks=list(uncertainty.notes),
        sentences=uncertainty.sentences(draws),
        left_out=uncertainty.left_out(),
        noise="clicks" if isinstance(uncertainty, ValueUncertainty) else "assessors",
    )


def _scored_again(
    scores: Scores, uncertainty: Uncertainty, draws: int, seed: int, progress: Progress | None
) -> tuple[Floats, Floats]:
    """Runs × measures × topics by the most likely labels, and the same for each redraw."""
    evaluator, sources = scores._origin or (None, {})
    assert evaluator is not None
    runs = [evaluator.open(source)[place] for source, place in map(sources.__getitem__, scores.runs)]
    matched_runs = [_MatchedRun(evaluator, run, list(scores.measures.values())) for run in runs]
    place = {topic: t for t, topic in enumerate(evaluator.qrels.topics)}
    topics = [place[topic] for topic in scores.topics]
    present, rows = evaluator.judgments, _rows(evaluator, uncertainty)

    def scored(grades: Floats) -> Floats:
        """Runs × measures × topics, with these grades for the uncertain documents."""
        of_row = present.of_row.copy()
        of_row[rows] = grades
        judgments = replace(present, of_row=of_row, grade=of_row[present.row])
        return np.stack([run.values(judgments)[:, topics] for run in matched_runs])

    rng = np.random.default_rng(seed)
    redrawn = np.empty((draws, *scores.values.shape))
    for b in range(draws):
        redrawn[b] = scored(uncertainty.draw(rng))
        if progress is not None:
            progress(b + 1, draws)
    return scored(uncertainty.likeliest(present.of_row[rows])), redrawn


def _pairs(evidence: ComparisonEvidence, likeliest: Floats, redrawn: Floats) -> list[NoisyPair]:
    """The result for each pair that has a mean over topics; topics without a value stay without one."""
    scores = evidence.scores
    runs, measures = list(scores.runs), list(scores.measures)
    answer = []
    for pair in evidence.pairs:
        one, other, m = runs.index(pair.one), runs.index(pair.other), measures.index(pair.measure)
        difference = scores.values[other, m] - scores.values[one, m]
        topics = ~np.isnan(difference)
        if no_mean(scores, pair.measure) or not topics.any():
            continue
        current = difference[topics]
        about, redraws = ((each[..., other, m, :] - each[..., one, m, :])[..., topics] for each in (likeliest, redrawn))
        about, redraws = (np.where(np.isnan(each), current, each) for each in (about, redraws))
        result = redrawn_mean(current, redraws, evidence.level, about)
        answer.append(NoisyPair(pair.measure, pair.one, pair.other, result))
    return answer


def _rows(evaluator: Evaluator, uncertainty: Uncertainty) -> Ints:
    """For each document with an uncertain grade, its row in the qrels."""
    qrels = evaluator.qrels
    names, documents = qrels.topics, qrels.documents.text()
    place = {
        (names[topic], document): row
        for row, (topic, document) in enumerate(zip(qrels.topic.tolist(), documents, strict=True))
    }
    unknown = next((subject for subject in uncertainty.subjects if subject not in place), None)
    if unknown is not None:
        raise DataError(f"label noise: document {unknown[1]!r} of topic {unknown[0]!r} is not judged in {qrels.name}")
    return np.array([place[subject] for subject in uncertainty.subjects], np.int32)


class _MatchedRun:
    """A run that is matched with the judged documents once, for all grades."""

    def __init__(self, evaluator: Evaluator, run: Run, measures: list[Measure]) -> None:
        self.evaluator, self.run, self.measures = evaluator, run, measures
        index, threads = evaluator.qrels.index, evaluator.threads
        rules = dict.fromkeys(map(evaluator.conventions_for, measures))
        self.matches = {rule: run.hits(index, rule.order, threads) for rule in rules}

    def values(self, judgments: Judgments) -> Floats:
        """Measures × topics under these judgments."""
        hits = {own: join(match, judgments.under(own.negative), own, self.run) for own, match in self.matches.items()}
        hits_of_measures = [hits[self.evaluator.conventions_for(each)] for each in self.measures]
        return np.stack([self.evaluator.values_of(*each) for each in zip(self.measures, hits_of_measures, strict=True)])

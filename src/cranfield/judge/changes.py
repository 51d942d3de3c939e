"""What changed between two versions of qrels, and which scores and verdicts change with it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Lines, Table
from cranfield.compare.comparison import evidence_of
from cranfield.compare.scored import Scored
from cranfield.evaluate import evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cranfield.answer import Layout, Part
    from cranfield.judge.policy import Grades
    from cranfield.run import Run
    from cranfield.scores import Scores

SHOWN = 10
MOST = 500  # on a page, where a table scrolls


@dataclass(frozen=True)
class ScoreChange:
    """A run's mean by a measure under both versions."""

    run: str
    measure: str
    before: float
    after: float


@dataclass(frozen=True)
class VerdictChange:
    """A pair of runs whose verdict differs."""

    measure: str
    one: str
    other: str
    before: str
    after: str


@dataclass(frozen=True, repr=False)
class Changes(Answer):
    """Grades that were added, removed and changed; scores and verdicts where runs were given."""

    a: str
    b: str
    added: list[tuple[str, str, float]]
    removed: list[tuple[str, str, float]]
    changed: list[tuple[str, str, float, float]]
    same: int
    scores: list[ScoreChange] = field(default_factory=list)
    verdicts: list[VerdictChange] = field(default_factory=list)
    compared: bool = False  # whether verdicts were looked for

    def content(self, how: Layout) -> Iterator[Part]:
        counts = f"{len(self.changed):,} grades changed, {len(self.added):,} added, {len(self.removed):,} removed"
        yield f"{self.a} → {self.b}: {counts}, {self.same:,} the same"
        pairs = Counter((before, after) for _, _, before, after in self.changed)
        if pairs:
            rows = [[f"{before:g}", f"{after:g}", f"{n:,}"] for (before, after), n in sorted(pairs.items())]
            yield Table(["grade before", "after", "documents"], rows)
        if self.scores:
            rows = [
                [
                    each.run,
                    each.measure,
                    *map(how.number, (each.before, each.after)),
                    f"{each.after - each.before:+.4f}",
                ]
                for each in self.scores
            ]
            yield Table(["run", "measure", "before", "after", "change"], rows)
        if self.compared:
            yield Lines(
                [
                    f"{each.one} and {each.other} by {each.measure}: {each.before} before, {each.after} now"
                    for each in self.verdicts
                ]
                or ["no verdict between two runs changes"]
            )
        shown = self.changed if how.every else self.changed[: MOST if how.medium == "html" else SHOWN]
        if shown:
            rows = [[topic, document, f"{before:g}", f"{after:g}"] for topic, document, before, after in shown]
            yield Table(["topic", "document", "before", "after"], rows)
        if len(self.changed) > len(shown):
            where = "its JSON" if how.medium == "html" else "--format json"
            yield f"and {len(self.changed) - len(shown):,} more ({where} has them all)"

    def plain(self, how: Layout) -> dict[str, Any]:
        return {
            "a": self.a,
            "b": self.b,
            "added": [list(each) for each in self.added],
            "removed": [list(each) for each in self.removed],
            "changed": [list(each) for each in self.changed],
            "same": self.same,
            "scores": [vars(each) for each in self.scores],
            "verdicts": [vars(each) for each in self.verdicts],
        }

    def records(self, how: Layout) -> Iterator[tuple[Any, ...]]:
        yield "topic", "document", "before", "after"
        yield from self.changed
        yield from ((topic, document, None, grade) for topic, document, grade in self.added)
        yield from ((topic, document, grade, None) for topic, document, grade in self.removed)


def changes(a: str, before: Grades, b: str, after: Grades) -> Changes:
    """How two versions differ."""
    one, other = _flat(before), _flat(after)
    return Changes(
        a,
        b,
        added=[(*subject, grade) for subject, grade in other.items() if subject not in one],
        removed=[(*subject, grade) for subject, grade in one.items() if subject not in other],
        changed=[
            (*subject, one[subject], grade) for subject, grade in other.items() if one.get(subject, grade) != grade
        ],
        same=sum(one.get(subject) == grade for subject, grade in other.items()),
    )


def _flat(grades: Mapping[str, Mapping[str, float]]) -> dict[tuple[str, str], float]:
    return {(topic, document): grade for topic, documents in grades.items() for document, grade in documents.items()}


def with_scores(found: Changes, before: Grades, after: Grades, runs: list[Run], measures: list[str]) -> Changes:
    """The same with the scores of runs by both, and the verdicts between them that differ."""
    scores = [evaluate(grades, runs, measures) for grades in (before, after)]
    rows = [
        ScoreChange(run, measure, *(each.mean(measure, run) for each in scores))
        for measure in scores[0].measures
        for run in scores[0].runs
    ]
    if len(runs) < 2:
        return replace(found, scores=rows)
    said = [who_is_better(each) for each in scores]
    verdicts = [
        VerdictChange(*pair, in_words(verdict), in_words(said[1][pair]))
        for pair, verdict in said[0].items()
        if said[1][pair] != verdict
    ]
    return replace(found, scores=rows, verdicts=verdicts, compared=True)


def who_is_better(scores: Scores, baselines: str | None = None) -> dict[tuple[str, str, str], str]:
    """Who is better, for every pair by every measure, or for every run and a baseline; empty where none is told apart."""
    evidence = evidence_of(Scored(scores, {}, {}), "randomisation", "holm", baselines=baselines, alpha=0.05, seed=0)
    answer = {}
    for pair in evidence.pairs:
        told = evidence.significant(pair) and pair.better != "neither"
        winner = pair.one if pair.better == "one" else pair.other
        answer[pair.measure, pair.one, pair.other] = winner if told else ""
    return answer


def in_words(winner: str) -> str:
    """A verdict in words."""
    return f"{winner} better" if winner else "not told apart"

"""What a policy made of a log, told: how many grades, from whose labels, and how each person stands to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.answer import Layout, Part
    from cranfield.judge.event import Event
    from cranfield.judge.policy import Decided


@dataclass(frozen=True, repr=False)
class Aggregated(Answer):
    """Grades by a policy, and whose labels they came from."""

    log: str
    decided: Decided
    labels: list[Event]

    @property
    def people(self) -> list[str]:
        """Who labelled."""
        return sorted({event.assessor for event in self.labels})

    def content(self, how: Layout) -> Iterator[Part]:
        decided = self.decided
        by = f"{len(self.people):,} {'person' if len(self.people) == 1 else 'people'}"
        what = "preferences" if decided.strengths else "labels"
        yield (
            f"{len(decided):,} documents of {len(decided.grades):,} topics graded by {decided.policy} "
            f"from {decided.labels:,} {what} of {by}"
        )
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
        return [name or how.undefined, f"{len(mine):,}", share, *self._reliability(name, how)]

    def _reliability(self, name: str, how: Layout) -> list[str]:
        verdict = self.decided.verdict
        if verdict is None or verdict.reliability is None:
            return []
        return [how.number(float(verdict.reliability[verdict.raters.index(name)]))]

    def plain(self, how: Layout) -> dict[str, Any]:
        decided, verdict = self.decided, self.decided.verdict
        answer: dict[str, Any] = {
            "log": self.log,
            "policy": decided.policy,
            "settings": {**vars(decided.settings), "sources": list(decided.settings.sources)},
            "labels": decided.labels,
            "contradictions": decided.contradictions,
            "adjudicated": decided.adjudicated,
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
        for topic, strengths in decided.strengths.items():
            groups = [list(group) for group in strengths.components]
            answer.setdefault("components", {})[topic] = groups
        return answer

    def records(self, how: Layout) -> Iterator[tuple[Any, ...]]:
        yield "topic", "document", "grade"
        for topic, documents in self.decided.grades.items():
            yield from ((topic, document, grade) for document, grade in documents.items())

    def notes(self, shell: bool = False) -> list[str]:
        return self.decided.notes()

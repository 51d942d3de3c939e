"""Slices: scores split by a category of the topics, such as navigational or informational, short or long, or any tag.

Any column of a collection's topics or of a topics file can serve (see `formats.topic_tables`). Where queries are known,
`length` is their number of words, unless there is a column of that name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.base.results import Answer, Layout, Lines, Table, text
from cranfield.base.text_layout import listed
from cranfield.formats.topic_tables import read_topic_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cranfield.base.results import Part
    from cranfield.evaluation.scores import Scores
    from cranfield.formats.topic_tables import TopicTable


NONE = "(none)"


def categories(topics: TopicTable | str, column: str) -> dict[str, str]:
    """The category of each topic: a column of a topic table, or of a topics file (TSV, CSV or JSON lines)."""
    table = read_topic_table(topics) if isinstance(topics, str) else topics
    return {topic: value or NONE for topic, value in table.column(column).items()}


def slices(scores: Scores, by: Mapping[str, str], column: str = "category") -> Slices:
    """Split scores by the category of each topic. Topics without a category form the slice `(none)`.

    >>> from cranfield import evaluate
    >>> qrels, run = {"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 1}, "q2": {"x": 2, "b": 1}}
    >>> slices(evaluate(qrels, run, "RR"), {"q1": "navigational", "q2": "informational"})
    run  category       topics      RR
    run  informational       1  0.5000
    run  navigational        1  1.0000
    run  all                 2  0.7500
    """
    values: dict[str, list[str]] = {value: [] for value in sorted(set(by.values()), key=_natural)}
    for topic in scores.topics:
        values.setdefault(by.get(topic, NONE), []).append(topic)
    parts = {value: scores.select(topics=topics) for value, topics in values.items() if topics}
    judged = set(scores.topics)
    lacking = [topic for topic in scores.topics if topic not in by]
    return Slices(column, scores, parts, lacking, [topic for topic in by if topic not in judged])


def _natural(value: str) -> tuple[bool, float, str]:
    """Sort key of a category: numbers by size (3 words before 12 words), then words, then topics without a category."""
    head = value.split(" ", 1)[0]
    try:
        number = float(head)
    except ValueError:
        number = float("inf")
    return value == NONE, number, value


@dataclass
class Slices(Answer):
    """Scores by category: `parts[value]` holds the scores of its topics, `whole` those of all topics."""

    column: str
    whole: Scores
    parts: dict[str, Scores]
    uncategorised: list[str]  # judged topics that the file does not name
    unknown: list[str]  # topics of the file that are not judged

    has_topics = True

    def notes(self, shell: bool = False) -> list[str]:
        notes = []
        if self.uncategorised:
            notes.append(f"{_topics(self.uncategorised)} without {self.column}: see the slice {NONE}")
        if self.unknown:
            notes.append(f"the topics file names {_topics(self.unknown)} without judgments, which are ignored")
        return notes + self.whole.notes(shell)

    def basis(self) -> list[str]:
        return self.whole.basis()

    def rows(self) -> Iterator[tuple[str, str, int, dict[str, float]]]:
        """Run, category, number of topics that count, and the means; the last row of each run is `all`."""
        for r, run in enumerate(self.whole.runs):
            for value, part in [*self.parts.items(), ("all", self.whole)]:
                means = dict(zip(part.measures, part.summary[r].tolist(), strict=True))
                yield run, value, int(part.counted[r].sum()), means

    def content(self, how: Layout) -> list[Part]:
        return [self._table(how), Lines([] if self.whole.usual and not how.states_defaults else self.basis(), dim=True)]

    def _table(self, how: Layout) -> Table:
        rows = [
            [run, value, str(number), *map(how.number, means.values())] for run, value, number, means in self.rows()
        ]
        return Table(["run", self.column, "topics", *self.whole.measures], rows, names=2)

    def plain(self, how: Layout) -> dict[str, Any]:
        """The JSON of all scores with one more key, `by`: the column, its slices, and topics that do not match."""
        parts = [
            {"value": value, "topics": part.topics, "runs": part.to_dict(digits=how.digits)["runs"]}
            for value, part in self.parts.items()
        ]
        by: dict[str, Any] = {"column": self.column, "slices": parts}
        if self.uncategorised:
            by["uncategorised"] = self.uncategorised
        if self.unknown:
            by["unknown"] = self.unknown
        return {**self.whole.plain(how), "by": by}

    def __repr__(self) -> str:
        return text([self._table(Layout(digits=4))])


def _topics(topics: list[str]) -> str:
    return f"topic {topics[0]!r}" if len(topics) == 1 else f"{len(topics)} topics ({listed(topics)})"

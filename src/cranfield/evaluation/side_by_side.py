"""The ranked lists of two runs for one topic, side by side: the ranks of each document, and what each rank adds.

A rank adds the difference between the score of the list cut after it and that of the list cut before it, so this works
for every measure. A document's move is the difference between its ranks in the two runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.notifications import stepwise
from cranfield.base.results import WIDEST, Answer, Layout, Table, plain
from cranfield.base.text_layout import cut, cut_end, in_line, width
from cranfield.evaluation.evaluate import Evaluator, distinct
from cranfield.evaluation.explanation import LONGEST_QUERY, explain_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Unpack

    from cranfield.base.results import Part
    from cranfield.base.run import Run
    from cranfield.evaluation.explanation import Explanation, RankStep
    from cranfield.evaluation.measures import Measure
    from cranfield.evaluation.options import EvaluatorOptions

    Texts = Callable[[Iterable[str]], Mapping[str, str]]  # documents → the title or first words of each that is known

DEPTH = 10  # ranks, if the measure has no cut-off
MOST_RANKS = 25  # on a screen, unless all are requested
SHORTEST = 12  # least width of a document column
NEW, GONE = "new", "gone"


@dataclass(frozen=True)
class RankedEntry:
    """A document at a rank of one list, and its rank in the other list."""

    rank: int
    document: str
    text: str  # its title or first words, if known
    grade: float | None  # None: unjudged
    added: float | None  # to the score of the list so far
    elsewhere: int | None  # its rank in the other list; None if that list does not contain it

    @property
    def move(self) -> int | None:
        """How many ranks higher the document is than in the other list."""
        return None if self.elsewhere is None else self.elsewhere - self.rank

    def to_dict(self) -> dict[str, Any]:
        """The entry for JSON."""
        own = {"rank": self.rank, "document": self.document, **({"text": self.text} if self.text else {})}
        judged = {"grade": self.grade, "judged": self.grade is not None, "added": self.added}
        return plain({**own, **judged, "other_rank": self.elsewhere, "move": self.move})  # type: ignore[no-any-return]


@dataclass(frozen=True)
class TopicComparison(Answer):
    """The result of `side_by_side`: the explanations of two runs on one topic, and both lists rank by rank."""

    one: Explanation
    other: Explanation
    lists: tuple[list[RankedEntry], list[RankedEntry]]
    most_different_of: int | None = None  # the number of topics this one was chosen from; None if the user named it

    ends_with_notes = True

    @property
    def difference(self) -> float:
        """The score of the second run minus that of the first."""
        return self.other.value - self.one.value

    def title(self) -> str:
        """The verdict: both scores, and the difference."""
        one, other = self.one, self.other
        query = f" ({cut_end(in_line(one.query), LONGEST_QUERY)})" if one.query else ""
        values = f"{one.run} {_value(one.value)}, {other.run} {_value(other.value)}"
        difference = "" if math.isnan(self.difference) else f" ({self.difference:+.4f})"
        return f"{one.measure} of topic {one.topic}{query}: {values}{difference}"

    def content(self, how: Layout) -> Iterator[Part]:
        yield self.title()
        if any(self.lists):
            yield self._table(how)

    def _table(self, how: Layout) -> Table:
        screen = how.medium == "text"
        rows = list(self._cells(how))
        columns = [i for i in range(7) if i != 3 or any(row[3] for row in rows)]  # nothing is gone
        head = ["rank", self.one.run, "adds", "", self.other.run, "adds", "move"]
        if screen:
            head, rows = _fitting(head, rows, columns, how.limit or WIDEST)
        return Table([head[i] for i in columns], [[row[i] for i in columns] for row in rows], 2, 2, tail=False)

    def _cells(self, how: Layout) -> Iterator[list[str]]:
        """One row per rank: the rank, and for both lists the document, what it adds, and its move."""
        deepest = max(map(len, self.lists))
        for place in range(deepest if self.one.full or how.medium != "text" else min(deepest, MOST_RANKS)):
            one, other = (entries[place] if place < len(entries) else None for entries in self.lists)
            left, right = [*_document(one, how), self._left(one, how)], [*_document(other, how), _move(other, how)]
            yield [str(place + 1), *left, *right]

    def _left(self, entry: RankedEntry | None, how: Layout) -> str:
        """The mark of a document of the first list that the second list does not show."""
        if entry is None or 0 < (entry.elsewhere or 0) <= len(self.lists[1]):
            return ""
        return GONE if entry.move is None else _arrow(-entry.move, how)

    def notes(self, shell: bool = False) -> list[str]:
        """Why this topic was chosen, what the signs mean, and what is unjudged or tied in each list."""
        notes = []
        if self.most_different_of is not None:
            runs = f"{self.one.run} and {self.other.run}"
            notes.append(f"of {self.most_different_of} topics, {runs} differ most on this one")
        one, other = (sum(entry.grade is None for entry in entries) for entries in self.lists)
        some_unjudged = (one or other) and not self.one.only_relevant
        unjudged = f" (? unjudged: {one} and {other} of the first {max(map(len, self.lists))})" if some_unjudged else ""
        if any(self.lists):
            notes.append(f"the grade stands before each document{unjudged}")
        for each in (self.one, self.other):
            notes += [f"{each.run}: {words}" for words in [each.on_digits()] if words]
            lowest, highest = (None, None) if each.ties is None else (each.ties.lowest, each.ties.highest)
            if lowest is not None and highest is not None and not math.isclose(lowest, highest, abs_tol=1e-12):
                span = f"from {lowest:.4f} to {highest:.4f}"
                notes.append(f"{each.run}: the order of ties decides; over all orders the score ranges {span}")
        return notes

    def plain(self, how: Layout) -> Any:
        """Both scores, both lists with moves, and both explanations, for JSON."""
        one, other = self.one, self.other
        answer: dict[str, Any] = {"measure": one.measure, "topic": one.topic}
        if one.query:
            answer["query"] = one.query
        if self.most_different_of is not None:
            answer["most_different_of"] = self.most_different_of
        lists = [
            {"run": each.run, "value": each.value, "documents": [entry.to_dict() for entry in entries]}
            for each, entries in zip((one, other), self.lists, strict=True)
        ]
        answer |= {"difference": self.difference, "lists": lists}
        return {**plain(answer, how.digits), "explanations": [one.plain(how), other.plain(how)]}


def _value(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.4f}"


def _document(entry: RankedEntry | None, how: Layout) -> list[str]:
    if entry is None:
        return ["", ""]
    grade = "?" if entry.grade is None else f"{entry.grade:g}"
    text = f"{grade} {entry.document}{f'  {entry.text}' if entry.text else ''}"
    adds = "" if not entry.added or entry.added != entry.added else how.number(entry.added, signed=True)
    return [text, adds]


def _move(entry: RankedEntry | None, how: Layout) -> str:
    return "" if entry is None else NEW if entry.move is None else _arrow(entry.move, how)


def _arrow(move: int, how: Layout) -> str:
    up, down = ("+", "-") if how.ascii_only else ("↑", "↓")
    return "=" if not move else f"{up if move > 0 else down}{abs(move)}"


def _fitting(
    head: list[str], rows: list[list[str]], columns: Sequence[int], limit: int
) -> tuple[list[str], list[list[str]]]:
    """Shorten both document columns to half of the remaining width each: ids in the middle, texts at the end."""
    widths = {i: max(width(in_line(cell)) for cell in (head[i], *(row[i] for row in rows))) for i in columns}
    room = max((limit - sum(widths[i] + 2 for i in columns if i not in (1, 4)) - 2) // 2, SHORTEST)
    for i in (1, 4):
        cells = [cut(in_line(head[i]), room), *(_cut_document(row[i], room) for row in rows)]
        longest = max(map(width, cells))  # padded, so that the second document column is aligned
        head[i], *texts = (cell + " " * (longest - width(cell)) for cell in cells)
        rows = [[*row[:i], text, *row[i + 1 :]] for row, text in zip(rows, texts, strict=True)]
    return head, rows


def _cut_document(cell: str, room: int) -> str:
    """The grade and the id, then as much of the text as fits."""
    name, gap, text = in_line(cell).partition("  ")
    left = room - width(name) - 2
    return f"{name}{gap}{cut_end(text, left)}" if text and left >= 4 else cut(name, room)


def side_by_side(
    qrels: Any,
    one: Any,
    other: Any,
    measure: str | Measure = "nDCG@10",
    topic: str | None = None,
    *,
    full: bool = False,
    texts: Texts | None = None,
    **options: Unpack[EvaluatorOptions],
) -> TopicComparison:
    """Show two runs on one topic side by side, rank by rank: by default on the topic where they differ most.

    Takes the arguments of `evaluate`. `full` shows all ranks instead of those down to the measure's cut-off (or the
    first 10); `texts` returns titles of documents, which are shown next to the ids.

    >>> sides = side_by_side({"q": {"a": 1}}, {"q": {"b": 2, "a": 1}}, {"q": {"a": 2, "b": 1}}, "RR")
    >>> sides.difference, [entry.move for entry in sides.lists[1]]
    (0.5, [1, -1])
    """
    evaluator = Evaluator(qrels, [measure], **options)
    runs = [run for each in stepwise((one, other)) for run in evaluator.open(each)]
    if len(runs) != 2:
        raise DataError(f"expected two runs to show side by side, found {len(runs)}")
    runs = [run.renamed(label) for run, label in zip(runs, distinct([run.name for run in runs]), strict=True)]
    name = next(iter(evaluator.measures))
    topic_id, of = (topic, None) if topic is not None else _most_different(evaluator, runs)
    if topic_id not in evaluator.qrels.topics:
        raise DataError(f"topic {topic_id!r} is not judged in {evaluator.qrels.name}")
    if topic is not None:  # otherwise `evaluate` has warned already
        evaluator.warn_of(*runs)
    explanations = [explain_topic(evaluator, run, name, topic_id, full) for run in runs]
    depth = math.inf if full else evaluator.measures[name].values.get("k") or DEPTH
    order = evaluator.conventions_for(evaluator.measures[name]).order
    rankings = [run.ranking(topic_id, order) if topic_id in run else [] for run in runs]
    ranks = [{document: place for place, (document, _) in enumerate(each, 1)} for each in rankings]
    steps_of_runs = [[step for step in each.steps if step.document and step.rank <= depth] for each in explanations]
    titles = {} if texts is None else texts({str(step.document) for steps in steps_of_runs for step in steps})
    lists = _entries(steps_of_runs[0], ranks[1], titles), _entries(steps_of_runs[1], ranks[0], titles)
    return TopicComparison(explanations[0], explanations[1], lists, of)


def _most_different(evaluator: Evaluator, runs: list[Run]) -> tuple[str, int | None]:
    """The topic with the largest difference between the two runs, and the number of topics compared."""
    scores = evaluator.evaluate(runs)
    apart = np.abs(scores.values[1, 0] - scores.values[0, 0])
    if not len(apart) or np.isnan(apart).all():
        raise DataError("which topic? no topic has a value for both runs")
    number = int((~np.isnan(apart)).sum())
    return scores.topics[int(np.nanargmax(apart))], number if number > 1 else None


def _entries(steps: list[RankStep], elsewhere: Mapping[str, int], texts: Mapping[str, str]) -> list[RankedEntry]:
    """The entries of a list; `added` is None where the rank above is not shown."""
    answer, before, at = [], 0.0, 0
    for step in steps:
        document, so_far = str(step.document), step.so_far
        added = None if so_far is None or step.rank != at + 1 else so_far - before
        text, place = texts.get(document, ""), elsewhere.get(document)
        answer.append(RankedEntry(step.rank, document, text, step.grade, added, place))
        before, at = 0.0 if so_far is None else so_far, step.rank
    return answer

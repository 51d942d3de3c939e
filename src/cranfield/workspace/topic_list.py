"""The topics of a workspace as a list: what was asked, what is labelled, and where two runs differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.answer import Answer, Cell, Layout, Table, plain
from cranfield.workspace.looking import topics_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cranfield.answer import Part
    from cranfield.workspace.bench import Bench

BY_DIFFERENCE = "difference"


class TopicRow(NamedTuple):
    """A topic, and the scores of two runs where two were chosen."""

    topic: str
    query: str
    labelled: int
    one: float | None = None
    other: float | None = None
    difference: float | None = None


@dataclass(frozen=True)
class TopicList(Answer):
    """What `topic_list` returns; `to` is the page of a topic."""

    rows: Sequence[TopicRow]
    runs: tuple[str, str] | None
    to: Callable[[str], str]

    def content(self, how: Layout) -> Iterator[Part]:
        head = ["topic", "query", *([*self.runs, "difference"] if self.runs else []), "labelled here"]
        rows = []
        for row in self.rows:
            cells = [Cell(row.topic, to=self.to(row.topic)), Cell(row.query)]
            if self.runs:
                cells += [how.cell(row.one), how.cell(row.other), how.cell(row.difference, signed=True)]
            rows.append([*cells, Cell(str(row.labelled), row.labelled)])
        yield Table(head, rows, 1, 2, keys=[{"topic": row.topic} for row in self.rows])

    def plain(self, how: Layout) -> dict[str, Any]:
        names = TopicRow._fields if self.runs else TopicRow._fields[:3]
        rows = [{name: getattr(row, name) for name in names} for row in self.rows]
        answer: dict[str, Any] = plain({"topics": rows}, how.digits)
        return answer


def around(bench: Bench, topic: str, scores: Sequence[Mapping[str, Any]] | None = None) -> tuple[str, str]:
    """The topics before and after one: as `scores` order them, else as their file does.

    Empty at the ends, and where the topic is not among them. No label is counted for it.
    """
    table = bench.topics()
    known = [] if table is None else list(table.queries)
    topics = known if scores is None else [row["topic"] for row in scores]
    if topic not in topics:
        return "", ""
    place = topics.index(topic)
    return "".join(topics[max(place - 1, 0) : place]), "".join(topics[place + 1 : place + 2])


def topic_list(
    bench: Bench,
    to: Callable[[str], str],
    *,
    runs: tuple[str, str] | None = None,
    scores: Sequence[Mapping[str, Any]] | None = None,
    words: str = "",
) -> TopicList:
    """Topics in the order of their file; with `scores`, as `compare` has them by topic, the largest gain first.

    `words` must all stand in a topic's id or query.
    """
    known = {row["topic"]: row for row in topics_of(bench)}
    rows = [TopicRow(row["topic"], row["query"], row["labelled"]) for row in known.values()]
    if scores is not None:
        scored = {row["topic"]: row for row in scores}
        first = [
            TopicRow(
                topic,
                known[topic]["query"] if topic in known else "",
                known[topic]["labelled"] if topic in known else 0,
                *(row[name] for name in ("one", "other", "difference")),
            )
            for topic, row in scored.items()
        ]
        rows = [*first, *(row for row in rows if row.topic not in scored)]
    wanted = words.casefold().split()
    kept = [row for row in rows if all(word in f"{row.topic} {row.query}".casefold() for word in wanted)]
    return TopicList(kept, runs if scores is not None else None, to)

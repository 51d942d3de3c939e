"""Two runs on one topic before anything of it is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Layout, Table, plain
from cranfield.errors import DataError
from cranfield.parameters import Text, Whole
from cranfield.sides import Entry
from cranfield.workspace.verb import OfRuns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.answer import Part
    from cranfield.run import Run
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.run_files import RunFile
    from cranfield.workspace.verb import Tell


@dataclass(frozen=True)
class TopLists(Answer):
    """What two runs return first for a topic that nobody has judged: lists as `side_by_side` gives them, without scores."""

    topic: str
    runs: tuple[str, str]
    lists: tuple[list[Entry], list[Entry]]

    def content(self, how: Layout) -> Iterator[Part]:
        rows = [
            [str(place + 1), *(entries[place].document if place < len(entries) else "" for entries in self.lists)]
            for place in range(max(map(len, self.lists)))
        ]
        yield Table(["rank", *self.runs], rows, 1, 3, caption=f"topic {self.topic}, not judged yet")

    def plain(self, how: Layout) -> dict[str, Any]:
        lists = [
            {"run": run, "value": None, "documents": [entry.to_dict() for entry in entries]}
            for run, entries in zip(self.runs, self.lists, strict=True)
        ]
        answer: dict[str, Any] = plain({"topic": self.topic, "difference": None, "lists": lists, "explanations": []})
        return answer


class Lists(OfRuns):
    """What two runs return first for one topic, whether or not anything is judged."""

    name = "lists"
    told = "reading two lists"
    one = Text(..., "the run on the left")  # type: ignore[arg-type]
    other = Text(..., "the run on the right")  # type: ignore[arg-type]
    topic = Text(..., "the topic")  # type: ignore[arg-type]
    depth = Whole(10, "how many ranks are shown", high=1000)

    def files(self, bench: Bench) -> list[RunFile]:
        return [bench.run(self.one), bench.run(self.other)]

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.formats import read_run

        names = [run.name for run in self.files(bench)]
        rankings = [self._ranking(read_run(run.path)) for run in self.files(bench)]
        if not any(rankings):
            raise DataError(f"topic {self.topic!r:.60}: neither run returns anything, and nothing of it is judged")
        one, other = ({document: place for place, document in enumerate(each, 1)} for each in rankings)
        lists = self._entries(rankings[0], other), self._entries(rankings[1], one)
        return TopLists(self.topic, (names[0], names[1]), lists)

    def _ranking(self, run: Run) -> list[str]:
        return [document for document, _ in run.ranking(self.topic)] if self.topic in run else []

    def _entries(self, ranking: list[str], elsewhere: dict[str, int]) -> list[Entry]:
        shown = enumerate(ranking[: self.depth], 1)
        return [Entry(rank, document, "", None, None, elsewhere.get(document)) for rank, document in shown]

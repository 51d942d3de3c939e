"""Questions about two runs on one topic: side by side with scores, or the lists alone if nothing is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import Text, Whole
from cranfield.base.results import Answer, Layout, Part, Table, plain
from cranfield.evaluation.side_by_side import RankedEntry, TopicComparison, side_by_side
from cranfield.workbench.question import PairQuestion, ScoringQuestion, Tell, answer_html

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.base.run import Run
    from cranfield.inputs.workspace import Bench


class SideBySideQuestion(PairQuestion, ScoringQuestion):
    """The lists of two runs on one topic side by side, with the explanation of each score."""

    name = "sides"
    activity = "comparing two lists"
    topic = Text("", "the topic; default: the one on which the runs differ most")

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        if len(self.measures) != 1:
            raise ConventionError(f"expected one measure, found {len(self.measures)}: {' '.join(self.measures)}")

    def run(self, bench: Bench, tell: Tell) -> Answer:
        inputs = self.inputs(bench)
        qrels = inputs.judgments
        if self.topic and not isinstance(qrels, str) and self.topic not in qrels.topics:
            raise DataError(f"topic {self.topic!r:.60}: nothing of it is judged yet, so there is no score to explain")
        paths = [inputs.paths[run.name] for run in self.files(bench)]
        return side_by_side(qrels, paths[0], paths[1], self.measures[0], self.topic or None, **inputs.options())

    def html(self, bench: Bench, answer: Answer) -> str:
        assert isinstance(answer, TopicComparison)
        return answer_html(answer.one) + answer_html(answer.other)


@dataclass(frozen=True)
class UnjudgedLists(Answer):
    """The top documents of two runs for a topic without judgments: lists as in `side_by_side`, without scores."""

    topic: str
    runs: tuple[str, str]
    lists: tuple[list[RankedEntry], list[RankedEntry]]

    def content(self, how: Layout) -> Iterator[Part]:
        rows = [
            [str(place + 1), *(entries[place].document if place < len(entries) else "" for entries in self.lists)]
            for place in range(max(map(len, self.lists)))
        ]
        yield Table(["rank", *self.runs], rows, 1, 3, caption=f"topic {self.topic}, not judged yet")

    def plain(self, how: Layout) -> Any:
        lists = [
            {"run": run, "value": None, "documents": [entry.to_dict() for entry in entries]}
            for run, entries in zip(self.runs, self.lists, strict=True)
        ]
        return plain({"topic": self.topic, "difference": None, "lists": lists, "explanations": []})


class ListsQuestion(PairQuestion):
    """The top documents of two runs for one topic, judged or not."""

    name = "lists"
    activity = "reading two lists"
    topic = Text(..., "the topic")  # type: ignore[arg-type]
    depth = Whole(10, "the number of ranks to show", high=1000)

    def run(self, bench: Bench, tell: Tell) -> Answer:
        from cranfield.formats import read_run

        names = [run.name for run in self.files(bench)]
        rankings = [self._ranking(read_run(run.path)) for run in self.files(bench)]
        if not any(rankings):
            raise DataError(f"topic {self.topic!r:.60}: neither run returns anything, and nothing of it is judged")
        one, other = ({document: place for place, document in enumerate(each, 1)} for each in rankings)
        lists = self._entries(rankings[0], other), self._entries(rankings[1], one)
        return UnjudgedLists(self.topic, (names[0], names[1]), lists)

    def _ranking(self, run: Run) -> list[str]:
        return [document for document, _ in run.ranking(self.topic)] if self.topic in run else []

    def _entries(self, ranking: list[str], elsewhere: dict[str, int]) -> list[RankedEntry]:
        top = enumerate(ranking[: self.depth], 1)
        return [RankedEntry(rank, document, "", None, None, elsewhere.get(document)) for rank, document in top]

"""A workspace at a glance: what is there, and what to do next."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.answer import Answer, Entries, Layout, Table, plain
from cranfield.judge.plan import OPEN
from cranfield.workspace.chosen import has_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cranfield.answer import Part
    from cranfield.judge.places import Version
    from cranfield.judge.status import RoundStatus
    from cranfield.workspace.bench import Bench


class Step(NamedTuple):
    """What to do next: a sentence, and the page where it is done."""

    said: str
    to: str = ""
    role: str = "viewer"  # who can


@dataclass(frozen=True)
class Overview(Answer):
    """What `overview` returns."""

    name: str
    collection: str | None
    topics: int
    has_documents: bool
    has_qrels: bool
    runs: Sequence[str]
    rounds: Sequence[RoundStatus]
    versions: Sequence[Version]
    events: int  # in the log
    steps: Sequence[Step]

    def content(self, how: Layout) -> Iterable[Part]:
        yield self.steps[0].said
        yield Entries(
            [
                ("collection", self.collection or "none"),
                ("topics", f"{self.topics}"),
                ("runs", f"{len(self.runs)}"),
                ("rounds", f"{len(self.rounds)}"),
                ("events", f"{self.events}"),
                ("versions", f"{len(self.versions)}"),
            ]
        )
        if self.rounds:
            rows = [[each.name, each.state, f"{each.done}", f"{each.places}"] for each in self.rounds]
            yield Table(["round", "state", "labels", "of"], rows, names=2)

    def plain(self, how: Layout) -> dict[str, Any]:
        return {
            "name": self.name,
            "collection": self.collection,
            "topics": self.topics,
            "has_documents": self.has_documents,
            "has_qrels": self.has_qrels,
            "runs": list(self.runs),
            "rounds": [
                {"name": each.name, "state": each.state, "done": each.done, "places": each.places}
                for each in self.rounds
            ],
            "versions": [
                plain({"name": each.name, "documents": each.documents, "created": each.created})
                for each in self.versions
            ],
            "events": self.events,
            "next": [step._asdict() for step in self.steps],
        }


def overview(bench: Bench) -> Overview:
    """Look at a workspace without computing anything long."""
    topics = bench.topics()
    rounds = bench.rounds()
    facts: dict[str, Any] = {
        "name": os.path.basename(bench.folder),
        "collection": bench.home and os.path.basename(bench.home),
        "topics": 0 if topics is None else len(topics.queries),
        "has_documents": bench.collection is not None,
        "has_qrels": bench.qrels is not None,
        "runs": [run.name for run in bench.runs()],
        "rounds": rounds,
        "versions": bench.versions(),
        "events": bench.log.place(),
    }
    return Overview(**facts, steps=list(_steps(facts, has_labels(bench))))


def _steps(facts: dict[str, Any], labelled: bool) -> Iterable[Step]:
    """What to do next, the most urgent first; `labelled`: by people."""
    if not facts["has_documents"]:
        yield Step(f"There are no documents yet: cranfield import … -o {facts['name']} brings a collection.")
    if not facts["topics"]:
        yield Step("There are no topics yet: put topics.jsonl beside the documents.")
    if not facts["runs"]:
        yield Step("There is no run yet: add one.", "/runs", "lead")
    for each in facts["rounds"]:
        if each.state == OPEN and each.done < each.places:
            yield Step(f"Round {each.name}: {each.done} of {each.places} labels are there.", "/judge", "assessor")
        elif each.state == OPEN:
            yield Step(
                f"Round {each.name} has all its {each.places} labels: look at it and close it.", "/rounds", "lead"
            )
    if facts["runs"] and not facts["rounds"]:
        told = "No round of judging yet" if facts["has_qrels"] else "Nothing is judged yet"
        yield Step(f"{told}: plan one.", "/rounds/new", "lead")
    if labelled and not facts["versions"]:
        yield Step("Labels are there and no version of them is frozen yet.", "/versions", "lead")
    if facts["runs"] and (facts["has_qrels"] or labelled):
        yield Step("See which run is best.", "/runs")

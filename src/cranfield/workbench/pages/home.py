"""The first page, an overview of the workspace with the next steps; and the list of routes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.results import Answer, Entries, Layout, Part, Table, plain
from cranfield.inputs.selection import has_labels
from cranfield.judging.round_plan import OPEN
from cranfield.workbench.access_control import LEAD, VIEWER
from cranfield.workbench.assessment import rounds_of
from cranfield.workbench.command_lines import fill, places_of
from cranfield.workbench.job_answers import ask
from cranfield.workbench.links import link
from cranfield.workbench.pages.prefer import comparisons_of
from cranfield.workbench.routes import NOTHING, PARTS, Page, PageRequest, entries, page

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cranfield.inputs.workspace import Bench
    from cranfield.judging.assignments import Version
    from cranfield.judging.round_status import RoundStatus


class NextStep(NamedTuple):
    """Something to do next: a sentence, the page where it is done, and the role that can do it."""

    said: str
    to: str = ""
    role: str = "viewer"


@dataclass(frozen=True)
class Overview(Answer):
    """The contents of a workspace, and the next steps."""

    name: str
    collection: str | None
    topics: int
    has_documents: bool
    has_qrels: bool
    runs: Sequence[str]
    rounds: Sequence[RoundStatus]
    versions: Sequence[Version]
    events: int  # in the log
    steps: Sequence[NextStep]

    def content(self, how: Layout) -> Iterable[Part]:
        yield self.steps[0].said
        counts = {"topics": self.topics, "runs": len(self.runs), "rounds": len(self.rounds), "events": self.events}
        counts |= {"versions": len(self.versions)}
        entries = [("collection", self.collection or "none"), *((name, str(count)) for name, count in counts.items())]
        yield Entries(entries)
        if self.rounds:
            rows = [[each.name, each.state, f"{each.done}", f"{each.places}"] for each in self.rounds]
            yield Table(["round", "state", "labels", "of"], rows, names=2)

    def plain(self, how: Layout) -> dict[str, Any]:
        values = {name: value for name, value in vars(self).items() if name != "steps"}
        values["runs"] = list(self.runs)
        values["rounds"] = _fields(self.rounds, "name", "state", "done", "places")
        values["versions"] = plain(_fields(self.versions, "name", "documents", "created"))
        return {**values, "next": [step._asdict() for step in self.steps]}


def _fields(rows: Sequence[Any], *names: str) -> list[dict[str, Any]]:
    return [{name: getattr(row, name) for name in names} for row in rows]


def overview(bench: Bench) -> Overview:
    """An overview of a workspace; nothing in it takes long to compute."""
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


def _steps(facts: dict[str, Any], labelled: bool) -> Iterable[NextStep]:
    """The next steps, the most urgent first; `labelled`: people have labelled documents."""
    if not facts["has_documents"]:
        yield NextStep("There are no documents yet: import a collection.", "/import", "lead")
    elif not facts["topics"]:
        yield NextStep("There are no topics yet: import them.", "/import", "lead")
    if not facts["runs"]:
        yield NextStep("There is no run yet: add one.", "/runs", "lead")
    for each in facts["rounds"]:
        if each.state == OPEN and each.done < each.places:
            yield NextStep(f"Round {each.name}: {each.done} of {each.places} labels are in.", "/judge", "assessor")
        elif each.state == OPEN:
            full = f"Round {each.name} has all its {each.places} labels: review and close it."
            yield NextStep(full, "/rounds", "lead")
    if facts["runs"] and facts["topics"] and not facts["rounds"]:
        lack = "No round of judging yet" if facts["has_qrels"] else "Nothing is judged yet"
        yield NextStep(f"{lack}: plan a round.", "/rounds/new", "lead")
    if labelled and not facts["versions"]:
        yield NextStep("There are labels, and no version of them is frozen yet.", "/versions", "lead")
    if facts["runs"] and (facts["has_qrels"] or labelled):
        yield NextStep("See which run is best.", "/runs")


class GuideStep(NamedTuple):
    """One step from an empty workspace to the first judgment: what to do, whether it is done, where, and as a command."""

    said: str
    done: bool
    to: str
    command: str


def guide(content: Overview, bench: Bench, judges: int) -> list[GuideStep]:
    """The steps from an empty workspace to the first judgment; `judges` is the number of people who may judge."""
    places = places_of(bench)

    def step(said: str, done: bool, to: str, command: str) -> GuideStep:
        return GuideStep(said, done, to, fill(command, places))

    imported, pooled = content.has_documents and bool(content.topics), bool(content.runs)
    pool = "cranfield pool {runs}/* -o pool.jsonl && cranfield judge round {log} --pool pool.jsonl"
    judge = "cranfield pool judge --judgments {log} --round 1 --collection {collection} --assessor {assessor}"
    return [
        step("Import a collection: its documents and topics.", imported, "/import", "cranfield import SOURCE {ws}"),
        step("Add runs: the results of each system.", pooled, "/runs", "mkdir -p {runs} && cp RUN {runs}/"),
        step("Invite the people who judge.", judges > 1, "/people", "cranfield serve {ws} --invite assessor"),
        step("Plan a round: which documents are judged, and by whom.", bool(content.rounds), "/rounds/new", pool),
        step("Judge the first document.", False, "/judge", judge),
    ]


@page("/", VIEWER, "overview", reveals=PARTS)
def home(request: PageRequest) -> Page:
    """An overview of the workspace: collection, findings, runs, rounds, versions and the next steps."""
    if request.blind:
        return _own_work(request)
    content = overview(request.site.bench)
    steps = [each._asdict() for each in content.steps if request.may(each.role)]
    findings = ask(request, "check")
    bench = request.site.bench
    begins = request.may(LEAD) and not has_labels(bench)
    first_steps = guide(content, bench, len(request.assessors())) if begins else []
    values = {**content.to_dict(), "next": steps, "check": findings.values()}
    values |= {"guide": [each._asdict() for each in first_steps]}
    return Page(content.name, "home.html", values, {"findings": findings}, scripts=("live.js", "sort.js"))


def _own_work(request: PageRequest) -> Page:
    """The overview for an assessor who judges blind: the topics, their own rounds and comparisons, and nothing of the runs."""
    bench = request.site.bench
    topics = bench.topics()
    rounds, comparisons = rounds_of(bench, request.name), comparisons_of(bench, request.name)
    steps = [
        NextStep(f"Judge in round {each.round}: you have labelled {each.mine}.", link("/judge", round=each.round))
        for each in rounds
        if each.state == OPEN
    ]
    steps += [
        NextStep(f"Compare in {each.name}: {each.mine} of {each.pairs} pairs.", link("/prefer", comparison=each.name))
        for each in comparisons
        if each.state == OPEN and each.mine < each.pairs
    ]
    values = {
        "name": bench.name,
        "topics": 0 if topics is None else len(topics.queries),
        "has_documents": bench.collection is not None,
        "rounds": [each._asdict() for each in rounds],
        "comparisons": [each._asdict() for each in comparisons],
        "next": [each._asdict() for each in steps],
        "blind": True,
    }
    return Page(bench.name, "home_blind.html", values)


@page("/api", VIEWER, "routes.entries", reveals=NOTHING)
def api(request: PageRequest) -> Page:
    """Every route: the least role, its twins, and what it does."""
    routes = []
    for each in entries():
        about = {"path": each.path, "method": each.method, "role": each.role, "twins": each.paths()[1:]}
        about["reveals"] = each.reveals
        routes.append({**about, "verb": each.verb, "said": each.summary})
    return Page("Routes", "api.html", {"routes": routes})

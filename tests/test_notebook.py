"""What a notebook shows of every result: well-formed HTML, names escaped, charts where there are any."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from random import Random
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as Tree

import numpy as np
import pytest

import cranfield
from cranfield import Qrels, Run, design, evaluate, explain, explain_as, leaderboard, pool, read_collection, stability
from cranfield.base.results import FIRST_ROWS, MOST_ROWS, Answer, Both, Layout, Lines, Part, Table
from cranfield.collections.check import Finding, Findings, check
from cranfield.collections.describe import diff, show, stats
from cranfield.commands import clicks, experiments, judging, topics
from cranfield.commands.guidelines import GuidelinesReport
from cranfield.commands.listings import strategies
from cranfield.commands.llm_judges import calibrate
from cranfield.comparison.efficiency import efficiency_of_files
from cranfield.evaluation.side_by_side import RankedEntry
from cranfield.experiments import credit, interleave
from cranfield.experiments.clicks.cascade import SDBN
from cranfield.experiments.clicks.click_log import ClickLog
from cranfield.experiments.clicks.click_through import DocumentCTR
from cranfield.experiments.clicks.fits import ClickModelFit, compare_models, hold_out
from cranfield.experiments.clicks.people_agreement import agreement_with_people
from cranfield.experiments.clicks.result_pages import ResultPages
from cranfield.experiments.log import EventLog
from cranfield.experiments.offline_agreement import bridge, simulate_signals
from cranfield.experiments.simulated_world import Audience, World
from cranfield.experiments.simulation import false_alarms, needs, plan_for
from cranfield.experiments.simulation import simulate as simulate_online
from cranfield.formats.catalogue import CATALOGUE
from cranfield.formats.collection_folder import write_collection
from cranfield.formats.label_files import Judgment
from cranfield.formats.runs_and_qrels import as_qrels, as_runs
from cranfield.inputs.inputs import Inputs
from cranfield.inputs.workspace import open_bench
from cranfield.judging import Event, open_log
from cranfield.judging.adaptive_choice import AdaptivePlan, RelevantWord, StartDocument, TopicModel
from cranfield.judging.guidelines import GradeMeaning, Guidelines
from cranfield.judging.guidelines_history import GuidelinesEntry
from cranfield.judging.llm.ask_result import AskFailure, AskResult
from cranfield.judging.llm.estimate import estimates as scores_from
from cranfield.judging.llm.label_sample import label_sample
from cranfield.judging.llm.leaderboards import advantages, boards
from cranfield.judging.llm.probes import PROBES, ProbeOutcome, ProbeResult, ProbeResults
from cranfield.judging.llm.question_store import Budget, Spent
from cranfield.judging.llm.usage import Counts, ModelFailure, ModelFailures, ModelJudge, ModelRun, ModelRuns
from cranfield.judging.round_plan import Round, RoundItem, RoundPlan
from cranfield.judging.round_recall import RoundRecall
from cranfield.judging.rounds import open_round
from cranfield.judging.version_cache import VersionSummary
from cranfield.pooling.reuse import OutsideRuns, thin
from cranfield.pooling.simulation import estimates
from cranfield.pooling.stopping import stopping
from cranfield.pooling.strategy import rankings, statistics
from cranfield.reports.report_content import report_of
from cranfield.studies.plan import Study, StudyTask, schedule
from cranfield.workbench.assessment import GradeOption, JudgingWork, RoundChoice
from cranfield.workbench.pages.adjudicate import AdjudicationList
from cranfield.workbench.pages.home import overview as overview_of
from cranfield.workbench.pages.prefer import ByTopic, ComparisonChoice, ComparisonResult, PreferenceWork
from cranfield.workbench.pages.search import SearchResult, SearchWork
from cranfield.workbench.pages.topics import TopicList, TopicRow
from cranfield.workbench.questions.collection import SearchIndex
from cranfield.workbench.questions.labels import CheckedVersion
from cranfield.workbench.questions.runs import RenderedReport, TopicScores, UnjudgedLists
from online_events import PLAN, Trail, plan_file
from shell import EXAMPLES
from shell import cranfield as command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

EVIL = "<script>alert('x&y')</script>"
TOPICS = [f"{EVIL}{i}" for i in range(8)]
QRELS = {topic: {f"{EVIL}a": 2, "b": 1, "c": 0, "d": 1} for topic in TOPICS}
RUNS: dict[str, Any] = {
    f"{EVIL}one": {t: {f"{EVIL}a": 3.0, "b": 2.0, "c": 1.0, "x": 0.5} for t in TOPICS},
    "two": {t: {"c": 3.0 + i % 2, f"{EVIL}a": 2.0, "d": 1.5, "b": 1.0} for i, t in enumerate(TOPICS)},
    "three": {t: {"x": 3.0, "c": 2.0 - i % 3, "d": 1.0} for i, t in enumerate(TOPICS)},
}
ONE = RUNS[f"{EVIL}one"]


def results(base: type[Answer] = Answer) -> Iterable[type[Answer]]:
    for cls in base.__subclasses__():
        yield from (cls, *results(cls))


@cache
def scores() -> Any:
    return evaluate(QRELS, RUNS, "AP nDCG@3")


def opened() -> list[Run]:
    return [Run(rows, name) for name, rows in RUNS.items()]


def pooled() -> Any:
    return pool(RUNS, depth=3)


def reused() -> Any:
    return cranfield.reuse(QRELS, RUNS, "AP", depth=2)


def stopped() -> Any:
    made = pooled()
    return stopping([Judgment(item.topic, item.document, 1.0) for item in made], made.items)


def mixed() -> Any:
    return interleave({EVIL: [EVIL, "b"], "other": ["b", EVIL]}, 2, Random(1))


def folder(path: Path) -> Any:
    documents = [cranfield.Document("d", EVIL, EVIL)]
    topics = [cranfield.Topic("q", EVIL)]
    return write_collection(path / "shop", documents, topics, cranfield.Qrels({"q": {"d": 1}}), meta={"title": EVIL})


def ran(path: Path) -> Any:
    from cranfield.commands.retrieval import run

    return run(collection="allotment", system="sqlite", output=str(path / "<b>.run"), k=5, fields=["title"])


def costs(path: Path) -> Any:
    ran(path)
    found = efficiency_of_files(evaluate("allotment", path / "<b>.run", "AP"), {"<b>": str(path / "<b>.run")})
    assert found is not None
    return found


EVIL_NAME = EVIL.replace("/", "")


def work(path: Path) -> str:
    """A log in which two people contradict each other."""
    where = str(path / "work.db")
    (path / "gold.txt").write_text("q 0 other 1\n")
    log = open_log(where)
    log.add([Event(topic="q", document=EVIL, grade=grade, assessor=f"{EVIL}{grade}") for grade in (0, 1)])
    log.close()
    return where


def noted(path: Path) -> str:
    """The same with a note that names a person."""
    where = work(path)
    log = open_log(where)
    log.add([Event(topic="q", document="d", grade=1, assessor=f"{EVIL}1", note=f"as {EVIL}0 says")])
    log.close()
    return where


def frozen(path: Path) -> str:
    """The same with a version."""
    where = work(path)
    judging.freeze(where, EVIL_NAME, "max")
    return where


def predicted(path: Path) -> Any:
    """Scores by two dangerous people, one of them a model, on what a round drew."""
    where = str(path / "sampled.db")
    log = open_log(where)
    for who, source, grade in ((EVIL, "human", 1), (f"{EVIL}2", "model", 2)):
        rows = [(topic, document) for topic, grades in QRELS.items() for document in grades]
        given = [QRELS[topic][document] + grade * (i % 3 == 0) for i, (topic, document) in enumerate(rows)]
        log.add(
            [
                Event(topic=topic, document=document, grade=each, assessor=who, source=source)
                for (topic, document), each in zip(rows, given, strict=True)
            ]
        )
    frame = {topic: list(grades) for topic, grades in QRELS.items()}
    drawn = [RoundItem(topic, document, 1, 0.5) for topic in TOPICS[:4] for document in frame[topic]]
    open_round(log, Round(name=EVIL, sample="4 of 8", unit="topics", frame=frame), drawn)
    sample = label_sample(log)
    log.close()
    return scores_from(sample, opened(), ["AP"])


def model_run() -> ModelRun:
    """A call of judge ask with dangerous names."""
    counts = Counts(questions=3, labels=2, unusable={EVIL: 1})
    names = dict.fromkeys(("series", "time", "model", "assessor", "prompt", "kind", "hash", "endpoint", "pool"), EVIL)
    return ModelRun(**names, purposes={EVIL: 3}, pairs=3, budget=Budget(), returned=[(EVIL, EVIL, 3)], counts=counts)


def calibrated(path: Path) -> Any:
    """The same two beside each other, with runs of dangerous names."""
    predicted(path)
    name, people, model = (
        f"{EVIL}one",
        scores(),
        evaluate({topic: {"d": 2, "x": 1} for topic in TOPICS}, RUNS, "AP nDCG@3"),
    )
    gains = advantages(people, model, [name], 0.95)
    found = calibrate(str(path / "sampled.db"))
    return replace(found, boards=boards(people, model), own=[name], advantages=gains)


def overview(path: Path) -> Any:
    """A workspace whose round and version have dangerous names."""
    bench = open_bench(path, frozen(path))
    try:
        open_round(bench.log, Round(name=EVIL), [RoundItem("q", EVIL)])
        return overview_of(bench)
    finally:
        bench.close()


def users(path: Path) -> str:
    row = {"event_id": "e", "time": "2025-03-01", "kind": EVIL, "unit": EVIL}
    (path / "events.jsonl").write_text(json.dumps(row) + "\n")
    return str(path / "events.jsonl")


def searched() -> World:
    return World.of(QRELS, RUNS, 3)


def simulating(path: Path) -> Any:
    with EventLog(path / "simulated", create=True) as log:
        world, people = searched(), Audience(units=5)
        return simulate_online(world, log, plan_for(None, world, people), "perfect", people)


def studied(path: Path) -> Any:
    return schedule(Study(EVIL, (EVIL, "other"), (StudyTask(EVIL, EVIL), StudyTask("b", "c")), 4))


def erased(path: Path) -> Any:
    experiments.ingest(str(path / "log"), [users(path)])
    return experiments.erase(str(path / "log"), [EVIL])


def experiment(path: Path) -> Any:
    trail = Trail()
    for i in range(24):
        unit = f"u{i}"
        trail.expose(unit, EVIL if i % 2 else "control").search(unit, f"s{i}", clicks=[(1, 2, 3)] if i % 3 else [])
    plan = plan_file(path, '[[primary]]\nmetric = "click-through"\n', PLAN.replace("new =", f'"{EVIL}" ='))
    return experiments.analyze(trail.write(path / "log"), plan, history=True)


def clicked() -> ClickLog:
    """Pages of a dangerous query with dangerous documents."""
    sessions = [(EVIL, [f"{EVIL}a", "b", "c"], [i % 2, i % 3 == 0, i % 5 == 0]) for i in range(40)]
    return ClickLog(ResultPages.of(sessions), [EVIL])


def click_model_fit() -> Any:
    pages = clicked().pages
    views, clicks = (np.bincount(pages.pair, weights) for weights in (None, pages.clicked))
    return ClickModelFit(SDBN().fit(pages), len(pages), views, clicks, remarks=(EVIL,))


def click_events(path: Path) -> str:
    """A log of two queries with dangerous texts: one unit for each search, documents in random order, with propensities."""
    coin, rows = Random(4), []
    for i in range(400):
        query, order = f"{EVIL}{i % 2}", [f"{EVIL}a", "b", "c"]
        coin.shuffle(order)
        same = {"unit": f"{EVIL}{i}", "search": f"s{i}", "time": "2025-03-01", "query": query}
        page = {"event_id": f"p{i}", "kind": "impression", "shown": order, "attributes": {"propensity": str(1 / 6)}}
        rows.append({**page, **same})
        for rank, document in enumerate(order):
            if coin.random() < (0.8 if document == "b" else 0.3) / (1 + rank):
                click = {"event_id": f"c{i}-{rank}", "kind": "click", "document": document, "position": rank + 1}
                rows.append({**click, **same})
    (path / "clicks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    experiments.ingest(str(path / "clicks"), [str(path / "clicks.jsonl")])
    return str(path / "clicks")


def click_judgments(path: Path) -> Any:
    return clicks.click_qrels(click_events(path))


def click_agreement(path: Path) -> Any:
    queries = [f"{EVIL}0", f"{EVIL}1"]
    people = as_qrels({query: {f"{EVIL}a": 2, "b": 1, "c": 0} for query in queries})
    lists = {EVIL: {f"{EVIL}a": 3.0, "b": 2.0, "c": 1.0}, "two": {"b": 3.0, "c": 2.0, f"{EVIL}a": 1.0}}
    runs = as_runs({name: dict.fromkeys(queries, scores) for name, scores in lists.items()})
    return agreement_with_people(click_judgments(path), people, runs, ["nDCG@10"], seed=0)


def topic_coverage(path: Path) -> Any:
    (path / "queries.csv").write_text("query,frequency\n" + "".join(f"{EVIL}{i},{10 + i}\n" for i in range(20)))
    sample = topics.sample(str(path / "queries.csv"), n=4, dest=str(path / "drawn.tsv"))
    return sample, topics.coverage(str(path / "drawn.tsv"), str(path / "queries.csv"))


def stated(path: Path) -> Any:
    """Guidelines and grades whose texts are dangerous, stored by a dangerous person."""
    version = Guidelines(EVIL, (GradeMeaning(0.0, EVIL, EVIL), GradeMeaning(1.0, "yes", "")))
    return GuidelinesReport(EVIL, version, [GuidelinesEntry(1, version.hash, EVIL, "", version)])


def recalled() -> Any:
    """A round that found something, with a model of one topic."""
    made = stopped()
    model = TopicModel(TOPICS[0], 3, 2, "", 1.5, (RelevantWord(EVIL, 0.5),), (EVIL,), "")
    return RoundRecall(EVIL, "cal", "", made, [model], [(1, 1)])


MADE: dict[str, Callable[[Path], Any]] = {
    "Scores": lambda path: scores(),
    "Comparison": lambda path: cranfield.compare(QRELS, RUNS, "AP"),
    "Leaderboard": lambda path: leaderboard(QRELS, RUNS, "AP R@2"),
    "Efficiency": costs,
    "Stability": lambda path: stability(scores()),
    "Gate": lambda path: cranfield.gate(QRELS, ONE, RUNS["two"], "AP"),
    "PowerPlans": lambda path: design(difference=0.05, sd=0.2),
    "ExperimentDesign": lambda path: experiments.design(proportion=0.3, effect=0.02),
    "Explanation": lambda path: explain(QRELS, ONE, "nDCG@3", TOPICS[0]),
    "UnjudgedLists": lambda path: UnjudgedLists(
        TOPICS[0], (EVIL, "two"), ([RankedEntry(1, EVIL, "", None, None, 2)], [])
    ),
    "TopicList": lambda path: TopicList([TopicRow(TOPICS[0], EVIL, 3, 0.1, 0.2, 0.1)], (EVIL, "two"), str),
    "TopicComparison": lambda path: cranfield.side_by_side(QRELS, ONE, RUNS["two"], "nDCG@3", TOPICS[0]),
    "PeerScores": lambda path: explain_as(QRELS, ONE, "nDCG@3", TOPICS[0]),
    "Curves": lambda path: cranfield.curves(QRELS, RUNS, "pr"),
    "Bounds": lambda path: cranfield.bounds(QRELS, RUNS, "AP"),
    "Reproduction": lambda path: cranfield.reproduce(QRELS, RUNS["two"], ONE),
    "Correlations": lambda path: cranfield.correlate(scores()),
    "Slices": lambda path: cranfield.slices(scores(), dict.fromkeys(TOPICS[:4], EVIL)),
    "Findings": lambda path: Findings([Finding(EVIL, 1, "note", "crlf", EVIL, 1, (EVIL,))]),
    "Catalogue": lambda path: CATALOGUE,
    "CollectionStats": lambda path: stats(read_collection("allotment")),
    "CollectionDiff": lambda path: diff(folder(path), read_collection("allotment")),
    "CollectionSummary": lambda path: show(folder(path)),
    "Pool": lambda path: pooled(),
    "PoolStatistics": lambda path: statistics(rankings(opened(), 3)),
    "Simulation": lambda path: cranfield.simulate(QRELS, opened(), ["depth"], "AP", depth=3),
    "EstimatorErrors": lambda path: estimates(QRELS, opened(), rankings(opened(), 3), [0.5], draws=2),
    "Readings": lambda path: thin(QRELS, opened(), "AP"),
    "PoolReuse": lambda path: reused(),
    "OutsideRuns": lambda path: OutsideRuns(thin(QRELS, opened(), "AP"), reused(), 1),
    "Stoppings": lambda path: stopped(),
    "Produced": ran,
    "Interleaved": lambda path: mixed(),
    "Preference": lambda path: credit(mixed(), [1]),
    "MemberListing": lambda path: strategies(),
    "Status": lambda path: judging.begin_round(work(path), name="1", gold=str(path / "gold.txt")),
    "RoundPlan": lambda path: RoundPlan.of([RoundItem(EVIL, EVIL, 2)], EVIL, 60.0, EVIL),
    "TopicScores": lambda path: TopicScores(report_of(cranfield.compare(QRELS, RUNS, "AP")), str),
    "Blame": lambda path: judging.blame(work(path), "q", EVIL),
    "AggregationResult": lambda path: judging.aggregate(work(path), "majority"),
    "AdjudicationList": lambda path: AdjudicationList(EVIL, left=3, topics={EVIL: 3}),
    "AskResult": lambda path: AskResult(
        log=EVIL,
        series="1",
        assessor=EVIL,
        prompt=EVIL,
        pairs=2,
        problems={EVIL: 1},
        failures=[AskFailure(*[EVIL] * 5)],
    ),
    "ModelRuns": lambda path: ModelRuns(
        EVIL, [model_run()], [ModelJudge(EVIL, EVIL, 1, 2, model_run().counts)], {EVIL: Spent(3.0, 0.5)}
    ),
    "ModelFailures": lambda path: ModelFailures(
        EVIL, [ModelFailure(*[EVIL] * 9, True, EVIL, 3, EVIL, EVIL)], 1, 0, {EVIL: 1}
    ),
    "ProbeResults": lambda path: ProbeResults(
        EVIL, [ProbeResult(PROBES["again"], (ProbeOutcome("again", *[EVIL] * 3, 1.0, 2.0, *[EVIL] * 3),), 3.0)]
    ),
    "PreferenceWork": lambda path: PreferenceWork(
        EVIL, "lists", comparisons=[ComparisonChoice(EVIL, "lists", "open", 1, 2)]
    ),
    "ComparisonResult": lambda path: ComparisonResult(
        EVIL, "lists", f"{EVIL}one", "two", "open", 2, 1, [ByTopic(EVIL, 2, 0, 1)], {EVIL: 3}, 1, 1
    ),
    "Agreements": lambda path: judging.agree([work(path)], resamples=0),
    "PredictedScores": predicted,
    "Calibration": calibrated,
    "Versions": lambda path: judging.versions(frozen(path)),
    "VersionChanges": lambda path: judging.diff(frozen(path), EVIL_NAME, policy="min"),
    "Analysis": experiment,
    "ClickModelFit": lambda path: click_model_fit(),
    "ClickModelComparison": lambda path: compare_models([DocumentCTR(), SDBN()], hold_out(clicked(), 0.5), [EVIL]),
    "ClickJudgments": click_judgments,
    "ClickAgreement": click_agreement,
    "ClickPreferences": lambda path: clicks.click_preferences(click_events(path)),
    "ClickSummary": lambda path: clicks.click_summary(click_events(path), Inputs()),
    "PositionBias": lambda path: clicks.estimate_position_bias(click_events(path)),
    "Counterfactual": lambda path: experiments.counterfactual(Inputs(runs=["uniform"]), click_events(path)),
    "TopicSample": lambda path: topic_coverage(path)[0],
    "TopicCoverage": lambda path: topic_coverage(path)[1],
    "Assignments": lambda path: experiments.assign([str(EXAMPLES / "online" / "plans")], [EVIL]),
    "IngestResult": lambda path: experiments.ingest(str(path / "log"), [users(path)]),
    "Erasure": lambda path: erased(path),
    "SimulatedLog": simulating,
    "Trials": lambda path: false_alarms(searched(), audience=Audience(units=20), replicates=2),
    "SampleSizes": lambda path: needs(searched(), searches=20),
    "Bridge": lambda path: bridge(scores(), simulate_signals(searched(), searches=2)),
    "StudySchedule": studied,
    "StudyResults": lambda path: experiments.analyze_study(
        str(EXAMPLES / "online/study.toml"), [str(EXAMPLES / "online/answers.csv")]
    ),
    "JudgingWork": lambda path: JudgingWork(
        why=EVIL, rounds=[RoundChoice(EVIL, "open", 1, 2, 1)], grades=[GradeOption(1, "1", EVIL, EVIL)]
    ),
    "Overview": lambda path: overview(path),
    "GuidelinesReport": stated,
    "Pseudonymisation": lambda path: judging.pseudonymise(noted(path), f"{EVIL}0"),
    "AdaptivePlan": lambda path: AdaptivePlan(
        RoundPlan.of([RoundItem(EVIL, EVIL, 1)], EVIL, 60.0, EVIL), [StartDocument(EVIL, EVIL)]
    ),
    "RoundRecall": lambda path: recalled(),
    "CheckedVersion": lambda path: CheckedVersion(EVIL, VersionSummary(1, {"1": 2}, [EVIL])),
    "SearchIndex": lambda path: SearchIndex(EVIL),
    "SearchWork": lambda path: SearchWork(
        topic=EVIL, query=EVIL, results=[SearchResult(EVIL, 1, EVIL, EVIL, [], 3, None)]
    ),
    "RenderedReport": lambda path: RenderedReport("html", EVIL),
    "Both": lambda path: Both(leaderboard(QRELS, RUNS, "AP"), scores(), "scores", EVIL),
}
BASES = {"Rows", "ScriptReply"}
DRAWN = {
    "Curves",
    "Leaderboard",
    "PowerPlans",
    "CollectionStats",
    "Simulation",
    "Comparison",
    "Efficiency",
    "Both",
    "Analysis",
    "ClickSummary",
}


def test_every_result_is_made_here():
    for module in walk_packages(cranfield.__path__, "cranfield."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    ours = {cls.__name__ for cls in results() if cls.__module__.startswith("cranfield.")}
    assert ours - BASES == {*MADE}


@pytest.mark.parametrize("name", MADE)
def test_a_notebook_shows_every_result_as_sound_html_with_names_escaped(name, tmp_path):
    answer = MADE[name](tmp_path)
    assert type(answer).__name__ == name
    shown = answer._repr_html_()
    Tree.fromstring(f"<div>{shown}</div>")  # which stops at anything unbalanced
    assert "<script" not in shown
    assert "<b>" not in shown
    assert any(f"<{tag}" in shown for tag in ("table", "dl", "ul", "p"))
    assert ("<figure" in shown) == (name in DRAWN)


@pytest.mark.parametrize("kind", ["pr", "pr11", "roc", "recall", "gain"])
def test_curves_are_drawn_without_an_extra_and_names_escaped(kind, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    shown = cranfield.curves(QRELS, RUNS, kind)._repr_html_()
    tree = Tree.fromstring(f"<div>{shown}</div>")
    [chart] = (
        tree.iter("svg") if shown.count("<svg") == 1 else [s for s in tree.iter("svg") if s.get("class") == "chart"]
    )
    assert len([path for path in chart.iter("path") if "mark" in (path.get("class") or "")]) >= len(RUNS)
    assert "&lt;script&gt;" in shown
    assert EVIL in "".join(tree.itertext())


def test_two_charts_on_a_page_have_ids_of_their_own():
    shown = [cranfield.curves(QRELS, RUNS, kind)._repr_html_() for kind in ("recall", "gain")]
    names = [{part.split('"')[0] for part in each.split(' id="')[1:]} for each in shown]
    assert not names[0] & names[1]


@pytest.mark.parametrize("part", ["discrimination", "halves", "generalisability"])
def test_one_part_of_a_stability_is_drawn(part):
    shown = stability(scores(), parts=[part])._repr_html_()
    assert "<figure" in shown
    Tree.fromstring(f"<div>{shown}</div>")


@dataclass
class Long(Answer):
    rows: int

    def content(self, how: Layout) -> list[Part]:
        return [Table(["n"], [[str(i)] for i in range(self.rows)], keys=[{"n": "1"}] * self.rows), Lines(["said"])]

    def plain(self, how: Layout) -> Any:
        return self.rows


def test_a_long_table_is_cut_in_a_notebook_and_nowhere_else():
    shown = Long(1000)._repr_html_()
    assert shown.count("<tr") == 1 + FIRST_ROWS
    assert "… 980 more rows: to_html() and to_csv() have all" in shown
    assert Long(1000).to_html().count("<tr") == 1001
    assert Long(MOST_ROWS)._repr_html_() == Long(MOST_ROWS).to_html()


def test_a_check_of_files_is_shown_too():
    assert "<" in check([EXAMPLES / "bm25.run"])._repr_html_()
    assert command("check", EXAMPLES / "bm25.run").code == 0


def test_a_run_and_qrels_show_the_first_topics_names_escaped_and_how_many_more() -> None:
    topics = {f"q<{i}>": {"a&b": 0.5, "c": 2.0, "d": 1.0, "e": 0.25} for i in range(7)}
    for data, caption, row in (
        (Run(topics, "<b>"), "Run <b>: 7 topics, 28 documents", ["q<0>", "4", "c (2), d (1), a&b (0.5)"]),
        (Qrels(topics, "<b>"), "Qrels <b>: 7 topics, 28 judgments", ["q<0>", "4", "2: 1, 1: 1, 0.5: 1, 0.25: 1"]),
    ):
        page = Tree.fromstring(f"<div>{data._repr_html_()}</div>")
        assert page.findtext(".//caption") == caption
        rows = [["".join(cell.itertext()) for cell in line] for line in page.findall(".//tbody/tr")]
        assert (rows[0], len(rows)) == (row, 5)
        assert page.findtext("p") == "… 2 more"
    assert "1 topic, 1 document<" in Run({"q": {"d": 1.0}})._repr_html_()
    assert "0 topics, 0 judgments<" in Qrels({})._repr_html_()

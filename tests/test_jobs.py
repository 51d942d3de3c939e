"""Questions to a workspace: one job each, kept on disk, old results at once, and whoever is killed is survived."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cranfield
from cranfield.base.errors import ConventionError, CranfieldError, DataError
from cranfield.commands.judging import freeze
from cranfield.formats.collection_folder import BUNDLED
from cranfield.inputs.disk_caches import CachedResult, RenderedResult, ResultCache
from cranfield.inputs.workspace import Bench, open_bench
from cranfield.judging import Event
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from cranfield.store.jobs import find_job
from cranfield.workbench import jobs as room
from cranfield.workbench.jobs import Failed, Jobs, Ready, Running, lives, owner
from cranfield.workbench.question import QUESTIONS
from databases import location_of
from shell import EXAMPLES
from workbench import SharedWorkers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ALLOTMENT = os.path.join(BUNDLED, "allotment")
QUICK = {"runs": ["bm25", "phrase"], "measures": "P@5"}


def ready(jobs: Jobs, verb: str, **asked: Any) -> Any:
    """What it comes to in the end; each request waits for it rather than the next."""
    state = jobs.ask(verb, **asked)
    while isinstance(state, Running):
        time.sleep(0.02)
        jobs.patience = max(jobs.patience, 1.0)
        state = jobs.ask(verb, **asked)
    return state


def until(true: Callable[[], Any]) -> Any:
    while not (found := true()):
        time.sleep(0.01)
    return found


def workspace(folder: Path) -> Path:
    shutil.copytree(ALLOTMENT, folder)
    for name in os.listdir(folder / "runs"):
        os.utime(folder / "runs" / name, ns=(10**18, 10**18))
    return folder


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    opened = open_bench(workspace(tmp_path / "work"))
    yield opened
    opened.close()


@pytest.fixture
def jobs(bench: Bench) -> Iterator[Jobs]:
    made = Jobs(bench)
    made.workers = SharedWorkers()
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """A workspace with labels of two people, and a frozen version, that tests only read."""
    bench = open_bench(workspace(tmp_path_factory.mktemp("jobs") / "work"))
    shutil.copytree(EXAMPLES / "online" / "clicks-log", Path(bench.folder) / "events")
    qrels = cranfield.read_collection(bench.collection).qrels.to_dict()
    labels = [
        Event(topic=topic, document=document, grade=grade, assessor=who, seconds=20.0)
        for topic, grades in list(qrels.items())[:8]
        for n, (document, grade) in enumerate(grades.items())
        for who in ("ann", "bob")[: 1 + (n % 3 == 0)]
    ]
    bench.log.add(labels)
    freeze(bench.location, "spring", "majority")
    topic = labels[0].topic
    [first, *_] = cranfield.read_run(bench.run("bm25").path)[topic]
    bench.log.add([Event(topic=topic, document=first[0], grade=float(not qrels[topic].get(first[0])), assessor="cy")])
    _ask_a_model(bench, labels)
    open_round(bench.log, Round(name="first"), [RoundItem(each.topic, each.document) for each in labels[:20:3]])
    made = Jobs(bench)
    made.workers = SharedWorkers()
    yield made
    made.close()
    bench.close()


def _ask_a_model(bench: Bench, labels: list[Event]) -> None:
    """Labels of a model beside ann's, and a round that drew a half of these at random."""
    mine = [each for each in labels if each.assessor == "ann"]
    bench.log.add(
        [
            Event(
                topic=one.topic,
                document=one.document,
                grade=(one.grade or 0) + (n % 4 == 0),
                assessor="m",
                source="model",
            )
            for n, one in enumerate(mine)
        ]
    )
    frame: dict[str, list[str]] = {}
    for one in mine:
        frame.setdefault(one.topic, []).append(one.document)
    drawn = [RoundItem(one.topic, one.document, 1, 0.5) for one in mine[::2]]
    open_round(bench.log, Round(name="drawn", sample="half of them", frame=frame), drawn)


ASKED: dict[str, dict[str, Any]] = {
    "leaderboard": {"measures": "nDCG@10 P@5"},
    "compare": {"one": "bm25", "other": "fusion", "measures": "nDCG@10"},
    "agree": {},
    "calibrate": {"model": "m", "measures": "P@5"},
    "estimate": {"model": "m", "measures": "P@5"},
    "recall": {"round": "first"},
    "reuse": {"new": "phrase", "depth": "10", "measures": "P@5"},
    "diff": {"a": "spring", "measures": "P@5"},
    "check": {},
    "clicks": {},
    "report": {"ending": "md", "measures": "P@5"},
    "search-index": {},
    "pool-plan": {"depth": "5", "overlap": "2"},
    "curves": {"kind": "pr11"},
    "version": {"version": "spring"},
    "lists": {"one": "bm25", "other": "fusion", "topic": "101"},
    "sides": {"one": "bm25", "other": "fusion", "measures": "nDCG@10"},
}


@pytest.mark.parametrize("verb", QUESTIONS)
def test_every_verb_answers_with_json_a_table_and_html_and_then_from_the_disk(shared_jobs, verb, monkeypatch):
    if verb == "search-index":  # its answer depends on the folder that it changes; pages ask only where no index is
        ready(shared_jobs, verb)
    first = ready(shared_jobs, verb, **ASKED[verb])
    assert isinstance(first, Ready), first
    assert json.loads(first.answer.json)
    if QUESTIONS[verb].csv:
        assert first.answer.csv is not None
        assert "\n" in first.answer.csv
        assert "<table" in first.answer.html
    assert "<style" not in first.answer.html
    assert "<script" not in first.answer.html
    assert ' style="' not in first.answer.html
    monkeypatch.setattr(shared_jobs.workers, "put", lambda task: pytest.fail("worked out again"))
    again = shared_jobs.ask(verb, **ASKED[verb])
    assert again == first
    moving = QUESTIONS[verb](**ASKED[verb]).depends_on_labels(shared_jobs.bench)
    assert again.place == (shared_jobs.bench.log.place() if moving else 0)


@pytest.mark.parametrize("verb", ["leaderboard", "compare", "curves"])
def test_charts_are_drawn_beside_their_tables(shared_jobs, verb):
    html = ready(shared_jobs, verb, **ASKED[verb]).answer.html
    assert html.count('<svg class="chart"') == (3 if verb == "compare" else 1)


def test_a_leaderboard_against_the_library(shared_jobs):
    found = ready(shared_jobs, "leaderboard", judgments="collection", measures="nDCG@10 AP")
    runs = {run.name: run.path for run in shared_jobs.bench.runs()}
    qrels = os.path.join(ALLOTMENT, "qrels.txt")
    expected = cranfield.leaderboard(qrels, runs, "nDCG@10 AP")
    assert json.loads(found.answer.json)["rows"] == expected.to_dict()["rows"]
    assert (found.place, found.newer) == (0, 0)


def test_a_look_gives_what_is_there_and_works_nothing_out(shared_jobs, monkeypatch):
    asked = {"one": "bm25", "other": "phrase", "measures": "P@5"}
    monkeypatch.setattr(shared_jobs.workers, "put", lambda task: pytest.fail("worked out"))
    assert shared_jobs.look("compare", **asked) is None
    monkeypatch.undo()
    found = ready(shared_jobs, "compare", **asked)
    assert shared_jobs.look("compare", **asked) == found
    monkeypatch.setattr(shared_jobs.bench.hashes, "unknown", lambda paths: room.HEAVY)  # nobody waits for hashes
    assert shared_jobs.look("compare", **asked) is None


def test_a_version_has_its_own_result_and_no_label_waits_for_it(shared_jobs):
    now = ready(shared_jobs, "leaderboard", **QUICK)
    then = ready(shared_jobs, "leaderboard", judgments="log@spring", **QUICK)
    assert (then.place, then.newer) == (shared_jobs.bench.versions()[0].place, 0)
    assert now.answer.json != then.answer.json


def test_a_comparison_can_be_of_some_topics(shared_jobs):
    table = shared_jobs.bench.topics()
    column = table.column("length")
    value = column[next(iter(table.queries))]
    found = ready(
        shared_jobs, "compare", one="bm25", other="phrase", column="length", value=value, judgments="collection"
    )
    topics = {row["topic"] for row in json.loads(found.answer.json)["topics"]}
    assert topics == {topic for topic, words in column.items() if words == value}


def test_a_plan_counts_labels_and_takes_the_pace_of_before(shared_jobs):
    plan = json.loads(ready(shared_jobs, "pool-plan", **ASKED["pool-plan"]).answer.json)
    assert plan["labels"] == 2 * plan["documents"]
    assert plan["seconds"] == 20.0
    assert plan["hours"] == pytest.approx(plan["labels"] * 20 / 3600)
    assert plan["judged"] > 0


@pytest.mark.parametrize(
    ("verb", "asked", "said"),
    [
        ("nothing", {}, "no workbench question .nothing.; there are clicks, check"),
        ("leaderboard", {"measures": "nDCG@x"}, "nDCG"),
        ("leaderboard", {"runs": "../qrels.txt"}, "there is no run"),
        ("leaderboard", {"k": "many"}, "k must be"),
        ("leaderboard", {"judgments": "/etc/passwd"}, "judgments must be"),
        ("leaderboard", {"judgments": "log@none"}, "there is no version"),
        ("leaderboard", {"policy": "loudest"}, "no policy .loudest.; there are latest"),
        ("leaderboard", {"colour": "red"}, "no parameter"),
        ("compare", {"one": "bm25"}, "needs other"),
        ("compare", {"one": "bm25", "other": "bm25"}, "two different runs"),
        ("compare", {"one": "bm25", "other": "fusion", "column": "none", "value": ""}, "no column"),
        ("compare", {"one": "bm25", "other": "fusion", "column": "length", "value": "many"}, "no topic has"),
        ("diff", {"a": "none"}, "there is no version"),
        ("pool-plan", {"strategy": "none"}, "no pooling strategy"),
        ("curves", {"kind": "none"}, "kind must be"),
        ("reuse", {"runs": "bm25", "new": "bm25"}, "contributed"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_before_anything_is_worked_out(shared_jobs, verb, asked, said):
    with pytest.raises(CranfieldError, match=said):
        shared_jobs.ask(verb, **asked)


@pytest.mark.parametrize("policy", ["Majority", "dawid_skene(smoothing=2)", "adjudicated"])
def test_a_policy_that_a_command_accepts_is_accepted_here(shared_jobs, policy):
    assert isinstance(ready(shared_jobs, "leaderboard", **QUICK, judgments="log", policy=policy), Ready)


def test_without_labels_the_judgments_are_the_collections_and_without_both_it_is_said(jobs, bench):
    assert isinstance(ready(jobs, "leaderboard", **QUICK), Ready)
    os.unlink(bench.qrels)
    with pytest.raises(DataError, match="nothing is judged yet"):
        jobs.ask("leaderboard", **QUICK)
    with pytest.raises(DataError, match="no judgments of its own"):
        jobs.ask("leaderboard", judgments="collection", **QUICK)


def test_a_folder_without_runs_says_what_to_do(tmp_path):
    bench = open_bench(tmp_path)
    jobs = Jobs(bench)
    with pytest.raises(ConventionError, match="put run files into runs/"):
        jobs.ask("leaderboard")
    jobs.close()
    bench.close()


def test_an_old_result_is_given_at_once_with_the_labels_that_wait(jobs, bench, monkeypatch):
    label = {"topic": "101", "assessor": "ann"}
    bench.import_judgments()
    start = bench.log.place()
    bench.log.add([Event(document="d002", grade=2, **label)])
    first = ready(jobs, "leaderboard", **QUICK)
    assert (first.place, first.newer) == (start + 1, 0)
    bench.log.add([Event(document=name, grade=1, **label) for name in ("d003", "d004")])
    old = jobs.ask("leaderboard", **QUICK)
    assert (old.place, old.newer, old.now, old.again) == (start + 1, 2, start + 3, None)
    assert old.answer == first.answer
    new = ready(jobs, "leaderboard", refresh=old.now, **QUICK)
    assert (new.place, new.newer) == (start + 3, 0)
    assert jobs.ask("leaderboard", refresh=10**9, **QUICK) == new  # nothing newer can be had
    assert jobs.ask("leaderboard", refresh=True, **QUICK) == new
    bench.log.add([Event(document="d005", grade=1, **label)])
    assert ready(jobs, "leaderboard", refresh=True, **QUICK).place == start + 4
    bench.log.add([Event(document="d006", grade=1, **label)])
    monkeypatch.setattr(jobs, "clock", lambda: time.time() + room.OLD + 1)
    beside = jobs.ask("leaderboard", **QUICK)
    assert (beside.place, beside.newer) == (start + 4, 1)
    assert isinstance(beside.again, Running)
    assert until(lambda: jobs.ask("leaderboard", **QUICK).place == start + 5)


def test_a_changed_run_is_another_question(jobs, bench):
    first = ready(jobs, "leaderboard", **QUICK)
    with open(bench.run("bm25").path, "ab") as file:
        file.write(b"101 Q0 d999 99 0.0001 x\n")
    second = ready(jobs, "leaderboard", **QUICK)
    assert second.created > first.created


def test_the_same_question_at_the_same_time_is_one_job(jobs, monkeypatch):
    put, tasks = jobs.workers.put, []
    monkeypatch.setattr(jobs.workers, "put", lambda task: (tasks.append(task), put(task)))
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(ready(jobs, "leaderboard", **QUICK))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tasks) == 1
    assert len({answer.answer.json for answer in answers}) == 1


def test_two_at_a_time_and_the_rest_waits(bench):
    jobs = Jobs(bench, patience=0)
    for seed in range(4):
        assert isinstance(jobs.ask("leaderboard", seed=seed, **QUICK), Running)
    last = jobs.ask("leaderboard", seed=3, **QUICK)
    assert isinstance(last, Running)
    assert last.activity == "waiting for its turn"
    assert len(jobs.workers.pids()) <= 2
    for seed in range(4):
        assert isinstance(ready(jobs, "leaderboard", seed=seed, **QUICK), Ready)
    assert len(jobs.workers.pids()) == 2
    jobs.close()
    assert jobs.workers.pids() == []


def test_a_worker_that_is_killed_takes_one_question_with_it_and_nothing_secret_is_in_its_arguments(bench):
    jobs = Jobs(bench, patience=0)
    assert isinstance(jobs.ask("leaderboard", **QUICK), Running)
    [pid] = until(jobs.workers.pids)
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        assert bench.location.encode() not in file.read()
    os.kill(pid, signal.SIGKILL)
    failed = ready(jobs, "leaderboard", **QUICK)
    assert isinstance(failed, Failed)
    assert "SIGKILL; there may be too little memory" in failed.why
    assert jobs.ask("leaderboard", **QUICK) == failed  # whoever else waits hears of it
    jobs.patience = 0
    assert isinstance(jobs.ask("leaderboard", refresh=True, **QUICK), Running)
    assert isinstance(ready(jobs, "leaderboard", **QUICK), Ready)
    jobs.close()


def test_what_the_library_refuses_is_said_in_its_words_and_tried_again_after_a_while(jobs, monkeypatch):
    failed = ready(jobs, "agree", runs=["bm25"])
    assert isinstance(failed, Failed)
    assert failed.why == "work.db: there are no labels"
    later = time.time() + room.RETRY_AFTER + 1
    monkeypatch.setattr(jobs, "clock", lambda: later)
    begun: list[Any] = []
    put = jobs.workers.put
    monkeypatch.setattr(jobs.workers, "put", lambda task: (begun.append(task), put(task)))
    jobs.ask("agree", runs=["bm25"])
    assert begun


def test_a_mistake_of_ours_is_traced_in_the_log_and_not_in_the_answer(bench, monkeypatch, capfd):
    jobs = Jobs(bench)  # its own worker, which writes to where this test listens
    put = jobs.workers.put

    def broken(task: Any) -> None:
        put(task._replace(message={**task.message, "verb": "no such verb"}))

    monkeypatch.setattr(jobs.workers, "put", broken)
    failed = ready(jobs, "leaderboard", **QUICK)
    assert isinstance(failed, Failed)
    assert failed.why == f"an unexpected error occurred; the server's log describes it under job {failed.id}"
    said = capfd.readouterr().err
    assert f"job {failed.id}" in said
    assert "KeyError" in said
    jobs.close()


ASKING = """
import sys, time
from cranfield.inputs.workspace import open_bench
from cranfield.workbench.jobs import Jobs
jobs = Jobs(open_bench(sys.argv[1], sys.argv[2]), patience=0)
print(jobs.ask("leaderboard", runs=["bm25", "phrase"], measures="P@5"), flush=True)
while not jobs.workers.pids():
    time.sleep(0.01)
print(jobs.workers.pids()[0], flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_server_killed_during_a_job_leaves_a_row_that_counts_for_nothing(kind, request, tmp_path):
    server = request.getfixturevalue("postgres") if kind == "postgresql" else None
    location = location_of(kind, tmp_path, server)
    bench = open_bench(workspace(tmp_path / "work"), location)
    with subprocess.Popen(
        [sys.executable, "-c", ASKING, bench.folder, location], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline().startswith("Running")
        worker = int(process.stdout.readline())
        os.kill(worker, signal.SIGSTOP)
        jobs = Jobs(bench, patience=0)
        elsewhere = jobs.ask("leaderboard", **QUICK)
        assert isinstance(elsewhere, Running)
        assert jobs.workers.pids() == []  # the other process is at it
        process.kill()
    os.kill(worker, signal.SIGCONT)
    assert isinstance(jobs.ask("leaderboard", **QUICK), Running)
    assert until(jobs.workers.pids)
    until(lambda: not os.path.exists(f"/proc/{worker}/stat") or "Z" in _state(worker))
    assert isinstance(ready(jobs, "leaderboard", **QUICK), Ready)
    assert until(lambda: find_job(jobs.bench.database, elsewhere.id).state == "done")
    jobs.close()
    bench.close()


def _state(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_a_process_is_known_by_more_than_its_number():
    node, boot, pid, start = owner().rsplit(" ", 3)
    assert lives(owner())
    assert not lives(f"{node} {boot} {pid} 1")
    assert not lives(f"{node} otherboot {pid} {start}")
    assert not lives(f"othernode {boot} {pid} {start}")
    assert not lives("")


def test_large_files_are_hashed_beside(jobs, bench, monkeypatch):
    monkeypatch.setattr(room, "HEAVY", 1)
    monkeypatch.setattr(jobs, "patience", 0)
    bench.import_judgments()
    go = threading.Event()
    of = bench.hashes.of
    monkeypatch.setattr(bench.hashes, "of", lambda path, progress=None: (go.wait(), of(path, progress))[1])
    state = jobs.ask("leaderboard", **QUICK)
    assert isinstance(state, Running)
    assert state.activity == "reading runs for the first time"
    go.set()
    assert isinstance(ready(jobs, "leaderboard", **QUICK), Ready)


# results

NAMES = [f"{n:064x}" for n in range(4)]


def kept(size: int = 10) -> CachedResult:
    return CachedResult("check", RenderedResult("{}", None, "x" * size, ["a note"]), 7, 1.5, 0.25)


def test_a_result_comes_back_as_it_was_kept(tmp_path):
    results = ResultCache(str(tmp_path / "results"))
    odd = CachedResult("check", RenderedResult('"\udc80"', "a,b\n", "<p>&amp;\u2028</p>", []), 0, 1.0, 2.0)
    results.write(NAMES[0], odd)
    assert results.read(NAMES[0]) == odd
    assert results.read(NAMES[1]) is None


@pytest.mark.parametrize(
    "change", [lambda b: b[:-1], lambda b: b.replace(b"note", b"nota"), lambda b: b"", lambda b: b"x"]
)
def test_a_damaged_result_is_absent(tmp_path, change):
    results = ResultCache(str(tmp_path))
    results.write(NAMES[0], kept())
    path = tmp_path / NAMES[0]
    path.write_bytes(change(path.read_bytes()))
    assert results.read(NAMES[0]) is None
    assert not path.exists()


def test_the_oldest_results_make_room(tmp_path):
    results = ResultCache(str(tmp_path), room=2500)
    for n, name in enumerate(NAMES):
        results.write(name, kept(1000))
        os.utime(tmp_path / name, (n + 1, n + 1))
    assert results.read(NAMES[0]) is None
    assert results.read(NAMES[3]) is not None


@pytest.mark.parametrize("name", ["", "../x", "a" * 63, "A" * 64, "a" * 64 + "\n"])
def test_nothing_but_a_hash_names_a_result(tmp_path, name):
    with pytest.raises(ValueError):
        ResultCache(str(tmp_path)).read(name)

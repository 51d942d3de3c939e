"""Judgments from clicks in a log of judgments: a source of its own, which counts only on request."""

from __future__ import annotations

import shutil
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from cranfield.base.errors import DataError
from cranfield.inputs.workspace import make_example, open_bench
from cranfield.judging import Event, current_events, log_queries, open_log
from cranfield.judging.current_labels import LabelKey
from cranfield.judging.guidelines_history import grade_uses
from cranfield.judging.policies import ONE_SET, PolicySettings, decide, goes_by_labels, policies
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "topic,document,grade,value,low,high,views,clicks,posterior,alpha,beta,thresholds\n"
WITH_CLICKS = "human,import,collection,clicks"
NUMBERS = [  # every command that reads a log or a workspace, except those that list its events
    "judge export {log} --to qrels",
    "judge export {log} --to qrels --policy majority",
    "judge export {log} --to csv",
    "judge export {log} --to jsonl",
    "judge export {log} --to prefs",
    "judge aggregate {log} --policy majority --format json",
    "judge aggregate {log} --policy dawid-skene --format json",
    "judge agree {log} --format json",
    "judge agree {log} --format json --sources human,import,model,collection",
    "judge status {log} --format json",
    "judge guidelines {log} --format json",
    "judge versions {log} --format json",
    "eval {log} bm25.run dense.run --per-topic --format json",
    "compare {log} bm25.run dense.run --format json",
    "compare {log} bm25.run dense.run --label-noise --format json",
    "leaderboard {log} bm25.run dense.run --format json",
    "pool make bm25.run dense.run --depth 5 --qrels {log}",
    "reuse {log} bm25.run dense.run --format json",
    "convert {log} - --kind qrels --to csv",
]


def clicks_file(folder: Path, rows: list[tuple[str, str, float]]) -> Path:
    path = folder / "clicks.csv"
    lines = [f"{topic},{document},{grade},{grade},0.1,0.9,40,7,beta,4,9,\n" for topic, document, grade in rows]
    path.write_text(HEAD + "".join(lines))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The examples with a log of two people's labels, and a file of clicks on judged and unjudged documents."""
    for name in ("qrels.txt", "bm25.run", "dense.run"):
        shutil.copy(EXAMPLES / name, tmp_path)
    again = [line.split() for line in (tmp_path / "qrels.txt").read_text().splitlines()]
    (tmp_path / "bob.txt").write_text(
        "".join(f"{t} 0 {d} {(int(g) + (n % 3 == 0)) % 2}\n" for n, (t, _, d, g) in enumerate(again))
    )
    assert cranfield("judge", "add", "work.db", "qrels.txt", "bob.txt", folder=tmp_path).code == 0
    unjudged = [("q1", "unseen1", 0.4), ("q1", "unseen2", 0.01), ("topic-of-clicks", "d1", 0.2)]
    clicks_file(tmp_path, [*((t, d, 0.37) for t, _, d, _ in again), *unjudged])
    return tmp_path


@pytest.mark.parametrize("command", NUMBERS, ids=lambda each: " ".join(each.split()[:3]))
def test_clicks_change_no_number_of_a_log(folder: Path, command: str) -> None:
    arguments = command.format(log="work.db").split()
    before = cranfield(*arguments, folder=folder)
    assert before.code in (0, 1), before.err
    assert cranfield("judge", "add", "work.db", "clicks.csv", folder=folder).code == 0
    after = cranfield(*arguments, folder=folder)
    assert (after.code, after.out) == (before.code, before.out)


def numbers_of_a_workspace(folder: Path) -> dict[str, Any]:
    """Everything that pages of the workbench count in a workspace's log."""
    with closing(open_bench(folder)) as bench, bench.log.reading() as transaction:
        return {
            "current": log_queries.count_current(bench.database),
            "labelled": log_queries.documents_labelled_by_people(bench.database),
            "people": log_queries.has_labels_of_people(bench.database),
            "topics": log_queries.topics_in_use(bench.database),
            "changes": log_queries.count_changes_since(bench.database, 0, of_models=True),
            "grades": grade_uses(transaction),
            "rated": transaction.rated_labels(),
            "decided": log_queries.decide_log(bench.log).grades,
        }


def test_clicks_change_no_number_of_a_workspace(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    make_example(folder)
    before = numbers_of_a_workspace(folder)
    with closing(open_log(folder / "work.db")) as log:
        subjects = ("101", "d002"), ("a topic of clicks alone", "d002")
        log.add([Event(topic=topic, document=document, grade=0.25, source="clicks") for topic, document in subjects])
        assert log.current_events()[LabelKey("clicks", "101", "d002", "", "relevance", "", False)].grade == 0.25
    assert numbers_of_a_workspace(folder) == before


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_every_format_with_columns_is_recognised_as_clicks(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"clicks.{ending}"
    assert cranfield("online", "qrels", "online/clicks-log", "--topics-file", "topics.tsv", "-o", path).code == 0
    assert cranfield("judge", "add", "work.db", path, folder=tmp_path).code == 0
    with closing(open_log(tmp_path / "work.db")) as log:
        assert {event.source for event in log.events()} == {"clicks"}


def test_a_file_of_click_judgments_is_added_as_clicks_without_being_told(folder: Path) -> None:
    added = cranfield("judge", "add", "work.db", "clicks.csv", folder=folder)
    assert "judgments from clicks" in added.err
    log = open_log(folder / "work.db")
    sources = {event.source for event in log.events() if event.document.startswith("unseen")}
    log.close()
    assert sources == {"clicks"}


def test_clicks_that_are_named_grade_only_what_nobody_judged(folder: Path) -> None:
    cranfield("judge", "add", "work.db", "clicks.csv", folder=folder)
    without = cranfield("judge", "export", "work.db", "--to", "qrels", folder=folder).out.splitlines()
    named = cranfield("judge", "export", "work.db", "--to", "qrels", "--sources", WITH_CLICKS, folder=folder)
    more = sorted({*named.out.splitlines()} - {*without})
    assert {*without} < {*named.out.splitlines()}
    assert more == ["q1 0 unseen1 0.4", "q1 0 unseen2 0.01", "topic-of-clicks 0 d1 0.2"]
    assert "3 documents have their grades from clicks" in named.err


def test_all_events_of_an_export_hold_the_clicks(folder: Path) -> None:
    cranfield("judge", "add", "work.db", "clicks.csv", folder=folder)
    everything = cranfield("judge", "export", "work.db", "--all-events", folder=folder).out
    assert '"source": "clicks"' in everything
    named = cranfield("judge", "export", "work.db", "--sources", "clicks", folder=folder).out
    assert set(named.splitlines()) == {line for line in everything.splitlines() if '"source": "clicks"' in line}


def test_clicks_agree_with_people_only_if_they_are_named(folder: Path) -> None:
    cranfield("judge", "add", "work.db", "clicks.csv", "--source", "clicks", folder=folder)
    named = cranfield("judge", "agree", "work.db", "--sources", "import,clicks", "--format", "json", folder=folder)
    assert named.code == 0, named.err
    assert named.out != cranfield("judge", "agree", "work.db", "--format", "json", folder=folder).out


@pytest.mark.parametrize("policy", [*filter(goes_by_labels, policies())])
def test_a_policy_decides_as_without_the_clicks(policy: str) -> None:
    rows = [("d1", 0, "ann"), ("d1", 1, "bob"), ("d2", 1, "ann"), ("d2", 1, "bob"), ("d3", 0, "ann"), ("d3", 0, "bob")]
    people = [Event(topic="q", document=d, grade=g, assessor=who, time="2026-01-01") for d, g, who in rows]
    clicks = [Event(topic="q", document=d, grade=0.3, source="clicks", time="2027-01-01") for d in ("d1", "d2", "d9")]
    gold = {("q", "d2"): 1.0}
    expected = decide(current_events(people), policy, None, gold).grades
    assert decide(current_events([*people, *clicks]), policy, None, gold).grades == expected
    named = decide(current_events([*people, *clicks]), policy, PolicySettings(sources=(*ONE_SET, "clicks")), gold)
    assert named.grades["q"] == {**expected["q"], "d9": 0.3}
    assert named.of_clicks == 1


def test_the_collection_is_stronger_than_clicks() -> None:
    events = [
        Event(topic="q", document="d", grade=2, source="collection", time="2026-01-01"),
        Event(topic="q", document="d", grade=0.1, source="clicks", time="2027-01-01"),
    ]
    named = decide(current_events(events), settings=PolicySettings(sources=(*ONE_SET, "clicks")))
    assert named.grades == {"q": {"d": 2.0}}


def test_the_last_clicks_count_and_a_withdrawal_brings_back_the_ones_before(tmp_path: Path) -> None:
    how = PolicySettings(sources=("clicks",))
    for name in ("work.db", "labels.jsonl"):
        log = open_log(tmp_path / name)
        first = Event(topic="q", document="d", grade=0.1, source="clicks", time="2026-01-01")
        second = Event(topic="q", document="d", grade=0.2, source="clicks", assessor="SDBN", time="2026-02-01")
        log.add([first, second])
        assert decide(log.current_events(), settings=how).grades == {"q": {"d": 0.2}}
        log.add([Event(kind="withdrawal", refers=second.id, source="clicks")])
        assert decide(log.current_events(), settings=how).grades == {"q": {"d": 0.1}}
        assert [(each.side, each.grade) for each in log.current_grades()] == [("clicks", 0.1)]
        log.close()


@pytest.mark.parametrize("kind", ["skip", "cannot-judge", "adjudication"])
def test_clicks_give_nothing_but_judgments(kind: str) -> None:
    with pytest.raises(DataError, match="clicks give judgments"):
        Event(topic="q", document="d", grade=1, kind=kind, source="clicks")


def test_the_history_of_a_document_says_that_clicks_count_only_on_request(folder: Path) -> None:
    cranfield("judge", "add", "work.db", "clicks.csv", folder=folder)
    document = next(
        line.split()[2] for line in (folder / "qrels.txt").read_text().splitlines() if line.startswith("q1 ")
    )
    rows = cranfield("judge", "blame", "work.db", "q1", document, folder=folder).out.splitlines()[1:]
    assert [("with --sources clicks" in row, " clicks " in row) for row in rows if "0.37" in row] == [(True, True)]
    assert all("with --sources clicks" not in row for row in rows if "0.37" not in row)


def test_agreement_of_many_values_has_no_tables_by_grade(folder: Path) -> None:
    names = [line.split() for line in (folder / "qrels.txt").read_text().splitlines()]
    clicks_file(folder, [(t, d, (n + 1) / 100) for n, (t, _, d, _) in enumerate(names)])
    cranfield("judge", "add", "work.db", "clicks.csv", folder=folder)
    answer = cranfield("judge", "agree", "work.db", "--sources", "import,clicks", folder=folder)
    assert answer.code == 0, answer.err
    assert "different grades: no tables by grade" in answer.err
    assert "grade 0.28" not in answer.out
    assert "2 people and clicks on 28 documents" in answer.out


def test_clicks_that_are_added_as_labels_of_people_are_not_added_silently(folder: Path) -> None:
    answer = cranfield("judge", "add", "other.db", "clicks.csv", "--source", "human", folder=folder)
    assert "judgments from clicks, which now count as labels of the source human" in answer.err


def test_plain_qrels_come_with_a_note_that_they_do_not_name_clicks(tmp_path: Path) -> None:
    line = ["online", "qrels", "online/clicks-log", "--topics-file", "topics.tsv", "-o"]
    note = "does not say that its grades are from clicks: judge add needs --source clicks"
    assert f"clicks.qrels {note}" in cranfield(*line, tmp_path / "clicks.qrels").err
    assert note not in cranfield(*line, tmp_path / "clicks.csv").err

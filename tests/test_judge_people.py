"""Labels of models reach nobody who counts people's: not rounds, qrels, counts, comparisons or files, unless they are named."""

from __future__ import annotations

import csv
import json
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from sqlalchemy import Column, MetaData, Table, insert

from cranfield import read_qrels
from cranfield.base.errors import BadLineError, DataError, FormatError
from cranfield.commands.judging import aggregate, begin_round, set_round
from cranfield.formats.label_files import read_judgments
from cranfield.inputs.selection import has_labels, judgment_source, qrels_of
from cranfield.judging import Event, current_events, open_log
from cranfield.judging.aggregation import uncertainty_of
from cranfield.judging.comparisons import PairComparison, PreferencePair, answer_counts, preferences_in
from cranfield.judging.current_labels import graded_labels
from cranfield.judging.event import DEFAULTS, KINDS, SOURCES
from cranfield.judging.label_import import as_csv, read_events
from cranfield.judging.policies import PEOPLE, decide
from cranfield.judging.round_plan import NoLease, Round, RoundItem
from cranfield.judging.round_status import status
from cranfield.judging.rounds import lease, open_round
from cranfield.store import migrations, open_database, tables
from cranfield.workbench.pages.home import overview
from cranfield.workbench.pages.topics import topics_with_counts
from databases import location_of
from shell import cranfield
from workbench import Served, example, served, waited

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cranfield.judging.log import Log

MODEL = "m/graded-1"


def label(document: str = "d", grade: float | None = 1, who: str = "ann", **more: Any) -> Event:
    return Event(**{"topic": "q", "document": document, "grade": grade, "assessor": who, **more})


def of_model(document: str = "d", grade: float | None = 1, **more: Any) -> Event:
    return label(document, grade, MODEL, source="model", **more)


def test_people_are_all_sources_but_models_the_collection_and_clicks() -> None:
    assert {*PEOPLE} == {*SOURCES} - {"model", "collection", "clicks"}


# rounds


def handed_out(log: Log, n: int) -> list[str]:
    """What somebody is given, answered by whether the document's number is even."""
    answer = []
    for _ in range(n):
        given = lease(log, "ann")
        if isinstance(given, NoLease):
            break
        document = given[0].document
        answer.append(document)
        log.add([label(document, float(int(document[1:]) % 2 == 0), "ann", round="r", time="2026-01-01")])
    return answer


def test_an_adaptive_round_goes_as_it_would_without_labels_of_models(tmp_path: Path) -> None:
    lists = {"q": {"a": [f"d{i}" for i in range(8)], "b": [f"d{i}" for i in (7, 5, 3, 1, 6, 4, 2, 0)]}}
    found = []
    for name, labels in (("without", []), ("with", [of_model(f"d{i}", i % 2, time="2026-02-01") for i in range(8)])):
        log = open_log(tmp_path / f"{name}.db")
        log.add([label("d0", 1, "bob", time="2026-01-01"), *labels])
        open_round(log, Round(name="r", strategy="move-to-front", lists=lists), [])
        found.append(handed_out(log, 8))
        log.close()
    assert found[0] == found[1]
    assert len(found[0]) == 7


def test_a_label_of_a_model_takes_no_place_of_a_round(location: str) -> None:
    log = open_log(location)
    open_round(log, Round(name="r"), [RoundItem("q", "d", 1)])
    log.add([of_model(round="r")])
    row = status(log).rows[0]
    assert (row.done, row.left, row.extra) == (0, 1, 0)
    given = lease(log, "ann")
    assert not isinstance(given, NoLease)
    log.add([label(round="r")])
    assert status(log).rows[0].done == 1
    with pytest.raises(DataError, match="'e' is not in round 'r'"):
        log.add([of_model("e", round="r")])
    log.close()


# what decides


def test_a_model_does_not_adjudicate(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="an adjudication is a person's, found one of a model"):
        of_model(kind="adjudication")
    row = {"kind": "adjudication", "topic": "q", "document": "d", "grade": 3, "assessor": MODEL}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    told = cranfield("judge", "add", "work.db", "a.jsonl", "--source", "model", folder=tmp_path)
    assert told.code == 3
    assert "a.jsonl:1: an adjudication is a person's" in told.err
    assert not (tmp_path / "work.db").exists()
    assert cranfield("judge", "add", "work.db", "a.jsonl", folder=tmp_path).code == 0  # a person's


def decided_before(row: dict[str, Any]) -> Event:
    return Event.of_before({"kind": "adjudication", "topic": "q", "document": "d", "time": "2026-01-02", **row})


OLD = [
    {"id": "a", "grade": 2, "assessor": "lea"},
    {"id": "b", "grade": 1, "assessor": "lea", "time": "2026-01-03"},
    {"id": "c", "grade": 3, "assessor": MODEL, "source": "model", "time": "2026-01-04"},
    {"id": "d", "grade": 3, "assessor": MODEL, "source": "model", "document": "e"},
]


def test_what_a_model_decided_in_an_old_log_does_not_stand(tmp_path: Path) -> None:
    events = [label(who="ann", grade=0), label(who="bob", grade=2), *map(decided_before, OLD)]
    path = tmp_path / "old.jsonl"
    path.write_text("".join(event.line() + "\n" for event in events))
    log = open_log(path)
    assert [(event.id, event.source) for event in log.events()[2:]] == [
        (row["id"], row.get("source", "human")) for row in OLD
    ]
    assert {event.id for event in log.current_events().values() if event.kind == "adjudication"} == {"b"}
    assert decide(log.current_events()).grades == {"q": {"d": 1.0}}
    assert [each.grade for each in log.labels()] == [0, 2, 1]
    assert status(log).labels == 3
    with log.reading() as transaction:  # the tables that rounds are counted in
        assert {event.id for event in current_events(transaction.events(up_to=9)).values()} == {
            event.id for event in log.current_events().values()
        }
    log.add([Event(kind="withdrawal", refers="b", assessor="lea"), label("f")])
    assert decide(log.current_events()).grades == {"q": {"d": 2.0, "f": 1.0}}
    log.close()


def test_nothing_is_sure_because_a_model_decided() -> None:
    said = current_events([label(who="ann", grade=0), label(who="bob", grade=2), decided_before(OLD[2])])
    assert uncertainty_of(said, decide(said, "majority")).subjects == [("q", "d")]


def as_before_migration_8(place: str, said: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    """A database as the code before migration 8 wrote it, for which adjudications by models were current."""
    every, people = migrations.steps, sys.modules["cranfield.judging.current_labels"]
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "steps", lambda name: {n: made for n, made in every(name).items() if n < 8})
        patch.setattr(people, "decided_by_a_model", lambda event: False)
        database, current = open_database(place), current_events(said)
    c = tables.events.c
    rows = [{**{name: getattr(event, name) for name in DEFAULTS}, "received": event.time} for event in said]
    for row in rows:  # there was no column for passages
        del row["passages"]
    plain = [c[name] for name in rows[0]]
    events = insert(Table("events", MetaData(), *(Column(each.name, each.type) for each in plain)))
    keys = [{**key._asdict(), "event": event.id, "time": event.time} for key, event in current.items()]
    kinds = [(name, tables.standing.c[name].type) for name in keys[0]]
    standing = insert(Table("standing", MetaData(), *(Column(name, kind) for name, kind in kinds)))
    gone = [{"id": event.refers} for event in said if event.kind == "withdrawal"]
    for statement, values in ((events, rows), (standing, keys), (insert(tables.withdrawn), gone)):
        database.write(lambda connection, made=statement, held=values: connection.execute(made, held))
    database.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_old_database_is_brought_forward_without_what_models_decided(kind, tmp_path, request, monkeypatch) -> None:
    server = request.getfixturevalue("postgres") if kind == "postgresql" else None
    place = location_of(kind, tmp_path, server)
    later = decided_before({"id": "w", "grade": 9, "assessor": "lea", "time": "2026-01-03T12:00"})
    said = [label(who="ann", grade=0), *map(decided_before, OLD), later]
    as_before_migration_8(place, [*said, Event(kind="withdrawal", refers="w", assessor="lea")], monkeypatch)
    log = open_log(place)
    assert {event.id for event in log.current_events().values() if event.kind == "adjudication"} == {"b"}
    assert log.current_events() == current_events(log.events())
    assert sorted(log.current_grades()) == sorted(graded_labels(log.current_events(), "relevance"))
    assert len(log.events()) == 7
    log.close()


# files


KINDS_OF_EVENTS = [
    of_model("d1", 3, seconds=0.5, passage='a, "b"\nc', note="n"),
    label("d2", 1, round="", list="bm25", rank=3, sure=False),
    label("d2", 0, repeat=True, aspect="trust", guideline="sha256:1"),
    of_model("d1", -1, other="d2", kind="preference"),
    label("d3", None, kind="cannot-judge"),
    label("d4", None, kind="skip"),
    label("d5", 2, "lea", kind="adjudication"),
    Event(kind="note", topic="q", note="words"),
    label("d6", 1, "", source="import", id="x", origin="old.txt sha256:0 line 7"),
    Event(kind="withdrawal", refers="x", assessor="ann"),
]


def bare(event: Event) -> dict[str, Any]:
    return {name: value for name, value in event.row().items() if name != "origin"}


def test_a_csv_of_an_export_is_read_back_as_the_events_that_it_holds(tmp_path: Path) -> None:
    assert {event.kind for event in KINDS_OF_EVENTS} == {*KINDS}
    path = tmp_path / "all.csv"
    path.write_bytes(as_csv(KINDS_OF_EVENTS))
    read = read_events(str(path), assessor="nobody", aspect="other")
    unsaid = {"assessor": "nobody"}  # what a row leaves empty is as the command says
    assert [bare(event) for event in read] == [
        bare(event) if event.assessor else {**bare(event), **unsaid} for event in KINDS_OF_EVENTS
    ]
    assert read[8].origin == "old.txt sha256:0 line 7"
    assert read[0].origin.startswith("all.csv sha256:")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_copy_of_a_log_has_the_qrels_of_the_log(location: str, ending: str, tmp_path: Path) -> None:
    log = open_log(location)
    log.add([of_model("d1", 3), label("d2", 1), of_model("d1", 1, other="d2", kind="preference")])
    log.close()
    path = tmp_path / f"copy.{ending}"
    assert cranfield("judge", "export", location, "--to", ending, "-o", path).code == 0
    for again in ("3 labels added", "0 labels added"):
        told = cranfield("judge", "add", tmp_path / "copy.db", path)
        assert told.err.startswith(again), told.err
    assert cranfield("judge", "export", tmp_path / "copy.db", "--to", "qrels").out == "q 0 d2 1\n"


def test_a_table_that_says_whose_a_label_is_keeps_it_though_columns_were_moved_or_cut(tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    path.write_bytes(as_csv(KINDS_OF_EVENTS[:4]))
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, ["source", "grade", "kind", "other", "repeat", "document"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    read = read_events(str(path))
    assert [event.topic for event in read] == ["-"] * 4
    for name in ("source", "kind", "other", "repeat", "grade"):
        assert [getattr(event, name) for event in read] == [getattr(event, name) for event in KINDS_OF_EVENTS[:4]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "document,grade,source\nd,1,mturk\n",
            "expected a source of human, model, import, collection, clicks, found 'mturk'; rename the column",
        ),
        ("document,grade,kind\nd,1,shoe\n", "expected a kind of judgment, .*, found 'shoe'; rename the column"),
        ("topic,document,grade,time,id,kind\nq,d,1,2026-01-01,7,odd\n", "found 'odd'; rename"),
        ("document,grade,kind,source\nd,1,adjudication,model\n", "an adjudication is a person's"),
    ],
)
def test_a_column_that_is_not_understood_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(BadLineError, match=f"a.csv:2: .*{told}"):
        read_events(str(tmp_path / "a.csv"))


def test_columns_of_other_tables_that_happen_to_be_called_so_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,question,worker,answer,other,sure,round,source\n1,d,w,2,words,5,3,\n")
    (event,) = read_events(str(tmp_path / "a.csv"))
    assert (event.id == "1", event.other, event.sure, event.round, event.source) == (False, "", True, "", "import")


@pytest.mark.parametrize("events", [KINDS_OF_EVENTS[:1], [of_model()], [label(), label(kind="skip", grade=None)]])
@pytest.mark.parametrize("name", ["x.csv", "x.txt"])
def test_csv_of_a_log_in_which_not_all_is_of_people_is_no_qrels(tmp_path: Path, events: list[Event], name: str) -> None:
    path = tmp_path / name
    path.write_bytes(as_csv(events))
    for read in (read_qrels, read_judgments):
        with pytest.raises(FormatError, match="holds events of a log, whose column (source|kind) says"):
            read(str(path))


def test_csv_of_a_log_of_people_alone_is_qrels(tmp_path: Path) -> None:
    for events in ([label()], [label(note="why")]):
        (tmp_path / "x.csv").write_bytes(as_csv(events))
        assert read_qrels(str(tmp_path / "x.csv")).to_dict() == {"q": {"d": 1.0}}


def test_prefs_hold_preferences_of_people_unless_models_are_named(location: str) -> None:
    log = open_log(location)
    log.add([of_model("d1", 1, other="d2", kind="preference"), label("d2", 1, other="d1", kind="preference")])
    log.close()
    plain = cranfield("judge", "export", location, "--to", "prefs")
    assert plain.out.split()[1::5] == ["ann", "ann"]
    assert "1 preferences are left out: they are a model's (--sources names who counts)" in plain.err
    named = cranfield("judge", "export", location, "--to", "prefs", "--sources", "human,model")
    assert {*named.out.split()[1::5]} == {"ann", MODEL}
    assert "left out" not in named.err
    lines = cranfield("judge", "export", location, "--sources", "model").out.splitlines()
    assert [json.loads(line)["assessor"] for line in lines] == [MODEL]
    assert len(cranfield("judge", "export", location).out.splitlines()) == 2
    assert cranfield("judge", "export", location, "--sources", "dog").code == 2
    assert aggregate(location, "bradley-terry(prior=1)").people == ["ann"]


def test_qrels_of_an_export_are_of_whom_is_named(location: str) -> None:
    log = open_log(location)
    log.add([of_model("d1", 3), label("d2", 1)])
    log.close()
    assert cranfield("judge", "export", location, "--to", "qrels").out == "q 0 d2 1\n"
    assert cranfield("judge", "export", location, "--to", "qrels", "--sources", "model").out == "q 0 d1 3\n"


# comparisons


def test_what_a_model_prefers_is_no_answer_to_a_comparison(location: str) -> None:
    log = open_log(location)
    plan = PairComparison(name="c", kind="documents", one="a", other="b", pairs=(PreferencePair("q", "d1", "d2"),))
    log.add([of_model("d1", 1, other="d2", kind="preference")])
    with log.reading() as transaction:
        assert answer_counts(transaction, plan, ["q"]) == {}
        assert preferences_in(transaction, plan) == []
    log.add([label("d2", 1, other="d1", kind="preference")])
    with log.reading() as transaction:
        assert answer_counts(transaction, plan, ["q"]) == {("q", "d1", "d2"): 1}
        assert [event.assessor for event in preferences_in(transaction, plan)] == ["ann"]
    log.close()


# the workbench


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    with served(example(tmp_path / "w")) as opened:
        yield opened


def pairs(site: Served, n: int = 12) -> list[tuple[str, str]]:
    with open(site.bench.qrels, encoding="utf-8") as file:  # type: ignore[arg-type]
        return [(row[0], row[2]) for row in map(str.split, file)][:n]


def labelled(site: Served) -> int:
    return sum(row["labelled"] for row in topics_with_counts(site.bench))


def test_a_workspace_is_judged_by_its_collection_until_a_person_has_labelled(site: Served) -> None:
    before = overview(site.bench).steps
    page = waited(site, "/runs.json")
    assert page["state"] == "ready"

    def own() -> dict[str, dict[str, float]]:
        return qrels_of(site.bench, judgment_source(site.bench)).to_dict()

    of_file = read_qrels(site.bench.qrels).to_dict()
    assert own() == of_file
    made = [of_model(document, 2, topic=topic) for topic, document in pairs(site)]
    odd = [
        label("d", None, kind="cannot-judge"),
        label("d", 1, aspect="trust"),
        label("d", 1, repeat=True),
        label("d", 1, id="gone"),
        Event(kind="withdrawal", refers="gone", assessor="ann"),
    ]
    for events in (made, odd):
        site.bench.log.add(events)
        assert not has_labels(site.bench)
        assert (waited(site, "/runs.json")["answer"]["rows"], own()) == (page["answer"]["rows"], of_file)
        assert overview(site.bench).steps == before
    for path in ("/runs.json", "/compare.json"):
        assert waited(site, path)["state"] == "ready"
    site.bench.log.add([label("d", 1)])
    assert has_labels(site.bench)
    assert judgment_source(site.bench).word == "log"
    assert "no version of them is frozen" in str(overview(site.bench).steps)


def test_an_adjudication_alone_is_a_label(site: Served) -> None:
    site.bench.log.add([label("d", 1, kind="adjudication")])
    assert has_labels(site.bench)


def test_labels_of_models_are_no_labels_in_the_list_of_topics_and_do_not_wait(site: Served) -> None:
    site.bench.log.add([of_model(document, 2, topic=topic) for topic, document in pairs(site)])
    assert labelled(site) == 0
    assert (site.bench.newer(0), site.bench.newer(0, of_models=True)) == (0, 12)
    site.bench.log.add([label(document, 1, topic=topic) for topic, document in pairs(site, 3)])
    assert labelled(site) == 3
    assert site.bench.newer(0) == 3


def test_an_assessor_is_blind_until_the_round_is_closed(site: Served, tmp_path: Path) -> None:
    topic, document = pairs(site)[0]
    pool = tmp_path / "pool.jsonl"
    pool.write_text(json.dumps({"topic": topic, "document": document}) + "\n")
    site.bench.log.add([of_model(document, 2, topic=topic)])
    begin_round(site.bench.location, name="r", pool=str(pool))
    ann, path = site.client("ann", "assessor"), "/label.json?" + urlencode({"topic": topic, "document": document})
    for state, shown in (("open", False), ("paused", False), ("open", False), ("closed", True)):
        set_round(site.bench.location, "r", state)
        assert (MODEL in ann.get(path).text) == shown
    assert MODEL in site.client("lea", "lead").get(path).text

"""Events and the logs that keep them: one type, three places, the same answers."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, func, update

from cranfield.base.errors import DataError
from cranfield.base.notifications import notes_to
from cranfield.judging import Event, current_events, open_log
from cranfield.judging.comparisons import (
    PairComparison,
    PreferencePair,
    all_comparisons,
    find_comparison,
    open_comparison,
)
from cranfield.judging.event import DEFAULTS, instant
from cranfield.judging.label_import import as_csv, read_events
from cranfield.judging.llm.label_sample import label_sample, rounds_that_drew
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from cranfield.judging.versions import all_versions, freeze
from cranfield.store import open_database, tables
from shell import EXAMPLES, cranfield

pytestmark = pytest.mark.every_database

ODD = ["plain", "with blank", "Zoë", "a\\b", "\udc80lone", "\ud800high", "quote'\"", "tab\t", "\\u0000"]


def label(grade: float = 1, **more: object) -> Event:
    return Event(**{"topic": "q1", "document": "d1", "grade": grade, "assessor": "ann", **more})


def test_an_event_comes_back_as_it_was(log):
    full = Event(
        topic="q", document="a", other="b", grade=-1, assessor="ann", kind="preference", aspect="clarity", sure=False,
        note="why\nnot", passage="the words", passages=((3, 6), (9, 12)),
            source="model", seconds=3.25, list="bm25", rank=7, guideline="sha256:1",
        origin="crowd.csv:sha256:aa:12",
    )  # fmt: skip
    assert log.add([full]) == (1, 0)
    assert log.events() == [full]
    assert {name for name in DEFAULTS if getattr(full, name) == DEFAULTS[name]} == {"round", "refers", "repeat"}


@pytest.mark.parametrize("text", ODD)
def test_ids_stay_byte_exact(log, text):
    event = Event(topic=text, document=text + "2", grade=1, assessor=text, note=text + "\0")  # a note may hold a NUL
    log.add([event])
    assert log.events() == [event]
    assert [each.document for each in log.labels()] == [text + "2"]


def test_the_same_event_again_is_one(log):
    event = label()
    assert log.add([event, event]) == (1, 1)
    assert log.add([event]) == (0, 1)
    assert len(log.events()) == 1


def test_the_same_id_with_other_content_is_refused_and_nothing_is_written(log):
    log.add([label(id="one")])
    with pytest.raises(
        DataError, match=r"an event with the id 'one' is there and says something else: its (grade|time)"
    ):
        log.add([label(document="new"), label(2, id="one")])
    assert len(log.events()) == 1


def test_the_last_word_of_each_person_stands(log):
    log.add([label(2, time="2026-01-02"), label(1, time="2026-01-01"), label(0, assessor="bob")])
    assert sorted((each.assessor, each.grade) for each in log.labels()) == [("ann", 2), ("bob", 0)]


def test_a_withdrawn_label_gives_way_to_the_one_before(log):
    first, second = label(1, time="2026-01-01"), label(2, time="2026-01-02")
    log.add([first, second])
    log.add([Event(kind="withdrawal", refers=second.id, assessor="ann")])
    assert [each.grade for each in log.labels()] == [1]
    log.add([Event(kind="withdrawal", refers=first.id, assessor="ann")])
    assert log.labels() == []


def test_only_an_event_that_is_there_can_be_withdrawn(log):
    with pytest.raises(DataError, match="there is no event 'nobody' to withdraw"):
        log.add([Event(kind="withdrawal", refers="nobody")])
    log.add([label(id="a"), Event(kind="withdrawal", refers="a", id="w")])
    with pytest.raises(DataError, match="'w' is a withdrawal itself"):
        log.add([Event(kind="withdrawal", refers="w")])


def test_events_from_a_place_on(log):
    log.add([label(document="d1")])
    place = log.place()
    log.add([label(document="d2"), label(document="d3")])
    assert [event.document for event in log.events(place)] == ["d2", "d3"]
    assert log.events(log.place()) == []


def test_a_second_opening_reads_what_the_first_wrote(location):
    one, two = open_log(location), open_log(location)
    one.add([label(document="d1")])
    assert [event.document for event in two.events()] == ["d1"]
    two.add([label(document="d2")])
    assert [event.document for event in one.events()] == ["d1", "d2"]
    one.close()
    two.close()


def random_events(seed: int, n: int = 60) -> list[Event]:
    """Labels, changes of mind, preferences from both sides, adjudications and withdrawals, times often equal."""
    draw = random.Random(seed)
    events: list[Event] = []
    for i in range(n):
        kind = draw.choice(
            ["judgment"] * 5 + ["preference", "adjudication", "cannot-judge", "skip", "withdrawal", "note"]
        )
        pair = draw.sample(["d1", "d2", "d3"], 2)
        if kind == "withdrawal":
            earlier = [event for event in events if event.kind != "withdrawal"]
            if earlier:
                events.append(Event(kind=kind, refers=draw.choice(earlier).id, id=f"{i}"))
            continue
        grade = {
            "preference": draw.choice([-1, 0, 1]),
            "judgment": draw.randrange(4),
            "adjudication": draw.randrange(4),
        }
        events.append(
            Event(
                kind=kind, topic=draw.choice("qr"), document=pair[0], other=pair[1] if kind == "preference" else "",
                grade=grade.get(kind), assessor=draw.choice(["ann", "bob"]), note="n" * (kind == "note"),
                time=f"2026-01-0{draw.randrange(1, 4)}", repeat=draw.random() < 0.1, id=f"{draw.randrange(10**6)}-{i}",
            )
        )  # fmt: skip
    return events


@pytest.mark.parametrize("seed", range(8))
def test_what_stands_equals_a_replay_of_the_log(log, seed):
    events = random_events(seed)
    cut = len(events) // 3
    for part in (events[:cut], events[cut : 2 * cut], events[2 * cut :]):
        log.add(part)
    assert log.current_events() == current_events(events) == current_events(log.events())


@given(seed=st.integers(0, 10**6), order=st.randoms(use_true_random=False))
def test_what_stands_does_not_depend_on_the_order(seed, order):
    events = random_events(seed)
    mixed = events.copy()
    order.shuffle(mixed)
    assert current_events(mixed) == current_events(events)


BAD = [
    ({"kind": "guess"}, "expected a kind of judgment"),
    ({"grade": float("nan")}, "expected a finite number as grade, found nan"),
    ({"grade": None}, "a judgment needs topic, document, grade; there is no grade"),
    ({"topic": ""}, "there is no topic"),
    ({"source": "robot"}, "expected a source of human"),
    ({"rank": 0}, "expected a rank of 1 or more"),
    ({"seconds": -1}, "expected seconds of 0 or more"),
    ({"sure": "yes"}, "expected true or false as sure"),
    ({"other": "d2"}, "a judgment is about one document"),
    ({"time": "yesterday"}, "expected a time such as"),
    ({"kind": "preference", "other": "d2", "grade": 2}, "expected a preference of 1"),
    ({"kind": "preference", "other": "d1", "grade": 1}, "between two documents"),
    ({"document": 7}, "expected text as document"),
]


@pytest.mark.parametrize(("fields", "said"), BAD)
def test_a_bad_event_says_what_is_wrong(fields, said):
    with pytest.raises(DataError, match=said):
        label(**{"grade": 1, **fields})


def test_times_are_utc_and_sort_as_text():
    assert instant("2026-01-01T01:30:00+01:00") == "2026-01-01T00:30:00.000000Z"
    assert instant("2026-01-01") < instant("2026-01-01T00:00:00.000001Z") < instant()


def test_lines_of_five_fields_are_events(tmp_path):
    path = tmp_path / "labels.jsonl"
    rows = [
        {"topic": "q", "document": "d", "grade": 1, "assessor": "ann"},
        {"topic": "q", "document": "d", "grade": 2, "assessor": "ann"},
        {"topic": 7, "document": "d", "grade": 0.5, "time": "2026-01-01T00:00:00+00:00"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = open_log(path)
    assert [(each.topic, each.grade) for each in log.labels()] == [("q", 2), ("7", 0.5)]
    assert len({event.id for event in log.events()}) == 3
    log.add([label()])
    assert open_log(path).events() == log.events()


def test_a_bad_line_is_named(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text('{"topic": "q", "document": "d", "grade": 1}\n{"topic": "q", "document": "d", "grade": "x"}\n')
    with pytest.raises(DataError, match=r"labels.jsonl:2: expected a finite number as grade, found 'x'"):
        open_log(path).events()


# what was written is what is read


def with_a_sample(location: str) -> None:
    """A log with a round that drew two of three documents, all judged, and a version."""
    log = open_log(location)
    frame = {"q1": ["d1", "d2"], "q2": ["d3"]}
    plan = Round(name="spring", sample="2 of 3 documents", frame=frame)
    open_round(log, plan, [RoundItem("q1", "d1", 1, 2 / 3), RoundItem("q2", "d3", 1, 2 / 3)])
    log.add([label(document="d1", round="spring"), label(2, topic="q2", document="d3", round="spring")])
    freeze(log, "v1", "latest")
    log.close()


def changed(location: str, before: str, after: str, table: str, column: str) -> None:
    """Change a text in a log by other means than its own."""
    if location.endswith(".jsonl"):
        path = Path(location)
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, after))
        return
    database = open_database(location)
    where = tables.metadata.tables[table].c[column]
    new = func.replace(where, before, after) if column == "definition" else 0.9
    query = update(tables.metadata.tables[table]).values({column: new})
    assert database.write(lambda connection: connection.execute(query).rowcount)
    database.close()


def test_a_topic_less_in_the_frame_of_a_round_is_noticed_when_it_is_read(location):
    with_a_sample(location)
    changed(location, ', "q2": ["d3"]}', "}", "rounds", "definition")
    log = open_log(location)
    with pytest.raises(DataError, match=r"round( 'spring')? was changed after it was written: its hash is another"):
        rounds_that_drew(log)
    log.close()
    answer = cranfield("judge", "verify", location)
    assert (answer.code, answer.out) == (3, "")
    assert "was changed after it was written" in answer.err


def test_the_chance_of_a_document_that_was_changed_is_noticed_before_an_estimate(location):
    with_a_sample(location)
    changed(location, '["q2", "d3", 1, 0.6666666666666666,', '["q2", "d3", 1, 0.9,', "items", "probability")
    log = open_log(location)
    with pytest.raises(DataError, match=r"round( 'spring')? was changed after it was written"):
        label_sample(log, "spring")
    log.close()
    assert cranfield("judge", "verify", location).code == 3


@pytest.mark.parametrize("location", ["sqlite", "postgresql"], indirect=True)
def test_versions_and_comparisons_that_were_changed_are_noticed_when_they_are_read(location):
    with_a_sample(location)
    log = open_log(location)
    open_comparison(
        log,
        PairComparison(
            name="pairs", kind="documents", one="bm25", other="dense", pairs=(PreferencePair("q1", "d1", "d2"),)
        ),
    )
    log.close()
    changed(location, '"documents": 2', '"documents": 3', "versions", "definition")
    changed(location, '"d2"', '"d3"', "comparisons", "definition")
    log = open_log(location)
    with pytest.raises(DataError, match="version 'v1' was changed after it was written"):
        all_versions(log)
    with log.reading() as transaction:
        for read in (all_comparisons, lambda transaction: find_comparison(transaction, "pairs")):
            with pytest.raises(DataError, match="comparison 'pairs' was changed after it was written"):
                read(transaction)
    log.close()


def test_a_series_that_was_changed_is_noticed_when_models_are_listed(tmp_path):
    path = tmp_path / "asked.db"
    rows = [json.loads(line) for line in (EXAMPLES / "asked.jsonl").read_text().splitlines()]
    log = open_log(path)
    log.write(lambda transaction: [transaction.apply(row) for row in rows if row.get("record") == "series"])
    log.close()
    assert cranfield("judge", "models", path).code == 0
    changed(str(path), '"seed": 0', '"seed": 1', "series", "definition")
    answer = cranfield("judge", "models", path)
    assert (answer.code, answer.out) == (3, "")
    assert "was changed after it was written: its hash is another" in answer.err


def test_a_log_that_nobody_changed_is_verified(location):
    with_a_sample(location)
    answer = cranfield("judge", "verify", location)
    assert (answer.code, answer.err) == (0, "")
    assert "1 of 1 versions come out as they were frozen" in answer.out


@pytest.mark.parametrize("location", ["sqlite", "postgresql"], indirect=True)
def test_a_round_that_is_gone_from_a_database_is_noticed_by_verify(location):
    with_a_sample(location)
    database = open_database(location)
    database.write(
        lambda connection: [connection.execute(delete(each)) for each in (tables.places, tables.items, tables.rounds)]
    )
    database.close()
    answer = cranfield("judge", "verify", location)
    assert answer.code == 3
    assert "round 'spring' is missing" in answer.err


def test_a_line_that_an_editor_wrote_anew_says_the_same(tmp_path):
    path = tmp_path / "labels.jsonl"
    with_a_sample(str(path))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    assert [plan.name for plan in rounds_that_drew(open_log(path))] == ["spring"]


def test_records_without_hashes_are_read_with_one_note(tmp_path):
    path = tmp_path / "labels.jsonl"
    with_a_sample(str(path))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({k: v for k, v in row.items() if k != "sha256"}) + "\n" for row in rows))
    said: list[str] = []
    with notes_to(said.append):
        assert [plan.name for plan in rounds_that_drew(open_log(path))] == ["spring"]
    assert len(said) == 1
    assert "without hashes" in said[0]


@pytest.mark.parametrize("told", [False, True], ids=["an index is overwritten", "a page belongs to nothing"])
def test_verify_runs_the_integrity_check_of_sqlite(told, tmp_path):
    path = tmp_path / "work.db"
    log = open_log(path)
    log.add([label(document=f"d{number}") for number in range(200)])
    log.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size, pages = (connection.execute(f"PRAGMA page_{name}").fetchone()[0] for name in ("size", "count"))
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events_people'").fetchone()[0]
    assert cranfield("judge", "verify", path).code == 0
    with open(path, "r+b") as file:
        file.seek((pages if told else root - 1) * size)
        file.write(b"\xff" * size)
        if told:
            file.seek(28)  # of the header: how many pages there are
            file.write((pages + 1).to_bytes(4, "big"))
    answer = cranfield("judge", "verify", path)
    assert (answer.code, answer.out) == (3, "")
    assert f"{path}: is damaged; take it from a copy" in answer.err
    assert (f"SQLite says: Page {pages + 1}" in answer.err) == told  # and not the heading above it


def test_a_database_is_made_for_its_owner_alone(tmp_path):
    before = os.umask(0o022)
    try:
        log = open_log(tmp_path / "work.db")
        log.add([label()])
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        log.close()
    finally:
        os.umask(before)
    assert modes["work.db"] == 0o600
    assert {*modes.values()} == {0o600}


@pytest.mark.parametrize(
    "passages", ["3", "9-3", "3-9 5-12", [[3]], [[3, 9], [9.0, 12]], [[True, 2]], [[-1, 2]], 7, None]
)
def test_passages_that_are_none_are_refused(passages):
    with pytest.raises(DataError, match="expected passages"):
        Event(topic="q", document="a", grade=1, passages=passages)


def test_passages_are_sorted_and_come_back_from_lines_and_tables(tmp_path):
    event = Event(topic="q", document="a", grade=1, assessor="ann", passage="one […] two", passages=[[40, 52], [3, 9]])
    assert event.passages == ((3, 9), (40, 52))
    assert '"passages": [[3, 9], [40, 52]]' in event.line()
    assert Event.of(json.loads(event.line())) == event
    (tmp_path / "export.csv").write_bytes(as_csv([event]))
    assert "3-9 40-52" in (tmp_path / "export.csv").read_text()
    [again] = read_events(str(tmp_path / "export.csv"))
    assert (again.passage, again.passages) == (event.passage, event.passages)

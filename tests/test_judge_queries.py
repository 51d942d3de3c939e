"""Looks at a log: the same on every kind of it, each event once for whoever polls, and by an index in a database."""

from __future__ import annotations

import random
import sqlite3

import pytest
from sqlalchemy import event as listening

from cranfield.base.errors import DataError
from cranfield.commands.terminal_session import Follower
from cranfield.judging import Event, open_log
from cranfield.judging.log_queries import about, blame, decide_log, mine, newer, waiting
from cranfield.judging.policies import PolicySettings, decide, policies
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.round_status import round_statuses, status
from cranfield.judging.rounds import answer, lease, open_round
from cranfield.judging.table_changes import COMPLETE, Transaction
from databases import KINDS, location_of, new_database

ODD = "d\\é"  # a document's name with a backslash and an accent


def label(who: str, topic: str, document: str, grade: float = 1.0, **more) -> Event:
    return Event(topic=topic, document=document, grade=grade, assessor=who, **more)


@pytest.fixture
def log(location):
    opened = open_log(location)
    yield opened
    opened.close()


def test_my_labels_come_newest_first_and_by_pages(log):
    events = [label("ann" if i % 2 else "bob", f"q{i % 3}", f"d{i}", id=f"e{i}") for i in range(12)]
    for event in events:
        log.add([event])
    log.add([label("ann", "q0", "d3", 2.0, id="again"), Event(kind="withdrawal", refers="e5", assessor="ann")])
    first = mine(log, "ann", n=2)
    assert [(each.event.id, each.stands) for each in first] == [("again", True), ("e11", True)]
    rest = mine(log, "ann", before=first[-1].place)
    assert [each.event.id for each in rest] == ["e9", "e7", "e1"]
    assert mine(log, "ann", "no such round") == mine(log, "nobody") == []


def test_a_document_tells_all_that_was_said_of_it_in_either_role(log):
    log.add([label("ann", "q", ODD, time="2026-01-02", id="b"), label("bob", "q", ODD, time="2026-01-01", id="a")])
    pair = Event(kind="preference", topic="q", document="z", other=ODD, grade=1, assessor="ann", id="pair")
    log.add([pair, Event(kind="withdrawal", refers="a"), label("ann", "q", "z"), label("ann", "p", ODD)])
    found = about(log, "q", ODD)
    assert [(each.event.id, each.stands, each.withdrawn) for each in found] == [
        ("a", False, True),
        ("b", True, False),
        ("pair", True, False),
    ]
    assert len(about(log, "q")) == 4
    told = blame(log, "q", ODD)
    assert (told.current, told.withdrawn) == ({"b", "pair"}, {"a"})


def test_whoever_asks_for_what_is_newer_sees_each_event_once(log):
    seen, place = [], 0
    for number in range(5):
        log.add([label("ann", "q", f"{number}-{i}") for i in range(number)])
        assert waiting(log, place) == number
        news = newer(log, place)
        seen += news.events
        place = news.place
    assert seen == log.events()
    assert newer(log, place) == (place, [])


def test_a_rounds_places_are_counted_by_person(log):
    open_round(log, Round(name="r"), [RoundItem("q", f"d{i}") for i in range(5)])
    held = lease(log, "ann", "r", 2)
    lease(log, "bob", "r")
    log.add([label("ann", "q", held[0].document, round="r")])
    [row] = round_statuses(log, "r")
    assert (row.places, row.done, row.out, row.left) == (5, 1, 2, 2)
    assert {person.assessor: (person.done, person.out) for person in row.people} == {"ann": (1, 1), "bob": (0, 1)}
    assert status(log).labels == len(log.labels()) == 1
    with pytest.raises(DataError, match="there is no round 's'"):
        round_statuses(log, "s")


def test_an_event_that_comes_to_light_late_is_not_missed(postgres):
    location = new_database(postgres)
    log, other = open_log(location), open_log(location)
    log.add([label("ann", "q", "first")])
    follower = Follower(log, "ann")
    start = newer(log, 0)
    with other.database.engine.begin() as connection:
        Transaction(connection, other.database).add([label("bob", "q", "slow")], other.name)
        log.add([label("ann", "q", "quick")])
        assert [event.document for event in log.events()] == ["first", "quick"]
        assert newer(log, start.place) == (start.place, [])  # bob's, which has the lower number, may yet come
        assert [event.document for event in follower.refresh()] == ["quick"]  # who is at work sees their own at once
        with log.database.engine.connect() as looking:
            assert looking.exec_driver_sql(COMPLETE).scalar() == start.place
    news = newer(log, start.place)
    assert [event.document for event in news.events] == ["slow", "quick"]
    assert [event.document for event in follower.refresh()] == ["slow"]
    assert newer(log, news.place).events == []
    log.close()
    other.close()


def test_a_transaction_that_is_undone_holds_nobody_up(postgres):
    log = open_log(new_database(postgres))
    with log.database.engine.connect() as connection:
        begun = connection.begin()
        Transaction(connection, log.database).add([label("bob", "q", "lost")], log.name)
        log.add([label("ann", "q", "kept")])
        assert log.place() == 0
        begun.rollback()
    assert [event.document for event in newer(log, 0).events] == ["kept"]
    log.close()


def test_policies_decide_the_same_from_columns_as_from_events(request, tmp_path):
    draw = random.Random(5)
    events = [
        label(who, f"q{draw.randrange(3)}", f"{ODD}{draw.randrange(8)}", float(draw.randrange(3)), time="2026-01-01",
              id=f"{draw.choice('ab')}{draw.choice(['', chr(1), '|'])}{i}", source=draw.choice(["human", "model"]),
              repeat=draw.random() < 0.1)
        for i, who in enumerate(draw.choices(["ann", "bob", "cat"], k=120))
    ]  # fmt: skip
    events += [Event(kind="adjudication", topic="q0", document=f"{ODD}1", grade=2, assessor="zoe")]
    for kind in KINDS:
        server = request.getfixturevalue("postgres") if kind == "postgresql" else None
        log = open_log(location_of(kind, tmp_path, server))
        log.add(events)
        for policy in ("latest", "adjudicated", "majority", "dawid-skene"):
            assert policy in policies()
            for how in (PolicySettings(), PolicySettings(sources=("human", "model"))):
                one, other = decide_log(log, policy, how), decide(log.current_events(), policy, how)
                assert (one.grades, one.notes(), one.labels) == (other.grades, other.notes(), other.labels), policy
        log.close()


def plan_of(log, statement: str) -> str:
    explain = "EXPLAIN " if log.database.dialect == "postgresql" else "EXPLAIN QUERY PLAN "
    with log.database.reading() as connection:
        if log.database.dialect == "postgresql":
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # tables of a test are small
        return "\n".join(str(row) for row in connection.exec_driver_sql(explain + statement))


@pytest.mark.parametrize("location", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("SELECT * FROM events WHERE assessor = 'a' AND seq < 9 ORDER BY seq DESC LIMIT 50", "events_assessor"),
        ("SELECT * FROM events WHERE topic = 'q' AND document = 'd'", "events_subject"),
        ("SELECT * FROM events WHERE topic = 'q' AND other = 'd' AND other <> ''", "events_other"),
        ("SELECT * FROM places WHERE round = 'r' AND topic = 'q' AND state = 'free' AND position > 3 "
         "ORDER BY position, slot LIMIT 1", "places_free_of_topic"),
        ("SELECT * FROM places WHERE round = 'r' AND state = 'free' ORDER BY position, slot LIMIT 1", "places_free"),
        ("SELECT * FROM places WHERE round = 'r' AND assessor = 'a' AND state = 'leased' ORDER BY until, position, item",
         "places_held"),
        ("SELECT min(until) FROM places WHERE round = 'r' AND state = 'leased' AND counted = TRUE",
         "places_leased|places_held"),
    ],
)  # fmt: skip
def test_each_look_has_its_index(log, statement, index):
    plan = plan_of(log, statement)
    assert any(each in plan for each in index.split("|")), plan


def test_no_look_reads_a_whole_table(tmp_path):
    log = open_log(tmp_path / "work.db")
    open_round(log, Round(name="r"), [RoundItem("q", f"d{i}", 2) for i in range(9)])
    held = lease(log, "ann", "r", 3)
    statements: list[tuple[str, tuple[str, ...]]] = []
    listening.listen(log.database.engine, "before_cursor_execute", lambda *given: statements.append(given[2:4]))
    mine(log, "ann")
    mine(log, "ann", "r", 7, 20)
    about(log, "q", "d1")
    about(log, "q")
    newer(log, 3)
    answer(log, [label("ann", "q", held[0].document, round="r")], "ann", "r", 3)
    looked = {each: values for each, values in statements if each.startswith(("SELECT", "UPDATE", "INSERT"))}
    assert len(looked) > 10
    connection = sqlite3.connect(tmp_path / "work.db")
    for statement, given in looked.items():
        values = given[0] if isinstance(given, list) else given  # of many
        steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        assert not [step for step in steps if step.startswith(("SCAN events", "SCAN standing", "SCAN places"))], (
            statement
        )
        assert "SEARCH standing USING INDEX sqlite_autoindex_standing_1 (side=?)" not in steps, statement
        if "events.assessor = ?" in statement:
            assert steps[0].startswith("SEARCH events USING INDEX events_assessor (assessor=?"), statement
            assert "USE TEMP B-TREE FOR ORDER BY" not in steps
    connection.close()
    log.close()

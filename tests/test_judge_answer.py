"""Answers and the next documents in one go: what is kept, what is refused and why, and that one does not spoil another."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import event as listening
from sqlalchemy import select

from cranfield.base.errors import DataError
from cranfield.judging import Event, current_events, open_log
from cranfield.judging.event_intake import REASONS
from cranfield.judging.round_plan import Lease, NoLease, Round, RoundItem
from cranfield.judging.rounds import answer, lease, open_round, release, set_state
from cranfield.store import tables
from test_judge_promises import LEASE, Clock, check_places, rows_of, tables_of


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(location, clock):
    opened = open_log(location, clock=clock)
    yield opened
    opened.close()


def some(n: int, overlap: int = 1) -> list[RoundItem]:
    return [RoundItem(f"q{i // 4}", f"d{i}", overlap) for i in range(n)]


def said(place: Lease, grade: float | None = 1.0, **more: Any) -> Event:
    return Event(topic=place.topic, document=place.document, grade=grade, assessor=place.assessor, round=place.round,
                 repeat=place.repeat, **more)  # fmt: skip


def states(log) -> dict[str, int]:
    with log.reading() as transaction:
        return dict(Counter(transaction.connection.execute(select(tables.places.c.state)).scalars()))


def test_a_label_is_kept_and_the_next_documents_are_leased(log):
    open_round(log, Round(name="r"), some(5))
    first = lease(log, "ann", "r", 3)
    [outcome], held = answer(log, [said(first[0])], "ann", "r", 3)
    assert (outcome.said, outcome.in_log) == ("kept", True)
    assert [each.document for each in held] == ["d1", "d2", "d3"]
    assert states(log) == {"done": 1, "leased": 3, "free": 1}
    assert log.current_events() == current_events(log.events())


def test_what_is_held_is_renewed_by_an_answer(log, clock):
    open_round(log, Round(name="r", lease=LEASE), some(3))
    first = lease(log, "ann", "r", 2)
    clock.pass_by(LEASE - 1)
    _, held = answer(log, [said(first[0])], "ann", "r", 2)
    assert held[0].until > first[1].until


def test_the_same_again_is_repeated_and_an_id_with_other_content_refused(log):
    open_round(log, Round(name="r"), some(3))
    place = lease(log, "ann", "r")[0]
    event = said(place, id="one")
    answer(log, [event], "ann", "r")
    other = said(place, 2.0, id="one")
    outcomes, _ = answer(log, [event, other], "ann", "r")
    assert [(each.said, each.reason) for each in outcomes] == [("repeated", ""), ("refused", "id")]
    held = lease(log, "ann", "r")[0]
    outcomes, _ = answer(log, [said(held, id="one")], "ann", "r")
    assert outcomes[0].reason == "id"
    assert [each.id for each in log.events()] == ["one"]


def test_a_refused_event_does_not_spoil_the_others(log):
    open_round(log, Round(name="r", scale=(0.0, 1.0)), some(6))
    places = lease(log, "ann", "r", 3)
    theirs = lease(log, "bob", "r")[0]
    events = [
        said(places[0]),
        said(places[1], 7.0),
        said(theirs),
        said(theirs._replace(assessor="ann")),
        Event(topic="q9", document="nowhere", grade=1, assessor="ann", round="r"),
        Event(topic="q9", document="nowhere", grade=1, assessor="ann", round="other"),
        Event(kind="withdrawal", refers="nothing", assessor="ann"),
        Event(kind="note", topic="q0", note="odd", assessor="ann"),
        said(places[2], None, kind="cannot-judge"),
    ]
    outcomes, held = answer(log, events, "ann", "r", 1)
    reasons = ["", "scale", "assessor", "lease", "lease", "round", "event", "", ""]
    assert [each.reason for each in outcomes] == reasons
    assert [each.said for each in outcomes] == ["refused" if reason else "kept" for reason in reasons]
    assert all(each.why for each in outcomes if each.reason)
    assert {each for each in reasons if each} <= REASONS.keys()
    assert [each.id for each in log.events()] == [events[i].id for i in (0, 7, 8)]
    assert [each.document for each in held] == [places[1].document]


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_a_round_that_is_not_open_takes_no_answer(log, state):
    open_round(log, Round(name="r"), some(2))
    place = lease(log, "ann", "r")[0]
    mine = said(place)
    answer(log, [mine], "ann", "r")
    set_state(log, "r", state)
    undo = Event(kind="withdrawal", refers=mine.id, assessor="ann")
    outcomes, held = answer(log, [said(place, 0.0), undo], "ann", "r")
    assert [(each.reason, each.why) for each in outcomes] == [("round", f"round 'r' is {state}")] * 2
    assert held == NoLease(f"round 'r' is {state}")


def test_who_is_not_asked_gets_nothing(log):
    open_round(log, Round(name="r", assessors=("ann",)), some(1))
    [outcome], held = answer(log, [Event(topic="q0", document="d0", grade=1, assessor="eve", round="r")], "eve", "r")
    assert outcome.reason == "assessor"
    assert held == NoLease("round 'r' is for ann; 'eve' is not among them")
    with pytest.raises(DataError, match="there is no round 'x'"):
        answer(log, [], "ann", "x")


def test_a_lease_that_is_over_counts_until_somebody_else_has_the_document(log, clock):
    open_round(log, Round(name="r", lease=LEASE), some(2))
    one, two = lease(log, "ann", "r", 2)
    clock.pass_by(LEASE + 1)
    assert answer(log, [said(one)], "ann", "r", 0)[0][0].in_log
    assert lease(log, "bob", "r")[0].document == two.document
    [outcome], _ = answer(log, [said(two)], "ann", "r", 0)
    assert outcome.reason == "lease"
    assert "is not leased to ann in round 'r', or not any more" in outcome.why
    assert states(log) == {"done": 1, "leased": 1}


def test_a_label_can_be_changed_undone_and_skipped_by_answers(log):
    open_round(log, Round(name="r"), some(2))
    place = lease(log, "ann", "r")[0]
    first = said(place, time="2026-01-01")
    second = said(place, 2.0, time="2026-01-02")
    outcomes, _ = answer(log, [first, second], "ann", "r", 0)
    assert [each.said for each in outcomes] == ["kept", "kept"]
    assert [event.grade for event in log.current_events().values()] == [2.0]
    undo = [Event(kind="withdrawal", refers=each.id, assessor="ann") for each in (second, first)]
    theirs = Event(kind="withdrawal", refers=first.id, assessor="bob")
    assert answer(log, [theirs], "bob", "r", 0)[0][0].reason == "assessor"
    outcomes, held = answer(log, undo, "ann", "r", 1)
    assert all(each.in_log for each in outcomes)
    assert held[0].document == place.document
    skip = Event(kind="skip", topic=place.topic, document=place.document, assessor="ann", round="r")
    _, held = answer(log, [skip], "ann", "r", 1)
    assert held[0].document != place.document


def test_an_adaptive_round_leases_one_at_a_time(log):
    lists = {"q": {"one": ["a", "b", "c"], "two": ["c", "b", "a"]}}
    open_round(log, Round(name="r", strategy="move-to-front", lists=lists), [])
    held = lease(log, "ann", "r", 3)
    assert len(held) == 1
    _, held = answer(log, [said(held[0])], "ann", "r", 3)
    assert len(held) == 1


def test_what_is_given_back_is_free_for_others(log):
    open_round(log, Round(name="r", gold_share=0.0), [*some(2), RoundItem("q0", "g", 0, role="gold", grade=1.0)])
    held = lease(log, "ann", "r", 3)
    assert {each.document for each in held} == {"d0", "d1", "g"}
    assert isinstance(lease(log, "bob", "r", 1), list)
    assert release(log, "ann", "r", held[:1]) == 1
    assert release(log, "ann", "r") == 2
    assert release(log, "ann", "r") == 0
    assert states(log) == {"free": 2, "leased": 1}
    assert {each.document for each in lease(log, "cat", "r", 3)} == {"d0", "d1", "g"}
    if hasattr(log, "path"):
        again = open_log(log.path)
        assert rows_of(again, tables.places) == rows_of(log, tables.places)
        again.close()


def test_who_goes_on_in_a_topic_comes_back_for_what_was_given_back_before(log):
    open_round(log, Round(name="r"), some(4))
    first, second = lease(log, "ann", "r", 2)
    lease(log, "bob", "r")
    release(log, "ann", "r", [first])
    documents = []
    held = [second]
    while isinstance(held, list):
        _, held = answer(log, [said(held[0])], "ann", "r")
        documents += [each.document for each in held] if isinstance(held, list) else []
    assert documents == ["d3", "d0"]


@pytest.mark.parametrize("location", ["sqlite", "postgresql"], indirect=True)
def test_a_judgment_and_the_next_lease_take_few_statements(log):
    open_round(log, Round(name="r"), some(40, 2))
    held = lease(log, "ann", "r", 3)
    counted: list[str] = []
    listening.listen(log.database.engine, "before_cursor_execute", lambda *given: counted.append(given[2]))
    for _ in range(10):
        _, held = answer(log, [said(held[0])], "ann", "r", 3)
    steps = [each for each in counted if not each.startswith(("BEGIN", "SAVEPOINT", "RELEASE"))]
    assert len(steps) <= 90  # a topic of four documents ends now and then


def play(log, clock, seed: int, n: int) -> list[Any]:
    """People who answer in batches, send twice, late, and what is not theirs."""
    draw, told = random.Random(seed), []
    hands: dict[str, list[Lease]] = {}
    sent: list[Event] = []
    for number in range(n):
        who = draw.choice(["ann", "bob", "cat"])
        batch = []
        for place in hands.get(who, [])[: draw.choice([0, 1, 1, 2])]:
            kind = draw.choice(["judgment"] * 5 + ["skip", "cannot-judge"])
            grade = float(draw.randrange(4)) if kind == "judgment" else None
            batch.append(said(place, grade, kind=kind, id=f"e{number}-{place.item}", time=clock()))
        if sent and draw.random() < 0.3:
            old = draw.choice(sent)
            batch.append(old)
            if old.assessor == who:
                batch.append(Event(kind="withdrawal", refers=old.id, assessor=who, id=f"w{number}", time=clock()))
        outcomes, held = answer(log, batch, who, "r", draw.choice([1, 3]))
        assert [each.id for each in outcomes] == [event.id for event in batch]
        sent += [event for event in batch if event.kind != "withdrawal"]
        hands[who] = held if isinstance(held, list) else []
        told.append((outcomes, held))
        if draw.random() < 0.1:
            told.append(release(log, who, "r"))
        clock.pass_by(draw.choice([1, 1, LEASE / 2, LEASE + 1]))
        check_places(log, clock())
    kept = {each.id for outcomes, _ in (x for x in told if isinstance(x, tuple)) for each in outcomes if each.in_log}
    assert kept == {event.id for event in log.events()}
    assert log.current_events() == current_events(log.events())
    return told


@pytest.mark.parametrize("seed", range(3))
def test_answers_tell_the_same_story_on_every_kind_of_log(request, tmp_path, seed):
    from databases import KINDS, location_of

    stories = []
    for kind in KINDS if not seed else KINDS[:2]:
        clock = Clock()
        server = request.getfixturevalue("postgres") if kind == "postgresql" else None
        log = open_log(location_of(kind, tmp_path, server), clock=clock)
        gold = [RoundItem("q0", f"g{i}", 0, role="gold", grade=1.0) for i in range(2)]
        plan = Round(name="r", lease=LEASE, gold_share=0.2, repeat_share=0.2, scale=(0.0, 1.0, 2.0))
        open_round(log, plan, [*some(8, 2), *gold])
        told, kept = play(log, clock, seed, 40), tables_of(log)
        if kind == "postgresql":  # whose numbers have gaps where an id was taken
            kept["events"] = [(number, *row[1:]) for number, row in enumerate(sorted(kept["events"]), 1)]
        kept["events"].sort()
        stories.append((told, kept))
        if kind == "lines":
            again = open_log(log.path, clock=Clock())
            assert {**tables_of(again), "events": sorted(rows_of(again, tables.events))} == kept
            again.close()
        log.close()
    assert all(story == stories[0] for story in stories)


@pytest.mark.parametrize("location", ["sqlite", "postgresql"], indirect=True)
def test_people_who_answer_at_once_lose_and_double_nothing(location):
    log = open_log(location)
    open_round(log, Round(name="r"), some(40, 2))
    kept: list[str] = []
    failures: list[BaseException] = []

    def work(who: str) -> None:
        try:
            held: Any = lease(log, who, "r", 3)
            while isinstance(held, list):
                event = said(held[0])
                [outcome], held = answer(log, [event], who, "r", 3)
                assert outcome.in_log, outcome
                kept.append(event.id)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"a{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    events = log.events()
    assert sorted(event.id for event in events) == sorted(kept)
    assert Counter((event.topic, event.document) for event in events) == {(f"q{i // 4}", f"d{i}"): 2 for i in range(40)}
    assert len({(event.topic, event.document, event.assessor) for event in events}) == 80
    log.close()

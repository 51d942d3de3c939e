"""Rounds: labels and open leases never exceed the overlap, nobody is asked twice, and nothing is lost on the way."""

from __future__ import annotations

import random
import threading
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from cranfield.base.errors import DataError
from cranfield.judging import Event, open_log
from cranfield.judging.round_plan import SHUFFLED, NoLease, Round, RoundItem, positions
from cranfield.judging.rounds import lease, open_round, set_state
from memory_log import MemoryLog

pytestmark = pytest.mark.every_database


def some(n: int, overlap: int = 1) -> list[RoundItem]:
    return [RoundItem(f"q{i % 5}", f"d{i}", overlap) for i in range(n)]


def answer(log, place, grade=1.0, **more):
    log.add(
        [
            Event(
                topic=place.topic, document=place.document, grade=grade, assessor=place.assessor, round=place.round,
                repeat=place.repeat, **more,
            )
        ]
    )  # fmt: skip


def one(log, assessor, name=""):
    """The one document somebody is given."""
    got = lease(log, assessor, name)
    assert isinstance(got, list), got
    return got[0]


def expire(log):
    """Let every open lease be over: in the tables, as nobody waits for half an hour."""
    from sqlalchemy import update

    from cranfield.store.tables import places

    def work(transaction):
        transaction.connection.execute(update(places).values(until="2000-01-01T00:00:00.000000Z"))

    log.write(work)


def test_a_person_gets_each_document_once_and_stays_with_a_topic(log):
    open_round(log, Round(name="first"), some(10))
    seen = []
    while not isinstance(got := lease(log, "ann"), NoLease):
        seen.append(got[0])
        answer(log, got[0])
    assert Counter(place.document for place in seen) == dict.fromkeys((f"d{i}" for i in range(10)), 1)
    topics = [place.topic for place in seen]
    assert sum(a != b for a, b in zip(topics, topics[1:], strict=False)) == 4
    assert got == NoLease("nothing is left for ann in round 'first'")


def test_what_is_held_is_given_again_until_it_is_answered(log):
    open_round(log, Round(name="first"), some(4))
    first = one(log, "ann")
    assert one(log, "ann").document == first.document
    three = lease(log, "ann", n=3)
    assert three[0].document == first.document
    assert len({place.document for place in three}) == 3


def test_labels_and_open_leases_never_exceed_the_overlap(log):
    open_round(log, Round(name="first"), some(1, overlap=2))
    one(log, "ann")
    one(log, "bob")
    told = lease(log, "cat")
    assert isinstance(told, NoLease)
    assert told.why == "all documents that are left for cat are leased to others"
    assert told.free_at is not None


def test_a_late_label_takes_a_free_place_else_it_is_extra(log):
    open_round(log, Round(name="first"), some(1))
    late = one(log, "ann")
    expire(log)
    new = one(log, "bob")
    assert new.document == late.document
    answer(log, new)
    answer(log, late)
    assert states(log) == {"done": 1, "extra": 1}


def test_an_expired_document_may_return_to_its_holder(log):
    open_round(log, Round(name="first"), some(1))
    first = one(log, "ann")
    expire(log)
    again = one(log, "ann")
    assert (again.document, again.slot) == (first.document, first.slot)
    answer(log, again)
    assert states(log) == {"done": 1}


def states(log):
    from sqlalchemy import select

    from cranfield.store.tables import places

    with log.reading() as transaction:
        return dict(Counter(transaction.connection.execute(select(places.c.state)).scalars()))


def test_a_skipped_document_goes_to_somebody_else(log):
    open_round(log, Round(name="first"), some(1))
    place = one(log, "ann")
    log.add([Event(kind="skip", topic=place.topic, document=place.document, assessor="ann", round="first")])
    assert isinstance(lease(log, "ann"), NoLease)
    assert one(log, "bob").document == place.document


def test_cannot_judge_fills_the_place(log):
    open_round(log, Round(name="first"), some(1))
    place = one(log, "ann")
    log.add([Event(kind="cannot-judge", topic=place.topic, document=place.document, assessor="ann", round="first")])
    assert states(log) == {"done": 1}
    assert log.labels() == []


def test_undo_gives_the_place_back_to_its_holder(log):
    open_round(log, Round(name="first"), some(2))
    place = one(log, "ann")
    answer(log, place, id="wrong")
    log.add([Event(kind="withdrawal", refers="wrong", assessor="ann")])
    assert one(log, "ann").document == place.document
    assert one(log, "bob").document != place.document


def test_a_change_of_mind_keeps_the_place(log):
    open_round(log, Round(name="first"), some(1))
    place = one(log, "ann")
    answer(log, place, 1)
    answer(log, place, 2)
    assert states(log) == {"done": 1}
    assert [each.grade for each in log.labels()] == [2]


def gold_of(n):
    return [RoundItem("g", f"gold{i}", 0, role="gold", grade=1.0) for i in range(n)]


def judged_by(log, assessor, name=""):
    """The documents that somebody judges until nothing is left."""
    documents = []
    while not isinstance(got := lease(log, assessor, name), NoLease):
        documents.append(got[0].document)
        answer(log, got[0])
    return documents


def test_gold_is_asked_beside_the_count_and_never_in_a_row_behind_the_pool(log):
    open_round(log, Round(name="first", gold_share=0.3, seed=4), [*some(12), *gold_of(3)])
    given = {assessor: judged_by(log, assessor) for assessor in ("ann", "bob")}
    assert {f"gold{i}" for i in range(3)} <= set(given["ann"])
    assert len(given["ann"]) == 15
    assert given["ann"][12:] != ["gold0", "gold1", "gold2"]
    assert {*given["bob"]} < {f"gold{i}" for i in range(3)}  # there was no document to mix the others with


def draws(samples, plan, documents, gold, n):
    """For many rounds with other seeds: which of an assessor's first documents are gold."""
    log = MemoryLog(f"draws {samples} {plan}")
    rows = []
    for seed in range(samples):
        name = f"r{seed}"
        open_round(log, Round(name=name, seed=seed, **plan), [*some(documents), *gold_of(gold)])
        rows.append([place.document.startswith("gold") for place in lease(log, "ann", name, n)])
    log.close()
    return np.array(rows)


MANY = pytest.mark.parametrize("samples", [60, pytest.param(2000, marks=pytest.mark.slow)])


@MANY
def test_every_place_of_a_round_is_gold_with_the_same_probability_against_chi_square(samples):
    rows = draws(samples, {}, 12, 3, 15)
    assert (rows.sum(axis=1) == 3).all()  # all gold is asked, once
    expected = samples * 3 / 15
    statistic = ((rows.sum(axis=0) - expected) ** 2 / expected / (1 - 3 / 15)).sum() * 14 / 15
    assert stats.chi2.sf(statistic, 14) > 0.001


@MANY
@pytest.mark.parametrize(("share", "exact"), [(0.0, stats.hypergeom(40, 10, 10)), (0.1, stats.binom(10, 0.1))])
def test_a_part_of_a_round_has_the_planned_share_of_gold_against_the_exact_distribution(samples, share, exact):
    rows = draws(samples, {"gold_share": share}, 30, 10, 10)
    counts = np.bincount(rows.sum(axis=1), minlength=11)
    expected = samples * exact.pmf(range(11))
    few = expected < 5
    seen, planned = ([*values[~few], values[few].sum()] for values in (counts, expected))
    statistic = sum((a - b) ** 2 / b for a, b in zip(seen, planned, strict=True))
    assert stats.chi2.sf(statistic, len(planned) - 1) > 0.001
    halves = rows[:, :5].sum(), rows[:, 5:].sum()
    assert stats.binomtest(int(halves[0]), int(sum(halves))).pvalue > 0.001  # no stretch has more than another


def test_the_share_of_gold_stays_as_planned_if_people_share_a_round(tmp_path):
    log = open_log(str(tmp_path / "work.db"))
    people = tuple(f"a{i}" for i in range(6))
    open_round(log, Round(name="r", assessors=people, seed=3), [*some(240, 2), *gold_of(20)])
    rows = np.array([[each.document.startswith("gold") for each in lease(log, name, "r", 50)] for name in people])
    log.close()
    exact = stats.hypergeom(100, 20, 50)  # 80 documents and 20 gold for each, of which this is the first half
    assert abs(rows.sum() - 6 * exact.mean()) < 4 * 6**0.5 * exact.std()
    assert stats.chisquare(rows.reshape(6, 5, 10).sum(axis=(0, 2))).pvalue > 0.001


def test_a_shuffled_order_says_nothing_about_ranks_against_chi_square():
    subjects = [("q", f"d{rank}") for rank in range(6)]
    table = np.zeros((6, 6))
    for seed in range(3000):
        for rank, place in enumerate(positions(SHUFFLED, seed, subjects)):
            table[rank, place] += 1
    statistic = ((table - 500) ** 2 / 500).sum() * 5 / 6  # rows and columns add up to 3000
    assert stats.chi2.sf(statistic, 25) > 0.001


def test_a_shuffled_order_depends_on_the_seed_and_the_ids_alone():
    subjects = [(f"q{i % 3}", f"d{i}") for i in range(30)]
    order = dict(zip(subjects, positions(SHUFFLED, 7, subjects), strict=True))
    backwards = dict(zip(subjects[::-1], positions(SHUFFLED, 7, subjects[::-1]), strict=True))
    assert order == backwards
    fewer = dict(zip(subjects[:20], positions(SHUFFLED, 7, subjects[:20]), strict=True))
    for topic in ("q0", "q1", "q2"):  # documents that are added leave the others in their order
        here = [subject for subject in subjects[:20] if subject[0] == topic]
        assert sorted(here, key=fewer.__getitem__) == sorted(here, key=order.__getitem__)
    first = sorted(subjects, key=order.__getitem__)[:3]
    assert {topic for topic, _ in first} == {"q0", "q1", "q2"}  # people who begin at once begin with different topics


def test_a_shuffled_round_keeps_its_order_over_a_restart(location):
    log = open_log(location)
    open_round(log, Round(name="r", order=SHUFFLED, seed=1), [*some(20), *gold_of(2)])
    held = [place.document for place in lease(log, "ann", "r", 6)]
    assert held != sorted(held)
    log.close()
    log = open_log(location)
    assert [place.document for place in lease(log, "ann", "r", 6)] == held
    everything = [*held[:1]]
    answer(log, one(log, "ann", "r"))
    everything += [place.document for place in lease(log, "ann", "r", 22)]
    assert everything[:6] == held
    assert len({*everything}) == 22
    log.close()


def test_repeats_ask_the_same_person_again(log):
    open_round(log, Round(name="first", repeat_share=0.3, seed=1), some(20))
    repeats = []
    while not isinstance(got := lease(log, "ann"), NoLease):
        repeats += [got[0].document] * got[0].repeat
        answer(log, got[0])
    assert repeats
    assert len(set(repeats)) == len(repeats)
    assert len(log.labels()) == 20


def test_a_qualifying_round_must_be_passed_first(log):
    gold = [RoundItem("g", f"gold{i}", 0, role="gold", grade=1.0) for i in range(4)]
    open_round(log, Round(name="trial", passing=0.75), gold)
    open_round(log, Round(name="main", after="trial"), some(3))
    told = NoLease("ann first judges all documents of round 'trial'")
    assert lease(log, "ann", "main") == told
    for assessor, right in (("ann", 3), ("bob", 2)):
        for i in range(4):
            assert isinstance(lease(log, assessor, "main"), NoLease)
            answer(log, one(log, assessor, "trial"), 1.0 if i < right else 0.0)
    assert isinstance(lease(log, "ann", "main"), list)
    assert lease(log, "bob", "main").why == "bob did not pass round 'trial'"  # no count: it would tell gold


def test_nobody_passes_or_learns_gold_by_changing_answers_after_the_last_one(log):
    gold = [RoundItem("g", f"gold{i}", 0, role="gold", grade=1.0) for i in range(3)]
    open_round(log, Round(name="trial", passing=0.6), gold)
    open_round(log, Round(name="main", after="trial"), some(3))

    def say(who, number, grade, **more):
        event = Event(topic="g", document=f"gold{number}", grade=grade, assessor=who, round="trial", **more)
        log.add([event])
        return event

    for who in ("ann", "bob", "cat"):
        while not isinstance(got := lease(log, who, "trial"), NoLease):
            answer(log, got[0], 0.0)
            if who == "bob" and got[0].document == "gold0":
                say(who, 0, 1.0)  # a slip, changed before the end
            if who == "bob" and got[0].document != "gold0":
                say(who, int(got[0].document[4:]), 1.0)
    failed = NoLease("ann did not pass round 'trial'")
    for number in range(3):
        say("ann", number, 1.0)
        assert lease(log, "ann", "main") == failed
    wrong = say("cat", 0, 0.0)
    log.add([Event(kind="withdrawal", refers=wrong.id, assessor="cat")])
    say("cat", 0, 1.0)
    say("cat", 1, 1.0)
    assert lease(log, "cat", "main").why == "cat did not pass round 'trial'"
    assert isinstance(lease(log, "bob", "main"), list)
    say("bob", 0, 0.0), say("bob", 1, 0.0), say("bob", 2, 0.0)
    assert isinstance(lease(log, "bob", "main"), list)


def test_a_paused_round_hands_out_nothing_and_takes_labels(log):
    open_round(log, Round(name="first"), some(2))
    place = one(log, "ann")
    set_state(log, "first", "paused")
    assert lease(log, "ann", "first") == NoLease("round 'first' is paused")
    answer(log, place)
    set_state(log, "first", "open")
    assert one(log, "ann").document != place.document


def test_an_adaptive_round_is_told_the_label_that_stands(log):
    lists = {"q": {"one": ["a", "b", "c", "d"], "two": ["x", "y", "z", "w"]}}
    open_round(log, Round(name="first", strategy="move-to-front", lists=lists, overlap=1), [])
    given = []
    while not isinstance(got := lease(log, "ann"), NoLease):
        given.append(got[0].document)
        answer(log, got[0], float(got[0].document in "xyz"))
    assert sorted(given) == sorted("abcdxyzw")
    assert given.index("z") < given.index("c")  # the list that found relevant documents came first


def test_names_are_checked(log):
    open_round(log, Round(name="first", assessors=("ann", "bob")), some(2))
    with pytest.raises(DataError, match="is for ann, bob; 'eve' is not among them"):
        lease(log, "eve")
    with pytest.raises(DataError, match="there is no round 'second'; there are: 'first'"):
        lease(log, "ann", "second")
    with pytest.raises(DataError, match="there is a round 'first' already"):
        open_round(log, Round(name="first"), some(2))
    with pytest.raises(DataError, match="is not in round 'first'"):
        log.add([Event(topic="q", document="nowhere", grade=1, assessor="ann", round="first")])
    assert log.events() == []


def work_at_once(location, assessors, walking_away=0):
    """Every assessor a thread of its own; the first few walk away from a document now and then."""
    log = open_log(location)
    failures = []

    def person(number):
        draw = random.Random(number)
        try:
            while not isinstance(got := lease(log, f"a{number}", "first"), NoLease):
                if number < walking_away and draw.random() < 0.2:
                    return
                answer(log, got[0], float(draw.randrange(3)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=person, args=(number,)) for number in assessors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    assert not failures, failures[0]


FEW = 20, 40  # people and documents, in place of fifty and three hundred
FIFTY = pytest.param(50, 300, marks=pytest.mark.slow)


@pytest.mark.parametrize("location", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("leaving", [0, 0.1])
@pytest.mark.parametrize(("people", "documents"), [FEW, FIFTY])
def test_fifty_assessors_at_once(location, leaving, people, documents):
    log = open_log(location)
    open_round(log, Round(name="first"), some(documents, overlap=3))
    work_at_once(location, range(people), round(leaving * people))
    if leaving:
        expire(log)
        work_at_once(location, range(people, people + 10))
    labels = [(event.topic, event.document, event.assessor) for event in log.events()]
    assert len(labels) == 3 * documents
    assert len(set(labels)) == 3 * documents
    assert set(Counter((topic, document) for topic, document, _ in labels).values()) == {3}
    log.close()


def test_a_label_of_another_aspect_fills_no_place_and_keeps_to_no_scale(log):
    from cranfield.judging.rounds import answer as keep

    open_round(
        log, Round(name="r", scale=(0.0, 1.0)), [RoundItem("q", "a"), RoundItem("q", "gold", 0, 1.0, "gold", 1.0)]
    )
    place = one(log, "ann")
    said = {"topic": place.topic, "document": place.document, "assessor": "ann", "round": "r"}
    first, trust = Event(**said, grade=7, aspect="trust"), Event(**said, grade=5, aspect="trust")
    [outcome], [held] = keep(log, [first], "ann", "r", 1)
    assert (outcome.said, held.document) == ("kept", place.document)  # still to be judged
    label = Event(**said, grade=1)
    assert [each.said for each in keep(log, [label, trust], "ann", "r", 0)[0]] == ["kept", "kept"]
    keep(log, [Event(kind="withdrawal", refers=label.id, assessor="ann")], "ann", "r", 0)
    assert one(log, "ann").document == place.document

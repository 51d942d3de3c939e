"""Rounds that change while they are open: labels stay, assignments follow, every change is a sealed record."""

from __future__ import annotations

import random
import threading
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select, update

from cranfield.base.errors import CranfieldError, DataError
from cranfield.judging import Event
from cranfield.judging.round_changes import ChangeRequest, assign_topics, change_round
from cranfield.judging.round_plan import PRIORITY, SHUFFLED, NoLease, Round, RoundItem
from cranfield.judging.round_status import round_statuses, status
from cranfield.judging.rounds import answer, lease, open_round, set_state, topic_choices
from cranfield.store import tables
from cranfield.store.accounts import Accounts
from databases import location_of
from memory_log import open_any_log
from test_judge_promises import KINDS, PEOPLE, Clock, Scene, check_places, steps, tables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cranfield.judging import Log

pytestmark = pytest.mark.every_database


@pytest.fixture(params=KINDS)
def location(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    return location_of(request.param, tmp_path, server)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(location: str, clock: Clock) -> Iterator[Log]:
    opened = open_any_log(location, clock=clock)
    yield opened
    opened.close()


def some(n: int, topics: int = 1, overlap: int = 1) -> list[RoundItem]:
    return [RoundItem(f"q{i % topics}", f"d{i}", overlap) for i in range(n)]


def opened(log: Log, n: int = 4, topics: int = 1, overlap: int = 1, **plan: Any) -> None:
    open_round(log, Round(name="r", overlap=overlap, lease=100.0, **plan), some(n, topics, overlap))


def change(log: Log, **wishes: Any) -> Round:
    return change_round(log, "r", ChangeRequest(**wishes), "lea")


def judge(log: Log, who: str, n: int = 1) -> list[str]:
    """Let somebody judge n documents; return them."""
    documents = []
    for _ in range(n):
        got = lease(log, who, "r")
        assert isinstance(got, list), got
        said = {"topic": got[0].topic, "document": got[0].document, "assessor": who, "round": "r"}
        [outcome], _ = answer(log, [Event(**said, grade=1, repeat=got[0].repeat)], who, "r", 0)
        assert outcome.said == "kept", outcome
        documents.append(got[0].document)
    return documents


def states(log: Log) -> dict[tuple[str, bool], int]:
    with log.reading() as transaction:
        c = tables.places.c
        return dict(
            Counter((row.state, row.counted) for row in transaction.connection.execute(select(c.state, c.counted)))
        )


def history_of(log: Log) -> list[str]:
    return [each["what"] for each in round_statuses(log, "r")[0].changes]


def test_people_who_leave_return_their_leases_and_keep_their_labels(log: Log) -> None:
    opened(log, assessors=("ann", "bob"))
    [first] = judge(log, "ann")
    held = lease(log, "ann", "r")[0].document
    change(log, assessors=("bob", "cat"))
    with pytest.raises(DataError, match="is for bob, cat"):
        lease(log, "ann", "r")
    assert [each.document for each in lease(log, "cat", "r")] == [held]
    assert [label.document for label in log.labels()] == [first]
    assert history_of(log) == ["people: ann, bob → bob, cat"]


def test_more_labels_per_document_are_asked_of_others_and_late_labels_count(log: Log, clock: Clock) -> None:
    opened(log, 2)
    document = lease(log, "ann", "r")[0].document
    clock.pass_by(101)
    assert judge(log, "bob") == [document]  # the lease was over
    late = Event(topic="q0", document=document, grade=1, assessor="ann", round="r")
    log.add([late])
    assert states(log) == {("done", True): 1, ("extra", False): 1, ("free", True): 1}
    change(log, overlap=2)
    assert states(log) == {("done", True): 2, ("free", True): 2}
    assert judge(log, "cat") == judge(log, "dan")
    assert lease(log, "cat", "r") == NoLease("nothing is left for cat in round 'r'")


def test_fewer_labels_per_document_keep_labels_and_let_a_live_lease_be_finished(log: Log, clock: Clock) -> None:
    opened(log, 2, overlap=3)
    judge(log, "ann", 2)
    held = {who: lease(log, who, "r")[0].document for who in ("bob", "cat")}
    change(log, overlap=1)
    assert states(log) == {("done", True): 2, ("leased", False): 2}
    assert [each.document for each in lease(log, "bob", "r")] == [held["bob"]]
    assert judge(log, "bob") == [held["bob"]]
    assert states(log) == {("done", True): 2, ("leased", False): 1, ("extra", False): 1}
    clock.pass_by(101)
    assert isinstance(lease(log, "cat", "r"), NoLease)  # an expired lease that nobody waits for is not renewed
    assert isinstance(lease(log, "bob", "r"), NoLease)
    change(log, overlap=2)
    assert states(log) == {("done", True): 3, ("free", True): 1}


def test_topics_leave_and_return_with_their_labels(log: Log) -> None:
    opened(log, 6, topics=2)
    first = lease(log, "ann", "r")[0]
    other = "q1" if first.topic == "q0" else "q0"
    judge(log, "ann")
    change(log, topics=(other,))
    rest = judge(log, "bob", 3)
    assert {label.topic for label in log.labels() if label.document in rest} == {other}
    assert isinstance(lease(log, "ann", "r"), NoLease)
    change(log, topics=())
    assert len(judge(log, "cat", 2)) == 2
    assert isinstance(lease(log, "dan", "r"), NoLease)
    assert history_of(log) == [f"topics: all → {other}", f"topics: {other} → all"]


def test_the_order_changes_for_what_is_left(log: Log) -> None:
    opened(log, 12, order=SHUFFLED, seed=3)
    shuffled = [each.document for each in lease(log, "ann", "r", 12)]
    assert shuffled != [f"d{i}" for i in range(12)]
    change(log, assessors=("bob", "cat"))  # the leases return
    change(log, order=PRIORITY)
    assert [each.document for each in lease(log, "bob", "r", 3)] == ["d0", "d1", "d2"]
    assert judge(log, "bob") == ["d0"]
    change(log, order=SHUFFLED)
    left = [document for document in shuffled if document not in ("d0", "d1", "d2")]
    assert [each.document for each in lease(log, "cat", "r", 12)] == left


def test_a_deeper_pool_adds_documents_and_a_shallower_one_keeps_what_is_labelled(log: Log) -> None:
    opened(log, 4, order=PRIORITY, depth=4)
    assert judge(log, "ann") == ["d0"]
    change(log, pool=[("q0", f"d{i}") for i in range(6)], depth=6)
    assert sum(states(log).values()) == 6
    change(log, pool=[("q0", f"d{i}") for i in (1, 2)], depth=2)
    assert judge(log, "ann", 2) == ["d1", "d2"]
    assert isinstance(lease(log, "ann", "r"), NoLease)
    assert len(log.labels()) == 3
    change(log, pool=[("q0", f"d{i}") for i in range(4)], depth=4)
    assert judge(log, "ann") == ["d3"]
    assert history_of(log) == [
        "depth: 4 → 6; 2 documents added",
        "depth: 6 → 2; 4 documents dropped",
        "depth: 2 → 4; 2 documents taken back",
    ]


def test_an_adaptive_round_changes_its_topics_lists_and_labels(log: Log) -> None:
    lists = {topic: {"one": [f"{topic}{i}" for i in range(3)]} for topic in ("a", "b")}
    open_round(log, Round(name="r", strategy="move-to-front", lists=lists), [])
    judge(log, "ann")
    change(log, topics=("b",))
    assert all(document.startswith("b") for document in judge(log, "bob", 2))
    change(log, lists={"b": {"one": [f"b{i}" for i in range(5)]}}, depth=5)
    change(log, overlap=2)
    assert all(document.startswith("b") for document in judge(log, "cat", 5))
    counts = Counter((label.topic, label.document) for label in log.labels())
    assert sum(n for (topic, _), n in counts.items() if topic == "b") == 7
    with pytest.raises(DataError, match="move-to-front chooses the order"):
        change(log, order=SHUFFLED)


def skip(log: Log, who: str, document: str) -> None:
    log.add([Event(kind="skip", topic="q0", document=document, assessor=who, round="r")])


def test_a_document_that_everybody_skips_goes_back_to_the_lead(log: Log) -> None:
    opened(log, 2, assessors=("ann", "bob"), order=PRIORITY)
    for who in ("ann", "bob"):
        assert lease(log, who, "r")[0].document == "d0"
        skip(log, who, "d0")
        shown = [(each.topic, each.document, each.people) for each in round_statuses(log, "r")[0].skipped_by_all]
        assert shown == ([] if who == "ann" else [("q0", "d0", 2)])
    assert "skipped by everyone, for the lead to decide: q0 d0" in str(status(log))
    change(log, offer=[("q0", "d0")])
    assert round_statuses(log, "r")[0].skipped_by_all == []
    assert lease(log, "ann", "r")[0].document == "d0"
    for who in ("ann", "bob"):
        skip(log, who, "d0")
    change(log, drop=[("q0", "d0")])
    [row] = round_statuses(log, "r")
    assert (row.skipped_by_all, row.places, row.left) == ([], 1, 1)
    assert history_of(log) == ["1 document offered again", "1 document dropped"]


def test_topics_are_assigned_evenly_to_as_many_people_as_labels() -> None:
    sizes = {f"q{i}": 10 + i % 7 for i in range(30)}
    people = [f"a{i}" for i in range(7)]
    assigned = assign_topics(sizes, people, 2)
    assert all(len(set(names)) == 2 for names in assigned.values())
    loads = Counter(name for topic, names in assigned.items() for name in names for _ in range(sizes[topic]))
    assert max(loads.values()) - min(loads.values()) <= max(sizes.values())
    with pytest.raises(DataError, match="3 people"):
        assign_topics(sizes, people[:2], 3)


def test_people_get_their_topics_and_those_who_leave_pass_them_on(log: Log, clock: Clock) -> None:
    people = ("ann", "bob")
    opened(
        log,
        8,
        topics=4,
        assessors=people,
        topic_people=assign_topics(dict.fromkeys(["q0", "q1", "q2", "q3"], 2), people, 1),
    )
    before = judge(log, "ann", 3)
    assert len({label.topic for label in log.labels()}) == 2
    lease(log, "ann", "r")
    clock.pass_by(101)
    bobs = judge(log, "bob", 4)  # no document of a topic of another, even if its lease is over
    assert isinstance(lease(log, "bob", "r"), NoLease)
    plan = change(log, assessors=("bob", "cat"))
    assert set(plan.topic_people) == {"q0", "q1", "q2", "q3"}
    assert set(plan.topic_people.values()) <= {("bob",), ("cat",)}
    assert len(judge(log, "cat", 1)) == 1
    assert sorted({label.document for label in log.labels()}) == sorted(
        {*before, *bobs, *(label.document for label in log.labels())}
    )
    assert len(log.labels()) == 8
    assert history_of(log) == ["people: ann, bob → bob, cat; topics are assigned anew"]


def test_overlap_assigns_each_topic_to_more_people(log: Log) -> None:
    people = ("ann", "bob", "cat")
    opened(log, 6, topics=3, assessors=people, topic_people={"q0": ["ann"], "q1": ["bob"], "q2": ["cat"]})
    judge(log, "ann", 2)
    plan = change(log, overlap=2)
    assert all(len(names) == 2 for names in plan.topic_people.values())
    assert "ann" in plan.topic_people["q0"]  # she has begun it
    for who in people:
        while not isinstance(lease(log, who, "r"), NoLease):
            judge(log, who)
    assert Counter(label.document for label in log.labels()) == dict.fromkeys((f"d{i}" for i in range(6)), 2)
    plan = change(log, assessors=(*people, "dan"), overlap=1)
    assert {name for names in plan.topic_people.values() for name in names} <= set(people)  # all topics are begun
    change(log, topic_people={})
    assert history_of(log)[-1] == "topics are not assigned any more"


def test_more_labels_per_document_are_planned_after_a_document_was_asked_again(log: Log) -> None:
    opened(log, 4, repeat_share=0.9, gold_share=0.0)
    while not any(event.repeat for event in log.events()):
        judge(log, "ann")
    change(log, overlap=2)
    check_places(log, "0")
    while not isinstance(lease(log, "bob", "r"), NoLease):
        judge(log, "bob")
    assert {label.document for label in log.labels() if label.assessor == "bob"} == {f"d{i}" for i in range(4)}


def test_a_label_withdrawn_from_a_topic_that_was_left_out_asks_nobody_else(log: Log, clock: Clock) -> None:
    opened(log, 4, topics=2)
    while not (wrong := [event for event in log.events() if event.topic == "q1"]):
        judge(log, "ann")
    change(log, topics=("q0",))
    log.add([Event(kind="withdrawal", refers=wrong[0].id, assessor="ann")])
    assert ("leased", True) not in states(log)  # her own lease: she may label it again
    clock.pass_by(101)
    while not isinstance(last := lease(log, "bob", "r"), NoLease):
        judge(log, "bob")
    assert last.free_at is None
    assert not any(label.topic == "q1" for label in log.labels() if label.assessor == "bob")


def choices(log: Log, who: str) -> dict[str, tuple[int, bool]]:
    return {each.topic: (each.left, each.taken) for each in topic_choices(log, who, "r")}


def test_people_choose_topics_and_a_topic_is_taken_while_somebody_works_on_it(log: Log, clock: Clock) -> None:
    opened(log, 6, topics=3, choose_topics=True)
    assert choices(log, "ann") == {"q0": (2, False), "q1": (2, False), "q2": (2, False)}
    assert lease(log, "ann", "r") == NoLease("choose a topic of round 'r'")
    assert [each.topic for each in lease(log, "ann", "r", 2, "q1")] == ["q1", "q1"]
    assert choices(log, "bob") == {"q0": (2, False), "q1": (0, True), "q2": (2, False)}
    with pytest.raises(DataError, match="topic 'q1' is being judged by others"):
        lease(log, "bob", "r", 1, "q1")
    judge(log, "ann", 2)
    assert lease(log, "ann", "r") == NoLease("choose a topic of round 'r'")
    with pytest.raises(DataError, match="topic 'q1' has nothing left for bob"):
        lease(log, "bob", "r", 1, "q1")
    with pytest.raises(DataError, match="has no topic 'nowhere'"):
        lease(log, "bob", "r", 1, "nowhere")
    assert [each.topic for each in lease(log, "ann", "r", 2, "q0")] == ["q0", "q0"]
    assert [each.topic for each in lease(log, "ann", "r", 2, "q2")] == ["q2", "q2"]  # q0 is free again
    assert choices(log, "bob") == {"q0": (2, False), "q1": (0, False), "q2": (0, True)}
    assert [each.topic for each in lease(log, "bob", "r", 2, "q0")] == ["q0", "q0"]
    told = lease(log, "cat", "r")
    assert isinstance(told, NoLease)
    assert told.free_at is not None
    clock.pass_by(101)  # abandoned
    assert [each.topic for each in lease(log, "cat", "r", 2, "q2")] == ["q2", "q2"]
    judge(log, "cat", 2)
    assert [each.topic for each in lease(log, "cat", "r", 2, "q0")] == ["q0", "q0"]
    judge(log, "cat", 2)
    assert lease(log, "dan", "r") == NoLease("nothing is left for dan in round 'r'")


def test_gold_of_other_topics_does_not_show_up_where_topics_are_assigned_or_chosen(log: Log) -> None:
    gold = [RoundItem(f"q{i % 2}", f"gold{i}", 0, role="gold", grade=1.0) for i in range(4)]
    open_round(log, Round(name="r", choose_topics=True), [*some(8, 2), *gold])
    assert {each.topic for each in lease(log, "ann", "r", 6, "q1")} == {"q1"}
    assert {each.document for each in lease(log, "ann", "r", 6)} >= {"gold1", "gold3"}


def test_the_number_of_documents_left_in_a_topic_does_not_tell_gold_or_repeats(log: Log) -> None:
    gold = [RoundItem("q0", f"gold{i}", 0, role="gold", grade=1.0) for i in range(6)]
    open_round(log, Round(name="r", choose_topics=True, repeat_share=0.2, seed=2), [*some(12), *gold])
    lease(log, "ann", "r", 1, "q0")
    seen: list[tuple[str, int, int]] = []
    while True:
        before = choices(log, "ann")["q0"][0]
        if isinstance(got := lease(log, "ann", "r"), NoLease):
            break
        held = choices(log, "ann")["q0"][0]
        [document] = judge(log, "ann")
        after = choices(log, "ann")["q0"][0]
        seen.append((f"{'repeat ' * got[0].repeat}{document.rstrip('0123456789')}", held - before, after - held))
    assert {kind for kind, _, _ in seen} >= {"gold", "d", "repeat d"}
    assert all(change == 0 for _, change, _ in seen)  # a document that is handed out changes no number
    assert {change for kind, _, change in seen if "repeat" in kind} == {0}
    *others, last = [change for kind, _, change in seen if "repeat" not in kind]
    assert set(others) == {-1}
    assert last <= -1  # gold that is not asked any more
    assert choices(log, "ann")["q0"] == (0, False)


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({}, "nothing changes"),
        ({"overlap": 1}, "nothing changes"),
        ({"overlap": 3}, "3 labels per document need 3 people, and 2 are named"),
        ({"assessors": ("ann",), "overlap": 2}, "2 labels per document need 2 people, and 1 are named"),
        ({"topics": ("q9",)}, "has no topic 'q9'"),
        ({"topic_people": {"q0": ("ann",)}}, "topic 'q1' is assigned to nobody"),
        ({"topic_people": {"q0": ("ann",), "q1": ("eve",)}}, "assigned to 'eve', who is not among the people"),
        ({"topic_people": {"q0": ("ann", "bob"), "q1": ("ann",)}}, "expected 1 people, one per label, found 2"),
        ({"assign_topics": True, "choose_topics": True}, "take one of both"),
        ({"drop": [("q0", "nowhere")]}, "is not among the documents"),
        ({"offer": [("q0", "d0")]}, "was not skipped and not dropped"),
        ({"overlap": 0}, "overlap must be 1 or more"),
        ({"order": "backwards"}, "shuffled"),
    ],
)
def test_a_change_that_could_not_be_planned_is_refused_and_changes_nothing(
    log: Log, wishes: dict[str, Any], words: str
) -> None:
    opened(log, 4, topics=2, assessors=("ann", "bob"))
    before = tables_of(log)
    with pytest.raises(CranfieldError, match=words):
        change(log, **wishes)
    assert tables_of(log) == before


def test_a_closed_round_and_a_random_sample_do_not_change(log: Log) -> None:
    open_round(log, Round(name="r", sample="4 documents at random, seed 0"), some(4))
    with pytest.raises(DataError, match="its topics and its depth stay as they were drawn"):
        change(log, topics=("q0",))
    set_state(log, "r", "closed")
    with pytest.raises(DataError, match="is closed; reopen it"):
        change(log, overlap=2)


def test_a_plan_names_people_with_accounts_if_there_are_any(location: str) -> None:
    if "://" not in location and not location.endswith(".db"):
        pytest.skip("accounts are in databases")
    log = open_any_log(location)
    accounts = Accounts(log.database)  # type: ignore[attr-defined]
    for name, role in (("lea", "lead"), ("ann", "assessor"), ("vic", "viewer")):
        accounts.create(name, role, None)
    for stranger in ("eve", "vic", "Ann"):
        with pytest.raises(DataError, match=f"'{stranger}' has no account that may judge; there are: ann, lea"):
            open_round(log, Round(name="r", assessors=("ann", stranger)), some(2))
    open_round(log, Round(name="r", assessors=("ann", "lea")), some(2))
    with pytest.raises(DataError, match="'eve' has no account"):
        change(log, assessors=("ann", "eve"))
    log.close()


def test_a_changed_change_is_noticed(tmp_path: Any, clock: Clock) -> None:
    path = str(tmp_path / "labels.jsonl")
    log = open_any_log(path, clock=clock)
    opened(log)
    change(log, overlap=2)
    log.close()
    text = (tmp_path / "labels.jsonl").read_text()
    (tmp_path / "labels.jsonl").write_text(text.replace('"by": "lea"', '"by": "eve"'))
    with pytest.raises(DataError, match="this change was changed after it was written"):
        open_any_log(path).verify()
    database = open_any_log(str(tmp_path / "work.db"), clock=clock)
    opened(database)
    change(database, overlap=2)
    database.verify()

    def forge(transaction: Any) -> None:
        connection = transaction.connection
        definition = connection.execute(select(tables.round_changes.c.definition)).scalar_one()
        connection.execute(update(tables.round_changes).values(definition=definition.replace("lea", "eve")))

    database.write(forge)
    with pytest.raises(DataError, match="change of round '1/r' was changed after it was written"):
        database.verify()
    database.close()


class ChangingScene(Scene):
    """A scene in which the lead changes the round now and then."""

    def change(self) -> None:
        wishes: list[dict[str, Any]] = [
            {"overlap": self.draw.choice([1, 2, 3])},
            {"topics": self.draw.choice([(), ("q0",), ("q1",)])},
            {"order": self.draw.choice([SHUFFLED, PRIORITY])},
            {"assessors": self.draw.choice([(), tuple(PEOPLE), tuple(PEOPLE[:3])])},
            {"drop": [("q0", "d0")]},
            {"offer": [("q0", "d0"), ("q1", "d1")]},
            {"pool": [(f"q{i % 2}", f"d{i}") for i in range(self.draw.choice([4, 6, 8]))]},
        ]
        try:
            change_round(self.log, "r", ChangeRequest(**self.draw.choice(wishes)), "lea")
        except DataError as error:
            self.told.append(str(error))

    def ask(self) -> None:
        try:
            super().ask()
        except DataError as error:  # not among the people any more
            self.told.append(str(error))

    def add(self, **fields: Any) -> None:
        try:
            super().add(**fields)
        except DataError as error:
            self.told.append(str(error))


def play(location: str, seed: int, n: int) -> ChangingScene:
    clock, draw = Clock(), random.Random(seed)
    scene = ChangingScene(open_any_log(location, clock=clock), clock, draw)
    gold = [RoundItem("q0", f"gold{i}", 0, role="gold", grade=1.0) for i in range(2)]
    plan = Round(name="r", lease=100.0, gold_share=0.2, repeat_share=0.2, seed=seed, overlap=2, order=SHUFFLED)
    open_round(scene.log, plan, [*some(6, 2, 2), *gold])
    for _ in range(n):
        steps(scene, 6)
        scene.change()
        check_places(scene.log, scene.clock())
    return scene


def test_of_two_leads_who_saw_the_same_round_one_changes_it(log: Log) -> None:
    opened(log)
    change_round(log, "r", ChangeRequest(order=SHUFFLED), "lea", seen=0)
    with pytest.raises(DataError, match="someone else changed round 'r' meanwhile"):
        change_round(log, "r", ChangeRequest(overlap=2), "leo", seen=0)
    assert change_round(log, "r", ChangeRequest(overlap=2), "leo", seen=1).overlap == 2


@pytest.mark.parametrize("location", ["sqlite", "lines", "postgresql"], indirect=True)
def test_leads_change_a_round_at_once_while_people_judge(location: str) -> None:
    log = open_any_log(location)
    open_round(log, Round(name="r", order=SHUFFLED, overlap=2), some(12, 3, 2))
    failures: list[BaseException] = []
    changed: list[str] = []

    def at_once(work: Callable[[int, random.Random], None], number: int) -> None:
        draw = random.Random(number)
        try:
            for turn in range(8):
                work(turn, draw)
        except BaseException as error:
            failures.append(error)

    def lead(turn: int, draw: random.Random) -> None:
        wishes: list[dict[str, Any]] = [
            {"overlap": draw.choice([1, 2, 3])},
            {"topics": draw.choice([(), ("q0", "q1"), ("q1", "q2")])},
            {"assessors": draw.choice([(), ("p0", "p1", "p2"), ("p1", "p2", "p3")])},
            {"pool": [(f"q{i % 3}", f"d{i}") for i in range(draw.choice([6, 12, 18]))]},
        ]
        try:
            change_round(log, "r", ChangeRequest(**draw.choice(wishes)), f"lead-{draw.random()}")
            changed.append("r")
        except DataError:  # it is like that already, or more labels than people
            pass

    def person(turn: int, draw: random.Random, who: str) -> None:
        try:
            got = lease(log, who, "r")
            if not isinstance(got, NoLease):
                said = {"topic": got[0].topic, "document": got[0].document, "assessor": who, "round": "r"}
                answer(log, [Event(**said, grade=draw.randrange(2))], who, "r", 0)
        except DataError:  # not among the people any more
            pass

    works = [partial(person, who=f"p{number}") for number in range(4)] + [lead, lead]
    threads = [threading.Thread(target=at_once, args=each) for each in zip(works, range(6), strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    [row] = round_statuses(log, "r")
    assert len(row.changes) == len(changed) > 0
    check_places(log, "0")
    log.verify()
    log.close()


def without_places(tables: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    """The tables without the numbers of events: PostgreSQL uses one up for an event that is refused."""
    return tables | {"events": sorted((row[1:] for row in tables["events"]), key=repr)}


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 30))])
def test_a_changing_round_tells_the_same_story_on_every_kind_of_log(
    request: pytest.FixtureRequest, tmp_path: Any, seed: int
) -> None:
    stories = {}
    for kind in KINDS:
        folder = tmp_path / kind
        folder.mkdir()
        server = request.getfixturevalue("postgres") if kind == "postgresql" else None
        scene = play(location_of(kind, folder, server), seed, 8)
        stories[kind] = scene.told, without_places(tables_of(scene.log))
        if kind == "lines":
            again = open_any_log(scene.log.path, clock=Clock())  # type: ignore[attr-defined]
            assert without_places(tables_of(again)) == stories[kind][1]
            again.close()
        scene.log.verify()
        scene.log.close()
    for kind in KINDS[1:]:
        assert stories[kind] == stories[KINDS[0]], kind

"""What rounds promise whatever people do: held by random scenarios, on every kind of log, by one clock.

A scenario is a list of steps drawn from a seed. The kinds of logs must tell the same story of it, and a file of
lines read anew must come to the tables that the one in use has.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select

from cranfield.base.errors import DataError
from cranfield.judging import Event, current_events
from cranfield.judging.event import instant
from cranfield.judging.round_plan import NoLease, Round, RoundItem
from cranfield.judging.rounds import lease, open_round, set_state
from cranfield.judging.versions import all_versions, freeze, thaw
from cranfield.store import tables
from databases import KINDS as STORED
from databases import location_of
from memory_log import open_any_log

if TYPE_CHECKING:
    from cranfield.judging import Log

pytestmark = pytest.mark.every_database

KINDS = (*STORED[:2], "memory", *STORED[2:])
PEOPLE = ["ann", "bob", "cat", "dan"]
LEASE = 100.0


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> str:
        return instant(self.time)

    def pass_by(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class Scene:
    """A log in use: what was handed out and not answered, and all that was said."""

    log: Log
    clock: Clock
    draw: random.Random
    out: list[Any] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)

    def ask(self) -> None:
        got = lease(self.log, self.draw.choice(PEOPLE), "r", self.draw.choice([1, 1, 2]))
        if isinstance(got, NoLease):
            self.told.append(got)
            check_nothing(self.log, got, self.clock())
        else:
            self.out += got
            self.told.append([(each.assessor, each.document, each.slot, each.repeat, each.until) for each in got])

    def say(self, kind: str) -> None:
        if not self.out:
            return
        place = self.out[self.draw.randrange(len(self.out))]
        self.out = [each for each in self.out if each is not place]
        grade = float(self.draw.randrange(3)) if kind == "judgment" else None
        self.add(kind=kind, topic=place.topic, document=place.document, grade=grade, assessor=place.assessor,
                 repeat=place.repeat)  # fmt: skip

    def add(self, **fields: Any) -> None:
        name = f"e{len(self.ids):04d}"
        early = self.draw.choice([0, 0, 0, 50])  # a browser that was offline sends late
        when = instant(self.clock.time - timedelta(seconds=early))
        self.log.add([Event(id=name, round="r", time=when, **fields)])
        self.ids.append(name)

    def unasked(self) -> None:
        """A label of somebody who was not asked about the document."""
        number = self.draw.randrange(6)
        self.add(topic=f"q{number % 2}", document=f"d{number}", grade=1.0, assessor=self.draw.choice(PEOPLE))

    def withdraw(self) -> None:
        if self.ids:
            refers = self.draw.choice(self.ids)
            self.log.add([Event(kind="withdrawal", refers=refers, id=f"w{len(self.told)}-{refers}", time=self.clock())])
            self.told.append(refers)


def steps(scene: Scene, n: int) -> None:
    kinds = ["ask"] * 6 + ["judgment"] * 5 + ["skip", "cannot-judge", "withdraw", "time", "unasked"]
    for _ in range(n):
        step = scene.draw.choice(kinds)
        if step == "ask":
            scene.ask()
        elif step == "time":
            scene.clock.pass_by(scene.draw.choice([1, LEASE / 2, LEASE + 1]))
        elif step in ("withdraw", "unasked"):
            getattr(scene, step)()
        else:
            scene.say(step)
        scene.clock.pass_by(0.5)
        check_places(scene.log, scene.clock())


def rows_of(log: Log, table: Any) -> list[tuple[Any, ...]]:
    with log.reading() as transaction:
        return sorted(map(tuple, transaction.connection.execute(select(table))), key=repr)


def check_places(log: Log, now: str) -> None:
    """Labels and open leases within the overlap; nobody twice at a document, repeats apart; places hold what stands."""
    overlap = {row[1]: row[6] for row in rows_of(log, tables.items)}
    places = [dict(zip(tables.places.c.keys(), row, strict=True)) for row in rows_of(log, tables.places)]
    taken = Counter(
        each["item"]
        for each in places
        if each["slot"] < overlap[each["item"]]
        and (each["state"] == "done" or (each["state"] == "leased" and each["until"] >= now))
    )
    assert all(count <= overlap[item] for item, count in taken.items())
    people = Counter((each["item"], each["assessor"], each["repeat"]) for each in places if each["assessor"])
    assert not people or max(people.values()) == 1
    gone = {event.refers for event in log.events() if event.kind == "withdrawal"}
    answers = {event.id for event in log.events() if event.kind in ("judgment", "cannot-judge")} - gone
    filled = {each["event"] for each in places if each["state"] in ("done", "extra")}
    assert filled <= answers
    stand = {event.id for event in log.current_events().values() if event.round}
    assert stand <= filled  # a label that stands has its place, within the count or flagged


def check_nothing(log: Log, told: NoLease, now: str) -> None:
    """Nothing is said only when there is nothing, and when something comes free if that is so."""
    person = told.why.split(" for ")[1].split(" ")[0]
    items = {row[1]: row for row in rows_of(log, tables.items)}
    places = [dict(zip(tables.places.c.keys(), row, strict=True)) for row in rows_of(log, tables.places)]
    mine = {each["item"] for each in places if each["assessor"] == person and not each["repeat"]}
    wanted = {item: row[9] for item, row in items.items()}  # 0 for a document that a change left out
    open_to_me = [
        each
        for each in places
        if each["item"] not in mine and each["slot"] < items[each["item"]][6] and wanted[each["item"]]
    ]
    assert not [each for each in open_to_me if each["state"] == "free"]
    leased = [each["until"] for each in open_to_me if each["state"] == "leased"]
    assert all(until >= now for until in leased)
    assert told.free_at == min(leased, default=None)
    assert told.why.startswith("nothing is left" if not leased else "all documents that are left")


def play(location: str, seed: int, n: int, strategy: str = "") -> Scene:
    clock, draw = Clock(), random.Random(seed)
    scene = Scene(open_any_log(location, clock=clock), clock, draw)
    pool = [RoundItem(f"q{i % 2}", f"d{i}", draw.choice([1, 2])) for i in range(6)]
    gold = [RoundItem("q0", f"gold{i}", 0, role="gold", grade=1.0) for i in range(2)]
    lists = {
        f"q{t}": {"one": [f"d{i}" for i in range(t, 6, 2)], "two": [f"d{i}" for i in range(4 + t, -1, -2)]}
        for t in (0, 1)
    }
    plan = Round(name="r", lease=LEASE, gold_share=0.2, repeat_share=0.2, seed=seed, overlap=2, strategy=strategy,
                 lists=lists if strategy else {})  # fmt: skip
    open_round(scene.log, plan, gold if strategy else pool + gold)
    if strategy:
        scene.unasked = lambda: None  # type: ignore[method-assign]
    steps(scene, n)
    return scene


def tables_of(log: Log) -> dict[str, list[tuple[Any, ...]]]:
    return {name: rows_of(log, table) for name, table in tables.metadata.tables.items()}


@pytest.fixture
def anywhere(request, tmp_path):
    """A maker of locations of a kind, a new one at each call."""

    def make(kind: str, number: int) -> str:
        folder = tmp_path / str(number)
        folder.mkdir(exist_ok=True)
        return location_of(kind, folder, request.getfixturevalue("postgres") if kind == "postgresql" else None)

    return make


def same_story(anywhere, seed: int, n: int, kinds: tuple[str, ...], strategy: str = "") -> None:
    scenes = {kind: play(anywhere(kind, seed), seed, n, strategy) for kind in kinds}
    stories = {kind: (scene.told, tables_of(scene.log)) for kind, scene in scenes.items()}
    for scene in scenes.values():
        assert scene.log.current_events() == current_events(scene.log.events())
    first, *others = kinds
    for kind in others:
        assert stories[kind] == stories[first], kind
    again = open_any_log(scenes["lines"].log.path, clock=Clock())
    assert tables_of(again) == stories["lines"][1]
    for log in [again, *(scene.log for scene in scenes.values())]:
        log.close()


@pytest.mark.parametrize("seed", [0, 2, 3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 4, 5))])
def test_the_kinds_of_logs_tell_the_same_story_and_lines_replay_to_it(anywhere, seed):
    same_story(anywhere, seed, 60, KINDS if seed < 2 else KINDS[:3])


@pytest.mark.parametrize("seed", range(2))
def test_an_adaptive_round_keeps_its_promises(anywhere, seed):
    same_story(anywhere, seed, 50, KINDS if not seed else KINDS[:3], "move-to-front")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_stories(anywhere, seed):
    same_story(anywhere, seed, 150, KINDS, "" if seed % 3 else "move-to-front")


def some(n: int, overlap: int = 1) -> list[RoundItem]:
    return [RoundItem("q", f"d{i}", overlap) for i in range(n)]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=KINDS)
def location(request, tmp_path):
    """The location of a new log of each kind."""
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    return location_of(request.param, tmp_path, server)


@pytest.fixture
def timed(location, clock):
    """A log of each kind by a clock of the test's."""
    log = open_any_log(location, clock=clock)
    yield log
    log.close()


def label(log: Log, who: str, document: str, grade: float = 1.0, **more: Any) -> Event:
    event = Event(topic="q", document=document, grade=grade, assessor=who, round="r", **more)
    log.add([event])
    return event


def test_gold_that_somebody_walked_away_from_is_asked_again(timed, clock):
    gold = [RoundItem("q", "g", 0, role="gold", grade=1.0)]
    open_round(timed, Round(name="trial", passing=1.0, lease=LEASE), gold)
    open_round(timed, Round(name="r", after="trial"), some(1))
    assert lease(timed, "ann", "trial")[0].document == "g"
    clock.pass_by(LEASE + 1)
    assert lease(timed, "ann", "trial")[0].document == "g"
    timed.add([Event(topic="q", document="g", grade=1, assessor="ann", round="trial")])
    assert isinstance(lease(timed, "ann", "r"), list)


def test_who_passes_over_a_question_has_not_got_it_right(timed):
    open_round(timed, Round(name="trial", passing=1.0), [RoundItem("q", "g", 0, role="gold", grade=1.0)])
    open_round(timed, Round(name="r", after="trial"), some(1))
    timed.add([Event(kind="skip", topic="q", document="g", assessor="ann", round="trial")])
    assert lease(timed, "ann", "r").why == "ann did not pass round 'trial'"
    label(timed, "ann", "d0")
    states = Counter(row[5] for row in rows_of(timed, tables.places) if row[0] == "r")
    assert states == {"free": 1, "extra": 1}  # kept and flagged, but it takes no place


def test_gold_that_is_with_others_is_nothing_to_wait_for(timed):
    open_round(timed, Round(name="r", gold_share=1.0), [RoundItem("q", "g", 0, role="gold", grade=1.0)])
    assert isinstance(lease(timed, "ann", "r"), list)
    lease(timed, "bob", "r")
    timed.add([Event(topic="q", document="g", grade=1, assessor="bob", round="r")])
    assert lease(timed, "bob", "r") == NoLease("nothing is left for bob in round 'r'")


def test_a_withdrawn_change_of_mind_leaves_the_place_to_the_label_before(timed, clock):
    open_round(timed, Round(name="r", lease=LEASE), some(1))
    lease(timed, "ann", "r")
    first = label(timed, "ann", "d0", 1.0, time="2026-01-01")
    second = label(timed, "ann", "d0", 2.0, time="2026-01-02")
    timed.add([Event(kind="withdrawal", refers=second.id)])
    clock.pass_by(LEASE + 1)
    assert lease(timed, "bob", "r") == NoLease("nothing is left for bob in round 'r'")
    [place] = rows_of(timed, tables.places)
    assert place[tables.places.c.keys().index("event")] == first.id


def test_a_withdrawal_may_stand_before_what_it_takes_back(location):
    log = open_any_log(location)
    open_round(log, Round(name="r"), some(1))
    withdrawal = Event(kind="withdrawal", refers="one", id="w")
    log.add([withdrawal, Event(topic="q", document="d0", grade=1, assessor="ann", id="one", round="r")])
    assert log.current_events() == current_events(log.events()) == {}
    if location.endswith(".jsonl"):  # two files laid one behind the other
        with open(location, encoding="utf-8") as file:
            head, one, two = file.read().splitlines()
        with open(location, "w", encoding="utf-8") as file:
            file.write("\n".join([head, two, one]) + "\n")
        again = open_any_log(location)
        with again.reading() as transaction:
            assert transaction.connection.execute(select(tables.standing)).all() == []
        again.close()
    log.close()


def test_only_those_who_are_asked_fill_places(timed):
    open_round(timed, Round(name="r", assessors=("ann",), scale=(0.0, 1.0)), some(1))
    for who, grade, said in (
        ("eve", 1.0, "'eve' is not among them"),
        ("", 1.0, "a round needs an assessor"),
        ("ann", 2.0, "found 2"),
    ):
        with pytest.raises(DataError, match=said):
            label(timed, who, "d0", grade)
    assert timed.events() == []


def test_a_version_keeps_to_the_gold_that_there_was(timed):
    open_round(timed, Round(name="r"), [*some(3, 2), RoundItem("q", "g", 0, role="gold", grade=1.0)])
    for who, grades in {"ann": (1, 1, 0), "bob": (0, 0, 1)}.items():
        for number, grade in enumerate(grades):
            label(timed, who, f"d{number}", float(grade))
        label(timed, who, "g", float(who == "ann"))
    version, decided = freeze(timed, "spring", "gold-weighted")
    assert version.gold == ["r"]
    more = [RoundItem("q", f"d{i}", 0, role="gold", grade=float(i != 2)) for i in range(3)]
    open_round(timed, Round(name="later"), [each._replace(grade=1.0 - (each.grade or 0)) for each in more])
    assert thaw(timed, "spring").grades == decided.grades
    assert [each.name for each in all_versions(timed)] == ["spring"]


def test_a_round_that_is_closed_hands_out_nothing(timed):
    open_round(timed, Round(name="r"), some(1))
    set_state(timed, "r", "closed")
    assert lease(timed, "ann", "r") == NoLease("round 'r' is closed")


def test_a_round_to_be_passed_has_gold_and_comes_first(timed):
    with pytest.raises(DataError, match="'trial' has a pass mark but no gold to answer"):
        open_round(timed, Round(name="trial", passing=0.8), some(1))
    with pytest.raises(DataError, match="there is no round 'trial'"):
        open_round(timed, Round(name="r", after="trial"), some(1))
    open_round(timed, Round(name="trial"), some(1))
    with pytest.raises(DataError, match="'trial' is not a qualifying round"):
        open_round(timed, Round(name="r", after="trial"), some(1))

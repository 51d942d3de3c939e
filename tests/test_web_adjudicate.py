"""Deciding where people differ: the widest apart first, nobody's name, by keys, kept once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from browsers import EVIL, Watched
from cranfield.judging import Event
from cranfield.judging.agreement import disagreements
from cranfield.judging.disagreements import Disputes
from cranfield.judging.policies import decide, labels_of
from databases import location_of
from workbench import Served, example, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PEOPLE = ("quentin-zebra", "ursula-yak", "walter-xerus")
GRADES = {"d001": (0, 3, 0), "d002": (1, 1, 1), "d003": (0, 1, 1), "d004": (3, 1, 2), "d005": (2, 0, 0)}


def labels(topic: str = "101") -> list[Event]:
    return [
        Event(topic=topic, document=document, grade=grade, assessor=who, note=f"note {place}", sure=place != 1)
        for document, grades in GRADES.items()
        for place, (who, grade) in enumerate(zip(PEOPLE, grades, strict=True))
    ]


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    db = None
    if request.param == "postgresql":
        db = location_of(request.param, tmp_path, request.getfixturevalue("postgres"))
    with served(example(tmp_path / "w"), db) as opened:
        opened.bench.log.add(labels())
        yield opened


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    db = None
    if request.param == "postgresql":
        db = location_of(request.param, tmp_path, request.getfixturevalue("postgres"))
    folder = example(tmp_path / "w")
    with (folder / "documents.jsonl").open("a") as file:
        file.write(json.dumps({"id": EVIL, "title": EVIL, "text": EVIL}) + "\n")
    with served(folder, db) as opened:
        opened.bench.log.add(labels())
        yield opened


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Served]:
    with served(example(tmp_path / "w")) as opened:
        opened.bench.log.add(labels())
        yield opened


def case_of(site: Served, query: str = "") -> Any:
    return site.client("ann").get(f"/adjudicate.json{query}").json()["cases"][0]


def test_disputes_are_the_disagreements_without_what_is_decided(site: Served) -> None:
    log = site.bench.log
    found = Disputes(log)
    assert found.ready(30)

    def expected() -> list[tuple[str, str]]:
        stand = log.current_events()
        decided = {(key.topic, key.document) for key in stand if key.side == "adjudication"}
        pool = [(item.topic, item.document) for item in disagreements(labels_of(stand))]
        return [each for each in pool if each not in decided]

    assert [each.subject for each in found.open()] == expected()
    made = Event(kind="adjudication", topic="101", document="d001", grade=1, assessor="ann")
    model = Event(topic="101", document="d002", grade=3, assessor="llm", source="model")
    repeat = Event(topic="101", document="d002", grade=3, assessor=PEOPLE[0], repeat=True)
    later = Event(topic="102", document="d009", grade=3, assessor=PEOPLE[0])
    changed = Event(topic="101", document="d003", grade=1, assessor=PEOPLE[0])
    for event in (made, model, repeat, later, Event(topic="102", document="d009", grade=0, assessor="x"), changed):
        log.add([event])
        found.refresh()
        assert [each.subject for each in found.open()] == expected()
    for gone in (made, later):
        log.add([Event(kind="withdrawal", refers=gone.id)])
        found.refresh()
        assert [each.subject for each in found.open()] == expected()
    assert len(expected()) == 3
    assert found.by_topic() == {"101": 3}


def test_a_decision_is_kept_once_and_the_next_is_given(site: Served) -> None:
    lead = site.client("ann")
    found = lead.get("/adjudicate.json").json()
    assert (found["left"], found["decided"], found["topics"]) == (4, 0, {"101": 4})
    assert [case["item"]["document"] for case in found["cases"]] == ["d001", "d004"]
    event = {"id": "one", "topic": "101", "document": "d001", "grade": 2, "note": "read it", "seconds": 3.5}
    body = {"events": [event], "have": [["101", "d004"]], "n": 1}
    reply = lead.send("/adjudicate.json", body).json()
    assert [each["said"] for each in reply["outcomes"]] == ["kept"]
    assert [case["item"]["document"] for case in reply["cases"]] == ["d005"]
    assert (reply["left"], reply["decided"]) == (3, 1)
    again = lead.send("/adjudicate.json", body | {"events": [event | {"age": 60}]}).json()
    assert [each["said"] for each in again["outcomes"]] == ["repeated"]
    other = lead.send("/adjudicate.json", body | {"events": [event | {"grade": 1}]}).json()
    assert [(each["said"], each["reason"]) for each in other["outcomes"]] == [("refused", "id")]
    [made] = [each for each in site.bench.log.events() if each.kind == "adjudication"]
    assert (made.assessor, made.grade, made.note, made.seconds, made.list) == ("ann", 2, "read it", 3.5, "adjudicate")
    assert decide(site.bench.log.current_events(), "majority").grades["101"]["d001"] == 2
    back = {"events": [{"id": "two", "kind": "withdrawal", "refers": "one"}], "n": 2}
    assert lead.send("/adjudicate.json", back).json()["left"] == 4
    assert "d001" in lead.get("/adjudicate.json").json()["cases"][0]["item"]["document"]


def test_no_name_is_anywhere_and_the_order_is_drawn_by_lot(small: Served) -> None:
    small.bench.log.add(labels("102") + labels("103"))
    lead = small.client("ann")
    orders = set()
    for topic in ("101", "102", "103"):
        for document in GRADES:
            where = f"topic={topic}&document={document}"
            page, values = lead.get(f"/adjudicate?{where}").text, lead.get(f"/adjudicate.json?{where}")
            assert not any(name in text for name in PEOPLE for text in (page, values.text)), (topic, document)
            said = values.json()["cases"][0]["opinions"]
            assert [each["who"] for each in said] == ["A", "B", "C"]
            assert set(said[0]) == {"who", "grade", "sure", "note", "passage"}
            assert values.body == lead.get(f"/adjudicate.json?{where}").body
            orders.add(tuple(each["note"] for each in said))
    assert len(orders) > 2
    assert not any(name in lead.get("/adjudicate.csv").text for name in PEOPLE)


def test_two_leads_do_not_overwrite_each_other_unknowingly(small: Served) -> None:
    ann, eve = small.client("ann"), small.client("eve")
    about = {"topic": "101", "document": "d001"}
    assert (
        ann.send("/adjudicate.json", {"events": [{"id": "a", **about, "grade": 1}]}).json()["outcomes"][0]["said"]
        == "kept"
    )
    [refused] = eve.send("/adjudicate.json", {"events": [{"id": "e", **about, "grade": 3}]}).json()["outcomes"]
    assert refused["said"] == "refused"
    assert "decided it meanwhile: 1" in refused["why"]
    assert eve.post("/adjudicate", {**about, "grade": "3"}).status == 409
    [theirs] = eve.send("/adjudicate.json", {"events": [{"id": "w", "kind": "withdrawal", "refers": "a"}]}).json()[
        "outcomes"
    ]
    assert theirs["why"] == "it is somebody else's"
    shown = eve.get("/adjudicate.json?topic=101&document=d001").json()["cases"][0]["decision"]
    assert (shown["grade"], shown["id"]) == (1, "")
    reply = eve.send("/adjudicate.json", {"events": [{"id": "f", **about, "grade": 3, "overrule": True}]})
    assert reply.json()["outcomes"][0]["said"] == "kept"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"id": "x", "topic": "101", "document": "d001", "grade": 9}, "expected a grade of 0, 1, 2, 3"),
        ({"id": "x", "topic": "101", "document": "d099", "grade": 1}, "nobody has labelled"),
        ({"id": "x", "topic": "101", "document": "d001"}, "no grade"),
        ({"topic": "101", "document": "d001", "grade": 1}, "expected an id"),
        ({"id": "x", "topic": "101", "document": "d001", "grade": 1, "who": "me"}, "expected fields of"),
        ({"id": "x", "topic": "101", "document": "d001", "grade": 1, "age": -1}, "expected age of 0 or more"),
        ({"id": "x", "kind": "withdrawal", "refers": "nothing"}, "no such decision"),
        ("x", "expected a JSON object"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(small: Served, event: Any, words: str) -> None:
    place = small.bench.log.place()
    [outcome] = small.client("ann").send("/adjudicate.json", {"events": [event]}).json()["outcomes"]
    assert outcome["said"] == "refused"
    assert words in outcome["why"]
    assert small.bench.log.place() == place


def test_bad_requests_are_answered_in_words(small: Served, tmp_path: Path) -> None:
    lead = small.client("ann")
    assert "nobody has labelled" in lead.get("/adjudicate.json?topic=101&document=nope").json()["error"]
    assert lead.send("/adjudicate.json", {"events": "all"}).status == 400
    assert lead.send("/adjudicate.json", {"events": [], "account": "eve"}).status == 403
    with served(example(tmp_path / "none")) as empty:
        page = empty.client("ann").get("/adjudicate")
        assert (page.status, "There is no document on which people differ" in page.text) == (200, True)


def test_a_form_decides_without_scripts(small: Served) -> None:
    lead = small.client("ann")
    form = {"topic": "101", "document": "d001", "grade": "2", "id": "form", "of": "101"}
    reply = lead.post("/adjudicate", form)
    assert (reply.status, reply.headers["location"]) == (303, "/adjudicate?topic=101")
    page = lead.get("/adjudicate").text
    assert 'name="refers" value="form"' in page
    assert lead.post("/adjudicate", {"refers": "form"}).status == 303
    assert lead.get("/adjudicate.json").json()["left"] == 4


def test_several_are_decided_by_keys(anywhere: Served, browser: Any) -> None:
    name = f"{EVIL} {PEOPLE[0]}"
    anywhere.bench.log.add(
        [
            Event(topic="101", document=EVIL, grade=g, assessor=w, note=EVIL, passage=EVIL)
            for w, g in (("a", 0), (name, 3))
        ]
    )
    context = anywhere.context(browser, "ann", "lead")
    watched = Watched(context)
    page = watched.page
    page.goto("/adjudicate")
    page.locator("body[data-ready]").wait_for()
    assert page.locator("#doc-id").text_content() == EVIL
    assert page.locator("#opinions .said-note").first.text_content() == EVIL
    page.keyboard.press("2")
    page.locator("#doc-id", has_text="d001").wait_for()
    page.keyboard.press("n")
    page.keyboard.type("after 3 reads")
    page.keyboard.press("Enter")
    page.keyboard.press("3")
    page.locator("#doc-id", has_text="d004").wait_for()
    page.keyboard.press("z")
    page.locator("#doc-id", has_text="d001").wait_for()
    for key, following in (("1", "d004"), ("s", "d005"), ("0", "d003")):
        page.keyboard.press(key)
        page.locator("#doc-id", has_text=following).wait_for()
    page.keyboard.press("1")
    made_anew: list[str] = []  # the list is being made anew when it is first asked for

    def answer(route: Any) -> None:
        if route.request.method == "GET" and not made_anew:
            made_anew.append(route.request.url)
            route.fulfill(status=202, json={"state": "running"})
        else:
            route.continue_()

    page.route("**/adjudicate.json*", answer)
    page.get_by_role("button", name="Show them now").click()
    page.locator("#doc-id", has_text="d004").wait_for()
    page.keyboard.press("3")
    page.locator("#progress", has_text="0 to decide, 5 decided").wait_for()
    assert watched.said == []
    assert all(url.startswith(anywhere.url) for url in watched.requests)
    context.close()
    stand = {
        key.document: event for key, event in anywhere.bench.log.current_events().items() if key.side == "adjudication"
    }
    assert {name: event.grade for name, event in stand.items()} == {EVIL: 2, "d001": 1, "d003": 1, "d004": 3, "d005": 0}
    assert sum(event.kind == "withdrawal" for event in anywhere.bench.log.events()) == 1


def test_decisions_made_offline_are_sent_when_the_server_is_back(small: Served, browser: Any) -> None:
    context = small.context(browser, "ann", "lead", viewport={"width": 390, "height": 800})
    page = Watched(context).page
    page.goto("/adjudicate")
    page.locator("body[data-ready]").wait_for()
    context.set_offline(True)
    page.keyboard.press("2")
    page.keyboard.press("1")
    page.locator("#unsent", has_text="2 not sent yet").wait_for()
    context.set_offline(False)
    page.locator("#progress", has_text="2 to decide, 2 decided").wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    context.close()


@pytest.mark.parametrize("role", ["viewer", "assessor"])
def test_nobody_but_a_lead_sees_disagreements(small: Served, role: str) -> None:
    client = small.client(f"some-{role}", role)
    for path in (
        "/adjudicate",
        "/adjudicate.json",
        "/adjudicate.csv",
        f"/adjudicate?topic={quote('101')}&document=d001",
    ):
        assert client.get(path).status == 403
    assert client.send("/adjudicate.json", {"events": []}).status == 403

"""Preferring one of two: blind, sides drawn by lot and recorded, by keys, and never in qrels."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from scipy.stats import binomtest

from browsers import EVIL, Watched
from cranfield.base.errors import ConventionError, DataError, UnavailableError
from cranfield.judging import Event, current_events
from cranfield.judging.comparisons import PairComparison, PreferencePair
from cranfield.judging.label_import import as_preferences
from cranfield.judging.policies import PolicySettings, decide, policies
from cranfield.stats.sample_ratio import anytime_share, exact_share
from cranfield.workbench.pages.prefer import ByTopic, ComparisonResult
from databases import location_of
from workbench import Served, example, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LISTS = {"name": "taste", "kind": "lists", "one": "bm25", "other": "phrase", "depth": "5"}


@pytest.fixture(params=["sqlite", "postgresql"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    db = None
    if request.param == "postgresql":
        db = location_of(request.param, tmp_path, request.getfixturevalue("postgres"))
    with served(example(tmp_path / "w"), db) as opened:
        yield opened


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    db = None
    if request.param == "postgresql":
        db = location_of(request.param, tmp_path, request.getfixturevalue("postgres"))
    with served(example(tmp_path / "w"), db) as opened:
        yield opened


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    with served(example(tmp_path / "w")) as opened:
        yield opened


def opened(site: Served, **more: str) -> Any:
    reply = site.client("ann").send("/preferences.json", LISTS | more)
    assert reply.status == 200, reply.text
    return reply.json()


def said(client: Any, event: Any, name: str = "taste", **more: Any) -> Any:
    return client.send("/prefer.json", {"of": name, "events": [event], **more}).json()


def test_pairs_are_asked_once_a_person_on_sides_drawn_by_lot(both: Served) -> None:
    count = opened(both, overlap="2")["pairs"]
    bob = both.client("bob", "assessor")
    first = bob.get("/prefer.json").json()
    assert (first["mine"], first["all"], first["kind"]) == (0, count, "lists")
    asked = []
    shown = {pair["pair"]: pair for pair in first["pairs"]}
    for number in range(count):
        place = next(iter(shown))
        asked.append(place)
        pair = shown.pop(place)
        assert bob.get("/prefer.json").json()["pairs"][0] == pair  # the same when loaded again
        event = {
            "id": f"e{number}",
            "pair": place,
            "topic": pair["topic"],
            "said": ("left", "right", "same")[number % 3],
        }
        values = said(bob, event, have=list(shown))
        assert [each["said"] for each in values["outcomes"]] == ["kept"]
        shown |= {each["pair"]: each for each in values["pairs"]}
    assert sorted(asked) == list(range(count))
    assert values["why"] == "nothing is left for you to compare"
    log = [event for event in both.bench.log.events() if event.kind == "preference"]
    assert [event.grade for event in log] == [(1, -1, 0)[number % 3] for number in range(count)]
    assert {event.list for event in log} == {"comparison taste: document left"}
    assert {event.aspect for event in log} == {"result-list:taste"}
    assert {(event.document, event.other) for event in log} == {("bm25", "phrase"), ("phrase", "bm25")}
    cat = both.client("cat", "assessor")
    assert cat.get("/prefer.json").json()["mine"] == 0
    found = both.client("ann").get("/preferences.json?comparison=taste").json()
    ahead = sum(event.grade * (1 if event.document == "bm25" else -1) > 0 for event in log)
    assert (found["wins"]["one"], sum(found["wins"].values())) == (ahead, count)
    assert found["people"] == {"bob": count}
    assert found["sides"] == {"left": -(-count // 3), "right": (count + 1) // 3}


def test_the_side_on_the_left_is_the_one_that_the_log_has_as_document(site: Served) -> None:
    opened(site, kind="documents", name="docs")
    bob = site.client("bob", "assessor")
    for number in range(12):
        pair = bob.get("/prefer.json").json()["pairs"][0]
        said(bob, {"id": f"{number}", "pair": pair["pair"], "said": "left"}, "docs")
        event = site.bench.log.events()[-1]
        assert (event.document, event.other) == (pair["left"]["document"], pair["right"]["document"])
        assert (event.grade, event.aspect) == (1, "relevance")
    found = site.client("ann").get("/preferences.json?comparison=docs").json()
    assert found["wins"]["one"] + found["wins"]["other"] + found["wins"]["even"] == len(found["topics"])
    assert sum(each["one"] + each["other"] for each in found["topics"]) == 12
    assert decide(site.bench.log.current_events(), "bradley-terry").grades  # documents may become grades


def test_sides_and_orders_are_fair_lots() -> None:
    plan = PairComparison(
        name="x", kind="lists", one="a", other="b", pairs=tuple(PreferencePair(f"{i}", "a", "b") for i in range(400))
    )
    swaps = sum(plan.swapped("bob", place) for place in range(400))
    assert 160 < swaps < 240
    assert 120 < sum(plan.swapped("bob", place) == plan.swapped("cat", place) for place in range(400)) < 280
    assert plan.order("bob") != plan.order("cat")
    assert sorted(plan.order("bob")) == list(range(400))


def test_enough_people_have_compared_when_the_overlap_is_reached(site: Served) -> None:
    opened(site, topics="101")
    for name, left in (("bob", 1), ("cat", 0)):
        client = site.client(name, "assessor")
        pairs = client.get("/prefer.json").json()["pairs"]
        assert len(pairs) == left
        if pairs:
            said(client, {"id": name, "pair": pairs[0]["pair"], "said": "same"})
    back = {"id": "back", "kind": "withdrawal", "refers": "bob"}
    assert said(site.client("bob", "assessor"), back)["outcomes"][0]["said"] == "kept"
    assert len(site.client("cat", "assessor").get("/prefer.json").json()["pairs"]) == 1


def test_the_same_said_twice_is_one_preference(site: Served) -> None:
    opened(site, topics="101")
    bob, cat = site.client("bob", "assessor"), site.client("cat", "assessor")
    event = {"id": "one", "pair": 0, "topic": "101", "said": "left"}
    told = [said(bob, each)["outcomes"][0]["said"] for each in (event, event | {"age": 30}, event | {"said": "right"})]
    assert told == ["kept", "repeated", "refused"]
    assert (
        said(cat, {"id": "w", "kind": "withdrawal", "refers": "one"})["outcomes"][0]["why"] == "it is somebody else's"
    )
    assert len(site.bench.log.events()) == 1


def test_an_assessor_learns_no_run_and_no_result(site: Served) -> None:
    opened(site, one="bm25", other="fusion")
    bob = site.client("bob", "assessor")
    assert (
        said(site.client("zelda", "assessor"), {"id": "c", "pair": 3, "said": "left"})["outcomes"][0]["said"] == "kept"
    )
    for text in (bob.get("/prefer").text, bob.get("/prefer.json").text, bob.get("/prefer?comparison=taste").text):
        assert not any(word in text for word in ("bm25", "fusion", "zelda"))
    for path in ("/preferences", "/preferences.json?comparison=taste", "/preferences.csv?comparison=taste"):
        assert bob.get(path).status == 403
    assert bob.send("/preferences.json", LISTS).status == 403
    assert site.client("vic", "viewer").get("/prefer").status == 403
    opened(site, name="hers", assessors="zelda")
    assert [each["name"] for each in bob.get("/prefer.json").json()["comparisons"]] == ["taste"]
    assert bob.get("/prefer.json?comparison=hers").status == 400


def test_no_policy_makes_qrels_of_lists() -> None:
    about = {"kind": "preference", "topic": "q", "document": "bm25", "other": "dense", "grade": 1, "assessor": "bob"}
    events = [Event(**about, aspect=aspect) for aspect in ("result-list", "result-list:taste")]
    events.append(Event(topic="q", document="d", grade=1, assessor="bob"))
    for policy in policies():
        for aspect in ("relevance", "result-list", "result-list:taste"):
            with suppress(ConventionError, DataError):
                grades = decide(current_events(events), policy, PolicySettings(aspect=aspect)).grades
                assert {name for found in grades.values() for name in found} <= {"d"}, (policy, aspect)
    for policy in ("bradley-terry", "win-rate"):
        with pytest.raises(DataError, match="make no qrels"):
            decide(current_events(events), policy, PolicySettings(aspect="result-list:taste"))
    assert as_preferences(events) == b""
    for kind in ("judgment", "adjudication"):
        with pytest.raises(DataError, match="for preferences between result lists"):
            Event(kind=kind, topic="q", document="bm25", grade=1, aspect="result-list")


def test_wins_and_intervals_against_scipy() -> None:
    topics = [ByTopic(f"{i}", 1, 0, 0) for i in range(34)] + [ByTopic(f"l{i}", 0, 2, 1) for i in range(16)]
    found = ComparisonResult(
        "x", "lists", "A", "B", "open", 50, 1, [*topics, ByTopic("t", 1, 1, 0)], {"bob": 84}, 40, 44
    )
    exact = binomtest(34, 50)
    low, high = exact.proportion_ci(method="exact")
    assert found.interval == pytest.approx((low, high))
    assert found.p == pytest.approx(exact.pvalue)
    assert "A preferred on 34 of 50 decided topics (68%, 95% interval 53% to 80%" in found.to_dict()["verdict"]
    assert "1 topic is tied" in found.to_dict()["verdict"]
    early = replace(found, pairs=100)
    assert early.interval == anytime_share(34, 16)
    assert early.p > found.p
    assert "sequential sign test" in early.to_dict()["verdict"]
    assert exact_share(0, 0) == (0, 1)
    with pytest.raises(DataError):
        exact_share(3, -2)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"id": "x", "pair": 10**6, "said": "left"}, "expected a pair of 0 to"),
        ({"id": "x", "pair": "0", "said": "left"}, "expected a pair of 0 to"),
        ({"id": "x", "pair": 0, "said": "up"}, "expected left, right, same"),
        ({"id": "x", "pair": 0, "topic": "none", "said": "left"}, "is of topic"),
        ({"pair": 0, "said": "left"}, "expected an id"),
        ({"id": "x", "kind": "withdrawal", "refers": "nothing"}, "no such preference"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(site: Served, event: Any, words: str) -> None:
    opened(site)
    [outcome] = said(site.client("bob", "assessor"), event)["outcomes"]
    assert outcome["said"] == "refused"
    assert words in outcome["why"]
    assert site.bench.log.place() == 0


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"one": "bm25", "other": "bm25"}, "two runs"),
        ({"one": "nope"}, "there is no run"),
        ({"kind": "odd"}, "expected a kind"),
        ({"depth": "0"}, "expected depth of 1 to 50"),
        ({"topics": "101\nnope"}, "'nope' is not in both runs"),
        ({"name": " "}, "needs a name"),
        ({"overlap": "x"}, "expected a number"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_in_words(site: Served, plan: dict[str, str], words: str) -> None:
    reply = site.client("ann").send("/preferences.json", LISTS | plan)
    assert reply.status == 400
    assert words in reply.json()["error"]
    assert site.client("ann").get("/preferences.json").json() == {"comparisons": []}


def test_a_comparison_is_paused_and_closed(site: Served) -> None:
    opened(site)
    lead, bob = site.client("ann"), site.client("bob", "assessor")
    assert "already" in lead.send("/preferences.json", LISTS).json()["error"]
    lead.send("/preferences/state.json", {"comparison": "taste", "state": "paused"})
    assert bob.get("/prefer.json").json()["why"] == "there is nothing to compare"
    assert bob.get("/prefer?comparison=taste").status == 200
    assert said(bob, {"id": "x", "pair": 0, "said": "left"})["outcomes"][0]["why"] == "comparison 'taste' is paused"
    assert bob.post("/prefer", {"of": "taste", "pair": "0", "said": "left"}).status == 409
    assert lead.send("/preferences/state.json", {"comparison": "taste", "state": "odd"}).status == 400
    lead.send("/preferences/state.json", {"comparison": "taste", "state": "open"})
    assert bob.post("/prefer", {"of": "taste", "pair": "0", "said": "left"}).status == 303
    assert lead.get("/preferences.csv?comparison=taste").text.startswith("topic,bm25,phrase,neither\n")


def test_a_database_that_is_away_refuses_nothing_for_good(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(site)

    def away(work: Any) -> Any:
        raise UnavailableError("the disk is full")

    event = {"id": "x", "pair": 0, "said": "left"}
    bob = site.client("bob", "assessor")
    with monkeypatch.context() as patch:
        patch.setattr(site.bench.log, "write", away)
        reply = bob.send("/prefer.json", {"of": "taste", "events": [event]})
    assert (reply.status, reply.json()["error"]) == (503, "the disk is full")
    assert said(bob, event)["outcomes"][0]["said"] == "kept"


def test_several_are_preferred_by_keys(anywhere: Served, browser: Any) -> None:
    opened(anywhere, kind="documents", name=EVIL)
    context = anywhere.context(browser, "bob", "assessor")
    watched = Watched(context)
    page = watched.page
    page.goto("/prefer")
    page.locator("body[data-ready]").wait_for()
    seen = []
    for key in ("ArrowLeft", "ArrowRight", "=", "ArrowLeft", "z", "ArrowRight", "ArrowLeft"):
        before = (page.locator("#left-title").text_content(), page.locator("#right-title").text_content())
        page.keyboard.press("ArrowDown")
        page.keyboard.press(key)
        if key == "z":
            seen.pop()
        else:
            seen.append((*before, {"ArrowLeft": 1, "ArrowRight": -1, "=": 0}[key]))
        page.locator("#progress", has_text=f"{len(seen)} of").wait_for()
    assert watched.said == []
    assert all(url.startswith(anywhere.url) for url in watched.requests)
    context.close()
    stand = sorted(anywhere.bench.log.current_events().values(), key=lambda event: event.time)
    titles = [(anywhere.site.document(e.document).title, anywhere.site.document(e.other).title, e.grade) for e in stand]  # type: ignore[union-attr]
    assert titles == seen
    assert len(stand) == 5


def test_a_phone_offline_keeps_preferences_until_the_server_is_back(site: Served, browser: Any) -> None:
    opened(site)
    context = site.context(browser, "bob", "assessor", viewport={"width": 390, "height": 800})
    page = Watched(context).page
    page.goto("/prefer")
    page.locator("body[data-ready]").wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    context.set_offline(True)
    page.get_by_role("button", name="A is better").click()
    page.wait_for_timeout(600)
    page.get_by_role("button", name="neither").click()
    page.locator("#unsent", has_text="2 not sent yet").wait_for()
    context.set_offline(False)
    page.locator("#progress", has_text="2 of").wait_for()
    context.close()
    assert sorted(event.grade or 0 for event in site.bench.log.events()) == [0, 1]

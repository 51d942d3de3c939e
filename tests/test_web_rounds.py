"""The lead's pages: a round planned, opened, watched, paused and closed; what is frozen and what changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browsers import Watched
from cranfield.judging.event import Event
from cranfield.judging.rounds import lease
from workbench import Served, example, served

if TYPE_CHECKING:
    from collections.abc import Iterator

PLAN = {"runs": ["bm25", "fusion"], "depth": "3", "again": "yes", "overlap": "2", "strategy": "depth"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    with served(example(tmp_path / "w")) as opened:
        opened.account("bob", "assessor")
        yield opened


def waited(ask: Any) -> Any:
    """The JSON of a page whose job is done."""
    for _ in range(600):
        values = ask()
        if (values.get("plan") or values).get("state") != "running":
            return values
    raise AssertionError("it is still being worked out")


def test_a_round_is_planned_opened_watched_and_closed(site: Served) -> None:
    lead, _ = site.client("ann"), site.client("bob", "assessor")
    plan = waited(lambda: lead.get("/rounds/new.json?look=1&runs=bm25&runs=fusion&depth=3&overlap=2&again=yes").json())[
        "plan"
    ]
    documents = plan["answer"]["documents"]
    assert plan["answer"]["labels"] == 2 * documents
    assert plan["answer"]["hours"] > 0
    opened = lead.send("/rounds/new.json", {**PLAN, "name": "first", "assessors": ["ann", "bob"], "lease": "5"})
    assert opened.json() == {"name": "first"}
    [row] = lead.get("/rounds.json").json()["rounds"]
    assert (row["name"], row["state"], row["documents"], row["places"]) == ("first", "open", documents, 2 * documents)
    assert row["hours_left"] == pytest.approx(plan["answer"]["hours"], abs=0.01)  # one figure, in the plan and after it
    [one] = lease(site.bench.log, "bob", "first")
    site.bench.log.add(
        [Event(topic=one.topic, document=one.document, grade=2, assessor="bob", round="first", seconds=9)]
    )
    lease(site.bench.log, "ann", "first", 2)
    row = lead.get("/round.json?name=first").json()
    assert (row["done"], row["out"], row["left"]) == (1, 2, 2 * documents - 3)
    assert {person["assessor"]: person["done"] for person in row["people"]} == {"ann": 0, "bob": 1}
    assert row["hours_left"] == pytest.approx((row["left"] + row["out"]) * 9 / 3600, abs=0.01)
    assert lead.post("/round", {"name": "first", "state": "paused", "before": "open"}).status == 303
    assert lead.get("/round.json?name=first").json()["state"] == "paused"
    late = lead.send("/round.json", {"name": "first", "state": "closed", "before": "open"})
    assert (late.status, "paused by now" in late.json()["error"]) == (409, True)
    assert lead.get("/rounds.csv").text.splitlines()[1].startswith("first,paused,1,")


def test_gold_comes_from_what_is_known_and_stays_out_of_the_pool(site: Served) -> None:
    lead = site.client("ann")
    answer = lead.send(
        "/rounds/new.json",
        {
            **PLAN,
            "name": "g",
            "gold": "collection",
            "gold_count": "7",
            "gold_share": "10",
            "repeat_share": "5",
            "passing": "80",
        },
    )
    assert answer.status == 200, answer.text
    row = lead.get("/round.json?name=g").json()
    assert row["gold"] == 7
    assert (row["plan"]["gold_share"], row["plan"]["repeat_share"], row["plan"]["passing"]) == (0.1, 0.05, 0.8)
    assert row["plan"]["scale"] == [0, 1, 2, 3]


def test_a_strategy_that_learns_names_documents_as_labels_come(site: Served) -> None:
    lead = site.client("ann")
    assert lead.send("/rounds/new.json", {**PLAN, "strategy": "move-to-front", "name": "mtf"}).status == 200
    assert lead.get("/round.json?name=mtf").json()["documents"] == 0
    assert len(lease(site.bench.log, "bob", "mtf")) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": " "}, "needs a name"),
        ({"depth": "none"}, "depth"),
        ({"runs": ["nothing"]}, "no run 'nothing'"),
        ({"strategy": "guess"}, "no pooling strategy"),
        ({"gold_share": "200"}, "percent"),
        ({"passing": "80"}, "gold"),
        ({"lease": "soon"}, "expected a number as lease"),
        ({"after": "nowhere"}, "no round 'nowhere'"),
        ({"gold": "log@nothing"}, "no version"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_in_words(site: Served, change: dict[str, Any], words: str) -> None:
    reply = site.client("ann").send("/rounds/new.json", {**PLAN, "name": "x", **change})
    assert reply.status == 400
    assert words in reply.json()["error"]
    assert site.client("ann").get("/rounds.json").json()["rounds"] == []


def test_the_order_of_a_round_without_a_seed_cannot_be_computed_by_assessors(site: Served) -> None:
    seeds = []
    for name, seed in (("one", ""), ("two", ""), ("three", "5")):
        assert (
            site.client("ann").send("/rounds/new.json", {**PLAN, "name": name, "again": "yes", "seed": seed}).status
            == 200
        )
        with site.bench.log.reading() as transaction:
            seeds.append(transaction.find_round(name)[0].seed)
    assert seeds[2] == 5
    assert len(set(seeds)) == 3
    assert 0 not in seeds


def test_a_round_is_opened_once_under_a_name(site: Served) -> None:
    lead = site.client("ann")
    assert lead.send("/rounds/new.json", {**PLAN, "name": "one"}).status == 200
    again = lead.send("/rounds/new.json", {**PLAN, "name": "one"})
    assert again.status == 400
    assert "one" in again.json()["error"]


def test_an_empty_workspace_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with served(tmp_path / "w") as site:
        lead = site.client("ann")
        values = lead.get("/index.json").json()
        assert "no documents yet" in values["next"][0]["said"]
        for path in ("/", "/rounds", "/rounds/new", "/versions", "/diff", "/people", "/me"):
            assert lead.get(path).status == 200, path


def test_versions_are_frozen_read_back_and_compared(site: Served) -> None:
    lead = site.client("ann")
    log = site.bench.log
    Path(str(site.bench.qrels)).unlink()
    assert lead.post("/versions", {"name": "v0", "policy": "latest"}).status == 400
    log.add(
        [
            Event(topic="101", document="d002", grade=1, assessor="bob"),
            Event(topic="101", document="d024", grade=0, assessor="bob"),
        ]
    )
    frozen = lead.send("/versions.json", {"name": "v1", "policy": "latest", "note": "first"}).json()
    assert frozen["documents"] == 2
    assert lead.get("/version.csv?name=v1").text == "topic,document,grade\n101,d002,1\n101,d024,0\n"
    assert lead.get("/version.json?name=v1").json()["hash"] == frozen["hash"]
    log.add([Event(topic="101", document="d002", grade=3, assessor="bob")])
    found = waited(lambda: lead.get("/diff.json?a=v1").json())
    assert found["state"] == "ready", found
    assert "d002" in str(found["answer"]), found["answer"]
    assert lead.get("/version?name=nothing").status == 400


def test_a_large_version_is_frozen_and_computed_again_by_a_worker(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cranfield.workbench.pages import versions

    monkeypatch.setattr(versions, "SMALL", 0)
    lead = site.client("ann")
    Path(str(site.bench.qrels)).unlink()
    site.bench.log.add([Event(topic="101", document="d002", grade=1, assessor="bob")])
    frozen = lead.send("/versions.json", {"name": "v1", "policy": "latest"}).json()
    assert frozen == {"name": "v1", "hash": frozen["hash"], "documents": 1, "notes": []}
    again = lead.send("/versions.json", {"name": "v1", "policy": "latest"})
    assert (again.status, "there is a version 'v1' already" in again.text) == (400, True)
    [file] = (Path(site.bench.state) / "versions").iterdir()
    assert frozen["hash"] == f"sha256:{file.name}"
    cached = lead.get("/version.json?name=v1").json()
    assert (cached["topics"], cached["grades"]) == (1, {"1": 1})
    content = file.read_bytes()
    file.write_bytes(content.replace(b"1.0", b"2.0"))  # somebody changed it
    assert "Their hash is correct" not in lead.get("/version?name=v1").text
    assert waited(lambda: lead.get("/version.json?name=v1").json())
    assert file.read_bytes() == content
    assert lead.get("/version.json?name=v1").json() == cached
    assert lead.get("/version.csv?name=v1").text == "topic,document,grade\n101,d002,1\n"


def test_what_changed_since_a_version_is_told_by_its_own_policy(site: Served) -> None:
    lead = site.client("ann")
    said = {"bob": 1, "cat": 1, "eve": 3}
    Path(str(site.bench.qrels)).unlink()
    site.bench.log.add([Event(topic="101", document="d002", grade=g, assessor=who) for who, g in said.items()])
    assert lead.send("/versions.json", {"name": "v1", "policy": "majority"}).status == 200
    found = waited(lambda: lead.get("/diff.json?a=v1").json())["answer"]
    assert (found["changed"], found["same"]) == ([], 1)


def test_an_assessor_at_work_sees_only_their_own_labels(site: Served) -> None:
    lead, assessor, viewer = site.client("ann"), site.client("bob", "assessor"), site.client("vic", "viewer")
    log = site.bench.log
    log.add(
        [
            Event(topic="1", document="a", grade=1, assessor="bob"),
            Event(topic="1", document="a", grade=3, assessor="cat"),
        ]
    )
    assert lead.send("/versions.json", {"name": "v1", "policy": "latest"}).status == 200
    path = "/label.json?topic=1&document=a"
    assert len(assessor.get(path).json()["events"]) == 2
    assert lead.send("/rounds/new.json", {**PLAN, "name": "r"}).status == 200
    assert [event["assessor"] for event in assessor.get(path).json()["events"]] == ["bob"]
    assert "cat" not in assessor.get("/label.csv?topic=1&document=a").text
    assert len(lead.get(path).json()["events"]) == 2
    assert assessor.get("/version.csv?name=v1").status == 403
    assert assessor.get("/diff?a=v1").status == 403
    assert viewer.get("/version?name=v1").status == 200


def test_a_document_is_shown_as_text_with_the_words_of_the_query_marked(site: Served) -> None:
    viewer = site.client("vic", "viewer")
    shelf = site.site.shelf()
    assert shelf is not None
    identity = next(iter(shelf.ids()))
    page = viewer.get(f"/document?id={identity}")
    assert page.status == 200
    assert viewer.get("/document.json?id=no%2Fsuch").json()["error"].startswith("the collection has no document")
    assert viewer.get("/document").status == 400


def test_a_lead_opens_a_round_in_the_browser_and_sees_it_move(site: Served, browser: Any) -> None:
    seen = Watched(site.context(browser, "ann", "lead"))
    page = seen.page
    page.goto("/rounds/new")
    page.get_by_role("spinbutton", name="Depth").fill("2")
    page.get_by_role("button", name="Estimate the cost").click()
    page.get_by_text("hours of one person").wait_for()
    page.get_by_label("Name of the round").fill("spring")
    page.get_by_role("button", name="Open the round").click()
    page.get_by_role("heading", name="Round spring").wait_for()
    [one] = lease(site.bench.log, "bob", "spring")
    site.bench.log.add([Event(topic=one.topic, document=one.document, grade=1, assessor="bob", round="spring")])
    page.get_by_role("rowheader", name="bob").wait_for(timeout=15_000)
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Reopen").wait_for()
    assert seen.said == []
    assert all(url.startswith(site.url) for url in seen.requests)


def changed(lead: Any, **fields: Any) -> Any:
    reply = lead.send("/round/change.json", {"name": "r", **fields})
    assert reply.status == 200, reply.text
    return lead.get("/round.json?name=r").json()


def test_programs_change_a_round_field_by_field(site: Served) -> None:
    lead = site.client("ann")
    for name in ("bob", "cat"):
        site.client(name, "assessor")
    lead.send("/rounds/new.json", {**PLAN, "name": "r", "assessors": ["ann", "bob"]})
    before = lead.get("/round.json?name=r").json()
    assert (before["plan"]["order"], before["plan"]["depth"]) == ("shuffled", 3)
    row = changed(lead, assessors=["ann", "bob", "cat"], overlap=3)
    assert row["places"] == 3 * before["documents"]
    topics = ["101", "102"]
    few = changed(lead, topics=topics)
    assert few["places"] < row["places"]
    row = changed(lead, topics=[], order="priority", overlap="1")
    assert (row["places"], row["plan"]["order"]) == (before["documents"], "priority")
    deeper = changed(lead, depth="4")
    assert deeper["documents"] > before["documents"]
    assert changed(lead, depth="2")["places"] < before["documents"]
    assigned = changed(lead, topics_by="even")["plan"]["topic_people"]
    assert {name for names in assigned.values() for name in names} == {"ann", "bob", "cat"}
    named = [f"{topic} = bob" for topic in assigned]
    assert set(map(tuple, changed(lead, topics_by="named", topic_people=named)["plan"]["topic_people"].values())) == {
        ("bob",)
    }
    row = changed(lead, topics_by="choice")
    assert (row["plan"]["choose_topics"], row["plan"]["topic_people"]) == (True, {})
    assert [each["by"] for each in row["changes"]] == ["ann"] * 8
    late = lead.send("/round/change.json", {"name": "r", "overlap": "2", "changes": "1"})
    assert late.status == 409


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"assessors": ["eve"]}, "has no account"),
        ({"overlap": "3"}, "need 3 people"),
        ({"overlap": "many"}, "overlap"),
        ({"topics": ["nowhere"]}, "no topic"),
        ({"order": "backwards"}, "shuffled"),
        ({"topics_by": "luck"}, "expected topics_by"),
        ({"topics_by": "named", "topic_people": "101"}, "TOPIC = NAME"),
        ({}, "nothing changes"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_in_words(site: Served, fields: dict[str, Any], words: str) -> None:
    lead = site.client("ann")
    lead.send("/rounds/new.json", {**PLAN, "name": "r", "overlap": "1", "assessors": ["ann"]})
    reply = lead.send("/round/change.json", {"name": "r", **fields})
    assert (reply.status, words in reply.json()["error"]) == (400, True), reply.text
    assert lead.get("/round.json?name=r").json()["changes"] == []


def test_people_are_named_by_accounts_and_no_more_labels_than_people_are_planned(site: Served) -> None:
    lead = site.client("ann")
    stranger = lead.send("/rounds/new.json", {**PLAN, "name": "r", "assessors": ["ann", "eve"]})
    assert (stranger.status, "'eve' has no account" in stranger.json()["error"]) == (400, True)
    many = lead.send("/rounds/new.json", {**PLAN, "name": "r", "assessors": ["ann"]})
    assert (many.status, "2 labels per document need 2 people" in many.json()["error"]) == (400, True)
    plan = {**PLAN, "name": "r", "overlap": "3"}
    everybody = lead.send("/rounds/new.json", plan)
    assert (everybody.status, "need 3 people, and 2 may judge here" in everybody.json()["error"]) == (400, True)
    assert lead.get("/rounds.json").json()["rounds"] == []
    assert lead.send("/people/invite.json", {"role": "viewer"}).status == 200
    assert lead.send("/rounds/new.json", plan).status == 400
    assert lead.send("/people/invite.json", {"role": "assessor"}).status == 200
    assert lead.send("/rounds/new.json", plan).status == 200
    more = lead.send("/round/change.json", {"name": "r", "overlap": "4"})
    assert (more.status, "need 4 people, and 3 may judge here" in more.json()["error"]) == (400, True)


def test_a_lead_decides_about_what_everybody_skipped(site: Served) -> None:
    lead, bob = site.client("ann"), site.client("bob", "assessor")
    lead.send("/rounds/new.json", {**PLAN, "name": "r", "overlap": "1", "assessors": ["bob"]})
    for turn, what in enumerate(("offer", "drop", "judge")):
        [row] = bob.get("/judge.json?round=r&ahead=1").json()["items"]
        about = {"topic": row["topic"], "document": row["document"]}
        skip = {"round": "r", "events": [{**about, "id": f"skip{turn}", "kind": "skip"}], "n": 0}
        assert bob.send("/judge.json", skip).json()["outcomes"][0]["said"] == "kept"
        [stuck] = lead.get("/round.json?name=r").json()["skipped_by_all"]
        assert stuck == {**about, "people": 1}
        assert "Skipped by everyone" in lead.get("/round?name=r").text
        assert lead.post("/round/skipped", {"name": "r", "what": what, **about}).status == 303
        assert lead.get("/round.json?name=r").json()["skipped_by_all"] == []
    assert len(lead.get("/round.json?name=r").json()["changes"]) == 3


def test_assessors_choose_topics_in_the_browser_and_a_lead_changes_the_round(site: Served, browser: Any) -> None:
    lead = site.client("ann")
    site.client("bob", "assessor")
    lead.send("/rounds/new.json", {**PLAN, "name": "r", "overlap": "1", "topics_by": "choice"})
    seen = Watched(site.context(browser, "bob", "assessor"))
    page = seen.page
    page.goto("/judge?round=r")
    page.get_by_role("link", name="Choose a topic").click()
    page.get_by_role("button", name="Judge topic 102").click()
    page.get_by_text("topic 102").first.wait_for()
    assert site.client("cat", "assessor").get("/judge/topics.json?round=r").json()["topics"][1]["taken"] is True
    page.get_by_role("link", name="another topic").click()
    page.get_by_role("button", name="Judge topic 101").click()
    page.get_by_text("topic 101").first.wait_for()
    lead_page = Watched(site.context(browser, "ann", "lead")).page
    lead_page.goto("/round?name=r")
    lead_page.get_by_text("Change the round").first.click()
    lead_page.get_by_label("Order").select_option("priority")
    lead_page.get_by_label("bob").check()
    lead_page.get_by_label("Topics go to").select_option("even")
    lead_page.get_by_role("button", name="Change the round").click()
    lead_page.get_by_text("people do not choose their topics any more").wait_for()
    plan = lead.get("/round.json?name=r").json()["plan"]
    assert (plan["assessors"], plan["order"], set(map(tuple, plan["topic_people"].values()))) == (
        ["bob"],
        "priority",
        {("bob",)},
    )
    assert seen.said == []

"""Every pooling strategy in the browser: planned, previewed, opened and judged; models that are trained meanwhile."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from cranfield.judging.adaptive_choice import find_models
from cranfield.judging.event import new_id
from cranfield.pooling.strategy import STRATEGIES
from databases import location_of
from workbench import Client, Served, example, served, waited

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cranfield.judging.adaptive_choice import TopicModel

pytestmark = pytest.mark.every_database
RUNS = ["bm25", "fusion"]
ADAPTIVE = [name for name, each in STRATEGIES.items() if each.adaptive]


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    db = None
    if request.param == "postgresql":
        db = location_of(request.param, tmp_path, request.getfixturevalue("postgres"))
    with served(example(tmp_path / "w"), db=db) as opened:
        yield opened


def look(site: Served, strategy: str, **more: Any) -> dict[str, Any]:
    """The preview of a plan."""
    more = {"depth": 4, **more}
    query = "&".join(f"{name}={value}" for name, value in more.items())
    return waited(site, f"/rounds/new.json?look=1&runs=bm25&runs=fusion&strategy={strategy}&{query}", "plan")["plan"]


def begin(site: Served, strategy: str, name: str, **more: Any) -> None:
    values = {"runs": RUNS, "depth": "4", "strategy": strategy, "name": name, **more}
    reply = site.client("ann").send("/rounds/new.json", values)
    assert (reply.status, reply.text and reply.json()) == (200, {"name": name})


def judge(client: Client, name: str, count: int) -> list[tuple[str, str]]:
    """Judge so many documents of a round as they come; those whose number is even are relevant."""
    subjects = []
    items = client.get(f"/judge.json?round={name}").json()["items"]
    for _ in range(count):
        topic, document = items[0]["topic"], items[0]["document"]
        grade = float(int(document[1:]) % 2 == 0)
        row = {"id": new_id(), "kind": "judgment", "topic": topic, "document": document, "grade": grade}
        reply = client.send("/judge.json", {"round": name, "events": [row], "n": 1})
        assert (reply.status, reply.json()["outcomes"][0]["status"]) == (200, "kept"), reply.text
        subjects.append((topic, document))
        items = reply.json()["items"]
    return subjects


def models(site: Served, name: str) -> list[TopicModel]:
    """The models of a round when no worker trains."""
    for _ in range(600):
        if not site.site.trainer.busy:
            break
        time.sleep(0.1)
    assert site.site.trainer.why == {}
    with site.bench.log.reading() as transaction:
        return find_models(transaction.connection, name)


def test_every_strategy_is_planned_previewed_opened_and_judged(site: Served) -> None:
    ann, bob = site.client("ann"), site.client("bob", "assessor")
    for strategy, each in STRATEGIES.items():
        assert ann.get(f"/rounds/new?look=1&runs=bm25&strategy={strategy}&depth=4").status == 200, strategy
        plan = look(site, strategy)
        assert plan["state"] == "ready", (strategy, plan)
        assert plan["answer"]["documents"] > 0, strategy
        assert plan["answer"].get("at_most", False) == each.adaptive
        begin(site, strategy, strategy)
        first = judge(bob, strategy, 3)
        assert len(set(first)) == 3, strategy
        assert ann.get(f"/round.json?name={strategy}").json()["done"] == 3
        assert ann.post("/round", {"name": strategy, "state": "closed"}).status == 303


def test_a_preview_names_the_first_documents_and_the_budget(site: Served) -> None:
    whole, capped = look(site, "cal")["answer"], look(site, "cal", cap=2, overlap=2)["answer"]
    assert capped["documents"] == 2 * len(capped["topics"]) < whole["documents"]
    assert capped["labels"] == 2 * capped["documents"]
    assert capped["starts"] == whole["starts"]
    assert [each["topic"] for each in whole["starts"]] == list(whole["topics"])
    page = site.client("ann").get("/rounds/new?look=1&runs=bm25&runs=fusion&strategy=cal&depth=4").text
    assert "chooses each document by the labels so far" in page


@pytest.mark.parametrize("field", ["sample", "double"])
def test_a_plan_that_draws_and_adapts_is_refused(site: Served, field: str) -> None:
    values = {"runs": RUNS, "depth": "4", "strategy": "cal", "name": "x", field: "1"}
    reply = site.client("ann").send("/rounds/new.json", values)
    assert (reply.status, "chooses documents by the labels so far" in reply.json()["error"]) == (400, True)


def test_a_round_asks_for_no_more_documents_of_a_topic_than_planned(site: Served) -> None:
    begin(site, "maxmean", "capped", cap="2")
    topics = [topic for topic, _ in judge(site.client("bob", "assessor"), "capped", 8)]
    assert max(map(topics.count, topics)) == 2


def test_models_are_trained_while_people_judge(site: Served) -> None:
    begin(site, "cal", "learning")
    before = {each.topic: each for each in models(site, "learning")}
    assert len(before) == len(look(site, "cal")["answer"]["starts"])
    assert all((each.labels, each.expected) == (0, None) for each in before.values())
    subjects = judge(site.client("bob", "assessor"), "learning", 4)
    topic = subjects[0][0]
    judged = [document for name, document in subjects if name == topic]
    assert judged[0] == before[topic].order[0]
    after = {each.topic: each for each in models(site, "learning")}
    assert after[topic].labels == len(judged)
    assert not set(judged) & set(after[topic].order)
    assert {name for name, each in after.items() if each != before[name]} == {name for name, _ in subjects}
    assert after[topic].words
    expected = next(d for d in after[topic].order)
    site.client("ann").post("/round", {"name": "learning", "state": "open"})
    cat = site.client("cat", "assessor").get("/judge.json?round=learning").json()["items"][0]
    assert cat["document"] in {each.order[0] for each in after.values()} | {expected}


def test_the_same_labels_give_the_same_model(site: Served) -> None:
    begin(site, "cal", "one")
    subjects = judge(site.client("bob", "assessor"), "one", 3)
    first = {each.topic: each for each in models(site, "one")}
    begin(site, "cal", "two")  # labels count in every round
    second = {each.topic: each for each in models(site, "two")}
    for topic in {topic for topic, _ in subjects}:
        assert (first[topic].order, first[topic].words) == (second[topic].order, second[topic].words)

"""Every pooling strategy in the browser: planned, previewed, opened and judged; models that are trained meanwhile."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from cranfield.judging.adaptive_choice import find_models
from cranfield.judging.event import new_id
from cranfield.pooling.strategy import STRATEGIES
from databases import location_of
from shell import cranfield as shell
from workbench import Client, Served, example, served, waited

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cranfield.judging.adaptive_choice import TopicModel

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
    more = {"depth": 4, "again": "yes", **more}
    query = "&".join(f"{name}={value}" for name, value in more.items())
    path = f"/rounds/new.json?look=1&runs=bm25&runs=fusion&strategy={strategy}&{query}"
    client = site.client("ann")
    for _ in range(600):
        plan: dict[str, Any] = client.get(path).json()["plan"]
        if plan["state"] != "running":
            return plan
    raise AssertionError("it is still being worked out")


def begin(site: Served, strategy: str, name: str, **more: Any) -> None:
    values = {"runs": RUNS, "depth": "4", "again": "yes", "strategy": strategy, "name": name, **more}
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
        assert (reply.status, reply.json()["outcomes"][0]["said"]) == (200, "kept"), reply.text
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
        return find_models(transaction, name)


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
    page = site.client("ann").get("/rounds/new?look=1&runs=bm25&runs=fusion&strategy=cal&depth=4&again=yes").text
    assert "chooses each document by the labels so far" in page


@pytest.mark.parametrize("field", ["sample", "double"])
def test_a_plan_that_draws_and_adapts_is_refused(site: Served, field: str) -> None:
    values = {"runs": RUNS, "depth": "4", "again": "yes", "strategy": "cal", "name": "x", field: "1"}
    reply = site.client("ann").send("/rounds/new.json", values)
    assert (reply.status, "chooses documents by the labels so far" in reply.json()["error"]) == (400, True)


def test_a_round_asks_for_no_more_documents_of_a_topic_than_planned(site: Served) -> None:
    begin(site, "maxmean", "capped", cap="2")
    topics = [topic for topic, _ in judge(site.client("bob", "assessor"), "capped", 8)]
    assert max(map(topics.count, topics)) == 2


def test_models_are_trained_while_people_judge(site: Served) -> None:
    begin(site, "cal", "learning", depth="20")
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
    cat = site.client("cat", "assessor").get("/judge.json?round=learning").json()["items"][0]
    assert cat["document"] == after[cat["topic"]].order[0]  # bob holds one of the first topic, so cat begins another


def test_the_same_labels_and_seed_give_the_same_model(site: Served) -> None:
    begin(site, "cal", "one", seed="1")
    subjects = judge(site.client("bob", "assessor"), "one", 3)
    first = {each.topic: each for each in models(site, "one")}
    begin(site, "cal", "two", seed="1")  # labels count in every round
    second = {each.topic: each for each in models(site, "two")}
    for topic in {topic for topic, _ in subjects}:
        assert (first[topic].order, first[topic].words) == (second[topic].order, second[topic].words)


def recall(site: Served, query: str) -> dict[str, Any]:
    values: dict[str, Any] = waited(site, f"/recall.json?{query}", who=("ann", "lead"))
    return values


def test_leads_see_what_a_round_found_and_what_its_models_learned(site: Served) -> None:
    begin(site, "cal", "seen", depth="20")
    subjects = judge(site.client("bob", "assessor"), "seen", 12)
    models(site, "seen")
    values = recall(site, "round=seen")
    answer = values["answer"]
    assert values["state"] == "ready"
    topics = {each["topic"]: each for each in answer["topics"]}
    assert sum(each["judged"] for each in topics.values()) == 12
    bounded = [each for each in topics.values() if each["judged"] >= 10]
    assert (len(bounded), answer["topics_bounded"]) == (1, 1)
    assert (answer["judged"], answer["curve"][-1]) == (12, [12, answer["relevant"]])
    assert answer["most_left"] == bounded[0]["high"]
    topic = subjects[0][0]
    [model] = [each for each in values["models"] if each["topic"] == topic]
    assert model["labels"] == topics[topic]["judged"]
    assert (model["left"] is None) == (model["labels"] < 10)
    assert model["words"][0]["word"]
    alone = recall(site, f"round=seen&topic={topic}")
    assert [each["topic"] for each in alone["answer"]["topics"]] == [topic]
    page = site.client("ann").get("/recall?round=seen").text
    assert "words that speak for and against relevance" in page
    assert "Recall by label" in page
    assert site.client("ann").get("/round?name=seen").text.count("/recall?round=seen") == 1


def test_only_leads_see_the_recall_and_the_models(site: Served) -> None:
    begin(site, "cal", "secret")
    for who, role in (("bob", "assessor"), ("vic", "viewer")):
        for path in ("/recall", "/recall.json", "/recall.csv"):
            assert site.client(who, role).get(f"{path}?round=secret").status == 403
    assert site.client("ann").get("/recall.json?round=nothing").status in (400, 404)


def test_a_round_with_planned_documents_has_a_recall_too(site: Served) -> None:
    begin(site, "depth", "planned")
    judge(site.client("bob", "assessor"), "planned", 3)
    values = recall(site, "round=planned")
    assert (sum(each["judged"] for each in values["answer"]["topics"]), values["models"]) == (3, [])
    assert "has learned" not in site.client("ann").get("/recall?round=planned").text


def test_the_command_line_says_what_the_page_says(site: Served) -> None:
    begin(site, "cal", "both")
    judge(site.client("bob", "assessor"), "both", 3)
    models(site, "both")
    answer = recall(site, "round=both")["answer"]
    typed = shell("pool", "stop", site.bench.location, "--round", "both", "--format", "json")
    assert (typed.code, json.loads(typed.out)["topics"]) == (0, answer["topics"])
    assert json.loads(typed.out)["models"] == recall(site, "round=both")["models"]
    text = shell("pool", "stop", site.bench.location, "--round", "both").out
    assert "words with their weights" in text
    neither = shell("pool", "stop", site.bench.location)
    assert (neither.code, "--round NAME: give one of them" in neither.err) == (2, True)


def test_the_recall_curve_counts_a_document_once_however_many_people_label_it(site: Served) -> None:
    site.account("bob", "assessor")
    site.account("cat", "assessor")
    begin(site, "depth", "twice", depth="20", overlap="2", topics="")
    for name in ("bob", "cat"):
        judge(site.client(name, "assessor"), "twice", 12)
    answer = recall(site, "round=twice")["answer"]
    assert answer["judged"] >= 10
    assert answer["curve"][-1] == [answer["judged"], answer["relevant"]]


def test_labels_of_leased_documents_are_missing_too(site: Served) -> None:
    begin(site, "depth", "leased")
    judge(site.client("bob", "assessor"), "leased", 3)
    values = site.client("ann").get("/round.json?name=leased").json()
    assert values["out"] > 0
    assert values["advice"] == f"{values['places'] - 3} of {values['places']} labels are still missing."

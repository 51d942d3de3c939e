"""One topic in the browser: two lists side by side, the text in a pane, and a label given there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from browsers import Watched
from cranfield import read_collection, side_by_side
from cranfield.judging.event import Event
from databases import location_of
from workbench import Served, example, served, waited

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    with served(example(tmp_path / "w")) as opened:
        yield opened


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Read only."""
    with served(example(tmp_path_factory.mktemp("topic") / "w")) as opened:
        yield opened


def test_the_page_says_what_side_by_side_says(quiet: Served) -> None:
    values = waited(quiet, "/topic.json?topic=101&one=bm25&other=phrase&measure=nDCG%4010")
    runs = [str(quiet.bench.run(name).path) for name in ("bm25", "phrase")]
    expected = side_by_side(read_collection(quiet.bench.folder).qrels, *runs, "nDCG@10", "101").to_dict()
    assert values["answer"]["lists"] == expected["lists"]
    assert values["answer"]["explanations"][0]["worked"] == expected["explanations"][0]["worked"]
    assert values["query"] == "blossom end rot"
    assert quiet.client("vic", "viewer").get("/topic.csv?topic=101&one=bm25&other=phrase").text.startswith("rank,")


def test_topics_are_listed_with_what_is_labelled_here(site: Served) -> None:
    assessor = site.client("bob", "assessor")
    assert assessor.send("/topic.json", {"topic": "101", "document": "d002", "grade": "3"}).json()["new"] is True
    assert assessor.send("/topic.json", {"topic": "101", "document": "d002", "grade": "3"}).json()["new"] is False
    rows = assessor.get("/topic.json").json()["topics"]
    assert {row["topic"]: row["labelled"] for row in rows} == {row["topic"]: int(row["topic"] == "101") for row in rows}
    assert len(rows) == 74


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"topic": "101", "document": "d002", "grade": "9"}, "expected a grade of 0, 1, 2, 3"),
        ({"topic": "101", "document": "d002", "grade": "high"}, "expected a number"),
        ({"topic": "101", "document": "d002"}, "a grade"),
        ({"document": "d002", "grade": "1"}, "a topic"),
    ],
)
def test_a_label_that_makes_no_sense_is_refused(site: Served, form: dict[str, str], words: str) -> None:
    reply = site.client("bob", "assessor").send("/topic.json", form)
    assert reply.status == 400
    assert words in reply.json()["error"]
    assert site.bench.log.place() == 0


def test_an_assessor_at_work_sees_no_lists(site: Served) -> None:
    lead, assessor = site.client("ann"), site.client("bob", "assessor")
    plan = {"runs": ["bm25"], "depth": "2", "again": "yes", "name": "r"}
    assert lead.send("/rounds/new.json", plan).status == 200
    assert assessor.get("/topic?topic=101").status == 403
    assert assessor.send("/topic.json", {"topic": "101", "document": "d002", "grade": "1"}).status == 403
    assert lead.get("/topic?topic=101").status == 200


def test_a_document_the_collection_lacks_and_an_unknown_topic_are_said_so(quiet: Served) -> None:
    viewer = quiet.client("vic", "viewer")
    assert "does not have the document" in viewer.get(f"/topic?topic=101&document={quote('no/such ☃')}").text
    unknown = waited(quiet, "/topic.json?topic=no-such")
    assert "nothing of it is judged" in unknown["unjudged"]
    assert "neither run returns anything" in unknown["error"]
    assert viewer.get("/topic.json?topic=no-such").status == 422


def test_what_is_unjudged_is_judged_in_the_pane(site: Served, browser: Any) -> None:
    odd = Path(site.bench.folder) / "runs" / "odd.run"
    odd.write_text("101 Q0 d300 1 2.0 odd\n101 Q0 d002 2 1.0 odd\n")
    seen = Watched(site.context(browser, "bob", "assessor"))
    page = seen.page
    page.goto("/topic?topic=101&one=odd&other=bm25")
    page.get_by_role("link", name="judge this").first.click(timeout=30_000)
    page.get_by_role("button", name="1 relevant", exact=True).click()
    page.get_by_role("link", name="history of its labels").click()
    page.get_by_role("heading", name="History of the labels of").wait_for()
    assert page.locator("tbody tr").count() == 1
    assert seen.said == []
    assert all(url.startswith(site.url) for url in seen.requests)


PAIR = "one=bm25&other=fusion&measures=nDCG%4010"


def test_topics_come_by_the_difference_of_two_runs_as_compare_has_it(quiet: Served) -> None:
    values = waited(quiet, f"/topic.json?{PAIR}")
    compared = waited(quiet, f"/compare.json?{PAIR}")["answer"]["topics"]
    kept = "topic", "one", "other", "difference"
    assert [[row[key] for key in kept] for row in values["topics"]] == [[row[key] for key in kept] for row in compared]
    viewer = quiet.client("vic", "viewer")
    some = viewer.get("/topic.json?words=CARROTS+winter").json()["topics"]
    assert [row["query"] for row in some] == ["storing carrots for winter"]
    assert "No topic has all these words: snow leopard" in viewer.get("/topic?words=snow+leopard").text
    assert viewer.get(f"/topic.csv?{PAIR}").text.splitlines()[0] == "topic,query,bm25,fusion,difference,labelled here"
    names = [row["topic"] for row in compared]
    page = viewer.get(f"/topic?topic={names[1]}&order=difference&{PAIR}").text
    before, after = (page.partition(f'rel="{way}" href="')[2].partition('"')[0] for way in ("prev", "next"))
    assert f"topic={names[0]}&" in before.replace("&amp;", "&")
    assert f"topic={names[2]}&" in after.replace("&amp;", "&")
    assert 'rel="prev"' not in viewer.get(f"/topic?topic={names[0]}&order=difference&{PAIR}").text
    plain = viewer.get("/topic?topic=101").text
    assert ('rel="prev"' in plain, "topic=102&amp;" in plain) == (False, True)


def test_lists_are_there_before_anything_is_judged(site: Served) -> None:
    Path(str(site.bench.qrels)).unlink()
    values = waited(site, "/topic.json?topic=101&one=bm25&other=phrase")
    assert "nothing is judged yet" in values["unjudged"]
    one, other = values["answer"]["lists"]
    run = site.bench.run("phrase").path
    first = [line.split()[2] for line in Path(run).read_text().splitlines() if line.startswith("101 ")]
    assert [entry["document"] for entry in other["documents"]] == first[:10]
    assert [entry["other_rank"] for entry in other["documents"]] == [
        [each["document"] for each in one["documents"]].index(document) + 1 for document in first[:10]
    ]
    page = site.client("bob", "assessor").get("/topic?topic=101&one=bm25&other=phrase").text
    assert "10 of these 10 are unjudged." in page
    assert "Nothing is judged yet" in page
    assert page.count("judge this") >= 10


def test_newer_labels_of_a_topic_wait(site: Served) -> None:
    labels = [Event(topic="101", document=f"d{n}", grade=1, assessor="bob") for n in (299, 245)]
    Path(str(site.bench.qrels)).unlink()
    site.bench.log.add(labels[:1])
    path = "/topic?topic=101&one=bm25&other=phrase"
    waited(site, path.replace("?", ".json?"))
    site.bench.log.add(labels[1:])
    page = site.client("vic", "viewer").get(path).text
    assert "1 newer label is not included; " in page
    again = page.partition('role="status">')[2].partition('href="')[2].partition('"')[0].replace("&amp;", "&")
    waited(site, again.replace("?", ".json?"))
    fresh = site.client("vic", "viewer").get(path).text
    assert "newer label" not in fresh
    assert "8 of these 10 are unjudged." in fresh


def test_keys_lead_from_topic_to_topic_and_joins_are_drawn(quiet: Served, browser: Any) -> None:
    waited(quiet, f"/compare.json?{PAIR}")
    seen = Watched(quiet.context(browser, "vic", "viewer", viewport={"width": 1280, "height": 900}))
    page = seen.page
    page.goto(f"/topic?topic=147&order=difference&{PAIR}")
    page.locator(".joins path").first.wait_for(state="attached", timeout=30_000)
    both = {row.get_attribute("data-document") for row in page.locator(".side.one tbody tr").all()}
    both &= {row.get_attribute("data-document") for row in page.locator(".side.other tbody tr").all()}
    assert page.locator(".joins path").count() == len(both)
    page.locator(".side.one tbody tr").first.hover()
    assert page.locator(".side.other tr.lit").count() == 1
    assert page.locator(".joins path.lit").count() == 1
    page.keyboard.press("n")
    page.get_by_role("heading", name="potatoes in containers").wait_for()
    page.get_by_label("Measure").press("p")  # typing
    page.locator("h1").click()
    page.keyboard.press("p")
    page.get_by_role("heading", name="bonfire rules").wait_for()
    page.get_by_text("How these scores are computed").click(timeout=30_000)
    page.locator("details.worked table").first.wait_for()
    assert seen.said == []
    assert all(url.startswith(quiet.url) for url in seen.requests)


def test_single_keys_can_be_off(quiet: Served, browser: Any) -> None:
    context = quiet.context(browser, "ivy", "viewer")
    quiet.client("ivy", "viewer").post("/me", {"theme": "", "single_keys": ""})
    page = context.new_page()
    page.goto(f"/topic?topic=101&{PAIR}")
    page.keyboard.press("n")
    page.keyboard.press("Alt+n")
    page.locator("p.lead", has_text="Topic 102 ·").wait_for()


def from_leaderboard_to_label(site: Served, browser: Any) -> None:
    """Nothing but links and one button."""
    seen = Watched(site.context(browser, "bob", "assessor", viewport={"width": 390, "height": 844}))
    page = seen.page
    page.goto("/")
    page.get_by_role("link", name="Leaderboard").click()
    page.get_by_role("row", name="phrase").get_by_role("link", name="by topic").click(timeout=60_000)
    page.get_by_role("row", name="blossom end rot").get_by_role("link", name="101").click(timeout=60_000)
    page.locator(".side.other").get_by_role("link", name="That black patch on your tomatoes").click(timeout=60_000)
    page.get_by_role("link", name="On its own page").click()
    page.get_by_role("heading", name="That black patch on your tomatoes").wait_for()
    page.go_back()
    page.get_by_role("button", name="2 highly relevant").click()
    page.get_by_role("link", name="history of its labels").click()
    page.get_by_role("heading", name="History of the labels of").wait_for()
    assert page.locator("tbody tr").count() == 2  # the collection's own judgment, too
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    event = site.bench.log.events()[-1]
    assert (event.topic, event.document, event.grade, event.assessor) == ("101", "d245", 2, "bob")
    assert seen.said == []
    assert all(url.startswith(site.url) for url in seen.requests)


def test_from_the_leaderboard_to_a_label_by_links_alone(site: Served, browser: Any) -> None:
    from_leaderboard_to_label(site, browser)


@pytest.mark.slow
def test_from_the_leaderboard_to_a_label_on_postgresql(tmp_path: Path, browser: Any, postgres: str) -> None:
    with served(example(tmp_path / "w"), location_of("postgresql", tmp_path, postgres)) as site:
        from_leaderboard_to_label(site, browser)

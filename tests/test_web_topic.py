"""One topic in the browser: two lists side by side, the text in a pane, and a label given there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from browsers import Watched, chromium
from cranfield import read_collection, side_by_side
from workbench import Served, example, served

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    with served(example(tmp_path / "w")) as opened:
        yield opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def waited(site: Served, path: str) -> Any:
    """The JSON of a page whose job is done."""
    client = site.client("vic", "viewer")
    for _ in range(600):
        reply = client.get(path)
        if reply.json().get("state") != "running":
            return reply.json()
    raise AssertionError("it is still being worked out")


def test_the_page_says_what_side_by_side_says(site: Served) -> None:
    values = waited(site, "/topic.json?topic=101&one=bm25&other=phrase&measure=nDCG%4010")
    runs = [str(site.bench.run(name).path) for name in ("bm25", "phrase")]
    expected = side_by_side(read_collection(site.bench.folder).qrels, *runs, "nDCG@10", "101").to_dict()
    assert values["answer"]["lists"] == expected["lists"]
    assert values["answer"]["explanations"][0]["worked"] == expected["explanations"][0]["worked"]
    assert values["query"] == "blossom end rot"
    assert site.client("vic", "viewer").get("/topic.csv?topic=101&one=bm25&other=phrase").text.startswith("rank,")


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
    plan = {"runs": ["bm25"], "depth": "2", "name": "r"}
    assert lead.send("/rounds/new.json", plan).status == 200
    assert assessor.get("/topic?topic=101").status == 403
    assert assessor.send("/topic.json", {"topic": "101", "document": "d002", "grade": "1"}).status == 403
    assert lead.get("/topic?topic=101").status == 200


def test_a_document_the_collection_lacks_and_an_unknown_topic_are_said_so(site: Served) -> None:
    viewer = site.client("vic", "viewer")
    assert "does not have the document" in viewer.get(f"/topic?topic=101&document={quote('no/such ☃')}").text
    assert "nothing of it is judged" in waited(site, "/topic.json?topic=no-such")["error"]


def test_what_is_unjudged_is_judged_in_the_pane(site: Served, browser: Any) -> None:
    odd = Path(site.bench.folder) / "runs" / "odd.run"
    odd.write_text("101 Q0 d300 1 2.0 odd\n101 Q0 d002 2 1.0 odd\n")
    seen = Watched(site.context(browser, "bob", "assessor"))
    page = seen.page
    page.goto("/topic?topic=101&one=odd&other=bm25")
    page.get_by_role("link", name="judge this").first.click(timeout=30_000)
    page.get_by_role("button", name="1 relevant", exact=True).click()
    page.get_by_role("link", name="who said what of it").click()
    page.get_by_role("heading", name="What was said of").wait_for()
    assert page.locator("tbody tr").count() == 1
    assert seen.said == []
    assert all(url.startswith(site.url) for url in seen.requests)

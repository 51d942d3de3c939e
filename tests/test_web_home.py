"""The first page: what is there, what was found in it, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from browsers import Watched
from cranfield.collections.check import check
from cranfield.collections.check.collection_checks import check_collection
from workbench import Served, example, served, waited

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(example(tmp_path_factory.mktemp("home") / "w")) as opened:
        yield opened


def test_the_page_counts_what_is_there(site: Served) -> None:
    values = waited(site, "/index.json", "check")
    assert (values["topics"], values["runs"]) == (74, ["bm25", "fusion", "phrase"])
    assert (values["has_documents"], values["has_qrels"], values["events"]) == (True, True, 0)


def test_the_findings_are_those_of_check_the_gravest_first(site: Served) -> None:
    found = waited(site, "/index.json", "check")["check"]["answer"]["findings"]
    folder, runs = site.bench.folder, [run.path for run in site.bench.runs()]
    expected = [*check_collection(folder), *(each for each in check(runs, site.bench.qrels) if each.file in runs)]
    assert [each["code"] for each in found] == [each.code for each in expected]
    page = site.client("vic", "viewer").get("/").text
    assert page.index("<h3>4 warnings</h3>") < page.index("<summary>13 notes</summary>")
    assert folder not in page


def test_everybody_is_told_what_they_can_do_next(site: Served) -> None:
    steps = {
        role: [step["to"] for step in site.client(name, role).get("/index.json").json()["next"]]
        for name, role in (("ann", "lead"), ("bob", "assessor"), ("vic", "viewer"))
    }
    assert steps == {"lead": ["/rounds/new", "/runs"], "assessor": ["/runs"], "viewer": ["/runs"]}
    assert "Plan a round" not in site.client("vic", "viewer").get("/").text


def test_rounds_and_versions_are_listed_and_open_rounds_come_first(tmp_path: Path) -> None:
    with served(example(tmp_path / "w")) as site:
        lead = site.client("ann")
        assert (
            lead.send("/rounds/new.json", {"runs": ["bm25"], "depth": "2", "again": "yes", "name": "r1"}).status == 200
        )
        values = lead.get("/index.json").json()
        assert [(each["name"], each["state"], each["done"]) for each in values["rounds"]] == [("r1", "open", 0)]
        bob = site.client("bob", "assessor").get("/index.json").json()
        assert bob["next"] == [
            {"said": "Judge in round r1: you have labelled 0.", "to": "/judge?round=r1", "role": "viewer"}
        ]
        assert "runs" not in bob  # judging blind: not even their names
        assert "Your rounds" in site.client("bob", "assessor").get("/").text
        assert 'href="/round?name=r1"' in lead.get("/").text
        assert 'href="/round?name=r1"' not in site.client("bob", "assessor").get("/").text


def test_an_empty_folder_says_what_is_missing_and_nothing_found_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with served(tmp_path / "w") as site:
        values = waited(site, "/index.json", "check")
        assert values["check"]["answer"]["findings"] == []
        page = site.client("ann").get("/").text
        assert "<p>Nothing found.</p>" in page
        assert "There are no documents yet" in page
        assert '<a href="/runs">There is no run yet: add one.</a>' in page
        viewer = site.client("vic", "viewer").get("/index.json").json()["next"]
        assert all("add one" not in step["said"] for step in viewer)


def test_errors_stand_before_warnings(tmp_path: Path) -> None:
    folder = example(tmp_path / "w")
    (folder / "runs" / "broken.run").write_text("101 Q0 d299 1\n")
    with served(folder) as site:
        waited(site, "/index.json", "check")
        page = site.client("vic", "viewer").get("/").text
        assert page.index("<h3>1 error</h3>") < page.index("runs/broken.run") < page.index("<h3>4 warnings</h3>")


def test_in_the_browser_the_page_fits_a_phone_and_links_lead_on(site: Served, browser: Any) -> None:
    size: Any = {"width": 390, "height": 844}
    seen = Watched(site.context(browser, "ann", "lead", viewport=size, color_scheme="dark"))
    seen.page.goto("/")
    seen.page.get_by_text("13 notes").click(timeout=30_000)
    assert seen.page.evaluate("document.documentElement.scrollWidth") == 390
    seen.page.get_by_role("link", name="See which run is best.").click()
    seen.page.get_by_role("heading", name="Runs", exact=True).wait_for()
    assert seen.said == []
    assert all(url.startswith(site.url) for url in seen.requests)

"""Reports from the browser: those of the command, for the runs, measures and judgments of the page."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from shell import cranfield
from workbench import Served, example, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(example(tmp_path_factory.mktemp("report") / "garden")) as opened:
        yield opened


def downloaded(site: Served, query: str) -> Any:
    client = site.client("vic", "viewer")
    for _ in range(300):
        reply = client.get(f"/report/file?{query}")
        if reply.status != 409:
            return reply
        time.sleep(0.1)
    raise AssertionError(reply.text)


@pytest.mark.parametrize("ending", ["html", "md", "tex", "json", "csv"])
def test_each_format_is_delivered_under_its_name(site: Served, ending: str) -> None:
    reply = downloaded(site, f"ending={ending}&runs=bm25&runs=fusion&measures=AP&title=Two+runs")
    assert reply.status == 200
    assert reply.headers["content-disposition"] == f"attachment; filename*=UTF-8''garden-report.{ending}"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "fusion" in reply.text
    assert "phrase" not in reply.text


def test_the_numbers_are_those_of_the_command(site: Served) -> None:
    ours = downloaded(site, "ending=json&runs=bm25&runs=fusion&measures=AP&judgments=collection").json()
    folder = site.bench.folder
    runs = [f"{folder}/runs/{name}.run" for name in ("bm25", "fusion")]
    theirs = json.loads(cranfield("report", f"{folder}/qrels.txt", *runs, "-m", "AP", "--format", "json").out)
    for part in ("summary", "leaderboards", "curves"):
        assert ours[part] == theirs[part], part


def test_what_cannot_be_reported_is_refused_in_words(site: Served) -> None:
    client = site.client("vic", "viewer")
    assert client.get("/report/file").status == 400
    assert client.get("/report/file?ending=exe").status == 400
    assert client.get("/report/file?ending=html&runs=bm25").status == 400
    assert client.get("/report/file?ending=html&runs=none&runs=bm25").status == 400
    assert "expected a format of html" in client.get("/report.json?ending=exe").text


def test_in_the_browser_the_report_is_written_and_downloaded(site: Served, tmp_path: Path, browser: Any) -> None:
    context = site.context(browser, "vic", "viewer", accept_downloads=True)
    page = context.new_page()
    page.goto("/report")
    page.fill("input[name=measures]", "AP")
    page.click("text=Write the report")
    with page.expect_download() as waiting:
        page.click("a[download]")
    waiting.value.save_as(tmp_path / "r.html")
    assert waiting.value.suggested_filename == "garden-report.html"
    assert "<h1" in (tmp_path / "r.html").read_text()
    context.close()

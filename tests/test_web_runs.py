"""Runs in the browser: the leaderboard, a newcomer, a run that is added or refused, labels that wait."""

from __future__ import annotations

import gzip
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

import cranfield
from browsers import Watched
from cranfield.judging.event import Event
from cranfield.pooling.reuse import thin
from workbench import Reply, Served, example, served, waited

if TYPE_CHECKING:
    from collections.abc import Iterator

GOOD = b"101 Q0 d299 1 3.0 new\n101 Q0 d245 2 2.0 new\n102 Q0 d001 1 1.5 new\n"
BOARD = "/runs.json?measures=nDCG%4010+AP"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Read only."""
    with served(example(tmp_path_factory.mktemp("runs") / "w")) as opened:
        yield opened


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """To be changed: each test brings runs of its own."""
    with served(example(tmp_path_factory.mktemp("own") / "w")) as opened:
        yield opened


def add(site: Served, name: str, body: bytes) -> Reply:
    """As the page sends a file."""
    headers = {"Content-Type": "application/octet-stream", "Sec-Fetch-Site": "same-origin"}
    return site.client("ann").ask("POST", f"/runs.json?name={quote(name, safe='')}", body, **headers)


def left(site: Served) -> list[str]:
    """The files of runs, and whatever an upload left in the state folder."""
    state = [name for name in os.listdir(site.bench.state) if name.startswith(("upload", "tmp"))]
    return [*sorted(os.listdir(site.bench.runs_folder)), *state]


def test_the_leaderboard_is_the_library_s_own(site: Served) -> None:
    values = waited(site, BOARD)
    runs = {run.name: run.path for run in site.bench.runs()}
    expected = cranfield.leaderboard(str(site.bench.qrels), runs, "nDCG@10 AP").to_dict()
    assert values["answer"]["rows"] == expected["rows"]
    assert [run["name"] for run in values["runs"]] == ["bm25", "fusion", "phrase"]
    assert site.client("vic", "viewer").get(BOARD.replace("json", "csv")).text.startswith("run,rank,rank_low,")


def test_the_verdict_stands_first_and_how_it_was_made_below_the_table(site: Served) -> None:
    waited(site, BOARD)
    page = site.client("vic", "viewer").get("/runs?measures=nDCG%4010+AP").text
    verdict, table = page.index('<p class="verdict">fusion leads with nDCG@10'), page.index("<table")
    assert verdict < page.index("Each run is told apart from every other.") < table < page.index("Ranked by nDCG@10;")
    assert "<caption>Runs by nDCG@10</caption>" in page
    assert 'href="/compare?one=fusion&amp;other=bm25&amp;measures=nDCG%4010+AP"' in page
    assert 'href="/topic?one=fusion&amp;other=phrase&amp;order=difference&amp;measures=nDCG%4010+AP"' in page


def test_tiers_are_said_in_words() -> None:
    qrels = {str(topic): {"a": 1} for topic in range(9)}
    good = {topic: {"a": 2.0, "b": 1.0} for topic in qrels}
    bad = {topic: {"a": 1.0, "b": 2.0} for topic in qrels}
    board = cranfield.leaderboard(qrels, {"x": good, "y": good, "z": bad}, "RR")
    assert board.tiers() == {"a": ["x", "y"], "b": ["z"]}
    assert board.tiers_in_words() == "x and y are not told apart (tier a)"
    assert cranfield.leaderboard(qrels, {"x": good}, "RR").tiers_in_words() == ""
    many = cranfield.leaderboard(qrels, {f"run{n}": good for n in range(9)}, "RR")
    assert many.tiers_in_words() == "run0, run1, run2, run3, run4 and 4 more are not told apart (tier a)"


def test_a_newcomer_is_told_first_whether_it_can_be_scored(site: Served) -> None:
    values = waited(site, "/runs.json?new=phrase", "reuse", "check")
    [read] = values["reuse"]["answer"]["new"]
    paths = {run.name: run.path for run in site.bench.runs()}
    expected = thin(str(site.bench.qrels), {"phrase": paths["phrase"]}, "nDCG@10 AP RR@10")
    assert read["judged"] == expected.rows[0].judged
    assert {each["file"] for each in values["check"]["answer"]["findings"]} == {"runs/phrase.run"}
    page = site.client("vic", "viewer").get("/runs?new=phrase").text
    sentence = page.index('<p class="verdict">phrase, yes: 98% of the top 10')
    assert sentence < page.index("Fit for reuse") < page.index("<details>") < page.index("fusion leads")
    assert "--holes" not in page
    assert site.client("vic", "viewer").get("/runs.json?new=no-such").status == 400


def test_a_run_nobody_judged_cannot_be_scored_yet(own: Served) -> None:
    (Path(own.bench.runs_folder) / "odd.run").write_text("".join(f"101 Q0 x{n} {n} {9 - n} odd\n" for n in range(1, 9)))
    waited(own, "/runs.json?new=odd&judgments=collection", "reuse", "check")
    page = own.client("vic", "viewer").get("/runs?new=odd&judgments=collection").text
    assert '<p class="verdict">odd, not yet: only 0% of the top 10 is judged' in page
    assert "--holes" not in page


def test_a_run_is_added_and_its_warnings_are_told(own: Served) -> None:
    reply = add(own, "new.run", GOOD)
    assert (reply.status, reply.json()["name"], reply.json()["errors"]) == (200, "new", 0)
    assert "topics that are judged but not answered" in " ".join(each["message"] for each in reply.json()["findings"])
    assert not [name for name in left(own) if not name.endswith((".run", ".gz"))]
    assert (Path(own.bench.runs_folder) / "new.run").read_bytes() == GOOD
    rows = waited(own, f"{BOARD}&judgments=collection")["answer"]["rows"]
    assert {row["run"] for row in rows} >= {"bm25", "fusion", "new", "phrase"}
    again = add(own, "new.run.gz", gzip.compress(GOOD))
    assert (again.status, "there is a run 'new' already" in again.json()["error"]) == (400, True)
    assert add(own, "packed.run.gz", gzip.compress(GOOD)).json()["name"] == "packed"


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        (GOOD + b"102 Q0 d002 short\n", 4, "expected 6 (topic Q0 document rank score tag)"),
        (GOOD + b"102 Q0 d002 2 nan new\n", 4, "without a number in column 5"),
        (GOOD + b"101 Q0 d299 3 1.0 new\n", 4, "twice"),
        (b"", None, ""),
        (b"\x00\x01\x02\xff binary", 1, ""),
    ],
)
def test_a_run_that_fails_its_check_is_refused_by_line(site: Served, body: bytes, line: int | None, words: str) -> None:
    reply = add(site, "bad.run", body)
    assert reply.status == 422, reply.text
    values = reply.json()
    assert (values["error"], values["safe"]) == ("bad.run was not added", "Nothing was changed.")
    errors = [each for each in values["findings"] if each["severity"] == "error"]
    assert errors[0]["file"] == "bad.run"
    assert errors[0]["line"] == line
    assert words in errors[0]["message"]
    assert site.bench.folder not in reply.text
    assert left(site) == ["bm25.run", "fusion.run", "phrase.run"]


@pytest.mark.parametrize(
    "name",
    ["../up.run", "a/b.run", "a\\b.run", ".hidden", "-rf", "bm25.run", "BM25.txt", "x\x00y", "\u202ex", "é" * 90],
)
def test_hostile_names_and_taken_ones_are_refused(site: Served, name: str) -> None:
    reply = add(site, name, GOOD)
    assert (reply.status, "name" in reply.json()["error"]) == (400, True)
    assert left(site) == ["bm25.run", "fusion.run", "phrase.run"]


def test_a_packed_file_that_ends_early_is_refused(site: Served) -> None:
    reply = add(site, "cut.run.gz", gzip.compress(GOOD)[:-9])
    assert (reply.status, "ends early" in reply.json()["error"]) == (400, True)
    assert left(site) == ["bm25.run", "fusion.run", "phrase.run"]


def test_what_is_too_large_packed_or_unpacked_is_refused(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.bench, "add_run", partial(site.bench.add_run, limit=10_000))
    plain = add(site, "large.run", b"101 Q0 d299 1 3.0 new\n" * 1000)
    assert (plain.status, "larger than 0.01 MB" in plain.json()["error"]) == (413, True)
    bomb = add(site, "bomb.run.gz", gzip.compress(bytes(5_000_000)))
    assert (bomb.status, "unpacks to more than 0.01 MB" in bomb.json()["error"]) == (413, True)
    assert left(site) == ["bm25.run", "fusion.run", "phrase.run"]


def test_newer_labels_wait_until_somebody_asks(own: Served) -> None:
    grades = [Event(topic="101", document=f"d{n:03}", grade=n % 3, assessor="bob") for n in range(1, 20)]
    own.bench.log.add(grades)
    before = waited(own, BOARD)
    own.bench.log.add([Event(topic="101", document=doc, grade=0, assessor="bob") for doc in ("d299", "d245")])
    client = own.client("vic", "viewer")
    page = client.get("/runs?measures=nDCG%4010+AP").text
    assert "2 newer labels are not included; " in page
    after = client.get(BOARD).json()
    assert (after["newer"], after["answer"]) == (2, before["answer"])
    again = page.partition('role="status">')[2].partition('href="')[2].partition('"')[0].replace("&amp;", "&")
    fresh = waited(own, again.replace("/runs?", "/runs.json?"))
    assert (fresh["newer"], fresh["place"]) == (0, before["place"] + 2)
    assert fresh["answer"]["rows"] != before["answer"]["rows"]
    assert "newer label" not in client.get("/runs?measures=nDCG%4010+AP").text


def test_an_empty_workspace_says_what_a_run_is(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with served(tmp_path / "w") as site:
        lead = site.client("ann")
        assert lead.get("/runs.json").json() == {"runs": [], "new": ""}
        assert "There is no run yet" in lead.get("/runs").text
        assert lead.get("/runs.csv").status == 409
        assert "It takes two runs to compare" in lead.get("/compare").text
        (Path(site.bench.folder) / "runs").mkdir()
        (Path(site.bench.folder) / "runs" / "a.run").write_bytes(GOOD)
        reply = lead.get("/runs.json")
        assert (reply.status, "nothing is judged yet" in reply.json()["unjudged"]) == (200, True)
        page = lead.get("/runs?new=a.run").text
        assert "There is 1 run: a.run. Nothing is judged yet" in page
        assert "Add a run" in page  # the second run, too, is added here
        assert lead.get("/runs.csv").status == 409


@pytest.mark.parametrize("measures", ["nonsense", "nDCG@0", "nDCG@10+nonsense%3Cb%3E"])
def test_a_measure_that_is_none_is_refused_in_words(site: Served, measures: str) -> None:
    for path in ("/runs", "/compare"):
        reply = site.client("vic", "viewer").get(f"{path}.json?measures={measures}")
        assert reply.status == 400
        assert "error" in reply.json()
    assert "<b>" not in site.client("vic", "viewer").get(f"/runs?measures={measures}").text


def test_in_the_browser_a_bad_file_is_shown_by_line_and_a_good_one_is_added(own: Served, browser: Any) -> None:
    seen = Watched(own.context(browser, "ann", "lead", viewport={"width": 390, "height": 800}))
    page = seen.page
    page.goto("/runs")
    choose = page.get_by_label("File")
    choose.set_input_files({"name": "seen.run", "mimeType": "text/plain", "buffer": GOOD + b"<img src=x> Q0 d1 1\n"})
    page.get_by_role("button", name="Check and add").click()
    page.get_by_text("seen.run was not added. Nothing was changed. Correct the file and add it again.").wait_for()
    page.get_by_text("seen.run:4: error: too few or too many columns").wait_for()
    page.get_by_text("line 4: '<img src=x> Q0 d1 1'").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    choose.set_input_files({"name": "seen.run", "mimeType": "text/plain", "buffer": GOOD})
    page.get_by_role("button", name="Check and add").click()
    page.get_by_role("heading", name="Can seen be scored?").wait_for()
    page.get_by_text("topics that are judged but not answered").first.wait_for(timeout=30_000)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    refused = [line for line in seen.said if "422" not in line]  # the browser itself says that a request was refused
    assert refused == []
    assert all(url.startswith(own.url) for url in seen.requests)

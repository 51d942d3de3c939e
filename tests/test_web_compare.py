"""Two runs compared in the browser: the sentence, the charts, the tables, some topics only, cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

import cranfield
from browsers import Watched
from cranfield.comparison.comparison_text import verdict
from cranfield.formats.run_files import RunStats, write_run_stats
from workbench import Served, example, served, waited

if TYPE_CHECKING:
    from collections.abc import Iterator

EVIL = "<img src=x onerror=alert(1)> & o'k"
PAIR = "one=bm25&other=fusion&measures=nDCG%4010+AP"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The bundled collection, its topics of two kinds, one run timed."""
    folder = example(tmp_path_factory.mktemp("compare") / "w")
    topics = [json.loads(line) for line in (folder / "topics.jsonl").read_text().splitlines()]
    kinds = [{**topic, "kind": "short" if len(topic["title"].split()) < 3 else "long"} for topic in topics]
    (folder / "topics.jsonl").write_text("".join(f"{json.dumps(topic)}\n" for topic in kinds))
    stats = RunStats("bm25", "sqlite", queries={"latency_ms": {"mean": 2.0, "median": 1.5, "p95": 3.0}})
    write_run_stats(stats, folder / "runs" / "bm25.run")
    (folder / "runs" / f"{EVIL}.run").write_text("101 Q0 d299 1 2 x\n102 Q0 d001 1 1 x\n")
    with served(folder) as opened:
        yield opened


def compared(site: Served) -> Any:
    """What the library says of the same files."""
    runs = {name: site.bench.run(name).path for name in ("bm25", "fusion")}
    return cranfield.compare(str(site.bench.qrels), runs, "nDCG@10 AP")


def test_the_numbers_are_the_library_s_own(site: Served) -> None:
    values = waited(site, f"/compare.json?{PAIR}")
    expected = compared(site)
    assert values["answer"]["pairs"] == expected.to_dict()["pairs"]
    [pair] = [each for each in expected.pairs if each.measure == "nDCG@10"]
    topics, differences = expected.differences(pair)
    assert {row["topic"]: row["difference"] for row in values["answer"]["topics"]} == pytest.approx(
        dict(zip(topics, differences, strict=True))
    )
    table = site.client("vic", "viewer").get(f"/compare.csv?{PAIR}").text.splitlines()
    assert table[0] == "topic,query,bm25,fusion,difference"
    assert len(table) == 75


def test_the_verdict_comes_first_then_charts_tables_and_what_limits_it(site: Served) -> None:
    waited(site, f"/compare.json?{PAIR}")
    page = site.client("vic", "viewer").get(f"/compare?{PAIR}").text
    assert f'<p class="verdict">{verdict(compared(site))[0]}.</p>' in page
    parts = ['<p class="verdict">', '<div class="pair"><figure>', "By each measure", "Precision and recall", "Cost"]
    parts += ["Topic by topic", "What limits this", "How this was made"]
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    assert page.count('<svg class="chart"') == 4  # none of what is drawn with characters on a terminal
    assert "<pre" not in page
    assert page.count('href="/topic?topic=') == 74
    assert (
        'href="/topic?topic=147&amp;one=bm25&amp;other=fusion&amp;order=difference&amp;measures=nDCG%4010+AP"' in page
    )
    assert "74 topics and 2,894 judgments, as they are now" in page


def test_topics_are_chosen_by_a_category(site: Served) -> None:
    values = waited(site, f"/compare.json?{PAIR}&category=kind%3Dlong")
    table = site.bench.topics()
    assert table is not None
    wanted = {topic for topic, kind in table.column("kind").items() if kind == "long"}
    assert {row["topic"] for row in values["answer"]["topics"]} == wanted
    page = site.client("vic", "viewer").get(f"/compare?{PAIR}&category=kind%3Dlong").text
    assert '<option value="kind=long" selected>long</option>' in page
    assert f"{len(wanted)} topics with &#x27;long&#x27; as kind" in page
    for category, words in (("kind%3Dnone", "no topic has 'none'"), ("no-such%3Dx", "no-such")):
        reply = site.client("vic", "viewer").get(f"/compare.json?{PAIR}&category={category}")
        assert (reply.status, words in reply.json()["error"]) == (400, True)


def test_what_a_run_costs_is_read_again_when_it_changes(site: Served) -> None:
    first = waited(site, f"/compare.json?{PAIR}")["answer"]["efficiency"]
    assert "1.5" in json.dumps(first)
    path = site.bench.run("bm25").path
    write_run_stats(RunStats("bm25", "sqlite", queries={"latency_ms": {"mean": 9.0, "median": 7.25, "p95": 9.5}}), path)
    assert "7.25" in json.dumps(waited(site, f"/compare.json?{PAIR}")["answer"]["efficiency"])


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("one=bm25&other=no-such", 400, "there is no run 'no-such'"),
        ("one=bm25&other=..%2F..%2Fetc%2Fpasswd", 400, "there is no run"),
        ("one=bm25&other=fusion&policy=coin", 400, "no policy 'coin'; there are latest"),
        ("one=bm25&other=fusion&judgments=log%40no-such", 400, "no-such"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(site: Served, query: str, status: int, words: str) -> None:
    viewer = site.client("vic", "viewer")
    values = waited(site, f"/compare.json?{query}")
    reply = viewer.get(f"/compare.json?{query}")
    assert (reply.status, words in values["error"]) == (status, True)
    assert values["error"].split("'")[0].strip() in viewer.get(f"/compare?{query}").text.replace("&#39;", "'")


def test_a_run_is_not_compared_with_itself(site: Served) -> None:
    assert "Choose two different runs." in site.client("vic", "viewer").get("/compare?one=bm25&other=bm25").text


@pytest.mark.parametrize("scheme", ["dark", pytest.param("light", marks=pytest.mark.slow)])
def test_in_the_browser_tables_sort_and_a_topic_is_a_link_away(site: Served, browser: Any, scheme: str) -> None:
    waited(site, f"/compare.json?{PAIR}")
    size = {"width": 390, "height": 844}
    seen = Watched(site.context(browser, "vic", "viewer", viewport=size, color_scheme=scheme))
    page = seen.page
    page.goto(f"/compare?{PAIR}")
    page.locator(".verdict").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    topics = page.locator("section.topics table")
    first = topics.locator("tbody tr").first
    assert first.locator("th, td").all_inner_texts()[-1] == "+0.4441"
    topics.get_by_role("button", name="difference").click()
    topics.get_by_role("button", name="difference").click()
    assert topics.locator("th[aria-sort=ascending]").inner_text().startswith("difference")
    assert float(first.locator("td").last.inner_text()) < 0
    topics.get_by_role("button", name="query").click()
    queries = topics.locator("tbody tr td:nth-child(2)").all_inner_texts()
    assert queries == sorted(queries, key=str.casefold)
    topics.get_by_role("link", name="147", exact=True).click()
    page.get_by_role("heading", name="bonfire rules").wait_for()
    page.locator("#lists").wait_for(timeout=30_000)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert seen.said == []
    assert all(url.startswith(site.url) for url in seen.requests)


def test_a_run_with_a_hostile_name_is_shown_as_text(site: Served) -> None:
    pair = urlencode({"one": "bm25", "other": EVIL})
    assert waited(site, f"/compare.json?{pair}")["state"] == "ready"
    assert waited(site, "/runs.json")["state"] == "ready"
    for path in (f"/compare?{pair}", "/runs", "/", "/topic?topic=101", f"/topic?{pair}"):
        text = site.client("vic", "viewer").get(path).text
        assert "&lt;img src=x" in text
        assert "<img" not in text

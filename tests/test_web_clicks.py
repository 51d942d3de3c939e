"""The page of clicks: what the command says of the same log and judgments, with two charts, tables, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from browsers import EVIL, Watched
from clicked import clicked, write_searches
from cranfield.experiments.clicks.click_summary import click_summary
from cranfield.experiments.log import EventLog
from cranfield.formats.runs_and_qrels import read_qrels
from cranfield.judging import Event
from workbench import Served, example, served, waited

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = clicked(example(tmp_path_factory.mktemp("clicks") / "garden"))
    with served(folder) as opened:
        yield opened


def test_the_page_says_what_the_command_says_of_the_same_log(site: Served) -> None:
    values = waited(site, "/clicks.json")
    topics = site.bench.topics()
    assert topics is not None
    judgments = read_qrels(str(site.bench.qrels))
    expected = click_summary(site.bench.event_log(), judgments.to_dict(), topics.queries).to_dict()
    assert values["answer"] == expected
    assert expected["pages"] == 400
    assert [row["grade"] for row in expected["grades"]] == [0, 1, 2, 3]
    assert values["notes"]
    text = site.client("vic", "viewer").get("/clicks").text
    assert f"Rank 1 is clicked on {100 * expected['ranks'][0]['share']:.1f} % of 400 pages" in text
    assert text.count('<svg class="chart"') == 2
    assert "cranfield online click-summary garden/events garden" in text


def test_the_tables_are_exported_as_csv(site: Served) -> None:
    waited(site, "/clicks.json")
    rows = list(csv.DictReader(io.StringIO(site.client("vic", "viewer").get("/clicks.csv").text)))
    values = waited(site, "/clicks.json")["answer"]
    assert [row["by"] for row in rows] == ["rank"] * len(values["ranks"]) + ["grade"] * 4
    assert [float(row["share"]) for row in rows] == [row["share"] for row in (*values["ranks"], *values["grades"])]


def test_another_model_gives_another_examination_and_the_same_clicks(site: Served) -> None:
    one, other = (waited(site, f"/clicks.json?model={model}")["answer"] for model in ("PBM", "UBM"))
    assert [row["share"] for row in one["ranks"]] == [row["share"] for row in other["ranks"]]
    assert [row["examination"] for row in one["ranks"][1:]] != [row["examination"] for row in other["ranks"][1:]]
    assert "UBM" in site.client("vic", "viewer").get("/clicks?model=UBM").text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("model=Nope", "Nope"),
        ("judgments=nope", "judgments must be"),
        ("policy=nope", "nope"),
        (f"model={EVIL[:9]}", "<"),
    ],
)
def test_an_unknown_model_or_source_is_refused_with_its_name(site: Served, query: str, said: str) -> None:
    reply = site.client("vic", "viewer").get(f"/clicks.json?{query}")
    assert reply.status == 400
    assert said in reply.json()["error"]


def test_new_labels_and_new_events_change_the_answer(tmp_path: Path) -> None:
    folder = clicked(example(tmp_path / "w"), searches=60)
    (folder / "qrels.txt").unlink()
    with served(folder) as opened:
        bare = waited(opened, "/clicks.json")
        assert bare["answer"]["grades"] is None
        assert "judged grade" not in opened.client("vic", "viewer").get("/clicks").text.split("What these numbers")[0]
        first = opened.bench.event_state()
        topic, documents = "101", [f"d{number:03}" for number in range(1, 30)]
        opened.bench.log.add([Event(topic=topic, document=each, grade=1, assessor="ann") for each in documents])
        judged = waited(opened, "/clicks.json")
        assert judged["answer"]["grades"] is not None
        opened.bench.log.add([Event(topic=topic, document="d031", grade=0, assessor="ann")])
        later = waited(opened, "/clicks.json")
        assert (later["newer"], later["answer"]) == (1, judged["answer"])
        write_searches(folder / "more", [("u", "new query", ["a", "b"], [1])] * 3)
        with EventLog(folder / "more") as more, EventLog(folder / "events") as log:
            log.append_lines([line.encode() for line in _lines(more)])
        assert opened.bench.event_state() != first
        assert waited(opened, "/clicks.json")["answer"]["pages"] == 63


def test_the_state_of_a_log_changes_as_its_open_file_doubles_and_not_with_every_event(tmp_path: Path) -> None:
    event = {"time": "2025-03-01T10:00:00Z", "kind": "exposure", "unit": "u", "experiment": "e", "variant": "v"}
    with EventLog(tmp_path / "log", create=True) as log:
        states = []
        for number in range(64):
            log.append_lines([json.dumps({"event_id": f"{number}", **event}).encode() + b"\n"])
            states.append(log.state())
        assert 6 <= len(set(states)) <= 8
        log.seal()
        assert log.state() == states[-1]
        log.pack()
        assert log.state() not in states


def _lines(log: EventLog) -> list[str]:
    rows = [{**row, "event_id": f"more-{row['event_id']}", "search": f"more-{row['search']}"} for row in log.events()]
    return [json.dumps(row) + "\n" for row in rows]


def test_a_workspace_without_a_log_says_how_to_make_one(tmp_path: Path) -> None:
    with served(example(tmp_path / "w")) as opened:
        values = opened.client("vic", "viewer").get("/clicks.json").json()
        assert values == {"events": False, "model": "PBM"}
        text = opened.client("vic", "viewer").get("/clicks").text
        assert "cranfield online ingest w/events FILE" in text
        assert opened.client("vic", "viewer").get("/clicks.csv").status == 409


@pytest.mark.parametrize("inside", ["", "segments", "notes.txt"])
def test_an_empty_log_or_another_folder_is_said_in_words(tmp_path: Path, inside: str) -> None:
    folder = example(tmp_path / "w")
    (folder / "events").mkdir()
    if inside.endswith(".txt"):
        (folder / "events" / inside).write_text("not a log")
    elif inside:
        (folder / "events" / inside).mkdir()
    with served(folder) as opened:
        for _ in range(200):
            reply = opened.client("vic", "viewer").get("/clicks.json")
            if reply.status != 202:
                break
        assert reply.status in (400, 422), reply.text
        assert str(tmp_path) not in reply.text
        assert reply.json()["error"].startswith(("events", "no ", "there", "w/events"))


def test_a_model_that_does_not_converge_says_so_and_offers_more_iterations(site: Served) -> None:
    path = "/clicks.json?model=PBM(iterations%3D2)"
    values = waited(site, path)
    assert "no examination: PBM(iterations=2) did not converge" in " ".join(values["notes"])
    assert {row["examination"] for row in values["answer"]["ranks"]} == {None}
    text = site.client("vic", "viewer").get(path.replace(".json", "")).text
    assert "Try again as PBM(iterations=20)" in text
    assert "Try again" not in site.client("vic", "viewer").get("/clicks").text


def test_hostile_texts_in_queries_and_documents_stay_texts(tmp_path: Path) -> None:
    folder = example(tmp_path / "w")
    write_searches(folder / "events", [(EVIL, EVIL, [EVIL, "b"][:: (-1) ** n], [1, 2][: n % 3]) for n in range(12)])
    with served(folder) as opened:
        values = waited(opened, "/clicks.json")
        assert values["state"] == "ready", values
        assert values["answer"]["pages"] == 12
        assert "<img" not in opened.client("vic", "viewer").get("/clicks").text


def test_a_report_of_the_workbench_has_the_clicks_of_the_page(site: Served) -> None:
    path = "/report.json?ending=json&measures=AP&clicks=UBM"
    assert waited(site, path)["state"] == "ready"
    report = site.client("vic", "viewer").get(path.replace("/report.json", "/report/file")).json()
    assert report["clicks"] == waited(site, "/clicks.json?model=UBM")["answer"]
    assert [file["path"] for file in report["inputs"] if file["role"] == "clicks"] == ["events"]
    text = site.client("vic", "viewer").get(path.replace(".json", "", 1)).text
    assert "--clicks garden/events --click-model UBM" in text
    refused = site.client("vic", "viewer").get("/report.json?ending=csv&clicks=UBM")
    assert (refused.status, "shows clicks" in refused.text) == (400, True)


def test_whoever_judges_blind_does_not_see_grades_by_clicks(site: Served) -> None:
    from cranfield.judging.round_plan import Round, RoundItem
    from cranfield.judging.rounds import open_round

    site.account("eve", "assessor")
    open_round(site.bench.log, Round(name="blind", assessors=("eve",)), [RoundItem("101", "d001")])
    for ending in ("", ".json", ".csv"):
        assert site.client("eve", "assessor").get(f"/clicks{ending}").status == 403


def test_a_browser_shows_charts_and_tables_and_changes_the_model(site: Served, browser: Any) -> None:
    context = site.context(browser, "lea", "lead")
    watched = Watched(context)
    page = watched.page
    page.goto("/clicks")
    page.locator(".verdict", has_text="Rank 1 is clicked on").wait_for()
    assert page.locator("svg.chart").count() == page.locator("table").count() == 2
    for chart in page.locator("svg.chart").all():
        assert chart.locator("title").first.text_content()
        assert chart.locator("desc").text_content() == "The tables below hold the numbers."
    page.get_by_label("Click model").select_option("DBN")
    page.get_by_role("button", name="Show").click()
    page.locator(".legend", has_text="examination, by DBN").wait_for()
    assert watched.said == []
    assert all(url.startswith(site.url) for url in watched.requests)
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_no_page_is_wider_than_a_phone(site: Served, browser: Any, scheme: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    for width in (390, 1280):
        context = site.context(browser, "lea", "lead", viewport={"width": width, "height": 800}, color_scheme=scheme)
        page = context.new_page()
        page.goto("/clicks")
        page.locator("svg.chart").first.wait_for()
        page.locator("details", has_text="What these numbers mean").locator("summary").click()
        found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
        assert [each["id"] for each in found] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        context.close()

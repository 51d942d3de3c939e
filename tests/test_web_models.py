"""The page of models: what `judge models`, `judge calibrate` and `judge estimate` say of the same log, to leads alone."""

from __future__ import annotations

import csv
import io
import json
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from browsers import EVIL, Watched
from chatting import chatting, dropped, grade, says
from cranfield.commands.judging import begin_round
from cranfield.commands.llm_judges import ask, calibrate, estimate, model_failures, model_runs
from cranfield.judging import Event
from cranfield.judging.llm import ask as asking
from cranfield.judging.llm.drift import drift_checks
from cranfield.judging.llm.probes import probes_of
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from databases import new_database
from workbench import Client, Served, example, served

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL, LARGE = "small/graded-1", "large/passage-1"
RAW = f"Well … {EVIL}\nsecond line \u202e" + "and so on " * 400
SECRET = "sk-very-secret-0123456789"
TOPICS = 6


def pairs_of(folder: Path) -> list[tuple[str, str, int]]:
    rows = [line.split() for line in (folder / "qrels.txt").read_text().splitlines()]
    first = list(dict.fromkeys(row[0] for row in rows))[:TOPICS]
    kept = [(topic, document, int(grade)) for topic, _, document, grade in rows if topic in first]
    return [pair for topic in first for pair in [each for each in kept if each[0] == topic][:5]]


def filled(site: Served, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """People's labels, a model that rambles and drifts, one that is fine, and a round that drew."""
    pairs, log = pairs_of(folder), site.bench.location
    (folder / "pool.jsonl").write_text("".join(json.dumps({"topic": t, "document": d}) + "\n" for t, d, _ in pairs))
    coin = random.Random(1)
    site.bench.log.add(
        [
            Event(topic=t, document=d, grade=min(3, g + (who == "bob" and coin.random() < 0.2)), assessor=who)
            for t, d, g in pairs
            for who in ("ann", "bob")
        ]
    )
    terms = asking.ask
    monkeypatch.setattr(asking, "ask", lambda *given, **more: terms(*given, **{"pause": lambda _: None, **more}))
    monkeypatch.setenv("THE_KEY", SECRET)
    with chatting() as chat:
        chat.models = ("small", "large")
        given: dict[str, Any] = {"pool": str(folder / "pool.jsonl"), "collection": str(folder), "endpoint": chat.url}
        given |= {"clients": 1, "retries": 0, "price_in": 1.0, "price_out": 2.0, "key_env": "THE_KEY"}
        refusals = [says("no", "content_filter")] * 9
        answers = [grade(0), says(RAW), grade(7), dropped, *refusals] + [
            grade(coin.choice([0, 0, 1, 2, 3])) for _ in range(200)
        ]
        chat.script = {"": answers}
        ask(log, model="small", prompt="graded", **given)
        chat.script = {}
        chat.usual = grade(1)
        ask(log, model="small", prompt="graded", probe=4, accept_drift=True, **given)
        chat.script = {"": [grade(min(3, g)) for _, _, g in pairs]}
        ask(log, model="large", prompt="passage", **given)
    begin_round(log, name="drawn", pool=str(folder / "pool.jsonl"), sample=16, assessors=("nobody",))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = example(tmp_path_factory.mktemp("models") / "w")
    with served(folder) as opened, pytest.MonkeyPatch.context() as patch:
        filled(opened, folder, patch)
        yield opened


def path(ending: str = "", **query: Any) -> str:
    return f"/models{ending}{'?' if query else ''}{urlencode(query)}"


def waited(client: Client, where: str) -> Any:
    """A page whose jobs are done."""
    for _ in range(600):
        reply = client.get(where)
        if (
            reply.status != 202
            and b"data-job" not in reply.body
            and "nothing to put into a table yet" not in reply.text
        ):
            return reply
        time.sleep(0.05)
    raise AssertionError("it is still being worked out")


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def told(site: Served, answer: Any) -> Any:
    return json.loads(json.dumps(answer).replace(site.bench.location, "work.db"))


def check_page(site: Served) -> None:
    """The JSON says what the verbs say."""
    values = waited(site.client("lea"), path(".json", model=SMALL)).json()
    here, runs = site.bench.location, [run.path for run in site.bench.runs()]
    expected = model_runs(here).to_dict()
    assert values["models"] == expected["models"]
    assert values["spent"] == expected["spent"]
    assert values["runs"] == [each for each in expected["runs"] if each["assessor"] == SMALL]
    assert values["failures"]["rows"] == model_failures(here, SMALL, n=10).to_dict()["rows"]
    assert values["calibration"]["state"] == "ready"
    assert values["calibration"]["answer"]["findings"] == calibrate(here, runs, model=SMALL).findings()
    estimated = estimate(here, runs, ["P@10", "DCG@10"], model=SMALL, round="drawn").to_dict()
    assert values["estimate"]["answer"]["rows"] == estimated["rows"]
    assert values["probes"] == probes_of(site.bench.log, SMALL).to_dict()
    assert values["probes"]["probes"][0]["asked"] == 4
    assert [each["accepted"] for each in values["drift"]] == [True]
    assert [each.plain() for each in drift_checks(site.bench.log, SMALL)] == values["drift"]


def test_the_page_says_what_the_commands_say(site: Served) -> None:
    check_page(site)


@pytest.mark.slow
def test_the_page_says_the_same_on_postgresql(tmp_path: Path, postgres: Any) -> None:
    folder = example(tmp_path / "w")
    with served(folder, new_database(postgres)) as opened, pytest.MonkeyPatch.context() as patch:
        filled(opened, folder, patch)
        check_page(opened)


def test_every_table_is_there_as_csv(site: Served) -> None:
    lead, here = site.client("lea"), site.bench.location
    assert [row["assessor"] for row in rows_of(lead.get(path(".csv")).text)] == [LARGE, SMALL, SMALL]
    assert len(rows_of(lead.get(path(".csv", model=LARGE)).text)) == 1
    failures = rows_of(lead.get(path(".csv", table="failures", reason="unparsed")).text)
    assert [row["raw"] for row in failures] == [RAW[:4000]]
    assert len(rows_of(lead.get(path(".csv", table="failures")).text)) == model_failures(here).total
    probes = rows_of(lead.get(path(".csv", table="probes", model=SMALL)).text)
    assert {row["probe"] for row in probes} == {"again", "stuffed", "injected"}
    assert [row["accepted"] for row in rows_of(lead.get(path(".csv", table="drift", model=SMALL)).text)] == ["True"]
    estimates = rows_of(waited(lead, path(".csv", table="estimate", model=SMALL)).text)
    assert {row["measure"] for row in estimates} == {"P@10", "DCG@10"}
    assert waited(lead, path(".csv", table="calibration", model=SMALL)).text.count("\n") > 3
    odd = lead.get(path(".json", table="shoes")).status, lead.get(path(".csv", table="shoes"))
    assert odd[0] in (200, 202)
    assert (odd[1].status, "expected runs, failures, calibration" in odd[1].text) == (400, True)


def test_failures_are_filtered_and_turned_over_page_by_page(site: Served) -> None:
    lead, every = site.client("lea"), model_failures(site.bench.location, n=1000).rows
    pages = [lead.get(path(".json", **{"from": start})).json()["failures"]["rows"] for start in range(0, 20, 10)]
    assert [row["id"] for page in pages for row in page] == [each.id for each in every]
    assert 10 < len(every) <= 20
    one = lead.get(path(".json", reason="unparsed")).json()["failures"]
    assert (one["total"], one["rows"][0]["problem"], one["rows"][0]["characters"]) == (1, "unparsed", len(RAW))
    assert set(one["reasons"]) == {"dropped", "off the scale", "refusal", "unparsed"}
    beyond = lead.get(path(**{"from": 5000})).text
    assert "Show the first" in beyond
    whole = lead.get(path(".json", question=one["rows"][0]["id"])).json()["failures"]["rows"][0]["raw"]
    assert whole == RAW
    assert lead.get(path(".json", model=LARGE)).json()["failures"]["total"] == 0
    assert "Every reply is a label" in lead.get(path(model=LARGE)).text


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"model": "nobody"}, 404),
        ({"question": "nope"}, 404),
        ({"round": "nope"}, 404),
        ({"from": "-1"}, 400),
        ({"measures": "Nope"}, 400),
    ],
)
def test_what_is_not_there_is_said(site: Served, query: dict[str, str], status: int) -> None:
    for ending in ("", ".json"):
        reply = site.client("lea").get(path(ending, **query))
        assert reply.status == status
        assert "Traceback" not in reply.text


@pytest.mark.parametrize("ending", ["", ".json", ".csv"])
@pytest.mark.parametrize("role", ["viewer", "assessor"])
def test_only_a_lead_sees_what_models_said(site: Served, role: str, ending: str) -> None:
    for query in ({}, {"table": "failures"}, {"model": SMALL}, {"question": "q"}):
        reply = site.client(role, role).get(path(ending, **query))
        assert reply.status == 403
        assert SMALL not in reply.text
    assert site.client().get(path(".json")).status == 401
    assert "/models" not in site.client(role, role).get("/").text


def test_an_assessor_with_an_open_round_sees_no_label_of_a_model_anywhere(tmp_path: Path) -> None:
    with served(example(tmp_path / "w")) as opened:
        log = opened.bench.log
        log.add([Event(topic="101", document="d002", grade=3, assessor=SMALL, source="model", note="the model says 3")])
        open_round(log, Round(name="one"), [RoundItem("101", "d002")])
        assessor = opened.client("ann", "assessor")
        for where in ("/models", "/models.json", "/models.csv", "/label?topic=101&document=d002", "/judge.json"):
            reply = assessor.get(where)
            assert "the model says 3" not in reply.text, where
            assert SMALL not in reply.text, where


def test_no_key_and_no_place_is_told(site: Served) -> None:
    lead = site.client("lea")
    for where in (path(), path(".json"), path(".csv"), path(".csv", table="failures")):
        text = waited(lead, where).text
        assert SECRET not in text
        assert str(Path(site.bench.folder).parent) not in text


def test_where_no_model_was_asked_the_page_says_how(tmp_path: Path) -> None:
    with served(example(tmp_path / "w")) as empty:
        lead = empty.client("lea")
        assert "cranfield judge ask w/work.db --pool pool.jsonl --collection w" in lead.get("/models").text
        assert lead.get("/models.json").json()["models"] == []
        assert lead.get("/models.csv").text.startswith("time,assessor")
        assert lead.get("/models.csv?table=probes").status == 409


def test_labels_that_were_added_can_be_calibrated_and_estimates_say_what_they_need(tmp_path: Path) -> None:
    folder = example(tmp_path / "w")
    with served(folder) as opened:
        pairs = pairs_of(folder)
        opened.bench.log.add([Event(topic=t, document=d, grade=g, assessor="ann") for t, d, g in pairs])
        opened.bench.log.add(
            [Event(topic=t, document=d, grade=min(g, 2), assessor="gpt", source="model") for t, d, g in pairs]
        )
        values = waited(opened.client("lea"), "/models.json").json()
        assert (values["model"], values["runs"], values["estimate"]) == ("gpt", [], None)
        assert values["calibration"]["answer"]["findings"][0].startswith("gpt agrees with people")
        text = opened.client("lea").get("/models").text
        assert "its labels were imported" in text
        assert "cranfield judge round w/work.db --pool FILE --sample N" in text


def test_a_model_that_nobody_can_be_held_against_is_told_so(tmp_path: Path) -> None:
    with served(example(tmp_path / "w")) as opened:
        opened.bench.log.add([Event(topic="101", document="d002", grade=1, assessor="gpt", source="model")])
        reply = waited(opened.client("lea"), "/models.json")
        assert reply.status == 200  # what there is to say of the runs is said
        assert "no current label of a person" in reply.json()["calibration"]["error"]
        assert "It cannot be calibrated yet" in opened.client("lea").get("/models").text


def test_verdicts_failures_and_hostile_text_are_on_the_page(site: Served, browser: Any) -> None:
    context = site.context(browser, "lea", "lead")
    watched = Watched(context)
    page = watched.page
    page.goto(path(model=SMALL))
    page.locator("#calibration .verdict").wait_for()
    assert page.locator(".judge").count() == 2
    findings = waited(site.client("lea"), path(".json", model=SMALL)).json()["calibration"]["answer"]["findings"]
    verdict = page.locator(".judge", has=page.locator("h2", has_text=SMALL)).locator(".said").inner_text()
    assert verdict.lower().startswith(findings[0].removeprefix(f"{SMALL} ").lower())
    page.locator("#failures select[name=reason]").select_option("unparsed")
    page.get_by_role("button", name="Show").click()
    page.locator(".failures li").first.wait_for()
    assert page.locator(".failures li").count() == 1
    shown = page.locator(".failures .raw").inner_text()
    assert EVIL in shown
    assert "\\u202e" in shown
    page.get_by_role("link", name=f"All {len(RAW):,} characters").click()
    page.get_by_role("link", name="All failures").wait_for()
    assert page.locator(".failures .raw").inner_text().count("and so on") == 400
    page.get_by_role("link", name="All failures").click()
    page.locator("#failures").get_by_role("link", name="Next").click()
    page.locator(".failures[start='11']").wait_for()
    page.locator(".told-of").first.wait_for()
    page.locator("summary", has_text="Decide").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Models", exact=True).focus()
    page.keyboard.press("Enter")
    page.locator("h1", has_text="Models").wait_for()
    assert page.locator("img").count() == 0
    assert watched.said == []
    assert all(url.startswith(site.url) for url in watched.requests)
    context.close()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), pytest.param(1280, "light", marks=pytest.mark.slow)])
def test_the_page_has_no_serious_finding_and_works_without_scripts(
    site: Served, browser: Any, width: int, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    waited(site.client("lea"), path(model=SMALL))
    size = {"width": width, "height": 800}
    context = site.context(browser, "lea", "lead", viewport=size, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(path(model=SMALL))
    found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    assert page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth") <= 0
    context.close()
    context = site.context(browser, "lea", "lead", viewport=size, java_script_enabled=False)
    page = context.new_page()
    page.goto(path(model=SMALL))
    assert page.locator("#calibration table").count() > 2
    page.get_by_role("button", name="Estimate").click()
    assert "measures=P%4010+DCG%4010" in page.url
    assert page.locator("#estimates table").count() == 2
    context.close()

"""The page of agreement: what `judge agree` says of the same log, with charts, drift and tau."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import pytest

from browsers import EVIL, Watched
from cranfield.commands.judging import agree
from cranfield.judging import Event
from cranfield.judging.agreement import drift_of, people_of
from cranfield.stats.agreement import Labels
from cranfield.stats.ratings import coincidences, confusion
from workbench import Served, example, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PEOPLE = ("ann", "bob", EVIL)


def labels(n: int = 60) -> list[Event]:
    coin = random.Random(5)
    return [
        Event(
            topic=f"{101 + i % 3}",
            document=f"d{i:03}",
            grade=coin.choice([0, 0, 1, 3]) if coin.random() < 0.3 else i % 4,
            assessor=who,
            time=f"2026-03-01T10:{i % 60:02}:00",
        )
        for i in range(n)
        for who in PEOPLE
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(example(tmp_path_factory.mktemp("agreement") / "w")) as opened:
        opened.bench.log.add(labels())
        yield opened


def waited(site: Served, path: str) -> Any:
    """The JSON of a page whose job is done."""
    for _ in range(600):
        reply = site.client("lea").get(path)
        if reply.status != 202:
            return reply
        time.sleep(0.05)
    raise AssertionError("it is still being worked out")


def test_the_page_says_what_judge_agree_says(site: Served) -> None:
    values = waited(site, "/agreement.json").json()
    runs = [run.path for run in site.bench.runs()]
    expected = agree([site.bench.location], runs=runs, measures=["nDCG@10"]).to_dict()
    for name in ("coefficients", "coincidences", "people", "drift", "rankings", "contradictions"):
        assert values["answer"][name] == expected[name], name
    assert {each["assessor"] for each in values["answer"]["rankings"]} == set(PEOPLE)
    assert len(values["answer"]["drift"]["bob"]) == 6
    assert waited(site, "/agreement.csv").text.startswith("coefficient,value,low,high")


def test_drift_against_halves_counted_by_hand() -> None:
    said = labels(40)
    for person in people_of(said):
        spans = drift_of(said)[person.assessor]
        assert [span.until for span in spans] == [10, 20, 30, 40]
        assert sum(span.pairs for span in spans) == 80
        assert (spans[0].agree + spans[1].agree) / 2 == pytest.approx(person.first)
        assert sum(span.agree for span in spans) / 4 == pytest.approx(person.agree)
    assert drift_of(said[: 3 * 19]) == {}  # too few


def test_coincidences_against_confusion_of_two_raters() -> None:
    two = Labels.of_confusion([[5, 2, 0], [1, 4, 3], [0, 1, 6]])
    table = confusion(two)
    both = table + table.T
    for i in range(3):
        both[i, i] //= 2
    assert coincidences(two).tolist() == both.tolist()


def test_one_round_and_one_view_can_be_asked_for(site: Served) -> None:
    assert "there is no round" in waited(site, "/agreement.json?round=nope").json()["error"]
    by = waited(site, "/agreement.json?by=pair").json()["answer"]["by"]["pair"]
    assert f"ann and {EVIL}" in by or f"{EVIL} and ann" in by
    assert waited(site, "/agreement.json?by=shoes").status == 400
    assert waited(site, "/agreement.json?measure=Nope").status == 400


def test_nothing_to_agree_on_is_said_in_words(tmp_path: Path) -> None:
    with served(example(tmp_path / "w")) as empty:
        reply = waited(empty, "/agreement.json")
        assert reply.status == 422
        assert "there are no labels" in reply.json()["error"]
        assert "there are no labels" in waited(empty, "/agreement").text


def test_fewer_than_three_runs_leave_out_tau_alone(tmp_path: Path) -> None:
    folder = example(tmp_path / "w")
    for run in list((folder / "runs").iterdir())[2:]:
        run.unlink()
    with served(folder) as opened:
        opened.bench.log.add(labels(12))
        values = waited(opened, "/agreement.json").json()
        assert values["answer"]["rankings"] == []
        assert values["answer"]["coefficients"]


@pytest.mark.parametrize("role", ["viewer", "assessor"])
def test_only_a_lead_sees_how_people_agree(site: Served, role: str) -> None:
    assert site.client(role, role).get("/agreement.json").status == 403


def test_the_page_shows_verdict_charts_and_tables(site: Served, browser: Any) -> None:
    context = site.context(browser, "lea", "lead")
    watched = Watched(context)
    page = watched.page
    page.goto("/agreement")
    page.locator("text=3 people on 60 documents").wait_for()
    assert page.locator("svg.chart").count() == 2
    assert page.locator("table").count() >= 5
    page.get_by_role("link", name="with labels that contradict").click()
    page.locator("#progress", has_text="to decide").wait_for()
    assert watched.said == []
    assert all(url.startswith(site.url) for url in watched.requests)
    context.close()

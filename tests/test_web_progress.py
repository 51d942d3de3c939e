"""Progress of every long job, the list of what is under way, and cancelling."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

import cranfield
from cranfield.base.notifications import progress_to
from cranfield.commands.judging import agree, diff
from cranfield.judging import Event, open_log
from cranfield.judging.versions import freeze
from shell import EXAMPLES
from workbench import example, served

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RUNS = [str(EXAMPLES / name) for name in ("bm25.run", "dense.run")]
QRELS = str(EXAMPLES / "qrels.txt")


def labelled(folder: Path) -> str:
    where = str(folder / "work.db")
    log = open_log(where)
    log.add(
        [Event(topic="q1", document=f"d{n}", grade=n % 2, assessor=who) for n in range(6) for who in ("ann", "bob")]
    )
    freeze(log, "v", "latest")
    log.close()
    return where


@pytest.mark.parametrize(
    "work",
    [
        lambda where: agree([where]),
        lambda where: diff(where, "v", runs=RUNS, measures=["AP"]),
        lambda where: cranfield.reuse(QRELS, RUNS, ["AP"]),
        lambda where: cranfield.curves(QRELS, RUNS),
        lambda where: cranfield.side_by_side(QRELS, *RUNS),
    ],
    ids=["agree", "diff", "reuse", "curves", "sides"],
)
def test_a_long_computation_tells_how_far_it_is(tmp_path: Path, work: Callable[[str], Any]) -> None:
    where, steps = labelled(tmp_path), []
    with progress_to(lambda done, total: steps.append((done, total))):
        work(where)
    assert steps
    assert all(total is None or 0 <= done <= total for done, total in steps)
    assert any(total and done == total for done, total in steps)
    steps.clear()
    work(where)
    assert not steps


def test_running_jobs_are_listed_and_a_lead_cancels_one(tmp_path: Path) -> None:
    from cranfield.workbench.jobs import Jobs

    with served(example(tmp_path / "w")) as site:
        jobs = Jobs(site.bench, patience=0)  # workers of its own, which can be killed
        site.site.jobs, shared = jobs, site.site.jobs
        try:
            lead, viewer = site.client("zoe", "lead"), site.client("vic", "viewer")
            assert lead.get("/jobs.json").json() == {"jobs": []}
            assert lead.get("/runs.json").json()["state"] == "running"
            [job] = lead.get("/jobs.json").json()["jobs"]
            assert job["kind"] == "leaderboard"
            assert "Cancel leaderboard" in lead.get("/jobs").text
            assert viewer.get("/jobs").status == 403
            assert viewer.post("/jobs", {"id": job["id"]}).status == 403
            assert lead.post("/jobs", {"id": "none"}).status == 404
            assert lead.post("/jobs", {"id": job["id"]}).status == 303
            for _ in range(100):
                values = lead.get("/runs.json").json()
                if values["state"] == "failed":
                    break
                time.sleep(0.05)
            assert "cancelled by zoe" in values["error"]
            assert lead.get("/jobs.json").json() == {"jobs": []}
        finally:
            jobs.close()
            site.site.jobs = shared


def test_a_page_that_somebody_goes_through_by_tab_offers_its_result_and_keeps_the_focus(
    tmp_path: Path, browser: Any
) -> None:
    with served(example(tmp_path / "w")) as site:
        workers, held = site.site.jobs.workers, []
        put, workers.put = workers.put, held.append  # type: ignore[method-assign]
        context = site.context(browser, "zoe", "lead")
        page = context.new_page()
        page.goto("/")
        page.locator("[data-job]").first.wait_for()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        for task in held:
            put(task)
        workers.put = put  # type: ignore[method-assign]
        page.get_by_role("link", name="The result is ready").first.wait_for()
        assert page.evaluate("document.activeElement.className") == "home"
        context.close()

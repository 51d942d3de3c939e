"""A page of judging without a connection, after the session has ended, and while the server is started again: in Chromium."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from browsers import Watched
from cranfield.inputs.workspace import open_bench
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from workbench import PASSWORD, PASSWORD_HASH, Process, Served, example, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOCUMENTS = [f"d{number:03d}" for number in range(2, 8)]
CACHES = """async () => Promise.all((await caches.keys()).map(async (name) =>
  [name, (await (await caches.open(name)).keys()).map((request) => new URL(request.url).pathname)]))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(example(tmp_path_factory.mktemp("offline") / "garden")) as opened:
        yield opened


def open_round_of(site: Served, name: str) -> str:
    open_round(site.bench.log, Round(name=name), [RoundItem("101", document) for document in DOCUMENTS])
    return name


def judging(page: Any, name: str) -> None:
    page.goto(f"/judge?{urlencode({'round': name})}")
    page.locator("#form[data-ready]").wait_for(state="attached")


def shows(page: Any, document: str) -> None:
    page.locator("#doc-id", has_text=document).wait_for()


def labels_in(folder: Path, name: str, count: int) -> list[tuple[str, float | None]]:
    """The labels of a round, when there are so many."""
    bench = open_bench(folder)
    try:
        for _ in range(200):
            events = [event for event in bench.log.events() if event.round == name]
            if len(events) >= count:
                break
            time.sleep(0.05)
        return [(event.document, event.grade) for event in events]
    finally:
        bench.close()


def test_judging_goes_on_after_a_reload_while_the_server_is_down_and_nothing_is_lost(
    tmp_path: Path, browser: Any
) -> None:
    folder = example(tmp_path / "garden")
    bench = open_bench(folder)
    open_round(bench.log, Round(name="1"), [RoundItem("101", document) for document in DOCUMENTS])
    bench.close()
    process = Process(folder)
    try:
        context = browser.new_context(base_url=f"http://127.0.0.1:{process.port}")
        page = context.new_page()
        page.goto(process.link)
        judging(page, "1")
        page.locator("body[data-offline=ready]").wait_for(state="attached")
        page.keyboard.press("1")
        shows(page, "d003")
        assert labels_in(folder, "1", 1) == [("d002", 1)]
        page.wait_for_function("async () => !Object.keys(localStorage).length")
        page.wait_for_timeout(300)  # the next documents are stored behind the paint
        process.kill()
        page.keyboard.press("2")
        shows(page, "d004")
        page.reload()
        page.locator("#form[data-ready]").wait_for(state="attached")
        shows(page, "d004")  # neither the sent d002 nor the waiting d003
        page.locator("#unsent", has_text="1 not sent yet").wait_for()
        page.keyboard.press("3")
        page.locator("#unsent", has_text="2 not sent yet").wait_for()
        process.start()
        page.evaluate("dispatchEvent(new Event('online'))")
        assert labels_in(folder, "1", 3) == [("d002", 1), ("d003", 2), ("d004", 3)]
        page.wait_for_function("async () => !Object.keys(localStorage).length")
        context.close()
    finally:
        process.stop()


def test_each_account_has_a_cache_of_its_own_and_signing_out_empties_all(site: Served, browser: Any) -> None:
    name = open_round_of(site, "caches")
    context = site.context(browser, "ann", "assessor")
    page = context.new_page()
    for who in ("ann", "bob"):
        context.clear_cookies()
        key, _, value = site.account(who, "assessor").partition("=")
        context.add_cookies([{"name": key, "value": value, "url": site.url}])
        judging(page, name)
        page.locator("body[data-offline=ready]").wait_for(state="attached")
    stored = {cache: paths for cache, paths in page.evaluate(CACHES) if "/judge" in paths}
    assert len(stored) == 2
    page.goto("/me")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login")
    assert page.evaluate(CACHES) == []
    context.close()


def test_a_browser_without_service_workers_says_that_a_reload_needs_a_connection(site: Served, browser: Any) -> None:
    name = open_round_of(site, "without")
    context = site.context(browser, "ann", "assessor")
    context.add_init_script("delete Navigator.prototype.serviceWorker")
    page = context.new_page()
    judging(page, name)
    page.keyboard.press("?")
    page.locator("#reload-note", has_text="Do not reload this page without a connection").wait_for()
    context.close()


def test_after_the_session_has_ended_the_page_leads_back_in_and_sends_what_waits(site: Served, browser: Any) -> None:
    name = open_round_of(site, "session")
    context = site.context(browser, "cleo", "assessor")
    watched = Watched(context)
    page = watched.page
    judging(page, name)
    site.site.accounts.set_password("cleo", PASSWORD_HASH)  # every session of the account ends
    page.keyboard.press("2")
    banner = page.locator("#session-ended")
    banner.locator("text=Your session has ended").wait_for()
    page.locator("#unsent", has_text="sign in again to send them").wait_for()
    banner.get_by_role("link", name="Sign in again").click()
    page.get_by_label("Name").fill("cleo")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/judge?*")
    shows(page, "d003")
    assert labels_in(site.bench.folder, name, 1) == [("d002", 2)]  # type: ignore[arg-type]
    assert page.locator("#session-ended").count() == 0
    context.close()


def test_a_local_session_that_ended_names_the_command_that_prints_a_link(tmp_path: Path, browser: Any) -> None:
    with served(example(tmp_path / "w"), accounts=False) as local:
        open_round_of(local, "local")
        context = local.context(browser, "me", "lead")
        page = context.new_page()
        judging(page, "local")
        context.clear_cookies()
        page.keyboard.press("1")
        page.locator("#session-ended", has_text="cranfield serve FOLDER --link").wait_for()
        context.close()


def test_a_page_that_waits_for_a_result_goes_on_after_an_outage(
    site: Served, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.site.jobs, "patience", 0.0)  # every new question is a job
    context = site.context(browser, "zoe", "lead")
    page = context.new_page()
    page.goto("/runs?measures=P@7")
    page.locator("[data-job]").first.wait_for(state="attached")
    outages = ["connectionrefused", "connectionreset"]
    page.route("**/runs?**", lambda route: route.abort(outages.pop()) if outages else route.continue_())
    page.locator(".outage", has_text="No connection to the server").first.wait_for()
    page.locator(".verdict").first.wait_for()
    assert not outages
    context.close()

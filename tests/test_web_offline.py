"""A page of judging without a connection, after the session has ended, and while the server is started again: in Chromium."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from browsers import Watched
from cranfield.inputs.workspace import open_bench
from cranfield.judging import Event
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from test_web_card import png
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
        page.locator("#unsent", has_text="1 not sent yet: no connection to the server").wait_for()
        page.keyboard.press("3")
        page.locator("#unsent", has_text="2 not sent yet").wait_for()
        shows(page, "d005")
        page.keyboard.press("z")
        shows(page, "d004")
        page.wait_for_timeout(300)
        page.reload()
        shows(page, "d004")
        assert [line[0] for line in page.locator("#labels li").all_inner_texts()] == ["2", "1"]  # not the withdrawn one
        page.keyboard.press("1")
        page.locator("#unsent", has_text="4 not sent yet").wait_for()
        process.start()
        page.evaluate("dispatchEvent(new Event('online'))")
        assert labels_in(folder, "1", 4) == [("d002", 1), ("d003", 2), ("d004", 3), ("d004", 1)]  # each once
        page.wait_for_function("async () => !Object.keys(localStorage).length")
        page.goto("/judge?round=1")
        page.locator("#progress", has_text="3 of 6 labels, 3 yours").wait_for()  # the first label of d004 is withdrawn
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


def test_an_account_without_a_connection_sees_no_page_of_another(site: Served, browser: Any) -> None:
    name = open_round_of(site, "two accounts")
    context = site.context(browser, "ann", "assessor")
    page = context.new_page()
    judging(page, name)
    page.locator("body[data-offline=ready]").wait_for(state="attached")
    page.keyboard.press("n")
    page.keyboard.type("a secret of ann")
    page.keyboard.press("Enter")
    page.keyboard.press("1")
    shows(page, "d003")
    key, _, value = site.account("bob", "assessor").partition("=")
    context.clear_cookies()
    context.add_cookies([{"name": key, "value": value, "url": site.url}])
    other = context.new_page()
    judging(other, name)
    other.locator("body[data-offline=ready]").wait_for(state="attached")
    other.wait_for_timeout(300)  # the next documents are stored behind the paint
    context.set_offline(True)
    other.reload()
    other.locator("#form[data-ready]").wait_for(state="attached")
    assert other.locator("body").get_attribute("data-account") == "bob"
    assert "a secret of ann" not in other.content()
    context.close()


def test_a_page_that_is_still_open_stores_nothing_after_its_account_has_signed_out(site: Served, browser: Any) -> None:
    name = open_round_of(site, "signed out")
    context = site.context(browser, "ann", "assessor")
    page = context.new_page()
    judging(page, name)
    page.locator("body[data-offline=ready]").wait_for(state="attached")
    other = context.new_page()
    other.goto("/me")
    # the worker does not control a page that was loaded with Shift: there the page itself empties the caches
    other.evaluate("async () => (await navigator.serviceWorker.getRegistration()).unregister()")
    other.reload()
    assert other.evaluate("() => navigator.serviceWorker.controller") is None
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url("**/login")
    page.keyboard.press("1")
    shows(page, "d003")
    page.locator("#session-ended").wait_for()
    page.wait_for_timeout(300)
    assert page.evaluate(CACHES) == []
    context.close()


def test_a_cache_holds_the_last_pages_and_no_more(site: Served, browser: Any) -> None:
    name = open_round_of(site, "many pages")
    context = site.context(browser, "ann", "assessor")
    page = context.new_page()
    judging(page, name)
    page.locator("body[data-offline=ready]").wait_for(state="attached")
    page.reload()  # now the worker controls the page
    page.locator("body[data-offline=ready]").wait_for(state="attached")
    page.evaluate(
        "async () => { for (let n = 0; n < 25; n++) await (await fetch(`/search?topic=101&query=w${n}`)).text(); }"
    )
    pages: list[str] = []
    for _ in range(100):
        pages = [path for _, paths in page.evaluate(CACHES) for path in paths if path in ("/search", "/judge")]
        if len(pages) == 20:
            break
        page.wait_for_timeout(50)
    assert pages == ["/search"] * 20
    context.set_offline(True)
    other = context.new_page()
    other.goto("/search?topic=101&query=w24")
    assert other.locator("#query").input_value() == "w24"
    with pytest.raises(Exception, match="ERR_"):  # no page of another search takes its place
        other.goto("/search?topic=102&query=w24")
    context.close()


def test_images_of_the_next_documents_are_there_without_a_connection(tmp_path: Path, browser: Any) -> None:
    folder = example(tmp_path / "garden")
    (folder / "images").mkdir()
    (folder / "images" / "tea.png").write_bytes(png(40, 30, 128))
    rows = [json.loads(line) for line in (folder / "documents.jsonl").read_text().splitlines()]
    (folder / "documents.jsonl").write_text("".join(json.dumps({**row, "photo": "tea.png"}) + "\n" for row in rows))
    with (folder / "collection.toml").open("a") as file:
        file.write('\n[card]\nfields = [{name = "photo", type = "image"}]\n')
    with served(folder) as site:
        name = open_round_of(site, "images")
        context = site.context(browser, "ann", "assessor")
        page = context.new_page()
        judging(page, name)
        page.locator("body[data-offline=ready]").wait_for(state="attached")
        for _ in range(100):
            if sum(paths.count("/image") for _, paths in page.evaluate(CACHES)) == 3:
                break
            page.wait_for_timeout(50)
        context.set_offline(True)
        page.reload()
        page.locator("#form[data-ready]").wait_for(state="attached")
        page.keyboard.press("1")
        shows(page, "d003")
        page.wait_for_function("() => document.querySelector('#above img').naturalWidth === 40")
        context.close()


def test_decisions_go_on_after_a_reload_without_a_connection(tmp_path: Path, browser: Any) -> None:
    with served(example(tmp_path / "garden")) as site:
        people = {"ann": 0, "bob": 3}
        site.bench.log.add(
            [
                Event(topic="101", document=each, grade=g, assessor=who)
                for each in DOCUMENTS
                for who, g in people.items()
            ]
        )
        context = site.context(browser, "lea", "lead")
        page = context.new_page()
        page.goto("/adjudicate")
        page.locator("body[data-offline=ready][data-ready]").wait_for(state="attached")
        page.wait_for_timeout(300)
        context.set_offline(True)
        page.keyboard.press("2")
        shows(page, "d003")
        page.wait_for_timeout(300)
        page.reload()
        page.locator("body[data-ready]").wait_for(state="attached")
        shows(page, "d003")
        page.keyboard.press("1")
        page.locator("#nothing-title", has_text="No connection: the next document comes when it is back").wait_for()
        context.set_offline(False)
        page.locator("#progress", has_text="4 to decide, 2 decided").wait_for()
        shows(page, "d004")
        decided = [(e.document, e.grade) for e in site.bench.log.events() if e.kind == "adjudication"]
        assert decided == [("d002", 2), ("d003", 1)]
        context.close()


def test_a_certificate_that_is_not_trusted_allows_no_reload_without_a_connection(
    tmp_path: Path, pem: Path, browser: Any
) -> None:
    with served(example(tmp_path / "garden"), pem=pem) as site:
        name = open_round_of(site, "untrusted")
        context = browser.new_context(base_url=site.url, ignore_https_errors=True)
        key, _, value = site.account("ann", "assessor").partition("=")
        context.add_cookies([{"name": key, "value": value, "domain": "127.0.0.1", "path": "/", "secure": True}])
        page = context.new_page()
        judging(page, name)
        page.locator("#reload-note", has_text="Do not reload this page without a connection").wait_for(state="attached")
        context.set_offline(True)
        page.keyboard.press("1")
        advice = "1 not sent yet: no connection to the server. Do not reload this page before the connection is back"
        page.locator("#unsent", has_text=advice).wait_for()
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


def test_a_page_that_waits_for_a_result_says_when_the_server_refuses_it(
    site: Served, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.site.jobs, "patience", 0.0)
    context = site.context(browser, "zoe", "lead")
    page = context.new_page()
    page.goto("/runs?measures=P@9")
    page.locator("[data-job]").first.wait_for(state="attached")
    page.route("**/runs?**", lambda route: route.fulfill(status=403, body="<h1>No</h1>"))
    page.locator(".outage", has_text="The server no longer shows you this page").first.wait_for()
    context.close()

"""The pages for everybody: axe in light and dark, on a phone and a desk, at 200 % zoom, with open menus and dialogs; also
without scripts, by touch, with a pasted password."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from browsers import EVIL, Watched
from walks import PAIRS, ROUND, RUN, TOPIC, filled, hostile, settled, walk
from workbench import PASSWORD, Served, example, served

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

WIDTHS = (390, 1280)
ZOOMED = ((390, 1), (1280, 1), (1280, 2))  # pixels of the screen, and the zoom
SCHEMES = ("light", "dark")
SMALLEST = 24  # pixels, WCAG 2.2: 2.5.8
SAMPLE = ("/", "/topic", "/people", "/document?id=empty")
MENUS = ("Judge", "Look", "Decide", "Manage")
WITH_KEYS = (
    f"/judge?round={quote(ROUND)}",
    f"/prefer?comparison={quote(PAIRS)}",
    f"/search?topic={quote(TOPIC)}&query=roses",
    "/adjudicate",
)
FOLDED = ("/", "/rounds/new?look=1&depth=2", f"/round?name={quote(ROUND)}", "/card", "/import", "/agreement")
SMALL = """(least) => [...document.querySelectorAll("a[href], button, summary, input:not([type=hidden]), select, textarea")]
  .filter((each) => {
    const box = each.getBoundingClientRect();
    if (!box.width || !each.checkVisibility() || each.classList.contains("skip") || each.closest("svg")) return false;
    const around = each.closest("p, li, td, th, dd, figcaption, caption, label, .docid");
    const inline = getComputedStyle(each).display === "inline" || each.matches("[type=checkbox], [type=radio]");
    const within = around && inline && (around.textContent.trim() !== each.textContent.trim() || around.matches("td, th, li"));
    return !within && (box.height < least || box.width < least);
  }).map((each) => [each, each.getBoundingClientRect()])
  .map(([each, box]) => `${each.outerHTML.slice(0, 120)} ${box.width}x${box.height}`)"""
WIDER = "() => document.documentElement.scrollWidth - window.innerWidth"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(hostile(tmp_path_factory.mktemp("access") / "garden")) as opened:
        filled(opened)
        settled(opened.client("zoe"))
        yield opened


def problems(page: Any) -> list[str]:
    """What axe finds serious or critical, and what is wider than the window."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    found = [
        f"{each['id']} ({each['impact']}): {node['html'][:160]} {node['failureSummary'][:200]!r}"
        for each in axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:3]
    ]
    wider = page.evaluate(WIDER)
    return [*found, *([f"{wider} px wider than the window"] if wider > 0 else [])]


def context_of(site: Served, browser: Any, width: int, scheme: str, zoom: int = 1) -> Any:
    """A lead's browser. Zoom leaves so many times fewer pixels of CSS, as in a browser."""
    size = {"width": width // zoom, "height": 800 // zoom}
    how = {"viewport": size, "device_scale_factor": zoom, "color_scheme": scheme, "bypass_csp": True}
    return site.context(browser, "zoe", "lead", **how)


def looked_at(
    site: Served, browser: Any, paths: list[str], width: int, scheme: str, smallest: int = 0, zoom: int = 1
) -> list[str]:
    """The problems of some pages, each with its address, and what is smaller than so many pixels."""
    context = context_of(site, browser, width, scheme, zoom)
    page = context.new_page()
    found = []
    for path in paths:
        page.goto(path)
        page.locator("[data-job]").wait_for(state="detached")  # a page whose job ends loads itself again
        small = page.evaluate(SMALL, smallest)
        found += [f"{path} at {width} px, zoom {zoom}, {scheme}: {each}" for each in (*problems(page), *small)]
    context.close()
    return found


def test_a_sample_of_pages_has_no_serious_finding_no_sideways_scrolling_and_nothing_small(
    site: Served, browser: Any
) -> None:
    found = looked_at(site, browser, list(SAMPLE), 390, "dark", SMALLEST)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("width", "zoom"), ZOOMED)
def test_every_page_has_no_serious_finding_and_no_sideways_scrolling(
    site: Served, browser: Any, width: int, zoom: int, scheme: str
) -> None:
    found = looked_at(site, browser, walk(), width, scheme, zoom=zoom)
    assert not found, "\n".join(found)


def with_dialogs_open(site: Served, browser: Any, width: int, scheme: str, zoom: int = 1, step: int = 1) -> list[str]:
    """The problems of each open menu, of each list of keys and of the folded parts of a page; of one of so many by `step`."""
    context = context_of(site, browser, width, scheme, zoom)
    page = context.new_page()
    found = []
    page.goto("/rounds")
    for name in MENUS[::step]:
        page.locator(".menu summary", has_text=name).click()
        found += [f"menu {name} at {width} px, zoom {zoom}, {scheme}: {each}" for each in problems(page)]
    for path in WITH_KEYS[::step]:
        page.goto(path)
        page.locator("#help:not([hidden])").wait_for(state="attached")
        page.evaluate(
            "() => document.querySelector('#help').click()"
        )  # on a phone there is no button, but a keyboard may be
        page.locator("dialog[open]").wait_for()
        found += [f"keys of {path} at {width} px, zoom {zoom}, {scheme}: {each}" for each in problems(page)]
    for path in FOLDED[::step]:
        page.goto(path)
        page.evaluate("() => document.querySelectorAll('main details').forEach((each) => (each.open = true))")
        found += [f"{path} unfolded at {width} px, zoom {zoom}, {scheme}: {each}" for each in problems(page)]
    context.close()
    return found


def test_menus_dialogs_and_folded_parts_have_no_serious_finding(site: Served, browser: Any) -> None:
    found = with_dialogs_open(site, browser, 390, "dark", step=2)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("width", "zoom"), ZOOMED)
def test_menus_dialogs_and_folded_parts_at_each_width_and_zoom(
    site: Served, browser: Any, width: int, zoom: int, scheme: str
) -> None:
    found = with_dialogs_open(site, browser, width, scheme, zoom)
    assert not found, "\n".join(found)


def test_on_a_phone_what_is_read_and_pressed_is_not_beside_the_screen(site: Served, browser: Any) -> None:
    page = context_of(site, browser, 390, "light").new_page()
    beside = (
        "(all) => all.filter((each) => each.getBoundingClientRect().right > innerWidth).map((each) => each.outerHTML)"
    )
    for path, what in (("/", ".findings td"), ("/people", ".accounts button"), ("/api", ".routes tbody th")):
        page.goto(path)
        seen = page.locator(what)
        assert seen.count(), path
        assert seen.evaluate_all(beside) == [], path
    page.context.close()


def test_a_refusal_says_which_role_is_needed_and_which_one_somebody_has(site: Served) -> None:
    assert (
        "/judge is for the role assessor; vic has the role viewer." in site.client("vic", "viewer").get("/judge").text
    )


def wait_for_jobs(site: Served, paths: Iterable[str]) -> None:
    """A page reloads itself when its jobs are done, which would disturb a test that uses it."""
    client = site.client("zoe")
    for path in paths:
        while b"data-job" in client.get(path).body:
            time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_of_the_example_have_no_serious_finding(tmp_path: Path, browser: Any, width: int) -> None:
    paths = [
        "/",
        "/runs",
        "/compare",
        "/topic",
        "/topic?topic=101&document=d002",
        "/document?id=d002&topic=101",
        "/rounds/new?look=1",
    ]
    with served(example(tmp_path / "garden")) as site:
        wait_for_jobs(site, paths)
        found = []
        for scheme in SCHEMES:
            found += looked_at(site, browser, paths, width, scheme)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_what_is_touched_is_large_enough(site: Served, browser: Any, width: int) -> None:
    context = site.context(browser, "zoe", "lead", viewport={"width": width, "height": 800}, bypass_csp=True)
    page = context.new_page()
    found = []
    for path in walk():
        page.goto(path)
        found += [f"{path}: {each}" for each in page.evaluate(SMALL, SMALLEST)]
    context.close()
    assert not found, "\n".join(dict.fromkeys(found))


def test_a_page_says_all_that_it_has_to_say_before_any_script_runs(site: Served) -> None:
    client = site.client("zoe")
    for path in walk():
        text = re.sub(r"<(script|style|svg)\b.*?</\1>", "", client.get(path).text, flags=re.DOTALL)
        heading, main = (re.search(rf"<{name}\b[^>]*>(.*?)</{name}>", text, re.DOTALL) for name in ("h1", "main"))
        assert heading is not None, path
        assert main is not None, path
        assert words_of(heading[1]), path
        assert len(words_of(main[1])) > 20, path


def words_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


@pytest.mark.slow
def test_pages_are_read_without_scripts(site: Served, browser: Any) -> None:
    context = site.context(browser, "zoe", "lead", java_script_enabled=False)
    seen = Watched(context)
    for path in walk():
        answer = seen.page.goto(path)
        assert answer.status < 500, path
        assert seen.page.locator("h1").first.inner_text().strip(), path
        assert len(seen.page.locator("main").inner_text()) > 20, path
    context.close()


def test_focus_is_seen_and_not_behind_anything(site: Served, browser: Any) -> None:
    context = site.context(browser, "zoe", "lead", viewport={"width": 390, "height": 600}, bypass_csp=True)
    page = context.new_page()
    covered = """() => {  // "" where all is well
      const each = document.activeElement, box = each.getBoundingClientRect();
      if (each === document.body) return "";
      const where = each.outerHTML.slice(0, 120);
      if (getComputedStyle(each).outlineStyle === "none") return "no outline: " + where;
      if (!box.width) return "";
      const x = Math.min(Math.max(box.left + box.width / 2, 1), innerWidth - 1), y = box.top + Math.min(box.height / 2, 20);
      const top = document.elementFromPoint(x, Math.min(Math.max(y, 1), innerHeight - 1));
      const seen = top && (each.contains(top) || top.contains(each) || top.closest("label")?.contains(each));
      return seen && y >= 0 && y <= innerHeight ? "" : where;
    }"""
    paths = ("/", "/me", "/people", "/rounds/new?look=1", f"/topic?topic={quote(EVIL)}&one={quote(RUN)}")
    wait_for_jobs(site, paths)
    for path in paths:
        page.goto(path)
        for _ in range(40):
            page.keyboard.press("Tab")
            assert page.evaluate(covered) == "", path
    context.close()


def test_a_password_is_pasted(site: Served, browser: Any) -> None:
    site.account("pat", "viewer")
    context = browser.new_context(base_url=site.url)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    seen = Watched(context)
    seen.page.goto("/login")
    seen.page.get_by_label("Name").fill("pat")
    seen.page.evaluate("(text) => navigator.clipboard.writeText(text)", PASSWORD)
    seen.page.get_by_label("Password").focus()
    seen.page.keyboard.press("Control+v")
    assert seen.page.get_by_label("Password").input_value() == PASSWORD
    seen.page.get_by_role("button", name="Sign in").click()
    seen.page.get_by_role("link", name="pat viewer").wait_for()
    assert seen.said == []
    context.close()

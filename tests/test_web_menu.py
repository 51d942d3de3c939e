"""The menu: four groups of pages, fewer for who may less; by keyboard, by touch and without scripts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from browsers import Watched
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from cranfield.workbench.rendering import menu_for, menu_of_all
from cranfield.workbench.routes import GROUPS, RESULTS, entries
from workbench import Served, example, served

if TYPE_CHECKING:
    from collections.abc import Iterator

OUTSIDE = {
    "/",
    "/api",
    "/enter",
    "/join",
    "/login",
    "/me",
}  # by the name of the workspace, by one's own name, or by a link
WIDER = "() => document.documentElement.scrollWidth - window.innerWidth"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(example(tmp_path_factory.mktemp("menu") / "garden")) as opened:
        opened.account("bob", "assessor")
        open_round(opened.bench.log, Round(name="r", assessors=("bob",)), [RoundItem("101", "d001")])
        yield opened


def groups_on(site: Served, path: str, name: str, role: str) -> list[str]:
    return re.findall(r"<summary[^>]*>(\w+)</summary>", site.client(name, role).get(path).text.partition("<main")[0])


def test_a_lead_sees_four_groups_and_everybody_else_those_with_pages_for_them(site: Served) -> None:
    assert groups_on(site, "/me", "lea", "lead") == ["Judge", "Look", "Decide", "Manage"]
    assert groups_on(site, "/me", "cy", "assessor") == ["Judge", "Look"]
    assert groups_on(site, "/me", "vic", "viewer") == ["Look"]
    assert groups_on(site, "/login", "", "") == []


def test_who_judges_blind_finds_only_what_opens(site: Served) -> None:
    client = site.client("bob", "assessor")
    for path in ("/me", "/nowhere"):  # a refusal has the same menu
        head = client.get(path).text.partition("<main")[0]
        paths = re.findall(r'<li><a href="([^"]+)"', head)
        assert paths == ["/judge", "/search", "/prefer", "/topic", "/guidelines"]
    assert all(client.get(path).status == 200 for path in paths)


def test_every_page_belongs_to_a_group() -> None:
    pages = [entry for entry in entries() if entry.method == "GET"]
    assert {entry.path for entry in pages if entry.menu is None} <= OUTSIDE
    assert {group for group, _ in menu_of_all()} == set(GROUPS)


@pytest.mark.parametrize("blind", [False, True])
def test_the_menu_lists_each_page_that_a_role_may_open_once(blind: bool) -> None:
    listed = [path for group in menu_for("assessor", blind, "/runs") for path, _ in group.pages]
    allowed = [entry for _, entry in menu_of_all() if entry.menu and entry.menu[2] and entry.role != "lead"]
    assert sorted(listed) == sorted(each.path for each in allowed if not (blind and each.reveals == RESULTS))


def test_the_group_of_the_page_is_marked_and_the_page_in_it(site: Served) -> None:
    head = site.client("lea").get("/rounds").text.partition("<main")[0]
    assert re.findall(r'<summary aria-current="true">(\w+)</summary>', head) == ["Manage"]
    assert re.findall(r'<a href="([^"]+)" aria-current="page">', head) == ["/rounds"]
    inner = site.client("lea").get("/round?name=r").text.partition("<main")[0]
    assert re.findall(r'<summary aria-current="true">(\w+)</summary>', inner) == ["Manage"]


def test_the_menu_opens_and_closes_by_keyboard_and_fits_a_phone(site: Served, browser: Any) -> None:
    size: Any = {"width": 390, "height": 800}
    seen = Watched(site.context(browser, "lea", "lead", viewport=size))
    page = seen.page
    page.goto("/me")
    summary = page.locator("summary", has_text="Manage")
    summary.focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="People").wait_for()
    assert page.evaluate(WIDER) <= 0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Rounds"
    page.keyboard.press("Escape")
    page.get_by_role("link", name="People").wait_for(state="hidden")
    assert page.evaluate("document.activeElement.textContent") == "Manage"
    page.locator("summary", has_text="Look").click()
    page.locator("summary", has_text="Decide").click()  # one group at a time
    page.get_by_role("link", name="Runs", exact=True).wait_for(state="hidden")
    page.locator("main").click(position={"x": 5, "y": 200})
    page.get_by_role("link", name="Agreement").wait_for(state="hidden")
    assert seen.said == []


def test_the_menu_works_without_scripts(site: Served, browser: Any) -> None:
    page = site.context(browser, "lea", "lead", java_script_enabled=False).new_page()
    page.goto("/me")
    page.locator("summary", has_text="Manage").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Rounds", exact=True).wait_for()

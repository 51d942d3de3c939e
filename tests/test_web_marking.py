"""Marked passages, the search in a whole text, drafts, and hasty repeats: what the judging page does besides grading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from test_web_judge import (
    EVIL,
    HUGE,
    at,
    events_of,
    label,
    look,
    opened,
    outcomes,
    quiet,
    say,
    shows,
    stored,
    workspace,
)
from workbench import Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator

PAUSE = 400  # ms, longer than what counts as a hasty repeat
ODD = "\U0001f600 a wing \U0001f600\U0001f600 and flutter"
SELECT = """([from, to]) => {  // UTF-16 places in the text
  const nodes = [], walker = document.createTreeWalker(document.getElementById("text"), NodeFilter.SHOW_TEXT);
  for (let at = 0, node = walker.nextNode(); node; at += node.length, node = walker.nextNode()) nodes.push([at, node]);
  const boundary = (place) => { const [at, node] = nodes.findLast(([start]) => start <= place); return [node, place - at]; };
  getSelection().setBaseAndExtent(...boundary(from), ...boundary(to));
}"""
ACROSS = """() => {  // words on both sides of a cut between two pieces
  const [one, other] = [...document.querySelectorAll("#text .piece")].slice(-2).map((each) => each.textContent);
  return one.slice(-9) + other.slice(0, 9);
}"""
VISIBLE = """() => {
  const { top, bottom } = document.querySelector("mark.at").getBoundingClientRect();
  return top > 0 && bottom < document.getElementById("form").getBoundingClientRect().top;
}"""
LIT = "() => [...(CSS.highlights.get('passage') || [])].map(String)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(workspace(tmp_path_factory.mktemp("marking") / "toy")) as site:
        yield site


def mark(page: Any, start: int, end: int) -> None:
    """Select places of the text and press the key."""
    page.evaluate(SELECT, [start, end])
    page.keyboard.press("h")


def marks(page: Any) -> list[str]:
    quotes: list[str] = page.locator("#passages q").all_inner_texts()
    return quotes


# passages


def test_passages_are_stored_with_their_places_and_the_server_adds_their_text(site: Served) -> None:
    client, name = site.client("ann", "assessor"), opened(site, "api", ["odd", "d01", "d02"])
    items = {item["document"]: item for item in look(client, name)["items"]}
    bad = [
        label(items["d01"], passages=[[0, 10_000]]),
        label(items["d01"], passages=[[3, 3]]),
        label(items["d01"], passages=[[0, 5], [4, 6]]),
        label(items["d01"], passages=[[place, place + 1] for place in range(0, 300, 2)]),
        label(items["d01"], passages="0-3x"),
        label(items["d01"], passages=EVIL),
        label({"topic": "q1", "document": "missing"}, passages=[[0, 1]]),
    ]
    kept = label(items["odd"], 2, "api-1", passages=[[4, 8], [9, 11]], passage="forged")
    reply = say(client, name, *bad, kept, kept)
    assert outcomes(reply) == [*["refused"] * len(bad), "kept"]
    [event] = events_of(site, name)
    assert (event.passages, event.passage) == (((4, 8), (9, 11)), "wing […] \U0001f600\U0001f600")
    own = look(client, name)["labels"][0]
    assert (own["passages"], own["passage"]) == ([[4, 8], [9, 11]], event.passage)
    page = site.client("vic", "viewer").get("/label?topic=q1&document=odd").text
    assert "wing […] \U0001f600\U0001f600" in page


def test_passages_of_search_results_are_checked_like_others(site: Served) -> None:
    client = site.client("sue", "assessor")
    about = {"topic": "q1", "document": "odd", "grade": 1, "query": "wing", "rank": 1}
    rows = [about | {"id": "s1", "passages": [[0, 10_000]]}, about | {"id": "s2", "passages": [[4, 8]]}]
    reply = client.send("/search.json", {"events": rows}).json()
    assert outcomes(reply) == ["refused", "kept"]
    [event] = [event for event in site.bench.log.events() if event.id == "s2"]
    assert (event.passages, event.passage) == (((4, 8),), "wing")


def test_several_passages_are_marked_shown_and_removed_one_by_one(site: Served, browser: Any) -> None:
    name = opened(site, "several", ["odd", "d01"])
    watched = at(site, browser, name)
    page = watched.page
    shows(page, "odd")
    assert page.locator("#text").evaluate("text => text.textContent") == ODD
    mark(page, 3, 5)  # "a " without the blank
    page.wait_for_timeout(PAUSE)
    mark(page, 9, 13)  # from the first to the second half of the faces: 😀😀 is 10 to 14
    page.wait_for_timeout(PAUSE)
    mark(page, 18, 26)
    page.locator("#passages li").nth(2).wait_for()
    assert marks(page) == ["a", "\U0001f600\U0001f600", "flutter"]
    assert page.evaluate(LIT) == marks(page)
    page.get_by_role("button", name="Remove mark 1").click()
    assert marks(page) == page.evaluate(LIT) == ["\U0001f600\U0001f600", "flutter"]
    page.locator("#find").fill("wing")  # the text is drawn again
    page.locator("#hits", has_text="1 of 1").wait_for()
    assert page.evaluate(LIT) == marks(page)
    page.keyboard.press("Escape")
    page.wait_for_timeout(PAUSE)
    mark(page, 5, 21)  # joins them
    assert marks(page) == [ODD[4:]]
    page.keyboard.press("2")
    shows(page, "d01")
    assert (marks(page), page.evaluate(LIT)) == ([], [])
    [event] = stored(site, name, 1)
    assert (event.passages, event.passage) == (((4, len(ODD)),), ODD[4:])
    page.wait_for_timeout(PAUSE)
    page.keyboard.press("h")
    page.locator("#announce", has_text="Select some of the text first").wait_for(state="attached")
    page.keyboard.press("j")
    shows(page, "odd")
    assert marks(page) == page.evaluate(LIT) == [ODD[4:]]
    quiet(watched, site)


def test_a_selection_that_goes_beyond_the_text_marks_the_text(site: Served, browser: Any) -> None:
    name = opened(site, "beyond", ["d03", "d04"])
    page = at(site, browser, name).page
    page.evaluate("getSelection().selectAllChildren(document.body)")
    page.locator("#mark").click()
    [whole] = marks(page)
    assert whole.startswith("The wing of paper 3")
    page.wait_for_timeout(PAUSE)
    page.evaluate("getSelection().selectAllChildren(document.getElementById('title'))")
    page.keyboard.press("h")  # nothing of the text: the last mark goes
    assert marks(page) == []


def test_places_are_those_of_the_whole_text_when_a_part_is_shown(site: Served, browser: Any) -> None:
    name = opened(site, "part", ["huge", "d01"])
    page = at(site, browser, name).page
    shows(page, "huge")
    item = look(site.client("ann", "assessor"), name)["items"][0]
    assert item["start"] > 4_000_000  # the best passage is looked for in the whole text
    place = item["text"].index("flutter in heat")
    mark(page, place, place + 7)
    assert marks(page) == ["flutter"]
    page.keyboard.press("2")
    shows(page, "d01")
    [event] = stored(site, name, 1)
    [(start, end)] = event.passages
    assert HUGE[start:end] == event.passage == "flutter"


# the search


def test_a_word_at_the_end_of_five_megabytes_is_found_and_so_is_one_at_its_start(site: Served, browser: Any) -> None:
    watched = at(site, browser, opened(site, "find", ["huge", "d01"]))
    page = watched.page
    shows(page, "huge")
    page.locator("#find").fill("TO FLUTTER in heat")
    page.locator("#hits", has_text="1 of 1").wait_for()
    page.locator("#find").fill("no more")
    page.locator("#hits", has_text="1 of 5000 or more").wait_for()
    across = page.evaluate(ACROSS)
    page.locator("#find").fill(across)
    page.locator("#hits", has_text="1 of").wait_for()
    page.locator("#find").fill("no such word")
    page.locator("#hits", has_text="not found").wait_for()
    assert page.locator("#cut").is_hidden()
    assert page.locator("#text").evaluate("text => text.textContent.length") == len(HUGE)
    quiet(watched, site)


def test_a_hit_at_the_end_of_five_megabytes_is_scrolled_into_view(site: Served, browser: Any) -> None:
    page = at(site, browser, opened(site, "far", ["huge", "d01"])).page
    shows(page, "huge")
    page.locator("#find").fill("And no more.")
    page.locator("#hits", has_text="1 of").wait_for()
    page.keyboard.press("Shift+Enter")  # the last hit, in a piece that was not laid out
    page.locator("#hits", has_text="5000 of").wait_for()
    page.wait_for_function(VISIBLE)
    page.wait_for_timeout(300)
    assert page.evaluate(VISIBLE)


def test_a_phrase_is_found_across_line_breaks_and_however_its_accents_are_written(site: Served, browser: Any) -> None:
    page = at(site, browser, opened(site, "phrase", ["d00"])).page
    for wanted, found in (("flutters.  more on", 1), ("caf\u00e9 noir", 0)):
        page.locator("#find").fill(wanted)
        page.locator("#hits", has_text="1 of 1" if found else "not found").wait_for()
    places = "async ([text, wanted]) => (await import('/static/text.js')).places(text, wanted)"
    for text in ("Cafe\u0301\r\nnoir", "a caf\u00e9  noir"):
        for wanted in ("cafe\u0301 noir", "caf\u00e9 noir"):
            [[start, end]] = page.evaluate(places, [text, wanted])
            assert text[start:end].split() == text.removeprefix("a ").split()
    assert page.evaluate(places, ["cafe noir", "caf\u00e9 noir"]) == []
    assert page.evaluate(places, ["a.b*c", ".b*"]) == [[1, 4]]


def test_the_text_of_a_mark_is_listed_after_a_reload_although_its_part_is_not_shown(site: Served, browser: Any) -> None:
    page = at(site, browser, opened(site, "elsewhere", ["huge", "d01"])).page
    shows(page, "huge")
    page.get_by_role("link", name="Show all").click()
    page.locator("#cut").wait_for(state="hidden")
    mark(page, 0, 7)
    assert marks(page) == ["Nothing"]
    page.reload()
    page.locator("#form[data-ready]").wait_for(state="attached")
    page.locator("#cut", has_text="60,000 of").wait_for()
    assert marks(page) == ["Nothing"]
    page.keyboard.press("1")
    shows(page, "d01")
    page.reload()
    page.locator("#form[data-ready]").wait_for(state="attached")
    page.keyboard.press("j")  # the server's own record of the label
    shows(page, "huge")
    assert marks(page) == ["Nothing"]


def test_without_a_connection_the_search_says_that_it_saw_a_part(site: Served, browser: Any) -> None:
    page = at(site, browser, opened(site, "find offline", ["huge", "d01"])).page
    page.context.set_offline(True)
    page.locator("#find").fill("no such word")
    page.locator("#hits", has_text="not found in this part").wait_for()
    page.locator("#find").fill("flutter")
    page.locator("#hits", has_text="1 of 1").wait_for()


# drafts


def state(page: Any) -> tuple[str, bool, list[str]]:
    """Note, "not sure", marks."""
    return page.locator("#note").input_value(), page.locator("#unsure").is_checked(), marks(page)


def prepare(page: Any, note: str) -> tuple[str, bool, list[str]]:
    page.locator("#note").fill(note)
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    mark(page, 0, 8)
    return note, True, ["The wing"]


def test_a_draft_survives_a_reload_going_back_and_undo_and_is_dropped_when_it_is_sent(
    site: Served, browser: Any
) -> None:
    name = opened(site, "drafts")
    watched = at(site, browser, name)
    page = watched.page
    page.keyboard.press("1")
    shows(page, "d01")
    draft = prepare(page, "on d01")
    assert state(page) == draft
    page.reload()
    page.locator("#form[data-ready]").wait_for(state="attached")
    shows(page, "d01")
    assert state(page) == draft
    page.keyboard.press("j")
    shows(page, "d00")
    assert state(page) == ("", False, [])
    page.locator("#note").fill("on d00")
    page.keyboard.press("Escape")
    page.keyboard.press("k")
    shows(page, "d01")
    assert state(page) == draft
    page.keyboard.press("j")
    shows(page, "d00")
    assert state(page) == ("on d00", False, [])
    page.keyboard.press("k")
    shows(page, "d01")
    page.keyboard.press("2")
    shows(page, "d02")
    assert state(page) == ("", False, [])
    prepare(page, "on d02")
    page.keyboard.press("z")  # takes back the label of d01
    shows(page, "d01")
    assert state(page) == draft
    page.keyboard.press("0")
    shows(page, "d02")
    assert state(page)[0] == "on d02"
    events = [event for event in stored(site, name, 3) if event.document == "d01"]
    assert [(event.grade, event.note, event.sure, event.passage) for event in events] == [
        (grade, "on d01", False, "The wing") for grade in (2, 0)
    ]
    page.keyboard.press("x")
    shows(page, "d03")
    assert (
        page.evaluate("() => Object.keys(localStorage).filter((key) => key.includes('/draft/')).length") == 1
    )  # of d00
    quiet(watched, site)


def test_a_draft_belongs_to_its_account_and_its_round(site: Served, browser: Any) -> None:
    one, other = opened(site, "one"), opened(site, "other")
    page = at(site, browser, one).page
    prepare(page, "mine")
    page.goto(f"/judge?round={other}")
    page.locator("#form[data-ready]").wait_for(state="attached")
    assert state(page) == ("", False, [])
    page.context.clear_cookies()
    key, _, value = site.account("bob", "assessor").partition("=")
    page.context.add_cookies([{"name": key, "value": value, "url": site.url}])
    page.goto(f"/judge?round={one}")
    page.locator("#form[data-ready]").wait_for(state="attached")
    assert state(page) == ("", False, [])


# hasty repeats, and touch


def test_a_key_that_bounces_grades_one_document_and_another_key_the_next(site: Served, browser: Any) -> None:
    name = opened(site, "bounce")
    page = at(site, browser, name).page
    dispatch = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))"
    press = f"(keys) => {{ for (const key of keys) {dispatch}; }}"
    page.evaluate(press, ["1", "1", "1"])
    shows(page, "d01")
    page.wait_for_timeout(PAUSE)
    page.evaluate(press, ["1", "2", "2", "s", "s"])
    shows(page, "d04")
    page.evaluate(press, ["z", "z"])
    shows(page, "d03")
    said = [(event.document, event.kind, event.grade) for event in stored(site, name, 4)]
    assert said == [("d00", "judgment", 1), ("d01", "judgment", 1), ("d02", "judgment", 2), ("d03", "skip", None)]


def test_a_grade_that_is_held_down_with_enter_grades_one_document(site: Served, browser: Any) -> None:
    name = opened(site, "enter")
    page = at(site, browser, name).page
    page.locator("button.grade").first.focus()
    for _ in range(3):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    shows(page, "d01")
    page.wait_for_timeout(PAUSE)
    page.keyboard.press("Enter")
    shows(page, "d02")
    assert len(stored(site, name, 2)) == 2


def test_a_double_tap_grades_one_document_and_the_tapped_grade_does_not_stay_lit(site: Served, browser: Any) -> None:
    name = opened(site, "tap")
    watched = at(site, browser, name, viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page = watched.page
    style = "(each) => [getComputedStyle(each).backgroundColor, getComputedStyle(each).outlineStyle]"
    lit = f"() => [...document.querySelectorAll('.grade')].map({style})"
    before = page.evaluate(lit)
    button = page.get_by_role("button", name="highly relevant")
    box = button.bounding_box()
    for _ in range(2):
        page.touchscreen.tap(box["x"] + 10, box["y"] + 10)
    shows(page, "d01")
    page.wait_for_timeout(PAUSE)
    assert page.locator("#doc-id").inner_text() == "d01"
    assert page.evaluate(lit) == before
    button.hover()  # as phones leave the last tapped button
    assert page.evaluate(lit) == before
    button.tap()
    shows(page, "d02")
    assert [(event.document, event.grade) for event in stored(site, name, 2)] == [("d00", 2), ("d01", 2)]
    quiet(watched, site)

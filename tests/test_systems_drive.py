"""Driving a system: the loops, retries, giving up, the journal, and timing that omits nothing."""

from __future__ import annotations

import threading
import time

import pytest

from cranfield.base.collection import Topic
from cranfield.base.errors import ConventionError, DataError
from cranfield.retrieval import Query, System
from cranfield.retrieval.driver import Driven, Journal, Load, drive
from cranfield.retrieval.produce_run import cost_of, histogram, latency, timings
from cranfield.retrieval.systems_under_test import Busy, Refused, Unreachable

ASKED = {"journal": 1, "system": "x", "collection": "c", "k": 5, "fields": ["title"]}


class Scripted(System):
    """A system that does what a test tells it for each query."""

    def __init__(self, script) -> None:
        self.name = "scripted"  # not the class's, which would enter it among the systems
        super().__init__()
        self.script, self.asked, self.lock = script, [], threading.Lock()

    def search(self, query, k):
        with self.lock:
            self.asked.append(query.id)
            times = self.asked.count(query.id)
        return self.script(query.id, times)


def queries(count: int) -> list[Query]:
    return [Query(str(i), f"text {i}", Topic(str(i), f"text {i}")) for i in range(count)]


def fine(topic, times):
    return [(f"d{topic}", 1.0)]


@pytest.mark.parametrize("clients", [1, 4])
def test_every_topic_is_asked_once_and_answered(clients):
    engine = Scripted(fine)
    driven = drive(engine, queries(30), 5, Load(clients=clients, warmup=0))
    assert sorted(engine.asked, key=int) == [str(i) for i in range(30)]
    assert driven.answers == {str(i): [(f"d{i}", 1.0)] for i in range(30)}
    assert len(driven.waits) == 30
    assert not driven.failed


def test_warm_up_is_asked_first_and_timed_apart():
    engine = Scripted(fine)
    driven = drive(engine, queries(5), 5, Load(warmup=3))
    assert engine.asked == ["0", "1", "2", "0", "1", "2", "3", "4"]
    assert (len(driven.warm), len(driven.waits)) == (3, 5)


def test_warm_up_asks_topics_that_are_not_timed_where_there_are_enough():
    engine = Scripted(fine)
    driven = drive(engine, queries(7), 5, Load(warmup=3, passes=2))
    assert engine.asked == [str(i) for i in [0, 1, 2, 3, 4, 5, 6, 3, 4, 5, 6]]
    assert (len(driven.warm), len(driven.waits), driven.warm_apart) == (3, 8, True)
    assert len(driven.answers) == 7


def test_warm_up_asks_topics_that_are_not_asked_for_first_of_all():
    engine = Scripted(fine)
    driven = drive(engine, queries(4), 5, Load(warmup=2), others=[*queries(9)[6:]])
    assert engine.asked == ["6", "7", "0", "1", "2", "3"]
    assert sorted(driven.answers) == ["0", "1", "2", "3"]
    assert driven.warm_apart


def test_of_too_few_topics_the_first_are_asked_twice_and_that_is_said():
    driven = drive(Scripted(fine), queries(5), 5, Load(warmup=3))
    assert not driven.warm_apart
    assert len(driven.waits) == 5


def test_a_topic_that_fails_in_the_warm_up_is_asked_again_when_it_counts():
    def script(topic, times):
        if topic == "1" and times == 1:
            raise ValueError("cold")
        return fine(topic, times)

    driven = drive(Scripted(script), queries(7), 5, Load(warmup=3))
    assert len(driven.answers) == 7
    assert (len(driven.warm), len(driven.waits), driven.failed) == (2, 5, {})


def test_answers_of_the_warm_up_are_in_the_journal(tmp_path):
    journal = Journal(str(tmp_path / "j"), ASKED, resume=False)
    drive(Scripted(fine), queries(7), 5, Load(warmup=3), journal)
    journal.keep()
    again = Journal(str(tmp_path / "j"), ASKED, resume=True)
    again.keep()
    assert (len(again.answers), len(again.waits)) == (7, 4)


def test_later_passes_only_time():
    def script(topic, times):
        return [("first" if times == 1 else "later", 1.0)]

    driven = drive(Scripted(script), queries(3), 5, Load(passes=4, warmup=0))
    assert len(driven.waits) == 12
    assert {hits[0][0] for hits in driven.answers.values()} == {"first"}


def test_a_failure_that_passes_is_tried_again():
    def script(topic, times):
        if topic == "1" and times < 3:
            raise Busy("status 503")
        return fine(topic, times)

    driven = drive(Scripted(script), queries(3), 5, Load(warmup=0, backoff=0.001))
    assert driven.retries == 2
    assert not driven.failed
    assert len(driven.answers) == 3


def test_a_failure_that_stays_is_reported_and_the_others_are_answered():
    def script(topic, times):
        if topic == "1":
            raise Busy("status 503")
        if topic == "2":
            raise ValueError("broken for good")
        return fine(topic, times)

    engine = Scripted(script)
    driven = drive(engine, queries(5), 5, Load(warmup=0, retries=2, backoff=0.001))
    assert driven.failed == {"1": "status 503 (3 tries)", "2": "broken for good"}
    assert sorted(driven.answers) == ["0", "3", "4"]
    assert engine.asked.count("2") == 1  # no use in trying again


def test_a_score_that_is_no_number_costs_one_topic():
    def script(topic, times):
        return [("a", float("inf")), ("b", float("-inf")), ("c", float("nan") if topic == "1" else 0.0)]

    driven = drive(Scripted(script), queries(3), 5, Load(warmup=0))
    assert driven.failed == {"1": "document 'c': expected a number as its score, found nan"}
    assert sorted(driven.answers) == ["0", "2"]


@pytest.mark.parametrize("odd", ["doc 1", "doc\n1", ""])
def test_an_id_that_no_run_can_hold_costs_one_topic(odd):
    driven = drive(Scripted(lambda topic, times: [("a", 2.0), (odd if topic == "1" else "b", 1.0)]), queries(3), 5)
    assert driven.failed == {
        "1": f"document {odd!r}: expected an id without white space, as runs and judgments hold no other"
    }
    assert sorted(driven.answers) == ["0", "2"]


def test_an_engine_that_is_down_is_not_warmed_up():
    def script(topic, times):
        raise Busy("down")

    engine = Scripted(script)
    drive(engine, queries(5), 5, Load(warmup=5, retries=0, give_up=1))
    assert engine.asked == ["0", "0"]


def test_an_engine_that_asks_for_time_is_given_it():
    def script(topic, times):
        if times == 1:
            raise Busy("status 429", after=0.15)
        return fine(topic, times)

    start = time.perf_counter()
    driven = drive(Scripted(script), queries(1), 5, Load(warmup=0, backoff=0.0))
    assert time.perf_counter() - start >= 0.15
    assert driven.waits[0] >= 0.15  # whoever asked had to wait for it


def test_too_many_failures_in_a_row_end_it():
    def script(topic, times):
        if int(topic) >= 2:
            raise ValueError("gone")
        return fine(topic, times)

    engine = Scripted(script)
    driven = drive(engine, queries(50), 5, Load(warmup=0, give_up=4))
    assert driven.gave_up
    assert len(engine.asked) == 6
    assert len(driven.failed) == 48
    assert driven.failed["49"] == "not asked: 4 topics before it failed"


def test_an_interruption_is_not_swallowed():
    def script(topic, times):
        raise KeyboardInterrupt

    for clients in (1, 3):
        with pytest.raises(KeyboardInterrupt):
            drive(Scripted(script), queries(3), 5, Load(warmup=0, clients=clients))


@pytest.mark.parametrize("wrong", [{"clients": 0}, {"rate": 0.0}, {"timeout": -1.0}, {"passes": 0}, {"retries": -1}])
def test_a_load_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ConventionError, match=f"{next(iter(wrong))} must be"):
        Load(**wrong)


# timing


def test_an_open_loop_counts_from_when_a_query_was_due():
    """One stall of 0.3 s at 100 a second: a closed clock would show one slow query, users saw about thirty."""

    def script(topic, times):
        if topic == "0":
            time.sleep(0.3)
        return fine(topic, times)

    driven = drive(Scripted(script), queries(40), 5, Load(warmup=0, rate=100))
    slow = [wait for wait in driven.waits if wait > 0.02]
    assert len(slow) >= 20
    for number, wait in enumerate(driven.waits[:25]):  # each waited until the stall was over
        assert wait >= 0.3 - number / 100 - 0.001
    assert driven.late >= 20


def test_a_closed_loop_counts_from_when_a_query_was_sent():
    def script(topic, times):
        if topic == "0":
            time.sleep(0.2)
        return fine(topic, times)

    driven = drive(Scripted(script), queries(5), 5, Load(warmup=0))
    assert driven.waits[0] >= 0.2
    assert sum(driven.waits) <= driven.elapsed


def test_an_open_loop_keeps_its_pace_when_the_system_is_fast():
    driven = drive(Scripted(fine), queries(20), 5, Load(warmup=0, rate=200, clients=2))
    assert driven.elapsed >= 19 / 200


def test_clients_wait_side_by_side():
    together = threading.Barrier(6)

    def script(topic, times):
        together.wait(timeout=60)  # passes only if six are asking at the same time
        return fine(topic, times)

    driven = drive(Scripted(script), queries(12), 5, Load(warmup=0, clients=6, timeout=90))
    assert len(driven.waits) == 12
    assert not driven.failed


def test_latencies_by_hand():
    found = latency([i / 1000 for i in range(1, 101)])
    assert found == {"mean": 50.5, "median": 50.5, "p95": 95.05, "p99": 99.01, "min": 1.0, "max": 100.0}
    assert latency([]) is None
    assert histogram([]) is None


def test_the_histogram_counts_every_answer_between_its_edges():
    waits = [0.00005, 0.001, 0.0015, 0.01, 0.0999, 2.5]
    found = histogram(waits)
    assert sum(found["counts"]) == len(waits)
    assert len(found["edges_ms"]) == len(found["counts"]) + 1
    for wait in waits:
        bar = sum(edge <= wait * 1000 + 1e-9 for edge in found["edges_ms"]) - 1
        assert found["counts"][bar] > 0


def test_throughput_and_cost_by_hand(tmp_path):
    journal = Journal(str(tmp_path / "x.journal"), ASKED, resume=False)
    load = timings(Driven(waits=[0.1] * 50, elapsed=5.0), Load(clients=2), journal)
    journal.keep()
    assert load["throughput_per_second"] == 10
    assert cost_of(7.2, 10) == {"price_per_hour": 7.2, "per_thousand_queries": 0.2}
    assert cost_of(None, 10) == cost_of(7.2, None) == {}


# the journal


def test_a_journal_gives_back_what_was_written(tmp_path):
    path = str(tmp_path / "x.journal")
    journal = Journal(path, ASKED, resume=False)
    rows = {"1": [("d1", 2.5), ("dé", -0.1)], "2": [], "3\n": [("a\nb", 1.0)], "4": [("", 1.0)]}
    for topic, hits in rows.items():
        journal.write(topic, hits, 0.5)
    journal.keep()
    again = Journal(path, ASKED, resume=True)
    assert again.answers == rows
    assert again.waits == dict.fromkeys(rows, 0.5)
    again.discard()
    assert not (tmp_path / "x.journal").exists()


def test_a_journal_whose_last_line_was_cut_short_is_mended(tmp_path):
    path = tmp_path / "x.journal"
    journal = Journal(str(path), ASKED, resume=False)
    journal.write("1", [("d1", 1.0)], None)
    journal.write("2", [("d2", 1.0)], None)
    journal.keep()
    whole = path.read_bytes()
    for cut in range(len(whole.splitlines()[0]) + 1, len(whole)):
        path.write_bytes(whole[:cut])
        again = Journal(str(path), ASKED, resume=True)
        again.write("9", [("d9", 1.0)], None)
        again.keep()
        last = Journal(str(path), ASKED, resume=True)
        assert last.answers["9"] == [("d9", 1.0)]
        assert set(last.answers) <= {"1", "2", "9"}
        last.keep()


def test_a_journal_is_never_thrown_away_by_mistake(tmp_path):
    path = str(tmp_path / "x.journal")
    journal = Journal(path, ASKED, resume=False)
    journal.write("1", [], None)
    journal.keep()
    with pytest.raises(DataError, match="--resume goes on from it, or delete it"):
        Journal(path, ASKED, resume=False)
    with pytest.raises(DataError, match="belongs to another run: its k is 5, not 9"):
        Journal(path, {**ASKED, "k": 9}, resume=True)


DAMAGED = [
    b"nonsense",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"\0" * 40,
    b'{"topic": "1"}',
    b'{"topic": ["1"], "documents": "d", "scores": ""}',
    b'{"topic": "1", "documents": "d", "scores": "00"}',
    b'{"topic": "1", "documents": "d\\ne", "scores": "000000000000f03f"}',
    b'{"topic": "1", "documents": [1], "scores": "000000000000f03f"}',
    b'{"topic": "1", "documents": "d", "scores": "000000000000f03f", "seconds": []}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("line", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_line_of_a_journal_is_passed_over_and_its_topic_asked_again(line, tmp_path):
    path = tmp_path / "x.journal"
    journal = Journal(str(path), ASKED, resume=False)
    journal.write("0", [("old", 1.0)], None)
    journal.keep()
    with path.open("ab") as file:
        file.write(line + b"\n")
    again = Journal(str(path), ASKED, resume=True)
    assert again.damaged == 1
    engine = Scripted(fine)
    assert set(drive(engine, queries(3), 5, Load(warmup=0), again).answers) == {"0", "1", "2"}
    again.keep()
    assert engine.asked == ["1", "2"]
    last = Journal(str(path), ASKED, resume=True)
    assert set(last.answers) == {"0", "1", "2"}
    last.discard()


@pytest.mark.parametrize("line", DAMAGED, ids=range(len(DAMAGED)))
def test_a_journal_whose_first_line_is_damaged_says_what_to_do(line, tmp_path):
    (tmp_path / "x.journal").write_bytes(line + b"\n")
    with pytest.raises(DataError, match="first line is damaged .*; delete it to start anew"):
        Journal(str(tmp_path / "x.journal"), ASKED, resume=True)


@pytest.mark.parametrize("content", [b"", b'{"journal": 1, "sys', b"\0" * 100])
def test_an_empty_journal_is_begun_anew(content, tmp_path):
    path = tmp_path / "x.journal"
    path.write_bytes(content)
    journal = Journal(str(path), ASKED, resume=True)
    journal.write("1", [("d1", 1.0)], None)
    journal.keep()
    again = Journal(str(path), ASKED, resume=True)
    assert again.answers == {"1": [("d1", 1.0)]}
    again.discard()


def test_a_journal_that_cannot_be_opened_is_told(tmp_path):
    (tmp_path / "x.journal").mkdir()
    with pytest.raises(DataError, match="x.journal: cannot be opened: is a directory"):
        Journal(str(tmp_path / "x.journal"), ASKED, resume=True)


def test_a_journal_without_an_answer_is_not_left_behind(tmp_path):
    Journal(str(tmp_path / "x.journal"), ASKED, resume=False).keep()
    assert not (tmp_path / "x.journal").exists()


def test_answers_in_the_journal_are_not_asked_for_again(tmp_path):
    path = str(tmp_path / "x.journal")
    journal = Journal(path, ASKED, resume=False)
    journal.write("1", [("old", 1.0)], 0.1)
    journal.keep()
    engine = Scripted(fine)
    again = Journal(path, ASKED, resume=True)
    driven = drive(engine, queries(3), 5, Load(warmup=0), again)
    again.keep()
    assert engine.asked == ["0", "2"]
    assert driven.answers["1"] == [("old", 1.0)]


def refused(topic, times):
    raise Refused("http://localhost:9: connection refused; is the engine running?")


@pytest.mark.parametrize(("clients", "warmup"), [(1, 10), (1, 0), (4, 0)])
def test_who_refuses_the_first_connection_is_not_waited_for(clients, warmup, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("waited"))
    engine = Scripted(refused)
    with pytest.raises(Unreachable, match="connection refused; is the engine running"):
        drive(engine, queries(30), 5, Load(clients=clients, warmup=warmup))
    assert len(engine.asked) <= clients


@pytest.mark.parametrize("warmup", [0, 2])
def test_who_was_there_once_may_refuse_for_a_moment(warmup):
    """An engine that restarts in the middle is waited for as before."""
    engine = Scripted(lambda topic, times: refused(topic, times) if topic == "3" and times == 1 else fine(topic, times))
    driven = drive(engine, queries(6), 5, Load(warmup=warmup, backoff=0))
    assert (len(driven.answers), driven.retries) == (6, 1)


def test_who_answered_once_with_a_fault_may_refuse_for_a_moment():
    def script(topic, times):
        if topic == "0":
            raise ValueError("a fault of this query alone")
        return refused(topic, times) if times == 1 else fine(topic, times)

    driven = drive(Scripted(script), queries(3), 5, Load(warmup=0, backoff=0))
    assert (list(driven.failed), len(driven.answers), driven.retries) == (["0"], 2, 2)


def test_other_faults_of_the_first_query_are_tried_again():
    def busy(topic, times):
        if topic == "0" and times == 1:
            raise Busy("no answer within 30 s")
        return fine(topic, times)

    driven = drive(Scripted(busy), queries(3), 5, Load(warmup=0, backoff=0))
    assert (len(driven.answers), driven.retries) == (3, 1)

"""Judging sessions, and the file of labels that is all they keep."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cranfield.base.errors import ConventionError, DataError
from cranfield.formats import as_runs, label_files
from cranfield.formats.label_files import Judgment, append_judgments, latest, read_judgments
from cranfield.pooling.pool import Session, pool, session
from cranfield.pooling.strategy import STRATEGIES, rankings

if TYPE_CHECKING:
    from pathlib import Path

RUNS = {
    "one": {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"x": 2.0, "y": 1.0}},
    "two": {"q1": {"d": 9.0, "a": 8.0, "b": 7.0}},
}
TWO = [Judgment("q1", "a", 1.0, "ann", "2026-01-02"), Judgment("q1", "d", 0.0)]


def test_a_session_serves_the_topic_that_has_had_the_fewest() -> None:
    going = session(RUNS, strategy="depth")
    assert [item.topic for item in going.take(4)] == ["q1", "q2", "q1", "q2"]


def test_a_session_of_some_topics_leases_no_other() -> None:
    going = session(RUNS, strategy="depth", topics=["q2"])
    assert [(item.topic, item.document) for item in going.take(9)] == [("q2", "x"), ("q2", "y")]


def test_the_documents_of_a_topic_are_numbered_from_one_as_they_are_leased() -> None:
    going = session(RUNS, strategy="depth")
    items = going.take(2, "q1") + going.take(2, "q1")
    assert [item.priority for item in items] == [1, 2, 3, 4]


def test_a_budget_counts_labels_and_what_is_still_out() -> None:
    going = session(RUNS, strategy="depth", budget=3)
    first = going.take(2)
    assert (going.outstanding, going.left) == (2, 1)
    going.judge(first[0].topic, first[0].document, 1)
    assert (going.judged, going.outstanding, going.left) == (1, 1, 1)
    assert going.next() is not None
    assert going.next() is None


def test_a_budget_counts_the_labels_that_were_there() -> None:
    going = session(RUNS, strategy="depth", budget=3, labels=TWO)
    assert going.left == 1
    assert len(going.take(9)) == 1


def test_a_document_that_no_run_returned_is_refused() -> None:
    going = session(RUNS)
    with pytest.raises(DataError, match="topic 'q1': no run returned 'z' within its depth"):
        going.judge("q1", "z", 1)
    with pytest.raises(DataError, match="no run answers topic 'q9'"):
        going.judge("q9", "a", 1)


def test_a_label_of_a_document_not_handed_out_is_taken_and_not_asked_for() -> None:
    going = session(RUNS, strategy="depth")
    going.judge("q1", "b", 1)
    assert (going.judged, going.left) == (1, 5)
    assert "b" not in [item.document for item in going.take(9)]


@pytest.mark.parametrize("name", ["move-to-front", "maxmean", "thompson", "hedge", "effect", "rrf"])
def test_labels_in_another_order_lose_and_repeat_no_document(name: str) -> None:
    tops = rankings(as_runs(RUNS), 10)
    labels = [Judgment("q1", "c", 1.0), Judgment("q1", "d", 0.0), Judgment("q1", "outside", 1.0)]
    asked = [item.document for item in Session(tops, name, labels=labels).take(9, "q1")]
    assert sorted(asked) == ["a", "b"]


def test_of_two_assessors_the_later_label_stands() -> None:
    labels = [Judgment("q1", "a", 2.0, "ann"), Judgment("q1", "a", 0.0, "bob")]
    going = session(RUNS, labels=labels)
    assert (going.judged, going.relevant) == (1, 0)
    assert latest(labels) == {"q1": {"a": 0.0}}


def test_a_negative_grade_from_before_is_not_a_judgment() -> None:
    going = session(RUNS, strategy="depth", qrels={"q1": {"a": -1.0, "d": 0.0}})
    asked = [item.document for item in going.take(9, "q1")]
    assert "a" in asked
    assert "d" not in asked


def test_a_sample_is_not_drawn_around_what_was_judged_before() -> None:
    for spoilt in ({"qrels": {"q1": {"a": 1.0}}}, {"priorities": {"one": 1}}):
        with pytest.raises(ConventionError, match="would spoil the sample"):
            pool(RUNS, strategy="sample(rate=0.5)", **spoilt)
    assert len(pool(RUNS, strategy="sample(rate=0.5)", qrels={"q1": {"a": 1.0}}, keep_judged=True)) == 6


def test_a_document_that_is_given_back_is_next_again() -> None:
    going = session(RUNS, strategy="depth")
    first, second, third = going.take(3, "q1")
    going.give_back("q1", third.document)
    going.give_back("q1", first.document)
    assert (going.outstanding, going.left) == (1, 5)
    assert [item.document for item in going.take(9, "q1")] == [first.document, third.document, "c"]
    with pytest.raises(DataError, match="'c' is not with an assessor|'z' is not with"):
        going.give_back("q1", "z")
    going.judge("q1", second.document, 1)
    with pytest.raises(DataError, match="is not with an assessor, so it cannot be given back"):
        going.give_back("q1", second.document)


def test_a_budget_is_free_again_when_a_document_is_given_back() -> None:
    going = session(RUNS, strategy="depth", budget=1)
    item = going.next()
    assert item is not None
    assert going.next() is None
    going.give_back(item.topic, item.document)
    assert going.next() == item


@pytest.mark.parametrize("name", [name for name, one in STRATEGIES.items() if not one.reads])
def test_a_strategy_goes_on_as_if_what_was_given_back_had_never_been_handed_out(name: str) -> None:
    rng = np.random.default_rng(7)
    documents = [f"d{i}" for i in range(40)]
    runs = {f"r{n}": {"q": dict(zip(rng.permutation(documents), range(40), strict=True))} for n in range(4)}
    relevant = set(rng.choice(documents, 10, replace=False))

    def asked(hesitant: bool) -> list[str]:
        going, answer = session(runs, strategy=name, seed=3), []
        while (item := going.next()) is not None:
            if hesitant and len(answer) % 3 == 0:
                going.give_back("q", item.document)
                assert going.next() == item
            answer.append(item.document)
            going.judge("q", item.document, float(item.document in relevant))
        return answer

    assert asked(True) == asked(False)


# the file


def test_labels_written_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    odd = Judgment("q ü", b"\xff\"'".decode("utf-8", "surrogateescape"), 0.5, "ann")
    append_judgments(path, TWO)
    append_judgments(path, [odd])
    assert read_judgments(path) == [*TWO, odd]
    assert json.loads(path.read_bytes().splitlines()[0])["grade"] == 1


def test_labels_come_from_qrels_too(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 a 2\nq1 0 d 0\n")
    assert read_judgments(path) == [Judgment("q1", "a", 2.0), Judgment("q1", "d", 0.0)]


def test_a_file_is_only_ever_added_to(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    append_judgments(path, TWO)
    before = path.read_bytes()
    append_judgments(path, [Judgment("q1", "a", 0.0)])
    assert path.read_bytes().startswith(before)


@pytest.mark.parametrize("cut", [1, 9, 20])
def test_a_line_torn_by_a_crash_is_passed_over_and_cut_off(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    append_judgments(path, TWO)
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rpartition(b"\n")[2]
    path.write_bytes(whole[: len(whole) - len(last) - 1 + cut])
    assert read_judgments(path) == TWO[:1]
    append_judgments(path, TWO[1:])
    assert path.read_bytes() == whole


ADDING = """
import sys
from cranfield.formats.label_files import Judgment, append_judgments
path, me, lines, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
sys.stdin.readline()
for i in range(lines):
    append_judgments(path, [Judgment("q", f"{me}-{i}-" + "x" * size, 1.0, me)])
"""


@pytest.mark.parametrize(
    ("lines", "size"),
    [(40, 9_000), pytest.param(250, 3_000, marks=pytest.mark.slow), pytest.param(250, 9_000, marks=pytest.mark.slow)],
)
def test_no_label_is_lost_where_four_processes_add_to_a_file(lines: int, size: int, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    command = [sys.executable, "-c", ADDING, str(path)]
    clerks = [
        subprocess.Popen([*command, str(me), str(lines), str(size)], stdin=subprocess.PIPE, text=True)
        for me in range(4)
    ]
    for clerk in clerks:  # all of them are up before the first begins
        assert clerk.stdin is not None
        clerk.stdin.write("go\n")
        clerk.stdin.flush()
    for clerk in clerks:
        clerk.communicate()
        assert clerk.returncode == 0
    labels = read_judgments(path)
    assert len(labels) == 4 * lines
    for me in range(4):  # and each one's in the order in which they were made
        mine = [int(label.document.split("-")[1]) for label in labels if label.assessor == str(me)]
        assert mine == list(range(lines))


def same(one: object, other: object) -> bool:
    """Whether they are equal, without a word on where long ones differ."""
    return one == other


@pytest.mark.parametrize("size", [0, 10, 65_400, 65_536, 70_000, 131_072, 1_000_000])
@pytest.mark.parametrize("before", [0, 1])
def test_a_whole_line_of_any_length_is_never_cut(size: int, before: int, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    long = Judgment("q" + "y" * size, "d" * (size + 1), 1.0)
    path.write_text("".join(label.line() + "\n" for label in TWO[:before]) + long.line())  # without its newline
    append_judgments(path, TWO[1:])
    assert same(read_judgments(path), [*TWO[:before], long, *TWO[1:]])
    append_judgments(path, [long])
    assert same(read_judgments(path), [*TWO[:before], long, *TWO[1:], long])
    whole = path.read_bytes()
    path.write_bytes(whole[: -size // 2 - 2])
    append_judgments(path, [long])
    assert same(path.read_bytes(), whole)


def test_a_disk_that_is_full_halfway_leaves_no_part_of_a_label(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "labels.jsonl"
    append_judgments(path, TWO)
    whole = path.read_bytes()

    def full(file, data: bytes) -> None:
        file.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(label_files, "_write", full)
    with pytest.raises(DataError, match="cannot be written: no space left"):
        append_judgments(path, TWO)
    assert path.read_bytes() == whole


def test_a_disk_without_locks_is_written_to_all_the_same(tmp_path: Path, monkeypatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refused(file, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    append_judgments(tmp_path / "labels.jsonl", TWO)
    assert read_judgments(tmp_path / "labels.jsonl") == TWO


def test_a_torn_first_line_is_no_label_yet(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(b'{"topic": "q1", "docu')
    assert read_judgments(path) == []
    append_judgments(path, TWO)
    assert read_judgments(path) == TWO


def test_a_last_line_that_lacks_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(TWO[0].line())
    append_judgments(path, TWO[1:])
    assert read_judgments(path) == TWO


def test_labels_are_never_added_to_qrels(tmp_path: Path) -> None:
    """A file of qrels without a newline at its end would lose its last judgment."""
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 a 2\nq1 0 d 0")
    with pytest.raises(DataError, match=r"qrels.txt: labels are added to JSON lines"):
        append_judgments(path, TWO)
    assert path.read_text() == "q1 0 a 2\nq1 0 d 0"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"topic": "q1", "document": "a"}', "expected a finite number as grade, found None"),
        ('{"topic": "q1", "document": "a", "grade": NaN}', "expected a finite number as grade"),
        ('{"topic": "q1", "document": "a", "grade": true}', "expected a finite number as grade"),
        ('{"topic": "", "document": "a", "grade": 1}', "found topic ''"),
        ('{"topic": "q1", "grade": 1}', "found document None"),
        ("[1]", "expected a JSON object"),
        ('{"topic"', "expected a JSON object"),
    ],
)
def test_a_bad_label_is_named_with_its_line(line: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(TWO[0].line() + "\n" + line + "\n")
    with pytest.raises(DataError, match=rf"labels.jsonl:2: .*{problem}"):
        read_judgments(path)


def test_a_disk_that_refuses_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        append_judgments(tmp_path / "none" / "labels.jsonl", TWO)
    if os.path.exists("/dev/full"):
        with pytest.raises(DataError, match="cannot be written: no space left"):
            append_judgments("/dev/full", TWO)

"""The command line of logs: `cranfield judge` with its subcommands, on every kind of log."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from cranfield import read_qrels
from cranfield.base.parameters import masked
from cranfield.cli.judge import command
from cranfield.judging import Event, open_log
from shell import EXAMPLES, cranfield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples with a log that has a round and two versions; only to be copied."""
    copy = tmp_path_factory.mktemp("made") / "examples"
    shutil.copytree(EXAMPLES, copy)
    for line in (
        "add work.db qrels.txt labels.jsonl",
        "round work.db --pool pool.jsonl --name 1",
        "freeze work.db spring0 --policy majority",
    ):
        answer = cranfield("judge", *shlex.split(line), folder=copy)
        assert answer.code == 0, answer.err
    return copy


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """The examples with a log that has a round and two versions."""
    return Path(shutil.copytree(made, tmp_path / "examples"))


@pytest.mark.parametrize("name", command.commands)
def test_every_subcommand_says_what_it_does_and_its_example_runs(name, folder):
    answer = cranfield("judge", name, "--help")
    assert answer.code == 0
    examples = re.findall(r"^\s*\$ cranfield (.*)$", answer.out, re.M)
    assert len(examples) == 1
    if name == "diff":
        assert cranfield("judge", "freeze", "work.db", "spring", folder=folder).code == 0
    if name == "round":
        os.remove(folder / "work.db")
    if name == "estimate":
        for typed in (
            "judge add work.db qrels.txt",
            "judge add work.db bob.csv --source model --assessor gpt",
            "judge round work.db --name drawn --pool pool.jsonl --sample 20",
        ):
            assert cranfield(*typed.split(), folder=folder).code == 0
    if name == "ask":
        (folder / "p.jsonl").write_text('{"topic": "101", "document": "d002"}\n')
    for example in examples:
        answer = cranfield(*shlex.split(example), folder=folder)
        assert answer.code == 0, answer.err


def test_qrels_go_in_and_come_out_as_they_were(location, tmp_path):
    assert cranfield("judge", "add", location, "qrels.txt").code == 0
    out = tmp_path / "out.txt"
    answer = cranfield("judge", "aggregate", location, "-o", out)
    assert answer.code == 0
    assert "28 documents of 7 topics graded by latest from 28 labels of 1 person" in answer.out
    assert read_qrels(out).to_dict() == read_qrels(EXAMPLES / "qrels.txt").to_dict()


def test_the_same_file_again_adds_nothing(location):
    first = cranfield("judge", "add", location, "qrels.txt")
    again = cranfield("judge", "add", location, "qrels.txt")
    assert "28 labels added to" in first.err
    assert "0 labels added to" in again.err
    assert "28 were there already" in again.err


def test_provenance_names_the_file_its_hash_and_the_line(tmp_path):
    cranfield("judge", "add", tmp_path / "work.db", "qrels.txt")
    log = open_log(tmp_path / "work.db")
    lines = (EXAMPLES / "qrels.txt").read_text().splitlines()
    for event in log.events():
        found = re.fullmatch(r"qrels.txt sha256:[0-9a-f]{64} line (\d+)", event.origin)
        assert lines[int(found[1]) - 1].split()[::2] == [event.topic, event.document]
        assert (event.source, event.assessor) == ("import", "qrels")
    log.close()


def test_crowd_answers_are_known_by_their_columns(tmp_path):
    (tmp_path / "answer.csv").write_text("question,worker,answer\nd1,w1,1\nd1,w2,0\nd2,w1,1\n")
    answer = cranfield("judge", "add", "work.db", "answer.csv", folder=tmp_path)
    assert answer.code == 0, answer.err
    log = open_log(tmp_path / "work.db")
    assert [(event.topic, event.document, event.assessor, event.grade) for event in log.events()] == [
        ("-", "d1", "w1", 1.0),
        ("-", "d1", "w2", 0.0),
        ("-", "d2", "w1", 1.0),
    ]
    log.close()
    told = cranfield("judge", "aggregate", "work.db", "--policy", "majority", folder=tmp_path)
    assert "note: 1 document has labels that contradict each other; resolved by majority" in told.err


def test_columns_by_option(tmp_path):
    (tmp_path / "a.csv").write_text("who;q;item;points;took\nann;q1;d1;2;3.5\nbob;q1;d1;;1\n")
    fields = ["topic=q", "document=item", "grade=points", "assessor=who", "seconds=took"]
    typed = [word for field in fields for word in ("--field", field)]
    told = cranfield("judge", "add", "l.jsonl", "a.csv", *typed, folder=tmp_path)
    assert (told.code, told.err) == (
        3,
        "cranfield: a.csv:3: a judgment needs topic, document, grade; there is no grade\n",
    )
    (tmp_path / "a.csv").write_text("who;q;item;points;took\nann;q1;d1;2;3.5\n")
    assert cranfield("judge", "add", "l.jsonl", "a.csv", *typed, folder=tmp_path).code == 0
    (event,) = open_log(tmp_path / "l.jsonl").events()
    assert (event.assessor, event.topic, event.document, event.grade, event.seconds) == ("ann", "q1", "d1", 2, 3.5)


BAD = [
    (["a.csv"], b"question,worker\nd1,w1\n", "no column for the grade; found question, worker"),
    (["a.csv"], b"question,worker,answer\nd1,w1,yes\n", "a.csv:2: expected a number as grade, found 'yes'"),
    (["a.csv"], b"question,worker,answer\nd1,w1\n", "a.csv:2: expected 3 columns, found 2"),
    (
        ["a.csv"],
        b"question,worker,answer\nd\xff,w1,1\n",
        "a.csv:2: expected UTF-8, UTF-16 or Windows-1252, found byte 0xff",
    ),
    (["a.txt"], b"q1 0 d1 5\n", "a.txt:1: expected a grade of 0, 1, 2, 3, found 5; nothing was added"),
    (["a.txt"], b"q1 0 d1 nan\n", "a.txt:1"),
    (["a.jsonl"], b'{"topic": "q", "document": "d", "grade": 1}\n{"topic": "q", "document"', "a.jsonl:2"),
]


@pytest.mark.parametrize(("files", "content", "said"), BAD)
def test_bad_input_is_named_and_adds_nothing(tmp_path, files, content, said):
    (tmp_path / files[0]).write_bytes(content)
    assert cranfield("judge", "add", "work.db", EXAMPLES / "qrels.txt", folder=tmp_path).code == 0
    answer = cranfield("judge", "add", "work.db", *files, "--scale", "0-3", folder=tmp_path)
    assert answer.code == 3
    assert said in answer.err
    log = open_log(tmp_path / "work.db")
    assert len(log.events()) == 28
    log.close()


def test_unknown_topics_and_documents_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("nowhere 0 d1 1\n")
    answer = cranfield("judge", "add", "work.db", "a.txt", "--collection", "allotment", folder=tmp_path)
    assert answer.code == 3
    assert "there is no topic 'nowhere' in the collection" in answer.err


def test_everything_is_withdrawn_that_one_person_said_since_a_time(location):
    log = open_log(location)
    log.add(
        [
            Event(topic="q", document="a", grade=1, assessor="ann", time="2026-01-01"),
            Event(topic="q", document="b", grade=1, assessor="ann", time="2026-02-01"),
            Event(topic="q", document="b", grade=0, assessor="bob", time="2026-02-01"),
        ]
    )
    answer = cranfield("judge", "withdraw", location, "--assessor", "ann", "--since", "2026-01-15")
    assert "1 events withdrawn" in answer.err
    assert sorted((each.document, each.assessor) for each in log.labels()) == [("a", "ann"), ("b", "bob")]
    log.close()
    nothing = cranfield("judge", "withdraw", location)
    assert (nothing.code, "say what to withdraw" in nothing.err) == (3, True)


def test_events_exported_and_added_elsewhere_are_the_same(location, tmp_path):
    log = open_log(location)
    events = [
        Event(topic="q", document="a\udc80", grade=1, assessor="ann", note="x"),
        Event(topic="q", document="a", other="b", grade=-1, assessor="bob", kind="preference"),
    ]
    log.add(events)
    log.close()
    assert cranfield("judge", "export", location, "-o", tmp_path / "e.jsonl").code == 0
    assert cranfield("judge", "add", tmp_path / "other.db", tmp_path / "e.jsonl").code == 0
    other = open_log(tmp_path / "other.db")
    assert [(event.id, event.document, event.note) for event in other.events()] == [
        (event.id, event.document, event.note) for event in events
    ]
    other.close()


def test_qrels_by_a_policy(tmp_path):
    cranfield("judge", "add", tmp_path / "work.db", "labels.jsonl", "bob.csv")
    highest = cranfield("judge", "export", tmp_path / "work.db", "--to", "qrels", "--policy", "max")
    lowest = cranfield("judge", "export", tmp_path / "work.db", "--to", "qrels", "--policy", "min")
    assert highest.out.splitlines()[0] == "q1 0 doc-003 3"
    assert len(highest.out.splitlines()) == len(lowest.out.splitlines()) == 13
    assert highest.out != lowest.out
    assert "3 documents have labels that contradict each other; resolved by max" in highest.err


def test_preferences_as_trec_eval_reads_them(tmp_path):
    log = open_log(tmp_path / "l.jsonl")
    log.add(
        [
            Event(topic="q", document="a", other="b", grade=1, assessor="ann", kind="preference"),
            Event(topic="q", document="b", other="c", grade=0, assessor="ann", kind="preference"),
        ]
    )
    answer = cranfield("judge", "export", tmp_path / "l.jsonl", "--to", "prefs")
    assert answer.out == "q ann 1 a 2\nq ann 1 b 1\nq ann 2 b 1\nq ann 2 c 1\n"


def test_a_version_stays_what_it_was(location, tmp_path):
    cranfield("judge", "add", location, "qrels.txt")
    frozen = cranfield("judge", "freeze", location, "spring", "--policy", "majority")
    assert frozen.code == 0, frozen.err
    cranfield("judge", "withdraw", location, "--topic", "q1")
    answer = cranfield(
        "judge", "diff", location, "spring", "--run", "bm25.run", "--run", "dense.run", "--format", "json"
    )
    found = json.loads(answer.out)
    assert len(found["removed"]) == (EXAMPLES / "qrels.txt").read_text().count("q1 0 ")
    assert {each["run"] for each in found["scores"]} == {"bm25", "dense"}
    again = cranfield("judge", "verify", location)
    assert (again.code, "1 of 1 versions come out as they were frozen" in again.out) == (0, True)
    twice = cranfield("judge", "freeze", location, "spring")
    assert (twice.code, "there is a version 'spring' already" in twice.err) == (3, True)


def test_a_log_that_was_changed_by_hand_is_noticed(tmp_path):
    path = tmp_path / "l.jsonl"
    cranfield("judge", "add", path, "qrels.txt")
    cranfield("judge", "freeze", path, "spring")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0].replace('"grade": 3', '"grade": 0') + "".join(lines[1:]))
    answer = cranfield("judge", "verify", path)
    assert answer.code == 3
    assert "version 'spring' no longer comes out as it was frozen" in answer.err


def test_a_password_is_masked_everywhere(tmp_path):
    url = "postgresql://ann:hush@127.0.0.1:1/none"
    answer = cranfield("judge", "add", url, "qrels.txt")
    assert answer.code == 3
    assert "hush" not in answer.both
    assert "postgresql://ann:***@127.0.0.1:1/none: cannot be reached: connection refused" in answer.err
    assert masked("x?password=hush&y=1") == "x?password=***&y=1"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:hu@sh@db/w@spring", "postgresql://ann:***@db/w@spring"),
        ("postgresql://ann:hu/sh@db/w@spring", "postgresql://ann:***@db/w@spring"),
        ("postgresql://ann@db:5432/w@spring", "postgresql://ann@db:5432/w@spring"),
        ("postgresql://db:5432/w@spring", "postgresql://db:5432/w@spring"),
    ],
)
def test_a_password_is_masked_whatever_is_in_it_and_nothing_else_is(url, shown):
    assert masked(url) == shown


def test_somebody_is_told_what_to_judge_and_when_nothing_is_left(location):
    assert cranfield("judge", "round", location, "--pool", "pool.jsonl", "--assessors", "ann", "--sample", 1).code == 0
    first = cranfield("judge", "next", location, "--assessor", "ann")
    topic, document = first.out.strip().split("\t")
    assert "yours until" in first.err
    log = open_log(location)
    log.add([Event(topic=topic, document=document, grade=1, assessor="ann", round="1")])
    log.close()
    done = cranfield("judge", "next", location, "--assessor", "ann")
    assert (done.out, done.err) == ("", "nothing is left for ann in round '1'\n")
    status = cranfield("judge", "status", location)
    assert "round 1 is open: 1 of 1 labels, 0 out, 0 left" in status.out
    blame = cranfield("judge", "blame", location, topic, document)
    assert re.search(r"ann\s+judgment\s+1\s+yes", blame.out)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["--double", "200%"], "expected a share such as 5% or 0.05"),
        (["--lease", "soon"], "expected a time such as 30m, 2h or 1d"),
        (["--scale", "a-b"], "expected grades such as 0-3 or 0,1,2"),
        (["--strategy", "depth"], "name the runs with --run"),
        (["--strategy", "mtf", "--run", "bm25.run"], "no pooling strategy 'mtf'"),
        (["--sample", "99999"], "--sample: expected 1 to"),
    ],
)
def test_bad_options_of_a_round(tmp_path, typed, said):
    answer = cranfield("judge", "round", tmp_path / "work.db", "--pool", "pool.jsonl", *typed)
    assert answer.code in (2, 3)
    assert said in answer.err
    assert not (tmp_path / "work.db").exists()


def status_of(location):
    return json.loads(cranfield("judge", "status", location, "--format", "json").out)["rounds"][0]


def changed(location, *words):
    answer = cranfield("judge", "change", location, "r1", *words)
    assert answer.code == 0, answer.err
    return status_of(location)


def test_a_round_is_changed_by_options(location, tmp_path):
    cranfield("judge", "round", location, "--pool", "pool.jsonl", "--name", "r1", "--assessors", "ann,bob")
    assert changed(location, "--overlap", 2)["places"] == 58
    assert changed(location, "--assessors", "ann,bob,cat", "--changed-by", "lea")["changes"][-1]["by"] == "lea"
    (tmp_path / "topics.txt").write_text("q1\n")
    some = changed(location, "--topics", tmp_path / "topics.txt")["places"]
    assert 0 < some < 58
    assert changed(location, "--all-topics")["places"] == 58
    changed(location, "--order", "priority")
    assert changed(location, "--run", "bm25.run", "--depth", 1)["places"] < 58
    assert changed(location, "--pool", "pool.jsonl", "--overlap", 1)["places"] == 29
    changed(location, "--assign-topics")
    assert cranfield("judge", "next", location, "--assessor", "cat").code == 0
    changed(location, "--choose-topics")
    told = cranfield("judge", "next", location, "--assessor", "bob", "--format", "json")
    topics = [each["topic"] for each in json.loads(told.out)["topics"]]
    got = cranfield("judge", "next", location, "--assessor", "bob", "--topic", topics[0], "--count", 2)
    assert {line.split("\t")[0] for line in got.out.splitlines()} == {topics[0]}
    assert changed(location, "--any-topic", "--everybody")["changes"][-1]["what"].startswith("people: ann, bob")
    assert "labels per document: 1 → 2" in cranfield("judge", "status", location).out


def test_an_adaptive_round_is_cut_without_its_runs_and_deepened_with_them(location):
    words = ("--strategy", "move-to-front", "--run", "bm25.run", "--run", "dense.run", "--depth", 5)
    cranfield("judge", "round", location, "--name", "r1", *words)
    assert changed(location, "--depth", 2)["changes"][-1]["what"].startswith("depth: 5 → 2")
    deeper = cranfield("judge", "change", location, "r1", "--depth", 4)
    assert (deeper.code, "name the runs with --run" in deeper.err) == (3, True)
    changed(location, "--depth", 4, "--run", "bm25.run")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 3, "nothing changes"),
        (("--depth", 3), 3, "name them with --run"),
        (("--drop", "q1", "nowhere"), 3, "not among the documents"),
        (("--topic-people", "q1"), 2, "expected TOPIC=NAME,NAME"),
        (("--topic-people", "q1=ann"), 3, "is assigned to nobody"),
        (("--everybody", "--assessors", "ann"), 2, "does not go with --everybody"),
        (("--overlap", 3), 3, "3 labels per document need 3 people, and 2 are named"),
    ],
)
def test_bad_changes_of_a_round(location, words, code, said):
    cranfield("judge", "round", location, "--pool", "pool.jsonl", "--name", "r1", "--assessors", "ann,bob")
    answer = cranfield("judge", "change", location, "r1", *words)
    assert (answer.code, said in answer.err) == (code, True), answer.err
    assert status_of(location)["changes"] == []

"""Judging at the terminal: `cranfield pool judge` on every kind of log, alone and with others at the same time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from cranfield.commands.pooling import Depths
from cranfield.commands.terminal_session import JudgingTask, TerminalSession, open_session
from cranfield.formats.pool_files import read_pool
from cranfield.inputs.inputs import Inputs
from cranfield.judging import Event, open_log
from cranfield.pooling.strategy import STRATEGIES
from shell import EXAMPLES, Answer, cranfield

if TYPE_CHECKING:
    from pathlib import Path

    from cranfield.judging import Log

RUNS = "bm25.run", "dense.run"
FILES = [str(EXAMPLES / run) for run in RUNS]
POOL = str(EXAMPLES / "pool.jsonl")
SIZE = 29  # of the pool


def judge(location: str, typed: str, *words: object, assessor: str = "ann") -> Answer:
    """Judge the examples' runs at a terminal, or what the words name."""
    what = words if any(word in ("--pool", "--round") for word in words) else (*RUNS, "--depth", 3, *words)
    line = ["pool", "judge", *what, "--judgments", location, "--assessor", assessor]
    answer = cranfield(*line, stdin=("\n".join(typed.split("|")) + "\n").encode())
    assert answer.code == 0, answer.err
    return answer


def events(location: str) -> list[Event]:
    log = open_log(location)
    try:
        return log.events()
    finally:
        log.close()


def standing(location: str) -> dict[tuple[str, str], float]:
    log = open_log(location)
    try:
        return {(label.topic, label.document): label.grade for label in log.labels()}
    finally:
        log.close()


def at(location: str, assessor: str, **how: Any) -> TerminalSession:
    """Somebody at a desk over the examples' runs, or a pool."""
    inputs = Inputs() if "pool" in how or "round" in how else Inputs(runs=FILES, rel=1)
    return open_session(inputs, Depths(how.pop("depth", 3)), judgments=location, assessor=assessor, **how)


def test_labels_are_events_with_all_that_was_on_the_screen(location: str, tmp_path: Path) -> None:
    (tmp_path / "told.md").write_text("be kind")
    judge(location, "2|0?|x torn page|n odd|1 well hidden|q", "--guidelines", tmp_path / "told.md")
    said = events(location)
    assert [(event.kind, event.grade, event.sure, event.note) for event in said] == [
        ("judgment", 2.0, True, ""),
        ("judgment", 0.0, False, ""),
        ("cannot-judge", None, True, "torn page"),
        ("note", None, True, "odd"),
        ("judgment", 1.0, True, "well hidden"),
    ]
    assert [event.rank for event in said] == [1, 2, 3, 4, 4]
    for event in said:
        assert (event.source, event.assessor, event.list, event.aspect) == ("human", "ann", "depth", "relevance")
        assert event.seconds is not None
        assert event.guideline == f"sha256:{hashlib.sha256(b'be kind').hexdigest()}"


def test_one_stays_with_a_topic_and_comes_back_to_it(location: str) -> None:
    judge(location, "1|1|q")
    judge(location, "1|q")
    assert [event.topic for event in events(location)] == ["q1", "q1", "q1"]


def test_a_budget_is_spread_over_topics(location: str) -> None:
    judge(location, "|".join(["1"] * 30), "--budget", 14)
    assert Counter(topic for topic, _ in standing(location)) == dict.fromkeys([f"q{n}" for n in range(1, 8)], 2)


def test_undo_takes_back_the_last_word_and_shows_its_document_again(location: str) -> None:
    answer = judge(location, "2|0|u|1|z|z|z|3|q")
    first, second = (event.document for event in events(location)[:2])
    assert standing(location) == {("q1", first): 3.0}
    shown = re.findall(r"^document (\S+)$", answer.err, re.MULTILINE)
    third = shown[2]
    assert shown == [first, second, third, second, third, second, first, second]
    assert "taken back: 0 for" in answer.err
    assert "there is nothing to undo" in answer.err
    assert [event.kind for event in events(location)].count("withdrawal") == 3


def test_the_last_document_can_be_taken_back_too(location: str, tmp_path: Path) -> None:
    pool = tmp_path / "one.jsonl"
    pool.write_text('{"topic": "q", "document": "d", "rank": 1, "runs": [], "priority": 1}\n')
    answer = judge(location, "2|u|1|q", "--pool", pool)
    assert "nothing is left to judge" in answer.err
    assert standing(location) == {("q", "d"): 1.0}


def test_what_one_said_before_can_be_taken_back_next_time(location: str) -> None:
    judge(location, "2|q")
    judge(location, "u|0|q")
    assert list(standing(location).values()) == [0.0]


def test_a_grade_off_the_scale_is_refused(location: str) -> None:
    answer = judge(location, "5|2.5|nan|-1|2|q", "--scale", "0-3")
    assert "grade 0 1 2 3 > " in answer.err
    assert answer.err.count("expected a grade of 0 1 2 3, found") == 3
    assert list(standing(location).values()) == [2.0]


def test_need_and_grades_are_shown(location: str) -> None:
    runs = [f"{folder}/{run}.run" for run in ("bm25", "phrase") for folder in [bundled()]]
    line = ["pool", "judge", *runs, "--depth", 2, "--collection", "allotment", "--judgments", location]
    answer = cranfield(*line, stdin=b"7\n3\nt\n?\nq\n")
    assert answer.code == 0
    assert "3  perfectly relevant: Answers the need fully" in answer.err
    assert "topic 101: blossom end rot\nWhat causes the dark" in answer.err
    assert "Grade 3 gives both the cause" in answer.err
    assert "document d299\nBlossom end rot: what it is" in answer.err
    assert "expected a grade of 0 1 2 3, found 7" in answer.err
    assert answer.err.count("What causes the dark") == 2  # once for the topic, once for t
    assert "s    skip it; it comes again next time" in answer.err


def bundled() -> str:
    from cranfield.formats.collection_folder import BUNDLED

    return os.path.join(BUNDLED, "allotment", "runs")


def test_a_topics_file_says_what_is_needed(location: str) -> None:
    answer = judge(location, "1|1|q", "--topics-file", "topics.tsv")
    asked = (EXAMPLES / "topics.tsv").read_text().splitlines()[1].split("\t")
    assert f"topic {asked[0]}: " in answer.err


def test_skipped_documents_come_again_next_time_and_only_then(location: str) -> None:
    first = judge(location, "s|1|q")
    skipped, judged, third = re.findall(r"^document (\S+)$", first.err, re.MULTILINE)
    second = judge(location, "q")
    assert re.findall(r"^document (\S+)$", second.err, re.MULTILINE) == [skipped]
    assert standing(location) == {("q1", judged): 1.0}
    assert third != skipped


# a pool file


def test_a_pool_file_serves_everybody_what_is_theirs(location: str, tmp_path: Path) -> None:
    pool = tmp_path / "pool.jsonl"
    assert cranfield("pool", *RUNS, "--depth", 3, "--assessors", "ann,bob", "-o", pool).code == 0
    items = read_pool(pool)
    for who in ("ann", "bob"):
        judge(location, "|".join(["1"] * 40), "--pool", pool, assessor=who)
    for event in events(location):
        assert [event.assessor] == [item.assessor for item in items if item[:2] == (event.topic, event.document)]
    assert len(standing(location)) == len(items)
    stranger = cranfield("pool", "judge", "--pool", pool, "--judgments", location, "--assessor", "eve")
    assert (stranger.code, "nothing is for 'eve'; its documents are assigned to ann, bob" in stranger.err) == (3, True)
    nobody = cranfield("pool", "judge", "--pool", pool, "--judgments", location)
    assert (nobody.code, "say who judges with --assessor" in nobody.err) == (3, True)


def test_what_others_judged_is_not_asked_unless_several_labels_are_wanted(location: str) -> None:
    judge(location, "|".join(["1"] * 40), "--pool", POOL, assessor="ann")
    none = judge(location, "0", "--pool", POOL, assessor="bob")
    assert f"nothing is left to judge; {SIZE} of {SIZE} documents" in none.err
    judge(location, "|".join(["0"] * 40), "--pool", POOL, "--overlap", 2, assessor="bob")
    said = Counter((event.topic, event.document) for event in events(location))
    assert set(said.values()) == {2}
    again = judge(location, "0", "--pool", POOL, "--overlap", 2, assessor="eve")
    assert "nothing is left" in again.err
    assert f"note: {SIZE} documents have labels that contradict each other; resolved by latest" in again.err


def test_imported_qrels_are_judged_already_and_a_models_are_not(location: str) -> None:
    cranfield("judge", "add", location, "qrels.txt")
    cranfield("judge", "add", location, "labels.jsonl", "--source", "model", "--assessor", "llm")
    before = standing(location)
    judge(location, "|".join(["1"] * 40), "--pool", POOL)
    asked = {(event.topic, event.document) for event in events(location) if event.source == "human"}
    assert asked == {(item.topic, item.document) for item in read_pool(POOL)} - before.keys()
    assert any(event.source == "model" and (event.topic, event.document) in asked for event in events(location))


def test_a_third_person_decides_what_two_disagree_about(location: str, tmp_path: Path) -> None:
    assert cranfield("judge", "add", location, "labels.jsonl", "bob.csv").code == 0
    pool = tmp_path / "third.jsonl"
    assert cranfield("judge", "agree", location, "--disagreements", pool).code == 0
    answer = judge(location, "3|3|u|2|0|q", "--pool", pool, "--adjudicate", assessor="cat")
    assert "document doc-044\nsaid: ann 0, bob 1\n" in answer.err
    told = [event for event in events(location) if event.assessor == "cat" and event.kind != "withdrawal"]
    assert {event.kind for event in told} == {"adjudication"}
    decided = {document: grade for (_, document), grade in standing(location).items()}
    assert [decided[item.document] for item in read_pool(pool)] == [3.0, 2.0, 0.0]
    again = judge(location, "1", "--pool", pool, "--adjudicate", assessor="dan")
    assert "nothing is left to judge; 3 of 3" in again.err
    told = cranfield("eval", location, "bm25.run").err
    assert "3 documents have labels that contradict each other; resolved by latest, 3 of all by adjudication" in told


# two people at once


def test_what_somebody_adds_meanwhile_is_not_asked(location: str) -> None:
    ann, bob = at(location, "ann", pool=POOL), at(location, "bob", pool=POOL)
    first = ann.next()
    assert isinstance(first, JudgingTask)
    ann.answer(first, "judgment", 1.0, grade=1.0)
    theirs = bob.next()
    assert isinstance(theirs, JudgingTask)
    assert (theirs.topic, theirs.document) != (first.topic, first.document)
    assert theirs.topic != first.topic  # where ann is at work
    ann.close()
    bob.close()


def test_of_two_who_look_at_the_same_document_one_label_is_kept(location: str) -> None:
    ann, bob = at(location, "ann"), at(location, "bob")
    one, other = ann.next(), bob.next()
    assert isinstance(one, JudgingTask)
    assert one == other
    assert ann.answer(one, "judgment", 1.0, grade=1.0) == ""
    assert bob.answer(one, "judgment", 1.0, grade=2.0).startswith("ann has judged it meanwhile; yours is not kept")
    assert standing(location) == {(one.topic, one.document): 1.0}
    following = bob.next()
    assert isinstance(following, JudgingTask)
    assert following.topic != one.topic
    ann.close()
    bob.close()


def test_two_people_at_two_terminals_never_judge_the_same_document(location: str, tmp_path: Path) -> None:
    (tmp_path / "typed").write_text("1\n" * 80)
    line = ["-m", "cranfield", "pool", "judge", "--pool", "pool.jsonl", "--judgments", location, "--assessor"]
    people = []
    for who in ("ann", "bob"):
        with open(tmp_path / "typed") as typed:
            command = [sys.executable, *line, who]
            people.append(subprocess.Popen(command, cwd=EXAMPLES, stdin=typed, stderr=subprocess.PIPE, text=True))
    for person in people:
        _, told = person.communicate(timeout=120)
        assert person.returncode == 0, told
    said = [(event.topic, event.document) for event in events(location)]
    assert len(said) == len(set(said)) == SIZE


def test_somebody_takes_a_label_back_and_it_is_asked_again(location: str) -> None:
    ann, bob = at(location, "ann", strategy="move-to-front"), at(location, "bob", strategy="move-to-front")
    task = ann.next()
    assert isinstance(task, JudgingTask)
    ann.answer(task, "judgment", 1.0, grade=1.0)
    assert isinstance(bob.next(), JudgingTask)
    undone = ann.undo()
    assert undone is not None
    assert undone[0] == task
    shown = set()
    while isinstance(following := bob.next(), JudgingTask):
        shown.add((following.topic, following.document))
        assert bob.answer(following, "judgment", 1.0, grade=0.0) == ""
    assert (task.topic, task.document) in shown
    ann.close()
    bob.close()


@pytest.mark.parametrize("name", [name for name, one in STRATEGIES.items() if one.adaptive and not one.reads])
def test_undo_leaves_an_adaptive_strategy_as_if_nothing_had_been_said(name: str, tmp_path: Path) -> None:
    def judged(path: Path, slip: bool) -> list[tuple[str, str]]:
        person, asked = at(str(path), "ann", strategy=name, depth=10), []
        while isinstance(task := person.next(), JudgingTask) and len(asked) < 12:
            if slip and len(asked) == 4:
                person.answer(task, "judgment", 1.0, grade=1.0)
                undone = person.undo()
                assert undone is not None
                task = undone[0]
            asked.append((task.topic, task.document))
            person.answer(task, "judgment", 1.0, grade=float(len(asked) % 3 == 0))
        person.close()
        return asked

    assert judged(tmp_path / "a.jsonl", False) == judged(tmp_path / "b.jsonl", True)


# a round


def begin(location: str, *words: object) -> None:
    answer = cranfield("judge", "round", location, "--pool", "pool.jsonl", "--name", "r1", *words)
    assert answer.code == 0, answer.err


def test_a_round_is_judged_at_the_terminal(location: str) -> None:
    begin(location, "--assessors", "ann,bob,cat", "--overlap", 2, "--scale", "0-3")
    for who in ("ann", "bob", "cat"):
        answer = judge(location, "9|" + "|".join(["1"] * 40), "--round", "r1", assessor=who)
        assert "nothing is left for" in answer.err
    assert "expected a grade of 0 1 2 3, found 9" in judge_twice(location)
    said = Counter((event.topic, event.document, event.assessor) for event in events(location))
    assert set(said.values()) == {1}
    assert set(Counter(key[:2] for key in said).values()) == {2}
    assert all(event.round == "r1" for event in events(location))
    assert f"round r1 is open: {2 * SIZE} of {2 * SIZE} labels" in cranfield("judge", "status", location).out


def judge_twice(location: str) -> str:
    """What a round says of a grade off its scale, in a log of its own."""
    begin_two = cranfield("judge", "round", location, "--pool", "pool.jsonl", "--name", "r2", "--scale", "0-3")
    assert begin_two.code == 0
    return judge(location, "9|q", "--round", "r2", assessor="eve").err


def test_repeats_are_marked_in_the_log_and_not_on_the_screen(location: str) -> None:
    begin(location, "--assessors", "ann", "--repeat", "50%")
    answer = judge(location, "|".join(["1"] * 60), "--round", "r1")
    repeated = [event for event in events(location) if event.repeat]
    assert repeated
    assert len(standing(location)) == SIZE
    assert not re.search("again|repeat", answer.err.replace(location, ""))


def test_undo_in_a_round_frees_and_fills_the_same_place(location: str) -> None:
    begin(location, "--assessors", "ann,bob")
    answer = judge(location, "1|0|u|2|s|u|1|q", "--round", "r1")
    assert answer.err.count("taken back") == 2
    assert sorted(standing(location).values()) == [1.0, 1.0, 2.0]
    assert f"round r1 is open: 3 of {SIZE} labels" in cranfield("judge", "status", location).out


def test_who_is_not_in_a_round_is_told(location: str) -> None:
    begin(location, "--assessors", "ann,bob")
    answer = cranfield("pool", "judge", "--round", "r1", "--judgments", location, "--assessor", "eve")
    assert (answer.code, "is for ann, bob; 'eve' is not among them" in answer.err) == (3, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--judgments", "l.jsonl"], 2, "give one of them"),
        (["bm25.run", "--pool", "pool.jsonl", "--judgments", "l.jsonl"], 2, "give one of them"),
        (["bm25.run", "--judgments", "work.db@spring"], 2, "is frozen; name the log itself"),
        (["bm25.run", "--judgments", "l.jsonl", "--scale", "a"], 2, "expected grades such as 0-3"),
        (["--round", "none", "--judgments", "l.jsonl", "--assessor", "ann"], 3, "there is no round 'none'"),
        (["--round", "1", "--adjudicate", "--judgments", "l.jsonl"], 2, "a round asks for labels"),
        (["bm25.run", "--judgments", "qrels.txt"], 3, "qrels.txt:1: expected a JSON object"),
    ],
)
def test_what_cannot_be_judged_is_told(words: list[str], code: int, said: str, tmp_path: Path) -> None:
    for name in ("bm25.run", "pool.jsonl", "qrels.txt"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    assert cranfield("judge", "add", "work.db", "qrels.txt", folder=tmp_path).code == 0
    answer = cranfield("pool", "judge", *words, folder=tmp_path)
    assert (answer.code, said in answer.err) == (code, True), answer.err


def test_a_label_is_added_only_if_what_stands_lets_it(log: Log) -> None:
    ann = Event(topic="q", document="d", grade=1, assessor="ann")
    seen: list[list[str]] = []

    def fits(standing: list[Event]) -> bool:
        seen.append([event.assessor for event in standing])
        return not standing

    assert log.add_if(ann, fits)
    assert not log.add_if(Event(topic="q", document="d", grade=2, assessor="bob"), fits)
    assert log.add_if(Event(topic="q", document="e", grade=2, assessor="bob"), fits)
    log.add([Event(kind="withdrawal", refers=ann.id, assessor="ann")])
    assert log.add_if(Event(topic="q", document="d", grade=2, assessor="bob"), fits)
    assert seen == [[], ["ann"], [], []]
    assert sorted((each.document, each.grade) for each in log.labels()) == [("d", 2.0), ("e", 2.0)]


def test_a_log_of_old_labels_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes((EXAMPLES / "labels.jsonl").read_bytes())
    answer = judge(str(path), "1|q", "--depth", 5, assessor="eve")
    assert "13 labels so far" in answer.err
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert (len(lines), lines[-1]["assessor"], "id" in lines[-1], "id" in lines[0]) == (14, "eve", True, False)


# a search


def search(location: str, typed: str, *words: object, assessor: str = "ann") -> Answer:
    """Search the bundled collection for topic 101 and judge what comes."""
    line = ["pool", "judge", "--search", 101, "--collection", "allotment", *words, "--judgments", location]
    return cranfield(*line, "--assessor", assessor, stdin=("\n".join(typed.split("|")) + "\n").encode())


def test_results_of_a_search_are_judged_in_the_order_of_the_search(location: str) -> None:
    answer = search(location, "3|x|/ wick bucket|2|/|/ zeppelin|q")
    assert answer.code == 0, answer.err
    assert "topic 101: blossom end rot" in answer.err
    assert "3 labels kept" in answer.err
    assert "nothing is left to judge; search: zeppelin: 0 of 0 results judged. / WORDS searches again" in answer.err
    labels = [(event.kind, event.grade, event.list, event.rank) for event in events(location)]
    assert labels[:2] == [
        ("judgment", 3, "search: blossom end rot", 1),
        ("cannot-judge", None, "search: blossom end rot", 2),
    ]
    assert labels[2][:3] == ("judgment", 2, "search: wick bucket")
    again = search(location, "q", "--query", "wick bucket")  # what one has judged oneself is passed over
    assert events(location)[2].document not in again.err
    other = search(location, "1|q", "--query", "wick bucket", assessor="bob")  # what others have judged is not
    assert other.code == 0
    assert events(location)[-1].document == events(location)[2].document


def test_a_label_of_a_search_fills_the_assignment_at_the_terminal_too(location: str, tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text('{"topic": "101", "document": "d299", "priority": 1}\n')
    begin_one = cranfield("judge", "round", location, "--pool", str(tmp_path / "own.jsonl"), "--name", "r1")
    assert begin_one.code == 0, begin_one.err
    assert cranfield("judge", "next", location, "--assessor", "ann").out == "101\td299\n"
    assert search(location, "2|q").code == 0
    assert [(event.round, event.document) for event in events(location)] == [("r1", "d299")]
    assert "1 of 1 labels" in cranfield("judge", "status", location).out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--search", "no such", "--collection", "allotment"], 3, "no topic 'no such'"),
        (["--search", "101"], 2, "name them with --collection"),
        (["--search", "101", "--pool", "pool.jsonl"], 2, "give one of them"),
        (["bm25.run", "--query", "wing"], 2, "--query goes with --search"),
        (["--search", "101", "--collection", "allotment", "--overlap", "2"], 2, "--overlap does not go with --search"),
        (["--search", "101", "--collection", "allotment", "--depth", "2"], 2, "--depth is for documents of runs"),
    ],
)
def test_a_search_without_a_topic_or_documents_is_refused(words: list[str], code: int, said: str) -> None:
    answer = cranfield("pool", "judge", *words, "--judgments", "searched.jsonl")
    assert (answer.code, said in answer.err) == (code, True), answer.err


def test_people_choose_topics_at_the_terminal(location: str) -> None:
    begin(location, "--choose-topics")
    topics = list(dict.fromkeys(item.topic for item in read_pool(POOL)))
    first, second = topics[:2]
    answer = judge(location, f"nowhere|{first}|1|c|{second}|2|q", "--round", "r1")
    assert "choose a topic of round" in answer.err
    assert f"{first}: {Counter(item.topic for item in read_pool(POOL))[first]} documents left" in answer.err
    assert "expected one of these topics, found 'nowhere'" in answer.err
    assert [(event.topic, event.grade) for event in events(location)] == [(first, 1.0), (second, 2.0)]
    again = judge(location, "1|q", "--round", "r1")  # goes on where it stopped
    assert "choose a topic" not in again.err
    assert events(location)[-1].topic == second
    everything = "|".join(["1"] * SIZE)
    rest = judge(location, "|".join(f"{topic}|{everything}" for topic in topics), "--round", "r1", assessor="bob")
    assert f"expected one of these topics, found {second!r}" in rest.err  # ann is at work on it

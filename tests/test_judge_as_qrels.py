"""A log wherever qrels or labels are read: LOG, and LOG@NAME for what was frozen."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cranfield import judging, read_qrels
from cranfield.base.errors import DataError
from cranfield.base.notifications import notes_to
from cranfield.formats.label_files import Judgment
from cranfield.inputs.inputs import Inputs
from cranfield.inputs.logs import Named, labels_in, named
from cranfield.judging import Event, open_log
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from pathlib import Path

NOTE = "note: 1 document has labels that contradict each other; resolved by "
VERBS = {
    "eval": "eval {qrels} bm25.run dense.run --per-topic",
    "eval bounds": "eval {qrels} bm25.run --bounds ties",
    "compare": "compare {qrels} bm25.run dense.run",
    "leaderboard": "leaderboard {qrels} bm25.run dense.run",
    "gate": "gate {qrels} bm25.run dense.run",
    "report": "report {qrels} bm25.run dense.run --format csv",
    "explain": "explain {qrels} bm25.run -m AP --topic q1",
    "side by side": "explain {qrels} bm25.run dense.run -m AP --topic q1",
    "explain as": "explain {qrels} bm25.run -m AP --topic q1 --as all",
    "curve": "curve {qrels} bm25.run dense.run",
    "reuse": "reuse {qrels} bm25.run dense.run",
    "design": "design {qrels} bm25.run dense.run --test t",
    "stability": "stability {qrels} bm25.run dense.run --of measures",
    "correlate": "correlate bm25.run dense.run --systems {qrels} -m AP -m RR",
    "reproduce": "reproduce {qrels} bm25.run dense.run",
    "check": "check bm25.run --qrels {qrels}",
    "pool thin": "pool thin {qrels} bm25.run dense.run",
    "pool simulate": "pool simulate {qrels} bm25.run dense.run --depth 5",
    "pool make": "pool make bm25.run dense.run --depth 5 --qrels {qrels}",
    "fuse": "fuse bm25.run dense.run --method wsum --train-qrels {qrels} -o -",
    "trec_eval": "trec_eval -m map {qrels} bm25.run",
    "convert": "convert {qrels} - --kind qrels --to csv",
}


def fill(location: str) -> None:
    """The examples' qrels, one document of which somebody else grades differently, frozen as spring and then withdrawn."""
    assert cranfield("judge", "add", location, "qrels.txt").code == 0
    [(topic, grades)] = list(read_qrels(EXAMPLES / "qrels.txt").to_dict().items())[:1]
    document, grade = next(iter(grades.items()))
    log = open_log(location)
    log.add([Event(topic=topic, document=document, grade=grade + 1, assessor="bob", time="0001-01-01T00:00:00Z")])
    log.close()
    assert cranfield("judge", "freeze", location, "spring").code == 0


def withdraw(location: str) -> None:
    assert cranfield("judge", "withdraw", location, "--topic", "q1").code == 0


def answers(words: str, **named: str) -> tuple[int, str, str]:
    """What a command answers, the name of the judgments left out."""
    line = [word.format(**named) for word in words.split()]
    answer = cranfield(*line)
    hidden = [*named.values(), "work.db@spring", "labels.jsonl@spring"]
    data = answer.out
    for name in sorted(hidden, key=len, reverse=True):
        data = data.replace(name, "QRELS")
    return answer.code, data, answer.err


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A log whose labels were frozen and withdrawn; only to be read."""
    location = str(tmp_path_factory.mktemp("frozen") / "work.db")
    fill(location)
    withdraw(location)
    return location


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_reads_a_version_as_it_reads_the_file_it_was_frozen_from(verb: str, frozen: str) -> None:
    location = frozen
    code, data, _ = answers(VERBS[verb], qrels="qrels.txt")
    assert code in (0, 1)
    seen = answers(VERBS[verb], qrels=f"{location}@spring")
    told = [line for line in seen[2].splitlines() if line.startswith("note: 1 document has labels")]
    assert told == [NOTE + "latest"]
    if verb in ("convert", "pool simulate"):  # the order of the lines is the log's
        assert sorted(seen[1].split()) == sorted(data.split())
    elif verb not in ("check", "report"):  # which name the file, or its hash
        assert seen[:2] == (code, data)
    else:
        assert seen[0] == code


def test_a_version_on_every_kind_of_log(location: str) -> None:
    fill(location)
    plain = cranfield("eval", "qrels.txt", "bm25.run", "--format", "json")
    withdraw(location)
    frozen = cranfield("eval", f"{location}@spring", "bm25.run", "--format", "json")
    assert frozen.code == 0, frozen.err
    assert json.loads(frozen.out) == json.loads(plain.out)
    now = cranfield("eval", location, "bm25.run", "--format", "json")
    assert now.code == 0, now.err
    assert "contradict" not in now.err
    assert json.loads(now.out) != json.loads(plain.out)
    unknown = cranfield("eval", f"{location}@autumn", "bm25.run")
    assert (unknown.code, "there is no version 'autumn'; there are: 'spring'" in unknown.err) == (3, True)


def test_qrels_of_a_log_in_python(location: str) -> None:
    fill(location)
    frozen = judging.qrels(location, "spring")
    assert frozen.to_dict() == read_qrels(EXAMPLES / "qrels.txt").to_dict()
    assert frozen.remarks == [(NOTE + "latest").removeprefix("note: ")]
    withdraw(location)
    assert judging.qrels(location, "spring").to_dict() == frozen.to_dict()
    assert "q1" not in judging.qrels(location).topics
    if "://" not in location:
        with pytest.raises(DataError, match="there is no such log"):
            judging.qrels(location + "x")


def test_a_file_of_that_name_wins(tmp_path: Path) -> None:
    location = str(tmp_path / "work.db")
    fill(location)
    shutil.copy(EXAMPLES / "qrels.txt", tmp_path / "work.db@spring")
    answer = cranfield("eval", f"{location}@spring", "bm25.run")
    assert (answer.code, "contradict" in answer.err) == (0, False)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("qrels.txt", None),
        ("-", None),
        ("me@home/qrels.txt", None),
        ("nowhere@spring", None),
        ("work.db", Named("work.db")),
        ("postgresql://ann@db", Named("postgresql://ann@db")),
        ("postgresql://ann@db/work", Named("postgresql://ann@db/work")),
        ("postgresql://ann@db/work@a@b", Named("postgresql://ann@db/work@a", "b")),
        ("postgresql://ann:x@db/w?host=/tmp/p@spring", Named("postgresql://ann:x@db/w?host=/tmp/p", "spring")),
    ],
)
def test_what_a_word_means(word: str, meant: Named | None) -> None:
    assert named(word) == meant


def test_a_version_of_a_log_in_a_folder_with_an_at(tmp_path: Path) -> None:
    folder = tmp_path / "me@home"
    folder.mkdir()
    fill(str(folder / "work.db"))
    assert named(str(folder / "work.db@spring")) == Named(str(folder / "work.db"), "spring")
    assert cranfield("eval", folder / "work.db@spring", "bm25.run").code == 0


def test_a_password_is_masked_in_errors_pages_and_commands(postgres: str) -> None:
    from databases import new_database

    url = new_database(postgres).replace("://postgres:@", "://postgres:hush@")
    assert "hush" in url
    fill(url)
    for shape in ("json", "md", "html", "csv", "tex"):
        answer = cranfield("report", f"{url}@spring", "bm25.run", "dense.run", "--format", shape)
        assert (answer.code, "hush" in answer.both) == (0, False)
    for line in (
        ["eval", f"{url}@autumn", "bm25.run"],
        ["compare", f"{url}@spring", "bm25.run", "dense.run", "--format", "json"],
        ["stability", f"{url}@spring", "bm25.run", "dense.run", "--other-qrels", f"{url}@spring"],
        ["convert", url, "nowhere/out.txt"],
        ["judge", "freeze", url, "autumn"],
        ["judge", "versions", url, "--format", "json"],
    ):
        assert "hush" not in cranfield(*line).both


def test_labels_of_two_people_who_disagree_are_told_by_verbs_on_labels(location: str, tmp_path: Path) -> None:
    log = open_log(location)
    pool = [json.loads(line) for line in (EXAMPLES / "pool.jsonl").read_text().splitlines()]
    log.add(
        [
            Event(topic=each["topic"], document=each["document"], grade=n, assessor=who)
            for each in pool[:1]
            for n, who in enumerate(("ann", "bob"))
        ]
    )
    log.close()
    for line in (
        ["pool", "stop", location, "--pool", "pool.jsonl"],
        ["pool", "qrels", "pool.jsonl", location, "-o", tmp_path / "q.txt"],
        ["pool", "make", "bm25.run", "dense.run", "--depth", 5, "--judgments", location],
    ):
        answer = cranfield(*line)
        assert (answer.code, answer.err.count(NOTE + "latest")) == (0, 1), answer.err
    assert read_qrels(tmp_path / "q.txt")[pool[0]["topic"]] == {pool[0]["document"]: 1.0}


def test_labels_of_five_fields_are_read_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    lines = [Judgment("q1", "a", 2.0, "ann", "2026-01-02"), Judgment("q1", "a", 0.0, "bob", "2026-01-01")]
    path.write_text("".join(label.line() + "\n" for label in lines))
    said: list[str] = []
    with notes_to(said.append):
        assert labels_in(str(path)) == lines
        assert labels_in(str(path)) == lines
    assert said == [(NOTE + "latest").removeprefix("note: ")]
    assert named(str(path)) is None
    shutil.copy(EXAMPLES / "qrels.txt", tmp_path / "q.txt")
    assert len(labels_in(str(tmp_path / "q.txt"))) == 28


def test_events_behind_labels_of_five_fields_make_a_log(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(Judgment("q1", "a", 2.0, "ann").line() + "\n")
    log = open_log(path)
    event = Event(topic="q1", document="b", grade=1, assessor="ann")
    log.add([event])
    assert named(str(path)) == Named(str(path))
    assert judging.qrels(path).to_dict() == {"q1": {"a": 2.0, "b": 1.0}}
    log.add([Event(kind="withdrawal", refers=event.id, assessor="ann")])
    assert Inputs(qrels=str(path)).open_qrels().to_dict() == {"q1": {"a": 2.0}}


def test_a_models_labels_and_other_aspects_are_no_labels_of_a_pool(log: judging.Log) -> None:
    log.add(
        [
            Event(topic="q", document="a", grade=1, assessor="ann"),
            Event(topic="q", document="b", grade=1, assessor="llm", source="model"),
            Event(topic="q", document="c", grade=1, assessor="ann", aspect="credibility"),
            Event(topic="q", document="a", grade=0, kind="adjudication", assessor="eve", time="2001-01-01"),
        ]
    )
    assert [(each.document, each.grade) for each in log.labels()] == [("a", 1.0), ("a", 0.0)]


def test_files_that_are_no_logs_need_no_database() -> None:
    program = (
        "import sys; from cranfield.cli import cli; "
        "cli.main(['eval', 'qrels.txt', 'bm25.run'], standalone_mode=False); "
        "print([name for name in sys.modules if 'sqlalchemy' in name or name.startswith('cranfield.judging')])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=EXAMPLES, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_agreement_is_of_what_stood_in_a_version(tmp_path: Path) -> None:
    location = str(tmp_path / "work.db")
    log = open_log(location)
    for who, grades in {"ann": (0, 1, 1, 0), "bob": (0, 1, 0, 0)}.items():
        log.add([Event(topic="q", document=f"d{i}", grade=grade, assessor=who) for i, grade in enumerate(grades)])
    log.close()
    before = cranfield("judge", "agree", location)
    assert cranfield("judge", "freeze", location, "spring").code == 0
    log = open_log(location)
    log.add([Event(topic="q", document="d2", grade=1, assessor="bob")])
    log.close()
    then = cranfield("judge", "agree", f"{location}@spring")
    assert then.code == 0
    assert then.out.replace("@spring", "") == before.out != cranfield("judge", "agree", location).out
    (tmp_path / "carl.txt").write_text("q 0 d0 0\nq 0 d1 1\nq 0 d2 1\nq 0 d3 1\n")
    both = cranfield("judge", "agree", f"{location}@spring", str(tmp_path / "carl.txt"))
    assert both.code == 0
    assert "carl" in both.out


def test_a_strategy_that_goes_by_labels_that_contradict_says_so(tmp_path: Path) -> None:
    location = str(tmp_path / "work.db")
    log = open_log(location)
    log.add([Event(topic="q1", document="doc-003", grade=grade, assessor=who) for who, grade in (("a", 0), ("b", 1))])
    log.close()
    opened = cranfield("judge", "round", location, "--strategy", "move-to-front", "--run", "bm25.run", "--depth", "5")
    assert opened.code == 0, opened.err
    asked = cranfield("judge", "next", location, "--assessor", "ann")
    assert NOTE in asked.err

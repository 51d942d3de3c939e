"""The command line of pools: `cranfield pool` with its subcommands, and `cranfield reuse`."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import click
import pytest

from cranfield.cli.pool import command, depths_of
from cranfield.commands.pooling import Depths
from cranfield.formats.label_files import read_judgments
from cranfield.formats.pool_files import read_pool
from cranfield.judging import open_log
from cranfield.pooling.strategy import STRATEGIES
from shell import EXAMPLES, cranfield

RUNS = "bm25.run", "dense.run"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "pool.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The examples, with a pool, and labels of every document in the qrels."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    lines = []
    for line in (EXAMPLES / "qrels.txt").read_text().splitlines():
        topic, _, document, grade = line.split()
        lines.append(json.dumps({"topic": topic, "document": document, "grade": int(grade), "assessor": "ann"}))
    copy = tmp_path / "examples"
    (copy / "labels.jsonl").write_text("\n".join(lines) + "\n")
    assert cranfield("pool", *RUNS, "--depth", 10, "-o", "pool.jsonl", folder=copy).code == 0
    return copy


@pytest.mark.parametrize("name", command.commands)
def test_every_subcommand_says_what_it_does_and_its_example_runs(name: str, folder: Path) -> None:
    answer = cranfield("pool", name, "--help")
    assert answer.code == 0
    for option in command.commands[name].params:
        assert not isinstance(option, click.Option) or option.help
    examples = re.findall(r"^\s*\$ cranfield (.*)$", answer.out, re.M)
    assert len(examples) == (name != "strategies")
    for example in examples:
        answer = cranfield(*shlex.split(example), stdin=b"q\n", folder=folder)
        assert answer.code == 0, answer.err


def test_a_pool_is_made_without_naming_the_subcommand(folder: Path) -> None:
    answer = cranfield("pool", *RUNS, "--depth", 1, "-o", "made.jsonl", folder=folder)
    assert (answer.code, answer.out) == (0, "")
    assert "documents for 7 of 7 topics from 2 runs by depth; seed 0" in answer.err
    assert {item.rank for item in read_pool(folder / "made.jsonl")} == {1}
    straight = cranfield("pool", "--depth", 1, *RUNS, folder=folder)
    assert straight.out.encode() == (folder / "made.jsonl").read_bytes()


def test_one_run_may_go_deeper(folder: Path) -> None:
    answer = cranfield("pool", *RUNS, "--depth", 1, "--depth", "bm25.run=3", folder=folder)
    deeper = [json.loads(line) for line in answer.out.splitlines() if json.loads(line)["rank"] > 1]
    assert deeper
    assert all("bm25" in item["runs"] for item in deeper)
    assert depths_of(("7", "a=b.run=3")) == Depths(7, {"a=b.run": 3})


def test_labels_bring_the_next_batch(folder: Path) -> None:
    options = "--strategy", "maxmean", "--next", 2, "--judgments", "labels.jsonl"
    answer = cranfield("pool", *RUNS, *options, folder=folder)
    assert answer.code == 0
    assert "labels so far: 28" in answer.err
    judged = {(label.topic, label.document) for label in read_judgments(folder / "labels.jsonl")}
    for line in answer.out.splitlines():
        item = json.loads(line)
        assert (item["topic"], item["document"]) not in judged


def test_judging_keeps_each_label_and_goes_on_where_it_stopped(folder: Path) -> None:
    asked = "pool", "judge", *RUNS, "--strategy", "move-to-front", "--judgments", "mine.jsonl", "--assessor", "eve"
    first = cranfield(*asked, stdin=b"2\nw\nnan\n0\nq\n", folder=folder)
    assert first.code == 0
    labels = open_log(folder / "mine.jsonl").labels()
    assert [(label.grade, label.assessor) for label in labels] == [(2.0, "eve"), (0.0, "eve")]
    assert all(label.time for label in labels)
    assert "expected a number, s to skip, q to stop or ? for help, found 'w'" in first.err
    second = cranfield(*asked, stdin=b"s\n1\n", folder=folder)
    assert second.code == 0
    assert "2 labels so far, 1 relevant" in second.err
    assert len({(label.topic, label.document) for label in open_log(folder / "mine.jsonl").labels()}) == 3


def test_statistics_of_empty_runs_say_so(tmp_path: Path) -> None:
    (tmp_path / "none.run").write_text("")
    answer = cranfield("pool", "statistics", "none.run", folder=tmp_path)
    assert (answer.code, answer.out) == (0, "0 documents: no run returns any\n")
    assert "the run is empty" in answer.err


def test_statistics_are_printed_as_text_and_json() -> None:
    text, plain = cranfield("pool", "statistics", *RUNS), cranfield("pool", "statistics", *RUNS, "--format", "json")
    documents = json.loads(plain.out)["documents"]
    assert f"{documents} documents for 7 topics" in text.out


def test_simulation_is_printed_and_drawn(folder: Path) -> None:
    asked = "pool", "simulate", "qrels.txt", *RUNS, "--strategy", "depth", "--strategy", "hedge"
    areas = {
        each["strategy"]: each["area"] for each in json.loads(cranfield(*asked, "--format", "json").out)["replays"]
    }
    assert set(areas) == {"depth", "hedge"}
    assert f"{areas['hedge']:.3f}" in cranfield(*asked).out
    assert cranfield(*asked, "--format", "csv").out.startswith("strategy,area,wss,judgments,effort,found,ncg,tau AP")
    answer = cranfield(*asked, "-o", "found.svg", folder=folder)
    assert answer.code == 0
    assert "relevant documents found" in (folder / "found.svg").read_text()


def test_estimates_are_printed() -> None:
    answer = cranfield("pool", "simulate", "qrels.txt", *RUNS, "--sampling", "0.5,1", "--draws", 2)
    assert answer.code == 0
    assert [line.split()[0] for line in answer.out.splitlines()[1:]] == ["infAP", "xinfAP", "statAP"] * 2


def test_reuse_reads_a_stranger_and_writes_what_to_judge(folder: Path) -> None:
    cranfield("fuse", *RUNS, "-o", "new.run", folder=folder)
    asked = "reuse", "qrels.txt", *RUNS, "--depth", 10
    assert "eus" in cranfield(*asked).out
    answer = cranfield(*asked, "--new", "new.run", "--holes", "holes.jsonl", "--format", "json", folder=folder)
    assert answer.code == 0
    assert "corrected" in json.loads(answer.out)["new"][0]
    assert "wrote holes.jsonl (1 kB): 1 documents to judge" in answer.err
    assert (folder / "holes.jsonl").exists()
    assert cranfield(*asked, "--format", "csv").out.startswith("run,team,score,without,")


def test_a_sample_travels_from_pool_to_measure(folder: Path) -> None:
    cranfield("pool", *RUNS, "--strategy", "stratified(strata=2:1/10:0.5)", "-o", "sampled.jsonl", folder=folder)
    answer = cranfield(
        "pool", "qrels", "sampled.jsonl", "labels.jsonl", "-o", "new.txt", "--to", "strata", folder=folder
    )
    assert answer.code == 0, answer.err
    scores = cranfield("eval", "new.txt", *RUNS, "-m", "xinfAP", "--format", "json", folder=folder)
    assert scores.code == 0, scores.err
    stop = cranfield("pool", "stop", "labels.jsonl", "--pool", "sampled.jsonl", "--format", "json", folder=folder)
    assert {each["topic"] for each in json.loads(stop.out)} == {f"q{i}" for i in range(1, 8)}


@pytest.mark.parametrize(
    "arguments",
    [
        ["pool"],
        ["pool", "--depth", "10"],
        ["pool", "bm25.run", "--depth", "0"],
        ["pool", "bm25.run", "--depth", "x"],
        ["pool", "bm25.run", "--priority", "bm25"],
        ["pool", "bm25.run", "--strategy", "nonsense"],
        ["pool", "bm25.run", "--strategy", "maxmean"],
        ["pool", "bm25.run", "--order", "rank"],
        ["pool", "simulate", "qrels.txt", "bm25.run", "--sampling", "x"],
        ["pool", "simulate", "qrels.txt", "bm25.run", "--sampling", "0.1", "--format", "csv"],
        ["pool", "simulate", "qrels.txt", "bm25.run", "--strategy", "cal"],
        ["reuse", "qrels.txt", *RUNS, "--holes", "x.jsonl"],
        ["reuse", "qrels.txt", *RUNS, "--team", "x"],
    ],
)
def test_wrong_usage_is_two(arguments: list[str]) -> None:
    answer = cranfield(*arguments)
    assert (answer.code, answer.out if len(arguments) > 1 else "") == (2, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["pool", "missing.run"],
        ["pool", "qrels.txt"],
        ["pool", "bm25.run", "--depth", "other=3"],
        ["pool", "bm25.run", "--judgments", "pool.jsonl"],
        ["pool", "stop", "qrels.txt", "--pool", "qrels.txt"],
        ["pool", "qrels", "qrels.txt", "qrels.txt", "-o", "none.txt"],
        ["reuse", "qrels.txt", "bm25.run"],
    ],
)
def test_bad_data_is_three(arguments: list[str], folder: Path) -> None:
    answer = cranfield(*arguments, folder=folder)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err
    assert not (folder / "none.txt").exists()


def test_the_page_names_every_strategy() -> None:
    rows = re.findall(r"^\| `([\w-]+)", PAGE.read_text(encoding="utf-8"), re.M)
    assert set(STRATEGIES) <= set(rows)

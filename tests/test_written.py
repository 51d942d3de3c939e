"""Every command that writes a file says so, in one line on standard error: where, and how large it is."""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING

import click
import pytest

from cranfield.base.notifications import written_files
from cranfield.cli import COMMANDS, cli
from cranfield.formats.streams import all_or_none, write_bytes
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUNS = f"{EXAMPLES}/bm25.run {EXAMPLES}/dense.run"
QRELS = f"{EXAMPLES}/qrels.txt"
WRITES = {  # a command that writes, and the files that it then names
    f"eval {QRELS} {RUNS} -o scores.csv --format csv": ["scores.csv"],
    f"compare {QRELS} {RUNS} -o compared.json --format json": ["compared.json"],
    f"leaderboard {QRELS} {RUNS} -o board.md --format markdown": ["board.md"],
    f"gate {QRELS} {RUNS} --junit gate.xml --json gate.json -o gate.txt": ["gate.xml", "gate.json", "gate.txt"],
    f"report {QRELS} {RUNS} -o report.html": ["report.html"],
    f"curve {QRELS} {RUNS} -o curve.csv --format csv": ["curve.csv"],
    f"curve {QRELS} {RUNS} -o curve.svg": ["curve.svg"],
    f"explain nDCG@10 {QRELS} {EXAMPLES}/bm25.run --topic q1 -o why.txt": ["why.txt"],
    f"convert {QRELS} judged.jsonl": ["judged.jsonl"],
    f"convert {EXAMPLES}/bm25.run bm25.run.gz": ["bm25.run.gz"],
    f"fuse {RUNS} -o fused.run": ["fused.run"],
    f"pool {RUNS} --depth 3 -o pool.jsonl": ["pool.jsonl"],
    f"pool statistics {RUNS} -o sizes.json --format json": ["sizes.json"],
    "pool strategies -o strategies.txt": ["strategies.txt"],
    f"pool simulate {QRELS} {RUNS} --depth 5 --strategy depth -o simulated.csv --format csv": ["simulated.csv"],
    f"pool thin {QRELS} {RUNS} --holes holes.jsonl -o thin.txt": ["holes.jsonl", "thin.txt"],
    f"pool qrels given.jsonl {QRELS} -o judged.txt": ["judged.txt"],
    f"pool stop {QRELS} --pool given.jsonl -o stop.txt": ["stop.txt"],
    f"reuse {QRELS} {RUNS} --new {EXAMPLES}/dense.run --holes holes.jsonl": ["holes.jsonl"],
    f"stability {QRELS} {RUNS} -o stability.txt": ["stability.txt"],
    f"correlate {RUNS} -o alike.txt": ["alike.txt"],
    f"reproduce {QRELS} {RUNS} {RUNS} -o again.txt": ["again.txt"],
    "design --difference 0.05 --sd 0.2 --test t -o plan.txt": ["plan.txt"],
    f"check {RUNS} -o findings.json --format json": ["findings.json"],
    "measures -o measures.json --format json": ["measures.json"],
    "tests -o tests.json --format json": ["tests.json"],
    "corrections -o corrections.json --format json": ["corrections.json"],
    "presets -o presets.json --format json": ["presets.json"],
    "formats -o formats.json --format json": ["formats.json"],
    "plugins -o plugins.json --format json": ["plugins.json"],
    "collection show allotment -o shown.json --format json": ["shown.json"],
    "collection stats allotment -o stats.json --format json": ["stats.json"],
    "collection check allotment -o checked.json --format json": ["checked.json"],
    "collection diff allotment allotment -o diff.json --format json": ["diff.json"],
    "collection list -o list.json --format json": ["list.json"],
    "run allotment --system sqlite --fields title -o new.run -k 5": ["new.run", "new.run.stats.json"],
    "import tables shop": ["shop"],
    f"judge aggregate {EXAMPLES}/labels.jsonl -o majority.txt": ["majority.txt"],
    f"judge export {EXAMPLES}/labels.jsonl -o events.jsonl": ["events.jsonl"],
    f"judge agree {EXAMPLES}/labels.jsonl {EXAMPLES}/bob.csv -o agree.txt": ["agree.txt"],
    f"judge estimate sampled.db {RUNS} -m P@5 -o estimated.txt": ["estimated.txt"],
    f"judge calibrate sampled.db {RUNS} -m AP -o calibrated.txt": ["calibrated.txt"],
    f"judge blame {EXAMPLES}/labels.jsonl q1 doc-003 -o blame.txt": ["blame.txt"],
    "judge diff work.db spring -o changes.txt": ["changes.txt"],
    f"judge status {EXAMPLES}/labels.jsonl -o status.txt": ["status.txt"],
    f"judge versions {EXAMPLES}/labels.jsonl -o versions.txt": ["versions.txt"],
    f"judge verify {EXAMPLES}/labels.jsonl -o verified.txt": ["verified.txt"],
    f"judge models {EXAMPLES}/asked.jsonl -o models.txt": ["models.txt"],
    "judge ask new.db --pool asked.jsonl --collection imported --endpoint http://localhost:9 --model m --prompt graded "
    "--dry-run -o asked.txt": ["asked.txt"],
    f"online interleave {RUNS} --topic q1 -o mixed.json --format json": ["mixed.json"],
    "online design --proportion 0.3 --effect 0.02 -o plan.json --format json": ["plan.json"],
    "online methods -o methods.json --format json": ["methods.json"],
    f"online analyze {EXAMPLES}/online/shop-log {EXAMPLES}/online/shop.toml --format html -o verdict.html": [
        "verdict.html"
    ],
    f"topics sample {EXAMPLES}/traffic/march.csv -n 5 -o topics.tsv": ["topics.tsv"],
    f"topics coverage {EXAMPLES}/traffic/topics.tsv {EXAMPLES}/traffic/june.csv -o cover.json --format json": [
        "cover.json"
    ],
    "topics designs -o designs.json --format json": ["designs.json"],
    f"online clicks {EXAMPLES}/online/clicks-log -o clicks.json --format json": ["clicks.json"],
    "online click-models -o models.json --format json": ["models.json"],
    f"online click-summary {EXAMPLES}/online/clicks-log -o summary.csv --format csv": ["summary.csv"],
    f"online qrels {EXAMPLES}/online/clicks-log -o click-qrels.csv": ["click-qrels.csv"],
    f"online preferences {EXAMPLES}/online/clicks-log --topics-file {EXAMPLES}/topics.tsv -o clicks.prefs": [
        "clicks.prefs"
    ],
    f"online position-bias {EXAMPLES}/online/clicks-log -o bias.csv": ["bias.csv"],
    "online bias-methods -o methods-of-bias.json --format json": ["methods-of-bias.json"],
    f"online counterfactual {EXAMPLES}/online/bandit.csv uniform -o uniform.json --format json": ["uniform.json"],
    "online estimators -o estimators.json --format json": ["estimators.json"],
    "online metrics -o metrics.json --format json": ["metrics.json"],
    f"online assign {EXAMPLES}/online/plans alice -o who.txt": ["who.txt"],
    f"online ingest events {EXAMPLES}/online/events.jsonl -o added.json --format json": ["added.json"],
    "online export events-log -o events.parquet": ["events.parquet"],
    "online erase events-log u1 -o erased.txt": ["erased.txt"],
    "online retain events-log --days 1 -o retained.txt": ["retained.txt"],
    "online users -o users.json --format json": ["users.json"],
    f"online bridge {QRELS} {RUNS} --searches 2 -o agreement.csv --format csv": ["agreement.csv"],
    f"online study plan {EXAMPLES}/online/study.toml -o orders.csv --format csv": ["orders.csv"],
    f"online study forms {EXAMPLES}/online/study.toml --participants 1 -o forms": [
        "forms/P01.html",
        "forms/answers.csv",
    ],
    f"online study analyze {EXAMPLES}/online/study.toml {EXAMPLES}/online/answers.csv -o said.txt": ["said.txt"],
    "collection stamp imported": ["imported/collection.toml"],
    "judge guidelines imported -o guidelines.txt": ["guidelines.txt"],
    "backup . -o monday.tar.gz": ["monday.tar.gz"],
}
SILENT = {"trec_eval", "names"}  # the first keeps to its original and writes nothing but its answer
OTHERS = {"pool judge", "online simulate"}  # which say how many labels or events there are, and where


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    """A folder of its own with all that the commands read."""
    return shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read, made once."""
    tmp_path = tmp_path_factory.mktemp("prepared")
    made = cranfield("pool", *shlex.split(RUNS), "--depth", "3", "-o", tmp_path / "given.jsonl")
    assert made.code == 0
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "documents.jsonl").write_text('{"id": "d1", "title": "a", "text": "b"}\n')
    (tables / "topics.jsonl").write_text('{"id": "q1", "title": "a"}\n')
    (tables / "qrels.txt").write_text("q1 0 d1 1\n")
    assert cranfield("import", tables, tmp_path / "imported").code == 0
    (tmp_path / "asked.jsonl").write_text('{"topic": "q1", "document": "d1"}\n')
    assert cranfield("judge", "add", tmp_path / "work.db", EXAMPLES / "labels.jsonl").code == 0
    assert cranfield("judge", "freeze", tmp_path / "work.db", "spring").code == 0
    sampled = tmp_path / "sampled.db"
    assert cranfield("judge", "add", sampled, QRELS, "--assessor", "ann").code == 0
    assert cranfield("judge", "add", sampled, EXAMPLES / "bob.csv", "--source", "model").code == 0
    assert cranfield("judge", "round", sampled, "--pool", EXAMPLES / "pool.jsonl", "--sample", 20).code == 0
    assert cranfield("online", "ingest", tmp_path / "events-log", EXAMPLES / "online/events.jsonl").code == 0
    return tmp_path


def writers(command: click.Command, name: str = "") -> Iterator[str]:
    """The commands that have an option -o."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from writers(found, f"{name} {each}".strip())
    elif any("-o" in parameter.opts for parameter in command.params):
        yield name


def test_every_command_that_can_write_is_tried_here():
    tried = {words.removeprefix("pool make") for words in WRITES}
    for name in writers(cli):
        typed = name.replace("pool make", "pool")
        assert name in SILENT | OTHERS or any(f"{words} ".startswith(f"{typed} ") for words in tried), name


@pytest.mark.parametrize("typed", WRITES, ids=lambda typed: " ".join(typed.split()[:2]).replace(str(EXAMPLES), ""))
def test_a_command_that_writes_says_where_in_one_line(typed, folder):
    if "curve.svg" in typed:
        pytest.importorskip("vl_convert", reason="charts need vl-convert")
    answer = cranfield(*shlex.split(typed), folder=folder)
    assert answer.code in (0, 1), answer.err
    [line] = [line for line in answer.err.splitlines() if line.startswith("wrote ")]
    for name in WRITES[typed]:
        assert (folder / name).exists()
        assert f"{name} (" in line
    assert line.count(" kB)") == len(WRITES[typed])
    assert answer.err.splitlines()[-1] == line


def test_what_goes_to_standard_output_or_a_device_is_not_told():
    for where in ([], ["-o", "-"], ["-o", "/dev/null"]):
        assert "wrote" not in cranfield("eval", QRELS, *shlex.split(RUNS), *where).err


def test_a_command_that_stops_says_nothing_of_files(tmp_path):
    answer = cranfield("eval", QRELS, "nothing.run", "-o", "scores.csv", folder=tmp_path)
    assert answer.code == 3
    assert "wrote" not in answer.err
    assert not (tmp_path / "scores.csv").exists()


def test_every_command_is_known_to_this_page():
    assert set(COMMANDS) >= {words.split()[0] for words in WRITES}


def test_the_library_keeps_a_list_only_while_somebody_asks(tmp_path):
    path = str(tmp_path / "x.txt")
    with written_files() as files:
        write_bytes(path, [b"x"])
        assert list(files) == [path]
    write_bytes(path, [b"y"])
    assert list(files) == [path]


@pytest.mark.parametrize("output", ["/dev/full", "no/such/folder/out"])
@pytest.mark.parametrize(
    "command",
    [
        f"reuse {QRELS} {RUNS} --depth 3 --new {EXAMPLES}/tied.run --holes holes.jsonl -o {{}}",
        f"pool thin {QRELS} {RUNS} --holes holes.jsonl -o {{}}",
        f"judge agree {EXAMPLES}/labels.jsonl {EXAMPLES}/bob.csv --disagreements third.jsonl -o {{}}",
    ],
)
def test_a_file_beside_an_answer_that_cannot_be_given_is_not_written(command, output, tmp_path):
    answer = cranfield(*shlex.split(command.format(output)), folder=tmp_path)
    assert answer.code in (2, 3), answer.both
    assert list(tmp_path.iterdir()) == []


def test_disagreements_are_not_written_where_a_run_cannot_be_read(tmp_path):
    words = f"judge agree {EXAMPLES}/labels.jsonl {EXAMPLES}/bob.csv --disagreements third.jsonl --run none.run"
    assert cranfield(*shlex.split(words), folder=tmp_path).code == 3
    assert list(tmp_path.iterdir()) == []


def _write_and_fail(folder: Path) -> None:
    with all_or_none():
        write_bytes(folder / "one", [b"1"])
        write_bytes(folder / "two.gz", [b"2"])
        raise OSError("later")


def test_files_appear_together_or_not_at_all(tmp_path):
    with pytest.raises(OSError, match="later"):
        _write_and_fail(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with all_or_none():
        write_bytes(tmp_path / "one", [b"1"])
        assert not (tmp_path / "one").exists()
    assert (tmp_path / "one").read_bytes() == b"1"

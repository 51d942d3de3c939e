"""A crash is not a verdict: what nobody foresaw ends in one sentence, a file with the details, and exit code 70."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING
from unittest.mock import patch
from xml.etree import ElementTree

import click
import pytest

from cranfield.cli import cli, options
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from pathlib import Path

CRASH = 70
SECRET = "postgresql://ann:secret@db/work"
VERB = "cranfield.commands.listings.measures"


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of this test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_an_unforeseen_exception_is_one_sentence_and_a_private_file_without_passwords(reports, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["cranfield", "judge", "status", SECRET])
    with patch(VERB, side_effect=KeyError(SECRET)):
        answer = cranfield("measures", crashes=True)
    (path,) = reports.iterdir()
    said = (
        "cranfield: a mistake in cranfield, not a verdict (KeyError: 'postgresql://ann:***@db/work'); details are in "
    )
    assert (answer.code, answer.out, answer.err) == (CRASH, "", f"{said}{path}\n")
    text = path.read_text()
    assert "Traceback" in text
    assert "command: cranfield judge status postgresql://ann:***@db/work" in text
    assert re.search(r"^cranfield: \d", text)
    assert "secret" not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_developer_sees_the_traceback_on_the_screen(reports, monkeypatch):
    monkeypatch.setenv("CRANFIELD_TRACEBACK", "1")
    with patch(VERB, side_effect=KeyError("lost")):
        answer = cranfield("measures", crashes=True)
    assert (answer.code, "Traceback" in answer.err) == (CRASH, True)


def test_a_crash_is_told_where_there_is_no_temporary_folder(monkeypatch):
    with patch(VERB, side_effect=KeyError("lost")), patch("tempfile.mkstemp", side_effect=FileNotFoundError(2, "no")):
        answer = cranfield("measures", crashes=True)
    assert answer.code == CRASH
    assert answer.err.endswith("CRANFIELD_TRACEBACK=1 prints the details\n")


def test_the_tests_own_shell_raises_what_crashed(reports):
    with patch(VERB, side_effect=KeyError("lost")), pytest.raises(KeyError, match="lost"):
        cranfield("measures")


@pytest.mark.parametrize("error", [EOFError("early"), AssertionError("ours"), RecursionError("deep"), StopIteration()])
def test_what_click_or_python_would_end_with_1_ends_with_70(reports, error):
    with patch(VERB, side_effect=error):
        assert cranfield("measures", crashes=True).code == CRASH


def test_trec_evals_command_crashes_the_same_way(reports):
    with patch("cranfield.compat.trec_eval.main", side_effect=KeyError("lost")):
        assert cranfield("trec_eval", "qrels.txt", "bm25.run", crashes=True).code == CRASH


CRASHING = """
    import sys, threading
    import cranfield.cli, cranfield.commands.listings
    from concurrent.futures import ThreadPoolExecutor

    def lose():
        raise KeyError("lost")

    def in_pool(*_):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lose).result()

    def beside(*_):
        thread = threading.Thread(target=lose)
        thread.start()
        thread.join()
        lose()

    cranfield.commands.listings.measures = {verb}
    sys.argv = ["cranfield", "measures"]
    cranfield.cli.program()
"""


@pytest.mark.parametrize(("verb", "sentences"), [("in_pool", 1), ("beside", 2)])
def test_a_crash_in_a_pool_or_a_thread_prints_no_traceback(reports, verb, sentences):
    program = textwrap.dedent(CRASHING).format(verb=verb)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (CRASH, "")
    assert [line.partition(" (")[0] for line in ran.stderr.splitlines()] == [
        "cranfield: a mistake in cranfield, not a verdict"
    ] * sentences
    assert len(list(reports.iterdir())) == sentences


# outputs


def every_command() -> list[tuple[str, click.Command]]:
    """Each command and subcommand with its words."""
    commands, waiting = [], [("", cli)]
    while waiting:
        words, command = waiting.pop(0)
        if isinstance(command, click.Group):
            context = click.Context(command)
            names = command.list_commands(context)
            waiting += [(f"{words} {name}".strip(), command.get_command(context, name)) for name in names]
        else:
            commands.append((words, command))
    return commands


def held(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_output_option_is_checked_before_the_command_runs():
    unchecked = [
        f"{words} {option.opts}"
        for words, command in every_command()
        for option in command.params
        if "-o" in option.opts and option.type not in (options.NEW_FILE, options.NEW_FOLDER)
    ]
    assert unchecked == []


OUTPUTS = {
    "run allotment --system sqlite -o folder": "folder: cannot be written: is a directory",
    "online ingest log online/events.jsonl -o none/out.txt": "none/out.txt: cannot be written: no such file or directory",
    "eval qrels.txt bm25.run -o qrels.txt/scores": "qrels.txt/scores: cannot be written: not a directory",
    f"eval qrels.txt bm25.run -o {'x' * 240}": f"{'x' * 240}: cannot be written: file name too long",
    "gate none.txt bm25.run dense.run --junit folder": "folder: cannot be written: is a directory",
    "convert none.txt folder": "folder: cannot be written: is a directory",
    "import none qrels.txt/bees": "qrels.txt/bees: cannot be written: not a directory",
    "online simulate none.txt bm25.run -o qrels.txt": "qrels.txt: cannot be written: not a directory",
    "online simulate none.txt bm25.run -o log --plan folder/none/plan": "folder/none/plan: cannot be written: no such",
    "online study forms none.toml -o qrels.txt": "qrels.txt: cannot be written: not a directory",
    "judge agree none.txt none.txt --disagreements folder": "folder: cannot be written: is a directory",
}


@pytest.mark.parametrize("line", OUTPUTS)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(line, tmp_path):
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    (tmp_path / "folder").mkdir()
    before = held(tmp_path)
    answer = cranfield(*line.split(), folder=tmp_path)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith(f"cranfield: {OUTPUTS[line]}")
    assert held(tmp_path) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_written_is_refused_before_any_work(tmp_path):
    tmp_path.chmod(0o500)
    answer = cranfield("eval", "none.txt", "none.run", "-o", tmp_path / "scores.txt")
    assert (answer.code, answer.err) == (
        3,
        f"cranfield: {tmp_path}/scores.txt: cannot be written: permission denied\n",
    )


def test_access_is_asked_for_before_any_work(tmp_path):
    with patch("os.access", return_value=False):
        answer = cranfield("eval", "none.txt", "none.run", "-o", tmp_path / "scores.txt")
    assert answer.err == f"cranfield: {tmp_path}/scores.txt: cannot be written: permission denied\n"


# JUnit


@pytest.mark.parametrize("where", ["--junit", "-o", "stdout"])
def test_a_gate_that_cannot_read_its_data_says_why_in_junit(where, tmp_path):
    path = tmp_path / "gate.xml"
    how = {"--junit": ["--junit", path], "-o": ["--format", "junit", "-o", path], "stdout": ["--format", "junit"]}
    answer = cranfield("gate", "qrels.txt", "bm25.run", "none.run", *how[where])
    text = answer.out if where == "stdout" else path.read_text()
    suite = ElementTree.fromstring(text)
    assert (answer.code, suite.get("tests"), suite.get("errors"), suite.get("failures")) == (3, "1", "1", "0")
    assert suite.find("testsuite/testcase/error").get("message") == "none.run: no such file or directory"
    assert "none.run: no such file or directory" in answer.err


def test_a_gate_that_crashes_says_so_in_junit(reports, tmp_path):
    with patch("cranfield.commands.comparison.gate", side_effect=KeyError("lost")):
        answer = cranfield("gate", "qrels.txt", "bm25.run", "dense.run", "--junit", tmp_path / "g.xml", crashes=True)
    error = ElementTree.parse(tmp_path / "g.xml").find("testsuite/testcase/error")
    assert (answer.code, error.get("message")) == (CRASH, "a mistake in cranfield (KeyError)")


def test_a_wrong_command_line_writes_no_junit(tmp_path):
    answer = cranfield("gate", "qrels.txt", "bm25.run", "dense.run", "-m", "none", "--junit", tmp_path / "gate.xml")
    assert (answer.code, list(tmp_path.iterdir())) == (2, [])


# libraries


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of its own with the examples in it."""
    shutil.copytree(EXAMPLES, tmp_path / "work")
    return tmp_path / "work"


def cut(raw: bytes) -> bytes:
    return raw[: len(raw) // 2]


def without_schema(raw: bytes) -> bytes:
    """The bytes of a Parquet file whose end, which says what is in it, is noise."""
    return raw[:-60] + b"\xff" * 52 + raw[-8:]


@pytest.mark.parametrize("damage", [cut, without_schema, lambda raw: b""])
@pytest.mark.parametrize(
    "line",
    [
        "analyze online/shop-log online/shop.toml --gate",
        "export online/shop-log -o out.jsonl",
        "erase online/shop-log nobody",
    ],
)
def test_a_damaged_parquet_file_of_a_log_is_named_and_is_no_verdict(damage, line, folder):
    part = folder / "online" / "shop-log" / "day=2025-03-03" / "1.parquet"
    part.write_bytes(damage(part.read_bytes()))
    (folder / "online" / "shop-log" / "manifest.json").unlink()  # it would notice the damage first
    answer = cranfield("online", *line.split(), folder=folder)
    assert (answer.code, answer.out) == (3, "")
    assert "online/shop-log/day=2025-03-03/1.parquet: corrupt Parquet file" in answer.err
    assert not (folder / "out.jsonl").exists()


def names_that_are_no_text(raw: bytes) -> bytes:
    return raw.replace(b"ann", b"\xff\xff\xfe")


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        lambda raw: raw.replace(b"CREATE TABLE", b"\xff\xfeEATE TABLE"),
        names_that_are_no_text,
    ],
)
@pytest.mark.parametrize(
    "line",
    [
        "gate work.db@v1 bm25.run dense.run",
        "judge status work.db",
        "judge agree work.db",
        "eval work.db bm25.run",
    ],
)
def test_a_damaged_database_is_named_and_is_no_verdict(damage, line, folder):
    if damage is names_that_are_no_text and line == "judge status work.db":
        pytest.skip("without a round it counts labels and reads no name")
    cranfield("judge", "add", "work.db", "qrels.txt", "--assessor", "ann", folder=folder)
    cranfield("judge", "freeze", "work.db", "v1", folder=folder)
    path = folder / "work.db"
    path.write_bytes(damage(path.read_bytes()))
    answer = cranfield(*line.split(), folder=folder)
    assert (answer.code, answer.out) == (3, "")
    assert re.match(r"cranfield: work\.db(@v1)?: is damaged", answer.err), answer.err


def test_a_system_without_room_for_its_index_says_so(folder):
    with patch("sqlite3.connect", side_effect=sqlite3.OperationalError("database or disk is full")):
        answer = cranfield("run", "allotment", "--system", "sqlite", "-o", "out.run", folder=folder)
    assert answer.code == 3
    assert "fts5.db: cannot be written: the disk is full" in answer.err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied", "a.run"), "a.run: Permission denied"),
        (OSError(28, "No space left on device"), "standard output: No space left on device"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
    ],
)
def test_an_error_of_the_system_is_a_sentence(error, said):
    with patch(VERB, side_effect=error):
        answer = cranfield("measures")
    assert (answer.code, answer.err) == (3, f"cranfield: {said}\n")


# Ctrl-C


def interrupted(*_arguments, **_options):
    raise KeyboardInterrupt


def interrupted_documents(watched):
    yield next(iter(watched.read.documents()))
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("line", "name", "stand_in"),
    [
        ("import smart bees", "cranfield.formats.importers.collection_import._Watched.__iter__", interrupted_documents),
        ("convert bm25.run out.json", "cranfield.formats.files.json_text.JsonFormat.write", interrupted),
        ("eval qrels.txt bm25.run -o scores.txt", "cranfield.evaluation.scores.Scores.to_text", interrupted),
        ("run allotment --system sqlite -o out.run", "cranfield.retrieval.engines.sqlite.Sqlite.index", interrupted),
        ("pool bm25.run -o pool.jsonl", "cranfield.commands.pooling.pool", interrupted),
    ],
)
def test_ctrl_c_prints_no_traceback_and_leaves_nothing_half_written(line, name, stand_in, folder):
    before = held(folder)
    with patch(name, stand_in):
        answer = cranfield(*line.split(), folder=folder)
    assert (answer.code, answer.out, answer.err) == (130, "", "")
    assert held(folder) == before


LOADING = """
    import os, runpy, signal, sys

    class Interrupting:
        def find_spec(self, name, path=None, target=None):
            if name == "{module}":
                os.kill(os.getpid(), signal.SIGINT)

    sys.meta_path.insert(0, Interrupting())
    sys.argv = ["cranfield", "measures"]
    runpy.run_module("cranfield", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["click", "cranfield.cli.measures", "numpy"])
def test_ctrl_c_while_modules_are_loaded_prints_no_traceback(module):
    program = textwrap.dedent(LOADING).format(module=module)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")

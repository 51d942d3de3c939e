"""What cannot be used is refused: bad_inputs.toml lists it, each with its command or call, exit code and words.

A command runs without a process (tests/shell.py), so that an exception which it does not catch fails the test; where
its streams are closed it needs a process. The files of the folder are the same afterwards, and nobody wrote to them.
"""

from __future__ import annotations

import importlib
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import cranfield
import odd_files
from cranfield.base import errors
from cranfield.cli import COMMANDS
from cranfield.formats import FORMATS
from cranfield.formats.streams import own_mark, write_bytes
from hostile import commands, slots
from shell import EXAMPLES
from shell import cranfield as run_command

if TYPE_CHECKING:
    from collections.abc import Iterator

LISTED = tomllib.loads(Path(__file__).with_name("bad_inputs.toml").read_text(encoding="utf-8"))
FILES: dict[str, Any] = LISTED.pop("files")
LIBRARY: dict[str, dict[str, Any]] = LISTED.pop("library")
CLOSED: dict[str, dict[str, Any]] = LISTED.pop("closed")
COMMAND = [
    pytest.param(command, entry, id=f"{command}: {name}")
    for command, entries in LISTED.items()
    for name, entry in entries.items()
]
MODULES = {Path(file).stem for file in FILES}
LONG = {
    "{digits}": "9" * 400,
    "{thousands}": "9" * 5000,
    "{gmeans}": "gmean(" * 1200 + "AP" + ")" * 1200,
    "{risks}": "URisk(of=" * 1200 + "AP" + ")" * 1200,
    "{long}": "P" * 100_000,
    "{null}": "a\0b",
}


def words_of(typed: str) -> list[str]:
    """The words of a command line, with what is too long to be written there filled in."""
    words = shlex.split(typed)
    for short, long in LONG.items():
        words = [word.replace(short, long) for word in words]
    return words


def fill(folder: Path, entry: dict[str, Any], text: str) -> None:
    """Put the examples into the folder, and the files that an entry names or whose names stand in the text."""
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    put_files(folder, entry, text)


def put_files(folder: Path, entry: dict[str, Any], text: str) -> None:
    """Make the files that an entry names or whose names stand in the text."""
    for name, content in FILES.items():
        if name in entry.get("needs", ()) or name.split("/")[0] in text:
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            raw = content.encode() if isinstance(content, str) else getattr(odd_files, content["make"])()
            path.write_bytes(raw)


def held(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def clean_imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a command import modules of its folder, and forget them."""
    importlib.invalidate_caches()
    known = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for name in set(sys.modules) - known:
        if name.partition(".")[0] in MODULES:
            del sys.modules[name]


def listed(folder: Path | str) -> dict[str, tuple[int, int, int]]:
    """Each file with its number, size and the time of its last change."""
    facts = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                facts |= listed(entry.path)
            else:
                each = entry.stat(follow_symlinks=False)
                facts[entry.path] = (each.st_ino, each.st_size, each.st_mtime_ns)
    return facts


class SharedFolder:
    """A copy of examples/ for all commands, as each of them must leave the folder as it was."""

    def __init__(self, path: Path) -> None:
        self.path, self.own = path, {*os.listdir(EXAMPLES)}
        self.make()

    def make(self) -> None:
        shutil.copytree(EXAMPLES, self.path)
        self.files = listed(self.path)

    def clean(self) -> None:
        """Remove the files of a test; if something else was changed, make the folder anew."""
        for name in {*os.listdir(self.path)} - self.own:
            path = self.path / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if listed(self.path) != self.files:
            shutil.rmtree(self.path)
            self.make()


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> SharedFolder:
    return SharedFolder(tmp_path_factory.mktemp("shared") / "examples")


@pytest.fixture
def folder(shared_folder: SharedFolder) -> Iterator[Path]:
    """The shared folder, without the files of the test before."""
    yield shared_folder.path
    shared_folder.clean()


@pytest.mark.parametrize(("command", "entry"), COMMAND)
def test_a_bad_input_ends_in_one_line_and_leaves_nothing(command, entry, folder, clean_imports):
    put_files(folder, entry, entry["run"])
    before = listed(folder)
    words = words_of(entry["run"])
    answer = run_command(*([] if command == "cranfield" else [command]), *words, folder=folder)
    assert answer.code == entry["code"], answer.both
    assert entry["says"] in answer.both
    assert "Traceback" not in answer.both
    assert max(map(len, answer.err.splitlines()), default=0) < 2_000, "the message repeats a long input"
    assert listed(folder) == before


@pytest.mark.parametrize(("call", "entry"), LIBRARY.items(), ids=list(LIBRARY))
def test_a_bad_value_is_refused_by_the_library(call, entry, tmp_path, monkeypatch):
    fill(tmp_path, entry, entry["call"])
    monkeypatch.chdir(tmp_path)
    before = held(tmp_path)
    names = {"cranfield": cranfield, "np": np, "nan": math.nan, "inf": math.inf, "one": ONE, "judged": JUDGED}
    with pytest.raises(getattr(errors, entry["raises"])) as refused:
        eval(entry["call"], names)
    assert entry["says"] in str(refused.value)
    assert held(tmp_path) == before


JUDGED = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1}}
ONE = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"b": 2.0, "a": 1.0}}


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that closes streams")
@pytest.mark.parametrize(("name", "entry"), CLOSED.items(), ids=list(CLOSED))
def test_closed_streams_are_no_reason_for_a_traceback(name, entry, tmp_path):
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    program = shlex.join([sys.executable, "-m", "cranfield"])
    done = subprocess.run(
        f"{program} {entry['run']}", shell=True, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == entry["code"], done.stderr
    assert entry["says"] in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    written = set(held(tmp_path)) - set(held(EXAMPLES))
    assert written == set(entry.get("writes", ()))


def test_every_command_and_every_format_is_given_something_bad():
    assert len(COMMAND) + len(LIBRARY) + len(CLOSED) >= 200
    assert set(LISTED) == {*COMMANDS, "cranfield"}
    text = " ".join(entry["run"] for entries in LISTED.values() for entry in entries.values())
    endings = {"json", "jsonl", "csv", "tsv", "parquet"}
    for each in FORMATS.values():
        assert each.name in text or (each.name in endings and f".{each.name}" in text), each.name
    assert [name for name in FILES if name.split("/")[0] not in text and not _needed(name)] == []


def covered_slots() -> set[tuple[str, str]]:
    """Every option that a bad input names, and every argument that an entry says it is about, with the command."""
    tree, covered = dict(commands()), set()
    for first, entries in LISTED.items():
        for entry in entries.values():
            words = [first, *shlex.split(entry["run"])]
            command = next((" ".join(words[:size]) for size in (3, 2, 1) if " ".join(words[:size]) in tree), "")
            flags = {flag: each for each in slots() if each.command == command for flag in each.parameter.opts}
            options = {flags[word.partition("=")[0]].name for word in words if word.partition("=")[0] in flags}
            covered |= {(command, name) for name in {entry.get("slot", ""), *options}}
    return covered


def test_every_slot_of_every_command_is_given_something_bad():
    assert len(COMMAND) + len(LIBRARY) + len(CLOSED) >= 1_200
    assert {(slot.command, slot.name) for slot in slots()} - covered_slots() == set()


def _needed(name: str) -> bool:
    entries = [*LIBRARY.values(), *(entry for each in LISTED.values() for entry in each.values())]
    return any(name in entry.get("needs", ()) or name.split("/")[0] in entry.get("call", "") for entry in entries)


KILLED = """
import os, signal, sys
from cranfield.formats.streams import write_bytes
def chunks():
    yield b"half"
    os.kill(os.getpid(), signal.SIGKILL)
write_bytes(sys.argv[1], chunks())
"""


@pytest.mark.skipif(os.name != "posix", reason="needs a process that can be killed")
def test_what_a_killed_process_left_is_removed_by_the_next_that_writes_the_file(tmp_path):
    target = tmp_path / "scores.txt"
    done = subprocess.run([sys.executable, "-c", KILLED, target], check=False)
    assert done.returncode == -signal.SIGKILL
    [left] = tmp_path.iterdir()
    assert left.name.startswith(".scores.txt.")
    write_bytes(target, [b"whole"])
    assert {path.name for path in tmp_path.iterdir()} == {"scores.txt"}
    assert target.read_bytes() == b"whole"


@pytest.mark.skipif(os.name != "posix", reason="needs to know which processes there are")
def test_what_another_process_is_writing_stays(tmp_path):
    pid, machine = own_mark().split(".")
    mine = f".a.run.{pid}.{machine}12345678"  # of a process that lives
    other = f".a.run.{pid}.{'0' * 8}12345678"  # of another machine, where nobody here knows the processes
    stranger = f".b.run.4999999.{machine}12345678"  # of another file
    gone = f".a.run.4999999.{machine}12345678"  # no process has this number
    old = f".a.run.{pid}.{'0' * 7}112345678"
    for name in (mine, other, stranger, gone, old):
        (tmp_path / name).write_bytes(b"half")
    os.utime(tmp_path / old, (0, 0))
    write_bytes(tmp_path / "a.run", [b"whole"])
    assert {path.name for path in tmp_path.iterdir()} == {"a.run", mine, other, stranger}


@pytest.mark.slow
@pytest.mark.parametrize("score", ["{falling}", "{tied}"])
def test_explain_answers_on_a_million_documents(score, tmp_path):
    number = 1_000_000
    lines = (f"q1 Q0 d{n:07} {n + 1} {score.format(falling=number - n, tied=n % 3)} a\n" for n in range(number))
    (tmp_path / "million.run").write_text("".join(lines), encoding="ascii")
    judged = (f"q1 0 d{n:07} {n % 3}\n" for n in range(0, number, 1_000))
    (tmp_path / "qrels.txt").write_text("".join(judged), encoding="ascii")
    for measure in ("AP", "nDCG@10"):
        answer = run_command("explain", measure, "qrels.txt", "million.run", "--topic", "q1", folder=tmp_path)
        assert answer.code == 0
        assert len(answer.out.splitlines()) < 200

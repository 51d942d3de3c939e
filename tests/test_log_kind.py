"""One answer to "is this a log?": by its content, for every command, and whatever the file is called."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest

from cranfield.formats.label_files import Judgment
from cranfield.formats.log_kind import LINES, POSTGRESQL, SQLITE, log_kind
from cranfield.inputs.logs import Named, named
from cranfield.judging import Event, open_log
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["work.db", "labels.jsonl"])
@pytest.mark.parametrize("copy", ["mylog", "mylog.txt", "labels.log"])
def test_a_copy_of_a_log_is_a_log_under_any_name_for_every_command(tmp_path: Path, name: str, copy: str) -> None:
    original, other = str(tmp_path / name), str(tmp_path / copy)
    assert cranfield("judge", "add", original, "qrels.txt").code == 0
    shutil.copy(original, other)
    assert log_kind(other) == log_kind(original) == (SQLITE if name == "work.db" else LINES)
    assert named(other) == Named(other)
    for command in ("judge status {}", "eval {} bm25.run"):
        one, two = (cranfield(*command.format(log).split()) for log in (original, other))
        assert (one.code, one.out.replace(original, other)) == (two.code, two.out)
        assert one.code == 0


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"topic": "q", "document": "d", "grade": 1, "time": "2026-01-01T00:00:00Z", "id": "a"}\n', LINES),
        ('{"kind": "withdrawal", "refers": "a", "time": "2026-01-01T00:00:00Z", "id": "b"}\n', LINES),
        ('{"record": "round", "kind": "round", "name": "r"}\n', LINES),
        (Judgment("q", "d", 1.0, "ann").line() + "\n", None),  # a file of labels, which has no ids
        ('{"id": "d1", "time": "noon", "title": "a document"}\n', None),
        ("301 0 d1 1\n", None),
        ("[1, 2]\n", None),
        ("", None),
    ],
)
def test_a_file_is_a_log_by_its_lines(tmp_path: Path, text: str, kind: str | None) -> None:
    for name in ("labels.jsonl", "labels"):
        (tmp_path / name).write_text(text)
        assert log_kind(str(tmp_path / name)) == kind


def test_a_location_that_does_not_exist_goes_by_its_ending(tmp_path: Path) -> None:
    assert log_kind("postgresql://ann@db/work") == log_kind("postgres://db/work") == POSTGRESQL
    assert log_kind(str(tmp_path / "new.db")) == log_kind(str(tmp_path / "new.SQLITE3")) == SQLITE
    assert log_kind(str(tmp_path / "new.jsonl")) is log_kind(str(tmp_path / "qrels.txt")) is log_kind("a\0b") is None


def test_lines_in_a_file_that_ends_in_db_are_lines(tmp_path: Path) -> None:
    log = open_log(tmp_path / "labels.jsonl")
    log.add([Event(topic="q", document="d", grade=1, assessor="ann", id="one")])
    shutil.copy(tmp_path / "labels.jsonl", tmp_path / "labels.db")
    copy = open_log(tmp_path / "labels.db", new=False)
    assert [event.id for event in copy.events()] == ["one"]


def test_a_pipe_is_no_log_and_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    asked: list[str | None] = []
    thread = threading.Thread(target=lambda: asked.append(log_kind(str(path))), daemon=True)
    thread.start()
    thread.join(30)
    assert asked == [None]


def test_a_database_of_another_program_is_refused_by_name(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "other")
    other.execute("PRAGMA application_id = 7")
    other.execute("CREATE TABLE notes (text)")
    other.commit()
    other.close()
    answer = cranfield("eval", str(tmp_path / "other"), "bm25.run")
    assert answer.code == 3
    assert str(tmp_path / "other") in answer.err

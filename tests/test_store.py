"""The store: tables as the migrations make them, once whoever opens them, and text that comes back as it went in."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import Column, Integer, MetaData, Table, insert, inspect, select
from sqlalchemy.schema import CreateTable

from cranfield.base.errors import DataError, MissingExtraError
from cranfield.judging import Event, open_log
from cranfield.judging.log_location import is_database
from cranfield.store import Database, migrations, open_database, tables
from cranfield.store import database as store
from cranfield.store.tables import Exact, Spans, escaped, plain
from databases import location_of
from hypotheses import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.every_database

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(params=DATABASES)
def place(request, tmp_path) -> str:
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    return location_of(request.param, tmp_path, server)


@pytest.fixture
def database(place) -> Iterator[Database]:
    opened = open_database(place)
    yield opened
    opened.close()


def shape(table: Table, dialect) -> dict[str, tuple[str, bool, bool]]:
    """Each column's type, whether it may be empty, and whether it is of the key."""
    return {
        column.name: (
            _kind(column.type, dialect),
            bool(column.nullable),
            bool(column.primary_key),
        )
        for column in table.columns
    }


def _kind(kind, dialect) -> str:
    """A type by its name; PostgreSQL compares text byte by byte."""
    if isinstance(kind, (Exact, Spans)):
        return "TEXT C" if dialect.name == "postgresql" else "TEXT"
    return kind.compile(dialect).replace(' COLLATE "C"', " C")


def test_the_tables_are_those_that_the_migrations_make(database):
    found = MetaData()
    found.reflect(database.engine)
    dialect = database.engine.dialect
    assert set(found.tables) == {*tables.metadata.tables, "cranfield_schema"}
    for name, table in tables.metadata.tables.items():
        mine, theirs = shape(table, dialect), shape(found.tables[name], dialect)
        keys = {column for column, (_, _, key) in mine.items() if key}
        if name == "standing":  # its key is that of all fields but those of the event, and nothing asks for it
            keys = {column for column in mine if column not in ("event", "time", "grade", "source")}
        assert {column for column, (_, _, key) in theirs.items() if key} == keys, name
        for column, (kind, empty, key) in mine.items():
            assert theirs[column][0] == kind, (name, column)
            assert key or theirs[column][1] == empty, (name, column)
        assert list(mine) == list(theirs), name


def test_every_step_of_a_migration_is_numbered_without_gaps():
    for dialect in DATABASES:
        assert list(migrations.steps(dialect)) == list(range(1, len(migrations.steps(dialect)) + 1))


NEWEST = max(migrations.steps("sqlite"))


def further(monkeypatch) -> None:
    """Code that knows one step more."""
    usual = migrations.steps

    def steps(dialect: str) -> dict[int, list[str]]:
        text = migrations.TYPES[dialect]["text"]
        later = [f"CREATE TABLE later (id {text} PRIMARY KEY)", "INSERT INTO later VALUES ('once')"]
        return {**usual(dialect), NEWEST + 1: later}

    monkeypatch.setattr(migrations, "steps", steps)


FIRST = [  # what the first release wrote
    r"""INSERT INTO events VALUES (1, 'a', 'judgment', 'q1', 'd\\1', '', 2.0, 'ann', '2026-03-01T00:00:00.000000Z',
    'relevance', TRUE, '', '', 'human', NULL, '', NULL, 'spring', '', '', FALSE, '', '2026-03-01T10:00:00.000000Z')""",
    r"""INSERT INTO standing VALUES ('judgment', 'q1', 'd\\1', '', 'relevance', 'ann', FALSE, 'a',
    '2026-03-01T00:00:00.000000Z')""",
    "INSERT INTO rounds VALUES ('spring', '{}', 'open', '2026-03-01T10:00:00.000000Z')",
    r"INSERT INTO items VALUES ('spring', 0, 'q1', 'd\\1', 'pool', NULL, 1, 1.0)",
    "INSERT INTO places VALUES ('spring', 0, 0, 'ann', FALSE, 'done', NULL, 'a')",
]


def up_to(version: int, monkeypatch, place: str) -> Database:
    """A database opened by the code of a version."""
    usual = migrations.steps
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "steps", lambda name: {n: made for n, made in usual(name).items() if n <= version})
        return open_database(place)


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
def test_every_released_schema_is_brought_forward_with_what_it_holds(place, version, monkeypatch):
    first = up_to(1, monkeypatch, place)
    for statement in FIRST:
        first.write(lambda connection, said=statement: connection.exec_driver_sql(said))
    if first.dialect == "postgresql":
        first.write(lambda connection: connection.exec_driver_sql("ALTER TABLE events ALTER seq RESTART WITH 2"))
    first.close()
    up_to(version, monkeypatch, place).close()
    log = open_log(place)
    assert set(inspect(log.database.engine).get_table_names()) == {*tables.metadata.tables, "cranfield_schema"}
    assert [(event.document, event.grade, event.round) for event in log.events()] == [("d\\1", 2, "spring")]
    assert [event.id for event in log.current_events().values()] == ["a"]
    with log.database.reading() as connection:
        assert connection.exec_driver_sql("SELECT version FROM cranfield_schema").scalars().all() == [NEWEST]
        assert connection.execute(select(tables.places.c.state, tables.places.c.event)).all() == [("done", "a")]
    log.verify()  # what an earlier version wrote has got its hashes
    log.add([Event(topic="q1", document="d2", grade=1, assessor="ann")])
    assert log.place() == 2
    log.close()


def test_a_database_of_newer_code_is_refused_and_left_as_it_is(place, monkeypatch):
    with monkeypatch.context() as patch:
        further(patch)
        open_database(place).close()
    told = f"written by a newer cranfield .its schema is {NEWEST + 1}, this one knows {NEWEST}.; upgrade cranfield"
    with pytest.raises(DataError, match=told):
        open_database(place)


def test_a_database_of_before_is_migrated_once_whoever_opens_it(place, monkeypatch):
    old = open_database(place)
    old.write(lambda connection: connection.execute(insert(tables.withdrawn), {"id": "kept"}))
    old.close()
    further(monkeypatch)
    failures: list[BaseException] = []
    ready = threading.Barrier(6)

    def look() -> None:
        try:
            ready.wait(30)
            open_database(place).close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    new = open_database(place)
    with new.reading() as connection:
        assert connection.exec_driver_sql("SELECT id FROM later").scalars().all() == ["once"]
        assert connection.exec_driver_sql("SELECT version FROM cranfield_schema").scalars().all() == [NEWEST + 1]
        assert connection.execute(select(tables.withdrawn.c.id)).scalars().all() == ["kept"]
    new.close()


def test_a_migration_that_fails_changes_nothing(place, monkeypatch):
    open_database(place).close()
    usual = migrations.steps
    broken = ["CREATE TABLE later (id INTEGER)", "INSERT INTO nowhere VALUES (1)"]
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "steps", lambda dialect: {**usual(dialect), NEWEST + 1: broken})
        with pytest.raises(DataError, match="the database says: .*nowhere"):
            open_database(place)
    again = open_database(place)
    assert "later" not in inspect(again.engine).get_table_names()
    again.close()


ODD = st.text(alphabet=st.characters() | st.sampled_from("\\\0u\ud800\udc80\udfff0041"), max_size=40)


@given(ODD)
@example("\\u0041")
@example("\\\\u0000")
@example("\\")
@example("\ud83d\ude00")  # two halves that a driver would make one
def test_escaped_text_is_read_back(text):
    there = escaped(text)
    assert plain(there) == text
    assert "\0" not in there
    there.encode("utf-8")


@given(st.lists(ODD, min_size=2, max_size=2, unique=True))
def test_two_texts_are_never_escaped_alike(texts):
    assert escaped(texts[0]) != escaped(texts[1])


def test_any_text_comes_back_as_it_went_in(database):
    texts = Table("texts", MetaData(), Column("number", Integer, primary_key=True), Column("text", Exact))
    database.write(lambda connection: connection.execute(CreateTable(texts)))

    @examples(60)
    @given(st.lists(ODD | st.none(), min_size=1, max_size=8))
    def kept(given):
        def work(connection):
            connection.execute(texts.delete())
            connection.execute(insert(texts), [{"number": i, "text": text} for i, text in enumerate(given)])
            return connection.execute(select(texts.c.text).order_by(texts.c.number)).scalars().all()

        assert database.write(work) == given
        for number, text in enumerate(given):
            if text is not None:
                equal = select(texts.c.number).where(texts.c.text == text)
                with database.reading() as connection:
                    assert number in connection.execute(equal).scalars().all()

    kept()


def test_text_sorts_alike_in_both(database):
    words = ["a", "B", "ä", "Z", "zz", "é", "_", "10", "9", "\U0001f600", "\uffff"]
    database.write(lambda connection: connection.execute(insert(tables.withdrawn), [{"id": word} for word in words]))
    with database.reading() as connection:
        ordered = connection.execute(select(tables.withdrawn.c.id).order_by(tables.withdrawn.c.id)).scalars().all()
    assert ordered == sorted(words)


def test_the_clock_is_the_databases_own_and_sorts_as_text(database):
    with database.reading() as connection:
        now = database.now(connection)
    assert len(now) == len("2026-03-01T10:00:00.000000Z")
    assert now.endswith("Z")


def test_a_clock_may_be_given(place):
    database = open_database(place, lambda: "2026-03-01T10:00:00.000000Z")
    with database.reading() as connection:
        assert database.now(connection) == "2026-03-01T10:00:00.000000Z"
    database.close()


def test_a_reader_sees_one_state(database):
    def count(connection):
        return len(connection.execute(select(tables.withdrawn)).all())

    with database.reading() as connection:
        assert count(connection) == 0
        database.write(lambda other: other.execute(insert(tables.withdrawn), {"id": "new"}))
        assert count(connection) == 0
    with database.reading() as connection:
        assert count(connection) == 1


def test_work_that_lost_a_race_is_done_again(postgres, monkeypatch):
    monkeypatch.setattr(store, "TRIES", 4)
    database = open_database(location_of("postgresql", None, postgres))
    tries: list[int] = []

    def work(connection):
        tries.append(1)
        if len(tries) < 3:
            connection.exec_driver_sql("INSERT INTO withdrawn VALUES ('a'), ('a')")
        return len(tries)

    assert database.write(work) == 3
    with pytest.raises(DataError, match="the database says: duplicate key"):
        database.write(lambda connection: connection.exec_driver_sql("INSERT INTO withdrawn VALUES ('b'), ('b')"))
    database.close()


@pytest.mark.parametrize(("module", "url"), [("sqlalchemy", "x.db"), ("psycopg", "postgresql://h/d")])
def test_a_package_that_is_not_installed_is_named(monkeypatch, module, url, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingExtraError, match="pip install 'cranfield"):
        open_database(url if "://" in url else str(tmp_path / url))


def test_connections_that_are_all_in_use_are_told(place, monkeypatch):
    from sqlalchemy.exc import TimeoutError as Waited

    database = open_database(place)

    def waits():
        raise Waited("all in use")

    monkeypatch.setattr(database.engine, "connect", waits)
    with pytest.raises(DataError, match="every connection is in use; try again"), database.reading():
        pass
    monkeypatch.undo()
    database.close()


def test_closing_finishes_what_waits(tmp_path):
    database = open_database(str(tmp_path / "work.db"))
    started, gate = threading.Event(), threading.Event()
    insert_new = insert(tables.withdrawn)
    works = [
        lambda _: (started.set(), gate.wait()),
        lambda connection: connection.execute(insert_new, {"id": "waited"}),
    ]
    threads = [threading.Thread(target=database.write, args=(work,)) for work in works]
    threads[0].start()
    assert started.wait(60)  # the writer is at it, and takes no more before it is done
    threads[1].start()
    while database._writer.queue.empty():
        threads[1].join(0.001)
    closing = threading.Thread(target=database.close)
    closing.start()
    gate.set()
    for thread in [*threads, closing]:
        thread.join()
    with database.reading() as connection:
        assert connection.execute(select(tables.withdrawn.c.id)).scalars().all() == ["waited"]
    database.close()


def test_what_waits_before_the_end_is_still_done(tmp_path):
    database = open_database(str(tmp_path / "work.db"))
    started, go, done = threading.Event(), threading.Event(), []

    def slow(connection):
        started.set()
        assert go.wait(60)
        done.append("slow")

    threads = [threading.Thread(target=database.write, args=(slow,))]
    threads[0].start()
    assert started.wait(60)
    queue = database._writer.queue
    for number, work in enumerate([lambda: database.write(lambda connection: done.append("quick")), database.close], 1):
        threads.append(threading.Thread(target=work))
        threads[-1].start()
        while queue.qsize() < number:
            threads[-1].join(0.001)
    go.set()
    for thread in threads:
        thread.join()
    assert done == ["slow", "quick"]


ANOTHER = """
import sys
from cranfield.store import open_database
database = open_database(sys.argv[1])
with database.reading() as connection:
    connection.exec_driver_sql("SELECT 1")
database.close()
"""


@pytest.mark.parametrize("name", ["work.db", "work"])
def test_a_file_opened_twice_here_keeps_its_locks_and_what_is_written_when_another_process_closes_it(tmp_path, name):
    path = tmp_path / name
    first = open_database(str(path))
    first.write(lambda connection: connection.execute(insert(tables.withdrawn), {"id": "before"}))
    open_database(str(path)).close()
    assert is_database(str(path))
    subprocess.run([sys.executable, "-c", ANOTHER, str(path)], check=True)
    assert (tmp_path / f"{name}-wal").exists()  # somebody still writes to it
    first.write(lambda connection: connection.execute(insert(tables.withdrawn), {"id": "after"}))
    with open_database(str(path)).reading() as connection:
        assert sorted(connection.execute(select(tables.withdrawn.c.id)).scalars()) == ["after", "before"]
    first.close()


def test_statements_stay_prepared_from_one_look_to_the_next(postgres, tmp_path):
    database = open_database(location_of("postgresql", tmp_path, postgres))
    query = select(tables.rounds.c.name).where(tables.rounds.c.name == "r")
    for _ in range(10):
        with database.reading() as connection:
            connection.execute(query).all()
    with database.reading() as connection:
        kept = connection.exec_driver_sql("SELECT statement FROM pg_prepared_statements").scalars().all()
    database.close()
    assert any("FROM rounds" in statement for statement in kept)


def test_one_statement_is_looked_at_again_where_the_server_had_ended_the_connection(postgres, tmp_path):
    import psycopg

    database = open_database(location_of("postgresql", tmp_path, postgres))
    query, values = select(tables.rounds.c.name), {}
    assert database.first(query, values) is None
    with psycopg.connect(postgres, autocommit=True) as other:
        name = database.engine.url.database
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
    assert database.first(query, values) is None
    database.close()


def test_work_whose_commit_was_lost_is_not_done_again(postgres, tmp_path, monkeypatch):
    from sqlalchemy.engine import Connection
    from sqlalchemy.exc import OperationalError

    def lost(connection):
        raise OperationalError("COMMIT", {}, Exception("server closed the connection"), connection_invalidated=True)

    database = open_database(location_of("postgresql", tmp_path, postgres))
    done = []
    monkeypatch.setattr(Connection, "commit", lost)
    with pytest.raises(DataError, match="the server ended the connection"):
        database.write(lambda connection: done.append(1))
    assert done == [1]
    monkeypatch.undo()
    database.close()

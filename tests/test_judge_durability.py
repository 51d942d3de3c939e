"""What was confirmed is there: under kill -9, from several processes at once, and whatever else they do meanwhile."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from cranfield.judging import Event, current_events, open_log
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from cranfield.judging.versions import all_versions
from cranfield.store.tables import places
from databases import new_database
from workers import add_many, add_same, begin, freeze_same, judge, open_at_once, together, write_on

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.every_database,
    pytest.mark.skipif(os.name != "posix", reason="needs processes that can be forked and killed"),
]
AT_ONCE = 3
LEASE = 2.0  # seconds


def confirmed_in(folder: Path) -> list[str]:
    return [line for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]


def killed_again_and_again(location: str, folder: Path, kills: int) -> None:
    """Keep some writers running, and kill one of them at a random moment, so many times."""
    draw = random.Random(kills)
    running = {}
    for number in range(kills + AT_ONCE - 1):
        path = folder / f"{number:03d}"
        running[path] = begin(write_on, location, path.name, str(path))
        if len(running) < AT_ONCE:
            continue
        victim = draw.choice(list(running))
        while not (victim.exists() and victim.stat().st_size):
            assert running[victim].is_alive()
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.08))
        process = running.pop(victim)
        process.kill()
        process.join()
        assert process.exitcode == -9
    for process in running.values():
        process.kill()
        process.join()


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_every_confirmed_event_is_there_once_after_kills(location, tmp_path, kills):
    folder = tmp_path / "confirmed"
    folder.mkdir()
    killed_again_and_again(location, folder, kills)
    log = open_log(location)
    events = log.events()
    found = Counter(event.id for event in events)
    confirmed = confirmed_in(folder)
    assert len(confirmed) >= kills
    assert {each: found[each] for each in confirmed} == dict.fromkeys(confirmed, 1)
    assert max(found.values()) == 1
    batches = Counter(each.rpartition("-")[0] for each in found)
    assert all(count == (1 if int(name.partition("-")[2]) % 2 else 3) for name, count in batches.items())
    assert len(found) - len(confirmed) <= 3 * len(list(folder.iterdir()))  # one that was on its way each
    assert log.current_events() == current_events(events)
    assert log.add([Event(topic="q", document="after", grade=1)]) == (1, 0)
    log.close()


def test_sqlite_syncs_each_commit_on_the_writers_own_connection(tmp_path):
    log = open_log(tmp_path / "work.db")
    read = {
        pragma: log.database.write(lambda connection, pragma=pragma: connection.exec_driver_sql(pragma).scalar())
        for pragma in ("PRAGMA synchronous", "PRAGMA journal_mode", "PRAGMA foreign_keys")
    }
    assert read == {"PRAGMA synchronous": 2, "PRAGMA journal_mode": "wal", "PRAGMA foreign_keys": 1}
    log.close()


def test_postgresql_waits_for_each_commit(postgres):
    log = open_log(new_database(postgres))
    show = "SHOW synchronous_commit"
    assert log.database.write(lambda connection: connection.exec_driver_sql(show).scalar()) == "on"
    log.close()


def test_four_processes_write_whole_lines_into_one_file(tmp_path):
    path = tmp_path / "labels.jsonl"
    together(add_many, *((str(path), f"p{number}", 250, 3000) for number in range(4)))
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1000
    assert len({json.loads(line)["id"] for line in lines}) == 1000
    assert min(map(len, lines)) > 1500
    assert len(open_log(path).events()) == 1000


def test_the_same_ids_from_two_processes_are_one_event_each(location):
    ids = [f"e{number}" for number in range(20)]
    together(add_same, (location, ids), (location, ids), (location, ids[::-1]))
    log = open_log(location)
    assert sorted(event.id for event in log.events()) == sorted(ids)
    log.close()


def test_a_new_log_may_be_opened_by_many_at_once(location):
    together(open_at_once, *([(location,)] * 6))
    log = open_log(location)
    assert log.events() == []
    log.close()


def test_of_two_processes_that_freeze_one_name_one_does(location, tmp_path):
    names = [f"v{number}" for number in range(6)]
    won = tmp_path / "won"
    log = open_log(location)
    log.add([Event(topic="q", document="d", grade=1)])
    together(freeze_same, (location, names, str(won)), (location, names, str(won)))
    assert sorted(won.read_text().split()) == names
    assert sorted(version.name for version in all_versions(log)) == names
    log.close()


def judged_at_once(location: str, people: int, items: int, overlap: int) -> None:
    """A tenth of the people walk away; when their leases are over others come. Every document has its labels in the end."""
    log = open_log(location)
    open_round(log, Round(name="r", lease=LEASE), [RoundItem(f"q{i % 5}", f"d{i}", overlap) for i in range(items)])
    together(judge, *((location, f"a{n}", n, n < max(1, people // 10)) for n in range(people)))
    time.sleep(LEASE + 0.1)
    together(judge, *((location, f"late{n}", n, False) for n in range(overlap)))
    labels = [(event.topic, event.document, event.assessor) for event in log.events()]
    assert len(labels) == len(set(labels))
    with log.reading() as transaction:
        rows = transaction.connection.execute(select(places)).all()
    done = Counter(row.item for row in rows if row.state == "done")
    assert done == dict.fromkeys(range(items), overlap)
    extra = sum(row.state == "extra" for row in rows)  # a slow machine lets leases be over, and labels come late
    assert len(labels) == items * overlap + extra
    log.close()


def test_processes_share_a_round(location):
    judged_at_once(location, 4, 12, 2)


@pytest.mark.slow
@pytest.mark.parametrize("location", ["sqlite", "postgresql"], indirect=True)
def test_fifty_processes_share_a_round(location):
    judged_at_once(location, 50, 300, 3)

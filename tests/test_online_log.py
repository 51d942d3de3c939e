"""A log of events on disk: each event once, whatever is killed, full, late or repeated; erasure and retention."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

import cranfield.experiments.log as log_module
from cranfield.base.errors import BadLineError, DataError, UnavailableError
from cranfield.base.notifications import notes_to
from cranfield.experiments.event import UserEvent
from cranfield.experiments.ingest import ingest
from cranfield.experiments.log import EventLog, connect
from cranfield.experiments.log_files import MANIFEST, ManifestChecker, SegmentWriter, read_manifest, segments_in
from cranfield.experiments.privacy import Pseudonyms, erase, retain
from cranfield.formats.streams import own_mark
from shell import cranfield

duckdb = pytest.importorskip("duckdb")
pq = pytest.importorskip("pyarrow.parquet")

EXAMPLES = Path(__file__).parents[1] / "examples"
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def event(i: object, day: int = 1, unit: str = "u1", **more: object) -> UserEvent:
    return UserEvent(event_id=f"e{i}", time=f"2026-03-{day:02}T10:00:00Z", kind="conversion", unit=unit, **more)


def added(log: EventLog, *events: UserEvent) -> None:
    log.append(events)
    log.seal()


def ids(log: EventLog) -> list[str]:
    return [row["event_id"] for row in log.events()]


def packed_ids(log: EventLog) -> list[str]:
    return sorted(
        e for files in log.parts().values() for file in files for e in pq.read_table(file)["event_id"].to_pylist()
    )


@pytest.fixture(scope="module")
def database():
    with connect() as opened:
        yield opened


@pytest.fixture(autouse=True)
def _one_database(database, monkeypatch):
    """Every connection is to one database in memory: to start one takes longer than what these tests ask of it."""
    monkeypatch.setattr("cranfield.experiments.log.connect", database.cursor)
    monkeypatch.setattr("cranfield.experiments.ingest.connect", database.cursor)


@pytest.fixture
def log(tmp_path):
    with EventLog(tmp_path / "log", create=True) as log:
        yield log


# adding, packing, reading


def test_events_are_read_before_and_after_they_are_packed_each_once(log):
    everything = UserEvent(
        event_id="e9",
        time="2026-03-02T23:59:59.999999Z",
        kind="click",
        unit="Zoë",
        session="s",
        search="q",
        query="it's",
        shown=("b", "a"),
        credit="t",
        document="a",
        position=2,
        value=0.1,
        experiment="x",
        variant="v",
        application="app",
        attributes={"a": "1", "b": "[2]"},
    )
    log.append([event(1), everything])
    before = list(log.events())
    assert [UserEvent.of(row) for row in before] == [event(1), everything]
    assert log.pack().new == 0  # the segment is still written to
    log.seal()
    packed = log.pack()
    assert (packed.new, packed.repeats, packed.files, packed.days) == (2, 0, 2, ("2026-03-01", "2026-03-02"))
    assert list(log.events()) == before
    assert segments_in(log.segments) == []


def test_repeats_are_dropped_within_the_day_waiting_or_packed(log):
    added(log, event(1), event(1), event(2))
    assert ids(log) == ["e1", "e2"]
    assert log.pack()[:2] == (2, 1)
    added(log, event(2), event(3))
    assert ids(log) == ["e1", "e2", "e3"]
    assert log.pack()[:2] == (1, 1)
    assert packed_ids(log) == ["e1", "e2", "e3"]


def test_a_late_event_adds_a_file_to_its_old_day_and_leaves_the_others(log):
    added(log, event(1, 1), event(2, 2))
    log.pack()
    [old] = log.parts()["2026-03-01"]
    content = Path(old).read_bytes()
    added(log, event(3, 1))
    log.pack()
    assert len(log.parts()["2026-03-01"]) == 2
    assert len(log.parts()["2026-03-02"]) == 1
    assert Path(old).read_bytes() == content


def test_an_id_reused_with_other_content_is_left_out_and_reported(log):
    added(log, event(1), event(2), event(2, value=5.0))
    first = log.pack()
    added(log, event(1, unit="another"))
    second = log.pack()
    assert [(one.row, one.event_id, one.day) for one in (*first.reused, *second.reused)] == [
        (2, "e2", "2026-03-01"),
        (0, "e1", "2026-03-01"),
    ]
    assert log.reused() == [{"event_id": "e2", "day": "2026-03-01"}, {"event_id": "e1", "day": "2026-03-01"}]
    assert [row["unit"] for row in log.events()] == ["u1", "u1"]


def test_the_same_id_on_two_days_is_kept_for_the_health_check(log):
    added(log, event(1, 1), event(1, 2))
    log.pack()
    assert ids(log) == ["e1", "e1"]


def test_columns_have_the_types_of_the_schema(log):
    added(log, event(1, value=2.0, attributes={"a": "b"}))
    for _ in range(2):
        relation = log.relation(duckdb.connect())
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        assert (types["time"], types["day"], types["position"]) == ("TIMESTAMP", "DATE", "INTEGER")
        assert relation.project("attributes['a'], day::VARCHAR, epoch_us(time)").fetchall() == [
            ("b", "2026-03-01", 1772359200000000)
        ]
        log.pack()
    [file] = log.parts()["2026-03-01"]
    assert str(pq.read_schema(file).field("time").type) == "timestamp[us, tz=UTC]"


def test_an_empty_log_has_no_events(log):
    assert log.counts() == {}
    assert len(log) == 0
    assert log.pack().new == 0


def test_a_folder_with_odd_letters_is_no_pattern(tmp_path):
    with EventLog(tmp_path / "it's [a] log* day=x?", create=True) as log:
        added(log, event(1))
        log.pack()
        added(log, event(1), event(2))
        assert ids(log) == ["e1", "e2"]


def test_what_is_no_log_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such log"):
        EventLog(tmp_path / "none")
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(DataError, match="not an event log"):
            EventLog(path, create=True)


def test_several_writers_append_at_once_and_nothing_is_lost(log):
    def write(k: int) -> None:
        with EventLog(log.folder, create=True) as own:
            for i in range(20):
                own.append([event(f"{k}-{i}")])
                if i % 7 == 0:
                    own.seal()

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        log.pack()
        assert len(set(found := ids(log))) == len(found)
    for thread in threads:
        thread.join()
    log.pack()
    assert len(packed_ids(log)) == len(set(packed_ids(log))) == 80


def test_a_writer_begins_another_segment_when_one_is_large(tmp_path):
    writer = SegmentWriter(str(tmp_path), roll=10)
    for _ in range(3):
        writer.append([b"0123456789\n"])
    assert len(segments_in(str(tmp_path))) == 3


# torn lines, full disks


def test_half_a_line_at_the_end_of_a_segment_is_no_event(log):
    added(log, event(1))
    [path] = segments_in(log.segments)
    with open(path, "ab") as file:
        file.write(event(2).line().encode()[:30])
    assert ids(log) == ["e1"]
    assert log.pack().new == 1


def test_a_segment_that_something_else_has_written_to_is_named_by_line(log):
    added(log, event(1))
    [path] = segments_in(log.segments)
    with open(path, "ab") as file:
        file.write(b"what is this\n")
    with pytest.raises(BadLineError, match=r"\.jsonl:2: expected an event, found b'what is this'"):
        log.pack()
    assert segments_in(log.segments) == [path]


@contextmanager
def room(size: int):
    """Let no file grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_keeps_nothing_of_what_did_not_fit_and_the_log_goes_on_when_there_is_room(log):
    log.append([event(1)])
    [path] = segments_in(log.segments)
    size = Path(path).stat().st_size
    with (
        room(size + 50),
        pytest.raises(UnavailableError, match="3 events cannot be written: file too large; none of them"),
    ):
        log.append([event(2), event(3), event(4)])
    assert Path(path).stat().st_size == size
    log.append([event(2)])
    assert ids(log) == ["e1", "e2"]
    assert segments_in(log.segments) == [path]


def test_a_disk_that_is_full_while_packing_changes_nothing(log):
    added(log, event(1), event(2, 2))
    with room(100), pytest.raises(UnavailableError, match=r"\.parquet: cannot be written: file too large"):
        log.pack()
    assert [name for files in log.parts().values() for name in files] == []
    assert ids(log) == ["e1", "e2"]
    assert log.pack().new == 2
    assert not [name for name in Path(log.folder).rglob(".*") if name.name != ".lock"]


def test_a_disk_that_is_full_is_exit_3_by_command(tmp_path):
    rows = "".join(event(i).line() + "\n" for i in range(100))
    (tmp_path / "events.jsonl").write_text(rows)
    with room(4000):
        answer = cranfield("online", "ingest", "log", "events.jsonl", folder=tmp_path)
    assert answer.code == 3
    assert "100 events cannot be written: file too large; none of them is stored" in answer.err
    assert cranfield("online", "ingest", "log", "events.jsonl", folder=tmp_path).code == 0
    with EventLog(tmp_path / "log") as log:
        assert len(ids(log)) == 100


# kills

STEPS = ["write", "fdatasync", "fsync", "rename", "replace", "unlink", "makedirs", "ftruncate"]
DRIVER = """
import json, os, sys
import duckdb, pyarrow.parquet as pq
from cranfield.experiments.event import UserEvent
from cranfield.experiments.log import EventLog
from cranfield.experiments.privacy import erase

root, steps, every, scenario = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), sys.argv[4]


def event(i, day):
    unit = "gone" if i % 3 == 0 else "here"
    return UserEvent(event_id=f"e{i}", time=f"2026-03-{day:02}T10:00:00Z", kind="conversion", unit=unit)


def dying(n):
    count = 0

    def wrap(function):
        def step(*arguments, **options):
            nonlocal count
            count += 1
            if count == n:
                os._exit(9)
            return function(*arguments, **options)

        return step

    for name in steps:
        setattr(os, name, wrap(getattr(os, name)))


def forked(work):
    pid = os.fork()
    if not pid:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def told(path):
    return [int(line) for line in open(path)] if os.path.exists(path) else []


def attempt(folder, n):
    acknowledged = open(folder + ".told", "a")
    dying(n)
    log = EventLog(folder, create=True)
    for batch in ([0, 1, 2], [3, 4], [1, 5]):
        log.append([event(i, 1 + i % 2) for i in batch])
        print(*batch, sep="\\n", file=acknowledged, flush=True)
        log.seal()
        if batch[0] != 3:
            log.pack()
    if scenario == "erase":
        log.append([event(6, 1), event(7, 1)])
        print(6, 7, sep="\\n", file=acknowledged, flush=True)
        erase(log, ["gone"])
        print(-1, file=acknowledged, flush=True)


def checked(folder):
    with EventLog(folder, create=True) as log:
        before = sorted(row["event_id"] for row in log.events())
        log.pack()
        if scenario == "erase":
            erase(log, ["gone"])
        after = sorted(e for files in log.parts().values() for f in files for e in pq.read_table(f)["event_id"].to_pylist())
        found = told(folder + ".told")
        kept = [i for i in found if i >= 0 and (scenario != "erase" or i % 3)]
        assert len(set(before)) == len(before), ("doubled before packing", before)
        assert len(set(after)) == len(after), ("doubled", after)
        assert {f"e{i}" for i in kept} <= set(after), ("lost", kept, after)
        assert set(after) <= {f"e{i}" for i in range(8) if scenario != "erase" or i % 3}, after
        assert log.reused() == []
        assert not [n for _, _, names in os.walk(folder) for n in names if n.startswith(".") and n != ".lock"]


n, killed = 1, 0
while True:
    folder = f"{root}/log{n}"
    code = forked(lambda: attempt(folder, n))
    assert code in (0, 9), code
    assert forked(lambda: checked(folder)) == 0, f"killed before step {n}"
    if code == 0:
        break
    n, killed = n + every, killed + 1
print(killed)
"""


def killed_at_steps(tmp_path, every: int, scenario: str) -> int:
    command = [sys.executable, "-c", DRIVER, str(tmp_path), json.dumps(STEPS), str(every), scenario]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert answer.returncode == 0, answer.stderr
    return int(answer.stdout)


def test_what_a_killed_process_left_unfinished_is_removed(log):
    added(log, event(1))
    log.pack()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    mark = own_mark().partition(".")[2]
    left = Path(log.folder) / "day=2026-03-01" / f".0123-4.parquet.{gone.pid}.{mark}abcd"
    left.write_bytes(b"ann")
    erase(log, ["ann"])
    assert not left.exists()
    assert ids(log) == ["e1"]


class Killed(BaseException):
    """What no code of ours catches."""


def test_packing_that_stops_before_any_file_is_moved_or_removed_goes_on_from_there(log, monkeypatch):
    originals = {name: getattr(os, name) for name in ("replace", "unlink")}
    added(log, event(0))
    log.pack()
    for n in range(1, 6):
        added(log, event(0), event(f"{n}-a", 1), event(f"{n}-b", 2))
        added(log, event(f"{n}-c", 3))
        left = n

        def step(name, *arguments):
            nonlocal left
            left -= 1
            if not left:
                raise Killed
            return originals[name](*arguments)

        with monkeypatch.context() as patch:
            for name in originals:
                patch.setattr(os, name, lambda *arguments, name=name: step(name, *arguments))
            with pytest.raises(Killed):
                log.pack()
        expected = {"e0"} | {f"e{i}-{letter}" for i in range(1, n + 1) for letter in "abc"}
        assert sorted(ids(log)) == sorted(expected)
        log.pack()
        assert packed_ids(log) == sorted(expected)


@pytest.mark.parametrize("work", ["pack", "erase"])
def test_a_stop_before_any_file_is_moved_synced_or_removed_leaves_a_log_that_reads(tmp_path, monkeypatch, work):
    originals = {name: getattr(os, name) for name in ("replace", "unlink", "fsync")}
    everything, stayed = ["e0", "e1", "e2", "e3"], ["e1", "e2"]
    stops = 0
    while True:
        stops += 1
        with EventLog(tmp_path / f"log{stops}", create=True) as log:
            added(log, event(0, 1, "gone"), event(1, 1, "here"))
            log.pack()
            added(log, event(2, 1, "here"), event(3, 2, "gone"))
            left = stops

            def step(name, *arguments):
                nonlocal left
                left -= 1
                if not left:
                    raise Killed
                return originals[name](*arguments)

            done = False
            with monkeypatch.context() as patch:
                for name in originals:
                    patch.setattr(os, name, lambda *arguments, name=name: step(name, *arguments))
                try:
                    log.pack() if work == "pack" else erase(log, ["gone"])
                    done = True
                except Killed:
                    pass
            with EventLog(log.folder) as fresh:
                read = sorted(ids(fresh))
                assert read == everything if work == "pack" else {*stayed} <= {*read} <= {*everything}
                fresh.pack() if work == "pack" else erase(fresh, ["gone"])
                assert sorted(ids(fresh)) == (everything if work == "pack" else stayed)
                manifest = read_manifest(fresh.folder)
                assert manifest is not None
                assert not manifest.changing
        if done:
            break
    assert stops > 10


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["pack", "erase"])
def test_a_kill_before_every_step_loses_and_doubles_nothing(scenario, tmp_path):
    assert killed_at_steps(tmp_path, 1, scenario) >= 30


WRITING = """
import sys
from cranfield.experiments.event import UserEvent
from cranfield.experiments.log import EventLog

folder, start = sys.argv[1], int(sys.argv[2])
log = EventLog(folder, create=True)
i = start
while True:
    batch = [UserEvent(event_id=f"e{j}", time=f"2026-03-0{1 + j % 3}T10:00:00Z", kind="click", unit="u", search="s",
                   document="d") for j in range(i, i + 10)]
    log.append(batch)
    print(i, flush=True)
    i += 10
    if i % 100 == 0:
        log.seal()
        log.pack()
"""


@pytest.mark.slow
def test_twenty_real_kills_while_writing_and_packing_lose_and_double_no_acknowledged_event(tmp_path):
    folder, start, told = str(tmp_path / "log"), 0, set()
    for kill in range(24):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITING, folder, str(start)], stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert process.stdout
        told.add(int(process.stdout.readline()))  # it has begun
        time.sleep(0.05 + 0.037 * kill)
        os.kill(process.pid, signal.SIGKILL)
        told |= {int(line) for line in process.stdout.read().split("\n")[:-1]}
        process.wait()
        process.stdout.close()
        start = max(told)  # the last batch is sent again, as a client would
    with EventLog(folder) as log:
        log.pack()
        found = packed_ids(log)
    assert len(found) == len(set(found))
    assert {f"e{j}" for i in told for j in range(i, i + 10)} <= set(found)


# the manifest


def two_days(log: EventLog) -> dict[str, Path]:
    added(log, event(1, 1), event(2, 1), event(3, 2))
    log.pack()
    return {day: Path(files[0]) for day, files in log.parts().items()}


def test_the_manifest_has_each_file_with_its_events_and_sha256(log):
    files = two_days(log)
    written = json.loads((Path(log.folder) / MANIFEST).read_text())
    assert {day: about["events"] for day, about in written["days"].items()} == {"2026-03-01": 2, "2026-03-02": 1}
    for day, path in files.items():
        content = written["days"][day]["files"][path.name]
        assert content["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert (content["bytes"], content["events"]) == (path.stat().st_size, pq.read_metadata(path).num_rows)
    assert "changing" not in written


def removed(path: Path) -> None:
    path.unlink()


def removed_with_its_day(path: Path) -> None:
    shutil.rmtree(path.parent)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def with_a_foreign_file(path: Path) -> None:
    shutil.copy(path, path.with_name("other.parquet"))


DAMAGES = {
    removed: "is missing (2 events)",
    removed_with_its_day: "is missing (2 events)",
    cut: "was cut",
    flipped: "was changed after it was written",
    with_a_foreign_file: "other.parquet: is not in the manifest",
}
READERS = {
    "export": lambda log: list(log.events()),
    "counts": lambda log: log.counts(),
    "relation": lambda log: log.relation(duckdb.connect()),
    "erase": lambda log: erase(log, ["u1"]),
    "retain": lambda log: retain(log, 1, NOW),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_day_file_that_is_not_as_it_was_written_stops_every_reader_by_name(log, damage, reader):
    path = two_days(log)["2026-03-01"]
    damage(path)
    before = {each: each.read_bytes() for each in Path(log.folder).rglob("*.parquet")}
    with EventLog(log.folder) as fresh, pytest.raises(DataError, match=re.escape(DAMAGES[damage])) as error:
        READERS[reader](fresh)
    assert str(path.parent) in str(error.value)
    assert {each: each.read_bytes() for each in Path(log.folder).rglob("*.parquet")} == before


def test_packing_stops_at_a_file_of_another_size_and_keeps_what_waits(log):
    removed(two_days(log)["2026-03-01"])
    added(log, event(4, 2))
    with pytest.raises(DataError, match="is missing"):
        log.pack()
    assert len(log.waiting()) == 1


def test_a_file_that_changes_while_the_log_is_open_is_noticed(log):
    path = two_days(log)["2026-03-01"]
    assert len(ids(log)) == 3
    flipped(path)
    with pytest.raises(DataError, match="was changed"):
        ids(log)


def test_the_verdict_of_an_experiment_needs_every_day(tmp_path):
    folder = tmp_path / "shop-log"
    shutil.copytree(EXAMPLES / "online" / "shop-log", folder)
    plan = EXAMPLES / "online" / "shop.toml"
    assert cranfield("online", "analyze", folder, plan).code == 0
    gone = folder / "day=2025-03-03" / "1.parquet"
    gone.unlink()
    answer = cranfield("online", "analyze", folder, plan)
    assert (answer.code, answer.out) == (3, "")
    assert f"{gone}: is missing (" in answer.err


def test_a_log_of_before_is_read_with_one_note_and_gets_a_manifest_when_it_is_next_written(log):
    two_days(log)
    path = Path(log.folder) / MANIFEST
    path.unlink()
    said: list[str] = []
    with notes_to(said.append):
        assert ids(log) == ids(log) == ["e1", "e2", "e3"]
    assert len(said) == 1
    assert "has no manifest" in said[0]
    assert not path.exists()
    added(log, event(4, 3))
    log.pack()
    with notes_to(said.append):
        assert ids(log) == ["e1", "e2", "e3", "e4"]
    assert len(said) == 1
    manifest = read_manifest(log.folder)
    assert manifest is not None
    assert sorted(each.events for each in manifest.files.values()) == [1, 1, 2]


def test_a_manifest_that_is_none_is_an_error_and_removing_it_lets_the_log_be_read(log):
    two_days(log)
    path = Path(log.folder) / MANIFEST
    content = '{"events": 1, "bytes": 9, "sha256": "x"}'
    wrong = {
        "": "expected JSON",
        "[]": "expected a table",
        '{"manifest": 2, "days": {}}': "expected manifest as a whole number from 1 to 1, found 2",
        '{"manifest": 1, "days": {}, "day": {}}': "found 'day'; did you mean 'days'",
        '{"manifest": 1, "days": {"d": {"events": 1, "files": {"f": {"events": "1"}}}}}': "expected days.d.files.f.events",
        f'{{"manifest": 1, "days": {{"d": {{"events": 2, "files": {{"f": {content}}}}}}}}}': "as its files hold, 1, found 2",
    }
    for text, says in wrong.items():
        path.write_text(text)
        with pytest.raises(DataError, match=rf"manifest\.json: .*{re.escape(says)}.*remove .*manifest\.json to go on"):
            ids(log)
    path.unlink()
    assert len(ids(log)) == 3


@pytest.mark.parametrize("rounds", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_readers_beside_packing_and_erasing_see_every_event_once(log, rounds):
    added(log, *(event(i, 1 + i % 3, "gone" if i % 5 == 0 else "here") for i in range(60)))
    log.pack()
    problems: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        with EventLog(log.folder) as other:
            while not done.is_set():
                try:
                    waiting = other.waiting()
                    other.checked_parts()
                    del waiting
                except BaseException as error:
                    problems.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for n in range(rounds):
        added(log, *(event(f"{n}-{i}", 1 + i % 3, "gone" if i == 0 else "here") for i in range(6)))
        log.pack()
        erase(log, ["gone"])
    done.set()
    reader.join()
    assert problems == []
    assert len(ids(log)) == 48 + rounds * 5


@pytest.mark.parametrize("unit", ["gone", "only"])
def test_a_file_that_is_replaced_or_removed_between_its_size_and_its_hash_is_no_damage(log, monkeypatch, unit):
    """`only` has a day alone, so that erasing it removes the day's file."""
    added(log, event(1, 1, "gone"), event(2, 1, "here"), event(3, 2, "only"))
    log.pack()
    size, write = ManifestChecker.size, log_module.write_manifest
    reads = []

    def read_while_replaced(folder, manifest):
        """Reads the log as soon as the manifest of the change is written; its files change after their sizes are read."""
        write(folder, manifest)
        if manifest.changing and not reads:
            reads.append("begun")
            with EventLog(folder) as other:
                reads.append(other.checked_parts())

    def size_before(self, path):
        before = size(self, path)
        where = Path(self.folder) / path
        if reads == ["begun"] and path in read_manifest(self.folder).changing:
            hidden = [*where.parent.glob(f".{where.name}*")]
            os.replace(hidden[0], where) if hidden else where.unlink()
        return before

    monkeypatch.setattr(log_module, "write_manifest", read_while_replaced)
    monkeypatch.setattr(ManifestChecker, "size", size_before)
    with pytest.raises(UnavailableError):  # the file that is to be moved or removed is so already
        erase(log, [unit])
    assert len(reads) == 2


# privacy


def test_erasing_a_unit_rewrites_days_and_segments_and_says_so(log):
    added(log, event(1, 1, "ann"), event(2, 1, "bob"), event(3, 2, "ann"))
    log.pack()
    log.append([event(4, 3, "ann"), event(5, 3, "bob")])
    done = erase(log, ["ann"])
    assert (done.packed, done.waiting, done.rewritten, done.removed, done.segments) == (2, 1, 1, 1, 1)
    assert done.days == ("2026-03-01", "2026-03-02", "2026-03-03")
    assert done.to_text().startswith("3 events of 1 unit erased: 2 in Parquet, 1 in segments not yet compacted.")
    assert ids(log) == ["e2", "e5"]
    for path in Path(log.folder).rglob("*"):
        assert path.is_dir() or b"ann" not in path.read_bytes()
    log.pack()
    assert packed_ids(log) == ["e2", "e5"]
    assert erase(log, ["ann"]).to_text() == "No events of 1 unit are in the log; nothing was changed."


def test_erasing_stops_before_anything_where_another_process_writes(log):
    added(log, event(1, 1, "ann"))
    log.pack()
    with EventLog(log.folder) as other:
        other.append([event(2, 1, "ann")])
        with pytest.raises(DataError, match="another process is writing to it"):
            erase(log, ["ann"])
        assert ids(log) == ["e1", "e2"]
    assert erase(log, ["ann"]).events == 2


def test_retention_takes_out_whole_days_packed_or_not(log):
    added(log, event(1, 1), event(2, 8), event(3, 9))
    log.pack()
    log.append([event(4, 2), event(5, 9)])
    done = retain(log, 2, NOW)
    assert (done.packed, done.waiting, done.removed) == (1, 1, 1)
    assert done.to_text().startswith("2 events older than 2 days erased")
    assert ids(log) == ["e2", "e3", "e5"]


KEY, OTHER_KEY = Pseudonyms(b"sixteen bytes or more"), Pseudonyms(b"another sixteen bytes")


def events_file(folder: Path, *units: str, name: str = "events.jsonl") -> str:
    path = folder / name
    lines = [
        UserEvent(event_id=f"{name}-{unit}", time="2026-03-01T10:00:00Z", kind="conversion", unit=unit).line()
        for unit in units
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_second_key_a_key_too_many_and_a_key_too_few_are_refused_before_anything_is_added(tmp_path):
    path = events_file(tmp_path, "alice")
    for first, others in ((KEY, {OTHER_KEY: "by another key", None: "give their key"}), (None, {KEY: "no pseudonyms"})):
        with EventLog(tmp_path / f"log-{first is None}", create=True) as log:
            assert ingest(log, [path], now=NOW, pseudonyms=first).new == 1
            for other, told in others.items():
                with pytest.raises(DataError, match=f"{told}.*nothing was changed"):
                    ingest(log, [events_file(tmp_path, "alice", name="more.jsonl")], now=NOW, pseudonyms=other)
            assert len(log) == 1
            assert ingest(log, [path], now=NOW, pseudonyms=first).repeats == 1


def test_erasing_by_a_wrong_key_or_a_bare_name_is_refused_and_by_the_pseudonym_itself_works(tmp_path):
    with EventLog(tmp_path / "log", create=True) as log:
        ingest(log, [events_file(tmp_path, "alice", "bob")], now=NOW, pseudonyms=KEY)
        for key in (OTHER_KEY, None):
            with pytest.raises(DataError, match="its units are pseudonyms"):
                erase(log, ["alice"], key)
        assert len(log) == 2
        assert erase(log, ["alice"], KEY).events == 1
        assert erase(log, [KEY.of("bob")]).events == 1


def test_the_fingerprint_tells_keys_apart_and_is_no_key_and_no_pseudonym(tmp_path):
    with EventLog(tmp_path / "log", create=True) as log:
        ingest(log, [events_file(tmp_path, "alice")], now=NOW, pseudonyms=KEY)
    text = (tmp_path / "log" / "units.json").read_text()
    assert json.loads(text) == {"units": "pseudonyms", "fingerprint": KEY.fingerprint}
    assert KEY.fingerprint != OTHER_KEY.fingerprint
    assert "sixteen" not in text
    assert not KEY.of("alice").startswith(KEY.fingerprint)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "expected JSON"),
        ('{"units": "pseudonyms", "fingerprint": null}', "expected fingerprint as text, found null"),
        ('{"units": "plan", "fingerprint": ""}', "expected units as one of plain, pseudonyms, found 'plan'"),
        ('{"units": "plain", "fingerprints": ""}', "did you mean 'fingerprint'?"),
        ('{"units": "plain", "fingerprint": "x"}', "expected the fingerprint of a key with units = 'pseudonyms' alone"),
    ],
)
def test_a_fingerprint_that_cannot_be_read_is_refused(tmp_path, text, says):
    with EventLog(tmp_path / "log", create=True) as log:
        ingest(log, [events_file(tmp_path, "alice")], now=NOW, pseudonyms=KEY)
        (tmp_path / "log" / "units.json").write_text(text)
        with pytest.raises(DataError, match=rf"units\.json: .*{re.escape(says)}.*; restore it from a copy"):
            erase(log, ["alice"], KEY)


def test_a_log_without_a_fingerprint_takes_the_first_key_with_a_note(tmp_path):
    said: list[str] = []
    with EventLog(tmp_path / "log", create=True) as log, notes_to(said.append):
        added(log, event(1, unit=KEY.of("alice")))
        assert erase(log, ["bob"], KEY).events == 0
        assert "a wrong key finds no events either" in said[-1]
        ingest(log, [events_file(tmp_path, "bob")], now=NOW, pseudonyms=KEY)
        assert "from now on only this key is accepted" in said[-1]
        with pytest.raises(DataError, match="by another key"):
            erase(log, ["alice"], OTHER_KEY)
        assert erase(log, ["alice"], KEY).events == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_privacy_key_that_others_can_read_or_write_is_refused_with_the_chmod_to_type(tmp_path, mode):
    path = tmp_path / "key of pseudonyms"
    path.write_bytes(b"sixteen bytes or more")
    path.chmod(mode)
    with pytest.raises(DataError, match=f"others can read it; chmod 600 '{path}'"):
        Pseudonyms.from_file(str(path))
    answer = cranfield("online", "ingest", tmp_path / "log", events_file(tmp_path, "a"), "--pseudonym-key", path)
    assert answer.code == 3
    assert not (tmp_path / "log").exists()
    path.chmod(0o600)
    assert Pseudonyms.from_file(str(path)).of("alice") == KEY.of("alice")


def test_a_pseudonym_is_hmac_sha256_against_the_rfc():
    # RFC 4231, test case 3: a key of twenty bytes 0xaa
    key = bytes.fromhex("aa" * 20)
    import hmac

    assert Pseudonyms(key).of("alice") == hmac.new(key, b"alice", hashlib.sha256).hexdigest()
    assert (
        hmac.new(key, b"\xdd" * 50, hashlib.sha256).hexdigest()
        == "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
    )
    hidden = Pseudonyms(key).event(event(1, attributes={"user_id": "alice", "agent": "x"}))
    assert hidden.unit == Pseudonyms(key).of("u1")
    assert hidden.attributes == {"user_id": Pseudonyms(key).of("alice"), "agent": "x"}
    with pytest.raises(DataError, match="16 bytes or more, found 5"):
        Pseudonyms(b"short")

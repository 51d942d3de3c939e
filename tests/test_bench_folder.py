"""A folder opened for work: what is missing is absent, names open no paths, uploads are bounded and checked."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
from typing import TYPE_CHECKING

import pytest

from cranfield.base.errors import DataError
from cranfield.formats.collection_folder import BUNDLED
from cranfield.inputs.disk_caches import FileHashes
from cranfield.inputs.workspace import Bench, open_bench
from cranfield.judging import Event
from databases import location_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ALLOTMENT = os.path.join(BUNDLED, "allotment")
LINES = b"101 Q0 d002 1 9.5 x\n101 Q0 d003 2 8.5 x\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ALLOTMENT, tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture
def bench(folder: Path) -> Iterator[Bench]:
    opened = open_bench(folder)
    yield opened
    opened.close()


def test_an_empty_folder_is_opened_and_holds_nothing(tmp_path):
    bench = open_bench(tmp_path)
    assert (bench.collection, bench.topics(), bench.qrels, bench.shelf()) == (None, None, None, None)
    assert (bench.runs(), bench.grades(), bench.guideline(), bench.versions()) == ([], {}, "", [])
    assert bench.rounds() == []
    assert (tmp_path / "work.db").exists()
    assert stat.S_IMODE((tmp_path / ".cranfield").stat().st_mode) == 0o700
    bench.close()


def test_a_collection_lies_in_the_folder_or_in_one_called_so(folder, tmp_path):
    bench = open_bench(folder)
    assert bench.collection == str(folder)
    assert len(bench.topics().queries) == 74
    assert bench.grades()[3].label == "perfectly relevant"
    bench.close()
    shutil.copytree(ALLOTMENT, tmp_path / "other" / "collection")
    other = open_bench(tmp_path / "other")
    assert other.collection == str(tmp_path / "other" / "collection")
    assert other.runs() == []
    other.close()


def test_topics_without_documents_are_topics_all_the_same(folder):
    (folder / "documents.jsonl").unlink()
    bench = open_bench(folder)
    assert bench.collection is None
    assert len(bench.topics().queries) == 74
    bench.close()


def test_a_broken_topics_file_is_said_when_it_is_asked_for_and_not_before(folder):
    (folder / "topics.jsonl").write_text("{\n")
    bench = open_bench(folder)
    with pytest.raises(DataError, match="topics.jsonl:1"):
        bench.topics()
    bench.close()


def test_topics_and_guidelines_are_read_again_when_their_files_change(bench, folder):
    assert bench.topics() is bench.topics()
    (folder / "topics.jsonl").write_text('{"id": "1", "title": "new"}\n')
    assert dict(bench.topics().queries) == {"1": "new"}
    (folder / "guidelines.md").write_text("judge by the narrative")
    assert bench.guideline() == "judge by the narrative"


def test_a_folder_that_is_not_there_and_a_log_that_is_no_database_are_refused(tmp_path):
    with pytest.raises(DataError, match="expected a folder"):
        open_bench(tmp_path / "none")
    with pytest.raises(DataError, match="expected a database"):
        open_bench(tmp_path, str(tmp_path / "labels.jsonl"))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_newer_labels_are_counted_from_a_place_of_the_log(kind, request, tmp_path):
    server = request.getfixturevalue("postgres") if kind == "postgresql" else None
    bench = open_bench(tmp_path, location_of(kind, tmp_path, server))
    bench.log.add([Event(topic="q", document="a", grade=1, assessor="ann")])
    place = bench.settled()
    assert (place, bench.newer(place)) == (bench.log.place(), 0)
    bench.log.add([Event(topic="q", document=name, grade=1, assessor="ann") for name in "bc"])
    bench.log.add([Event(kind="note", topic="q", note="a remark changes no result")])
    assert bench.newer(place) == 2
    bench.close()


def test_runs_are_those_listed_and_nothing_else_is_opened(bench, folder):
    (folder / "runs" / ".hidden").write_bytes(LINES)
    (folder / "runs" / "bm25.run.stats.json").write_text("{}")
    (folder / "runs" / "folder").mkdir()
    os.symlink("nowhere", folder / "runs" / "dangling.run")
    assert [run.name for run in bench.runs()] == ["bm25", "fusion", "phrase"]
    assert bench.run("bm25.run").path == str(folder / "runs" / "bm25.run")
    for name in (
        "../qrels.txt",
        str(folder / "qrels.txt"),
        "runs/bm25.run",
        ".hidden",
        "",
        "b*",
        "bm25.run\0",
        "folder",
    ):
        with pytest.raises(DataError, match="there is no run"):
            bench.run(name)


def test_runs_of_the_same_name_are_told_apart_by_their_endings(bench, folder):
    with gzip.open(folder / "runs" / "bm25.run.gz", "wb") as file:
        file.write(LINES)
    assert [run.name for run in bench.runs()] == ["bm25.run", "bm25.run.gz", "fusion", "phrase"]


def test_a_hash_is_kept_until_size_or_time_change(tmp_path, monkeypatch):
    path = tmp_path / "a.run"
    path.write_bytes(LINES)
    os.utime(path, ns=(10**18, 10**18))
    read: list[int] = []
    first = FileHashes(str(tmp_path / "hashes.json")).of(str(path), read.append)
    again = FileHashes(str(tmp_path / "hashes.json"))
    assert again.of(str(path), read.append) == first
    assert read == [len(LINES)]
    assert again.unknown([str(path)]) == 0
    path.write_bytes(LINES[::-1])  # the same size; just written, so that its hash is not trusted the next time
    assert again.of(str(path)) != first
    assert again.unknown([str(path)]) == len(LINES)


@pytest.mark.parametrize("content", [b"", b"[", b"[1]", b'{"a": 3}', b"\xff\xfe"])
def test_a_damaged_file_of_hashes_only_costs_work(tmp_path, content):
    (tmp_path / "hashes.json").write_bytes(content)
    path = tmp_path / "a.run"
    path.write_bytes(LINES)
    assert len(FileHashes(str(tmp_path / "hashes.json")).of(str(path))) == 64


# uploads


def left_behind(bench: Bench) -> list[str]:
    return [name for name in os.listdir(bench.state) if name.startswith("upload")]


@pytest.mark.parametrize("name", ["new.run", "Größe 2.run", "new.run.gz"])
def test_a_run_that_is_well_is_added(bench, name):
    data = gzip.compress(LINES) if name.endswith("gz") else LINES
    added = bench.add_run(name, iter([data[:7], data[7:]]))
    assert added.run == bench.run(name)
    assert not added.findings.counts["error"]
    with open(added.run.path, "rb") as file:
        assert file.read() == data
    assert left_behind(bench) == []


def test_a_run_makes_the_folder_of_runs_where_there_is_none(tmp_path):
    bench = open_bench(tmp_path)
    assert bench.add_run("first.run", [LINES]).run.name == "first"
    bench.close()


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", ".x.run", "../x.run", "a/b.run", "a\\b.run", "-o", "x\0.run", "x\n.run", "x.run ", "a=b.run"),
        *("a*.run", "\u202egnp.run", "\udc80.run", "ä" * 61, "C:x.run", "con\x1b[31m.run"),
    ],
)
def test_a_hostile_name_is_refused_and_nothing_is_written(bench, name):
    before = sorted(os.listdir(bench.runs_folder))
    with pytest.raises(DataError, match="file name"):
        bench.add_run(name, [LINES])
    assert sorted(os.listdir(bench.runs_folder)) == before
    assert left_behind(bench) == []


@pytest.mark.parametrize("name", ["bm25.run", "bm25.run.gz", "BM25.txt", "bm25"])
def test_a_name_that_is_taken_is_refused(bench, name):
    with pytest.raises(DataError, match="there is a run"):
        bench.add_run(name, [LINES])


def test_a_run_is_bounded_packed(bench):
    def endless() -> Iterator[bytes]:
        while True:
            yield LINES

    with pytest.raises(DataError, match="larger than 0.001 MB"):
        bench.add_run("new.run", endless(), 1000)
    assert left_behind(bench) == []


@pytest.mark.parametrize("packing", ["gzip", "bz2", "lzma"])
def test_a_bomb_is_refused_after_the_limit(bench, packing):
    module = __import__(packing)
    bomb = module.compress(b"\0" * 30_000_000)
    assert len(bomb) < 100_000
    with pytest.raises(DataError, match="unpacks to more than 1 MB"):
        bench.add_run("new.run.gz", [bomb], 1_000_000)
    assert left_behind(bench) == []


def test_many_members_of_a_packed_file_are_counted_together(bench):
    with pytest.raises(DataError, match="unpacks to more than"):
        bench.add_run("new.run.gz", [gzip.compress(b"\0" * 200_000)] * 20, 1_000_000)


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"101 Q0 d002 1 9.5 x\n101 Q0 d002 2 8.5 x\n", "duplicate-documents", 2),
        (b"101 Q0 d002 1 9.5 x\n101 Q0 d003\n", None, 2),
        (b"", "empty", None),
        (b"\x00\x01\x02 what is this", None, None),
        (b"101 0 d002 1\n101 0 d003 0\n", None, None),
    ],
)
def test_a_run_that_fails_its_check_is_refused_with_findings_by_line(bench, data, code, line):
    added = bench.add_run("new.run", [data])
    assert added.run is None
    errors = [each for each in added.findings if each.severity == "error"]
    assert errors
    assert {each.file for each in added.findings} == {"new.run"}
    assert code in (None, *(each.code for each in errors))
    assert line in (None, *(each.line for each in errors))
    assert [run.name for run in bench.runs()] == ["bm25", "fusion", "phrase"]
    assert left_behind(bench) == []


def test_a_packed_run_that_is_cut_off_is_refused(bench):
    with pytest.raises(DataError, match="new.run.gz: gzip stream ends early"):
        bench.add_run("new.run.gz", [gzip.compress(LINES)[:-9]])
    assert left_behind(bench) == []


def test_a_run_never_replaces_one_that_came_meanwhile(bench, folder):
    def slow() -> Iterator[bytes]:
        (folder / "runs" / "new.run").write_bytes(b"the other's\n")
        yield LINES

    with pytest.raises(DataError, match="there is a run 'new' already"):
        bench.add_run("new.run", slow())
    assert (folder / "runs" / "new.run").read_bytes() == b"the other's\n"


def test_documents_are_found_by_id(bench):
    with bench.shelf() as shelf:
        assert shelf.get("d002").title.startswith("Black bottoms")

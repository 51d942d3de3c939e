"""Documents by id from disk: the same as `documents()` has them, and an index that is whole or not there."""

from __future__ import annotations

import bz2
import gzip
import importlib
import json
import lzma
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Document, read_collection
from cranfield.base.errors import DataError
from cranfield.formats import document_index as module
from cranfield.formats.collection_folder import BUNDLED
from cranfield.formats.document_index import open_shelf
from cranfield.formats.streams import MODULES
from cranfield.inputs.topics import titles
from hypotheses import examples

LINES = [
    b'{"id": "d1", "title": "Wing flutter", "text": "a wing", "year": 1958}',
    b"",
    b'{"id": 7, "text": "a number for an id"}\r',
    b'  {"id": "\xc3\xa4/\xe6\xa4\x9c %2F", "title": "", "text": "\xe7\xb4\xa2"}  ',
    b'{"id": "\\ud800", "text": "half of a pair"}',
    b'{"id": "last", "text": "no line end"}',
]
PLAIN = b"\n".join(LINES)
ZSTD = importlib.import_module(MODULES["zstd"])
PACKERS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": ZSTD.compress}


@pytest.fixture
def where(tmp_path) -> str:
    return str(tmp_path / "state")


def folder_of(tmp_path: Path, content: bytes, ending: str = "") -> Path:
    folder = tmp_path / "toy"
    folder.mkdir(exist_ok=True)
    (folder / f"documents.jsonl{ending}").write_bytes(content)
    return folder


def numbered(count: int, words: str = "text") -> bytes:
    return b"".join(b'{"id": "d%d", "text": "%s %d"}\n' % (i, words.encode(), i) for i in range(count))


def left_in(where: str) -> list[str]:
    return sorted(os.listdir(where)) if os.path.exists(where) else []


# the documents


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_every_document_is_as_documents_has_it(ending, mark, tmp_path, where):
    folder = folder_of(tmp_path, PACKERS[ending](mark + PLAIN), ending)
    documents = list(read_collection(folder).documents())
    assert len(documents) == 5
    for _ in range(2):  # made, then found
        with open_shelf(str(folder), where) as shelf:
            assert [shelf.get(document.id) for document in documents] == documents
            assert list(shelf.ids()) == [document.id for document in documents]
            assert len(shelf) == 5
            assert shelf.has("7")
            assert not shelf.has("d2")
            assert shelf.get("d2") is shelf.get("") is None


ids = st.text(min_size=1).filter(lambda each: each.strip() and "\0" not in each)


@examples(15)
@given(st.lists(st.builds(Document, ids, st.text(), st.text()), max_size=12))
def test_whatever_was_written_is_found(documents):
    first = {document.id: document for document in reversed(documents)}
    lines = (json.dumps({"id": each.id, "title": each.title, "text": each.text}) for each in documents)
    with tempfile.TemporaryDirectory() as place:
        folder = folder_of(Path(place), "\n".join(lines).encode())
        with open_shelf(str(folder), os.path.join(place, "state")) as shelf:
            assert {id: shelf.get(id) for id in shelf.ids()} == first
            assert len(shelf) == len(documents)


def test_the_bundled_collection_is_known_by_name_and_left_alone(where):
    before = {path: path.stat() for path in Path(BUNDLED, "allotment").rglob("*")}
    with open_shelf("allotment", where) as shelf:
        for document in read_collection("allotment").documents():
            assert shelf.get(document.id) == document
    assert {path: path.stat().st_mtime_ns for path in Path(BUNDLED, "allotment").rglob("*")} == {
        path: found.st_mtime_ns for path, found in before.items()
    }


def test_of_equal_ids_the_first_is_meant_and_all_are_counted(tmp_path, where):
    lines = [b'{"id": "a", "text": "1"}', b'{"id": "b", "text": "2"}', b'{"id": "a", "text": "3"}']
    with open_shelf(str(folder_of(tmp_path, b"\n".join(lines))), where) as shelf:
        assert (shelf.get("a").text, len(shelf), list(shelf.ids())) == ("1", 3, ["a", "b", "a"])


def test_ids_whose_hashes_collide_are_told_apart(tmp_path, where, monkeypatch):
    monkeypatch.setattr(module, "_hash", lambda identifier: 2**64 - 1 - len(identifier))
    with open_shelf(str(folder_of(tmp_path, numbered(120))), where) as shelf:
        assert [shelf.get(f"d{i}").text for i in range(120)] == [f"text {i}" for i in range(120)]
        assert shelf.get("d120") is None
        assert shelf.get("x") is None


def test_a_file_without_documents_is_an_empty_shelf(tmp_path, where):
    for ending, pack in PACKERS.items():
        with open_shelf(str(folder_of(tmp_path, pack(b"\n"), ending)), where) as shelf:
            assert (len(shelf), list(shelf.ids()), shelf.get("a"), shelf.has("a")) == (0, [], None, False)
        (tmp_path / "toy" / f"documents.jsonl{ending}").unlink()


def test_many_threads_read_at_once(tmp_path, where):
    shelf = open_shelf(str(folder_of(tmp_path, gzip.compress(numbered(500)), ".gz")), where)
    wrong: list[int] = []

    def read(seed: int) -> None:
        for i in random.Random(seed).choices(range(500), k=300):
            document = shelf.get(f"d{i}")
            if document is None or document.text != f"text {i}":
                wrong.append(i)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shelf.close()
    assert wrong == []


def test_neither_making_nor_reading_keeps_documents_in_memory(tmp_path, where):
    folder = folder_of(tmp_path, numbered(3000, "words " * 500))
    size = (folder / "documents.jsonl").stat().st_size
    tracemalloc.start()
    try:
        with open_shelf(str(folder), where) as shelf:
            assert all(shelf.get(id) for id in shelf.ids())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.3 * size


def test_a_closed_shelf_says_so_and_who_is_reading_finishes(tmp_path, where):
    shelf = open_shelf(str(folder_of(tmp_path, numbered(3))), where)
    reading = shelf.ids()
    assert next(reading) == "d0"
    shelf.close()
    shelf.close()
    assert list(reading) == ["d1", "d2"]
    for ask in (shelf.get, shelf.has):
        with pytest.raises(DataError, match=r"documents\.jsonl: its shelf is closed; open it again"):
            ask("d0")


def test_titles_come_from_a_shelf_as_from_the_collection(where):
    wanted = ["d003", "d001", "no such"]
    with open_shelf("allotment", where) as shelf:
        assert titles(shelf, wanted) == titles("allotment", wanted)
        assert set(titles(shelf, wanted)) == {"d001", "d003"}


@pytest.mark.parametrize(("ending", "whole"), [("", "bytes"), (".gz", "documents")])
def test_progress_is_told_up_to_the_whole(ending, whole, tmp_path, where):
    content = numbered(3000)
    folder = folder_of(tmp_path, PACKERS[ending](content), ending)
    (folder / "collection.toml").write_text("[counts]\ndocuments = 3000\n")
    told: list[tuple[int, int]] = []
    open_shelf(str(folder), where, lambda done, of: told.append((done, of))).close()
    total = len(content) if whole == "bytes" else 3000
    assert [of for _, of in told] == [total] * 3
    assert told == sorted(told)
    assert told[-1] == (total, total)
    told.clear()
    open_shelf(str(folder), where, lambda done, of: told.append((done, of))).close()
    assert told == []


def test_progress_of_packed_documents_nobody_counted_has_no_whole(tmp_path, where):
    told: list[tuple[int, int | None]] = []
    folder = folder_of(tmp_path, gzip.compress(numbered(1500)), ".gz")
    open_shelf(str(folder), where, lambda done, of: told.append((done, of))).close()
    assert told == [(1024, None), (1500, 1500)]


# bad input


BAD = {
    "no JSON": (b'{"id": "a"}\n{"id": oops}\n', ""),
    "no id": (b'{"id": "a"}\n\n{"text": "b"}\n', ""),
    "no text": (b'{"id": "a", "text": 1}', ""),
    "no object": (b"[]", ""),
    "nested": (b'{"id": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", ""),
    "no UTF-8": (b'{"id": "a", "text": "\xe9"}', ""),
    "UTF-16": (PLAIN.decode(errors="ignore").encode("utf-16"), ""),
    "truncated": (gzip.compress(numbered(2000))[:-500], ".gz"),
    "broken": (gzip.compress(numbered(2000))[:-300] + bytes(300), ".gz"),
    "bad line in gzip": (gzip.compress(numbered(20) + b"{\n"), ".gz"),
    "zip": (b"PK\x03\x04" + bytes(30), ""),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_the_words_of_read_collection_and_leaves_nothing(name, tmp_path, where):
    folder = str(folder_of(tmp_path, *BAD[name]))
    with pytest.raises(DataError) as expected:
        list(read_collection(folder).documents())
    with pytest.raises(type(expected.value)) as found:
        open_shelf(folder, where)
    assert str(found.value) == str(expected.value)
    assert left_in(where) == []


def test_a_line_that_unpacks_to_too_much_is_refused(tmp_path, where, monkeypatch):
    monkeypatch.setenv("CRANFIELD_MAX_UNPACKED", "8k")
    line = json.dumps({"id": "a", "text": "x" * 2000}).encode()
    with pytest.raises(DataError, match=":1: expected lines of at most 0.001 MB"):
        open_shelf(str(folder_of(tmp_path, gzip.compress(line), ".gz")), where)
    assert left_in(where) == []


def test_a_collection_without_documents_says_what_was_expected(tmp_path, where):
    for collection in (str(tmp_path), "no-such-collection"):
        with pytest.raises(DataError) as expected:
            read_collection(collection)
        with pytest.raises(DataError) as found:
            open_shelf(collection, where)
        assert str(found.value) == str(expected.value)
    assert left_in(where) == []


def test_a_pipe_in_place_of_documents_is_refused(tmp_path, where):
    os.mkfifo(tmp_path / "documents.jsonl")
    with pytest.raises(DataError, match="expected a file, found a pipe"):
        open_shelf(str(tmp_path), where)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_full_disk_leaves_nothing_and_says_so(ending, tmp_path, where):
    folder = folder_of(tmp_path, PACKERS[ending](numbered(20_000)), ending)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))
    try:
        with pytest.raises(DataError, match="state: cannot be written: file too large"):
            open_shelf(str(folder), where)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert left_in(where) == []
    assert len(open_shelf(str(folder), where)) == 20_000


def test_a_disk_that_does_not_sync_is_an_error(tmp_path, where, monkeypatch):
    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(DataError, match="state: cannot be written: no space left on device"):
        open_shelf(str(folder_of(tmp_path, PLAIN)), where)
    assert left_in(where) == []


def test_a_place_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "state").touch()
    with pytest.raises(DataError, match="state: cannot be written"):
        open_shelf("allotment", str(tmp_path / "state"))


# whole or not there


KILLED = """
import os, signal, sys
from cranfield.formats.document_index import open_shelf
open_shelf(sys.argv[1], sys.argv[2], lambda done, of: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_killed_maker_leaves_nothing_that_is_believed_and_its_rest_is_removed(tmp_path, where):
    folder = str(folder_of(tmp_path, gzip.compress(numbered(3000)), ".gz"))
    ended = subprocess.run([sys.executable, "-c", KILLED, folder, where], check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert [name[:11] for name in left_in(where)] == [".documents-"]
    with open_shelf(folder, where) as shelf:
        assert shelf.get("d2999").text == "text 2999"
    assert [name[:10] for name in left_in(where)] == ["documents-"]


def test_of_two_makers_the_second_takes_what_the_first_made(tmp_path, where):
    folder = str(folder_of(tmp_path, gzip.compress(numbered(9)), ".gz"))
    first = []
    second = open_shelf(folder, where, lambda done, of: first.append(open_shelf(folder, where)))
    assert len(first) == len(left_in(where)) == 1
    for shelf in (first[0], second):
        assert shelf.get("d8").text == "text 8"
        shelf.close()


def test_what_stands_is_opened_and_not_made_again(tmp_path, where, monkeypatch):
    folder = folder_of(tmp_path, PLAIN)
    open_shelf(str(folder), where).close()
    monkeypatch.setattr(module, "_write_index", lambda *_: pytest.fail("made again"))
    assert len(open_shelf(str(folder), where)) == 5
    os.rename(tmp_path / "toy", tmp_path / "moved")
    (tmp_path / "elsewhere").mkdir()
    for name in ("moved", "state"):
        os.rename(tmp_path / name, tmp_path / "elsewhere" / name.replace("moved", "toy"))
    assert len(open_shelf(str(tmp_path / "elsewhere" / "toy"), str(tmp_path / "elsewhere" / "state"))) == 5


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'\n{"id": "new", "text": "later"}\n')


def touched(path: Path) -> None:
    path.write_bytes(PLAIN.replace(b"last", b"new\x20").replace(b"no line end", b"      later"))
    os.utime(path, ns=(1, 1))


def replaced(path: Path) -> None:
    """The same size and the same time, in another file."""
    before = path.stat()
    beside = path.with_name("beside")
    beside.write_bytes(PLAIN.replace(b"last", b"new1"))
    os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert beside.stat().st_size == before.st_size
    os.replace(beside, path)


@pytest.mark.parametrize("change", [appended, touched, replaced])
def test_a_changed_file_is_indexed_anew_and_the_old_index_goes(change, tmp_path, where):
    folder = folder_of(tmp_path, PLAIN)
    open_shelf("allotment", where).close()
    open_shelf(str(folder), where).close()
    before = set(left_in(where))
    change(folder / "documents.jsonl")
    with open_shelf(str(folder), where) as shelf:
        assert list(shelf.ids()) == [document.id for document in read_collection(folder).documents()]
        assert any(id.startswith("new") for id in shelf.ids())
    assert len(before) == len(left_in(where)) == 2
    assert len(before & set(left_in(where))) == 1  # of the other collection


def test_an_index_of_another_version_is_not_believed(tmp_path, where, monkeypatch):
    folder = str(folder_of(tmp_path, PLAIN))
    open_shelf(folder, where).close()
    [before] = left_in(where)
    monkeypatch.setattr(module, "VERSION", module.VERSION + 1)
    open_shelf(folder, where).close()
    [after] = left_in(where)
    assert before != after


@pytest.mark.parametrize("file", ["rows", "ids", "hashes", "documents.jsonl", "about.json"])
@pytest.mark.parametrize("damage", [lambda path: os.truncate(path, 3), os.unlink])
def test_an_index_cut_short_is_made_again(file, damage, tmp_path, where):
    folder = str(folder_of(tmp_path, gzip.compress(PLAIN), ".gz"))
    open_shelf(folder, where).close()
    [index] = left_in(where)
    damage(os.path.join(where, index, file))
    with open_shelf(folder, where) as shelf:
        assert shelf.get("last").text == "no line end"
    assert left_in(where) == [index]


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path, where):
    path = folder_of(tmp_path, PLAIN) / "documents.jsonl"
    changes = iter([path])
    with open_shelf(str(path.parent), where, lambda *_: [appended(each) for each in changes]) as shelf:
        assert shelf.get("new").text == "later"
    assert len(left_in(where)) == 1


def test_a_file_that_never_stays_the_same_is_refused(tmp_path, where):
    path = folder_of(tmp_path, PLAIN) / "documents.jsonl"
    with pytest.raises(DataError, match="changes while it is read; try again when nobody writes to it"):
        open_shelf(str(path.parent), where, lambda *_: appended(path))
    assert left_in(where) == []


# changed under an open shelf


def test_a_file_written_over_under_an_open_shelf_is_an_error(tmp_path, where):
    folder = folder_of(tmp_path, PLAIN)
    with open_shelf(str(folder), where) as shelf:
        assert not shelf.changed
        appended(folder / "documents.jsonl")
        assert shelf.changed
        with pytest.raises(DataError, match="changed since its documents were indexed; open it again"):
            shelf.get("d1")


def test_another_document_is_never_shown_for_the_one_asked_for(tmp_path, where):
    """Not even where the file has the same size and time."""
    path = folder_of(tmp_path, numbered(20)) / "documents.jsonl"
    before = path.stat()
    with open_shelf(str(path.parent), where) as shelf:
        for content in (numbered(20).replace(b'"d3"', b'"d4"'), numbered(20).replace(b"}", b" ")):
            path.write_bytes(content)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            with pytest.raises(DataError, match="changed since"):
                shelf.get("d3")


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_file_that_was_replaced_or_removed_stays_readable_where_it_is_open(ending, tmp_path, where):
    folder = folder_of(tmp_path, PACKERS[ending](numbered(5)), ending)
    path = folder / f"documents.jsonl{ending}"
    with open_shelf(str(folder), where) as shelf:
        path.rename(path.with_name("aside"))
        assert shelf.changed
        path.write_bytes(PACKERS[ending](numbered(3, "other")))
        with open_shelf(str(folder), where) as other:
            assert shelf.changed
            assert (shelf.get("d2").text, other.get("d2").text, other.changed) == ("text 2", "other 2", False)

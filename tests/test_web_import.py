"""Imports by upload: the workspace gets what the command would have written, or nothing."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import time
import zipfile
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from cranfield import read_collection
from cranfield.commands.collections import import_collection
from layouts import EXPECTED, plain, smart
from shell import cranfield
from workbench import Client, Reply, Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RAW = {"Content_Type": "application/octet-stream", "Sec_Fetch_Site": "same-origin"}
DOCUMENTS = b"".join(b'{"id": "%d", "title": "t%d", "text": "bees and mites"}\n' % (n, n) for n in range(1, 5))
TOPICS = b'{"id": "1", "title": "bees"}\n{"id": "2", "title": "mites"}\n'
QRELS = b"1 0 1 1\n1 0 2 0\n2 0 3 1\n"


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Served]:
    folder = tmp_path / "empty"
    folder.mkdir()
    with served(folder) as site:
        yield site


def upload(lead: Client, part: str, name: str, content: bytes) -> Reply:
    return lead.ask("POST", f"/import/file.json?{urlencode({'part': part, 'name': name})}", content, **RAW)


def imported(lead: Client, what: str, **options: str) -> dict[str, Any]:
    """The outcome of an import, once it has ended."""
    reply = lead.post("/import.json", {"do": what, **options})
    if reply.status != 200:
        return {"status": reply.status, **reply.json()}
    for _ in range(600):
        state: dict[str, Any] = lead.get("/import.json").json()["import"]
        if state["state"] != "running":
            return state
        time.sleep(0.05)
    raise AssertionError("it still runs")


def packed(files: dict[str, bytes], kind: str) -> bytes:
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            for name, content in files.items():
                about = tarfile.TarInfo(name)
                about.size = len(content)
                archive.addfile(about, io.BytesIO(content))
    return out.getvalue()


def test_three_files_become_a_collection_and_home_says_what_is_next(empty: Served) -> None:
    lead = empty.client("ann")
    before = lead.get("/index.json").json()
    assert before["next"][0]["to"] == "/import"
    assert [step["done"] for step in before["guide"]] == [False] * 5
    for part, name, content in (
        ("documents", "d.jsonl", DOCUMENTS),
        ("topics", "t.jsonl", TOPICS),
        ("qrels", "q.txt", QRELS),
    ):
        assert upload(lead, part, name, content).status == 200
    done = imported(lead, "collection")
    assert done["summary"] == "Imported 4 documents, 2 topics, 3 judgments from jsonl files."
    collection = read_collection(empty.bench.folder + "/collection")
    assert (collection.name, len(collection.topics), len(collection.qrels)) == ("empty", 2, 3)
    after = lead.get("/index.json").json()
    assert after["next"][0]["to"] == "/runs"
    assert after["guide"][0]["done"] is True
    assert os.listdir(empty.site.uploads.folder) == []
    assert "bees and mites" in lead.get("/document?id=1").text


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_of_a_layout_is_read_as_import_reads_it(empty: Served, tmp_path: Path, kind: str) -> None:
    source = smart(tmp_path / "bees")
    files = {f"bees/{path.name}": path.read_bytes() for path in source.iterdir()}
    lead = empty.client("ann")
    assert upload(lead, "documents", f"bees.{kind}", packed(files, kind)).status == 200
    assert imported(lead, "collection")["state"] == "done"
    here = read_collection(empty.bench.folder + "/collection")
    import_collection(str(source), str(tmp_path / "by-command"), files={}, meta={})
    assert plain(here) == plain(read_collection(tmp_path / "by-command")) == EXPECTED


def test_a_bad_file_leaves_nothing_and_its_errors_are_shown_by_line(empty: Served) -> None:
    lead = empty.client("ann")
    upload(lead, "documents", "d.jsonl", DOCUMENTS + b"not json\n")
    refused = imported(lead, "collection")
    assert refused["status"] == 422
    assert "d.jsonl:5: " in refused["error"]
    assert empty.bench.folder not in str(refused)
    assert not os.path.exists(os.path.join(empty.bench.folder, "collection"))
    assert "d.jsonl:5: " in lead.get("/import").text
    upload(lead, "documents", "d.jsonl", DOCUMENTS)
    upload(lead, "topics", "t.jsonl", TOPICS)
    upload(lead, "qrels", "q.txt", b"1 0 1 1\n1 0 2\n2 0 3 x\n")
    refused = imported(lead, "collection")
    assert [each["line"] for each in refused["findings"]] == [2, 3]
    assert not os.path.exists(os.path.join(empty.bench.folder, "collection"))


@pytest.mark.parametrize("name", ["../../outside.jsonl", "/tmp/outside.jsonl"])
def test_an_archive_that_writes_outside_its_folder_changes_nothing(empty: Served, name: str) -> None:
    lead = empty.client("ann")
    upload(lead, "documents", "a.zip", packed({"documents.jsonl": DOCUMENTS, name: b"x"}, "zip"))
    refused = imported(lead, "collection")
    assert refused["status"] == 422
    assert "would be written outside its folder" in refused["error"]
    assert sorted(os.listdir(empty.bench.folder)) == sorted(
        name for name in os.listdir(empty.bench.folder) if name.startswith((".cranfield", "work.db"))
    )


def test_names_of_uploads_never_leave_the_state_folder(empty: Served) -> None:
    lead = empty.client("ann")
    for part, name in (("documents", "../a"), ("documents", ".hidden"), ("documents", "a/b"), ("no such", "a.txt")):
        assert upload(lead, part, name, b"x").status == 400
    assert os.listdir(empty.site.uploads.folder) == []
    assert upload(lead, "documents", "a.jsonl", b"").status == 400


def test_a_second_collection_is_refused_and_the_first_stays(empty: Served) -> None:
    lead = empty.client("ann")
    upload(lead, "documents", "d.jsonl", DOCUMENTS)
    assert imported(lead, "collection")["state"] == "done"
    upload(lead, "documents", "d.jsonl", DOCUMENTS.replace(b"bees", b"wasps"))
    refused = imported(lead, "collection")
    assert "has a collection already" in refused["error"]
    assert "bees and mites" in lead.get("/document?id=1").text
    assert lead.post("/import", {"do": "discard"}).status == 303
    assert os.listdir(empty.site.uploads.folder) == []


@pytest.fixture
def small(empty: Served) -> Served:
    lead = empty.client("ann")
    for part, name, content in (("documents", "d.jsonl", DOCUMENTS), ("topics", "t.jsonl", TOPICS)):
        upload(lead, part, name, content)
    assert imported(lead, "collection")["state"] == "done"
    return empty


def test_labels_are_added_as_judge_add_does_or_not_at_all(small: Served) -> None:
    lead = small.client("ann")
    upload(lead, "labels", "labels.csv", b"topic,document,grade,assessor\n1,1,1,bob\n1,9,0,bob\n")
    refused = imported(lead, "labels")
    assert refused["status"] == 422
    assert "labels.csv:3" in refused["error"]
    assert "there is no document '9' in the collection" in refused["error"]
    assert small.bench.log.events() == []
    upload(lead, "labels", "labels.csv", b"topic,document,grade,assessor\n1,1,1,bob\n1,2,0,bob\n")
    assert imported(lead, "labels")["summary"] == "Added 2 labels."
    assert {(each.document, each.assessor) for each in small.bench.log.events()} == {("1", "bob"), ("2", "bob")}
    upload(lead, "labels", "q.qrels", b"2 0 3 1\n")
    assert imported(lead, "labels", assessor="cat")["new"] == 1
    upload(lead, "labels", "q.qrels", b"2 0 3 1\n")
    assert imported(lead, "labels", assessor="cat")["there"] == 1


def test_new_topics_must_keep_those_that_are_judged(small: Served) -> None:
    lead = small.client("ann")
    upload(lead, "labels", "q.qrels", b"2 0 3 1\n")
    imported(lead, "labels")
    upload(lead, "topics", "t.csv", b"id,title\n1,bees\n3,wasps\n")
    refused = imported(lead, "topics")
    assert "lack 1 that are judged or in a round: '2'" in refused["error"]
    assert small.bench.topics().queries == {"1": "bees", "2": "mites"}
    upload(lead, "topics", "t.csv", b"id,title\n1,bees\n2,mites\n3,wasps\n")
    assert imported(lead, "topics")["topics"] == 3
    assert small.bench.topics().queries == {"1": "bees", "2": "mites", "3": "wasps"}
    assert cranfield("collection", "show", small.bench.collection).code == 0


def test_new_judgments_of_the_collection_are_checked_by_line(small: Served) -> None:
    lead = small.client("ann")
    upload(lead, "qrels", "q.txt", b"1 0 1 1\n9 0 1 1\n")
    assert "not in the collection: '9'" in imported(lead, "qrels")["error"]
    assert small.bench.qrels is None
    upload(lead, "qrels", "q.txt", QRELS)
    assert imported(lead, "qrels")["judgments"] == 3
    assert read_collection(small.bench.collection).qrels.to_dict()["1"] == {"1": 1.0, "2": 0.0}


def test_the_advice_of_an_empty_workspace_works_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = smart(tmp_path / "bees")
    (tmp_path / "my data").mkdir()
    (tmp_path / "a.run").write_text("".join(f"{t} Q0 {d} {d} {9 - d} a\n" for t in (1, 2, 3) for d in (1, 2, 3)))
    monkeypatch.chdir(tmp_path)
    with served(tmp_path / "my data") as site:
        lead = site.client("ann")
        steps = lead.get("/index.json").json()["guide"]
        assert cranfield(*words(steps[0]["command"].replace("SOURCE", "bees")), folder=tmp_path).code == 0
        assert plain(read_collection(tmp_path / "my data" / "collection")) == EXPECTED
        subprocess.run(steps[1]["command"].replace("RUN", "a.run", 1), shell=True, cwd=tmp_path, check=True)
        assert (tmp_path / "my data" / "runs" / "a.run").exists()
        steps = lead.get("/index.json").json()["guide"]
        assert [step["done"] for step in steps] == [True, True, False, False, False]
        pool, judge_round = steps[3]["command"].split(" && ")
        assert cranfield(*words(pool), folder=tmp_path).code == 0
        assert cranfield(*words(judge_round), folder=tmp_path).code == 0
        judged = cranfield(*words(steps[4]["command"].replace("ASSESSOR", "ann")), stdin=b"1\n0\nq\n", folder=tmp_path)
        assert judged.code == 0, judged.err
        assert len(site.bench.log.events()) == 2
        assert lead.get("/index.json").json()["guide"] == []
    assert source.exists()


def words(command: str) -> list[str]:
    """The arguments of a printed command, with patterns resolved as a shell does."""
    import glob
    import shlex

    parts = shlex.split(command)
    assert parts[0] == "cranfield"
    return [each for part in parts[1:] for each in (sorted(glob.glob(part)) if "*" in part else [part])]

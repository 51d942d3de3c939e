"""The base of both servers: how much of one a stranger can take up, and what everybody else notices of it."""

from __future__ import annotations

import json
import re
import resource
import socket
import threading
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

import pytest

from cranfield.base.errors import UnavailableError
from cranfield.experiments import log_writer
from cranfield.experiments.service_tokens import ApplicationTokens
from cranfield.http import protocol
from cranfield.http.body import DEEPEST, STRANGER_BYTES, is_deep
from cranfield.http.connections import GRACE, BodyMemory, ClientLimits, Connections, Listener, network_of
from service import Caller, Process, event, serving
from workbench import example
from workbench import served as workbench

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cranfield.experiments.service import Service

NAME = "events.example"
STRANGER = "127.0.0.2"  # another address of this machine


def soon(condition: Any, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def connected(port: int, address: str = STRANGER) -> socket.socket:
    """A connection from an address."""
    raw = socket.socket()
    raw.settimeout(30)
    raw.bind((address, 0))
    raw.connect(("127.0.0.1", port))
    return raw


def is_closed(raw: socket.socket) -> bool:
    """Whether the server has closed a connection, waiting for it."""
    try:
        while raw.recv(4096):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def head(port: int, length: int, *lines: str, path: str = "/events") -> bytes:
    """The headers of a request whose body is yet to come."""
    own = (f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Type: application/json")
    return ("\r\n".join([*own, f"Content-Length: {length}", *lines]) + "\r\n\r\n").encode()


def status_of(raw: socket.socket) -> int:
    """The status of the answer that comes."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = raw.recv(4096)
        assert piece, answer
        answer += piece
    said, _, body = answer.partition(b"\r\n\r\n")
    size = int(re.search(rb"(?i)content-length: *(\d+)", said)[1])  # type: ignore[index]
    while len(body) < size:
        piece = raw.recv(4096)
        assert piece, answer
        body += piece
    return int(said.split(b" ", 2)[1])


@pytest.fixture
def tokens(tmp_path: Path) -> Iterator[tuple[Service, Caller, str]]:
    """A service that demands tokens, somebody who has one, and the token."""
    token = ApplicationTokens(str(tmp_path / "log")).new("shop")
    limits = ClientLimits(connections=12, per_address=6, header_seconds=0.5, body_seconds=1.0)
    with serving(tmp_path, accounts=True, limits=limits) as (service, caller):
        caller.headers["Authorization"] = f"Bearer {token}"
        yield service, caller, token


# limits


@pytest.mark.parametrize(
    ("descriptors", "connections", "per_address"), [(64, 8, 4), (256, 192, 96), (1024, 768, 256), (1 << 20, 4096, 256)]
)
def test_the_usual_limits_leave_a_quarter_of_the_file_descriptors(descriptors, connections, per_address):
    limits = ClientLimits().fitted(descriptors)
    assert (limits.connections, limits.per_address) == (connections, per_address)
    assert ClientLimits(connections=5, per_address=9).fitted(descriptors).per_address == 5


def test_an_address_of_the_sixth_version_counts_with_its_network():
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:192.0.2.7") == network_of("192.0.2.7") == "192.0.2.7"
    assert network_of("fe80::1%eth0") == "fe80::/64"
    assert network_of("no address") == "no address"


def test_one_address_holds_a_quarter_of_the_memory_for_bodies():
    memory = BodyMemory(400)
    with memory.reading("192.0.2.1") as first, memory.reading("192.0.2.1") as second:
        first.take(60)
        with pytest.raises(UnavailableError):
            second.take(41)
        second.take(40)
        with memory.reading("192.0.2.2") as other:
            other.take(100)
            assert memory.held == 200
    assert memory.held == 0
    for name in ("a", "b", "c", "d"):
        memory.take(name, 100)
    with pytest.raises(UnavailableError):
        memory.take("e", 1)


def test_depth_against_counting_brackets():
    assert not is_deep(json.loads("[" * DEEPEST + "]" * DEEPEST))
    assert is_deep(json.loads("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1)))
    assert is_deep(json.loads('{"a":' * (DEEPEST + 1) + "1" + "}" * (DEEPEST + 1)))
    assert not is_deep([{"a": [1]}] * 1000)
    assert not is_deep("[[[")


# connections


def test_one_connection_too_many_of_an_address_is_refused_and_those_of_others_are_not(tokens):
    service, caller, _ = tokens
    service.connections.limits = replace(service.connections.limits, header_seconds=60.0, body_seconds=60.0)
    with ExitStack() as stack:
        ours = stack.enter_context(closing(connected(caller.port, "127.0.0.1")))
        slow = [stack.enter_context(closing(connected(caller.port))) for _ in range(6)]
        for raw in slow:
            raw.sendall(head(caller.port, 9) + b"[")
        soon(lambda: service.memory.held == 6)
        assert status_of(stack.enter_context(closing(connected(caller.port)))) == 503  # where six are allowed
        assert caller.send("/events", event(1)).status == 202
        ours.sendall(head(caller.port, 0, path="/health"))
        assert status_of(ours) == 405
        assert service.connections.refused == 1


def test_connections_that_say_nothing_make_room_for_others_of_their_address(tokens):
    """People behind one router share an address with a stranger who holds all of its connections."""
    service, caller, _ = tokens
    service.connections.limits = replace(service.connections.limits, header_seconds=60.0)
    with ExitStack() as stack:
        silent = [stack.enter_context(closing(connected(caller.port))) for _ in range(6)]
        time.sleep(2 * GRACE)
        new = stack.enter_context(closing(connected(caller.port)))
        new.sendall(head(caller.port, 0, path="/health"))
        assert status_of(new) == 405
        assert is_closed(silent[0])
        assert len(service.connections) <= 6


def test_a_kept_connection_that_is_idle_makes_room_for_a_new_one_of_its_address(tokens):
    _, caller, _ = tokens
    with ExitStack() as stack:
        kept = [stack.enter_context(closing(connected(caller.port))) for _ in range(6)]
        for raw in kept:
            raw.sendall(head(caller.port, 0, path="/health"))
            assert status_of(raw) == 405
        new = stack.enter_context(closing(connected(caller.port)))
        assert is_closed(kept[0])
        for raw in (kept[1], new):
            raw.sendall(head(caller.port, 0, path="/health"))
            assert status_of(raw) == 405


def test_a_full_server_closes_a_connection_of_the_address_that_has_most(tokens):
    _, caller, _ = tokens
    with ExitStack() as stack:
        many = [stack.enter_context(closing(connected(caller.port))) for _ in range(6)]
        few = [stack.enter_context(closing(connected(caller.port, f"127.0.0.{n}"))) for n in range(3, 9)]
        assert caller.send("/events", event(1)).status == 202
        assert is_closed(many[0])
        for raw in few:
            raw.sendall(head(caller.port, 0, path="/health"))
            assert status_of(raw) == 405


def test_a_connection_that_is_being_answered_is_not_closed_and_a_new_one_is_told():
    connections = Connections(ClientLimits(connections=4, per_address=2))
    with closing(Listener(socket.AF_INET, connections)) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)

        async def accepted() -> None:
            with ExitStack() as stack:
                for _ in range(2):
                    stack.enter_context(closing(connected(listener.getsockname()[1])))
                    opened, _ = listener.accept()
                    stack.enter_context(closing(opened))
                    connections.of(opened.fileno()).answer()  # type: ignore[union-attr]
                third = stack.enter_context(closing(connected(listener.getsockname()[1])))
                with pytest.raises(BlockingIOError):
                    listener.accept()
                assert status_of(third) == 503
                assert len(connections) == 2
            assert len(connections) == 0

        import asyncio

        asyncio.run(accepted())


def test_headers_that_do_not_come_and_connections_that_say_nothing_are_closed(tokens):
    _, caller, _ = tokens
    with closing(connected(caller.port)) as silent, closing(connected(caller.port)) as slow:
        slow.sendall(b"POST /events HTTP/1.1\r\nHost: x\r\n")
        assert silent.recv(100) == b""
        assert status_of(slow) == 408
        assert is_closed(slow)


def test_the_time_for_headers_begins_with_each_request_of_a_connection(tokens):
    _, caller, token = tokens
    with closing(connected(caller.port)) as raw:
        for _ in range(2):
            raw.sendall(head(caller.port, 0, f"Authorization: Bearer {token}", path="/nowhere"))
            assert status_of(raw) == 404
            time.sleep(0.7)  # a kept connection may wait longer than headers
        raw.sendall(b"P")
        assert status_of(raw) == 408


def test_a_body_that_does_not_come_and_one_that_nobody_wants_are_not_waited_for(tokens):
    _, caller, token = tokens
    with closing(connected(caller.port)) as slow, closing(connected(caller.port)) as unwanted:
        slow.sendall(head(caller.port, 9, f"Authorization: Bearer {token}") + b"[")
        unwanted.sendall(head(caller.port, 10**6, "Authorization: Bearer wrong"))
        assert status_of(unwanted) == 401
        assert status_of(slow) == 408
        assert is_closed(slow)
        assert is_closed(unwanted)


def test_a_body_that_nobody_wants_ends_however_slowly_it_comes(tokens, monkeypatch):
    monkeypatch.setattr(protocol, "LINGER", 0.3)
    service, caller, _ = tokens
    with closing(connected(caller.port)) as raw:
        raw.sendall(head(caller.port, 10**6, "Authorization: Bearer wrong"))
        assert status_of(raw) == 401

        def is_over() -> bool:
            with suppress(OSError):
                raw.send(b" ")
            return len(service.connections) == 0

        soon(is_over, 10.0)


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "after the answer"])
@pytest.mark.parametrize(
    ("method", "path", "line"),
    [("GET", "/health", ""), ("POST", "/events", "Authorization: Bearer wrong"), ("GET", "/nowhere", "X: y")],
    ids=["while it is answered", "with a wrong token", "nowhere"],
)
def test_a_body_that_is_not_http_is_answered_once_and_writes_no_traceback(
    tokens, capfd, caplog, method, path, line, at_once
):
    service, caller, token = tokens
    lines = (f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{caller.port}", line or f"Authorization: Bearer {token}")
    headers = "\r\n".join([*lines, "Content-Type: application/json", "Transfer-Encoding: chunked", "", ""]).encode()
    with closing(connected(caller.port)) as raw:
        raw.sendall(headers + b"no chunk\r\n" * at_once)
        if not at_once:
            assert status_of(raw) in (200, 401, 404)
            raw.sendall(b"no chunk\r\n")
        assert is_closed(raw)
    soon(lambda: service.at_once == 0)
    assert "Traceback" not in capfd.readouterr().err
    assert not caplog.records


def test_a_client_that_does_not_read_its_answer_is_let_go(tokens):
    service, caller, _ = tokens
    with closing(connected(caller.port)) as raw:
        soon(lambda: len(service.connections) == 1)

        def is_over() -> bool:
            with suppress(OSError):  # nothing more fits in, or it is closed
                raw.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 1000, socket.MSG_DONTWAIT)
            return len(service.connections) == 0

        soon(is_over)


# tokens and bodies


def test_a_wrong_token_is_refused_before_the_body_is_read(tokens):
    _, caller, _ = tokens
    with closing(connected(caller.port)) as raw:
        raw.sendall(head(caller.port, 1000, "Authorization: Bearer wrong"))
        assert status_of(raw) == 401  # and nothing of the body was sent


def test_without_a_token_in_the_header_little_is_read_and_a_beacon_is_kept(tokens):
    _, caller, token = tokens
    nobody = Caller(caller.port)
    assert nobody.send("/events", {"token": token, "events": [event("beacon")]}).status == 202
    large = json.dumps({"token": token, "events": [event("large")]}).encode() + b" " * STRANGER_BYTES
    reply = nobody.send("/events", large)
    assert reply.status == 413
    assert "64,000 bytes" in reply.json()["error"]
    assert caller.send("/events", b"[]" + b" " * STRANGER_BYTES).status == 202


def test_many_slow_bodies_of_strangers_refuse_nobody_else(tmp_path):
    token = ApplicationTokens(str(tmp_path / "log")).new("shop")
    with serving(tmp_path, accounts=True) as (_, caller), ExitStack() as stack:
        for _ in range(40):
            raw = stack.enter_context(closing(connected(caller.port)))
            raw.sendall(head(caller.port, 50_000) + b"[")
        for number in range(5):
            assert caller.send("/events", event(number), Authorization=f"Bearer {token}").status == 202


def test_one_forwarded_address_is_refused_and_another_is_not(tmp_path):
    token = ApplicationTokens(str(tmp_path / "log")).new("shop")
    options = ("--behind-proxy", STRANGER, "--allow-host", NAME, "--per-address", "2")
    child = Process(tmp_path, *options, port=free_port())
    try:
        with ExitStack() as stack:

            def forwarded(address: str) -> socket.socket:
                raw = stack.enter_context(closing(connected(child.port)))
                lines = (f"Authorization: Bearer {token}", f"X-Forwarded-For: {address}")
                raw.sendall(head(child.port, 2, *lines).replace(b"127.0.0.1:%d" % child.port, NAME.encode()))
                return raw

            first = [forwarded("192.0.2.1") for _ in range(2)]
            third, other = forwarded("192.0.2.1"), forwarded("192.0.2.2")
            other.sendall(b"[]")
            assert status_of(third) == 503
            assert status_of(other) == 202
            for raw in first:
                raw.sendall(b"[]")
                assert status_of(raw) == 202
    finally:
        child.stop()


def free_port() -> int:
    """A port that nobody has; behind a proxy the address that is printed has none."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


DEEP = json.dumps(event("deep")).encode()[:-1] + b", ?}"


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("/interleave", {"query": "q", "runs": [[1]]}),
        ("/interleave", {"query": "q", "runs": [{}]}),
        ("/assign", {"unit": "u", "expose": [[1]]}),
        ("/events", DEEP.replace(b"?", b'"attributes": ' + b'{"a":' * 960 + b"1" + b"}" * 960)),
        ("/events", DEEP.replace(b"?", b'"shown": ' + b"[" * 900 + b"]" * 900)),
    ],
    ids=[
        "a list for a run",
        "an object for a run",
        "a list for an experiment",
        "attributes 960 deep",
        "a list 900 deep",
    ],
)
def test_odd_values_are_400_and_no_mistake_of_ours(tmp_path, path, values, capfd):
    with serving(tmp_path) as (_, caller):
        reply = caller.send(path, values)
    assert reply.status == 400, reply.text
    assert "Traceback" not in capfd.readouterr().err


# file descriptors


class Limited(Process):
    """A service that may open only so many files."""

    def __init__(self, folder: Path, most: int, *options: str) -> None:
        self.most = most
        super().__init__(folder, *options)

    def start(self) -> None:
        super().start()
        resource.prlimit(self.child.pid, resource.RLIMIT_NOFILE, (self.most, self.most))
        self.output: list[str] = []
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self) -> None:
        assert self.child.stderr is not None
        for line in self.child.stderr:
            self.output.append(line)

    def _ended(self) -> None:
        self.child.wait(30)
        self.listener.join()
        assert self.child.stderr is not None
        self.child.stderr.close()


def answers(caller: Caller) -> bool:
    """Whether a service answers just now."""
    try:
        return caller.get("/health").status == 200
    except (OSError, HTTPException):
        return False


def exhausted(folder: Path, most: int, idle: int, *options: str) -> None:
    """Open more connections than a service may, then see that it says so, packs and answers again."""
    child = Limited(folder, most, "--pack", "0.5", *options)
    caller = child.caller
    try:
        assert caller.send("/events", event(1)).status == 202
        with ExitStack() as stack:
            for _ in range(idle):
                stack.enter_context(closing(connected(child.port)))
            soon(lambda: answers(caller), 8.0)  # before any of them is too late with its headers
            values = caller.get("/health").json()
        assert not values["ok"]
        assert "file descriptors ran out" in values["descriptor_problem"]
        assert values["refused_connections"] > 0
        assert caller.send("/events", event(2)).status == 202
        soon(lambda: caller.get("/health").json()["last_packing"])
        soon(lambda: caller.get("/health").json()["packing_problem"] is None)
        soon(lambda: caller.get("/health").json()["segments"] == 0)
    finally:
        child.stop()
    said = "".join(child.output)
    assert "Traceback" not in said
    assert len(said) < 2000


def test_a_service_without_file_descriptors_goes_on_and_says_so(tmp_path):
    """The limit is lowered after the start, so that connections meet it before their own limit."""
    exhausted(tmp_path, 40, 60)


@pytest.mark.slow
def test_four_hundred_idle_connections_of_256_stop_nobody(tmp_path):
    exhausted(tmp_path, 256, 400, "--connections", "5000", "--per-address", "5000")


def test_idle_connections_beyond_the_files_a_process_may_open_stop_nobody(tmp_path):
    """The usual limits, worked out from `ulimit -n` at the start: health stays well, nothing is written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))  # which the child inherits
    try:
        child = Process(tmp_path, "--pack", "0.5")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        with ExitStack() as stack:
            for _ in range(200):
                stack.enter_context(closing(connected(child.port)))
            for number in range(5):
                assert child.caller.send("/events", event(number)).status == 202
            values = child.caller.get("/health").json()
            assert values["ok"], values
            assert values["connections"] <= 64
            assert values["refused_connections"] >= 100
    finally:
        child.child.send_signal(2)
        _, said = child.child.communicate(timeout=30)
    assert "Traceback" not in said


def test_the_packer_begins_again_after_an_error_and_health_counts_it(tmp_path, monkeypatch):
    monkeypatch.setattr(log_writer, "LOOK", 0.05)
    failures = [OSError(24, "Too many open files"), ValueError("odd")]
    real = log_writer.sealed_segments

    def failing(log: Any) -> list[str]:
        if failures:
            raise failures.pop()
        return real(log)

    monkeypatch.setattr(log_writer, "sealed_segments", failing)
    with serving(tmp_path, pack=0.2) as (service, caller):
        caller.send("/events", event(1))
        soon(lambda: service.intake.log.days() == ["2026-03-01"])
        soon(lambda: caller.get("/health").json()["packing_problem"] is None)
        values = caller.get("/health").json()
        assert (values["ok"], values["packing_restarts"]) == (True, 2)


# the workbench


def test_the_workbench_closes_what_says_nothing_and_goes_on(tmp_path):
    with workbench(
        example(tmp_path / "w"), limits=ClientLimits(connections=8, per_address=4, header_seconds=0.3)
    ) as site:
        with ExitStack() as stack:
            idle = [stack.enter_context(closing(connected(site.port))) for _ in range(20)]
            assert site.client().get("/login").status == 200
            assert all(map(is_closed, idle))
        assert site.client().get("/login").status == 200


def test_a_stranger_s_form_has_little_time_at_the_workbench_too(tmp_path):
    limits = ClientLimits(body_seconds=0.3)
    with workbench(example(tmp_path / "w"), limits=limits) as site, closing(connected(site.port)) as raw:
        raw.sendall(head(site.port, 9, "Sec-Fetch-Site: same-origin", path="/login.json") + b"{")
        assert status_of(raw) == 408
        assert is_closed(raw)

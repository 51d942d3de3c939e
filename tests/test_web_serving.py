"""How a workspace is served: addresses, TLS, a proxy, links and invitations, and what a stranger may send."""

from __future__ import annotations

import gzip
import http.client
import http.server
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cranfield.base.errors import ConventionError, DataError
from cranfield.http.connections import ClientLimits
from cranfield.http.serving import ServerSettings, checked
from cranfield.workbench.pages.people import own_path
from cranfield.workbench.serve import SERVING, entrance, new_link
from cranfield.workbench.site import local_name
from shell import cranfield
from workbench import PASSWORD, Client, Process, Served, example, served

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "bench.example"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return example(tmp_path_factory.mktemp("serving") / "w")


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[Served]:
    with served(folder) as opened:
        yield opened


# TLS


def over_tls(port: int, pem: Path, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
    context = ssl.create_default_context(cafile=str(pem))
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
    usual = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"https://127.0.0.1:{port}"}
    connection.request(method, path, body, usual | headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers


def test_over_tls_the_cookie_is_of_this_host_alone_and_secure(tmp_path: Path, pem: Path) -> None:
    with served(example(tmp_path / "w"), pem=pem) as site:
        site.account("ann", "lead")
        form = f"name=ann&password={PASSWORD.replace(' ', '+')}".encode()
        status, headers = over_tls(site.port, pem, "POST", "/login", form)
        assert status == 303
        name, *flags = headers["Set-Cookie"].split("; ")
        assert name.startswith(f"__Host-cranfield-{site.port}=")
        assert {"Path=/", "HttpOnly", "SameSite=Lax", "Secure"} <= set(flags)
        assert not any(flag.startswith("Domain") for flag in flags)
        assert over_tls(site.port, pem, "GET", "/me", Cookie=name)[0] == 200
        plain = name.removeprefix("__Host-")
        assert over_tls(site.port, pem, "GET", "/me.json", Cookie=plain)[0] == 401
        other = {"Origin": f"http://127.0.0.1:{site.port}"}
        assert over_tls(site.port, pem, "POST", "/login", form, **other)[0] == 403
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            Client(site.port).get("/")


@pytest.mark.slow
def test_every_address_with_tls_demands_accounts_and_is_called_by_its_own_addresses(tmp_path: Path, pem: Path) -> None:
    options = ("--host", "0.0.0.0", "--tls-cert", str(pem), "--tls-key", str(pem))
    process = Process(example(tmp_path / "w"), *options)
    try:
        assert process.link.startswith(f"https://{socket.gethostname().lower()}:{process.port}/join?invitation=")
        own = {"Host": f"127.0.0.1:{process.port}"}
        assert over_tls(process.port, pem, "GET", "/me.json", **own)[0] == 401
        for host in ("evil.example", f"evil.example:{process.port}", f"127.0.0.2:{process.port}", "127.0.0.1"):
            assert over_tls(process.port, pem, "GET", "/me.json", Host=host)[0] == 421
            assert over_tls(process.port, pem, "GET", "/static/web.css", Host=host)[0] == 404
    finally:
        process.stop()


def test_insecure_drops_tls_and_never_accounts(tmp_path: Path) -> None:
    process = Process(example(tmp_path / "w"), "--host", "0.0.0.0", "--insecure")
    try:
        assert process.link.startswith("http://")
        assert "/join?invitation=" in process.link
        nobody = Client(process.port)
        assert nobody.get("/me.json").status == 401
        assert nobody.get("/enter?key=x").status == 403
        form = {"invitation": process.link.partition("invitation=")[2], "name": "ann", "password": "long enough words"}
        plain = {
            "Sec_Fetch_Site": None,
            "Origin": f"http://127.0.0.1:{process.port}",
        }  # as browsers send it off localhost
        joined = nobody.post("/join", form, **plain)
        assert joined.status == 303
        assert joined.headers["set-cookie"].startswith(f"cranfield-{process.port}=")
        assert "Secure" not in joined.headers["set-cookie"]
        assert nobody.post("/login", form, Sec_Fetch_Site=None, Origin="http://evil.example").status == 403
    finally:
        process.stop()


# a proxy


@contextmanager
def proxy_to(port: int, address: str) -> Iterator[int]:
    """A proxy that comes from an address, passes Host on, and adds where its own clients come from."""

    class Passing(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            onward = http.client.HTTPConnection("127.0.0.1", port, source_address=(address, 0), timeout=30)
            came = self.headers.get("X-Forwarded-For")
            sent = {name: value for name, value in self.headers.items() if name != "X-Forwarded-For"}
            sent["X-Forwarded-For"] = f"{came}, {self.client_address[0]}" if came else self.client_address[0]
            onward.request(self.command, self.path, body, sent | {"X-Forwarded-Proto": "https"})
            answer = onward.getresponse()
            data = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            onward.close()

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.skipif(sys.platform != "linux", reason="needs further addresses of this machine: 127.0.0.2")
def test_forwarded_addresses_count_only_from_the_named_proxy(tmp_path: Path) -> None:
    behind = served(example(tmp_path / "w"), proxy="127.0.0.2", names=(NAME,))
    with behind as site, proxy_to(site.port, "127.0.0.2") as trusted, proxy_to(site.port, "127.0.0.3") as other:
        site.account("ann", "lead")
        own: dict[str, Any] = {"Host": NAME, "Origin": f"https://{NAME}", "Sec_Fetch_Site": None}
        wrong = {"name": "ann", "password": "wrong"}
        seen = site.site.throttle.addresses.attempts
        spoofed = "198.51.100.7"
        assert Client(trusted).post("/login", wrong, **own).status == 401
        assert set(seen) == {"127.0.0.1"}
        assert Client(trusted).post("/login", wrong, **own, X_Forwarded_For=spoofed).status == 401
        assert set(seen) == {"127.0.0.1"}  # what a client wrote itself stands left of what the proxy saw
        assert Client(other).post("/login", wrong, **own, X_Forwarded_For=spoofed).status == 401
        assert set(seen) == {"127.0.0.1", "127.0.0.3"}
        assert Client(site.port).post("/login", wrong, **own, X_Forwarded_For=spoofed).status == 401
        assert spoofed not in seen
        signed = Client(trusted).post("/login", {"name": "ann", "password": PASSWORD}, **own)
        assert signed.headers["set-cookie"].startswith("__Host-cranfield-")
        assert "Secure" in signed.headers["set-cookie"]
        assert Client(trusted).post("/login", wrong, **own | {"Origin": f"http://{NAME}"}).status == 403
        assert Client(trusted).get("/login", Host="evil.example").status == 421
        link = site.client("ann").send("/people/invite.json", {"role": "viewer"}).json()["link"]
        assert link.startswith(f"https://{NAME}/join?")


@pytest.mark.parametrize(
    ("manner", "words"),
    [
        (ServerSettings(host="0.0.0.0"), "--tls-cert"),
        (ServerSettings(host="192.0.2.1"), "--tls-cert"),
        (ServerSettings(proxy="*", names=(NAME,)), "IP address"),
        (ServerSettings(proxy="proxy.example", names=(NAME,)), "IP address"),
        (ServerSettings(proxy="10.0.0.1"), "--allow-host"),
    ],
)
def test_what_is_not_safe_or_cannot_work_is_refused(manner: ServerSettings, words: str) -> None:
    with pytest.raises(ConventionError, match=words):
        checked(manner, None, None, False)


def test_a_tls_key_that_others_can_read_is_refused_with_the_chmod_to_type(tmp_path: Path, pem: Path) -> None:
    open_to_all = tmp_path / "key.pem"
    open_to_all.write_bytes(pem.read_bytes())
    open_to_all.chmod(0o644)
    with pytest.raises(DataError, match=f"others can read it; chmod 600 {open_to_all}"):
        checked(ServerSettings(), str(pem), str(open_to_all), False)
    open_to_all.chmod(0o600)
    assert checked(ServerSettings(), str(pem), str(open_to_all), False).tls


@pytest.mark.parametrize(
    "content", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"]
)
def test_a_certificate_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.pem"
    path.write_text(content)
    with pytest.raises(ConventionError, match="expected a certificate in PEM"):
        checked(ServerSettings(), str(path), str(path), False)


@pytest.mark.parametrize("missing", ["sqlalchemy", "starlette", "argon2"])
def test_without_the_extra_help_is_there_and_serving_names_it(tmp_path: Path, missing: str) -> None:
    without = f"import sys; sys.modules[{missing!r}] = None; sys.path[:0] = {sys.path!r}\n"
    without += "from cranfield.cli import cli; cli.main()"
    helped, ran = (
        subprocess.run([sys.executable, "-c", without, "serve", *typed], capture_output=True, text=True, check=False)
        for typed in (["--help"], [str(tmp_path)])
    )
    assert (helped.returncode, "--behind-proxy" in helped.stdout) == (0, True), helped.stderr
    assert (ran.returncode, "pip install 'cranfield[web]'" in ran.stderr) == (2, True), ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("manner", "certificate", "insecure", "accounts", "tls"),
    [
        (ServerSettings(), False, False, False, False),
        (ServerSettings(), False, True, False, False),
        (ServerSettings(), True, False, False, True),
        (ServerSettings(accounts=True), False, False, True, False),
        (ServerSettings(host="::1"), False, False, False, False),
        (ServerSettings(host="0.0.0.0"), True, False, True, True),
        (ServerSettings(host="0.0.0.0"), False, True, True, False),
        (ServerSettings(host="192.0.2.1"), False, True, True, False),
        (
            ServerSettings(proxy="10.0.0.1", names=(NAME,)),
            False,
            False,
            True,
            True,
        ),  # others reach 127.0.0.1 through it
        (ServerSettings(host="0.0.0.0", proxy="10.0.0.1", names=(NAME,)), False, True, True, True),
    ],
)
def test_accounts_and_tls_are_demanded_where_others_reach_it(
    pem: Path, manner: ServerSettings, certificate: bool, insecure: bool, accounts: bool, tls: bool
) -> None:
    path = str(pem) if certificate else None
    got = checked(manner, path, path, insecure)
    assert (got.accounts, got.tls) == (accounts, tls)


def test_hosts_are_those_that_were_named() -> None:
    assert ServerSettings(port=1).hosts == {"127.0.0.1:1", "localhost:1"}
    assert ServerSettings(host="::1", port=1).hosts == {"[::1]:1", "127.0.0.1:1", "localhost:1"}
    assert ServerSettings(host="::1", port=1).url == "http://[::1]:1"
    assert ServerSettings(host="0.0.0.0", port=1).hosts == frozenset()
    assert ServerSettings(host="10.0.0.1", port=443, tls=True).hosts == {"10.0.0.1", "10.0.0.1:443"}
    assert NAME in ServerSettings(proxy="10.0.0.2", names=(NAME,), tls=True).hosts
    assert ServerSettings(proxy="10.0.0.2", names=(NAME,), tls=True).url == f"https://{NAME}"


def test_the_sixth_version_of_the_protocol_is_spoken_at_its_own_address(tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("needs IPv6 on this machine")
    with served(example(tmp_path / "w"), accounts=False, host="::1") as site:
        assert site.url == f"http://[::1]:{site.port}"
        connection = http.client.HTTPConnection("::1", site.port, timeout=30)
        connection.request("GET", entrance(site.site).removeprefix(site.url))
        assert connection.getresponse().status == 303
        connection.close()


def test_a_port_that_is_taken_is_said(tmp_path: Path, site: Served) -> None:
    answer = cranfield("serve", example(tmp_path / "w"), "--port", site.port)
    assert answer.code == 3
    assert "choose another --port" in answer.err


# links


def test_a_key_lets_in_one_of_many_who_come_at_once(tmp_path: Path) -> None:
    with served(example(tmp_path / "w"), accounts=False) as site, ThreadPoolExecutor(8) as threads:
        path = entrance(site.site).removeprefix(site.url)
        statuses = sorted(threads.map(lambda _: site.client().get(path).status, range(8)))
    assert statuses == [303] + [403] * 7


def test_a_link_is_in_no_log_and_no_arguments(tmp_path: Path) -> None:
    process = Process(example(tmp_path / "w"))
    key = process.link.partition("key=")[2]
    try:
        assert Client(process.port).get(f"/enter?key={key}").status == 303
        assert Client(process.port).get(f"/enter?key={key}").status == 403
        arguments = Path(f"/proc/{process.child.pid}/cmdline")
        assert not arguments.exists() or key not in arguments.read_text()
    finally:
        process.child.terminate()
        rest = process.child.stderr.read()  # type: ignore[union-attr]
        process.stop()
    assert key not in rest


@pytest.mark.slow
def test_an_invitation_from_the_command_line_is_used_once(tmp_path: Path) -> None:
    folder = example(tmp_path / "w")
    process = Process(folder, "--accounts")
    try:
        answer = cranfield("serve", folder, "--invite", "viewer")
        assert answer.code == 0, answer.err
        secret = answer.out.strip().partition("invitation=")[2]
        form = {"invitation": secret, "name": "vic", "password": "long enough words"}
        statuses = [Client(process.port).post("/join", form).status for _ in range(2)]
        assert statuses == [303, 410]
        assert cranfield("serve", folder, "--link").out.strip() == f"http://127.0.0.1:{process.port}/"
    finally:
        process.stop()


def test_without_accounts_nobody_is_invited(tmp_path: Path) -> None:
    with served(example(tmp_path / "w"), accounts=False) as site:
        (Path(site.bench.state) / SERVING).write_text(
            json.dumps({"url": site.url, "pid": os.getpid(), "accounts": False})
        )
        entrance(site.site)
        with pytest.raises(DataError, match="--accounts"):
            new_link(site.bench, "viewer")
        assert site.client().get(new_link(site.bench).removeprefix(site.url)).status == 303


def test_whoever_has_an_odd_name_at_this_machine_gets_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("", "a b", "-x", "x" * 65, "dom\\user"):
        monkeypatch.setattr("getpass.getuser", lambda name=name: name)
        assert local_name() == "me"
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    assert local_name() == "ann"


def test_what_lets_somebody_in_is_kept_as_a_hash(tmp_path: Path) -> None:
    folder = example(tmp_path / "w")
    with served(folder) as site:
        client = site.client("ann")
        accounts = site.site.accounts
        secrets = [
            client.headers["Cookie"].partition("=")[2],
            client.send("/me/token.json", {"label": "x"}).json()["token"],
            client.send("/people/invite.json", {"role": "viewer"}).json()["link"].partition("invitation=")[2],
            accounts.new_key(),
        ]
        client.post("/login", {"name": "ann", "password": PASSWORD})
        stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for secret in [*secrets, PASSWORD]:
        assert len(secret) > 20
        assert secret.encode() not in stored


def test_a_password_is_changed_by_who_knows_it_and_ends_the_other_sessions(tmp_path: Path) -> None:
    with served(example(tmp_path / "w")) as site:
        one, two = site.client("ann"), site.client("ann")
        assert one.send("/me/password.json", {"old": "wrong", "new": "another long one"}).status == 403
        assert two.get("/me.json").status == 200
        changed = one.post("/me/password", {"old": PASSWORD, "new": "another long one"})
        assert changed.status == 303
        assert [one.get("/me.json").status, two.get("/me.json").status] == [401, 401]
        assert Client(site.port, changed.headers["set-cookie"].split(";")[0]).get("/me.json").status == 200
        statuses = [site.client().send("/login.json", {"name": "ann", "password": each}).status for each in (PASSWORD,)]
        assert statuses == [401]


# what a stranger may send


def test_static_files_are_compressed_for_clients_that_ask_and_pages_never(site: Served) -> None:
    client = site.client("ann")
    plain = client.get("/static/judge.js")
    assert "content-encoding" not in plain.headers
    assert plain.headers["vary"] == "Accept-Encoding"
    small = client.ask("GET", "/static/judge.js", Accept_Encoding="br, gzip")
    assert small.headers["content-encoding"] == "gzip"
    assert gzip.decompress(small.body) == plain.body
    assert len(small.body) < len(plain.body) / 2
    for refused in ("gzip;q=0", "gzipped", "identity"):
        assert client.ask("GET", "/static/judge.js", Accept_Encoding=refused).body == plain.body
    assert "content-encoding" not in client.ask("GET", "/me", Accept_Encoding="gzip").headers
    unchanged = client.ask("GET", "/static/judge.js", Accept_Encoding="gzip", If_None_Match=plain.headers["etag"])
    assert (unchanged.status, unchanged.body) == (304, b"")


def test_other_methods_are_refused_and_head_sends_no_body(site: Served) -> None:
    client = site.client("ann")
    own = {"Sec_Fetch_Site": "same-origin"}
    for method in ("OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"):
        reply = client.ask(method, "/me", b"", **own)
        assert (reply.status, reply.headers["allow"]) == (405, "GET, POST, HEAD"), method
        assert client.ask(method, "/static/web.css", b"", **own).status == 405
        assert "access-control-allow-methods" not in reply.headers
    head = client.ask("HEAD", "/me")
    assert (head.status, head.body) == (200, b"")
    assert client.ask("HEAD", "/static/web.css").body == b""


def beginning(site: Served, path: str, length: int = 9, cookie: str = "") -> bytes:
    """A request whose body stops after a byte."""
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{site.port}",
        f"Cookie: {cookie}",
        "Sec-Fetch-Site: same-origin",
        f"Content-Length: {length}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\nx").encode()


def test_bodies_are_bounded_and_a_strangers_are_small(site: Served) -> None:
    nobody, ann = site.client(), site.client("ann")
    big = b"name=" + b"x" * (65 << 10)
    kind = {"Content_Type": "application/x-www-form-urlencoded", "Sec_Fetch_Site": "same-origin"}
    assert nobody.ask("POST", "/login.json", big, **kind).status == 413
    assert ann.ask("POST", "/me/token.json", big, **kind).status == 400
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as raw:
        raw.sendall(beginning(site, "/login.json", 10**12))
        assert b" 413 " in raw.recv(200)  # what is announced is refused before it comes


def test_a_body_that_does_not_come_is_not_waited_for_long(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.site, "limits", ClientLimits(body_seconds=0.2))
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as raw:
        raw.sendall(beginning(site, "/login.json"))
        assert b" 408 " in raw.recv(200)
    cookie = site.account("ann", "lead")
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as raw:
        raw.sendall(beginning(site, "/runs.json?name=x.run", cookie=cookie))
        assert b" 408 " in raw.recv(200)


def test_whoever_goes_away_in_the_middle_leaves_no_trace(site: Served, capfd: Any) -> None:
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", site.port), timeout=30) as raw:
            raw.sendall(beginning(site, "/login"))
    assert site.client().get("/login").status == 200
    assert "Traceback" not in capfd.readouterr().err


def test_a_flood_of_headers_is_cut_off(site: Served) -> None:
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as raw:
        raw.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n".encode())
        answer = b""
        try:
            for number in range(3000):
                raw.sendall(f"X-{number}: {'y' * 100}\r\n".encode())
            answer = raw.recv(200)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has hung up
    assert answer == b"" or b" 400 " in answer
    assert site.client().get("/login").status == 200


def test_thousands_of_parameters_are_refused(site: Served) -> None:
    client = site.client("ann")
    many = "&".join(f"a{number}=1" for number in range(10_000))
    assert client.get(f"/runs.json?{many[:60_000]}").status == 400
    form = {"Content_Type": "application/x-www-form-urlencoded", "Sec_Fetch_Site": "same-origin"}
    assert client.ask("POST", "/me.json", many.encode(), **form).status == 400
    assert client.get(f"/login?{'&' * 5000}").status == 400


def test_strange_hosts_and_paths_are_answered_in_words(site: Served) -> None:
    client = site.client("ann")
    for host in ("[", "[::1", "a b", "@", "127.0.0.1:99999999", f"user@127.0.0.1:{site.port}"):
        for path in ("/", "/nowhere", "/static/web.css"):
            reply = client.get(path, Host=host)
            assert reply.status in (400, 404, 421), (host, path)
    for path in (
        "/%00",
        "/document%2Fx",
        "/a%0d%0ab",
        "/%ff",
        "/%E2%80%AE",
        "//evil.example/%2e%2e",
        "/index",
        "/.json",
    ):
        assert client.get(path).status == 404, path


@pytest.mark.parametrize(
    "name", ["../app.py", "..%2fapp.py", "%2e%2e%2fapp.py", "..%5capp.py", "web.css%00", "%2fetc%2fpasswd", ""]
)
def test_no_path_leaves_the_static_files(site: Served, name: str) -> None:
    reply = site.client("ann").get(f"/static/{name}")
    assert reply.status == 404
    assert b"from __future__" not in reply.body


@pytest.mark.parametrize(
    "typed",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        " //evil.example",
        "http://[",
        "javascript:alert(1)",
        "/\u202e",
        "/\udc80",
        "/" + "x" * 3000,
        "",
    ],
)
def test_signing_in_leads_nowhere_else(typed: str) -> None:
    assert own_path(typed) == "/"
    assert own_path("/document?id=a%2Fb&topic=ä") == "/document?id=a%2Fb&topic=ä"


def test_whoever_must_sign_in_comes_back_to_the_page_asked_for(site: Served) -> None:
    asked = "/document?id=a%2Fb%FF&topic=%C3%A4"
    where = site.client().get(asked).headers["location"]
    assert where.startswith("/login?next=")
    assert f'value="{asked.replace("&", "&amp;")}"' in site.client().get(where).text

"""Who comes in: every route with every role, origin and host; sessions, tokens, the local link, headers."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from cranfield.http.refusal import POLICY
from cranfield.workbench.access_control import NOBODY, RANKS
from cranfield.workbench.app import application
from cranfield.workbench.routes import RouteEntry, entries
from workbench import Client, Process, Served, example, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ORIGINS = {  # where a request comes from, and the headers that say so
    "own": {"Sec_Fetch_Site": "same-origin"},
    "own, an old browser": {"Origin": "http://127.0.0.1:{port}"},
    "same host, other port": {"Sec_Fetch_Site": "same-site", "Origin": "http://127.0.0.1:1"},
    "same host, other port, an old browser": {"Origin": "http://127.0.0.1:1"},
    "foreign": {"Sec_Fetch_Site": "cross-site", "Origin": "https://evil.example"},
    "foreign, an old browser": {"Origin": "https://evil.example"},
    "a browser that says neither": {},
    "a sandbox": {"Origin": "null"},
}
OWN = ("own", "own, an old browser")
LEAVING = ("/logout", "/enter")  # they end or begin a session


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(example(tmp_path_factory.mktemp("door") / "w")) as opened:
        yield opened


@pytest.fixture(scope="module")
def people(site: Served) -> dict[str, Client]:
    return {NOBODY: site.client(), **{role: site.client(f"the-{role}", role) for role in RANKS[1:]}}


@pytest.fixture(scope="module")
def own() -> dict[tuple[str, str], int]:
    """What a role is answered at a path when a page of ours asks, for all origins to be compared with."""
    return {}


# In make test the highest role from every origin, and every other role from one of another site.
FOREIGN = next(origin for origin in ORIGINS if origin not in OWN)
GRID = [
    pytest.param(role, origin, marks=[] if role == RANKS[-1] or origin == FOREIGN else [pytest.mark.slow])
    for role, origin in itertools.product(RANKS, ORIGINS)
]


def headers_of(name: str, port: int) -> dict[str, Any]:
    usual = {"Sec_Fetch_Site": None, "Origin": None}
    return usual | {key: value.format(port=port) for key, value in ORIGINS[name].items()}


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: f"{entry.method} {entry.path}")
def test_every_route_lets_in_whom_the_registry_names(
    site: Served, people: dict[str, Client], entry: RouteEntry
) -> None:
    for role, (place, path) in itertools.product(RANKS, enumerate(entry.paths())):
        if entry.path in LEAVING:
            continue
        allowed = RANKS.index(role) >= RANKS.index(entry.role)
        reply = people[role].get(path) if entry.method == "GET" else people[role].send(path, {})
        refused = reply.status in (401, 403) or (reply.status == 303 and "/login?" in reply.headers["location"])
        asks_for_more = b"expected" in reply.body or entry.path in ("/login", "/join", "/me/password")
        assert allowed or refused, (role, path, reply.status)
        assert not (allowed and refused) or asks_for_more, (role, path, reply.status, reply.body[:300])
        assert reply.status < 500, (role, path, reply.body[:300])
        assert reply.headers["content-security-policy"] == POLICY
        assert (place != 1) or json.loads(reply.body) is not None


@pytest.mark.parametrize(("role", "origin"), GRID)
def test_nothing_is_changed_for_another_origin_and_no_other_site_reads(
    site: Served, people: dict[str, Client], own: dict[tuple[str, str], int], role: str, origin: str
) -> None:
    for entry, twin in itertools.product(entries(), (0, 1)):
        if entry.path in LEAVING:
            continue
        client, path, headers = people[role], entry.paths()[twin], headers_of(origin, site.port)
        if entry.method == "GET":
            if (role, path) not in own:
                own[role, path] = client.get(path).status
            reply = client.get(path, **headers)
            assert reply.status == own[role, path] or {reply.status, own[role, path]} == {200, 202}, (path, origin)
            assert "access-control-allow-origin" not in reply.headers
            continue
        reply = client.post(path, {}, **headers) if twin == 0 else client.send(path, {}, **headers)
        foreign = reply.status == 403 and "another site" in reply.text
        assert foreign == (origin not in OWN), (path, origin, reply.status)


# In make test every route with every host, each from another role.
@pytest.mark.parametrize("every_role", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("entry", entries(), ids=lambda entry: f"{entry.method} {entry.path}")
def test_another_host_is_not_answered_for(
    site: Served, people: dict[str, Client], entry: RouteEntry, every_role: bool
) -> None:
    hosts = ("evil.example", "127.0.0.1:1", f"evil.example:{site.port}", f"127.0.0.1:{site.port}.evil.example", "")
    asked = list(itertools.product(RANKS, hosts, entry.paths()))
    if not every_role:
        turns = zip(itertools.cycle(RANKS), itertools.product(hosts, entry.paths()))
        asked = [(role, host, path) for role, (host, path) in turns]
    for role, host, path in asked:
        client = people[role]
        reply = client.get(path, Host=host) if entry.method == "GET" else client.post(path, {}, Host=host)
        assert reply.status == 421, (role, host)
        assert "set-cookie" not in reply.headers


def test_a_token_changes_things_without_an_origin_and_an_ended_one_nothing(site: Served) -> None:
    client = site.client("teller", "viewer")
    token = client.send("/me/token.json", {"label": "script"}).json()["token"]
    program = Client(site.port, token=token)
    assert program.get("/me.json").json()["name"] == "teller"
    assert program.send("/me.json", {"theme": "dark"}, Sec_Fetch_Site=None).json()["theme"] == "dark"
    assert program.get("/people.json").status == 403
    [row] = client.get("/me.json").json()["tokens"]
    assert token not in json.dumps(row)
    assert client.post("/me/token/end", {"id": row["id"]}).status == 303
    assert program.get("/me.json").status == 401


def test_signing_out_ends_the_session_and_a_new_password_all_of_them(site: Served) -> None:
    one, two = site.client("leaver", "viewer"), site.client("leaver", "viewer")
    assert one.post("/logout").status == 303
    assert one.get("/me.json").status == 401
    assert two.get("/me.json").status == 200
    site.site.accounts.set_password("leaver", "x")
    assert two.get("/me.json").status == 401


def test_an_invitation_is_used_once_by_a_post_and_looking_at_it_uses_nothing(site: Served) -> None:
    link = site.client("boss").send("/people/invite.json", {"role": "assessor"}).json()["link"]
    secret, nobody = link.partition("invitation=")[2], site.client()
    for _ in range(3):
        assert nobody.get(f"/join?invitation={secret}").status == 200
    form = {"invitation": secret, "name": "Newcomer", "password": "long enough words"}
    short = nobody.post("/join", {**form, "password": "short"})
    assert short.status == 400
    joined = nobody.post("/join", form)
    assert joined.status == 303
    cookie = joined.headers["set-cookie"].split(";")[0]
    assert Client(site.port, cookie).get("/me.json").json() | {} == Client(site.port, cookie).get("/me.json").json()
    assert Client(site.port, cookie).get("/me.json").json()["role"] == "assessor"
    assert nobody.post("/join", form).status == 410
    assert nobody.get(f"/join?invitation={secret}").status == 410


def test_a_name_and_a_password_begin_a_session_and_wrong_ones_are_slowed_down(site: Served) -> None:
    secret = site.site.accounts.invite("viewer", "boss")
    nobody = site.client()
    nobody.post("/join", {"invitation": secret, "name": "walker", "password": "correct horse battery"})
    right = {"name": "Walker", "password": "correct horse battery", "next": "/runs"}
    signed = nobody.post("/login", right)
    assert (signed.status, signed.headers["location"]) == (303, "/runs")
    assert "HttpOnly" in signed.headers["set-cookie"]
    assert "SameSite=Lax" in signed.headers["set-cookie"]
    for away in ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        assert nobody.post("/login", {**right, "next": away}).headers["location"] == "/"
    replies = [nobody.post("/login", {"name": "victim", "password": "wrong"}) for _ in range(20)]
    assert replies[0].status == 401
    assert replies[-1].status == 429
    assert int(replies[-1].headers["retry-after"]) >= 1


def test_every_answer_says_what_a_browser_may_do_with_it(site: Served, people: dict[str, Client]) -> None:
    for path in ("/", "/api", "/nowhere", "/static/web.css", "/static/nothing.js", "/me.json"):
        got = people["lead"].get(path).headers
        assert got["content-security-policy"] == POLICY
        assert got["x-content-type-options"] == "nosniff"
        assert got["referrer-policy"] == "no-referrer"
    assert people["lead"].get("/me").headers["cache-control"] == "no-store"


def test_a_page_that_is_asked_for_again_costs_a_few_bytes(people: dict[str, Client]) -> None:
    first = people["lead"].get("/api.json")
    again = people["lead"].get("/api.json", If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_what_cannot_be_read_is_refused_in_words(site: Served, people: dict[str, Client]) -> None:
    lead = people["lead"]
    own = {"Sec_Fetch_Site": "same-origin"}
    cases = {
        b"{": ("application/json", 400),
        b"[1]": ("application/json", 400),
        b'{"a": NaN}': ("application/json", 400),
        b"\xff\xfe": ("application/json", 400),
        b"a=%FF": ("application/x-www-form-urlencoded", 400),
        b"x" * (3 << 20): ("application/json", 413),
        b"<a/>": ("text/xml", 415),
    }
    for body, (kind, status) in cases.items():
        reply = lead.ask("POST", "/me.json", body, Content_Type=kind, **own)
        assert (reply.status, "error" in reply.json()) == (status, True), body[:20]
    assert lead.get("/nowhere").status == 404
    assert lead.get("/nowhere.json").json()["error"] == "there is no such page"
    assert lead.ask("DELETE", "/me", b"", **own).status == 405


def test_a_mistake_of_ours_shows_no_trace(
    site: Served, people: dict[str, Client], monkeypatch: Any, capfd: Any
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(site.site.accounts, "settings", broken)
    reply = people["lead"].get("/me")
    assert reply.status == 500
    assert "secret detail" not in reply.text
    assert "secret detail" in capfd.readouterr().err


def test_the_printed_link_lets_one_person_in_once(tmp_path: Path) -> None:
    with served(example(tmp_path / "w"), accounts=False) as site:
        nobody = site.client()
        assert nobody.get("/").status == 403
        assert nobody.get("/login").status == 403
        key = site.site.accounts.new_key()
        from cranfield.workbench.serve import entrance

        link = entrance(site.site)
        path = link.removeprefix(site.url)
        entered = nobody.get(path)
        assert (entered.status, entered.headers["location"]) == (303, "/")
        assert entered.headers["cache-control"] == "no-store"
        assert entered.headers["referrer-policy"] == "no-referrer"
        name, _, _ = entered.headers["set-cookie"].partition("=")
        assert name == f"cranfield-{site.port}"
        me = Client(site.port, entered.headers["set-cookie"].split(";")[0])
        assert me.get("/").status == 200
        assert me.get("/people.json").json()["accounts"] is False
        assert nobody.get(path).status == 403
        assert nobody.get(f"/enter?key={key[:-1]}").status == 403


def test_a_local_session_is_none_where_accounts_are_demanded(site: Served) -> None:
    site.site.accounts.create("here", "lead", None)
    secret = site.site.accounts.begin("here", local=True)
    assert Client(site.port, f"{site.site.manner.cookie}={secret}").get("/me.json").status == 401


def test_serve_prints_a_link_and_another_on_request_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    from shell import cranfield

    folder = example(tmp_path / "w")
    process = Process(folder)
    try:
        nobody = Client(process.port)
        path = process.link.partition(str(process.port))[2]
        assert nobody.get(path).status == 303
        assert nobody.get(path).status == 403
        again = cranfield("serve", folder, "--link")
        assert again.code == 0, again.err
        assert nobody.get(again.out.strip().partition(str(process.port))[2]).status == 303
        arguments = (tmp_path / f"/proc/{process.child.pid}/cmdline").read_text()
        assert "key" not in arguments
    finally:
        process.stop()
    assert process.child.returncode == 0
    assert cranfield("serve", folder, "--link").code == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "--tls-cert"),
        (["--tls-cert", "qrels.txt"], "belong together"),
        (["--tls-cert", "x.pem", "--tls-key", "y.pem"], "no such file"),
        (["--host", "203.0.113.7", "--insecure"], "cannot listen"),
        (["--db", "mysql://x"], "postgresql"),
    ],
)
def test_what_would_not_be_safe_is_refused(tmp_path: Path, options: list[str], words: str) -> None:
    from shell import cranfield

    answer = cranfield("serve", example(tmp_path / "w"), *options)
    assert answer.code in (2, 3)
    assert words in answer.err


def test_the_registry_is_what_is_served(site: Served) -> None:
    paths = {route.path for route in application(site.site).routes}  # type: ignore[attr-defined]
    assert {path for entry in entries() for path in entry.paths()} <= paths

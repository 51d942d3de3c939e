"""Several workspaces on one server: each is as it is alone, under its prefix, and none reaches into another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

from browsers import Watched
from cranfield.base.errors import ConventionError, DataError
from cranfield.workbench.many_workspaces import RESERVED, BrokenWorkspace, refuse_same_names
from cranfield.workbench.pages.people import own_path
from cranfield.workbench.rendering import statics, under
from cranfield.workbench.serve import folders_to_serve
from shell import cranfield
from test_qr_code import read_by_zxing
from test_web_access import problems
from walks import filled, hostile, walk
from workbench import PASSWORD, PASSWORD_HASH, Client, Process, Served, example, served_together

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cranfield.workbench.many_workspaces import WorkspaceServer


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WorkspaceServer, dict[str, Served]]]:
    """A hostile workspace with something on every page, and the example under a name with a blank and a quote."""
    folder = tmp_path_factory.mktemp("together")
    odd = folder / "my 'garden' ü"
    with served_together(hostile(folder / "h"), example(odd), parent=folder) as (server, sites):
        filled(sites["h"])
        yield server, sites


def root(sites: dict[str, Served], cookie: str = "") -> Client:
    """Somebody at the first page."""
    return Client(next(iter(sites.values())).port, cookie)


ADDRESSES = re.compile(r""" (?:href|src|action|formaction|content|data-follow)=["'](/[^"']*)""")


def test_every_address_on_every_page_stays_in_its_workspace(together) -> None:
    _, sites = together
    for name, site in sites.items():
        client, prefix = site.client("zoe", "lead"), site.site.manner.path
        for path in walk():
            reply = client.get(path)
            assert reply.status < 500, path
            for address in ADDRESSES.findall(reply.text):
                assert address.startswith(f"{prefix}/"), (name, path, address)
    assert sites["my 'garden' ü"].site.manner.path == "/my%20%27garden%27%20%C3%BC"


def test_scripts_name_addresses_under_the_prefix_and_nothing_else_changes() -> None:
    for name, file in statics("/garden").items():
        plain = statics()[name].body.decode()
        changed = file.body.decode()
        assert changed.replace("/garden/", "/") == plain
        if name.endswith(".js"):
            assert not re.search(r"""["'`]/(?!garden/)[a-z]""", changed), name
    assert b'"/garden/judge.json"' in statics("/garden")["waiting.js"].body
    assert under("", '<a href="/runs">') == '<a href="/runs">'
    assert under("/g", '<a href="//elsewhere/x" title="/runs">') == '<a href="//elsewhere/x" title="/runs">'


def test_a_session_of_one_workspace_opens_no_other(together) -> None:
    _, sites = together
    one, other = sites.values()
    cookie = one.account("zoe", "lead")
    assert Client(one.port, cookie, prefix=one.site.manner.path).get("/people").status == 200
    reply = Client(one.port, cookie, prefix=other.site.manner.path).get("/people")
    assert reply.status == 303
    prefix = other.site.manner.path
    assert reply.headers["location"] == f"{prefix}/login?next={quote(prefix, safe='')}%2Fpeople"
    renamed = f"{other.site.manner.cookie}={cookie.partition('=')[2]}"
    assert Client(one.port, renamed, prefix=other.site.manner.path).get("/people").status == 303


def test_signing_in_returns_to_the_page_of_the_same_workspace(together) -> None:
    _, sites = together
    site = sites["h"]
    site.account("kim", "assessor")
    form = {"name": "kim", "password": PASSWORD, "next": "/h/topic?topic=2"}
    reply = site.client().post("/login", form)
    assert (reply.status, reply.headers["location"]) == (303, "/h/topic?topic=2")
    assert reply.headers["set-cookie"].startswith(f"cranfield-{site.port}-h=")
    for typed in ("/runs", "//evil.example", "/h//evil.example", "/hh/x", "https://evil.example"):
        assert own_path(typed, "/h") == "/", typed
    assert own_path("/judge/judge", "/judge") == "/judge"
    ended = site.client().get("/judge.json").json()
    assert ended["sign_in"] == "/h/login"


def test_the_first_page_shows_strangers_no_names_and_signs_in_wherever_the_password_fits(together) -> None:
    _, sites = together
    for site in sites.values():
        site.account("pat", "viewer")
    sites["h"].site.accounts.create("lone", "assessor", PASSWORD_HASH)
    stranger = root(sites)
    page = stranger.get("/")
    assert page.status == 200
    assert "garden" not in page.text
    assert stranger.get("/index.json").json() == {"workspaces": [], "broken": [], "problem": ""}
    assert stranger.get("/nothing").status == 404
    wrong = stranger.post("/login", {"name": "pat", "password": "no"})
    assert (wrong.status, "set-cookie" in wrong.headers) == (401, False)
    assert stranger.post("/login", {"name": "stranger", "password": PASSWORD}).status == 401
    for name, number in (("pat", 2), ("lone", 1)):
        cookies = all_cookies(sites, {"name": name, "password": PASSWORD})
        assert len(cookies) == number
        listed = root(sites, "; ".join(cookies)).get("/index.json").json()["workspaces"]
        assert len(listed) == number
        assert {each["account"] for each in listed} == {name}


def all_cookies(sites: dict[str, Served], form: dict[str, str]) -> list[str]:
    """The cookies that signing in on the first page sets: `Client` keeps only the last header of a name."""
    import http.client
    from urllib.parse import urlencode

    port = next(iter(sites.values())).port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    connection.request("POST", "/login", urlencode(form), headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return [value.partition(";")[0] for name, value in answer.getheaders() if name.lower() == "set-cookie"]


def test_failed_attempts_on_the_first_page_are_limited(together) -> None:
    _, sites = together
    sites["h"].account("slow", "viewer")
    statuses = [root(sites).post("/login", {"name": "slow", "password": str(n)}).status for n in range(8)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    for site in sites.values():
        site.site.throttle = type(site.site.throttle)(site.site.throttle.clock)


def test_the_first_page_takes_no_request_of_other_sites_or_hosts(together) -> None:
    _, sites = together
    client = root(sites, sites["h"].account("zoe", "lead"))
    for path in ("/login", "/new"):
        assert client.post(path, {"workspace": "x"}, Sec_Fetch_Site="cross-site").status == 403
        assert client.post(path, {"workspace": "x"}, Sec_Fetch_Site=None, Origin=None).status == 403
    assert client.get("/", Host="evil.example").status == 421
    assert client.get("/h/", Host="evil.example").status == 421
    assert client.ask("PUT", "/").status == 405
    assert client.post("/login", {"name": "x" * 70_000, "password": "x"}).status == 413
    reply = client.get("/")
    assert reply.headers["content-security-policy"].startswith("default-src 'none'")
    assert client.get("/h").headers["location"] == "/h/"
    assert client.get("/static/web.css").status == 200
    assert client.get("/H/").status == 404  # one address per workspace


@pytest.mark.parametrize(
    "path", ["/h/%2e%2e/people", "/h//people", "/h/../people", "/%68/people", "//h/people", "/h%2fpeople"]
)
def test_no_spelling_of_a_path_evades_the_check_of_a_workspace(together, path: str) -> None:
    _, sites = together
    assert root(sites).ask("GET", path).status in (303, 404)


def test_a_lead_creates_a_workspace_and_nobody_else(together, tmp_path: Path) -> None:
    server, sites = together
    assert root(sites, sites["h"].account("ann2", "assessor")).post("/new", {"workspace": "fresh"}).status == 403
    lead = root(sites, sites["h"].account("zoe", "lead"))
    for name, status in (
        ("../up", 400),
        ("static", 409),
        ("H", 409),
        (".x", 400),
        ("", 400),
        ("a/b", 400),
        ("-x", 400),
    ):
        assert lead.post("/new", {"workspace": name}).status == status, name
    assert server.parent is not None
    before = set(sites["h"].bench.folder)
    made = lead.post("/new", {"workspace": "fresh"})
    assert (made.status, made.headers["location"]) == (303, "/fresh/")
    session = made.headers["set-cookie"].partition(";")[0]
    me = Client(lead.port, session, prefix="/fresh").get("/me.json").json()
    assert (me["name"], me["role"]) == ("zoe", "lead")
    assert lead.post("/new", {"workspace": "fresh"}).status == 409
    assert set(sites["h"].bench.folder) == before
    signed = all_cookies(sites, {"name": "zoe", "password": PASSWORD})
    assert any("-fresh=" in each for each in signed)


def test_one_that_cannot_be_opened_is_named_to_leads_and_the_others_are_served(tmp_path: Path) -> None:
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
    (tmp_path / "bad" / "work.db").write_text("this is no database, whatever its name says" * 10)
    process = Process(tmp_path / "good", str(tmp_path / "bad"), "--accounts")
    try:
        assert any(line.startswith("bad is not served: ") for line in process.said)
        assert Client(process.port, prefix="/good").get("/login").status == 200
        assert Client(process.port, prefix="/bad").get("/login").status == 404
    finally:
        process.stop()


def test_a_broken_workspace_is_shown_to_leads_only(together) -> None:
    server, sites = together
    server.broken.append(BrokenWorkspace("bad", "is damaged"))
    try:
        assert "is damaged" in root(sites, sites["h"].account("zoe", "lead")).get("/").text
        assert "is damaged" not in root(sites, sites["h"].account("vic", "viewer")).get("/").text
        assert "is damaged" not in root(sites).get("/").text
    finally:
        server.broken.clear()


def test_one_link_opens_all_on_this_machine_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "all" / name).mkdir(parents=True)
    process = Process(tmp_path / "all" / "one", str(tmp_path / "all" / "two"))
    try:
        path = process.link[len(f"http://127.0.0.1:{process.port}") :]
        client = Client(process.port)
        assert client.get("/one/").status == 403
        assert client.get(path).status == 303
        assert client.get(path).status == 403
        again = cranfield("serve", tmp_path / "all" / "one", tmp_path / "all" / "two", "--link").out.strip()
        assert "/enter?key=" in again
        assert client.get(again[len(f"http://127.0.0.1:{process.port}") :]).status == 303
        alone = cranfield("serve", tmp_path / "all" / "two", "--link").out.strip()
        assert f":{process.port}/two/enter?key=" in alone
        entered = client.get(alone[len(f"http://127.0.0.1:{process.port}") :])
        assert entered.headers["location"] == "/two/"
    finally:
        process.stop()


def test_folders_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    for name in ("a/garden", "b/Garden", "c/static", "empty"):
        (tmp_path / name).mkdir(parents=True)
    with pytest.raises(DataError, match="have the same name"):
        refuse_same_names([str(tmp_path / "a/garden"), str(tmp_path / "b/Garden")])
    for name in RESERVED:
        with pytest.raises(DataError, match="cannot be called"):
            refuse_same_names([str(tmp_path / name)])
    with pytest.raises(DataError, match="found none; make one"):
        folders_to_serve([], [], str(tmp_path / "empty"))
    with pytest.raises(ConventionError, match="one database per FOLDER"):
        folders_to_serve(["a", "b"], ["x.db"], None)
    with pytest.raises(ConventionError, match="name the FOLDER"):
        folders_to_serve([], [], None)
    chosen = folders_to_serve(["a", "b"], ["x.db", "y.db"], None)
    assert (chosen.several, chosen.database("b")) == (True, "y.db")
    assert not folders_to_serve(["a"], [], None).several


def test_in_a_browser_pages_scripts_and_storage_stay_apart(together, browser: Any) -> None:
    _, sites = together
    one, other = sites["h"], sites["my 'garden' ü"]
    context = browser.new_context(base_url=one.url, bypass_csp=True)
    for site in (one, other):
        key, _, value = site.account("zoe", "lead").partition("=")
        context.add_cookies([{"name": key, "value": value, "url": f"http://127.0.0.1:{site.port}/"}])
    watched = Watched(context)
    page = watched.page
    for path in ("/", "/nothing"):
        page.goto(f"http://127.0.0.1:{one.port}{path}")
        assert not problems(page)
    for site in (one, other):
        prefix = site.site.manner.path
        for path in ("/", "/judge", "/rounds", "/people", "/import", "/topic"):
            watched.requests.clear()
            page.goto(f"http://127.0.0.1:{site.port}{prefix}{path}")
            page.wait_for_timeout(300)
            outside = [url for url in watched.requests if not urlsplit(url).path.startswith(f"{prefix}/")]
            assert not outside, outside
    page.goto(f"{other.url}/")
    page.click("nav a.all")
    page.wait_for_url(f"http://127.0.0.1:{one.port}/")
    assert page.locator("main ul a").count() >= 2
    page.goto(f"{one.url}/judge")
    page.wait_for_selector("body[data-offline=ready]", state="attached")
    own = "navigator.serviceWorker.getRegistrations()"
    scopes = page.evaluate(f"{own}.then(all => all.map(each => new URL(each.scope).pathname))")
    assert f"{one.site.manner.path}/" in scopes
    assert all(scope != "/" for scope in scopes)
    names = page.evaluate("caches.keys()")
    assert any(name.startswith("cranfield/h ") for name in names)
    assert not any(name.startswith("cranfield ") for name in names)
    assert not [text for text in watched.said if "Content Security" in text or "Error" in text]
    context.close()


def test_an_invitation_has_a_code_that_a_phone_reads_and_a_button_that_copies_it(together, browser: Any) -> None:
    _, sites = together
    site = sites["h"]
    context = site.context(browser, "zoe", "lead")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{site.url}/people")
    page.click("text=Create a link")
    link = page.inner_text("#invitation")
    assert link.startswith(f"{site.url}/join?invitation=")
    page.click("summary:has-text('QR code')")
    assert page.locator("svg.qr").is_visible()
    svg = page.locator("svg.qr").evaluate("each => each.outerHTML")
    size = int(re.search(r'viewBox="0 0 (\d+)', svg)[1]) - 8  # type: ignore[index]
    dark = {(int(x) - 4, int(y) - 4) for x, y in re.findall(r"M(\d+) (\d+)h", svg)}
    assert read_by_zxing([[(x, y) in dark for x in range(size)] for y in range(size)]) == [link]
    page.click("text=Copy the link")
    page.wait_for_selector("#copied:has-text('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == link
    assert site.client().get(link[len(site.url) :]).status == 200
    context.close()

"""Sign-in by a trusted proxy's header: from its address alone, one name, and nothing that a client can forge."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from cranfield.base.errors import ConventionError
from cranfield.http.serving import ServerSettings, checked
from cranfield.store.accounts import LONGEST
from workbench import PASSWORD, Client, Served, example, served, served_together

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEADER = "X-Forwarded-User"
NAME = "bench.example"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return example(tmp_path_factory.mktemp("header") / "w")


@contextmanager
def behind(folder: Path, proxy: str = "127.0.0.1", role: str = "assessor") -> Iterator[Served]:
    with served(folder, proxy=proxy, names=(NAME,), auth_header=HEADER, auth_role=role) as site:
        yield site


def by_proxy(site: Served, name: str | None, prefix: str = "") -> Client:
    client = Client(site.port, prefix=prefix)
    client.headers["Host"] = NAME
    if name is not None:
        client.headers[HEADER] = name
    return client


def raw(site: Served, *headers: bytes, path: bytes = b"/me.json") -> int:
    """The status of a request with headers of any bytes."""
    lines = [b"GET " + path + b" HTTP/1.1", b"Host: " + NAME.encode(), b"Connection: close", *headers]
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as connection:
        connection.sendall(b"\r\n".join(lines) + b"\r\n\r\n")
        return int(connection.makefile("rb").readline().split()[1])


def test_a_name_from_the_proxy_is_an_account_of_the_given_role(folder: Path) -> None:
    with behind(folder) as site:
        me = by_proxy(site, "ann@example.org").get("/me.json").json()
        assert (me["name"], me["role"]) == ("ann@example.org", "assessor")
        assert by_proxy(site, "ANN@example.org").get("/me.json").json()["name"] == "ann@example.org"
        assert by_proxy(site, "ann@example.org").get("/people").status == 403
        site.site.accounts.set_active("ann@example.org", False)
        refused = by_proxy(site, "ann@example.org").get("/me.json")
        assert (refused.status, "switched off" in refused.text) == (403, True)
        site.site.accounts.create("zoe", "lead", None)
        assert by_proxy(site, "zoe").get("/people.json").status == 200
        assert by_proxy(site, "grün".encode().decode("latin-1")).get("/me.json").json()["name"] == "grün"


@pytest.mark.parametrize("name", [None, "", "   "])
def test_without_a_name_nobody_is_signed_in_and_no_password_helps(folder: Path, name: str | None) -> None:
    with behind(folder) as site:
        site.account("pia", "lead")
        client = by_proxy(site, name)
        reply = client.get("/me.json")
        assert (reply.status, reply.json()["sign_in"]) == (403, "")
        assert client.get("/people").status == 403  # and no detour to a form of passwords
        assert client.get("/login").status == 403
        same = {"Origin": f"https://{NAME}", "Sec-Fetch-Site": None}
        assert client.post("/login", {"name": "pia", "password": PASSWORD}, **same).status == 403
        session = Client(site.port, site.account("pia", "lead"))
        session.headers["Host"] = NAME
        assert session.get("/me.json").status == 403  # a cookie does not count


def test_the_header_from_any_other_address_is_ignored_and_logged(folder: Path, capfd: Any) -> None:
    with behind(folder, proxy="10.0.0.1") as site:
        site.account("zoe", "lead")
        for more in ({}, {"X_Forwarded_For": "10.0.0.1"}, {"X_Real_IP": "10.0.0.1"}, {"Forwarded": "for=10.0.0.1"}):
            reply = by_proxy(site, "zoe").get("/people.json", **more)
            assert (reply.status, "accounts" in reply.text) == (403, False), more
        assert by_proxy(site, "mallory").get("/me.json").status == 403
        assert site.site.accounts.find("mallory") is None
    assert f"ignored {HEADER} from 127.0.0.1, which is not the proxy" in capfd.readouterr().err


def test_addresses_that_the_proxy_forwards_do_not_decide_whom_it_is_trusted_for(folder: Path) -> None:
    """The peer of the connection counts, not the client that X-Forwarded-For names."""
    with behind(folder) as site:
        assert by_proxy(site, "kim").get("/me.json", X_Forwarded_For="203.0.113.9").json()["name"] == "kim"


def test_what_is_no_single_name_is_refused(folder: Path) -> None:
    with behind(folder) as site:
        before = len(site.site.accounts.all())
        header = HEADER.encode()
        assert raw(site, header + b": ann") == 200
        for values, status in (
            ([b"ann", b"zoe"], 400),
            ([b"", b"zoe"], 400),
            ([b"ann", b"ann"], 400),
            ([b"ann, zoe"], 403),
            ([b"\xff\xfe"], 400),
            ([b"\xed\xa0\x80"], 400),  # a lone surrogate
            ([b"x" * (LONGEST + 1)], 403),
            ([b"<script>"], 403),
            ([b"../x"], 403),
            ([b"-x"], 403),
            ([b"a\tb"], 403),
            ([b"a\xe2\x80\xaeb"], 403),  # right to left
            ([b"'; DROP TABLE accounts"], 403),
        ):
            assert raw(site, *(header + b": " + each for each in values)) == status, values
        assert raw(site, header + b": a\x00b") in (400, 403)
        assert raw(site, b"X_Forwarded_User: zoe") == 403  # another header
        assert len(site.site.accounts.all()) == before + 1


def test_with_none_people_join_by_an_invitation_which_gives_its_role(folder: Path) -> None:
    with behind(folder, role="") as site:
        stranger = by_proxy(site, "new.person")
        assert stranger.get("/me.json").status == 403
        assert site.site.accounts.find("new.person") is None
        secret = site.site.accounts.invite("lead", by="")
        shown = stranger.get(f"/join?invitation={secret}")
        assert (shown.status, "Join as new.person" in shown.text, "Password" in shown.text) == (200, True, False)
        same = {"Origin": f"https://{NAME}", "Sec-Fetch-Site": None}
        assert by_proxy(site, None).post("/join", {"invitation": secret}, **same).status == 403
        assert stranger.post("/join", {"invitation": secret}, Sec_Fetch_Site="cross-site").status == 403
        assert stranger.post("/join", {"invitation": secret}, **same).status == 303
        assert stranger.get("/people").status == 200
        assert by_proxy(site, "other").post("/join.json", {"invitation": secret}, **same).status in (400, 403, 410)
        assert site.site.accounts.find("other") is None
        named = site.site.accounts.invite("viewer", "", "somebody")
        assert by_proxy(site, "other").post("/join.json", {"invitation": named}, **same).status == 400


def test_changes_still_need_a_page_of_ours_and_tokens_still_work(folder: Path) -> None:
    with behind(folder) as site:
        site.account("zoe", "lead")
        lead = by_proxy(site, "zoe")
        assert lead.post("/people/invite", {"role": "viewer"}, Sec_Fetch_Site="cross-site").status == 403
        token = site.site.accounts.new_token("zoe", "program")
        program = Client(site.port, token=token)
        program.headers["Host"] = NAME
        assert program.get("/people.json").status == 200
        page = lead.get("/me").text
        assert "you sign out there" in page
        assert "Change password" not in page
        assert "New password link" not in lead.get("/people").text


def test_the_first_page_of_several_makes_no_accounts(tmp_path: Path) -> None:
    more: dict[str, Any] = {"proxy": "127.0.0.1", "names": (NAME,), "auth_header": HEADER, "auth_role": "assessor"}
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with served_together(tmp_path / "one", tmp_path / "two", **more) as (_, sites):
        client = by_proxy(sites["one"], "kim")
        assert [each["name"] for each in client.get("/index.json").json()["workspaces"]] == ["one", "two"]
        assert all(not site.site.accounts.all() for site in sites.values())
        assert by_proxy(sites["one"], "kim", "/one").get("/me.json").json()["role"] == "assessor"
        assert by_proxy(sites["one"], None).get("/index.json").json()["workspaces"] == []
        assert not sites["two"].site.accounts.all()


def test_the_header_needs_a_proxy_and_a_name_that_headers_have() -> None:
    with pytest.raises(ConventionError, match="trusted from a proxy alone"):
        checked(ServerSettings(auth_header=HEADER), None, None, False)
    with pytest.raises(ConventionError, match="expected the name of a header"):
        checked(ServerSettings(auth_header="X: y", proxy="127.0.0.1", names=(NAME,)), None, None, False)
    assert checked(ServerSettings(auth_header=HEADER, proxy="127.0.0.1", names=(NAME,)), None, None, False).accounts

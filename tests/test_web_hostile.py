"""Hostile text on every page is shown and not run; nothing that is sent makes a server stumble or tell where it lives."""

from __future__ import annotations

import itertools
import json
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

from browsers import EVIL, Watched
from cranfield.workbench.routes import entries
from databases import new_database
from walks import FILES, PARAMETERS, RUN, filled, hostile, people, settled, walk, walk_once
from workbench import Client, Served, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ODD = [
    "\0",
    "%ED%A0%80",
    "%FF",
    "../../etc/passwd",
    "-1",
    "1e400",
    "9" * 400,
    "NaN",
    "{{7*7}}",
    "' OR 1=1 --",
    "\u202e",
    "",
]
VALUES: list[Any] = ["\0", "\ud800", "\udc80", EVIL, 1e300, -1, 2**70, True, None, [], {}, ["\ud800", 3], {"a": "\0"}]
FIELDS = """name topic document grade note id role do label theme policy state before runs assessors more_assessors depth seed
lease gold gold_count gold_share passing after round old new invitation password next kind pair said comparison one other topics
per_topic overlap strategy events have n of refers sure passage seconds aspect age time""".split()

SHOWN = """() => [  // what would run, and the text of the page
  [...document.querySelectorAll(
    'img, script:not([src]):not([type="application/json"]), style, [onerror], [onclick], [style]'
  )].map((each) => each.outerHTML.slice(0, 120)),
  document.body.innerText,
]"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("secret-place") / RUN.removesuffix(".json")
    with served(hostile(folder)) as opened:
        filled(opened)
        settled(opened.client("zoe"))
        yield opened


# In make test every page once; what the other parameters show is looked at without a browser below.
@pytest.mark.parametrize(
    ("role", "paths"),
    [
        pytest.param("lead", walk_once, id="lead-once"),
        *(pytest.param(each, walk, id=each, marks=pytest.mark.slow) for each in ("lead", "assessor", "viewer")),
    ],
)
def test_hostile_text_is_shown_and_not_run(
    site: Served, browser: Any, role: str, paths: Callable[[], list[str]]
) -> None:
    context = site.context(browser, {"lead": "zoe", "assessor": "ann", "viewer": "vic"}[role], role)
    seen, shown = Watched(context), 0
    for path in paths():
        answer = seen.page.goto(path, wait_until="load")
        assert answer.status < 500, path
        refused = [said for said in seen.said if "Failed to load resource" not in said or answer.status < 400]
        assert not refused, f"{path} says {refused}"
        seen.said.clear()
        run, text = seen.page.evaluate(SHOWN)
        assert run == [], path
        shown += EVIL in text
    assert shown > (10 if role != "assessor" else 5)
    assert {urlsplit(each).netloc for each in seen.requests} == {f"127.0.0.1:{site.port}"}
    context.close()


def test_every_kind_of_text_is_on_some_page(site: Served) -> None:
    from markupsafe import escape

    lead = site.client("zoe")
    document, blame, round_ = (
        lead.get(walked).text
        for walked in (
            f"/document?id={quote(EVIL, safe='')}&topic={quote(EVIL, safe='')}",
            f"/label?topic={quote(EVIL, safe='')}&document={quote(EVIL, safe='')}",
            f"/round?name={quote(EVIL, safe='')}",
        )
    )
    said = str(escape(EVIL))
    assert document.count(said) >= 5  # title, id, query, field's name, its value
    assert blame.count(said) >= 3  # document, topic, note
    assert said in round_
    assert said in lead.get("/versions").text  # its note
    assert EVIL in unescape(lead.get("/topic").text)


@pytest.mark.parametrize("ending", ["", ".json", ".csv"])
def test_no_page_says_where_the_workspace_lies(site: Served, ending: str) -> None:
    for role, client in people(site):
        for path in walk(ending, files=True):
            said = client.get(path).body
            assert b"secret-place" not in said, (role, path)
            assert b"Traceback" not in said, (role, path)
            page = not ending and path.partition("?")[0] not in FILES
            assert not (page and b"<img src=x" in said), (role, path)


def stumbles(site: Served, clients: list[Client], odd: list[str]) -> list[str]:
    """Requests with odd parameters and fields that are answered by an error of ours."""
    found = []
    for client in clients:
        for entry in (each for each in entries() if each.method == "GET" and each.path != "/enter"):
            names = dict.fromkeys(name for query in PARAMETERS[entry.path] for name in query)
            usual = PARAMETERS[entry.path][-1]
            for name, value in itertools.product([*names, "of"], odd):
                rest = "&".join(f"{key}={quote(text, safe='')}" for key, text in usual.items() if key != name)
                path = f"{entry.paths()[1]}?{name}={value if '%' in value else quote(value, safe='')}&{rest}"
                reply = client.get(path)
                found += [f"{path} {reply.text}"] * (reply.status >= 500)
        for entry in (each for each in entries() if each.method == "POST" and each.path not in ("/logout", "/join")):
            for value in VALUES:
                reply = client.send(f"{entry.paths()[1]}?name=x.run", dict.fromkeys(FIELDS, value))
                throttled = reply.status == 503 and "sign in" in reply.text
                found += [f"{entry.path} {json.dumps(value)} {reply.text}"] * (reply.status >= 500 and not throttled)
    return found


def test_nothing_that_is_sent_makes_the_server_stumble(tmp_path: Path) -> None:
    with served(hostile(tmp_path / "w")) as site:
        filled(site)
        assert stumbles(site, [site.client("zoe")], ODD[:2]) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_nothing_odd_that_anybody_sends_makes_a_server_stumble(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    db = new_database(request.getfixturevalue("postgres")) if kind == "postgresql" else None
    with served(hostile(tmp_path / "w"), db) as site:
        filled(site)
        assert stumbles(site, [client for _, client in people(site)], ODD) == []


def test_a_table_is_no_formula_for_a_spreadsheet(tmp_path: Path) -> None:
    from cranfield.judging.event import Event
    from cranfield.judging.policies import PolicySettings
    from cranfield.judging.versions import freeze

    with served(hostile(tmp_path / "w")) as site:
        formula = '=HYPERLINK("x"),y'
        site.bench.log.add([Event(topic="=1+1", document=formula, grade=1, assessor="ann", note="=2+2")])
        freeze(site.bench.log, "v", "latest", PolicySettings(), "=3+3")
        lead: Client = site.client("zoe")
        label = f"/label.csv?topic=%3D1%2B1&document={quote(formula)}"
        for path in ("/version.csv?name=v", "/versions.csv", "/topic.csv", label):
            text = lead.get(path).text
            assert "'=" in text, path
            assert not any(cell.startswith("=") for line in text.splitlines() for cell in line.split(",")), path

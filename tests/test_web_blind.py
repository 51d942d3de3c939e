"""Blind judging: whoever judges learns nothing of others' grades, of gold, or of the runs, byte by byte.

Two workspaces hold the same documents, accounts, rounds and events at the same times. Everything that an assessor must
not learn differs: others' grades, notes and passages, the grades of gold and of the collection, the names of the runs and
the order in which they rank documents. Whatever an assessor may ask is asked of both; every byte must be the same.

The test goes through the registry. A route that is refused to blind assessors needs nothing here. A route that they may
call is in SHOWN or SENT, with the parameters that matter; the test fails for one that is missing.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import pytest
from hypothesis import settings

from cranfield.judging import event as events_module
from cranfield.judging.event import Event
from cranfield.judging.policies import PolicySettings
from cranfield.judging.round_changes import ChangeRequest, change_round
from cranfield.judging.round_plan import PRIORITY, SHUFFLED, Round, RoundItem
from cranfield.judging.rounds import open_round, set_state
from cranfield.judging.versions import freeze
from cranfield.store import accounts as accounts_module
from cranfield.workbench import assessment, browser_events
from cranfield.workbench.access_control import ASSESSOR, may
from cranfield.workbench.pages.prefer import open_comparison_of_runs
from cranfield.workbench.rendering import statics
from cranfield.workbench.routes import RouteEntry, entries
from databases import new_database
from hypotheses import QUICK
from workbench import PASSWORD, Client, Reply, Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = "2026-03-01T10:00:00.000000Z"
TOPICS = ("t1", "t2")
DOCUMENTS = [f"d{number:02}" for number in range(16)]
POOL, GOLD = DOCUMENTS[:8], DOCUMENTS[8:12]
HASTY = settings.get_current_profile_name() == QUICK
COMPARES = "dora"  # judges in comparisons only
ADAPTIVE = "learning"  # the round whose next document may depend on others' labels


class Secrets(NamedTuple):
    """What an assessor must not learn."""

    word: str  # in notes, passages and names
    runs: tuple[str, str, str, str]  # two that are pooled, two that are compared
    backwards: bool  # whether the pooled runs rank in the opposite order
    grades: tuple[int, ...]  # of others, in turn
    gold: tuple[int, ...]


WORLDS = (
    Secrets("saffron", ("alpha", "beta", "gamma", "delta"), False, (0, 2, 1, 0, 1), (1, 0, 2, 2)),
    Secrets("cobalt", ("zulu", "yankee", "mike", "november"), True, (2, 1, 0, 2, 2), (2, 2, 0, 0)),
)


def folder_of(folder: Path, secrets: Secrets) -> Path:
    """The files of a workspace; both have the same name."""
    (folder / "runs").mkdir(parents=True)
    rows = [{"id": each, "title": f"Title {each}", "text": f"Text {each} of roses"} for each in DOCUMENTS]
    rows[0] |= {"image": "rose.png", "price": 3}
    (folder / "images").mkdir()
    (folder / "images" / "rose.png").write_bytes(b"\x89PNG\r\n\x1a\nrose")
    (folder / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    topics = [{"id": each, "title": f"roses {each}", "description": "roses", "narrative": ""} for each in TOPICS]
    (folder / "topics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in topics))
    (folder / "guidelines.md").write_text("# Guidelines\n\nRead.\n")
    grades = "".join(f'[grades.{grade}]\nlabel = "label {grade}"\n' for grade in (0, 1, 2))
    (folder / "collection.toml").write_text(
        f'name = "c"\ntitle = "c"\n[grades]\nrelevant_from = 1\n{grades}[card]\nkind = "product"\n'
    )
    gold = [f"{topic} 0 {each} {grade}\n" for topic in TOPICS for each, grade in zip(GOLD, secrets.gold, strict=True)]
    (folder / "qrels.txt").write_text("".join(gold))
    ahead, turned = POOL, [*POOL[1:], POOL[0]]
    pooled = (ahead, turned) if not secrets.backwards else (ahead[::-1], turned[::-1])
    compared = DOCUMENTS[:6], [*DOCUMENTS[12:14], *DOCUMENTS[:4]]
    for name, ranking in zip(secrets.runs, (*pooled, *compared), strict=True):
        lines = [
            f"{t} Q0 {each} {place} {99 - place} {name}\n" for t in TOPICS for place, each in enumerate(ranking, 1)
        ]
        (folder / "runs" / f"{name}.run").write_text("".join(lines))
    return folder


def lived_in(site: Served, secrets: Secrets) -> None:
    """Rounds, comparisons, labels of others, decisions, a version: the same in both workspaces but for the secrets."""
    log, grades, word = site.bench.log, iter(secrets.grades * 100), secrets.word
    for name in ("ann", "bob", "dora"):
        site.account(name, "assessor")
    lead = site.client("lea")
    form = {"runs": list(secrets.runs[:2]), "depth": "8", "name": "pooled", "overlap": "2", "assessors": ["ann", "bob"]}
    form["again"] = "yes"  # the collection has judged every document
    form |= {"gold": "collection", "gold_count": "4", "gold_share": "30", "repeat_share": "20", "seed": "5"}
    opened = lead.send("/rounds/new.json", form)
    assert opened.status == 200, opened.text
    lists = {topic: dict.fromkeys(secrets.runs[:2], POOL) for topic in TOPICS}
    both = ("ann", "bob")
    open_round(log, Round(name=ADAPTIVE, strategy="move-to-front", lists=lists, assessors=both), [])
    gold = [
        RoundItem(topic, each, 0, 1.0, "gold", grade)
        for topic in TOPICS
        for each, grade in zip(GOLD, secrets.gold, strict=True)
    ]
    open_round(log, Round(name="entry", passing=0.8, gold_share=1.0, assessors=both), gold)
    open_round(log, Round(name="advanced", after="entry", assessors=both), [RoundItem("t1", "d14")])
    shuffled = [RoundItem(topic, each, 2) for topic in TOPICS for each in (POOL[::-1] if secrets.backwards else POOL)]
    gold += [RoundItem("t3", f"g{i}", 0, 1.0, "gold", grade) for i, grade in enumerate(secrets.gold)]
    open_round(log, Round(name="mixed", order=SHUFFLED, gold_share=0.2, overlap=2, assessors=both), [*shuffled, *gold])
    open_round(log, Round(name="chosen", order=SHUFFLED, overlap=2, choose_topics=True), shuffled)
    people = dict.fromkeys(TOPICS, both)
    open_round(log, Round(name="assigned", order=SHUFFLED, overlap=2, assessors=both, topic_people=people), shuffled)
    change_round(log, "mixed", ChangeRequest(order=PRIORITY), word)
    change_round(log, "mixed", ChangeRequest(order=SHUFFLED, drop=[("t2", "d07")]), word)
    open_round(log, Round(name="over", assessors=both), [RoundItem("t1", each) for each in DOCUMENTS[12:]])
    for kind in ("lists", "documents"):
        people = ["ann", "bob", "dora"]
        open_comparison_of_runs(site.bench, kind, kind, *secrets.runs[2:], depth=3, overlap=2, assessors=people)

    def secret(document: str, who: str, topic: str = "t1", **more: Any) -> Event:
        said = {"note": f"{word} note", "passage": f"{word} passage", "time": NOW, "grade": next(grades)}
        return Event(topic=topic, document=document, assessor=who, id=f"{who}-{topic}-{document}", **(said | more))

    log.add([secret(each, who, topic) for each in DOCUMENTS[:14] for who in ("cy", "dee") for topic in TOPICS])
    log.add([secret(each, "m/model", source="model") for each in DOCUMENTS[:14]])
    log.add([secret("d03", "lea", kind="adjudication"), secret("d12", "lea", kind="adjudication")])
    bob = site.client("bob", "assessor")
    topic = {"round": "chosen", "topic": "t2"}
    assert bob.send("/judge/topics.json", topic).status == 200
    for name in ("pooled", "entry", ADAPTIVE, "over", "mixed", "chosen", "assigned"):
        rows = bob.get(f"/judge.json?round={name}").json()["items"]
        labels = [
            {"id": f"bob-{name}-{place}", "topic": row["topic"], "document": row["document"], "grade": next(grades)}
            for place, row in enumerate(rows)
        ]
        said = bob.send("/judge.json", {"round": name, "events": [{**each, "note": word} for each in labels], "n": 0})
        assert said.status == 200, said.text
    for kind in ("lists", "documents"):
        for pair in bob.get(f"/prefer.json?comparison={kind}").json()["pairs"]:
            choice = ("left", "same", "right")[next(grades)]
            row = {"id": f"bob-{kind}-{pair['pair']}", "pair": pair["pair"], "said": choice, "note": word}
            assert bob.send("/prefer.json", {"of": kind, "events": [row], "n": 0}).status == 200
    freeze(log, "v1", "latest", PolicySettings(), word)
    set_state(log, "over", "closed")


def own(site: Served, name: str) -> None:
    """The assessor's own labels: the same grade for the same document in both workspaces."""
    client = site.client(name, "assessor")
    for round_name, count in (("pooled", 4), ("entry", 8), ("mixed", 6), ("assigned", 3)):
        for turn in range(count):
            [row, *_] = client.get(f"/judge.json?round={round_name}&ahead=1").json()["items"]
            label = {"topic": row["topic"], "document": row["document"], "grade": 1, "note": "mine"}
            label["id"] = f"{name}-{round_name}-{turn}"
            said = client.send("/judge.json", {"round": round_name, "events": [label], "n": 0})
            assert said.json()["outcomes"][0]["said"] == "kept", said.text


class FixedSecrets:
    """Instead of random numbers and the clock of ids: both workspaces count from the same number."""

    def __init__(self) -> None:
        self.count = 0

    def token_hex(self, *_: Any) -> str:
        self.count += 1
        return f"secret{self.count:06}"

    token_urlsafe = token_hex

    def time_ns(self) -> int:
        return 1


SAME = FixedSecrets()
NUMBERS = itertools.count(1)  # of requests


class FixedTime(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: Any = None) -> FixedTime:
        return cls(2026, 3, 1, 10, tzinfo=UTC)


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=[pytest.mark.slow, pytest.mark.every_database])]
)
def worlds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Served]]:
    """Both workspaces, with the labels of two people who judge blind: ann in rounds, dora in comparisons only."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setattr(browser_events, "datetime", FixedTime)
        patch.setattr(assessment, "FRESH", 1e9)  # counts do not depend on how long a test takes: they are dropped below
        sites = []
        for module, name in ((events_module, "secrets"), (events_module, "clock"), (accounts_module, "secrets")):
            patch.setattr(module, name, SAME)
        for secrets in WORLDS:
            SAME.count = 0
            db = new_database(request.getfixturevalue("postgres")) if request.param == "postgresql" else None
            folder = folder_of(tmp_path_factory.mktemp(secrets.word) / "garden", secrets)
            site = stack.enter_context(served(folder, db, clock=lambda: NOW))
            lived_in(site, secrets)
            own(site, "ann")
            while site.client("lea").get("/search.json?topic=t1").status == 202:  # the documents are being indexed
                time.sleep(0.05)
            sites.append(site)
        yield sites


# what is asked

SUBJECTS = [{"topic": "t1", "document": each} for each in DOCUMENTS]
ROUNDS = ("pooled", ADAPTIVE, "entry", "advanced", "over", "mixed", "chosen", "assigned", "no such")
SHOWN: dict[str, list[dict[str, str]]] = {
    "/": [{}],
    "/api": [{}],
    "/document": [{"id": each, "topic": "t1"} for each in ("d00", "d12", "no such")] + [{}],
    "/enter": [{"key": "no such"}],
    "/guidelines": [{}, {"now": "1"}, {"version": "none"}, {"since": "sha256"}],
    "/image": [{"id": "d00", "field": "image"}, {"id": "d01", "field": "image"}, {"id": "d00", "field": "no such"}],
    "/join": [{"invitation": "no such"}],
    "/judge": [
        {},
        *({"round": each} for each in ROUNDS),
        *({"round": "pooled"} | subject for subject in (SUBJECTS[0], SUBJECTS[5], SUBJECTS[7])),
        *({"round": "mixed", "topic": "t2", "document": each} for each in POOL),  # one has a label of others alone
        {"round": "entry"} | SUBJECTS[8],
        SUBJECTS[2],
        {"round": "pooled", "ahead": "1", "labels": "1"},
    ],
    "/judge/topics": [{}, *({"round": each} for each in ("chosen", "mixed", "over", "no such"))],
    "/label": [
        *({"topic": topic, "document": each} for topic in TOPICS for each in DOCUMENTS[:12]),
        SUBJECTS[15],
        {"topic": "t1"},
        {"topic": "no such", "document": "d01"},
    ],
    "/login": [{"next": "/runs"}],
    "/me": [{}],
    "/prefer": [{}, {"comparison": "lists"}, {"comparison": "documents"}, {"comparison": "no such"}],
    "/search": [
        {},
        {"words": "t2"},
        *({"topic": "t1", "query": query} for query in ("roses", "text d03", "", "no such")),
        {"topic": "t2", "query": "roses", "from": "10"},
        {"topic": "no such"},
    ],
    "/topic": [
        {},
        {"words": "roses t1"},
        {"topic": "t1"},
        {"topic": "t1", "document": "d01"},
        {"one": "alpha", "other": "beta"},
        {"one": "zulu", "other": "yankee", "measures": "P@1"},
        {"order": "difference", "judgments": "log"},
    ],
}


def label(id: str, document: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "topic": "t1", "document": document, "grade": 1, **more}


def judged(round_name: str, *rows: Any) -> dict[str, Any]:
    return {"round": round_name, "events": list(rows), "n": 3}


SENT: dict[str, list[dict[str, Any]]] = {
    "/guidelines/read": [{}, {"from": "search"}],
    "/join": [{}, {"invitation": "no such", "name": "x", "password": PASSWORD}],
    "/judge": [
        {},
        judged("pooled", label("a", "d01"), label("b", "d02"), label("c", "d15"), label("d", "d03", grade=7)),
        judged("pooled", label("a", "d01"), label("a", "d02"), label("bob-pooled-0", "d01")),
        judged("pooled", *(label("bob-pooled-0", each, grade=grade) for each in POOL[:2] for grade in (0, 1, 2))),
        *(judged("pooled", label("cy-t1-d00", "d00", grade=grade)) for grade in (0, 1, 2)),
        *(judged("", label("cy-t1-d00", "d00", grade=grade, note="x")) for grade in (0, 1, 2)),
        judged("pooled", {"id": "w", "kind": "withdrawal", "refers": "bob-pooled-0"}),
        judged("pooled", {"id": "v", "kind": "withdrawal", "refers": "cy-t1-d00"}),
        judged("pooled", {"id": "u", "kind": "withdrawal", "refers": "ann-pooled-0"}),
        judged("pooled", {"id": "t", "kind": "withdrawal", "refers": "no such"}),
        judged(
            "pooled", label("s", "d01", kind="skip", grade=None), label("n", "d01", kind="note", note="x", grade=None)
        ),
        judged("entry", label("e", "d08"), label("f", "d09", grade=2)),
        judged("advanced", label("g", "d14")),
        judged("over", label("h", "d13")),
        judged("no such", label("i", "d13")),
        judged("", label("j", "d05"), label("k", "no such")),
        {"round": "pooled", "id": "l", "topic": "t1", "document": "d04", "grade": "1"},
        {"round": "over", "id": "m", "topic": "t1", "document": "d13", "grade": "1"},
    ],
    "/judge/topics": [
        {},
        {"round": "chosen", "topic": "t1"},
        {"round": "chosen", "topic": "t2"},
        {"round": "chosen", "topic": "no such"},
        {"round": "mixed", "topic": "t1"},
        {"round": "no such", "topic": "t1"},
    ],
    "/login": [{}, {"name": "ann", "password": "wrong"}, {"name": "ann", "password": PASSWORD}],
    "/logout": [{}],
    "/me": [{"theme": "dark", "single_keys": "on"}, {"theme": "no such"}],
    "/me/password": [{"old": PASSWORD, "new": "short"}, {"old": PASSWORD, "new": PASSWORD}],
    "/me/token": [{"label": "script"}],
    "/me/token/end": [{"id": "1"}],
    "/search": [  # documents of the pool, of gold, held by others, judged by others, of no round
        *({"events": [label(f"s-{each}", each, query="roses", rank=1)]} for each in DOCUMENTS),
        *({"events": [label(f"t-{each}", each, grade=2, query="text", rank=2)]} for each in DOCUMENTS[::3]),
        {"events": [label("s1", "no such"), label("s2", "d01", topic="no such"), label("s3", "d01", grade=7)]},
        {"events": [label("bob-pooled-0", "d01"), label("cy-t1-d00", "d00")]},
        *(
            {"events": [{"id": f"w-{each}", "kind": "withdrawal", "refers": each}]}
            for each in ("s-d00", "t-d03", "cy-t1-d00", "bob-pooled-0", "no such")
        ),
        {"topic": "t1", "document": "d05", "query": "roses", "rank": "3", "grade": "1", "id": "s-form"},
        {},
    ],
    "/prefer": [
        {
            "of": "lists",
            "events": [{"id": "bob-lists-0", "pair": 0, "said": said} for said in ("left", "right")],
            "n": 2,
        },
        {
            "of": "lists",
            "events": [{"id": "p1", "pair": 0, "said": "left"}, {"id": "p2", "pair": 9, "said": "x"}],
            "n": 2,
        },
        {"of": "documents", "events": [{"id": "p3", "pair": 1, "said": "same", "note": "x"}], "n": 2},
        {"of": "lists", "events": [{"id": "p4", "kind": "withdrawal", "refers": "bob-lists-0"}], "n": 2},
        {"of": "lists", "id": "p5", "pair": "1", "said": "right"},
        {"of": "no such", "events": [], "n": 2},
    ],
}
LAST = ("/me/password", "/logout")  # these end the session


class Request(NamedTuple):
    """One request of the test."""

    method: str
    path: str
    values: dict[str, Any] | None = None

    def to(self, client: Client) -> Reply:
        assessment.TALLIES.clear()
        if self.values is not None and not self.path.endswith(".json"):
            return client.post(self.path, {k: v if not isinstance(v, list) else "" for k, v in self.values.items()})
        return client.ask(self.method, self.path) if self.values is None else client.send(self.path, self.values)


def open_to_blind(entry: RouteEntry) -> bool:
    """Whether the registry lets an assessor call a route while judging blind."""
    return may(ASSESSOR, entry.role) and entry.reveals != "results"


def asked_by(name: str, path: str, values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In make test who judges in comparisons only asks other pages than theirs with the first parameters alone."""
    return values[:2] if HASTY and name == COMPARES and path != "/prefer" else values


def reads(name: str = "") -> Iterator[Request]:
    """Every page and twin with all its parameters; a page that is refused to blind assessors without any."""
    for entry in entries():
        if entry.method == "GET":
            for path in entry.paths():
                for query in asked_by(name, entry.path, SHOWN[entry.path]) if open_to_blind(entry) else [{}]:
                    yield Request("GET", f"{path}{'?' if query else ''}{urlencode(query)}")


def writes(last: bool, name: str) -> Iterator[Request]:
    """Every action as JSON and as a form; those that end the session only if `last`."""
    for entry in entries():
        if entry.method == "POST" and last == (entry.path in LAST):
            for path in reversed(entry.paths()):
                for values in asked_by(name, entry.path, SENT[entry.path]) if open_to_blind(entry) else [{}]:
                    yield Request("POST", path, values)


def others() -> Iterator[Request]:
    """What is no page: static files, unknown paths, methods that a page does not take."""
    yield from (Request("GET", f"/static/{name}") for name in sorted(statics()))
    yield from (Request("GET", path) for path in ("/nowhere", "/nowhere.json", "/nowhere.csv"))
    yield from (
        Request(method, path) for method in ("HEAD", "DELETE") for path in ("/", "/judge", "/runs.csv", "/label")
    )


def test_every_route_that_blind_assessors_may_call_says_here_how_it_is_called() -> None:
    ours = [entry for entry in entries() if open_to_blind(entry)]
    known = {"GET": SHOWN, "POST": SENT}
    missing = [f"{entry.method} {entry.path}" for entry in ours if entry.path not in known[entry.method]]
    assert not missing, f"tests/test_web_blind.py, SHOWN and SENT: say how to call {', '.join(missing)}"


def comparable(site: Served, request: Request, reply: Reply) -> tuple[int, str, dict[str, str]]:
    """A reply without what the network adds; in the adaptive round the next document is any document."""
    headers = {name: value for name, value in reply.headers.items() if name != "date"}
    body = reply.body.decode("utf-8", "backslashreplace").replace(f"{site.port}", "PORT")
    if f"round={ADAPTIVE}" in request.path:
        body = re.sub(r"\b(d\d\d|t[12])\b", "ANY", body)
        headers.pop("etag", None)
    return reply.status, body, {name: value.replace(f"{site.port}", "PORT") for name, value in headers.items()}


def differences(worlds: list[Served], clients: list[Client], requests: Iterator[Request]) -> list[str]:
    """The requests to which the two workspaces give different replies, with the first difference."""
    answer = []
    for request in requests:
        number, replies = next(NUMBERS), []
        for site, client in zip(worlds, clients, strict=True):
            SAME.count = 100 * number
            replies.append(comparable(site, request, request.to(client)))
        if replies[0] != replies[1]:
            answer.append(f"{request}: {_first_difference(*map(repr, replies))}")
    return answer


def _first_difference(one: str, other: str) -> str:
    place = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"{one[max(0, place - 80) : place + 80]!r} is not {other[max(0, place - 80) : place + 80]!r}"


def clients_of(worlds: list[Served], name: str, by_token: bool) -> list[Client]:
    """The same person at both servers, with a session or a token."""
    number, clients = next(NUMBERS), []
    for site in worlds:
        SAME.count = 100 * number
        if by_token:
            clients.append(Client(site.port, token=site.site.accounts.new_token(name, "program")))
        else:
            clients.append(site.client(name, "assessor"))
    return clients


@pytest.mark.parametrize("name", [COMPARES, "ann"])
def test_what_others_did_changes_no_byte_that_a_blind_assessor_gets(worlds: list[Served], name: str) -> None:
    clients = clients_of(worlds, name, by_token=False)
    found = differences(worlds, clients, itertools.chain(reads(name), others(), writes(False, name)))
    program = clients_of(worlds, name, by_token=True)  # what was written changes what is read
    found += differences(worlds, program, reads(name))
    found += differences(worlds, clients, writes(True, name))
    assert not found, f"{len(found)} replies differ:\n" + "\n".join(found[:20])


def test_a_lead_sees_on_each_of_these_pages_that_the_workspaces_differ(worlds: list[Served]) -> None:
    clients = [site.client("lea") for site in worlds]
    found = " ".join(differences(worlds, clients, reads()))
    for path in ("/index.json", "/runs.json", "/versions.csv", "/label.json", "/round", "/topic", "/prefer"):
        assert f"path='{path}" in found, path

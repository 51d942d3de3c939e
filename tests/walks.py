"""A walk over every page of the workbench: a workspace with something on each, and the parameters that show it.

A route that is not in PARAMETERS fails every test that walks: say there by which queries its pages are opened.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from browsers import EVIL
from clicked import write_searches
from cranfield.judging.assignments import record
from cranfield.judging.event import Event
from cranfield.judging.llm import question_store
from cranfield.judging.policies import PolicySettings
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import lease, open_round
from cranfield.judging.versions import freeze
from cranfield.workbench.pages.prefer import open_comparison_of_runs
from cranfield.workbench.routes import entries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cranfield.judging.log import Log
    from workbench import Client, Served

RUN = f"{EVIL.replace('/', '⁄')}.json"  # a file cannot be called otherwise
TOPIC = EVIL
DOCUMENT = EVIL
ARABIC = "بستان"
ROUND = EVIL
VERSION = "v1"
NOW = "2026-03-01T10:00:00.000000Z"
MODEL, DRAWN = f"m/{EVIL}", "drawn"  # a judge, and a round that drew at random
LISTS, PAIRS = EVIL, "pairs"  # comparisons
PARAMETERS: dict[str, list[dict[str, str]]] = {
    "/": [{}],
    "/adjudicate": [{}, {"round": ROUND}, {"topic": TOPIC, "document": DOCUMENT}],
    "/agreement": [{}, {"round": ROUND}],
    "/api": [{}],
    "/backup": [{}],
    "/backup/file": [{}],
    "/card": [{}, {"id": DOCUMENT}, {"id": EVIL * 2}],
    "/clicks": [{}, {"model": "UBM", "judgments": "log"}, {"model": EVIL}, {"policy": EVIL}],
    "/compare": [{}, {"one": RUN, "other": "plain.json", "measures": "nDCG@10 AP"}, {"one": RUN, "other": RUN}],
    "/diff": [{}, {"a": VERSION}],
    "/document": [
        {"id": DOCUMENT},
        {"id": DOCUMENT, "topic": TOPIC},
        {"id": ARABIC},
        {"id": "empty"},
        {"id": EVIL * 2},
    ],
    "/guidelines": [{}, {"since": EVIL}, {"version": "sha256"}],
    "/guidelines/edit": [{}],
    "/image": [{"id": DOCUMENT, "field": "image"}, {"id": DOCUMENT, "field": EVIL, "n": "1"}],
    "/import": [{}],
    "/jobs": [{}],
    "/join": [{"invitation": "no such"}, {"invitation": EVIL}],
    "/judge": [{}, {"round": ROUND}, {"topic": TOPIC, "document": DOCUMENT}],
    "/judge/topics": [{"round": ROUND}, {"round": EVIL * 2}],
    "/label": [{"topic": TOPIC, "document": DOCUMENT}],
    "/login": [{"next": "/" + EVIL}],
    "/me": [{}],
    "/models": [
        {},
        {"model": MODEL},
        {"model": MODEL, "reason": EVIL, "from": "0"},
        {"question": "no such"},
        {"model": MODEL, "round": DRAWN, "measures": "P@10", "table": "estimate"},
    ],
    "/people": [{}],
    "/prefer": [{}, {"comparison": LISTS}, {"comparison": PAIRS}, {"comparison": EVIL * 2}],
    "/preferences": [{}, {"comparison": LISTS}, {"comparison": PAIRS}],
    "/recall": [{"round": ROUND}, {"round": ROUND, "topic": TOPIC}, {"round": DRAWN}, {"round": EVIL}],
    "/judgments": [{}, {"policy": "majority"}, {"policy": EVIL}],
    "/report": [{}, {"ending": "html", "runs": RUN, "title": EVIL}, {"ending": EVIL}],
    "/report/file": [{}, {"ending": "md"}],
    "/round": [{"name": ROUND}, {"name": EVIL}],
    "/rounds": [{}],
    "/rounds/new": [{}, {"look": "1", "depth": "2", "name": EVIL}, {"look": "1", "strategy": EVIL}],
    "/runs": [{}, {"new": RUN}, {"new": EVIL, "measures": EVIL}, {"judgments": "log"}],
    "/search": [{}, {"words": EVIL}, {"topic": TOPIC}, {"topic": TOPIC, "query": EVIL}, {"topic": "2", "query": ""}],
    "/topic": [{}, {"topic": TOPIC, "one": RUN, "other": "plain.json", "document": DOCUMENT}, {"topic": EVIL + "?"}],
    "/version": [{"name": VERSION}, {"name": EVIL}],
    "/versions": [{}],
}
CARD = """[card]
image_hosts = ["img.example"]
fields = [
    {name = "url", type = "link"},
    {name = "image", type = "image", alt = "alt"},
    {name = "price", type = "number", unit_from = "alt"},
    {name = "text"},
    {name = "day", type = "date"},
    {name = "about"},
]
"""
SESSIONS = ("/enter",)  # they begin a session and show nothing
FILES = ("/backup/file", "/image", "/report/file")  # no pages: what is in the reply is a file


def walk(ending: str = "", files: bool = False) -> list[str]:
    """The address of every page with every set of parameters; of its twin with an ending. Files are left out if not asked for."""
    without = SESSIONS if ending or files else (*SESSIONS, *FILES)
    pages = [entry for entry in entries() if entry.method == "GET" and entry.path not in without]
    missing = [entry.path for entry in pages if entry.path not in PARAMETERS]
    assert not missing, f"tests/walks.py, PARAMETERS: say how to open {', '.join(missing)}"
    return [
        f"{entry.name if ending else entry.path}{ending}{'?' if query else ''}{urlencode(query)}"
        for entry in pages
        if ending != ".csv" or entry.table
        for query in PARAMETERS[entry.path]
    ]


def walk_once() -> list[str]:
    """The address of every page once, with the most of its sets of parameters."""
    pages = dict.fromkeys(path.partition("?")[0] for path in walk())
    return [f"{path}?{urlencode(max(PARAMETERS[path], key=len))}" for path in pages]


def settled(client: Client) -> None:
    """Wait until every question that the pages ask is answered."""
    for path in walk(".json"):
        for _ in range(1200):
            if b'"state": "running"' not in client.get(path).body.replace(b'":"', b'": "'):
                break
            time.sleep(0.05)


def hostile(folder: Path) -> Path:
    """A workspace with the hostile string wherever a text may stand."""
    (folder / "runs").mkdir(parents=True)
    odd: dict[str, Any] = {"url": "javascript:alert(1)", "image": ["https://evil.example/x.png", f"data:{EVIL}"]}
    odd |= {"price": EVIL, "day": EVIL, "about": [EVIL, {EVIL: EVIL}], "alt": EVIL}
    documents = [
        {"id": DOCUMENT, "title": EVIL, "text": f"{EVIL} roses {EVIL}", EVIL: EVIL, **odd},
        {"id": ARABIC, "title": ARABIC, "text": f"{ARABIC} roses \u202e{EVIL}"},
        {"id": "empty", "title": "", "text": ""},
        {"id": "d1", "title": "Roses", "text": "roses and more " * 300},
    ]
    topics = [
        {"id": TOPIC, "title": f"roses {EVIL}", "description": EVIL, "narrative": EVIL, "kind": EVIL},
        {"id": "2", "title": "tulips", "description": "tulips", "narrative": "tulips", "kind": "plain"},
    ]
    for name, rows in (("documents", documents), ("topics", topics)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = json.dumps(EVIL)
    (folder / "collection.toml").write_text(
        f'name = "hostile"\ntitle = {said}\n[grades]\nrelevant_from = 1\n'
        + "".join(f"[grades.{grade}]\nlabel = {said}\nmeaning = {said}\n" for grade in (0, 1, 2))
        + f'[[aspects]]\nname = "trust"\nquestion = {said}\nfrom_grade = 0\n[aspects.grades]\n0 = {said}\n1 = {said}\n'
        + CARD
    )
    (folder / "qrels.txt").write_text("2 0 d1 1\n2 0 empty 0\n")
    (folder / "guidelines.md").write_text(f"# {EVIL}\n\n{EVIL}\n")
    for name, order in ((RUN, [DOCUMENT, "d1", ARABIC]), ("plain.json", ["d1", "gone", DOCUMENT])):
        scores = {topic["id"]: {each: 3.0 - place for place, each in enumerate(order)} for topic in topics}
        (folder / "runs" / name).write_text(json.dumps(scores))
    shown = [["d1", DOCUMENT, ARABIC], [DOCUMENT, ARABIC, "d1"]]
    searches = [(EVIL, query, shown[n % 2], [n % 3 + 1]) for n in range(12) for query in (EVIL, "tulips")]
    write_searches(folder / "events", searches)
    return folder


def filled(site: Served) -> None:
    """A round with labels and a note, a document that is out, a frozen version: on each page something stands."""
    log = site.bench.log
    asked = [RoundItem(TOPIC, DOCUMENT), RoundItem(TOPIC, "d1"), RoundItem("2", "d1"), RoundItem("2", ARABIC)]
    open_round(log, Round(name=ROUND, overlap=2, scale=(0, 1, 2)), asked)
    for place, name in enumerate(("ann", "bob")):
        site.account(name, "assessor")
        for one in lease(log, name, ROUND, 3):
            grade = (hash(one.topic == TOPIC) + place) % 3
            said: dict[str, Any] = {"note": EVIL, "seconds": 5.0, "assessor": name, "round": ROUND}
            log.add([Event(topic=one.topic, document=one.document, grade=grade, **said)])
    site.account("nobody", "assessor")
    asked_of_a_model(log)
    freeze(log, VERSION, "latest", PolicySettings(), EVIL)
    for name, kind in ((LISTS, "lists"), (PAIRS, "documents")):
        open_comparison_of_runs(site.bench, name, kind, RUN, "plain.json", depth=3)
    accounts = site.site.accounts
    accounts.invite("assessor", "ann", "guest")
    accounts.new_token("ann", EVIL[:60])
    accounts.set_settings("ann", {"theme": EVIL, "keys": {"undo": "<"}})


def asked_of_a_model(log: Log) -> None:
    """A model whose answers are labels and what is none, with a probe and a check of drift, and a round that drew."""
    hostile = {
        "prompt": {"name": EVIL, "version": EVIL, "kind": "graded", "hash": EVIL, "grades": {"0": EVIL, "1": EVIL}}
    }
    usual = {"purpose": "label", "topic": TOPIC, "other": "", "asked": NOW, "tokens_most": 9.0, "cost_most": 1.0}
    usual |= {"length": 1, "shown": 1, "manner": EVIL, "state": "answered", "problem": "", "raw": EVIL * 30}
    usual |= {"returned": EVIL, "fingerprint": EVIL, "tokens_in": 5.0, "tokens_out": 1.0, "tokens": 6.0, "cost": 0.5}
    usual |= {"seconds": 1.0, "grade": None, "label": "", "answered": NOW}
    rows: list[dict[str, Any]] = [
        {"id": "q1", "series": "s1", "question": "h1", "document": DOCUMENT, "grade": 1.0},
        {"id": "q2", "series": "s1", "question": "h2", "document": "d1", "problem": EVIL},
        {"id": "q3", "series": "s1", "question": "h3", "document": ARABIC, "state": "failed", "problem": "status 500"},
        {"id": "q4", "series": "s2", "question": "h4", "document": DOCUMENT, "grade": 0.0, "purpose": "again"},
        {"id": "q5", "series": "s2", "question": "h5", "document": DOCUMENT, "grade": 0.0, "purpose": "drift"},
    ]
    checked = {"bases": {"h4": "q1"}, "drift": {"bases": {"h5": "q1"}, "allowed": 0, "accept": True}}

    def work(transaction: Any) -> None:
        for name, more in (("s1", {}), ("s2", checked)):
            definition = hostile | {"assessor": MODEL, "endpoint": f"http://{EVIL}", "pool": {"file": EVIL}, **more}
            transaction.apply(record("series", id=name, model="m", at=NOW, definition=definition))
        for row in rows:
            whole = usual | row
            transaction.apply(record("question", **{name: whole[name] for name in question_store.BEFORE}))
            transaction.apply(record("reply", **{name: whole[name] for name in ("id", *question_store.AFTER)}))

    log.write(work)
    pairs = [(TOPIC, DOCUMENT), (TOPIC, "d1"), ("2", "d1")]  # enough to hold it against people, and to estimate from
    log.add([Event(topic=t, document=d, grade=n, assessor=MODEL, source="model") for n, (t, d) in enumerate(pairs)])
    log.add([Event(topic=t, document=d, grade=n % 2, assessor="cy") for n, (t, d) in enumerate(pairs)])
    frame = {TOPIC: [DOCUMENT, "d1"], "2": ["d1"]}
    drawn = [RoundItem(topic, document, 1, 0.5) for topic, document in pairs]
    open_round(log, Round(name=DRAWN, sample=EVIL, frame=frame, assessors=("nobody",)), drawn)


def people(site: Served) -> Iterator[tuple[str, Client]]:
    """Somebody of each role; the assessor has labels."""
    for name, role in (("zoe", "lead"), ("ann", "assessor"), ("vic", "viewer")):
        yield role, site.client(name, role)

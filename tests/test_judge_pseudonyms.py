"""Pseudonymising: the name is gone from every kind of log, and nothing that is computed from labels changes."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from cranfield.base.errors import DataError
from cranfield.commands.judging import agree, verify
from cranfield.judging import Event, open_log
from cranfield.judging.comparisons import PairComparison
from cranfield.judging.policies import PolicySettings, decide
from cranfield.judging.pseudonyms import pseudonymise
from cranfield.judging.round_plan import Round, RoundItem, all_rounds
from cranfield.judging.rounds import lease, open_round
from cranfield.judging.versions import all_versions, freeze
from cranfield.store.accounts import Accounts
from databases import location_of
from shell import cranfield
from workbench import example, served

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.every_database
POLICIES = ("latest", "majority", "mean", "dawid-skene")


@pytest.fixture(params=["jsonl", "sqlite", "postgresql"])
def location(request: Any, tmp_path: Path) -> str:
    """A log with labels of three people, a round with a change, gold, leases, a version and notes."""
    if request.param == "jsonl":
        where = str(tmp_path / "log.jsonl")
        # lines of an early version: without ids
        (tmp_path / "log.jsonl").write_text('{"topic": "q0", "document": "old", "grade": 1, "assessor": "ann"}\n')
    else:
        where = location_of(
            request.param, tmp_path, request.getfixturevalue("postgres") if request.param == "postgresql" else None
        )
    with closing(open_log(where)) as log:
        for number, name in enumerate(("ann", "bob", "cy")):
            for document in range(8):
                grade = (document * (number + 1) + number) % 3
                log.add(
                    [
                        Event(
                            topic="ann",
                            document=f"d{document}",
                            grade=grade,
                            assessor=name,
                            note="by ann" * (document == 1),
                        )
                    ]
                )
        open_round(
            log,
            Round(name="r", assessors=("ann", "bob"), overlap=2, topic_people={"ann": ("ann", "bob")}, scale=(0, 1, 2)),
            [RoundItem("ann", "d1", 2), RoundItem("ann", "d2", 2)],
        )
        [one, *_] = lease(log, "ann", "r", 1)
        log.add([Event(topic=one.topic, document=one.document, grade=1, assessor="ann", round="r")])
        lease(log, "ann", "r", 1)
        freeze(log, "v", "majority", PolicySettings(), "")
    return where


def computed(where: str) -> Any:
    """Everything that is computed from labels, without names."""
    with closing(open_log(where)) as log:
        grades = {policy: decide(log.current_events(), policy, PolicySettings()).grades for policy in POLICIES}
        versions = [(each.name, each.hash) for each in all_versions(log)]
        times = [(each.id, each.time, each.grade, each.kind) for each in log.events()]
    answer = agree([where])
    alpha = json.dumps(answer.to_dict()).replace('"ann"', '"P"').replace('"person-1"', '"P"')
    return grades, versions, times, sorted(alpha)


def test_the_name_is_gone_and_what_is_computed_stays(location: str) -> None:
    before = computed(location)
    with closing(open_log(location)) as log:
        done = pseudonymise(log, "ann", by="zoe")
        assert done.pseudonym == "person-1"
        assert done.events == (10 if location.endswith("jsonl") else 9)
        assert {note.note for note in done.noted} == {"by ann"}
        names = {event.assessor for event in log.events()}
        assert names == {"person-1", "bob", "cy"}
        with log.reading() as transaction:
            [(plan, state)] = all_rounds(transaction.connection)
        assert (plan.assessors, plan.topic_people) == (("person-1", "bob"), {"ann": ("person-1", "bob")})
        assert state == "open"
    assert computed(location) == before
    assert not verify(location).wrong
    with closing(open_log(location)) as log:  # work goes on
        assert log.add([Event(topic="ann", document="after", grade=1, assessor="bob")]) == (1, 0)
        assert pseudonymise(log, "bob").pseudonym == "person-2"
    assert cranfield("judge", "verify", location).code == 0


def test_the_name_is_in_no_column_but_notes_and_topics(location: str, tmp_path: Path) -> None:
    with closing(open_log(location)) as log:
        log.add([Event(topic="q", document="d", grade=1, assessor="anneliese")])
        pseudonymise(log, "anneliese")
    if location.endswith("jsonl"):
        assert "anneliese" not in (tmp_path / "log.jsonl").read_text()
    elif "://" not in location:
        with closing(sqlite3.connect(location)) as connection:
            connection.execute("VACUUM")
            assert "anneliese" not in "\n".join(connection.iterdump())


def test_a_comparison_and_an_account_get_the_pseudonym_too(tmp_path: Path) -> None:
    from cranfield.judging.comparisons import PreferencePair, find_comparison, open_comparison

    with closing(open_log(tmp_path / "work.db")) as log:
        accounts = Accounts(log.database)
        accounts.create("Ann", "assessor", "hash")
        accounts.create("zoe", "lead", "hash")
        session, token = accounts.begin("Ann"), accounts.new_token("Ann", "t")
        pairs = (PreferencePair("q", "a", "b"),)
        plan = PairComparison(name="c", kind="documents", one="x", other="y", pairs=pairs, assessors=("Ann", "bob"))
        open_comparison(log, plan)
        done = pseudonymise(log, "Ann", "p-7")
        assert (done.pseudonym, done.events) == ("p-7", 0)
        with log.reading() as transaction:
            assert find_comparison(transaction, "c")[0].assessors == ("p-7", "bob")
        account = accounts.find("p-7")
        assert account is not None
        assert (account.name, account.active, accounts.find("Ann")) == ("p-7", False, None)
        assert accounts.who(session) is None
        assert accounts.by_token(token) is None
        with pytest.raises(DataError, match="the only lead"):
            pseudonymise(log, "zoe")
        assert accounts.find("zoe") is not None


def test_what_cannot_be_done_is_refused_and_changes_nothing(location: str, tmp_path: Path) -> None:
    with closing(open_log(location)) as log:
        log.add([Event(topic="q", document="d", grade=1, assessor="m", source="model")])
        events = log.events()
        for name, pseudonym, words in (
            ("nobody", "", "nothing names 'nobody'"),
            ("ann", "bob", "has labels of 'bob' already"),
            ("ann", "<b>", "expected a pseudonym"),
            ("m", "", "is an LLM judge"),
        ):
            with pytest.raises(DataError, match=words):
                pseudonymise(log, name, pseudonym)
        assert log.events() == events


def test_whoever_waits_for_the_lock_of_lines_writes_into_the_new_file(tmp_path: Path) -> None:
    where = tmp_path / "log.jsonl"
    with closing(open_log(where)) as log, closing(open_log(where)) as other:
        log.add([Event(topic="q", document="a", grade=1, assessor="ann")])
        fresh = open_log(where)
        other.events()
        os.chmod(where, 0o640)
        pseudonymise(log, "ann")
        assert where.stat().st_mode & 0o777 == 0o640
        fresh.add([Event(topic="q", document="b", grade=1, assessor="bob")])
        with pytest.raises(DataError, match="was rewritten while it was open"):
            other.add([Event(topic="q", document="c", grade=1, assessor="cy")])
        assert {each.assessor for each in log.events()} == {"person-1", "bob"}
        fresh.close()


def test_the_page_and_the_command_do_the_same(tmp_path: Path) -> None:
    with served(example(tmp_path / "w")) as site:
        site.bench.log.add([Event(topic="101", document="d001", grade=1, assessor="ann", note="I, Ann, am sure")])
        ann = site.client("ann", "assessor")
        lead = site.client("zoe", "lead")
        assert ann.post("/people/pseudonymise", {"name": "zoe"}).status == 403
        assert lead.post("/people/pseudonymise", {"name": ""}).status == 400
        page = lead.post("/people/pseudonymise", {"name": "ann"})
        assert page.status == 200
        assert "1 event has the name person-1 now" in page.text
        assert "I, Ann, am sure" in page.text
        assert ann.get("/me.json").status == 401
        assert [each["name"] for each in lead.get("/people.json").json()["people"]] == ["person-1", "zoe"]
        site.bench.log.add([Event(topic="101", document="d002", grade=1, assessor="bob")])
        answer = cranfield("judge", "pseudonymise", tmp_path / "w" / "work.db", "bob", "--format", "json")
        assert json.loads(answer.out) | {"log": ""} == {"log": "", "pseudonym": "person-2", "events": 1, "notes": []}


def test_a_pseudonym_that_was_replaced_is_not_given_again(location: str) -> None:
    log = open_log(location)
    log.add([Event(topic="q", document="d", grade=1, assessor=name) for name in ("ann", "bob", "cat")])
    assert pseudonymise(log, "ann").pseudonym == "person-1"
    assert pseudonymise(log, "person-1", "nobody").pseudonym == "nobody"
    assert pseudonymise(log, "bob").pseudonym == "person-2"
    with pytest.raises(DataError, match="had the pseudonym 'person-1' already; choose another"):
        pseudonymise(log, "cat", "person-1")
    log.close()
    log = open_log(location)
    log.verify()
    assert {event.assessor for event in log.events()} >= {"nobody", "person-2", "cat"}
    log.close()

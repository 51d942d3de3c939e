"""Accounts: names taken once, sessions that end, and secrets that count once and are kept by nobody."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event, select

from cranfield.base.errors import DataError
from cranfield.store import Database, open_database, tables
from cranfield.store.accounts import IDLE, LIFETIME, MOST_TOKENS, SEEN, Account, Accounts
from cranfield.store.roles import ROLES
from databases import location_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.every_database

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> str:
        return self.now.isoformat(timespec="microseconds").replace("+00:00", "Z")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path) -> str:
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    return location_of(request.param, tmp_path, server)


@pytest.fixture
def database(place, clock) -> Iterator[Database]:
    opened = open_database(place, clock)
    yield opened
    opened.close()


@pytest.fixture
def people(database) -> Accounts:
    accounts = Accounts(database)
    accounts.create("Ann", "lead", "hash of ann")
    accounts.create("bob", "assessor", "hash of bob")
    return accounts


def at_once(*works: Callable[[], object]) -> list[object]:
    """What each of some works returns or raises, all begun together."""
    answers: list[object] = [None] * len(works)
    ready = threading.Barrier(len(works))

    def run(number: int) -> None:
        ready.wait(30)
        try:
            answers[number] = works[number]()
        except DataError as error:
            answers[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def rows(database: Database, table) -> int:
    with database.reading() as connection:
        return len(connection.execute(select(table)).all())


def test_an_account_is_found_whatever_the_case_of_its_name(people):
    assert people.find("aNN") == Account("Ann", "lead", True, "2026-03-01T10:00:00.000000Z", {})
    assert people.find("nobody") is None
    assert [account.name for account in people.all()] == ["Ann", "bob"]
    assert people.password_hash("ANN") == "hash of ann"
    assert people.password_hash("nobody") is None


@pytest.mark.parametrize("name", ["ANN", "\uff21nn", " ann "])  # a full-width A
def test_a_name_is_taken_once_whatever_its_case_and_width(people, name):
    with pytest.raises(DataError, match="the name 'Ann' is taken"):
        people.create(name, "viewer", None)


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a\nb", "a\0b", "<b>", "a/b", "-a", "a" * 65, "\ud800", "a\u202eb", "@"]
)
def test_a_name_that_cannot_be_shown_or_typed_is_refused(people, name):
    with pytest.raises(DataError, match="expected a name of 1 to 64 letters, digits"):
        people.create(name, "viewer", None)
    assert len(people.all()) == 2


@pytest.mark.parametrize("name", ["zoë", "李雷", "कमला", "o.b-c_d+e@f.org", "7of9", "a" * 64])
def test_names_are_of_any_script(people, name):
    assert people.create(name, "viewer", None).name == name
    assert people.find(name).role == "viewer"


def test_of_two_who_create_one_name_at_once_one_wins(people):
    answers = at_once(*[lambda name=name: people.create(name, "viewer", None) for name in ("eve", "Eve", "EVE", "evE")])
    assert sum(isinstance(answer, Account) for answer in answers) == 1
    assert len(people.all()) == 3


def test_a_role_that_does_not_exist_is_refused(people):
    for change in (
        people.set_role,
        lambda name, role: people.create("eve", role, None),
        lambda _, role: people.invite(role, "Ann"),
    ):
        with pytest.raises(DataError, match="expected a role of viewer, assessor, lead; found 'boss'"):
            change("bob", "boss")


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_what_those_before_it_may(role):
    account = Account("x", role)
    assert [account.may(other) for other in ROLES] == [ROLES.index(other) <= ROLES.index(role) for other in ROLES]
    assert not account._replace(active=False).may("viewer")


def test_the_last_lead_stays(people):
    for change in (lambda: people.set_role("ann", "viewer"), lambda: people.set_active("ANN", False)):
        with pytest.raises(DataError, match="is the only lead"):
            change()
    people.set_role("Ann", "lead")
    people.set_role("bob", "lead")
    people.set_active("Ann", False)
    with pytest.raises(DataError, match="bob is the only lead"):
        people.set_role("bob", "assessor")
    people.set_role("ann", "assessor")  # who is switched off leads nothing


def test_two_leads_cannot_remove_each_other_at_once(people):
    for _ in range(5):
        people.set_role("bob", "lead")
        people.set_role("Ann", "lead")
        answers = at_once(lambda: people.set_role("Ann", "viewer"), lambda: people.set_active("bob", False))
        assert sum(isinstance(answer, DataError) for answer in answers) == 1
        assert sum(account.may("lead") for account in people.all()) == 1
        people.set_active("bob", True)


def test_nobody_is_changed_where_there_is_no_account(people):
    for change in (
        lambda: people.set_role("eve", "viewer"),
        lambda: people.set_active("eve", True),
        lambda: people.set_password("eve", "x"),
        lambda: people.settings("eve"),
        lambda: people.set_settings("eve", {}),
        lambda: people.new_token("eve", "ci"),
        lambda: people.begin("eve"),
        lambda: people.reset("eve", "Ann"),
    ):
        with pytest.raises(DataError, match="there is no account 'eve'"):
            change()


def test_settings_are_kept(people):
    people.set_settings("bob", {"theme": "dark", "keys": {"skip": "é"}, "single_keys": False})
    assert people.settings("BOB") == {"theme": "dark", "keys": {"skip": "é"}, "single_keys": False}
    assert people.settings("Ann") == {}
    with pytest.raises(DataError, match="settings of at most"):
        people.set_settings("bob", {"keys": "x" * 10_000})


def test_a_session_is_its_account_s_until_it_is_ended(people):
    first, second, other = people.begin("BOB"), people.begin("bob"), people.begin("Ann")
    assert people.who(first).name == "bob"
    people.end(first)
    assert people.who(first) is None
    assert people.who(second).role == "assessor"
    people.set_password("bob", "another hash")
    assert people.who(second) is None
    assert people.who(other).name == "Ann"
    assert people.who("") is None
    assert people.who("\ud800\0") is None


def test_a_session_of_the_link_is_told_from_one_of_a_password(people):
    link, login = people.begin("Ann", local=True), people.begin("Ann")
    assert people.who(link, local=True)
    assert people.who(link, local=False) is None
    assert people.who(login, local=False)
    assert people.who(login, local=True) is None


def test_a_session_ends_when_it_is_not_used_and_when_it_is_old(people, clock):
    idle, used = people.begin("bob"), people.begin("bob")
    for _ in range(10):
        clock.now += IDLE / 2
        if clock.now < START + LIFETIME:
            assert people.who(used) is not None
    assert clock.now > START + LIFETIME
    assert people.who(used) is None
    assert people.who(idle) is None
    short = people.begin("bob", lifetime=MINUTE)
    clock.now += MINUTE
    assert people.who(short) is None


def test_a_session_that_nobody_uses_ends_after_a_while(people, clock):
    session = people.begin("bob")
    clock.now += IDLE
    assert people.who(session) is None


def test_sessions_that_are_over_are_swept_when_one_begins(people, database, clock):
    for _ in range(3):
        people.begin("bob")
    clock.now += IDLE
    people.begin("Ann")
    assert rows(database, tables.sessions) == 1


def test_a_look_is_one_query_and_writes_once_in_a_while(people, database, clock):
    session, token = people.begin("bob"), people.new_token("bob", "ci")
    said: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *call: said.append(call[2].split()[0]))
    for look, secret, noted in ((people.who, session, False), (people.by_token, token, True)):
        said.clear()
        look(secret)
        assert said.count("SELECT") == 1
        assert ("UPDATE" in said) == noted  # a token's first use
        clock.now += SEEN - timedelta(seconds=1)
        said.clear()
        look(secret)
        assert "UPDATE" not in said
        clock.now += timedelta(seconds=1)
        look(secret)
        look(secret)
        assert said.count("UPDATE") == 1


def test_a_look_succeeds_where_nothing_can_be_written(people, database, clock, monkeypatch):
    session = people.begin("bob")
    clock.now += SEEN

    def full(work):
        raise DataError("the disk is full")

    monkeypatch.setattr(database, "write", full)
    assert people.who(session).name == "bob"


def test_a_changed_password_ends_sessions_and_keeps_tokens(people):
    mine, other = people.begin("bob"), people.begin("Ann")
    token = people.new_token("bob", "ci")
    people.set_password("bob", "another hash")
    assert people.password_hash("bob") == "another hash"
    assert people.who(mine) is None
    assert people.who(other)
    assert people.by_token(token)


def test_a_session_begins_only_by_the_password_that_is_still_set(people):
    assert people.who(people.begin("bob", checked="hash of bob"))
    people.set_password("bob", "another hash")
    with pytest.raises(DataError, match="the password of bob was changed meanwhile; sign in again"):
        people.begin("bob", checked="hash of bob")


def test_a_hash_is_renewed_unless_the_password_has_changed(people):
    session = people.begin("bob")
    people.rehash("bob", "hash of bob", "stronger")
    assert people.password_hash("bob") == "stronger"
    assert people.who(session)
    people.rehash("bob", "hash of bob", "late")
    assert people.password_hash("bob") == "stronger"


def test_whoever_is_switched_off_is_out_and_comes_back_without_sessions(people):
    session, token = people.begin("bob"), people.new_token("bob", "ci")
    people.set_active("bob", False)
    for look in (lambda: people.who(session), lambda: people.by_token(token), lambda: people.password_hash("bob")):
        assert look() is None
    for enter in (
        lambda: people.begin("bob"),
        lambda: people.new_token("bob", "x"),
        lambda: people.reset("bob", "Ann"),
    ):
        with pytest.raises(DataError, match="there is no account 'bob'"):
            enter()
    people.set_active("bob", True)
    assert people.who(session) is None
    assert people.by_token(token) is None
    assert people.password_hash("bob") == "hash of bob"


def test_a_changed_role_is_in_force_at_once(people):
    session = people.begin("bob")
    people.set_role("bob", "viewer")
    assert people.who(session).role == "viewer"


def test_an_invitation_makes_one_account(people):
    secret = people.invite("assessor", "Ann")
    assert people.invitation(secret)[1:4] == ("assessor", "", "Ann")
    assert people.invitation(secret) is not None  # a look does not use it
    assert people.accept(secret, "eve", "hash of eve")[:2] == ("eve", "assessor")
    assert people.password_hash("eve") == "hash of eve"
    assert people.invitation(secret) is None
    with pytest.raises(DataError, match="this invitation was used, or has expired"):
        people.accept(secret, "mallory", "x")
    assert people.find("mallory") is None


def test_an_invitation_stays_open_where_the_name_is_refused(people):
    secret = people.invite("assessor", "Ann")
    for name, told in (("BOB", "'bob' is taken"), ("<b>", "expected a name")):
        with pytest.raises(DataError, match=told):
            people.accept(secret, name, "x")
    assert people.accept(secret, "eve", "x").name == "eve"


def test_an_invitation_for_a_name_makes_no_other(people):
    with pytest.raises(DataError, match="'bob' is taken"):
        people.invite("viewer", "Ann", name="Bob")
    secret = people.invite("viewer", "Ann", name="Eve")
    with pytest.raises(DataError, match="this invitation is for 'Eve', found 'mallory'"):
        people.accept(secret, "mallory", "x")
    assert people.accept(secret, "eve", "x").name == "Eve"


def test_a_link_for_another_password_keeps_the_account_and_ends_its_sessions(people):
    people.set_settings("bob", {"theme": "dark"})
    session, first = people.begin("bob"), people.reset("BOB", "Ann")
    second = people.reset("bob", "Ann")
    assert people.invitation(first) is None  # one of before counts no more
    assert people.invitation(second)[1:4] == ("assessor", "bob", "Ann")
    assert people.invitation(second).reset
    assert people.who(session)
    with pytest.raises(DataError, match="this invitation is for 'bob', found 'Ann'"):
        people.accept(second, "Ann", "stolen")
    account = people.accept(second, "bob", "new hash")
    assert account[:2] == ("bob", "assessor")
    assert account.settings == {"theme": "dark"}
    assert people.password_hash("bob") == "new hash"
    assert people.who(session) is None
    assert len(people.all()) == 2


def test_a_link_for_another_password_ends_with_the_password_and_the_account(people):
    for ends in (lambda: people.set_password("bob", "x"), lambda: people.set_active("bob", False)):
        secret = people.reset("bob", "Ann")
        other = people.invite("viewer", "Ann")
        ends()
        assert people.invitation(secret) is None
        assert people.invitation(other)


def test_an_invitation_for_a_name_that_was_taken_since_changes_no_password(people):
    first, second = people.invite("viewer", "Ann", "eve"), people.invite("viewer", "Ann", "eve")
    people.accept(first, "eve", "hers")
    with pytest.raises(DataError, match="'eve' is taken"):
        people.accept(second, "eve", "stolen")
    assert people.password_hash("eve") == "hers"


def test_of_those_who_accept_one_invitation_at_once_one_wins(people):
    def accepts(secret: str, name: str) -> Callable[[], Account]:
        return lambda: people.accept(secret, name, "x")

    for number in range(3):
        secret = people.invite("assessor", "Ann")
        answers = at_once(*[accepts(secret, f"{letter}{number}") for letter in "abc"])
        assert sum(isinstance(answer, Account) for answer in answers) == 1
    assert len(people.all()) == 5


def test_an_invitation_expires_and_can_be_revoked(people, database, clock):
    old = people.invite("viewer", "Ann", days=1)
    clock.now += DAY
    assert people.invitation(old) is None
    assert people.invitations() == []
    with pytest.raises(DataError, match="expired"):
        people.accept(old, "eve", "x")
    new = people.invite("viewer", "Ann")
    assert rows(database, tables.invitations) == 1  # the old one is swept
    [open_one] = people.invitations()
    people.revoke_invitation(open_one.id)
    assert people.invitation(new) is None
    for days in (0, -1, 4000, float("nan")):
        with pytest.raises(DataError, match="expected days between 0 and 3660"):
            people.invite("viewer", "Ann", days=days)


def test_a_key_opens_once(people, database, clock):
    key = people.new_key()
    assert not people.use_key("another")
    assert people.use_key(key)
    assert not people.use_key(key)
    late = people.new_key(minutes=2)
    clock.now += 2 * MINUTE
    assert not people.use_key(late)
    people.new_key()
    assert rows(database, tables.link_keys) == 1


def test_of_many_who_use_one_key_at_once_one_wins(people):
    key = people.new_key()
    assert sorted(map(bool, at_once(*[lambda: people.use_key(key)] * 6))) == [False] * 5 + [True]


def test_a_token_is_its_account_s_until_it_is_revoked(people, clock):
    first, second = people.new_token("bob", " ci "), people.new_token("bob", "cron", days=1)
    assert first.startswith("cranfield_")
    assert people.by_token(first)[:2] == ("bob", "assessor")
    assert [(token.label, token.seen is None, token.until is None) for token in people.tokens("bob")] == [
        ("ci", False, True),
        ("cron", True, False),
    ]
    clock.now += DAY
    assert people.by_token(second) is None
    [left] = people.tokens("bob")
    people.revoke_token("Ann", left.id)  # it is not hers
    assert people.by_token(first)
    people.revoke_token("bob", left.id)
    assert people.by_token(first) is None
    assert people.by_token(people.begin("bob")) is None  # a session is no token
    assert people.who(people.new_token("bob", "ci")) is None


def test_tokens_are_labelled_and_not_endless(people):
    for label in ("", " ", "x" * 65, "a\nb"):
        with pytest.raises(DataError, match="expected a token's label of 1 to 64 characters"):
            people.new_token("bob", label)
    for number in range(MOST_TOKENS):
        people.new_token("bob", str(number))
    with pytest.raises(DataError, match=f"bob has {MOST_TOKENS} tokens; revoke one first"):
        people.new_token("bob", "more")


def test_no_secret_is_kept_or_logged(people, database, caplog, place):
    caplog.set_level(logging.INFO, "sqlalchemy")
    secrets = [people.begin("bob"), people.invite("viewer", "Ann"), people.new_key(), people.new_token("bob", "ci")]
    people.set_password("bob", "$argon2id$kept")
    people.who(secrets[0])
    people.by_token(secrets[3])
    assert len({secret[-43:] for secret in secrets}) == 4  # 256 bits each
    with database.reading() as connection:
        kept = repr([connection.execute(select(table)).all() for table in tables.metadata.sorted_tables])
    for secret in secrets:
        assert secret[-43:] not in kept + caplog.text
    assert "$argon2id$kept" in kept
    assert "$argon2id$kept" not in caplog.text


def test_the_database_s_own_clock_lets_in_and_expires(place):
    database = open_database(place)
    accounts = Accounts(database)
    accounts.create("ann", "lead", None)
    assert accounts.who(accounts.begin("ann"))
    assert accounts.who(accounts.begin("ann", lifetime=timedelta(0))) is None
    assert accounts.use_key(accounts.new_key())
    assert not accounts.use_key(accounts.new_key(minutes=-1))
    assert accounts.invitation(accounts.invite("viewer", "ann"))
    database.close()

"""Passwords and the throttle: no secret learnt from time or numbers, no server stopped, nobody locked out."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from cranfield.base.errors import DataError, MissingExtraError
from cranfield.http.refusal import Refusal
from cranfield.workbench.sign_in import LONGEST_PASSWORD, MEMORY, ROUNDS, SHORTEST, TOGETHER, Passwords, SignInThrottle

pytest.importorskip("argon2", reason="needs argon2-cffi")


@pytest.fixture
def passwords():
    """Hashes that cost little."""
    made = Passwords(memory=64, rounds=1, waiting=4)
    yield made
    made.close()


def test_a_password_is_hashed_by_argon2id_with_64_mib():
    made = Passwords()
    hashed = asyncio.run(made.hash("correct horse"))
    assert hashed.startswith(f"$argon2id$v=19$m={MEMORY},t={ROUNDS},p=1$")
    assert MEMORY == 64 * 1024
    assert asyncio.run(made.check(hashed, "correct horse"))
    assert not made.outdated(hashed)
    made.close()


def test_only_the_password_of_a_hash_fits(passwords):
    hashed = asyncio.run(passwords.hash("pässwörd"))
    for password, fits in {"pässwörd": True, "pa\u0308sswo\u0308rd": True, "passwort": False, "": False}.items():
        assert asyncio.run(passwords.check(hashed, password)) == fits
    assert not asyncio.run(passwords.check("damaged", "pässwörd"))
    assert asyncio.run(passwords.hash("pässwörd")) != hashed  # salted


def test_a_name_that_does_not_exist_costs_what_one_that_does(passwords, monkeypatch):
    verified: list[str] = []
    usual = type(passwords.hasher).verify

    def verify(self, hash, password):
        verified.append(hash)
        return usual(self, hash, password)

    monkeypatch.setattr(type(passwords.hasher), "verify", verify)
    hashed = asyncio.run(passwords.hash("correct horse"))
    for hash, password in ((None, "correct horse"), (hashed, "x" * 2000), (None, "")):
        assert not asyncio.run(passwords.check(hash, password))
    assert verified == [passwords.nobody] * 3
    from argon2 import extract_parameters

    assert extract_parameters(passwords.nobody) == extract_parameters(hashed)


@pytest.mark.parametrize("password", ["", "a" * (SHORTEST - 1), "a\u0308" * (SHORTEST - 1)])
def test_a_short_password_is_refused(passwords, password):
    with pytest.raises(DataError, match=f"at least {SHORTEST} characters, found {SHORTEST - 1 if password else 0}"):
        asyncio.run(passwords.hash(password))


def test_a_long_password_is_refused_and_no_other(passwords):
    with pytest.raises(DataError, match=f"at most {LONGEST_PASSWORD} bytes, found 1002"):
        asyncio.run(passwords.hash("é" * 501))
    for password in ("aaaaaaaa", " " * 8, "é" * 500, "\0" * 8, "\ud800" * 8):
        assert asyncio.run(passwords.check(asyncio.run(passwords.hash(password)), password))


def test_a_hash_of_other_settings_is_outdated(passwords):
    stronger = Passwords(memory=128, rounds=1)
    hashed = asyncio.run(passwords.hash("correct horse"))
    assert stronger.outdated(hashed)
    assert asyncio.run(stronger.check(hashed, "correct horse"))
    stronger.close()


def test_two_are_at_work_while_the_event_loop_goes_on_and_too_many_are_refused(passwords, monkeypatch):
    go, at_work, most = threading.Event(), [], [0]

    def slow(hash, password):
        at_work.append(1)
        most[0] = max(most[0], len(at_work))
        assert go.wait(60)
        at_work.pop()
        return True

    monkeypatch.setattr(passwords, "_check", slow)

    async def crowd() -> None:
        tasks = [asyncio.create_task(passwords.check("hash", "password")) for _ in range(4)]
        while len(at_work) < TOGETHER:
            await asyncio.sleep(0)
        with pytest.raises(Refusal, match="too many people sign in") as refused:
            await passwords.check("hash", "password")
        assert refused.value.status == 503
        assert refused.value.wait > 0
        tasks[3].cancel()  # a browser that has gone makes room
        await asyncio.sleep(0)
        tasks[3] = asyncio.create_task(passwords.check("hash", "password"))
        await asyncio.sleep(0)
        go.set()
        assert await asyncio.gather(*tasks) == [True] * 4

    asyncio.run(crowd())
    assert most[0] == TOGETHER
    assert passwords.pending == 0


def test_short_memory_is_told(passwords, monkeypatch):
    from argon2.exceptions import HashingError, VerificationError

    def fails(error):
        def call(*_):
            raise error("Memory allocation error")

        return call

    monkeypatch.setattr(type(passwords.hasher), "hash", fails(HashingError))
    monkeypatch.setattr(type(passwords.hasher), "verify", fails(VerificationError))
    for work in (passwords.hash("correct horse"), passwords.check("x", "correct horse")):
        with pytest.raises(Refusal, match="not enough memory") as refused:
            asyncio.run(work)
        assert refused.value.status == 503


def test_argon2_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "argon2", None)
    with pytest.raises(MissingExtraError, match="pip install 'cranfield.web.'"):
        Passwords()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def throttle(clock) -> SignInThrottle:
    return SignInThrottle(clock)


def fail(throttle: SignInThrottle, account: str, address: str) -> float:
    """Try in vain; the wait that refuses the try, or 0."""
    wait = throttle.wait(account, address)
    if not wait:
        throttle.failed(account, address)
    return wait


def test_waits_begin_after_five_failures_and_double_up_to_a_minute(throttle, clock):
    waits = []
    for number in range(14):
        assert fail(throttle, "ann", f"10.0.0.{number}") == 0
        waits.append(throttle.wait("Ann", "10.9.9.9") if number > 3 else 0.0)
        clock.now += waits[-1]
    assert waits == [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]


def test_a_try_that_is_refused_counts_nothing(throttle, clock):
    while not fail(throttle, "ann", "10.0.0.1"):
        pass
    for _ in range(100):
        assert 0 < throttle.wait("ann", "10.0.0.1") <= 1
    clock.now += 1
    assert throttle.wait("ann", "10.0.0.1") == 0


def test_many_at_once_are_no_way_around(throttle):
    waits = [throttle.wait("ann", "10.0.0.1") for _ in range(100)]  # before any of them has failed
    assert waits.count(0) == 5


def test_a_success_clears_the_account_and_time_does_so_too(throttle, clock):
    for _ in range(4):
        fail(throttle, "ann", "10.0.0.1")
    assert throttle.wait("ann", "10.0.0.1") == 0
    throttle.succeeded("ann", "10.0.0.1")
    assert [fail(throttle, "ann", "10.0.0.1") for _ in range(5)] == [0] * 5
    assert fail(throttle, "ann", "10.0.0.1") == 1
    clock.now += 3601
    assert [fail(throttle, "ann", "10.0.0.1") for _ in range(5)] == [0] * 5


def test_guesses_of_strangers_keep_nobody_out_who_is_known_at_an_address(throttle):
    throttle.wait("ann", "10.0.0.1")
    throttle.succeeded("ann", "10.0.0.1")
    while not fail(throttle, "ann", "192.0.2.7"):
        pass
    assert throttle.wait("ann", "10.0.0.1") == 0
    assert throttle.wait("ann", "10.0.0.2") > 0  # elsewhere she waits with them
    throttle.failed("ann", "10.0.0.1")
    for _ in range(4):
        fail(throttle, "ann", "10.0.0.1")
    assert throttle.wait("ann", "10.0.0.1") == 1  # and guesses from her own address count


def test_an_address_that_tries_many_accounts_waits_and_an_office_is_not_kept_out_for_long(throttle, clock):
    throttle.wait("ann", "10.0.0.1")
    throttle.succeeded("ann", "10.0.0.1")
    number = 0
    for _ in range(200):
        while not (wait := fail(throttle, f"name{number}", "10.0.0.1")):
            number += 1
        assert wait <= 10
        clock.now += wait
    assert 200 <= number < 300  # fifty, and one after each wait
    fail(throttle, "last", "10.0.0.1")
    assert throttle.wait("new", "10.0.0.1") == 10
    assert throttle.wait("new", "10.0.0.2") == 0
    assert throttle.wait("ann", "10.0.0.1") == 0  # known there


def test_a_class_that_signs_in_behind_one_address_does_not_wait(throttle):
    for number in range(300):
        assert throttle.wait(f"student{number}", "10.0.0.1") == 0
        throttle.succeeded(f"student{number}", "10.0.0.1")


def test_a_network_of_ipv6_is_one_address_and_a_mapped_one_is_its_ipv4(throttle):
    for number in range(50):
        fail(throttle, f"name{number}", f"2001:db8::{number:x}")
    assert throttle.wait("more", "2001:db8::ffff:1") > 0
    assert throttle.wait("more", "2001:db8:0:1::1") == 0
    assert throttle.wait("more", "not an address") == 0
    for number in range(50):
        fail(throttle, f"other{number}", "::ffff:10.0.0.1")
    assert throttle.wait("more", "10.0.0.1") > 0


def test_an_account_that_is_called_like_a_pair_or_an_address_is_neither(throttle):
    throttle.wait("ann", "10.0.0.1")
    throttle.succeeded("ann", "10.0.0.1")
    for _ in range(5):
        fail(throttle, "ann 10.0.0.1", "192.0.2.7")
    assert throttle.wait("ann", "10.0.0.1") == 0
    for number in range(60):
        fail(throttle, f"name{number}", "10.0.0.2")
    assert throttle.wait("10.0.0.2", "10.0.0.2") > 0


def test_invented_names_fill_no_memory_and_drive_out_no_account_under_attack(clock):
    throttle = SignInThrottle(clock, most=100)
    for _ in range(6):
        clock.now += fail(throttle, "ann", "10.0.0.1")
    failures = throttle.accounts.attempts["ann"].failed
    for number in range(5000):
        clock.now += 0.01
        fail(throttle, f"{number}" * 300, f"10.{number // 250}.{number % 250}.1")
        throttle.succeeded(f"known{number}", "10.0.0.9")
    assert max(map(len, (throttle.accounts.attempts, throttle.addresses.attempts, throttle.trusted))) <= 100
    assert max(map(len, throttle.accounts.attempts)) < 300
    assert throttle.accounts.attempts["ann"].failed == failures >= 5

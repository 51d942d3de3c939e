"""Tokens: what is sealed comes back, and nothing else gets in or out."""

from __future__ import annotations

import random
import string
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import ConventionError, DataError, MissingExtraError, TokenError
from cranfield.experiments import Keys, credit, interleave
from cranfield.experiments.interleaving import METHODS
from cranfield.experiments.interleaving.method import ListEvidence
from cranfield.experiments.interleaving.token import (
    FILE_VARIABLE,
    KEYS_VARIABLE,
    VERSION,
    decode_contents,
    encode_contents,
    seal,
    unseal,
)
from hypotheses import examples

KEYS = Keys((bytes(range(32)),))
OTHER = Keys((bytes(range(32, 64)),))
URL_SAFE = {*string.ascii_letters, *string.digits, "-", "_"}
OLD_TOKEN = "AQAAAAAAAAAAUKu9SvjzGym_i2tqm-Ab_lgNi9p3W0SnSI-YtNeeX2WIky8"  # names no plan; sealed with KEYS
LISTS = {"bm25": [f"d{i}" for i in range(10)], "dense": [f"d{i}" for i in range(14, 4, -1)]}


def token(method: str = "team-draft", **how: object) -> str:
    return interleave(LISTS, 10, random.Random(2), method).seal(KEYS, **how)  # type: ignore[arg-type]


# what is inside


@pytest.mark.parametrize("name", METHODS)
@given(
    lists=st.lists(st.lists(st.integers(0, 400), max_size=12, unique=True), min_size=2, max_size=4),
    k=st.integers(1, 15),
    seed=st.integers(0, 9),
    clicks=st.sets(st.integers(1, 15)),
)
@examples(25)
def test_a_token_earns_what_its_list_earns(name, lists, k, seed, clicks):
    given_lists = lists if METHODS[name].many else [each[:8] for each in lists[:2]]
    shown = interleave(given_lists, k, random.Random(seed), name)
    ranks = [rank for rank in clicks if rank <= len(shown.documents)]
    assert credit(shown.seal(KEYS), ranks, keys=KEYS) == credit(shown, ranks)


@given(
    names=st.lists(st.text(max_size=8), min_size=1, max_size=3),
    marks=st.integers(0, 3).flatmap(lambda n: st.lists(st.tuples(*[st.integers(0, 10**6)] * n), max_size=8)),
    more=st.lists(st.integers(0, 2**40), max_size=6),
    plan=st.text(max_size=8),
)
@examples(60)
def test_what_is_packed_is_unpacked(names, marks, more, plan):
    method = METHODS.named("probabilistic(tau=1.5)")
    evidence = ListEvidence(tuple(marks), tuple(more))
    again, systems, found, of_plan = decode_contents(encode_contents(method, names, evidence, plan))
    assert (str(again), list(systems), found, of_plan) == (str(method), names, evidence, plan)


def test_a_token_names_its_plan_for_as_many_bytes_as_the_name_has_and_two():
    plain, planned = (interleave(LISTS, 10, random.Random(2)).seal(KEYS, plan=plan) for plan in ("", "shop"))
    assert (len(plain), len(planned)) == (62, 70)
    assert [decode_contents(unseal(text, KEYS)).plan for text in (plain, planned)] == ["", "shop"]


def test_a_token_sealed_before_tokens_named_plans_is_opened():
    assert decode_contents(unseal(OLD_TOKEN, KEYS)).plan == ""
    assert credit(OLD_TOKEN, [1, 3], keys=KEYS).credits == {"bm25": 2.0, "dense": 0.0}


def test_a_token_knows_parameters_that_are_not_the_usual():
    shown = interleave(LISTS, 5, random.Random(3), "probabilistic", tau=0.5)
    assert credit(shown, [4]) == credit(shown.seal(KEYS), [4], keys=KEYS)
    usual = replace(shown, method=METHODS.named("probabilistic"))
    assert credit(usual.seal(KEYS), [4], keys=KEYS) != credit(shown, [4])


@pytest.mark.parametrize("name", METHODS)
def test_a_token_of_ten_documents_is_short_and_safe_in_a_url(name):
    text = token(name)
    assert len(text) <= 96
    assert {*text} <= URL_SAFE


def test_a_token_of_team_draft_takes_46_bytes():
    assert len(token()) == 62  # 46 bytes: 25 of the seal, 21 of which names take 11


# nobody else


def test_a_token_shows_neither_teams_nor_names():
    shown = interleave(LISTS, 10, random.Random(2))
    one, again = shown.seal(KEYS), shown.seal(KEYS)
    assert one != again  # the same teams look different every time
    assert "bm25" not in one


@given(place=st.integers(0, 61), letter=st.sampled_from(sorted(URL_SAFE)))
@examples(60)
def test_a_token_that_was_changed_anywhere_is_refused(place, letter):
    text = seal(b"x" * 20, KEYS)
    changed = text[:place] + letter + text[place + 1 :]
    if changed != text:
        with pytest.raises(TokenError):
            unseal(changed, KEYS)


@pytest.mark.parametrize(
    "text",
    ["", "x", "á" * 50, "A" * 61 + "=", "A" * 61 + "+", "A" * 2**21, token()[:-4], token() * 2],
    ids="nothing short letters padding sign long cut twice".split(),
)
def test_what_is_no_token_is_refused_in_words(text):
    with pytest.raises(TokenError, match=r"expected a sealed token|cannot be opened|of version"):
        credit(text, [1], keys=KEYS)


@pytest.mark.parametrize("what", [None, 7, b"abc"])
def test_what_is_no_text_is_no_token(what):
    with pytest.raises((TokenError, TypeError)):
        credit(what, [1], keys=KEYS)


def test_another_key_does_not_open_a_token():
    with pytest.raises(TokenError, match=r"cannot be opened: it was changed, sealed with an unknown key"):
        credit(token(), [1], keys=OTHER)


def test_a_token_of_one_search_is_not_taken_for_another():
    text = token(search="s-1")
    assert credit(text, [1], keys=KEYS, search="s-1").credits
    for search in ("s-2", "", "s-1 "):
        with pytest.raises(TokenError, match="for another search"):
            credit(text, [1], keys=KEYS, search=search)
    with pytest.raises(TokenError, match="for another search"):
        credit(token(), [1], keys=KEYS, search="s-1")


def test_a_token_expires_if_told_so():
    text = token(expires=1_000.0)
    assert credit(text, [1], keys=KEYS, at=1_000.0).credits
    with pytest.raises(TokenError, match="has expired: it was valid until 1970-01-01T00:16:40Z"):
        credit(text, [1], keys=KEYS, at=1_001.0)
    with pytest.raises(TokenError, match="has expired"):
        credit(text, [1], keys=KEYS)  # now
    assert credit(token(), [1], keys=KEYS, at=1e12).credits
    with pytest.raises(ConventionError, match="expires must be seconds since 1970"):
        token(expires=-1.0)


def test_a_token_of_another_version_is_named():
    raw = seal(b"x", KEYS)
    import base64

    content = base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4))
    newer = base64.urlsafe_b64encode(bytes([VERSION + 1]) + content[1:]).decode().rstrip("=")
    with pytest.raises(TokenError, match="a token of version 2; this cranfield opens version 1"):
        unseal(newer, KEYS)


@pytest.mark.parametrize(
    "content", [b"?", b"t", b"t\x02\x00\x04bm", b"t\x01\x00\x01\xff\x00\x00\x00", b"t\x00\x05x=1,y\x00\x00\x00"]
)
def test_a_token_that_is_ours_but_makes_no_sense_says_so(content):
    with pytest.raises(TokenError, match=r"another version of cranfield|a method '\?' that this version"):
        credit(seal(content, KEYS), [1], keys=KEYS)


def test_what_is_too_long_is_not_sealed():
    with pytest.raises(DataError, match="is too long; show fewer documents"):
        seal(bytes(2**20), KEYS)


# keys


def test_keys_rotate_the_first_seals_and_all_open():
    both = Keys((*OTHER.secrets, *KEYS.secrets))
    assert unseal(seal(b"old", KEYS), both) == b"old"
    with pytest.raises(TokenError):
        unseal(seal(b"new", both), KEYS)
    assert unseal(seal(b"new", both), OTHER) == b"new"


def test_a_file_of_keys_is_made_on_first_use_and_only_its_owner_reads_it(tmp_path):
    path = tmp_path / "deep" / "online.keys"
    first = Keys.of_file(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert Keys.of_file(path) == first
    assert [each.name for each in path.parent.iterdir()] == ["online.keys"]


def test_of_many_who_make_the_file_at_once_all_get_one_key(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: Keys.of_file(tmp_path / "keys"), range(16)))
    assert len({keys.secrets for keys in made}) == 1


def test_a_file_of_keys_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "keys"
    Keys.of_file(path)
    path.chmod(0o644)
    with pytest.raises(DataError, match=r"others can read it; chmod 600"):
        Keys.of_file(path)


@pytest.mark.parametrize(
    "text",
    ["", "# nothing", "short", "ä" * 43, f"{Keys.new().text()} tail"],
    ids="nothing remark short letters tail".split(),
)
def test_what_are_no_keys_is_refused_and_not_repeated(tmp_path, text):
    with pytest.raises(
        DataError, match=rf"{KEYS_VARIABLE}: expected keys of 32 bytes in URL-safe base64 \(43 "
    ) as refused:
        Keys.parse(text, KEYS_VARIABLE)
    assert not text or text.split()[0] == "#" or text.split()[0] not in str(refused.value)


def test_a_folder_is_no_file_of_keys(tmp_path):
    with pytest.raises(DataError, match="is a directory"):
        Keys.of_file(tmp_path)


def test_where_no_key_can_be_kept_the_error_says_what_to_set(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=rf"no key can be stored there .* set {KEYS_VARIABLE} or {FILE_VARIABLE}"):
        Keys.of_file(tmp_path / "file" / "keys")


def test_the_usual_keys_come_from_the_environment_then_a_file_then_home(tmp_path, monkeypatch):
    named = {FILE_VARIABLE: str(tmp_path / "named"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert Keys.usual({KEYS_VARIABLE: f"{OTHER.text()},{KEYS.text()}", **named}).secrets == (
        *OTHER.secrets,
        *KEYS.secrets,
    )
    assert not (tmp_path / "named").exists()
    assert Keys.usual(named) == Keys.of_file(tmp_path / "named")
    del named[FILE_VARIABLE]
    assert Keys.usual(named) == Keys.of_file(tmp_path / "config" / "cranfield" / "online.keys")
    monkeypatch.setenv(KEYS_VARIABLE, KEYS.text())
    assert credit(interleave(LISTS, 5, random.Random(1)).token, [1]).winner


def test_keys_are_read_from_lines_with_comments(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"# new\n{OTHER.text()}  # since May\n\n{KEYS.text()}\n")
    path.chmod(0o600)
    assert Keys.of_file(path).secrets == (*OTHER.secrets, *KEYS.secrets)


def test_keys_never_show_themselves():
    assert repr(KEYS) == "Keys(1 keys)"
    assert KEYS.text() not in f"{KEYS} {KEYS!r}"


def test_keys_of_another_length_are_refused():
    for secrets in ((), (b"short",)):
        with pytest.raises(ConventionError, match="expected at least one key, each of 32 bytes"):
            Keys(secrets)


def test_without_cryptography_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cranfield\[online\]'"):
        seal(b"x", Keys.new())


def test_the_same_random_bytes_make_the_same_token_and_break_nothing():
    one, other = (seal(content, KEYS, random=bytes) for content in (b"one", b"two"))
    assert one != other
    assert unseal(one, KEYS) == b"one"
    assert one[:12] == other[:12] == "AQAAAAAAAAAA"  # version and the eight bytes

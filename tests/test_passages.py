"""What to mark in a text, and where to open it: places in the text as it is, by one rule, against plain enumeration."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base import passages
from cranfield.base.errors import DataError
from cranfield.base.passages import STOP, best_passage, marks
from hypotheses import examples

VOCABULARY = ["wing", "wings", "Heat", "heated", "flow", "the", "of", "box", "boxes", "a"]


def marked(text: str, query: str) -> list[str]:
    return [text[start:end] for start, end in marks(text, query)]


# the words


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        *[("caresses", "caress"), ("ponies", "poni"), ("caress", "caress"), ("cats", "cat")],  # step 1a
        *[("feed", "feed"), ("plastered", "plaster"), ("bled", "bled"), ("motoring", "motor"), ("sing", "sing")],
        *[("conflated", "conflate"), ("troubled", "trouble"), ("sized", "size"), ("hopping", "hop"), ("tanned", "tan")],
        *[("falling", "fall"), ("hissing", "hiss"), ("fizzed", "fizz"), ("failing", "fail"), ("filing", "file")],
        *[("agreed", "agree")],
    ],
)
def test_endings_of_steps_1a_and_1b_against_porter_s_paper(word, stem):
    assert passages._without_past(passages._without_plural(word)) == stem


@pytest.mark.parametrize(
    ("word", "stem"),
    [("happy", "happi"), ("sky", "sky"), ("probate", "probat"), ("rate", "rate"), ("cease", "ceas")],
)
def test_endings_of_steps_1c_and_5a_against_porter_s_paper(word, stem):
    assert passages._stem(word) == stem


@pytest.mark.parametrize(
    "same",
    [
        "wing wings",
        "heat heats heated heating",
        "box boxes",
        "house houses housed housing",
        "city cities",
        "tie ties",
        "agree agrees agreed agreeing",
        "stop stops stopped stopping",
        "analyse analysed analyses",
        "Straße STRASSE strasse",
        "café cafe\u0301 CAFÉS",
        "İzmir izmir IZMIR",
        "ﬁle file FILE",
        "ｆｕｌｌ full",
        "soft\u00adhyphen softhyphen",
        "مُحَمَّد محمد",
    ],
)
def test_these_words_are_the_same(same):
    words = same.split()
    for query in words:
        assert marked(same, query) == words


@pytest.mark.parametrize(
    "other", ["car care", "rat rate", "wing winged1", "thing th", "gas gash", "united unit3d", "s ss"]
)
def test_these_words_are_not(other):
    one, two = other.split()
    assert marked(other, one) == [one]
    assert marked(other, two) == [two]


def test_a_word_is_marked_as_a_whole_and_only_as_a_whole():
    assert marked("heat, preheat heatwave HEAT-shield heat_shield", "heat") == ["heat", "HEAT", "heat"]


def test_stop_words_of_a_query_are_left_out_unless_it_has_nothing_else():
    assert marked("The flow of the heat", "the flow of") == ["flow"]
    assert marked("To be or not, to be the one", "to be or") == ["To", "be", "or", "to", "be"]
    assert marked("the 検索 of it", "the 検索 of") == ["検索"]
    assert {"the", "of"} <= STOP


def test_elided_letters_are_no_words():
    assert marked("Newton's law: s is a path", "Newton's") == ["Newton"]
    assert marked("l'eau, d'air; L d", "l'eau d’air") == ["eau", "air"]
    assert marked("O'Brien o", "o'brien") == ["Brien"]


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("信息检索的评价方法", "检索评价", ["检索", "评价"]),
        ("検索エンジン", "検索エンジン", ["検索エンジン"]),  # pairs that overlap are one mark
        ("猫と犬", "猫", ["猫"]),
        ("검색은 쉽다", "검색", ["검색"]),
        ("iPhone手机壳", "手机 iphone", ["iPhone", "手机"]),
        ("ระบบค้นหาข้อมูล", "ค้นหา", ["ค้นหา"]),
        ("हिन्दी में खोज", "हिन्दी", ["हिन्दी"]),
        ("हिन", "हिन्दी", []),
        ("שָׁלוֹם שלום", "שלום", ["שָׁלוֹם", "שלום"]),
        ("か\u3099く", "か", ["か\u3099"]),  # a mark does not part a letter from its sign
        ("поиск и ПОИСК", "Поиск", ["поиск", "ПОИСК"]),
        ("", "word", []),
        ("word", "", []),
        ("word", "?!", []),
        ("a [x] (y", "[x] (y", ["x", "y"]),
    ],
)
def test_other_scripts_and_odd_queries(text, query, found):
    assert marked(text, query) == found


@pytest.mark.parametrize("before", ["İ", "ß", "ﬃ", "ŉ", "ΐ", "\u0130\u0307", "😀", "e\u0301"])
def test_places_are_those_of_the_text_however_long_it_is_folded(before):
    text = f"{before * 7} wing {before}wing wing"
    assert [text[start:end] for start, end in marks(text, "WINGS") if end - start == 4] == ["wing"] * 2 + (
        ["wing"] if before == "😀" else []
    )


@examples(60)
@given(st.text(), st.text(max_size=20))
def test_marks_are_in_order_apart_and_within_the_text(text, query):
    spans = marks(text, query)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(one[1] <= other[0] for one, other in zip(spans, spans[1:], strict=False))


@examples(60)
@given(st.lists(st.sampled_from(VOCABULARY)), st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=3))
def test_marks_against_each_word_alone(words, asked):
    """A word is marked or not whatever stands around it."""
    telling = [word for word in asked if word not in STOP] or asked
    alone = [word for word in words if any(marks(word, one) for one in telling)]
    assert marked(" ".join(words), " ".join(asked)) == alone


@examples(60)
@given(st.text(alphabet="abß İé\u0301ﬁ検索가ค.", min_size=1))
def test_a_text_is_marked_wherever_a_query_s_own_words_stand(text):
    whole = marks(text, text)
    for start, end in whole:
        assert marks(text[start:end], text[start:end]) == [(0, end - start)]
    assert bool(whole) == bool(re.search(r"[^\W_]|[\u0e01-\u0e4e]", text))


# the passage


def different(text: str, query: str) -> int:
    return len({term for _, _, terms in passages._hits(text, query) for term in terms})


@examples(60)
@given(
    st.lists(st.sampled_from([*VOCABULARY, "x", "yy.", "zzz!"]), max_size=40),
    st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=4),
    st.integers(8, 60),
)
def test_a_passage_has_as_many_different_words_as_any_against_enumeration(words, asked, size):
    text, query = " ".join(words), " ".join(asked)
    start, end = best_passage(text, query, size)
    assert end - start <= size
    edges = [0, *(at for at, letter in enumerate(text) if letter == " "), len(text)]
    windows = [text[i:j] for i in edges for j in edges if i <= j <= i + size]
    assert different(text[start:end], query) >= max(different(window.strip(), query) for window in windows)


@examples(60)
@given(st.lists(st.sampled_from([*VOCABULARY, "x.", "longer!"]), min_size=1, max_size=60), st.integers(8, 80))
def test_a_passage_begins_and_ends_with_whole_words(words, size):
    text = " ".join(words)
    start, end = best_passage(text, "heat wing", size)
    assert set(text[start:end].split()) <= set(words)
    assert 0 <= start < end <= len(text)


@examples(60)
@given(st.text(), st.text(max_size=5), st.integers(1, 30))
def test_a_passage_lies_within_any_text(text, query, size):
    start, end = best_passage(text, query, size)
    assert 0 <= start <= end <= min(len(text), start + size)
    assert end > start or not text
    if not marks(text, query):
        assert start == 0


LONG = (
    "One two three. " * 50 + "Here the wing flutters, and heat comes later. A tail follows. " + "No more of it. " * 50
)


def test_a_passage_begins_with_a_sentence_and_ends_with_one():
    start, end = best_passage(LONG, "wings flutter heat", 80)
    assert LONG[start:end] == "Here the wing flutters, and heat comes later. A tail follows. No more of it."


def test_of_equal_passages_the_one_with_more_places_the_shorter_the_first_is_taken():
    assert best_passage("wing. " + "x " * 50 + "wing wing. " + "y " * 50, "wing", 30)[0] > 90
    text = "wing x x x heat. " + "x " * 50 + "wing heat. " + "y " * 50 + "wing heat."
    assert text[slice(*best_passage(text, "wing heat", 20))].endswith("wing heat.")
    assert best_passage(text, "wing heat", 20)[0] < 130


def test_a_text_without_the_words_opens_at_its_beginning():
    start, end = best_passage(LONG, "nothing known", 20)
    assert (start, LONG[:end]) == (0, "One two three.")
    assert best_passage("short", "nothing") == (0, 5)
    assert best_passage("", "nothing") == (0, 0)


def test_text_without_blanks_is_cut_between_characters_and_their_signs():
    text = "前" * 100 + "検索評価" + "後" * 100
    start, end = best_passage(text, "検索 評価", 20)
    assert text[start:end].startswith("検索評価")
    assert end - start == 20
    assert best_passage("e\u0301" * 30, "x", 5) == (0, 4)
    assert best_passage("w" * 30, "w" * 30, 5) == (0, 5)


@examples(60)
@given(st.text(alphabet="検索評価 .a", max_size=60), st.text(alphabet="検索評価 a", max_size=6), st.integers(1, 20))
def test_a_passage_begins_in_no_mark(text, query, size):
    start, _ = best_passage(text, query, size)
    assert not any(one < start < other for one, other in marks(text, query))


def test_sentences_of_chinese_end_with_their_own_stop():
    text = "甲乙丙。" * 20 + "検索評価。" + "丁。" * 40
    start, end = best_passage(text, "検索", 20)
    assert text[start:end].startswith("検索評価。")
    assert text[start:end].endswith("。")


def test_a_size_below_one_is_refused():
    with pytest.raises(DataError, match="size: expected a number of characters above 0, got 0"):
        best_passage("text", "query", 0)

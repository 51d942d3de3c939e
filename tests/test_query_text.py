"""The normal form of queries, against Unicode's own data."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.formats.query_text import normalised
from hypotheses import examples


@examples(50)
@given(st.text(max_size=40))
def test_the_normal_form_of_a_normal_form_is_itself(query):
    assert normalised(normalised(query)) == normalised(query)


@examples(50)
@given(st.text(max_size=40))
def test_composed_and_decomposed_spellings_are_one_query(query):
    assert len({normalised(unicodedata.normalize(form, query)) for form in ("NFC", "NFD", "NFKC", "NFKD")}) == 1


def test_every_single_character_has_a_stable_normal_form():
    characters = map(chr, range(sys.maxunicode + 1))
    assert [each for each in characters if normalised(normalised(each)) != normalised(each)] == []


@pytest.mark.parametrize(
    "spelling", ["usb cable", "USB CABLE", " usb  cable\n", "ｕｓｂ　ｃａｂｌｅ", "usb\u00a0cable"]
)
def test_case_spaces_and_width_do_not_make_another_query(spelling):
    assert normalised(spelling) == "usb cable"


@pytest.mark.parametrize(("one", "other"), [("resume", "résumé"), ("c", "c++"), ("a b", "b a"), ("a-b", "ab")])
def test_accents_signs_and_word_order_make_another_query(one, other):
    assert normalised(one) != normalised(other)

"""The base of all results: what is stated once comes out as text, Markdown, HTML, JSON, CSV and TSV."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib import import_module
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield
from cranfield.base.errors import ConventionError
from cranfield.base.results import (
    Answer,
    Both,
    Cell,
    Drawing,
    Entries,
    Layout,
    Lines,
    Part,
    Table,
    as_json,
    html,
    html_text,
    legible,
    markdown,
    markdown_text,
    plain,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

HOSTILE = """<script>alert("x & y")</script>|`*_#~[a](b)\\"""


@dataclass
class Fruit(Answer):
    """An answer with a bit of everything."""

    values: dict[str, float]

    def content(self, how: Layout) -> Iterable[Part]:
        best = max(self.values.values())
        rows = [[name, Cell(how.number(value), value, value == best)] for name, value in self.values.items()]
        return [Table(["fruit", "weight"], rows, title="Fruit by weight"), "A paragraph."]

    def plain(self, how: Layout) -> Any:
        return plain(self.values, how.digits)

    def notes(self, shell: bool = False) -> list[str]:
        return ["weigh again" + (" (--again)" if shell else "")]


class Basket(Fruit):
    """The same with rows of single topics, and its notes at its end."""

    has_topics = True
    ends_with_notes = True

    def records(self, how: Layout) -> Iterable[list[Any]]:
        yield ["fruit", *(["topic"] if how.per_topic else []), "weight"]
        for name, value in self.values.items():
            yield [name, *(["q"] if how.per_topic else []), value]


class Foreign(Fruit):
    """One whose JSON has kept to ASCII."""

    ascii_json = True


FRUIT = Fruit({"apple": 0.5, "fig": 0.125, "kiwi": float("nan")})


# a promise for all results

WRITERS = ("to_text", "to_markdown", "to_html", "to_dict", "to_json", "to_csv", "to_tsv", "_repr_html_")
OWN_WRITERS = {"Gate": {"to_markdown"}}  # what a pull request shows of a gate has a form of its own


def results(base: type[Answer] = Answer) -> Iterable[type[Answer]]:
    for cls in base.__subclasses__():
        yield from (cls, *results(cls))


def test_results_state_and_the_base_writes():
    for module in walk_packages(cranfield.__path__, "cranfield."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    ours = [cls for cls in results() if cls.__module__.startswith("cranfield.")]
    assert len(ours) > 8
    for cls in ours:
        assert {name for name in WRITERS if name in vars(cls)} <= OWN_WRITERS.get(cls.__name__, set()), cls


# for people


def test_text_is_an_aligned_table_and_paragraphs_with_a_blank_line_between():
    assert FRUIT.to_text(digits=2) == "fruit  weight\napple    0.50\nfig      0.12\nkiwi        -\n\nA paragraph."
    assert repr(FRUIT) == FRUIT.to_text()


def test_text_that_is_too_wide_is_folded_and_names_are_repeated():
    wide = Table(["run", "first", "second", "third"], [["bm25", "0.1", "0.2", "0.3"]])
    blocks = ["run   first\nbm25    0.1", "run   second\nbm25     0.2", "run   third\nbm25    0.3"]
    assert text([wide], limit=14) == "\n\n".join(blocks)
    said = text([Lines(["a sentence that is longer than the screen is wide"])], limit=24)
    assert said.splitlines() == ["a sentence that is", "  longer than the screen", "  is wide"]
    assert text(["word " * 20], limit=30).count("\n") == 3


def test_a_style_paints_the_head_the_best_cells_and_what_matters_least():
    def mark(kind: str, words: str) -> str:
        return f"<{kind}:{words.strip()}>"

    painted = FRUIT.to_text(style=mark)
    assert painted.splitlines()[0] == "<head:fruit>  <head:weight>"
    assert painted.count("<best:") == 1
    assert "<best:0.5000>" in painted
    assert text([Lines(["so what"], dim=True)], style=mark) == "<dim:so what>"
    assert text([Lines([], dim=True)], style=mark) == ""


def test_a_drawing_is_text_below_its_lead_code_in_markdown_and_its_own_html():
    bars = Drawing("A *lead*:", ["  a ███", "  b █"], "<svg></svg>")
    assert text([bars]) == "A *lead*:\n  a ███\n  b █"
    assert markdown([bars]) == "A \\*lead\\*:\n\n      a ███\n      b █"
    assert html([bars]) == "<svg></svg>"
    assert html([Drawing("<lead>", ["a < b"])]) == "<p>&lt;lead&gt;</p><pre>a &lt; b</pre>"


def test_entries_are_words_beside_their_meanings_which_go_on_below_their_beginning():
    entries = Entries([("AP", "average precision"), ("nDCG", "discounted gain")], "by rank")
    assert text([entries]) == "by rank\n  AP    average precision\n  nDCG  discounted gain"
    long = Entries([("AP", "precision at each relevant document, averaged over all of them")])
    assert (
        text([long], limit=40) == "  AP  precision at each relevant\n      document, averaged over all of\n      them"
    )
    assert markdown([entries]) == "by rank\n\n- AP: average precision\n- nDCG: discounted gain"
    assert html([entries]).startswith("<p>by rank</p><dl><dt>AP</dt><dd>average precision</dd>")
    assert text([Entries([("a", "b")], indent=0)], style=lambda kind, words: f"<{kind}:{words}>") == "a  b"


def test_an_answer_and_one_that_belongs_to_it_are_one_answer():
    figs = Basket({"fig": 0.25})
    both = Both(FRUIT, figs, "figs", "figs alone")
    tables = "fruit  weight\nfig    0.2500\n\nA paragraph."
    assert both.to_text() == f"{FRUIT.to_text()}\n\nfigs alone\n{tables}"
    assert both.to_dict() == {**FRUIT.to_dict(), "figs": figs.to_dict()}
    assert both.to_csv() == FRUIT.to_csv()
    assert both.notes() == [*FRUIT.notes(), *figs.notes()]
    alone = Both(None, figs, "figs")
    assert (alone.to_dict(), alone.to_csv(), alone.notes()) == ({"figs": figs.to_dict()}, figs.to_csv(), figs.notes())


def test_parts_that_say_nothing_leave_no_gap():
    assert text([Lines([]), "", "only"]) == "only"
    assert markdown([Lines([]), "", "only"]) == "only"
    assert html([Lines([]), "only"]) == "<p>only</p>"


def test_markdown_has_pipes_bold_best_cells_raised_marks_and_what_stands_below():
    lines = FRUIT.to_markdown(digits=1).splitlines()
    assert lines[:3] == ["| fruit | weight |", "| --- | ---: |", "| apple | **0.5** |"]
    assert "| kiwi | – |" in lines
    assert lines[-3:] == ["A paragraph.", "", "- weigh again"]
    table = Table(["run", "AP"], [["a", Cell("0.5", marks="b")]], caption="A caption", notes=["a note"])
    assert markdown([table]) == "A caption\n\n| run | AP |\n| --- | ---: |\n| a | 0.5 <sup>b</sup> |\n\na note"


def test_markdown_leaves_hostile_text_as_it_is():
    escaped = markdown_text(HOSTILE)
    assert "<script>" not in escaped.replace("\\<", "").replace("\\>", "")
    assert markdown([Table([HOSTILE], [[HOSTILE]])]).splitlines()[2].count(" | ") == 0
    assert markdown_text("caf\udce9") == "caf\\\\udce9"


def test_html_has_headings_a_caption_and_the_notes_as_a_list():
    shown = FRUIT.to_html()
    assert shown == FRUIT._repr_html_()
    assert "<caption>Fruit by weight</caption>" in shown
    assert '<th scope="col">weight</th>' in shown
    assert '<th scope="row" class="n">apple</th><td class="best">0.5000</td>' in shown
    assert shown.endswith("<p>A paragraph.</p><ul><li>weigh again</li></ul>")


def test_a_page_of_html_is_whole_and_titled():
    page = FRUIT.to_html(page=True)
    assert page.startswith('<!doctype html><html lang="en">')
    assert "<title>Fruit by weight</title>" in page
    assert page.endswith(f"<body>{FRUIT.to_html()}</body></html>")


class Tags(HTMLParser):
    """All tags and all text of a piece of HTML."""

    def __init__(self, given: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.words: list[str] = []
        self.feed(given)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@given(st.text(st.characters(exclude_categories=[])))
def test_html_says_any_text_and_makes_no_tag_of_it(words: str):
    for given_ in (HOSTILE, words):
        parts = [
            Table([given_], [[given_]], caption=given_, notes=[given_]),
            Lines([given_]),
            given_,
            Drawing("", [given_]),
        ]
        page = html(parts)
        page.encode()  # whatever it was, it can be written
        assert Tags(page).tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li", "p", "pre"}
    assert "".join(Tags(f"<p>{html_text(HOSTILE)}</p>").words) == HOSTILE


def test_notes_end_the_text_of_a_result_that_says_so_and_are_beside_that_of_others():
    assert "weigh again" not in FRUIT.to_text()
    assert Basket(FRUIT.values).to_text().endswith("\n\nA paragraph.\n\nweigh again")
    assert Basket(FRUIT.values).to_markdown().count("weigh again") == 1


# for programs


def test_csv_is_the_first_table_with_numbers_in_full_and_nothing_where_there_is_none():
    assert FRUIT.to_csv() == "fruit,weight\napple,0.5\nfig,0.125\nkiwi,\n"
    assert FRUIT.to_csv(digits=1) == "fruit,weight\napple,0.5\nfig,0.1\nkiwi,\n"
    assert FRUIT.to_tsv() == FRUIT.to_csv().replace(",", "\t")


def test_csv_of_records_knows_cells_floats_none_and_whatever_else():
    class Odd(Fruit):
        def records(self, how: Layout) -> Iterable[list[Any]]:
            return [["a", "b", "c", "d", "e"], [Cell("x"), 0.25, None, 3, HOSTILE]]

    [_, row] = csv.reader(io.StringIO(Odd({}).to_csv(digits=1)))
    assert row == ["x", "0.2", "", "3", HOSTILE]


def test_json_is_the_dict_with_none_for_what_does_not_exist():
    assert FRUIT.to_dict() == {"apple": 0.5, "fig": 0.125, "kiwi": None}
    assert FRUIT.to_dict(digits=1) == {"apple": 0.5, "fig": 0.1, "kiwi": None}
    assert json.loads(FRUIT.to_json()) == FRUIT.to_dict()


def test_json_spells_letters_out_only_where_it_must_or_has_always_done():
    assert "é" in Fruit({"é": 1.0}).to_json()
    assert Foreign({"é": 1.0}).to_json() == '{\n  "\\u00e9": 1.0\n}'
    odd = Fruit({"caf\udce9": 1.0, "é": 1.0}).to_json()
    assert odd.encode()
    assert json.loads(odd) == {"caf\udce9": 1.0, "é": 1.0}
    assert as_json({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}'


def test_plain_values_of_arrays_tuples_and_dataclasses():
    @dataclass
    class Point:
        x: float
        y: tuple[int, ...]

    held = {1: np.array([0.25, np.nan, np.inf]), "n": np.int64(3), "p": Point(np.float64(0.126), (1, 2)), "t": True}
    assert plain(held, digits=2) == {"1": [0.25, None, None], "n": 3, "p": {"x": 0.13, "y": [1, 2]}, "t": True}
    assert plain(None) is None
    assert type(plain(np.float64(1.5))) is float


def test_values_of_single_topics_are_refused_where_there_are_none():
    for write in (
        FRUIT.to_text,
        FRUIT.to_markdown,
        FRUIT.to_html,
        FRUIT.to_dict,
        FRUIT.to_json,
        FRUIT.to_csv,
        FRUIT.to_tsv,
    ):
        with pytest.raises(ConventionError, match="Fruit holds no values of single topics"):
            write(per_topic=True)
    assert Basket({"fig": 1.0}).to_csv(per_topic=True) == "fruit,topic,weight\nfig,q,1.0\n"


@pytest.mark.parametrize(
    ("layout", "value", "shown"),
    [
        (Layout(), 0.1, "0.1"),
        (Layout(digits=3), 0.1, "0.100"),
        (Layout(digits=0), 2.0, "2"),
        (Layout(digits=2), None, "-"),
        (Layout(undefined=""), float("nan"), ""),
    ],
)
def test_a_number_has_the_digits_asked_for(layout: Layout, value: float | None, shown: str):
    assert layout.number(value) == shown


def test_a_signed_number_has_its_sign():
    assert [Layout(digits=1).number(value, signed=True) for value in (0.5, -0.5)] == ["+0.5", "-0.5"]


def test_bytes_that_are_no_text_are_spelt_out():
    assert legible("caf\udce9") == "caf\\udce9"
    assert legible("é") == "é"

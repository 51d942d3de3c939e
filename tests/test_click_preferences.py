"""Preferences from clicks. The oracle applies each rule to one page after the other, in Python."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import ConventionError, DataError, FormatError
from cranfield.experiments.clicks.preferences import PREFERENCE_RULES, prefer_by_clicks
from cranfield.experiments.clicks.result_pages import ResultPages
from cranfield.formats.extras import read_preferences
from hypotheses import examples
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from pathlib import Path

LOG = "online/clicks-log"


def votes_by_hand(rule: str, shown: list[str], clicks: list[bool]) -> list[tuple[str, str]]:
    """The preferences of one page, as Joachims et al. (2005) define them."""
    clicked = [rank for rank, click in enumerate(clicks) if click]
    pairs = [(i, j) for i in clicked for j in range(len(shown)) if not clicks[j]]
    keep = {
        "skip-above": lambda i, j: j < i,
        "last-click-skip-above": lambda i, j: j < i and i == clicked[-1],
        "skip-next": lambda i, j: j == i + 1,
    }[rule]
    return [(shown[i], shown[j]) for i, j in pairs if keep(i, j)]


@st.composite
def logs(draw: Any) -> list[tuple[str, list[str], list[bool]]]:
    """Pages of one to six of six documents, of two queries."""
    sessions = []
    for _ in range(draw(st.integers(1, 15))):
        shown = draw(st.lists(st.sampled_from("abcdef"), unique=True, min_size=1, max_size=6))
        clicks = draw(st.lists(st.booleans(), min_size=len(shown), max_size=len(shown)))
        sessions.append((draw(st.sampled_from(["q", "r"])), shown, clicks))
    return sessions


@pytest.mark.parametrize(
    "rule", [name for name, cls in PREFERENCE_RULES.items() if cls.__module__.startswith("cranfield")]
)
@examples(30)
@given(sessions=logs(), least=st.integers(1, 3))
def test_preferences_against_one_page_after_the_other(rule: str, sessions: list, least: int) -> None:
    votes = Counter((query, *pair) for query, *page in sessions for pair in votes_by_hand(rule, *page))
    expected = {
        (query, one, other): (count, votes[query, other, one])
        for (query, one, other), count in votes.items()
        if count > votes[query, other, one] and count + votes[query, other, one] >= least
    }
    pages = ResultPages.of(sessions)
    if not expected:
        with pytest.raises(DataError, match=rule):
            prefer_by_clicks(pages, rule, min_votes=least)
        return
    answer = prefer_by_clicks(pages, rule, min_votes=least)
    counts = zip(answer.votes.tolist(), answer.against.tolist(), strict=True)
    rows = dict(zip(zip(answer.topics, answer.preferred, answer.other, strict=True), counts, strict=True))
    unordered = {(query, *sorted(pair)): 0 for query, *pair in votes}
    sums = {key: votes[key] + votes[key[0], key[2], key[1]] for key in unordered}
    assert rows == expected
    assert answer.rare == sum(total < least for total in sums.values())
    assert answer.tied == sum(total >= least and votes[key] * 2 == total for key, total in sums.items())


def test_the_file_is_read_by_preferences_and_the_better_run_fulfils_more(tmp_path: Path) -> None:
    path = tmp_path / "clicks.prefs"
    done = cranfield("online", "preferences", LOG, "--topics-file", "topics.tsv", "-o", path)
    assert done.code == 0, done.err
    rows = json.loads(cranfield("online", "preferences", LOG, "--topics-file", "topics.tsv", "--format", "json").out)[
        "preferences"
    ]
    assert len(read_preferences(str(path))) == 2 * len(rows)
    scores = cranfield(
        "eval", "qrels.txt", "bm25.run", "dense.run", "-m", "PrefSimple", "--preferences", path, "--format", "json"
    )
    assert scores.code == 0, scores.err


def test_cycles_of_users_are_written_and_read(tmp_path: Path) -> None:
    """a > b, b > c, c > a: users may say so, and one judgment group may not."""
    sessions = [("q", shown, [0, 1]) for shown in (["b", "a"], ["c", "b"], ["a", "c"]) for _ in range(3)]
    path = tmp_path / "cycle.prefs"
    path.write_bytes(b"".join(prefer_by_clicks(ResultPages.of(sessions)).as_prefs()))
    (tmp_path / "qrels.txt").write_text("q 0 a 1\n")
    (tmp_path / "one.run").write_text("q Q0 a 1 3 one\nq Q0 b 2 2 one\nq Q0 c 3 1 one\n")
    answer = cranfield("eval", "qrels.txt", "one.run", "-m", "PrefSimple", "--preferences", path, folder=tmp_path)
    assert answer.code == 0, answer.err
    assert "0.6667" in answer.out


def test_ids_with_blanks_are_refused_with_what_to_do() -> None:
    pages = ResultPages.of([("usb cable", ["b", "a"], [0, 1])] * 3)
    with pytest.raises(FormatError, match="'usb cable', which has white space.*--topics-file"):
        b"".join(prefer_by_clicks(pages).as_prefs())


def test_an_unknown_rule_is_refused_by_the_names_of_all() -> None:
    with pytest.raises(ConventionError, match="skip-above"):
        prefer_by_clicks(ResultPages.of([("q", ["a"], [1])]), "skip-it")
    assert cranfield("online", "preferences", LOG, "--rule", "skip-it", folder=EXAMPLES).code == 2

"""Interleaving: promises over every method with every coin tried, examples by hand, outcomes of another program."""

from __future__ import annotations

import importlib
import itertools
import json
import random
import re
import subprocess
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cranfield.experiments
from coins import every
from cranfield.base.errors import ConventionError, DataError
from cranfield.experiments import Interleaved, credit, interleave
from cranfield.experiments.click_credit import WORTH, Preference
from cranfield.experiments.interleaving import METHODS
from cranfield.experiments.interleaving.method import allowed_lists, chances, list_distribution
from hypotheses import examples
from shell import cranfield as command

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

FAIR = [name for name, method in METHODS.items() if method.blind_user_prefers_neither]
ORDERS = list(itertools.permutations("abcd"))


def outcomes(lists: Any, k: int, method: str, **parameters: Any) -> list[tuple[Any, Interleaved]]:
    """Every list that a method can make, with its probability."""
    return list(every(lambda coin: interleave(lists, k, coin, method, **parameters)))


def expected(made: Sequence[tuple[Any, Interleaved]], clicks: Iterable[int]) -> dict[tuple[str, str], float]:
    """The mean difference of every two systems, whatever is shown being clicked at these ranks."""
    clicks = list(clicks)
    means = dict.fromkeys(itertools.combinations(made[0][1].systems, 2), 0)
    for chance, shown in made:
        for pair, difference in credit(shown, clicks).pairs.items():
            means[pair] += chance * difference
    return means


def click_sets(n: int) -> list[tuple[int, ...]]:
    ranks = range(1, n + 1)
    return [clicks for size in (1, 2, n) for clicks in itertools.combinations(ranks, size)]


# promises of every method


@pytest.mark.parametrize("name", FAIR)
@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_a_blind_user_prefers_neither_at_any_rank_of_any_order_of_four(name, order):
    made = outcomes([list("abcd"), order], 4, name)
    assert sum(chance for chance, _ in made) == pytest.approx(1, abs=1e-12)
    for clicks in click_sets(4):
        [mean] = expected(made, clicks).values()
        assert abs(mean) <= (1e-9 if name == "optimised" else 1e-14)


def test_with_team_draft_the_credit_of_a_blind_user_is_0_without_rounding():
    for order in ORDERS:
        for rank in range(1, 5):
            [mean] = expected(outcomes([list("abcd"), order], 4, "team-draft(shared=yes)"), [rank]).values()
            assert mean == 0  # halves and quarters: nothing is rounded


def test_balanced_cannot_abcd_against_bcda_gives_half():
    made = outcomes([list("abcd"), list("bcda")], 4, "balanced")
    by_rank = [expected(made, [rank])["A", "B"] for rank in range(1, 5)]
    assert by_rank == [0, 0, -1, -1]
    assert sum(by_rank) / 4 == -0.5


def test_balanced_favours_someone_in_ten_of_24_orders():
    biased = 0
    for order in ORDERS:
        made = outcomes([list("abcd"), order], 4, "balanced")
        biased += sum(expected(made, [rank])["A", "B"] for rank in range(1, 5)) != 0
    assert biased == 10


wild = st.lists(st.lists(st.sampled_from("abcdef"), max_size=4), min_size=2, max_size=3)


@pytest.mark.parametrize("name", FAIR)
@given(lists=wild, k=st.integers(1, 4))
@examples(25)
def test_a_blind_user_prefers_neither_whatever_the_lists(name, lists, k):
    lists = lists if METHODS[name].many else lists[:2]
    assume(name != "probabilistic" or k * len(lists) <= 8)  # else too many lists to try
    made = outcomes(lists, k, name)
    size = len(made[0][1].documents)
    for clicks in click_sets(size) if size else []:
        assert all(abs(mean) < 1e-9 for mean in expected(made, clicks).values())


@pytest.mark.parametrize("name", METHODS)
@given(lists=wild, k=st.integers(1, 8), seed=st.integers(0, 99))
@examples(40)
def test_a_list_is_made_of_the_rankings_none_twice_and_k_long_where_it_can_be(name, lists, k, seed):
    lists = lists if METHODS[name].many else lists[:2]
    shown = interleave(lists, k, random.Random(seed), name)
    assert len(set(shown.documents)) == len(shown.documents)
    assert {*shown.documents} <= set().union(*lists)
    most = min(k, len(set().union(*lists)))
    assert len(shown.documents) == most if METHODS[name].fills else len(shown.documents) <= most
    assert len(shown.evidence.marks) == len(shown.teams) == len(shown.documents)


@pytest.mark.parametrize("name", METHODS)
@given(
    ranking=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    seed=st.integers(0, 9),
    clicks=st.sets(st.integers(1, 6)),
)
@examples(20)
def test_equal_rankings_tie_however_one_clicks(name, ranking, seed, clicks):
    shown = interleave([ranking, ranking], 6, random.Random(seed), name)
    found = credit(shown, [rank for rank in clicks if rank <= len(shown.documents)])
    assert found.tie
    assert found.winner is None


@pytest.mark.parametrize("name", METHODS)
def test_the_same_coin_makes_the_same_list(name):
    lists = [list("abcdefgh"), list("hgfedcba")]
    first, second = (interleave(lists, 5, random.Random(3), name) for _ in range(2))
    assert first.documents == second.documents
    assert first.evidence == second.evidence


@pytest.mark.parametrize("name", METHODS)
def test_a_document_placed_after_one_list_has_run_out_earns_nothing(name):
    for _, shown in outcomes([["a", "b"], ["c", "d", "e", "b", "f"]], 6, name):
        for rank in range(1, len(shown.documents) + 1):
            before = {*shown.documents[: rank - 1]}
            if {"a", "b"} <= before:
                assert credit(shown, [rank]).tie


@pytest.mark.parametrize("name", METHODS)
def test_an_empty_list_earns_nothing_and_hinders_nobody(name):
    shown = interleave({"one": [], "other": ["a", "b"]}, 5, random.Random(1), name)
    assert shown.documents == (("a", "b") if METHODS[name].fills else ())
    assert credit(shown, range(1, len(shown.documents) + 1)).credits == {"one": 0.0, "other": 0.0}
    assert interleave([[], []], 3, random.Random(1), name).documents == ()


@pytest.mark.parametrize("name", METHODS)
def test_a_repeat_in_a_list_counts_at_its_first_place(name):
    lists = [["a", "b", "a", "c"], ["c", "c", "d", "a"]]
    clean = [["a", "b", "c"], ["c", "d", "a"]]
    for seed in range(5):
        repeated, plain = (interleave(each, 4, random.Random(seed), name) for each in (lists, clean))
        assert (repeated.documents, repeated.evidence) == (plain.documents, plain.evidence)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_says_what_it_is(name):
    method = METHODS[name]
    assert method.formula
    assert method.reference[-4:].isdigit()
    assert [each.letter for each in METHODS.values()].count(method.letter) == 1
    assert METHODS.named(name.upper().replace("-", "_")).name == name


# another program's outcomes


def test_outcomes_against_another_program(shared: Path):
    theirs = {"Balanced": "balanced", "TeamDraft": "team-draft", "PairwisePreference": "pairwise-preference"}
    cases = json.loads((shared / "peer-cases" / "interleaving.json").read_text())["cases"]
    assert len(cases) == 18
    for case in cases:
        made = outcomes(case["lists"], case["length"], theirs[case["method"]])
        assert {shown.documents for _, shown in made} == {*map(tuple, case["allowed_outcomes"])}, case


# examples by hand


def test_team_draft_by_hand():
    made = outcomes({"bm25": ["a", "b", "c"], "dense": ["b", "d", "a"]}, 3, "team-draft")
    found = {(shown.documents, shown.teams): chance for chance, shown in made}
    assert found[("a", "b", "c"), ("bm25", "dense", "bm25")] == Fraction(1, 4)
    assert found[("b", "a", "d"), ("dense", "bm25", "dense")] == Fraction(1, 4)
    assert len(found) == 4


def test_of_team_draft_clicks_on_a_shared_top_count_for_nobody_unless_asked():
    lists = [["x", "y", "a"], ["x", "y", "b"]]
    for seed in range(8):
        shown = interleave(lists, 3, random.Random(seed))
        assert shown.teams[:2] == (None, None)
        assert shown.teams[2] in ("A", "B")
        assert set(interleave(lists, 3, random.Random(seed), shared=True).teams) == {"A", "B"}


def test_team_draft_of_many_gives_each_a_pick_a_round():
    lists = {name: [f"{name}{i}" for i in range(4)] for name in "pqr"}
    for seed in range(6):
        teams = interleave(lists, 6, random.Random(seed)).teams
        assert {*teams[:3]} == {*teams[3:]} == {"p", "q", "r"}


@pytest.mark.parametrize(
    ("lists", "top"),
    [([[0, 1, 2], [0, 1, 2]], [0.86056, 0.10757, 0.03187]), ([[0, 1], [1, 2]], [0.44444, 0.5, 0.05556])],
)
def test_the_top_document_of_probabilistic_against_published_chances(lists, top):
    found = dict.fromkeys(range(3), 0.0)
    for chance, shown in outcomes(lists, 1, "probabilistic"):
        found[shown.documents[0]] += chance
    assert [round(found[document], 5) for document in range(3)] == top


def test_credit_of_probabilistic_against_the_sum_over_all_assignments():
    rng = random.Random(4)
    for _ in range(20):
        lists = [rng.sample("abcdefg", 6), rng.sample("abcdefg", 5)]
        shown = interleave(lists, 4, rng, "probabilistic(tau=2)")
        likely = np.zeros(4)
        total = 0.0
        for teams in itertools.product((0, 1), repeat=4):
            joint = 1.0
            for rank, team in enumerate(teams):
                left = {d: 1 / (i + 1) ** 2 for i, d in enumerate(lists[team]) if d not in shown.documents[:rank]}
                joint *= left.get(shown.documents[rank], 0.0) / sum(left.values())
            total += joint
            likely += joint * (np.array(teams) == 0)
        ours = [credit(shown, [rank]).credits["A"] for rank in range(1, 5)]
        assert ours == pytest.approx(likely / total, abs=1e-12)


def test_credit_of_probabilistic_loses_no_digits_far_down():
    ranking = list(range(60))
    shown = interleave([ranking, ranking[::-1]], 60, random.Random(2), "probabilistic", tau=8)
    last = credit(shown, [60]).credits
    assert last == pytest.approx({"A": 0.5, "B": 0.5}, rel=1e-12)  # both had this one document left
    assert sum(chances(60, 8.0)) > 1


def test_pairwise_preference_by_hand():
    # Both could stand first; b was clicked and a, above it, was not: B ranks them so and A does not.
    made = outcomes([["a", "b"], ["b", "a"]], 2, "pairwise-preference")
    found = {shown.documents: credit(shown, [2]).credits for _, shown in made}
    assert found == {("a", "b"): {"A": 0.0, "B": 1.0}, ("b", "a"): {"A": 1.0, "B": 0.0}}


def test_pairwise_preference_weighs_a_pair_by_the_chance_that_it_counts():
    # c joins at rank 2; that a was left until then had a chance of 1/2 of the two candidates of rank 1.
    made = outcomes([["a", "c"], ["b", "a"]], 3, "pairwise-preference")
    [shown] = [shown for _, shown in made if shown.documents == ("b", "a", "c")]
    earned = credit(shown, {2: 1.0}).credits
    # b above a: B says so, A has no b and says a; c right below the click: counts 1 / (1 - 1/2), A agrees, B too (no c)
    assert earned == {"A": 1.0, "B": 0.0}


def test_optimised_against_its_linear_program():
    one, other = tuple("abcdef"), tuple("cafbde")
    for how in ("inverse", "difference"):
        plan = list_distribution(one, other, how)
        assert len(plan.lists) <= 7
        assert {drawn.documents for drawn in plan.lists} <= {*allowed_lists(one, other)}
        assert plan.sums[-1] == pytest.approx(1, abs=1e-12)
    assert list_distribution(one, other, "inverse") is list_distribution(one, other, "inverse")


def test_each_top_of_an_optimised_list_is_made_of_a_top_of_either_ranking():
    one, other = tuple("abcde"), tuple("ceabd")
    lists = allowed_lists(one, other)
    assert len({*lists}) == len(lists)
    tops = [{*one[:i], *other[:j]} for i in range(6) for j in range(6)]
    fit = [each for each in itertools.permutations("abcde") if all({*each[:n]} in tops for n in range(6))]
    assert {*lists} == {*fit}


def test_optimised_with_binary_credit_says_where_there_is_no_solution():
    with pytest.raises(DataError, match=r"credits=binary has no solution .* use credits=inverse or credits=difference"):
        interleave([list("abcd"), list("bcda")], 4, random.Random(1), "optimised", credits="binary")
    assert interleave([list("ab"), list("ba")], 2, random.Random(1), "optimised(credits=binary)").teams[0]


def test_optimised_refuses_more_lists_than_it_can_weigh():
    one, other = [f"a{i}" for i in range(20)], [f"b{i}" for i in range(20)]
    with pytest.raises(DataError, match=r"k=20 has more than 20,000 lists; use a smaller k"):
        interleave([one, other], 20, random.Random(1), "optimised")


# credit


def shown() -> Interleaved:
    return interleave({"bm25": list("abcd"), "dense": list("bdca")}, 4, random.Random(1))


def test_credit_by_clicks_dwell_conversion_and_weights():
    page = shown()
    assert page.teams == ("bm25", "dense", "bm25", "dense")
    assert credit(page, [1, 3, 3, 4]).credits == {"bm25": 2.0, "dense": 1.0}
    seconds = {1: 4.0, 2: 31.0, 4: None}
    assert credit(page, seconds).credits == {"bm25": 1.0, "dense": 2.0}
    assert credit(page, seconds, "dwell").credits == {"bm25": 0.0, "dense": 1.0}
    assert credit(page, seconds, "dwell", enough=2).credits == {"bm25": 1.0, "dense": 1.0}
    assert credit(page, {1: 0.0, 2: 19.9, 3: None}, "conversion").credits == {"bm25": 1.0, "dense": 1.0}
    assert credit(page, {1: 0.5, 2: 19.9, 3: 0.25}, "weights").credits == {"bm25": 0.75, "dense": 19.9}
    assert list(WORTH) == ["clicks", "dwell", "conversion", "weights"]


def test_a_preference_names_its_winner_ties_and_pairs():
    found = Preference({"a": 2.0, "b": 2.0 + 1e-12, "c": 1.0})
    assert (found.winner, found.tie, found.best) == (None, False, ["a", "b"])
    assert found.pairs == {("a", "b"): 0.0, ("a", "c"): 1.0, ("b", "c"): pytest.approx(1.0)}
    assert "a tie of a, b" in found.to_text()
    assert credit(shown(), [1]).winner == "bm25"
    assert credit(shown(), [1]).to_dict()["pairs"] == [{"system": "bm25", "against": "dense", "difference": 1.0}]
    assert credit(shown(), []).tie


@pytest.mark.parametrize(
    ("clicks", "by", "words"),
    [
        ([0], "clicks", "a click at rank 0: expected a whole number from 1 to 4"),
        ([5], "clicks", "a click at rank 5"),
        (["b"], "clicks", "a click at rank b"),
        ([1.5], "clicks", "a click at rank 1.5"),
        ({1: -1.0}, "weights", "the click at rank 1: expected a value of 0 or more, found -1.0"),
        ({1: float("nan")}, "weights", "found nan"),
        ([1], "dwell", "credit by dwell needs the seconds of each click"),
    ],
)
def test_clicks_that_cannot_be_are_refused(clicks, by, words):
    with pytest.raises(DataError, match=words):
        credit(shown(), clicks, by)


@pytest.mark.parametrize("name", METHODS)
def test_a_click_on_an_empty_list_is_refused_in_a_sentence(name):
    empty = interleave([[], []], 4, random.Random(1), name)
    with pytest.raises(DataError, match="a click at rank 1: the list that was shown is empty"):
        credit(empty, [1])


def test_credit_by_something_else_is_refused():
    with pytest.raises(ConventionError, match="credit by 'luck': expected one of clicks, dwell, conversion, weights"):
        credit(shown(), [1], "luck")


# bad input


@pytest.mark.parametrize(
    ("rankings", "k", "how", "words"),
    [
        ([["a"]], 3, {}, "team-draft interleaves two rankings or more, found 1"),
        ([["a"]] * 3, 3, {"method": "balanced"}, "balanced interleaves two rankings .for more: .*team-draft., found 3"),
        (["abc", "bcd"], 3, {}, "ranking A: expected a list of documents, found 'abc'"),
        ({"x": None, "y": []}, 3, {}, "ranking x: expected a list of documents, found None"),
        ([[["a"]], [["b"]]], 3, {}, "expected lists of document ids"),
        ({"1": ["a"], 1: ["b"]}, 3, {}, "rankings with different names"),
        ([["a"], ["b"]], 0, {}, "k must be 1 or more, got 0"),
        ([["a"], ["b"]], "3", {}, "k must be a whole number"),
        ([["a"], ["b"]], 3, {"method": "shuffle"}, "no interleaving method 'shuffle'; there are balanced"),
        ([["a"], ["b"]], 3, {"tau": 2}, "team-draft: no parameter 'tau'"),
        ([["a"], ["b"]], 3, {"method": "probabilistic", "tau": [3]}, r"tau must be between 0 and 30, got \[3\]"),
        ([["a"], ["b"]], 3, {"method": "probabilistic", "tau": 31}, "tau must be between 0 and 30"),
    ],
)
def test_what_cannot_be_interleaved_is_refused_in_words(rankings, k, how, words):
    with pytest.raises(ValueError, match=words):
        interleave(rankings, k, random.Random(1), **how)


def test_a_coin_must_be_one():
    with pytest.raises(ConventionError, match=r"coin must be a random.Random or compatible, found Generator"):
        interleave([["a"], ["b"]], 1, np.random.default_rng(1))  # type: ignore[arg-type]


def test_a_method_may_be_given_itself_and_with_parameters_in_two_ways():
    lists = [list("abc"), list("cab")]
    given_itself = interleave(lists, 3, random.Random(1), METHODS.named("probabilistic(tau=2)"))
    by_keyword = interleave(lists, 3, random.Random(1), "probabilistic", tau=2)
    assert given_itself.documents == by_keyword.documents
    assert str(by_keyword.method) == "probabilistic(tau=2)"


def test_rankings_without_names_are_called_by_letters():
    assert interleave([["a"], ["b"], ["c"]], 3, random.Random(1)).systems == ("A", "B", "C")
    assert interleave([["a"]] * 28, 3, random.Random(1)).systems[25:] == ("Z", "S27", "S28")


def test_the_room_is_reached_from_the_package_and_costs_nothing_before():
    said = "import sys, cranfield; print('cranfield.experiments' in sys.modules, cranfield.experiments.interleave.__name__)"
    answer = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert answer.stdout == "False interleave\n"
    assert "experiments" in dir(cranfield)


def test_the_public_functions_of_the_room_stay_functions_after_its_modules_were_imported():
    for name in ("interleaving.token", "click_credit", "interleaving"):
        importlib.import_module(f"cranfield.experiments.{name}")
    assert cranfield.experiments.interleave is interleave
    assert cranfield.experiments.credit is credit


# the command


def test_the_command_shows_the_list_and_what_clicks_earn():
    typed = ("online", "interleave", "bm25.run", "dense.run", "--topic", "q1", "-k", "4", "--seed", "7")
    answer = json.loads(command(*typed, "--format", "json").out)
    assert [line["rank"] for line in answer["documents"]] == [1, 2, 3, 4]
    assert answer["systems"] == ["bm25", "dense"]
    assert answer == json.loads(command(*typed, "--format", "json").out)
    assert "a click is for" in command(*typed).out


@pytest.mark.parametrize(
    ("typed", "code", "words"),
    [
        ("interleave bm25.run dense.run --topic zz", 3, "topic 'zz' is missing from bm25, dense"),
        ("interleave bm25.run --topic q1", 3, "two rankings or more, found 1"),
        ("interleave bm25.run dense.run --topic q1 --interleaving nix", 2, "no interleaving method 'nix'"),
        ("interleave bm25.run dense.run", 2, "Missing option '--topic'"),
        ("methods nix", 2, "no interleaving method 'nix'"),
    ],
)
def test_the_command_refuses_in_words(typed, code, words):
    answer = command("online", *typed.split())
    assert answer.code == code
    assert words in answer.err


@pytest.mark.parametrize("name", METHODS)
def test_the_command_lists_and_explains_every_method(name):
    assert name in command("online", "methods").out
    assert name in re.sub(r"-\s+", "-", command("online", "interleave", "--help-all").out)  # lines break at hyphens
    explained = " ".join(command("online", "methods", name).out.split())
    assert METHODS[name].reference in explained

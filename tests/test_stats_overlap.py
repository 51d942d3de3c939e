"""Rank-biased overlap and its relatives, with and without ties, against Corsi and Urbano's 10,000 pairs and enumeration."""

from __future__ import annotations

import csv
import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import DataError
from cranfield.stats.overlap import TiedRanking, agreement, average_overlap, jaccard, overlap, rbo, rbo_cut
from hypotheses import examples

GROUP = re.compile(r"\(([^)]*)\)|(\S+)")


def read(text: str) -> TiedRanking:
    """`red (blue green) pink`."""
    return TiedRanking(match[1].split() if match[1] is not None else match[2] for match in GROUP.finditer(text))


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.slow)], ids=["every eighth", "all"])
def test_10000_pairs_in_each_variant_against_corsi_and_urbano(step, shared):
    with open(shared / "rbo-ties" / "test.csv", encoding="utf-8", newline="") as file:
        pairs = list(csv.DictReader(file))
    assert len(pairs) == 10_000
    ours, theirs = [], []
    for pair in pairs[::step]:
        x, y, p = read(pair["x"]), read(pair["y"]), float(pair["p"])
        for ties in ("w", "a", "b"):
            ours.append(rbo(x, y, p, ties))
            theirs.append([float(pair[f"{ties}.{bound}"]) for bound in ("ext", "min", "max", "res")])
    np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=0, atol=5e-14)  # they have 15 digits


def plain_rbo(x, y, p: float, depth: int) -> float:
    """The definition, summed up to a depth."""
    total, mine, theirs = 0.0, set(), set()
    for d in range(1, depth + 1):
        mine.add(x[d - 1])
        theirs.add(y[d - 1])
        total += p ** (d - 1) * len(mine & theirs) / d
    return (1 - p) * total


lists = st.tuples(st.permutations("abcdefgh"), st.permutations("cdefghijk"), st.integers(1, 8), st.integers(1, 8)).map(
    lambda four: (list(four[0][: four[2]]), list(four[1][: four[3]]))
)
persistence = st.sampled_from([0.3, 0.5, 0.8, 0.9])


@examples(25)
@given(lists, persistence)
def test_rbo_min_and_max_against_continued_lists(two, p):
    """Continue both lists with strangers, or with each other's items first and the same items afterwards."""
    x, y = two
    far = 200
    strangers = plain_rbo([*x, *(f"x{i}" for i in range(far))], [*y, *(f"y{i}" for i in range(far))], p, far)
    mine, theirs = [d for d in y if d not in x], [d for d in x if d not in y]
    short, long, more = (x, y, mine) if len(x) <= len(y) else (y, x, theirs)
    same = [f"s{i}" for i in range(far)]
    rest = [d for d in short if d not in long]
    best = plain_rbo([*short, *more, *same], [*long, *rest, *same], p, far)
    assert rbo(x, y, p).min == pytest.approx(strangers, abs=1e-8)
    assert rbo(x, y, p).max == pytest.approx(best, abs=1e-8)


def tie_orders(groups):
    for arranged in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [item for group in arranged for item in group]


@examples(25)
@given(
    st.tuples(st.permutations("abcde"), st.permutations("bcdef")),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
    persistence,
)
def test_variant_a_is_the_mean_over_all_orders_of_the_ties_against_exact_enumeration(two, cuts, other_cuts, p):
    def grouped(items, breaks):
        groups = [[items[0]]]
        for item, new in zip(items[1:], breaks, strict=True):
            if new:
                groups.append([item])
            else:
                groups[-1].append(item)
        return groups

    x, y = grouped(two[0], cuts), grouped(two[1], other_cuts)
    if math.prod(math.factorial(len(group)) for group in [*x, *y]) > 60:
        return
    pairs = list(itertools.product(tie_orders(x), tie_orders(y)))
    for k in (1, 3, 5):
        expected = np.mean([overlap(one, other, k) for one, other in pairs])
        assert overlap(x, y, k) == pytest.approx(expected, abs=1e-12)
    expected = np.mean([rbo(one, other, p) for one, other in pairs], axis=0)
    assert rbo(x, y, p) == pytest.approx(tuple(expected), abs=1e-12)


@given(lists, persistence, st.sampled_from("abw"))
def test_rbo_promises_bounds_symmetry_and_identity(two, p, ties):
    x, y = two
    value = rbo(x, y, p, ties)
    assert 0 <= value.min <= value.ext + 1e-12
    assert value.ext <= value.max + 1e-12 <= 1 + 2e-12
    assert value.res == pytest.approx(value.max - value.min, abs=1e-12)
    assert rbo(y, x, p, ties) == pytest.approx(value, abs=1e-12)
    assert rbo(x, x, p, ties).ext == pytest.approx(1)


def test_a_list_with_ties_agrees_with_itself_fully_in_variants_b_and_w_only():
    tied = [{"a", "b", "c"}, "d"]
    assert rbo(tied, tied, 0.9, "b").ext == pytest.approx(1)
    assert rbo(tied, tied, 0.9, "w").ext == pytest.approx(1)
    assert rbo(tied, tied, 0.9, "a").ext < 0.95


def test_agreement_overlap_and_average_overlap_by_hand():
    x, y = ["a", "b", "c", "d"], ["b", "a", "e", "c"]
    assert agreement(x, y).tolist() == [0, 1, 2 / 3, 3 / 4]
    assert overlap(x, y, 3) == 2 / 3
    assert average_overlap(x, y, 3) == pytest.approx((0 + 1 + 2 / 3) / 3)
    assert jaccard(x, y, 3) == 2 / 4
    assert jaccard(x, y) == 3 / 5
    assert overlap(x, y, 100) == 3 / 4, "no deeper than the longer list"
    assert rbo_cut(x, y, 0.5, 3) == pytest.approx((0 + 0.5 + 0.25 * 2 / 3) / 1.75)


def test_rankings_come_from_scores_too():
    scores = {"a": 1.0, "b": 2.0, "c": 1.0}
    ranking = TiedRanking.by_score(scores)
    assert ranking.items == ["b", "a", "c"]
    assert ranking.tied
    assert not ranking.broken().tied
    assert rbo(scores, ["b", {"a", "c"}]) == rbo(ranking, ranking)
    assert ranking.head(2).items == ["b", "a"]
    assert not ranking.head(2).tied


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((["a"], ["b"], 1.0), "p must be between 0 and 1, ends excluded, got 1.0"),
        ((["a"], ["b"], 0.5, "c"), "ties must be a, b or w"),
        ((["a", "a"], ["b"]), "item 'a' occurs twice"),
        (([], ["b"]), "expected at least one item"),
        (("abc", ["b"]), "expected a ranking as a list"),
        (([[["a"]]], ["b"]), "must be hashable"),
    ],
)
def test_bad_data_is_refused(arguments, words):
    with pytest.raises(DataError, match=words):
        rbo(*arguments)


def test_a_depth_of_nothing_is_refused():
    for function in (overlap, average_overlap, jaccard):
        with pytest.raises(DataError, match="1 or more, got 0"):
            function(["a"], ["b"], 0)


def test_the_head_of_a_ranking_and_a_p_that_makes_no_sense():
    ranking = TiedRanking(["a", ["b", "c"], "d"])
    assert ranking.head(None) is ranking.head(4) is ranking
    assert (ranking.head(2).items, ranking.head(2).tied) == (["a", "b"], False)
    with pytest.raises(DataError, match="p must be between 0 and 1"):
        rbo_cut(["a"], ["a"], p=1.0)

"""Every figure of the source lectures that one of our measures should give. Names say which lecture.

`ranked("1 1 0")` is a run whose documents have these grades, best first; `missed` are judged documents it lacks.
"""

from __future__ import annotations

import math

import pytest

from cranfield import evaluate
from oracles import proves

Judged = tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]


def ranked(grades: str, missed: str = "", topic: str = "q") -> Judged:
    """Qrels and run of one topic, from the grades down the ranking and those of the documents not returned."""
    found = [float(grade) for grade in grades.split()]
    lacking = [float(grade) for grade in missed.split()]
    qrels = {f"d{i}": grade for i, grade in enumerate([*found, *lacking])}
    run = {f"d{i}": float(-i) for i in range(len(found))}
    return {topic: qrels}, {topic: run}


def value(judged: Judged, measure: str) -> float:
    return evaluate(*judged, measure).mean()


def values(judged: Judged, pattern: str, ks: range) -> list[float]:
    return list(evaluate(*judged, [pattern.format(k) for k in ks]).means().values())


# Sets (lectures 000 and 004)

SYSTEM_A = ranked("1 1 0", missed="1 " * 8)
SYSTEM_B = ranked("1 1 1 0 0", missed="1 " * 7)


@proves("SetP", "SetR", "SetF")
def test_set_measures_of_system_a_against_lecture_000() -> None:
    assert value(SYSTEM_A, "SetP") == pytest.approx(2 / 3)
    assert value(SYSTEM_A, "SetR") == pytest.approx(2 / 10)
    assert value(SYSTEM_A, "SetF") == pytest.approx(4 / 13)


def test_sets_system_b_against_lecture_000() -> None:
    assert value(SYSTEM_B, "SetP") == pytest.approx(3 / 5)
    assert value(SYSTEM_B, "SetR") == pytest.approx(3 / 10)
    assert value(SYSTEM_B, "SetF") == pytest.approx(2 / 5)


def test_the_miraculous_system_is_precise_and_finds_little_against_lecture_004() -> None:
    one = ranked("1", missed="1 " * 999)
    assert value(one, "SetP") == 1
    assert value(one, "SetR") == pytest.approx(1 / 1000)


def test_the_naive_system_that_returns_everything_against_lecture_004() -> None:
    everything = ranked("1 " * 4 + "0 " * 396)
    assert value(everything, "SetP") == pytest.approx(4 / 400)
    assert value(everything, "SetR") == 1


def test_f_gives_no_credit_for_returning_everything_as_the_arithmetic_mean_does_against_lecture_004() -> None:
    everything = ranked("1 " * 4 + "0 " * 3996)
    arithmetic = (value(everything, "SetP") + value(everything, "SetR")) / 2
    assert arithmetic == pytest.approx(0.5, abs=0.001)
    assert value(everything, "SetF") < 0.002


@proves("F", "SetF")
@pytest.mark.parametrize("beta", [0.25, 0.5, 1, 2, 4])
def test_f_with_beta_is_the_weighted_harmonic_mean_against_lecture_004(beta: float) -> None:
    precision, recall = 3 / 5, 3 / 10
    weight = 1 / (beta**2 + 1)
    harmonic = 1 / (weight / precision + (1 - weight) / recall)
    assert value(SYSTEM_B, f"SetF(beta={beta})") == pytest.approx(harmonic)
    assert value(SYSTEM_B, f"F(beta={beta})@5") == pytest.approx(harmonic)
    product = (beta**2 + 1) * precision * recall / (beta**2 * precision + recall)
    assert harmonic == pytest.approx(product)


# One ranked list (000)

LIST = ranked("1 1 0 0 1 0 0 1 0 0", missed="1 " * 6)


@proves("P", "R")
@pytest.mark.parametrize(("k", "found"), [(1, 1), (2, 2), (3, 2), (5, 3), (8, 4)], ids=lambda value: str(value))
def test_precision_and_recall_down_one_list_against_lecture_000(k: int, found: int) -> None:
    assert value(LIST, f"P@{k}") == pytest.approx(found / k)
    assert value(LIST, f"R@{k}") == pytest.approx(found / 10)


def test_precision_at_ten_of_one_list_against_lecture_000() -> None:
    assert value(LIST, "P@10") == pytest.approx(4 / 10)


@proves("AP")
def test_average_precision_divides_by_the_ten_relevant_against_lecture_000() -> None:
    assert value(LIST, "AP") == pytest.approx(0.31)


def test_average_precision_over_the_four_found_is_the_common_mistake_against_lecture_000() -> None:
    assert value(LIST, "AP(divide=found)") == pytest.approx((1 + 1 + 3 / 5 + 4 / 8) / 4)


def test_precision_at_a_recall_level_never_reached_is_zero_against_lecture_000() -> None:
    assert value(LIST, "IPrec@0.4") == pytest.approx(4 / 8)
    assert [value(LIST, f"IPrec@{level}") for level in (0.5, 0.6, 0.9, 1)] == [0, 0, 0, 0]


# "toxic waste" (002)

TOXIC = ranked("1 1 1 0 0 1 1 0 1 0")


def test_toxic_waste_precision_at_1_to_8_against_lecture_002() -> None:
    expected = [1, 1, 1, 3 / 4, 3 / 5, 2 / 3, 5 / 7, 5 / 8]
    assert values(TOXIC, "P@{}", range(1, 9)) == pytest.approx(expected)


def test_toxic_waste_at_rank_10_against_lecture_002() -> None:
    assert value(TOXIC, "P@10") == pytest.approx(0.6)
    assert round(value(TOXIC, "AP@10"), 2) == 0.84


@proves("IPrec", "11pt")
def test_interpolated_precision_is_the_highest_at_any_higher_recall_against_lecture_002() -> None:
    curve = [value(TOXIC, f"IPrec@{tenth / 10}") for tenth in range(11)]
    assert curve == sorted(curve, reverse=True)
    assert curve == pytest.approx([1] * 6 + [5 / 7] * 3 + [2 / 3] * 2)
    assert value(TOXIC, "11pt") == pytest.approx(sum(curve) / 11)


# Two rankings, same P@10 and R@10 (004)

FIRST = ranked("1 0 1 1 1 1 0 0 0 1")
SECOND = ranked("0 1 0 0 1 1 1 0 1 1")


def test_two_rankings_that_only_average_precision_tells_apart_against_lecture_004() -> None:
    for measure in ("P@10", "R@10"):
        assert value(FIRST, measure) == value(SECOND, measure)
    assert value(FIRST, "AP") == pytest.approx(0.775)  # which the lecture rounds up, to 0.78
    assert round(value(SECOND, "AP"), 2) == 0.52


def test_precision_and_recall_at_k_of_three_relevant_against_lecture_004() -> None:
    three = ranked("1 0 1 0 1")
    assert [f"{p:.2f}" for p in values(three, "P@{}", range(1, 5))] == ["1.00", "0.50", "0.67", "0.50"]
    assert [f"{r:.2f}" for r in values(three, "R@{}", range(1, 6))] == ["0.33", "0.33", "0.67", "0.67", "1.00"]


@proves("AP")
def test_mean_average_precision_of_two_queries_against_lecture_004() -> None:
    qrels, run = ranked("1 0 1 0 0 1 0 0 1 1", topic="query 1")
    more_qrels, more_run = ranked("0 1 0 0 1 0 1 0 0 0", topic="query 2")
    scores = evaluate(qrels | more_qrels, run | more_run, "AP")
    assert round(scores["AP", "query 1"], 2) == 0.62
    assert round(scores["AP", "query 2"], 2) == 0.44
    assert round(scores.mean(), 2) == 0.53


# Known item (000, 002, 003)


@proves("AP", "RR")
@pytest.mark.parametrize("rank", [1, 2, 3, 7, 50])
def test_a_known_item_at_rank_r_has_ap_and_rr_of_one_over_r_against_lecture_003(rank: int) -> None:
    item = ranked("0 " * (rank - 1) + "1")
    assert value(item, "AP") == value(item, "RR") == pytest.approx(1 / rank)


def test_mrr_is_moved_by_the_top_and_the_mean_rank_by_the_worst_against_lecture_003() -> None:
    def mrr(*ranks: int) -> float:
        items = [ranked("0 " * (rank - 1) + "1", topic=f"q{i}") for i, rank in enumerate(ranks)]
        return value(({**items[0][0], **items[1][0]}, {**items[0][1], **items[1][1]}), "RR")

    assert mrr(1, 50) - mrr(2, 50) == pytest.approx(0.25)
    assert mrr(1, 50) - mrr(1, 100) == pytest.approx(0.005)


# Graded gain (000, 001, 002, 003)

GRADED = ranked("3 2 1 1 3", missed="3 " * 7 + "2 " * 3)


@proves("CG")
def test_cumulated_gain_down_the_list_against_lecture_000() -> None:
    assert values(GRADED, "CG@{}", range(1, 6)) == [3, 5, 6, 7, 10]


@proves("DCG")
def test_discounted_gain_of_jarvelin_and_kekalainen_against_lecture_000() -> None:
    assert round(value(GRADED, "DCG(discount=jk)@5"), 2) == 7.42


@proves("DCG", "nDCG")
def test_the_ideal_list_of_nine_grades_of_three_and_then_twos_against_lecture_001() -> None:
    ideal = ranked("3 " * 9 + "2 2 2")
    assert round(value(ideal, "DCG(discount=jk)@10"), 2) == 15.46
    assert value(ideal, "nDCG(discount=jk)@10") == 1
    assert value(GRADED, "nDCG(discount=jk)@10") == pytest.approx(
        value(GRADED, "DCG(discount=jk)@10") / value(ideal, "DCG(discount=jk)@10")
    )


def test_a_grade_may_earn_gain_and_yet_not_count_as_relevant_against_lecture_001() -> None:
    assert value(GRADED, "CG@5") == 10
    assert value(GRADED, "P(rel=2)@5") == pytest.approx(3 / 5)


@proves("DCG")
def test_discounted_gain_with_log_of_rank_plus_one_against_lecture_002() -> None:
    expected = ["4.00", "4.00", "4.00", "4.43", "5.98", "5.98", "5.98", "5.98", "6.28", "6.57"]
    assert [f"{v:.2f}" for v in values(ranked("4 0 0 1 4 0 0 0 1 1"), "DCG@{}", range(1, 11))] == expected


@proves("DCG", "nDCG")
def test_ideal_gain_of_grades_3_and_1_against_lecture_003() -> None:
    assert round(value(ranked("3 1"), "DCG"), 2) == 3.63
    assert value(ranked("1 3"), "nDCG") == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)))


@proves("ERR")
def test_expected_reciprocal_rank_equals_the_sum_in_lecture_002() -> None:
    grades = [2, 0, 4, 1, 3]
    stop = [(2**grade - 1) / 2**4 for grade in grades]
    by_hand = sum(1 / (j + 1) * stop[j] * math.prod(1 - stop[k] for k in range(j)) for j in range(len(grades)))
    assert value(ranked(" ".join(map(str, grades))), "ERR") == pytest.approx(by_hand)


def test_real_valued_grades_work_against_lecture_003() -> None:
    inferred = ranked("0.25 2.5 0.5")
    expected = 0.25 + 2.5 / math.log2(3) + 0.5 / 2
    assert value(inferred, "DCG") == pytest.approx(expected)
    assert value(inferred, "nDCG") == pytest.approx(expected / (2.5 + 0.5 / math.log2(3) + 0.25 / 2))
    assert value(inferred, "RR(rel=0.4)") == 0.5

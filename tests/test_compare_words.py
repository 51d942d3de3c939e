"""What a comparison claims: the direction of the test that decides, answers to one-sided questions, intervals that hold."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest
from scipy import stats

from cranfield import Comparison, Scores, compare, leaderboard
from cranfield.base.errors import ConventionError
from cranfield.base.results import Layout
from cranfield.comparison.pair import disagreement
from cranfield.reports.report_content import report_of
from cranfield.reports.tables import comparison_table, leaderboard_table, summary
from cranfield.reports.writers import latex
from cranfield.stats.correction import CORRECTIONS
from shell import cranfield


def scored(values: np.ndarray, names: list[str], measure: str = "AP") -> Scores:
    return Scores.from_table(values, names, measure=measure)


def against(d: np.ndarray | list[float], measure: str = "AP", start: float = 0.3) -> Scores:
    other = start + np.asarray(d, float)
    return scored(np.stack([np.full(len(other), start), other], axis=1), ["old", "new"], measure)


def torn() -> Scores:
    """10 up, 40 down, and a higher mean; the sizes of the downs differ a little."""
    return against(np.r_[np.full(10, 0.9), -np.linspace(0.09, 0.11, 40)])


def ranked_against_its_mean() -> Scores:
    """a ranks best on most topics, c worst; c has the highest mean."""
    rng = np.random.default_rng(0)
    base = rng.uniform(0.2, 0.3, (60, 1))
    values = base + np.array([0.03, 0.02, 0.0]) + rng.normal(0, 0.001, (60, 3))
    values[:9, 2] += 0.6
    return scored(values, ["a", "b", "c"])


def last_cell(found: Comparison) -> str:
    return found.pair_table(Layout(digits=4)).texts()[1][-1]


# the direction of the test that decides


@pytest.mark.parametrize("test", ["sign", "mann-whitney"])
def test_neither_is_better_where_the_test_points_away_from_the_mean(test):
    found = compare(torn(), tests=test)
    [pair] = found.pairs
    assert pair.p < 0.0001
    assert (pair.ahead, pair.favoured, pair.better) == ("other", "one", "neither")
    assert last_cell(found) == "~"
    text = found.to_text()
    assert "favours old: neither beats the other" in text
    assert "new beats" not in text
    assert "~ the mean and the test disagree about the direction" in found.to_markdown().replace("\\", "")
    said = json.loads(found.to_json())["pairs"][0]
    assert (said["better"], said["ahead"], said["favoured"]) == ("neither", "other", "one")
    assert said["outcomes"][test]["direction"] == -1


def test_wilcoxon_that_points_away_from_the_mean_beats_nobody():
    d = np.r_[np.full(6, 0.5), -np.linspace(0.05, 0.06, 44)]
    found = compare(against(d), tests="wilcoxon")
    [pair] = found.pairs
    assert pair.p <= 0.05
    assert (pair.difference > 0, pair.favoured, pair.better) == (True, "one", "neither")
    assert "but the Wilcoxon favours old" in found.sentences()[0]


def test_nemenyi_follows_the_ranks_and_not_the_mean():
    found = compare(ranked_against_its_mean(), tests="nemenyi")
    pair = found.pair("a", "c")
    assert pair.p <= 0.05
    assert (pair.ahead, pair.favoured, pair.better) == ("other", "one", "neither")
    assert "c beats a" not in found.to_text()
    assert "Nemenyi favours a: neither beats the other" in found.sentence(pair)


def test_where_lower_is_better_the_test_favours_the_lower():
    scores = Scores.from_table(torn().values[:, 0].T, ["old", "new"], measure="seconds", lower_is_better=True)
    [pair] = compare(scores, tests="sign").pairs
    assert (pair.ahead, pair.favoured) == ("one", "other")


@pytest.mark.parametrize("test", ["randomisation", "t", "wilcoxon", "sign", "welch", "mann-whitney", "bootstrap-t"])
def test_a_test_that_agrees_with_the_mean_is_marked_as_before(test):
    d = np.random.default_rng(1).normal(0.2, 0.1, 60)
    for turn, mark, side in ((1, "+", "other"), (-1, "-", "one")):
        found = compare(against(turn * d), tests=test, resamples=2000)
        assert (last_cell(found), found.pairs[0].better, found.pairs[0].favoured) == (mark, side, side)


def test_equal_means_that_a_test_tells_apart_are_said_to_be():
    d = np.r_[np.full(10, 0.4), np.full(40, -0.1)]
    found = compare(against(d), tests="sign")
    assert "have the same mean AP on 50 topics" in found.sentences()[0]
    assert "but the sign test favours old: neither beats the other" in found.sentences()[0]
    assert last_cell(found) == "~"


def test_tests_that_are_significant_in_opposite_directions_are_told():
    d = np.r_[np.full(10, 0.9), -np.linspace(0.01, 0.02, 40)]
    found = compare(against(d), tests=["t", "sign"])
    assert all(outcome.p <= 0.05 for outcome in found.pairs[0].outcomes.values())
    text = disagreement(found.pairs[0], 0.05)
    assert (
        text
        == "new and old by AP: the tests disagree about the direction at 0.05. new scores higher: paired t; lower: sign test"
    )


def test_a_report_gives_no_letter_no_star_and_no_verdict_to_a_pair_that_is_torn():
    report = report_of(compare(torn(), tests="sign"))
    assert all(cell.marks == "" for row in leaderboard_table(report).cells() for cell in row)
    [row] = comparison_table(report).cells()
    assert "mean and test point apart" in [cell.text for cell in row]
    assert [cell.marks for cell in row if cell.marks] == ["†"]
    assert "\\dagger" in latex(report)
    assert "neither beats the other" in " ".join(summary(report))


def test_a_report_of_three_counts_the_torn_apart_from_the_open():
    report = report_of(compare(ranked_against_its_mean(), tests="nemenyi"))
    assert "significantly better than none" in " ".join(summary(report))


def test_the_letters_of_a_board_do_not_tell_a_torn_pair_apart():
    board = leaderboard(torn(), test="sign")
    assert [row.tier for row in board.rows] == ["a", "a"]
    assert any("against their means" in note for note in board.notes())
    assert [row.tier for row in leaderboard(against(np.linspace(0.1, 0.2, 50)), test="sign").rows] == ["a", "b"]


# one-sided questions


def up(n: int = 50) -> Scores:
    return against(np.linspace(0.01, 0.2, n))


@pytest.mark.parametrize("test", ["sign", "randomisation", "t", "wilcoxon"])
@pytest.mark.parametrize(
    ("alternative", "answer"), [("better", "yes"), ("worse", "no"), ("greater", "yes"), ("less", "no")]
)
def test_a_one_sided_question_is_answered_yes_or_no(test, alternative, answer):
    found = compare(up(), tests=test, alternative=alternative, resamples=2000)
    assert found.answer(found.pairs[0]) == answer
    assert f"? {answer}: " in found.sentences()[0]
    assert "do not settle it" not in found.to_text()
    assert last_cell(found) == answer
    assert json.loads(found.to_json())["pairs"][0]["answer"] == answer
    assert next(csv.DictReader(io.StringIO(found.to_csv())))["answer"] == answer


def test_what_neither_test_rejects_is_not_shown():
    d = np.random.default_rng(3).normal(0, 0.1, 60)
    for alternative in ("better", "worse"):
        found = compare(against(d), alternative=alternative)
        assert found.answer(found.pairs[0]) == "not shown"
        assert f"is new {alternative}? not shown: randomisation one-sided p" in found.sentences()[0]


def test_no_is_said_after_the_correction_of_the_opposite_questions():
    rng = np.random.default_rng(5)
    values = rng.uniform(0.2, 0.5, (40, 1)) + rng.normal(0, 0.1, (40, 6)) + np.linspace(0, 0.06, 6)
    found = compare(scored(values, list("abcdef")), tests="t", alternative="worse", correction="bonferroni")
    for pair in found.pairs:
        a, b = found.values(pair.one, "AP"), found.values(pair.other, "AP")
        opposite = min(1.0, 15 * stats.ttest_rel(b, a, alternative="greater").pvalue)
        assert pair.opposite == pytest.approx(opposite)
        assert (found.answer(pair) == "no") == (opposite <= 0.05)


@pytest.mark.parametrize(("alternative", "way"), [("better", "greater"), ("worse", "less")])
def test_a_one_sided_interval_against_scipy(alternative, way):
    scores = up()
    [pair] = compare(scores, tests="t", alternative=alternative, level=0.9).pairs
    a, b = scores.values[:, 0]
    expected = stats.ttest_rel(b, a, alternative=way).confidence_interval(0.9)
    assert (pair.low, pair.high) == pytest.approx((expected.low, expected.high))
    assert math.isinf(pair.high if way == "greater" else pair.low)


def test_an_open_end_is_said_in_words_and_is_nothing_in_data():
    found = compare(up(), alternative="better")
    assert "or more] on 50 topics" in found.sentences()[0]
    assert "inf" not in found.to_text()
    assert json.loads(found.to_json())["pairs"][0]["high"] is None
    [row] = comparison_table(report_of(found)).cells()
    assert any(cell.text.endswith("∞)") for cell in row)


def test_a_group_of_seeds_is_asked_one_sided_as_well():
    rng = np.random.default_rng(1)
    values = rng.uniform(0.2, 0.6, (60, 1)) + rng.normal(0, 0.05, (60, 4))
    values[:, 1:] += [0.10, 0.11, 0.12]
    scores = scored(values, ["bm25", "dense.1", "dense.2", "dense.3"])
    for alternative, answer in (("better", "yes"), ("worse", "no")):
        found = compare(scores, groups={"dense": "dense.*"}, alternative=alternative)
        assert found.answer(found.pairs[0]) == answer
        assert math.isinf(found.pairs[0].high) == (alternative == "better")


# intervals and corrected tests


def close(systems: int = 5, topics: int = 60, seed: int = 2) -> Scores:
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.1, 0.6, (topics, 1)) + rng.normal(0, 0.1, (topics, systems))
    return scored(values + 0.015 * np.arange(systems), list("abcdefghijkl"[:systems]))


def test_a_row_says_why_its_interval_leaves_out_0_and_the_test_does_not():
    found = compare(close())
    torn = [pair for pair in found.pairs if pair.low > 0 and pair.corrected > 0.05 >= pair.p]
    assert torn
    for pair in torn:
        assert "(the interval is for one pair, Holm covers 10 p-values)" in found.sentence(pair)
    assert "c not settled after correction (the interval is for one pair)" in found.to_text()
    marks = [row[-1] for row in found.pair_table(Layout(digits=4)).texts()[1:]]
    assert [pair in torn for pair in found.pairs] == [mark == "c" for mark in marks]


def test_an_interval_of_another_level_than_the_test_is_said_to_be():
    found = compare(close(2, seed=9), tests="t", level=0.2, alpha=0.01)
    assert "(the 20% interval (t) excludes 0, but the test is not significant)" in found.sentences()[0]
    assert last_cell(found) == "i"


def test_where_the_test_rejects_and_the_interval_holds_0_a_word_says_so():
    found = compare(close(8, seed=4), tests="t", simultaneous=True)
    held = [pair for pair in found.pairs if pair.low <= 0 <= pair.high and pair.corrected <= 0.05]
    assert held
    assert all(", although the interval of the mean contains 0" in found.sentence(pair) for pair in held)


@pytest.mark.parametrize("name", [name for name, one in CORRECTIONS.items() if one.corrects])
def test_simultaneous_intervals_against_scipy_at_the_level_of_the_correction(name):
    found = compare(close(seed=2), tests="t", correction=name, simultaneous=True)
    m, rejected = 10, sum(map(found.significant, found.pairs))
    harmonic = sum(1 / i for i in range(1, m + 1))
    level = {
        "sidak": 0.95 ** (1 / m),
        "benjamini-hochberg": 1 - rejected * 0.05 / m,
        "benjamini-yekutieli": 1 - rejected * 0.05 / m / harmonic,
    }.get(name, 1 - 0.05 / m)
    for pair in found.pairs:
        a, b = found.values(pair.one, "AP"), found.values(pair.other, "AP")
        if name.startswith("benjamini") and not found.significant(pair):
            assert math.isnan(pair.low)
            continue
        expected = stats.ttest_rel(b, a).confidence_interval(level)
        assert (pair.low, pair.high) == pytest.approx((expected.low, expected.high))


def test_intervals_at_the_level_of_bonferroni_and_false_coverage_say_what_the_test_says():
    for name in ("bonferroni", "sidak", "benjamini-hochberg", "benjamini-yekutieli"):
        found = compare(close(8, seed=6), tests="t", correction=name, simultaneous=True)
        for pair in found.pairs:
            assert (pair.low > 0 or pair.high < 0) == found.significant(pair)


@pytest.mark.parametrize(("test", "called"), [("tukey", "Tukey HSD"), ("max-t", "max-t")])
def test_the_intervals_of_tests_of_all_pairs_are_their_own(test, called):
    found = compare(close(), tests=test, simultaneous=True, resamples=2000)
    for pair in found.pairs:
        assert (pair.low, pair.high) == (pair.outcomes[test].low, pair.outcomes[test].high)
        assert (pair.low > 0 or pair.high < 0) == (pair.p <= 0.05)
    assert f"95% of all mean differences by a measure at once ({called})" in found.to_text()


def test_the_text_names_the_intervals():
    text = compare(close(), tests="t", simultaneous=True).to_text()
    assert "95% of all 10 mean differences at once (Bonferroni, t, 99.5% each)" in text
    text = compare(close(), tests="t", simultaneous=True, correction="bh").to_text()
    assert "false coverage rate" in text
    assert "the others have none" in text


def test_simultaneous_needs_a_correction_or_a_test_with_intervals():
    with pytest.raises(ConventionError, match="simultaneous intervals keep the level of a correction"):
        compare(close(), correction="none", simultaneous=True)
    with pytest.raises(ConventionError, match="nemenyi compares ranks"):
        compare(close(), tests="nemenyi", simultaneous=True)


def test_the_command_line_takes_simultaneous(tmp_path):
    answer = cranfield("compare", "qrels.txt", "bm25.run", "dense.run", "-m", "AP RR", "--simultaneous")
    assert "95% of all 2 mean differences at once (Bonferroni, t, 97.5% each)" in answer.out


def covered(found: Comparison, truth: np.ndarray) -> list[bool]:
    """Of the pairs that have an interval, whether it holds the true difference."""
    place = {run: r for r, run in enumerate(found.scores.runs)}
    return [
        pair.low <= truth[place[pair.other]] - truth[place[pair.one]] <= pair.high
        for pair in found.pairs
        if pair.low == pair.low
    ]


def coverage(correction: str, test: str, topics: int, replicates: int, seed: int = 0) -> float:
    """How often all intervals hold the truth; of false coverage, the mean share that does (1 where there are none)."""
    truth = np.array([0, 0, 0, 0.02, 0.04, 0.12])
    by_share = CORRECTIONS[correction].controls == "false discovery rate"
    total = 0.0
    for replicate in range(replicates):
        rng = np.random.default_rng([seed, topics, replicate])
        hard = rng.beta(0.9, 2, (topics, 1))
        noise = rng.gamma(1, 0.1, (topics, 6)) - 0.1  # skewed as differences of AP are not, the harder case
        scores = scored(hard + noise + truth, list("abcdef"))
        found = compare(scores, tests=test, correction=correction, simultaneous=True, resamples=2000)
        held = covered(found, truth)
        total += (np.mean(held) if held else 1.0) if by_share else all(held)
    return total / replicates


@pytest.mark.slow
@pytest.mark.parametrize("topics", [25, 50])
@pytest.mark.parametrize(
    ("correction", "test"),
    [
        *((name, "t") for name in CORRECTIONS if CORRECTIONS[name].corrects),
        *(("holm", test) for test in ("tukey", "randomised-tukey", "max-t")),
    ],
)
def test_simultaneous_intervals_cover_all_pairs_at_once(correction, test, topics):
    assert coverage(correction, test, topics, 1500) >= 0.93


def test_simultaneous_intervals_cover_all_pairs_at_once_on_a_few_samples():
    assert coverage("sidak", "t", 25, 60) >= 0.85

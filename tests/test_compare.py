"""Comparisons: what a pair says, in numbers and in words, and what becomes of input that cannot be compared."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import FrozenInstanceError, replace
from html.parser import HTMLParser
from itertools import product

import numpy as np
import pytest
from scipy import stats

import cranfield
from cranfield import Comparison, Scores, compare
from cranfield.base.errors import ConventionError, DataError
from cranfield.base.results import Layout
from cranfield.comparison.comparison_text import difference_bars
from cranfield.comparison.pair import RunPair, amount, disagreement, p_value
from cranfield.stats.correction import CORRECTIONS
from cranfield.stats.tests_by_name import TESTS
from cranfield.stats.two_sample_test import SignificanceResult


def table(systems: int = 2, topics: int = 60, seed: int = 0, gain: float = 0.0) -> Scores:
    """Made-up scores in which each system is better than the one before by the gain."""
    rng = np.random.default_rng(seed)
    hard = rng.uniform(0.1, 0.7, (topics, 1))
    values = np.clip(hard + rng.normal(0, 0.1, (topics, systems)) + gain * np.arange(systems), 0, 1)
    return Scores.from_table(values, [f"sys{s}" for s in range(systems)], measure="AP")


def two(a: list[float], b: list[float], measure: str = "AP", **options) -> Scores:
    return Scores.from_table(np.stack([a, b], axis=1), ["old", "new"], measure=measure, **options)


# numbers


def test_a_pair_holds_means_difference_and_effect_against_numpy():
    scores = table()
    [pair] = compare(scores).pairs
    a, b = scores.values[:, 0]
    d = b - a
    assert (pair.one, pair.other, pair.n) == ("sys0", "sys1", 60)
    assert (pair.mean_one, pair.mean_other) == pytest.approx((a.mean(), b.mean()))
    assert pair.difference == pytest.approx(d.mean())
    assert pair.effect == pytest.approx(d.mean() / d.std(ddof=1))
    assert (pair.wins, pair.ties, pair.losses) == ((d > 0).sum(), (d == 0).sum(), (d < 0).sum())


def test_the_usual_interval_is_that_of_the_paired_t_against_scipy():
    scores = table()
    [pair] = compare(scores, level=0.9).pairs
    a, b = scores.values[:, 0]
    expected = stats.ttest_rel(b, a).confidence_interval(0.9)
    assert (pair.low, pair.high) == pytest.approx((expected.low, expected.high))


def test_the_usual_test_is_randomisation_against_exact_enumeration():
    a, b = [0.1, 0.4, 0.3, 0.2, 0.5], [0.3, 0.35, 0.6, 0.5, 0.8]
    d = np.subtract(b, a)
    sums = np.array([np.dot(signs, d) for signs in product([1, -1], repeat=len(d))])
    expected = (np.abs(sums) >= abs(d.sum()) - 1e-12).mean()
    [pair] = compare(two(a, b)).pairs
    assert pair.test == "randomisation"
    assert pair.p == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("t", lambda a, b: stats.ttest_rel(b, a).pvalue),
        ("wilcoxon", lambda a, b: stats.wilcoxon(b, a, method="exact").pvalue),
        ("sign", lambda a, b: stats.binomtest(int((b > a).sum()), int((b != a).sum())).pvalue),
        ("welch", lambda a, b: stats.ttest_ind(b, a, equal_var=False).pvalue),
    ],
)
def test_the_test_asked_for_decides_against_scipy(name, oracle):
    scores = table(gain=0.03)
    [pair] = compare(scores, tests=name).pairs
    assert pair.p == pytest.approx(oracle(*scores.values[:, 0]))


def test_p_values_are_corrected_over_all_pairs_and_measures_against_holm_by_hand():
    values = {name: table(3, seed=s, gain=0.04).values[:, 0].T for s, name in enumerate(("AP", "P@10"))}
    found = compare(Scores.from_table(values, ["a", "b", "c"]), tests="t")
    p = np.array([pair.p for pair in found.pairs])
    order = np.argsort(p)
    by_hand = np.empty(6)
    by_hand[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(6, 0, -1)))
    assert found.family == 6
    assert [pair.corrected for pair in found.pairs] == pytest.approx(by_hand.tolist())


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_every_correction_leaves_no_p_value_smaller(correction):
    found = compare(table(4), tests="t", correction=correction)
    assert all(pair.corrected >= pair.p - 1e-15 for pair in found.pairs)


@pytest.mark.parametrize("name", TESTS)
def test_every_test_can_be_asked_for_by_name(name):
    scores = table(gain=0.05)
    if name == "mcnemar":
        scores = Scores.from_table((scores.values[:, 0].T > 0.45).astype(float))
    [pair] = compare(scores, tests=name, resamples=500).pairs
    assert pair.test == name
    assert pair.p == pair.p or TESTS[name].bayesian


@pytest.mark.parametrize("interval", ["t", "percentile", "bca", "studentised", "randomisation"])
def test_every_interval_holds_the_difference(interval):
    [pair] = compare(table(), interval=interval, resamples=2000).pairs
    assert pair.low < pair.difference < pair.high


def test_a_pair_has_the_same_p_value_alone_and_in_company():
    scores = table(8, gain=0.02)
    together = compare(scores, correction="none", resamples=2000)
    for pair in together.pairs:
        [alone] = compare(scores.select(runs=[pair.one, pair.other]), resamples=2000).pairs
        assert alone.p == pair.p


def test_a_pair_has_the_same_p_value_beside_other_tests():
    scores = table(gain=0.02)
    assert compare(scores, resamples=999).pairs[0].p == compare(scores, tests="all", resamples=999).pairs[0].p


def test_the_seed_decides_and_repeats():
    scores = table(gain=0.02)
    p = [compare(scores, resamples=500, seed=seed).pairs[0].p for seed in (0, 0, 1)]
    assert p[0] == p[1] != p[2]


def test_without_a_baseline_every_pair_is_compared_and_with_one_each_other_run():
    scores = table(4)
    assert len(compare(scores, tests="t").pairs) == 6
    against = compare(scores, tests="t", baselines="sys2").pairs
    assert [(pair.one, pair.other) for pair in against] == [("sys2", "sys0"), ("sys2", "sys1"), ("sys2", "sys3")]
    both = compare(scores, tests="t", baselines=["sys0", "sys1"]).pairs
    assert len(both) == 4


def test_where_lower_is_better_a_lower_value_wins():
    found = compare(two([3, 4, 5, 6.0], [1, 2, 4, 7.0], "seconds", lower_is_better=True))
    [pair] = found.pairs
    assert (pair.difference, pair.wins, pair.losses, pair.better) == (-1.0, 3, 1, "other")
    assert "new is ahead of old by 1.000 seconds (lower is better)" in found.sentences()[0]


def test_better_and_worse_are_one_sided_whatever_the_direction():
    up, down = two([1, 2, 3, 4.5], [2, 3, 4, 5.0]), two([2, 3, 4, 5.0], [1, 2, 3, 4.5], "s", lower_is_better=True)
    for scores in (up, down):
        assert compare(scores, alternative="better").pairs[0].p == 1 / 16
        assert compare(scores, alternative="worse").pairs[0].p == 1.0


def test_runs_are_scored_when_judgments_are_given():
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    runs = {"old": {"q1": {"b": 2, "a": 1}, "q2": {"a": 1}}, "new": {"q1": {"a": 1}, "q2": {"a": 1}}}
    found = compare(qrels, runs, "RR")
    assert found.pair("old", "new", "RR").difference == 0.25
    assert list(found.scores.measures) == ["RR"]
    assert found.judged["Judged@10"] == {"old": 0.75, "new": 1.0}


def test_a_measure_of_counts_is_compared_by_its_mean_over_topics():
    [pair] = compare(two([1, 2, 3.0], [2, 2, 5.0], "num_rel_ret")).pairs
    assert (pair.mean_one, pair.mean_other) == (2.0, 3.0)


def test_resamples_grow_with_the_pairs_so_that_something_can_be_significant():
    assert compare(table(3)).resamples == 100_000
    assert compare(table(20, 8), alpha=0.003).resamples == 200_000
    assert compare(table(20, 8), alpha=0.003, correction="none").resamples == 100_000
    assert compare(table(20, 8), alpha=0.003, resamples=500).resamples == 500


# many systems at once


def test_tukey_of_two_systems_is_the_paired_t_test_against_scipy():
    scores = table(gain=0.03)
    [pair] = compare(scores, tests="tukey").pairs
    assert pair.p == pytest.approx(stats.ttest_rel(*scores.values[:, 0]).pvalue, rel=1e-6)


@pytest.mark.parametrize("name", ["tukey", "randomised-tukey", "anova", "friedman", "nemenyi"])
def test_tests_of_all_systems_are_not_corrected_twice(name):
    found = compare(table(4, gain=0.05), tests=name, resamples=500)
    assert all(pair.corrected == pair.p for pair in found.pairs)
    assert "the test's own, which covers" in found.to_text()


def test_anova_brings_tukey_and_friedman_brings_nemenyi():
    assert compare(table(3), tests="anova").test == "tukey"
    assert compare(table(3), tests="friedman").test == "nemenyi"
    assert "F(2, 118)" in compare(table(3), tests="anova").to_text()


def test_friedman_against_scipy():
    scores = table(4, gain=0.02)
    found = compare(scores, tests="friedman").many["AP"]["friedman"]
    assert found.p == pytest.approx(stats.friedmanchisquare(*scores.values[:, 0]).pvalue)


def test_a_topic_that_one_system_lacks_is_left_out_of_tests_of_all_and_said_to_be():
    values = table(3, 12).values[:, 0].T.copy()
    values[3, 1] = np.nan
    found = compare(Scores.from_table(values), tests="tukey")
    assert found.remarks == ["score: tests of all systems leave out 1 topics that one of them lacks"]


# words


def made(**changes) -> RunPair:
    pair = RunPair("nDCG@10", "bm25", "dense", 212, 0.4, 0.442, 0.042, 0.031, 0.053, 0.5, 131, 12, 69, 0.0002, 0.0004)
    return replace(pair, **{"ahead": "other", "test": "randomisation", **changes})


def test_the_sentence_is_that_of_the_issue():
    assert made().sentence("Holm") == (
        "dense beats bm25 by 0.042 nDCG@10 [0.031, 0.053] on 212 topics, 131 up, 12 equal, 69 down; "
        "randomisation p = 0.0002, Holm 0.0004"
    )


def test_the_sentence_is_told_from_the_side_that_is_ahead():
    turned = made(difference=-0.042, low=-0.053, high=-0.031, wins=69, losses=131, ahead="one")
    assert turned.sentence("Holm").startswith(
        "bm25 beats dense by 0.042 nDCG@10 [0.031, 0.053] on 212 topics, 131 up, 12 equal, 69 down"
    )


def test_what_is_not_significant_is_not_called_equal():
    text = made(p=0.3, corrected=0.6).sentence("Holm")
    assert "dense is ahead of bm25 by" in text
    assert "but the data do not settle it; randomisation p = 0.3, Holm 0.6" in text
    assert "beats" not in text


def test_a_sign_test_that_the_mean_contradicts_claims_no_winner():
    text = made(wins=60, losses=140, test="sign", favoured="one").sentence()
    assert "in the mean" in text
    assert "but the sign test favours bm25: neither beats the other" in text
    assert "dense beats" not in text


def test_a_bayesian_test_gives_probabilities_and_no_p_value():
    found = compare(table(gain=0.05), tests="bayes", rope=0.01, resamples=4000)
    [pair] = found.pairs
    assert pair.p != pair.p
    extra = pair.outcomes["bayes"].extra
    assert f"probability {extra['P(better)']:.3f} that it is better" in found.sentences()[0]


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.00021, "= 0.0002"),
        (0.0123, "= 0.012"),
        (0.5, "= 0.5"),
        (1, "= 1"),
        (9e-5, "< 0.0001"),
        (math.nan, "undefined"),
    ],
)
def test_a_p_value_is_never_printed_as_0(p, text):
    assert p_value(p) == text


def test_a_small_difference_shows_two_figures():
    assert amount(0.000123) == "0.00012"
    assert amount(-0.00001, like=0.5) == "0.000"


def test_where_tests_disagree_the_text_says_which_and_why():
    d = np.array([0.0] * 60 + [0.3] * 12 + [-0.05] * 8)
    found = compare(two((0.3 + 0 * d).tolist(), (0.3 + d).tolist()), tests=["t", "sign"])
    text = disagreement(found.pairs[0], 0.05)
    assert text.startswith("new and old by AP: the tests disagree at 0.05. Significant: paired t")
    assert "not: sign test" in text
    assert "ignores 60 equal topics" in text
    assert text in found.to_text()


@pytest.mark.parametrize(
    ("yes", "no", "why"),
    [
        ("t", "wilcoxon", "a few large differences move the mean more than the ranks"),
        ("sign", "t", "many small differences go one way, and large ones the other way widen the spread of the mean"),
        ("t", "tukey", "tests of all systems allow for the number of pairs"),
        ("tukey", "seeds", "tests of all systems know only the mean over the runs of a group, not their spread"),
        ("t", "randomisation", "the p-values lie close to the significance level"),
    ],
)
def test_why_tests_disagree_is_told_from_what_they_compare(yes, no, why):
    pair = made(ties=0, outcomes={yes: SignificanceResult(yes, 0.04, 1.0), no: SignificanceResult(no, 0.06, 1.0)})
    assert disagreement(pair, 0.05).endswith(f"({why})")


def test_where_tests_agree_nothing_is_said():
    assert disagreement(compare(table(gain=0.3), tests=["t", "wilcoxon"]).pairs[0], 0.05) == ""


def test_unpaired_tests_that_disagree_are_explained():
    found = compare(table(gain=0.04, seed=3), tests=["t", "welch"])
    assert "ignore that both systems answered the same topics" in disagreement(found.pairs[0], 0.05)


def test_equal_means_have_no_winner():
    [sentence] = compare(two([0.1, 0.3, 0.2], [0.3, 0.1, 0.2])).sentences()
    assert sentence.startswith(
        "new and old have the same mean AP on 3 topics, 1 up, 1 equal, 1 down; randomisation p = 1"
    )


def test_where_no_topic_has_both_values_there_is_nothing_to_compare():
    tables = {"AP": [[0.1, 0.2], [0.3, 0.5]], "clicks": [[1, np.nan], [np.nan, 2]]}
    found = compare(Scores.from_table(tables, ["x", "y"]), margin=0.1, tests=["t", "tukey"])
    pair = found.pair("x", "y", "clicks")
    assert (pair.n, pair.left_out, pair.reason) == (0, 2, "no topic has a value for both")
    assert found.sentence(pair) == "y and x have no topic in common with a value of clicks: nothing to compare"
    assert found.remarks == ["clicks: 0 topics have a value for every system; tests of all need two"]
    text = found.to_text(bars=True)
    assert "y and x have no topic in common with a value of clicks: nothing to compare" in text
    assert "; ? no p-value" in found.to_markdown()
    assert text.count("topic by topic") == 1


def test_tests_of_all_that_decide_say_why_they_cannot():
    values = [
        [0.1, 0.2, np.nan],
        [0.3, np.nan, 0.4],
        [np.nan, 0.1, 0.2],
        [0.5, 0.6, np.nan],
        [0.3, np.nan, 0.4],
        [np.nan, 0.3, 0.5],
    ]
    found = compare(Scores.from_table(values), tests="tukey")
    assert {pair.reason for pair in found.pairs} == {"fewer than two topics have a value for every system"}
    same = compare(Scores.from_table(np.full((4, 3), 0.5)), tests="anova")
    assert "two-way ANOVA, score: no p-value: " in same.to_text()


def test_a_test_that_does_not_fit_the_data_is_passed_over_where_all_are_asked_for():
    [pair] = compare(table(gain=0.1), tests=["mcnemar", "all"], resamples=200).pairs
    assert "mcnemar" not in pair.outcomes
    assert (pair.test, pair.reason) == ("mcnemar", "")
    assert pair.p != pair.p


def test_equal_differences_leave_nothing_to_test_a_margin_against():
    text = compare(two([0.1, 0.2, 0.3], [0.2, 0.3, 0.4]), margin=0.3).to_text()
    assert "equivalence of new and old within 0.3 AP cannot be tested: all differences are equal" in text


def test_equivalence_is_shown_only_where_the_interval_lies_within_the_margin():
    same = two([0.5, 0.4, 0.6, 0.55], [0.51, 0.4, 0.59, 0.56])
    shown = compare(same, margin=0.05)
    assert shown.pairs[0].equivalence.equivalence.decision == "equivalent"
    assert "new and old are equivalent within 0.05 AP" in shown.to_text()
    failed = compare(same, margin=0.001).to_text()
    assert "the data do not show that new and old are equivalent within 0.001 AP" in failed


def test_non_inferiority_knows_that_lower_is_better():
    worse = two([1, 2, 3, 4.0], [2.0, 3.1, 3.9, 5.0], "seconds", lower_is_better=True)
    assert compare(worse, margin=0.2).pairs[0].equivalence.non_inferiority.decision == "inferior"
    better = two([2, 3, 4, 5.0], [1, 2.1, 2.9, 4.0], "seconds", lower_is_better=True)
    assert compare(better, margin=0.2).pairs[0].equivalence.non_inferiority.decision == "superior"


# tables, bars, files


def test_the_mark_is_a_sign_and_needs_no_colour():
    text = compare(table(3, 60, gain=0.2), tests="t").to_text(bars=False)
    rows = [line for line in text.splitlines() if line.startswith("AP")]
    assert all(row.endswith("  +") for row in rows)
    assert "\x1b" not in text


def test_the_text_says_seed_test_correction_and_conventions():
    text = compare(
        {"q": {"a": 1}, "r": {"b": 1}}, {"x": {"q": {"a": 1}, "r": {"a": 1}}, "y": {"q": {"b": 1}}}, "RR"
    ).to_text(verbose=True)
    assert "seed 0" in text
    assert "randomisation (exact)" in text
    assert "conventions: cranfield (" in text


def test_an_end_without_a_bound_is_left_out_of_the_table_of_tests():
    text = compare(table(2, 4, gain=0.2), tests=["t", "randomisation"]).to_text(bars=False)
    (row,) = (line for line in text.splitlines() if line.startswith("randomisation "))
    assert row.split()[-2:] == ["-", "-"]  # with 4 topics no difference can be left out at 5 %


def test_bars_are_drawn_for_a_single_pair_and_not_for_several_unless_asked_for():
    assert "topic by topic" in compare(table(2)).to_text()
    assert "topic by topic" not in compare(table(3), tests="t").to_text()
    assert compare(table(3), tests="t").to_text(bars=True).count("topic by topic") == 3


def test_bars_are_sorted_and_cut_to_the_biggest_winners_and_losers():
    lines = difference_bars([str(t) for t in range(50)], np.linspace(-0.5, 0.5, 50).tolist(), most=10)
    assert [line.split()[0] for line in lines] == ["49", "48", "47", "46", "45", "...", "4", "3", "2", "1", "0"]
    assert lines[5] == "... 40 more topics between: 20 up, 20 down"


def test_bars_fit_the_width_and_fall_back_to_ascii():
    for limit in (40, 72, 200):
        lines = difference_bars(["q1", "検索"], [0.5, -0.5], limit=limit, ascii_only=True)
        assert all(len(line) <= limit for line in lines)
        assert "#" in lines[0]
        assert "-" in lines[1].split("-0.500")[1]
        assert lines[0].isascii()
    assert "█" in difference_bars(["q1"], [0.5])[0]


def test_bars_of_no_difference_are_empty():
    assert difference_bars(["q1"], [0.0], ascii_only=True)[0].endswith("|")


def test_many_pairs_are_cut_best_systems_first_unless_all_are_asked_for():
    found = compare(table(12, gain=0.02), tests="t")
    text = found.to_text()
    assert "18 of 66 pairs are shown" in text
    assert "40 of 66 pairs are shown" in found.to_markdown()
    first = next(line for line in text.splitlines() if line.startswith("AP"))
    assert {"sys11", "sys10"} <= set(first.split())
    assert found.to_text(every=True).count("\nAP  ") == 66


def test_text_is_no_wider_than_the_limit():
    text = compare(table(3), tests=["t", "sign"]).to_text(limit=72, bars=True)
    assert max(len(line) for line in text.splitlines()) <= 72


def test_csv_has_a_row_a_pair_and_every_p_value():
    found = compare(table(3), tests=["t", "sign"])
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [float(row["p"]) for row in rows] == [pair.p for pair in found.pairs]
    assert float(rows[0]["p sign"]) == found.pairs[0].outcomes["sign"].p
    assert found.to_tsv().count("\t") > 20


def test_csv_per_topic_adds_up_to_the_difference():
    found = compare(table(2))
    rows = list(csv.DictReader(io.StringIO(found.to_csv(per_topic=True))))
    assert len(rows) == 60
    assert np.mean([float(row["difference"]) for row in rows]) == pytest.approx(found.pairs[0].difference)


def test_json_holds_what_is_needed_to_repeat_it_and_no_nan():
    found = compare(table(3), tests="all", resamples=200, margin=0.1)
    data = json.loads(found.to_json(per_topic=True), parse_constant=lambda name: pytest.fail(name))
    assert (data["seed"], data["resamples"], data["test"], data["correction"]) == (0, 200, "randomisation", "holm")
    assert data["versions"]["cranfield"] == cranfield.__version__
    assert data["pairs"][0]["sentence"] == found.sentences()[0]
    assert len(data["pairs"][0]["per_topic"]) == 60
    assert data["pairs"][0]["outcomes"]["bayes"]["p"] is None
    assert set(data["many"]["AP"]) == {"tukey", "randomised-tukey", "max-t", "anova", "friedman", "nemenyi"}


def test_markdown_has_a_table_that_bars_in_names_do_not_break():
    found = compare(Scores.from_table([[0.1, 0.2], [0.3, 0.5]], ["a|b", "c"]))
    row = next(line for line in found.to_markdown().splitlines() if "a\\|b" in line)
    assert row.replace("\\|", "").count("|") == found.to_markdown().splitlines()[0].count("|")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_notebook_gets_a_table_with_headers_and_escaped_names():
    found = compare(Scores.from_table([[0.1, 0.2], [0.3, 0.5]], ["<b>", "c\udcff"]))
    html = found._repr_html_()
    tags = Tags()
    tags.feed(html)
    assert not tags.open
    assert {"table", "caption", "th", "li"} <= set(tags.seen)
    assert "script" not in tags.seen
    assert "&lt;b&gt;" in html
    html.encode()
    assert "not settled" in html


def test_a_notebook_draws_a_bar_for_each_topic_and_says_what_it_shows():
    html = compare(table(topics=60))._repr_html_()
    assert html.count("<rect") == 60
    assert 'role="img" aria-label="AP of sys1 minus that of sys0, topic by topic: ' in html


def test_the_table_of_pairs_has_numbers_behind_its_cells():
    found = compare(table(3, 60, gain=0.2), tests="t")
    shown = found.pair_table(Layout(digits=2))
    assert [cell.value for cell in shown.cells()[0]][3:6] == [
        found.pairs[0].mean_one,
        found.pairs[0].mean_other,
        found.pairs[0].difference,
    ]
    assert [row[-1].best for row in shown.cells()] == [True, True, True]
    aloud = found.pair_table(Layout(digits=2, medium="html"))
    assert (aloud.head[-1], aloud.texts()[1][-1]) == ("run B is", "better")


def test_a_comparison_is_whole_and_does_not_change():
    found = compare(table())
    with pytest.raises(FrozenInstanceError):
        found.alpha = 0.5
    assert replace(found, inputs={"qrels": "q"}).to_dict()["inputs"] == {"qrels": "q"}


def test_differences_are_those_of_the_topics_both_have():
    found = compare(Scores.from_table([[0.1, 0.4], [np.nan, 0.5], [0.2, 0.1]], topics=["7", "8", "9"]))
    topics, values = found.differences(found.pairs[0])
    assert topics == ["7", "9"]
    assert values == pytest.approx([0.3, -0.1])


def test_a_pair_that_is_not_there_is_an_error_that_lists_some():
    with pytest.raises(DataError, match="there are sys0, sys1, AP"):
        compare(table()).pair("sys1", "sys0")


def test_the_representation_is_the_text():
    found = compare(table())
    assert isinstance(found, Comparison)
    assert repr(found) == found.to_text(bars=False)


# input that cannot be compared


def no_p(found: Comparison) -> RunPair:
    [pair] = found.pairs
    assert pair.p != pair.p
    assert pair.corrected != pair.corrected
    assert found.family == 0
    return pair


def test_one_topic_gives_a_difference_and_no_p_value():
    pair = no_p(compare(two([0.1], [0.3])))
    assert pair.difference == pytest.approx(0.2)
    assert pair.reason == "one topic only; a test needs two or more"
    assert "no p-value: one topic only" in pair.sentence()


@pytest.mark.parametrize("name", ["randomisation", "t", "sign", "wilcoxon", "tukey"])
def test_scores_that_are_all_the_same_have_nothing_to_test(name):
    found = compare(two([0.2, 0.4, 0.5], [0.2, 0.4, 0.5]), tests=name)
    assert no_p(found).reason == "all differences are 0"
    assert found.sentences() == ["new and old score the same AP on each of 3 topics: nothing to test"]


def test_a_constant_difference_has_no_spread_for_a_t_test():
    assert "no spread" in no_p(compare(two([0.1, 0.2, 0.3], [0.2, 0.3, 0.4]), tests="t")).reason


def test_topics_without_a_value_are_left_out_and_counted():
    found = compare(Scores.from_table([[0.1, 0.4], [np.nan, 0.5], [0.2, 0.1], [0.2, 0.3]]))
    [pair] = found.pairs
    assert (pair.n, pair.left_out) == (3, 1)
    assert pair.mean_other == pytest.approx(0.8 / 3)
    assert "compared on 3 of 4 topics: 1 topic has no score" in found.to_text()


def test_runs_for_different_topics_are_an_error():
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    runs = {"x": {"q1": {"a": 1}}, "y": {"q2": {"a": 1}}}
    with pytest.raises(DataError, match="x and y answer no topic in common"):
        compare(qrels, runs, "RR")
    with pytest.raises(DataError, match="no topic in common"):
        compare(qrels, runs, "RR", missing="skip")


@pytest.mark.parametrize("stranger", [{}, {"x1": {"a": 1}}])
@pytest.mark.parametrize("missing", ["zero", "skip"])
def test_a_run_that_answers_no_judged_topic_is_an_error(stranger, missing):
    qrels = {f"q{t}": {"a": 1} for t in range(9)}
    runs = {"good": {topic: {"a": 1} for topic in qrels}, "stranger": stranger}
    with pytest.raises(DataError, match=r"^stranger answers none of the 9 topics \('q0', 'q1', 'q2' and 6 more\)"):
        compare(qrels, runs, "RR", missing=missing)


def test_an_infinite_score_is_an_error():
    scores = two([0.1, 0.2, 0.3], [0.2, 0.3, 0.4], "AP")
    scores.values[:, 0, 1] = np.inf
    with pytest.raises(DataError, match=r"^AP of old on topic '2': expected a finite number, found inf"):
        compare(scores)


def test_the_text_says_that_equivalence_is_not_corrected_and_intervals_are_of_one_pair():
    values = np.random.default_rng(1).uniform(size=(60, 3))
    said = compare(Scores.from_table(values), margin=0.1).to_text()
    assert "equivalence and non-inferiority: t-tests within 0.1, each alone, not corrected" in said
    assert "(t), for each pair alone" in said
    alone = compare(Scores.from_table(values[:, :2])).to_text()
    assert "by itself" not in alone


def test_micro_averages_stand_beside_the_means_of_ratios():
    qrels = {"q1": {"a": 1, "b": 1, "c": 1}, "q2": {"a": 1}}
    runs = {"x": {"q1": {"a": 1}, "q2": {"a": 1}}, "y": {"q1": {"a": 2, "b": 1}, "q2": {"b": 1}}}
    found = compare(qrels, runs, "R@2 AP")
    assert found.micro == {"R@2": {"x": 2 / 4, "y": 2 / 4}}
    assert found.to_dict()["micro"] == found.micro
    assert list(found.scores.measures) == ["R@2", "AP"]


def test_ties_may_be_averaged_though_judged_at_k_cannot():
    qrels = {f"q{t}": {"a": 1, "b": 0} for t in range(4)}
    runs = {"tied": {topic: {"a": 1, "b": 1} for topic in qrels}, "good": {topic: {"a": 2, "b": 1} for topic in qrels}}
    found = compare(qrels, runs, "P@1 R@1", ties="averaged")
    assert found.pair("tied", "good", "P@1").mean_one == 0.5
    assert found.micro == {"R@1": {"tied": 0.5, "good": 1.0}}
    assert set(found.judged) == {"Judged@1"}


def test_with_missing_skip_runs_are_compared_on_common_topics():
    qrels = {f"q{t}": {"a": 1} for t in range(4)}
    runs = {"x": {f"q{t}": {"a": 1} for t in range(3)}, "y": {f"q{t}": {"b": 2, "a": 1} for t in range(1, 4)}}
    [pair] = compare(qrels, runs, "RR", missing="skip").pairs
    assert (pair.n, pair.left_out, pair.mean_one, pair.mean_other) == (2, 2, 1.0, 0.5)


@pytest.mark.parametrize("measure", ["gmean(AP)", "TRisk", "GeoRisk", "median(P@5)"])
def test_a_measure_that_is_no_mean_over_topics_has_no_p_value(measure):
    scores = two([0.1, 0.2, 0.5], [0.2, 0.4, 0.6], measure)
    pair = no_p(compare(scores))
    assert pair.difference == pytest.approx(scores.mean(run="new") - scores.mean(run="old"))
    assert measure.split("(")[0] in pair.reason
    assert pair.low != pair.low


def test_a_micro_average_has_no_p_value():
    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1, "b": 1}}
    runs = {"x": {"q1": {"a": 1}, "q2": {"a": 1, "b": 1}}, "y": {"q1": {"b": 1}, "q2": {"a": 1}}}
    assert "micro average" in no_p(compare(qrels, runs, "SetP(average=micro)")).reason


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"tests": "magic"}, "no test 'magic'; there are all, randomisation"),
        ({"tests": []}, "no test given"),
        ({"correction": "magic"}, "no correction 'magic'; there are none, bonferroni"),
        ({"alpha": 0}, "alpha must be between 0 and 1"),
        ({"level": 95}, "level must be between 0 and 1"),
        ({"interval": "wald"}, "interval must be one of t, percentile"),
        ({"alternative": "up"}, "alternative must be one of two-sided"),
        ({"resamples": 0}, "resamples must be 1 or more"),
        ({"seed": -1}, "seed must be 0 or more"),
        ({"margin": 0}, "margin must be above 0"),
        ({"rope": -1}, "rope must be above 0"),
        ({"tests": "tukey", "alternative": "better"}, "tukey looks at all systems at once and is two-sided"),
        ({"missing": "skip"}, "Scores already contain their runs"),
        ({"baselines": "bm25"}, "no run 'bm25' for the baseline; there are 'sys0', 'sys1'"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_in_words(options, problem):
    with pytest.raises(ConventionError, match=problem):
        compare(table(), **options)


@pytest.mark.parametrize(
    ("given", "options", "problem"),
    [
        (table(1), {}, "expected two systems or more to compare, found 1"),
        (table(), {"measures": "nDCG@10"}, "no measure 'nDCG@10'"),
        ({"q": {"a": 1}}, {}, "expected Scores, or judgments and runs; found no runs"),
    ],
)
def test_data_that_cannot_be_compared_is_refused_in_words(given, options, problem):
    with pytest.raises(DataError, match=problem):
        compare(given, **options)


# scores from tables


def test_a_table_of_scores_is_scores_of_its_measures():
    scores = Scores.from_table({"AP": [[0.1, 0.2], [0.3, 0.4]], "clicks": [[1, 2], [3, np.nan]]}, ["x", "y"])
    assert scores.mean("map", "x") == pytest.approx(0.2)
    assert scores.mean("clicks", "y") == 2
    assert scores.select(runs=["y"]).external


@pytest.mark.parametrize(
    ("values", "names", "problem"),
    [
        ([1, 2], {}, "expected a table of topics × runs"),
        ([[1, 2]], {"runs": ["a"]}, "expected a name for each of 2 runs, found 1"),
        ([[1, 2]], {"runs": ["a", "a"]}, "expected each run once in the table of scores, found 'a' twice"),
        ([[1], [2]], {"topics": ["q", "q"]}, "expected each topic once"),
        ([[1, math.inf]], {}, "found an infinite one"),
        ({}, {}, "no measure"),
    ],
)
def test_a_table_that_is_none_is_refused(values, names, problem):
    with pytest.raises(DataError, match=problem):
        Scores.from_table(values, **names)

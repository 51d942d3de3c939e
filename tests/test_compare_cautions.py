"""Cautions: each rule has one comparison that makes it speak and one that does not."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from scipy import stats

from cranfield import Comparison, Scores, compare, evaluate
from cranfield.comparison.cautions import RULES, _p_without_topic
from cranfield.stats.randomisation import Randomisation


def codes(found: Comparison) -> set[str]:
    return {caution.code for caution in found.cautions}


def text(found: Comparison, code: str) -> str:
    return next(caution.text for caution in found.cautions if caution.code == code)


def shifted(d: list[float] | np.ndarray, measure: str = "AP", **names) -> Scores:
    """A baseline of 0.5 throughout, and another run that differs by d."""
    other = 0.5 + np.asarray(d, float)
    return Scores.from_table(
        np.stack([np.full(len(other), 0.5), other], axis=1), ["old", "new"], measure=measure, **names
    )


def steady(topics: int, mean: float = 0.1, spread: float = 0.1, seed: int = 0) -> Scores:
    return shifted(np.random.default_rng(seed).normal(mean, spread, topics))


def test_a_comparison_without_a_flaw_gets_no_caution():
    assert compare(steady(300)).cautions == []


def test_every_rule_says_what_it_is_about():
    assert all(rule.__doc__ for rule in RULES)


# fewer than fifty topics


def test_fewer_than_fifty_topics_are_few():
    assert text(compare(steady(49)), "few-topics").startswith("49 topics are few: fewer than 50")


def test_fifty_topics_are_enough():
    assert "few-topics" not in codes(compare(steady(50)))


def test_bootstraps_on_few_topics_are_said_to_be_too_sure():
    assert "bootstrap-bca: more false alarms" in text(compare(steady(49), tests="bootstrap-bca"), "too-sure")
    assert "too-sure" not in codes(compare(steady(49)))
    assert "too-sure" not in codes(compare(steady(50), tests="bootstrap-bca"))


def test_tests_that_are_too_sure_where_topics_tie_say_how_often():
    rates = {"bootstrap-bca": ("22 %", "15 %"), "bootstrap-t": ("14 %", "12 %")}
    d = np.zeros(200)
    d[:40] = np.random.default_rng(0).normal(0.1, 0.1, 40)
    for test, (few, more) in rates.items():
        said = text(compare(shifted(d), tests=test, resamples=1000), "too-sure")
        assert said.startswith(f"{test}: more false alarms than alpha on so few topics that differ (at 5 %: ")
        assert f"{few} where 80 % of them tie, {more} where 80 % of 50 do" in said
    assert "too-sure" not in codes(compare(steady(200), tests="bootstrap-t", resamples=1000))
    assert "too-sure" not in codes(compare(shifted(d)))


def test_a_topic_that_is_not_answered_is_said_to_score_0_only_where_it_does():
    qrels = {f"q{t}": {"a": 1} for t in range(9)}
    whole = {topic: {"b": 2, "a": 1} for topic in qrels}
    runs = {"whole": whole, "part": {topic: {"a": 1} for topic in list(qrels)[:7]}}
    assert text(compare(qrels, runs, "RR"), "missing-topics").startswith("part does not answer 2 of the 9 topics; ")
    assert "missing-topics" not in codes(compare(qrels, runs, "FirstRel"))
    assert "left-out" in codes(compare(qrels, runs, "FirstRel"))


def test_what_can_be_detected_is_less_with_one_side_against_the_noncentral_t():
    d = np.random.default_rng(0).normal(0, 1, 60)
    d = (d - d.mean()) / d.std(ddof=1) + 0.1  # mean 0.1, standard deviation 1
    scores = Scores.from_table(np.stack([np.zeros(60), d], axis=1))
    for alternative, tail in (("two-sided", 0.025), ("greater", 0.05)):
        said = text(compare(scores, alternative=alternative), "undetectable")
        least = float(said.split("is smaller than ")[1].split(",")[0])
        power = stats.nct.sf(stats.t.isf(tail, 59), 59, least * np.sqrt(60))
        assert power == pytest.approx(0.8, abs=0.003)


def test_one_topic_that_differs_decides():
    values = [[0.5, 0.5]] * 59 + [[0.5, 0.9]]
    assert text(compare(Scores.from_table(values)), "heavy-ties").endswith("on 59 of 60 topics: 1 topic decides")


# many p-values


def three(measures: int = 1) -> Scores:
    rng = np.random.default_rng(2)
    tables = {f"measure{m}": rng.normal(0.5, 0.1, (60, 3)) + np.array([0, 0.2, 0.4]) for m in range(measures)}
    return Scores.from_table(tables, ["a", "b", "c"])


def test_many_p_values_without_correction_are_warned_of():
    said = text(compare(three(2), tests="t", correction="none"), "uncorrected")
    assert said.startswith("6 p-values and no correction")
    assert f"{1 - 0.95**6:.0%}" in said


def test_a_correction_or_a_single_p_value_is_not_warned_of():
    assert "uncorrected" not in codes(compare(three(2), tests="t", correction="holm"))
    assert "uncorrected" not in codes(compare(steady(60), correction="none"))


def test_tukey_allows_for_pairs_but_not_for_measures():
    assert "not for 2 measures" in text(compare(three(2), tests="tukey"), "uncorrected")
    assert "uncorrected" not in codes(compare(three(1), tests="tukey"))


# p-values that cannot become small


def test_few_topics_that_differ_cannot_be_significant():
    assert "give no p-value below 0.062" in text(compare(shifted([0.1, 0.2, 0.3, 0.2, 0.1])), "coarse")


@pytest.mark.parametrize("test", ["randomisation", "sign", "wilcoxon"])
def test_five_topics_are_said_to_show_nothing_and_no_least_difference_is_named(test):
    found = compare(shifted([0.1, -0.2, 0.3, -0.15, 0.11]), tests=test)
    assert "5 topics that differ give no p-value below 0.062" in text(found, "coarse")
    assert "undetectable" not in codes(found)
    assert "coarse" not in codes(compare(shifted([0.1, -0.2, 0.3, -0.15, 0.11]), tests="t"))


def test_a_pair_that_cannot_be_significant_is_named_where_others_can():
    d = np.random.default_rng(0).normal(0, 0.1, (7, 2))
    d[0, 1] = 0.0
    tables = {
        "AP": np.column_stack([np.full(7, 0.5), 0.5 + d[:, 0]]),
        "RR": np.column_stack([np.full(7, 0.5), 0.5 + d[:, 1]]),
    }
    said = text(compare(Scores.from_table(tables, ["old", "new"])), "coarse")
    assert said.startswith("6 topics that differ give no p-value below 0.031, which is 0.062 after correction: ")
    assert said.endswith("new and old by RR cannot be significant at 0.05")


def test_a_one_sided_question_away_from_the_difference_has_no_least_difference():
    d = np.random.default_rng(0).normal(0, 1, 60)
    d = (d - d.mean()) / d.std(ddof=1) + 0.05
    scores = Scores.from_table(np.column_stack([np.zeros(60), d]))
    assert "undetectable" in codes(compare(scores, alternative="greater"))
    assert "undetectable" not in codes(compare(scores, alternative="less"))


def test_few_resamples_cannot_be_significant_after_correction():
    said = text(compare(three(2), resamples=99), "coarse")
    assert "99 resamples give no p-value below 0.01, which is 0.06 after correction" in said
    assert "ask for 300 resamples" in said


def test_enough_resamples_are_not_warned_of():
    assert "coarse" not in codes(compare(three(2), resamples=1000))
    assert "coarse" not in codes(compare(shifted([0.1, 0.2, 0.3, 0.2, 0.1, 0.4])))


# missing topics


def answered(topics: int, by_new: int) -> Comparison:
    qrels = {f"q{t}": {"a": 1} for t in range(topics)}
    old = {f"q{t}": {"b": 2, "a": 1} if t % 2 else {"a": 1} for t in range(topics)}
    new = {f"q{t}": {"a": 1} for t in range(by_new)}
    return compare(qrels, {"old": old, "new": new}, "RR")


def test_topics_that_a_run_lacks_and_that_score_0_are_warned_of():
    assert "new does not answer 10 of the 60 topics" in text(answered(60, 50), "missing-topics")


def test_runs_that_answer_all_topics_lack_none():
    assert "missing-topics" not in codes(answered(60, 60))


def test_topics_without_a_value_are_said_to_be_left_out():
    d = np.random.default_rng(0).normal(0.1, 0.1, 60)
    d[:2] = np.nan
    assert "compared on 58 of 60 topics: 2 topics have no AP" in text(compare(shifted(d)), "left-out")
    assert "left-out" not in codes(compare(shifted(d[2:])))


# one topic


def test_a_topic_without_which_the_sign_turns_is_named():
    d = np.full(60, -0.005) + np.random.default_rng(0).normal(0, 0.001, 60)
    d[17] = 0.5
    found = compare(shifted(d, topics=[f"q{t}" for t in range(60)]))
    said = text(found, "one-topic")
    assert said.startswith("without topic 'q17' the difference of new and old by AP would change its sign")


def test_a_topic_without_which_significance_goes_is_named():
    d = np.array([0.5] + [0.02] * 5 + [0.0] * 50 + [-0.01] * 2)
    found = compare(shifted(d, topics=[f"q{t}" for t in range(len(d))]), tests="wilcoxon", alpha=0.05)
    assert found.significant(found.pairs[0])
    without = compare(shifted(np.delete(d, 0)), tests="wilcoxon")
    assert not without.significant(without.pairs[0])
    assert "would not be significant" in text(found, "one-topic")


def test_a_topic_that_hides_a_difference_is_named():
    rng = np.random.default_rng(4)
    d = np.append(rng.normal(0.02, 0.03, 59), -0.45)
    found = compare(shifted(d, topics=[f"q{t}" for t in range(60)]))
    assert not found.significant(found.pairs[0])
    assert "without topic 'q59'" in text(found, "one-topic")
    assert "would be significant" in text(found, "one-topic")


def test_where_no_topic_decides_none_is_named():
    assert "one-topic" not in codes(compare(steady(60)))


def test_influence_of_one_topic_against_leaving_each_out():
    from scipy import stats

    from cranfield.stats.paired import p_of_t, t_without_each

    d = np.random.default_rng(1).normal(0.1, 0.3, 12)
    mean, size = t_without_each(d)
    p = p_of_t(size, 11)
    for t in range(12):
        rest = np.delete(d, t)
        assert mean[t] == pytest.approx(rest.mean())
        assert p[t] == pytest.approx(stats.ttest_1samp(rest, 0).pvalue)


def close_calls(systems: int, seed: int = 0) -> Scores:
    """Systems so close that one topic may decide between many of them."""
    rng = np.random.default_rng(seed)
    values = rng.random((60, 1)) + np.linspace(0, 0.12, systems) + rng.normal(0, 0.12, (60, systems))
    return Scores.from_table(values, [f"s{i:02}" for i in range(systems)], measure="AP")


def test_tests_without_a_topic_are_made_together(monkeypatch):
    calls = []
    test = Randomisation.without_interval

    def counted(self, a, b, question):
        calls.append(len(a))
        return test(self, a, b, question)

    monkeypatch.setattr(Randomisation, "without_interval", counted)
    assert "one-topic" in codes(compare(close_calls(12), correction="none", resamples=5000))
    assert len(calls) == 2
    assert 1 < calls[1] <= 20


def test_tests_made_together_against_each_alone():
    found = compare(close_calls(12), correction="none", resamples=5000)
    tests = [(pair, 3 * place, 0.5) for place, pair in enumerate(found.pairs[:8])]
    together = _p_without_topic(found, tests)
    assert together == [_p_without_topic(found, [one])[0] for one in tests]


def test_no_pair_that_one_topic_decides_is_passed_over(monkeypatch):
    """At a glance only those pairs are left out of which a closer look says nothing."""
    for seed in range(4):
        scores = close_calls(14, seed)
        quick = compare(scores, tests="t").cautions
        with monkeypatch.context() as patched:
            patched.setattr(import_module("cranfield.comparison.cautions"), "_fragile_pairs", Comparison.best_first)
            assert compare(scores, tests="t").cautions == quick


# ties


def test_ties_on_half_of_the_topics_are_heavy():
    d = np.concatenate([np.zeros(30), np.random.default_rng(0).normal(0.2, 0.1, 30)])
    assert text(compare(shifted(d)), "heavy-ties").endswith("on 30 of 60 topics: 30 topics decide")


def test_ties_on_fewer_topics_are_not_heavy():
    d = np.concatenate([np.zeros(29), np.random.default_rng(0).normal(0.2, 0.1, 31)])
    assert "heavy-ties" not in codes(compare(shifted(d)))


# judged@k


def pooled(share: float, topics: int = 60) -> tuple[dict, dict]:
    """Judgments of the old run's documents, and a new run of whose ten documents a share was judged."""
    qrels = {f"q{t}": {f"d{i}": int(i % 3 == 0) for i in range(10)} for t in range(topics)}
    old = {f"q{t}": {f"d{(i * 7 + t) % 10}": 10.0 - i for i in range(10)} for t in range(topics)}
    kept = round(share * 10)
    new = {f"q{t}": {(f"d{i}" if i < kept else f"new{i}"): 10.0 - i for i in range(10)} for t in range(topics)}
    return qrels, {"old": old, "new": new}


def test_a_run_of_which_much_is_unjudged_may_be_better_than_it_looks():
    found = compare(*pooled(0.5), "nDCG@10", baselines="old")
    assert found.judged == {"Judged@10": {"old": 1.0, "new": 0.5}}
    assert text(found, "low-judged").startswith("Judged@10 is low for new 50% (old: 100%)")


def test_a_run_that_was_judged_like_the_others_is_not_warned_of():
    found = compare(*pooled(1.0), "nDCG@10", baselines="old")
    assert "low-judged" not in codes(found)


def test_judged_looks_as_deep_as_the_measure():
    found = compare(*pooled(0.5), "P@5 nDCG@10 AP")
    assert set(found.judged) == {"Judged@5", "Judged@10"}
    assert found.judged["Judged@5"]["new"] == 1.0


def test_judged_is_the_same_from_scores_as_from_runs():
    qrels, runs = pooled(0.5)
    assert compare(evaluate(qrels, runs, "nDCG@10")).judged == compare(qrels, runs, "nDCG@10").judged
    assert compare(evaluate(qrels, runs, "nDCG@10 Judged@10")).judged == compare(qrels, runs, "nDCG@10").judged


def test_a_run_of_which_nothing_is_known_is_not_compared_by_its_judgments():
    tables = {"AP": [[0.1, 0.2]] * 60, "Judged@10": [[1.0, np.nan]] * 60}
    assert compare(Scores.from_table(tables, ["x", "y"])).judged["Judged@10"]["x"] == 1.0
    assert "low-judged" not in codes(compare(Scores.from_table(tables, ["x", "y"])))
    nobody = Scores.from_table({"AP": [[0.1, 0.2]] * 60, "Judged@10": [[np.nan, np.nan]] * 60})
    assert "low-judged" not in codes(compare(nobody))


def test_scores_from_a_table_know_nothing_of_judgments():
    assert compare(steady(60)).judged == {}


# power


def test_a_difference_smaller_than_the_design_can_detect_is_said_to_be():
    found = compare(steady(60, mean=0.01, spread=0.2))
    said = text(found, "undetectable")
    assert "80% power" in said


def test_the_smallest_detectable_difference_against_the_noncentral_t():
    from scipy import stats

    from cranfield.comparison.cautions import _detectable_effect

    effect = _detectable_effect("randomisation", 50, 0, 0.05)
    critical, shift = stats.t.ppf(0.975, 49), effect * 50**0.5
    assert stats.nct.sf(critical, 49, shift) + stats.nct.cdf(-critical, 49, shift) == pytest.approx(0.8, abs=1e-6)


def said_least(found: Comparison) -> float:
    return float(text(found, "undetectable").split("is smaller than ")[1].split(",")[0])


def test_the_least_difference_is_that_of_the_corrected_level_against_the_noncentral_t():
    rng = np.random.default_rng(0)
    d = rng.normal(0, 1, (60, 3))
    d = (d - d.mean(axis=0)) / d.std(axis=0, ddof=1) + np.array([0.1, 0.12, 0.14])
    scores = Scores.from_table(np.column_stack([np.zeros(60), d]), list("abcd"))
    found = compare(scores, baselines="a", tests="t", correction="bonferroni")
    assert "80% power at 0.017, the corrected level" in text(found, "undetectable")
    power = stats.nct.sf(stats.t.isf(0.05 / 3 / 2, 59), 59, said_least(found) * np.sqrt(60))
    assert power == pytest.approx(0.8, abs=0.003)


def test_the_least_difference_is_that_of_the_test_that_decides():
    d = np.random.default_rng(0).normal(0, 1, 60)
    d = (d - d.mean()) / d.std(ddof=1) + 0.1
    scores = Scores.from_table(np.column_stack([np.zeros(60), d]))
    least = {test: said_least(compare(scores, tests=test)) for test in ("t", "randomisation", "wilcoxon", "sign")}
    assert least["t"] == least["randomisation"] < least["wilcoxon"] < least["sign"]
    assert "undetectable" not in codes(compare(scores, tests="welch"))


def test_the_least_difference_of_tukey_lies_beyond_its_critical_difference():
    scores = Scores.from_table(np.random.default_rng(0).normal(0.5, 0.2, (60, 4)))
    found = compare(scores, tests="tukey")
    assert said_least(found) > found.many["score"]["tukey"].critical


def test_one_topic_is_not_said_to_decide_by_another_test_than_the_one_that_decides():
    d = np.r_[np.full(10, 0.9), -np.linspace(0.09, 0.11, 40)]
    found = compare(shifted(d - 0.05), tests="mann-whitney")
    assert "one-topic" not in codes(found)


def test_a_difference_that_is_settled_was_detected():
    assert "undetectable" not in codes(compare(steady(60)))


# many pairs


def test_many_pairs_with_the_same_flaw_are_counted():
    rng = np.random.default_rng(0)
    found = compare(Scores.from_table(rng.normal(0.5, 0.2, (60, 8))), tests="t")
    said = [caution.text for caution in found.cautions if caution.code == "undetectable"]
    assert len(said) == 4
    assert said[-1].endswith("more pairs are smaller than what so many topics can detect with 80% power")

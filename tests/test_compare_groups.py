"""Groups of runs: which runs a pattern means, how they spread, and a test that knows topics and seeds."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import Scores, compare
from cranfield.base.errors import DataError
from cranfield.comparison.score_tables import Systems, group_runs, parse_groups
from cranfield.stats.replicates import crossed_difference
from shell import cranfield

RUNS = ["bm25", "dense.seed1", "dense.seed2", "dense.seed3", "sparse-a", "sparse-b"]


def scores(topics: int = 60, seed_spread: float = 0.05, gain: float = 0.1) -> Scores:
    rng = np.random.default_rng(0)
    values = rng.uniform(0.2, 0.6, (topics, 1)) + rng.normal(0, 0.05, (topics, len(RUNS)))
    values[:, 1:4] += gain + rng.normal(0, seed_spread, 3)
    values[:, 4:] += rng.normal(0, seed_spread, 2)
    return Scores.from_table(values, RUNS, measure="AP")


def test_a_pattern_of_names_or_of_files_means_the_same_runs():
    for pattern in ("dense.seed*", "dense.seed*.run", "runs/dense.seed*.run.gz"):
        [group] = group_runs(RUNS, pattern)
        assert group.runs == ("dense.seed1", "dense.seed2", "dense.seed3")


def test_a_group_has_its_pattern_or_a_given_name():
    assert list(parse_groups(["dense.seed*.run", "s=sparse-?"])) == ["dense.seed*", "s"]
    assert group_runs(RUNS, {"two": ["bm25", "sparse-a"]})[0].runs == ("bm25", "sparse-a")


def test_a_group_stands_in_the_place_of_its_first_run():
    systems = Systems(scores=scores(), groups=group_runs(RUNS, ["dense=dense*", "s=sparse*"]))
    assert systems.system_names() == ["bm25", "dense", "s"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["x*"], "group x\\*: no run matches 'x\\*'"),
        (["a=dense*", "b=*seed1"], "run 'dense.seed1' is in two groups, a and b"),
        ({"g": ["nobody"]}, "group g: no run 'nobody'"),
        (["bm25=dense*"], "a run has this name too"),
    ],
)
def test_a_group_that_makes_no_sense_is_refused(given, problem):
    with pytest.raises(DataError, match=problem):
        compare(scores(), groups=given)


def test_two_groups_are_compared_by_topics_and_seeds_against_the_statistic():
    given = scores()
    found = compare(given, groups=["dense=dense*", "sparse=sparse*"])
    pair = found.pair("dense", "sparse")
    table = given.values[:, 0].T
    expected = crossed_difference(table[:, 1:4], table[:, 4:])
    assert (pair.test, pair.p) == ("seeds", expected.p)
    assert (pair.low, pair.high) == (expected.low, expected.high)
    assert pair.difference == pytest.approx(expected.difference)


def test_seeds_that_spread_make_a_comparison_less_sure():
    wild = compare(scores(seed_spread=0.2), groups=["dense=dense*"], baselines="bm25").pair("bm25", "dense")
    over_topics = wild.outcomes["seeds"].extra["p over topics only"]
    assert wild.p > 10 * over_topics


def test_a_group_against_a_single_run_works_and_says_what_it_takes_for_granted():
    found = compare(scores(), groups=["dense=dense*"], baselines="bm25")
    assert found.pair("bm25", "dense").test == "seeds"
    assert found.pair("bm25", "sparse-a").test == "randomisation"
    assert "bm25 ran once and is taken to be deterministic" in next(
        c.text for c in found.cautions if c.code == "one-seed"
    )


def test_a_group_of_one_run_is_that_run():
    alone = compare(scores(), groups=["d=dense.seed1"], baselines="bm25").pair("bm25", "d")
    plain = compare(scores(), baselines="bm25").pair("bm25", "dense.seed1")
    assert (alone.p, alone.test) == (plain.p, "randomisation")


def test_few_runs_of_a_group_are_warned_of_and_five_are_not():
    rng = np.random.default_rng(0)
    six = Scores.from_table(rng.normal(0.5, 0.1, (60, 6)), ["x", *(f"d{i}" for i in range(5))])
    assert "few-seeds" not in {c.code for c in compare(six, groups="d?").cautions}
    assert "few-seeds" in {c.code for c in compare(six.select(runs=["x", "d1", "d2"]), groups="d?").cautions}


def test_the_text_shows_the_spread_over_seeds_and_which_test_was_used():
    given = scores()
    found = compare(given, groups=["dense=dense*"])
    text = found.to_text()
    means = given.summary[1:4, 0]
    assert "sd over runs" in text
    assert f"{means.mean():.4f}" in text
    assert f"{means.std(ddof=1):.4f}" in text
    assert "groups of runs: crossed t over topics and seeds" in text
    assert found.to_dict()["spread"]["dense"]["AP"]["sd"] == pytest.approx(means.std(ddof=1))


def test_equivalence_of_groups_knows_seeds_too():
    found = compare(scores(gain=0.0, seed_spread=0.001), groups=["dense=dense*", "sparse=sparse*"], margin=0.1)
    pair = found.pair("dense", "sparse")
    assert pair.equivalence.equivalence.decision == "equivalent"
    wild = compare(scores(gain=0.0, seed_spread=0.1), groups=["dense=dense*", "sparse=sparse*"], margin=0.1)
    assert wild.pair("dense", "sparse").equivalence.equivalence.decision != "equivalent"


def test_groups_on_one_topic_have_no_p_value():
    given = scores(topics=1)
    pair = compare(given, groups=["dense=dense*"], baselines="bm25").pair("bm25", "dense")
    assert (pair.test, pair.reason) == ("seeds", "one topic only; a test needs two or more")
    assert pair.p != pair.p


def test_what_the_test_over_topics_alone_would_say_stands_beside():
    text = compare(scores(), groups=["dense=dense*"], baselines="bm25", tests=["t", "tukey"]).to_text()
    assert "over topics only, with fixed seeds: p " in text


def test_a_topic_that_one_seed_lacks_is_left_out():
    given = scores()
    given.values[2, 0, 7] = np.nan
    pair = compare(given, groups=["dense=dense*"], baselines="bm25").pair("bm25", "dense")
    assert (pair.n, pair.left_out) == (59, 1)


def test_many_system_tests_know_the_means_of_groups():
    found = compare(scores(), groups=["dense=dense*", "sparse=sparse*"], tests=["tukey"])
    assert [pair.test for pair in found.pairs] == ["tukey"] * 3


def test_runs_of_a_table_are_grouped_as_those_of_files_are(tmp_path):
    rng = np.random.default_rng(0)
    topics = [f"q{i}" for i in range(30)]
    gains = np.array([0.0, 0.01, 0.3, 0.31])
    values = np.round(rng.uniform(0.2, 0.6, (30, 1)) + gains + rng.normal(0, 0.02, (30, 4)), 3)
    lines = [
        "topic,old1,old2,new1,new2",
        *(f"{t},{','.join(map(str, row))}" for t, row in zip(topics, values, strict=True)),
    ]
    (tmp_path / "scores.csv").write_text("\n".join(lines) + "\n")
    answer = cranfield("compare", "--table", tmp_path / "scores.csv", "--group", "old=old*", "--group", "new=new*")
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[0].startswith("new beats old by")
    same = compare(Scores.from_table(values, ["old1", "old2", "new1", "new2"], topics), groups=["old=old*", "new=new*"])
    assert f"{same.pairs[0].difference:+.4f}" in answer.out
    wrong = cranfield("compare", "--table", tmp_path / "scores.csv", "--group", "x=x*")
    assert wrong.code != 0
    assert "x*" in wrong.err

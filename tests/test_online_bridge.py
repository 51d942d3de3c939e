"""The bridge: pairs worked by hand, the bar for perfect users, files of real preferences and what is wrong with them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import kendalltau

from cranfield import Scores, evaluate
from cranfield.base.errors import ConventionError, DataError
from cranfield.experiments.offline_agreement import Signal, bridge, read_preferences, simulate_signals
from cranfield.experiments.simulated_world import World
from cranfield.stats.proportions import wilson
from made_runs import judged, runs
from shell import EXAMPLES, cranfield

TABLE = Scores.from_table(
    {"AP": [[0.1, 0.3, 0.5], [0.3, 0.3, 0.9]], "other": [[0.5, 0.4, 0.1], [0.1, 0.2, 0.3]]}, ["a", "b", "c"], ["1", "2"]
)


def signal(**by_pair: list[float]) -> Signal:
    pairs = {(name[0], name[1]): np.array(values) for name, values in by_pair.items()}
    return Signal("users", ("1", "2"), pairs)


def test_agreement_worked_by_hand():
    found = bridge(TABLE, [signal(ab=[-1, 0.5], ac=[-1, -1], bc=[0.2, -0.1])])
    ap, other = found.rows
    assert (ap.pairs, ap.agree, ap.left_out) == (3, 2, 0)  # a < b < c by AP, and users prefer b to c
    assert (other.pairs, other.agree, other.left_out) == (2, 1, 1)  # a and b tie
    assert ap.share == pytest.approx(2 / 3)
    assert found.best("users")[0].measure == "AP"
    assert "users: AP agrees on 2 of 3 pairs" in found.to_text()


def test_tau_is_that_of_the_orders_of_systems_against_scipy():
    found = bridge(TABLE, [signal(ab=[-1, 0.5], ac=[-1, -1], bc=[0.2, -0.1])])
    # leads of a, b, c: by AP -0.3, -0.1, 0.4 (halved), by users -1.25, 0.3, 0.95
    assert found.rows[0].tau == pytest.approx(kendalltau([-0.3, -0.1, 0.4], [-1.25, 0.3, 0.95]).statistic)


def test_a_pair_that_differs_by_less_than_the_least_is_left_out():
    found = bridge(TABLE, [signal(ab=[-1, -1], ac=[-1, -1])], least=0.2)
    assert (found.rows[0].pairs, found.rows[0].left_out) == (1, 1)
    assert any("differ by less than 0.2" in note for note in found.notes())


def test_a_measure_where_less_is_better_is_turned_round():
    scores = Scores.from_table([[3.0, 1.0]] * 2, ["a", "b"], ["1", "2"], "rank", lower_is_better=True)
    assert bridge(scores, [signal(ab=[-1, -1])]).rows[0].agree == 1


def test_classes_are_asked_apart():
    found = bridge(TABLE, [signal(ac=[-1, 1])], classes={"1": "short", "2": "long"}, column="length")
    rows = {(each.measure, each.topics): each for each in found.rows}
    assert [rows["AP", name].agree for name in ("short", "long")] == [1, 0]
    assert rows["AP", "all"].pairs == 0  # the mean of -1 and 1 prefers nobody
    assert math.isnan(rows["AP", "all"].share)
    assert "length" in found.to_text()


def test_the_interval_by_topic_against_enumeration():
    table = Scores.from_table([[0.0, 0.5], [0.4, 0.0]], ["a", "b"], ["1", "2"])
    row = bridge(table, [signal(ab=[-1, -1])], resamples=4_000).rows[0]
    # topics 11 and 12 (three draws of four) agree, 22 does not: the share is 0 in a quarter
    assert (row.agree, row.low, row.high) == (1, 0.0, 1.0)
    sure = Scores.from_table([[0.0, 0.5], [0.0, 0.4]], ["a", "b"], ["1", "2"])
    row = bridge(sure, [signal(ab=[-1, -1])]).rows[0]
    assert (row.low, row.high) == (1.0, 1.0)


def test_a_preference_in_all_has_wilsons_interval():
    known = Signal("users", (), {pair: np.array([-1.0]) for pair in (("a", "b"), ("a", "c"), ("b", "c"))})
    found = bridge(TABLE, [known])
    assert (found.rows[0].low, found.rows[0].high) == pytest.approx([float(end) for end in wilson(3, 3, 1.959964)])
    assert any("Wilson" in note for note in found.notes())


def test_perfect_users_agree_with_ndcg_on_all_of_20_pairs_whose_ndcg_differs_by_5_points_or_more():
    qrels = judged()
    systems = runs(qrels, [0.2, 0.5, 0.9, 1.4, 2.0, 3.0, 5.0])
    scores = evaluate(qrels, systems, "nDCG@10")
    signals = simulate_signals(World.of(qrels, systems), "perfect", searches=20)
    [mixed, *_] = bridge(scores, signals, least=0.05).rows
    assert mixed.signal == "interleaved, team-draft"
    assert mixed.pairs >= 20
    assert mixed.agree == mixed.pairs
    assert mixed.tau > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("method", ["probabilistic", "optimised", "pairwise-preference"])
def test_perfect_users_agree_with_ndcg_by_other_fair_methods(method):
    qrels = judged()
    systems = runs(qrels, [0.2, 0.5, 0.9, 1.4, 2.0, 3.0, 5.0])
    scores = evaluate(qrels, systems, "nDCG@10")
    [mixed, *_] = bridge(
        scores, simulate_signals(World.of(qrels, systems), "perfect", [method], searches=20), least=0.05
    ).rows
    assert (mixed.agree, mixed.pairs >= 20) == (mixed.pairs, True)


def test_blind_users_agree_with_a_measure_on_about_half_of_the_pairs():
    qrels = judged()
    systems = runs(qrels, [0.2, 0.5, 0.9, 1.4, 2.0, 3.0, 5.0])
    scores = evaluate(qrels, systems, "nDCG@10")
    [mixed, *_] = bridge(scores, simulate_signals(World.of(qrels, systems), "random", searches=5)).rows
    assert 0.1 < mixed.share < 0.9


# files


def written(tmp_path, *lines: str):
    path = tmp_path / "preferred.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_preferences_are_read_by_topic_and_signal_and_turned_round(tmp_path):
    path = written(
        tmp_path,
        "system,against,topic,preference,signal",
        "a,b,1,0.5,mixed",
        "b,a,2,0.25,mixed",
        "a,b,1,1.5,mixed",
        "a,b,1,-1,split",
    )
    mixed, split = read_preferences(path)
    assert (mixed.name, mixed.topics, split.name, split.topics) == ("mixed", ("1", "2"), "split", ("1",))
    assert mixed.preferences["a", "b"].tolist() == [1.0, -0.25]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["system,preference"], "preferred.csv:1: expected columns system, against, preference"),
        (["system,against,preference"], "expected a preference on each line, found none"),
        (["system,against,preference", "a,b,lots"], "preferred.csv:2: expected a number as preference, found 'lots'"),
        (["system,against,preference", "a,b,nan"], "preferred.csv:2: expected a number as preference"),
        (["system,against,preference", "a,a,1"], "preferred.csv:2: expected two systems, found 'a' and 'a'"),
        (
            ["system,against,topic,preference", "a,b,,1", "a,b,1,1"],
            "expected a topic on every line of 'users' or on none",
        ),
    ],
)
def test_a_file_of_preferences_that_is_none_is_refused_with_its_line(tmp_path, lines, says):
    with pytest.raises(DataError, match=says):
        read_preferences(written(tmp_path, *lines))


def test_preferences_about_other_systems_or_topics_are_refused():
    with pytest.raises(DataError, match="no preference is about two of the runs a, b, c"):
        bridge(TABLE, [Signal("users", ("1",), {("x", "y"): np.array([1.0])})])
    with pytest.raises(DataError, match="no preference is about a judged topic"):
        bridge(TABLE, [Signal("users", ("9",), {("a", "b"): np.array([1.0])})])
    with pytest.raises(ConventionError, match="least must be 0 or more"):
        bridge(TABLE, [signal(ab=[1, 1])], least=-1)


# the command


def test_the_command_asks_simulated_users_or_a_file(tmp_path):
    files = [str(EXAMPLES / name) for name in ("qrels.txt", "bm25.run", "dense.run")]
    answer = cranfield(
        "online", "bridge", *files, "--users", "perfect", "-m", "nDCG@10 RR@10", "--searches-per-topic", "5"
    )
    assert answer.code == 0, answer.err
    assert answer.out.startswith("interleaved, team-draft: nDCG@10 and RR@10 agree on 1 of 1 pair\n")
    path = written(tmp_path, "system,against,preference", "dense,bm25,1")
    told = json.loads(cranfield("online", "bridge", *files, "--user-preferences", path, "--format", "json").out)
    assert {row["signal"] for row in told["agreement"]} == {"users"}
    by = ["--by", "category", "--topics-file", str(EXAMPLES / "topics.tsv"), "--searches", "5", "--format", "csv"]
    rows = cranfield("online", "bridge", *files, *by).out.splitlines()
    assert rows[0].startswith("users,measure,category,topics,pairs")
    assert any(",informational," in row for row in rows)
    assert cranfield("online", "bridge", *files[:2]).code == 3

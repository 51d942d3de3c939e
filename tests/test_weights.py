"""Topics that count for more than others, from a column of theirs to means, intervals, tests, ranks and verdicts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cranfield import Scores, compare, evaluate, gate, leaderboard
from cranfield.base.errors import ConventionError, DataError
from cranfield.stats.rank_intervals import rank_ranges
from cranfield.stats.tests_by_name import TESTS, TESTS_OF_MANY
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = [f"q{i}" for i in range(1, 31)]
TRAFFIC = {topic: 1000 / (place + 1) for place, topic in enumerate(TOPICS)}
EQUAL = dict.fromkeys(TOPICS, 7.0)


@pytest.fixture(scope="module")
def scores() -> Scores:
    rng = np.random.default_rng(0)
    base = rng.random(30)
    table = np.stack([base, base + rng.normal(0.04, 0.1, 30), base + rng.normal(-0.02, 0.1, 30)], axis=1)
    return Scores.from_table(table, ["bm25", "dense", "old"], TOPICS, "nDCG@10")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Judgments, two runs, and topics with their traffic; b is better on the topics that many ask for."""
    qrels = [f"{topic} 0 d1 1" for topic in TOPICS]
    first = {"a": lambda place: place >= 5, "b": lambda place: place < 10}
    for name, wins in first.items():
        lines = []
        for place, topic in enumerate(TOPICS):
            order = ("d1", "d2") if wins(place) else ("d2", "d1")
            lines += [f"{topic} Q0 {document} {rank} {9 - rank} {name}" for rank, document in enumerate(order, 1)]
        (tmp_path / f"{name}.run").write_text("\n".join(lines) + "\n")
    (tmp_path / "qrels").write_text("\n".join(qrels) + "\n")
    rows = [f"{topic},query {topic},{weight:g},{topic}" for topic, weight in TRAFFIC.items()]
    (tmp_path / "topics.csv").write_text("\n".join(["topic,query,traffic,name", *rows]) + "\n")
    return tmp_path


def ask(files: Path, verb: str, *words: str):
    runs = [str(files / name) for name in ("qrels", "a.run", "b.run")]
    return cranfield(verb, *runs, "-m", "RR", *words)


def weighed(files: Path, verb: str, *words: str):
    return ask(files, verb, "--weigh-by", "traffic", "--topics-file", str(files / "topics.csv"), *words)


# in Python


def test_the_weighted_mean_against_numpy(scores):
    found = scores.weighed(TRAFFIC)
    for r, run in enumerate(scores.runs):
        expected = np.average(scores.values[r, 0], weights=list(TRAFFIC.values()))
        assert found.weighted_mean("nDCG@10", run) == pytest.approx(expected)
        assert found.mean("nDCG@10", run) == scores.mean("nDCG@10", run)


def test_a_weight_of_0_leaves_the_topic_out_and_that_is_said(scores):
    without = {**TRAFFIC, "q1": 0, "q2": 0}
    found = scores.weighed(without)
    assert found.topics == TOPICS[2:]
    assert found.notes()[0] == "2 topics have no weight and are left out ('q1', 'q2': weight 0)"
    rest = compare(scores.select(topics=TOPICS[2:]), weights=without)
    assert [pair.p for pair in compare(scores, weights=without).pairs] == [pair.p for pair in rest.pairs]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"q3": -1}, "weight: expected a weight of 0 or more for topic 'q3', found -1"),
        ({"q3": float("nan")}, "for topic 'q3', found nan"),
        ({"q3": float("inf")}, "for topic 'q3', found inf"),
        ({"q3": "many"}, "expected a number for topic 'q3', found 'many'"),
        (dict.fromkeys(TOPICS, 0), "the weight of every topic is 0"),
    ],
)
def test_a_weight_that_is_none_is_refused_by_its_topic(scores, changes, words):
    with pytest.raises(DataError, match=words):
        compare(scores, weights={**TRAFFIC, **changes})


def test_a_missing_weight_is_refused_by_its_topic(scores):
    lacking = {topic: weight for topic, weight in TRAFFIC.items() if topic not in ("q4", "q7")}
    with pytest.raises(DataError, match="no weight for topic 'q4' and 1 more; give each topic one"):
        scores.weighed(lacking)
    with pytest.raises(DataError, match="no weight for topic 'q'"):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1}}, "RR", weights={"p": 1})
    with pytest.raises(ConventionError, match="only the ids of the topics are known, so there is no column 'traffic'"):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1}}, "RR", weights="traffic")


@pytest.mark.parametrize("test", [name for name in TESTS if TESTS[name].weighable])
def test_equal_weights_compare_exactly_as_none(scores, test):
    names = ("mean_one", "mean_other", "difference", "low", "high", "p", "corrected")
    plain, equal = (compare(scores, tests=test, resamples=999, **more) for more in ({}, {"weights": EQUAL}))
    for one, other in zip(plain.pairs, equal.pairs, strict=True):
        assert [getattr(one, name) for name in names] == pytest.approx(
            [getattr(other, name) for name in names], rel=1e-12
        )
        assert one.p == other.p


@pytest.mark.parametrize("test", [one.name for one in (*TESTS.values(), *TESTS_OF_MANY.values()) if not one.weighable])
def test_every_other_test_refuses_by_name_with_those_that_can(scores, test):
    with pytest.raises(ConventionError, match=f"^{test} does not support weights.*: randomisation, t, bootstrap"):
        compare(scores, tests=test, weights=TRAFFIC)


def test_margins_and_groups_of_runs_are_refused_with_weights(scores):
    with pytest.raises(ConventionError, match="margin"):
        compare(scores, margin=0.1, weights=TRAFFIC)
    with pytest.raises(ConventionError, match="seeds does not support weights"):
        compare(scores, groups="new=[bd]*", weights=TRAFFIC)
    with pytest.raises(ConventionError, match="tukey does not support weights"):
        leaderboard(scores, test="tukey", weights=TRAFFIC)


def test_a_pair_is_by_weights_with_the_unweighted_difference_beside(scores):
    [pair] = compare(scores, baselines="bm25", weights=TRAFFIC).pairs[:1]
    [plain] = compare(scores, baselines="bm25").pairs[:1]
    weights = list(TRAFFIC.values())
    assert pair.difference == pytest.approx(np.average(scores.values[1, 0] - scores.values[0, 0], weights=weights))
    names = ("mean_one", "mean_other", "difference", "low", "high", "p")
    assert [getattr(pair.unweighted, name) for name in names] == [getattr(plain, name) for name in names]
    assert np.isnan(pair.effect)
    assert "nDCG@10 by weight" in pair.sentence()


def test_a_pair_seen_from_its_other_side_has_every_difference_turned(scores):
    for pair in compare(scores, weights=TRAFFIC).pairs:
        turned = pair.turned()
        assert turned.unweighted.difference == pytest.approx(turned.unweighted.mean_other - turned.unweighted.mean_one)
        assert [turned.difference, turned.unweighted.difference] == [-pair.difference, -pair.unweighted.difference]
        assert [turned.unweighted.low, turned.unweighted.high] == [-pair.unweighted.high, -pair.unweighted.low]


def test_few_effective_topics_are_a_caution(scores):
    texts = [
        caution.text for caution in compare(scores, weights=TRAFFIC).cautions if caution.code == "effective-topics"
    ]
    assert texts[0].startswith("the weights leave 9.9 effective topics of 30 (topic 'q1' alone has 25%)")
    assert all(caution.code != "effective-topics" for caution in compare(scores, weights=EQUAL).cautions)


def test_the_topic_that_decides_is_found_by_weights():
    """One heavy topic goes one way, thirty light ones the other."""
    difference = np.r_[0.9, np.linspace(-0.1, -0.02, 30)]
    table = np.stack([np.full(31, 0.5), 0.5 + difference], axis=1)
    topics = [str(i) for i in range(31)]
    heavy = dict.fromkeys(topics, 1.0) | {"0": 10.0}
    cautions = compare(Scores.from_table(table, ["a", "b"], topics), weights=heavy).cautions
    text = next(caution.text for caution in cautions if caution.code == "one-topic")
    assert text.startswith("without topic '0' the difference of b and a by score would change its sign")


def test_all_makes_the_tests_that_know_weights(scores):
    assert compare(scores, tests="all", resamples=99, weights=TRAFFIC).tests == [n for n in TESTS if TESTS[n].weighable]


def test_a_leaderboard_ranks_by_weights_and_shows_both():
    table = np.array([[0.9, 0.1], [0.1, 0.5], [0.2, 0.6]] * 5)
    topics = [str(i) for i in range(15)]
    board = leaderboard(
        Scores.from_table(table, ["a", "b"], topics), weights={t: 50 if int(t) % 3 == 0 else 1 for t in topics}
    )
    assert [row.run for row in board.rows] == ["a", "b"]
    assert board.rows[0].weighted["score"] > board.rows[1].weighted["score"]
    assert "score by weight" in board.to_csv().splitlines()[0]
    assert board.to_dict()["weights"]["by"] == "weight"


def test_rank_ranges_of_equal_weights_are_those_of_none():
    table = np.random.default_rng(1).normal(0, 1, (40, 4)) + np.array([0, 0, 1, 5])
    plain, equal, near = (
        rank_ranges(table, rng=np.random.default_rng(1), weights=weights)
        for weights in (None, np.full(40, 3.0), 1 + 1e-6 * np.arange(40))
    )
    assert np.array_equal(plain.p, equal.p)
    assert near.p == pytest.approx(plain.p, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lognormal", "zipf"])
def test_rank_intervals_by_weights_hold_for_equal_systems(kind):
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(400):
        weights = np.exp(rng.normal(0, 0.75, 25)) if kind == "lognormal" else rng.permutation(1 / np.arange(1, 26))
        found = rank_ranges(rng.normal(size=(25, 6)), 0.95, 500, rng, weights=weights)
        wrong += bool((found.low > 1).any() or (found.high < 6).any())
    assert wrong / 400 <= 0.08


def test_a_gate_decides_by_weights():
    qrels = {topic: {"d1": 1} for topic in TOPICS}
    good = {topic: {"d1": 2, "d2": 1} for topic in TOPICS}
    worse = {topic: {"d1": 1 if place < 8 else 2, "d2": 1.5} for place, topic in enumerate(TOPICS)}
    light = dict.fromkeys(TOPICS, 1.0) | dict.fromkeys(TOPICS[:8], 0.001)
    assert gate(qrels, good, worse, "RR").state == "failed"
    found = gate(qrels, good, worse, "RR", weights=light)
    assert found.state == "passed"
    assert found.verdicts[0].unweighted == pytest.approx(-8 / 30 / 2)
    assert found.verdicts[0].difference == pytest.approx(-0.5 * 8 * 0.001 / (22 + 8 * 0.001))


def test_a_verdict_by_weights_claims_nothing_that_its_interval_holds_open():
    torn = [compare(_under_heavy_weights(seed)) for seed in range(12)]
    held = [
        each for each in torn if each.pairs[0].corrected <= each.alpha and each.pairs[0].low <= 0 <= each.pairs[0].high
    ]
    assert held  # the case exists
    for comparison in held:
        assert not comparison.significant(comparison.pairs[0])
        [sentence] = comparison.sentences()
        assert "is ahead of" in sentence
        assert "the test rejects, but the interval of the mean by weight contains 0" in sentence
        verdict = comparison.to_text().splitlines()[0]
        assert "is ahead of" in verdict
        assert "AP by weight" in verdict
        assert "beats" not in comparison.to_text()
    for comparison in torn:
        pair = comparison.pairs[0]
        assert ("beats" in comparison.sentences()[0]) == (pair.corrected <= 0.05 and not pair.low <= 0 <= pair.high)


def _under_heavy_weights(seed: int) -> Scores:
    rng = np.random.default_rng(seed)
    weights = {f"t{i}": float(np.exp(1.5 * rng.normal())) for i in range(20)}
    one = np.round(rng.uniform(0.2, 0.6, 20), 2)
    other = np.round(np.clip(one + rng.normal(0.06, 0.12, 20), 0, 1), 2)
    return Scores.from_table(np.c_[one, other], ["one", "two"], list(weights), "AP").weighed(weights)


# on the command line


def test_every_mean_that_is_not_by_weights_says_so(files):
    board = weighed(files, "leaderboard").out
    assert board.splitlines()[0].startswith("b leads with RR by traffic 0.8666;")  # what ranks it; unweighted 0.6667
    assert "RR unweighted" in board
    per_topic = weighed(files, "eval", "--per-topic").out
    assert " all unweighted " in per_topic
    assert " all by traffic " in per_topic
    assert " RR by traffic on 30 topics" in weighed(files, "compare").out.splitlines()[0]


def test_eval_shows_both_means_and_names_what_was_weighed_by(files):
    found = weighed(files, "eval")
    assert found.out.splitlines()[0].split()[:5] == ["run", "RR", "unweighted", "RR", "by"]
    assert "weighted by traffic: 30 topics count as 9.9 of equal weight" in found.out
    data = json.loads(weighed(files, "eval", "--format", "json").out)
    plain = json.loads(ask(files, "eval", "--format", "json").out)
    assert [run["mean"] for run in data["runs"]] == [run["mean"] for run in plain["runs"]]
    assert data["weights"]["by"] == "traffic"
    rr = [1.0 if place < 10 else 0.5 for place in range(30)]
    assert data["runs"][1]["weighted_mean"]["RR"] == pytest.approx(
        np.average(rr, weights=list(TRAFFIC.values())), abs=1e-5
    )


def test_compare_leaderboard_gate_and_report_turn_with_the_traffic(files):
    data = json.loads(weighed(files, "compare", "--format", "json").out)
    assert data["pairs"][0]["difference"] > 0 > data["pairs"][0]["unweighted"]["difference"]
    assert data["pairs"][0]["weighed_by"] == "traffic"
    assert [row["run"] for row in json.loads(weighed(files, "leaderboard", "--format", "json").out)["rows"]] == [
        "b",
        "a",
    ]
    assert [row["run"] for row in json.loads(ask(files, "leaderboard", "--format", "json").out)["rows"]] == ["a", "b"]
    assert weighed(files, "gate").code == 0
    assert ask(files, "gate").code == 1
    assert "b has the highest mean by traffic" in weighed(files, "report", "--format", "md").out
    assert "RR by traffic" in weighed(files, "report", "--format", "html").out
    assert "& run & RR by traffic & RR unweighted" in weighed(files, "report", "--format", "tex", "--baseline", "a").out


def test_a_table_of_scores_is_weighed_as_well(files):
    (files / "table.csv").write_text("topic,a,b\nq1,0.1,0.3\nq2,0.2,0.1\nq3,0.5,0.4\n")
    how = ["--weigh-by", "traffic", "--topics-file", str(files / "topics.csv"), "--format", "json"]
    [pair] = json.loads(cranfield("compare", "--table", str(files / "table.csv"), *how).out)["pairs"]
    assert pair["difference"] == pytest.approx(np.average([0.2, -0.1, -0.1], weights=[1000, 500, 333.333]), abs=1e-6)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--weigh-by", "traffic"], 2, "nothing is known of the topics but their ids"),
        (
            ["--weigh-by", "clicks", "--topics-file", "topics.csv"],
            3,
            "no column 'clicks' to weigh by; it has query, traffic",
        ),
        (["--weigh-by", "name", "--topics-file", "topics.csv"], 3, "expected a number for topic 'q1', found 'q1'"),
        (
            ["--weigh-by", "traffic", "--topics-file", "some.csv"],
            3,
            "some.csv: traffic: no weight for topic 'q2' and 27 more",
        ),
        (
            ["--weigh-by", "traffic", "--topics-file", "below.csv"],
            3,
            "expected a weight of 0 or more for topic 'q1', found -3",
        ),
    ],
)
def test_what_cannot_be_weighed_by_is_said_with_its_file(files, words, code, said):
    (files / "some.csv").write_text("topic,traffic\nq1,3\nq2,\nq30,4\n")
    (files / "below.csv").write_text("\n".join(["topic,traffic", *(f"{topic},-3" for topic in TOPICS)]) + "\n")
    found = ask(files, "eval", *(str(files / word) if word.endswith(".csv") else word for word in words))
    assert found.code == code
    assert said in found.err


def test_eval_refuses_weights_where_they_have_no_place(files):
    for beside in (["--by", "name"], ["--bounds", "ties"], ["--format", "trec"]):
        found = weighed(files, "eval", *beside)
        assert found.code == 2
        assert f"--weigh-by does not go with {beside[0]}" in found.err
    assert weighed(files, "compare", "--test", "wilcoxon").code == 2


def test_a_column_of_a_collections_topics_is_known_by_its_name(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    rows = [{"id": "q1", "title": "tea", "traffic": 3}, {"id": "q2", "title": "pot", "traffic": 1}]
    (folder / "topics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "documents.jsonl").write_text('{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}\n')
    (folder / "qrels.txt").write_text("q1 0 a 1\nq2 0 b 1\n")
    run = {"q1": {"a": 1}, "q2": {"a": 2, "b": 1}}
    assert evaluate(str(folder), run, "RR", weights="traffic").weighted_mean("RR") == pytest.approx(0.875)

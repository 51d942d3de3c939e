"""Topics sampled from a query log: their means describe all traffic, in Python and in each command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cranfield import Scores, compare, design, evaluate, gate, leaderboard
from cranfield.base.errors import ConventionError, DataError
from cranfield.evaluation.topics import DesignWeights, as_weights, weights_of_column
from cranfield.formats.topic_tables import TopicTable, read_topic_table
from cranfield.pooling.topic_sampling import TOPIC_DESIGNS
from cranfield.stats.sampled_means import ALL_CERTAIN, UNEVEN, ProbabilitySample, sampled_mean_and_error
from cranfield.stats.tests_by_name import TESTS, TESTS_OF_MANY
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = [f"q{i}" for i in range(1, 81)]
CERTAIN = 6
RNG = np.random.default_rng(0)
FREQUENCY = {topic: float(4000 // (place + 1)) for place, topic in enumerate(TOPICS)}
RATE = 1 / FREQUENCY["q6"]  # the sixth topic is the last certain one
PROBABILITY = {topic: min(1.0, searches * RATE) for topic, searches in FREQUENCY.items()}
BASE = RNG.random(80)
TABLE = np.stack(
    [BASE, BASE + RNG.normal(0.08, 0.1, 80), BASE + RNG.normal(0.0, 0.1, 80), BASE - RNG.normal(0.2, 0.1, 80)], axis=1
)


def weights(name: str = "systematic", **more) -> DesignWeights:
    return DesignWeights.from_columns(FREQUENCY, PROBABILITY, name, **more)


@pytest.fixture(scope="module")
def scores() -> Scores:
    return Scores.from_table(TABLE, ["bm25", "dense", "same", "old"], TOPICS, "nDCG@10")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Judgments, two runs, and a sample of topics as `cranfield topics sample` writes it; b is better on rare queries."""
    for name in ("a", "b"):
        lines = []
        for place, topic in enumerate(TOPICS):
            first = place % 3 if name == "a" else place < 6 or place % 5 == 0
            order = ("d2", "d1") if first else ("d1", "d2")
            lines += [f"{topic} Q0 {document} {rank} {9 - rank} {name}" for rank, document in enumerate(order, 1)]
        (tmp_path / f"{name}.run").write_text("\n".join(lines) + "\n")
    (tmp_path / "qrels").write_text("".join(f"{topic} 0 d1 1\n" for topic in TOPICS))
    for name in ("systematic", "uniform", "top"):
        chances = PROBABILITY if name == "systematic" else dict.fromkeys(TOPICS, 1 if name == "top" else 0.01)
        lines = ["topic\tquery\tfrequency\tinclusion_probability\tdesign\tstratum\tviews\tvalue"]
        for place, topic in enumerate(TOPICS):
            searches = FREQUENCY[topic]
            row = topic, f"query {topic}", searches, chances[topic], name, "", 3 * searches, place % 7 + 1
            lines.append("\t".join(map(str, row)))
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path


def ask(files: Path, verb: str, *words: str, sample: str = "systematic", runs: tuple[str, ...] = ("a.run", "b.run")):
    given = [str(files / name) for name in ("qrels", *runs)]
    return cranfield(verb, *given, "-m", "RR", *words, "--topics-file", str(files / f"{sample}.tsv"))


# in Python


def test_the_weighted_mean_against_numpy(scores):
    found = scores.weighed(weights())
    by = [FREQUENCY[topic] / PROBABILITY[topic] for topic in TOPICS]
    for r, run in enumerate(scores.runs):
        assert found.weighted_mean("nDCG@10", run) == pytest.approx(np.average(TABLE[:, r], weights=by))
    assert as_weights(weights()).by == "traffic"


def test_compare_uses_t_with_the_variance_of_the_design_against_the_formula(scores):
    found = compare(scores, baselines="bm25", weights=weights())
    pair = found.pair("bm25", "dense")
    sample = ProbabilitySample.of(list(FREQUENCY.values()), list(PROBABILITY.values()))
    mean, error = sampled_mean_and_error((TABLE[:, 1] - TABLE[:, 0])[None], sample)
    from scipy import stats

    freedom = 80 - CERTAIN - 1
    assert (found.test, sample.freedom) == ("t", freedom)
    assert pair.difference == pytest.approx(mean[0])
    assert pair.p == pytest.approx(2 * stats.t.sf(mean[0] / error[0], freedom))
    assert [pair.low, pair.high] == pytest.approx(stats.t.interval(0.95, freedom, mean[0], error[0]))
    assert np.isnan(pair.effect)
    assert pair.unweighted.difference == pytest.approx((TABLE[:, 1] - TABLE[:, 0]).mean())
    assert (pair.wins, pair.losses) == (
        int((TABLE[:, 1] > TABLE[:, 0]).sum()),
        int((TABLE[:, 1] < TABLE[:, 0]).sum()),
    )


def test_one_sided_and_simultaneous_intervals_use_the_design_too(scores):
    two, one, wide = (
        compare(scores, weights=weights(), **more).pair("bm25", "dense")
        for more in ({}, {"alternative": "greater"}, {"simultaneous": True, "correction": "bonferroni"})
    )
    assert one.high == np.inf
    up, down = (
        compare(scores, weights=weights(), alternative=way, correction="none").pair("bm25", "dense")
        for way in ("better", "worse")
    )
    assert (up.opposite, down.opposite) == pytest.approx((down.p, up.p))
    assert two.low < one.low < two.difference
    assert wide.low < two.low < two.high < wide.high


def test_weights_as_if_each_topic_were_drawn_one_by_one_would_be_wider(scores):
    """Certain topics add nothing to the error; as plain weights they decide it."""
    by = {topic: FREQUENCY[topic] / PROBABILITY[topic] for topic in TOPICS}
    designed, plain = (compare(scores, tests="t", weights=each).pair("bm25", "dense") for each in (weights(), by))
    assert designed.difference == pytest.approx(plain.difference)
    assert designed.high - designed.low < 0.7 * (plain.high - plain.low)


def test_the_effective_number_is_above_that_of_the_topics_where_many_are_certain():
    fitted = weights().fitted(TOPICS)
    assert fitted.effective(TOPICS) > 80
    assert fitted.plain(TOPICS) == {
        "by": "traffic",
        "design": "systematic",
        "topics": 80,
        "certain": CERTAIN,
        "strata": 1,
        "frame_share": None,
        "effective_topics": pytest.approx(fitted.effective(TOPICS)),
        "degrees_of_freedom": 80 - CERTAIN - 1,
        "no_interval": None,
        "left_out": [],
        "not_scored": [],
    }
    everything = DesignWeights.from_columns(FREQUENCY, dict.fromkeys(TOPICS, 1)).fitted(TOPICS)
    assert everything.plain(TOPICS)["effective_topics"] is None
    assert everything.in_words(TOPICS).endswith("are all that were searched for, so the mean has no sampling error")


def test_topics_outside_the_sample_are_left_out_and_sampled_ones_without_scores_are_named(scores):
    few = {topic: FREQUENCY[topic] for topic in TOPICS if topic not in ("q3", "q50")}
    found = scores.weighed(DesignWeights.from_columns(few, PROBABILITY))
    assert len(found.topics) == 78
    assert "2 topics are not in the sample and are left out ('q3', 'q50')" in found.notes()
    found = scores.select(topics=TOPICS[1:-1]).weighed(weights())
    [note] = [note for note in found.notes() if "not judged" in note]
    assert note == (
        "2 of 80 sampled topics are not judged or not selected ('q1', 'q80'), 1 of them certain: the mean does not "
        "describe the traffic of that one"
    )
    found = scores.select(topics=TOPICS[:-1]).weighed(weights())
    assert (
        "1 of 80 sampled topics is not judged or not selected ('q80'); the others stand for their traffic too"
        in found.notes()
    )


def test_a_sample_of_other_topics_is_refused(scores):
    other = DesignWeights.from_columns({"p1": 3, "p2": 1}, {"p1": 1, "p2": 0.5}, where="log.tsv")
    with pytest.raises(DataError, match=r"^log.tsv: none of the 80 topics to score .* are the topics numbered alike\?"):
        scores.weighed(other)


@pytest.mark.parametrize(
    ("frequency", "probability", "words"),
    [
        ({"q1": -1}, {"q1": 0.5}, "frequency: expected a number from 0 to 1e.100 for topic 'q1', found -1"),
        ({"q1": float("nan")}, {"q1": 0.5}, "found nan"),
        ({"q1": "many"}, {"q1": 0.5}, "frequency: expected a number for topic 'q1', found 'many'"),
        (
            {"q1": 1},
            {"q1": 0},
            "inclusion_probability: expected a number above 0 and at most 1 for topic 'q1', found 0",
        ),
        ({"q1": 1}, {"q1": 1.01}, "found 1.01"),
        ({"q1": 1}, {"q1": float("nan")}, "found nan"),
        ({"q1": 1}, {}, "inclusion_probability: no value for topic 'q1'"),
        ({}, {}, "no topic has a frequency"),
        ({"q1": 0}, {"q1": 0.5}, "none of the 1 topic to score"),
    ],
)
def test_numbers_that_are_no_sample_are_refused_by_their_topic(frequency, probability, words):
    with pytest.raises(DataError, match=words):
        DesignWeights.from_columns(frequency, probability).fitted(["q1"])


def test_a_top_sample_has_no_mean_of_all_traffic():
    with pytest.raises(DataError, match="the topics are the most frequent queries .design top.*no mean"):
        weights("top")


def test_a_sample_of_two_designs_is_refused():
    columns = {"frequency": {"a": "1", "b": "1"}, "inclusion_probability": {"a": ".5", "b": ".5"}}
    table = TopicTable("t", {}, {**columns, "design": {"a": "pareto", "b": "systematic"}})
    with pytest.raises(DataError, match="t: expected one design of the sample, found pareto and systematic"):
        DesignWeights.of_table(table)


# what cannot use design weights


@pytest.mark.parametrize(
    "test", [one.name for one in (*TESTS.values(), *TESTS_OF_MANY.values()) if not one.design_based]
)
def test_every_test_without_a_design_refuses_by_name(scores, test):
    with pytest.raises(ConventionError, match=f"^{test} does not support design weights .*; tests that do: t$"):
        compare(scores, tests=test, weights=weights())


def test_other_intervals_margins_groups_and_rank_intervals_are_refused(scores):
    with pytest.raises(ConventionError, match="interval: bca cannot use the design"):
        compare(scores, interval="bca", weights=weights())
    with pytest.raises(ConventionError, match="margin"):
        compare(scores, margin=0.1, weights=weights())
    with pytest.raises(ConventionError, match="seeds does not support design weights"):
        compare(scores, groups="new=[ds]*", weights=weights())
    with pytest.raises(ConventionError, match="tukey does not support design weights"):
        leaderboard(scores, test="tukey", weights=weights())
    with pytest.raises(ConventionError, match="rank_intervals: with design weights there are simultaneous ones only"):
        leaderboard(scores, rank_intervals="bootstrap", weights=weights())
    with pytest.raises(ConventionError, match="sign does not support design weights"):
        design(scores.weighed(weights()), tests="sign")
    with pytest.raises(ConventionError, match="systems: an ANOVA"):
        design(scores.weighed(weights()), systems=5)


def test_the_tests_that_all_means_are_those_of_a_design(scores):
    assert compare(scores, tests="all", weights=weights()).tests == ["t"]


# a uniform sample


def test_a_uniform_sample_has_a_mean_with_a_caution_and_neither_interval_nor_test(scores):
    uniform = DesignWeights.from_columns(FREQUENCY, dict.fromkeys(TOPICS, 0.01), "uniform")
    found = compare(scores, baselines="bm25", weights=uniform)
    pair = found.pair("bm25", "dense")
    assert pair.difference == pytest.approx(np.average(TABLE[:, 1] - TABLE[:, 0], weights=list(FREQUENCY.values())))
    assert np.isnan([pair.p, pair.low, pair.high]).all()
    assert pair.reason == UNEVEN.replace("pair", "topic")
    [caution] = [note for note in scores.weighed(uniform).notes() if "not drawn by traffic" in note]
    assert "not drawn by traffic (uniform)" in caution
    assert "95% intervals held in only 15 to 85 of 100 uniform samples" in caution
    board = leaderboard(scores, weights=uniform)
    assert [row.low for row in board.rows] == [None] * 4
    assert any(
        remark.startswith("no rank intervals and no tiers: the sample was not drawn") for remark in board.remarks
    )
    with pytest.raises(DataError, match="no plan by design weights"):
        design(scores.weighed(uniform))


def test_a_sample_of_everything_is_compared_without_a_test(scores):
    everything = DesignWeights.from_columns(FREQUENCY, dict.fromkeys(TOPICS, 1), "systematic")
    [pair] = compare(scores.select(runs=["bm25", "dense"]), weights=everything).pairs
    assert pair.reason == ALL_CERTAIN.replace("pair", "topic")
    assert pair.low == pair.high == pytest.approx(pair.difference)


# leaderboard, gate, design


def test_rank_intervals_against_the_pairs_of_compare():
    """1 + the runs that are better after Holm's correction, to all − the runs that are worse."""
    only_before_correction = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        table = BASE[:, None] + rng.normal([0, 0.02, 0.03, 0.05, 0.06], 0.12, (80, 5))
        scores = Scores.from_table(table, list("abcde"), TOPICS, "nDCG@10")
        board = leaderboard(scores, weights=weights())
        low, high = dict.fromkeys("abcde", 1), dict.fromkeys("abcde", 5)
        for pair in compare(scores, weights=weights(), correction="holm").pairs:
            only_before_correction += pair.p <= 0.05 < pair.corrected
            if pair.corrected <= 0.05:
                one, other = (pair.one, pair.other) if pair.difference > 0 else (pair.other, pair.one)
                low[one] += 1
                high[other] -= 1
        assert {row.run: (row.low, row.high) for row in board.rows} == {run: (low[run], high[run]) for run in "abcde"}
        means = [row.weighted["nDCG@10"] for row in board.rows]
        assert means == sorted(means, reverse=True)
        assert board.test == "t"
        assert "tests of all pairs by the variance of the sampling design" in board.how()
    assert only_before_correction


def zipf_sample(rng: np.random.Generator, queries: int, n: int):
    """A Pareto sample of n queries of Zipf traffic: the places, frequencies and probabilities."""
    sizes = 1e6 / np.arange(1.0, queries + 1)
    chances = TOPIC_DESIGNS.named("pareto").probabilities(sizes, n)
    return TOPIC_DESIGNS.named("pareto").draw(chances, rng), sizes, chances


@pytest.mark.parametrize("samples", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_rank_intervals_hold_all_true_ranks_in_95_of_100_samples(samples):
    """Six runs, two of which are equal over all traffic: their interval has to hold both ranks."""
    rng = np.random.default_rng(3)
    queries = 5000
    values = rng.normal(0.5, 0.2, (queries, 1)) + rng.normal(0, 0.15, (queries, 6))
    sizes = 1e6 / np.arange(1.0, queries + 1)
    values += np.array([0.08, 0.04, 0.04, 0.02, 0.0, -0.05]) - np.average(values, axis=0, weights=sizes)
    span = [(1, 1), (2, 3), (2, 3), (4, 4), (5, 5), (6, 6)]
    held = 0
    for _ in range(samples):
        places, sizes, chances = zipf_sample(rng, queries, 150)
        names = [str(place) for place in places]
        by = DesignWeights.from_columns(
            dict(zip(names, sizes[places], strict=True)), dict(zip(names, chances[places], strict=True))
        )
        board = leaderboard(Scores.from_table(values[places], list("123456"), names, "AP"), weights=by)
        held += all(
            board.row(str(i + 1)).low <= low and high <= board.row(str(i + 1)).high
            for i, (low, high) in enumerate(span)
        )
    assert held / samples >= (0.9 if samples < 1000 else 0.94)


def test_the_plan_for_the_topics_at_hand_is_the_error_of_compare(scores):
    two = scores.select(runs=["bm25", "same"]).weighed(weights())
    [plan] = design(two, difference=0.02).plans
    [pair] = compare(two).pairs
    from scipy import stats

    freedom = 80 - CERTAIN - 1
    error = (pair.high - pair.low) / 2 / stats.t.ppf(0.975, freedom)
    critical, shift = stats.t.ppf(0.975, freedom), 0.02 / error
    power = stats.nct.sf(critical, freedom, shift) + stats.nct.cdf(-critical, freedom, shift)
    [row] = plan.tests
    assert (row.test, plan.n) == ("t", 80)
    assert row.power == pytest.approx(power, rel=1e-3)
    assert f"standard error of the difference {error:.4g}" in plan.about
    assert row.needed > 80
    assert list(row.curve) == sorted(row.curve)


def test_the_gate_decides_by_the_mean_of_all_traffic():
    qrels = {topic: {"a": 1} for topic in TOPICS}
    good, bad = {"a": 2, "b": 1}, {"a": 1, "b": 2}
    old = dict.fromkeys(TOPICS, good)
    head = {topic: bad if place < 20 or place % 9 == 0 else good for place, topic in enumerate(TOPICS)}
    verdict = gate(qrels, old, head, "RR", weights=weights()).verdicts[0]
    sample = ProbabilitySample.of(list(FREQUENCY.values()), list(PROBABILITY.values()))
    gain = np.array([-0.5 if place < 20 or place % 9 == 0 else 0.0 for place in range(80)])
    mean, error = sampled_mean_and_error(gain[None] + 0.01, sample)
    from scipy import stats

    assert verdict.state == "failed"
    assert verdict.p == pytest.approx(stats.t.cdf(mean[0] / error[0], sample.freedom))
    assert verdict.drop == pytest.approx(-sampled_mean_and_error(gain[None], sample)[0][0])


def test_the_gate_does_not_pass_a_fall_on_certain_topics_that_it_cannot_test():
    qrels = {topic: {"a": 1} for topic in TOPICS}
    old = {topic: {"a": 2, "b": 1} for topic in TOPICS}
    new = {topic: {"a": 1, "b": 2} if place < CERTAIN else old[topic] for place, topic in enumerate(TOPICS)}
    [verdict] = gate(qrels, old, new, "RR", weights=weights()).verdicts
    assert verdict.state == "undecided"
    assert "there is no test: the topics that were drawn by chance do not differ" in verdict.reason
    with pytest.raises(
        DataError, match="the gate cannot test means by traffic: the sample was not drawn in proportion"
    ):
        gate(qrels, old, new, "RR", weights=DesignWeights.from_columns(FREQUENCY, dict.fromkeys(TOPICS, 0.01)))


def test_a_topic_that_decides_is_named_just_where_the_test_without_it_answers_otherwise():
    """Against the test of all topics but one, for each topic of forty samples; the sign does not change in these."""
    names = [f"t{i}" for i in range(60)]
    chances = np.where(np.arange(60) < 10, 1.0, 0.02)
    sizes = np.where(np.arange(60) < 10, 400.0, 1.0)
    named = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        d = np.concatenate([rng.normal(0, 0.15, 10), rng.normal(0.06, 0.3, 50)])
        d[:10] += 0.03 - d[:10].mean()  # certain topics differ much, and cancel out
        sample = ProbabilitySample.of(sizes, chances)
        whole = TESTS["t"](np.zeros(60), d, sample=sample).p <= 0.05
        rest = [np.delete(np.arange(60), i) for i in range(60)]
        without = [TESTS["t"](np.zeros(59), d[i], sample=sample.part(i)) for i in rest]
        by = DesignWeights.from_columns(dict(zip(names, sizes, strict=True)), dict(zip(names, chances, strict=True)))
        table = np.stack([np.full(60, 0.5), 0.5 + d], axis=1)
        found = compare(Scores.from_table(table, ["a", "b"], names, "AP"), weights=by)
        cautions = [each for each in found.cautions if each.code == "one-topic"]
        turned = any(np.sign(each.statistic) != np.sign(found.pairs[0].difference) for each in without)
        assert bool(cautions) == (turned or any((each.p <= 0.05) != whole for each in without)), seed
        named += bool(cautions)
    assert 5 <= named <= 35


def test_few_drawn_topics_are_a_caution():
    rng = np.random.default_rng(5)
    names = [f"t{i}" for i in range(60)]
    chances = {name: 1 if i < 40 else 0.2 for i, name in enumerate(names)}
    by = DesignWeights.from_columns({name: 50 if chances[name] == 1 else 10 for name in names}, chances)
    found = compare(Scores.from_table(rng.random((60, 2)), ["a", "b"], names, "AP"), weights=by)
    [caution] = [each for each in found.cautions if each.code == "few-drawn-topics"]
    assert caution.text.startswith("only 20 of 60 topics were drawn by chance")


# weighing twice


def table(**columns: dict[str, float]) -> TopicTable:
    return TopicTable(
        "t.tsv", {}, {name: {t: f"{v:.12g}" for t, v in values.items()} for name, values in columns.items()}
    )


def test_weights_by_the_traffic_that_topics_were_drawn_by_are_refused():
    sample = {"frequency": FREQUENCY, "inclusion_probability": PROBABILITY}
    views = {topic: 3.0 * searches for topic, searches in FREQUENCY.items()}
    other = {topic: float(place % 5 + 1) for place, topic in enumerate(TOPICS)}
    for name in ("frequency", "views"):
        with pytest.raises(DataError, match=f"t.tsv: {name}: the topics were drawn in proportion to it"):
            weights_of_column(table(**sample, views=views), name)
    assert weights_of_column(table(**sample, value=other), "value").values == other


def test_weights_by_traffic_are_fine_where_all_topics_had_the_same_chance():
    chances = dict.fromkeys(TOPICS, 0.01)
    assert weights_of_column(table(frequency=FREQUENCY, inclusion_probability=chances), "frequency").by == "frequency"
    assert weights_of_column(table(frequency=FREQUENCY), "frequency").by == "frequency"


def test_weighing_a_sample_by_traffic_counts_it_twice_against_the_population():
    """With scores that fall with rank, the frequency as a weight is far off; design weights are not."""
    rng = np.random.default_rng(6)
    y = np.clip(0.1 + 0.06 * np.log(np.arange(1, 5001)) + rng.normal(0, 0.1, 5000), 0, 1)
    twice, once, plain = [], [], []
    for _ in range(60):
        places, sizes, chances = zipf_sample(rng, 5000, 200)
        twice.append(np.average(y[places], weights=sizes[places]))
        once.append(np.average(y[places], weights=sizes[places] / chances[places]))
        plain.append(y[places].mean())
    true = np.average(y, weights=sizes)
    assert np.mean(once) == pytest.approx(true, abs=0.005)
    assert np.mean(twice) < true - 0.08
    assert np.mean(plain) > true + 0.02  # certain topics have more traffic than their share of the topics


# in commands


def test_eval_prints_the_mean_of_all_traffic_and_the_design(files):
    found = ask(files, "eval", "--design-weights")
    assert found.code == 0
    assert found.out.splitlines()[0].split()[:5] == ["run", "RR", "unweighted", "RR", "by"]
    assert "weighted by traffic: 80 sampled topics (systematic, 6 certain) count as" in found.out
    data = json.loads(ask(files, "eval", "--design-weights", "--format", "json").out)
    assert (data["weights"]["design"], data["weights"]["certain"]) == ("systematic", 6)
    by = [FREQUENCY[topic] / PROBABILITY[topic] for topic in TOPICS]
    rr = [0.5 if place % 3 else 1.0 for place in range(80)]
    assert data["runs"][0]["weighted_mean"]["RR"] == pytest.approx(np.average(rr, weights=by), abs=1e-6)


def test_compare_leaderboard_gate_design_and_report_take_design_weights(files):
    data = json.loads(ask(files, "compare", "--design-weights", "--format", "json").out)
    [pair] = data["pairs"]
    assert (data["test"], pair["weighed_by"]) == ("t", "traffic")
    board = json.loads(ask(files, "leaderboard", "--design-weights", "--format", "json").out)
    assert board["weights"]["degrees_of_freedom"] == 73
    verdict = ask(files, "gate", "--design-weights")
    assert verdict.code in (0, 1)
    assert "RR" in verdict.out
    plan = ask(files, "design", "--design-weights")
    assert plan.code == 0, plan.err
    assert "on 80 sampled topics, 6 of them certain" in plan.out
    assert "RR by traffic" in ask(files, "report", "--design-weights", "--format", "md").out


def test_a_table_of_scores_takes_design_weights(files):
    (files / "scores.csv").write_text(
        "topic,a,b\n" + "".join(f"{topic},{TABLE[i, 0]},{TABLE[i, 1]}\n" for i, topic in enumerate(TOPICS))
    )
    words = ["--design-weights", "--topics-file", str(files / "systematic.tsv"), "--format", "json"]
    [pair] = json.loads(cranfield("compare", "--table", str(files / "scores.csv"), *words).out)["pairs"]
    by = [FREQUENCY[topic] / PROBABILITY[topic] for topic in TOPICS]
    assert pair["difference"] == pytest.approx(np.average(TABLE[:, 1] - TABLE[:, 0], weights=by), abs=1e-6)


def test_a_collection_whose_topics_are_a_sample_needs_no_topics_file(tmp_path):
    rows = [
        {"id": topic, "title": topic, "frequency": FREQUENCY[topic], "inclusion_probability": PROBABILITY[topic]}
        for topic in TOPICS
    ]
    (tmp_path / "topics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "documents.jsonl").write_text('{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}\n')
    (tmp_path / "qrels.txt").write_text("".join(f"{topic} 0 a 1\n" for topic in TOPICS))
    run = {topic: {"a": 1} if place % 2 else {"a": 1, "b": 2} for place, topic in enumerate(TOPICS)}
    found = evaluate(str(tmp_path), run, "RR", weights=DesignWeights.read(tmp_path))
    by = [FREQUENCY[topic] / PROBABILITY[topic] for topic in TOPICS]
    assert found.weighted_mean() == pytest.approx(np.average([1.0 if i % 2 else 0.5 for i in range(80)], weights=by))
    with pytest.raises(DataError, match="drawn in proportion to it"):
        evaluate(str(tmp_path), run, "RR", weights="frequency")


@pytest.mark.parametrize(
    ("verb", "words", "sample", "code", "said"),
    [
        ("eval", ["--weigh-by", "frequency"], "systematic", 3, "use --design-weights"),
        ("compare", ["--weigh-by", "views"], "systematic", 3, "views: the topics were drawn in proportion to it"),
        ("eval", ["--weigh-by", "frequency"], "uniform", 0, ""),
        ("eval", ["--weigh-by", "frequency"], "top", 0, ""),
        ("eval", ["--weigh-by", "value"], "systematic", 0, ""),
        ("eval", ["--design-weights"], "top", 3, "no mean of them describes all traffic"),
        ("eval", ["--design-weights"], "uniform", 0, "note: the topics were not drawn by traffic (uniform)"),
        ("gate", ["--design-weights"], "uniform", 3, "the gate cannot test means by traffic"),
        ("eval", ["--design-weights", "--weigh-by", "value"], "systematic", 2, "cannot be combined"),
        ("eval", ["--design-weights", "--by", "value"], "systematic", 2, "--design-weights does not go with --by"),
        ("compare", ["--design-weights", "--test", "randomisation"], "systematic", 2, "tests that do: t"),
    ],
)
def test_what_a_sample_allows_is_said_with_its_file(files, verb, words, sample, code, said):
    found = ask(files, verb, *words, sample=sample)
    assert found.code == code, found.err
    assert said in " ".join(found.err.split())


@pytest.mark.parametrize(
    ("share", "says"), [("1.0", ""), ("0.99", ""), ("0.834", "describe 83% of"), ("0.012", "1.20% of")]
)
def test_means_say_what_share_of_the_searches_they_describe_unless_it_is_nearly_all(files, share, says):
    lines = (files / "systematic.tsv").read_text().splitlines()
    rows = [f"{lines[0]}\tframe_share", *(f"{line}\t{share}" for line in lines[1:])]
    (files / f"framed{share}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    for verb in ("eval", "compare"):
        found = " ".join(ask(files, verb, "--design-weights", sample=f"framed{share}").err.split())
        assert ("describe" in found) == bool(says)
        assert says in found


@pytest.mark.parametrize("share", ["0", "1.5", "many"])
def test_a_share_of_the_searches_that_cannot_be_is_refused(files, share):
    text = f"topic\tquery\tfrequency\tinclusion_probability\tframe_share\nq1\ttea\t4\t0.5\t{share}\n"
    (files / "share.tsv").write_text(text, encoding="utf-8")
    found = ask(files, "eval", "--design-weights", sample="share")
    assert (found.code, "frame_share" in found.err, share in found.err) == (3, True, True)


def test_frequency_is_refused_also_if_all_drawn_topics_have_the_same(tmp_path):
    """One certain topic with 60 searches, and two drawn ones that stand for 10 queries of one search each."""
    path = tmp_path / "sample.tsv"
    rows = ["a\tmug\t60\t1.0", "b\tpan\t1\t0.2", "c\tjug\t1\t0.2"]
    path.write_text("\n".join(["topic\tquery\tfrequency\tinclusion_probability", *rows]) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="frequency: the topics were drawn in proportion to it"):
        weights_of_column(read_topic_table(str(path)), "frequency")


def test_design_weights_without_their_columns_say_what_is_missing(files):
    (files / "bare.tsv").write_text("topic\tquery\tfrequency\nq1\ttea\t4\n")
    found = ask(files, "eval", "--design-weights", sample="bare")
    assert found.code == 3
    assert "no column 'inclusion_probability' for design weights; it has query, frequency" in found.err
    alone = cranfield("eval", *map(str, [files / "qrels", files / "a.run"]), "--design-weights")
    assert alone.code == 2
    assert "nothing is known of the topics but their ids" in alone.err


def test_the_plain_mean_of_a_sample_with_certain_topics_is_noted(files):
    found = ask(files, "eval", "--per-topic")
    assert "6 of 80 sampled topics have" in found.err
    assert "of the plain mean; --design-weights describes all queries that could be drawn" in found.err
    assert "sampled topics" not in ask(files, "eval", "--per-topic", sample="uniform").err
    assert "sampled topics" not in ask(files, "eval", "--per-topic", sample="top").err


def test_a_sample_from_standard_input_is_read_once(files):
    text = (files / "systematic.tsv").read_text()
    words = ["-m", "RR", "--design-weights", "--topics-file", "-"]
    piped = cranfield("eval", *map(str, [files / "qrels", files / "a.run"]), *words, stdin=text.encode())
    assert piped.code == 0, piped.err
    assert piped.out.splitlines()[1] == ask(files, "eval", "--design-weights", runs=("a.run",)).out.splitlines()[1]

"""Stability of a leaderboard: under other measures, judgments and topics."""

from __future__ import annotations

import csv
import io
import json
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import cranfield as library
from cranfield.base.errors import ConventionError, DataError
from cranfield.comparison.stability import PARTS, stability
from cranfield.evaluation.scores import Scores
from cranfield.stats.reliability import g_study
from shell import EXAMPLES, cranfield

QRELS, BM25, DENSE = EXAMPLES / "qrels.txt", EXAMPLES / "bm25.run", EXAMPLES / "dense.run"
FAST = {"trials": 40, "resamples": 500}


def table(topics: int = 40, runs: int = 6, seed: int = 0, spread: float = 0.08, apart: float = 0.04) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 0.5, (topics, 1)) + apart * np.arange(runs) + rng.normal(0, spread, (topics, runs))


NAMES = [f"s{i}" for i in range(6)]
SCORES = Scores.from_table({"x": table(), "y": table(seed=1)}, NAMES)


def test_all_parts_that_can_be_had_come_without_asking():
    found = stability(SCORES, **FAST)
    assert found.parts == ["measures", "halves", "discrimination", "generalisability"]
    one = Scores.from_table(table(), NAMES)
    assert stability(one, one, **FAST).parts == ["qrels", "halves", "discrimination", "generalisability"]
    text = found.to_text()
    assert all(f"{part}: {PARTS[part].question}" in text for part in found.parts)


def test_agreement_of_measures_against_scipy():
    [row] = stability(SCORES, parts="measures", kinds="tau spearman").measures
    x, y = (SCORES.values[:, m].mean(axis=1) for m in (0, 1))
    assert row.values["tau"] == pytest.approx(stats.kendalltau(x, y).statistic)
    assert row.values["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic)
    change = np.abs(stats.rankdata(-x) - stats.rankdata(-y))
    assert (row.changed, row.largest) == ((change > 0).sum(), change.max())


def test_rbo_of_two_rankings_of_runs_is_that_of_two_lists():
    [row] = stability(SCORES, parts="measures", kinds="rbo", p=0.8).measures
    x, y = (SCORES.values[:, m].mean(axis=1) for m in (0, 1))
    orders = [[NAMES[i] for i in np.argsort(-means)] for means in (x, y)]
    assert row.values["rbo"] == pytest.approx(library.rbo(*orders, p=0.8).ext)
    assert 0 < row.values["rbo"] < 1 or orders[0] == orders[1]


def test_a_measure_of_which_lower_is_better_agrees_with_its_mirror():
    values = table(topics=20)
    scores = Scores.from_table({"AP": values, "FirstRel": 2 - values}, NAMES)
    [row] = stability(scores, parts="measures").measures
    assert row.values == pytest.approx({"tau": 1.0, "tau-ap-b": 1.0, "rbo": 1.0})
    assert row.changed == 0


def test_ranking_by_two_sets_of_judgments_and_the_pairs_whose_significance_flips_against_scipy():
    one, other = Scores.from_table(table(), NAMES), Scores.from_table(table(seed=7, spread=0.12), NAMES)
    [row] = stability(one, other, parts="qrels", test="t").qrels
    both = alone = opposite = 0
    for i, j in combinations(range(6), 2):
        found = [stats.ttest_rel(each.values[i, 0], each.values[j, 0]) for each in (one, other)]
        apart = [each.pvalue <= 0.05 for each in found]
        same = np.sign(found[0].statistic) == np.sign(found[1].statistic)
        both += all(apart) and same
        opposite += all(apart) and not same
        alone += sum(apart) == 1
    assert (row.both, row.one, row.opposite, row.pairs) == (both, alone, opposite, 15)
    assert len(row.flips) == alone + opposite > 0
    assert "not told apart by" in row.flips[0][2]


def test_the_same_judgments_change_nothing():
    one = Scores.from_table(table(), NAMES)
    [row] = stability(one, one, parts="qrels", **FAST).qrels
    assert row.values["tau"] == pytest.approx(1)
    assert (row.changed, row.one, row.opposite, row.flips) == (0, 0, 0, ())


def test_a_mirrored_table_turns_every_pair_round():
    values = table(spread=0.01)
    one, other = Scores.from_table(values, NAMES), Scores.from_table(1 - values, NAMES)
    [row] = stability(one, other, parts="qrels", test="t").qrels
    assert row.values["tau"] == pytest.approx(-1)
    assert (row.both, row.opposite, row.pairs) == (0, 15, 15)


def test_halves_of_equal_topics_agree_fully_and_of_runs_with_equal_means_they_contradict_each_other():
    steady = Scores.from_table(np.tile(np.arange(6.0), (20, 1)), NAMES)
    assert [row.mean for row in stability(steady, parts="halves", **FAST).halves] == pytest.approx([1, 1, 1])
    noise = np.random.default_rng(1).normal(size=(60, 6))
    level = Scores.from_table(noise - noise.mean(axis=0), NAMES)  # what one half has more the other has less
    assert [row.mean for row in stability(level, parts="halves", **FAST).halves] == pytest.approx([-1, -1, -1])


def test_more_topics_agree_better():
    values = table(topics=120, spread=0.3)
    row = stability(Scores.from_table(values, NAMES), parts="halves", trials=200).halves[0]
    assert row.curve[-1][0] == row.topics == 60
    assert row.curve[-1][1] > row.curve[0][1]
    assert row.low <= row.mean <= row.high


def test_spearman_brown_steps_up_pearson_only():
    rows = {row.kind: row for row in stability(SCORES.select(measures=["x"]), parts="halves", trials=200).halves}
    r = rows["pearson"].mean
    assert rows["pearson"].stepped_up == pytest.approx(2 * r / (1 + r))
    assert np.isnan(rows["tau"].stepped_up)


def test_discriminative_power_and_levels_against_scipy():
    [row] = stability(SCORES.select(measures=["x"]), parts="discrimination", test="t", trials=40).discrimination
    p = [stats.ttest_rel(*SCORES.values[[i, j], 0]).pvalue for i, j in combinations(range(6), 2)]
    assert list(row.levels) == pytest.approx(sorted(p, reverse=True))
    assert row.power == sum(value < 0.05 for value in p) / 15
    assert 0 < row.power < 1


def test_a_measure_with_less_noise_tells_more_pairs_apart():
    scores = Scores.from_table({"sharp": table(spread=0.04), "blunt": table(spread=0.3)}, NAMES)
    found = stability(scores, parts="discrimination", **FAST)
    sharp, blunt = found.discrimination
    assert sharp.power > blunt.power
    assert sharp.swaps < blunt.swaps
    assert found.to_text().index("sharp") < found.to_text().index("blunt")


def test_levels_by_the_randomisation_test_and_by_tukey_agree_with_t_on_normal_data():
    scores = Scores.from_table(table(spread=0.1, apart=0.0), NAMES)
    t, randomisation = (
        stability(scores, parts="discrimination", test=test, trials=40, resamples=5000).discrimination[0]
        for test in ("t", "randomisation")
    )
    assert np.allclose(t.levels, randomisation.levels, atol=0.03)
    tukey, shuffled = (
        stability(scores, parts="discrimination", test=test, trials=40, resamples=5000).discrimination[0]
        for test in ("tukey", "randomised-tukey")
    )
    assert np.allclose(tukey.levels, shuffled.levels, atol=0.04)
    assert tukey.power <= t.power


def test_pairs_that_are_equal_everywhere_are_counted_and_said():
    values = table(runs=2)
    found = stability(
        Scores.from_table(np.hstack([values, values[:, :1]])), parts="discrimination", test="t", trials=40
    )
    assert (found.discrimination[0].pairs, len(found.discrimination[0].levels)) == (3, 2)
    assert any("1 of 3 pairs have no p-value" in note for note in found.notes())


def test_generalisability_against_the_components_it_comes_from():
    values = table(topics=50)
    [row] = stability(Scores.from_table(values, NAMES), parts="generalisability").generalisability
    study = g_study(values)
    assert row.shares["runs"] == pytest.approx(study.groups / study.total)
    assert sum(row.shares.values()) == pytest.approx(1)
    assert row.e_rho2 == pytest.approx(study.groups / (study.groups + study.residual / 50))
    assert row.phi == pytest.approx(study.groups / (study.groups + (study.residual + study.blocks) / 50))
    needed = int(row.needed_e_rho2)
    assert study.groups / (study.groups + study.residual / needed) >= 0.95
    assert needed == 1 or study.groups / (study.groups + study.residual / (needed - 1)) < 0.95
    assert row.needed_phi >= row.needed_e_rho2


def test_runs_that_do_not_differ_never_reach_the_target():
    rng = np.random.default_rng(0)
    found = stability(Scores.from_table(rng.uniform(size=(4, 3))), parts="generalisability")
    if found.generalisability[0].shares["runs"] == 0:
        assert "never" in found.to_text()
        assert found.to_dict()["generalisability"][0]["needed_phi"] is None
        assert any("below 0" in note for note in found.notes())
    else:
        pytest.fail("the example should have no variance of runs")


def test_topics_without_a_value_are_left_out_and_measures_that_are_no_mean_too():
    values = table()
    values[3, 2] = np.nan
    found = stability(Scores.from_table(values, NAMES), parts="halves", **FAST)
    assert any("1 of 40 topics have no score" in note for note in found.notes())
    scores = library.evaluate(QRELS, [BM25, DENSE], "gmean(AP) RR")
    found = stability(scores, parts="discrimination", test="t", trials=20)
    assert [row.measure for row in found.discrimination] == ["RR"]
    assert any("gmean(AP) is not a mean over topics" in note for note in found.notes())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"parts": "guess"}, "expected some of measures, qrels"),
        ({"parts": "qrels"}, "expected other judgments as well"),
        ({"kinds": "guess"}, "expected some of tau"),
        ({"alpha": 2}, "alpha must lie between"),
        ({"p": 1}, "p must lie between"),
        ({"trials": 1}, "trials must be 10 or more"),
        ({"resamples": 1}, "resamples must be 100 or more"),
        ({"test": "welch"}, "found 'welch'"),
        ({"test": "guess"}, "found 'guess'"),
    ],
)
def test_what_makes_no_sense_is_refused(given, said):
    with pytest.raises(ConventionError, match=said):
        stability(SCORES, **given)


def test_what_is_undefined_or_left_out_of_two_rankings_is_said():
    values = table()
    values[:, 0] = np.nan
    scores = Scores.from_table({"x": table(), "y": values, "z": np.full((40, 6), 0.5)}, NAMES)
    found = stability(scores, parts="measures")
    assert any(note.startswith("'s0' have no x or no y and are left out") for note in found.notes())
    assert any(note.startswith("tau of x and z is undefined: ") for note in found.notes())
    assert [row.runs for row in found.measures] == [5, 6, 5]
    alone = Scores.from_table({"x": table(), "y": np.where(np.arange(6) < 5, np.nan, values)}, NAMES)
    assert any("nothing to order: expected two runs or more, found 1" in note for note in stability(alone).notes())


def test_the_first_flips_are_named_and_the_others_counted_for_text_markdown_and_csv():
    values = table(spread=0.01)
    found = stability(Scores.from_table(values, NAMES), Scores.from_table(1 - values, NAMES), parts="qrels", test="t")
    assert "  … and 10 pairs more" in found.to_text()
    assert "… and 10 pairs more" in found.to_markdown()
    [head, row] = csv.reader(io.StringIO(found.to_csv()))
    assert dict(zip(head, row, strict=True))["opposite"] == "15"


def test_every_part_is_told_when_it_is_done():
    told = []
    stability(SCORES, progress=lambda done, total: told.append((done, total)), **FAST)
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_too_little_is_refused():
    with pytest.raises(DataError, match="expected Scores; evaluate the runs first"):
        stability({"q": {"a": 1}})
    with pytest.raises(DataError, match="two runs or more"):
        stability(Scores.from_table([[0.1], [0.2]]))
    with pytest.raises(ConventionError, match="two measures or more"):
        stability(Scores.from_table(table(), NAMES), parts="measures")
    with pytest.raises(DataError, match="too little in common"):
        stability(Scores.from_table(table(), NAMES), Scores.from_table(table()), parts="qrels")
    few = stability(Scores.from_table(table(topics=3), NAMES), parts="halves")
    assert any("four topics or more; found 3" in note for note in few.notes())


def test_the_same_seed_gives_the_same_answer():
    assert stability(SCORES, seed=3, **FAST).to_json() == stability(SCORES, seed=3, **FAST).to_json()
    assert json.loads(stability(SCORES, **FAST).to_json(), parse_constant=pytest.fail)


# the command


@pytest.fixture
def csv_table(tmp_path):
    path = tmp_path / "ap.csv"
    rows = [",".join(["topic", *NAMES]), *(f"{i}," + ",".join(map(str, row)) for i, row in enumerate(table().tolist()))]
    path.write_text("\n".join(rows) + "\n")
    return path


QUICK = ["--trials", 20, "--resamples", 200]


def test_the_command_prints_every_part(csv_table):
    answer = cranfield("stability", "--table", csv_table, "--other-table", csv_table, "-m", "AP", *QUICK)
    assert answer.code == 0
    assert [line.partition(":")[0] for line in answer.out.splitlines() if "?" in line] == [
        "qrels",
        "halves",
        "discrimination",
        "generalisability",
    ]


@pytest.mark.parametrize("part", ["halves", "discrimination", "generalisability"])
def test_one_part_goes_out_as_a_table_and_as_a_chart(csv_table, tmp_path, part):
    quick = {"halves": QUICK[:2], "discrimination": QUICK}
    command = ["stability", "--table", csv_table, "--of", part, *quick.get(part, [])]
    rows = list(csv.DictReader(io.StringIO(cranfield(*command, "--format", "csv").out)))
    assert len(rows) > 3
    assert "\t" in cranfield(*command, "--format", "tsv").out
    assert cranfield(*command, "-o", tmp_path / "chart.vl.json").code == 0
    spec = json.loads((tmp_path / "chart.vl.json").read_text())
    assert len(spec["data"]["values"]) >= len(rows) / 4


def test_a_table_or_a_chart_of_several_parts_is_refused(csv_table, tmp_path):
    command = ["stability", "--table", csv_table, "--of", "halves discrimination", *QUICK]
    assert cranfield(*command, "--format", "csv").code == 2
    answer = cranfield(*command, "-o", tmp_path / "x.svg")
    assert (answer.code, "a chart shows one part" in answer.err) == (2, True)
    assert not (tmp_path / "x.svg").exists()


def test_result_lists_are_compared_by_rbo_as_correlate_does():
    answer = cranfield("stability", QRELS, BM25, DENSE, "--of", "lists", "--format", "json")
    other = json.loads(cranfield("correlate", BM25, DENSE, "--format", "json").out)
    assert json.loads(answer.out)["lists"]["pairs"] == other["pairs"]


def test_two_sets_of_judgments_of_the_same_runs(shared):
    """CODEC graded and binary judgments: AP is the same under both, nDCG is not."""
    folder = shared / "codec-document"
    runs = [path for path in sorted(folder.glob("*.run")) if "tuned" in path.name]
    qrels = folder / "document_ndcg.qrels", "--other-qrels", folder / "document_binary.qrels"
    command = ["stability", qrels[0], *runs, *qrels[1:], "-m", "AP nDCG@10", "--of", "qrels", "--format", "json"]
    answer = cranfield(*command, "--duplicates", "first", *QUICK[2:])
    ap, ndcg = json.loads(answer.out)["qrels"]
    assert ap["values"]["tau"] == pytest.approx(1)
    assert ap["first"] == "AP (document_ndcg.qrels)"
    assert ndcg["pairs"] == len(runs) * (len(runs) - 1) / 2


def test_a_chart_of_two_sets_of_judgments_is_a_scatter_of_means(csv_table, tmp_path):
    command = ["stability", "--table", csv_table, "--other-table", csv_table, "--of", "qrels", *QUICK[2:]]
    assert cranfield(*command, "-o", tmp_path / "two.vl.json").code == 0
    values = json.loads((tmp_path / "two.vl.json").read_text())["data"]["values"]
    assert {row["name"] for row in values} == set(NAMES)

"""Strategies replayed on judged collections, and estimators on samples of them."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cranfield import evaluate, read_collection, simulate
from cranfield.base.errors import ConventionError, DataError
from cranfield.formats import as_runs
from cranfield.formats.runs_and_qrels import as_qrels
from cranfield.pooling.simulation import EFFORTS, Replay, Simulation, estimates
from cranfield.pooling.strategy import STRATEGIES, rankings
from cranfield.pooling.text_features import DocumentTexts
from shell import cranfield as shell

if TYPE_CHECKING:
    from pathlib import Path

RUNS = {"one": {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}, "two": {"q": {"d": 4.0, "c": 3.0, "a": 2.0}}}
QRELS = {"q": {"a": 1.0, "b": 0.0, "c": 1.0}}


def replayed() -> Simulation:
    return simulate(QRELS, RUNS, ["depth", "random", "maxmean"], "AP P@2")


def test_the_area_and_the_curve_by_hand() -> None:
    """In the order of ranks: a and d (rank 1), c and b (rank 2). Relevant are a and c, found first and third."""
    depth = replayed()["depth"]
    assert depth.area == pytest.approx((0.5 + 0.5 + 1 + 1) / 4)
    assert (depth.curve[0], depth.curve[25], depth.curve[50], depth.curve[75]) == pytest.approx((0, 0.5, 0.5, 1))
    assert (depth.judgments, depth.share) == (3, 0.75)
    assert depth.wss == pytest.approx(1 / 4 - 0.05)
    assert depth.ncg[EFFORTS.index(0.5)] == 0.5


@pytest.mark.parametrize("name", [name for name, each in STRATEGIES.items() if not each.samples and not each.reads])
def test_with_everything_judged_nothing_is_missing(name: str) -> None:
    rng = np.random.default_rng(2)
    runs = {f"r{i}": {t: {f"d{j}": float(rng.random()) for j in range(12)} for t in "pq"} for i in range(4)}
    qrels = {t: {f"d{j}": float(rng.random() < 0.4) for j in range(12)} for t in "pq"}
    found = simulate(qrels, runs, [name])[name]
    assert (found.found[-1], found.tau["AP"][-1], found.tau_ap["AP"][-1]) == pytest.approx((1, 1, 1))
    assert found.error["AP"][-1] == pytest.approx(0, abs=1e-12)
    assert found.found == sorted(found.found)


def test_the_ranking_at_an_effort_against_evaluate() -> None:
    """Half of four documents: the depth order judges a and d, and d has no judgment."""
    found = simulate(QRELS, RUNS, ["depth"], "AP", efforts=[0.5])["depth"]
    full, part = (evaluate(qrels, RUNS, "AP") for qrels in (QRELS, {"q": {"a": 1.0}}))
    errors = [part.mean("AP", run=run) - full.mean("AP", run=run) for run in RUNS]
    assert found.error["AP"] == pytest.approx([np.sqrt(np.mean(np.square(errors)))])


def test_what_the_collection_does_not_know_is_counted() -> None:
    found = replayed()
    assert (found.topics, found.documents, found.unjudged, found.relevant) == (1, 4, 1, 2)
    assert "1 are not judged by the collection" in found.to_text()


def test_text_json_and_csv_say_the_same() -> None:
    found = replayed()
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert len(rows) == 3 * len(EFFORTS)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    for row in rows:
        replay = next(each for each in plain["replays"] if each["strategy"] == row["strategy"])
        i = EFFORTS.index(float(row["effort"]))
        assert float(row["area"]) == replay["area"]
        assert float(row["found"]) == replay["found"][i]
        assert float(row["ncg"]) == replay["ncg"][i]
        assert float(row["judgments"]) == replay["judgments"]
        assert float(row["wss"]) == replay["wss"]
        assert row["error P@2"] == str(replay["error"]["P@2"][i])
    assert f"{found['depth'].area:.3f}" in found.to_text()
    assert found["depth"].curve[-1] == 1.0


def test_what_cannot_be_replayed_is_refused() -> None:
    with pytest.raises(ConventionError, match="--sampling shows how well"):
        simulate(QRELS, RUNS, ["sample"])
    with pytest.raises(ConventionError, match="--collection"):
        simulate(QRELS, RUNS, ["cal"])
    with pytest.raises(ConventionError, match="efforts"):
        simulate(QRELS, RUNS, ["depth"], efforts=[0.0])
    with pytest.raises(ConventionError, match="recall"):
        simulate(QRELS, RUNS, ["depth"], recall=2)
    with pytest.raises(DataError, match="no judged topic has a relevant document"):
        simulate({"q": {"a": 0.0}}, RUNS, ["depth"])
    with pytest.raises(DataError, match="'hedge' was not simulated"):
        _ = replayed()["hedge"]


# estimators


def made(
    topics: int, size: int, runs: int, share: float = 0.2
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, dict[str, float]]]]:
    """A pool of `size` documents a topic, a share of them relevant, and runs that find them more or less well."""
    rng = np.random.default_rng(5)
    qrels: dict[str, dict[str, float]] = {}
    answers: dict[str, dict[str, dict[str, float]]] = {f"r{i}": {} for i in range(runs)}
    for t in range(topics):
        relevant = rng.random(size) < share
        qrels[f"q{t}"] = {f"d{j}": float(relevant[j]) for j in range(size)}
        for i, run in enumerate(answers.values()):
            score = rng.normal(size=size) + relevant * (0.5 + 0.4 * i)
            run[f"q{t}"] = {f"d{j}": float(score[j]) for j in range(size)}
    return qrels, answers


def test_a_sample_of_everything_gives_average_precision_exactly() -> None:
    qrels, runs = made(4, 60, 3)
    opened = as_runs(runs)
    for each in estimates(qrels, opened, rankings(opened, 1000), [1.0], draws=2):
        assert each.rate == 1.0
        assert (each.error, each.rmse) == pytest.approx((0, 0), abs=1e-4)  # both infAP and xinfAP are smoothed
        assert each.lost == 0


@pytest.mark.slow
def test_estimators_on_large_pools_are_within_a_hundredth_and_sharpen_with_the_rate_against_full_judgments() -> None:
    """Thirty relevant documents drawn of a topic at 5 %: with fewer, all three are biased, as the documentation shows."""
    qrels, runs = made(30, 3000, 2)
    opened = as_runs(runs)
    found = estimates(qrels, opened, rankings(opened, 3000), [0.05, 0.1, 0.2], draws=10)
    for name in ("infAP", "xinfAP", "statAP"):
        mine = [each for each in found if each.measure == name]
        assert max(abs(each.error) for each in mine) < 0.01
        errors = [each.rmse_topic for each in mine]
        assert errors == sorted(errors, reverse=True)
    assert "statAP" in found.to_text()


def test_estimates_come_nearer_with_the_rate_against_full_judgments() -> None:
    qrels, runs = made(12, 400, 2)
    opened = as_runs(runs)
    found = estimates(qrels, opened, rankings(opened, 400), [0.1, 0.5], draws=3)
    for name in ("infAP", "xinfAP", "statAP"):
        few, many = (each for each in found if each.measure == name)
        assert many.rmse_topic < few.rmse_topic
        assert abs(many.error) < 0.02


def test_standard_errors_are_those_of_means_over_draws_against_drawing_again() -> None:
    """Ten means of eight draws spread as the standard error of one of them says; the table shows it."""
    qrels, runs = made(6, 150, 2)
    opened = as_runs(runs)
    tops = rankings(opened, 150)
    again = [estimates(qrels, opened, tops, [0.3], draws=8, seed=seed).rows[0] for seed in range(10)]
    for value, error in (("error", "error_se"), ("rmse", "rmse_se")):
        spread = np.std([getattr(each, value) for each in again], ddof=1)
        told = np.sqrt(np.mean([getattr(each, error) ** 2 for each in again]))
        assert 0.5 < spread / told < 1.6
    text = estimates(qrels, opened, tops, [0.3], draws=8).to_text()
    assert f"{again[0].error_se:.4f}" in text
    assert f"{again[0].rmse_se:.4f}" in text
    single = estimates(qrels, opened, tops, [0.3], draws=1).rows[0]
    assert (single.error_se, single.rmse_se) == (None, None)


def test_rates_and_draws_out_of_range_are_refused() -> None:
    tops = rankings(as_runs(RUNS), 10)
    with pytest.raises(ConventionError, match="rates"):
        estimates(QRELS, as_runs(RUNS), tops, [0.0])
    with pytest.raises(ConventionError, match="draws"):
        estimates(QRELS, as_runs(RUNS), tops, [0.5], draws=0)


def test_progress_counts_the_strategies():
    counts = []
    runs = {"one": {"q": {"a": 2, "c": 1}}, "two": {"q": {"b": 2}}}
    simulate({"q": {"a": 1, "b": 1, "c": 0}}, runs, ["depth", "rrf"], progress=lambda *count: counts.append(count))
    assert counts == [(1, 2), (2, 2)]


# continuous active learning: its bars, with the runs of three engines to depth 100


def made_collection(source: Path, folder: Path) -> tuple[str, list[str]]:
    """An imported collection, and its runs."""
    target = str(folder / source.name)
    if not (folder / source.name).exists():
        shell("import", str(source), target)
    runs = [f"{target}-{system}.run" for system in ("sqlite", "bm25s", "tantivy")]
    for run, system in zip(runs, ("sqlite", "bm25s", "tantivy"), strict=True):
        shell("run", target, "--system", system, "--depth", "100", "-o", run)
    return target, runs


def learning_and_depth(target: str, runs: list[str], every: int = 1) -> tuple[Replay, Replay]:
    """The replays of cal and depth to 80 % recall, over every n-th topic."""
    collection = read_collection(target)
    qrels = as_qrels(f"{target}/qrels.txt").to_dict()
    chosen = dict(list(qrels.items())[::every])
    texts = DocumentTexts.of(collection)
    result = simulate(chosen, runs, ["cal", "depth"], texts=texts, recall=0.8, missing="skip")
    return result["cal"], result["depth"]


@pytest.mark.parametrize("name", ["cranfield", "cacm"])
@pytest.mark.slow
def test_active_learning_halves_the_labels_to_80_percent_recall(name: str, shared: Path, tmp_path: Path) -> None:
    learning, depth = learning_and_depth(*made_collection(shared / name, tmp_path))
    assert learning.judgments <= 0.5 * depth.judgments
    assert learning.total <= 0.58 * depth.total
    assert learning.slower(depth) <= 0.2


def test_active_learning_needs_fewer_labels_on_a_tenth_of_the_topics(shared: Path, tmp_path: Path) -> None:
    learning, depth = learning_and_depth(*made_collection(shared / "cacm", tmp_path), every=5)
    assert learning.total <= 0.7 * depth.total
    assert learning.slower(depth) <= 0.3


def test_the_judgments_of_each_topic_add_up_and_are_compared() -> None:
    depth, learner = replayed()["depth"], replayed()["maxmean"]
    assert depth.by_topic == {"q": depth.judgments}
    assert (depth.total, depth.slower(depth)) == (3, 0)
    assert learner.slower(depth) == float(learner.total > depth.total)

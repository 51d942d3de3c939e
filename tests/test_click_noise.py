"""compare --label-noise with judgments from clicks: simulated clicks on documents of known value are the oracle."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

import cranfield as cf
from cranfield.comparison.label_noise import ValueUncertainty
from cranfield.formats.uncertain_qrels import UncertainGrades
from cranfield.stats.bootstrap import redrawn_mean
from cranfield.stats.posteriors import BetaPosteriors
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from pathlib import Path

    from cranfield.stats.ties import Floats, Ints

LOG = "online/clicks-log"
TOPICS, DOCUMENTS, DRAWS = 50, 20, 40
GRADES = (0.1, 0.25, 0.4)
DISCOUNT = 1 / np.log2(np.arange(2, 12))
RUNS = ["bm25.run", "dense.run"]
WORLDS = {
    "uniform": lambda rng, size: rng.uniform(0.05, 0.6, size),
    "skewed": lambda rng, size: rng.beta(0.5, 3, size),
    "few relevant": lambda rng, size: np.where(rng.random(size) < 0.7, 0.03, rng.uniform(0.2, 0.6, size)),
}


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clicks") / "clicks.csv"
    assert cranfield("online", "qrels", LOG, "--topics-file", "topics.tsv", "-o", path).code == 0
    return path


def noise_of(path: Path, *options: str) -> dict:
    answer = cranfield(
        "compare", path, *RUNS, "-m", "nDCG@10", "--label-noise", "--format", "json", *options, folder=EXAMPLES
    )
    assert answer.code == 0, answer.err
    return json.loads(answer.out)["label_noise"]


def rewritten(path: Path, name: str, **change: str) -> Path:
    """The file with other values in some columns; `{alpha}` stands for the value of a column."""
    head, *rows = (line.split(",") for line in path.read_text().splitlines())
    for row in rows:
        values = dict(zip(head, row, strict=True))
        for column, text in change.items():
            row[head.index(column)] = text.format(**values)
    other = path.with_name(name)
    other.write_text("\n".join(",".join(row) for row in [head, *rows]) + "\n")
    return other


def test_compare_redraws_every_judgment_of_a_file_of_clicks(clicks: Path) -> None:
    noise = noise_of(clicks)
    judgments = sum(map(len, cf.read_qrels(str(clicks)).to_dict().values()))
    [pair] = noise["pairs"]
    assert (noise["redrawn"], noise["documents"], noise["unsure"]) == (judgments,) * 3
    assert pair["corrected"] == pytest.approx(2 * pair["difference"] - pair["redrawn"])
    assert pair["low"] < pair["corrected"] < pair["high"]
    assert pair["share_of_clicks"] + pair["share_of_topics"] == pytest.approx(1)
    plain = cf.compare(cf.read_qrels(str(clicks)).to_dict(), [str(EXAMPLES / run) for run in RUNS], "nDCG@10")
    assert pair["difference"] == pytest.approx(plain.pairs[0].difference)


def test_judgments_that_are_certain_stay_as_they_are(clicks: Path) -> None:
    """A million times the clicks and views leave nothing to redraw."""
    many = {name: f"{{{name}}}e6" for name in ("alpha", "beta")}
    sure = noise_of(rewritten(clicks, "sure.csv", **many))["pairs"][0]
    unsure = noise_of(clicks)["pairs"][0]
    assert sure["redrawn"] == pytest.approx(sure["difference"], abs=1e-3)
    assert sure["share_of_clicks"] < 1e-4 < unsure["share_of_clicks"]


def test_redrawn_values_pass_through_the_thresholds_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "graded.csv"
    line = ["online", "qrels", LOG, "--topics-file", "topics.tsv", "--thresholds", "0.2,0.5", "-o", path]
    assert cranfield(*line).code == 0
    uncertainty = ValueUncertainty.of_file(str(path))
    drawn = uncertainty.draw(np.random.default_rng(1))
    assert set(np.unique(drawn).tolist()) <= {0.0, 1.0, 2.0}
    grades = cf.read_qrels(str(path)).to_dict()
    assert uncertainty.likeliest(drawn).tolist() == [grades[t][d] for t, d in uncertainty.subjects]
    [pair] = noise_of(path)["pairs"]
    assert pair["redrawn"] != pair["difference"]


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--policy", "majority"], "need no policy"), (["--grades", "1=2"], "leave --grades out")],
)
def test_options_for_labels_of_people_are_refused(clicks: Path, options: list[str], message: str) -> None:
    answer = cranfield("compare", clicks, *RUNS, "--label-noise", *options, folder=EXAMPLES)
    assert answer.code in (2, 3)
    assert message in answer.err


def test_the_text_says_clicks_and_what_is_not_covered(clicks: Path) -> None:
    answer = cranfield("compare", clicks, *RUNS, "-m", "nDCG@10", "--label-noise", folder=EXAMPLES)
    assert "judgments are redrawn 200 times, each from the posterior of its value" in answer.out
    assert "errors of the click model are not covered" in answer.out
    assert "assessors" not in answer.out


# coverage


def ndcg(values: Floats, order: Ints) -> Floats:
    """nDCG@10 of each topic."""
    gains = np.take_along_axis(values, order[:, :10], 1) @ DISCOUNT
    ideal = -np.sort(-values, axis=1)[:, :10] @ DISCOUNT
    return np.divide(gains, ideal, out=np.zeros(len(gains)), where=ideal > 0)


def differences(values: Floats, runs: list[Ints]) -> Floats:
    return ndcg(values, runs[0]) - ndcg(values, runs[1])


def coverage(world: str, views: tuple[int, int], thresholds: tuple[float, ...], logs: int, seed: int = 0) -> float:
    """The share of corrected intervals that cover the mean difference of all topics, by the true values.

    The two runs order documents by their true value with errors of their own.
    """
    rng = np.random.default_rng(seed)

    def topics(number: int) -> tuple[Floats, list[Ints]]:
        truth = WORLDS[world](rng, (number, DOCUMENTS))
        return truth, [np.argsort(-(truth + rng.normal(0, blur, truth.shape)), axis=1) for blur in (0.15, 0.25)]

    def grades(values: Floats) -> Floats:
        return UncertainGrades([], BetaPosteriors(np.ones(1), np.ones(1)), thresholds).grades(values)

    truth, runs = topics(30_000 if logs > 100 else 12_000)
    target = differences(grades(truth), runs).mean()
    covered = 0
    for _ in range(logs):
        truth, runs = topics(TOPICS)
        seen = np.exp(rng.uniform(*np.log(views), truth.shape)).astype(int)
        clicked = rng.binomial(seen, truth)
        posteriors = BetaPosteriors(*(each.ravel() + 1.0 for each in (clicked, seen - clicked)), *[np.ones(1)] * 2)
        uncertainty = ValueUncertainty(UncertainGrades([("", "")] * truth.size, posteriors, thresholds))
        current = differences(uncertainty.likeliest(truth).reshape(truth.shape), runs)
        redraws = [differences(uncertainty.draw(rng).reshape(truth.shape), runs) for _ in range(DRAWS)]
        result = redrawn_mean(current, redraws)
        covered += result.low <= target <= result.high
    return covered / logs


def test_the_corrected_interval_covers_the_true_difference() -> None:
    shares = [coverage(world, (10, 40), (), 30) for world in ("uniform", "skewed")]
    assert min(shares) >= 0.85
    assert np.mean(shares) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("thresholds", [(), GRADES], ids=["values", "grades"])
@pytest.mark.parametrize("views", [(20, 200), (200, 2_000)], ids=str)
@pytest.mark.parametrize("world", WORLDS)
def test_the_corrected_interval_covers_the_true_difference_in_93_to_97_percent(
    world: str, views: tuple[int, int], thresholds: tuple[float, ...]
) -> None:
    assert 0.925 <= coverage(world, views, thresholds, 1_000) <= 0.975


@pytest.mark.parametrize("qrels", ["qrels.txt", "-"])
def test_qrels_without_posteriors_are_refused_with_what_label_noise_takes(qrels: str) -> None:
    answer = cranfield("compare", qrels, "bm25.run", "dense.run", "--label-noise")
    assert answer.code == 3
    assert "expected a log of judgments, or a file of judgments from clicks" in answer.err

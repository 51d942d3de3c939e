"""Agreement of judgments from clicks with people's. SciPy, scikit-learn's definitions and simulated worlds are the oracles."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

import cranfield as cf
from cranfield.base.errors import DataError
from cranfield.base.results import Layout
from cranfield.experiments.clicks.judgments import ClickJudgments
from cranfield.experiments.clicks.people_agreement import (
    AgreementValue,
    ClickAgreement,
    _auc,
    _kappa,
    _tau,
    agreement_with_people,
)
from cranfield.stats.posteriors import BetaPosteriors
from shell import cranfield

LOG = "online/clicks-log"
TOPICS, DOCUMENTS = 15, 12


def click_judgments(values: np.ndarray, thresholds: tuple[float, ...] = ()) -> ClickJudgments:
    """Judgments of topics × documents with these values."""
    topics, documents = np.indices(values.shape).reshape(2, -1)
    flat, many = values.ravel(), np.full(values.size, 1000)
    return ClickJudgments(
        "attractiveness",
        "PBM",
        [f"t{topic}" for topic in topics],
        [],
        [f"d{document}" for document in documents],
        BetaPosteriors.of_mean(flat, many.astype(float)),
        many,
        many,
        thresholds,
        1000,
        10,
        0,
        0,
    )


def world(seed: int, noise: float = 0.1) -> tuple[np.ndarray, dict[str, dict[str, float]], list[Any]]:
    """Values of clicks, grades of people, and four runs, each worse than the one before."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0.02, 0.9, (TOPICS, DOCUMENTS))
    values = np.clip(truth + rng.normal(0, noise, truth.shape), 0.01, 0.98)
    people = {f"t{t}": {f"d{d}": float(np.floor(3 * truth[t, d])) for d in range(DOCUMENTS)} for t in range(TOPICS)}
    runs = []
    for number, blur in enumerate((0.05, 0.3, 0.8, 3.0)):
        scores = truth + rng.normal(0, blur, truth.shape)
        run = {f"t{t}": {f"d{d}": float(scores[t, d]) for d in range(DOCUMENTS)} for t in range(TOPICS)}
        runs.append(
            cf.read_run([{"qid": t, "docno": d, "score": s} for t, row in run.items() for d, s in row.items()]).renamed(
                f"run{number}"
            )
        )
    return values, people, runs


def test_tau_against_scipy() -> None:
    values, people, runs = world(1)
    judged = click_judgments(values)
    answer = agreement_with_people(judged, cf.Qrels(people), runs, ["nDCG@5", "nDCG@10"])
    for name, tau in zip(["nDCG@5", "nDCG@10"], answer.taus, strict=True):
        means = [[cf.evaluate(qrels, run, name).mean() for run in runs] for qrels in (people, judged.to_mapping())]
        assert tau.value == pytest.approx(stats.kendalltau(*means).statistic)
        assert -1 <= tau.low <= tau.value <= tau.high <= 1


def test_auc_is_the_share_of_pairs_of_a_topic_in_the_right_order() -> None:
    values, people, _ = world(2, noise=0.3)
    answer = agreement_with_people(click_judgments(values), cf.Qrels(people), rel=2)
    right = pairs = 0.0
    for t in range(TOPICS):
        for i in range(DOCUMENTS):
            for j in range(DOCUMENTS):
                if people[f"t{t}"][f"d{i}"] >= 2 > people[f"t{t}"][f"d{j}"]:
                    right += (values[t, i] > values[t, j]) + (values[t, i] == values[t, j]) / 2
                    pairs += 1
    [auc] = answer.others
    assert (auc.name, auc.value) == ("AUC", pytest.approx(right / pairs))


def test_kappa_against_its_definition() -> None:
    values, people, _ = world(3)
    answer = agreement_with_people(click_judgments(values, (1 / 3, 2 / 3)), cf.Qrels(people))
    theirs = np.array([[people[f"t{t}"][f"d{d}"] for d in range(DOCUMENTS)] for t in range(TOPICS)]).ravel()
    ours = np.floor(3 * values).ravel().clip(0, 2)
    table = np.histogram2d(ours, theirs, bins=[[-0.5, 0.5, 1.5, 2.5]] * 2)[0] / len(ours)
    far = np.abs(np.subtract.outer(range(3), range(3)))
    chance = np.outer(table.sum(axis=1), table.sum(axis=0))
    kappa = answer.others[1]
    assert (kappa.name, kappa.value) == ("kappa", pytest.approx(1 - (far * table).sum() / (far * chance).sum()))
    assert kappa.low < kappa.value < kappa.high


@pytest.mark.parametrize(
    ("tau", "words"),
    [
        ((0.8, 0.65, 0.95), "would have ranked the runs much as people do: tau .80 [.65, .95]"),
        ((0.8, 0.1, 1.0), "closer to people's order than to its reverse: tau .80 [.10, 1.00]"),
        ((0.3, -0.2, 0.8), "it is not settled whether these clicks rank the runs as people do: tau .30 [-.20, .80]"),
        ((-0.5, -0.9, -0.1), "against people's order: tau -.50 [-.90, -.10]"),
        ((0.33, np.nan, np.nan), "have tau .33, and so in every resample of the 20 topics: there is no interval"),
        ((np.nan, np.nan, np.nan), "cannot be compared"),
    ],
)
def test_the_verdict_is_as_strong_as_the_interval(tau: tuple[float, float, float], words: str) -> None:
    value = AgreementValue("tau nDCG@10", *tau, 20, "the orders of 4 runs")
    answer = ClickAgreement("qrels", ["a", "b", "c", "d"], 20, 100, [value], [])
    assert words in answer.verdict(value, Layout())


@pytest.mark.parametrize(("runs", "topics"), [(2, 20), (4, 1)])
def test_two_runs_or_one_topic_say_too_little(runs: int, topics: int) -> None:
    value = AgreementValue("tau nDCG@10", 1.0, np.nan, np.nan, topics, "the orders of runs")
    answer = ClickAgreement("qrels", [*"abcd"][:runs], topics, 100, [value], [])
    assert "have tau 1.00; the data say too little for an interval" in answer.verdict(value, Layout())


def test_an_order_that_no_resample_changes_is_not_called_too_little() -> None:
    scores = np.linspace(0.1, 0.9, 4) + np.random.default_rng(1).uniform(0, 0.05, (50, 1))
    tau = _tau("tau nDCG@10", scores, scores**2, 200, 0)
    answer = ClickAgreement("qrels", [*"abcd"], 50, 100, [tau], [])
    assert "tau 1.00, and so in every resample of the 50 topics" in answer.verdict(tau, Layout())


def test_people_who_judge_other_topics_are_named() -> None:
    values, _, _ = world(1)
    with pytest.raises(DataError, match="judges no topic of the clicks .clicks: 't0'.* people: 'other'"):
        agreement_with_people(click_judgments(values), cf.Qrels({"other": {"d0": 1}}))


def test_the_command_begins_with_the_order_of_the_runs() -> None:
    line = ["online", "qrels", LOG, "bm25.run", "dense.run", "tied.run", "--against", "qrels.txt"]
    answer = cranfield(*line, "--topics-file", "topics.tsv")
    assert answer.code == 0, answer.err
    assert "tau" in answer.out.splitlines()[0]
    found = json.loads(cranfield(*line, "--topics-file", "topics.tsv", "--format", "json").out)
    assert [each["name"] for each in found["agreement"]] == ["tau nDCG@10", "AUC"]
    assert found["clicks"]["judgments"]
    assert cranfield(*line).code == 3  # the log names queries, the qrels ids


# coverage of the intervals


def opinions(topics: int, rng: np.random.Generator) -> tuple[dict, dict]:
    """Values of clicks and grades of people for 15 documents of each topic; topics differ in how well both agree."""
    values, people = {}, {}
    for t in range(topics):
        grades = np.floor(rng.uniform(0, 3, 15))
        own = rng.uniform(0.15, 0.75) * grades + rng.normal(0, 0.6, 15) + rng.normal(0, 0.5)
        people[f"t{t}"] = {f"d{d}": float(grades[d]) for d in range(15)}
        values[f"t{t}"] = {f"d{d}": float(own[d]) for d in range(15)}
    return values, people


def shares_covered(topics: int, logs: int) -> tuple[float, float]:
    """The shares of the intervals of AUC and of kappa that cover the values of thousands of topics."""

    def graded(values: dict) -> dict:
        return {t: {d: float(np.clip(round(x), 0, 2)) for d, x in row.items()} for t, row in values.items()}

    rng = np.random.default_rng(5)
    values, people = opinions(2_000, rng)
    auc, kappa = _auc(values, people, 1.0).value, _kappa(graded(values), people).value
    hits = np.zeros(2)
    for _ in range(logs):
        values, people = opinions(topics, rng)
        both = (_auc(values, people, 1.0), auc), (_kappa(graded(values), people), kappa)
        hits += [own.low <= true <= own.high for own, true in both]
    return float(hits[0] / logs), float(hits[1] / logs)


def test_the_intervals_of_auc_and_kappa_cover_the_values_of_many_topics() -> None:
    assert min(shares_covered(20, 60)) >= 0.88


@pytest.mark.slow
@pytest.mark.parametrize("topics", [10, 20, 50])
def test_the_intervals_of_auc_and_kappa_cover_the_true_values_in_92_to_98_percent(topics: int) -> None:
    shares = shares_covered(topics, 500)
    assert min(shares) >= 0.92
    assert max(shares) <= 0.98


def tau_coverage(runs: int, topics: int, gap: float, worlds: int, logs: int) -> float:
    """The share of intervals that cover the tau which samples of as many topics give on average."""
    rng = np.random.default_rng(7)
    covered = 0

    def draw(people: np.ndarray, clicks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shared = rng.normal(0, 0.2, (topics, 1)), rng.normal(0, 0.2, (topics, runs))
        own = rng.normal(0, 0.14, (topics, runs))
        return people + shared[0] + shared[1], clicks + shared[0] + 0.7 * shared[1] + own

    for _ in range(worlds):
        people = rng.normal(0, 0.05, runs)
        clicks = people + rng.normal(0, gap, runs)
        samples = [draw(people, clicks) for _ in range(300)]
        average = np.mean([stats.kendalltau(one.mean(axis=0), other.mean(axis=0)).statistic for one, other in samples])
        for one, other in samples[:logs]:
            tau = _tau("tau", one, other, 300, 0)
            covered += bool(np.isnan(tau.low)) or tau.low <= average <= tau.high
    return covered / (worlds * logs)


def test_the_interval_of_tau_covers_the_average_tau_of_such_samples() -> None:
    assert tau_coverage(runs=6, topics=30, gap=0.05, worlds=3, logs=12) >= 0.88


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.0, 0.05])
@pytest.mark.parametrize("topics", [10, 50, 200])
@pytest.mark.parametrize("runs", [3, 10, 25])
def test_the_interval_of_tau_covers_the_average_tau_in_91_percent_or_more(runs: int, topics: int, gap: float) -> None:
    assert tau_coverage(runs, topics, gap, worlds=60, logs=6) >= 0.91

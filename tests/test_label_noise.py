"""Label noise: grades of several people redrawn, and what that leaves of a difference."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from cranfield import compare, evaluate
from cranfield.base.errors import ConventionError, DataError
from cranfield.comparison.label_noise import LabelUncertainty
from cranfield.judging import Event, current_events, open_log
from cranfield.judging.aggregation import uncertainty_of
from cranfield.judging.policies import PolicySettings, decide
from cranfield.stats.bootstrap import redrawn_mean
from shell import cranfield

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the benchmarks are not installed with the package

from benchmarks import label_noise as simulated

TOPICS, DOCUMENTS = 8, 12
RUNS = ("bm25", "dense")


def events() -> list[Event]:
    """Three people on two documents of three, one person on the third."""
    rng = np.random.default_rng(5)
    return [
        Event(topic=f"q{t}", document=f"d{d}", grade=float(rng.integers(0, 3)), assessor=who)
        for t in range(TOPICS)
        for d in range(DOCUMENTS)
        for who in ("ann", "bob", "cat")[: 3 if d % 3 else 1]
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("labels.jsonl", "work.db"):
        log = open_log(tmp_path / name)
        log.add(events())
        log.close()
    rng = np.random.default_rng(6)
    for name in RUNS:
        lines = [
            f"q{t} Q0 d{d} {rank} {-rank} {name}\n"
            for t in range(TOPICS)
            for rank, d in enumerate(rng.permutation(DOCUMENTS), 1)
        ]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    return tmp_path


def compared(folder: Path, *more: str, log: str = "labels.jsonl"):
    runs = [f"{name}.run" for name in RUNS]
    return cranfield("compare", log, *runs, "-m", "nDCG@5 AP", "--label-noise", *more, folder=folder)


# the statistic


def test_a_mean_is_moved_back_as_far_as_redraws_moved_it_by_hand():
    found = redrawn_mean([0.2, 0.4], [[0.1, 0.4], [0.1, 0.2]])  # means of redraws .1 and .3
    assert (found.difference, found.redrawn) == pytest.approx((0.3, 0.2))
    assert found.corrected == pytest.approx(0.4)
    assert found.from_labels == pytest.approx(0.01 / 2)  # variances 0 and .02, over two units
    assert found.from_units == pytest.approx((0.02 - 0.01 / 2) / 2)
    assert found.share_of_labels == pytest.approx(0.4)


def test_without_doubt_the_interval_is_that_of_student_against_scipy():
    from scipy import stats

    d = np.array([0.1, -0.2, 0.4, 0.3, 0.0])
    found = redrawn_mean(d, np.stack([d, d, d]), 0.9)
    ends = stats.t.interval(0.9, 4, d.mean(), stats.sem(d))
    assert (found.low, found.high) == pytest.approx(ends)
    assert found.share_of_labels == pytest.approx(0)


def test_what_stands_need_not_be_the_likeliest():
    found = redrawn_mean([0.0, 0.0], [[0.1, 0.1], [0.1, 0.1]], likeliest=[0.3, 0.3])
    assert found.corrected == pytest.approx(0.2)


@pytest.mark.parametrize("redraws", [[[1.0, 2.0]], [[1.0], [1.0]], [1.0, 2.0]])
def test_too_few_redraws_are_refused(redraws):
    with pytest.raises(DataError, match="two redraws or more of 2 units"):
        redrawn_mean([1.0, 2.0], redraws)


def test_a_single_unit_has_no_interval():
    found = redrawn_mean([1.0], [[1.0], [0.5]])
    assert np.isnan(found.low)
    assert np.isnan(found.share_of_labels)


# scoring


def test_redraws_against_qrels_written_out():
    qrels = {"q1": {"a": 1.0, "b": 0.0, "c": 2.0}, "q2": {"a": 0.0, "b": 1.0}}
    runs = {"one": {"q1": {"a": 3, "b": 2, "c": 1}, "q2": {"a": 2, "b": 1}}, "other": {"q1": {"c": 1}, "q2": {"b": 1}}}
    chances = {"q1": {"a": {0: 0.5, 1: 0.5}, "c": {1: 0.4, 2: 0.6}}, "q2": {"b": {0: 0.3, 1: 0.7}}}
    found = compare(qrels, runs, "nDCG AP", label_noise=chances, label_draws=7, seed=3).label_noise
    doubt, rng, means = LabelUncertainty.of(chances, 5), np.random.default_rng(3), []
    for _ in range(7):
        grades = {topic: dict(inner) for topic, inner in qrels.items()}
        for (topic, document), grade in zip(doubt.subjects, doubt.draw(rng), strict=True):
            grades[topic][document] = grade
        scores = evaluate(grades, runs, "nDCG AP")
        means.append([scores.mean(measure, "other") - scores.mean(measure, "one") for measure in ("nDCG", "AP")])
    assert [pair.result.redrawn for pair in found.pairs] == pytest.approx(np.mean(means, axis=0))
    assert (found.redrawn, found.documents) == (3, 5)


def test_grades_are_drawn_as_often_as_their_chances_say():
    doubt = LabelUncertainty.of({"q": {"a": {0: 0.2, 2: 0.8}, "b": {1: 1.0}}}, 2)
    rng = np.random.default_rng(1)
    drawn = np.array([doubt.draw(rng) for _ in range(2000)])
    assert set(drawn[:, 0]) == {0.0, 2.0}
    assert set(drawn[:, 1]) == {1.0}
    assert (drawn[:, 0] == 2).mean() == pytest.approx(0.8, abs=0.03)


def test_the_grade_that_stands_is_the_likeliest_where_it_ties():
    doubt = LabelUncertainty.of({"q": {"a": {0: 0.5, 2: 0.5}, "b": {0: 0.5, 2: 0.5}, "c": {0: 0.1, 2: 0.9}}}, 3)
    assert doubt.likeliest(np.array([2.0, 1.0, 0.0])).tolist() == [2, 0, 2]


def test_sure_labels_change_nothing():
    qrels = {f"q{t}": {"a": 1.0, "b": float(t % 2)} for t in range(6)}
    runs = {"one": {q: {"a": 1, "b": 2} for q in qrels}, "other": {q: {"a": 2, "b": 1} for q in qrels}}
    sure = {q: {document: {grade: 1.0} for document, grade in inner.items()} for q, inner in qrels.items()}
    comparison = compare(qrels, runs, "RR", label_noise=sure, label_draws=3)
    [pair], [noisy] = comparison.pairs, comparison.label_noise.pairs
    assert noisy.result.corrected == noisy.result.redrawn == pytest.approx(pair.difference)
    assert (noisy.result.low, noisy.result.high) == pytest.approx((pair.low, pair.high))


QRELS = {"q": {"a": 1.0}, "r": {"a": 1.0}}
TWO = {"one": {"q": {"a": 1}, "r": {"a": 1}}, "other": {"q": {"b": 2, "a": 1}, "r": {"a": 1}}}


@pytest.mark.parametrize(
    ("noise", "more", "why"),
    [
        ({"q": {"a": {0: 0.5, 1: 0.6}}}, {}, "add up to 1, found .* for 'a' of 'q'"),
        ({"q": {"z": {0: 1.0}}}, {}, "'z' of topic 'q' is not judged"),
        ({"q": {"a": {0: 1.0}}}, {"label_draws": 1}, "label_draws must be 2 or more"),
        ({"q": {"a": {0: 1.0}}}, {"groups": {"g": ["one", "other"]}}, "groups|two systems"),
    ],
)
def test_noise_that_makes_no_sense_is_refused(noise, more, why):
    with pytest.raises((DataError, ConventionError), match=why):
        compare(QRELS, TWO, "AP", label_noise=noise, **more)


def test_runs_that_came_in_a_stream_and_scores_of_a_table_cannot_be_scored_again():
    noise = {"q": {"a": {0: 1.0}}}
    with pytest.raises(ConventionError, match="runs are read again, but one cannot be"):
        compare(QRELS, iter([{"one": TWO["one"]}, {"other": TWO["other"]}]), "AP", label_noise=noise)
    from cranfield import Scores

    with pytest.raises(ConventionError, match="scores of a table have no labels"):
        compare(Scores.from_table([[1, 2], [2, 3]], ["a", "b"]), label_noise=noise)


# a log


def test_only_documents_of_several_people_are_in_doubt_and_none_that_was_adjudicated():
    said = [*events(), Event(kind="adjudication", topic="q0", document="d1", grade=2.0, assessor="dan")]
    stand = current_events(said)
    doubt = uncertainty_of(stand, decide(stand, "majority"))
    assert len(doubt.subjects) == TOPICS * 8 - 1
    assert not {("q0", "d1"), ("q0", "d0")} & set(doubt.subjects)
    assert doubt.chance.sum(axis=1) == pytest.approx(1)
    assert doubt.notes[:-1] == decide(stand, "majority").notes()
    assert "rough chances" in doubt.notes[-1]


@pytest.mark.parametrize("policy", ["latest", "majority", "mean", "max", "dawid-skene", "mace"])
def test_every_policy_says_where_its_chances_come_from(policy):
    stand = current_events(events())
    doubt = uncertainty_of(stand, decide(stand, policy))
    modelled = policy in ("dawid-skene", "mace")
    assert doubt.chances.startswith("the posterior of" if modelled else "the shares of votes")


def test_preferences_and_single_labels_have_no_doubt_to_redraw():
    stand = current_events([event for event in events() if event.assessor == "ann"])
    with pytest.raises(DataError, match="no document has labels of several people"):
        uncertainty_of(stand, decide(stand, "majority"))
    prefer = current_events([Event(kind="preference", topic="q", document="a", other="b", grade=1.0, assessor="ann")])
    with pytest.raises(ConventionError, match="gives strengths, not grades"):
        uncertainty_of(prefer, decide(prefer, "bradley-terry", PolicySettings()))


# the command line


def test_people_who_all_agree_are_said_to(folder):
    log = open_log(folder / "agreed.jsonl")
    log.add(
        [Event(topic="q0", document=f"d{d}", grade=d % 2, assessor=who) for d in range(4) for who in ("ann", "bob")]
    )
    log.close()
    answer = compared(folder, "--label-draws", "3", log="agreed.jsonl")
    assert "all labels agree, so nothing changes" in " ".join(answer.out.split())


def test_the_text_says_what_was_redrawn_and_how_much_is_assessors(folder):
    answer = compared(folder)
    assert answer.code == 0, answer.err
    text = " ".join(answer.out.split())
    assert "64 of 96 documents have several labels: only these are redrawn, 200 times, by the shares of votes" in text
    assert "present labels redrawn corrected" in text
    assert "32 documents have one label or a decision: errors in these are not covered" in text
    assert "errors that assessors share are not covered: if documents are hard for everybody" in text
    assert "contradict each other; resolved by majority" in " ".join(answer.both.split())


def test_json_has_all_and_every_kind_of_log_and_the_same_seed_agree(folder):
    how = ("--by", "dawid-skene", "--label-draws", "30", "--seed", "4", "--format", "json")
    noise = [json.loads(compared(folder, *how, log=log).out)["label_noise"] for log in ("labels.jsonl", "work.db")]
    assert noise[0] == noise[1]
    assert (noise[0]["draws"], noise[0]["seed"], noise[0]["policy"]) == (30, 4, "dawid-skene")
    [first, _] = noise[0]["pairs"]
    assert first["share_of_topics"] + first["share_of_assessors"] == pytest.approx(1)
    assert first["low"] < first["corrected"] < first["high"]
    assert [line.partition(":")[0] for line in noise[0]["left_out"]] == [
        "errors that assessors share are not covered",
        "32 documents have one label or a decision",
    ]


def test_a_version_keeps_its_policy(folder):
    assert cranfield("judge", "freeze", "work.db", "spring", "--policy", "median", folder=folder).code == 0
    answer = json.loads(compared(folder, "--format", "json", log="work.db@spring").out)
    assert answer["label_noise"]["policy"] == "median"
    assert answer["inputs"]["qrels"].endswith("work.db@spring")
    refused = compared(folder, "--by", "majority", log="work.db@spring")
    assert refused.code == 2
    assert "has a policy of its own" in refused.err


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        (("--table", "labels.jsonl", "--label-noise"), "--table holds scores"),
        (("labels.jsonl", "bm25.run", "dense.run", "--by", "majority"), "go with --label-noise"),
        (("labels.jsonl", "bm25.run", "dense.run", "--label-draws", "9"), "go with --label-noise"),
        (("labels.jsonl", "bm25.run", "--group", "d=dense*", "--label-noise"), "--group goes by topics and seeds"),
        (("labels.jsonl", "bm25.run", "dense.run", "--label-noise", "--by", "nobody"), "no policy 'nobody'"),
        (("labels.jsonl", "bm25.run", "dense.run", "--label-noise", "--label-draws", "1"), "must be 2 or more"),
    ],
)
def test_options_that_make_no_sense_together_are_wrong_usage(folder, typed, why):
    answer = cranfield("compare", *typed, folder=folder)
    assert answer.code == 2
    assert why in " ".join(answer.err.split())


def test_qrels_are_no_log(folder):
    (folder / "qrels.txt").write_text("q0 0 d1 1\n")
    answer = compared(folder, log="qrels.txt")
    assert answer.code == 3
    assert "qrels.txt" in answer.err


# coverage


def test_wrong_labels_pull_towards_zero_and_are_allowed_for_in_a_simulation(monkeypatch):
    monkeypatch.setattr(simulated, "POPULATION", 5_000)
    case = simulated.Case(50, 0.75)
    rng, truth = np.random.default_rng(2), simulated.truths(case.better)
    errors = [
        (each["AP"].error, each["AP"].error_allowed) for each in (simulated.trial(case, truth, rng) for _ in range(10))
    ]
    ordinary, allowed = np.mean(errors, axis=0)
    assert ordinary < -0.005
    assert abs(allowed) < 0.02


@pytest.mark.slow
def test_coverage_is_as_the_docs_say():
    case = simulated.Case(50, 0.75)
    rng, truth = np.random.default_rng(8), simulated.truths(case.better)
    trials = [simulated.trial(case, truth, rng)["AP"] for _ in range(150)]
    held = np.mean([abs(each.error_allowed) <= each.reach_allowed for each in trials])
    ordinary = np.mean([abs(each.error) <= each.reach for each in trials])
    assert held > 0.88 > ordinary

"""Leave-one-out, thin judgments, and qrels made of pools and labels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cranfield import Extras, evaluate, read_qrels, reuse
from cranfield.base.errors import ConventionError, DataError
from cranfield.formats import as_qrels, as_runs
from cranfield.formats.label_files import Judgment
from cranfield.pooling.pool import Pool, collect, pool, write_collected
from cranfield.pooling.reuse import LeftOutRun, OutsideRuns, PoolReuse, holes, thin, was_sampled
from cranfield.pooling.strategy import rankings

if TYPE_CHECKING:
    from pathlib import Path

RNG = np.random.default_rng(3)
RUNS = {f"r{i}": {t: {f"d{j}": float(RNG.random()) for j in RNG.permutation(30)[:12]} for t in "pq"} for i in range(5)}
QRELS = {t: {f"d{j}": float(RNG.integers(0, 3)) for j in range(25)} for t in "pq"}
DEPTH = 6


def tops(run: str, topic: str) -> set[str]:
    ranked = sorted(RUNS[run][topic], key=lambda document: -RUNS[run][topic][document])
    return set(ranked[:DEPTH])


def without(team: set[str]) -> dict[str, dict[str, float]]:
    """The judgments, less what only these runs returned within the depth."""
    answer = {}
    for topic, grades in QRELS.items():
        mine = set().union(*(tops(run, topic) for run in team))
        others = set().union(*(tops(run, topic) for run in RUNS if run not in team))
        answer[topic] = {document: grade for document, grade in grades.items() if document not in mine - others}
    return answer


@pytest.mark.parametrize("teams", [{}, {"r[01]": "A", "r2": "B"}])
def test_leaving_out_against_removing_the_judgments_by_hand(teams: dict[str, str]) -> None:
    found = reuse(QRELS, RUNS, "AP nDCG@5", depth=DEPTH, teams=teams)
    full = evaluate(QRELS, RUNS, "AP nDCG@5")
    members = {"r0": {"r0", "r1"}, "r1": {"r0", "r1"}} if teams else {}
    for row in found.rows:
        team = members.get(row.run, {row.run})
        left = without(team)
        part = evaluate(left, RUNS, "AP nDCG@5")
        scores = {run: part.mean(row.measure, run=run) for run in RUNS}
        assert row.score == pytest.approx(full.mean(row.measure, run=row.run))
        assert row.without == pytest.approx(scores[row.run])
        assert row.rank_without == 1 + sum(score > scores[row.run] for score in scores.values())
        gone = [(t, d) for t in QRELS for d in QRELS[t] if d not in left[t]]
        assert row.unique == len(gone)
        assert row.unique_relevant == sum(QRELS[t][d] >= 1 for t, d in gone)
    drops = [np.mean([row.drop for row in found.of("AP") if row.team == team]) for team in {r.team for r in found.rows}]
    assert found.bias["AP"] == pytest.approx((np.mean(drops), np.std(drops, ddof=1) / np.sqrt(len(drops))))


def test_a_pool_in_which_all_agree_is_fit_for_reuse() -> None:
    same = dict.fromkeys(("a", "b"), RUNS["r0"])
    found = reuse(QRELS, same, "AP", depth=DEPTH)
    assert found.verdict("AP").startswith("Fit for reuse:")
    assert found.worst("AP").drop == 0


def verdict(drops: list[float], moved: bool = False) -> str:
    rows = [
        LeftOutRun(f"r{i}", f"r{i}", "AP", 1.0, 1 - drop, i + 1, i + 1 + moved, 0, 0) for i, drop in enumerate(drops)
    ]
    return PoolReuse(rows, ["AP"], len(drops), 10, {"AP": 1.0}, {"AP": 1.0}, {"AP": (0.0, 0.0)}).verdict("AP")


@pytest.mark.parametrize(
    ("drops", "moved", "words"),
    [
        ([0.0, 0.005, 0.009], False, "Fit for reuse: a left-out run loses 0.5% of its AP (median), 0.9% at most (r2)"),
        ([0.0, 0.005, 0.009], True, "Fit for reuse with care"),
        ([0.0, 0.005, 0.04], False, "Fit for reuse with care"),
        ([0.0, 0.02, 0.04], False, "Doubtful"),
        ([0.0, 0.005, 0.9], False, "Doubtful"),
        ([0.06, 0.08, 0.1], False, "Not fit for reuse as it is"),
    ],
)
def test_the_verdict_follows_the_drops(drops: list[float], moved: bool, words: str) -> None:
    assert verdict(drops, moved).startswith(words)


def test_a_measure_whose_lower_values_are_better_is_ranked_the_other_way() -> None:
    found = reuse(QRELS, RUNS, "MissRate AP", depth=DEPTH)
    assert found.lower_is_better == ("MissRate",)
    rows = found.of("MissRate")
    assert [row.score for row in rows] == sorted(row.score for row in rows)
    assert rows[0].score < rows[-1].score
    assert found.worst("MissRate").relative == min(row.relative for row in rows)  # the rate that rises most
    assert found.worst("AP").relative == max(row.relative for row in found.of("AP"))
    assert json.loads(json.dumps(found.to_dict()))["measures"]["AP"]["largest_drop"] == found.worst("AP").run


def test_one_run_or_one_team_cannot_be_left_out() -> None:
    with pytest.raises(DataError, match="two runs or more"):
        reuse(QRELS, {"r0": RUNS["r0"]})
    with pytest.raises(DataError, match="two teams or more, found 'A' alone"):
        reuse(QRELS, RUNS, teams={"*": "A"})


def test_a_stranger_s_scores_get_the_mean_drop_added() -> None:
    found = reuse(QRELS, RUNS, "AP", depth=DEPTH)
    new = {"new": {t: {f"d{j}": float(-j) for j in range(15, 30)} for t in "pq"}}
    read = OutsideRuns(thin(QRELS, new, "AP"), found, 0)
    [plain] = read.to_dict()
    score = float(evaluate(QRELS, new, "AP"))
    assert plain["corrected"]["AP"] == pytest.approx(score + found.bias["AP"][0])
    assert f"{plain['corrected']['AP']:.4f}" in read.to_text()


# thin judgments


def test_readings_against_evaluate() -> None:
    [read] = thin(QRELS, {"r0": RUNS["r0"]}, "AP")
    run = {"r0": RUNS["r0"]}
    assert read.measures["AP"].score == pytest.approx(float(evaluate(QRELS, run, "AP")))
    assert read.measures["AP"].condensed == pytest.approx(float(evaluate(QRELS, run, "AP", unjudged="drop")))
    assert read.bpref == pytest.approx(float(evaluate(QRELS, run, "Bpref")))
    assert read.judged == pytest.approx(float(evaluate(QRELS, run, "Judged@10")))
    assert read.measures["AP"].low <= read.measures["AP"].score <= read.measures["AP"].high


@pytest.mark.parametrize(
    ("judged", "words"), [(100, "as it is"), (12, "measures cut at 10"), (6, "too low"), (3, "no number says")]
)
def test_advice_follows_how_much_of_the_top_is_judged(judged: int, words: str) -> None:
    run = {"r": {"q": {f"d{j:03}": float(-j) for j in range(100)}}}
    [read] = thin({"q": {f"d{j:03}": float(j % 2 == 0) for j in range(judged)}}, run, "AP")
    assert words in read.advice()


def test_a_sampled_pool_is_told_from_junk() -> None:
    """Some collections mark junk with -2, or a few documents with -1."""
    sampled = {"q": {f"d{j}": -1.0 if j % 2 else 1.0 for j in range(20)}}
    assert was_sampled(as_qrels(sampled))
    assert not was_sampled(as_qrels({"q": {**sampled["q"], "junk": -2.0}}))
    assert not was_sampled(as_qrels({"q": {**{f"d{j}": 1.0 for j in range(20)}, "one": -1.0}}))
    [read] = thin(sampled, {"q": {f"d{j}": float(-j) for j in range(20)}}, "AP")
    assert "read infAP" in read.advice()


def test_holes_are_what_the_top_holds_unjudged_and_the_weightiest_first() -> None:
    runs = as_runs({"r": {"q": {"a": 4.0, "x": 3.0, "y": 2.0, "z": 1.0}}})
    found = holes(as_qrels({"q": {"a": 1.0, "y": -1.0}}), runs, depth=3)
    assert [(item.document, item.priority, item.rank) for item in found] == [("x", 1, 2), ("y", 2, 3)]


# qrels of pools


def judged(made: Pool) -> list[Judgment]:
    known = {topic: {document: grade % 2 for document, grade in grades.items()} for topic, grades in QRELS.items()}
    return [Judgment(i.topic, i.document, known[i.topic].get(i.document, 0.0)) for i in made if i.priority]


@pytest.mark.parametrize(
    ("strategy", "format", "measure"),
    [
        ("sample(rate=0.5)", "trec", "infAP"),
        ("stratified(strata=3:1/12:0.5)", "strata", "xinfAP"),
        ("weighted(rate=0.5)", "prels", "statAP"),
    ],
)
def test_written_qrels_score_as_the_pool_itself_says(strategy: str, format: str, measure: str, tmp_path: Path) -> None:
    made = pool(RUNS, strategy=strategy, depth=12)
    found = collect(made.items, judged(made))
    write_collected(found, str(tmp_path / "qrels"), format)
    written = read_qrels(str(tmp_path / "qrels"), format)
    known = {(item.topic, item.document): (item.probability, item.stratum) for item in made}
    labels = {(label.topic, label.document): label.grade for label in judged(made)}
    pooled: dict[str, dict[str, float]] = {}
    for item in made:
        grade = labels.get((item.topic, item.document), -1.0)
        if grade >= 0 or format != "prels":
            pooled.setdefault(item.topic, {})[item.document] = grade
    direct = evaluate(pooled, RUNS, measure, extras=Extras(probabilities=known))
    assert evaluate(written, RUNS, measure).summary == pytest.approx(direct.summary)
    assert direct.summary.min() > 0
    assert (found.sampled, found.missing) == (True, 0)


def test_documents_without_a_label_are_counted_and_spoil_probabilities(tmp_path: Path) -> None:
    made = pool(RUNS, strategy="weighted(rate=0.5)", depth=12)
    found = collect(made.items, judged(made)[1:])
    assert found.missing == 1
    with pytest.raises(DataError, match="1 documents of the sample have no label: statAP needs all"):
        write_collected(found, str(tmp_path / "qrels"), "prels")
    assert not (tmp_path / "qrels").exists()


def test_no_label_makes_no_qrels() -> None:
    with pytest.raises(DataError, match="no label yet"):
        collect(pool(RUNS).items, [])


def test_a_pool_that_was_not_sampled_holds_what_was_judged_alone() -> None:
    made = pool(RUNS, depth=2)
    found = collect(made.items, judged(made)[:3])
    assert sum(map(len, found.qrels.to_dict().values())) == 3
    assert (found.labels, found.missing) == (3, len(made) - 3)


PAIR = {"one": {"q": {"a": 2, "c": 1}}, "two": {"q": {"b": 2}}}


def test_top_documents_of_other_runs_are_refused():
    swapped = rankings(as_runs(dict(reversed(PAIR.items()))), 10)
    with pytest.raises(ConventionError, match="must be the same runs in the same order"):
        reuse({"q": {"a": 1, "b": 1}}, PAIR, "AP", tops=swapped)


def test_judgments_of_a_topic_that_no_run_answers_are_nobody_s():
    answered = {"q": {"a": 1, "b": 1, "c": 0}}
    rows = reuse(answered | {"z": {"a": 1}}, PAIR, "AP").of("AP")
    assert [(row.run, row.unique_relevant) for row in rows] == [("one", 1), ("two", 1)]
    assert [row.score for row in rows] == [row.score / 2 for row in reuse(answered, PAIR, "AP").of("AP")]

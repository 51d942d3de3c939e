"""Risk against gdeval's baseline mode, SciPy's t-test and the papers' formulas written out as loops."""

from __future__ import annotations

import csv
import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from cranfield import evaluate, measure
from cranfield.base.errors import DataError
from oracles import per_topic, printed, proves
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path

QRELS = {f"q{i}": {"a": 1.0} for i in range(1, 7)}


def with_rr(*ranks: int) -> dict[str, dict[str, float]]:
    """A run whose relevant document has these ranks."""
    return {
        f"q{i}": {**{f"x{j}": 100.0 - j for j in range(1, rank)}, "a": 100.0 - rank}
        for i, rank in enumerate(ranks, start=1)
    }


OLD, NEW = with_rr(2, 1, 4, 1, 3, 2), with_rr(1, 2, 1, 1, 1, 5)


@proves("URisk")
@pytest.mark.parametrize("alpha", [0, 1, 5])
def test_risk_of_every_topic_and_its_mean_against_gdeval(shared: Path, alpha: int) -> None:
    """gdeval's baseline here is the run rm.results-cata-filtered, which its file names shorten to rm-cata."""
    folder = shared / "webtrack2012-baselines"
    names = {"ndcg@20": f"URisk(of=nDCG(gain=exp2)@20, alpha={alpha})", "err@20": f"URisk(of=ERR@20, alpha={alpha})"}
    scores = evaluate(
        folder / "qrels.web.151-200.txt",
        folder / "ql.results-catb-filtered.txt",
        list(names.values()),
        baseline=folder / "rm.results-cata-filtered.txt",
        no_relevant="skip",
    )
    with (folder / f"ql.results-catb-filtered.vs-rm-cata.risk{alpha}.gdeval.csv").open() as file:
        rows = list(csv.DictReader(file))
    ours = {**per_topic(scores), "amean": scores.means()}
    assert {row["topic"] for row in rows} == set(ours)
    for row in rows:
        for column, name in names.items():
            assert printed(ours[row["topic"]][name], like="0.00000") == row[column]


def weighed(alpha: float) -> list[float]:
    one, other = evaluate(QRELS, NEW, "RR")["RR"], evaluate(QRELS, OLD, "RR")["RR"]
    differences = [x - y for x, y in zip(one, other, strict=True)]
    return [d if d >= 0 else (1 + alpha) * d for d in differences]


@proves("TRisk")
@pytest.mark.parametrize("alpha", [0, 0.5, 5])
def test_trisk_is_the_t_statistic_of_the_weighed_differences_against_scipy(alpha: float) -> None:
    scores = evaluate(QRELS, NEW, f"TRisk(of=RR, alpha={alpha})", baseline=OLD)
    assert scores.mean() == pytest.approx(stats.ttest_1samp(weighed(alpha), 0).statistic, abs=1e-12)
    assert scores.at().tolist() == pytest.approx(weighed(alpha), abs=1e-12)
    if alpha == 0:
        rr = [evaluate(QRELS, run, "RR")["RR"] for run in (NEW, OLD)]
        assert scores.mean() == pytest.approx(stats.ttest_rel(*rr).statistic, abs=1e-12)


def test_trisk_is_undefined_where_no_topic_differs_from_another() -> None:
    assert math.isnan(evaluate(QRELS, NEW, "TRisk(of=RR)", baseline=NEW).mean())
    assert math.isnan(evaluate({"q1": {"a": 1}}, NEW, "TRisk(of=RR)", baseline=OLD).mean())


def geo_risk(table: list[list[float]], alpha: float) -> list[float]:
    """The paper's formula, cell by cell."""
    topics = range(len(table[0]))
    total = sum(map(sum, table))
    answer = []
    for row in table:
        z_risk = 0.0
        for t in topics:
            expected = sum(row) * sum(other[t] for other in table) / total
            z = (row[t] - expected) / math.sqrt(expected) if expected else 0.0
            z_risk += z if z >= 0 else (1 + alpha) * z
        answer.append(math.sqrt(sum(row) / len(row) * NormalDist().cdf(z_risk / len(row))))
    return answer


@proves("GeoRisk")
def test_georisk_of_a_single_run_is_the_root_of_half_its_mean() -> None:
    geo = measure("GeoRisk(of=RR)")
    assert geo.summarise(np.array([0.25, 0.75])) == pytest.approx(math.sqrt(0.5 / 2))
    assert geo.summarise(np.array([-0.5])) == 0
    assert math.isnan(geo.summarise(np.array([])))
    scores = evaluate(QRELS, {"old": OLD}, "RR GeoRisk(of=RR)")
    assert scores.mean("GeoRisk(of=RR)") == pytest.approx(math.sqrt(scores.mean("RR") / 2))


@proves("GeoRisk")
@pytest.mark.parametrize("alpha", [0, 1, 10])
def test_georisk_against_the_papers_formula_cell_by_cell(alpha: float) -> None:
    runs = {"old": OLD, "new": NEW, "flat": with_rr(2, 2, 2, 2, 2, 2)}
    scores = evaluate(QRELS, runs, f"RR GeoRisk(of=RR, alpha={alpha})")
    rr = [scores["RR", run].tolist() for run in scores.runs]
    name = f"GeoRisk(of=RR, alpha={alpha})"
    assert [scores.mean(name, run) for run in scores.runs] == pytest.approx(geo_risk(rr, alpha), abs=1e-12)
    assert scores[name, "new"].tolist() == scores["RR", "new"].tolist()


def test_georisk_looks_at_the_topics_that_count_for_all_runs() -> None:
    part = {topic: ranking for topic, ranking in NEW.items() if topic != "q3"}
    scores = evaluate(QRELS, {"old": OLD, "part": part}, "RR GeoRisk(of=RR)", missing="skip")
    common = [t != "q3" for t in scores.topics]
    rr = [scores["RR", run][common].tolist() for run in scores.runs]
    assert [scores.mean("GeoRisk(of=RR)", run) for run in scores.runs] == pytest.approx(geo_risk(rr, 1), abs=1e-12)


def test_georisk_of_runs_that_find_nothing_is_0() -> None:
    nothing = {topic: {"x": 1.0} for topic in QRELS}
    scores = evaluate(QRELS, {"one": nothing, "two": nothing}, "GeoRisk(of=RR)")
    assert scores.summary.tolist() == [[0.0], [0.0]]


def test_a_measure_of_risk_without_a_baseline_stops_and_says_what_to_give() -> None:
    with pytest.raises(DataError, match="URisk needs a run to compare with"):
        evaluate(QRELS, NEW, "URisk")
    with pytest.raises(DataError, match="expected one run as the baseline, found 2"):
        evaluate(QRELS, NEW, "URisk", baseline={"a": OLD, "b": NEW})


def test_a_measure_of_risk_needs_what_the_measure_inside_it_needs() -> None:
    with pytest.raises(DataError, match=r"URisk\(of=URisk\(of=RR\)\) needs a run"):
        evaluate(QRELS, NEW, "URisk(of=URisk(of=RR))")


def test_the_lowest_relevant_grade_reaches_the_measure_inside() -> None:
    assert measure("URisk(of=AP)", rel=2) == measure("URisk(of=AP(rel=2))")
    assert measure("URisk(of=AP(rel=3))", rel=2) == measure("URisk(of=AP(rel=3))")
    assert str(measure("URisk")) == "URisk"
    assert measure("URisk") == measure("URisk(of=nDCG@20, alpha=1)")


def test_the_baseline_follows_the_same_conventions_as_the_run() -> None:
    qrels = {"q": {"a": 1, "b": 0}}
    tied = {"q": {"a": 1.0, "b": 1.0}}
    for ties in ("document-descending", "document-ascending"):
        assert evaluate(qrels, tied, "URisk(of=RR)", baseline=tied, ties=ties).mean() == 0
    with_unjudged = {"q": {"u": 2.0, "a": 1.0}}
    assert (
        evaluate(
            qrels, tied, "URisk(of=RR, judged_only=True)", baseline=with_unjudged, ties="document-ascending"
        ).mean()
        == 0
    )


def test_eval_takes_a_baseline_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("".join(f"{topic} 0 a 1\n" for topic in QRELS))
    for name, run in (("old.run", OLD), ("new.run", NEW)):
        lines = [f"{t} Q0 {d} 1 {s} x\n" for t, ranking in run.items() for d, s in ranking.items()]
        (tmp_path / name).write_text("".join(lines))
    asked = ("eval", "qrels", "new.run", "-m", "URisk(of=RR, alpha=5)", "--format", "csv")
    header, row = csv.reader(cranfield(*asked, "--baseline", "old.run", folder=tmp_path).out.splitlines())
    assert header[1] == "URisk(of=RR, alpha=5)"
    assert float(row[1]) == pytest.approx(np.mean(weighed(5)))
    refused = cranfield(*asked, folder=tmp_path)
    assert refused.code == 3
    assert "--baseline RUN" in refused.err

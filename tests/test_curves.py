"""Curves against scikit-learn, trec_eval and the lecture, and as chart files."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn import metrics

from cranfield import curves, evaluate
from cranfield.base.errors import ConventionError, MissingExtraError
from cranfield.reports.charts import rendered
from cranfield.reports.result_charts import chart
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path

TOXIC = [1, 1, 1, 0, 0, 1, 1, 0, 1, 0]  # "toxic waste": relevance by rank


def ranked(relevance: list[int], missed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    judged = {f"d{i}": grade for i, grade in enumerate(relevance)} | {f"m{i}": 1 for i in range(missed)}
    return {"q": judged}, {"q": {f"d{i}": -float(i) for i in range(len(relevance))}}


def full_ranking(seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    relevance = (rng.random(60) < 0.3).astype(int)
    relevance[:2] = 0, 1
    return relevance.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("seed", range(5))
def test_precision_and_recall_of_a_full_ranking_against_scikit_learn(seed: int) -> None:
    relevance = full_ranking(seed)
    precision, recall, _ = metrics.precision_recall_curve(relevance, -np.arange(60.0))
    [ours] = curves(*ranked(relevance), "pr").curves
    theirs = dict(zip(range(60), zip(recall[::-1][1:], precision[::-1][1:], strict=True), strict=False))
    for rank, (at, height) in theirs.items():
        assert (ours.x[rank], ours.y[rank]) == pytest.approx((at, height))
    assert ours.area == pytest.approx(metrics.average_precision_score(relevance, -np.arange(60.0)))


@pytest.mark.parametrize("seed", range(5))
def test_a_roc_curve_of_a_full_ranking_against_scikit_learn(seed: int) -> None:
    relevance = full_ranking(seed)
    false, true, _ = metrics.roc_curve(relevance, -np.arange(60.0), drop_intermediate=False)
    [ours] = curves(*ranked(relevance), "roc").curves
    np.testing.assert_allclose(ours.x[:61], false)
    np.testing.assert_allclose(ours.y[:61], true)
    assert ours.area == pytest.approx(metrics.roc_auc_score(relevance, -np.arange(60.0)))


def test_the_mean_of_roc_curves_has_the_mean_of_their_areas() -> None:
    qrels, run = {}, {}
    for t in range(4):
        one, other = ranked(full_ranking(t))
        qrels[f"q{t}"], run[f"q{t}"] = one["q"], other["q"]
    [ours] = curves(qrels, run, "roc").curves
    areas = [metrics.roc_auc_score(full_ranking(t), -np.arange(60.0)) for t in range(4)]
    assert ours.area == pytest.approx(np.mean(areas))
    assert np.trapezoid(ours.y, ours.x) == pytest.approx(ours.area, abs=0.01)


def test_precision_of_the_first_eight_ranks_against_the_lecture() -> None:
    [ours] = curves(*ranked(TOXIC), "pr").curves
    assert ours.y[:8].tolist() == pytest.approx([1, 1, 1, 3 / 4, 3 / 5, 2 / 3, 5 / 7, 5 / 8])
    assert round(ours.area, 2) == 0.84
    assert ours.interpolated is not None
    assert (np.diff(ours.interpolated) <= 0).all()
    assert ours.interpolated.tolist() == pytest.approx([1, 1, 1, 1, 1, 5 / 7, 5 / 7, 5 / 7, 2 / 3, 2 / 3])


def test_recall_that_is_never_reached_has_precision_0() -> None:
    [raw] = curves(*ranked([1, 0, 1], missed=2), "pr").curves
    assert raw.x.tolist() == [0.25, 0.25, 0.5, 0.5, 1]
    assert raw.y.tolist() == pytest.approx([1, 1 / 2, 2 / 3, 0, 0])
    [eleven] = curves(*ranked([1, 0, 1], missed=2), "pr11").curves
    assert eleven.y.tolist() == pytest.approx([1] * 3 + [2 / 3] * 3 + [0] * 5)


@pytest.mark.parametrize("version", ["9", "10"])
def test_eleven_levels_against_trec_eval(shared: Path, version: str) -> None:
    folder = shared / ("trec_eval-9.0.7-test" if version == "9" else "trec_eval-test")
    lines = [line.split() for line in (folder / "out.test").read_text().splitlines()]
    expected = [value for name, topic, value in lines if name.startswith("iprec_at_recall_") and topic == "all"]
    found = curves(
        folder / "qrels.test",
        folder / "results.test",
        "pr11",
        level=f"trec_eval-{version}",
        conventions="trec_eval-9",
    )
    assert [f"{value:.4f}" for value in found.curves[0].y] == expected


def test_recall_and_gain_by_rank_against_the_measures() -> None:
    qrels = {"q1": {"a": 3, "b": 1, "x": 2}, "q2": {"c": 2}}
    run = {"q1": {"a": 1, "n": 3, "b": 2}, "q2": {"c": 1, "n": 2}}
    means = evaluate(qrels, run, "R@1 R@2 R@3 DCG@1 DCG@2 DCG@3 IdealDCG@3").means()
    [recall] = curves(qrels, run, "recall").curves
    assert recall.y.tolist() == pytest.approx([means[f"R@{k}"] for k in (1, 2, 3)])
    gain, ideal = curves(qrels, run, "gain").curves
    assert gain.y.tolist() == pytest.approx([means[f"DCG@{k}"] for k in (1, 2, 3)])
    assert (ideal.run, ideal.y[-1]) == ("ideal", pytest.approx(means["IdealDCG@3"]))
    assert gain.area == pytest.approx(gain.y.sum() / ideal.y.sum())


def test_curves_that_cross_are_told_with_the_place() -> None:
    qrels = {"q": {"a": 1, "b": 1}}
    early = {"q": {"a": 9, "x": 8, "y": 7, "z": 6}}
    late = {"q": {"x": 9, "a": 8, "b": 7, "y": 6}}
    found = curves(qrels, {"early": early, "late": late}, "recall")
    [(one, other, [place])] = found.crossings()
    assert (one, other) == ("early", "late")
    assert place == pytest.approx(2)
    assert found.notes()[0].startswith("early and late cross at rank 2: neither run is better everywhere")
    assert curves(qrels, {"early": early, "same": early}, "recall").crossings() == []


def test_a_chart_tells_runs_apart_by_colour_dash_and_shape_with_areas_in_the_legend() -> None:
    qrels, run = ranked(TOXIC)
    spec = chart(curves(qrels, {"one": run, "two": run}, "pr11"))
    line, points = spec.vega_lite()["layer"]
    for layer, channel in ((line, "color"), (line, "strokeDash"), (points, "shape")):
        scale = layer["encoding"][channel]["scale"]
        assert len(scale["domain"]) == len({str(each) for each in scale["range"]}) == 2
    assert line["encoding"]["color"]["scale"]["domain"][0].startswith("one  (11pt 0.")


@pytest.mark.parametrize("kind", ["pr", "pr11", "roc", "recall", "gain"])
def test_every_kind_is_drawn(kind: str) -> None:
    spec = chart(curves(*ranked(TOXIC), kind))
    assert rendered(spec, "png").startswith(b"\x89PNG")
    svg = rendered(spec, "svg").decode()
    assert svg.startswith("<svg")
    assert "run  (" in svg or "run (" in svg


def test_the_html_page_needs_no_network(tmp_path: Path) -> None:
    target = tmp_path / "pr.html"
    assert cranfield("curve", "qrels.txt", "bm25.run", "dense.run", "-o", target).code == 0
    page = target.read_text()
    assert "<script src=" not in page
    assert 'src="http' not in page
    assert "vegaEmbed" in page


def test_the_command_prints_points_and_writes_charts(tmp_path: Path) -> None:
    asked = ("curve", "qrels.txt", "bm25.run", "dense.run", "--curve", "pr11")
    table = cranfield(*asked)
    assert table.code == 0
    assert table.out.startswith("run ")
    assert "\n\nrun    recall  precision\nbm25   0.0000 " in table.out
    assert "cross at recall" in table.err or not json.loads(cranfield(*asked, "--format", "json").out)["crossings"]
    data = json.loads(cranfield(*asked, "--format", "json").out)
    assert [len(each["points"]) for each in data["runs"]] == [11, 11]
    assert cranfield(*asked, "--format", "csv").out.startswith("run,recall,precision\nbm25,0.0,")
    assert cranfield(*asked, "-o", tmp_path / "x.svg").out == ""
    assert (tmp_path / "x.svg").read_text().startswith("<svg")
    assert cranfield(*asked, "-o", tmp_path / "x.vl.json").code == 0
    assert json.loads((tmp_path / "x.vl.json").read_text())["$schema"].endswith("v5.json")
    assert cranfield(*asked, "--format", "json", "-o", tmp_path / "x.json").code == 0
    assert json.loads((tmp_path / "x.json").read_text())["kind"] == "pr11"


def test_a_kind_that_does_not_exist_is_wrong_usage() -> None:
    with pytest.raises(ConventionError, match="kind must be one of pr, pr11, roc, recall, gain, got 'det'"):
        curves(*ranked(TOXIC), "det")
    assert cranfield("curve", "qrels.txt", "bm25.run", "--curve", "det").code == 2


def test_without_the_extra_the_error_names_the_command_and_the_specification_still_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    spec = chart(curves(*ranked(TOXIC), "pr"))
    with pytest.raises(MissingExtraError, match=r"pip install 'cranfield\[plots\]'"):
        rendered(spec, "svg")
    assert json.loads(rendered(spec, "json")) == spec.vega_lite()


def test_points_of_a_short_curve_are_all_shown_with_their_ranks() -> None:
    documents = [f"d{i:02}" for i in range(10)]
    run = {"q": {document: -float(i) for i, document in enumerate(documents)}}
    curve = curves(
        {"q": {"d01": 1, "d03": 1, "x": 1}}, run, "pr"
    )  # ten ranks, and two points for what is never reached
    text = curve.to_text()
    assert "11 of 12" not in text
    rows = [line.split() for line in text.splitlines() if line.startswith("run ")]
    assert [row[1] for row in rows if len(row) > 3 and row[1].isdigit()] == [str(rank) for rank in range(1, 11)]
    points = curve.to_dict()["runs"][0]["points"]
    assert [point["rank"] for point in points] == [*range(1, 11), None, None]
    assert list(points[0]) == ["rank", "recall", "precision", "interpolated"]
    assert curve.to_csv().splitlines()[0] == "run,rank,recall,precision,interpolated"
    assert len([line for line in text.splitlines() if line.startswith("run ")]) == 2 + 1 + 12


def test_a_long_curve_is_thinned_and_keeps_its_ends() -> None:
    run = {"q": {f"d{i:03}": -float(i) for i in range(100)}}
    text = curves({"q": {"d001": 1, "d099": 1}}, run, "pr").to_text()
    assert "11 of 100 points" in text
    assert [line.split()[1] for line in text.splitlines()[-12:] if line.startswith("run ")][-1] == "100"


@pytest.mark.parametrize("kind", ["pr", "recall", "gain"])
def test_ranks_are_whole_numbers_on_the_screen_and_in_all_formats(kind: str) -> None:
    found = curves(*ranked(TOXIC), kind)
    column = 1 + next(i for i, name in enumerate(found.to_csv().splitlines()[0].split(",")[1:]) if name == "rank")
    assert found.to_csv().splitlines()[1].split(",")[column] == "1"
    head = next(i for i, line in enumerate(found.to_text().splitlines()) if "rank" in line.split())
    assert found.to_text().splitlines()[head + 1].split()[column] == "1"

"""Scores joined with what runs cost: the Pareto front, columns, cautions, the chart."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil

import pytest

import cranfield
from cranfield.base.errors import DataError
from cranfield.comparison.efficiency import COLUMNS, efficiency, pareto_front, read_stats_of_files
from cranfield.formats.run_files import RunStats, write_run_stats
from cranfield.reports.charts import rendered
from cranfield.reports.result_charts import chart
from shell import EXAMPLES
from shell import cranfield as shell

QRELS = {"1": {"a": 1}, "2": {"b": 1}}
RUNS = {
    "slow and good": {"1": {"a": 2.0, "b": 1.0}, "2": {"b": 2.0, "a": 1.0}},
    "fast and poor": {"1": {"b": 2.0, "a": 1.0}, "2": {"a": 2.0, "b": 1.0}},
    "slow and poor": {"1": {"b": 2.0, "a": 1.0}, "2": {"a": 2.0, "b": 1.0}},
    "unknown": {"1": {"a": 2.0}, "2": {"b": 2.0}},
}


def stats(name: str, ms: float, **more) -> RunStats:
    queries = {"latency_ms": {"median": ms, "p95": 2 * ms}, "throughput_per_second": 1000 / ms, "loop": "closed"}
    return RunStats(name, "x", queries=queries, index={"seconds": 2.0, "bytes": 3_000_000}, **more)


@pytest.fixture
def found():
    scores = cranfield.evaluate(QRELS, RUNS, "RR AP")
    known = {"slow and good": stats("a", 50), "fast and poor": stats("b", 1), "slow and poor": stats("c", 60)}
    return efficiency(scores, known, "RR")


def test_the_front_by_hand(found):
    assert found.front == ["fast and poor", "slow and good"]
    assert [(row.run, row.score, row.latency, row.on_front) for row in found.rows] == [
        ("slow and good", 1.0, 50, True),
        ("fast and poor", 0.5, 1, True),
        ("slow and poor", 0.5, 60, False),
        ("unknown", 1.0, None, False),
    ]


def test_the_front_against_its_definition():
    draw = random.Random(1)
    for _ in range(300):
        points = [(draw.randint(0, 4) / 4, draw.choice([None, 1.0, 2.0, 3.0])) for _ in range(draw.randint(0, 8))]
        front = pareto_front(points)
        known = [i for i, (_, c) in enumerate(points) if c is not None]
        assert {i for i, on in enumerate(front) if on} <= set(known)
        if known:
            assert any(front)
            assert front[max(known, key=lambda i: (points[i][0], -points[i][1]))]
        for i, j in itertools.permutations(known, 2):
            better = points[j][0] >= points[i][0] and points[j][1] <= points[i][1] and points[i] != points[j]
            assert not (front[i] and better)


def test_columns_hold_what_was_measured(found):
    assert found.columns() == ["median ms", "p95 ms", "queries/s", "index s", "index MB"]
    assert set(found.rows[0].cells()) == set(COLUMNS)
    assert found.rows[0].cells()["index MB"] == 3.0
    assert set(found.rows[3].cells().values()) == {None}
    assert found.to_dict()["runs"][1]["median ms"] == 1


def test_what_does_not_compare_is_said(found):
    assert found.notes() == ["no latency is known for unknown: not on the front"]
    scores = cranfield.evaluate(QRELS, RUNS, "RR")
    known = {"slow and good": stats("a", 5, machine={"cores": 2}), "fast and poor": stats("b", 1, complete=False)}
    said = efficiency(scores, known).notes()
    assert "fast and poor is partial: topics failed while it was made" in said
    assert "the runs were timed on different machines; their latencies do not compare" in said


def test_different_loads_do_not_compare(found):
    scores = cranfield.evaluate(QRELS, RUNS, "RR")
    heavy = stats("b", 1)
    heavy.queries["clients"] = 8
    said = efficiency(scores, {"slow and good": stats("a", 5), "fast and poor": heavy}).notes()
    assert "the runs were timed under different loads; their latencies do not compare" in said


def test_a_text_marks_the_front_with_a_star_and_a_page_in_words(found):
    [row] = [line for line in found.to_text().splitlines() if line.startswith("fast and poor")]
    assert row.endswith("*")
    assert "<td>on it</td>" in re.sub(r' class="\w+"', "", found.to_html())
    assert "| slow and good |" in found.to_markdown()


def test_an_unknown_latency_is_refused():
    with pytest.raises(DataError, match="a latency is one of mean, median, p95, p99, not 'p50'"):
        efficiency(cranfield.evaluate(QRELS, RUNS, "RR"), {}, latency="p50")


def test_statistics_are_found_beside_the_runs(tmp_path):
    write_run_stats(stats("a", 5), tmp_path / "a.run")
    found = read_stats_of_files(["a", "b"], [tmp_path / "a.run", tmp_path / "b.run"])
    assert found["a"].latency("median") == 5
    assert found["b"] is None


def test_the_chart_shows_every_timed_run_and_the_front(found):
    spec = chart(found)
    assert {row["name"] for row in spec.rows} == {"slow and good", "fast and poor", "slow and poor"}
    assert spec.marks[0].rows == [{"x": 1, "y": 0.5}, {"x": 50, "y": 1.0}]
    assert b"slow and good" in rendered(spec, "svg")


@pytest.fixture
def timed(tmp_path):
    """Two of the examples with statistics beside one of them."""
    for name in ("qrels.txt", "bm25.run", "dense.run"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    write_run_stats(stats("bm25", 1.5), tmp_path / "bm25.run")
    return tmp_path


def test_compare_shows_what_the_runs_cost(timed):
    asked = ("compare", "qrels.txt", "bm25.run", "dense.run", "-m", "nDCG@10")
    printed = shell(*asked, folder=timed)
    assert "median ms" in printed.out
    assert "no latency is known for dense" in printed.err
    made = json.loads(shell(*asked, "--format", "json", folder=timed).out)["efficiency"]
    assert made["front"] == ["bm25"]
    assert made["runs"][0]["median ms"] == 1.5
    assert "| median ms |" in shell(*asked, "--format", "markdown", folder=timed).out
    (timed / "bm25.run.stats.json").unlink()
    assert "median ms" not in shell(*asked, folder=timed).out


@pytest.mark.parametrize("ending", ["html", "md"])
def test_a_report_shows_what_the_runs_cost(timed, ending):
    asked = ("report", "qrels.txt", "bm25.run", "dense.run", "-m", "nDCG@10", "-o", f"r.{ending}")
    answer = shell(*asked, folder=timed)
    assert answer.code == 0, answer.err
    page = (timed / f"r.{ending}").read_text()
    assert "Effectiveness and cost" in page
    assert "median ms" in page
    if ending == "html":
        assert "nDCG@10 against median latency" in page


def test_a_latex_report_has_a_table_of_costs_where_they_are_known(tmp_path):
    import shutil

    from shell import EXAMPLES, cranfield

    shutil.copytree(EXAMPLES, tmp_path / "examples")
    folder = tmp_path / "examples"
    arguments = "report", "qrels.txt", "bm25.run", "dense.run", "-m", "AP", "-o", "report.tex"
    assert cranfield(*arguments, folder=folder).code == 0
    assert "tab:costs" not in (folder / "report.tex").read_text()
    (folder / "bm25.run.stats.json").write_text(
        '{"version": 1, "run": "bm25", "system": "s", "queries": {"latency_ms": {"median": 1.5}}, '
        '"memory": {"peak_bytes": 2000000}}'
    )
    assert cranfield(*arguments, folder=folder).code == 0
    text = (folder / "report.tex").read_text()
    assert text.count(r"\begin{tabular}") == 3
    assert "run & AP & median ms & peak MB & front" in text

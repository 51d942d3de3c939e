"""What a log of clicks looks like: by rank, by judged grade, and what its intervals claim."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from browsers import EVIL
from clicked import write_searches
from cranfield.base.errors import ConventionError, DataError
from cranfield.experiments.clicks.click_summary import (
    ClickSummary,
    click_summary,
    examination_by_rank,
    grades_of_pairs,
    summarise_clicks,
)
from cranfield.experiments.clicks.result_pages import ResultPages
from cranfield.formats.runs_and_qrels import read_qrels
from cranfield.formats.topic_tables import read_topic_table
from cranfield.reports.charts import Panels, rendered
from cranfield.reports.result_charts import chart, charts_of
from cranfield.stats.proportions import mean_share, wilson, wilson_over_clusters
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from pathlib import Path

    from cranfield.base.kernels.table import Floats

EXAMINED = 1 / np.arange(1, 11) ** 0.8  # by rank


def known(attractiveness: Floats, examined: Floats = EXAMINED) -> Any:
    """A fitted model whose parameters are known: clicks are examination times attractiveness."""

    def marginal(pages: ResultPages) -> Floats:
        return np.asarray(attractiveness[pages.pair] * examined[pages.rank - 1])

    return SimpleNamespace(attractiveness=attractiveness, marginal=marginal)


def simulated(rng: np.random.Generator, count: int, queries: int, spread: float = 0.0) -> tuple[ResultPages, Floats]:
    """Pages whose better documents stand higher, with clicks by position; attractiveness .05 + .15 × grade."""
    grade = rng.integers(0, 4, (queries, 15))
    attractive = np.clip(0.05 + 0.15 * grade + rng.normal(0, spread, grade.shape), 0.01, 0.95)
    sessions = []
    for query in rng.integers(0, queries, count):
        order = np.argsort(-(grade[query] + rng.normal(0, 1.5, 15)))[:10]
        clicks = rng.random(10) < EXAMINED * attractive[query, order]
        sessions.append((f"query {query}", [f"d{each} {grade[query, each]}" for each in order], clicks))
    pages = ResultPages.of(sessions)
    return pages, np.array([float(document.split()[1]) for _, document in pages.pairs.names()])


PAGES = ResultPages.of([("mug", ["a", "b"], [1, 0]), ("mug", ["b", "a"], [1, 1]), ("cup", ["c"], [0])])


def test_clicks_by_rank_against_counting_by_hand() -> None:
    first, second = summarise_clicks(PAGES).ranks
    assert (first.rank, first.pages, first.clicks, first.share) == (1, 3, 2, pytest.approx(2 / 3))
    assert (second.rank, second.pages, second.clicks, second.share) == (2, 2, 1, 0.5)
    assert np.isnan(first.examination)


def test_pages_of_one_user_count_as_one_cluster() -> None:
    pages = ResultPages.of([("mug", ["a"], [user % 3 == 0]) for user in range(60) for _ in range(4)])
    [alone] = summarise_clicks(pages).ranks
    [row] = summarise_clicks(replace(pages, unit=np.repeat(np.arange(60, dtype=np.int32), 4))).ranks
    clicks, views = np.repeat([4.0, 0.0, 0.0], 20)[:, None], np.full((60, 1), 4.0)
    assert (row.low, row.high) == tuple(float(end[0]) for end in wilson_over_clusters(clicks, views)[1:])
    assert row.high - row.low > 1.8 * (alone.high - alone.low)


def test_click_through_by_grade_is_a_mean_over_queries_counted_by_hand() -> None:
    pages = ResultPages.of([*[("head", ["a", "b"], [1, 0])] * 8, *[("tail", ["a", "b"], [0, 1])] * 2])
    grades = grades_of_pairs(pages.pairs, {"head": {"a": 1, "b": 0}, "tail": {"a": 1, "b": 0}})
    low, high = summarise_clicks(pages, grades=grades, min_views=1).grades
    assert (low.grade, low.queries, low.views, low.clicks, low.share) == (0, 2, 10, 2, 0.5)  # 2 of 10 views
    assert (high.grade, high.queries, high.views, high.clicks, high.share) == (1, 2, 10, 8, 0.5)
    corrected = summarise_clicks(pages, known(np.ones(4), np.array([1, 0.25])), grades, min_views=1).grades
    assert [row.corrected for row in corrected] == [2.0, 0.5]  # a view at rank 2 counts as a quarter


def test_examination_by_rank_gives_back_the_parameters_of_a_position_based_model() -> None:
    pages, _ = simulated(np.random.default_rng(1), 200, 9)
    attractiveness = np.random.default_rng(2).random(len(pages.pairs))
    assert examination_by_rank(known(attractiveness, EXAMINED / 2), pages) == pytest.approx(EXAMINED / 2)
    rows = summarise_clicks(pages, known(attractiveness, EXAMINED / 2)).ranks
    assert [row.examination for row in rows] == pytest.approx(EXAMINED.tolist())


def test_judgments_join_by_the_text_of_the_query_or_by_a_topics_file() -> None:
    pages = ResultPages.of([(" Red  MUG", ["a", "b"], [0, 0]), ("cup", ["a"], [0])])
    by_text = grades_of_pairs(pages.pairs, {"red mug": {"a": 3}, "plate": {"a": 1}})
    assert by_text.tolist() == pytest.approx([3, np.nan, np.nan], nan_ok=True)
    by_id = grades_of_pairs(pages.pairs, {"7": {"b": 1}, "8": {"a": 2}}, {"7": "red mug", "8": "Cup", "9": "none"})
    assert by_id.tolist() == pytest.approx([np.nan, 1, 2], nan_ok=True)


def test_pairs_that_are_rare_or_unjudged_are_left_out_and_counted() -> None:
    grades = np.array([1.0, 2.0, np.nan])
    summary = summarise_clicks(PAGES, grades=grades, min_views=2)
    assert (summary.judged, summary.rare, summary.unjudged) == (2, 0, 1)
    rare = summarise_clicks(PAGES, grades=grades, min_views=3)
    assert (rare.judged, rare.rare, rare.grades) == (0, 2, ())
    assert "2 judged pairs seen fewer than 3 times left out" in rare.notes()
    assert "no document of the log is judged" not in " ".join(rare.notes())
    assert "1 of 3 pairs of a query and a document are not judged" in summary.notes()
    assert "no document of the log is judged" in summarise_clicks(PAGES, grades=np.full(3, np.nan)).notes()[0]
    assert summarise_clicks(PAGES).judged is None


def test_wilson_over_clusters_of_one_trial_each_against_wilson() -> None:
    count = np.repeat([1.0, 0.0], [300, 1700])[:, None]
    share, low, high = wilson_over_clusters(count, np.ones((2000, 1)))
    expected = wilson(300, 2000, 1.959964)
    assert (share[0], low[0], high[0]) == (0.15, *(pytest.approx(float(end), abs=1e-4) for end in expected))


def test_trials_of_one_cluster_count_as_little_as_they_differ() -> None:
    alike = np.repeat([5.0, 0.0], [30, 170])[:, None]  # five trials each, all the same
    low, high = (end[0] for end in wilson_over_clusters(alike, np.full((200, 1), 5.0))[1:])
    expected = wilson(30, 200, 1.972)  # Student's t with 199 degrees of freedom
    assert (low, high) == tuple(pytest.approx(float(end), abs=1e-3) for end in expected)
    none = wilson_over_clusters(np.zeros((200, 1)), np.full((200, 1), 5.0))
    assert (none[1][0], none[2][0]) == (0.0, pytest.approx(float(wilson(0, 200, 1.972)[1]), abs=1e-4))
    assert np.isnan(wilson_over_clusters(np.ones((1, 1)), np.ones((1, 1)))[1][0])


def test_the_ends_of_a_mean_share_are_where_its_error_is_that_of_the_end() -> None:
    shares = np.array([0.0, 0.1, 0.0, 0.3, 0.05])
    error, t = shares.std(ddof=1) / np.sqrt(5), 2.776445  # Student's t with 4 degrees of freedom
    for most, variance in ((1.0, lambda m: m * (1 - m)), (np.inf, lambda m: m)):
        mean, low, high = mean_share(shares, 0.95, most)
        assert mean == pytest.approx(0.09)
        for end in (low, high):
            scaled = error * np.sqrt(variance(end) / variance(mean))
            assert abs(end - mean) / scaled == pytest.approx(t, rel=1e-6)
        assert 0 < low < mean < high
    assert mean_share(np.array([0.5]))[0] == mean_share(np.array([0.5, 0.5]))[0] == 0.5
    assert np.isnan(mean_share(np.array([0.5, 0.5]))[1:]).all()
    assert np.isnan(mean_share(np.array([]))).all()


def test_the_interval_of_many_shares_is_students() -> None:
    shares = np.random.default_rng(3).normal(0.5, 0.02, 2000)
    mean, low, high = mean_share(shares)
    reach = 1.9611 * shares.std(ddof=1) / np.sqrt(2000)
    assert (mean - low, high - mean) == (pytest.approx(reach, rel=1e-3), pytest.approx(reach, rel=1e-3))


def coverage_by_rank(runs: int, units: int, share: float, seed: int = 5) -> float:
    """How often the interval covers the share, with five pages or so of each unit and units that differ."""
    rng, hits = np.random.default_rng(seed), 0
    for _ in range(runs):
        pages = rng.geometric(0.2, units)
        clicks = rng.binomial(pages, rng.beta(5 * share, 5 * (1 - share), units))
        _, low, high = wilson_over_clusters(clicks[:, None].astype(float), pages[:, None].astype(float))
        hits += int(low[0] <= share <= high[0])
    return hits / runs


def coverage_by_grade(runs: int, queries: int, seed: int = 6) -> tuple[float, float]:
    """How often the intervals of all grades cover the truth: click-through, and corrected for position."""
    hits, rng = np.zeros(2), np.random.default_rng(seed)
    big, grades = simulated(rng, 20_000, 2_000, 0.04)
    expected = [row.share for row in summarise_clicks(big, grades=grades, min_views=1).grades]
    for _ in range(runs):
        pages, grades = simulated(rng, 10 * queries, queries, 0.04)
        fitted = known(np.ones(len(pages.pairs)))
        rows = summarise_clicks(pages, fitted, grades, min_views=1).grades
        for row, share in zip(rows, expected, strict=True):
            true = 0.05 + 0.15 * row.grade if row.grade else 0.05333  # that of a normal variable cut at .01
            hits += [row.low <= share <= row.high, row.corrected_low <= true <= row.corrected_high]
    return float(hits[0] / runs / 4), float(hits[1] / runs / 4)


@pytest.mark.parametrize(("units", "share"), [(100, 0.1), (1000, 0.02)])
def test_intervals_by_rank_cover_the_share(units: int, share: float) -> None:
    assert 0.90 <= coverage_by_rank(400, units, share) <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("units", [100, 1000])
def test_intervals_by_rank_cover_the_share_in_93_to_97_percent(units: int, share: float) -> None:
    assert (0.91 if units * share < 5 else 0.93) <= coverage_by_rank(4000, units, share) <= 0.97


def test_intervals_by_grade_cover_the_truth() -> None:
    plain, corrected = coverage_by_grade(15, 40)
    assert plain >= 0.85
    assert corrected >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("queries", [20, 40, 200])
def test_intervals_by_grade_cover_the_truth_in_92_to_97_percent(queries: int) -> None:
    plain, corrected = coverage_by_grade(300, queries)
    assert 0.92 <= plain <= 0.97
    assert 0.92 <= corrected <= 0.97


@pytest.fixture(scope="module")
def summary() -> ClickSummary:
    pages, grades = simulated(np.random.default_rng(8), 600, 20)
    units = replace(pages, unit=np.arange(len(pages), dtype=np.int32) // 4)
    return summarise_clicks(units, known(np.ones(len(pages.pairs))), grades, model="PBM", remarks=["one note"])


def test_the_verdict_says_what_the_tables_say(summary: ClickSummary) -> None:
    text = summary.to_text()
    first, last = summary.ranks[0], summary.ranks[-1]
    assert text.startswith(f"Rank 1 is clicked on {100 * first.share:.1f} % of 600 pages, rank 10 on")
    assert f"By PBM, rank 10 is examined {100 * last.examination:.1f} % as often as rank 1." in text
    assert f"Documents of grade 3 are clicked on {100 * summary.grades[-1].share:.1f} % of their views" in text
    assert summary.units == 150
    assert summary.notes()[0] == "one note"


def test_few_clicks_say_nothing_of_examination_in_words() -> None:
    pages, grades = simulated(np.random.default_rng(8), 100, 20)
    few = summarise_clicks(pages, known(np.ones(len(pages.pairs))), grades, model="PBM", min_views=1)
    assert few.clicks == pages.clicked.sum() < 200
    assert "is examined" not in few.to_text()
    assert "corrected for position" not in few.verdict()[-1]
    assert f"{few.clicks} clicks: below 200, examination by rank is rough" in few.notes()


def test_json_and_csv_have_every_rank_and_grade(summary: ClickSummary) -> None:
    values = json.loads(summary.to_json())
    assert [row["rank"] for row in values["ranks"]] == list(range(1, 11))
    assert [row["grade"] for row in values["grades"]] == [0, 1, 2, 3]
    rows = list(csv.DictReader(io.StringIO(summary.to_csv())))
    assert [row["by"] for row in rows] == ["rank"] * 10 + ["grade"] * 4
    assert float(rows[9]["share"]) == summary.ranks[9].share
    assert float(rows[-1]["corrected_high"]) == summary.grades[-1].corrected_high
    assert rows[0]["queries"] == rows[-1]["examination"] == ""


def test_the_charts_show_both_lines_and_start_at_nothing(summary: ClickSummary) -> None:
    ranks, grades = charts_of(summary)
    assert ranks.y.domain[0] == grades.y.domain[0] == 0
    assert [row["y"] for row in ranks.rows if row["run"] == "clicks"] == [row.share for row in summary.ranks]
    scaled = [row["y"] for row in ranks.rows if row["run"] == "examination, by PBM"]
    assert scaled == pytest.approx([row.examination * summary.ranks[0].share for row in summary.ranks])
    assert ranks.x.ticks == list(range(1, 11))
    for ending in ("svg", "json"):
        assert rendered(chart(summary), ending)
    both = chart(summary)
    assert isinstance(both, Panels)
    assert both.vega_lite()["resolve"]["scale"]["color"] == "independent"


def test_one_rank_without_clicks_and_without_a_model_is_drawn(summary: ClickSummary) -> None:
    bare = summarise_clicks(ResultPages.of([("mug", ["a"], [0]), ("mug", ["b"], [0])]))
    [drawing] = charts_of(bare)
    assert drawing.y.domain == [0, 1]
    assert "nan" not in drawing.svg("c").lower()
    assert bare.to_text().startswith("Rank 1 is clicked on 0.0 % of 2 pages.")
    alone = summarise_clicks(ResultPages.of([("mug", ["a"], [1])]), grades=np.array([2.0]), min_views=1)
    assert [np.isnan(each) for each in alone.grades[0][6:8]] == [True, True]
    assert len(charts_of(alone)) == 1  # a single grade compares with nothing


def test_hostile_texts_stay_texts() -> None:
    pages = ResultPages.of([(EVIL, [EVIL, "\ud800"], [1, 0])] * 10)
    grades = grades_of_pairs(pages.pairs, {EVIL: {EVIL: 1, "\ud800": 0}})
    evil = summarise_clicks(pages, known(np.ones(2)), grades, model=EVIL)
    assert "<img" not in evil.to_html()
    assert "<img" not in "".join(each.svg("c") + each.legend() for each in charts_of(evil))


@pytest.mark.parametrize(
    ("pages", "options", "said"),
    [
        (ResultPages.of([]), {}, "there is no result page"),
        (ResultPages.of([("mug", [], [])]), {}, "there is no result page"),
        (PAGES, {"ranks": 0}, "ranks must be"),
        (PAGES, {"level": 1.0}, "level must be between 0 and 1"),
        (
            ResultPages.of([("q", [f"d{i}" for i in range(25)], [0] * 25)]),
            {"grades": np.arange(25.0), "min_views": 1},
            "at most 20 grades, found 25",
        ),
    ],
)
def test_what_cannot_be_summarised_is_said(pages: ResultPages, options: Any, said: str) -> None:
    with pytest.raises((DataError, ConventionError), match=said):
        summarise_clicks(pages, **options)


def summary_of(folder: Path, searches: Any, **how: Any) -> ClickSummary:
    return click_summary(write_searches(folder / "events", searches), **how)


def test_queries_with_one_session_count_but_the_model_is_not_fitted_to_them(tmp_path: Path) -> None:
    shown = ["a", "b"], ["b", "a"]
    searches = [("u", "often", shown[n % 2], [1, 2][: n % 3]) for n in range(30)] + [
        ("u", "once", ["c", "d", "e"], [3])
    ]
    with_once = summary_of(tmp_path / "all", searches)
    without = summary_of(tmp_path / "some", searches[:-1])
    assert with_once.pages == 31
    assert [row.examination for row in with_once.ranks[:2]] == [row.examination for row in without.ranks]
    assert np.isnan(with_once.ranks[2].examination)
    assert "the fit of PBM left out 1 query with fewer than 2 sessions (1 in all)" in with_once.notes()
    assert not any("left out" in note for note in without.notes())


def test_clicks_are_shown_without_a_model_that_cannot_be_fitted_or_refused(tmp_path: Path) -> None:
    searches = [("u", "q", ["a", "b"], [1]) for _ in range(30)]
    summary = summary_of(tmp_path, searches)
    assert [row.share for row in summary.ranks] == [1, 0]
    assert "examined" not in summary.to_text()
    assert not any("rough" in note for note in summary.notes())
    [note] = [each for each in summary.notes() if each.startswith("no examination: PBM")]
    with pytest.raises(DataError) as refused:
        click_summary(tmp_path / "events", needs_model=True)
    assert note == f"no examination: {refused.value}"
    answer = cranfield("online", "click-summary", tmp_path / "events")
    assert (answer.code, note in answer.err.replace("\n", " ").replace("  ", " ")) == (0, True), answer.both
    assert cranfield("online", "click-summary", tmp_path / "events", "--model", "PBM").code == 3


LOG = "online/clicks-log"


def test_the_command_prints_the_summary_of_the_log_and_its_judgments(tmp_path: Path) -> None:
    answer = cranfield("online", "click-summary", LOG, "qrels.txt", "--topics-file", "topics.tsv", "--format", "json")
    judgments = read_qrels(str(EXAMPLES / "qrels.txt")).to_dict()
    queries = read_topic_table(str(EXAMPLES / "topics.tsv")).queries
    expected = click_summary(EXAMPLES / LOG, judgments, queries)
    assert json.loads(answer.out) == expected.to_dict()
    assert len(expected.grades) == 4
    bare = json.loads(cranfield("online", "click-summary", LOG, "--depth", "2", "--format", "json").out)
    assert bare["grades"] is None
    assert bare["ranks"] == expected.to_dict()["ranks"][:2]


@pytest.mark.parametrize("command", [("clicks",), ("click-summary",)])
def test_both_commands_draw_the_same_chart(command: tuple[str], tmp_path: Path) -> None:
    path = tmp_path / "chart.vl.json"
    answer = cranfield("online", *command, LOG, "--model", "UBM", "-o", path)
    assert answer.code == 0, answer.both
    assert json.loads(path.read_text()) == chart(click_summary(EXAMPLES / LOG, model="UBM")).vega_lite()

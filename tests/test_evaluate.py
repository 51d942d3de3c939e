"""Runs × qrels × measures → Scores: what may be given, conventions, subsets, threads."""

from __future__ import annotations

import gzip
import threading
import time
from collections import namedtuple
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from cranfield import Evaluator, Qrels, Run, evaluate, read_run
from cranfield.base.errors import BadLineError, ConventionError, DataError, MeasureError, TopicError
from cranfield.evaluation.evaluate import _run_threads, distinct

if TYPE_CHECKING:
    from pathlib import Path

QRELS = {"q1": {"a": 1, "b": 0, "c": 2}, "q2": {"a": 1, "d": 1}, "q3": {"e": 0, "f": 0}}
RUN = {"q1": {"a": 3, "b": 2, "c": 1}, "q2": {"x": 2, "d": 1}}


def trec(run: dict[str, dict[str, float]]) -> str:
    return "".join(f"{t} Q0 {d} 0 {s} tag\n" for t, documents in run.items() for d, s in documents.items())


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Ten runs; the i-th puts i unjudged documents first."""
    paths = []
    for i in range(10):
        run = {"q1": {**{f"x{j}": 99 - j for j in range(i)}, "a": 3, "c": 2}, "q2": {"a": 1}, "q3": {"e": 1}}
        paths.append(tmp_path / f"run{i}.run")
        paths[-1].write_text(trec(run))
    return paths


# what may be given


def test_a_run_scores_the_same_however_it_is_given(tmp_path):
    path = tmp_path / "bm25.run"
    path.write_text(trec(RUN))
    packed = tmp_path / "packed.run.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    rows = [{"query_id": t, "doc_id": d, "score": s} for t, documents in RUN.items() for d, s in documents.items()]
    Row = namedtuple("Row", "query_id doc_id score")
    given = {
        "path": path,
        "text": str(path),
        "gzip": packed,
        "mapping": RUN,
        "run": Run(RUN),
        "read": read_run(path),
        "frame": pl.DataFrame(rows),
        "rows": rows,
        "generated rows": (Row(**row) for row in rows),
        "list": [RUN],
        "generator": (run for run in [RUN]),
    }
    wanted = evaluate(QRELS, RUN, "AP nDCG@10")
    for way, run in given.items():
        scores = evaluate(QRELS, run, "AP nDCG@10")
        assert np.array_equal(scores.values, wanted.values), way
        assert scores.topics == wanted.topics, way


def test_several_runs_are_a_list_a_generator_or_names(files):
    wanted = evaluate(QRELS, files, "RR")
    assert wanted.runs == [f"run{i}" for i in range(10)]
    assert wanted["q1"].tolist() == [1 / (i + 1) for i in range(10)]
    assert evaluate(QRELS, (path for path in files), "RR") == wanted
    assert evaluate(QRELS, {path.stem: path for path in files}, "RR") == wanted
    assert evaluate(QRELS, [read_run(path) for path in files], "RR") == wanted
    assert evaluate(QRELS, str(files[0].parent / "*.run"), "RR") == wanted


def test_the_tag_is_kept_apart_from_the_name(files):
    scores = evaluate(QRELS, files[:2], "RR")
    assert (scores.runs, scores.tags) == (["run0", "run1"], ["tag", "tag"])


def test_runs_of_the_same_name_stay_apart():
    assert distinct(["a", "b", "a", "a#2", "a"]) == ["a", "b", "a#3", "a#2", "a#4"]
    scores = evaluate(QRELS, [Run(RUN, "bm25"), Run({}, "bm25")], "RR")
    assert scores.runs == ["bm25", "bm25#2"]
    assert scores.absent.missing["bm25"] == ["q3"]
    assert scores.absent.missing["bm25#2"] == ["q1", "q2", "q3"]


def test_nothing_to_score_is_an_error():
    with pytest.raises(DataError, match="no run given"):
        evaluate(QRELS, [], "AP")
    with pytest.raises(DataError, match="no judgments"):
        evaluate({}, RUN, "AP")
    with pytest.raises(MeasureError, match="no measure given"):
        evaluate(QRELS, RUN, "")


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.run: no such file"):
        evaluate(QRELS, tmp_path / "nowhere.run", "AP")


# conventions


def test_a_missing_topic_is_zero_or_skipped_or_an_error():
    assert evaluate(QRELS, RUN, "RR").mean() == pytest.approx((1 + 0.5 + 0) / 3)
    assert evaluate(QRELS, RUN, "RR", missing="skip").mean() == pytest.approx((1 + 0.5) / 2)
    with pytest.raises(TopicError, match="topic 'q3' is judged but missing from run"):
        evaluate(QRELS, RUN, "RR", missing="error")


def test_a_topic_without_relevant_documents_is_zero_or_skipped():
    run = {**RUN, "q3": {"e": 1}}
    assert evaluate(QRELS, run, "RR").mean() == 0.5
    skipped = evaluate(QRELS, run, "RR", no_relevant="skip")
    assert skipped.mean() == 0.75
    assert skipped.absent.no_relevant == ["q3"]
    strict = evaluate(QRELS, run, "RR", rel=2, no_relevant="skip")
    assert strict.absent.no_relevant == ["q2", "q3"]
    assert strict.mean() == pytest.approx(1 / 3)


def test_the_lowest_relevant_grade_is_for_measures_that_do_not_say():
    scores = evaluate(QRELS, RUN, "P@1 P(rel=1)@1 nDCG@10", rel=2)
    assert scores["P@1", "q1"] == 0.0
    assert scores["P(rel=1)@1", "q1"] == 1.0


def test_presets_and_single_answers_combine():
    scores = evaluate(QRELS, RUN, "AP", conventions="trec_eval-9", missing="zero")
    assert (scores.conventions.scores, scores.conventions.missing) == ("single", "zero")
    with pytest.raises(ConventionError, match="no preset 'trec_eval-7'"):
        evaluate(QRELS, RUN, "AP", conventions="trec_eval-7")
    with pytest.raises(ConventionError, match="missing must be one of zero, skip, error, got 'ignore'"):
        evaluate(QRELS, RUN, "AP", missing="ignore")
    with pytest.raises(ConventionError, match="no such convention"):
        evaluate(QRELS, RUN, "AP", mising="skip")


def test_passages_are_scored_as_their_document_and_the_best_decides():
    run = {"q1": {"c#1": 1, "c#2": 9, "a#7": 5, "b#1": 3}}
    scores = evaluate({"q1": QRELS["q1"]}, run, "AP NumRet nDCG@10", collapse="#")
    plain = evaluate({"q1": QRELS["q1"]}, {"q1": {"c": 9, "a": 5, "b": 3}}, "AP NumRet nDCG@10")
    assert np.array_equal(scores.values, plain.values)
    assert scores.mean("NumRet") == 3


def test_a_document_that_is_the_topic_itself_is_left_out():
    run = {"a": {"a": 9, "b": 5}, "b": {"c": 2, "b": 1}}
    qrels = {"a": {"a": 1, "b": 1}, "b": {"c": 0, "b": 1}}
    assert evaluate(qrels, run, "RR NumRet").means() == {"RR": 0.75, "NumRet": 4}
    assert evaluate(qrels, run, "RR NumRet", drop_self=True).means() == {"RR": 0.5, "NumRet": 2}


def test_dropping_unjudged_documents_does_not_make_a_topic_missing():
    scores = evaluate({"q": {"a": 1}}, {"q": {"x": 1}}, "AP", unjudged="drop")
    assert scores.absent.missing == {}


# subsets


def test_a_subset_of_topics_scores_as_if_there_were_no_others():
    run = {**RUN, "q3": {"e": 1}}
    part = evaluate(QRELS, run, "AP RR", topics=["q2", "q1"])
    alone = evaluate({topic: QRELS[topic] for topic in ("q1", "q2")}, RUN, "AP RR")
    assert part.topics == ["q1", "q2"]
    assert np.array_equal(part.values, alone.values)
    assert part.means() == alone.means()
    assert part.absent.no_relevant == []


def test_a_topic_asked_for_but_not_judged_is_an_error_unless_lenient():
    with pytest.raises(TopicError, match=r"topic 'q9' is not judged in qrels \(1 of the 2 requested topics"):
        evaluate(QRELS, RUN, "AP", topics=["q1", "q9"])
    scores = evaluate(QRELS, RUN, "AP", topics=["q1", "q9"], lenient=True)
    assert scores.topics == ["q1"]
    assert scores.notes() == ["topic 'q9' was requested but is not judged; it is left out"]
    with pytest.raises(TopicError, match="topic 'q9' is not judged"):
        evaluate(QRELS, RUN, "AP", topics="q9", lenient=True)
    with pytest.raises(TopicError, match="empty"):
        evaluate(QRELS, RUN, "AP", topics=[])


def test_a_missing_topic_outside_the_subset_is_no_error():
    assert evaluate(QRELS, RUN, "RR", topics=["q1"], missing="error").mean() == 1.0


# bad lines


def test_a_bad_line_stops_or_is_counted(tmp_path):
    path = tmp_path / "bad.run"
    path.write_text(trec(RUN) + "q2 Q0 d\n")
    with pytest.raises(BadLineError, match=r"bad\.run:6: expected 6 columns"):
        evaluate(QRELS, path, "AP")
    scores = evaluate(QRELS, path, "AP", lenient=True)
    assert scores.absent.skipped == {"bad": 1}
    assert scores.means() == evaluate(QRELS, RUN, "AP").means()
    assert "1 malformed line of bad skipped" in scores.notes()


def test_bad_judgments_are_counted_too(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 a 1\nq1 0 b\nq1 0 c many\n")
    assert evaluate(path, RUN, "AP", lenient=True).absent.skipped_qrels == 2


def test_the_first_bad_run_in_the_order_given_is_reported(files):
    files[3].write_text("q1 Q0 a\n")
    files[7].write_text("q1 Q0 a\n")
    for threads in (1, 2, 4):
        with pytest.raises(BadLineError, match=r"run3\.run:1:"):
            evaluate(QRELS, files, "AP", threads=threads)


# many runs


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 64])
def test_threads_change_nothing(files, threads):
    assert evaluate(QRELS, files, "AP nDCG@10", threads=threads) == evaluate(QRELS, files, "AP nDCG@10", threads=1)


def test_threads_must_be_a_number_of_threads():
    with pytest.raises(ConventionError, match="threads must be 1 or more, got 0"):
        evaluate(QRELS, RUN, "AP", threads=0)


def test_progress_is_told_after_each_run(files):
    told: list[tuple[int, int | None]] = []
    Evaluator(QRELS, "AP", threads=2).evaluate(files, lambda done, total: told.append((done, total)))
    assert told == [(i, 10) for i in range(1, 11)]
    told.clear()
    Evaluator(QRELS, "AP", threads=2).evaluate(iter(files), lambda done, total: told.append((done, total)))
    assert told == [(i, None) for i in range(1, 11)]


def test_runs_from_a_generator_are_let_go_before_the_next_are_asked_for():
    """No more runs than threads are alive at a time."""
    alive, most = set(), 0

    class Answers(dict):
        def __del__(self) -> None:
            alive.discard(id(self))

    def runs():
        nonlocal most
        for i in range(50):
            run = Answers(RUN)
            alive.add(id(run))
            most = max(most, len(alive))
            yield Run(run, f"run{i}")
            del run

    scores = Evaluator(QRELS, "RR", threads=2).evaluate(runs())
    assert len(scores.runs) == 50
    assert most <= 5


def test_an_error_in_the_generator_reaches_the_caller():
    def runs():
        for _ in range(5):
            yield RUN
        raise RuntimeError("the model has gone")

    for threads in (1, 2):
        with pytest.raises(RuntimeError, match="the model has gone"):
            Evaluator(QRELS, "RR", threads=threads).evaluate(runs())


def test_an_error_stops_the_other_threads():
    started = []

    def work(i: int, item: object, threads: int) -> None:
        started.append(i)
        if i == 0:
            raise ValueError("stop")
        time.sleep(0.001)

    before = threading.active_count()
    with pytest.raises(ValueError, match="stop"):
        _run_threads(work, list(range(1000)), 2, None)
    assert len(started) < 1000
    assert threading.active_count() <= before + 2


# the reusable evaluator


def test_an_evaluator_scores_as_evaluate_does():
    evaluator = Evaluator(Qrels(QRELS), "AP RR", missing="skip")
    for run in (RUN, {"q1": {"c": 1}}, {"q3": {"e": 1}}):
        assert evaluator.evaluate(run) == evaluate(QRELS, run, "AP RR", missing="skip")


def test_an_evaluator_shows_a_run_through_its_judgments():
    hits = Evaluator(QRELS, "AP").hits(RUN)
    assert hits.rank.tolist() == [1, 2, 3, 2]
    assert hits.grade.tolist() == [1, 0, 2, 1]


def test_measures_may_be_objects_texts_or_both():
    from cranfield import measure

    scores = evaluate(QRELS, RUN, ["AP RR", measure("nDCG@10")])
    assert list(scores.measures) == ["AP", "RR", "nDCG@10"]


@pytest.mark.parametrize("measure", ["R(average=micro)@2", "R(average=micro,judged_only=true)@2"])
def test_a_micro_average_over_ties_against_the_mean_over_all_orders(measure):
    qrels = {"q1": {"a": 1, "b": 0, "c": 1, "z": 1}, "q2": {"a": 0, "b": 1, "y": 1}}
    tied = {"q1": "abcu", "q2": "abv"}
    averaged = evaluate(
        qrels, {topic: dict.fromkeys(ids, 1.0) for topic, ids in tied.items()}, measure, ties="averaged"
    )
    orders = [[dict(zip(ids, range(9, 0, -1), strict=False)) for ids in permutations(text)] for text in tied.values()]
    means = [evaluate(qrels, {"q1": one, "q2": two}, measure).mean() for one in orders[0] for two in orders[1]]
    assert averaged.mean() == pytest.approx(np.mean(means))

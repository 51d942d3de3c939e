"""Comparing runs by their result lists, and measures or judgments by how they rank systems."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import numpy as np
import pytest
import scipy.stats

from cranfield import correlate, evaluate
from cranfield.base.errors import ConventionError, DataError, DuplicateError
from cranfield.comparison.correlate import KINDS
from cranfield.stats.correlation import COEFFICIENTS
from cranfield.stats.overlap import rbo
from shell import EXAMPLES, cranfield

ONE = {"q1": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}, "q2": {"x": 2.0, "y": 1.0}}
OTHER = {"q1": {"c": 4.0, "d": 3.0, "a": 2.0, "b": 1.0}, "q2": {"x": 2.0, "y": 1.0}}


def only(*documents: str) -> dict[str, dict[str, float]]:
    """A run of one topic, documents in this order."""
    return {"q": {document: float(-i) for i, document in enumerate(documents)}}


def test_tau_of_two_runs_against_the_lecture():
    found = correlate(ONE, OTHER, "tau tau-a")
    [pair] = found.pairs
    assert pair.topics["q1"] == pytest.approx({"tau": -1 / 3, "tau-a": -1 / 3})
    assert pair.topics["q2"] == {"tau": 1.0, "tau-a": 1.0}
    assert found.value("tau") == pytest.approx((-1 / 3 + 1) / 2)
    assert found.notes() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_like_itself(kind):
    found = correlate(ONE, ONE, kind)
    least = {"rbo-res", "rbo-min"}
    assert found.value() == pytest.approx(1) if kind not in least else 0 < found.value() < 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ktu-by-name"])
def test_what_documents_and_topics_are_called_and_their_order_decide_nothing(kind):
    def renamed(run):
        return {f"t{t}": {f"z{99 - ord(d)}": s for d, s in docs.items()} for t, docs in reversed(run.items())}

    assert correlate(renamed(ONE), renamed(OTHER), kind).value() == pytest.approx(correlate(ONE, OTHER, kind).value())


def test_lists_by_hand():
    found = correlate(
        only(*"abcd"), only(*"baec"), "overlap@3 jaccard@3 average-overlap@3 overlap jaccard rbo-cut@2", p=0.5
    )
    values = found.pairs[0].values
    assert values["overlap@3"] == pytest.approx(2 / 3)
    assert values["jaccard@3"] == 2 / 4
    assert values["average-overlap@3"] == pytest.approx((0 + 1 + 2 / 3) / 3)
    assert values["overlap"] == 3 / 4
    assert values["jaccard"] == 3 / 5
    assert values["rbo-cut@2"] == pytest.approx((0 + 0.5 * 1) / 1.5)


def test_lists_of_different_documents_by_hand():
    """Union: a b c | d behind, and a c d | b behind. In both: a before c either way."""
    one, other = only(*"abc"), only(*"acd")
    x, y = [0, -1, -2, -math.inf], [0, -math.inf, -1, -2]  # a, b, c, d
    assert correlate(one, other, "tau").value() == pytest.approx(scipy.stats.kendalltau(x, y).statistic)
    assert correlate(one, other, "tau", documents="both").value() == 1
    assert correlate(one, other, "tau", depth=2).value() == pytest.approx(1 / 3)


def test_documents_that_a_list_lacks_are_tied_behind_its_end():
    one, other = only(*"ab"), only(*"cd")
    # a b c d are 2 1 0 0 and 0 0 2 1: four discordant pairs of six, one tied in each
    assert correlate(one, other, "tau-a").value() == pytest.approx(-4 / 6)
    assert correlate(one, other, "tau").value() == pytest.approx(-4 / 5)


def test_ties_in_the_scores_reach_rbo():
    tied, plain = {"q": {"a": 1.0, "b": 1.0, "c": 0.5}}, only(*"bac")
    for ties in ("a", "b", "w"):
        expected = rbo([{"a", "b"}, "c"], list("bac"), 0.8, ties).ext
        assert correlate(tied, plain, "rbo", p=0.8, tied=ties).value() == pytest.approx(expected)
    assert correlate(tied, plain, "rbo", tied="order").value() == pytest.approx(1), "b before a: by id, descending"
    ascending = correlate(tied, plain, "rbo", tied="order", conventions={"ties": "document-ascending"}).value()
    assert ascending == pytest.approx(rbo(list("abc"), list("bac")).ext)


def test_scores_that_are_equal_at_32_bits_tie_where_the_conventions_say_so():
    near, plain = {"q": {"a": 1.0, "b": 1.0 + 1e-12}}, only("a", "b")
    assert correlate(near, plain, "overlap@1").value() == 0
    assert correlate(near, plain, "overlap@1", conventions="trec_eval-9").value() == 0.5


def test_overlap_looks_into_a_tied_group_that_the_depth_divides():
    tied = {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}
    assert correlate(tied, only(*"abc"), "overlap@1").value() == pytest.approx(1 / 3)


def test_three_runs_are_compared_each_with_each():
    found = correlate({"x": ONE, "y": OTHER, "z": ONE}, kinds="rbo")
    assert [(pair.first, pair.second) for pair in found.pairs] == [("x", "y"), ("x", "z"), ("y", "z")]
    assert found.value(first="x", second="z") == pytest.approx(1)
    with pytest.raises(DataError, match="no single value"):
        found.value()


def test_topics_of_one_run_only_are_left_out_and_named():
    found = correlate(ONE, {"q1": ONE["q1"], "q9": {"a": 1.0}}, "rbo")
    assert found.pairs[0].over == 1
    assert found.notes() == [
        "topic 'q2' of run is missing from run#2 and left out",
        "topic 'q9' of run#2 is missing from run and left out",
    ]


def test_what_is_undefined_is_null_with_a_reason_and_not_in_the_mean():
    flat = {"q1": dict.fromkeys("abcd", 1.0), "q2": {"x": 2.0, "y": 1.0}}
    found = correlate(ONE, flat, "tau")
    assert found.value() == 1
    [note] = found.notes()
    assert "undefined for 1 of 2 topics" in note
    assert "all 4 scores of the second are the same" in note
    given = found.to_dict(per_topic=True)["pairs"][0]
    assert given["per_topic"]["q1"] == {"tau": None}
    assert "the same" in given["undefined_topics"]["q1"]["tau"]


def test_one_document_has_no_order_and_the_whole_value_is_null():
    found = correlate(only("a"), only("a"), "tau ktu rbo")
    given = found.to_dict()["pairs"][0]
    assert given["values"]["tau"] is None
    assert given["values"]["ktu"] is None
    assert given["values"]["rbo"] == pytest.approx(1)
    assert "found 1" in given["undefined"]["tau"]
    assert json.loads(found.to_json())["pairs"][0]["values"]["tau"] is None


def test_tau_union_wants_lists_of_one_length():
    found = correlate(only(*"abc"), only(*"ab"), "ktu")
    assert math.isnan(found.value())
    assert "hold 3 and 2 documents" in found.notes()[-1]
    assert correlate(only(*"abc"), only(*"ab"), "ktu", depth=2).value() == 1


def test_tau_union_of_lists_with_little_in_common_comes_with_a_warning():
    found = correlate(only(*"abcd"), only(*"wxyz"), "ktu rbo")
    assert (found.value("ktu"), found.value("rbo")) == (1, 0)
    assert "share 0% of their documents" in found.notes()[0]
    assert correlate(only(*"abcd"), only(*"wxyz"), "rbo").notes() == []
    assert correlate(only(*"abcd"), only(*"badc"), "ktu").notes() == []


def test_pearson_compares_the_scores_of_documents_in_both():
    one, other = {"q": {"a": 1.0, "b": 2.0, "c": 4.0, "e": 9.0}}, {"q": {"a": 3.0, "b": 1.0, "c": 7.0, "d": 0.0}}
    expected = scipy.stats.pearsonr([1, 2, 4], [3, 1, 7]).statistic
    assert correlate(one, other, "pearson").value() == pytest.approx(expected)
    assert correlate(one, other, "pearson", tied="order").value() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"kinds": "kendall"}, ConventionError, "no kind of similarity 'kendall'"),
        ({"kinds": "overlap@0"}, ConventionError, "1 or more"),
        ({"kinds": ""}, ConventionError, "no kind of similarity given"),
        ({"p": 1}, ConventionError, "p must be between 0 and 1"),
        ({"depth": 0}, ConventionError, "depth must be 1 or more"),
        ({"tied": "c"}, ConventionError, "tied must be one of a, b, w, order"),
        ({"documents": "all"}, ConventionError, "documents must be one of union, both"),
    ],
)
def test_bad_options_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        correlate(ONE, OTHER, **options)


def test_bad_runs_are_refused(tmp_path):
    with pytest.raises(DataError, match="two runs or more to compare, found 1"):
        correlate(ONE)
    with pytest.raises(DataError, match="share no topic"):
        correlate(ONE, {"z": {"a": 1.0}})
    twice = tmp_path / "twice.run"
    twice.write_text("# a comment\nq1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\n", encoding="utf-8")
    with pytest.raises(DuplicateError, match=r"twice\.run:3: document 'a' occurs twice for topic 'q1'"):
        correlate(str(twice), ONE)


def test_duplicates_collapse_and_drop_self_are_as_in_an_evaluation(tmp_path):
    passages = {"q": {"d1#1": 1.0, "d2#1": 2.0, "d1#2": 3.0, "q": 9.0}}
    order = {"collapse": "#", "drop_self": True}
    assert correlate(passages, only("d1", "d2"), "tau", conventions=order).value() == 1
    twice = tmp_path / "twice.run"
    twice.write_text("q Q0 a 1 3 t\nq Q0 b 1 2 t\nq Q0 a 2 1 t\n", encoding="utf-8")
    values = {
        rule: correlate(str(twice), only("a", "b"), "tau", conventions={"duplicates": rule}).value()
        for rule in ("first", "last", "best")
    }
    assert values == {"first": 1, "last": -1, "best": 1}


# rankings of systems

QRELS = {f"q{t}": {f"d{j}": (t * j) % 3 for j in range(8)} for t in range(1, 6)}
STRICT = {topic: {d: grade - 1 for d, grade in docs.items()} for topic, docs in QRELS.items()}
SYSTEMS = {
    f"s{n}": {topic: {f"d{(j * (n + 2) + n) % 8}": float(8 - j) for j in range(8)} for topic in QRELS}
    for n in (1, 3, 5, 7, 9)
}


def test_measures_as_rankings_of_systems_against_scipy():
    scores = evaluate(QRELS, SYSTEMS, "AP nDCG@3 RR")
    found = correlate(scores, kinds="tau spearman weighted-tau pearson")
    assert [(pair.first, pair.second) for pair in found.pairs] == [("AP", "nDCG@3"), ("AP", "RR"), ("nDCG@3", "RR")]
    x, y = scores.summary[:, 0], scores.summary[:, 1]
    values = found.pairs[0].values
    assert values["tau"] == pytest.approx(scipy.stats.kendalltau(x, y).statistic)
    assert values["spearman"] == pytest.approx(scipy.stats.spearmanr(x, y).statistic)
    assert values["weighted-tau"] == pytest.approx(scipy.stats.weightedtau(x, y).statistic)
    assert values["pearson"] == pytest.approx(scipy.stats.pearsonr(x, y).statistic)


def test_two_sets_of_judgments_as_rankings_of_systems():
    one, other = evaluate(QRELS, SYSTEMS, "AP RR"), evaluate(STRICT, SYSTEMS, "AP")
    found = correlate(one, other, "tau", names=("all", "strict"))
    [pair] = found.pairs
    assert (pair.first, pair.second, pair.over) == ("AP (all)", "AP (strict)", len(SYSTEMS))
    means = [[scores.mean("AP", run) for run in SYSTEMS] for scores in (one, other)]
    assert pair.values["tau"] == pytest.approx(scipy.stats.kendalltau(*means).statistic)


def test_the_default_for_systems_is_tau_and_tau_ap_and_ties_are_said_to_stop_the_latter():
    same = {"a": ONE, "b": ONE, "c": OTHER}
    found = correlate(evaluate({"q1": {"a": 1, "d": 1}, "q2": {"y": 1}}, same, "AP RR"))
    assert found.kinds == ["tau", "tau-ap"]
    assert math.isnan(found.value("tau-ap"))
    assert "no ties" in found.notes()[0]


def test_systems_are_matched_by_name_and_the_others_named():
    one = evaluate(QRELS, SYSTEMS, "AP")
    fewer = evaluate(STRICT, {name: SYSTEMS[name] for name in ("s1", "s3", "s9")}, "AP")
    found = correlate(one, fewer, "tau-a")
    assert found.pairs[0].over == 3
    assert found.notes() == ["systems 's5', 's7' are scored on one side only and left out"]


def test_wrong_questions_about_systems_are_refused():
    scores = evaluate(QRELS, SYSTEMS, "AP")
    with pytest.raises(DataError, match="two measures or more"):
        correlate(scores)
    with pytest.raises(ConventionError, match="rbo compares result lists"):
        correlate(scores, scores, "rbo")
    with pytest.raises(DataError, match="a run on one"):
        correlate(scores, ONE)
    with pytest.raises(DataError, match="no measure in common"):
        correlate(scores, evaluate(QRELS, SYSTEMS, "RR"))


def test_one_system_is_no_ranking():
    scores = evaluate(QRELS, {"s1": SYSTEMS["s1"]}, "AP RR")
    found = correlate(scores, kinds=list(COEFFICIENTS))
    assert all(math.isnan(value) for value in found.pairs[0].values.values())
    assert len(found.notes()) == len(COEFFICIENTS)


# the command


def test_the_help_and_the_page_name_every_kind():
    text = re.sub(r"-\s+", "-", cranfield("correlate", "--help-all").out)  # lines are broken at hyphens
    words = set(re.findall(r"[a-z][a-z-]+[a-z]", text))
    page = (EXAMPLES.parent / "docs" / "correlate.md").read_text(encoding="utf-8")
    assert set(KINDS) <= words
    assert set(KINDS) <= set(re.findall(r"`([a-z-]+)`", page))


def test_the_command_prints_a_table_csv_and_json():
    table = cranfield("correlate", "bm25.run", "dense.run", "--coefficient", "rbo tau", "--per-topic")
    assert table.code == 0
    assert table.out.splitlines()[0].split() == ["first", "second", "topic", "rbo", "tau"]
    assert table.out.splitlines()[-1].split()[:3] == ["bm25", "dense", "all"]
    assert "topic 'q6' of bm25 is missing from dense" in table.err
    rows = list(csv.reader(io.StringIO(cranfield("correlate", "bm25.run", "dense.run", "--format", "csv").out)))
    assert rows[0] == ["first", "second", "rbo", "topics"]
    given = json.loads(cranfield("correlate", "bm25.run", "dense.run", "--format", "json", "--per-topic").out)
    assert given["pairs"][0]["values"]["rbo"] == float(rows[1][2])
    assert np.mean([row["rbo"] for row in given["pairs"][0]["per_topic"].values()]) == pytest.approx(float(rows[1][2]))
    assert given["parameters"] == {"p": 0.9, "depth": None, "tied": "a", "documents": "union"}


def test_the_command_compares_rankings_of_systems(tmp_path):
    systems = ["correlate", "--qrels", "qrels.txt", "bm25.run", "dense.run", "-m"]
    answer = cranfield(*systems, "AP nDCG@10", "--format", "json")
    assert json.loads(answer.out)["pairs"][0]["values"] == {"tau": 1.0, "tau-ap": 1.0}
    (tmp_path / "other.txt").write_text("q1 0 doc-040 1\nq2 0 doc-019 1\n", encoding="utf-8")
    answer = cranfield(*systems, "AP", "--other-qrels", tmp_path / "other.txt", "--kind", "tau", "--format", "csv")
    assert answer.out == "first,second,tau,systems\nAP (qrels),AP (other),-1.0,2\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["bm25.run"], 3, "expected two runs or more"),
        (["bm25.run", "absent.run"], 3, "absent.run"),
        (["bm25.run", "dense.run", "--kind", "foo"], 2, "no kind of similarity 'foo'"),
        (["bm25.run", "dense.run", "--p", "2"], 2, "p must be"),
        (["bm25.run", "dense.run", "--digits", "-1"], 2, "--digits must be"),
        (["bm25.run", "dense.run", "-m", "AP"], 2, "--qrels QRELS"),
        (["bm25.run", "dense.run", "--systems", "qrels.txt"], 2, "--qrels needs measures"),
        (["-", "-"], 3, "found - twice"),
        (["-", "--systems", "qrels.txt", "--other-qrels", "qrels.txt", "-m", "AP"], 3, "read once only"),
    ],
)
def test_the_command_stops_with_a_sentence(arguments, code, words):
    answer = cranfield("correlate", *arguments)
    assert answer.code == code
    assert words in answer.err
    assert answer.out == ""

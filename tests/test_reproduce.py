"""Reproductions against repro_eval 0.5.0, whose values were recorded on the runs made here, and against hand-made ones."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import pytest

from cranfield import correlate, evaluate, reproduce
from cranfield.base.errors import ConventionError, DataError
from shell import EXAMPLES, cranfield

MEANS = {"original", "reproduced", "improvement", "reproduced improvement"}
FIGURES = MEANS | {"KTU", "RBO", "RMSE", "nRMSE", "p", "ER", "DeltaRI"}
TOPICS, DOCUMENTS = [f"q{t}" for t in range(8)], [f"d{j:02}" for j in range(14)]


def noise(*numbers: int) -> float:
    """A number between 0 and 1 that looks random and is the same everywhere."""
    x = 17
    for number in numbers:
        x = (x * 31 + number + 1) * 2654435761 % 2**32
        x ^= x >> 15
    return x / 2**32


def judged(seed: int):
    return {q: {d: int(noise(seed, t, j) * 3) for j, d in enumerate(DOCUMENTS)} for t, q in enumerate(TOPICS)}


def ranked(seed: int, skill: float, grades):
    run = {}
    for t, topic in enumerate(TOPICS):
        scores = {d: noise(seed, t, j) + skill * grades[topic][d] for j, d in enumerate(DOCUMENTS)}
        run[topic] = {d: scores[d] for d in sorted(scores, key=scores.__getitem__, reverse=True)[:10]}
    return run


QRELS, OTHER_QRELS = judged(1), judged(2)
ORIGINAL = ranked(3, 0.1, QRELS), ranked(4, 0.4, QRELS)
REPRODUCED = ranked(5, 0.15, QRELS), ranked(6, 0.3, QRELS)
REPLICATED = ranked(7, 0.1, OTHER_QRELS), ranked(8, 0.35, OTHER_QRELS)
MEASURES = ["AP", "P@5", "nDCG@5"]

REPRO_EVAL = {
    ("baseline", "RMSE"): [0.4246845517702449, 0.469041575982343, 0.41506425490176857],
    ("baseline", "nRMSE"): [0.5923415245229774, 0.5730254871776856, 0.5389767900557008],
    ("baseline", "p"): [0.13689616822483333, 0.2524258774709708, 0.22699072675128412],
    ("advanced", "RMSE"): [0.3325614953205266, 0.09999999999999998, 0.18812140739326857],
    ("advanced", "nRMSE"): [0.3966489086361645, 0.10232890201933015, 0.22225706081512517],
    ("advanced", "p"): [0.9010808980137048, 1.0, 0.46876003434350727],
    ("effect", "ER"): [0.3602211101031258, 0.4285714285714286, 0.6248712373972516],
    ("effect", "DeltaRI"): [0.5072141237997476, 0.3781818181818183, 0.40638029403072],
}
REPRO_EVAL_ELSEWHERE = {
    ("baseline", "p"): [0.2107141077859887, 0.350391479107202, 0.25738267213724747],
    ("advanced", "p"): [0.309757990088713, 0.33428194339465706, 0.060688889863170586],
    ("effect", "ER"): [0.7670064170124204, 0.6428571428571428, 0.1684072576294235],
    ("effect", "DeltaRI"): [0.28490205828726695, 0.2696774193548387, 0.6473652545178465],
}


@pytest.mark.parametrize(("of", "figure"), REPRO_EVAL)
def test_a_reproduction_against_repro_eval(of, figure):
    found = reproduce(QRELS, ORIGINAL, REPRODUCED, MEASURES)
    values = [found.value(figure, measure, of) for measure in MEASURES]
    assert values == pytest.approx(REPRO_EVAL[of, figure], abs=1e-12)


@pytest.mark.parametrize(("of", "figure"), REPRO_EVAL_ELSEWHERE)
def test_a_replication_against_repro_eval(of, figure):
    found = reproduce(QRELS, ORIGINAL, REPLICATED, MEASURES, other_qrels=OTHER_QRELS)
    values = [found.value(figure, measure, of) for measure in MEASURES]
    assert values == pytest.approx(REPRO_EVAL_ELSEWHERE[of, figure], abs=1e-12)


RENAMED = {"baseline": 0.4111111111111112, "advanced": 0.32222222222222124}
AS_NAMED = {"baseline": 0.016666666666666247, "advanced": 0.12222222222222123}


def test_tau_union_against_repro_eval_given_documents_named_in_the_order_of_the_union():
    found = reproduce(QRELS, ORIGINAL, REPRODUCED, "AP")
    for of, expected in RENAMED.items():
        assert found.value("KTU", of=of) == pytest.approx(expected, abs=1e-12)


def test_repro_eval_s_tau_union_depends_on_what_documents_are_called_and_ours_does_not():
    """It numbers the union by name: the same lists gave it both AS_NAMED and, renamed, RENAMED."""
    for one, other, of in zip(ORIGINAL, REPRODUCED, AS_NAMED, strict=True):
        assert correlate(one, other, "ktu-by-name").value() == pytest.approx(AS_NAMED[of], abs=1e-12)
        turned = {d: f"z{j * 5 % 14:02}" for j, d in enumerate(DOCUMENTS)}
        one, other = ({q: {turned[d]: s for d, s in run[q].items()} for q in TOPICS} for run in (one, other))
        assert correlate(one, other, "ktu").value() == pytest.approx(RENAMED[of], abs=1e-12)
        assert correlate(one, other, "ktu-by-name").value() != pytest.approx(AS_NAMED[of], abs=1e-9)


def test_repro_eval_s_rbo_is_rbo_cut_at_its_depth():
    recorded = [0.19584693286884822, 0.3351647581470828]  # p = 0.8, depth 10
    for one, other, expected in zip(ORIGINAL, REPRODUCED, recorded, strict=True):
        assert correlate(one, other, "rbo-cut@10", p=0.8).value() == pytest.approx(expected, abs=1e-12)


def test_the_figures_by_hand():
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    first = {"q1": {"a": 2, "z": 1}, "q2": {"b": 2, "z": 1}}  # RR 1, 1
    second = {"q1": {"a": 1, "z": 2}, "q2": {"b": 1, "z": 2}}  # RR 1/2, 1/2
    mixed = {"q1": {"a": 2, "z": 1}, "q2": {"b": 1, "z": 2}}  # RR 1, 1/2
    found = reproduce(qrels, (second, first), (second, mixed), "RR")
    assert found.value("RMSE", of="advanced") == pytest.approx(math.sqrt((0 + 0.25) / 2))
    assert found.value("nRMSE", of="advanced") == pytest.approx(math.sqrt(0.25 / 2))  # it could be off by 1 twice
    assert found.value("improvement") == 0.5
    assert found.value("reproduced improvement") == 0.25
    assert found.value("ER") == 0.5
    assert found.value("DeltaRI") == pytest.approx(0.5 / 0.5 - 0.25 / 0.5)
    assert found.value("KTU", of="advanced") == 0  # 1 and -1
    assert found.value("RBO", of="baseline") == pytest.approx(1)


def test_the_page_explains_every_figure():
    page = (EXAMPLES.parent / "docs" / "reproduce.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| (\w+) \|", page, re.MULTILINE)) >= FIGURES - MEANS


def test_an_exact_reproduction_is_one():
    found = reproduce(QRELS, ORIGINAL, ORIGINAL, MEASURES)
    for of in ("baseline", "advanced"):
        assert found.value("KTU", of=of) == pytest.approx(1)
        assert found.value("RBO", of=of) == pytest.approx(1)
    for measure in MEASURES:
        assert found.value("RMSE", measure, "advanced") == 0
        assert found.value("nRMSE", measure, "advanced") == 0
        assert found.value("ER", measure) == 1
        assert found.value("DeltaRI", measure) == 0
        assert math.isnan(found.value("p", measure, "advanced"))
        assert "no difference to test" in found.why("p", measure, "advanced")


def test_the_same_list_with_ties_is_the_same_list():
    tied = {topic: dict.fromkeys(docs, 1.0) for topic, docs in ORIGINAL[0].items()}
    found = reproduce(QRELS, tied, tied, "AP")
    assert found.value("RBO") == pytest.approx(1)
    assert found.value("KTU") == pytest.approx(1)


def test_one_run_each_has_no_effect_to_compare():
    found = reproduce(QRELS, ORIGINAL[1], REPRODUCED[1], MEASURES)
    assert {row.of for row in found.rows} == {"run"}
    assert found.value("RMSE", "AP") == pytest.approx(REPRO_EVAL["advanced", "RMSE"][0])
    assert "effect" not in found.to_dict()


def test_a_replication_compares_neither_lists_nor_topics():
    found = reproduce(QRELS, ORIGINAL, REPLICATED, "AP", other_qrels=OTHER_QRELS)
    assert {row.figure for row in found.rows} == set(FIGURES) - {"KTU", "RBO", "RMSE", "nRMSE"}


def test_every_figure_is_explained():
    found = reproduce(QRELS, ORIGINAL, REPRODUCED, "AP")
    assert {row.figure for row in found.rows} == set(FIGURES)


def test_what_is_undefined_is_null_with_a_reason():
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    good = {"q1": {"a": 2, "b": 1}, "q2": {"a": 2, "b": 1}}
    less = {"q1": {"a": 1, "b": 2}, "q2": {"a": 1, "b": 2}}
    nothing = {"q1": {"c": 2, "b": 1}, "q2": {"c": 2, "b": 1}}
    found = reproduce(qrels, (nothing, nothing), (nothing, good), "RR")
    assert "original improvement is 0" in found.why("ER")
    assert "the original baseline's mean is 0" in found.why("DeltaRI")
    assert math.isnan(found.value("ER"))
    steady = reproduce(qrels, good, less, "RR")
    assert "differ by the same amount" in steady.why("p")
    flat = reproduce(qrels, good, less, "RR", other_qrels=qrels)
    assert "no variance" in flat.why("p")
    counts = reproduce(qrels, good, less, "num_ret")
    assert "not bounded by 0 and 1" in counts.why("nRMSE")
    given = json.loads(counts.to_json())
    assert given["runs"][0]["measures"]["num_ret"]["nRMSE"] is None
    assert {"nRMSE", "p"} == {row["figure"] for row in given["undefined"]}


def test_one_topic_has_scores_but_no_test():
    one = {"q": {"a": 1}}
    found = reproduce(one, {"q": {"a": 1, "b": 2}}, {"q": {"a": 2, "b": 1}}, "RR")
    assert found.value("RMSE") == 0.5
    assert found.why("p") == "a t-test needs two topics or more, found 1"
    elsewhere = reproduce(one, {"q": {"a": 1}}, {"q": {"a": 2}}, "RR", other_qrels=one)
    assert elsewhere.why("p").endswith("on each side, found 1 and 1")


def test_a_constant_difference_is_seen_through_rounding():
    qrels = {f"q{i}": {"a": 1} for i in range(3)}
    found = reproduce(qrels, {q: {"a": 1} for q in qrels}, {q: {"a": 1, "b": 3, "c": 2} for q in qrels}, "RR")
    assert "same amount" in found.why("p")


def test_runs_over_different_topics_stop_or_are_named():
    with pytest.raises(DataError, match="answers no topic that qrels judges"):
        reproduce(QRELS, ORIGINAL[0], {"z1": {"a": 1.0}}, "AP")
    part = {topic: ORIGINAL[0][topic] for topic in TOPICS[:5]}
    halves = {topic: ORIGINAL[0][topic] for topic in TOPICS[5:]}
    with pytest.raises(DataError, match="share no topic"):
        reproduce(QRELS, part, halves, "AP")
    found = reproduce(QRELS, ORIGINAL[0], part, "AP")
    assert any("are judged but missing" in note for note in found.notes())
    assert any("missing from run#2 and left out" in note for note in found.notes())
    skipped = reproduce(QRELS, ORIGINAL[0], part, "AP", missing="skip")
    assert skipped.value("RMSE") == 0, "only the topics of both are compared"
    assert found.value("RMSE") > 0


def test_the_numbers_of_runs_must_fit():
    with pytest.raises(DataError, match="found 2 and 1"):
        reproduce(QRELS, ORIGINAL, REPRODUCED[0], "AP")
    with pytest.raises(DataError, match="found 3 and 3"):
        reproduce(QRELS, [*ORIGINAL, ORIGINAL[0]], [*REPRODUCED, REPRODUCED[0]], "AP")


def test_the_means_are_those_of_an_evaluation():
    found = reproduce(QRELS, ORIGINAL, REPRODUCED, "AP")
    assert found.value("original", of="advanced") == pytest.approx(evaluate(QRELS, ORIGINAL[1], "AP").mean())
    assert found.value("reproduced", of="baseline") == pytest.approx(evaluate(QRELS, REPRODUCED[0], "AP").mean())
    with pytest.raises(DataError, match="no single figure 'RMSE'"):
        found.value("RMSE")


# the command


def test_the_command_prints_tables_csv_and_json():
    four = ["reproduce", "qrels.txt", "bm25.run", "dense.run", "dense.run", "bm25.run", "-m", "AP"]
    table = cranfield(*four)
    assert table.code == 0
    heads = [block.splitlines()[0].split() for block in table.out.split("\n\n")]
    assert heads[0] == ["run", "original", "reproduced", "KTU", "RBO"]
    assert heads[1] == ["run", "measure", "original", "reproduced", "RMSE", "nRMSE", "p"]
    assert heads[2] == ["measure", "improvement", "reproduced", "improvement", "ER", "DeltaRI"]
    given = json.loads(cranfield(*four, "--format", "json").out)
    assert given["effect"]["AP"]["ER"] == pytest.approx(-1)
    rows = list(csv.DictReader(io.StringIO(cranfield(*four, "--format", "csv").out)))
    assert {row["figure"] for row in rows} == set(FIGURES)
    [ratio] = [row["value"] for row in rows if row["figure"] == "ER"]
    assert float(ratio) == given["effect"]["AP"]["ER"]


def test_the_command_prints_each_topic_s_lists():
    answer = cranfield("reproduce", "qrels.txt", "bm25.run", "dense.run", "-m", "AP", "--per-topic", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert {row["topic"] for row in rows} == {"", "q1", "q2", "q3", "q4", "q5", "q7"}
    assert "use --missing skip to leave it out" in answer.err
    table = cranfield("reproduce", "qrels.txt", "bm25.run", "dense.run", "-m", "AP", "--per-topic")
    assert "run  topic" in table.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["qrels.txt", "bm25.run"], 2, "found 1 runs"),
        (["qrels.txt", "bm25.run", "dense.run", "bm25.run"], 2, "found 3 runs"),
        (["absent.txt", "bm25.run", "dense.run"], 3, "absent.txt"),
        (["-", "-", "dense.run"], 3, "found - twice"),
        (["qrels.txt", "bm25.run", "dense.run", "-m", "XYZ"], 2, "XYZ"),
        (["qrels.txt", "bm25.run", "dense.run", "--p", "0"], 2, "p must be"),
        (["qrels.txt", "bm25.run", "dense.run", "--digits", "-1"], 2, "--digits"),
    ],
)
def test_the_command_stops_with_a_sentence(arguments, code, words):
    answer = cranfield("reproduce", *arguments)
    assert answer.code == code
    assert words in answer.err
    assert answer.out == ""


def test_bad_options_are_refused_before_anything_is_compared():
    with pytest.raises(ConventionError, match="depth must be 1 or more"):
        reproduce(QRELS, ORIGINAL, REPRODUCED, "AP", depth=0)


def test_a_small_p_value_is_never_printed_as_0():
    qrels = {f"q{i}": {"a": 1, "b": 1} for i in range(40)}
    both = {f"q{i}": {"a": 3.0, "b": 2.0} for i in range(40)}
    one = {f"q{i}": {"a": 3.0} if i else {"a": 3.0, "b": 2.0} for i in range(40)}
    answer = reproduce(qrels, both, one, "AP")
    assert 0 < answer.value("p") < 1e-6
    assert "<0.0001" in answer.to_text()
    assert "0.0000" not in answer.to_text().split("RMSE")[1]


def test_scores_equal_in_32_bits_and_missing_topics_count_as_in_repro_eval_under_the_preset_that_the_page_names():
    """repro_eval takes its scores from ir_measures; RMSE of them is worked out here."""
    import ir_measures

    def rmse(judged):
        values = [
            {row.query_id: row.value for row in ir_measures.iter_calc([ir_measures.AP], judged, run)} for run in runs
        ]
        return math.sqrt(sum((values[0][topic] - values[1][topic]) ** 2 for topic in judged) / len(judged))

    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1, "b": 1}}
    runs = one, other = (
        {"q1": {"a": 1 + 1e-10, "b": 1.0}, "q2": {"a": 2.0, "c": 1.0}},
        {"q1": {"b": 0.5, "a": 1.0}, "q2": {"c": 2.0, "a": 1.0}},
    )
    for preset in ("trec_eval-9", "ir_measures"):
        found = reproduce(qrels, one, other, "AP", conventions=preset)
        assert found.value("RMSE") == pytest.approx(rmse(qrels), abs=1e-12)
    assert reproduce(qrels, one, other, "AP").value("RMSE") != pytest.approx(rmse(qrels), abs=0.1)
    more = {**qrels, "q3": {"a": 1}}
    assert reproduce(more, one, other, "AP", conventions="ir_measures").value("RMSE") == pytest.approx(
        rmse(more), abs=1e-12
    )
    assert reproduce(more, one, other, "AP", conventions="trec_eval-9").value("RMSE") != pytest.approx(
        rmse(more), abs=0.01
    )

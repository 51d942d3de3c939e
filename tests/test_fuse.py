"""Fusion: promises over every method and normalisation, examples worked by hand, and training."""

from __future__ import annotations

import json
import random
import sys
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield
from cranfield.base.errors import ConventionError, DataError, DuplicateError
from cranfield.base.kernels import encode
from cranfield.base.registry import about
from cranfield.base.run import Run
from cranfield.formats import write_run
from cranfield.retrieval.fusion import METHODS as CLASSES
from cranfield.retrieval.fusion import NORMS, fuse
from cranfield.retrieval.tune import fuse_trained, tune
from shell import EXAMPLES
from shell import cranfield as shell

METHODS = list(CLASSES)
OF_SCORES = [name for name, cls in CLASSES.items() if cls.reads == "scores"]
BY_NORM = [
    (method, norm)
    for method in OF_SCORES
    for norm, cls in NORMS.items()
    if norm != "max" and not (cls.turns_order and CLASSES[method].trained)  # some scores are negative; refused below
]
QRELS = {"1": {"a": 1, "b": 0, "e": 2}, "2": {"c": 1, "x": 1}, "3": {"b": 1}}
A = {"1": {"a": 9.0, "b": 7.5, "c": 7.0, "d": 1.0}, "2": {"a": 3.0, "c": 2.0}, "3": {"b": 2.0, "é": 1.0}}
B = {"1": {"b": 0.9, "e": 0.8, "a": 0.1}, "3": {"é": 0.7, "f": 0.6, "b": 0.5}}
C = {"1": {"c": -1.0, "a": -2.0, "e": -9.5}, "2": {"x": -1.0, "c": -4.0, "a": -4.5}}


def train(method: str) -> dict:
    return {"train": QRELS} if CLASSES.named(method).trained else {}


def order(run: Run, topic: str) -> list[str]:
    return [document for document, _ in run[topic]]


# promises


@pytest.mark.parametrize("method", METHODS)
def test_what_comes_out_is_the_union_of_what_went_in(method):
    fused = fuse([A, B, C], method, **train(method)).to_dict()
    assert set(fused) == {"1", "2", "3"}
    for topic, documents in fused.items():
        assert set(documents) == set(A.get(topic, {})) | set(B.get(topic, {})) | set(C.get(topic, {}))
        assert all(np.isfinite(score) for score in documents.values())


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_runs_does_not_matter(method):
    answers = [fuse(list(some), method, **train(method)).to_dict() for some in permutations([A, B, C])]
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize(("method", "norm"), BY_NORM)
def test_the_order_of_the_runs_does_not_matter_under_any_normalisation(method, norm):
    answers = [fuse(list(some), method, norm=norm, **train(method)).to_dict() for some in permutations([A, B, C])]
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("method", [name for name in METHODS if CLASSES.named(name).keeps_order])
@pytest.mark.parametrize("times", [2, 3])
def test_a_run_fused_with_itself_keeps_its_order(method, times):
    for run in (A, B, C):
        fused = fuse([Run(run)] * times, method, **train(method))
        for topic in run:
            assert order(fused, topic) == order(Run(run), topic)


@pytest.mark.parametrize(("method", "norm"), [each for each in BY_NORM if CLASSES[each[0]].keeps_order])
def test_a_run_fused_with_itself_keeps_or_turns_its_order_under_any_normalisation(method, norm):
    fused = fuse([Run(C), Run(C)], method, norm=norm)
    step = -1 if NORMS[norm].turns_order else 1
    assert all(order(fused, topic) == order(Run(C), topic)[::step] for topic in C)


@pytest.mark.parametrize("method", METHODS)
def test_depth_keeps_the_best_and_their_scores(method):
    whole = fuse([A, B, C], method, **train(method))
    cut = fuse([A, B, C], method, depth=2, **train(method))
    assert all(cut[topic] == whole[topic][:2] for topic in whole.topics)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_says_what_it_is(method):
    cls = type(CLASSES.named(method))
    assert about(cls).endswith(".")
    assert cls.formula
    assert cls.reference
    assert str(CLASSES.named(str(cls()))) == str(cls())
    assert all(number.meaning for number in cls.parameters.values())


@pytest.mark.parametrize("norm", list(NORMS))
def test_a_normalisation_says_what_it_is(norm):
    assert about(NORMS[norm]).endswith(".")
    assert NORMS[norm].formula


NAMES = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=3)
ranking = st.dictionaries(NAMES, st.integers(-3, 3).map(float), min_size=1, max_size=6)


@given(
    st.lists(st.dictionaries(st.sampled_from("12"), ranking, min_size=1), min_size=2, max_size=4),
    st.sampled_from(METHODS),
)
def test_odd_ids_and_many_ties_keep_the_promises(runs, method):
    qrels = {topic: dict.fromkeys(documents, 1) for run in runs for topic, documents in run.items()}
    given_ = {"train": qrels} if CLASSES.named(method).trained else {}
    there = fuse(runs, method, **given_).to_dict()
    back = fuse(runs[::-1], method, **given_).to_dict()
    assert there == back
    # as bytes: half a surrogate pair comes back as three escaped bytes, which are the same id
    assert {topic: set(map(encode, documents)) for topic, documents in there.items()} == {
        topic: {encode(document) for run in runs for document in run.get(topic, {})} for topic in there
    }


# examples to work by hand


def test_reciprocal_rank_fusion_by_hand():
    fused = fuse([{"q": {"x": 9, "y": 8}}, {"q": {"y": 1}}], "RRF").to_dict()["q"]
    assert fused == {"x": 1 / 61, "y": 1 / 61 + 1 / 62}


def test_the_comb_family_by_hand():
    runs = [{"q": {"x": 4, "y": 3, "z": 0}}, {"q": {"y": 10, "w": 5, "z": 0}}]  # 1 .75 0 and 1 .5 0
    expected = {
        "CombSUM": {"x": 1, "y": 1.75, "z": 0, "w": 0.5},
        "CombMNZ": {"x": 1, "y": 3.5, "z": 0, "w": 0.5},
        "CombANZ": {"x": 1, "y": 0.875, "z": 0, "w": 0.5},
        "CombMAX": {"x": 1, "y": 1, "z": 0, "w": 0.5},
        "CombMIN": {"x": 1, "y": 0.75, "z": 0, "w": 0.5},
        "CombMED": {"x": 1, "y": 0.875, "z": 0, "w": 0.5},
    }
    assert {method: fuse(runs, method).to_dict()["q"] for method in expected} == expected


def test_weights_by_hand():
    runs = [{"q": {"x": 4, "z": 0}}, {"q": {"y": 10, "z": 0}}]
    assert fuse(runs, "w-sum", weights=[0.3, 0.7]).to_dict()["q"] == {"x": 0.3, "z": 0, "y": 0.7}
    assert fuse(runs, "RRF(k=0)", weights=[1, 2]).to_dict()["q"] == {"x": 1, "z": 1.5, "y": 2}


def test_borda_by_hand():
    fused = fuse([{"q": {"x": 3, "y": 2}}, {"q": {"z": 3, "x": 2}}], "Borda").to_dict()["q"]
    assert fused == {"x": 3 + 2, "y": 2 + 1, "z": 1 + 3}


def test_condorcet_by_hand():
    runs = [{"q": {"a": 3, "b": 2, "c": 1}}, {"q": {"b": 3, "a": 2, "c": 1}}, {"q": {"a": 3, "c": 2}}]
    assert fuse(runs, "Condorcet").to_dict()["q"] == {"a": 2, "b": 1, "c": 0}


@pytest.mark.parametrize("runs", [2, 3, 130])
def test_condorcet_s_wins_against_exact_counting(runs):
    draw = random.Random(runs)
    lists = [draw.sample("abcdefgh", draw.randint(1, 8)) for _ in range(runs)]
    place = [{d: one.index(d) if d in one else 99 for d in "abcdefgh"} for one in lists]
    seen = {d for one in lists for d in one}
    lead = {x: {y: sum((p[x] < p[y]) - (p[x] > p[y]) for p in place) for y in seen - {x}} for x in seen}
    wins = {x: sum(1.0 if by > 0 else 0.5 if by == 0 else 0.0 for by in lead[x].values()) for x in seen}
    fused = fuse([{"q": {d: -i for i, d in enumerate(one)}} for one in lists], "Condorcet")
    assert fused.to_dict()["q"] == wins


@pytest.mark.parametrize("kind", [np.int16, np.int32])
def test_condorcet_s_wins_are_the_same_whatever_ranks_are_kept_in(kind, monkeypatch):
    ranks = sys.modules[
        "cranfield.retrieval.fusion.method"
    ]  # loaded with the registry; the package's name is that of its function
    last = np.iinfo(kind).max
    place = np.array([[1, 2, last, 3, last], [2, 1, 3, last, last], [last, last, 1, 2, 3]], kind)
    for block in (1, 1 << 19):
        monkeypatch.setattr(ranks, "BLOCK", block)
        assert ranks._wins(place).tolist() == [3.5, 3.5, 2.0, 1.0, 0.0]


def test_a_document_that_beats_all_others_comes_first_against_exact_counting():
    draw = random.Random(5)
    found = 0
    for _ in range(200):
        runs = [draw.sample("abcdef", draw.randint(2, 6)) for _ in range(draw.choice([2, 3, 5]))]
        place = [{d: r.index(d) if d in r else 99 for d in "abcdef"} for r in runs]
        seen = sorted({d for r in runs for d in r})
        beats = {(x, y): sum(p[x] < p[y] for p in place) > sum(p[y] < p[x] for p in place) for x in seen for y in seen}
        winners = [x for x in seen if all(beats[x, y] for y in seen if y != x)]
        fused = fuse([{"q": {d: -i for i, d in enumerate(r)}} for r in runs], "Condorcet")
        if winners:
            found += 1
            assert order(fused, "q")[0] == winners[0]
    assert found > 50


def test_slidefuse_by_hand():
    runs = [{"1": {"a": 2, "b": 1}, "2": {"c": 2, "d": 1}}, {"1": {"b": 1}, "2": {"d": 1}}]
    qrels = {
        "1": {"a": 1},
        "2": {"d": 1},
    }  # the first run is right at rank 1 and rank 2 half the time, so is the second
    fused = fuse(runs, "SlideFuse(window=0)", train=qrels).to_dict()
    assert fused == {"1": {"a": 0.5, "b": 1.0}, "2": {"c": 0.5, "d": 1.0}}


def test_weighted_agreement_by_hand():
    runs = [{"q": {"x": 4, "y": 3, "z": 0}}, {"q": {"y": 10, "w": 5, "z": 0}}]  # 1 .75 0 and 1 .5 0
    weights = [0.2, 0.8]
    assert fuse(runs, "CombGMNZ(gamma=2)").to_dict()["q"] == {"x": 1, "y": 4 * 1.75, "z": 0, "w": 0.5}
    assert fuse(runs, "CombGMNZ(gamma=0)").to_dict() == fuse(runs, "CombSUM").to_dict()
    assert fuse(runs, "CombGMNZ").to_dict() == fuse(runs, "CombMNZ").to_dict() == fuse(runs, "WMNZ").to_dict()
    assert fuse(runs, "WMNZ", weights=weights).to_dict()["q"] == {"x": 0.2, "y": 1.75, "z": 0, "w": 0.4}
    mixed = fuse(runs, "Mixed", weights=weights).to_dict()["q"]
    assert mixed == pytest.approx({"x": 0.2, "y": np.sqrt(2) * (0.2 * 0.75 + 0.8), "z": 0, "w": 0.4})


def test_distances_are_turned_round_by_hand():
    near = [{"q": {"x": 1.0, "y": 2.0, "z": 5.0}}, {"q": {"y": 0.0, "x": 8.0}}]
    assert fuse(near, "CombSUM", norm="min-max-inverted").to_dict()["q"] == {"x": 1.0, "y": 0.75 + 1.0, "z": 0.0}


def test_weighted_condorcet_by_hand():
    runs = [{"q": {"a": 2, "b": 1}}, {"q": {"b": 2, "a": 1}}, {"q": {"b": 2, "a": 1}}]
    assert fuse(runs, "Condorcet").to_dict()["q"] == {"a": 0, "b": 1}
    assert fuse(runs, "Condorcet", weights=[5, 2, 2]).to_dict()["q"] == {"a": 1, "b": 0}
    assert fuse(runs, "Condorcet", weights=[0.3, 0.1, 0.2]).to_dict()["q"] == {"a": 0.5, "b": 0.5}  # 0.1 + 0.2 is 0.3


def test_posfuse_is_slidefuse_without_a_window():
    runs = [A, B, C]
    there = fuse(runs, "PosFuse", train=QRELS).to_dict()
    assert there == fuse(runs, "SlideFuse(window=0)", train=QRELS).to_dict()


def test_probfuse_by_hand():
    runs = [{"1": {"a": 4, "b": 3, "c": 2, "d": 1}, "2": {"e": 2, "f": 1}}, {"1": {"d": 1}, "2": {"f": 1}}]
    qrels = {"1": {"a": 1, "c": 1, "d": 1}, "2": {"f": 1}}
    # two segments: the first run has 1/2 and 1 in topic 1, 0 and 1 in topic 2: means 1/4 and 1; the second 1 and nothing
    fused = fuse(runs, "ProbFuse(segments=2)", train=qrels).to_dict()
    assert fused == {"1": {"a": 0.25, "b": 0.25, "c": 0.5, "d": 0.5 + 1}, "2": {"e": 0.25, "f": 0.5 + 1}}


def test_segfuse_by_hand():
    documents = [f"d{i}" for i in range(1, 8)]
    runs = [{"1": {d: 10.0 - i for i, d in enumerate(documents, 1)}}, {"1": {"d7": 1.0}}]
    qrels = {"1": {"d1": 1, "d7": 1}}
    fused = fuse(runs, "SegFuse", train=qrels).to_dict()["1"]
    # ranks 1 to 5 hold one relevant document of five, 6 to 15 one of ten; scores go from 1 down to 0 in sixths
    expected = {d: (0.2 if i <= 5 else 0.1) * (2 - (i - 1) / 6) for i, d in enumerate(documents, 1)}
    expected["d7"] += 0.2 * 2
    assert fused == pytest.approx(expected)


def test_bayesfuse_by_hand():
    runs = [{"1": {"a": 2, "b": 1}}, {"1": {"c": 1}}]
    fused = fuse(runs, "BayesFuse", train={"1": {"a": 1}}).to_dict()["1"]
    first, unseen = np.log(0.2 / 0.8), np.log(0.001 / 0.999)  # one of the first five ranks; none
    assert fused == pytest.approx({"a": first + unseen, "b": first + unseen, "c": 2 * unseen})


def test_segments_that_are_learnt_from_ranks_refuse_a_norm_that_turns_them():
    with pytest.raises(ConventionError, match="SegFuse learns from ranks, which min-max-inverted turns round"):
        fuse([A, B], "SegFuse", norm="min-max-inverted", train=QRELS)


@pytest.mark.parametrize("method", [name for name, cls in CLASSES.items() if cls.takes_weights])
def test_weights_of_every_method_that_takes_them_are_tuned_to_the_best_of_the_grid(method):
    found = tune([A, B, C], QRELS, "AP", method=method, step=0.5)
    grid = [(i / 2, j / 2, (2 - i - j) / 2) for i in range(3) for j in range(3 - i)]
    scores = [float(cranfield.evaluate(QRELS, fuse([A, B, C], method, weights=weights), "AP")) for weights in grid]
    assert found.tried == len(grid) == 6
    assert found.score == pytest.approx(max(scores))


def test_mapfuse_by_hand():
    runs = [{"1": {"a": 2, "b": 1}}, {"1": {"b": 2, "a": 1}}]
    assert fuse(runs, "MAPFuse", train={"1": {"a": 1}}).to_dict()["1"] == {"a": 1 + 0.5 / 2, "b": 1 / 2 + 0.5}


@pytest.mark.parametrize(("norm", "expected"), [("min-max", 1.0), ("sum", 0.5), ("z", 0.0), ("rank", None)])
def test_equal_scores_become_what_the_normalisation_says(norm, expected):
    fused = fuse([{"q": {"x": 7, "y": 7}}, {"q": {"w": 1}}], "CombMAX", norm=norm).to_dict()["q"]
    assert [fused["x"], fused["y"]] == ([expected] * 2 if expected is not None else [0.5, 1.0])


# training


def test_mapfuse_learns_the_map_that_evaluate_computes():
    method = CLASSES.named("MAPFuse")
    runs = [cranfield.read_run(EXAMPLES / "bm25.run"), cranfield.read_run(EXAMPLES / "dense.run")]
    fuse(runs, method, train=EXAMPLES / "qrels.txt")
    expected = [cranfield.evaluate(EXAMPLES / "qrels.txt", run, "AP").mean("AP") for run in runs]
    np.testing.assert_allclose(method.maps, expected)


def test_tuned_weights_score_best_of_the_grid_against_exact_enumeration():
    runs = [EXAMPLES / "bm25.run", EXAMPLES / "dense.run"]
    found = tune(runs, EXAMPLES / "qrels.txt", "AP", step=0.25)
    every = [
        float(cranfield.evaluate(EXAMPLES / "qrels.txt", fuse(runs, "w-sum", weights=[i / 4, 1 - i / 4]), "AP"))
        for i in range(5)
    ]
    assert found.score == max(every)
    assert found.tried == 5
    assert found.weights[0] == every.index(max(every)) / 4


def test_many_runs_are_tuned_one_coordinate_at_a_time_and_reach_at_least_equal_weights():
    rng = np.random.default_rng(3)
    qrels = {str(t): {f"d{i}": int(i < 3) for i in range(12)} for t in range(6)}
    runs = [
        {str(t): {f"d{i}": float(rng.normal() + good * (i < 3)) for i in range(12)} for t in range(6)}
        for good in (0, 0.2, 0.5, 1, 2)
    ]
    found = tune(runs, qrels, "AP")
    equal = float(cranfield.evaluate(qrels, fuse(runs, "CombSUM"), "AP"))
    assert found.score >= equal
    assert sum(found.weights) == pytest.approx(1)
    assert found.tried < 500


def test_folds_never_let_a_topic_s_own_judgments_touch_its_ranking():
    runs, qrels = [A, B, C], QRELS
    for method in [name for name, cls in CLASSES.items() if cls.trained or cls.needs_weights]:
        before = fuse_trained(runs, method, qrels, folds=3).run.to_dict()
        for topic in qrels:
            other = {**qrels, topic: {"zzz": 1}}  # the topic's judgments turned into something else
            assert fuse_trained(runs, method, other, folds=3).run.to_dict()[topic] == before[topic]


def test_training_topics_limit_what_is_learnt():
    one = fuse([A, B, C], "MAPFuse", train=QRELS, train_topics=["3"]).to_dict()
    assert one["1"]["c"] == pytest.approx(1.0 / 3)  # only the first run finds topic 3's document at rank 1
    assert fuse([A, B, C], "MAPFuse", train=QRELS).to_dict() != one


# refusals


def test_a_document_twice_in_a_topic_is_refused():
    twice = cranfield.read_run(b"1 Q0 a 1 2 x\n1 Q0 a 2 1 x\n")
    with pytest.raises(DuplicateError, match="document 'a' occurs twice for topic '1'"):
        fuse([twice, A], "RRF")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "nonsense"}, "no fusion method 'nonsense'; there are CombSUM"),
        ({"method": "RRF(k=-1)"}, "RRF: k must be 0 or more, got -1"),
        ({"method": "RRF(j=1)"}, "RRF: no parameter 'j'; it has k"),
        ({"method": "RBC(phi=1)"}, "RBC: phi must be between 0 and 1, ends excluded, got 1"),
        ({"method": "SlideFuse(window=0.5)"}, "window must be a whole number"),
        ({"method": "RRF", "norm": "z"}, "RRF reads ranks"),
        ({"method": "CombSUM", "norm": "zz"}, "no normalisation 'zz'; there are none, min-max"),
        ({"method": "CombMNZ", "weights": [1, 2]}, "CombMNZ takes no weights"),
        ({"method": "CombSUM", "weights": [1]}, "expected 2 weights, one per run"),
        ({"method": "MAPFuse"}, "MAPFuse learns from judgments"),
        ({"depth": 0}, "depth must be 1 or more"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(arguments, message):
    with pytest.raises(ConventionError) as caught:
        fuse([A, B], **arguments)
    assert message in str(caught.value)


def test_scores_that_cannot_be_normalised_are_refused_with_their_place():
    with pytest.raises(DataError, match="topic '1': max needs a highest score above 0, found -1"):
        fuse([A, C], "CombSUM", norm="max")
    with pytest.raises(DataError, match="needs finite scores, found inf"):
        fuse([A, {"1": {"a": float("inf")}}], "CombSUM")
    assert order(fuse([A, {"1": {"d": float("inf")}}], "RRF(k=0)"), "1")[0] == "d"


def test_one_run_is_too_few():
    with pytest.raises(DataError, match="two runs or more, found 1"):
        fuse(A)


# the command


def test_the_command_writes_a_run_that_reads_back(tmp_path):
    answer = shell(
        "fuse", "bm25.run", "dense.run", "--method", "combmnz", "--norm", "z", "-k", 3, "-o", tmp_path / "f.run"
    )
    assert answer.code == 0, answer.err
    assert "fused" not in answer.out
    expected = fuse([EXAMPLES / "bm25.run", EXAMPLES / "dense.run"], "CombMNZ", norm="z", depth=3)
    assert cranfield.read_run(tmp_path / "f.run").to_dict() == {t: dict(expected[t]) for t in expected.topics}
    assert cranfield.read_run(tmp_path / "f.run").tag == "CombMNZ"


def test_the_command_says_what_it_learnt(tmp_path):
    given_ = ("--method", "w-sum", "--train-qrels", "qrels.txt", "--measure", "nDCG@10", "-o", tmp_path / "f.run")
    answer = shell("fuse", "bm25.run", "dense.run", *given_)
    assert answer.code == 0, answer.err
    assert "weights: bm25 " in answer.err
    assert "nDCG@10" in answer.err
    assert "7 of 7 topics were trained on" in answer.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("bm25.run",), 2, "two runs or more"),
        (("bm25.run", "dense.run", "--method", "w-sum"), 2, "w-sum needs weights"),
        (("bm25.run", "dense.run", "--folds", "2"), 2, "--train-qrels"),
        (("bm25.run", "dense.run", "--weights", "1,x"), 2, "--weights expects numbers"),
        (("bm25.run", "missing.run"), 3, "missing.run"),
    ],
)
def test_the_command_refuses_and_writes_nothing(arguments, code, message, tmp_path):
    answer = shell("fuse", *arguments, "-o", tmp_path / "f.run")
    assert answer.code == code
    assert message in answer.err
    assert not (tmp_path / "f.run").exists()


def test_the_list_of_methods_is_complete():
    listed = json.loads(shell("fuse", "--list", "--format", "json").out)
    assert [row["usage"].split("(")[0] for row in listed["methods"]] == METHODS
    assert [row["usage"] for row in listed["normalisations"]] == list(NORMS)
    assert f"It is one of {', '.join(METHODS)};" in " ".join(shell("fuse", "--help-all").out.split())


def test_a_name_that_is_no_utf_8_is_written_with_the_bytes_it_was_typed_with(tmp_path) -> None:
    fused = fuse([{"q": {"d": 1.0}}, {"q": {"d": 2.0}}], name="\udcff")
    write_run(fused, tmp_path / "fused.run")
    assert (tmp_path / "fused.run").read_bytes().endswith(b" \xff\n")

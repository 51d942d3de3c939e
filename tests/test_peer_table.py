"""Peer × measure: under a program's preset each of its measures has the number of the program that is installed.

Runs and judgments are chosen to be awkward (`WORLDS`). Where the numbers differ, or the program stops, the scores say
so: a cell of `DIFFERENT` names the worlds and the words. Nothing else may differ. ranx, BEIR and torchmetrics bring
numba and torch along, so that they run in `make test-all` only.
"""

from __future__ import annotations

import copy
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cranfield import evaluate, explain, explain_as
from cranfield.evaluation.measures import measure
from cranfield.evaluation.presets import PEERS
from oracles import per_topic, proves
from shell import cranfield as shell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cranfield import Scores

Qrels = dict[str, dict[str, int]]
Answers = dict[str, dict[str, float]]


def world(*oddities: str, seed: int, documents: int = 14, topics: int = 8) -> tuple[Qrels, Answers]:
    """Topics of ten judged documents each, four more to return, and the oddities named."""
    rng = np.random.default_rng(seed)
    qrels: Qrels = {}
    run: Answers = {}
    for t in range(topics):
        topic = str(101 + t)
        names = [f"d{d}" for d in rng.permutation(documents).tolist()]
        grades = rng.choice([-2, -1, 0, 0, 1, 1, 2, 3] if "negative" in oddities else [0, 0, 1, 1, 2, 3], 10)
        grades[:3] = 0, 1, 2
        if "barren" in oddities and t in (2, 5):
            grades = np.minimum(grades, 0)
        qrels[topic] = dict(zip(names, grades.tolist(), strict=False))
        returned = rng.permutation(documents)[: None if documents > 14 else rng.integers(7, documents + 1)]
        scores = rng.integers(1, 5, len(returned)) / 4 if "ties" in oddities else rng.permutation(len(returned)) + 0.5
        scores = 1 + scores * 1e-10 if "close" in oddities else scores
        run[topic] = {names[d]: float(score) for d, score in zip(returned.tolist(), scores, strict=True)}
        if "own" in oddities and t % 2:
            run[topic] = {topic: 99.0} | run[topic]
            qrels[topic][topic] = t % 3
    for place, topic in enumerate(list(run)):
        if "missing" in oddities and place in (1, 4):
            del run[topic]
        elif "empty" in oddities and place in (3, 6):
            run[topic] = {}
    if "own" in oddities:
        run["108"] = {"108": 1.0}
    if "stranger" in oddities:
        run["999"] = {"d1": 1.0}
    return qrels, run


EVERYTHING = "ties missing empty barren negative stranger".split()
WORLDS = {
    name: world(*oddities, seed=seed)
    for seed, (name, oddities) in enumerate(
        {
            **{name: [name] for name in "plain ties missing empty barren negative close own stranger".split()},
            "everything": EVERYTHING,
        }.items()
    )
}
WORLDS["long"] = world(seed=99, documents=1200, topics=2)


# what may differ: preset → measure (as typed, or its class) → worlds, and words of the note that says so

Cells = dict[str, tuple[tuple[str, ...], str]]
ANY = tuple(WORLDS)
DIFFERENT: dict[str, Cells] = {
    "ir_measures": {
        "RBP(p=0.999,rel=1)": (ANY, "reads no further than rank 1,000"),
        "Judged": (("empty", "everything"), "stops at an empty answer"),
        "IPrec": (("empty", "everything"), "gives no number (NaN) to an empty answer"),
        "Accuracy": (ANY, "stops at a list of nothing but relevant documents"),
        "NumRel(rel=2)": (ANY, "gives no number for another rel than 1"),
        "RR(judged_only=True)@2": (ANY, "gives no number for judged_only with a cut-off"),
    },
    **{
        version: {"IPrec": (("empty", "everything"), "gives no number (NaN) to an empty answer")}
        for version in ("trec_eval-9", "trec_eval-10")
    },
    "beir": {
        "RR": (("stranger", "everything"), "stops at a topic that is not judged"),
        "Success": (("stranger", "everything"), "stops at a topic that is not judged"),
        "RelativeP": (("stranger", "barren", "everything"), "stops at a topic"),
    },
    "ranx": {
        "Bpref": (("barren",), "gives 0 to a topic without relevant documents and to all after it"),
        "any": (("stranger", "everything"), "stops at a topic that is not judged"),
    },
    "torchmetrics": {
        "nDCG": (("negative", "everything"), "takes a negative grade for a loss"),
        **dict.fromkeys(("P", "R", "RR", "Rprec", "Success", "AP"), (("ties", "close", "everything"), "order of ties")),
    },
    "scikit-learn": {"any": (("negative", "everything"), "refuses negative grades")},
}


def tabled(preset: str, name: str, where: str) -> str:
    """The words of the cell in which a difference is expected; empty if none is."""
    cells = DIFFERENT.get(preset, {})
    for key in (name, measure(name, preset=preset).name, "any"):
        if key in cells and where in cells[key][0]:
            return cells[key][1]
    return ""


def check(preset: str, name: str, where: str, theirs: Callable[[], float], within: float, data: Any = None) -> None:
    """The preset has the program's number, or the table and the notes say that it has not."""
    qrels, run = WORLDS[where] if data is None else data
    words = tabled(preset, name, where)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numba's, while it compiles ranx for the first time
            expected = theirs()
    except Exception:
        if not words:  # only a cell of the table may stop
            raise
        expected = math.nan
    scores = evaluate(qrels, run, [name], conventions=preset, warn=False)
    if words:
        assert any(words in note for note in scores.notes()), (name, where, scores.notes())
    if not words or (
        words.startswith(("stops", "gives no number")) and not math.isnan(expected)
    ):  # one that did not stop has our number
        assert scores.mean() == pytest.approx(expected, abs=within), (name, where)


def differing(preset: str) -> set[str]:
    """What the rules of a preset say of differences, of all measures that it has a rule for."""
    peer = PEERS[preset]
    rules = (peer.rules or {}).values()
    return {each.words for rule in rules for each in rule.differs} | {each.words for each in peer.differs}


# ir_measures, with all its providers: pytrec_eval, cwl_eval, gdeval, pyndeval and its own

IR_MEASURES = """
AP AP@5 AP(rel=2) AP(judged_only=True) nDCG nDCG@5 nDCG(judged_only=True)@5 nDCG(gains={1:5,2:7})@5 P@5 P(rel=2)@5
P(judged_only=True)@5 R@5 R(rel=2)@5 RR RR@3 RR(rel=2) Rprec Rprec(rel=2) Bpref Bpref(rel=2) infAP Success@2 SetP SetR SetF
SetF(beta=2.0) SetF(beta=0.5) SetAP SetP(relative=True) NumQ NumRel NumRet NumRet(rel=1) NumRelRet IPrec@0.0 IPrec@0.1 IPrec@0.6
Judged Judged@5 RBP(rel=1) RBP(rel=2,p=0.5) RBP(p=0.999,rel=1) Accuracy Accuracy@5 Accuracy(rel=2)
INSQ(max_rel=3) INSQ(T=0.5,max_rel=2) INST(max_rel=3) INST(T=2.0,max_rel=3) SDCG(max_rel=3)@5 NERR8(max_rel=3)@5
NERR9(max_rel=3)@5 NERR10(max_rel=3) NERR10(p=0.5,max_rel=3) NERR11(max_rel=3) NERR11(T=2.0,max_rel=3) BPM(max_rel=3)@5
BPM(T=2.0,max_rel=3)@10
""".split()
NO_PROVIDER = ["NumRel(rel=2)", "RR(judged_only=True)@2"]  # it reads these and computes them nowhere
WITH_PERL = ["ERR@5", "ERR@20", "nDCG(dcg='exp-log2')@5"]  # gdeval, one process a measure, prints 5 decimals


def ir_measures_mean(name: str, qrels: Qrels, run: Answers) -> float:
    import ir_measures

    asked = ir_measures.parse_measure(name)
    [value] = ir_measures.calc_aggregate([asked], qrels, run).values()
    return float(value)


@proves("Accuracy", "BPM", "INSQ", "INST", "NERR10", "NERR11", "NERR8", "NERR9", "NumQ", "NumRel", "SDCG", "SetF")
@pytest.mark.parametrize("where", WORLDS)
def test_every_measure_with_the_preset_ir_measures_against_ir_measures(where: str) -> None:
    qrels, run = WORLDS[where]
    for name in [*IR_MEASURES, *NO_PROVIDER]:
        check("ir_measures", name, where, lambda name=name: ir_measures_mean(name, qrels, run), 1e-12)  # type: ignore[misc]


@pytest.mark.parametrize("where", ["ties", "close", "everything"])
def test_measures_that_ir_measures_leaves_to_gdeval_against_ir_measures(where: str) -> None:
    import shutil

    if not shutil.which("perl"):
        pytest.skip("gdeval needs perl")
    qrels, run = WORLDS[where]
    for name in WITH_PERL:
        check("ir_measures", name, where, lambda name=name: ir_measures_mean(name, qrels, run), 6e-6)  # type: ignore[misc]


def test_every_measure_that_ir_measures_has_is_in_the_table() -> None:
    import ir_measures

    elsewhere = {"Compat"}  # its ideal list has an order of its own: test_oracle_preferences.py
    elsewhere |= {"alpha_nDCG", "alpha_DCG", "AP_IA", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "P_IA", "StRecall"}
    same = {"MAP", "MRR", "NDCG", "RPrec", "BPref", "Precision", "Recall", "SetRelP", "NumRelRet", "MAP_IA"}
    known = {type(m) for m in vars(ir_measures.measures).values() if isinstance(m, ir_measures.measures.Measure)}
    names = {cls.NAME for cls in known} - elsewhere - same - {"α_DCG", "α_nDCG"}
    assert names <= {text.partition("(")[0].partition("@")[0] for text in [*IR_MEASURES, *WITH_PERL]}


def test_ties_keep_the_order_given_in_measures_that_ir_measures_leaves_to_cwl_eval() -> None:
    """The case that was seen: INSQ of a tie, the relevant document given first."""
    import ir_measures

    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}
    for name in ("INSQ(max_rel=1)", "INST(max_rel=1)", "SDCG(max_rel=1)@2", "NERR8(max_rel=1)@2", "NERR11(max_rel=1)"):
        [theirs] = ir_measures.calc_aggregate([ir_measures.parse_measure(name)], qrels, run).values()
        assert evaluate(qrels, run, name, conventions="ir_measures").mean() == pytest.approx(theirs)
        assert evaluate(qrels, run, name).mean() < theirs - 0.05
        assert explain_as(qrels, run, name)["ir_measures"] == pytest.approx(theirs)


def test_accuracy_leaves_out_topics_under_the_preset_only_against_ir_measures() -> None:
    qrels, run = {"1": {"a": 1}, "2": {"a": 1}, "3": {"a": 1}}, {"1": {"a": 2.0, "b": 1.0}, "2": {"b": 1.0}}
    assert evaluate(qrels, run, "Accuracy").mean() == pytest.approx(1 / 3)
    theirs = ir_measures_mean("Accuracy", qrels, run)
    assert evaluate(qrels, run, "Accuracy", conventions="ir_measures").mean() == theirs == 1
    assert explain_as(qrels, run, "Accuracy")["ir_measures"] == 1


# pytrec_eval: the measures of trec_eval 9

NOT_OURS = {"runid", "relstring"}  # no numbers
SUMMARIES = {"gm_map", "gm_bpref"}  # a topic's value is its logarithm there


@proves("G", "Rndcg", "RelativeP", "RprecMult", "binG", "nDCGrel")
@pytest.mark.parametrize("where", WORLDS)
def test_every_measure_of_pytrec_eval_with_the_preset_trec_eval_9(where: str) -> None:
    import pytrec_eval

    qrels, run = WORLDS[where]
    theirs = pytrec_eval.RelevanceEvaluator(qrels, pytrec_eval.supported_measures - NOT_OURS).evaluate(run)
    names = sorted(next(iter(theirs.values())))
    ours = evaluate(qrels, run, names, conventions="trec_eval-9", warn=False)
    assert set(per_topic(ours)) == set(theirs)
    for name in names:
        if name in SUMMARIES:
            mean = pytrec_eval.compute_aggregated_measure(name, [row[name] for row in theirs.values()])
            assert ours.mean(name) == pytest.approx(mean, abs=1e-12), (name, where)
            continue
        for topic, row in theirs.items():
            if math.isnan(row[name]):  # recall levels of an empty list, which the scores say
                assert any("gives no number (NaN) to an empty answer" in words for words in ours.differences[name])
                continue
            assert per_topic(ours)[topic][name] == pytest.approx(row[name], abs=1e-12), (name, topic)
    assert bool(ours.differences) == (where in ("empty", "everything"))


# scikit-learn: documents that are all judged and all returned


def passed(where: str) -> tuple[Qrels, Answers]:
    """The same with every judged document returned, as programs have it that know no other; all scores above 0."""
    qrels, run = WORLDS[where]
    whole: Answers = {}
    for topic, judged in qrels.items():
        returned = {d: score + 1 for d, score in run.get(topic, {}).items() if d in judged}
        whole[topic] = returned | {d: 0.5 / (i + 2) for i, d in enumerate(judged) if d not in returned}
    return qrels, whole


@pytest.mark.parametrize("where", [name for name in WORLDS if name != "long"])
def test_every_measure_of_scikit_learn_has_its_number_under_its_preset(where: str) -> None:
    from sklearn.metrics import dcg_score, ndcg_score

    qrels, run = data = passed(where)

    def theirs(score: Any, k: int | None) -> float:
        values = [score([list(qrels[topic].values())], [[run[topic][d] for d in qrels[topic]]], k=k) for topic in qrels]
        return float(np.mean(values))

    for name, score in (("nDCG", ndcg_score), ("DCG", dcg_score)):
        for k in (None, 3):
            text = name if k is None else f"{name}@{k}"
            if name == "DCG" and tabled("scikit-learn", name, where):
                continue  # its dcg_score takes what its ndcg_score refuses
            check("scikit-learn", text, where, lambda score=score, k=k: theirs(score, k), 1e-12, data)  # type: ignore[misc]


# BEIR, ranx and torchmetrics themselves: make test-all


@pytest.mark.slow
@pytest.mark.parametrize("where", WORLDS)
def test_every_measure_of_beir_has_its_number_under_its_preset_against_beir(where: str) -> None:
    evaluation = pytest.importorskip("beir.retrieval.evaluation", reason="needs the extra `peers`")
    program = evaluation.EvaluateRetrieval
    qrels, run = WORLDS[where]
    results, ks = copy.deepcopy(run), [1, 3, 5, 20]
    values: dict[str, float] = {}
    for part in program.evaluate(qrels, results, ks):  # takes each topic's own id out of `results`
        values |= part
    custom = {"mrr": "MRR", "r_cap": "R_cap", "hole": "Hole", "acc": "Accuracy"}
    for asked, spelt in custom.items():
        try:
            values |= program.evaluate_custom(qrels, results, ks, asked)
        except (KeyError, ZeroDivisionError):
            values |= {f"{spelt}@{k}": math.nan for k in ks}
    for name, value in values.items():
        check("beir", name, where, lambda value=value: value, 5.1e-6)  # type: ignore[misc]


RANX = "hits hit_rate precision recall f1 r-precision mrr map dcg dcg_burges ndcg ndcg_burges bpref".split()
WITH_CUT = [f"{name}@3" for name in RANX if name not in ("r-precision", "bpref")]
RANX_NAMES = [f"{name}{level}" for name in (*RANX, *WITH_CUT, "rbp.80", "rbp@95") for level in ("", "-l2")]


@pytest.mark.slow
@pytest.mark.parametrize("where", [name for name in WORLDS if name not in ("missing", "long")])
def test_every_measure_of_ranx_has_its_number_under_its_preset_against_ranx(where: str) -> None:
    ranx = pytest.importorskip("ranx", reason="needs the extra `peers`")
    qrels, run = WORLDS[where]
    if where == "everything":  # ranx stops at a topic that the run lacks, and so does its preset
        qrels = {topic: judged for topic, judged in qrels.items() if topic in run}
    for name in RANX_NAMES:

        def theirs(name: str = name) -> float:
            return float(ranx.evaluate(ranx.Qrels(copy.deepcopy(qrels)), ranx.Run(copy.deepcopy(run)), name))

        check("ranx", name, where, theirs, 1e-12, (qrels, run))


@pytest.mark.slow
@pytest.mark.parametrize("where", [name for name in WORLDS if name != "long"])
def test_every_measure_of_torchmetrics_has_its_number_under_its_preset_against_torchmetrics(where: str) -> None:
    retrieval = pytest.importorskip("torchmetrics.retrieval", reason="needs the extra `peers`")
    torch = pytest.importorskip("torch", reason="needs the extra `peers`")
    qrels, run = data = passed(where)
    metrics = {
        "P@3": retrieval.RetrievalPrecision(top_k=3),
        "R@3": retrieval.RetrievalRecall(top_k=3),
        "RR": retrieval.RetrievalMRR(),
        "RR@2": retrieval.RetrievalMRR(top_k=2),
        "Rprec": retrieval.RetrievalRPrecision(),
        "Success@2": retrieval.RetrievalHitRate(top_k=2),
        "AP": retrieval.RetrievalMAP(),
        "AP@3": retrieval.RetrievalMAP(top_k=3),
        "nDCG": retrieval.RetrievalNormalizedDCG(),
        "nDCG@3": retrieval.RetrievalNormalizedDCG(top_k=3),
    }
    rows = [(t, score, qrels[topic][d]) for t, topic in enumerate(qrels) for d, score in run[topic].items()]
    topics, scores, grades = (torch.tensor(column) for column in zip(*rows, strict=True))
    for name, metric in metrics.items():
        metric.update(scores, grades if "nDCG" in name else (grades > 0).long(), topics)
        check("torchmetrics", name, where, lambda metric=metric: float(metric.compute()), 1e-6, data)  # type: ignore[misc]


# answered with nothing

ONE_EMPTY = {"q1": {"a": 1.0}, "q2": {}}
TWO_JUDGED = {"q1": {"a": 1}, "q2": {"b": 1}}


def empties() -> Iterator[Any]:
    """The same run in every form that can hold an empty list."""
    from cranfield import Run

    yield ONE_EMPTY
    yield Run(ONE_EMPTY)
    yield {"q1": ["a"], "q2": []}
    yield Run.from_arrays(["q1", "q2"], [["a"], [""]])


@pytest.mark.parametrize("run", list(empties()))
def test_an_empty_answer_is_an_answer_and_scores_0_under_every_preset(run: Any) -> None:
    """As in BEIR and ranx (recorded: .5), where a topic that the run lacks is left out, or stops the program."""
    for preset in ("cranfield", "beir", "trec_eval-9", "trec_eval-10", "ranx", "ir_measures", "gdeval"):
        scores = evaluate(TWO_JUDGED, run, "nDCG@10 P@1", conventions=preset)
        assert scores.means() == {"nDCG@10": 0.5, "P@1": 0.5}, preset
        assert scores.absent.missing == {}
        assert scores.absent.empty == {scores.runs[0]: ["q2"]}
        assert scores.counts().tolist() == [[2, 2, 0]]
        assert f"topic 'q2' is answered by {scores.runs[0]} with an empty list; it scores 0" in scores.notes()
    assert evaluate(TWO_JUDGED, {"q1": {"a": 1.0}}, "P@1", conventions="beir").mean() == 1


def test_an_empty_answer_scores_0_in_pytrec_eval() -> None:
    import pytrec_eval

    theirs = pytrec_eval.RelevanceEvaluator(TWO_JUDGED, {"map"}).evaluate(ONE_EMPTY)
    assert theirs == {"q1": {"map": 1}, "q2": {"map": 0}}
    assert per_topic(evaluate(TWO_JUDGED, ONE_EMPTY, "map", conventions="trec_eval-9")) == theirs


def test_a_topic_that_returned_nothing_but_itself_is_answered_as_in_beir(tmp_path: Path) -> None:
    """BEIR takes the topic's own id out and hands the empty rest to pytrec_eval, which scores it 0."""
    qrels, own = {"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 1.0}, "q2": {"q2": 1.0}}
    file = tmp_path / "own.run"
    file.write_text("q1 Q0 a 1 1 t\nq2 Q0 q2 1 1 t\n")
    for run in (own, file):
        assert evaluate(qrels, run, "nDCG@10", conventions="beir").mean() == 0.5


def test_an_empty_answer_in_a_json_file_is_kept_and_said_on_screen(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq2 0 b 1\n")
    (tmp_path / "a.json").write_text('{"q1": {"a": 1.0}, "q2": {}}')
    answer = shell("eval", "qrels.txt", "a.json", "-m", "P@1", "--as", "beir", folder=tmp_path)
    assert "0.5000" in answer.out
    assert "topic 'q2' is answered by a.json with an empty list; it scores 0" in answer.err + answer.out


# names


@pytest.mark.parametrize(
    ("typed", "meant"),
    {
        "precision": "SetP", "precision@5": "P@5", "precision-l2": "SetP(rel=2)", "precision@5-l2": "P(rel=2)@5",
        "recall": "SetR", "f1": "SetF", "f1@5-l3": "F(rel=3)@5", "hits": "NumRelRet", "hits@5-l2": "NumRelRet(rel=2)@5",
        "hit_rate": "Success", "hit_rate@5": "Success@5", "mrr-l2": "RR(rel=2)", "map": "AP", "map@5-l2": "AP(rel=2)@5",
        "ndcg": "nDCG", "ndcg-l2": "nDCG(lowest=2)", "ndcg_burges@10-l2": "nDCG(gain=exp2, lowest=2)@10",
        "r-precision-l2": "Rprec(rel=2)", "bpref-l2": "Bpref(rel=2)", "rbp.80-l2": "RBP(gain=grade, lowest=2)",
        "precision(rel=2)@5": "P(rel=2)@5",
    }.items(),
)  # fmt: skip
def test_names_of_ranx_without_a_cut_off_and_with_a_level_are_read(typed: str, meant: str) -> None:
    assert str(measure(typed)) == str(measure(typed, preset="ranx")) == meant
    assert measure(str(measure(typed))) == measure(typed)


def test_one_name_of_two_measures_means_what_the_preset_says_and_else_what_it_did() -> None:
    assert str(measure("rbp@80")) == "RBP(p=0.9, gain=topic)@80"  # trec_eval's rbp, cut at 80
    assert str(measure("rbp@80", preset="ranx")) == "RBP(gain=grade)"  # p = .80
    assert str(measure("Accuracy@5")) == "Accuracy@5"
    assert str(measure("Accuracy@5", preset="beir")) == "Success@5"
    qrels, run = {"q": {"a": 1, "b": 1}}, {"q": {"x": 3.0, "a": 2.0}}
    assert evaluate(qrels, run, "Accuracy@5", conventions="beir").mean() == 1
    assert explain_as(qrels, run, "Accuracy@5").to_dict()["as"]["beir"] == 1
    assert evaluate(qrels, run, "Accuracy@5").mean() == 0


def test_a_lowest_grade_gains_nothing_in_the_list_nor_in_the_ideal_worked_by_hand() -> None:
    qrels, run = {"q": {"a": 1, "b": 3, "c": 2}}, {"q": {"a": 3.0, "b": 2.0}}
    assert evaluate(qrels, run, "DCG(lowest=2)").mean() == pytest.approx(3 / np.log2(3))
    best = 3 + 2 / np.log2(3)
    assert evaluate(qrels, run, "ndcg-l2").mean() == pytest.approx(3 / np.log2(3) / best)
    table = "nDCG(gain={1:9,2:1,3:2}, lowest=2)"
    assert evaluate(qrels, run, [table]).mean() == pytest.approx(2 / np.log2(3) / (2 + 1 / np.log2(3)))
    assert evaluate(qrels, run, "RBP(p=0.5, gain=grade, lowest=2)").mean() == pytest.approx(0.5 * 3 * 0.5)


# what is said


def notes_of(name: str, preset: str, qrels: Any = TWO_JUDGED, run: Any = None) -> list[str]:
    scores: Scores = evaluate(qrels, run or {"q1": {"a": 1.0}, "q2": {"b": 1.0}}, name, conventions=preset)
    return scores.notes()


def test_a_measure_that_the_program_lacks_is_said_to_be_ours() -> None:
    assert notes_of("infAP", "ranx") == ["infAP: ranx has no such measure; the number is ours under its conventions"]
    assert notes_of("Rprec", "beir") == ["Rprec: beir has no such measure; the number is ours under its conventions"]
    assert notes_of("nDCG AP", "beir") == notes_of("infAP", "cranfield") == notes_of("infAP", "insertion-order") == []


def test_a_difference_is_said_where_the_data_have_it_and_not_elsewhere() -> None:
    words = "mrr: ranx leaves the order of ties open in lists of 16 documents and more"
    assert words not in notes_of("mrr", "ranx")
    assert words in notes_of("mrr", "ranx", run={"q1": {"a": 1.0, "b": 1.0}, "q2": {"b": 1.0}})
    told = explain(TWO_JUDGED, {"q1": {"a": 1.0, "b": 1.0}}, "mrr", "q1", conventions="ranx")
    assert words.partition(": ")[2] in told.notes()


def test_eval_says_on_screen_where_a_number_is_not_the_programs(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\n")
    (tmp_path / "a.run").write_text("q1 Q0 a 1 1 t\nq1 Q0 b 2 0.5 t\n")
    answer = shell("eval", "qrels.txt", "a.run", "-m", "RBP(p=0.99)", "--as", "ir_measures", folder=tmp_path)
    assert "ir_measures reads no further than rank 1,000" in answer.err + answer.out
    plain = shell("eval", "qrels.txt", "a.run", "-m", "RBP(p=0.9)", "--as", "ir_measures", folder=tmp_path)
    assert "rank 1,000" not in plain.err + plain.out


def test_every_difference_that_a_rule_names_has_a_cell_in_the_table() -> None:
    """But for those of one program that knows no other documents, which `passed` works around, and of score 0."""
    around = (
        "knows no other documents",
        "takes a document of score 0 or less",
        "orders ties of one grade in the ideal",
    )
    around += ("takes the score of what was not returned", "in lists of 16 documents", "gives no number (NaN) if all")
    for preset, cells in DIFFERENT.items():
        said = {
            words for words in differing(preset) if not words.startswith(around) and not any(a in words for a in around)
        }
        covered = {words for words in said if any(cell in words for _, cell in cells.values())}
        assert said == covered, preset
    assert all(not differing(preset) for preset in PEERS if preset not in DIFFERENT)

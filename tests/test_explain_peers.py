"""The same run under other programs' conventions: the example whose digits are known, and programs that are installed.

The expected values of the example come from the catalogue of measures ("one run, ten nDCG@10s"), where each was found
by reading or running the program named.
"""

from __future__ import annotations

import json
from dataclasses import fields
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cranfield import PRESETS, Conventions, Extras, evaluate, explain, explain_as, measure
from cranfield.base.errors import ConventionError
from cranfield.evaluation.measures import REGISTRY
from cranfield.evaluation.presets import PEERS
from oracles import proves
from shell import cranfield as shell

if TYPE_CHECKING:
    from pathlib import Path

QRELS = {"q": {"d1": 3, "d2": 2, "d3": 2, "d4": 1, "d5": 1, "d6": 0, "d7": 0, "d8": -2, "e1": 3, "e2": 2}}
QRELS["q"] |= dict.fromkeys(("e3", "e4", "e5", "e6"), 1)
RUN = {"q": {"d4": 9, "d1": 8, "d6": 8, "u1": 7, "d2": 6, "d8": 5}}

KEYS = [
    "trec_eval-9",
    "trec_eval-10",
    "trec_eval-ndcg",
    "gdeval",
    "ir_measures",
    "ranx",
    "scikit-learn",
    "torchmetrics",
]
KEYS += ["beir", "elasticsearch", "opensearch", "quepid", "quepid-cut", "ntcireval"]
OF_SUBTOPICS = ["ndeval", "ndeval-traditional", "pyndeval"]
KEYS += [*OF_SUBTOPICS, "insertion-order"]

NDCG = dict.fromkeys(("trec_eval-9", "trec_eval-10", "ir_measures", "beir"), 0.3588)
NDCG |= {"trec_eval-ndcg": 0.3482, "insertion-order": 0.4019, "ranx": 0.4019}
NDCG |= {"scikit-learn": 0.3804, "torchmetrics": 0.3804, "gdeval": 0.3337, "elasticsearch": 0.4013}
NDCG |= {"quepid": 0.3701, "quepid-cut": 0.3720, "opensearch": 0.3720, "ntcireval": 0.3471}


def rounded(views: dict[str, Any]) -> dict[str, float]:
    """The values of the programs that have one."""
    return {name: round(given, 4) for name, given in views["as"].items() if given is not None}


def value(name: str, **conventions: Any) -> float:
    return evaluate(QRELS, RUN, name, **conventions).mean()


@proves("nDCG")
def test_ten_variants_of_ndcg_of_one_run_against_the_recorded_values_of_each_program() -> None:
    for topic in (None, "q"):
        views = explain_as(QRELS, RUN, "nDCG@10", topic)
        assert rounded(views.to_dict()) == NDCG
    assert round(value("nDCG(discount=jk)@10"), 4) == 0.3471
    assert round(value("nDCG@10", unjudged="drop"), 4) == round(value("nDCG(judged_only=True)@10"), 4) == 0.3685


@proves("AP", "P", "ERR", "RBP")
@pytest.mark.parametrize(
    ("name", "ties", "expected"),
    [
        ("AP@10", "document-descending", 0.2061),
        ("AP(divide=cut)@10", "document-descending", 0.2267),
        ("AP(divide=found)@10", "document-descending", 0.7556),
        ("P@10", "document-descending", 0.30),
        ("P(divide=returned)@10", "document-descending", 0.50),
        ("ERR@10", "document-descending", 0.2190),
        ("ERR(max=3)@10", "document-descending", 0.388),
        ("ERR(max=3)@10", "input-order", 0.516),
        ("ERR(max=3, stop=linear)@10", "input-order", 0.550),
        ("ERR(max=3, unjudged=half)@10", "input-order", 0.520),
        ("RBP(p=0.8)", "document-descending", 0.410),
        ("RBP(p=0.8, gain=grade)", "document-descending", 0.748),
        ("RBP(p=0.8, gain=topic)", "document-descending", 0.249),
    ],
)
def test_other_measures_of_the_same_run_against_each_program(name: str, ties: str, expected: float) -> None:
    digits = len(str(expected)) - 2
    assert round(value(name, ties=ties), max(digits, 3)) == expected


def test_each_value_of_the_catalogue_comes_from_its_program() -> None:
    assert explain_as(QRELS, RUN, "P@10")["opensearch"] == explain_as(QRELS, RUN, "P@10")["quepid"] == 0.5
    ap = explain_as(QRELS, RUN, "AP@10").to_dict()["as"]
    assert round(ap["trec_eval-10"], 4) == round(ap["ir_measures"], 4) == 0.2061
    assert ap["torchmetrics"] == value("AP(divide=found)@10", ties="input-order")
    err = explain_as(QRELS, RUN, "ERR@10").to_dict()["as"]
    assert round(err["gdeval"], 4) == round(err["ir_measures"], 4) == 0.2190
    assert round(err["quepid"], 3) == 0.516
    rbp = explain_as(QRELS, RUN, "RBP").to_dict()["as"]
    assert [round(rbp[name], 3) for name in ("trec_eval-10", "ranx")] == [
        0.249,
        round(value("rbp.80", ties="input-order"), 3),
    ]


def test_the_keys_are_these_and_null_says_that_a_program_has_no_such_measure() -> None:
    assert list(PEERS) == KEYS
    views = explain_as(QRELS, RUN, "AP@10")
    assert list(views.to_dict()) == ["measure", "as"]
    assert list(views.to_dict()["as"]) == KEYS
    lacking = [name for name, given in views.to_dict()["as"].items() if given is None]
    assert lacking == ["trec_eval-ndcg", "gdeval", "scikit-learn", "elasticsearch", "quepid-cut", *OF_SUBTOPICS]
    assert explain_as(QRELS, RUN, "RBP")["trec_eval-9"] is None  # version 10 has it


@pytest.mark.parametrize("name", [name for name in PEERS if name not in OF_SUBTOPICS])
def test_a_preset_gives_the_same_number_in_eval_and_a_line_of_what_differs(name: str) -> None:
    [view] = explain_as(QRELS, RUN, "nDCG@10", presets=name).views
    assert evaluate(QRELS, RUN, "nDCG@10", conventions=name).means() == {"nDCG@10": view.value}
    assert explain(QRELS, RUN, "nDCG@10", "q", conventions=name).value == view.value
    assert view.differs
    assert "\n" not in view.differs


def test_every_rule_names_a_measure_and_parameters_that_exist() -> None:
    names = {field.name for field in fields(Conventions)}
    for preset, peer in PEERS.items():
        assert peer.conventions == PRESETS[preset]
        for name, rule in (peer.rules or {}).items():
            assert name in REGISTRY, (preset, name)
            assert set(rule.parameters) <= set(REGISTRY[name].parameters)
            assert set(rule.conventions) <= names


def test_what_differs_is_said_in_words() -> None:
    words = {view.name: view.differs for view in explain_as(QRELS, RUN, "nDCG@10", "q").views}
    assert words["insertion-order"] == "ties keep the order given"
    assert words["trec_eval-10"] == "nothing"
    assert words["gdeval"] == "gain 2^grade − 1; prints 5 decimals"
    said = "ties keep the order given; gain 2^grade − 1, negative below 0; "
    assert words["elasticsearch"] == said + "ideal list cut at the number of documents returned"


def test_a_program_that_stops_has_no_value_and_the_line_says_why() -> None:
    views = explain_as({**QRELS, "silent": {"a": 1}}, RUN, "nDCG@10")
    assert views["trec_eval-10"] is None
    assert "topic 'silent' is judged but missing" in {view.name: view.differs for view in views.views}["trec_eval-10"]
    assert round(views["trec_eval-9"] or 0, 4) == 0.3588
    assert round((views["ir_measures"] or 0) * 2, 4) == 0.3588
    assert explain_as({**QRELS, "silent": {"a": 1}}, RUN, "nDCG@10", "q")["trec_eval-10"] is not None


# conventions that came with this


def test_ties_averaged_are_the_mean_over_all_orders_against_enumeration() -> None:
    grades = {"a": 3, "b": 0, "c": 1, "d": 2, "e": 1}
    tied = ["a", "b", "c", "u"]
    for name in ("nDCG@3", "nDCG@10", "nDCG(gain=exp2)@2", "DCG@3", "CG@2", "nDCG(discount=jk)@3"):
        values = [
            value_of(grades, {**{document: 9 - i for i, document in enumerate(order)}, "d": 1, "e": 10}, name)
            for order in permutations(tied)
        ]
        run = {"q": {**dict.fromkeys(tied, 5), "d": 1, "e": 10}}
        averaged = evaluate({"q": grades}, run, name, ties="averaged").mean()
        assert averaged == pytest.approx(np.mean(values)), name


def value_of(grades: dict[str, float], run: dict[str, float], name: str) -> float:
    return evaluate({"q": grades}, {"q": run}, name).mean()


@proves("nDCG", "DCG")
def test_ties_averaged_against_scikit_learn() -> None:
    sklearn = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn")
    rng = np.random.default_rng(3)
    for k in (1, 3, 5, None):
        for _ in range(20):
            grades, scores = rng.integers(0, 4, 8), rng.integers(0, 4, 8).astype(float)
            names = [f"d{i}" for i in range(8)]
            qrels = {"q": dict(zip(names, map(float, grades), strict=True))}
            run = {"q": dict(zip(names, scores.tolist(), strict=True))}
            for name, theirs in (("nDCG", sklearn.ndcg_score), ("DCG", sklearn.dcg_score)):
                ours = evaluate(qrels, run, name if k is None else f"{name}@{k}", conventions="scikit-learn").mean()
                assert ours == pytest.approx(theirs([grades], [scores], k=k))


SEVERAL = "Bpref ERR(max=3) ERR(max=3)@3 ERR(max=3,unjudged=half)@4 nERR(max=3)@3 infAP AP(divide=found)@3 binG Rndcg"
LABELLED = b"q 1 a 3\nq 2 a 1\nq 1 b 0\nq 2 c 1\nq 1 d 2\nq 1 e -1\nq 2 f 0\nq 1 elsewhere 1\n"


@proves("Bpref", "ERR", "infAP", "AP_IA")
@pytest.mark.parametrize("name", [*SEVERAL.split(), "AP_IA", "AP_IA@3", "alpha_nDCG@3", "infAP(judged_only=True)"])
def test_ties_averaged_equals_the_mean_over_all_orders_against_brute_force(name: str) -> None:
    for tied, rest in (
        (["a", "b", "c", "u"], ["d", "f"]),
        (["f", "d", "e", "b"], ["u", "a"]),
        (["b", "c", "f"], ["a"]),
    ):
        listed = {document: -float(i) for i, document in enumerate(rest)}
        values = [
            evaluate(LABELLED, {"q": {**{d: 9.0 - i for i, d in enumerate(order)}, **listed}}, name).mean()
            for order in permutations(tied)
        ]
        scores = evaluate(LABELLED, {"q": {**dict.fromkeys(tied, 5.0), **listed}}, name, ties="averaged")
        assert scores.mean() == pytest.approx(np.mean(values), abs=1e-12)
        assert scores.sampled == {}


@pytest.mark.parametrize("name", ["Bpref", "ERR(max=3)@20", "nERR(max=3)"])
def test_a_formula_over_a_long_tie_against_many_drawn_orders(name: str) -> None:
    rng = np.random.default_rng(8)
    names = [f"d{i}" for i in range(60)]
    grades = {"q": {d: int(rng.integers(-1, 4)) for d in names[:30]}}
    scores = {d: float(i < 5) for i, d in enumerate(names)}
    drawn = [
        evaluate(grades, {"q": {d: s + rng.random() / 2 for d, s in scores.items()}}, name).mean() for _ in range(400)
    ]
    exact = evaluate(grades, {"q": scores}, name, ties="averaged")
    assert abs(exact.mean() - np.mean(drawn)) < 4 * np.std(drawn, ddof=1) / 20
    assert exact.sampled == {}


def test_a_mean_over_too_many_orders_is_sampled_and_says_so() -> None:
    grades = {"q": {f"d{i}": i % 3 - 1 for i in range(20)}, "r": {"a": 1, "b": 0}}
    run = {"q": {f"d{i}": 1.0 for i in range(30)}, "r": {"a": 1.0, "b": 1.0}}
    scores = evaluate(grades, run, "infAP Bpref", ties="averaged")
    error = scores.sampled["infAP"]
    assert error[0, 0] > 0 == error[0, 1]
    assert list(scores.sampled) == ["infAP"]
    [note] = [note for note in scores.notes() if "orders of ties" in note]
    assert note == (
        "infAP: means over the orders of ties; in 1 value over 200 drawn with seed 0 where there are too many to try "
        f"(standard error of a topic up to {error.max():.4f}), otherwise over all orders"
    )
    rng = np.random.default_rng(1)
    drawn = [evaluate(grades, {"q": {d: rng.random() for d in run["q"]}}, "infAP")["q"] for _ in range(400)]
    assert abs(scores.at(measure="infAP", topic="q") - np.mean(drawn)) < 5 * error.max()
    told = explain(grades, run, "infAP", "q", ties="averaged")
    assert any(f"the mean over 200 random orders, seed 0 (standard error {error.max():.4f})" in n for n in told.notes())
    tried = explain(grades, run, "infAP", "r", ties="averaged")
    assert any("the mean over all their orders, which were tried one by one" in note for note in tried.notes())
    assert scores.select(measures=["Bpref"]).sampled == {}


def test_ties_averaged_is_refused_by_measures_that_see_unjudged_documents() -> None:
    extras = Extras(groups={"d1": {"x": 1.0}, "u1": {"y": 1.0}})
    with pytest.raises(ConventionError, match="ties=averaged: AWRF.*it uses the groups of unjudged documents too"):
        evaluate(QRELS, RUN, "AWRF", ties="averaged", extras=extras)
    untied = {"q": {"d1": 2, "d6": 1}}
    assert evaluate(QRELS, untied, "infAP", ties="averaged").mean() == evaluate(QRELS, untied, "infAP").mean()


def test_a_negative_grade_may_cost_something_worked_by_hand() -> None:
    qrels, run = {"q": {"a": 1, "b": -2}}, {"q": {"b": 2, "a": 1}}
    assert evaluate(qrels, run, "CG(gain=signed)").mean() == -1
    assert evaluate(qrels, run, "CG(gain=signed-exp2)").mean() == 0.25
    assert evaluate(qrels, run, "DCG(gain=signed)").mean() == pytest.approx(-2 + 1 / np.log2(3))
    ideal = 1 - 2 / np.log2(3)
    assert evaluate(qrels, run, "nDCG(gain=signed)").mean() == pytest.approx((-2 + 1 / np.log2(3)) / ideal)
    assert evaluate(qrels, run, "nDCG(gain=signed)@1").mean() == -2
    assert measure(str(measure("nDCG(gain=signed-exp2)@5"))) == measure("nDCG(gain=signed-exp2)@5")


@proves("RBP", "RR", "Judged", "Bpref", "infAP", "IPrec", "Rprec", "SetP", "Success", "R")
@pytest.mark.parametrize(
    "name",
    "nDCG@10 AP@10 P@10 RR@10 RR RBP(rel=1) Judged@10 Bpref infAP IPrec@0.1 Rprec SetP Success@5 R@10".split(),
)
def test_preset_ir_measures_agrees_with_each_provider_against_ir_measures(name: str) -> None:
    import ir_measures

    for run in (RUN["q"], {"d6": 9, "d1": 9, "d2": 9, "zz": 9, "a1": 9}):
        [theirs] = ir_measures.calc_aggregate([ir_measures.parse_measure(name)], QRELS, {"q": run}).values()
        assert explain_as(QRELS, {"q": run}, name)["ir_measures"] == pytest.approx(theirs)


# the command


@pytest.fixture
def files(tmp_path: Path) -> Path:
    lines = [f"q 0 {document} {grade}\n" for document, grade in QRELS["q"].items()]
    (tmp_path / "qrels.txt").write_text("".join(lines))
    rows = [f"q Q0 {document} {i} {score} t\n" for i, (document, score) in enumerate(RUN["q"].items(), 1)]
    (tmp_path / "a.run").write_text("".join(rows))
    return tmp_path


@pytest.mark.parametrize("topic", [(), ("--topic", "q")])
def test_the_command_gives_the_measure_and_a_value_for_each_convention(files: Path, topic: tuple[str, ...]) -> None:
    answer = shell("explain", "nDCG@10", "qrels.txt", "a.run", "--as", "all", "--format", "json", *topic, folder=files)
    given = json.loads(answer.out)
    assert list(given) == ["measure", "as"]
    assert given["measure"] == "nDCG@10"
    assert rounded(given) == NDCG
    assert list(given["as"]) == KEYS


def test_the_command_takes_a_single_preset_with_and_without_a_topic(files: Path) -> None:
    asked = ("explain", "nDCG@10", "qrels.txt", "a.run", "--as", "gdeval", "--format", "json")
    alone = json.loads(shell(*asked, folder=files).out)
    assert {name: round(number, 4) for name, number in alone["as"].items()} == {"gdeval": 0.3337}
    steps = json.loads(shell(*asked, "--topic", "q", folder=files).out)
    assert steps["as"] == alone["as"]
    assert steps["steps"][0]["gain"] == 1
    assert shell("explain", "AP", "qrels.txt", "a.run", "--as", "nobody", folder=files).code == 2


def test_the_command_prints_a_table_in_text_markdown_and_html(files: Path) -> None:
    asked = ("explain", "nDCG@10", "qrels.txt", "a.run", "--as", "all")
    text = shell(*asked, folder=files).out
    assert text.startswith("nDCG@10 of a, mean over topics: 0.3588 by default\n")
    assert text.endswith("9 different values, from 0.3337 to 0.4019\n")
    assert "| gdeval | 0.3337 |" in shell(*asked, "--format", "markdown", folder=files).out
    assert '<th scope="row" class="n">gdeval</th><td>0.3337</td>' in shell(*asked, "--format", "html", folder=files).out


def test_eval_takes_the_new_presets(files: Path) -> None:
    answer = shell("eval", "qrels.txt", "a.run", "-m", "nDCG@10", "--as", "elasticsearch", folder=files)
    assert "0.4013" in answer.out


@proves("nDCG", "ERR")
@pytest.mark.parametrize("run", ["ql.results-cata", "rm.results-catb-filtered"])
def test_preset_gdeval_against_recorded_outputs_of_gdeval(shared: Path, run: str) -> None:
    folder = shared / "webtrack2012-baselines"
    scores = evaluate(folder / "qrels.web.151-200.txt", folder / f"{run}.txt", "nDCG@20 ERR@20", conventions="gdeval")
    recorded = [line.split(",") for line in (folder / f"{run}.gdeval.csv").read_text().splitlines()[1:]]
    for _, topic, ndcg, err in recorded:
        ours = [scores.mean("nDCG@20"), scores.mean("ERR@20")] if topic == "amean" else scores[topic].tolist()
        assert ours == pytest.approx([float(ndcg), float(err)], abs=5.1e-6), topic

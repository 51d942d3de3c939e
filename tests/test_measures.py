"""The grammar of measures: the names people type, what they mean, and what is said of those that mean nothing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest

from cranfield import Measure, curves, evaluate, explain, measure, measures
from cranfield.base.errors import CranfieldError, MeasureError, UnknownMeasureError
from cranfield.base.parameters import Depth, Real, Whole
from cranfield.evaluation.measures import REGISTRY
from cranfield.evaluation.measures.definition import Gain, aggregated, measure_or_label, split

if TYPE_CHECKING:
    from cranfield import Hits
    from cranfield.base.kernels.table import Floats

TREC_EVAL = {
    "map": "AP",
    "map_cut_100": "AP@100",
    "P_5": "P@5",
    "P.5": "P@5",
    "ndcg_cut.10": "nDCG@10",
    "recall_1000": "R@1000",
    "ndcg": "nDCG",
    "ndcg_cut_10": "nDCG@10",
    "dcg": "DCG",
    "recip_rank": "RR",
    "Rprec": "Rprec",
    "bpref": "Bpref",
    "infAP": "infAP",
    "success_1": "Success@1",
    "iprec_at_recall_0.10": "IPrec@0.1",
    "11pt_avg": "11pt",
    "set_P": "SetP",
    "set_relative_P": "SetP(relative=True)",
    "set_recall": "SetR",
    "set_map": "SetAP",
    "set_F": "SetF",
    "num_q": "NumQ",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRelRet",
    "rbp": "RBP(p=0.9, gain=topic)",
}
IR_MEASURES = {
    "nDCG@10": "nDCG@10",
    "NDCG@10": "nDCG@10",
    "nDCG(cutoff=10)": "nDCG@10",
    "nDCG(dcg='exp-log2')@10": "nDCG(gain=exp2)@10",
    "nDCG(dcg='log2')@10": "nDCG@10",
    "nDCG(gains={0:1,1:4})": "nDCG(gain={0:1,1:4})",
    "nDCG(gains={0: 1, 1: 4}, judged_only=True)@5": "nDCG(gain={0:1,1:4}, judged_only=True)@5",
    "AP(rel=2)@100": "AP(rel=2)@100",
    "MAP": "AP",
    "MAP@5": "AP@5",
    "MRR@10": "RR@10",
    "Precision@3": "P@3",
    "Recall@3": "R@3",
    "P(judged_only=True)@4": "P(judged_only=True)@4",
    "IPrec@0.1": "IPrec@0.1",
    "SetF(beta=2.0)": "SetF(beta=2)",
    "SetRelP": "SetP(relative=True)",
    "SetP(relative=True,rel=2)": "SetP(rel=2, relative=True)",
    "NumRet(rel=2)": "NumRelRet(rel=2)",
    "RBP(p=0.9,rel=1)": "RBP(p=0.9)",
    "BPref": "Bpref",
    "Judged@10": "Judged@10",
    "Judged": "Judged",
    "ERR@20": "ERR@20",
}
RANX = {
    "map@100": "AP@100",
    "mrr@10": "RR@10",
    "ndcg@10": "nDCG@10",
    "ndcg_burges@10": "nDCG(gain=exp2)@10",
    "dcg_burges": "DCG(gain=exp2)",
    "hit_rate@10": "Success@10",
    "hits@10": "NumRelRet@10",
    "precision@5": "P@5",
    "recall@5": "R@5",
    "f1@5": "F@5",
    "r-precision": "Rprec",
    "bpref": "Bpref",
    "rbp.95": "RBP(p=0.95, gain=grade)",
}
LOOSE = {
    " nDCG@10 ": "nDCG@10",
    "nDCG @ 10": "nDCG@10",
    "AP( rel = 2 )@5": "AP(rel=2)@5",
    'AP(divide="cut")@5': "AP(divide=cut)@5",
    "rprec": "Rprec",
    "setf(beta=2)": "SetF(beta=2)",
    "p@5": "P@5",
    "AP(rel=1)": "AP",
    "RBP(p=.5)": "RBP(p=0.5)",
    "P(judged_only=false)@5": "P@5",
    "err@20": "ERR@20",
}


@pytest.mark.parametrize(("typed", "meant"), TREC_EVAL.items())
def test_names_of_trec_eval_are_read(typed: str, meant: str) -> None:
    assert str(measure(typed)) == meant


@pytest.mark.parametrize(("typed", "meant"), IR_MEASURES.items())
def test_names_of_ir_measures_are_read(typed: str, meant: str) -> None:
    assert str(measure(typed)) == meant


@pytest.mark.parametrize(("typed", "meant"), RANX.items())
def test_names_of_ranx_are_read(typed: str, meant: str) -> None:
    assert str(measure(typed)) == meant


@pytest.mark.parametrize(("typed", "meant"), LOOSE.items())
def test_blanks_quotes_and_case_are_forgiven(typed: str, meant: str) -> None:
    assert str(measure(typed)) == meant


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("RBP(p=1.5)", "RBP: p must be between 0 and 1, got 1.5"),
        ("RBP(p=1)", "RBP: p must be between 0 and 1, ends excluded, got 1"),
        ("RBP(p=half)", "RBP: p must be between 0 and 1, got half"),
        ("RBP(p=nan)", "RBP: p must be between 0 and 1, got nan"),
        ("P@0", "P: k must be a whole number, 1 or more, got 0"),
        ("P@2.5", "P: k must be a whole number, 1 or more, got 2.5"),
        ("nDCG@0", "nDCG: k must be a whole number, 1 or more; the whole list if left out, got 0"),
        ("AP(rel=inf)", "AP: rel must be a finite number in plain digits, got inf"),
        ("AP(divide=all)", "AP: divide must be relevant | cut | found, got all"),
        (
            "nDCG(gain=cubic)@5",
            "nDCG: gain must be linear | exp2 | signed | signed-exp2 | a table {grade:gain, …}, got cubic",
        ),
        (
            "nDCG(gain={1:2,1:3})",
            "nDCG: gain must be linear | exp2 | signed | signed-exp2 | a table {grade:gain, …}, got {1:2,1:3}",
        ),
        (
            "nDCG(gain={1})",
            "nDCG: gain must be linear | exp2 | signed | signed-exp2 | a table {grade:gain, …}, got {1}",
        ),
        ("AP(judged_only=perhaps)", "AP: judged_only must be True | False, got perhaps"),
        ("IPrec@1.5", "IPrec: recall must be between 0 and 1, got 1.5"),
        ("P", "P needs k: P@10"),
        ("IPrec", "IPrec needs recall: IPrec@0.5"),
        ("Rprec@10", "Rprec@10: Rprec takes no cut-off"),
        ("AP(level=2)", "AP: no parameter 'level'; it has rel, divide, k, judged_only"),
        ("AP(2)", "AP(2): expected name=value inside the brackets, found '2'"),
    ],
)
def test_a_bad_parameter_is_named_with_its_range_and_what_was_found(typed: str, message: str) -> None:
    with pytest.raises(MeasureError) as error:
        measure(typed)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("nDGC@10", "did you mean nDCG"),
        ("ndcg_cut@10@5", "no measure 'ndcg_cut@10@5'"),
        ("Sucess@5", "did you mean Success"),
        ("xyzzy", "no measure 'xyzzy' (cranfield measures lists all)"),
        ("nDCG@", "no measure 'nDCG@'"),
        ("nDCG(gain=exp2", "no measure 'nDCG(gain=exp2'"),
        ("", "no measure ''"),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(typed: str, hint: str) -> None:
    with pytest.raises(UnknownMeasureError) as error:
        measure(typed)
    assert hint in str(error.value)
    assert isinstance(error.value, (CranfieldError, ValueError))


def test_measures_keep_the_names_they_were_given_and_their_order() -> None:
    given = measures("ndcg_cut_10 map, P_5")
    assert list(given) == ["ndcg_cut_10", "map", "P_5"]
    assert [str(m) for m in given.values()] == ["nDCG@10", "AP", "P@5"]
    assert list(measures(["AP", measure("P@5"), "RR nDCG@3"])) == ["AP", "P@5", "RR", "nDCG@3"]


def test_no_measure_at_all_is_an_error_with_an_example() -> None:
    with pytest.raises(MeasureError, match="no measure given; try nDCG@10"):
        measures("  ")


def test_names_split_at_commas_and_blanks_outside_brackets_only() -> None:
    assert split("nDCG(gain={1: 3, 2: 9})@10,  AP(rel=2, divide=cut)\tRR") == [
        "nDCG(gain={1: 3, 2: 9})@10",
        "AP(rel=2, divide=cut)",
        "RR",
    ]


def test_the_lowest_relevant_grade_is_set_for_all_and_a_name_that_says_its_own_keeps_it() -> None:
    given = measures("AP P(rel=3)@5 nDCG@10", rel=2)
    assert [str(m) for m in given.values()] == ["AP(rel=2)", "P(rel=3)@5", "nDCG@10"]


def test_measures_are_values() -> None:
    assert measure("map") == measure("AP(rel=1)") == REGISTRY["AP"]()
    assert measure("AP") != measure("AP@10")
    assert len({measure("map"), measure("AP"), measure("MAP")}) == 1
    assert repr(measure("ndcg_cut_5")) == "measure('nDCG@5')"
    assert measure("nDCG(gain={1:0.5, 2.5:3})@7") == REGISTRY["nDCG"](gain={2.5: 3, 1: 0.5}, k=7)


def test_parameters_say_what_they_allow() -> None:
    assert Real(1, "x").range == "any number"
    assert Real(1, "x", low=0).range == "0 or more"
    assert Real(1, "x", low=0, open=True).range == "above 0"
    assert Real(1, "x", low=0, high=1, open=True).range == "between 0 and 1, ends excluded"
    assert Whole(1, "x", low=3).range == "a whole number, 3 or more"


def test_adding_a_measure_is_one_class() -> None:
    class FirstGrade(Measure):
        """The grade of the first document, if it was judged."""

        family = "test"
        formula = "grade at rank 1"
        reference = "none"
        high: ClassVar[float] = np.inf
        peers: ClassVar = {"nobody": ("first_grade_{k}", "best1 = FirstGrade(gain=exp2)")}
        gain = Gain()
        k = Depth()

        def score(self, hits: Hits) -> Floats:
            first = hits.top(1)
            return first.sum(Gain.of(self.gain, first.grade))

    try:
        assert evaluate({"q": {"a": 3}}, {"q": {"a": 1}}, "FirstGrade best1").means() == {"FirstGrade": 3, "best1": 7}
        assert str(measure("first_grade_7")) == "FirstGrade@7"
    finally:
        REGISTRY.remove("FirstGrade")


# examples for what one definition leaves open


def one(grades: dict[str, float], returned: str, name: str, **asked: object) -> float:
    run = {"q": {document: float(-i) for i, document in enumerate(returned.split())}}
    return evaluate({"q": grades}, run, [name], **asked).mean()


def test_gains_of_a_table_reach_the_ideal_ranking_too() -> None:
    grades = {"a": 0, "b": 1}
    assert one(grades, "b a", "nDCG(gain={0:1})") == 1  # both are worth 1
    assert one(grades, "a", "nDCG(gain={0:2})") == pytest.approx(2 / (2 + 1 / np.log2(3)))


def test_an_exponential_gain_of_a_negative_grade_is_0() -> None:
    assert one({"a": -2, "b": 1}, "a b", "DCG(gain=exp2)") == pytest.approx(1 / np.log2(3))


def test_the_ideal_ranking_may_end_at_k_at_the_hits_or_nowhere() -> None:
    grades = {"a": 1, "b": 1, "c": 1}
    cut, hits, whole = (one(grades, "a", f"nDCG(ideal={ideal})@2") for ideal in ("cut", "hits", "all"))
    dcg = 1 / np.log2(np.arange(2, 5))
    assert (cut, hits, whole) == pytest.approx((1 / dcg[:2].sum(), 1, 1 / dcg.sum()))


def test_the_original_discount_starts_at_its_base() -> None:
    assert one({"a": 1, "b": 1}, "a b", "DCG(discount=jk)") == 2
    assert one(dict.fromkeys("abcd", 1), "a b c d", "DCG(discount=jk, base=4)") == pytest.approx(4)
    assert one({"x": 1}, "a b c d e f g h i j k l m n o x", "DCG(discount=jk, base=4)") == pytest.approx(1 / 2)


def test_err_refuses_a_grade_above_its_scale() -> None:
    with pytest.raises(MeasureError, match=r"ERR: a grade of 5 is above max=4; try ERR\(max=5\)"):
        one({"a": 5}, "a", "ERR@10")


def test_err_says_once_that_a_scale_is_assumed_which_no_judgment_reaches() -> None:
    qrels, run = {"q": {"a": 3, "b": 1}}, {"q": {"b": 2, "a": 1}}
    notes = evaluate(qrels, run, "ERR@5 ERR@10 nERR AP gmean(ERR)").notes()
    said = "max=4 is assumed, and no judgment is above 3; set max=3 if the scale ends there"
    assert notes == [f"ERR@5, ERR@10, nERR, gmean(ERR): {said}"]
    for silent in ("ERR(max=4)@5", "ERR(max=3)", "AP"):
        assert evaluate(qrels, run, silent).notes() == []
    assert evaluate({"q": {"a": 4, "b": 1}}, run, "ERR").notes() == []
    assert evaluate(qrels, run, "ERR@10", conventions="gdeval").notes() == []  # its own scale
    assert evaluate(qrels, run, "ERR@10", conventions="insertion-order").notes() != []


def test_err_of_a_long_scale_against_fractions() -> None:
    """2^2000 is no double, and (2^grade − 1) / 2^2000 is one."""
    from fractions import Fraction

    for top in (4, 53, 60, 1100, 2000):
        grades = {"a": top - 1, "b": 1, "c": top}
        left, total = Fraction(1), Fraction(0)
        for rank, grade in enumerate(grades.values(), 1):
            stop = Fraction(2**grade - 1, 2**top)
            left, total = left * (1 - stop), total + left * stop / rank
        assert one(grades, "a b c", f"ERR(max={top})") == pytest.approx(float(total), rel=1e-14)


HUGE = [1e308, 1e200, 2000.0, -1e308]
OWN_SCALE = {"max": 1e308}
REFUSALS = ("too large to compute", "needs", "above max", "ties=averaged: ")


def of_all_kinds(cls: type[Measure]) -> list[Measure]:
    """The measure as it comes, for a scale that holds everything, and with each other choice of gain."""
    needed = {key: 4 if key in ("k", "T") else p.example for key, p in cls.parameters.items() if p.required}
    gains = getattr(cls.parameters.get("gain"), "NAMES", ()) or getattr(cls.parameters.get("gain"), "choices", ())
    changes = [{}, *({"gain": gain} for gain in gains)]
    scales = [{}, OWN_SCALE] if "max" in cls.parameters else [{}]
    return [cls(**{**needed, **change, **scale}) for change in changes for scale in scales]


@pytest.mark.parametrize("highest", HUGE)
@pytest.mark.parametrize("ties", ["document-descending", "averaged"])
def test_huge_grades_give_a_finite_number_or_an_error_and_never_a_warning(highest: float, ties: str) -> None:
    """Warnings are errors here. A value that does not exist is another matter: it does not depend on the grades."""
    judged = f"q 1 a {highest}\nq 1 b {highest}\nq 2 c 1\nq 1 d 0\nr 1 a {highest}\nr 2 b 2\n".encode()
    run = {"q": {"x": 9.0, "a": 3.0, "b": 2.0, "c": 2.0, "d": 0.0}, "r": {"a": 1.0, "b": 0.5}}
    for each in [m for cls in REGISTRY.values() if not cls.undefined for m in of_all_kinds(cls)]:
        numbers, said = np.zeros(0), REFUSALS[0]
        try:
            scores = evaluate(judged, run, [each], ties=ties, baseline={"q": {"d": 1.0, "c": 0.5}})
            numbers = np.r_[scores.values.ravel(), scores.summary.ravel()]
        except CranfieldError as error:
            said = str(error)
        assert np.isfinite(numbers).all(), each
        assert any(words in said for words in REFUSALS), (each, said)


def test_sums_beyond_doubles_are_refused_and_means_of_large_numbers_are_right() -> None:
    judged = {"q": {"a": 1e308}, "r": {"a": 1e308}, "s": {"a": 1e308}}
    run = {topic: {"a": 1.0} for topic in judged}
    assert evaluate(judged, run, "CG").mean() == pytest.approx(1e308)
    with pytest.raises(MeasureError, match=r"CG: grades up to 1e\+308 make numbers too large to compute; give gains"):
        evaluate({"q": {"a": 1e308, "b": 1e308}}, {"q": {"a": 2.0, "b": 1.0}}, "CG")
    with pytest.raises(MeasureError, match=r"nDCG\(gain=exp2\)@10: grades up to 2000 make numbers too large"):
        one({"a": 2000, "b": 1}, "b a", "nDCG(gain=exp2)@10")
    with pytest.raises(MeasureError, match="add up to more than a number can hold"):
        evaluate(judged, run, "sum(CG)").mean()


def test_huge_grades_are_refused_by_explanations_and_curves_too() -> None:
    judged, run = {"q": {"a": 2000, "b": 1e308, "c": 1e308}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    with pytest.raises(MeasureError, match="too large to compute"):
        explain(judged, run, "nDCG(gain=exp2)@2", "q")
    with pytest.raises(MeasureError, match=r"ERR: a grade of 1e\+308 is above max=4"):
        explain(judged, run, "ERR", "q")
    with pytest.raises(MeasureError, match=r"curve gain: grades up to 1e\+308 make numbers too large to compute"):
        curves(judged, run, "gain")


def test_rndcg_looks_at_the_end_of_a_list_that_is_one_document_longer_than_the_ideal_one() -> None:
    """Where trec_eval does not: see the same name in test_trec_eval.py."""
    lone = one({"a": 1, "b": 0}, "b a", "Rndcg")
    assert lone == pytest.approx((0 + 1 / np.log2(3)) / 2)
    assert one({"a": 1, "b": 0}, "b a c", "Rndcg") == pytest.approx(lone)


def test_judged_is_divided_by_what_was_returned_unless_asked_otherwise() -> None:
    grades = {"a": 0, "b": -1}
    assert one(grades, "a u", "Judged@10") == pytest.approx(1 / 2)
    assert one(grades, "a u", "Judged(divide=k)@10") == pytest.approx(1 / 10)
    assert one(grades, "a b", "Judged@2") == pytest.approx(1 / 2)  # a negative grade is no judgment
    assert one(grades, "a b", "Judged@2", negative="irrelevant") == 1


def test_hit_counts_may_be_cut_as_ranx_does() -> None:
    assert one({"a": 1, "b": 1}, "a x b", "hits@2") == 1
    assert one({"a": 1, "b": 1}, "a x b", "hits") == 2


# the page made from the classes


def test_docs_measures_is_what_the_classes_say() -> None:
    source = Path(__file__).resolve().parents[1] / "docs" / "generate_measures.py"
    spec = importlib.util.spec_from_file_location("generate_measures", source)
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page(), "run make docs"
    assert set(generator.oracles()) <= set(REGISTRY)


# what belongs to no family, and what is refused


def test_a_measure_known_from_a_table_only_is_its_name_and_its_direction() -> None:
    clicks, seconds = measure_or_label("clicks"), measure_or_label("seconds", lower_is_better=True)
    assert measure_or_label("clicks") == clicks != measure_or_label("clicks", lower_is_better=True)
    assert len({clicks, measure_or_label("clicks"), seconds}) == 2
    assert (str(seconds), seconds.lower_is_better, clicks.lower_is_better) == ("seconds", True, False)
    with pytest.raises(MeasureError, match="clicks has values from a table only and cannot be computed"):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1}}, [clicks])


def test_what_a_family_shares_is_no_measure() -> None:
    class _Shared(Measure):
        family = "shared"
        k = Depth()

        def score(self, hits: Hits) -> Floats:
            return hits.top(self.k).count() * 1.0

    class Shown(_Shared):
        """How many judged documents stand at ranks 1 to k."""

        formula = "judged documents at ranks 1…k"
        weight = Real(1, "what each is worth")

    try:
        assert "Shown" in REGISTRY
        assert "_Shared" not in REGISTRY
        assert list(Shown.parameters) == ["weight", "k", "judged_only"]  # the cut-off stands behind its own
        assert str(measure("Shown(weight=2)@3")) == "Shown(weight=2)@3"
    finally:
        REGISTRY.remove("Shown")


def test_an_aggregate_that_does_not_exist_or_comes_on_top_of_another_is_refused() -> None:
    with pytest.raises(MeasureError, match="aggregate must be one of mean, gmean, .*, got 'mode'"):
        aggregated(measure("AP"), "mode")
    with pytest.raises(MeasureError, match=r"gmean\(TRisk\): TRisk has its own aggregate over topics"):
        measure("gmean(TRisk)")
    with pytest.raises(MeasureError, match=r"median\(gmean\(AP\)\): gmean\(AP\) is one number for all topics already"):
        measure("median(gmean(AP))")


def test_a_family_that_is_loaded_late_is_found_and_one_that_does_not_exist_is_not() -> None:
    from cranfield.evaluation.measures import fairness

    assert fairness.EE_D is REGISTRY["EE_D"]
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'cranfield.evaluation.measures'"):
        from cranfield.evaluation.measures import nothing  # noqa: F401


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("P@5,10", ["P@5", "P@10"]),
        ("nDCG@1,5,10 AP,RR@10", ["nDCG@1", "nDCG@5", "nDCG@10", "AP", "RR@10"]),
        ("AP(rel=2)@5,10", ["AP(rel=2)@5", "AP(rel=2)@10"]),
        ("P@5, AP", ["P@5", "AP"]),
    ],
)
def test_several_depths_of_a_measure_stand_behind_it_with_commas(typed, meant):
    assert list(measures(typed)) == meant


@pytest.mark.parametrize("typed", ["AP,5", "P@5 10", "5,P@5"])
def test_a_number_alone_is_no_measure(typed):
    with pytest.raises(MeasureError):
        measures(typed)

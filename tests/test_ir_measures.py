"""ir_measures over cranfield's core has the numbers that ir_measures has over its own providers."""

from __future__ import annotations

import math
import shutil
import sys
from typing import TYPE_CHECKING, Any

import ir_measures
import pandas as pd
import pytest

from cranfield.compat import ir_measures as ours
from cranfield.compat import pytrec_eval
from test_peer_table import IR_MEASURES, WITH_PERL, WORLDS

if TYPE_CHECKING:
    from collections.abc import Iterator

SUBTOPICS = """
ERR_IA@5 nERR_IA@5 alpha_DCG@5 alpha_nDCG@5 alpha_nDCG(alpha=0.3)@10 NRBP nNRBP AP_IA P_IA@5 StRecall@5
""".split()
NO_NUMBER = {"Judged": ("empty", "everything"), "IPrec": ("empty", "everything"), "Accuracy": tuple(WORLDS)}


@pytest.fixture
def installed() -> Iterator[None]:
    ours.install()
    yield
    ours.uninstall()


def asked(names: list[str]) -> list[ir_measures.Measure]:
    return [ir_measures.parse_measure(name) for name in names]


def over_both(measure: ir_measures.Measure, qrels: Any, run: Any) -> tuple[Any, Any]:
    """Every topic's value and the aggregate, over their own providers and over ours."""
    values = []
    for change in (ours.uninstall, ours.install):
        change()
        evaluator = ir_measures.evaluator([measure], qrels)
        per_topic = {one.query_id: one.value for one in evaluator.iter_calc(run)}
        [mean] = evaluator.calc_aggregate(run).values()
        values.append({**per_topic, "all": mean})
    ours.uninstall()
    return values[0], values[1]


def test_the_provider_takes_every_measure_of_the_registry_but_those_with_another_number() -> None:
    """`has_another_number` is what the preset's table says, which test_peer_table.py proves."""
    left = {m.NAME for m in asked([*IR_MEASURES, *WITH_PERL, *SUBTOPICS, "Compat"]) if not ours.provider.supports(m)}
    assert left == {"RBP", "Compat"}
    assert ours.provider.supports(ir_measures.RBP(p=0.8, rel=1))
    assert not ours.provider.supports(ir_measures.RBP(p=0.999, rel=1))
    named = {type(m).NAME for m in ir_measures.measures.registry.values()}
    assert named == {m.NAME for m in asked([*IR_MEASURES, *WITH_PERL, *SUBTOPICS, "Compat"])}


@pytest.mark.parametrize("where", WORLDS)
def test_every_measure_has_the_same_numbers_over_cranfield_against_ir_measures(where: str) -> None:
    qrels, run = WORLDS[where]
    for measure in asked(IR_MEASURES):
        if not ours.provider.supports(measure):
            continue
        if where in NO_NUMBER.get(measure.NAME, ()):
            continue  # their provider divides by 0 or gives NaN
        theirs, mine = over_both(measure, qrels, run)
        assert mine == pytest.approx(theirs, abs=1e-12), (measure, where)


@pytest.mark.skipif(not shutil.which("perl"), reason="gdeval needs perl")
def test_measures_of_gdeval_have_its_five_decimals_over_cranfield() -> None:
    qrels, run = WORLDS["everything"]
    for measure in asked(WITH_PERL):
        theirs, mine = over_both(measure, qrels, run)
        assert mine == pytest.approx(theirs, abs=1e-12), measure


def test_measures_of_subtopics_have_the_same_numbers_over_cranfield_against_pyndeval() -> None:
    qrels, run = WORLDS["ties"]
    rows = [
        ir_measures.Qrel(topic, document, int(grade > 0), str(label))
        for topic, judged in qrels.items()
        for place, (document, grade) in enumerate(judged.items())
        for label in {place % 3, place % 2}
    ]
    for measure in asked(SUBTOPICS):
        theirs, mine = over_both(measure, rows, run)
        assert mine == pytest.approx(theirs, abs=1e-12), measure


def test_frames_dicts_and_named_tuples_have_the_same_numbers_over_cranfield_against_ir_measures() -> None:
    qrels, run = WORLDS["ties"]
    judged = [ir_measures.Qrel(t, d, grade) for t, documents in qrels.items() for d, grade in documents.items()]
    answers = [ir_measures.ScoredDoc(t, d, score) for t, documents in run.items() for d, score in documents.items()]
    frames = pd.DataFrame(judged), pd.DataFrame(answers).assign(rank=7, query="what is asked")
    measure = ir_measures.nDCG @ 5
    expected, _ = over_both(measure, qrels, run)
    for some_qrels, some_run in ((qrels, run), (judged, answers), frames):
        theirs, mine = over_both(measure, some_qrels, some_run)
        assert mine == theirs == expected
    assert over_both(measure, frames[0], frames[1][:0])[1]["all"] == 0  # a run without a line
    for nothing in (frames[0][:0], {}):
        assert [math.isnan(values["all"]) for values in over_both(measure, nothing, run)] == [True, True]
    assert over_both(measure, {"101": {}}, run) == ({"101": 0, "all": 0},) * 2


def test_calc_gives_what_its_two_halves_give(installed: None) -> None:
    qrels, run = WORLDS["everything"]
    measures = asked(["AP", "nDCG@5", "NumRet", "Accuracy"])
    aggregated, per_topic = ir_measures.calc(measures, qrels, run)
    assert aggregated == ir_measures.calc_aggregate(measures, qrels, run)
    assert per_topic == list(ir_measures.iter_calc(measures, qrels, run))


def test_one_import_installs_the_provider_once_behind_measures_that_users_define(installed: None) -> None:
    pipeline = ir_measures.DefaultPipeline.providers
    assert [one.NAME for one in pipeline[:3]] == ["runtime", "cranfield", "pytrec_eval"]
    ours.install()
    assert pipeline.count(ours.provider) == 1
    assert isinstance(ir_measures.evaluator([ir_measures.AP], {"q": {"d": 1}}), ours.ProviderEvaluator)
    own = ir_measures.define_byquery(lambda qrels, run: 0.25, name="AP")
    assert not isinstance(ir_measures.evaluator([own], {"q": {"d": 1}}), ours.ProviderEvaluator)
    both = ir_measures.calc_aggregate([ir_measures.Compat(p=0.8), ir_measures.AP], {"q": {"d": 1}}, {"q": {"d": 1.0}})
    assert both == {ir_measures.Compat(p=0.8): 1, ir_measures.AP: 1}
    ours.uninstall()
    ours.uninstall()
    assert ours.provider not in pipeline


def test_ir_measures_takes_the_alias_of_pytrec_eval_for_a_recent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks for `__version__`; without one it takes another provider and says nothing."""
    installed = sys.modules.get("pytrec_eval")
    monkeypatch.setitem(sys.modules, "pytrec_eval", pytrec_eval)
    provider = type(ir_measures.pytrec_eval)()
    assert provider.is_available()
    value = provider.calc_aggregate([ir_measures.AP], {"q": {"d": 1}}, {"q": {"d": 1.0, "e": 2.0}})
    assert value == {ir_measures.AP: 0.5}
    if installed is not None:
        assert pytrec_eval.__version__.split(".")[:2] == installed.__version__.split(".")[:2]

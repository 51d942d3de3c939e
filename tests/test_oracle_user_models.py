"""User models: cwl_eval and ir_measures, live and recorded, and plain loops from the papers' formulas."""

from __future__ import annotations

import json
import math
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from conftest import SHARED
from cranfield import Run, evaluate, measure
from cranfield.base.errors import DataError, MeasureError
from cranfield.base.qrels import Extras
from cranfield.formats.extras import read_costs
from oracles import per_topic, proves
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path

Nested = dict[str, dict[str, float]]
OUTPUTS = ("EU", "ETU", "EC", "ETC", "ED")
EVERY = ("RBP", "INSQ", "INST", "BPM", "NERR8", "NERR9", "NERR10", "NERR11", "SDCG", "TBG", "Umeasure", "IFT")
OF_IR_MEASURES = ("BPM", "INSQ", "INST", "SDCG", "NERR8", "NERR9", "NERR10", "NERR11")

# recorded cases of ir_measures, whose cwl_eval provider keeps the order of the input among ties


@cache
def recorded() -> dict[str, Any]:
    file = SHARED / "peer-cases" / "ir_measures.json"
    return json.loads(file.read_text()) if file.exists() else {"cases": []}


def cases() -> list[Any]:
    picked = [case for case in recorded()["cases"] if case["provider"] == "cwl_eval"]
    if not picked:
        return [pytest.param(None, marks=pytest.mark.skip(reason="needs ../shared/data"))]
    return [pytest.param(case, id=f"{case['measure']} {case['qrels']} {case['run']}") for case in picked]


def nested(rows: list[list[Any]]) -> Nested:
    answer: Nested = {}
    for topic, document, number, *_ in rows:
        answer.setdefault(topic, {})[document] = number
    return answer


@proves("RBP", "P", "AP", "RR", *OF_IR_MEASURES)
@pytest.mark.parametrize("case", cases())
def test_recorded_cases_of_the_cwl_provider_against_ir_measures(case: dict[str, Any]) -> None:
    qrels, run = nested(recorded()["qrels"][case["qrels"]]), nested(recorded()["runs"][case["run"]])
    ours = per_topic(
        evaluate(qrels, Run(run), [case["measure"]], conventions="ir_measures", scores="double", ties="input-order")
    )
    assert set(ours) == set(case["per_query"])
    for topic, expected in case["per_query"].items():
        assert ours[topic][case["measure"]] == pytest.approx(expected, abs=1e-9), topic


def random_data(seed: int, ties: bool) -> tuple[dict[str, dict[str, int]], Nested]:
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for t in range(25):
        qrels[f"t{t}"] = {f"d{d}": int(rng.choice([-1, 0, 0, 1, 2, 3, 4])) for d in rng.permutation(60)[:30]}
        listed = rng.permutation(60)[: rng.integers(1, 50)]
        scores = np.sort(rng.integers(0, 9, len(listed)))[::-1] if ties else -np.arange(len(listed))
        run[f"t{t}"] = {f"d{d}": float(s) for d, s in zip(listed, scores, strict=True)}
    return qrels, run


LIVE = [
    "INST(max_rel=4)", "INST(T=0.5, max_rel=4)", "INST(T=3.5, min_rel=1, max_rel=3)", "INSQ(max_rel=4)", "INSQ(T=2.5, max_rel=1)",
    "BPM(max_rel=4)@10", "BPM(T=2.5, max_rel=4)@5", "NERR8(max_rel=4)@10", "NERR9(max_rel=4)@7", "NERR10(max_rel=4)",
    "NERR10(p=0.3, max_rel=2)", "NERR11(max_rel=4)", "NERR11(T=3.0, max_rel=4)", "SDCG(max_rel=4)@10", "SDCG(max_rel=1)@100",
]  # fmt: skip


@proves(*OF_IR_MEASURES)
@pytest.mark.parametrize("ties", [False, True])
def test_random_runs_with_ties_in_input_order_against_ir_measures(ties: bool) -> None:
    pytest.importorskip("cwl", reason="needs cwl-eval")
    import ir_measures

    qrels, run = random_data(11, ties)
    parsed = {ir_measures.parse_measure(text): text for text in LIVE}
    ours = per_topic(evaluate(qrels, run, LIVE, ties="input-order"))
    theirs = list(ir_measures.iter_calc(list(parsed), qrels, run))
    assert len(theirs) == len(LIVE) * len(qrels)
    for value in theirs:
        text = parsed[value.measure]
        assert ours[value.query_id][text] == pytest.approx(value.value, abs=1e-9), (value.query_id, text)


# cwl_eval itself: five outputs and their residuals, with costs

MODELS = {
    "RBP(p=0.9, gain=grade)": ("RBPCWLMetric", 0.9),
    "RBP(p=0.3, gain=grade)": ("RBPCWLMetric", 0.3),
    "INSQ(T=2)": ("INSQCWLMetric", 2.0),
    "INST": ("INSTCWLMetric", 1.0),
    "INST(T=3)": ("INSTCWLMetric", 3.0),
    "BPM(T=2)@10": ("BPMCWLMetric", 2.0, 10),
    "BPM(T=4)@17": ("BPMCWLMetric", 4.0, 17),
    "NERR8@6": ("NERReq8CWLMetric", 6),
    "NERR9@6": ("NERReq9CWLMetric", 6),
    "NERR10(p=0.8)": ("NERReq10CWLMetric", 0.8),
    "NERR11(T=2)": ("NERReq11CWLMetric", 2.0),
    "SDCG@10": ("NDCGCWLMetric", 10),
    "TBG(halflife=22)": ("TBGCWLMetric", 22),
    "Umeasure(L=50)": ("UMeasureCWLMetric", 50),
    "IFT(T=1.5, b1=0.8, R1=2, A=0.3, b2=0.7, R2=3)": ("IFTGoalRateCWLMetric", 1.5, 0.8, 2, 0.3, 0.7, 3),
    "IFT(stop=goal, T=1.5, b1=0.8, R1=2)": ("IFTGoalCWLMetric", 1.5, 0.8, 2),
    "IFT(stop=rate, A=0.3, b2=0.7, R2=3)": ("IFTRateCWLMetric", 0.3, 0.7, 3),
}


def with_output(text: str, output: str, residual: bool) -> str:
    given = measure(text)
    return str(type(given)(**{**given.values, "output": output, "residual": residual}))


def of_cwl_eval(metric: tuple[Any, ...], gains: list[float], costs: list[float], best: bool) -> dict[str, float]:
    """Their outputs, and to their totals what they lose: users who have not stopped at rank 1000 stop nowhere there."""
    from cwl.ruler import cwl_ruler
    from cwl.ruler.ranking import Ranking

    name, *parameters = metric
    model, ranking = getattr(cwl_ruler, name)(*parameters), Ranking("t", gains, costs)
    answer = dict(zip(OUTPUTS, model._do_score(ranking, not best), strict=True))
    lost = np.prod(model.c_vector(ranking, not best))
    answer["ETU"] += lost * ranking.get_gain_vector(not best).sum()
    answer["ETC"] += lost * ranking.get_cost_vector(not best).sum()
    return answer


def assert_as_in_cwl_eval(grades: dict[str, float], listed: list[str], costs: dict[str, float]) -> None:
    gains = [grades.get(document, math.nan) for document in listed]
    paid = [costs[document] for document in listed]
    run = {"t": {document: -float(i) for i, document in enumerate(listed)}}
    for text, metric in MODELS.items():
        low, high = (of_cwl_eval(metric, gains, paid, best) for best in (False, True))
        names = {with_output(text, o, r): high[o] - low[o] if r else low[o] for o in OUTPUTS for r in (False, True)}
        ours = evaluate({"t": grades}, run, list(names), extras=Extras(costs=costs))
        for name, expected in names.items():
            assert ours.mean(name) == pytest.approx(expected, abs=1e-8, rel=1e-9), name


def rows(file: str) -> list[list[str]]:
    return [line.split() for line in (SHARED / "peer-cases" / "cwl" / file).read_text().splitlines() if line.strip()]


def their_files(topic: str) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Gains, run and costs of one topic. Their costs go by the type of a result, which is the run's second column."""
    grades = {row[2]: float(row[3]) for row in rows("gain_file") if row[0] == topic}
    of_type = {row[0]: float(row[1]) for row in rows("cost_file")}
    listed = [row for row in rows("result_file") if row[0] == topic]
    return grades, {row[2]: float(row[4]) for row in listed}, {row[2]: of_type[row[1]] for row in listed}


@proves(*EVERY)
@pytest.mark.parametrize("topic", ["T1", "T2", "T3"])
def test_five_outputs_and_residuals_of_its_own_test_files_against_cwl_eval(topic: str, shared: Path) -> None:
    pytest.importorskip("cwl", reason="needs cwl-eval")
    grades, run, costs = their_files(topic)
    assert_as_in_cwl_eval(grades, list(run), costs)


@proves(*EVERY)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_five_outputs_and_residuals_of_random_lists_against_cwl_eval(seed: int) -> None:
    pytest.importorskip("cwl", reason="needs cwl-eval")
    rng = np.random.default_rng(seed)
    grades = {f"d{d}": float(rng.choice([0, 0.25, 0.5, 1])) for d in rng.permutation(40)[:20]}
    listed = [f"d{d}" for d in rng.permutation(40)[: rng.integers(1, 40)]]
    assert_as_in_cwl_eval(grades, listed, {d: float(rng.integers(1, 9)) for d in listed})


RECORDED = {  # cwl_eval 1.0.12 -c cost_file gain_file result_file: EU, EC and ED for T1, T2 and T3
    "RBP(p=0.9, gain=grade)": "0.3501 1.7765 10.0000  0.1973 1.3897 10.0000  0.1157 1.8797 10.0000",
    "INST-T=2.0": "0.5994 1.9229 2.8496  0.2246 1.2669 3.7074  0.0778 2.3856 4.2047",
    "INSQ-T=1.0": "0.5872 1.8866 2.5757  0.2200 1.1964 2.5757  0.0507 2.9219 2.5757",
    "BPM-Static-T=2.0-K=10": "0.6667 1.6667 3.0000  0.2571 1.4286 7.0000  0.0000 2.5000 4.0000",
    "NERR-EQ8@k=6": "1.0000 2.0000 1.0000  0.3086 1.2963 3.2400  0.1333 2.1667 6.0000",
    "NERR-EQ9@k=6": "1.0000 2.0000 1.0000  0.2568 1.1216 1.7760  0.0544 3.0204 2.4500",
    "NERR-EQ10@phi=0.8": "1.0000 2.0000 1.0000  0.2731 1.1851 2.3896  0.0786 2.5356 3.8043",
    "NERR-EQ11@T=2.0": "1.0000 2.0000 1.0000  0.2621 1.1382 2.0021  0.0621 2.8065 2.9314",
    "NDCG-k@10": "0.5645 2.1884 4.5436  0.2953 1.5740 4.5436  0.1688 2.5933 4.5436",
    "TBG-H@22": "0.1723 1.4104 23.2415  0.0980 1.2216 26.6382  0.0653 1.4317 22.9279",
    "U-L@50": "0.2697 1.6539 15.7200  0.1432 1.3316 19.3600  0.1083 1.6796 15.4800",
    "IFT-C1-C2-T=2.0-b1=0.9-R1=1-A=0.2-b2=0.9-R2=1": "0.7360 1.9120 1.6406  0.2332 1.0648 1.7616  0.0067 3.6513 1.7049",
}


@proves(*EVERY)
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_rates_and_depths_of_its_own_test_files_against_cwl_eval(name: str, shared: Path) -> None:
    ours = []
    for topic in ("T1", "T2", "T3"):
        grades, run, costs = their_files(topic)
        names = [with_output(name, output, False) for output in ("EU", "EC", "ED")]
        values = evaluate({"t": grades}, {"t": run}, names, extras=Extras(costs=costs)).values
        ours += [f"{value:.4f}" for value in values[0, :, 0]]
    assert ours == RECORDED[name].split()


def test_users_who_reach_the_last_rank_stop_there_and_are_not_lost_as_in_cwl_eval() -> None:
    """Totals are then rates times depth, which is what they mean; cwl_eval's fall short by those who never stopped."""
    pytest.importorskip("cwl", reason="needs cwl-eval")
    from cwl.ruler.cwl_ruler import INSQCWLMetric
    from cwl.ruler.ranking import Ranking

    scores = evaluate({"t": {"a": 1}}, {"t": {"a": 1}}, ["INSQ(T=9)", "INSQ(T=9, output=ETU)", "INSQ(T=9, output=ED)"])
    rate, total, depth = scores.values[0, :, 0]
    assert total == pytest.approx(rate * depth)
    theirs = INSQCWLMetric(9.0)
    theirs.measure(Ranking("t", [1.0], [1.0]))
    assert theirs.expected_utility == pytest.approx(rate)
    assert theirs.expected_total_utility < total - 1e-4


def test_the_last_rank_of_u_measure_is_seen_unlike_in_cwl_eval() -> None:
    pytest.importorskip("cwl", reason="needs cwl-eval")
    from cwl.ruler.cwl_ruler import UMeasureCWLMetric
    from cwl.ruler.ranking import Ranking

    theirs = UMeasureCWLMetric(8)
    theirs.measure(Ranking("t", [1.0, 1.0], [1.0, 1.0], max_n=2))
    paid = Extras(costs={"a": 1.0, "b": 1.0})
    ours = evaluate({"t": {"a": 1, "b": 1}}, {"t": {"a": 2, "b": 1}}, "Umeasure(L=8, depth=2, output=ED)", extras=paid)
    assert (theirs.expected_items, ours.mean()) == (1, 1 + 7 / 8)


# plain loops from the papers


def random_costs(seed: int) -> tuple[Nested, Nested, dict[str, float]]:
    qrels, run = random_data(seed, ties=False)
    rng = np.random.default_rng(seed)
    return qrels, run, {f"d{d}": float(rng.integers(50, 3000)) for d in range(55)}  # five of sixty are not known


@proves("TBG")
def test_time_biased_gain_of_lengths_in_words_against_the_authors_formulas_in_a_loop() -> None:
    qrels, run, words = random_costs(21)
    ours = evaluate(qrels, run, ["TBG(time=words, output=ETU, cost=700)"], extras=Extras(costs=words))
    for topic, listed in run.items():
        total, time = 0.0, 0.0
        for document in sorted(listed, key=lambda d: -listed[d]):
            relevant = qrels[topic].get(document, 0) >= 1
            if relevant:
                total += 0.64 * 0.77 * math.exp(-time * math.log(2) / 224)
            time += 4.4 + (0.018 * words.get(document, 700) + 7.8) * (0.64 if relevant else 0.39)
        assert ours[topic] == pytest.approx(total, rel=1e-12)


@proves("Umeasure")
@pytest.mark.parametrize("position", ["end", "start"])
def test_u_measure_against_the_authors_formula_in_a_loop(position: str) -> None:
    qrels, run, length = random_costs(22)
    text = f"Umeasure(L=30000, output=ETU, max=4, cost=100, position={position})"
    ours = evaluate(qrels, run, [text], extras=Extras(costs=length))
    for topic, listed in run.items():
        total, read = 0.0, 0.0
        for document in sorted(listed, key=lambda d: -listed[d]):
            before, read = read, read + length.get(document, 100)
            decay = 1 - (read if position == "end" else before) / 30000
            total += max(qrels[topic].get(document, 0), 0) / 4 * max(0.0, decay)
        assert ours[topic] == pytest.approx(total, rel=1e-12)


@proves("IFT")
def test_information_foraging_against_the_authors_formulas_in_a_loop() -> None:
    qrels, run, cost = random_costs(23)
    text = "IFT(T=1.2, b1=0.7, R1=1.5, A=0.002, b2=0.6, R2=800, max=4, cost=100, depth=200)"
    ours = evaluate(qrels, run, [text], extras=Extras(costs=cost))
    for topic, listed in run.items():
        documents = sorted(listed, key=lambda d: -listed[d])
        seen, ranks, total, gained, spent = 1.0, 0.0, 0.0, 0.0, 0.0
        for r in range(200):
            gain = max(qrels[topic].get(documents[r], 0), 0) / 4 if r < len(documents) else 0.0
            gained, spent = gained + gain, spent + (cost.get(documents[r], 100) if r < len(documents) else 100)
            ranks, total = ranks + seen, total + seen * gain
            goal = 1 - 1 / (1 + 0.7 * math.exp((1.2 - gained) * 1.5))
            rate = 1 / (1 + 0.6 * math.exp((0.002 - gained / spent) * 800))
            seen *= goal * rate
        assert ours[topic] == pytest.approx(total / ranks, rel=1e-9)


# what they are at their limits, and what they ask for


@proves("BPM", "SDCG")
@pytest.mark.parametrize(
    ("model", "plain"), [("BPM(T=99)@10", "P@10"), ("BPM@10", "RR@10"), ("BPM@1000", "RR"), ("SDCG@10", "DCG@10")]
)
def test_user_models_with_a_cut_off_equal_the_measures_they_imitate(model: str, plain: str) -> None:
    qrels, run = random_data(12, ties=False)
    binary = {topic: {d: int(g >= 1) for d, g in grades.items()} for topic, grades in qrels.items()}
    one, other = evaluate(binary, run, [model, plain]).values[0]
    most = sum(1 / math.log2(r + 1) for r in range(1, 11)) if plain == "DCG@10" else 1
    np.testing.assert_allclose(one, other / most, atol=1e-12)


@proves("RBP", "RBPresidual")
def test_rbp_residual_is_the_same_as_a_parameter_and_as_a_measure() -> None:
    qrels, run = random_data(13, ties=False)
    scores = evaluate(qrels, run, ["RBPresidual(p=0.7)", "RBP(p=0.7, residual=True)"])
    assert scores.values[0, 0].tolist() == scores.values[0, 1].tolist()


def test_rbp_gives_what_it_gave_and_its_totals_are_rates_times_depth() -> None:
    qrels, run = random_data(14, ties=False)
    names = ["RBP", *(f"RBP(output={output})" for output in OUTPUTS[1:])]
    eu, etu, ec, etc, ed = evaluate(qrels, run, names).values[0]
    np.testing.assert_allclose(ed, 5)
    np.testing.assert_allclose(etu, 5 * eu)
    np.testing.assert_allclose(ec, 1)
    np.testing.assert_allclose(etc, 5)


def test_blocks_of_topics_give_what_one_block_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    qrels, run, cost = random_costs(24)
    names = ["INST(T=2, residual=True)", "TBG", "IFT", "BPM@700"]
    whole = evaluate(qrels, run, names, extras=Extras(costs=cost)).values
    monkeypatch.setattr(import_module("cranfield.evaluation.measures.user_models"), "CELLS", 3000)
    assert evaluate(qrels, run, names, extras=Extras(costs=cost)).values.tolist() == whole.tolist()


def test_costs_reach_a_condensed_list_too() -> None:
    qrels, run = {"t": {"a": 0, "b": 1}}, {"t": {"a": 3.0, "x": 2.0, "b": 1.0}}
    paid = Extras(costs={"a": 10.0, "x": 90.0, "b": 10.0})
    names = ["Umeasure(L=100, output=ETU)", "Umeasure(L=100, output=ETU, judged_only=True)"]
    assert evaluate(qrels, run, names, extras=paid).values[0, :, 0].tolist() == [0.0, 0.9]
    assert evaluate(qrels, run, names[:1], extras=paid, unjudged="drop").mean() == 0.9


def test_measures_of_time_and_text_need_costs() -> None:
    for name in ("TBG", "Umeasure"):
        with pytest.raises(DataError, match="the cost of reading each document"):
            evaluate({"t": {"a": 1}}, {"t": {"a": 1}}, name)
    with pytest.raises(MeasureError, match="INST: T must be 0.5 or more, got 0"):
        measure("INST(T=0)")


def test_names_that_cwl_eval_prints_are_read() -> None:
    names = {
        "INST-T=2.0": "INST(T=2)",
        "NERR-EQ8@k=10": "NERR8@10",
        "NERR-EQ10@phi=0.8": "NERR10(p=0.8)",
        "BPM-Static-T=2.0-K=10": "BPM(T=2)@10",
        "NDCG-k@10": "SDCG@10",
        "TBG-H@22": "TBG(halflife=22)",
        "U-L@50": "Umeasure(L=50)",
        "IFT-C1-T=2.0-b1=0.9-R1=1": "IFT(stop=goal)",
        "IFT-C1-C2-T=2.0-b1=0.9-R1=1-A=0.2-b2=0.9-R2=1": "IFT",
        "INST(T=3,max_rel=2)": "INST(max=2, T=3)",
    }
    assert {name: str(measure(name)) for name in names} == names


def test_a_file_of_costs_reaches_the_measure_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("t 0 a 0\nt 0 b 1\n")
    (tmp_path / "run").write_text("t Q0 a 1 2 x\nt Q0 b 2 1 x\n")
    (tmp_path / "costs").write_text("# seconds\na 224\nb 10\n")
    asked = ("eval", "qrels", "run", "-m", "TBG(output=ETU)", "--costs", "costs", "--format", "tsv")
    answer = cranfield(*asked, folder=tmp_path)
    assert answer.code == 0
    assert "0.5" in answer.out.split()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a 1 2\n", "1: expected 2 columns (document cost), found 3"),
        ("a 1\nb -1\n", "2: expected a cost of 0 or more, found '-1'"),
        ("a much\n", "1: expected a cost of 0 or more, found 'much'"),
        ("a 1\na 2\n", "2: document 'a' has a cost already"),
        ("# none\n", ": expected a document and its cost on each line, found none"),
    ],
)
def test_a_bad_file_of_costs_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "costs").write_text(text)
    with pytest.raises(DataError) as found:
        read_costs(tmp_path / "costs")
    assert said in str(found.value)

"""NTCIR's measures: recorded outputs of NTCIREVAL's tests, and a plain loop over ranks that shares no code with ours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from conftest import SHARED
from cranfield import evaluate
from cranfield.evaluation.measures import measure
from oracles import printed, proves

if TYPE_CHECKING:
    from pathlib import Path

NTCIREVAL = SHARED / "peer-cases" / "ntcireval"
Graded = dict[str, float]

# recorded: sample.rel judges L0…L3, the gains of L1…L3 stand in the command that made each file

GAINS = {"res_test_compute": (1, 2, 3), "res_test_compute_cutoff": (1, 2, 3), "res_test_compute_grade": (1, 4, 9)}
GAINS |= {"res_test_compute_label_j": (1, 2, 3)}
OURS = {
    "RR": "RR",
    "O-measure": "O-measure({gain})",
    "P-measure": "P-measure({gain})",
    "P-plus": "P-plus({gain})",
    "AP": "AP",
    "Q-measure": "Q-measure({gain})",
    "NCUgu,P": "NCUguP({gain})",
    "NCUgu,BR": "NCUguBR({gain})",
    "NCUrb,P": "NCUrbP({gain})",
    "NCUrb,BR": "NCUrbBR({gain})",
    "RBP": "RBP(p=0.95, gain=grade, max={max})",
    "ERR": "ERR(max={log2})",
    "AP@": "AP(divide=cut)@{k}",
    "Q@": "Q({gain})@{k}",
    "nDCG@": "nDCG({gain}, discount=jk, base=2)@{k}",
    "MSnDCG@": "MSnDCG({gain})@{k}",
    "P@": "P@{k}",
    "nERR@": "nERR({gain}, max=3)@{k}",
    "Hit@": "Success@{k}",
}
# These two know no gains: RBP is given gains for grades, and ERR their logarithms, for it takes 2^grade - 1.
WORTH = {"RBP": lambda gain: gain, "ERR": lambda gain: math.log2(gain + 1)}


def lines(name: str) -> dict[str, str]:
    text = (NTCIREVAL / f"{name}.txt").read_text()
    return dict(line.replace(" ", "").split("=") for line in text.splitlines() if "=" in line and "#" not in line)


def levels(path: Path) -> dict[str, int]:
    return {row[0]: int(row[1][1:]) for row in map(str.split, path.read_text().splitlines()) if len(row) > 1}


def ranking(name: str) -> Graded:
    path = NTCIREVAL / ("sample-j.lab" if name.endswith("_j") else "sample.lab")
    return {line.split()[0]: -float(rank) for rank, line in enumerate(path.read_text().splitlines())}


@proves("Q", "Omeasure", "Pmeasure", "Pplus", "NCU", "RBP", "RR", "ERR", "nERR", "AP", "P", "Success", "nDCG")
@pytest.mark.parametrize("name", GAINS)
def test_every_line_of_a_recorded_output_against_ntcireval(name: str, shared: Path) -> None:
    judged = levels(NTCIREVAL / "sample.rel")
    table = ", ".join(f"{level + 1}:{gain}" for level, gain in enumerate(GAINS[name]))
    most, worth = GAINS[name][-1], {document: (0, *GAINS[name])[level] for document, level in judged.items()}
    compared = 0
    for line, expected in lines(name).items():
        kind, _, k = line.partition("@")
        ours = OURS[f"{kind}@" if k else kind]
        text = ours.format(gain=f"gain={{{table}}}", max=most, log2=math.log2(most + 1), k=int(k or 0))
        grades = {d: WORTH[kind](gain) for d, gain in worth.items()} if kind in WORTH else judged
        value = evaluate({"t": grades}, {"t": ranking(name)}, [measure(text)]).mean()
        assert printed(value, expected) == expected, line
        compared += 1
    assert compared == 19


# an independent loop over random lists

STOPS = {1: 1.0, 2: 3.0, 3: 4.0}


def loop(name: str, grades: Graded, listed: list[str], beta: float, gamma: float, k: int | None) -> float:
    """One topic, rank by rank; the gain is the grade."""
    everything = sorted((g for g in grades.values() if g > 0), reverse=True)
    count, gained, first, highest = 0, 0.0, 0, max([0.0, *(grades.get(d, 0) for d in listed[:k])])
    total, above_best, best_passed = 0.0, [], False
    for rank, document in enumerate(listed[:k], start=1):
        grade = grades.get(document, 0)
        if grade <= 0:
            continue
        count, gained = count + 1, gained + grade
        blended = (count + beta * gained) / (rank + beta * sum(everything[:rank]))
        first = first or rank
        if name == "Omeasure" and first == rank:
            return blended
        if name == "Pmeasure" and grade == highest:
            return blended
        if name == "Pplus" and not best_passed:
            above_best.append(blended)
            best_passed = grade == highest
        if name == "Q":
            total += blended / min(len(everything), k or len(everything))
        if name == "gu":
            total += blended * STOPS[int(grade)] / sum(STOPS[int(g)] for g in everything)
        if name == "rb":
            total += blended * gamma ** (count - 1) / sum(gamma**i for i in range(len(everything)))
    return sum(above_best) / len(above_best) if above_best else total


def random_topic(rng: np.random.Generator) -> tuple[Graded, list[str]]:
    grades = {f"d{d}": float(rng.choice([0, 0, 1, 2, 3])) for d in rng.permutation(20)[:12]}
    return grades, [f"d{d}" for d in rng.permutation(20)[: rng.integers(1, 18)]]


@proves("Q", "Omeasure", "Pmeasure", "Pplus", "NCU")
@pytest.mark.parametrize("k", [None, 5])
@pytest.mark.parametrize(("beta", "gamma"), [(1, 0.95), (0, 0.5), (10, 1)])
def test_random_lists_against_a_loop_over_ranks(beta: float, gamma: float, k: int | None) -> None:
    rng = np.random.default_rng(3)
    topics = {f"t{i}": random_topic(rng) for i in range(60)}
    qrels = {t: grades for t, (grades, _) in topics.items()}
    run = {t: {d: -float(i) for i, d in enumerate(listed)} for t, (_, listed) in topics.items()}
    at = f"@{k}" if k else ""
    names = {name: f"{name}(beta={beta}){at}" for name in ("Q", "Omeasure", "Pmeasure", "Pplus")}
    if k is None:
        names["gu"] = f"NCU(utility=BR, beta={beta}, stops={{1:1, 2:3, 3:4}})"
        names["rb"] = f"NCU(stop=rb, utility=BR, beta={beta}, gamma={gamma})"
    for name, text in names.items():
        scores = evaluate(qrels, run, [text])
        for t, (grades, listed) in topics.items():
            assert scores[t] == pytest.approx(loop(name, grades, listed, beta, gamma, k), abs=1e-12), (t, text)


@proves("Q", "NCU")
def test_q_measure_with_beta_0_and_ncu_with_uniform_stopping_equal_average_precision() -> None:
    rng = np.random.default_rng(4)
    topics = {f"t{i}": random_topic(rng) for i in range(30)}
    qrels = {t: grades for t, (grades, _) in topics.items()}
    run = {t: {d: -float(i) for i, d in enumerate(listed)} for t, (_, listed) in topics.items()}
    scores = evaluate(qrels, run, ["AP", "Q(beta=0)", "NCU(stop=rb, gamma=1)", "NCU(stops={1:1, 2:1, 3:1})"])
    expected = scores.values[0, 0]
    for i in range(1, 4):
        np.testing.assert_allclose(scores.values[0, i], expected, atol=1e-12)


def test_a_marginal_document_moved_up_can_lower_o_measure_and_q_measure() -> None:
    grades = {"good": 3.0, "poor": 1.0}
    late, early = {"x": 3.0, "good": 2.0, "poor": 1.0}, {"poor": 3.0, "good": 2.0, "x": 1.0}
    assert evaluate({"t": grades}, {"t": late}, "O-measure").mean() == pytest.approx(4 / 6)
    assert evaluate({"t": grades}, {"t": early}, "O-measure").mean() == pytest.approx(2 / 4)


# pFound


@proves("pFound")
@pytest.mark.parametrize(("stop", "scale"), [(0.15, "yandex"), (0.15, "grade"), (0.4, "grade")])
def test_pfound_of_random_lists_against_a_user_simulated_by_enumeration(stop: float, scale: str) -> None:
    """Every way in which the user can end is walked: satisfied here, gives up here, or neither."""
    rng = np.random.default_rng(5)
    table = {0: 0.0, 1: 0.07, 2: 0.14, 3: 0.41, 4: 0.61}

    def found_from(chances: list[float]) -> float:
        if not chances:
            return 0.0
        satisfied, *rest = chances
        return satisfied + (1 - satisfied) * (stop * 0 + (1 - stop) * found_from(rest))

    for _ in range(40):
        grades = {f"d{i}": int(rng.integers(0, 5)) for i in range(10)}
        listed = [f"d{d}" for d in rng.permutation(14)[:8]]
        chances = [table[grades.get(d, 0)] if scale == "yandex" else grades.get(d, 0) / 4 for d in listed]
        run = {"t": {d: -float(i) for i, d in enumerate(listed)}}
        value = evaluate({"t": grades}, run, [f"pFound(stop={stop}, gain={scale}, max=4)"]).mean()
        assert value == pytest.approx(found_from(chances), abs=1e-12)
        cut = evaluate({"t": grades}, run, [f"pFound(stop={stop}, gain={scale}, max=4)@3"]).mean()
        assert cut == pytest.approx(found_from(chances[:3]), abs=1e-12)


@proves("pFound")
def test_grades_between_0_and_1_satisfy_in_proportion_and_negative_grades_satisfy_nobody() -> None:
    run = {"t": {"a": 3.0, "b": 2.0, "c": 1.0}}
    grades = {"a": 0.5, "b": -1, "c": 2}  # 0.035 of the users stop at a, none at b, 0.14 of those who come to c
    assert evaluate({"t": grades}, run, "pFound").mean() == pytest.approx(0.035 + 0.965 * 0.85**2 * 0.14)
    assert evaluate({"t": grades}, run, "pFound(stop=0)").mean() == pytest.approx(0.035 + 0.965 * 0.14)
    by_grade = evaluate({"t": grades}, run, "pFound(gain=grade, max=4, stop=0)").mean()
    assert by_grade == pytest.approx(0.125 + 0.875 * 0.5)
    assert evaluate({"t": {"a": 0.5}}, run, "pFound(gain=grade, max=0.25)").mean() == 1  # nobody is more than satisfied
    assert evaluate({"t": {"a": 7}}, run, "pFound").mean() == pytest.approx(0.61)

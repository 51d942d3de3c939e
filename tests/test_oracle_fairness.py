"""Exposure, attention and second aspects against loops over the papers' formulas, closed forms, SciPy and enumeration."""

from __future__ import annotations

import math
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from cranfield import Extras, evaluate, measure
from cranfield.base.errors import BadLineError, DataError, DuplicateError
from cranfield.formats.extras import read_groups
from oracles import proves
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path

    from cranfield.evaluation.measures import Measure

Grades = dict[str, float]
EXPOSURE = ("EE_D", "EE_R", "EE_L", "GroupEE_D", "GroupEE_R", "GroupEE_L")


def topic(seed: int) -> tuple[Grades, dict[str, float], dict[str, dict[str, float]]]:
    """Random grades, a random run with unjudged documents, and groups of which some documents have none."""
    rng = np.random.default_rng(seed)
    names = [f"d{i}" for i in range(15)]
    grades = {name: float(rng.choice([0, 0, 0, 1, 2, 3])) for name in names[:11]}
    grades["d0"], grades["d1"] = 1.0, 0.0
    returned = rng.permutation(names)[: int(rng.integers(3, 15))].tolist()
    groups: dict[str, dict[str, float]] = {}
    for name in names[:13]:
        joined = rng.choice(["x", "y", "z"], int(rng.integers(1, 3)), replace=False)
        groups[name] = {str(group): float(rng.choice([0.25, 0.5, 1.0])) for group in joined}
    return grades, {name: float(-rank) for rank, name in enumerate(returned)}, groups


def score(name: str | Measure, grades: Grades, run: dict[str, float], **known: Any) -> float:
    return evaluate({"q": grades}, {"q": run}, [name], extras=Extras(**known)).mean()


# expected exposure


def system_exposure(grades: Grades, run: dict[str, float], p: float, u: float, rel: float = 1) -> dict[str, float]:
    """Down the list: on with probability p, and with 1 − u past a relevant document."""
    exposure, reach = {}, 1.0
    for name in sorted(run, key=run.__getitem__, reverse=True):
        exposure[name] = reach
        reach *= p * (1 - u if grades.get(name, 0) >= rel else 1)
    return exposure


def target_exposure(grades: Grades, p: float, u: float) -> dict[str, float]:
    """Diaz et al.'s closed forms for m documents of a grade below b better ones; u = 0 is rank-biased precision."""
    answer, b = {}, 0
    relevant = sum(grade >= 1 for grade in grades.values())
    for grade in sorted(set(grades.values()), reverse=True):
        same = [name for name in grades if grades[name] == grade]
        m, q = len(same), p * (1 - u)
        if grade >= 1:
            share = (q**b - q ** (b + m)) / (m * (1 - q))
        else:
            share = (1 - u) ** relevant * (p**b - p ** (b + m)) / (m * (1 - p))
        answer |= dict.fromkeys(same, share)
        b += m
    return answer


def three(given: dict[str, float], deserved: dict[str, float]) -> tuple[float, float, float]:
    """Disparity, relevance and loss of two tables of exposure."""
    names = [*given, *(name for name in deserved if name not in given)]
    pairs = [(given.get(name, 0.0), deserved.get(name, 0.0)) for name in names]
    return sum(e * e for e, _ in pairs), sum(e * t for e, t in pairs), sum((e - t) ** 2 for e, t in pairs)


def by_group(exposure: dict[str, float], grades: Grades, groups: dict[str, dict[str, float]]) -> dict[str, float]:
    answer: dict[str, float] = {}
    for name, shares in groups.items():
        if grades.get(name, 0) >= 1:
            for group, share in shares.items():
                answer[group] = answer.get(group, 0.0) + exposure.get(name, 0.0) * share
    return answer


@proves(*EXPOSURE)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("model", "p", "u"), [("rbp", 0.5, 0.0), ("rbp", 0.9, 0.0), ("gerr", 0.5, 0.5), ("gerr", 0.8, 0.3)]
)
def test_exposure_against_a_loop_over_the_paper_s_formulas(seed: int, model: str, p: float, u: float) -> None:
    grades, run, groups = topic(seed)
    given, deserved = system_exposure(grades, run, p, u), target_exposure(grades, p, u)
    expected = three(given, deserved) + three(by_group(given, grades, groups), by_group(deserved, grades, groups))
    for name, value in zip(EXPOSURE, expected, strict=True):
        typed = f"{name}(model={model}, p={p}, u={u})"
        assert score(typed, grades, run, groups=groups) == pytest.approx(value, abs=1e-12), name


@proves("EE_R", "EE_L")
@pytest.mark.parametrize("model", ["rbp", "gerr"])
def test_the_deserved_exposure_is_the_mean_over_all_ideal_orders_against_enumeration(model: str) -> None:
    grades: Grades = {"a": 2, "b": 1, "c": 1, "d": 1, "e": 0, "f": 0}
    ideal = [order for order in permutations(grades) if [grades[d] for d in order] == sorted(grades.values())[::-1]]
    exposures = [
        system_exposure(grades, {d: -float(r) for r, d in enumerate(order)}, 0.6, 0.4 if model == "gerr" else 0.0)
        for order in ideal
    ]
    assert len(ideal) == 12
    for document in grades:  # one document alone at rank 1: ε = 1, so EE-R is what it deserves
        mean = sum(each[document] for each in exposures) / len(exposures)
        assert score(f"EE_R(model={model}, p=0.6, u=0.4)", grades, {document: 1.0}) == pytest.approx(mean)


@proves("EE_L")
def test_the_ideal_order_has_no_loss_unless_two_documents_share_a_grade() -> None:
    assert score("EE_L", {"a": 3, "b": 2, "c": 1}, {"a": 3.0, "b": 2.0, "c": 1.0}) == pytest.approx(0, abs=1e-15)
    assert score("EE_L", {"a": 3, "b": 2, "c": 1}, {"b": 3.0, "a": 2.0, "c": 1.0}) == pytest.approx(2 * 0.5**2)
    assert score("EE_L", {"a": 1, "b": 1}, {"a": 2.0, "b": 1.0}) == pytest.approx(2 * 0.25**2)
    assert score("EE_L", {"a": 1, "b": 1}, {"u": 1.0}) == pytest.approx(2 * 0.75**2 + 1)  # an unjudged one deserves 0


@proves("GroupEE_L")
def test_swapping_two_documents_of_a_group_does_not_change_group_exposure() -> None:
    grades, groups = {"a": 1.0, "b": 1.0}, {"a": {"x": 1.0}, "b": {"x": 1.0}}
    for run in ({"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 2.0}):
        assert score("GroupEE_L", grades, run, groups=groups) == pytest.approx(0, abs=1e-15)


@proves("EE_L")
@pytest.mark.parametrize("seed", range(5))
def test_loss_is_disparity_minus_twice_relevance_plus_a_constant(seed: int) -> None:
    grades, run, _ = topic(seed)
    empty = evaluate({"q": grades, "r": {"d": 1}}, {"r": {"d": 1.0}}, "EE_L")["q"]
    parts = score("EE_D", grades, run) - 2 * score("EE_R", grades, run) + empty
    assert score("EE_L", grades, run) == pytest.approx(parts)


# attention-weighted rank fairness

WEIGHTS = {
    "log": lambda rank: 1 / math.log2(max(rank, 2)),
    "dcg": lambda rank: 1 / math.log2(rank + 1),
    "geometric": lambda rank: 0.7 ** (rank - 1),
}


def shares_by_hand(
    grades: Grades, run: dict[str, float], groups: dict[str, dict[str, float]], weight: Any, target: str, k: int
) -> tuple[list[float], list[float]]:
    names = sorted({group for labels in groups.values() for group in labels})
    got, wanted = dict.fromkeys(names, 0.0), dict.fromkeys(names, 1.0 if target == "uniform" else 0.0)
    for rank, document in enumerate(sorted(run, key=run.__getitem__, reverse=True)[:k], start=1):
        labels = groups.get(document, {})
        for group, share in labels.items():
            got[group] += weight(rank) * share / sum(labels.values())
    for document in [d for d in grades if grades[d] >= 1 and target == "relevant"]:
        labels = groups.get(document, {})
        for group, share in labels.items():
            wanted[group] += share / sum(labels.values())
    return [got[g] / sum(got.values()) for g in names], [wanted[g] / sum(wanted.values()) for g in names]


@proves("AWRF")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("attention", list(WEIGHTS))
@pytest.mark.parametrize("target", ["relevant", "uniform"])
@pytest.mark.parametrize("k", [None, 4])
def test_attention_weighted_rank_fairness_against_a_loop_and_scipy(
    seed: int, attention: str, target: str, k: int | None
) -> None:
    grades, run, groups = topic(seed)
    shares, wanted = shares_by_hand(grades, run, groups, WEIGHTS[attention], target, k or 99)
    cut = f"@{k}" if k else ""
    expected = {
        "js": 1 - jensenshannon(shares, wanted) ** 2,  # as the Fair Ranking tracks of 2021 and 2022 compute it
        "js2": 1 - jensenshannon(shares, wanted, base=2) ** 2,
        "absolute": 1 - np.abs(np.subtract(shares, wanted)).sum() / 2,
    }
    for distance, value in expected.items():
        typed = f"AWRF(attention={attention}, target={target}, distance={distance}, p=0.7){cut}"
        assert score(typed, grades, run, groups=groups) == pytest.approx(value, abs=1e-12), distance


FAIR = {"a": {"x": 1.0}, "b": {"y": 1.0}, "c": {"x": 1.0}}


@proves("AWRF")
def test_a_perfectly_fair_ranking_scores_1_and_the_most_unfair_scores_the_minimum() -> None:
    for distance, least in {"js": 1 - math.log(2), "js2": 0.0, "absolute": 0.0}.items():
        typed = f"AWRF(distance={distance})"
        assert score(typed, {"a": 1, "b": 1}, {"a": 2.0, "b": 1.0}, groups=FAIR) == pytest.approx(1)  # both weigh 1
        assert score(typed, {"a": 1}, {"b": 1.0}, groups=FAIR) == pytest.approx(least)


@proves("AWRF")
def test_with_a_single_group_every_ranking_is_fair() -> None:
    groups = {"a": {"x": 1.0}, "b": {"x": 0.5}}
    assert score("AWRF", {"a": 1, "b": 0}, {"b": 3.0, "u": 2.0, "a": 1.0}, groups=groups) == pytest.approx(1)


def test_unjudged_documents_count_by_their_group_and_documents_without_one_keep_their_rank() -> None:
    geometric = "AWRF(attention=geometric, distance=absolute, target=uniform)"
    value = score(geometric, {"a": 1}, {"a": 3.0, "nobody's": 2.0, "b": 1.0}, groups=FAIR)
    assert value == pytest.approx(1 - abs(1 / 1.25 - 0.5))  # x gets 1, y a quarter, not a half


def test_no_group_in_sight_scores_0() -> None:
    assert score("AWRF", {"a": 1}, {"u": 1.0}, groups=FAIR) == 0
    assert score("AWRF", {"u": 1}, {"a": 1.0}, groups=FAIR) == 0  # relevant documents of no group set no target
    assert score("GroupEE_D", {"u": 1}, {"u": 1.0}, groups=FAIR) == 0


# second aspects


def aspects(seed: int) -> tuple[Grades, dict[str, float], Grades]:
    grades, run, _ = topic(seed)
    rng = np.random.default_rng(seed + 100)
    return grades, run, {name: float(rng.choice([0, 1, 2, 4])) for name in list(grades)[:-2]}


@proves("uRBP", "uBpref")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("worth", ["graded", "binary"])
def test_second_aspects_against_a_loop_over_the_formulas(seed: int, worth: str) -> None:
    grades, run, aspect = aspects(seed)
    ranking = sorted(run, key=run.__getitem__, reverse=True)
    relevant = sum(grade >= 1 for grade in grades.values())
    bound = min(relevant, len(grades) - relevant)
    rbp = bpref = wrong = 0.0
    for rank, name in enumerate(ranking, start=1):
        grade = grades.get(name)
        value = aspect.get(name, 0.0)
        value = min(value / 2, 1) if worth == "graded" else float(value >= 2)
        if grade is not None and grade >= 1:
            rbp += 0.3 * 0.7 ** (rank - 1) * value
            bpref += (1 - min(wrong, relevant) / bound) * value / relevant
        wrong += grade == 0
    known = {"aspect": {"q": aspect}}
    assert score(f"uRBP(p=0.7, worth={worth}, max=2)", grades, run, **known) == pytest.approx(rbp)
    assert score(f"uBpref(worth={worth}, max=2)", grades, run, **known) == pytest.approx(bpref)


@proves("uRBP", "uBpref")
@pytest.mark.parametrize("seed", range(4))
def test_if_every_document_is_understandable_they_equal_the_plain_measures(seed: int) -> None:
    grades, run, _ = topic(seed)
    known = {"aspect": {"q": dict.fromkeys(grades, 1.0)}}
    assert score("uRBP(p=0.6)", grades, run, **known) == score("RBP(p=0.6)", grades, run)
    assert score("uBpref", grades, run, **known) == score("Bpref", grades, run)


# Made with trectools 0.0.50: the grades and readability (in quarters) of d00, d01 … d10, the run, and its values
TRECTOOLS = {
    "1": ("00200101010", "23103042012", "12 04 03 02 13 09 05 00 08 10", 0.041984, 0.0625),
    "2": ("20011110212", "41300443431", "03 04 12 00 01 10 07 05 02 11", 0.16072704, 0.1875),
    "3": ("20001110000", "21331342020", "05 02 04 07 00 09 13 10 08 12", 0.22296, 0.296875),
}


@proves("uRBP", "uBpref")
def test_second_aspects_against_recorded_values_of_trectools() -> None:
    def judged(digits: str) -> Grades:
        return {f"d{i:02}": float(digit) for i, digit in enumerate(digits)}

    qrels = {topic: judged(grades) for topic, (grades, *_) in TRECTOOLS.items()}
    aspect = {topic: judged(quarters) for topic, (_, quarters, *_) in TRECTOOLS.items()}
    run = {
        topic: {f"d{number}": -float(rank) for rank, number in enumerate(ranking.split())}
        for topic, (_, _, ranking, *_) in TRECTOOLS.items()
    }
    scores = evaluate(qrels, run, "uRBP(p=0.8, max=4) uBpref(max=4)", extras=Extras(aspect=aspect))
    expected = [[rbp for *_, rbp, _ in TRECTOOLS.values()], [bpref for *_, bpref in TRECTOOLS.values()]]
    assert np.asarray(scores)[0] == pytest.approx(np.array(expected), abs=1e-12)


def test_trectools_forgets_irrelevant_documents_without_a_second_grade_and_we_do_not() -> None:
    grades, run = {"a": 1.0, "b": 0.0, "c": 1.0, "d": 0.0}, {"a": 3.0, "b": 2.0, "c": 1.0}
    value = score("uBpref", grades, run, aspect={"q": {"a": 1.0, "c": 1.0}})
    assert value == score("Bpref", grades, run) == 0.75  # trectools: 1.0 for uBpref, 0.75 for bpref


def test_a_measure_that_lacks_its_groups_or_aspect_says_how_to_give_them() -> None:
    with pytest.raises(DataError, match=r"AWRF needs the groups that documents belong to \(Extras\(groups=…\)"):
        score("AWRF", {"a": 1}, {"a": 1.0})
    with pytest.raises(DataError, match=r"uRBP needs judgments of a second aspect \(Extras\(aspect=…\)"):
        score("uRBP", {"a": 1}, {"a": 1.0})


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("EE-L", "EE_L"), ("EE-D(model=gerr)", "EE_D(model=gerr)"), ("awrf@20", "AWRF@20"), ("urbp", "uRBP")],
)
def test_the_names_of_the_tools_are_read(typed: str, meant: str) -> None:
    assert str(measure(typed)) == meant


# the file of groups


def test_groups_are_read_with_their_shares_comments_and_names_with_spaces() -> None:
    text = b"\xef\xbb\xbf# who wrote it\nd1\tSouth America\t0.5\r\nd1\tEurope\t.5\n\nd2 Asia\nd\xff Asia 2"
    assert read_groups(text) == {
        "d1": {"South America": 0.5, "Europe": 0.5},
        "d2": {"Asia": 1.0},
        "d\udcff": {"Asia": 2.0},
    }


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (b"d1 x\nd2\n", BadLineError, "<bytes>:2: expected 2 or 3 columns (document group share), found 1"),
        (b"d1 x 1 y\n", BadLineError, "<bytes>:1: expected 2 or 3 columns (document group share), found 4"),
        (b"d1\t\t1\n", BadLineError, "<bytes>:1: expected 2 or 3 columns (document group share), found 2"),
        (b"d1 x half\n", BadLineError, "<bytes>:1: expected a share of 0 or more in column 3, found 'half'"),
        (b"d1 x -1\n", BadLineError, "<bytes>:1: expected a share of 0 or more in column 3, found '-1'"),
        (b"d1 x inf\n", BadLineError, "<bytes>:1: expected a share of 0 or more in column 3, found 'inf'"),
        (b"d1 x\nd1 x\n", DuplicateError, "<bytes>:2: document 'd1' is put into group 'x' twice"),
        (b"# nothing\n", DataError, "<bytes>: expected a document and its group on each line, found none"),
    ],
)
def test_a_file_of_groups_that_makes_no_sense_is_refused(text: bytes, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        read_groups(text)
    assert str(caught.value) == said


def test_the_command_line_reads_groups_and_a_second_aspect(tmp_path: Path) -> None:
    files = {
        "qrels": "q 0 a 1\nq 0 b 1\n",
        "run": "q Q0 a 1 2 x\nq Q0 b 2 1 x\n",
        "groups": "a x\nb y\n",
        "readable": "q 0 a 1\nq 0 b 0.5\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    names = "AWRF EE_L uRBP(p=0.5)"
    given = ("--groups", "groups", "--aspect", "readable", "--format", "csv", "--digits", "3")
    answer = cranfield("eval", "qrels", "run", "-m", names, *given, folder=tmp_path)
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[1].startswith("run,1.000,0.125,0.625")
    assert cranfield("eval", "qrels", "run", "-m", "AWRF", folder=tmp_path).code == 3
    listed = cranfield("measures", "--family", "fairness")
    assert all(name in listed.out for name in (*EXPOSURE, "AWRF"))

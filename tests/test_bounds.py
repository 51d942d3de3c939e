"""Bounds against exact enumeration: every order of ties, and every way to judge what is unjudged, for every measure.

The enumeration goes through `evaluate` with real runs and real judgments, one for each case, and shares no code with
`cranfield.bounds`. With `EVERY_CASE` at 0 the bounds have to come from proofs and formulas alone.
"""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from functools import cache
from itertools import groupby, permutations, product
from typing import Any

import numpy as np
import pytest

from cranfield import Extras, Measure, Qrels, Run, evaluate, measure
from cranfield.base.errors import ConventionError, CranfieldError, MeasureError
from cranfield.evaluation.bounds import bounds
from cranfield.evaluation.evaluate import MOVED, PLAIN
from cranfield.evaluation.measures import REGISTRY
from cranfield.evaluation.measures.definition import Gain
from cranfield.formats import read_qrels
from shell import cranfield

SEEDS = 14
SOME = {"k": 4, "recall": 0.5, "t": 2, "T": 2, "max": 3}  # parameters that must be given, or fit the grades here


def variants(cls: type[Measure]) -> list[Measure]:
    """The measure as it comes, cut at 4, for grades of 2 and up, of the condensed list, and with each other choice."""
    needed = {key: SOME.get(key, parameter.example) for key, parameter in cls.parameters.items() if parameter.required}
    if "max" in cls.parameters:
        needed["max"] = 3
    changes: list[dict[str, Any]] = [{}, {"k": 4}, {"rel": 2}, {"rel": 0}, {"judged_only": True}]
    for name, parameter in cls.parameters.items():
        changes += [{name: choice} for choice in getattr(parameter, "choices", ())[1:2]]
    answer: dict[str, Measure] = {}
    for change in changes:
        if set(change) <= set(cls.parameters):
            try:
                made = cls(**{**needed, **change})
            except CranfieldError:
                continue
            answer[str(made)] = made
    return list(answer.values())


def needs(m: Measure) -> set[str]:
    inner = [value for value in m.values.values() if isinstance(value, Measure)]
    return {*m.needs, *(need for each in inner for need in needs(each))}


MEASURES = [m for cls in REGISTRY.values() for m in variants(cls)]
TIED = [m for m in MEASURES if not needs(m) - MOVED]
EXTRAS = Extras(size=50, probabilities={})
UNCUT: dict[type[Measure], bool] = {}


def gradable(m: Measure) -> bool:
    """Whether it sees ranks and grades only; others (preferences, groups) refuse, and say so."""
    if needs(m) - PLAIN:
        return False
    if type(m) in UNCUT:  # how it is cut makes no difference, and asking costs as much as a test
        return UNCUT[type(m)]
    UNCUT[type(m)] = True
    try:
        bounds({"t": {"a": 1}}, {"t": {"a": 2, "b": 1}}, [m], "unjudged", extras=EXTRAS, samples=1)
    except MeasureError as error:
        UNCUT[type(m)] = "it uses more of a document than its rank and grade" not in str(error)
    return UNCUT[type(m)]


GRADED = [m for m in MEASURES if gradable(m)]


def test_the_measures_of_ranks_and_grades_can_all_be_bounded() -> None:
    names = {m.name for m in GRADED}
    assert {"P", "R", "AP", "RR", "nDCG", "ERR", "RBP", "Bpref", "Rprec", "Success", "infAP", "Q"} <= names


@cache
def tied_topics() -> tuple[Any, dict[str, list[tuple[str, float]]]]:
    """Judgments under two labels, and rankings with ties; grades -1 to 3, some documents unjudged."""
    rng = np.random.default_rng(5)
    lines, run = [], {}
    for t in range(SEEDS):
        names = [f"d{i}" for i in range(int(rng.integers(2, 6)))]
        lines.append(f"t{t} 1 elsewhere {rng.integers(0, 4)}\n")
        for name in names:
            kind = rng.random()
            if kind < 0.75:
                grade = rng.choice([-1, 0, 0, 1, 1, 2, 3])
                lines.append(f"t{t} 1 {name} {grade}\n")
                if rng.random() < 0.3:
                    lines.append(f"t{t} 2 {name} {rng.integers(0, 4)}\n")
        # no more than three documents share a score, so that there are at most 3! · 2! orders
        scores = np.sort(rng.integers(0, 3, len(names)))[::-1].astype(float)
        while max(Counter(scores.tolist()).values()) > 3:
            scores = np.sort(rng.integers(0, 4, len(names)))[::-1].astype(float)
        run[f"t{t}"] = list(zip(names, scores.tolist(), strict=True))
    return "".join(lines).encode(), run


def orders(ranking: list[tuple[str, float]]) -> list[list[str]]:
    groups = [[name for name, _ in group] for _, group in groupby(ranking, key=lambda pair: pair[1])]
    return [[name for part in case for name in part] for case in product(*(list(permutations(g)) for g in groups))]


@cache
def enumerated_ties() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lowest, highest and mean value over all orders, measures × topics."""
    text, run = tied_topics()
    cases = {topic: orders(ranking) for topic, ranking in run.items()}
    most = max(map(len, cases.values()))
    runs = [
        Run({t: {d: -float(r) for r, d in enumerate(each[i % len(each)])} for t, each in cases.items()}, name=f"r{i}")
        for i in range(most)
    ]
    values = np.asarray(
        evaluate(qrels(text), runs, TIED, extras=EXTRAS, baseline=baseline())
    )  # runs × measures × topics
    low, high, mean = (np.empty(values.shape[1:]) for _ in range(3))
    for t, each in enumerate(cases.values()):
        part = values[: len(each), :, t]
        low[:, t], high[:, t] = np.fmin.reduce(part, axis=0), np.fmax.reduce(part, axis=0)
        mean[:, t] = part.mean(axis=0)
    return low, high, mean


def qrels(text: bytes) -> Qrels:

    return read_qrels(io.BytesIO(text), format="trec")


def baseline() -> Run:
    return Run({f"t{t}": {"elsewhere": 2.0, "d0": 1.0} for t in range(SEEDS)})


@cache
def found_ties(every_case: int) -> Any:
    text, run = tied_topics()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["cranfield.evaluation.bounds"], "EVERY_CASE", every_case)
        given = {topic: dict(ranking) for topic, ranking in run.items()}
        return bounds(qrels(text), given, TIED, "ties", extras=EXTRAS, baseline=baseline(), samples=10)


@pytest.mark.parametrize("at", range(len(TIED)), ids=[str(m) for m in TIED])
def test_bounds_over_ties_against_exact_enumeration(at: int) -> None:
    low, high, mean = (values[at] for values in enumerated_ties())
    full = found_ties(1000)
    assert full.proven[0, at].all()
    assert full.exact[0, at].all()
    np.testing.assert_allclose(full.low[0, at], low, atol=1e-12)
    np.testing.assert_allclose(full.high[0, at], high, atol=1e-12)
    np.testing.assert_allclose(full.expected[0, at], mean, atol=1e-12)
    bare = found_ties(0)
    proven, exact = bare.proven[0, at], bare.exact[0, at]
    np.testing.assert_allclose(bare.low[0, at][proven], low[proven], atol=1e-12)
    np.testing.assert_allclose(bare.high[0, at][proven], high[proven], atol=1e-12)
    np.testing.assert_allclose(bare.expected[0, at][exact], mean[exact], atol=1e-12)
    assert (bare.low[0, at] >= low - 1e-12)[~np.isnan(low)].all()
    assert (bare.high[0, at] <= high + 1e-12)[~np.isnan(low)].all()


# over grades


@cache
def open_topics() -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Judgments of grades 0 to 3 (and -1), and rankings with up to three unjudged documents."""
    rng = np.random.default_rng(11)
    judged: dict[str, dict[str, float]] = {}
    run: dict[str, dict[str, float]] = {}
    for t in range(SEEDS):
        names = [f"d{i}" for i in range(int(rng.integers(2, 7)))]
        unknown = set(rng.choice(names, size=min(len(names), int(rng.integers(0, 3))), replace=False).tolist())
        judged[f"t{t}"] = {"elsewhere": float(rng.integers(0, 4)), "missed": 3.0}
        judged[f"t{t}"] |= {name: float(rng.integers(0, 4)) for name in names if name not in unknown}
        for name in list(unknown)[:1]:
            if rng.random() < 0.3:
                judged[f"t{t}"][name] = -1.0  # no judgment either
        run[f"t{t}"] = {name: -float(rank) for rank, name in enumerate(names)}
    return judged, run


@cache
def enumerated_grades() -> tuple[np.ndarray, np.ndarray]:
    judged, run = open_topics()
    unknown = {t: [d for d in ranking if judged[t].get(d, -1) < 0] for t, ranking in run.items()}
    cases = {t: list(product([0.0, 1.0, 2.0, 3.0], repeat=len(names))) for t, names in unknown.items()}
    low = high = np.asarray(evaluate(judged, run, GRADED, extras=EXTRAS))[0]  # as it is: nobody judges them
    for i in range(max(map(len, cases.values()))):
        now = {t: {**judged[t], **dict(zip(unknown[t], each[i % len(each)], strict=True))} for t, each in cases.items()}
        values = np.asarray(evaluate(now, run, GRADED, extras=EXTRAS))[0]
        low, high = np.fmin(low, values), np.fmax(high, values)
    return low, high


@cache
def found_grades(every_case: int) -> Any:
    judged, run = open_topics()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["cranfield.evaluation.bounds"], "EVERY_CASE", every_case)
        return bounds(judged, run, GRADED, "unjudged", extras=EXTRAS, samples=5)


@pytest.mark.parametrize("at", range(len(GRADED)), ids=[str(m) for m in GRADED])
def test_bounds_over_unjudged_documents_against_exact_enumeration(at: int) -> None:
    low, high = (values[at] for values in enumerated_grades())
    full = found_grades(1000)
    assert full.proven[0, at].all()
    np.testing.assert_allclose(full.low[0, at], low, atol=1e-12)
    np.testing.assert_allclose(full.high[0, at], high, atol=1e-12)
    bare = found_grades(0)
    proven = bare.proven[0, at]
    np.testing.assert_allclose(bare.low[0, at][proven], low[proven], atol=1e-12)
    np.testing.assert_allclose(bare.high[0, at][proven], high[proven], atol=1e-12)
    assert (bare.low[0, at] >= low - 1e-12)[~np.isnan(low)].all()
    assert (bare.high[0, at] <= high + 1e-12)[~np.isnan(low)].all()


# where a grade below 0 is a judgment

BELOW = ("signed", "signed-exp2", {-2: -1, 1: 3})
VALUED = [
    cls(**{**{k: 3 for k in ("k", "max") if k in cls.parameters}, "gain": gain})
    for cls in REGISTRY.values()
    if isinstance(cls.parameters.get("gain"), Gain) and not cls.needs
    for gain in BELOW
] + [measure("AP(rel=-1)"), measure("P(rel=-2)@3"), measure("AP(rel=-1, judged_only=True)")]


@cache
def negative_topics() -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Judgments of grades -2 to 2, of which the run returns some, and up to two unjudged documents."""
    rng = np.random.default_rng(3)
    judged: dict[str, dict[str, float]] = {}
    run: dict[str, dict[str, float]] = {}
    for t in range(SEEDS):
        names = [f"d{i}" for i in range(int(rng.integers(2, 6)))]
        judged[f"t{t}"] = {name: float(rng.integers(-2, 3)) for name in [*names, "missed", "elsewhere"]}
        returned = [*names, *["u0", "u1"][: int(rng.integers(0, 3))]]
        run[f"t{t}"] = {name: -float(rank) for rank, name in enumerate(rng.permutation(returned).tolist())}
    judged["t0"] |= {"elsewhere": -2.0, "missed": 2.0}  # so that the whole scale is there
    return judged, run


@cache
def enumerated_below() -> tuple[np.ndarray, np.ndarray]:
    judged, run = negative_topics()
    scale = sorted({grade for grades in judged.values() for grade in grades.values()})
    assert scale == [-2, -1, 0, 1, 2]
    unknown = {t: [d for d in ranking if d not in judged[t]] for t, ranking in run.items()}
    cases = {t: list(product(scale, repeat=len(names))) for t, names in unknown.items()}
    low = high = np.asarray(evaluate(judged, run, VALUED))[0]
    for i in range(max(map(len, cases.values()))):
        now = {t: {**judged[t], **dict(zip(unknown[t], each[i % len(each)], strict=True))} for t, each in cases.items()}
        values = np.asarray(evaluate(now, run, VALUED))[0]
        low, high = np.fmin(low, values), np.fmax(high, values)
    return low, high


@pytest.mark.parametrize("at", range(len(VALUED)), ids=[str(m) for m in VALUED])
@pytest.mark.parametrize("every_case", [1000, 0])
def test_a_document_judged_below_0_keeps_its_grade_where_the_measure_values_it_against_enumeration(
    at: int, every_case: int
) -> None:
    low, high = (values[at] for values in enumerated_below())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["cranfield.evaluation.bounds"], "EVERY_CASE", every_case)
        found = bounds(*negative_topics(), [VALUED[at]], "unjudged", samples=5)
    assert found.proven.all() or not every_case
    proven = found.proven[0, 0]
    np.testing.assert_allclose(found.low[0, 0][proven], low[proven], atol=1e-12)
    np.testing.assert_allclose(found.high[0, 0][proven], high[proven], atol=1e-12)
    inside = ~np.isnan(low)
    assert (found.low[0, 0] >= low - 1e-12)[inside].all()
    assert (found.high[0, 0] <= high + 1e-12)[inside].all()


def test_a_loss_by_hand_and_the_grades_that_it_is_supposed_of() -> None:
    """The document judged -2 costs 2 whatever else is judged; the unjudged one may cost 2 or bring 1."""
    found = bounds({"q": {"a": -2, "b": 1}}, {"q": {"a": 3, "u": 2, "b": 1}}, "CG(gain=signed) CG", "unjudged")
    assert (found.low[0, 0, 0], found.scores.values[0, 0, 0], found.high[0, 0, 0]) == (-3, -1, 0)
    assert (found.low[0, 1, 0], found.high[0, 1, 0]) == (1, 3)  # no judgment, where it is worth nothing
    assert found.proven.all()
    assert "any grade of 0, 1 (for CG(gain=signed) of -2 too), or all stay unjudged;" in found.assumption
    assert found.to_dict()["negative"] == {"CG(gain=signed)": [-2]}


def outside(judged: Any, run: Any, over: Any, every_case: int) -> list[str]:
    """The measures of which a topic's score lies outside of its bounds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["cranfield.evaluation.bounds"], "EVERY_CASE", every_case)
        found = bounds(judged, run, [*GRADED, *VALUED], over, extras=EXTRAS, samples=3)
    score, known = found.scores.values, ~np.isnan(found.low)
    assert (known == ~np.isnan(found.high)).all()
    assert (known | np.isnan(score)).all()
    beyond = (score < found.low - 1e-12) | (score > found.high + 1e-12)
    names = list(found.scores.measures)
    return [names[m] for _, m, _ in np.argwhere(beyond & known)]


def with_ties(run: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {topic: {document: score // 2 for document, score in ranking.items()} for topic, ranking in run.items()}


@pytest.mark.parametrize("over", ["ties", "unjudged"])
def test_every_score_lies_within_its_bounds_whatever_the_measure(over: str) -> None:
    judged, run = negative_topics()
    assert outside(judged, with_ties(run), over, every_case=0) == []


@pytest.mark.slow
@pytest.mark.parametrize("over", ["ties", "unjudged"])
@pytest.mark.parametrize("every_case", [1000, 0])
def test_every_score_lies_within_its_bounds_on_all_topics(over: str, every_case: int) -> None:
    for judged, run in (negative_topics(), open_topics()):
        for given in (run, with_ties(run)):
            assert outside(judged, given, over, every_case) == []


def test_what_counts_unjudged_documents_has_its_score_as_one_bound() -> None:
    judged, run = {"q": {"a": 1}}, {"q": {"a": 3, "u": 2, "v": 1}}
    found = bounds(judged, run, "Judged@3 Unjudged@3 RBPresidual AP(rel=0) P(judged_only=True)@2", "unjudged")
    score = found.scores.values[0, :, 0]
    assert score[:2].tolist() == pytest.approx([1 / 3, 2 / 3])
    assert found.low[0, :, 0].tolist() == pytest.approx([1 / 3, 0, 0.8**3, score[3], 0.5])
    assert found.high[0, :, 0].tolist() == pytest.approx([1, 2 / 3, score[2], 1, 1])


# one by one


def test_the_bounds_of_a_reciprocal_rank_by_hand() -> None:
    """Three tied documents, one relevant: 1, 1/2 or 1/3."""
    found = bounds({"q": {"a": 1}}, {"q": {"a": 1, "b": 1, "c": 1}}, "RR Success@1 gmean(RR)", "ties")
    rows = list(found.rows())
    assert rows[0]["low"] == pytest.approx(1 / 3)
    assert rows[0]["expected"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert (rows[0]["high"], rows[0]["bounds"], rows[0]["expectation"]) == (1, "proven", "exact")
    assert rows[1]["expected"] == pytest.approx(1 / 3)
    assert rows[2]["expected"] is None  # the mean of a geometric mean is no geometric mean of means


def test_expected_values_of_a_long_tie_against_the_formula_of_mcsherry_and_najork() -> None:
    run = {"q": {f"d{i}": 1.0 for i in range(100)}}
    judged = {"q": {f"d{i}": 1 for i in range(20)}}
    found = bounds(judged, run, "AP P@10 RR", "ties")
    harmonic = [1 / rank for rank in range(1, 101)]
    by_hand = sum(0.2 * (1 + (rank - 1) * 19 / 99) / rank for rank in range(1, 101)) / 20
    assert found.expected[0, 0, 0] == pytest.approx(by_hand, abs=1e-12)
    assert found.expected[0, 1, 0] == pytest.approx(0.2, abs=1e-12)
    assert found.exact.all()
    assert found.low[0, 0, 0] == pytest.approx(sum(n / (80 + n) for n in range(1, 21)) / 20)
    assert sum(harmonic) > 5


def test_a_sample_repeats_with_its_seed_and_says_that_it_is_one() -> None:
    run = {"q": {f"d{i}": 1.0 for i in range(30)}}
    judged = {"q": {f"d{i}": i % 4 for i in range(20)}}
    one, same, other = (bounds(judged, run, "infAP", "ties", seed=seed) for seed in (1, 1, 2))
    assert one.expected.item() == same.expected.item() != other.expected.item()
    assert not one.exact.any()
    assert bounds(judged, run, "ERR", "ties").exact.all()
    assert next(one.rows())["expectation"] == "sampled"
    assert one.low.item() <= one.expected.item() <= one.high.item()


def test_bounds_of_a_measure_do_not_depend_on_its_company() -> None:
    text, run = tied_topics()
    given = {topic: dict(ranking) for topic, ranking in run.items()}
    alone = bounds(qrels(text), given, "ERR(max=3)", "ties", samples=5)
    company = bounds(qrels(text), given, "infAP ERR(max=3) alpha_nDCG@5", "ties", samples=5)
    assert alone.expected[0, 0].tolist() == company.expected[0, 1].tolist()


def test_the_ideal_moves_with_the_unjudged_documents_and_the_output_says_so() -> None:
    found = bounds({"q": {"a": 1}}, {"q": {"u": 2, "a": 1}}, "R@1 nDCG", "unjudged")
    assert found.low[0, 0, 0] == 0
    assert found.high[0, 0, 0] == 0.5  # u would be one relevant document of two
    assert found.high[0, 1, 0] == 1
    assert "the ideal ranking change with them" in found.assumption
    assert "any grade of 0, 1, or all stay unjudged;" in found.assumption


def test_bounds_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConventionError, match="bounds must be over ties or unjudged, got 'both'"):
        bounds({"q": {"a": 1}}, {"q": {"a": 1}}, "AP", "both")  # type: ignore[arg-type]
    with pytest.raises(ConventionError, match="need one order of ties"):
        bounds({"q": {"a": 1}}, {"q": {"a": 1}}, "AP", "unjudged", ties="averaged")
    with pytest.raises(ConventionError, match="unjudged=drop"):
        bounds({"q": {"a": 1}}, {"q": {"a": 1}}, "AP", "unjudged", unjudged="drop")
    with pytest.raises(MeasureError, match="alpha_nDCG@5: no bounds over unjudged"):
        bounds(qrels(tied_topics()[0]), {"t1": {"d0": 1}}, "alpha_nDCG@5", "unjudged")


def test_the_command_prints_bounds_as_a_table_and_as_json() -> None:
    table = cranfield("eval", "qrels.txt", "tied.run", "-m", "nDCG@10", "--bounds", "ties")
    assert table.out.splitlines()[:2] == [
        "run   measure     low   score  expected    high  bounds  expectation",
        "tied  nDCG@10  0.7565  0.7565    0.7710  0.7855  proven        exact",
    ]
    assert "assumption: documents with equal scores may stand in any order" in table.out
    data = json.loads(cranfield("eval", "qrels.txt", "dense.run", "--bounds", "unjudged", "--format", "json").out)
    assert data["over"] == "unjudged"
    assert data["grades"] == [0, 1, 2, 3]
    assert {row["bounds"] for row in data["bounds"]} <= {"proven", "found"}
    per_topic = cranfield("eval", "qrels.txt", "dense.run", "--bounds", "ties", "--per-topic", "--format", "csv")
    assert per_topic.out.startswith("run,measure,topic,low,score,expected,high,bounds,expectation\n")
    assert cranfield("eval", "qrels.txt", "dense.run", "--bounds", "luck").code == 2

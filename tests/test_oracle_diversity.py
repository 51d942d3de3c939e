"""Diversity measures against ndeval's recorded output, pyndeval, a loop over the papers' formulas, and enumeration."""

from __future__ import annotations

import json
import math
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cranfield import evaluate, measure, read_qrels
from cranfield.base.errors import DataError, MeasureError
from cranfield.evaluation.evaluate import Evaluator
from cranfield.evaluation.measures import REGISTRY
from oracles import per_topic, printed, proves
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path

NINE = ("alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall")
CUT = ("ERR-IA", "nERR-IA", "alpha-DCG", "alpha-nDCG", "P-IA", "strec")
WHOLE = ("NRBP", "nNRBP", "MAP-IA")

Judged = list[tuple[str, str, str, int]]  # topic, subtopic, document, grade
Answers = list[frozenset[str]]  # for each rank, the subtopics that its document answers


def collection(seed: int, topics: int = 6, documents: int = 60) -> tuple[Judged, dict[str, dict[str, float]]]:
    """Random judgments per subtopic and a random run; ids and grades of all sorts, scores with ties."""
    rng = np.random.default_rng(seed)
    judged, run = [], {}
    for t in range(topics):
        names = [f"d{i}" for i in rng.permutation(documents)]
        for s in range(1, int(rng.integers(1, 7)) + 1):
            share = rng.uniform(0, 0.5)
            judged += [(f"q{t}", str(s), name, int(rng.integers(0, 4))) for name in names if rng.random() < share]
        judged.append((f"q{t}", "1", "judged", 0))
        returned = [*rng.choice(names, int(rng.integers(1, documents)), replace=False).tolist(), "unjudged"]
        run[f"q{t}"] = {name: float(rng.integers(0, documents)) for name in returned}
    return judged, run


def as_bytes(judged: Judged) -> bytes:
    return "".join(f"{topic} {subtopic} {document} {grade}\n" for topic, subtopic, document, grade in judged).encode()


# ndeval's own output, and ndeval itself


@proves(*NINE)
@pytest.mark.parametrize("year", ["2009", "2010"])
def test_every_value_of_the_web_track_runs_against_ndeval_digit_for_digit(shared: Path, year: str) -> None:
    folder = shared / "diversity-wt09-10"
    lines = (folder / f"indri.wt{year}.ndeval.tsv").read_text().splitlines()
    [_, *names], *rows = [line.split("\t") for line in lines]
    scores = evaluate(
        folder / f"{year}.diversity.qrels", folder / f"indri.wt{year}.run", names, ties="document-ascending"
    )
    values = {**per_topic(scores), "amean": {name: scores.mean(name) for name in names}}
    assert set(values) == {row[0] for row in rows}
    assert len(names) == 21
    for topic, *expected in rows:
        assert [printed(values[topic][name], like=text) for name, text in zip(names, expected, strict=True)] == expected


@proves(*NINE)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.5), (0.25, 0.8), (0.0, 0.5), (1.0, 0.3)])
def test_random_runs_against_pyndeval(seed: int, alpha: float, beta: float) -> None:
    pyndeval = pytest.importorskip("pyndeval")
    judged, run = collection(seed)
    rows = [(topic, document, score) for topic, scored in run.items() for document, score in scored.items()]
    names = [f"{name}@{k}" for name in CUT for k in (2, 3, 5, 10, 20)] + list(WHOLE)
    theirs = pyndeval.ndeval(judged, rows, names, alpha=alpha, beta=beta)
    ours = {name: measure(name) for name in names}
    given = {"alpha": alpha, "beta": beta}
    ours = {n: type(m)(**{**m.values, **{p: v for p, v in given.items() if p in m.values}}) for n, m in ours.items()}
    values = per_topic(evaluate(as_bytes(judged), run, list(ours.values()), ties="document-ascending"))
    for topic, expected in theirs.items():
        for name in names:
            value = 0.0 if math.isnan(expected[name]) else expected[name]  # nothing relevant: 0/0 in ndeval
            assert values[topic][str(ours[name])] == pytest.approx(value, abs=1e-12), (topic, name)


def test_at_rank_1_ndeval_forgets_to_divide_and_we_do_not() -> None:
    pyndeval = pytest.importorskip("pyndeval")
    judged: Judged = [("q", "1", "a", 1), ("q", "2", "a", 1), ("q", "3", "b", 1)]
    theirs = pyndeval.ndeval(judged, [("q", "a", 1.0)], ["ERR-IA@1", "alpha-DCG@1", "ERR-IA@2"])["q"]
    assert theirs["ERR-IA@1"] == theirs["alpha-DCG@1"] == 2  # two of three subtopics: above 1
    scores = evaluate(as_bytes(judged), {"q": {"a": 1.0}}, "ERR-IA@1 alpha-DCG@1 ERR-IA@2")
    assert scores.mean("ERR-IA@1") == scores.mean("alpha-DCG@1") == pytest.approx(2 / 3)
    assert scores.mean("ERR-IA@2") == pytest.approx(theirs["ERR-IA@2"])


@proves("ERR_IA")
def test_err_ia_against_the_recorded_case_of_ir_measures(shared: Path) -> None:
    recorded = json.loads((shared / "peer-cases" / "ir_measures.json").read_text())
    [case] = [case for case in recorded["cases"] if case["measure"] == "ERR_IA@20"]
    judged = [(topic, label, document, grade) for topic, document, grade, label in recorded["qrels"][case["qrels"]]]
    run: dict[str, dict[str, float]] = {}
    for topic, document, score, *_ in recorded["runs"][case["run"]]:
        run.setdefault(topic, {})[document] = score
    values = per_topic(evaluate(as_bytes(judged), run, "ERR_IA@20", ties="document-ascending"))
    assert set(values) == set(case["per_query"])
    for topic, expected in case["per_query"].items():
        assert values[topic]["ERR_IA@20"] == pytest.approx(expected, abs=1e-12)


# loops over the papers' formulas, at any depth


def greedy(documents: dict[str, frozenset[str]], alpha: float) -> Answers:
    """The ideal list: the document that gains most, of equal ones the highest id, again and again."""
    left, seen, chosen = dict(documents), dict.fromkeys(frozenset().union(*documents.values()), 0), []
    while left:
        name = max(left, key=lambda name: (sum((1 - alpha) ** seen[s] for s in sorted(left[name])), name))
        chosen.append(left.pop(name))
        for s in chosen[-1]:
            seen[s] += 1
    return chosen


def gains(ranking: Answers, alpha: float) -> list[float]:
    """What each rank adds: 1 for a subtopic's first answer, 1 − alpha for the second …"""
    seen: dict[str, int] = {}
    answer = []
    for subtopics in ranking:
        answer.append(sum((1 - alpha) ** seen.get(s, 0) for s in subtopics))
        seen.update({s: seen.get(s, 0) + 1 for s in subtopics})
    return answer


def discounted(ranking: Answers, alpha: float, discount: Any) -> float:
    return sum(gain * discount(rank) for rank, gain in enumerate(gains(ranking, alpha), start=1))


def log2(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def inverse(rank: int) -> float:
    return 1 / rank


def documents_of(judged: Judged, topic: str, rel: int = 1) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for t, subtopic, document, grade in judged:
        if t == topic and grade >= rel:
            found[document] = found.get(document, frozenset()) | {subtopic}
    return found


def by_hand(judged: Judged, run: dict[str, float], topic: str, k: int, alpha: float, rel: int) -> dict[str, float]:
    documents = documents_of(judged, topic, rel)
    order = sorted(run, key=lambda name: (run[name], name), reverse=True)
    ranking = [documents.get(name, frozenset()) for name in order][:k]
    subtopics = sorted(frozenset().union(*documents.values()))
    ideal = greedy(documents, alpha)[:k]
    full = [frozenset(subtopics)] * k
    answer = {}
    for name, discount in (("alpha_{}DCG", log2), ("{}ERR_IA", inverse)):
        mine = discounted(ranking, alpha, discount)
        answer[name.format("")] = mine / discounted(full, alpha, discount)
        answer[name.format("n")] = mine / discounted(ideal, alpha, discount)
    average = []
    for s in subtopics:
        found = [rank for rank, answered in enumerate(ranking, start=1) if s in answered]
        relevant = sum(s in answered for answered in documents.values())
        average.append(sum(n / rank for n, rank in enumerate(found, start=1)) / relevant)
    answer["AP_IA"] = sum(average) / len(subtopics)
    answer["P_IA"] = sum(map(len, ranking)) / k / len(subtopics)
    answer["StRecall"] = len(frozenset().union(*ranking)) / len(subtopics)
    return answer


@proves("alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA", "AP_IA", "P_IA", "StRecall")
@pytest.mark.parametrize("k", [1, 7, 33, 100])
@pytest.mark.parametrize(("alpha", "rel"), [(0.5, 1), (0.5, 2), (0.25, 1)])
def test_any_cut_off_against_a_loop_over_the_formulas(k: int, alpha: float, rel: int) -> None:
    judged, run = collection(99)
    judged = [row for row in judged if documents_of(judged, row[0], rel)]
    for topic in dict.fromkeys(row[0] for row in judged):
        expected = by_hand(judged, run[topic], topic, k, alpha, rel)
        for name, value in expected.items():
            given = {"rel": rel, "k": k, **({"alpha": alpha} if "alpha" in REGISTRY[name].parameters else {})}
            scores = evaluate(as_bytes(judged), run, [REGISTRY[name](**given)])
            assert scores[topic] == pytest.approx(value, abs=1e-12), (topic, name)


def test_without_a_cut_off_the_whole_list_meets_the_whole_ideal() -> None:
    judged, run = collection(5)
    names = ["alpha_nDCG", "nERR_IA", "AP_IA", "StRecall"]
    whole = np.asarray(evaluate(as_bytes(judged), run, names))
    deep = np.asarray(evaluate(as_bytes(judged), run, [f"{name}@5000" for name in names]))
    assert whole == pytest.approx(deep, abs=1e-12)


def test_the_ideal_is_the_same_for_every_run_and_in_any_company_of_measures() -> None:
    judged, run = collection(7)
    alone = evaluate(as_bytes(judged), run, "alpha_nDCG@40")
    evaluator = Evaluator(as_bytes(judged), "alpha_nDCG@3 nNRBP alpha_nDCG@40 alpha_nDCG(alpha=0.9)@40 nERR_IA@2")
    for _ in range(2):
        assert evaluator.evaluate(run).mean("alpha_nDCG@40") == alone.mean()


# where greedy is not best


TRAP = {"a": frozenset("2356"), "b": frozenset("123"), "c": frozenset("456")}  # greedy takes a; b and c are better
TRAP_QRELS: Judged = [("q", s, document, 1) for document, subtopics in TRAP.items() for s in sorted(subtopics)]


@proves("alpha_nDCG", "nERR_IA")
def test_a_list_can_exceed_the_greedy_ideal_within_the_proved_bound_against_enumeration() -> None:
    value = evaluate(as_bytes(TRAP_QRELS), {"q": {"b": 2.0, "c": 1.0}}, "alpha_nDCG(alpha=1)@2").mean()
    best = max(discounted(list(order[:2]), 1, log2) for order in permutations(TRAP.values()))
    assert best == pytest.approx(3 + 3 / math.log2(3))
    assert value == pytest.approx(best / discounted(greedy(TRAP, 1)[:2], 1, log2))
    assert 1.05 < value < REGISTRY["alpha_nDCG"].high == pytest.approx(1 / (1 - 1 / math.e))


@pytest.mark.parametrize("seed", range(20))
def test_no_order_beats_the_greedy_ideal_by_more_than_proved_against_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    documents = {f"d{i}": frozenset(map(str, np.flatnonzero(rng.random(5) < 0.45))) for i in range(6)}
    documents = {name: subtopics for name, subtopics in documents.items() if subtopics}
    alpha, k = float(rng.choice([0.5, 1.0])), int(rng.integers(2, 5))
    judged: Judged = [("q", s, name, 1) for name, subtopics in documents.items() for s in sorted(subtopics)]
    ideal = discounted(greedy(documents, alpha)[:k], alpha, log2)
    lists = [list(order) for order in permutations(documents, min(k, len(documents)))]
    best = max(lists, key=lambda names: discounted([documents[name] for name in names], alpha, log2))
    run = {"q": {name: float(-rank) for rank, name in enumerate(best)}}
    value = evaluate(as_bytes(judged), run, f"alpha_nDCG(alpha={alpha})@{k}").mean()
    assert value == pytest.approx(discounted([documents[name] for name in best], alpha, log2) / ideal)
    assert 1 - 1e-12 <= value <= REGISTRY["alpha_nDCG"].high
    assert evaluate(as_bytes(judged), run, f"alpha_nDCG(alpha={alpha}, ideal=exact)@{k}").mean() == pytest.approx(1)


@proves("alpha_nDCG", "nERR_IA", "nNRBP")
@pytest.mark.parametrize("seed", range(10))
def test_the_exact_ideal_is_the_best_of_all_lists_against_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    documents = {f"d{i}": frozenset(map(str, np.flatnonzero(rng.random(4) < 0.5))) | {"0"} for i in range(6)}
    judged: Judged = [("q", s, name, 1) for name, subtopics in documents.items() for s in sorted(subtopics)]
    run, ranking = {"q": {"d1": 2.0, "d0": 1.0}}, [documents["d1"], documents["d0"]]
    for typed, discount in {
        "alpha_nDCG(ideal=exact)": log2,
        "nERR_IA(ideal=exact)": inverse,
        "nNRBP(ideal=exact, beta=0.9)": lambda rank: 0.9 ** (rank - 1),
    }.items():
        best = max(discounted(list(order), 0.5, discount) for order in permutations(documents.values()))
        value = evaluate(as_bytes(judged), run, typed).mean()
        assert value == pytest.approx(discounted(ranking, 0.5, discount) / best), typed


def test_on_the_web_track_the_greedy_ideal_comes_close_to_the_exact_one(shared: Path) -> None:
    folder = shared / "diversity-wt09-10"
    files = folder / "2009.diversity.qrels", folder / "indri.wt2009.run"
    greedy, exact = np.asarray(evaluate(*files, "alpha_nDCG@5 alpha_nDCG(ideal=exact)@5"))[0]
    assert (exact <= greedy + 1e-12).all()
    assert 1.015 < (greedy[exact > 0] / exact[exact > 0]).max() < 1.016


def test_the_exact_ideal_refuses_what_it_cannot_try() -> None:
    judged: Judged = [("q", str(s), f"d{s}-{i}", 1) for s in range(12) for i in range(9)]
    with pytest.raises(MeasureError, match="topic 'q' has too many lists to try; use ideal=greedy"):
        evaluate(as_bytes(judged), {"q": {"d1-1": 1.0}}, "alpha_nDCG(ideal=exact)@50")


# names, subtopics and other measures


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("alpha-nDCG@20", "alpha_nDCG@20"),
        ("α_nDCG@20", "alpha_nDCG@20"),
        ("alpha_ndcg@20", "alpha_nDCG@20"),
        ("alpha_nDCG(alpha=0.9, rel=2)@7", "alpha_nDCG(alpha=0.9, rel=2)@7"),
        ("alpha-DCG@100", "alpha_DCG@100"),
        ("ERR-IA@10", "ERR_IA@10"),
        ("nERR-IA@10", "nERR_IA@10"),
        ("NRBP(alpha=0.1, beta=0.8)", "NRBP(alpha=0.1, beta=0.8)"),
        ("MAP-IA", "AP_IA"),
        ("MAP_IA", "AP_IA"),
        ("P-IA@10", "P_IA@10"),
        ("strec@10", "StRecall@10"),
        ("S-recall@10", "StRecall@10"),
    ],
)
def test_the_names_of_ndeval_and_ir_measures_are_read(typed: str, meant: str) -> None:
    assert str(measure(typed)) == meant


def test_a_plain_measure_counts_a_document_once_with_its_highest_grade() -> None:
    qrels = read_qrels(b"q 1 a 1\nq 2 a 3\nq 1 b 0\nq 3 b 1\nq 1 c 0\n")
    scores = evaluate(qrels, {"q": {"b": 2.0, "a": 1.0}}, "NumRel nDCG@10 AP")
    assert scores.mean("NumRel") == 2
    assert scores.mean("AP") == 1
    assert scores.mean("nDCG@10") == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)))


def test_a_subtopic_without_a_relevant_document_does_not_count() -> None:
    with_it = evaluate(b"q 1 a 1\nq 2 b 1\nq 3 a 0\n", {"q": {"a": 1.0}}, "StRecall@5 P_IA@1")
    assert (with_it.mean("StRecall@5"), with_it.mean("P_IA@1")) == (0.5, 0.5)


def test_a_topic_with_nothing_relevant_scores_0_in_all_nine() -> None:
    names = [f"{name}@5" if "k" in REGISTRY[name].parameters else name for name in NINE]
    scores = evaluate(b"q 1 a 0\nr 1 a 0\n", {"q": {"a": 1.0}}, names)
    assert np.asarray(scores).tolist() == np.zeros((1, 9, 2)).tolist()


def test_judgments_without_subtopics_are_refused() -> None:
    with pytest.raises(DataError, match="alpha_nDCG@5 needs judgments with subtopics"):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, "alpha_nDCG@5")


def test_the_command_line_lists_the_family_and_scores_it(shared: Path) -> None:
    listed = cranfield("measures", "--family", "diversity")
    assert listed.code == 0
    assert all(name in listed.out for name in NINE)
    folder = shared / "diversity-wt09-10"
    files = (folder / "2010.diversity.qrels", folder / "indri.wt2010.run")
    scored = cranfield("eval", *files, "-m", "strec@20 alpha-nDCG@50", "--format", "csv", "--digits", "4")
    assert scored.code == 0
    assert scored.out.splitlines()[0].startswith("run,strec@20,alpha-nDCG@50")

"""Preferences against trec_eval's outputs, ir_measures, and counting pair by pair; two runs against Diaz's definitions."""

from __future__ import annotations

import itertools
import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import SHARED
from cranfield import Run, evaluate, measure
from cranfield.base.qrels import Extras
from cranfield.formats.extras import as_preferences
from hypotheses import examples
from oracles import per_topic, printed, proves
from shell import cranfield

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

Nested = dict[str, dict[str, float]]

# trec_eval's own tests

COUNTS = ["prefs_num_prefs_poss", "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret"]
SHARES = [f"prefs_{kind}{only}" for kind in ("simp", "pair", "avgjg") for only in ("", "_ret", "_imp")]
BALANCED = ["prefs_avgjg_Rnonrel", "prefs_avgjg_Rnonrel_ret"]
ASCENDING = {"ties": "document-ascending", "missing": "skip"}  # of these measures alone in trec_eval


def printed_by_trec_eval(path: Path) -> dict[str, dict[str, str]]:
    topics: dict[str, dict[str, str]] = {}
    for line in path.read_text().splitlines():
        name, topic, value = line.split()
        topics.setdefault(topic, {})[name] = value
    return topics


def judged_from(preferences: Path) -> Nested:
    """Judgments of the same topics, because an evaluation begins with judgments."""
    qrels: Nested = {}
    for line in preferences.read_text().splitlines():
        if not line.startswith("#"):
            topic, _, _, document, level = line.split()
            qrels.setdefault(topic, {})[document] = float(level)
    return qrels


def compare(ours: dict[str, dict[str, Any]], golden: dict[str, dict[str, str]], names: Iterable[str]) -> None:
    assert set(ours) == set(golden) - {"all"}
    for topic, values in ours.items():
        for name in names:
            assert printed(values[name], like=golden[topic][name]) == golden[topic][name], (topic, name)


@proves("PrefSimple", "PrefPair", "PrefGroups", "NumPref", "NumPrefFul")
@pytest.mark.parametrize("file", ["prefs.test", "prefs.comment.test"])
def test_given_preferences_topic_by_topic_against_trec_eval(shared: Path, file: str) -> None:
    folder = shared / "trec_eval-test"
    extras = Extras(preferences=as_preferences(folder / file))
    run, names = folder / "prefs.results.test", [*COUNTS, *SHARES]
    scores = evaluate(judged_from(folder / file), run, names, extras=extras, **ASCENDING)
    golden = printed_by_trec_eval(folder / "out.test.prefs")
    compare(per_topic(scores), golden, names)
    for name in names:
        assert printed(scores.mean(name), like=golden["all"][name]) == golden["all"][name], name


@proves("PrefSimple", "PrefPair", "PrefGroups", "NumPref", "NumPrefFul")
@pytest.mark.parametrize("given_as", ["a file", "grades"])
def test_preferences_that_follow_from_grades_topic_by_topic_against_trec_eval(shared: Path, given_as: str) -> None:
    folder = shared / "trec_eval-test"
    extras = Extras(preferences=as_preferences(folder / "qrels.test")) if given_as == "a file" else None
    names = [*COUNTS, *SHARES]
    scores = evaluate(folder / "qrels.test", folder / "results.test", names, extras=extras, **ASCENDING)
    compare(per_topic(scores), printed_by_trec_eval(folder / "out.test.qrels_prefs"), names)


@proves("GroupMean")
@pytest.mark.parametrize("file", ["qrels.123", "qrels.comments.123"])
def test_means_over_judgment_groups_topic_by_topic_against_trec_eval(shared: Path, file: str) -> None:
    folder = shared / "trec_eval-test"
    golden = printed_by_trec_eval(folder / "out.test.qrels_jg")
    names = [name for name in golden["all"] if "avgjg" in name]
    assert len(names) == 20
    scores = evaluate(folder / file, folder / "results.test", names, missing="skip")
    compare(per_topic(scores), golden, names)
    for name in names:
        assert printed(scores.mean(name), like=golden["all"][name]) == golden["all"][name], name


# pair by pair

Lines = list[tuple[str, str, str, float]]  # group, subgroup, document, level


def stated(lines: Lines, group: str) -> set[tuple[str, str]]:
    """All preferences of a group: (better, worse), with what follows by way of a third document."""
    mine = [line for line in lines if line[0] == group]
    pairs = {
        (one[2], other[2]) for one, other in itertools.permutations(mine, 2) if one[1] == other[1] and one[3] > other[3]
    }
    while True:
        more = {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs
        if not more:
            return pairs
        pairs |= more


def followed(better: str, worse: str, rank: Mapping[str, int]) -> bool:
    return better in rank and (worse not in rank or rank[better] < rank[worse])


def counts(pairs: set[tuple[str, str]], rank: Mapping[str, int], only: str) -> tuple[int, int]:
    needed = {"all": 0, "implied": 1, "returned": 2}[only]
    kept = [(a, b) for a, b in pairs if (a in rank) + (b in rank) >= needed]
    return sum(followed(a, b, rank) for a, b in kept), len(kept)


@st.composite
def judged_and_returned(draw: st.DrawFn) -> tuple[Lines, list[str]]:
    documents = [f"d{i}" for i in range(7)]
    lines: Lines = []
    for group in draw(st.lists(st.sampled_from("AB"), min_size=1, max_size=2, unique=True)):
        level = {document: float(draw(st.integers(0, 3))) for document in documents}  # one order: no contradictions
        for subgroup in draw(st.lists(st.sampled_from("12"), min_size=1, max_size=2, unique=True)):
            chosen = draw(st.lists(st.sampled_from(documents), min_size=1, unique=True))
            lines += [(group, subgroup, document, level[document]) for document in chosen]
    returned = draw(st.lists(st.sampled_from([*documents, "u1", "u2"]), min_size=1, unique=True))
    return lines, returned


@proves("PrefSimple", "PrefPair", "PrefGroups", "NumPref", "NumPrefFul")
@examples(30)
@given(judged_and_returned())
def test_preferences_of_several_groups_and_subgroups_against_counting_pair_by_pair(
    given_: tuple[Lines, list[str]],
) -> None:
    lines, returned = given_
    text = "".join(f"q {group} {inner} {document} {level}\n" for group, inner, document, level in lines)
    rank = {document: i for i, document in enumerate(returned)}
    run = Run({"q": {document: -float(i) for document, i in rank.items()}})
    extras = Extras(preferences=as_preferences(text.encode()))
    groups = sorted({line[0] for line in lines})
    per_group = {group: stated(lines, group) for group in groups}
    for only in ("all", "returned", "implied"):
        names = [f"{name}(pairs={only})" for name in ("PrefSimple", "PrefPair", "PrefGroups", "NumPref")]
        values = evaluate({"q": {lines[0][2]: 1.0}}, run, names, extras=extras).means()
        right, possible = np.sum([counts(pairs, rank, only) for pairs in per_group.values()], axis=0).tolist()
        assert values[names[0]] == pytest.approx(right / possible if possible else 0)
        shares = [a / b if b else 0.0 for a, b in (counts(per_group[group], rank, only) for group in groups)]
        assert values[names[2]] == pytest.approx(sum(shares) / len(shares))
        assert values[names[3]] == possible
        assert values[names[1]] == pytest.approx(by_pairs(per_group, rank, only))


def by_pairs(per_group: Mapping[str, set[tuple[str, str]]], rank: Mapping[str, int], only: str) -> float:
    """For each pair the share of the groups that were followed, of those that said something."""
    shares = []
    for pair in {frozenset(p) for pairs in per_group.values() for p in pairs}:
        said = [p for pairs in per_group.values() for p in pairs if frozenset(p) == pair]
        if counts(set(said), rank, only)[1]:
            shares.append(sum(followed(*p, rank) for p in said) / len(said))
    return sum(shares) / len(shares) if shares else 0.0


def balanced(grades: Mapping[str, float], returned: list[str]) -> float:
    """Keep the first R documents of grade 0, ranked ones first; too few: stand-ins that nobody returned."""
    rank = {document: i for i, document in enumerate(returned)}
    relevant = [document for document, grade in grades.items() if grade > 0]
    others = sorted((d for d, grade in grades.items() if grade == 0), key=lambda d: rank.get(d, math.inf))
    kept = [*relevant, *others[: len(relevant)]]
    level = {**{d: grades[d] for d in kept}, **{f"stand-in {i}": 0.0 for i in range(len(relevant) - len(others))}}
    pairs = {(a, b) for a, b in itertools.permutations(level, 2) if level[a] > level[b]}
    right, possible = counts(pairs, rank, "all")
    return right / possible if possible else 0.0


@proves("PrefBalanced")
@examples(35)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=8), st.permutations(range(8)), st.integers(1, 8))
def test_as_many_nonrelevant_as_relevant_documents_against_counting_pair_by_pair(
    grades: list[int], order: list[int], length: int
) -> None:
    judged = {f"d{i}": float(grade) for i, grade in enumerate(grades)}
    returned = [f"d{i}" for i in order[:length]]
    run = Run({"q": {document: -float(i) for i, document in enumerate(returned)}})
    assert evaluate({"q": judged}, run, "PrefBalanced").mean() == pytest.approx(balanced(judged, returned))


@proves("PrefBalanced")
def test_as_many_nonrelevant_as_relevant_documents_against_trec_eval_where_it_follows_its_description(
    shared: Path,
) -> None:
    """All topics of its own test; none has a group of one subgroup with more nonrelevant than relevant documents."""
    folder = shared / "trec_eval-test"
    extras = Extras(preferences=as_preferences(folder / "prefs.test"))
    run = folder / "prefs.results.test"
    ours = per_topic(evaluate(judged_from(folder / "prefs.test"), run, BALANCED, extras=extras, **ASCENDING))
    golden = printed_by_trec_eval(folder / "out.test.prefs")
    compare(ours, golden, BALANCED[:1])
    returned = BALANCED[1]
    different = [t for t, values in ours.items() if printed(values[returned], like="0.0000") != golden[t][returned]]
    assert different == ["34.PA.mg", "35.PA.mgmx"]
    # Topics 24 and 34 state the same preferences, in one subgroup and in two; trec_eval alone tells them apart.
    assert ours["34.PA.mg"][returned] == ours["24.EC.mg"][returned]
    assert golden["34.PA.mg"][returned] != golden["24.EC.mg"][returned]


def test_trec_eval_pairs_nonrelevant_documents_with_each_other_and_we_do_not(tmp_path: Path) -> None:
    """One relevant document above three others: every preference is fulfilled, yet trec_eval divides by more."""
    (tmp_path / "qrels").write_text("q 0 a 1\nq 0 x 0\nq 0 y 0\nq 0 z 0\n")
    (tmp_path / "run").write_text("".join(f"q Q0 {d} 1 {s} t\n" for d, s in zip("axyz", (4, 3, 2, 1), strict=True)))
    asked = ("trec_eval", "-R", "qrels_prefs", "-m", BALANCED[0], "qrels", "run")
    assert float(cranfield(*asked, folder=tmp_path).out.split()[-1]) < 1
    assert evaluate(tmp_path / "qrels", tmp_path / "run", BALANCED[0]).mean() == 1


def test_a_judged_topic_without_preferences_has_no_value_and_does_not_count() -> None:
    extras = Extras(preferences=as_preferences(b"q1 j 1 a 1\nq1 j 1 b 0\n"))
    run = {topic: {"a": 2.0, "b": 1.0} for topic in ("q1", "q2")}
    scores = evaluate({"q1": {"a": 1}, "q2": {"a": 1}}, run, "PrefSimple", extras=extras)
    assert scores["q1"] == scores.mean() == 1
    assert math.isnan(scores["q2"])


def test_preferences_may_name_documents_that_nobody_graded() -> None:
    extras = Extras(preferences=as_preferences(b"q j 1 new 1\nq j 1 old 0\n"))
    run = {"q": {"old": 2.0, "new": 1.0}}
    for changes in ({}, {"unjudged": "drop"}):
        assert evaluate({"q": {"a": 1}}, run, "PrefSimple NumPref", extras=extras, **changes).means() == {
            "PrefSimple": 0.0,
            "NumPref": 1.0,
        }
    assert evaluate({"q": {"a": 1}}, run, "PrefSimple(judged_only=True)", extras=extras).mean() == 0


def test_eval_takes_a_file_of_preferences(tmp_path: Path) -> None:
    (tmp_path / "prefs").write_text("# who asked\nq j 1 a 2\nq j 1 b 1\nq k 1 b 1\nq k 1 a 0.5\n")
    (tmp_path / "qrels").write_text("q 0 a 1\n")
    (tmp_path / "run").write_text("q Q0 a 1 2 t\nq Q0 b 2 1 t\n")
    asked = ("eval", "qrels", "run", "-m", "prefs_simp NumPref", "--preferences", "prefs", "--format", "csv")
    assert cranfield(*asked, folder=tmp_path).out.splitlines()[1].split(",")[1:3] == ["0.5", "2"]
    (tmp_path / "prefs").write_text("q j 1 a\n")
    assert cranfield(*asked, folder=tmp_path).code == 3


# ir_measures


@cache
def recorded() -> dict[str, Any]:
    file = SHARED / "peer-cases" / "ir_measures.json"
    return json.loads(file.read_text()) if file.exists() else {"cases": [], "qrels": {}, "runs": {}}


def nested(rows: list[list[Any]]) -> Nested:
    answer: Nested = {}
    for topic, document, number, *_ in rows:
        answer.setdefault(topic, {})[document] = number
    return answer


@proves("Compat", "Accuracy")
@pytest.mark.parametrize("name", ["Compat", "Compat(p=0.9)", "Compat(p=0.8)", "Accuracy", "Accuracy(rel=2)"])
def test_orders_against_recorded_cases_of_ir_measures(shared: Path, name: str) -> None:
    [case] = [case for case in recorded()["cases"] if case["measure"] == name]
    qrels, run = nested(recorded()["qrels"][case["qrels"]]), nested(recorded()["runs"][case["run"]])
    ours = per_topic(evaluate(qrels, Run(run), [name], ties="document-ascending"))
    for topic, expected in case["per_query"].items():
        assert ours[topic][name] == pytest.approx(expected, abs=1e-12), topic
    for topic in set(ours) - set(case["per_query"]):  # ir_measures gives no value where nothing relevant was returned
        assert ours[topic][name] == 0


grades = st.dictionaries(st.sampled_from([f"d{i}" for i in range(9)]), st.integers(0, 3), min_size=1)
rankings = st.lists(st.sampled_from([f"d{i}" for i in range(12)]), min_size=1, unique=True)


@proves("Compat")
@examples(35)
@given(grades, rankings, st.sampled_from([0.5, 0.8, 0.95]), st.booleans())
def test_compatibility_of_random_lists_against_ir_measures(
    qrels: dict[str, int], ranking: list[str], p: float, normalize: bool
) -> None:
    import ir_measures

    run = {"q": {document: 100.0 - i for i, document in enumerate(ranking)}}
    peer = ir_measures.Compat(p=p, normalize=normalize)
    [metric] = ir_measures.iter_calc([peer], {"q": qrels}, run)
    ours = f"Compat(p={p}, normalize={normalize})"
    assert evaluate({"q": qrels}, Run(run), [ours]).mean() == pytest.approx(metric.value, abs=1e-12)
    assert measure(str(peer)) == measure(ours)


def rbo_by_hand(one: list[str], other: list[str], p: float, depth: int) -> float:
    """The sum of a loop over ranks, down to a depth at which both lists may have ended long ago."""
    return sum(p**d * len({*one[: d + 1]} & {*other[: d + 1]}) / (d + 1) for d in range(depth))


@proves("Compat")
@examples(30)
@given(grades, rankings, st.sampled_from([1, 2, 5, 12, 40, 1000]), st.sampled_from([0.7, 0.95]))
def test_compatibility_at_k_against_a_loop_over_k_ranks_as_in_the_authors_program(
    qrels: dict[str, int], ranking: list[str], k: int, p: float
) -> None:
    place = {document: i for i, document in enumerate(ranking)}
    ideal = sorted((d for d, g in qrels.items() if g > 0), key=lambda d: (-qrels[d], place.get(d, 99)))
    run = Run({"q": {document: 100.0 - i for i, document in enumerate(ranking)}})
    overlap, best = rbo_by_hand(ranking, ideal, p, k), rbo_by_hand(ideal, ideal, p, k)
    expected = overlap / best if ideal else 0.0
    assert evaluate({"q": qrels}, run, f"Compat(p={p})@{k}").mean() == pytest.approx(expected, abs=1e-12)
    plain = overlap / sum(p**d for d in range(k))
    assert evaluate({"q": qrels}, run, f"Compat(p={p}, normalize=False)@{k}").mean() == pytest.approx(plain, abs=1e-12)


@proves("Compat")
def test_compatibility_at_1000_counts_ranks_below_the_end_of_both_lists_and_without_a_depth_it_does_not() -> None:
    run = {"q": {"x": 3.0, "y": 2.0, "a": 1.0}}
    means = evaluate(b"q 0 a 1\n", run, "Compat@1000 Compat Compat@3 Compat@2").means()
    assert {name: round(value, 6) for name, value in means.items()} == {
        "Compat@1000": 0.532251,
        "Compat": 0.169404,
        "Compat@3": 0.169404,
        "Compat@2": 0.0,
    }


def test_compatibility_at_a_depth_beyond_all_weight_is_that_at_the_last_rank_that_weighs_anything() -> None:
    means = evaluate(
        {"q": {"a": 1}}, {"q": {"x": 2.0, "a": 1.0}}, "Compat(p=0.5)@1100 Compat(p=0.5)@1000000000000"
    ).means()
    assert len(set(means.values())) == 1


@proves("Accuracy")
@examples(30)
@given(grades, rankings, st.integers(1, 2), st.integers(1, 12))
def test_pairwise_accuracy_against_ir_measures_and_counting_pairs(
    qrels: dict[str, int], ranking: list[str], rel: int, k: int
) -> None:
    import ir_measures

    run = {"q": {document: 100.0 - i for i, document in enumerate(ranking)}}
    seen = ranking[:k]
    relevant = [qrels.get(document, 0) >= rel for document in seen]
    pairs = [(i, j) for i in range(len(seen)) for j in range(len(seen)) if relevant[i] and not relevant[j]]
    expected = sum(i < j for i, j in pairs) / len(pairs) if pairs else float(any(relevant))
    name = f"Accuracy(rel={rel})@{k}"
    assert evaluate({"q": qrels}, Run(run), name).mean() == pytest.approx(expected, abs=1e-12)
    if pairs:  # ir_measures divides by zero where there are only relevant documents
        [metric] = ir_measures.iter_calc([ir_measures.Accuracy(rel=rel) @ k], {"q": qrels}, run)
        assert metric.value == pytest.approx(expected, abs=1e-12)


# two runs


def places(qrels: Mapping[str, float], ranking: list[str]) -> list[float]:
    found = [float(i) for i, document in enumerate(ranking, start=1) if qrels.get(document, 0) >= 1]
    return found + [math.inf] * (sum(grade >= 1 for grade in qrels.values()) - len(found))


def sign(mine: float, other: float) -> int:
    return (mine < other) - (mine > other)


@proves("RPP", "LexiRecall", "LexiPrecision")
@examples(40)
@given(grades, rankings, rankings)
def test_preferences_between_two_runs_against_walking_down_the_recall_levels(
    qrels: dict[str, int], one: list[str], other: list[str]
) -> None:
    runs = [Run({"q": {document: 100.0 - i for i, document in enumerate(ranking)}}) for ranking in (one, other)]
    signs = [sign(*pair) for pair in zip(places(qrels, one), places(qrels, other), strict=True)]
    weights = {
        "RPP": [1.0] * len(signs),
        "RPP(weights=inverse)": [1 / i for i in range(1, len(signs) + 1)],
        "RPP(weights=dcg)": [1 / math.log2(i + 1) for i in range(1, len(signs) + 1)],
    }
    values = evaluate({"q": qrels}, runs[0], [*weights, "LexiRecall", "LexiPrecision"], baseline=runs[1]).means()
    for name, weight in weights.items():
        expected = sum(w * s for w, s in zip(weight, signs, strict=True)) / sum(weight) if weight else 0.0
        assert values[name] == pytest.approx(expected, abs=1e-12)
    assert values["LexiRecall"] == next((s for s in reversed(signs) if s), 0)
    assert values["LexiPrecision"] == next((s for s in signs if s), 0)
    reverse = evaluate({"q": qrels}, runs[1], [*weights, "LexiRecall", "LexiPrecision"], baseline=runs[0]).means()
    assert reverse == pytest.approx({name: -value for name, value in values.items()}, abs=1e-12)

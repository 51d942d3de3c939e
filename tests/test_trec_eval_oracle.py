"""The drop-in's per-topic values on random small files: against trec_eval 9 inside pytrec_eval, and against plain loops."""

from __future__ import annotations

import io
import random
from itertools import product
from typing import TYPE_CHECKING

import pytest

from cranfield.compat.trec_eval import main

if TYPE_CHECKING:
    from pathlib import Path

pytrec_eval_ext = pytest.importorskip("pytrec_eval_ext", reason="needs pytrec-eval-terrier")

DEFAULTS = [
    "num_ret",
    "num_rel",
    "num_rel_ret",
    "map",
    "Rprec",
    "bpref",
    "recip_rank",
    "iprec_at_recall",
    "P",
    "recall",
    "infAP",
    "Rprec_mult",
    "utility",
    "11pt_avg",
    "binG",
    "G",
    "ndcg",
    "ndcg_rel",
    "Rndcg",
    "ndcg_cut",
    "map_cut",
    "relative_P",
    "success",
    "set_P",
    "set_relative_P",
    "set_recall",
    "set_map",
    "set_F",
    "num_nonrel_judged_ret",
    "yaap",
]
FRACTIONAL = [
    "ndcg.1=0.5,2=1.5,0=0.25",
    "G.1=0.5,2=1.5",
    "Rndcg.1=0.5,2=1.2,3=2.0",
    "ndcg_rel.1=.5,2=1.5",
    "11pt_avg..5,.25,.75",
    "set_F.0.5",
    "utility.2,-1,0.5,0",
    "P.3,7,1",
    "Rprec_mult..3,1.5",
]
ODD = [
    "ndcg.1=-0.5,2=1.5,7=3",
    "G.1=3,2=1.5",
    "Rndcg.3=0.5,2=1.2,1=2.0,0=1",
    "ndcg_rel.1=.5,2=0,0=.1",
    "11pt_avg..2,.5,.3,.9,.1",
]


def printed(*arguments: str) -> dict[str, dict[str, str]]:
    """topic → name → value, as printed."""
    out, err = io.StringIO(), io.StringIO()
    assert main(["-q", "-n", *arguments], stdout=out, stderr=err) == 0, err.getvalue()
    answer: dict[str, dict[str, str]] = {}
    for line in out.getvalue().splitlines():
        name, topic, value = line.split("\t")
        answer.setdefault(topic, {})[name.strip()] = value.strip()
    return answer


def write_run(path: Path, run: dict[str, dict[str, float]]) -> None:
    rows = ((topic, document, score) for topic, scores in run.items() for document, score in scores.items())
    path.write_text("".join(f"{topic} Q0 {document} 0 {score!r} tag\n" for topic, document, score in rows))


def some_qrels_and_run(rng: random.Random) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Graded judgments with negative ones; runs with ties, some of which are none in double precision."""
    documents = [f"d{i}" for i in range(rng.choice([5, 12, 40]))]
    top = rng.choice([1, 2, 4, 12])
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for topic in "xyz"[: rng.randint(1, 3)]:
        judged = rng.sample(documents, rng.randint(1, len(documents)))
        qrels[topic] = {document: rng.randint(-1, top) for document in judged} | {documents[0]: 0}
        returned = rng.sample(documents, rng.randint(1, len(documents)))
        scores = (rng.random(), float(rng.randint(0, 3)), 1 + rng.random() * 1e-8)
        run[topic] = {document: rng.choice(scores) for document in returned}
    return qrels, run


@pytest.mark.parametrize("asked", [DEFAULTS, FRACTIONAL, ODD], ids=["defaults", "fractional gains", "odd parameters"])
def test_per_topic_values_on_random_runs_against_pytrec_eval(tmp_path, asked):
    for seed in range(120):
        rng = random.Random(seed)
        qrels, run = some_qrels_and_run(rng)
        rel, judged_only = rng.choice([1, 1, 2, 3]), rng.random() < 0.3
        rows = ((topic, document, grade) for topic, grades in qrels.items() for document, grade in grades.items())
        (tmp_path / "qrels").write_text("".join(f"{topic} 0 {document} {grade}\n" for topic, document, grade in rows))
        write_run(tmp_path / "run", run)
        oracle = pytrec_eval_ext.RelevanceEvaluator(
            query_relevance=qrels, measures=set(asked), relevance_level=rel, judged_docs_only_flag=judged_only
        ).evaluate(run)
        flags = ["--as", "9", "-l", str(rel), *(["-J"] if judged_only else []), *(f"-m{name}" for name in asked)]
        found = printed(*flags, str(tmp_path / "qrels"), str(tmp_path / "run"))
        names = {name.split(".")[0]: name.replace(".", "_", 1) for name in asked}
        for topic, values in oracle.items():
            for name, value in values.items():
                text = found[topic].get(name) or found[topic][names[name]]
                assert text == as_printed(name, value), (seed, topic, name)


def as_printed(name: str, value: float) -> str:
    if value != value:
        return "-nan"
    return str(int(value)) if name.startswith("num_") else f"{value:.4f}"


# preferences


def naive_preferences(lines: list[tuple[str, str, str, float]], ranking: list[str]) -> dict[str, str]:
    """One topic, by loops over pairs of documents, in the words of the definitions."""
    place = {document: i for i, document in enumerate(ranking)}
    groups = sorted({group for group, _, _, _ in lines})
    tallies = [naive_group([line[1:] for line in lines if line[0] == group], place) for group in groups]
    fulfilled = {
        only: [sum(place_ok(a, b, place) for a, b in kept(t["pairs"], place, only)) for t in tallies] for only in KINDS
    }
    possible = {only: [len(kept(t["pairs"], place, only)) for t in tallies] for only in KINDS}
    answer = {
        "prefs_num_prefs_poss": str(sum(possible[""])),
        "prefs_num_prefs_ful": str(sum(fulfilled[""])),
        "prefs_num_prefs_ful_ret": str(sum(fulfilled["_ret"])),
    }
    for only in KINDS:
        answer[f"prefs_simp{only}"] = f"{share(sum(fulfilled[only]), sum(possible[only])):.4f}"
        shares = [share(f, p) for f, p in zip(fulfilled[only], possible[only], strict=True)]
        answer[f"prefs_avgjg{only}"] = f"{sum(shares) / len(shares):.4f}"
        answer[f"prefs_pair{only}"] = f"{naive_pair([t['pairs'] for t in tallies], place, only):.4f}"
    for only in ("", "_ret"):
        shares = [naive_as_many(t, place, only) for t in tallies]
        bad = any(one is None for one in shares)
        answer[f"prefs_avgjg_Rnonrel{only}"] = f"{0.0 if bad else sum(shares) / len(shares):.4f}"
    return answer


KINDS = ("", "_ret", "_imp")


def share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def place_ok(a: str, b: str, place: dict[str, int]) -> bool:
    return a in place and (b not in place or place[a] < place[b])


def kept(pairs: set[tuple[str, str]], place: dict[str, int], only: str) -> set[tuple[str, str]]:
    least = {"": 0, "_imp": 1, "_ret": 2}[only]
    return {(a, b) for a, b in pairs if (a in place) + (b in place) >= least}


def naive_group(lines: list[tuple[str, str, float]], place: dict[str, int]) -> dict:
    pairs = {(a, b) for (s, a, x), (t, b, y) in product(lines, lines) if s == t and x > y}
    while True:
        more = {(a, d) for (a, b), (c, d) in product(pairs, pairs) if b == c} | pairs
        if more == pairs:
            break
        pairs = more
    levels = {document: level for _, document, level in lines}
    return {"pairs": pairs, "levels": levels, "single": len({subgroup for subgroup, _, _ in lines}) == 1}


def naive_pair(groups: list[set[tuple[str, str]]], place: dict[str, int], only: str) -> float:
    stated = {frozenset(pair) for pairs in groups for pair in kept(pairs, place, only)}
    total = 0.0
    for pair in stated:
        votes = [(a, b) for pairs in groups for a, b in pairs if {a, b} == pair]
        total += sum(place_ok(a, b, place) for a, b in votes) / len(votes)
    return total / len(stated) if stated else 0.0


def naive_as_many(group: dict, place: dict[str, int], only: str) -> float | None:
    """Rnonrel: as many nonrelevant documents as relevant ones; None where trec_eval divides 0 by 0."""
    levels = group["levels"]
    order = sorted(levels, key=lambda d: (d not in place, place.get(d, 0), d))
    seen = [d for d in order if d in place] if only else order
    relevant, nonrelevant = [d for d in seen if levels[d] > 0], [d for d in seen if levels[d] == 0]
    pairs = kept(group["pairs"], place, only)
    spare = len(relevant) - len(nonrelevant)
    if spare >= 0:
        fulfilled = sum(place_ok(a, b, place) for a, b in pairs) + spare * sum(d in place for d in relevant)
        possible = len(pairs) + spare * sum(level > 0 for level in levels.values())
    elif group["single"]:
        first = nonrelevant[: len(relevant)]
        good = [(a, b) for a, b in pairs if levels[b] > 0] + [(a, b) for a in seen for b in first]
        fulfilled, possible = sum(place_ok(a, b, place) for a, b in good), len(good)
    else:
        limit = sum(level > 0 for level in levels.values())
        good = [(a, b) for a, b in pairs if not {a, b} & set(nonrelevant[limit:])]
        fulfilled, possible = sum(place_ok(a, b, place) for a, b in good), len(good)
    return fulfilled / possible if possible else None


def some_preferences(rng: random.Random, partial: bool) -> list[tuple[str, str, str, float]]:
    """Judges agree with themselves: their levels in each subgroup follow one hidden order."""
    documents = [f"d{i}" for i in range(rng.randint(2, 9))]
    lines = []
    for group in "ab"[: rng.randint(1, 2)]:
        hidden = {document: float(max(0, rng.randint(-2, 3))) for document in documents}
        for subgroup in "st"[: rng.randint(2, 2) if partial else 1]:
            part = rng.sample(documents, rng.randint(1, len(documents)))
            lines += [(group, subgroup, document, hidden[document]) for document in part]
    return lines


@pytest.mark.parametrize("partial", [False, True], ids=["one subgroup", "several subgroups"])
@pytest.mark.parametrize("version", ["9", "10"])
def test_preference_measures_against_loops_over_pairs(tmp_path, partial, version):
    for seed in range(80):
        rng = random.Random(seed)
        lines = some_preferences(rng, partial)
        documents = [f"d{i}" for i in range(12)]
        run = {"q": {document: float(rng.randint(0, 4)) for document in rng.sample(documents, rng.randint(1, 10))}}
        ranking = sorted(run["q"], key=lambda document: (-run["q"][document], document))  # ties: ascending
        text = "".join(f"q {group} {subgroup} {document} {level}\n" for group, subgroup, document, level in lines)
        (tmp_path / "prefs").write_text(text)
        write_run(tmp_path / "run", run)
        files = [str(tmp_path / "prefs"), str(tmp_path / "run")]
        found = printed("--as", version, "-R", "prefs", "-m", "all_prefs", *files)["q"]
        assert found == naive_preferences(lines, ranking), seed


# judgment groups


def test_judgment_groups_are_averaged_against_one_file_for_each(tmp_path):
    """What `map` prints for each judge's qrels alone, averaged, is `map_avgjg` of them together."""
    for seed in range(40):
        rng = random.Random(seed)
        documents = [f"d{i}" for i in range(12)]
        judges = "abc"[: rng.randint(1, 3)]
        grades = {
            j: {d: rng.randint(-1, 2) for d in rng.sample(documents, rng.randint(1, 12))} | {"z": 0} for j in judges
        }
        run = {"q": {document: float(rng.randint(0, 9)) for document in rng.sample(documents, 10)}}
        write_run(tmp_path / "run", run)
        flags = [*(["-J"] if rng.random() < 0.4 else []), "-l", str(rng.randint(1, 2)), "-M", str(rng.randint(3, 10))]
        alone = []
        for judge in judges:
            (tmp_path / judge).write_text("".join(f"q 0 {d} {grade}\n" for d, grade in grades[judge].items()))
            alone.append(
                printed(*flags, "-mmap", "-mP.3,5", "-mRprec_mult.1,2", str(tmp_path / judge), str(tmp_path / "run"))[
                    "q"
                ]
            )
        rows = [f"q {judge} {d} {grade}\n" for judge in judges for d, grade in grades[judge].items()]
        rng.shuffle(rows)
        (tmp_path / "together").write_text("".join(rows))
        asked = ["-mmap_avgjg", "-mP_avgjg.3,5", "-mRprec_mult_avgjg.1,2"]
        files = [str(tmp_path / "together"), str(tmp_path / "run")]
        found = printed("-R", "qrels_jg", *flags, *asked, *files)["q"]
        for name, value in found.items():
            mean = sum(float(one[name.replace("_avgjg", "")]) for one in alone) / len(judges)
            assert float(value) == pytest.approx(mean, abs=1.01e-4), (seed, name)

"""Dicts already in memory → means: cranfield and pytrec_eval by turns, in one process, on the same dicts.

Arguments: how often, where cranfield is, qrels, run. Prints seconds and means by contender and measures. Making the
evaluator (judgments indexed) is timed apart from evaluating, since a training loop does the one once and the other often.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pytrec_eval  # type: ignore[import-untyped, import-not-found, unused-ignore]

if TYPE_CHECKING:
    from collections.abc import Callable

SIX = {
    "AP": "map",
    "nDCG@10": "ndcg_cut_10",
    "nDCG": "ndcg",
    "P@10": "P_10",
    "R@1000": "recall_1000",
    "RR": "recip_rank",
}
JUDGED = {"bpref": "bpref", "nDCG": "ndcg", "infAP": "infAP", "Rprec": "Rprec"}  # these look at every judged document

Means = dict[str, float]


def ours(measures: dict[str, str], qrels: Any, run: Any) -> tuple[float, float, Means]:
    from cranfield import Evaluator

    start = perf_counter()
    evaluator = Evaluator(qrels, list(measures))
    ready = perf_counter()
    means = evaluator.evaluate(run).means()
    return ready - start, perf_counter() - ready, means


def theirs(measures: dict[str, str], qrels: Any, run: Any) -> tuple[float, float, Means]:
    start = perf_counter()
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(measures.values()))
    ready = perf_counter()
    results = evaluator.evaluate(run)
    means = {
        name: pytrec_eval.compute_aggregated_measure(measure, [values[measure] for values in results.values()])
        for name, measure in measures.items()
    }
    return ready - start, perf_counter() - ready, means


def main(repeats: int, home: str, qrels_path: str, run_path: str) -> None:
    sys.path.append(home)  # last, so that the peers' own packages win
    with open(qrels_path) as file:
        qrels = dict(pytrec_eval.parse_qrel(file))
    with open(run_path) as file:
        run = dict(pytrec_eval.parse_run(file))
    contenders: dict[str, Callable[..., tuple[float, float, Means]]] = {"pytrec_eval": theirs, "cranfield": ours}
    answer: dict[str, Any] = {}
    for case, measures in (("six", SIX), ("judged", JUDGED)):
        few = {topic: run[topic] for topic in list(run)[:3]}
        for contender in contenders.values():  # imports and other first times
            contender(measures, qrels, few)
        rows: dict[str, Any] = {name: {"index": [], "evaluate": [], "means": {}} for name in contenders}
        for _ in range(repeats):
            for name, contender in contenders.items():
                index, evaluate, means = contender(measures, qrels, run)
                rows[name]["index"].append(index)
                rows[name]["evaluate"].append(evaluate)
                rows[name]["means"] = means
        answer[case] = rows
    print(json.dumps(answer))


main(int(sys.argv[1]), *sys.argv[2:])

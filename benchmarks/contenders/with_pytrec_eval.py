"""pytrec_eval with its own readers: files → six means. Arguments: qrels, runs.

It has no RR@10. A reciprocal rank below 1/10 means that the first relevant document stands below rank 10, so
RR@10 is taken from recip_rank: exact, and as good as free.
"""

import json
import sys

import pytrec_eval  # type: ignore[import-untyped, import-not-found, unused-ignore]

MEASURES = {
    "AP": "map",
    "nDCG@10": "ndcg_cut_10",
    "nDCG": "ndcg",
    "P@10": "P_10",
    "R@1000": "recall_1000",
    "RR@10": "recip_rank",
}


def means(results: dict[str, dict[str, float]]) -> dict[str, float]:
    for values in results.values():
        if values["recip_rank"] < 0.0999:
            values["recip_rank"] = 0.0
    return {
        name: pytrec_eval.compute_aggregated_measure(theirs, [values[theirs] for values in results.values()])
        for name, theirs in MEASURES.items()
    }


def main(qrels: str, runs: list[str]) -> None:
    with open(qrels) as file:
        judged = pytrec_eval.parse_qrel(file)
    evaluator = pytrec_eval.RelevanceEvaluator(judged, set(MEASURES.values()))
    answers = []
    for run in runs:
        with open(run) as file:
            answers.append(means(evaluator.evaluate(pytrec_eval.parse_run(file))))
    print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

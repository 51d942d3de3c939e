"""ranx: files → six means. Arguments: qrels, runs."""

import json
import sys

from ranx import Qrels, Run, evaluate  # type: ignore[import-untyped, import-not-found, unused-ignore]

MEASURES = {
    "AP": "map",
    "nDCG@10": "ndcg@10",
    "nDCG": "ndcg",
    "P@10": "precision@10",
    "R@1000": "recall@1000",
    "RR@10": "mrr@10",
}


def main(qrels: str, runs: list[str]) -> None:
    judged = Qrels.from_file(qrels, kind="trec")
    answers = []
    for path in runs:
        values = evaluate(judged, Run.from_file(path, kind="trec"), list(MEASURES.values()))
        answers.append({name: float(values[theirs]) for name, theirs in MEASURES.items()})
    print(json.dumps(answers))


main(sys.argv[1], sys.argv[2:])

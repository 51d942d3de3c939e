"""The six means under each tie rule, to hold a peer's against. Not timed. Arguments: qrels, runs."""

import json
import sys

import cranfield

MEASURES = "AP nDCG@10 nDCG P@10 R@1000 RR@10"


def main(qrels: str, runs: list[str]) -> None:
    answers = {}
    for ties in ("document-descending", "document-ascending", "input-order"):
        scores = cranfield.evaluate(qrels, runs, MEASURES, ties=ties)
        answers[ties] = [scores.means(run) for run in scores.runs]
    print(json.dumps(answers))


main(sys.argv[1], sys.argv[2:])

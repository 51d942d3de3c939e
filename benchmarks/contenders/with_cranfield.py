"""cranfield's Python interface: files → six means. Arguments: threads, qrels, runs."""

import json
import sys

import cranfield

MEASURES = "AP nDCG@10 nDCG P@10 R@1000 RR@10"


def main(threads: int, qrels: str, runs: list[str]) -> None:
    scores = cranfield.evaluate(qrels, runs, MEASURES, threads=threads)
    print(json.dumps([scores.means(run) for run in scores.runs]))


main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])

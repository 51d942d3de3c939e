"""ir_measures' Python interface: files → six means, judgments read once. Arguments: qrels, runs.

Used for many runs; its command line, which takes one run, is measured for one.
"""

import json
import sys
from typing import Any

import ir_measures  # type: ignore[import-untyped, import-not-found, unused-ignore]
from ir_measures import AP, RR, P, R, nDCG

MEASURES = [AP, nDCG @ 10, nDCG, P @ 10, R @ 1000, RR @ 10]


def main(qrels: str, runs: list[str]) -> None:
    library: Any = ir_measures  # it is only half typed
    evaluator = library.evaluator(MEASURES, list(library.read_trec_qrels(qrels)))
    answers = [evaluator.calc_aggregate(library.read_trec_run(run)) for run in runs]
    print(json.dumps([{str(measure): value for measure, value in answer.items()} for answer in answers]))


main(sys.argv[1], sys.argv[2:])

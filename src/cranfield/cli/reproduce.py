"""Measure how close a reproduction comes to the original.

Two runs are the original and its reproduction. Four runs are the original baseline and advanced run, then the
reproduced ones; then the effects (ER, DeltaRI) are compared as well. The measures follow Breuer et al., SIGIR 2020.

\b
$ cranfield reproduce qrels.txt bm25.run dense.run -m "nDCG@10 AP" --depth 3
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option
from cranfield.cli.output import show_answer

PLACE = 160
RUNS = "[ORIGINAL_BASE] ORIGINAL_ADVANCED [REPRODUCED_BASE] REPRODUCED_ADVANCED"


@options.command(__doc__)
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar=RUNS)
@option(
    "-m --measures",
    "Measures to compute, such as nDCG@10, AP(rel=2)@100, or trec_eval's names.",
    default=["nDCG@10 AP"],
)
@option("--other-qrels QRELS", "Judgments of the reproduced runs, if they are on another collection.")
@option("--p")
@option("--depth K", "Number of documents to compare from the top of each list.  [default: all]", type=int)
@option("--rel")
@option("--per-topic", "Print a row for each topic's result list as well.")
@option("--digits")
@options.answer("table", "json", "csv", "tsv")
@options.rules
def command(**typed: Any) -> None:
    from cranfield.commands.evaluation import reproduce

    show_answer(reproduce, **options.with_inputs(typed))

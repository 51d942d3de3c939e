"""Say how close a reproduction comes to the original experiment.

Two runs are the original and its reproduction. Four are the original's baseline and advanced run, then the
reproduction's: then the effect (ER, DeltaRI) is compared as well. Figures follow Breuer et al., SIGIR 2020.

\b
$ cranfield reproduce qrels.txt bm25.run dense.run -m "nDCG@10 AP" --depth 3
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import COLLECTION, option
from cranfield.cli.output import show

PLACE = 160
RUNS = "[ORIGINAL_BASE] ORIGINAL_ADVANCED [REPRODUCED_BASE] REPRODUCED_ADVANCED"


@options.command(__doc__)
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar=RUNS)
@option(
    "-m --measures",
    "What to score by; names as in nDCG@10, AP(rel=2)@100, or trec_eval's. May be repeated.",
    default=["nDCG@10 AP"],
)
@option(
    "--other-qrels", "The reproduced runs are of another collection, judged by these.", type=COLLECTION, metavar="QRELS"
)
@option("--p", "The patience of RBO, 0 to 1.")
@option("--depth", "Compare the first K documents of the lists only.", type=int, metavar="K")
@option("--rel")
@option("--per-topic", "A row for each topic's result list as well.")
@option("--digits")
@options.answer("table", "json", "csv", "tsv")
@options.rules
def command(**typed: Any) -> None:
    from cranfield.workspace.scoring import reproduce

    inputs, shown, how = options.split(typed)
    show(reproduce(inputs, **how), **shown)

"""Draw precision-recall and other curves, or print their points.

-o FILE.svg (.png, .html, .vl.json) draws a chart of all runs, with areas in the legend; other endings hold the
points. An .html chart needs no network. Charts need: pip install 'cranfield[plots]'.

\b
$ cranfield curve qrels.txt bm25.run dense.run --curve pr11
"""

from __future__ import annotations

from typing import Any

from cranfield.cli import options
from cranfield.cli.options import option, rare
from cranfield.cli.output import show_answer

PLACE = 110


@options.command(__doc__)
@options.qrels_and_runs
@option(
    "--curve kind",
    "Kind of curve: precision-recall, precision at 11 recall levels, ROC, recall by rank, or gain by rank.",
    default="pr",
    metavar="pr|pr11|roc|recall|gain",
    was=["--kind"],
)
@option("--rel", "Lowest relevant grade.", default=1)
@option("--depth N", "Number of ranks to read from each run.", default=1000)
@rare(
    "--recall-levels level",
    "Program whose rule pr11 follows to count recall levels.",
    default="exact",
    metavar="exact|trec_eval-9|trec_eval-10",
    was=["--level"],
)
@option("--topic TOPIC", "Topic to draw, instead of the mean over all topics.")
@option("--collection-size", "Number of documents in the collection, for roc.")
@options.answer("table", "json", "csv", "tsv")
@options.rules
def command(**typed: Any) -> None:
    from cranfield.commands.evaluation import curve

    show_answer(curve, **options.with_inputs(typed))

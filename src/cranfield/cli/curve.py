"""Draw precision-recall and other curves of runs, or print their points.

-o FILE with the ending .svg, .png, .html (which needs no network) or .vl.json (the Vega-Lite specification) draws a
chart of all runs with their areas in the legend; anything else gets the points. Charts need: pip install
'cranfield[plots]'.

\b
$ cranfield curve qrels.txt bm25.run dense.run --kind pr11
"""

from __future__ import annotations

from typing import Any

from cranfield.cli import options
from cranfield.cli.options import option
from cranfield.cli.output import show

PLACE = 110


@options.command(__doc__)
@options.qrels_and_runs
@option(
    "--kind",
    "Which curve: precision-recall, at eleven recall levels, ROC, recall or gain by rank.",
    default="pr",
    metavar="pr|pr11|roc|recall|gain",
)
@option("--rel", "The lowest relevant grade; 1 if not given.", default=1, show_default=False)
@option("--depth", "How many ranks are looked at.", default=1000, metavar="N")
@option(
    "--level",
    "How pr11 counts recall levels.",
    default="exact",
    show_default=False,
    metavar="exact|trec_eval-9|trec_eval-10",
)
@option("--topic", "The curve of one topic, instead of the mean over all.", metavar="TOPIC")
@option("--collection-size", "Documents in the collection, for roc.")
@options.answer("table", "json", "csv", "tsv")
@options.rules
def command(**typed: Any) -> None:
    from cranfield.workspace.scoring import curve

    inputs, shown, how = options.split(typed)
    show(curve(inputs, **how), **shown)

"""Compare runs by their result lists, or measures by how they rank systems.

Two runs or more are compared each with each, topic by topic. With --systems the question is another: do two
measures, or two sets of judgments, put the same runs into the same order?

\b
$ cranfield correlate bm25.run dense.run --kind "rbo tau jaccard@10"
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import COLLECTION, option
from cranfield.cli.output import show

PLACE = 150
KINDS = "rbo, rbo-min, rbo-max, rbo-res, rbo-cut, overlap, average-overlap, jaccard, ktu, ktu-by-name"
COEFFICIENTS = "tau, tau-a, tau-b, tau-ap, tau-ap-a, tau-ap-b, spearman, weighted-tau, pearson"


@options.command(__doc__)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option(
    "--kind",
    f"Of result lists: {KINDS}, each also as overlap@10; of lists and of systems: {COEFFICIENTS}. "
    "May be repeated; without it, rbo of lists, tau and tau-ap of systems.",
    name="kinds",
    multiple=True,
    metavar="KINDS",
)
@option("--p")
@option("--depth", "Compare the first K documents only.", type=int, metavar="K")
@option(
    "--tied",
    "Documents of equal score: expected over their orders (a), corrected for ties (b), equals (w), or in the order "
    "that the conventions give them.",
    default="a",
    metavar="a|b|w|order",
)
@option(
    "--documents",
    "What to correlate where lists differ: all documents, those that a list lacks behind its end, or those in both.",
    default="union",
    metavar="union|both",
)
@option(
    "--systems",
    "Compare how measures rank the runs, scored by these judgments.",
    name="qrels",
    type=COLLECTION,
    metavar="QRELS",
)
@option("-m --measures", "With --systems: two measures or more.")
@option(
    "--other-qrels", "With --systems: compare with the rankings by these judgments.", type=COLLECTION, metavar="QRELS"
)
@option("--per-topic")
@option("--digits")
@options.answer("table", "json", "csv", "tsv")
@options.rules
def command(**typed: Any) -> None:
    from cranfield.cli.progress import progress
    from cranfield.workspace.scoring import correlate

    inputs, shown, how = options.split(typed)
    if inputs.qrels is None and (inputs.measures or how["other_qrels"]):
        raise click.UsageError("-m and --other-qrels need judgments: --systems QRELS")
    if inputs.qrels is None:
        options.refuse_idle("goes with --systems", *options.OF_JUDGMENTS)
    elif not inputs.measures:
        raise click.UsageError('--systems needs measures: -m "AP nDCG@10"')
    with progress("pairs compared") as tell:
        correlations = correlate(inputs, progress=tell, **how)
    show(correlations, **shown)

"""Compare runs by result lists, or measures by rankings of runs.

Without --qrels, each pair of runs is compared topic by topic. With --qrels, the command compares rankings of the
runs: by two or more measures, or by two sets of judgments (--other-qrels).

\b
$ cranfield correlate bm25.run dense.run --coefficient "rbo tau jaccard@10"
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option, rare
from cranfield.cli.output import show_answer

PLACE = 150
KINDS = "rbo, rbo-min, rbo-max, rbo-res, rbo-cut, overlap, average-overlap, jaccard, ktu, ktu-by-name"
COEFFICIENTS = "tau, tau-a, tau-b, tau-ap, tau-ap-a, tau-ap-b, spearman, weighted-tau, pearson"


@options.command(__doc__)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option(
    "--coefficient NAMES kinds",
    f"Coefficient to compute. For result lists it is one of {KINDS}, each also as overlap@10. For lists and for rankings "
    f"of runs it is one of {COEFFICIENTS}.  [default: rbo; with --qrels, tau and tau-ap]",
    multiple=True,
    was=["--kind"],
)
@option("--p")
@option("--depth K", "Number of documents to compare from the top of each list.  [default: all]", type=int)
@rare(
    "--tied",
    "Treatment of documents with equal scores. The choices are the mean over their orders (a), the correction for ties "
    "(b), equal ranks (w), and the order of the conventions.",
    default="a",
    metavar="a|b|w|order",
)
@rare(
    "--document-set documents",
    "Documents to correlate if two lists differ. The choice union takes all documents and puts missing ones behind the "
    "end of a list; both takes the common ones.",
    default="union",
    metavar="union|both",
    was=["--documents"],
)
@option(
    "--qrels QRELS",
    "Judgments that score the runs. The command then compares how measures rank the runs.",
    was=["--systems"],
)
@option("-m --measures", "Measures to compare, two or more; needs --qrels.")
@option("--other-qrels QRELS", "Second judgments, whose ranking of the runs is compared with the first; needs --qrels.")
@option("--per-topic")
@option("--digits")
@options.answer("table", "json", "csv", "tsv")
@options.rules
def command(**typed: Any) -> None:
    from cranfield.commands.evaluation import correlate

    inputs, display, how = options.split(typed)
    if inputs.qrels is None and (inputs.measures or how["other_qrels"]):
        raise click.UsageError("-m and --other-qrels need judgments: --qrels QRELS")
    if inputs.qrels is None:
        options.refuse_idle("goes with --qrels", *options.OF_JUDGMENTS)
    elif not inputs.measures:
        raise click.UsageError('--qrels needs measures: -m "AP nDCG@10"')
    show_answer(correlate, inputs, counting="pairs compared", **how, **display)

"""Score runs against judgments.

A run is a file (.gz, .zst, .xz and .bz2 are unpacked), a quoted pattern such as 'runs/*.run', or - for standard
input. NAME=path renames a run. Judged topics that a run lacks score 0 and are reported; --missing changes that.

\b
$ cranfield eval qrels.txt bm25.run dense.run -m "nDCG@10 AP RR@10"
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option, rare
from cranfield.cli.output import show_answer

PLACE = 90


@options.command(__doc__)
@options.qrels_and_runs
@option(
    "-m --measures",
    "Measures to compute, such as nDCG@10, AP(rel=2)@100, RBP(p=0.8), or trec_eval's names.",
    default=["nDCG@10 AP RR@10"],
)
@option("--rel")
@option("--topics")
@rare(
    "--aggregate",
    "Statistic over the topics. A measure such as gmean(AP) sets it for itself.  [default: mean]",
    metavar="mean|gmean|median|min|max|hmean",
)
@option("--baseline")
@option("--collection-size")
@options.measure_data
@rare(
    "--bounds",
    "Print the lowest and highest possible score, over the orders of tied documents or over unjudged documents.",
    metavar="ties|unjudged",
)
@option("--seed", "Seed for the random numbers of --bounds.")
@option("--by")
@option("--weigh-by")
@option("--design-weights")
@option("--topics-file")
@option("--per-topic")
@option(
    "--sort", "Order of the runs: by a measure, best first, or by name.  [default: as typed]", metavar="MEASURE|name"
)
@option("--digits")
@options.answer("table", "json", "csv", "tsv", "trec")
@options.rules
@option("--threads")
def command(by: str | None, bounds: str | None, **typed: Any) -> None:
    options.without_algebra()
    from cranfield.commands.evaluation import evaluate

    inputs, display, how = options.split(typed)
    if display["shape"] == "trec" and (by or bounds):
        raise click.UsageError("--format trec has no place for bounds or categories; try tsv")
    weights = "--weigh-by" if inputs.weigh_by else "--design-weights" if inputs.design_weights else ""
    if weights and (by or bounds or display["shape"] == "trec"):
        beside = "--by" if by else "--bounds" if bounds else "--format trec"
        raise click.UsageError(f"{weights} does not go with {beside}")
    if by and (bounds or (display["per_topic"] and display["shape"] != "json")):
        raise click.UsageError(f"--by does not go with {'--bounds' if bounds else '--per-topic'}")
    if not bounds:
        options.refuse_idle("goes with --bounds", "seed")
    options.expect_use(options.COMPARES, "baseline")
    if not display["per_topic"]:
        needs = "goes with --by, --weigh-by, --design-weights, --per-topic, or files that name topics by the text of their query"
        options.expect_use(needs, "topics_file")
    show_answer(evaluate, inputs, by=by, bounds=bounds, counting="runs scored", **how, **display)

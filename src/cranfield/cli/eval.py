"""Score runs against judgments.

A run may be a file (.gz, .zst, .xz and .bz2 are read as they are), a quoted pattern such as 'runs/*.run', or - for
standard input; NAME=path calls it otherwise. Judged topics that a run lacks score 0 unless --missing says otherwise,
and are reported.

\b
$ cranfield eval qrels.txt bm25.run dense.run -m "nDCG@10 AP RR@10"
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option
from cranfield.cli.output import show

PLACE = 90


@options.command(__doc__)
@options.qrels_and_runs
@option(
    "-m --measures",
    "What to compute; names as in nDCG@10, AP(rel=2)@100, RBP(p=0.8), or trec_eval's. May be repeated.",
    default=["nDCG@10 AP RR@10"],
)
@option("--rel")
@option("--topics", "Score only these topics: the first word of each line, # for comments.")
@option(
    "--aggregate",
    "How topics become one number, for measures that take their mean; gmean(AP) as a measure does it for one.",
    metavar="mean|gmean|median|min|max|hmean",
)
@option(
    "--collection-size",
    "How many documents the collection holds, for measures that count true negatives (FallOut, AUROC …).",
)
@option("--baseline", "The run to compare with, for measures of risk (URisk, TRisk, RPP …).")
@option(
    "--preferences",
    "Preference judgments (topic group subgroup document level), for PrefSimple and its kin; else from the grades.",
)
@option("--groups", "Groups of documents (document group share), for fairness (AWRF, GroupEE_L …).")
@option("--aspect", "Judgments of a second aspect, such as understandability (uRBP, uBpref).")
@option("--costs", "What documents cost to read (document cost), for TBG, Umeasure and kin.")
@option(
    "--bounds",
    "How low and high each score could be: over the orders of ties, or over what is unjudged.",
    metavar="ties|unjudged",
)
@option("--seed", "Where --bounds has to draw samples.", show_default=False)
@option("--by", "A row for each value of a column of the topics (or length, in words).", metavar="COLUMN")
@option("--weigh-by")
@option("--topics-file")
@option("--per-topic")
@option("--sort", "Order the runs by a measure, best first, or by name.", metavar="MEASURE|name")
@option("--digits")
@options.answer("table", "json", "csv", "tsv", "trec")
@options.rules
@option("--threads", "How many cores to use.  [default: all]")
def command(by: str | None, bounds: str | None, **typed: Any) -> None:
    options.without_algebra()
    from cranfield.cli.progress import progress
    from cranfield.workspace.scoring import evaluate

    inputs, shown, how = options.split(typed)
    if shown["shape"] == "trec" and (by or bounds):
        raise click.UsageError("--format trec has no place for bounds or categories; try tsv")
    if inputs.weigh_by and (by or bounds or shown["shape"] == "trec"):
        beside = "--by" if by else "--bounds" if bounds else "--format trec"
        raise click.UsageError(f"--weigh-by does not go with {beside}")
    if by and (bounds or (shown["per_topic"] and shown["shape"] != "json")):
        raise click.UsageError(f"--by does not go with {'--bounds' if bounds else '--per-topic'}")
    if not bounds:
        options.refuse_idle("goes with --bounds", "seed")
    options.expect_use(options.COMPARES, "baseline")
    if not shown["per_topic"]:
        needs = "goes with --by, --weigh-by, --per-topic, or files that name topics by the text of their query"
        options.expect_use(needs, "topics_file")
    with progress("runs scored") as tell:
        scores = evaluate(inputs, by=by, bounds=bounds, progress=tell, **how)
    show(scores, **shown)

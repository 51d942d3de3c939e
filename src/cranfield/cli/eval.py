"""`cranfield eval`: runs × judgments × measures → a table of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cranfield.cli import options
from cranfield.cli.output import note, put, screen_width, style

if TYPE_CHECKING:
    from cranfield.answer import Answer

USUAL = "nDCG@10 AP RR@10"


@click.command("eval", cls=options.Sectioned)
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-m",
    "--measures",
    multiple=True,
    default=[USUAL],
    show_default=True,
    metavar="MEASURES",
    help="What to compute; names as in nDCG@10, AP(rel=2)@100, RBP(p=0.8), or trec_eval's. May be repeated.",
)
@click.option(
    "--rel", type=float, metavar="N", help="The lowest relevant grade, where a measure does not say so itself."
)
@click.option("--topics", metavar="FILE", help="Score only these topics: the first word of each line, # for comments.")
@click.option(
    "--aggregate",
    metavar="mean|gmean|median|min|max|hmean",
    help="How topics become one number, for measures that take their mean; gmean(AP) as a measure does it for one.",
)
@click.option(
    "--collection-size",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many documents the collection holds, for measures that count true negatives (FallOut, AUROC …).",
)
@click.option("--baseline", metavar="RUN", help="The run to compare with, for measures of risk (URisk, TRisk, RPP …).")
@click.option(
    "--preferences",
    metavar="FILE",
    help="Preference judgments (topic group subgroup document level), for PrefSimple and its kin; else from the grades.",
)
@click.option(
    "--groups", metavar="FILE", help="Groups of documents (document group share), for fairness (AWRF, GroupEE_L …)."
)
@click.option(
    "--aspect", metavar="QRELS", help="Judgments of a second aspect, such as understandability (uRBP, uBpref)."
)
@click.option("--costs", metavar="FILE", help="What documents cost to read (document cost), for TBG, Umeasure and kin.")
@click.option(
    "--bounds",
    metavar="ties|unjudged",
    help="How low and high each score could be: over the orders of ties, or over what is unjudged.",
)
@click.option("--seed", type=int, default=0, metavar="N", help="Where --bounds has to draw samples.")
@click.option("--by", metavar="COLUMN", help="A row for each value of a column of --topics-file (or length, in words).")
@click.option("--topics-file", metavar="FILE", help="A table of topics (TSV, CSV, JSON lines) for --by.")
@click.option("--per-topic", is_flag=True, help="A row for each topic as well.")
@click.option("--sort", metavar="MEASURE|name", help="Order the runs by a measure, best first, or by name.")
@click.option(
    "--digits",
    type=int,
    metavar="N",
    help="Decimals to print.  [default: 4; all of them in json, csv and tsv]",
)
@options.output("table", "json", "csv", "tsv", "trec")
@options.conventions
@options.reading
@click.option("--threads", type=int, metavar="N", help="How many cores to use.  [default: all]")
def command(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    per_topic: bool,
    sort: str | None,
    digits: int | None,
    by: str | None,
    topics_file: str | None,
    shape: str,
    output: str | None,
    **given: Any,
) -> None:
    """Score runs against judgments.

    A run may be a file (.gz, .zst, .xz and .bz2 are read as they are), a quoted pattern such as 'runs/*.run', or - for
    standard input. Judged topics that a run lacks score 0 unless --missing says otherwise, and are reported.

    \b
    $ cranfield eval qrels.txt bm25.run dense.run -m "nDCG@10 AP RR@10"
    """
    options.without_algebra()
    from cranfield.cli.progress import progress
    from cranfield.workspace import eval_, slice_

    if digits is not None and digits < 0:
        raise click.UsageError(f"--digits must be 0 or more, got {digits}")
    if (by is None) != (topics_file is None):
        raise click.UsageError("--by COLUMN and --topics-file FILE go together")
    if shape == "trec" and (by or given["bounds"]):
        raise click.UsageError("--format trec has no place for bounds or categories; try tsv")
    if by and (given["bounds"] or (per_topic and shape != "json")):
        raise click.UsageError(f"--by does not go with {'--bounds' if given['bounds'] else '--per-topic'}")
    changes = options.taken(given)
    with progress("runs scored") as tell:
        scores = eval_(qrels, runs, measures, changes=changes, progress=tell, **given)
    if sort is not None:
        scores = scores.sort(sort)
    answer: Answer = scores
    if scores.bounds is not None:
        answer = scores.bounds
    elif by is not None and topics_file is not None:
        answer = slice_(scores, topics_file, by)
    if shape == "table":
        put(answer.to_text(per_topic, 4 if digits is None else digits, screen_width(output), style(output)), output)
    elif shape == "trec":
        put(scores.to_trec(per_topic, 4 if digits is None else digits), output)
    else:
        write = {"json": answer.to_json, "csv": answer.to_csv, "tsv": answer.to_tsv}[shape]
        put(write(per_topic, digits), output)
    if shape not in ("table", "json"):
        for line in answer.basis():
            note(line)
    for sentence in answer.notes(shell=True):
        note(f"note: {sentence}")

"""`cranfield eval`: runs × judgments × measures → a table of scores."""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.output import note, put, screen_width, style

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
    from cranfield.scores import conventions_in_words
    from cranfield.workspace import eval_

    if digits is not None and digits < 0:
        raise click.UsageError(f"--digits must be 0 or more, got {digits}")
    changes = options.taken(given)
    with progress("runs scored") as tell:
        scores = eval_(qrels, runs, measures, changes=changes, progress=tell, **given)
    if sort is not None:
        scores = scores.sort(sort)
    said = f"conventions: {conventions_in_words(scores.conventions)}"
    if shape == "table":
        paint = style(output)
        table = scores.to_text(per_topic, 4 if digits is None else digits, screen_width(output), paint)
        put(f"{table}\n\n{paint('dim', said) if paint else said}", output)
    elif shape == "trec":
        put(scores.to_trec(per_topic, 4 if digits is None else digits), output)
    else:
        write = {"json": scores.to_json, "csv": scores.to_csv, "tsv": scores.to_tsv}[shape]
        put(write(per_topic, digits), output)
    if shape not in ("table", "json"):
        note(said)
    for sentence in scores.notes(shell=True):
        note(f"note: {sentence}")

"""`cranfield reproduce`: an original experiment and its reproduction, from the order of documents to the effect."""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.output import note, put, screen_width

RUNS = "[ORIGINAL_BASE] ORIGINAL_ADVANCED [REPRODUCED_BASE] REPRODUCED_ADVANCED"


@click.command("reproduce", cls=options.Sectioned)
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar=RUNS)
@click.option(
    "-m",
    "--measures",
    multiple=True,
    default=["nDCG@10 AP"],
    show_default=True,
    metavar="MEASURES",
    help="What to score by; names as in nDCG@10, AP(rel=2)@100, or trec_eval's. May be repeated.",
)
@click.option("--other-qrels", metavar="QRELS", help="The reproduced runs are of another collection, judged by these.")
@click.option("--p", type=float, default=0.9, show_default=True, metavar="P", help="The patience of RBO, 0 to 1.")
@click.option("--depth", type=int, metavar="K", help="Compare the first K documents of the lists only.")
@click.option(
    "--rel", type=float, metavar="N", help="The lowest relevant grade, where a measure does not say so itself."
)
@click.option("--per-topic", is_flag=True, help="A row for each topic's result list as well.")
@click.option(
    "--digits", type=int, metavar="N", help="Decimals to print.  [default: 4; all of them in json, csv and tsv]"
)
@options.output("table", "json", "csv", "tsv")
@options.conventions
@options.reading
def command(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    per_topic: bool,
    digits: int | None,
    shape: str,
    output: str | None,
    **given: Any,
) -> None:
    """Say how close a reproduction comes to the original experiment.

    Two runs are the original and its reproduction. Four are the original's baseline and advanced run, then the
    reproduction's: then the effect (ER, DeltaRI) is compared as well. Figures follow Breuer et al., SIGIR 2020.

    \b
    $ cranfield reproduce qrels.txt bm25.run dense.run -m "nDCG@10 AP" --depth 3
    """
    from cranfield.workspace import reproduce_

    if digits is not None and digits < 0:
        raise click.UsageError(f"--digits must be 0 or more, got {digits}")
    found = reproduce_(qrels, runs, measures, changes=options.taken(given), **given)
    if shape == "table":
        put(found.to_text(per_topic, 4 if digits is None else digits, screen_width(output)), output)
    else:
        put({"json": found.to_json, "csv": found.to_csv, "tsv": found.to_tsv}[shape](per_topic, digits), output)
    for sentence in found.notes(shell=True):
        note(f"note: {sentence}")

"""`cranfield leaderboard`: runs, best first, and how sure their ranks are."""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.output import note, put, screen_width


@click.command("leaderboard", cls=options.Sectioned)
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="RUN...")
@options.measures_or_table
@click.option("--sort", metavar="MEASURE", help="The measure that ranks.  [default: the first]")
@click.option("--judged", "k", type=int, default=10, show_default=True, metavar="K", help="The depth of judged@K.")
@click.option(
    "--test",
    default="randomisation",
    show_default=True,
    metavar="NAME",
    cls=names.Named,
    names=names.tests_that_tell,
    help="What tells runs apart, for the tiers: {names}.",
)
@click.option(
    "--correction",
    default="holm",
    show_default=True,
    metavar="NAME",
    cls=names.Named,
    names=names.corrections,
    help="For paired tests, over all pairs of runs: {names}.",
)
@click.option("--alpha", type=float, default=0.05, show_default=True, metavar="A", help="The level of the tiers.")
@click.option("--level", type=float, default=0.95, show_default=True, metavar="L", help="That of the rank intervals.")
@click.option(
    "--resamples",
    type=int,
    default=10_000,
    show_default=True,
    metavar="N",
    help="Draws of topics; shuffles of randomised-tukey.",
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Where chance starts.")
@click.option(
    "--rel", type=float, metavar="N", help="The lowest relevant grade, where a measure does not say so itself."
)
@click.option("--topics", metavar="FILE", help="Look only at these topics: the first word of each line.")
@click.option("--digits", type=int, default=4, show_default=True, metavar="N", help="Decimals of the text table.")
@options.output("text", "json", "csv", "tsv", "markdown")
@options.conventions
@options.reading
def command(
    qrels: str | None, runs: tuple[str, ...], shape: str, output: str | None, digits: int, **given: Any
) -> None:
    """Rank runs by a measure, and say how sure the ranks are.

    Beside each run: its rank, the interval of the rank and the chance of being first (topics drawn again), and its
    tier: runs that share a letter were not told apart. Then the means, the micro averages of measures that are ratios, the
    geometric mean of AP, and how much of the first K is judged. -o FILE ending in .svg, .png, .pdf, .html or .vl.json
    draws the rank intervals. --table FILE takes scores per topic (topics × runs) in place of judgments and runs.

    \b
    $ cranfield leaderboard qrels.txt bm25.run dense.run -m "nDCG@10 AP P@5"
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import draw_ranks, leaderboard_

    if digits < 0:
        raise click.UsageError(f"--digits must be 0 or more, got {digits}")
    changes = options.taken(given)
    options.runs_or_table(qrels, runs, given["table"], changes)
    with progress("leaderboard") as tell:
        board = leaderboard_(qrels, runs, changes=changes, progress=tell, **given)
    if output is not None and draw_ranks(board, output):
        pass
    elif shape == "text":
        put(board.to_text(digits=digits, limit=screen_width(output)), output)
    else:
        put(getattr(board, f"to_{shape}")(), output)
    if shape != "markdown":
        for sentence in board.notes(shell=True):
            note(f"note: {sentence}")

"""Rank runs by a measure, and say how sure the ranks are.

Beside each run: its rank, an interval that holds the true rank, how often it comes first when topics are drawn again, and
its tier: runs that share a letter were not told apart. Then the means, the micro averages of measures that are ratios, the
geometric mean of AP, and how much of the first K is judged. -o FILE ending in .svg, .png, .pdf, .html or .vl.json
draws the rank intervals. --table FILE takes scores per topic (topics × runs) in place of judgments and runs.

\b
$ cranfield leaderboard qrels.txt bm25.run dense.run -m "nDCG@10 AP P@5"
"""

from __future__ import annotations

from typing import Any

from cranfield.cli import names, options
from cranfield.cli.options import option
from cranfield.cli.output import show

PLACE = 130


@options.command(__doc__)
@options.runs_or_table()
@option("--sort", "The measure that ranks.  [default: the first]", metavar="MEASURE")
@option("--judged", name="k")
@option(
    "--test",
    lambda: f"What tells runs apart, for the tiers: {names.tests_that_tell()}.",
    default="randomisation",
    metavar="NAME",
)
@option("--correction", lambda: f"For paired tests, over all pairs of runs: {names.corrections()}.")
@option("--alpha", "The level of the tiers.")
@option("--level", "That of the rank intervals.")
@option(
    "--rank-intervals", lambda: f"What they hold for: {names.rank_intervals()}.", default="simultaneous", metavar="KIND"
)
@option("--resamples", "Draws of topics; shuffles of randomised-tukey.", default=10_000)
@option("--seed")
@option("--rel")
@option("--topics")
@option("--weigh-by")
@option("--topics-file")
@option("--digits", "Decimals of the text table.", default=4)
@options.answer("text", "json", "csv", "tsv", "markdown")
@options.rules
def command(digits: int, **typed: Any) -> None:
    from cranfield.cli.progress import progress
    from cranfield.workspace.comparing import leaderboard

    inputs, shown, how = options.split(typed)
    options.refuse_both(inputs)
    with progress("leaderboard") as tell:
        board = leaderboard(inputs, progress=tell, **how)
    show(board, digits=digits if shown["shape"] == "text" else None, **shown)

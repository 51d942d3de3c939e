"""Rank runs by a measure, and show how certain the ranks are.

Each run has a rank, an interval that contains the true rank, the share of resamples in which it comes first, and a
tier: runs that share a letter do not differ significantly. Then follow the means, the micro averages of ratios, the
geometric mean of AP, and the share of judged documents. -o FILE.svg (.png, .pdf, .html, .vl.json) draws the rank
intervals. --table FILE gives scores per topic in place of judgments and runs.

\b
$ cranfield leaderboard qrels.txt bm25.run dense.run -m "nDCG@10 AP P@5"
"""

from __future__ import annotations

from typing import Any

from cranfield.cli import options
from cranfield.cli.options import option, rare
from cranfield.cli.output import show_answer

PLACE = 130


@options.command(__doc__)
@options.runs_or_table()
@option("--sort MEASURE", "Measure that ranks the runs.  [default: the first of --measures]")
@option("--judged", name="k")
@option(
    "--test NAME",
    "Test that forms the tiers. It is {separating_tests}. With --design-weights, the default is t.  "
    "[default: randomisation]",
)
@option("--correction", "Correction of paired tests for the number of pairs of runs. It is one of {corrections}.")
@option("--alpha", "Significance level of the tiers.")
@option("--confidence level", "Confidence level of the rank intervals.")
@rare("--rank-intervals KIND", "Kind of rank intervals. It is one of {rank_intervals}.", default="simultaneous")
@option("--resamples", "Number of resamples of the topics, and of shuffles for randomised-tukey.", default=10_000)
@option("--seed")
@option("--rel")
@option("--topics")
@option("--weigh-by")
@option("--design-weights")
@option("--topics-file")
@option("--digits", "Number of decimals in the text table.", default=4)
@options.answer("text", "json", "csv", "tsv", "markdown")
@options.rules
def command(digits: int, **typed: Any) -> None:
    from cranfield.commands.comparison import leaderboard

    how = options.with_inputs(typed)
    options.refuse_both(how["inputs"])
    show_answer(leaderboard, digits=digits if how["shape"] == "text" else None, counting="leaderboard", **how)

"""Plan how many topics an experiment needs to find a difference.

The variance comes from two or more runs, from --table, or from --sd. The answer is the number of topics needed, the
power of the available topics, the smallest difference they can find, and the power curve; csv and tsv hold the curve.
Tests use the level that the correction of compare leaves for one p-value. -o FILE.svg (.png, .pdf, .html, .vl.json)
draws the curve.

\b
$ cranfield design --sd 0.2 --difference 0.05 --topic-count 50
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option, rare
from cranfield.cli.output import show_answer

PLACE = 170


@options.command(__doc__)
@options.runs_or_table(measures="nDCG@10")
@option("--sd X", "Standard deviation of the difference over topics, instead of runs.", type=float)
@option("--difference D", "Difference to find.  [default: the difference of the runs]", type=float)
@option("--power P", "Probability of finding the difference.", default=0.8)
@option("--alpha", "Significance level of all tests together.")
@option("--correction", "Correction that compare will apply. It is one of {corrections}.")
@rare(
    "--comparisons N family",
    "Number of p-values to correct for.  [default: all pairs of systems times all measures]",
    type=int,
    was=["--family"],
)
@option(
    "--topic-count N n",
    "Number of topics that are available.  [default: those of the runs]",
    type=int,
    was=["--topics"],
)
@rare(
    "--systems N",
    "Number of systems for an ANOVA, which is planned as well.  [default: the runs, if there are three or more]",
    type=int,
)
@option(
    "--test TESTS tests",
    "Tests to plan for. They are {power_tests}. With --design-weights, the default is t.  [default: t, sign, randomisation]",
    multiple=True,
)
@option("--one-sided", "Plan a one-sided test, which only looks for an improvement.", is_flag=True)
@rare("--sizes N,N,...", "Numbers of topics for the power curve.  [default: round numbers]")
@option("--trials", "Number of simulated experiments.", default=2_000)
@option("--resamples", "Number of sign flips in each simulated experiment.", default=1_000)
@option("--seed")
@option("--rel")
@option("--design-weights", "Plan samples of topics from the same query log, by the design of the topics at hand.")
@option("--topics-file")
@options.answer("text", "json", "csv", "tsv")
@options.rules
def command(one_sided: bool, tests: tuple[str, ...], **typed: Any) -> None:
    from cranfield.commands.comparison import design

    inputs, display, how = options.split(typed)
    if how["sd"] is None:
        options.refuse_both(inputs)
    elif inputs.qrels is not None or inputs.runs or inputs.table is not None:
        raise click.UsageError("--sd replaces judgments and runs; give one or the other")
    else:
        options.refuse_reading(inputs, "--sd")
        options.refuse_idle("is for the topics of runs, and --sd reads none", "design_weights", "topics_file")
    needs = "goes with --design-weights, or files that name topics by the text of their query"
    options.expect_use(needs, "topics_file")
    side = "greater" if one_sided else "two-sided"
    how |= {"tests": options.words(tests) or None, "alternative": side}
    show_answer(design, inputs, counting="tests", **how, **display)

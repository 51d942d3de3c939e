"""Compare runs: differences, intervals and significance tests.

For each pair of runs, or each run and baseline: means, difference with interval, effect size d_z, topics won, tied
and lost (W/T/L), p-value, corrected p-value, and cautions. --table FILE gives scores per topic in place of judgments
and runs.

\b
$ cranfield compare qrels.txt bm25.run dense.run -m "nDCG@10 AP"
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option, rare
from cranfield.cli.output import FOR_PEOPLE, notes, show_answer

PLACE = 120

question = options.together(
    options.runs_or_table("RUN RUN..."),
    option(
        "--baseline NAME",
        "Baseline run: compare each other run with it, instead of all pairs.",
        name="baselines",
        multiple=True,
        everyday=True,
    ),
    option(
        "--test tests",
        "Significance test; cranfield tests lists them. The first test decides. The name all runs every test. "
        "Tests of pairs: {all_tests}. With --design-weights, the default is t.  [default: randomisation]",
        multiple=True,
        metavar="NAME|all",
    ),
    option("--correction", "Correction for the number of pairs and measures. It is one of {corrections}."),
    option("--alpha", "Significance level: a difference is significant if p <= A."),
    option("--confidence level"),
    rare("--interval", "Method for the interval of the mean difference.", default="t", metavar="{intervals}"),
    option("--resamples", "Number of random draws of a test.  [default: 100000, or as many as the correction needs]"),
    option("--seed"),
    rare(
        "--alternative",
        "Direction of the test, from the baseline to the other run.",
        default="two-sided",
        metavar="two-sided|better|worse|greater|less",
    ),
    rare("--simultaneous", "Compute intervals that hold for all pairs together, as the correction does.", is_flag=True),
    rare("--rope X", "Largest difference that does not matter, for the bayes tests.", type=float),
    option(
        "--margin X",
        "Margin for tests of equivalence and non-inferiority (TOST), which are then run as well.",
        type=float,
    ),
    rare(
        "--group run_groups",
        "Runs of one system that differ by random seed, such as 'dense.seed*.run'. The comparison covers topics and seeds.",
        multiple=True,
        metavar="[NAME=]PATTERN",
    ),
    rare("--rel"),
    option("--topics"),
    option("--weigh-by"),
    option("--design-weights"),
    option("--topics-file"),
    option("--collection-size"),
    options.measure_data,
)


@options.command(__doc__)
@question
@rare(
    "--label-noise",
    "Redraw the labels of a log of judgments, so that intervals and tests include the assessors' disagreement. From a file "
    "of online qrels, the values of clicks are redrawn.",
    is_flag=True,
)
@rare(
    "--policy",
    "Policy that aggregates the labels of a document, with --label-noise. It is one of {noisy_policies}.  "
    "[default: majority, or the policy of the version]",
    default=None,
)
@rare("--label-draws N", "Number of times that labels are redrawn.  [default: 200]", type=int)
@rare(
    "--bars/--no-bars",
    "Draw a bar for the difference of each topic, or no bars.  [default: bars for a single pair]",
    default=None,
)
@rare("--all-pairs every", "Show every pair of runs, however many there are.", is_flag=True)
@option("--per-topic", "Write the difference of each topic as well. This is for json, csv and tsv.")
@option("--digits")
@options.answer("text", "json", "csv", "tsv", "markdown")
@options.rules
@option("--threads")
def command(**typed: Any) -> None:
    from cranfield.commands.comparison import compare

    inputs, display, how = options.split(typed)
    options.refuse_both(inputs, how["run_groups"], conventions=False)
    _refuse_without_noise(inputs.table, how)
    comparison = show_answer(compare, inputs, counting="comparing", **how, **display)
    if display["shape"] not in FOR_PEOPLE:
        notes(comparison.scores.notes(shell=True))


def _refuse_without_noise(table: str | None, how: dict[str, Any]) -> None:
    """Refuse the options of --label-noise without it, and --label-noise without labels."""
    if how["label_draws"] is None:
        del how["label_draws"]
    if how["label_noise"] and table is not None:
        raise click.UsageError("--table holds scores; --label-noise redraws labels and needs a log and runs")
    if how["label_noise"] and how["run_groups"]:
        raise click.UsageError("--group goes by topics and seeds, --label-noise by topics and labels; give one of them")
    if not how["label_noise"] and (how["policy"] is not None or "label_draws" in how):
        raise click.UsageError("--policy and --label-draws go with --label-noise")

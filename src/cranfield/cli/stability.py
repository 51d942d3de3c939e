"""Measure how stable a ranking of runs is.

Rankings under other measures, judgments and topics are compared by Kendall's tau and AP correlation. The part halves
splits the topics at random many times; discrimination counts the pairs of runs that a measure separates;
generalisability counts the topics that make the ranking reliable. csv and tsv hold one part. -o FILE.svg (.png, .pdf,
.html, .vl.json) draws one part.

\b
$ cranfield stability qrels.txt bm25.run dense.run -m "nDCG@10 AP" --of "discrimination halves"
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option, rare
from cranfield.cli.output import is_chart, show_answer

PLACE = 140
PARTS = "measures, qrels, halves, discrimination, generalisability"
PARTS_OF_OPTION = {  # the parts that an option changes
    "other_qrels": ("qrels",),
    "other_table": ("qrels",),
    "test": ("qrels", "discrimination"),
    "alpha": ("qrels", "discrimination"),
    "resamples": ("qrels", "discrimination"),
    "trials": ("halves", "discrimination"),
    "seed": ("qrels", "halves", "discrimination"),
    "level": ("halves", "generalisability"),
    "target": ("generalisability",),
    "p": ("measures", "qrels", "lists"),
}


@options.command(__doc__)
@options.runs_or_table()
@option(
    "--of PARTS parts",
    f"Parts of the analysis to run. They are {PARTS}, and lists, which compares result lists by RBO.  "
    "[default: all but lists]",
    multiple=True,
)
@option("--other-qrels QRELS", "Second judgments, whose ranking of the runs is compared with the first.")
@rare("--other-table FILE", "Scores under second judgments, for use with --table.")
@option(
    "--coefficient NAMES kinds",
    "Coefficient that compares rankings, such as tau, tau-ap, tau-ap-b, spearman or rbo. The part lists also takes "
    "overlap@10 and others.  [default: tau tau-ap-b rbo; rbo for lists]",
    multiple=True,
    was=["--kind"],
)
@option("--p")
@option(
    "--test NAME",
    "Test that separates runs, without correction for paired tests. It is {separating_tests}.",
    default="randomised-tukey",
)
@option("--alpha", "Significance level of the test.")
@option("--confidence level")
@option(
    "--reliability R target",
    "Reliability to reach; the answer is the number of topics it takes.",
    default=0.95,
    was=["--target"],
)
@option("--trials", "Number of random splits of the topics.", default=500)
@option("--resamples", "Number of shuffles of the test.", default=10_000)
@option("--seed")
@option("--rel")
@option("--topics")
@options.answer("text", "json", "csv", "tsv")
@options.rules
def command(parts: tuple[str, ...], kinds: tuple[str, ...], **typed: Any) -> None:
    from cranfield.commands.comparison import stability

    inputs, display, how = options.split(typed, parts=options.words(parts), kinds=options.words(kinds))
    options.refuse_both(inputs)
    if inputs.table is None:
        options.refuse_idle("goes with --table; give --other-qrels", "other_table")
    else:
        options.refuse_idle("goes with judgments and runs; give --other-table", "other_qrels")
    if how["parts"]:
        for name, users in PARTS_OF_OPTION.items():
            if not {*users} & {*how["parts"]}:
                options.refuse_idle(f"is for --of {' and '.join(users)}", name)
    if how["parts"] == ["lists"] and is_chart(display["output"]):
        raise click.UsageError("lists have no chart; choose halves, discrimination, generalisability or qrels")
    if "lists" in how["parts"] and len(how["parts"]) > 1 and display["shape"] in ("csv", "tsv"):
        raise click.UsageError(f"--format {display['shape']} holds one part; choose one with --of")
    show_answer(stability, inputs, counting="parts", **how, **display)

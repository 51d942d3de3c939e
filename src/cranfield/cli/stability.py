"""Say how stable the ranking of the runs is: under other measures, judgments and topics.

Rankings are compared by Kendall's tau and AP correlation; halves splits the topics at random again and again;
discrimination counts the pairs of runs that a measure tells apart; generalisability says how many topics make
the ranking reliable. csv and tsv hold one part, its curve where it has one. -o FILE ending in .svg, .png, .pdf,
.html or .vl.json draws one part: achieved significance levels, agreement by number of topics, reliability.

\b
$ cranfield stability qrels.txt bm25.run dense.run -m "nDCG@10 AP" --of "discrimination halves"
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.options import COLLECTION, INPUT, option
from cranfield.cli.output import is_chart, show

PLACE = 140
PARTS = "measures, qrels, halves, discrimination, generalisability"
USERS = {  # of an option: the parts that it changes
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
    "--of",
    f"What to look at: {PARTS}; lists compares the result lists by RBO. May be repeated.  [default: all but lists]",
    name="parts",
    multiple=True,
    metavar="PARTS",
)
@option("--other-qrels", "For qrels: compare with the ranking by these judgments.", type=COLLECTION, metavar="QRELS")
@option("--other-table", "The same for --table: scores under other judgments.", type=INPUT, metavar="FILE")
@option(
    "--kind",
    "How rankings are compared: tau, tau-ap, tau-ap-b, spearman, rbo …; lists alone also by overlap@10 …  "
    "[default: tau tau-ap-b rbo; of lists rbo]",
    name="kinds",
    multiple=True,
    metavar="KINDS",
)
@option("--p")
@option(
    "--test",
    lambda: f"What tells runs apart: {names.tests_that_tell()}. Paired tests are not corrected.",
    default="randomised-tukey",
    metavar="NAME",
)
@option("--alpha", "Its level.")
@option("--level", "That of intervals.")
@option("--target", "The reliability to count topics for.", default=0.95, metavar="R")
@option("--trials", "Random splits of the topics.", default=500)
@option("--resamples", "Shuffles of the test.", default=10_000)
@option("--seed")
@option("--rel")
@option("--topics")
@options.answer("text", "json", "csv", "tsv")
@options.rules
def command(parts: tuple[str, ...], kinds: tuple[str, ...], **typed: Any) -> None:
    from cranfield.cli.progress import progress
    from cranfield.workspace.comparing import stability

    inputs, shown, how = options.split(typed, parts=options.words(parts), kinds=options.words(kinds))
    options.refuse_both(inputs)
    if inputs.table is None:
        options.refuse_idle("goes with --table; give --other-qrels", "other_table")
    else:
        options.refuse_idle("goes with judgments and runs; give --other-table", "other_qrels")
    if how["parts"]:
        for name, users in USERS.items():
            if not {*users} & {*how["parts"]}:
                options.refuse_idle(f"is for --of {' and '.join(users)}", name)
    if how["parts"] == ["lists"] and is_chart(shown["output"]):
        raise click.UsageError("lists have no chart; choose halves, discrimination, generalisability or qrels")
    if "lists" in how["parts"] and len(how["parts"]) > 1 and shown["shape"] in ("csv", "tsv"):
        raise click.UsageError(f"--format {shown['shape']} holds one part; choose one with --of")
    with progress("parts") as tell:
        answer = stability(inputs, progress=tell, **how)
    show(answer, **shown)

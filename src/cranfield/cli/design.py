"""Say how many topics it takes to find a difference, and what the topics at hand can find.

The variance comes from the topics of two runs or more (or of a --table), or from --sd. Printed are the topics needed,
the power with the present number, the smallest difference it finds, and the power curve; csv and tsv hold the
curve. Each test is planned at the level that the correction of compare leaves to one p-value. -o FILE ending in .svg,
.png, .pdf, .html or .vl.json draws it.

\b
$ cranfield design --sd 0.2 --difference 0.05 --topics 50
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.options import option
from cranfield.cli.output import show

PLACE = 170


@options.command(__doc__)
@options.runs_or_table()
@option("--sd", "The standard deviation of the difference over topics, if known.", type=float, metavar="X")
@option("--difference", "The difference to find.  [default: the one between the runs]", type=float, metavar="D")
@option("--power", "How surely to find it.", default=0.8, metavar="P")
@option("--alpha", "The level of the tests, all of them together.")
@option("--correction", lambda: f"As compare will make it: {names.corrections()}.")
@option(
    "--family",
    "How many p-values it will cover.  [default: all pairs of systems times all measures]",
    type=int,
    metavar="N",
)
@option("--topics", "How many topics are at hand.  [default: those of the runs]", name="n", type=int, metavar="N")
@option(
    "--systems",
    "Plan the ANOVA of so many systems as well.  [default: of three runs or more]",
    type=int,
    metavar="N",
)
@option(
    "--test",
    lambda: f"{names.power_tests()}. May be repeated.",
    name="tests",
    multiple=True,
    default=["t", "sign", "randomisation"],
    metavar="TESTS",
)
@option("--one-sided", "Only the better side counts.", is_flag=True)
@option("--sizes", "Numbers of topics for the power curve.  [default: round ones]", metavar="N,N,...")
@option("--trials", "Simulated experiments.", default=2_000)
@option("--resamples", "Sign flips in each of them.", default=1_000)
@option("--seed")
@option("--rel")
@options.answer("text", "json", "csv", "tsv")
@options.rules
def command(one_sided: bool, tests: tuple[str, ...], **typed: Any) -> None:
    from cranfield.cli.progress import progress
    from cranfield.workspace.comparing import design

    inputs, shown, how = options.split(typed)
    if how["sd"] is None:
        options.refuse_both(inputs)
    elif inputs.qrels is not None or inputs.runs or inputs.table is not None:
        raise click.UsageError("--sd stands in place of judgments and runs; give one or the other")
    else:
        options.refuse_reading(inputs, "--sd")
    side = "greater" if one_sided else "two-sided"
    with progress("tests") as tell:
        plans = design(inputs, tests=options.words(tests), alternative=side, progress=tell, **how)
    show(plans, **shown)

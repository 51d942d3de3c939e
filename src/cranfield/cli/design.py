"""`cranfield design`: how many topics does it take to find a difference?"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import names as named
from cranfield.cli import options
from cranfield.cli.output import note, put, screen_width


@click.command("design", cls=options.Sectioned)
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="RUN...")
@options.measures_or_table
@click.option("--sd", type=float, metavar="X", help="The standard deviation of the difference over topics, if known.")
@click.option(
    "--difference", type=float, metavar="D", help="The difference to find.  [default: the one between the runs]"
)
@click.option("--power", type=float, default=0.8, show_default=True, metavar="P", help="How surely to find it.")
@click.option("--alpha", type=float, default=0.05, show_default=True, metavar="A", help="The level of the test.")
@click.option("--topics", "n", type=int, metavar="N", help="How many topics are at hand.  [default: those of the runs]")
@click.option(
    "--systems",
    type=int,
    metavar="N",
    help="Plan the ANOVA of so many systems as well.  [default: of three runs or more]",
)
@click.option(
    "--test",
    "tests",
    multiple=True,
    default=["t", "sign", "randomisation"],
    show_default=True,
    metavar="TESTS",
    cls=named.Named,
    names=named.power_tests,
    help="{names}. May be repeated.",
)
@click.option("--one-sided", is_flag=True, help="Only the better side counts.")
@click.option("--sizes", metavar="N,N,...", help="Numbers of topics for the power curve.  [default: round ones]")
@click.option("--trials", type=int, default=2_000, show_default=True, metavar="N", help="Simulated experiments.")
@click.option(
    "--resamples", type=int, default=1_000, show_default=True, metavar="N", help="Sign flips in each of them."
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Where chance starts.")
@click.option(
    "--rel", type=float, metavar="N", help="The lowest relevant grade, where a measure does not say so itself."
)
@options.output("text", "json", "csv", "tsv")
@options.conventions
@options.reading
def command(
    qrels: str | None,
    runs: tuple[str, ...],
    tests: tuple[str, ...],
    one_sided: bool,
    sizes: str | None,
    shape: str,
    output: str | None,
    **given: Any,
) -> None:
    """Say how many topics it takes to find a difference, and what the topics at hand can find.

    The variance comes from the topics of two runs or more (or of a --table), or from --sd. Printed are the topics needed,
    the power with the present number, the smallest difference it finds, and the power curve; csv and tsv hold the
    curve. -o FILE ending in .svg, .png, .pdf, .html or .vl.json draws it.

    \b
    $ cranfield design --sd 0.2 --difference 0.05 --topics 50
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import design_, draw_power

    changes = options.taken(given)
    if given["sd"] is None:
        options.runs_or_table(qrels, runs, given["table"], changes)
    elif qrels is not None or runs or given["table"] is not None:
        raise click.UsageError("--sd stands in place of judgments and runs; give one or the other")
    names = [name for text in tests for name in text.replace(",", " ").split()]
    side = "greater" if one_sided else "two-sided"
    with progress("tests") as tell:
        plans = design_(
            qrels, runs, tests=names, alternative=side, sizes=sizes, changes=changes, progress=tell, **given
        )
    if output is not None and draw_power(plans, output):
        pass
    elif shape == "text":
        put(plans.to_text(limit=screen_width(output)), output)
    else:
        put({"json": plans.to_json, "csv": plans.to_csv, "tsv": plans.to_tsv}[shape](), output)
    for sentence in plans.notes():
        note(f"note: {sentence}")

"""Let real users decide: mix the lists of systems, and see whose documents they click.

The library is what a search service calls (cranfield.online); these commands show what it does.

\b
$ cranfield online interleave bm25.run dense.run --topic q1 -k 5
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.options import option
from cranfield.cli.output import show

PLACE = 195


@click.group(help=__doc__)
def command() -> None:
    pass


command.command_class = options.Worded


@command.command("interleave")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option("--topic", "Whose lists.", required=True, metavar="TOPIC")
@option("-k --depth", "How many documents.", type=click.IntRange(min=1), default=10, metavar="K")
@option(
    "--method",
    lambda: f"How: {names.interleavings()}; parameters in brackets, as in 'probabilistic(tau=1)'.",
    default="team-draft",
    metavar="METHOD",
)
@option("--seed", "Where the coin starts.")
@option("--run-format", "The runs' format, if it is not to be detected.")
@option("--field fields")
@options.answer("table", "json", "csv", "tsv")
def _interleave(depth: int, **typed: Any) -> None:
    """Mix the lists of two runs or more for one topic, and show what a click on each document would earn.

    \b
    $ cranfield online interleave bm25.run dense.run --topic q1 -k 5 --seed 7
    """
    from cranfield.workspace.online import interleave

    inputs, shown, how = options.split(typed)
    show(interleave(inputs, k=depth, **how), **shown)


@command.command("methods")
@click.argument("name", required=False)
@options.output("table", "json")
def _methods(name: str | None, **shown: Any) -> None:
    """List the methods of interleaving, or explain one.

    \b
    $ cranfield online methods team-draft
    """
    from cranfield.workspace.listing import interleaving, interleavings

    show(interleavings() if name is None else interleaving(name), **shown)

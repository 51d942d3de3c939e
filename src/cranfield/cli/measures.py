"""List the measures, or explain one.

The explanation has the definition, formula, parameters and their ranges, the names in other tools, a reference and a
worked example. NAME may be another tool's: ndcg_cut_10 explains nDCG.

\b
$ cranfield measures nDCG
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option
from cranfield.cli.output import show

PLACE = 200


@options.command(__doc__)
@click.argument("name", required=False)
@option("--family FAMILY", "Family of measures to list; its first letters suffice.")
@options.output("table", "json")
def command(name: str | None, family: str | None, **display: Any) -> None:
    from cranfield.commands.listings import measure, measures

    if name is not None and family is not None:
        raise click.UsageError("give either a measure's name or --family, not both")
    show(measures(family) if name is None else measure(name), **display)

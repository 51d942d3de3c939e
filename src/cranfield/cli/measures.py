"""List the measures, or explain one.

A measure is explained by its definition, formula, parameters and their ranges, the names other tools give it, a
reference and a worked example. NAME may be another tool's: ndcg_cut_10 explains nDCG.

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
@option("--family", "Only the measures of one family (the first letters will do).", metavar="FAMILY")
@options.output("table", "json")
def command(name: str | None, family: str | None, **shown: Any) -> None:
    from cranfield.workspace.listing import measure, measures

    if name is not None and family is not None:
        raise click.UsageError("give either a measure's name or --family, not both")
    show(measures(family) if name is None else measure(name), **shown)

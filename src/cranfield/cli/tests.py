"""List the significance tests, or explain one.

A test is explained by what it asks and assumes, what it compares, where its p-value comes from, the interval that comes
with it, its other names and a reference. NAME may be another name of it: signed-rank explains wilcoxon.

\b
$ cranfield tests wilcoxon
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.output import show

PLACE = 202


@options.command(__doc__)
@click.argument("name", required=False)
@options.output("table", "json")
def command(name: str | None, **shown: Any) -> None:
    from cranfield.workspace.listing import test, tests

    show(tests() if name is None else test(name), **shown)

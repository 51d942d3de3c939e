"""List the corrections for many tests, or explain one.

A correction is explained by what it controls and assumes, its other names and a reference. NAME may be another name of
it: bh explains benjamini-hochberg.

\b
$ cranfield corrections holm
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.output import show

PLACE = 204


@options.command(__doc__)
@click.argument("name", required=False)
@options.output("table", "json")
def command(name: str | None, **shown: Any) -> None:
    from cranfield.workspace.listing import correction, corrections

    show(corrections() if name is None else correction(name), **shown)

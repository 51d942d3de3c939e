"""`cranfield corrections`: what there is for --correction."""

from __future__ import annotations

import click

from cranfield.cli import methods, options


@click.command("corrections")
@click.argument("name", required=False)
@options.output("table", "json")
def command(name: str | None, shape: str, output: str | None) -> None:
    """List the corrections for many tests, or explain one.

    A correction is explained by what it controls and assumes, its other names and a reference. NAME may be another name of
    it: bh explains benjamini-hochberg.

    \b
    $ cranfield corrections holm
    """
    from cranfield.workspace import explain_correction, list_corrections

    if name is None:
        methods.show_all(list_corrections(), ("name", "controls"), shape, output)
    else:
        methods.show_one(explain_correction(name), shape, output)

"""`cranfield tests`: what there is for --test."""

from __future__ import annotations

import click

from cranfield.cli import methods, options


@click.command("tests")
@click.argument("name", required=False)
@options.output("table", "json")
def command(name: str | None, shape: str, output: str | None) -> None:
    """List the significance tests, or explain one.

    A test is explained by what it asks and assumes, what it compares, where its p-value comes from, the interval that comes
    with it, its other names and a reference. NAME may be another name of it: signed-rank explains wilcoxon.

    \b
    $ cranfield tests wilcoxon
    """
    from cranfield.workspace import explain_test, list_tests

    if name is None:
        methods.show_all(list_tests(), ("name", "samples", "compares", "p_from"), shape, output)
    else:
        methods.show_one(explain_test(name), shape, output)

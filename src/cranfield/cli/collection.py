"""Look at a collection of documents, topics and judgments.

COLLECTION is a folder that cranfield import has made, or the name of a bundled collection.

\b
$ cranfield collection list
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import BAD_DATA, options
from cranfield.cli.options import option
from cranfield.cli.output import about, drawn, note, put, show, written

PLACE = 20


@click.group(help=__doc__)
def command() -> None:
    pass


@command.command("show")
@click.argument("collection", metavar="COLLECTION")
@option("--topic", "Show this topic in full, with its judgments.", metavar="ID")
@option("--document", "Show this document in full.", metavar="ID")
@options.output("table", "json")
def _show(collection: str, topic: str | None, document: str | None, **shown: Any) -> None:
    """Show what a collection is: its counts, its grades and what they mean, where it came from.

    \b
    $ cranfield collection show allotment
    """
    from cranfield.workspace import collecting

    show(collecting.show(collection, topic, document), **shown)


@command.command("check")
@click.argument("collection", metavar="COLLECTION")
@options.output("table", "json")
@click.pass_context
def _check(ctx: click.Context, /, collection: str, **shown: Any) -> None:
    """Say what would ruin experiments with a collection.

    Judgments of other topics or unknown documents, reversed grades, empty and repeated documents, too few topics, uneven
    judging, changed files. The exit code is 3 if one of the findings is an error.

    \b
    $ cranfield collection check allotment
    """
    from cranfield.check.collection import check_collection
    from cranfield.cli.progress import progress

    with progress("documents") as tell:
        findings = check_collection(collection, tell)
    show(findings, **shown)
    if findings.counts["error"]:
        ctx.exit(BAD_DATA)


@command.command("stats")
@click.argument("collection", metavar="COLLECTION")
@options.output("table", "json", "csv", "tsv")
def _stats(collection: str, **shown: Any) -> None:
    """Count what a collection holds, and show how it is distributed.

    With -o FILE.svg (.png, .pdf, .html) the distributions are drawn, one chart above the other.

    \b
    $ cranfield collection stats allotment
    """
    from cranfield.cli.progress import progress
    from cranfield.describe import stats

    with progress("documents") as tell:
        counted = stats(collection, tell)
    if drawn(counted, shown["output"]):
        about(shown["output"], f"{len(counted.distributions)} charts")
    else:
        show(counted, **shown)


@command.command("diff")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@options.output("table", "json", "csv", "tsv")
def _diff(a: str, b: str, **shown: Any) -> None:
    """Say how two collections differ: what was added, removed or changed, and which grades became which.

    \b
    $ cranfield collection diff allotment allotment
    """
    from cranfield.cli.progress import progress
    from cranfield.describe import diff

    with progress("documents") as tell:
        differences = diff(a, b, tell)
    show(differences, **shown)


@command.command("list")
@options.output("table", "json", "csv", "tsv")
def _list(**shown: Any) -> None:
    """List the collections that lectures name, what they should hold, and where each can be had.

    \b
    $ cranfield collection list
    """
    from cranfield.catalogue import CATALOGUE

    put(written(CATALOGUE, **shown), shown["output"])
    for sentence in CATALOGUE.notes() if shown["shape"] == "table" else []:
        note(sentence)


@command.command("stamp")
@click.argument("collection", metavar="COLLECTION")
def _stamp(collection: str) -> None:
    """Write the counts and hashes of a collection's files into its collection.toml, after a change that is meant."""
    from cranfield.workspace.collecting import stamp

    about(stamp(collection), "counts and hashes")

"""`cranfield collection`: look at a collection, check it, count it, compare two; list those that are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cranfield.cli import BAD_DATA, options
from cranfield.cli.output import note, put, screen_width

if TYPE_CHECKING:
    from cranfield.answer import Answer


@click.group("collection")
def command() -> None:
    """Look at a collection of documents, topics and judgments.

    COLLECTION is a folder that cranfield import has made, or the name of a bundled collection.

    \b
    $ cranfield collection list
    """


@command.command("show")
@click.argument("collection", metavar="COLLECTION")
@click.option("--topic", metavar="ID", help="Show this topic in full, with its judgments.")
@click.option("--document", metavar="ID", help="Show this document in full.")
@options.output("table", "json")
def show(collection: str, topic: str | None, document: str | None, shape: str, output: str | None) -> None:
    """Show what a collection is: its counts, its grades and what they mean, where it came from.

    \b
    $ cranfield collection show allotment
    """
    from cranfield.workspace import collection_show

    shown = collection_show(collection, topic, document)
    put(shown.to_json() if shape == "json" else shown.to_text(), output)


@command.command("check")
@click.argument("collection", metavar="COLLECTION")
@options.output("table", "json")
@click.pass_context
def check(ctx: click.Context, collection: str, shape: str, output: str | None) -> None:
    """Say what would ruin experiments with a collection.

    Judgments of other topics or unknown documents, reversed grades, empty and repeated documents, too few topics, uneven
    judging, changed files. The exit code is 3 if one of the findings is an error.

    \b
    $ cranfield collection check allotment
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import collection_check

    with progress("documents") as tell:
        findings = collection_check(collection, tell)
    put(findings.to_json() if shape == "json" else findings.to_text(), output)
    if findings.counts["error"]:
        ctx.exit(BAD_DATA)


@command.command("stats")
@click.argument("collection", metavar="COLLECTION")
@options.output("table", "json", "csv", "tsv")
def stats(collection: str, shape: str, output: str | None) -> None:
    """Count what a collection holds, and show how it is distributed.

    With -o FILE.svg (.png, .pdf, .html) the distributions are drawn, one chart above the other.

    \b
    $ cranfield collection stats allotment
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import collection_stats, draw_stats

    with progress("documents") as tell:
        found = collection_stats(collection, tell)
    if output is not None and draw_stats(found, output):
        note(f"{output}: {len(found.distributions)} charts")
    else:
        put(_written(found, shape), output)


@command.command("diff")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@options.output("table", "json", "csv", "tsv")
def diff(a: str, b: str, shape: str, output: str | None) -> None:
    """Say how two collections differ: what was added, removed or changed, and which grades became which.

    \b
    $ cranfield collection diff allotment allotment
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import collection_diff

    with progress("documents") as tell:
        found = collection_diff(a, b, tell)
    put(_written(found, shape), output)


@command.command("list")
@options.output("table", "json", "csv", "tsv")
def list_(shape: str, output: str | None) -> None:
    """List the collections that lectures name, what they should hold, and where each can be had.

    \b
    $ cranfield collection list
    """
    from cranfield.workspace import collection_list

    collections = collection_list()
    put(_written(collections, shape, screen_width(output)), output)
    if shape == "table":
        for sentence in collections.notes():
            note(sentence)


@command.command("stamp")
@click.argument("collection", metavar="COLLECTION")
def stamp(collection: str) -> None:
    """Write the counts and hashes of a collection's files into its collection.toml, after a change that is meant."""
    from cranfield.workspace import collection_stamp

    note(f"{collection_stamp(collection)}: counts and hashes written")


def _written(answer: Answer, shape: str, limit: int | None = None) -> str:
    if shape == "table":
        return answer.to_text(limit=limit)
    return {"json": answer.to_json, "csv": answer.to_csv, "tsv": answer.to_tsv}[shape]()

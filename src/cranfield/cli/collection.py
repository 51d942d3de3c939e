"""Inspect a collection of documents, topics and judgments.

COLLECTION is a folder that cranfield import has made, or the name of a bundled collection.

\b
$ cranfield collection list
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import BAD_DATA, options
from cranfield.cli.options import option
from cranfield.cli.output import about, is_chart, limits, put, rendered, show, show_answer

PLACE = 20


command = options.group(__doc__)


@command.command("show")
@click.argument("collection", metavar="COLLECTION")
@option("--topic ID", "Topic to show in full, with its judgments.")
@option("--document ID", "Document to show in full.")
@options.output("table", "json")
def _show(collection: str, topic: str | None, document: str | None, **display: Any) -> None:
    """Describe a collection.

    The description has its counts, its grades and their meaning, and its origin.

    \b
    $ cranfield collection show allotment
    """
    from cranfield.commands import collections

    show(collections.show(collection, topic, document), **display)


@command.command("check")
@click.argument("collection", metavar="COLLECTION")
@options.output("table", "json")
@click.pass_context
def _check(ctx: click.Context, /, collection: str, **display: Any) -> None:
    """Report what would invalidate experiments with a collection.

    It looks for judgments of unknown topics or documents, reversed grades, empty and repeated documents, too few topics,
    uneven judging, and changed files. The exit code is 3 if a finding is an error.

    \b
    $ cranfield collection check allotment
    """
    from cranfield.collections.check.collection_checks import check_collection

    findings = show_answer(check_collection, collection, counting="documents", **display)
    if findings.counts["error"]:
        ctx.exit(BAD_DATA)


@command.command("stats")
@click.argument("collection", metavar="COLLECTION")
@options.output("table", "json", "csv", "tsv")
def _stats(collection: str, **display: Any) -> None:
    """Count documents, topics and judgments, and show distributions.

    -o FILE.svg (.png, .pdf, .html) draws the distributions, one chart above the other.

    \b
    $ cranfield collection stats allotment
    """
    from cranfield.collections.describe import stats

    statistics = show_answer(stats, collection, counting="documents", **display)
    if is_chart(display["output"]):
        about(display["output"], f"{len(statistics.distributions)} charts")


@command.command("diff")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@options.output("table", "json", "csv", "tsv")
def _diff(a: str, b: str, **display: Any) -> None:
    """Compare two collections.

    The answer lists what was added, removed or changed, and which grades became which.

    \b
    $ cranfield collection diff allotment allotment
    """
    from cranfield.collections.describe import diff

    show_answer(diff, a, b, counting="documents", **display)


@command.command("list")
@options.answer("table", "json", "csv", "tsv")
def _list(**display: Any) -> None:
    """List well-known collections, their size and their source.

    \b
    $ cranfield collection list
    """
    from cranfield.formats.catalogue import CATALOGUE

    put(rendered(CATALOGUE, **display), display["output"])
    if display["shape"] == "table":
        limits(CATALOGUE, display["verbose"])


@command.command("stamp")
@click.argument("collection", metavar="COLLECTION")
def _stamp(collection: str) -> None:
    """Update the counts and hashes in collection.toml.

    Do this after an intended change of the collection's files.
    """
    from cranfield.commands.collections import stamp

    about(stamp(collection), "counts and hashes")

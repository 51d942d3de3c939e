"""`cranfield collection`: look at a collection, check it, count it, compare two; list those that are known."""

from __future__ import annotations

import click

from cranfield.answer import as_json
from cranfield.cli import BAD_DATA, options
from cranfield.cli.output import note, put, screen_width


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
    put(as_json(shown) if shape == "json" else _page(shown), output)


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
    elif shape == "json":
        put(as_json(found.to_dict()), output)
    elif shape == "table":
        put(found.to_text(), output)
    else:
        mark = "," if shape == "csv" else "\t"
        put("\n".join(mark.join(map(str, row)) for row in [("figure", "value"), *found.rows()]), output)


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
    if shape == "json":
        put(as_json(found.to_dict()), output)
    elif shape == "table":
        put(found.to_text(), output)
    else:
        mark = "," if shape == "csv" else "\t"
        put("\n".join(mark.join(row) for row in [("what", "change", "id"), *found.rows()]), output)


@command.command("list")
@options.output("table", "json", "csv", "tsv")
def list_(shape: str, output: str | None) -> None:
    """List the collections that lectures name, what they should hold, and where each can be had.

    \b
    $ cranfield collection list
    """
    from cranfield.columns import aligned
    from cranfield.workspace import collection_list

    head, entries = collection_list()
    if shape == "json":
        put(as_json([entry.to_dict() for entry in entries]), output)
        return
    if shape != "table":
        mark = "," if shape == "csv" else "\t"
        plain = [list(entries[0].row()), *(list(entry.row().values()) for entry in entries)]
        put(
            "\n".join(mark.join(_quoted("" if value is None else str(value), mark) for value in row) for row in plain),
            output,
        )
        return
    rows = [head, *(entry.cells() for entry in entries)]
    wide = max(len(row[-1]) for row in rows)
    padded = [[*row[:-1], row[-1].ljust(wide)] for row in rows]
    put("\n".join(aligned(padded, limit=screen_width(output))), output)
    note("counts: as taught / as published where the two differ")
    for entry in entries:
        if entry.remark:
            note(f"note: {entry.title}: {entry.remark}")


@command.command("stamp")
@click.argument("collection", metavar="COLLECTION")
def stamp(collection: str) -> None:
    """Write the counts and hashes of a collection's files into its collection.toml, after a change that is meant."""
    from cranfield.workspace import collection_stamp

    note(f"{collection_stamp(collection)}: counts and hashes written")


def _quoted(cell: str, mark: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if mark in cell or '"' in cell else cell


def _page(shown: dict[str, object]) -> str:
    lines: list[str] = []
    for key, value in shown.items():
        if isinstance(value, dict) and value:
            lines += ["", key, *(f"  {name}: {_line(each)}" for name, each in value.items())]
        elif value not in (None, "", [], {}):
            lines.append(f"{key}: {_line(value)}")
    return "\n".join(lines)


def _line(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(
            f"{key}: {_line(each)}" if key not in ("label",) else str(each) for key, each in value.items() if each
        )
    if isinstance(value, list):
        return ", ".join(map(_line, value))
    return f"{value:,}" if isinstance(value, int) else str(value)

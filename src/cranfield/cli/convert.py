"""`cranfield convert`: from one format to another, and several qrels into one."""

from __future__ import annotations

import click

from cranfield.cli.output import note


@click.command("convert")
@click.argument("sources", nargs=-1, required=True, metavar="FROM... TO")
@click.option("--from", "from_format", metavar="FORMAT", help="The sources' format, if it is not to be detected.")
@click.option("--to", "to_format", metavar="FORMAT", help="The target's format, if its ending does not say it.")
@click.option("--kind", metavar="run|qrels", help="What the files hold, where their content does not tell.")
@click.option(
    "--merge",
    metavar="latest|max|error",
    help="Where two qrels files disagree, take the later file's grade, the higher one, or stop.  [default: error]",
)
@click.option(
    "--lenient", is_flag=True, help="Skip malformed lines and say how many, instead of stopping at the first."
)
def command(
    sources: tuple[str, ...],
    from_format: str | None,
    to_format: str | None,
    kind: str | None,
    merge: str | None,
    lenient: bool,
) -> None:
    """Convert runs or judgments from one format into another, or merge judgments.

    The last file is written, whole or not at all; - is standard input or output. Formats are detected by content and
    chosen by ending (cranfield formats lists them); .gz, .zst, .xz and .bz2 behind it compress. Several qrels files
    become one.

    \b
    $ cranfield convert qrels.txt - --to csv
    """
    from cranfield.workspace import convert_

    if len(sources) < 2:
        raise click.UsageError("give at least two files: what to read, and last what to write")
    *files, target = sources
    done = convert_(files, target, from_format, to_format, kind, merge, lenient)
    note(f"{target}: {done.kind}, {done.rows} rows, {done.topics} topics, as {done.format}")
    for sentence in done.notes:
        note(f"note: {sentence}")

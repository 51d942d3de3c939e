"""Convert runs or judgments from one format into another, or merge judgments.

The last file is written, whole or not at all; - is standard input or output. Formats are detected by content and
chosen by ending (cranfield formats lists them); .gz, .zst, .xz and .bz2 behind it compress. Several qrels files
become one.

\b
$ cranfield convert qrels.txt - --to csv
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option
from cranfield.cli.output import about, notes

PLACE = 40


@options.command(__doc__)
@click.argument("sources", nargs=-1, required=True, metavar="FROM... TO")
@option("--from", "The sources' format, if it is not to be detected.", name="from_format", metavar="FORMAT")
@option("--to", "The target's format, if its ending does not say it.", name="to_format", metavar="FORMAT")
@option("--kind", "What the files hold, where their content does not tell.", metavar="run|qrels")
@option(
    "--merge",
    "Where two qrels files disagree, take the later file's grade, the higher one, or stop.  [default: error]",
    metavar="latest|max|error",
)
@option("--field fields")
@options.dialect
@option("--grades")
@option("--duplicates", "Which line counts when judgments name a document twice for a topic.", default="error")
@option("--lenient")
def command(sources: tuple[str, ...], **how: Any) -> None:
    from cranfield.formats.streams import refuse_unwritable
    from cranfield.workspace.collecting import convert
    from cranfield.workspace.logs import expanded

    if len(sources) < 2:
        raise click.UsageError("give at least two files: what to read, and last what to write")
    *files, target = sources
    if len(expanded(files)) < 2:
        options.refuse_idle("goes with two or more files of judgments", "merge")
    refuse_unwritable(target)
    done = convert(files, target, **how)
    about(target, f"{done.kind}, {done.rows} rows, {done.topics} topics, as {done.format}")
    notes(done.notes)

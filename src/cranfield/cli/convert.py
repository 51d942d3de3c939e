"""Convert runs or judgments to another format, or merge qrels.

The last file is written, as a whole or not at all; - is standard input or output. The format of the files to read is
detected; the ending of the last file chooses its format (cranfield formats lists them), and .gz, .zst, .xz or .bz2
after it compresses. Several qrels files become one.

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
@option("--from FORMAT from_format", "Format of the files to read.  [default: detected]")
@option("--to FORMAT to_format", "Format of the file to write.  [default: by its ending]")
@option("--kind", "Kind of the files.  [default: detected]", metavar="run|qrels")
@option(
    "--merge",
    "Grade to use if two qrels files disagree: the later file's, the higher one, or an error.  [default: error]",
    metavar="latest|max|error",
)
@option("--field fields")
@options.dialect
@option("--grades")
@option("--duplicates", "Line to use if the judgments name a document twice for a topic.", default="error")
@option("--lenient")
def command(sources: tuple[str, ...], **how: Any) -> None:
    from cranfield.commands.collections import convert
    from cranfield.formats.streams import refuse_unwritable
    from cranfield.inputs.logs import expanded

    if len(sources) < 2:
        raise click.UsageError("give at least two files: the files to read, and last the file to write")
    *files, target = sources
    if len(expanded(files)) < 2:
        options.refuse_idle("goes with two or more files of judgments", "merge")
    refuse_unwritable(target)
    done = convert(files, target, **how)
    about(target, f"{done.kind}, {done.rows} rows, {done.topics} topics, as {done.format}")
    notes(done.notes)

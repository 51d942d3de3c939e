"""Report errors and suspicious lines in run and qrels files.

Each problem is shown with its first lines: malformed lines, duplicates, ranks that contradict scores, ties, topics in
one file only, encodings. The exit code is 3 if a problem is an error.

\b
$ cranfield check bm25.run --qrels qrels.txt
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.base.notifications import tell_used
from cranfield.cli import BAD_DATA, options
from cranfield.cli.options import option
from cranfield.cli.output import show

PLACE = 30


@options.command(__doc__)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option("--qrels QRELS", "Judgments to check the runs against.")
@option("--kind", "Kind of the files.  [default: detected]", metavar="run|qrels")
@option("--field fields")
@options.labels
@option("--topics-file")
@option("--duplicates", f"{options.CONVENTIONS['duplicates'][1]}  [default: error]")
@option("--lenient", "Report malformed lines as warnings, so that the exit code is 0.")
@options.output("table", "json")
@click.pass_context
def command(ctx: click.Context, /, shape: str, output: str | None, **how: Any) -> None:
    from cranfield.commands.collections import check

    options.expect_use("is for judgments, and none are checked", "grades")
    options.expect_use("joins files by the text of a query, and no file names its topics so", "topics_file")

    findings = check(**how)
    if findings.counts["error"]:  # a file that could not be read used nothing
        tell_used(*options.UNUSED, "grades", "topics_file")
    show(findings, shape, output)
    if findings.counts["error"]:
        ctx.exit(BAD_DATA)

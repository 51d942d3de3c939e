"""Say what is wrong or suspicious in run and qrels files.

Every problem is reported with its first lines: malformed lines, duplicates, ranks that contradict scores, ties,
topics in one file only, encodings. The exit code is 3 if one of them is an error.

\b
$ cranfield check bm25.run --qrels qrels.txt
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import BAD_DATA, options
from cranfield.cli.options import COLLECTION, option
from cranfield.cli.output import show
from cranfield.hearing import tell_used

PLACE = 30


@options.command(__doc__)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option("--qrels", "Check the runs against these judgments too.", type=COLLECTION, metavar="QRELS")
@option("--kind", "What the files are, if it is not to be detected.", metavar="run|qrels")
@option("--field fields")
@options.labels
@option("--topics-file", "What the topics ask, to join judgments and runs by that text: a table, or a collection.")
@option("--duplicates")
@option("--lenient", "Report malformed lines as warnings; the exit code is then 0.")
@options.output("table", "json")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    qrels: str | None,
    kind: str | None,
    fields: Any,
    shape: str,
    output: str | None,
    **how: Any,
) -> None:
    from cranfield.workspace.collecting import check

    options.expect_use("is for judgments, and none are checked", "grades")
    options.expect_use("joins files by the text of a query, and no file names its topics so", "topics_file")

    findings = check(files, qrels, kind, fields, **how)
    if findings.counts["error"]:  # a file that could not be read used nothing
        tell_used(*options.UNUSED, "grades", "topics_file")
    show(findings, shape, output)
    if findings.counts["error"]:
        ctx.exit(BAD_DATA)

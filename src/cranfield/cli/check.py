"""`cranfield check`: what is wrong or suspicious in files."""

from __future__ import annotations

import click

from cranfield.cli import BAD_DATA, options
from cranfield.cli.output import put


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--qrels", metavar="QRELS", help="Check the runs against these judgments too.")
@click.option("--kind", metavar="run|qrels", help="What the files are, if it is not to be detected.")
@options.output("table", "json")
@click.pass_context
def command(
    ctx: click.Context, files: tuple[str, ...], qrels: str | None, kind: str | None, shape: str, output: str | None
) -> None:
    """Say what is wrong or suspicious in run and qrels files.

    Every problem is reported with its first lines: malformed lines, duplicates, ranks that contradict scores, ties,
    topics in one file only, encodings. The exit code is 3 if one of them is an error.

    \b
    $ cranfield check bm25.run --qrels qrels.txt
    """
    from cranfield.workspace import check_

    findings = check_(files, qrels, kind)
    put(findings.to_json() if shape == "json" else findings.to_text(), output)
    if findings.counts["error"]:
        ctx.exit(BAD_DATA)

"""Produce a run from a system under test, and time it.

COLLECTION is a folder, or the name of a bundled one. A topic that fails is reported and left out; the exit code is
then 1 and the run's tag ends in -partial.

\b
$ cranfield run allotment --system sqlite -o sqlite.run -k 100
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.options import OUTPUT, option
from cranfield.cli.output import show

PLACE = 50
PARTIAL = 1  # the exit code if a topic failed


@options.command(__doc__)
@click.argument("collection", required=False)
@option("--system", lambda: f"{names.systems()}; options behind a colon: bm25s:k1=0.9,stem=no.", metavar="SPEC")
@option("-o --output", "The run to write; RUN.stats.json beside it says what it cost.", type=OUTPUT, metavar="RUN")
@option("-k", "How many documents for each topic.", default=1000, metavar="K")
@option("--fields", "The topic's fields to search for.", default="title", metavar="F,F")
@option("--name", "The run's tag.  [default: the file's name]", metavar="NAME")
@option("--topics", "Ask only these topics: the first word of each line.")
@option("--clients", "How many ask at the same time.", default=1, metavar="N")
@option(
    "--rate",
    "Ask Q queries a second whether answered or not, and time from when each was due.",
    type=float,
    metavar="Q",
)
@option("--repeat", "Ask all topics N times.", name="passes", default=1, metavar="N")
@option(
    "--warmup",
    "Queries asked first, timed apart, of topics that are not timed where there are enough.",
    default=10,
    metavar="N",
)
@option("--retries", "Tries after a failure that may pass.", default=3, metavar="N")
@option("--timeout", "Seconds an answer may take.", default=30.0, metavar="S")
@option("--max-answer", "Megabytes that an answer over HTTP may have.", default=32.0, metavar="MB")
@option("--give-up", "Stop when N topics fail one after the other.", default=10, metavar="N")
@option("--resume", "Go on where an earlier run was cut short: RUN.journal holds its answers.", is_flag=True)
@option("--price-per-hour", "What the machine costs, for the price of 1000 queries.", type=float, metavar="P")
@option("--allow-unjudged")
@option("--list", "List the systems and their options, and run none.", name="listing", is_flag=True)
@options.shape("text", "json", show_default=False)
@click.pass_context
def command(ctx: click.Context, /, fields: str, listing: bool, shape: str, **how: Any) -> None:
    from cranfield.cli.progress import progress
    from cranfield.workspace.listing import systems
    from cranfield.workspace.running import run

    if listing:
        every = (str(parameter.name) for parameter in ctx.command.params)
        options.refuse_idle("does not go with --list", *(name for name in every if name not in ("listing", "shape")))
        show(systems(), shape)
        return
    for name, what in (("collection", "a COLLECTION"), ("system", "--system SPEC"), ("output", "-o RUN")):
        if not how[name]:
            raise click.UsageError(f"give {what}; --list shows the systems")
    with progress("documents, then topics") as tell:
        done = run(fields=[name.strip() for name in fields.split(",")], progress=tell, **how)
    show(done, shape)
    if not done.stats.complete:
        ctx.exit(PARTIAL)

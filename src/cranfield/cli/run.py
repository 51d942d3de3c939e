"""Produce a run from a system under test, and time it.

COLLECTION is a folder, or the name of a bundled collection. A topic that fails is reported and left out; the exit
code is then 1, and the tag of the run ends in -partial.

\b
$ cranfield run allotment --system sqlite -o sqlite.run -k 100
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option, rare
from cranfield.cli.output import progress, show

PLACE = 50
PARTIAL = 1  # the exit code if a topic failed


@options.command(__doc__)
@click.argument("collection", required=False)
@option(
    "--system SPEC",
    "System under test, such as bm25s or http:FILE.toml. "
    "It is one of {systems}; options follow a colon, as in bm25s:k1=0.9,stem=no.",
)
@option("-o --output RUN", "Run to write. RUN.stats.json next to it holds times and costs.")
@option("-k --depth K k", "Number of documents per topic.", default=1000)
@option("--topic-fields F,F fields", "Fields of the topic to use as the query.", default="title", was=["--fields"])
@option("--name NAME", "Tag of the run.  [default: the name of the file]")
@option("--topics")
@option("--clients N", "Number of queries to send at a time.", default=1)
@rare(
    "--rate Q",
    "Send Q queries per second, whether earlier ones were answered or not. Times count from when each query was due.",
    type=float,
)
@option("--repeat N passes", "Number of times to send all topics.", default=1)
@rare(
    "--warmup N",
    "Number of warm-up queries. They come from topics that are not timed, if there are enough.",
    default=10,
)
@rare("--retries N", "Number of retries after a failure that may be temporary.", default=3)
@rare("--timeout S", "Time limit for an answer, in seconds.", default=30.0)
@rare("--max-answer MB", "Size limit for an answer over HTTP, in megabytes.", default=32.0)
@rare("--give-up N", "Stop when N topics fail in a row.", default=10)
@option("--resume", "Continue an interrupted run, from the answers in RUN.journal.", is_flag=True)
@rare("--price-per-hour P", "Price of the machine per hour, for the price of 1000 queries.", type=float)
@option("--allow-unjudged")
@option("--list listing", "List the systems and their options, and run nothing.", is_flag=True)
@options.shape("text", "json")
@click.pass_context
def command(ctx: click.Context, /, fields: str, listing: bool, shape: str, **how: Any) -> None:
    from cranfield.commands.listings import systems
    from cranfield.commands.retrieval import run

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

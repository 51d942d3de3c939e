"""`cranfield run`: a run from a system under test, with what it cost."""

from __future__ import annotations

from typing import Any

import click

from cranfield.answer import as_json
from cranfield.cli.options import Late
from cranfield.cli.output import note, put

PARTIAL = 1


def _specs() -> str:
    from cranfield.systems import specs

    return f"{', '.join(specs())}; options behind a colon: bm25s:k1=0.9,stem=no."


@click.command("run")
@click.argument("collection", required=False)
@click.option("--system", cls=Late, metavar="SPEC", help=_specs)
@click.option("-o", "--output", metavar="RUN", help="The run to write; RUN.stats.json beside it says what it cost.")
@click.option("-k", type=int, default=1000, show_default=True, metavar="K", help="How many documents for each topic.")
@click.option("--fields", default="title", show_default=True, metavar="F,F", help="The topic's fields to search for.")
@click.option("--name", metavar="NAME", help="The run's tag.  [default: the file's name]")
@click.option("--topics", metavar="FILE", help="Ask only these topics: the first word of each line.")
@click.option("--clients", type=int, default=1, show_default=True, metavar="N", help="How many ask at the same time.")
@click.option(
    "--rate",
    type=float,
    metavar="Q",
    help="Ask Q queries a second whether answered or not, and time from when each was due.",
)
@click.option("--repeat", "passes", type=int, default=1, show_default=True, metavar="N", help="Ask all topics N times.")
@click.option(
    "--warmup", type=int, default=10, show_default=True, metavar="N", help="Queries asked first, timed apart."
)
@click.option(
    "--retries", type=int, default=3, show_default=True, metavar="N", help="Tries after a failure that may pass."
)
@click.option("--timeout", type=float, default=30.0, show_default=True, metavar="S", help="Seconds an answer may take.")
@click.option(
    "--give-up",
    type=int,
    default=10,
    show_default=True,
    metavar="N",
    help="Stop when N topics fail one after the other.",
)
@click.option("--resume", is_flag=True, help="Go on where an earlier run was cut short: RUN.journal holds its answers.")
@click.option(
    "--price-per-hour", type=float, metavar="P", help="What the machine costs, for the price of 1000 queries."
)
@click.option("--list", "listing", is_flag=True, help="List the systems and their options, and run none.")
@click.option("--format", "shape", type=click.Choice(["text", "json"]), default="text", help="How to print.")
def command(
    collection: str | None, system: str | None, output: str | None, fields: str, listing: bool, shape: str, **given: Any
) -> None:
    """Produce a run from a system under test, and time it.

    COLLECTION is a folder, or the name of a bundled one. A topic that fails is reported and left out; the exit code is
    then 1 and the run's tag ends in -partial.

    \b
    $ cranfield run allotment --system sqlite -o sqlite.run -k 100
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import list_systems, run_

    if listing:
        put(_listed(list_systems(), shape))
        return
    for value, what in ((collection, "a COLLECTION"), (system, "--system SPEC"), (output, "-o RUN")):
        if not value:
            raise click.UsageError(f"give {what}; --list shows the systems")
    assert collection
    assert system
    assert output
    with progress("documents, then topics") as tell:
        done = run_(
            collection, system, output, fields=[name.strip() for name in fields.split(",")], progress=tell, **given
        )
    put(done.to_json() if shape == "json" else done.to_text())
    for sentence in done.notes(shell=True):
        note(f"note: {sentence}")
    if not done.stats.complete:
        click.get_current_context().exit(PARTIAL)


def _listed(found: list[dict[str, Any]], shape: str) -> str:
    if shape == "json":
        return as_json(found)
    wide = max(len(row["system"]) for row in found)
    lines = []
    for row in found:
        lines.append(f"{row['system']:{wide}}  {row['about']}")
        lines += [f"{'':{wide}}    {name}={one['default']}  {one['meaning']}" for name, one in row["options"].items()]
    return "\n".join(lines)

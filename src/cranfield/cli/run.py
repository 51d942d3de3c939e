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
        listed = list_systems()
        put(listed.to_json() if shape == "json" else listed.to_text())
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
    put(as_json(done.stats.__dict__) if shape == "json" else _shown(done.stats))
    for sentence in done.notes:
        note(f"note: {sentence}")
    if not done.stats.complete:
        click.get_current_context().exit(PARTIAL)


def _shown(stats: Any) -> str:
    """A line for each thing measured."""
    rows = [("run", f"{stats.run}: {stats.topics['answered']} of {stats.topics['asked']} topics, {stats.system}")]
    if stats.index:
        size = f", {_bytes(stats.index['bytes'])} on disk" if stats.index["bytes"] else ""
        speed = f"{stats.index['documents_per_second']:,.0f} a second" if stats.index["documents_per_second"] else ""
        rows.append(
            ("index", f"{stats.index['documents']:,} documents in {stats.index['seconds']:.2f} s, {speed}{size}")
        )
    wait = stats.queries.get("latency_ms")
    if wait:
        named = ", ".join(f"{name} {wait[name]:.3g}" for name in ("mean", "median", "p95", "p99"))
        rows.append(("latency", f"{named} ms ({_loop(stats.queries)})"))
    if stats.throughput:
        rows.append(("throughput", f"{stats.throughput:,.1f} queries a second, {_asked(stats.queries['count'])}"))
    if stats.memory:
        rows.append(
            ("memory", f"{_bytes(stats.memory['peak_bytes'])} at most, {_bytes(stats.memory['before_bytes'])} before")
        )
    if stats.cost:
        rows.append(("cost", f"{stats.cost['per_thousand_queries']:g} for 1000 queries"))
    return "\n".join(f"{name:10}  {text}" for name, text in rows)


def _asked(count: int) -> str:
    return f"{count:,} {'query' if count == 1 else 'queries'}"


def _loop(queries: dict[str, Any]) -> str:
    clients = f"{queries['clients']} client{'s' if queries['clients'] > 1 else ''}"
    if queries["loop"] == "open":
        return f"open loop, {queries['rate_per_second']:g} a second due, {clients}"
    return f"closed loop, {clients}"


def _bytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"

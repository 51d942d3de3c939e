"""Produce a run from a system under test, and time it.

COLLECTION is a folder, or the name of a bundled one. A topic that fails is reported and left out; the exit code is
then 1 and the run's tag ends in -partial.

\b
$ cranfield run allotment --system sqlite -o sqlite.run -k 100
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option
from cranfield.cli.output import notes, put, show

PLACE = 50
PARTIAL = 1  # the exit code if a topic failed


@options.command(__doc__)
@click.argument("collection", required=False)
@option(
    "--system",
    "bm25s, tantivy, sqlite, dense (options behind a colon: bm25s:k1=0.9,stem=no), module:function, command:CMD, "
    "elasticsearch:URL, opensearch:URL, solr:URL, vespa:URL, typesense:URL, meilisearch:URL, http:FILE.toml.",
    metavar="SPEC",
)
@option("-o --output", "The run to write; RUN.stats.json beside it says what it cost.", metavar="RUN")
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
@option("--warmup", "Queries asked first, timed apart.", default=10, metavar="N")
@option("--retries", "Tries after a failure that may pass.", default=3, metavar="N")
@option("--timeout", "Seconds an answer may take.", default=30.0, metavar="S")
@option("--give-up", "Stop when N topics fail one after the other.", default=10, metavar="N")
@option("--resume", "Go on where an earlier run was cut short: RUN.journal holds its answers.", is_flag=True)
@option("--price-per-hour", "What the machine costs, for the price of 1000 queries.", type=float, metavar="P")
@option("--list", "List the systems and their options, and run none.", name="listing", is_flag=True)
@options.shape("text", "json", show_default=False)
@click.pass_context
def command(ctx: click.Context, /, fields: str, listing: bool, shape: str, **how: Any) -> None:
    from cranfield.answer import as_json
    from cranfield.cli.progress import progress
    from cranfield.workspace.listing import systems
    from cranfield.workspace.running import run

    if listing:
        show(systems(), shape)
        return
    for name, what in (("collection", "a COLLECTION"), ("system", "--system SPEC"), ("output", "-o RUN")):
        if not how[name]:
            raise click.UsageError(f"give {what}; --list shows the systems")
    with progress("documents, then topics") as tell:
        done = run(fields=[name.strip() for name in fields.split(",")], progress=tell, **how)
    put(as_json(done.stats.__dict__) if shape == "json" else _shown(done.stats))
    notes(done.notes)
    if not done.stats.complete:
        ctx.exit(PARTIAL)


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

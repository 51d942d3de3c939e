"""Draw topics from a log, and check how much traffic they cover.

LOG is an event log, a file of events (JSON lines, UBI, sessions), or a table of queries with their frequency. The table may
come from standard input (-).

\b
$ cranfield topics sample traffic/march.csv -n 20 -o drawn.tsv
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import COLLECTION, COUNT, INPUT, NEW_FILE, RegistryName, option, rare
from cranfield.cli.output import add_listing, show_answer

PLACE = 45


command = options.group(__doc__)

min_units = option(
    "--min-units N",
    "Minimum number of units that searched for a query. Rarer queries are left out, because they may be personal.  "
    "[default: 5, if LOG says who searched]",
    type=COUNT,
)


@command.command("sample")
@click.argument("log", type=INPUT)
@option("-n --number N n", "Number of topics to draw.", type=COUNT, required=True)
@option(
    "-o --output FILE dest",
    "File to write the topics to. The ending decides: .csv, .jsonl, or else a table with tabs.",
    type=NEW_FILE,
)
@option(
    "--design NAME",
    "Design of the sample. It is one of {topic_designs}.",
    type=RegistryName("topic_designs"),
    default="systematic",
)
@option(
    "--strata COLUMN",
    "Strata to draw from: a column of the table, or traffic for head, torso and tail. The head has the most frequent "
    "queries (33 % of the searches), the tail the rarest (33 %); 'traffic(head=0.2,tail=0.5)' changes the shares.  "
    "[default: none]",
)
@rare(
    "--allocation STRATUM=N",
    "Number of topics of a stratum.  [default: in proportion to searches]",
    multiple=True,
)
@min_units
@option("--seed")
@options.shape("text", "json", "csv", "tsv")
@option("--verbose")
def _sample(**typed: Any) -> None:
    """Draw topics from the queries of a log.

    A query is drawn with probability proportional to its searches, unless --design says otherwise. Spellings that differ
    in case, white space or Unicode form are one query. Queries with mail addresses, phone or card numbers are left out.

    \b
    $ cranfield topics sample traffic/march.csv -n 20 -o drawn.tsv
    """
    from cranfield.commands.topics import sample

    if not typed["strata"]:
        options.refuse_idle("goes with --strata", "allocation")
    show_answer(sample, **typed)


@command.command("coverage")
@click.argument("topics", type=COLLECTION)
@click.argument("log", type=INPUT)
@min_units
@option("--seed")
@options.answer("text", "json", "csv", "tsv")
def _coverage(**typed: Any) -> None:
    """Check how much traffic the topics cover.

    The answer states the share of searches that the topics represent, and tests whether traffic has drifted since the draw.

    \b
    $ cranfield topics coverage traffic/topics.tsv traffic/june.csv
    """
    from cranfield.commands.topics import coverage

    show_answer(coverage, **typed)


@add_listing(command, "designs", "topic_designs", "topic_design")
def _designs() -> None:
    """List the designs of samples of topics, or explain one.

    \b
    $ cranfield topics designs systematic
    """

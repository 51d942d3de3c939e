"""Let real users decide: assign them to variants, and keep what they do in a log.

The library is what a search service calls (cranfield.online); these commands show what it does. PLANS are TOML files or
folders of them, LOG is a folder.

\b
$ cranfield online assign online/plans alice bob
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.options import OneOf, option
from cranfield.cli.output import show

PLACE = 195


@click.group(help=__doc__)
def command() -> None:
    pass


command.command_class = options.Worded

key_option = option("--key", "Units under pseudonyms: a keyed hash by the key in this file.", metavar="FILE")


@command.command("assign")
@click.argument("plans", metavar="PLANS")
@click.argument("units", nargs=-1, required=True, metavar="UNIT...")
@options.output("table", "json", "csv", "tsv")
def _assign(plans: str, units: tuple[str, ...], **shown: Any) -> None:
    """Say which experiments units are in, and which variants they get.

    \b
    $ cranfield online assign online/plans alice bob
    """
    from cranfield.workspace.traffic import assign

    show(assign([plans], units), **shown)


@command.command("ingest")
@click.argument("log")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option("--from", "The files' format, if it is not to be detected.", name="format", type=OneOf(names.event_formats))
@option("--time", "When it was, for files that do not say.", metavar="TIME")
@option("--lenient")
@key_option
@options.answer("table", "json", "csv", "tsv")
def _ingest(log: str, files: tuple[str, ...], lenient: bool, **typed: Any) -> None:
    """Add the events of files to a log: every row of them, or nothing. The same file again adds nothing.

    \b
    $ cranfield online ingest log online/events.jsonl
    """
    from cranfield.workspace.traffic import ingest

    _, shown, how = options.split(typed)
    show(ingest(log, files, lenient=lenient, **how), **shown)


@command.command("export")
@click.argument("log")
@option(
    "--to",
    "The format to write.  [default: by the ending, else jsonl]",
    name="format",
    type=OneOf(names.written_event_formats),
)
@option("-o --output")
def _export(log: str, output: str | None, format: str | None) -> None:
    """Write all events of a log by time: JSON lines, Parquet, or bulk lines of OpenSearch's UBI.

    \b
    $ cranfield online export online/log --to ubi
    """
    from cranfield.formats.streams import write_bytes
    from cranfield.workspace.traffic import export

    write_bytes(output or "-", export(log, format=format, output=output or "-"))


@command.command("erase")
@click.argument("log")
@click.argument("units", nargs=-1, required=True, metavar="UNIT...")
@key_option
@options.answer("table", "json")
def _erase(log: str, units: tuple[str, ...], **typed: Any) -> None:
    """Take all events of units out of a log, packed or not, and say what was done.

    \b
    $ cranfield online erase online/log u2
    """
    from cranfield.workspace.traffic import erase

    _, shown, how = options.split(typed)
    show(erase(log, units, **how), **shown)


@command.command("retain")
@click.argument("log")
@option("--days", "How many days are kept.", type=click.IntRange(min=1), required=True, metavar="N")
@options.answer("table", "json")
def _retain(log: str, days: int, **typed: Any) -> None:
    """Take all events out of a log that are older than so many days.

    \b
    $ cranfield online retain online/log --days 365
    """
    from cranfield.workspace.traffic import retain

    _, shown, _ = options.split(typed)
    show(retain(log, days), **shown)

"""Copy a workspace into one archive, while people judge.

The archive holds the log as work.db, the collection and the runs in a folder of its own name: unpack it elsewhere, and
cranfield serve opens it. Accounts and passwords come along; sessions, invitations and tokens do not.

\b
$ cranfield backup . -o monday.tar.gz
"""

from __future__ import annotations

import click

from cranfield.cli import options
from cranfield.cli.options import option
from cranfield.cli.output import about
from cranfield.columns import counted

PLACE = 79


@options.command(__doc__)
@click.argument("folder")
@option("-o --output", "The archive: .tar.gz, .tgz or .zip; written whole or not at all.", required=True)
@option("--db", "The log of judgments, if it is not FOLDER/work.db.", metavar="postgresql://…")
def command(folder: str, output: str, db: str | None) -> None:
    from cranfield.cli.progress import progress
    from cranfield.workspace.backup import backup

    with progress("files copied") as tell:
        made = backup(folder, output, db, tell)
    about(output, f"{counted(made.events, 'event')} and {counted(made.files, 'file')} of {folder}")

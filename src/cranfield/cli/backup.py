"""Copy a workspace into one archive, while people judge.

The archive holds the log (as work.db), the collection and the runs in one folder. Unpack it anywhere, and cranfield
serve opens it. It includes accounts and passwords, but no sessions, invitations and tokens.

\b
$ cranfield backup . -o monday.tar.gz
"""

from __future__ import annotations

import click

from cranfield.base.text_layout import counted
from cranfield.cli import options
from cranfield.cli.options import option
from cranfield.cli.output import about, progress

PLACE = 78


@options.command(__doc__)
@click.argument("folder")
@option("-o --output", "Archive to write: .tar.gz, .tgz or .zip, as a whole or not at all.", required=True)
@option("--db", "Log of judgments.  [default: FOLDER/work.db]", metavar="postgresql://…")
def command(folder: str, output: str, db: str | None) -> None:
    from cranfield.workbench.backup import backup

    with progress("files copied") as tell:
        copy = backup(folder, output, db, tell)
    about(output, f"{counted(copy.events, 'event')} and {counted(copy.files, 'file')} of {folder}")

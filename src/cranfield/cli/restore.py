"""Restore a workspace from the archive of a backup.

FOLDER is new, or a workspace whose log has nothing that the backup lacks; its files from before are then kept in
.cranfield/replaced/before. The log is verified first. Accounts that exist stay as they are.

\b
$ cranfield restore monday.tar.gz monday
"""

from __future__ import annotations

import click

from cranfield.base.text_layout import counted
from cranfield.cli import options
from cranfield.cli.options import option
from cranfield.cli.output import about, progress

PLACE = 79


@options.command(__doc__)
@click.argument("archive")
@click.argument("folder")
@option("--db", "Log to restore into.  [default: FOLDER/work.db]", metavar="postgresql://…")
def command(archive: str, folder: str, db: str | None) -> None:
    from cranfield.workbench.backup import restore

    with progress("bytes unpacked") as tell:
        restored = restore(archive, folder, db, tell)
    about(folder, f"{counted(restored.events, 'event')} and {counted(restored.files, 'file')} of {archive}")

"""List the file formats that are read and written.

A file's format is detected by its content; --run-format, --qrels-format and --from name it. The ending of a file to
be written chooses its format; --to names it.

\b
$ cranfield formats
"""

from __future__ import annotations

from typing import Any

from cranfield.cli import options
from cranfield.cli.output import show

PLACE = 220


@options.command(__doc__)
@options.output("table", "json")
def command(**shown: Any) -> None:
    from cranfield.workspace.listing import formats

    show(formats(), **shown)

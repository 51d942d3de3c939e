"""List the file formats that are read and written.

A file's format is detected by its content; --run-format, --qrels-format and --from name it. The ending of a file to
be written chooses its format; --to names it.

\b
$ cranfield formats
"""

from __future__ import annotations

from cranfield.cli.output import listing

PLACE = 220

command = listing(__doc__, "formats")

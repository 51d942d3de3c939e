"""List the corrections for many tests, or explain one.

A correction is explained by what it controls and assumes, its other names and a reference. NAME may be another name
of it: bh explains benjamini-hochberg.

\b
$ cranfield corrections holm
"""

from __future__ import annotations

from cranfield.cli.output import listing

PLACE = 204

command = listing(__doc__, "corrections", "correction")

"""List the presets of conventions and their settings.

A preset follows the defaults of another tool: the order of tied documents, the score of a missing topic, and so on.
Choose a preset with --as, and change single settings with the options of the same name.

\b
$ cranfield presets
"""

from __future__ import annotations

from cranfield.cli.output import listing

PLACE = 210

command = listing(__doc__, "presets")

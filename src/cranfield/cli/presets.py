"""List the presets of conventions and their answers.

A preset repeats what another tool does by default: which of two tied documents comes first, what a missing topic
is worth, and so on. Choose one with --as, change single answers with the options of the same name.

\b
$ cranfield presets
"""

from __future__ import annotations

from typing import Any

from cranfield.cli import options
from cranfield.cli.output import show

PLACE = 210


@options.command(__doc__)
@options.output("table", "json")
def command(**shown: Any) -> None:
    from cranfield.workspace.listing import presets

    show(presets(), **shown)

"""List the significance tests, or explain one.

The explanation has the question, assumptions, quantity, source of the p-value, interval, other names, and a
reference. NAME may be another name: signed-rank explains wilcoxon.

\b
$ cranfield tests wilcoxon
"""

from __future__ import annotations

from cranfield.cli.output import listing

PLACE = 202

command = listing(__doc__, "tests", "test")

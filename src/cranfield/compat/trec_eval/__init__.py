"""trec_eval's command line: the same options in, the same bytes out, as version 10 or as version 9.

Numbers come from the same kernels, hits and measures as everything else. What lives only here is what
makes the output trec_eval's: the order of the lines, the rounding, what `-c` does to a missing topic,
and the known bugs that the printed output cannot do without.
"""

from __future__ import annotations

from cranfield.compat.trec_eval.command import main

__all__ = ["main"]

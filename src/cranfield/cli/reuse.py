"""Test whether judgments can score runs outside the pool.

The command leaves out each run or team in turn and scores it on the remaining judgments. --depth is the depth of the
pool. --new adds a run that did not contribute: how much of its top is judged, the bounds of its scores, scores
corrected by the mean drop, and documents to judge.

\b
$ cranfield reuse qrels.txt bm25.run dense.run --depth 10
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import INPUT, NEW_FILE, option
from cranfield.cli.pool import contributing, depths_of, pairs_of, show_with_holes

PLACE = 80


@options.command(__doc__)
@click.argument("qrels")
@contributing
@option("-m --measures", "Measures to compute.", default=["AP nDCG@10"])
@option(
    "--team PATTERN=TEAM teams", "Team of the runs that match a pattern; they are left out together.", multiple=True
)
@option("--rel", "Lowest relevant grade.", default=1, metavar=None)
@option("--new RUN", "Run that did not contribute, to be scored as well.", multiple=True, type=INPUT)
@option("--holes FILE", "Write a pool of the documents to judge for the new runs.", type=NEW_FILE)
@option("--holes-depth")
@option("--allow-unjudged")
@options.answer("table", "json", "csv", "tsv")
def command(depths: tuple[str, ...], teams: tuple[str, ...], **typed: Any) -> None:
    from cranfield.commands.pooling import reuse

    if typed["holes"] and not typed["new"]:
        raise click.UsageError("--holes goes with --new RUN")
    show_with_holes(reuse, typed, depths=depths_of(depths), teams=pairs_of("--team", teams, "PATTERN=TEAM"))

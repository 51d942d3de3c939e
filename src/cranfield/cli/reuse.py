"""Say whether judgments can score a run that did not contribute, by leaving out each run or team in turn.

--depth is how deep the runs were pooled. With --new a stranger is read on the same judgments: how much of its top
is judged, how far its scores are open, its scores with the mean drop added, and what to judge to settle it.

\b
$ cranfield reuse qrels.txt bm25.run dense.run --depth 10
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import INPUT, OUTPUT, option
from cranfield.cli.output import about, show
from cranfield.cli.pool import contributing, depths_of, pairs_of

PLACE = 80


@options.command(__doc__)
@click.argument("qrels")
@contributing
@option("-m --measures", "What to score.", default=["AP nDCG@10"])
@option("--team", "Leave out a team's runs together.", name="teams", multiple=True, metavar="PATTERN=TEAM")
@option("--rel", "The lowest relevant grade, for measures and counts.", default=1, metavar=None)
@option("--new", "Also read a run that did not contribute.", multiple=True, type=INPUT, metavar="RUN")
@option(
    "--holes",
    "Write a pool of what must be judged to settle the new runs.",
    type=OUTPUT,
    metavar="FILE",
    callback=options.writable,
)
@option("--holes-depth", "How deep their tops are.")
@option("--allow-unjudged")
@options.answer("table", "json", "csv", "tsv")
def command(depths: tuple[str, ...], teams: tuple[str, ...], **typed: Any) -> None:
    from cranfield.formats.streams import all_or_none
    from cranfield.workspace.pooling import reuse

    inputs, shown, how = options.split(typed)
    if how["holes"] and not how["new"]:
        raise click.UsageError("--holes goes with --new RUN")
    if not how["holes"]:
        options.refuse_idle("goes with --holes FILE", "holes_depth")
    with all_or_none():
        answer, written = reuse(inputs, depths_of(depths), teams=pairs_of("--team", teams, "PATTERN=TEAM"), **how)
        if how["holes"]:
            about(how["holes"], f"{written} documents to judge")
        show(answer, **shown)

"""`cranfield reuse`: can these judgments score a run that did not contribute to them?"""

from __future__ import annotations

from typing import Any

import click

from cranfield.answer import as_json
from cranfield.cli import options
from cranfield.cli.output import note, put, screen_width
from cranfield.cli.pool import chosen, contributing, pairs_of


@click.command("reuse", cls=options.Sectioned)
@click.argument("qrels")
@contributing
@click.option(
    "-m",
    "--measures",
    multiple=True,
    default=["AP nDCG@10"],
    show_default=True,
    metavar="MEASURES",
    help="What to score.",
)
@click.option("--team", "teams", multiple=True, metavar="PATTERN=TEAM", help="Leave out a team's runs together.")
@click.option("--rel", type=float, default=1, show_default=True, help="The lowest relevant grade, for the counts.")
@click.option("--new", "new", multiple=True, metavar="RUN", help="Also read a run that did not contribute.")
@click.option("--holes", metavar="FILE", help="Write a pool of what must be judged to settle the new runs.")
@click.option(
    "--holes-depth", type=click.IntRange(min=1), default=10, show_default=True, help="How deep their tops are."
)
@options.output("table", "json", "csv", "tsv")
def command(
    qrels: str,
    shape: str,
    output: str | None,
    teams: tuple[str, ...],
    new: tuple[str, ...],
    holes: str | None,
    holes_depth: int,
    **given: Any,
) -> None:
    """Say whether judgments can score a run that did not contribute, by leaving out each run or team in turn.

    --depth is how deep the runs were pooled. With --new a stranger is read on the same judgments: how much of its top
    is judged, how far its scores are open, its scores with the mean drop added, and what to judge to settle it.

    \b
    $ cranfield reuse qrels.txt bm25.run dense.run --depth 10
    """
    from cranfield.workspace import reuse_, strangers

    given = chosen(given)
    if holes and not new:
        raise click.UsageError("--holes goes with --new RUN")
    found = reuse_(qrels, teams=pairs_of("--team", teams, "PATTERN=TEAM"), **given)
    given["runs"] = new
    read = strangers(qrels, found=found, holes=holes, holes_depth=holes_depth, **given) if new else None
    if shape == "json":
        put(as_json({**found.to_dict(), **({"new": read.to_dict()} if read else {})}), output)
    elif shape == "table":
        texts = [answer.to_text(limit=screen_width(output)) for answer in (found, read) if answer is not None]
        put("\n\n".join(texts), output)
    else:
        put(found.to_csv() if shape == "csv" else found.to_tsv(), output)
    if read and holes:
        note(f"{read.holes} documents to judge in {holes}")

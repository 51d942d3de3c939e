"""Show how a score came about, rank by rank, or what it is under other programs' conventions.

With --topic: a table of ranks, documents, grades, what each adds, the score so far and the ideal ranking. With
--as all: the mean over topics, or that topic's score, as each of the presets has it, and what each does
differently; --as PRESET without a topic shows that one alone.

\b
$ cranfield explain "nDCG@10" qrels.txt bm25.run --topic q1
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option
from cranfield.cli.output import show

PLACE = 100


@options.command(__doc__)
@click.argument("measure")
@click.argument("qrels")
@click.argument("run")
@option("--topic", "The topic to explain; may be left out where only one is judged.", metavar="TOPIC")
@option("--rel", "The lowest relevant grade, if the measure does not say so itself.")
@option("--all-ranks", "Show every rank instead of folding those that matter little.", name="full", is_flag=True)
@option("--collection-size", type=int)
@option("--baseline")
@option("--preferences", "Preference judgments, for the measures that need them.")
@option("--groups", "Groups of documents (document group share), for measures of fairness.")
@option("--aspect", "Judgments of a second aspect, such as understandability.")
@option("--costs", "What documents cost to read (document cost), for TBG, Umeasure and kin.")
@options.output("text", "markdown", "json", "html")
@options.rules
def command(measure: str, run: str, **typed: Any) -> None:
    options.without_algebra()
    from cranfield.workspace.scoring import explain

    inputs, shown, how = options.split(typed, measures=[measure], runs=[run])
    show(explain(inputs, **how), **shown)

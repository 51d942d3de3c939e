"""Show how a score came about, rank by rank, two runs side by side, or a score under other programs' conventions.

With two runs: their lists next to each other, with grades, moves and what each rank adds, on the topic where they
differ most or on --topic. With one run and --topic: a table of ranks, documents, grades, what each adds, the score so
far and the ideal ranking. With --as all: the mean over topics, or that topic's score, as each of the presets has it,
and what each does differently; --as PRESET without a topic shows that one alone.

\b
$ cranfield explain qrels.txt bm25.run -m nDCG@10 --topic q1
"""

from __future__ import annotations

import os
from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option
from cranfield.cli.output import show

PLACE = 100


@options.command(__doc__)
@click.argument("words", nargs=-1, required=True, metavar="QRELS RUN [RUN]")
@option("-m --measure", "What to explain.  [default: nDCG@10]", metavar="MEASURE")
@option("--topic", "The topic to explain; may be left out where only one is judged, and of two runs.", metavar="TOPIC")
@option("--topics-file")
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
def command(words: tuple[str, ...], measure: str | None, **typed: Any) -> None:
    options.without_algebra()
    from cranfield.workspace.scoring import explain

    options.expect_use(options.COMPARES, "baseline")
    measure, qrels, runs = _told(words, measure)
    inputs, shown, how = options.split({**typed, "qrels": qrels}, measures=[measure], runs=runs)
    show(explain(inputs, **how), **shown)


def _told(words: tuple[str, ...], measure: str | None) -> tuple[str, str, list[str]]:
    """Measure, judgments and one run or two; the measure may also stand first, as it once had to."""
    if len(words) in (3, 4) and measure is None and not _is_there(words[0]):
        return words[0], words[1], list(words[2:])
    if len(words) not in (2, 3) or (len(words) == 3 and not _is_there(words[0]) and _is_measure(words[0])):
        raise click.UsageError(f"expected QRELS RUN or QRELS RUN RUN, found {len(words)}: {' '.join(words)}")
    return measure or "nDCG@10", words[0], list(words[1:])


def _is_measure(name: str) -> bool:
    from cranfield.errors import CranfieldError
    from cranfield.measures import measure

    try:
        measure(name)
    except CranfieldError:
        return False
    return True


def _is_there(name: str) -> bool:
    """Whether it names a file, a folder or a collection that comes along."""
    from cranfield.formats.folder import bundled_names

    return os.path.exists(name) or name in bundled_names()

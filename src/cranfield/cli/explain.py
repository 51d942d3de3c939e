"""Explain a score rank by rank, or compare two runs.

With one run: a table of ranks, documents, grades, what each rank adds, the score so far, and the ideal ranking. With
two runs: their lists side by side, on --topic or where they differ most. With --as all: the score under every preset,
and what each preset does differently; --as PRESET without a topic shows that preset alone.

\b
$ cranfield explain qrels.txt bm25.run -m nDCG@10 --topic q1
"""

from __future__ import annotations

import os
from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import option
from cranfield.cli.output import show_answer

PLACE = 100


@options.command(__doc__)
@click.argument("words", nargs=-1, required=True, metavar="QRELS RUN [RUN]")
@option("-m --measure MEASURE", "Measure to explain.  [default: nDCG@10]")
@option(
    "--topic TOPIC",
    "Topic to explain.  [default: the only judged topic; with two runs, the topic where they differ most]",
)
@option("--topics-file")
@option("--rel")
@option("--all-ranks full", "Show every rank. By default, ranks that matter little are folded.", is_flag=True)
@option("--baseline")
@option("--collection-size", type=int)
@options.measure_data
@options.output("text", "markdown", "json", "html")
@options.rules
def command(words: tuple[str, ...], measure: str | None, **typed: Any) -> None:
    options.without_algebra()
    from cranfield.commands.evaluation import explain

    options.expect_use(options.COMPARES, "baseline")
    measure, qrels, runs = _arguments(words, measure)
    show_answer(explain, **options.with_inputs({**typed, "qrels": qrels, "measures": [measure], "runs": runs}))


def _arguments(words: tuple[str, ...], measure: str | None) -> tuple[str, str, list[str]]:
    """Measure, judgments, and one or two runs. The measure may come first, as in earlier versions."""
    if len(words) in (3, 4) and measure is None and not _is_there(words[0]):
        return words[0], words[1], list(words[2:])
    if len(words) not in (2, 3) or (len(words) == 3 and not _is_there(words[0]) and _is_measure(words[0])):
        raise click.UsageError(f"expected QRELS RUN or QRELS RUN RUN, found {len(words)}: {' '.join(words)}")
    return measure or "nDCG@10", words[0], list(words[1:])


def _is_measure(name: str) -> bool:
    from cranfield.base.errors import CranfieldError
    from cranfield.evaluation.measures import measure

    try:
        measure(name)
    except CranfieldError:
        return False
    return True


def _is_there(name: str) -> bool:
    """Whether the name is a file, a folder or a bundled collection."""
    from cranfield.formats.collection_folder import bundled_names

    return os.path.exists(name) or name in bundled_names()
